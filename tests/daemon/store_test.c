/* store_test.c - the store: schema, documents, answers, and who may open it. */
#include "store.h"
#include "tap.h"

#include <signal.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct topt_error err;
static char dir[] = "/tmp/topt-store-XXXXXX";

static struct store *open_store(void)
{
    struct store *s = NULL;
    topt_error_clear(&err);
    ok(store_open(dir, &s, &err) == 0, "opens: %s", err.text);
    return s;
}

/* Change the file behind the store's back. */
static int tamper(const char *sql)
{
    char path[64];
    sqlite3 *db;
    snprintf(path, sizeof path, "%s/topt.db", dir);
    sqlite3_open(path, &db);
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_close(db);
    return rc;
}

static void test_docs(struct store *s)
{
    char *name, *doc, *id;
    const struct store_doc m = {"m-1", "first", "{\"a\":1}"};
    is_int(store_put_model(s, &m, &err), 1, "a model is stored");
    is_int(store_put_model(s, &m, &err), 0, "once");
    is_int(store_get_model(s, "m-1", NULL, &name, &doc, &err), 0, "and found");
    ok(!strcmp(name, "first") && !strcmp(doc, "{\"a\":1}"), "as it was");
    free(name);
    free(doc);
    is_int(store_get_model(s, "first", &id, NULL, &doc, &err), 0, "by its name, too");
    ok(!strcmp(id, "m-1"), "with its id: %s", id);
    free(id);
    free(doc);
    const struct store_doc other = {"m-3", "first", "{\"b\":1}"};
    const struct store_doc named = {"m-4", "m-3", "{\"c\":1}"};
    is_int(store_put_model(s, &other, &err), 1, "another of that name");
    is_int(store_get_model(s, "first", &id, NULL, &doc, &err), -1, "which names neither");
    is_int(store_put_model(s, &named, &err), 1, "one whose name is another's id");
    is_int(store_get_model(s, "m-3", &id, NULL, &doc, &err), 0, "an id");
    ok(!strcmp(id, "m-3"), "comes first: %s", id);
    free(id);
    free(doc);
    is_int(store_get_model(s, "m-2", NULL, &name, &doc, &err), -1, "another is not");
    ok(err.code == TOPT_ERR_NOTFOUND && !name && !doc, "and nothing is given out");
    is_int(store_get_hw(s, "", &id, NULL, &doc, &err), -1, "no profile is the only one");
    is_int(store_put_hw(s, &(struct store_doc){"h-1", "lab", "{}"}, &err), 1,
           "a profile");
    is_int(store_get_hw(s, "", &id, NULL, &doc, &err), 0, "is the only one");
    free(id);
    free(doc);
    is_int(store_put_hw(s, &(struct store_doc){"h-1", "lab", "{}"}, &err), 0, "again");
    is_int(store_put_hw(s, &(struct store_doc){"h-2", "lab", "{ }"}, &err), -1,
           "another of that name is refused");
    ok(err.code == TOPT_ERR_USAGE, "as a conflict");
    is_int(store_put_hw(s, &(struct store_doc){"h-2", "big", "{ }"}, &err), 1,
           "a second");
    is_int(store_get_hw(s, "", &id, NULL, &doc, &err), -1, "now none is the only one");
    is_int(store_get_hw(s, "big", &id, NULL, &doc, &err), 0, "found by name");
    ok(!strcmp(id, "h-2"), "with its id");
    free(id);
    free(doc);
}

