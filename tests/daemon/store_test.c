/* store_test.c - the store: models, profiles, plans, answers, observations,
 * who may read them, and how long they are kept. */
#include "store_kit.h"

enum {
    ALICE = 1001,
    BOB = 1002,
    CAROL = 1003,
    DORA = 4,
    LAB = 500,
    HOUR = 3600,
    DAY = 24 * HOUR
};

static const struct store_who alice = {.uid = ALICE}, bob = {.uid = BOB};
static const uint32_t lab[] = {LAB};
static const struct store_who carol = {.uid = CAROL, .gid = lab, .ngids = 1};

static int64_t at(int64_t later)
{
    return (int64_t)time(NULL) + later;
}

/* ---- models -------------------------------------------------------------------------------- */

static int finds(struct store *s, const char *key, const struct store_who *who,
                 const char *want_id)
{
    char *id, *doc;
    int rc = store_get_model(s, key, who, &id, NULL, &doc, &err);
    int good = want_id ? rc == 0 && !strcmp(id, want_id)
                       : rc < 0 && err.code == TOPT_ERR_NOTFOUND && !doc;
    free(id);
    free(doc);
    return good;
}

static void test_models(struct store *s)
{
    char *name, *doc;
    const struct store_doc m = {"m-1", "first", "{\"a\":1}"},
                           other = {"m-3", "first", "{\"b\":1}"};
    is_int(store_put_model(s, &m, ALICE, STORE_REFUSE, &err), 1, "a model is stored");
    is_int(store_put_model(s, &m, ALICE, STORE_REFUSE, &err), 0, "once");
    is_int(store_get_model(s, "m-1", &alice, NULL, &name, &doc, &err), 0, "and found");
    ok(!strcmp(name, "first") && !strcmp(doc, "{\"a\":1}"), "as it was");
    free(name);
    free(doc);
    ok(finds(s, "first", &alice, "m-1"), "by its name, too");
    ok(finds(s, "m-1", &bob, NULL) && finds(s, "first", &bob, NULL),
       "not by another: an id is no capability");
    ok(finds(s, "m-1", NULL, "m-1"), "an admin finds it");
    is_int(store_put_model(s, &other, ALICE, STORE_REFUSE, &err), 1,
           "another of that name");
    ok(finds(s, "first", &alice, NULL), "which names neither");
    is_int(store_put_model(s, &(struct store_doc){"m-4", "m-3", "{\"c\":1}"}, ALICE,
                           STORE_REFUSE, &err),
           1, "one named m-3");
    ok(finds(s, "m-3", &alice, "m-3"), "an id comes first");
    ok(finds(s, "m-2", &alice, NULL), "another is not there");
    const struct store_doc sly = {"m-5", "m-0123456789abcdef", "{}"};
    is_int(store_put_model(s, &sly, ALICE, STORE_REFUSE, &err), -1,
           "a name like an id is refused: %s", err.text);
    is_int(err.code, TOPT_ERR_INVAL, "as the asker's fault");
}

