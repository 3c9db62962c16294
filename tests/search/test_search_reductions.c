/* Each step that makes a problem smaller, by itself, on small random problems: the frontier
 * of what is left is brute force's of the whole, and its strategies lifted back cost the
 * same.  And blocks and cut operators against their plain definition. */
#include "condensed.h"
#include "frontier_tracking.h"
#include "frontier.h"
#include "cutset_conditioning.h"
#include "frontiers.h"
#include "articulation.h"
#include "reduced_problem.h"
#include "random_problem.h"
#include "sizes.h"
#include "strategies.h"
#include "tap.h"

typedef int topt_search_fn(const struct topt_search_problem *problem,
                           const struct topt_search_options *options,
                           struct topt_frontier **ret, struct topt_error *err);

/* Of every few problems one is condensed by several threads too. */
enum { PROBLEMS = TOPT_TEST_SIZE(1500), LARGEST = 20000, BY_THREADS = TOPT_TEST_SIZE(4) };

struct tally {
    int tried, narrow, narrowed, thin, thinned, condense, condensed, threads, condition,
        sliced;
    int smaller, known, left_out, weights, in_rows, matrices, cuts, cutsets;
};

static double strategies(const struct topt_search_problem *p, int alternatives)
{
    double n = 1;
    for (int i = 0; i < p->nops; i++)
        n *= p->op[i].nconfigs;
    for (int i = 0; i < p->nedges; i++)
        n *= alternatives;
    return n;
}

static struct topt_frontier *solve(const struct topt_search_problem *p,
                                   const char *algorithm)
{
    struct topt_search_options o = {.algorithm = algorithm};
    struct topt_frontier *f = NULL;
    return topt_search(p, &o, &f, NULL) ? NULL : f;
}

static void random_marks(struct rng *r, const struct topt_search_problem *p, int percent,
                         char *ret)
{
    for (int i = 0; i < p->nops; i++)
        ret[i] = rng_below(r, 100) < percent;
}

/* ---- narrow ---- */

static void check_narrow(const struct topt_search_problem *p,
                         const struct topt_frontier *all, struct tally *t)
{
    struct topt_search_options o = {0};
    struct reduced_problem n;
    int good = !topt_config_dominance(p, &o, &n, NULL), fewer = 0;
    struct topt_frontier *f = good ? solve(&n.problem, "ft-plain") : NULL;
    good = good && same_costs(all, f);
    if (good)
        topt_strategies_rename(topt_frontier_strategies(f), n.config, (size_t)p->nops);
    good = good && witnesses_hold(p, f);
    for (int k = 0; good && k < p->nops; k++)
        fewer |= n.problem.op[k].nconfigs < p->op[k].nconfigs;
    t->narrow += !good;
    t->narrowed += fewer;
    topt_frontier_destroy(f);
    topt_reduced_fini(&n);
}

/* ---- condense ---- */

static int lifts_back(const struct topt_search_problem *p, const struct condensed *c,
                      struct topt_frontier *found)
{
    struct topt_frontier *f = topt_frontier_create(p, NULL);
    int good =
        !topt_lift(c, found, f, NULL) && same_costs(f, found) && witnesses_hold(p, f);
    topt_frontier_destroy(f);
    return good;
}

static int keeps(const struct topt_search_problem *p, const struct condensed *c,
                 const char *keep)
{
    int kept = 1;
    for (int i = 0; i < p->nops; i++) {
        int found = 0;
        for (int k = 0; k < c->problem.nops; k++)
            found |= c->op[k] == i;
        kept = kept && (found || !keep[i]);
    }
    return kept;
}

static int same_table(const struct topt_table *a, const struct topt_table *b)
{
    if (a->from_classes != b->from_classes || a->to_classes != b->to_classes)
        return 0;
    size_t n = (size_t)a->from_classes * (size_t)a->to_classes;
    return !memcmp(a->first, b->first, (n + 1) * sizeof *a->first) &&
           (!a->first[n] ||
            !memcmp(a->alt, b->alt, (size_t)a->first[n] * sizeof *a->alt));
}

