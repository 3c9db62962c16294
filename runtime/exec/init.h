/* init.h - parameters before the first step.  Inside the executor. */
#ifndef TOPT_INIT_H
#define TOPT_INIT_H

#include "session.h"

/* Fill a parameter's local block from the seed. */
int topt_init_param(struct topt_session *s, int buffer,
                    struct topt_error *err) TOPT_MUST_CHECK;

#endif
