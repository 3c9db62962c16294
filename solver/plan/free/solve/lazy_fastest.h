/* lazy_fastest.h - the fastest strategy that fits, and that of least memory, where prices of
 * moves are lower bounds until they matter.  Private to plan/. */
#ifndef TOPT_LAZY_FASTEST_H
#define TOPT_LAZY_FASTEST_H

#include "free.h"

/* Find what topt_cap_search_fastest and topt_cap_search_least find with exact prices. */
int topt_lazy_fastest(struct topt_problem *p, const struct topt_search_options *options,
                      struct topt_solutions *ret, struct topt_error *err) TOPT_MUST_CHECK;

int topt_lazy_least(struct topt_problem *p, const struct topt_search_options *options,
                    int64_t below, struct topt_solutions *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
