/* bounds.c - the frontier within limits, by bounds that know the rest of the problem.
 *
 * Give every cost one number, w = a * time + b * memory.  The least w of a whole strategy is
 * found by the same eliminations with one number an entry instead of a frontier, which is
 * cheap.  A second pass, from the answer back to the leaves, gives for every entry of every
 * table the least w of all that is not in the table:
 *
 *         entry e of the table        rest(e), known before the table is made
 *     (time, memory) of a point   +   the lightest completion     > a * limit + b * limit
 *                                                                     of time    of memory
 *
 * and then no strategy with the point is within both limits: it goes.  A table that stands in
 * several places has the least rest of them.  So the tables that are made hold little more
 * than what the answer is made of; nothing within the limits is lost, for any a and b.
 *
 * Where only the fastest strategy is wanted, the limit of time is found first.  With
 * w = time + lambda * memory, the best lambda is where the lightest strategy changes from one
 * that does not fit to one that does; it is found by secants:
 *
 *     time |  x does not fit          the one that fits is an upper limit of the time;
 *          |    \   |                 where the line x--o crosses the memory limit is a
 *          |     \  | limit           lower one.  Between them first a low limit is tried:
 *          |      \ |                 if a strategy is found within it, it is the fastest.
 *          |       \|
 *          |        |   o             (drawn with memory falling to the right)
 *
 * Numbers: a and b are so small that whatever a strategy may weigh is below 2^60; where even
 * a = b = 1 are too large, tables are made without bounds. */
#include "bounds.h"

#include <stdlib.h>
#include <string.h>

/* More than anything weighs, and two of them still fit. */
#define NOTHING ((((int64_t)1 << 61) - 1) * 2 + 1)
#define HEAVY   ((int64_t)1 << 60)

struct solver {
    struct tables *ts;
    struct table *root;
    struct topt_error *err;
    struct bounds bounds;
    int64_t *least;        /* scratch of a weighing */
    struct topt_cost most; /* of the heaviest strategy, at most */
    struct topt_cost limit;
    int64_t slow; /* no strategy within the memory limit is faster */
    int empty;    /* nothing is within the limits */
};

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- one weighing ---- */

static int64_t weigh(int64_t time, int64_t memory, struct topt_cost c)
{
    return time * c.time + memory * c.memory;
}

static void leaf_least(const struct table *t, int64_t time, int64_t memory, int64_t *ret)
{
    for (int64_t e = 0; e < t->nentries; e++) {
        ret[e] = NOTHING;
        for (uint32_t i = t->first[e]; i < t->first[e + 1]; i++)
            ret[e] = min(ret[e], weigh(time, memory, t->cost[i]));
    }
}

static void step_least(const struct step *s, const int64_t *least, int64_t *ret)
{
    static const int64_t zero;
    const int64_t *a = least + s->a->first_bound;
    const int64_t *b = s->b ? least + s->b->first_bound : &zero;
    for (int64_t x = 0, n = s->ngroups ? s->nentries / s->ngroups : 0; x < n; x++) {
        int64_t ea, eb;
        topt_step_entries(s, x, &ea, &eb);
        for (int g = 0; g < s->ngroups; g++) {
            int64_t best = NOTHING;
            for (int32_t k = s->kfirst[g]; k < s->kfirst[g + 1]; k++)
                best = min(best, a[ea + s->ka[k]] + b[eb + s->kb[k]]);
            ret[x * s->ngroups + g] = best;
        }
    }
}

/* What each entry weighs at least; -1 where the search was canceled. */
static int find_least(const struct tables *ts, int64_t time, int64_t memory,
                      int64_t *least)
{
    least[0] = 0; /* of a step's missing factor */
    for (size_t i = 0; i < ts->nall; i++) {
        const struct table *t = ts->all[i];
        if (topt_search_canceled(ts->options))
            return -1;
        if (t->leaf)
            leaf_least(t, time, memory, least + t->first_bound);
        else
            step_least(&t->how, least, least + t->first_bound);
    }
    return 0;
}

/* Lower what is known of the rest of the entries that an entry is made of. */
static void step_rest(const struct step *s, const int64_t *rest, const int64_t *least,
                      int64_t *all)
{
    static const int64_t zero;
    int64_t unused = NOTHING;
    const int64_t *a = least + s->a->first_bound;
    const int64_t *b = s->b ? least + s->b->first_bound : &zero;
    int64_t *rest_a = all + s->a->first_bound;
    int64_t *rest_b = s->b ? all + s->b->first_bound : &unused;
    for (int64_t x = 0, n = s->ngroups ? s->nentries / s->ngroups : 0; x < n; x++) {
        int64_t ea, eb;
        topt_step_entries(s, x, &ea, &eb);
        for (int g = 0; g < s->ngroups; g++) {
            int64_t r = rest[x * s->ngroups + g];
            if (r == NOTHING)
                continue;
            for (int32_t k = s->kfirst[g]; k < s->kfirst[g + 1]; k++) {
                int64_t i = ea + s->ka[k], j = eb + s->kb[k];
                rest_a[i] = min(rest_a[i], r + b[j]);
                rest_b[j] = min(rest_b[j], r + a[i]);
            }
        }
    }
}

