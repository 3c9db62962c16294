/* search.c - the table of searches, and what is the same for all of them.
 *
 * A problem comes from outside (a cost file, a model), so it is checked whole before any
 * search sees it: indices in range, tables well shaped, costs of at least 0, no cycle.  The
 * searches then index without looking. */
#include "search_impl.h"
#include "topt_near.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct algorithm {
    const char *name;
    topt_search_fn *run;
} algorithms[] = {
    {"ft", topt_search_ft},
    {"ft-plain", topt_search_plain},
    {"ft-elimination", topt_search_elimination},
    {"brute-force", topt_search_brute},
};

#define NALGORITHMS (sizeof algorithms / sizeof algorithms[0])

const char *const *topt_search_algorithms(void)
{
    static const char *const names[] = {"ft", "ft-plain", "ft-elimination", "brute-force",
                                        NULL};
    _Static_assert(sizeof names / sizeof names[0] == NALGORITHMS + 1, "a name a row");
    return names;
}

int topt_search_overflow(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_LIMIT,
                     "a sum of memories or times comes to 2^63 - 1 or more");
}

int topt_search_nomem(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "out of memory in the search");
}

int topt_search_canceled(const struct topt_search_options *options)
{
    return options->cancel && atomic_load_explicit(options->cancel, memory_order_relaxed);
}

int topt_search_stopped(const struct topt_search_options *options)
{
    return options->stop && atomic_load_explicit(options->stop, memory_order_relaxed);
}

int topt_search_interrupted(const struct topt_search_options *options)
{
    return topt_search_canceled(options) || topt_search_stopped(options);
}

int topt_search_poll(const struct topt_search_options *options, struct topt_error *err)
{
    return topt_search_interrupted(options)
               ? topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled")
               : 0;
}

int topt_search_gave_up(const struct topt_search_options *options,
                        const struct topt_error *err)
{
    return (!err || err->code == TOPT_ERR_CANCELED) && topt_search_stopped(options) &&
           !topt_search_canceled(options);
}

double topt_search_pairs(const struct topt_search_problem *p)
{
    double n = 0;
    for (int e = 0; e < p->nedges; e++)
        n += (double)p->op[p->edge[e].from].nconfigs *
             (double)p->op[p->edge[e].to].nconfigs;
    return n;
}

/* ---- reduce ---- */

static int by_cost(const void *x, const void *y)
{
    const struct topt_cost *a = x, *b = y;
    if (a->memory != b->memory)
        return a->memory < b->memory ? -1 : 1;
    return (a->time > b->time) - (a->time < b->time);
}

size_t topt_reduce(struct topt_cost *point, size_t n)
{
    size_t kept = 0;
    if (n > 1)
        qsort(point, n, sizeof *point, by_cost);
    for (size_t i = 0; i < n; i++)
        if (!kept || point[i].time < point[kept - 1].time)
            point[kept++] = point[i];
    return kept;
}

/* ---- is the problem well formed? ---- */

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

int topt_search_threads(int64_t given, int *ret, struct topt_error *err)
{
    if (given < 0 || given > TOPT_SEARCH_MAX_THREADS)
        return topt_fail(err, TOPT_ERR_USAGE, "--threads %lld: at most %d",
                         (long long)given, TOPT_SEARCH_MAX_THREADS);
    *ret = (int)given;
    return 0;
}

static int check_options(const struct topt_search_options *o, struct topt_error *err)
{
    if (o->memory_limit < 0 || o->time_limit < 0 || o->brute_force_limit < 0 ||
        o->max_bytes < 0 || o->max_work < 0 || o->max_entries < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "a negative limit");
    if (o->threads < 0 || o->threads > TOPT_SEARCH_MAX_THREADS)
        return topt_fail(err, TOPT_ERR_INVAL, "%d threads; 0 to %d are possible",
                         o->threads, TOPT_SEARCH_MAX_THREADS);
    if (!isfinite(o->epsilon) || o->epsilon < 0)
        return topt_fail(err, TOPT_ERR_INVAL, "epsilon must be a number of at least 0");
    return 0;
}

