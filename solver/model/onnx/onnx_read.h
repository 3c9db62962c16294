/* onnx_read.h - the bytes of an ONNX file.  Private to model/. */
#ifndef TOPT_ONNX_READ_H
#define TOPT_ONNX_READ_H

#include "onnx_graph.h"

/* Reading. */
int topt_onnx_read(struct onnx *x, const Onnx__ModelProto *proto,
                   const struct topt_import_options *o);
int topt_onnx_check_bytes(const uint8_t *bytes, size_t len, struct topt_error *err);

/* "Conv: 3 (why)" at the end of a list of types that has 'before' already. */
void topt_onnx_list_type(struct topt_text *list, int before, const struct onnx_kind *kind,
                         const char *type, int count);

/* Put the nodes of a branch of node 'i' behind it, in its place. */
int topt_onnx_take_branch(struct onnx *x, int i, int condition);

/* Inputs that are used as weights alone are weights. */
void topt_onnx_mark_weights(struct onnx *x);

/* Find anew which nodes are needed, and how often values are used. */
void topt_onnx_count_uses(struct onnx *x);

#endif
