/* heuristic.c - operators decided one at a time, where no exact table is small enough.
 *
 * Deciding operators before the search, the paper's heuristic elimination, is the last
 * resort where a graph is so entangled that no exact table is small enough.  The operator
 * that most others are joined to goes first (a mask that every block reads), to the
 * configuration that is cheapest on its own and at best on its edges, memory and time
 * counting alike relative to the largest of its costs. */
#include "heuristic.h"

#include "search_common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The amounts of memory and of time that count alike. */
struct balance {
    double memory, time;
};

static double weight(struct topt_cost c, struct balance by)
{
    return (double)c.memory / by.memory + (double)c.time / by.time;
}

/* ---- what edges cost --------------------------------------------------------------- */

/* The cheapest of an edge's entry; infinite where there is none. */
static double entry_weight(const struct topt_table *t, int32_t from, int32_t to,
                           struct balance by)
{
    int64_t at = (int64_t)from * t->to_classes + to;
    double best = INFINITY;
    for (int32_t k = t->first[at]; k < t->first[at + 1]; k++)
        best = fmin(best, weight(t->alt[k], by));
    return best;
}

/* The cheapest an edge can be where one end is of a class. */
static double edge_weight(const struct topt_search_edge *e, int is_from, int32_t class_of,
                          struct balance by)
{
    const struct topt_table *t = e->table;
    double best = INFINITY;
    for (int i = 0; i < (is_from ? t->to_classes : t->from_classes); i++)
        best = fmin(best, is_from ? entry_weight(t, class_of, i, by)
                                  : entry_weight(t, i, class_of, by));
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

/* ---- deciding operators ------------------------------------------------------------ */

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
