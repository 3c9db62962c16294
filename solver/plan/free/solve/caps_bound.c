/* caps_bound.c - what can be as fast as is wanted, by scalarised passes under caps.
 *
 *     memory(S) = sum(S) + T(S) + W * U(S) <= limit
 *
 * Weighed by memory and time together, with the balance that the room for what adds up
 * sets, all strategies say how fast what fits can be (Lagrange's multiplier):
 *
 *      time |  small
 *           |   o            bound: where the line meets the room.  So much less room, or so much
 *           |     `.         more in flight, and it is by the line's slope higher.
 *     bound |- - - -`+.
 *           |        |  ` o fast
 *           +--------+------- memory
 *                  room
 *
 * A range of caps is the strategies that have in flight what lies between its low and its
 * high caps: under the high ones they are weighed, and the low ones leave the room.  How
 * much more in flight the bound can bear lowers the high caps, under which the bound is
 * higher, and bears less; then halves of the range, each with its own room, are looked at
 * by themselves.  What matters to none of them does not matter.  This is what
 * cap_search.c does by searches, at the price of scalarised passes. */
#include "bounds.h"
#include "topt_minmax.h"

#include <math.h>

/* More than what numbers lose when they are divided and added: of a sum, and of a
 * level. */
static const double LOST = 1e-14, SLACK = 1e-9;

struct range {
    struct topt_caps low, high;
    struct topt_cost fast, small; /* as of the survey */
};

struct scope {
    struct caps_bound *s;
    struct bound_levels *levels;
    struct topt_error *err;
    struct topt_lower_bound *weigher; /* of the range that is looked at */
    struct range at;
    int64_t room; /* for what adds up, of the memory; INT64_MAX: no limit */
    double bound; /* nothing in the range that fits is faster */
    double slope; /* so much slower it is for a byte of room less */
    int seen;     /* ranges */
    int some;     /* of these can be as fast as is wanted */
    double least; /* bound of these */
};

/* ---- the balance ------------------------------------------------------------------- */

/* The largest costs that weights have to be exact for: the smaller they are, the more
 * exactly the balance is kept.  No strategy of interest takes twice the time of the one with
 * the least memory. */
static struct topt_cost corner_of(const struct scope *c)
{
    int64_t most = (int64_t)1 << 50, time = c->s->aim, small = c->at.small.time;
    if (time == INT64_MAX && small > 0 && small < most)
        time = 2 * small;
    return (struct topt_cost){topt_min(c->room, most), topt_min(time, most)};
}

static int weigh(struct scope *c, struct topt_scalarization by, struct topt_cost *ret,
                 int *ret_some)
{
    struct topt_cost corner = corner_of(c);
    *ret_some = 0;
    return topt_lower_bound_scalarize(c->weigher, by, corner, c->err) ||
                   topt_lower_bound_lightest(c->weigher, ret_some, ret, c->err)
               ? -1
               : 0;
}

/* Raise the bound of strategies that need the room or less by the last pass, with its own
 * weights, whose ratio is only about the one that was asked for. */
static void raise_bound(struct scope *c)
{
    struct topt_weights by = topt_lower_bound_weights(c->weigher);
    double slope = (double)by.memory / (double)by.time;
    double room = by.memory ? (double)c->room * slope : 0;
    double weight = (double)by.least / (double)by.time;
    double bound = weight - room - (weight + fabs(room)) * LOST;
    if (bound <= c->bound)
        return;
    c->bound = bound;
    c->slope = slope;
}

/* Does the room end between the ends? */
static int is_between(const struct scope *c)
{
    const struct range *r = &c->at;
    return r->small.memory <= c->room && r->fast.memory > c->room &&
           r->small.time > r->fast.time;
}

/* The fastest, and where that does not fit, that of least memory; time counts in the last
 * weighted sum.  '*ret_some': can anything fit at all? */
static int find_ends(struct scope *c, int *ret_some)
{
    struct range *r = &c->at;
    r->fast = r->small = (struct topt_cost){0, 0};
    if (weigh(c, (struct topt_scalarization){0, 1}, &r->fast, ret_some))
        return -1;
    if (*ret_some)
        raise_bound(c);
    if (!*ret_some || r->fast.time > c->s->aim || r->fast.memory <= c->room)
        return 0;
    if (weigh(c, (struct topt_scalarization){1, 0}, &r->small, ret_some))
        return -1;
    *ret_some = *ret_some && r->small.memory <= c->room;
    if (!*ret_some || is_between(c))
        return 0;
    return weigh(c, (struct topt_scalarization){0, 1}, &r->fast, ret_some);
}

