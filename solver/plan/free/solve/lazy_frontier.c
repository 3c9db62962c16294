/* lazy_frontier.c - a whole frontier.  Where all prices are exact caps_frontier.c finds it; here,
 * prices of moves are lower bounds until they matter.
 *
 * The loop is lazy_pricing.c's.  Bounded are strategies at all slopes (dual_bound.c), so
 * that nothing is below the hull; problems with exact prices are searched by
 * caps_frontier.c:
 *
 *     time |   o--+
 *          |   .  |  +: a strategy that no point stands for is in one of these corners (with a
 *          |    . o-----+           tolerance they are lower); one that is above them by
 *          |      .     |           some weighted sum is not wanted, and a configuration
 *          |        .   o---        of which that is so of all strategies is left out
 *          |   hull   ..  o
 *          +------------------ memory
 *
 * Only the strategy of least memory has a corner that no point bounds: whether something is
 * smaller is asked by itself (solve_context.c, cap_search.c). */
#include "bounds.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>

/* The last level of what matters. */
enum { NEAR = TOPT_LEVEL_BEYOND - 1 };

struct lazy_frontier {
    struct lazy_pricing lazy; /* first, so that one is the other */
    struct topt_cost *known;  /* the caller's, and what was found, as a frontier */
    struct topt_cost *corner; /* of what is still wanted */
    int nknown, ncorners;
    int64_t least_memory; /* nothing needs less */
    double rough, reach;
    double gap; /* by so much, at most, are strategies faster than what is known */
    struct dual_bound hull;
};

static struct lazy_frontier *frontier_of(struct lazy_pricing *s)
{
    return (struct lazy_frontier *)s;
}

static struct topt_cost limits_of(const struct lazy_frontier *s)
{
    const struct topt_search_options *o = s->lazy.context.options;
    return (struct topt_cost){o->memory_limit ? o->memory_limit : INT64_MAX,
                              o->time_limit ? o->time_limit : INT64_MAX};
}

/* ---- what is known ----------------------------------------------------------------- */

static int find_known(struct lazy_frontier *s)
{
    const struct topt_search_options *o = s->lazy.context.options;
    size_t n = 0, most = (size_t)o->nknown + (size_t)s->lazy.context.ret->n;
    if (TOPT_RESIZE(s->known, most + 1) || TOPT_RESIZE(s->corner, most + 1))
        return topt_nomem(s->lazy.context.err, "the search");
    struct topt_cost *known = s->known;
    for (int i = 0; i < o->nknown; i++)
        known[n++] = o->known[i];
    for (int i = 0; i < s->lazy.context.ret->n; i++)
        known[n++] = (struct topt_cost){s->lazy.context.ret->at[i].memory_bytes,
                                        s->lazy.context.ret->at[i].time_ns};
    s->nknown = (int)topt_reduce(known, n);
    return 0;
}

/* The i-th corner (0..nknown): up to the i-th known point's memory, faster than the one
 * before. */
static struct topt_cost corner_at(const struct lazy_frontier *s, int i)
{
    struct topt_cost c = limits_of(s);
    if (i < s->nknown)
        c.memory = topt_min(c.memory, s->known[i].memory - 1);
    if (i > 0)
        c.time = topt_min(c.time, topt_search_missed(s->known[i - 1].time,
                                                     s->lazy.context.options->epsilon));
    return c;
}

/* The largest excess of a known point over the hull's bound. */
static double find_gap(const struct lazy_frontier *s)
{
    struct topt_cost limit = limits_of(s);
    double gap = s->lazy.context.options->epsilon;
    for (int i = 0; i <= s->nknown; i++) {
        int64_t memory = corner_at(s, i).memory;
        int64_t fastest = topt_dual_bound_fastest(&s->hull, memory);
        if (memory < s->least_memory || fastest > limit.time)
            continue;
        gap = fmax(gap, i ? topt_search_excess(s->known[i - 1].time, fastest) : INFINITY);
    }
    return gap;
}

/* ---- the least memory ------------------------------------------------------------------ */

/* The most entries of tables that are weighed at once; larger ones are weighed by parts
 * (topt_lower_bound.h). */
