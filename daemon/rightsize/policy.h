/* policy.h - which waiting jobs get another number of GPUs: decided from Slurm's state
 * alone, and changed by others.
 *
 * Jobs that opted in (--topt-elastic) may run in those shapes whose plans travel with them.
 * Waiting jobs are taken in the order of their priority, each against the GPUs that the
 * ones before it leave idle:
 *
 *   - a job that fits in the idle GPUs is left to Slurm, which starts it.  A job that was
 *     shrunk before gets back as many of its own GPUs as are idle now;
 *   - a job that does not fit is shrunk to its largest shape that does, so that it starts
 *     now instead of later;
 *   - a job that fits in no shape blocks its partitions: Slurm keeps what becomes free for
 *     it, so that shrinking jobs behind it would make them slower and no earlier;
 *   - once no job is left waiting, jobs that are about to start are grown into the GPUs
 *     that remain, the first ones first.
 *
 * A shape is not used if its efficiency is below --topt-min-efficiency, if it is many times
 * slower than the one that was submitted, or if the partition, the QOS or the account
 * forbids it.  The time limit is scaled with the predicted time.
 *
 * The decision is a pure function of its input.  Thread safety: plain values. */
#ifndef TOPT_RIGHTSIZE_POLICY_H
#define TOPT_RIGHTSIZE_POLICY_H

#include "queue.h"

struct rightsize_limits {
    int64_t jobs, per_user;     /* that are changed in a run */
    int64_t min_gpus, max_gpus; /* of a job that is changed; 0: any */
    double min_efficiency;      /* of a job that said none */
    double max_slowdown;        /* of a step, against what was submitted */
    int64_t settle_s;           /* a job that was changed is left alone for so long */
    const char *partitions;     /* of these alone; NULL: all */
};

/* What was done to a job before; from the log. */
struct rightsize_past {
    int64_t job, age_s;
    char submitted[32];
    int is_undone; /* a person took it back: it is left alone */
};

struct rightsize_choice {
    const struct site_queued *job; /* borrowed from the queue */
    int from, to;   /* shapes of job->elastic; 'to' -1: it stays as it is */
    int64_t time_s; /* its new limit; 0: none */
    char why[200];
};

struct rightsize_plan {
    struct rightsize_choice
        *choice; /* of every waiting job that agreed, as the queue has them */
    size_t n;
    int64_t idle, gpus; /* of the nodes that are up */
    size_t changes;
};

/* 's' has what is used of the nodes, and accounts. */
int rightsize_decide(const struct site_slurm *s, const struct site_queue *q,
                     const struct rightsize_past *past, size_t npast,
                     const struct rightsize_limits *limits, struct rightsize_plan *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
void rightsize_plan_fini(struct rightsize_plan *p);

#endif
