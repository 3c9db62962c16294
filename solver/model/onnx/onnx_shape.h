/* onnx_shape.h - the shape of every value that the output needs.  Private to model/. */
#ifndef TOPT_ONNX_SHAPE_H
#define TOPT_ONNX_SHAPE_H

#include "onnx_graph.h"

/* "axis" of a node on a value of so many dimensions, counted from 0. */
int topt_onnx_axis(const struct onnx_node *n, int ndim, int64_t otherwise);

/* Whole numbers given as an attribute, or as input 'i' since some operator set; how
 * many, -1 where there are none, -2 where they are not constant. */
int topt_onnx_list(const struct onnx *x, const struct onnx_node *n, const char *name,
                   int i, int64_t *ret);

/* Shapes: fill those of a node's outputs. */
topt_onnx_step topt_onnx_infer_attention_node, topt_onnx_infer_broadcast,
    topt_onnx_infer_gather_elements, topt_onnx_infer_truth, topt_onnx_infer_cast,
    topt_onnx_infer_cast_like, topt_onnx_infer_constant,
    topt_onnx_infer_constant_of_shape, topt_onnx_infer_embed_norm, topt_onnx_infer_expand,
    topt_onnx_infer_gemm, topt_onnx_infer_if, topt_onnx_infer_matmul,
    topt_onnx_infer_range, topt_onnx_infer_recurrent, topt_onnx_infer_same,
    topt_onnx_infer_shape, topt_onnx_infer_size, topt_onnx_infer_skip_norm,
    topt_onnx_infer_tile, topt_onnx_infer_whole_attention;

/* What rules of shapes share: */
/* The shape of the first output. */
int topt_onnx_set(struct onnx *x, const struct onnx_node *n, const struct onnx_shape *s,
                  int integer);

/* The first 'count' inputs must be there. */
int topt_onnx_need(const struct onnx *x, const struct onnx_node *n, int count);

#endif
