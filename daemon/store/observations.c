/* observations.c - what jobs measured of the plans that they ran.
 *
 * A job has one row for a plan: it may report again, and then the later report counts.  Who may report for which job, and
 * what a report is worth, is not decided here. */
#include "db.h"

#include <stdlib.h>

int store_put_observation(struct store *s, const struct store_observation *o,
                          int64_t *ret_id, struct topt_error *err)
{
    static const char sql[] =
        "INSERT INTO observations (plan, model, hw, cluster, job, uid, gpus, step_ns,"
        " peak_bytes, steps, confirmed, created) VALUES "
        "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)"
        " ON CONFLICT (cluster, job, uid, plan) DO UPDATE SET gpus = ?7, step_ns = ?8,"
        " peak_bytes = ?9, steps = ?10, confirmed = max(confirmed, ?11), created = ?12";
    static const char id[] = "SELECT id FROM observations"
                             " WHERE cluster = ? AND job = ? AND uid = ? AND plan = ?";
    struct conn *c = store_begin(s, DURABLE, STORE_WAIT_MS, err);
    if (!c)
        return -1;
    int rc = db_run(c, err, sql, "ssssiiiiiiii", o->plan, o->model, o->hw, o->cluster,
                    o->job, o->uid, o->gpus, o->step_ns, o->peak_bytes, o->steps,
                    (int64_t)o->confirmed, store_now());
    if (rc >= 0)
        rc = db_one(c, err, ret_id, id, "siis", o->cluster, o->job, o->uid, o->plan);
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
    static const char *const numbers[] = {"id",    "job",       "uid",
                                          "gpus",  "step_ns",   "peak_bytes",
                                          "steps", "confirmed", "created"};
    json_t *row = json_object();
    int bad = !row;
    for (int i = 0; i < 4; i++)
        bad |= json_object_set_new(row, texts[i], json_string(db_words(st, i)));
    for (int i = 0; i < 9; i++)
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
        " confirmed, created FROM observations WHERE (?1 IS NULL OR model = ?1)"
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