static int find_rest(const struct tables *ts, const struct table *root,
                     const int64_t *least, int64_t nentries, int64_t *rest)
{
    for (int64_t e = 0; e < nentries; e++)
        rest[e] = NOTHING;
    rest[root->first_bound] = 0;
    for (size_t i = ts->nall; i-- > 0;) {
        const struct table *t = ts->all[i];
        if (topt_search_canceled(ts->options))
            return -1;
        if (!t->leaf)
            step_rest(&t->how, rest + t->first_bound, least, rest);
    }
    return 0;
}

/* ---- the lightest strategy ---- */

struct walk {
    const struct table *table;
    int64_t entry;
};

static struct topt_cost lightest_point(const struct table *t, int64_t e, int64_t time,
                                       int64_t memory)
{
    uint32_t best = t->first[e];
    for (uint32_t i = best + 1; i < t->first[e + 1]; i++)
        if (weigh(time, memory, t->cost[i]) < weigh(time, memory, t->cost[best]))
            best = i;
    return t->cost[best];
}

/* Which entries of A and B the lightest point of an entry is made of. */
static void step_down(const struct step *s, int64_t entry, const int64_t *least,
                      struct walk *ret_a, struct walk *ret_b)
{
    static const int64_t zero;
    const int64_t *a = least + s->a->first_bound;
    const int64_t *b = s->b ? least + s->b->first_bound : &zero;
    int g = (int)(entry % s->ngroups);
    int64_t ea, eb;
    topt_step_entries(s, entry / s->ngroups, &ea, &eb);
    int32_t best = s->kfirst[g];
    for (int32_t k = best; k < s->kfirst[g + 1]; k++)
        if (a[ea + s->ka[k]] + b[eb + s->kb[k]] <
            a[ea + s->ka[best]] + b[eb + s->kb[best]])
            best = k;
    *ret_a = (struct walk){s->a, ea + s->ka[best]};
    *ret_b = (struct walk){s->b, eb + s->kb[best]};
}

/* Its cost, walking down from the root; 'stack' has room for all leaves. */
static struct topt_cost lightest(const struct solver *v, int64_t time, int64_t memory,
                                 struct walk *stack)
{
    struct topt_cost sum = {0, 0};
    int n = 0;
    stack[n++] = (struct walk){v->root, 0};
    while (n) {
        struct walk w = stack[--n], a, b;
        if (w.table->leaf) {
            struct topt_cost c = lightest_point(w.table, w.entry, time, memory);
            sum.time += c.time;
            sum.memory += c.memory;
            continue;
        }
        step_down(&w.table->how, w.entry, v->least, &a, &b);
        stack[n++] = a;
        if (b.table)
            stack[n++] = b;
    }
    return sum;
}

/* ---- the limits, and the weighings that bound best ---- */

/* The largest costs a strategy may have, and how many leaves it is made of, at most; -1 where
 * that is too heavy to be weighed. */
static int find_most(struct solver *v, int *ret_leaves)
{
    const struct tables *ts = v->ts;
    struct topt_cost *most = calloc(ts->nall + 1, sizeof *most);
    int *leaves = calloc(ts->nall + 1, sizeof *leaves);
    int rc = most && leaves ? 0 : topt_search_nomem(v->err);
    for (size_t i = 0; i < ts->nall && !rc; i++) {
        const struct table *t = ts->all[i], *a = t->how.a, *b = t->how.b;
        leaves[i] = t->leaf;
        for (uint32_t p = 0; t->leaf && p < t->npoints; p++) {
            most[i].time = max(most[i].time, t->cost[p].time);
            most[i].memory = max(most[i].memory, t->cost[p].memory);
        }
        if (!t->leaf) {
            most[i] = most[a->id];
            leaves[i] = leaves[a->id];
        }
        if (b) {
            most[i].time += most[b->id].time;
            most[i].memory += most[b->id].memory;
            leaves[i] += leaves[b->id];
        }
        most[i].time = min(most[i].time, HEAVY);
        most[i].memory = min(most[i].memory, HEAVY);
    }
    if (!rc) {
        v->most = most[v->root->id];
        *ret_leaves = leaves[v->root->id];
    }
    free(most);
    free(leaves);
    return rc;
}

