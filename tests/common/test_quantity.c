/* test_quantity.c - numbers, sizes and lists as people write them: what each is, and what is
 * refused with which words. */
#include "tap.h"
#include "topt_text.h"

#include <string.h>

static struct topt_error err;

static int says(const char *part)
{
    return err.code == TOPT_ERR_INVAL && strstr(err.text, part) != NULL;
}

static void test_whole_numbers(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"0", "too small; give at least 1"},
               {"-3", "too small; give at least 1"},
               {"-99999999999999999999", "too small"},
               {"101", "too large; give at most 100"},
               {"99999999999999999999", "too large"},
               {"", "not a whole number"},
               {" ", "not a whole number"},
               {"8x", "not a whole number"},
               {"8 9", "not a whole number"},
               {"8.5", "not a whole number"}};
    int64_t v = 0;
    ok(!topt_parse_int("8", 1, 100, &v, &err) && v == 8, "a number");
    ok(!topt_parse_int(" 64 ", 1, 100, &v, &err) && v == 64, "blanks around it");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(topt_parse_int(bad[i].text, 1, 100, &v, &err) && says(bad[i].says) && v == 64,
           "'%s': %s", bad[i].text, err.text);
}

static void test_numbers(void)
{
    double v = 1;
    ok(!topt_parse_real(" 0.5 ", 1, &v, &err) && v > 0.4 && v < 0.6, "a real number");
    ok(!topt_parse_real("0", 0, &v, &err) && v <= 0, "0 where it may be");
    ok(topt_parse_real("0", 1, &v, &err) && says("give more than 0"), "0: %s", err.text);
    ok(topt_parse_real("-1", 0, &v, &err) && says("give at least 0"), "-1: %s", err.text);
    ok(topt_parse_real("inf", 0, &v, &err) && says("not a number"), "inf: %s", err.text);
    ok(topt_parse_real("nan", 0, &v, &err) && says("not a number"), "nan: %s", err.text);
    ok(topt_parse_real("1 s", 0, &v, &err) && says("not a number"), "1 s: %s", err.text);
    ok(topt_parse_real("", 0, &v, &err) && says("not a number"), "nothing: %s", err.text);
}

static void test_shares(void)
{
    static const struct {
        const char *text;
        double share;
    } good[] = {{"0.8", 0.8}, {"80", 0.8}, {"80%", 0.8},   {" 80 % ", 0.8},
                {"1", 1},     {"100", 1},  {"1%", 0.01},   {"2.5%", 0.025},
                {"5", 0.05},  {"0", 0},    {"0.8%", 0.008}};
    static const struct {
        const char *text, *says;
    } bad[] = {{"1.5", "150 %"},    {"1.5", "0.015"},  {"1.5", "write 1.5%"},
               {"2", "200 %"},      {"4.99", "499 %"}, {"101", "too large"},
               {"100.5%", "large"}, {"-1", "small"},   {"-1%", "small"},
               {"nan", "not a"},    {"inf", "not a"},  {"80%%", "not a"},
               {"80 % x", "not a"}, {"", "not a"},     {"%", "not a"}};
    double v = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ok(!topt_parse_share(good[i].text, &v, &err) && v >= good[i].share &&
               v <= good[i].share,
           "'%s' is %.17g", good[i].text, v);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(topt_parse_share(bad[i].text, &v, &err) && says(bad[i].says), "'%s': %s",
           bad[i].text, err.text);
}

static void test_sizes(void)
{
    static const struct {
        const char *text;
        int64_t bytes;
    } good[] = {{"80GiB", 80LL << 30},
                {"80GiB ", 80LL << 30},
                {" 80 GiB ", 80LL << 30},
                {"80gib", 80LL << 30},
                {"512K", 512 << 10},
                {"14.5 GB", 14500000000},
                {"1B", 1},
                {"80 b", 80},
                {"4096", 4096},
                {" 9007199254740993 ", 9007199254740993},
                {"9007199254740993B", 9007199254740993}};
    static const char *const bad[] = {"80Gi", "80GiBs", "80 G iB",   "lots",
                                      "",     "0",      "-1GiB",     "0.5",
                                      "8EiB", "nan",    "9999999TiB"};
    int64_t v;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ok(!topt_parse_bytes(good[i].text, &v, &err) && v == good[i].bytes,
           "'%s' is %lld bytes", good[i].text, (long long)good[i].bytes);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(topt_parse_bytes(bad[i], &v, &err) && err.code == TOPT_ERR_INVAL, "'%s': %s",
           bad[i], err.text);
}

