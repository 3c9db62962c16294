/* usable_gpus.h - how many GPUs of a node a job can have: by the CPUs and the memory that it
 * asks for, or gets by the partition's defaults, against the node's and the partition's
 * most.  Thread safety: reentrant. */
#ifndef TOPTD_SITE_USABLE_GPUS_H
#define TOPTD_SITE_USABLE_GPUS_H

#include "site_job.h"

/* What is left out, to see what it costs. */
enum { SITE_BUT_CPUS = 1, SITE_BUT_MEMORY = 2 };

/* GPUs of a type on a node, "" being any. */
int64_t site_gpus_of(const struct site_node *n, const char *type);

/* GPUs that the node can give to this job as one of the partition; 'but' is of SITE_BUT_. */
int64_t site_usable_gpus(const struct site_slurm *s, const struct site_partition *p,
                         const struct site_node *n, const struct site_job *job,
                         const char *type, int but);

/* What asks for CPUs (or memory), as "-c 8" or "DefMemPerGPU=2000"; "" where only each
 * task's own CPU does. */
void site_need_of_cpus(const struct site_partition *p, const struct site_job *job,
                       char *ret, size_t size);
void site_need_of_memory(const struct site_partition *p, const struct site_job *job,
                         char *ret, size_t size);

#endif
