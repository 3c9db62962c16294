/* topt_search.h - the bare combinatorial problem, and its exact cost frontier.
 *
 * A problem is a graph of operators.  Each operator has a list of configurations, each
 * with a cost (memory, time).  Each edge joins two operators; for a pair of
 * configurations it has a list of alternatives, each with a cost.  A strategy takes one
 * configuration of each operator and one alternative of each edge; its cost is the plain
 * sum.  The frontier is every cost that no strategy beats in both ways, with one witness
 * strategy each.
 *
 *     op a --edge--> op b          memory(S) = sum of chosen memories
 *      |configs|      |configs|    time(S)   = sum of chosen times
 *
 * Nothing here knows what an operator is: models come as problems, and so do cost files.
 * Costs are integers (bytes, nanoseconds); every sum is overflow-checked. */
#ifndef TOPT_SEARCH_H
#define TOPT_SEARCH_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "topt_error.h"
#include "topt_progress.h"

struct topt_cost {
    int64_t memory, time; /* both at least 0 */
};

/* Products of costs and weights. */
__extension__ typedef __int128 topt_wide;

/* Alternatives by class: configurations that cost the same on an edge share a class, so
 * that a table is small.  Entry (f, t) is alt[first[f * to_classes + t] .. first[... +
 * 1]). An empty entry means that the pair is not allowed.  Tables are shared by pointer
 * between edges that are alike: the search recognises repeated blocks by that. */
struct topt_table {
    int from_classes, to_classes;
    const int32_t *first; /* from_classes * to_classes + 1 */
    const struct topt_cost *alt;
};

struct topt_search_op {
    const char *name;
    int nconfigs;
    const struct topt_cost *cost; /* by configuration; shared by pointer where alike */
};

struct topt_search_edge {
    int from, to; /* operators; from < to is not needed, but no cycles */
    const struct topt_table *table;
    /* Class by configuration of each end; shared by pointer where alike. */
    const int32_t *from_class, *to_class;
};

/* All memory is borrowed from the builder of the problem. */
struct topt_search_problem {
    int nops;
    const struct topt_search_op *op;
    int nedges;
    const struct topt_search_edge *edge;
};

struct topt_search_options {
    const char *algorithm; /* a row of the table of searches; NULL means "ft" */
    int64_t memory_limit;  /* points above it are not kept; 0 means none */
    int64_t time_limit;    /* slower points are not kept; 0 means none */
    int fastest;           /* of what is within the limits, only the fastest is wanted; of
                              several as fast the lightest where 'epsilon' is 0, else any */
    double epsilon; /* 0 is exact; else each true point has one that is no heavier and at
                       most (1 + epsilon) times as slow */
    /* Costs of incumbents, sorted by memory ascending, time strictly descending; points
     * that one of them is as good as may be left out.  What is said of the frontier is
     * said of it and these together.  Where only the fastest is wanted they are read with
     * a tolerance only. */
    const struct topt_cost *known;
    int nknown;
    int threads; /* 0 or 1: the caller's only; output does not depend on it */
    int64_t brute_force_limit; /* strategies brute force may visit; 0 means 100 million */
    const atomic_bool *cancel; /* polled: fail with CANCELED; may be NULL */
    const atomic_bool *stop; /* polled: answer with what is proven so far; may be NULL */
    int64_t max_work; /* the same after so many pairs of points or entries; 0: no limit.
                            The answer is the same for any machine and number of threads */
    int64_t max_entries; /* exact elimination makes no larger table; 0 means 2^23 */
    int64_t max_bytes;   /* memory the search may take; 0 means 16 GiB */
    struct topt_progress *progress; /* updated by the search; may be NULL */
};

#define TOPT_SEARCH_MAX_THREADS 256
/* Read a command's --threads for a search.  USAGE where it is more than that. */
int topt_search_threads(int64_t given, int *ret, struct topt_error *err) TOPT_MUST_CHECK;

struct topt_search_stats {
    /* Pairs of points, and in scalarised passes of entries, that were added up. */
    int64_t products;
    int64_t points;     /* points kept in all tables, each time they were made */
    int64_t tables;     /* tables planned */
    int64_t shared;     /* eliminations that an earlier, identical one stands for */
    int64_t bands;      /* parts that the frontier was searched in */
    int64_t peak_bytes; /* memory of the search */
    int max_frontier;
};