static void test_owners(struct store *s)
{
    const struct store_doc same = {"m-1", "mine", "{\"a\":1}"};
    char *name, *doc;
    is_int(store_put_model(s, &same, BOB, STORE_REFUSE, &err), 1,
           "another user sends the same, as if it were new");
    is_int(store_get_model(s, "mine", &bob, NULL, &name, &doc, &err), 0,
           "and finds it by his name");
    ok(!strcmp(name, "mine"), "which is his alone: %s", name);
    free(name);
    free(doc);
    ok(finds(s, "mine", &alice, NULL), "not hers");
    is_int(store_can_read(s, "m-1", &carol, &err), 0, "a third may not read it");
    is_int(store_share(s, "m-1", CAROL, LAB, &err), -1, "nor share it: %s", err.text);
    is_int(store_share(s, "m-1", ALICE, LAB, &err), 0, "an owner shares it with a group");
    is_int(store_share(s, "m-1", BOB, LAB, &err), 0, "and so does the other");
    is_int(store_can_read(s, "m-1", &carol, &err), 1, "whose members may read it");
    ok(finds(s, "m-1", &carol, "m-1"), "and find it");
    json_t *access = store_access(s, "m-1", &err);
    is_int(json_array_size(json_object_get(access, "owners")), 2, "it has two owners");
    is_int(json_array_size(json_object_get(access, "groups")), 2, "who share it");
    json_decref(access);
    is_int(store_disown(s, "m-1", ALICE, &err), 0, "one lets it go");
    ok(finds(s, "m-1", &alice, NULL) && finds(s, "m-1", &bob, "m-1"),
       "it stays the other's");
    is_int(store_can_read(s, "m-1", &carol, &err), 1, "and is shared by him");
    is_int(store_unshare(s, "m-1", BOB, LAB, &err), 0, "until he ends that");
    is_int(store_can_read(s, "m-1", &carol, &err), 0, "then no more");
    is_int(store_unshare(s, "m-1", BOB, LAB, &err), -1, "once: %s", err.text);
    is_int(store_disown(s, "m-1", ALICE, &err), -1, "what is let go is gone: %s",
           err.text);
    is_int(store_own(s, "m-1", ALICE, "first", &err), 0, "she may own it again");
    is_int(store_owns(s, "m-1", ALICE, &err), 1, "and does");
    is_int(store_own(s, "m-none", ALICE, "x", &err), -1,
           "what is not there can't be owned: %s", err.text);
}

static char *text_of(int n, char *buf, size_t size)
{
    memset(buf, 'x', size - 1);
    snprintf(buf, 24, "{\"n\":%d,\"x\":\"", n);
    buf[strlen(buf)] = 'x';
    memcpy(buf + size - 3, "\"}", 3);
    return buf;
}

/* A model of about 100 KB. */
static int put(struct store *s, int n, enum store_full full)
{
    static char text[100001];
    char id[24], name[24];
    snprintf(id, sizeof id, "m-big%d", n);
    snprintf(name, sizeof name, "big%d", n);
    const struct store_doc m = {id, name, text_of(n, text, sizeof text)};
    return store_put_model(s, &m, DORA, full, &err);
}

/* A plan of model n, which stands in it. */
static int plan(struct store *s, int n, int question, enum store_kept *kept)
{
    static char text[100001], whole[100200];
    char id[24], plan_id[24], asked[24];
    snprintf(id, sizeof id, "m-big%d", n);
    snprintf(plan_id, sizeof plan_id, "p-big%d-%d", n, question);
    snprintf(asked, sizeof asked, "q%d", question);
    text_of(n, text, sizeof text);
    snprintf(whole, sizeof whole, "{\"id\":\"%s\",\"model\":%s}", plan_id, text);
    const struct store_doc m = {id, "big", text};
    const struct store_answer a = {.feasible = 1,
                                   .plan_id = plan_id,
                                   .plan = whole,
                                   .doc = (char *)"{\"why\":\"yes\"}"};
    return store_publish(s, &(struct store_key){id, "h-1", asked}, &m, &a, DORA, kept,
                         &err);
}

static int is_there(struct store *s, const char *id)
{
    const struct store_who dora = {.uid = DORA};
    return store_can_read(s, id, &dora, &err);
}

/* One user may keep so many bytes and documents: registering more is refused, asking more gives up
 * what that user used least recently. */
