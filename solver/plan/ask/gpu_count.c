/* gpu_count.c - a number of devices: every nodes x devices-per-node shape that the hardware
 * allows, and the best plan over all of them. */
#include "best.h"
#include "algorithm.h"
#include "free.h"
#include "grid.h"
#include "planning.h"
#include "request.h"
#include "topt_choices.h"
#include "topt_question.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pipeline stages share ranks, so that each has fewer over its samples. */
static int stages_divide(const struct topt_planning *m, int64_t samples, int64_t ranks)
{
    for (int s = 2; s <= topt_planning_most_stages(m) && s <= ranks; s++)
        if (topt_planning_stages(m, s) && ranks % s == 0 && samples % (ranks / s) == 0)
            return 1;
    return 0;
}

int topt_count_divides_batch(const struct topt_planning *m, int64_t gpus,
                             int64_t ret_nearest[2])
{
    const struct topt_request *r = m->request;
    int64_t samples = r->model->batch / (r->micro_batches ? r->micro_batches : 1);
    int64_t fewest = gpus;
    struct topt_mesh mesh;
    int nodes = 0, per_node = 0;
    if (!topt_request_even(r) || r->unlike.parts ||
        topt_space_resolve(r->space, (int)gpus) != TOPT_SPACE_UNIFORM)
        return 1;
    while (topt_request_grid(r, gpus, &nodes, &per_node)) {
        if (topt_mesh_init(&mesh, nodes, per_node, NULL))
            return 1;
        for (int cut = topt_tensor_from(&mesh, m->tensor); cut <= mesh.naxes; cut++) {
            int64_t all = topt_data_ranks(&mesh, cut);
            if (m->heads % (mesh.devices / all))
                continue;
            for (int of = cut; of >= 0; of--) {
                int64_t ranks = topt_data_ranks(&mesh, of);
                if (!topt_planning_contexts(m, all / ranks))
                    continue;
                if ((r->pipeline < 2 && samples % ranks == 0) ||
                    stages_divide(m, samples, ranks))
                    return 1;
                fewest = ranks < fewest ? ranks : fewest;
            }
        }
    }
    if (ret_nearest) {
        int64_t rounds = r->model->batch / samples;
        ret_nearest[0] = samples / fewest * fewest * rounds;
        ret_nearest[1] = (samples / fewest + 1) * fewest * rounds;
    }
    return 0;
}

/* Parameters, gradients, optimizer state and what backward reads, each once, spread
 * evenly.  Where gradients may come late (grid.c, late_bytes) what backward reads is left
 * out. */
int64_t topt_count_least_bytes(const struct topt_planning *m, int64_t gpus)
{
    const struct topt_request *r = m->request;
    enum topt_space space = topt_space_resolve(r->space, (int)gpus);
    const struct topt_least_parameters *p = &m->parameters.all;
    double bytes = p->value + p->gradient + p->state;
    int late = r->settings.gather == TOPT_GATHER_UNIT && m->at[0].batches == 1;
    if (!(topt_request_widest(r, space) & TOPT_FACTOR_RECOMPUTE) && !late)
        bytes += m->activation_bytes[0] / (double)m->at[m->n - 1].batches;
    return (int64_t)(bytes * (1 - 1e-9) / (double)gpus);
}

/* ---- the best of a count ----------------------------------------------------------- */

void topt_best_fini(struct topt_best *b)
{
    topt_strategy_destroy(b->solution.strategy);
    topt_certificate_fini(&b->certificate);
    memset(b, 0, sizeof *b);
}

enum topt_fits topt_best_fits(const struct topt_best *b)
{
    if (b->found)
        return TOPT_FITS;
    return b->stopped || !b->certificate.exact ? TOPT_FITS_UNKNOWN : TOPT_FITS_NOT;
}

int64_t topt_best_bound(const struct topt_best *b)
{
    int64_t need = b->solution.memory_bytes, floor = b->certificate.bound_bytes;
    return floor < need ? floor : need;
}

json_t *topt_fits_json(enum topt_fits fits)
{
    return fits == TOPT_FITS_UNKNOWN ? json_null() : json_boolean(fits == TOPT_FITS);
}

