/* seq_fixtures.h - operators of sequences, as every backend's kernels are tested on them:
 * recurrences, attention over two sequences, and what cuts, joins and reduces features. */
#ifndef TOPT_TEST_SEQ_FIXTURES_H
#define TOPT_TEST_SEQ_FIXTURES_H

#include "kernel_checks.h"

/* clang-format off */
#define FEATURES(count, unit) {3, {{BATCH, 1}, {SEQ, 1}, {(count), (unit)}}}
#define IMAGE(count, unit)    {4, {{BATCH, 1}, {(count), (unit)}, {5, 1}, {4, 1}}}
#define PAIR(t, count, unit)  {3, {{BATCH, 1}, {(t), 1}, {(count), (unit)}}}
#define LONG(t, unit)         {3, {{1, 1}, {(t), 1}, {1, (unit)}}}
/* Queries of SEQ positions, keys and values of t. */
#define ON_PAIR(title, t, q, q_unit, kv, kv_unit, ...) \
    {title, "attention", 2, 1, 1, {__VA_ARGS__}, \
     .shape = {PAIR(SEQ, q, q_unit), PAIR(t, kv, kv_unit)}}
/* The same of three heads of two numbers, with a table of so many rows. */
#define ON_RELATIVE(title, t, rows, ...) \
    {title, "attention", 3, 1, 1, {__VA_ARGS__}, \
     .shape = {PAIR(SEQ, 3, 2), PAIR(t, 3, 4), {2, {{(rows), 1}, {3, 1}}}}}
/* clang-format on */

