/* run.c - searches of a problem under caps, the solutions that they find and what they prove. */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- solutions --------------------------------------------------------------------------- */

void topt_solutions_fini(struct topt_solutions *s)
{
    for (int i = 0; i < s->n; i++)
        topt_strategy_destroy(s->at[i].strategy);
    free(s->at);
    free(s->caps);
    topt_claim_fini(&s->claim);
    memset(s, 0, sizeof *s);
}

static int by_memory(const void *x, const void *y)
{
    const struct topt_solution *a = x, *b = y;
    if (a->memory_bytes != b->memory_bytes)
        return a->memory_bytes < b->memory_bytes ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return 0;
}

/* Stable: among equal costs the one that was found first stays. */
static void sort_solutions(struct topt_solution *at, int n, struct topt_solution *tmp)
{
    if (n < 2)
        return;
    int half = n / 2, i = 0, j = half, k = 0;
    sort_solutions(at, half, tmp);
    sort_solutions(at + half, n - half, tmp);
    while (i < half && j < n)
        tmp[k++] = by_memory(&at[i], &at[j]) <= 0 ? at[i++] : at[j++];
    while (i < half)
        tmp[k++] = at[i++];
    while (j < n)
        tmp[k++] = at[j++];
    memcpy(at, tmp, (size_t)n * sizeof *at);
}

int topt_solutions_reduce(struct topt_solutions *s, struct topt_error *err)
{
    struct topt_solution *tmp = malloc(((size_t)s->n + 1) * sizeof *tmp);
    if (!tmp)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the frontier");
    sort_solutions(s->at, s->n, tmp);
    free(tmp);
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        if (n > 0 && s->at[i].time_ns >= s->at[n - 1].time_ns)
            topt_strategy_destroy(s->at[i].strategy);
        else
            s->at[n++] = s->at[i];
    }
    s->n = n;
    return 0;
}

static int append(struct topt_solutions *s, const struct topt_solution *more, int n,
                  struct topt_error *err)
{
    struct topt_solution *at =
        realloc(s->at, ((size_t)s->n + (size_t)n + 1) * sizeof *at);
    if (!at)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the frontier");
    if (n > 0)
        memcpy(at + s->n, more, (size_t)n * sizeof *at);
    s->at = at;
    s->n += n;
    return 0;
}

int topt_solutions_merge(struct topt_solutions *into, struct topt_solutions *from,
                         struct topt_error *err)
{
    if (append(into, from->at, from->n, err))
        return -1;
    from->n = 0;
    into->ncaps += from->ncaps;
    into->stopped |= from->stopped;
    return topt_claim_merge(&into->claim, &from->claim, err) ||
                   topt_solutions_reduce(into, err)
               ? -1
               : 0;
}

int64_t topt_solutions_best(const struct topt_solutions *s)
{
    return s->n > 0 ? s->at[s->n - 1].time_ns : INT64_MAX;
}

/* ---- one search -------------------------------------------------------------------------- */

int topt_run_note(struct run *r, struct topt_caps caps)
{
    struct topt_solutions *s = r->ret;
    struct topt_caps *all = realloc(s->caps, ((size_t)s->ncaps + 1) * sizeof *all);
    if (!all)
        return topt_fail(r->err, TOPT_ERR_NOMEM, "no memory for the frontier");
    s->caps = all;
    s->caps[s->ncaps++] = caps;
    return 0;
}

/* Is one of what earlier searches found, which is in order, at least as good in both ways? */
static int dominated(const struct run *r, int64_t memory, int64_t time)
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

int topt_run_keep(struct run *r, const struct topt_search_point *point, int64_t memory)
{
    if (dominated(r, memory, point->cost.time))
        return 0;
    struct topt_solution s = {
        memory, point->cost.time, topt_problem_strategy(r->p, point), {0}};
    if (!s.strategy)
        return topt_fail(r->err, TOPT_ERR_NOMEM, "no memory for a strategy");
    if (append(r->ret, &s, 1, r->err)) {
        topt_strategy_destroy(s.strategy);
        return -1;
    }
    return 0;
}

int64_t topt_run_work_left(const struct run *r)
{
    int64_t most = r->options->max_work, done = r->ret->claim.stats.products;
    return most && most - done < 1 ? 1 : most ? most - done : 0;
}

int topt_run_over(const struct run *r)
{
    const struct topt_search_options *o = r->options;
    return (o->stop && atomic_load(o->stop)) ||
           (o->max_work && r->ret->claim.stats.products >= o->max_work);
}

int topt_run_stopped(const struct run *r, const struct topt_error *why)
{
    const struct topt_search_options *o = r->options;
    return why->code == TOPT_ERR_CANCELED && topt_run_over(r) &&
           !(o->cancel && atomic_load(o->cancel));
}

int64_t topt_floor_under(int64_t time, double epsilon)
{
    return epsilon > 0 ? (int64_t)((double)time / (1 + epsilon) * (1 - 1e-12)) : time;
}

int64_t topt_floor_of(const struct topt_frontier *f)
{
    if (!isfinite(f->epsilon))
        return 0;
    return f->npoints ? topt_floor_under(f->cost[f->npoints - 1].time, f->epsilon)
                      : INT64_MAX;
}

double topt_run_epsilon(const struct run *r, int open)
{
    int64_t best = topt_solutions_best(r->ret);
    double epsilon = topt_claim_epsilon(&r->ret->claim, best),
           asked = r->options->epsilon;
    double rounding = best > 0 ? 2 / (double)best + 1e-11 : 0;
    if (open || r->ret->stopped)
        return epsilon <= asked + rounding ? fmin(epsilon, asked) : epsilon;
    return fmin(epsilon, asked);
}

static int claim_once(struct run *r, const struct topt_frontier *f)
{
    struct topt_claim c = {.exact = r->proves || f->exact,
                           .epsilon = r->proves ? 0 : f->epsilon,
                           .floor_ns = INT64_MAX,
                           .floor_bytes = INT64_MAX,
                           .nnodes = topt_problem_nodes(r->p),
                           .stats = f->stats};
    if (f->nheuristic && !(c.decided = calloc((size_t)c.nnodes + 1, 1)))
        return topt_fail(r->err, TOPT_ERR_NOMEM, "no memory for what was decided");
    for (int i = 0; i < f->nheuristic; i++)
        topt_problem_mark(r->p, f->heuristic[i], c.decided);
    int rc = topt_claim_merge(&r->ret->claim, &c, r->err);
    topt_claim_fini(&c);
    /* The first search has the widest limits and caps: all others are within it. */
    if (!r->searched++ && !r->proves)
        r->ret->claim.floor_ns = topt_floor_of(f);
    return rc;
}

int topt_run_search(struct run *r, const struct topt_search_problem *problem,
                    const struct topt_search_options *options, struct topt_frontier **ret)
{
    struct topt_search_options o = *options;
    o.max_work = topt_run_work_left(r);
    r->before = r->ret->n;
    if (topt_search(problem, &o, ret, r->err))
        return -1;
    if (!claim_once(r, *ret))
        return 0;
    topt_frontier_destroy(*ret);
    return -1;
}
