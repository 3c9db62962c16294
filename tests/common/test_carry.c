/* test_carry.c - a document as one word of an environment, and back; damage is named. */
#include "topt_carry.h"

#include <stdlib.h>
#include <string.h>

#include "tap.h"
#include "topt_pack.h"

static char *noise(size_t len)
{
    unsigned seed = 12345;
    char *text = malloc(len + 1);
    for (size_t i = 0; text && i < len; i++)
        text[i] = (char)('!' + ((seed = seed * 1664525u + 1013904223u) >> 25) % 90);
    if (text)
        text[len] = '\0';
    return text;
}

static void round_trip(const char *what, const char *doc, size_t len)
{
    struct topt_error err = {0};
    char *word = NULL, *back = NULL;
    size_t n = 0, m = 0;
    ok(topt_carry_write(doc, len, &word, &n, &err) == 0 && strlen(word) == n &&
           topt_carry_looks_right(word, n),
       "%s: %zu bytes are a word of %zu", what, len, n);
    ok(topt_carry_read(word, &back, &m, &err) == 0 && m == len &&
           memcmp(back, doc, len) == 0 && back[m] == '\0',
       "%s: and back %s", what, err.text);
    free(word);
    free(back);
}

static void refused(const char *what, const char *word)
{
    struct topt_error err = {0};
    char *back = NULL;
    size_t m = 0;
    ok(topt_carry_read(word, &back, &m, &err) == -1 && err.code == TOPT_ERR_INVAL,
       "%s is refused: %s", what, err.text);
}

/* Each letter of a word in turn is another one: the document never comes back changed. */
static void test_flips(const char *doc, char *word, size_t n)
{
    int wrong = 0;
    for (size_t i = 0; i < n; i++) {
        char was = word[i], *back = NULL;
        size_t m = 0;
        word[i] = was == 'A' ? 'B' : 'A';
        if (topt_carry_read(word, &back, &m, NULL) == 0 && strcmp(back, doc) != 0)
            wrong++;
        free(back);
        word[i] = was;
    }
    is_int(wrong, 0, "no changed letter gives another document");
}

static void test_limits(void)
{
    enum { LARGE = 200 << 10 };
    struct topt_error err = {0};
    char *text = noise(LARGE), *word = NULL;
    size_t n = 0;
    if (!text)
        abort();
    ok(topt_carry_write(text, LARGE, &word, &n, &err) == -1 && err.code == TOPT_ERR_LIMIT,
       "what is too long is not carried: %s", err.text);
    char *blank = calloc(1, TOPT_CARRY_WHOLE + 2);
    if (!blank)
        abort();
    memset(blank, ' ', TOPT_CARRY_WHOLE + 1);
    ok(topt_carry_write(blank, TOPT_CARRY_WHOLE + 1, &word, &n, &err) == -1 &&
           err.code == TOPT_ERR_LIMIT,
       "nor what would not be unpacked: %s", err.text);
    round_trip("the longest", blank, TOPT_CARRY_WHOLE);
    round_trip("noise", text, 50 << 10);
    free(blank);
    free(text);
}

/* A word of another document under this digest. */
static void test_digest(void)
{
    char *word = NULL, *longer = calloc(1, TOPT_CARRY_WHOLE + 1);
    size_t n = 0;
    if (!longer || topt_carry_write(longer, TOPT_CARRY_WHOLE, &word, &n, NULL))
        abort();
    memcpy(word + TOPT_CARRY_DIGEST_AT, "0000", 4);
    refused("another document's digest", word);
    free(word);
    free(longer);
}

static void test_environment(void)
{
    struct topt_error err = {0};
    char *word = NULL, *back = NULL;
    size_t n = 0, m = 0;
    if (topt_carry_write("{}", 2, &word, &n, &err))
        abort();
    is_int(topt_carry_plan("p-1", &back, &m, &err), 0, "no plan in the environment");
    setenv("SLURM_TOPT_PLAN", "p-1", 1);
    is_int(topt_carry_plan("p-1", &back, &m, &err), 0, "its id alone");
    setenv(TOPT_CARRY_VARIABLE, word, 1);
    is_int(topt_carry_plan("p-2", &back, &m, &err), 0, "another plan");
    ok(topt_carry_plan("p-1", &back, &m, &err) == 1 && strcmp(back, "{}") == 0,
       "the plan");
    setenv(TOPT_CARRY_VARIABLE, "1.nonsense", 1);
    free(back);
    back = NULL;
    ok(topt_carry_plan("p-1", &back, &m, &err) == -1 &&
           strstr(err.text, "SLURM_TOPT_PLAN_DOC"),
       "a damaged one: %s", err.text);
    free(word);
}

