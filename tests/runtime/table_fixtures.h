/* table_fixtures.h - operators of recommenders, as every backend's kernels are tested on them. */
#ifndef TOPT_TEST_TABLE_FIXTURES_H
#define TOPT_TEST_TABLE_FIXTURES_H

#include "kernel_checks.h"

#define VECTORS(n, d)                                                                    \
    {                                                                                    \
        4,                                                                               \
        {                                                                                \
            {BATCH, 1}, {SEQ, 1}, {n, 1},                                                \
            {                                                                            \
                d, 1                                                                     \
            }                                                                            \
        }                                                                                \
    }

static const struct fixture table_fixtures[] = {
    {"embedding bag",
     "embedding_bag",
     0,
     0,
     0,
     {.tables = {7}, .features = 4, .lookups = 3}},
    {"bags of five tables",
     "embedding_bag",
     0,
     0,
     0,
     {.tables = {7, 1, 12, 3, 2}, .features = 3, .lookups = 2}},
    {"vectors joined", "join_vectors", 1, 1, 1, {0}, .shape = {VECTORS(3, 4)}},
    {"products of every two", "interact", 1, 1, 1, {0}, .shape = {VECTORS(4, 3)}},
    {"products with one more",
     "interact",
     3,
     5,
     1,
     {0},
     .shape = {VECTORS(2, 5), VECTORS(3, 5)}},
    {"logistic loss", "logistic", 1, 1, 1, {0}},
};

#endif
