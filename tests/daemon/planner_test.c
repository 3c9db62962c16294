/* planner_test.c - questions answered from what the planner had priced for an earlier one. */
#include "kept.h"
#include "planner.h"
#include "tap.h"
#include "topt_json.h"
#include "topt_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char model[] =
    "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":3,"
    "\"num_attention_heads\":4,\"num_key_value_heads\":4,\"intermediate_size\":128,"
    "\"vocab_size\":256,\"hidden_act\":\"silu\",\"max_position_embeddings\":128,"
    "\"tie_word_embeddings\":false}";
static char *hw;
static struct planner *planner;
static int64_t memory_mill;
static atomic_bool is_brief;

/* As toptd names it. */
static const char *problem_of(const struct topt_query *q, char ret[4096])
{
    struct topt_text t = {0};
    const char *source;
    struct topt_error err;
    ok(!topt_query_write(q, TOPT_QUERY_PROBLEM, &t, &source, &err), "its problem");
    snprintf(ret, 4096, "%s", t.s ? t.s : "");
    topt_text_fini(&t);
    return ret;
}

/* The answer as text, freed by the caller.  'searched': as of questions. */
static char *ask(const char *question, int *searched)
{
    struct topt_query q;
    struct topt_error err = {0};
    const char *source = "";
    json_t *doc = json_loads(question, 0, NULL), *answer = NULL;
    char *text = NULL, problem[4096];
    int rc = topt_query_from_json(TOPT_QUERY_PLAN, doc, &q, &source, &err);
    struct planner_question pq = {.model_id = "m-1",
                                  .hw_id = "h-1",
                                  .model = model,
                                  .what = "model",
                                  .hw = hw,
                                  .query = &q,
                                  .threads = 1,
                                  .memory_mill = memory_mill,
                                  .brief = &is_brief,
                                  .problem = problem_of(&q, problem),
                                  .searched = searched};
    if (!rc && !planner_answer(planner, &pq, &answer, &err))
        text = topt_json_text(answer, 0);
    else
        printf("# %s: %s\n", source, err.text);
    json_decref(answer);
    json_decref(doc);
    return text ? text : strdup(err.text);
}

/* Where others wait the plan comes alone, and is the same. */
static void test_brief(void)
{
    static const char question[] = "{\"batch\":16,\"seq\":64,\"memory_bytes\":2000000}";
    static const char chosen[] = "{\"batch\":16,\"seq\":64,\"memory_bytes\":2000000,"
                                 "\"min_efficiency\":0.5}";
    char *text = ask(question, NULL), *of_choice = ask(chosen, NULL);
    json_t *whole = json_loads(text, 0, NULL);
    free(text);
    atomic_store(&is_brief, true);
    text = ask(question, NULL);
    json_t *alone = json_loads(text, 0, NULL);
    free(text);
    text = ask(chosen, NULL);
    atomic_store(&is_brief, false);
    ok(json_array_size(json_object_get(whole, "alternatives")) > 1 &&
           json_array_size(json_object_get(whole, "with")) > 0,
       "beside the plan stand others, and what would fit if it were asked for");
    ok(json_is_true(json_object_get(alone, "brief")) &&
           !json_object_get(alone, "alternatives") && !json_object_get(alone, "with"),
       "told to be brief, neither does");
    ok(json_equal(json_object_get(whole, "plan"), json_object_get(alone, "plan")) &&
           !json_object_get(whole, "brief"),
       "and the plan is the same");
    ok(!strcmp(text, of_choice),
       "where an efficiency chooses among them nothing changes");
    json_decref(whole);
    json_decref(alone);
    free(text);
    free(of_choice);
}

/* Where jobs took more memory than was said, a plan is made for so much less. */
static void test_less_memory(void)
{
    char *less = ask("{\"batch\":16,\"seq\":64,\"memory_bytes\":4000000}", NULL);
    memory_mill = 1250;
    char *scaled = ask("{\"batch\":16,\"seq\":64,\"memory_bytes\":5000000}", NULL);
    char *device = ask("{\"batch\":16,\"seq\":64}", NULL);
    memory_mill = 900;
    char *more = ask("{\"batch\":16,\"seq\":64,\"memory_bytes\":4000000}", NULL);
    memory_mill = 0;
    char *whole = ask("{\"batch\":16,\"seq\":64}", NULL);
    ok(!strcmp(less, scaled), "5 MB that count for a quarter more are 4 MB");
    ok(!strcmp(less, more), "nothing counts for less than it is");
    json_t *a = json_loads(device, 0, NULL), *b = json_loads(whole, 0, NULL);
    json_int_t limit = json_integer_value(json_object_get(b, "memory_limit"));
    is_int(json_integer_value(json_object_get(a, "memory_limit")),
           (int64_t)((double)limit / 1.25), "also of what the device has");
    json_decref(a);
    json_decref(b);
    free(less);
    free(scaled);
    free(device);
    free(more);
    free(whole);
}

static const char *const questions[] = {
    "{\"batch\":16,\"seq\":64}",
    "{\"batch\":16,\"seq\":64,\"memory_bytes\":3000000}",
    "{\"batch\":16,\"seq\":64,\"max_gpus\":2}",
    "{\"batch\":16,\"seq\":64,\"min_efficiency\":0.5}",
    "{\"batch\":16,\"seq\":64,\"mode\":\"mini-time\",\"gpus\":4}",
    "{\"batch\":16,\"seq\":64,\"mode\":\"profiling\",\"memory_bytes\":4000000}"};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* The answer of a planner that was asked nothing before. */
