/* fewest.h - mini-parallelism.  Private to plan/. */
#ifndef TOPT_FEWEST_H
#define TOPT_FEWEST_H

#include <jansson.h>

#include "planning.h"

/* A request of mode mini-parallelism. */
int topt_answer_fewest(struct topt_planning *m, json_t **ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* A number of GPUs, and the largest memory limit by which it can be less than the fewest. */
struct topt_reach {
    int64_t gpus, most;
};

/* See that all is cached that "with" of some such answer may need: of what would fit on fewer. */
int topt_fewest_complete(struct topt_planning *m, const struct topt_reach *of, int n,
                         struct topt_error *err) TOPT_MUST_CHECK;

#endif
