/* explain_around.h - why not fewer GPUs, and what more would buy.  Private to plan/. */
#ifndef TOPT_EXPLAIN_AROUND_H
#define TOPT_EXPLAIN_AROUND_H

#include <jansson.h>

#include "topt_plan.h"
#include "topt_text.h"

/* The answers for fewer and for more GPUs, searched as the plan was:
 * [{"gpus","feasible","memory_limit","memory_bytes","time_ns"}], and the same in words. */
json_t *topt_explain_around_json(const struct topt_plan_doc *p, const json_t *doc,
                                 const struct topt_explain_options *o,
                                 struct topt_error *err) TOPT_MUST_CHECK;

void topt_explain_around(struct topt_text *t, const struct topt_plan_doc *p,
                         const json_t *doc, const json_t *around);

#endif
