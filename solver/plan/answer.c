/* answer.c - requests answered: shapes of N devices tried, frontiers searched, the best kept.
 *
 * A count of N devices means every nodes x devices-per-node shape the hardware allows.  In the
 * uniform space a shape is searched once per cut of its axes into data and tensor axes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "document.h"
#include "topt_text.h"

enum { MAX_DEVICES = 1 << 14 };

/* ---- one shape ----------------------------------------------------------------------------- */

int topt_shape_open(struct topt_shape_search *s, const struct topt_request *r, int nodes,
                    int per_node, struct topt_error *err)
{
    memset(s, 0, sizeof *s);
    s->request = r;
    s->settings = topt_request_settings(r);
    if (topt_mesh_init(&s->mesh, nodes, per_node, err))
        return -1;
    s->router = topt_router_create(r->hw, &s->mesh);
    if (!s->router)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the search");
    s->space = topt_space_resolve(r->space, s->mesh.devices);
    s->costing = (struct topt_costing){r->model,     r->hw,     &s->mesh,
                                       &s->settings, s->router, r->cancel};
    return 0;
}

void topt_shape_close(struct topt_shape_search *s)
{
    topt_router_destroy(s->router);
    s->router = NULL;
}

int topt_shape_cuts(const struct topt_shape_search *s)
{
    return s->space == TOPT_SPACE_UNIFORM ? s->mesh.naxes + 1 : 1;
}

int topt_shape_problem(struct topt_shape_search *s, int cut, struct topt_problem **ret,
                       struct topt_error *err)
{
    struct topt_space_options o = {
        .space = s->space, .cut = cut, .sequence = s->request->sequence_splits};
    return topt_problem_create(&s->costing, &o, ret, err);
}

static int canceled(const struct topt_request *r)
{
    return r->cancel && atomic_load(r->cancel);
}

int topt_shape_solve(struct topt_shape_search *s, int64_t limit, int fastest,
                     struct topt_solutions *ret, struct topt_error *err)
{
    const struct topt_request *r = s->request;
    struct topt_search_options o = {.algorithm = r->algorithm,
                                    .memory_limit = limit,
                                    .epsilon = r->epsilon,
                                    .threads = r->threads,
                                    .cancel = r->cancel};
    *ret = (struct topt_solutions){.exact = 1};
    for (int cut = 0; cut < topt_shape_cuts(s); cut++) {
        struct topt_problem *p = NULL;
        struct topt_solutions part = {0};
        int rc = canceled(r)
                     ? topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled")
                     : 0;
        rc = rc || topt_shape_problem(s, cut, &p, err) ||
             topt_problem_frontier(p, &o, fastest, &part, err);
        if (!rc) {
            struct topt_problem_stats stats;
            topt_problem_stats(p, &stats);
            s->stats.nodes = stats.nodes;
            s->stats.configs += stats.configs;
            s->stats.edge_entries += stats.edge_entries;
            s->stats.layouts =
                stats.layouts > s->stats.layouts ? stats.layouts : s->stats.layouts;
            rc = topt_solutions_merge(ret, &part, err);
        }
        topt_solutions_fini(&part);
        topt_problem_destroy(p);
        if (rc) {
            topt_solutions_fini(ret);
            return -1;
        }
    }
    return 0;
}

/* ---- one count ------------------------------------------------------------------------------ */

int topt_next_shape(const struct topt_hw *hw, int64_t gpus, int *nodes, int *per_node)
{
    for (int n = *nodes + 1; n <= topt_hw_max_nodes(hw) && n <= gpus; n++)
        if (gpus % n == 0 && gpus / n <= topt_hw_gpus_per_node(hw)) {
            *nodes = n;
            *per_node = (int)(gpus / n);
            return 1;
        }
    return 0;
}

