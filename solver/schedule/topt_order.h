/* topt_order.h - pipeline schedules: the order in which each stage runs its passes.
 *
 * A stage holds one or several chunks of the layers, and runs each micro-batch forward once and backward once
 * through each chunk.  A schedule is a row of a table.  It lists a stage's passes as parts, one after the other, in
 * each of which a few passes repeat: some forward passes before the first backward pass, then backward and forward
 * passes in turn, and last the remaining backward passes.  A rank that holds all layers is the one stage of "1f1b".
 *
 * A backward pass makes the gradients of the chunk's input, for which the chunk before waits, and those of its
 * parameters, for which nothing waits before the end of the step.  Some rows postpone the latter to times at which
 * the stage would be idle (Qi et al., Zero Bubble Pipeline Parallelism, 2023).
 *
 * In some rows a forward and a backward pass, of two micro-batches, run as one, so that either one's tokens move to
 * experts while the other computes (Megatron-LM's combined 1F1B; DeepSeek-AI, DeepSeek-V3, 2024).
 *
 * With several chunks a stage, chunk c of the model is chunk c / stages of stage c % stages.  Micro-batches then
 * go in groups, of as many as there are stages or, where the row says so, a few more; a group passes through one
 * chunk after the other (Narayanan et al. 2021).  In a V, stage s instead holds chunks s and 2 x stages - 1 - s, and
 * each of the two takes micro-batches in their order. */
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
    int sends_wait; /* a stage waits until its output is sent */
    int turns; /* passes of a micro-batch through a chunk, where the order repeats itself */
    int splits; /* some passes make gradients of parameters apart */
    int v;      /* chunks lie in a V */
    int pairs; /* a backward pass and the forward pass after it run as one, where they repeat */
    int grows; /* a group may have more micro-batches than there are stages */
    /* The order needs at least this many micro-batches a stage, less 'but' in all; 0: any number. */
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

/* The micro-batches of a group: as many as stages; of a row that 'grows', the fewest from there on that divide the
 * micro-batches of a step. */
int64_t topt_order_group(const struct topt_order *o, const struct topt_order_shape *p);
/* Does the row have an order for the shape?  Unless chunks lie in a V, groups must divide the micro-batches. */
int topt_order_takes(const struct topt_order *o, const struct topt_order_shape *p);
/* The fewest micro-batches for which it has one. */
int64_t topt_order_least(const struct topt_order *o, int stages);

/* The stage of a chunk of the model; the chunk of the model that is the 'own'th of a stage. */
int topt_order_stage(const struct topt_order *o, const struct topt_order_shape *p,
                     int chunk);
int topt_order_chunk(const struct topt_order *o, const struct topt_order_shape *p,
                     int stage, int own);

/* One pass of one micro-batch through one of the stage's chunks. */
enum topt_turn_part {
    TOPT_TURN_WHOLE,
    TOPT_TURN_INPUTS, /* backward, the gradients of the chunk's input alone */
    TOPT_TURN_WEIGHTS /* ... of its parameters alone */
};
struct topt_turn {
    int backward, chunk;
    int64_t micro_batch;
    enum topt_turn_part part;
};

/* The passes of a stage: parts, in each of which a cycle of a few passes repeats.  A pass is found by its number in
 * constant time.  Passes are counted by line: a chunk of a V, else all chunks of the stage. */
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
    int64_t repeats_until; /* ... before the order ceases to repeat itself */
    struct topt_order_count sum;
    int n;
    struct topt_order_part {
        int64_t from; /* its first turn */
        int cycle;
        char pass[TOPT_ORDER_CYCLE], line[TOPT_ORDER_CYCLE];
        struct topt_order_count before; /* this part */
        struct topt_order_count each;   /* of a cycle */
    } part[TOPT_ORDER_PARTS];           /* the first 'n' are set */
};
/* Of a shape that the row takes. */
void topt_order_plan(const struct topt_order *o, const struct topt_order_shape *p,
                     int stage, struct topt_order_plan *ret);
/* The same with groups of the size that a step of more micro-batches has. */
void topt_order_plan_by(const struct topt_order *o, const struct topt_order_shape *p,
                        int64_t group, int stage, struct topt_order_plan *ret);
/* The number of passes through the stage's 'own'th chunk before the stage's first backward pass. */
int64_t topt_order_ahead(const struct topt_order_plan *p, int own);
/* The 'i'th pass, from 0 on. */
struct topt_turn topt_order_turn(const struct topt_order_plan *p, int64_t i);
/* Does the 'i'th pass run as one with the next?  The number of such pairs. */
int topt_order_pairs(const struct topt_order_plan *p, int64_t i);
int64_t topt_order_count_pairs(const struct topt_order_plan *p);

#endif
