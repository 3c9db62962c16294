/* articulation.c - where a problem's graph falls apart: blocks, cut operators, and a
 * cutset.
 *
 *          .-- b --.       .-- e --.
 *     a - c         d --- d'        f      blocks {c b d ..}, {d' e f ..}; cut operators
 *          '-------'       '-------'       c, d, d'
 *
 * Strategies on both sides of a cut operator know of each other only through its
 * configuration.  Hopcroft and Tarjan's walk in depth finds blocks in linear time; here
 * with a stack of its own, since chains are long.
 *
 * A tensor that the first and the last operator share closes one circle through
 * everything: then the whole is one block until that operator is taken out (a cutset; its
 * values are then gone through one by one, see cutset_conditioning.c). */
#include "articulation.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALL_BLOCK = 6,  /* blocks of so many operators are no trouble */
    CANDIDATES = 256, /* operators tried for a cutset */
    MAX_CUTSET = 2,
};

void topt_graph_edges(const struct topt_search_problem *p, int *ret_first, int *ret_edge)
{
    for (int e = 0; e < p->nedges; e++) {
        ret_first[p->edge[e].from + 2]++;
        ret_first[p->edge[e].to + 2]++;
    }
    for (int i = 2; i <= p->nops + 1; i++)
        ret_first[i] += ret_first[i - 1];
    for (int e = 0; e < p->nedges; e++) {
        ret_edge[ret_first[p->edge[e].from + 1]++] = e;
        ret_edge[ret_first[p->edge[e].to + 1]++] = e;
    }
}

/* Neighbours of all operators: those of i are to[first[i]..first[i + 1]). */
struct adjacency {
    int *first, *to;
};

static int adjacency_init(struct adjacency *a, const struct topt_search_problem *p,
                          struct topt_error *err)
{
    size_t n = (size_t)p->nops;
    a->first = calloc(n + 2, sizeof *a->first);
    a->to = malloc((2 * (size_t)p->nedges + 1) * sizeof *a->to);
    if (!a->first || !a->to)
        return topt_search_nomem(err);
    topt_graph_edges(p, a->first, a->to);
    for (int i = 0; i < p->nops; i++)
        for (int k = a->first[i]; k < a->first[i + 1]; k++) {
            const struct topt_search_edge *x = &p->edge[a->to[k]];
            a->to[k] = x->from == i ? x->to : x->from;
        }
    return 0;
}

static void adjacency_fini(struct adjacency *a)
{
    free(a->first);
    free(a->to);
}

struct walk {
    const struct adjacency *near;
    const char *removed;
    char *cut;
    int *number, *low, *parent, *next; /* by operator; number 0: not seen yet */
    int *path, npath;                  /* from the root of the walk to where it stands */
    int *open, nopen;                  /* operators of blocks that are not complete */
    int count, largest;
};

static void enter(struct walk *w, int op, int parent)
{
    w->number[op] = w->low[op] = ++w->count;
    w->parent[op] = parent;
    w->next[op] = w->near->first[op];
    w->path[w->npath++] = op;
    w->open[w->nopen++] = op;
}

/* The block under 'child' of 'op' is complete: all that is open from 'child' on, and
 * 'op'. */
static void close_block(struct walk *w, int op, int child)
{
    int size = 1;
    while (w->open[--w->nopen] != child)
        size++;
    size++;
    if (size > w->largest)
        w->largest = size;
    if (w->parent[op] >= 0)
        w->cut[op] = 1;
}

static void finish_operator(struct walk *w, int op)
{
    int parent = w->parent[op];
    w->npath--;
    if (parent < 0)
        return;
    if (w->low[op] < w->low[parent])
        w->low[parent] = w->low[op];
    if (w->low[op] >= w->number[parent])
        close_block(w, parent, op);
}

static void walk_from(struct walk *w, int root)
{
    int children = 0;
    enter(w, root, -1);
    while (w->npath) {
        int op = w->path[w->npath - 1];
        if (w->next[op] == w->near->first[op + 1]) {
            finish_operator(w, op);
            continue;
        }
        int to = w->near->to[w->next[op]++];
        if (w->removed && w->removed[to])
            continue;
        if (!w->number[to]) {
            children += op == root;
            enter(w, to, op);
        } else if (to != w->parent[op] && w->number[to] < w->low[op]) {
            w->low[op] = w->number[to];
        }
    }
    w->nopen = 0;
    if (children > 1)
        w->cut[root] = 1;
}

