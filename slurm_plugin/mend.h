/* mend.h - the plan in a job's environment, and Slurm's own variables put right.
 *
 * Pure: the environment is reached through 'struct topt_env', so that the same code runs
 * against getenv/setenv at submit time, spank_getenv/spank_setenv in a step, and a test. */
#ifndef TOPT_MEND_H
#define TOPT_MEND_H

#include <stddef.h>
#include <stdint.h>

#include "answer.h"
#include "topt_elastic.h"
#include "topt_error.h"
#include "topt_trust.h"

struct topt_env {
    void *ctx;
    /* 0 and the value in 'buf', or -1 when the variable isn't there or doesn't fit. */
    int (*get)(void *ctx, const char *name, char *buf, size_t size);
    void (*set)(void *ctx, const char *name, const char *value);
    void (*unset)(void *ctx, const char *name);
};

/* At submit time: SLURM_TOPT_* (Slurm carries SLURM_* even under --export=NONE) and the
 * plain TOPT_* (for salloc's shell, which is started from here); the plan itself once, as
 * SLURM_TOPT_PLAN_DOC.  With 'trust' the job finds the daemon and munged as the site has them. */
void topt_mend_plan(const struct topt_env *env, const struct topt_answer *plan,
                    int64_t tasks, const char *url, const struct topt_trust *trust);

/* A further plan, of another shape or kind (topt_elastic.h): its numbers in one variable, its
 * document in another. */
void topt_mend_further(const struct topt_env *env, const struct topt_answer *plan,
                       int64_t tasks, int kind);
/* Behind the last of them: the list of their shapes, which are those of 'e' but the submitted one,
 * and that of its kinds. */
void topt_mend_shapes(const struct topt_env *env, const struct topt_elastic *e);
/* Forget all further plans. */
void topt_mend_drop_further(const struct topt_env *env);

/* In the batch script's step: was the job given another shape than its plan's, of which a
 * further plan travels with it?  Then that is its plan from now on, 'said' is a line about
 * it, and it returns 1; else 0. */
int topt_mend_adopt(const struct topt_env *env, char *said, size_t size);

/* Forget a plan that another job left in the environment; TOPT_URL, TOPT_DAEMON_UID
 * and TOPT_MUNGE_SOCKET stay. */
void topt_mend_forget(const struct topt_env *env);

/* In a step: TOPT_* from SLURM_TOPT_*.  Returns 1 when there is a plan, else 0. */
int topt_mend_step(const struct topt_env *env);

/* In a step with a plan: has the job fewer nodes than the plan is for?  Where it was
 * resized so, the plan is taken out of the environment, TOPT_STALE says why in words, as
 * does 'why', and it returns 1; else 0.  In the batch script's step GPUs and tasks are
 * compared as well, which a step may have fewer of. */
int topt_mend_stale(const struct topt_env *env, int is_batch, char *why, size_t size);

/* In the batch script's step of a job whose plan is not stale: has it more GPUs than the
 * plan uses?  Then 'said' is a line about it, and it returns 1; else 0. */
int topt_mend_spare(const struct topt_env *env, char *said, size_t size);

/* In the batch script's step: Slurm wrote the numbers that srun reads down before the job
 * was sized; make them agree with the plan, or where it is stale with the allocation.  To
 * be called after the two above, which compare what Slurm says with the plan. */
void topt_mend_batch(const struct topt_env *env);

/* Sum of "3(x2),1": 7.  -1 when it can't be read. */
int64_t topt_mend_tasks(const char *tasks_per_node);

#endif
