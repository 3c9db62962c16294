/* costs.h - what reading a cost file shares: an edge's matrix, and what was seen before.
 * Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_COSTS_H
#define TOPT_SEARCH_COSTS_H

#include "interning.h"
#include "search_common.h"

/* An edge's matrix as it stands in the file. */
struct matrix {
    int rows, cols;
    int32_t *first; /* rows * cols + 1 */
    size_t nentries, cap_first;
    struct topt_cost *alt;
    size_t nalts, cap_alts;
};

/* Equal costs and tables of a file, each stored once. */
struct costs_store {
    struct topt_interning bytes;
    struct topt_error *err;
};

/* The one copy of these bytes; NULL: memory. */
const void *topt_costs_keep(struct costs_store *s, const void *bytes, size_t len);

/* The table and the classes of a matrix, shared with earlier ones that are equal. */
int topt_costs_table(struct costs_store *s, const struct matrix *m,
                     struct topt_search_edge *ret) TOPT_MUST_CHECK;

/* The problem with its operators and edges in order, in 'arena', and by edge which it
 * was; as it is where there is a cycle. */
int topt_costs_order(const struct topt_search_problem *p, struct topt_arena *arena,
                     struct topt_search_problem *ret, const int **ret_number,
                     struct topt_error *err) TOPT_MUST_CHECK;

int topt_costs_nomem(struct topt_error *err);

#endif
