/* frontiers.c - frontiers of every count, from which questions that differ in little are answered.
 *
 * They are a cache as answers are, share their limit of bytes, and go with their profile. */
#include "cached.h"

#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES = 256 /* what a row takes beside its texts */ };

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

struct bytes {
    void *data; /* owned */
    size_t len;
};

static int take(sqlite3_stmt *st, void *ret, struct topt_error *err)
{
    const void *data = sqlite3_column_blob(st, 2);
    size_t len = (size_t)sqlite3_column_bytes(st, 2);
    void *copy = len && !data ? NULL : malloc(len + 1);
    if (!copy)
        return topt_nomem(err, NULL);
    if (len)
        memcpy(copy, data, len);
    *(struct bytes *)ret = (struct bytes){copy, len};
    return 1;
}

static const struct cached frontiers = {
    .select = "SELECT rowid, used, doc FROM frontiers"
              " WHERE model = ? AND hw = ? AND question = ?",
    .take = take,
    .drop = "DELETE FROM frontiers WHERE model = ? AND hw = ? AND question = ?",
    .touch = TOUCH_FRONTIER};

int store_get_frontier(struct store *s, const struct store_key *key, void **ret,
                       size_t *ret_len, struct topt_error *err)
{
    struct bytes found = {0};
    int rc = cached_get(s, &frontiers, key, &found, err);
    *ret = found.data;
    *ret_len = found.len;
    return rc;
}

int store_drop_frontier(struct store *s, const struct store_key *key,
                        struct topt_error *err)
{
    return cached_drop(s, &frontiers, key, err);
}
