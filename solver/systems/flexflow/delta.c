/* delta.c - tasks and edges that come and go, and what that changes.
 *
 * Devices and links take tasks in the order in which these are ready.  So what is ready
 * before the first task that is new, gone, or has other tasks before it, is as it was: only
 * from then on tasks are run again, which gives what a run of all would, to the nanosecond.
 * Every task takes some time, so that nothing comes before itself. */
#include "ff_data.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <stdlib.h>

/* What comes before a task changed: it is looked at once all of that is there. */
static void change(struct topt_flexflow *f, int t)
{
    struct ff_task *x = &f->task[t];
    if (x->changed)
        return;
    if (TOPT_ROOM(f->changed, f->nchanged, f->changed_cap, 256)) {
        f->oom = 1;
        return;
    }
    x->changed = 1;
    f->changed[f->nchanged++] = t;
}

void ff_forget(struct topt_flexflow *f)
{
    for (int i = 0; i < f->nchanged; i++)
        f->task[f->changed[i]].changed = 0;
    f->nchanged = 0;
    f->gone_from = INT64_MAX;
}

/* ---- running again ----------------------------------------------------------------- */

/* It is ready no sooner than this, by what did not change; what comes after changed tasks
 * alone comes after those. */
static int64_t ready_from(const struct topt_flexflow *f, const struct ff_task *x)
{
    int64_t ready = x->in < 0 ? 0 : -1;
    for (int e = x->in; e >= 0; e = f->edge[e].in_next) {
        const struct ff_task *y = &f->task[f->edge[e].from];
        if (!y->changed)
            ready = topt_max(ready, ff_done(y));
    }
    return ready < 0 ? INT64_MAX : ready;
}

/* Before which nothing changed. */
static int64_t first_change(struct topt_flexflow *f)
{
    int64_t from = f->gone_from;
    for (int i = 0; i < f->nchanged; i++) {
        const struct ff_task *x = &f->task[f->changed[i]];
        if (!x->live)
            continue;
        from = topt_min(from, ready_from(f, x));
        if (!x->fresh)
            from = topt_min(from, x->ready);
    }
    ff_forget(f);
    return from;
}

void ff_remember(struct topt_flexflow *f, int task)
{
    if (TOPT_ROOM(f->ran, f->nran, f->ran_cap, 1024))
        f->oom = 1;
    else
        f->ran[f->nran++] = (struct ff_ran){f->task[task].ready, f->task[task].end, task};
}

/* It ran before anything changed. */
static void stay(struct topt_flexflow *f, const struct ff_task *x)
{
    for (int s = x->slot; s >= 0; s = f->slot[s].more)
        f->free_at[f->slot[s].resource] =
            topt_max(f->free_at[f->slot[s].resource], x->end);
    f->end_ns = topt_max(f->end_ns, x->end);
    for (int e = x->out; e >= 0; e = f->edge[e].out_next) {
        struct ff_task *y = &f->task[f->edge[e].to];
        y->ready = topt_max(y->ready, ff_done(x));
        y->waits--;
    }
}

/* What is run again waits for what is, and is ready no sooner than what stays has ended. */
static void begin(struct topt_flexflow *f, int64_t from)
{
    for (int r = 0; r < f->nresources; r++)
        f->free_at[r] = 0;
    f->end_ns = 0;
    for (int t = 0; t < f->ntasks; t++) {
        struct ff_task *x = &f->task[t];
        x->waits = x->live && (x->fresh || x->ready >= from) ? x->nin : -1;
        if (x->waits < 0)
            continue;
        if (!x->fresh)
            ff_remember(f, t);
        x->ready = 0;
        x->fresh = 0;
    }
    for (int t = 0; t < f->ntasks; t++)
        if (f->task[t].live && f->task[t].waits < 0)
            stay(f, &f->task[t]);
    for (int t = 0; t < f->ntasks; t++)
        if (f->task[t].waits == 0)
            (void)ff_push(f, (struct ff_entry){f->task[t].ready, f->task[t].key, t});
}

int ff_settle(struct topt_flexflow *f, struct topt_error *err)
{
    struct ff_entry e;
    int64_t from = first_change(f);
    f->touched = f->moved = 0;
    if (!f->oom && from < INT64_MAX)
        begin(f, from);
    while (!f->oom && ff_pop(f, &e)) {
        struct ff_task *x = &f->task[e.task];
        int64_t was = x->end;
        x->end = x->ready;
        for (int s = x->slot; s >= 0; s = f->slot[s].more)
            x->end = topt_max(x->end, f->free_at[f->slot[s].resource]);
        x->end += x->ns;
        for (int s = x->slot; s >= 0; s = f->slot[s].more)
            f->free_at[f->slot[s].resource] = x->end;
        f->moved += x->end != was;
        f->end_ns = topt_max(f->end_ns, x->end);
        f->touched++;
        for (int i = x->out; i >= 0; i = f->edge[i].out_next) {
            int to = f->edge[i].to;
            struct ff_task *y = &f->task[to];
            y->ready = topt_max(y->ready, ff_done(x));
            if (--y->waits == 0)
                (void)ff_push(f, (struct ff_entry){y->ready, y->key, to});
        }
    }
    f->nheap = 0;
    return f->oom ? topt_nomem(err, "FlexFlow's tasks") : 0;
}

