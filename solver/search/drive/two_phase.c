/* two_phase.c - the frontier of a planned problem, segment after segment.
 *
 * The lightest and the fastest strategy are found first, by scalarised passes.  Between
 * them lies one segment (segment.h).  Segments are searched, and parted where that is too
 * much at once, until all are done:
 *
 *     o                      o                       o
 *      \                      \                       \.
 *       .                      \                       o
 *        .           ->         o            ->         \.
 *         .                      \.                      o
 *           .                      \ .                     \.
 *             o                       o                       o
 *
 * Segments do not depend on each other, so threads take them from a counter, round after
 * round; each is searched by the same code from the same numbers, so neither the answer
 * nor the counts depend on the number of threads.
 *
 * Where only the fastest strategy within a limit is wanted, only the segment that the
 * limit goes through is.  Every segment knows what it has not explored, so the search may
 * stop anywhere and still say how far from the truth its answer can be. */
#include "frontier.h"
#include "two_phase.h"

#include "drive_tuning.h"
#include "segment.h"
#include "crossover.h"
#include "topt_minmax.h"
#include "topt_pool.h"
#include "reduced_cost_fixing.h"
#include "topt_array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct two_phase {
    struct elimination_plan *plan;
    const struct topt_search_options *options;
    struct incumbent_costs incumbents; /* of others, and crossovers */
    struct topt_cost *own_incumbents;  /* owned, where there are any */
    struct crosser crosser;            /* empty where there are no crossovers */
    struct topt_error *err;
    struct topt_cost most, limit; /* of any strategy; of those that are wanted */
    struct topt_pool *pool;
    struct scalarizer *scalarizer; /* by thread */
    struct topt_error *scalarizer_err;
    int nscalarizers;
    struct segment *segment; /* in the order of memory */
    int nsegments;
    struct topt_cost *known;      /* ends and middles of segments */
    struct strategies strategies; /* theirs */
    int nknown, cap_known;
    int64_t work, points;
    int max_frontier, stopped;
};

/* ---- setting up -------------------------------------------------------------------- */

static int add_scalarizer(struct two_phase *s)
{
    int i = s->nscalarizers++;
    if (topt_scalarizer_init(&s->scalarizer[i], s->plan, s->options, s->most,
                             i ? &s->scalarizer_err[i] : s->err))
        return -1;
    s->scalarizer[i].known = s->incumbents;
    return 0;
}

static size_t width(const struct two_phase *s)
{
    return (size_t)s->plan->problem->nops + (size_t)s->plan->problem->nedges;
}

/* One scalarizer now; the others when there is something for them to do. */
static int init(struct two_phase *s)
{
    int n = s->options->threads > 1 ? s->options->threads : 1;
    s->scalarizer = calloc((size_t)n, sizeof *s->scalarizer);
    s->scalarizer_err = calloc((size_t)n, sizeof *s->scalarizer_err);
    if (!s->scalarizer || !s->scalarizer_err)
        return topt_search_nomem(s->err);
    if (topt_scalarizer_most(s->plan, &s->most, s->err) ||
        topt_tables_account(&s->plan->tables, topt_scalarizer_bytes(s->plan), s->err))
        return -1;
    const struct topt_search_options *o = s->options;
    s->limit.memory = o->memory_limit ? o->memory_limit : INT64_MAX;
    s->limit.time = o->time_limit ? o->time_limit : INT64_MAX;
    if (topt_strategies_init(&s->strategies, width(s), s->err) ||
        (o->epsilon > 0 && topt_crosser_init(&s->crosser, s->plan->problem, s->err)))
        return -1;
    return add_scalarizer(s);
}

static int start_threads(struct two_phase *s)
{
    int64_t each = topt_scalarizer_bytes(s->plan);
    int64_t room = (s->plan->tables.max_bytes - s->plan->tables.bytes) / each + 1;
    int n = (int)topt_min(s->options->threads, room);
    if (s->pool || n < 2)
        return 0;
    while (s->nscalarizers < n)
        if (add_scalarizer(s)) {
            if (s->err)
                *s->err = s->scalarizer_err[s->nscalarizers - 1];
            return -1;
        }
    s->pool = topt_pool_create(n, s->err);
    return s->pool ? 0 : -1;
}