static void test_quota(struct store *s)
{
    enum store_kept kept;
    int n = 0;
    store_quota(s, 100, 1 << 20);
    unsigned long long before = store_given_up(s);
    while (n < 20 && put(s, n, STORE_REFUSE) == 1)
        n++;
    is_int(n, 10, "ten of 100 KB in 1 MiB");
    ok(err.code == TOPT_ERR_LIMIT && strstr(err.text, "1.00 MiB are kept of one user"),
       "the next is refused: %s", err.text);
    is_int(number("SELECT count(*) FROM models WHERE id = 'm-big10'"), 0,
           "and not there");
    is_int(put(s, 3, STORE_REFUSE), 0, "one's own may be sent again");
    is_int(store_given_up(s) == before, 1, "nothing was given up");
    is_int(put(s, 10, STORE_EVICT), 1, "one that comes with a question");
    ok(!is_there(s, "m-big0") && is_there(s, "m-big1") && is_there(s, "m-big10"),
       "takes the place of the oldest");
    is_int(number("SELECT count(*) FROM models WHERE id = 'm-big0'"), 0,
           "which is gone at once");
    ok(store_given_up(s) > before, "and that is told");
    is_int(plan(s, 5, 1, &kept), 0, "a plan");
    ok(is_there(s, "p-big5-1") && !is_there(s, "m-big1"),
       "counts with the model that stands in it");
    int models =
        (int)number("SELECT count(*) FROM owners WHERE uid = 4 AND id LIKE 'm-%'");
    for (int i = 2; i < 8; i++)
        ok(!plan(s, 5, i, &kept) && kept == STORE_ALL, "another of that model");
    is_int(number("SELECT count(*) FROM owners WHERE uid = 4 AND id LIKE 'm-%'"), models,
           "takes little more");
    is_int(number("SELECT count(*) FROM parts WHERE bytes > 90000"), 1,
           "which is once there");
    store_quota(s, 3, 1 << 20);
    is_int(plan(s, 5, 9, &kept), 0, "of three documents");
    is_int(number("SELECT count(*) FROM owners WHERE uid = 4"), 3, "three are left");
    ok(is_there(s, "p-big5-9"), "and the newest of them");
    ok(put(s, 11, STORE_REFUSE) < 0 && strstr(err.text, "you keep 3 models and plans"),
       "a fourth is refused: %s", err.text);
    is_int(put(s, 5, STORE_EVICT) >= 0 && is_there(s, "p-big5-9"), 1,
           "a model takes no place of its new plan");
    ok(!plan(s, 5, 10, &kept) && is_there(s, "m-big5") && is_there(s, "p-big5-10"),
       "nor a plan its model's");
    store_quota(s, 100, 1 << 16);
    is_int(put(s, 12, STORE_EVICT), -1, "one that is too much alone is: %s", err.text);
    ok(!plan(s, 12, 1, &kept) && kept == STORE_NOTHING, "so is its plan");
    is_int(number("SELECT count(*) FROM owners WHERE uid = 4"), 3,
           "and nothing is given up for it");
    store_quota(s, 10000, 1 << 28);
    is_int(store_disown(s, "p-big5-10", DORA, &err), 0, "what is let go");
    is_int(number("SELECT count(*) FROM plans WHERE id = 'p-big5-10'"), 0,
           "is gone at once");
    tamper("DELETE FROM answers; DELETE FROM owners WHERE uid = 4;"
           "DELETE FROM plans; DELETE FROM parts; DELETE FROM models WHERE id LIKE "
           "'m-big%'");
}

static void test_pages(struct store *s)
{
    struct store_page page = {.limit = 2};
    char last[80] = "";
    int seen = 0, pages = 0;
    do {
        json_t *list = store_list_models(s, &alice, &page, &err);
        seen += (int)json_array_size(list);
        pages++;
        snprintf(last, sizeof last, "%s",
                 json_string_value(json_object_get(
                     json_array_get(list, json_array_size(list) - 1), "id")));
        page.before = last;
        json_decref(list);
    } while (page.more && pages < 9);
    is_int(seen, 3, "a list in pages has all of hers");
    is_int(pages, 2, "in as many as it takes");
    page = (struct store_page){.limit = 9};
    json_t *list = store_list_models(s, &bob, &page, &err);
    is_int(json_array_size(list), 1, "and his has his");
    json_decref(list);
}

/* ---- hardware ------------------------------------------------------------------------------ */

static int in_force(struct store *s, const char *key, const char *want)
{
    char *id, *doc;
    int rc = store_get_hw(s, key, &id, NULL, &doc, &err);
    int good =
        want ? rc == 0 && !strcmp(id, want) : rc < 0 && err.code == TOPT_ERR_NOTFOUND;
    free(id);
    free(doc);
    return good;
}

static int answered(struct store *s, const char *hw, const char *question)
{
    struct store_answer got = {0};
    int rc = store_get_answer(s, &(struct store_key){"m-9", hw, question}, &got, &err);
    store_answer_fini(&got);
    return rc;
}

