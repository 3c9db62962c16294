/* audited.h - strategies audited one after the other, held against each by itself. */
#ifndef TEST_AUDITED_H
#define TEST_AUDITED_H

#include <stdio.h>
#include <string.h>

#include "topt_lower.h"

/* Does the audit say of a strategy what costing and lowering it say? */
static inline int audited(struct topt_audit *a, const struct topt_strategy *s,
                          const struct topt_strategy_cost *cost, int64_t peak)
{
    struct topt_strategy_cost c;
    struct topt_error err = {0};
    int64_t p = -1;
    if (!a || topt_audit_strategy(a, s, &c, &p, &err)) {
        printf("# audit: %s\n", err.text);
        return 0;
    }
    if (p != peak)
        printf("# peak %lld, audited %lld\n", (long long)peak, (long long)p);
    return p == peak && !memcmp(&c, cost, sizeof c);
}

#endif