static void fini(struct two_phase *s)
{
    topt_pool_destroy(s->pool);
    for (int i = 0; i < s->nscalarizers; i++)
        topt_scalarizer_fini(&s->scalarizer[i]);
    for (int i = 0; i < s->nsegments; i++)
        topt_segment_fini(&s->segment[i]);
    topt_strategies_fini(&s->strategies);
    topt_crosser_fini(&s->crosser);
    free(s->own_incumbents);
    free(s->scalarizer);
    free(s->scalarizer_err);
    free(s->segment);
    free(s->known);
}

/* ---- what is known ----------------------------------------------------------------- */

static int add_known(struct two_phase *s, struct topt_cost cost, const int32_t *choice)
{
    if (TOPT_ROOM(s->known, s->nknown, s->cap_known, 64))
        return topt_search_nomem(s->err);
    s->known[s->nknown++] = cost;
    return topt_strategies_add(&s->strategies, choice, s->err);
}

/* Number of a strategy that costs so much; -1: none is known. */
static int find_known(const struct two_phase *s, struct topt_cost c)
{
    int i = s->nknown - 1;
    while (i >= 0 && (s->known[i].memory != c.memory || s->known[i].time != c.time))
        i--;
    return i;
}

/* From now on these costs of known strategies count as incumbents. */
static int add_incumbents(struct two_phase *s, const struct topt_cost *more, size_t n)
{
    size_t before = (size_t)s->incumbents.n;
    struct topt_cost *all = malloc((before + n + 1) * sizeof *all);
    if (!all)
        return topt_search_nomem(s->err);
    if (before)
        memcpy(all, s->incumbents.at, before * sizeof *all);
    memcpy(all + before, more, n * sizeof *all);
    free(s->own_incumbents);
    s->own_incumbents = all;
    s->incumbents.at = all;
    s->incumbents.n = (int)topt_reduce(all, before + n);
    for (int i = 0; i < s->nscalarizers; i++)
        s->scalarizer[i].known = s->incumbents;
    return 0;
}

/* ---- crossovers of a segment's ends ------------------------------------------------ */

static int by_memory(const void *x, const void *y)
{
    const struct crossover *a = x, *b = y;
    int by = topt_cost_order(a->cost, b->cost);
    by = by ? by : a->first - b->first;
    return by ? by : a->cut - b->cut;
}

/* The points in a segment's corner that nothing dominates, by memory. */
static int reduce_crossovers(const struct segment *b, struct crossover *x, int n)
{
    int64_t last = b->left.time;
    int kept = 0;
    qsort(x, (size_t)n, sizeof *x, by_memory);
    for (int i = 0; i < n && x[i].cost.memory <= b->corner.memory; i++) {
        if (x[i].cost.memory < b->left.memory || x[i].cost.time > b->corner.time ||
            x[i].cost.time >= last)
            continue;
        last = x[i].cost.time;
        x[kept++] = x[i];
    }
    return kept;
}

/* Does 'before' stand for all that may be found below so much memory, by the tolerance,
 * if it is wanted itself?  Below the line between the segment's ends nothing is. */
static int covers(const struct two_phase *s, const struct segment *b,
                  struct topt_cost before, int64_t memory)
{
    topt_wide line =
        (topt_wide)b->time * b->left.time + (topt_wide)b->memory * b->left.memory;
    int64_t missed = before.time > s->limit.time
                         ? s->limit.time
                         : topt_search_missed(before.time, s->options->epsilon);
    return (topt_wide)b->time * missed + (topt_wide)b->memory * memory < line;
}

/* Choose the crossovers if they are few and all that is needed of the segment; 0 where they are
 * not.  Where only the fastest is asked for, it alone is of use. */
