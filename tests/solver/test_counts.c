/* test_counts.c - all numbers of devices at once, against each number by itself.
 *
 * What a request over many counts answers (bounds from shapes and spaces before, counts left
 * out unsearched) must be what whole frontiers of each shape say, searched without any limit.
 * Clusters are random: nodes of up to 6 devices, so most counts are no powers of two.  Then what
 * must hold between the answers of different searches: devices, spaces, tolerances, stops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "free.h"
#include "grid.h"
#include "best.h"
#include "planning.h"
#include "request.h"
#include "topt_export.h"
#include "topt_plan.h"
#include "topt_choices.h"
#include "random_hw.h"
#include "random_model.h"
#include "sizes.h"
#include "tap.h"
#include "topt_text.h"

/* ---- random clusters ------------------------------------------------------------------------ */

static struct topt_hw *make_cluster(int nodes, int per_node, int local_mb, int far_mb,
                                    int latency_ns)
{
    return made_up_cluster(&(struct made_up){nodes, per_node, .node_mb = local_mb,
                                             .node_ns = latency_ns, .cluster_mb = far_mb,
                                             .cluster_ns = 4 * latency_ns});
}

static struct topt_hw *random_cluster(uint64_t *seed)
{
    static const int sizes[][2] = {{1, 6}, {2, 3}, {3, 2}, {1, 4},
                                   {3, 3}, {2, 5}, {2, 6}};
    const int *size = sizes[random_below(seed, 7)];
    return make_cluster(size[0], size[1], 100 + random_below(seed, 5000),
                        10 + random_below(seed, 500), random_below(seed, 5000));
}

/* A request about a random model; whoever asks destroys model and cluster. */
static int random_request(uint64_t seed, struct topt_request *r)
{
    static const enum topt_space spaces[] = {TOPT_SPACE_FULL, TOPT_SPACE_CANONICAL,
                                             TOPT_SPACE_UNIFORM, TOPT_SPACE_AUTO};
    uint64_t s = seed * 7919;
    int blocks = random_below(&s, 2);
    topt_request_init(r);
    r->settings.granule_bytes = 1 + 63 * random_below(&s, 2);
    r->hw = random_cluster(&s);
    r->model = blocks ? block_model(seed, 2, 1 + random_below(&s, 2))
                      : random_model(seed, 1 + random_below(&s, 3));
    r->space = spaces[random_below(&s, 4)];
    r->blocks = blocks ? TOPT_BLOCKS_ALIKE : TOPT_BLOCKS_FREE;
    r->factors = blocks ? TOPT_FACTORS_ALL : TOPT_FACTOR_ZERO * random_below(&s, 2);
    r->counts = random_below(&s, 4) == 0 ? TOPT_COUNTS_POW2 : TOPT_COUNTS_ANY;
    return r->hw && r->model;
}

static void request_fini(struct topt_request *r)
{
    topt_model_destroy((struct topt_model *)r->model);
    topt_hw_destroy((struct topt_hw *)r->hw);
}

/* ---- each count by itself ------------------------------------------------------------------- */

enum { MAX_COUNT = 18 };

/* Random requests, and models of which many searches are stopped. */
enum { REQUESTS = TOPT_TEST_SIZE_FROM(28, 6), STOPPED = TOPT_TEST_SIZE_FROM(30, 4) };

/* Every point of every shape, unlimited and unordered. */
struct alone {
    int npoints;
    struct topt_cost point[4000];
    int64_t least;
};

static int add_shape(struct topt_planning *m, int nodes, int per_node, struct alone *a)
{
    struct topt_grid_search s;
    struct topt_solutions all = {0};
    int rc = topt_grid_open(&s, m, nodes, per_node, TOPT_GOAL_FRONTIER, NULL) ||
             topt_grid_solve(&s, TOPT_GOAL_FRONTIER, 0, 0, &all, NULL);
    for (int i = 0; i < all.n && a->npoints < 4000; i++) {
        int64_t memory = all.at[i].memory_bytes;
        a->point[a->npoints++] = (struct topt_cost){memory, all.at[i].time_ns};
        a->least = memory < a->least ? memory : a->least;
    }
    topt_solutions_fini(&all);
    topt_grid_close(&s);
    return rc;
}

