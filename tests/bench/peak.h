/* peak.h - what a documented plan takes by the row of its framework.  See peak.c. */
#ifndef TOPT_BENCH_PEAK_H
#define TOPT_BENCH_PEAK_H

#include "grid.h"
#include "free.h"

struct peak {
    struct topt_strategy_cost cost;
    int64_t program; /* peak of the program that our runtime would run */
};

/* What recomputation does beside what a variant says. */
enum peak_again {
    PEAK_AS_VARIANT, /* all blocks or none */
    PEAK_STAYING, /* the same, and gradients are there all the time, as before PyTorch 2.0 */
    PEAK_OPERATORS, /* flagged by operator in the strategy */
    PEAK_PRODUCTS /* ... and the outputs of products that are kept are kept whether read or not */
};

/* A strategy of a variant, costed as the planner does.  Exits with a line where that fails. */
void peak_of(const char *what, struct topt_grid_search *shape,
             const struct topt_degrees *v, const struct topt_strategy *s,
             enum peak_again again, struct peak *ret);

#endif
