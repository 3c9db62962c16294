/* store_nomem_test.c [all] - memory that does not suffice, at each allocation of each
 * operation of the store: an error that says so, nothing half done, and a store that
 * works on.
 *
 * Of opening and of a backup, which have many and take long, every so many unless all are
 * asked for. */
#include "nomem.h"
#include "store_kit.h"

/* ---- the operations ------------------------------------------------------------------------ */

static const uint32_t groups[] = {7, 8};
static const struct store_who who = {.uid = 1, .gid = groups, .ngids = 2};
static char plan[3000];
static int round_number; /* so that each try stores something new */
static enum store_kept kept;

static const char *id_of(char letter, int n)
{
    static char text[4][40];
    static int next;
    char *t = text[next++ % 4];
    snprintf(t, sizeof *text, "%c-%d", letter, n);
    return t;
}

static int put_model(struct store *s)
{
    const struct store_doc m = {id_of('m', round_number), "name", "{}"};
    return store_put_model(s, &m, 1, STORE_REFUSE, &err);
}

static int get_model(struct store *s)
{
    char *id, *name, *doc;
    int rc = store_get_model(s, "first", &who, &id, &name, &doc, &err);
    free(id);
    free(name);
    free(doc);
    return rc;
}

static int own_and_share(struct store *s)
{
    int rc = store_own(s, "m-first", round_number, "mine", &err);
    return rc ? rc : store_share(s, "m-first", round_number, 7, &err);
}

static int put_hw(struct store *s)
{
    const struct store_doc h = {id_of('h', round_number), "lab", "{}"};
    return store_put_hw(s, &h, 1, STORE_HW_REPLACE, NULL, &err);
}

static int get_hw(struct store *s)
{
    char *id, *name, *doc;
    int rc = store_get_hw(s, "kept", &id, &name, &doc, &err);
    free(id);
    free(name);
    free(doc);
    return rc;
}

static int publish(struct store *s)
{
    const struct store_doc m = {"m-first", "first", "{}"};
    const struct store_answer a = {.feasible = 1,
                                   .plan_id = (char *)id_of('p', round_number),
                                   .plan = plan,
                                   .doc = (char *)"{\"gpus\":1}"};
    const struct store_key key = {"m-first", "h-kept", id_of('q', round_number)};
    int rc = store_publish(s, &key, &m, &a, 1, &kept, &err);
    return rc < 0 || kept == STORE_NOTHING ? -1 : 0;
}

static int get_answer(struct store *s)
{
    struct store_answer got = {0};
    int rc =
        store_get_answer(s, &(struct store_key){"m-first", "h-kept", "q-0"}, &got, &err);
    if (rc > 0 && strcmp(got.plan, plan))
        rc = -2;
    store_answer_fini(&got);
    return rc == 1 ? 0 : rc == 0 ? -2 : rc; /* it is there */
}

static int get_plan(struct store *s)
{
    char *doc;
    int rc = store_get_plan(s, "p-0", &who, &doc, &err);
    if (rc == 0 && strcmp(doc, plan))
        rc = -2;
    free(doc);
    return rc;
}

static int lists(struct store *s)
{
    struct store_page page = {.limit = 3};
    json_t *list[] = {store_list_models(s, &who, &page, &err), NULL, NULL, NULL, NULL};
    int bad = !list[0], n = 1;
    if (!bad)
        bad = !(list[n++] = store_list_plans(s, &who, &page, &err));
    if (!bad)
        bad = !(list[n++] = store_list_hw(s, 1, &page, &err));
    if (!bad)
        bad = !(list[n++] = store_access(s, "m-first", &err));
    page.before = NULL;
    if (!bad)
        bad = !(list[n++] = store_list_observations(s, NULL, NULL, -1, &page, &err));
    for (int i = 0; i < n; i++)
        json_decref(list[i]);
    return bad ? -1 : 0;
}

static int observe(struct store *s)
{
    const struct store_observation o = {.plan = "p-0",
                                        .model = "m-first",
                                        .hw = "h-kept",
                                        .cluster = "c",
                                        .job = round_number,
                                        .uid = 1,
                                        .gpus = 1,
                                        .step_ns = 1};
    int64_t id;
    return store_put_observation(s, &o, &id, &err);
}

static int measured(struct store *s)
{
    struct store_measured got[4];
    struct store_plan_facts facts = {0};
    struct store_page page = {.limit = 3};
    int rc = store_measured(s, "m-first", "h-kept", 1, got, 4, &err);
    json_t *list = rc < 0 ? NULL : store_list_measured(s, -1, &page, &err);
    if (list)
        rc = store_plan_of(s, "p-0", -1, &facts, &err);
    json_decref(list);
    store_plan_facts_fini(&facts);
    return list ? rc : -1;
}

