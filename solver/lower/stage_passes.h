/* stage_passes.h - the time and the bytes of the passes of each chunk of a cut.  Private to lower/. */
#ifndef TOPT_LOWER_STAGE_PASSES_H
#define TOPT_LOWER_STAGE_PASSES_H

#include "stage_state.h"

/* Fills 'chunk' and what else is of chunks, and 'end_ns'. */
int topt_stages_find_passes(struct topt_stage_state *x) TOPT_MUST_CHECK;
/* Fills 'chunk' and 'hidden_ns' where only the sums of units are known: with the least time that passes take, the longest
 * of what one link takes, and of computing with the communication that it waits for. */
void topt_stages_bound_passes(struct topt_stage_state *x);
/* Fills 'pair_ns' and 'saved_ns', for a schedule that runs two passes as one, and 'hidden_ns' with the most that pairs of
 * these passes hide. */
int topt_stages_find_pairs(struct topt_stage_state *x) TOPT_MUST_CHECK;

#endif
