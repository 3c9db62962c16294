/* reduced_cost_fixing.h - a segment of the frontier searched on a problem of its own.
 * Internal to this folder.  Thread safety: as a segment. */
#ifndef TOPT_SEARCH_REDUCED_COST_FIXING_H
#define TOPT_SEARCH_REDUCED_COST_FIXING_H

#include "segment.h"
#include "reduced_problem.h"

struct fixing {
    struct scalarizer *b;
    struct segment *segment;
    int64_t allowance;
    struct reduced_problem narrowed; /* what is left of the problem within it */
    /* of that, between the segment's ends: set by its search */
    struct topt_frontier *frontier;
};

/* Begin with a segment that is to be parted; 0 where a problem of its own is not worth
 * while. */
int topt_fixing_begin(struct fixing *z, struct scalarizer *b, struct segment *segment);
/* The problem of what is left within the allowance.  1, 0 where that is not much less, or
 * -1 with the scalarizer's error. */
int topt_fixing_narrow(struct fixing *z) TOPT_MUST_CHECK;
/* End a try; 'searched' is 1 where the frontier was found, 0 where it can't be, -1 where
 * that failed.  Returns 1 where the segment is done, or not to be searched so; 0 where it
 * takes a larger allowance, which is set; or -1. */
int topt_fixing_end(struct fixing *z, int searched) TOPT_MUST_CHECK;

#endif
