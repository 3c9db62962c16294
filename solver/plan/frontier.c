/* frontier.c - the exact frontier of a problem: the union over pairs of caps.
 *
 *     memory(S) = sum(S) + T(S) + W * U(S)
 *
 * is not a sum, but for fixed caps T and U it is.  Caps are taken from the largest down.  Let
 * a search under caps (T, U) find points of which the hungriest needs T' <= T: every search
 * with a cap between T' and T would find the same points, so the next cap is the largest one
 * below T'.  Each point is charged what it really needs.  The same holds for U, outside.
 *
 * All of that also holds within limits: of strategies that are no slower than one that fits,
 * where only the fastest is wanted.  The search is quick where that leaves few. */
#include "problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static int reduce(struct topt_solutions *s, struct topt_error *err)
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
    return topt_claim_merge(&into->claim, &from->claim, err) || reduce(into, err) ? -1
                                                                                  : 0;
}

/* ---- one pair of caps ------------------------------------------------------------------------ */

struct run {
    struct topt_problem *p;
    const struct topt_search_options *options;
    int fastest;
    struct topt_solutions *ret;
    struct topt_error *err;
    int searched, stopped; /* searches made; the last one that is due was not */
};

/* What a search found: the largest caps any point needs, -1 where there is no point; how many
 * points fit, caps included; the time of the fastest point. */
struct found {
    struct topt_caps need;
    int kept;
    int64_t fastest;
};

static int note_caps(struct topt_solutions *s, int64_t transient, int64_t crossing,
                     struct topt_error *err)
{
    struct topt_caps *caps = realloc(s->caps, ((size_t)s->ncaps + 1) * sizeof *caps);
    if (!caps)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the frontier");
    s->caps = caps;
    s->caps[s->ncaps++] = (struct topt_caps){transient, crossing};
    return 0;
}

/* Is there a point at least as good in both ways? */
static int dominated(const struct topt_solutions *s, int64_t memory, int64_t time)
{
    for (int i = 0; i < s->n; i++)
        if (s->at[i].memory_bytes <= memory && s->at[i].time_ns <= time)
            return 1;
    return 0;
}

