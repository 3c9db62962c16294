/* topt_tensoropt.h - the TensorOpt paper's own search, step by step as it stands there: what --algorithm ft-plain
 * and ft-elimination name; and brute force.  The search of solver/search/drive is held against both.
 * Thread safety: reentrant. */
#ifndef TOPT_TENSOROPT_H
#define TOPT_TENSOROPT_H

#include "topt_search.h"

/* The exact frontier of a problem, as topt_search says it: by linear dynamic programming over a chain of
 * operators, and by eliminations alone.  Stopped, the frontier is empty. */
int topt_search_plain(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err) TOPT_MUST_CHECK;
int topt_search_elimination(const struct topt_search_problem *problem,
                            const struct topt_search_options *options,
                            struct topt_frontier **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;
/* By every strategy, one after the other. */
int topt_search_brute(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
