/* strategy_total.h - the sums and caps that make the cost of a strategy, over pieces whose
 * costs are known.  Private to lower/. */
#ifndef TOPT_STRATEGY_TOTAL_H
#define TOPT_STRATEGY_TOTAL_H

#include "recompute.h"
#include "stage_layers.h"

/* The costs of the strategy's pieces, borrowed.  Pieces with equal costs should share one object: their sum is then found
 * once. */
struct topt_pieces {
    const struct topt_fragment_cost **op;  /* by operator, with the moves to its inputs */
    const struct topt_fragment_cost **hub; /* by tensor with several uses, with the move
                                              into it; NULL: it has no hub */
    int64_t *waiting;                      /* by tensor: topt_span_bytes() of it */
};
/* -1: no memory */
int topt_pieces_init(struct topt_pieces *p, const struct topt_model *m);
void topt_pieces_fini(struct topt_pieces *p);

/* Adds a piece to others; transient bytes are the largest, not the sum.  LIMIT where a sum overflows. */
int topt_cost_join(struct topt_fragment_cost *sum, const struct topt_fragment_cost *c,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* Are tensors of the same shape?  Do operators cost the same with one configuration? */
int topt_same_tensor(const struct topt_model *m, int a, int b);
int topt_same_op(const struct topt_model *m, int a, int b);
/* The chosen alternative of an edge. */
const struct topt_fragment_cost *topt_edge_choice(const struct topt_edge_cost *e,
                                                  enum topt_keep keep);

/* The bytes of an operator, with the hub of its output, that come and go in a micro-batch. */
struct topt_op_bytes {
    int64_t kept, recomputed;
    int64_t work, waiting; /* in flight: its own, and past it for others */
};

/* The facts about a model that sums need, and storage for the sums of one strategy after the other. */
struct topt_totals {
    const struct topt_model *model; /* borrowed, as the settings are */
    const struct topt_settings *settings;
    struct topt_spans spans, spans_recomputing;
    struct topt_recomputation recomputation;
    int64_t *recomputed; /* by first operator of a unit or block: bytes recomputed */
    /* By operator, under settings.by_schedule, else NULL: its unit, and its piece of that. */
    int *unit, *piece, npieces;
    /* By piece: */
    int *first;                     /* its first operator; and one more */
    int *twin;                      /* an earlier piece whose sum may be equal, or -1 */
    int *as;                        /* the piece whose sum it has */
    struct topt_fragment_cost *sum; /* ... which is here */
    struct topt_piece_time *spent;  /* under settings.by_schedule */
    struct topt_piece_time *last;   /* ... of the strategy that was scheduled last */
    int64_t last_ns, last_late_ns; /* its time, of which the device waited for the host */
    /* Where memory is the schedule's (topt_settings_scheduled), else NULL: bytes of pieces, and of
     * operators; the last operator that takes each tensor that waits, -1 of others. */
    struct topt_piece_bytes *bytes, *last_bytes;
    struct topt_op_bytes *held;
    int *until;
    int64_t last_held[TOPT_HELD_COUNT];
    double host_rate;    /* bytes a second between device and host, each way */
    int64_t saved_bytes; /* of what a micro-batch keeps, on the host */
    struct topt_schedule schedule;
    struct topt_layers layers; /* of pipeline stages: 'stays' is NULL without them */
};
int topt_totals_init(struct topt_totals *t, const struct topt_costing *k,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_totals_fini(struct topt_totals *t);
int topt_totals_sum(struct topt_totals *t, const struct topt_strategy *s,
                    const struct topt_pieces *p, struct topt_strategy_cost *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
