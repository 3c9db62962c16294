/* frontier_tracking.c - the exact frontier of any graph, in steps that each make the problem smaller.
 *
 *     problem
 *       |  config_dominance.c      fewer configurations
 *       |  block_elimination.c     blocks are edges (articulation.c says what a block is;
 *       |                          table_dominance.c leaves points out)
 *       |  cutset_conditioning.c   a slice for every configuration of a cutset
 *       v
 *     each slice
 *       |  leaves.c, elimination.c     tables, and steps that make them: planned once
 *       |  min_marginals.c             bounds: the steps with one integer an entry
 *       |  make_points.c               points: the steps with a frontier an entry
 *       v
 *     segments of the frontier (segment.c), one after the other (two_phase.c)
 *
 * Configurations that another always beats are left out.  Blocks between two operators are
 * solved whole and become edges.  What makes everything hang together is gone through value
 * by value.  What is left of a model then is a chain.
 *
 * The plan of a slice says which tables are made of which (elimination.c); it is made once.  A
 * weighing of memory and time makes every table a table of single integers, which is cheap,
 * and bounds what any part of a strategy can become (min_marginals.c).  Between two neighbouring
 * points of the frontier's convex hull little is within such bounds, so tables of points are
 * made for one such segment at a time (segment.c), and the segments together are the frontier
 * (two_phase.c). */
#include "frontier_tracking.h"

#include "block_elimination.h"
#include "cutset_conditioning.h"
#include "frontier.h"
#include "articulation.h"
#include "lift.h"
#include "config_dominance.h"
#include "search_common.h"
#include "two_phase.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SLICES = 1024,
    MANY_OPS = 80, /* from so many on it pays to make a problem smaller first */
};

/* A search in its steps. */
struct ft {
    const struct topt_search_problem *problem;
    const struct topt_search_options *options;
    struct topt_error *err;
    struct reduced_problem narrowed;
    struct condensed condensed;
    struct conditioned conditioned;
    char *cutset; /* by operator of the narrowed problem, then of the condensed one */
    int nothing_fits;
    int64_t work; /* pairs of entries that were weighed to find that out */
};

/* The one strategy of a problem without operators. */
static int answer_nothing(const struct topt_search_problem *problem,
                          struct topt_frontier **ret, struct topt_error *err)
{
    static const int32_t none;
    *ret = topt_frontier_create(problem, err);
    return *ret ? topt_frontier_add(*ret, (struct topt_cost){0, 0}, &none, err) : -1;
}

/* Is the lightest strategy too heavy?  One weighing tells, before blocks are solved; where the
 * problem can't be weighed as it is, nothing is known. */
static int find_whether_fits(struct ft *f)
{
    const struct topt_search_options *o = f->options;
    struct topt_cost light, fast;
    struct topt_error why = {0};
    struct elimination_plan plan;
    int some = 1, unknown;
    if (!o->memory_limit)
        return 0;
    unknown = topt_elimination_exactly(&plan, &f->narrowed.problem, o, &why) ||
              topt_two_phase_ends(&plan, o, &some, &light, &fast, &why);
    if (!unknown) {
        f->nothing_fits = !some || light.memory > o->memory_limit;
        f->work += 2 * plan.tables.npairs;
    }
    topt_elimination_fini(&plan);
    if (!unknown || why.code == TOPT_ERR_LIMIT)
        return 0;
    if (f->err)
        *f->err = why;
    return -1;
}

static int reduce_problem(struct ft *f)
{
    const struct topt_search_problem *p = &f->narrowed.problem;
    if (topt_config_dominance(f->problem, f->options, &f->narrowed, f->err) ||
        find_whether_fits(f))
        return -1;
    if (f->nothing_fits)
        return 0;
    f->cutset = calloc((size_t)p->nops + 1, 1);
    if (!f->cutset)
        return topt_search_nomem(f->err);
    if (topt_graph_cutset(p, MAX_SLICES, f->cutset, f->err) ||
        topt_eliminate_blocks(p, f->cutset, f->options, &f->condensed, f->err))
        return -1;
    for (int i = 0; i < f->condensed.problem.nops; i++) /* in place: op[i] >= i */
        f->cutset[i] = f->cutset[f->condensed.op[i]];
    return 0;
}

