/* topt_lower_bound.h - a problem whose strategies are weighed, not listed.
 *
 * A weighted sum counts memory and time together, as one number.  The lightest strategy
 * is found by one pass over all tables; a second says of every configuration what a
 * strategy with it weighs at least, so that a caller that knows what it wants knows which
 * configurations do not matter.
 *
 * Thread safety: one owner; the problem is borrowed and must stay as it is. */
#ifndef TOPT_LOWER_BOUND_H
#define TOPT_LOWER_BOUND_H

#include "topt_search.h"

struct topt_lower_bound;

/* LIMIT where costs are too large to be weighed, or the graph is so entangled that a
 * table would have more entries than the options allow. */
int topt_lower_bound_create(const struct topt_search_problem *problem,
                            const struct topt_search_options *options,
                            struct topt_lower_bound **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;
void topt_lower_bound_destroy(struct topt_lower_bound *w);

/* How much memory and time count: about in that ratio. */
struct topt_scalarization {
    int64_t memory, time;
};

/* Weigh all strategies.  What follows asks about these weights, and is right about
 * strategies that weigh no more than 'corner' does. */
int topt_lower_bound_scalarize(struct topt_lower_bound *w, struct topt_scalarization by,
                               struct topt_cost corner,
                               struct topt_error *err) TOPT_MUST_CHECK;

/* The cost of the lightest strategy.  '*ret_some': is there one at all? */
int topt_lower_bound_lightest(struct topt_lower_bound *w, int *ret_some,
                              struct topt_cost *ret,
                              struct topt_error *err) TOPT_MUST_CHECK;

/* Find what is part of a strategy that weighs no more than 'corner' does, which weighs no
 * more than the first.  '*ret': is there any? */
int topt_lower_bound_within(struct topt_lower_bound *w, struct topt_cost corner, int *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;
/* After that: the weights.  A cost weighs memory * its memory + time * its time. */
struct topt_weights {
    int64_t memory, time;
    int64_t least, allowance; /* of the lightest strategy, and of the corner */
};
struct topt_weights topt_lower_bound_weights(const struct topt_lower_bound *w);
/* The weight of the lightest strategy with a configuration of an operator; INT64_MAX beyond
 * the corner.  Operators that are alike (in costs and classes) share one number: the
 * lightest with any of them. */
int64_t topt_lower_bound_min_marginal(const struct topt_lower_bound *w, int op,
                                      int config);

/* Pairs of entries that scalarised passes have looked at so far. */
int64_t topt_lower_bound_work(const struct topt_lower_bound *w);

#endif
