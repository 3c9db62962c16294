/* observe.h - a job of Slurm tells toptd what it measured. */
#ifndef TOPT_RUNTIME_OBSERVE_H
#define TOPT_RUNTIME_OBSERVE_H

#include "report.h"

/* Of rank 0, after the steps: where this is a job that topt sized for this plan, and
 * $TOPT_URL says who did, the median step and the largest peak go there, within two
 * seconds; whatever goes wrong is passed over.  With $TOPT_REPORT set (not to 0), the line
 * about what was said and seen is printed. */
void topt_run_observe(const struct topt_run_report *r);

#endif
