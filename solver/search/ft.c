/* ft.c - the exact frontier of any graph, by eliminating operators in order of cheapness.
 *
 * Every cost is a factor: a table of small frontiers over some operators.  An operator's own
 * costs are a factor over it, an edge's costs one over its two ends.  To eliminate operator v,
 * all factors over v are multiplied (costs added up) and v is united out:
 *
 *     a --- v --- b        A(a, v) x V(v) x B(v, b)   -->   a --- b      F(a, b)
 *
 * That is node, edge, branch and sink elimination of the paper in one rule; along a chain,
 * from its end, it is the paper's linear dynamic programming.  What is left when no operator
 * is, is the answer.  Each point remembers which points of which two factors it was made of,
 * so that a walk down to the leaves gives its strategy.
 *
 * Three things keep it small:
 *
 *   Classes.  Factors see an operator only through classes of its configurations: an edge
 *   table has an entry for a pair of classes.  A 'view' maps an operator's values to the
 *   classes a factor tells apart.  While v is on its way out and factors remain to be
 *   multiplied, v is united at once over all values that the remaining ones can't tell apart.
 *   An operator's values are the distinct tuples of its classes on all its edges; the
 *   configurations that share a tuple are one frontier from the start.
 *
 *   Sharing.  A step is described by its input tables and an array of offsets (table.h);
 *   tables are remembered by that, so what repeats is made once, though each layer remains
 *   free to choose.
 *
 *   Order.  Fewest operators in the new table first, then fewest expected points.  Blocks of
 *   branches between two operators thereby become tables over the two before a growing
 *   frontier is carried through them, and a chain is walked from an end.
 *
 * Where a limit of time is given, or only the fastest strategy is wanted, the eliminations
 * are planned first, and the tables made afterwards under bounds that know what the rest of
 * the problem costs at least (bounds.c). */
#include "bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct view {
    int n;             /* classes */
    const int32_t *of; /* class by value of the operator */
};

/* How a table came about in the problem: shared tables stand in several places. */
struct place {
    int left, right; /* places; -1 none */
    int op, edge;    /* leaves; -1 no */
    const struct table *table;
};

struct factor {
    struct table *table;
    int place, nops;
    int *op;           /* by dimension, outermost first */
    struct view *view; /* by dimension; view.n is the dimension's size */
    int gone;
};

struct list {
    int *item;
    int n, cap;
};

struct ft {
    const struct topt_search_problem *problem;
    const struct topt_search_options *options;
    struct topt_error *err;
    struct topt_arena *arena;
    struct tables tables;
    int *nvalues;            /* by operator */
    const int32_t **value;   /* by operator: value by configuration */
    struct list *factors_of; /* by operator; may hold factors that are gone */
    struct factor *factor;
    int nfactors, cap_factors;
    struct place *place;
    int nplaces, cap_places;
    int *seen; /* scratch, by operator: a stamp */
    int *slot;
    int stamp;
    double *rank_points; /* by operator: expected points; see rate */
    int *rank_ops;
};

static int nomem(struct ft *ft)
{
    return topt_search_nomem(ft->err);
}

/* ---- views ---- */

/* One hash table for refine(): pairs (class so far, class) -> new class. */
struct pair_slot {
    int32_t a, b, id;
};

static size_t pair_hash(int32_t a, int32_t b)
{
    uint64_t h = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 31);
}

/* Split the classes in 'id' (n of them) by 'by': values stay together where both agree.
 * Classes are numbered by first occurrence.  Returns their number, or -1 (memory). */
static int refine(int32_t *id, int n, const int32_t *by)
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

/* The view that tells apart what any of 'views' (some NULL) does. */
static int join_views(struct ft *ft, int op, const struct view *const *views, int nviews,
                      struct view *ret)
{
    int n = ft->nvalues[op];
    int32_t *id = TOPT_NEW(ft->arena, n, int32_t);
    if (!id)
        return nomem(ft);
    *ret = (struct view){n ? 1 : 0, id};
    for (int i = 0; i < nviews; i++)
        if (views[i] && (ret->n = refine(id, n, views[i]->of)) < 0)
            return nomem(ft);
    return 0;
}

/* ---- factors and places ---- */

static int grow(void **array, int *cap, int need, size_t size)
{
    if (need <= *cap)
        return 0;
    int want = *cap ? 2 * *cap : 64;
    void *p = realloc(*array, (size_t)want * size);
    if (!p)
        return -1;
    *array = p;
    *cap = want;
    return 0;
}

