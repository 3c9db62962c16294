/* sim.h - the state of a simulation, which policies look at and change.
 *
 * A shape of a job is a point of its curve.  Thread safety: none; one owner at a time. */
#ifndef TOPT_CLUSTER_SIM_H
#define TOPT_CLUSTER_SIM_H

#include "topt_cluster.h"

enum { SIM_WAITS = -2, SIM_DOOMED = -1 }; /* in place of a shape */

/* A job that was submitted. */
struct sim_job {
    const struct topt_cluster_curve *curve; /* that of the cluster */
    double s_by_ns;                         /* of its run, by the time of a point */
    int asked;       /* the first shape with the GPUs that it asked for, else the last */
    int kind;        /* that it asked for */
    int64_t doomed;  /* GPUs that it asks for, on which it dies; or 0 */
    int64_t bound_s; /* when it would have ended as everybody asked; 0: not known */
    double error;    /* predicted time by true */
    int64_t turn;    /* jobs wait in this order */
    int current;     /* its shape, or SIM_... */
    int64_t most;    /* GPUs that it has had */
    double left;     /* of its work, 1 at first */
    int64_t since_s, pause_s; /* it runs since then, and of that restarts took so much */
    int64_t end_s;            /* of its run, if nothing else happens */
    size_t *node;             /* that it is on; NULL where nodes are not told apart */
};

struct sim {
    const struct topt_cluster_options *o;
    const struct topt_cluster_trace *t;
    const struct topt_cluster_curve *whole;
    struct topt_cluster_curve *curve; /* with the points that the cluster has room for */
    struct topt_cluster_result *ret;
    struct topt_alloc_node *node;
    int64_t *down_s; /* of each node: until then it is down */
    size_t nnodes;
    struct sim_job *job;
    size_t *queue, nqueue;     /* jobs that wait, in the order of their turns */
    size_t *running, nrunning; /* the first to end first */
    int64_t now_s, used, gpus; /* GPUs in use, and of all nodes */
    int64_t turns, failures;   /* given and seen so far */
    size_t next;               /* job to be submitted */
    int is_shadow; /* what jobs are held to: who asks for too few gets enough */
};

/* The shape that a job has: a point, or SIM_DOOMED.  'run_s' is that of all of its work. */
struct topt_alloc_shape sim_shape(const struct sim *s, size_t i, int shape);
int64_t sim_gpus(const struct sim *s, size_t i, int shape);
/* GPU-seconds of a job that is finished in this shape. */
int64_t sim_cost(const struct sim *s, size_t i, int shape);
/* How long the work that is left is predicted to take, with the restart that it needs. */
int64_t sim_predicted_s(const struct sim *s, size_t i, int shape);
/* A length as whoever plans knows it: as a limit. */
int64_t sim_limit(const struct sim *s, int64_t run_s);
/* The points of the kind that it asked for: from the first to before the last. */
int sim_first(const struct sim_job *j);
int sim_last(const struct sim_job *j);

/* A job has another shape from now on, on these nodes, which may be NULL; SIM_WAITS: it
 * stops.  Who stops waits in the queue, and who starts leaves it.  -1 without memory. */
int sim_change(struct sim *s, size_t i, int shape, const size_t *node);
/* It waits in its turn, or, where it has none, at the end. */
void sim_wait(struct sim *s, size_t i);
/* It leaves the queue, as it has ended. */
void sim_leave(struct sim *s, size_t i);

#endif
