/* grid_solve.c - the variants of a request on a grid solved, and their union.
 *
 * A variant that can't matter is left out as early as possible: by bytes that every
 * strategy of it needs, before operators are priced; by the sums of what is least for
 * each choice, before anything is searched; by the best found so far, within the
 * search. */
#include "best.h"
#include "algorithm.h"
#include "free.h"
#include "grid.h"
#include "memo.h"
#include "planning.h"
#include "request.h"
#include "topt_array.h"
#include "topt_choices.h"
#include "topt_question.h"
#include "uniform.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct solver {
    struct topt_grid_search *s;
    enum topt_goal goal;
    struct topt_search_options o;
    struct topt_cost *known; /* of other shapes and variants before */
    struct topt_solutions *ret;
    struct topt_error *err;
};

static int beyond(int64_t value, int64_t limit)
{
    return limit && value > limit;
}

/* Limits as they are now: nothing slower than the fastest, or hungrier than the least. */
static int64_t time_limit(const struct solver *v)
{
    return v->goal == TOPT_GOAL_FASTEST && v->ret->n ? v->ret->at[0].time_ns
                                                     : v->o.time_limit;
}

static int64_t memory_limit(const struct solver *v)
{
    return v->goal == TOPT_GOAL_LEAST && v->ret->n ? v->ret->at[0].memory_bytes
                                                   : v->o.memory_limit;
}

/* Incumbents of a whole frontier. */
static int set_incumbents(struct solver *v, struct topt_search_options *o)
{
    size_t n = 0, most = (size_t)v->s->nknown + (size_t)v->ret->n + 1;
    if (v->goal != TOPT_GOAL_FRONTIER)
        return 0;
    if (TOPT_RESIZE(v->known, most))
        return topt_nomem(v->err, "the frontier");
    struct topt_cost *known = v->known;
    for (int i = 0; i < v->s->nknown; i++)
        known[n++] = v->s->known[i];
    for (int i = 0; i < v->ret->n; i++)
        known[n++] =
            (struct topt_cost){v->ret->at[i].memory_bytes, v->ret->at[i].time_ns};
    o->known = known;
    o->nknown = (int)topt_reduce(known, n);
    return 0;
}

static int search_variant(struct solver *v, struct topt_problem *p,
                          const struct topt_search_options *options,
                          struct topt_solutions *ret)
{
    struct topt_search_options o = *options;
    struct topt_cost least = topt_problem_lower_bound(p);
    if (!topt_problem_has_choices(p))
        return 0;
    if (beyond(least.memory, o.memory_limit) || beyond(least.time, o.time_limit))
        return 0;
    if (v->goal == TOPT_GOAL_LEAST)
        return topt_solve_least(p, &v->o, o.memory_limit, ret, v->err);
    return v->goal == TOPT_GOAL_FASTEST ? topt_solve_fastest(p, &o, ret, v->err)
                                        : topt_solve_frontier(p, &o, ret, v->err);
}

/* Is the best so far to be the answer?  Of the least, only the least is one. */
static int stopping(const struct solver *v)
{
    return v->goal != TOPT_GOAL_LEAST && topt_planning_over(v->s->planning);
}

/* A problem that can't be searched as it is: why is noted, and the answer is what else is known.
 * Nothing is searched where tables would exceed the limit; the uniform space remains where the
 * others are too large. */
static int is_too_large(struct solver *v, int priced)
{
    struct topt_planning *m = v->s->planning;
    if (!v->err || v->err->code != TOPT_ERR_LIMIT ||
        (!priced && v->s->request->max_table_bytes))
        return 0;
    snprintf(m->too_large, sizeof m->too_large, "%s", v->err->text);
    return 1;
}

/* Nothing is known of what is left. */
static void give_up(struct solver *v)
{
    struct topt_certificate none = {.epsilon = INFINITY, .bound_bytes = INT64_MAX};
    if (!topt_certificate_merge(&v->ret->certificate, &none, NULL))
        v->ret->stopped = 1;
}

/* Work of this request that is left, 0: it is not limited.  The least memory that an answer names
 * beside its plan is found whatever work that takes; as the end of a frontier it is one of many
 * points. */
static int64_t work_left(const struct solver *v)
{
    int64_t most = v->s->request->max_work, done = v->s->planning->work;
    if (!most || (v->goal == TOPT_GOAL_LEAST && !v->s->planning->least_is_a_point))
        return 0;
    return most - done > 1 ? most - done : 1;
}

static int price_and_search(struct solver *v, const struct topt_degrees *degrees,
                            struct topt_problem **p, struct topt_solutions *part)
{
    v->s->fastest = v->goal == TOPT_GOAL_FASTEST;
    int rc = topt_grid_problem(v->s, degrees, p, v->err);
    v->s->fastest = 0;
    v->o.max_work = work_left(v);
    struct topt_search_options o = v->o;
    if (set_incumbents(v, &o))
        return -1;
    o.time_limit = time_limit(v);
    o.memory_limit = memory_limit(v);
    if (rc || search_variant(v, *p, &o, part)) {
        int large = is_too_large(v, !rc);
        if (v->o.max_work && v->err && v->err->code == TOPT_ERR_CANCELED)
            v->s->planning->work = v->s->request->max_work;
        if (!stopping(v) && (!large || v->goal == TOPT_GOAL_LEAST))
            return -1;
        give_up(v);
        return 0;
    }
    v->s->planning->work += part->certificate.stats.products;
    struct topt_problem_stats stats;
    topt_problem_stats(*p, &stats);
    topt_problem_stats_add(&v->s->stats, &stats);
    v->s->stats.routes = topt_router_routes(v->s->router); /* of all problems so far */
    return 0;
}

