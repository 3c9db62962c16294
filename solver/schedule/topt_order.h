/* topt_order.h - in which order a stage takes up its micro-batches: the rows of a table.
 *
 * A stage holds one or several chunks of the layers; it sends each micro-batch forward once and
 * backward once through each.  A row says the stage's passes as parts, one after the other, each of
 * which repeats a few passes: until its first backward pass a stage makes some forward, then, while
 * there are more of them, it goes backward and forward in turn; at last the rest goes backward.  A rank
 * that holds all layers is the one stage of "1f1b".
 *
 * A backward pass makes the gradients of what the chunk read, for which the chunk before waits, and those
 * of its parameters, for which nothing does before the step is over.  Some rows make these apart, where
 * a stage would wait otherwise (Qi et al., Zero Bubble Pipeline Parallelism, 2023).
 *
 * In some rows a pass forward and one backward, of two micro-batches, run as one, so that what either sends
 * to experts goes while the other computes (Megatron-LM's combined 1F1B; DeepSeek-AI, DeepSeek-V3, 2024).
 *
 * With several chunks a stage, chunk c of the model is chunk c / stages of stage c % stages, and
 * micro-batches are taken in groups of as many as there are stages, or where the row says so a few more, a group
 * through one chunk after the other (Narayanan et al. 2021).  Or, in a V, stage s holds chunks s and 2 x stages - 1 - s, and each
 * of the two takes micro-batches in their order. */
#ifndef TOPT_ORDER_H
#define TOPT_ORDER_H

#include <stdint.h>

/* The shape of a pipeline: stages, chunks of each, micro-batches of a step. */
struct topt_order_shape {
    int stages, chunks;
    int64_t micro_batches;
};

struct topt_order_plan;
struct topt_order {
    const char *name;
    int least_chunks, most_chunks; /* of a stage */
    void (*plan)(const struct topt_order_shape *p, int stage,
                 struct topt_order_plan *ret);
    int sends_wait; /* a stage waits until what it made is sent */
    int turns;      /* of a chunk and micro-batch, where the order repeats itself */
    int splits;     /* gradients of parameters are made apart, of some passes at least */
    int v;          /* chunks lie in a V */
    int pairs; /* a pass backward and the one forward after it run as one, where passes repeat in this order */
    int grows; /* groups of micro-batches may be larger than the stages */
    /* With fewer micro-batches than this times the stages, less 'but', there is no such order; 0: any. */
    int least_rounds, but;
};
enum topt_order_row {
    TOPT_ORDER_1F1B,
    TOPT_ORDER_INTERLEAVED,
    TOPT_ORDER_GPIPE,
    TOPT_ORDER_ZB_H1,
    TOPT_ORDER_INTERLEAVED_ZB,
    TOPT_ORDER_ZBV,
    TOPT_ORDER_DUALPIPE_V,
    TOPT_ORDER_COMBINED,
    TOPT_ORDER_COMBINED_V,
    TOPT_ORDERS
};
extern const struct topt_order topt_orders[TOPT_ORDERS];
const char *topt_order_name(enum topt_order_row row);

/* The micro-batches of a group: of a row that 'grows' the fewest that divide those of a step and are no fewer
 * than stages; else as many as stages. */
int64_t topt_order_group(const struct topt_order *o, const struct topt_order_shape *p);
/* Is there such an order of the shape?  Where chunks don't lie in a V, groups divide micro-batches. */
int topt_order_takes(const struct topt_order *o, const struct topt_order_shape *p);
/* The fewest micro-batches of which there is one, in a V. */
int64_t topt_order_least(const struct topt_order *o, int stages);

/* The stage of a chunk of the model; the chunk of the model that is the 'own'th of a stage. */
int topt_order_stage(const struct topt_order *o, const struct topt_order_shape *p,
                     int chunk);
int topt_order_chunk(const struct topt_order *o, const struct topt_order_shape *p,
                     int stage, int own);

/* One pass of one micro-batch through one of the stage's chunks. */
enum topt_turn_part {
    TOPT_TURN_WHOLE,
    TOPT_TURN_INPUTS, /* backward, gradients of what the chunk read alone */
    TOPT_TURN_WEIGHTS /* ... of its parameters alone */
};
struct topt_turn {
    int backward, chunk;
    int64_t micro_batch;
    enum topt_turn_part part;
};

/* The passes of a stage, from which each is found by its number: parts of so many turns, in each of
 * which a few passes repeat. */
enum { TOPT_ORDER_PARTS = 12, TOPT_ORDER_CYCLE = 6, TOPT_ORDER_LINES = 2 };
struct topt_order_count {
    int64_t forward[TOPT_ORDER_LINES], backward[TOPT_ORDER_LINES],
        weights[TOPT_ORDER_LINES];
};
struct topt_order_plan {
    const struct topt_order *order;
    struct topt_order_shape shape;
    int64_t group;         /* of micro-batches */
    int64_t turns;         /* in all */
    int64_t ahead;         /* ... before the first one backward, all of them forward */
    int64_t repeats_until; /* ... before the order ends to repeat itself */
    int n;
    struct topt_order_part {
        int64_t from; /* its first turn */
        int cycle;
        char pass[TOPT_ORDER_CYCLE], line[TOPT_ORDER_CYCLE];
        struct topt_order_count before; /* this part */
        struct topt_order_count each;   /* of a cycle */
    } part[TOPT_ORDER_PARTS];
    struct topt_order_count sum;
};
/* Of a shape that the row takes. */
void topt_order_plan(const struct topt_order *o, const struct topt_order_shape *p,
                     int stage, struct topt_order_plan *ret);
/* ... by groups of so many micro-batches, as of one with more of them. */
void topt_order_plan_by(const struct topt_order *o, const struct topt_order_shape *p,
                        int64_t group, int stage, struct topt_order_plan *ret);
/* How many passes the 'own'th chunk of the stage makes before the stage's first one backward. */
int64_t topt_order_ahead(const struct topt_order_plan *p, int own);
/* The 'i'th pass, from 0 on. */
struct topt_turn topt_order_turn(const struct topt_order_plan *p, int64_t i);
/* Does the 'i'th pass run as one with the next?  How many do. */
int topt_order_pairs(const struct topt_order_plan *p, int64_t i);
int64_t topt_order_count_pairs(const struct topt_order_plan *p);

#endif
