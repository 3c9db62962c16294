/* scan_fixtures.h - recurrences that are computed by chunks, and the convolution before them,
 * as every backend's kernels are tested on them. */
#ifndef TOPT_TEST_SCAN_FIXTURES_H
#define TOPT_TEST_SCAN_FIXTURES_H

#include "kernel_checks.h"

/* clang-format off */
#define ROWS(count, unit) {3, {{BATCH, 1}, {SEQ, 1}, {(count), (unit)}}}
/* Four heads of 3 numbers, and keys and queries of 2 in so many groups. */
#define SSD(title, groups, ...) \
    {title, "ssd", 3, 1, 1, {__VA_ARGS__}, \
     .shape = {ROWS(4, 3), ROWS(4, 1), ROWS((groups), 4)}}
#define DELTA(title, groups, ...) \
    {title, "delta_rule", 4, 1, 1, {__VA_ARGS__}, \
     .shape = {ROWS(4, 3), ROWS((groups), 4), ROWS(4, 1), ROWS(4, 1)}}
#define SELECTIVE(title, ...) \
    {title, "selective_scan", 4, 1, 1, {__VA_ARGS__}, \
     .shape = {ROWS(4, 1), ROWS(4, 1), ROWS(3, 1), ROWS(3, 1)}}
/* clang-format on */

static const struct fixture scan_fixtures[] = {
    {"causal convolution", "causal_conv", 1, 4, 2, {.kernel_w = 3}},
    {"causal convolution without biases", "causal_conv", 1, 5, 1,
     .attrs = {.kernel_w = 4, .plain = 1}},
    {"causal convolution longer than the text", "causal_conv", 1, 3, 1,
     .attrs = {.kernel_w = 7}},
    SSD("state space in chunks", 2, .chunk = 2),
    SSD("state space in one chunk", 1, .chunk = 64),
    SSD("state space of a group a head", 4, .chunk = 3),
    SSD("state space of bounded steps", 2, .chunk = 2, .alpha = 0.4, .beta = 1.1),
    DELTA("delta rule in chunks", 2, .chunk = 2),
    DELTA("delta rule in one chunk", 1, .chunk = 64),
    DELTA("delta rule of a key a head", 4, .chunk = 3),
    SELECTIVE("selective scan in chunks", .chunk = 2),
    SELECTIVE("selective scan in one chunk", .chunk = 64),
};

#endif
