/* crossover.h - strategies that begin as one of two and end as the other.
 * Internal to this folder.  Thread safety: a crosser has one owner at a time. */
#ifndef TOPT_SEARCH_CROSSOVER_H
#define TOPT_SEARCH_CROSSOVER_H

#include "search_common.h"

/* Two strategies: configurations by operator, then alternatives by edge.  Where their
 * configurations meet on an edge, the alternative is taken that weighs least. */
struct parents {
    const int32_t *choice[2];
    struct topt_cost cost[2];
    int64_t time, memory; /* the weighted sum */
};

/* The operators before number 'cut' choose as parent 'first' does, the others as the
 * other. */
struct crossover {
    struct topt_cost cost;
    int first, cut;
};

struct crosser {
    const struct topt_search_problem *problem;
    int *first, *edge; /* by operator, ascending: its edges */
    int32_t *mix;      /* the crossover that is being looked at */
    uint8_t *barred;   /* by edge: its ends can't have what they chose there */
};

/* The problem is borrowed. */
int topt_crosser_init(struct crosser *c, const struct topt_search_problem *p,
                      struct topt_error *err) TOPT_MUST_CHECK;
void topt_crosser_fini(struct crosser *c);

/* All crossovers of two strategies that are possible, in the order of their cuts, without
 * the two; 'ret' has room for 2 * operators.  Costs are below 2^61 together.  Returns how
 * many.  Takes the time of one look at every edge for each parent. */
int topt_crossovers(struct crosser *c, const struct parents *p, struct crossover *ret);

/* The choices of one of them, borrowed until the next call. */
const int32_t *topt_crossover_choice(struct crosser *c, const struct parents *p,
                                     const struct crossover *x);

#endif
