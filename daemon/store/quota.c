/* quota.c - how much one user may keep: documents by number and by bytes.
 *
 * A model counts with its text, a plan with its own, and a model that stands in plans once more,
 * since it is stored with them.  A document of several owners counts in full for each: it would be
 * there for any of them alone. */
#include "quota.h"
#include "keep.h"
#include "topt_text.h"

#include <string.h>

enum { BATCH = 32 };

struct use {
    int64_t documents, bytes;
};

/* Count what a user keeps; the statements read indexes alone. */
static int count(struct conn *c, int64_t uid, struct use *ret, struct topt_error *err)
{
    static const char documents[] = "SELECT count(*) FROM owners WHERE uid = ?";
    static const char bytes[] = "SELECT (SELECT coalesce(sum(m.bytes), 0) FROM owners o "
                                "CROSS JOIN models m INDEXED BY models_bytes"
                                " ON m.id = o.id WHERE o.uid = ?1)"
                                " + (SELECT coalesce(sum(p.bytes), 0) FROM owners o "
                                "CROSS JOIN plans p INDEXED BY plans_bytes"
                                " ON p.id = o.id WHERE o.uid = ?1)"
                                " + (SELECT coalesce(sum(x.bytes), 0) FROM parts x "
                                "INDEXED BY parts_bytes WHERE x.id IN"
                                " (SELECT p.model_part FROM owners o CROSS JOIN plans p "
                                "INDEXED BY plans_bytes ON p.id = o.id"
                                " WHERE o.uid = ?1))";
    return db_one(c, err, &ret->documents, documents, "i", uid) < 0 ||
                   db_one(c, err, &ret->bytes, bytes, "i", uid) < 0
               ? -1
               : 0;
}

static struct use most(const struct store *s)
{
    return (struct use){atomic_load(&s->user_documents), atomic_load(&s->user_bytes)};
}

static int is_over(const struct use *u, const struct use *limit)
{
    return u->documents > limit->documents || u->bytes > limit->bytes;
}

/* ---- giving up ----------------------------------------------------------------------------- */

static int run_all(struct conn *c, const char *const *sql, int n, const char *id,
                   struct topt_error *err)
{
    int rc = 0;
    for (int i = 0; i < n && rc >= 0; i++)
        rc = db_run(c, err, sql[i], "s", id);
    return rc < 0 ? -1 : 0;
}

static int let_plan_go(struct conn *c, const char *id, struct topt_error *err)
{
    static const char *const sql[] = {"DELETE FROM answers WHERE plan = ?",
                                      "DELETE FROM plans WHERE id = ?"};
    static const char parts[] = "SELECT model_part, hw_part FROM plans WHERE id = ?";
    static const char drop[] =
        "DELETE FROM parts WHERE id IN (?1, ?2)"
        " AND NOT EXISTS (SELECT 1 FROM plans WHERE model_part = parts.id)"
        " AND NOT EXISTS (SELECT 1 FROM plans WHERE hw_part = parts.id)";
    char part[2][72] = {"", ""};
    sqlite3_stmt *st = db_bind(c, err, parts, "s", id);
    int rc = st ? db_step(c, st, err) : -1;
    for (int i = 0; i < 2 && rc > 0; i++)
        snprintf(part[i], sizeof part[i], "%s", db_words(st, i));
    if (st)
        db_done(st);
    if (rc < 0 || run_all(c, sql, 2, id, err) < 0)
        return -1;
    return db_run(c, err, drop, "ss", part[0], part[1]) < 0 ? -1 : 0;
}

static int let_model_go(struct conn *c, const char *id, struct topt_error *err)
{
    static const char of_plans[] = "SELECT 1 FROM plans WHERE model = ?";
    static const char *const sql[] = {"DELETE FROM answers WHERE model = ?",
                                      "DELETE FROM models WHERE id = ?"};
    int rc = db_one(c, err, NULL, of_plans, "s", id);
    return rc ? rc < 0 ? -1 : 0 : run_all(c, sql, 2, id, err);
}

int store_let_go(struct conn *c, const char *id, struct topt_error *err)
{
    static const char needed[] = "SELECT 1 FROM owners WHERE id = ?1 UNION ALL"
                                 " SELECT 1 FROM shares WHERE id = ?1";
    int rc = db_one(c, err, NULL, needed, "s", id);
    if (rc)
        return rc < 0 ? -1 : 0;
    return *id == 'p' ? let_plan_go(c, id, err) : let_model_go(c, id, err);
}

