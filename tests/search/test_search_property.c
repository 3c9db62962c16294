/* Every search against brute force on small random problems of every shape: the same
 * frontier to the last point, every witness costed again by the plainest code, and the same
 * bytes for any number of threads. */
#include "frontiers.h"
#include "random_problem.h"
#include "sizes.h"
#include "tap.h"

#include <math.h>

/* Of every few problems one is searched by several threads too. */
enum { PROBLEMS = TOPT_TEST_SIZE(4000), BY_THREADS = TOPT_TEST_SIZE(8), BLAME = 3 };

static int blamed;

static void blame(uint64_t seed, const struct random_problem *g, const char *what)
{
    if (blamed++ < BLAME)
        printf("# seed %llu shape %d ops %d edges %d: %s\n", (unsigned long long)seed,
               (int)g->spec.shape, g->p.nops, g->p.nedges, what);
}

static int same_witnesses(const struct topt_search_problem *p,
                          const struct topt_frontier *a, const struct topt_frontier *b)
{
    if (!same_costs(a, b) || memcmp(&a->stats, &b->stats, sizeof a->stats))
        return 0;
    struct topt_frontier_reader *one = topt_frontier_reader(a, NULL);
    struct topt_frontier_reader *two = topt_frontier_reader(b, NULL);
    int same = 1;
    for (int i = 0; i < a->npoints && same; i++) {
        const struct topt_search_point *x = topt_frontier_read(one, i);
        const struct topt_search_point *y = topt_frontier_read(two, i);
        same = !memcmp(x->config, y->config, (size_t)p->nops * 4) &&
               !memcmp(x->alt, y->alt, (size_t)p->nedges * 4);
    }
    topt_frontier_reader_destroy(one);
    topt_frontier_reader_destroy(two);
    return same;
}

static struct topt_frontier *solve(const struct topt_search_problem *p,
                                   const char *algorithm, int64_t limit, double epsilon,
                                   int threads)
{
    struct topt_search_options o = {.algorithm = algorithm,
                                    .memory_limit = limit,
                                    .epsilon = epsilon,
                                    .threads = threads};
    struct topt_frontier *f;
    struct topt_error err;
    if (topt_search(p, &o, &f, &err)) {
        printf("# %s: %s\n", algorithm, err.text);
        return NULL;
    }
    return f;
}

/* The points of a frontier within a memory and a time limit (0: none). */
static struct topt_frontier within(const struct topt_frontier *all, int64_t memory,
                                   int64_t time)
{
    struct topt_frontier f = *all;
    while (time && f.npoints && f.cost->time > time) {
        f.cost++;
        f.npoints--;
    }
    while (memory && f.npoints && f.cost[f.npoints - 1].memory > memory)
        f.npoints--;
    return f;
}

/* Does the search find what is left of the frontier within limits, and its fastest point,
 * for any number of threads? */
static int limits_hold(const struct topt_search_problem *p,
                       const struct topt_frontier *all, const char *algorithm,
                       int64_t memory, int64_t time, int many)
{
    struct topt_search_options o = {.algorithm = algorithm, .memory_limit = memory};
    int good = 1;
    for (o.fastest = 0; o.fastest < 2; o.fastest++) {
        struct topt_frontier *one = NULL, *more = NULL, want = within(all, memory, time);
        o.time_limit = time;
        o.threads = 1;
        if (o.fastest && want.npoints) {
            want.cost += want.npoints - 1;
            want.npoints = 1;
        }
        good = good && !topt_search(p, &o, &one, NULL) && same_costs(one, &want) &&
               witnesses_hold(p, one) && one->exact;
        o.threads = many;
        if (many)
            good =
                good && !topt_search(p, &o, &more, NULL) && same_witnesses(p, one, more);
        topt_frontier_destroy(one);
        topt_frontier_destroy(more);
    }
    return good;
}

