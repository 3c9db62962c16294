/* test_ask.c - the --topt-* options: what is refused, and the question made of them. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ask.h"
#include "tap.h"

static void give(struct topt_ask *ask, enum topt_ask_option which, const char *value)
{
    if (topt_ask_set(ask, which, value))
        abort();
}

static void refused(enum topt_ask_option which, const char *value, const char *part)
{
    struct topt_ask ask = {0};
    struct topt_error err = {0};
    give(&ask, TOPT_ASK_MODE, "mini-parallelism");
    give(&ask, TOPT_ASK_MODEL, "m.json");
    give(&ask, which, value);
    ok(topt_ask_check(&ask, &err) && strstr(err.text, topt_ask_table[which].option) &&
           strstr(err.text, part),
       "--%s='%s': %s", topt_ask_table[which].option, value, err.text);
    topt_ask_fini(&ask);
}

static void test_check(void)
{
    struct topt_ask ask = {0};
    ok(!topt_ask_any(&ask) && !topt_ask_check(&ask, NULL), "nothing asked is fine");
    give(&ask, TOPT_ASK_BATCH, "8");
    ok(strcmp(topt_ask_any(&ask), "topt-batch") == 0, "the first option is named");
    ok(topt_ask_check(&ask, NULL) == -1, "no model");
    give(&ask, TOPT_ASK_MODEL, "m.json");
    ok(topt_ask_check(&ask, NULL) == 0 && !topt_ask_mini_time(&ask) &&
           !topt_ask_profiling(&ask),
       "a model alone asks for the fewest GPUs");
    give(&ask, TOPT_ASK_GPUS, "4");
    ok(topt_ask_check(&ask, NULL) == 0 && topt_ask_mini_time(&ask),
       "with one number of GPUs for the fastest on these");
    give(&ask, TOPT_ASK_GPUS, "1,4");
    ok(topt_ask_check(&ask, NULL) == 0 && topt_ask_shows_only(&ask),
       "with several for a curve");
    give(&ask, TOPT_ASK_MODE, "mini-time");
    give(&ask, TOPT_ASK_GPUS, "4");
    give(&ask, TOPT_ASK_MEMORY, " 14.5 GiB ");
    ok(topt_ask_check(&ask, NULL) == 0, "all there");
    topt_ask_fini(&ask);
    refused(TOPT_ASK_MODE, "fast", "'fast'");
    refused(TOPT_ASK_MODE, "mini-tmie", "did you mean mini-time?");
    refused(TOPT_ASK_ON_ERROR, "abbort", "did you mean abort?");
    refused(TOPT_ASK_BATCH, "0", "give at least 1");
    refused(TOPT_ASK_BATCH, "8x", "whole number");
    refused(TOPT_ASK_SEQ, "", "whole number");
    refused(TOPT_ASK_MAX_GPUS, "0", "give at least 1");
    refused(TOPT_ASK_MAX_GPUS, "99999999999999999999", "too large");
    refused(TOPT_ASK_GPUS, "0", "give at least 1");
    refused(TOPT_ASK_SEQ, "-4", "give at least 1");
    refused(TOPT_ASK_MEMORY, "80", "did you mean 80GiB?");
    refused(TOPT_ASK_MEMORY, "80XiB", "unknown unit");
    refused(TOPT_ASK_MEMORY, "-1GiB", "positive");
    refused(TOPT_ASK_HW, "", "empty");
    refused(TOPT_ASK_ON_ERROR, "perhaps", "not one of gpus");
    refused(TOPT_ASK_GPUS, "4", "mini-time");
    refused(TOPT_ASK_GPUS, "4,,8", "empty");
    refused(TOPT_ASK_ELASTIC, "yes", "whole number");
    refused(TOPT_ASK_ELASTIC, "4,0", "give at least 1");
    topt_ask_fini(&ask);
    give(&ask, TOPT_ASK_MODEL, "m.json");
    give(&ask, TOPT_ASK_MODE, "profiling");
    give(&ask, TOPT_ASK_GPUS, "1,2,8");
    ok(topt_ask_check(&ask, NULL) == 0 && topt_ask_shows_only(&ask),
       "a curve of some numbers");
    give(&ask, TOPT_ASK_MODE, "mini-time");
    ok(topt_ask_check(&ask, NULL) == -1, "mini-time of several");
    topt_ask_fini(&ask);
}

static void test_target(void)
{
    struct topt_ask ask = {0};
    struct topt_text out = {0};
    give(&ask, TOPT_ASK_MODE, "mini-parallelism");
    give(&ask, TOPT_ASK_MODEL, "m.json");
    give(&ask, TOPT_ASK_MEMORY, "16 GiB");
    give(&ask, TOPT_ASK_MAX_GPUS, "8");
    give(&ask, TOPT_ASK_ON_ERROR, "abort");
    give(&ask, TOPT_ASK_TENSOR_PARALLEL, "");
    give(&ask, TOPT_ASK_AS_IS, "");
    give(&ask, TOPT_ASK_DRY_RUN, "");
    topt_ask_target(&ask, "a&b\n\xc3\xa9.json", 4, &out);
    ok(strcmp(out.s,
              "/v1/plan?name=a%26b%0A%C3%A9.json&mode=mini-parallelism"
              "&tensor_parallel=1&as_is=1&memory=16%20GiB&max_gpus=4&slurm_show=table") ==
           0,
       "escaped: %s", out.s);
    topt_text_fini(&out);
    give(&ask, TOPT_ASK_MODE, "mini-time");
    give(&ask, TOPT_ASK_HW, "mine");
    give(&ask, TOPT_ASK_FRAMEWORK, "topt");
    topt_ask_target(&ask, "m", 4, &out);
    ok(strstr(
           out.s,
           "&hw=mine&framework=topt&tensor_parallel=1&as_is=1&memory=16%20GiB&gpus=4") !=
           NULL,
       "mini-time takes the bound as its number: %s", out.s);
    topt_text_fini(&out);
    give(&ask, TOPT_ASK_GPUS, "2");
    topt_ask_target(&ask, "m", 4, &out);
    ok(strstr(out.s, "&gpus=2") && !strstr(out.s, "=4"), "or its own: %s", out.s);
    topt_text_fini(&out);
    topt_ask_fini(&ask);
}

static void test_model(void)
{
    char folder[] = "/tmp/topt-ask.XXXXXX", path[64];
    struct topt_ask ask = {0};
    struct topt_error err = {0};
    char name[TOPT_LABEL] = "";
    size_t len = 0;
    if (!mkdtemp(folder))
        abort();
    snprintf(path, sizeof path, "%s/config.json", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    ok(fd >= 0 && write(fd, "{\0}", 3) == 3 && !close(fd), "a file");
    give(&ask, TOPT_ASK_MODEL, path);
    char *bytes = topt_ask_model(&ask, &len, name, &err);
    ok(bytes && len == 3 && memcmp(bytes, "{\0}", 3) == 0, "its bytes");
    ok(strcmp(name, folder + strlen("/tmp/")) == 0, "its folder's name: %s", name);
    free(bytes);
    give(&ask, TOPT_ASK_MODEL, folder);
    bytes = topt_ask_model(&ask, &len, name, &err);
    ok(bytes && len == 3 && strcmp(name, folder + strlen("/tmp/")) == 0,
       "a folder's config.json");
    free(bytes);
    ok(!unlink(path) && !mkfifo(path, 0600), "a pipe");
    ok(!topt_ask_model(&ask, &len, name, &err) && strstr(err.text, "not a file"),
       "a pipe isn't opened: %s", err.text);
    unlink(path);
    ok(!topt_ask_model(&ask, &len, name, &err) && strstr(err.text, "--topt-model: "),
       "missing: %s", err.text);
    give(&ask, TOPT_ASK_MODEL, "org/absent");
    ok(!topt_ask_model(&ask, &len, name, &err) &&
           strstr(err.text, "huggingface-cli download org/absent config.json"),
       "an id that is not in the cache: %s", err.text);
    rmdir(folder);
    const char *const bad[] = {"-", "/dev/zero", "/nowhere/m.json"};
    for (size_t i = 0; i < 3; i++) {
        give(&ask, TOPT_ASK_MODEL, bad[i]);
        ok(!topt_ask_model(&ask, &len, name, &err), "%s: %s", bad[i], err.text);
    }
    topt_ask_fini(&ask);
}

/* What the environment says counts where the command line says nothing. */
static void test_environment(void)
{
    struct topt_ask ask = {0};
    struct topt_error err = {0};
    setenv("TOPT_HW", "mine", 1);
    setenv("TOPT_MIN_EFFICIENCY", "0.8", 1);
    setenv("TOPT_TENSOR_PARALLEL", "0", 1);
    setenv("TOPT_GPUS", "64", 1);
    setenv("TOPT_SEQ", "", 1);
    give(&ask, TOPT_ASK_HW, "given");
    ok(!topt_ask_environment(&ask, &err) && !strcmp(ask.value[TOPT_ASK_HW], "given") &&
           !strcmp(ask.value[TOPT_ASK_MIN_EFFICIENCY], "0.8") &&
           !ask.value[TOPT_ASK_TENSOR_PARALLEL] && !ask.value[TOPT_ASK_GPUS] &&
           !ask.value[TOPT_ASK_SEQ],
       "options from the environment");
    setenv("TOPT_BATCH", "many", 1);
    ok(topt_ask_environment(&ask, &err) == -1 && strstr(err.text, "$TOPT_BATCH: 'many'"),
       "a mistake is named: %s", err.text);
    topt_ask_fini(&ask);
    is_int(topt_ask_find("min_efficiency", 14), TOPT_ASK_MIN_EFFICIENCY,
           "a word's option");
    is_int(topt_ask_find("min", 3), -1, "half a word has none");
    is_int(topt_ask_check_value(TOPT_ASK_MIN_EFFICIENCY, "80%", &err), 0, "80 %% of it");
    is_int(topt_ask_check_value(TOPT_ASK_MIN_EFFICIENCY, "2", &err), -1, "2: %s",
           err.text);
    is_int(topt_ask_find("min_efficiency_", 15), -1, "nor has more than a word");
}