static int add_place(struct ft *ft, struct place place)
{
    if (grow((void **)&ft->place, &ft->cap_places, ft->nplaces + 1, sizeof place))
        return nomem(ft);
    ft->place[ft->nplaces] = place;
    return ft->nplaces++;
}

static int add_factor(struct ft *ft, struct factor f)
{
    if (f.place < 0 ||
        grow((void **)&ft->factor, &ft->cap_factors, ft->nfactors + 1, sizeof f))
        return f.place < 0 ? -1 : nomem(ft);
    ft->factor[ft->nfactors] = f;
    for (int d = 0; d < f.nops; d++) {
        struct list *l = &ft->factors_of[f.op[d]];
        if (grow((void **)&l->item, &l->cap, l->n + 1, sizeof *l->item))
            return nomem(ft);
        l->item[l->n++] = ft->nfactors;
    }
    return ft->nfactors++;
}

static void drop_factor(struct ft *ft, int f)
{
    ft->factor[f].gone = 1;
    topt_tables_release(&ft->tables, ft->factor[f].table);
}

/* ---- leaves ---- */

struct choice {
    struct topt_cost cost;
    int32_t entry, number;
};

static int by_entry(const void *x, const void *y)
{
    const struct choice *a = x, *b = y;
    if (a->entry != b->entry)
        return a->entry < b->entry ? -1 : 1;
    if (a->cost.memory != b->cost.memory)
        return a->cost.memory < b->cost.memory ? -1 : 1;
    if (a->cost.time != b->cost.time)
        return a->cost.time < b->cost.time ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* Keep of each entry the points that nothing beats. */
static size_t reduce_choices(struct choice *c, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (!kept || c[kept - 1].entry != c[i].entry ||
            c[i].cost.time < c[kept - 1].cost.time)
            c[kept++] = c[i];
    return kept;
}

/* A leaf table from choices in any order; 'c' is reordered. */
static struct table *make_leaf(struct ft *ft, struct choice *c, size_t n,
                               int64_t nentries)
{
    if (n > 1)
        qsort(c, n, sizeof *c, by_entry);
    n = reduce_choices(c, n);
    struct table *t = topt_tables_add(&ft->tables, nentries, (uint32_t)n, ft->err);
    if (!t)
        return NULL;
    t->leaf = 1;
    t->least = n ? INT64_MAX : 0;
    for (size_t i = 0; i < n; i++) {
        t->cost[i] = c[i].cost;
        t->back[i] = (struct back){(uint32_t)c[i].number, 0};
        t->first[c[i].entry + 1]++;
        if (c[i].cost.memory < t->least)
            t->least = c[i].cost.memory;
    }
    for (int64_t e = 0; e < nentries; e++) {
        if (t->first[e + 1] > (uint32_t)ft->tables.stats.max_frontier)
            ft->tables.stats.max_frontier = (int)t->first[e + 1];
        t->first[e + 1] += t->first[e];
    }
    return t;
}

static int same_op(const struct ft *ft, int i, int j)
{
    const struct topt_search_op *a = &ft->problem->op[i], *b = &ft->problem->op[j];
    size_t n = (size_t)a->nconfigs;
    return a->nconfigs == b->nconfigs && ft->nvalues[i] == ft->nvalues[j] &&
           (!n || (!memcmp(a->cost, b->cost, n * sizeof *a->cost) &&
                   !memcmp(ft->value[i], ft->value[j], n * sizeof *ft->value[i])));
}

static struct table *make_op_table(struct ft *ft, int op)
{
    int n = ft->problem->op[op].nconfigs;
    struct choice *c = malloc(((size_t)n + 1) * sizeof *c);
    if (!c) {
        nomem(ft);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        c[i] = (struct choice){ft->problem->op[op].cost[i], ft->value[op][i], i};
    struct table *t = make_leaf(ft, c, (size_t)n, ft->nvalues[op]);
    free(c);
    return t;
}

static struct table *make_edge_table(struct ft *ft, const struct topt_table *from)
{
    int64_t nentries = (int64_t)from->from_classes * from->to_classes;
    size_t n = (size_t)from->first[nentries];
    struct choice *c = malloc((n + 1) * sizeof *c);
    if (!c) {
        nomem(ft);
        return NULL;
    }
    for (int64_t e = 0; e < nentries; e++)
        for (int32_t k = from->first[e]; k < from->first[e + 1]; k++)
            c[k] = (struct choice){from->alt[k], (int32_t)e, k - from->first[e]};
    struct table *t = make_leaf(ft, c, n, nentries);
    free(c);
    return t;
}

static int same_table(const struct topt_table *a, const struct topt_table *b)
{
    if (a == b)
        return 1;
    if (a->from_classes != b->from_classes || a->to_classes != b->to_classes)
        return 0;
    size_t n = (size_t)a->from_classes * (size_t)a->to_classes;
    return !memcmp(a->first, b->first, (n + 1) * sizeof *a->first) &&
           (!a->first[n] ||
            !memcmp(a->alt, b->alt, (size_t)a->first[n] * sizeof *a->alt));
}

/* Leaves seen so far, to give equal ones the same table. */
struct known {
    uint64_t hash;
    int number; /* operator or edge */
    struct table *table;
    int next;
};

struct interner {
    struct known *known;
    int *bucket;
    int n, nbuckets;
};

static int interner_init(struct ft *ft, struct interner *in, int n)
{
    in->nbuckets = 2 * n + 1;
    in->known = TOPT_NEW(ft->arena, n, struct known);
    in->bucket = TOPT_NEW(ft->arena, in->nbuckets, int);
    if (!in->known || !in->bucket)
        return nomem(ft);
    for (int i = 0; i < in->nbuckets; i++)
        in->bucket[i] = -1;
    in->n = 0;
    return 0;
}

static void intern(struct interner *in, uint64_t hash, int number, struct table *t)
{
    int b = (int)(hash % (uint64_t)in->nbuckets);
    in->known[in->n] = (struct known){hash, number, t, in->bucket[b]};
    in->bucket[b] = in->n++;
}

static struct table *op_leaf(struct ft *ft, struct interner *in, int op)
{
    size_t n = (size_t)ft->problem->op[op].nconfigs;
    uint64_t h = topt_hash(ft->problem->op[op].cost, n * sizeof(struct topt_cost), n);
    h = topt_hash(ft->value[op], n * sizeof(int32_t), h);
    for (int k = in->bucket[h % (uint64_t)in->nbuckets]; k >= 0; k = in->known[k].next)
        if (in->known[k].hash == h && same_op(ft, in->known[k].number, op))
            return in->known[k].table;
    struct table *t = make_op_table(ft, op);
    if (t)
        intern(in, h, op, t);
    return t;
}

static struct table *edge_leaf(struct ft *ft, struct interner *in, int edge)
{
    const struct topt_table *from = ft->problem->edge[edge].table;
    size_t n = (size_t)from->from_classes * (size_t)from->to_classes;
    uint64_t h = topt_hash(from->first, (n + 1) * sizeof *from->first, n);
    h = topt_hash(from->alt, (size_t)from->first[n] * sizeof *from->alt, h);
    for (int k = in->bucket[h % (uint64_t)in->nbuckets]; k >= 0; k = in->known[k].next) {
        const struct known *old = &in->known[k];
        if (old->hash == h && same_table(ft->problem->edge[old->number].table, from))
            return old->table;
    }
    struct table *t = make_edge_table(ft, from);
    if (t)
        intern(in, h, edge, t);
    return t;
}

static int add_least(struct ft *ft, const struct table *t)
{
    if (add_overflows(ft->tables.least, t->least, &ft->tables.least))
        return topt_search_overflow(ft->err);
    return 0;
}

static int add_leaf(struct ft *ft, struct table *t, int nops, const int *op,
                    const struct view *view, struct place place)
{
    struct factor f = {.table = t, .nops = nops};
    if (!t || add_least(ft, t))
        return -1;
    f.op = TOPT_NEW(ft->arena, nops, int);
    f.view = TOPT_NEW(ft->arena, nops, struct view);
    if (!f.op || !f.view)
        return nomem(ft);
    memcpy(f.op, op, (size_t)nops * sizeof *op);
    memcpy(f.view, view, (size_t)nops * sizeof *view);
    place.table = t;
    t->refs++;
    f.place = add_place(ft, place);
    return add_factor(ft, f) < 0 ? -1 : 0;
}

/* The values of every operator: the distinct tuples of classes of its configurations. */
static int find_values(struct ft *ft)
{
    const struct topt_search_problem *p = ft->problem;
    int32_t **id = TOPT_NEW(ft->arena, p->nops, int32_t *);
    if (!id)
        return nomem(ft);
    ft->value = (const int32_t **)id;
    for (int i = 0; i < p->nops; i++) {
        id[i] = TOPT_NEW(ft->arena, p->op[i].nconfigs, int32_t);
        if (!id[i])
            return nomem(ft);
        ft->nvalues[i] = p->op[i].nconfigs > 0;
    }
    for (int e = 0; e < p->nedges; e++) {
        const struct topt_search_edge *edge = &p->edge[e];
        int a = edge->from, b = edge->to;
        ft->nvalues[a] = refine(id[a], p->op[a].nconfigs, edge->from_class);
        ft->nvalues[b] = refine(id[b], p->op[b].nconfigs, edge->to_class);
        if (ft->nvalues[a] < 0 || ft->nvalues[b] < 0)
            return nomem(ft);
    }
    return 0;
}

/* Classes by value, from classes by configuration. */
static int view_of_edge(struct ft *ft, int op, const int32_t *class_of, int nclasses,
                        struct view *ret)
{
    int32_t *of = TOPT_NEW(ft->arena, ft->nvalues[op], int32_t);
    if (!of)
        return nomem(ft);
    for (int c = 0; c < ft->problem->op[op].nconfigs; c++)
        of[ft->value[op][c]] = class_of[c];
    *ret = (struct view){nclasses, of};
    return 0;
}

static int view_of_self(struct ft *ft, int op, struct view *ret)
{
    int32_t *of = TOPT_NEW(ft->arena, ft->nvalues[op], int32_t);
    if (!of)
        return nomem(ft);
    for (int v = 0; v < ft->nvalues[op]; v++)
        of[v] = v;
    *ret = (struct view){ft->nvalues[op], of};
    return 0;
}

static int make_leaves(struct ft *ft)
{
    const struct topt_search_problem *p = ft->problem;
    struct interner ops, edges;
    if (interner_init(ft, &ops, p->nops) || interner_init(ft, &edges, p->nedges))
        return -1;
    for (int i = 0; i < p->nops; i++) {
        struct view view;
        struct place place = {-1, -1, i, -1, NULL};
        if (view_of_self(ft, i, &view) ||
            add_leaf(ft, op_leaf(ft, &ops, i), 1, &i, &view, place))
            return -1;
    }
    for (int i = 0; i < p->nedges; i++) {
        const struct topt_search_edge *e = &p->edge[i];
        struct view view[2];
        struct place place = {-1, -1, -1, i, NULL};
        if (view_of_edge(ft, e->from, e->from_class, e->table->from_classes, &view[0]) ||
            view_of_edge(ft, e->to, e->to_class, e->table->to_classes, &view[1]) ||
            add_leaf(ft, edge_leaf(ft, &edges, i), 2, (int[]){e->from, e->to}, view,
                     place))
            return -1;
    }
    return 0;
}

/* ---- one step: multiply two factors, unite what no other factor sees ---- */

static const struct view *view_in(const struct factor *f, int op, int64_t *ret_stride)
{
    int64_t stride = 1;
    const struct view *view = NULL;
    for (int d = f ? f->nops - 1 : -1; d >= 0; d--) {
        if (f->op[d] == op) {
            view = &f->view[d];
            *ret_stride = stride;
        }
        stride *= f->view[d].n;
    }
    return view;
}

static int union_of_ops(struct ft *ft, const struct factor *a, const struct factor *b,
                        int without, int *ops)
{
    int n = 0, stamp = ++ft->stamp;
    const struct factor *both[2] = {a, b};
    for (int i = 0; i < 2; i++)
        for (int d = 0; both[i] && d < both[i]->nops; d++) {
            int op = both[i]->op[d];
            if (op == without || ft->seen[op] == stamp)
                continue;
            ft->seen[op] = stamp;
            ops[n++] = op;
        }
    /* In the order of the problem, so that equal blocks come out alike. */
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && ops[j] < ops[j - 1]; j--) {
            int swap = ops[j];
            ops[j] = ops[j - 1];
            ops[j - 1] = swap;
        }
    return n;
}

/* A step being written; offsets go into the recipe. */
struct draft {
    const struct factor *a, *b;
    struct factor made;
    int nouter;         /* dimensions other than the operator on its way out */
    struct view *joint; /* by outer dimension: what a and b tell apart */
    struct view out;    /* of the operator on its way: what the remaining factors see */
    struct view inner;  /* of it: what a, b and the remaining ones see */
    int leaving;        /* the operator, or -1 */
    int last;           /* it leaves for good */
    struct step step;
};

static int too_large(struct ft *ft, const struct draft *d, double entries)
{
    int op = d->leaving >= 0 ? d->leaving : 0;
    const char *name = ft->problem->nops ? ft->problem->op[op].name : NULL;
    return topt_fail(
        ft->err, TOPT_ERR_LIMIT,
        "eliminating operator '%.60s' exactly needs a table of %.3g entries over "
        "%d operators; at most %d: the graph is too entangled",
        name ? name : "(unnamed)", entries, d->nouter + (d->out.n > 1),
        TOPT_SEARCH_MAX_ENTRIES);
}

static int draft_views(struct ft *ft, struct draft *d, const struct view *remaining)
{
    int64_t stride;
    double entries = 1;
    d->joint = TOPT_NEW(ft->arena, d->nouter + 1, struct view);
    if (!d->joint)
        return nomem(ft);
    for (int i = 0; i < d->nouter; i++) {
        int op = d->made.op[i];
        const struct view *two[2] = {view_in(d->a, op, &stride),
                                     view_in(d->b, op, &stride)};
        if (join_views(ft, op, two, 2, &d->joint[i]))
            return -1;
        entries *= d->joint[i].n;
    }
    if (d->leaving >= 0) {
        const struct view *three[3] = {view_in(d->a, d->leaving, &stride),
                                       view_in(d->b, d->leaving, &stride), remaining};
        if (join_views(ft, d->leaving, &remaining, 1, &d->out) ||
            join_views(ft, d->leaving, three, 3, &d->inner))
            return -1;
        if (!remaining)
            d->out.n = 1; /* even where the operator has no value: an empty union */
        entries *= d->out.n;
    }
    return entries > TOPT_SEARCH_MAX_ENTRIES ? too_large(ft, d, entries) : 0;
}

/* Offsets into a factor's table by class of 'joint'; 0 where it does not see the operator. */
static void write_offsets(const struct ft *ft, const struct factor *f, int op,
                          const struct view *joint, int32_t *ret)
{
    int64_t stride = 0;
    const struct view *view = view_in(f, op, &stride);
    for (int v = 0; v < ft->nvalues[op]; v++)
        ret[joint->of[v]] = view ? (int32_t)(view->of[v] * stride) : 0;
}

static void write_groups(const struct ft *ft, const struct draft *d, int32_t *kfirst,
                         int32_t *ka, int32_t *kb, int32_t *scratch)
{
    int nk = d->inner.n, ng = d->out.n;
    int32_t *group = scratch, *oa = scratch + nk, *ob = oa + nk;
    write_offsets(ft, d->a, d->leaving, &d->inner, oa);
    write_offsets(ft, d->b, d->leaving, &d->inner, ob);
    for (int v = 0; v < ft->nvalues[d->leaving]; v++)
        group[d->inner.of[v]] = d->out.of[v];
    for (int g = 0; g <= ng; g++)
        kfirst[g] = 0;
    for (int k = 0; k < nk; k++)
        kfirst[group[k] + 1]++;
    for (int g = 0; g < ng; g++)
        kfirst[g + 1] += kfirst[g];
    for (int k = 0; k < nk; k++) {
        int32_t at = kfirst[group[k]]++;
        ka[at] = oa[k];
        kb[at] = ob[k];
    }
    for (int g = ng; g > 0; g--)
        kfirst[g] = kfirst[g - 1];
    kfirst[0] = 0;
}

enum { RECIPE_HEAD = 5 };

static int write_recipe(struct ft *ft, struct draft *d)
{
    struct step *s = &d->step;
    size_t outer = 0;
    size_t nk = d->leaving >= 0 ? (size_t)d->inner.n : 1;
    size_t ng = d->leaving >= 0 ? (size_t)d->out.n : 1;
    for (int i = 0; i < d->nouter; i++)
        outer += 2 * (size_t)d->joint[i].n;
    s->recipe_len = RECIPE_HEAD + (size_t)d->nouter + outer + ng + 1 + 2 * nk;
    int32_t *r = s->recipe = calloc(s->recipe_len + 3 * nk, sizeof *r);
    if (!r)
        return nomem(ft);
    *s = (struct step){.a = d->a->table,
                       .b = d->b ? d->b->table : NULL,
                       .ndims = d->nouter,
                       .ngroups = (int)ng,
                       .trim = d->last,
                       .recipe = r,
                       .recipe_len = s->recipe_len,
                       .nentries = (int64_t)ng};
    r[0] = s->a->id;
    r[1] = s->b ? s->b->id : -1;
    r[2] = s->ndims;
    r[3] = s->ngroups;
    r[4] = s->trim;
    int32_t *size = r + RECIPE_HEAD, *off = size + d->nouter;
    s->size = size;
    s->off = off;
    for (int i = 0; i < d->nouter; i++) {
        size[i] = d->joint[i].n;
        write_offsets(ft, d->a, d->made.op[i], &d->joint[i], off);
        write_offsets(ft, d->b, d->made.op[i], &d->joint[i], off + size[i]);
        off += 2 * size[i];
        s->nentries *= size[i];
    }
    s->kfirst = off;
    s->ka = off + ng + 1;
    s->kb = s->ka + nk;
    if (d->leaving >= 0)
        write_groups(ft, d, off, off + ng + 1, off + ng + 1 + nk, r + s->recipe_len);
    else
        off[1] = 1; /* one group of one value at offset 0 */
    return 0;
}

/* Multiply factors a and b (-1: none).  Operator 'leaving' is united over all values that
 * 'remaining' does not tell apart (NULL: over all); -1: nothing is.  The new factor, or -1. */
static int multiply(struct ft *ft, int fa, int fb, int leaving,
                    const struct view *remaining)
{
    struct draft d = {.a = &ft->factor[fa],
                      .b = fb >= 0 ? &ft->factor[fb] : NULL,
                      .leaving = leaving,
                      .last = leaving >= 0 && !remaining,
                      .out = {1, NULL}};
    int most = d.a->nops + (d.b ? d.b->nops : 0);
    d.made.op = TOPT_NEW(ft->arena, most, int);
    d.made.view = TOPT_NEW(ft->arena, most, struct view);
    if (!d.made.op || !d.made.view)
        return nomem(ft);
    d.made.nops = d.nouter = union_of_ops(ft, d.a, d.b, leaving, d.made.op);
    if (draft_views(ft, &d, remaining) || write_recipe(ft, &d))
        return -1;
    memcpy(d.made.view, d.joint, (size_t)d.nouter * sizeof *d.joint);
    if (remaining) {
        d.made.op[d.nouter] = leaving;
        d.made.view[d.nouter] = d.out;
        d.made.nops++;
    }
    d.made.table = topt_tables_build(&ft->tables, &d.step, ft->err);
    if (!d.made.table)
        return -1;
    d.made.place = add_place(
        ft, (struct place){d.a->place, d.b ? d.b->place : -1, -1, -1, d.made.table});
    drop_factor(ft, fa);
    if (fb >= 0)
        drop_factor(ft, fb);
    return add_factor(ft, d.made);
}

/* ---- eliminating an operator ---- */

/* Forget factors that are gone. */
static struct list *live_factors(struct ft *ft, int op)
{
    struct list *l = &ft->factors_of[op];
    int n = 0;
    for (int i = 0; i < l->n; i++)
        if (!ft->factor[l->item[i]].gone)
            l->item[n++] = l->item[i];
    l->n = n;
    return l;
}

static double mean_frontier(const struct table *t)
{
    double n = t->nentries ? (double)t->npoints / (double)t->nentries : 0;
    return n > 1 ? n : 1; /* planned tables: 1, which is about what the bounds leave */
}

/* Size of each operator's joint view over some factors, at most; in ft->slot by operator. */
static void bound_sizes(struct ft *ft, const struct factor *f)
{
    for (int d = 0; d < f->nops; d++) {
        int op = f->op[d];
        int n = f->view[d].n < ft->nvalues[op] ? f->view[d].n : ft->nvalues[op];
        if (ft->seen[op] != ft->stamp) {
            ft->seen[op] = ft->stamp;
            ft->slot[op] = n;
        } else {
            int64_t both = (int64_t)ft->slot[op] * n;
            ft->slot[op] = both < ft->nvalues[op] ? (int)both : ft->nvalues[op];
        }
    }
}

/* Expected points looked at when two factors are multiplied. */
static double expected(struct ft *ft, int fa, int fb)
{
    const struct factor *f[2] = {&ft->factor[fa], &ft->factor[fb]};
    double points = mean_frontier(f[0]->table) * mean_frontier(f[1]->table);
    ft->stamp++;
    for (int i = 0; i < 2; i++)
        bound_sizes(ft, f[i]);
    int stamp = ft->stamp++; /* count every operator once */
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < f[i]->nops; d++)
            if (ft->seen[f[i]->op[d]] == stamp) {
                ft->seen[f[i]->op[d]] = ft->stamp;
                points *= ft->slot[f[i]->op[d]];
            }
    return points;
}

