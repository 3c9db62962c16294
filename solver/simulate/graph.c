/* graph.c - a program as tasks of a schedule.
 *
 * A task waits for the last one that touched each of its buffers, and for the one before
 * it in the program (the chain).  Not on the chain is what the system moves asynchronously, and the
 * adding up of what was moved so.  A parameter is gathered asynchronously no earlier than when the
 * unit before its own begins: two units are there at once (FSDP's prefetch, Zhao et al.
 * 2023).  A framework's gradients are reduced no earlier than when their operator's backward ends, since
 * that is one node of autograd, after which hooks run.  A unit is one of the model, or an operator where parameters are gathered by
 * operator or are in none.  Micro-batches are the periods that are folded. */
#include "graph.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

/* More tasks are made only where the beginning and a few micro-batches have them. */
enum { MAX_TASKS = 1 << 18 };

struct maker {
    const struct topt_costing *k;
    const struct topt_simulate_options *o;
    const struct topt_program *p;
    struct topt_simulation *to;
    struct topt_schedule *s; /* its schedule */
    int cap;                 /* of its 'task' */
    int *last; /* by buffer: the task that touched it last, -1: none since it is there */
    int chain; /* the last task on it, -1: none yet */
    int *unit_of; /* by operator: its unit */
    int unit;     /* at work, -1: none yet */
    int *ended;   /* by operator: the last task of its backward */
    int begun;   /* the chain when the unit at work began, as 'opened' for the next one */
    int opened;  /* gathers of the unit at work wait for this; -1: for nothing */
    int *packed; /* by instruction after the micro-batches: its bucket's task, -1: none */
    int before;  /* the chain when the last micro-batch began */
    /* When the host has started the kernels so far, and when the device would end them without
     * asynchronous communication. */
    int64_t host, device;
    enum topt_part part;
    int micro;
    struct topt_error *err;
};

/* ---- tasks ------------------------------------------------------------------------- */

/* The new task's number, or -1. */
static int add(struct maker *w, const struct topt_task *x, int instr)
{
    if (TOPT_ROOM(w->to->task, w->s->n, w->cap, 1024))
        return topt_nomem(w->err, "a simulation");
    w->to->task[w->s->n] = (struct topt_simulated){instr, w->micro, w->part, 0};
    return topt_schedule_add(w->s, x, w->err);
}

static int add_task(struct maker *w, int instr)
{
    const struct topt_instr_time *t = &w->p->time[instr];
    struct topt_task x = {.ns = t->ns};
    if (t->network && t->ns)
        x.links = topt_group_links(w->k->mesh, w->p->instr[instr].axes);
    x.async = x.links && topt_overlap_has(w->o->overlap, (enum topt_async)t->async);
    w->device += x.async ? 0 : t->ns;
    w->host += t->host_ns;
    return add(w, &x, instr);
}

static int add_edge(struct maker *w, int from, int to)
{
    return topt_schedule_after(w->s, to, from, w->err);
}

static int touch(struct maker *w, int task, int buffer)
{
    if (buffer < 0)
        return 0;
    int before = w->last[buffer];
    w->last[buffer] = task;
    return add_edge(w, before, task);
}

static int touch_all(struct maker *w, int task, const struct topt_instr *i)
{
    const int named[] = {i->a, i->b, i->c, i->d, i->e};
    for (int n = 0; n < 5; n++)
        if (touch(w, task, named[n]))
            return -1;
    for (int x = 0; x < TOPT_MAX_OPERANDS; x++)
        if (touch(w, task, i->value[x]) || touch(w, task, i->grad[x]))
            return -1;
    return 0;
}

/* ---- units ------------------------------------------------------------------------- */

/* The instruction belongs to another unit: the one at work was the one before. */
static void enter(struct maker *w, int op)
{
    if (op < 0 || w->unit_of[op] == w->unit || w->part != TOPT_PART_MICRO)
        return;
    w->unit = w->unit_of[op];
    w->opened = w->begun;
    w->begun = w->chain;
}

/* ---- instructions ------------------------------------------------------------------ */

/* The device waits on the chain until the host has started the kernels before the instruction's. */
static int wait_for_host(struct maker *w, int at)
{
    struct topt_task x = {.ns = w->host - w->device, .links = 1 << TOPT_LINK_HOST};
    if (w->p->time[at].network || !w->p->time[at].ns || x.ns <= 0)
        return 0;
    int before = w->chain;
    w->chain = add(w, &x, at);
    w->device = w->host;
    return w->chain < 0 ? -1 : add_edge(w, before, w->chain);
}

