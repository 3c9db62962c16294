/* run_steps.h - the steps of a run. */
#ifndef TOPT_RUNTIME_RUN_STEPS_H
#define TOPT_RUNTIME_RUN_STEPS_H

#include "run_state.h"

/* Every rank. */
int topt_run_steps(struct topt_run *r, struct topt_error *err) TOPT_MUST_CHECK;

#endif