static void answer(struct store *s, const char *hw, const char *question)
{
    const struct store_doc model = {"m-9", "nine", "{}"};
    const struct store_answer a = {.doc = (char *)"{\"why\":\"no\"}"};
    enum store_kept kept = STORE_NOTHING;
    if (store_publish(s, &(struct store_key){"m-9", hw, question}, &model, &a, -1, &kept,
                      &err) ||
        kept == STORE_NOTHING)
        ok(0, "an answer is kept: %s", err.text);
}

static void test_hardware(struct store *s)
{
    int version = 0;
    char *name, *doc;
    ok(in_force(s, "", NULL), "no profile is the only one");
    is_int(store_put_hw(s, &(struct store_doc){"h-1", "lab", "{1}"}, 0, STORE_HW_ADD,
                        &version, &err),
           1, "a profile");
    ok(version == 1 && in_force(s, "", "h-1"), "is the only one");
    is_int(store_put_hw(s, &(struct store_doc){"h-1", "lab", "{1}"}, 0, STORE_HW_ADD,
                        NULL, &err),
           0, "again");
    is_int(store_put_hw(s, &(struct store_doc){"h-2", "lab", "{2}"}, 0, STORE_HW_ADD,
                        NULL, &err),
           -1, "another of that name is refused: %s", err.text);
    is_int(err.code, TOPT_ERR_USAGE, "as a conflict");
    is_int(store_put_hw(s, &(struct store_doc){"h-2", "h-0123456789abcdef", "{2}"}, 0,
                        STORE_HW_REPLACE, NULL, &err),
           -1, "and a name like an id: %s", err.text);
    is_int(store_put_hw(s, &(struct store_doc){"h-9", "big", "{9}"}, 0, STORE_HW_ADD,
                        NULL, &err),
           1, "a second");
    ok(in_force(s, "", NULL) && in_force(s, "big", "h-9"), "now none is the only one");
    answer(s, "h-1", "q");
    answer(s, "h-1", "r");
    answer(s, "h-9", "q");
    is_int(store_put_hw(s, &(struct store_doc){"h-2", "lab", "{2}"}, 7, STORE_HW_REPLACE,
                        &version, &err),
           1, "a profile is replaced");
    ok(version == 2 && in_force(s, "lab", "h-2"), "by its second version");
    ok(in_force(s, "h-1", NULL), "the first is not in force");
    is_int(store_get_hw_version(s, "h-1", &name, &doc, &err), 0, "but there");
    ok(!strcmp(name, "lab") && !strcmp(doc, "{1}"), "as it was");
    free(name);
    free(doc);
    ok(!answered(s, "h-1", "q") && !answered(s, "h-1", "r"), "its answers are stale");
    is_int(answered(s, "h-9", "q"), 1, "others are not");
    answer(s, "h-1", "late");
    is_int(answered(s, "h-1", "late"), 0, "an answer that comes too late is not kept");
    is_int(store_put_hw(s, &(struct store_doc){"h-1", "lab", "{1}"}, 0, STORE_HW_REPLACE,
                        &version, &err),
           1, "the first document comes back");
    ok(version == 3 && in_force(s, "lab", "h-1"), "as the third version");
    struct store_page page = {.limit = 10};
    json_t *now = store_list_hw(s, 0, &page, &err),
           *all = store_list_hw(s, 1, &page, &err);
    is_int(json_array_size(now), 2, "two are in force");
    is_int(json_array_size(all), 4, "of four");
    json_decref(now);
    json_decref(all);
    is_int(store_drop_hw(s, "big", &err), 0, "one is deleted");
    ok(in_force(s, "big", NULL) && !answered(s, "h-9", "q"), "with its answers");
    is_int(store_drop_hw(s, "big", &err), -1, "once: %s", err.text);
    is_int(store_default_hw(s, &name, &err), 0, "the default");
    ok(!name, "is not chosen");
    is_int(store_set_default_hw(s, "lab", &err), 0, "now it is");
    is_int(store_default_hw(s, &name, &err), 0, "and is read");
    ok(name && !strcmp(name, "lab"), "as chosen");
    free(name);
    is_int(store_set_default_hw(s, NULL, &err), 0, "and no more");
}