static int64_t points_of(const struct ft *ft, int factor)
{
    const struct table *t = ft->factor[factor].table;
    return t->planned ? t->nentries : t->npoints;
}

/* Which two of an operator's factors to multiply first: the one of fewest points, and the
 * one with which it makes the least work. */
static void pick_pair(struct ft *ft, const struct list *l, int *ret_a, int *ret_b)
{
    int a = l->item[0], b = -1;
    double best = INFINITY;
    for (int i = 1; i < l->n; i++)
        if (points_of(ft, l->item[i]) < points_of(ft, a))
            a = l->item[i];
    for (int i = 0; i < l->n; i++) {
        double points = l->item[i] == a ? INFINITY : expected(ft, a, l->item[i]);
        if (points < best || (b < 0 && l->item[i] != a)) {
            best = points;
            b = l->item[i];
        }
    }
    *ret_a = a < b ? a : b;
    *ret_b = a < b ? b : a;
}

/* What the factors other than a and b tell apart of an operator. */
static int remaining_view(struct ft *ft, int op, const struct list *l, int a, int b,
                          struct view *ret)
{
    const struct view **views = malloc((size_t)l->n * sizeof(*views));
    int64_t stride;
    int n = 0;
    if (!views)
        return nomem(ft);
    for (int i = 0; i < l->n; i++)
        if (l->item[i] != a && l->item[i] != b)
            views[n++] = view_in(&ft->factor[l->item[i]], op, &stride);
    int rc = join_views(ft, op, views, n, ret);
    free(views);
    return rc;
}

