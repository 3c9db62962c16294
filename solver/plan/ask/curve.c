/* curve.c - the best time for each number of devices as a point, whole curves of them, and how well
 * each number is used. */
#include "best.h"
#include "plan_check.h"
#include "document.h"
#include "grid.h"
#include "memo.h"
#include "planning.h"
#include "request.h"
#include "strategy_words.h"
#include "topt_json.h"
#include "topt_named_points.h"
#include "topt_plan_doc.h"
#include "topt_question.h"

#include <stdlib.h>

/* ---- points ------------------------------------------------------------------------ */

/* The best of a count, costed from scratch: its words, its cost by part and the band of the
 * prediction.  New; NULL: failed. */
static json_t *check(struct topt_planning *m, const struct topt_best *b,
                     struct topt_error *err)
{
    struct topt_grid_search s;
    struct topt_strategy_cost cost;
    struct topt_costing k;
    int64_t peak;
    int rc =
        topt_grid_open(&s, m, b->mesh.nodes, b->mesh.per_node, TOPT_GOAL_FASTEST, err) ||
        topt_grid_costing(&s, &b->solution.degrees, &k, err) ||
        topt_plan_check(&k, b->solution.strategy, b->solution.memory_bytes,
                        b->solution.time_ns, &cost, &peak, err);
    topt_grid_close(&s);
    if (rc)
        return NULL;
    char *words = topt_solution_words(
        b->space == TOPT_SPACE_UNIFORM ? m->request->framework : NULL, m->request->model,
        &b->mesh, b->solution.strategy, &b->solution.degrees);
    json_t *o = json_pack(
        "{s:s, s:I, s:I, s:I, s:o}", "strategy", words ? words : "", "peak_bytes",
        (json_int_t)peak, "compute_ns", (json_int_t)cost.sum.compute_ns, "network_ns",
        (json_int_t)cost.sum.network_ns, "band",
        topt_prediction_band(m->request->hw, &m->request->settings, &cost, peak));
    free(words);
    if (!o)
        topt_nomem(err, "the curve");
    return o;
}

/* Put this into a point; a point of the memo is checked once. */
static int put_checked(struct topt_planning *m, const struct topt_best *b, json_t *point,
                       struct topt_error *err)
{
    struct topt_memo_point *known = b->solution.memo;
    json_t *o = known && known->checked ? json_incref(known->checked) : check(m, b, err);
    if (!o)
        return -1;
    json_object_update(point, o);
    if (known && !known->checked)
        known->checked = json_incref(o);
    json_decref(o);
    return 0;
}

int topt_best_point(struct topt_planning *m, const struct topt_best *b, int64_t gpus,
                    json_t **ret, struct topt_error *err)
{
    int rc = 0;
    json_t *p = json_pack("{s:I, s:o, s:I}", "gpus", (json_int_t)gpus, "feasible",
                          topt_fits_json(topt_best_fits(b)), "limit",
                          (json_int_t)topt_request_limit(m->request));
    if (b->stopped)
        json_object_set_new(p, "stopped", json_true());
    if (!b->found && b->certificate.decided)
        topt_certificate_write(p, m->request->model, &b->certificate);
    if (b->found) {
        char space[48];
        json_object_set_new(p, "nodes", json_integer(b->mesh.nodes));
        json_object_set_new(p, "memory_bytes", json_integer(b->solution.memory_bytes));
        json_object_set_new(p, "time_ns", json_integer(b->solution.time_ns));
        topt_certificate_write(p, m->request->model, &b->certificate);
        json_object_set_new(
            p, "space",
            json_string(topt_space_words(b->space, b->alike, space, sizeof space)));
        rc = put_checked(m, b, p, err);
        topt_put_verdict(p, m->request->hw, topt_request_limit(m->request));
    }
    if (rc)
        json_decref(p);
    else
        *ret = p;
    return rc;
}