static int choose_crossovers(const struct two_phase *s, const struct segment *b,
                             struct crossover *x, int n)
{
    struct topt_cost before = b->left;
    int kept = 0, i = 0;
    if (s->options->fastest && n) {
        x[0] = x[n - 1];
        return 1;
    }
    while (i < n && covers(s, b, before, x[i].cost.memory - 1)) {
        while (i + 1 < n && covers(s, b, before, x[i + 1].cost.memory - 1))
            i++;
        before = x[i].cost;
        x[kept++] = x[i++];
    }
    return i == n && covers(s, b, before, b->corner.memory) ? kept : 0;
}

static int add_crossovers(struct two_phase *s, const struct parents *p,
                          const struct crossover *x, int n)
{
    int from = s->nknown, rc = 0;
    for (int i = 0; i < n && !rc; i++)
        rc = add_known(s, x[i].cost, topt_crossover_choice(&s->crosser, p, &x[i]));
    return rc || n == 0 ? rc : add_incumbents(s, &s->known[from], (size_t)n);
}

/* The choices of a known strategy; to be freed, NULL where memory is short. */
static int32_t *choice_at(const struct two_phase *s, int at)
{
    struct strategy_reader r;
    int32_t *copy = NULL;
    if (topt_strategy_reader_init(&r, &s->strategies, s->err))
        return NULL;
    if ((copy = malloc(width(s) * sizeof *copy + 1)))
        memcpy(copy, topt_strategy_read(&r, (size_t)at), width(s) * sizeof *copy);
    else
        topt_search_nomem(s->err);
    topt_strategy_reader_fini(&r);
    return copy;
}

/* Crossovers of a segment's ends become known, where answers within a tolerance are asked
 * for. */
static int cross(struct two_phase *s, const struct segment *b)
{
    int left = find_known(s, b->left), right = find_known(s, b->right), rc = -1;
    if (!s->crosser.mix || left < 0 || right < 0)
        return 0;
    int32_t *l = choice_at(s, left), *r = l ? choice_at(s, right) : NULL;
    struct crossover *x = malloc((2 * (size_t)s->plan->problem->nops + 1) * sizeof *x);
    struct parents p = {{l, r}, {b->left, b->right}, b->time, b->memory};
    if (l && r && x) {
        int n = topt_crossovers(&s->crosser, &p, x);
        n = choose_crossovers(s, b, x, reduce_crossovers(b, x, n));
        rc = add_crossovers(s, &p, x, n);
        s->work += 2 * (int64_t)width(s);
    } else if (l && r) {
        topt_search_nomem(s->err);
    }
    free(l);
    free(r);
    free(x);
    return rc;
}

/* ---- segments ---------------------------------------------------------------------- */

/* The segment between two strategies; 0 where nothing that is wanted can be in it. */
static int segment_between(const struct two_phase *s, struct topt_cost l,
                           struct topt_cost r, int depth, struct segment *ret)
{
    *ret =
        (struct segment){.depth = depth, .left = l, .right = r, .slowest = s->limit.time};
    ret->time = r.memory - l.memory;
    ret->memory = l.time - r.time;
    ret->corner.memory = topt_min(r.memory - 1, s->limit.memory);
    ret->corner.time = topt_min(l.time - 1, s->limit.time);
    if (s->options->fastest && r.memory <= s->limit.memory)
        return 0; /* 'right' is faster */
    return ret->corner.memory >= l.memory && ret->corner.time >= r.time &&
           ret->time > 0 && ret->memory > 0;
}

/* Find a strategy as fast as the fastest that needs less memory, where the weighted sum that
 * found the fastest was too coarse to tell. */
static int segment_at_end(const struct two_phase *s, struct topt_cost end,
                          struct segment *ret)
{
    *ret = (struct segment){.left = end,
                            .right = end,
                            .slowest = s->limit.time,
                            .time = s->most.memory,
                            .memory = 1};
    ret->corner = (struct topt_cost){end.memory - 1, end.time};
    return s->options->fastest && end.memory <= s->limit.memory && end.memory > 0 &&
           end.time <= s->limit.time;
}

