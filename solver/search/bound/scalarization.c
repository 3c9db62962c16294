/* scalarization.c - memory and time as one weighted sum, and the strategy that is optimal
 * by it.
 *
 * With one number an entry, all tables of a plan are made in milliseconds, and a walk
 * back through them finds a strategy on the convex hull of the frontier: a supported
 * point. */
#include "scalarization.h"

#include "min_marginals.h"
#include "search_common.h"
#include "topt_minmax.h"

#include <stdlib.h>

enum {
    FINE = 1 << 10, /* numbers this large express ratios well enough */
};

struct visit {
    int64_t node, at; /* at: entry or point */
};

int64_t topt_scalarizer_bytes(const struct elimination_plan *plan)
{
    int64_t entry = 2 * sizeof(int64_t) + sizeof(double) + 2 * sizeof(uint32_t);
    int64_t node = sizeof(struct visit);
    return plan->tables.nentries * entry + plan->nnodes * node;
}

int topt_scalarizer_init(struct scalarizer *b, const struct elimination_plan *plan,
                         const struct topt_search_options *options, struct topt_cost most,
                         struct topt_error *err)
{
    size_t n = (size_t)plan->nnodes + 2;
    *b = (struct scalarizer){.plan = plan, .options = options, .most = most, .err = err};
    b->stack = malloc(n * sizeof(struct visit));
    if (!b->stack)
        return topt_search_nomem(err);
    if (topt_maker_init(&b->maker, &plan->tables, options, err))
        return -1;
    return topt_scalar_pass_init(&b->bound[0], &plan->tables, err);
}

void topt_scalarizer_fini(struct scalarizer *b)
{
    for (int i = 0; i < TOPT_MAX_BOUNDS; i++)
        topt_scalar_pass_fini(&b->bound[i]);
    topt_maker_fini(&b->maker);
    free(b->stack);
}

/* The same ratio in the largest numbers by which no strategy weighs more than the
 * heaviest; neither becomes 0. */
static void scale(struct topt_cost most, int64_t heaviest, int64_t *time, int64_t *memory)
{
    int64_t a = *time, b = *memory;
    while ((topt_wide)a * most.time + (topt_wide)b * most.memory > heaviest) {
        a >>= 1;
        b >>= 1;
    }
    while (topt_max(a, b) > 0 && topt_max(a, b) < heaviest &&
           (topt_wide)a * 2 * most.time + (topt_wide)b * 2 * most.memory <= heaviest) {
        a *= 2;
        b *= 2;
    }
    *time = a || !*time ? a : 1;
    *memory = b || !*memory ? b : 1;
}

/* Do numbers up to TOPT_LIGHT express the ratio, exactly or well enough to guide a
 * search? */
static int scale_light(struct topt_cost most, int exactly, int64_t *time, int64_t *memory)
{
    int64_t a = *time, b = *memory;
    if (most.time >= TOPT_LIGHT / FINE || most.memory >= TOPT_LIGHT / FINE)
        return 0;
    scale(most, TOPT_LIGHT, &a, &b);
    int fine = (a >= FINE || !a) && (b >= FINE || !b);
    if ((topt_wide)a * *memory != (topt_wide)b * *time && (exactly || !fine))
        return 0;
    *time = a;
    *memory = b;
    return 1;
}

int topt_scalarizer_least(struct scalarizer *b, struct scalar_pass *x, int64_t time,
                          int64_t memory, int exactly)
{
    x->light = scale_light(b->most, exactly, &time, &memory);
    if (!x->light)
        scale(b->most, TOPT_HEAVY, &time, &memory);
    x->time = time;
    x->memory = memory;
    return topt_least_weights(&b->plan->tables, b->options, x, b->err);
}

