/* answer.c - requests for one plan answered: counts of devices tried, the best plan checked and
 * written down, with why it is the one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithm.h"
#include "answer.h"
#include "document.h"
#include "topt_text.h"

/* ---- writing ------------------------------------------------------------------------------- */

static json_t *answer_json(const struct topt_plan_facts *f, const struct topt_best *b,
                           json_t *plan)
{
    const struct topt_problem_stats *stats = &b->stats;
    const struct topt_strategy_cost *c = f->cost;
    const struct topt_mesh *mesh = f->k->mesh;
    char space[48];
    json_t *a = json_pack(
        "{s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:O, s:s}", "feasible",
        1, "gpus", mesh->devices, "nodes", mesh->nodes, "gpus_per_node", mesh->per_node,
        "memory_bytes", (json_int_t)c->memory_bytes, "peak_bytes",
        (json_int_t)f->peak_bytes, "memory_limit", (json_int_t)f->memory_limit, "time_ns",
        (json_int_t)c->time_ns, "compute_ns", (json_int_t)c->sum.compute_ns, "network_ns",
        (json_int_t)c->sum.network_ns, "why", f->why, "strategy",
        json_object_get(plan, "strategy"), "space",
        topt_space_words(f->space, f->alike, space, sizeof space));
    topt_claim_write(a, f->model, f->claim);
    if (b->stopped)
        json_object_set_new(a, "stopped", json_true());
    json_object_set_new(a, "micro_batches", json_integer(f->k->settings->micro_batches));
    json_t *predicted = json_object_get(plan, "predicted");
    json_object_set(a, "memory_parts", json_object_get(predicted, "memory_parts"));
    json_object_set(a, "band", json_object_get(predicted, "band"));
    json_t *uniform = json_object_get(plan, "uniform");
    if (uniform)
        json_object_set(a, "uniform", uniform);
    json_object_set_new(a, "configs", json_integer(stats->configs));
    json_object_set_new(a, "layouts", json_integer(stats->layouts));
    json_object_set_new(a, "edge_entries", json_integer(stats->edge_entries));
    json_object_set_new(a, "stats", topt_work_json(&b->claim.stats));
    json_object_set_new(a, "pricing", topt_pricing_json(stats));
    json_object_set_new(a, "plan_id", json_incref(json_object_get(plan, "id")));
    json_object_set_new(a, "plan", plan);
    return a;
}

/* What the system that packs gradients takes for the plan. */
static int put_fused(const struct topt_costing *k, const struct topt_strategy *s,
                     json_t *answer, struct topt_error *err)
{
    struct topt_fused_cost c;
    if (topt_cost_fused(k, s, &topt_horovod, &c, err))
        return -1;
    json_object_set_new(answer, "fused",
                        json_pack("{s:I, s:I, s:I, s:I, s:i}", "time_ns",
                                  (json_int_t)c.time_ns, "exposed_ns",
                                  (json_int_t)c.exposed_ns, "reduce_ns",
                                  (json_int_t)c.reduce_ns, "apart_ns",
                                  (json_int_t)c.apart_ns, "buckets", c.buckets));
    return 0;
}

/* Check the plan and write it with everything that is said about it. */
static int write_checked(struct topt_shape_search *s, const struct topt_best *b,
                         const char *why, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = s->request;
    const struct topt_solution *best = &b->solution;
    struct topt_strategy_cost cost;
    struct topt_costing k;
    struct topt_plan_facts f = {.k = &k,
                                .model = r->model,
                                .strategy = best->strategy,
                                .cost = &cost,
                                .space = b->space,
                                .alike = b->alike,
                                .variant = &best->variant,
                                .algorithm = r->algorithm,
                                .mode = topt_mode_name(r->mode),
                                .why = why,
                                .memory_limit = topt_request_limit(r),
                                .claim = &b->claim};
    if (topt_shape_costing(s, &best->variant, &k, err) ||
        topt_plan_check(&k, best->strategy, best->memory_bytes, best->time_ns, &cost,
                        &f.peak_bytes, err))
        return -1;
    json_t *plan = topt_plan_write(&f, err);
    if (!plan)
        return -1;
    *ret = answer_json(&f, b, plan);
    if (!*ret)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the plan");
    return s->algorithm && s->algorithm->fused ? put_fused(&k, best->strategy, *ret, err)
                                               : 0;
}

