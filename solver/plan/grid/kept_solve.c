/* kept_solve.c - a variant answered from what is kept of it, which is found out where it is
 * missing. */
#include "kept_solve.h"
#include "apart.h"
#include "grid.h"
#include "kept.h"
#include "problem.h"
#include "solve.h"
#include "topt_progress.h"

#include <stdlib.h>

struct looker {
    struct topt_grid_search *s;
    const struct topt_search_options *o;
    struct topt_variant *variant;
    struct topt_kept_variant *x;
    struct topt_problem *p;       /* owned; NULL where its prices are kept */
    struct topt_solutions unkept; /* what a search found that can't be kept */
    struct topt_error *err;
};

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for frontiers");
}

/* ---- what is missing --------------------------------------------------------------- */

static void tell_progress(const struct looker *l)
{
    struct topt_progress *p = l->s->request->progress;
    TOPT_PROGRESS(p, gpus, l->s->mesh.devices);
    TOPT_PROGRESS(p, nodes, l->s->mesh.nodes);
    TOPT_PROGRESS(p, variant, l->variant - l->s->variant + 1);
    TOPT_PROGRESS(p, variants, l->s->nvariants);
    TOPT_PROGRESS(p, priced, 0);
    TOPT_PROGRESS(p, phase, TOPT_PHASE_PRICING);
}

static int pose(struct looker *l)
{
    if (l->p)
        return 0;
    tell_progress(l);
    l->s->micros->kept->searches++;
    return topt_grid_problem(l->s, l->variant, &l->p, l->err);
}

static int price(struct looker *l)
{
    struct topt_kept_variant *x = l->x;
    if (topt_grid_apart(l->s, l->variant, l->err) || pose(l))
        return -1;
    x->variant = *l->variant;
    x->some = topt_problem_some(l->p);
    if (x->some)
        x->least = topt_problem_bound(l->p);
    topt_problem_stats(l->p, &x->stats);
    x->priced = 1;
    return 0;
}

/* Keep what a search found: 0, or 1 where that can't be. */
static int keep(struct looker *l, const struct topt_solutions *found)
{
    struct topt_kept *k = l->s->micros->kept;
    struct topt_kept_variant *x = l->x;
    struct topt_kept_point *at = calloc((size_t)found->n + 1, sizeof *at);
    if (!at || found->stopped || !found->claim.exact) {
        free(at);
        return 1;
    }
    for (int i = 0; i < found->n; i++) {
        const struct topt_solution *f = &found->at[i];
        int word = topt_kept_strategy_add(&k->strategies, l->s->request->model,
                                          &l->s->mesh, l->variant->cut, f->strategy);
        if (word < 0) {
            free(at);
            return 1;
        }
        at[i] = (struct topt_kept_point){f->memory_bytes, f->time_ns, word, NULL};
    }
    x->at = at;
    x->n = found->n;
    x->work = found->claim.stats;
    x->searched = 1;
    return 0;
}

static int search(struct looker *l)
{
    struct topt_search_options o = *l->o;
    struct topt_solutions found = {.claim = topt_claim_exact()};
    o.memory_limit = o.time_limit = o.max_work = 0;
    o.epsilon = 0;
    o.known = NULL;
    o.nknown = 0;
    if (pose(l) || topt_problem_frontier(l->p, &o, &found, l->err))
        return -1;
    if (keep(l, &found))
        l->unkept = found;
    else
        topt_solutions_fini(&found);
    return 0;
}

static int open_variant(struct looker *l, struct topt_grid_search *s,
                        const struct topt_search_options *o, struct topt_variant *variant,
                        struct topt_error *err)
{
    *l = (struct looker){.s = s, .o = o, .variant = variant, .err = err};
    l->x = topt_kept_variant(s->kept, variant);
    if (!l->x)
        return no_memory(err);
    if (!l->x->priced)
        return price(l);
    *variant = l->x->variant;
    return 0;
}

static void close_variant(struct looker *l)
{
    topt_problem_destroy(l->p);
    topt_solutions_fini(&l->unkept);
}

/* ---- what is asked ----------------------------------------------------------------- */

static int beyond(int64_t value, int64_t limit)
{
    return limit && value > limit;
}

static int within(const struct topt_kept_question *q, int64_t memory, int64_t time)
{
    if (q->goal == TOPT_GOAL_LEAST)
        return !q->memory_limit || memory < q->memory_limit;
    return !beyond(memory, q->memory_limit) && !beyond(time, q->time_limit);
}

