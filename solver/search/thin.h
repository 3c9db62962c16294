/* thin.h - tables of a plan without points that a swap at one end always outdoes.
 * Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_THIN_H
#define TOPT_SEARCH_THIN_H

#include "eliminate.h"
#include "make.h"

struct end_kind;
struct side_kind;

struct thinner {
    struct plan *plan;
    struct maker *maker;
    struct topt_arena *arena;
    struct end_kind *ends; /* that were met so far */
    struct side_kind *sides;
    int nends;
    int64_t bytes, max_bytes; /* of what is known about swaps */
    int64_t work;             /* pairs of points and of entries looked at */
    int *mark, stamp;         /* by edge: is it part of the factor? */
    int *first, *edges;       /* by operator: its edges */
};

int topt_thinner_init(struct thinner *t, struct plan *plan, struct maker *maker,
                      struct topt_error *err) TOPT_MUST_CHECK;
void topt_thinner_fini(struct thinner *t);

/* Put a table that has only the points that may be on the frontier in the place of that of
 * a factor over two operators; all tables are made, and then again.  'fresh': the factor's
 * was made last, and nobody else has it.  0, or -1. */
int topt_thin(struct thinner *t, int factor, int fresh,
              struct topt_error *err) TOPT_MUST_CHECK;

#endif
