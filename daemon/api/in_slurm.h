/* in_slurm.h - a question of a job in Slurm: what goes with it, and what that bounds.
 * Thread safety: as of requests. */
#ifndef TOPTD_IN_SLURM_H
#define TOPTD_IN_SLURM_H

#include "server.h"

/* Take the parameters slurm_* out of the request's.  0 with '*ret' where there were any, 1
 * where there were none, or -1 with '*refusal' filled. */
int in_slurm_take(struct request *q, struct site_job *ret, struct reply *refusal);

/* Bound 'asked' by what the job's partition has, and name its profile where it names
 * none; the request remembers the GPU type to set and the words of the limit.  0, or -1
 * with '*refusal' filled. */
int in_slurm_apply(struct request *q, const struct site_job *job,
                   struct topt_query *asked, struct reply *refusal);

#endif