static int search_alone(const struct topt_request *r, int64_t gpus, struct alone *a)
{
    struct topt_planning m;
    int nodes = 0, per_node = 0, rc = 0;
    *a = (struct alone){.least = INT64_MAX};
    if (topt_planning_init(&m, r, NULL))
        return -1;
    while (!rc && topt_request_grid(r, gpus, &nodes, &per_node))
        rc = add_shape(&m, nodes, per_node, a);
    topt_planning_fini(&m);
    return rc;
}

/* The fastest within a limit (0: none), the lightest of these; time -1 where none is. */
static struct topt_cost fastest_of(const struct alone *a, int64_t limit)
{
    struct topt_cost best = {0, -1};
    for (int i = 0; i < a->npoints; i++) {
        const struct topt_cost *p = &a->point[i];
        if (limit && p->memory > limit)
            continue;
        if (best.time < 0 || p->time < best.time ||
            (p->time == best.time && p->memory < best.memory))
            best = *p;
    }
    return best;
}

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static int is_cost(const json_t *o, struct topt_cost want)
{
    return whole(o, "memory_bytes") == want.memory && whole(o, "time_ns") == want.time;
}

struct tally {
    int tried, curves, fewest, points, infeasible, reasons, odd, untrue, unproven,
        stopped, unknown;
};

static int same_curve(struct topt_request *r, const struct alone *alone, struct tally *t)
{
    json_t *curve = NULL;
    r->mode = TOPT_PROFILING;
    if (topt_plan(r, &curve, NULL))
        return 0;
    const json_t *points = json_object_get(curve, "points");
    int good = json_array_size(points) > 0;
    for (size_t i = 0; i < json_array_size(points); i++, t->points++) {
        const json_t *p = json_array_get(points, i);
        int64_t gpus = whole(p, "gpus");
        struct topt_cost want = fastest_of(&alone[gpus], r->memory_limit);
        int feasible = json_is_true(json_object_get(p, "feasible"));
        good &= feasible == (want.time >= 0) && (!feasible || is_cost(p, want));
        t->infeasible += !feasible;
        t->odd += (gpus & (gpus - 1)) != 0;
    }
    json_decref(curve);
    return good;
}

/* The fewest devices, the fastest on them, and what the count before would need. */
static int same_fewest(struct topt_request *r, const struct alone *alone, struct tally *t)
{
    json_t *a = NULL;
    int64_t *count, limit = r->memory_limit;
    int n, i = 0, good = 0;
    r->mode = TOPT_MINI_PARALLELISM;
    if (topt_plan(r, &a, NULL) || topt_request_counts(r, &count, &n, NULL)) {
        json_decref(a);
        return 0;
    }
    while (i < n && fastest_of(&alone[count[i]], limit).time < 0)
        i++;
    if (i == n)
        good = !json_is_true(json_object_get(a, "feasible")) &&
               whole(json_object_get(a, "nearest"), "memory_bytes") ==
                   alone[count[n - 1]].least;
    else
        good = whole(a, "gpus") == count[i] &&
               is_cost(a, fastest_of(&alone[count[i]], limit)) &&
               json_is_true(json_object_get(a, "exact"));
    char need[32];
    const char *why = json_string_value(json_object_get(a, "why"));
    if (i > 0 && i < n && strstr(why, "at least")) {
        topt_show_bytes(alone[count[i - 1]].least, need, sizeof need);
        good &= strstr(why, need) != NULL;
        t->reasons++;
    }
    json_decref(a);
    free(count);
    return good;
}