/* A limit somewhere about the numbers of a frontier, or none. */
static int64_t pick_limit(struct rng *r, int64_t low, int64_t high)
{
    int64_t slack = (high - low) / 8 + 2;
    if (!rng_below(r, 5))
        return 0;
    low += (int64_t)(rng_next(r) % (uint64_t)(high - low + 2 * slack)) - slack;
    return low > 0 ? low : 1;
}

/* Strategies, saturating far above what brute force should visit here. */
static double strategies(const struct topt_search_problem *p, int max_alternatives)
{
    double n = 1;
    for (int i = 0; i < p->nops; i++)
        n *= p->op[i].nconfigs;
    for (int i = 0; i < p->nedges; i++)
        n *= (1 + max_alternatives) / 2.0;
    return n;
}

static struct random_spec pick_spec(struct rng *r)
{
    struct random_spec s = {.shape = (enum shape)rng_below(r, SHAPES)};
    s.nops = 1 + rng_below(r, 7);
    if (s.shape == SHAPE_BLOCKS)
        s.nops = 4 + 3 * rng_below(r, 2);
    if (s.shape == SHAPE_DENSE)
        s.nops = 2 + rng_below(r, 4);
    s.max_configs = 1 + rng_below(r, 4);
    s.max_alternatives = 1 + rng_below(r, 3);
    s.max_cost = rng_below(r, 3) ? 1000 : 4; /* small numbers make ties */
    s.empty_percent = rng_below(r, 3) ? 0 : 25;
    s.classes_percent = 60;
    return s;
}

struct tally {
    int costs, witnesses, threads, limits, epsilons, tried, boxes, boxed;
    int fewer, stopped, unfinished, decided, undecided, corners;
};

static void check_boxes(uint64_t seed, const struct random_problem *g,
                        const struct topt_frontier *all, struct tally *bad)
{
    static const char *const algorithm[] = {"ft", "ft", "ft", "ft", "ft-plain"};
    struct rng r = {seed ^ 0x5eed};
    struct topt_cost low = {0, 0}, high = {1, 1};
    if (all->npoints) {
        low = (struct topt_cost){all->cost[0].memory, all->cost[all->npoints - 1].time};
        high = (struct topt_cost){all->cost[all->npoints - 1].memory, all->cost[0].time};
    }
    for (int i = 0; i < 5; i++, bad->boxed++) {
        int64_t memory = pick_limit(&r, low.memory, high.memory);
        int64_t time = i % 2 ? pick_limit(&r, low.time, high.time) : 0;
        if (all->npoints && i == 4) /* exactly a point */
            memory = all->cost[rng_below(&r, all->npoints)].memory;
        if (!limits_hold(&g->p, all, algorithm[i], memory, time,
                         seed % BY_THREADS ? 0 : 2 + i)) {
            bad->boxes++;
            blame(seed, g, "the fastest, or what is within limits, is wrong");
        }
    }
}

static void check_limit(uint64_t seed, const struct random_problem *g,
                        const struct topt_frontier *all, const char *algorithm,
                        struct tally *bad)
{
    if (!all->npoints)
        return;
    int64_t limit = all->cost[all->npoints / 2].memory;
    struct topt_frontier *f = solve(&g->p, algorithm, limit ? limit : 1, 0, 1);
    int want = 0;
    while (want < all->npoints && all->cost[want].memory <= (limit ? limit : 1))
        want++;
    struct topt_frontier cut = *all;
    cut.npoints = want;
    if (!f || !same_costs(f, &cut) || !witnesses_hold(&g->p, f)) {
        bad->limits++;
        blame(seed, g, "a memory limit cuts more or less than it should");
    }
    topt_frontier_destroy(f);
}

/* Each true point has one no heavier and at most (1 + epsilon) as slow; nothing is better
 * than the truth. */
