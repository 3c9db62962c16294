/* pipeline.c - passes of micro-batches through stages as tasks.
 *
 * Each stage is a chain of passes in the order of its row.  Links carry activations down and gradients up at
 * the same time.  While every stage runs a group of micro-batches forward and one backward in turn, groups are
 * the periods of a folded schedule (topt_schedule_fold); a pass depends on passes of its own period and of the
 * one before. */
#include "topt_pipeline.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TASKS = 1 << 16 };

struct pipe {
    const struct topt_pipeline *p;
    const struct topt_order *order;
    struct topt_schedule *s;
    /* as laid out: with fewer micro-batches, where folded */
    struct topt_order_shape shape;
    int64_t group;                /* micro-batches of a period */
    int64_t periods;              /* of the whole step */
    int64_t laid_out;             /* periods that the schedule has */
    int64_t rows;                 /* micro-batches that are under way at once, at most */
    struct topt_order_plan *plan; /* by stage */
    int *chain;                   /* ... its last task; -1: none */
    int64_t *turn;                /* ... the number of its next pass */
    /* By direction, and of that by chunk and micro-batch: the task after which the next chunk has this one's output;
     * and the pass from which on the chunk keeps bytes (backward: the first part of two).  A task is stored as its number
     * and 1; 0: there is none yet. */
    int *sent[2], *kept[2];
    int *left; /* by micro-batch: chunks that it has yet to leave */
    struct topt_error *err;
};

enum { TASKS_KEPT = 4 }; /* by chunk and micro-batch */

static int *at(const struct pipe *x, int *of, int chunk, int64_t micro_batch)
{
    return &of[(size_t)(micro_batch % x->rows) *
                   (size_t)(x->shape.stages * x->shape.chunks) +
               (size_t)chunk];
}

/* Adds a task of a stage after the task 'before'; its number, or -1. */
static int follow(struct pipe *x, int stage, int64_t ns, int before)
{
    struct topt_task t = {.ns = ns, .owner = stage};
    int task = topt_schedule_add(x->s, &t, x->err);
    return task < 0 || topt_schedule_after(x->s, task, before, x->err) ? -1 : task;
}

/* Writes a pass down, where that is asked for; its times follow after the run. */
static int note(struct pipe *x, struct topt_stage_pass pass)
{
    struct topt_passes *to = x->p->passes;
    if (!to)
        return 0;
    if (TOPT_ROOM(to->at, to->n, to->cap, 256))
        return topt_nomem(x->err, "a pipeline's schedule");
    to->at[to->n++] = pass;
    return 0;
}

static int hold(struct pipe *x, int64_t bytes, enum topt_held component, int from, int to)
{
    struct topt_hold h = {from, to, (int)component, bytes};
    return topt_schedule_hold(x->s, &h, x->err);
}

/* Holds the bytes of a pass while it runs, and with a chunk's last pass those kept from the earlier ones on. */
static int hold_pass(struct pipe *x, const struct topt_chunk *c,
                     const struct topt_turn *t, int task, const int *const kept[2])
{
    int first = t->part == TOPT_TURN_WEIGHTS ? TOPT_HELD_BUFFERS : 0;
    for (int i = first; i < TOPT_HELD_COUNT; i++) {
        int64_t bytes = c->during[t->backward][i];
        if (t->part != TOPT_TURN_WHOLE && i == TOPT_HELD_KEPT)
            /* Nothing is freed before the pass ends. */
            bytes = topt_max(bytes, (int64_t)0) + topt_max(-c->weights_kept, (int64_t)0);
        if (hold(x, bytes, (enum topt_held)i, task, task))
            return -1;
    }
    if (!t->backward || t->part == TOPT_TURN_INPUTS)
        return 0;
    if (t->part == TOPT_TURN_WEIGHTS &&
        hold(x, c->weights_kept, TOPT_HELD_KEPT, *kept[1] - 1, task))
        return -1;
    return hold(x, c->kept, TOPT_HELD_KEPT, *kept[0] - 1, task);
}

static int64_t pass_ns(const struct topt_chunk *c, const struct topt_turn *t)
{
    return t->part == TOPT_TURN_WEIGHTS  ? c->weights_ns
           : t->part == TOPT_TURN_INPUTS ? c->ns[1] - c->weights_ns
                                         : c->ns[t->backward];
}

