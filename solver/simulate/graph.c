/* graph.c - a program as a graph of tasks.
 *
 * A task waits for the last one that touched each of its buffers, and for the one before
 * it in the program (the chain).  Not on the chain is what the system moves asynchronously, and the
 * adding up of what was moved so.  A parameter is gathered asynchronously no earlier than when the
 * unit before its own begins: two units are there at once (FSDP's prefetch, Zhao et al.
 * 2023).  A unit is one of the model, or an operator where parameters are gathered by
 * operator or are in none. */
#include "graph.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

struct maker {
    struct sim_graph *g;
    int *last;  /* by buffer: the task that touched it last, -1: none since it is there */
    int chain;  /* the last task on it, -1: none yet */
    int unit;   /* at work, -1: none yet */
    int begun;  /* the chain when the unit at work began, as 'opened' for the next one */
    int opened; /* gathers of the unit at work wait for this; -1: for nothing */
    int *packed; /* by instruction after the micro-batches: its bucket's task, -1: none */
    enum topt_part part;
    int micro;
    struct topt_error *err;
};

/* ---- tasks and edges --------------------------------------------------------------- */

static int no_memory(struct maker *w)
{
    return topt_fail(w->err, TOPT_ERR_NOMEM, "no memory for a simulation");
}

static int grow(struct sim_graph *g)
{
    int cap = g->cap ? 2 * g->cap : 1024;
    if (TOPT_RESIZE(g->task, cap) || TOPT_RESIZE(g->first, cap) ||
        TOPT_RESIZE(g->waits, cap))
        return -1;
    g->cap = cap;
    return 0;
}

static uint8_t links_of(const struct sim_graph *g, uint32_t axes)
{
    struct topt_group group = topt_mesh_group(g->k->mesh, axes);
    return (uint8_t)((group.per_node > 1) << TOPT_LINK_NODE | (group.nodes > 1)
                                                                  << TOPT_LINK_NETWORK);
}

/* The new task's number, or -1. */
static int add_task(struct maker *w, int instr)
{
    struct sim_graph *g = w->g;
    const struct topt_instr_time *t = &g->timed->time[instr];
    if (g->n == g->cap && grow(g))
        return no_memory(w);
    struct topt_task x = {
        .instr = instr, .micro = w->micro, .part = w->part, .packed = 1, .ns = t->ns};
    if (t->network && t->ns)
        x.links = links_of(g, g->timed->program->instr[instr].axes);
    x.async = x.links && topt_overlap_has(g->o->overlap, (enum topt_async)t->async);
    g->task[g->n] = x;
    g->first[g->n] = -1;
    g->waits[g->n] = 0;
    return g->n++;
}