/* Is what more threads make the same, point by point, and counted alike? */
static int same_by_threads(const struct topt_search_problem *p, const char *keep,
                           const struct condensed *c)
{
    struct topt_search_options o = {.threads = 3};
    struct condensed d;
    int good = !topt_eliminate_blocks(p, keep, &o, &d, NULL) && c->work == d.work &&
               c->problem.nops == d.problem.nops && c->problem.nedges == d.problem.nedges;
    for (int i = 0; good && i < d.problem.nedges; i++) {
        const struct topt_search_edge *a = &c->problem.edge[i], *b = &d.problem.edge[i];
        good = a->from == b->from && a->to == b->to && same_table(a->table, b->table);
    }
    topt_condensed_fini(&d);
    return good;
}

static void check_condense(struct rng *r, const struct topt_search_problem *p,
                           const struct topt_frontier *all, struct tally *t)
{
    struct topt_search_options o = {0};
    struct condensed c;
    struct conditioned f = {0};
    char keep[64], none[64] = {0};
    random_marks(r, p, 20, keep);
    int good = !topt_eliminate_blocks(p, keep, &o, &c, NULL) && keeps(p, &c, keep);
    good = good && !topt_condition_on_cutset(&c.problem, none, &o, &f, NULL);
    t->condense +=
        !good || !same_costs(all, f.frontier) || !lifts_back(p, &c, f.frontier);
    t->condensed += good && c.problem.nops < p->nops;
    if (good && t->tried % BY_THREADS == 0)
        t->threads += !same_by_threads(p, keep, &c);
    topt_conditioned_fini(&f);
    topt_condensed_fini(&c);
}

/* ---- thin ---- */

/* Alternatives of all edges that no other of their entry beats; of equal ones the first. */
static int count_alternatives(const struct topt_search_problem *p)
{
    int n = 0;
    for (int e = 0; e < p->nedges; e++) {
        const struct topt_table *t = p->edge[e].table;
        for (int i = 0; i < t->from_classes * t->to_classes; i++)
            for (int32_t k = t->first[i]; k < t->first[i + 1]; k++) {
                int beaten = 0;
                for (int32_t j = t->first[i]; j < t->first[i + 1]; j++) {
                    struct topt_cost a = t->alt[j], b = t->alt[k];
                    int equal = a.memory == b.memory && a.time == b.time;
                    beaten |=
                        a.memory <= b.memory && a.time <= b.time && (!equal || j < k);
                }
                n += !beaten;
            }
    }
    return n;
}

/* With every operator kept, condensing only thins the edges' own tables. */
static void check_thin(const struct topt_search_problem *p,
                       const struct topt_frontier *all, struct tally *t)
{
    struct topt_search_options o = {0};
    struct condensed c;
    struct conditioned f = {0};
    char keep[64], none[64] = {0};
    memset(keep, 1, sizeof keep);
    int good = !topt_eliminate_blocks(p, keep, &o, &c, NULL) &&
               !topt_condition_on_cutset(&c.problem, none, &o, &f, NULL);
    good = good && c.problem.nops == p->nops && c.problem.nedges <= p->nedges;
    t->thinned += good && c.problem.nedges == p->nedges &&
                  count_alternatives(&c.problem) < count_alternatives(p);
    t->thin += !good || !same_costs(all, f.frontier) || !lifts_back(p, &c, f.frontier);
    topt_conditioned_fini(&f);
    topt_condensed_fini(&c);
}

/* ---- condition ---- */

static void check_condition(struct rng *r, const struct topt_search_problem *p,
                            const struct topt_frontier *all, struct tally *t)
{
    struct topt_search_options o = {.threads = 1 + rng_below(r, 3)};
    struct conditioned c;
    char cut[64];
    random_marks(r, p, 30, cut);
    int good = !topt_condition_on_cutset(p, cut, &o, &c, NULL) &&
               same_costs(all, c.frontier) && witnesses_hold(p, c.frontier);
    t->condition += !good;
    t->sliced += c.nslices > 1;
    topt_conditioned_fini(&c);
}

