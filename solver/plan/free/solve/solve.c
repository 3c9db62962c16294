/* solve.c - the three questions that may be asked of a problem: its fastest strategy, the
 * one that needs least memory, and its whole frontier.  Where its prices are bounds, they
 * become exact on the way. */
#include "cap_search.h"
#include "caps_frontier.h"
#include "lazy_fastest.h"
#include "lazy_frontier.h"
#include "problem_data.h"
#include "solve_context.h"

int topt_solve_fastest(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret, struct topt_error *err)
{
    return p->byte_bounds ? topt_lazy_fastest(p, options, ret, err)
                          : topt_cap_search_fastest(p, options, ret, err);
}

int topt_solve_least(struct topt_problem *p, const struct topt_search_options *options,
                     int64_t below, struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_search_options o = topt_solve_options_for_least(*options);
    o.max_work = options->max_work;
    return p->byte_bounds ? topt_lazy_least(p, &o, below, ret, err)
                          : topt_cap_search_least(p, &o, below, ret, err);
}

int topt_solve_frontier(struct topt_problem *p, const struct topt_search_options *options,
                        struct topt_solutions *ret, struct topt_error *err)
{
    return p->byte_bounds ? topt_lazy_frontier(p, options, ret, err)
                          : topt_caps_frontier(p, options, ret, err);
}
