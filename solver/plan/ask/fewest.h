/* fewest.h - mini-parallelism.  Private to plan/. */
#ifndef TOPT_FEWEST_H
#define TOPT_FEWEST_H

#include <jansson.h>

#include "planning.h"

/* A request of mode mini-parallelism. */
int topt_answer_fewest(struct topt_planning *m, json_t **ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

#endif