/* ---- all of them ---- */

/* True points that were missed, where nothing was decided by heuristic. */
static int check_search(struct rng *r, topt_search_fn *search,
                        const struct topt_search_problem *p,
                        const struct topt_frontier *all)
{
    int n = all->npoints, good = 1;
    int64_t limit = n ? all->cost[rng_below(r, n)].memory : 0;
    static const atomic_bool stop = 1;
    struct topt_search_options o[] = {{0},
                                      {.threads = 3},
                                      {.memory_limit = limit},
                                      {.epsilon = 0.1},
                                      {.max_work = 200},
                                      {.max_entries = 24},
                                      {.stop = &stop}};
    for (size_t i = 0; i < sizeof o / sizeof o[0]; i++) {
        struct topt_frontier *f = NULL;
        struct topt_error err = {0};
        int rc = search(p, &o[i], &f, &err);
        if (rc && topt_search_gave_up(&o[i], &err))
            continue;
        good = good && !rc && witnesses_hold(p, f);
        for (int k = 0, at = 0; good && f->exact && k < n; k++) {
            if (o[i].memory_limit && all->cost[k].memory > limit)
                continue;
            good = at < f->npoints && f->cost[at].memory == all->cost[k].memory &&
                   f->cost[at].time == all->cost[k].time;
            at++;
        }
        if (good && !f->exact && !f->nheuristic && f->npoints)
            good = covers(f, all, 0);
        good = good && (i > 2 || f->exact);
        topt_frontier_destroy(f);
    }
    return !good;
}

static void check_smaller(struct rng *r, const struct topt_search_problem *p,
                          const struct topt_frontier *all, struct tally *t)
{
    t->smaller += check_search(r, topt_search_smaller, p, all);
}

/* ---- what the caller has ---- */

enum { MOST_KNOWN = 12 };

/* Costs around the true points: better, as good, or worse. */
static int pick_known(struct rng *r, const struct topt_frontier *all,
                      struct topt_cost *ret)
{
    size_t n = all->npoints ? (size_t)rng_below(r, MOST_KNOWN) : 0;
    for (size_t i = 0; i < n; i++) {
        struct topt_cost c = all->cost[rng_below(r, all->npoints)];
        int64_t m = c.memory + rng_below(r, 9) - 4, t = c.time + rng_below(r, 9) - 4;
        ret[i] = (struct topt_cost){m > 0 ? m : 0, t > 0 ? t : 0};
    }
    return (int)topt_reduce(ret, n);
}

/* Has a cost one of these that is no heavier, and at most (1 + epsilon) times as slow? */
static int stood_for(const struct topt_cost *at, int n, struct topt_cost c,
                     double epsilon)
{
    for (int i = 0; i < n; i++)
        if (at[i].memory <= c.memory && within_tolerance(at[i].time, c.time, epsilon))
            return 1;
    return 0;
}

/* Together with what was known each true point is had; what was found are strategies. */
static void check_known(struct rng *r, const struct topt_search_problem *p,
                        const struct topt_frontier *all, struct tally *t)
{
    struct topt_cost known[MOST_KNOWN + 1];
    int n = pick_known(r, all, known), good = 1;
    static topt_search_fn *const search[] = {topt_search_smaller, topt_search};
    for (int i = 0; i < 8; i++) {
        struct topt_search_options o = {.known = known,
                                        .nknown = n,
                                        .epsilon = i & 1 ? 0.1 : 0,
                                        .threads = i & 2 ? 3 : 1};
        struct topt_frontier *f = NULL;
        good = good && !search[i / 4](p, &o, &f, NULL) && witnesses_hold(p, f) &&
               f->epsilon <= o.epsilon;
        for (int k = 0; good && k < all->npoints; k++)
            good = stood_for(f->cost, f->npoints, all->cost[k], f->epsilon) ||
                   stood_for(known, n, all->cost[k], f->epsilon);
        t->left_out += good && !(o.epsilon > 0) && f->npoints < all->npoints;
        topt_frontier_destroy(f);
    }
    t->known += !good;
}

