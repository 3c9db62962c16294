/* ops_extents.h - helpers of the rows' functions.  Private to model/. */
#ifndef TOPT_OPS_EXTENTS_H
#define TOPT_OPS_EXTENTS_H

#include "topt_model.h"

static inline int64_t topt_unit_of(int64_t unit)
{
    return unit > 0 ? unit : 1;
}

/* Set the extent of tensor dimension 'i' of an operand: the operator's count, and
 * 'unit'. */
void topt_set_dim(struct topt_op *op, int operand, int i, int64_t unit);
/* Extents of an input become those of the operator's dimensions. */
void topt_counts_from_input(struct topt_op *op, int operand);
/* -1 unless the last dimension of an input has units of 'want'. */
int topt_refuse_units(const struct topt_op *op, int operand, int64_t want,
                      struct topt_error *err);
/* All operands have the first input's extents, in the dimensions they share with it. */
int topt_shape_same(struct topt_op *op, struct topt_error *err);
int topt_shape_normed(struct topt_op *op, struct topt_error *err); /* and an eps */
/* -1 unless the operator's activation is one. */
int topt_refuse_activation(const struct topt_op *op, struct topt_error *err);
int topt_shape_unary(struct topt_op *op, struct topt_error *err); /* and an activation */

/* The last dimension of the operator is the one that the weights have in place of
 * others. */
int topt_shape_weigh(struct topt_op *op, struct topt_error *err);

int64_t topt_flops_none(const struct topt_op *op, enum topt_kernel k, const int64_t *len);
/* Operations an element of the output; small beside what memory costs. */
int64_t topt_flops_elementwise(const struct topt_op *op, enum topt_kernel k,
                               const int64_t *len);

/* Numbers of the output in a local box. */
int64_t topt_output_numbers(const struct topt_op *op, const int64_t *len);

#endif
