/* caps_frontier.h - the exact frontier of a problem.  Private to plan/. */
#ifndef TOPT_CAPS_FRONTIER_H
#define TOPT_CAPS_FRONTIER_H

#include "free.h"

/* topt_solve_frontier where prices are exact; lazy_frontier.c: where they are
 * bounds. */
int topt_caps_frontier(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
