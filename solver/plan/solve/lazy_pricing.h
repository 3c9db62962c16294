/* lazy_pricing.h - the fastest strategy that fits, where moves cost floors until their
 * price matters.  Private to plan/. */
#ifndef TOPT_LAZY_PRICING_H
#define TOPT_LAZY_PRICING_H

#include "solutions.h"

/* The same where they are floors. */
int topt_lazy_pricing_fastest(struct topt_problem *p,
                              const struct topt_search_options *options,
                              struct topt_solutions *ret,
                              struct topt_error *err) TOPT_MUST_CHECK;

int topt_lazy_pricing_least(struct topt_problem *p,
                            const struct topt_search_options *options, int64_t below,
                            struct topt_solutions *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
