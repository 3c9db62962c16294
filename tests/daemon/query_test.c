/* query_test.c - questions in JSON and in URLs: what is taken, what is refused by name. */
#include "topt_query.h"
#include "tap.h"
#include "topt_json.h"

#include <string.h>

static struct topt_query q;
static struct topt_error err;
static const char *source;

static int json(enum topt_query_kind kind, const char *text)
{
    topt_error_clear(&err);
    static json_t *doc; /* 'source' may be one of its keys until the next question */
    json_decref(doc);
    doc = json_loads(text, 0, NULL);
    return topt_query_from_json(kind, doc, &q, &source, &err);
}

/* "a=1&b=2" without decoding. */
static int url(enum topt_query_kind kind, const char *text)
{
    char copy[512];
    struct topt_pair pairs[32];
    int n = 0;
    topt_error_clear(&err);
    snprintf(copy, sizeof copy, "%s", text);
    for (char *next = copy, *part; *copy && (part = strsep(&next, "&")); n++) {
        char *eq = strchr(part, '=');
        if (eq)
            *eq++ = '\0';
        pairs[n] = (struct topt_pair){part, eq};
    }
    return topt_query_from_pairs(kind, pairs, n, &q, &source, &err);
}

static void written(enum topt_query_part part, struct topt_text *ret)
{
    is_int(topt_query_write(&q, part, ret, &source, &err), 0, "it is written");
}

static int says(const char *text)
{
    return strstr(err.text, text) != NULL;
}

/* The problem of a question in JSON; freed by the caller. */
static char *problem(enum topt_query_kind kind, const char *text)
{
    struct topt_text t = {0};
    if (!json(kind, text))
        written(TOPT_QUERY_PROBLEM, &t);
    return t.s ? t.s : strdup("");
}

/* A share of JSON is a number or text, and a percentage as well; all ways are one key. */
static void test_shares(void)
{
    static const char *const same[] = {"0.8",     "80",      "80.0",
                                       "\"80%\"", "\"0.8\"", "\"80\""};
    static const char *const bad[] = {"1.5",   "2",        "101", "-1",
                                      "\"2\"", "\"most\"", "true"};
    char text[64];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        snprintf(text, sizeof text, "{\"min_efficiency\":%s}", same[i]);
        ok(!json(TOPT_QUERY_PLAN, text) && q.min_efficiency == 0.8, "%s is 0.8", text);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "{\"min_efficiency\":%s}", bad[i]);
        ok(json(TOPT_QUERY_PLAN, text) && !strcmp(source, "min_efficiency"), "%s: %s",
           text, err.text);
    }
}

/* An amount of JSON is a number or text; it decides the answer, and no problem. */
static void test_amounts(void)
{
    static const char *const same[] = {"2000000000000", "2e12", "\"2T\"", "\"2e12\""};
    char text[64];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct topt_text a = {0}, p = {0};
        snprintf(text, sizeof text, "{\"tokens\":%s,\"price\":2.5}", same[i]);
        ok(!json(TOPT_QUERY_PLAN, text) && q.tokens == 2000000000000 && q.price == 2.5,
           "%s is 2e12", text);
        written(TOPT_QUERY_ANSWER, &a);
        written(TOPT_QUERY_PROBLEM, &p);
        ok(a.s && strstr(a.s, "\"tokens\":2000000000000") && !strstr(p.s, "tokens") &&
               !strstr(p.s, "price"),
           "and is of the answer alone: %s", a.s);
        topt_text_fini(&a);
        topt_text_fini(&p);
    }
    ok(json(TOPT_QUERY_PLAN, "{\"samples\":\"5X\"}") && !strcmp(source, "samples") &&
           says("not an amount"),
       "a bad unit: %s", err.text);
}

