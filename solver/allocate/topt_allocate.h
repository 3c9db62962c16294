/* topt_allocate.h - which shape each waiting job of a cluster gets, and when it starts.
 *
 * A cluster is nodes with GPUs, CPUs and memory.  What runs and what is reserved holds parts
 * of them from one time to another.  Jobs wait in the order of their priority; a job has one
 * shape, and is rigid, or agreed to several.  A shape is a number of nodes, what it takes of
 * each, and how long the job then runs.
 *
 * Conservative backfill as everybody asked is the beginning: in the order of priority each
 * job has the earliest start that no job before it needs (Mu'alem and Feitelson, IEEE TPDS
 * 12(6), 2001).  From there jobs that agreed move to the shape that ends first, under a bound
 * on GPU-hours, so that
 *
 *   - no rigid job starts later than as everybody asked, and
 *   - no job ends later than as everybody asked.
 *
 * Where all jobs are rigid the plan is plain backfill.
 *
 * It knows neither Slurm nor clocks; times are seconds from any origin, and the answer is a
 * function of the problem alone.  Thread safety: reentrant; problems are only read. */
#ifndef TOPT_ALLOCATE_H
#define TOPT_ALLOCATE_H

#include <stddef.h>
#include <stdint.h>

#include "topt_error.h"
#include "topt_milp.h"

/* What a node has, or a job takes of it. */
struct topt_alloc_size {
    int64_t gpus, cpus, memory_mib;
};

struct topt_alloc_node {
    struct topt_alloc_size has;
    int set; /* nodes of a set serve the same jobs: from 0 on */
};

/* A running job or a reservation, on one node. */
struct topt_alloc_held {
    int64_t job; /* 0: a reservation, -1: what nobody knows */
    size_t node;
    struct topt_alloc_size takes;
    int64_t to_s; /* it begins before, or at, the time of planning */
    int64_t from_s;
};

struct topt_alloc_shape {
    int64_t nodes; /* at least 1 */
    struct topt_alloc_size each;
    int is_whole;  /* each node has to be empty, and nobody else gets any of it */
    int64_t run_s; /* predicted, at least 1 */
    const unsigned char *serves; /* of each set, whether its nodes are the shape's */
    int kind; /* GPU-hours are compared among shapes of the same kind of GPUs alone */
};

struct topt_alloc_job {
    int64_t id;
    const struct topt_alloc_shape *shape;
    int nshapes, asked; /* 'asked': the shape that it was submitted with */
    int64_t from_s;     /* it can't start before */
    int64_t bound_s; /* topt_allocate_stops: when it was to end at the latest; 0: any */
};

struct topt_alloc_problem {
    const struct topt_alloc_node *node;
    const struct topt_alloc_held *held;
    const struct topt_alloc_job *job; /* the highest priority first */
    size_t nnodes, nheld, njobs;
    int64_t now_s;
    /* A job takes at most so many thousandths of the GPU-hours of its cheapest shape of the
     * same kind, unless it asked for more: 'most' in an empty queue, and 'least' from where waiting jobs ask
     * for as many GPUs as there are; linear between. */
    int64_t most_permille, least_permille;
    /* A job gets more GPUs than it asked for only on one node, or up to so many thousandths
     * of those of the nodes that serve it: what comes next finds some free. */
    int64_t share_permille;
    /* It gets more GPUs than it asked for where so many thousandths of those of the nodes
     * that serve it stay free as long as it runs: jobs that come meanwhile start as they
     * would have.  As many in an empty queue, none where waiting jobs ask for as many GPUs
     * as there are; linear between. */
    int64_t reserve_permille;
};

/* Where a job is. */
struct topt_alloc_spot {
    int shape;
    int64_t start_s; /* -1: never, as there are no such nodes */
    size_t first;    /* of its nodes in the plan's 'node'; as many as its shape says */
};

struct topt_alloc_plan {
    struct topt_alloc_spot *spot, *asked; /* of each job, as planned and as asked */
    size_t *node;
    size_t njobs;
    int64_t permille;   /* the bound on GPU-hours that held */
    int64_t ends_s;     /* sum of the ends of jobs that start at all ... */
    int64_t as_asked_s; /* ... and as everybody asked */
    int has_milp;       /* the MILP's plan ended earlier in the sum, and is this one */
    int is_best;        /* there is no choice, or each job ends as if it were alone */
    int64_t work;       /* windows of nodes that were looked at */
};

/* How a MILP is solved, or NULL; see topt_milp.h.  A solver that fails is none: the plan is
 * that without it. */
struct topt_alloc_solver {
    topt_milp_solve *solve;
    void *context;
};

/* 'solver' may be NULL.  -1 without memory, or where the problem makes no sense. */
int topt_allocate(const struct topt_alloc_problem *p,
                  const struct topt_alloc_solver *solver, struct topt_alloc_plan *ret,
                  struct topt_error *err) TOPT_MUST_CHECK;
void topt_allocate_fini(struct topt_alloc_plan *p);

/* Which running jobs are to stop, so that fewer seconds pass between the bounds of jobs and
 * their ends.  running[k] is what would wait in the job's place, before all others, and
 * go on from what it saved; what is held for it has its id.  Those that have most GPUs beyond
 * what they asked for stop first, and none stops in vain.  Sets ret_stop[n]. */
int topt_allocate_stops(const struct topt_alloc_problem *p,
                        const struct topt_alloc_job *running, size_t n,
                        unsigned char *ret_stop, struct topt_error *err) TOPT_MUST_CHECK;

/* When the job ends at this spot; -1 where it never starts. */
int64_t topt_allocate_end(const struct topt_alloc_job *j,
                          const struct topt_alloc_spot *s);
/* GPUs of a shape, and its GPU-seconds. */
int64_t topt_allocate_gpus(const struct topt_alloc_shape *s);
int64_t topt_allocate_cost(const struct topt_alloc_shape *s);

/* Why job 'i' has the shape that it has: what it gained over as it asked, what the next
 * larger shape would have brought, and who has those GPUs instead. */
int topt_allocate_why(const struct topt_alloc_problem *p,
                      const struct topt_alloc_plan *plan, size_t i, char *ret,
                      size_t size, struct topt_error *err) TOPT_MUST_CHECK;

#endif