/* The best of 'n' points, those with more memory being faster; -1: none. */
static int best_kept(const struct topt_kept_variant *x,
                     const struct topt_kept_question *q)
{
    int first = q->goal == TOPT_GOAL_LEAST ? 0 : x->n - 1;
    int step = q->goal == TOPT_GOAL_LEAST ? 1 : -1;
    for (int i = first; i >= 0 && i < x->n; i += step)
        if (within(q, x->at[i].memory_bytes, x->at[i].time_ns))
            return i;
    return -1;
}

static int take_kept(struct looker *l, const struct topt_kept_question *q,
                     struct topt_solutions *ret)
{
    const struct topt_kept_variant *x = l->x;
    int i = best_kept(x, q);
    ret->claim = topt_claim_exact();
    ret->claim.stats = x->work;
    if (i < 0)
        return 0;
    struct topt_solution s = {
        x->at[i].memory_bytes, x->at[i].time_ns,
        topt_kept_strategy_read(&l->s->micros->kept->strategies, x->at[i].strategy,
                                l->s->request->model, &l->s->mesh, l->variant->cut),
        *l->variant};
    if (!s.strategy)
        return topt_fail(
            l->err, TOPT_ERR_INVAL,
            "what is kept is of another model, or there is no memory for it");
    ret->claim.floor_ns = q->goal == TOPT_GOAL_LEAST ? INT64_MAX : s.time_ns;
    if (!topt_solutions_append(ret, &s, 1, l->err))
        return 0;
    topt_strategy_destroy(s.strategy);
    return -1;
}

/* Of what can't be kept: what is within the limits. */
static int take_unkept(struct looker *l, const struct topt_kept_question *q,
                       struct topt_solutions *ret)
{
    int n = 0;
    *ret = l->unkept;
    l->unkept = (struct topt_solutions){0};
    for (int i = 0; i < ret->n; i++) {
        ret->at[i].variant = *l->variant;
        if (within(q, ret->at[i].memory_bytes, ret->at[i].time_ns))
            ret->at[n++] = ret->at[i];
        else
            topt_strategy_destroy(ret->at[i].strategy);
    }
    ret->n = n;
    if (q->goal == TOPT_GOAL_LEAST)
        topt_claim_of_least(&ret->claim);
    return 0;
}

static int answer(struct looker *l, const struct topt_kept_question *q,
                  struct topt_solutions *ret)
{
    const struct topt_kept_variant *x = l->x;
    topt_problem_stats_add(&l->s->stats, &x->stats);
    l->s->stats.routes = -1; /* of one variant nobody can say */
    if (!x->some || !within(q, x->least.memory, x->least.time))
        return 0;
    if (!x->searched && search(l))
        return -1;
    return x->searched ? take_kept(l, q, ret) : take_unkept(l, q, ret);
}

int topt_kept_solve(struct topt_grid_search *s, const struct topt_search_options *o,
                    const struct topt_kept_question *q, struct topt_variant *variant,
                    struct topt_solutions *ret, struct topt_error *err)
{
    struct looker l;
    *ret = (struct topt_solutions){.claim = topt_claim_exact()};
    int rc = open_variant(&l, s, o, variant, err) || answer(&l, q, ret);
    close_variant(&l);
    return rc ? -1 : 0;
}

/* ---- what may be asked ------------------------------------------------------------- */

/* Is something before it faster in no more memory than it needs at least? */
static int excluded(const struct topt_kept_variant *x, const struct topt_solutions *seen)
{
    int i = seen->n;
    while (i > 0 && seen->at[i - 1].memory_bytes > x->least.memory)
        i--;
    return i > 0 && seen->at[i - 1].time_ns < x->least.time;
}

static int see(const struct topt_kept_variant *x, struct topt_solutions *seen,
               struct topt_error *err)
{
    for (int i = 0; i < x->n; i++) {
        struct topt_solution s = {.memory_bytes = x->at[i].memory_bytes,
                                  .time_ns = x->at[i].time_ns};
        if (topt_solutions_append(seen, &s, 1, err))
            return -1;
    }
    return topt_solutions_reduce(seen, err);
}

int topt_kept_complete(struct topt_grid_search *s, const struct topt_search_options *o,
                       int64_t most, struct topt_variant *variant,
                       struct topt_solutions *seen, struct topt_error *err)
{
    struct looker l;
    int rc = open_variant(&l, s, o, variant, err);
    if (!rc && l.x->some && l.x->least.memory <= most && !excluded(l.x, seen))
        rc = (!l.x->searched && search(&l)) || see(l.x, seen, err);
    close_variant(&l);
    return rc ? -1 : 0;
}