/* A curve's point of one count says what is known: that it fits, that it does not, or neither. */
static void plot_roughly(struct topt_request r, const struct alone *alone,
                         struct tally *t)
{
    json_t *curve = NULL;
    r.mode = TOPT_PROFILING;
    r.gpu_list = &r.gpus;
    r.ngpu_list = 1;
    if (topt_plan(&r, &curve, NULL)) {
        t->untrue++;
        return;
    }
    const json_t *p = json_array_get(json_object_get(curve, "points"), 0);
    const json_t *fits = json_object_get(p, "feasible");
    struct topt_cost best = fastest_of(&alone[r.gpus], r.memory_limit);
    t->unknown += json_is_null(fits);
    if (json_is_null(fits))
        t->untrue += json_array_size(json_object_get(p, "heuristic")) == 0;
    else
        t->untrue += json_is_true(fits) != (best.time >= 0);
    json_decref(curve);
}

/* In small tables, where operators are decided by heuristic: an answer is no better than
 * the best, and what is said to be needed at least is. */
static void ask_roughly(struct topt_request *r, const struct alone *alone, int64_t gpus,
                        struct tally *t)
{
    static const int64_t most[] = {2, 16, 64};
    json_t *a = NULL;
    r->mode = TOPT_MINI_TIME;
    r->gpus = gpus;
    for (int i = 0; i < 3; i++) {
        struct topt_error err = {0};
        r->max_entries = most[i];
        plot_roughly(*r, alone, t);
        if (topt_plan(r, &a, &err)) {
            t->untrue++;
            continue;
        }
        struct topt_cost best = fastest_of(&alone[gpus], r->memory_limit);
        int64_t need = whole(json_object_get(a, "nearest"), "memory_bytes");
        const json_t *fits = json_object_get(a, "feasible");
        if (json_is_true(fits))
            t->untrue += best.time < 0 || whole(a, "time_ns") < best.time;
        else if (json_is_false(fits))
            t->untrue += best.time >= 0 || need != alone[gpus].least;
        else
            t->untrue += json_array_size(json_object_get(a, "heuristic")) == 0;
        t->unproven += json_is_null(fits);
        json_decref(a);
    }
    r->max_entries = 0;
}

/* Stopped at once: what is said to fit does, and nothing is said not to fit that may. */
static void ask_stopped(struct topt_request r, const struct alone *alone, int64_t gpus,
                        struct tally *t)
{
    static const enum topt_mode mode[] = {TOPT_MINI_TIME, TOPT_MINI_PARALLELISM};
    static const atomic_bool stop = 1;
    r.gpus = gpus;
    r.stop = &stop;
    for (int i = 0; i < 2; i++) {
        json_t *a = NULL;
        r.mode = mode[i];
        if (topt_plan(&r, &a, NULL)) {
            t->untrue++;
            continue;
        }
        const json_t *fits = json_object_get(a, "feasible");
        if (json_is_true(fits))
            t->untrue += fastest_of(&alone[whole(a, "gpus")], r.memory_limit).time < 0 ||
                         whole(a, "memory_bytes") > r.memory_limit;
        else
            t->untrue +=
                !json_is_null(fits) || !json_is_true(json_object_get(a, "stopped"));
        t->stopped += json_is_null(fits);
        json_decref(a);
    }
}

static void compare_counts(uint64_t seed, struct topt_request *r, struct tally *t)
{
    static struct alone alone[MAX_COUNT + 1];
    int64_t all = (int64_t)topt_hw_max_nodes(r->hw) * topt_hw_gpus_per_node(r->hw);
    for (int64_t c = 1; c <= all; c++)
        if (search_alone(r, c, &alone[c]))
            return;
    /* About what some count needs. */
    uint64_t s = seed;
    int64_t some = 1 + random_below(&s, (int)all);
    while (alone[some].npoints == 0)
        some--;
    r->memory_limit = alone[some].least * (90 + random_below(&s, 40)) / 100;
    int curve = same_curve(r, alone, t), fewest = same_fewest(r, alone, t);
    ask_roughly(r, alone, some, t);
    ask_stopped(*r, alone, some, t);
    t->tried++;
    t->curves += curve;
    t->fewest += fewest;
    if (!curve || !fewest)
        printf("# seed %d: curve %d fewest %d\n", (int)seed, curve, fewest);
}

