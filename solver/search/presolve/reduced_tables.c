/* reduced_tables.c - a problem without some configurations, with tables of its own.
 *
 * What a search is to look at now may be a small part of a problem.  So that it costs no
 * more than such a part, tables are copied: rows and columns of those classes that
 * configurations still have.
 *
 * What was alike stays alike: equal lists of classes, and equal parts of a table, are one
 * in memory, as the searches know repeated blocks by that. */
#include "reduced_tables.h"

#include "topt_hash.h"

#include <string.h>

enum { NBUCKETS = 1024 };

/* Numbers that several edges may have. */
struct shared_list {
    uint64_t hash;
    size_t n;
    const int32_t *at;
    struct shared_list *next;
};

/* A part of a table; lists are shared, so pointers tell. */
struct excerpt {
    const struct topt_table *table; /* the original */
    const int32_t *from, *to;       /* the classes that are left */
    int nfrom, nto;
    const struct topt_table *part;
    struct excerpt *next;
};

struct excerpting {
    struct reduced_problem *ret;
    struct shared_list *list[NBUCKETS];
    struct excerpt *part[NBUCKETS];
};

/* The list itself, or an equal one that was there before; NULL: memory. */
static const int32_t *share(struct excerpting *x, const int32_t *list, size_t n)
{
    uint64_t hash = topt_hash(list, n * sizeof *list, n);
    struct shared_list **b = &x->list[hash % NBUCKETS];
    for (struct shared_list *s = *b; s; s = s->next)
        if (s->hash == hash && s->n == n && !memcmp(s->at, list, n * sizeof *list))
            return s->at;
    struct shared_list *s = TOPT_NEW(x->ret->arena, 1, struct shared_list);
    if (!s)
        return NULL;
    *s = (struct shared_list){hash, n, list, *b};
    *b = s;
    return list;
}

/* Number the classes of an end anew, by first occurrence.  '*ret': the old ones by new
 * number. */
static const int32_t *renumber(struct excerpting *x, const int32_t *class_of,
                               int nconfigs, int nclasses, const int32_t **ret,
                               int *ret_n)
{
    int32_t *number = TOPT_NEW(x->ret->arena, nclasses, int32_t);
    int32_t *left = TOPT_NEW(x->ret->arena, nclasses, int32_t);
    int32_t *to = TOPT_NEW(x->ret->arena, nconfigs, int32_t);
    *ret_n = 0;
    if (!number || !left || !to)
        return NULL;
    for (int c = 0; c < nconfigs; c++) {
        int32_t k = class_of[c];
        if (!number[k]) {
            left[*ret_n] = k;
            number[k] = ++*ret_n;
        }
        to[c] = number[k] - 1;
    }
    *ret = share(x, left, (size_t)*ret_n);
    return *ret ? share(x, to, (size_t)nconfigs) : NULL;
}

/* ---- tables ------------------------------------------------------------------------ */

/* The number of an entry in the original. */
static int64_t original(const struct excerpt *u, int from, int to)
{
    return (int64_t)u->from[from] * u->table->to_classes + u->to[to];
}

static int copy_table(const struct excerpting *x, struct excerpt *u)
{
    struct topt_arena *a = x->ret->arena;
    struct topt_table *ret = TOPT_NEW(a, 1, struct topt_table);
    int32_t *first = TOPT_NEW(a, (size_t)u->nfrom * (size_t)u->nto + 1, int32_t);
    int32_t *at = first;
    if (!ret || !first)
        return -1;
    for (int i = 0; i < u->nfrom; i++)
        for (int k = 0; k < u->nto; k++, at++) {
            const int32_t *of = &u->table->first[original(u, i, k)];
            at[1] = at[0] + (of[1] - of[0]);
        }
    struct topt_cost *alt = TOPT_NEW(a, *at, struct topt_cost);
    if (!alt)
        return -1;
    at = first;
    for (int i = 0; i < u->nfrom; i++)
        for (int k = 0; k < u->nto; k++, at++)
            if (at[1] > at[0])
                memcpy(alt + at[0], u->table->alt + u->table->first[original(u, i, k)],
                       (size_t)(at[1] - at[0]) * sizeof *alt);
    *ret = (struct topt_table){u->nfrom, u->nto, first, alt};
    u->part = ret;
    return 0;
}

static int same_part(const struct excerpt *u, const struct excerpt *v)
{
    return u->table == v->table && u->from == v->from && u->to == v->to &&
           u->nfrom == v->nfrom && u->nto == v->nto;
}

static const struct topt_table *part_of(struct excerpting *x, const struct excerpt *u)
{
    const void *key[] = {u->table, u->from, u->to};
    uint64_t hash = topt_hash(key, sizeof key, 0);
    struct excerpt **b = &x->part[hash % NBUCKETS];
    for (struct excerpt *v = *b; v; v = v->next)
        if (same_part(u, v))
            return v->part;
    struct excerpt *v = TOPT_NEW(x->ret->arena, 1, struct excerpt);
    if (!v)
        return NULL;
    *v = *u;
    v->next = *b;
    *b = v;
    return copy_table(x, v) ? NULL : v->part;
}

static int cut_edge(struct excerpting *x, struct topt_search_edge *edge)
{
    const struct topt_search_problem *p = &x->ret->problem;
    struct excerpt u = {.table = edge->table};
    edge->from_class = renumber(x, edge->from_class, p->op[edge->from].nconfigs,
                                u.table->from_classes, &u.from, &u.nfrom);
    edge->to_class = renumber(x, edge->to_class, p->op[edge->to].nconfigs,
                              u.table->to_classes, &u.to, &u.nto);
    if (!edge->from_class || !edge->to_class)
        return -1;
    edge->table = part_of(x, &u);
    return edge->table ? 0 : -1;
}

int topt_subproblem_tables(struct reduced_problem *n, struct topt_error *err)
{
    struct excerpting *x = TOPT_NEW(n->arena, 1, struct excerpting);
    if (!x)
        return topt_search_nomem(err);
    x->ret = n;
    for (int e = 0; e < n->problem.nedges; e++)
        if (cut_edge(x, (struct topt_search_edge *)&n->problem.edge[e]))
            return topt_search_nomem(err);
    return 0;
}
