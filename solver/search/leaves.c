/* leaves.c - a problem's own costs as factor tables over classes of configurations.
 *
 * An operator's values are the distinct tuples of its configurations' classes on all its
 * edges; configurations that share a tuple are one frontier from the start.  Equal costs are
 * one table, however many operators or edges have them. */
#include "eliminate.h"

#include <stdlib.h>
#include <string.h>

static int nomem(struct plan *p)
{
    return topt_search_nomem(p->err);
}

/* ---- values ---- */

/* Pairs (class so far, class) -> new class. */
struct pair_slot {
    int32_t a, b, id;
};

static size_t pair_hash(int32_t a, int32_t b)
{
    uint64_t h = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 31);
}

int topt_refine(int32_t *id, int n, const int32_t *by)
{
    size_t cap = 16;
    while (cap < 2 * (size_t)n)
        cap *= 2;
    struct pair_slot *slot = malloc(cap * sizeof *slot);
    if (!slot)
        return -1;
    memset(slot, 0xff, cap * sizeof *slot);
    int count = 0;
    for (int i = 0; i < n; i++) {
        size_t h = pair_hash(id[i], by[i]) & (cap - 1);
        while (slot[h].id >= 0 && (slot[h].a != id[i] || slot[h].b != by[i]))
            h = (h + 1) & (cap - 1);
        if (slot[h].id < 0)
            slot[h] = (struct pair_slot){id[i], by[i], count++};
        id[i] = slot[h].id;
    }
    free(slot);
    return count;
}

/* ---- leaves ---- */

/* Tables of this plan, by their points, to give equal leaves the same. */
struct known {
    const struct points *points;
    struct table *table; /* of halves: the consumer's */
    int next;
};

/* Operators whose points were made, by what they came of. */
struct known_op {
    uint64_t hash;
    int op;
    const struct points *points;
    int next;
};

struct interner {
    struct known *known;
    struct known_op *op;
    int *bucket, *op_bucket;
    int n, nops, nbuckets;
};

static int interner_init(struct plan *p, struct interner *in)
{
    int n = p->problem->nops + p->problem->nedges;
    *in = (struct interner){.nbuckets = 2 * n + 1};
    in->known = TOPT_NEW(p->arena, n, struct known);
    in->op = TOPT_NEW(p->arena, p->problem->nops, struct known_op);
    in->bucket = TOPT_NEW(p->arena, in->nbuckets, int);
    in->op_bucket = TOPT_NEW(p->arena, in->nbuckets, int);
    if (!in->known || !in->op || !in->bucket || !in->op_bucket)
        return nomem(p);
    for (int i = 0; i < in->nbuckets; i++)
        in->bucket[i] = in->op_bucket[i] = -1;
    return 0;
}

/* Of an edge that is weighed end by end, whose table has so many rows and columns: both halves. */
static struct table *make_halves(struct plan *p, const struct points *points,
                                 const struct topt_table *t)
{
    struct half half = {points, t->from_classes, t->to_classes, NULL};
    half.from = topt_tables_half(&p->tables, half, p->err);
    return half.from ? topt_tables_half(&p->tables, half, p->err) : NULL;
}

/* The leaf of points; of those of 'halved' edges' tables (NULL: it is none) the consumer's half. */
static struct table *table_of(struct plan *p, struct interner *in,
                              const struct points *points,
                              const struct topt_table *halved)
{
    if (!points)
        return NULL;
    int b = (int)(((uintptr_t)points >> 4) % (uint64_t)in->nbuckets);
    for (int k = in->bucket[b]; k >= 0; k = in->known[k].next)
        if (in->known[k].points == points && !in->known[k].table->half.edge == !halved)
            return in->known[k].table;
    struct table *t = halved ? make_halves(p, points, halved)
                             : topt_tables_leaf(&p->tables, points, p->err);
    if (!t)
        return NULL;
    in->known[in->n] = (struct known){points, t, in->bucket[b]};
    in->bucket[b] = in->n++;
    return t;
}

static int same_op(const struct plan *p, int i, int j)
{
    const struct topt_search_op *a = &p->problem->op[i], *b = &p->problem->op[j];
    size_t n = (size_t)a->nconfigs;
    return a->nconfigs == b->nconfigs && p->nvalues[i] == p->nvalues[j] &&
           p->fixed[i] == p->fixed[j] &&
           (!n || (!memcmp(a->cost, b->cost, n * sizeof *a->cost) &&
                   !memcmp(p->value[i], p->value[j], n * sizeof *p->value[i])));
}

static const struct points *make_op_points(struct plan *p, int op)
{
    int n = p->problem->op[op].nconfigs;
    struct choice *c = malloc(((size_t)n + 1) * sizeof *c);
    if (!c) {
        nomem(p);
        return NULL;
    }
    size_t kept = 0;
    for (int i = 0; i < n; i++)
        if (p->fixed[op] < 0 || p->fixed[op] == i)
            c[kept++] = (struct choice){p->problem->op[op].cost[i], p->value[op][i], i};
    const struct points *ret =
        topt_points_of_choices(&p->store, c, kept, p->nvalues[op], p->err);
    free(c);
    return ret;
}

