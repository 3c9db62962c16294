/* tradeoff.c - the frontier of one number of devices: every point of memory against time, over
 * all shapes and, where that is asked for, of everything that saves memory. */
#include "best.h"
#include "algorithm.h"
#include "plan_check.h"
#include "free.h"
#include "document.h"
#include "grid.h"
#include "planning.h"
#include "request.h"
#include "strategy_words.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_plan.h"
#include "topt_plan_doc.h"
#include "topt_question.h"

#include <stdlib.h>

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

/* Every shape of the count; with 'from' what that finds there and lies in the request's own space. */
static int merge_shapes(struct merged *m, struct topt_planning *own,
                        struct topt_planning *from, enum topt_goal goal,
                        struct topt_error *err)
{
    const struct topt_request *r = own->request;
    int fastest = !from && time_only(r), nodes = 0, per_node = 0, rc = 0;
    int64_t limit = fastest ? 0 : r->memory_limit;
    enum topt_goal own_goal = fastest ? TOPT_GOAL_FASTEST : TOPT_GOAL_FRONTIER;
    while (!rc && topt_request_grid(r, r->gpus, &nodes, &per_node)) {
        struct topt_grid_search s;
        struct topt_solutions all = {0};
        rc = topt_grid_open(&s, own, nodes, per_node, own_goal, err) ||
             (from ? topt_grid_solve_other(&s, from, goal, limit, &all, err)
                   : tell_known(m, &s, err) ||
                         topt_grid_solve(&s, own_goal, limit, 0, &all, err) ||
                         topt_certificate_merge(&m->certificate, &all.certificate, err));
        if (from)
            topt_search_stats_add(&m->certificate.stats, &all.certificate.stats);
        else
            topt_problem_stats_add(&m->stats, &s.stats);
        m->stopped |= !from && all.stopped;
        m->space = from ? m->space : s.space;
        m->alike = from ? m->alike : s.alike;
        rc = rc || merge_points(m, &all, &s.mesh, err);
        topt_solutions_fini(&all);
        topt_grid_close(&s);
    }
    return rc ? -1 : 0;
}

/* ---- seeds ------------------------------------------------------------------------- */

/* Begin with what a smaller space has. */
static int merge_smaller(struct merged *m, struct topt_planning *own,
                         struct topt_request smaller, struct topt_error *err)
{
    struct topt_beside from;
    if (topt_beside_init(&from, smaller, err))
        return -1;
    int rc = merge_shapes(m, own, &from.planning, TOPT_GOAL_FRONTIER, err);
    topt_beside_fini(&from);
    return rc;
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
    if (topt_count_solve(asked, r->gpus, limit, 0, goal, &b, err)) {
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

/* The frontier of the canonical space, with the work that 'asked' has left. */
static int merge_canonical(struct merged *m, struct topt_planning *asked,
                           const struct topt_request *r, struct topt_error *err)
{
    struct topt_beside from;
    if (topt_beside_init(&from, topt_request_canonical(r, r->factors), err))
        return -1;
    topt_planning_resume(&from.planning, asked);
    int rc = merge_shapes(m, &from.planning, NULL, TOPT_GOAL_FRONTIER, err);
    topt_planning_resume(asked, &from.planning);
    topt_beside_fini(&from);
    return rc;
}

/* The trade-off with everything that saves memory: both ends as `topt plan` says them, and between
 * them the frontier of the canonical space, which takes seconds where the full one takes minutes.
 * The cheapest searches come first. */
static int merge_everything(struct merged *m, struct topt_planning *wide,
                            const struct topt_request *r, struct topt_error *err)
{
    struct topt_planning asked;
    const struct topt_request *all = wide->request;
    m->everything = 1;
    if (topt_planning_init(&asked, r, err))
        return -1;
    asked.least_is_a_point = 1;
    /* The uniform space takes a hundredth of the time of others: points to begin with, all of them
     * where the search is stopped. */
    int rc = merge_smaller(m, wide, topt_request_uniform(all, all->factors), err) ||
             merge_end(m, &asked, TOPT_GOAL_LEAST, err) ||
             merge_end(m, &asked, TOPT_GOAL_FASTEST, err) ||
             merge_canonical(m, &asked, all, err);
    topt_planning_resume(wide, &asked);
    topt_planning_fini(&asked);
    return rc ? -1 : 0;
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
                     "band",
                     topt_prediction_band(r->hw, &r->settings, cost, c->peak_bytes));
}

/* The point's strategy in words, except on unlike devices, whose shares the words would
 * leave out. */
static void name_point(const struct topt_request *r, enum topt_space space,
                       const struct topt_placed *p, json_t *point)
{
    struct topt_mesh mesh;
    if (r->unlike.parts || topt_mesh_init(&mesh, p->nodes, p->per_node, NULL))
        return;
    char *words = topt_solution_words(space == TOPT_SPACE_UNIFORM ? r->framework : NULL,
                                      r->model, &mesh, p->s.strategy, &p->s.degrees);
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
        topt_put_verdict(point, micros->request->hw, topt_request_limit(micros->request));
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
        words = "tensor parallelism, which may need less memory (--tensor-parallel "
                "searches it)";
    else if (m->everything && m->ends.space == TOPT_SPACE_FULL)
        words = "between the two ends, splits of the full space that are not canonical "
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
    for (int i = 0; i < m->n; i++)
        if (m->at[i].s.degrees.stages > 1) /* few strategies of a stage are tried */
            topt_certificate_withdraw(&m->certificate);
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
    topt_totals_put(doc, &r->totals);
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

/* The frontier of the request's own space. */
static int merge_asked(struct merged *m, struct topt_planning *micros,
                       struct topt_error *err)
{
    const struct topt_request *r = micros->request;
    int factors = topt_request_factors(r, TOPT_SPACE_FULL), rc = 0, i = 0;
    while (!rc && !some_fits(m, topt_request_limit(r)) &&
           topt_planning_resort(micros, &i))
        rc = merge_shapes(m, micros, NULL, TOPT_GOAL_FRONTIER, err);
    if (!rc && m->certificate.decided && !m->stopped && m->space == TOPT_SPACE_FULL &&
        !topt_algorithm_find(r->algorithm))
        rc = merge_smaller(m, micros, topt_request_canonical(r, factors), err) ||
             merge_shapes(m, micros, micros, TOPT_GOAL_FASTEST, err);
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
                                : merge_asked(&m, &micros, err);
    rc = rc || put_frontier(&micros, &m, ret, err);
    for (int i = 0; i < m.n; i++)
        topt_strategy_destroy(m.at[i].s.strategy);
    free(m.at);
    topt_certificate_fini(&m.certificate);
    topt_planning_fini(&micros);
    return rc ? -1 : 0;
}
