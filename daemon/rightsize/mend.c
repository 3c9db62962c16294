/* mend.c - see mend.h. */
#include "mend.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

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

int rightsize_mend(struct journal *j, const struct site_queue *q, const char *scontrol,
                   size_t *ret_n, struct topt_error *err)
{
    size_t n;
    *ret_n = 0;
    for (const struct rightsize_entry *e; e = journal_begun(j, &n), n > 0;) {
        struct rightsize_entry then = *e;
        then.at_s = time(NULL);
        then.result = judge(find(q, e), scontrol, &then);
        *ret_n += then.result == RIGHTSIZE_BACK || then.result == RIGHTSIZE_HALF;
        if (journal_add(j, &then, err))
            return -1;
    }
    return 0;
}
