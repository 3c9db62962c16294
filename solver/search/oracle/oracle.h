/* oracle.h - the search that the others are held against.
 * Internal to this part.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_ORACLE_H
#define TOPT_SEARCH_ORACLE_H

#include "topt_search.h"

/* brute_force.c: every strategy, one after the other. */
int topt_search_brute(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
