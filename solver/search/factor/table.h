/* table.h - factor tables: leaves with their costs, and steps that make a new table of
 * two. A step is planned, not made: how often it is made, under which bounds and by which
 * thread is decided in make_points.h. Internal to this folder.  Thread safety: one
 * owner; once complete, read by many. */
#ifndef TOPT_SEARCH_TABLE_H
#define TOPT_SEARCH_TABLE_H

#include "pareto_merge.h"
#include "point_store.h"
#include "topt_hash.h"

struct table;

/* How to make a table of A and B (or of A alone).  An entry of the result is a value of
 * each output dimension and a group; a group is a list of values k of the variable on the
 * way out.  Entry (x, g) is
 *
 *     union over k in group g of  A[sum of off_a[d][x_d] + ka[k]] x B[... kb[k]]
 *
 * All numbers stand in one array, the recipe: with the same A and B, equal recipes make
 * equal tables, which is how repeated blocks are found. */
struct step {
    const struct table *a, *b; /* b NULL: none */
    int ndims, ngroups;
    const int32_t *size;   /* by dimension */
    const int32_t *off;    /* dimension after dimension: off_a then off_b */
    const int32_t *kfirst; /* ngroups + 1 */
    const int32_t *ka, *kb;
    int matrix;  /* a matrix or a vector times a matrix: see min_plus.c */
    int in_rows; /* else: are values of k neighbours both in A and in B? */
    int64_t nentries;
    int32_t *recipe; /* malloc'ed; taken by topt_tables_step */
    size_t recipe_len;
};

/* A frontier for each entry; which variables the entries are over, the factor
 * knows. */
struct table {
    int id, leaf;
    int nparts;  /* leaves that it is made of, at most 2^20 */
    double mean; /* points of an entry, where they are made; 0: not yet */
    int64_t nentries;
    int64_t first_entry; /* its first entry among those of all tables; those start at 1 */
    /* Leaves: points by entry, sorted; and the configuration or alternative of each
     * (topt_leaf_choice). */
    uint32_t npoints;
    int single;      /* every entry has exactly one point */
    int rest_wanted; /* a leaf of which topt_min_marginals may find what is left, too */
    int weighed;     /* its entries' least weights are kept: see min_marginals.c */
    int by_rows;     /* a step reads it row by row */
    const uint32_t *first; /* nentries + 1; these three are borrowed from a store */
    const struct topt_cost *cost;
    const int32_t *choice;
    /* The others. */
    struct step how;
    uint64_t hash; /* of the recipe */
    struct table *next;
};

struct tables {
    struct table **all; /* a table stands after those it is made of */
    size_t nall, cap_all;
    struct table **bucket;
    int64_t nentries;    /* of all tables, and one in front */
    int64_t npairs;      /* pairs of entries that all steps look at */
    int64_t matrix_room; /* numbers that the largest product of matrices takes */
    int64_t bytes, max_bytes;
    struct topt_search_stats stats;
};

int topt_tables_init(struct tables *ts, const struct topt_search_options *options,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_tables_fini(struct tables *ts);

/* A leaf of the points, which it borrows; NULL: LIMIT, NOMEM. */
struct table *topt_tables_leaf(struct tables *ts, const struct points *points,
                               struct topt_error *err);

/* The configuration or alternative that a leaf's point is. */
int32_t topt_leaf_choice(const struct table *leaf, int64_t point);

/* The table of a step: an earlier identical one, or a new one.  NULL: LIMIT, NOMEM. */
struct table *topt_tables_step(struct tables *ts, struct step *s, struct topt_error *err);

/* Count bytes towards the search's; LIMIT where they are too many. */
int topt_tables_account(struct tables *ts, int64_t bytes,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* How many values the dimensions have together that A tells apart, and those that B
 * does. */
void topt_step_count_values(const struct step *s, int64_t *ret_x, int64_t *ret_y);
/* Does a factor with these offsets tell none of a dimension's values apart? */
int topt_step_sees_none(const int32_t *off, int n);

/* First entries of A and B, among those of all tables, for the values x (as one number)
 * of the output dimensions; 0 where there is no B. */
void topt_step_entries(const struct step *s, int64_t x, int64_t *ret_a, int64_t *ret_b);

/* Iterate over all x in order: start, then next after each; x counts up from 0. */
struct cursor {
    const struct step *step;
    const int32_t *off_a, *off_b; /* of the last dimension */
    int64_t x, row_a, row_b, a, b;
    int32_t at, size; /* in the last dimension */
};

static inline void topt_cursor_row(struct cursor *c)
{
    topt_step_entries(c->step, c->x, &c->row_a, &c->row_b);
    c->a = c->row_a;
    c->b = c->row_b;
    if (c->size > 1) { /* both rows without the last dimension */
        c->row_a -= c->off_a[0];
        c->row_b -= c->off_b[0];
    }
    c->at = 0;
}

static inline struct cursor topt_cursor_start(const struct step *s)
{
    struct cursor c = {.step = s, .size = s->ndims ? s->size[s->ndims - 1] : 1};
    c.off_a = s->kfirst - (s->ndims ? 2 * c.size : 0);
    c.off_b = c.off_a + c.size;
    topt_cursor_row(&c);
    return c;
}

static inline void topt_cursor_next(struct cursor *c)
{
    c->x++;
    if (++c->at < c->size) {
        c->a = c->row_a + c->off_a[c->at];
        c->b = c->row_b + c->off_b[c->at];
    } else {
        topt_cursor_row(c);
    }
}

#endif
