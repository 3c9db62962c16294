/* topt_cluster.h - a cluster simulated under a policy: who starts when, with how many GPUs.
 *
 * Jobs come from a published trace, or are drawn from one by a seed.  What a job takes with
 * other numbers of GPUs follows from a curve, an answer "topt-curve/1" of `topt plan`: its
 * work is such that it takes as long as the trace says with the GPUs that the trace says.
 * The cluster is nodes of one kind or of several, each kind a partition; a job asks for one
 * kind, and its curve says times on those that it can use.  Nodes may fail, and predicted
 * times may be wrong, by the seed.  Times are whole seconds, and the same input is the same
 * result.  Thread safety: reentrant; inputs are only read. */
#ifndef TOPT_CLUSTER_H
#define TOPT_CLUSTER_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_allocate.h"
#include "topt_error.h"
#include "topt_text.h"

enum { TOPT_CLUSTER_POINTS = 40, TOPT_CLUSTER_KINDS = 4, TOPT_CLUSTER_NAME = 48 };

/* Nodes that are alike: a partition. */
struct topt_cluster_kind {
    char name[TOPT_CLUSTER_NAME]; /* of a hardware profile; "" where there is one kind */
    int64_t nodes, gpus_per_node;
};

/* Numbers of GPUs that a model fits on, by kind and the smallest first, and the time of a
 * step, or of all of the training where traces say none. */
struct topt_cluster_curve {
    char name[TOPT_CLUSTER_NAME];
    int n;
    int knee[TOPT_CLUSTER_KINDS]; /* a point; the last of the kind where it has none */
    int first[TOPT_CLUSTER_KINDS +
              1];      /* points of kind k: from first[k] to first[k + 1] */
    int64_t restart_s; /* -1: as the options say */
    struct {
        int64_t gpus, time_ns;
        int kind;
    } point[TOPT_CLUSTER_POINTS];
};

/* A curve joins those of the same name, of which there are *n; another is added, up to
 * 'most'.  Points that are no divisor of a node and no whole nodes are passed over, and so is
 * what is of no kind. */
int topt_cluster_curve_read(const json_t *doc, const struct topt_cluster_kind *kind,
                            int nkinds, struct topt_cluster_curve *curve, size_t most,
                            size_t *n, struct topt_error *err) TOPT_MUST_CHECK;
/* Where kinds begin, after points changed. */
void topt_cluster_curve_index(struct topt_cluster_curve *c);
/* Many, from a table "curve,kind,gpus,run_s,restart_s". */
int topt_cluster_curves_read(const char *path, const struct topt_cluster_kind *kind,
                             int nkinds, struct topt_cluster_curve *curve, size_t most,
                             size_t *n, struct topt_error *err) TOPT_MUST_CHECK;

/* A job as a trace has it; its kind has points in its curve. */
struct topt_cluster_job {
    int64_t submit_s, gpus, run_s;
    size_t curve;
    int kind;
};

struct topt_cluster_trace {
    struct topt_cluster_job *job; /* in the order of submission, which begins at 0 */
    size_t n;
};

/* A table with a head, whose columns say what it is:
 *   submit_s,gpus,run_s                                       ours; others are passed over
 *   timestamp,duration,num_gpus,gpu_time,cluster              Philly, as Sia has it
 *   name,cpu_milli,...,creation_time,deletion_time,...        Alibaba's GPU cluster of 2023
 *   name,time,application,num_replicas,batch_size             Sia's workloads
 * Jobs without GPUs or time are left out.  Each gets one of 'ncurves' curves: by the name in
 * a column "curve" (ours) or "application" (Sia's; APPLICATION@BATCH comes before
 * APPLICATION), else by a hash of the seed and its place; and a kind: by the name in a column
 * "kind" (ours), else by the seed, in proportion to the kinds' GPUs.  Where a trace says no
 * length it is the curve's. */
int topt_cluster_trace_read(const char *path, const struct topt_cluster_curve *curve,
                            size_t ncurves, const struct topt_cluster_kind *kind,
                            int nkinds, int64_t seed, struct topt_cluster_trace *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;
/* 'n' of the jobs by the seed, with times between them that are drawn from an exponential
 * distribution so that they ask for 'load' times the cluster's GPU-hours until the last is
 * submitted. */
int topt_cluster_trace_draw(const struct topt_cluster_trace *from, size_t n, double load,
                            int64_t gpus, int64_t seed, struct topt_cluster_trace *ret,
                            struct topt_error *err) TOPT_MUST_CHECK;
void topt_cluster_trace_fini(struct topt_cluster_trace *t);

struct topt_cluster_options {
    struct topt_cluster_kind kind[TOPT_CLUSTER_KINDS];
    int nkinds;
    int any_kind; /* moldable backfill and Sia may choose another kind than was asked for */
    /* of moldable backfill */
    int64_t most_permille, least_permille, share_permille, reserve_permille;
    int64_t depth;     /* jobs of the queue that are planned, as bf_max_job_test */
    int64_t round_s;   /* of policies that change running jobs; 0: of their papers */
    int64_t restart_s; /* that such a change takes, or a failure, or a requeue */
    int64_t seed;
    double failure_s;     /* mean time between failures of a node; 0: none fails */
    int64_t repair_s;     /* until it is back */
    int64_t checkpoint_s; /* what a job did since the last is lost where its node fails */
    double error; /* predicted times are exp(error * normal) times the true ones */
    /* lengths are planned as limits, in multiples of this; 0: exactly */
    int64_t limit_step_s;
    const struct topt_alloc_solver *solver; /* NULL: none */
};

/* A job is late that took so much longer than under the policy that jobs are held to. */
enum { TOPT_CLUSTER_LATER_PERCENT = 10 };

/* What became of a job.  Its end is that of its training, whatever died before. */
struct topt_cluster_fate {
    int64_t start_s, end_s; /* the first start; -1: never, as the cluster is too small */
    int64_t gpu_s;          /* that it took, dead runs and restarts too */
    int64_t ran_s, gpus;    /* on nodes altogether; of its last run */
    int deaths, restarts, failures;
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
/* Append a line for each job: TOPT_CLUSTER_OUTCOMES says which columns.  -1 without memory. */
#define TOPT_CLUSTER_OUTCOMES                                                            \
    "policy,job,submit_s,start_s,end_s,gpus,gpu_s,deaths,restarts,failures\n"
int topt_cluster_outcomes(const struct topt_cluster_trace *t,
                          const struct topt_cluster_result *r,
                          struct topt_text *out) TOPT_MUST_CHECK;
/* GPUs in use and asked for over time, a lane for each result, as SVG.  The caller frees it. */
char *topt_cluster_svg(const struct topt_cluster_result *r, size_t n, int64_t gpus);

#endif
