/* keep.c - what is kept how long: uses written down, the cache within its limit, old
 * plans, and what nobody needs.
 *
 * Reads write nothing: that a row was used is noted in a table in memory and written at
 * the next call, and only where the row's last use lies an hour back (a plan's: a day).
 * Two rows that fall on one place of the table lose one note, which the next use makes
 * again.  Every change is a small transaction that waits for nobody; what it can't do now
 * it does at a later call. */
#include "keep.h"

#include <stdlib.h>
#include <string.h>

enum {
    BATCH = 32,        /* rows that a transaction deletes */
    BATCHES = 16,      /* transactions of a call for the cache, which may grow fast */
    COUNT_EVERY_S = 5, /* the cache is added up */
    SWEEP_EVERY_S = 60,
    EXPIRE_EVERY_S = 3600,
    YOUNG_S = 3600, /* what is younger may be about to get its owner */
};

/* ---- uses ---------------------------------------------------------------------------------- */

void store_touch(struct store *s, enum touch what, int64_t row)
{
    size_t at = ((size_t)row * 2 + (size_t)what) % TOUCHES;
    pthread_mutex_lock(&s->touch_lock);
    s->touched[at].what = what;
    s->touched[at].row = row;
    pthread_mutex_unlock(&s->touch_lock);
}

static int write_touch(struct conn *c, enum touch what, int64_t row, int64_t now)
{
    static const char plan[] = "UPDATE plans SET used = ?2 WHERE rowid = ?1";
    static const char answer[] = "UPDATE answers SET used = ?2 WHERE rowid = ?1";
    return db_run(c, NULL, what == TOUCH_PLAN ? plan : answer, "ii", row, now);
}

/* The notes that there are, taken; how many. */
static int take_touches(struct store *s, struct note *ret)
{
    int n = 0;
    pthread_mutex_lock(&s->touch_lock);
    for (int i = 0; i < TOUCHES; i++)
        if (s->touched[i].what) {
            ret[n++] = s->touched[i];
            s->touched[i].what = TOUCH_NONE;
        }
    pthread_mutex_unlock(&s->touch_lock);
    return n;
}

static void write_touches(struct store *s, int64_t now)
{
    struct note note[TOUCHES];
    int n = take_touches(s, note), rc = 0;
    struct conn *c = n ? store_begin(s, CACHE_ONLY, 0, NULL) : NULL;
    for (int i = 0; c && i < n && rc >= 0; i++)
        rc = write_touch(c, note[i].what, note[i].row, now);
    if (c)
        rc = store_end(s, c, rc, NULL);
    for (int i = 0; i < n && (!c || rc < 0); i++) /* next time */
        store_touch(s, note[i].what, note[i].row);
}

/* ---- the cache ----------------------------------------------------------------------------- */

struct old_row {
    int64_t row, bytes;
};

/* Bytes of answers, of an index alone.  -1 where they can't be read. */
static int64_t cached(struct store *s)
{
    static const char sql[] = "SELECT coalesce(sum(bytes), 0) FROM answers";
    int64_t sum = -1;
    struct conn *c = store_reader(s);
    if (db_one(c, NULL, &sum, sql, "") <= 0)
        sum = -1;
    store_reader_end(s, c);
    return sum;
}

/* The least recently used. */
static int oldest(struct conn *c, struct old_row ret[BATCH])
{
    static const char sql[] = "SELECT rowid, bytes FROM answers ORDER BY used LIMIT ?";
    sqlite3_stmt *st = db_bind(c, NULL, sql, "i", (int64_t)BATCH);
    int n = 0;
    while (st && n < BATCH && db_step(c, st, NULL) > 0) {
        ret[n].row = sqlite3_column_int64(st, 0);
        ret[n++].bytes = sqlite3_column_int64(st, 1);
    }
    if (st)
        db_done(st);
    return n;
}

/* One transaction; 'over' bytes are too many.  How many then are; -1 where it can't be done now. */
static int64_t evict(struct store *s, int64_t over)
{
    static const char answer[] = "DELETE FROM answers WHERE rowid = ?";
    struct old_row old[BATCH];
    struct conn *c = store_begin(s, CACHE_ONLY, 0, NULL);
    if (!c)
        return -1;
    int n = oldest(c, old), rc = 0;
    for (int i = 0; i < n && over > 0 && rc >= 0; i++, over -= old[i - 1].bytes)
        rc = db_run(c, NULL, answer, "i", old[i].row);
    atomic_store(&s->orphans, true);
    if (store_end(s, c, rc, NULL) < 0 || !n)
        return -1;
    return over > 0 ? over : 0;
}

static void limit_cache(struct store *s, int64_t now)
{
    if (!atomic_load(&s->grown) || now - s->counted < COUNT_EVERY_S)
        return;
    atomic_store(&s->grown, false);
    int64_t sum = cached(s), most = atomic_load(&s->cache_bytes);
    int64_t over = sum < 0 ? -1 : sum > most ? sum - most : 0;
    for (int i = 0; i < BATCHES && over > 0; i++)
        over = evict(s, over);
    if (over)
        atomic_store(&s->grown, true); /* the rest at the next call */
    else
        s->counted = now;
}

/* ---- plans and models ---------------------------------------------------------------------- */

struct ids {
    char id[BATCH][72];
    int n;
};

