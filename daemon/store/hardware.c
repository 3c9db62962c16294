/* hardware.c - hardware profiles: versions of a name, of which one is in force, and the default.
 *
 * A profile is replaced by a new version; answers are kept under the
 * profile's id, so exactly those of the version before are stale, and go in the same
 * transaction.  Plans hold their profile, and stay. */
#include "db.h"
#include "topt_digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- putting and dropping ------------------------------------------------------------------ */

/* Answers of a profile that is no longer in force under any name. */
static int drop_stale(struct store *s, struct conn *c, const char *id,
                      struct topt_error *err)
{
    static const char in_force[] = "SELECT 1 FROM hardware WHERE id = ? AND retired = 0";
    static const char answers[] = "DELETE FROM answers WHERE hw = ?";
    int rc = db_one(c, err, NULL, in_force, "s", id);
    if (rc != 0)
        return rc < 0 ? -1 : 0;
    atomic_store(&s->orphans, true);
    atomic_store(&s->grown, true);
    return db_run(c, err, answers, "s", id) < 0 ? -1 : 0;
}

static int retire(struct store *s, struct conn *c, const char *name, const char *id,
                  struct topt_error *err)
{
    static const char sql[] =
        "UPDATE hardware SET retired = ?2 WHERE name = ?1 AND retired = 0";
    return db_run(c, err, sql, "si", name, store_now()) < 0 ? -1
                                                            : drop_stale(s, c, id, err);
}

static int insert(struct conn *c, const struct store_doc *h, int64_t uid,
                  int64_t *ret_version, struct topt_error *err)
{
    static const char last[] =
        "SELECT coalesce(max(version), 0) FROM hardware WHERE name = ?";
    static const char sql[] =
        "INSERT INTO hardware (name, version, id, doc, created, uid, retired)"
        " VALUES (?,?,?,?,?,?,0)";
    if (db_one(c, err, ret_version, last, "s", h->name) < 0)
        return -1;
    ++*ret_version;
    return db_run(c, err, sql, "sissii", h->name, *ret_version, h->id, h->doc,
                  store_now(), uid);
}

/* The id and version in force of a name or id.  1, 0, -1. */
static int in_force(struct conn *c, const char *key, char ret_id[TOPT_ID + 40],
                    char **ret_name, int64_t *ret_version, struct topt_error *err)
{
    static const char sql[] =
        "SELECT id, name, version FROM hardware WHERE retired = 0"
        " AND (name = ?1 OR id = ?1) ORDER BY name = ?1 DESC LIMIT 1";
    sqlite3_stmt *st = db_bind(c, err, sql, "s", key);
    int rc = st ? db_step(c, st, err) : -1;
    if (rc > 0) {
        snprintf(ret_id, TOPT_ID + 40, "%s", db_words(st, 0));
        *ret_version = sqlite3_column_int64(st, 2);
        *ret_name = db_text(st, 1);
        if (!*ret_name || !*ret_id)
            rc = topt_nomem(err, NULL);
    }
    if (st)
        db_done(st);
    return rc;
}

static int put(struct store *s, struct conn *c, const struct store_doc *h, int64_t uid,
               enum store_hw_put how, int64_t *version, struct topt_error *err)
{
    char id[TOPT_ID + 40], *name = NULL;
    int rc = in_force(c, h->name, id, &name, version, err);
    int is_same = rc > 0 && !strcmp(id, h->id);
    if (rc > 0 && is_same)
        rc = 0;
    else if (rc > 0 && how == STORE_HW_ADD)
        rc = topt_fail(err, TOPT_ERR_USAGE,
                       "a profile named '%.60s' is registered already", h->name);
    else if (rc > 0 && retire(s, c, name, id, err) < 0)
        rc = -1;
    free(name);
    if (rc < 0 || is_same)
        return rc;
    return insert(c, h, uid, version, err);
}

int store_put_hw(struct store *s, const struct store_doc *h, int64_t uid,
                 enum store_hw_put how, int *ret_version, struct topt_error *err)
{
    int64_t version = 0;
    if (!*h->name || topt_is_id(h->name))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a profile may not be named as ids are: '%.60s'", h->name);
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = store_end(s, c, put(s, c, h, uid, how, &version, err), err);
    if (ret_version)
        *ret_version = (int)version;
    return rc < 0 ? -1 : rc > 0;
}

