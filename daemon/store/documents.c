/* documents.c - models: put, found by id or name, listed.
 *
 * A name is an owner's word for a model, so the same document may have several, and a
 * name is looked for among the asking user's own models before those that are shared with
 * the user. */
#include "documents.h"
#include "owners.h"
#include "quota.h"
#include "topt_digest.h"

#include <stdlib.h>
#include <string.h>

/* May the asking user read model m?  ?1 all, ?2 the uid, ?3 the groups; 'o' is the ownership.
 * A plan holds its model, so an owner of a plan may read that too. */
#define READABLE                                                                         \
    "(?1 OR o.uid IS NOT NULL OR EXISTS (SELECT 1 FROM shares s WHERE s.id = m.id"       \
    " AND s.gid IN (SELECT value FROM json_each(?3))) OR EXISTS (SELECT 1 FROM plans p"  \
    " JOIN owners po ON po.id = p.id AND po.uid = ?2 WHERE p.model = m.id))"
#define OWNED " LEFT JOIN owners o ON o.id = m.id AND o.uid = ?2"

/* ---- putting ------------------------------------------------------------------------------- */

int store_add_model(struct conn *c, const struct store_doc *m, int64_t uid,
                    struct topt_error *err)
{
    static const char sql[] =
        "INSERT OR IGNORE INTO models (id, name, doc, created, bytes) VALUES (?,?,?,?,?)";
    const char *name = topt_is_id(m->name) ? "model" : m->name; /* no name is an id */
    int rc = db_run(c, err, sql, "sssii", m->id, name, m->doc, store_now(),
                    (int64_t)strlen(m->doc));
    return rc < 0 || uid < 0 ? rc : store_add_owner(c, m->id, uid, name, err);
}

int store_put_model(struct store *s, const struct store_doc *m, int64_t uid,
                    enum store_full full, struct topt_error *err)
{
    if (topt_is_id(m->name))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a model may not be named as ids are: '%.60s'", m->name);
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = store_add_model(c, m, uid, err);
    if (rc > 0 && store_make_room(s, c, uid, m->id, full, err) < 0)
        rc = -1;
    rc = store_end(s, c, rc, err);
    return rc < 0 ? -1 : rc > 0;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* The columns id, name, doc to whoever wants them. */
static int take(sqlite3_stmt *st, char **out[3], struct topt_error *err)
{
    for (int i = 0; i < 3; i++) {
        if (!out[i])
            continue;
        *out[i] = db_text(st, i);
        if (!*out[i])
            return topt_nomem(err, NULL);
    }
    return 1;
}

static void drop(char **out[3])
{
    for (int i = 0; i < 3; i++)
        if (out[i]) {
            free(*out[i]);
            *out[i] = NULL;
        }
}

/* 1 found, 0, -1. */
static int by_id(struct conn *c, const char *id, const struct reading *r, char **out[3],
                 struct topt_error *err)
{
    static const char sql[] =
        "SELECT m.id, coalesce(nullif(o.name, ''), m.name), m.doc FROM models m" OWNED
        " WHERE m.id = ?4 AND " READABLE;
    sqlite3_stmt *st = db_bind(c, err, sql, "iiss", r->all, r->uid, r->groups, id);
    int rc = st ? db_step(c, st, err) : -1;
    if (rc > 0)
        rc = take(st, out, err);
    if (st)
        db_done(st);
    return rc;
}

/* The id of the only row, copied.  1 one, 0 none or several, -1. */
static int only(struct conn *c, sqlite3_stmt *st, char **ret, struct topt_error *err)
{
    int rc = st ? db_step(c, st, err) : -1;
    *ret = NULL;
    if (rc > 0) {
        *ret = db_text(st, 0);
        rc = *ret ? db_step(c, st, err) : topt_nomem(err, NULL);
        if (rc == 0)
            rc = 1;
        else {
            free(*ret);
            *ret = NULL;
            rc = rc > 0 ? 0 : -1;
        }
    }
    if (st)
        db_done(st);
    return rc;
}

/* One's own first; several of the name are none. */
static int by_name(struct conn *c, const char *name, const struct reading *r,
                   char **out[3], struct topt_error *err)
{
    static const char own[] = "SELECT o.id FROM owners o JOIN models m ON m.id = o.id"
                              " WHERE o.uid = ? AND o.name = ? LIMIT 2";
    static const char any[] = "SELECT 1 FROM owners o JOIN models m ON m.id = o.id"
                              " WHERE o.uid = ? AND o.name = ?";
    static const char shared[] =
        "SELECT m.id FROM models m" OWNED " WHERE m.name = ?4 AND " READABLE " LIMIT 2";
    char *id = NULL;
    int rc = only(c, db_bind(c, err, own, "is", r->uid, name), &id, err);
    int mine = rc == 0 ? db_one(c, err, NULL, any, "is", r->uid, name) : 0;
    if (mine < 0)
        return -1;
    if (rc == 0 && !mine)
        rc = only(c, db_bind(c, err, shared, "iiss", r->all, r->uid, r->groups, name),
                  &id, err);
    if (rc > 0)
        rc = by_id(c, id, r, out, err);
    free(id);
    return rc;
}

int store_get_model(struct store *s, const char *key, const struct store_who *who,
                    char **ret_id, char **ret_name, char **ret_doc,
                    struct topt_error *err)
{
    char **out[3] = {ret_id, ret_name, ret_doc};
    struct reading r;
    for (int i = 0; i < 3; i++)
        if (out[i])
            *out[i] = NULL;
    if (store_reading(who, &r, err) < 0)
        return -1;
    struct conn *c = store_reader(s);
    int rc = by_id(c, key, &r, out, err);
    if (rc == 0)
        rc = by_name(c, key, &r, out, err);
    store_reader_end(s, c);
    store_reading_fini(&r);
    if (rc == 0)
        topt_fail(err, TOPT_ERR_NOTFOUND, "no model '%.60s'", key);
    if (rc <= 0)
        drop(out);
    return rc > 0 ? 0 : -1;
}

/* ---- listing ------------------------------------------------------------------------------- */

static json_t *row_model(sqlite3_stmt *st)
{
    return json_pack("{s:s, s:s, s:I, s:b}", "id", db_words(st, 0), "name",
                     db_words(st, 1), "created", (json_int_t)sqlite3_column_int64(st, 2),
                     "own", sqlite3_column_int(st, 3));
}

json_t *store_list_models(struct store *s, const struct store_who *who,
                          struct store_page *page, struct topt_error *err)
{
    static const char sql[] =
        "SELECT m.id, coalesce(nullif(o.name, ''), m.name), m.created, o.uid IS NOT NULL"
        " FROM models m" OWNED " WHERE " READABLE
        " AND m.rowid < coalesce((SELECT rowid FROM models WHERE id = ?4), 1 << 62)"
        " ORDER BY m.rowid DESC LIMIT ?5";
    return store_readable(s, who, sql, page, row_model, err);
}