static void test_memory(void)
{
    int64_t v = 0;
    ok(topt_parse_memory("80", &v, &err) && says("80 is 80 bytes; did you mean 80GiB?"),
       "80: %s", err.text);
    ok(topt_parse_memory(" 80 ", &v, &err) && says("did you mean 80GiB?"),
       "blanks around it: %s", err.text);
    ok(topt_parse_memory("81920", &v, &err) && says("did you mean 81920MiB?"),
       "81920: %s", err.text);
    ok(topt_parse_memory("1048575", &v, &err), "a byte less than a MiB: %s", err.text);
    ok(!topt_parse_memory("1048576", &v, &err) && v == 1 << 20, "a MiB");
    ok(!topt_parse_memory("80B", &v, &err) && v == 80, "80 bytes that say so");
    ok(!topt_parse_memory("1KiB", &v, &err) && v == 1024, "a small size with its unit");
}

static void test_counts(void)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"1,2,2", "2 is given twice"},
               {"1,2,02", "2 is given twice"},
               {"1, ,2", "'1, ,2' has an empty place"},
               {"1,,2", "an empty place"},
               {",1", "an empty place"},
               {"1,", "an empty place"},
               {"", "an empty place"},
               {" ", "an empty place"},
               {"0,1", "too small"},
               {"1,65", "too large"},
               {"1,2x", "'2x' is not a whole number"},
               {"1 2", "not a whole number"},
               {"1,2,3,4,5", "more than 4 counts"}};
    int64_t list[4];
    int n;
    ok(!topt_parse_counts(" 1, 2 ,64", 64, list, 4, &n, &err) && n == 3 && list[0] == 1 &&
           list[1] == 2 && list[2] == 64,
       "a list");
    ok(!topt_parse_counts("8", 64, list, 4, &n, &err) && n == 1 && list[0] == 8, "one");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(topt_parse_counts(bad[i].text, 64, list, 4, &n, &err) && says(bad[i].says),
           "'%s': %s", bad[i].text, err.text);
}

/* How many items there are, or -1. */
static int items(const char *list)
{
    char item[6];
    const char *at = NULL;
    int n = 0, rc;
    while ((rc = topt_list_next(list, &at, item, sizeof item, &err)) > 0)
        n++;
    return rc ? -1 : n;
}

static void test_list(void)
{
    const char *at = NULL, *list = "zero , micro";
    char item[6];
    ok(topt_list_next(list, &at, item, sizeof item, &err) == 1 && !strcmp(item, "zero"),
       "an item");
    ok(topt_list_next(list, &at, item, sizeof item, &err) == 1 && !strcmp(item, "micro"),
       "the next");
    ok(topt_list_next(list, &at, item, sizeof item, &err) == 0, "no more");
    is_int(items("zero,zer,zer0"), 3, "items that begin alike");
    is_int(items("zero"), 1, "one");
    ok(items("zero,,zero") == -1 && says("'zero,,zero' has an empty place"), "a gap: %s",
       err.text);
    ok(items("a,zero,b, zero ") == -1 && says("zero is given twice"), "a repeat: %s",
       err.text);
    ok(items("a,recompute") == -1 && says("'recompute' is longer"), "a long one: %s",
       err.text);
}

static void test_amounts(void)
{
    static const struct {
        const char *text;
        int64_t is;
    } good[] = {{"300B", 300000000000}, {"1.5T", 1500000000000}, {"2e12", 2000000000000},
                {"2048", 2048},         {" 7 k ", 7000},         {"1m", 1000000}};
    static const char *const bad[] = {"5X",  "1TB", "T",   "",    "0",
                                      "-1T", "0.5", "nan", "1e30"};
    int64_t v = 0;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        ok(!topt_parse_amount(good[i].text, &v, &err) && v == good[i].is, "%s is %lld",
           good[i].text, (long long)v);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ok(topt_parse_amount(bad[i], &v, &err) && err.code == TOPT_ERR_INVAL,
           "'%s' is refused: %s", bad[i], err.text);
}

int main(void)
{
    test_amounts();
    test_whole_numbers();
    test_numbers();
    test_shares();
    test_sizes();
    test_memory();
    test_counts();
    test_list();
    return done_testing();
}
