/* policy.h - which waiting jobs get another number of GPUs: decided from Slurm's state
 * alone, and changed by others.
 *
 * Jobs that agreed (--topt-elastic) may have those shapes whose plans travel with them.
 * Waiting jobs are looked at in the order of their priority, and what is idle is dealt
 * out to them in thought:
 *
 *   - one that fits in what is idle is left to Slurm, which starts it.  If it was shrunk before, it gets back as many
 *     of its own GPUs as are idle now;
 *   - one that does not fit is shrunk to the largest shape that does, so that it starts now instead of later;
 *   - one that fits in no shape blocks its partitions: Slurm keeps what becomes free for it, so that shrinking jobs
 *     behind it would make them slower and no earlier;
 *   - where nobody waits any more, jobs that are about to start are grown into what is left, the first ones first.
 *
 * Shapes that use GPUs worse than the job asked (--topt-min-efficiency), or that are many
 * times slower than the one that was submitted, are none; nor is what partition, QOS or
 * account do not allow.  A time limit follows the predicted time.
 *
 * Pure; the same input is decided the same way.  Thread safety: plain values. */
#ifndef TOPT_RIGHTSIZE_POLICY_H
#define TOPT_RIGHTSIZE_POLICY_H

#include "jobs.h"

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
