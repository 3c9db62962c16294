/* joint.h - one plan for the devices of all groups.  Private to plan/unequal. */
#ifndef TOPT_UNEQUAL_JOINT_H
#define TOPT_UNEQUAL_JOINT_H

#include "shares.h"

/* A "topt-plan/1" over all devices, whose first axis is that of the groups and has shares.  NULL,
 * and 'why', where one strategy for all groups can't be that: the groups stand in another order
 * than their speed, their devices are in too many parts, or it does not fit. */
struct topt_joint {
    json_t *plan; /* owned */
    const char *why;
    double share[TOPT_HW_GROUPS];  /* of what the first axis splits */
    struct topt_group_costs costs; /* of each group with it */
};

/* 's': shares to begin with, as groups by themselves have them best. */
int topt_joint_find(struct topt_unequal *u, const struct topt_shares *s,
                    struct topt_joint *ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_joint_fini(struct topt_joint *j);

static inline int64_t topt_joint_ns(const struct topt_joint *j)
{
    return j->plan ? j->costs.of[j->costs.slowest].time_ns : INT64_MAX;
}

#endif
