/* matrix.h - a matrix times a matrix, in the algebra of least and plus.
 * Internal to this folder.  Thread safety: as weigh.h. */
#ifndef TOPT_MATRIX_H
#define TOPT_MATRIX_H

#include "weigh.h"

/* Is the step one, and how?  Sets s->matrix. */
void topt_matrix_find(struct step *s);
/* Numbers that weighing such a step takes. */
int64_t topt_matrix_room(const struct step *s);

/* As the loops of weigh.c, for weights that are light. */
void topt_matrix_least(const struct table *t, struct bound *b);
void topt_matrix_rest(const struct table *t, struct bound *b, int for_a, int for_b);

#endif