/* The same ratio in the largest numbers that are not too heavy. */
static void scale(const struct solver *v, int64_t *time, int64_t *memory)
{
    __extension__ typedef __int128 wide;
    int64_t a = *time, b = *memory;
    while ((wide)a * v->most.time + (wide)b * v->most.memory > HEAVY) {
        a >>= 1;
        b >>= 1;
    }
    while (max(a, b) > 0 && max(a, b) < HEAVY &&
           (wide)a * 2 * v->most.time + (wide)b * 2 * v->most.memory <= HEAVY) {
        a *= 2;
        b *= 2;
    }
    *time = a;
    *memory = b;
}

/* The lightest strategy by a weighing, and what it says about the fastest within limits. */
static int probe(struct solver *v, int64_t time, int64_t memory, struct walk *stack,
                 struct topt_cost *ret)
{
    if (find_least(v->ts, time, memory, v->least))
        return topt_fail(v->err, TOPT_ERR_CANCELED, "the search was canceled");
    v->ts->stats.products += v->bounds.nentries;
    if (v->least[v->root->first_bound] == NOTHING) {
        v->empty = 1;
        return 0;
    }
    *ret = lightest(v, time, memory, stack);
    if (ret->memory <= v->limit.memory && v->ts->options->fastest)
        v->limit.time = min(v->limit.time, ret->time);
    if (time) {
        int64_t over = weigh(time, memory, *ret) - memory * v->limit.memory;
        v->slow = max(v->slow, over > 0 ? (over - 1) / time + 1 : 0);
    }
    return 0;
}

enum { SECANTS = 40 };

/* Secants between a strategy that does not fit and one that does.  Leaves the best weighing
 * in 'ret'; its time is 0 where memory is no matter. */
static int find_ratio(struct solver *v, struct walk *stack, struct bound *ret)
{
    struct topt_cost in, out, c = {0, 0};
    *ret = (struct bound){0};
    if (probe(v, 0, 1, stack, &in) || v->empty)
        return v->empty ? 0 : -1;
    v->empty = in.memory > v->limit.memory;
    if (v->empty || probe(v, 1, 0, stack, &out))
        return v->empty ? 0 : -1;
    for (int i = 0; i < SECANTS && out.memory > v->limit.memory; i++) {
        int64_t a = out.memory - in.memory, b = in.time - out.time;
        if (b <= 0)
            break;
        scale(v, &a, &b);
        if (!a || !b)
            break;
        ret->time = a;
        ret->memory = b;
        if (probe(v, a, b, stack, &c))
            return -1;
        if (weigh(a, b, c) >= min(weigh(a, b, in), weigh(a, b, out)))
            break;
        if (c.memory <= v->limit.memory)
            in = c;
        else
            out = c;
    }
    v->empty = v->slow > v->limit.time;
    return 0;
}

static void add_bound(struct solver *v, int64_t time, int64_t memory)
{
    struct bounds *b = &v->bounds;
    if (b->n < TOPT_MAX_BOUNDS && time + memory > 0)
        b->at[b->n++] = (struct bound){.time = time, .memory = memory};
}

static void choose_bounds(struct solver *v, const struct bound *best)
{
    /* Ratios around the best, as quarters of it. */
    static const int around[] = {4, 3, 6, 2, 8};
    add_bound(v, 0, 1);
    add_bound(v, 1, 0);
    for (size_t i = 0; best->time && i < sizeof around / sizeof *around; i++) {
        int64_t a = best->time / 8 * 4, b = best->memory / 8 * around[i];
        scale(v, &a, &b);
        if (a && b)
            add_bound(v, a, b);
    }
}

struct bounds_job {
    struct solver *v;
    atomic_int next, failed;
};

static void fill_bounds(void *ctx, int worker)
{
    struct bounds_job *job = ctx;
    const struct solver *v = job->v;
    (void)worker;
    for (;;) {
        int i = atomic_fetch_add(&job->next, 1);
        if (i >= v->bounds.n)
            return;
        const struct bound *b = &v->bounds.at[i];
        if (find_least(v->ts, b->time, b->memory, b->least) ||
            find_rest(v->ts, v->root, b->least, v->bounds.nentries, b->rest))
            atomic_store(&job->failed, 1);
    }
}

static int make_bounds(struct solver *v)
{
    struct bounds_job job = {.v = v};
    for (int i = 0; i < v->bounds.n; i++) {
        struct bound *b = &v->bounds.at[i];
        b->least = malloc((size_t)v->bounds.nentries * sizeof *b->least);
        b->rest = malloc((size_t)v->bounds.nentries * sizeof *b->rest);
        if (!b->least || !b->rest)
            return topt_search_nomem(v->err);
        v->ts->stats.products += 3 * v->bounds.nentries;
    }
    topt_pool_run(v->ts->pool, fill_bounds, &job);
    if (atomic_load(&job.failed))
        return topt_fail(v->err, TOPT_ERR_CANCELED, "the search was canceled");
    return 0;
}

