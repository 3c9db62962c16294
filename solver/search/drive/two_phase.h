/* two_phase.h - the frontier of a planned problem, segment after segment.
 * Internal to this folder.  Thread safety: one owner; uses threads of its own inside. */
#ifndef TOPT_SEARCH_TWO_PHASE_H
#define TOPT_SEARCH_TWO_PHASE_H

#include "segment.h"

/* The frontier within the options' limits, or at least its fastest point where only that
 * is wanted.  0 and an owned frontier, or -1. */
int topt_two_phase(struct elimination_plan *plan,
                   const struct topt_search_options *options,
                   struct incumbent_costs known, struct topt_frontier **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* The lightest and the fastest strategy of a plan, by scalarised passes alone;
 * '*ret_some': is there one at all?  Both are 0 where costs are too large to be
 * weighed. */
int topt_two_phase_ends(struct elimination_plan *plan,
                        const struct topt_search_options *options, int *ret_some,
                        struct topt_cost *ret_light, struct topt_cost *ret_fast,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* The best where memory counts balance[0], and time balance[1]. */
int topt_two_phase_lightest(struct elimination_plan *plan,
                            const struct topt_search_options *options,
                            const double balance[2], int *ret_some, struct topt_cost *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
