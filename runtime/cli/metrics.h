/* metrics.h - a line of JSON a step, for programs that draw what a run does. */
#ifndef TOPT_RUNTIME_METRICS_H
#define TOPT_RUNTIME_METRICS_H

#include "run_state.h"

struct topt_metrics;

/* Lines go after those that are there where the run goes on from a checkpoint (lines of later
 * steps are cut), else into an empty file. */
int topt_metrics_open(struct topt_run *r, struct topt_metrics **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* The last step of the run, on disk at once; 'eval' NAN without one, 'right' where no labels
 * were counted. */
int topt_metrics_step(struct topt_metrics *m, const struct topt_run *r, double eval,
                      double right, struct topt_error *err) TOPT_MUST_CHECK;
void topt_metrics_close(struct topt_metrics *m);

#endif