/* Returns the factor that comes of it, or -1. */
static int eliminate(struct ft *ft, int op)
{
    struct list *l = live_factors(ft, op);
    while (l->n > 2) {
        int a, b;
        struct view remaining;
        pick_pair(ft, l, &a, &b);
        if (remaining_view(ft, op, l, a, b, &remaining) ||
            multiply(ft, a, b, op, &remaining) < 0)
            return -1;
        l = live_factors(ft, op);
    }
    int a = l->item[0], b = l->n > 1 ? l->item[1] : -1;
    return multiply(ft, b >= 0 && b < a ? b : a, b >= 0 && b < a ? a : b, op, NULL);
}

/* How dear eliminating an operator looks now: operators in the new table (three and more are
 * alike), then expected points. */
static void rate(struct ft *ft, int op)
{
    const struct list *l = live_factors(ft, op);
    double points = 1;
    int nops = 0, stamp = ++ft->stamp;
    for (int i = 0; i < l->n; i++) {
        bound_sizes(ft, &ft->factor[l->item[i]]);
        points *= mean_frontier(ft->factor[l->item[i]].table);
    }
    ft->stamp++;
    for (int i = 0; i < l->n; i++) {
        const struct factor *f = &ft->factor[l->item[i]];
        for (int d = 0; d < f->nops; d++) {
            int o = f->op[d];
            if (ft->seen[o] != stamp)
                continue;
            ft->seen[o] = ft->stamp;
            points *= ft->slot[o];
            nops += o != op && ft->slot[o] > 1;
        }
    }
    ft->rank_ops[op] = nops < 3 ? nops : 3;
    ft->rank_points[op] = points;
}

