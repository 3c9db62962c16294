/* frontiers.c - frontiers of every count, from which questions that differ in little are answered.
 *
 * They are a cache as answers are, share their limit of bytes, and go with their profile. */
#include "db.h"

#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES = 256, TOUCH_AFTER_S = 3600 };

int store_put_frontier(struct store *s, const struct store_key *key, const void *data,
                       size_t len, struct topt_error *err)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO frontiers (model, hw, question, doc, bytes, used, "
        "created)"
        " SELECT ?1,?2,?3,?4,?5,?6,?6 WHERE NOT EXISTS (SELECT 1 FROM hardware WHERE id "
        "= ?2)"
        " OR EXISTS (SELECT 1 FROM hardware WHERE id = ?2 AND retired = 0)";
    struct conn *c = store_begin(s, CACHE_ONLY, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_run(c, err, sql, "sssbii", key->model, key->hw, key->question, data, len,
                    (int64_t)(len + strlen(key->question) + ROW_BYTES), store_now());
    atomic_store(&s->grown, true);
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}

static int take(sqlite3_stmt *st, void **ret, size_t *ret_len, struct topt_error *err)
{
    const void *data = sqlite3_column_blob(st, 2);
    size_t len = (size_t)sqlite3_column_bytes(st, 2);
    void *copy = len && !data ? NULL : malloc(len + 1);
    if (!copy)
        return topt_nomem(err, NULL);
    if (len)
        memcpy(copy, data, len);
    *ret = copy;
    *ret_len = len;
    return 1;
}

int store_get_frontier(struct store *s, const struct store_key *key, void **ret,
                       size_t *ret_len, struct topt_error *err)
{
    static const char sql[] = "SELECT rowid, used, doc FROM frontiers"
                              " WHERE model = ? AND hw = ? AND question = ?";
    struct topt_error why = {0};
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, &why, sql, "sss", key->model, key->hw, key->question);
    int rc = st ? db_step(c, st, &why) : -1;
    int64_t row = rc > 0 ? sqlite3_column_int64(st, 0) : 0;
    int64_t used = rc > 0 ? sqlite3_column_int64(st, 1) : 0;
    if (rc > 0)
        rc = take(st, ret, ret_len, &why);
    if (st)
        db_done(st);
    store_reader_end(s, c);
    if (rc < 0 && why.code == TOPT_ERR_IO) {
        (void)!store_drop_frontier(s, key, NULL);
        return 0;
    }
    if (rc < 0 && err)
        *err = why;
    if (rc > 0 && store_now() - used > TOUCH_AFTER_S)
        store_touch(s, TOUCH_FRONTIER, row);
    return rc;
}

int store_drop_frontier(struct store *s, const struct store_key *key,
                        struct topt_error *err)
{
    static const char sql[] =
        "DELETE FROM frontiers WHERE model = ? AND hw = ? AND question = ?";
    struct conn *c = store_begin(s, CACHE_ONLY, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_run(c, err, sql, "sss", key->model, key->hw, key->question);
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}
