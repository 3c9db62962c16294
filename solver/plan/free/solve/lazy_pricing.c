/* lazy_pricing.c - fixing by bounds, where prices of moves are lower bounds until they
 * matter.
 *
 * On many devices nearly all of the time goes into finding ways between layouts, for
 * tables of which hardly an entry can be part of a good strategy.  So every move first
 * costs a lower bound of its price (layout/byte_bound.c), and what all strategies weigh
 * with these says what matters:
 *
 *     bound the problem     ->  levels: how good a strategy with each configuration can be
 *     price what is nearest ->  a small problem with exact prices; searched: incumbents
 *     fix                   ->  configurations that the incumbents exclude are left out
 *     repeat                    with what is left
 *
 * until nothing is left, or so little that it is priced and searched as a whole.  Nothing
 * is lost: prices only grow when they become exact, so what weighs too much with bounds
 * does so in truth. */
#include "bounds.h"

static int is_over(const struct lazy_pricing *s)
{
    return s->context.ret->stopped || topt_solve_is_over(&s->context);
}

int topt_lazy_take(struct lazy_pricing *s, struct topt_solutions *found,
                   struct topt_certificate *ret)
{
    *ret = found->certificate;
    found->certificate = topt_certificate_exact();
    found->certificate.stats = ret->stats;
    int rc = topt_solutions_merge(s->context.ret, found, s->context.err);
    topt_solutions_fini(found);
    if (rc)
        topt_certificate_fini(ret);
    return rc;
}

int topt_lazy_search(struct lazy_pricing *s, int level, int near,
                     struct topt_certificate *ret)
{
    struct topt_problem *exact;
    struct topt_solutions found = {0};
    if (topt_bound_levels_exact(&s->levels, level, &exact, s->context.err))
        return -1;
    int rc = s->question->search(s, exact, near, &found);
    topt_problem_destroy(exact);
    return rc ? -1 : topt_lazy_take(s, &found, ret);
}

static enum lazy_step finish(struct lazy_pricing *s, int level)
{
    struct topt_certificate c = topt_certificate_exact(),
                            *all = &s->context.ret->certificate;
    if (s->question->finish(s, level, &c)) {
        topt_certificate_fini(&c);
        return LAZY_FAILED;
    }
    topt_certificate_fini(all);
    all->decided = c.decided;
    all->nnodes = c.nnodes;
    return LAZY_DONE;
}

/* Search what is near among what matters, more and more of it while nothing is known, and
 * fix what that excludes. */
static enum lazy_step search_and_fix(struct lazy_pricing *s, int level)
{
    int64_t left = topt_bound_levels_entries(&s->levels, level);
    enum lazy_step step = LAZY_FURTHER;
    struct topt_certificate c;
    struct topt_problem *next;
    for (int tries = 0; step == LAZY_FURTHER; tries++) {
        if (left <= SMALL_TIMES * s->near)
            return finish(s, level);
        if (topt_lazy_search(s, topt_bound_levels_with(&s->levels, s->near), 1, &c))
            return LAZY_FAILED;
        topt_certificate_fini(&c);
        s->near *= NEARER_TIMES;
        step = s->question->update(s, left, tries, &level);
        if (is_over(s))
            return step;
    }
    if (step != LAZY_KEEP)
        return step == LAZY_FINISH ? finish(s, level) : step;
    if (topt_narrowed_problem(s->part, s->levels.of, level, &next, s->context.err))
        return LAZY_FAILED;
    if (s->part != s->context.p)
        topt_problem_destroy(s->part);
    s->part = next;
    return LAZY_KEEP;
}

/* Price as a whole the part that can't be weighed, if it is small enough. */
static enum lazy_step finish_unbounded(struct lazy_pricing *s)
{
    if (topt_bound_levels_entries(&s->levels, TOPT_LEVEL_BEYOND) > WHOLE_ENTRIES) {
        (void)topt_wrap(
            s->context.err,
            "so many choices can't be bounded, use --space uniform or fewer --factors");
        return LAZY_FAILED;
    }
    *s->context.err = (struct topt_error){0};
    return finish(s, TOPT_LEVEL_BEYOND);
}

static enum lazy_step do_round(struct lazy_pricing *s)
{
    int level;
    if (topt_bound_levels_init(&s->levels, s->part, s->context.err))
        return LAZY_FAILED;
    int some = s->question->bound(s, &level);
    if (some < 0 && s->context.err->code == TOPT_ERR_LIMIT)
        return finish_unbounded(s);
    return some < 0 ? LAZY_FAILED : some ? search_and_fix(s, level) : LAZY_DONE;
}

int topt_lazy_pricing(struct lazy_pricing *s, struct topt_error *err)
{
    struct topt_error why = {0};
    enum lazy_step step = LAZY_KEEP;
    s->context.err = &why;
    while (step != LAZY_DONE && step != LAZY_FAILED && !is_over(s)) {
        step = do_round(s);
        topt_bound_levels_fini(&s->levels);
    }
    int failed = step == LAZY_FAILED && !topt_solve_was_stopped(&s->context, &why);
    if (!failed)
        s->question->certificate(s, step != LAZY_DONE || s->context.ret->stopped);
    if (s->part != s->context.p)
        topt_problem_destroy(s->part);
    if (!failed)
        return 0;
    topt_solutions_fini(s->context.ret);
    if (err)
        *err = why;
    return -1;
}
