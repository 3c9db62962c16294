/* The algebra, the worked example by every search, growth of counted work, sharing,
 * and the corners of the interface. */
#include "random_problem.h"
#include "costs_text.h"
#include "tap.h"
#include "topt_text.h"

#include <math.h>

/* ---- reduce ---- */

static int dominated(const struct topt_cost *p, int n, int i)
{
    for (int j = 0; j < n; j++) {
        int no_worse = p[j].memory <= p[i].memory && p[j].time <= p[i].time;
        int same = p[j].memory == p[i].memory && p[j].time == p[i].time;
        if (no_worse && (!same || j < i))
            return 1;
    }
    return 0;
}

static int reduce_is_right(struct rng *r)
{
    struct topt_cost p[60] = {{0, 0}}, q[60];
    int n = rng_below(r, 60), range = 1 + rng_below(r, 40), want = 0, found = 0;
    for (int i = 0; i < n; i++)
        p[i] = (struct topt_cost){rng_below(r, range), rng_below(r, range)};
    memcpy(q, p, sizeof p);
    int kept = (int)topt_reduce(q, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (dominated(p, n, i))
            continue;
        want++;
        for (int j = 0; j < kept; j++)
            found += q[j].memory == p[i].memory && q[j].time == p[i].time;
    }
    for (int j = 1; j < kept; j++)
        if (q[j].memory <= q[j - 1].memory || q[j].time >= q[j - 1].time)
            return 0;
    return want == kept && found == kept;
}

static void test_reduce(void)
{
    struct rng r = {11};
    int wrong = 0;
    for (int i = 0; i < 1000; i++)
        wrong += !reduce_is_right(&r);
    is_int(wrong, 0, "reduce is the quadratic filter on 1000 sets with ties");
    is_int(topt_reduce(NULL, 0), 0, "nothing reduces to nothing");
}

/* Mean frontier of n points in random order against the harmonic number (Lemma 2). */
static void test_harmonic(int n, int draws)
{
    struct rng r = {(uint64_t)n};
    struct topt_cost *p = calloc((size_t)n, sizeof *p);
    double sum = 0, harmonic = 0, squares = 0;
    for (int k = 0; p && k < draws; k++) {
        for (int i = 0; i < n; i++)
            p[i].time = p[i].memory = i;
        for (int i = n - 1; i > 0; i--) {
            int j = rng_below(&r, i + 1);
            int64_t t = p[i].time;
            p[i].time = p[j].time;
            p[j].time = t;
        }
        sum += (double)topt_reduce(p, (size_t)n);
    }
    for (int i = 1; i <= n; i++) {
        harmonic += 1.0 / i;
        squares += 1.0 / ((double)i * i);
    }
    double error = sqrt((harmonic - squares) / draws);
    ok(fabs(sum / draws - harmonic) < 3 * error,
       "%d points: mean frontier %.4f, H = %.4f", n, sum / draws, harmonic);
    free(p);
}

/* ---- the worked example ---- */

static const struct topt_cost worked[] = {
    {168, 888}, {192, 552}, {264, 504}, {288, 456}, {336, 360}};

static struct topt_costs_file *load(const char *path)
{
    struct topt_costs_file *f = NULL;
    struct topt_error err;
    size_t len;
    char *text = topt_read_file(path, 1 << 20, &len, &err);
    if (!text || read_costs(text, len, &f, &err))
        printf("# %s\n", err.text);
    free(text);
    return f;
}

static void test_worked_example(const struct topt_search_problem *p,
                                const char *algorithm)
{
    struct topt_search_options o = {.algorithm = algorithm};
    struct topt_frontier *f;
    struct topt_error err;
    if (!ok(topt_search(p, &o, &f, &err) == 0, "%s solves the worked example", algorithm))
        return;
    int right = f->npoints == 5 && f->exact;
    struct topt_frontier_reader *r = topt_frontier_reader(f, NULL);
    for (int i = 0; i < 5 && right; i++) {
        const struct topt_search_point *x = topt_frontier_read(r, i);
        struct topt_cost c;
        right = f->cost[i].memory == worked[i].memory &&
                f->cost[i].time == worked[i].time &&
                !topt_search_cost(p, x->config, x->alt, &c, NULL) &&
                c.memory == worked[i].memory && c.time == worked[i].time;
    }
    topt_frontier_reader_destroy(r);
    ok(right, "%s: the five points of the worked example", algorithm);
    topt_frontier_destroy(f);
}