/* Weigh by the line through the ends, below which there is nothing, and put the lightest
 * in the place of one of them.  1 where that is worth another time, 0, or -1. */
static int move_end(struct scope *c)
{
    struct topt_cost fast = c->at.fast, small = c->at.small, middle;
    struct topt_scalarization by = {small.time - fast.time, fast.memory - small.memory};
    /* How much better a bound is worth another pass. */
    double enough = fmax(c->s->context.options->epsilon / 8, 1.0 / 8192);
    int some;
    if (weigh(c, by, &middle, &some))
        return -1;
    if (!some)
        return 0;
    topt_wide gain =
        topt_weight(by.memory, by.time, small) - topt_weight(by.memory, by.time, middle);
    raise_bound(c);
    if (gain <= 0 || (double)gain / (double)by.time < c->bound * enough ||
        c->bound > (double)c->s->aim)
        return 0;
    *(middle.memory <= c->room ? &c->at.small : &c->at.fast) = middle;
    return 1;
}

/* The balance by which the bound is best.  Where it is known of something like this, the
 * search begins there, and mostly ends.  '*ret_some': can anything fit at all? */
static int find_balance(struct scope *c, int *ret_some)
{
    int more = 1;
    *ret_some = 1;
    if (!is_between(c) && find_ends(c, ret_some))
        return -1;
    for (int i = 0; *ret_some && is_between(c) && more > 0 && i < BALANCE_PASSES; i++)
        more = move_end(c);
    return more < 0 ? -1 : 0;
}

/* ---- one range --------------------------------------------------------------------- */

/* Bound what is in the range.  '*ret_some': can anything be as fast as is wanted? */
static int bound_range(struct scope *c, int *ret_some)
{
    struct solve_context *r = &c->s->context;
    int64_t limit = r->options->memory_limit;
    *ret_some = 0;
    c->room = limit ? limit - topt_capped_bytes(r->p, c->at.low) : INT64_MAX;
    c->bound = c->slope = 0;
    if (c->room < 0)
        return 0;
    const struct topt_search_problem *under = topt_capped_problem(r->p, c->at.high);
    if (topt_lower_bound_create(under, r->options, &c->weigher, c->err) ||
        find_balance(c, ret_some))
        return -1;
    *ret_some = *ret_some && c->bound <= (double)c->s->aim;
    return 0;
}

static void unweigh(struct scope *c)
{
    if (c->weigher)
        c->s->context.ret->certificate.stats.products +=
            topt_lower_bound_work(c->weigher);
    topt_lower_bound_destroy(c->weigher);
    c->weigher = NULL;
}

/* ---- all ranges -------------------------------------------------------------------- */

/* Set the scale of levels: it begins at the first range's bound and ends at the time that is
 * aimed at. */
static void find_scale(struct scope *c)
{
    struct caps_bound *s = c->s;
    double guess = c->bound * (1 + 1.0 / GUESS_PART);
    s->begin = (int64_t)fmin(c->bound, 0x1p62);
    s->end = s->aim < INT64_MAX ? s->aim : (int64_t)fmin(guess, 0x1p62);
    s->fast = c->at.fast;
    s->small = c->at.small;
}

/* Find the levels of the range's configurations; their scale is that of all ranges. */
static int find_near(struct scope *c)
{
    struct caps_bound *s = c->s;
    int some;
    struct topt_cost begin = {c->room < INT64_MAX ? c->room : 0, s->begin};
    struct topt_cost end = {begin.memory, s->end};
    if (topt_lower_bound_within(c->weigher, end, &some, c->err))
        return -1;
    if (!some)
        return 0;
    c->some = 1;
    c->least = fmin(c->least, c->bound);
    topt_bound_levels_find(c->levels, c->weigher, begin, end);
    return 0;
}

/* The range with high caps that leave no more in flight than what is as fast as is wanted can
 * have. */
static struct range trimmed(const struct scope *c)
{
    double bytes = c->slope > 0 ? ((double)c->s->aim - c->bound) / c->slope : INFINITY;
    struct range r = c->at;
    r.high = topt_caps_within(c->s->context.p, r.low, r.high,
                              bytes < 0x1p62 ? (int64_t)bytes + 1 : INT64_MAX);
    return r;
}

