/* ft.c - the exact frontier of any graph: plan the eliminations, then search band by band.
 *
 *     problem --leaves.c, eliminate.c--> tables and steps --weigh.c--> bounds
 *                                               |                         |
 *                                               +---------make.c----------+
 *                                                          |
 *                          frontier <--sweep.c-- bands <--band.c
 *
 * The plan says which tables are made of which (eliminate.c); it is made once.  A weighing of
 * memory and time makes every table a table of single integers, which is cheap, and bounds
 * what any part of a strategy can become (weigh.c).  Between two neighbouring points of the
 * frontier's convex hull little is within such bounds, so tables of points are made for one
 * such band at a time (band.c), and the bands together are the frontier (sweep.c). */
#include "sweep.h"

/* The one strategy of a problem without operators. */
static int answer_nothing(const struct topt_search_problem *problem,
                          struct topt_frontier **ret, struct topt_error *err)
{
    *ret = topt_frontier_create(problem, 1, 1, err);
    return *ret ? 0 : -1;
}

static int name_decided(const struct plan *plan, struct topt_frontier *f)
{
    f->exact = f->exact && !plan->nfixed;
    return topt_frontier_decided(f, plan->fixed, plan->problem->nops, plan->err);
}

int topt_search_ft(const struct topt_search_problem *problem,
                   const struct topt_search_options *options, struct topt_frontier **ret,
                   struct topt_error *err)
{
    struct plan plan;
    if (problem->nops == 0)
        return answer_nothing(problem, ret, err);
    int rc = topt_plan_init(&plan, problem, options, err);
    if (!rc)
        rc = topt_sweep(&plan, options, ret, err);
    if (!rc && name_decided(&plan, *ret)) {
        topt_frontier_destroy(*ret);
        rc = -1;
    }
    topt_plan_fini(&plan);
    return rc;
}