/* Is every point of 'all' stood for by one of 'few'? */
static int stands_for_all(const json_t *few, const json_t *all, double epsilon)
{
    const json_t *x = json_object_get(few, "points"), *y = json_object_get(all, "points");
    int good = 1;
    for (size_t i = 0; i < json_array_size(y) && good; i++) {
        const json_t *p = json_array_get(y, i);
        good = 0;
        for (size_t k = 0; k < json_array_size(x) && !good; k++) {
            const json_t *q = json_array_get(x, k);
            good = whole(q, "memory_bytes") <= whole(p, "memory_bytes") &&
                   (double)whole(q, "time_ns") <=
                       (double)whole(p, "time_ns") * (1 + epsilon);
        }
    }
    return good;
}

/* Where recomputation is free to choose and a tolerance leaves things out, what makes
 * nothing again is found beside what does: each point costs what the check says that it
 * does, and stands for what is true. */
static void test_tolerance(void)
{
    int failed = 0, n = 0, missed = 0;
    for (uint64_t seed = 1; seed <= TOPT_TEST_SIZE_FROM(24, 4); seed++) {
        struct topt_request r;
        json_t *all = NULL, *few = NULL;
        if (random_request(seed, &r)) {
            r.factors = TOPT_FACTOR_RECOMPUTE;
            r.blocks = TOPT_BLOCKS_ALIKE;
            r.settings.granule_bytes = 1;
            r.gpus = 4;
            int rc = topt_plan_frontier(&r, &all, NULL);
            r.epsilon = 0.1;
            failed += rc || topt_plan_frontier(&r, &few, NULL);
            missed += few && !stands_for_all(few, all, r.epsilon);
            n++;
        }
        json_decref(all);
        json_decref(few);
        request_fini(&r);
    }
    ok(n > 0, "frontiers with recomputation were asked for");
    is_int(failed, 0, "%d frontiers with recomputation within a tolerance", n);
    is_int(missed, 0, "and what they leave out is stood for");
}

static void test_counts(void)
{
    struct tally t = {0};
    for (uint64_t seed = 1; seed <= REQUESTS; seed++) {
        struct topt_request r;
        if (random_request(seed, &r))
            compare_counts(seed, &r, &t);
        request_fini(&r);
    }
    is_int(t.curves, t.tried, "%d random requests: curves as each count alone", t.tried);
    is_int(t.fewest, t.tried, "the fewest devices, their plan, or the nearest, too");
    ok(!t.untrue && t.unproven > 0 && t.stopped > 0 && t.unknown > 0,
       "in small tables nothing untrue is said, %d times that nothing was found",
       t.unproven);
    ok(t.tried > 5 * REQUESTS / 7 && t.points > 25 * REQUESTS / 7 &&
           t.infeasible > 5 * REQUESTS / 7 && t.odd > 10 * REQUESTS / 7 &&
           t.reasons > REQUESTS / 9,
       "%d points, %d do not fit, %d no powers of two, %d say what fewer would need",
       t.points, t.infeasible, t.odd, t.reasons);
}

/* ---- many devices ------------------------------------------------------------------ */

/* Bytes without which nothing fits on so many devices. */
static int64_t least_on(struct topt_request *r, int64_t gpus)
{
    json_t *a = NULL;
    r->mode = TOPT_MINI_TIME;
    r->gpus = gpus;
    r->memory_limit = 1;
    if (topt_plan(r, &a, NULL))
        return 1;
    int64_t least = whole(json_object_get(a, "nearest"), "memory_bytes");
    json_decref(a);
    return least;
}

/* Six-GPU nodes by the dozen: a curve over all counts says of each what a search of that count
 * alone says. */
