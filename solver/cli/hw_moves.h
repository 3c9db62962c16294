/* hw_moves.h - what the assumed figures of a hardware profile move.  Private to cli/. */
#ifndef TOPT_CLI_HW_MOVES_H
#define TOPT_CLI_HW_MOVES_H

#include <jansson.h>

#include "topt_hw.h"

/* For each assumed figure by what share of its time a step of a few models changes when the figure is a
 * tenth lower, the plans being those for the profile as it is:
 *
 *     {"models": [{"name", "gpus"}], "figures": [{"figure", "moves": [number or null, ...]}]}
 *
 * null: the model does not fit.  Of what a device has or keeps free of memory, which moves no time, the
 * array is empty.  A new reference; NULL: failed. */
json_t *topt_hw_moves(const struct topt_hw *hw, struct topt_error *err);

#endif
