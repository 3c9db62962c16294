/* backtrack.c - the strategies of points that a maker made.
 *
 * A point says of which two points it was made, down to the leaves, which are choices.
 * All points of an answer go down together, node after node, and a node passes on only
 * where it differs from one strategy to the next:
 *
 *     root     strategy 0: p   1: q   2: r   3: s
 *     left     strategy 0: a          2: b            (p and q are made of a, r and s of b)
 *     a leaf   strategy 0: 7          2: 3            changes of strategies 0 and 2
 *
 * So what neighbours have in common is not walked twice, and the points of one node are
 * looked up side by side instead of each waiting for the one above it.  The smaller part
 * of a node goes first, so that few lists wait at a time. */
#include "backtrack.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

/* From this strategy on, until the next in the list, a node stands at this point. */
struct visit {
    uint32_t strategy, point;
};

/* A node's visits: at[from .. from + n). */
struct waiting {
    int node;
    size_t from, n;
};

struct event {
    uint32_t strategy;
    struct change change;
};

struct unrolling {
    const struct elimination_plan *plan;
    const struct back *back; /* by point */
    struct waiting *stack;
    size_t nstack;
    struct visit *at;
    struct event *event;
    size_t cap_at, nevents, cap_events;
};

static int room_for_visits(struct unrolling *u, size_t need)
{
    if (need <= u->cap_at)
        return 0;
    if (TOPT_RESIZE(u->at, 2 * need))
        return -1;
    u->cap_at = 2 * need;
    return 0;
}

static int room_for_events(struct unrolling *u, size_t more)
{
    if (u->nevents + more <= u->cap_events)
        return 0;
    size_t cap = 2 * (u->nevents + more);
    if (TOPT_RESIZE(u->event, cap))
        return -1;
    u->cap_events = cap;
    return 0;
}

/* A leaf's visits are choices; different points may be the same choice. */
static int visit_leaf(struct unrolling *u, struct waiting w)
{
    const struct tree_node *p = &u->plan->node[w.node];
    int where = p->op >= 0 ? p->op : u->plan->problem->nops + p->edge;
    const struct visit *at = u->at + w.from;
    if (room_for_events(u, w.n))
        return -1;
    int32_t last = -1;
    for (size_t i = 0; i < w.n; i++) {
        int32_t value = topt_leaf_choice(p->table, at[i].point);
        if (value == last)
            continue;
        last = value;
        u->event[u->nevents++] = (struct event){at[i].strategy, {(uint32_t)where, value}};
    }
    return 0;
}

/* A step of one table. */
static void visit_single(struct unrolling *u, struct waiting w)
{
    struct visit *at = u->at + w.from;
    size_t n = 0;
    for (size_t i = 0; i < w.n; i++) {
        uint32_t point = u->back[at[i].point].a;
        if (!n || at[n - 1].point != point)
            at[n++] = (struct visit){at[i].strategy, point};
    }
    u->stack[u->nstack++] = (struct waiting){u->plan->node[w.node].left, w.from, n};
}

/* A step of two: the larger part's visits take the place of its own, the smaller one's
 * stand behind them and are next. */
static int visit_pair(struct unrolling *u, struct waiting w)
{
    const struct tree_node *node = u->plan->node, *p = &node[w.node];
    int left_first = node[p->left].table->nparts <= node[p->right].table->nparts;
    if (room_for_visits(u, w.from + 2 * w.n))
        return -1;
    struct visit *large = u->at + w.from, *small = large + w.n;
    size_t nlarge = 0, nsmall = 0;
    for (size_t i = 0; i < w.n; i++) {
        struct visit v = large[i];
        struct back back = u->back[v.point];
        uint32_t s = left_first ? back.a : back.b, l = left_first ? back.b : back.a;
        if (!nsmall || small[nsmall - 1].point != s)
            small[nsmall++] = (struct visit){v.strategy, s};
        if (!nlarge || large[nlarge - 1].point != l)
            large[nlarge++] = (struct visit){v.strategy, l};
    }
    u->stack[u->nstack++] =
        (struct waiting){left_first ? p->right : p->left, w.from, nlarge};
    u->stack[u->nstack++] =
        (struct waiting){left_first ? p->left : p->right, w.from + w.n, nsmall};
    return 0;
}

static int visit_all(struct unrolling *u)
{
    while (u->nstack) {
        struct waiting w = u->stack[--u->nstack];
        const struct tree_node *p = &u->plan->node[w.node];
        int rc = 0;
        if (p->table->leaf)
            rc = visit_leaf(u, w);
        else if (p->right < 0)
            visit_single(u, w);
        else
            rc = visit_pair(u, w);
        if (rc)
            return -1;
    }
    return 0;
}

/* Changes in the order of strategies; 'first' has room for their number and one more. */
static void sort_events(const struct unrolling *u, size_t n, size_t *first,
                        struct change *ret)
{
    for (size_t i = 0; i < u->nevents; i++)
        first[u->event[i].strategy]++;
    for (size_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    for (size_t i = u->nevents; i-- > 0;)
        ret[--first[u->event[i].strategy]] = u->event[i].change;
}

/* The first strategy's changes are all of its choices. */
static int add_all(const struct unrolling *u, size_t n, struct strategies *into,
                   struct topt_error *err)
{
    size_t *first = calloc(n + 2, sizeof *first);
    struct change *change = malloc((u->nevents + 1) * sizeof *change);
    int32_t *choice = calloc(into->width + 1, sizeof *choice);
    int rc = first && change && choice ? 0 : topt_search_nomem(err);
    if (!rc) {
        sort_events(u, n, first, change);
        for (size_t i = 0; i < first[1]; i++)
            choice[change[i].at] = change[i].value;
        rc = topt_strategies_add(into, choice, err);
    }
    for (size_t i = 1; i < n && !rc; i++)
        rc = topt_strategies_add_changes(into, change + first[i], first[i + 1] - first[i],
                                         err);
    free(first);
    free(change);
    free(choice);
    return rc;
}

int topt_backtrack(const struct elimination_plan *plan, const struct maker *made,
                   const uint32_t *point, size_t n, struct strategies *into,
                   struct topt_error *err)
{
    struct unrolling u = {.plan = plan, .back = made->merge.back};
    if (!n)
        return 0;
    u.stack = malloc(((size_t)plan->nnodes + 2) * sizeof *u.stack);
    int rc = !u.stack || room_for_visits(&u, n) ? topt_search_nomem(err) : 0;
    for (size_t i = 0; i < n && !rc; i++)
        u.at[i] = (struct visit){(uint32_t)i, point[i]};
    if (!rc) {
        u.stack[u.nstack++] = (struct waiting){plan->root, 0, n};
        rc = visit_all(&u) ? topt_search_nomem(err) : add_all(&u, n, into, err);
    }
    free(u.stack);
    free(u.at);
    free(u.event);
    return rc;
}
