/* engine.c - tasks run in time: a device and its links, each first come, first served.
 *
 * Time goes from one end of a task to the next.  What computing waits for has the links
 * first: asynchronous communication on one of them stops until it is through, as small collectives
 * of another communicator get through beside a large one.  And while something moves
 * asynchronously, the device computes at less than its rate, as the collective's kernels take a
 * share of it (topt_hw_collective_share); without such a share all times are sums of
 * integers. */
#include "engine.h"
#include "graph.h"

#include <math.h>
#include <stdlib.h>

enum { DEVICE, WAITED, ASIDE, RUNNERS = ASIDE + TOPT_LINK_COUNT };
enum { ALL_LINKS = (1 << TOPT_LINK_COUNT) - 1 };

/* The running tasks; an asynchronous task that takes several links is at the first of them. */
struct runner {
    int task; /* -1: nothing */
    int64_t left;
    double rate;
};

struct queue {
    int *task, head, tail; /* in the order in which they came; -1: gone */
};

struct engine {
    struct sim_graph *g;
    int64_t now;
    double beside; /* rate of computing beside a move */
    struct queue device, waited, async, ended;
    struct runner runner[RUNNERS];
    int nrun;
};

/* ---- coming and going -------------------------------------------------------------- */

static void push(struct queue *q, int task)
{
    q->task[q->tail++] = task;
}

/* A task that has nothing to wait for any more. */
static void come(struct engine *e, int task)
{
    struct topt_task *t = &e->g->task[task];
    t->ready_ns = t->start_ns = e->now;
    push(t->ns == 0  ? &e->ended
         : !t->links ? &e->device
         : t->async  ? &e->async
                     : &e->waited,
         task);
}

static void finish_all(struct engine *e)
{
    struct sim_graph *g = e->g;
    while (e->ended.head < e->ended.tail) {
        int task = e->ended.task[e->ended.head++];
        g->task[task].end_ns = e->now;
        e->nrun++;
        for (int i = g->first[task]; i >= 0; i = g->edge[i].next)
            if (--g->waits[g->edge[i].to] == 0)
                come(e, g->edge[i].to);
    }
}

static void start(struct engine *e, int at, int task)
{
    e->g->task[task].start_ns = e->now;
    e->runner[at] = (struct runner){task, e->g->task[task].ns, 1};
}

static void start_first(struct engine *e, int at, struct queue *q)
{
    if (e->runner[at].task < 0 && q->head < q->tail)
        start(e, at, q->task[q->head++]);
}

static int links_of(const struct engine *e, int at)
{
    int task = e->runner[at].task;
    return task < 0 ? 0 : e->g->task[task].links;
}

/* Tasks take links in the order in which they came: none takes a link for which an earlier
 * one waits. */
static void start_async(struct engine *e)
{
    struct queue *q = &e->async;
    int claimed = 0;
    for (int l = 0; l < TOPT_LINK_COUNT; l++)
        claimed |= links_of(e, ASIDE + l);
    for (int i = q->head; i < q->tail && claimed != ALL_LINKS; i++) {
        int task = q->task[i], first = 0;
        if (task < 0)
            continue;
        int links = e->g->task[task].links;
        while (!(links >> first & 1))
            first++;
        if (!(links & claimed)) {
            start(e, ASIDE + first, task);
            q->task[i] = -1;
        }
        claimed |= links;
    }
    while (q->head < q->tail && q->task[q->head] < 0)
        q->head++;
}

/* ---- time -------------------------------------------------------------------------- */

static void set_rates(struct engine *e)
{
    int taken = links_of(e, WAITED), moves = 0;
    for (int at = ASIDE; at < RUNNERS; at++) {
        e->runner[at].rate = links_of(e, at) & taken ? 0 : 1;
        moves |= e->runner[at].task >= 0 && e->runner[at].rate > 0;
    }
    e->runner[DEVICE].rate = moves ? e->beside : 1;
}

static int64_t end_of(const struct engine *e, const struct runner *r)
{
    if (r->task < 0 || r->rate <= 0)
        return INT64_MAX;
    return e->now + (r->rate < 1 ? (int64_t)ceil((double)r->left / r->rate) : r->left);
}

static void advance(struct engine *e, struct runner *r, int64_t to)
{
    int64_t passed = to - e->now;
    if (r->task < 0)
        return;
    if (end_of(e, r) == to)
        r->left = 0;
    else if (r->rate < 1)
        r->left -= (int64_t)floor((double)passed * r->rate);
    else
        r->left -= passed;
}

/* To the next end of a task; 0 where nothing runs. */
static int step(struct engine *e)
{
    int64_t next = INT64_MAX;
    start_first(e, DEVICE, &e->device);
    start_first(e, WAITED, &e->waited);
    start_async(e);
    set_rates(e);
    for (int at = 0; at < RUNNERS; at++)
        if (end_of(e, &e->runner[at]) < next)
            next = end_of(e, &e->runner[at]);
    if (next == INT64_MAX)
        return 0;
    for (int at = 0; at < RUNNERS; at++)
        advance(e, &e->runner[at], next);
    e->now = next;
    for (int at = 0; at < RUNNERS; at++) {
        struct runner *r = &e->runner[at];
        if (r->task < 0 || r->left > 0)
            continue;
        push(&e->ended, r->task);
        r->task = -1;
    }
    finish_all(e);
    return 1;
}

/* Tasks that wait for nothing come first, in the order of the program. */
static void run(struct engine *e)
{
    int n = e->g->n, *first = e->waited.task + n, nfirst = 0;
    for (int i = 0; i < n; i++)
        if (e->g->waits[i] == 0)
            first[nfirst++] = i;
    for (int i = 0; i < nfirst; i++)
        come(e, first[i]);
    finish_all(e);
    while (step(e))
        ;
}

int sim_graph_run(struct sim_graph *g, int64_t *ret_ns, struct topt_error *err)
{
    size_t n = (size_t)g->n;
    double share = topt_hw_collective_share(g->k->hw);
    struct engine e = {.g = g, .beside = share < 0.99 ? 1 - share : 0.01};
    int *room = malloc((5 * n + 1) * sizeof *room);
    *ret_ns = 0;
    if (!room)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for a simulation");
    e.device.task = room;
    e.async.task = room + n;
    e.ended.task = room + 2 * n;
    e.waited.task = room + 3 * n; /* and room for the first ones */
    for (int at = 0; at < RUNNERS; at++)
        e.runner[at].task = -1;
    run(&e);
    free(room);
    *ret_ns = e.now;
    return e.nrun == g->n
               ? 0
               : topt_fail(err, TOPT_ERR_INTERNAL, "%d of %d tasks wait for each other",
                           g->n - e.nrun, g->n);
}
