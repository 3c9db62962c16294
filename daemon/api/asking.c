/* asking.c - see asking.h. */
#include "asking.h"

#include <stdlib.h>
#include <string.h>

struct reply asking_refused(const struct request *q, enum jobs_refusal why,
                            const struct topt_error *err)
{
    static const char *const names[] = {[JOBS_QUOTA] = "too_many",
                                        [JOBS_FULL] = "queue_full",
                                        [JOBS_STOPPING] = "stopping"};
    if (why == JOBS_NOMEM)
        return reply_owned(503, NULL, NULL);
    if (why != JOBS_STOPPING)
        atomic_fetch_add(&q->server->metrics.refused, 1);
    return reply_error(q, why == JOBS_QUOTA ? 429 : 503, names[why], NULL, NULL,
                       err->text);
}

/* What is no search takes milliseconds, too. */
static enum job_lane job_lane_of(const struct operation *o)
{
    return o->kind == OPERATION_PLAN && lane_of(&o->query) == METRICS_SEARCH
               ? LANE_SEARCH
               : LANE_SUBMIT;
}

int asking_is_brief(const struct request *q)
{
    return q->wants_text && q->shows == TOPT_LINES_ALONE;
}

int asking_submit(const struct request *q, struct operation *takes, const char *key,
                  struct job **ret, struct reply *refusal)
{
    struct topt_error err = {0};
    int shared = 0, is_search = takes->kind == OPERATION_PLAN;
    struct jobs_work work = {
        .key = strdup(key),
        .data = takes,
        .kind = &operation_kind,
        .uid = q->caller.uid,
        .lane = job_lane_of(takes),
        .is_brief = asking_is_brief(q),
        .cost = is_search ? cost_expected(&q->server->costs, &takes->query) : 0,
        .problem = is_search ? operation_problem(takes) : 0};
    if (!work.key) {
        operation_destroy(takes);
        *refusal = reply_owned(503, NULL, NULL);
        return -1;
    }
    takes->uid = asker(q);
    enum jobs_refusal why = jobs_submit(q->server->jobs, &work, ret, &shared, &err);
    if (why == JOBS_TAKEN) {
        if (shared && is_search)
            atomic_fetch_add(&q->server->metrics.shared, 1);
        return 0;
    }
    *refusal = asking_refused(q, why, &err);
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
                           "the server was too busy to read this in time");
    job_release(job);
    return -1;
}
