/* uniform.c - the strategies of the uniform space on one grid.
 *
 * Every choice of degrees is a small problem of its own, whose frontier mostly is one point.
 * What is found of it goes to the memo of the request's problem, and depends neither on what is
 * asked nor on other degrees.  An answer is the best of all of them.  Degrees that can't matter
 * are left out as early as possible: by bytes that each of their strategies needs, before
 * operators are priced; by the sums of what is least for each operator, before anything is
 * searched.  Their problems leave out overlap and bytes that come and go; the schedule of a found
 * strategy says those. */
#include "uniform.h"
#include "algorithm.h"
#include "floors.h"
#include "grid.h"
#include "memo.h"
#include "free.h"
#include "request.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The evaluators of strategies on a mesh with such settings that were asked for last. */
enum { EVALUATORS = 32 };
struct costs {
    const struct topt_model *model;
    const struct topt_mesh *mesh;
    struct topt_settings settings;
    struct topt_evaluator *of;             /* owned */
    const struct topt_strategy *evaluated; /* last; NULL: none that is still there */
};

struct fold {
    struct topt_grid_search *s;
    struct topt_memo *memo, *own; /* 'own': NULL where it is the problem's */
    enum topt_goal goal;
    int64_t widest; /* the largest memory limit of questions to the memo; 0: none */
    int64_t memory_limit, time_limit; /* tighter as better is found; 0: none */
    struct topt_solutions *ret;
    struct topt_error *err;
    /* The choice of degrees that is looked at, where its operators are priced (s, or the grid of one
     * of its pipeline stages), and as what: */
    struct topt_degrees *degrees;
    struct topt_grid_search *grid;
    const struct topt_degrees *priced_as;
    struct topt_memo_entry *entry;
    struct topt_problem *problem; /* owned; NULL where nothing was missing yet */
    struct costs costs[EVALUATORS];
    int last_costs;              /* that was opened */
    struct topt_settings staged; /* of these costs, where there are stages */
    struct topt_unit_sums *unit; /* room for those of one strategy; owned */
    int too_large;               /* ... needs more memory than there is */
};

/* ---- what is missing --------------------------------------------------------------- */

/* INT64_MAX, what has no room on the host or is not looked at, always is. */
static int beyond(int64_t value, int64_t limit)
{
    return value > (limit ? limit : INT64_MAX - 1);
}

static int make_problem(struct fold *f)
{
    if (f->problem)
        return 0;
    f->memo->searches++;
    return topt_grid_problem(f->grid, f->priced_as, &f->problem, f->err);
}

static int price(struct fold *f)
{
    struct topt_memo_entry *x = f->entry;
    if (make_problem(f))
        return -1;
    x->some = topt_problem_has_choices(f->problem);
    if (x->some)
        x->least = topt_problem_lower_bound(f->problem);
    if (!x->sole)
        topt_memo_keep_sole(f->memo, x, topt_problem_sole(f->problem));
    topt_problem_stats(f->problem, &x->stats);
    x->priced = 1;
    return 0;
}

/* Do these cost what degrees before them did, of a strategy? */
static int serves(const struct costs *x, const struct topt_costing *k)
{
    const struct topt_settings *a = &x->settings, *b = k->settings;
    return x->of && x->mesh == k->mesh && x->model == k->model &&
           a->micro_batches == b->micro_batches && a->tables == b->tables &&
           a->table_shards == b->table_shards && a->rest_f32 == b->rest_f32 &&
           a->ring == b->ring && a->merge == b->merge && a->overlap == b->overlap &&
           a->unsharded_sums == b->unsharded_sums;
}

static struct costs *open_costs(struct fold *f, const struct topt_costing *k)
{
    struct costs *x = f->costs;
    for (int i = 0; i < EVALUATORS; i++)
        if (serves(&x[i], k))
            return &x[i];
    x += f->last_costs = (f->last_costs + 1) % EVALUATORS;
    topt_evaluator_destroy(x->of);
    *x = (struct costs){k->model, k->mesh, *k->settings,
                        topt_evaluator_create(k, 0, f->err), NULL};
    return x->of ? x : NULL;
}

/* What a strategy holds; INT64_MAX, which is more than any limit, where the host has no room for what it leaves there, or
 * one of unlike stages needs a larger part of its devices than the limit is of the largest. */
static int64_t held(struct fold *f, const struct topt_strategy_cost *cost)
{
    int64_t away = cost->host_bytes, *least = &f->memo->host_bytes;
    const struct topt_request *r = f->s->request;
    if (r->unlike.groups && f->memory_limit) {
        int group = cost->stage.group[cost->stage.most];
        int64_t has = topt_hw_memory_bytes(topt_hw_group(r->unlike.groups, group));
        if ((double)cost->memory_bytes / (double)has >
            (double)f->memory_limit / (double)topt_hw_memory_bytes(r->hw))
            return INT64_MAX;
    }
    if (away <= topt_hw_host(r->hw)->memory_bytes)
        return cost->memory_bytes;
    *least = *least ? topt_min(*least, away) : away;
    return INT64_MAX;
}

/* Prices leave out communication that overlaps, and bytes that come and go: a strategy's time and
 * memory are those of its schedule. */
static int put_cost(struct fold *f, const struct topt_strategy *s, int64_t *memory,
                    int64_t *time)
{
    struct topt_costing k;
    struct topt_strategy_cost cost;
    struct costs *a;
    if (topt_grid_costing(f->s, f->degrees, &k, f->err))
        return -1;
    if (!k.settings->by_schedule)
        return 0;
    if (!(a = open_costs(f, &k)) || topt_evaluate_strategy(a->of, s, &cost, NULL, f->err))
        return -1;
    *memory = held(f, &cost);
    *time = cost.time_ns;
    return 0;
}

/* Do units exceed such limits (0: none) over the stages of degrees?  1, 0, or -1: failed. */
static int exceed(struct fold *f, const struct topt_degrees *d,
                  struct topt_unit_sums *unit, int64_t memory, int64_t time,
                  struct topt_strategy_cost *ret)
{
    struct topt_settings settings = topt_grid_stage_settings(f->s, d);
    struct topt_costing k = {.settings = &settings, .hw = f->s->request->hw};
    return topt_stages_exceed(&k, &f->s->planning->units, unit, memory, time, ret,
                              f->err);
}

