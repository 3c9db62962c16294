/* onnx_map.h - what the makers of operators share.  Private to model/. */
#ifndef TOPT_ONNX_MAP_H
#define TOPT_ONNX_MAP_H

#include "onnx_graph.h"

/* A name for an operator from a value's: printable ASCII, at most 180 bytes, not
 * taken. */
void topt_onnx_name(struct onnx *x, const char *value, const char *suffix, char *ret,
                    size_t size);

/* The first output lies as 'like' does, in another tensor; -1 where 'tensor' is none. */
int topt_onnx_put(struct onnx *x, const struct onnx_node *n, const struct onnx_view *like,
                  int tensor);

/* ... is an image of its own. */
int topt_onnx_put_image(struct onnx *x, const struct onnx_node *n, int tensor);

/* A value of 3 or 4 dimensions is the image in a tensor. */
void topt_onnx_image_view(struct onnx_value *v, int tensor);

/* Move atoms to other axes: to[axis], those of several old axes in their order. */
void topt_onnx_move_axes(struct onnx_view *v, const int8_t *to);

/* Numbers on an axis of a tensor; those of them within dimensions [from, to) of a
 * value. */
int64_t topt_onnx_extent_of(const struct topt_tensor *t, int axis);
int64_t topt_onnx_extent_on(const struct onnx_view *v, int axis, int from, int to);

/* The axis of the tensor that dimension 'd' is all of; -1 where it is none. */
int topt_onnx_axis_of_dim(const struct onnx *x, const struct onnx_value *a, int d);

/* Is the value an image as it is: samples, channels, rows, columns? */
int topt_onnx_is_image(const struct onnx *x, const struct onnx_value *a);

/* The tensor that holds the value as an image (a signal is one row); made of features or
 * positions, or with channels brought in order, where it lies so; -1 with an error. */
int topt_onnx_image(struct onnx *x, const struct onnx_node *n,
                    const struct onnx_value *a);

/* A view of 'a' in a tensor [batch, positions, features] with dimension 'd' as its
 * features. */
int topt_onnx_features(struct onnx *x, const struct onnx_node *n,
                       const struct onnx_value *a, int d, struct onnx_view *ret);

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

#endif
