/* schedule.c - a schedule's tasks and what each waits for. */
#include "topt_schedule.h"

#include "topt_array.h"

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
    *s = (struct topt_schedule){.owners = 0};
}

void topt_schedule_clear(struct topt_schedule *s)
{
    s->n = s->nedges = 0;
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
