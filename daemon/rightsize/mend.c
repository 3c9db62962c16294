/* mend.c - see mend.h. */
#include "mend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "requeue.h"
#include "topt_clock.h"

static const struct site_queued *find(const struct site_queue *q,
                                      const struct rightsize_entry *e)
{
    for (size_t i = 0; i < q->n; i++)
        if (q->job[i].id == e->job && !strcmp(q->job[i].submitted, e->submitted) &&
            site_is_pending(&q->job[i]))
            return &q->job[i];
    return NULL;
}

/* What became of it. */
static enum rightsize_result judge(const struct site_queued *j, const char *scontrol,
                                   struct rightsize_entry *e)
{
    struct rightsize_shape is;
    if (!j) {
        snprintf(e->detail, sizeof e->detail,
                 "the run was ended, and the job waits no more");
        return RIGHTSIZE_LEFT;
    }
    rightsize_shape_of(j, &is);
    snprintf(e->detail, sizeof e->detail, "by a run that was ended");
    if (rightsize_shape_is(&is, &e->to))
        return RIGHTSIZE_DONE;
    if (rightsize_shape_is(&is, &e->from))
        return RIGHTSIZE_LEFT;
    return rightsize_put_back(scontrol, &e->from, e->job, e->detail);
}

/* What became of it; of a stop what is left is done: RIGHTSIZE_BEGUN where that is for the next run. */
static enum rightsize_result mend_one(const struct site_queue *q, const char *scontrol,
                                      struct rightsize_entry *e)
{
    e->at_s = time(NULL);
    return e->is_stop ? requeue_finish(scontrol, topt_clock_ms() + REQUEUE_WAIT_MS, e)
                      : judge(find(q, e), scontrol, e);
}

int rightsize_mend(struct journal *j, const struct site_queue *q, const char *scontrol,
                   size_t *ret_n, struct topt_error *err)
{
    size_t n;
    const struct rightsize_entry *begun = journal_begun(j, &n);
    struct rightsize_entry *e = calloc(n + 1, sizeof *e); /* theirs changes meanwhile */
    int rc = e ? 0 : topt_nomem(err, "the log"), stops = 0;
    *ret_n = 0;
    if (e && n)
        memcpy(e, begun, n * sizeof *e);
    for (size_t i = 0; e && i < n; i++) {
        e[i].result = mend_one(q, scontrol, &e[i]);
        stops += e[i].is_stop;
        *ret_n += e[i].result == RIGHTSIZE_BACK || e[i].result == RIGHTSIZE_HALF ||
                  e[i].is_stop;
    }
    if (stops)
        requeue_give_nodes(scontrol);
    for (size_t i = 0; !rc && i < n; i++)
        if (e[i].result != RIGHTSIZE_BEGUN)
            rc = journal_add(j, &e[i], err);
    free(e);
    return rc;
}
