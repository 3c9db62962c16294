/* onnx_map_order.h - operators of nodes that rearrange, cut, join and reduce.  Private to
 * model/. */
#ifndef TOPT_ONNX_MAP_ORDER_H
#define TOPT_ONNX_MAP_ORDER_H

#include "onnx_graph.h"

/* Operators of a node on samples. */
topt_onnx_step topt_onnx_map_concat, topt_onnx_map_embed_norm, topt_onnx_map_gather,
    topt_onnx_map_reduce, topt_onnx_map_repeat, topt_onnx_map_reshape,
    topt_onnx_map_slice, topt_onnx_map_softmax, topt_onnx_map_split,
    topt_onnx_map_transpose;

#endif
