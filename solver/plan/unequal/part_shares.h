/* part_shares.h - shares of a given strategy: what it takes with them, the best ones, and its plan
 * with them.  The first axis of the mesh is cut into parts, each of the devices of one group; what
 * is passed as 'group' are the groups' shares in thousandths of the whole, TOPT_HW_GROUPS of them.
 * Private to plan/unequal. */
#ifndef TOPT_UNEQUAL_PART_SHARES_H
#define TOPT_UNEQUAL_PART_SHARES_H

#include "shares.h"

enum { TOPT_SHARE_WHOLE = 1000 };

/* Devices of a part: as many as divide each group's. */
int topt_devices_of_part(const struct topt_unequal *u);

/* A share of each part in lowest terms, at most TOPT_MAX_SHARES; how many parts there are. */
int topt_part_shares(const struct topt_unequal *u, const int64_t *group, int64_t *ret);

int topt_fits_groups(const struct topt_unequal *u, const struct topt_group_costs *g);

/* The group that is nearest to its limit, or beyond it. */
int topt_neediest_group(const struct topt_unequal *u, const struct topt_group_costs *g);

/* Thousandths go from the slowest group to the fastest, in steps that become smaller, as long as
 * the plan's strategy becomes faster.  'group' and '*ret' are those of the last step. */
int topt_balance_shares(const struct topt_unequal *u, const struct topt_plan_doc *p,
                        int64_t *group, struct topt_group_costs *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Write shares of all that the first axis splits into a plan. */
void topt_put_shares(const struct topt_unequal *u, const int64_t *group, json_t *plan);

/* The same, of the state others where it has its own ('state' is not NULL), and what is predicted
 * of the plan with them. */
int topt_give_shares(const struct topt_unequal *u, const int64_t *group,
                     const int64_t *state, json_t *plan, struct topt_group_costs *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
