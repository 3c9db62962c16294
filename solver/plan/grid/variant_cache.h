/* variant_cache.h - what is known about the variants of one problem's grids, whatever
 * limits, counts or mode were asked for.  Private to plan/.
 *
 *     cache -- grid (nodes x devices a node) -- variant -- bounds, the fastest,
 *                                                          its frontier, least memory
 *
 * Of each variant can be known, in the order in which questions need it: below which
 * memory and time none of its strategies is, which takes its prices; the fastest that the
 * device can hold; where a limit excludes that one, the rest of its frontier; and what
 * needs the least memory.  None of these depends on what is asked, nor on what is known of
 * others; so an answer that is put together from them is the same whoever searched them,
 * and when.
 *
 * Only the uniform space, where blocks choose alike, is cached: there a frontier has few
 * points and takes milliseconds, and a strategy is a short code (strategy_code.c).  One
 * owner at a time. */
#ifndef TOPT_VARIANT_CACHE_H
#define TOPT_VARIANT_CACHE_H

#include <jansson.h>

#include "strategy_code.h"
#include "problem_stats.h"
#include "solutions.h"

struct topt_cached_point {
    int64_t memory_bytes, time_ns;
    int strategy; /* number among the codes */
    /* What the checker found it to be, as a curve says it; NULL: it was not yet checked.
     * Owned. */
    json_t *checked;
};

/* What one search found. */
struct topt_cached_points {
    int known;
    struct topt_search_stats work;
    int n;
    struct topt_cached_point *at; /* memory ascending, time strictly descending */
};

struct topt_cached_variant {
    struct topt_variant variant;
    int priced;
    int some;                          /* has every operator a configuration? */
    struct topt_cost least;            /* below these no strategy of it is */
    struct topt_problem_stats stats;   /* but routes, which grids share */
    struct topt_cached_points fastest; /* that the device can hold: one or none */
    struct topt_cached_points below;   /* its frontier below that one */
    /* What needs the least memory, be it more than the device has; 0: not known, 1: there
     * is nothing, 2: it is known. */
    int least_memory_known;
    struct topt_cost least_memory;
};

struct topt_cached_grid {
    int nodes, per_node;
    int n, cap;
    struct topt_cached_variant **at; /* by micro-batches, cut, sharding, recomputation */
};

struct topt_variant_cache {
    struct topt_strategy_codes strategies;
    int n;
    struct topt_cached_grid **at; /* by nodes, then devices a node */
    int64_t
        searches; /* variants that were priced or searched since it was made or read */
    int grew;     /* was anything added since? */
    struct topt_variant_cache
        *lora; /* the same of the model with adapters; NULL: nothing is known */
};

struct topt_variant_cache *
topt_variant_cache_create(void); /* empty; NULL without memory */
void topt_variant_cache_destroy(struct topt_variant_cache *k);

/* The grid, an empty one where nothing is known of it; NULL without memory. */
struct topt_cached_grid *topt_cached_grid(struct topt_variant_cache *k, int nodes,
                                          int per_node);

/* The same of a variant. */
struct topt_cached_variant *topt_cached_variant(struct topt_cached_grid *g,
                                                const struct topt_variant *v);

/* That with adapters, made empty where there is none; NULL without memory. */
struct topt_variant_cache *topt_variant_cache_lora(struct topt_variant_cache *k);

/* A document and back: docs/FORMATS.md.  What it says of the problem is not looked at. */
json_t *topt_variant_cache_to_json(const struct topt_variant_cache *k);
int topt_variant_cache_read(const json_t *doc, struct topt_variant_cache **ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

#endif