static void test_worked(void)
{
    struct topt_costs_file *f = load(TEST_DIR "/worked_example.json");
    const char *const *name = topt_search_algorithms();
    if (!ok(f != NULL, "the worked example is read"))
        return;
    for (; *name; name++)
        test_worked_example(topt_costs_problem(f), *name);
    const struct topt_search_edge *e = topt_costs_problem(f)->edge;
    ok(e[0].table == e[1].table, "equal edges share their table");
    is_int(e[0].table->from_classes, 3, "configurations k and r emit one layout");
    is_int(e[0].table->to_classes, 3, "configurations n and r read one layout");
    topt_costs_destroy(f);
}

/* ---- growth of counted work ---- */

/* Products that a chain takes whose costs are independent of each other, up to 'most'. */
static double chain_work_of(const char *algorithm, int n, int k, int64_t most)
{
    struct rng r = {(uint64_t)(n * 1000 + k)};
    struct random_problem g;
    struct random_spec spec = {.shape = SHAPE_CHAIN,
                               .nops = n,
                               .max_configs = 1,
                               .max_alternatives = 1,
                               .max_cost = most};
    problem_make(&g, &r, spec);
    struct topt_search_op *op = (struct topt_search_op *)g.p.op;
    struct topt_search_edge *edge = (struct topt_search_edge *)g.p.edge;
    for (int i = 0; i < n; i++) {
        struct topt_cost *c = TOPT_NEW(g.a, k, struct topt_cost);
        for (int j = 0; c && j < k; j++)
            c[j] = random_cost(&g);
        op[i] = (struct topt_search_op){"op", k, c};
    }
    for (int i = 0; i < g.p.nedges; i++)
        edge[i] = random_edge(&g, edge[i].from, edge[i].to);
    struct topt_search_options o = {.algorithm = algorithm};
    struct topt_frontier *f;
    double work = -1;
    if (!topt_search(&g.p, &o, &f, NULL)) {
        work = (double)f->stats.products;
        topt_frontier_destroy(f);
    }
    problem_free(&g);
    return work;
}

static double chain_work(const char *algorithm, int n, int k)
{
    return chain_work_of(algorithm, n, k, 1 << 30);
}

/* The paper's n^2 log n takes cumulated points to be in random order, of which frontiers
 * are no longer than the logarithm of all strategies: linear in n.  Sums of independent
 * costs are not: light prefixes are slow ones, and the frontier itself grows like n^2.
 * Sums of a few small numbers have as many different values as n, as the paper's have. */
static void test_growth_with_operators(void)
{
    double paper =
        log(chain_work_of("ft-plain", 400, 4, 3) / chain_work_of("ft-plain", 50, 4, 3)) /
        log(8);
    double sums =
        log(chain_work("ft-plain", 80, 8) / chain_work("ft-plain", 20, 8)) / log(4);
    ok(paper > 1.8 && paper < 2.4,
       "ft-plain on a chain grows as n^%.2f where frontiers grow as n", paper);
    ok(sums > 1.5 && sums < 3.4, "ft-plain on a chain grows as n^%.2f", sums);
}

static void test_growth(void)
{
    double by_k =
        log(chain_work("ft-plain", 16, 32) / chain_work("ft-plain", 16, 8)) / log(4);
    double elim =
        log(chain_work("ft-elimination", 8, 24) / chain_work("ft-elimination", 8, 6)) /
        log(4);
    ok(by_k > 1.9 && by_k < 2.5, "ft-plain on a chain grows as K^%.2f", by_k);
    ok(elim >= 2.7, "ft-elimination on a chain grows as K^%.2f", elim);
    ok(chain_work("ft-elimination", 12, 24) >= 5 * chain_work("ft-plain", 12, 24),
       "linear dynamic programming does less than a fifth of elimination's work");
    ok(chain_work("ft", 80, 8) < chain_work("ft-plain", 80, 8),
       "ft does less than the plain steps");
}

