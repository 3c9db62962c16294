/* sizing.h - sizing a job in the command that submits it: in sbatch, by the plugin, or
 * before it, by `topt sbatch`.
 *
 * Knows no Slurm: its options are reached through 'struct topt_host', what is said goes
 * by topt_say.  Thread safety: none; for a program's main thread. */
#ifndef TOPT_SIZING_H
#define TOPT_SIZING_H

#include "answer.h"
#include "ask.h"
#include "host.h"
#include "mend.h"
#include "say.h"
#include "site.h"

struct topt_sizing {
    const struct topt_host *host;
    const struct topt_env *env; /* of the job */
    /* Where nobody answers: plan without toptd.  NULL: can't. */
    enum topt_verdict (*local)(const struct topt_ask *ask, const char *name,
                               int64_t bound, struct topt_answer *ret,
                               struct topt_error *err);
    /* Of Slurm, as 2302 of 23.02; asked where it matters.  0: not known. */
    int (*version)(void);
};

/* Returns 0 to go on, -1 when the submission is refused (said so already), 1 when all
 * that was asked for is said and nothing is to be submitted. */
int topt_size(const struct topt_sizing *s, const struct topt_ask *ask,
              struct topt_site *site);

/* The same where there is no plan, by what 'err' says.  'bounds' NULL: it isn't known what
 * the job asks for itself. */
int topt_size_not(const struct topt_ask *ask, const struct topt_bounds *bounds,
                  const struct topt_error *err);
/* The same of a request that is the user's to mend. */
int topt_size_refuse(const struct topt_error *err);

#endif
