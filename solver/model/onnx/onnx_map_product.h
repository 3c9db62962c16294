/* onnx_map_product.h - operators of nodes with matrix products.  Private to model/. */
#ifndef TOPT_ONNX_MAP_PRODUCT_H
#define TOPT_ONNX_MAP_PRODUCT_H

#include "onnx_graph.h"

/* x W^T (+ bias) over the dimensions from 'first' on; the features are of dimension
 * 'first'. */
int topt_onnx_product(struct onnx *x, const struct onnx_node *n,
                      const struct onnx_value *a, int first, int64_t features, int bias,
                      double factor);

/* Attention of queries base[0], keys (transposed) base[1] and values base[2]. */
topt_onnx_step topt_onnx_map_attention;
/* A group of nodes that turns heads by position, fused: base[0] is what is turned. */
topt_onnx_step topt_onnx_map_turned;

/* Operators of a node on samples. */
topt_onnx_step topt_onnx_map_attention_node, topt_onnx_map_rotary_node,
    topt_onnx_map_gemm, topt_onnx_map_matmul, topt_onnx_map_recurrent,
    topt_onnx_map_whole_attention;

#endif
