/* cap_search.h - the fastest strategy that fits, and that of least memory.  Private to plan/. */
#ifndef TOPT_CAP_SEARCH_H
#define TOPT_CAP_SEARCH_H

#include "free.h"

/* topt_solve_fastest and topt_solve_least where prices are exact. */
int topt_cap_search_fastest(struct topt_problem *p,
                            const struct topt_search_options *options,
                            struct topt_solutions *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

int topt_cap_search_least(struct topt_problem *p,
                          const struct topt_search_options *options, int64_t below,
                          struct topt_solutions *ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

#endif
