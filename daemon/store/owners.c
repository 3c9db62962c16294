/* owners.c - whose models and plans are, and which groups may read them.
 *
 * A document is private to its owners.  It may have many: it is named by its content, and
 * two users who send the same one own it both, each under a name of their own.  An owner
 * shares it with groups; the sharing ends with the ownership. */
#include "owners.h"
#include "quota.h"
#include "topt_text.h"

#include <stdlib.h>

/* ---- what somebody may read ---------------------------------------------------------------- */

int store_reading(const struct store_who *who, struct reading *ret,
                  struct topt_error *err)
{
    struct topt_text t = {0};
    topt_text_add(&t, "[-1");
    for (int i = 0; who && i < who->ngids; i++)
        topt_text_add(&t, ",%u", (unsigned)who->gid[i]);
    topt_text_add(&t, "]");
    *ret = (struct reading){.all = !who, .uid = who ? who->uid : -1, .groups = t.s};
    if (!t.oom)
        return 0;
    topt_text_fini(&t);
    ret->groups = NULL;
    return topt_nomem(err, NULL);
}

void store_reading_fini(struct reading *r)
{
    free(r->groups);
    r->groups = NULL;
}

json_t *store_readable(struct store *s, const struct store_who *who, const char *sql,
                       struct store_page *page, json_t *(*row)(sqlite3_stmt *),
                       struct topt_error *err)
{
    struct reading r;
    if (store_reading(who, &r, err) < 0)
        return NULL;
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, err, sql, "iissi", r.all, r.uid, r.groups, page->before,
                               (int64_t)page->limit + 1);
    json_t *out = st ? store_rows(c, st, page, row, err) : NULL;
    store_reader_end(s, c);
    store_reading_fini(&r);
    return out;
}

int store_can_read(struct store *s, const char *id, const struct store_who *who,
                   struct topt_error *err)
{
    static const char sql[] =
        "SELECT 1 WHERE (EXISTS (SELECT 1 FROM models WHERE id = ?1)"
        " OR EXISTS (SELECT 1 FROM plans WHERE id = ?1))"
        " AND (?2 OR EXISTS (SELECT 1 FROM owners WHERE id = ?1 AND uid = ?3)"
        " OR EXISTS (SELECT 1 FROM shares WHERE id = ?1"
        "            AND gid IN (SELECT value FROM json_each(?4)))"
        " OR EXISTS (SELECT 1 FROM plans p JOIN owners o ON o.id = p.id AND o.uid = ?3"
        "            WHERE p.model = ?1))";
    struct reading r;
    if (store_reading(who, &r, err) < 0)
        return -1;
    struct conn *c = store_reader(s);
    int rc = db_one(c, err, NULL, sql, "siis", id, r.all, r.uid, r.groups);
    store_reader_end(s, c);
    store_reading_fini(&r);
    return rc;
}

int store_owns(struct store *s, const char *id, int64_t uid, struct topt_error *err)
{
    static const char sql[] = "SELECT 1 FROM owners WHERE id = ? AND uid = ?";
    struct conn *c = store_reader(s);
    int rc = db_one(c, err, NULL, sql, "si", id, uid);
    store_reader_end(s, c);
    return rc;
}

/* ---- owning -------------------------------------------------------------------------------- */

int store_add_owner(struct conn *c, const char *id, int64_t uid, const char *name,
                    struct topt_error *err)
{
    static const char sql[] =
        "INSERT OR IGNORE INTO owners (id, uid, name, created) VALUES (?,?,?,?)";
    return db_run(c, err, sql, "sisi", id, uid, name, store_now());
}

static int not_there(const char *id, struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOTFOUND, "'%.60s' is not in the store", id);
}

int store_own(struct store *s, const char *id, int64_t uid, const char *name,
              struct topt_error *err)
{
    static const char there[] = "SELECT 1 FROM models WHERE id = ?1 UNION ALL"
                                " SELECT 1 FROM plans WHERE id = ?1";
    int rc = store_owns(s, id, uid, err);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    struct conn *c = store_begin(s, DURABLE, STORE_OWN_MS, err);
    if (!c)
        return -1;
    rc = db_one(c, err, NULL, there, "s", id);
    if (rc == 0)
        rc = not_there(id, err);
    if (rc > 0)
        rc = store_add_owner(c, id, uid, name, err);
    if (rc > 0 && store_make_room(s, c, uid, id, STORE_EVICT, err) < 0)
        rc = -1;
    rc = store_end(s, c, rc, err);
    return rc < 0 ? -1 : 0;
}

