/* stops.c - running jobs that stop so that others end by their bounds.
 *
 * A job that grew beyond what it asked for holds GPUs that who comes next would have found
 * free.  Stopped, it waits again with the work that is left, and the plan of all says who
 * is late.  Jobs are stopped one after the other, and of all these sets the one with the
 * least lateness is taken; then each in turn goes on if nobody is later for it. */
#include <stdlib.h>
#include <string.h>

#include "topt_allocate.h"
#include "topt_minmax.h"

enum { MOST_STOPS = 16 };

struct trial {
    const struct topt_alloc_problem *p;
    const struct topt_alloc_job *running;
    size_t n;
    unsigned char *stop;
    struct topt_alloc_held *held;
    struct topt_alloc_job *job;
};

static int is_stopped(const struct trial *t, int64_t id)
{
    for (size_t k = 0; id > 0 && k < t->n; k++)
        if (t->stop[k] && t->running[k].id == id)
            return 1;
    return 0;
}

/* Seconds by which jobs end after their bounds; -1 without memory. */
static int64_t lateness(struct trial *t)
{
    struct topt_alloc_problem p = *t->p;
    struct topt_alloc_plan plan;
    int64_t late = 0;
    p.held = t->held;
    p.job = t->job;
    p.nheld = p.njobs = 0;
    for (size_t i = 0; i < t->p->nheld; i++)
        if (!is_stopped(t, t->p->held[i].job))
            t->held[p.nheld++] = t->p->held[i];
    for (size_t k = 0; k < t->n; k++)
        if (t->stop[k])
            t->job[p.njobs++] = t->running[k];
    memcpy(t->job + p.njobs, t->p->job, t->p->njobs * sizeof *t->job);
    p.njobs += t->p->njobs;
    if (topt_allocate(&p, NULL, &plan, NULL))
        return -1;
    for (size_t i = 0; i < p.njobs; i++)
        if (t->job[i].bound_s && plan.spot[i].start_s >= 0)
            late += topt_max(0, topt_allocate_end(&t->job[i], &plan.spot[i]) -
                                    t->job[i].bound_s);
    topt_allocate_fini(&plan);
    return late;
}

/* GPUs that a running job has beyond what it asked for. */
static int64_t beyond(const struct trial *t, size_t k)
{
    const struct topt_alloc_job *j = &t->running[k];
    int64_t gpus = -topt_allocate_gpus(&j->shape[j->asked]);
    for (size_t i = 0; i < t->p->nheld; i++)
        gpus += t->p->held[i].job == j->id ? t->p->held[i].takes.gpus : 0;
    return gpus;
}

/* The one that has most of those that go on; n where none has any. */
static size_t next_to_stop(const struct trial *t)
{
    size_t best = t->n;
    for (size_t k = 0; k < t->n; k++)
        if (!t->stop[k] && beyond(t, k) > (best < t->n ? beyond(t, best) : 0))
            best = k;
    return best;
}

static int choose(struct trial *t, unsigned char *best)
{
    int64_t least = lateness(t), late = least;
    for (int n = 0; n < MOST_STOPS && least > 0; n++) {
        size_t k = next_to_stop(t);
        if (k == t->n)
            break;
        t->stop[k] = 1;
        if ((late = lateness(t)) < 0)
            return -1;
        if (late < least) {
            least = late;
            memcpy(best, t->stop, t->n);
        }
    }
    memcpy(t->stop, best, t->n);
    for (size_t k = 0; k < t->n && least >= 0; k++) {
        if (!best[k])
            continue;
        t->stop[k] = 0;
        if ((late = lateness(t)) < 0)
            return -1;
        t->stop[k] = late > least;
        best[k] = t->stop[k];
    }
    return least < 0 ? -1 : 0;
}

int topt_allocate_stops(const struct topt_alloc_problem *p,
                        const struct topt_alloc_job *running, size_t n,
                        unsigned char *ret_stop, struct topt_error *err)
{
    struct trial t = {.p = p,
                      .running = running,
                      .n = n,
                      .stop = calloc(n + 1, 1),
                      .held = calloc(p->nheld + 1, sizeof *t.held),
                      .job = calloc(p->njobs + n + 1, sizeof *t.job)};
    memset(ret_stop, 0, n);
    int rc = t.stop && t.held && t.job ? choose(&t, ret_stop) : -1;
    free(t.stop);
    free(t.held);
    free(t.job);
    return rc ? topt_nomem(err, "the queue") : 0;
}
