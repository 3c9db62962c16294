/* test_options.c - the table of options: each kind refuses what it can't be, as wrong usage and
 * with the option's name. */
#include "tap.h"
#include "topt_options.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct args {
    int64_t batch, seed, memory, block;
    double seconds, epsilon;
    const char *out;
    int json;
};

static const struct topt_option table[] = {
    {"batch", TOPT_OPT_COUNT, offsetof(struct args, batch), "N", ""},
    {"seed", TOPT_OPT_INT, offsetof(struct args, seed), "N", ""},
    {"memory", TOPT_OPT_MEMORY, offsetof(struct args, memory), "BYTES", ""},
    {"block", TOPT_OPT_BYTES, offsetof(struct args, block), "BYTES", ""},
    {"seconds", TOPT_OPT_POSITIVE, offsetof(struct args, seconds), "S", ""},
    {"epsilon", TOPT_OPT_REAL, offsetof(struct args, epsilon), "E", ""},
    {"o", TOPT_OPT_STRING, offsetof(struct args, out), "FILE", ""},
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), "", ""},
    TOPT_EXAMPLE("test --batch 8", "eight of them"),
    {0}};

static struct args args;
static struct topt_error err;

static int parse(const char *one, const char *two)
{
    char *argv[] = {(char *)"test", (char *)one, (char *)two, NULL};
    const char *words[1];
    int n;
    args = (struct args){0};
    topt_error_clear(&err);
    return topt_options_parse(table, two ? 3 : 2, argv, &args, words, 1, &n, &err);
}

static void refused(const char *one, const char *two, const char *says)
{
    ok(parse(one, two) == -1 && err.code == TOPT_ERR_USAGE &&
           topt_err_exit(err.code) == 2 && strstr(err.text, says),
       "%s %s: %s", one, two ? two : "", err.text);
}

/* Examples stand above the options, which they are none of. */
static void examples(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    topt_options_help(out, "test [options]", table);
    fclose(out);
    const char *example =
        strstr(text, "\nExamples:\n    test --batch 8\n        eight of them\n");
    ok(!strncmp(text, "Usage: test [options]\n", 22) && example &&
           strstr(example, "\nOptions:\n  --batch N") && !strstr(text, "--test"),
       "help has the example, then the options");
    free(text);
    refused("--test --batch 8", NULL, "unknown option '--test --batch 8'");
}

int main(void)
{
    examples();
    ok(!parse("--batch", "1") && args.batch == 1, "a count");
    ok(!parse("--seed=0", "--epsilon=0") && !args.seed, "0 where it means something");
    ok(!parse("--seconds", "0.1") && args.seconds > 0, "a positive number");
    ok(!parse("--memory=80GiB ", NULL) && args.memory == 80LL << 30, "memory");
    ok(!parse("--block", "4096") && args.block == 4096, "bytes may be few");
    ok(!parse("-o", "-") && !strcmp(args.out, "-"), "one letter");
    refused("--batch", "0", "--batch: 0 is too small; give at least 1");
    refused("--batch=-1", NULL, "--batch: -1 is too small");
    refused("--batch", "many", "--batch: 'many' is not a whole number");
    refused("--seed=-1", NULL, "--seed: -1 is too small; give at least 0");
    refused("--seconds", "0", "--seconds: 0 is too small; give more than 0");
    refused("--seconds", "-1", "--seconds: -1 is too small");
    refused("--epsilon", "-1", "--epsilon: -1 is too small; give at least 0");
    refused("--memory", "80", "--memory: 80 is 80 bytes; did you mean 80GiB?");
    refused("--memory", "0GiB", "--memory: '0GiB' is no positive size");
    refused("--memory", "80XiB", "--memory: '80XiB' has an unknown unit");
    refused("--json=1", NULL, "--json takes no value");
    refused("--batch", NULL, "--batch needs a value (N)");
    refused("--frobnicate", NULL, "unknown option '--frobnicate'");
    return done_testing();
}
