/* moe_fixtures.h - mixtures of experts, as every backend's kernels are tested on them. */
#ifndef TOPT_TEST_MOE_FIXTURES_H
#define TOPT_TEST_MOE_FIXTURES_H

#include "kernel_checks.h"

#define TOKENS(d)                                                                        \
    {                                                                                    \
        3,                                                                               \
        {                                                                                \
            {3, 1}, {5, 1},                                                              \
            {                                                                            \
                d, 1                                                                     \
            }                                                                            \
        }                                                                                \
    }
#define SLOTS(c, d)                                                                      \
    {                                                                                    \
        3,                                                                               \
        {                                                                                \
            {3, 1}, {4, c},                                                              \
            {                                                                            \
                d, 1                                                                     \
            }                                                                            \
        }                                                                                \
    }

static const struct fixture moe_fixtures[] = {
    {"route to the best", "route", 1, 4, 1, .attrs = {.top_k = 1, .capacity = 4}},
    {"route to two of four", "route", 1, 4, 1, .attrs = {.top_k = 2, .capacity = 1}},
    {"route, not normalised", "route", 1, 4, 1,
     .attrs = {.top_k = 2, .capacity = 1, .unnormalized = 1}},
    {"route by sigmoids", "route", 1, 4, 1,
     .attrs = {.top_k = 2, .capacity = 1, .sigmoid = 1, .factor = 2.5}},
    {"route by sigmoids that stand alone", "route", 1, 4, 1,
     .attrs = {.top_k = 2, .capacity = 1, .sigmoid = 1, .unnormalized = 1}},
    {"route within groups, corrected", "route", 1, 6, 1,
     .attrs = {.top_k = 3,
               .capacity = 1,
               .sigmoid = 1,
               .corrected = 1,
               .groups = 3,
               .top_groups = 2,
               .factor = 0.5}},
    {"dispatch", "dispatch", 2, 4, 1, .attrs = {.top_k = 2, .capacity = 1}, .sparse = 2,
     .shape = {TOKENS(3), TOKENS(4)}},
    {"experts", "experts", 1, 5, 1, .attrs = {.features = 3, .activation = TOPT_ACT_GELU},
     .shape = {SLOTS(3, 5)}},
    {"gated experts", "experts", 1, 5, 1,
     .attrs = {.features = 5, .activation = TOPT_ACT_SILU, .gated = 1},
     .shape = {SLOTS(2, 3)}},
    {"combine", "combine", 2, 4, 1, .sparse = 2, .shape = {SLOTS(3, 3), TOKENS(4)}},
};

#endif
