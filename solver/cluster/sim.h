/* sim.h - the state of a simulation, which policies look at and change.
 *
 * Thread safety: none; one owner at a time. */
#ifndef TOPT_CLUSTER_SIM_H
#define TOPT_CLUSTER_SIM_H

#include "topt_cluster.h"

enum { SIM_WAITS = -2, SIM_DOOMED = -1 }; /* in place of a shape */

/* A job that was submitted. */
struct sim_job {
    struct topt_alloc_shape shape[TOPT_CLUSTER_POINTS]; /* by GPUs */
    int nshapes, knee;
    int asked; /* the first shape with the GPUs that it asked for, else the last */
    struct topt_alloc_shape doomed; /* what it asks for, on which it dies; or nodes 0 */
    int current;                    /* its shape, or SIM_... */
    double left;                    /* of its work, 1 at first */
    int64_t since_s, pause_s; /* it runs since then, and of that restarts took so much */
    size_t *node;             /* that it is on; NULL where nodes are not told apart */
};

struct sim {
    const struct topt_cluster_options *o;
    const struct topt_cluster_trace *t;
    const struct topt_cluster_curve *curve;
    struct topt_cluster_result *ret;
    struct topt_alloc_node *node;
    struct sim_job *job;
    size_t *queue, nqueue; /* jobs that wait, the highest priority first */
    size_t *running, nrunning;
    int64_t now_s, used; /* GPUs */
    size_t next;         /* job to be submitted */
};

/* The shape that a job has: a number of 'shape', or SIM_DOOMED. */
const struct topt_alloc_shape *sim_shape(const struct sim_job *j, int shape);
/* Of the queue's place 'at', or of a running job: it has another shape from now on, on these
 * nodes, which may be NULL; SIM_WAITS: it stops.  Queue and running jobs are put in order by
 * sim_sort.  -1 without memory. */
int sim_change(struct sim *s, size_t i, int shape, const size_t *node);
void sim_sort(struct sim *s);
/* GPU-seconds of a job that is finished in this shape. */
int64_t sim_cost(const struct sim_job *j, int shape);

#endif
