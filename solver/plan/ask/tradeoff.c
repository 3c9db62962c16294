/* tradeoff.c - whole trade-offs: the best time for each number of devices, and every
 * point of memory against time for one number. */
#include "tradeoff.h"
#include "algorithm.h"
#include "answer.h"
#include "plan_check.h"
#include "free.h"
#include "efficiency.h"
#include "gpu_count.h"
#include "document.h"
#include "grid.h"
#include "grid_solve.h"
#include "memo.h"
#include "planning.h"
#include "request.h"
#include "strategy_words.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_plan.h"
#include "topt_plan_doc.h"
#include "topt_question.h"

#include <stdlib.h>

/* ---- the curve --------------------------------------------------------------------- */

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

/* The strategy in the words of the plan's document. */
static char *strategy_of(const struct topt_request *r, const struct topt_mesh *mesh,
                         enum topt_space space, const struct topt_solution *s)
{
    const struct topt_degrees *v = &s->degrees;
    if (!r->framework || space != TOPT_SPACE_UNIFORM)
        return topt_strategy_words(r->model, mesh, s->strategy, v->micro_batches);
    int64_t samples = r->model->batch / v->micro_batches;
    return topt_uniform_words(r->framework, v, (samples + v->data - 1) / v->data);
}

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
    char *words = strategy_of(m->request, &b->mesh, b->space, &b->solution);
    json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:o}", "strategy", words ? words : "",
                          "peak_bytes", (json_int_t)peak, "compute_ns",
                          (json_int_t)cost.sum.compute_ns, "network_ns",
                          (json_int_t)cost.sum.network_ns, "band",
                          topt_prediction_band(m->request->hw, &cost, peak));
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
    }
    if (rc)
        json_decref(p);
    else
        *ret = p;
    return rc;
}

int topt_count_point(struct topt_planning *m, int64_t gpus, json_t **ret,
                     struct topt_error *err)
{
    struct topt_best b = {.certificate = topt_certificate_exact()};
    int64_t limit = topt_request_limit(m->request);
    *ret = NULL;
    if (topt_count_least_bytes(m, gpus) <= limit &&
        topt_count_solve(m, gpus, limit, TOPT_GOAL_FASTEST, &b, err))
        return -1;
    int known = b.found || !b.stopped;
    int rc = known ? topt_best_point(m, &b, gpus, ret, err) : 0;
    topt_best_fini(&b);
    return rc;
}

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
        if (topt_count_point(m, count[i], &p, err))
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

/* A last resort, such as tensor parallelism over nodes, is tried where no count fits
 * without. */
static int put_curve(struct topt_planning *m, const int64_t *count, int n, json_t *curve,
                     struct topt_error *err)
{
    for (int i = 0;; i++) {
        int where = topt_request_tensor_at(m->request, i);
        if (where < 0 || any_fits(curve))
            return 0;
        m->tensor = (enum topt_tensor_where)where;
        json_array_clear(json_object_get(curve, "points"));
        if (put_points(m, count, n, curve, err))
            return -1;
    }
}

/* Each count's efficiency; "knee" is a number of GPUs. */
static void put_efficiency(json_t *curve)
{
    json_t *points = json_object_get(curve, "points");
    int knee = topt_rate_points(points);
    if (knee >= 0)
        json_object_set(curve, "knee",
                        json_object_get(json_array_get(points, (size_t)knee), "gpus"));
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
    put_efficiency(curve);
    *ret = curve;
    return 0;
}

/* ---- the frontier ------------------------------------------------------------------ */

static int no_memory(struct topt_error *err)
{
    return topt_nomem(err, "the frontier");
}

/* All shapes of a count: each point with the mesh it is for. */
struct merged {
    int n, stopped, alike, everything;
    struct {
        enum topt_space space;
        int least, fastest; /* is each known to be it? */
    } ends;                 /* of everything */
    struct topt_certificate certificate;
    enum topt_space space;
    struct topt_problem_stats stats;
    struct topt_placed *at;
};