static void test_answers(struct store *s)
{
    const struct store_key key = {"m-9", "h-1", "mode=x"};
    const struct store_doc model = {"m-9", "nine", "{}"};
    struct store_answer a = {.feasible = 1,
                             .plan_id = (char *)"p-1",
                             .plan = (char *)"{1}",
                             .doc = (char *)"{\"gpus\":4}",
                             .search_ns = 7};
    struct store_answer got = {0};
    char *doc;
    is_int(store_get_answer(s, &key, &got, &err), 0, "no answer yet");
    is_int(store_publish(s, &key, &model, &a, &err), 0, "an answer is published");
    is_int(store_get_answer(s, &key, &got, &err), 1, "and found");
    ok(got.feasible && !strcmp(got.plan, "{1}") && got.search_ns == 7, "with its plan");
    store_answer_fini(&got);
    is_int(store_get_plan(s, "p-1", &doc, &err), 0, "the plan is pinned");
    free(doc);
    a.plan = (char *)"{2}";
    is_int(store_publish(s, &(struct store_key){"m-9", "h-1", "y"}, &model, &a, &err), -1,
           "another plan under its id is refused: %s", err.text);
    is_int(store_get_answer(s, &(struct store_key){"m-9", "h-1", "y"}, &got, &err), 0,
           "and its answer with it");
    a = (struct store_answer){.doc = (char *)"{\"why\":\"no\"}"};
    is_int(store_publish(s, &(struct store_key){"m-9", "h-1", "z"}, &model, &a, &err), 0,
           "an infeasible answer");
    is_int(store_get_answer(s, &(struct store_key){"m-9", "h-1", "z"}, &got, &err), 1,
           "is kept");
    ok(!got.feasible && !got.plan_id && !got.plan, "without a plan");
    store_answer_fini(&got);
    json_t *plans = store_list_plans(s, 10, &err),
           *models = store_list_models(s, 10, &err);
    is_int(json_array_size(plans), 1, "one plan is listed");
    is_int(json_integer_value(json_object_get(json_array_get(plans, 0), "gpus")), 4,
           "with its numbers");
    is_int(json_array_size(models), 4, "all models are");
    json_decref(plans);
    json_decref(models);
}

static void test_again(void)
{
    struct store *second = NULL;
    char *doc;
    struct store *s = open_store();
    is_int(store_get_plan(s, "p-1", &doc, &err), 0, "the plan is there after a restart");
    free(doc);
    is_int(store_open(dir, &second, &err), -1, "a second one is refused: %s", err.text);
    store_close(s);
    is_int(tamper("PRAGMA user_version = 99"), 0, "a newer schema");
    is_int(store_open(dir, &second, &err), -1, "is refused: %s", err.text);
    is_int(tamper("PRAGMA user_version = 1"), 0, "the schema as it was");
    s = open_store();
    is_int(store_check(s, &err), 0, "and it answers");
    store_close(s);
}

/* A disk that is full: nothing half written, nothing lost, and well again with room. */
static void test_full_disk(void)
{
    const struct store_key key = {"m-9", "h-1", "big"};
    const struct store_doc model = {"m-9", "nine", "{}"};
    struct store_answer got = {0}, a = {.feasible = 1, .plan_id = (char *)"p-2"};
    struct rlimit old, small;
    struct store *s = open_store();
    char *big = calloc(1, 1 << 20), *doc;
    if (!s || !big || getrlimit(RLIMIT_FSIZE, &old))
        return;
    memset(big, 'x', (1 << 20) - 1);
    a.plan = a.doc = big;
    small = old;
    small.rlim_cur = 256 << 10;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    is_int(store_publish(s, &key, &model, &a, &err), -1, "a full disk: %s", err.text);
    is_int(store_get_answer(s, &key, &got, &err), 0, "the answer is not there");
    is_int(store_get_plan(s, "p-2", &doc, &err), -1, "nor its plan");
    is_int(store_get_plan(s, "p-1", &doc, &err), 0, "older plans are");
    free(doc);
    setrlimit(RLIMIT_FSIZE, &old);
    is_int(store_publish(s, &key, &model, &a, &err), 0, "with room again it is stored");
    is_int(store_get_answer(s, &key, &got, &err), 1, "and found");
    store_answer_fini(&got);
    free(big);
    store_close(s);
}

/* A migration that fails half way leaves nothing. */
static void test_half_migration(void)
{
    struct store *s = NULL;
    int rc = tamper("PRAGMA user_version = 0"); /* the tables are there: 001 must fail */
    is_int(rc, 0, "a store whose number is wrong");
    is_int(store_open(dir, &s, &err), -1, "is refused: %s", err.text);
    is_int(tamper("SELECT 1 FROM plans"), 0, "and its plans are untouched");
}

int main(void)
{
    if (!mkdtemp(dir))
        skip_all("no temporary directory");
    struct store *s = open_store();
    test_docs(s);
    test_answers(s);
    store_close(s);
    test_again();
    test_full_disk();
    test_half_migration();
    char command[80];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) ? EXIT_FAILURE : done_testing();
}
