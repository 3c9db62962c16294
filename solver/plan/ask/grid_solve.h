/* grid_solve.h - the variants of a request on a grid solved, and their union.  Private
 * to plan/. */
#ifndef TOPT_GRID_SOLVE_H
#define TOPT_GRID_SOLVE_H

#include "grid.h"

/* Points of all variants within 'limit' (0: none) and no slower than 'time_limit' (0:
 * none). */
int topt_grid_solve(struct topt_grid_search *s, enum topt_goal goal, int64_t limit,
                    int64_t time_limit, struct topt_solutions *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* Keep the strategies of another space that lie in the shape's own, as its own; returns how
 * many. */
int topt_grid_keep_own(const struct topt_grid_search *s, struct topt_solutions *all);

#endif
