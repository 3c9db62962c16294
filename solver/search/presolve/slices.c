/* slices.c - a problem cut at some operators, by what these take.
 *
 * A slice is the problem with one value of each operator cut at (a value: configurations
 * that no edge tells apart). Of an edge's table it has one row, or column; all else it
 * shares with the whole. */
#include "slices.h"

#include <stdlib.h>
#include <string.h>

int topt_slice_cut_at(const struct conditioning *c, int op)
{
    for (int i = 0; i < c->ncut; i++)
        if (c->op[i] == op)
            return i;
    return -1;
}

/* Values of the operators cut at: configurations of one are alike on all edges. */
int topt_slices_values(struct conditioning *c, const char *cutset)
{
    const struct topt_search_problem *p = c->p;
    for (int i = 0; i < p->nops; i++)
        if (cutset[i])
            c->op[c->ncut++] = i;
    c->nslices = 1;
    for (int k = 0; k < c->ncut; k++) {
        int op = c->op[k], n = p->op[op].nconfigs;
        c->value[k] = calloc((size_t)n + 1, sizeof *c->value[k]);
        if (!c->value[k])
            return topt_search_nomem(c->err);
        c->nvalues[k] = n > 0;
        for (int e = 0; e < p->nedges; e++) {
            const struct topt_search_edge *edge = &p->edge[e];
            if (edge->from != op && edge->to != op)
                continue;
            c->nvalues[k] = topt_refine(
                c->value[k], n, edge->from == op ? edge->from_class : edge->to_class);
            if (c->nvalues[k] < 0)
                return topt_search_nomem(c->err);
        }
        c->nslices *= c->nvalues[k];
    }
    return 0;
}

static int slice_op(struct conditioning *c, struct slice *s, int k, int32_t value,
                    struct topt_search_op *op)
{
    const struct topt_search_op *whole = &c->p->op[c->op[k]];
    int32_t *config = TOPT_NEW(s->arena, whole->nconfigs, int32_t);
    struct topt_cost *cost = TOPT_NEW(s->arena, whole->nconfigs, struct topt_cost);
    int n = 0;
    if (!config || !cost)
        return topt_search_nomem(c->err);
    for (int i = 0; i < whole->nconfigs; i++)
        if (c->value[k][i] == value) {
            config[n] = i;
            cost[n++] = whole->cost[i];
        }
    *op = (struct topt_search_op){whole->name, n, cost};
    s->config[c->op[k]] = config;
    return 0;
}

/* Classes [from, from + nfrom) x [to, to + nto) of an edge's table become its table. */
static int cut_table(struct conditioning *c, struct slice *s,
                     struct topt_search_edge *edge, int from, int nfrom, int to, int nto)
{
    const struct topt_table *t = edge->table;
    struct topt_table *ret = TOPT_NEW(s->arena, 1, struct topt_table);
    int32_t *first = TOPT_NEW(s->arena, (size_t)nfrom * (size_t)nto + 1, int32_t);
    int64_t n = 0;
    for (int f = from; f < from + nfrom; f++) {
        const int32_t *row = t->first + (int64_t)f * t->to_classes + to;
        n += row[nto] - row[0];
    }
    struct topt_cost *alt = TOPT_NEW(s->arena, n, struct topt_cost);
    if (!ret || !first || !alt)
        return topt_search_nomem(c->err);
    int32_t *at = first;
    for (int f = from; f < from + nfrom; f++) {
        const int32_t *row = t->first + (int64_t)f * t->to_classes + to;
        if (row[nto] > row[0])
            memcpy(alt + *at, t->alt + row[0], (size_t)(row[nto] - row[0]) * sizeof *alt);
        for (int i = 0; i < nto; i++, at++)
            at[1] = at[0] + row[i + 1] - row[i];
    }
    *ret = (struct topt_table){nfrom, nto, first, alt};
    edge->table = ret;
    return 0;
}

static int slice_edge(struct conditioning *c, struct slice *s,
                      struct topt_search_edge *edge)
{
    const struct topt_table *t = edge->table;
    int cut_from = topt_slice_cut_at(c, edge->from) >= 0,
        cut_to = topt_slice_cut_at(c, edge->to) >= 0;
    if (!cut_from && !cut_to)
        return 0;
    const struct topt_search_op *from = &s->problem.op[edge->from];
    const struct topt_search_op *to = &s->problem.op[edge->to];
    if (!from->nconfigs || !to->nconfigs)
        return 0; /* nothing is possible, whatever the table says */
    int f = cut_from ? edge->from_class[s->config[edge->from][0]] : 0;
    int g = cut_to ? edge->to_class[s->config[edge->to][0]] : 0;
    if (cut_table(c, s, edge, f, cut_from ? 1 : t->from_classes, g,
                  cut_to ? 1 : t->to_classes))
        return -1;
    if (cut_from)
        edge->from_class = TOPT_NEW(s->arena, from->nconfigs, int32_t);
    if (cut_to)
        edge->to_class = TOPT_NEW(s->arena, to->nconfigs, int32_t);
    return edge->from_class && edge->to_class ? 0 : topt_search_nomem(c->err);
}

int topt_slice_open(struct conditioning *c, int number)
{
    struct slice *s = &c->slice[number];
    const struct topt_search_problem *p = c->p;
    s->arena = topt_arena_create(0);
    if (!s->arena)
        return topt_search_nomem(c->err);
    struct topt_search_op *op = TOPT_NEW(s->arena, p->nops, struct topt_search_op);
    struct topt_search_edge *edge =
        TOPT_NEW(s->arena, p->nedges, struct topt_search_edge);
    s->config = TOPT_NEW(s->arena, p->nops, const int32_t *);
    if (!op || !edge || !s->config)
        return topt_search_nomem(c->err);
    memcpy(op, p->op, (size_t)p->nops * sizeof *op);
    if (p->nedges)
        memcpy(edge, p->edge, (size_t)p->nedges * sizeof *edge);
    s->problem = (struct topt_search_problem){p->nops, op, p->nedges, edge};
    for (int k = 0, rest = number; k < c->ncut; rest /= c->nvalues[k++])
        if (slice_op(c, s, k, rest % c->nvalues[k], &op[c->op[k]]))
            return -1;
    for (int e = 0; e < p->nedges; e++)
        if (slice_edge(c, s, &edge[e]))
            return -1;
    return 0;
}

void topt_slice_close_plan(struct slice *s)
{
    if (s->planned)
        topt_elimination_fini(&s->plan);
    s->planned = 0;
}

void topt_slice_close(struct slice *s)
{
    topt_slice_close_plan(s);
    topt_arena_destroy(s->arena);
    s->arena = NULL;
}
