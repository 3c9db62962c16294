/* topt_order.h - in which order a stage takes up its micro-batches: the rows of a table.
 *
 * A stage holds one or several chunks of the layers; it sends each micro-batch forward once and
 * backward once through each.  Until its first backward pass it makes some passes forward; then, while
 * there are more of them, it goes backward and forward in turn; at last the rest goes backward.  What
 * a row says is how many go ahead.  A rank that holds all layers is the one stage of "1f1b".
 *
 * With several chunks a stage, chunk c of the model is chunk c / stages of stage c % stages, and
 * micro-batches are taken in groups of as many as there are stages, a group through one chunk after
 * the other (Narayanan et al. 2021). */
#ifndef TOPT_ORDER_H
#define TOPT_ORDER_H

#include <stdint.h>

/* The shape of a pipeline: stages, chunks of each, micro-batches of a step.  With several chunks
 * stages divide micro-batches. */
struct topt_order_shape {
    int stages, chunks;
    int64_t micro_batches;
};

struct topt_order {
    const char *name;
    int least_chunks, most_chunks; /* of a stage */
    int64_t (*ahead)(const struct topt_order_shape *p, int stage);
    int sends_wait; /* a stage waits until what it made is sent */
};
enum topt_order_row {
    TOPT_ORDER_1F1B,
    TOPT_ORDER_INTERLEAVED,
    TOPT_ORDER_GPIPE,
    TOPT_ORDERS
};
extern const struct topt_order topt_orders[TOPT_ORDERS];
const char *topt_order_name(enum topt_order_row row);

/* One pass of one micro-batch through one of the stage's chunks. */
struct topt_turn {
    int backward, chunk;
    int64_t micro_batch;
};

/* Passes forward that a stage makes before its first one backward. */
int64_t topt_order_ahead(const struct topt_order *o, const struct topt_order_shape *p,
                         int stage);
/* The 'i'th pass, of 2 x chunks x micro_batches, of a stage from 0 on. */
struct topt_turn topt_order_turn(const struct topt_order *o,
                                 const struct topt_order_shape *p, int stage, int64_t i);

#endif
