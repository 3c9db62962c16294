/* topt_weigher.h - a problem whose strategies are weighed, not listed.
 *
 * A weighing counts memory and time together, as one number.  The lightest strategy is found by one pass over
 * all tables; a second says of every configuration what a strategy with it weighs at least, so that who
 * knows what is wanted knows which configurations do not matter.
 *
 * Thread safety: one owner; the problem is borrowed and must stay as it is. */
#ifndef TOPT_WEIGHER_H
#define TOPT_WEIGHER_H

#include "topt_search.h"

struct topt_weigher;

/* LIMIT where costs are too large to be weighed, or the graph is so entangled that a table would have more
 * entries than the options allow. */
int topt_weigher_create(const struct topt_search_problem *problem,
                        const struct topt_search_options *options,
                        struct topt_weigher **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
void topt_weigher_destroy(struct topt_weigher *w);

/* How much memory and time count: about in that ratio. */
struct topt_weighing {
    int64_t memory, time;
};

/* Weigh all strategies.  What follows asks about these weights, and is right about strategies that weigh
 * no more than 'corner' does. */
int topt_weigher_weigh(struct topt_weigher *w, struct topt_weighing by,
                       struct topt_cost corner, struct topt_error *err) TOPT_MUST_CHECK;

/* The cost of the lightest strategy.  '*ret_some': is there one at all? */
int topt_weigher_lightest(struct topt_weigher *w, int *ret_some, struct topt_cost *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

/* Find what is part of a strategy that weighs no more than 'corner' does, which weighs no more than the
 * first.  '*ret': is there any? */
int topt_weigher_within(struct topt_weigher *w, struct topt_cost corner, int *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* After that: the weights.  A cost weighs memory * its memory + time * its time. */
struct topt_weights {
    int64_t memory, time;
    int64_t least, allowance; /* of the lightest strategy, and of the corner */
};
struct topt_weights topt_weigher_weights(const struct topt_weigher *w);
/* Of the lightest strategy with a configuration of an operator; INT64_MAX beyond the corner.  Of operators that are alike
 * (in costs and classes) one number is kept: the lightest with any of them. */
int64_t topt_weigher_through(const struct topt_weigher *w, int op, int config);

/* Pairs of entries that weighings have looked at so far. */
int64_t topt_weigher_work(const struct topt_weigher *w);

#endif
