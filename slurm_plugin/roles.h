/* roles.h - what the plugin does in each of the processes it is loaded into. */
#ifndef TOPT_ROLES_H
#define TOPT_ROLES_H

#include <slurm/spank.h>

#include "ask.h"

/* sbatch, salloc, srun before they submit: before options are read, forget what an
 * enclosing job left in the environment. */
void topt_submit_begin(void);

/* The same, with all options read: size the job.  Returns 0 to go on, -1 when the
 * submission is refused (said so already), 1 when all that was asked for is said and
 * nothing is to be submitted.  'argv' is plugstack.conf's; what it and the environment say
 * of options that were not given goes into 'ask'. */
int topt_submit(spank_t spank, struct topt_ask *ask, int argc, char **argv);

/* slurmstepd, as the user, about to start a task: give it its plan.  Never fails: a step
 * that starts without TOPT_* is better than a node that Slurm drains.  'argv' is plugstack.conf's.
 */
void topt_step(spank_t spank, int argc, char **argv);

#endif
