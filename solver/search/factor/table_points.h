/* table_points.h - the points of tables that were made, entry after entry.
 * Internal to this part.  Thread safety: each maker has one owner; tables are read. */
#ifndef TOPT_SEARCH_TABLE_POINTS_H
#define TOPT_SEARCH_TABLE_POINTS_H

#include "pareto_merge.h"
#include "min_marginals.h"

/* Points of all entries stand in the merge's output, entry after entry. */
struct maker {
    const struct tables *tables;
    struct merge merge;
    uint32_t *first, *count; /* by entry; those of leaves are not used */
    size_t cap_entries;      /* that these have room for */
    struct topt_cost most;   /* heavier or slower strategies are not looked for */
    int nbounds;
    const struct scalar_pass *bound[TOPT_MAX_BOUNDS];
    int max_frontier;
    int64_t budget; /* points to look at; 0: any number */
    double mean;    /* points of an entry, about, that are too many; 0: any number */
};

/* The points of a table's entry (by its number among all). */
struct run topt_entry_points(const struct maker *k, const struct table *t, int64_t entry);

#endif
