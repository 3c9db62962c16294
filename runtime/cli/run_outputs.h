/* run_outputs.h - what a run writes. */
#ifndef TOPT_RUNTIME_RUN_OUTPUTS_H
#define TOPT_RUNTIME_RUN_OUTPUTS_H

#include "run_state.h"

/* Can all that will be written be written?  Rank 0, before the first step. */
int topt_run_probe(struct topt_run *r, struct topt_error *err) TOPT_MUST_CHECK;
/* The weights into --save-weights, after the steps; every rank. */
int topt_run_save_weights(struct topt_run *r, struct topt_error *err) TOPT_MUST_CHECK;
/* Of the options of a session: gradients of the first step are written. */
void topt_run_dump_gradients(struct topt_run *r, struct topt_session_options *o);
/* After the steps; every rank. */
int topt_run_finish(struct topt_run *r, struct topt_error *err) TOPT_MUST_CHECK;
/* Says 'line', and writes the report of what was done so far; of the guard's thread, or of
 * a single process. */
void topt_run_last_words(void *run, enum topt_err code, const char *line);

#endif