static int add_edge(struct maker *w, int from, int to)
{
    struct sim_graph *g = w->g;
    if (from < 0 || from == to)
        return 0;
    if (TOPT_ROOM(g->edge, g->nedges, g->edges_cap, 4096))
        return no_memory(w);
    g->edge[g->nedges] = (struct sim_edge){to, g->first[from]};
    g->first[from] = g->nedges++;
    g->waits[to]++;
    return 0;
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

static int unit_of(const struct maker *w, int op)
{
    int by_operator = w->g->k->settings->gather == TOPT_GATHER_OPERATOR;
    int unit = op >= 0 ? w->g->k->model->unit[op] : -1;
    return unit >= 0 && !by_operator ? unit : op;
}

static int has_params(const struct topt_op *o)
{
    for (int x = 0; x < o->spec->noperands; x++)
        if (o->operand[x].present && o->operand[x].role == TOPT_PARAM)
            return 1;
    return 0;
}

/* The instruction belongs to another unit: the one at work was the one before. */
static void enter(struct maker *w, int op)
{
    int unit = unit_of(w, op);
    if (op < 0 || unit == w->unit || w->part != TOPT_PART_MICRO ||
        (unit == op && !has_params(&w->g->k->model->op[op])))
        return;
    w->unit = unit;
    w->opened = w->begun;
    w->begun = w->chain;
}

/* ---- instructions ------------------------------------------------------------------ */

static int is_async(const struct maker *w, int buffer)
{
    return buffer >= 0 && w->last[buffer] >= 0 && w->g->task[w->last[buffer]].async;
}

/* A task of the chain, unless the system has it beside. */
static int add_instr(struct maker *w, int at)
{
    const struct topt_instr *i = &w->g->timed->program->instr[at];
    if (i->kind == TOPT_I_ALLOC) {
        w->last[i->a] = -1;
        return 0;
    }
    if (i->kind == TOPT_I_FREE)
        return 0;
    enter(w, i->op);
    int beside = i->kind == TOPT_I_ADD && is_async(w, i->a), n = add_task(w, at);
    if (n < 0)
        return -1;
    const struct topt_instr_time *t = &w->g->timed->time[at];
    /* Moves that only rename (slices) go with those beside them. */
    beside |= topt_overlap_has(w->g->o->overlap, (enum topt_async)t->async);
    if (t->async == TOPT_ASYNC_PARAM && beside && add_edge(w, w->opened, n))
        return -1;
    if (touch_all(w, n, i))
        return -1;
    if (beside) {
        w->g->task[n].async = 1;
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
    const struct topt_instr *i = &w->g->timed->program->instr[at];
    const struct topt_instr_time *t = &w->g->timed->time[at];
    return i->kind == TOPT_I_MOVE && i->a == i->b &&
           i->move.kind == TOPT_MOVE_ALL_REDUCE && t->ns &&
           t->async == TOPT_ASYNC_GRADIENT &&
           topt_overlap_has(w->g->o->overlap, TOPT_ASYNC_GRADIENT);
}

struct gradient {
    int instr, made; /* by the task */
};

static int by_time(const void *a, const void *b)
{
    const struct gradient *x = a, *y = b;
    if (x->made != y->made)
        return x->made < y->made ? -1 : 1;
    return (x->instr > y->instr) - (x->instr < y->instr);
}

/* One task for 'n' gradients that go together. */
static int add_bucket(struct maker *w, const struct gradient *of, int n, int64_t bytes)
{
    const struct topt_program *p = w->g->timed->program;
    int task = add_task(w, of[0].instr);
    if (task < 0)
        return -1;
    struct topt_task *x = &w->g->task[task];
    x->packed = n;
    x->ns = topt_router_time(w->g->k->router, TOPT_ALL_REDUCE, p->instr[of[0].instr].axes,
                             bytes)
                .ns;
    for (int i = 0; i < n; i++) {
        w->packed[of[i].instr - p->micro_end] = task;
        if (touch(w, task, p->instr[of[i].instr].a))
            return -1;
    }
    return 0;
}

static int fill_buckets(struct maker *w, const struct gradient *all, int n)
{
    const struct topt_program *p = w->g->timed->program;
    for (int from = 0, to; from < n; from = to) {
        const struct topt_instr *first = &p->instr[all[from].instr];
        int64_t bytes = p->buffer[first->a].bytes;
        for (to = from + 1; to < n; to++) {
            const struct topt_instr *i = &p->instr[all[to].instr];
            int64_t more = p->buffer[i->a].bytes;
            if (i->axes != first->axes || bytes + more > w->g->o->bucket_bytes ||
                p->buffer[i->a].elem != p->buffer[first->a].elem)
                break;
            bytes += more;
        }
        if (add_bucket(w, all + from, to - from, bytes))
            return -1;
    }
    return 0;
}

/* Gradients in the order in which backward makes them. */
static int pack(struct maker *w)
{
    const struct topt_program *p = w->g->timed->program;
    struct gradient *all = calloc((size_t)(p->ninstr - p->micro_end) + 1, sizeof *all);
    int n = 0;
    if (!all)
        return no_memory(w);
    for (int at = p->micro_end; at < p->ninstr; at++)
        if (may_be_packed(w, at))
            all[n++] = (struct gradient){at, w->last[p->instr[at].a]};
    qsort(all, (size_t)n, sizeof *all, by_time);
    int rc = fill_buckets(w, all, n);
    free(all);
    return rc;
}

/* ---- the whole --------------------------------------------------------------------- */

static int add_range(struct maker *w, enum topt_part part, int micro, int from, int to)
{
    w->part = part;
    w->micro = micro;
    for (int at = from; at < to; at++) {
        int packed = part == TOPT_PART_END && w->packed[at - from] >= 0;
        if (!packed && add_instr(w, at))
            return -1;
    }
    return 0;
}

static int make(struct maker *w)
{
    const struct topt_program *p = w->g->timed->program;
    if (add_range(w, TOPT_PART_BEGIN, 0, p->init_end, p->micro_begin))
        return -1;
    for (int u = 0; u < w->g->micros; u++) {
        w->unit = -1;
        if (add_range(w, TOPT_PART_MICRO, u, p->micro_begin, p->micro_end))
            return -1;
    }
    w->part = TOPT_PART_END;
    if (w->g->o->bucket_bytes > 0 && pack(w))
        return -1;
    return add_range(w, TOPT_PART_END, w->g->micros - 1, p->micro_end, p->ninstr);
}

int sim_graph_make(struct sim_graph *g, struct topt_error *err)
{
    const struct topt_program *p = g->timed->program;
    size_t nend = (size_t)(p->ninstr - p->micro_end);
    struct maker w = {
        .g = g, .chain = -1, .unit = -1, .begun = -1, .opened = -1, .err = err};
    w.last = malloc(((size_t)p->nbuffers + 1) * sizeof *w.last);
    w.packed = malloc((nend + 1) * sizeof *w.packed);
    int rc = !w.last || !w.packed ? no_memory(&w) : 0;
    if (!rc) {
        memset(w.last, 0xff, ((size_t)p->nbuffers + 1) * sizeof *w.last);
        memset(w.packed, 0xff, (nend + 1) * sizeof *w.packed);
        rc = make(&w);
    }
    free(w.last);
    free(w.packed);
    return rc;
}

void sim_graph_fini(struct sim_graph *g)
{
    free(g->task);
    free(g->first);
    free(g->waits);
    free(g->edge);
}