/* Ids of rows that may go, as a reader sees them; the transaction looks again. */
static void candidates(struct store *s, const char *sql, int64_t before, struct ids *ret)
{
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, NULL, sql, "ii", before, (int64_t)BATCH);
    ret->n = 0;
    while (st && ret->n < BATCH && db_step(c, st, NULL) > 0) {
        const char *id = db_words(st, 0);
        if (strlen(id) < sizeof *ret->id)
            strcpy(ret->id[ret->n++], id);
    }
    if (st)
        db_done(st);
    store_reader_end(s, c);
}

static int drop_plan(struct conn *c, const char *id)
{
    static const char *const sql[] = {
        "DELETE FROM answers WHERE plan = ?", "DELETE FROM owners WHERE id = ?",
        "DELETE FROM shares WHERE id = ?", "DELETE FROM plans WHERE id = ?"};
    int rc = 0;
    for (int i = 0; i < 4 && rc >= 0; i++)
        rc = db_run(c, NULL, sql[i], "s", id);
    return rc;
}

static int drop_parts(struct conn *c)
{
    static const char sql[] =
        "DELETE FROM parts WHERE NOT EXISTS (SELECT 1 FROM plans WHERE model_part = "
        "parts.id)"
        " AND NOT EXISTS (SELECT 1 FROM plans WHERE hw_part = parts.id)";
    return db_run(c, NULL, sql, "");
}

/* Delete those of 'ids' that 'still' finds; is there more to do? */
static int drop_plans(struct store *s, const struct ids *ids, const char *still,
                      int64_t before)
{
    struct conn *c = ids->n ? store_begin(s, CACHE_ONLY, 0, NULL) : NULL;
    if (!c)
        return ids->n > 0;
    int rc = 0;
    for (int i = 0; i < ids->n && rc >= 0; i++) {
        rc = db_one(c, NULL, NULL, still, "si", ids->id[i], before);
        if (rc > 0)
            rc = drop_plan(c, ids->id[i]);
    }
    if (rc >= 0)
        rc = drop_parts(c);
    atomic_store(&s->orphans, true);
    return store_end(s, c, rc, NULL) < 0 || ids->n == BATCH;
}

/* Plans that nobody used for so long. */
static int expire(struct store *s, int64_t now)
{
    static const char sql[] = "SELECT id FROM plans WHERE used < ? LIMIT ?";
    static const char still[] = "SELECT 1 FROM plans WHERE id = ? AND used < ?";
    struct ids ids;
    int64_t before = now - atomic_load(&s->keep_plans);
    candidates(s, sql, before, &ids);
    return drop_plans(s, &ids, still, before);
}

#define UNOWNED                                                                          \
    " created < ? AND NOT EXISTS (SELECT 1 FROM owners o WHERE o.id = x.id)"             \
    " AND NOT EXISTS (SELECT 1 FROM shares s WHERE s.id = x.id)"

/* Plans that nobody owns, may read, or would be answered with. */
static int sweep_plans(struct store *s, int64_t now)
{
#define NEEDLESS UNOWNED " AND NOT EXISTS (SELECT 1 FROM answers a WHERE a.plan = x.id)"
    static const char sql[] = "SELECT id FROM plans x WHERE" NEEDLESS " LIMIT ?";
    static const char still[] = "SELECT 1 FROM plans x WHERE id = ? AND" NEEDLESS;
#undef NEEDLESS
    struct ids ids;
    candidates(s, sql, now - YOUNG_S, &ids);
    return drop_plans(s, &ids, still, now - YOUNG_S);
}

/* Models that nobody owns or may read, and that no answer and no plan is of. */
static int sweep_models(struct store *s, int64_t now)
{
#define NEEDLESS                                                                         \
    UNOWNED " AND NOT EXISTS (SELECT 1 FROM answers a WHERE a.model = x.id)"             \
            " AND NOT EXISTS (SELECT 1 FROM plans p WHERE p.model = x.id)"
    static const char sql[] = "SELECT id FROM models x WHERE" NEEDLESS " LIMIT ?";
    static const char drop[] = "DELETE FROM models AS x WHERE id = ? AND" NEEDLESS;
#undef NEEDLESS
    struct ids ids;
    candidates(s, sql, now - YOUNG_S, &ids);
    struct conn *c = ids.n ? store_begin(s, CACHE_ONLY, 0, NULL) : NULL;
    if (!c)
        return ids.n > 0;
    int rc = 0;
    for (int i = 0; i < ids.n && rc >= 0; i++)
        rc = db_run(c, NULL, drop, "si", ids.id[i], now - YOUNG_S);
    return store_end(s, c, rc, NULL) < 0 || ids.n == BATCH;
}

static void sweep(struct store *s, int64_t now)
{
    int is_due = now - s->swept >= SWEEP_EVERY_S && atomic_load(&s->orphans);
    if (!is_due && now - s->swept < EXPIRE_EVERY_S)
        return;
    atomic_store(&s->orphans, false);
    int more = expire(s, now);
    more |= sweep_plans(s, now);
    more |= sweep_models(s, now);
    if (!more)
        s->swept = now;
}

void store_keep(struct store *s, int64_t now)
{
    if (now < s->counted || now < s->swept) /* the clock was set back */
        s->counted = s->swept = 0;
    write_touches(s, now);
    limit_cache(s, now);
    sweep(s, now);
}
