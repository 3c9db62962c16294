/* run.c - a schedule's tasks run in time.
 *
 * Time goes from one end of a task to the next.  A task that waits for nothing any more joins a queue of its owner:
 * that of the device, of communication that computing waits for, or of asynchronous communication.  All times are sums of
 * integers, except where a device computes beside a move, and so at less than its rate. */
#include "topt_minmax.h"
#include "topt_schedule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The resources of an owner, each of which runs one task at a time.  An asynchronous task that takes several links
 * runs on the first of them. */
enum { DEVICE, WAITED, ASIDE, RUNNERS = ASIDE + TOPT_LINKS };
enum { LINKS = (1 << TOPT_LINK_COUNT) - 1, ALL = (1 << TOPT_LINKS) - 1 };

struct runner {
    int task; /* -1: nothing */
    int64_t left, end;
    double rate;
};

/* Tasks in the order in which they came, linked by engine.next; -1: none. */
struct queue {
    int head, tail;
};

struct owner {
    /* the last by the links that tasks take */
    struct queue device, waited, async[ALL + 1];
    unsigned empty; /* asynchronous queues without tasks, a bit each */
    struct runner at[RUNNERS];
};

struct engine {
    struct topt_schedule *s;
    int64_t now;
    double beside; /* rate of computing beside a move */
    int runners;   /* resources from this one on are not used by any task */
    struct owner *owner;
    struct queue ended;
    int *next;       /* by task: the one after it in its queue */
    int nrun, ncome; /* tasks that have ended, and that have joined a queue */
    int place;       /* the next place in the order of starts and ends */
};

/* ---- queues ------------------------------------------------------------------------ */

static void push(struct engine *e, struct queue *q, int task)
{
    e->next[task] = -1;
    if (q->head < 0)
        q->head = task;
    else
        e->next[q->tail] = task;
    q->tail = task;
}

static int take(struct engine *e, struct queue *q)
{
    int task = q->head;
    q->head = e->next[task];
    return task;
}

/* A task that waits for nothing any more joins its queue. */
static void come(struct engine *e, int task)
{
    struct topt_task *t = &e->s->task[task];
    struct owner *o = &e->owner[t->owner];
    t->ready_ns = t->start_ns = e->now;
    t->exposed_ns = 0;
    t->started = e->ncome++; /* until it starts */
    o->empty &= ~(t->async && t->links && t->ns ? 1u << t->links : 0);
    push(e,
         t->ns == 0  ? &e->ended
         : !t->links ? &o->device
         : t->async  ? &o->async[t->links]
                     : &o->waited,
         task);
}

static void finish_all(struct engine *e)
{
    struct topt_schedule *s = e->s;
    while (e->ended.head >= 0) {
        int task = take(e, &e->ended);
        if (s->task[task].ns == 0)
            s->task[task].started = e->place++;
        s->task[task].end_ns = e->now;
        s->task[task].ended = e->place++;
        e->nrun++;
        for (int i = s->first[task]; i >= 0; i = s->edge[i].next)
            if (--s->waits[s->edge[i].to] == 0)
                come(e, s->edge[i].to);
    }
}

/* ---- starts ------------------------------------------------------------------------ */

static void start(struct engine *e, struct runner *r, int task)
{
    e->s->task[task].start_ns = e->now;
    e->s->task[task].started = e->place++;
    *r = (struct runner){task, e->s->task[task].ns, 0, 1};
}

static void start_first(struct engine *e, struct runner *r, struct queue *q)
{
    if (r->task < 0 && q->head >= 0)
        start(e, r, take(e, q));
}

static int links_of(const struct engine *e, const struct runner *r)
{
    return r->task < 0 ? 0 : e->s->task[r->task].links;
}

/* Of the queues in 'asked', the one whose first task came before those of the others. */
static int first_asked(const struct engine *e, const struct owner *o, unsigned asked)
{
    int first = __builtin_ctz(asked);
    for (; asked; asked &= asked - 1) {
        int links = __builtin_ctz(asked);
        if (e->s->task[o->async[links].head].started <
            e->s->task[o->async[first].head].started)
            first = links;
    }
    return first;
}

/* Starts asynchronous tasks in the order in which they came.  A task must not take a link for which an earlier one
 * waits, so of the tasks that take the same links only the first may start. */
static void start_async(struct engine *e, struct owner *o)
{
    int claimed = 0;
    for (int at = ASIDE; at < e->runners; at++)
        claimed |= links_of(e, &o->at[at]);
    for (unsigned asked = ~o->empty; asked && claimed != ALL;) {
        int links = first_asked(e, o, asked);
        asked &= ~(1u << links);
        if (!(links & claimed)) {
            start(e, &o->at[ASIDE + __builtin_ctz((unsigned)links)],
                  take(e, &o->async[links]));
            o->empty |= o->async[links].head < 0 ? 1u << links : 0;
        }
        claimed |= links;
    }
}

/* ---- time -------------------------------------------------------------------------- */

