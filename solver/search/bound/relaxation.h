/* relaxation.h - weighings of graphs that are too entangled to be weighed as they are.
 * Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_RELAXATION_H
#define TOPT_SEARCH_RELAXATION_H

#include "elimination.h"

/* Which edges are weighed end by end. */
struct relaxed {
    char *edge; /* by number */
    int nedges; /* how many are marked */
    struct point_store store;
};

/* Plan a problem for weighings, with all its edges where the options' limit of a table's entries allows it.
 * Else without the few that lose least, such that a weighing looks at no more than 'max_pairs' of entries
 * (0: any number), as far as that can be; 'like' (by edge, NULL: nothing) is what was relaxed of a problem like it,
 * which is looked at first.  'ret' is to outlive the plan, which borrows from it; finish both also where this
 * fails. */
int topt_relaxation_plan(struct elimination_plan *plan,
                         const struct topt_search_problem *problem,
                         const struct topt_search_options *options, int64_t max_pairs,
                         const char *like, struct relaxed *ret,
                         struct topt_error *err) TOPT_MUST_CHECK;
void topt_relaxation_fini(struct relaxed *r);

#endif
