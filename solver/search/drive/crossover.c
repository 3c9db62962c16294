/* crossover.c - strategies that begin as one of two and end as the other.
 *
 *     time |o a             a and b are two corners of the frontier's hull: both are
 *          |  x             optimal by the weights of the line between them.  In a model
 *          |    x           of many layers that are alike they mostly choose differently
 *          |      x         in all of them, and a strategy (x) that begins as the one and
 *          |        o b     goes on as the other costs what is between, but for the
 *          +----------- memory       change from one to the other, which is paid once.
 *
 * No search finds these quickly: near the line there are as many strategies as ways to
 * say which layers choose how.  But each of them is a step of one operator away from the
 * one before, so that a walk along the operators sees all.  With a tolerance they often
 * are all that is needed of a segment (two_phase.c).
 *
 * Operators are cut in the order in which the problem lists them. */
#include "crossover.h"

#include "articulation.h"

#include <stdlib.h>
#include <string.h>

int topt_crosser_init(struct crosser *c, const struct topt_search_problem *p,
                      struct topt_error *err)
{
    size_t nops = (size_t)p->nops, nedges = (size_t)p->nedges;
    *c = (struct crosser){.problem = p,
                          .first = calloc(nops + 2, sizeof *c->first),
                          .edge = calloc(2 * nedges + 1, sizeof *c->edge),
                          .mix = calloc(nops + nedges + 1, sizeof *c->mix),
                          .barred = calloc(nedges + 1, 1)};
    if (!c->first || !c->edge || !c->mix || !c->barred)
        return topt_search_nomem(err);
    topt_graph_edges(p, c->first, c->edge);
    return 0;
}

void topt_crosser_fini(struct crosser *c)
{
    free(c->first);
    free(c->edge);
    free(c->mix);
    free(c->barred);
}

/* Where the alternatives of an edge begin, as the mix has its ends, with their end after
 * it. */
static const int32_t *entry_of(const struct crosser *c, const struct topt_search_edge *x)
{
    return x->table->first +
           (int64_t)x->from_class[c->mix[x->from]] * x->table->to_classes +
           x->to_class[c->mix[x->to]];
}

static topt_wide weight(const struct parents *p, struct topt_cost c)
{
    return (topt_wide)p->time * c.time + (topt_wide)p->memory * c.memory;
}

/* Choose the alternative of an edge; 0 where its ends can't have what they chose. */
static int settle_edge(struct crosser *c, const struct parents *p, int e)
{
    const struct topt_search_edge *x = &c->problem->edge[e];
    int32_t *alt = &c->mix[c->problem->nops + e];
    for (int k = 0; k < 2; k++)
        if (p->choice[k][x->from] == c->mix[x->from] &&
            p->choice[k][x->to] == c->mix[x->to]) {
            *alt = p->choice[k][c->problem->nops + e];
            return 1;
        }
    const int32_t *entry = entry_of(c, x), n = entry[1] - entry[0];
    const struct topt_cost *of = &x->table->alt[entry[0]];
    *alt = 0;
    for (int32_t a = 1; a < n; a++)
        if (weight(p, of[a]) < weight(p, of[*alt]))
            *alt = a;
    return n > 0;
}

static void add(struct topt_cost *sum, struct topt_cost c, int sign)
{
    sum->memory += sign * c.memory;
    sum->time += sign * c.time;
}

/* While a cut moves along the operators. */
struct walk {
    struct crosser *c;
    const struct parents *p;
    struct topt_cost sum; /* without the edges that are barred */
    int nbarred;
};

/* Edges of an operator are no longer what they were, or are again. */
static void count_edges(struct walk *w, int op, int sign)
{
    struct crosser *c = w->c;
    for (int i = c->first[op]; i < c->first[op + 1]; i++) {
        int e = c->edge[i];
        if (sign > 0)
            c->barred[e] = !settle_edge(c, w->p, e);
        w->nbarred += sign * c->barred[e];
        const struct topt_search_edge *x = &c->problem->edge[e];
        if (!c->barred[e])
            add(&w->sum, x->table->alt[*entry_of(c, x) + c->mix[c->problem->nops + e]],
                sign);
    }
}

/* Operator 'op' now chooses as parent 'as' does; 0 where it did already. */
static int change(struct walk *w, int op, int as)
{
    struct crosser *c = w->c;
    const struct topt_cost *cost = c->problem->op[op].cost;
    int32_t now = w->p->choice[as][op];
    if (c->mix[op] == now)
        return 0;
    count_edges(w, op, -1);
    add(&w->sum, cost[c->mix[op]], -1);
    c->mix[op] = now;
    add(&w->sum, cost[now], 1);
    count_edges(w, op, 1);
    return 1;
}

/* All choose as one parent does. */
static struct walk start(struct crosser *c, const struct parents *p, int which)
{
    size_t width = (size_t)c->problem->nops + (size_t)c->problem->nedges;
    memcpy(c->mix, p->choice[which], width * sizeof *c->mix);
    memset(c->barred, 0, (size_t)c->problem->nedges);
    return (struct walk){.c = c, .p = p, .sum = p->cost[which]};
}

int topt_crossovers(struct crosser *c, const struct parents *p, struct crossover *ret)
{
    int n = 0;
    for (int first = 0; first < 2; first++) {
        struct walk w = start(c, p, !first);
        for (int op = 0; op + 1 < c->problem->nops; op++)
            if (change(&w, op, first) && !w.nbarred)
                ret[n++] = (struct crossover){w.sum, first, op + 1};
    }
    return n;
}

const int32_t *topt_crossover_choice(struct crosser *c, const struct parents *p,
                                     const struct crossover *x)
{
    struct walk w = start(c, p, !x->first);
    for (int op = 0; op < x->cut; op++)
        change(&w, op, x->first);
    return c->mix;
}
