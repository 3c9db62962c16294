/* rows.h - sparse tables: gradients of rows, rows that have owners, and their prices.  Private
 * to lower/. */
#ifndef TOPT_ROWS_H
#define TOPT_ROWS_H

#include "fragment.h"

/* Make of 'g', a gradient of the operator's sparse table, one of rows. */
void topt_rows_shape(const struct topt_op_writer *w, struct topt_buffer *g);
/* Is this the step that reads the table, and do other devices have its rows? */
int topt_rows_have_owners(const struct topt_op_writer *w, const struct topt_step *s);
/* The step that fetches the output's rows from their owners. */
int topt_rows_fetch(const struct topt_op_writer *w);
/* Backward: the gradient of the output as rows, exchanged and added to b->param_grad. */
int topt_rows_add(const struct topt_op_writer *w);

/* The subject of a price: a costing, the buffers that instructions name, and the local box
 * of the operator whose kernels are priced. */
struct topt_seen {
    const struct topt_costing *k;
    const struct topt_buffer *named;
    const int64_t *len;
};

/* Price ROWS_FETCH and ROWS_ADD; and UPDATE by a gradient of rows, or where rows are cut and
 * their squares added up. */
struct topt_time topt_rows_price(const struct topt_seen *t, const struct topt_instr *i);
struct topt_time topt_rows_update_price(const struct topt_seen *t,
                                        const struct topt_instr *i);
/* The part of an operand's 'bytes' that a kernel touches: of a sparse table no more than a
 * row a lookup. */
int64_t topt_rows_touched(const struct topt_seen *t, const struct topt_op *o, int operand,
                          int64_t bytes);

#endif