/* ---- tasks and edges --------------------------------------------------------------- */

static int new_task(struct topt_flexflow *f)
{
    int t = f->free_task;
    if (t >= 0) {
        f->free_task = f->task[t].group_next;
        return t;
    }
    if (TOPT_ROOM(f->task, f->ntasks, f->cap, 1024)) {
        f->oom = 1;
        return -1;
    }
    return f->ntasks++;
}

static int new_slot(struct topt_flexflow *f)
{
    int s = f->free_slot;
    if (s >= 0) {
        f->free_slot = f->slot[s].more;
        return s;
    }
    if (TOPT_ROOM(f->slot, f->nslots, f->slots_cap, 1024)) {
        f->oom = 1;
        return -1;
    }
    return f->nslots++;
}

int ff_task_add(struct topt_flexflow *f, int group, const struct ff_task *of,
                const struct ff_held *held)
{
    int t = new_task(f);
    if (t < 0)
        return -1;
    f->task[t] = *of;
    struct ff_task *x = &f->task[t];
    x->ns += x->ns == 0;
    x->ready = x->end = 0;
    x->in = x->out = x->slot = -1;
    x->live = x->fresh = 1;
    x->changed = 0;
    x->group_next = f->group[group];
    f->group[group] = t;
    f->live++;
    for (int i = 0; i < held->n; i++) {
        int s = new_slot(f);
        if (s < 0)
            return -1;
        f->slot[s] = (struct ff_slot){held->at[i], x->slot};
        f->load[held->at[i]] += x->ns;
        x->slot = s;
    }
    change(f, t);
    return t;
}

static int new_edge(struct topt_flexflow *f)
{
    int e = f->free_edge;
    if (e >= 0) {
        f->free_edge = f->edge[e].out_next;
        return e;
    }
    if (TOPT_ROOM(f->edge, f->nedges, f->edges_cap, 4096)) {
        f->oom = 1;
        return -1;
    }
    return f->nedges++;
}

void ff_edge_add(struct topt_flexflow *f, int from, int to)
{
    if (from < 0 || to < 0)
        return;
    int e = new_edge(f);
    if (e < 0)
        return;
    struct ff_task *a = &f->task[from], *b = &f->task[to];
    f->edge[e] = (struct ff_edge){from, to, b->in, -1, a->out, -1};
    if (b->in >= 0)
        f->edge[b->in].in_before = e;
    if (a->out >= 0)
        f->edge[a->out].out_before = e;
    b->in = e;
    b->nin++;
    a->out = e;
    change(f, to);
}

static void edge_remove(struct topt_flexflow *f, int e)
{
    struct ff_edge *x = &f->edge[e];
    f->task[x->to].nin--;
    *(x->in_before >= 0 ? &f->edge[x->in_before].in_next : &f->task[x->to].in) =
        x->in_next;
    if (x->in_next >= 0)
        f->edge[x->in_next].in_before = x->in_before;
    *(x->out_before >= 0 ? &f->edge[x->out_before].out_next : &f->task[x->from].out) =
        x->out_next;
    if (x->out_next >= 0)
        f->edge[x->out_next].out_before = x->out_before;
    x->out_next = f->free_edge;
    f->free_edge = e;
}

static void task_remove(struct topt_flexflow *f, int t)
{
    struct ff_task *x = &f->task[t];
    while (x->in >= 0)
        edge_remove(f, x->in);
    while (x->out >= 0) {
        int to = f->edge[x->out].to;
        edge_remove(f, x->out);
        change(f, to);
    }
    while (x->slot >= 0) {
        int s = x->slot;
        x->slot = f->slot[s].more;
        f->load[f->slot[s].resource] -= x->ns;
        f->slot[s].more = f->free_slot;
        f->free_slot = s;
    }
    if (!x->fresh)
        f->gone_from = topt_min(f->gone_from, x->ready);
    x->live = 0;
    f->live--;
}

void ff_group_remove(struct topt_flexflow *f, int group)
{
    for (int t = f->group[group], next; t >= 0; t = next) {
        next = f->task[t].group_next;
        task_remove(f, t);
        f->task[t].group_next = f->free_task;
        f->free_task = t;
    }
    f->group[group] = -1;
}
