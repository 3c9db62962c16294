/* cap_search.c - the fastest strategy that fits, and that of least memory: branch and bound over
 * caps.
 *
 *     memory(S) = sum(S) + T(S) + W * U(S)
 *
 * A box is the strategies that need between its low and its high caps.  One search
 * answers for a whole box: under its high caps, charged with its low ones only.  What
 * that finds, nothing in the box is better than.  If it fits with what it really needs,
 * it is the best of the box.  If not, its need parts the box:
 *
 *     high  +-----------+          T' is its need: below T' it is not, and from T' on
 *           | from T'   |          it is charged with T' at least, or it is the crossing
 *       T'  +-----------+          caps' turn
 *           | below T'  |
 *      low  +-----------+
 *
 * Boxes wait by what bounds them, so that the first of which nothing can be better than
 * what was found ends it.  Since most boxes but the first are only looked at to be parted
 * or left, they are searched roughly, and more exactly only where that does not decide;
 * at once as exactly as is asked for where there was nothing to find, which takes
 * little. */
#include "exact.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>

struct box {
    struct topt_caps low, high;
    /* Nothing in it has less of what is asked for than 'bound', nor with just that a
     * total memory below 'memory'. */
    int64_t bound, memory;
    int64_t number; /* they are made in this order */
    int level;      /* how exactly it is searched next */
};

/* Tolerances of rough searches, by level; then comes the one that is asked for.  Tuned by
 * own-8-free (solve_tuning.h). */
static const double rough[] = {1.0 / 64, 1.0 / 512};
enum { LEVELS = sizeof rough / sizeof *rough };

struct cap_search {
    struct solve_context context;
    int least;     /* memory is asked for: memory is time and time is memory */
    int64_t below; /* least: solutions that need as much are of no use; 0: any is */
    struct box *box;
    int n, cap;
    int64_t made;
    int64_t bound; /* nothing in the boxes that were left has less of what is asked for */
    struct topt_cost known; /* the incumbent, whatever memory it needs */
    /* a box was left whose best does not fit for its excess: what is a little slower
     * may */
    int open;
};

/* ---- boxes that wait --------------------------------------------------------------- */

static int before(const struct box *a, const struct box *b)
{
    if (a->bound != b->bound)
        return a->bound < b->bound;
    if (a->memory != b->memory)
        return a->memory < b->memory;
    return a->number < b->number;
}

static int push(struct cap_search *b, struct box x)
{
    if (TOPT_ROOM(b->box, b->n, b->cap, 16))
        return topt_nomem(b->context.err, "the search");
    x.number = b->made++;
    b->box[b->n++] = x;
    return 0;
}

/* The one that comes next.  They are few, as each takes a search. */
static struct box *next_box(const struct cap_search *b)
{
    struct box *first = b->box;
    for (int i = 1; i < b->n; i++)
        if (before(&b->box[i], first))
            first = &b->box[i];
    return first;
}

/* ---- bounds ------------------------------------------------------------------------ */

static int64_t charge(const struct cap_search *b, struct topt_caps c)
{
    return topt_capped_bytes(b->context.p, c);
}

static const struct topt_solution *best_of(const struct cap_search *b)
{
    const struct topt_solutions *s = b->context.ret;
    return s->n ? &s->at[b->least ? 0 : s->n - 1] : NULL;
}

/* With a tolerance: the time of the incumbent, be it the caller's; INT64_MAX: nothing. */
static int64_t incumbent_time(const struct cap_search *b)
{
    const struct topt_search_options *o = b->context.options;
    int64_t best = topt_solutions_best(b->context.ret);
    int64_t known = o->nknown ? o->known[o->nknown - 1].time : INT64_MAX;
    return o->epsilon <= 0 ? INT64_MAX : topt_min(known, best);
}

/* Can nothing in a box be better than what was found? */
static int excluded(const struct cap_search *b, const struct box *x)
{
    const struct topt_solution *best = best_of(b);
    double epsilon = b->context.options->epsilon;
    int64_t incumbent = b->least ? INT64_MAX : incumbent_time(b);
    if (b->least)
        return best ? x->bound >= best->memory_bytes : b->below && x->bound >= b->below;
    if (incumbent < INT64_MAX)
        return topt_search_excess(incumbent, x->bound) <= epsilon;
    if (!best)
        return 0;
    return x->bound > best->time_ns ||
           (x->bound == best->time_ns && x->memory >= best->memory_bytes);
}

/* A box, or what is left of it, is looked at no more. */
static void note_bound(struct cap_search *b, int64_t bound)
{
    b->bound = topt_min(b->bound, bound);
}

