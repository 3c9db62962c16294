/* table.h - factor tables, and the one step that makes a new table of two.
 * Internal to this folder.  Thread safety: one owner; build uses the pool inside. */
#ifndef TOPT_FACTOR_TABLE_H
#define TOPT_FACTOR_TABLE_H

#include "merge.h"
#include "pool.h"

struct table;

/* How to make a table of A and B (or of A alone).  An entry of the result is a value of each
 * output dimension and a group; a group is a list of values k of the variable on the way
 * out.  Entry (x, g) is
 *
 *     union over k in group g of  A[sum of off_a[d][x_d] + ka[k]] x B[... kb[k]]
 *
 * All numbers stand in one array, the recipe: with the same A and B, equal recipes make
 * equal tables, which is how repeated blocks are found. */
struct step {
    struct table *a, *b; /* b NULL: none */
    int ndims, ngroups, trim;
    const int32_t *size;   /* by dimension */
    const int32_t *off;    /* dimension after dimension: off_a then off_b */
    const int32_t *kfirst; /* ngroups + 1 */
    const int32_t *ka, *kb;
    int64_t nentries;
    int32_t *recipe; /* malloc'ed; taken by topt_tables_build */
    size_t recipe_len;
};

/* A frontier for each entry; which variables the entries are over is the factor's affair. */
struct table {
    int id;
    int64_t nentries;
    uint32_t *first; /* nentries + 1 */
    struct topt_cost *cost;
    struct back *back; /* leaves: 'a' is the configuration or the alternative */
    uint32_t npoints;
    int narrow;     /* over at most one variable: not worth keeping once used up */
    int refs, hits; /* live factors; how often the memo gave it again */
    int leaf;
    int planned;         /* made by 'how' once everything is planned (bounds.h) */
    int last_use;        /* the last table that is made of it */
    struct step how;     /* tables that were planned */
    int64_t first_bound; /* its first entry among those of all tables (bounds.h) */
    int64_t least;       /* what its parts weigh at least: each part's lightest point */
    double growth;       /* times by time_ns may be above the truth: 1 exact */
    uint64_t hash;       /* of the recipe */
    int32_t *recipe;     /* see step; NULL for leaves */
    size_t recipe_len;
    struct table *next;
};

struct bounds;

struct tables {
    const struct topt_search_options *options;
    struct pool *pool;
    struct merge *merge; /* by thread */
    struct table **bucket;
    struct table **all;
    size_t nall, cap_all;
    int64_t least;               /* sum over the leaves: no strategy weighs less */
    double shrink;               /* for trimming steps; 1 exact */
    int planning;                /* new tables are planned, not made */
    const struct bounds *bounds; /* for making planned tables; NULL: none */
    int64_t bytes, max_bytes;
    struct topt_search_stats stats;
};

int topt_tables_init(struct tables *ts, const struct topt_search_options *options,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_tables_fini(struct tables *ts);

/* An empty table owned by 'ts', of the sizes given. */
struct table *topt_tables_add(struct tables *ts, int64_t nentries, uint32_t npoints,
                              struct topt_error *err);

/* The table of a step: an earlier identical one, or a new one, which is only planned where
 * 'planning' is set.  NULL: LIMIT, CANCELED, NOMEM. */
struct table *topt_tables_build(struct tables *ts, struct step *s,
                                struct topt_error *err);

/* A factor stops using the table; narrow tables without users give their costs back. */
void topt_tables_release(struct tables *ts, struct table *t);

/* Make a planned table, once those that it is made of are; and unmake it.  Entries that the
 * bounds leave no room are empty. */
int topt_tables_make(struct tables *ts, struct table *t,
                     struct topt_error *err) TOPT_MUST_CHECK;
int topt_tables_make_empty(struct tables *ts, struct table *t,
                           struct topt_error *err) TOPT_MUST_CHECK;
/* Its costs are not needed any more. */
void topt_tables_forget(struct tables *ts, struct table *t);
void topt_tables_unmake(struct tables *ts, struct table *t);

/* Count bytes towards the search's; LIMIT where they are too many. */
int topt_tables_account(struct tables *ts, int64_t bytes,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* First entries of A and B for the values x (as one number) of the output dimensions. */
void topt_step_entries(const struct step *s, int64_t x, int64_t *ret_a, int64_t *ret_b);

uint64_t topt_hash(const void *data, size_t len, uint64_t h);

#endif
