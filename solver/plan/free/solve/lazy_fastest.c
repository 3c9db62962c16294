/* lazy_fastest.c - the fastest strategy that fits, and that of least memory.  Where all prices are
 * exact cap_search.c finds them; here, prices of moves are lower bounds until they matter.
 *
 * The loop is lazy_pricing.c's.  Bounded are strategies weighed by memory and time at the
 * balance that the limit sets, at which the bound is best (Lagrange's multiplier), for
 * each range of caps (caps_bound.c); problems with exact prices are searched by
 * cap_search.c.
 *
 * A problem with orbits leaves open which of several interchangeable axes an operator
 * takes (price/problem.c).  Of what is left of it in the end it is first asked
 * whether any strategy that it stands for can be as good as is wanted, and only then are
 * all names of axes listed. */
#include "bounds.h"
#include "topt_minmax.h"

struct lazy_fastest {
    struct lazy_pricing lazy;       /* first, so that one is the other */
    struct topt_search_options own; /* of searches: with what is left of the work, */
    struct topt_cost known;         /* the incumbent, whatever memory it needs */
    int64_t bound;                  /* nothing that was left out is faster */
    int open;                       /* nor is that proven within the tolerance */
    int known_before;               /* was there an incumbent when the round began? */
    struct caps_bound caps;         /* of the part */
};

static struct lazy_fastest *fastest_of(struct lazy_pricing *s)
{
    return (struct lazy_fastest *)s;
}

/* ---- limits ------------------------------------------------------------------------ */

/* Slower strategies are of no interest; INT64_MAX: all are. */
static int64_t aim_of(const struct lazy_fastest *s)
{
    const struct topt_search_options *o = s->lazy.context.options;
    int64_t best = topt_solutions_best(s->lazy.context.ret);
    int64_t aim = best < INT64_MAX ? topt_bound_under(best, o->epsilon) : best;
    return o->time_limit ? topt_min(o->time_limit, aim) : aim;
}

static void note_bound(struct lazy_fastest *s, int64_t bound)
{
    s->bound = topt_min(s->bound, bound);
}

/* Set the limits of a search to the time and work that are left. */
static void set_own_options(struct lazy_fastest *s)
{
    const struct topt_search_options *o = s->lazy.context.options;
    s->own = *o;
    s->own.max_work = topt_solve_work_left(&s->lazy.context);
    int64_t best = topt_solutions_best(s->lazy.context.ret);
    if (best == INT64_MAX)
        return;
    if (!o->time_limit || best < o->time_limit)
        s->own.time_limit = best;
    s->known = (struct topt_cost){0, best};
    s->own.known = &s->known;
    s->own.nknown = 1;
}

/* ---- a round ----------------------------------------------------------------------- */

static int bound_fastest(struct lazy_pricing *lazy, int *ret_level)
{
    struct lazy_fastest *s = fastest_of(lazy);
    int64_t aim = aim_of(s);
    int some;
    s->known_before = aim < INT64_MAX;
    s->caps.context = lazy->context;
    s->caps.context.p = lazy->part;
    s->caps.aim = aim;
    if (topt_caps_bound(&s->caps, &lazy->levels, &some, lazy->context.err))
        return -1;
    if (s->known_before)
        note_bound(s, aim + 1);
    *ret_level = TOPT_LEVEL_BEYOND - s->known_before;
    return some;
}

static int search_fastest(struct lazy_pricing *lazy, struct topt_problem *exact, int near,
                          struct topt_solutions *ret)
{
    struct lazy_fastest *s = fastest_of(lazy);
    (void)near;
    set_own_options(s);
    return topt_cap_search_fastest(exact, &s->own, ret, lazy->context.err);
}

static enum lazy_step update_fastest(struct lazy_pricing *lazy, int64_t left, int tries,
                                     int *ret_level)
{
    struct lazy_fastest *s = fastest_of(lazy);
    int64_t aim = aim_of(s);
    (void)left;
    if (aim == INT64_MAX) {
        /* While nothing is known that fits: can anything?  What is in flight is counted as it is
         * with bounds for prices, which is no more than it takes. */
        struct solve_context *r = &s->caps.context;
        struct topt_caps high = topt_capped_most(r->p);
        int some = tries ? 1 : topt_feasible_caps(r, topt_capped_least(r->p), &high);
        return some < 0 ? LAZY_FAILED : some ? LAZY_FURTHER : LAZY_DONE;
    }
    note_bound(s, aim + 1);
    if ((double)aim < s->caps.bound)
        return LAZY_DONE;
    int all_matters = !s->known_before && aim >= s->caps.end;
    *ret_level = all_matters ? TOPT_LEVEL_BEYOND : topt_caps_bound_level(&s->caps, aim);
    return LAZY_KEEP;
}

/* ---- orbits ------------------------------------------------------------------------ */

/* Search orbits.  '*ret_some': may any strategy that they stand for be as good as is wanted?
 * None is faster than the certificate's bound. */
static int search_orbits(struct lazy_fastest *s, struct topt_problem *part, int *ret_some,
                         struct topt_certificate *ret)
{
    struct topt_solutions found = {0};
    int64_t aim = aim_of(s);
    set_own_options(s);
    if (aim < INT64_MAX && s->own.epsilon > 0) {
        /* A proof that nothing is as good as is wanted has a part of the tolerance, beyond which no
         * strategy is of interest. */
        s->own.epsilon /= PROOF_PART;
        s->own.time_limit = (int64_t)((double)aim * (1 + s->own.epsilon)) + 2;
        s->known.time = s->own.time_limit;
    }
    if (topt_cap_search_fastest(part, &s->own, &found, s->lazy.context.err))
        return -1;
    *ret_some = found.n && found.certificate.bound_ns <= aim_of(s);
    topt_solutions_keep(&found, -1);
    return topt_lazy_take(&s->lazy, &found, ret);
}

