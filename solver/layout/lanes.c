/* lanes.c - the cheapest ways from many sources at once.
 *
 * Where there are not many layouts, and ways to most of them are asked for, it is quickest to find all
 * ways, from a number of sources together: each layout has as many keys side by side, the lanes, so
 * that a move is looked up once for all of them and keys are compared without branches.
 *
 * Keys are corrected until none changes (Bellman, 1958; Ford, 1956).  In sweeps: layouts with more
 * sums come first, since these never come back, then those where more is replicated, since slices
 * come first on most ways.  What a layout is come to from is not kept: a way is read backward from
 * its target, along moves whose keys are the difference of those of their ends.
 *
 * Keys are floating-point numbers, which processors compare two or four at a time: whole ones, and exact
 * up to 2 ** 53. */
#include "lanes.h"

#include <math.h>
#include <stdlib.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2")))
#endif

enum {
    LANES = TOPT_LANES,
    NONE = TOPT_ATLAS_NONE,
    MOST_SPOTS = 4096, /* else what is known of them outgrows caches */
    WORTH = 40         /* layouts that may be looked at for one question */
};

static const double MOST_KEY = 4503599627370496.0; /* 2 ** 52, more than an hour */

typedef double pair __attribute__((vector_size(16)));
typedef int64_t mask __attribute__((vector_size(16)));

/* A move to a layout. */
struct arrival {
    int32_t from, class;
};

/* All layouts of as many groups and dimensions, and the moves that lead to them. */
struct chart {
    int n;
    int32_t *order;
    int32_t *first; /* of those to a layout, and one more */
    struct arrival *arrival;
};

struct topt_lanes {
    topt_lower_fn *lower; /* the best for this processor */
    struct chart chart[TOPT_WAY_GROUPS + 1][TOPT_MAX_RANK + 1];
    double (*way)[LANES]; /* keys of the ways to a layout, by lane */
    uint8_t *fresh;       /* cheaper than when moves from it were looked at */
    int nways;
    struct topt_tariff *tariff;
    struct topt_atlas *atlas;
    const struct chart *on;
};

struct topt_lanes *topt_lanes_create(void)
{
    topt_lower_fn *lower[TOPT_LOWERS];
    struct topt_lanes *l = calloc(1, sizeof *l);
    if (l)
        l->lower = lower[topt_lanes_lowers(lower) - 1];
    return l;
}

static void chart_fini(struct chart *c)
{
    free(c->order);
    free(c->first);
    free(c->arrival);
    *c = (struct chart){0};
}

void topt_lanes_forget(struct topt_lanes *l)
{
    for (int g = 0; g <= TOPT_WAY_GROUPS; g++)
        for (int d = 0; d <= TOPT_MAX_RANK; d++)
            chart_fini(&l->chart[g][d]);
}

void topt_lanes_destroy(struct topt_lanes *l)
{
    if (!l)
        return;
    topt_lanes_forget(l);
    free(l->way);
    free(l->fresh);
    free(l);
}

/* Layouts with k of the groups in dimensions: which ones, in what order, cut into dimensions where;
 * others are replicated or sums. */
static int64_t count_layouts(int groups, int dims)
{
    int64_t all = 0, ways = 1; /* of k groups in dimensions */
    for (int k = 0; k <= groups; k++) {
        all += ways << (groups - k);
        ways = ways * (groups - k) * (dims + k) / (k + 1);
    }
    return all;
}

int topt_lanes_suit(const struct topt_way_source *s, int questions)
{
    int64_t n = count_layouts(s->ngroups, s->ndims);
    return n <= MOST_SPOTS && n <= (int64_t)WORTH * questions;
}

/* ---- charts ----------------------------------------------------------------------------------------- */

/* Not by number, which depends on what was asked before. */
struct ranked {
    int rank;
    int32_t spot;
    uint64_t state;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->rank != y->rank ? x->rank - y->rank
                              : (x->state > y->state) - (x->state < y->state);
}

static int rank_of(const struct topt_atlas *a, int32_t spot)
{
    int rank = 0;
    for (int g = 0; g < a->ngroups; g++) {
        int at = topt_way_at(a->spot[spot].state, g);
        rank -= at == TOPT_WAY_P ? TOPT_WAY_GROUPS + 1 : at == TOPT_WAY_R;
    }
    return rank;
}