static int better(const struct topt_solution *a, const struct topt_mesh *mesh,
                  const struct topt_best *b, enum topt_goal goal)
{
    const struct topt_solution *c = &b->solution;
    int64_t time = a->time_ns - c->time_ns, memory = a->memory_bytes - c->memory_bytes;
    if (!b->found)
        return 1;
    if (goal == TOPT_GOAL_LEAST && memory)
        return memory < 0;
    if (time || memory)
        return time < 0 || (!time && memory < 0);
    return mesh->nodes < b->mesh.nodes;
}

static void take(struct topt_best *b, const struct topt_grid_search *s,
                 struct topt_solution *solution)
{
    topt_strategy_destroy(b->solution.strategy);
    b->found = 1;
    b->uniform = 0;
    b->mesh = s->mesh;
    b->space = s->space;
    b->alike = s->alike;
    b->solution = *solution;
    b->stats = s->stats;
    solution->strategy = NULL;
}

/* A device grid of a count, and the best of the uniform space on it, from which its search starts.
 */
struct shape {
    int nodes, per_node;
    struct topt_solution uniform; /* strategy owned, NULL: none that fits */
};

struct shapes {
    int n;
    struct shape *at;
};

static int list_shapes(const struct topt_request *r, int64_t gpus, struct shapes *ret,
                       struct topt_error *err)
{
    int nodes = 0, per_node = 0, most = topt_hw_max_nodes(r->hw);
    *ret = (struct shapes){0, calloc((size_t)most + 1, sizeof *ret->at)};
    if (!ret->at)
        return topt_nomem(err, "the shapes");
    while (topt_request_grid(r, gpus, &nodes, &per_node))
        ret->at[ret->n++] = (struct shape){.nodes = nodes, .per_node = per_node};
    return ret->n ? 0 : topt_no_grid(r, gpus, err);
}

/* ---- warm start ----------------------------------------------------------------------- */

static int warm_start(struct topt_planning *uniform, struct shape *at, int64_t limit,
                      struct topt_certificate *certificate, struct topt_error *err)
{
    struct topt_grid_search s;
    struct topt_solutions all = {0};
    int rc =
        topt_grid_open(&s, uniform, at->nodes, at->per_node, TOPT_GOAL_FASTEST, err) ||
        topt_grid_solve(&s, TOPT_GOAL_FASTEST, limit, 0, &all, err);
    if (!rc && all.n > 0) {
        at->uniform = all.at[0];
        all.at[0].strategy = NULL;
    }
    /* The other space proves nothing about this one; only its work counts. */
    topt_search_stats_add(&certificate->stats, &all.certificate.stats);
    topt_solutions_fini(&all);
    topt_grid_close(&s);
    return rc ? -1 : 0;
}

static int by_warm_start(const void *x, const void *y)
{
    const struct shape *a = x, *b = y;
    int64_t s = a->uniform.strategy ? a->uniform.time_ns : INT64_MAX;
    int64_t t = b->uniform.strategy ? b->uniform.time_ns : INT64_MAX;
    return s != t ? (s > t) - (s < t) : a->nodes - b->nodes;
}

static int order_by_warm_start(struct topt_planning *m, int64_t gpus, int64_t limit,
                               struct shapes *shapes,
                               struct topt_certificate *certificate,
                               struct topt_error *err)
{
    enum topt_space space = topt_space_resolve(m->request->space, (int)gpus);
    int factors = topt_request_factors(m->request, space), rc = 0, stage = 1;
    struct topt_beside uniform;
    if (topt_beside_init(&uniform, topt_request_uniform(m->request, factors), err))
        return -1;
    /* The other spaces take tensor parallelism wherever the framework has it. */
    while (topt_planning_resort(&uniform.planning, &stage))
        ;
    for (int i = 0; i < shapes->n && !rc; i++) {
        rc = warm_start(&uniform.planning, &shapes->at[i], limit, certificate, err);
        if (shapes->at[i].uniform.strategy)
            uniform.request.stop = m->request->stop;
    }
    topt_beside_fini(&uniform);
    qsort(shapes->at, (size_t)shapes->n, sizeof *shapes->at, by_warm_start);
    return rc;
}

/* ---- solving ----------------------------------------------------------------------- */

/* The best so far bounds the search of the next shape; of equal answers the one on the
 * fewest nodes is kept. */
