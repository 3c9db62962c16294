/* topt_step.h - a step of training by units: the tasks of its schedule, from what each unit takes.
 *
 * A unit is what a system gathers at once: a layer, or what stands outside of layers.  In each
 * micro-batch the units go forward, then backward in reverse order; the end of a step reduces
 * gradients that were added up, and updates parameters. */
#ifndef TOPT_STEP_H
#define TOPT_STEP_H

#include "topt_schedule.h"

enum topt_during {
    TOPT_DURING_BEGIN, /* once, before all micro-batches */
    TOPT_DURING_FORWARD,
    TOPT_DURING_BACKWARD,
    TOPT_DURING_END, /* ... and after them */
    TOPT_DURING_COUNT
};

/* What a unit takes in one part of a step, in all micro-batches together; links as bits of enum
 * topt_link. */
struct topt_part_time {
    int64_t compute_ns;
    int64_t waited_ns; /* communication that computing waits for */
    int64_t gather_ns; /* asynchronous: its parameters come, before it computes */
    int64_t reduce_ns; /* asynchronous: its gradients go, after it has computed */
    uint8_t waited_links, gather_links, reduce_links;
};
struct topt_piece_time {
    int unit; /* pieces of one stand side by side */
    struct topt_part_time at[TOPT_DURING_COUNT];
};

/* Add what another piece of the same unit takes. */
void topt_piece_time_add(struct topt_piece_time *sum, const struct topt_piece_time *more);

/* The time of a step of 'n' pieces, in the order of forward, by a schedule of one owner, which this
 * fills anew.  A unit's parameters are gathered while the one before it is at work (FSDP's
 * prefetch: Zhao et al. 2023); backward waits for the reductions of two units before, whose
 * gradients it overwrites. */
int topt_step_time(struct topt_schedule *s, const struct topt_piece_time *piece, int n,
                   int64_t micro_batches, int64_t *ret_ns,
                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
