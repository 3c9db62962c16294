/* rows_price.h - prices of what is done by rows.  Private to lower/. */
#ifndef TOPT_ROWS_PRICE_H
#define TOPT_ROWS_PRICE_H

#include "fragment.h"

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