/* ---- answers and plans --------------------------------------------------------------------- */

static char big_part[1000];

/* A plan with a model and a profile that are worth cutting out, and text like theirs
 * where it is not theirs. */
static char *plan_text(const char *name, int hw_first)
{
    static char text[4][3000];
    static int next;
    char *t = text[next++ % 4], model[1000], hw[1000];
    memset(big_part, 'x', sizeof big_part - 1);
    snprintf(model, sizeof model,
             "\"model\":{\"t\":\"%.800s\\\"},{\",\"hw\":[1,{\"a\":[]}]}", big_part);
    snprintf(hw, sizeof hw, "\"hw\":{\"n\":\"%.700s\",\"model\":2}", big_part);
    snprintf(
        t, sizeof *text,
        "{\"format\":\"topt-plan/"
        "1\",\"x\":{\"model\":1,\"hw\":\"}\"},\"name\":\"%.20s\",%s,%s,\"id\":\"p\"}",
        name, hw_first ? hw : model, hw_first ? model : hw);
    return t;
}

static int publish(struct store *s, const char *question, const char *id, char *plan,
                   int64_t uid)
{
    const struct store_doc model = {"m-9", "nine", "{}"};
    struct store_answer a = {
        .feasible = 1,
        .plan_id = (char *)id,
        .plan = plan,
        .search_ns = 7,
        .doc = (char *)"{\"gpus\":4,\"strategy\":\"data 4\",\"more\":[1]}"};
    enum store_kept kept = STORE_NOTHING;
    topt_error_clear(&err);
    int rc = store_publish(s, &(struct store_key){"m-9", "h-1", question}, &model, &a,
                           uid, &kept, &err);
    return rc < 0 ? -1 : kept != STORE_NOTHING;
}

static int has_plan(struct store *s, const char *id, const struct store_who *who,
                    const char *want)
{
    char *doc;
    int rc = store_get_plan(s, id, who, &doc, &err);
    int good = want ? rc == 0 && !strcmp(doc, want)
                    : rc < 0 && err.code == TOPT_ERR_NOTFOUND && !doc;
    free(doc);
    return good;
}

static void test_answers(struct store *s)
{
    struct store_answer got = {0};
    char *one = plan_text("one", 0), *two = plan_text("two", 1);
    const struct store_key key = {"m-9", "h-1", "one"};
    is_int(store_get_answer(s, &key, &got, &err), 0, "no answer yet");
    is_int(publish(s, "one", "p-1", one, ALICE), 1, "an answer is published");
    is_int(store_get_answer(s, &key, &got, &err), 1, "and found");
    ok(got.feasible && !strcmp(got.plan_id, "p-1") && got.search_ns == 7, "as it was");
    ok(!strcmp(got.plan, one), "its plan to the byte");
    store_answer_fini(&got);
    is_int(publish(s, "two", "p-2", two, BOB), 1, "a second, whose profile comes first");
    ok(has_plan(s, "p-2", &bob, two), "and whose plan is as it was");
    is_int(number("SELECT count(*) FROM parts"), 2,
           "models and profiles are stored once");
    ok(number("SELECT max(length(doc)) FROM plans") < 300, "plans hold neither");
    is_int(publish(s, "three", "p-3", (char *)"{\"small\":{\"model\":1}}", BOB), 1,
           "a short one");
    ok(has_plan(s, "p-3", &bob, "{\"small\":{\"model\":1}}"), "is as it was");
    is_int(publish(s, "y", "p-1", two, BOB), -1,
           "another plan under an id is refused: %s", err.text);
    is_int(answered(s, "h-1", "y"), 0, "and its answer with it");
    is_int(publish(s, "y", "p-1", one, BOB), 1, "the same plan is not");
    ok(has_plan(s, "p-1", &alice, one) && has_plan(s, "p-1", &bob, one),
       "it is both's then");
    ok(has_plan(s, "p-2", &alice, NULL), "another's is not there");
    ok(has_plan(s, "p-2", NULL, two), "but for an admin");
    is_int(store_share(s, "p-2", BOB, LAB, &err), 0, "or a group");
    ok(has_plan(s, "p-2", &carol, two), "with which it is shared");
    ok(finds(s, "m-9", &bob, "m-9") && finds(s, "m-9", &carol, NULL),
       "who owns a plan may read its model");
    struct store_page page = {.limit = 10};
    json_t *plans = store_list_plans(s, &alice, &page, &err);
    json_t *row = json_array_get(plans, 0);
    is_int(json_array_size(plans), 1, "one plan is hers");
    is_int(json_integer_value(json_object_get(row, "gpus")), 4, "with its numbers");
    ok(!json_object_get(row, "more") && !json_object_get(row, "summary"),
       "that lists show");
    json_decref(plans);
    is_int(store_drop_answer(s, &key, &err), 0, "an answer is dropped");
    is_int(answered(s, "h-1", "one"), 0, "and not found");
    ok(has_plan(s, "p-1", &alice, one), "its plan is");
    answer(s, "h-1", "z");
    is_int(store_get_answer(s, &(struct store_key){"m-9", "h-1", "z"}, &got, &err), 1,
           "an infeasible answer");
    ok(!got.feasible && !got.plan_id && !got.plan, "has no plan");
    store_answer_fini(&got);
}

