/* step.c - a step of training as tasks, by units.
 *
 * Computing, and the communication that it waits for, is a chain.  A micro-batch visits each
 * unit twice, forward and backward, but the last one once, where the passes meet.
 *
 *     computing   | unit 1 | unit 2 | unit 3, both passes | unit 2 | unit 1 |
 *     moving      | gather 2 | gather 3 |        | gather 2 | reduce 3 | ...
 *
 * Micro-batches are the periods that are folded. */
#include "topt_step.h"

#include <stdlib.h>

enum { MAX_TASKS = 1 << 15 };

struct step {
    const struct topt_piece_time *piece;
    int n;
    int64_t micro_batches;
    struct topt_schedule *s;
    int chain;         /* the last task on it; -1: none yet, as all tasks here */
    int begun, opened; /* the chain when the visited unit began, and the one before it */
    int awaited[4], nawaited; /* what the next task of the chain waits for, too */
    int reducing[2];          /* the last reductions */
    int *there;               /* by piece: the task that gathers its parameters */
    int *backward;            /* ... its last task of backward */
    int *reduced;             /* ... the reduction of its gradients */
    struct topt_error *err;
};

void topt_piece_time_add(struct topt_piece_time *sum, const struct topt_piece_time *more)
{
    for (int i = 0; i < TOPT_DURING_COUNT; i++) {
        struct topt_part_time *a = &sum->at[i];
        const struct topt_part_time *b = &more->at[i];
        a->compute_ns += b->compute_ns;
        a->waited_ns += b->waited_ns;
        a->gather_ns += b->gather_ns;
        a->reduce_ns += b->reduce_ns;
        a->waited_links |= b->waited_links;
        a->gather_links |= b->gather_links;
        a->reduce_links |= b->reduce_links;
    }
}

/* ---- tasks ------------------------------------------------------------------------- */

/* The next task of the chain. */
static int link_up(struct step *x, const struct topt_task *t)
{
    int task = topt_schedule_add(x->s, t, x->err);
    int rc = task < 0 || topt_schedule_after(x->s, task, x->chain, x->err);
    for (int i = 0; i < x->nawaited && !rc; i++)
        rc = topt_schedule_after(x->s, task, x->awaited[i], x->err);
    x->nawaited = 0;
    x->chain = task;
    return rc ? -1 : 0;
}

/* ... where it takes time. */
static int follow(struct step *x, int64_t ns, uint8_t links)
{
    struct topt_task t = {.ns = ns, .links = links};
    return ns ? link_up(x, &t) : 0;
}

/* The chain goes on no earlier than after 'task', too. */
static int wait_for(struct step *x, int task)
{
    static const struct topt_task nothing = {.ns = 0};
    enum { ROOM = sizeof x->awaited / sizeof *x->awaited };
    if (task < 0)
        return 0;
    if (x->nawaited == ROOM && link_up(x, &nothing))
        return -1;
    x->awaited[x->nawaited++] = task;
    return 0;
}

/* Asynchronous communication after 'before'; *ret stays where it takes no time. */
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
        if (move(x, t->gather_ns / x->micro_batches, t->gather_links, x->opened,
                 &x->there[p]))
            return -1;
    }
    return 0;
}

/* Forward, what a piece reads is moved before it computes. */
static int go_forward(struct step *x, int p)
{
    const struct topt_part_time *t = &x->piece[p].at[TOPT_DURING_FORWARD];
    int64_t rounds = x->micro_batches;
    return wait_for(x, x->there[p]) ||
                   follow(x, t->waited_ns / rounds, t->waited_links) ||
                   follow(x, t->compute_ns / rounds, 0)
               ? -1
               : 0;
}

