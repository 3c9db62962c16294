/* collective_times.h - a cache of the times of collectives.  Private to layout/. */
#ifndef TOPT_COLLECTIVE_TIMES_H
#define TOPT_COLLECTIVE_TIMES_H

#include "topt_layout.h"

struct topt_collective_times; /* one owner at a time */
struct topt_collective_times *topt_collective_times_create(const struct topt_hw *hw,
                                                           const struct topt_mesh *mesh);
void topt_collective_times_destroy(struct topt_collective_times *t);
/* Among so many nodes, and devices of each. */
struct topt_time topt_collective_times_of(struct topt_collective_times *t,
                                          enum topt_collective c, int nodes, int per_node,
                                          int64_t bytes);

#endif
