/* condensed.h - the problem that is left when blocks have become edges.
 * Internal to this folder.  Thread safety: one owner; lift.c only reads it. */
#ifndef TOPT_SEARCH_CONDENSED_H
#define TOPT_SEARCH_CONDENSED_H

#include "elimination.h"
#include "make_points.h"

struct condensed {
    struct topt_search_problem problem;
    int *op;        /* by operator: its number in the original */
    int *op_factor; /* by operator, by edge: the factor that it is */
    int *edge_factor;
    const uint32_t **point;       /* by operator, by configuration: its factor's point */
    struct elimination_plan plan; /* of the original */
    struct maker maker;
    struct topt_arena *arena;
    int64_t work; /* pairs of points looked at */
};

/* The factor over one operator alone, of which there is one as long as it stays; '*ret':
 * its number. */
const struct factor *topt_own_factor(const struct elimination_plan *p, int op, int *ret);

/* Fill in the problem of a plan whose tables are made, and of whose operators those are
 * eliminated that 'gone' marks. Everything is the arena's, or borrowed from the maker.
 * 0, or -1: memory. */
int topt_condensed_problem(struct condensed *c, const char *gone,
                           struct topt_error *err) TOPT_MUST_CHECK;

/* block_elimination.c: of operators of 'p', those stay that 'keep' marks and those where blocks
 * hang together; of the others, those whose tables stay small go.  Points beyond the options'
 * limits are left out.  0, or -1; finish also what failed. */
int topt_eliminate_blocks(const struct topt_search_problem *p, const char *keep,
                          const struct topt_search_options *options,
                          struct condensed *ret, struct topt_error *err) TOPT_MUST_CHECK;
void topt_condensed_fini(struct condensed *c);

/* lift.c: add the points of 'from', a frontier of the condensed problem, to 'into', one of
 * the original. */
int topt_lift(const struct condensed *c, struct topt_frontier *from,
              struct topt_frontier *into, struct topt_error *err) TOPT_MUST_CHECK;

#endif
