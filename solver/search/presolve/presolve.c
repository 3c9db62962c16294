/* presolve.c - the reductions of a problem, in one table.
 *
 *     problem -> fewer configurations -> blocks are edges -> what is left
 *        ^                                                        |
 *        '----- lift <------------- lift <----------- its frontier'
 *
 * A reduction makes a smaller problem of the same kind, whose frontier is that of the one
 * before, and lifts strategies of the smaller one.  Another one is another row. */
#include "presolve.h"

#include "articulation.h"
#include "frontier.h"
#include "lift.h"
#include "presolve_tuning.h"

#include <stdlib.h>
#include <string.h>

/* A frontier on its way back; by operator at least 0 where it was decided by
 * heuristic. */
struct lifted {
    struct topt_frontier *frontier;
    int32_t *fixed;
};

struct reduction {
    /* Make that smaller. */
    int (*reduce)(struct presolve *p, struct presolve_step *s, struct topt_error *err);
    /* Strategies of the smaller problem as those of the one before. */
    int (*lift)(const struct presolve *p, const struct presolve_step *s, struct lifted *f,
                struct topt_error *err);
};

/* ---- configurations that another always beats -------------------------------------- */

static int reduce_configs(struct presolve *p, struct presolve_step *s,
                          struct topt_error *err)
{
    if (topt_config_dominance(p->problem, p->options, &s->configs, err))
        return -1;
    p->problem = &s->configs.problem;
    return 0;
}

static int lift_configs(const struct presolve *p, const struct presolve_step *s,
                        struct lifted *f, struct topt_error *err)
{
    (void)err;
    topt_strategies_rename(topt_frontier_strategies(f->frontier), s->configs.config,
                           (size_t)p->original->nops);
    f->frontier->stats.products += s->configs.work;
    return 0;
}

/* ---- blocks become edges ----------------------------------------------------------- */

static int reduce_blocks(struct presolve *p, struct presolve_step *s,
                         struct topt_error *err)
{
    p->cutset = calloc((size_t)p->problem->nops + 1, 1);
    if (!p->cutset)
        return topt_search_nomem(err);
    if (topt_graph_cutset(p->problem, MAX_SLICES, p->cutset, err) ||
        topt_eliminate_blocks(p->problem, p->cutset, p->options, &s->blocks, err))
        return -1;
    p->problem = &s->blocks.problem;
    for (int i = 0; i < p->problem->nops; i++) /* in place: op[i] >= i */
        p->cutset[i] = p->cutset[s->blocks.op[i]];
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

static int lift_blocks(const struct presolve *p, const struct presolve_step *s,
                       struct lifted *f, struct topt_error *err)
{
    const struct condensed *c = &s->blocks;
    int n = c->plan.problem->nops;
    struct topt_frontier *frontier = topt_frontier_create(c->plan.problem, err);
    int32_t *fixed = malloc(((size_t)n + 1) * sizeof *fixed);
    int rc = !frontier ? -1 : !fixed ? topt_search_nomem(err) : 0;
    (void)p;
    if (rc || topt_lift(c, f->frontier, frontier, err)) {
        topt_frontier_destroy(frontier);
        free(fixed);
        return -1;
    }
    memset(fixed, 0xff, (size_t)n * sizeof *fixed);
    for (int i = 0; i < c->problem.nops; i++)
        fixed[c->op[i]] = f->fixed[i];
    add_stats(c, f->frontier, frontier);
    topt_frontier_destroy(f->frontier);
    free(f->fixed);
    *f = (struct lifted){frontier, fixed};
    return 0;
}

/* ---- all of them ------------------------------------------------------------------- */

static const struct reduction reductions[] = {
    {reduce_configs, lift_configs},
    {reduce_blocks, lift_blocks},
};
enum { REDUCTIONS = sizeof reductions / sizeof *reductions };
_Static_assert((int)REDUCTIONS <= (int)TOPT_PRESOLVE_STEPS, "a step a reduction");

int topt_presolve_pays(const struct topt_search_problem *problem,
                       const struct topt_search_options *options)
{
    return !options->fastest && !options->time_limit && problem->nops >= MANY_OPS;
}

int topt_presolve(struct presolve *p, const struct topt_search_problem *problem,
                  const struct topt_search_options *options, struct topt_error *err)
{
    *p = (struct presolve){.original = problem, .problem = problem, .options = options};
    for (int i = 0; i < REDUCTIONS; i++) {
        struct presolve_step *s = &p->step[p->nsteps];
        s->by = &reductions[i];
        p->nsteps++;
        if (s->by->reduce(p, s, err))
            return -1;
    }
    return 0;
}

static int lift_steps(const struct presolve *p, struct lifted *f, struct topt_error *err)
{
    for (int i = p->nsteps; i-- > 0;)
        if (p->step[i].by->lift(p, &p->step[i], f, err))
            return -1;
    return topt_frontier_decided(f->frontier, f->fixed, p->original->nops, err);
}

int topt_presolve_lift(const struct presolve *p, struct topt_frontier *from,
                       const char *decided, struct topt_frontier **ret,
                       struct topt_error *err)
{
    int n = p->problem->nops;
    struct lifted f = {from, malloc(((size_t)n + 1) * sizeof *f.fixed)};
    for (int i = 0; f.fixed && i < n; i++)
        f.fixed[i] = decided[i] ? 0 : -1;
    int rc = f.fixed ? lift_steps(p, &f, err) : topt_search_nomem(err);
    free(f.fixed);
    if (rc) {
        topt_frontier_destroy(f.frontier);
        return -1;
    }
    f.frontier->exact = f.frontier->epsilon <= 0 && !f.frontier->nheuristic;
    *ret = f.frontier;
    return 0;
}

void topt_presolve_fini(struct presolve *p)
{
    for (int i = 0; i < p->nsteps; i++) {
        topt_reduced_fini(&p->step[i].configs);
        topt_condensed_fini(&p->step[i].blocks);
    }
    free(p->cutset);
}
