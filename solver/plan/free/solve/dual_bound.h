/* dual_bound.h - what scalarised passes from the strategy of least memory to the fastest say of
 * every configuration.  Private to plan/. */
#ifndef TOPT_DUAL_BOUND_H
#define TOPT_DUAL_BOUND_H

#include "free.h"
#include "solve_tuning.h"
#include "topt_lower_bound.h"

/* One weighted sum. */
struct line {
    struct topt_weights by;
    /* By configuration of all families: what the lightest strategy with it weighs; INT64_MAX
     * beyond the allowance.  Of variables that are alike, and of families of one variable, one
     * has it. */
    int64_t *of;
};

struct dual_bound {
    const struct topt_problem *p; /* which may be gone when this is finished */
    struct line line[HULL_PASSES];
    int n;
    int64_t work; /* pairs of entries that were looked at */
};

/* The part of a problem's hull that is of interest. */
struct dual_bound_options {
    const struct topt_search_options *search;
    struct topt_cost limit; /* nothing heavier, nothing slower */
    double reach;           /* of the hull: what is farther by a part is all alike */
    /* A corner by which the hull is nearer by a part is worth another pass. */
    double fine;
};

/* Weigh a problem.  '*ret_some': can anything be within the limits?  LIMIT where it can't
 * be weighed; where it fails there is nothing to free. */
int topt_dual_bound_init(struct dual_bound *h, struct topt_problem *p,
                         const struct dual_bound_options *o, int *ret_some,
                         struct topt_error *err) TOPT_MUST_CHECK;

void topt_dual_bound_fini(struct dual_bound *h);

/* Can a strategy with this configuration cost no more than one of these corners? */
int topt_dual_bound_reaches(const struct dual_bound *h, int config,
                            const struct topt_cost *corner, int ncorners);

/* Where the lightest strategy with it stands, by the weighted sum that is best for it: 0
 * on the hull, 1 where the reach ends, or beyond that. */
double topt_dual_bound_at(const struct dual_bound *h, int config);

/* By what part a cost is farther than the hull, by the weighted sum that tells the
 * least. */
double topt_dual_bound_beyond(const struct dual_bound *h, struct topt_cost c);

/* No strategy within so much memory is faster. */
int64_t topt_dual_bound_fastest(const struct dual_bound *h, int64_t memory);

#endif
