/* solve.h - the three questions that may be asked of a problem.  Private to plan/. */
#ifndef TOPT_SOLVE_H
#define TOPT_SOLVE_H

#include "solutions.h"

/* The strategy with the least memory, into an empty 'ret' (none where nothing needs less
 * than 'below'; 0: no bound).  Where the options stop it, or it is out of work before that
 * is proven, CANCELED. */
int topt_solve_least(struct topt_problem *p, const struct topt_search_options *options,
                     int64_t below, struct topt_solutions *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The fastest strategy within the limits of 'options', of those the one that needs least
 * (with a tolerance: any within it); none where none fits.  Stopped, or out of work, it
 * is the best that was found, and the certificate says what nothing is faster than. */
int topt_solve_fastest(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* The frontier of a problem: points above 'memory_limit' (0: none) are left out, and may
 * be where one of options->known is as good.  Stopped, or out of work, it is what was
 * found so far. */
int topt_solve_frontier(struct topt_problem *p, const struct topt_search_options *options,
                        struct topt_solutions *ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
