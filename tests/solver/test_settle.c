/* The fastest strategy, and whole frontiers, where moves cost lazy at first, against the
 * same problem with exact prices: of random models, spaces, limits and tolerances.  So few
 * entries are priced at once that small problems take many rounds, too. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "free.h"
#include "grid.h"
#include "planning.h"
#include "configs.h"
#include "topt_plan.h"
#include "topt_choices.h"
#include "random_grid.h"
#include "sizes.h"
#include "tap.h"

static struct topt_hw *hw;
static int64_t
    most_entries; /* of a table; more, and operators are decided by heuristic */

static const struct shape shapes[] = {
    {1, 4, TOPT_SPACE_FULL},      {2, 2, TOPT_SPACE_FULL},
    {1, 8, TOPT_SPACE_CANONICAL}, {2, 4, TOPT_SPACE_CANONICAL},
    {1, 6, TOPT_SPACE_CANONICAL}, {4, 4, TOPT_SPACE_CANONICAL}};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

struct tally {
    int asked, least, doubted, feasible, wrong, rough, claims, decided;
    int64_t fewer, exact; /* moves that were priced, and all of them */
};

static int64_t moves_of(const struct topt_problem *p)
{
    struct topt_problem_stats s;
    topt_problem_stats(p, &s);
    return s.priced_moves;
}

/* Is 'b' what 'a' is?  Where operators were decided by heuristic it may be slower. */
static int same_answer(const struct topt_solutions *a, const struct topt_solutions *b)
{
    if (b->certificate.decided)
        return !b->n || (a->n && b->at[0].time_ns >= a->at[0].time_ns);
    return a->n == b->n && (!a->n || (a->at[0].time_ns == b->at[0].time_ns &&
                                      a->at[0].memory_bytes == b->at[0].memory_bytes));
}

/* With a tolerance each is at most so much slower than the fastest, and neither is faster
 * than that; where operators were decided by heuristic only the second is known of 'b',
 * which may have nothing. */
static int near_answer(const struct topt_solutions *a, const struct topt_solutions *b,
                       double epsilon)
{
    double most = (1 + epsilon) * (1 + 1e-12);
    if (!b->n)
        return b->certificate.decided != NULL;
    double x = (double)a->at[0].time_ns, y = (double)b->at[0].time_ns;
    return x <= y * most && (b->certificate.decided || y <= x * most);
}

/* One question to both; tables are large enough for the exact one. */
static void compare(struct topt_problem *exact, struct topt_problem *lazy, int64_t limit,
                    double epsilon, int64_t time_limit, struct tally *t)
{
    struct topt_search_options o = {.threads = 1,
                                    .memory_limit = limit,
                                    .time_limit = time_limit,
                                    .epsilon = epsilon};
    struct topt_solutions a, b;
    int rc = topt_solve_fastest(exact, &o, &a, NULL);
    o.max_entries = most_entries;
    if (rc || topt_solve_fastest(lazy, &o, &b, NULL)) {
        t->wrong++;
        return;
    }
    t->asked++;
    t->feasible += a.n;
    t->decided += b.certificate.decided != NULL;
    t->claims += b.certificate.epsilon <= epsilon && !b.stopped &&
                 (epsilon > 0 || b.certificate.exact || b.certificate.decided ||
                  (!b.n && b.certificate.bound_ns > time_limit));
    t->wrong += b.n && limit && b.at[0].memory_bytes > limit;
    /* With a tolerance nothing may be said where a time limit leaves it open. */
    if (epsilon > 0) {
        t->rough += a.n && near_answer(&a, &b, epsilon);
        t->wrong += a.n != b.n && !time_limit;
    } else {
        t->wrong += !same_answer(&a, &b);
    }
    topt_solutions_fini(&a);
    topt_solutions_fini(&b);
}

/* ---- whole frontiers ---- */

