/* substitution.c - what it costs at most on an edge that one end takes another class.
 *
 *          v ---- y            w instead of v, whatever y is:
 *     x <            y'
 *          w ---- y''          max over y of  edge(w, y) - edge(v, y),  in memory and in time
 *
 * Only those y count that v may still stand beside.  Nobody asks for that maximum unless
 * it is small, and most are large: it is found alternative by alternative, from where v
 * is at its best (there w is likely to cost more), only until it is more than the caller
 * asks can use.
 *
 * Where no pair has more than one alternative, and costs are not too large for doubles,
 * they are written out as rows, class after class, so that a processor looks at several y
 * at a time. */
#include "substitution.h"

#include "topt_minmax.h"

#include <math.h>
#include <stdlib.h>

enum { LANES = 16 }; /* numbers of a row that are looked at together */

/* In rows costs are below it, so that doubles have them and their differences exactly. */
static const double ROW_MOST = 0x1p50;

/* Costs by class v and column, at v * stride + column: a column for every class y that
 * the other end may take. Where v can't stand beside y it is INFINITY: taking its place
 * then costs that, giving it up -INFINITY, and where neither can the difference is no
 * number, which is never more than another. */
struct substitution_rows {
    int stride;
    const double *cost[2]; /* memory, time */
    int32_t
        *best; /* by class: where it costs least, which is looked at first; -1 nowhere */
};

/* Walk over all entries in order: count what every class may have (one place on, in
 * 'first'), or fill in what it is, from 'first' on, which moves. */
static void walk(const struct substitution_side *s, int is_from, const char *used,
                 uint32_t *first, struct substitution_held *held)
{
    const uint32_t *at = s->lists.first;
    for (int f = 0; f < s->lists.from_classes; f++)
        for (int t = 0; t < s->lists.to_classes; t++, at++) {
            int own = is_from ? f : t, other = is_from ? t : f;
            if (used && !used[other])
                continue;
            for (uint32_t k = at[0]; k < at[1]; k++) {
                if (held)
                    held[first[own]] = (struct substitution_held){other, k};
                first[own]++;
            }
        }
}

/* Where a class costs least is looked at first. */
static void best_first(const struct substitution_side *s, int v)
{
    struct substitution_held *held = s->held + s->first[v];
    uint32_t n = s->first[v + 1] - s->first[v], best = 0;
    const struct topt_cost *cost = s->lists.cost;
    for (uint32_t i = 1; i < n; i++) {
        struct topt_cost a = cost[held[i].at], b = cost[held[best].at];
        if (a.time < b.time || (a.time == b.time && a.memory < b.memory))
            best = i;
    }
    if (n) {
        struct substitution_held first = held[0];
        held[0] = held[best];
        held[best] = first;
    }
}

/* ---- rows -------------------------------------------------------------------------- */

/* Make 'worst' at least what replacing v by w costs in LANES columns of their rows.  Is any of
 * them beyond the limit? */
static int raise_lanes(const double *v, const double *w, double limit, double *worst)
{
    int64_t over[LANES], any = 0;
    for (int i = 0; i < LANES; i++) {
        double cost = w[i] - v[i];
        worst[i] = cost > worst[i] ? cost : worst[i];
        over[i] = cost > limit;
    }
    for (int i = 0; i < LANES; i++)
        any |= over[i];
    return any != 0;
}

/* Do rows do?  At most one alternative everywhere, of moderate cost. */
static int rows_do(const struct substitution_lists *l)
{
    int64_t n = (int64_t)l->from_classes * l->to_classes;
    for (int64_t e = 0; e < n; e++)
        if (l->first[e + 1] - l->first[e] > 1)
            return 0;
    for (uint32_t k = l->first[0]; k < l->first[n]; k++)
        if ((double)l->cost[k].memory >= ROW_MOST || (double)l->cost[k].time >= ROW_MOST)
            return 0;
    return 1;
}

/* The columns' classes, in order; as many as '*ret'. */
static int32_t *find_columns(const struct substitution_side *s, const char *used,
                             int *ret, struct topt_arena *a)
{
    int32_t *column = TOPT_NEW(a, s->nother, int32_t);
    *ret = 0;
    for (int y = 0; column && y < s->nother; y++)
        if (!used || used[y])
            column[(*ret)++] = y;
    return column;
}

