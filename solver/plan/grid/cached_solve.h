/* cached_solve.h - a variant answered from the cache of it, which is found out where it
 * is missing.  Private to plan/. */
#ifndef TOPT_CACHED_SOLVE_H
#define TOPT_CACHED_SOLVE_H

#include "grid_data.h"

/* What of a variant is of interest; 0: no limit. */
struct topt_cached_question {
    enum topt_goal goal; /* not the frontier */
    int64_t memory_limit, time_limit;
};

/* The best of a variant by the goal, into an empty 'ret': of the fastest within both
 * limits, of the least below the limit.  'o': what searches are made with; its limits are
 * not read, as all of a variant is cached. */
int topt_cached_solve(struct topt_grid_search *s, const struct topt_search_options *o,
                      const struct topt_cached_question *q, struct topt_variant *variant,
                      struct topt_solutions *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* See that all is cached that some question for the fastest may need, whose limit is 'most'
 * or less: what no variant before it excludes by being faster in as much memory.  'seen'
 * are points of variants before (a frontier), and gets those of this one. */
int topt_cached_complete(struct topt_grid_search *s, const struct topt_search_options *o,
                         int64_t most, struct topt_variant *variant,
                         struct topt_solutions *seen,
                         struct topt_error *err) TOPT_MUST_CHECK;

#endif