static int write_answer(struct topt_micros *m, const struct topt_best *b, const char *why,
                        json_t **ret, struct topt_error *err)
{
    struct topt_shape_search s;
    int rc =
        topt_shape_open(&s, m, b->mesh.nodes, b->mesh.per_node, TOPT_GOAL_FASTEST, err) ||
        write_checked(&s, b, why, ret, err);
    topt_shape_close(&s);
    return rc ? -1 : 0;
}

/* ---- when nothing fits --------------------------------------------------------------------- */

/* An answer without a plan. */
static int no_plan(const struct topt_request *r, enum topt_fits fits, const char *why,
                   json_t **ret, struct topt_error *err)
{
    *ret = json_pack("{s:o, s:s, s:I}", "feasible", topt_fits_json(fits), "why", why,
                     "memory_limit", (json_int_t)topt_request_limit(r));
    return *ret ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer");
}

static int unfinished(const struct topt_request *r, int64_t gpus, json_t **ret,
                      struct topt_error *err)
{
    char why[200];
    snprintf(
        why, sizeof why,
        "stopped before anything was found that fits on %lld GPUs; give more time or "
        "work, or take a smaller space (--space uniform)",
        (long long)gpus);
    if (no_plan(r, TOPT_FITS_UNKNOWN, why, ret, err))
        return -1;
    json_object_set_new(*ret, "stopped", json_true());
    return 0;
}

/* Not even what is lightest was found. */
static int none_at_all(const struct topt_request *r, const struct topt_best *b,
                       int64_t gpus, json_t **ret, struct topt_error *err)
{
    char why[120];
    if (topt_best_fits(b) == TOPT_FITS_NOT)
        return topt_fail(err, TOPT_ERR_INFEASIBLE, "no plan for %lld GPUs in this space",
                         (long long)gpus);
    snprintf(
        why, sizeof why,
        "no plan was found for %lld GPUs, as operators were decided by heuristic; give "
        "more --max-entries",
        (long long)gpus);
    return no_plan(r, TOPT_FITS_UNKNOWN, why, ret, err);
}

static json_t *nearest_json(const struct topt_best *b)
{
    return json_pack("{s:i, s:i, s:I, s:I}", "gpus", b->mesh.devices, "nodes",
                     b->mesh.nodes, "memory_bytes", (json_int_t)b->solution.memory_bytes,
                     "time_ns", (json_int_t)b->solution.time_ns);
}

/* The lightest that was found takes more than there is.  That nothing fits is not proven where operators were decided
 * by heuristic, for it or on a smaller number of GPUs ('doubt'), or something may need as much less. */
static int too_heavy(const struct topt_request *r, const struct topt_best *b,
                     int64_t gpus, int doubt, json_t **ret, struct topt_error *err)
{
    int64_t floor = topt_best_floor(b), limit = topt_request_limit(r);
    int open = b->claim.decided || floor <= limit;
    char have[32], need[32], why[200];
    topt_show_bytes(limit, have, sizeof have);
    topt_show_bytes(open ? b->solution.memory_bytes : floor, need, sizeof need);
    snprintf(
        why, sizeof why,
        b->claim.decided
            ? "nothing was found that fits in %s a GPU: %lld GPUs need %s with operators "
              "decided by heuristic, perhaps less with more --max-entries"
        : open
            ? "nothing was found that fits in %s a GPU: %lld GPUs need %s, perhaps less"
        : doubt ? "nothing was found that fits in %s a GPU: %lld GPUs need at least %s, "
                  "of fewer it is not known"
                : "nothing fits in %s a GPU: %lld GPUs need at least %s",
        have, (long long)gpus, need);
    if (no_plan(r, open || doubt ? TOPT_FITS_UNKNOWN : TOPT_FITS_NOT, why, ret, err))
        return -1;
    json_object_set_new(*ret, "nearest", nearest_json(b));
    return 0;
}

