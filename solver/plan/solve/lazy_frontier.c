/* lazy_frontier.c - a whole frontier, where moves cost floors until their price matters.
 *
 * What lazy_pricing.c does for one strategy, for all of a frontier at once:
 *
 *     weigh the problem at all slopes (dual_bound.c)  ->  nothing is below the hull
 *     what is near it  ->  a small problem; priced exactly, and searched (caps_frontier.c)  ->  points that exist
 *     what can be in a corner between these     ->  the next problem, which has only that
 *
 *     time |   o--+
 *          |   .  |  +: a strategy that no point stands for is in one of these corners (with a
 *          |    . o-----+           tolerance they are lower); one that is above them by
 *          |      .     |           some weighing is not wanted, and a configuration of which
 *          |        .   o---        that is so of all strategies is left out
 *          |   hull   ..  o
 *          +------------------ memory
 *
 * until hardly anything more goes, and what is left is priced and searched as a whole.
 * Nothing is lost, since prices only grow when they become exact.  Only the lightest
 * strategy has a corner that no point bounds: whether something is lighter is asked by
 * itself (feasibility.c, cap_search.c). */
#include "lazy_frontier.h"
#include "bound_levels.h"
#include "caps_frontier.h"
#include "claim.h"
#include "dual_bound.h"
#include "feasibility.h"
#include "lazy_pricing.h"
#include "problem.h"
#include "problem_data.h"
#include "problem_stats.h"
#include "run.h"
#include "solutions.h"

#include <math.h>
#include <stdlib.h>

enum {
    NEARER_TIMES = 4, /* entries in a small problem, to those in the one before */
    SMALL_TIMES = 4,  /* what is larger by this only is searched as a whole */
    SHRINK_TIMES =
        2, /* so much smaller has a problem to become to be looked at once more */
    FINER_TIMES = 16,  /* a small problem's tolerance, to that of the one before */
    ENOUGH_TIMES = 64, /* ... unless what was searched is less than such a part of it */
    NEAR = TOPT_LEVEL_BEYOND - 1,
    WEIGHED_ENTRIES = 1 << 20, /* a weighing of these takes some hundredths of a second */
};
/* Of the first small problem; where the hull's corners are by so much nearer they are of
 * no use. */
static const double ROUGH = 1.0 / 1024, FINEST = 1.0 / 8192;
/* What is looked at first: all that is slower, or heavier, than the hull by that part. */
static const double FIRST_REACH = 1.0 / 64;

struct lazy_frontier {
    const struct topt_search_options *options;
    struct topt_solutions *ret;
    struct topt_error *err;
    struct topt_problem *whole, *part; /* part: owned where it is not the whole */
    struct topt_cost *known;  /* the caller's, and what was found, as a frontier */
    struct topt_cost *corner; /* of what is still wanted */
    int nknown, ncorners;
    int64_t lightest;             /* nothing needs less */
    struct topt_strategy *lights; /* may need just that; NULL: none to be looked at */
    int64_t near;
    double rough, reach;
    double gap; /* by so much, at most, are strategies faster than what is known */
    struct dual_bound hull;
    struct bound_levels levels;
};

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the search");
}

static int over(const struct lazy_frontier *s)
{
    struct run r = {.options = s->options, .ret = s->ret};
    return s->ret->stopped || topt_run_over(&r);
}

static struct topt_cost limits_of(const struct lazy_frontier *s)
{
    const struct topt_search_options *o = s->options;
    return (struct topt_cost){o->memory_limit ? o->memory_limit : INT64_MAX,
                              o->time_limit ? o->time_limit : INT64_MAX};
}

/* ---- what is known ----------------------------------------------------------------- */

