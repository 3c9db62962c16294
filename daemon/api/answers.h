/* answers.h - is there an answer already, and an answer as a reply.
 *
 * An answer is kept as itself in the store, or by the operation that found it where the store could not take it
 * (answer_known); beside these a worker keeps what it priced (worker/planner.c), and net/warm.h replies as they
 * were sent.  No answer depends on any of them.  Thread safety: reentrant. */
#ifndef TOPTD_ANSWERS_H
#define TOPTD_ANSWERS_H

#include "operation.h"
#include "server.h"

/* In the form that the request wants: JSON with the plan put back, or lines of KEY=VALUE; 422
 * where nothing fits.  With what jobs say of it, 'c'. */
struct reply answer_reply(const struct request *q, const struct store_answer *a,
                          int is_pinned, const struct correction *c);

/* Under which the store keeps the answer to a PLAN.  Borrowed from it. */
struct store_key answer_key(const struct operation *plan);

/* Is there an answer to the PLAN?  1: '*ret', which is its own or '*own', given back with
 * store_answer_fini(); 0: a search has to find it; -1. */
int answer_known(struct server *s, const struct operation *plan, struct store_answer *own,
                 const struct store_answer **ret, struct topt_error *err) TOPT_MUST_CHECK;

#endif