static void check_epsilon(uint64_t seed, const struct random_problem *g,
                          const struct topt_frontier *all, double epsilon,
                          struct tally *bad)
{
    struct topt_frontier *f = solve(&g->p, "ft", 0, epsilon, 1);
    int good =
        f && witnesses_hold(&g->p, f) && f->epsilon <= epsilon && covers(f, all, 0);
    if (!good) {
        bad->epsilons++;
        blame(seed, g, "an epsilon was not kept");
    }
    topt_frontier_destroy(f);
}

static void check_threads(uint64_t seed, const struct random_problem *g,
                          const struct topt_frontier *one, struct tally *bad)
{
    for (int n = 2; n <= 8; n *= 4) {
        struct topt_frontier *f = solve(&g->p, "ft", 0, 0, n);
        if (!f || !same_witnesses(&g->p, one, f)) {
            bad->threads++;
            blame(seed, g, "the answer depends on the number of threads");
        }
        topt_frontier_destroy(f);
    }
}

/* Is every true point covered as the frontier claims, and none bettered? */
static int bound_holds(const struct topt_frontier *all, const struct topt_frontier *f)
{
    if (all->npoints && !f->npoints)
        return !isfinite(f->epsilon);
    for (int i = 0; i < f->npoints; i++) /* never below the truth */
        for (int j = 0; j < all->npoints; j++)
            if (f->cost[i].memory <= all->cost[j].memory &&
                f->cost[i].time < all->cost[j].time)
                return 0;
    return !isfinite(f->epsilon) || covers(f, all, 0);
}

/* Within limits a tolerance is kept up to their very corner: what is true within them is
 * covered from within them. */
static int corner_holds(const struct topt_search_problem *p,
                        const struct topt_frontier *all, int64_t memory, int64_t time,
                        double epsilon)
{
    struct topt_search_options o = {
        .memory_limit = memory, .time_limit = time, .epsilon = epsilon};
    struct topt_frontier *f = NULL, want = within(all, memory, time);
    int good = !topt_search(p, &o, &f, NULL) && witnesses_hold(p, f) &&
               f->epsilon <= epsilon && bound_holds(&want, f);
    for (int k = 0; good && k < f->npoints; k++)
        good = (!memory || f->cost[k].memory <= memory) &&
               (!time || f->cost[k].time <= time);
    topt_frontier_destroy(f);
    return good;
}

static void check_corner(uint64_t seed, const struct random_problem *g,
                         const struct topt_frontier *all, struct tally *bad)
{
    static const double epsilon[] = {0.001, 0.05, 0.5};
    struct rng r = {seed ^ 0xc0a};
    for (int i = 0; i < 6 && all->npoints; i++) {
        struct topt_cost low = all->cost[0], high = all->cost[all->npoints - 1];
        int64_t memory = pick_limit(&r, low.memory, high.memory);
        int64_t time = i < 3 ? 0 : pick_limit(&r, high.time, low.time);
        if (i == 2) /* exactly a point */
            memory = all->cost[rng_below(&r, all->npoints)].memory;
        if (i == 4) /* just faster than one, as often the lightest of all */
            time = all->cost[rng_below(&r, 2) ? rng_below(&r, all->npoints) : 0].time - 1;
        if (!corner_holds(&g->p, all, i % 3 ? memory : 0, time > 0 ? time : 0,
                          epsilon[i % 3])) {
            bad->corners++;
            blame(seed, g, "a tolerance was not kept up to the limits");
        }
    }
}

/* Stopped after any amount of work, the answer is as good as it says. */
static void check_stopped(uint64_t seed, const struct random_problem *g,
                          const struct topt_frontier *all, struct tally *bad)
{
    static const char *const algorithm[] = {"ft", "ft-plain", "ft-elimination",
                                            "brute-force"};
    atomic_bool stop = 1;
    for (int i = 0; i < 16; i++) {
        struct topt_search_options o = {.algorithm = algorithm[i / 4],
                                        .max_work = i % 4 ? 30 << 2 * (i % 4) : 0,
                                        .stop = i % 4 ? NULL : &stop};
        struct topt_frontier *f = NULL;
        if (topt_search(&g->p, &o, &f, NULL) || !witnesses_hold(&g->p, f) ||
            !bound_holds(all, f) || (f->exact && !same_costs(all, f))) {
            bad->stopped++;
            blame(seed, g, "a stopped search claims too much");
        }
        if (i % 4 == 0 && i && f && isfinite(f->epsilon)) {
            bad->stopped++;
            blame(seed, g, "the plain searches do not stop");
        }
        bad->unfinished += f && !f->exact;
        topt_frontier_destroy(f);
    }
}