/* Add the counts of one search to those of others; of what is a maximum, the larger. */
void topt_search_stats_add(struct topt_search_stats *into,
                           const struct topt_search_stats *from);

/* A cost, and one strategy that has it. */
struct topt_search_point {
    struct topt_cost cost;
    const int32_t *config; /* by operator */
    const int32_t *alt;    /* by edge: which alternative of its entry */
};

/* Sorted by memory ascending, time strictly descending.  Empty when nothing is allowed or
 * fits the limit. */
struct topt_frontier {
    int npoints;
    const struct topt_cost *cost;
    int exact; /* 1: no operator was decided by heuristic, and 'epsilon' is 0 */
    /* The bound that was achieved: each true point (of those with the operators decided
     * by heuristic as they are) has one here that is no heavier and at most (1 + epsilon)
     * times as slow.  Infinite where nothing is proven. */
    double epsilon;
    int nheuristic; /* operators that were decided by heuristic */
    const int32_t *heuristic;
    struct topt_search_stats stats;
    void *memory; /* owns costs and strategies */
};

/* Find the frontier.  0 and an owned frontier, or -1: INVAL (malformed problem), LIMIT
 * (overflow, table too large), CANCELED, NOMEM, NOTFOUND (algorithm).
 * Thread safety: reentrant; the problem is only read. */
int topt_search(const struct topt_search_problem *problem,
                const struct topt_search_options *options, struct topt_frontier **ret,
                struct topt_error *err) TOPT_MUST_CHECK;
void topt_frontier_destroy(struct topt_frontier *f);

/* The cost of one strategy, by the plainest code: config by operator, alt by edge. */
int topt_search_cost(const struct topt_search_problem *problem, const int32_t *config,
                     const int32_t *alt, struct topt_cost *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* By what part 'slow' is slower than 'fast': the least double e with slow <= (1 + e) *
 * fast, so that what is claimed by it is true to the last digit; 0 where it is not
 * slower, infinite where fast is 0. */
double topt_search_excess(int64_t slow, int64_t fast);

/* The slowest that is wanted beside a point of some time that has no more memory: what is
 * slower, the point stands for by a tolerance of epsilon. */
int64_t topt_search_missed(int64_t time, double epsilon);

/* Strategies are kept as what differs from point to point, and are made whole one at a
 * time: in order that costs as much as differs, in any other order up to some ten times a
 * strategy's length.  A point is borrowed until the next is read or the reader is
 * destroyed; the frontier outlives its readers.  NULL: NOMEM. Thread safety: a reader has
 * one owner; a frontier may have many. */
struct topt_frontier_reader;
struct topt_frontier_reader *topt_frontier_reader(const struct topt_frontier *f,
                                                  struct topt_error *err);
const struct topt_search_point *topt_frontier_read(struct topt_frontier_reader *r, int i);
void topt_frontier_reader_destroy(struct topt_frontier_reader *r);

/* Remove dominated and equal points in place (Algorithm 1 of the TensorOpt paper): sort
 * by memory then time, keep what is strictly faster than all before.  Returns the new
 * count. */
size_t topt_reduce(struct topt_cost *point, size_t n);

/* NULL-ended names of the algorithms, for messages. */
const char *const *topt_search_algorithms(void);

/* "topt-costs/1" (docs/FORMATS.md), of which only the problem is kept.  Operators and edges come in an order of their own, whatever the file's. The
 * returned file owns everything and is destroyed by the caller. */
struct topt_costs_file;
int topt_costs_load(FILE *from, struct topt_costs_file **ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
const struct topt_search_problem *topt_costs_problem(const struct topt_costs_file *f);
/* By edge of the problem, its place in the file; borrowed from the file. */
const int *topt_costs_edges(const struct topt_costs_file *f);
void topt_costs_destroy(struct topt_costs_file *f);
/* The document as text, freed by the caller.  INVAL where an entry has no alternative. */
int topt_costs_write(const struct topt_search_problem *problem, char **ret_text,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
