/* floors.h - what the passes of a micro-batch take and keep at least, by degrees.  Private to plan/.
 *
 * Data ranks do the same side by side, so that many degrees have one floor: it depends on the samples of a rank's
 * micro-batch and on how tensors, positions and experts are split, not on how many data ranks and micro-batches there
 * are. */
#ifndef TOPT_PLAN_FLOORS_H
#define TOPT_PLAN_FLOORS_H

#include "grid.h"
#include "memo.h"

/* The entry with the floor of degrees, which are a grid's; found when it is first asked for.  NULL with an error. */
const struct topt_memo_entry *topt_floor_find(struct topt_memo *memo,
                                              const struct topt_grid_search *grid,
                                              const struct topt_degrees *d,
                                              struct topt_error *err) TOPT_MUST_CHECK;

/* Lower bounds of the time of one micro-batch's passes, in nanoseconds: over all layers, and of the fastest layer. */
struct topt_pass_times {
    double all, layer;
    double tokens; /* at most, of all that, in which tokens go to experts and back */
};

/* 'grid': that of the degrees. */
struct topt_pass_times topt_floor_times(const struct topt_memo_entry *floor,
                                        const struct topt_grid_search *grid,
                                        const struct topt_degrees *d);

/* ... and by unit, with what its parameters stay with and activations keep, as sums that no strategy of the degrees is below
 * (topt_stages_exceed): room for one more than there are units. */
void topt_floor_units(const struct topt_memo_entry *floor,
                      const struct topt_grid_search *grid, const struct topt_degrees *d,
                      struct topt_unit_sums *ret);

#endif
