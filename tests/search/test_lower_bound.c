/* Weighings against every strategy of small random problems, and of deep chains of alike
 * layers against plain dynamic programming. */
#include "factor_tuning.h"
#include "min_plus.h"
#include "random_problem.h"
#include "sizes.h"
#include "tap.h"
#include "topt_lower_bound.h"

#include <math.h>
#include <string.h>

#define NONE INT64_MAX

static int64_t weight(struct topt_scalarization by, struct topt_cost c)
{
    return by.memory * c.memory + by.time * c.time;
}

/* The least weight of each configuration, into least[op][config]. */
struct brute {
    const struct topt_search_problem *p;
    struct topt_scalarization by;
    int32_t config[16];
    int64_t least[16][16], all;
};

static int64_t weigh_edges(const struct brute *b)
{
    int64_t sum = 0;
    for (int i = 0; i < b->p->nedges; i++) {
        const struct topt_search_edge *e = &b->p->edge[i];
        int entry = e->from_class[b->config[e->from]] * e->table->to_classes +
                    e->to_class[b->config[e->to]];
        int64_t best = NONE;
        for (int32_t k = e->table->first[entry]; k < e->table->first[entry + 1]; k++) {
            int64_t w = weight(b->by, e->table->alt[k]);
            best = w < best ? w : best;
        }
        if (best == NONE)
            return NONE;
        sum += best;
    }
    return sum;
}

static void visit(struct brute *b, int op, int64_t sum)
{
    if (op < b->p->nops) {
        for (int c = 0; c < b->p->op[op].nconfigs; c++) {
            b->config[op] = c;
            visit(b, op + 1, sum + weight(b->by, b->p->op[op].cost[c]));
        }
        return;
    }
    int64_t edges = weigh_edges(b), w = edges == NONE ? NONE : sum + edges;
    b->all = w < b->all ? w : b->all;
    for (int i = 0; i < b->p->nops; i++) {
        int64_t *x = &b->least[i][b->config[i]];
        *x = w < *x ? w : *x;
    }
}

/* Of operators that are alike one number is kept, the least. */
static int64_t least_of_alike(const struct brute *b, int op, int config)
{
    int64_t least = b->least[op][config];
    for (int i = 0; i < b->p->nops; i++)
        if (b->p->op[i].cost == b->p->op[op].cost && b->least[i][config] < least)
            least = b->least[i][config];
    return least;
}

/* Where the lightest strategy with a configuration stands between the lightest of all, 0,
 * and the corner, 1. */
static double stands(const struct topt_lower_bound *w, struct topt_cost corner, int op,
                     int config)
{
    struct topt_weights by = topt_lower_bound_weights(w);
    int64_t through = topt_lower_bound_min_marginal(w, op, config);
    double most =
        (double)by.memory * (double)corner.memory + (double)by.time * (double)corner.time;
    if (through == INT64_MAX)
        return INFINITY;
    return through > by.least ? (double)(through - by.least) / (most - (double)by.least)
                              : 0;
}

/* Does the weigher say of every configuration what brute force does, up to a corner?
 * Which operators are alike depends on their edges, too: what it says is between the two. */
static int agrees(struct topt_lower_bound *w, const struct brute *b,
                  struct topt_cost corner)
{
    int some, good = 1;
    int64_t most = weight(b->by, corner);
    if (topt_lower_bound_within(w, corner, &some, NULL))
        return 0;
    if (some != (b->all <= most))
        return 0;
    for (int i = 0; some && i < b->p->nops; i++)
        for (int c = 0; c < b->p->op[i].nconfigs; c++) {
            double at = stands(w, corner, i, c);
            int64_t x = b->least[i][c], y = least_of_alike(b, i, c);
            double room = most > b->all ? (double)(most - b->all) : 1;
            double want = (double)(x - b->all) / room, low = (double)(y - b->all) / room;
            good &= x > most ? at > 1 || x > y : at < want + 1e-9;
            good &= y > most ? at > 1 : at > low - 1e-9;
        }
    return good;
}

static void start(struct brute *b, const struct topt_search_problem *p, struct rng *rng)
{
    *b = (struct brute){.p = p, .all = NONE};
    b->by = (struct topt_scalarization){rng_below(rng, 9), 1 + rng_below(rng, 9)};
    for (int i = 0; i < 16; i++)
        for (int c = 0; c < 16; c++)
            b->least[i][c] = NONE;
    visit(b, 0, 0);
}

