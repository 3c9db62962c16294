/* heuristic.h - operators decided one at a time, where no exact table is small enough.
 * Internal to this part.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_HEURISTIC_H
#define TOPT_SEARCH_HEURISTIC_H

#include "topt_search.h"

/* Operators in the order in which they are decided, each with its configuration: those
 * whose turn has been asked for so far. */
struct decisions {
    const struct topt_search_problem *problem;
    int n;
    int *op;
    int32_t *config;
    int *degree; /* by operator: neighbours not decided, or -1 where it is itself */
};
int topt_decisions_init(struct decisions *d, const struct topt_search_problem *problem,
                        struct topt_error *err) TOPT_MUST_CHECK;
void topt_decisions_fini(struct decisions *d);
/* Take one more; one must be left. */
void topt_decide(struct decisions *d);

#endif