static double tolerance(const struct cap_search *b, const struct box *x)
{
    return x->level < LEVELS ? rough[x->level] : b->context.options->epsilon;
}

/* The next level whose tolerance is less. */
static int next_level(const struct cap_search *b, int level)
{
    level++;
    while (level < LEVELS && rough[level] <= b->context.options->epsilon)
        level++;
    return level;
}

/* The limits of a box's search; 0 where nothing can be within them. */
static int limits_of(struct cap_search *b, const struct box *x,
                     struct topt_search_options *ret)
{
    const struct topt_solution *best = best_of(b);
    int64_t low = charge(b, x->low);
    *ret = *b->context.options;
    ret->fastest = 1;
    ret->epsilon = tolerance(b, x);
    if (b->least) {
        int64_t most = best ? best->memory_bytes : b->below;
        ret->time_limit = most ? most - 1 - low : 0;
        return !most || ret->time_limit > 0;
    }
    if (best)
        ret->time_limit = best->time_ns;
    b->known = (struct topt_cost){0, incumbent_time(b)};
    ret->known = &b->known;
    ret->nknown = b->known.time < INT64_MAX;
    if (ret->memory_limit)
        ret->memory_limit -= low;
    return !b->context.options->memory_limit || ret->memory_limit > 0;
}

/* ---- one box ----------------------------------------------------------------------- */

/* The best of a box, apart from its bytes in flight and its excess. */
struct optimum {
    struct topt_cost cost; /* as the search sees it */
    struct topt_need need;
    int fits;
    int64_t bound;
};

static int read_optimum(struct cap_search *b, const struct topt_search_point *point,
                        struct optimum *ret)
{
    const struct topt_search_options *o = b->context.options;
    ret->cost = point->cost;
    if (topt_capped_need(b->context.p, point, &ret->need, b->context.err))
        return -1;
    int64_t memory = charge(b, ret->need.caps) + ret->need.excess +
                     (b->least ? point->cost.time : point->cost.memory);
    if (b->least) {
        const struct topt_solution *best = best_of(b);
        ret->fits = best ? memory < best->memory_bytes : !b->below || memory < b->below;
    } else {
        ret->fits = !o->memory_limit || memory <= o->memory_limit;
    }
    if (!ret->fits)
        return 0;
    struct topt_search_point kept = *point;
    if (b->least)
        kept.cost = (struct topt_cost){point->cost.time, point->cost.memory};
    return topt_solve_keep(&b->context, &kept, memory - ret->need.surplus) ||
           topt_solutions_reduce(b->context.ret, b->context.err);
}

/* The bound that a search without a result proves: with a tolerance, that nothing is faster
 * than its limit by more than the tolerance. */
static int64_t bound_of_none(const struct cap_search *b, const struct box *x,
                             const struct topt_frontier *f, int64_t time_limit)
{
    double epsilon = tolerance(b, x);
    if (!isfinite(f->epsilon))
        return x->bound;
    return epsilon > 0 && time_limit ? topt_bound_under(time_limit, epsilon) : INT64_MAX;
}

/* The least memory is found and proven, or not at all. */
static int out_of_work(struct cap_search *b)
{
    return topt_fail(b->context.err, TOPT_ERR_CANCELED,
                     "the search for the least memory is out of work");
}

/* 1 and the best of a box within limits, 0 where it has nothing, -1. */
static int search_under_high(struct cap_search *b, const struct box *x,
                             const struct topt_search_options *o, struct optimum *ret)
{
    struct topt_frontier *f = NULL;
    struct topt_frontier_reader *reader = NULL;
    if (topt_solve_search(&b->context, topt_capped_problem(b->context.p, x->high), o, &f))
        return -1;
    if (b->least && b->context.options->max_work && f->epsilon > 0) {
        topt_frontier_destroy(f);
        return out_of_work(b);
    }
    int rc = f->npoints > 0;
    ret->bound = rc ? topt_bound_of(f) : bound_of_none(b, x, f, o->time_limit);
    if (rc && (!(reader = topt_frontier_reader(f, b->context.err)) ||
               read_optimum(b, topt_frontier_read(reader, f->npoints - 1), ret) ||
               topt_solve_note_caps(&b->context, ret->need.caps)))
        rc = -1;
    topt_frontier_reader_destroy(reader);
    topt_frontier_destroy(f);
    return rc;
}

/* The best of a box fits but for its excess: then what is a little lighter may fit, too.
 * That says nothing of what is in the box, but may be the answer. */
