/* lazy_pricing.c - the fastest strategy that fits, where moves cost floors until their
 * price matters.
 *
 * On many devices nearly all of the time goes into finding ways between layouts, for
 * tables of which hardly an entry can be part of a good strategy.  So every move first
 * costs its floor (layout/byte_bound.c), and what all strategies weigh with these
 * (search/topt_weigher.h; memory and time at the balance that the limit sets, by which
 * the bound is best: Lagrange's multiplier) says what matters:
 *
 *     weigh the problem   ->  bound: nothing that fits is faster
 *     what is near it     ->  a small problem; priced exactly, and searched (cap_search.c)  ->  best so far
 *     what can be as good as the best so far  ->  the next problem, which has only that
 *
 * until that is nothing, or is small enough to be priced and searched as a whole.
 * Nothing is lost: prices only grow when they become exact, so what weighs too much with
 * floors does so in truth. */
#include "lazy_pricing.h"
#include "bound_levels.h"
#include "cap_search.h"
#include "caps_bound.h"
#include "claim.h"
#include "edge_table.h"
#include "feasibility.h"
#include "problem.h"
#include "problem_data.h"
#include "problem_stats.h"
#include "run.h"
#include "solutions.h"
#include "narrowed_problem.h"

#include <math.h>
#include <stdlib.h>

enum {
    NEAR_PART = 512,   /* of all entries, that are in the first small problem */
    NEAR_MOST = 16384, /* ... at most */
    NEARER_TIMES = 4,  /* entries in a small problem, to those in the one before */
    SMALL_TIMES = 4,   /* what is larger by this only is searched as a whole */
    PROOF_PART = 2,    /* of the tolerance, by which orbits are searched */
};

struct lazy_pricing {
    const struct topt_search_options *options;
    struct topt_solutions *ret;
    struct topt_error *err;
    struct topt_problem *whole, *part; /* part: owned where it is not the whole */
    struct topt_search_options own;    /* of searches: with what is left of the work, */
    struct topt_cost known;            /* the incumbent, whatever memory it needs */
    int64_t near;                      /* entries of the next small problem */
    int64_t floor;                     /* nothing that was left out is faster */
    int open;                          /* nor is that proven within the tolerance */
    struct caps_bound survey;          /* of the part */
    struct bound_levels levels;
};

/* ---- limits ------------------------------------------------------------------------ */

/* Slower strategies are of no interest; INT64_MAX: all are. */
static int64_t aim_of(const struct lazy_pricing *s)
{
    int64_t best = topt_solutions_best(s->ret), limit = s->options->time_limit;
    int64_t aim = best < INT64_MAX ? topt_floor_under(best, s->options->epsilon) : best;
    return limit && limit < aim ? limit : aim;
}

/* What a search may still take. */
static void find_options(struct lazy_pricing *s)
{
    const struct topt_search_options *o = s->options;
    struct run r = {.options = o, .ret = s->ret};
    s->own = *o;
    s->own.max_work = topt_run_work_left(&r);
    int64_t best = topt_solutions_best(s->ret);
    if (best == INT64_MAX)
        return;
    if (!o->time_limit || best < o->time_limit)
        s->own.time_limit = best;
    s->known = (struct topt_cost){0, best};
    s->own.known = &s->known;
    s->own.nknown = 1;
}

static int over(const struct lazy_pricing *s)
{
    struct run r = {.options = s->options, .ret = s->ret};
    return topt_run_over(&r);
}

/* ---- parts ------------------------------------------------------------------------- */

/* Take what a search found, which is empty then; its claim is of what it looked at
 * alone. */
static int take(struct lazy_pricing *s, struct topt_solutions *found,
                struct topt_claim *ret)
{
    *ret = found->claim;
    found->claim = topt_claim_exact();
    found->claim.stats = ret->stats;
    s->ret->stopped |= found->stopped;
    found->stopped = 0;
    int rc = topt_solutions_merge(s->ret, found, s->err);
    topt_solutions_fini(found);
    return rc;
}

/* Search what is up to a level. */
static int search_within(struct lazy_pricing *s, int level, struct topt_claim *ret)
{
    struct topt_problem *exact;
    struct topt_solutions found = {0};
    if (topt_bound_levels_exact(&s->levels, level, &exact, s->err))
        return -1;
    find_options(s);
    int rc = topt_cap_search_fastest(exact, &s->own, &found, s->err);
    topt_problem_destroy(exact);
    return rc ? -1 : take(s, &found, ret);
}

/* ---- one round --------------------------------------------------------------------- */

enum step { FAILED = -1, MORE, DONE };

static void leave_out(struct lazy_pricing *s, int64_t floor)
{
    s->floor = floor < s->floor ? floor : s->floor;
}

/* Nothing of what is left is faster than its claim says. */
static void close_with(struct lazy_pricing *s, struct topt_claim *c)
{
    struct topt_claim *all = &s->ret->claim;
    s->open = c->epsilon > s->options->epsilon;
    leave_out(s, c->floor_ns);
    topt_claim_fini(all);
    all->decided = c->decided;
    all->nnodes = c->nnodes;
}

