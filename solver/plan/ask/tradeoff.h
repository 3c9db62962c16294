/* tradeoff.h - whole trade-offs.  Private to plan/. */
#ifndef TOPT_TRADEOFF_H
#define TOPT_TRADEOFF_H

#include <jansson.h>

#include "micros.h"

/* The fastest on so many as a point of a curve; NULL where a search was stopped before it
 * knew. */
int topt_count_point(struct topt_micros *m, int64_t gpus, json_t **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
