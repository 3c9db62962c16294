/* check_problem.h - is a problem well formed?
 * Internal to this part.  Thread safety: reentrant. */
#ifndef TOPT_SEARCH_CHECK_PROBLEM_H
#define TOPT_SEARCH_CHECK_PROBLEM_H

#include "topt_search.h"

/* INVAL or LIMIT names the place. */
int topt_search_check(const struct topt_search_problem *p,
                      struct topt_error *err) TOPT_MUST_CHECK;

/* Entries an edge's table may have. */
#define TOPT_SEARCH_MAX_ENTRIES (1 << 26)

#endif
