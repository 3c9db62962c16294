/* queue.h - jobs in Slurm's queue as `scontrol -o show job` prints them, as far as
 * right-sizing looks at them.  Thread safety: plain values. */
#ifndef TOPTD_SITE_QUEUE_H
#define TOPTD_SITE_QUEUE_H

#include "site_job.h"
#include "topt_elastic.h"

enum { SITE_COMMENT = 2048, SITE_GRES = 200 };

struct site_queued {
    int64_t id, uid, priority;
    char user[SITE_NAME], partition[SITE_WORDS], account[SITE_NAME], qos[SITE_NAME];
    char constraint[SITE_WORDS], gpu_type[SITE_NAME], state[32], reason[SITE_NAME];
    /* When, as Slurm writes it: job numbers are used again, but not with the same time. */
    char submitted[32];
    /* It is no part of a heterogeneous job, names no nodes, and its line says each thing
     * once. */
    int is_plain;
    /* The array that it is of (0: none), how many tasks the line is of, how many of these
     * may run at once (0: any), and whether a task of the array has its own line, as those that
     * have started do.  Slurm resizes an array as a whole, before any has. */
    int64_t array, array_tasks, array_most;
    int has_started;
    int is_batch;
    int can_requeue; /* Slurm may put it back into the queue, as it did so many times: */
    int64_t restarts;
    int64_t submit_s; /* since 1970, or when it was put back last; 0: not known */
    int64_t nodes, most_nodes, gpus_per_node; /* nodes: the least */
    int64_t gpus; /* where they are asked for without nodes of them (--gpus); else 0 */
    int64_t tasks, tasks_per_node, cpus_per_task;
    int64_t cpus, cpus_per_node;                                /* at least */
    int64_t memory_mib, memory_per_cpu_mib, memory_per_gpu_mib; /* 0: not said */
    int64_t time_s;                                             /* its limit; 0: none */
    char gres[SITE_GRES];   /* of a node, but its GPUs: as scontrol update takes them */
    int64_t start_s, end_s; /* of a running job, since 1970; 0: not known */
    char *on; /* its nodes, as Slurm lists them; owned by the queue; NULL: not known */
    int is_elastic;
    struct topt_elastic elastic; /* of its comment */
};

struct site_queue {
    struct site_queued *job;
    size_t n;
};

/* Lines of `scontrol -o show job`; those that can't be parsed are skipped, and jobs that
 * have ended are left out.  -1 without memory. */
int site_queue_read(const char *jobs, struct site_queue *ret,
                    struct topt_error *err) TOPT_MUST_CHECK;
void site_queue_fini(struct site_queue *q);

/* Which of the kinds of GPUs that it agreed to it has (topt_elastic.h); -1: none of them. */
int site_queued_kind(const struct site_queued *j);
/* The partitions of such a kind, with commas between, or its present ones (-1). */
void site_queued_partitions(const struct site_queued *j, int kind, char ret[SITE_WORDS]);
/* Its present shape, of those whose plans travel with it; -1: none of them. */
int site_queued_shape(const struct site_queued *j);

int site_is_pending(const struct site_queued *j);
/* An array of which all tasks wait, in one line. */
int site_is_whole_array(const struct site_queued *j);
/* It waits for nodes, not for a time, another job or a person. */
int site_waits(const struct site_queued *j);

/* What bounds it, in the words of a question; of 'gpus_per_node' memory and CPUs follow. */
void site_queued_as_job(const struct site_queued *j, struct site_job *ret);

#endif
