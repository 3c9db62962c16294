/* oracle.h - a second opinion on plans of a queue: what is free by node and second, plain
 * backfill, and the least sum of ends of all plans that keep what is promised. */
#ifndef TOPT_TESTS_ALLOCATE_ORACLE_H
#define TOPT_TESTS_ALLOCATE_ORACLE_H

#include <string.h>

#include "topt_allocate.h"

enum { NODES = 4, JOBS = 8, SHAPES = 4, LAST = 400 };

struct grid {
    struct topt_alloc_size left[NODES][LAST];
};

static struct topt_alloc_size takes(const struct topt_alloc_problem *p, size_t node,
                                    const struct topt_alloc_shape *s)
{
    return s->is_whole ? p->node[node].has : s->each;
}

/* 'sign' times the size, in the seconds from one to another; returns whether all is at
 * least 0 then. */
static int grid_add(struct grid *g, size_t node, struct topt_alloc_size by, int64_t from,
                    int64_t to, int sign)
{
    int good = 1;
    for (int64_t t = from < 0 ? 0 : from; t < to && t < LAST; t++) {
        struct topt_alloc_size *l = &g->left[node][t];
        l->gpus += sign * by.gpus;
        l->cpus += sign * by.cpus;
        l->memory_mib += sign * by.memory_mib;
        good &= l->gpus >= 0 && l->cpus >= 0 && l->memory_mib >= 0;
    }
    return good;
}

static void grid_init(struct grid *g, const struct topt_alloc_problem *p)
{
    for (size_t i = 0; i < p->nnodes; i++)
        for (int t = 0; t < LAST; t++)
            g->left[i][t] = p->node[i].has;
    for (size_t i = 0; i < p->nheld; i++)
        grid_add(g, p->held[i].node, p->held[i].takes, p->held[i].from_s, p->held[i].to_s,
                 -1);
}

static int grid_fits(const struct grid *g, const struct topt_alloc_problem *p,
                     size_t node, const struct topt_alloc_shape *s, int64_t at)
{
    struct topt_alloc_size need = takes(p, node, s);
    if (!s->serves[p->node[node].set] || at + s->run_s > LAST)
        return 0;
    for (int64_t t = at; t < at + s->run_s; t++) {
        const struct topt_alloc_size *l = &g->left[node][t];
        if (l->gpus < need.gpus || l->cpus < need.cpus || l->memory_mib < need.memory_mib)
            return 0;
    }
    return 1;
}

/* As many of its nodes as it needs: the fullest, of these the first.  0 where there are fewer. */
static int grid_choose(const struct grid *g, const struct topt_alloc_problem *p,
                       const struct topt_alloc_shape *s, int64_t at, size_t *ret)
{
    int is_taken[NODES] = {0};
    for (int64_t n = 0; n < s->nodes; n++) {
        int best = -1;
        for (size_t i = 0; i < p->nnodes; i++)
            if (!is_taken[i] && grid_fits(g, p, i, s, at) &&
                (best < 0 || g->left[i][at].gpus < g->left[best][at].gpus))
                best = (int)i;
        if (best < 0)
            return 0;
        is_taken[best] = 1;
        ret[n] = (size_t)best;
    }
    return 1;
}

/* Start of each job in plain backfill as it asked; -1: none before LAST. */
static void backfill(const struct topt_alloc_problem *p, int64_t *ret)
{
    static struct grid g;
    size_t node[NODES];
    grid_init(&g, p);
    for (size_t i = 0; i < p->njobs; i++) {
        const struct topt_alloc_job *j = &p->job[i];
        const struct topt_alloc_shape *s = &j->shape[j->asked];
        ret[i] = -1;
        for (int64_t at = j->from_s; at < LAST && ret[i] < 0; at++)
            if (grid_choose(&g, p, s, at, node))
                ret[i] = at;
        for (int64_t k = 0; ret[i] >= 0 && k < s->nodes; k++)
            grid_add(&g, node[k], takes(p, node[k], s), ret[i], ret[i] + s->run_s, -1);
    }
}

/* ---- the least sum of ends --------------------------------------------------------- */

struct least {
    const struct topt_alloc_problem *p;
    const int64_t *asked; /* starts */
    int64_t permille, best;
    struct grid g;
};

static int may(const struct least *l, size_t i, int k)
{
    const struct topt_alloc_job *j = &l->p->job[i];
    int64_t least = INT64_MAX;
    for (int n = 0; n < j->nshapes; n++)
        if (topt_allocate_cost(&j->shape[n]) < least)
            least = topt_allocate_cost(&j->shape[n]);
    const struct topt_alloc_shape *s = &j->shape[k];
    int64_t gpus = 0;
    for (size_t n = 0; n < l->p->nnodes; n++)
        gpus += s->serves[l->p->node[n].set] * l->p->node[n].has.gpus;
    return k == j->asked ||
           (topt_allocate_cost(s) * 1000 <= least * l->permille &&
            (s->nodes == 1 ||
             topt_allocate_gpus(s) <= topt_allocate_gpus(&j->shape[j->asked]) ||
             topt_allocate_gpus(s) * 1000 <= l->p->share_permille * gpus));
}

static void least_from(struct least *l, unsigned left, int64_t sum);

/* Job 'i' in its shape 'k' on the nodes of this set, as early as those before it leave it. */
static void least_with(struct least *l, unsigned left, int64_t sum, size_t i, int k,
                       unsigned nodes)
{
    const struct topt_alloc_job *j = &l->p->job[i];
    const struct topt_alloc_shape *s = &j->shape[k];
    int64_t end = l->asked[i] + j->shape[j->asked].run_s;
    int64_t last = j->nshapes == 1 ? l->asked[i] : end - s->run_s;
    for (int64_t at = j->from_s; at <= last; at++) {
        int fits = 1;
        for (size_t n = 0; n < l->p->nnodes; n++)
            fits &= !(nodes >> n & 1) || grid_fits(&l->g, l->p, n, s, at);
        if (!fits)
            continue;
        for (int sign = -1; sign <= 1; sign += 2) {
            for (size_t n = 0; n < l->p->nnodes; n++)
                if (nodes >> n & 1)
                    grid_add(&l->g, n, takes(l->p, n, s), at, at + s->run_s, sign);
            if (sign < 0)
                least_from(l, left & ~(1u << i), sum + at + s->run_s);
        }
        return;
    }
}

static void least_from(struct least *l, unsigned left, int64_t sum)
{
    if (sum >= l->best)
        return;
    if (!left)
        l->best = sum;
    for (size_t i = 0; i < l->p->njobs; i++)
        for (int k = 0; left >> i & 1 && k < l->p->job[i].nshapes; k++)
            for (unsigned nodes = 1; may(l, i, k) && nodes < 1u << l->p->nnodes; nodes++)
                if (__builtin_popcount(nodes) == l->p->job[i].shape[k].nodes)
                    least_with(l, left, sum, i, k, nodes);
}

/* Of all orders, shapes and nodes.  Each job starts as early as those before it in the order
 * allow, which loses nothing: an earlier start is never worse. */
static int64_t least_sum(const struct topt_alloc_problem *p, const int64_t *asked,
                         int64_t permille, int64_t above)
{
    static struct least l;
    l.p = p;
    l.asked = asked;
    l.permille = permille;
    l.best = above + 1;
    grid_init(&l.g, p);
    least_from(&l, (1u << p->njobs) - 1, 0);
    return l.best;
}

#endif