static int cheapest(const struct ft *ft, const char *done)
{
    int best = -1;
    for (int i = 0; i < ft->problem->nops; i++)
        if (!done[i] && (best < 0 || ft->rank_ops[i] < ft->rank_ops[best] ||
                         (ft->rank_ops[i] == ft->rank_ops[best] &&
                          ft->rank_points[i] < ft->rank_points[best])))
            best = i;
    return best;
}

static int eliminate_all(struct ft *ft)
{
    int n = ft->problem->nops;
    char *done = TOPT_NEW(ft->arena, n, char);
    if (!done)
        return nomem(ft);
    for (int i = 0; i < n; i++)
        rate(ft, i);
    for (int left = n; left > 0; left--) {
        int op = cheapest(ft, done);
        int made = eliminate(ft, op);
        if (made < 0)
            return -1;
        done[op] = 1;
        for (int d = 0; d < ft->factor[made].nops; d++)
            rate(ft, ft->factor[made].op[d]);
    }
    return 0;
}

/* Factors over nothing are left, one for each component: multiply them, smallest first. */
static int multiply_components(struct ft *ft)
{
    for (;;) {
        int a = -1, b = -1;
        for (int i = 0; i < ft->nfactors; i++) {
            int64_t n = points_of(ft, i);
            if (ft->factor[i].gone)
                continue;
            if (a < 0 || n < points_of(ft, a)) {
                b = a;
                a = i;
            } else if (b < 0 || n < points_of(ft, b)) {
                b = i;
            }
        }
        if (b < 0)
            return a;
        if (multiply(ft, a < b ? a : b, a < b ? b : a, -1, NULL) < 0)
            return -1;
    }
}