static int find_known(struct lazy_frontier *s)
{
    const struct topt_search_options *o = s->options;
    size_t n = 0, most = (size_t)o->nknown + (size_t)s->ret->n;
    struct topt_cost *known = realloc(s->known, (most + 1) * sizeof *known);
    if (known)
        s->known = known;
    struct topt_cost *corner = realloc(s->corner, (most + 1) * sizeof *corner);
    if (corner)
        s->corner = corner;
    if (!known || !corner)
        return no_memory(s->err);
    for (int i = 0; i < o->nknown; i++)
        known[n++] = o->known[i];
    for (int i = 0; i < s->ret->n; i++)
        known[n++] =
            (struct topt_cost){s->ret->at[i].memory_bytes, s->ret->at[i].time_ns};
    s->nknown = (int)topt_reduce(known, n);
    return 0;
}

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The i-th corner (0..nknown): up to the i-th known point's memory, faster than the one
 * before. */
static struct topt_cost corner_at(const struct lazy_frontier *s, int i)
{
    struct topt_cost c = limits_of(s);
    if (i < s->nknown)
        c.memory = min(c.memory, s->known[i].memory - 1);
    if (i > 0)
        c.time =
            min(c.time, topt_search_missed(s->known[i - 1].time, s->options->epsilon));
    return c;
}

static void find_corners(struct lazy_frontier *s)
{
    s->ncorners = 0;
    for (int i = 0; i <= s->nknown; i++) {
        struct topt_cost c = corner_at(s, i);
        if (c.memory >= s->lightest && c.time >= 0)
            s->corner[s->ncorners++] = c;
    }
}

/* What the hull says of how far known points may be from the truth. */
static double find_gap(const struct lazy_frontier *s)
{
    struct topt_cost limit = limits_of(s);
    double gap = s->options->epsilon;
    for (int i = 0; i <= s->nknown; i++) {
        int64_t memory = corner_at(s, i).memory;
        int64_t fastest = topt_dual_bound_fastest(&s->hull, memory);
        if (memory < s->lightest || fastest > limit.time)
            continue;
        gap = fmax(gap, i ? topt_search_excess(s->known[i - 1].time, fastest) : INFINITY);
    }
    return gap;
}

/* ---- the lightest ------------------------------------------------------------------ */

/* Of tables that are weighed: what takes larger ones is weighed by parts
 * (topt_weigher.h). */
static int64_t most_entries(const struct lazy_frontier *s)
{
    int64_t most = s->options->max_entries;
    return most && most < WEIGHED_ENTRIES ? most : WEIGHED_ENTRIES;
}

/* Can anything need less than what is known?  1, 0 or -1. */
static int may_be_lighter(struct lazy_frontier *s, int64_t below)
{
    struct topt_search_options o = *s->options;
    struct run r = {.p = s->part, .options = &o, .ret = s->ret, .err = s->err};
    o.memory_limit = below - 1;
    o.max_entries = most_entries(s);
    return below > 1 ? topt_feasible(&r) : 0;
}

/* The lightest below that, if any.  Where operators were decided by heuristic there may
 * be lighter ones. */
static int look_for_lighter(struct lazy_frontier *s, int64_t below)
{
    struct topt_solutions least;
    struct topt_search_options o = topt_run_options_for_least(*s->options);
    if (topt_lazy_pricing_least(s->part, &o, below, &least, s->err))
        return -1;
    if (!least.claim.decided)
        s->lightest = least.n ? least.at[0].memory_bytes : below;
    if (least.n) {
        topt_strategy_destroy(s->lights);
        s->lights = least.at[0].strategy;
        least.at[0].strategy = NULL;
    }
    topt_solutions_fini(&least);
    return 0;
}

/* What nothing needs less than, and a strategy that may need just that. */
static int find_lightest(struct lazy_frontier *s)
{
    int64_t limit = s->options->memory_limit;
    int64_t below = s->nknown ? s->known[0].memory : limit ? limit + 1 : 0;
    if (below && below <= s->lightest)
        return 0;
    int some = below ? may_be_lighter(s, below) : 1;
    if (some > 0)
        return look_for_lighter(s, below);
    s->lightest = below;
    return some;
}

/* ---- what is near, and what can matter --------------------------------------------- */