/* Bytes that one cap, or the other, leaves open. */
static struct topt_caps width_of(const struct scope *c, const struct range *r)
{
    return (struct topt_caps){r->high.transient - r->low.transient,
                              c->s->context.p->spans.crossing *
                                  (r->high.crossing - r->low.crossing)};
}

/* Halves of a range, 'below' and 'above' a cap in the middle of the wider side. */
static void halve(const struct scope *c, const struct range *r, struct range *below,
                  struct range *above)
{
    const struct topt_problem *p = c->s->context.p;
    struct topt_caps width = width_of(c, r);
    *below = *above = *r;
    if (width.transient >= width.crossing) {
        int64_t cut = r->low.transient + width.transient / 2;
        below->high.transient = topt_nearest_transient(p, TOPT_BELOW, cut + 1);
        above->low.transient = topt_nearest_transient(p, TOPT_ABOVE, cut);
    } else {
        int64_t cut = r->low.crossing + (r->high.crossing - r->low.crossing) / 2;
        below->high.crossing = topt_nearest_crossing(p, TOPT_BELOW, cut + 1);
        above->low.crossing = topt_nearest_crossing(p, TOPT_ABOVE, cut);
    }
}

/* Is more to be looked at than the range as a whole?  Not at first ('before' is 0), when
 * prices of what is near raise the bound by more; only where its bound, which was 'before', is so
 * much higher that more of that is worth a look, and narrower caps tell something that matters. */
static int parts_pay(const struct scope *c, const struct range *r, double before)
{
    struct topt_caps width = width_of(c, r);
    double aim = (double)c->s->aim,
           wider = (double)topt_max(width.transient, width.crossing);
    return before > 0 && c->s->aim < INT64_MAX && c->seen < RANGES &&
           (c->bound - before) * PAID_PART > aim - before &&
           wider * c->slope * WIDE_PART > aim - c->bound;
}

static int survey_range(struct scope *c, struct range r, double before);

/* Look at what is left of a range: at once where that is hardly half, else by its parts.
 * High caps that come down need not raise the bound for low ones to do so: whether it
 * paid is said of both together. */
static int survey_parts(struct scope *c, const struct range *r, const struct range *left,
                        double before)
{
    struct topt_caps all = width_of(c, r), some = width_of(c, left);
    struct range below, above;
    double bound = c->bound;
    if (2 * (some.transient + some.crossing) <= all.transient + all.crossing)
        return survey_range(c, *left, before);
    halve(c, left, &below, &above);
    return survey_range(c, below, bound) || survey_range(c, above, bound) ? -1 : 0;
}

/* Look at a range, of which nothing is faster than 'before': as a whole, or at narrower
 * ones. */
static int survey_range(struct scope *c, struct range r, double before)
{
    int some;
    if (c->seen && topt_solve_is_over(&c->s->context))
        return topt_fail(c->err, TOPT_ERR_CANCELED, "the search was stopped");
    c->at = r;
    if (bound_range(c, &some))
        return -1;
    if (!c->seen++)
        find_scale(c);
    if (!some) {
        unweigh(c);
        return 0;
    }
    struct range left = trimmed(c);
    int more = parts_pay(c, &r, before);
    int rc = more ? 0 : find_near(c);
    unweigh(c);
    return more ? survey_parts(c, &r, &left, before) : rc;
}

int topt_caps_bound(struct caps_bound *s, struct bound_levels *levels, int *ret_some,
                    struct topt_error *err)
{
    const struct topt_problem *p = s->context.p;
    struct scope c = {.s = s, .levels = levels, .err = err, .least = INFINITY};
    struct range all = {topt_capped_least(p), topt_capped_most(p), s->fast, s->small};
    /* Prices that are what they will be raise no bound: caps have to. */
    int settled = p->options.orbits && s->aim < INT64_MAX;
    *ret_some = 0;
    if (survey_range(&c, all, settled ? 1 : s->bound)) {
        unweigh(&c);
        return -1;
    }
    *ret_some = c.some;
    if (c.some)
        s->bound = fmax(s->bound, c.least);
    topt_bound_levels_share(levels);
    return 0;
}

int topt_caps_bound_level(const struct caps_bound *s, int64_t aim)
{
    double whole = (double)s->end - (double)s->begin;
    double part = whole > 0 ? ((double)aim - (double)s->begin) / whole + SLACK : 1;
    return topt_bound_level_of(fmin(part, 1));
}