static int one(struct rng *rng, enum shape shape, int *with)
{
    struct random_problem g;
    struct topt_lower_bound *w;
    int big = rng_below(rng, 4) == 0, some;
    problem_make(&g, rng,
                 (struct random_spec){.shape = shape,
                                      .nops = 2 + rng_below(rng, 5),
                                      .max_configs = 4,
                                      .max_alternatives = 1 + rng_below(rng, 3),
                                      .max_cost = big ? 100000000 : 20,
                                      .empty_percent = rng_below(rng, 2) * 25,
                                      .classes_percent = rng_below(rng, 2) * 60});
    struct brute b;
    start(&b, &g.p, rng);
    struct topt_search_options o = {.threads = 1};
    struct topt_cost far = {3000000000, 3000000000}, c;
    int good = !topt_lower_bound_create(&g.p, &o, &w, NULL);
    good = good && !topt_lower_bound_scalarize(w, b.by, far, NULL) &&
           !topt_lower_bound_lightest(w, &some, &c, NULL) && some == (b.all < NONE) &&
           (!some || weight(b.by, c) == b.all);
    if (good && some) {
        struct topt_cost near = {c.memory + (c.memory + 1) / 4, c.time};
        good = agrees(w, &b, near) && agrees(w, &b, c) && agrees(w, &b, far);
        *with += good;
    }
    topt_lower_bound_destroy(w);
    problem_free(&g);
    return good;
}

static void test_against_brute_force(void)
{
    struct rng rng = {11};
    int good = 0, with = 0, n = 0;
    for (; n < 1500; n++)
        good += one(&rng, (enum shape)(n % SHAPES), &with);
    is_int(good, n, "each configuration's least weight equals brute force");
    ok(with > n / 2 && with < n, "%d of %d have a strategy", with, n);
}

/* Two operators with two edges, in a ring: what lies between them is added up before a
 * third operator comes to it, so that no table is over three. */
static void test_ring(void)
{
    enum { FEW = 2, SOME = 5, MANY = 10, ALL_THREE = FEW * SOME * MANY };
    static struct topt_cost alt[ALL_THREE];
    static int32_t first[ALL_THREE + 1], class_of[MANY];
    for (int i = 0; i < ALL_THREE; i++) {
        alt[i] = (struct topt_cost){1 + i * 7 % 11, 1 + i * 5 % 13};
        first[i + 1] = i + 1;
    }
    for (int c = 0; c < MANY; c++)
        class_of[c] = c;
    struct topt_table rx = {FEW, SOME, first, alt}, ry = {FEW, MANY, first, alt},
                      xy = {SOME, MANY, first, alt};
    struct topt_search_op op[] = {{"r", FEW, alt}, {"x", SOME, alt}, {"y", MANY, alt}};
    struct topt_search_edge edge[] = {{0, 1, &rx, class_of, class_of},
                                      {0, 2, &ry, class_of, class_of},
                                      {0, 2, &ry, class_of, class_of},
                                      {1, 2, &xy, class_of, class_of}};
    struct topt_search_problem p = {3, op, 4, edge};
    struct topt_search_options o = {.threads = 1, .max_entries = ALL_THREE - 1};
    struct topt_lower_bound *w = NULL;
    ok(!topt_lower_bound_create(&p, &o, &w, NULL),
       "edges between the same operators are no table over a third");
    topt_lower_bound_destroy(w);
}

/* ---- deep chains -------------------------------------------------------------------------- */

enum { LAYERS = 20, CONFIGS = 12 };

/* Layer after layer: a, then b, then the next a; forward by plain dynamic programming. */
static int64_t plain(const struct topt_search_problem *p, struct topt_scalarization by)
{
    int64_t at[CONFIGS], next[CONFIGS];
    for (int c = 0; c < p->op[0].nconfigs; c++)
        at[c] = weight(by, p->op[0].cost[c]);
    for (int i = 0; i < p->nedges; i++) {
        const struct topt_search_edge *e = &p->edge[i];
        for (int t = 0; t < p->op[i + 1].nconfigs; t++) {
            next[t] = NONE;
            for (int f = 0; f < p->op[i].nconfigs; f++) {
                int entry = e->from_class[f] * e->table->to_classes + e->to_class[t];
                int64_t w = at[f] + weight(by, e->table->alt[e->table->first[entry]]);
                next[t] = w < next[t] ? w : next[t];
            }
            next[t] += weight(by, p->op[i + 1].cost[t]);
        }
        memcpy(at, next, sizeof at);
    }
    int64_t best = NONE;
    for (int c = 0; c < p->op[p->nops - 1].nconfigs; c++)
        best = at[c] < best ? at[c] : best;
    return best;
}

/* The least where one of the alike operators, which every second is, has a configuration. */
static int64_t least_with(const struct topt_search_problem *p, struct topt_search_op *op,
                          struct topt_scalarization by, int parity, int config)
{
    int64_t least = NONE;
    for (int i = parity; i < p->nops; i += 2) {
        struct topt_search_op whole = op[i];
        struct topt_cost only[CONFIGS];
        for (int x = 0; x < whole.nconfigs; x++)
            only[x] = x == config ? whole.cost[x] : (struct topt_cost){1 << 29, 1 << 29};
        op[i].cost = only;
        int64_t w = plain(p, by);
        least = w < least ? w : least;
        op[i] = whole;
    }
    return least;
}