struct frontiers {
    int asked, points, missed, untrue, claims, stopped, decided;
    int64_t fewer, exact;
};

/* Is a cost one that another stands for within a tolerance? */
static int stands_for(int64_t memory, int64_t time, struct topt_cost c, double epsilon)
{
    return memory <= c.memory &&
           (double)time <= (double)c.time * (1 + epsilon) * (1 + 1e-15);
}

static int any_stands_for(const struct topt_solutions *s,
                          const struct topt_search_options *o, struct topt_cost c,
                          double epsilon)
{
    int some = 0;
    for (int i = 0; i < s->n; i++)
        some |= stands_for(s->at[i].memory_bytes, s->at[i].time_ns, c, epsilon);
    for (int i = 0; o && i < o->nknown; i++)
        some |= stands_for(o->known[i].memory, o->known[i].time, c, epsilon);
    return some;
}

/* Points that 'b' and what was known before have nothing for, as far as 'b' says that it
 * has something, and points that are better than what is, of which there may be none
 * whatever it says. */
static void hold(const struct topt_solutions *a, const struct topt_solutions *b,
                 const struct topt_search_options *o, struct frontiers *t)
{
    t->points += a->n;
    for (int i = 0;
         i < a->n && isfinite(b->certificate.epsilon) && !b->certificate.decided; i++) {
        struct topt_cost c = {a->at[i].memory_bytes, a->at[i].time_ns};
        t->missed += !any_stands_for(b, o, c, b->certificate.epsilon);
    }
    for (int i = 0; i < b->n; i++) {
        struct topt_cost c = {b->at[i].memory_bytes, b->at[i].time_ns};
        t->untrue += !any_stands_for(a, NULL, c, 0);
    }
}

static void compare_frontiers(const struct topt_costing *k, struct topt_space_options *so,
                              const struct topt_solutions *exact,
                              const struct topt_search_options *o, struct frontiers *t)
{
    struct topt_problem *p;
    struct topt_solutions b;
    if (topt_problem_create(k, so, &p, NULL))
        return;
    if (topt_solve_frontier(p, o, &b, NULL)) {
        t->untrue++;
    } else {
        t->asked++;
        t->stopped += b.stopped;
        t->decided += b.certificate.decided != NULL;
        t->claims += b.stopped ||
                     (b.certificate.epsilon <= o->epsilon &&
                      (o->epsilon > 0 || b.certificate.exact || b.certificate.decided));
        hold(exact, &b, o, t);
        t->fewer += moves_of(p);
        topt_solutions_fini(&b);
    }
    topt_problem_destroy(p);
}

/* All of it, within a limit, with a tolerance, with a part known, and out of work. */
static void ask_frontiers(const struct topt_costing *k, struct topt_space_options *so,
                          uint64_t seed, struct frontiers *t)
{
    struct topt_problem *exact;
    struct topt_solutions a = {0};
    struct topt_cost known[2];
    struct topt_search_options all = {.threads = 1}, o, any = all;
    any.max_entries = most_entries;
    so->lazy_entries = 0;
    if (topt_problem_create(k, so, &exact, NULL))
        return;
    int rc = topt_solve_frontier(exact, &all, &a, NULL);
    int64_t moves = moves_of(exact);
    so->lazy_entries = 1 + (int)(seed * 7 % 40) * (int)(seed * 7 % 40);
    for (int i = 0; !rc && a.n && i < 6; i++) {
        const struct topt_solution *middle = &a.at[a.n / 2];
        struct topt_solutions within = a;
        o = any;
        if (i == 1) {
            o.memory_limit = middle->memory_bytes;
            within.n = a.n / 2 + 1;
        }
        if (i == 5) { /* just enough for the lightest */
            o.memory_limit = a.at[0].memory_bytes;
            within.n = 1;
        }
        o.epsilon = i == 2 ? 0.001 : i == 3 ? 0.05 : 0;
        if (i == 3 || i == 4) {
            known[0] = (struct topt_cost){middle->memory_bytes, middle->time_ns};
            known[1] =
                (struct topt_cost){a.at[a.n - 1].memory_bytes, a.at[a.n - 1].time_ns};
            o.known = known;
            o.nknown = 1 + (a.n / 2 < a.n - 1);
        }
        o.max_work = i == 4 ? (int64_t)1 << seed % 20 : 0;
        compare_frontiers(k, so, &within, &o, t);
        t->exact += moves;
    }
    topt_solutions_fini(&a);
    topt_problem_destroy(exact);
}