/* Write a class's row, filled up to the stride. */
static void fill_row(const struct substitution_side *s, int v, const int32_t *column,
                     int n, double *memory, double *time)
{
    const uint32_t *first = s->lists.first + v * s->own_step;
    for (int i = 0; i < n; i++) {
        const uint32_t *at = &first[column[i] * s->other_step];
        const struct topt_cost *c = &s->lists.cost[at[0]];
        int some = at[1] > at[0];
        memory[i] = some ? (double)c->memory : INFINITY;
        time[i] = some ? (double)c->time : INFINITY;
    }
    for (int i = n; i < s->rows->stride; i++)
        memory[i] = time[i] = INFINITY;
}

/* How many of a row there are, and the best. */
static uint32_t find_best_of_row(const double *memory, const double *time, int n,
                                 int32_t *ret_best)
{
    uint32_t some = 0;
    int best = 0;
    for (int i = 0; i < n; i++) {
        some += time[i] < INFINITY;
        if (time[i] < time[best] || (time[i] == time[best] && memory[i] < memory[best]))
            best = i;
    }
    *ret_best = some ? best : -1;
    return some;
}

static int make_rows(struct substitution_side *s, const char *used, struct topt_arena *a)
{
    int n;
    int32_t *column = find_columns(s, used, &n, a);
    struct substitution_rows *r = s->rows = TOPT_NEW(a, 1, struct substitution_rows);
    if (!column || !r)
        return -1;
    r->stride = (n + LANES - 1) / LANES * LANES;
    r->best = TOPT_NEW(a, s->nclasses, int32_t);
    double *memory = TOPT_NEW(a, (size_t)s->nclasses * (size_t)r->stride, double);
    double *time = TOPT_NEW(a, (size_t)s->nclasses * (size_t)r->stride, double);
    if (!r->best || !memory || !time)
        return -1;
    r->cost[0] = memory;
    r->cost[1] = time;
    for (int v = 0; v < s->nclasses; v++, memory += r->stride, time += r->stride) {
        fill_row(s, v, column, n, memory, time);
        s->first[v + 1] = s->first[v] + find_best_of_row(memory, time, n, &r->best[v]);
    }
    return 0;
}

/* Make 'swap' at least as much. */
static void raise_to(struct substitution *swap, double memory, double time)
{
    static const double most = (double)TOPT_SUBSTITUTION_MOST;
    if (memory > most || time > most) {
        swap->seen = TOPT_SUBSTITUTION_NEVER;
        return;
    }
    if (memory > (double)swap->memory)
        swap->memory = (int64_t)memory;
    if (time > (double)swap->time)
        swap->time = (int64_t)time;
}

/* Rows from a column on, until one is beyond the limit.  Returns where. */
static int32_t walk_rows(const struct substitution_rows *r, int v, int w, int32_t at,
                         struct topt_cost limit, struct substitution *swap)
{
    const double *of_v[2], *of_w[2];
    const int64_t most[2] = {limit.memory, limit.time};
    double lane[2][LANES], worst[2];
    int over = 0;
    for (int k = 0; k < 2; k++) {
        of_v[k] = r->cost[k] + (int64_t)v * r->stride;
        of_w[k] = r->cost[k] + (int64_t)w * r->stride;
        for (int i = 0; i < LANES; i++)
            lane[k][i] = -INFINITY;
    }
    for (; at < r->stride && !over; at += LANES)
        for (int k = 0; k < 2; k++)
            over |= raise_lanes(of_v[k] + at, of_w[k] + at, (double)most[k], lane[k]);
    for (int k = 0; k < 2; k++) {
        worst[k] = lane[k][0];
        for (int i = 1; i < LANES; i++)
            worst[k] = lane[k][i] > worst[k] ? lane[k][i] : worst[k];
    }
    raise_to(swap, worst[0], worst[1]);
    return at;
}

/* The substitution's cost where v is at its best. */
static void glance(const struct substitution_rows *r, int v, int w,
                   struct substitution *swap)
{
    int64_t at_v = (int64_t)v * r->stride + r->best[v],
            at_w = (int64_t)w * r->stride + r->best[v];
    swap->seen = 1;
    raise_to(swap, r->cost[0][at_w] - r->cost[0][at_v],
             r->cost[1][at_w] - r->cost[1][at_v]);
}

/* Seen are first 0, then the best alternative, then so many columns, and one. */
static int64_t substitution_rows(const struct substitution_side *s, int v, int w,
                                 struct topt_cost limit, struct substitution *swap)
{
    const struct substitution_rows *r = s->rows;
    int32_t before = swap->seen;
    if (before == TOPT_SUBSTITUTION_NEVER || r->best[v] < 0 || before > r->stride)
        return 1;
    if (!before)
        glance(r, v, w, swap);
    if (swap->seen == TOPT_SUBSTITUTION_NEVER || swap->memory > limit.memory ||
        swap->time > limit.time)
        return 1;
    int32_t from = swap->seen - 1, to = walk_rows(r, v, w, from, limit, swap);
    if (swap->seen != TOPT_SUBSTITUTION_NEVER)
        swap->seen = to + 1;
    return to - from + !before;
}

