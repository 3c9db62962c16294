/* model.h - Slurm's state as a problem of moldable backfill (solver/allocate).
 *
 * A node with GPUs of several types is one node for each, with CPUs and memory in proportion.
 * What is used of a node is held until the running jobs on it end by their limits, and for a
 * year where no running job explains it.  A job runs in another shape for as long as its
 * limit, by the predicted time of a step.  A running job without a limit is held for a year,
 * as nobody knows when it ends: nothing is put off for what it holds.  A waiting one is taken
 * to be as long as those that run have run on average, or as the longest limit.
 * An array is as many jobs as may run of it at once.
 * Thread safety: plain values. */
#ifndef TOPT_RIGHTSIZE_MODEL_H
#define TOPT_RIGHTSIZE_MODEL_H

#include "queue.h"
#include "topt_allocate.h"

/* At most MODEL_TASKS tasks of an array are planned, and MODEL_ALL_TASKS of all arrays together. */
enum { MODEL_SHAPES = TOPT_ELASTIC_MOST, MODEL_TASKS = 32, MODEL_ALL_TASKS = 1000 };

/* A waiting job, or one of the tasks of an array, which follow each other. */
struct model_job {
    const struct site_queued *job; /* borrowed */
    int64_t task;                  /* of an array: from 0 on */
    int from; /* its present shape, of job->elastic; -1: none of them */
    struct topt_alloc_shape shape[MODEL_SHAPES];
    int elastic
        [MODEL_SHAPES]; /* of each shape, its place in job->elastic; -1: as it is */
    int nshapes, asked;
    /* Which sets of nodes serve it: of its kinds, or alone where it agreed to none, and last as it
     * is, where that is none of them. */
    unsigned char *serves[TOPT_ELASTIC_KINDS + 1];
    int64_t length_s; /* with its present shape */
};

struct model {
    struct topt_alloc_problem p;
    struct model_job
        *job; /* the highest priority first; those without GPUs are left out */
    size_t njobs;
    struct topt_alloc_node *node;
    size_t *of; /* of each node, its place in Slurm's */
    int *type;  /* and which of that one's types it is */
    struct topt_alloc_held *held;
    size_t room_held;
    struct topt_alloc_job *planned;
    int nsets;
    int64_t idle, gpus; /* of the nodes that are up */
    int64_t usual_s;    /* a job without a limit */
};

/* With every job rigid, as it is now.  'now_s' since 1970. */
int model_init(const struct site_slurm *s, const struct site_queue *q, int64_t now_s,
               struct model *ret, struct topt_error *err) TOPT_MUST_CHECK;
void model_fini(struct model *m);

/* A running job as it would wait with what it was submitted with and no choice; its length is that with its
 * present shape.  model_job_fini frees what it has.  -1 without memory. */
int model_running(const struct site_slurm *s, const struct site_queued *q,
                  const struct model *m, struct model_job *ret) TOPT_MUST_CHECK;
void model_job_fini(struct model_job *j);
/* How long it runs in a shape of its own. */
int64_t model_run(const struct model_job *j, int elastic);

/* The job may have this shape of its own as well. */
void model_allow(struct model_job *j, int elastic);
/* It is rigid again. */
void model_fix(struct model_job *j);
/* It has this shape, and no choice. */
void model_choose(struct model_job *j, int elastic);
/* How many entries from 'i' on are tasks of the same array; 1: it is none. */
size_t model_tasks(const struct model *m, size_t i);
/* Put what jobs may have into 'p'. */
void model_update(struct model *m);

/* The limit that a job has in another shape: it follows the predicted time, but for shapes
 * that are faster than what was submitted. */
int64_t model_limit(const struct site_queued *j, int from, int to);

#endif
