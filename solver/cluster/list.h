/* list.h - policies that start jobs of the queue.  Thread safety: none; one owner at a time. */
#ifndef TOPT_CLUSTER_LIST_H
#define TOPT_CLUSTER_LIST_H

#include "sim.h"

enum list_policy {
    LIST_ASKED,
    LIST_FEWEST,
    LIST_KNEE,
    LIST_RIGHTSIZE,
    LIST_MOLDABLE,
    LIST_REQUEUE
};

/* Start what the policy starts now; -1 without memory. */
int list_step(struct sim *s, enum list_policy policy);

#endif
