/* ops.h - what the files of the operator table share: short forms for rows, and helpers of
 * their shape functions.  Private to model/. */
#ifndef TOPT_OPS_H
#define TOPT_OPS_H

#include "topt_model.h"

#define V(o) (1u << (o))        /* a step touches the value of operand o */
#define G(o) (1u << (16 + (o))) /* ... its gradient */
#define D(d) (1u << (d))        /* dimension d of the operator */
#define A(x) ((topt_attr_set)1 << TOPT_A_##x)

/* clang-format off */
#define KERNEL(k, r, w) {.kind = TOPT_STEP_KERNEL, .kernel = TOPT_K_##k, .reads = (r), .writes = (w)}
#define KERNEL_AT(d, k, r, w) {.kind = TOPT_STEP_KERNEL, .kernel = TOPT_K_##k, .reads = (r), .writes = (w), .loop = 1 + (d)}
#define SUM(o, d)           {.kind = TOPT_STEP_SUM, .operand = (o), .dims = (d)}
#define SUM_AT(at, o, d)    {.kind = TOPT_STEP_SUM, .operand = (o), .dims = (d), .loop = 1 + (at)}
#define MAX(o, d)           {.kind = TOPT_STEP_MAX, .operand = (o), .dims = (d)}
#define HALO(o, w)          {.kind = TOPT_STEP_HALO, .operand = (o), .into = (w)}
#define HALO_ADD(w, o)      {.kind = TOPT_STEP_HALO_ADD, .operand = (w), .into = (o)}
#define MOVE(o, to)         {.kind = TOPT_STEP_MOVE, .operand = (o), .into = (to)}
#define MOVE_AT(at, o, to)  {.kind = TOPT_STEP_MOVE, .operand = (o), .into = (to), .loop = 1 + (at)}

#define BATCH {"b", TOPT_SPLIT_BATCH}
#define SEQ   {"s", TOPT_SPLIT_SEQUENCE}
/* clang-format on */

/* Each file of rows ends with one whose name is NULL. */
extern const struct topt_op_spec topt_ops_dense[], topt_ops_attention[], topt_ops_conv[],
    topt_ops_recurrent[], topt_ops_moe[], topt_ops_shape[], topt_ops_channel[],
    topt_ops_resample[];

static inline int64_t topt_unit_of(int64_t unit)
{
    return unit > 0 ? unit : 1;
}

/* Set the extent of tensor dimension 'i' of an operand: the operator's count, and 'unit'. */
void topt_set_dim(struct topt_op *op, int operand, int i, int64_t unit);
/* Extents of an input become those of the operator's dimensions. */
void topt_counts_from_input(struct topt_op *op, int operand);
/* -1 unless the last dimension of an input has units of 'want'. */
int topt_refuse_units(const struct topt_op *op, int operand, int64_t want,
                      struct topt_error *err);
/* All operands have the first input's extents, in the dimensions they share with it. */
int topt_shape_same(struct topt_op *op, struct topt_error *err);
int topt_shape_normed(struct topt_op *op, struct topt_error *err); /* and an eps */
int topt_shape_unary(struct topt_op *op, struct topt_error *err);  /* and an activation */

int topt_shape_weigh(struct topt_op *op, struct topt_error *err);

int64_t topt_flops_none(const struct topt_op *op, enum topt_kernel k, const int64_t *len);
/* Operations an element of the output; small beside what memory costs. */
int64_t topt_flops_elementwise(const struct topt_op *op, enum topt_kernel k,
                               const int64_t *len);

/* Numbers of the output in a local box. */
int64_t topt_output_numbers(const struct topt_op *op, const int64_t *len);

#endif
