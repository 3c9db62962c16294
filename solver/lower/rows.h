/* rows.h - sparse tables: gradients that are lists of rows, rows that have owners, and the prices
 * of both.  Private to lower/. */
#ifndef TOPT_ROWS_H
#define TOPT_ROWS_H

#include "fragment.h"

/* Makes 'g', a gradient of the operator's sparse table, a list of rows. */
void topt_rows_shape(const struct topt_op_writer *w, struct topt_buffer *g);
/* Is this the step that reads the table, and are its rows on other devices? */
int topt_rows_have_owners(const struct topt_op_writer *w, const struct topt_step *s);
/* Writes the step that fetches the output's rows from their owners. */
int topt_rows_fetch(const struct topt_op_writer *w);
/* Backward: exchanges the gradient of the output as rows, and adds them to b->param_grad. */
int topt_rows_add(const struct topt_op_writer *w);

/* The subject of a price: a costing, the buffers that instructions name, and the local box
 * of the operator whose kernels are priced. */
struct topt_seen {
    const struct topt_costing *k;
    const struct topt_buffer *named;
    const int64_t *len;
};

/* The times of ROWS_FETCH and ROWS_ADD; and of UPDATE by a gradient of rows, or of rows whose
 * columns are split, so that their squares are summed over devices. */
struct topt_time topt_rows_price(const struct topt_seen *t, const struct topt_instr *i);
struct topt_time topt_rows_update_price(const struct topt_seen *t,
                                        const struct topt_instr *i);
/* The part of an operand's 'bytes' that a kernel touches: of a sparse table at most one row for
 * each lookup. */
int64_t topt_rows_touched(const struct topt_seen *t, const struct topt_op *o, int operand,
                          int64_t bytes);

#endif