struct round {
    struct two_phase *s;
    int stop;
    atomic_int next, failed; /* failed: the first segment that did, + 1 */
    int *by;                 /* which thread had a segment */
};

static int search_between(struct elimination_plan *plan,
                          const struct topt_search_options *options,
                          struct incumbent_costs known, struct topt_cost left,
                          struct topt_cost right, struct topt_frontier **ret,
                          struct topt_error *err);

/* Search what is left of the problem within a segment.  1, 0 where it is too entangled to
 * be searched exactly (in another order its tables may be larger), or -1. */
static int search_fixed(struct fixing *z)
{
    const struct segment *segment = z->segment;
    struct topt_search_options o = *z->b->options;
    struct incumbent_costs known = {z->b->known.at, z->b->known.n};
    struct topt_error why = {0};
    struct elimination_plan plan;
    o.threads = 1;
    o.progress = NULL;
    o.memory_limit = segment->corner.memory;
    o.max_work = z->b->work_budget;
    int rc = 1;
    if (topt_elimination_exactly(&plan, &z->narrowed.problem, &o, &why))
        rc = why.code == TOPT_ERR_LIMIT ? 0 : -1;
    else if (search_between(&plan, &o, known, segment->left, segment->right, &z->frontier,
                            &why))
        rc = -1;
    topt_elimination_fini(&plan);
    if (rc < 0 && z->b->err)
        *z->b->err = why;
    return rc;
}

/* Search a segment on a problem of its own, if that is much less; then the segment is
 * done. */
static int search_alone(struct scalarizer *b, struct segment *segment)
{
    struct fixing z;
    int rc = 0;
    if (!topt_fixing_begin(&z, b, segment))
        return 0;
    for (int i = 0; i < FIXING_TRIES && !rc; i++) {
        rc = topt_fixing_narrow(&z);
        rc = topt_fixing_end(&z, rc > 0 ? search_fixed(&z) : rc);
    }
    return rc < 0 ? -1 : 0;
}

/* A segment that is to be parted may be searched by itself.  Where the search is stopped
 * in the midst of a segment, that is left as it is. */
static int search_segment(struct scalarizer *b, struct segment *segment, int stop)
{
    int rc = topt_segment_search(b, segment, stop);
    if (!rc && segment->state == SEGMENT_SPLIT)
        rc = search_alone(b, segment);
    return rc && topt_search_gave_up(b->options, b->err) ? topt_segment_leave(b, segment)
                                                         : rc;
}

static void work_on(void *ctx, int worker)
{
    struct round *r = ctx;
    struct scalarizer *b = &r->s->scalarizer[worker];
    for (;;) {
        int i = atomic_fetch_add(&r->next, 1);
        if (i >= r->s->nsegments || atomic_load(&r->failed))
            return;
        struct segment *segment = &r->s->segment[i];
        r->by[i] = worker;
        if (segment->state == SEGMENT_OPEN && search_segment(b, segment, r->stop)) {
            int none = 0;
            atomic_compare_exchange_strong(&r->failed, &none, i + 1);
            return;
        }
    }
}

static int count_open(const struct two_phase *s)
{
    int n = 0;
    for (int i = 0; i < s->nsegments; i++)
        n += s->segment[i].state == SEGMENT_OPEN;
    return n;
}

static int64_t work_left(const struct two_phase *s)
{
    int64_t left = s->options->max_work - s->work;
    for (int i = 0; i < s->nsegments; i++)
        left -= s->segment[i].work;
    return left;
}

/* Put two segments in the place of each that was parted. */
static int part_segments(struct two_phase *s)
{
    struct segment *all = malloc(2 * (size_t)s->nsegments * sizeof *all);
    int n = 0, rc = 0;
    if (!all)
        return topt_search_nomem(s->err);
    for (int i = 0; i < s->nsegments; i++) {
        struct segment *b = &s->segment[i];
        int first = n;
        if (b->state != SEGMENT_SPLIT) {
            all[n++] = *b;
            continue;
        }
        s->work += b->work;
        s->points += b->points;
        rc = rc || add_known(s, b->middle.cost, b->middle.choice);
        n += segment_between(s, b->left, b->middle.cost, b->depth + 1, &all[n]);
        if (b->middle.cost.memory <= s->limit.memory)
            n += segment_between(s, b->middle.cost, b->right, b->depth + 1, &all[n]);
        for (int k = first; k < n; k++)
            rc = rc || cross(s, &all[k]);
        topt_segment_fini(b);
    }
    free(s->segment);
    s->segment = all;
    s->nsegments = n;
    return rc ? -1 : 0;
}

