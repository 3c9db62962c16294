/* answer.c - requests for one plan answered: counts of devices tried, the best plan checked and
 * written down, with why it is the one. */
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

static int stopped(const struct topt_request *r)
{
    return r->stop && atomic_load(r->stop);
}

static int unfinished(int64_t gpus, struct topt_error *err)
{
    return topt_fail(
        err, TOPT_ERR_LIMIT,
        "stopped before anything was found that fits on %lld GPUs; give more "
        "time or work, or take a smaller space (--space uniform)",
        (long long)gpus);
}

static int no_plan(struct topt_best *b, int64_t gpus, struct topt_error *err)
{
    int decided = b->claim.decided != NULL;
    topt_best_fini(b);
    return decided
               ? topt_fail(err, TOPT_ERR_LIMIT,
                           "no plan was found for %lld GPUs, as operators were decided "
                           "by heuristic; give more --max-entries",
                           (long long)gpus)
               : topt_fail(err, TOPT_ERR_INFEASIBLE,
                           "no plan for %lld GPUs in this space", (long long)gpus);
}

static int infeasible(struct topt_micros *m, int64_t gpus, json_t **ret,
                      struct topt_error *err)
{
    const struct topt_request *r = m->request;
    struct topt_best b;
    char have[32], need[32], why[200];
    if (topt_count_solve(m, gpus, 0, TOPT_GOAL_LEAST, &b, err))
        return stopped(r) ? unfinished(gpus, err) : -1;
    if (!b.found)
        return no_plan(&b, gpus, err);
    topt_show_bytes(topt_request_limit(r), have, sizeof have);
    topt_show_bytes(b.solution.memory_bytes, need, sizeof need);
    snprintf(
        why, sizeof why,
        b.claim.decided
            ? "nothing was found that fits in %s a GPU: %lld GPUs need %s with operators "
              "decided by heuristic, perhaps less with more --max-entries"
            : "nothing fits in %s a GPU: %lld GPUs need at least %s",
        have, (long long)gpus, need);
    *ret = json_pack("{s:b, s:s, s:I, s:{s:i, s:i, s:I, s:I}}", "feasible", 0, "why", why,
                     "memory_limit", (json_int_t)topt_request_limit(r), "nearest", "gpus",
                     b.mesh.devices, "nodes", b.mesh.nodes, "memory_bytes",
                     (json_int_t)b.solution.memory_bytes, "time_ns",
                     (json_int_t)b.solution.time_ns);
    topt_best_fini(&b);
    return *ret ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer");
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
        return gave_up ? unfinished(r->gpus, err) : infeasible(m, r->gpus, ret, err);
    }
    snprintf(why, sizeof why, "%s on %d GPU%s within %s a GPU",
             b.stopped ? "fastest found so far" : "fastest", b.mesh.devices,
             b.mesh.devices > 1 ? "s" : "",
             topt_show_bytes(topt_request_limit(r), limit, sizeof limit));
    int rc = write_answer(m, &b, why, ret, err);
    topt_best_fini(&b);
    return rc;
}

/* Why the count before was not enough. */
static int why_not_fewer(struct topt_micros *m, int64_t fewer, char *why, size_t size,
                         struct topt_error *err)
{
    const struct topt_request *r = m->request;
    char limit[32], need[32];
    topt_show_bytes(topt_request_limit(r), limit, sizeof limit);
    if (!fewer) {
        snprintf(why, size, "it fits on one GPU of %s", limit);
        return 0;
    }
    int64_t bound = topt_count_least_bytes(m, fewer);
    if (bound > topt_request_limit(r)) {
        snprintf(why, size, "fewest GPUs that fit %s each: %lld would need more than %s",
                 limit, (long long)fewer, topt_show_bytes(bound, need, sizeof need));
        return 0;
    }
    struct topt_best b;
    int n = snprintf(why, size, "fewest GPUs that fit %s each", limit);
    if (topt_count_solve(m, fewer, 0, TOPT_GOAL_LEAST, &b, err))
        return stopped(r) ? 0 : -1;
    if (b.found && n > 0 && (size_t)n < size)
        snprintf(
            why + n, size - (size_t)n,
            b.claim.decided
                ? " as far as was found: %lld need %s with operators decided by heuristic"
                : ": %lld would need at least %s",
            (long long)fewer,
            topt_show_bytes(b.solution.memory_bytes, need, sizeof need));
    topt_best_fini(&b);
    return 0;
}

/* The first count that something fits on, and the one before it (0: none). */
static int first_fit(struct topt_micros *m, const int64_t *count, int n,
                     struct topt_best *ret, int64_t *ret_fewer, struct topt_error *err)
{
    int64_t limit = topt_request_limit(m->request);
    *ret_fewer = 0;
    for (int i = 0; i < n && !ret->found; i++) {
        if (i > 0)
            *ret_fewer = count[i - 1];
        if (topt_count_least_bytes(m, count[i]) > limit)
            continue;
        topt_best_fini(ret);
        if (topt_count_solve(m, count[i], limit, TOPT_GOAL_FASTEST, ret, err))
            return -1;
        if (ret->stopped && !ret->found)
            return unfinished(count[i], err);
    }
    return 0;
}

static int mini_parallelism(struct topt_micros *m, json_t **ret, struct topt_error *err)
{
    const struct topt_request *r = m->request;
    int64_t *count, fewer;
    int n, rc = -1;
    struct topt_best b = {0};
    char why[200];
    if (topt_request_counts(r, &count, &n, err))
        return -1;
    if (n == 0)
        topt_fail(err, TOPT_ERR_INVAL, "'%s' has no GPUs to plan for",
                  topt_hw_name(r->hw));
    else if (!first_fit(m, count, n, &b, &fewer, err))
        rc = !b.found ? infeasible(m, count[n - 1], ret, err)
                      : why_not_fewer(m, fewer, why, sizeof why, err) ||
                            write_answer(m, &b, why, ret, err);
    topt_best_fini(&b);
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
