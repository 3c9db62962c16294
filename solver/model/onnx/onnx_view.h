/* onnx_view.h - how the numbers of an ONNX value lie in a tensor.  Private to model/. */
#ifndef TOPT_ONNX_VIEW_H
#define TOPT_ONNX_VIEW_H

#include "onnx_graph.h"

/* Views. */
void topt_onnx_view_fresh(struct onnx_value *v, int tensor, const int8_t *axis_of_dim);
int topt_onnx_view_reshape(const struct onnx_view *from, const struct onnx_shape *to,
                           struct onnx_view *ret);
void topt_onnx_view_transpose(const struct onnx_view *from, const int64_t *perm, int ndim,
                              struct onnx_view *ret);

/* Do two values lie the same in tensors of the same axes? */
int topt_onnx_view_same(const struct onnx_view *a, const struct onnx_view *b);

#endif
