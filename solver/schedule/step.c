/* step.c - a step of training as tasks, by units.
 *
 * Computing, with the communication that it waits for, is a chain of tasks; asynchronous communication and copies
 * run beside it.  A micro-batch visits each unit twice, forward and backward, but the last unit once, where the
 * passes meet.
 *
 *     host        | 1 | 2 | 3 | 2 | 1 |
 *     computing   | unit 1 | unit 2 | unit 3, both passes | unit 2 | unit 1 |
 *     moving      | gather 2 | gather 3 |        | gather 2 | reduce 3 | ...
 *
 * Micro-batches are the periods that are folded. */
#include "topt_step.h"
#include "topt_minmax.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TASKS = 1 << 15 };

struct step {
    const struct topt_piece_time *piece;
    const struct topt_piece_bytes *held;  /* NULL: none are asked for */
    const struct topt_piece_bytes *bytes; /* ... of the micro-batch at hand, else NULL */
    int n;
    int64_t micro_batches;
    struct topt_schedule *s;
    int chain;         /* the last task on it; -1: none yet, as all tasks here */
    int begun, opened; /* the chain when the visited unit began, and the one before it */
    int awaited[4], nawaited; /* more tasks that the chain's next one waits for */
    int reducing[2];          /* the reductions of the last two units */
    int saving[2];           /* the copies to the host of the last two groups of pieces */
    int loading[2];          /* the chain when backward began the last two such groups */
    int group;               /* ... and the last of these */
    int *there;              /* by piece: the task that gathers its parameters */
    int *forward, *backward; /* ... the tasks that compute */
    int *reduced;            /* ... the reduction of its gradients */
    int *saved, *loaded;     /* ... the copies of its activations, to the host and back */
    int ahead; /* the first task of the unit before, beside which this one is gathered */
    int last;  /* the last piece whose parameters are gathered; -1: none are */
    int again; /* the first task of the layer that is recomputed */
    int64_t reducing_bytes; /* of the unit before: the copy that is reduced */
    int64_t host;           /* when the host has started the kernels so far */
    /* ... and when the device would end them, without asynchronous communication */
    int64_t device;
    /* so long it waited for the host, and in the last micro-batch */
    int64_t late, late_again;
    struct topt_error *err;
};

void topt_piece_time_add(struct topt_piece_time *sum, const struct topt_piece_time *more)
{
    for (int i = 0; i < TOPT_DURING_COUNT; i++) {
        struct topt_part_time *a = &sum->at[i];
        const struct topt_part_time *b = &more->at[i];
#define ADD(name) a->name += b->name;
        TOPT_PART_TIMES(ADD)
        ADD(asks)
        a->waited_links |= b->waited_links;
        a->exchange_links |= b->exchange_links;
        a->gather_links |= b->gather_links;
        a->reduce_links |= b->reduce_links;
    }
}

/* ---- tasks ------------------------------------------------------------------------- */

/* Appends a task to the chain. */
static int append(struct step *x, const struct topt_task *t)
{
    int task = topt_schedule_add(x->s, t, x->err);
    int rc = task < 0 || topt_schedule_after(x->s, task, x->chain, x->err);
    for (int i = 0; i < x->nawaited && !rc; i++)
        rc = topt_schedule_after(x->s, task, x->awaited[i], x->err);
    x->nawaited = 0;
    x->chain = task;
    return rc ? -1 : 0;
}

/* ... where it takes time, or bytes of computing are asked for. */
static int follow(struct step *x, int64_t ns, uint8_t links)
{
    struct topt_task t = {.ns = ns, .links = links};
    return ns || (x->bytes && !links) ? append(x, &t) : 0;
}

/* Makes the chain's next task wait for 'task', too. */
static int wait_for(struct step *x, int task)
{
    static const struct topt_task nothing = {.ns = 0};
    enum { ROOM = sizeof x->awaited / sizeof *x->awaited };
    if (task < 0)
        return 0;
    if (x->nawaited == ROOM && append(x, &nothing))
        return -1;
    x->awaited[x->nawaited++] = task;
    return 0;
}

