/* policy.h - which waiting jobs get another number of GPUs: decided from Slurm's state
 * alone, and changed by others.
 *
 * Jobs that opted in (--topt-elastic) may run in those shapes whose plans travel with them.
 * All waiting jobs are planned by moldable backfill (solver/allocate), and a job is changed
 * once it starts now in another shape than it has; what starts later is decided then.
 *
 * A shape is not used if its efficiency is below --topt-min-efficiency, if it is many times
 * slower than the one that was submitted, or if the partition, the QOS or the account
 * forbids it.  The time limit is scaled with the predicted time.
 *
 * An array of which no task has started is changed as a whole: its tasks are planned one by
 * one, all get the shape with which the first of them starts now, and the plan is made again.
 * If any job or task would then end later than in the plan of what everybody asked for, the array
 * stays as it is.
 *
 * The decision is a pure function of its input.  Thread safety: plain values. */
#ifndef TOPT_RIGHTSIZE_POLICY_H
#define TOPT_RIGHTSIZE_POLICY_H

#include "stop.h"

struct rightsize_limits {
    int64_t jobs, per_user;     /* that are changed in a run */
    int64_t min_gpus, max_gpus; /* of a job that is changed; 0: any */
    double min_efficiency;      /* of a job that said none */
    double max_slowdown;        /* of a step, against what was submitted */
    int64_t settle_s;           /* a job that was changed is left alone for so long */
    int requeues;               /* running jobs may be stopped (stop.h) */
    const char *partitions;     /* of these alone; NULL: all */
    double most_overhead, least_overhead, most_share,
        reserve;                            /* of moldable backfill, as shares */
    const struct topt_alloc_solver *solver; /* NULL: none */
};

/* What was done to a job before; from the log. */
struct rightsize_past {
    int64_t job, age_s;
    char submitted[32];
    int is_undone; /* a person took it back: it is left alone */
};

struct rightsize_choice {
    const struct site_queued *job; /* borrowed from the queue */
    int64_t task;   /* of an array, which is changed as a whole: the first says how */
    int from, to;   /* shapes of job->elastic; 'to' -1: it stays as it is */
    int64_t time_s; /* its new limit; 0: none */
    int64_t gpus;   /* that are planned, when it starts */
    int64_t start_s, asked_start_s; /* planned, and as everybody asked; -1: never */
    int64_t end_s, asked_end_s;     /* the same */
    char why[240];
};

struct rightsize_plan {
    struct rightsize_choice
        *choice; /* of every waiting job with GPUs, or task, by priority */
    size_t n;
    int64_t idle, gpus; /* of the nodes that are up */
    size_t changes;
    int has_milp; /* the plan is that of the MILP */
    struct rightsize_stop
        *stop; /* running jobs that are to stop; the plan is without that */
    size_t nstops;
};

/* 's' has what is used of the nodes, and accounts; 'now_s' since 1970. */
int rightsize_decide(const struct site_slurm *s, const struct site_queue *q,
                     const struct rightsize_past *past, size_t npast,
                     const struct rightsize_limits *limits, int64_t now_s,
                     struct rightsize_plan *ret, struct topt_error *err) TOPT_MUST_CHECK;
void rightsize_plan_fini(struct rightsize_plan *p);

#endif
