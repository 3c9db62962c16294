/* check_problem.c - is a problem well formed?
 *
 * A problem comes from outside (a cost file, a model), so it is checked whole before any
 * search sees it: indices in range, tables well shaped, costs of at least 0, no cycle.
 * The searches then index without looking. */
#include "check_problem.h"

#include "search_common.h"

#include <stdlib.h>

static const char *op_name(const struct topt_search_problem *p, int op)
{
    return p->op[op].name ? p->op[op].name : "(unnamed)";
}

static int check_op(const struct topt_search_problem *p, int i, struct topt_error *err)
{
    const struct topt_search_op *op = &p->op[i];
    if (op->nconfigs < 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "operator %d ('%.60s') has %d configurations", i, op_name(p, i),
                         op->nconfigs);
    for (int c = 0; c < op->nconfigs; c++)
        if (op->cost[c].memory < 0 || op->cost[c].time < 0)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "operator %d ('%.60s'), configuration %d: a negative cost",
                             i, op_name(p, i), c);
    return 0;
}

static int check_table(const struct topt_table *t, int edge, struct topt_error *err)
{
    if (t->from_classes < 0 || t->to_classes < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "edge %d: a negative number of classes",
                         edge);
    int64_t n = (int64_t)t->from_classes * t->to_classes;
    if (n > TOPT_SEARCH_MAX_ENTRIES)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "edge %d: a table of %lld entries; at most %d", edge,
                         (long long)n, TOPT_SEARCH_MAX_ENTRIES);
    int good = t->first[0] == 0;
    for (int64_t e = 0; e < n && good; e++)
        good = t->first[e] <= t->first[e + 1];
    if (!good)
        return topt_fail(err, TOPT_ERR_INVAL, "edge %d: table offsets do not ascend",
                         edge);
    for (int32_t k = 0; k < t->first[n]; k++)
        if (t->alt[k].memory < 0 || t->alt[k].time < 0)
            return topt_fail(err, TOPT_ERR_INVAL, "edge %d: a negative cost", edge);
    return 0;
}

static int check_classes(const int32_t *class_of, int nconfigs, int nclasses, int edge,
                         struct topt_error *err)
{
    for (int c = 0; c < nconfigs; c++)
        if (class_of[c] < 0 || class_of[c] >= nclasses)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "edge %d: configuration %d has class %d of %d", edge, c,
                             (int)class_of[c], nclasses);
    return 0;
}

static int check_edge(const struct topt_search_problem *p, int i, struct topt_error *err)
{
    const struct topt_search_edge *e = &p->edge[i];
    if (e->from < 0 || e->from >= p->nops || e->to < 0 || e->to >= p->nops)
        return topt_fail(err, TOPT_ERR_INVAL, "edge %d joins %d to %d of %d operators", i,
                         e->from, e->to, p->nops);
    if (check_classes(e->from_class, p->op[e->from].nconfigs, e->table->from_classes, i,
                      err))
        return -1;
    return check_classes(e->to_class, p->op[e->to].nconfigs, e->table->to_classes, i,
                         err);
}

static int by_pointer(const void *x, const void *y)
{
    const struct topt_table *a = *(const struct topt_table *const *)x;
    const struct topt_table *b = *(const struct topt_table *const *)y;
    return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

/* Each table once, though many edges share it. */
static int check_tables(const struct topt_search_problem *p, struct topt_error *err)
{
    if (!p->nedges)
        return 0;
    const struct topt_table **t = calloc((size_t)p->nedges, sizeof(*t));
    if (!t)
        return topt_search_nomem(err);
    for (int i = 0; i < p->nedges; i++)
        t[i] = p->edge[i].table;
    qsort(t, (size_t)p->nedges, sizeof(*t), by_pointer);
    int rc = 0;
    for (int i = 0; i < p->nedges && !rc; i++)
        if (!t[i])
            rc = topt_fail(err, TOPT_ERR_INVAL, "an edge has no table");
        else if (i == 0 || t[i] != t[i - 1])
            rc = check_table(t[i], i, NULL);
    /* Say which edge: the first that uses a bad table. */
    for (int i = 0; rc && i < p->nedges && p->edge[i].table; i++)
        if (check_table(p->edge[i].table, i, err))
            break;
    free(t);
    return rc;
}

/* Kahn's: take operators without remaining producers until none is left. */
static int check_acyclic(const struct topt_search_problem *p, struct topt_error *err)
{
    struct topt_arena *a = topt_arena_create(0);
    size_t n = (size_t)p->nops, m = (size_t)p->nedges;
    int *waits = a ? TOPT_NEW(a, n, int) : NULL;
    int *head = a ? TOPT_NEW(a, n, int) : NULL;
    int *next = a ? TOPT_NEW(a, m, int) : NULL;
    int *ready = a ? TOPT_NEW(a, n, int) : NULL;
    int rc = -1, nready = 0, done = 0;
    if (!waits || !head || !next || !ready) {
        topt_search_nomem(err);
        goto out;
    }
    for (int i = 0; i < p->nops; i++)
        head[i] = -1;
    for (int e = 0; e < p->nedges; e++) {
        waits[p->edge[e].to]++;
        next[e] = head[p->edge[e].from];
        head[p->edge[e].from] = e;
    }
    for (int i = 0; i < p->nops; i++)
        if (!waits[i])
            ready[nready++] = i;
    for (; done < nready; done++)
        for (int e = head[ready[done]]; e >= 0; e = next[e])
            if (!--waits[p->edge[e].to])
                ready[nready++] = p->edge[e].to;
    rc = 0;
    for (int i = 0; i < p->nops && done < p->nops && !rc; i++)
        if (waits[i])
            rc = topt_fail(err, TOPT_ERR_INVAL,
                           "the graph has a cycle at or before operator %d ('%.60s')", i,
                           op_name(p, i));
out:
    topt_arena_destroy(a);
    return rc;
}

int topt_search_check(const struct topt_search_problem *p, struct topt_error *err)
{
    if (p->nops < 0 || p->nedges < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "a negative number of operators or edges");
    for (int i = 0; i < p->nops; i++)
        if (check_op(p, i, err))
            return -1;
    if (check_tables(p, err))
        return -1;
    for (int i = 0; i < p->nedges; i++)
        if (check_edge(p, i, err))
            return -1;
    return check_acyclic(p, err);
}
