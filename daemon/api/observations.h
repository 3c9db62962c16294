/* observations.h - reports of jobs: what goes on behind them.  Thread safety: the main
 * thread alone. */
#ifndef TOPTD_OBSERVATIONS_H
#define TOPTD_OBSERVATIONS_H

#include "server.h"

/* Let Slurm be asked whose reported jobs are, where the settings name a scontrol. */
int observations_start(struct server *s, struct topt_error *err) TOPT_MUST_CHECK;
void observations_stop(struct server *s); /* before the store and the site go */

#endif