/* Strategies that recompute nothing are charged too much by a problem with recomputation.  Without
 * a tolerance the variant without it has them too; with one it may have left them out, so they are
 * costed again here. */
static int charge_what_it_costs(struct solver *v, const struct topt_degrees *degrees,
                                const struct topt_problem *p, struct topt_solutions *part)
{
    struct topt_costing k;
    struct topt_evaluator *evaluator = NULL;
    int rc = 0;
    for (int i = 0; i < part->n && !rc; i++) {
        struct topt_strategy_cost cost;
        int64_t peak;
        if (topt_capped_is_exact_for(p, part->at[i].strategy))
            continue;
        if (!evaluator && (topt_grid_costing(v->s, degrees, &k, v->err) ||
                           !(evaluator = topt_evaluator_create(&k, 1, v->err))))
            return -1;
        rc =
            topt_evaluate_strategy(evaluator, part->at[i].strategy, &cost, &peak, v->err);
        if (!rc)
            part->at[i].memory_bytes = cost.memory_bytes;
    }
    topt_evaluator_destroy(evaluator);
    return rc;
}

static int solve_variant(struct solver *v, struct topt_degrees *degrees)
{
    const atomic_bool *cancel = v->s->request->cancel;
    struct topt_solutions part = {.certificate = topt_certificate_exact()};
    struct topt_problem *p = NULL;
    if (cancel && atomic_load(cancel))
        return topt_fail(v->err, TOPT_ERR_CANCELED, "the search was canceled");
    if (beyond(topt_grid_least_bytes(v->s, degrees), memory_limit(v)))
        return 0;
    topt_grid_tell_progress(v->s, degrees);
    if (v->s->planning->memo)
        v->s->planning->memo->searches++;
    int rc = price_and_search(v, degrees, &p, &part) ||
             (part.n && charge_what_it_costs(v, degrees, p, &part));
    for (int i = 0; i < part.n; i++)
        part.at[i].degrees = *degrees;
    topt_problem_destroy(p);
    if (!rc) {
        rc = topt_solutions_merge(v->ret, &part, v->err);
        if (v->goal != TOPT_GOAL_FRONTIER && v->ret->n)
            topt_solutions_keep(v->ret, v->goal == TOPT_GOAL_FASTEST ? v->ret->n - 1 : 0);
    }
    topt_solutions_fini(&part);
    return rc ? -1 : 0;
}

/* Keep the strategies of another space that lie in the shape's own, as its own. */
static void keep_own(const struct topt_grid_search *s, struct topt_solutions *all)
{
    int n = 0;
    for (int i = 0; i < all->n; i++) {
        if (!topt_grid_holds(s, all->at[i].strategy)) {
            topt_strategy_destroy(all->at[i].strategy);
            continue;
        }
        if (s->space != TOPT_SPACE_UNIFORM)
            topt_degrees_by_operator(&all->at[i].degrees);
        all->at[n++] = all->at[i];
    }
    all->n = n;
}

int topt_grid_solve_other(struct topt_grid_search *s, struct topt_planning *other,
                          enum topt_goal goal, int64_t limit, struct topt_solutions *ret,
                          struct topt_error *err)
{
    struct topt_grid_search o;
    int rc = topt_grid_open(&o, other, s->mesh.nodes, s->mesh.per_node, goal, err) ||
             topt_grid_solve(&o, goal, limit, 0, ret, err);
    topt_grid_close(&o);
    keep_own(s, ret);
    return rc ? -1 : 0;
}

/* A frontier whose search was stopped before it had anything has at least the fastest of
 * the uniform space. */
static int add_uniform_fastest(struct topt_grid_search *s, int64_t limit,
                               struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_solutions found = {0};
    struct topt_beside uniform;
    if (ret->n || !ret->stopped || s->nknown || s->algorithm)
        return 0;
    if (topt_beside_init(&uniform, topt_request_uniform(s->request, s->factors), err))
        return -1;
    int rc = topt_grid_solve_other(s, &uniform.planning, TOPT_GOAL_FASTEST, limit, &found,
                                   err);
    topt_certificate_fini(&found.certificate); /* says nothing of the own space */
    found.certificate = topt_certificate_exact();
    rc = rc || topt_solutions_merge(ret, &found, err);
    topt_solutions_fini(&found);
    topt_beside_fini(&uniform);
    return rc ? -1 : 0;
}

int topt_grid_solve(struct topt_grid_search *s, enum topt_goal goal, int64_t limit,
                    int64_t time_limit, struct topt_solutions *ret,
                    struct topt_error *err)
{
    struct solver v = {.s = s,
                       .goal = goal,
                       .o = topt_request_searches(s->request),
                       .ret = ret,
                       .err = err};
    int rc = 0;
    if (s->space == TOPT_SPACE_UNIFORM)
        return topt_uniform_solve(s, goal, limit, time_limit, ret, err);
    v.o.epsilon = s->request->epsilon;
    v.o.memory_limit = limit;
    v.o.time_limit = time_limit;
    *ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    /* Variants are listed from the fastest to those that need least. */
    for (int i = 0; i < s->ndegrees && !rc; i++) {
        int at = goal == TOPT_GOAL_LEAST ? s->ndegrees - 1 - i : i;
        if (stopping(&v)) {
            give_up(&v);
            break;
        }
        if (topt_planning_over(s->planning)) {
            rc = topt_fail(err, TOPT_ERR_CANCELED, "the search was stopped");
            break;
        }
        rc = solve_variant(&v, &s->degrees[at]);
    }
    free(v.known);
    if (!rc && goal == TOPT_GOAL_FRONTIER)
        rc = add_uniform_fastest(s, limit, ret, err);
    if (rc)
        topt_solutions_fini(ret);
    return rc;
}