/* ---- sharing ---- */

static void test_sharing(void)
{
    struct rng r = {5};
    struct random_problem g;
    struct random_spec spec = {.shape = SHAPE_BLOCKS,
                               .nops = 61,
                               .max_configs = 6,
                               .max_alternatives = 2,
                               .max_cost = 50};
    struct topt_frontier *f;
    problem_make(&g, &r, spec);
    if (ok(topt_search(&g.p, NULL, &f, NULL) == 0, "20 equal blocks")) {
        ok(f->stats.shared >= 50, "%lld steps shared, %lld tables made",
           (long long)f->stats.shared, (long long)f->stats.tables);
        topt_frontier_destroy(f);
    }
    problem_free(&g);
}

/* ---- corners ---- */

static enum topt_err fails(const struct topt_search_problem *p,
                           const struct topt_search_options *o)
{
    struct topt_frontier *f = NULL;
    struct topt_error err = {0};
    if (!topt_search(p, o, &f, &err))
        topt_frontier_destroy(f);
    else
        printf("# %s\n", err.text);
    return err.code;
}

static void test_corners(void)
{
    static const struct topt_cost one[] = {{1, 2}}, bad[] = {{1, -2}};
    static const int32_t zero[] = {0}, two[] = {0, 2}, ends[] = {0, 1};
    static const struct topt_table t = {1, 1, ends, one};
    struct topt_search_op op[2] = {{"a", 1, one}, {"b", 1, one}};
    struct topt_search_edge e[2] = {{0, 1, &t, zero, zero}, {1, 0, &t, zero, zero}};
    struct topt_search_problem p = {2, op, 2, e};
    atomic_bool stop = 1;
    for (const char *const *a = topt_search_algorithms(); *a; a++) {
        struct topt_search_options o = {.algorithm = *a};
        struct topt_search_problem none = {0};
        p.nedges = 2;
        is_int(fails(&p, &o), TOPT_ERR_INVAL, "%s refuses a cycle", *a);
        is_int(fails(&none, &o), TOPT_OK, "%s: no operators, one empty strategy", *a);
        p.nedges = 1;
        is_int(fails(&p, &o), TOPT_OK, "%s: two operators", *a);
    }
    struct topt_search_options o = {.algorithm = "ft", .cancel = &stop};
    is_int(fails(&p, &o), TOPT_ERR_CANCELED, "canceled");
    o = (struct topt_search_options){.algorithm = "genius"};
    is_int(fails(&p, &o), TOPT_ERR_USAGE, "no such algorithm");
    o = (struct topt_search_options){.epsilon = NAN};
    is_int(fails(&p, &o), TOPT_ERR_INVAL, "epsilon is not a number");
    o = (struct topt_search_options){.threads = 100000};
    is_int(fails(&p, &o), TOPT_ERR_INVAL, "too many threads");
    o = (struct topt_search_options){.algorithm = "brute-force", .brute_force_limit = 1};
    is_int(fails(&p, &o), TOPT_OK, "brute force within its limit");
    e[0].to_class = two + 1;
    is_int(fails(&p, NULL), TOPT_ERR_INVAL, "a class out of range");
    e[0].to_class = zero;
    op[1].cost = bad;
    is_int(fails(&p, NULL), TOPT_ERR_INVAL, "a negative cost");
    /* Too large to be weighed, and stopped: nothing is known, and nothing claimed. */
    static const struct topt_cost large[] = {{(int64_t)1 << 60, (int64_t)1 << 61}};
    struct topt_search_options stopped = {.stop = &stop};
    struct topt_frontier *f = NULL;
    op[1] = (struct topt_search_op){"b", 1, large};
    ok(!topt_search(&p, &stopped, &f, NULL) && !f->exact && !isfinite(f->epsilon),
       "stopped before anything is known");
    topt_frontier_destroy(f);
    ok(!topt_search(&p, NULL, &f, NULL) && f->exact && f->npoints == 1,
       "not stopped, it is solved");
    topt_frontier_destroy(f);
    op[1] = (struct topt_search_op){"b", 0, NULL};
    is_int(fails(&p, NULL), TOPT_OK,
           "an operator without configurations: nothing is allowed");
}

