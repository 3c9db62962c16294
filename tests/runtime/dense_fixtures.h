/* dense_fixtures.h - dense models' operators and attention, as every backend's kernels are
 * tested on them. */
#ifndef TOPT_TEST_DENSE_FIXTURES_H
#define TOPT_TEST_DENSE_FIXTURES_H

#include "kernel_checks.h"

static const struct fixture dense_fixtures[] = {
    {"embedding", "embedding", 0, 0, 0, {.vocab = 7, .features = 4}},
    {"linear", "linear", 1, 5, 1, {.features = 6}},
    {"linear with units", "linear", 1, 3, 2, {.features = 2, .features_unit = 3}},
    {"bias", "bias", 1, 3, 2, {0}},
    {"position", "position", 1, 5, 1, {0}},
    {"position of a longer table", "position", 1, 3, 2, {.positions = 9}},
    {"relu", "unary", 1, 5, 1, {.activation = TOPT_ACT_RELU}},
    {"gelu", "unary", 1, 5, 1, {.activation = TOPT_ACT_GELU}},
    {"gelu by erf", "unary", 1, 5, 1, {.activation = TOPT_ACT_GELU_ERF}},
    {"silu", "unary", 1, 5, 1, {.activation = TOPT_ACT_SILU}},
    {"tanh", "unary", 1, 5, 1, {.activation = TOPT_ACT_TANH}},
    {"sigmoid", "unary", 1, 5, 1, {.activation = TOPT_ACT_SIGMOID}},
    {"leaky relu", "unary", 1, 5, 1, {.activation = TOPT_ACT_LEAKY_RELU, .alpha = 0.1}},
    {"elu", "unary", 1, 5, 1, {.activation = TOPT_ACT_ELU, .alpha = 0.7}},
    {"softplus", "unary", 1, 5, 1, {.activation = TOPT_ACT_SOFTPLUS}},
    {"swiglu", "glu", 1, 5, 2, {.activation = TOPT_ACT_SILU}},
    {"geglu", "glu", 1, 5, 2, {.activation = TOPT_ACT_GELU}},
    {"geglu by erf", "glu", 1, 5, 2, {.activation = TOPT_ACT_GELU_ERF}},
    {"glu", "glu", 1, 5, 2, {.activation = TOPT_ACT_SIGMOID}},
    {"scale", "scale", 1, 5, 2, {.factor = -0.75, .shift = 2}},
    {"add", "add", 2, 5, 1, {0}},
    {"mul", "mul", 2, 5, 1, {0}},
    {"layer norm", "norm", 1, 5, 1, {0}},
    {"rms norm", "norm", 1, 3, 2, {.rms = 1, .eps = 1e-6}},
    {"norm of heads", "head_norm", 1, 3, 6, {.head_dim = 3}},
    {"rms norm of heads", "head_norm", 1, 2, 4, {.head_dim = 4, .rms = 1}},
    {"attention", "attention", 1, 2, 12, {.heads = 2, .kv_heads = 2, .head_dim = 4}},
    {"causal attention",
     "attention",
     1,
     3,
     12,
     {.heads = 3, .kv_heads = 3, .head_dim = 4, .causal = 1}},
    {"grouped rotary attention",
     "attention",
     1,
     2,
     16,
     {.heads = 4, .kv_heads = 2, .head_dim = 4, .causal = 1, .rope_theta = 100}},
    {"cross entropy", "cross_entropy", 1, 7, 1, {0}},
    {"variable", "variable", 0, 0, 0, {.vocab = 5, .features = 3}},
};

#endif