/* The best answer for one count. */
struct best {
    int found;
    struct topt_mesh mesh;
    enum topt_space space;
    struct topt_solution solution; /* strategy owned */
    int exact;
    double epsilon;
    struct topt_problem_stats stats;
};

static void best_fini(struct best *b)
{
    topt_strategy_destroy(b->solution.strategy);
    memset(b, 0, sizeof *b);
}

static int better(const struct topt_solution *a, const struct best *b, int least_memory)
{
    const struct topt_solution *c = &b->solution;
    if (!b->found)
        return 1;
    if (least_memory)
        return a->memory_bytes < c->memory_bytes;
    return a->time_ns < c->time_ns ||
           (a->time_ns == c->time_ns && a->memory_bytes < c->memory_bytes);
}

/* Fastest within the limit, or (limit 0 and 'least_memory') the one with the least memory. */
static int solve_count(const struct topt_request *r, int64_t gpus, int64_t limit,
                       int least_memory, struct best *ret, struct topt_error *err)
{
    int nodes = 0, per_node = 0, shapes = 0;
    memset(ret, 0, sizeof *ret);
    for (; topt_next_shape(r->hw, gpus, &nodes, &per_node); shapes++) {
        struct topt_shape_search s;
        struct topt_solutions all = {0};
        int rc = topt_shape_open(&s, r, nodes, per_node, err) ||
                 topt_shape_solve(&s, limit, !least_memory, &all, err);
        if (!rc && all.n > 0 && better(&all.at[0], ret, least_memory)) {
            best_fini(ret);
            *ret = (struct best){1,         s.mesh,      s.space, all.at[0],
                                 all.exact, all.epsilon, s.stats};
            all.at[0].strategy = NULL;
        }
        topt_solutions_fini(&all);
        topt_shape_close(&s);
        if (rc) {
            best_fini(ret);
            return -1;
        }
    }
    if (!shapes)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%lld GPUs can't be had on '%s': at most %d nodes of %d",
                         (long long)gpus, topt_hw_name(r->hw), topt_hw_max_nodes(r->hw),
                         topt_hw_gpus_per_node(r->hw));
    return 0;
}

/* What no plan on N devices can go below: parameters, gradients, optimizer state and what
 * backward reads, each once and spread evenly. */
static int64_t least_bytes(const struct topt_request *r, int64_t gpus)
{
    struct topt_model_stats stats;
    topt_model_stats(r->model, &stats);
    double bytes = (double)stats.parameters * topt_parameter_bytes(&r->settings) +
                   (double)stats.activation_bytes_per_sample / 4 *
                       topt_dtype_bytes(r->settings.dtype) * (double)r->model->batch;
    return (int64_t)(bytes * (1 - 1e-9) / (double)gpus);
}

int64_t topt_request_limit(const struct topt_request *r)
{
    return r->memory_limit ? r->memory_limit : topt_hw_memory_bytes(r->hw);
}

int topt_request_counts(const struct topt_request *r, int64_t **ret, int *ret_n,
                        struct topt_error *err)
{
    int64_t all = (int64_t)topt_hw_max_nodes(r->hw) * topt_hw_gpus_per_node(r->hw);
    int64_t max = r->max_gpus && r->max_gpus < all ? r->max_gpus : all;
    int64_t *list = malloc(((size_t)max + (size_t)r->ngpu_list + 1) * sizeof *list);
    int n = 0;
    if (!list)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the counts");
    for (int i = 0; i < r->ngpu_list; i++)
        list[n++] = r->gpu_list[i];
    for (int64_t c = 1; !r->ngpu_list && c <= max; c = r->pow2_counts ? 2 * c : c + 1) {
        int nodes = 0, per_node = 0;
        if (topt_next_shape(r->hw, c, &nodes, &per_node))
            list[n++] = c;
    }
    *ret = list;
    *ret_n = n;
    return 0;
}

/* ---- answers ---------------------------------------------------------------------------------- */

