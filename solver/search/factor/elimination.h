/* elimination.h - a problem as factors, and the plan of how to eliminate its operators.
 * Internal to this folder.  Thread safety: one owner; once planned, read by many. */
#ifndef TOPT_SEARCH_ELIMINATION_H
#define TOPT_SEARCH_ELIMINATION_H

#include "factors.h"

/* Plan the eliminations of a problem of at least one operator; 'shared' (NULL: none) has
 * points of its tables already.  Finish also what failed. */
int topt_elimination_init(struct elimination_plan *p,
                          const struct topt_search_problem *problem,
                          const struct point_store *shared,
                          const struct topt_search_options *options,
                          struct topt_error *err) TOPT_MUST_CHECK;
void topt_elimination_fini(struct elimination_plan *p);
/* Plan without a heuristic: LIMIT where a table would be too large. */
int topt_elimination_exactly(struct elimination_plan *p,
                             const struct topt_search_problem *problem,
                             const struct topt_search_options *options,
                             struct topt_error *err) TOPT_MUST_CHECK;

/* The parts of that, for callers that choose what is eliminated: only the leaves; then
 * one operator (the new factor, or -1), or only a product of two factors. */
int topt_elimination_start(struct elimination_plan *p,
                           const struct topt_search_problem *problem,
                           const struct topt_search_options *options,
                           struct topt_error *err) TOPT_MUST_CHECK;
int topt_elimination_step(struct elimination_plan *p, int op);
int topt_elimination_multiply(struct elimination_plan *p, int a, int b);
/* The numbers of the operator's factors, those over the same operators side by side; else
 * in the order in which they were made.  How many, or -1; '*ret' is freed by the
 * caller. */
int topt_elimination_alike(struct elimination_plan *p, int op, int **ret);
int topt_elimination_same_ops(const struct elimination_plan *p, int a, int b);
/* The estimated cost of the operator's elimination: ranked by operators in the new table. */
struct elimination_rank topt_elimination_rate(struct elimination_plan *p, int op);
enum { TOPT_RANKS = 4 };

#endif
