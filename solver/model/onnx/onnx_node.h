/* onnx_node.h - attributes and inputs of a node, and how an error names it.  Private to
 * model/. */
#ifndef TOPT_ONNX_NODE_H
#define TOPT_ONNX_NODE_H

#include "onnx_graph.h"

/* Attributes, or what stands for them. */
const Onnx__AttributeProto *topt_onnx_attr(const struct onnx_node *n, const char *name);
int64_t topt_onnx_int(const struct onnx_node *n, const char *name, int64_t otherwise);
double topt_onnx_real(const struct onnx_node *n, const char *name, double otherwise);

/* Up to 'max' whole numbers; how many there are, -1 where the attribute is missing. */
int topt_onnx_ints(const struct onnx_node *n, const char *name, int64_t *ret, int max);

/* Values.  'in' gives NULL for an input that is left out. */
struct onnx_value *topt_onnx_in(const struct onnx *x, const struct onnx_node *n, int i);
int64_t topt_onnx_elements(const struct onnx_shape *s);
int topt_onnx_fail(const struct onnx *x, const struct onnx_node *n, const char *fmt, ...)
    TOPT_PRINTF(3, 4);

/* Say of the model what is not as in the file; once. */
__attribute__((format(printf, 2, 3))) void topt_onnx_note(struct onnx *x, const char *fmt,
                                                          ...);

#endif
