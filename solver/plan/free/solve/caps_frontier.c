/* caps_frontier.c - the exact frontier of a problem: the union over pairs of caps.
 *
 *     memory(S) = sum(S) + T(S) + W * U(S)
 *
 * is not a sum, but for fixed caps T and U it is.  Caps are taken from the largest down.
 * Let a search under caps (T, U) find points of which the hungriest needs T' <= T: every
 * search with a cap between T' and T would find the same points, so the next cap is the
 * largest one below T'.  Each point is charged what it really needs.  The same holds for
 * U, outside.
 *
 * Where only one point is wanted there is a shorter way (cap_search.c). */
#include "exact.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>

/* Keep what of a search's points is within the limit, and say which are the largest caps
 * that any of them needs: -1 where there is none. */
static int keep_points(struct solve_context *r, const struct topt_frontier *f,
                       struct topt_caps *ret_need)
{
    struct topt_frontier_reader *reader = topt_frontier_reader(f, r->err);
    int64_t limit = r->options->memory_limit;
    int rc = reader ? 0 : -1;
    for (int i = 0; i < f->npoints && !rc; i++) {
        const struct topt_search_point *point = topt_frontier_read(reader, i);
        struct topt_need n;
        rc = topt_capped_need(r->p, point, &n, r->err);
        if (rc)
            break;
        ret_need->transient = topt_max(ret_need->transient, n.caps.transient);
        ret_need->crossing = topt_max(ret_need->crossing, n.caps.crossing);
        int64_t memory = point->cost.memory + topt_capped_bytes(r->p, n.caps) + n.excess;
        if (!limit || memory <= limit)
            rc = topt_solve_keep(r, point, memory - n.surplus);
    }
    topt_frontier_reader_destroy(reader);
    return rc;
}

static int search_under(struct solve_context *r, struct topt_caps caps,
                        struct topt_caps *ret_need)
{
    struct topt_frontier *f = NULL;
    *ret_need = (struct topt_caps){-1, -1};
    if (topt_solve_search(r, topt_capped_problem(r->p, caps), r->options, &f))
        return -1;
    int rc = keep_points(r, f, ret_need);
    topt_frontier_destroy(f);
    return rc || topt_solutions_reduce(r->ret, r->err) ? -1 : 0;
}

/* All transient caps under one crossing cap.  '*ret_crossing': the largest that was
 * needed. */
static int search_crossing(struct solve_context *r, int64_t crossing,
                           int64_t *ret_crossing)
{
    struct topt_caps need;
    int64_t cap = topt_capped_most(r->p).transient;
    *ret_crossing = -1;
    for (; cap >= 0; cap = topt_nearest_transient(r->p, TOPT_BELOW, need.transient)) {
        if (r->searched && topt_solve_is_over(r)) {
            r->stopped = 1;
            break;
        }
        if (search_under(r, (struct topt_caps){cap, crossing}, &need))
            return -1;
        if (need.transient < 0)
            break;
        *ret_crossing = topt_max(*ret_crossing, need.crossing);
        if (topt_solve_note_caps(r, need))
            return -1;
    }
    return 0;
}

/* Below this no strategy is as fast, where all searches were made and lose 'epsilon' at
 * most. */
static int64_t bound_within(const struct solve_context *r, double epsilon)
{
    int64_t best = topt_solutions_best(r->ret);
    if (r->options->time_limit && r->options->time_limit < best && epsilon > 0)
        best = r->options->time_limit;
    return best == INT64_MAX ? best : topt_bound_under(best, epsilon);
}

/* Claim the result of all searches together. */
static void claim_frontier(struct solve_context *r)
{
    struct topt_certificate *c = &r->ret->certificate;
    int64_t bound = topt_problem_lower_bound(r->p).time;
    if (r->stopped)
        c->exact = 0;
    r->ret->stopped = r->stopped || (!c->exact && topt_solve_is_over(r));
    if (!r->stopped && isfinite(c->epsilon))
        bound = bound_within(r, c->epsilon);
    else
        c->epsilon = INFINITY;
    c->bound_ns = topt_max(c->bound_ns, bound);
}

/* The caller's incumbents as sums, which searches find: a strategy that costs as much or
 * more has at least the incumbent's sum, less the bytes that every strategy has in flight. */
static struct topt_cost *known_sums(const struct topt_problem *p,
                                    const struct topt_search_options *o, int *ret_n)
{
    int64_t charge = topt_capped_bytes(p, topt_capped_least(p));
    struct topt_cost *sum = malloc(((size_t)o->nknown + 1) * sizeof *sum);
    for (int i = 0; sum && i < o->nknown; i++) {
        sum[i] = o->known[i];
        sum[i].memory = topt_max(sum[i].memory - charge, 0);
    }
    *ret_n = sum ? (int)topt_reduce(sum, (size_t)o->nknown) : 0;
    return sum;
}

int topt_caps_frontier(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_search_options o = *options;
    struct solve_context r = {.p = p, .options = &o, .ret = ret, .err = err};
    int rc = 0;
    *ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    struct topt_cost *known = known_sums(p, options, &o.nknown);
    if (!known)
        return topt_nomem(err, "the frontier");
    o.known = known;
    int64_t cap = topt_capped_most(p).crossing;
    while (cap >= 0) {
        int64_t need;
        rc = search_crossing(&r, cap, &need);
        if (rc || need < 0 || r.stopped)
            break;
        cap = topt_nearest_crossing(p, TOPT_BELOW, need);
    }
    free(known);
    if (rc) {
        topt_solutions_fini(ret);
        return -1;
    }
    claim_frontier(&r);
    return 0;
}
