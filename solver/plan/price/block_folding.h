/* block_folding.h - blocks that choose alike, as one block.  Private to plan/. */
#ifndef TOPT_BLOCK_FOLDING_H
#define TOPT_BLOCK_FOLDING_H

#include "problem_data.h"

/* Places and links of the nodes and edges. */
int topt_fold_blocks(struct topt_problem *p, struct topt_error *err) TOPT_MUST_CHECK;

void topt_unfold_blocks(struct topt_problem *p); /* frees them */

/* What nodes of some families cost together, by configuration: added to what is there;
 * what is made again counts once, and of what is in flight the most.  1 where that
 * overflows. */
int topt_parts_sum(const struct topt_problem *p, const struct part *part, int nparts,
                   struct topt_cost *cost, int64_t *transient, int64_t *waiting);

int topt_parts_same(const struct part *a, int na, const struct part *b, int nb);

#endif
