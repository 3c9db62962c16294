/* Searches that are told known points or limits find, together with these, what searches
 * find that are told nothing: the same frontier, within a tolerance where one is asked
 * for, and the same fastest strategy. */
#include <stdlib.h>
#include <string.h>

#include "free.h"
#include "grid.h"
#include "best.h"
#include "planning.h"
#include "configs.h"
#include "topt_plan.h"
#include "topt_choices.h"
#include "random_grid.h"
#include "sizes.h"
#include "tap.h"

static struct topt_hw *hw;

static const struct shape shapes[] = {{1, 4, TOPT_SPACE_FULL},
                                      {2, 2, TOPT_SPACE_FULL},
                                      {1, 6, TOPT_SPACE_FULL},
                                      {1, 8, TOPT_SPACE_CANONICAL},
                                      {2, 4, TOPT_SPACE_CANONICAL}};
enum { NSHAPES = sizeof shapes / sizeof *shapes, MOST = 4096 };

struct tally {
    int asked, wrong, infeasible;
};

/* Points of a frontier that are known, some of them or all, and some that are not as good. */
static int some_known(const struct topt_solutions *all, uint64_t *seed,
                      struct topt_cost *ret)
{
    int worse = random_below(seed, 3), some = 1 + random_below(seed, 4);
    size_t n = 0;
    for (int i = 0; i < all->n && n < MOST; i++) {
        struct topt_cost c = {all->at[i].memory_bytes, all->at[i].time_ns};
        if (random_below(seed, some))
            continue;
        c.memory += worse ? c.memory / 200 * random_below(seed, 4) : 0;
        c.time += worse == 2 ? c.time / 100 * random_below(seed, 4) : 0;
        ret[n++] = c;
    }
    return (int)topt_reduce(ret, n);
}

/* Both together. */
static int with_known(const struct topt_solutions *found, const struct topt_cost *known,
                      int nknown, struct topt_cost *ret)
{
    size_t n = 0;
    for (int i = 0; i < found->n && n < MOST; i++)
        ret[n++] = (struct topt_cost){found->at[i].memory_bytes, found->at[i].time_ns};
    for (int i = 0; i < nknown; i++)
        ret[n++] = known[i];
    return (int)topt_reduce(ret, n);
}

/* Has each point one that is no heavier, and within the tolerance? */
static int covers(const struct topt_cost *a, int n, const struct topt_cost *b, int m,
                  double epsilon)
{
    int i = 0;
    for (int k = 0; k < m; k++) {
        while (i + 1 < n && a[i + 1].memory <= b[k].memory)
            i++;
        if (i >= n || a[i].memory > b[k].memory ||
            (double)a[i].time > (double)b[k].time * (1 + epsilon) * (1 + 1e-12))
            return 0;
    }
    return 1;
}

static void ask_frontier(struct topt_problem *p, const struct topt_solutions *all,
                         double epsilon, uint64_t *seed, struct tally *t)
{
    static struct topt_cost known[2 * MOST], want[2 * MOST], got[2 * MOST];
    struct topt_solutions found;
    int n = some_known(all, seed, known);
    struct topt_search_options s = {
        .threads = 1, .known = known, .nknown = n, .epsilon = epsilon};
    t->asked++;
    if (topt_solve_frontier(p, &s, &found, NULL)) {
        t->wrong++;
        return;
    }
    int w = with_known(all, known, n, want), g = with_known(&found, known, n, got);
    t->wrong += epsilon > 0 ? !covers(got, g, want, w, epsilon)
                            : w != g || memcmp(want, got, (size_t)w * sizeof *want) != 0;
    topt_solutions_fini(&found);
}

/* A limit of memory between the least and what the fastest needs, or none, or too little. */
static void ask_fastest(const struct topt_costing *k, const struct topt_space_options *o,
                        struct topt_problem *whole, const struct topt_solutions *all,
                        uint64_t *seed, struct tally *t)
{
    const struct topt_solution *last = &all->at[all->n - 1],
                               *any = &all->at[random_below(seed, all->n)];
    int64_t limit = random_below(seed, 4) ? any->memory_bytes : 0;
    int64_t time = limit ? any->time_ns : last->time_ns;
    struct topt_search_options s = {.threads = 1,
                                    .memory_limit = limit,
                                    .time_limit =
                                        time + time / 100 * (random_below(seed, 5) - 1)};
    struct topt_problem *p;
    struct topt_solutions want, got;
    t->asked++;
    if (topt_problem_create(k, o, &p, NULL)) {
        t->wrong++;
        return;
    }
    if (topt_solve_fastest(whole, &s, &want, NULL) ||
        topt_solve_fastest(p, &s, &got, NULL)) {
        t->wrong++;
    } else {
        t->infeasible += want.n == 0;
        t->wrong += want.n != got.n ||
                    (want.n && (want.at[0].time_ns != got.at[0].time_ns ||
                                want.at[0].memory_bytes != got.at[0].memory_bytes));
        topt_solutions_fini(&want);
        topt_solutions_fini(&got);
    }
    topt_problem_destroy(p);
}

