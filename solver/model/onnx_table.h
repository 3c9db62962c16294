/* onnx_table.h - the functions that rows of the table of ONNX's types are made of, by what they
 * do; private to model/. */
#ifndef TOPT_ONNX_TABLE_H
#define TOPT_ONNX_TABLE_H

#include "onnx_map.h"

/* Shapes: fill those of a node's outputs. */
topt_onnx_step topt_onnx_infer_broadcast, topt_onnx_infer_cast, topt_onnx_infer_cast_like,
    topt_onnx_infer_concat, topt_onnx_infer_constant, topt_onnx_infer_constant_of_shape,
    topt_onnx_infer_conv, topt_onnx_infer_conv_transpose, topt_onnx_infer_embed_norm,
    topt_onnx_infer_expand, topt_onnx_infer_flatten, topt_onnx_infer_gather,
    topt_onnx_infer_gemm, topt_onnx_infer_global_pool, topt_onnx_infer_if,
    topt_onnx_infer_matmul, topt_onnx_infer_pad, topt_onnx_infer_pool,
    topt_onnx_infer_range, topt_onnx_infer_recurrent, topt_onnx_infer_reduce,
    topt_onnx_infer_reshape, topt_onnx_infer_resize, topt_onnx_infer_same,
    topt_onnx_infer_shape, topt_onnx_infer_size, topt_onnx_infer_skip_norm,
    topt_onnx_infer_slice, topt_onnx_infer_split, topt_onnx_infer_squeeze,
    topt_onnx_infer_tile, topt_onnx_infer_transpose, topt_onnx_infer_unsqueeze,
    topt_onnx_infer_whole_attention;

/* Numbers of a constant output from inputs that are held; NULL where memory is short. */
topt_onnx_folder topt_onnx_fold_binary, topt_onnx_fold_cast, topt_onnx_fold_concat,
    topt_onnx_fold_expand, topt_onnx_fold_gather, topt_onnx_fold_range,
    topt_onnx_fold_same, topt_onnx_fold_shape, topt_onnx_fold_size, topt_onnx_fold_slice,
    topt_onnx_fold_transpose, topt_onnx_fold_trilu, topt_onnx_fold_unary,
    topt_onnx_fold_where;

/* Operators of a node on samples. */
topt_onnx_step topt_onnx_map_activation, topt_onnx_map_add, topt_onnx_map_batch_norm,
    topt_onnx_map_biased, topt_onnx_map_clip, topt_onnx_map_concat, topt_onnx_map_conv,
    topt_onnx_map_conv_transpose, topt_onnx_map_dropout, topt_onnx_map_embed_norm,
    topt_onnx_map_extreme, topt_onnx_map_gather, topt_onnx_map_gemm,
    topt_onnx_map_global_pool, topt_onnx_map_instance_norm, topt_onnx_map_layer_norm,
    topt_onnx_map_lrn, topt_onnx_map_matmul, topt_onnx_map_mish, topt_onnx_map_mul,
    topt_onnx_map_neg, topt_onnx_map_pad, topt_onnx_map_pool, topt_onnx_map_pow,
    topt_onnx_map_prelu, topt_onnx_map_recurrent, topt_onnx_map_reduce,
    topt_onnx_map_repeat, topt_onnx_map_reshape, topt_onnx_map_resize,
    topt_onnx_map_rms_norm, topt_onnx_map_same, topt_onnx_map_skip_norm,
    topt_onnx_map_slice, topt_onnx_map_softmax, topt_onnx_map_split, topt_onnx_map_sum,
    topt_onnx_map_transpose, topt_onnx_map_whole_attention;

/* What rules of shapes share. */

/* The shape of the first output. */
int topt_onnx_set(struct onnx *x, const struct onnx_node *n, const struct onnx_shape *s,
                  int integer);
/* The first 'count' inputs must be there. */
int topt_onnx_need(const struct onnx *x, const struct onnx_node *n, int count);
/* 'ret' becomes what both are broadcast to; -1 where they do not fit. */
int topt_onnx_broadcast(const struct onnx_shape *a, struct onnx_shape *ret);

#endif
