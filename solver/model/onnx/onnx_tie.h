/* onnx_tie.h - a table of tokens that is also the last product's.  Private to model/. */
#ifndef TOPT_ONNX_TIE_H
#define TOPT_ONNX_TIE_H

#include "onnx_graph.h"

/* Find the table of tokens and the node of the product that has it too, if there are. */
void topt_onnx_find_tie(struct onnx *x);

#endif