static void test_elastic(void)
{
    struct topt_ask ask = {0};
    int64_t counts[3] = {0};
    is_int(topt_ask_elastic(&ask, counts, 3), -1, "not elastic");
    give(&ask, TOPT_ASK_ELASTIC, "");
    is_int(topt_ask_elastic(&ask, counts, 3), 0, "without a word");
    give(&ask, TOPT_ASK_ELASTIC, "auto");
    is_int(topt_ask_elastic(&ask, counts, 3), 0, "auto");
    give(&ask, TOPT_ASK_ELASTIC, "no");
    is_int(topt_ask_elastic(&ask, counts, 3), -1, "no");
    give(&ask, TOPT_ASK_ELASTIC, "1,2,4,8");
    ok(topt_ask_elastic(&ask, counts, 3) == 3 && counts[2] == 4,
       "as many as there is room");
    is_int(topt_ask_kinds(&ask), 0, "numbers alone");
    give(&ask, TOPT_ASK_ELASTIC, "kinds");
    ok(topt_ask_kinds(&ask) && topt_ask_elastic(&ask, counts, 3) == -1, "kinds alone");
    give(&ask, TOPT_ASK_ELASTIC, "kinds,auto");
    ok(topt_ask_kinds(&ask) && topt_ask_elastic(&ask, counts, 3) == 0, "kinds and auto");
    give(&ask, TOPT_ASK_ELASTIC, "kinds,2,4");
    ok(topt_ask_kinds(&ask) && topt_ask_elastic(&ask, counts, 3) == 2 && counts[1] == 4,
       "kinds and numbers");
    is_int(topt_ask_requeues(&ask), 0, "of requeues nothing");
    give(&ask, TOPT_ASK_ELASTIC, "requeue");
    ok(topt_ask_requeues(&ask) && !topt_ask_kinds(&ask) &&
           topt_ask_elastic(&ask, counts, 3) == 0,
       "requeue alone is that and auto");
    give(&ask, TOPT_ASK_ELASTIC, "requeue,kinds,8");
    ok(topt_ask_requeues(&ask) && topt_ask_kinds(&ask) &&
           topt_ask_elastic(&ask, counts, 3) == 1 && counts[0] == 8,
       "requeue, kinds and a number, in any order");
    static const char *const bad[] = {
        "kinds,", "kinds,no",   "kinds,kinds", "kind",
        "kinds2", "requeue,no", "requeue,",    "kinds,requeue,kinds"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        is_int(topt_ask_check_value(TOPT_ASK_ELASTIC, bad[i], NULL), -1, "'%s'", bad[i]);
    is_int(topt_ask_check_value(TOPT_ASK_ELASTIC, "kinds,auto", NULL), 0,
           "it can be read");
    topt_ask_fini(&ask);
}

int main(void)
{
    test_elastic();
    test_check();
    test_target();
    test_model();
    test_environment();
    ok(topt_ask_on_error(NULL) == TOPT_ON_ERROR_GPUS &&
           topt_ask_on_error("gpus") == TOPT_ON_ERROR_GPUS &&
           topt_ask_on_error("submit") == TOPT_ON_ERROR_SUBMIT &&
           topt_ask_on_error("abort") == TOPT_ON_ERROR_ABORT &&
           topt_ask_on_error("x") == -1,
       "on-error words");
    return done_testing();
}
