/* rows.h - sparse tables: gradients of rows, and rows that have owners.  Private to
 * lower/. */
#ifndef TOPT_ROWS_H
#define TOPT_ROWS_H

#include "tally.h"

/* Make of 'g', a gradient of the operator's sparse table, one of rows. */
void topt_rows_shape(const struct topt_fragments *f, int op, const struct topt_config *c,
                     struct topt_buffer *g);
/* Is this the step that reads the table, and do other devices have its rows? */
int topt_rows_have_owners(const struct topt_fragments *f, int op,
                          const struct topt_config *c, const struct topt_step *s);
/* That step: the output's rows from their owners. */
int topt_rows_fetch(const struct topt_fragments *f, int op, const struct topt_config *c,
                    const struct topt_op_buffers *b);
/* Backward: the gradient of the output as rows, exchanged and added to b->param_grad. */
int topt_rows_add(const struct topt_fragments *f, int op, const struct topt_config *c,
                  const struct topt_op_buffers *b);

/* What ROWS_FETCH and ROWS_ADD take; and UPDATE by a gradient of rows, or where rows are cut
 * and their squares added up. */
struct topt_time topt_rows_price(const struct topt_tally *t, const struct topt_instr *i);
struct topt_time topt_rows_update_price(const struct topt_tally *t,
                                        const struct topt_instr *i);
/* Of 'bytes' of an operand what a kernel touches: of a sparse table no more than a row a
 * lookup. */
int64_t topt_rows_touched(const struct topt_tally *t, const struct topt_op *o,
                          int operand, int64_t bytes);

#endif