int topt_bounds_of_entry(const struct bounds *b, int64_t entry, struct merge *m)
{
    m->nbounds = b->n;
    for (int i = 0; i < b->n; i++) {
        const struct bound *x = &b->at[i];
        int64_t room = x->allowance - x->rest[entry];
        if (x->least[entry] > room)
            return 0;
        m->bound[i] = (struct merge_bound){x->time, x->memory, room, x->least};
    }
    m->limit = m->bound[0].room;
    m->slowest = m->bound[1].room;
    return 1;
}

/* ---- making the tables ---- */

/* Costs go with the last table that is made of them; a leaf's are kept for another try. */
static void forget_used(struct tables *ts, struct table *used, const struct table *by)
{
    if (used && used->planned && used->last_use == by->id)
        topt_tables_forget(ts, used);
}

static int make_all(struct solver *v)
{
    struct tables *ts = v->ts;
    size_t n = ts->nall;
    for (size_t i = 0; i < n; i++)
        if (ts->all[i]->planned)
            topt_tables_unmake(ts, ts->all[i]);
    for (size_t i = 0; i < n; i++) {
        struct table *t = ts->all[i];
        if (!t->planned)
            continue;
        if (topt_tables_make(ts, t, v->err))
            return -1;
        forget_used(ts, t->how.a, t);
        forget_used(ts, t->how.b, t);
    }
    return 0;
}

static int make_within(struct solver *v, int64_t time)
{
    for (int i = 0; i < v->bounds.n; i++) {
        struct bound *b = &v->bounds.at[i];
        b->allowance = b->time * time + b->memory * v->limit.memory;
    }
    v->ts->bounds = &v->bounds;
    return make_all(v);
}

enum { FIRST_TRY = 16, NEXT_TRY = 4 };

/* Within the limits; the fastest alone is looked for between the bounds of its time, from
 * below. */
static int make_bounded(struct solver *v)
{
    int64_t gap = v->limit.time - v->slow;
    if (v->ts->options->fastest)
        for (int64_t part = FIRST_TRY; part > 1 && gap >= part; part /= NEXT_TRY) {
            if (make_within(v, v->slow + gap / part))
                return -1;
            if (v->root->npoints)
                return 0;
        }
    return make_within(v, v->limit.time);
}

static int64_t count_entries(struct tables *ts)
{
    int64_t n = 1;
    for (size_t i = 0; i < ts->nall; i++) {
        struct table *t = ts->all[i];
        t->first_bound = n;
        n += t->nentries;
        if (t->planned) {
            t->how.a->last_use = t->id;
            if (t->how.b)
                t->how.b->last_use = t->id;
        }
    }
    return n;
}

int topt_tables_solve(struct tables *ts, struct table *root, struct topt_error *err)
{
    const struct topt_search_options *o = ts->options;
    struct solver v = {.ts = ts, .root = root, .err = err};
    struct walk *stack = NULL;
    struct bound best;
    int rc = -1, leaves = 0;
    int64_t bytes;
    v.bounds.nentries = count_entries(ts);
    bytes = (2 * TOPT_MAX_BOUNDS + 1) * v.bounds.nentries * (int64_t)sizeof(int64_t);
    if (find_most(&v, &leaves))
        return -1;
    if (v.most.time >= HEAVY / 4 || v.most.memory >= HEAVY / 4 ||
        bytes > (ts->max_bytes - ts->bytes) / 4)
        return make_all(&v);
    if (topt_tables_account(ts, bytes, err))
        return -1;
    v.limit.memory =
        o->memory_limit ? min(o->memory_limit, v.most.memory) : v.most.memory;
    v.limit.time = o->time_limit ? min(o->time_limit, v.most.time) : v.most.time;
    v.least = malloc((size_t)v.bounds.nentries * sizeof *v.least);
    stack = malloc(((size_t)leaves + 2) * sizeof *stack);
    if (!v.least || !stack) {
        topt_search_nomem(err);
        goto out;
    }
    if (find_ratio(&v, stack, &best))
        goto out;
    if (!v.empty)
        choose_bounds(&v, &best);
    rc = v.empty                               ? topt_tables_make_empty(ts, root, err)
         : make_bounds(&v) || make_bounded(&v) ? -1
                                               : 0;
out:
    for (int i = 0; i < v.bounds.n; i++) {
        free(v.bounds.at[i].least);
        free(v.bounds.at[i].rest);
    }
    free(v.least);
    free(stack);
    ts->bounds = NULL;
    ts->bytes -= bytes;
    return rc;
}