/* The evaluator of strategies of a problem that is that of one stage's devices, as ones of pipeline stages.  Pieces cost
 * the same for any number of stages, so that one serves for all.  NULL: failed. */
static struct costs *open_staged(struct fold *f)
{
    struct topt_costing k;
    if (topt_grid_costing(f->s, f->degrees, &k, f->err))
        return NULL;
    f->staged = *k.settings;
    k.settings = &f->staged;
    return open_costs(f, &k);
}

/* The cost of such a strategy: without stages where it is beyond the limits.  Where it 'stays' it is known again by its
 * place. */
static int cost_staged(struct fold *f, const struct topt_strategy *s, int stays,
                       int64_t time_limit, struct topt_strategy_cost *ret)
{
    struct costs *a = open_staged(f);
    if (!a)
        return -1;
    topt_evaluator_limit(a->of, f->memory_limit, time_limit);
    if (a->evaluated == s ? topt_evaluate_stages(a->of, s, ret, f->err)
                          : topt_evaluate_strategy(a->of, s, ret, NULL, f->err))
        return -1;
    a->evaluated = stays ? s : NULL;
    ret->memory_bytes = held(f, ret);
    if (ret->memory_bytes == INT64_MAX)
        ret->stage.stages = 0;
    f->too_large = beyond(ret->memory_bytes, f->memory_limit);
    return 0;
}

/* Allocate the units of one strategy; NULL without memory. */
static struct topt_unit_sums *units_room(struct fold *f)
{
    size_t n = (size_t)f->s->planning->units.n + 1;
    struct topt_unit_sums *ret = calloc(n, sizeof *ret);
    if (!ret)
        topt_nomem(f->err, "the search");
    return ret;
}

/* 1 where it is of no interest. */
static int put_staged(struct fold *f, struct topt_memo_points *of,
                      struct topt_memo_staged *known)
{
    struct topt_strategy_cost cost;
    if (cost_staged(f, of->at[0].strategy, 1,
                    f->goal == TOPT_GOAL_FASTEST ? f->time_limit : 0, &cost))
        return -1;
    if (!cost.stage.stages)
        return 1;
    known->memory_bytes = cost.memory_bytes;
    known->time_ns = cost.time_ns;
    return 0;
}

/* See that a point's cost is known. */
static int know(struct fold *f, struct topt_memo_point *p)
{
    if (p->memory_bytes >= 0)
        return 0;
    p->memory_bytes = p->sum_bytes;
    p->time_ns = p->sum_ns;
    return put_cost(f, p->strategy, &p->memory_bytes, &p->time_ns);
}

static int search(struct fold *f, enum topt_goal goal,
                  const struct topt_search_options *o, struct topt_solutions *ret)
{
    *ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    if (make_problem(f))
        return -1;
    return goal == TOPT_GOAL_FASTEST ? topt_solve_fastest(f->problem, o, ret, f->err)
           : goal == TOPT_GOAL_LEAST ? topt_solve_least(f->problem, o, 0, ret, f->err)
                                     : topt_solve_frontier(f->problem, o, ret, f->err);
}

/* The one strategy of a problem, unless it needs more than 'limit' (0: any).  Its cost is that of its schedule, so that the
 * sums need only be bounds. */
static int take_sole(struct fold *f, int64_t limit, struct topt_solutions *ret)
{
    const struct topt_memo_entry *x = f->entry;
    struct topt_solution s = {x->least.memory, x->least.time, topt_strategy_copy(x->sole),
                              *f->priced_as, NULL};
    *ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    if (!s.strategy)
        return topt_nomem(f->err, "the search");
    int out = beyond(x->least.memory, limit);
    if (!out && !topt_solutions_append(ret, &s, 1, f->err))
        return 0;
    topt_strategy_destroy(s.strategy);
    return out ? 0 : -1;
}

/* See that points are known: 0, -1, or 1 where their search was ended early or is not exact, so
 * that they are no matter for the memo. */
static int find(struct fold *f, enum topt_goal goal, int64_t limit,
                struct topt_memo_points *ret)
{
    struct topt_search_options o = topt_request_searches(f->s->request);
    o.memory_limit = limit;
    struct topt_solutions found;
    int rc = 0;
    if (!ret->known) {
        int alone = f->entry->sole && f->priced_as->by_schedule;
        if (alone ? take_sole(f, limit, &found) : search(f, goal, &o, &found))
            return -1;
        rc = topt_memo_take(f->memo, &found, ret);
        topt_solutions_fini(&found);
    }
    if (rc == 0)
        topt_search_stats_add(&f->ret->certificate.stats, &ret->work);
    return rc < 0 ? topt_nomem(f->err, "the search") : rc;
}

/* The strategy with the least memory, with its cost. */
static int find_lightest(struct fold *f)
{
    struct topt_memo_points *least = &f->entry->lightest;
    int rc = find(f, TOPT_GOAL_LEAST, 0, least);
    return rc || !least->n ? rc : know(f, &least->at[0]);
}

/* ---- what is asked ----------------------------------------------------------------- */

/* Is it of interest?  Of the least memory only what is less. */
static int matters(const struct fold *f, int64_t memory, int64_t time)
{
    switch (f->goal) {
    case TOPT_GOAL_LEAST:
        return memory < (f->memory_limit ? f->memory_limit : INT64_MAX);
    case TOPT_GOAL_FASTEST:
        return !beyond(memory, f->memory_limit) && !beyond(time, f->time_limit);
    default:
        return !beyond(memory, f->memory_limit);
    }
}

/* Add a strategy; 'point' is its point of the problem's memo, NULL: it is none. */
static int add_solution(struct fold *f, const struct topt_strategy *strategy,
                        int64_t memory_bytes, int64_t time_ns,
                        struct topt_memo_point *point)
{
    struct topt_certificate *c = &f->ret->certificate;
    struct topt_solution s = {memory_bytes, time_ns, topt_strategy_copy(strategy),
                              *f->degrees, point};
    if (!s.strategy)
        return topt_nomem(f->err, "the search");
    if (f->goal == TOPT_GOAL_FASTEST && time_ns < c->bound_ns)
        c->bound_ns = time_ns;
    if (!topt_solutions_append(f->ret, &s, 1, f->err))
        return 0;
    topt_strategy_destroy(s.strategy);
    return -1;
}

