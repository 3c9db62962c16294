/* change.h - a waiting job given another shape by scontrol, or none of it.
 *
 * scontrol's update is one request, which the controller carries out under its lock or,
 * where the job has started, not at all (seen on 22.05, 24.11 and 26.05).  What a job
 * needs is said whole: nodes, tasks, tasks and GPUs of a node, CPUs and CPUs of a node;
 * without the last a smaller job keeps the CPUs of the larger one, is held for
 * BadConstraints and loses its priority.  Releases that settle CPUs only after tasks need
 * the request twice, so it is made again where the job isn't yet as it should be.  What
 * then still isn't is put back.  A job that goes to GPUs of another kind has its partition in
 * the same request; their type it keeps, as Slurm adds a new one to the old (seen on 22.05). Thread safety: reentrant. */
#ifndef TOPT_RIGHTSIZE_CHANGE_H
#define TOPT_RIGHTSIZE_CHANGE_H

#include "queue.h"

struct rightsize_shape {
    int64_t nodes, gpus_per_node, tasks, tasks_per_node, cpus, cpus_per_node;
    int64_t time_s; /* 0: no limit */
    char partition
        [SITE_WORDS]; /* of a job that agreed to several kinds of GPUs; else "" */
};

/* What the job has, and what it would have as one of its shapes. */
void rightsize_shape_of(const struct site_queued *j, struct rightsize_shape *ret);
void rightsize_shape_in(const struct site_queued *j, const struct topt_elastic_shape *s,
                        int64_t time_s, struct rightsize_shape *ret);
int rightsize_shape_is(const struct rightsize_shape *a, const struct rightsize_shape *b);
/* Its place among the shapes of the job's plans, or -1. */
int rightsize_shape_at(const struct site_queued *j, const struct rightsize_shape *s);

enum rightsize_result {
    RIGHTSIZE_DONE,
    RIGHTSIZE_LEFT,    /* it started, ended or was changed by others: left alone */
    RIGHTSIZE_REFUSED, /* by Slurm; it is as it was */
    RIGHTSIZE_BACK,    /* it was half done, and put back */
    RIGHTSIZE_HALF,    /* it is half done, and can't be put back */
    RIGHTSIZE_DRY,     /* it was not tried */
    RIGHTSIZE_BEGUN,   /* what became of it is not known yet */
    RIGHTSIZE_RESULTS
};
const char *rightsize_result_name(enum rightsize_result r);

/* One request that says all of the shape; 'j' has the other generic resources, and the
 * limit that it has now. */
int rightsize_tell(const char *scontrol, const struct site_queued *j,
                   const struct rightsize_shape *to,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* 'j' as it was read when that was decided.  'detail' says more in words; "" where there
 * is no more to say. */
enum rightsize_result rightsize_change(const char *scontrol, const struct site_queued *j,
                                       const struct rightsize_shape *to,
                                       char detail[240]);

/* A change of job 'id' that is half done is taken back: RIGHTSIZE_BACK or RIGHTSIZE_HALF. */
enum rightsize_result rightsize_put_back(const char *scontrol,
                                         const struct rightsize_shape *from, int64_t id,
                                         char detail[240]);

#endif
