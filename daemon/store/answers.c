/* answers.c - finished searches, so that a question asked again costs a look-up.
 *
 * Answers are a cache: one that can't be read is dropped and searched again, and the
 * least recently used go when there are too many bytes of them (keep.c).  Their plans are
 * not: those were promised. */
#include "db.h"
#include "documents.h"
#include "keep.h"
#include "owners.h"
#include "quota.h"
#include "plans.h"

#include <stdlib.h>
#include <string.h>

#include "topt_json.h"

enum {
    ROW_BYTES = 256,     /* what a row takes beside its texts */
    TOUCH_AFTER_S = 3600 /* the last use is written down to an hour */
};

void store_answer_fini(struct store_answer *a)
{
    free(a->plan_id);
    free(a->plan);
    free(a->doc);
    *a = (struct store_answer){0};
}

/* ---- reading ------------------------------------------------------------------------------- */

static int is_object(const char *text)
{
    size_t n = strlen(text);
    return n >= 2 && *text == '{' && text[n - 1] == '}';
}

/* Columns 2 and on.  1, or -1 where the row can't be right or memory does not suffice. */
static int read_answer(sqlite3_stmt *st, struct store_answer *ret, struct topt_error *err)
{
    int has_plan = sqlite3_column_type(st, 3) != SQLITE_NULL, rc = 1;
    struct store_answer a = {.feasible = sqlite3_column_int(st, 2),
                             .plan_id = db_text(st, 3),
                             .doc = db_text(st, 4),
                             .search_ns = sqlite3_column_int64(st, 5)};
    if (!a.doc || (has_plan && !a.plan_id))
        rc = topt_nomem(err, NULL);
    else if (!is_object(a.doc))
        rc = topt_fail(err, TOPT_ERR_IO, "store: an answer is not a document");
    else if (has_plan && !(a.plan = plan_join(st, 6, err)))
        rc = -1;
    else if (has_plan && !is_object(a.plan))
        rc = topt_fail(err, TOPT_ERR_IO, "store: a plan is not a document");
    if (rc < 0)
        store_answer_fini(&a);
    else
        *ret = a;
    return rc;
}

int store_get_answer(struct store *s, const struct store_key *key,
                     struct store_answer *ret, struct topt_error *err)
{
    static const char sql[] =
        "SELECT a.rowid, a.used, a.feasible, a.plan, a.doc, a.search_ns,"
        " p.doc, p.model_at, p.model_part, m.doc, p.hw_at, p.hw_part, h.doc"
        " FROM answers a LEFT JOIN plans p ON p.id = a.plan"
        " LEFT JOIN parts m ON m.id = p.model_part LEFT JOIN parts h ON h.id = p.hw_part"
        " WHERE a.model = ? AND a.hw = ? AND a.question = ?";
    struct topt_error why = {0};
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, &why, sql, "sss", key->model, key->hw, key->question);
    int rc = st ? db_step(c, st, &why) : -1;
    int64_t row = rc > 0 ? sqlite3_column_int64(st, 0) : 0;
    int64_t used = rc > 0 ? sqlite3_column_int64(st, 1) : 0;
    if (rc > 0)
        rc = read_answer(st, ret, &why);
    if (st)
        db_done(st);
    store_reader_end(s, c);
    if (rc < 0 && why.code == TOPT_ERR_IO) {
        (void)!store_drop_answer(s, key, NULL);
        return 0;
    }
    if (rc < 0 && err)
        *err = why;
    if (rc > 0 && store_now() - used > TOUCH_AFTER_S)
        store_touch(s, TOUCH_ANSWER, row);
    return rc;
}