int topt_substitution_known(const struct substitution_side *s, int v,
                            struct substitution swap)
{
    uint32_t n = s->first[v + 1] - s->first[v];
    return !n || (s->rows ? swap.seen > s->rows->stride : swap.seen == (int32_t)n);
}

/* ---- all of it --------------------------------------------------------------------- */

int topt_substitution_side(struct substitution_side *s, struct substitution_lists lists,
                           int is_from, const char *used, struct topt_arena *a)
{
    int from = lists.from_classes, to = lists.to_classes;
    *s = (struct substitution_side){.lists = lists,
                                    .own_step = is_from ? to : 1,
                                    .other_step = is_from ? 1 : to,
                                    .nclasses = is_from ? from : to,
                                    .nother = is_from ? to : from};
    s->first = TOPT_NEW(a, s->nclasses + 2, uint32_t);
    if (!s->first)
        return -1;
    if (rows_do(&lists))
        return make_rows(s, used, a);
    walk(s, is_from, used, s->first + 2, NULL);
    for (int v = 2; v <= s->nclasses + 1; v++)
        s->first[v] += s->first[v - 1];
    s->held = TOPT_NEW(a, s->first[s->nclasses + 1], struct substitution_held);
    if (!s->held)
        return -1;
    walk(s, is_from, used, s->first + 1, s->held);
    for (int v = 0; v < s->nclasses; v++)
        best_first(s, v);
    return 0;
}

/* The alternative that stands best for another: the fastest of those that are no heavier,
 * or else the lightest. */
static const struct topt_cost *closest_alternative(const struct topt_cost *w, int32_t n,
                                                   struct topt_cost v)
{
    const struct topt_cost *best = w;
    for (int32_t k = 1; k < n; k++) {
        int fits = w[k].memory <= v.memory, fit = best->memory <= v.memory;
        if ((fits && (!fit || w[k].time < best->time)) ||
            (!fits && !fit && w[k].memory < best->memory))
            best = &w[k];
    }
    return best;
}

/* Make 'swap' what it costs where there is this alternative as well. */
static void add(struct substitution *swap, struct topt_cost v, const struct topt_cost *w,
                int32_t n)
{
    if (!n) {
        swap->seen = TOPT_SUBSTITUTION_NEVER;
        return;
    }
    const struct topt_cost *in = n > 1 ? closest_alternative(w, n, v) : w;
    int64_t memory = in->memory - v.memory, time = in->time - v.time;
    swap->memory = topt_max(swap->memory, memory);
    swap->time = topt_max(swap->time, time);
    if (memory > TOPT_SUBSTITUTION_MOST || time > TOPT_SUBSTITUTION_MOST)
        swap->seen = TOPT_SUBSTITUTION_NEVER;
}

struct substitution topt_substitution_lists(const struct topt_cost *v, int32_t nv,
                                            const struct topt_cost *w, int32_t nw)
{
    struct substitution ret = topt_substitution_start();
    for (int32_t k = 0; k < nv && ret.seen != TOPT_SUBSTITUTION_NEVER; k++)
        add(&ret, v[k], w, nw);
    return ret;
}

int64_t topt_substitution(const struct substitution_side *s, int v, int w,
                          struct topt_cost limit, struct substitution *swap)
{
    if (s->rows)
        return substitution_rows(s, v, w, limit, swap);
    const struct substitution_held *held = s->held + s->first[v];
    int32_t n = (int32_t)(s->first[v + 1] - s->first[v]), before = swap->seen, i = before;
    int64_t row = w * s->own_step;
    if (before == TOPT_SUBSTITUTION_NEVER)
        return 1;
    while (i < n && swap->seen != TOPT_SUBSTITUTION_NEVER &&
           (i == before || (swap->memory <= limit.memory && swap->time <= limit.time))) {
        const uint32_t *first = &s->lists.first[row + held[i].other * s->other_step];
        add(swap, s->lists.cost[held[i].at], s->lists.cost + first[0],
            (int32_t)(first[1] - first[0]));
        i++;
    }
    if (swap->seen != TOPT_SUBSTITUTION_NEVER)
        swap->seen = i;
    return i > before ? i - before : 1;
}
