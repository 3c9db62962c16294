/* onnx_fuse.h - groups of nodes that exporters write for what is one operator here.
 * Private to model/. */
#ifndef TOPT_ONNX_FUSE_H
#define TOPT_ONNX_FUSE_H

#include "onnx_graph.h"

/* Give groups of nodes that are one operator here a map of their own. */
void topt_onnx_fuse(struct onnx *x);

#endif
