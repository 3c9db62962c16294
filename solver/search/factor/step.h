/* step.h - how a table is made of two others.
 * Internal to this part.  Thread safety: one owner; once complete, read by many. */
#ifndef TOPT_SEARCH_STEP_H
#define TOPT_SEARCH_STEP_H

#include <stddef.h>
#include <stdint.h>

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
    /* Where A is a vector and B a leaf and a matrix: entries in a row of B (else 0), and
     * offsets into B by entry.  'by_columns': the variable on its way out is the number
     * of the row. */
    int row, by_columns;
    int matrix; /* a matrix times a matrix: see min_plus.c */
    const int32_t *row_off;
    int in_rows; /* else: are values of k neighbours both in A and in B? */
    int64_t nentries;
    int32_t *recipe; /* malloc'ed; taken by topt_tables_step */
    size_t recipe_len;
};

/* Is the step a matrix times a matrix?  Sets s->matrix. */
void topt_min_plus_find(struct step *s);
/* How many values the dimensions have together that A tells apart, and those that B
 * does. */
void topt_step_count_values(const struct step *s, int64_t *ret_x, int64_t *ret_y);
/* Numbers that a scalarised pass of such a step takes. */
int64_t topt_min_plus_room(const struct step *s);

#endif
