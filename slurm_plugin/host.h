/* host.h - the options of the sbatch, salloc or srun that loaded us.
 *
 * SPANK has no call to change a job's size.  The commands keep their options in the global
 * 'opt' and export it together with slurm_option_set and its relatives, which take and give
 * every option by its name and as text; so neither structures nor private headers are
 * needed.  None of this is promised by Slurm: it is looked up at run time, and where it is
 * missing the caller says so and leaves the job as it was asked. */
#ifndef TOPT_HOST_H
#define TOPT_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "shape.h"

struct topt_host {
    void *opt;
    int (*set)(void *opt, const char *name, const char *value, bool early); /* 0: done */
    char *(*get)(void *opt, const char *name);
    bool (*isset)(void *opt, const char *name);
    bool (*reset)(void *opt, const char *name);
};

/* -1 when this command doesn't export what is needed. */
int topt_host_find(struct topt_host *ret) TOPT_MUST_CHECK;

/* What the user asked on the command line, in #SBATCH lines or by Slurm's variables. */
int topt_host_bounds(const struct topt_host *h, struct topt_bounds *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* Append what else of the job bounds its plan, "&slurm_partition=gpu&slurm_time=60"; nothing where it says nothing. */
void topt_host_about(const struct topt_host *h, const struct topt_bounds *bounds,
                     struct topt_text *out);

/* Give the job the plan's shape: nodes, GPUs on each, one task for each GPU or for each node.  On failure
 * the options are what they were. */
int topt_host_resize(const struct topt_host *h, const struct topt_answer *plan,
                     const struct topt_bounds *bounds,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* srun --jobid: a step of a job that exists. */
int topt_host_is_step(const struct topt_host *h);

#endif
