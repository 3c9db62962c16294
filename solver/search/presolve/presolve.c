/* presolve.c - the reductions of a problem, one after the other.
 *
 *     problem -> fewer configurations -> blocks are edges -> what is left
 *        ^                                                        |
 *        '----- lift <------------- lift <----------- its frontier'
 *
 * A reduction makes a smaller problem of the same kind, whose frontier is that of the one
 * before, and lifts strategies of the smaller one. */
#include "presolve.h"

#include "articulation.h"
#include "frontier.h"
#include "presolve_tuning.h"

#include <stdlib.h>
#include <string.h>

int topt_presolve_pays(const struct topt_search_problem *problem,
                       const struct topt_search_options *options)
{
    return !options->fastest && !options->time_limit && problem->nops >= MANY_OPS;
}

int topt_presolve(struct presolve *p, const struct topt_search_problem *problem,
                  const struct topt_search_options *options, struct topt_error *err)
{
    const struct topt_search_problem *narrowed = &p->configs.problem;
    *p = (struct presolve){.original = problem, .options = options};
    if (topt_config_dominance(problem, options, &p->configs, err))
        return -1;
    p->cutset = calloc((size_t)narrowed->nops + 1, 1);
    if (!p->cutset)
        return topt_search_nomem(err);
    if (topt_graph_cutset(narrowed, MAX_SLICES, p->cutset, err) ||
        topt_eliminate_blocks(narrowed, p->cutset, options, &p->blocks, err))
        return -1;
    p->problem = &p->blocks.problem;
    for (int i = 0; i < p->problem->nops; i++) /* in place: op[i] >= i */
        p->cutset[i] = p->cutset[p->blocks.op[i]];
    return 0;
}

static void add_stats(const struct condensed *c, const struct topt_frontier *from,
                      struct topt_frontier *into)
{
    const struct tables *ts = &c->plan.tables;
    into->stats = from->stats;
    into->stats.products += c->work;
    into->stats.tables += ts->stats.tables;
    into->stats.shared += ts->stats.shared;
    into->stats.points += (int64_t)c->maker.merge.n;
    into->stats.peak_bytes += ts->stats.peak_bytes;
    into->epsilon = from->epsilon;
}

int topt_presolve_lift(const struct presolve *p, struct topt_frontier *from,
                       const char *decided, struct topt_frontier **ret,
                       struct topt_error *err)
{
    const struct condensed *c = &p->blocks;
    size_t n = (size_t)p->original->nops;
    struct topt_frontier *f = topt_frontier_create(&p->configs.problem, err);
    int32_t *fixed = malloc((n + 1) * sizeof *fixed);
    int rc = !f ? -1 : !fixed ? topt_search_nomem(err) : topt_lift(c, from, f, err);
    if (!rc) {
        memset(fixed, 0xff, n * sizeof *fixed);
        for (int i = 0; i < c->problem.nops; i++)
            fixed[c->op[i]] = decided[i] ? 0 : -1;
        add_stats(c, from, f);
        topt_strategies_rename(topt_frontier_strategies(f), p->configs.config, n);
        f->stats.products += p->configs.work;
        rc = topt_frontier_decided(f, fixed, p->original->nops, err);
    }
    free(fixed);
    topt_frontier_destroy(from);
    if (rc) {
        topt_frontier_destroy(f);
        return -1;
    }
    f->exact = f->epsilon <= 0 && !f->nheuristic;
    *ret = f;
    return 0;
}

void topt_presolve_fini(struct presolve *p)
{
    topt_reduced_fini(&p->configs);
    topt_condensed_fini(&p->blocks);
    free(p->cutset);
}
