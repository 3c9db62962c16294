/* brute_force.h - every strategy, one after the other.
 * Internal to this part.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_BRUTE_FORCE_H
#define TOPT_SEARCH_BRUTE_FORCE_H

#include "topt_search.h"

int topt_search_brute(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
