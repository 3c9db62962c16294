/* topt_flexflow_row.h - FlexFlow as a system that searches by itself, a row of comparisons.
 *
 * The walk has request.seed and request.proposals; where these are 0, 1 and as many as run a
 * few million tasks; it ends where request.stop says so.  It places parts of operators, moves while
 * it computes, by the links of our schedules, and does not look at memory: the fastest that it found
 * fits or does not. */
#ifndef TOPT_FLEXFLOW_ROW_H
#define TOPT_FLEXFLOW_ROW_H

#include "topt_plan.h"

extern const struct topt_system topt_flexflow_row;

#endif