static int search_round(struct two_phase *s)
{
    const struct topt_search_options *o = s->options;
    s->stopped |= topt_search_stopped(o) || (o->max_work && work_left(s) <= 0);
    struct round r = {.s = s, .stop = s->stopped};
    int open = count_open(s);
    if (open > 1 && start_threads(s))
        return -1;
    int64_t share = topt_max(work_left(s) / open, 1);
    for (int i = 0; s->options->max_work && i < s->nscalarizers; i++) {
        s->scalarizer[i].work_budget = share;
        s->scalarizer[i].all_work = open == 1;
    }
    r.by = calloc((size_t)s->nsegments, sizeof *r.by);
    if (!r.by)
        return topt_search_nomem(s->err);
    if (s->pool && open > 1)
        topt_pool_run(s->pool, work_on, &r);
    else
        work_on(&r, 0);
    int failed = atomic_load(&r.failed);
    int by = failed ? r.by[failed - 1] : 0;
    free(r.by);
    if (failed && by && s->err)
        *s->err = s->scalarizer_err[by];
    return failed || part_segments(s) ? -1 : 0;
}

/* The best strategy by a weighted sum.  1, 0 where there is none at all, or -1. */
static int find_end(struct two_phase *s, int64_t time, int64_t memory,
                    struct topt_cost *ret)
{
    struct found_strategy end;
    int rc = topt_scalarizer_lightest(&s->scalarizer[0], time, memory, &end) ? -1 : 0;
    if (!rc && end.choice)
        rc = add_known(s, end.cost, end.choice) ? -1 : 1;
    s->work += s->plan->tables.npairs;
    *ret = end.cost;
    free(end.choice);
    return rc;
}

/* The lightest and the fastest strategy, each the best of its kind where numbers allow.
 * 1, 0 where nothing is within the limits, or -1. */
static int find_ends(struct two_phase *s, struct topt_cost *ret_light,
                     struct topt_cost *ret_fast)
{
    int64_t by_time = TOPT_HEAVY / 2 / topt_max(s->most.time, 1);
    int64_t by_memory = TOPT_HEAVY / 2 / topt_max(s->most.memory, 1);
    int exact = by_memory > s->most.time;
    int rc = find_end(s, exact, exact ? s->most.time + 1 : 1, ret_light);
    if (rc <= 0)
        return rc;
    exact = by_time > s->most.memory;
    if (find_end(s, exact ? s->most.memory + 1 : 1, exact, ret_fast) < 0)
        return -1;
    return ret_light->memory <= s->limit.memory && ret_fast->time <= s->limit.time;
}

/* For progress reports.  Nothing in a segment is faster than its right end, and its left end
 * is no heavier than anything in it. */
static void tell_progress(const struct two_phase *s)
{
    struct topt_progress *p = s->options->progress;
    int64_t points = s->nknown, parts = 0;
    double gap = 0;
    for (int i = 0; i < s->nsegments; i++) {
        const struct segment *b = &s->segment[i];
        points += b->nfound;
        parts += b->state == SEGMENT_OPEN;
        if (b->state == SEGMENT_OPEN && b->right.time > 0)
            gap = fmax(gap, (double)b->left.time / (double)b->right.time - 1);
    }
    TOPT_PROGRESS(p, phase, TOPT_PHASE_SEARCHING);
    TOPT_PROGRESS(p, points, points);
    TOPT_PROGRESS(p, parts, parts);
    TOPT_PROGRESS(p, gap, gap < 1e6 ? (int64_t)(1e6 * gap) : -1);
}

