/* onnx_map_image.h - operators of nodes on images.  Private to model/. */
#ifndef TOPT_ONNX_MAP_IMAGE_H
#define TOPT_ONNX_MAP_IMAGE_H

#include "onnx_graph.h"

/* Operators of a node on samples. */
topt_onnx_step topt_onnx_map_batch_norm, topt_onnx_map_conv, topt_onnx_map_conv_transpose,
    topt_onnx_map_global_pool, topt_onnx_map_depth_to_space, topt_onnx_map_group_norm,
    topt_onnx_map_instance_norm, topt_onnx_map_lrn, topt_onnx_map_pad, topt_onnx_map_pool,
    topt_onnx_map_resize;

#endif
