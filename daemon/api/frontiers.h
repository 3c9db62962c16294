/* frontiers.h - what is kept of a problem, so that questions about it that differ in memory limit,
 * mode, efficiency and most GPUs take no search.
 *
 * A question that found out something new leaves it here, and the remaining numbers of GPUs
 * are searched after it, when the workers are idle.  They only save time: where they can't be
 * stored or read, the next question is searched.
 * Thread safety: any thread; but frontiers_run, of a job's slot. */
#ifndef TOPTD_FRONTIERS_H
#define TOPTD_FRONTIERS_H

#include "operation.h"
#include "server.h"

/* What is kept of the problem of a PLAN, as text; owned, NULL: nothing that can be had. */
char *frontiers_get(struct server *s, const struct operation *plan);
void frontiers_put(struct server *s, const struct operation *plan, const char *text);

/* Have what is missing searched, by a job of nobody's: one at a time, and only where no search
 * waits.  'kind' is how an operation runs as a job; of a COMPLETE one it calls frontiers_run. */
void frontiers_complete(struct server *s, const struct operation *plan,
                        const struct job_kind *kind);
/* That job: an operation COMPLETE. */
int frontiers_run(struct server *s, const struct job_run *run, struct operation *o,
                  struct topt_error *err) TOPT_MUST_CHECK;

#endif
