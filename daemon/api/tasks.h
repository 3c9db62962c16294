/* tasks.h - searches that outlast a request, as resources.  Thread safety: as of requests. */
#ifndef TOPTD_TASKS_H
#define TOPTD_TASKS_H

#include "server.h"

/* The search goes on under that task's id: 202. */
struct reply task_pending(const struct request *q, const char *task,
                          const struct job_status *st);
/* It has ended, one way or another: the answer from the store, or why there is none. */
struct reply task_ended(const struct request *q, struct job *job,
                        const struct job_status *st);

#endif
