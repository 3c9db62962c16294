/* total.h - the sums and caps that make the cost of a strategy, over pieces that somebody knows.
 * Private to lower/. */
#ifndef TOPT_TOTAL_H
#define TOPT_TOTAL_H

#include "fragment.h"

/* What the pieces of the strategy at hand cost, borrowed until the next question; NULL where
 * that fails (error filled). */
struct topt_pieces {
    const struct topt_fragment_cost *(*op)(struct topt_pieces *p, int op);
    const struct topt_fragment_cost *(*hub)(struct topt_pieces *p, int tensor);
    const struct topt_edge_cost *(*into_hub)(struct topt_pieces *p, int tensor);
    const struct topt_edge_cost *(*use)(struct topt_pieces *p, int op, int input);
    /* Bytes of a tensor where it waits, as topt_span_bytes counts them. */
    int64_t (*waiting)(struct topt_pieces *p, int tensor);
};

/* What sums need of a model, whatever the strategy is. */
struct topt_totals {
    const struct topt_model *model; /* borrowed */
    struct topt_spans spans, spans_remaking;
    struct topt_remaking remaking;
    int64_t *remade; /* by first operator of a block: bytes made again */
};
int topt_totals_init(struct topt_totals *t, const struct topt_model *m,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_totals_fini(struct topt_totals *t);
int topt_totals_sum(struct topt_totals *t, const struct topt_strategy *s,
                    struct topt_pieces *p, struct topt_strategy_cost *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
