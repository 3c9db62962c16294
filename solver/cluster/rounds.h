/* rounds.h - policies that change running jobs.  Thread safety: none; one owner at a time. */
#ifndef TOPT_CLUSTER_ROUNDS_H
#define TOPT_CLUSTER_ROUNDS_H

#include "sim.h"

enum rounds_policy { ROUNDS_GAVEL, ROUNDS_SIA, ROUNDS_RUBICK };

/* Give all jobs what the policy gives them from now on; -1 without memory. */
int rounds_step(struct sim *s, enum rounds_policy policy);

#endif