/* ---- making room --------------------------------------------------------------------------- */

struct old {
    char id[72];
    int64_t bytes;
};

/* The user's least recently used; a model is as young as its last plan.  A plan and its model stay
 * for each other's sake while they are stored one after the other. */
static int oldest(struct conn *c, int64_t uid, const char *but, struct old ret[BATCH],
                  struct topt_error *err)
{
    enum { STORED_S = 60 };
    static const char sql[] =
        "SELECT id, bytes FROM (SELECT o.id AS id, p.bytes AS bytes, p.used AS t,"
        " 0 AS kind, p.rowid AS row FROM owners o CROSS JOIN plans p ON p.id = o.id"
        " WHERE o.uid = ?1 AND NOT (p.model = ?2 AND p.used > ?4)"
        " UNION ALL SELECT o.id, m.bytes, max(o.created,"
        " coalesce((SELECT max(p.used) FROM plans p JOIN owners po ON po.id = p.id"
        " AND po.uid = ?1 WHERE p.model = o.id), 0)), 1, m.rowid FROM owners o"
        " CROSS JOIN models m ON m.id = o.id WHERE o.uid = ?1"
        " AND m.id <> coalesce((SELECT model FROM plans WHERE id = ?2), ''))"
        " WHERE id <> ?2 ORDER BY t, kind, row LIMIT ?3";
    sqlite3_stmt *st =
        db_bind(c, err, sql, "isii", uid, but, (int64_t)BATCH, store_now() - STORED_S);
    int n = 0, rc = st ? 1 : -1;
    while (rc > 0 && n < BATCH && (rc = db_step(c, st, err)) > 0) {
        snprintf(ret[n].id, sizeof ret[n].id, "%s", db_words(st, 0));
        ret[n++].bytes = sqlite3_column_int64(st, 1);
    }
    if (st)
        db_done(st);
    return rc < 0 ? -1 : n;
}

static int disown(struct conn *c, int64_t uid, const char *id, struct topt_error *err)
{
    static const char owner[] = "DELETE FROM owners WHERE id = ? AND uid = ?";
    static const char share[] = "DELETE FROM shares WHERE id = ? AND uid = ?";
    return db_run(c, err, owner, "si", id, uid) < 0 ||
                   db_run(c, err, share, "si", id, uid) < 0 ||
                   store_let_go(c, id, err) < 0
               ? -1
               : 0;
}

/* Give up the user's oldest documents, at most a batch of them, until what exceeds the quota is gone.
 * Models that several plans share make this an estimate, so the caller counts again.  Returns how
 * many were given up, or -1. */
static int give_up(struct conn *c, int64_t uid, const char *id, const struct use *now,
                   const struct use *limit, struct topt_error *err)
{
    struct old old[BATCH];
    int64_t documents = now->documents - limit->documents,
            bytes = now->bytes - limit->bytes;
    int n = oldest(c, uid, id, old, err), i = 0;
    for (; i < n && (documents > 0 || bytes > 0); i++) {
        if (disown(c, uid, old[i].id, err) < 0)
            return -1;
        documents--;
        bytes -= old[i].bytes;
    }
    return n < 0 ? -1 : i;
}

static int refuse(const struct use *now, const struct use *limit, struct topt_error *err)
{
    char have[32], may[32];
    topt_show_bytes(now->bytes, have, sizeof have);
    topt_show_bytes(limit->bytes, may, sizeof may);
    if (now->documents > limit->documents)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "you keep %lld models and plans, and no more are kept of one "
                         "user: `topt client forget ID` gives one up",
                         (long long)now->documents - 1);
    return topt_fail(err, TOPT_ERR_LIMIT,
                     "your models and plans would be %s with it, and %s are kept of one "
                     "user: `topt client forget ID` gives one up",
                     have, may);
}

int store_make_room(struct store *s, struct conn *c, int64_t uid, const char *id,
                    enum store_full full, struct topt_error *err)
{
    const struct use limit = most(s);
    struct use now;
    for (;;) {
        if (count(c, uid, &now, err) < 0)
            return -1;
        if (!is_over(&now, &limit))
            return 0;
        int n = full == STORE_REFUSE ? 0 : give_up(c, uid, id, &now, &limit, err);
        if (n <= 0)
            return n < 0 ? -1 : refuse(&now, &limit, err);
        atomic_fetch_add(&s->given_up, 1);
    }
}
