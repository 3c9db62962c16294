/* What a swap costs at most, held against its definition, on random edges of every kind. */
#include "random_problem.h"
#include "substitution.h"
#include "tap.h"

#include <stdlib.h>

enum { MOST_CLASSES = 40, MOST_ALTERNATIVES = 2, TRIES = 400 };

struct edge {
    struct substitution_lists lists;
    uint32_t first[MOST_CLASSES * MOST_CLASSES + 1];
    struct topt_cost cost[MOST_CLASSES * MOST_CLASSES * MOST_ALTERNATIVES];
    char used[MOST_CLASSES];
};

/* Costs of every size, up to what comparisons give up at. */
static struct topt_cost cost_of_bits(struct rng *rng, int bits)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1;
    return (struct topt_cost){(int64_t)(rng_next(rng) & mask),
                              (int64_t)(rng_next(rng) & mask)};
}

static void roll_edge(struct edge *e, struct rng *rng)
{
    int from = 1 + rng_below(rng, MOST_CLASSES), to = 1 + rng_below(rng, MOST_CLASSES);
    int alternatives = 1 + rng_below(rng, MOST_ALTERNATIVES);
    int empty_percent = rng_below(rng, 3) * 30, bits = rng_below(rng, 2) ? 8 : 52;
    uint32_t n = 0;
    e->first[0] = 0;
    for (int i = 0; i < from * to; i++) {
        int some = rng_below(rng, 100) >= empty_percent;
        for (int k = 0; some && k < alternatives; k++)
            e->cost[n++] = cost_of_bits(rng, bits);
        if (some && alternatives > 1)
            n = n - 2 + (uint32_t)topt_reduce(&e->cost[n - 2], 2);
        e->first[i + 1] = n;
    }
    for (int i = 0; i < MOST_CLASSES; i++)
        e->used[i] = rng_below(rng, 4) > 0;
    e->lists = (struct substitution_lists){e->first, e->cost, from, to};
}

static int entry_of(const struct edge *e, int is_from, int own, int other)
{
    return is_from ? own * e->lists.to_classes + other
                   : other * e->lists.to_classes + own;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The definition; 0 where the swap is not possible. */
static int define(const struct edge *e, int is_from, int v, int w,
                  struct substitution *ret)
{
    int nother = is_from ? e->lists.to_classes : e->lists.from_classes;
    *ret = topt_substitution_start();
    for (int y = 0; y < nother; y++) {
        int a = entry_of(e, is_from, v, y), b = entry_of(e, is_from, w, y);
        int32_t na = (int32_t)(e->first[a + 1] - e->first[a]);
        int32_t nb = (int32_t)(e->first[b + 1] - e->first[b]);
        if (!e->used[y] || !na)
            continue;
        struct substitution one =
            topt_substitution_lists(&e->cost[e->first[a]], na, &e->cost[e->first[b]], nb);
        if (one.seen == TOPT_SUBSTITUTION_NEVER)
            return 0;
        ret->memory = max(ret->memory, one.memory);
        ret->time = max(ret->time, one.time);
    }
    return 1;
}

/* As callers do: a glance, then up to a limit, then to the end. */
static int as_defined(const struct edge *e, const struct substitution_side *s,
                      int is_from, int v, int w, struct topt_cost limit)
{
    static const struct topt_cost glance = {-TOPT_SUBSTITUTION_MOST - 1,
                                            -TOPT_SUBSTITUTION_MOST - 1},
                                  any = {TOPT_SUBSTITUTION_MOST, TOPT_SUBSTITUTION_MOST};
    struct substitution want, got = topt_substitution_start();
    int possible = define(e, is_from, v, w, &want), good = 1;
    const struct topt_cost limits[] = {glance, limit, any};
    for (int i = 0; i < 3; i++) {
        topt_substitution(s, v, w, limits[i], &got);
        if (got.seen == TOPT_SUBSTITUTION_NEVER)
            return !possible;
        int beyond = got.memory > limits[i].memory || got.time > limits[i].time;
        good &= topt_substitution_known(s, v, got) || beyond;
        good &= !possible || (got.memory <= want.memory && got.time <= want.time);
    }
    return good && possible && topt_substitution_known(s, v, got) &&
           got.memory == want.memory && got.time == want.time;
}

static int edge_is_right(struct rng *rng, struct edge *e, int is_from)
{
    struct topt_arena *a = topt_arena_create(0);
    struct substitution_side s;
    int good = a && !topt_substitution_side(&s, e->lists, is_from, e->used, a);
    int n = is_from ? e->lists.from_classes : e->lists.to_classes;
    for (int v = 0; v < n && good; v++)
        for (int w = 0; w < n && good; w++)
            good = as_defined(e, &s, is_from, v, w, cost_of_bits(rng, 9));
    topt_arena_destroy(a);
    return good;
}

int main(void)
{
    struct rng rng = {20261122};
    struct edge *e = malloc(sizeof *e);
    int wrong = 0;
    for (int i = 0; e && i < TRIES; i++) {
        roll_edge(e, &rng);
        wrong += !edge_is_right(&rng, e, i % 2);
    }
    ok(e && !wrong,
       "swaps cost what they are defined to cost, and until all is known no more");
    free(e);
    return done_testing();
}
