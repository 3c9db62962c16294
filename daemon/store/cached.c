/* cached.c - see cached.h. */
#include "cached.h"
#include "keep.h"

enum { TOUCH_AFTER_S = 3600 }; /* the last use is written down to an hour */

int cached_get(struct store *s, const struct cached *table, const struct store_key *key,
               void *ret, struct topt_error *err)
{
    struct topt_error why = {0};
    struct conn *c = store_reader(s);
    sqlite3_stmt *st =
        db_bind(c, &why, table->select, "sss", key->model, key->hw, key->question);
    int rc = st ? db_step(c, st, &why) : -1;
    int64_t row = rc > 0 ? sqlite3_column_int64(st, 0) : 0;
    int64_t used = rc > 0 ? sqlite3_column_int64(st, 1) : 0;
    if (rc > 0)
        rc = table->take(st, ret, &why);
    if (st)
        db_done(st);
    store_reader_end(s, c);
    if (rc < 0 && why.code == TOPT_ERR_IO) {
        (void)!cached_drop(s, table, key, NULL);
        return 0;
    }
    if (rc < 0 && err)
        *err = why;
    if (rc > 0 && store_now() - used > TOUCH_AFTER_S)
        store_touch(s, table->touch, row);
    return rc;
}

int cached_drop(struct store *s, const struct cached *table, const struct store_key *key,
                struct topt_error *err)
{
    struct conn *c = store_begin(s, CACHE_ONLY, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_run(c, err, table->drop, "sss", key->model, key->hw, key->question);
    if (table->orphans)
        atomic_store(&s->orphans, true);
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}
