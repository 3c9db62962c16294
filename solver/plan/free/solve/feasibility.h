/* feasibility.h - how much can be in flight of what fits.  Private to plan/. */
#ifndef TOPT_FEASIBILITY_H
#define TOPT_FEASIBILITY_H

#include "caps.h"
#include "solve_context.h"

/* Lower caps to what can be in flight of what fits, 'low' at least.  1, 0 where nothing
 * fits, or -1. */
int topt_feasible_caps(struct solve_context *r, struct topt_caps low,
                       struct topt_caps *high) TOPT_MUST_CHECK;

/* Can anything fit, as far as caps that are lowered to what fits beside the least sum
 * tell?  1, 0 or -1. */
int topt_feasible(struct solve_context *r) TOPT_MUST_CHECK;

#endif