static int put_in_order(struct chart *c, const struct topt_atlas *a)
{
    struct ranked *r = malloc((size_t)c->n * sizeof *r);
    if (!r)
        return -1;
    for (int i = 0; i < c->n; i++)
        r[i] = (struct ranked){rank_of(a, i), i, a->spot[i].state};
    qsort(r, (size_t)c->n, sizeof *r, by_rank);
    for (int i = 0; i < c->n; i++)
        c->order[i] = r[i].spot;
    free(r);
    return 0;
}

/* Sort the moves by where they lead to: count, then put. */
static void list_arrivals(struct chart *c, const struct topt_atlas *a)
{
    for (int pass = 0; pass < 2; pass++) {
        for (int32_t s = 0; s < c->n; s++) {
            struct topt_atlas_moves m = a->spot[s].out;
            for (int32_t i = m.first; i < m.first + m.n; i++)
                for (int k = 0; k < a->class[i].narcs; k++) {
                    int32_t to = a->arc[a->class[i].arc + k];
                    if (pass)
                        c->arrival[--c->first[to]] = (struct arrival){s, i};
                    else
                        c->first[to]++;
                }
        }
        for (int s = 1; !pass && s <= c->n; s++)
            c->first[s] += c->first[s - 1];
    }
}

static int make_chart(struct chart *c, struct topt_atlas *a)
{
    if (topt_atlas_list_all(a))
        return -1;
    c->n = a->nspots;
    c->order = malloc((size_t)c->n * sizeof *c->order);
    c->first = calloc((size_t)c->n + 1, sizeof *c->first);
    c->arrival = malloc((size_t)a->narcs * sizeof *c->arrival + 1);
    if (!c->order || !c->first || !c->arrival || put_in_order(c, a)) {
        chart_fini(c);
        return -1;
    }
    list_arrivals(c, a);
    return 0;
}

static int begin(struct topt_lanes *l, struct topt_tariff *t, struct topt_atlas *a)
{
    struct chart *c = &l->chart[a->ngroups][a->ndims];
    if (!c->n && make_chart(c, a))
        return -1;
    if (l->nways < c->n) {
        double(*way)[LANES] = malloc((size_t)c->n * sizeof *way);
        uint8_t *fresh = malloc((size_t)c->n);
        free(l->way);
        free(l->fresh);
        l->way = way;
        l->fresh = fresh;
        l->nways = way && fresh ? c->n : 0;
        if (!l->nways)
            return -1;
    }
    for (int i = 0; i < c->n; i++)
        for (int k = 0; k < LANES; k++)
            l->way[i][k] = INFINITY;
    memset(l->fresh, 0, (size_t)c->n);
    l->tariff = t;
    l->atlas = a;
    l->on = c;
    return 0;
}

/* ---- sweeps ----------------------------------------------------------------------------------------- */

static inline double key_at(const struct topt_lanes *l, int32_t spot, int lane)
{
    return l->way[spot][lane];
}

/* Make ways to a layout as cheap as those given; whether any got cheaper. */
static inline int lower_one(double *to, const pair *way)
{
    mask any = {0, 0};
    for (int k = 0; k < LANES; k += 2) {
        pair at = {to[k], to[k + 1]};
        mask less = way[k / 2] < at;
        at = (pair)((less & (mask)way[k / 2]) | (~less & (mask)at));
        to[k] = at[0];
        to[k + 1] = at[1];
        any |= less;
    }
    return (any[0] | any[1]) != 0;
}

static void lower(double (*way)[LANES], uint8_t *fresh, const int32_t *to, int n,
                  const double *here, double step)
{
    pair by[LANES / 2];
    for (int k = 0; k < LANES; k += 2)
        by[k / 2] = (pair){here[k] + step, here[k + 1] + step};
    for (int i = 0; i < n; i++)
        fresh[to[i]] |= (uint8_t)lower_one(way[to[i]], by);
}

#ifdef WIDE
WIDE static inline int lower_one_wide(double *to, const __m256d by[LANES / 4])
{
    __m256d any = _mm256_setzero_pd();
    for (int k = 0; k < LANES / 4; k++) {
        __m256d at = _mm256_loadu_pd(to + 4 * k);
        any = _mm256_or_pd(any, _mm256_cmp_pd(by[k], at, _CMP_LT_OQ));
        _mm256_storeu_pd(to + 4 * k, _mm256_min_pd(by[k], at));
    }
    return _mm256_movemask_pd(any) != 0;
}

