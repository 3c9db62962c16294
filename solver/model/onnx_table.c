/* onnx_table.c - the table of ONNX's operator types: a row says how the shape of the output
 * follows from the inputs', how numbers are folded where all inputs are constants, and what
 * operators a node on samples becomes.  Types without the last are done on constants alone. */
#include "onnx_table.h"

#include <stdlib.h>
#include <string.h>

#define I(f) .infer = topt_onnx_infer_##f
#define F(f) .fold = topt_onnx_fold_##f
#define M(f) .map = topt_onnx_map_##f
#define W(i) 1u << (i)

/* In the order of their names. */
/* clang-format off */
static const struct onnx_kind kinds[] = {
    {"Abs", I(same), F(unary)},
    {"Add", I(broadcast), F(binary), M(add)},
    {"And", I(broadcast), F(binary)},
    {"AveragePool", I(pool), M(pool), .image = 1},
    {"BatchNormalization", I(same), M(batch_norm), .weights = W(1) | W(2) | W(3) | W(4), .image = 1},
    {"Cast", I(cast), F(cast), M(same)},
    {"Ceil", I(same), F(unary)},
    {"Concat", I(concat), F(concat), M(concat)},
    {"Constant", I(constant)},
    {"ConstantOfShape", I(constant_of_shape)},
    {"Conv", I(conv), M(conv), .weights = W(1) | W(2), .image = 1},
    {"Div", I(broadcast), F(binary), M(mul)},
    {"Dropout", I(same), M(dropout)},
    {"Elu", I(same), M(activation)},
    {"Equal", I(broadcast), F(binary)},
    {"Erf", I(same)},
    {"Exp", I(same), F(unary)},
    {"Expand", I(expand), F(expand)},
    {"Flatten", I(flatten), F(same), M(reshape)},
    {"Floor", I(same), F(unary)},
    {"GRU", I(recurrent), M(recurrent), .weights = W(1) | W(2) | W(3) | W(4) | W(5), .steps = 1},
    {"Gather", I(gather), F(gather), M(gather), .weights = W(0)},
    {"Gemm", I(gemm), M(gemm), .weights = W(1) | W(2)},
    {"GlobalAveragePool", I(global_pool), M(global_pool), .image = 1},
    {"Greater", I(broadcast), F(binary)},
    {"Identity", I(same), F(same), M(same)},
    {"LRN", I(same), M(lrn)},
    {"LSTM", I(recurrent), M(recurrent), .weights = W(1) | W(2) | W(3) | W(4) | W(5) | W(6) | W(7), .steps = 1},
    {"LayerNormalization", I(same), M(layer_norm), .weights = W(1) | W(2)},
    {"LeakyRelu", I(same), M(activation)},
    {"Less", I(broadcast), F(binary)},
    {"LogSoftmax", I(same)},
    {"MatMul", I(matmul), M(matmul)},
    {"Max", I(broadcast), F(binary)},
    {"MaxPool", I(pool), M(pool), .image = 1},
    {"Min", I(broadcast), F(binary)},
    {"Mod", I(broadcast), F(binary)},
    {"Mul", I(broadcast), F(binary), M(mul)},
    {"Neg", I(same), F(unary), M(neg)},
    {"Not", I(same), F(unary)},
    {"Pow", I(broadcast), F(binary), M(pow)},
    {"Range", I(range), F(range)},
    {"Reciprocal", I(same), F(unary)},
    {"ReduceMean", I(reduce), M(reduce)},
    {"ReduceSum", I(reduce), M(reduce)},
    {"Relu", I(same), M(activation)},
    {"Reshape", I(reshape), F(same), M(reshape)},
    {"Shape", I(shape), F(shape)},
    {"Sigmoid", I(same), M(activation)},
    {"Slice", I(slice), F(slice), M(slice)},
    {"Softmax", I(same), M(softmax)},
    {"Softplus", I(same), M(activation)},
    {"Split", I(split), M(split)},
    {"Sqrt", I(same), F(unary)},
    {"Squeeze", I(squeeze), F(same), M(reshape)},
    {"Sub", I(broadcast), F(binary), M(add)},
    {"Sum", I(broadcast), M(sum)},
    {"Tanh", I(same), M(activation)},
    {"Transpose", I(transpose), F(transpose), M(transpose)},
    {"Unsqueeze", I(unsqueeze), F(same), M(reshape)},
    {"Where", I(broadcast), F(where)},
};
/* clang-format on */

static int by_name(const void *name, const void *row)
{
    return strcmp(name, ((const struct onnx_kind *)row)->name);
}

const struct onnx_kind *topt_onnx_kind(const char *name)
{
    return bsearch(name, kinds, sizeof kinds / sizeof *kinds, sizeof *kinds, by_name);
}
