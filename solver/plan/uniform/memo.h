/* memo.h - what is known about the variants of one problem's grids, whatever limit, number of
 * GPUs or mode was asked for.  Private to plan/.
 *
 *     memo -- grid (nodes x devices a node) -- variant -- bounds, the fastest, its frontier
 *                                                         below that, the least memory
 *
 * A variant is searched in the order in which questions need it: its
 * bounds, which takes its prices; the fastest strategy that the device can hold; where a limit
 * excludes that one, the rest of the frontier; and the least memory.  None of these depends on
 * the question, nor on what is known of other variants.  So an answer that is put together
 * from them is the same, byte for byte, whichever question had them searched.
 *
 * The memo holds the uniform space alone, where blocks choose alike: a variant's frontier has
 * few points there.  Thread safety: one owner at a time. */
#ifndef TOPT_PLAN_MEMO_H
#define TOPT_PLAN_MEMO_H

#include <jansson.h>

#include "free.h"
#include "topt_memo.h"

struct topt_memo_point {
    int64_t sum_bytes,
        sum_ns; /* as its search adds them up: lower bounds of the next two */
    int64_t memory_bytes, time_ns;  /* its cost, once that is asked for; -1 before */
    struct topt_strategy *strategy; /* owned */
    /* The point as a curve gives it, once the checker has confirmed it; NULL before.  Owned. */
    json_t *checked;
};

/* The points of one search. */
struct topt_memo_points {
    int known;
    struct topt_search_stats work;
    int n;
    /* sums of bytes ascending, of times strictly descending; owned */
    struct topt_memo_point *at;
};

struct topt_memo_entry {
    struct topt_degrees degrees;
    int floored; /* is 'floor' known?  A stage's is that of few devices (uniform.c) */
    struct topt_floor floor;
    int priced;                 /* ... is all up to 'stats'? */
    int some;                   /* has every operator a configuration? */
    struct topt_strategy *sole; /* the one strategy that there is; NULL: several; owned */
    struct topt_cost least;     /* lower bounds of every strategy */
    struct topt_problem_stats stats; /* but routes, which variants of a grid share */
    struct topt_memo_points fastest; /* that the device can hold: one or none */
    struct topt_memo_points below;   /* the frontier below that one */
    /* The strategy that needs least, and the whole frontier, whatever the device has. */
    struct topt_memo_points lightest, frontier;
    struct topt_memo_points whole; /* the fastest, whatever the device has: for stages */
    /* Costs of the fastest, the lightest and others (uniform.c) as those of pipeline stages. */
    int nstaged, staged_cap;
    struct topt_memo_staged {
        int stages, chunks, order, which;
        int64_t memory_bytes, time_ns; /* -1: not known */
    } * staged;                        /* owned */
};

struct topt_memo_grid {
    int nodes, per_node;
    int n, cap;
    struct topt_memo_entry **at; /* by micro-batches, cut, sharding, recomputation */
};

struct topt_memo {
    int n;
    struct topt_memo_grid **at; /* by nodes, then devices a node */
    int64_t searches;           /* variants that were priced or searched */
    size_t bytes;               /* of points and variants */
    /* the least that a strategy leaves on the host which has no room; 0: none */
    int64_t host_bytes;
    /* of the model with adapters, which answers offer; NULL: nothing */
    struct topt_memo *lora;
};

/* A variant of a grid, empty where nothing is known of it; NULL without memory. */
struct topt_memo_entry *topt_memo_entry(struct topt_memo *m, int nodes, int per_node,
                                        const struct topt_degrees *v);

/* A variant has one strategy, which the memo takes over (NULL: it has not). */
void topt_memo_keep_sole(struct topt_memo *m, struct topt_memo_entry *x,
                         struct topt_strategy *sole);

/* The one strategy of a variant that differs in micro-batches alone; NULL: none such is known. */
const struct topt_strategy *topt_memo_sole(struct topt_memo *m, int nodes, int per_node,
                                           const struct topt_degrees *v);

/* The memo of the model with adapters, made empty where there is none; NULL without memory. */
struct topt_memo *topt_memo_lora(struct topt_memo *m);

/* Take over the points of an exact search, which leaves 'found' empty: 0; 1 where the search was
 * stopped or is not exact, so that nothing follows for other questions; -1 without memory. */
int topt_memo_take(struct topt_memo *m, struct topt_solutions *found,
                   struct topt_memo_points *ret);

#endif