static int search_shape(struct topt_grid_search *s, int64_t limit, int64_t slowest_ns,
                        enum topt_goal goal, struct topt_best *ret,
                        struct topt_error *err)
{
    struct topt_solutions all = {0};
    int64_t memory = limit, time = slowest_ns;
    if (ret->found && goal == TOPT_GOAL_LEAST)
        memory = ret->solution.memory_bytes;
    else if (ret->found)
        time = ret->solution.time_ns;
    int rc = topt_grid_solve(s, goal, memory, time, &all, err) ||
             topt_certificate_merge(&ret->certificate, &all.certificate, err);
    ret->stopped |= all.stopped;
    if (!rc && all.n > 0 && better(&all.at[0], &s->mesh, ret, goal))
        take(ret, s, &all.at[0]);
    if (ret->found && ret->mesh.nodes == s->mesh.nodes &&
        ret->mesh.per_node == s->mesh.per_node)
        ret->stats = s->stats;
    topt_solutions_fini(&all);
    return rc ? -1 : 0;
}

static int solve_shape(struct topt_planning *m, struct shape *at, int64_t limit,
                       int64_t slowest_ns, enum topt_goal goal, struct topt_best *ret,
                       struct topt_error *err)
{
    struct topt_grid_search s;
    struct topt_solution *u = &at->uniform;
    int rc = topt_grid_open(&s, m, at->nodes, at->per_node, goal, err);
    if (!rc && u->strategy && better(u, &s.mesh, ret, goal) &&
        topt_grid_holds(&s, u->strategy)) {
        take(ret, &s, u);
        ret->uniform = 1;
    }
    rc = rc || search_shape(&s, limit, slowest_ns, goal, ret, err);
    topt_grid_close(&s);
    return rc;
}

/* Parts that were left with nothing faster than what another part has do not make it less exact.  Of
 * a pipeline stage only the fastest and the lightest strategy are tried, which proves nothing. */
static void claim_epsilon(struct topt_best *b, enum topt_goal goal)
{
    struct topt_certificate *c = &b->certificate;
    c->epsilon = b->found || c->exact ? topt_certificate_epsilon(c, b->solution.time_ns)
                                      : INFINITY;
    if (b->found && goal == TOPT_GOAL_FASTEST && c->epsilon == 0 && !c->decided)
        c->exact = 1;
    if (b->found && b->solution.degrees.stages > 1)
        topt_certificate_withdraw(c);
}

/* 'slowest_ns': nothing slower is of interest; 0: whatever its time. */
static int search_shapes(struct topt_planning *m, int64_t gpus, int64_t limit,
                         int64_t slowest_ns, enum topt_goal goal, struct topt_best *ret,
                         struct topt_error *err)
{
    struct shapes shapes;
    *ret = (struct topt_best){.certificate = topt_certificate_exact()};
    int rc = list_shapes(m->request, gpus, &shapes, err);
    const struct topt_request *r = m->request;
    if (!rc && !slowest_ns && goal == TOPT_GOAL_FASTEST &&
        topt_space_resolve(r->space, (int)gpus) != TOPT_SPACE_UNIFORM &&
        (!r->algorithm || !strcmp(r->algorithm, "ft")))
        rc = order_by_warm_start(m, gpus, limit, &shapes, &ret->certificate, err);
    for (int i = 0; i < shapes.n && !rc; i++)
        rc = solve_shape(m, &shapes.at[i], limit, slowest_ns, goal, ret, err);
    claim_epsilon(ret, goal);
    for (int i = 0; i < shapes.n; i++)
        topt_strategy_destroy(shapes.at[i].uniform.strategy);
    free(shapes.at);
    if (rc)
        topt_best_fini(ret);
    return rc ? -1 : 0;
}

/* A smaller space, or a search with fewer limits, may find what heuristic decisions missed. */
static int asks_others(const struct topt_planning *m, const struct topt_best *b)
{
    const char *a = m->request->algorithm;
    return (!a || !strcmp(a, "ft")) && b->certificate.decided && !b->stopped;
}

/* Search 'other', which may be 'm', within 'searched', and take its answer where that is better and
 * lies within 'limit' and in the request's own space.  The other search proves nothing about this
 * one; only its work counts. */