static int merged_order(const void *x, const void *y)
{
    const struct topt_placed *a = x, *b = y;
    if (a->s.memory_bytes != b->s.memory_bytes)
        return a->s.memory_bytes < b->s.memory_bytes ? -1 : 1;
    if (a->s.time_ns != b->s.time_ns)
        return a->s.time_ns < b->s.time_ns ? -1 : 1;
    return a->nodes - b->nodes;
}

static int merge_points(struct merged *m, struct topt_solutions *s,
                        const struct topt_mesh *mesh, struct topt_error *err)
{
    struct topt_placed *at =
        realloc(m->at, ((size_t)m->n + (size_t)s->n + 1) * sizeof *at);
    if (!at)
        return no_memory(err);
    m->at = at;
    for (int i = 0; i < s->n; i++)
        m->at[m->n++] = (struct topt_placed){s->at[i], mesh->nodes, mesh->per_node};
    s->n = 0;
    return 0;
}

/* Tell a shape what others came to. */
static int tell_known(const struct merged *m, struct topt_grid_search *s,
                      struct topt_error *err)
{
    s->known = malloc(((size_t)m->n + 1) * sizeof *s->known);
    if (!s->known)
        return no_memory(err);
    for (int i = 0; i < m->n; i++)
        s->known[i] = (struct topt_cost){m->at[i].s.memory_bytes, m->at[i].s.time_ns};
    s->nknown = (int)topt_reduce(s->known, (size_t)m->n);
    return 0;
}

static int time_only(const struct topt_request *r)
{
    const struct topt_algorithm *a = topt_algorithm_find(r->algorithm);
    return a && a->time_only;
}

static int merge_shape(struct merged *m, struct topt_planning *micros, int nodes,
                       int per_node, struct topt_error *err)
{
    struct topt_grid_search s;
    struct topt_solutions all = {0};
    int fastest = time_only(micros->request);
    enum topt_goal goal = fastest ? TOPT_GOAL_FASTEST : TOPT_GOAL_FRONTIER;
    int rc = topt_grid_open(&s, micros, nodes, per_node, goal, err) ||
             tell_known(m, &s, err) ||
             topt_grid_solve(&s, goal, fastest ? 0 : micros->request->memory_limit, 0,
                             &all, err) ||
             topt_certificate_merge(&m->certificate, &all.certificate, err) ||
             merge_points(m, &all, &s.mesh, err);
    m->stopped |= all.stopped;
    m->space = s.space;
    m->alike = s.alike;
    topt_problem_stats_add(&m->stats, &s.stats);
    topt_solutions_fini(&all);
    topt_grid_close(&s);
    return rc ? -1 : 0;
}

/* ---- seeds ------------------------------------------------------------------------- */

/* The full space with operators that were decided by heuristic may have missed what a smaller
 * space finds, or a search for the fastest alone. */
static int asks_seeds(const struct topt_request *r, const struct merged *m)
{
    return m->certificate.decided && !m->stopped && m->space == TOPT_SPACE_FULL &&
           !topt_algorithm_find(r->algorithm);
}

/* Add the points that 'from' finds on a shape and that lie in the request's own space. */
static int merge_seeds(struct merged *m, struct topt_planning *own,
                       struct topt_planning *from, int nodes, int per_node,
                       enum topt_goal goal, struct topt_error *err)
{
    struct topt_grid_search s = {0}, x = {0};
    struct topt_solutions all = {0};
    int rc = topt_grid_open(&s, own, nodes, per_node, TOPT_GOAL_FRONTIER, err) ||
             topt_grid_open(&x, from, nodes, per_node, goal, err) ||
             topt_grid_solve(&x, goal, own->request->memory_limit, 0, &all, err);
    topt_search_stats_add(&m->certificate.stats, &all.certificate.stats);
    if (!rc && topt_grid_keep_own(&s, &all))
        rc = merge_points(m, &all, &s.mesh, err);
    topt_solutions_fini(&all);
    topt_grid_close(&x);
    topt_grid_close(&s);
    return rc ? -1 : 0;
}

