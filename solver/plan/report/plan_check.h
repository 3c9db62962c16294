/* plan_check.h - every plan is costed again from scratch and lowered before it is given
 * out.  Private to plan/. */
#ifndef TOPT_PLAN_CHECK_H
#define TOPT_PLAN_CHECK_H

#include "planning.h"
#include "free.h"

/* A solution and its mesh. */
struct topt_placed {
    struct topt_solution s;
    int nodes, per_node;
};

/* A solution's cost and peak, as the checker found them. */
struct topt_checked {
    struct topt_strategy_cost cost;
    int64_t peak_bytes; /* of its program */
};

/* Each of 'n' solutions costed and followed from scratch, as topt_plan_check does, into
 * 'ret' by number; what they have in common is worked out once.  Points that were
 * searched for with 'm'.  By the request's threads; the answer does not depend on how
 * many. */
int topt_points_check(struct topt_planning *m, const struct topt_placed *at, int n,
                      struct topt_checked *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Re-cost from scratch and lower; fails where the claimed cost is not that. */
int topt_plan_check(const struct topt_costing *k, const struct topt_strategy *s,
                    int64_t memory_bytes, int64_t time_ns,
                    struct topt_strategy_cost *ret_cost, int64_t *ret_peak,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* For groups of unlike devices: the bytes that a device of the group may use, the group that is
 * nearest to its limit, or beyond it, and whether every group stays within its own. */
int64_t topt_group_limit(const struct topt_request *r, int group);
int topt_neediest_group(const struct topt_request *r, const struct topt_group_costs *g);
int topt_groups_fit(const struct topt_request *r, const struct topt_group_costs *g);

#endif
