/* evaluated.h - strategies evaluated one after the other, held against each by itself. */
#ifndef TEST_AUDITED_H
#define TEST_AUDITED_H

#include <stdio.h>
#include <string.h>

#include "topt_lower.h"

/* Does the evaluator say of a strategy what costing and lowering it say? */
static inline int evaluated(struct topt_evaluator *a, const struct topt_strategy *s,
                            const struct topt_strategy_cost *cost, int64_t peak)
{
    struct topt_strategy_cost c;
    struct topt_error err = {0};
    int64_t p = -1;
    if (!a || topt_evaluate_strategy(a, s, &c, &p, &err)) {
        printf("# evaluator: %s\n", err.text);
        return 0;
    }
    if (p != peak)
        printf("# peak %lld, evaluated %lld\n", (long long)peak, (long long)p);
    return p == peak && !memcmp(&c, cost, sizeof c);
}

#endif
