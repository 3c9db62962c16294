/* reduced_tables.c - a problem without some configurations, with tables of its own.
 *
 * What a search is to look at now may be a small part of a problem.  So that it costs no
 * more than such a part, tables are copied: rows and columns of those classes that
 * configurations still have.
 *
 * What was alike stays alike: equal lists of classes, and equal parts of a table, are one
 * in memory, as the searches know repeated blocks by that. */
#include "reduced_problem.h"

#include "interning.h"

#include <string.h>

/* A part of a table: what is left of its classes, as lists that are shared, so that pointers
 * tell which parts are the same. */
struct excerpt {
    const struct topt_table *table; /* the original */
    const int32_t *from, *to;
    int nfrom, nto;
};

struct excerpting {
    struct reduced_problem *ret;
    struct topt_interning lists, excerpts;
    const struct topt_table **part; /* by number of its excerpt */
};

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
    const void *all_left, *all_to;
    if (topt_intern(&x->lists, left, (size_t)*ret_n * sizeof *left, &all_left) < 0 ||
        topt_intern(&x->lists, to, (size_t)nconfigs * sizeof *to, &all_to) < 0)
        return NULL;
    *ret = all_left;
    return all_to;
}

/* ---- tables ------------------------------------------------------------------------ */

/* The number of an entry in the original. */
static int64_t original(const struct excerpt *u, int from, int to)
{
    return (int64_t)u->from[from] * u->table->to_classes + u->to[to];
}

static const struct topt_table *copy_table(struct topt_arena *a, const struct excerpt *u)
{
    struct topt_table *ret = TOPT_NEW(a, 1, struct topt_table);
    int32_t *first = TOPT_NEW(a, (size_t)u->nfrom * (size_t)u->nto + 1, int32_t);
    int32_t *at = first;
    if (!ret || !first)
        return NULL;
    for (int i = 0; i < u->nfrom; i++)
        for (int k = 0; k < u->nto; k++, at++) {
            const int32_t *of = &u->table->first[original(u, i, k)];
            at[1] = at[0] + (of[1] - of[0]);
        }
    struct topt_cost *alt = TOPT_NEW(a, *at, struct topt_cost);
    if (!alt)
        return NULL;
    at = first;
    for (int i = 0; i < u->nfrom; i++)
        for (int k = 0; k < u->nto; k++, at++)
            if (at[1] > at[0])
                memcpy(alt + at[0], u->table->alt + u->table->first[original(u, i, k)],
                       (size_t)(at[1] - at[0]) * sizeof *alt);
    *ret = (struct topt_table){u->nfrom, u->nto, first, alt};
    return ret;
}

static const struct topt_table *part_of(struct excerpting *x, const struct excerpt *u)
{
    int number = topt_intern(&x->excerpts, u, sizeof *u, NULL);
    if (number >= 0 && !x->part[number])
        x->part[number] = copy_table(x->ret->arena, u);
    return number < 0 ? NULL : x->part[number];
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
    struct excerpting x = {
        n,
        {.arena = n->arena},
        {.arena = n->arena},
        TOPT_NEW(n->arena, n->problem.nedges, const struct topt_table *)};
    if (!x.part)
        return topt_search_nomem(err);
    for (int e = 0; e < n->problem.nedges; e++)
        if (cut_edge(&x, (struct topt_search_edge *)&n->problem.edge[e]))
            return topt_search_nomem(err);
    return 0;
}
