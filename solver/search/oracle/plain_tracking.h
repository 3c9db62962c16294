/* plain_tracking.h - the paper's own search, plainly.
 * Internal to this part.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_PLAIN_TRACKING_H
#define TOPT_SEARCH_PLAIN_TRACKING_H

#include "topt_search.h"

/* By linear dynamic programming over a chain of operators, and by eliminations alone. */
int topt_search_plain(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_search_elimination(const struct topt_search_problem *problem,
                            const struct topt_search_options *options,
                            struct topt_frontier **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
