/* onnx_table.h - the table of ONNX's operator types.  Private to model/. */
#ifndef TOPT_ONNX_TABLE_H
#define TOPT_ONNX_TABLE_H

#include "onnx_graph.h"

const struct onnx_kind *topt_onnx_kind(const char *name);

#endif
