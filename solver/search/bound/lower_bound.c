/* lower_bound.c - a problem whose strategies are weighed: the passes of min_marginals.c
 * over a plan, for others. */
#include "topt_lower_bound.h"

#include "scalarization.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Entries of a table, to those that a search may make, times; GPT-3 in canonical on
 * 1024. */
enum { WIDER = 4 };

struct topt_lower_bound {
    const struct topt_search_problem *problem;
    struct topt_search_options options;
    struct elimination_plan plan;
    struct scalarizer scalarizer;
    const struct table **leaf; /* by operator */
    int64_t least, work;       /* least: of all strategies */
};

void topt_lower_bound_destroy(struct topt_lower_bound *w)
{
    if (!w)
        return;
    topt_scalarizer_fini(&w->scalarizer);
    topt_elimination_fini(&w->plan);
    free(w->leaf);
    free(w);
}

static int find_leaves(struct topt_lower_bound *w, struct topt_error *err)
{
    w->leaf = calloc((size_t)w->problem->nops + 1, sizeof(*w->leaf));
    if (!w->leaf)
        return topt_search_nomem(err);
    for (int i = 0; i < w->plan.nnodes; i++) {
        const struct tree_node *p = &w->plan.node[i];
        if (p->op >= 0 && p->table->leaf)
            w->leaf[p->op] = p->table;
    }
    return 0;
}

/* Where the options leave it open, tables may be somewhat larger than a search's: a bound
 * is worth more than the time of its passes. */
static int plan_all(struct topt_lower_bound *w, struct topt_error *err)
{
    struct topt_search_options wide = w->options;
    wide.max_entries = TOPT_SEARCH_EXACT_ENTRIES * WIDER;
    int rc = topt_elimination_exactly(&w->plan, w->problem, &w->options, err);
    if (!rc || !w->plan.entangled || w->options.max_entries)
        return rc;
    topt_elimination_fini(&w->plan);
    return topt_elimination_exactly(&w->plan, w->problem, &wide, err);
}

static int init(struct topt_lower_bound *w, struct topt_error *err)
{
    struct topt_cost most;
    if (plan_all(w, err) || find_leaves(w, err) ||
        topt_scalarizer_most(&w->plan, &most, err))
        return -1;
    if (most.time >= TOPT_HEAVY / 4 || most.memory >= TOPT_HEAVY / 4)
        return topt_fail(err, TOPT_ERR_LIMIT, "costs are too large to be weighed");
    return topt_scalarizer_init(&w->scalarizer, &w->plan, &w->options, most, err);
}

int topt_lower_bound_create(const struct topt_search_problem *problem,
                            const struct topt_search_options *options,
                            struct topt_lower_bound **ret, struct topt_error *err)
{
    struct topt_lower_bound *w = calloc(1, sizeof *w);
    if (!w)
        return topt_search_nomem(err);
    w->problem = problem;
    w->options = *options;
    if (init(w, err)) {
        topt_lower_bound_destroy(w);
        return -1;
    }
    *ret = w;
    return 0;
}

static const struct table *root_of(const struct topt_lower_bound *w)
{
    return w->plan.node[w->plan.root].table;
}

int topt_lower_bound_scalarize(struct topt_lower_bound *w, struct topt_scalarization by,
                               struct topt_cost corner, struct topt_error *err)
{
    w->scalarizer.err = err;
    w->work += w->plan.tables.npairs;
    if (topt_scalarizer_weigh(&w->scalarizer, by.time, by.memory, corner))
        return -1;
    w->least = w->scalarizer.bound[0].least[root_of(w)->first_entry];
    return 0;
}

int topt_lower_bound_lightest(struct topt_lower_bound *w, int *ret_some,
                              struct topt_cost *ret, struct topt_error *err)
{
    struct found_strategy f = {{0, 0}, NULL};
    w->scalarizer.err = err;
    if (w->least < TOPT_NOTHING && topt_scalarizer_backtrack(&w->scalarizer, &f))
        return -1;
    *ret = f.cost;
    *ret_some = f.choice != NULL;
    free(f.choice);
    return 0;
}

/* The same as an integer, at most TOPT_HEAVY, which no strategy's weight is above. */
static int64_t weigh_exactly(const struct scalar_pass *x, struct topt_cost c)
{
    double sum = (double)x->time * (double)c.time + (double)x->memory * (double)c.memory;
    return sum < (double)TOPT_HEAVY ? topt_weight(x, c) : TOPT_HEAVY;
}

int topt_lower_bound_within(struct topt_lower_bound *w, struct topt_cost corner, int *ret,
                            struct topt_error *err)
{
    struct scalar_pass *x = &w->scalarizer.bound[0];
    x->allowance = weigh_exactly(x, corner);
    *ret = w->least <= x->allowance;
    w->work += *ret ? w->plan.tables.npairs : 0;
    return *ret ? topt_min_marginals(&w->plan.tables, root_of(w), &w->options, x, 1, err)
                : 0;
}

struct topt_weights topt_lower_bound_weights(const struct topt_lower_bound *w)
{
    const struct scalar_pass *x = &w->scalarizer.bound[0];
    return (struct topt_weights){x->memory, x->time, w->least, x->allowance};
}

int64_t topt_lower_bound_min_marginal(const struct topt_lower_bound *w, int op,
                                      int config)
{
    const struct scalar_pass *x = &w->scalarizer.bound[0];
    const struct table *t = w->leaf[op];
    int64_t rest = x->rest[t->first_entry + w->plan.value[op][config]];
    if (rest > x->allowance)
        return INT64_MAX;
    int64_t weight = weigh_exactly(x, w->problem->op[op].cost[config]) + rest;
    return weight > x->allowance ? INT64_MAX : weight;
}

int64_t topt_lower_bound_work(const struct topt_lower_bound *w)
{
    return w->work;
}
