/* pipeline.c - passes of micro-batches through stages as tasks.
 *
 * Each stage is a chain of passes in the order of its row; links carry what goes down and what goes up
 * at once.  Micro-batches of which every stage has one
 * group forward and one backward in turn are the periods that are folded; passes depend on others of
 * the same period or of the one before. */
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
    struct topt_order_shape
        shape;        /* of what is laid out: fewer micro-batches, where folded */
    int64_t group;    /* micro-batches of a period */
    int64_t periods;  /* that repeat, of the whole step */
    int64_t laid_out; /* ... of these */
    int64_t rows;     /* micro-batches that are under way at once, at most */
    int *chain;       /* by stage: its last task; -1: none */
    int64_t *turn;    /* ... the number of its next pass */
    /* By chunk and micro-batch: the task after which the next chunk has what it made, and the pass
     * itself, forward; 0: none yet, else its number and one. */
    int *sent[2], *forward;
    struct topt_error *err;
};

static int *at(const struct pipe *x, int *of, int chunk, int64_t micro_batch)
{
    return &of[(size_t)(micro_batch % x->rows) *
                   (size_t)(x->shape.stages * x->shape.chunks) +
               (size_t)chunk];
}

/* The next task of a stage's chain; its number, or -1. */
static int follow(struct pipe *x, int stage, int64_t ns, int before)
{
    struct topt_task t = {.ns = ns, .owner = stage};
    int task = topt_schedule_add(x->s, &t, x->err);
    return task < 0 || topt_schedule_after(x->s, task, before, x->err) ? -1 : task;
}

/* Where somebody asks, a task is written down; its times follow when all are known. */
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

static int hold_pass(struct pipe *x, const struct topt_chunk *c,
                     const struct topt_turn *t, int task, int forward)
{
    for (int i = 0; i < TOPT_HELD_COUNT; i++)
        if (hold(x, c->during[t->backward][i], (enum topt_held)i, task, task))
            return -1;
    return t->backward && hold(x, c->kept, TOPT_HELD_KEPT, forward, task) ? -1 : 0;
}

/* What a pass made is on its way to the chunk that reads it. */
static int send(struct pipe *x, int stage, int task, int *ret)
{
    int sent = follow(x, stage, x->p->send_ns, task);
    if (sent < 0)
        return -1;
    if (x->order->sends_wait)
        x->chain[stage] = sent;
    *ret = sent + 1;
    return 0;
}

/* A micro-batch is over, and leaves its place to a later one. */
static void clear_row(struct pipe *x, int64_t micro_batch)
{
    size_t n = (size_t)(x->shape.stages * x->shape.chunks);
    memset(at(x, x->forward, 0, micro_batch), 0, n * sizeof *x->forward);
    memset(at(x, x->sent[0], 0, micro_batch), 0, n * sizeof *x->forward);
    memset(at(x, x->sent[1], 0, micro_batch), 0, n * sizeof *x->forward);
}

/* The next pass of a stage: 1; 0 where what it reads is not made yet; -1. */
static int pass(struct pipe *x, int stage)
{
    struct topt_turn t = topt_order_turn(x->order, &x->shape, stage, x->turn[stage]);
    int n = x->shape.stages * x->shape.chunks, own = t.chunk * x->shape.stages + stage;
    int from = t.backward ? own + 1 : own - 1, to = t.backward ? own - 1 : own + 1;
    int reads = from >= 0 && from < n, writes = to >= 0 && to < n;
    const struct topt_chunk *c = &x->p->chunk[own];
    int *forward = at(x, x->forward, own, t.micro_batch);
    int given = reads ? *at(x, x->sent[t.backward], from, t.micro_batch) : 0;
    if ((reads && !given) || (t.backward && !*forward))
        return 0;
    int task = follow(x, stage, c->ns[t.backward], x->chain[stage]);
    if (task < 0 || topt_schedule_after(x->s, task, given - 1, x->err) ||
        hold_pass(x, c, &t, task, *forward - 1) ||
        note(x,
             (struct topt_stage_pass){task, stage, own, t.backward, t.micro_batch, 0, 0}))
        return -1;
    x->chain[stage] = task;
    x->turn[stage]++;
    if (!t.backward)
        *forward = task + 1;
    else if (own == 0)
        clear_row(x, t.micro_batch);
    if (writes && send(x, stage, task, at(x, x->sent[t.backward], own, t.micro_batch)))
        return -1;
    return 1;
}

