/* ask.h - a question put to the cache of its problem.  Private to plan/. */
#ifndef TOPT_PLAN_ASK_H
#define TOPT_PLAN_ASK_H

#include <jansson.h>

#include "variant_cache.h"
#include "topt_question.h"

/* What topt_plan answers, from the cache of the request's problem; what is missing there is
 * searched and added. */
int topt_answer_plan(const struct topt_request *r, struct topt_variant_cache *cache,
                     json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