/* ---- observations -------------------------------------------------------------------------- */

static void test_observations(struct store *s)
{
    struct store_observation o = {.plan = "p-1",
                                  .model = "m-9",
                                  .hw = "h-1",
                                  .cluster = "c",
                                  .job = 17,
                                  .uid = ALICE,
                                  .gpus = 4,
                                  .step_ns = 1000,
                                  .peak_bytes = 5000,
                                  .steps = 10};
    int64_t id = 0, again = 0, other = 0;
    struct store_page page = {.limit = 10};
    is_int(store_put_observation(s, &o, &id, &err), 0, "a job reports");
    o.step_ns = 1100;
    is_int(store_put_observation(s, &o, &again, &err), 0, "again");
    ok(id > 0 && again == id, "in its own row");
    is_int(store_confirm_observation(s, id, &err), 0, "Slurm confirms it");
    is_int(store_put_observation(s, &o, &again, &err), 0,
           "it stays confirmed when it reports once more");
    o.uid = BOB;
    is_int(store_put_observation(s, &o, &other, &err), 0,
           "another user's report for the same job");
    ok(other != id, "is another row");
    json_t *all = store_list_observations(s, "m-9", "h-1", -1, &page, &err);
    json_t *hers = store_list_observations(s, NULL, NULL, ALICE, &page, &err);
    json_t *none = store_list_observations(s, "m-9", "h-2", -1, &page, &err);
    is_int(json_array_size(all), 2, "both are listed");
    is_int(json_array_size(hers), 1, "hers");
    is_int(json_array_size(none), 0, "none of another profile");
    const json_t *row = json_array_get(hers, 0);
    is_int(json_integer_value(json_object_get(row, "step_ns")), 1100,
           "with the later time");
    is_int(json_integer_value(json_object_get(row, "confirmed")), 1, "confirmed");
    json_decref(all);
    json_decref(hers);
    json_decref(none);
    is_int(store_drop_observation(s, other, &err), 0, "an admin deletes one");
    is_int(store_drop_observation(s, other, &err), -1, "once: %s", err.text);
}

/* What is compared: each job once, a few of a user, confirmed or one's own, since the last reset.
 */
