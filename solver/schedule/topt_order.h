/* topt_order.h - in which order a stage takes up its micro-batches: the rows of a table.
 *
 * A stage holds a part of the layers; it sends each micro-batch forward once and backward once.
 * Until its first backward it sends some forward; then, while there are more of them, it goes
 * backward and forward in turn; at last the rest goes backward.  What a row says is how many are
 * sent ahead.  A rank that holds all layers is the one stage of "1f1b". */
#ifndef TOPT_ORDER_H
#define TOPT_ORDER_H

#include <stdint.h>

struct topt_order {
    const char *name;
    int64_t (*ahead)(int stages, int stage, int64_t micro_batches);
};
enum { TOPT_ORDER_1F1B, TOPT_ORDER_GPIPE, TOPT_ORDERS };
extern const struct topt_order topt_orders[TOPT_ORDERS];

/* One pass of one micro-batch. */
struct topt_turn {
    int backward;
    int64_t micro_batch;
};

/* The 'i'th pass, of 2 x micro_batches, of a stage from 0 on. */
struct topt_turn topt_order_turn(const struct topt_order *o, int stages, int stage,
                                 int64_t micro_batches, int64_t i);

#endif
