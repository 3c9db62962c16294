/* slices.h - a problem cut at some operators: a slice for every configuration of these,
 * as far as edges tell them apart. */
#ifndef TOPT_SEARCH_SLICES_H
#define TOPT_SEARCH_SLICES_H

#include <stdatomic.h>

#include "elimination.h"
#include "topt_pool.h"

struct slice {
    struct topt_arena *arena;
    struct topt_search_problem problem;
    const int32_t **config; /* by operator: numbers in the whole; NULL: all */
    struct elimination_plan plan;
    int planned;
    struct topt_frontier *frontier;
    struct topt_error err;
    int failed;
    /* Its lower bounds. */
    int some; /* is there a strategy at all? */
    struct topt_cost light, fast;
    double weight;
};

struct conditioned;
struct conditioning {
    const struct topt_search_problem *p;
    const struct topt_search_options *options;
    struct conditioned *ret;
    struct topt_error *err;
    struct point_store store; /* of the tables that no slice changes */
    int *op, ncut;            /* the operators that slices differ in */
    int32_t **value;          /* of those, by configuration */
    int *nvalues;
    struct slice *slice;
    int nslices;
    int *order;                  /* in which slices are searched */
    struct topt_frontier **part; /* what slices found, as far as it is not united yet */
    int nparts;
    struct topt_search_stats stats; /* of all slices */
    double epsilon;
    struct topt_cost *known; /* of the slices searched so far */
    int nknown;
    int64_t work;
    double balance[2]; /* what memory and time count in a lower bound */
    struct topt_pool *pool;
    /* The job at hand. */
    int (*job)(struct conditioning *c, struct slice *s);
    int from, to; /* in order */
    atomic_int next;
};

/* slices.c: the operators cut at, and what configurations of these differ in; then slice
 * after slice.  0, or -1. */
int topt_slices_values(struct conditioning *c, const char *cutset) TOPT_MUST_CHECK;
int topt_slice_open(struct conditioning *c, int number) TOPT_MUST_CHECK;
void topt_slice_close_plan(struct slice *s);
void topt_slice_close(struct slice *s);
/* Its number among the operators cut at, or -1. */
int topt_slice_cut_at(const struct conditioning *c, int op);

#endif
