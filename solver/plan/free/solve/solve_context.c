/* solve_context.c - searches of a problem under caps, the solutions that they find and what they
 * prove. */
#include "exact.h"
#include "topt_array.h"
#include "topt_lower_bound.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>

/* ---- one search -------------------------------------------------------------------- */

int topt_solve_note_caps(struct solve_context *r, struct topt_caps caps)
{
    struct topt_solutions *s = r->ret;
    if (TOPT_RESIZE(s->caps, s->ncaps + 1))
        return topt_nomem(r->err, "the frontier");
    s->caps[s->ncaps++] = caps;
    return 0;
}

/* Is one of what earlier searches found, which is in order, at least as good in both
 * ways? */
static int dominated(const struct solve_context *r, int64_t memory, int64_t time)
{
    const struct topt_solution *at = r->ret->at;
    int lo = 0, hi = r->before;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (at[mid].memory_bytes <= memory)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 && at[lo - 1].time_ns <= time;
}

int topt_solve_keep(struct solve_context *r, const struct topt_search_point *point,
                    int64_t memory)
{
    if (dominated(r, memory, point->cost.time))
        return 0;
    struct topt_solution s = {
        memory, point->cost.time, topt_capped_strategy(r->p, point), {0}, NULL};
    if (!s.strategy)
        return topt_nomem(r->err, "a strategy");
    if (topt_solutions_append(r->ret, &s, 1, r->err)) {
        topt_strategy_destroy(s.strategy);
        return -1;
    }
    return 0;
}

int64_t topt_solve_work_left(const struct solve_context *r)
{
    int64_t most = r->options->max_work, done = r->ret->certificate.stats.products;
    return most ? topt_max(most - done, 1) : 0;
}

int topt_solve_is_over(const struct solve_context *r)
{
    const struct topt_search_options *o = r->options;
    return (o->stop && atomic_load(o->stop)) || (r->p && topt_problem_is_over(r->p)) ||
           (o->max_work && r->ret->certificate.stats.products >= o->max_work);
}

int topt_solve_was_stopped(const struct solve_context *r, const struct topt_error *why)
{
    const struct topt_search_options *o = r->options;
    return why->code == TOPT_ERR_CANCELED && topt_solve_is_over(r) &&
           !(o->cancel && atomic_load(o->cancel));
}

int64_t topt_bound_under(int64_t time, double epsilon)
{
    return epsilon > 0 ? (int64_t)((double)time / (1 + epsilon) * (1 - 1e-12)) : time;
}

int64_t topt_bound_of(const struct topt_frontier *f)
{
    if (!isfinite(f->epsilon))
        return 0;
    return f->npoints ? topt_bound_under(f->cost[f->npoints - 1].time, f->epsilon)
                      : INT64_MAX;
}

double topt_solve_epsilon(const struct solve_context *r, int open)
{
    int64_t best = topt_solutions_best(r->ret);
    double epsilon = topt_certificate_epsilon(&r->ret->certificate, best),
           asked = r->options->epsilon;
    double rounding = best > 0 ? 2 / (double)best + 1e-11 : 0;
    if (open || r->ret->stopped)
        return epsilon <= asked + rounding ? fmin(epsilon, asked) : epsilon;
    return fmin(epsilon, asked);
}

static int claim_once(struct solve_context *r, const struct topt_frontier *f)
{
    const struct topt_model *m = r->p->k.model;
    struct topt_certificate c = {.exact = r->proves || f->exact,
                                 .epsilon = r->proves ? 0 : f->epsilon,
                                 .bound_ns = INT64_MAX,
                                 .bound_bytes = INT64_MAX,
                                 .nnodes = m->nops + m->ntensors,
                                 .stats = f->stats};
    if (f->nheuristic && !(c.decided = calloc((size_t)c.nnodes + 1, 1)))
        return topt_nomem(r->err, "what was decided");
    for (int i = 0; i < f->nheuristic; i++)
        topt_capped_mark(r->p, f->heuristic[i], c.decided);
    int rc = topt_certificate_merge(&r->ret->certificate, &c, r->err);
    topt_certificate_fini(&c);
    /* The first search has the widest limits and caps: all others are within it. */
    if (!r->searched++ && !r->proves)
        r->ret->certificate.bound_ns = topt_bound_of(f);
    return rc;
}

int topt_solve_search(struct solve_context *r, const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret)
{
    struct topt_search_options o = *options;
    o.max_work = topt_solve_work_left(r);
    r->before = r->ret->n;
    if (topt_search(problem, &o, ret, r->err))
        return -1;
    if (!claim_once(r, *ret))
        return 0;
    topt_frontier_destroy(*ret);
    return -1;
}

struct topt_search_options topt_solve_options_for_least(struct topt_search_options o)
{
    o.memory_limit = o.time_limit = o.max_work = 0;
    o.epsilon = 0;
    o.known = NULL; /* of times */
    o.nknown = 0;
    o.cancel = o.stop ? o.stop : o.cancel;
    o.stop = NULL;
    return o;
}

/* ---- how much can be in flight of what fits ---------------------------------------- */

/*     memory(S) = sum(S) + T(S) + W * U(S) <= limit
 *
 * Beside the least sum so much of the limit is left for what is in flight; what has
 * more there does not fit.  Under caps that are lowered to that the least sum is
 * heavier, and leaves less:
 *
 *     caps  ->  least sum under them  ->  limit - sum: the next caps  ->  ...
 *
 * until they stay, or nothing is left.  Each step is one lower bound of the scalarised
 * problem (search/topt_lower_bound.h).  Searches under caps beside which nothing fits
 * would tell the same (cap_search.c parts what they find), but where the limit is close
 * to the least memory each of them takes hundreds of such bounds. */

/* The least that adds up under some caps; 0 where that can't be weighed.  1, 0 where
 * there is no strategy, or -1. */
static int least_sum(struct solve_context *r, struct topt_caps caps, int64_t *ret)
{
    const struct topt_search_problem *under = topt_capped_problem(r->p, caps);
    struct topt_cost least = {0, 0}, corner = {r->options->memory_limit, 0};
    struct topt_lower_bound *w;
    struct topt_error why = {0};
    int some = 1;
    *ret = 0;
    if (topt_lower_bound_create(under, r->options, &w, &why)) {
        if (why.code != TOPT_ERR_LIMIT && r->err)
            *r->err = why;
        return why.code == TOPT_ERR_LIMIT ? 1 : -1;
    }
    int rc = topt_lower_bound_scalarize(w, (struct topt_scalarization){1, 0}, corner,
                                        r->err) ||
             topt_lower_bound_lightest(w, &some, &least, r->err);
    r->ret->certificate.stats.products += topt_lower_bound_work(w);
    topt_lower_bound_destroy(w);
    *ret = least.memory;
    return rc ? -1 : some;
}

int topt_feasible_caps(struct solve_context *r, struct topt_caps low,
                       struct topt_caps *high)
{
    for (int i = 0; i < FEASIBLE_STEPS && r->options->memory_limit; i++) {
        struct topt_caps before = *high;
        int64_t sum;
        int some = least_sum(r, before, &sum);
        if (some <= 0)
            return some;
        *high = topt_caps_within(r->p, low, before,
                                 r->options->memory_limit - sum -
                                     topt_capped_bytes(r->p, low));
        if (high->transient < low.transient || high->crossing < low.crossing)
            return 0;
        if (high->transient == before.transient && high->crossing == before.crossing)
            break;
    }
    return 1;
}