/* A task of the chain, unless the system has it beside. */
static int add_instr(struct maker *w, int at)
{
    const struct topt_instr *i = &w->p->instr[at];
    if (i->kind == TOPT_I_ALLOC) {
        w->last[i->a] = -1;
        return 0;
    }
    if (i->kind == TOPT_I_FREE)
        return 0;
    enter(w, i->op);
    int last = i->kind == TOPT_I_ADD && i->a >= 0 ? w->last[i->a] : -1;
    int beside = last >= 0 && w->s->task[last].async;
    if (!beside && wait_for_host(w, at))
        return -1;
    int n = add_task(w, at);
    if (n < 0)
        return -1;
    const struct topt_instr_time *t = &w->p->time[at];
    /* Moves that only rename (slices) go with those beside them. */
    beside |= topt_overlap_has(w->o->overlap, (enum topt_async)t->async);
    int reduces = t->async == TOPT_ASYNC_GRADIENT && w->k->settings->by_schedule;
    int after = t->async == TOPT_ASYNC_PARAM ? w->opened : reduces ? w->ended[i->op] : -1;
    if (beside && add_edge(w, after, n))
        return -1;
    if (i->kind == TOPT_I_KERNEL && i->backward)
        w->ended[i->op] = n;
    if (touch_all(w, n, i))
        return -1;
    if (beside) {
        w->s->task[n].async = 1;
        return 0;
    }
    int before = w->chain;
    w->chain = n;
    return add_edge(w, before, n);
}

/* ---- buckets ----------------------------------------------------------------------- */

/* A gradient that waits for nothing but its sum over the replicas. */
static int may_be_packed(const struct maker *w, int at)
{
    const struct topt_instr *i = &w->p->instr[at];
    const struct topt_instr_time *t = &w->p->time[at];
    return i->kind == TOPT_I_MOVE && i->a == i->b &&
           i->move.kind == TOPT_MOVE_ALL_REDUCE && t->ns &&
           t->async == TOPT_ASYNC_GRADIENT &&
           topt_overlap_has(w->o->overlap, TOPT_ASYNC_GRADIENT);
}

struct gradient {
    int instr, made; /* by the task */
    /* when it is looked at, from the beginning of the last micro-batch */
    int64_t seen_ns;
};

static int by_time(const void *a, const void *b)
{
    const struct gradient *x = a, *y = b;
    if (x->made != y->made)
        return x->made < y->made ? -1 : 1;
    return (x->instr > y->instr) - (x->instr < y->instr);
}

/* Gradients are looked at at the end of the cycle in which they are made.  In order of time. */
static void look(struct maker *w, struct gradient *all, int n)
{
    int64_t clock = 0, cycle = w->o->cycle_ns;
    for (int i = 0, task = w->before + 1; cycle > 0 && i < n; i++) {
        for (; task <= all[i].made; task++)
            clock += w->s->task[task].async ? 0 : w->s->task[task].ns;
        all[i].seen_ns = (clock / cycle + 1) * cycle;
    }
}

/* The host's waiting from 'ns' to 'until' after the last micro-batch began; its task. */
static int add_wait(struct maker *w, int host, int64_t ns, int64_t until, int instr)
{
    struct topt_task x = {.ns = until - ns, .links = 1 << TOPT_LINK_HOST, .async = 1};
    int task = add(w, &x, instr);
    return task < 0 || add_edge(w, host < 0 ? w->before : host, task) ? -1 : task;
}

/* One task for 'n' gradients that go together. */
static int add_bucket(struct maker *w, const struct gradient *of, int n, int64_t bytes,
                      int host)
{
    int task = add_task(w, of[0].instr);
    if (task < 0 || add_edge(w, host, task))
        return -1;
    w->to->task[task].packed = n;
    w->s->task[task].ns = topt_router_time(w->k->router, TOPT_ALL_REDUCE,
                                           w->p->instr[of[0].instr].axes, bytes)
                              .ns;
    for (int i = 0; i < n; i++) {
        w->packed[of[i].instr - w->p->micro_end] = task;
        if (touch(w, task, w->p->instr[of[i].instr].a))
            return -1;
    }
    return 0;
}

