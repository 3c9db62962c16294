/* onnx_map_unary.h - operators of nodes on one tensor, number by number.  Private to
 * model/. */
#ifndef TOPT_ONNX_MAP_UNARY_H
#define TOPT_ONNX_MAP_UNARY_H

#include "onnx_graph.h"

/* The node's output is the norm of 'a' over its dimensions from 'first' on. */
int topt_onnx_put_norm(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, int first, int rms, double eps);

/* ... is factor 'a' + shift. */
int topt_onnx_put_scaled(struct onnx *x, const struct onnx_node *n,
                         const struct onnx_value *a, double factor, double shift);

/* ... is 'a', not below 'low' nor above 'high'. */
int topt_onnx_put_clipped(struct onnx *x, const struct onnx_node *n,
                          const struct onnx_value *a, double low, double high);

/* ... is an activation of 'a'. */
int topt_onnx_put_activation(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *a, enum topt_activation activation);

/* Operators of a node on samples. */
topt_onnx_step topt_onnx_map_activation, topt_onnx_map_biased, topt_onnx_map_clip,
    topt_onnx_map_dropout, topt_onnx_map_layer_norm, topt_onnx_map_gelu,
    topt_onnx_map_mish, topt_onnx_map_neg, topt_onnx_map_pow, topt_onnx_map_rms_norm,
    topt_onnx_map_same, topt_onnx_map_skip_norm;

#endif
