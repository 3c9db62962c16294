/* explain_time.h - where the time of a step goes.  Private to plan/. */
#ifndef TOPT_EXPLAIN_TIME_H
#define TOPT_EXPLAIN_TIME_H

#include <jansson.h>

#include "topt_plan_doc.h"
#include "topt_text.h"

/* Where the time of a step goes, and what bounds it; as JSON {"time_ns",
 * "compute_ns","network_ns","compute":[{"kind","ns"}],"network":[{"collective","of","where",
 * "ns"}]}, the longest first. */
int topt_explain_time(struct topt_text *t, const struct topt_plan_doc *p,
                      const json_t *doc, struct topt_error *err) TOPT_MUST_CHECK;

json_t *topt_explain_time_json(const struct topt_plan_doc *p, const json_t *doc,
                               struct topt_error *err) TOPT_MUST_CHECK;

#endif
