/* run_steps.h - the steps of a run. */
#ifndef TOPT_RUNTIME_RUN_STEPS_H
#define TOPT_RUNTIME_RUN_STEPS_H

#include "run_state.h"

/* What a rank tells the others at the end of a step: that it was told to end, that it writes. */
void topt_run_say(void *run, double word[TOPT_SESSION_WORDS]);
/* Every rank. */
int topt_run_steps(struct topt_run *r, struct topt_error *err) TOPT_MUST_CHECK;

#endif
