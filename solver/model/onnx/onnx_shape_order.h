/* onnx_shape_order.h - shapes of what rearranges, cuts, joins and reduces.  Private to
 * model/. */
#ifndef TOPT_ONNX_SHAPE_ORDER_H
#define TOPT_ONNX_SHAPE_ORDER_H

#include "onnx_graph.h"

/* First places and steps of a Slice in every dimension of its input, the permutation of a
 * Transpose; of nodes whose shapes were inferred. */
void topt_onnx_slices(const struct onnx *x, const struct onnx_node *n, int64_t *start,
                      int64_t *step);
void topt_onnx_perm(const struct onnx *x, const struct onnx_node *n, int64_t *ret);

/* Dimensions that a reduction is over, as bits; -1 where they are not constant. */
int topt_onnx_reduced(const struct onnx *x, const struct onnx_node *n);

/* Shapes: fill those of a node's outputs. */
topt_onnx_step topt_onnx_infer_concat, topt_onnx_infer_flatten, topt_onnx_infer_gather,
    topt_onnx_infer_reduce, topt_onnx_infer_reshape, topt_onnx_infer_slice,
    topt_onnx_infer_split, topt_onnx_infer_squeeze, topt_onnx_infer_transpose,
    topt_onnx_infer_unsqueeze;

#endif
