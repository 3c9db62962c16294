/* lift.c - the way back: what a strategy of a condensed problem is in the problem it came
 * of.
 *
 * Every operator and edge of the condensed problem is a factor of the original's plan,
 * and what a strategy takes of it is a point of that factor's table.  A point says of
 * which two points it was made, down to the leaves, which are the original's own choices.
 * Strategies come as differences (strategies.h): only what an operator's change touches,
 * itself and its edges, is walked again. */
#include "articulation.h"
#include "frontier.h"
#include "condensed.h"

#include "strategies.h"

#include <stdlib.h>
#include <string.h>

struct lifting {
    const struct condensed *c;
    int64_t *stack;   /* of unroll: nodes and points */
    int32_t *choice;  /* the original's strategy */
    int *first, *of;  /* edges by operator: of[first[op] .. first[op + 1]) */
    size_t *seen;     /* by edge: the strategy it was last queued for */
    int *queue, many; /* edges to be walked */
    struct change *change;
    size_t nchanges; /* of 'choice', since the strategy before */
};

/* Every node has one leaf, so none changes twice. */
static void choose(struct lifting *l, int at, int32_t value)
{
    if (l->choice[at] == value)
        return;
    l->choice[at] = value;
    l->change[l->nchanges++] = (struct change){(uint32_t)at, value};
}

/* The parts of a node's points, down to the leaves. */
static void unroll(struct lifting *l, int node, int64_t point)
{
    const struct condensed *c = l->c;
    const struct elimination_plan *plan = &c->plan;
    int64_t *stack = l->stack;
    size_t n = 0;
    stack[n++] = node;
    stack[n++] = point;
    while (n) {
        point = stack[--n];
        const struct tree_node *p = &plan->node[stack[--n]];
        if (p->table->leaf) {
            choose(l, p->op >= 0 ? p->op : plan->problem->nops + p->edge,
                   topt_leaf_choice(p->table, point));
            continue;
        }
        struct back back = c->maker.merge.back[point];
        stack[n++] = p->left;
        stack[n++] = back.a;
        if (p->right >= 0) {
            stack[n++] = p->right;
            stack[n++] = back.b;
        }
    }
}

static void lift_op(struct lifting *l, int op, const int32_t *strategy)
{
    const struct factor *f = &l->c->plan.factor[l->c->op_factor[op]];
    unroll(l, f->node, l->c->point[op][strategy[op]]);
}

/* The point that a strategy takes of an edge's factor. */
static void lift_edge(struct lifting *l, int edge, const int32_t *strategy)
{
    const struct condensed *c = l->c;
    const struct factor *f = &c->plan.factor[c->edge_factor[edge]];
    const struct topt_search_edge *e = &c->problem.edge[edge];
    int64_t entry = (int64_t)e->from_class[strategy[e->from]] * e->table->to_classes +
                    e->to_class[strategy[e->to]];
    struct run r = topt_entry_points(&c->maker, f->table, f->table->first_entry + entry);
    unroll(l, f->node, (int64_t)r.base + strategy[c->problem.nops + edge]);
}

static void queue(struct lifting *l, int edge, size_t number)
{
    if (l->seen[edge] != number)
        l->queue[l->many++] = edge;
    l->seen[edge] = number;
}

/* The changes that strategy 'number' (not the first) makes. */
static void lift_changes(struct lifting *l, const struct strategies *s, size_t number,
                         const int32_t *strategy)
{
    int nops = l->c->problem.nops;
    l->many = 0;
    l->nchanges = 0;
    for (size_t i = s->end[number - 1]; i < s->end[number]; i++) {
        int at = (int)s->change[i].at;
        if (at >= nops) {
            queue(l, at - nops, number);
            continue;
        }
        lift_op(l, at, strategy);
        for (int k = l->first[at]; k < l->first[at + 1]; k++)
            queue(l, l->of[k], number);
    }
    for (int i = 0; i < l->many; i++)
        lift_edge(l, l->queue[i], strategy);
}

static int init(struct lifting *l)
{
    const struct elimination_plan *plan = &l->c->plan;
    size_t nops = (size_t)l->c->problem.nops, nedges = (size_t)l->c->problem.nedges;
    size_t width = (size_t)plan->problem->nops + (size_t)plan->problem->nedges;
    l->stack = malloc(2 * ((size_t)plan->nnodes + 2) * sizeof *l->stack);
    l->choice = calloc(width + 1, sizeof *l->choice);
    l->first = calloc(nops + 2, sizeof *l->first);
    l->of = calloc(2 * nedges + 1, sizeof *l->of);
    l->seen = calloc(nedges + 1, sizeof *l->seen);
    l->queue = calloc(nedges + 1, sizeof *l->queue);
    l->change = calloc(width + 1, sizeof *l->change);
    if (!l->stack || !l->choice || !l->first || !l->of || !l->seen || !l->queue ||
        !l->change)
        return -1;
    topt_graph_edges(&l->c->problem, l->first, l->of);
    return 0;
}

static void fini(struct lifting *l)
{
    free(l->stack);
    free(l->choice);
    free(l->first);
    free(l->of);
    free(l->seen);
    free(l->queue);
    free(l->change);
}

static int lift_all(struct lifting *l, struct topt_frontier *from,
                    struct topt_frontier *into, struct topt_error *err)
{
    const struct strategies *s = topt_frontier_strategies(from);
    struct strategy_reader r;
    int rc = topt_strategy_reader_init(&r, s, err);
    if (!rc && from->npoints) {
        const int32_t *whole = topt_strategy_read(&r, 0);
        for (int i = 0; i < l->c->problem.nops; i++)
            lift_op(l, i, whole);
        for (int i = 0; i < l->c->problem.nedges; i++)
            lift_edge(l, i, whole);
        rc = topt_frontier_add(into, from->cost[0], l->choice, err);
    }
    for (int i = 1; i < from->npoints && !rc; i++) {
        lift_changes(l, s, (size_t)i, topt_strategy_read(&r, (size_t)i));
        rc = topt_frontier_add_changes(into, from->cost[i], l->change, l->nchanges, err);
    }
    topt_strategy_reader_fini(&r);
    return rc;
}

int topt_lift(const struct condensed *c, struct topt_frontier *from,
              struct topt_frontier *into, struct topt_error *err)
{
    struct lifting l = {.c = c};
    int rc = init(&l) ? topt_search_nomem(err) : lift_all(&l, from, into, err);
    fini(&l);
    return rc;
}