static int infeasible(struct topt_micros *m, int64_t gpus, int doubt, json_t **ret,
                      struct topt_error *err)
{
    const struct topt_request *r = m->request;
    struct topt_best b;
    if (topt_count_solve(m, gpus, 0, TOPT_GOAL_LEAST, &b, err))
        return topt_request_stopped(r) ? unfinished(r, gpus, ret, err) : -1;
    int rc = b.found ? too_heavy(r, &b, gpus, doubt, ret, err)
                     : none_at_all(r, &b, gpus, ret, err);
    if (!rc && b.claim.decided) {
        b.claim.epsilon = INFINITY; /* of times */
        topt_claim_write(*ret, r->model, &b.claim);
    }
    topt_best_fini(&b);
    return rc;
}

/* ---- the modes ----------------------------------------------------------------------------- */

static int mini_time(struct topt_micros *m, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    struct topt_best b;
    char why[160], limit[32];
    if (topt_count_solve(m, r->gpus, topt_request_limit(r), TOPT_GOAL_FASTEST, &b, err))
        return -1;
    if (!b.found) {
        int gave_up = b.stopped;
        topt_best_fini(&b);
        return gave_up ? unfinished(r, r->gpus, ret, err)
                       : infeasible(m, r->gpus, 0, ret, err);
    }
    snprintf(why, sizeof why, "%s on %d GPU%s within %s a GPU",
             b.stopped ? "fastest found so far" : "fastest", b.mesh.devices,
             b.mesh.devices > 1 ? "s" : "",
             topt_show_bytes(topt_request_limit(r), limit, sizeof limit));
    int rc = write_answer(m, &b, why, ret, err);
    topt_best_fini(&b);
    return rc;
}

/* Counts tried for the fewest. */
struct fewest {
    struct topt_best best;
    int64_t gpus;  /* where that is, or the search was stopped */
    int64_t fewer; /* the count before; 0: none */
    int64_t
        doubt; /* the first count of which it is not known whether anything fits; 0: none */
};

/* Why the count before was not enough. */
static int why_not_fewer(struct topt_micros *m, const struct fewest *f, char *why,
                         size_t size, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    char limit[32], need[32];
    topt_show_bytes(topt_request_limit(r), limit, sizeof limit);
    if (!f->fewer) {
        snprintf(why, size, "it fits on one GPU of %s", limit);
        return 0;
    }
    if (f->doubt && f->doubt != f->fewer) {
        snprintf(why, size,
                 "fewest GPUs that were found to fit %s each: on %lld operators were "
                 "decided by heuristic",
                 limit, (long long)f->doubt);
        return 0;
    }
    int64_t bound = topt_count_least_bytes(m, f->fewer);
    if (bound > topt_request_limit(r)) {
        snprintf(why, size, "fewest GPUs that fit %s each: %lld would need more than %s",
                 limit, (long long)f->fewer, topt_show_bytes(bound, need, sizeof need));
        return 0;
    }
    struct topt_best b;
    int n = snprintf(why, size, "fewest GPUs that fit %s each", limit);
    if (topt_count_solve(m, f->fewer, 0, TOPT_GOAL_LEAST, &b, err))
        return topt_request_stopped(r) ? 0 : -1;
    int open = b.claim.decided || topt_best_floor(&b) <= topt_request_limit(r);
    topt_show_bytes(open ? b.solution.memory_bytes : topt_best_floor(&b), need,
                    sizeof need);
    if (b.found && n > 0 && (size_t)n < size)
        snprintf(
            why + n, size - (size_t)n,
            b.claim.decided
                ? " as far as was found: %lld need %s with operators decided by heuristic"
            : open ? " as far as was found: %lld need %s, perhaps less"
                   : ": %lld would need at least %s",
            (long long)f->fewer, need);
    topt_best_fini(&b);
    return 0;
}