int store_drop_hw(struct store *s, const char *key, struct topt_error *err)
{
    char id[TOPT_ID + 40], *name = NULL;
    int64_t version;
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = in_force(c, key, id, &name, &version, err);
    if (rc > 0)
        rc = retire(s, c, name, id, err);
    else if (rc == 0)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "no profile '%.60s'", key);
    free(name);
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}

/* ---- finding ------------------------------------------------------------------------------- */

/* The row's id, name and doc; 'key' for the message. */
static int get(struct store *s, const char *sql, const char *key, char **ret_id,
               char **ret_name, char **ret_doc, struct topt_error *err)
{
    char **out[3] = {ret_id, ret_name, ret_doc};
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, err, sql, *key ? "s" : "", key);
    int rc = st ? db_step(c, st, err) : -1, found = rc > 0;
    for (int i = 0; i < 3; i++) {
        if (!out[i])
            continue;
        *out[i] = found ? db_text(st, i) : NULL;
        if (found && !*out[i])
            rc = topt_nomem(err, NULL);
    }
    if (st)
        db_done(st);
    store_reader_end(s, c);
    if (rc == 0)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "no profile '%.60s'", key);
    for (int i = 0; i < 3 && rc < 0; i++)
        if (out[i]) {
            free(*out[i]);
            *out[i] = NULL;
        }
    return rc < 0 ? -1 : 0;
}

int store_get_hw(struct store *s, const char *key, char **ret_id, char **ret_name,
                 char **ret_doc, struct topt_error *err)
{
    static const char named[] =
        "SELECT id, name, doc FROM hardware WHERE retired = 0"
        " AND (name = ?1 OR id = ?1) ORDER BY name = ?1 DESC LIMIT 1";
    static const char alone[] = "SELECT min(id), min(name), min(doc) FROM hardware"
                                " WHERE retired = 0 HAVING count(*) = 1";
    return get(s, *key ? named : alone, key, ret_id, ret_name, ret_doc, err);
}

int store_get_hw_version(struct store *s, const char *id, char **ret_name, char **ret_doc,
                         struct topt_error *err)
{
    static const char sql[] = "SELECT id, name, doc FROM hardware WHERE id = ?1"
                              " ORDER BY retired = 0 DESC LIMIT 1";
    return get(s, sql, id, NULL, ret_name, ret_doc, err);
}

static json_t *row_hw(sqlite3_stmt *st)
{
    json_t *row =
        json_pack("{s:s, s:s, s:I, s:I, s:I}", "id", db_words(st, 0), "name",
                  db_words(st, 1), "version", (json_int_t)sqlite3_column_int64(st, 2),
                  "created", (json_int_t)sqlite3_column_int64(st, 3), "uid",
                  (json_int_t)sqlite3_column_int64(st, 4));
    if (row && sqlite3_column_int64(st, 5))
        json_object_set_new(row, "retired", json_integer(sqlite3_column_int64(st, 5)));
    return row;
}

json_t *store_list_hw(struct store *s, int all, struct store_page *page,
                      struct topt_error *err)
{
    static const char sql[] =
        "SELECT id, name, version, created, uid, retired FROM hardware"
        " WHERE (retired = 0 OR ?1) AND rowid <"
        " coalesce((SELECT min(rowid) FROM hardware WHERE id = ?2), 1 << 62)"
        " ORDER BY rowid DESC LIMIT ?3";
    struct conn *c = store_reader(s);
    sqlite3_stmt *st =
        db_bind(c, err, sql, "isi", (int64_t)all, page->before, (int64_t)page->limit + 1);
    json_t *out = st ? store_rows(c, st, page, row_hw, err) : NULL;
    store_reader_end(s, c);
    return out;
}

/* ---- the default --------------------------------------------------------------------------- */

int store_default_hw(struct store *s, char **ret_name, struct topt_error *err)
{
    static const char sql[] = "SELECT value FROM settings WHERE name = 'default_hw'";
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, err, sql, "");
    int rc = st ? db_step(c, st, err) : -1;
    *ret_name = rc > 0 ? db_text(st, 0) : NULL;
    if (rc > 0 && !*ret_name)
        rc = topt_nomem(err, NULL);
    if (st)
        db_done(st);
    store_reader_end(s, c);
    return rc < 0 ? -1 : 0;
}

int store_set_default_hw(struct store *s, const char *name, struct topt_error *err)
{
    static const char set[] =
        "INSERT OR REPLACE INTO settings (name, value) VALUES ('default_hw', ?)";
    static const char clear[] = "DELETE FROM settings WHERE name = 'default_hw'";
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = name ? db_run(c, err, set, "s", name) : db_run(c, err, clear, "");
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}
