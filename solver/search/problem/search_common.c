/* search_common.c - what every part of the search uses: how it ends early, what it says,
 * and plain sums. */
#include "search_common.h"

#include <math.h>
#include <stdlib.h>

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

/* ---- reduce ------------------------------------------------------------------------ */

int topt_cost_order(struct topt_cost a, struct topt_cost b)
{
    if (a.memory != b.memory)
        return a.memory < b.memory ? -1 : 1;
    return (a.time > b.time) - (a.time < b.time);
}

static int by_cost(const void *x, const void *y)
{
    return topt_cost_order(*(const struct topt_cost *)x, *(const struct topt_cost *)y);
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

/* ---- how much slower --------------------------------------------------------------- */

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

/* ---- the cost of one strategy ------------------------------------------------------ */

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