/* What is told to stop before it has anything still answers, if it can be had at once. */
static int run(const struct algorithm *a, const struct topt_search_problem *problem,
               const struct topt_search_options *options, struct topt_frontier **ret,
               struct topt_error *err)
{
    struct topt_error why = {0};
    int rc = a->run(problem, options, ret, &why);
    if (rc)
        *ret = NULL;
    int empty = !rc && !(*ret)->npoints && !isfinite((*ret)->epsilon);
    if (rc ? topt_search_gave_up(options, &why) : empty && topt_search_stopped(options)) {
        topt_frontier_destroy(*ret);
        *ret = NULL;
        return topt_search_greedily(problem, options, ret, err);
    }
    if (rc && err)
        *err = why;
    return rc;
}

int topt_search(const struct topt_search_problem *problem,
                const struct topt_search_options *options, struct topt_frontier **ret,
                struct topt_error *err)
{
    static const struct topt_search_options defaults;
    if (!options)
        options = &defaults;
    const char *name = options->algorithm ? options->algorithm : "ft";
    struct topt_near near = {.name = name};
    char meant[TOPT_NEAR_WORDS];
    *ret = NULL;
    for (size_t i = 0; i < NALGORITHMS; i++) {
        topt_near_try(&near, algorithms[i].name);
        if (strcmp(algorithms[i].name, name))
            continue;
        if (check_options(options, err) || topt_search_check(problem, err))
            return -1;
        if (run(&algorithms[i], problem, options, ret, err))
            return -1;
        topt_frontier_keep_wanted(*ret, options);
        return 0;
    }
    return topt_fail(
        err, TOPT_ERR_USAGE,
        "unknown algorithm '%.40s'%s (one of ft, ft-plain, ft-elimination, brute-force)",
        name, topt_near_words(&near, meant));
}

/* ---- how much slower ---- */

double topt_search_excess(int64_t slow, int64_t fast)
{
    if (slow <= fast)
        return 0;
    if (fast <= 0)
        return INFINITY;
    /* A multiplication and an addition rounded once have the right sign. */
    double e = nextafter((double)(slow - fast) / (double)fast, 0);
    while (fmal(e, fast, -(long double)(slow - fast)) < 0)
        e = nextafter(e, INFINITY);
    return e;
}

int64_t topt_search_missed(int64_t time, double epsilon)
{
    double slow = (double)time / (1 + epsilon) * (1 + 0x1p-48) + 1;
    return epsilon > 0 && slow < (double)time ? (int64_t)slow : time - 1;
}

/* ---- the cost of one strategy ---- */

static int add_cost(struct topt_cost *sum, struct topt_cost c, struct topt_error *err)
{
    if (add_overflows(sum->memory, c.memory, &sum->memory) ||
        add_overflows(sum->time, c.time, &sum->time))
        return topt_search_overflow(err);
    return 0;
}

int topt_search_cost(const struct topt_search_problem *problem, const int32_t *config,
                     const int32_t *alt, struct topt_cost *ret, struct topt_error *err)
{
    struct topt_cost sum = {0, 0};
    for (int i = 0; i < problem->nops; i++) {
        const struct topt_search_op *op = &problem->op[i];
        if (config[i] < 0 || config[i] >= op->nconfigs)
            return topt_fail(err, TOPT_ERR_INVAL, "operator %d has no configuration %d",
                             i, (int)config[i]);
        if (add_cost(&sum, op->cost[config[i]], err))
            return -1;
    }
    for (int i = 0; i < problem->nedges; i++) {
        const struct topt_search_edge *e = &problem->edge[i];
        const struct topt_table *t = e->table;
        int64_t entry = (int64_t)e->from_class[config[e->from]] * t->to_classes +
                        e->to_class[config[e->to]];
        int32_t n = t->first[entry + 1] - t->first[entry];
        if (alt[i] < 0 || alt[i] >= n)
            return topt_fail(err, TOPT_ERR_INVAL, "edge %d has no alternative %d there",
                             i, (int)alt[i]);
        if (add_cost(&sum, t->alt[t->first[entry] + alt[i]], err))
            return -1;
    }
    *ret = sum;
    return 0;
}