static void test_problem(void)
{
    static const char *const same[] = {
        "{\"hw\":\"lab\",\"batch\":8,\"mode\":\"mini-parallelism\",\"max_gpus\":4}",
        "{\"hw\":\"lab\",\"batch\":8,\"mode\":\"mini-parallelism\",\"memory\":\"4GiB\"}",
        "{\"hw\":\"lab\",\"batch\":8,\"min_efficiency\":0.7}",
        "{\"hw\":\"lab\",\"batch\":8,\"mode\":\"mini-time\",\"gpus\":8}"};
    static const char *const other[] = {
        "{\"hw\":\"lab\",\"batch\":16}", "{\"hw\":\"lab\",\"batch\":8,\"seq\":64}",
        "{\"hw\":\"lab\",\"batch\":8,\"train\":\"lora\"}",
        "{\"hw\":\"lab\",\"batch\":8,\"space\":\"full\"}"};
    char *one = problem(TOPT_QUERY_PLAN, "{\"hw\":\"lab\",\"batch\":8}");
    for (int i = 0; i < 4; i++) {
        char *a = problem(TOPT_QUERY_PLAN, same[i]),
             *b = problem(TOPT_QUERY_PLAN, other[i]);
        ok(!strcmp(one, a), "of the same problem: %s", same[i]);
        ok(*b && strcmp(one, b), "of another one: %s", other[i]);
        free(a);
        free(b);
    }
    struct topt_text curve = {0};
    is_int(url(TOPT_QUERY_CURVE, "batch=8&max_gpus=4"), 0, "a curve");
    written(TOPT_QUERY_PROBLEM, &curve);
    ok(!strcmp(one, curve.s), "is of the same problem");
    topt_text_fini(&curve);
    free(one);
}

static void test_good(void)
{
    struct topt_text a = {0}, b = {0};
    is_int(json(TOPT_QUERY_PLAN,
                "{\"mode\":\"mini-parallelism\",\"hw\":\"lab\",\"batch\":8,"
                "\"seq\":64,\"memory_bytes\":16777216,\"max_gpus\":8,"
                "\"epsilon\":0.5,\"model\":{}}"),
           0, "a question in JSON");
    written(TOPT_QUERY_ANSWER, &a);
    is_int(url(TOPT_QUERY_PLAN, "mode=mini-parallelism&hw=lab&batch=8&seq=64&memory=16MiB"
                                "&max_gpus=8&epsilon=0.5&name=config.json"),
           0, "the same as a URL");
    written(TOPT_QUERY_ANSWER, &b);
    ok(!strcmp(a.s, b.s), "have one text: %s", a.s);
    ok(!strcmp(q.hw, "lab") && !strcmp(q.name, "config.json"), "names are kept");
    is_int(q.wait_ms, -1, "no wait was said");
    topt_text_fini(&a);
    topt_text_fini(&b);
    is_int(json(TOPT_QUERY_PLAN, "{\"mode\":\"profiling\",\"gpus\":[1,2,4]}"), 0,
           "a list");
    ok(q.kind == TOPT_QUERY_CURVE && q.ngpus == 3 && q.gpus[2] == 4,
       "profiling is a curve");
    is_int(url(TOPT_QUERY_PLAN, "mode=profiling&gpus=1,2,4"), 0, "a list in a URL");
    ok(q.ngpus == 3 && q.gpus[1] == 2, "has its counts");
    is_int(url(TOPT_QUERY_FRONTIER, "gpus=4&sequence_splits=true"), 0, "a frontier");
    is_int(q.sequence_splits, 1, "splits sequences");
    is_int(url(TOPT_QUERY_CURVE, "factors=zero,recompute&blocks=alike&micro_batches=4"),
           0, "factors with commas");
    ok(!strcmp(q.factors, "zero,recompute") && !strcmp(q.blocks, "alike") &&
           q.micro_batches == 4,
       "have their values");
    is_int(url(TOPT_QUERY_PLAN,
               "mode=profiling&factors= zero , micro&memory= 80GiB &gpus=1, 2"),
           0, "blanks around values");
    ok(!strcmp(q.factors, "zero,micro") && q.memory_bytes == 80LL << 30 && q.ngpus == 2,
       "are no part of them");
    is_int(url(TOPT_QUERY_CURVE, "memory_bytes=5000"), 0,
           "bytes that are called so are few");
    is_int(q.memory_bytes, 5000, "or many");
    is_int(url(TOPT_QUERY_CURVE, "overlap=fsdp&eager=operators,loss"), 0,
           "another system");
    ok(!strcmp(q.overlap, "fsdp") && !strcmp(q.eager, "operators,loss"),
       "which hides and does not fuse");
    is_int(url(TOPT_QUERY_CURVE, ""), 0, "a curve needs nothing");
    ok(!*q.factors && !*q.blocks && !*q.framework && !*q.precision && !*q.counts,
       "and says no more");
    is_int(url(TOPT_QUERY_PLAN,
               "framework=megatron&precision=bf16-mixed&tensor_parallel=1&"
               "min_efficiency=0.8&counts=pow2"),
           0, "what trains it, in which precision");
    ok(!strcmp(q.framework, "megatron") && !strcmp(q.precision, "bf16-mixed") &&
           q.tensor_parallel && q.min_efficiency == 0.8 && !strcmp(q.counts, "pow2"),
       "are kept");
    is_int(url(TOPT_QUERY_PLAN, "gradients=f32&accounting=paper"), 0,
           "how memory counts");
    ok(!strcmp(q.gradients, "f32") && !strcmp(q.accounting, "paper"), "is kept");
    struct topt_text of_it = {0};
    written(TOPT_QUERY_ANSWER, &of_it);
    ok(strstr(of_it.s, "\"gradients\":\"f32\",\"accounting\":\"paper\"") != NULL,
       "and decides the answer");
    topt_text_fini(&of_it);
    is_int(url(TOPT_QUERY_PLAN, ""), 0, "nothing said");
    ok(!strcmp(q.mode, "mini-parallelism"), "asks for the fewest GPUs");
    is_int(url(TOPT_QUERY_PLAN, "gpus=4"), 0, "a number of GPUs");
    ok(!strcmp(q.mode, "mini-time"), "for the fastest on it");
    is_int(json(TOPT_QUERY_PLAN, "{\"mode\":\"mini-time\",\"gpus\":4,\"hw\":null}"), 0,
           "null is nothing");
}