static int check_request(const struct topt_request *r, struct topt_error *err)
{
    if (!topt_hw_has_dtype(r->hw, r->settings.dtype))
        return topt_fail(err, TOPT_ERR_INVAL, "'%s' says nothing of the speed of %s",
                         topt_hw_name(r->hw), topt_dtype_name(r->settings.dtype));
    if (r->gpus < 0 || r->gpus > MAX_DEVICES || r->max_gpus < 0 || r->memory_limit < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "GPUs and memory must be positive");
    if (r->mode == TOPT_MINI_TIME && r->gpus == 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "mini-time needs a number of GPUs (at least 1)");
    return 0;
}

static json_t *answer_json(const struct topt_request *r, const struct best *b,
                           const struct topt_plan_facts *f, const char *why, json_t *plan)
{
    const struct topt_strategy_cost *c = f->cost;
    json_t *a = json_pack(
        "{s:b, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:b, s:f, "
        "s:I}",
        "feasible", 1, "gpus", b->mesh.devices, "nodes", b->mesh.nodes, "gpus_per_node",
        b->mesh.per_node, "memory_bytes", (json_int_t)c->memory_bytes, "peak_bytes",
        (json_int_t)f->peak_bytes, "memory_limit", (json_int_t)topt_request_limit(r),
        "time_ns", (json_int_t)c->time_ns, "compute_ns", (json_int_t)c->sum.compute_ns,
        "network_ns", (json_int_t)c->sum.network_ns, "why", why, "strategy",
        json_string_value(json_object_get(plan, "strategy")), "space",
        topt_space_name(b->space), "exact", b->exact, "epsilon", b->epsilon, "configs",
        (json_int_t)b->stats.configs);
    json_object_set_new(a, "layouts", json_integer(b->stats.layouts));
    json_object_set_new(a, "edge_entries", json_integer(b->stats.edge_entries));
    json_object_set_new(a, "plan_id", json_incref(json_object_get(plan, "id")));
    json_object_set_new(a, "plan", plan);
    return a;
}

static int write_answer(const struct topt_request *r, const struct best *b,
                        const char *why, json_t **ret, struct topt_error *err)
{
    struct topt_strategy_cost cost;
    struct topt_settings settings = topt_request_settings(r);
    struct topt_router *router = topt_router_create(r->hw, &b->mesh);
    struct topt_costing k = {r->model, r->hw, &b->mesh, &settings, router, NULL};
    struct topt_plan_facts f = {.k = &k,
                                .strategy = b->solution.strategy,
                                .cost = &cost,
                                .space = b->space,
                                .algorithm = r->algorithm,
                                .mode = topt_mode_name(r->mode),
                                .why = why,
                                .memory_limit = topt_request_limit(r),
                                .exact = b->exact,
                                .epsilon = b->epsilon};
    json_t *plan = NULL;
    int rc = -1;
    if (!router) {
        topt_fail(err, TOPT_ERR_NOMEM, "no memory for the plan");
        goto out;
    }
    if (topt_plan_check(&k, b->solution.strategy, b->solution.memory_bytes,
                        b->solution.time_ns, &cost, &f.peak_bytes, err))
        goto out;
    plan = topt_plan_write(&f, err);
    if (!plan)
        goto out;
    *ret = answer_json(r, b, &f, why, plan);
    rc = *ret ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the plan");
out:
    topt_router_destroy(router);
    return rc;
}