static int find_levels(struct lazy_frontier *s)
{
    const struct topt_problem *p = s->part;
    topt_bound_levels_fini(&s->levels);
    if (topt_bound_levels_init(&s->levels, s->part, s->err))
        return -1;
    find_corners(s);
    for (int f = 0; f < p->nfamilies; f++)
        for (int c = 0; c < p->family[f].n; c++) {
            int level = topt_bound_level_of(topt_dual_bound_at(&s->hull, f, c));
            if (topt_dual_bound_reaches(&s->hull, f, c, s->corner, s->ncorners))
                s->levels.of[f][c] = (uint16_t)(level < NEAR ? level : NEAR);
        }
    topt_bound_levels_share(&s->levels);
    return 0;
}

/* The corner of what is lighter than all that is known has room for whatever does not
 * need much memory, however slow.  Where that is most of what is left, it is asked for by
 * itself. */
static int clear_corner(struct lazy_frontier *s)
{
    int64_t lightest = s->lightest, with = topt_bound_levels_entries(&s->levels, NEAR);
    int in_the_way = !s->nknown;
    if (s->nknown) {
        s->lightest = s->known[0].memory;
        if (find_levels(s))
            return -1;
        in_the_way = topt_bound_levels_entries(&s->levels, NEAR) * SHRINK_TIMES < with;
        s->lightest = lightest;
    }
    return (in_the_way && find_lightest(s)) || find_levels(s) ? -1 : 0;
}

/* What a search may still take, and what it need not find. */
static struct topt_search_options options_of(const struct lazy_frontier *s,
                                             double epsilon)
{
    struct topt_search_options o = *s->options;
    struct run r = {.options = s->options, .ret = s->ret};
    o.max_work = topt_run_work_left(&r);
    o.known = s->known;
    o.nknown = s->nknown;
    o.epsilon = epsilon;
    return o;
}

/* Search what is up to a level; its claim is of that alone. */
static int search_within(struct lazy_frontier *s, int level, double epsilon,
                         struct topt_claim *ret)
{
    struct topt_problem *exact;
    struct topt_solutions found;
    struct topt_search_options o = options_of(s, epsilon);
    if (topt_bound_levels_exact(&s->levels, level, &exact, s->err))
        return -1;
    int rc = topt_caps_frontier(exact, &o, &found, s->err);
    topt_problem_destroy(exact);
    if (rc)
        return -1;
    *ret = found.claim;
    found.claim = topt_claim_exact();
    found.claim.stats = ret->stats;
    rc = topt_solutions_merge(s->ret, &found, s->err) || find_known(s);
    topt_solutions_fini(&found);
    if (rc)
        topt_claim_fini(ret);
    return rc ? -1 : 0;
}

/* What is near is searched, so that there are points. */
static int search_near(struct lazy_frontier *s)
{
    struct topt_claim c;
    if (s->lights)
        topt_bound_levels_include(&s->levels, s->lights);
    topt_bound_levels_share(&s->levels);
    if (search_within(s, topt_bound_levels_with(&s->levels, s->near),
                      fmax(s->options->epsilon, s->rough), &c))
        return -1;
    topt_claim_fini(&c);
    s->near *= NEARER_TIMES;
    s->rough /= FINER_TIMES;
    return 0;
}

/* ---- one round --------------------------------------------------------------------- */

enum step { FAILED = -1, MORE, DONE };

static enum step nothing_left(struct lazy_frontier *s)
{
    s->gap = s->options->epsilon;
    return DONE;
}

/* All that is left is priced and searched. */
static enum step finish(struct lazy_frontier *s, int level)
{
    struct topt_claim c, *all = &s->ret->claim;
    if (search_within(s, level, s->options->epsilon, &c))
        return FAILED;
    topt_claim_fini(all);
    all->decided = c.decided;
    all->nnodes = c.nnodes;
    all->exact = c.exact;
    s->gap = isfinite(c.epsilon) ? fmax(c.epsilon, s->options->epsilon) : find_gap(s);
    return DONE;
}

/* Only what can matter is left, and from how far that can be. */
static int keep_rest(struct lazy_frontier *s)
{
    struct topt_problem *next;
    double reach = 0;
    for (int i = 0; i < s->ncorners; i++)
        reach = fmax(reach, topt_dual_bound_beyond(&s->hull, s->corner[i]));
    s->reach = fmin(reach * 1.01, 1); /* a little more, as the hull moves */
    if (topt_bound_levels_part(&s->levels, NEAR, &next, s->err))
        return -1;
    topt_dual_bound_fini(&s->hull); /* it borrows from the part */
    topt_bound_levels_fini(&s->levels);
    if (s->part != s->whole)
        topt_problem_destroy(s->part);
    s->part = next;
    return 0;
}

