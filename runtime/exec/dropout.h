/* dropout.h - inside the executor: numbers that are dropped while a model is trained. */
#ifndef TOPT_DROPOUT_H
#define TOPT_DROPOUT_H

#include "session.h"

/* A DROP instruction.  In an evaluation nothing is dropped. */
int topt_session_drop(struct topt_session *s, const struct topt_instr *i,
                      struct topt_error *err) TOPT_MUST_CHECK;
/* The operators that such instructions call kernels of. */
int topt_dropout_open(struct topt_session *s, struct topt_error *err) TOPT_MUST_CHECK;
/* Are the rates fractions, and does the device drop what they ask for? */
int topt_dropout_check(const struct topt_dropout *d, const struct topt_device *device,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
