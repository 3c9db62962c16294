/* store_upgrade_test.c - a store of every earlier schema (schema-N.sql beside this file)
 * is brought up to date, with all that it held. */
#include "store_kit.h"
#include "topt_text.h"

#include <sys/stat.h>

static const char model[] = "m-ef03a6596dee8972f68c685fe649b6f3";
static const char hw[] = "h-d84291b02772c8fef846ab3138fda025";

static int load(const char *folder, int schema)
{
    char path[600];
    size_t len;
    snprintf(path, sizeof path, "%s/schema-%d.sql", folder, schema);
    char *sql = topt_read_file(path, 1 << 20, &len, &err);
    int rc = sql ? tamper(sql) : -1;
    free(sql);
    return rc;
}

static void test_documents(struct store *s)
{
    const struct store_who anybody = {.uid = 12345};
    char *id, *name, *doc;
    is_int(store_get_model(s, "small-llama", &anybody, &id, &name, &doc, &err), 0,
           "a model is there by its name");
    ok(!strcmp(id, model) &&
           !strcmp(doc, "{\"hidden_size\":256,\"model_type\":\"llama\"}"),
       "as it was, for everybody as before");
    free(id);
    free(name);
    free(doc);
    is_int(store_get_hw(s, "lab", &id, NULL, &doc, &err), 0, "and a profile");
    ok(!strcmp(id, hw) && !strcmp(doc, "{\"format\":\"topt-hw/1\",\"name\":\"lab\"}"),
       "as it was");
    free(id);
    free(doc);
    is_int(store_get_plan(s, "p-63335dc61044baee", &anybody, &doc, &err), 0,
           "jobs find their plans");
    ok(!strcmp(doc, "{\"format\":\"topt-plan/1\",\"id\":\"p-63335dc61044baee\"}"),
       "as they were given");
    free(doc);
}

static void test_answers(struct store *s)
{
    struct store_answer got = {0};
    is_int(store_get_answer(s, &(struct store_key){model, hw, "mode=a;"}, &got, &err), 1,
           "an answer is there");
    ok(got.feasible && got.search_ns == 7 && !strcmp(got.plan_id, "p-5a4229a035f958ad") &&
           strstr(got.plan, "\"model\":{\"name\":\"small-llama\"}"),
       "with its plan");
    store_answer_fini(&got);
    is_int(store_get_answer(s, &(struct store_key){model, hw, "mode=b;"}, &got, &err), 1,
           "a refusal, too");
    store_answer_fini(&got);
    is_int(store_get_answer(s,
                            &(struct store_key){
                                model, "h-00000000000000000000000000000001", "mode=a;"},
                            &got, &err),
           0, "one that was broken is not, and its plan is");
    struct store_page page = {.limit = 10};
    json_t *plans = store_list_plans(s, NULL, &page, &err);
    const json_t *row = json_array_get(plans, 1);
    is_int(json_array_size(plans), 2, "both plans are listed");
    is_int(json_integer_value(json_object_get(row, "gpus")), 4,
           "with the numbers of their answers");
    ok(!json_object_get(row, "memory_bytes"), "and no others");
    json_decref(plans);
}

static void test_kept(struct store *s)
{
    for (int i = 0; i < 40; i++)
        store_keep(s, (int64_t)time(NULL) + 7200 + 120 * i);
    is_int(number("SELECT count(*) FROM plans"), 2,
           "plans have their 90 days from now on");
    is_int(number("SELECT count(*) FROM models"), 2, "models stay");
}

/* What a job measured is compared with what its plan had said, which is kept with it now. */
static void test_observations(struct store *s)
{
    struct store_measured got[2];
    is_int(store_measured(s, model, hw, -1, got, 2, &err), 1, "an observation counts");
    ok(got[0].uid == 1000 && got[0].step_ns == 1234 && got[0].confirmed &&
           got[0].said_time_ns == 1000 && got[0].said_memory_bytes == 0,
       "with what its plan had said, as far as that is known");
}

static void test_from(const char *folder, int schema)
{
    is_int(load(folder, schema), 0, "a store of schema %d", schema);
    struct store *s = open_store();
    if (!s)
        return;
    is_int(number("SELECT count(*) FROM answers WHERE bytes > 256 AND used = created"), 3,
           "answers have their size and age");
    is_int(number("SELECT (SELECT sum(bytes = length(CAST(doc AS BLOB))) FROM models)"
                  " + (SELECT sum(bytes = length(CAST(doc AS BLOB))) FROM plans)"),
           4, "models and plans theirs");
    test_documents(s);
    test_answers(s);
    if (schema > 1) /* there were none before */
        test_observations(s);
    test_kept(s);
    store_close(s);
    ok(number("PRAGMA user_version") > schema, "its schema is newer");
    is_int(number("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'frontiers%'"), 0,
           "frontiers are not kept any more");
    is_int(number("SELECT count(*) FROM pragma_foreign_key_check"), 0,
           "all that refers to something finds it");
    s = open_store();
    store_close(s);
}

/* What an upgrade leaves is what a new store has. */
static void test_same_schema(void)
{
    static const char sql[] =
        "SELECT count(*) FROM sqlite_schema WHERE type IN ('table', 'index')";
    long long upgraded = number(sql);
    ok(!remove_dir() && !mkdir(dir, 0700), "a new folder");
    struct store *s = open_store();
    store_close(s);
    is_int(number(sql), upgraded,
           "a new store has the tables and indexes of one that was upgraded");
}

int main(void)
{
    if (!mkdtemp(dir))
        skip_all("no temporary directory");
    test_from(SCHEMAS, 1);
    ok(!remove_dir() && !mkdir(dir, 0700), "a new folder");
    test_from(SCHEMAS, 2);
    ok(!remove_dir() && !mkdir(dir, 0700), "a new folder");
    test_from(SCHEMAS, 3);
    ok(!remove_dir() && !mkdir(dir, 0700), "a new folder");
    test_from(SCHEMAS, 4);
    test_same_schema();
    return remove_dir() ? EXIT_FAILURE : done_testing();
}
