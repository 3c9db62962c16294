/* slurm_job.h - what of an answer sbatch is to be asked for.  Thread safety: reentrant. */
#ifndef TOPTD_SLURM_JOB_H
#define TOPTD_SLURM_JOB_H

#include <jansson.h>

/* Is a feasible answer about several groups of unlike GPUs together? */
int slurm_is_several(const json_t *found);

/* The member "slurm" of an answer on a profile, new: nodes, GPUs of each and options of sbatch; of several groups the
 * "parts" of a heterogeneous job, and the options of all.  null where there is no such job; NULL without memory. */
json_t *slurm_job(const json_t *found, const char *hw);

#endif