static int add_point(struct fold *f, struct topt_memo_point *p)
{
    return add_solution(f, p->strategy, p->memory_bytes, p->time_ns, f->own ? NULL : p);
}

/* Keep the best by the goal alone; it bounds what is still of interest. */
static int keep_best(struct fold *f)
{
    struct topt_solutions *all = f->ret;
    if (topt_solutions_reduce(all, f->err))
        return -1;
    if (f->goal == TOPT_GOAL_FRONTIER || !all->n)
        return 0;
    topt_solutions_keep(all, f->goal == TOPT_GOAL_FASTEST ? all->n - 1 : 0);
    if (f->goal == TOPT_GOAL_FASTEST)
        f->time_limit = all->at[0].time_ns;
    else
        f->memory_limit = all->at[0].memory_bytes;
    return 0;
}

/* Add the last point that is within the limits, if there is one: 1 where there is.  Points that sum
 * up to more also hold more, but for what single moves hold, so few of them are costed: by bisection,
 * and two past its end. */
static int add_last(struct fold *f, struct topt_memo_points *all)
{
    int fits = -1, n = all->n;
    while (n - fits > 1) {
        int mid = (fits + n) / 2;
        struct topt_memo_point *p = &all->at[mid];
        int over = beyond(p->sum_bytes, f->memory_limit);
        if (!over && know(f, p))
            return -1;
        if (over || beyond(p->memory_bytes, f->memory_limit))
            n = mid;
        else
            fits = mid;
    }
    for (int i = n + 1; i < all->n && i <= n + 2; i++) {
        struct topt_memo_point *p = &all->at[i];
        if (beyond(p->sum_bytes, f->memory_limit))
            break;
        if (know(f, p))
            return -1;
        fits = beyond(p->memory_bytes, f->memory_limit) ? fits : i;
    }
    if (fits < 0 || beyond(all->at[fits].time_ns, f->time_limit))
        return 0;
    return add_point(f, &all->at[fits]) ? -1 : 1;
}

/* The fastest by sums need not be the fastest by schedule: cost each of what takes less memory whose sum, which no
 * schedule takes less than, is below the best time. */
static int add_quicker(struct fold *f, struct topt_memo_points *below)
{
    if (keep_best(f))
        return -1;
    for (int i = below->n - 1; i >= 0; i--) {
        struct topt_memo_point *p = &below->at[i];
        if (beyond(p->sum_ns, f->time_limit))
            break;
        if (know(f, p) || (matters(f, p->memory_bytes, p->time_ns) &&
                           (add_point(f, p) || keep_best(f))))
            return -1;
    }
    return 0;
}

static int add_fastest(struct fold *f)
{
    struct topt_memo_entry *x = f->entry;
    const struct topt_memo_point *first;
    int rc = find(f, TOPT_GOAL_FASTEST, f->widest, &x->fastest), added;
    if (rc || !x->fastest.n)
        return rc;
    first = &x->fastest.at[0];
    if (beyond(first->sum_ns, f->time_limit))
        return 0;
    added = add_last(f, &x->fastest);
    if (added < 0 || (added && first->time_ns == first->sum_ns) ||
        first->sum_bytes <= x->least.memory || x->sole)
        return added < 0 ? -1 : 0;
    int64_t limit = x->fastest.at[0].sum_bytes - 1;
    if ((rc = find_lightest(f)) || !x->lightest.n ||
        beyond(x->lightest.at[0].memory_bytes, f->memory_limit) ||
        (rc = find(f, TOPT_GOAL_FRONTIER, limit > 1 ? limit : 1, &x->below)))
        return rc;
    return (!added && add_last(f, &x->below) < 0) || add_quicker(f, &x->below) ? -1 : 0;
}

static int add_least(struct fold *f)
{
    struct topt_memo_points *least = &f->entry->lightest;
    int rc = find_lightest(f);
    return !rc && least->n && matters(f, least->at[0].memory_bytes, 0)
               ? add_point(f, &least->at[0])
               : rc;
}

static int add_frontier(struct fold *f)
{
    struct topt_memo_points *all = &f->entry->frontier;
    int rc = find(f, TOPT_GOAL_FRONTIER, f->own ? f->widest : 0, all);
    for (int i = 0; i < all->n && !rc; i++) {
        rc = know(f, &all->at[i]);
        if (!rc && matters(f, all->at[i].memory_bytes, 0))
            rc = add_point(f, &all->at[i]);
    }
    return rc;
}

/* Search for this question alone. */
static int add_unproven(struct fold *f)
{
    struct topt_search_options o = topt_request_searches(f->s->request);
    struct topt_solutions found;
    o.memory_limit = f->memory_limit;
    o.time_limit = f->time_limit;
    int rc = search(f, f->goal, &o, &found);
    for (int i = 0; i < found.n && !rc; i++) {
        struct topt_solution *s = &found.at[i];
        s->degrees = *f->degrees;
        rc = put_cost(f, s->strategy, &s->memory_bytes, &s->time_ns);
    }
    rc = rc || topt_solutions_reduce(&found, f->err) ||
         topt_solutions_merge(f->ret, &found, f->err);
    topt_solutions_fini(&found);
    return rc ? -1 : 0;
}

static int add_best(struct fold *f)
{
    const struct topt_memo_entry *x = f->entry;
    topt_problem_stats_add(&f->s->stats, &x->stats);
    f->s->stats.routes = -1; /* of some degrees alone they are not known */
    if (!x->some || !matters(f, x->least.memory, x->least.time))
        return 0;
    int rc = f->goal == TOPT_GOAL_FASTEST ? add_fastest(f)
             : f->goal == TOPT_GOAL_LEAST ? add_least(f)
                                          : add_frontier(f);
    return rc > 0 ? add_unproven(f) : rc;
}

/* ---- pipeline stages ----------------------------------------------------------------- */

/* 'which' strategy. */
enum { QUICKEST, LIGHTEST };

