/* uniform.h - the strategies of the uniform space on one grid.  Private to plan/. */
#ifndef TOPT_PLAN_UNIFORM_H
#define TOPT_PLAN_UNIFORM_H

#include "grid.h"

/* Find, over all degrees of a uniform grid and by the goal, the fastest strategy within 'limit' bytes
 * (0: any) and no slower than 'time_limit' (0: any); the one with the least memory, where that is
 * within the limit; or the frontier within it.  'ret' starts empty.  Exact, whatever tolerance or work the request
 * allows.  'ret' is empty where nothing is within the limits, or on failure. */
int topt_uniform_solve(struct topt_grid_search *s, enum topt_goal goal, int64_t limit,
                       int64_t time_limit, struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
