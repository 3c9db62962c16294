/* frontier_tracking.c - the exact frontier of any graph, in steps that each make the
 * problem smaller.
 *
 *     problem
 *       |  presolve.c              fewer configurations; blocks are edges
 *       |  cutset_conditioning.c   a slice for every configuration of a cutset
 *       v
 *     each slice
 *       |  leaves.c, elimination.c     tables, and steps that make them: planned once
 *       |  min_marginals.c             bounds: the steps with one integer an entry
 *       |  make_points.c               points: the steps with a frontier an entry
 *       v
 *     segments of the frontier (segment.c), one after the other (two_phase.c)
 *
 * What makes everything hang together is gone through value by value.  What is left of a
 * model then is a chain.
 *
 * The plan of a slice says which tables are made of which (elimination.c); it is made
 * once.  A weighted sum of memory and time makes every table a table of single integers,
 * which is cheap, and bounds what any part of a strategy can become (min_marginals.c).
 * Between two neighbouring points of the frontier's convex hull little is within such
 * bounds, so tables of points are made for one such segment at a time (segment.c), and
 * the segments together are the frontier (two_phase.c). */
#include "frontier_tracking.h"

#include "cutset_conditioning.h"
#include "frontier.h"
#include "presolve.h"
#include "two_phase.h"

/* The one strategy of a problem without operators. */
static int answer_nothing(const struct topt_search_problem *problem,
                          struct topt_frontier **ret, struct topt_error *err)
{
    static const int32_t none;
    *ret = topt_frontier_create(problem, err);
    return *ret ? topt_frontier_add(*ret, (struct topt_cost){0, 0}, &none, err) : -1;
}

static int search_presolved(const struct presolve *p, struct topt_frontier **ret,
                            struct topt_error *err)
{
    struct conditioned c;
    int rc = topt_condition_on_cutset(p->problem, p->cutset, p->options, &c, err);
    struct topt_frontier *found = c.frontier;
    c.frontier = NULL; /* the lift consumes it */
    if (!rc)
        rc = topt_presolve_lift(p, found, c.decided, ret, err);
    else
        topt_frontier_destroy(found);
    topt_conditioned_fini(&c);
    return rc;
}

int topt_search_smaller(const struct topt_search_problem *problem,
                        const struct topt_search_options *options,
                        struct topt_frontier **ret, struct topt_error *err)
{
    struct presolve p;
    if (problem->nops == 0)
        return answer_nothing(problem, ret, err);
    int rc = topt_presolve(&p, problem, options, err);
    if (!rc)
        rc = search_presolved(&p, ret, err);
    topt_presolve_fini(&p);
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
    struct incumbent_costs known = {options->known, knows ? options->nknown : 0};
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
    return topt_presolve_pays(problem, options)
               ? topt_search_smaller(problem, options, ret, err)
               : search_at_once(problem, options, ret, err);
}