/* Adds asynchronous communication after the task 'before'; *ret stays where it takes no time. */
static int move(struct step *x, int64_t ns, uint8_t links, int before, int *ret)
{
    struct topt_task t = {.ns = ns, .links = links, .async = 1};
    if (!ns)
        return 0;
    int task = topt_schedule_add(x->s, &t, x->err);
    if (task < 0 || topt_schedule_after(x->s, task, before, x->err))
        return -1;
    *ret = task;
    return 0;
}

/* Adds a copy between host and device, or the host's work, likewise. */
static int copy(struct step *x, int64_t ns, enum topt_link link, int before, int *ret)
{
    return move(x, ns, (uint8_t)(1 << link), before, ret);
}

/* ---- bytes ------------------------------------------------------------------------- */

static int hold(struct step *x, enum topt_held component, int64_t bytes, int from, int to)
{
    struct topt_hold h = {from, to, (int)component, bytes};
    return topt_schedule_hold(x->s, &h, x->err);
}

/* Holds the bytes that a piece has beside those that it keeps, while its task runs. */
static int hold_work(struct step *x, int p, int backward, int task)
{
    const struct topt_piece_bytes *b = &x->bytes[p];
    return hold(x, TOPT_HELD_WORK, b->work[backward], task, task) ||
           hold(x, TOPT_HELD_WAITING, b->waiting[backward], task, task);
}

static int hold_backward(struct step *x, int p)
{
    const struct topt_piece_bytes *b = &x->bytes[p];
    int task = x->backward[p];
    if (p + 1 == x->n || b->layer < 0 || b->layer != x->bytes[p + 1].layer)
        x->again = task;
    int away = x->saved[p] >= 0 && x->loaded[p] >= 0;
    return hold_work(x, p, 1, task) ||
           hold(x, TOPT_HELD_KEPT, b->kept - away * b->saved, x->forward[p], task) ||
           (away && (hold(x, TOPT_HELD_KEPT, b->saved, x->forward[p], x->saved[p]) ||
                     hold(x, TOPT_HELD_KEPT, b->saved, x->loaded[p], task))) ||
           hold(x, TOPT_HELD_BUFFERS, b->whole, x->forward[p], task) ||
           hold(x, TOPT_HELD_RECOMPUTED, b->recomputed, x->again, task) ||
           (!(b->outside && b->reduced) &&
            hold(x, TOPT_HELD_GRADIENT, b->gradient, task, -1));
}

/* Holds the buffers of a unit whose pass is over. */
static int hold_unit(struct step *x, int from, int to, int backward)
{
    int64_t gathered = 0, reduced = 0;
    int first = backward ? x->backward[to - 1] : x->forward[from];
    int begin = x->ahead < 0 ? first : x->ahead, last = x->chain, rc = 0;
    x->ahead = first;
    if (x->bytes[from].outside)
        return 0;
    for (int p = from; p < to; p++) {
        gathered += x->bytes[p].gathered;
        reduced += x->bytes[p].reduced;
        if (backward &&
            hold(x, TOPT_HELD_BUFFERS, x->bytes[p].made, x->backward[p], last))
            return -1;
    }
    if (backward) {
        rc = hold(x, TOPT_HELD_BUFFERS, x->reducing_bytes, first, last);
        x->reducing_bytes = reduced;
    }
    if (backward && to - 1 == x->last)
        begin = x->forward[x->last];
    return rc || hold(x, TOPT_HELD_BUFFERS, gathered, begin, last);
}

/* Holds the buffers of pieces outside of layers.  When backward is over, their gradients are copied for the reduction
 * and freed, except for the last that was made, to which backward still refers; then the rank's part of them is
 * allocated beside the copy. */
static int hold_outside(struct step *x)
{
    static const struct topt_task nothing = {.ns = 0};
    int begin = x->forward[0], over = x->chain, rc = append(x, &nothing), first = 1;
    int copied = x->chain;
    rc = rc || append(x, &nothing);
    for (int p = 0; p < x->n && !rc; p++) {
        const struct topt_piece_bytes *b = &x->bytes[p];
        if (!b->outside)
            continue;
        rc = hold(x, TOPT_HELD_BUFFERS, b->gathered, begin, over) ||
             hold(x, TOPT_HELD_BUFFERS, b->made, x->backward[p],
                  first ? x->chain : copied) ||
             hold(x, TOPT_HELD_BUFFERS, b->reduced, copied, x->chain) ||
             (b->reduced && hold(x, TOPT_HELD_GRADIENT, b->gradient, x->chain, -1));
        first &= !b->made;
    }
    return rc;
}

