/* timeline.h - what is free of each node over time, and when a shape fits first.
 *
 * Thread safety: none; one owner at a time. */
#ifndef TOPT_ALLOCATE_TIMELINE_H
#define TOPT_ALLOCATE_TIMELINE_H

#include "topt_allocate.h"

struct timeline;

/* With what 'p' says is held; 'p' is borrowed. */
struct timeline *timeline_new(const struct topt_alloc_problem *p);
void timeline_free(struct timeline *t);
/* The timeline is as another one of the same problem, from which it differs by moves alone
 * since it was made or reset. */
void timeline_reset(struct timeline *t, const struct timeline *as);

/* The shape takes its nodes from 'start_s' on (sign -1), or gives them back (1).  Without
 * memory the timeline is no longer valid, which timeline_failed says. */
void timeline_move(struct timeline *t, const struct topt_alloc_shape *s,
                   const size_t *node, int64_t start_s, int sign);
int timeline_failed(const struct timeline *t);
/* Windows that were looked at so far: the work done. */
int64_t timeline_looked(const struct timeline *t);

/* The least number of GPUs that is free at any time while the shape would run, of all nodes
 * that serve it (a lower bound where these are several sets). */
int64_t timeline_least(const struct timeline *t, const struct topt_alloc_shape *s,
                       int64_t from_s);

/* The earliest start in [from_s, latest_s], and in 'ret_node' its nodes: those that have the
 * fewest GPUs left, of these the first.  -1 where there is none. */
int64_t timeline_earliest(struct timeline *t, const struct topt_alloc_shape *s,
                          int64_t from_s, int64_t latest_s, size_t *ret_node);

#endif
