/* observations.c - what jobs measured of the plans that they ran.
 *
 * A job has one row for a plan: it may report again, and then the later report counts.
 * Who may report for which job, and what a report is worth, is not decided here. */
#include "db.h"

#include <stdlib.h>

static int put(struct conn *c, const struct store_observation *o, struct topt_error *err)
{
    static const char sql[] =
        "INSERT INTO observations (plan, model, hw, cluster, job, uid, gpus, step_ns,"
        " peak_bytes, steps, confirmed, created, said_time_ns, said_memory_bytes) VALUES "
        "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)"
        " ON CONFLICT (cluster, job, uid, plan) DO UPDATE SET gpus = ?7, step_ns = ?8,"
        " peak_bytes = ?9, steps = ?10, confirmed = max(confirmed, ?11), created = ?12,"
        " said_time_ns = ?13, said_memory_bytes = ?14";
    return db_run(c, err, sql, "ssssiiiiiiiiii", o->plan, o->model, o->hw, o->cluster,
                  o->job, o->uid, o->gpus, o->step_ns, o->peak_bytes, o->steps,
                  (int64_t)o->confirmed, store_now(), o->said_time_ns,
                  o->said_memory_bytes);
}

/* What is the oldest of a user, for a model and a profile, goes. */
static int limit(struct conn *c, const struct store_observation *o,
                 struct topt_error *err)
{
    static const char sql[] =
        "DELETE FROM observations WHERE id IN (SELECT id FROM observations"
        " WHERE uid = ? AND model = ? AND hw = ? ORDER BY created DESC, id DESC"
        " LIMIT -1 OFFSET ?)";
    return db_run(c, err, sql, "issi", o->uid, o->model, o->hw,
                  (int64_t)STORE_OBSERVATIONS);
}

int store_put_observation(struct store *s, const struct store_observation *o,
                          int64_t *ret_id, struct topt_error *err)
{
    static const char id[] = "SELECT id FROM observations"
                             " WHERE cluster = ? AND job = ? AND uid = ? AND plan = ?";
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = put(c, o, err);
    if (rc >= 0)
        rc = db_one(c, err, ret_id, id, "siis", o->cluster, o->job, o->uid, o->plan);
    if (rc >= 0)
        rc = limit(c, o, err);
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}

/* One row by its id; NOTFOUND. */
static int change(struct store *s, const char *sql, int64_t id, struct topt_error *err)
{
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_run(c, err, sql, "i", id);
    if (rc == 0)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "no observation %lld", (long long)id);
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}

int store_confirm_observation(struct store *s, int64_t id, struct topt_error *err)
{
    static const char sql[] = "UPDATE observations SET confirmed = 1 WHERE id = ?";
    return change(s, sql, id, err);
}

int store_drop_observation(struct store *s, int64_t id, struct topt_error *err)
{
    static const char sql[] = "DELETE FROM observations WHERE id = ?";
    return change(s, sql, id, err);
}

static json_t *row_observation(sqlite3_stmt *st)
{
    static const char *const texts[] = {"plan", "model", "hw", "cluster"};
    static const char *const numbers[] = {"id",
                                          "job",
                                          "uid",
                                          "gpus",
                                          "step_ns",
                                          "peak_bytes",
                                          "steps",
                                          "confirmed",
                                          "created",
                                          "said_time_ns",
                                          "said_memory_bytes",
                                          "counts"};
    json_t *row = json_object();
    int bad = !row;
    for (int i = 0; i < 4; i++)
        bad |= json_object_set_new(row, texts[i], json_string(db_words(st, i)));
    for (int i = 0; i < 12; i++)
        bad |= json_object_set_new(row, numbers[i],
                                   json_integer(sqlite3_column_int64(st, 4 + i)));
    if (!bad)
        return row;
    json_decref(row);
    return NULL;
}

json_t *store_list_observations(struct store *s, const char *model, const char *hw,
                                int64_t uid, struct store_page *page,
                                struct topt_error *err)
{
    static const char sql[] =
        "SELECT plan, model, hw, cluster, id, job, uid, gpus, step_ns, peak_bytes, steps,"
        " confirmed, created, said_time_ns, said_memory_bytes, counts"
        " FROM observations WHERE (?1 IS NULL OR model = ?1)"
        " AND (?2 IS NULL OR hw = ?2) AND (?3 < 0 OR uid = ?3) AND id < ?4"
        " ORDER BY id DESC LIMIT ?5";
    int64_t before =
        page->before && *page->before ? strtoll(page->before, NULL, 10) : INT64_MAX;
    struct conn *c = store_reader(s);
    sqlite3_stmt *st =
        db_bind(c, err, sql, "ssiii", model, hw, uid, before, (int64_t)page->limit + 1);
    json_t *out = st ? store_rows(c, st, page, row_observation, err) : NULL;
    store_reader_end(s, c);
    return out;
}

/* ---- for corrections ------------------------------------------------------------------------- */

int store_measured(struct store *s, const char *model, const char *hw, int64_t uid,
                   struct store_measured *ret, int most, struct topt_error *err)
{
    /* max() makes the columns beside it those of the row that has it. */
    static const char sql[] =
        "SELECT uid, step_ns, peak_bytes, said_time_ns, said_memory_bytes, confirmed FROM"
        " (SELECT *, row_number() OVER (PARTITION BY uid ORDER BY last DESC) AS place "
        "FROM"
        "  (SELECT uid, step_ns, peak_bytes, said_time_ns, said_memory_bytes, confirmed,"
        "   max(created) AS last FROM observations"
        "   WHERE model = ?1 AND hw = ?2 AND counts AND (confirmed OR uid = ?3)"
        "   GROUP BY cluster, job, uid))"
        " WHERE place <= ?4 ORDER BY place LIMIT ?5";
    int n = 0, rc;
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, err, sql, "ssiii", model, hw, uid,
                               (int64_t)STORE_MEASURED_EACH, (int64_t)most);
    rc = st ? db_step(c, st, err) : -1;
    for (; rc > 0 && n < most; rc = db_step(c, st, err))
        ret[n++] = (struct store_measured){
            sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
            sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3),
            sqlite3_column_int64(st, 4), sqlite3_column_int(st, 5)};
    if (st)
        db_done(st);
    store_reader_end(s, c);
    return rc < 0 ? -1 : n;
}

static json_t *row_measured(sqlite3_stmt *st)
{
    return json_pack("{s:s, s:s}", "model", db_words(st, 0), "hw", db_words(st, 1));
}

json_t *store_list_measured(struct store *s, int64_t uid, struct store_page *page,
                            struct topt_error *err)
{
    static const char sql[] =
        "SELECT model, hw, max(created) AS last FROM observations"
        " WHERE ?1 < 0 OR uid = ?1 GROUP BY model, hw ORDER BY last DESC LIMIT ?2";
    struct conn *c = store_reader(s);
    sqlite3_stmt *st = db_bind(c, err, sql, "ii", uid, (int64_t)page->limit + 1);
    json_t *out = st ? store_rows(c, st, page, row_measured, err) : NULL;
    store_reader_end(s, c);
    return out;
}

int store_reset_measured(struct store *s, const char *model, const char *hw,
                         struct topt_error *err)
{
    static const char sql[] =
        "UPDATE observations SET counts = 0 WHERE model = ? AND hw = ? AND counts";
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_run(c, err, sql, "ss", model, hw);
    if (rc == 0)
        rc = topt_fail(err, TOPT_ERR_NOTFOUND, "nothing that was measured counts there");
    return store_end(s, c, rc, err) < 0 ? -1 : 0;
}