/* Segments until all are done. */
static int search_segments(struct two_phase *s)
{
    while (count_open(s)) {
        tell_progress(s);
        if (search_round(s))
            return -1;
    }
    return 0;
}

/* One segment for everything. */
static int segment_of_all(struct two_phase *s)
{
    s->segment = calloc(1, sizeof *s->segment);
    if (!s->segment)
        return topt_search_nomem(s->err);
    s->nsegments = 1;
    s->segment->corner = s->limit;
    s->segment->slowest = s->limit.time;
    s->segment->left.time = INT64_MAX; /* no point begins it */
    return 0;
}

/* The search was stopped before both ends were known: nothing is proven. */
static int leave_unsearched(struct two_phase *s)
{
    if (segment_of_all(s))
        return -1;
    s->segment->state = SEGMENT_DONE;
    s->segment->explored = -1;
    return 0;
}

static int search_all(struct two_phase *s)
{
    struct topt_cost light, fast = {0, 0};
    int some = find_ends(s, &light, &fast);
    if (some < 0 && topt_search_gave_up(s->options, s->err))
        return leave_unsearched(s);
    if (some <= 0)
        return some;
    s->segment = malloc(2 * sizeof *s->segment);
    if (!s->segment)
        return topt_search_nomem(s->err);
    s->nsegments += segment_between(s, light, fast, 0, &s->segment[s->nsegments]);
    if (s->nsegments && cross(s, &s->segment[0]))
        return -1;
    s->nsegments += segment_at_end(s, fast, &s->segment[s->nsegments]);
    return search_segments(s);
}

/* Are costs too large to be weighed? */
static int too_heavy(const struct two_phase *s)
{
    return s->most.time >= TOPT_HEAVY / 4 || s->most.memory >= TOPT_HEAVY / 4;
}

/* Then everything is in one segment. */
static int search_plainly(struct two_phase *s)
{
    if (segment_of_all(s))
        return -1;
    s->segment->explored = INT64_MAX;
    return topt_segment_plain(&s->scalarizer[0], s->segment);
}

/* ---- the answer -------------------------------------------------------------------- */

/* All that was found: what was known, then segment after segment.  Lists are numbered in
 * this order, too. */
static struct pick *gather(const struct two_phase *s, size_t *ret_n)
{
    size_t n = 0, most = (size_t)s->nknown;
    for (int i = 0; i < s->nsegments; i++)
        most += (size_t)s->segment[i].nfound;
    struct pick *all = malloc((most + 1) * sizeof *all);
    if (!all) {
        topt_search_nomem(s->err);
        return NULL;
    }
    for (int i = 0; i < s->nknown; i++)
        if (s->known[i].memory <= s->limit.memory)
            all[n++] = (struct pick){s->known[i], 0, (uint32_t)i};
    for (int i = 0; i < s->nsegments; i++)
        for (int k = 0; k < s->segment[i].nfound; k++)
            all[n++] =
                (struct pick){s->segment[i].found[k], (uint32_t)i + 1, (uint32_t)k};
    *ret_n = n;
    return all;
}

static int collect(struct two_phase *s, struct pick *all, size_t n,
                   struct topt_frontier *f)
{
    size_t nlists = (size_t)s->nsegments + 1;
    const struct strategies **list = calloc(nlists, sizeof(*list));
    if (!list)
        return topt_search_nomem(s->err);
    list[0] = &s->strategies;
    for (int i = 0; i < s->nsegments; i++)
        list[i + 1] = &s->segment[i].strategies;
    int rc = topt_frontier_collect(f, list, nlists, all, n, s->err);
    free(list);
    return rc;
}