static int merge_all_seeds(struct merged *m, struct topt_planning *own,
                           struct topt_error *err)
{
    const struct topt_request *r = own->request;
    struct topt_request smaller =
        topt_request_canonical(r, topt_request_factors(r, TOPT_SPACE_FULL));
    struct topt_planning canonical;
    int nodes = 0, per_node = 0, rc = 0;
    if (topt_planning_init(&canonical, &smaller, err))
        return -1;
    while (!rc && topt_request_grid(r, r->gpus, &nodes, &per_node))
        rc = merge_seeds(m, own, &canonical, nodes, per_node, TOPT_GOAL_FRONTIER, err) ||
             merge_seeds(m, own, own, nodes, per_node, TOPT_GOAL_FASTEST, err);
    topt_planning_fini(&canonical);
    return rc ? -1 : 0;
}

/* ---- everything that saves memory -------------------------------------------------------- */

/* Has what is asked for recomputation and micro-batches that are not searched at first, as they
 * would take long? */
static int asks_everything(const struct topt_request *r)
{
    enum topt_space space = topt_space_resolve(r->space, (int)r->gpus);
    return topt_request_widest(r, space) != topt_request_factors(r, space);
}

/* An end: what `topt plan` says for so many GPUs, or the least that anything needs. */
static int merge_end(struct merged *m, struct topt_planning *asked, enum topt_goal goal,
                     struct topt_error *err)
{
    const struct topt_request *r = asked->request;
    struct topt_best b;
    struct topt_solutions one = {.n = 1, .at = &b.solution};
    int64_t limit = goal == TOPT_GOAL_LEAST ? r->memory_limit : topt_request_limit(r);
    if (topt_count_solve(asked, r->gpus, limit, goal, &b, err)) {
        m->stopped |= topt_planning_gave_up(asked, err);
        return topt_planning_gave_up(asked, err) ? 0 : -1;
    }
    if (goal == TOPT_GOAL_LEAST)
        m->ends.least = b.certificate.exact;
    else
        m->ends.fastest = !b.stopped && b.certificate.exact;
    m->stopped |= b.stopped;
    int rc = 0;
    if (b.found) {
        m->ends.space = b.space;
        rc = merge_points(m, &one, &b.mesh, err);
        if (!rc)
            b.solution.strategy = NULL;
    }
    topt_search_stats_add(&m->certificate.stats, &b.certificate.stats);
    topt_best_fini(&b);
    return rc;
}

/* The uniform space takes a hundredth of the time of others: points to begin with, all of them
 * where the search is stopped. */
static int merge_uniform(struct merged *m, struct topt_planning *wide,
                         struct topt_error *err)
{
    struct topt_request uniform =
        topt_request_uniform_unstopped(wide->request, wide->request->factors);
    struct topt_planning from;
    int nodes = 0, per_node = 0, rc = 0;
    if (topt_planning_init(&from, &uniform, err))
        return -1;
    while (!rc && topt_request_grid(&uniform, uniform.gpus, &nodes, &per_node))
        rc = merge_seeds(m, wide, &from, nodes, per_node, TOPT_GOAL_FRONTIER, err);
    topt_planning_fini(&from);
    return rc;
}

static int merge_canonical(struct merged *m, struct topt_planning *asked,
                           const struct topt_request *r, struct topt_error *err)
{
    struct topt_request canonical = topt_request_canonical(r, r->factors);
    struct topt_planning from;
    int nodes = 0, per_node = 0, rc = 0;
    if (topt_planning_init(&from, &canonical, err))
        return -1;
    topt_planning_resume(&from, asked);
    while (!rc && topt_request_grid(r, r->gpus, &nodes, &per_node))
        rc = merge_shape(m, &from, nodes, per_node, err);
    topt_planning_resume(asked, &from);
    topt_planning_fini(&from);
    return rc;
}

/* What can be booked at all, with everything that saves memory: both ends as `topt plan` says
 * them, and between them the frontier of the canonical space, which takes seconds where
 * the full one takes minutes.  What is known first is cheapest. */
static int merge_everything(struct merged *m, struct topt_planning *wide,
                            const struct topt_request *r, struct topt_error *err)
{
    struct topt_planning asked;
    m->everything = 1;
    if (topt_planning_init(&asked, r, err))
        return -1;
    asked.least_is_a_point = 1;
    int rc = merge_uniform(m, wide, err) || merge_end(m, &asked, TOPT_GOAL_LEAST, err) ||
             merge_end(m, &asked, TOPT_GOAL_FASTEST, err) ||
             merge_canonical(m, &asked, wide->request, err);
    topt_planning_resume(wide, &asked);
    topt_planning_fini(&asked);
    return rc ? -1 : 0;
}