/* What proves that nothing is as good as is wanted: a part of the tolerance, beyond which
 * nothing is of interest. */
static void find_proof_options(struct lazy_pricing *s)
{
    int64_t aim = aim_of(s);
    find_options(s);
    if (aim == INT64_MAX || s->own.epsilon <= 0)
        return;
    s->own.epsilon /= PROOF_PART;
    s->own.time_limit = (int64_t)((double)aim * (1 + s->own.epsilon)) + 2;
    s->known.time = s->own.time_limit;
}

/* Of orbits: '*ret_some': may any strategy that they stand for be as good as is wanted?
 * None is faster than what is claimed here. */
static int search_orbits(struct lazy_pricing *s, struct topt_problem *part, int *ret_some,
                         struct topt_claim *ret)
{
    struct topt_solutions found = {0};
    find_proof_options(s);
    if (topt_cap_search_fastest(part, &s->own, &found, s->err))
        return -1;
    *ret_some = found.n && found.claim.floor_ns <= aim_of(s);
    for (int i = 0; i < found.n; i++)
        topt_strategy_destroy(found.at[i].strategy);
    found.n = 0;
    return take(s, &found, ret);
}

/* All that orbits stand for.  Where that is too much, what is known of the orbits is all
 * that is claimed. */
static int search_every(struct lazy_pricing *s, const struct topt_problem *part,
                        struct topt_claim *ret)
{
    struct topt_problem *every;
    struct topt_error why = {0};
    struct topt_solutions found = {0};
    if (topt_problem_of_orbits(part, 1, part->options.floors, &every, &why)) {
        if (why.code == TOPT_ERR_LIMIT && topt_solutions_best(s->ret) < INT64_MAX)
            return 0;
        *s->err = why;
        return -1;
    }
    find_options(s);
    int rc = topt_lazy_pricing_fastest(every, &s->own, &found, s->err);
    topt_problem_destroy(every);
    if (rc)
        return -1;
    topt_claim_fini(ret);
    return take(s, &found, ret);
}

static enum step finish_orbits(struct lazy_pricing *s, int level)
{
    struct topt_problem *part;
    struct topt_claim c = topt_claim_exact();
    int some;
    if (topt_bound_levels_part(&s->levels, level, &part, s->err))
        return FAILED;
    int rc = search_orbits(s, part, &some, &c) || (some && search_every(s, part, &c));
    topt_problem_destroy(part);
    if (rc) {
        topt_claim_fini(&c);
        return FAILED;
    }
    close_with(s, &c);
    s->open = 1; /* its tolerance was of orbits, or of a part */
    return DONE;
}

/* All that is left is priced and searched. */
static enum step finish(struct lazy_pricing *s, int level)
{
    struct topt_claim c;
    if (s->whole->options.orbits)
        return finish_orbits(s, level);
    if (search_within(s, level, &c))
        return FAILED;
    close_with(s, &c);
    return DONE;
}

/* What is near is searched, so that there is a best. */
static int search_near(struct lazy_pricing *s)
{
    struct topt_claim c;
    int level = topt_bound_levels_with(&s->levels, s->near);
    s->near *= NEARER_TIMES;
    if (search_within(s, level, &c))
        return -1;
    topt_claim_fini(&c);
    return 0;
}

/* Only what can be as good as the best is left. */
static int keep_rest(struct lazy_pricing *s, int level)
{
    struct topt_problem *next;
    if (topt_bound_levels_part(&s->levels, level, &next, s->err))
        return -1;
    if (s->part != s->whole)
        topt_problem_destroy(s->part);
    s->part = next;
    return 0;
}

/* Can anything fit?  1, 0 or -1.  What is in flight is counted as it is with floors,
 * which is no more than it takes. */
static int something_fits(struct lazy_pricing *s)
{
    struct run r = {.p = s->part, .options = s->options, .ret = s->ret, .err = s->err};
    return topt_feasible(&r);
}

/* What is near is searched, more and more of it while nothing fits.  1 where something is
 * known that does, 0 where not, or -1; '*ret_any': may anything fit at all? */
static int look_near(struct lazy_pricing *s, int64_t all, int *ret_any)
{
    *ret_any = 1;
    for (int n = 0; *ret_any && all > SMALL_TIMES * s->near && !over(s); n++) {
        if (search_near(s))
            return -1;
        if (aim_of(s) < INT64_MAX)
            return 1;
        *ret_any = n ? 1 : something_fits(s);
    }
    return *ret_any < 0 ? -1 : 0;
}

/* Look at all that is left, whose levels are known. */
static enum step look(struct lazy_pricing *s, int known)
{
    int last = TOPT_LEVEL_BEYOND - known, any;
    int64_t left = topt_bound_levels_entries(&s->levels, last);
    int found = look_near(s, left, &any);
    if (found < 0)
        return FAILED;
    if (over(s) || !any)
        return any ? MORE : DONE;
    leave_out(s, known || found ? aim_of(s) + 1 : INT64_MAX);
    if (!found)
        return finish(s, last);
    if ((double)aim_of(s) < s->survey.bound)
        return DONE;
    int all_matters = !known && aim_of(s) >= s->survey.end;
    return keep_rest(s, all_matters ? TOPT_LEVEL_BEYOND
                                    : topt_caps_bound_level(&s->survey, aim_of(s)));
}

