/* lift.c - the way back: what a strategy of a condensed problem is in the problem it came of.
 *
 * Every operator and edge of the condensed problem is a factor of the original's plan, and
 * what a strategy takes of it is a point of that factor's table.  A point says of which two
 * points it was made, down to the leaves, which are the original's own choices.  Neighbours
 * on a frontier have much in common, so only what differs from the one before is walked. */
#include "lift.h"

size_t topt_lift_stack(const struct condensed *c)
{
    return 2 * ((size_t)c->plan.nplaces + 2);
}

/* What the points of a place were made of, down to the leaves. */
static void unroll(const struct condensed *c, int place, int64_t point, int64_t *stack,
                   int32_t *choice)
{
    const struct plan *plan = &c->plan;
    size_t n = 0;
    stack[n++] = place;
    stack[n++] = point;
    while (n) {
        point = stack[--n];
        const struct place *p = &plan->place[stack[--n]];
        if (p->table->leaf) {
            choice[p->op >= 0 ? p->op : plan->problem->nops + p->edge] =
                p->table->choice[point];
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

/* The point that a strategy takes of an edge's factor. */
static int64_t point_of_edge(const struct condensed *c, const struct factor *f, int edge,
                             const int32_t *strategy)
{
    const struct topt_search_edge *e = &c->problem.edge[edge];
    int64_t entry = (int64_t)e->from_class[strategy[e->from]] * e->table->to_classes +
                    e->to_class[strategy[e->to]];
    struct run r = topt_made_entry(&c->maker, f->table, f->table->first_entry + entry);
    return (int64_t)r.base + strategy[c->problem.nops + edge];
}

static int same_edge(const struct condensed *c, int edge, const int32_t *a,
                     const int32_t *b)
{
    const struct topt_search_edge *e = &c->problem.edge[edge];
    int n = c->problem.nops;
    return a[n + edge] == b[n + edge] && a[e->from] == b[e->from] && a[e->to] == b[e->to];
}

void topt_lift(const struct condensed *c, const int32_t *strategy, const int32_t *before,
               int64_t *stack, int32_t *choice)
{
    const struct topt_search_problem *q = &c->problem;
    for (int i = 0; i < q->nops; i++) {
        if (before && before[i] == strategy[i])
            continue;
        const struct factor *f = &c->plan.factor[c->op_factor[i]];
        unroll(c, f->place, c->point[i][strategy[i]], stack, choice);
    }
    for (int i = 0; i < q->nedges; i++) {
        if (before && same_edge(c, i, before, strategy))
            continue;
        const struct factor *f = &c->plan.factor[c->edge_factor[i]];
        unroll(c, f->place, point_of_edge(c, f, i, strategy), stack, choice);
    }
}