/* ---- the answer ---- */

struct visit {
    int place;
    uint32_t point;
};

/* Walk from a point down to the leaves it was made of. */
static void unroll(const struct ft *ft, struct visit *stack, struct visit root,
                   int32_t *config, int32_t *alt)
{
    size_t n = 0;
    stack[n++] = root;
    while (n) {
        struct visit v = stack[--n];
        const struct place *p = &ft->place[v.place];
        struct back back = p->table->back[v.point];
        if (p->op >= 0)
            config[p->op] = (int32_t)back.a;
        else if (p->edge >= 0)
            alt[p->edge] = (int32_t)back.a;
        if (p->left >= 0)
            stack[n++] = (struct visit){p->left, back.a};
        if (p->right >= 0)
            stack[n++] = (struct visit){p->right, back.b};
    }
}

static struct topt_frontier *answer(struct ft *ft, int factor)
{
    const struct table *t = ft->factor[factor].table;
    struct visit *stack = TOPT_NEW(ft->arena, ft->nplaces + 1, struct visit);
    if (!stack) {
        nomem(ft);
        return NULL;
    }
    struct topt_frontier *f = topt_frontier_create(ft->problem, t->npoints, ft->err);
    if (!f)
        return NULL;
    for (uint32_t i = 0; i < t->npoints; i++) {
        f->point[i].cost = t->cost[i];
        unroll(ft, stack, (struct visit){ft->factor[factor].place, i},
               (int32_t *)f->point[i].config, (int32_t *)f->point[i].alt);
    }
    f->exact = t->growth <= 1;
    f->epsilon = t->growth - 1;
    if (f->epsilon > ft->options->epsilon)
        f->epsilon = ft->options->epsilon; /* rounding of the product alone */
    f->stats = ft->tables.stats;
    return f;
}

