/* elimination_order.h - which operator is eliminated next: the one that looks cheapest
 * now.
 *
 * A binary heap that knows where each operator stands in it, so that one whose
 * surroundings changed gets another place in the time of a logarithm; a scan over all
 * operators for each elimination takes the square of their number.  Of equal ones the
 * first in the problem goes first, so that plans do not depend on the heap's history.
 * Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_SEARCH_ELIMINATION_ORDER_H
#define TOPT_SEARCH_ELIMINATION_ORDER_H

#include "topt_arena.h"

/* The estimated cost of an elimination: by rank, then by expected points. */
struct elimination_rank {
    int rank;
    double points;
};

struct elimination_queue {
    int n;                            /* operators that wait */
    int *op;                          /* the heap */
    int *at;                          /* by operator: its place in the heap, or -1 */
    struct elimination_rank *rank_of; /* by operator */
};

/* Nobody waits.  0, or -1 without memory; all of it is the arena's. */
int topt_elimination_order_init(struct elimination_queue *t, int nops,
                                struct topt_arena *a);
/* The operator waits, from now on by this. */
void topt_elimination_order_put(struct elimination_queue *t, int op,
                                struct elimination_rank rank);
/* It does not wait any more. */
void topt_elimination_order_drop(struct elimination_queue *t, int op);
/* The first of those that wait, or -1. */
int topt_elimination_order_first(const struct elimination_queue *t);

#endif
