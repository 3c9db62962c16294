/* joint.h - one plan for the devices of all groups.  Private to plan/unequal. */
#ifndef TOPT_UNEQUAL_JOINT_H
#define TOPT_UNEQUAL_JOINT_H

#include "shares.h"

/* A "topt-plan/1" over all devices, whose first axis is that of the groups and has their rows as
 * shares.  0 and '*ret' a new reference; 0 and NULL, with '*ret_why', where one strategy for all
 * groups can't be that: their numbers of devices differ, the first is not the fastest, or it does
 * not fit; -1 on failure. */
int topt_unequal_joint(struct topt_unequal *u, const struct topt_shares *s, json_t **ret,
                       const char **ret_why, struct topt_error *err) TOPT_MUST_CHECK;

#endif