/* Sends the output of a pass to the chunk that reads it, unless that is on the same stage. */
static int send(struct pipe *x, int stage, int from, int to, int task, int *ret)
{
    int sent = task;
    if (topt_order_stage(x->order, &x->shape, to) != stage) {
        sent = follow(x, stage, x->p->send_ns[topt_min(from, to)], task);
        if (sent < 0)
            return -1;
        if (x->order->sends_wait || x->p->sends_wait)
            x->chain[stage] = sent;
    }
    *ret = sent + 1;
    return 0;
}

/* A micro-batch leaves a chunk for the last time.  When it has left all chunks, a later one takes its row. */
static void let_go(struct pipe *x, int64_t micro_batch)
{
    size_t n = (size_t)(x->shape.stages * x->shape.chunks);
    if (--x->left[micro_batch % x->rows])
        return;
    for (int i = 0; i < 2; i++) {
        memset(at(x, x->kept[i], 0, micro_batch), 0, n * sizeof(int));
        memset(at(x, x->sent[i], 0, micro_batch), 0, n * sizeof(int));
    }
}

/* A micro-batch enters the first chunk. */
static int enter(struct pipe *x, int64_t micro_batch)
{
    int *left = &x->left[micro_batch % x->rows];
    if (*left)
        return topt_fail(x->err, TOPT_ERR_INTERNAL,
                         "%s has more micro-batches under way than there is room for",
                         x->order->name);
    *left = x->shape.stages * x->shape.chunks;
    return 0;
}

/* A pass of a stage through the chunk 'own'. */
struct visit {
    struct topt_turn turn;
    int own, writes, to; /* where it 'writes', 'to' is the chunk that reads its output */
    int given;           /* the task that sends its input, as in pipe.sent */
    int *kept[2];        /* of its chunk and micro-batch, in pipe.kept */
};

/* The 'i'th pass of a stage; returns 0 where its input is not made yet, else 1. */
static int visit(const struct pipe *x, int stage, int64_t i, struct visit *v)
{
    struct topt_turn t = topt_order_turn(&x->plan[stage], i);
    int n = x->shape.stages * x->shape.chunks;
    int own = topt_order_chunk(x->order, &x->shape, stage, t.chunk);
    int from = t.backward ? own + 1 : own - 1, to = t.backward ? own - 1 : own + 1;
    int apart = t.part == TOPT_TURN_WEIGHTS; /* of the stage alone */
    int reads = !apart && from >= 0 && from < n;
    *v = (struct visit){.turn = t, .own = own, .to = to};
    v->writes = !apart && to >= 0 && to < n;
    v->given = reads ? *at(x, x->sent[t.backward], from, t.micro_batch) : 0;
    for (int k = 0; k < 2; k++)
        v->kept[k] = at(x, x->kept[k], own, t.micro_batch);
    return !((reads && !v->given) || (t.backward && !*v->kept[0]));
}

/* Makes 'task' the pass: with its input, its bytes and its output. */
static int make(struct pipe *x, int stage, struct visit *v, int task)
{
    const struct topt_turn *t = &v->turn;
    int apart = t->part == TOPT_TURN_WEIGHTS;
    if (topt_schedule_after(x->s, task, v->given - 1, x->err) ||
        hold_pass(x, &x->p->chunk[v->own], t, task, (const int *const *)v->kept) ||
        note(x, (struct topt_stage_pass){task, stage, v->own, apart ? 2 : t->backward,
                                         t->micro_batch, 0, 0}))
        return -1;
    if (!t->backward && v->own == 0 && enter(x, t->micro_batch))
        return -1;
    if (!t->backward || t->part == TOPT_TURN_INPUTS)
        *v->kept[t->backward] = task + 1;
    if (v->writes && send(x, stage, v->own, v->to, task,
                          at(x, x->sent[t->backward], v->own, t->micro_batch)))
        return -1;
    if (t->backward && t->part != TOPT_TURN_INPUTS)
        let_go(x, t->micro_batch);
    return 0;
}

