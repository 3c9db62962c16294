/* oracle.h - the searches that the clever one is held against.
 * Internal to this part.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_ORACLE_H
#define TOPT_SEARCH_ORACLE_H

#include "topt_search.h"

/* brute_force.c: every strategy, one after the other. */
int topt_search_brute(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* plain_tracking.c: the paper's own search, plainly.  By linear dynamic programming over a chain
 * of operators, and by eliminations alone. */
int topt_search_plain(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_search_elimination(const struct topt_search_problem *problem,
                            const struct topt_search_options *options,
                            struct topt_frontier **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
