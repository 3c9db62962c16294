/* topt_named_points.h - how well numbers of GPUs are used, and those among them that people book: the fewest, a whole
 * node, the cheapest, the knee, the fastest.
 *
 * A point has "gpus" and "time_ns", and "efficiency" once it is rated.  The fastest is the smallest number than which
 * none is faster; "min_efficiency" of a row is the roundest one that would choose it.  Thread safety: reentrant. */
#ifndef TOPT_NAMED_POINTS_H
#define TOPT_NAMED_POINTS_H

#include <jansson.h>
#include <stdint.h>

/* How well numbers of GPUs are used, and the knee among them, of the rows beside the fewest GPUs
 * and of curves:
 *   efficiency   speed a GPU, as a share of the best speed a GPU of all counts
 *   knee         the last count, going up, at which each GPU more than at the knee so far adds
 *                at least half of the best speed a GPU
 * Put "efficiency" into each of the points, ascending in "gpus", that has a time.  Returns the
 * number in the array of the knee, or -1 where it would be the end of the range. */
int topt_rate_points(json_t *points);

/* The least speed (steps a nanosecond) with which one more count would change who is fastest, the best speed a GPU or the knee
 * of rated points, or would be as efficient as 'efficiency'. */
double topt_rate_speed(const json_t *points, double gpus, double efficiency);

/* Put into 'rows', anew, those of the points (ascending) that have a name, one that is several once.  'per_node': the GPUs of
 * a node; why the first are the fewest, and why none is faster than the fastest. */
void topt_points_name(json_t *points, int per_node, const char *why_fewest,
                      const char *why_fastest, json_t *rows);

/* The most GPUs of rated points that are at least so efficient; 0: none, or nothing is asked. */
int64_t topt_points_efficient(const json_t *points, double min_efficiency);

#endif