static int64_t most_entries(const struct lazy_frontier *s)
{
    int64_t most = s->lazy.context.options->max_entries;
    return most ? topt_min(most, WEIGHED_ENTRIES) : WEIGHED_ENTRIES;
}

/* Find a lower bound on memory.  Where operators were decided by heuristic there may be ones of
 * less. */
static int find_least_memory(struct lazy_frontier *s)
{
    struct topt_search_options o = *s->lazy.context.options;
    struct topt_solutions least;
    int64_t limit = o.memory_limit;
    int64_t below = s->nknown ? s->known[0].memory : limit ? limit + 1 : 0;
    if (below && below <= s->least_memory)
        return 0;
    if (below) { /* can anything need less than what is known? */
        struct solve_context r = s->lazy.context;
        struct topt_caps high = topt_capped_most(s->lazy.part);
        r.p = s->lazy.part;
        r.options = &o;
        o.memory_limit = below - 1;
        o.max_entries = most_entries(s);
        int some = below > 1 ? topt_feasible_caps(&r, topt_capped_least(r.p), &high) : 0;
        if (some <= 0) {
            s->least_memory = below;
            return some;
        }
        o = *s->lazy.context.options;
    }
    o.max_work = 0;
    if (topt_solve_least(s->lazy.part, &o, below, &least, s->lazy.context.err))
        return -1;
    if (!least.certificate.decided)
        s->least_memory = least.n ? least.at[0].memory_bytes : below;
    topt_solutions_fini(&least);
    return 0;
}

/* ---- levels ------------------------------------------------------------------------ */

/* Find the levels of configurations that can matter beside the points that are known by now. */
static int find_levels(struct lazy_frontier *s)
{
    struct bound_levels *l = &s->lazy.levels;
    const struct topt_problem *p = l->p;
    if (find_known(s))
        return -1;
    topt_bound_levels_clear(l);
    s->ncorners = 0;
    for (int i = 0; i <= s->nknown; i++) {
        struct topt_cost c = corner_at(s, i);
        if (c.memory >= s->least_memory && c.time >= 0)
            s->corner[s->ncorners++] = c;
    }
    for (int i = 0; i < p->nchoices; i++) {
        int level = topt_bound_level_of(topt_dual_bound_at(&s->hull, i));
        if (topt_dual_bound_reaches(&s->hull, i, s->corner, s->ncorners))
            l->of[i] = (uint16_t)topt_min(level, NEAR);
    }
    topt_bound_levels_share(l);
    return 0;
}

/* The corner of what takes less memory than all that is known has room for whatever does not
 * need much memory, however slow.  Where that is most of what is left, it is asked for by
 * itself. */
static int clear_corner(struct lazy_frontier *s)
{
    const struct bound_levels *l = &s->lazy.levels;
    int64_t least_memory = s->least_memory, with = topt_bound_levels_entries(l, NEAR);
    int in_the_way = !s->nknown;
    if (s->nknown) {
        s->least_memory = s->known[0].memory;
        if (find_levels(s))
            return -1;
        in_the_way = topt_bound_levels_entries(l, NEAR) * SHRINK_TIMES < with;
        s->least_memory = least_memory;
    }
    return (in_the_way && find_least_memory(s)) || find_levels(s) ? -1 : 0;
}

/* The options of a search: the work that is left, and the incumbents. */
static struct topt_search_options options_of(const struct lazy_frontier *s,
                                             double epsilon)
{
    struct topt_search_options o = *s->lazy.context.options;
    o.max_work = topt_solve_work_left(&s->lazy.context);
    o.known = s->known;
    o.nknown = s->nknown;
    o.epsilon = epsilon;
    return o;
}

/* ---- a round ----------------------------------------------------------------------- */

static int nothing_left(struct lazy_frontier *s)
{
    s->gap = s->lazy.context.options->epsilon;
    return 0;
}

