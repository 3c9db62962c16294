/* onnx_map.h - making operators of nodes: what mapping and fusing share. */
#ifndef TOPT_ONNX_MAP_H
#define TOPT_ONNX_MAP_H

#include "onnx.h"

/* Append an operator named after the node's output; its tensor, or -1. */
int topt_onnx_emit(struct onnx *x, const struct onnx_node *n, const char *kind,
                   const char *suffix, int a, int b, const struct topt_attrs *attrs);

/* Input 'i' as a tensor that depends on samples; NULL with an error where it is none. */
struct onnx_value *topt_onnx_sample(struct onnx *x, const struct onnx_node *n, int i);

/* A view of 'a' in a tensor [batch, positions, features] whose features are exactly the
 * dimensions from 'first' on; operators that rearrange are added where it takes them. */
int topt_onnx_rows(struct onnx *x, const struct onnx_node *n, const struct onnx_value *a,
                   int first, struct onnx_view *ret);

/* The tensor with its features in other counts and units. */
int topt_onnx_regroup(struct onnx *x, const struct onnx_node *n, int tensor,
                      int64_t count, int64_t unit);

/* The node's output is the norm of 'a' over its last dimension. */
int topt_onnx_put_norm(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, int rms, double eps);
/* ... is an activation of 'a'. */
int topt_onnx_put_activation(struct onnx *x, const struct onnx_node *n,
                             const struct onnx_value *a, enum topt_activation activation);

/* Attention of queries base[0], keys (transposed) base[1] and values base[2]. */
topt_onnx_map topt_onnx_map_attention;

topt_onnx_map *topt_onnx_find_map(const char *name);

/* Give groups of nodes that are one operator here a map of their own. */
void topt_onnx_fuse(struct onnx *x);

#endif