static enum step go_on(struct lazy_frontier *s)
{
    if (find_levels(s))
        return FAILED;
    if (!s->ncorners)
        return nothing_left(s);
    int64_t before = topt_bound_levels_entries(&s->levels, NEAR);
    if (before <= SMALL_TIMES * s->near)
        return finish(s, NEAR);
    if (search_near(s) || find_levels(s) || clear_corner(s))
        return FAILED;
    s->gap = find_gap(s);
    if (over(s))
        return MORE;
    if (!s->ncorners)
        return nothing_left(s);
    int64_t left = topt_bound_levels_entries(&s->levels, NEAR);
    if (s->nknown && left * SHRINK_TIMES > before && before <= ENOUGH_TIMES * s->near)
        return finish(s, NEAR);
    return keep_rest(s) ? FAILED : MORE;
}

/* What can't be weighed is priced as a whole. */
static enum step give_up(struct lazy_frontier *s)
{
    if (topt_bound_levels_init(&s->levels, s->part, s->err))
        return FAILED;
    enum step step = finish(s, TOPT_LEVEL_BEYOND);
    topt_bound_levels_fini(&s->levels);
    return step;
}

static enum step weigh_and_go_on(struct lazy_frontier *s)
{
    struct topt_error why = {0};
    struct topt_search_options search = options_of(s, s->options->epsilon);
    search.max_entries = most_entries(s);
    struct dual_bound_options o = {.search = &search,
                                   .limit = limits_of(s),
                                   .reach = s->reach,
                                   .fine = fmax(s->options->epsilon / 4, FINEST)};
    int some;
    if (topt_dual_bound_init(&s->hull, s->part, &o, &some, &why)) {
        if (why.code == TOPT_ERR_LIMIT)
            return give_up(s);
        *s->err = why;
        return FAILED;
    }
    s->ret->claim.stats.products += s->hull.work;
    return some ? go_on(s) : nothing_left(s);
}

static enum step go(struct lazy_frontier *s)
{
    enum step step = weigh_and_go_on(s);
    topt_dual_bound_fini(&s->hull);
    topt_bound_levels_fini(&s->levels);
    return step;
}

/* ---- the answer -------------------------------------------------------------------- */

static void conclude(struct lazy_frontier *s, enum step step)
{
    struct topt_claim *c = &s->ret->claim;
    int64_t best = topt_solutions_best(s->ret);
    s->ret->stopped |= step == MORE;
    c->exact = c->exact && !s->ret->stopped && s->gap == 0;
    c->epsilon = s->gap;
    c->floor_ns = best < INT64_MAX && isfinite(s->gap) ? topt_floor_under(best, s->gap)
                  : s->ret->stopped                    ? 0
                                                       : best;
}

int topt_lazy_frontier(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_error why = {0};
    struct lazy_frontier s = {.options = options,
                              .ret = ret,
                              .err = &why,
                              .whole = p,
                              .part = p,
                              .rough = ROUGH,
                              .reach = FIRST_REACH,
                              .near = p->options.floors,
                              .gap = INFINITY};
    *ret = (struct topt_solutions){.claim = topt_claim_exact()};
    enum step step = find_known(&s) ? FAILED : MORE;
    while (step == MORE && !over(&s))
        step = go(&s);
    struct run r = {.options = options, .ret = ret};
    if (step == FAILED && topt_run_stopped(&r, &why))
        step = MORE;
    if (step != FAILED)
        conclude(&s, step);
    free(s.known);
    free(s.corner);
    topt_strategy_destroy(s.lights);
    if (s.part != p)
        topt_problem_destroy(s.part);
    if (step != FAILED)
        return 0;
    topt_solutions_fini(ret);
    if (err)
        *err = why;
    return -1;
}