static void ask_all(const struct topt_costing *k, const struct topt_space_options *o,
                    uint64_t seed, struct tally *frontier, struct tally *rough,
                    struct tally *fastest)
{
    struct topt_problem *whole;
    struct topt_solutions all;
    struct topt_search_options any = {.threads = 1};
    if (topt_problem_create(k, o, &whole, NULL))
        return;
    if (!topt_solve_frontier(whole, &any, &all, NULL)) {
        for (int i = 0; all.n && i < 3; i++) {
            struct topt_space_options lazy = *o;
            lazy.lazy_entries = seed % 2 ? 64 : 0;
            ask_frontier(whole, &all, 0, &seed, frontier);
            ask_frontier(whole, &all, 0.02, &seed, rough);
            ask_fastest(k, &lazy, whole, &all, &seed, fastest);
        }
        topt_solutions_fini(&all);
    }
    topt_problem_destroy(whole);
}

static void tell(const struct tally *t, const char *what, const char *question)
{
    is_int(t->wrong, 0, "%s: %d times the same %s", what, t->asked, question);
}

static void test_models(int alike, int wanted)
{
    struct tally frontier = {0}, rough = {0}, fastest = {0};
    for (uint64_t seed = 1; frontier.asked < wanted && seed < 400; seed++) {
        struct random_grid g;
        if (!random_grid_open(&g,
                              alike ? block_model(seed, 3, 1 + (int)(seed % 3))
                                    : random_model(seed, 1 + (int)(seed % 7)),
                              hw, &shapes[seed % NSHAPES], alike, 0))
            continue;
        g.options.zero = seed % 2 ? 15 : 1;
        g.options.recompute =
            alike && seed % 4 < 2 ? TOPT_RECOMPUTE_FREE : TOPT_RECOMPUTE_NONE;
        ask_all(&g.costing, &g.options, seed, &frontier, &rough, &fastest);
        random_grid_close(&g);
    }
    const char *what = alike ? "blocks alike" : "free blocks";
    tell(&frontier, what, "frontier");
    tell(&rough, what, "frontier within a tolerance");
    tell(&fastest, what, "fastest");
    ok(frontier.asked >= wanted && fastest.infeasible > 0, "%s: %d times nothing fits",
       what, fastest.infeasible);
}

/* Does a strategy take what its solution says? */
static int is_witness(const struct topt_costing *k, const struct topt_solution *x)
{
    struct topt_strategy_cost c;
    return !topt_cost_strategy(k, x->strategy, &c, NULL) &&
           c.memory_bytes == x->memory_bytes && c.time_ns == x->time_ns;
}

/* 0: as it should be. */
static int compare_shape(struct topt_grid_search *s)
{
    struct topt_costing k;
    struct topt_problem *whole;
    struct topt_solutions want, got;
    struct topt_search_options o = {.threads = 1};
    if (topt_grid_costing(s, &s->degrees[0], &k, NULL) ||
        topt_grid_problem(s, &s->degrees[0], &whole, NULL) ||
        topt_solve_frontier(whole, &o, &want, NULL) ||
        topt_grid_solve(s, TOPT_GOAL_FRONTIER, 0, 0, &got, NULL))
        return 1;
    int wrong = want.n != got.n || !got.certificate.exact;
    for (int i = 0; !wrong && i < got.n; i++)
        wrong = got.at[i].memory_bytes != want.at[i].memory_bytes ||
                got.at[i].time_ns != want.at[i].time_ns || !is_witness(&k, &got.at[i]);
    topt_solutions_fini(&want);
    topt_solutions_fini(&got);
    topt_problem_destroy(whole);
    return wrong;
}

/* A shape's frontier is that of its one variant's problem, and each point costs what it says. */
static void test_shapes(void)
{
    int asked = 0, wrong = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct topt_request r;
        struct topt_planning micros;
        struct topt_grid_search s;
        topt_request_init(&r);
        r.model = random_model(seed, 3 + (int)(seed % 4));
        r.hw = hw;
        r.space = TOPT_SPACE_FULL;
        r.factors = seed % 2 ? TOPT_FACTOR_ZERO : 0;
        if (r.model && !topt_planning_init(&micros, &r, NULL)) {
            asked++;
            wrong += topt_grid_open(&s, &micros, 2, 8, TOPT_GOAL_FRONTIER, NULL) ||
                     compare_shape(&s);
            topt_grid_close(&s);
            topt_planning_fini(&micros);
        }
        topt_model_destroy((struct topt_model *)r.model);
    }
    ok(asked > 8 && !wrong, "%d shapes: all points of the problem are found", asked);
}

int main(void)
{
    hw = topt_hw_load("a100-80-dgx", NULL);
    if (!hw) {
        ok(0, "the profile is there");
        return done_testing();
    }
    test_models(0, TOPT_TEST_SIZE_FROM(200, 60));
    test_models(1, TOPT_TEST_SIZE_FROM(120, 60));
    test_shapes();
    topt_hw_destroy(hw);
    return done_testing();
}
