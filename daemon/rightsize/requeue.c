/* requeue.c - see requeue.h. */
#include "requeue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scontrol.h"
#include "topt_clock.h"
#include "topt_command.h"
#include "topt_minmax.h"

enum { TELL_MS = 10000, FIRST_PAUSE_MS = 20, LAST_PAUSE_MS = 640 };
static const char reservation[] = "ReservationName=topt-rightsize";
static const char held[] = "job_requeued_in_held_state";

static int tell(const char *const *args, struct topt_error *err)
{
    return topt_command_tell(args, topt_clock_ms() + TELL_MS, err);
}

static int tell_job(const char *scontrol, const char *what, const char *id,
                    struct topt_error *err)
{
    const char *args[] = {scontrol, what, id, NULL};
    return tell(args, err);
}

void requeue_give_nodes(const char *scontrol)
{
    struct topt_error err = {0};
    const char *args[] = {scontrol, "delete", reservation, NULL};
    if (tell(args, &err)) /* there is none, or it ends by itself */
        topt_error_clear(&err);
}

int requeue_keep_nodes(const char *scontrol, const char *nodes, struct topt_error *err)
{
    struct topt_text list = {0};
    char lasts[32];
    snprintf(lasts, sizeof lasts, "Duration=%d", REQUEUE_KEPT_MIN);
    topt_text_add(&list, "Nodes=%s", nodes);
    const char *args[] = {scontrol,        "create", "reservation", reservation,
                          "StartTime=now", lasts,    "Users=root",  "Flags=IGNORE_JOBS",
                          list.s,          NULL};
    requeue_give_nodes(scontrol); /* of a run that was ended */
    int rc = list.oom ? topt_nomem(err, NULL) : tell(args, err);
    topt_text_fini(&list);
    return rc;
}

/* Where a job is on its way. */
struct where {
    char state[64], reason[64];
    int64_t restarts;
    struct site_queued job; /* where it waits or runs */
    struct rightsize_shape shape;
    int is_there, is_read;
    int is_gone; /* Slurm knows no such job; else, where it isn't there, Slurm did not answer */
};

static void look(const char *scontrol, const struct rightsize_entry *e, struct where *ret)
{
    struct topt_error err = {0};
    struct topt_text said = {0};
    struct site_queue q = {0};
    char restarts[32];
    *ret = (struct where){.is_there = 0};
    if (site_ask_job(scontrol, e->job, TELL_MS, &said, &err) || !said.s) {
        ret->is_gone = strstr(err.text, "Invalid job id") != NULL;
        topt_text_fini(&said);
        return;
    }
    size_t len = strcspn(said.s, "\n");
    ret->is_there =
        site_value_of(said.s, len, "JobState", 1, ret->state, sizeof ret->state) &&
        site_value_of(said.s, len, "Restarts", 1, restarts, sizeof restarts);
    site_value_of(said.s, len, "Reason", 1, ret->reason, sizeof ret->reason);
    ret->restarts = ret->is_there ? strtoll(restarts, NULL, 10) : 0;
    if (!site_queue_read(said.s, &q, &err) && q.n == 1 && q.job[0].id == e->job &&
        !strcmp(q.job[0].user, e->user)) {
        ret->is_read = 1;
        ret->job = q.job[0];
        ret->job.on = NULL; /* the queue's */
        rightsize_shape_of(&ret->job, &ret->shape);
    }
    site_queue_fini(&q);
    topt_text_fini(&said);
}

static enum rightsize_result say(struct rightsize_entry *e, enum rightsize_result r,
                                 const char *words)
{
    snprintf(e->detail, sizeof e->detail, "%s", words);
    return r;
}