/* Tables may have hardly any entries: operators are decided by heuristic, and named; every
 * point costs what it says, and none is below the truth. */
static void check_decided(uint64_t seed, const struct random_problem *g,
                          const struct topt_frontier *all, struct tally *bad)
{
    static const char *const algorithm[] = {"ft", "ft-plain", "ft-elimination"};
    for (int i = 0; i < 3; i++) {
        struct topt_search_options o = {.algorithm = algorithm[i], .max_entries = 6};
        struct topt_frontier *f = NULL;
        int good = !topt_search(&g->p, &o, &f, NULL) && witnesses_hold(&g->p, f) &&
                   f->exact == !f->nheuristic;
        if (good && f->exact)
            good = same_costs(all, f);
        for (int k = 0; good && k < f->npoints; k++)
            for (int j = 0; good && j < all->npoints; j++)
                good = f->cost[k].memory > all->cost[j].memory ||
                       f->cost[k].time >= all->cost[j].time;
        if (!good) {
            bad->decided++;
            blame(seed, g, "a heuristic decision goes wrong");
        }
        bad->undecided += f && !f->exact;
        topt_frontier_destroy(f);
    }
}

/* Without an operator's last configuration nothing gets better. */
static void check_fewer(uint64_t seed, const struct random_problem *g,
                        const struct topt_frontier *all, struct tally *bad)
{
    struct topt_search_op *op =
        (struct topt_search_op *)&g->p.op[seed % (uint64_t)g->p.nops];
    op->nconfigs--;
    struct topt_frontier *f = solve(&g->p, "ft", 0, 0, 1);
    op->nconfigs++;
    int good = f && witnesses_hold(&g->p, f);
    for (int i = 0; good && i < f->npoints; i++) {
        int covered = 0;
        for (int j = 0; j < all->npoints && !covered; j++)
            covered = all->cost[j].memory <= f->cost[i].memory &&
                      all->cost[j].time <= f->cost[i].time;
        good = covered;
    }
    if (!good) {
        bad->fewer++;
        blame(seed, g, "fewer configurations make a better point");
    }
    topt_frontier_destroy(f);
}

static void check_problem(uint64_t seed, const struct random_problem *g,
                          struct tally *bad)
{
    static const char *const others[] = {"ft", "ft-plain", "ft-elimination"};
    struct topt_frontier *all = solve(&g->p, "brute-force", 0, 0, 1);
    bad->tried++;
    if (!all || !witnesses_hold(&g->p, all)) {
        bad->costs++;
        topt_frontier_destroy(all);
        return;
    }
    for (int i = 0; i < 3; i++) {
        struct topt_frontier *f = solve(&g->p, others[i], 0, 0, 1);
        if (!f || !same_costs(all, f)) {
            bad->costs++;
            blame(seed, g, others[i]);
        } else if (!witnesses_hold(&g->p, f)) {
            bad->witnesses++;
            blame(seed, g, "a witness does not cost what it should");
        }
        if (f && i == 0 && seed % BY_THREADS == 0)
            check_threads(seed, g, f, bad);
        topt_frontier_destroy(f);
        check_limit(seed, g, all, others[i], bad);
    }
    check_boxes(seed, g, all, bad);
    check_epsilon(seed, g, all, seed % 2 ? 0.02 : 0.5, bad);
    check_corner(seed, g, all, bad);
    check_fewer(seed, g, all, bad);
    check_stopped(seed, g, all, bad);
    check_decided(seed, g, all, bad);
    topt_frontier_destroy(all);
}

