/* efficiency.h - how well numbers of GPUs are used, and the knee among them: one rule for the
 * rows beside the fewest GPUs and for curves.
 *
 *   efficiency   speed a GPU, as a share of the best speed a GPU of all counts
 *   knee         the last count, going up, at which each GPU more than at the knee so far adds
 *                at least half of the best speed a GPU
 *
 * Thread safety: reentrant. */
#ifndef TOPT_EFFICIENCY_H
#define TOPT_EFFICIENCY_H

#include <jansson.h>

/* Put "efficiency" into each of the points, ascending in "gpus", that has a time. Returns the
 * number in the array of the knee, or -1 where none has one. */
int topt_rate_points(json_t *points);

#endif
