/* rows.h - sparse tables: gradients of rows, and rows that have owners.  Private to
 * lower/. */
#ifndef TOPT_ROWS_H
#define TOPT_ROWS_H

#include "fragment.h"

/* Make of 'g', a gradient of the operator's sparse table, one of rows. */
void topt_rows_shape(const struct topt_fragments *f, int op, const struct topt_config *c,
                     struct topt_buffer *g);
/* Is this the step that reads the table, and do other devices have its rows? */
int topt_rows_have_owners(const struct topt_fragments *f, int op,
                          const struct topt_config *c, const struct topt_step *s);
/* The step that fetches the output's rows from their owners. */
int topt_rows_fetch(const struct topt_fragments *f, int op, const struct topt_config *c,
                    const struct topt_op_buffers *b);
/* Backward: the gradient of the output as rows, exchanged and added to b->param_grad. */
int topt_rows_add(const struct topt_fragments *f, int op, const struct topt_config *c,
                  const struct topt_op_buffers *b);

/* Bytes of a row's number; devices that differ along 'axes'. */
enum { TOPT_ROW_NUMBER_BYTES = 4 };
int64_t topt_rows_parts(const struct topt_mesh *mesh, uint32_t axes);

#endif
