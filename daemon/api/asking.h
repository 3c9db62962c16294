/* asking.h - handing operations to the workers, and waiting for them.
 * Thread safety: as of requests. */
#ifndef TOPTD_ASKING_H
#define TOPTD_ASKING_H

#include "operation.h"
#include "server.h"

/* Is the plan alone shown of the answer, as sbatch does, which has a deadline?  Others want what
 * stands beside it. */
int asking_is_brief(const struct request *q);

/* Hand an operation (taken) to the workers; equal keys share one.  0 with a job in '*ret' that is
 * given back with job_release, or -1 with '*refusal' filled. */
int asking_submit(const struct request *q, struct operation *takes, const char *key,
                  struct job **ret, struct reply *refusal);

/* Why a job or a task was not taken: 429 where its user has too many, else 503. */
struct reply asking_refused(const struct request *q, enum jobs_refusal why,
                            const struct topt_error *err);

/* How a job ended that gave no result: the refusal. */
struct reply asking_failed(const struct request *q, struct job *job,
                           const struct job_status *st);

/* After a wait for a job that a client needs at once (it is not handed out as a task): 0 where it
 * is done, or -1 with '*ret' filled, then the job was given back. */
int asking_done(const struct request *q, struct job *job, struct reply *ret);

#endif
