/* min_plus.h - a matrix times a matrix, in the algebra of least and plus.
 * Internal to this folder.  Thread safety: as min_marginals.h. */
#ifndef TOPT_SEARCH_MIN_PLUS_H
#define TOPT_SEARCH_MIN_PLUS_H

#include "scalar_pass.h"

/* ret[row][column] = least over k of  a[k][row] + b[k][column].  All tiles that the
 * processor can do give the same; the fastest is last.  Returns how many. */
enum { TOPT_TILES = 3 };
typedef void topt_tile_fn(const double *a, const double *b, int nk, double *ret);
int topt_min_plus_tiles(topt_tile_fn *ret[TOPT_TILES]);

/* The loops of min_marginals.c for weights that are small numbers. */
void topt_min_plus_least(const struct table *t, struct scalar_pass *b);
void topt_min_plus_rest(const struct table *t, struct scalar_pass *b, int for_a,
                        int for_b);

#endif
