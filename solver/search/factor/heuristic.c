/* heuristic.c - choices made one operator at a time, where nothing better can be had.
 *
 * Deciding operators before the search, the paper's heuristic elimination, is the last resort
 * where a graph is so entangled that no exact table is small enough.  The operator that most
 * others are joined to goes first (a mask that every block reads), to the configuration that is
 * cheapest on its own and at best on its edges, memory and time counting alike relative to the
 * largest of its costs.
 *
 * And whole strategies are put together so where a search is stopped before it has any: each
 * operator takes what is cheapest beside what those before it took. */
#include "heuristic.h"

#include "frontier.h"
#include "articulation.h"
#include "search_common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What counts as much as the other: so much memory, so much time. */
struct balance {
    double memory, time;
};

static double weight(struct topt_cost c, struct balance by)
{
    return (double)c.memory / by.memory + (double)c.time / by.time;
}

/* ---- what edges cost --------------------------------------------------------------------- */

/* The cheapest of an edge's entry, and which it is; infinite where there is none. */
static double entry_weight(const struct topt_table *t, int32_t from, int32_t to,
                           struct balance by, int32_t *ret)
{
    int64_t at = (int64_t)from * t->to_classes + to;
    double best = INFINITY;
    for (int32_t k = t->first[at]; k < t->first[at + 1]; k++) {
        double w = weight(t->alt[k], by);
        if (w < best) {
            best = w;
            *ret = k - t->first[at];
        }
    }
    return best;
}

/* The cheapest an edge can be where one end is of a class. */
static double edge_weight(const struct topt_search_edge *e, int is_from, int32_t class_of,
                          struct balance by)
{
    const struct topt_table *t = e->table;
    double best = INFINITY;
    int32_t alt;
    for (int i = 0; i < (is_from ? t->to_classes : t->from_classes); i++)
        best = fmin(best, is_from ? entry_weight(t, class_of, i, by, &alt)
                                  : entry_weight(t, i, class_of, by, &alt));
    return best;
}

static struct topt_cost most_of(const struct topt_search_op *o)
{
    struct topt_cost most = {0, 0};
    for (int c = 0; c < o->nconfigs; c++) {
        most.memory = o->cost[c].memory > most.memory ? o->cost[c].memory : most.memory;
        most.time = o->cost[c].time > most.time ? o->cost[c].time : most.time;
    }
    return most;
}

/* ---- deciding operators ------------------------------------------------------------------ */

int topt_decisions_init(struct decisions *d, const struct topt_search_problem *problem,
                        struct topt_error *err)
{
    size_t n = (size_t)problem->nops + 1;
    *d = (struct decisions){.problem = problem};
    d->op = malloc(n * sizeof *d->op);
    d->config = malloc(n * sizeof *d->config);
    d->degree = calloc(n, sizeof *d->degree);
    if (!d->op || !d->config || !d->degree) {
        topt_decisions_fini(d);
        return topt_search_nomem(err);
    }
    for (int e = 0; e < problem->nedges; e++) { /* parallel edges count each */
        d->degree[problem->edge[e].from]++;
        d->degree[problem->edge[e].to]++;
    }
    return 0;
}

void topt_decisions_fini(struct decisions *d)
{
    free(d->op);
    free(d->config);
    free(d->degree);
}

static int32_t cheapest_config(const struct topt_search_problem *g, int op)
{
    const struct topt_search_op *o = &g->op[op];
    struct topt_cost most = most_of(o);
    struct balance by = {(double)most.memory + 1, (double)most.time + 1};
    int32_t best = 0;
    double least = INFINITY;
    for (int c = 0; c < o->nconfigs; c++) {
        double w = weight(o->cost[c], by);
        for (int i = 0; i < g->nedges && w < least; i++) {
            const struct topt_search_edge *e = &g->edge[i];
            if (e->from == op)
                w += edge_weight(e, 1, e->from_class[c], by);
            if (e->to == op)
                w += edge_weight(e, 0, e->to_class[c], by);
        }
        if (w < least) {
            least = w;
            best = c;
        }
    }
    return best;
}

void topt_decide(struct decisions *d)
{
    const struct topt_search_problem *g = d->problem;
    int op = 0;
    for (int i = 1; i < g->nops; i++)
        if (d->degree[i] > d->degree[op])
            op = i;
    for (int e = 0; e < g->nedges; e++) {
        const struct topt_search_edge *x = &g->edge[e];
        int other = x->from == op ? x->to : x->to == op ? x->from : op;
        d->degree[other] -= other != op && d->degree[other] > 0;
    }
    d->degree[op] = -1;
    d->op[d->n] = op;
    d->config[d->n++] = cheapest_config(g, op);
}

/* ---- whole strategies -------------------------------------------------------------------- */

/* Strategies being put together; edges of operator i are to[first[i]..first[i + 1]). */
struct greedy {
    const struct topt_search_problem *problem;
    int *first, *of;
    double *weight;  /* by configuration of one operator */
    int32_t *choice; /* by operator (-1: not yet), then by edge */
};

