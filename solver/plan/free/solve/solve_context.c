/* solve_context.c - searches of a problem under caps, the solutions that they find and what they
 * prove. */
#include "solve_context.h"
#include "caps.h"
#include "problem_data.h"
#include "topt_array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    return most && most - done < 1 ? 1 : most ? most - done : 0;
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
    struct topt_certificate c = {.exact = r->proves || f->exact,
                                 .epsilon = r->proves ? 0 : f->epsilon,
                                 .bound_ns = INT64_MAX,
                                 .bound_bytes = INT64_MAX,
                                 .nnodes = topt_capped_nodes(r->p),
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
