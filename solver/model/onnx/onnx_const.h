/* onnx_const.h - constants of an ONNX graph.  Private to model/. */
#ifndef TOPT_ONNX_CONST_H
#define TOPT_ONNX_CONST_H

#include "onnx_graph.h"

/* Compute the output of a node whose inputs are held; nothing where they are not. */
int topt_onnx_fold(struct onnx *x, const struct onnx_node *n);

/* Numbers of a constant output from inputs that are held; NULL where memory is short. */
topt_onnx_folder topt_onnx_fold_binary, topt_onnx_fold_cast, topt_onnx_fold_concat,
    topt_onnx_fold_expand, topt_onnx_fold_gather, topt_onnx_fold_range,
    topt_onnx_fold_same, topt_onnx_fold_shape, topt_onnx_fold_size, topt_onnx_fold_slice,
    topt_onnx_fold_transpose, topt_onnx_fold_gather_elements, topt_onnx_fold_cumsum,
    topt_onnx_fold_trilu, topt_onnx_fold_unary, topt_onnx_fold_where;

#endif
