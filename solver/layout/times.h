/* times.h - what collectives take, remembered.  Private to layout/. */
#ifndef TOPT_TIMES_H
#define TOPT_TIMES_H

#include "topt_layout.h"

struct topt_times; /* one owner at a time */
struct topt_times *topt_times_create(const struct topt_hw *hw,
                                     const struct topt_mesh *mesh);
void topt_times_destroy(struct topt_times *t);
/* Among so many nodes, and devices of each. */
struct topt_time topt_times_of(struct topt_times *t, enum topt_collective c, int nodes,
                               int per_node, int64_t bytes);

#endif
