/* presolve.h - a smaller problem of the same kind, and the way back for its strategies.
 * Internal to this part.  Thread safety: one owner; uses threads of its own inside. */
#ifndef TOPT_SEARCH_PRESOLVE_H
#define TOPT_SEARCH_PRESOLVE_H

#include "condensed.h"
#include "reduced_problem.h"

struct presolve {
    const struct topt_search_problem *original;
    const struct topt_search_problem *problem; /* what is left */
    const struct topt_search_options *options;
    struct reduced_problem configs; /* the original with fewer configurations */
    struct condensed blocks;        /* that with blocks as edges */
    char
        *cutset; /* by operator of what is left: not to be eliminated; NULL: none known */
};

/* Does any reduction pay?  Where little is wanted (the fastest, what is within a box)
 * bounds leave less of the problem than solving blocks whole would cost, and small
 * problems are soon solved. */
int topt_presolve_pays(const struct topt_search_problem *problem,
                       const struct topt_search_options *options);

/* Both reductions, one after the other.  Finish also what failed. */
int topt_presolve(struct presolve *p, const struct topt_search_problem *problem,
                  const struct topt_search_options *options,
                  struct topt_error *err) TOPT_MUST_CHECK;

/* The frontier of what is left, which is consumed, as one of the original; 'decided'
 * marks operators of what is left that were decided by heuristic. */
int topt_presolve_lift(const struct presolve *p, struct topt_frontier *from,
                       const char *decided, struct topt_frontier **ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

void topt_presolve_fini(struct presolve *p);

#endif
