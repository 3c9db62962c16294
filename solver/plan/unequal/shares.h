/* shares.h - shares of rows and state.  Private to plan/unequal. */
#ifndef TOPT_UNEQUAL_SHARES_H
#define TOPT_UNEQUAL_SHARES_H

#include "group.h"

struct topt_unequal {
    const struct topt_request *request;
    int n, devices;
    struct topt_unequal_group group[TOPT_HW_GROUPS];
};

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

#endif