static int infeasible(const struct topt_request *r, int64_t gpus, json_t **ret,
                      struct topt_error *err)
{
    struct best b;
    char have[32], need[32], why[200];
    if (solve_count(r, gpus, 0, 1, &b, err))
        return -1;
    if (!b.found)
        return topt_fail(err, TOPT_ERR_INFEASIBLE, "no plan for %lld GPUs in this space",
                         (long long)gpus);
    snprintf(why, sizeof why, "nothing fits in %s a GPU: %lld GPUs need at least %s",
             topt_show_bytes(topt_request_limit(r), have, sizeof have), (long long)gpus,
             topt_show_bytes(b.solution.memory_bytes, need, sizeof need));
    *ret = json_pack("{s:b, s:s, s:I, s:{s:i, s:i, s:I, s:I}}", "feasible", 0, "why", why,
                     "memory_limit", (json_int_t)topt_request_limit(r), "nearest", "gpus",
                     b.mesh.devices, "nodes", b.mesh.nodes, "memory_bytes",
                     (json_int_t)b.solution.memory_bytes, "time_ns",
                     (json_int_t)b.solution.time_ns);
    best_fini(&b);
    return *ret ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the answer");
}

static int mini_time(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    struct best b;
    if (solve_count(r, r->gpus, topt_request_limit(r), 0, &b, err))
        return -1;
    if (!b.found)
        return infeasible(r, r->gpus, ret, err);
    char why[160], limit[32];
    snprintf(why, sizeof why, "fastest on %d GPU%s within %s a GPU", b.mesh.devices,
             b.mesh.devices > 1 ? "s" : "",
             topt_show_bytes(topt_request_limit(r), limit, sizeof limit));
    int rc = write_answer(r, &b, why, ret, err);
    best_fini(&b);
    return rc;
}

/* Why the count before was not enough. */
static int why_not_fewer(const struct topt_request *r, int64_t gpus, int64_t fewer,
                         char *why, size_t size, struct topt_error *err)
{
    char limit[32], need[32];
    topt_show_bytes(topt_request_limit(r), limit, sizeof limit);
    if (!fewer) {
        snprintf(why, size, "it fits on one GPU of %s", limit);
        return 0;
    }
    int64_t bound = least_bytes(r, fewer);
    if (bound > topt_request_limit(r)) {
        snprintf(why, size, "fewest GPUs that fit %s each: %lld would need more than %s",
                 limit, (long long)fewer, topt_show_bytes(bound, need, sizeof need));
        return 0;
    }
    struct best b;
    if (solve_count(r, fewer, 0, 1, &b, err))
        return -1;
    int n = snprintf(why, size, "fewest GPUs that fit %s each", limit);
    if (b.found && n > 0 && (size_t)n < size)
        snprintf(why + n, size - (size_t)n, ": %lld would need at least %s",
                 (long long)fewer,
                 topt_show_bytes(b.solution.memory_bytes, need, sizeof need));
    (void)gpus;
    best_fini(&b);
    return 0;
}

static int mini_parallelism(const struct topt_request *r, json_t **ret,
                            struct topt_error *err)
{
    int64_t *count, fewer = 0, limit = topt_request_limit(r);
    int n, rc = -1;
    struct best b = {0};
    char why[200];
    if (topt_request_counts(r, &count, &n, err))
        return -1;
    if (n == 0) {
        topt_fail(err, TOPT_ERR_INVAL, "'%s' has no GPUs to plan for",
                  topt_hw_name(r->hw));
        goto out;
    }
    for (int i = 0; i < n && !b.found; i++) {
        if (i > 0)
            fewer = count[i - 1];
        if (least_bytes(r, count[i]) <= limit &&
            solve_count(r, count[i], limit, 0, &b, err))
            goto out;
    }
    if (!b.found) {
        rc = infeasible(r, count[n - 1], ret, err);
        goto out;
    }
    if (!why_not_fewer(r, b.mesh.devices, fewer, why, sizeof why, err))
        rc = write_answer(r, &b, why, ret, err);
out:
    best_fini(&b);
    free(count);
    return rc;
}

int topt_plan(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    *ret = NULL;
    if (check_request(r, err))
        return -1;
    if (r->mode == TOPT_PROFILING)
        return topt_plan_curve(r, ret, err);
    return r->mode == TOPT_MINI_TIME ? mini_time(r, ret, err)
                                     : mini_parallelism(r, ret, err);
}

