/* frontier_tracking.h - frontier tracking: the exact search of any graph.
 * Internal to this part.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_FRONTIER_TRACKING_H
#define TOPT_SEARCH_FRONTIER_TRACKING_H

#include "topt_search.h"

/* A search as topt_search describes it. */
int topt_search_ft(const struct topt_search_problem *problem,
                   const struct topt_search_options *options, struct topt_frontier **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* The search as of large problems, whatever the size: for tests. */
int topt_search_smaller(const struct topt_search_problem *problem,
                        const struct topt_search_options *options,
                        struct topt_frontier **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