static void test_dozens(void)
{
    enum { MODELS = TOPT_TEST_SIZE_FROM(4, 2) };
    static const int counts[] = {5, 9, 12, 24, 36, 48};
    int same = 0, n = 0, some = 0;
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        struct topt_request r;
        json_t *curve = NULL, *p;
        size_t k;
        topt_request_init(&r);
        r.model = block_model(seed, 3, 2);
        r.hw = make_cluster(8, 6, 500, 50 + 100 * (int)seed, 100);
        r.space = seed % 2 ? TOPT_SPACE_UNIFORM : TOPT_SPACE_CANONICAL;
        r.factors = seed % 2 ? TOPT_FACTORS_ALL : TOPT_FACTOR_ZERO;
        r.settings.granule_bytes = 1;
        r.memory_limit = least_on(&r, 12) + (int64_t)seed;
        r.mode = TOPT_PROFILING;
        int rc = topt_plan(&r, &curve, NULL);
        r.mode = TOPT_MINI_TIME;
        for (size_t i = 0; !rc && i < sizeof counts / sizeof *counts; i++)
            json_array_foreach(json_object_get(curve, "points"), k, p)
            {
                json_t *a = NULL;
                if (whole(p, "gpus") != counts[i])
                    continue;
                r.gpus = counts[i];
                int fits = json_is_true(json_object_get(p, "feasible"));
                n++;
                some += fits;
                same += !topt_plan(&r, &a, NULL) &&
                        fits == json_is_true(json_object_get(a, "feasible")) &&
                        (!fits || is_cost(a, (struct topt_cost){whole(p, "memory_bytes"),
                                                                whole(p, "time_ns")}));
                json_decref(a);
            }
        json_decref(curve);
        request_fini(&r);
    }
    is_int(same, n, "up to 48 devices of 6 a node: curves as each count alone");
    ok(n >= 5 * MODELS && some > MODELS && some < n, "%d counts, %d of them fit", n,
       some);
}

/* ---- random plans ------------------------------------------------------------------ */

/* No random plan of a space is better than its frontier. */
static void test_samples(void)
{
    static struct alone alone;
    int above = 0, n = 0;
    for (uint64_t seed = 1; seed <= REQUESTS; seed++) {
        struct topt_request r;
        json_t *all = NULL, *doc;
        size_t i;
        int good = random_request(seed, &r);
        r.gpus = (int64_t)topt_hw_gpus_per_node(r.hw) * (1 + (int)(seed % 2));
        if (r.gpus > (int64_t)topt_hw_max_nodes(r.hw) * topt_hw_gpus_per_node(r.hw))
            r.gpus /= 2;
        good = good && !search_alone(&r, r.gpus, &alone) &&
               !topt_plan_sample(&r, 12, seed, &all, NULL);
        json_array_foreach(all, i, doc)
        {
            const json_t *cost = json_object_get(doc, "predicted");
            struct topt_cost best = fastest_of(&alone, whole(cost, "memory_bytes"));
            n++;
            above += good && best.time >= 0 && best.time <= whole(cost, "time_ns");
        }
        json_decref(all);
        request_fini(&r);
    }
    is_int(above, n, "no random plan is better than the frontier");
    ok(n > 50 * REQUESTS / 7, "%d random plans", n);
}

/* ---- what must hold between answers --------------------------------------------------------- */

/* Has each point of 'of' one in 'by' that is no heavier and at most (1 + epsilon) as slow? */
static int covers(const struct topt_solutions *by, const struct topt_solutions *of,
                  double epsilon)
{
    for (int i = 0; i < of->n; i++) {
        int covered = 0;
        for (int k = 0; k < by->n && !covered; k++)
            covered = by->at[k].memory_bytes <= of->at[i].memory_bytes &&
                      topt_search_excess(by->at[k].time_ns, of->at[i].time_ns) <= epsilon;
        if (!covered)
            return 0;
    }
    return 1;
}

/* '*ret_priced': what of the counted work is pricing. */
static int solve_counted(const struct topt_request *r, int nodes, int per_node,
                         enum topt_goal goal, struct topt_solutions *ret,
                         int64_t *ret_priced)
{
    struct topt_planning m;
    struct topt_grid_search s;
    memset(ret, 0, sizeof *ret);
    if (topt_planning_init(&m, r, NULL))
        return -1;
    int rc = topt_grid_open(&s, &m, nodes, per_node, TOPT_GOAL_FRONTIER, NULL) ||
             topt_grid_solve(&s, goal, r->memory_limit, 0, ret, NULL);
    *ret_priced = m.work - ret->certificate.stats.products;
    topt_grid_close(&s);
    topt_planning_fini(&m);
    return rc;
}

