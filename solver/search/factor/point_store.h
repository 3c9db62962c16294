/* point_store.h - what a leaf has: for every entry, its choices that nothing beats.
 * Kept in stores, so that problems that share tables share these, too.
 * Internal to this folder.  Thread safety: a store has one owner; as a parent it is
 * read. */
#ifndef TOPT_SEARCH_POINT_STORE_H
#define TOPT_SEARCH_POINT_STORE_H

#include "search_common.h"

struct points {
    int64_t nentries;
    uint32_t n, max_frontier;
    int single;            /* every entry has exactly one point */
    const uint32_t *first; /* nentries + 1 */
    const struct topt_cost *cost;
    /* Number of the configuration or alternative; NULL: each point is that of its number
     * in its entry. */
    int32_t *choice;
    /* The owner of 'first' and 'cost', where they are not the table's own. */
    uint32_t *own_first;
    struct topt_cost *own_cost;
};

/* A choice of an entry, before it is known whether others beat it. */
struct choice {
    struct topt_cost cost;
    int32_t entry, number;
};

struct stored;

struct point_store {
    const struct point_store *parent; /* what it has need not be made again; NULL: none */
    struct stored **by_table, **by_content, *all;
};

int topt_points_init(struct point_store *s, const struct point_store *parent,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_points_fini(struct point_store *s);

/* Points of choices in any order ('c' is reordered); owned by the store.  NULL:
 * memory. */
const struct points *topt_points_of_choices(struct point_store *s, struct choice *c,
                                            size_t n, int64_t nentries,
                                            struct topt_error *err);

/* The points of an edge's table; equal tables share them.  The table must outlive the store. */
const struct points *topt_points_of_table(struct point_store *s,
                                          const struct topt_table *t,
                                          struct topt_error *err);

#endif