/* A job that got other nodes or GPUs than its plan is for. */
static void test_resized(void)
{
    static const char *const numbers[][2] = {{"SLURM_TOPT_NODES", "1"},
                                             {"SLURM_TOPT_GPUS_PER_NODE", "4"},
                                             {"SLURM_JOB_NUM_NODES", "2"},
                                             {"SLURM_GPUS_ON_NODE", "4"}};
    struct topt_error err = {0};
    char *word = NULL, *other = NULL, *back = NULL;
    size_t n = 0, m = 0;
    if (topt_carry_write("{}", 2, &word, &n, &err) ||
        topt_carry_write("[2]", 3, &other, &n, &err))
        abort();
    setenv("SLURM_TOPT_PLAN", "p-1", 1);
    setenv(TOPT_CARRY_VARIABLE, word, 1);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        setenv(numbers[i][0], numbers[i][1], 1);
    ok(topt_carry_plan("p-1", &back, &m, &err) == 1 && !strcmp(back, "{}"),
       "more nodes than the plan needs");
    free(back);
    setenv("SLURM_JOB_NUM_NODES", "1", 1);
    setenv("SLURM_GPUS_ON_NODE", "8", 1);
    ok(topt_carry_plan("p-1", &back, &m, &err) == 1 && !strcmp(back, "{}"),
       "a whole node, which has more GPUs than the plan needs");
    free(back);
    setenv("SLURM_JOB_NUM_NODES", "2", 1);
    setenv("SLURM_GPUS_ON_NODE", "3", 1);
    ok(topt_carry_plan("p-1", &back, &m, &err) == -1 && err.code == TOPT_ERR_INFEASIBLE,
       "more nodes of too few GPUs: %s", err.text);
    setenv("SLURM_GPUS_ON_NODE", "4", 1);
    setenv("SLURM_TOPT_PLAN_DOC_2x4", other, 1);
    ok(topt_carry_plan("p-1", &back, &m, &err) == 1 && !strcmp(back, "[2]"),
       "the plan of the job's shape");
    free(back);
    setenv("SLURM_JOB_NUM_NODES", "1", 1);
    setenv("SLURM_GPUS_ON_NODE", "1", 1);
    ok(topt_carry_plan("p-1", &back, &m, &err) == -1 && strstr(err.text, "has 1 of 1"),
       "%s", err.text);
    setenv("SLURM_STEP_ID", "4294967291", 1);
    is_int(topt_carry_plan("p-1", &back, &m, &err), -1, "the batch script's own step");
    setenv("SLURM_STEP_ID", "0", 1);
    ok(topt_carry_plan("p-1", &back, &m, &err) == 1 && !strcmp(back, "{}"),
       "a step may have fewer GPUs");
    free(back);
    free(word);
    free(other);
}

int main(void)
{
    const char *doc = "{\"format\":\"topt-plan/1\",\"gpus\":8,\"why\":\"it fits\"}";
    char *word = NULL;
    size_t n = 0;
    unsetenv("SLURM_TOPT_PLAN");
    unsetenv(TOPT_CARRY_VARIABLE);
    round_trip("nothing", "", 0);
    round_trip("a document", doc, strlen(doc));
    if (topt_carry_write(doc, strlen(doc), &word, &n, NULL))
        abort();
    test_flips(doc, word, n);
    refused("nothing", "");
    refused("half of it", (word[n / 2] = '\0', word));
    free(word);
    ok(!topt_carry_looks_right("1.", 2), "a beginning does not look right");
    test_limits();
    test_digest();
    test_environment();
    test_resized();
    return done_testing();
}
