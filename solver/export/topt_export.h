/* topt_export.h - what a request searches, for other programs: random strategies of its
 * space as plans, and the bare problem.
 * Thread safety: reentrant; requests, models and profiles are only read. */
#ifndef TOPT_EXPORT_H
#define TOPT_EXPORT_H

#include "topt_plan_doc.h"
#include "topt_question.h"

/* 'count' random valid strategies (seeded, repeatable) as plan documents: a JSON
 * array. */
int topt_plan_sample(const struct topt_request *r, int count, uint64_t seed, json_t **ret,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The bare problem of r->gpus devices as a "topt-costs/1" text, freed by the caller: its
 * frontier is topt_plan_frontier's.  LIMIT where it would be too large. */
int topt_plan_costgraph(const struct topt_request *r, char **ret_text,
                        struct topt_error *err) TOPT_MUST_CHECK;

#endif