/* Run one change in a transaction of its own; where it changes nothing, NOTFOUND in these words. */
static int change(struct store *s, struct conn *c, int rc, const char *id,
                  const char *missing, struct topt_error *err)
{
    if (rc == 0)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "'%.60s': %s", id, missing);
    rc = store_end(s, c, rc, err);
    return rc < 0 ? -1 : 0;
}

int store_disown(struct store *s, const char *id, int64_t uid, struct topt_error *err)
{
    static const char drop[] = "DELETE FROM owners WHERE id = ? AND uid = ?";
    static const char unshare[] = "DELETE FROM shares WHERE id = ? AND uid = ?";
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_run(c, err, drop, "si", id, uid);
    if (rc > 0 &&
        (db_run(c, err, unshare, "si", id, uid) < 0 || store_let_go(c, id, err) < 0))
        rc = -1;
    atomic_store(&s->orphans, true);
    return change(s, c, rc, id, "is not yours", err);
}

int store_disown_all(struct store *s, const char *id, struct topt_error *err)
{
    static const char drop[] = "DELETE FROM owners WHERE id = ?";
    static const char unshare[] = "DELETE FROM shares WHERE id = ?";
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int owners = db_run(c, err, drop, "s", id);
    int shares = owners < 0 ? -1 : db_run(c, err, unshare, "s", id);
    if (shares >= 0 && store_let_go(c, id, err) < 0)
        shares = -1;
    atomic_store(&s->orphans, true);
    return change(s, c, shares < 0 ? -1 : owners + shares, id,
                  "it has no owner and no reader", err);
}

/* ---- sharing ------------------------------------------------------------------------------- */

int store_share(struct store *s, const char *id, int64_t uid, uint32_t gid,
                struct topt_error *err)
{
    static const char owned[] = "SELECT 1 FROM owners WHERE id = ? AND uid = ?";
    static const char share[] =
        "INSERT OR IGNORE INTO shares (id, gid, uid, created) VALUES (?,?,?,?)";
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_one(c, err, NULL, owned, "si", id, uid);
    if (rc > 0 && db_run(c, err, share, "siii", id, (int64_t)gid, uid, store_now()) < 0)
        rc = -1;
    return change(s, c, rc, id, "is not yours", err);
}

int store_unshare(struct store *s, const char *id, int64_t uid, uint32_t gid,
                  struct topt_error *err)
{
    static const char sql[] = "DELETE FROM shares WHERE id = ? AND gid = ? AND uid = ?";
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    return change(s, c, db_run(c, err, sql, "sii", id, (int64_t)gid, uid), id,
                  "you do not share it with that group", err);
}

static json_t *row_owner(sqlite3_stmt *st)
{
    return json_pack("{s:I, s:s, s:I}", "uid", (json_int_t)sqlite3_column_int64(st, 0),
                     "name", db_words(st, 1), "created",
                     (json_int_t)sqlite3_column_int64(st, 2));
}

static json_t *row_group(sqlite3_stmt *st)
{
    return json_pack("{s:I, s:I}", "gid", (json_int_t)sqlite3_column_int64(st, 0), "uid",
                     (json_int_t)sqlite3_column_int64(st, 1));
}

json_t *store_access(struct store *s, const char *id, struct topt_error *err)
{
    static const char owners[] =
        "SELECT uid, name, created FROM owners WHERE id = ? ORDER BY created, uid";
    static const char groups[] =
        "SELECT gid, uid FROM shares WHERE id = ? ORDER BY gid, uid";
    struct store_page all = {.limit = 100000};
    json_t *who = NULL, *shared = NULL;
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, err, owners, "s", id);
    if (st)
        who = store_rows(c, st, &all, row_owner, err);
    st = who ? db_bind(c, err, groups, "s", id) : NULL;
    if (st)
        shared = store_rows(c, st, &all, row_group, err);
    store_reader_end(s, c);
    json_t *out =
        who && shared ? json_pack("{s:O, s:O}", "owners", who, "groups", shared) : NULL;
    if (!out && who && shared)
        topt_nomem(err, NULL);
    json_decref(who);
    json_decref(shared);
    return out;
}