/* Fourteen operators all joined with 10 configurations each: exact elimination can't. */
static void test_limits(void)
{
    struct rng r = {3};
    struct random_problem g;
    struct random_spec spec = {.shape = SHAPE_DENSE,
                               .nops = 14,
                               .max_configs = 1,
                               .max_alternatives = 1,
                               .max_cost = 9};
    problem_make(&g, &r, spec);
    struct topt_search_op *op = (struct topt_search_op *)g.p.op;
    struct topt_search_edge *edge = (struct topt_search_edge *)g.p.edge;
    struct topt_cost c[10] = {{1, 1}};
    for (int i = 0; i < g.p.nops; i++)
        op[i] = (struct topt_search_op){"op", 10, c};
    for (int i = 0; i < g.p.nedges; i++)
        edge[i] = random_edge(&g, edge[i].from, edge[i].to);
    struct topt_search_options brute = {.algorithm = "brute-force",
                                        .brute_force_limit = 9999};
    struct topt_search_options small = {.max_bytes = 100000};
    struct topt_search_options few = {.max_entries = 100};
    struct topt_frontier *f = NULL;
    is_int(fails(&g.p, &brute), TOPT_ERR_LIMIT, "brute force says what is too many");
    is_int(fails(&g.p, &small), TOPT_ERR_LIMIT, "a limit of memory is kept");
    if (ok(!topt_search(&g.p, &few, &f, NULL), "too entangled: decided by heuristic"))
        ok(!f->exact && f->nheuristic == 11 && f->npoints > 0,
           "and says so: %d operators decided, 3 left", f->nheuristic);
    topt_frontier_destroy(f);
    problem_free(&g);
}

/* Merging operators of this graph makes a circle behind the end of the marked chain,
 * which is no part of it. Operators have one configuration or two, in all ways. */
static void test_circle(void)
{
    enum { OPS = 6, EDGES = 8, KINDS = 1 << OPS };
    static const int ends[EDGES][2] = {{1, 0}, {5, 0}, {2, 1}, {3, 1},
                                       {3, 2}, {4, 2}, {5, 3}, {5, 3}};
    static const struct topt_cost cost[] = {{3, 5}, {4, 2}, {2, 7}, {1, 9}};
    static const int32_t self[] = {0, 1}, first[] = {0, 1, 2, 3, 4};
    int same = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        struct topt_search_op op[OPS];
        struct topt_search_edge edge[EDGES];
        struct topt_table table[EDGES];
        struct topt_search_problem p = {OPS, op, EDGES, edge};
        struct topt_search_options o = {0};
        struct topt_frontier *a = NULL, *b = NULL;
        for (int i = 0; i < OPS; i++)
            op[i] = (struct topt_search_op){"op", 1 + (kind >> i & 1), cost};
        for (int i = 0; i < EDGES; i++) {
            const int *at = ends[i];
            table[i] =
                (struct topt_table){op[at[0]].nconfigs, op[at[1]].nconfigs, first, cost};
            edge[i] = (struct topt_search_edge){at[0], at[1], &table[i], self, self};
        }
        int rc = topt_search(&p, &o, &a, NULL);
        o.algorithm = "ft-plain";
        rc = rc || topt_search(&p, &o, &b, NULL);
        same += !rc && a->npoints == b->npoints &&
                !memcmp(a->cost, b->cost, (size_t)a->npoints * sizeof *a->cost);
        topt_frontier_destroy(a);
        topt_frontier_destroy(b);
    }
    is_int(same, KINDS, "a circle behind the chain: the plain steps take all operators");
}

int main(void)
{
    test_reduce();
    test_harmonic(10, 10000);
    test_harmonic(100, 10000);
    test_harmonic(1000, 10000);
    test_worked();
    test_growth_with_operators();
    test_growth();
    test_sharing();
    test_corners();
    test_limits();
    test_circle();
    return done_testing();
}
