/* asking.c - see asking.h. */
#include "asking.h"

#include <stdlib.h>
#include <string.h>

int asking_submit(const struct request *q, struct operation *takes, const char *key,
                  struct job **ret, struct reply *refusal)
{
    struct topt_error err = {0};
    int shared = 0, is_search = takes->kind == OPERATION_PLAN;
    struct jobs_work work = {.key = strdup(key), .data = takes, .is_quick = !is_search};
    if (!work.key) {
        operation_destroy(takes);
        *refusal = reply_owned(503, NULL, NULL);
        return -1;
    }
    if (jobs_submit(q->server->jobs, &work, ret, &shared, &err) == 0) {
        if (shared && is_search)
            atomic_fetch_add(&q->server->metrics.shared, 1);
        return 0;
    }
    if (err.code == TOPT_ERR_LIMIT)
        atomic_fetch_add(&q->server->metrics.refused, 1);
    *refusal = reply_error(q, 503, err.code == TOPT_ERR_LIMIT ? "queue_full" : "stopping",
                           NULL, NULL, err.text);
    return -1;
}

struct reply asking_failed(const struct request *q, struct job *job,
                           const struct job_status *st)
{
    const struct operation *o = job_data(job);
    int theirs = st->err.code == TOPT_ERR_INVAL || st->err.code == TOPT_ERR_USAGE;
    if (st->err.code != TOPT_ERR_CANCELED)
        return reply_fail(q, *o->source ? o->source : theirs ? "model" : NULL, &st->err);
    if (atomic_load(&q->server->stopping))
        return reply_error(q, 503, "stopping", NULL, NULL, "the server is stopping");
    return st->state == JOB_FAILED
               ? reply_error(q, 503, "search_limit", NULL, NULL, st->err.text)
               : reply_error(q, 409, "canceled", NULL, NULL, "the search was canceled");
}

int asking_done(const struct request *q, struct job *job, struct reply *ret)
{
    struct job_status st;
    job_wait(job, 0, &st);
    if (st.state == JOB_DONE)
        return 0;
    if (q->is_gone)
        *ret = reply_fixed(499, "text/plain", "");
    else if (st.state > JOB_DONE)
        *ret = asking_failed(q, job, &st);
    else
        *ret = reply_error(q, 503, "busy", NULL, NULL,
                           "the server did not come to read this in time");
    job_release(job);
    return -1;
}