/* ---- the curve ---------------------------------------------------------------------------------- */

static json_t *curve_head(const struct topt_request *r)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:I, s:[]}", "format",
                     "topt-curve/1", "model", r->model->name, "hw", topt_hw_name(r->hw),
                     "batch", (json_int_t)r->model->batch, "seq",
                     (json_int_t)r->model->seq, "space", topt_space_name(r->space),
                     "dtype", topt_dtype_name(r->settings.dtype), "optimizer",
                     topt_optimizer_name(r->settings.optimizer), "memory_limit",
                     (json_int_t)topt_request_limit(r), "points");
}

static int curve_point(const struct topt_request *r, int64_t gpus, json_t *points,
                       struct topt_error *err)
{
    struct best b = {0};
    int64_t limit = topt_request_limit(r);
    if (least_bytes(r, gpus) <= limit && solve_count(r, gpus, limit, 0, &b, err))
        return -1;
    json_t *p = json_pack("{s:I, s:b, s:I}", "gpus", (json_int_t)gpus, "feasible",
                          b.found, "limit", (json_int_t)limit);
    if (b.found) {
        char *words = topt_strategy_words(r->model, &b.mesh, b.solution.strategy);
        json_object_set_new(p, "nodes", json_integer(b.mesh.nodes));
        json_object_set_new(p, "memory_bytes", json_integer(b.solution.memory_bytes));
        json_object_set_new(p, "time_ns", json_integer(b.solution.time_ns));
        json_object_set_new(p, "exact", json_boolean(b.exact));
        json_object_set_new(p, "space", json_string(topt_space_name(b.space)));
        json_object_set_new(p, "strategy", json_string(words ? words : ""));
        free(words);
    }
    json_array_append_new(points, p);
    best_fini(&b);
    return 0;
}

int topt_plan_curve(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    int64_t *count;
    int n, rc = 0;
    *ret = NULL;
    if (r->mode == TOPT_PROFILING && check_request(r, err))
        return -1;
    if (topt_request_counts(r, &count, &n, err))
        return -1;
    json_t *curve = curve_head(r);
    for (int i = 0; i < n && !rc; i++)
        rc = curve_point(r, count[i], json_object_get(curve, "points"), err);
    free(count);
    if (rc) {
        json_decref(curve);
        return -1;
    }
    *ret = curve;
    return 0;
}

/* ---- the frontier --------------------------------------------------------------------------------- */

/* All shapes of a count: each point with the mesh it is for. */
struct merged {
    int n;
    struct merged_point {
        struct topt_solution s;
        struct topt_mesh mesh;
    } * at;
};

static int merged_order(const void *x, const void *y)
{
    const struct merged_point *a = x, *b = y;
    if (a->s.memory_bytes != b->s.memory_bytes)
        return a->s.memory_bytes < b->s.memory_bytes ? -1 : 1;
    if (a->s.time_ns != b->s.time_ns)
        return a->s.time_ns < b->s.time_ns ? -1 : 1;
    return a->mesh.nodes - b->mesh.nodes;
}

static int merge_shape(struct merged *m, struct topt_solutions *s,
                       const struct topt_mesh *mesh, struct topt_error *err)
{
    struct merged_point *at =
        realloc(m->at, ((size_t)m->n + (size_t)s->n + 1) * sizeof *at);
    if (!at)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the frontier");
    m->at = at;
    for (int i = 0; i < s->n; i++)
        m->at[m->n++] = (struct merged_point){s->at[i], *mesh};
    s->n = 0;
    return 0;
}

static void merged_fini(struct merged *m)
{
    for (int i = 0; i < m->n; i++)
        topt_strategy_destroy(m->at[i].s.strategy);
    free(m->at);
}

