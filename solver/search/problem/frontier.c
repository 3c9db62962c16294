/* frontier.c - what a search answers: costs, with a strategy each.
 *
 * Costs are an array; strategies are a list of differences (strategies.h), which readers
 * make whole one at a time. */
#include "frontier.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

struct frontier_memory {
    struct strategies strategies;
    struct topt_cost *cost;
    int32_t *heuristic;
    size_t cap, first; /* first: number of the strategy that the first point has */
    int nops;
};

struct topt_frontier_reader {
    struct strategy_reader reader;
    const struct topt_frontier *frontier;
    struct topt_search_point point;
};

/* ---- being made -------------------------------------------------------------------- */

struct topt_frontier *topt_frontier_create(const struct topt_search_problem *problem,
                                           struct topt_error *err)
{
    size_t width = (size_t)problem->nops + (size_t)problem->nedges;
    struct topt_frontier *f = calloc(1, sizeof *f);
    struct frontier_memory *m = calloc(1, sizeof *m);
    if (f)
        f->memory = m;
    if (!f || !m) {
        topt_search_nomem(err);
        free(m);
        free(f);
        return NULL;
    }
    f->exact = 1;
    m->nops = problem->nops;
    if (topt_strategies_init(&m->strategies, width, err)) {
        topt_frontier_destroy(f);
        return NULL;
    }
    return f;
}

/* Room for one more cost. */
static int make_room(struct topt_frontier *f)
{
    struct frontier_memory *m = f->memory;
    size_t n = (size_t)f->npoints;
    if (n == INT32_MAX || TOPT_ROOM(m->cost, n, m->cap, 16))
        return -1;
    f->cost = m->cost;
    return 0;
}

int topt_frontier_add(struct topt_frontier *f, struct topt_cost cost,
                      const int32_t *choice, struct topt_error *err)
{
    struct frontier_memory *m = f->memory;
    if (make_room(f))
        return topt_search_nomem(err);
    if (topt_strategies_add(&m->strategies, choice, err))
        return -1;
    m->cost[f->npoints++] = cost;
    return 0;
}

int topt_frontier_add_changes(struct topt_frontier *f, struct topt_cost cost,
                              const struct change *change, size_t n,
                              struct topt_error *err)
{
    struct frontier_memory *m = f->memory;
    if (make_room(f))
        return topt_search_nomem(err);
    if (topt_strategies_add_changes(&m->strategies, change, n, err))
        return -1;
    m->cost[f->npoints++] = cost;
    return 0;
}

static int by_cost(const void *x, const void *y)
{
    const struct pick *a = x, *b = y;
    int by = topt_cost_order(a->cost, b->cost);
    if (by)
        return by;
    if (a->list != b->list)
        return a->list < b->list ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static size_t reduce(struct pick *all, size_t n)
{
    size_t kept = 0;
    if (n > 1)
        qsort(all, n, sizeof *all, by_cost);
    for (size_t i = 0; i < n; i++)
        if (!kept || all[i].cost.time < all[kept - 1].cost.time)
            all[kept++] = all[i];
    return kept;
}

/* A pick that follows the one before it in its list is added by its changes.  Readers
 * stand still while others go on; one that is at its end is closed. */
static int add_pick(struct topt_frontier *f, struct strategy_reader *r,
                    const struct strategies *list, const struct pick *before,
                    const struct pick *pick, struct topt_error *err)
{
    if (before && before->list == pick->list && before->at + 1 == pick->at) {
        const size_t *end = &list->end[before->at];
        return topt_frontier_add_changes(f, pick->cost, list->change + end[0],
                                         end[1] - end[0], err);
    }
    if (!r->choice && topt_strategy_reader_init(r, list, err))
        return -1;
    if (topt_frontier_add(f, pick->cost, topt_strategy_read(r, pick->at), err))
        return -1;
    if (pick->at + 1 == list->n)
        topt_strategy_reader_fini(r);
    return 0;
}

int topt_frontier_collect(struct topt_frontier *f, const struct strategies *const *list,
                          size_t nlists, struct pick *pick, size_t n,
                          struct topt_error *err)
{
    struct strategy_reader *reader = calloc(nlists + 1, sizeof *reader);
    if (!reader)
        return topt_search_nomem(err);
    int rc = 0;
    n = reduce(pick, n);
    for (size_t i = 0; i < n && !rc; i++)
        rc = add_pick(f, &reader[pick[i].list], list[pick[i].list],
                      i ? &pick[i - 1] : NULL, &pick[i], err);
    for (size_t i = 0; i < nlists; i++)
        topt_strategy_reader_fini(&reader[i]);
    free(reader);
    return rc;
}

int topt_frontier_decided(struct topt_frontier *f, const int32_t *fixed, int nops,
                          struct topt_error *err)
{
    struct frontier_memory *m = f->memory;
    m->heuristic = malloc(((size_t)nops + 1) * sizeof *m->heuristic);
    if (!m->heuristic)
        return topt_search_nomem(err);
    f->heuristic = m->heuristic;
    for (int i = 0; i < nops; i++)
        if (fixed[i] >= 0)
            m->heuristic[f->nheuristic++] = i;
    return 0;
}

void topt_frontier_keep_wanted(struct topt_frontier *f,
                               const struct topt_search_options *o)
{
    struct frontier_memory *m = f->memory;
    int from = 0;
    while (o->time_limit && from < f->npoints && f->cost[from].time > o->time_limit)
        from++;
    if (o->fastest && f->npoints > from)
        from = f->npoints - 1;
    if (!from) /* and perhaps no costs to point into */
        return;
    f->npoints -= from;
    f->cost += from;
    m->first += (size_t)from;
}

struct strategies *topt_frontier_strategies(struct topt_frontier *f)
{
    struct frontier_memory *m = f->memory;
    return &m->strategies;
}

void topt_frontier_destroy(struct topt_frontier *f)
{
    struct frontier_memory *m = f ? f->memory : NULL;
    if (m) {
        topt_strategies_fini(&m->strategies);
        free(m->cost);
        free(m->heuristic);
    }
    free(m);
    free(f);
}

/* ---- being asked ------------------------------------------------------------------- */

void topt_search_stats_add(struct topt_search_stats *into,
                           const struct topt_search_stats *from)
{
    into->products += from->products;
    into->points += from->points;
    into->tables += from->tables;
    into->shared += from->shared;
    into->bands += from->bands;
    if (from->peak_bytes > into->peak_bytes)
        into->peak_bytes = from->peak_bytes;
    if (from->max_frontier > into->max_frontier)
        into->max_frontier = from->max_frontier;
}

struct topt_frontier_reader *topt_frontier_reader(const struct topt_frontier *f,
                                                  struct topt_error *err)
{
    const struct frontier_memory *m = f->memory;
    struct topt_frontier_reader *r = calloc(1, sizeof *r);
    if (!r) {
        topt_search_nomem(err);
        return NULL;
    }
    r->frontier = f;
    if (topt_strategy_reader_init(&r->reader, &m->strategies, err)) {
        free(r);
        return NULL;
    }
    return r;
}

const struct topt_search_point *topt_frontier_read(struct topt_frontier_reader *r, int i)
{
    const struct frontier_memory *m = r->frontier->memory;
    const int32_t *choice = topt_strategy_read(&r->reader, m->first + (size_t)i);
    r->point = (struct topt_search_point){r->frontier->cost[i], choice, choice + m->nops};
    return &r->point;
}

void topt_frontier_reader_destroy(struct topt_frontier_reader *r)
{
    if (r)
        topt_strategy_reader_fini(&r->reader);
    free(r);
}