static void test_measured(struct store *s)
{
    struct store_observation o = {.plan = "p-1",
                                  .model = "m-8",
                                  .hw = "h-1",
                                  .cluster = "",
                                  .job = 1,
                                  .uid = ALICE,
                                  .step_ns = 100,
                                  .said_time_ns = 90,
                                  .confirmed = 1};
    enum { MOST = 100 };
    struct store_measured got[MOST];
    struct store_page page = {.limit = 1000};
    int64_t id;
    int rc = 0;
    for (o.job = 1; o.job <= STORE_OBSERVATIONS + 20; o.job++)
        rc |= store_put_observation(s, &o, &id, &err);
    is_int(rc, 0, "many reports of one user");
    json_t *all = store_list_observations(s, "m-8", "h-1", ALICE, &page, &err);
    is_int(json_array_size(all), STORE_OBSERVATIONS, "of which the oldest go");
    json_decref(all);
    is_int(store_measured(s, "m-8", "h-1", BOB, got, MOST, &err), STORE_MEASURED_EACH,
           "some of which count");
    ok(got[0].uid == ALICE && got[0].step_ns == 100 && got[0].said_time_ns == 90 &&
           got[0].confirmed,
       "with what was said");
    o.uid = BOB;
    o.confirmed = 0;
    o.job = 1;
    rc = store_put_observation(s, &o, &id, &err);
    o.plan = "p-2";
    o.step_ns = 200;
    rc |= store_put_observation(s, &o, &id, &err);
    is_int(rc, 0, "a job of two plans");
    is_int(store_measured(s, "m-8", "h-1", BOB, got, MOST, &err), STORE_MEASURED_EACH + 1,
           "counts once, for its user");
    is_int(store_measured(s, "m-8", "h-1", ALICE, got, MOST, &err), STORE_MEASURED_EACH,
           "and for nobody else while it is not confirmed");
    is_int(store_measured(s, "m-8", "h-1", BOB, got, 2, &err), 2, "as many as asked for");
    ok(got[0].uid != got[1].uid, "of all users alike");
    json_t *list = store_list_measured(s, BOB, &page, &err);
    is_int(json_array_size(list), 1, "models and profiles that one reported of");
    json_decref(list);
    is_int(store_reset_measured(s, "m-8", "h-1", &err), 0, "a reset");
    is_int(store_measured(s, "m-8", "h-1", BOB, got, MOST, &err), 0, "then none counts");
    is_int(store_reset_measured(s, "m-8", "h-1", &err), -1, "once: %s", err.text);
    rc = store_put_observation(s, &o, &id, &err);
    is_int(store_measured(s, "m-8", "h-1", BOB, got, MOST, &err), 0,
           "not even when it is reported again");
}

/* ---- housekeeping -------------------------------------------------------------------------- */

static void keep(struct store *s, int64_t later)
{
    for (int i = 0; i < 40; i++) /* a little at each call */
        store_keep(s, at(later) + 120 * i);
}

/* The least recently used answers go; the one that was used stays, and plans do. */
static void test_limit(struct store *s)
{
    char question[16], *doc = malloc(20001);
    const struct store_doc model = {"m-9", "nine", "{}"};
    struct store_answer a = {.doc = doc};
    enum store_kept kept;
    int left = 0;
    memset(doc, ' ', 20000);
    doc[0] = '{';
    doc[19999] = '}';
    doc[20000] = '\0';
    for (int i = 0; i < 100; i++) {
        snprintf(question, sizeof question, "big %d", i);
        if (store_publish(s, &(struct store_key){"m-9", "h-1", question}, &model, &a, -1,
                          &kept, &err) ||
            kept == STORE_NOTHING)
            ok(0, "an answer is kept: %s", err.text);
    }
    tamper("UPDATE answers SET used = used - 100000");
    is_int(answered(s, "h-1", "big 0"), 1, "one is used");
    store_keep(s, at(0));
    store_limits(s, 1 << 20, 90);
    is_int(store_publish(s, &(struct store_key){"m-9", "h-1", "new"}, &model, &a, -1,
                         &kept, &err),
           0, "there is one more");
    keep(s, 0);
    ok(number("SELECT sum(bytes) FROM answers") <= 1 << 20,
       "the cache is within its limit");
    left = (int)number("SELECT count(*) FROM answers WHERE question LIKE 'big%'");
    ok(left > 40 && left < 60, "no more goes than must: %d are left", left);
    is_int(answered(s, "h-1", "big 0"), 1, "the one that was used is one of them");
    is_int(number("SELECT count(*) FROM plans"), 3, "plans stay");
    store_limits(s, 1 << 30, 90);
    free(doc);
}

