/* onnx_shape_image.h - shapes of what slides a window over images.  Private to model/. */
#ifndef TOPT_ONNX_SHAPE_IMAGE_H
#define TOPT_ONNX_SHAPE_IMAGE_H

#include "onnx_graph.h"

/* The window of a convolution or pool; -1 with an error. */
int topt_onnx_window(const struct onnx *x, const struct onnx_node *n,
                     struct onnx_window *ret);

/* The same of a transposed convolution, whose output's shape is inferred. */
int topt_onnx_spread(const struct onnx *x, const struct onnx_node *n,
                     struct onnx_window *ret);

/* Padding before and then after each dimension of the input; -1 with an error. */
int topt_onnx_pads(const struct onnx *x, const struct onnx_node *n, int64_t *ret);

/* By how much each dimension of the input is made larger; -1 with an error. */
int topt_onnx_scales(const struct onnx *x, const struct onnx_node *n, double *ret);

/* Shapes: fill those of a node's outputs. */
topt_onnx_step topt_onnx_infer_conv, topt_onnx_infer_depth_to_space,
    topt_onnx_infer_space_to_depth, topt_onnx_infer_conv_transpose,
    topt_onnx_infer_global_pool, topt_onnx_infer_pad, topt_onnx_infer_pool,
    topt_onnx_infer_resize;

#endif