static struct topt_memo_staged *find_staged(struct fold *f, int which)
{
    struct topt_memo_entry *x = f->entry;
    for (int i = 0; i < x->nstaged; i++) {
        struct topt_memo_staged *at = &x->staged[i];
        if (at->stages == f->degrees->stages && at->which == which &&
            at->chunks == f->degrees->virtual_stages &&
            at->order == (int)f->degrees->order)
            return at;
    }
    if (TOPT_ROOM(x->staged, x->nstaged, x->staged_cap, 8)) {
        topt_nomem(f->err, "the search");
        return NULL;
    }
    f->memo->bytes += sizeof *x->staged;
    x->staged[x->nstaged] =
        (struct topt_memo_staged){.stages = f->degrees->stages,
                                  .chunks = f->degrees->virtual_stages,
                                  .order = (int)f->degrees->order,
                                  .which = which,
                                  .memory_bytes = -1,
                                  .time_ns = -1};
    return &x->staged[x->nstaged++];
}

/* Add a strategy of one stage's devices as one of all stages, where that is of interest: 1 where it
 * is. */
static int add_staged(struct fold *f, int lightest)
{
    struct topt_memo_points *of = lightest ? &f->entry->lightest : &f->entry->whole;
    int rc = find(f, lightest ? TOPT_GOAL_LEAST : TOPT_GOAL_FASTEST, 0, of);
    if (rc || !of->n)
        return rc < 0 ? -1 : 0;
    struct topt_memo_staged *known = find_staged(f, lightest ? LIGHTEST : QUICKEST);
    if (!known)
        return -1;
    if (known->time_ns < 0) {
        int late = f->goal == TOPT_GOAL_FASTEST &&
                   !topt_orders[f->degrees->order].pairs &&
                   beyond(of->at[0].sum_ns / f->degrees->stages, f->time_limit);
        rc = late ? 1 : put_staged(f, of, known);
        if (rc)
            return rc < 0 ? -1 : 0;
    }
    f->too_large = beyond(known->memory_bytes, f->memory_limit);
    if (!matters(f, known->memory_bytes, known->time_ns))
        return 0;
    return add_solution(f, of->at[0].strategy, known->memory_bytes, known->time_ns, NULL)
               ? -1
               : 1;
}

/* Of the time with recomputation the least without: that has a forward pass less, and backward takes two of
 * these: a margin, no proof. */
enum { PERCENT_WITHOUT = 74 };

/* Make '*ret' the first point's strategy, which recomputes all layers, with recomputation in the first 'n' layers of each
 * chunk alone. */
static int recompute_first(struct fold *f, const struct topt_memo_points *of,
                           const int16_t *layers, int n, struct topt_strategy **ret)
{
    topt_strategy_destroy(*ret);
    *ret = topt_strategy_copy(of->at[0].strategy);
    if (!*ret)
        return topt_nomem(f->err, "the search");
    topt_recompute_first(topt_planning_model(f->s->planning, f->degrees), layers, n,
                         *ret);
    return 0;
}

/* The cost of a strategy that recomputes whole layers as one that recomputes the first 'n' of each chunk,
 * which '*ret' is made where it is not beyond the limits; 1 where layers are not cut so. */
static int cost_first(struct fold *f, const struct topt_memo_points *of,
                      const struct topt_stage_costs *cut, int n,
                      struct topt_strategy **ret, struct topt_strategy_cost *cost)
{
    enum { TRIES = 3 }; /* what is recomputed decides where layers are cut */
    struct topt_stage_costs at = *cut;
    for (int i = 0; i < TRIES; i++) {
        if (recompute_first(f, of, at.layers, n, ret) ||
            cost_staged(f, *ret, 0, f->time_limit, cost))
            return -1;
        if (!memcmp(cost->stage.layers, at.layers, sizeof at.layers))
            return 0;
        at = cost->stage;
    }
    cost->stage.stages = 0;
    return 1;
}

/* Add that where it is of interest: 1. */
static int try_first(struct fold *f, const struct topt_memo_points *of,
                     const struct topt_stage_costs *cut, int n)
{
    struct topt_strategy_cost cost;
    struct topt_strategy *first = NULL;
    int rc = cost_first(f, of, cut, n, &first, &cost), added = 0;
    f->degrees->recompute_layers = n;
    if (rc == 0 && cost.stage.stages && matters(f, cost.memory_bytes, cost.time_ns)) {
        rc = add_solution(f, first, cost.memory_bytes, cost.time_ns, NULL);
        added = 1;
    }
    f->degrees->recompute_layers = 0;
    topt_strategy_destroy(first);
    return rc < 0 ? -1 : added;
}

/* How many first layers of each chunk the question recomputes; 0: as many as it takes to fit. */
static int asked_first(const struct fold *f)
{
    return (int)f->s->request->fixed.recompute_layers;
}

/* Of the fastest strategy that recomputes, recompute the fewest layers that fit, which are more than 'low': 1 where that is of
 * interest.  The limit of time is one that only tells how layers are cut. */
static int add_first(struct fold *f, int low)
{
    struct topt_memo_points *of = &f->entry->whole;
    struct topt_strategy_cost whole;
    int high = 0, step = 1, found = 0, added = 0, rc = 0;
    if (of->n && cost_staged(f, of->at[0].strategy, 1, 1, &whole))
        return -1;
    if (asked_first(f))
        return of->n && !f->too_large ? try_first(f, of, &whole.stage, asked_first(f))
                                      : 0;
    for (int c = 0; of->n && c < whole.stage.chunks && !f->too_large; c++)
        high = whole.stage.layers[c] > high ? whole.stage.layers[c] : high;
    for (; high - low > 1 && rc >= 0; step *= 2) {
        int n = found ? low + (high - low) / 2 : (int)topt_min(low + step, high - 1);
        rc = try_first(f, of, &whole.stage, n);
        added |= rc > 0;
        found |= !f->too_large;
        *(f->too_large ? &low : &high) = n;
    }
    return rc < 0 ? -1 : added;
}

/* A lower bound of the time of a pipeline, where layers are cut as may be.  A step takes u micro-batches; P is what passes of
 * one take in all layers, p[j] what those of stage j do, and each layer takes w or more.
 *
 *     (1)  T >= u P / s                      the mean over stages of the time in which they are busy
 *     (2)  T >= u p[j] + sum of p[i] over chunks i < j
 *
 * Stage j begins when the first micro-batch has come through the first chunks of stages before it, and its last pass
 * goes back through these; (2) does not hold where gradients of parameters fill the time in which stages would wait.
 * Passes that run as one hide no more than tokens take to experts and back.  Of (2) follows
 *
 *     (3)  T >= P / (1 - (1 - 1/u)^s)        of one chunk a stage: the cut that makes all of (2) equal
 *     (4)  T >= u P / s + (s - 1) (s - 2) w / (2 s)      of several: the mean of (2), as the first one may have no layer */