static int solve(const struct topt_request *r, int nodes, int per_node,
                 enum topt_goal goal, struct topt_solutions *ret)
{
    int64_t priced;
    return solve_counted(r, nodes, per_node, goal, ret, &priced);
}

/* What it takes that all devices of one node know the loss, which no plan does without. */
static int64_t loss_ns(const struct topt_hw *hw, int per_node)
{
    struct topt_mesh mesh;
    if (topt_mesh_init(&mesh, 1, per_node, NULL))
        return 0;
    struct topt_router *r = topt_router_create(hw, &mesh);
    int64_t ns = topt_router_time(r, TOPT_ALL_REDUCE, (1u << mesh.naxes) - 1, 8).ns;
    topt_router_destroy(r);
    return mesh.naxes ? ns : 0;
}

/* Twice the devices can do what half of them do, each twice: never slower, never heavier, but
 * for the sum of the losses. */
static void test_more_devices(void)
{
    int good = 0, n = 0;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct topt_request r;
        struct topt_solutions one, two;
        topt_request_init(&r);
        r.model = random_model(seed, (int)(seed % 4));
        r.hw = make_cluster(2, 4, 500, 500, 100);
        r.space = TOPT_SPACE_FULL;
        r.factors = TOPT_FACTOR_ZERO * (int)(seed % 2);
        if (r.model && !solve(&r, 1, 1 + (int)(seed % 2), TOPT_GOAL_FRONTIER, &one)) {
            int half = 1 + (int)(seed % 2);
            for (int i = 0; i < one.n; i++)
                one.at[i].time_ns += loss_ns(r.hw, 2 * half) - loss_ns(r.hw, half);
            n++;
            good += !solve(&r, 1, 2 * half, TOPT_GOAL_FRONTIER, &two) &&
                    covers(&two, &one, 0);
            topt_solutions_fini(&two);
        }
        topt_solutions_fini(&one);
        request_fini(&r);
    }
    ok(n > 20, "%d models on one device and two, or two and four", n);
    is_int(good, n, "more devices are never slower at equal memory");
}

/* A space within another has no point that the other lacks. */
static void test_spaces(void)
{
    int good = 0, n = 0;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        static const enum topt_space spaces[] = {TOPT_SPACE_FULL, TOPT_SPACE_CANONICAL,
                                                 TOPT_SPACE_UNIFORM};
        struct topt_solutions found[3];
        struct topt_request r;
        int rc = 0;
        topt_request_init(&r);
        r.model = block_model(seed, 2, 1 + (int)(seed % 2));
        r.hw = make_cluster(2, 6, 500, 50, 100);
        r.blocks = TOPT_BLOCKS_ALIKE;
        r.factors = seed % 3 ? TOPT_FACTOR_ZERO : TOPT_FACTORS_ALL;
        for (int i = 0; i < 3; i++) {
            r.space = spaces[i];
            rc |= solve(&r, 1 + (int)(seed % 2), 2 + (int)(seed % 3), TOPT_GOAL_FRONTIER,
                        &found[i]);
        }
        n++;
        good += !rc && covers(&found[0], &found[1], 0) && covers(&found[1], &found[2], 0);
        for (int i = 0; i < 3; i++)
            topt_solutions_fini(&found[i]);
        request_fini(&r);
    }
    ok(n > 0, "models were compared in all spaces");
    is_int(good, n, "%d models: full holds canonical, canonical holds uniform", n);
}

/* ---- tolerances and stops -------------------------------------------------------------------- */

struct claims {
    int tried, loose, wrong, unfinished, proven;
};

/* Is what is claimed of the fastest true? */
static int fastest_holds(const struct topt_solutions *s, const struct topt_solutions *all)
{
    const struct topt_certificate *c = &s->certificate;
    int64_t best = all->n ? all->at[all->n - 1].time_ns : 0;
    if (!s->n)
        return !all->n || (!c->exact && c->bound_ns <= best);
    return s->at[0].time_ns >= best && c->bound_ns <= best &&
           (!c->exact || s->at[0].time_ns == best) &&
           topt_search_excess(s->at[0].time_ns, best) <=
               topt_certificate_epsilon(c, s->at[0].time_ns);
}

