/* group.h - one group of like devices with rows of the batch.  Private to plan/unequal. */
#ifndef TOPT_UNEQUAL_GROUP_H
#define TOPT_UNEQUAL_GROUP_H

#include "topt_unequal.h"

/* Where the model's state is: parameters, gradients and what the optimizer keeps. */
enum topt_state_placement {
    TOPT_STATE_REPLICATED, /* every group has all of it */
    TOPT_STATE_ZERO_1,     /* ... but the optimizer's, sharded over all devices */
    TOPT_STATE_SHARDED,    /* all of it is, over the devices of all groups */
    TOPT_STATES
};

/* A group's need for so many rows.  'answer' is that of topt_plan. */
struct topt_group_plan {
    int64_t rows;
    double share; /* of the state, of a group that has not all of it */
    int fits;
    int64_t time_ns, memory_bytes, compute_ns, micro_batches;
    json_t *answer; /* owned */
    struct topt_group_plan *next;
};

/* Plans are made once. */
struct topt_unequal_group {
    const struct topt_request *request; /* of the whole */
    const struct topt_hw *hw;
    int devices;
    int64_t limit; /* bytes of a device */
    struct topt_group_plan *plans[TOPT_STATES];
};

void topt_group_init(struct topt_unequal_group *g, const struct topt_request *r, int i);
void topt_group_fini(struct topt_unequal_group *g);

/* The fastest plan of the group alone for these rows; 'share' is that of the state which its
 * devices hold.  Borrowed. */
int topt_group_plan(struct topt_unequal_group *g, int64_t rows,
                    enum topt_state_placement where, double share,
                    const struct topt_group_plan **ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