static int keep(struct store *s)
{
    store_keep(s, (int64_t)time(NULL) + 10000 + round_number * 100);
    return 0;
}

static int backup(struct store *s)
{
    char file[100];
    (void)s;
    snprintf(file, sizeof file, "%s/copy", dir);
    return store_backup(dir, file, &err);
}

/* One operation, failing at its first allocation, its second... (or every so many) until
 * it needs none more. */
static void each(struct store *s, const char *name, int (*operation)(struct store *),
                 int stride)
{
    int n = 0, wrong = 0, lost = 0, rc;
    do {
        round_number++;
        topt_error_clear(&err);
        atomic_store(&nomem_failed, 0);
        atomic_store(&nomem_left, n);
        n += stride;
        rc = operation(s);
        atomic_store(&nomem_left, -1);
        if (rc < 0 && (rc == -2 || err.code != TOPT_ERR_NOMEM)) {
            printf("#   %s, allocation %d: %d, %s\n", name, n, rc, err.text);
            wrong++;
        }
        if (store_check(s, &err) < 0 || get_answer(s) < 0 || get_plan(s) < 0)
            lost++;
        if (rc >= 0 && operation == publish) { /* what was accepted is there */
            struct store_answer got = {0};
            lost +=
                store_get_answer(
                    s, &(struct store_key){"m-first", "h-kept", id_of('q', round_number)},
                    &got, &err) != 1;
            store_answer_fini(&got);
        }
    } while (atomic_load(&nomem_failed) && n < 5000);
    ok(!wrong && !lost && rc >= 0 && n > stride, "%s: %d allocations, %d wrong, %d lost",
       name, n - stride, wrong, lost);
}

static void test_open(int stride)
{
    struct store *s = NULL;
    int n = 0, rc, wrong = 0;
    do {
        topt_error_clear(&err);
        atomic_store(&nomem_failed, 0);
        atomic_store(&nomem_left, n);
        n += stride;
        rc = store_open(dir, &s, &err);
        atomic_store(&nomem_left, -1);
        if (rc == 0 && atomic_load(&nomem_failed))
            store_close(s);
        wrong += rc < 0 && err.code != TOPT_ERR_NOMEM;
        if (rc < 0 && err.code != TOPT_ERR_NOMEM)
            printf("#   allocation %d: %s\n", n, err.text);
    } while (atomic_load(&nomem_failed) && n < 20000);
    ok(rc == 0 && !wrong, "opening: %d allocations, %d wrong", n - stride, wrong);
    if (rc == 0)
        store_close(s);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(struct store *);
    } operations[] = {{"a model is put", put_model},
                      {"a model is found", get_model},
                      {"owning and sharing", own_and_share},
                      {"a profile is replaced", put_hw},
                      {"a profile is found", get_hw},
                      {"an answer is published", publish},
                      {"an answer is found", get_answer},
                      {"a plan is found", get_plan},
                      {"lists", lists},
                      {"an observation", observe},
                      {"what was measured", measured},
                      {"a backup", backup}};
    int stride = argc > 1 && !strcmp(argv[1], "all") ? 1 : 17; /* of what takes long */
    nomem_hook();
    if (!mkdtemp(dir))
        skip_all("no temporary directory");
    memset(plan, 'x', sizeof plan);
    int n = snprintf(plan, 40, "{\"hw\":{\"n\":\"");
    plan[n] = 'x';
    strcpy(plan + sizeof plan - 16, "\"},\"model\":1}");
    test_open(stride);
    struct store *s = open_store();
    ok(store_put_model(s, &(struct store_doc){"m-first", "first", "{}"}, 1, STORE_REFUSE,
                       &err) == 1 &&
           store_put_hw(s, &(struct store_doc){"h-kept", "kept", "{}"}, 1, STORE_HW_ADD,
                        NULL, &err) == 1 &&
           publish(s) == 0 && !get_answer(s),
       "a store with something in it %s", err.text);
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        each(s, operations[i].name, operations[i].run,
             operations[i].run == backup ? stride : 1);
    for (int i = 0; i < 200;
         i++) { /* it may leave things for later, but must not fall over */
        round_number++;
        atomic_store(&nomem_left, i);
        keep(s);
        atomic_store(&nomem_left, -1);
    }
    ok(!get_answer(s) && !get_plan(s), "housekeeping loses nothing");
    store_close(s);
    s = open_store();
    ok(!get_answer(s) && !get_plan(s), "nor is anything lost after a restart");
    store_close(s);
    return remove_dir() ? EXIT_FAILURE : done_testing();
}
