/* stage_cost.h - the cost of a step over stages, for one way to cut its layers.  Private to lower/. */
#ifndef TOPT_LOWER_STAGE_COST_H
#define TOPT_LOWER_STAGE_COST_H

#include "stage_layers.h"

/* Cuts layers for the least time ('lean': for the least memory) and costs the step.  A cost beyond the limits of 't' has
 * lower bounds of memory and time, and no stages.
 *
 * 'room' (NULL: stages are alike): by unlike stage, bytes that its units may add up to (0: any).  Where a stage holds more
 * than its device has, this returns 1, and 'room' is what should be tried next; else 0; -1: failed. */
int topt_stages_cost_cut(struct topt_layers *t, const struct topt_strategy *s, int lean,
                         int64_t *room, struct topt_strategy_cost *cost,
                         struct topt_error *err) TOPT_MUST_CHECK;

#endif