static void write_stats(const struct two_phase *s, struct topt_frontier *f)
{
    struct topt_search_stats *t = &f->stats;
    int64_t most = 0;
    *t = s->plan->tables.stats;
    t->products = s->work;
    t->points += s->points;
    t->bands = s->nsegments;
    f->epsilon = 0;
    for (int i = 0; i < s->nsegments; i++) {
        const struct segment *b = &s->segment[i];
        t->products += b->work;
        t->points += b->points;
        t->bands += b->parts;
        most = topt_max(most, b->bytes);
        t->max_frontier = (int)topt_max(t->max_frontier, b->max_frontier);
        f->epsilon =
            fmax(f->epsilon, b->explored == INT64_MAX
                                 ? b->left_out
                                 : topt_segment_gap(b, s->options, s->incumbents));
    }
    t->max_frontier = (int)topt_max(t->max_frontier, f->npoints);
    t->peak_bytes += most + topt_strategies_bytes(topt_frontier_strategies(f));
    f->exact = f->epsilon <= 0;
}

static int answer(struct two_phase *s, struct topt_frontier **ret)
{
    size_t n;
    struct pick *all = gather(s, &n);
    struct topt_frontier *f = topt_frontier_create(s->plan->problem, s->err);
    int rc = all && f ? collect(s, all, n, f) : -1;
    free(all);
    if (rc) {
        topt_frontier_destroy(f);
        return -1;
    }
    write_stats(s, f);
    *ret = f;
    return 0;
}

int topt_two_phase(struct elimination_plan *plan,
                   const struct topt_search_options *options,
                   struct incumbent_costs known, struct topt_frontier **ret,
                   struct topt_error *err)
{
    struct two_phase s = {
        .plan = plan, .options = options, .incumbents = known, .err = err};
    int rc = init(&s);
    if (!rc)
        rc = too_heavy(&s) ? search_plainly(&s) : search_all(&s);
    if (!rc)
        rc = answer(&s, ret);
    fini(&s);
    return rc;
}

/* The frontier of what is between two strategies that nothing beats, both left out. */
static int search_between(struct elimination_plan *plan,
                          const struct topt_search_options *options,
                          struct incumbent_costs known, struct topt_cost left,
                          struct topt_cost right, struct topt_frontier **ret,
                          struct topt_error *err)
{
    struct two_phase s = {
        .plan = plan, .options = options, .incumbents = known, .err = err};
    int rc = init(&s);
    s.segment = malloc(sizeof *s.segment);
    if (!rc && !s.segment)
        rc = topt_search_nomem(err);
    if (!rc) {
        s.nsegments = segment_between(&s, left, right, 0, s.segment);
        rc = search_segments(&s) || answer(&s, ret) ? -1 : 0;
    }
    fini(&s);
    return rc;
}

/* ---- only ends --------------------------------------------------------------------- */

int topt_two_phase_ends(struct elimination_plan *plan,
                        const struct topt_search_options *options, int *ret_some,
                        struct topt_cost *ret_light, struct topt_cost *ret_fast,
                        struct topt_error *err)
{
    struct two_phase s = {.plan = plan, .options = options, .err = err};
    *ret_light = *ret_fast = (struct topt_cost){0, 0};
    int rc = init(&s), heavy = !rc && too_heavy(&s);
    if (!rc && !heavy && find_ends(&s, ret_light, ret_fast) < 0)
        rc = -1;
    *ret_some = heavy || s.nknown > 0;
    fini(&s);
    return rc;
}

int topt_two_phase_lightest(struct elimination_plan *plan,
                            const struct topt_search_options *options,
                            const double balance[2], int *ret_some, struct topt_cost *ret,
                            struct topt_error *err)
{
    struct two_phase s = {.plan = plan, .options = options, .err = err};
    struct found_strategy found = {{0, 0}, NULL};
    double most = balance[0] > balance[1] ? balance[0] : balance[1];
    double scale = most > 0x1p40 ? 0x1p40 / most : 1;
    int rc = init(&s) || topt_scalarizer_lightest(
                             &s.scalarizer[0], (int64_t)(balance[1] * scale) + 1,
                             (int64_t)(balance[0] * scale) + 1, &found)
                 ? -1
                 : 0;
    *ret_some = found.choice != NULL;
    *ret = found.cost;
    free(found.choice);
    fini(&s);
    return rc;
}