static int keep_point(struct run *r, const struct topt_search_point *point,
                      int64_t memory)
{
    if (dominated(r->ret, memory, point->cost.time))
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

/* Work that is left of what the caller allows: at least a little, which finds the lightest. */
static int64_t work_left(const struct run *r)
{
    int64_t most = r->options->max_work, done = r->ret->claim.stats.products;
    return most && most - done < 1 ? 1 : most ? most - done : 0;
}

static int out_of_work(const struct run *r)
{
    const struct topt_search_options *o = r->options;
    return (o->stop && atomic_load(o->stop)) ||
           (o->max_work && r->ret->claim.stats.products >= o->max_work);
}

/* What nothing is faster than where 'time' is within 'epsilon' of the fastest. */
static int64_t floor_under(int64_t time, double epsilon)
{
    return epsilon > 0 ? (int64_t)((double)time / (1 + epsilon) * (1 - 1e-12)) : time;
}

static int64_t floor_of(const struct topt_frontier *f)
{
    if (!isfinite(f->epsilon))
        return 0;
    return f->npoints ? floor_under(f->cost[f->npoints - 1].time, f->epsilon) : INT64_MAX;
}

static int claim_once(struct run *r, const struct topt_frontier *f)
{
    struct topt_claim c = {.exact = f->exact,
                           .epsilon = f->epsilon,
                           .floor_ns = INT64_MAX,
                           .nnodes = topt_problem_nodes(r->p),
                           .stats = f->stats};
    if (f->nheuristic && !(c.decided = calloc((size_t)c.nnodes + 1, 1)))
        return topt_fail(r->err, TOPT_ERR_NOMEM, "no memory for what was decided");
    for (int i = 0; i < f->nheuristic; i++)
        topt_problem_mark(r->p, f->heuristic[i], c.decided);
    int rc = topt_claim_merge(&r->ret->claim, &c, r->err);
    topt_claim_fini(&c);
    /* The first search has the widest limits and caps: all others are within it. */
    if (!r->searched++)
        r->ret->claim.floor_ns = floor_of(f);
    return rc;
}

/* Keep what of a search's points is within the limit, and say what they need. */
static int keep_points(struct run *r, const struct topt_frontier *f, struct found *ret)
{
    struct topt_frontier_reader *reader = topt_frontier_reader(f, r->err);
    int64_t limit = r->options->memory_limit, w = topt_problem_crossing(r->p);
    int rc = reader ? 0 : -1;
    for (int i = 0; i < f->npoints && !rc; i++) {
        const struct topt_search_point *point = topt_frontier_read(reader, i);
        int64_t t, u;
        topt_problem_caps(r->p, point, &t, &u);
        ret->need.transient = t > ret->need.transient ? t : ret->need.transient;
        ret->need.crossing = u > ret->need.crossing ? u : ret->need.crossing;
        ret->fastest = point->cost.time;
        int64_t memory = point->cost.memory + t + w * u;
        if (!limit || memory <= limit) {
            rc = keep_point(r, point, memory);
            ret->kept++;
        }
    }
    topt_frontier_reader_destroy(reader);
    return rc;
}

/* One search; what it finds within the limit is kept. */
static int search_once(struct run *r, const struct topt_search_problem *problem,
                       const struct topt_search_options *options, struct found *ret)
{
    struct topt_search_options o = *options;
    struct topt_frontier *f = NULL;
    *ret = (struct found){{-1, -1}, 0, INT64_MAX};
    o.max_work = work_left(r);
    if (topt_search(problem, &o, &f, r->err))
        return -1;
    int rc = claim_once(r, f) || keep_points(r, f, ret);
    topt_frontier_destroy(f);
    return rc || reduce(r->ret, r->err) ? -1 : 0;
}

/* Time of the fastest point so far, or of the slowest thinkable. */
static int64_t best_time(const struct topt_solutions *s)
{
    return s->n > 0 ? s->at[s->n - 1].time_ns : INT64_MAX;
}

enum { SEEDS = 3 };

/* Find a fast strategy that fits, caps included: search within the limit less what the last
 * one that did not fit has in flight.  'ret' is about the first search, which says what is
 * the fastest under these caps, whether it fits or not. */
static int seed(struct run *r, const struct topt_search_problem *problem,
                struct found *ret)
{
    struct topt_search_options o = *r->options;
    struct found f;
    int64_t charge = 0, w = topt_problem_crossing(r->p);
    o.fastest = 1;
    for (int i = 0; i < SEEDS && (!o.memory_limit || charge < o.memory_limit); i++) {
        o.memory_limit -= charge;
        if (search_once(r, problem, &o, &f))
            return -1;
        if (i == 0)
            *ret = f;
        if (f.kept || f.need.transient < 0)
            break;
        charge = f.need.transient + w * f.need.crossing -
                 (r->options->memory_limit - o.memory_limit);
        if (charge <= 0)
            break;
    }
    return 0;
}

/* Search under the caps.  '*ret_next': no lower transient cap from here on finds anything new;
 * -1 where none at all does. */
static int search_under(struct run *r, int64_t transient, int64_t crossing,
                        struct found *ret, int64_t *ret_next)
{
    const struct topt_search_problem *problem =
        topt_problem_under(r->p, transient, crossing);
    int64_t best = best_time(r->ret);
    if (search_once(r, problem, r->options, ret))
        return -1;
    *ret_next = ret->need.transient;
    /* Lower caps are never faster than what was found here or before. */
    if (r->fastest && ret->need.transient >= 0 &&
        (ret->fastest >= best || best_time(r->ret) <= ret->fastest))
        *ret_next = -1;
    return 0;
}

/* The same where only the fastest is wanted, exactly.  Points slower than the fastest so far
 * don't count, so that a search is left with the few that are faster and may not fit once
 * charged with their caps.  To have fewer still, a search takes those strategies that need
 * between 3/4 of the cap and the cap: they have that much less of the limit. */
static int search_fastest(struct run *r, int64_t transient, int64_t crossing,
                          struct found *ret, int64_t *ret_next)
{
    const struct topt_search_problem *problem =
        topt_problem_under(r->p, transient, crossing);
    struct topt_search_options o = *r->options;
    int64_t low = transient / 4 * 3;
    *ret_next = -1;
    if (!r->ret->n) {
        if (seed(r, problem, ret))
            return -1;
        *ret_next = ret->need.transient;
        if (ret->kept || ret->need.transient < 0)
            return 0;
    }
    if (r->ret->n)
        o.time_limit = best_time(r->ret);
    if (!o.memory_limit || low < o.memory_limit / 256)
        low = 0;
    if (low > 0 && low >= o.memory_limit) {
        *ret_next = low;
        return 0;
    }
    o.memory_limit -= low;
    if (search_once(r, problem, &o, ret))
        return -1;
    *ret_next = ret->need.transient > low ? ret->need.transient : low;
    if (ret->need.transient < 0 && low == 0)
        *ret_next = -1;
    return 0;
}

/* All transient caps under one crossing cap.  '*ret_crossing': the largest that was needed. */
static int search_crossing(struct run *r, int64_t crossing, int64_t *ret_crossing)
{
    int64_t cap = topt_problem_next_transient(r->p, INT64_MAX), next;
    *ret_crossing = -1;
    for (; cap >= 0; cap = topt_problem_next_transient(r->p, next)) {
        struct found f = {{-1, -1}, 0, INT64_MAX};
        if (r->searched && out_of_work(r)) {
            r->stopped = 1;
            break;
        }
        if (r->fastest && !(r->options->epsilon > 0)
                ? search_fastest(r, cap, crossing, &f, &next)
                : search_under(r, cap, crossing, &f, &next))
            return -1;
        if (f.need.crossing > *ret_crossing)
            *ret_crossing = f.need.crossing;
        if (f.need.transient >= 0 &&
            note_caps(r->ret, f.need.transient, f.need.crossing, r->err))
            return -1;
        if (next < 0)
            break;
    }
    return 0;
}

/* What all searches together prove. */
static void conclude(struct run *r)
{
    struct topt_claim *c = &r->ret->claim;
    int64_t bound = topt_problem_bound(r->p).time, best = best_time(r->ret);
    if (r->stopped)
        c->exact = 0;
    r->ret->stopped = r->stopped || (!c->exact && out_of_work(r));
    if (!r->stopped && isfinite(c->epsilon)) {
        if (r->options->time_limit && r->options->time_limit < best && c->epsilon > 0)
            best = r->options->time_limit;
        bound = best == INT64_MAX ? best : floor_under(best, c->epsilon);
    } else if (!r->fastest) {
        c->epsilon = INFINITY;
    }
    if (bound > c->floor_ns)
        c->floor_ns = bound;
}

int topt_problem_frontier(struct topt_problem *p,
                          const struct topt_search_options *options, int fastest,
                          struct topt_solutions *ret, struct topt_error *err)
{
    struct run r = {p, options, fastest, ret, err, 0, 0};
    *ret = (struct topt_solutions){.claim = topt_claim_exact()};
    int64_t cap = topt_problem_next_crossing(p, INT64_MAX);
    while (cap >= 0) {
        int64_t need;
        if (search_crossing(&r, cap, &need)) {
            topt_solutions_fini(ret);
            return -1;
        }
        if (need < 0 || r.stopped)
            break;
        cap = topt_problem_next_crossing(p, need);
    }
    conclude(&r);
    if (fastest && ret->n > 1) {
        struct topt_solution last = ret->at[ret->n - 1];
        ret->at[ret->n - 1] = ret->at[0];
        ret->at[0] = last;
        while (ret->n > 1)
            topt_strategy_destroy(ret->at[--ret->n].strategy);
    }
    return 0;
}

/* ---- the least memory ------------------------------------------------------------------------ */

/* With memory and time exchanged, the fastest of a search is what needs least under its caps.
 * A strategy that needs no less of both caps than that one needs no less memory. */
struct least {
    struct topt_problem *p;
    struct topt_search_options o;
    struct topt_solutions *ret;
    struct topt_error *err;
};

static int take_least(struct least *l, const struct topt_search_point *point,
                      struct topt_caps need)
{
    int64_t memory =
        point->cost.time + need.transient + topt_problem_crossing(l->p) * need.crossing;
    if (l->o.time_limit && memory > l->o.time_limit)
        return 0;
    topt_solutions_fini(l->ret);
    struct topt_solution s = {
        memory, point->cost.memory, topt_problem_strategy(l->p, point), {0}};
    l->ret->claim = topt_claim_exact();
    if (!s.strategy || append(l->ret, &s, 1, l->err)) {
        topt_strategy_destroy(s.strategy);
        return topt_fail(l->err, TOPT_ERR_NOMEM, "no memory for a strategy");
    }
    l->o.time_limit = memory > 1 ? memory - 1 : 1;
    return 0;
}

/* Needs of the least under these caps; -1 where nothing is below what was found. */
static int least_under(struct least *l, struct topt_caps caps, struct topt_caps *ret)
{
    struct topt_frontier *f = NULL;
    *ret = (struct topt_caps){-1, -1};
    if (topt_search(topt_problem_under(l->p, caps.transient, caps.crossing), &l->o, &f,
                    l->err))
        return -1;
    struct topt_frontier_reader *reader = topt_frontier_reader(f, l->err);
    int rc = reader ? 0 : -1;
    if (reader && f->npoints > 0) {
        const struct topt_search_point *point =
            topt_frontier_read(reader, f->npoints - 1);
        topt_problem_caps(l->p, point, &ret->transient, &ret->crossing);
        rc = take_least(l, point, *ret);
    }
    topt_frontier_reader_destroy(reader);
    topt_frontier_destroy(f);
    return rc;
}

static int least_crossing(struct least *l, int64_t crossing, int64_t *ret_need)
{
    struct topt_caps need;
    int64_t t = topt_problem_next_transient(l->p, INT64_MAX);
    *ret_need = -1;
    for (; t >= 0; t = topt_problem_next_transient(l->p, need.transient)) {
        if (least_under(l, (struct topt_caps){t, crossing}, &need))
            return -1;
        if (need.transient < 0)
            break;
        if (need.crossing > *ret_need)
            *ret_need = need.crossing;
    }
    return 0;
}

int topt_problem_least(struct topt_problem *p, const struct topt_search_options *options,
                       int64_t below, struct topt_solutions *ret, struct topt_error *err)
{
    struct least l = {p, *options, ret, err};
    int64_t u = topt_problem_next_crossing(p, INT64_MAX), need = 0;
    int rc = 0;
    *ret = (struct topt_solutions){.claim = topt_claim_exact()};
    l.o.memory_limit = 0;
    l.o.time_limit = below > 1 ? below - 1 : below;
    l.o.epsilon = 0;
    l.o.fastest = 1;
    /* A bound on the least is of no use: where the search is to stop, it gives up. */
    l.o.cancel = l.o.stop ? l.o.stop : l.o.cancel;
    l.o.stop = NULL;
    l.o.max_work = 0;
    topt_problem_exchange(p, 1);
    for (; u >= 0 && need >= 0 && !rc; u = topt_problem_next_crossing(p, need))
        rc = least_crossing(&l, u, &need);
    topt_problem_exchange(p, 0);
    if (rc)
        topt_solutions_fini(ret);
    return rc;
}