static int init(struct ft *ft)
{
    int n = ft->problem->nops;
    ft->arena = topt_arena_create(0);
    if (!ft->arena)
        return nomem(ft);
    ft->nvalues = TOPT_NEW(ft->arena, n, int);
    ft->factors_of = TOPT_NEW(ft->arena, n, struct list);
    ft->seen = TOPT_NEW(ft->arena, n, int);
    ft->slot = TOPT_NEW(ft->arena, n, int);
    ft->rank_points = TOPT_NEW(ft->arena, n, double);
    ft->rank_ops = TOPT_NEW(ft->arena, n, int);
    if (!ft->nvalues || !ft->factors_of || !ft->seen || !ft->slot || !ft->rank_points ||
        !ft->rank_ops)
        return nomem(ft);
    if (topt_tables_init(&ft->tables, ft->options, ft->err))
        return -1;
    /* Each operator is trimmed once at most on the way of any point: n trims compose. */
    if (ft->options->epsilon > 0)
        ft->tables.shrink = exp(-log1p(ft->options->epsilon) / n);
    return 0;
}

static void fini(struct ft *ft)
{
    for (int i = 0; ft->factors_of && i < ft->problem->nops; i++)
        free(ft->factors_of[i].item);
    topt_tables_fini(&ft->tables);
    free(ft->factor);
    free(ft->place);
    topt_arena_destroy(ft->arena);
}

/* The one strategy of a problem without operators. */
static int answer_nothing(const struct topt_search_problem *problem,
                          struct topt_frontier **ret, struct topt_error *err)
{
    *ret = topt_frontier_create(problem, 1, err);
    return *ret ? 0 : -1;
}

int topt_search_ft(const struct topt_search_problem *problem,
                   const struct topt_search_options *options, struct topt_frontier **ret,
                   struct topt_error *err)
{
    struct ft ft = {.problem = problem, .options = options, .err = err};
    int rc = -1, last;
    if (problem->nops == 0)
        return answer_nothing(problem, ret, err);
    int bounded = (options->fastest || options->time_limit) && !(options->epsilon > 0);
    if (init(&ft))
        goto out;
    ft.tables.planning = bounded;
    if (find_values(&ft) || make_leaves(&ft) || eliminate_all(&ft))
        goto out;
    last = multiply_components(&ft);
    if (last < 0 ||
        (bounded && topt_tables_solve(&ft.tables, ft.factor[last].table, err)))
        goto out;
    *ret = answer(&ft, last);
    rc = *ret ? 0 : -1;
out:
    fini(&ft);
    return rc;
}
