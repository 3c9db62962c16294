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

/* Solve the counts (ascending, the first fits) and name those that people book.  'why':
 * of the first.  Always followed by topt_alternatives_fini. */
int topt_alternatives_find(struct topt_planning *m, const int64_t *count, int n,
                           const char *why, struct topt_alternatives *ret,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* The most GPUs that are at least so efficient; 0: none, or nothing is asked. */
int64_t topt_alternatives_efficient(const struct topt_alternatives *a,
                                    double min_efficiency);

void topt_alternatives_fini(struct topt_alternatives *a);

#endif