static int blocks(const struct topt_search_problem *p, const struct adjacency *near,
                  const char *removed, char *cut, int *ret_largest,
                  struct topt_error *err)
{
    size_t n = (size_t)p->nops + 1;
    int *room = calloc(6 * n, sizeof *room);
    if (!room)
        return topt_search_nomem(err);
    struct walk w = {
        near, removed,      cut, room, room + n, room + 2 * n, room + 3 * n, room + 4 * n,
        0,    room + 5 * n, 0,   0,    0};
    memset(cut, 0, (size_t)p->nops);
    for (int i = 0; i < p->nops; i++)
        if (!w.number[i] && !(removed && removed[i]))
            walk_from(&w, i);
    *ret_largest = w.largest;
    free(room);
    return 0;
}

int topt_graph_blocks(const struct topt_search_problem *p, const char *removed,
                      char *ret_cut, int *ret_largest, struct topt_error *err)
{
    struct adjacency near;
    char *cut = ret_cut ? ret_cut : malloc((size_t)p->nops + 1);
    int rc = adjacency_init(&near, p, err);
    if (!rc && !cut)
        rc = topt_search_nomem(err);
    if (!rc)
        rc = blocks(p, &near, removed, cut, ret_largest, err);
    adjacency_fini(&near);
    if (!ret_cut)
        free(cut);
    return rc;
}

/* ---- cutset ------------------------------------------------------------------------ */

struct cutset {
    const struct topt_search_problem *p;
    struct adjacency near;
    char *removed, *scratch;
    int *order; /* candidates: those with most neighbours first */
    int values; /* that are left for operators to come */
    struct topt_error *err;
};

static int degree(const struct cutset *c, int op)
{
    return c->near.first[op + 1] - c->near.first[op];
}

/* The operators of highest degree, ties in order; counting them by degree is enough. */
static int order_candidates(struct cutset *c)
{
    int n = c->p->nops, most = 0, at = 0;
    for (int i = 0; i < n; i++)
        most = degree(c, i) > most ? degree(c, i) : most;
    for (int d = most; d >= 2 && at < CANDIDATES; d--)
        for (int i = 0; i < n && at < CANDIDATES; i++)
            if (degree(c, i) == d && c->p->op[i].nconfigs <= c->values)
                c->order[at++] = i;
    return at;
}

/* Take out the operator that leaves the smallest largest block; 1 where that is worth
 * it. */
static int add_to_cutset(struct cutset *c, int *largest)
{
    int best = -1, least = *largest, n = order_candidates(c);
    for (int i = 0; i < n; i++) {
        int op = c->order[i], after;
        if (c->removed[op])
            continue;
        c->removed[op] = 1;
        int rc = blocks(c->p, &c->near, c->removed, c->scratch, &after, c->err);
        c->removed[op] = 0;
        if (rc)
            return -1;
        if (after < least || (after == least && best >= 0 &&
                              c->p->op[op].nconfigs < c->p->op[best].nconfigs)) {
            least = after;
            best = op;
        }
    }
    if (best < 0 || least > *largest / 2)
        return 0;
    c->removed[best] = 1;
    c->values /= c->p->op[best].nconfigs ? c->p->op[best].nconfigs : 1;
    *largest = least;
    return 1;
}

int topt_graph_cutset(const struct topt_search_problem *p, int max_values,
                      char *ret_removed, struct topt_error *err)
{
    struct cutset c = {.p = p, .removed = ret_removed, .values = max_values, .err = err};
    int largest = 0, more = 1;
    int rc = adjacency_init(&c.near, p, err);
    c.scratch = malloc((size_t)p->nops + 1);
    c.order = malloc(CANDIDATES * sizeof *c.order);
    if (!rc && (!c.scratch || !c.order))
        rc = topt_search_nomem(err);
    if (!rc)
        rc = blocks(p, &c.near, c.removed, c.scratch, &largest, err);
    for (int i = 0; !rc && more > 0 && i < MAX_CUTSET && largest > SMALL_BLOCK; i++) {
        more = add_to_cutset(&c, &largest);
        rc = more < 0 ? -1 : 0;
    }
    adjacency_fini(&c.near);
    free(c.scratch);
    free(c.order);
    return rc;
}
