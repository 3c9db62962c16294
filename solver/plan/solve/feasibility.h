/* feasibility.h - how much can be in flight of what fits.  Private to plan/. */
#ifndef TOPT_FEASIBILITY_H
#define TOPT_FEASIBILITY_H

#include "run.h"

/* Can anything fit, as far as caps that are lowered to what fits beside the lightest sum
 * tell?  1, 0 or -1. */
int topt_feasible(struct run *r) TOPT_MUST_CHECK;

#endif