static int64_t least_staged_ns(const struct topt_grid_search *grid,
                               const struct topt_degrees *d,
                               const struct topt_memo_entry *floor)
{
    const struct topt_request *r = grid->request;
    struct topt_pass_times times = topt_floor_times(floor, grid, d);
    double u = (double)d->micro_batches, s = d->stages, least = u * times.all / s;
    if (topt_orders[d->order].pairs)
        return (int64_t)(least - u * times.tokens / s *
                                     (1 - topt_dispatch_share(&r->settings, r->hw)));
    if (topt_orders[d->order].splits)
        return (int64_t)least;
    return (int64_t)(d->virtual_stages == 1
                         ? times.all / (1 - pow(1 - 1 / u, s))
                         : least + (s - 1) * (s - 2) / (2 * s) * times.layer);
}

static int is_canceled(struct fold *f)
{
    const atomic_bool *cancel = f->s->request->cancel;
    return cancel && atomic_load(cancel)
               ? topt_fail(f->err, TOPT_ERR_CANCELED, "the search was canceled")
               : 0;
}

/* A choice of degrees with stages, and the least that it can take: of what is looked for. */
struct candidate {
    struct topt_grid_search *grid;
    struct topt_degrees degrees;
    struct topt_degrees *priced_as;
    int64_t least;
    /* with recomputation of the first layers alone; INT64_MAX: not looked at */
    int64_t first;
    int done, too_large; /* looked at; what is fastest on a stage holds too much */
    int sharp;           /* 'least' is by units, too */
    int listed;          /* its number */
};

struct candidates {
    int n, cap;
    struct candidate *at;
};

static int by_least(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    if (a->least != b->least)
        return (a->least > b->least) - (a->least < b->least);
    return a->degrees.stages != b->degrees.stages ? a->degrees.stages - b->degrees.stages
                                                  : a->listed - b->listed;
}

static int by_first(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    return a->first != b->first ? (a->first > b->first) - (a->first < b->first)
                                : a->degrees.stages - b->degrees.stages;
}

static int find_entry(struct fold *f, struct topt_grid_search *grid,
                      struct topt_degrees *d)
{
    f->grid = grid;
    f->degrees = d;
    f->priced_as = d;
    f->entry = topt_memo_entry(f->memo, grid->mesh.nodes, grid->mesh.per_node, d);
    return f->entry ? 0 : topt_nomem(f->err, "the search");
}

/* What backward reads of a micro-batch and is kept, at least, on a device of a grid; 'floor': NULL before anything is priced. */
static int64_t kept_bytes(const struct topt_grid_search *grid,
                          const struct topt_degrees *d,
                          const struct topt_memo_entry *floor)
{
    double all = topt_planning_kept(grid->planning, d);
    return topt_max((int64_t)(all / (double)d->micro_batches / grid->mesh.devices),
                    floor ? floor->floor.kept_bytes : 0);
}

/* May such degrees recompute the first layers of chunks alone?  Not where all layers are asked for. */
static int recomputes_first(const struct fold *f, const struct topt_degrees *d)
{
    const struct topt_request *r = f->s->request;
    return d->recompute == TOPT_MODULE_WHOLE &&
           (asked_first(f) || (f->goal == TOPT_GOAL_FASTEST && f->memory_limit &&
                               r->framework->recompute_first && r->fixed.recompute <= 0));
}

/* The bytes that the fullest stage holds at least; the best of bounds only as far as none exceeds the limit. */
static int64_t least_bytes(const struct fold *f, const struct candidate *c,
                           const struct topt_memo_entry *floor)
{
    int64_t kept = kept_bytes(c->grid, &c->degrees, floor);
    int64_t stays = topt_grid_stays_bytes(c->grid, &c->degrees);
    return topt_max(
        (stays + kept) / c->degrees.stages,
        topt_grid_least_stage_bytes(c->grid, &c->degrees, stays, kept,
                                    f->memory_limit ? f->memory_limit : INT64_MAX));
}

/* What a candidate takes at least, by a floor of its passes (NULL: memory is looked for, and not known yet): 0 where it is of
 * no interest. */
static int bound(struct fold *f, struct candidate *c, const struct topt_memo_entry *floor)
{
    const struct topt_degrees *d = &c->degrees;
    if (f->goal == TOPT_GOAL_LEAST)
        return matters(f, c->least = least_bytes(f, c, floor), 0);
    if (!floor->floor.some)
        return 0;
    int64_t ns = c->least = least_staged_ns(c->grid, d, floor);
    if (d->stages == 1)
        return !beyond(ns, f->time_limit);
    ns = recomputes_first(f, d) ? ns / 100 * PERCENT_WITHOUT : ns;
    return matters(f, 0, ns) && matters(f, least_bytes(f, c, floor), ns);
}

static int list(struct fold *f, struct candidate *c, const struct topt_memo_entry *floor,
                struct candidates *all)
{
    int rc = bound(f, c, floor);
    if (rc <= 0)
        return rc;
    if (TOPT_ROOM(all->at, all->n, all->cap, 64))
        return topt_nomem(f->err, "the search");
    c->listed = all->n;
    all->at[all->n++] = *c;
    return 0;
}

/* A choice of degrees with each number of chunks, and each of their schedules. */
static int list_chunks(struct fold *f, struct candidate c, struct candidates *all)
{
    const struct topt_memo_entry *floor = NULL;
    int orders = 0, rc = 0;
    if (f->goal != TOPT_GOAL_LEAST &&
        !(floor = topt_floor_find(f->memo, c.grid, &c.degrees, f->err)))
        return -1;
    for (int chunks = 1; orders >= 0 && !rc && (!floor || floor->floor.some); chunks++) {
        c.degrees.virtual_stages = chunks;
        orders = topt_planning_orders(f->s->planning, &c.degrees);
        for (int row = 0; row < TOPT_ORDERS && orders > 0 && !rc; row++) {
            c.degrees.order = (enum topt_order_row)row;
            rc = orders >> row & 1 ? list(f, &c, floor, all) : 0;
        }
    }
    return rc ? -1 : 0;
}