/* Adds the next pass of a stage, or two that run as one, and returns 1; 0 where an input is not made yet; -1: failed. */
static int pass(struct pipe *x, int stage)
{
    struct visit v[2];
    int64_t i = x->turn[stage], ns;
    int n = 1 + (x->p->pair_ns && topt_order_pairs(&x->plan[stage], i));
    for (int k = 0; k < n; k++)
        if (!visit(x, stage, i + k, &v[k]))
            return 0;
    ns = n > 1 ? x->p->pair_ns[v[1].own * x->shape.chunks + v[0].turn.chunk]
               : pass_ns(&x->p->chunk[v[0].own], &v[0].turn);
    int task = follow(x, stage, ns, x->chain[stage]);
    if (task < 0)
        return -1;
    x->chain[stage] = task;
    x->turn[stage] += n;
    for (int k = 0; k < n; k++)
        if (make(x, stage, &v[k], task))
            return -1;
    return 1;
}

/* Adds each stage's passes before the turn 'last', as far as passes before that turn make their inputs. */
static int passes_until(struct pipe *x, int64_t last)
{
    for (int more = 1; more;) {
        more = 0;
        for (int stage = 0; stage < x->shape.stages; stage++)
            while (x->turn[stage] < topt_min(last, x->plan[stage].turns)) {
                int made = pass(x, stage);
                if (made < 0)
                    return -1;
                if (!made)
                    break;
                more = 1;
            }
    }
    return 0;
}

/* Plans the orders of all stages for so many micro-batches. */
static void plan_orders(struct pipe *x, int64_t micro_batches)
{
    x->shape.micro_batches = micro_batches;
    for (int i = 0; i < x->shape.stages; i++)
        topt_order_plan_by(x->order, &x->shape, x->group, i, &x->plan[i]);
}

static int begin(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct pipe *x = of;
    size_t passes = (size_t)x->rows * (size_t)(x->shape.stages * x->shape.chunks);
    (void)s;
    (void)err;
    memset(x->sent[0], 0, (TASKS_KEPT * passes + (size_t)x->rows) * sizeof(int));
    for (int i = 0; i < x->shape.stages; i++)
        x->chain[i] = -1;
    memset(x->turn, 0, (size_t)x->shape.stages * sizeof *x->turn);
    plan_orders(x, x->p->shape.micro_batches);
    x->laid_out = 0;
    if (x->p->passes)
        x->p->passes->n = 0;
    return 0;
}

static int64_t turns_of_period(const struct pipe *x)
{
    return x->order->turns * x->shape.chunks * x->group;
}

static int period(void *of, struct topt_schedule *s, int64_t k, struct topt_error *err)
{
    struct pipe *x = of;
    (void)s;
    (void)err;
    x->laid_out = k + 1;
    return x->periods ? passes_until(x, (k + 1) * turns_of_period(x)) : 0;
}

/* The step ends like one of as many micro-batches as are laid out: those of the periods, and those behind them. */
static int end(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct pipe *x = of;
    (void)s;
    if (x->periods)
        plan_orders(x, x->p->shape.micro_batches - (x->periods - x->laid_out) * x->group);
    if (passes_until(x, INT64_MAX))
        return -1;
    for (int i = 0; i < x->shape.stages; i++) {
        if (x->turn[i] < x->plan[i].turns)
            return topt_fail(err, TOPT_ERR_INTERNAL, "stage %d of %s waits for ever", i,
                             x->order->name);
        int task = follow(x, i, x->p->end_ns[i], x->chain[i]);
        if (task < 0 || note(x, (struct topt_stage_pass){task, i, -1, 0, 0, 0, 0}))
            return -1;
    }
    return 0;
}

static int check(const struct topt_pipeline *p, const struct topt_order *o,
                 struct topt_error *err)
{
    const struct topt_order_shape *s = &p->shape;
    if (s->chunks < o->least_chunks || s->chunks > o->most_chunks)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the schedule %s has %d to %d chunks a stage, not %d", o->name,
                         o->least_chunks, o->most_chunks, s->chunks);
    if (s->micro_batches < topt_order_least(o, s->stages))
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "the schedule %s needs %lld micro-batches for %d stages, not %lld", o->name,
            (long long)topt_order_least(o, s->stages), s->stages,
            (long long)s->micro_batches);
    if (!topt_order_takes(o, s))
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "the schedule %s needs a number of micro-batches that %d stages divide, "
            "not %lld",
            o->name, s->stages, (long long)s->micro_batches);
    return 0;
}