/* Backward, gradients of what it read are moved after that. */
static int go_backward(struct step *x, int p)
{
    const struct topt_part_time *t = &x->piece[p].at[TOPT_DURING_BACKWARD];
    int64_t rounds = x->micro_batches;
    if (wait_for(x, x->there[p]) || follow(x, t->compute_ns / rounds, 0))
        return -1;
    x->backward[p] = x->chain;
    return move(x, t->reduce_ns / rounds, t->reduce_links, x->chain, &x->reduced[p]) ||
                   follow(x, t->waited_ns / rounds, t->waited_links)
               ? -1
               : 0;
}

/* One pass of the unit of pieces from 'from' to 'to'. */
static int pass(struct step *x, int from, int to, enum topt_during part)
{
    if (gather(x, from, to, part))
        return -1;
    if (part == TOPT_DURING_BACKWARD && wait_for(x, x->reducing[0]))
        return -1;
    for (int i = 0; i < to - from; i++) {
        int p = piece_of(from, to, i, part);
        if (part == TOPT_DURING_FORWARD ? go_forward(x, p) : go_backward(x, p))
            return -1;
    }
    if (part == TOPT_DURING_BACKWARD) {
        x->reducing[0] = x->reducing[1];
        x->reducing[1] = x->reduced[from];
    }
    return 0;
}

static void enter(struct step *x)
{
    x->opened = x->begun;
    x->begun = x->chain;
}

static int add_micro(void *of, struct topt_schedule *s, int64_t k, struct topt_error *err)
{
    struct step *x = of;
    (void)s;
    (void)k;
    (void)err;
    for (int from = 0, to; from < x->n; from = to) {
        for (to = from + 1; to < x->n && x->piece[to].unit == x->piece[from].unit;)
            to++;
        enter(x);
        if (pass(x, from, to, TOPT_DURING_FORWARD))
            return -1;
    }
    for (int to = x->n, from; to > 0; to = from) {
        for (from = to - 1; from > 0 && x->piece[from - 1].unit == x->piece[from].unit;)
            from--;
        if (to < x->n)
            enter(x);
        if (pass(x, from, to, TOPT_DURING_BACKWARD))
            return -1;
    }
    return 0;
}

/* ---- the whole --------------------------------------------------------------------- */

static int begin(void *of, struct topt_schedule *s, struct topt_error *err)
{
    struct step *x = of;
    (void)s;
    (void)err;
    x->nawaited = 0;
    x->chain = x->begun = x->opened = x->reducing[0] = x->reducing[1] = -1;
    for (int u = 0; u < x->n; u++)
        x->there[u] = x->backward[u] = x->reduced[u] = -1;
    for (int u = 0; u < x->n; u++)
        if (follow(x, x->piece[u].at[TOPT_DURING_BEGIN].compute_ns, 0))
            return -1;
    return 0;
}

/* Gradients that were added up go as soon as the last backward of their unit is over. */
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
    for (int u = 0; u < x->n; u++) {
        const struct topt_part_time *t = &x->piece[u].at[TOPT_DURING_END];
        if (wait_for(x, x->reduced[u]) || follow(x, t->waited_ns, t->waited_links) ||
            follow(x, t->compute_ns, 0))
            return -1;
    }
    return 0;
}

int topt_step_time(struct topt_schedule *s, const struct topt_piece_time *piece, int n,
                   int64_t micro_batches, int64_t *ret_ns, struct topt_error *err)
{
    struct topt_folded folded;
    int *room = calloc(3 * (size_t)n + 1, sizeof *room);
    if (!room)
        return topt_nomem(err, "a step's schedule");
    struct step x = {.piece = piece,
                     .n = n,
                     .micro_batches = micro_batches,
                     .s = s,
                     .there = room,
                     .backward = room + n,
                     .reduced = room + 2 * n,
                     .err = err};
    struct topt_periodic micros = {&x, micro_batches, begin, add_micro, end};
    int rc = topt_schedule_fold(s, &micros, MAX_TASKS, &folded, err);
    *ret_ns = s->time_ns;
    free(room);
    return rc;
}