static int search_below(struct cap_search *b, const struct box *x,
                        const struct topt_search_options *options, struct optimum best)
{
    struct topt_search_options o = *options;
    int some = 1;
    for (int i = 0; some > 0 && i < EXCESS_SEARCHES && !best.fits && best.need.excess > 0;
         i++) {
        o.memory_limit = options->memory_limit - best.need.excess;
        if (o.memory_limit <= 0 || best.cost.memory + charge(b, best.need.caps) >
                                       b->context.options->memory_limit)
            break;
        some = search_under_high(b, x, &o, &best);
    }
    return some < 0 ? -1 : 0;
}

/* 1 and the best of a box, 0 where it has nothing, -1. */
static int search_box(struct cap_search *b, const struct box *x, struct optimum *ret)
{
    struct topt_search_options o;
    ret->bound = INT64_MAX;
    if (!limits_of(b, x, &o))
        return 0;
    int some = search_under_high(b, x, &o, ret);
    return some > 0 && !b->least && search_below(b, x, &o, *ret) ? -1 : some;
}

/* Let a box wait, unless nothing in it can be better than what was found. */
static int keep_box(struct cap_search *b, struct box x)
{
    if (!excluded(b, &x))
        return push(b, x);
    note_bound(b, x.bound);
    return 0;
}

static int push_part(struct cap_search *b, struct box part, const struct optimum *best)
{
    int64_t low = charge(b, part.low);
    if (part.high.transient < part.low.transient ||
        part.high.crossing < part.low.crossing)
        return 0;
    if (b->least) {
        part.bound = best->cost.time + low;
    } else {
        part.bound = topt_max(part.bound, best->bound);
        part.memory = tolerance(b, &part) > 0 ? 0 : best->cost.memory + low;
    }
    return keep_box(b, part);
}

/* Push a box again, to be searched more exactly; after a search as exact as asked for
 * nothing is left of it. */
static int search_again(struct cap_search *b, struct box x, int level)
{
    if (x.level == LEVELS) {
        note_bound(b, x.bound);
        return 0;
    }
    x.level = level;
    return keep_box(b, x);
}

/* Part a box by what its best needs beyond what the box is charged with. */
static int part_box(struct cap_search *b, const struct box *x, const struct optimum *best)
{
    struct topt_caps over = {best->need.caps.transient - x->low.transient,
                             best->need.caps.crossing - x->low.crossing};
    struct box above = *x, below = *x;
    if ((best->fits && x->level < LEVELS) ||
        (over.transient <= 0 && over.crossing <= 0)) {
        int64_t bound = b->least ? best->cost.time + charge(b, x->low) : best->bound;
        struct box again = *x;
        again.bound = topt_max(again.bound, bound);
        b->open |= !b->least && !best->fits && x->level == LEVELS && !excluded(b, &again);
        return search_again(b, again, next_level(b, x->level));
    }
    /* The first search was to be the only one; scalarised passes for the least are
     * exact. */
    if (!x->number && !best->fits && !b->least)
        above.level = below.level = next_level(b, -1);
    if (over.transient >= over.crossing * b->context.p->spans.crossing) {
        above.low.transient = best->need.caps.transient;
        below.high.transient =
            topt_nearest_transient(b->context.p, TOPT_BELOW, best->need.caps.transient);
    } else {
        above.low.crossing = best->need.caps.crossing;
        below.high.crossing =
            topt_nearest_crossing(b->context.p, TOPT_BELOW, best->need.caps.crossing);
    }
    return push_part(b, above, best) || push_part(b, below, best) ? -1 : 0;
}

/* ---- all of them ------------------------------------------------------------------- */

static int search_all(struct cap_search *b)
{
    while (b->n && !excluded(b, next_box(b))) {
        struct optimum best;
        if (b->context.searched && topt_solve_is_over(&b->context)) {
            if (b->least)
                return out_of_work(b);
            b->context.stopped = 1;
            break;
        }
        struct box *next = next_box(b), x = *next;
        *next = b->box[--b->n];
        int some = search_box(b, &x, &best);
        if (some == 0)
            x.bound = topt_max(x.bound, best.bound);
        if (some < 0 || (some ? part_box(b, &x, &best) : search_again(b, x, LEVELS))) {
            note_bound(b, x.bound);
            return -1;
        }
    }
    return 0;
}

static int search_boxes(struct cap_search *b)
{
    struct box all = {.low = topt_capped_least(b->context.p),
                      .high = topt_capped_most(b->context.p),
                      .level = LEVELS};
    *b->context.ret = (struct topt_solutions){.certificate = topt_certificate_exact()};
    if (all.high.transient < 0 || all.high.crossing < 0)
        return 0;
    int some = b->least ? 1 : topt_feasible_caps(&b->context, all.low, &all.high);
    if (some <= 0)
        return some;
    return push(b, all) || search_all(b) ? -1 : 0;
}