/* ---- the graph ---- */

static void spread(const struct topt_search_problem *p, const char *removed, int from,
                   char *seen)
{
    seen[from] = 1;
    for (int again = 1; again;) {
        again = 0;
        for (int e = 0; e < p->nedges; e++) {
            int a = p->edge[e].from, b = p->edge[e].to;
            if (removed[a] || removed[b] || seen[a] == seen[b])
                continue;
            seen[a] = seen[b] = 1;
            again = 1;
        }
    }
}

static int components(const struct topt_search_problem *p, const char *removed)
{
    char seen[64] = {0};
    int n = 0;
    for (int i = 0; i < p->nops; i++)
        if (!removed[i] && !seen[i]) {
            n++;
            spread(p, removed, i, seen);
        }
    return n;
}

/* A cut operator is one without which there are more components. */
static void check_cuts(struct rng *r, const struct topt_search_problem *p,
                       struct tally *t)
{
    char removed[64], cut[64], less[64], set[64] = {0};
    int largest, good, n = 0;
    random_marks(r, p, 15, removed);
    good = !topt_graph_blocks(p, removed, cut, &largest, NULL);
    int before = components(p, removed);
    for (int i = 0; good && i < p->nops; i++) {
        if (removed[i])
            continue;
        memcpy(less, removed, sizeof less);
        less[i] = 1;
        good = cut[i] == (components(p, less) > before);
    }
    t->cuts += !good;
    good = !topt_graph_cutset(p, 64, set, NULL);
    for (int i = 0; i < p->nops; i++)
        n += set[i];
    t->cutsets += !good || n > 2;
}

/* Entries weigh the same in whole numbers and, row by row, in doubles. */
static void check_weights(const struct topt_search_problem *p, struct tally *t)
{
    struct topt_search_options o = {0};
    struct elimination_plan plan;
    struct scalar_pass whole, rows;
    if (topt_elimination_init(&plan, p, NULL, &o, NULL) ||
        topt_scalar_pass_init(&whole, &plan.tables, NULL) ||
        topt_scalar_pass_init(&rows, &plan.tables, NULL)) {
        t->weights++;
        return;
    }
    whole.time = rows.time = 3;
    whole.memory = rows.memory = 5;
    rows.light = 1;
    if (topt_least_weights(&plan.tables, &o, &whole, NULL) ||
        topt_least_weights(&plan.tables, &o, &rows, NULL))
        t->weights++;
    for (size_t i = 0; i < plan.tables.nall; i++) {
        const struct table *x = plan.tables.all[i];
        for (int64_t e = 0; !x->leaf && e < x->nentries; e++)
            t->weights +=
                whole.least[x->first_entry + e] != rows.least[x->first_entry + e];
        t->in_rows += plan.tables.all[i]->how.in_rows > 0;
        t->matrices += plan.tables.all[i]->how.matrix > 0;
    }
    topt_scalar_pass_fini(&whole);
    topt_scalar_pass_fini(&rows);
    topt_elimination_fini(&plan);
}