static int list_stages(struct fold *f, struct candidates *all)
{
    const struct topt_planning *m = f->s->planning;
    const struct topt_framework *row = f->s->request->framework;
    int most = row ? topt_planning_most_stages(m) : 0;
    int levels = row ? row->pipeline_levels : 0;
    for (int stages = 2; stages <= most && stages <= f->s->mesh.devices; stages++) {
        struct candidate c = {.grid = NULL};
        if (!topt_planning_stages(m, stages))
            continue;
        if (topt_grid_stage(f->s, stages, &c.grid, f->err))
            return -1;
        for (int i = 0; c.grid && i < c.grid->ndegrees; i++) {
            c.priced_as = &c.grid->degrees[i];
            c.degrees = *c.priced_as;
            c.degrees.stages = stages;
            struct candidate lightest = c; /* by its chunks */
            if (row->unsharded_sums)
                lightest.degrees.virtual_stages = TOPT_MAX_CHUNKS;
            if (c.degrees.micro_batches < 2 || !(levels >> c.degrees.level & 1) ||
                (row->stages_alone && c.degrees.tensor > 1) ||
                beyond(least_bytes(f, &lightest, NULL), f->memory_limit))
                continue;
            if (is_canceled(f) || list_chunks(f, c, all))
                return -1;
        }
    }
    return 0;
}

/* Choices of degrees without stages. */
static int list_whole(struct fold *f, struct candidates *all)
{
    for (int i = 0; i < f->s->ndegrees; i++) {
        struct topt_degrees *d = &f->s->degrees[i];
        struct candidate c = {.grid = f->s, .degrees = *d, .priced_as = d};
        const struct topt_memo_entry *floor;
        if (beyond(topt_grid_least_bytes(f->s, d), f->memory_limit))
            continue;
        if (is_canceled(f) || !(floor = topt_floor_find(f->memo, f->s, d, f->err)) ||
            list(f, &c, floor, all))
            return -1;
    }
    return 0;
}

/* Is a candidate still to be looked at, now that something may be known that is as good? */
static int is_open(const struct fold *f, const struct candidate *c)
{
    return f->goal == TOPT_GOAL_FASTEST
               ? !beyond(c->least, f->time_limit)
               : f->goal != TOPT_GOAL_LEAST || matters(f, c->least, 0);
}

/* Those of the same degrees on the devices of a stage, with one strategy of these. */
static int add_alike(struct fold *f, struct candidates *all, int i, int lightest)
{
    const struct candidate *first = &all->at[i];
    struct topt_memo_entry *x = f->entry;
    for (; i < all->n; i++) {
        struct candidate *c = &all->at[i];
        if (c->priced_as != first->priced_as || c->grid != first->grid ||
            c->degrees.stages != first->degrees.stages || c->done || !is_open(f, c) ||
            !c->sharp)
            continue;
        f->degrees = &c->degrees;
        int64_t ns = topt_orders[c->degrees.order].pairs ? 0 : f->entry->least.time;
        if (!f->entry->some || !matters(f, f->entry->least.memory / c->degrees.stages,
                                        ns / c->degrees.stages)) {
            c->done = 1;
            continue;
        }
        int rc = add_staged(f, lightest);
        if (rc < 0 || (rc && keep_best(f)))
            return -1;
        c->too_large |= !lightest && f->too_large;
        c->done = lightest || rc || !x->whole.n || x->sole ||
                  x->whole.at[0].sum_bytes <= x->least.memory;
    }
    return 0;
}

/* The least of a candidate's units, with or without recomputation, into 'ret', where its floor has them: 1. */
static int find_least_units(struct fold *f, const struct candidate *c, int recompute,
                            struct topt_unit_sums *ret)
{
    const struct topt_planning *m = f->s->planning;
    struct topt_degrees d = c->degrees;
    const struct topt_memo_entry *floor;
    d.recompute = recompute;
    if (!(floor = topt_floor_find(f->memo, c->grid, &d, f->err)))
        return -1;
    if (!floor->floor.some || floor->floor.nunits != m->units.n)
        return 0;
    topt_floor_units(floor, c->grid, &d, ret);
    return 1;
}

/* Bounds by units cut layers by the least time of each, a strategy by its own times.  The two cuts are near each other, and
 * the same where the least are its own: for the difference a margin of one percent is left. */
static int64_t with_margin(int64_t limit)
{
    return limit / 100 * 101;
}

/* Does memory that units need exclude a candidate?  A strategy that its device can't hold is cut once more, for memory: if
 * units are just about as much as the device has, either cut may be the strategy's. */
static int excludes(const struct fold *f, const struct topt_strategy_cost *cost)
{
    int64_t bytes = topt_hw_memory_bytes(f->s->request->hw);
    return cost->memory_bytes > with_margin(bytes) ||
           with_margin(cost->memory_bytes) < bytes;
}

/* Are candidates bounded by units?  1 with room for these in f->unit, 0, or -1 without memory. */
static int may_bound(struct fold *f)
{
    const struct topt_request *r = f->s->request;
    if (f->goal == TOPT_GOAL_FRONTIER || !f->s->planning->layers ||
        (f->goal == TOPT_GOAL_FASTEST && !f->memory_limit) || r->settings.offload ||
        r->unlike.groups)
        return 0;
    return f->unit || (f->unit = units_room(f)) ? 1 : -1;
}

/* Bound a candidate once more, by the least of each unit: 1 if no strategy of it fits, 0, or -1: failed. */
static int sharpen(struct fold *f, struct candidate *c)
{
    struct topt_strategy_cost cost;
    int least = f->goal == TOPT_GOAL_LEAST, rc = may_bound(f);
    c->sharp = 1;
    if (rc > 0)
        rc = find_least_units(f, c, c->degrees.recompute, f->unit);
    if (rc <= 0)
        return rc;
    rc = exceed(f, &c->degrees, f->unit, least ? 1 : with_margin(f->memory_limit), 0,
                &cost);
    if (least && rc >= 0 && excludes(f, &cost))
        c->least = topt_max(c->least, cost.memory_bytes / 101 * 100);
    if (rc > 0 && (least || !excludes(f, &cost)))
        rc = exceed(f, &c->degrees, f->unit, 0, 0, &cost);
    c->too_large |= rc > 0;
    if (!rc && !least)
        c->least = topt_max(c->least, cost.time_ns / 101 * 100);
    return rc;
}