static int greedy_init(struct greedy *g, const struct topt_search_problem *p,
                       struct topt_error *err)
{
    size_t n = (size_t)p->nops, m = (size_t)p->nedges, most = 0;
    for (size_t i = 0; i < n; i++)
        most = (size_t)p->op[i].nconfigs > most ? (size_t)p->op[i].nconfigs : most;
    *g = (struct greedy){.problem = p,
                         .first = calloc(n + 2, sizeof *g->first),
                         .of = malloc((2 * m + 1) * sizeof *g->of),
                         .weight = malloc((most + 1) * sizeof *g->weight),
                         .choice = malloc((n + m + 1) * sizeof *g->choice)};
    if (!g->first || !g->of || !g->weight || !g->choice)
        return topt_search_nomem(err);
    topt_graph_edges(p, g->first, g->of);
    return 0;
}

static void greedy_fini(struct greedy *g)
{
    free(g->first);
    free(g->of);
    free(g->weight);
    free(g->choice);
}

/* Add what an edge costs beside what its other end took, if that took anything. */
static void weigh_edge(struct greedy *g, int op, int edge, struct balance by)
{
    const struct topt_search_edge *e = &g->problem->edge[edge];
    int is_from = e->from == op;
    int32_t other = g->choice[is_from ? e->to : e->from], alt;
    for (int c = 0; other >= 0 && c < g->problem->op[op].nconfigs; c++)
        g->weight[c] +=
            is_from
                ? entry_weight(e->table, e->from_class[c], e->to_class[other], by, &alt)
                : entry_weight(e->table, e->from_class[other], e->to_class[c], by, &alt);
}

/* 1, or 0 where nothing goes with what those before took. */
static int choose(struct greedy *g, int op, struct balance by)
{
    const struct topt_search_op *o = &g->problem->op[op];
    int best = 0;
    for (int c = 0; c < o->nconfigs; c++)
        g->weight[c] = weight(o->cost[c], by);
    for (int i = g->first[op]; i < g->first[op + 1]; i++)
        weigh_edge(g, op, g->of[i], by);
    for (int c = 1; c < o->nconfigs; c++)
        if (g->weight[c] < g->weight[best])
            best = c;
    g->choice[op] = best;
    return o->nconfigs && isfinite(g->weight[best]);
}

/* A strategy by one balance.  1 and its cost, 0 where none was found. */
static int put_together(struct greedy *g, struct balance by, struct topt_cost *ret)
{
    const struct topt_search_problem *p = g->problem;
    int32_t *alt = g->choice + p->nops;
    memset(g->choice, 0xff, (size_t)p->nops * sizeof *g->choice);
    for (int i = 0; i < p->nops; i++)
        if (!choose(g, i, by))
            return 0;
    for (int i = 0; i < p->nedges; i++) {
        const struct topt_search_edge *e = &p->edge[i];
        entry_weight(e->table, e->from_class[g->choice[e->from]],
                     e->to_class[g->choice[e->to]], by, &alt[i]);
    }
    return !topt_search_cost(p, g->choice, alt, ret, NULL);
}

static struct balance both_alike(const struct topt_search_problem *p)
{
    struct balance by = {1, 1};
    for (int i = 0; i < p->nops; i++) {
        struct topt_cost most = most_of(&p->op[i]);
        by.memory += (double)most.memory;
        by.time += (double)most.time;
    }
    return by;
}

/* The light one, one between, the fast one: each that is no lighter than those before is kept if it is faster. */
static int add_strategies(struct greedy *g, const struct topt_search_options *o,
                          struct topt_frontier *f, struct topt_error *err)
{
    const struct balance by[] = {{1, INFINITY}, both_alike(g->problem), {INFINITY, 1}};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++) {
        struct topt_cost c, last = {-1, INT64_MAX};
        if (f->npoints)
            last = f->cost[f->npoints - 1];
        if (!put_together(g, by[i], &c) || c.memory <= last.memory ||
            c.time >= last.time || (o->memory_limit && c.memory > o->memory_limit) ||
            (o->time_limit && c.time > o->time_limit))
            continue;
        if (topt_frontier_add(f, c, g->choice, err))
            return -1;
    }
    return 0;
}

int topt_search_greedily(const struct topt_search_problem *problem,
                         const struct topt_search_options *options,
                         struct topt_frontier **ret, struct topt_error *err)
{
    struct greedy g;
    struct topt_frontier *f = topt_frontier_create(problem, err);
    int rc = !f || greedy_init(&g, problem, err) || add_strategies(&g, options, f, err);
    if (f)
        greedy_fini(&g);
    if (rc) {
        topt_frontier_destroy(f);
        return -1;
    }
    f->exact = 0;
    f->epsilon = INFINITY;
    *ret = f;
    return 0;
}
