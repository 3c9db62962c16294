/* topt_cluster.h - a cluster simulated under a policy: who starts when, with how many GPUs.
 *
 * Jobs come from a published trace, or are drawn from one by a seed.  What a job takes with
 * other numbers of GPUs follows from a curve, an answer "topt-curve/1" of `topt plan`: its
 * work is such that it takes as long as the trace says with the GPUs that the trace says.
 * The cluster is nodes of one kind.  Times are whole seconds, and the same input is the same
 * result.  Thread safety: reentrant; inputs are only read. */
#ifndef TOPT_CLUSTER_H
#define TOPT_CLUSTER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_allocate.h"
#include "topt_error.h"

enum { TOPT_CLUSTER_POINTS = 16, TOPT_CLUSTER_NAME = 48 };

/* Numbers of GPUs that a model fits on, the smallest first, and the time of a step. */
struct topt_cluster_curve {
    char name[TOPT_CLUSTER_NAME];
    int n, knee; /* of the points; the last where the curve has none */
    struct {
        int64_t gpus, time_ns;
    } point[TOPT_CLUSTER_POINTS];
};

/* Points that are no divisor of a node and no whole nodes are passed over. */
int topt_cluster_curve_read(const json_t *doc, int64_t gpus_per_node,
                            struct topt_cluster_curve *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;

/* A job as a trace has it. */
struct topt_cluster_job {
    int64_t submit_s, gpus, run_s;
    size_t curve;
};

struct topt_cluster_trace {
    struct topt_cluster_job *job; /* in the order of submission, which begins at 0 */
    size_t n;
};

/* A table with a head, whose columns say what it is:
 *   submit_s,gpus,run_s                                       ours; others are passed over
 *   timestamp,duration,num_gpus,gpu_time,cluster              Philly, as Sia has it
 *   name,cpu_milli,...,creation_time,deletion_time,...        Alibaba's GPU cluster of 2023
 * Jobs without GPUs or time are left out.  Each gets one of 'ncurves' curves: by the name in
 * a column "curve" (ours alone), else by a hash of the seed and its place. */
int topt_cluster_trace_read(const char *path, const struct topt_cluster_curve *curve,
                            size_t ncurves, int64_t seed, struct topt_cluster_trace *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;
/* 'n' of the jobs by the seed, with times between them that are drawn from an exponential
 * distribution so that they ask for 'load' times the cluster's GPU-hours until the last is
 * submitted. */
int topt_cluster_trace_draw(const struct topt_cluster_trace *from, size_t n, double load,
                            int64_t gpus, int64_t seed, struct topt_cluster_trace *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;
void topt_cluster_trace_fini(struct topt_cluster_trace *t);

struct topt_cluster_options {
    int64_t nodes, gpus_per_node;
    int64_t most_permille, least_permille, share_permille; /* of moldable backfill */
    int64_t depth;   /* jobs of the queue that are planned, as Slurm's bf_max_job_test */
    int64_t round_s; /* of policies that change running jobs; 0: of their papers */
    int64_t restart_s;                      /* that such a change takes */
    const struct topt_alloc_solver *solver; /* NULL: none */
};

/* What became of a job.  Its end is that of its training, whatever died before. */
struct topt_cluster_fate {
    int64_t start_s, end_s; /* the first start; -1: never, as the cluster is too small */
    int64_t gpu_s;          /* that it took, dead runs and restarts too */
    int64_t ran_s, gpus;    /* on nodes altogether; of its last run */
    int deaths, restarts;
};

/* From this time on so many GPUs are in use, and jobs wait that asked for so many. */
struct topt_cluster_moment {
    int64_t at_s, used, waiting;
};

struct topt_cluster_result {
    const char *policy;
    struct topt_cluster_fate *fate; /* of each job of the trace */
    size_t n;
    struct topt_cluster_moment *moment;
    size_t nmoments, room_moments;
};

/* The names of the policies, NULL-ended, and what one does. */
const char *const *topt_cluster_policies(void);
const char *topt_cluster_policy_help(const char *name);

int topt_cluster_run(const struct topt_cluster_trace *t,
                     const struct topt_cluster_curve *curve,
                     const struct topt_cluster_options *o, const char *policy,
                     struct topt_cluster_result *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_cluster_result_fini(struct topt_cluster_result *r);

/* A row of figures, docs/FORMATS.md; 'asked': the result to which jobs are held, or NULL.
 * A new reference, NULL without memory. */
json_t *topt_cluster_figures(const struct topt_cluster_trace *t,
                             const struct topt_cluster_result *r,
                             const struct topt_cluster_result *asked);
/* GPUs in use and asked for over time, a lane for each result, as SVG.  The caller frees it. */
char *topt_cluster_svg(const struct topt_cluster_result *r, size_t n, int64_t gpus);

#endif