/* Bound candidate 'i' so, and put it where it then belongs in the order of bounds; -1: failed. */
static int refine(struct fold *f, struct candidates *all, int i)
{
    struct candidate c = all->at[i];
    int rc = sharpen(f, &c);
    c.done |= rc > 0;
    for (; i + 1 < all->n && by_least(&all->at[i + 1], &c) < 0; i++)
        all->at[i] = all->at[i + 1];
    all->at[i] = c;
    return rc < 0 ? -1 : 0;
}

/* The units of a strategy that recomputes the first 'n' layers of each chunk into f->unit: of each layer those with or without
 * recomputation, since a layer costs the same whatever its neighbours do. */
static void mix_units(const struct fold *f, const struct topt_unit_sums *with,
                      const struct topt_unit_sums *without, const int16_t *layers, int n)
{
    const struct topt_stage_units *u = &f->s->planning->units;
    int chunk = 0, in_chunk = -1;
    for (int i = 0; i <= u->n; i++) {
        if (i >= u->first && i < u->first + u->layers)
            for (in_chunk++; in_chunk == layers[chunk]; in_chunk = 0)
                chunk++;
        f->unit[i] = in_chunk < n ? with[i] : without[i];
    }
}

/* Does a candidate take too long if it recomputes only as many first layers of each chunk as have to be for it to fit?  By
 * the least of each unit with and without recomputation: 1, 0, or -1: failed.  '*low': so many do not do. */
static int is_first_hopeless(struct fold *f, const struct candidate *c, int *low)
{
    struct topt_unit_sums *with = units_room(f), *without = units_room(f);
    struct topt_strategy_cost all, cost;
    int high = 0, rc = with && without ? may_bound(f) : -1;
    *low = 0;
    if (rc > 0)
        rc = find_least_units(f, c, c->degrees.recompute, with);
    if (rc > 0)
        rc = find_least_units(f, c, 0, without);
    if (rc > 0)
        rc = exceed(f, &c->degrees, with, 0, 0, &all) < 0 ? -1 : 1;
    for (int i = 0; rc > 0 && i < all.stage.chunks; i++)
        high = all.stage.layers[i] > high ? all.stage.layers[i] : high;
    while (rc >= 0 && high - *low > 1) {
        int n = *low + (high - *low) / 2;
        mix_units(f, with, without, all.stage.layers, n);
        rc = exceed(f, &c->degrees, f->unit, with_margin(f->memory_limit), 0, &cost);
        *(rc > 0 && excludes(f, &cost) ? low : &high) = n;
    }
    if (rc >= 0 && high) {
        mix_units(f, with, without, all.stage.layers, high);
        rc = exceed(f, &c->degrees, f->unit, 0, with_margin(f->time_limit), &cost);
    }
    free(with);
    free(without);
    return high ? rc : rc < 0 ? -1 : 0;
}

/* See that a candidate's entry has its one strategy, or else its prices.  Where each rank has equally many samples, the
 * layouts of degrees and the copies that are kept do not depend on how many they are: what differs in micro-batches alone
 * has one strategy, too, and the same. */
static int open_entry(struct fold *f, const struct candidate *c)
{
    if (find_entry(f, c->grid, c->priced_as))
        return -1;
    struct topt_memo_entry *x = f->entry;
    const struct topt_mesh *mesh = &c->grid->mesh;
    if (x->priced || x->sole)
        return 0;
    const struct topt_strategy *like =
        topt_request_even(f->s->request) && c->degrees.by_schedule
            ? topt_memo_sole(f->memo, mesh->nodes, mesh->per_node, c->priced_as)
            : NULL;
    if (!like)
        return price(f);
    x->some = 1;
    topt_memo_keep_sole(f->memo, x, topt_strategy_copy(like));
    return x->sole ? 0 : topt_nomem(f->err, "the search");
}

/* With the strategy that is fastest on the devices of a stage, and with the one that needs least. */
static int add_candidate(struct fold *f, struct candidates *all, int i)
{
    struct candidate *c = &all->at[i];
    if (open_entry(f, c))
        return -1;
    int rc = (f->goal != TOPT_GOAL_LEAST && add_alike(f, all, i, 0)) ||
             add_alike(f, all, i, 1);
    topt_problem_destroy(f->problem);
    f->problem = NULL;
    return rc ? -1 : 0;
}

/* Orders candidates so that those which differ only in recomputation are neighbours, the one without it first. */
static int by_partner(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    struct topt_degrees p = *a->priced_as, q = *b->priced_as;
    p.recompute = q.recompute = 0;
    int order = topt_degrees_order(&p, &q);
    return a->degrees.stages != b->degrees.stages ? a->degrees.stages - b->degrees.stages
           : a->degrees.virtual_stages != b->degrees.virtual_stages
               ? a->degrees.virtual_stages - b->degrees.virtual_stages
           : a->degrees.order != b->degrees.order
               ? (int)a->degrees.order - (int)b->degrees.order
           : order ? order
                   : a->degrees.recompute - b->degrees.recompute;
}

/* The least time of a candidate that recomputes the first layers of chunks alone, as many as what would be kept without any
 * exceeds the limit. */
static int64_t least_first(const struct fold *f, const struct candidate *c)
{
    struct topt_degrees without = c->degrees;
    without.recompute = 0;
    int64_t stays = topt_grid_stays_bytes(c->grid, &without);
    int64_t all = topt_grid_least_stage_bytes(
        c->grid, &without, stays, kept_bytes(c->grid, &without, NULL), INT64_MAX);
    int64_t least =
        topt_grid_least_stage_bytes(c->grid, &c->degrees, stays, 0, INT64_MAX);
    double over = asked_first(f) ? 0 : (double)topt_max(all - f->memory_limit, 0);
    double share = over / (double)topt_max(all - least, 1);
    return (int64_t)((double)c->least *
                     (PERCENT_WITHOUT + (100 - PERCENT_WITHOUT) * share) / 100);
}

/* What is the least that candidates take which recompute the first layers alone?  Where what keeps all fits, or is not of
 * interest, they are not either. */