WIDE static void lower_wide(double (*way)[LANES], uint8_t *fresh, const int32_t *to,
                            int n, const double *here, double step)
{
    __m256d by[LANES / 4];
    for (int k = 0; k < LANES / 4; k++)
        by[k] = _mm256_add_pd(_mm256_loadu_pd(here + 4 * k), _mm256_set1_pd(step));
    for (int i = 0; i < n; i++)
        fresh[to[i]] |= (uint8_t)lower_one_wide(way[to[i]], by);
}
#endif

int topt_lanes_lowers(topt_lower_fn *ret[TOPT_LOWERS])
{
    int n = 0;
    ret[n++] = lower;
#ifdef WIDE
    if (__builtin_cpu_supports("avx2"))
        ret[n++] = lower_wide;
#endif
    return n;
}

static void leave(struct topt_lanes *l, int32_t spot, struct topt_route_stats *stats)
{
    const struct topt_atlas *a = l->atlas;
    struct topt_atlas_moves m = topt_tariff_moves(l->tariff, spot);
    const int64_t *key = topt_tariff_keys(l->tariff);
    double here[LANES];
    memcpy(here, l->way[spot], sizeof here);
    stats->settled++;
    for (int32_t i = m.first; i < m.first + m.n; i++) {
        const struct topt_atlas_class *c = &a->class[i];
        if (key[i] == NONE)
            continue;
        stats->relaxed += c->narcs;
        l->lower(l->way, l->fresh, a->arc + c->arc, c->narcs, here, (double)key[i]);
    }
}

static void sweep(struct topt_lanes *l, struct topt_route_stats *stats)
{
    for (int any = 1; any;) {
        any = 0;
        for (int i = 0; i < l->on->n; i++) {
            int32_t spot = l->on->order[i];
            if (!l->fresh[spot])
                continue;
            any = 1;
            l->fresh[spot] = 0;
            leave(l, spot, stats);
        }
    }
}

/* ---- answers ---------------------------------------------------------------------------------------- */

/* The last stop before 'spot': of equal ways the one whose last stop is cheapest, then first. */
static int32_t stop_before(const struct topt_lanes *l, int32_t spot, int lane)
{
    const struct chart *c = l->on;
    const int64_t *key = topt_tariff_keys(l->tariff);
    double here = key_at(l, spot, lane), least = INFINITY;
    int32_t best = NONE;
    for (int32_t i = c->first[spot]; i < c->first[spot + 1]; i++) {
        struct arrival x = c->arrival[i];
        double at = key_at(l, x.from, lane);
        if (at > least || at >= here || key[x.class] == NONE ||
            at + (double)key[x.class] != here)
            continue;
        if (at < least || l->atlas->spot[x.from].state < l->atlas->spot[best].state)
            best = x.from;
        least = at;
    }
    return best;
}

static int answer(struct topt_lanes *l, struct topt_way_question *q, int lane,
                  struct topt_arena *arena)
{
    int32_t stop[1 << TOPT_KEY_BITS];
    int32_t spot = topt_atlas_number(l->atlas, q->to);
    double way = key_at(l, spot, lane);
    if (way >= MOST_KEY)
        return 0;
    int len = topt_key_moves((int64_t)way);
    stop[len] = spot;
    for (int i = len; i > 0; i--)
        stop[i - 1] = stop_before(l, stop[i], lane);
    q->way.ns = (int64_t)way >> TOPT_KEY_BITS;
    q->way.step = TOPT_NEW(arena, len, struct topt_way_step);
    if (!q->way.step)
        return -1;
    q->way.nsteps = topt_atlas_steps(l->atlas, q->source.size, stop, len, q->way.step);
    return 0;
}

int topt_lanes_answer(struct topt_lanes *l, struct topt_tariff *t,
                      struct topt_atlas *atlas, struct topt_way_question *const *question,
                      int n, struct topt_arena *arena, struct topt_route_stats *stats)
{
    int lane = -1;
    if (begin(l, t, atlas))
        return -1;
    for (int i = 0; i < n; i++) {
        uint64_t from = question[i]->source.from;
        if (i && from == question[i - 1]->source.from)
            continue;
        int32_t spot = topt_atlas_number(atlas, from);
        lane++;
        l->way[spot][lane] = 0;
        l->fresh[spot] = 1;
        stats->trees++;
    }
    sweep(l, stats);
    if (topt_tariff_failed(t))
        return -1;
    lane = 0;
    for (int i = 0; i < n; i++) {
        lane += i && question[i]->source.from != question[i - 1]->source.from;
        if (answer(l, question[i], lane, arena))
            return -1;
    }
    return 0;
}
