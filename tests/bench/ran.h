/* ran.h - a published run, costed here as the planner costs its plans.  See ran.c. */
#ifndef TOPT_BENCH_RAN_H
#define TOPT_BENCH_RAN_H

#include "rows.h"
#include "topt_lower.h"

struct topt_model;

struct ran {
    struct topt_strategy_cost cost;
    int64_t program; /* peak of the program that our runtime would run */
    double limit;    /* bytes of a GPU that tensors may take */
    double
        as_seen; /* predicted bytes as the row's memory_kind counts them: of tensors alone,
                      * reserved, or of the process */
    int inside;  /* what was measured is within the band around what is predicted */
};

/* A row's model for a step of 'batch' samples as it is costed: with single products where these
 * are recomputed.  Owned. */
struct topt_model *ran_model(const struct row *r, int64_t batch);

/* The row's plan, costed: with 'tensors', these alone, with no share of an allocator.  Exits with
 * a line where its framework does not have the plan. */
struct ran ran_of(const struct row *r, int tensors);

#endif
