/* local.h - a plan without toptd: by `topt plan` on this machine.  Thread safety: none;
 * for the main thread. */
#ifndef TOPT_SBATCH_LOCAL_H
#define TOPT_SBATCH_LOCAL_H

#include "sizing.h"

/* As struct topt_sizing has it. */
enum topt_verdict sbatch_plan_here(const struct topt_ask *ask, const char *name,
                                   int64_t bound, struct topt_answer *ret,
                                   struct topt_error *err);

#endif