int topt_count_point(struct topt_planning *m, int64_t gpus, int64_t slowest_ns,
                     json_t **ret, struct topt_error *err)
{
    struct topt_best b = {.certificate = topt_certificate_exact()};
    int64_t limit = topt_request_limit(m->request);
    *ret = NULL;
    if (topt_count_least_bytes(m, gpus) <= limit &&
        topt_count_solve(m, gpus, limit, slowest_ns, TOPT_GOAL_FASTEST, &b, err))
        return -1;
    int known = b.found || !b.stopped;
    int rc = known ? topt_best_point(m, &b, gpus, ret, err) : 0;
    topt_best_fini(&b);
    return rc;
}

/* ---- whole curves ------------------------------------------------------------------- */

/* A count whose GPUs can't share the batch: which batches they could. */
static json_t *unshared_point(const struct topt_request *r, int64_t gpus,
                              const int64_t nearest[2])
{
    json_t *p = json_pack("{s:I, s:b, s:I, s:[]}", "gpus", (json_int_t)gpus, "feasible",
                          0, "limit", (json_int_t)topt_request_limit(r), "batches");
    for (int i = 0; i < 2; i++)
        if (nearest[i])
            json_array_append_new(json_object_get(p, "batches"),
                                  json_integer(nearest[i]));
    return p;
}

static int put_points(struct topt_planning *m, const int64_t *count, int n, json_t *curve,
                      struct topt_error *err)
{
    json_t *points = json_object_get(curve, "points"), *p;
    for (int i = 0; i < n; i++) {
        int64_t nearest[2];
        if (!topt_count_divides_batch(m, count[i], nearest)) {
            json_array_append_new(points, unshared_point(m->request, count[i], nearest));
            continue;
        }
        if (topt_count_point(m, count[i], 0, &p, err))
            return -1;
        int stopped = !p || json_object_get(p, "stopped");
        if (p) {
            json_object_del(p, "stopped");
            json_array_append_new(points, p);
        }
        if (stopped) {
            topt_answer_put_stopped(curve, m);
            return 0;
        }
    }
    return 0;
}

static int any_fits(const json_t *curve)
{
    const json_t *points = json_object_get(curve, "points");
    for (size_t i = 0; i < json_array_size(points); i++)
        if (!json_is_false(json_object_get(json_array_get(points, i), "feasible")))
            return 1;
    return json_object_get(curve, "stopped") != NULL;
}

static int put_curve(struct topt_planning *m, const int64_t *count, int n, json_t *curve,
                     struct topt_error *err)
{
    for (int i = 0; !any_fits(curve) && topt_planning_resort(m, &i);) {
        json_array_clear(json_object_get(curve, "points"));
        if (put_points(m, count, n, curve, err))
            return -1;
    }
    return 0;
}

static json_t *curve_head(const struct topt_request *r)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:I, s:[]}", "format",
                     "topt-curve/1", "model", r->model->name, "hw", topt_hw_name(r->hw),
                     "batch", (json_int_t)r->model->batch, "seq",
                     (json_int_t)r->model->seq, "space", topt_space_name(r->space),
                     "precision", topt_precision_of(&r->settings)->name, "dtype",
                     topt_dtype_name(r->settings.dtype), "optimizer",
                     topt_optimizer_name(r->settings.optimizer), "memory_limit",
                     (json_int_t)topt_request_limit(r), "points");
}

int topt_answer_curve(const struct topt_request *r, struct topt_memo *memo, json_t **ret,
                      struct topt_error *err)
{
    struct topt_planning m;
    int64_t *count;
    int n;
    *ret = NULL;
    if ((r->mode == TOPT_PROFILING && topt_request_check(r, err)) ||
        topt_planning_init(&m, r, err))
        return -1;
    m.memo = memo;
    if (topt_request_counts(r, &count, &n, err)) {
        topt_planning_fini(&m);
        return -1;
    }
    json_t *curve = curve_head(r);
    json_object_set_new(curve, "assumed", topt_request_assumed(r));
    topt_request_put_lacks(r, curve);
    int rc = put_curve(&m, count, n, curve, err);
    free(count);
    topt_planning_fini(&m);
    if (rc) {
        json_decref(curve);
        return -1;
    }
    json_t *points = json_object_get(curve, "points");
    json_object_set(
        curve, "knee",
        json_object_get(json_array_get(points, (size_t)topt_rate_points(points)),
                        "gpus"));
    topt_totals_put(curve, &r->totals);
    *ret = curve;
    return 0;
}