static void random_problems(void)
{
    /* Few numbers make ties; the largest are as large as fits 63 bits 36 times. */
    static const int64_t max_cost[5] = {4, 4, 1000, 1000, (int64_t)1 << 57};
    struct tally t = {0};
    for (uint64_t seed = 1; t.tried < PROBLEMS; seed++) {
        struct rng r = {seed};
        struct random_spec spec = {.shape = (enum shape)rng_below(&r, SHAPES),
                                   .nops = 1 + rng_below(&r, 8),
                                   .max_configs = 1 + rng_below(&r, 4),
                                   .max_alternatives = 1 + rng_below(&r, 2),
                                   .max_cost = max_cost[rng_below(&r, 5)],
                                   .empty_percent = rng_below(&r, 3) ? 0 : 25,
                                   .classes_percent = 60};
        struct random_problem g;
        if (spec.shape == SHAPE_BLOCKS)
            spec.nops = 4 + 3 * rng_below(&r, 2);
        problem_make(&g, &r, spec);
        struct topt_frontier *all = strategies(&g.p, spec.max_alternatives) < LARGEST
                                        ? solve(&g.p, "brute-force")
                                        : NULL;
        if (all) {
            t.tried++;
            check_narrow(&g.p, all, &t);
            check_condense(&r, &g.p, all, &t);
            check_thin(&g.p, all, &t);
            check_condition(&r, &g.p, all, &t);
            check_smaller(&r, &g.p, all, &t);
            check_known(&r, &g.p, all, &t);
            if (spec.max_cost <= 1000) /* what is too heavy is not weighed */
                check_weights(&g.p, &t);
            check_cuts(&r, &g.p, &t);
        }
        topt_frontier_destroy(all);
        problem_free(&g);
    }
    is_int(t.narrow, 0, "%d problems narrowed: the same frontier", t.tried);
    ok(t.narrowed > PROBLEMS / 4, "%d of them have fewer configurations", t.narrowed);
    is_int(t.condense, 0, "condensed: the same frontier, and strategies that cost it");
    ok(t.condensed > PROBLEMS / 4, "%d of them have fewer operators", t.condensed);
    is_int(t.threads, 0,
           "condensed by three threads: the same tables, and the same work");
    is_int(t.thin, 0, "thinned: the same frontier, and strategies that cost it");
    ok(t.thinned > PROBLEMS / 4, "%d of them have fewer alternatives", t.thinned);
    is_int(t.condition, 0, "by slices of any operators: the same frontier");
    ok(t.sliced > PROBLEMS / 4, "%d of them had several slices", t.sliced);
    is_int(t.smaller, 0, "all of it: as exact as it says, within limits and tolerances");
    is_int(t.known, 0, "what is known need not be found, all else is");
    ok(t.left_out > PROBLEMS / 6, "... and is not, %d times", t.left_out);
    is_int(t.weights, 0, "weighed row by row as entry by entry");
    ok(t.matrices > PROBLEMS / 3, "%d tables were products of matrices", t.matrices);
    ok(t.in_rows > PROBLEMS, "and rows of both factors, %d times", t.in_rows);
    is_int(t.cuts, 0, "cut operators are those that hold components together");
    is_int(t.cutsets, 0, "cutsets are small");
}

/* ---- rings by slices ---- */

enum { RINGS = TOPT_TEST_SIZE(400), RING_OPS = 5 };

/* A chain whose ends are joined; few different costs, so that much is as good as other. */
static void random_ring(struct random_problem *g, struct rng *r)
{
    struct random_spec spec = {.shape = SHAPE_CHAIN,
                               .nops = RING_OPS,
                               .max_configs = 4,
                               .max_alternatives = 2,
                               .max_cost = 1 + rng_below(r, 6),
                               .empty_percent = rng_below(r, 2) * 20,
                               .classes_percent = rng_below(r, 2) * 50};
    problem_make(g, r, spec);
    struct topt_search_edge *edge = (struct topt_search_edge *)g->p.edge;
    int turned = edge[0].from > edge[0].to, last = RING_OPS - 1;
    edge[g->p.nedges++] = random_edge(g, turned ? last : 0, turned ? 0 : last);
}

static void rings_by_slices(void)
{
    struct rng r = {19};
    int rings = 0;
    for (int i = 0; i < RINGS; i++) {
        struct random_problem g;
        char cut[RING_OPS] = {1};
        random_ring(&g, &r);
        struct topt_search_options o = {.threads = 1 + i % 3};
        struct topt_frontier *all = solve(&g.p, "brute-force");
        struct conditioned c;
        rings += topt_condition_on_cutset(&g.p, cut, &o, &c, NULL) ||
                 !same_costs(all, c.frontier) || !witnesses_hold(&g.p, c.frontier);
        topt_conditioned_fini(&c);
        topt_frontier_destroy(all);
        problem_free(&g);
    }
    is_int(rings, 0, "rings by slices: the same frontier");
}

/* ---- slices that are nearly as good as another ---- */

