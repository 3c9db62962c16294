/* bounds.h - what the rest of a problem costs at least, for every entry of every table.
 * Internal to this folder.  Thread safety: one owner; solve uses the pool inside. */
#ifndef TOPT_BOUNDS_H
#define TOPT_BOUNDS_H

#include "table.h"

/* A weighing of costs, and what every entry of every planned table comes to by it. */
struct bound {
    int64_t time, memory; /* a point weighs time * its time + memory * its memory */
    int64_t allowance;    /* what a whole strategy within the limits weighs at most */
    int64_t *least;       /* by entry: its lightest point */
    int64_t *rest;        /* by entry: the lightest of all that is not in the table */
};

/* The first two weigh memory alone and time alone. */
struct bounds {
    int n;
    struct bound at[TOPT_MAX_BOUNDS];
    int64_t nentries;
};

/* Tell a merge what the bounds leave for an entry; 0 where that is nothing. */
int topt_bounds_of_entry(const struct bounds *b, int64_t entry, struct merge *m);

/* Make all planned tables, of which 'root' (over no operator) is the answer: of its points,
 * those within the options' memory and time limits, or at least the fastest of them where
 * only that is wanted. */
int topt_tables_solve(struct tables *ts, struct table *root,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
