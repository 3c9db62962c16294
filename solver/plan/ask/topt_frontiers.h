/* topt_frontiers.h - the memory/time frontiers of one problem, cached, and any question about it
 * answered from them.
 *
 * A problem is all that decides what strategies cost: model (with batch and length), hardware,
 * framework, precision, what is trained.  A question adds a memory limit, a mode, numbers of
 * GPUs, an efficiency, a selection of factors.  What is cached is, for every grid of devices and
 * every variant on it (micro-batches, sharding, recomputation, data and tensor axes), which
 * strategies no other strategy of that variant beats.  An answer is put together from these, so
 * that it is the same, as text, whether they were there or had to be searched: topt_plan itself
 * makes empty ones and asks them.
 *
 * Kept are problems of the uniform space, the default's, of all frameworks, where a frontier takes
 * milliseconds.  Not cached, and searched as without, are: the canonical and the full space, whose
 * searches are for the fastest within one limit alone; algorithms of other systems; questions with
 * max_work, which end in between; whole frontiers (topt_plan_frontier).
 *
 * Thread safety: one owner at a time. */
#ifndef TOPT_FRONTIERS_H
#define TOPT_FRONTIERS_H

#include <jansson.h>

#include "topt_digest.h"
#include "topt_question.h"

struct topt_frontiers; /* opaque */

/* Is a request's problem one whose frontiers are cached? */
int topt_frontiers_keeps(const struct topt_request *r);

/* Empty ones of the request's problem; INVAL where they are not cached. */
int topt_frontiers_create(const struct topt_request *r, struct topt_frontiers **ret,
                          struct topt_error *err) TOPT_MUST_CHECK;

void topt_frontiers_destroy(struct topt_frontiers *f);

/* What topt_plan answers.  What is missing is searched, and
 * cached from then on.  INVAL where the request's problem is another one. */
int topt_frontiers_answer(struct topt_frontiers *f, const struct topt_request *r,
                          json_t **ret, struct topt_error *err) TOPT_MUST_CHECK;

/* Search what is missing, so that no question needs a search that differs from 'r' in memory
 * limit (up to the device's), mode, efficiency, and numbers of GPUs among r's counts.  CANCELED
 * where the request is stopped before; what was found is cached. */
int topt_frontiers_complete(struct topt_frontiers *f, const struct topt_request *r,
                            struct topt_error *err) TOPT_MUST_CHECK;

/* Variants that were priced or searched, by all calls since it was made or read: 0 where all was
 * there. */
int64_t topt_frontiers_searches(const struct topt_frontiers *f);

/* Is anything cached now that was not when they were made or read?  (Beside what was searched,
 * what points were found to be when they were checked.) */
int topt_frontiers_grew(const struct topt_frontiers *f);

/* As a document "topt-frontiers/1" (docs/FORMATS.md), a new reference, and back.  INVAL for
 * what another version of topt made.  Which problem they are of is looked at when they are asked.
 */
json_t *topt_frontiers_to_json(const struct topt_frontiers *f);
int topt_frontiers_from_json(const json_t *doc, struct topt_frontiers **ret,
                             struct topt_error *err) TOPT_MUST_CHECK;

/* What names the problem: the "problem" of the document. */
int topt_frontiers_problem(const struct topt_request *r, char ret[TOPT_ID],
                           struct topt_error *err) TOPT_MUST_CHECK;

#endif
