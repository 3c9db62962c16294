/* onnx_numbers.h - the numbers of an initializer or attribute, as doubles.  Private to
 * model/. */
#ifndef TOPT_ONNX_NUMBERS_H
#define TOPT_ONNX_NUMBERS_H

#include "onnx_graph.h"

/* The numbers of an initializer or attribute as doubles; NULL where they are not in
 * the file or too many. */
double *topt_onnx_numbers(struct onnx *x, const Onnx__TensorProto *t);

#endif