/* ---- a micro-batch ----------------------------------------------------------------- */

/* The 'i'th piece of those from 'from' to 'to', in the order of the pass. */
static int piece_of(int from, int to, int i, enum topt_during part)
{
    return part == TOPT_DURING_FORWARD ? from + i : to - 1 - i;
}

static int gather(struct step *x, int from, int to, enum topt_during part)
{
    for (int i = 0; i < to - from; i++) {
        int p = piece_of(from, to, i, part);
        const struct topt_part_time *t = &x->piece[p].at[part];
        x->there[p] = -1;
        if (copy(x, t->fetch_ns / x->micro_batches, TOPT_LINK_FROM_HOST, x->opened,
                 &x->there[p]) ||
            move(x, t->gather_ns / x->micro_batches, t->gather_links,
                 x->there[p] < 0 ? x->opened : x->there[p], &x->there[p]))
            return -1;
        x->loaded[p] = -1;
        if (part == TOPT_DURING_BACKWARD &&
            copy(x, t->save_ns / x->micro_batches, TOPT_LINK_FROM_HOST,
                 x->loading[x->piece[p].group != x->group], &x->loaded[p]))
            return -1;
    }
    return 0;
}

/* Appends a piece's computing in one of 'rounds' micro-batches, after a wait where the host is late with kernels. */
static int compute(struct step *x, const struct topt_part_time *t, int64_t rounds)
{
    x->host = t->asks ? topt_max(x->host, x->device) : x->host;
    int64_t late = topt_max(0, x->host - x->device), ns = t->compute_ns / rounds;
    x->late += late;
    x->host += t->host_ns / rounds;
    x->device += late + ns + t->waited_ns / rounds;
    return follow(x, late, 1 << TOPT_LINK_HOST) || follow(x, ns, 0) ? -1 : 0;
}

/* Forward, a piece's inputs are moved before it computes. */
static int go_forward(struct step *x, int p)
{
    const struct topt_part_time *t = &x->piece[p].at[TOPT_DURING_FORWARD];
    int64_t rounds = x->micro_batches;
    if (x->piece[p].group != x->group) {
        if (x->piece[p].group >= 0 && wait_for(x, x->saving[0]))
            return -1;
        x->saving[0] = x->saving[1];
        x->group = x->piece[p].group;
    }
    if (wait_for(x, x->there[p]) || follow(x, t->waited_ns / rounds, t->waited_links) ||
        compute(x, t, rounds))
        return -1;
    x->forward[p] = x->chain;
    x->saved[p] = -1;
    if (copy(x, t->save_ns / rounds, TOPT_LINK_TO_HOST, x->chain, &x->saved[p]))
        return -1;
    x->saving[1] = t->save_ns ? x->saved[p] : x->saving[1];
    return x->bytes ? hold_work(x, p, 0, x->chain) : 0;
}

/* Backward, the gradients of its inputs are moved after that. */
static int go_backward(struct step *x, int p)
{
    const struct topt_part_time *t = &x->piece[p].at[TOPT_DURING_BACKWARD];
    int64_t rounds = x->micro_batches, ahead = t->ahead_ns / rounds;
    if (t->save_ns && x->piece[p].group != x->group) {
        x->loading[0] = x->loading[1];
        x->loading[1] = x->chain;
        x->group = x->piece[p].group;
    }
    if (follow(x, ahead, t->waited_links) || wait_for(x, x->there[p]) ||
        wait_for(x, x->loaded[p]) || compute(x, t, rounds))
        return -1;
    x->backward[p] = x->chain;
    if (x->bytes && hold_backward(x, p))
        return -1;
    int reduced = -1;
    if (move(x, t->reduce_ns / rounds, t->reduce_links, x->chain, &reduced) ||
        copy(x, t->put_ns / rounds, TOPT_LINK_TO_HOST, reduced < 0 ? x->chain : reduced,
             &reduced))
        return -1;
    x->reduced[p] = reduced < 0 ? x->reduced[p] : reduced;
    return follow(x, t->waited_ns / rounds - ahead, t->waited_links) ? -1 : 0;
}