static void merged_reduce(struct merged *m)
{
    int n = 0;
    if (m->n > 1)
        qsort(m->at, (size_t)m->n, sizeof *m->at, merged_order);
    for (int i = 0; i < m->n; i++) {
        if (n > 0 && m->at[i].s.time_ns >= m->at[n - 1].s.time_ns)
            topt_strategy_destroy(m->at[i].s.strategy);
        else
            m->at[n++] = m->at[i];
    }
    m->n = n;
}

static int frontier_points(const struct topt_request *r, const struct merged *m,
                           json_t *points, struct topt_error *err)
{
    struct topt_settings settings = topt_request_settings(r);
    for (int i = 0; i < m->n; i++) {
        const struct merged_point *p = &m->at[i];
        struct topt_strategy_cost cost;
        int64_t peak;
        struct topt_router *router = topt_router_create(r->hw, &p->mesh);
        struct topt_costing k = {r->model, r->hw, &p->mesh, &settings, router, NULL};
        int rc = !router ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for the frontier")
                         : topt_plan_check(&k, p->s.strategy, p->s.memory_bytes,
                                           p->s.time_ns, &cost, &peak, err);
        topt_router_destroy(router);
        if (rc)
            return -1;
        json_array_append_new(
            points,
            json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:i}", "memory_bytes",
                      (json_int_t)cost.memory_bytes, "time_ns", (json_int_t)cost.time_ns,
                      "compute_ns", (json_int_t)cost.sum.compute_ns, "network_ns",
                      (json_int_t)cost.sum.network_ns, "peak_bytes", (json_int_t)peak,
                      "nodes", p->mesh.nodes, "gpus_per_node", p->mesh.per_node));
    }
    return 0;
}

int topt_plan_frontier(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    struct merged m = {0};
    struct topt_problem_stats stats = {0};
    int nodes = 0, per_node = 0, exact = 1, rc = 0, shapes = 0;
    double epsilon = 0;
    enum topt_space space = r->space;
    *ret = NULL;
    if (r->gpus < 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a frontier needs a number of GPUs (at least 1)");
    if (check_request(r, err))
        return -1;
    for (; !rc && topt_next_shape(r->hw, r->gpus, &nodes, &per_node); shapes++) {
        struct topt_shape_search s;
        struct topt_solutions all = {0};
        rc = topt_shape_open(&s, r, nodes, per_node, err) ||
             topt_shape_solve(&s, r->memory_limit, 0, &all, err) ||
             merge_shape(&m, &all, &s.mesh, err);
        exact &= all.exact;
        epsilon = all.epsilon > epsilon ? all.epsilon : epsilon;
        space = s.space;
        stats.configs += s.stats.configs;
        stats.edge_entries += s.stats.edge_entries;
        stats.layouts = s.stats.layouts > stats.layouts ? s.stats.layouts : stats.layouts;
        topt_solutions_fini(&all);
        topt_shape_close(&s);
    }
    if (!rc && !shapes)
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "%lld GPUs can't be had on '%s': at most %d nodes of %d",
                       (long long)r->gpus, topt_hw_name(r->hw), topt_hw_max_nodes(r->hw),
                       topt_hw_gpus_per_node(r->hw));
    json_t *doc = NULL;
    if (!rc) {
        merged_reduce(&m);
        doc = json_pack("{s:[], s:I, s:s, s:s, s:b, s:f, s:s, s:I, s:I, s:I}", "points",
                        "gpus", (json_int_t)r->gpus, "model", r->model->name, "hw",
                        topt_hw_name(r->hw), "exact", exact, "epsilon", epsilon, "space",
                        topt_space_name(space), "configs", (json_int_t)stats.configs,
                        "layouts", (json_int_t)stats.layouts, "edge_entries",
                        (json_int_t)stats.edge_entries);
        rc = frontier_points(r, &m, json_object_get(doc, "points"), err);
    }
    merged_fini(&m);
    if (rc) {
        json_decref(doc);
        return -1;
    }
    *ret = doc;
    return 0;
}