/* Nothing was found, but operators were decided by heuristic, perhaps so that nothing
 * fits, or what was found had an excess.  That of least memory may fit. */
static int try_least_memory(struct cap_search *b)
{
    struct topt_solutions least, *ret = b->context.ret;
    int64_t limit = b->context.options->memory_limit,
            time = b->context.options->time_limit;
    struct topt_search_options o = *b->context.options;
    o.stop = NULL; /* it is short, and its answer one */
    o = topt_solve_options_for_least(o);
    if (topt_cap_search_least(b->context.p, &o, limit < INT64_MAX ? limit + 1 : 0, &least,
                              b->context.err))
        return -1;
    int slow = least.n && time && least.at[0].time_ns > time;
    int some = least.n > 0 || least.certificate.bound_bytes <= limit;
    int rc = slow ? 0 : topt_solutions_merge(ret, &least, b->context.err);
    topt_solutions_fini(&least);
    if (!rc && some && ret->certificate.decided)
        note_bound(b, 0);
    return rc;
}

/* Claim the result of all searches together: rough ones count through the bounds of boxes
 * alone. */
static void claim_boxes(struct cap_search *b)
{
    struct topt_certificate *c = &b->context.ret->certificate;
    int64_t best = topt_solutions_best(b->context.ret);
    if (b->n)
        note_bound(b, next_box(b)->bound);
    c->bound_ns = topt_min(b->bound, best);
    if (c->bound_ns < best) { /* a look at every table: only where it can tell more */
        int64_t bound = topt_problem_lower_bound(b->context.p).time;
        if (bound > c->bound_ns && bound <= best)
            c->bound_ns = bound;
    }
    c->exact = c->bound_ns >= best && !b->context.stopped && !c->decided;
    b->context.ret->stopped =
        b->context.stopped || (!c->exact && topt_solve_is_over(&b->context));
    c->epsilon = topt_solve_epsilon(&b->context, b->open);
}

int topt_cap_search_fastest(struct topt_problem *p,
                            const struct topt_search_options *options,
                            struct topt_solutions *ret, struct topt_error *err)
{
    struct topt_error why = {0};
    struct cap_search b = {
        .context = {.p = p, .options = options, .ret = ret, .err = &why, .proves = 1},
        .bound = INT64_MAX};
    int rc = search_boxes(&b);
    /* A search that was stopped answers with what it has found. */
    if (rc && topt_solve_was_stopped(&b.context, &why)) {
        if (!b.context.searched)
            note_bound(&b, 0);
        b.context.stopped = 1;
        rc = 0;
    }
    int doubt = ret->certificate.decided || (b.open && incumbent_time(&b) == INT64_MAX);
    if (!rc && !b.context.stopped && !best_of(&b) && doubt)
        rc = try_least_memory(&b);
    if (!rc) {
        claim_boxes(&b);
        topt_solutions_keep(ret, ret->n - 1);
    } else {
        topt_solutions_fini(ret);
        if (err)
            *err = why;
    }
    free(b.box);
    return rc;
}

/* Reduce a certificate to the claim that a strategy has the least memory, or to none where
 * operators were decided by heuristic. */
static void claim_least(struct topt_certificate *c)
{
    struct topt_certificate least = topt_certificate_exact();
    least.bound_bytes = c->bound_bytes;
    if (c->decided) {
        least.exact = 0;
        least.epsilon = INFINITY;
        least.decided = c->decided;
        least.nnodes = c->nnodes;
    }
    *c = least;
}

int topt_cap_search_least(struct topt_problem *p,
                          const struct topt_search_options *options, int64_t below,
                          struct topt_solutions *ret, struct topt_error *err)
{
    struct cap_search b = {
        .context = {.p = p, .options = options, .ret = ret, .err = err, .proves = 1},
        .least = 1,
        .below = below,
        .bound = INT64_MAX};
    topt_capped_swap_objectives(p, 1);
    int rc = search_boxes(&b);
    topt_capped_swap_objectives(p, 0);
    if (!rc) {
        const struct topt_solution *best = best_of(&b);
        int64_t wanted = best ? best->memory_bytes : below ? below : INT64_MAX;
        topt_solutions_keep(ret, 0);
        claim_least(&ret->certificate);
        if (b.bound < wanted)
            ret->certificate.bound_bytes = b.bound;
    } else {
        topt_solutions_fini(ret);
    }
    free(b.box);
    return rc;
}
