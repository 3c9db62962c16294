/* Crossovers of two strategies, on random problems of every shape. */
#include "crossover.h"
#include "random_problem.h"
#include "tap.h"

/* An alternative of an edge as its ends have it; -1: there is none. */
static int32_t random_alternative(const struct topt_search_problem *p, int e,
                                  const int32_t *config, struct rng *rng)
{
    const struct topt_search_edge *x = &p->edge[e];
    int entry = x->from_class[config[x->from]] * x->table->to_classes +
                x->to_class[config[x->to]];
    int n = x->table->first[entry + 1] - x->table->first[entry];
    return n ? rng_below(rng, n) : -1;
}

/* A random strategy into 'ret'; 0 where some edge has no alternative. */
static int roll(const struct topt_search_problem *p, struct rng *rng, int32_t *ret)
{
    int good = 1;
    for (int i = 0; i < p->nops; i++)
        ret[i] = rng_below(rng, p->op[i].nconfigs);
    for (int e = 0; e < p->nedges; e++)
        good &= (ret[p->nops + e] = random_alternative(p, e, ret, rng)) >= 0;
    return good;
}

/* Does every alternative of an edge weigh as much as the one that was chosen, or is that
 * a parent's? */
static int is_lightest(const struct topt_search_problem *p, const struct parents *of,
                       int e, const int32_t *choice)
{
    const struct topt_search_edge *x = &p->edge[e];
    int entry = x->from_class[choice[x->from]] * x->table->to_classes +
                x->to_class[choice[x->to]];
    const struct topt_cost *alt = &x->table->alt[x->table->first[entry]];
    int n = x->table->first[entry + 1] - x->table->first[entry], at = choice[p->nops + e];
    for (int k = 0; k < 2; k++)
        if (of->choice[k][x->from] == choice[x->from] &&
            of->choice[k][x->to] == choice[x->to] && of->choice[k][p->nops + e] == at)
            return 1;
    for (int a = 0; a < n; a++)
        if (of->time * alt[a].time + of->memory * alt[a].memory <
            of->time * alt[at].time + of->memory * alt[at].memory)
            return 0;
    return at < n;
}

static int is_crossover(const struct topt_search_problem *p, const struct parents *of,
                        const struct crossover *x, const int32_t *choice)
{
    struct topt_cost c;
    int good = !topt_search_cost(p, choice, choice + p->nops, &c, NULL) &&
               c.memory == x->cost.memory && c.time == x->cost.time;
    for (int i = 0; i < p->nops; i++)
        good &= choice[i] == of->choice[i < x->cut ? x->first : !x->first][i];
    for (int e = 0; e < p->nedges && good; e++)
        good &= is_lightest(p, of, e, choice);
    return good;
}

/* How many there are, looked at one by one. */
static int count(const struct topt_search_problem *p, const struct parents *of)
{
    int n = 0;
    int32_t mix[32];
    for (int first = 0; first < 2; first++)
        for (int cut = 1; cut < p->nops; cut++) {
            int possible = of->choice[0][cut - 1] != of->choice[1][cut - 1];
            for (int i = 0; i < p->nops; i++)
                mix[i] = of->choice[i < cut ? first : !first][i];
            for (int e = 0; e < p->nedges; e++) {
                const struct topt_search_edge *x = &p->edge[e];
                int entry = x->from_class[mix[x->from]] * x->table->to_classes +
                            x->to_class[mix[x->to]];
                possible &= x->table->first[entry + 1] > x->table->first[entry];
            }
            n += possible;
        }
    return n;
}

static int one(struct rng *rng, enum shape shape, int *ret_crossed)
{
    struct random_problem g;
    problem_make(&g, rng,
                 (struct random_spec){.shape = shape,
                                      .nops = 2 + rng_below(rng, 9),
                                      .max_configs = 3,
                                      .max_alternatives = 3,
                                      .max_cost = 100,
                                      .empty_percent = rng_below(rng, 2) * 8,
                                      .classes_percent = rng_below(rng, 2) * 60});
    int32_t a[256], b[256];
    int good = 1;
    if (g.p.nops + g.p.nedges < 256 && roll(&g.p, rng, a) && roll(&g.p, rng, b)) {
        struct parents p = {.choice = {a, b}, .time = rng_below(rng, 9), .memory = 1};
        struct crosser c;
        struct crossover x[64];
        good = !topt_search_cost(&g.p, a, a + g.p.nops, &p.cost[0], NULL) &&
               !topt_search_cost(&g.p, b, b + g.p.nops, &p.cost[1], NULL) &&
               !topt_crosser_init(&c, &g.p, NULL);
        int n = good ? topt_crossovers(&c, &p, x) : 0;
        good = good && n == count(&g.p, &p);
        for (int i = 0; i < n && good; i++)
            good = is_crossover(&g.p, &p, &x[i], topt_crossover_choice(&c, &p, &x[i]));
        topt_crosser_fini(&c);
        *ret_crossed += n;
    }
    problem_free(&g);
    return good;
}

/* 96 layers that are alike, each fast or light, and what it costs to change; within a
 * tolerance of the true frontier, which is what so many fast layers make, no segment
 * needs to be explored. */
static void test_layers(void)
{
    enum { LAYERS = 96 };
    static const struct topt_cost light_or_fast[] = {{100, 3000}, {300, 2000}};
    static const int32_t first[] = {0, 1, 2, 3, 4}, number[] = {0, 1};
    static const struct topt_cost alt[] = {{0, 0}, {0, 20}, {0, 20}, {0, 0}};
    static const struct topt_table change = {2, 2, first, alt};
    struct topt_search_op op[LAYERS];
    struct topt_search_edge edge[LAYERS - 1];
    for (int i = 0; i < LAYERS; i++)
        op[i] = (struct topt_search_op){"layer", 2, light_or_fast};
    for (int i = 0; i + 1 < LAYERS; i++)
        edge[i] = (struct topt_search_edge){i, i + 1, &change, number, number};
    struct topt_search_problem p = {LAYERS, op, LAYERS - 1, edge};
    struct topt_search_options o = {.threads = 1, .epsilon = 0.001, .fastest = 1};
    struct topt_frontier *f = NULL;
    o.memory_limit = 100 * LAYERS + 200 * 40 + 7;
    ok(!topt_search(&p, &o, &f, NULL) && f->npoints == 1 &&
           f->cost[0].time == 3000 * LAYERS - 1000 * 40 + 20 &&
           f->cost[0].memory == o.memory_limit - 7,
       "40 layers are fast where there is room for 40");
    ok(f && f->epsilon > 0 && f->epsilon <= 0.001, "proven to %g", f ? f->epsilon : 0);
    int64_t tolerant = f ? f->stats.points : 0;
    topt_frontier_destroy(f);
    f = NULL;
    o.epsilon = 0;
    ok(!topt_search(&p, &o, &f, NULL) && f->exact && f->npoints == 1,
       "exactly, it is searched for");
    ok(f && f->stats.points > 2 * tolerant,
       "which takes %lld points, within a tolerance %lld",
       (long long)(f ? f->stats.points : 0), (long long)tolerant);
    topt_frontier_destroy(f);
}

int main(void)
{
    struct rng rng = {17};
    int good = 0, crossed = 0, n = 0;
    for (; n < 3000; n++)
        good += one(&rng, (enum shape)(n % SHAPES), &crossed);
    is_int(good, n, "crossovers are what they say, and all that there are");
    ok(crossed > n, "%d of them", crossed);
    test_layers();
    return done_testing();
}