/* One look at what is left. */
static enum step go(struct lazy_pricing *s)
{
    struct topt_error why = {0};
    int some, known = aim_of(s) < INT64_MAX;
    s->survey.run =
        (struct run){.p = s->part, .options = s->options, .ret = s->ret, .err = s->err};
    s->survey.aim = aim_of(s);
    if (topt_bound_levels_init(&s->levels, s->part, s->err))
        return FAILED;
    if (topt_caps_bound(&s->survey, &s->levels, &some, &why)) {
        if (why.code == TOPT_ERR_LIMIT) /* what can't be weighed is priced as a whole */
            return finish(s, TOPT_LEVEL_BEYOND);
        *s->err = why;
        return FAILED;
    }
    if (some)
        return look(s, known);
    if (known) /* nothing is as good */
        leave_out(s, aim_of(s) + 1);
    return DONE;
}

/* ---- the answer -------------------------------------------------------------------- */

static void keep_best(struct topt_solutions *r)
{
    for (int i = 0; i + 1 < r->n; i++)
        topt_strategy_destroy(r->at[i].strategy);
    if (r->n)
        r->at[0] = r->at[r->n - 1];
    r->n = r->n > 0;
}

static void conclude(struct lazy_pricing *s, int stopped)
{
    struct topt_claim *c = &s->ret->claim;
    int64_t best = topt_solutions_best(s->ret), bound = (int64_t)s->survey.bound;
    if (stopped)
        leave_out(s, bound);
    s->ret->stopped = stopped;
    c->floor_ns = s->floor < best ? s->floor : best;
    c->exact = c->floor_ns >= best && !stopped && !c->decided;
    c->epsilon =
        topt_run_epsilon(&(struct run){.options = s->options, .ret = s->ret}, s->open);
    keep_best(s->ret);
}

/* Large enough that more would take longer to price than it tells, beside weighing
 * all. */
static int64_t first_near(const struct topt_problem *p)
{
    int64_t all = 0;
    for (int i = 0; i < p->ntables; i++)
        all += topt_table_entries(p, &p->table[i]);
    int64_t near = all / NEAR_PART;
    near = near < NEAR_MOST ? near : NEAR_MOST;
    return near > p->options.floors ? near : p->options.floors;
}

int topt_lazy_pricing_fastest(struct topt_problem *p,
                              const struct topt_search_options *options,
                              struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_error why = {0};
    struct lazy_pricing s = {.options = options,
                             .ret = ret,
                             .err = &why,
                             .whole = p,
                             .part = p,
                             .near = first_near(p),
                             .floor = INT64_MAX};
    enum step step = MORE;
    *ret = (struct topt_solutions){.claim = topt_claim_exact()};
    while (step == MORE && !over(&s)) {
        step = go(&s);
        topt_bound_levels_fini(&s.levels);
    }
    struct run r = {.options = options, .ret = ret};
    if (step == FAILED && topt_run_stopped(&r, &why))
        step = MORE;
    if (step != FAILED)
        conclude(&s, step == MORE || ret->stopped);
    topt_caps_bound_fini(&s.survey);
    if (s.part != p)
        topt_problem_destroy(s.part);
    if (step != FAILED)
        return 0;
    topt_solutions_fini(ret);
    if (err)
        *err = why;
    return -1;
}

/* The least where everything is priced. */
static int least_priced(struct topt_problem *p, const struct topt_search_options *options,
                        int64_t below, struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_problem *exact;
    struct bound_levels all;
    if (topt_bound_levels_init(&all, p, err))
        return -1;
    int rc = topt_bound_levels_exact(&all, TOPT_LEVEL_BEYOND, &exact, err);
    topt_bound_levels_fini(&all);
    if (rc)
        return -1;
    rc = topt_cap_search_least(exact, options, below, ret, err);
    topt_problem_destroy(exact);
    return rc;
}

/* What adds up is no question of prices, and with floors no more is in flight than in
 * truth.  So nothing needs less than the least with floors, and what is the fastest that
 * needs no more is the least. */
int topt_lazy_pricing_least(struct topt_problem *p,
                            const struct topt_search_options *options, int64_t below,
                            struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_search_options o = *options;
    struct topt_solutions least, fastest;
    if (topt_cap_search_least(p, options, below, &least, err))
        return -1;
    if (!least.n) {
        *ret = least;
        return 0;
    }
    o.memory_limit = least.at[0].memory_bytes;
    int rc = topt_lazy_pricing_fastest(p, &o, &fastest, err);
    if (!rc && fastest.n) { /* is the least if that is */
        topt_claim_fini(&fastest.claim);
        fastest.claim = least.claim;
        least.claim = topt_claim_exact();
        *ret = fastest;
    } else if (!rc) {
        topt_solutions_fini(&fastest);
        rc = least_priced(p, options, below, ret, err);
    }
    topt_solutions_fini(&least);
    return rc;
}
