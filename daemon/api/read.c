/* read.c - what has to be parsed by a worker process before it can be answered. */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>

struct reply refused(const struct request *q, enum jobs_refusal why,
                     const struct topt_error *err)
{
    static const char *const names[] = {[JOBS_QUOTA] = "too_many",
                                        [JOBS_FULL] = "queue_full",
                                        [JOBS_STOPPING] = "stopping"};
    if (why == JOBS_NOMEM)
        return reply_owned(503, NULL, NULL);
    if (why != JOBS_STOPPING)
        atomic_fetch_add(&q->server->metrics.refused, 1);
    struct reply r =
        reply_error(q, why == JOBS_QUOTA ? 429 : 503, names[why], NULL, NULL, err->text);
    r.retry_after = 5;
    return r;
}

/* A reading that ended without a result. */
static struct reply failed(const struct request *q, const struct reading *x,
                           const struct topt_error *err)
{
    if (err->code == TOPT_ERR_CANCELED)
        return reply_error(q, 503, "stopping", NULL, NULL, err->text);
    return reply_fail(q, *x->source ? x->source : NULL, err);
}

struct job *read_now(const struct request *q, struct reading *takes,
                     const struct topt_error *err, struct reply *ret)
{
    struct topt_error refusal = {0};
    char *key = NULL;
    struct job *job;
    struct job_status st;
    int shared;
    if (!takes || asprintf(&key, "reading %s", q->id) < 0) {
        *ret = takes ? reply_owned(503, NULL, NULL) : reply_fail(q, NULL, err);
        reading_destroy(takes);
        return NULL;
    }
    struct jobs_work work = {.key = key,
                             .data = takes,
                             .kind = &reading_kind,
                             .uid = NOBODY,
                             .lane = LANE_SUBMIT};
    enum jobs_refusal rc = jobs_submit(q->server->jobs, &work, &job, &shared, &refusal);
    if (rc != JOBS_TAKEN) {
        *ret = refused(q, rc, &refusal);
        return NULL;
    }
    job_wait(job, q->server->config->search_limit * 1000, &st);
    if (st.state == JOB_DONE)
        return job;
    *ret = failed(q, job_data(job), &st.err);
    job_release(job);
    return NULL;
}