/* ---- the fastest ---- */

/* The least is the same, and none needs less; of those that need as little any may be had
 * with exact prices, and with lazy mostly the fastest. */
static void compare_least(const struct topt_costing *k, struct topt_space_options *o,
                          const struct topt_solution *least, struct tally *t)
{
    struct topt_search_options any = {.threads = 1};
    struct topt_problem *lazy;
    struct topt_solutions a = {0}, b = {0};
    if (topt_problem_create(k, o, &lazy, NULL))
        return;
    int rc = topt_solve_least(lazy, &any, 0, &a, NULL) ||
             topt_solve_least(lazy, &any, least->memory_bytes, &b, NULL);
    t->least++;
    t->wrong += rc || a.n != 1 || b.n || a.at[0].memory_bytes != least->memory_bytes ||
                a.at[0].time_ns > least->time_ns;
    topt_solutions_fini(&a);
    topt_solutions_fini(&b);
    topt_problem_destroy(lazy);
}

/* In tables so small that operators are decided by heuristic, what is said to be the least is. */
static void ask_least(const struct topt_costing *k, struct topt_space_options *o,
                      const struct topt_solution *least, struct tally *t)
{
    static const int64_t most[] = {4, 16, 64};
    struct topt_problem *p;
    struct topt_solutions a = {0};
    if (topt_problem_create(k, o, &p, NULL))
        return;
    for (int i = 0; i < 3; i++) {
        struct topt_search_options any = {.threads = 1, .max_entries = most[i]};
        int rc = topt_solve_least(p, &any, 0, &a, NULL);
        t->doubted += a.certificate.decided != NULL;
        t->wrong += rc || (!a.certificate.decided &&
                           (!a.n || a.at[0].memory_bytes != least->memory_bytes));
        topt_solutions_fini(&a);
    }
    topt_problem_destroy(p);
}

/* No limit, what the fastest needs, less and less, the least, and too little. */
static void ask_all(const struct topt_costing *k, struct topt_space_options *o,
                    uint64_t seed, struct tally *t, struct tally *loose)
{
    struct topt_problem *exact, *lazy;
    struct topt_solutions fast, least;
    struct topt_search_options any = {.threads = 1};
    if (topt_problem_create(k, o, &exact, NULL))
        return;
    int rc = topt_solve_fastest(exact, &any, &fast, NULL) ||
             topt_solve_least(exact, &any, 0, &least, NULL);
    for (int i = 0; !rc && fast.n && least.n && i < 6; i++) {
        int64_t lo = least.at[0].memory_bytes, hi = fast.at[0].memory_bytes;
        int64_t limit = i == 5 ? 0 : i == 4 ? lo - 1 : lo + (hi - lo) * i / 3;
        o->lazy_entries = 1 + (int)(seed * 7 % 40) * (int)(seed * 7 % 40);
        if (topt_problem_create(k, o, &lazy, NULL))
            break;
        compare(exact, lazy, limit, 0, seed % 3 ? 0 : 2 * fast.at[0].time_ns, t);
        t->fewer += moves_of(lazy);
        t->exact += moves_of(exact);
        compare(exact, lazy, limit, i % 2 ? 0.02 : 0.3, 0, loose);
        topt_problem_destroy(lazy);
    }
    if (!rc && least.n) {
        compare_least(k, o, &least.at[0], t);
        ask_least(k, o, &least.at[0], t);
    }
    topt_solutions_fini(&fast);
    topt_solutions_fini(&least);
    topt_problem_destroy(exact);
}