enum rightsize_result requeue_stop(const char *scontrol, struct rightsize_entry *e)
{
    struct topt_error err = {0};
    struct where w;
    char id[32];
    look(scontrol, e, &w);
    if (!w.is_read || strcmp(w.state, "RUNNING") != 0 || w.restarts != e->restarts ||
        strcmp(w.job.submitted, e->submitted) != 0)
        return say(e, RIGHTSIZE_LEFT, "it ended meanwhile");
    snprintf(id, sizeof id, "%lld", (long long)e->job);
    if (tell_job(scontrol, "requeuehold", id, &err)) {
        look(scontrol, e, &w);
        if (w.is_there && w.restarts == e->restarts)
            return say(e, RIGHTSIZE_REFUSED, err.text);
    }
    return RIGHTSIZE_BEGUN;
}

static int is_held(const struct where *w)
{
    return w->is_read && site_is_pending(&w->job) && !strcmp(w->reason, held);
}

static int set_priority(const char *scontrol, const struct rightsize_entry *e,
                        struct topt_error *err)
{
    char name[40], priority[40];
    snprintf(name, sizeof name, "JobId=%lld", (long long)e->job);
    snprintf(priority, sizeof priority, "Priority=%lld", (long long)e->priority);
    const char *args[] = {scontrol, "update", name, priority, NULL};
    return tell(args, err);
}

/* It has its shape and is held no more: its place, too, unless it runs already. */
static enum rightsize_result keep_place(const char *scontrol, const struct where *w,
                                        struct rightsize_entry *e)
{
    struct topt_error err = {0};
    snprintf(e->submitted, sizeof e->submitted, "%s", w->job.submitted);
    if (e->priority > 0 && site_is_pending(&w->job) && w->job.priority != e->priority &&
        set_priority(scontrol, e, &err))
        return say(e, RIGHTSIZE_DONE, err.text);
    return RIGHTSIZE_DONE;
}

/* Its shape, and it waits on: RIGHTSIZE_BEGUN where Slurm does not let it go, which the next run tries again. */
static enum rightsize_result let_wait(const char *scontrol, const struct where *w,
                                      struct rightsize_entry *e)
{
    struct topt_error err = {0};
    struct where now = *w;
    char id[32];
    snprintf(id, sizeof id, "%lld", (long long)e->job);
    for (int call = 0; call < 2 && !rightsize_shape_is(&now.shape, &e->to); call++) {
        (void)!rightsize_tell(scontrol, &now.job, &e->to, &err);
        look(scontrol, e, &now);
        if (!is_held(&now))
            return RIGHTSIZE_BEGUN;
    }
    if (tell_job(scontrol, "release", id, &err))
        return say(e, RIGHTSIZE_BEGUN, err.text);
    if (rightsize_shape_is(&now.shape, &e->to))
        return keep_place(scontrol, &now, e);
    return say(e, RIGHTSIZE_HALF, *err.text ? err.text : "it waits with what it ran on");
}

enum rightsize_result requeue_finish(const char *scontrol, int64_t deadline,
                                     struct rightsize_entry *e)
{
    struct where w;
    for (int64_t pause_ms = FIRST_PAUSE_MS;;
         pause_ms = topt_min(2 * pause_ms, LAST_PAUSE_MS)) {
        look(scontrol, e, &w);
        if (w.is_gone)
            return say(e, RIGHTSIZE_LEFT, "the job has ended");
        if (w.restarts == e->restarts && !strcmp(w.state, "RUNNING"))
            return say(e, RIGHTSIZE_LEFT, "it was not stopped");
        if (is_held(&w)) {
            enum rightsize_result r = let_wait(scontrol, &w, e);
            if (r != RIGHTSIZE_BEGUN)
                return r;
        } else if (w.is_read) {
            return rightsize_shape_is(&w.shape, &e->to)
                       ? keep_place(scontrol, &w, e)
                       : say(e, RIGHTSIZE_LEFT, "somebody else released it");
        } else if (w.is_there && strncmp(w.state, "COMPLETING", 10) != 0 &&
                   strncmp(w.state, "REQUEUE", 7) != 0) {
            return say(e, RIGHTSIZE_LEFT, "the job has ended");
        }
        if (topt_clock_ms() >= deadline)
            return RIGHTSIZE_BEGUN;
        nanosleep(&(struct timespec){.tv_nsec = pause_ms * 1000000}, NULL);
    }
}