enum {
    LONG_RINGS = TOPT_TEST_SIZE_FROM(8, 4),
    LONG_OPS = 48,
    LONG_CONFIGS = 4,
    HUB_CLASSES = 4,
    HUB_LOSS = 300
};

/* Costs between classes: nothing but a little noise between those that are alike, else 'change'. */
static const struct topt_table *noisy_table(struct random_problem *g, int from, int to,
                                            int64_t change)
{
    struct topt_table *t = random_table(g, from, to);
    struct topt_cost *alt = (struct topt_cost *)t->alt;
    for (int i = 0; i < from * to; i++) {
        alt[i].memory %= 40;
        alt[i].time = alt[i].time % 40 + (i / to == i % to ? 0 : change);
    }
    return t;
}

static const int32_t *count_up(struct random_problem *g, int n, int classes)
{
    int32_t *ret = TOPT_NEW(g->a, n, int32_t);
    if (!ret)
        abort();
    for (int i = 0; i < n; i++)
        ret[i] = i % classes;
    return ret;
}

/* Configurations from light to fast, each with a little noise. */
static void make_line(struct random_problem *g, struct topt_search_op *op, int n,
                      int64_t step)
{
    struct topt_cost *cost = TOPT_NEW(g->a, n, struct topt_cost);
    if (!cost)
        abort();
    for (int i = 0; i < n; i++)
        cost[i] = (struct topt_cost){i * step + rng_below(g->rng, 40),
                                     (n - 1 - i) * step + rng_below(g->rng, 40)};
    *op = (struct topt_search_op){"op", n, cost};
}

/* Two configurations of each class.  What is fast has a little less memory in all but the first. */
static void make_hub(struct random_problem *g, struct topt_search_op *op)
{
    struct topt_cost *cost = TOPT_NEW(g->a, 2 * HUB_CLASSES, struct topt_cost);
    if (!cost)
        abort();
    for (int c = 0; c < HUB_CLASSES; c++) {
        cost[c] = (struct topt_cost){c, 2 * HUB_LOSS};
        cost[c + HUB_CLASSES] = (struct topt_cost){c ? 25 + c : 30, 0};
    }
    *op = (struct topt_search_op){"hub", 2 * HUB_CLASSES, cost};
}

/* A ring along which it pays to stay with a configuration: its frontier bulges from its hull.  With
 * another class than the first of its first operator a strategy is slower, but for what that costs
 * itself: ports alone do not tell. */
static void random_long_ring(struct random_problem *g, struct rng *r)
{
    struct random_spec spec = {.max_alternatives = 1, .max_cost = 100000};
    *g = (struct random_problem){.a = topt_arena_create(0), .rng = r, .spec = spec};
    struct topt_search_op *op = TOPT_NEW(g->a, LONG_OPS, struct topt_search_op);
    struct topt_search_edge *edge = TOPT_NEW(g->a, LONG_OPS, struct topt_search_edge);
    if (!op || !edge)
        abort();
    g->p = (struct topt_search_problem){LONG_OPS, op, LONG_OPS, edge};
    make_hub(g, &op[0]);
    make_line(g, &op[1], LONG_CONFIGS, 1000);
    for (int i = 2; i < LONG_OPS; i++)
        op[i] = op[1];
    for (int i = 0; i < LONG_OPS; i++) {
        int from = i < LONG_OPS - 1 ? i : 0, to = i < LONG_OPS - 1 ? i + 1 : i;
        int n = from ? LONG_CONFIGS : 2 * HUB_CLASSES, classes = from ? n : HUB_CLASSES;
        edge[i] = (struct topt_search_edge){
            from, to, noisy_table(g, classes, LONG_CONFIGS, from ? 700 : 0),
            count_up(g, n, classes), count_up(g, LONG_CONFIGS, LONG_CONFIGS)};
        if (from > 1)
            edge[i].table = edge[1].table;
        struct topt_cost *alt = (struct topt_cost *)edge[i].table->alt;
        for (int c = LONG_CONFIGS; !i && c < HUB_CLASSES * LONG_CONFIGS; c++)
            alt[c].time += HUB_LOSS;
    }
}

