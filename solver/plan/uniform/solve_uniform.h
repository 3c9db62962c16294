/* solve_uniform.h - a variant of the uniform space answered from the memo of its problem, which gets what
 * is missing.  Private to plan/. */
#ifndef TOPT_PLAN_SOLVE_UNIFORM_H
#define TOPT_PLAN_SOLVE_UNIFORM_H

#include "grid_data.h"

/* Is a grid's question one for the memo: blocks choose alike, nothing is pinned, no other system's
 * algorithm, no limit of work, which ends searches in between?  Not of a frontier. */
int topt_uniform_has_memo(const struct topt_grid_search *s, enum topt_goal goal);

/* What the costs of a uniform variant assume beside it, into the variant: lifetimes.h, hidden.h.
 * Nothing in other spaces. */
int topt_uniform_assume(struct topt_grid_search *s, struct topt_degrees *v,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Limits of what is asked about a variant; 0: none. */
struct topt_uniform_question {
    enum topt_goal goal; /* not the frontier */
    int64_t memory_limit, time_limit;
};

/* The best strategy of a variant by the goal, into an empty 'ret': the fastest within both limits,
 * or the least memory below the limit, without its strategy.  'o' holds what searches are made
 * with; its limits are not read, as the memo must not depend on them.  'variant' gets what
 * its costs assume. */
int topt_uniform_solve(struct topt_grid_search *s, const struct topt_search_options *o,
                       const struct topt_uniform_question *q,
                       struct topt_degrees *degrees, struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