/* The first count that something fits on, or where the search was stopped. */
static int first_fit(struct topt_micros *m, const int64_t *count, int n,
                     struct fewest *ret, struct topt_error *err)
{
    int64_t limit = topt_request_limit(m->request);
    for (int i = 0; i < n && !ret->best.found && !ret->best.stopped; i++) {
        ret->gpus = count[i];
        ret->fewer = i ? count[i - 1] : 0;
        if (topt_count_least_bytes(m, count[i]) > limit)
            continue;
        topt_best_fini(&ret->best);
        if (topt_count_solve(m, count[i], limit, TOPT_GOAL_FASTEST, &ret->best, err))
            return -1;
        if (topt_best_fits(&ret->best) == TOPT_FITS_UNKNOWN && !ret->doubt)
            ret->doubt = count[i];
    }
    return 0;
}

/* Counts that are tried where a search was stopped. */
enum { TRIES = 4 };

static int answer_stand_in(struct topt_micros *uniform, int64_t gpus, struct fewest *f,
                           json_t **ret, struct topt_error *err)
{
    char why[200], limit[32];
    if (!f->best.found)
        return unfinished(uniform->request, gpus, ret, err);
    f->best.stopped = 1;
    f->best.claim.exact = 0;
    f->best.claim.epsilon = INFINITY;
    snprintf(why, sizeof why,
             "it fits %s each; fewer GPUs may do, as the search was stopped at %lld",
             topt_show_bytes(topt_request_limit(uniform->request), limit, sizeof limit),
             (long long)gpus);
    return write_answer(uniform, &f->best, why, ret, err);
}

/* Stopped at a count before anything was found: what the uniform space has on the next powers of two, which is cheap,
 * is better than nothing. */
static int stand_in(const struct topt_request *asked, int64_t gpus, json_t **ret,
                    struct topt_error *err)
{
    enum topt_space space = topt_space_resolve(asked->space, (int)gpus);
    struct topt_request r =
        topt_request_uniform(asked, topt_request_factors(asked, space));
    struct topt_micros uniform;
    struct fewest f = {.best = {0}};
    int64_t *count;
    int n, from = 0, rc = -1;
    r.pow2_counts = 1;
    r.stop = NULL;
    r.max_work = 0;
    if (topt_request_counts(&r, &count, &n, err))
        return -1;
    while (from < n && count[from] < gpus)
        from++;
    n = n - from < TRIES ? n - from : TRIES;
    if (!topt_micros_init(&uniform, &r, err)) {
        if (!first_fit(&uniform, count + from, n, &f, err))
            rc = answer_stand_in(&uniform, gpus, &f, ret, err);
        topt_best_fini(&f.best);
        topt_micros_fini(&uniform);
    }
    free(count);
    return rc;
}

static int mini_parallelism(struct topt_micros *m, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    int64_t *count;
    int n, rc = -1;
    struct fewest f = {.best = {0}};
    char why[200];
    if (topt_request_counts(r, &count, &n, err))
        return -1;
    if (n == 0)
        topt_fail(err, TOPT_ERR_INVAL, "'%s' has no GPUs to plan for",
                  topt_hw_name(r->hw));
    else if (first_fit(m, count, n, &f, err))
        rc = -1;
    else if (f.best.found)
        rc = why_not_fewer(m, &f, why, sizeof why, err) ||
             write_answer(m, &f.best, why, ret, err);
    else if (f.best.stopped)
        rc = topt_algorithm_find(r->algorithm) ? unfinished(r, f.gpus, ret, err)
                                               : stand_in(r, f.gpus, ret, err);
    else
        rc = infeasible(m, count[n - 1], f.doubt && f.doubt != count[n - 1], ret, err);
    topt_best_fini(&f.best);
    free(count);
    return rc ? -1 : 0;
}

int topt_plan(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    struct topt_micros m;
    *ret = NULL;
    if (r->mode == TOPT_PROFILING)
        return topt_plan_curve(r, ret, err);
    if (topt_request_check(r, err) || topt_micros_init(&m, r, err))
        return -1;
    int rc = r->mode == TOPT_MINI_TIME ? mini_time(&m, ret, err)
                                       : mini_parallelism(&m, ret, err);
    topt_micros_fini(&m);
    return rc;
}
