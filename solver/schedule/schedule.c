/* schedule.c - a schedule's tasks, what each waits for, and the bytes that they hold. */
#include "topt_schedule.h"

#include "topt_array.h"
#include "topt_minmax.h"

#include <stdlib.h>

void topt_schedule_init(struct topt_schedule *s, int owners, double share)
{
    *s = (struct topt_schedule){.owners = owners, .share = share};
}

void topt_schedule_fini(struct topt_schedule *s)
{
    free(s->task);
    free(s->first);
    free(s->last);
    free(s->waits);
    free(s->edge);
    free(s->hold);
    *s = (struct topt_schedule){.owners = 0};
}

void topt_schedule_clear(struct topt_schedule *s)
{
    s->n = s->nedges = s->nholds = 0;
    s->time_ns = 0;
}

static int grow(struct topt_schedule *s)
{
    int cap = s->cap ? 2 * s->cap : 256;
    if (TOPT_RESIZE(s->task, cap) || TOPT_RESIZE(s->first, cap) ||
        TOPT_RESIZE(s->last, cap) || TOPT_RESIZE(s->waits, cap))
        return -1;
    s->cap = cap;
    return 0;
}

int topt_schedule_add(struct topt_schedule *s, const struct topt_task *t,
                      struct topt_error *err)
{
    if (s->n == s->cap && grow(s))
        return topt_nomem(err, "a schedule");
    s->task[s->n] = *t;
    s->first[s->n] = -1;
    s->waits[s->n] = 0;
    return s->n++;
}

int topt_schedule_after(struct topt_schedule *s, int task, int before,
                        struct topt_error *err)
{
    if (before < 0 || before == task)
        return 0;
    if (TOPT_ROOM(s->edge, s->nedges, s->edges_cap, 1024))
        return topt_nomem(err, "a schedule");
    s->edge[s->nedges] = (struct topt_task_edge){task, -1};
    if (s->first[before] < 0)
        s->first[before] = s->nedges;
    else
        s->edge[s->last[before]].next = s->nedges;
    s->last[before] = s->nedges++;
    s->waits[task]++;
    return 0;
}

int topt_schedule_hold(struct topt_schedule *s, const struct topt_hold *h,
                       struct topt_error *err)
{
    if (!h->bytes)
        return 0;
    if (TOPT_ROOM(s->hold, s->nholds, s->holds_cap, 1024))
        return topt_nomem(err, "a schedule");
    s->hold[s->nholds++] = *h;
    return 0;
}

/* The place from which on bytes are free again, which is one of the same owner. */
static int freed_at(const struct topt_schedule *s, const struct topt_hold *h)
{
    return h->to < 0 ? 2 * s->n : s->task[h->to].ended;
}

int topt_schedule_peak(const struct topt_schedule *s, int components, int64_t *ret,
                       struct topt_error *err)
{
    size_t n = 2 * (size_t)s->n + 1, owners = (size_t)s->owners;
    int64_t *change = calloc(n + 2 * owners, sizeof *change);
    int *of = malloc((n + owners) * sizeof *of),
        *at = of + n; /* by place, and by owner: a place */
    int64_t *now = change + n, *most = now + owners;
    if (!change || !of) {
        free(change);
        free(of);
        return topt_nomem(err, "a schedule");
    }
    for (int i = 0; i < s->n; i++)
        of[s->task[i].started] = of[s->task[i].ended] = s->task[i].owner;
    for (const struct topt_hold *h = s->hold; h < s->hold + s->nholds; h++) {
        change[s->task[h->from].started] += h->bytes;
        change[freed_at(s, h)] -= h->bytes;
    }
    for (size_t i = 0; i < owners; i++)
        most[i] = -1;
    for (int i = 0; i < 2 * s->n; i++) {
        int o = of[i];
        now[o] += change[i];
        at[o] = now[o] > most[o] ? i : at[o];
        most[o] = topt_max(most[o], now[o]);
    }
    for (const struct topt_hold *h = s->hold; h < s->hold + s->nholds; h++) {
        const struct topt_task *t = &s->task[h->from];
        if (t->started <= at[t->owner] && at[t->owner] < freed_at(s, h))
            ret[t->owner * components + h->component] += h->bytes;
    }
    free(change);
    free(of);
    return 0;
}
