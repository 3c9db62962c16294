/* kept.h - what was found out about the variants of one problem's grids, whatever limits,
 * counts or mode were asked for.  Private to plan/.
 *
 *     kept -- grid (nodes x devices a node) -- variant -- bounds, the fastest,
 *                                                         its frontier, the lightest
 *
 * Of each variant can be known, in the order in which questions need it: below which
 * memory and time none of its strategies is, which takes its prices; the fastest that the
 * device can hold; where a limit excludes that one, the rest of its frontier; and what
 * needs the least memory. None of these depends on what is asked, nor on what is known of
 * others; so an answer that is put together from them is the same whoever found them out,
 * and when.
 *
 * Only of the uniform space, where blocks choose alike: there a frontier has few points
 * and takes milliseconds, and a strategy is a few signs (kept_strategy.c). One owner at a
 * time. */
#ifndef TOPT_KEPT_H
#define TOPT_KEPT_H

#include <jansson.h>

#include "kept_strategy.h"
#include "problem_stats.h"
#include "solutions.h"

struct topt_kept_point {
    int64_t memory_bytes, time_ns;
    int strategy; /* in the kept ones, by number */
    /* What the checker found it to be, as a curve says it; NULL: it was not yet checked.
     * Owned. */
    json_t *checked;
};

/* What one search found. */
struct topt_kept_points {
    int known;
    struct topt_search_stats work;
    int n;
    struct topt_kept_point *at; /* memory ascending, time strictly descending */
};

struct topt_kept_variant {
    struct topt_variant variant;
    int priced;
    int some;                        /* has every operator a configuration? */
    struct topt_cost least;          /* below these no strategy of it is */
    struct topt_problem_stats stats; /* but routes, which grids share */
    struct topt_kept_points fastest; /* that the device can hold: one or none */
    struct topt_kept_points lighter; /* its frontier below that one */
    /* What needs the least memory, be it more than the device has; 0: not known, 1: there
     * is nothing, 2: it is known. */
    int lightest_known;
    struct topt_cost lightest;
};

struct topt_kept_grid {
    int nodes, per_node;
    int n, cap;
    struct topt_kept_variant **at; /* by micro-batches, cut, sharding, recomputation */
};

struct topt_kept {
    struct topt_kept_strategies strategies;
    int n;
    struct topt_kept_grid **at; /* by nodes, then devices a node */
    int64_t
        searches; /* variants that were priced or searched since it was made or read */
    int grew;     /* was anything added since? */
    struct topt_kept
        *lora; /* the same of the model with adapters; NULL: nothing is known */
};

struct topt_kept *topt_kept_create(void); /* empty; NULL without memory */
void topt_kept_destroy(struct topt_kept *k);

/* The grid, an empty one where nothing is known of it; NULL without memory. */
struct topt_kept_grid *topt_kept_grid(struct topt_kept *k, int nodes, int per_node);

/* The same of a variant. */
struct topt_kept_variant *topt_kept_variant(struct topt_kept_grid *g,
                                            const struct topt_variant *v);

/* That with adapters, made empty where there is none; NULL without memory. */
struct topt_kept *topt_kept_lora(struct topt_kept *k);

/* A document and back: docs/FORMATS.md.  What it says of the problem is not looked at. */
json_t *topt_kept_to_json(const struct topt_kept *k);
int topt_kept_read(const json_t *doc, struct topt_kept **ret,
                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