static int frontier_holds(const struct topt_solutions *s,
                          const struct topt_solutions *all)
{
    const struct topt_certificate *c = &s->certificate;
    return covers(all, s, 0) && (!isfinite(c->epsilon) || covers(s, all, c->epsilon)) &&
           (!c->exact || (covers(s, all, 0) && s->n == all->n));
}

static void check_claims(struct topt_request *r, const struct topt_solutions *all,
                         struct claims *t)
{
    struct topt_solutions s;
    for (int goal = TOPT_GOAL_FRONTIER; goal <= TOPT_GOAL_FASTEST; goal++) {
        int rc = solve(r, 2, 2, (enum topt_goal)goal, &s);
        int holds =
            goal == TOPT_GOAL_FASTEST ? fastest_holds(&s, all) : frontier_holds(&s, all);
        t->tried++;
        t->wrong += rc || !holds;
        t->unfinished += !s.certificate.exact;
        t->proven += s.stopped && goal == TOPT_GOAL_FASTEST && s.n &&
                     isfinite(topt_certificate_epsilon(&s.certificate, s.at[0].time_ns));
        t->loose += !s.stopped && s.certificate.epsilon > r->epsilon;
        if (goal == TOPT_GOAL_FASTEST)
            printf("# stopped %d n %d exact %d eps %g bound %ld best %ld work %ld "
                   "products %ld\n",
                   s.stopped, s.n, s.certificate.exact, s.certificate.epsilon,
                   (long)s.certificate.bound_ns, s.n ? (long)s.at[0].time_ns : 0,
                   (long)r->max_work, (long)s.certificate.stats.products);
        topt_solutions_fini(&s);
    }
}

static void test_claims(void)
{
    struct claims t = {0};
    for (uint64_t seed = 1; seed <= STOPPED; seed++) {
        struct topt_request r;
        struct topt_solutions all, free_of_limit;
        topt_request_init(&r);
        r.model = seed % 2 ? block_model(seed, 3, 2) : random_model(seed, 4);
        r.hw = make_cluster(2, 2, 500, 50, 100);
        r.space = TOPT_SPACE_FULL;
        r.settings.granule_bytes = 1; /* frontiers of many points */
        r.blocks = seed % 4 == 1 ? TOPT_BLOCKS_ALIKE : TOPT_BLOCKS_FREE;
        r.factors = seed % 4 == 1 ? TOPT_FACTORS_ALL : TOPT_FACTOR_ZERO;
        if (!solve(&r, 2, 2, TOPT_GOAL_FRONTIER, &free_of_limit) && free_of_limit.n > 1)
            r.memory_limit = free_of_limit.at[free_of_limit.n / 2].memory_bytes - 1;
        int64_t priced;
        if (!solve_counted(&r, 2, 2, TOPT_GOAL_FRONTIER, &all, &priced)) {
            for (int i = 0; i < 3; i++) {
                r.epsilon = 0.002 * (1 << 3 * i);
                check_claims(&r, &all, &t);
            }
            r.epsilon = 0;
            for (int i = 0; i < 5; i++) {
                r.max_work = priced + ((int64_t)50 << 3 * i);
                check_claims(&r, &all, &t);
            }
        }
        topt_solutions_fini(&all);
        topt_solutions_fini(&free_of_limit);
        request_fini(&r);
    }
    ok(t.tried > 40 * STOPPED / 3 && t.unfinished > 5 * STOPPED / 3 &&
           t.proven > STOPPED / 3,
       "%d searches with tolerances or little work, %d not exact, %d stopped with a "
       "bound",
       t.tried, t.unfinished, t.proven);
    is_int(t.wrong, 0, "each is as good as it claims, up to the limit's corner");
    is_int(t.loose, 0, "and within its tolerance");
}

/* ---- what is told of it ------------------------------------------------------------ */

static int names_node(const struct topt_model *m, const char *name)
{
    int hub = !strncmp(name, "hub:", 4);
    for (int i = 0; i < m->nops && !hub; i++)
        if (!strcmp(m->op[i].name, name))
            return 1;
    for (int t = 0; t < m->ntensors && hub; t++)
        if (!strcmp(m->tensor[t].name, name + 4))
            return m->tensor[t].nconsumers > 1;
    return 0;
}

