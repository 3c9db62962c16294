/* entry_dominance.h - points of a table over two operators that a substitution at one end always
 * dominates. Internal to this folder.  Thread safety: one owner a call; its arguments are
 * only read. */
#ifndef TOPT_SEARCH_ENTRY_DOMINANCE_H
#define TOPT_SEARCH_ENTRY_DOMINANCE_H

#include "pareto_merge.h"
#include "substitution.h"
#include "topt_pool.h"

enum { TOPT_MOST_SIDES = 4 };

/* One end of a table: its operator's values, and what they cost outside. */
struct dominance_end {
    int nvalues;
    const int32_t *class_of; /* by value: its class in the table */
    /* The operator's own costs by value. */
    const uint32_t *own_first;
    const struct topt_cost *own;
    int nsides;
    struct {
        const struct substitution_side *side;
        const int32_t *class_of; /* by value */
    } side[TOPT_MOST_SIDES];
};

/* A table: the points of entry (a, b), number a * n[1] + b, are a run whose 'base' counts
 * among all of the table's points. */
struct dominance_table {
    int n[2];
    const struct run *run;
    size_t npoints;
};

/* Unmark in 'alive' (by point) what any substitution at an end dominates; points that are not
 * marked still dominate others.  An end may be NULL: nothing is known of it.  The pool may
 * be NULL.  Adds to '*work' the points and pairs of values that there are, for each end.
 * 0, or -1: memory. */
int topt_entry_dominance(const struct dominance_table *t,
                         const struct dominance_end *const end[2], char *alive,
                         struct topt_pool *pool, int64_t *work);

#endif