/* All that orbits stand for.  Where that is too much, what is known of the orbits is all
 * that is claimed. */
static int search_every(struct lazy_fastest *s, const struct topt_problem *part,
                        struct topt_certificate *ret)
{
    struct topt_problem *every;
    struct topt_error why = {0};
    struct topt_solutions found = {0};
    if (topt_problem_of_orbits(part, 1, part->options.lazy_entries, &every, &why)) {
        if (why.code == TOPT_ERR_LIMIT &&
            topt_solutions_best(s->lazy.context.ret) < INT64_MAX)
            return 0;
        *s->lazy.context.err = why;
        return -1;
    }
    set_own_options(s);
    int rc = topt_solve_fastest(every, &s->own, &found, s->lazy.context.err);
    topt_problem_destroy(every);
    if (rc)
        return -1;
    topt_certificate_fini(ret);
    return topt_lazy_take(&s->lazy, &found, ret);
}

/* Search all that is left. */
static int search_left(struct lazy_fastest *s, int level, struct topt_certificate *ret)
{
    struct topt_problem *part;
    int some;
    if (!s->lazy.context.p->options.orbits)
        return topt_lazy_search(&s->lazy, level, 0, ret);
    if (topt_narrowed_problem(s->lazy.part, s->lazy.levels.of, level, &part,
                              s->lazy.context.err))
        return -1;
    int rc = search_orbits(s, part, &some, ret) || (some && search_every(s, part, ret));
    topt_problem_destroy(part);
    return rc ? -1 : 0;
}

/* Nothing of what is left is faster than its certificate says.  The tolerance of orbits was of
 * these, or of a part. */
static int finish_fastest(struct lazy_pricing *lazy, int level,
                          struct topt_certificate *ret)
{
    struct lazy_fastest *s = fastest_of(lazy);
    if (search_left(s, level, ret))
        return -1;
    s->open =
        lazy->context.p->options.orbits || ret->epsilon > lazy->context.options->epsilon;
    note_bound(s, ret->bound_ns);
    return 0;
}

/* ---- the answer -------------------------------------------------------------------- */

static void claim_fastest(struct lazy_pricing *lazy, int stopped)
{
    struct lazy_fastest *s = fastest_of(lazy);
    struct topt_solutions *ret = lazy->context.ret;
    int64_t best = topt_solutions_best(ret);
    if (stopped)
        note_bound(s, (int64_t)s->caps.bound);
    ret->stopped = stopped;
    ret->certificate.bound_ns = topt_min(s->bound, best);
    ret->certificate.exact =
        ret->certificate.bound_ns >= best && !stopped && !ret->certificate.decided;
    ret->certificate.epsilon = topt_solve_epsilon(&lazy->context, s->open);
    topt_solutions_keep(ret, ret->n - 1);
}

/* Large enough that more would take longer to price than it tells, beside a pass over
 * all. */
static int64_t first_near(const struct topt_problem *p)
{
    int64_t all = 0;
    for (int i = 0; i < p->ntables; i++)
        all += topt_table_entries(p, &p->table[i]);
    return topt_max(topt_min(all / NEAR_PART, NEAR_MOST), p->options.lazy_entries);
}

int topt_solve_fastest(struct topt_problem *p, const struct topt_search_options *options,
                       struct topt_solutions *ret, struct topt_error *err)
{
    if (!p->byte_bounds)
        return topt_cap_search_fastest(p, options, ret, err);
    static const struct lazy_question question = {
        bound_fastest, search_fastest, update_fastest, finish_fastest, claim_fastest};
    struct lazy_fastest s = {.lazy = {.question = &question,
                                      .context = {.p = p, .options = options, .ret = ret},
                                      .part = p,
                                      .near = first_near(p)},
                             .bound = INT64_MAX};
    *ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    return topt_lazy_pricing(&s.lazy, err);
}

/* ---- the least memory ------------------------------------------------------------------ */

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

/* Sums of memory don't depend on prices, and with bounds for prices no more bytes are in
 * flight than in truth.  So no strategy needs less than the least with bounds, and the
 * fastest strategy that needs no more has the least memory. */
int topt_solve_least(struct topt_problem *p, const struct topt_search_options *options,
                     int64_t below, struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_search_options o = topt_solve_options_for_least(*options);
    struct topt_solutions least, fastest;
    o.max_work = options->max_work;
    if (topt_cap_search_least(p, &o, below, &least, err))
        return -1;
    if (!least.n || !p->byte_bounds) {
        *ret = least;
        return 0;
    }
    o.memory_limit = least.at[0].memory_bytes;
    int rc = topt_solve_fastest(p, &o, &fastest, err);
    if (!rc && fastest.n) { /* is the least if that is */
        topt_certificate_fini(&fastest.certificate);
        fastest.certificate = least.certificate;
        least.certificate = topt_certificate_exact();
        *ret = fastest;
    } else if (!rc) {
        topt_solutions_fini(&fastest);
        o.memory_limit = 0;
        rc = least_priced(p, &o, below, ret, err);
    }
    topt_solutions_fini(&least);
    return rc;
}
