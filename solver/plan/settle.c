/* settle.c - the fastest strategy that fits, where moves cost floors until their price matters.
 *
 * On many devices nearly all of the time goes into finding ways between layouts, for tables of which
 * hardly an entry can be part of a good strategy.  So every move first costs its floor (layout/floor.c), and what
 * all strategies weigh with these (search/topt_weigher.h; memory and time at the balance that the limit
 * sets, by which the bound is best: Lagrange's multiplier) says what matters:
 *
 *     weigh the problem   ->  bound: nothing that fits is faster
 *     what is near it     ->  a small problem; priced exactly, and searched (boxes.c)  ->  best so far
 *     what can be as good as the best so far  ->  the next problem, which has only that
 *
 * until that is nothing, or is small enough to be priced and searched as a whole.  Nothing is lost: prices
 * only grow when they become exact, so what weighs too much with floors does so in truth. */
#include "levels.h"
#include "run.h"

#include <math.h>
#include <stdlib.h>

enum {
    NEAR_PART = 512,  /* of all entries, that are in the first small problem */
    NEARER_TIMES = 4, /* entries in a small problem, to those in the one before */
    SMALL_TIMES = 4,  /* what is larger by this only is searched as a whole */
    WEIGHINGS = 24,   /* at most, for one balance */
    GUESS = 4,        /* where nothing is known that fits: a part slower than the bound */
};

struct settle {
    const struct topt_search_options *options;
    struct topt_solutions *ret;
    struct topt_error *err;
    struct topt_problem *whole, *part; /* part: owned where it is not the whole */
    struct topt_search_options own;    /* of searches: with what is left of the work, */
    struct topt_cost known;            /* and what is had, whatever it needs */
    int64_t room;  /* for what adds up, of the memory; INT64_MAX: no limit */
    int64_t near;  /* entries of the next small problem */
    int64_t floor; /* nothing that was left out is faster */
    int open;      /* nor is that proven within the tolerance */
    /* of the part, weighed */
    struct topt_weigher *weigher;
    double bound;
    /* The balance is between these, of which one fits and one does not; at first those of the part before, whose
     * prices were a little lower.  Both 0: not known. */
    struct topt_cost fast, light;
    struct levels levels;
};

/* ---- limits ---------------------------------------------------------------------------------- */

/* Slower strategies are of no interest; INT64_MAX: all are. */
static int64_t aim_of(const struct settle *s)
{
    int64_t best = topt_solutions_best(s->ret), limit = s->options->time_limit;
    int64_t aim = best < INT64_MAX ? topt_floor_under(best, s->options->epsilon) : best;
    return limit && limit < aim ? limit : aim;
}

static void find_room(struct settle *s)
{
    struct topt_caps least = topt_problem_least_caps(s->part);
    int64_t low = least.transient + topt_problem_crossing(s->part) * least.crossing;
    s->room = s->options->memory_limit ? s->options->memory_limit - low : INT64_MAX;
}

/* What a search may still take. */
static void find_options(struct settle *s)
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

static int over(const struct settle *s)
{
    struct run r = {.options = s->options, .ret = s->ret};
    return topt_run_over(&r);
}

/* ---- weighing -------------------------------------------------------------------------------- */

static int weigh(struct settle *s, struct topt_weighing by, struct topt_cost *ret,
                 int *ret_some)
{
    int64_t aim = aim_of(s), most = (int64_t)1 << 50;
    struct topt_cost corner = {s->room < most ? s->room : most, aim < most ? aim : most};
    *ret_some = 0;
    return topt_weigher_weigh(s->weigher, by, corner, s->err) ||
                   topt_weigher_lightest(s->weigher, ret_some, ret, s->err)
               ? -1
               : 0;
}

/* How much better a bound is worth another weighing. */
static double near_enough(const struct settle *s)
{
    return fmax(s->options->epsilon / 8, 1.0 / 8192);
}

/* The fastest, and where that does not fit, the lightest.  '*ret_some': can anything fit at all? */
static int find_ends(struct settle *s, int *ret_some)
{
    s->fast = s->light = (struct topt_cost){0, 0};
    if (weigh(s, (struct topt_weighing){0, 1}, &s->fast, ret_some))
        return -1;
    s->bound = fmax(s->bound, (double)s->fast.time);
    if (!*ret_some || s->fast.time > aim_of(s) || s->fast.memory <= s->room)
        return 0;
    if (weigh(s, (struct topt_weighing){1, 0}, &s->light, ret_some))
        return -1;
    *ret_some = *ret_some && s->light.memory <= s->room;
    return 0;
}

/* Does the room end between the ends? */
static int is_between(const struct settle *s)
{
    return s->light.memory <= s->room && s->fast.memory > s->room &&
           s->light.time > s->fast.time;
}

/* Weigh by the line through the ends, below which there is nothing, and put the lightest in the place of
 * one of them.  1 where that is worth another time, 0, or -1. */