static int deep(struct rng *rng, int *ret_inside)
{
    struct random_problem g;
    struct topt_lower_bound *w;
    int some, good, inside = 0;
    problem_make(&g, rng,
                 (struct random_spec){.shape = SHAPE_CHAIN,
                                      .nops = 2 * LAYERS,
                                      .max_configs = CONFIGS,
                                      .max_alternatives = 1,
                                      .max_cost = 1000000});
    struct topt_search_op *op = (struct topt_search_op *)(uintptr_t)g.p.op;
    struct topt_search_edge *edge = (struct topt_search_edge *)(uintptr_t)g.p.edge;
    for (int i = 0; i < g.p.nops; i++)
        op[i] = op[i % 2];
    edge[0] = random_edge(&g, 0, 1);
    edge[1] = random_edge(&g, 1, 2);
    for (int i = 0; i < g.p.nedges; i++) {
        edge[i] = edge[i % 2];
        edge[i].from = i;
        edge[i].to = i + 1;
    }
    struct topt_scalarization by = {1 + rng_below(rng, 50), 1 + rng_below(rng, 50)};
    struct topt_search_options o = {.threads = 1};
    struct topt_cost c, corner;
    int64_t best = plain(&g.p, by);
    good =
        !topt_lower_bound_create(&g.p, &o, &w, NULL) &&
        !topt_lower_bound_scalarize(w, by, (struct topt_cost){1 << 30, 1 << 30}, NULL) &&
        !topt_lower_bound_lightest(w, &some, &c, NULL) && some && weight(by, c) == best;
    corner = (struct topt_cost){c.memory + c.memory / 50, c.time};
    good = good && !topt_lower_bound_within(w, corner, &some, NULL) && some;
    /* Fixing a configuration must give what was said of it. */
    for (int k = 0; good && k < 12; k++) {
        int i = rng_below(rng, g.p.nops), config = rng_below(rng, op[i].nconfigs);
        double at = stands(w, corner, i, config);
        int64_t with = least_with(&g.p, op, by, i % 2, config);
        double want = (double)(with - best) / (double)(weight(by, corner) - best);
        good = want > 1 ? at > 1 : fabs(at - want) < 1e-9;
        inside += want > 0 && want <= 1;
    }
    *ret_inside += inside;
    topt_lower_bound_destroy(w);
    problem_free(&g);
    return good;
}

static void test_deep(void)
{
    struct rng rng = {3};
    int good = 0, inside = 0;
    for (int i = 0; i < 40; i++)
        good += deep(&rng, &inside);
    is_int(good, 40, "deep chains of alike layers, as by dynamic programming");
    ok(inside > 50, "%d configurations between the lightest and the corner", inside);
}

/* Every tile that this processor can do, on panels with holes, against the sums themselves. */
static void test_tiles(void)
{
    enum { MOST = 9, SIZE = TOPT_TILE_ROWS * TOPT_TILE_COLUMNS };
    topt_tile_fn *tile[TOPT_TILES];
    int n = topt_min_plus_tiles(tile), wrong = 0;
    struct rng r = {29};
    for (int round = 0; round < 500; round++) {
        double a[MOST * TOPT_TILE_ROWS], b[MOST * TOPT_TILE_COLUMNS], want[SIZE],
            got[SIZE];
        int nk = rng_below(&r, MOST + 1);
        for (int i = 0; i < nk * TOPT_TILE_ROWS; i++)
            a[i] = rng_below(&r, 5) ? rng_below(&r, 1000) : TOPT_FLAT_NOTHING;
        for (int i = 0; i < nk * TOPT_TILE_COLUMNS; i++)
            b[i] = rng_below(&r, 5) ? rng_below(&r, 1000) : TOPT_FLAT_NOTHING;
        for (int i = 0; i < SIZE; i++) {
            want[i] = TOPT_FLAT_NOTHING;
            for (int k = 0; k < nk; k++) {
                double w = a[k * TOPT_TILE_ROWS + i / TOPT_TILE_COLUMNS] +
                           b[k * TOPT_TILE_COLUMNS + i % TOPT_TILE_COLUMNS];
                want[i] = w < want[i] ? w : want[i];
            }
        }
        for (int k = 0; k < n; k++) {
            tile[k](a, b, nk, got);
            wrong += memcmp(got, want, sizeof want) != 0;
        }
    }
    is_int(wrong, 0, "%d ways to multiply a tile say what the sums do", n);
}

int main(void)
{
    test_tiles();
    test_against_brute_force();
    test_deep();
    test_ring();
    return done_testing();
}
