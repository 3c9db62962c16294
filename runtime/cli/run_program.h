/* run_program.h - the program that a run executes. */
#ifndef TOPT_RUNTIME_RUN_PROGRAM_H
#define TOPT_RUNTIME_RUN_PROGRAM_H

#include "run_state.h"

/* Each rank by itself: the plan's program under settings that our runtime obeys, and what
 * it costs. */
int topt_run_choose(struct topt_run *r, struct topt_error *err) TOPT_MUST_CHECK;

#endif