static void test_models(int alike, int wanted)
{
    struct tally t = {0}, loose = {0};
    struct frontiers whole = {0};
    for (uint64_t seed = 1; t.asked < wanted && seed < 400; seed++) {
        struct random_grid g;
        /* The profile's granule hides most of a frontier.  (What is decided by heuristic
         * compares where it hides enough.) */
        if (!random_grid_open(&g,
                              alike ? block_model(seed, 3, 1 + (int)(seed % 3))
                                    : random_model(seed, 1 + (int)(seed % 9)),
                              hw, &shapes[seed % NSHAPES], alike,
                              seed % 4 || most_entries ? 0 : 1))
            continue;
        g.options.zero = seed % 2 ? 15 : 1;
        g.options.recompute =
            alike && seed % 4 < 2 ? TOPT_RECOMPUTE_FREE : TOPT_RECOMPUTE_NONE;
        ask_all(&g.costing, &g.options, seed, &t, &loose);
        ask_frontiers(&g.costing, &g.options, seed, &whole);
        random_grid_close(&g);
    }
    const char *what = alike ? "blocks alike" : "free blocks";
    ok(t.asked >= wanted && t.feasible > t.asked / 2 && t.feasible < t.asked,
       "%s: %d questions, %d with an answer", what, t.asked, t.feasible);
    is_int(t.wrong, 0, "%s: as with exact prices, and %d times the least", what, t.least);
    ok(t.doubted > 0, "%s: %d times it is not said to be the least", what, t.doubted);
    is_int(t.claims, t.asked, "%s: and said to be exact", what);
    is_int(loose.wrong, 0, "%s: with a tolerance the same have an answer", what);
    is_int(loose.rough, loose.feasible, "%s: within the tolerance", what);
    is_int(loose.claims, loose.asked, "%s: and said to be", what);
    ok(t.fewer < t.exact, "%s: %lld of %lld moves were priced", what, (long long)t.fewer,
       (long long)t.exact);
    ok(most_entries || (whole.points > 4 * whole.asked && whole.stopped > 0),
       "%s: %d frontiers of %d points, %d out of work", what, whole.asked, whole.points,
       whole.stopped);
    is_int(whole.missed, 0, "%s: all points are stood for as is claimed", what);
    is_int(whole.untrue, 0, "%s: by points that there are", what);
    is_int(whole.claims, whole.asked, "%s: and as well as was asked for", what);
    ok(whole.fewer < whole.exact, "%s: %lld of %lld moves were priced", what,
       (long long)whole.fewer, (long long)whole.exact);
    ok(most_entries ? t.decided > 0 : t.decided == 0,
       "%s: operators were decided by heuristic %d times", what, t.decided);
}

/* ---- orbits ---- */

static const struct shape alike_axes[] = {
    {1, 4, TOPT_SPACE_FULL}, {1, 8, TOPT_SPACE_FULL}, {2, 4, TOPT_SPACE_FULL},
    {4, 1, TOPT_SPACE_FULL}, {1, 6, TOPT_SPACE_FULL}, {4, 4, TOPT_SPACE_FULL}};
enum { NALIKE = sizeof alike_axes / sizeof *alike_axes };

struct orbits {
    int asked, feasible, wrong, claims, untrue, miscounted;
};

