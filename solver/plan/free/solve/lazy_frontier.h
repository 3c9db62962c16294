/* lazy_frontier.h - a whole frontier, where moves cost bounds until their price
 * matters.  Private to plan/. */
#ifndef TOPT_LAZY_FRONTIER_H
#define TOPT_LAZY_FRONTIER_H

#include "free.h"

int topt_lazy_frontier(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