static int move_end(struct settle *s)
{
    __extension__ typedef __int128 wide;
    struct topt_cost fast = s->fast, light = s->light, middle;
    struct topt_weighing by = {light.time - fast.time, fast.memory - light.memory};
    int some;
    if (weigh(s, by, &middle, &some))
        return -1;
    if (!some)
        return 0;
    wide gain = (wide)by.memory * (light.memory - middle.memory) +
                (wide)by.time * (light.time - middle.time);
    double line = (double)by.memory / (double)by.time;
    s->bound =
        fmax(s->bound, (double)middle.time + (double)(middle.memory - s->room) * line);
    if (gain <= 0 || (double)gain / (double)by.time < s->bound * near_enough(s) ||
        s->bound > (double)aim_of(s))
        return 0;
    *(middle.memory <= s->room ? &s->light : &s->fast) = middle;
    return 1;
}

/* The balance by which the bound is best.  That of a part is hardly another than that of the whole, so where the
 * one was found the search for the other begins, and mostly ends.  '*ret_some': can anything fit at all? */
static int find_balance(struct settle *s, int *ret_some)
{
    int more = 1;
    *ret_some = 1;
    if (!is_between(s) && find_ends(s, ret_some))
        return -1;
    for (int i = 0; *ret_some && is_between(s) && more > 0 && i < WEIGHINGS; i++)
        more = move_end(s);
    return more < 0 ? -1 : 0;
}

static void unweigh(struct settle *s)
{
    s->ret->claim.stats.products += s->weigher ? topt_weigher_work(s->weigher) : 0;
    topt_weigher_destroy(s->weigher);
    s->weigher = NULL;
    topt_levels_fini(&s->levels);
}

/* ---- parts ------------------------------------------------------------------------------------- */

/* Search what is up to a level; its claim is of that alone. */
static int search_within(struct settle *s, const struct levels *levels, int level,
                         struct topt_claim *ret)
{
    struct topt_problem *exact;
    struct topt_solutions found = {0};
    if (topt_levels_exact(levels, level, &exact, s->err))
        return -1;
    find_options(s);
    int rc = topt_boxes_fastest(exact, &s->own, &found, s->err);
    topt_problem_destroy(exact);
    if (rc)
        return -1;
    *ret = found.claim;
    found.claim = topt_claim_exact();
    found.claim.stats = ret->stats;
    s->ret->stopped |= found.stopped;
    found.stopped = 0;
    rc = topt_solutions_merge(s->ret, &found, s->err);
    topt_solutions_fini(&found);
    return rc;
}

/* ---- one round --------------------------------------------------------------------------------- */

enum step { FAILED = -1, MORE, DONE };

static void leave_out(struct settle *s, int64_t floor)
{
    s->floor = floor < s->floor ? floor : s->floor;
}

/* All that is left is priced and searched. */
static enum step finish(struct settle *s, int level)
{
    struct topt_claim c, *all = &s->ret->claim;
    if (search_within(s, &s->levels, level, &c))
        return FAILED;
    s->open = c.epsilon > s->options->epsilon;
    leave_out(s, c.floor_ns);
    topt_claim_fini(all);
    all->decided = c.decided;
    all->nnodes = c.nnodes;
    return DONE;
}

/* What can't be weighed exactly is priced as a whole. */
static enum step give_up(struct settle *s)
{
    return topt_levels_init(&s->levels, s->part, s->err) ? FAILED
                                                         : finish(s, TOPT_LEVEL_BEYOND);
}

/* The corner of what matters: as good as the best so far, or a guess where there is none. */
static struct topt_cost corner_of(const struct settle *s)
{
    int64_t aim = aim_of(s);
    double guess = s->bound * (1 + 1.0 / GUESS);
    if (aim == INT64_MAX)
        aim = guess < 0x1p62 ? (int64_t)guess : (int64_t)1 << 62;
    return (struct topt_cost){s->room < INT64_MAX ? s->room : 0, aim};
}

/* What is near is searched, so that there is a best. */
static int search_some(struct settle *s, const struct levels *levels)
{
    struct topt_claim c;
    int level = topt_levels_with(levels, s->near);
    s->near *= NEARER_TIMES;
    if (search_within(s, levels, level, &c))
        return -1;
    topt_claim_fini(&c);
    return 0;
}

/* What is near of all; where nothing of that fits ('again'), what is near of each family. */
static int search_near(struct settle *s, int again)
{
    struct levels ranks;
    if (!again)
        return search_some(s, &s->levels);
    if (topt_levels_rank(&s->levels, &ranks, s->err))
        return -1;
    int rc = search_some(s, &ranks);
    topt_levels_fini(&ranks);
    return rc;
}

/* Only what can be as good as the best is left. */
static int keep_rest(struct settle *s, int level)
{
    struct topt_problem *next;
    if (topt_levels_part(&s->levels, level, &next, s->err))
        return -1;
    unweigh(s); /* it borrows from the part */
    if (s->part != s->whole)
        topt_problem_destroy(s->part);
    s->part = next;
    return 0;
}

/* Can anything fit?  1, 0 or -1.  What is in flight is counted as it is with floors, which is no more than it
 * takes. */
static int something_fits(struct settle *s)
{
    struct run r = {.p = s->part, .options = s->options, .ret = s->ret, .err = s->err};
    return topt_run_may_fit(&r);
}

