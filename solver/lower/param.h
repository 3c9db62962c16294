/* param.h - a parameter's buffers, moves and update, by how it is sharded over its
 * replicas.  Private to lower/. */
#ifndef TOPT_PARAM_H
#define TOPT_PARAM_H

#include "fragment.h"

/* f32 numbers that the steps of a framework's optimizer move for each of a parameter;
 * 0: it is one kernel.  'ret_kernels': how many kernels these steps are. */
int topt_optimizer_eager(enum topt_optimizer o, int *ret_kernels);
/* Add to an operator's cost the bytes of its parameters and their gradients that a system which
 * gathers by unit or from pools (settings.gather) holds beside its shards; by operator there are
 * none.  Sharded blocks that a system does not have, as the master copy stands for them
 * (settings.shard_f32), are taken off. */
void topt_param_buffers(const struct topt_fragments *f, int op,
                        const struct topt_config *c, struct topt_fragment_cost *cost);
/* Bytes of an operator's parameters, gradients and states on the host; those that are copied from there, forward and
 * backward, and to there, in all micro-batches; at the end, to there and from there; and what the host's optimizer
 * reads and writes. */
struct topt_host_traffic {
    int64_t rests, fetched[2], put, ends, returns, worked;
};
/* Take what rests on the host (settings.offload) off the bytes of a device, after topt_param_buffers(). */
void topt_param_offload(const struct topt_fragments *f, int op,
                        const struct topt_config *c, struct topt_fragment_cost *cost,
                        struct topt_host_traffic *ret);
int topt_param_init(const struct topt_op_writer *w, int operand);
/* The buffers that kernels of the direction read as b->value, and their end. */
int topt_params_open(const struct topt_op_writer *w);
void topt_params_close(const struct topt_op_writer *w);
/* The buffers that backward's kernels add to as b->grad, and their end. */
int topt_param_grads_open(const struct topt_op_writer *w);
int topt_param_grads_close(const struct topt_op_writer *w);
/* Start of a step: gradients that stay are zero. */
int topt_params_zero(const struct topt_fragments *f, int op,
                     const struct topt_op_buffers *b);
/* End of a step: parameter gradients are reduced over the replicas, parameters
 * updated. */
int topt_params_update(const struct topt_fragments *f, int op,
                       const struct topt_config *c, struct topt_op_buffers *b);

#endif