int store_drop_answer(struct store *s, const struct store_key *key,
                      struct topt_error *err)
{
    static const char sql[] =
        "DELETE FROM answers WHERE model = ? AND hw = ? AND question = ?";
    struct conn *c = store_begin(s, CACHE_ONLY, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_run(c, err, sql, "sss", key->model, key->hw, key->question);
    atomic_store(&s->orphans, true);
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}

/* ---- publishing ---------------------------------------------------------------------------- */

/* The numbers of an answer that lists of plans show; owned, NULL where memory does not suffice. */
static char *summary_of(const struct store_answer *a)
{
    static const char *const names[] = {"gpus", "nodes", "memory_bytes", "time_ns",
                                        "strategy"};
    struct topt_error err = {0};
    json_t *doc = topt_json_parse(a->doc, strlen(a->doc), "the answer", &err);
    json_t *out = err.code == TOPT_ERR_NOMEM ? NULL : json_object();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (json_object_get(doc, names[i]))
            json_object_set(out, names[i], json_object_get(doc, names[i]));
    char *text = out ? topt_json_text(out, 0) : NULL;
    json_decref(doc);
    json_decref(out);
    return text;
}

static int add_answer(struct conn *c, const struct store_key *key,
                      const struct store_answer *a, struct topt_error *err)
{
    static const char sql[] =
        "INSERT OR IGNORE INTO answers (model, hw, question, feasible, plan, doc,"
        " search_ns, created, bytes, used) SELECT ?1,?2,?3,?4,?5,?6,?7,?8,?9,?8"
        " WHERE NOT EXISTS (SELECT 1 FROM hardware WHERE id = ?2)"
        " OR EXISTS (SELECT 1 FROM hardware WHERE id = ?2 AND retired = 0)";
    size_t bytes = strlen(key->question) + strlen(a->doc) + ROW_BYTES;
    return db_run(c, err, sql, "sssissiii", key->model, key->hw, key->question,
                  (int64_t)a->feasible, a->plan_id, a->doc, a->search_ns, store_now(),
                  (int64_t)bytes);
}

struct publication {
    const struct store_key *key;
    const struct store_doc *model;
    const struct store_answer *a;
    int64_t uid;
    struct plan_cut cut;
    char *summary;
};

static int publish(struct store *s, struct conn *c, const struct publication *p,
                   struct topt_error *err)
{
    if (store_add_model(c, p->model, -1, err) < 0)
        return -1;
    if (p->a->plan_id && store_add_plan(c, p->key, p->a, &p->cut, p->summary, err) < 0)
        return -1;
    int is_new = p->a->plan_id && p->uid >= 0
                     ? store_add_owner(c, p->a->plan_id, p->uid, "", err)
                     : 0;
    if (is_new < 0 || (is_new > 0 && store_make_room(s, c, p->uid, p->a->plan_id,
                                                     STORE_EVICT, err) < 0))
        return -1;
    return p->a->is_partial ? 0 : add_answer(c, p->key, p->a, err);
}

/* What can be done before anybody is kept waiting. */
static int prepare(struct publication *p, struct topt_error *err)
{
    if (!p->a->plan_id)
        return 0;
    p->summary = summary_of(p->a);
    return p->summary ? plan_cut(p->a->plan, &p->cut, err) : topt_nomem(err, NULL);
}

int store_publish(struct store *s, const struct store_key *key,
                  const struct store_doc *model, const struct store_answer *a,
                  int64_t uid, enum store_kept *ret, struct topt_error *err)
{
    struct topt_error why = {0};
    struct publication p = {.key = key, .model = model, .a = a, .uid = uid};
    int rc = prepare(&p, &why);
    struct conn *c = NULL;
    if (rc == 0)
        c = store_begin(s, a->plan_id ? DURABLE : CACHE_ONLY, STORE_WAIT_MS, &why);
    if (c) {
        rc = publish(s, c, &p, &why);
        rc = store_end(s, c, rc, &why);
        atomic_store(&s->grown, true);
    }
    plan_cut_fini(&p.cut);
    free(p.summary);
    *ret = !c || rc < 0 ? STORE_NOTHING : rc > 0 ? STORE_ALL : STORE_PLAN;
    if (err && *ret == STORE_NOTHING)
        *err = why;
    return *ret == STORE_NOTHING && why.code == TOPT_ERR_INTERNAL ? -1 : 0;
}