static void set_rates(struct engine *e, struct owner *o)
{
    int taken = links_of(e, &o->at[WAITED]), moves = 0;
    for (int at = ASIDE; at < e->runners; at++) {
        int links = links_of(e, &o->at[at]);
        o->at[at].rate = links & taken ? 0 : 1;
        moves |= links & LINKS && !(links & taken);
    }
    o->at[DEVICE].rate = moves ? e->beside : 1;
}

static int64_t end_of(const struct engine *e, const struct runner *r)
{
    if (r->task < 0 || r->rate <= 0)
        return INT64_MAX;
    return e->now + (r->rate < 1 ? (int64_t)ceil((double)r->left / r->rate) : r->left);
}

/* While the device computes nothing, communication is exposed: the one that computing waits for, or else the first
 * asynchronous one. */
static void expose(struct engine *e, struct owner *o, int64_t ns)
{
    if (o->at[DEVICE].task >= 0)
        return;
    for (int at = WAITED; at < e->runners; at++)
        if (o->at[at].task >= 0 && o->at[at].rate > 0) {
            e->s->task[o->at[at].task].exposed_ns += ns;
            return;
        }
}

static void advance(struct engine *e, struct runner *r, int64_t to)
{
    int64_t passed = to - e->now;
    if (r->end == to)
        r->left = 0;
    else if (r->rate < 1)
        r->left -= (int64_t)floor((double)passed * r->rate);
    else
        r->left -= passed;
}

/* Advances the time to the next end of a task; returns 0 where no task runs. */
static int step(struct engine *e)
{
    int64_t next = INT64_MAX;
    struct owner *last = e->owner + e->s->owners;
    for (struct owner *o = e->owner; o < last; o++) {
        start_first(e, &o->at[DEVICE], &o->device);
        start_first(e, &o->at[WAITED], &o->waited);
        if (~o->empty)
            start_async(e, o);
        set_rates(e, o);
        for (int at = 0; at < e->runners; at++) {
            o->at[at].end = end_of(e, &o->at[at]);
            next = topt_min(o->at[at].end, next);
        }
    }
    if (next == INT64_MAX)
        return 0;
    for (struct owner *o = e->owner; o < last; o++) {
        expose(e, o, next - e->now);
        for (int at = 0; at < e->runners; at++) {
            struct runner *r = &o->at[at];
            if (r->task < 0)
                continue;
            advance(e, r, next);
            if (r->left > 0)
                continue;
            push(e, &e->ended, r->task);
            r->task = -1;
        }
    }
    e->now = next;
    finish_all(e);
    return 1;
}

/* Tasks that wait for nothing join their queues first, in the order in which they were added, before the end of one that
 * takes no time can release others. */
static void run(struct engine *e)
{
    struct topt_schedule *s = e->s;
    struct queue first = {-1, -1};
    e->ended = first;
    /* -1: no task in any place. */
    memset(e->owner, -1, (size_t)s->owners * sizeof *e->owner);
    for (int i = 0; i < s->n; i++)
        if (s->waits[i] == 0)
            push(e, &first, i);
    while (first.head >= 0)
        come(e, take(e, &first));
    finish_all(e);
    while (step(e))
        ;
}

/* The times of a chained schedule: each task starts when all that it waits for has ended. */
static void add_up(struct topt_schedule *s)
{
    s->time_ns = 0;
    for (int i = 0; i < s->n; i++)
        s->task[i].ready_ns = 0;
    for (int i = 0; i < s->n; i++) {
        struct topt_task *t = &s->task[i];
        t->start_ns = t->ready_ns;
        t->end_ns = t->start_ns + t->ns;
        t->exposed_ns = 0;
        t->started = 2 * i;
        t->ended = 2 * i + 1;
        s->time_ns = topt_max(s->time_ns, t->end_ns);
        for (int e = s->first[i]; e >= 0; e = s->edge[e].next) {
            int64_t *ready = &s->task[s->edge[e].to].ready_ns;
            *ready = topt_max(*ready, t->end_ns);
        }
    }
}

int topt_schedule_run(struct topt_schedule *s, struct topt_error *err)
{
    if (s->chained) {
        add_up(s);
        return 0;
    }
    struct engine e = {.s = s, .beside = s->share < 0.99 ? 1 - s->share : 0.01};
    int links = 0;
    for (int i = 0; i < s->n; i++)
        links |= s->task[i].async ? s->task[i].links : 0;
    for (e.runners = ASIDE; links >> (e.runners - ASIDE);)
        e.runners++;
    e.next = malloc(((size_t)s->n + 1) * sizeof *e.next);
    e.owner = calloc((size_t)s->owners + 1, sizeof *e.owner);
    if (e.next && e.owner)
        run(&e);
    int rc = !e.next || !e.owner ? topt_nomem(err, "a schedule")
             : e.nrun < s->n
                 ? topt_fail(err, TOPT_ERR_INTERNAL, "%d of %d tasks wait for each other",
                             s->n - e.nrun, s->n)
                 : 0;
    free(e.next);
    free(e.owner);
    s->time_ns = e.now;
    return rc;
}
