/* costs_order.c - an order of operators and edges that does not depend on the file's.
 *
 * Producers come first, and by name where that leaves a choice, with numbers in names
 * counting as numbers.  Edges follow their ends, and parallel ones what they cost.  So
 * the search does the same for every order of the file, and repeated blocks look
 * alike. */
#include "costs.h"

#include <stdlib.h>
#include <string.h>

/* By name, where runs of digits compare as numbers. */
static int by_name(const void *x, const void *y)
{
    return strverscmp((*(const struct topt_search_op *const *)x)->name,
                      (*(const struct topt_search_op *const *)y)->name);
}

/* A heap of ranks, smallest first. */
static void heap_push(int *heap, int n, int rank)
{
    for (; n > 0 && heap[(n - 1) / 2] > rank; n = (n - 1) / 2)
        heap[n] = heap[(n - 1) / 2];
    heap[n] = rank;
}

static int heap_pop(int *heap, int n)
{
    int top = heap[0], last = heap[n - 1], i = 0;
    for (n--; 2 * i + 1 < n;) {
        int child = 2 * i + 1;
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= last)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = last;
    return top;
}

struct order {
    const struct topt_search_problem *problem;
    const struct topt_search_op **by_rank;
    int *rank;  /* by operator */
    int *place; /* by rank: the operator's number in the new order */
    int *waits, *head, *next, *heap;
};

/* Kahn's, taking of the operators that wait for nothing the first by name. */
static int sort_ops(const struct topt_search_problem *p, struct order *o)
{
    int n = p->nops, ready = 0, done = 0;
    for (int i = 0; i < n; i++)
        o->by_rank[i] = &p->op[i];
    if (n)
        qsort(o->by_rank, (size_t)n, sizeof(*o->by_rank), by_name);
    for (int i = 0; i < n; i++) {
        o->rank[o->by_rank[i] - p->op] = i;
        o->head[i] = -1;
    }
    for (int e = 0; e < p->nedges; e++) {
        int from = o->rank[p->edge[e].from];
        o->waits[o->rank[p->edge[e].to]]++;
        o->next[e] = o->head[from];
        o->head[from] = e;
    }
    for (int i = 0; i < n; i++)
        if (!o->waits[i])
            heap_push(o->heap, ready++, i);
    while (ready) {
        int rank = heap_pop(o->heap, ready--);
        o->place[rank] = done++;
        for (int e = o->head[rank]; e >= 0; e = o->next[e]) {
            int to = o->rank[p->edge[e].to];
            if (!--o->waits[to])
                heap_push(o->heap, ready++, to);
        }
    }
    return done;
}

static int make_order(struct topt_arena *a, const struct topt_search_problem *p,
                      struct order *o)
{
    size_t n = (size_t)p->nops;
    o->by_rank = TOPT_NEW(a, n, const struct topt_search_op *);
    o->rank = TOPT_NEW(a, n, int);
    o->place = TOPT_NEW(a, n, int);
    o->waits = TOPT_NEW(a, n, int);
    o->head = TOPT_NEW(a, n, int);
    o->next = TOPT_NEW(a, p->nedges, int);
    o->heap = TOPT_NEW(a, n, int);
    return o->by_rank && o->rank && o->place && o->waits && o->head && o->next && o->heap
               ? 0
               : -1;
}

/* ---- edges ------------------------------------------------------------------------- */

static int compare_bytes(const void *a, const void *b, size_t n)
{
    return a == b || !n ? 0 : memcmp(a, b, n);
}

/* By entries, alternatives and who has which: what is equal is interned, so that most
 * that are looked at are the same pointer. */
static int compare_costs(const struct topt_search_problem *p,
                         const struct topt_search_edge *x,
                         const struct topt_search_edge *y)
{
    const struct topt_table *a = x->table, *b = y->table;
    size_t n = (size_t)a->from_classes * (size_t)a->to_classes;
    size_t nfrom = (size_t)p->op[x->from].nconfigs, nto = (size_t)p->op[x->to].nconfigs;
    int c = a->from_classes - b->from_classes;
    if (!c)
        c = a->to_classes - b->to_classes;
    if (!c)
        c = compare_bytes(a->first, b->first, (n + 1) * sizeof *a->first);
    if (!c)
        c = compare_bytes(a->alt, b->alt, (size_t)a->first[n] * sizeof *a->alt);
    if (!c)
        c = compare_bytes(x->from_class, y->from_class, nfrom * sizeof *x->from_class);
    return c ? c : compare_bytes(x->to_class, y->to_class, nto * sizeof *x->to_class);
}

/* By the places of their ends, and parallel edges by costs. */
static int by_ends(const void *a, const void *b, void *ctx)
{
    const struct order *o = ctx;
    int i = *(const int *)a, k = *(const int *)b;
    const struct topt_search_edge *x = &o->problem->edge[i], *y = &o->problem->edge[k];
    int c = o->place[o->rank[x->from]] - o->place[o->rank[y->from]];
    if (!c)
        c = o->place[o->rank[x->to]] - o->place[o->rank[y->to]];
    if (!c)
        c = compare_costs(o->problem, x, y);
    return c ? c : i - k;
}

int topt_costs_order(const struct topt_search_problem *p, struct topt_arena *arena,
                     struct topt_search_problem *ret, const int **ret_number,
                     struct topt_error *err)
{
    size_t n = (size_t)p->nops, m = (size_t)p->nedges;
    struct topt_arena *a = topt_arena_create(0);
    struct topt_search_op *op = TOPT_NEW(arena, n, struct topt_search_op);
    struct topt_search_edge *edge = TOPT_NEW(arena, m, struct topt_search_edge);
    int *number = TOPT_NEW(arena, m, int);
    struct order o = {.problem = p};
    int rc =
        a && op && edge && number && !make_order(a, p, &o) ? 0 : topt_costs_nomem(err);
    int in_order = !rc && sort_ops(p, &o) == p->nops;
    for (size_t i = 0; !rc && i < n; i++)
        op[in_order ? o.place[o.rank[i]] : (int)i] = p->op[i];
    for (size_t i = 0; !rc && i < m; i++)
        number[i] = (int)i;
    if (in_order && m)
        qsort_r(number, m, sizeof *number, by_ends, &o);
    for (size_t i = 0; !rc && i < m; i++) {
        edge[i] = p->edge[number[i]];
        if (in_order) {
            edge[i].from = o.place[o.rank[edge[i].from]];
            edge[i].to = o.place[o.rank[edge[i].to]];
        }
    }
    *ret = (struct topt_search_problem){p->nops, op, p->nedges, edge};
    *ret_number = number;
    if (a)
        topt_arena_destroy(a);
    return rc;
}