static void small_problems(void)
{
    struct tally bad = {0};
    for (uint64_t seed = 1; bad.tried < PROBLEMS; seed++) {
        struct rng r = {seed};
        struct random_spec spec = pick_spec(&r);
        struct random_problem g;
        problem_make(&g, &r, spec);
        if (strategies(&g.p, spec.max_alternatives) < 20000)
            check_problem(seed, &g, &bad);
        problem_free(&g);
    }
    is_int(bad.costs, 0, "%d problems: every search finds brute force's frontier",
           bad.tried);
    is_int(bad.witnesses, 0, "every witness costs what its point says");
    is_int(bad.threads, 0,
           "1, 2 and 8 threads give the same answer, witnesses and counts");
    is_int(bad.limits, 0, "a memory limit gives the frontier up to it");
    is_int(bad.boxes, 0, "%d times: limits of memory and time, and the fastest in them",
           bad.boxed);
    is_int(bad.epsilons, 0, "epsilon is a bound, and memory is not traded");
    is_int(bad.corners, 0, "and so up to the corner of limits");
    is_int(bad.fewer, 0, "fewer configurations never make a better point");
    is_int(bad.stopped, 0, "%d searches stopped: as good as they say", bad.unfinished);
    is_int(bad.decided, 0, "%d searches decided operators: named, none below the truth",
           bad.undecided);
    ok(bad.unfinished > 5 * PROBLEMS / 2 && bad.undecided > PROBLEMS / 8,
       "both happen often");
}

/* Costs near 2^62: the right answer, or a plain word about overflow. */
static void large_numbers(void)
{
    enum { LARGE = TOPT_TEST_SIZE(400) };
    int wrong = 0, answered = 0, refused = 0, loose = 0;
    for (uint64_t seed = 1; seed <= LARGE; seed++) {
        struct rng r = {seed};
        struct random_spec spec = pick_spec(&r);
        struct random_problem g;
        spec.max_cost = ((int64_t)1 << (56 + seed % 7)) - 1;
        spec.nops = spec.nops < 4 ? spec.nops : 4;
        spec.empty_percent = 0; /* else parts may overflow that no strategy is made of */
        problem_make(&g, &r, spec);
        struct topt_frontier *all = NULL, *f = NULL;
        struct topt_error err;
        struct topt_search_options brute = {.algorithm = "brute-force"}, ft = {0};
        int full = topt_search(&g.p, &brute, &all, NULL);
        if (topt_search(&g.p, &ft, &f, &err)) {
            refused++;
            wrong += err.code != TOPT_ERR_LIMIT || !full;
        } else {
            answered++;
            wrong += !witnesses_hold(&g.p, f) || (!full && !same_costs(all, f));
        }
        for (int i = 0; f && i < 3; i++) {
            static const double epsilon[] = {0.01, 0.5, 1e9};
            struct topt_frontier *near = solve(&g.p, "ft", 0, epsilon[i], 1);
            wrong += !near || !bound_holds(f, near) || !witnesses_hold(&g.p, near) ||
                     near->epsilon > epsilon[i];
            loose += near && near->npoints < f->npoints;
            topt_frontier_destroy(near);
        }
        if (f && f->npoints) {
            struct topt_cost c = f->cost[f->npoints / 2];
            wrong += !limits_hold(&g.p, f, "ft", c.memory, 0, 0);
            wrong += !limits_hold(&g.p, f, "ft", 0, c.time, 0);
        }
        topt_frontier_destroy(all);
        topt_frontier_destroy(f);
        problem_free(&g);
    }
    is_int(wrong, 0, "near 2^63: %d answered right, %d refused for overflow", answered,
           refused);
    ok(answered > LARGE / 20 && refused > LARGE / 20 && loose > LARGE / 20,
       "both happen, and %d times a tolerance leaves out something", loose);
}

