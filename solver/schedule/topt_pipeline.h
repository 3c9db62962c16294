/* topt_pipeline.h - a step of training over pipeline stages: passes of micro-batches in time.
 *
 * The layers are cut into chunks, which stages hold in turn.  A pass of a micro-batch through a chunk is
 * one task of its stage, with the time and bytes of the chunk's own schedule (topt_step.h).  Its output is
 * sent to the stage of the next chunk.
 *
 *     stage 0   | F0 | F1 | F2 |              | B0 |    | B1 |    | B2 | end |
 *     stage 1        | F0 | F1 |         | B0 | F2 | B1 |    | B2 | end |
 *     stage 2             | F0 | B0 | F1 | B1 | F2 | B2 | end |
 *
 * A backward pass in two parts frees the activations after the second part: autograd holds on to the graph
 * between the two (torch/distributed/pipelining/_backward.py), and on to the output gradients of operators
 * with parameters. */
#ifndef TOPT_PIPELINE_H
#define TOPT_PIPELINE_H

#include "topt_order.h"
#include "topt_step.h"

struct topt_chunk {
    int64_t ns[2];        /* of a pass forward, backward */
    int64_t weights_ns;   /* ... of the latter, gradients of parameters */
    int64_t kept;         /* bytes from its forward to its backward */
    int64_t weights_kept; /* more, or less, between the two parts of its backward pass */
    int64_t during[2][TOPT_HELD_COUNT]; /* more bytes while it goes forward, backward */
};

/* A task of a stage: the pass of a micro-batch through a chunk, or (chunk -1) the end of its step.  'backward' is 2 for
 * a pass that makes the gradients of parameters alone. */
struct topt_stage_pass {
    int task, stage, chunk, backward;
    int64_t micro_batch, start_ns, end_ns;
};
/* The passes of a schedule, of each stage in order.  They are those of 'micro_batches' micro-batches; a step of more
 * repeats some. */
struct topt_passes {
    int n, cap;
    struct topt_stage_pass *at; /* owned */
    int64_t micro_batches;
};

struct topt_pipeline {
    enum topt_order_row order;
    struct topt_order_shape shape;
    int sends_wait; /* a stage waits until its output is sent, in any order without pairs */
    /* shape.stages x shape.chunks, in the model's order */
    const struct topt_chunk *chunk;
    const int64_t *end_ns;  /* by stage: reductions and the update, after its last pass */
    const int64_t *send_ns; /* by chunk: from it to the next, or back from that */
    /* The time of a forward and a backward pass that run as one, by the chunk that goes forward and the number, in its
     * stage, of the chunk that goes backward; NULL for schedules without such pairs. */
    const int64_t *pair_ns;
    struct topt_passes *passes; /* filled anew, unless it is NULL */
};

struct topt_pipeline_held {
    int64_t bytes[TOPT_HELD_COUNT]; /* by component, when the stage holds most */
};

/* The time of a step, and ('ret_held', of shape.stages; may be NULL) what each stage holds at most.  's' is filled
 * anew, with an owner for each stage.  INVAL where the row has no order for the shape. */
int topt_pipeline_run(struct topt_schedule *s, const struct topt_pipeline *p,
                      int64_t *ret_ns, struct topt_pipeline_held *ret_held,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
