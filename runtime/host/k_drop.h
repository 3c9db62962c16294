/* k_drop.h - numbers that are dropped: which, by (seed, step, operator, place in the whole). */
#ifndef RUNTIME_HOST_K_DROP_H
#define RUNTIME_HOST_K_DROP_H

#include "real.h"

struct drop {
    uint64_t stream, limit;
    real scale; /* of what stays, so that the mean stays */
};

static inline struct drop drop_of(const struct topt_kernel_call *c, double rate)
{
    uint64_t number = (uint64_t)(c->op - c->op->model->op);
    return (struct drop){.stream = topt_mix(c->seed ^ topt_mix((uint64_t)c->step)) ^
                                   topt_mix(~number),
                         .limit = (uint64_t)(rate * 0x1p53),
                         .scale = R(1 / (1 - rate))};
}

/* 'n' numbers, the first of which has number 'at' in the whole; may be in place. */
static inline void drop_row(const struct drop *d, real *to, const real *from, int64_t n,
                            uint64_t at)
{
    for (int64_t j = 0; j < n; j++)
        to[j] =
            drop_stays(d->stream, d->limit, at + (uint64_t)j) ? from[j] * d->scale : 0;
}

#endif