/* Each stage's passes before the turn 'last', as far as what they read is made by passes before
 * that. */
static int passes_until(struct pipe *x, int64_t last)
{
    for (int more = 1; more;) {
        more = 0;
        for (int stage = 0; stage < x->shape.stages; stage++)
            while (x->turn[stage] < last) {
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

static int begin(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct pipe *x = of;
    size_t passes = (size_t)x->rows * (size_t)(x->shape.stages * x->shape.chunks);
    (void)s;
    (void)err;
    memset(x->forward, 0, 3 * passes * sizeof *x->forward);
    for (int i = 0; i < x->shape.stages; i++)
        x->chain[i] = -1;
    memset(x->turn, 0, (size_t)x->shape.stages * sizeof *x->turn);
    x->shape.micro_batches = x->p->shape.micro_batches;
    x->laid_out = 0;
    if (x->p->passes)
        x->p->passes->n = 0;
    return 0;
}

static int64_t turns_of_period(const struct pipe *x)
{
    return 2 * x->shape.chunks * x->group;
}

static int period(void *of, struct topt_schedule *s, int64_t k, struct topt_error *err)
{
    struct pipe *x = of;
    (void)s;
    (void)err;
    x->laid_out = k + 1;
    return x->periods ? passes_until(x, (k + 1) * turns_of_period(x)) : 0;
}

/* The step ends as one of only so many micro-batches as were laid out and are left. */
static int end(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct pipe *x = of;
    (void)s;
    if (x->periods)
        x->shape.micro_batches -= (x->periods - x->laid_out) * x->group;
    int64_t all = 2 * x->shape.chunks * x->shape.micro_batches;
    if (passes_until(x, all))
        return -1;
    for (int i = 0; i < x->shape.stages; i++) {
        if (x->turn[i] < all)
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
    if (s->chunks > 1 && s->micro_batches % s->stages)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "the schedule %s needs a number of micro-batches that %d stages divide, "
            "not %lld",
            o->name, s->stages, (long long)s->micro_batches);
    return 0;
}

/* Periods end before the first stage that has no more to send forward. */
static void plan_periods(struct pipe *x)
{
    int64_t all = x->shape.chunks * x->shape.micro_batches, ahead = 0;
    for (int i = 0; i < x->shape.stages; i++)
        ahead = topt_max(ahead, topt_order_ahead(x->order, &x->shape, i));
    x->periods = ahead < all ? (2 * all - ahead) / turns_of_period(x) : 0;
    x->rows = topt_min(ahead / x->shape.chunks + 2 * x->group + x->shape.stages + 1,
                       x->shape.micro_batches);
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

int topt_pipeline_run(struct topt_schedule *s, const struct topt_pipeline *p,
                      int64_t *ret_ns, struct topt_pipeline_held *ret_held,
                      struct topt_error *err)
{
    const struct topt_order_shape *shape = &p->shape;
    struct pipe x = {.p = p,
                     .order = &topt_orders[p->order],
                     .s = s,
                     .shape = *shape,
                     .group = shape->chunks > 1 ? shape->stages : 1,
                     .err = err};
    if (check(p, x.order, err))
        return -1;
    plan_periods(&x);
    size_t stages = (size_t)shape->stages;
    size_t passes = (size_t)x.rows * stages * (size_t)shape->chunks;
    int *room = malloc((3 * passes + stages) * sizeof *room);
    x.turn = malloc(stages * sizeof *x.turn);
    if (!room || !x.turn) {
        free(room);
        free(x.turn);
        return topt_nomem(err, "a pipeline's schedule");
    }
    x.forward = room;
    x.sent[0] = room + passes;
    x.sent[1] = room + 2 * passes;
    x.chain = room + 3 * passes;
    s->owners = shape->stages;
    s->chained = 1;
    int rc = run(&x, ret_ns);
    if (ret_held && !rc) {
        memset(ret_held, 0, stages * sizeof *ret_held);
        rc = topt_schedule_peak(s, TOPT_HELD_COUNT, ret_held[0].bytes, err);
    }
    s->chained = 0;
    s->owners = 1;
    free(room);
    free(x.turn);
    return rc;
}