/* Tables of hardly any entries: operators are decided, named, and the plan reads back. */
static void test_decided(struct topt_request r)
{
    struct topt_plan_doc *p = NULL;
    json_t *a = NULL, *name;
    size_t i;
    int known = 0;
    r.max_entries = 3;
    ok(!topt_plan(&r, &a, NULL), "tables of at most 3 entries: a plan");
    const json_t *plan = json_object_get(a, "plan"),
                 *names = json_object_get(plan, "heuristic");
    json_array_foreach(names, i, name) known +=
        names_node(r.model, json_string_value(name));
    ok(known > 0 && (size_t)known == json_array_size(names) &&
           json_is_false(json_object_get(plan, "exact")) &&
           json_equal(names, json_object_get(a, "heuristic")),
       "%d operators and hubs were decided by heuristic, by name", known);
    ok(!topt_plan_read(plan, &p, NULL), "the plan reads back");
    topt_plan_doc_destroy(p);
    json_decref(a);
}

/* Stopped before it began, and out of work: what is found is said to be that. */
static void test_stopped(struct topt_request r)
{
    struct topt_error err = {0};
    atomic_bool stop = 1;
    json_t *a = NULL;
    r.stop = &stop;
    ok(!topt_plan(&r, &a, &err) && json_is_true(json_object_get(a, "stopped")) &&
           json_is_true(json_object_get(a, "feasible")) &&
           json_is_null(json_object_get(a, "epsilon")),
       "stopped at once: a plan, of which nothing is proven %s", err.text);
    json_decref(a);
    ok(!topt_plan_frontier(&r, &a, &err) && json_is_true(json_object_get(a, "stopped")) &&
           json_array_size(json_object_get(a, "points")) == 1 &&
           json_is_null(json_object_get(a, "epsilon")),
       "and a frontier's point");
    json_decref(a);
    r.space = TOPT_SPACE_UNIFORM;
    ok(!topt_plan(&r, &a, &err) && json_is_true(json_object_get(a, "stopped")) &&
           json_is_null(json_object_get(a, "feasible")),
       "in the uniform space: that nothing is known");
    json_decref(a);
    r.mode = TOPT_PROFILING;
    ok(!topt_plan(&r, &a, &err) && json_is_true(json_object_get(a, "stopped")) &&
           json_array_size(json_object_get(a, "points")) == 0,
       "a curve without points, stopped");
    json_decref(a);
    r.space = TOPT_SPACE_AUTO;
    r.stop = NULL;
    r.mode = TOPT_MINI_TIME;
    r.max_work = 200;
    err = (struct topt_error){0};
    struct topt_plan_doc *p = NULL;
    ok(!topt_plan(&r, &a, &err) && json_is_true(json_object_get(a, "stopped")) &&
           json_is_false(json_object_get(a, "exact")) &&
           !topt_plan_read(json_object_get(a, "plan"), &p, &err),
       "hardly any work: a plan that is not said to be the fastest %s", err.text);
    topt_plan_doc_destroy(p);
    json_decref(a);
    r.max_work = 0;
    ok(!topt_plan(&r, &a, &err) && !json_object_get(a, "stopped") &&
           json_is_true(json_object_get(a, "exact")) &&
           whole(json_object_get(a, "stats"), "products") > 200,
       "unlimited, it is, and the work is counted");
    json_decref(a);
}

static void test_answers(void)
{
    struct topt_request r;
    topt_request_init(&r);
    r.model = random_model(6, 6);
    r.hw = make_cluster(2, 3, 500, 50, 100);
    r.mode = TOPT_MINI_TIME;
    r.gpus = 6;
    test_decided(r);
    test_stopped(r);
    request_fini(&r);
}

int main(void)
{
    test_answers();
    test_counts();
    test_tolerance();
    test_dozens();
    test_samples();
    test_more_devices();
    test_spaces();
    test_claims();
    return done_testing();
}
