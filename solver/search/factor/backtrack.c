/* backtrack.c - the strategies of points that a maker made.
 *
 * A point says of which two points it was made, down to the leaves, which are choices.
 * Neighbours on a frontier have most points in common: the walk of a strategy turns back
 * at a node that stands at the same point as in the strategy before. */
#include "backtrack.h"

#include <stdlib.h>
#include <string.h>

struct visit {
    int node;
    uint32_t point;
};

struct unrolling {
    const struct elimination_plan *plan;
    const struct back *back; /* by point */
    uint32_t *at;            /* by node: its point in the last strategy */
    struct visit *stack;
    int32_t *choice; /* of the last strategy */
};

static void unroll(const struct unrolling *u, uint32_t point)
{
    size_t n = 0;
    u->stack[n++] = (struct visit){u->plan->root, point};
    while (n) {
        struct visit v = u->stack[--n];
        const struct tree_node *p = &u->plan->node[v.node];
        if (u->at[v.node] == v.point)
            continue;
        u->at[v.node] = v.point;
        if (p->table->leaf) {
            int where = p->op >= 0 ? p->op : u->plan->problem->nops + p->edge;
            u->choice[where] = topt_leaf_choice(p->table, v.point);
            continue;
        }
        u->stack[n++] = (struct visit){p->left, u->back[v.point].a};
        if (p->right >= 0)
            u->stack[n++] = (struct visit){p->right, u->back[v.point].b};
    }
}

int topt_backtrack(const struct elimination_plan *plan, const struct maker *made,
                   const uint32_t *point, size_t n, struct strategies *into,
                   struct topt_error *err)
{
    size_t nnodes = (size_t)plan->nnodes;
    struct unrolling u = {.plan = plan, .back = made->merge.back};
    u.at = malloc((nnodes + 1) * sizeof *u.at);
    u.stack = malloc((nnodes + 2) * sizeof *u.stack);
    u.choice = calloc(into->width + 1, sizeof *u.choice);
    int rc = u.at && u.stack && u.choice ? 0 : topt_search_nomem(err);
    if (!rc)
        memset(u.at, 0xff, nnodes * sizeof *u.at); /* no point has the number */
    for (size_t i = 0; i < n && !rc; i++) {
        unroll(&u, point[i]);
        rc = topt_strategies_add(into, u.choice, err);
    }
    free(u.at);
    free(u.stack);
    free(u.choice);
    return rc;
}
