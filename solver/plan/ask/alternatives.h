/* alternatives.h - one answer beside others.  Private to plan/. */
#ifndef TOPT_ALTERNATIVES_H
#define TOPT_ALTERNATIVES_H

#include <jansson.h>

#include "planning.h"

struct topt_alternatives {
    json_t *points; /* those of a curve, of the counts that fit */
    json_t *
        named; /* the fewest, the knee and the fastest, ascending; one that is several once */
};

/* Solve the counts (ascending) and name those that people book.  'fewest': the point of the
 * fewest GPUs, of fewer than those (its reference is taken); NULL: the first count, which fits.
 * Why these are the fewest, and why none is faster than the fastest.  Always followed by
 * topt_alternatives_fini. */
int topt_alternatives_find(struct topt_planning *m, json_t *fewest, const int64_t *count,
                           int n, const char *why_fewest, const char *why_fastest,
                           struct topt_alternatives *ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* The most GPUs that are at least so efficient; 0: none, or nothing is asked. */
int64_t topt_alternatives_efficient(const struct topt_alternatives *a,
                                    double min_efficiency);

void topt_alternatives_fini(struct topt_alternatives *a);

#endif
