/* stage_cut.h - how units are cut into the chunks of stages.  Private to lower/. */
#ifndef TOPT_LOWER_STAGE_CUT_H
#define TOPT_LOWER_STAGE_CUT_H

#include "stage_state.h"

/* Fills 'cut' and 'ahead'. */
void topt_stages_cut(struct topt_stage_state *x);
/* A lower bound of the bytes that the fullest stage of the cut holds. */
int64_t topt_stages_least_bytes(const struct topt_stage_state *x);
/* By unlike stage, the bytes that its units may add up to so that all it holds, as it was costed, fits its device.  Returns
 * whether some stage holds more than that. */
int topt_stages_room(const struct topt_stage_state *x, int64_t *room);

#endif