/* What is near is searched, more and more of it while nothing fits.  1 where something is known that does, 0
 * where not, or -1; '*ret_any': may anything fit at all? */
static int look_near(struct settle *s, int64_t all, int *ret_any)
{
    *ret_any = 1;
    for (int n = 0; *ret_any && all > SMALL_TIMES * s->near && !over(s); n++) {
        if (search_near(s, n > 0))
            return -1;
        if (aim_of(s) < INT64_MAX)
            return 1;
        *ret_any = n ? 1 : something_fits(s);
    }
    return *ret_any < 0 ? -1 : 0;
}

/* Look at all that is left, whose levels are known. */
static enum step look(struct settle *s, int known)
{
    int last = TOPT_LEVEL_BEYOND - known, any;
    int found = look_near(s, topt_levels_entries(&s->levels, last), &any);
    if (found < 0)
        return FAILED;
    if (over(s) || !any)
        return any ? MORE : DONE;
    leave_out(s, known || found ? aim_of(s) + 1 : INT64_MAX);
    if (!found)
        return finish(s, last);
    double at = topt_weigher_at(s->weigher, corner_of(s));
    return at < 0 ? DONE
                  : keep_rest(s, known || at < 1 ? topt_level_of(fmin(at, 1))
                                                 : TOPT_LEVEL_BEYOND);
}

static enum step go_on(struct settle *s)
{
    int some, known = aim_of(s) < INT64_MAX;
    if (topt_weigher_within(s->weigher, corner_of(s), &some, s->err))
        return FAILED;
    if (!some && known) { /* nothing is as good */
        leave_out(s, aim_of(s) + 1);
        return DONE;
    }
    if (topt_levels_init(&s->levels, s->part, s->err))
        return FAILED;
    topt_levels_find(&s->levels, s->weigher);
    return look(s, known);
}

static enum step go(struct settle *s)
{
    struct topt_error why = {0};
    int some;
    find_room(s);
    find_options(s);
    const struct topt_search_problem *p = topt_problem_under(s->part, -1, -1);
    if (topt_weigher_create(p, &s->own, &s->weigher, &why)) {
        if (why.code == TOPT_ERR_LIMIT)
            return give_up(s);
        *s->err = why;
        return FAILED;
    }
    if (find_balance(s, &some))
        return FAILED;
    return some ? go_on(s) : DONE;
}

/* ---- the answer -------------------------------------------------------------------------------- */

static void keep_best(struct topt_solutions *r)
{
    for (int i = 0; i + 1 < r->n; i++)
        topt_strategy_destroy(r->at[i].strategy);
    if (r->n)
        r->at[0] = r->at[r->n - 1];
    r->n = r->n > 0;
}

static void conclude(struct settle *s, int stopped)
{
    struct topt_claim *c = &s->ret->claim;
    int64_t best = topt_solutions_best(s->ret), bound = (int64_t)s->bound;
    if (stopped)
        leave_out(s, bound);
    s->ret->stopped = stopped;
    c->floor_ns = s->floor < best ? s->floor : best;
    c->exact = c->floor_ns >= best && !stopped && !c->decided;
    c->epsilon =
        topt_run_epsilon(&(struct run){.options = s->options, .ret = s->ret}, s->open);
    keep_best(s->ret);
}

/* Large enough that more would take longer to price than it tells, beside weighing all. */
static int64_t first_near(const struct topt_problem *p)
{
    int64_t all = 0;
    for (int i = 0; i < p->ntables; i++)
        all += topt_table_entries(p, &p->table[i]);
    return all / NEAR_PART > p->options.floors ? all / NEAR_PART : p->options.floors;
}

int topt_settle_fastest(struct topt_problem *p, const struct topt_search_options *options,
                        struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_error why = {0};
    struct settle s = {.options = options,
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
        unweigh(&s);
    }
    struct run r = {.options = options, .ret = ret};
    if (step == FAILED && topt_run_stopped(&r, &why))
        step = MORE;
    if (step != FAILED)
        conclude(&s, step == MORE || ret->stopped);
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
    struct levels all;
    if (topt_levels_init(&all, p, err))
        return -1;
    int rc = topt_levels_exact(&all, TOPT_LEVEL_BEYOND, &exact, err);
    topt_levels_fini(&all);
    if (rc)
        return -1;
    rc = topt_boxes_least(exact, options, below, ret, err);
    topt_problem_destroy(exact);
    return rc;
}

/* What adds up is no question of prices, and with floors no more is in flight than in truth.  So nothing needs
 * less than the least with floors, and what is the fastest that needs no more is the least. */
int topt_settle_least(struct topt_problem *p, const struct topt_search_options *options,
                      int64_t below, struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_search_options o = *options;
    struct topt_solutions least, fastest;
    if (topt_boxes_least(p, options, below, &least, err))
        return -1;
    if (!least.n) {
        *ret = least;
        return 0;
    }
    o.memory_limit = least.at[0].memory_bytes;
    int rc = topt_settle_fastest(p, &o, &fastest, err);
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
