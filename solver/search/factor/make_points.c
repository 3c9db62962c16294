/* make_points.c - the tables of a search, made once: the points of every entry within
 * bounds.
 *
 * Tables are made in the order they were planned, so that those a step needs are there.
 * An entry that is no part of any strategy within the bounds is empty; of the others,
 * only the sums that leave room for their lightest completion are looked at. */
#include "make_points.h"

#include "factor_tuning.h"
#include "search_common.h"
#include "topt_array.h"
#include "topt_minmax.h"

#include <stdlib.h>

int topt_maker_init(struct maker *k, const struct tables *ts,
                    const struct topt_search_options *options, struct topt_error *err)
{
    *k = (struct maker){.tables = ts,
                        .cap_entries = (size_t)ts->nentries,
                        .most = {INT64_MAX, INT64_MAX}};
    k->merge = (struct merge){.options = options, .max_bytes = ts->max_bytes};
    k->first = malloc((size_t)ts->nentries * sizeof *k->first);
    k->count = malloc((size_t)ts->nentries * sizeof *k->count);
    return k->first && k->count ? 0 : topt_search_nomem(err);
}

void topt_maker_fini(struct maker *k)
{
    topt_pareto_merge_fini(&k->merge);
    free(k->first);
    free(k->count);
}

void topt_maker_trim(struct maker *k)
{
    struct merge *m = &k->merge;
    size_t n = (size_t)k->tables->nentries;
    (void)TOPT_RESIZE(m->cost, m->n + 1); /* what can't be given back stays */
    (void)TOPT_RESIZE(m->back, m->n + 1);
    (void)TOPT_RESIZE(k->first, n);
    (void)TOPT_RESIZE(k->count, n);
    m->cap = m->n;
    k->cap_entries = n;
}

/* The room that the bounds leave for an entry; 0 where there is none. */
static int set_bounds(struct maker *k, int64_t entry)
{
    struct merge *m = &k->merge;
    m->nbounds = k->nbounds;
    for (int i = 0; i < k->nbounds; i++) {
        const struct scalar_pass *b = k->bound[i];
        int64_t room = b->allowance - b->rest[entry];
        if (b->least[entry] > room)
            return 0;
        m->bound[i] = (struct merge_bound){b->time, b->memory, room, b->least};
    }
    return 1;
}

static int make_entry(struct maker *k, const struct step *s, int64_t ea, int64_t eb,
                      int group)
{
    static const struct topt_cost zero;
    const struct run one = {.cost = &zero, .n = 1};
    for (int32_t i = s->kfirst[group]; i < s->kfirst[group + 1]; i++) {
        struct run a = topt_entry_points(k, s->a, ea + s->ka[i]);
        if (!a.n)
            continue;
        struct run b = s->b ? topt_entry_points(k, s->b, eb + s->kb[i]) : one;
        if (b.n && topt_pareto_merge_add(&k->merge, a, b))
            return -1;
    }
    return topt_pareto_merge_run(&k->merge);
}

/* Have the first entries of a table so many points that all will have too many? */
static int too_many(const struct maker *k, int64_t entries, size_t points)
{
    return entries >= MEAN_AFTER &&
           (double)points > MEAN_TIMES * k->mean * (double)entries;
}

/* 0; 1 where that takes too much, and entries are missing; or -1. */
static int make_table(struct maker *k, const struct table *t)
{
    const struct step *s = &t->how;
    struct merge *m = &k->merge;
    int64_t entry = t->first_entry, end = entry + t->nentries;
    size_t first = m->n;
    if (!t->nentries)
        return 0;
    for (struct cursor c = topt_cursor_start(s); entry < end; topt_cursor_next(&c))
        for (int g = 0; g < s->ngroups; g++, entry++) {
            k->first[entry] = (uint32_t)m->n;
            if (set_bounds(k, entry) && make_entry(k, s, c.a, c.b, g))
                return -1;
            k->count[entry] = (uint32_t)(m->n - k->first[entry]);
            if (k->count[entry] > (uint32_t)k->max_frontier)
                k->max_frontier = (int)k->count[entry];
            if ((k->budget && m->products > k->budget) ||
                (k->mean > 0 && too_many(k, entry - t->first_entry + 1,
                                         k->first[entry] + k->count[entry] - first)))
                return 1;
            if (m->n >= UINT32_MAX / 2) {
                m->failed = TOPT_ERR_LIMIT;
                m->too_big = 1;
                return -1;
            }
        }
    return 0;
}