static int ask(struct topt_planning *m, struct topt_planning *other, int64_t gpus,
               int64_t searched, int64_t limit, enum topt_goal goal,
               struct topt_best *ret, struct topt_error *err)
{
    struct topt_best b;
    struct topt_grid_search s = {0};
    if (search_shapes(other, gpus, searched, 0, goal, &b, err))
        return -1;
    int takes = b.found && !(limit && b.solution.memory_bytes > limit) &&
                better(&b.solution, &b.mesh, ret, goal);
    int rc = takes ? topt_grid_open(&s, m, b.mesh.nodes, b.mesh.per_node, goal, err) : 0;
    topt_search_stats_add(&ret->certificate.stats, &b.certificate.stats);
    if (takes && !rc && topt_grid_holds(&s, b.solution.strategy)) {
        take(ret, &s, &b.solution);
        ret->stats = b.stats;
        claim_epsilon(ret, goal);
    }
    topt_grid_close(&s);
    topt_best_fini(&b);
    return rc;
}

static int ask_smaller(struct topt_planning *m, int64_t gpus, int64_t limit,
                       enum topt_goal goal, struct topt_best *ret, struct topt_error *err)
{
    int factors = topt_request_factors(m->request, TOPT_SPACE_FULL);
    struct topt_beside canonical;
    if (topt_beside_init(&canonical, topt_request_canonical(m->request, factors), err))
        return -1;
    topt_planning_resume(&canonical.planning, m);
    int rc = ask(m, &canonical.planning, gpus, limit, limit, goal, ret, err);
    topt_planning_resume(m, &canonical.planning);
    topt_beside_fini(&canonical);
    return rc;
}

static int solve_shapes(struct topt_planning *m, int64_t gpus, int64_t limit,
                        int64_t slowest_ns, enum topt_goal goal, struct topt_best *ret,
                        struct topt_error *err)
{
    if (search_shapes(m, gpus, limit, slowest_ns, goal, ret, err))
        return -1;
    int rc = 0;
    if (asks_others(m, ret) &&
        topt_space_resolve(m->request->space, (int)gpus) == TOPT_SPACE_FULL)
        rc = ask_smaller(m, gpus, limit, goal, ret, err);
    /* The fastest of all may fit. */
    if (!rc && limit && goal == TOPT_GOAL_FASTEST && asks_others(m, ret))
        rc = ask(m, m, gpus, 0, limit, goal, ret, err);
    if (rc)
        topt_best_fini(ret);
    return rc ? -1 : 0;
}

/* A system that looks at time alone has one answer, which fits or does not. */
static int solve(struct topt_planning *m, int64_t gpus, int64_t limit, int64_t slowest_ns,
                 enum topt_goal goal, struct topt_best *ret, struct topt_error *err)
{
    const struct topt_algorithm *a = topt_algorithm_find(m->request->algorithm);
    if (!a || !a->time_only)
        return solve_shapes(m, gpus, limit, slowest_ns, goal, ret, err);
    if (solve_shapes(m, gpus, 0, slowest_ns, TOPT_GOAL_FASTEST, ret, err))
        return -1;
    if (limit && ret->solution.memory_bytes > limit) {
        topt_strategy_destroy(ret->solution.strategy);
        ret->solution = (struct topt_solution){0};
        ret->found = 0;
        ret->certificate.exact = !ret->stopped;
    }
    return 0;
}

/* The same question with more factors; 'slowest_ns': nothing slower is of interest; 0: whatever its
 * time. */
static int solve_wider(struct topt_planning *m, int factors, int64_t gpus, int64_t limit,
                       int64_t slowest_ns, enum topt_goal goal, struct topt_best *ret,
                       struct topt_error *err)
{
    struct topt_beside wider;
    struct topt_planning *w = &wider.planning;
    struct topt_request r = *m->request;
    r.factors = factors;
    if (topt_beside_init(&wider, r, err))
        return -1;
    w->tensor = m->tensor;
    w->memo = m->memo;
    w->least_is_a_point = m->least_is_a_point;
    topt_planning_resume(w, m);
    int rc = slowest_ns ? search_shapes(w, gpus, limit, slowest_ns, goal, ret, err)
                        : solve(w, gpus, limit, 0, goal, ret, err);
    topt_planning_resume(m, w);
    topt_beside_fini(&wider);
    ret->factors = factors;
    return rc;
}

/* Is there something faster that takes more than the limit? */
static int limit_binds(struct topt_planning *m, int64_t gpus, struct topt_best *found,
                       int *ret, struct topt_error *err)
{
    struct topt_best b;
    if (search_shapes(m, gpus, 0, found->solution.time_ns, TOPT_GOAL_FASTEST, &b, err))
        return -1;
    *ret = b.found && b.solution.time_ns < found->solution.time_ns;
    found->stopped |= b.stopped;
    topt_best_fini(&b);
    return 0;
}