/* One pass of the unit of pieces from 'from' to 'to'. */
static int pass(struct step *x, int from, int to, enum topt_during part)
{
    if (gather(x, from, to, part))
        return -1;
    int back = part == TOPT_DURING_BACKWARD;
    if (back && wait_for(x, x->reducing[0]))
        return -1;
    for (int i = 0; i < to - from; i++) {
        int p = piece_of(from, to, i, part);
        if (part == TOPT_DURING_FORWARD ? go_forward(x, p) : go_backward(x, p))
            return -1;
    }
    if (back) {
        x->reducing[0] = x->reducing[1];
        x->reducing[1] = x->reduced[from];
    }
    return x->bytes ? hold_unit(x, from, to, back) : 0;
}

/* The chain comes to the next unit. */
static void enter(struct step *x)
{
    x->opened = x->begun;
    x->begun = x->chain;
}

static int all_forward(struct step *x)
{
    x->group = INT_MIN;
    for (int from = 0, to; from < x->n; from = to) {
        for (to = from + 1; to < x->n && x->piece[to].unit == x->piece[from].unit;)
            to++;
        enter(x);
        if (pass(x, from, to, TOPT_DURING_FORWARD))
            return -1;
    }
    return 0;
}

static int all_backward(struct step *x)
{
    x->loading[0] = x->loading[1] = x->chain;
    x->group = INT_MIN;
    for (int to = x->n, from; to > 0; to = from) {
        for (from = to - 1; from > 0 && x->piece[from - 1].unit == x->piece[from].unit;)
            from--;
        if (to < x->n)
            enter(x);
        if (pass(x, from, to, TOPT_DURING_BACKWARD))
            return -1;
    }
    return x->bytes ? hold_outside(x) : 0;
}

/* Appends a micro-batch, the period of the schedule. */
static int add_micro(void *of, struct topt_schedule *s, int64_t k, struct topt_error *err)
{
    struct step *x = of;
    (void)s;
    (void)err;
    x->bytes = k == 0 ? x->held : NULL; /* each micro-batch holds the same */
    x->ahead = -1;
    x->reducing_bytes = 0;
    x->late_again = -x->late;
    if (all_forward(x) || all_backward(x))
        return -1;
    x->late_again += x->late;
    return 0;
}

/* ---- the whole --------------------------------------------------------------------- */

static int begin(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct step *x = of;
    (void)s;
    (void)err;
    x->nawaited = 0;
    x->host = x->device = x->late = 0;
    x->chain = x->begun = x->opened = x->reducing[0] = x->reducing[1] = -1;
    x->saving[0] = x->saving[1] = -1;
    for (int u = 0; u < x->n; u++)
        x->there[u] = x->forward[u] = x->backward[u] = x->reduced[u] = x->saved[u] =
            x->loaded[u] = -1;
    for (int u = 0; u < x->n; u++)
        if (compute(x, &x->piece[u].at[TOPT_DURING_BEGIN], 1))
            return -1;
    return 0;
}

/* The host's optimizer, piece by piece, after all gradients are copied to the host; each piece's parameters then go
 * back. */
static int update_on_host(struct step *x)
{
    static const struct topt_task nothing = {.ns = 0};
    int task, all = -1;
    for (int u = x->n - 1; u >= 0; u--) {
        const struct topt_part_time *t = &x->piece[u].at[TOPT_DURING_END];
        task = x->reduced[u] < 0 ? x->backward[u] : x->reduced[u];
        if (t->update_ns &&
            (copy(x, t->put_ns, TOPT_LINK_TO_HOST, task, &task) ||
             (all < 0 && (all = topt_schedule_add(x->s, &nothing, x->err)) < 0) ||
             topt_schedule_after(x->s, all, task, x->err)))
            return -1;
    }
    for (int u = 0; u < x->n && all >= 0; u++) {
        const struct topt_part_time *t = &x->piece[u].at[TOPT_DURING_END];
        task = all;
        if (copy(x, t->update_ns, TOPT_LINK_HOST, all, &task) ||
            copy(x, t->fetch_ns, TOPT_LINK_FROM_HOST, task, &task))
            return -1;
    }
    return 0;
}

