/* onnx_infer.h - shapes and constants of all nodes that the output needs, from the first
 * to the last.  Private to model/. */
#ifndef TOPT_ONNX_INFER_H
#define TOPT_ONNX_INFER_H

#include "onnx_graph.h"

/* Shapes and constants of all needed nodes. */
int topt_onnx_infer(struct onnx *x);

#endif
