/* matrix.h - a matrix times a matrix, in the algebra of least and plus.
 * Internal to this folder.  Thread safety: as weigh.h. */
#ifndef TOPT_MATRIX_H
#define TOPT_MATRIX_H

#include "bound.h"

/* ret[row][column] = least over k of  a[k][row] + b[k][column].  All tiles that the processor can do give the same;
 * the fastest is last.  Returns how many. */
enum { TOPT_TILES = 3 };
typedef void topt_tile_fn(const double *a, const double *b, int nk, double *ret);
int topt_matrix_tiles(topt_tile_fn *ret[TOPT_TILES]);

/* As the loops of weigh.c, for weights that are light. */
void topt_matrix_least(const struct table *t, struct bound *b);
void topt_matrix_rest(const struct table *t, struct bound *b, int for_a, int for_b);

#endif