static void test_expiry(struct store *s)
{
    keep(s, 80 * DAY);
    is_int(number("SELECT count(*) FROM plans"), 3, "after 80 days all plans are there");
    tamper("UPDATE plans SET used = used - 100 * 86400");
    char *doc;
    is_int(store_get_plan(s, "p-2", NULL, &doc, &err), 0, "one of them is used");
    free(doc);
    keep(s, 2 * HOUR);
    is_int(number("SELECT count(*) FROM plans"), 1, "the others go after 90 days");
    ok(has_plan(s, "p-2", &bob, plan_text("two", 1)), "that one is whole");
    ok(has_plan(s, "p-1", NULL, NULL) && !answered(s, "h-1", "y"),
       "of the others nothing is left, nor their answers");
    is_int(number("SELECT count(*) FROM owners WHERE id IN ('p-1', 'p-3')"), 0,
           "nor owners");
    is_int(number("SELECT count(*) FROM parts"), 2, "and what the last one needs");
    is_int(number("SELECT count(*) FROM models WHERE id = 'm-9'"), 1,
           "its model, which nobody registered");
    is_int(store_disown(s, "p-2", BOB, &err), 0, "its owner deletes it");
    tamper("DELETE FROM answers");
    keep(s, 4 * HOUR);
    is_int(number("SELECT count(*) FROM plans"), 0, "it goes");
    is_int(number("SELECT count(*) FROM parts"), 0, "with its parts");
    is_int(number("SELECT count(*) FROM models WHERE id = 'm-9'"), 0, "and its model");
    is_int(number("SELECT count(*) FROM models"), 3, "models that were registered stay");
    is_int(store_disown_all(s, "m-4", &err), 0, "until an admin deletes one");
    keep(s, 8 * HOUR);
    is_int(number("SELECT count(*) FROM models"), 2, "or its owner");
}

/* ---- files --------------------------------------------------------------------------------- */

static void test_again(void)
{
    struct store *second = NULL;
    struct store *s = open_store();
    is_int(store_check(s, &err), 0, "it answers");
    ok(finds(s, "m-1", &bob, "m-1"), "a model is there after a restart");
    is_int(store_open(dir, &second, &err), -1, "a second one is refused: %s", err.text);
    store_close(s);
}

static void test_backup(void)
{
    char file[80], other[] = "/tmp/topt-store-XXXXXX", path[100];
    struct store *s = open_store(), *copy = NULL;
    if (!mkdtemp(other))
        return;
    snprintf(file, sizeof file, "%s/topt.db", other);
    is_int(publish(s, "kept", "p-7", plan_text("seven", 0), ALICE), 1, "a plan");
    is_int(store_backup(dir, file, &err), 0, "a backup beside an open store %s",
           err.text);
    is_int(publish(s, "later", "p-8", plan_text("eight", 0), ALICE), 1,
           "a plan after it");
    is_int(store_open(other, &copy, &err), 0, "the copy is a store %s", err.text);
    ok(has_plan(copy, "p-7", &alice, plan_text("seven", 0)), "with what was there");
    ok(has_plan(copy, "p-8", &alice, NULL), "and nothing later");
    store_close(copy);
    is_int(store_backup(dir, file, &err), 0, "another takes its place");
    snprintf(path, sizeof path, "%s.part", file);
    ok(access(path, F_OK), "nothing half is left");
    is_int(store_backup(dir, "/nonexistent/x", &err), -1, "a place that is not there: %s",
           err.text);
    is_int(store_backup(other + 0, file, &err), 0, "of itself, too");
    is_int(store_backup("/nonexistent", file, &err), -1, "a store that is not there: %s",
           err.text);
    ok(!access(file, F_OK), "leaves the last one");
    store_close(s);
    snprintf(path, sizeof path, "rm -rf %s", other);
    ok(!system(path), "removed");
}

int main(void)
{
    if (!mkdtemp(dir))
        skip_all("no temporary directory");
    struct store *s = open_store();
    test_models(s);
    test_owners(s);
    test_pages(s);
    test_quota(s);
    test_hardware(s);
    test_answers(s);
    test_observations(s);
    test_measured(s);
    test_limit(s);
    test_expiry(s);
    store_close(s);
    test_again();
    test_backup();
    return remove_dir() ? EXIT_FAILURE : done_testing();
}