static void nearly_alike_slices(void)
{
    struct rng r = {23};
    int wrong = 0;
    for (int i = 0; i < LONG_RINGS; i++) {
        struct random_problem g;
        char cut[LONG_OPS] = {1};
        random_long_ring(&g, &r);
        struct topt_search_options o = {.threads = 1 + i % 3,
                                        .epsilon = i % 4 == 3 ? 0.001 : 0};
        struct topt_frontier *all = solve(&g.p, "ft-plain");
        struct conditioned c;
        wrong += topt_condition_on_cutset(&g.p, cut, &o, &c, NULL) ||
                 (o.epsilon <= 0 && !same_costs(all, c.frontier)) ||
                 !witnesses_hold(&g.p, c.frontier);
        topt_conditioned_fini(&c);
        topt_frontier_destroy(all);
        problem_free(&g);
    }
    is_int(wrong, 0, "long rings whose slices are nearly alike: the same frontier");
}

/* ---- blocks that are alike between neighbours that are not ---- */

enum { BRANCHES = 6, BLOCKS = 2, BLOCK_OPS = BRANCHES + 1 };
enum { BRANCHED = TOPT_TEST_SIZE(40) };

/* Blocks of branches from one end to the next; the first has nothing before it, the last
 * nothing after it, so that different points of one table are dominated. */
static void random_branches(struct random_problem *g, struct rng *r)
{
    struct random_spec spec = {.nops = BLOCKS * BLOCK_OPS + 1,
                               .max_configs = 2,
                               .max_alternatives = 1,
                               .max_cost = rng_below(r, 2) ? 1000 : 4};
    *g = (struct random_problem){.a = topt_arena_create(0), .rng = r, .spec = spec};
    struct topt_search_op *op = TOPT_NEW(g->a, spec.nops, struct topt_search_op);
    struct topt_search_edge *edge =
        TOPT_NEW(g->a, 2 * BLOCKS * BRANCHES, struct topt_search_edge);
    if (!op || !edge)
        abort();
    g->p = (struct topt_search_problem){spec.nops, op, 2 * BLOCKS * BRANCHES, edge};
    for (int i = 0; i < spec.nops; i++)
        if (i < BLOCK_OPS)
            random_op(g, &op[i]);
        else
            op[i] = op[i % BLOCK_OPS];
    for (int b = 0, n = 0; b < BLOCKS; b++)
        for (int i = 1; i <= BRANCHES; i++)
            for (int k = 0; k < 2; k++, n++) {
                int from = k ? i : 0, to = k ? BLOCK_OPS : i;
                edge[n] = b ? edge[n - 2 * BRANCHES] : random_edge(g, from, to);
                edge[n].from = from + b * BLOCK_OPS;
                edge[n].to = to + b * BLOCK_OPS;
            }
}

static void alike_blocks(void)
{
    int bad = 0, condensed = 0;
    for (uint64_t seed = 1; seed <= BRANCHED; seed++) {
        struct rng r = {seed};
        struct random_problem g;
        struct topt_search_options o = {0};
        struct condensed c;
        struct conditioned f = {0};
        char keep[64] = {0}, none[64] = {0};
        random_branches(&g, &r);
        for (int i = 0; i <= BLOCKS; i++)
            keep[i * BLOCK_OPS] = 1;
        struct topt_frontier *all = solve(&g.p, "brute-force");
        int good = !topt_eliminate_blocks(&g.p, keep, &o, &c, NULL) &&
                   !topt_condition_on_cutset(&c.problem, none, &o, &f, NULL);
        bad += !good || !same_costs(all, f.frontier) || !lifts_back(&g.p, &c, f.frontier);
        condensed += good && c.problem.nops == BLOCKS + 1;
        topt_conditioned_fini(&f);
        topt_condensed_fini(&c);
        topt_frontier_destroy(all);
        problem_free(&g);
    }
    is_int(bad, 0, "one table between different neighbours: the same frontier");
    is_int(condensed, BRANCHED, "every block has become an edge");
}

