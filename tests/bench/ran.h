/* ran.h - a published run, costed here as the planner costs its plans.  See ran.c. */
#ifndef TOPT_BENCH_RAN_H
#define TOPT_BENCH_RAN_H

#include "rows.h"
#include "topt_lower.h"

struct topt_model;

struct ran {
    struct topt_strategy_cost cost;
    int64_t program;         /* peak of the program that our runtime would run */
    double limit;            /* bytes of a GPU that tensors may take */
    int tight;               /* the band of all that is reserved reaches beyond it */
    double device;           /* bytes of a GPU */
    int64_t low_ns, high_ns; /* the band around the time of the step */
    /* What the row's memory is compared with: that of tensors alone, where it is what PyTorch calls
     * allocated. */
    struct topt_strategy_cost held;
    int64_t share;                 /* of it the allocator's */
    int64_t beside;                /* ... and what the process has beside that */
    int64_t low_bytes, high_bytes; /* the band around both */
    int full;                      /* the row shows all that the device has */
};

/* A row's model for a step of 'batch' samples as it is costed: with single products where these
 * are recomputed.  Owned. */
struct topt_model *ran_model(const struct row *r, int64_t batch);

/* The row's plan, costed.  Exits with a line where its framework does not have the plan. */
struct ran ran_of(const struct row *r);

#endif