static enum topt_made failed(const struct maker *k, struct topt_error *err)
{
    const struct merge *m = &k->merge;
    if (m->failed == TOPT_ERR_CANCELED)
        topt_fail(err, TOPT_ERR_CANCELED, "the search was canceled");
    else if (m->failed == TOPT_ERR_NOMEM)
        topt_search_nomem(err);
    else if (m->too_big)
        topt_fail(
            err, TOPT_ERR_LIMIT,
            "the search needs more than %lld bytes; give a memory limit, an epsilon "
            "or fewer configurations",
            (long long)m->max_bytes);
    else
        topt_search_overflow(err);
    return TOPT_MADE_FAILED;
}

int topt_make_start(struct maker *k, struct topt_error *err)
{
    k->nbounds = 0;
    k->merge.limit = k->most.memory;
    k->merge.slowest = k->most.time;
    return topt_pareto_merge_begin(&k->merge) ? failed(k, err), -1 : 0;
}

/* For all entries that there are now; tables are added one by one, so half as many
 * again. */
static int make_room(struct maker *k)
{
    size_t n = (size_t)k->tables->nentries;
    if (n <= k->cap_entries)
        return 0;
    n += n / 2;
    if (TOPT_RESIZE(k->first, n) || TOPT_RESIZE(k->count, n))
        return -1;
    k->cap_entries = n;
    return 0;
}

enum topt_made topt_make_more(struct maker *k, size_t from, int64_t budget,
                              struct topt_error *err)
{
    const struct tables *ts = k->tables;
    if (make_room(k)) {
        k->merge.failed = TOPT_ERR_NOMEM;
        return failed(k, err);
    }
    k->budget = budget;
    for (size_t i = from; i < ts->nall; i++) {
        if (topt_search_canceled(k->merge.options))
            k->merge.failed = TOPT_ERR_CANCELED;
        int rc = k->merge.failed ? -1 : ts->all[i]->leaf ? 0 : make_table(k, ts->all[i]);
        if (rc < 0)
            return failed(k, err);
        if (rc || k->merge.products > budget)
            return TOPT_MADE_TOO_MUCH;
    }
    return TOPT_MADE;
}

int topt_make_part(struct maker *k, const struct table *from, const char *marked,
                   struct table *to, struct topt_error *err)
{
    struct merge *m = &k->merge;
    size_t at = 0;
    if (make_room(k)) {
        m->failed = TOPT_ERR_NOMEM;
        return failed(k, err), -1;
    }
    for (int64_t e = 0; e < to->nentries; e++) {
        struct run r = topt_entry_points(k, from, from->first_entry + e);
        uint32_t first = k->first[to->first_entry + e] = (uint32_t)m->n;
        for (uint32_t i = r.base; i < r.base + r.n; i++, at++) {
            struct topt_cost cost = from->leaf ? from->cost[i] : m->cost[i];
            if (marked[at] && topt_pareto_merge_put(m, cost, (struct back){i, 0}))
                return failed(k, err), -1;
        }
        k->count[to->first_entry + e] = (uint32_t)m->n - first;
    }
    return 0;
}

/* Every strategy has a part in every table: where one is without points, there is
 * nothing. */
static void make_empty(struct maker *k, size_t from)
{
    const struct tables *ts = k->tables;
    for (size_t i = from; i < ts->nall; i++)
        for (int64_t e = 0; !ts->all[i]->leaf && e < ts->all[i]->nentries; e++)
            k->first[ts->all[i]->first_entry + e] =
                k->count[ts->all[i]->first_entry + e] = 0;
}

enum topt_made topt_make(struct maker *k, int64_t budget, struct topt_error *err)
{
    const struct tables *ts = k->tables;
    struct merge *m = &k->merge;
    if (topt_pareto_merge_begin(m))
        return failed(k, err);
    budget = topt_min(budget, INT64_MAX / 2); /* its parts are added */
    k->budget = budget / FIRST_TABLE_PART;
    m->limit = k->most.memory;
    m->slowest = k->most.time;
    for (size_t i = 0; i < ts->nall; i++) {
        if (topt_search_canceled(m->options))
            m->failed = TOPT_ERR_CANCELED;
        size_t had = m->n;
        int rc = m->failed ? -1 : ts->all[i]->leaf ? 0 : make_table(k, ts->all[i]);
        if (rc < 0)
            return failed(k, err);
        if (topt_search_stopped(m->options))
            return TOPT_MADE_STOPPED;
        if (rc || (budget && m->products > k->budget))
            return TOPT_MADE_TOO_MUCH;
        if (!ts->all[i]->leaf && m->n == had) {
            make_empty(k, i + 1);
            return TOPT_MADE;
        }
        /* Later tables have more points than earlier ones: what is used up too early will
         * not do. */
        k->budget =
            budget / FIRST_TABLE_PART + budget / (int64_t)ts->nall * (int64_t)(i + 1);
    }
    return TOPT_MADE;
}
