/* planner_test.c - questions answered from frontiers that an earlier one left. */
#include "planner.h"
#include "tap.h"
#include "topt_json.h"

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

/* The answer as text, freed by the caller.  'grown': as of questions. */
static char *ask(const char *question, const char *frontiers, char **grown)
{
    struct query q;
    struct topt_error err = {0};
    const char *source = "";
    json_t *doc = json_loads(question, 0, NULL), *answer = NULL;
    char *text = NULL;
    int rc = query_from_json(QUERY_PLAN, doc, &q, &source, &err);
    struct planner_question pq = {.model_id = "m-1",
                                  .hw_id = "h-1",
                                  .model = model,
                                  .what = "model",
                                  .hw = hw,
                                  .query = &q,
                                  .threads = 1,
                                  .memory_mill = memory_mill,
                                  .brief = &is_brief,
                                  .frontiers = frontiers,
                                  .grown = grown};
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
    char *text = ask(question, NULL, NULL), *of_choice = ask(chosen, NULL, NULL);
    json_t *whole = json_loads(text, 0, NULL);
    free(text);
    atomic_store(&is_brief, true);
    text = ask(question, NULL, NULL);
    json_t *alone = json_loads(text, 0, NULL);
    free(text);
    text = ask(chosen, NULL, NULL);
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
    char *less = ask("{\"batch\":16,\"seq\":64,\"memory_bytes\":4000000}", NULL, NULL);
    memory_mill = 1250;
    char *scaled = ask("{\"batch\":16,\"seq\":64,\"memory_bytes\":5000000}", NULL, NULL);
    char *device = ask("{\"batch\":16,\"seq\":64}", NULL, NULL);
    memory_mill = 900;
    char *more = ask("{\"batch\":16,\"seq\":64,\"memory_bytes\":4000000}", NULL, NULL);
    memory_mill = 0;
    char *whole = ask("{\"batch\":16,\"seq\":64}", NULL, NULL);
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

/* All that any question of the problem needs. */
static char *complete(const char *question, const char *frontiers)
{
    struct query q;
    struct topt_error err = {0};
    const char *source = "";
    char *grown = NULL;
    json_t *doc = json_loads(question, 0, NULL);
    struct planner_question pq = {.model_id = "m-1",
                                  .hw_id = "h-1",
                                  .model = model,
                                  .what = "model",
                                  .hw = hw,
                                  .query = &q,
                                  .threads = 1,
                                  .frontiers = frontiers,
                                  .grown = &grown};
    if (query_from_json(QUERY_PLAN, doc, &q, &source, &err) ||
        planner_complete(planner, &pq, &err))
        printf("# %s\n", err.text);
    json_decref(doc);
    return grown;
}

static const char *const questions[] = {
    "{\"batch\":16,\"seq\":64}",
    "{\"batch\":16,\"seq\":64,\"memory_bytes\":3000000}",
    "{\"batch\":16,\"seq\":64,\"max_gpus\":2}",
    "{\"batch\":16,\"seq\":64,\"min_efficiency\":0.5}",
    "{\"batch\":16,\"seq\":64,\"mode\":\"mini-time\",\"gpus\":4}",
    "{\"batch\":16,\"seq\":64,\"mode\":\"profiling\",\"memory_bytes\":4000000}"};
enum { QUESTIONS = sizeof questions / sizeof *questions };

static void test_kept(void)
{
    char *first = NULL, *all, *a = ask(questions[0], NULL, &first);
    ok(first && strstr(first, "topt-frontiers/1"), "a first question leaves frontiers");
    all = complete(questions[0], first);
    ok(all && strlen(all) > strlen(first), "which can be made complete: %zu of %zu bytes",
       strlen(first), all ? strlen(all) : 0);
    free(a);
    for (int i = 0; i < QUESTIONS; i++) {
        char *none = NULL, *grown = NULL;
        char *searched = ask(questions[i], NULL, NULL);
        char *kept = ask(questions[i], all, &grown), *again = NULL;
        ok(!strcmp(searched, kept), "%s is answered from them as by a search",
           questions[i]);
        again = ask(questions[i], grown ? grown : all, &none);
        ok(!none && !strcmp(searched, again), "and once more, which leaves nothing new");
        free(searched);
        free(kept);
        free(again);
        free(grown);
    }
    free(first);
    free(all);
}

static void test_useless(void)
{
    char *other = NULL, *grown = NULL;
    free(ask("{\"batch\":8,\"seq\":64}", NULL, &other));
    char *searched = ask(questions[0], NULL, NULL), *a = ask(questions[0], other, &grown);
    ok(!strcmp(searched, a) && grown, "another problem's count as none");
    free(a);
    free(grown);
    grown = NULL;
    a = ask(questions[0], "{\"format\":\"topt-frontiers/1\"}", &grown);
    ok(!strcmp(searched, a) && grown, "and so do damaged ones");
    free(a);
    free(grown);
    grown = NULL;
    a = ask("{\"batch\":16,\"seq\":64,\"space\":\"canonical\",\"framework\":\"topt\","
            "\"mode\":\"mini-time\",\"gpus\":2}",
            NULL, &grown);
    ok(strstr(a, "\"feasible\"") && !grown, "of another space nothing is kept");
    free(a);
    free(searched);
    free(other);
}

/* A job has GPUs of one kind: of two groups the better one, which is said. */
static void test_groups(void)
{
    struct topt_error err = {0};
    json_t *mixed = NULL, *a;
    char *was = hw, *grown = NULL;
    if (planner_hw_get("a100-v100", &mixed, &err)) {
        ok(0, "%s", err.text);
        return;
    }
    hw = topt_json_text(mixed, 0);
    struct planner *before = planner;
    planner = planner_create(); /* the other one keeps the profile of that name */
    char *text = ask("{\"batch\":16,\"seq\":64}", NULL, &grown);
    a = json_loads(text, 0, NULL);
    const char *why = json_string_value(json_object_get(a, "why")),
               *group = json_string_value(json_object_get(a, "group"));
    ok(group && !strcmp(group, "a100") && json_object_get(a, "plan") &&
           json_array_size(json_object_get(a, "choices")) == 2,
       "the faster of two groups: %s", group ? group : text);
    ok(why && strstr(why, "GPUs of group a100, as one job takes GPUs of one kind"), "%s",
       why ? why : "");
    ok(!grown, "and no frontiers are kept of it");
    json_decref(a);
    free(text);
    text = ask("{\"batch\":16,\"seq\":64,\"mode\":\"profiling\"}", NULL, NULL);
    ok(strstr(text, "points") != NULL, "curves are of devices like the least");
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
    test_kept();
    test_useless();
    test_groups();
    test_less_memory();
    test_brief();
    free(hw);
    planner_destroy(planner);
    return done_testing();
}
