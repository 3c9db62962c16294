/* fixed.h - degrees that a question fixes.  Private to plan/request. */
#ifndef TOPT_FIXED_H
#define TOPT_FIXED_H

#include "topt_question.h"

/* "tp=8,dp=16": what it names is written into 'ret'.  INVAL for what it does not know. */
int topt_fixed_parse(const char *text, struct topt_fixed *ret,
                     struct topt_error *err) TOPT_MUST_CHECK;
/* Take over what a request has fields for, beside fields that were said themselves. */
int topt_fixed_take(struct topt_request *r, struct topt_error *err) TOPT_MUST_CHECK;
/* The product of fixed degrees, and whether that is the number of GPUs or only divides it. */
int64_t topt_fixed_gpus(const struct topt_request *r, int *ret_whole);
/* Can so many GPUs have the fixed degrees? */
int topt_fixed_fit(const struct topt_request *r, int64_t gpus);
int topt_fixed_check(const struct topt_request *r,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