static void find_first(struct fold *f, struct candidates *all)
{
    qsort(all->at, (size_t)all->n, sizeof *all->at, by_partner);
    for (int i = 0; i < all->n; i++) {
        struct candidate *x = &all->at[i], without = *x, *partner = i ? x - 1 : NULL;
        without.degrees.recompute = 0;
        if (partner && (partner->degrees.recompute || by_partner(partner, &without)))
            partner = NULL;
        int looked_at = x->degrees.stages > 1 && recomputes_first(f, &x->degrees) &&
                        (!partner || partner->too_large);
        x->first = !looked_at ? INT64_MAX
                              : topt_max(partner ? partner->least : 0, least_first(f, x));
    }
}

static int add_first_of(struct fold *f, struct candidate *c)
{
    int low = 0, out = asked_first(f) ? 0 : is_first_hopeless(f, c, &low);
    if (out)
        return out < 0 ? -1 : 0;
    if (open_entry(f, c))
        return -1;
    f->degrees = &c->degrees;
    int rc = find(f, TOPT_GOAL_FASTEST, 0, &f->entry->whole) < 0 ? -1 : add_first(f, low);
    topt_problem_destroy(f->problem);
    f->problem = NULL;
    return rc < 0 || (rc && keep_best(f)) ? -1 : 0;
}

static int look_at(struct fold *f, struct topt_degrees *d)
{
    if (is_canceled(f))
        return -1;
    if (beyond(topt_grid_least_bytes(f->s, d), f->memory_limit))
        return 0;
    if (find_entry(f, f->s, d))
        return -1;
    if (f->entry->priced)
        *d = f->entry->degrees;
    else
        topt_grid_tell_progress(f->s, d);
    int rc = (!f->entry->priced && price(f)) || add_best(f) || keep_best(f);
    topt_problem_destroy(f->problem);
    f->problem = NULL;
    return rc ? -1 : 0;
}

/* Time is up: nothing is known of the degrees that are left. */
static void give_up(struct fold *f)
{
    f->ret->stopped = 1;
    topt_certificate_withdraw(&f->ret->certificate);
    f->ret->certificate.bound_ns = 0;
}

/* Candidates are looked at from the one that may be best on, until none can be better. */
static int add_candidates(struct fold *f, struct candidates *all)
{
    int rc = 0;
    if (all->n)
        qsort(all->at, (size_t)all->n, sizeof *all->at, by_least);
    for (int i = 0; i < all->n && !rc && !f->ret->stopped && is_open(f, &all->at[i]);
         i++) {
        struct candidate *c = &all->at[i];
        if (c->done)
            continue;
        if (c->degrees.stages == 1 && topt_request_stopped(f->s->request))
            give_up(f);
        else if (!c->sharp)
            rc = is_canceled(f) || refine(f, all, i--);
        else if (c->degrees.stages == 1)
            rc = look_at(f, c->priced_as);
        else
            rc = is_canceled(f) || add_candidate(f, all, i);
    }
    return rc ? -1 : 0;
}

static int add_stages(struct fold *f, struct candidates all)
{
    int asked = asked_first(f);
    int rc = list_stages(f, &all) || (!asked && add_candidates(f, &all));
    /* Where the best keeps all, memory does not bind. */
    int binds =
        asked || (f->ret->n ? f->ret->at[0].degrees.recompute : f->time_limit > 0);
    if (binds && all.n) {
        find_first(f, &all);
        qsort(all.at, (size_t)all.n, sizeof *all.at, by_first);
    }
    for (int i = 0; i < all.n && binds && !rc && !beyond(all.at[i].first, f->time_limit);
         i++)
        rc = is_canceled(f) || add_first_of(f, &all.at[i]);
    free(all.at);
    return rc ? -1 : 0;
}

/* ---- the whole ----------------------------------------------------------------------- */

/* The problem's memo knows nothing of pins, other systems and blocks that choose freely. */
static int open_memo(struct fold *f)
{
    const struct topt_grid_search *s = f->s;
    f->memo = s->planning->memo;
    f->widest = topt_hw_memory_bytes(s->request->hw);
    if (f->memo && s->alike && !s->request->pin && !s->request->unlike.groups &&
        topt_request_limit(s->request) <= f->widest &&
        (!s->request->algorithm || !strcmp(s->request->algorithm, "ft")))
        return 0;
    f->memo = f->own = topt_memo_create();
    f->widest = f->memory_limit;
    return f->memo ? 0 : topt_nomem(f->err, "the search");
}

int topt_uniform_solve(struct topt_grid_search *s, enum topt_goal goal, int64_t limit,
                       int64_t time_limit, struct topt_solutions *ret,
                       struct topt_error *err)
{
    struct fold f = {.s = s,
                     .grid = s,
                     .goal = goal,
                     .memory_limit = limit,
                     .time_limit = time_limit,
                     .ret = ret,
                     .err = err};
    *ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    int rc = open_memo(&f);
    /* Degrees are listed from the fastest to those that need least; where stages are searched, too, they are
     * looked at with these.  A number of stages that is asked for leaves out those without. */
    int whole = !topt_request_only_stages(s->request);
    struct candidates all = {0};
    int ordered = goal == TOPT_GOAL_FASTEST && s->planning->layers > 1;
    if (whole && ordered && !rc)
        rc = list_whole(&f, &all);
    for (int i = 0; whole && !ordered && i < s->ndegrees && !rc && !ret->stopped; i++)
        if (goal != TOPT_GOAL_LEAST && topt_request_stopped(s->request))
            give_up(&f);
        else
            rc = look_at(&f,
                         &s->degrees[goal == TOPT_GOAL_LEAST ? s->ndegrees - 1 - i : i]);
    if (!rc && !ret->stopped)
        rc = add_stages(&f, all);
    if (f.own && s->planning->memo) /* it is a search, though of no use to others */
        s->planning->memo->searches += f.own->searches;
    if (f.own && s->planning->memo && f.own->host_bytes)
        s->planning->memo->host_bytes = f.own->host_bytes;
    free(f.unit);
    for (int i = 0; i < EVALUATORS; i++)
        topt_evaluator_destroy(f.costs[i].of);
    topt_memo_destroy(f.own);
    if (rc)
        topt_solutions_fini(ret);
    return rc;
}
