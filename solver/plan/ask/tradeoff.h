/* tradeoff.h - whole trade-offs.  Private to plan/. */
#ifndef TOPT_TRADEOFF_H
#define TOPT_TRADEOFF_H

#include <jansson.h>

#include "gpu_count.h"
#include "planning.h"

/* The fastest on so many as a point of a curve; NULL where a search was stopped before it
 * knew. */
int topt_count_point(struct topt_planning *m, int64_t gpus, json_t **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The best of a count, or that nothing fits, as a point of a curve. */
int topt_best_point(struct topt_planning *m, const struct topt_best *b, int64_t gpus,
                    json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* A curve, from the memo of the request's problem. */
int topt_answer_curve(const struct topt_request *r, struct topt_memo *memo, json_t **ret,
                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
