/* random_problem.h - small random problems of every shape, for the tests of the search.
 * Deterministic in the seed; everything in one block that problem_free gives back. */
#ifndef TOPT_RANDOM_PROBLEM_H
#define TOPT_RANDOM_PROBLEM_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "topt_arena.h"
#include "topt_search.h"

struct rng {
    uint64_t s;
};

/* splitmix64 */
static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->s += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Uniform enough in 0..n-1. */
static inline int rng_below(struct rng *r, int n)
{
    return (int)(rng_next(r) % (uint64_t)n);
}

enum shape {
    SHAPE_CHAIN,
    SHAPE_DAG,
    SHAPE_BLOCKS, /* repeated residual blocks that share their tables */
    SHAPE_STAR,   /* a hub read by all */
    SHAPE_PARTS,  /* components, isolated operators */
    SHAPE_PARALLEL,
    SHAPE_DENSE, /* every pair joined */
    SHAPES
};

struct random_spec {
    enum shape shape;
    int nops, max_configs, max_alternatives;
    int64_t max_cost;
    int empty_percent;   /* of the entries of edge tables */
    int classes_percent; /* of edges whose configurations share classes */
};

struct random_problem {
    struct topt_search_problem p;
    struct topt_arena *a;
    struct rng *rng;
    struct random_spec spec;
};

static inline struct topt_cost random_cost(struct random_problem *g)
{
    uint64_t n = (uint64_t)g->spec.max_cost + 1;
    int64_t m = (int64_t)(rng_next(g->rng) % n), t = (int64_t)(rng_next(g->rng) % n);
    return (struct topt_cost){m, t};
}

static inline struct topt_table *random_table(struct random_problem *g, int from, int to)
{
    struct topt_table *t = TOPT_NEW(g->a, 1, struct topt_table);
    int32_t *first = TOPT_NEW(g->a, from * to + 1, int32_t);
    struct topt_cost *alt =
        TOPT_NEW(g->a, from * to * g->spec.max_alternatives + 1, struct topt_cost);
    if (!t || !first || !alt)
        abort();
    for (int e = 0; e < from * to; e++) {
        int n = 1 + rng_below(g->rng, g->spec.max_alternatives);
        if (rng_below(g->rng, 100) < g->spec.empty_percent)
            n = 0;
        first[e + 1] = first[e] + n;
        for (int k = first[e]; k < first[e + 1]; k++)
            alt[k] = random_cost(g);
    }
    *t = (struct topt_table){from, to, first, alt};
    return t;
}

static inline const int32_t *random_classes(struct random_problem *g, int nconfigs, int n)
{
    int32_t *c = TOPT_NEW(g->a, nconfigs, int32_t);
    if (!c)
        abort();
    for (int i = 0; i < nconfigs; i++)
        c[i] = n == nconfigs ? i : rng_below(g->rng, n);
    return c;
}

static inline void random_op(struct random_problem *g, struct topt_search_op *op)
{
    int n = 1 + rng_below(g->rng, g->spec.max_configs);
    struct topt_cost *c = TOPT_NEW(g->a, n, struct topt_cost);
    if (!c)
        abort();
    for (int i = 0; i < n; i++)
        c[i] = random_cost(g);
    *op = (struct topt_search_op){"op", n, c};
}

static inline struct topt_search_edge random_edge(struct random_problem *g, int from,
                                                  int to)
{
    int nf = g->p.op[from].nconfigs, nt = g->p.op[to].nconfigs, cf = nf, ct = nt;
    if (rng_below(g->rng, 100) < g->spec.classes_percent) {
        cf = 1 + rng_below(g->rng, nf);
        ct = 1 + rng_below(g->rng, nt);
    }
    return (struct topt_search_edge){from, to, random_table(g, cf, ct),
                                     random_classes(g, nf, cf),
                                     random_classes(g, nt, ct)};
}

static inline int wants_edge(struct random_problem *g, int i, int j)
{
    switch (g->spec.shape) {
    case SHAPE_CHAIN:
        return j == i + 1;
    case SHAPE_STAR:
        return i == 0 || rng_below(g->rng, 5) == 0;
    case SHAPE_DAG:
        return rng_below(g->rng, 100) < 45;
    case SHAPE_PARTS:
        return rng_below(g->rng, 100) < 20;
    case SHAPE_PARALLEL:
        return (j == i + 1) + (rng_below(g->rng, 100) < 40) + (j == i + 2);
    case SHAPE_BLOCKS:
        return 0;
    case SHAPE_DENSE:
    case SHAPES:
        break;
    }
    return 1;
}

/* hub -> a -> b -> hub, hub -> hub: each block with the very tables of the first.  The first hub or
 * the last may have less to choose than the others, as where something else has narrowed it. */
static inline int random_blocks(struct random_problem *g, struct topt_search_op *op,
                                struct topt_search_edge *edge)
{
    static const int from[4] = {0, 1, 2, 0}, to[4] = {1, 2, 3, 3};
    int n = 0;
    for (int i = 3; i < g->p.nops; i++)
        op[i] = op[i % 3];
    for (int at = 0; at + 3 < g->p.nops; at += 3)
        for (int k = 0; k < 4; k++, n++)
            if (at) {
                edge[n] = edge[n - 4];
                edge[n].from += 3;
                edge[n].to += 3;
            } else {
                edge[n] = random_edge(g, from[k], to[k]);
            }
    struct topt_search_op *end = &op[rng_below(g->rng, 2) ? 0 : g->p.nops - 1];
    end->nconfigs = 1 + rng_below(g->rng, end->nconfigs);
    return n;
}

static inline void problem_make(struct random_problem *g, struct rng *rng,
                                struct random_spec spec)
{
    int most = 2 * spec.nops * spec.nops + 8, n = 0;
    *g = (struct random_problem){.a = topt_arena_create(0), .rng = rng, .spec = spec};
    struct topt_search_op *op = TOPT_NEW(g->a, spec.nops, struct topt_search_op);
    struct topt_search_edge *edge = TOPT_NEW(g->a, most, struct topt_search_edge);
    if (!op || !edge)
        abort();
    g->p.nops = spec.nops;
    g->p.op = op;
    g->p.edge = edge;
    for (int i = 0; i < spec.nops; i++)
        random_op(g, &op[i]);
    if (spec.shape == SHAPE_BLOCKS)
        n = random_blocks(g, op, edge);
    for (int i = 0; i < spec.nops; i++)
        for (int j = i + 1; j < spec.nops; j++)
            for (int k = wants_edge(g, i, j); k > 0; k--)
                edge[n++] = random_edge(g, i, j);
    /* Numbers need not follow the direction of the edges: turn them all round. */
    if (spec.shape != SHAPE_BLOCKS && rng_below(rng, 2))
        for (int i = 0; i < n; i++)
            edge[i] = random_edge(g, edge[i].to, edge[i].from);
    g->p.nedges = n;
}

static inline void problem_free(struct random_problem *g)
{
    topt_arena_destroy(g->a);
}

#endif
