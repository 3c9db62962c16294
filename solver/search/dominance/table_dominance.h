/* table_dominance.h - tables of a plan without points that a substitution at one end always
 * dominates. Internal to this folder.  Thread safety: one owner, who lends it a pool. */
#ifndef TOPT_SEARCH_TABLE_DOMINANCE_H
#define TOPT_SEARCH_TABLE_DOMINANCE_H

#include "elimination.h"
#include "interning.h"
#include "make_points.h"
#include "topt_pool.h"

struct table_dominance {
    struct elimination_plan *plan;
    struct maker *maker;
    struct topt_pool *pool; /* NULL: no threads */
    struct topt_arena *arena;
    struct topt_interning views, ends; /* by what they are */
    const struct table **leaf;         /* by edge: its own table */
    int64_t work;                      /* pairs of points and of entries looked at */
    int *mark, stamp;                  /* by edge: is it part of the factor? */
    int *first, *edges;                /* by operator: its edges */
};

int topt_table_dominance_init(struct table_dominance *t, struct elimination_plan *plan,
                              struct maker *maker, struct topt_pool *pool,
                              struct topt_error *err) TOPT_MUST_CHECK;
void topt_table_dominance_fini(struct table_dominance *t);

/* Put a table that has only the points that may be on the frontier in the place of that
 * of a factor over two operators; all tables are made, and then again.  0, or -1. */
int topt_table_dominance_apply(struct table_dominance *t, int factor,
                               struct topt_error *err) TOPT_MUST_CHECK;

#endif