/* Larger than brute force can: the independent searches agree, for any number of threads. */
static void larger_problems(void)
{
    enum { LARGER = TOPT_TEST_SIZE_FROM(60, 2 * SHAPE_PARALLEL) };
    int wrong = 0, n = 0, boxes = 0;
    for (uint64_t seed = 1; seed <= LARGER; seed++, n++) {
        struct rng r = {seed};
        struct random_problem g;
        struct random_spec spec = {.shape = (enum shape)(seed % SHAPE_PARALLEL),
                                   .nops = 13,
                                   .max_configs = 5,
                                   .max_alternatives = 2,
                                   .max_cost = 60,
                                   .classes_percent = 50};
        if (spec.shape == SHAPE_DAG || spec.shape == SHAPE_STAR)
            spec.nops = 6;
        problem_make(&g, &r, spec);
        struct topt_frontier *one = solve(&g.p, "ft", 0, 0, 1);
        struct topt_frontier *many = solve(&g.p, "ft", 0, 0, 8);
        struct topt_frontier *plain = solve(&g.p, "ft-plain", 0, 0, 1);
        struct topt_frontier *elim = solve(&g.p, "ft-elimination", 0, 0, 1);
        if (!one || !many || !plain || !elim || !same_witnesses(&g.p, one, many) ||
            !same_costs(one, plain) || !same_costs(one, elim) ||
            !witnesses_hold(&g.p, one) || !witnesses_hold(&g.p, plain)) {
            wrong++;
            blame(seed, &g, "larger problem");
        }
        struct rng limits = {seed};
        for (int i = 0; one && one->npoints && i < 6; i++) {
            struct topt_cost a = one->cost[0], b = one->cost[one->npoints - 1];
            int64_t memory = pick_limit(&limits, a.memory, b.memory);
            int64_t time = i % 2 ? pick_limit(&limits, b.time, a.time) : 0;
            boxes += !limits_hold(&g.p, one, "ft", memory, time, 2);
        }
        topt_frontier_destroy(one);
        topt_frontier_destroy(many);
        topt_frontier_destroy(plain);
        topt_frontier_destroy(elim);
        problem_free(&g);
    }
    is_int(wrong, 0, "%d larger problems: ft, ft-plain, ft-elimination agree", n);
    is_int(boxes, 0, "and so does ft within limits");
}

/* Large enough that the threads are really woken. */
static void many_threads(void)
{
    int wrong = 0;
    for (int shape = 0; shape <= SHAPE_BLOCKS; shape += SHAPE_BLOCKS) {
        struct rng r = {(uint64_t)shape + 9};
        struct random_problem g;
        struct random_spec spec = {.shape = (enum shape)shape,
                                   .nops = 19,
                                   .max_configs = 24,
                                   .max_alternatives = 3,
                                   .max_cost = 3000,
                                   .classes_percent = 80};
        problem_make(&g, &r, spec);
        struct topt_frontier *one = solve(&g.p, "ft", 0, 0, 1);
        for (int n = 2; n <= 8; n *= 2) {
            struct topt_frontier *f = solve(&g.p, "ft", 0, 0, n);
            wrong +=
                !one || !f || !same_witnesses(&g.p, one, f) || !witnesses_hold(&g.p, f);
            topt_frontier_destroy(f);
        }
        for (int i = 1; one && i < 8; i++) {
            struct topt_cost c = one->cost[one->npoints * i / 8];
            wrong += !limits_hold(&g.p, one, "ft", c.memory + i % 2, 0, 2 << i % 3);
            wrong += !limits_hold(&g.p, one, "ft", c.memory + 100, c.time + 100, 2);
        }
        topt_frontier_destroy(one);
        problem_free(&g);
    }
    is_int(wrong, 0, "2, 4 and 8 threads at work give what one gives");
}