/* With more factors something may be faster than what was found with few.  Where the search for
 * it ends early, what was found stays, with what is proven of it among the few. */
static int improve_wider(struct topt_planning *m, int factors, int64_t gpus,
                         int64_t limit, struct topt_best *best, struct topt_error *err)
{
    struct topt_best b;
    if (solve_wider(m, factors, gpus, limit, best->solution.time_ns, TOPT_GOAL_FASTEST,
                    &b, err))
        return -1;
    if (b.found && better(&b.solution, &b.mesh, best, TOPT_GOAL_FASTEST)) {
        topt_best_fini(best);
        *best = b;
        return 0;
    }
    best->stopped |= b.stopped;
    if (!b.stopped && b.certificate.bound_ns >= best->solution.time_ns)
        best->factors = factors;
    topt_best_fini(&b);
    return 0;
}

/* Recomputation and micro-batches only save memory: where the fastest that is only sharded fits, it
 * is the answer.  Where a slower one fits, everything is searched that is not slower than that; where
 * none fits, or the least memory is asked for, everything is. */
static int solve_count(struct topt_planning *m, int64_t gpus, int64_t limit,
                       int64_t slowest_ns, enum topt_goal goal, struct topt_best *ret,
                       struct topt_error *err)
{
    const struct topt_request *r = m->request;
    enum topt_space space = topt_space_resolve(r->space, (int)gpus);
    int factors = topt_request_factors(r, space), widest = topt_request_widest(r, space);
    int binds = 0;
    if (widest != factors && goal == TOPT_GOAL_LEAST)
        return solve_wider(m, widest, gpus, limit, 0, goal, ret, err);
    if (solve(m, gpus, limit, slowest_ns, goal, ret, err))
        return -1;
    ret->factors = factors;
    if (widest == factors || ret->stopped)
        return 0;
    if (!ret->found) {
        topt_best_fini(ret);
        return solve_wider(m, widest, gpus, limit, slowest_ns, goal, ret, err);
    }
    int rc = limit ? limit_binds(m, gpus, ret, &binds, err) : 0;
    if (!rc && binds)
        rc = improve_wider(m, widest, gpus, limit, ret, err);
    if (rc)
        topt_best_fini(ret);
    return rc;
}

/* The memory of a framework's plan is an estimate, and all but the last of it is easily taken: of the
 * device's memory a twentieth stays free where that makes a step less than 3 % slower.  A limit that is
 * asked for is used up. */
enum { ROOM = 20, SLOWER = 3 };

int topt_count_solve(struct topt_planning *m, int64_t gpus, int64_t limit,
                     int64_t slowest_ns, enum topt_goal goal, struct topt_best *ret,
                     struct topt_error *err)
{
    struct topt_best b;
    if (topt_space_resolve(m->request->space, (int)gpus) != TOPT_SPACE_UNIFORM)
        slowest_ns = 0; /* counts of the others begin with one of the uniform space */
    if (solve_count(m, gpus, limit, slowest_ns, goal, ret, err))
        return -1;
    const struct topt_request *r = m->request;
    if (!topt_request_even(r) || r->memory_limit || limit != topt_request_limit(r) ||
        goal != TOPT_GOAL_FASTEST || !ret->found || ret->stopped ||
        ret->solution.memory_bytes <= limit - limit / ROOM)
        return 0;
    int64_t tight_ns = ret->solution.time_ns;
    int64_t slower_ns =
        ret->space == TOPT_SPACE_UNIFORM ? tight_ns + tight_ns * SLOWER / 100 : 0;
    if (solve_count(m, gpus, limit - limit / ROOM, slower_ns, goal, &b, err)) {
        topt_best_fini(ret);
        return -1;
    }
    if (b.found && 100 * (b.solution.time_ns - tight_ns) < SLOWER * tight_ns) {
        topt_best_fini(ret);
        *ret = b; /* of stages few strategies are tried, so that it may even be faster */
        ret->tight_ns = b.solution.time_ns > tight_ns ? tight_ns : 0;
    } else {
        topt_best_fini(&b);
    }
    return 0;
}
