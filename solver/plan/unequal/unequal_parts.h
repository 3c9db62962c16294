/* unequal_parts.h - what groups of unlike devices take by themselves, with shares of rows and state, and
 * with one plan for all of them.  Private to plan/unequal. */
#ifndef TOPT_UNEQUAL_PARTS_H
#define TOPT_UNEQUAL_PARTS_H

#include "topt_unequal.h"

/* ---- group.c: one group of like devices with rows of the batch ------------------------- */

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
    enum topt_state_placement where;
    double share; /* of the state, of a group that has not all of it */
    int fits;
    int64_t time_ns, memory_bytes, compute_ns, micro_batches;
    json_t *answer; /* owned */
    struct topt_group_plan *next;
};

struct topt_unequal {
    const struct topt_request *request;
    int n, devices;
    struct topt_unequal_group {
        const struct topt_hw *hw;
        int devices;
        int64_t limit;                 /* bytes of a device */
        struct topt_group_plan *plans; /* each is made once */
    } group[TOPT_HW_GROUPS];
};

/* All groups of the request's profile; the request is borrowed. */
void topt_unequal_init(struct topt_unequal *u, const struct topt_request *r);
void topt_unequal_fini(struct topt_unequal *u);

/* Bytes of a device of the group that has most. */
int64_t topt_most_limit(const struct topt_unequal *u);
/* The request for the fastest plan on so many devices. */
struct topt_request topt_request_fastest(const struct topt_request *r, int devices);

/* The fastest plan of the group alone for these rows; 'share' is that of the state which its
 * devices hold.  Borrowed. */
int topt_group_plan(struct topt_unequal *u, int group, int64_t rows,
                    enum topt_state_placement where, double share,
                    const struct topt_group_plan **ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

/* ---- shares.c: shares of rows and state ------------------------------------------------ */

/* One way to share, and what it takes: the slowest group's time, then what is exchanged between
 * groups and not hidden. */
struct topt_shares {
    int found;
    enum topt_state_placement where;
    int64_t rows[TOPT_HW_GROUPS];
    double share[TOPT_HW_GROUPS]; /* of the state */
    int64_t time_ns, exchange_ns, hidden_ns;
};

/* The best of all, and that of equal shares of everything. */
int topt_shares_best(struct topt_unequal *u, struct topt_shares *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
int topt_shares_equal(struct topt_unequal *u, struct topt_shares *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* ---- part_shares.c: shares of a given strategy ----------------------------------------- */

/* The first axis of the mesh is cut into parts, each of the devices of one group; what is passed
 * as 'group' are the groups' shares in thousandths of the whole, TOPT_HW_GROUPS of them. */
enum { TOPT_SHARE_WHOLE = 1000 };

/* Devices of a part: as many as divide each group's. */
int topt_devices_of_part(const struct topt_unequal *u);

/* A share of each part in lowest terms, at most TOPT_MAX_SHARES; how many parts there are. */
int topt_part_shares(const struct topt_unequal *u, const int64_t *group, int64_t *ret);

/* Thousandths go from the slowest group to the fastest, in steps that become smaller, as long as
 * the plan's strategy becomes faster.  'group' and '*ret' are those of the last step. */
int topt_balance_shares(const struct topt_unequal *u, const struct topt_plan_doc *p,
                        int64_t *group, struct topt_group_costs *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* Write shares into a plan: "shares" of all that the first axis splits, or "state_shares". */
void topt_put_shares(const struct topt_unequal *u, const int64_t *group, const char *key,
                     json_t *plan);

/* The same, of the state others where it has its own ('state' is not NULL), and what is predicted
 * of the plan with them. */
int topt_give_shares(const struct topt_unequal *u, const int64_t *group,
                     const int64_t *state, json_t *plan, struct topt_group_costs *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* ---- joint.c: one plan for the devices of all groups ----------------------------------- */

/* A "topt-plan/1" over all devices, whose first axis is that of the groups and has shares.  NULL,
 * and 'why', where one strategy for all groups can't be that: the groups stand in another order
 * than their speed, their devices are in too many parts, or it does not fit. */
struct topt_joint {
    json_t *plan; /* owned by who asked for it */
    const char *why;
    double share[TOPT_HW_GROUPS];  /* of what the first axis splits */
    struct topt_group_costs costs; /* of each group with it */
    int64_t time_ns;               /* the slowest group's; INT64_MAX without a plan */
};

/* 's': shares to begin with, as groups by themselves have them best. */
int topt_joint_find(const struct topt_unequal *u, const struct topt_shares *s,
                    struct topt_joint *ret, struct topt_error *err) TOPT_MUST_CHECK;

/* ---- staged.c: one pipeline over groups ------------------------------------------------- */

/* The answer (topt_plan's) of the fastest pipeline whose stages lie on one group each, for the caller to release; NULL:
 * nothing fits, groups are not made of equal stages, or the framework has none. */
int topt_unequal_staged(const struct topt_unequal *u, json_t **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
