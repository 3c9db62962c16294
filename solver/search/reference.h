/* reference.h - the plain search's operators, edges and frontiers.
 * Internal to this folder.  Thread safety: one owner. */
#ifndef TOPT_REFERENCE_H
#define TOPT_REFERENCE_H

#include "search_impl.h"

/* What a point is made of: a choice, or two other points. */
struct deriv {
    const struct deriv *a, *b;
    int op, edge; /* -1 none */
    int32_t choice;
};

struct point {
    struct topt_cost cost;
    const struct deriv *a, *b; /* not yet one deriv: that is made for points that stay */
};

struct front {
    struct point *point;
    int n;
};

struct node {
    int k, gone, marked;
    struct front *front; /* by configuration */
};

struct link {
    int from, to, gone;
    struct front *front; /* from configuration * k of 'to' + to configuration */
};

struct plain {
    const struct topt_search_problem *problem;
    const struct topt_search_options *options;
    struct topt_error *err;
    struct topt_arena *arena;
    struct node *node;
    struct link *link;
    struct front total;
    int32_t *decided;   /* by operator: at least 0 where it was decided by heuristic */
    int *into;          /* by operator: the one it was merged into, or itself */
    struct point *work; /* the union being formed */
    size_t nwork, cap_work;
    int stopped; /* before there is anything to answer */
    struct topt_search_stats stats;
};

/* Gather a point, or the product of two fronts, into the union being formed, ... */
int topt_plain_add(struct plain *p, struct point x);
int topt_plain_add_product(struct plain *p, const struct front *a, const struct front *b);
/* ... and reduce what was gathered into a front of its own. */
int topt_plain_finish(struct plain *p, struct front *ret);
int topt_plain_product(struct plain *p, const struct front *a, const struct front *b,
                       struct front *ret);
/* n empty fronts, or NULL. */
struct front *topt_plain_fronts(struct plain *p, int64_t n);

/* Eliminate all operators, or, with a chain, all but the marked ones, and then walk that
 * (reference_steps.c). */
int topt_plain_eliminate(struct plain *p, int with_chain) TOPT_MUST_CHECK;

#endif
