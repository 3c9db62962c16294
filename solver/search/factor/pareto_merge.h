/* pareto_merge.h - the union of many sorted lists of points, reduced while it is formed.
 * Internal to this folder.  Thread safety: one merge per thread. */
#ifndef TOPT_SEARCH_PARETO_MERGE_H
#define TOPT_SEARCH_PARETO_MERGE_H

#include "search_common.h"

/* Which point of the left and of the right factor made a point (numbers in their
 * tables). */
struct back {
    uint32_t a, b;
};

/* The room of a weighted sum (scalar_pass.h) for the points of one entry: a point stays only
 * where time * its time + memory * its memory is at most 'room'. */
struct merge_bound {
    int64_t time, memory, room;
    const int64_t *least; /* of any entry: what its points weigh at least */
};

/* Points of one list, all shifted by one fixed point of the other factor. */
struct merge_source {
    const struct topt_cost *list;
    int64_t memory, time; /* the fixed point */
    uint32_t end;         /* points in the list */
    uint32_t base;        /* number of list[0] in its table */
    uint32_t fixed;       /* number of the fixed point in its table */
    int list_is_b;
};

struct merge_point {
    int64_t memory, time;
    uint32_t source, pos;
};

/* A run of points inside a table; 'entry' is its number in 'least' of the bounds. */
struct run {
    const struct topt_cost *cost;
    uint32_t n, base;
    int64_t entry;
};

#define TOPT_MAX_BOUNDS 8

struct merge {
    struct merge_source *source;
    size_t nsources, cap_sources;
    struct merge_point *now, *next; /* the frontier so far, and the one it becomes */
    size_t nnow, cap_frontier;
    struct topt_cost *cost; /* the output grows here */
    struct back *back;
    size_t n, cap;
    int64_t limit;   /* heavier points are dropped; INT64_MAX: none */
    int64_t slowest; /* slower points are dropped; INT64_MAX: none */
    struct merge_bound bound[TOPT_MAX_BOUNDS];
    int nbounds;
    int64_t max_bytes; /* of the output */
    int64_t products;  /* points looked at */
    int64_t polls;
    const struct topt_search_options *options;
    enum topt_err failed; /* OK, NOMEM, LIMIT (overflow), CANCELED */
    int too_big;          /* LIMIT because of max_bytes */
};

void topt_pareto_merge_fini(struct merge *m);

/* Start with no output; call before anything else. */
int topt_pareto_merge_begin(struct merge *m) TOPT_MUST_CHECK;

/* Queue the product of two runs that have points.  -1 with 'failed' set. */
int topt_pareto_merge_add(struct merge *m, struct run a, struct run b) TOPT_MUST_CHECK;

/* Append one point as it is. */
int topt_pareto_merge_put(struct merge *m, struct topt_cost cost,
                          struct back back) TOPT_MUST_CHECK;

/* Append the reduced union of what was queued to the output, and empty the queue. */
int topt_pareto_merge_run(struct merge *m) TOPT_MUST_CHECK;

#endif