static void merged_fini(struct merged *m)
{
    for (int i = 0; i < m->n; i++)
        topt_strategy_destroy(m->at[i].s.strategy);
    free(m->at);
    topt_certificate_fini(&m->certificate);
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

/* Keep the one answer of a system that looks at time alone, if it fits. */
static void merged_fastest(struct merged *m, int64_t limit)
{
    if (m->n > 1) {
        struct topt_placed last = m->at[m->n - 1];
        m->at[m->n - 1] = m->at[0];
        m->at[0] = last;
    }
    int keep = m->n && (!limit || m->at[0].s.memory_bytes <= limit);
    while (m->n > keep)
        topt_strategy_destroy(m->at[--m->n].s.strategy);
}

static json_t *point_json(const struct topt_request *r, const struct topt_placed *p,
                          const struct topt_checked *c)
{
    const struct topt_strategy_cost *cost = &c->cost;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:I, s:o}", "memory_bytes",
                     (json_int_t)cost->memory_bytes, "time_ns", (json_int_t)cost->time_ns,
                     "compute_ns", (json_int_t)cost->sum.compute_ns, "network_ns",
                     (json_int_t)cost->sum.network_ns, "peak_bytes",
                     (json_int_t)c->peak_bytes, "nodes", p->nodes, "gpus_per_node",
                     p->per_node, "micro_batches", (json_int_t)p->s.degrees.micro_batches,
                     "band", topt_prediction_band(r->hw, cost, c->peak_bytes));
}

/* The point's strategy in words, except on unlike devices, whose shares the words would
 * leave out. */
static void name_point(const struct topt_request *r, enum topt_space space,
                       const struct topt_placed *p, json_t *point)
{
    struct topt_mesh mesh;
    if (r->unlike.parts || topt_mesh_init(&mesh, p->nodes, p->per_node, NULL))
        return;
    char *words = strategy_of(r, &mesh, space, &p->s);
    if (words)
        json_object_set_new(point, "strategy", json_string(words));
    free(words);
}

/* Check all and write them down. */
static int put_all(struct topt_planning *micros, const struct merged *m, json_t *points,
                   struct topt_error *err)
{
    struct topt_checked *checked = malloc(((size_t)m->n + 1) * sizeof *checked);
    int rc =
        checked ? topt_points_check(micros, m->at, m->n, checked, err) : no_memory(err);
    for (int i = 0; i < m->n && !rc; i++) {
        json_t *point = point_json(micros->request, &m->at[i], &checked[i]);
        name_point(micros->request, m->space, &m->at[i], point);
        json_array_append_new(points, point);
    }
    free(checked);
    return rc;
}

/* The question's settings, beside model and hardware. */
static void put_job(json_t *doc, const struct topt_request *r)
{
    json_object_set_new(doc, "batch", json_integer(r->model->batch));
    json_object_set_new(doc, "seq", json_integer(r->model->seq));
    json_object_set_new(doc, "precision",
                        json_string(topt_precision_of(&r->settings)->name));
    json_object_set_new(doc, "dtype", json_string(topt_dtype_name(r->settings.dtype)));
    json_object_set_new(doc, "optimizer",
                        json_string(topt_optimizer_name(r->settings.optimizer)));
    json_object_set_new(doc, "memory_limit", json_integer(topt_request_limit(r)));
    topt_request_put_lacks(r, doc);
}

/* The space in which the ends of a whole frontier were searched. */
static void put_ends(json_t *doc, const struct merged *m)
{
    if (m->everything)
        json_object_set_new(doc, "ends",
                            json_pack("{s:s, s:b, s:b}", "space",
                                      topt_space_name(m->ends.space), "least",
                                      m->ends.least, "fastest", m->ends.fastest));
}