/* Accumulated gradients are reduced as soon as the last backward pass of their unit is over. */
static int end(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct step *x = of;
    (void)s;
    (void)err;
    for (int u = x->n - 1; u >= 0; u--) {
        const struct topt_part_time *t = &x->piece[u].at[TOPT_DURING_END];
        if (move(x, t->reduce_ns, t->reduce_links, x->backward[u], &x->reduced[u]))
            return -1;
    }
    if (update_on_host(x))
        return -1;
    for (int u = 0; u < x->n; u++) {
        const struct topt_part_time *t = &x->piece[u].at[TOPT_DURING_END];
        if (wait_for(x, x->reduced[u]) || follow(x, t->waited_ns, t->waited_links) ||
            compute(x, t, 1))
            return -1;
    }
    return 0;
}

/* The last piece of a layer whose parameters are gathered; -1: there is none. */
static int last_gathered(const struct topt_training_step *step)
{
    int last = step->bytes ? step->n - 1 : -1;
    while (last >= 0 && (step->bytes[last].outside || !step->bytes[last].gathered))
        last--;
    return last;
}

int topt_step_run(struct topt_schedule *s, const struct topt_training_step *step,
                  int64_t *ret_ns, int64_t *ret_late_ns,
                  int64_t ret_bytes[TOPT_HELD_COUNT], struct topt_error *err)
{
    struct topt_folded folded;
    size_t n = (size_t)step->n;
    int *room = calloc(6 * n + 1, sizeof *room);
    if (!room)
        return topt_nomem(err, "a step's schedule");
    struct step x = {.piece = step->time,
                     .held = step->bytes,
                     .n = step->n,
                     .micro_batches = step->micro_batches,
                     .s = s,
                     .there = room,
                     .forward = room + n,
                     .backward = room + 2 * n,
                     .reduced = room + 3 * n,
                     .saved = room + 4 * n,
                     .loaded = room + 5 * n,
                     .last = last_gathered(step),
                     .err = err};
    struct topt_periodic micros = {&x, step->micro_batches, begin, add_micro, end, 0};
    int rc = topt_schedule_fold(s, &micros, MAX_TASKS, &folded, err);
    *ret_ns = s->time_ns;
    *ret_late_ns =
        rc ? 0 : x.late + (step->micro_batches - folded.laid_out) * x.late_again;
    free(room);
    if (rc || !step->bytes)
        return rc;
    memset(ret_bytes, 0, TOPT_HELD_COUNT * sizeof *ret_bytes);
    return topt_schedule_peak(s, TOPT_HELD_COUNT, ret_bytes, err);
}

/* ---- two passes at once -------------------------------------------------------------- */

/* Adds a pass as a chain of its own: forward, tokens move before a piece computes, backward after it. */
static int lay_out(struct topt_schedule *s, struct topt_pass_pieces of,
                   enum topt_during part, int64_t *host, struct topt_error *err)
{
    int chain = -1;
    for (int i = 0; i < of.n; i++) {
        const struct topt_part_time *t = &of.time[piece_of(0, of.n, i, part)].at[part];
        struct topt_task task[2] = {
            {.ns = t->exchange_ns, .links = t->exchange_links, .async = 1},
            {.ns = t->compute_ns + t->waited_ns - t->exchange_ns}};
        *host += t->host_ns;
        for (int k = 0; k < 2; k++) {
            const struct topt_task *x = &task[part == TOPT_DURING_FORWARD ? k : 1 - k];
            int at = x->ns ? topt_schedule_add(s, x, err) : chain;
            if (x->ns && (at < 0 || topt_schedule_after(s, at, chain, err)))
                return -1;
            chain = at;
        }
    }
    return 0;
}

int topt_step_pair(struct topt_schedule *s, struct topt_pass_pieces forward,
                   struct topt_pass_pieces backward, double share, int64_t *ret_ns,
                   struct topt_error *err)
{
    double usual = s->share;
    int64_t host = 0;
    topt_schedule_clear(s);
    s->share = share;
    int rc = lay_out(s, backward, TOPT_DURING_BACKWARD, &host, err) ||
             lay_out(s, forward, TOPT_DURING_FORWARD, &host, err) ||
             topt_schedule_run(s, err);
    s->share = usual;
    *ret_ns = topt_max(s->time_ns, host);
    return rc ? -1 : 0;
}