/* One question to the whole space, and to its orbits. */
static void compare_orbits(struct topt_problem *full, struct topt_problem *orbits,
                           const struct topt_search_options *o, struct orbits *t)
{
    struct topt_solutions a = {0}, b = {0};
    if (topt_solve_fastest(full, o, &a, NULL) ||
        topt_solve_fastest(orbits, o, &b, NULL)) {
        t->wrong++;
        topt_solutions_fini(&a);
        return;
    }
    t->asked++;
    t->feasible += a.n;
    t->wrong +=
        o->epsilon <= 0 && (a.n != b.n || (a.n && a.at[0].time_ns != b.at[0].time_ns));
    t->claims += b.certificate.epsilon <= o->epsilon ||
                 b.certificate.epsilon <= a.certificate.epsilon || !b.n;
    /* What the one says that nothing is faster than, the other does not have. */
    t->untrue += (b.n && b.at[0].time_ns < a.certificate.bound_ns) ||
                 (a.n && a.at[0].time_ns < b.certificate.bound_ns);
    topt_solutions_fini(&a);
    topt_solutions_fini(&b);
}

static void count_orbits(const struct topt_problem *full,
                         const struct topt_problem *orbits, struct orbits *t)
{
    struct topt_problem_stats all, few;
    topt_problem_stats(full, &all);
    topt_problem_stats(orbits, &few);
    t->miscounted += all.layouts != few.layouts || all.edge_entries != few.edge_entries;
}

/* Limits from what the fastest needs to less than anything, each with and without a
 * tolerance.  Where free blocks recompute, costs are bounds, and nothing is exact. */
static void ask_orbits(const struct topt_costing *k, struct topt_space_options *o,
                       uint64_t seed, struct orbits *t)
{
    static const double epsilon[] = {0, 0.001, 0.05};
    int bounds = o->recompute == TOPT_RECOMPUTE_FREE && !o->alike;
    struct topt_problem *full, *orbits;
    struct topt_solutions fast = {0}, least = {0};
    struct topt_search_options any = {.threads = 1, .epsilon = bounds ? 0.001 : 0};
    if (topt_problem_create(k, o, &full, NULL))
        return;
    int rc = topt_solve_fastest(full, &any, &fast, NULL) ||
             topt_solve_least(full, &any, 0, &least, NULL);
    o->lazy_entries = 1 + (int)(seed * 7 % 40);
    o->orbits = 1;
    rc = rc || topt_problem_create(k, o, &orbits, NULL);
    for (int i = bounds ? 4 : 0; !rc && fast.n && least.n && i < 12; i++) {
        int64_t lo = least.at[0].memory_bytes, hi = fast.at[0].memory_bytes;
        any.memory_limit = i % 4 == 3 ? lo - 1 : lo + (hi - lo) * (i % 4) / 2;
        any.epsilon = epsilon[i / 4];
        compare_orbits(full, orbits, &any, t);
    }
    if (!rc) {
        count_orbits(full, orbits, t);
        topt_problem_destroy(orbits);
    }
    topt_solutions_fini(&fast);
    topt_solutions_fini(&least);
    topt_problem_destroy(full);
}

/* With and without sharding, recomputation, and blocks that choose alike. */
static void test_orbits(int wanted)
{
    struct orbits t = {0};
    for (uint64_t seed = 1; t.asked < wanted && seed < 400; seed++) {
        int blocks = seed % 2;
        struct random_grid g;
        if (!random_grid_open(&g,
                              blocks ? block_model(seed, 3, 1 + (int)(seed % 2))
                                     : random_model(seed, 1 + (int)(seed % 6)),
                              hw, &alike_axes[seed % NALIKE], seed % 4 == 1,
                              seed % 3 ? 0 : 1))
            continue;
        g.options.zero = seed % 3 ? 15 : 1;
        g.options.recompute =
            blocks && seed % 8 < 4 ? TOPT_RECOMPUTE_FREE : TOPT_RECOMPUTE_NONE;
        ask_orbits(&g.costing, &g.options, seed, &t);
        random_grid_close(&g);
    }
    ok(t.asked >= wanted && t.feasible > t.asked / 2 && t.feasible < t.asked,
       "orbits: %d questions, %d with an answer", t.asked, t.feasible);
    is_int(t.wrong, 0, "orbits: exactly as in the whole space");
    is_int(t.untrue, 0, "orbits: nothing is faster than is said");
    is_int(t.claims, t.asked, "orbits: and as well as was asked for");
    is_int(t.miscounted, 0, "orbits: as many layouts and entries as there are");
}