/* Choices that no point has, and the option that searches them. */
static void put_left_out(json_t *doc, const struct topt_planning *p,
                         const struct merged *m)
{
    const struct topt_framework *f = p->request->framework;
    int no_tensor = f && p->tensor == TOPT_TENSOR_NEVER &&
                    f->tensor_most > TOPT_TENSOR_NEVER && m->space == TOPT_SPACE_UNIFORM;
    const char *words = NULL;
    if (p->request->gpus == 1) /* nothing is split */
        return;
    if (m->n && no_tensor)
        words = "tensor parallelism, with which less memory may do "
                "(--tensor-parallel searches it)";
    else if (m->everything && m->ends.space == TOPT_SPACE_FULL)
        words = "between the ends, splits that canonical lacks and full has "
                "(--space full --factors all searches them)";
    if (words)
        json_object_set_new(doc, "left_out", json_string(words));
}

static int put_frontier(struct topt_planning *micros, struct merged *m, json_t **ret,
                        struct topt_error *err)
{
    const struct topt_request *r = micros->request;
    char space[48];
    merged_reduce(m);
    if (time_only(r))
        merged_fastest(m, r->memory_limit);
    TOPT_PROGRESS(r->progress, points, m->n);
    TOPT_PROGRESS(r->progress, phase, TOPT_PHASE_CHECKING);
    json_t *doc = json_pack(
        "{s:[], s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:o, s:o}", "points", "gpus",
        (json_int_t)r->gpus, "model", r->model->name, "hw", topt_hw_name(r->hw), "space",
        topt_space_words(m->space, m->alike, space, sizeof space), "configs",
        (json_int_t)m->stats.configs, "layouts", (json_int_t)m->stats.layouts,
        "edge_entries", (json_int_t)m->stats.edge_entries, "stats",
        topt_work_json(&m->certificate.stats), "pricing", topt_pricing_json(&m->stats));
    topt_certificate_write(doc, r->model, &m->certificate);
    put_ends(doc, m);
    put_left_out(doc, micros, m);
    put_job(doc, r);
    if (m->stopped)
        topt_answer_put_stopped(doc, micros);
    int rc = put_all(micros, m, json_object_get(doc, "points"), err);
    if (rc)
        json_decref(doc);
    else
        *ret = doc;
    return rc;
}

static int some_fits(const struct merged *m, int64_t limit)
{
    for (int i = 0; i < m->n; i++)
        if (m->at[i].s.memory_bytes <= limit)
            return 1;
    return 0;
}

/* Every shape of the count.  Where tensor parallelism is a last resort, it is tried where nothing
 * fits without. */
static int merge_shapes(struct merged *m, struct topt_planning *micros,
                        struct topt_error *err)
{
    const struct topt_request *r = micros->request;
    int rc = 0;
    for (int i = 0; !rc && !some_fits(m, topt_request_limit(r)); i++) {
        int where = topt_request_tensor_at(r, i), nodes = 0, per_node = 0;
        if (where < 0)
            break;
        micros->tensor = (enum topt_tensor_where)where;
        while (!rc && topt_request_grid(r, r->gpus, &nodes, &per_node))
            rc = merge_shape(m, micros, nodes, per_node, err);
    }
    if (!rc && asks_seeds(r, m))
        rc = merge_all_seeds(m, micros, err);
    return rc;
}

int topt_plan_frontier(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    struct topt_request own = *r;
    struct topt_planning micros;
    struct merged m = {.certificate = topt_certificate_exact()};
    int nodes = 0, per_node = 0;
    *ret = NULL;
    if (r->gpus < 1)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "a frontier needs a number of GPUs (at least 1)");
    if (topt_request_check(r, err))
        return -1;
    if (!topt_request_grid(r, r->gpus, &nodes, &per_node))
        return topt_no_grid(r, r->gpus, err);
    if (asks_everything(r))
        own.factors = topt_request_widest(r, topt_space_resolve(r->space, (int)r->gpus));
    if (topt_planning_init(&micros, &own, err))
        return -1;
    int rc = asks_everything(r) ? merge_everything(&m, &micros, r, err)
                                : merge_shapes(&m, &micros, err);
    rc = rc || put_frontier(&micros, &m, ret, err);
    merged_fini(&m);
    topt_planning_fini(&micros);
    return rc ? -1 : 0;
}
