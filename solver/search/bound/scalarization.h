/* scalarization.h - memory and time as one weighted sum, and the strategy that is optimal
 * by it. Internal to this part.  Thread safety: a scalarizer has one owner at a time. */
#ifndef TOPT_SEARCH_SCALARIZATION_H
#define TOPT_SEARCH_SCALARIZATION_H

#include "elimination.h"
#include "make_points.h"
#include "strategies.h"

/* A strategy: configurations by operator, then alternatives by edge; NULL: none. */
struct found_strategy {
    struct topt_cost cost;
    int32_t *choice;
};

/* Costs of incumbents, as a frontier; points that they dominate are not searched for. */
struct incumbent_costs {
    const struct topt_cost *at;
    int n;
};

/* A thread's workspace for optima of weighted sums and for segments of the frontier between
 * them. */
struct scalarizer {
    const struct elimination_plan *plan;
    const struct topt_search_options *options;
    struct incumbent_costs known;
    struct topt_error *err;
    struct topt_cost most; /* of any strategy, at most */
    struct scalar_pass bound[TOPT_MAX_BOUNDS];
    struct maker maker;
    int64_t *stack;      /* for walks: nodes and what they stand at */
    int64_t work_budget; /* of a segment that can't be split; 0: none */
    int all_work;        /* that is all there is left, no share of it */
};

int topt_scalarizer_init(struct scalarizer *b, const struct elimination_plan *plan,
                         const struct topt_search_options *options, struct topt_cost most,
                         struct topt_error *err) TOPT_MUST_CHECK;
void topt_scalarizer_fini(struct scalarizer *b);
int64_t topt_scalarizer_bytes(const struct elimination_plan *plan);

/* The lightest strategy by a weighted sum, with choices to be freed; 'ret->choice' is
 * NULL where there is no strategy at all. */
int topt_scalarizer_lightest(struct scalarizer *b, int64_t time, int64_t memory,
                             struct found_strategy *ret) TOPT_MUST_CHECK;

/* The same in two steps: weigh by about that ratio, into bound 0; then find the lightest by
 * it. */
int topt_scalarizer_weigh(struct scalarizer *b, int64_t time, int64_t memory,
                          struct topt_cost corner) TOPT_MUST_CHECK;
int topt_scalarizer_backtrack(struct scalarizer *b,
                              struct found_strategy *ret) TOPT_MUST_CHECK;

/* The parts of that: the least weights of all tables by this ratio, exactly or well
 * enough to guide a search; what is left of the others within an allowance. */
int topt_scalarizer_least(struct scalarizer *b, struct scalar_pass *x, int64_t time,
                          int64_t memory, int exactly) TOPT_MUST_CHECK;
int topt_scalarizer_rest(struct scalarizer *b, struct scalar_pass *x,
                         int64_t allowance) TOPT_MUST_CHECK;

/* The largest costs that a strategy may have, saturating where they are too heavy. */
int topt_scalarizer_most(const struct elimination_plan *plan, struct topt_cost *ret,
                         struct topt_error *err) TOPT_MUST_CHECK;

#endif
