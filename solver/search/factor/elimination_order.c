/* elimination_order.c - which operator is eliminated next. */
#include "elimination_order.h"

int topt_elimination_order_init(struct elimination_queue *t, int nops,
                                struct topt_arena *a)
{
    *t =
        (struct elimination_queue){.op = TOPT_NEW(a, nops, int),
                                   .at = TOPT_NEW(a, nops, int),
                                   .rank_of = TOPT_NEW(a, nops, struct elimination_rank)};
    if (!t->op || !t->at || !t->rank_of)
        return -1;
    for (int i = 0; i < nops; i++)
        t->at[i] = -1;
    return 0;
}

static int sooner(const struct elimination_queue *t, int a, int b)
{
    struct elimination_rank x = t->rank_of[a], y = t->rank_of[b];
    if (x.rank != y.rank)
        return x.rank < y.rank;
    return x.points != y.points ? x.points < y.points : a < b;
}

static void put_at(struct elimination_queue *t, int place, int op)
{
    t->op[place] = op;
    t->at[op] = place;
}

static void move_up(struct elimination_queue *t, int op)
{
    int place = t->at[op];
    for (; place > 0 && sooner(t, op, t->op[(place - 1) / 2]); place = (place - 1) / 2)
        put_at(t, place, t->op[(place - 1) / 2]);
    put_at(t, place, op);
}

static void move_down(struct elimination_queue *t, int op)
{
    int place = t->at[op];
    for (int child; (child = 2 * place + 1) < t->n; place = child) {
        if (child + 1 < t->n && sooner(t, t->op[child + 1], t->op[child]))
            child++;
        if (!sooner(t, t->op[child], op))
            break;
        put_at(t, place, t->op[child]);
    }
    put_at(t, place, op);
}

void topt_elimination_order_put(struct elimination_queue *t, int op,
                                struct elimination_rank rank)
{
    if (t->at[op] < 0)
        put_at(t, t->n++, op);
    t->rank_of[op] = rank;
    move_up(t, op);
    move_down(t, op);
}

void topt_elimination_order_drop(struct elimination_queue *t, int op)
{
    int place = t->at[op];
    if (place < 0)
        return;
    int last = t->op[--t->n];
    t->at[op] = -1;
    if (last == op)
        return;
    put_at(t, place, last);
    move_up(t, last);
    move_down(t, last);
}

int topt_elimination_order_first(const struct elimination_queue *t)
{
    return t->n ? t->op[0] : -1;
}
