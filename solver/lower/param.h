/* param.h - a parameter's buffers, moves and update, by how it is sharded over its
 * replicas.  Private to lower/. */
#ifndef TOPT_PARAM_H
#define TOPT_PARAM_H

#include "fragment.h"

/* The f32 numbers that a framework's optimizer, as PyTorch's kernels run it one by one, reads and
 * writes for each number of a parameter; 0: it is one kernel.  'ret_kernels': how many these are. */
int topt_optimizer_eager(enum topt_optimizer o, int *ret_kernels);
/* Adds to an operator's cost the bytes of parameters and gradients that a system holds beside its
 * shards, if it gathers by unit or from pools (settings.gather).  Subtracts sharded blocks that a
 * system does not have because the master copy stands for them (settings.shard_f32). */
void topt_param_buffers(const struct topt_fragments *f, int op,
                        const struct topt_config *c, struct topt_fragment_cost *cost);
/* Bytes of an operator's parameters, gradients and states that settings.offload keeps on the host. */
struct topt_host_traffic {
    int64_t rests; /* there throughout */
    int64_t
        fetched[2]; /* copied from there, forward and backward, in all micro-batches */
    int64_t put;    /* ... and to there */
    int64_t ends, returns; /* copied to there, and from there, at the end of a step */
    int64_t worked;        /* read and written by the host's optimizer */
};
/* Subtracts what rests on the host from the bytes of a device, after topt_param_buffers(). */
void topt_param_offload(const struct topt_fragments *f, int op,
                        const struct topt_config *c, struct topt_fragment_cost *cost,
                        struct topt_host_traffic *ret);
int topt_param_init(const struct topt_op_writer *w, int operand);
/* Makes the buffers that kernels of the direction read as b->value, and releases them. */
int topt_params_open(const struct topt_op_writer *w);
void topt_params_close(const struct topt_op_writer *w);
/* Makes the buffers that backward's kernels add to as b->grad, and releases them. */
int topt_param_grads_open(const struct topt_op_writer *w);
int topt_param_grads_close(const struct topt_op_writer *w);
/* At the start of a step: sets gradients that stay to zero. */
int topt_params_zero(const struct topt_fragments *f, int op,
                     const struct topt_op_buffers *b);
/* At the end of a step: reduces parameter gradients over the replicas, and updates
 * parameters. */
int topt_params_update(const struct topt_fragments *f, int op,
                       const struct topt_config *c, struct topt_op_buffers *b);

#endif