static const struct points *op_points(struct plan *p, struct interner *in, int op)
{
    size_t n = (size_t)p->problem->op[op].nconfigs;
    uint64_t h = topt_hash(p->problem->op[op].cost, n * sizeof(struct topt_cost), n);
    h = topt_hash(p->value[op], n * sizeof(int32_t), h);
    int b = (int)(h % (uint64_t)in->nbuckets);
    for (int k = in->op_bucket[b]; k >= 0; k = in->op[k].next)
        if (in->op[k].hash == h && same_op(p, in->op[k].op, op))
            return in->op[k].points;
    const struct points *points = make_op_points(p, op);
    if (points) {
        in->op[in->nops] = (struct known_op){h, op, points, in->op_bucket[b]};
        in->op_bucket[b] = in->nops++;
    }
    return points;
}

static int add_leaf(struct plan *p, struct table *t, int nops, const int *op,
                    const struct view *view, struct place place)
{
    struct factor f = {.table = t, .nops = nops};
    if (!t)
        return -1;
    f.op = TOPT_NEW(p->arena, nops, int);
    f.view = TOPT_NEW(p->arena, nops, struct view);
    if (!f.op || !f.view)
        return nomem(p);
    memcpy(f.op, op, (size_t)nops * sizeof *op);
    memcpy(f.view, view, (size_t)nops * sizeof *view);
    place.table = t;
    f.place = topt_plan_place(p, place);
    return topt_plan_factor(p, f) < 0 ? -1 : 0;
}

/* The values of every operator: the distinct tuples of classes of its configurations. */
static int find_values(struct plan *p)
{
    const struct topt_search_problem *g = p->problem;
    int32_t **id = TOPT_NEW(p->arena, g->nops, int32_t *);
    if (!id)
        return nomem(p);
    p->value = (const int32_t **)id;
    for (int i = 0; i < g->nops; i++) {
        id[i] = TOPT_NEW(p->arena, g->op[i].nconfigs, int32_t);
        if (!id[i])
            return nomem(p);
        p->nvalues[i] = g->op[i].nconfigs > 0;
    }
    for (int e = 0; e < g->nedges; e++) {
        const struct topt_search_edge *edge = &g->edge[e];
        int a = edge->from, b = edge->to;
        /* A decided operator has one value. */
        if (p->fixed[a] < 0)
            p->nvalues[a] = topt_refine(id[a], g->op[a].nconfigs, edge->from_class);
        if (p->fixed[b] < 0)
            p->nvalues[b] = topt_refine(id[b], g->op[b].nconfigs, edge->to_class);
        if (p->nvalues[a] < 0 || p->nvalues[b] < 0)
            return nomem(p);
    }
    return 0;
}

/* Classes by value, from classes by configuration. */
static int view_of_edge(struct plan *p, int op, const int32_t *class_of, int nclasses,
                        struct view *ret)
{
    int32_t *of = TOPT_NEW(p->arena, p->nvalues[op], int32_t);
    if (!of)
        return nomem(p);
    for (int c = 0; c < p->problem->op[op].nconfigs; c++)
        if (p->fixed[op] < 0 || p->fixed[op] == c)
            of[p->value[op][c]] = class_of[c];
    *ret = (struct view){nclasses, of};
    return 0;
}

static int view_of_self(struct plan *p, int op, struct view *ret)
{
    int32_t *of = TOPT_NEW(p->arena, p->nvalues[op], int32_t);
    if (!of)
        return nomem(p);
    for (int v = 0; v < p->nvalues[op]; v++)
        of[v] = v;
    *ret = (struct view){p->nvalues[op], of};
    return 0;
}

static int add_edge(struct plan *p, struct interner *in, int number)
{
    const struct topt_search_edge *e = &p->problem->edge[number];
    int halved = p->relaxed && p->relaxed[number];
    const struct points *points = topt_points_of_table(&p->store, e->table, p->err);
    struct table *t = table_of(p, in, points, halved ? e->table : NULL);
    struct place place = {-1, -1, -1, number, NULL};
    struct view view[2];
    if (!t || view_of_edge(p, e->from, e->from_class, e->table->from_classes, &view[0]) ||
        view_of_edge(p, e->to, e->to_class, e->table->to_classes, &view[1]))
        return -1;
    if (!halved)
        return add_leaf(p, t, 2, (int[]){e->from, e->to}, view, place);
    return add_leaf(p, (struct table *)t->half.from, 1, &e->from, &view[0], place) ||
           add_leaf(p, t, 1, &e->to, &view[1], place);
}

int topt_plan_leaves(struct plan *p)
{
    const struct topt_search_problem *g = p->problem;
    struct interner in;
    if (find_values(p) || interner_init(p, &in))
        return -1;
    for (int i = 0; i < g->nops; i++) {
        struct view view;
        struct place place = {-1, -1, i, -1, NULL};
        struct table *t = table_of(p, &in, op_points(p, &in, i), NULL);
        if (view_of_self(p, i, &view) || add_leaf(p, t, 1, &i, &view, place))
            return -1;
        t->rest_wanted = 1;
    }
    for (int i = 0; i < g->nedges; i++)
        if (add_edge(p, &in, i))
            return -1;
    return 0;
}