static void test_bad(void)
{
    static const struct {
        const char *text, *says;
    } bad_url[] = {
        {"mode=mini-time", "gpus is missing"},
        {"mode=mini-time&gpus=4&colour=red", "colour: unknown field"},
        {"mode=mini-time&gpus=4&gpus=4", "gpus is given twice"},
        {"mode=mini-parallelism&memory=1GiB&memory_bytes=5",
         "memory_bytes is given twice"},
        {"mode=mini-time&gpus=0", "gpus"},
        {"mode=mini-time&gpus=1,2", "must be one count"},
        {"mode=profiling&gpus=1,2,2", "gpus: 2 is given twice"},
        {"mode=profiling&gpus=1, ,2", "gpus: '1, ,2' has an empty place"},
        {"mode=profiling&gpus=1,,2", "an empty place"},
        {"mode=profiling&gpus=0,2", "gpus: 0 is too small; give at least 1"},
        {"mode=mini-parallelism&max_gpus=0", "max_gpus: 0 is too small; give at least 1"},
        {"mode=mini-parallelism&batch=0", "batch: 0 is too small"},
        {"mode=mini-parallelism&seq=0", "seq: 0 is too small"},
        {"mode=mini-parallelism&seq=-1", "seq: -1 is too small"},
        {"mode=mini-parallelism&micro_batches=0", "micro_batches: 0 is too small"},
        {"mode=mini-parallelism&memory=80",
         "memory: 80 is 80 bytes; did you mean 80GiB?"},
        {"mode=mini-parallelism&memory=80GX", "memory: '80GX' has an unknown unit"},
        {"mode=mini-parallelism&memory=0", "memory: '0' is no positive size"},
        {"mode=mini-parallelism&memory_bytes=0", "memory_bytes: '0' is no positive size"},
        {"mode=mini-parallelism&factors=zero,,zero",
         "factors: 'zero,,zero' has an empty"},
        {"mode=mini-parallelism&factors=zero,zero", "factors: zero is given twice"},
        {"mode=mini-parallelism&eager=loss, loss", "eager: loss is given twice"},
        {"mode=mini-parallelism&factors=", "an empty place"},
        {"mode=mini-time&gpus=4x", "gpus"},
        {"mode=mini-parallelism&gpus=4", "takes max_gpus"},
        {"mode=mini-parallelism&batch", "batch has no value"},
        {"mode=mini-parallelism&batch=-1", "batch"},
        {"mode=mini-parallelism&batch=99999999999999999999", "batch"},
        {"mode=mini-parallelism&hw=/etc/passwd", "files are never opened"},
        {"mode=mini-parallelism&hw=../x", "hw must be a name"},
        {"mode=mini-parallelism&hw=", "hw must be a name"},
        {"mode=mini-parallelism&epsilon=nan", "epsilon must be a number"},
        {"mode=mini-parallelism&epsilon=2", "epsilon"},
        {"mode=mini-parallelism&factors=zero;micro", "words with commas"},
        {"mode=mini-parallelism&dtype=bf16", "dtype: unknown field"},
        {"mode=mini-parallelism&tensor_parallel=2", "must be true or false"},
        {"mode=mini-parallelism&min_efficiency=1.5", "150 %"},
        {"mode=mini-parallelism&min_efficiency=2.5", "0.025"},
        {"mode=mini-parallelism&min_efficiency=101", "min_efficiency: 101 is too large"},
        {"mode=mini-parallelism&min_efficiency=nan", "min_efficiency: 'nan' is not"},
        {"mode=mini-parallelism&framework=a/b", "framework must be a name"},
        {"mode=mini-parallelism&wait_ms=100000000", "wait_ms"},
        {"mode=mini-parallelism&memory=lots", "memory"},
        {"mode=mini-parallelism&sequence_splits=maybe", "true or false"},
        {"mode=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "mode is longer"},
    };
    for (size_t i = 0; i < sizeof bad_url / sizeof *bad_url; i++) {
        int rc = url(TOPT_QUERY_PLAN, bad_url[i].text);
        ok(rc == -1 && says(bad_url[i].says), "'%s' is refused: %s", bad_url[i].text,
           err.text);
    }
    is_int(url(TOPT_QUERY_CURVE, "mode=mini-time"), -1, "a curve has no mode");
    is_int(url(TOPT_QUERY_FRONTIER, "max_gpus=4&gpus=4"), -1,
           "a frontier has no max_gpus");
}

static void test_bad_json(void)
{
    static const char *const bad[] = {
        "[]",
        "5",
        "{\"mode\":5}",
        "{\"mode\":\"mini-time\",\"gpus\":[]}",
        "{\"mode\":\"mini-time\",\"gpus\":\"4\"}",
        "{\"mode\":\"mini-time\",\"gpus\":4.5}",
        "{\"mode\":\"mini-time\",\"gpus\":[1,\"2\"]}",
        "{\"mode\":\"mini-parallelism\",\"batch\":\"8\"}",
        "{\"mode\":\"mini-parallelism\",\"sequence_splits\":1}",
        "{\"mode\":\"mini-parallelism\",\"hw\":{\"format\":\"topt-hw/1\"}}",
        "{\"mode\":\"mini-parallelism\",\"epsilon\":\"0\"}",
        "{\"mode\":\"mini-parallelism\",\"batch\":0}",
        "{\"mode\":\"mini-parallelism\",\"seq\":-1}",
        "{\"mode\":\"mini-parallelism\",\"max_gpus\":0}",
        "{\"mode\":\"mini-parallelism\",\"micro_batches\":0}",
        "{\"mode\":\"mini-parallelism\",\"memory\":80}",
        "{\"mode\":\"mini-parallelism\",\"memory\":\"80\"}",
        "{\"mode\":\"mini-parallelism\",\"factors\":\"zero,zero\"}",
        "{\"mode\":\"mini-time\",\"gpus\":0}",
        "{\"mode\":\"profiling\",\"gpus\":[1,2,2]}",
        "{\"mode\":\"profiling\",\"gpus\":[0]}",
        "{\"mode\":\"mini-parallelism\",\"hw\":\"a\\nb\"}",
        "{\"mode\":\"mini-parallelism\",\"name\":\"a\\nb\"}",
        "{\"mode\":\"mini-parallelism\",\"memory_bytes\":9223372036854775807}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int rc = json(TOPT_QUERY_PLAN, bad[i]);
        ok(rc == -1 && *err.text, "%s is refused: %s", bad[i], err.text);
    }
    char many[1024] = "{\"mode\":\"profiling\",\"gpus\":[1";
    for (int i = 0; i < 70; i++)
        snprintf(many + strlen(many), 8, ",%d", i + 2);
    strcat(many, "]}");
    is_int(json(TOPT_QUERY_PLAN, many), -1, "too many counts are refused");
}

int main(void)
{
    test_good();
    test_shares();
    test_amounts();
    test_problem();
    test_bad();
    test_bad_json();
    return done_testing();
}