static char *ask_fresh(const char *question)
{
    struct planner *before = planner;
    planner = planner_create();
    char *text = ask(question, NULL);
    planner_destroy(planner);
    planner = before;
    return text;
}

static void test_memo(void)
{
    int searched = 0, again = 0;
    for (int i = 0; i < QUESTIONS; i++) {
        char *fresh = ask_fresh(questions[i]), *a = ask(questions[i], &searched),
             *b = ask(questions[i], &again);
        ok(!strcmp(fresh, a), "%s is answered as by a planner that knows nothing",
           questions[i]);
        ok(!again && !strcmp(fresh, b), "and once more, without a search");
        if (i == 0)
            ok(searched, "the first takes one");
        free(fresh);
        free(a);
        free(b);
    }
    free(ask("{\"batch\":16,\"seq\":64,\"max_gpus\":4}", &searched));
    ok(!searched, "another maximum of GPUs takes none");
    free(ask("{\"batch\":8,\"seq\":64}", &searched));
    ok(searched, "another problem takes one");
    for (int i = 0; i < 2; i++)
        free(
            ask("{\"batch\":16,\"seq\":64,\"space\":\"canonical\",\"framework\":\"topt\","
                "\"mode\":\"mini-time\",\"gpus\":2}",
                &searched));
    ok(searched, "and so does another space, each time");
    for (int i = 0; i < 2; i++)
        free(ask("{\"batch\":16,\"seq\":64,\"algorithm\":\"data-parallel\","
                 "\"mode\":\"mini-time\",\"gpus\":2}",
                 &searched));
    ok(searched, "and another system's algorithm");
}

static size_t bytes_of(const void *thing)
{
    return *(const size_t *)thing;
}

static void *thing_of(size_t bytes)
{
    size_t *thing = malloc(sizeof *thing);
    *thing = bytes;
    return thing;
}

/* What is kept stays within its bytes, though it grows after it was added. */
static void test_bound(void)
{
    struct kept k = {.destroy = free, .bytes = bytes_of, .most = 100};
    ok(!kept_add(&k, "a", thing_of(40)) && !kept_add(&k, "b", thing_of(40)) &&
           !kept_add(&k, "c", thing_of(10)),
       "three things of 90 bytes");
    kept_trim(&k);
    size_t *a = kept_find(&k, "a"), *c = kept_find(&k, "c");
    ok(a && c && kept_find(&k, "b"), "are kept");
    *(size_t *)kept_find(&k, "b") = 101;
    kept_trim(&k);
    ok(!kept_find(&k, "b") && kept_find(&k, "c") && kept_find(&k, "a"),
       "what is too large alone goes, and takes nothing with it");
    *a = 95;
    kept_trim(&k);
    ok(kept_find(&k, "a") && !kept_find(&k, "c"), "else what was used longest ago");
    *a = 101;
    kept_trim(&k);
    ok(!kept_find(&k, "a"), "to the last");
    kept_fini(&k);
}

/* Groups of unlike GPUs: of a job that has GPUs of one kind the better one, which is said; else both, as the command
 * line has them. */
static void test_groups(void)
{
    struct topt_error err = {0};
    json_t *mixed = NULL, *a;
    char *was = hw;
    int searched = 0;
    if (planner_hw_get("a100-v100", &mixed, &err)) {
        ok(0, "%s", err.text);
        return;
    }
    hw = topt_json_text(mixed, 0);
    struct planner *before = planner;
    planner = planner_create(); /* the other one keeps the profile of that name */
    char *text = ask("{\"batch\":16,\"seq\":64,\"groups\":\"one\"}", &searched);
    a = json_loads(text, 0, NULL);
    const char *why = json_string_value(json_object_get(a, "why")),
               *group = json_string_value(json_object_get(a, "group"));
    ok(group && !strcmp(group, "a100") && json_object_get(a, "plan") &&
           json_array_size(json_object_get(a, "choices")) == 2,
       "the faster of two groups: %s", group ? group : text);
    ok(why && strstr(why, "GPUs of group a100, as one job takes GPUs of one kind"), "%s",
       why ? why : "");
    ok(searched, "and each time it is searched");
    json_decref(a);
    free(text);
    text = ask("{\"batch\":16,\"seq\":64,\"mode\":\"profiling\"}", NULL);
    ok(strstr(text, "points") != NULL, "curves are of devices like the least");
    free(text);
    text = ask(
        "{\"batch\":16,\"seq\":64,\"gpus\":16,\"framework\":\"megatron\",\"pipeline\":2}",
        NULL);
    a = json_loads(text, 0, NULL);
    ok(json_array_size(json_object_get(a, "stages")) == 2 && json_object_get(a, "plan") &&
           !json_object_get(a, "group"),
       "a pipeline over both: %.200s", text);
    json_decref(a);
    free(text);
    text = ask("{\"batch\":16,\"seq\":64,\"groups\":\"v100\"}", NULL);
    a = json_loads(text, 0, NULL);
    group = json_string_value(json_object_get(a, "group"));
    ok(group && !strcmp(group, "v100"), "a group by its name: %.200s", text);
    json_decref(a);
    free(text);
    free(hw);
    json_decref(mixed);
    planner_destroy(planner);
    planner = before;
    hw = was;
}

int main(void)
{
    struct topt_error err = {0};
    json_t *doc;
    if (!(planner = planner_create()))
        return 1;
    if (planner_hw_get("lab-cpu", &doc, &err)) {
        printf("# %s\n", err.text);
        return 1;
    }
    hw = topt_json_text(doc, 0);
    json_decref(doc);
    test_memo();
    test_bound();
    test_groups();
    test_less_memory();
    test_brief();
    free(hw);
    planner_destroy(planner);
    return done_testing();
}