int topt_scalarizer_weigh(struct scalarizer *b, int64_t time, int64_t memory,
                          struct topt_cost corner)
{
    struct scalar_pass *x = &b->bound[0];
    /* Numbers as large as can be: no strategy is beyond 'most'. */
    corner.time = topt_min(corner.time, b->most.time);
    corner.memory = topt_min(corner.memory, b->most.memory);
    scale(corner, TOPT_LIGHT, &time, &memory);
    while ((topt_wide)time * b->most.time + (topt_wide)memory * b->most.memory >
           TOPT_HEAVY) {
        time /= 2;
        memory /= 2;
    }
    x->time = time > 0 || memory > 0 ? time : 1;
    x->memory = memory;
    x->light = 1;
    return topt_least_weights(&b->plan->tables, b->options, x, b->err);
}

int topt_scalarizer_rest(struct scalarizer *b, struct scalar_pass *x, int64_t allowance)
{
    x->allowance = allowance;
    const struct table *root = b->plan->node[b->plan->root].table;
    return topt_min_marginals(&b->plan->tables, root, b->options, x, 0, b->err);
}

static void choose(const struct elimination_plan *plan, const struct tree_node *p,
                   int32_t number, int32_t *choice)
{
    if (p->op >= 0)
        choice[p->op] = number;
    else
        choice[plan->problem->nops + p->edge] = number;
}

/* The lightest strategy by what bound 0 has weighed. */
int topt_scalarizer_backtrack(struct scalarizer *b, struct found_strategy *ret)
{
    const struct elimination_plan *plan = b->plan;
    const struct scalar_pass *bound = &b->bound[0];
    struct visit *stack = (struct visit *)b->stack;
    size_t n = 0;
    ret->cost = (struct topt_cost){0, 0};
    size_t width = (size_t)b->plan->problem->nops + (size_t)b->plan->problem->nedges;
    ret->choice = malloc((width + 1) * sizeof *ret->choice);
    if (!ret->choice)
        return topt_search_nomem(b->err);
    stack[n++] = (struct visit){plan->root, plan->node[plan->root].table->first_entry};
    while (n) {
        struct visit v = stack[--n];
        const struct tree_node *p = &plan->node[v.node];
        int64_t ea, eb;
        if (p->table->leaf) {
            int32_t number;
            struct topt_cost c = topt_least_weight_leaf(p->table, v.at, bound, &number);
            ret->cost.memory += c.memory;
            ret->cost.time += c.time;
            choose(plan, p, number, ret->choice);
            continue;
        }
        topt_least_weight_parts(p->table, v.at, bound, &ea, &eb);
        stack[n++] = (struct visit){p->left, ea};
        if (p->right >= 0)
            stack[n++] = (struct visit){p->right, eb};
    }
    return 0;
}

int topt_scalarizer_lightest(struct scalarizer *b, int64_t time, int64_t memory,
                             struct found_strategy *ret)
{
    struct scalar_pass *x = &b->bound[0];
    *ret = (struct found_strategy){{0, 0}, NULL};
    if (topt_scalarizer_least(b, x, time, memory, 1))
        return -1;
    if (x->least[b->plan->node[b->plan->root].table->first_entry] == TOPT_NOTHING)
        return 0;
    return topt_scalarizer_backtrack(b, ret);
}

int topt_scalarizer_most(const struct elimination_plan *plan, struct topt_cost *ret,
                         struct topt_error *err)
{
    const struct tables *ts = &plan->tables;
    struct topt_cost *most = calloc(ts->nall + 1, sizeof *most);
    if (!most)
        return topt_search_nomem(err);
    for (size_t i = 0; i < ts->nall; i++) {
        const struct table *t = ts->all[i], *a = t->how.a, *b = t->how.b;
        const struct topt_cost *cost = t->cost;
        uint32_t n = t->npoints;
        for (uint32_t p = 0; t->leaf && p < n; p++) {
            most[i].time = topt_max(most[i].time, cost[p].time);
            most[i].memory = topt_max(most[i].memory, cost[p].memory);
        }
        if (!t->leaf) {
            most[i].time = most[a->id].time + (b ? most[b->id].time : 0);
            most[i].memory = most[a->id].memory + (b ? most[b->id].memory : 0);
        }
        most[i].time = topt_min(most[i].time, TOPT_HEAVY);
        most[i].memory = topt_min(most[i].memory, TOPT_HEAVY);
    }
    *ret = most[plan->node[plan->root].table->id];
    free(most);
    return 0;
}
