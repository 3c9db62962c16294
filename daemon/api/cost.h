/* cost.h - how many seconds a search is expected to take, by which the queue is ordered
 * (work/lanes.h).
 *
 * Questions are told apart by what they ask for, the space, and whether of one number of
 * GPUs or of all; of each such class the mean of the logarithms of the last searches'
 * seconds is kept, from a first guess on. Thread safety: any thread; atomic numbers, of
 * which a lost one matters nothing. */
#ifndef TOPTD_COST_H
#define TOPTD_COST_H

#include <stdatomic.h>
#include <stdint.h>

#include "topt_query.h"

enum { COST_KINDS = 3, COST_SPACES = 4, COST_CLASSES = COST_KINDS * COST_SPACES * 2 };

struct costs {
    /* Thousandths of ln seconds, and of how many searches; 0 of none. */
    _Atomic int64_t mean[COST_CLASSES], n[COST_CLASSES];
};

/* Does it ask for one choice for the whole model, which is found in milliseconds? */
int cost_is_uniform(const struct topt_query *q);

double cost_expected(const struct costs *c, const struct topt_query *q);
void cost_learn(struct costs *c, const struct topt_query *q, double seconds);

#endif