/* Long enough that segments are parted, lists are long, and tables are made again and again;
 * with a tolerance, within which many points are left out. */
static void long_chains(void)
{
    int wrong = 0, loose = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct rng r = {seed};
        struct random_problem g;
        struct random_spec spec = {.shape = seed % 2 ? SHAPE_CHAIN : SHAPE_BLOCKS,
                                   .nops = seed % 2 ? 70 : 31,
                                   .max_configs = 9,
                                   .max_alternatives = 2,
                                   .max_cost = 1000000};
        problem_make(&g, &r, spec);
        struct topt_frontier *all = solve(&g.p, "ft-plain", 0, 0, 1);
        struct topt_frontier *one = solve(&g.p, "ft", 0, 0, 1);
        struct topt_frontier *two = solve(&g.p, "ft", 0, 0, 2);
        wrong += !all || !one || !two || !same_costs(all, one) || !one->exact ||
                 !same_witnesses(&g.p, one, two) || !witnesses_hold(&g.p, one);
        for (int i = 0; all && i < 4; i++) {
            struct topt_frontier *f = solve(&g.p, "ft", 0, 0.001 * (1 << 2 * i), 1);
            loose += !f || f->epsilon > 0.001 * (1 << 2 * i) || !bound_holds(all, f) ||
                     !witnesses_hold(&g.p, f) || f->npoints > all->npoints;
            topt_frontier_destroy(f);
        }
        printf("# %d points in %d bands\n", one ? one->npoints : 0,
               one ? (int)one->stats.bands : 0);
        topt_frontier_destroy(all);
        topt_frontier_destroy(one);
        topt_frontier_destroy(two);
        problem_free(&g);
    }
    is_int(wrong, 0, "long chains and blocks: ft finds what the plain steps find");
    is_int(loose, 0, "and with a tolerance what it promises");
}

/* A chain with so much to leave out that segments are searched on problems of their own: exact,
 * with a tolerance, within a limit, stopped. */
static void narrow_bands(void)
{
    struct rng r = {3};
    struct random_problem g;
    struct random_spec spec = {.shape = SHAPE_CHAIN,
                               .nops = 50,
                               .max_configs = 24,
                               .max_alternatives = 2,
                               .max_cost = 1000000};
    problem_make(&g, &r, spec);
    struct topt_frontier *all = solve(&g.p, "ft-plain", 0, 0, 1);
    struct topt_frontier *one = solve(&g.p, "ft", 0, 0, 1);
    struct topt_frontier *two = solve(&g.p, "ft", 0, 0, 2);
    int wrong = !all || !one || !two || !same_costs(all, one) || !one->exact ||
                !same_witnesses(&g.p, one, two) || !witnesses_hold(&g.p, one);
    int64_t half = all ? all->cost[all->npoints / 2].memory : 0;
    wrong += !all || !limits_hold(&g.p, all, "ft", half, 0, 2);
    is_int(wrong, 0, "narrow bands: ft finds what the plain steps find");
    wrong = !all;
    for (int i = 0; all && i < 8; i++) {
        struct topt_search_options o = {.memory_limit = i % 2 ? half : 0,
                                        .epsilon = i % 4 < 2 ? 0 : 0.0005,
                                        .max_work = i < 4 ? 0 : 400000 + 100000 * i};
        struct topt_frontier *f = NULL, want = within(all, o.memory_limit, 0);
        wrong += topt_search(&g.p, &o, &f, NULL) || !bound_holds(&want, f) ||
                 !witnesses_hold(&g.p, f);
        topt_frontier_destroy(f);
    }
    is_int(wrong, 0, "and what they promise with a tolerance and when stopped");
    topt_frontier_destroy(all);
    topt_frontier_destroy(one);
    topt_frontier_destroy(two);
    problem_free(&g);
}

int main(void)
{
    long_chains();
    narrow_bands();
    many_threads();
    small_problems();
    large_numbers();
    larger_problems();
    return done_testing();
}