static const struct fixture seq_fixtures[] = {
    {"lstm", "lstm", 1, 3, 4, {0}},
    {"plain recurrence", "rnn", 1, 5, 1, {.activation = TOPT_ACT_TANH}},
    {"recurrence of relus", "rnn", 1, 3, 1, {.activation = TOPT_ACT_RELU}},
    {"logarithm of softmax", "softmax", 1, 4, 2, {.log = 1}},
    {"gain of features", "gain", 1, 4, 2, {0}},
    {"slopes of features", "prelu", 1, 4, 2, {0}},
    {"one slope for features", "prelu_shared", 1, 4, 2, {0}},
    {"batch norm of features", "batch_norm", 1, 4, 2, {0}},
    {"lstm of 5 cells", "lstm", 1, 5, 4, {0}},
    {"gru", "gru", 1, 4, 3, {0}},
    ON_PAIR("attend", 5, 2, 8, 2, 8, .heads = 4, .kv_heads = 2, .head_dim = 4),
    ON_PAIR("attend to another sequence", 7, 3, 4, 3, 7, .heads = 3, .head_dim = 4,
            .v_head_dim = 3, .scale = 0.8),
    ON_PAIR("causal attend", 5, 2, 4, 2, 8, .heads = 2, .head_dim = 4, .causal = 1),
    ON_PAIR("causal attend behind other keys", 7, 1, 6, 1, 5, .heads = 2, .kv_heads = 1,
            .head_dim = 3, .v_head_dim = 2, .causal = 1),
    ON_PAIR("attend to a window", 7, 2, 4, 2, 8, .heads = 2, .head_dim = 4, .causal = 1,
            .window = 3),
    ON_PAIR("attend within chunks", 7, 2, 4, 2, 8, .heads = 2, .head_dim = 4, .causal = 1,
            .chunk = 3),
    ON_PAIR("attend by distance", 5, 3, 2, 3, 5, .heads = 3, .head_dim = 2,
            .v_head_dim = 3, .causal = 1, .factor = 0.7),
    ON_PAIR("attend to a window on both sides", 7, 2, 4, 2, 8, .heads = 2, .head_dim = 4,
            .window = 3),
    ON_PAIR("attend with capped scores", 7, 2, 4, 2, 8, .heads = 2, .head_dim = 4,
            .causal = 1, .window = 4, .cap = 0.7),
    ON_RELATIVE("attend by relative positions", 5, 6, .heads = 3, .head_dim = 2,
                .distance = 4, .scale = 1),
    ON_RELATIVE("causal attend by relative positions", 7, 4, .heads = 3, .head_dim = 2,
                .distance = 5, .causal = 1),
    {"attend in blocks of queries",
     "attention",
     2,
     1,
     1,
     {.heads = 1, .head_dim = 2, .causal = 1},
     .shape = {LONG(70, 2), LONG(80, 4)}},
    {"packed and rotated in blocks of queries", "attention", 1, 1, 1,
     .attrs = {.heads = 2, .kv_heads = 1, .head_dim = 2, .causal = 1, .rope_theta = 100},
     .shape = {LONG(70, 8)}},
    {"packed, to a window with capped scores", "attention", 1, 2, 12,
     .attrs = {.heads = 2, .head_dim = 4, .causal = 1, .window = 3, .cap = 0.7}},
    {"packed, by distance, with narrow values", "attention", 1, 3, 11,
     .attrs = {.heads = 3, .head_dim = 4, .v_head_dim = 3, .causal = 1, .factor = 0.7}},
    {"window of keys in blocks",
     "attention",
     2,
     1,
     1,
     {.heads = 1, .head_dim = 2, .causal = 1, .window = 9},
     .shape = {LONG(70, 2), LONG(70, 4)}},
    {"latent attend", "attention", 3, 1, 1,
     .attrs = {.heads = 3, .head_dim = 5, .v_head_dim = 4, .causal = 1},
     .shape = {PAIR(5, 3, 5), PAIR(5, 3, 7), PAIR(5, 1, 2)}},
    {"rotary", "rotary", 1, 3, 4, {.rope_theta = 100}},
    {"rotary of parts of heads",
     "rotary",
     1,
     2,
     12,
     {.rope_theta = 50, .head_dim = 6, .rope_dim = 4}},
    {"rotary with slow angles scaled", "rotary", 1, 2, 8,
     .attrs = {.rope_theta = 50,
               .rope_factor = 4,
               .rope_context = 64,
               .rope_slow = 1,
               .rope_fast = 6,
               .scale = 1.2}},
    {"slice", "slice", 1, 3, 7, {.offset = 2, .features_unit = 4}},
    {"concat", "concat", 2, 1, 1, .shape = {FEATURES(3, 2), FEATURES(3, 1)}},
    {"concat of 4", "concat", 4, 1, 1,
     .shape = {FEATURES(5, 1), FEATURES(5, 2), FEATURES(5, 1), FEATURES(5, 3)}},
    {"concat of counts", "concat_counts", 3, 1, 1,
     .shape = {FEATURES(2, 2), FEATURES(5, 2), FEATURES(1, 2)}},
    {"concat of channels", "concat_counts", 2, 1, 1, .shape = {IMAGE(3, 2), IMAGE(2, 2)}},
    {"regroup", "regroup", 1, 6, 2, {.features = 4, .features_unit = 3}},
    {"regroup into one", "regroup", 1, 5, 2, {.features = 10}},
    {"regroup of channels",
     "regroup",
     1,
     1,
     1,
     {.features = 2, .features_unit = 3},
     .shape = {IMAGE(6, 1)}},
    {"weigh positions", "weigh", 2, 1, 1, .shape = {FEATURES(3, 2), FEATURES(1, 1)}},
    {"weigh channels", "weigh", 2, 1, 1, .shape = {IMAGE(3, 2), PAIR(1, 3, 2)}},
    {"transpose", "transpose", 1, 7, 1, {0}},
    {"sum over positions", "reduce_sequence", 1, 3, 2, {0}},
    {"mean over positions", "reduce_sequence", 1, 5, 1, {.mean = 1}},
    {"sum over features", "reduce_features", 1, 3, 2, {0}},
    {"mean over features", "reduce_features", 1, 5, 1, {.mean = 1}},
    {"select", "select", 1, 3, 2, {.offset = 3}},
    {"prepend", "prepend", 1, 3, 2, {0}},
    {"reverse", "reverse", 1, 3, 2, {0}},
    {"dropout", "dropout", 1, 3, 4, {.rate = 0.4}},
    {"dropout of images", "dropout", 1, 1, 1, .attrs = {.rate = 0.25},
     .shape = {IMAGE(3, 2)}},
    {"softmax", "softmax", 1, 3, 2, {0}},
    {"mean of squares", "mse", 1, 3, 2, {0}},
};

#endif