/* Periods end where the passes of the first stage cease to repeat, and leave as many micro-batches as the order needs. */
static void plan_periods(struct pipe *x)
{
    const struct topt_order *o = x->order;
    const struct topt_order_shape *p = &x->shape;
    int64_t ahead = 0, until = INT64_MAX, late = o->splits ? p->stages : 0;
    for (int i = 0; i < p->stages; i++) {
        ahead = topt_max(ahead, x->plan[i].ahead);
        until = topt_min(until, x->plan[i].repeats_until);
    }
    x->periods = until / turns_of_period(x);
    if (o->v)
        x->periods =
            topt_min(x->periods, p->micro_batches - topt_order_least(o, p->stages));
    x->rows =
        topt_min(ahead / (o->v ? 1 : p->chunks) + 2 * x->group + p->stages + late + 1,
                 p->micro_batches);
}

static int run(struct pipe *x, int64_t *ret_ns)
{
    struct topt_folded folded;
    struct topt_periodic steady = {.of = x,
                                   .periods = topt_max(x->periods, (int64_t)1),
                                   .reach = 2,
                                   .begin = begin,
                                   .period = period,
                                   .end = end};
    if (topt_schedule_fold(x->s, &steady, MAX_TASKS, &folded, x->err))
        return -1;
    *ret_ns = x->s->time_ns;
    struct topt_passes *p = x->p->passes;
    for (int i = 0; p && i < p->n; i++) {
        p->at[i].start_ns = x->s->task[p->at[i].task].start_ns;
        p->at[i].end_ns = x->s->task[p->at[i].task].end_ns;
    }
    if (p)
        p->micro_batches = x->shape.micro_batches;
    return 0;
}

static void close_pipe(struct pipe *x)
{
    free(x->sent[0]);
    free(x->turn);
    free(x->plan);
}

static int open_pipe(struct pipe *x)
{
    size_t stages = (size_t)x->shape.stages;
    x->turn = malloc(stages * sizeof *x->turn);
    x->plan = malloc(stages * sizeof *x->plan);
    if (x->plan) {
        plan_orders(x, x->shape.micro_batches);
        plan_periods(x);
    }
    size_t passes = (size_t)x->rows * stages * (size_t)x->shape.chunks;
    int *room = malloc((TASKS_KEPT * passes + (size_t)x->rows + stages) * sizeof *room);
    x->sent[0] = room;
    if (!room || !x->turn || !x->plan) {
        close_pipe(x);
        return topt_nomem(x->err, "a pipeline's schedule");
    }
    x->sent[1] = room + passes;
    x->kept[0] = room + 2 * passes;
    x->kept[1] = room + 3 * passes;
    x->left = room + TASKS_KEPT * passes;
    x->chain = x->left + x->rows;
    return 0;
}

int topt_pipeline_run(struct topt_schedule *s, const struct topt_pipeline *p,
                      int64_t *ret_ns, struct topt_pipeline_held *ret_held,
                      struct topt_error *err)
{
    const struct topt_order_shape *shape = &p->shape;
    const struct topt_order *o = &topt_orders[p->order];
    struct pipe x = {.p = p,
                     .order = o,
                     .s = s,
                     .shape = *shape,
                     .group = shape->chunks > 1 && !o->v ? topt_order_group(o, shape) : 1,
                     .err = err};
    if (check(p, o, err) || open_pipe(&x))
        return -1;
    s->owners = shape->stages;
    s->chained = 1;
    int rc = run(&x, ret_ns);
    if (ret_held && !rc) {
        memset(ret_held, 0, (size_t)shape->stages * sizeof *ret_held);
        rc = topt_schedule_peak(s, TOPT_HELD_COUNT, ret_held[0].bytes, err);
    }
    s->chained = 0;
    s->owners = 1;
    close_pipe(&x);
    return rc;
}