static int name_decided(const struct ft *f, struct topt_frontier *ret)
{
    int n = f->problem->nops;
    int32_t *fixed = malloc(((size_t)n + 1) * sizeof *fixed);
    if (!fixed)
        return topt_search_nomem(f->err);
    memset(fixed, 0xff, (size_t)n * sizeof *fixed);
    for (int i = 0; i < f->condensed.problem.nops; i++)
        if (f->conditioned.decided[i])
            fixed[f->condensed.op[i]] = 0;
    int rc = topt_frontier_decided(ret, fixed, n, f->err);
    free(fixed);
    return rc;
}

static void tell(const struct ft *f, struct topt_frontier *ret)
{
    const struct tables *ts = &f->condensed.plan.tables;
    ret->stats = f->conditioned.frontier->stats;
    ret->stats.products += f->narrowed.work + f->condensed.work + f->work;
    ret->stats.tables += ts->stats.tables;
    ret->stats.shared += ts->stats.shared;
    ret->stats.points += (int64_t)(f->condensed.maker.merge.n);
    ret->stats.peak_bytes += ts->stats.peak_bytes;
    ret->epsilon = f->conditioned.frontier->epsilon;
    ret->exact = ret->epsilon <= 0 && !ret->nheuristic;
}

/* From the smallest problem's strategies to those of the problem that was asked about. */
static int answer(const struct ft *f, struct topt_frontier **ret)
{
    struct topt_frontier *a = topt_frontier_create(f->problem, f->err);
    if (!a)
        return -1;
    if (topt_lift(&f->condensed, f->conditioned.frontier, a, f->err) ||
        name_decided(f, a)) {
        topt_frontier_destroy(a);
        return -1;
    }
    topt_strategies_rename(topt_frontier_strategies(a), f->narrowed.config,
                           (size_t)f->problem->nops);
    tell(f, a);
    *ret = a;
    return 0;
}

/* Nothing is within the limits. */
static int answer_none(const struct ft *f, struct topt_frontier **ret)
{
    *ret = topt_frontier_create(f->problem, f->err);
    if (!*ret)
        return -1;
    (*ret)->stats.products = f->narrowed.work + f->work;
    return 0;
}

int topt_search_smaller(const struct topt_search_problem *problem,
                        const struct topt_search_options *options,
                        struct topt_frontier **ret, struct topt_error *err)
{
    struct ft f = {.problem = problem, .options = options, .err = err};
    if (problem->nops == 0)
        return answer_nothing(problem, ret, err);
    int rc = reduce_problem(&f);
    if (!rc && !f.nothing_fits)
        rc = topt_condition_on_cutset(&f.condensed.problem, f.cutset, options,
                                      &f.conditioned, err);
    if (!rc)
        rc = f.nothing_fits ? answer_none(&f, ret) : answer(&f, ret);
    topt_conditioned_fini(&f.conditioned);
    topt_condensed_fini(&f.condensed);
    topt_reduced_fini(&f.narrowed);
    free(f.cutset);
    return rc;
}

/* The problem as it is. */
static int search_at_once(const struct topt_search_problem *problem,
                          const struct topt_search_options *options,
                          struct topt_frontier **ret, struct topt_error *err)
{
    struct elimination_plan plan;
    /* The fastest is to be the lightest of its kind, too, unless a tolerance is given. */
    int knows = !options->fastest || options->epsilon > 0;
    struct known_costs known = {options->known, knows ? options->nknown : 0};
    int rc = topt_elimination_init(&plan, problem, NULL, options, err);
    if (!rc)
        rc = topt_two_phase(&plan, options, known, ret, err);
    if (!rc) {
        (*ret)->exact = (*ret)->exact && !plan.nfixed;
        rc = topt_frontier_decided(*ret, plan.fixed, problem->nops, err);
        if (rc)
            topt_frontier_destroy(*ret);
    }
    topt_elimination_fini(&plan);
    return rc;
}

int topt_search_ft(const struct topt_search_problem *problem,
                   const struct topt_search_options *options, struct topt_frontier **ret,
                   struct topt_error *err)
{
    if (problem->nops == 0)
        return answer_nothing(problem, ret, err);
    /* Where little is wanted (the fastest, what is within a box), bounds leave less of the
     * problem than solving blocks whole would cost. */
    if (options->fastest || options->time_limit || problem->nops < MANY_OPS)
        return search_at_once(problem, options, ret, err);
    return topt_search_smaller(problem, options, ret, err);
}
