/* running.h - inside the executor: running statistics of batch norms. */
#ifndef TOPT_RUNNING_H
#define TOPT_RUNNING_H

#include "session.h"

/* Where the program keeps them; statistics of samples that were never seen are 0 and 1. */
int topt_running_open(struct topt_session *s, struct topt_error *err) TOPT_MUST_CHECK;
/* Host memory that both take. */
int64_t topt_running_scratch(const struct topt_session *s, const struct topt_instr *i);
/* Before a kernel of a batch norm in an evaluation: they are its mean and variance. */
int topt_running_take(struct topt_session *s, const struct topt_instr *i,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* After it in training: they go a tenth of the way to those of the batch. */
int topt_running_give(struct topt_session *s, const struct topt_instr *i,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