static int bound_frontier(struct lazy_pricing *lazy, int *ret_level)
{
    struct lazy_frontier *s = frontier_of(lazy);
    double epsilon = lazy->context.options->epsilon;
    int some;
    *ret_level = NEAR;
    if (find_known(s))
        return -1;
    struct topt_search_options search = options_of(s, epsilon);
    search.max_entries = most_entries(s);
    struct dual_bound_options o = {.search = &search,
                                   .limit = limits_of(s),
                                   .reach = s->reach,
                                   .fine = fmax(epsilon / 4, FINEST_CORNER)};
    topt_dual_bound_fini(&s->hull);
    if (topt_dual_bound_init(&s->hull, lazy->part, &o, &some, lazy->context.err))
        return -1;
    lazy->context.ret->certificate.stats.products += s->hull.work;
    if (!some)
        return nothing_left(s);
    if (find_levels(s))
        return -1;
    if (!s->ncorners)
        return nothing_left(s);
    return 1;
}

static int search_frontier(struct lazy_pricing *lazy, struct topt_problem *exact,
                           int near, struct topt_solutions *ret)
{
    struct lazy_frontier *s = frontier_of(lazy);
    double epsilon = lazy->context.options->epsilon;
    struct topt_search_options o =
        options_of(s, near ? fmax(epsilon, s->rough) : epsilon);
    if (near)
        s->rough /= FINER_TIMES;
    return topt_caps_frontier(exact, &o, ret, lazy->context.err);
}

static enum lazy_step update_frontier(struct lazy_pricing *lazy, int64_t left, int tries,
                                      int *ret_level)
{
    struct lazy_frontier *s = frontier_of(lazy);
    (void)tries;
    if (find_levels(s) || clear_corner(s))
        return LAZY_FAILED;
    s->gap = find_gap(s);
    if (!s->ncorners) {
        nothing_left(s);
        return LAZY_DONE;
    }
    *ret_level = NEAR;
    int64_t now = topt_bound_levels_entries(&lazy->levels, NEAR);
    if (s->nknown && now * SHRINK_TIMES > left && left <= ENOUGH_TIMES * lazy->near)
        return LAZY_FINISH;
    /* How far beyond the hull the corners reach that are left; a little more, as the hull
     * moves. */
    s->reach = 0;
    for (int i = 0; i < s->ncorners; i++)
        s->reach = fmax(s->reach, topt_dual_bound_beyond(&s->hull, s->corner[i]));
    s->reach = fmin(s->reach * 1.01, 1);
    return LAZY_KEEP;
}

/* ---- the answer -------------------------------------------------------------------- */

static int finish_frontier(struct lazy_pricing *lazy, int level,
                           struct topt_certificate *ret)
{
    struct lazy_frontier *s = frontier_of(lazy);
    if (topt_lazy_search(lazy, level, 0, ret) || find_known(s))
        return -1;
    lazy->context.ret->certificate.exact = ret->exact;
    s->gap = isfinite(ret->epsilon) ? fmax(ret->epsilon, lazy->context.options->epsilon)
                                    : find_gap(s);
    return 0;
}

static void claim_frontier(struct lazy_pricing *lazy, int stopped)
{
    const struct lazy_frontier *s = frontier_of(lazy);
    struct topt_certificate *c = &lazy->context.ret->certificate;
    int64_t best = topt_solutions_best(lazy->context.ret);
    lazy->context.ret->stopped = stopped;
    c->exact = c->exact && !stopped && s->gap == 0;
    c->epsilon = s->gap;
    c->bound_ns = best < INT64_MAX && isfinite(s->gap) ? topt_bound_under(best, s->gap)
                  : stopped                            ? 0
                                                       : best;
}

int topt_solve_frontier(struct topt_problem *p, const struct topt_search_options *options,
                        struct topt_solutions *ret, struct topt_error *err)
{
    if (!p->byte_bounds)
        return topt_caps_frontier(p, options, ret, err);
    static const struct lazy_question question = {bound_frontier, search_frontier,
                                                  update_frontier, finish_frontier,
                                                  claim_frontier};
    struct lazy_frontier s = {
        .lazy = {.question = &question,
                 .context = {.p = p, .options = options, .ret = ret},
                 .part = p,
                 .near = p->options.lazy_entries},
        .rough = FIRST_TOLERANCE,
        .reach = FIRST_REACH,
        .gap = INFINITY};
    *ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    int rc = topt_lazy_pricing(&s.lazy, err);
    topt_dual_bound_fini(&s.hull);
    free(s.known);
    free(s.corner);
    return rc;
}