/* ---- graphs that are known ---- */

/* A circle of n operators with two configurations each. */
static int largest_of_circle(int n, int close, char *ret_set, int *ret_left)
{
    struct topt_cost one[2] = {{1, 2}, {2, 1}}, alt[4] = {{1, 0}, {0, 1}, {0, 1}, {1, 0}};
    int32_t first[5] = {0, 1, 2, 3, 4}, class_of[2] = {0, 1};
    struct topt_table table = {2, 2, first, alt};
    struct topt_search_op op[32];
    struct topt_search_edge edge[32];
    int largest = -1;
    for (int i = 0; i < n; i++) {
        op[i] = (struct topt_search_op){"op", 2, one};
        edge[i] = (struct topt_search_edge){i, i + 1, &table, class_of, class_of};
    }
    edge[n - 1] = (struct topt_search_edge){0, n - 1, &table, class_of, class_of};
    struct topt_search_problem p = {n, op, n - !close, edge};
    if (topt_graph_blocks(&p, NULL, NULL, &largest, NULL) ||
        topt_graph_cutset(&p, 64, ret_set, NULL) ||
        topt_graph_blocks(&p, ret_set, NULL, ret_left, NULL))
        return -1;
    return largest;
}

static void known_graphs(void)
{
    char set[32] = {0};
    int left, n = 0;
    is_int(largest_of_circle(20, 0, set, &left), 2, "a chain's blocks are its edges");
    for (int i = 0; i < 20; i++)
        n += set[i];
    is_int(n, 0, "and nothing need be cut");
    is_int(largest_of_circle(20, 1, set, &left), 20, "a circle is one block");
    for (int i = 0; i < 20; i++)
        n += set[i];
    is_int(n, 1, "one operator opens it");
    is_int(left, 2, "to a chain");
}

/* Blocks of which one operator is left without any configuration, as under caps that it does
 * not keep: no strategy, and no table is read that has no entries. */
static void nothing_to_choose(void)
{
    enum { PARTS = 4, OPS = 2 * PARTS + 1, CONFIGS = 3, EDGES = 3 * PARTS };
    static struct topt_cost cost[CONFIGS] = {{3, 1}, {2, 2}, {1, 3}}, alt[9];
    static const int32_t class_of[CONFIGS] = {0, 1, 2};
    static int32_t first[10];
    int right = 0;
    for (int i = 0; i < 9; i++) {
        alt[i] = (struct topt_cost){i % 4, 4 - i % 4};
        first[i + 1] = i + 1;
    }
    for (int none = 0; none < OPS; none++) {
        const struct topt_table whole = {CONFIGS, CONFIGS, first, alt};
        const struct topt_table from = {0, CONFIGS, first, alt},
                                to = {CONFIGS, 0, first, alt};
        struct topt_search_op op[OPS];
        struct topt_search_edge edge[EDGES];
        struct topt_search_options o = {.algorithm = "ft"};
        struct topt_frontier *f = NULL;
        for (int i = 0; i < OPS; i++)
            op[i] = (struct topt_search_op){"op", i == none ? 0 : CONFIGS, cost};
        for (int e = 0; e < EDGES; e++) {
            int a = e / 3 * 2 + (e % 3 == 1), b = e / 3 * 2 + 1 + (e % 3 > 0);
            edge[e] = (struct topt_search_edge){a, b,
                                                a == none   ? &from
                                                : b == none ? &to
                                                            : &whole,
                                                class_of, class_of};
        }
        const struct topt_search_problem p = {OPS, op, EDGES, edge};
        right += !topt_search_smaller(&p, &o, &f, NULL) && f->npoints == 0 && f->exact;
        topt_frontier_destroy(f);
    }
    is_int(right, OPS,
           "blocks with an operator that has nothing to choose have no strategy");
}

int main(void)
{
    nothing_to_choose();
    random_problems();
    alike_blocks();
    rings_by_slices();
    nearly_alike_slices();
    known_graphs();
    return done_testing();
}
