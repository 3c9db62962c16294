/* block_folding.h - blocks that choose alike, as one block.  Private to plan/. */
#ifndef TOPT_BLOCK_FOLDING_H
#define TOPT_BLOCK_FOLDING_H

#include "problem_data.h"

/* Variables and terms of the nodes and edges. */
int topt_fold_blocks(struct topt_problem *p, struct topt_error *err) TOPT_MUST_CHECK;

void topt_unfold_blocks(struct topt_problem *p); /* frees them */

#endif
