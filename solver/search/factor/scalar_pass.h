/* scalar_pass.h - a weighted sum of costs, and what every entry of every table weighs at
 * least by it. Internal to this part.  Thread safety: each bound has one owner; tables
 * are read. */
#ifndef TOPT_SEARCH_SCALAR_PASS_H
#define TOPT_SEARCH_SCALAR_PASS_H

#include "table.h"

/* More than anything weighs, and two of them still fit. */
#define TOPT_NOTHING ((((int64_t)1 << 61) - 1) * 2 + 1)
#define TOPT_FLAT_NOTHING                                                                \
    0x1p60 /* as a double: more than anything that is light weighs */
/* Up to this, doubles count exactly, even two together. */
#define TOPT_LIGHT ((int64_t)1 << 52)
/* Weights are so small that whatever a strategy may weigh is below this. */
#define TOPT_HEAVY ((int64_t)1 << 60)

/* A weighted sum of costs.  Arrays are by entry; topt_scalar_pass_init allocates them. */
struct scalar_pass {
    int64_t time, memory; /* a point weighs time * its time + memory * its memory */
    int light;            /* no strategy weighs more than TOPT_LIGHT: doubles will do */
    int64_t allowance;    /* heavier strategies are not looked for */
    int64_t *least;       /* the lightest point */
    int64_t *rest;        /* the lightest of all that is not in the table */
    double *flat;         /* as 'least', of tables that are read row by row */
    double *room;         /* for one product */
};

int topt_scalar_pass_init(struct scalar_pass *b, const struct tables *ts,
                          struct topt_error *err) TOPT_MUST_CHECK;
void topt_scalar_pass_fini(struct scalar_pass *b);

static inline int64_t topt_weight(const struct scalar_pass *b, struct topt_cost c)
{
    return b->time * c.time + b->memory * c.memory;
}

#endif