/* A search that is to stop at once says so, and claims nothing that is not so. */
static void test_stop(void)
{
    struct topt_request r;
    struct topt_planning micros;
    struct topt_grid_search s;
    struct topt_costing k;
    struct topt_problem *p, *exact;
    struct topt_solutions a = {0}, b = {0};
    struct topt_space_options o = {
        .space = TOPT_SPACE_CANONICAL, .zero = 15, .lazy_entries = 1};
    struct topt_model *m = random_model(5, 6);
    atomic_bool told = 0; /* to whom prices */
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.space = TOPT_SPACE_CANONICAL;
    r.factors = 0;
    int rc = topt_planning_init(&micros, &r, NULL) ||
             topt_grid_open(&s, &micros, 2, 4, TOPT_GOAL_FRONTIER, NULL) ||
             topt_grid_costing(&s, &s.degrees[0], &k, NULL);
    k.cancel = &told;
    rc = rc || topt_problem_create(&k, &o, &p, NULL);
    o.lazy_entries = 0;
    rc = rc || topt_problem_create(&k, &o, &exact, NULL);
    struct topt_search_options any = {.threads = 1};
    rc = rc || topt_solve_fastest(exact, &any, &a, NULL);
    int stopped = 0, wrong = 0;
    for (int64_t work = 1; !rc && work < 1 << 24; work *= 4) {
        struct topt_search_options some = {.threads = 1, .max_work = work};
        rc = topt_solve_fastest(p, &some, &b, NULL);
        stopped += b.stopped;
        wrong += b.certificate.bound_ns > a.at[0].time_ns ||
                 (b.n && b.at[0].time_ns < a.at[0].time_ns) ||
                 (b.certificate.exact && (!b.n || b.at[0].time_ns != a.at[0].time_ns));
        topt_solutions_fini(&b);
    }
    ok(!rc && stopped > 0 && !wrong,
       "out of work, %d times: what was found is no better than the best, the bound no "
       "worse",
       stopped);
    atomic_store(&told, 1);
    for (int fastest = 0; fastest < 2; fastest++) {
        struct topt_search_options some = {.threads = 1, .max_work = 1};
        rc = fastest ? topt_solve_fastest(p, &some, &b, NULL)
                     : topt_solve_frontier(p, &some, &b, NULL);
        ok(!rc && b.stopped && !b.certificate.exact &&
               b.certificate.bound_ns <= a.at[0].time_ns,
           "%s: stopped while prices are found",
           fastest ? "the fastest" : "the frontier");
        topt_solutions_fini(&b);
    }
    atomic_bool now = 1;
    struct topt_search_options canceled = {.threads = 1, .cancel = &now};
    struct topt_error err = {0};
    ok(topt_solve_fastest(p, &canceled, &b, &err) && err.code == TOPT_ERR_CANCELED,
       "canceled: %s", err.text);
    topt_solutions_fini(&a);
    topt_problem_destroy(p);
    topt_problem_destroy(exact);
    topt_grid_close(&s);
    topt_planning_fini(&micros);
    topt_model_destroy(m);
}

int main(void)
{
    hw = topt_hw_load("v100-dgx1-2x8", NULL);
    if (!hw)
        return 1;
    test_models(0, TOPT_TEST_SIZE_FROM(250, 60));
    test_models(1, TOPT_TEST_SIZE_FROM(150, 60));
    test_orbits(TOPT_TEST_SIZE_FROM(500, 96));
    test_stop();
    most_entries = 60;
    test_models(0, 60);
    topt_hw_destroy(hw);
    return done_testing();
}