/* How many of 'n' gradients share a bucket, and its bytes. */
static int fill(const struct maker *w, const struct gradient *of, int n,
                int64_t *ret_bytes)
{
    const struct topt_instr *first = &w->p->instr[of->instr];
    *ret_bytes = w->p->buffer[first->a].bytes;
    for (int to = 1; to < n; to++) {
        const struct topt_instr *i = &w->p->instr[of[to].instr];
        int64_t more = w->p->buffer[i->a].bytes;
        if (i->axes != first->axes || *ret_bytes + more > w->o->bucket_bytes ||
            w->p->buffer[i->a].elem != w->p->buffer[first->a].elem ||
            of[to].seen_ns != of->seen_ns)
            return to;
        *ret_bytes += more;
    }
    return n;
}

static int fill_buckets(struct maker *w, const struct gradient *all, int n)
{
    int64_t bytes, waited = 0;
    int host = -1;
    for (int from = 0, many; from < n; from += many) {
        many = fill(w, all + from, n - from, &bytes);
        if (all[from].seen_ns > waited) {
            host = add_wait(w, host, waited, all[from].seen_ns, all[from].instr);
            if (host < 0)
                return -1;
            waited = all[from].seen_ns;
        }
        if (add_bucket(w, all + from, many, bytes, host))
            return -1;
    }
    return 0;
}

/* Gradients in the order in which backward makes them. */
static int pack(struct maker *w)
{
    struct gradient *all =
        calloc((size_t)(w->p->ninstr - w->p->micro_end) + 1, sizeof *all);
    int n = 0;
    if (!all)
        return topt_nomem(w->err, "a simulation");
    for (int at = w->p->micro_end; at < w->p->ninstr; at++)
        if (may_be_packed(w, at))
            all[n++] = (struct gradient){at, w->last[w->p->instr[at].a], 0};
    qsort(all, (size_t)n, sizeof *all, by_time);
    look(w, all, n);
    int rc = fill_buckets(w, all, n);
    free(all);
    return rc;
}

/* ---- the whole --------------------------------------------------------------------- */

static int add_range(struct maker *w, enum topt_part part, int from, int to)
{
    w->part = part;
    for (int at = from; at < to; at++) {
        int packed = part == TOPT_PART_END && w->packed[at - from] >= 0;
        if (!packed && add_instr(w, at))
            return -1;
    }
    return 0;
}

static int begin(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct maker *w = of;
    (void)s;
    (void)err;
    memset(w->last, 0xff, (size_t)w->p->nbuffers * sizeof *w->last);
    memset(w->packed, 0xff, (size_t)(w->p->ninstr - w->p->micro_end) * sizeof *w->packed);
    w->chain = w->begun = w->opened = -1;
    w->micro = 0;
    w->host = w->device = 0;
    return add_range(w, TOPT_PART_BEGIN, w->p->init_end, w->p->micro_begin);
}

static int add_micro(void *of, struct topt_schedule *s, int64_t k, struct topt_error *err)
{
    struct maker *w = of;
    (void)s;
    (void)err;
    w->unit = -1;
    w->micro = (int)k;
    w->before = w->chain;
    return add_range(w, TOPT_PART_MICRO, w->p->micro_begin, w->p->micro_end);
}

static int end(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct maker *w = of;
    (void)s;
    (void)err;
    w->part = TOPT_PART_END;
    if (w->o->bucket_bytes > 0 && pack(w))
        return -1;
    return add_range(w, TOPT_PART_END, w->p->micro_end, w->p->ninstr);
}

int sim_schedule(const struct topt_costing *k, const struct topt_simulate_options *o,
                 struct topt_simulation *ret, struct topt_folded *ret_folded,
                 struct topt_error *err)
{
    const struct topt_program *p = ret->program;
    struct maker w = {
        .k = k, .o = o, .p = ret->program, .to = ret, .s = &ret->schedule, .err = err};
    struct topt_periodic micros = {&w, p->settings.micro_batches, begin, add_micro, end,
                                   0};
    topt_schedule_init(w.s, 1, topt_hw_collective_share(k->hw));
    w.last = malloc(((size_t)p->nbuffers + 1) * sizeof *w.last);
    w.packed = malloc(((size_t)(p->ninstr - p->micro_end) + 1) * sizeof *w.packed);
    w.unit_of = calloc(2 * (size_t)p->model->nops + 1, sizeof *w.unit_of);
    w.ended = w.unit_of ? w.unit_of + p->model->nops : NULL;
    if (w.unit_of)
        topt_gathered_units(p->model, k->settings, w.unit_of);
    int rc = w.last && w.packed && w.unit_of
                 ? topt_schedule_fold(w.s, &micros, MAX_TASKS, ret_folded, err)
                 : topt_nomem(err, "a simulation");
    free(w.last);
    free(w.packed);
    free(w.unit_of);
    return rc;
}
