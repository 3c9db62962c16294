/* heuristic.c - deciding an operator before the search: the paper's heuristic elimination.
 *
 * It is the last resort, where a graph is so entangled that no exact table is small enough.
 * The operator that most others are joined to goes first (a mask that every block reads), to
 * the configuration that is cheapest on its own and at best on its edges, memory and time
 * counting alike relative to the largest of its costs. */
#include "eliminate.h"

#include <math.h>

/* Joined operators that are still free; parallel edges count each. */
static int degree(const struct topt_search_problem *g, const int32_t *fixed, int op)
{
    int n = 0;
    for (int i = 0; i < g->nedges; i++) {
        const struct topt_search_edge *e = &g->edge[i];
        n += (e->from == op && fixed[e->to] < 0) || (e->to == op && fixed[e->from] < 0);
    }
    return n;
}

static double weight(struct topt_cost c, struct topt_cost most)
{
    return (double)c.memory / ((double)most.memory + 1) +
           (double)c.time / ((double)most.time + 1);
}

/* The cheapest an edge can be where one end is of a class; infinite where it can't be. */
static double edge_weight(const struct topt_search_edge *e, int is_from, int32_t class_of,
                          struct topt_cost most)
{
    const struct topt_table *t = e->table;
    double best = INFINITY;
    for (int i = 0; i < (is_from ? t->to_classes : t->from_classes); i++) {
        int64_t at = is_from ? (int64_t)class_of * t->to_classes + i
                             : (int64_t)i * t->to_classes + class_of;
        for (int32_t k = t->first[at]; k < t->first[at + 1]; k++)
            best = fmin(best, weight(t->alt[k], most));
    }
    return best;
}

static int32_t cheapest_config(const struct topt_search_problem *g, int op)
{
    const struct topt_search_op *o = &g->op[op];
    struct topt_cost most = {0, 0};
    int32_t best = 0;
    double least = INFINITY;
    for (int c = 0; c < o->nconfigs; c++) {
        most.memory = o->cost[c].memory > most.memory ? o->cost[c].memory : most.memory;
        most.time = o->cost[c].time > most.time ? o->cost[c].time : most.time;
    }
    for (int c = 0; c < o->nconfigs; c++) {
        double w = weight(o->cost[c], most);
        for (int i = 0; i < g->nedges && w < least; i++) {
            const struct topt_search_edge *e = &g->edge[i];
            if (e->from == op)
                w += edge_weight(e, 1, e->from_class[c], most);
            if (e->to == op)
                w += edge_weight(e, 0, e->to_class[c], most);
        }
        if (w < least) {
            least = w;
            best = c;
        }
    }
    return best;
}

void topt_decide(const struct topt_search_problem *g, int32_t *fixed)
{
    int op = -1, most = -1;
    for (int i = 0; i < g->nops; i++) {
        int n = fixed[i] < 0 ? degree(g, fixed, i) : -1;
        if (n > most) {
            most = n;
            op = i;
        }
    }
    fixed[op] = cheapest_config(g, op);
}
