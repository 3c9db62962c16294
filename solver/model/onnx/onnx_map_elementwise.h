/* onnx_map_elementwise.h - operators of nodes on two or more tensors, number by number.
 * Private to model/. */
#ifndef TOPT_ONNX_MAP_ELEMENTWISE_H
#define TOPT_ONNX_MAP_ELEMENTWISE_H

#include "onnx_graph.h"

/* Operators of a node on samples. */
topt_onnx_step topt_onnx_map_add, topt_onnx_map_extreme, topt_onnx_map_mul,
    topt_onnx_map_prelu, topt_onnx_map_sum;

#endif
