/* condense.h - a problem whose blocks have become edges.
 * Internal to this folder.  Thread safety: one owner; lift.h reads it. */
#ifndef TOPT_SEARCH_CONDENSE_H
#define TOPT_SEARCH_CONDENSE_H

#include "eliminate.h"
#include "make.h"

struct condensed {
    struct topt_search_problem problem;
    int *op;        /* by operator: its number in the original */
    int *op_factor; /* by operator, by edge: the factor that it is */
    int *edge_factor;
    const uint32_t **point; /* by operator, by configuration: its factor's point */
    struct plan plan;       /* of the original */
    struct maker maker;
    struct topt_arena *arena;
    int64_t work; /* pairs of points looked at */
};

/* Of operators of 'p', those stay that 'keep' marks and those where blocks hang together; of
 * the others, those whose tables stay small go.  Points beyond the options' limits are left
 * out.  0, or -1; finish also what failed. */
int topt_condense(const struct topt_search_problem *p, const char *keep,
                  const struct topt_search_options *options, struct condensed *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;
void topt_condense_fini(struct condensed *c);

#endif
