/* session.h - inside the executor: what a rank has while it runs a program. */
#ifndef TOPT_SESSION_H
#define TOPT_SESSION_H

#include "topt_runtime.h"

struct topt_buckets;

struct topt_meter {
    int64_t granule, live, peak;
};

struct topt_session {
    const struct topt_program *p;
    struct topt_comm *comm;
    struct topt_device *dev;
    struct topt_session_options options;
    void *arena;     /* all buffers lie in it, each at its offset */
    int64_t *offset; /* by buffer */
    int64_t arena_bytes;
    void **ptr;      /* by buffer; NULL where not alive */
    int64_t *bytes;  /* by buffer, as charged */
    int64_t *counts; /* 2 * ranks, for exchanges */
    struct topt_meter meter;
    int64_t step, micro; /* finished steps; micro-batch of this one */
    int64_t labels;      /* of the step's batch that count; 0: all do */
    double loss;         /* this rank's share, over the micro-batches so far */
    int evaluates;
    double right[2]; /* of an evaluation: labels, and those whose logit is the largest */
    int loss_at;     /* the instruction that it came from */
    double heard[TOPT_SESSION_WORDS];
    double lr, norm, scale;
    const struct topt_feed *feed; /* of the training, or of an evaluation */
    struct topt_session_times times;
    void **rows_heap; /* by buffer: where a gradient of rows is that outgrew its place */
    double *rows_named; /* by operator: rows of its gradient here, over all steps */
    struct topt_buckets *buckets;
    struct topt_kernel_call *bound; /* by operator: what all of its kernels are told */
    uint8_t *
        together; /* by instruction: kernels, from this one on, that are done in one pass */
    int32_t
        *filled; /* of what the rest reads, then of what an encoder reads, by sample of a
                        micro-batch: the positions that are no padding */
    double balanced; /* this rank's balance of experts, over the micro-batches so far */
    double balance;  /* of all ranks */
    struct topt_op *drop_op; /* by operator: what drops numbers of its output or input */
    struct topt_op_form *drop_form;
    struct topt_model *drop_model;
    int overlaps;  /* buckets are reduced behind backward */
    void *scratch; /* host memory, grown on demand */
    int64_t scratch_bytes;
};

#endif
