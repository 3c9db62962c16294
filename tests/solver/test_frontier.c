/* test_frontier.c - the frontier of a model against brute force over the same space.
 *
 * Brute force visits every strategy and costs it by itself (topt_cost_strategy), caps and all:
 * it shares with the search neither tables nor the union over caps. */
#include <stdlib.h>
#include <string.h>

#include "free.h"
#include "exact.h"
#include "grid.h"
#include "best.h"
#include "planning.h"
#include "topt_export.h"
#include "topt_plan.h"
#include "topt_choices.h"
#include "random_model.h"
#include "sizes.h"
#include "costs_text.h"
#include "tap.h"

static struct topt_hw *hw;

enum { MAX_STRATEGIES = 12000 };

struct odometer {
    const struct topt_search_problem *p;
    int32_t *config, *alt;
};

static int alternatives(const struct odometer *o, int e)
{
    const struct topt_search_edge *g = &o->p->edge[e];
    int entry = g->from_class[o->config[g->from]] * g->table->to_classes +
                g->to_class[o->config[g->to]];
    return g->table->first[entry + 1] - g->table->first[entry];
}

/* The next strategy: alternatives turn fastest, then configurations. */
static int turn(struct odometer *o)
{
    for (int e = 0; e < o->p->nedges; e++) {
        if (++o->alt[e] < alternatives(o, e))
            return 1;
        o->alt[e] = 0;
    }
    for (int i = 0; i < o->p->nops; i++) {
        if (++o->config[i] < o->p->op[i].nconfigs)
            return 1;
        o->config[i] = 0;
    }
    return 0;
}

static double count(const struct topt_search_problem *p)
{
    double n = 1;
    for (int i = 0; i < p->nops; i++)
        n *= p->op[i].nconfigs;
    return n;
}

/* Costs of a strategy, and of the one that differs from it in what backward keeps of input 'flip'
 * (of all that operators may have; -1: none), whether the problem lists that or not.  Returns
 * how many; 0: it can't be costed. */
static size_t cost_around(const struct topt_costing *k, struct topt_strategy *st,
                          int flip, struct topt_cost *ret)
{
    struct topt_strategy_cost c;
    size_t n = 0;
    if (topt_cost_strategy(k, st, &c, NULL))
        return 0;
    ret[n++] = (struct topt_cost){c.memory_bytes, c.time_ns};
    int op = flip / TOPT_MAX_INPUTS;
    if (flip < 0 || flip % TOPT_MAX_INPUTS >= k->model->op[op].ninputs)
        return n;
    st->keep[flip] ^= TOPT_KEEP_AFTER ^ TOPT_KEEP_BEFORE;
    if (!topt_cost_strategy(k, st, &c, NULL))
        ret[n++] = (struct topt_cost){c.memory_bytes, c.time_ns};
    return n;
}

/* Frontier by visiting everything, with 'flip' beyond what the problem lists; NULL where that
 * would take too long. */
static struct topt_cost *brute(const struct topt_costing *k, struct topt_problem *problem,
                               int flip, size_t *ret_n)
{
    int visited = 0, inputs = k->model->nops * TOPT_MAX_INPUTS;
    const struct topt_search_problem *p =
        topt_capped_problem(problem, (struct topt_caps){-1, -1});
    if (count(p) < 1 || count(p) > MAX_STRATEGIES / 4)
        return NULL;
    struct odometer o = {p, calloc((size_t)p->nops, 4), calloc((size_t)p->nedges + 1, 4)};
    struct topt_cost *all = malloc(2 * MAX_STRATEGIES * sizeof *all);
    size_t n = 0;
    do {
        struct topt_search_point point = {{0, 0}, o.config, o.alt};
        struct topt_strategy *st = topt_capped_strategy(problem, &point);
        size_t some = 0;
        if (visited++ < MAX_STRATEGIES)
            some = cost_around(k, st, flip ? visited * 7919 / 8 % inputs : -1, &all[n]);
        topt_strategy_destroy(st);
        if (!some) {
            free(all);
            all = NULL;
            break;
        }
        n += some;
    } while (turn(&o));
    free(o.config);
    free(o.alt);
    *ret_n = all ? topt_reduce(all, n) : 0;
    return all;
}

static int same_frontier(const struct topt_solutions *s, const struct topt_cost *want,
                         size_t n)
{
    if ((size_t)s->n != n)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (s->at[i].memory_bytes != want[i].memory || s->at[i].time_ns != want[i].time)
            return 0;
    return 1;
}

struct tally {
    int compared, equal, fastest_equal, least_equal, skipped;
};

/* The fastest within limits: none, points of the frontier, too little for any. */
static int fastest_equal(struct topt_problem *p, const struct topt_cost *want, size_t n)
{
    int good = 1;
    for (size_t i = 0; i <= n + 1; i++) {
        struct topt_search_options o = {.threads = 1};
        struct topt_solutions fastest;
        size_t k = i < n ? i : n - 1;
        o.memory_limit = i < n ? want[i].memory + (int64_t)(i % 2) : 0;
        if (i == n + 1)
            o.memory_limit = want[0].memory > 1 ? want[0].memory - 1 : 1;
        int rc = topt_solve_fastest(p, &o, &fastest, NULL);
        while (i < n && k + 1 < n && want[k + 1].memory <= o.memory_limit)
            k++;
        good = good && !rc && fastest.n == (i <= n);
        good = good && (i > n || same_frontier(&fastest, &want[k], 1));
        topt_solutions_fini(&fastest);
    }
    return good;
}

/* The least memory; and none below it. */
static int least_equal(struct topt_problem *p, const struct topt_cost *want)
{
    struct topt_search_options o = {.threads = 1};
    struct topt_solutions least, none;
    struct topt_cost bound = topt_problem_lower_bound(p);
    int rc = topt_solve_least(p, &o, 0, &least, NULL) ||
             topt_solve_least(p, &o, want->memory, &none, NULL);
    int good = !rc && least.n == 1 && least.at[0].memory_bytes == want->memory &&
               none.n == 0 && bound.memory <= want->memory;
    topt_solutions_fini(&least);
    topt_solutions_fini(&none);
    return good;
}

static void compare_variant(struct topt_grid_search *s, const struct topt_degrees *v,
                            struct tally *t)
{
    struct topt_problem *p;
    struct topt_costing k;
    struct topt_solutions found;
    size_t n;
    if (topt_grid_costing(s, v, &k, NULL) || topt_grid_problem(s, v, &p, NULL))
        return;
    struct topt_cost *want = brute(&k, p, !s->alike, &n);
    if (want) {
        struct topt_search_options o = {.threads = 1};
        int rc = topt_solve_frontier(p, &o, &found, NULL);
        t->compared++;
        t->equal += !rc && same_frontier(&found, want, n);
        topt_solutions_fini(&found);
        t->fastest_equal += fastest_equal(p, want, n);
        t->least_equal += least_equal(p, want);
    } else {
        t->skipped++;
    }
    free(want);
    topt_problem_destroy(p);
}

static void compare(const struct topt_request *r, int nodes, int per_node,
                    struct tally *t)
{
    struct topt_planning micros;
    struct topt_grid_search s;
    if (topt_planning_init(&micros, r, NULL))
        return;
    if (!topt_grid_open(&s, &micros, nodes, per_node, TOPT_GOAL_FRONTIER, NULL))
        for (int i = 0; i < s.ndegrees; i++)
            compare_variant(&s, &s.degrees[i], t);
    topt_grid_close(&s);
    topt_planning_fini(&micros);
}

static const struct shape {
    int nodes, per_node;
    enum topt_space space;
} shapes[] = {{1, 2, TOPT_SPACE_FULL},      {2, 1, TOPT_SPACE_FULL},
              {1, 4, TOPT_SPACE_CANONICAL}, {2, 2, TOPT_SPACE_UNIFORM},
              {1, 3, TOPT_SPACE_FULL},      {1, 4, TOPT_SPACE_FULL}};

static void verdict(const struct tally *t, int wanted, const char *what)
{
    ok(t->compared >= wanted, "%s: %d compared (%d too large)", what, t->compared,
       t->skipped);
    is_int(t->equal, t->compared, "%s: the frontier equals brute force, exactly", what);
    is_int(t->fastest_equal, t->compared, "%s: so does the fastest within a limit", what);
    is_int(t->least_equal, t->compared, "%s: so does the least memory", what);
}

static void test_against_brute_force(void)
{
    enum { WANTED = TOPT_TEST_SIZE_FROM(200, 24) };
    struct tally t = {0};
    for (uint64_t seed = 1; t.compared < WANTED && seed < 1500; seed++) {
        const struct shape *k = &shapes[seed % 6];
        struct topt_request r;
        topt_request_init(&r);
        struct topt_model *m = random_model(seed, seed % 6 == 5 ? 0 : (int)(seed % 4));
        r.model = m;
        r.hw = hw;
        r.space = k->space;
        r.blocks = TOPT_BLOCKS_FREE;
        r.factors = 0;
        r.settings.accounting = seed % 5 ? TOPT_ACCOUNTING_RUN : TOPT_ACCOUNTING_PAPER;
        r.settings.overlap = (enum topt_overlap)(seed % 3);
        r.settings.eager = (int)(seed / 3 % 16) & ~TOPT_EAGER_LOSS;
        r.settings.loss = seed / 3 & TOPT_EAGER_LOSS
                              ? (enum topt_loss_kernel)(seed / 7 % TOPT_LOSS_COUNT)
                              : TOPT_LOSS_FUSED;
        if (m)
            compare(&r, k->nodes, k->per_node, &t);
        topt_model_destroy(m);
    }
    verdict(&t, WANTED, "random models");
}

/* Strategies are expanded to all blocks and costed whole. */
static void test_blocks_alike(void)
{
    enum { WANTED = TOPT_TEST_SIZE_FROM(80, 12) };
    struct tally t = {0};
    int folded = 0, models = 0;
    for (uint64_t seed = 1; t.compared < WANTED && seed < 1500; seed++) {
        const struct shape *k = &shapes[seed % 4];
        struct topt_request r;
        topt_request_init(&r);
        struct topt_model *m =
            block_model(seed, 2 + (int)(seed % 3), 1 + (int)(seed / 3 % 2));
        struct topt_blocks b;
        r.model = m;
        r.hw = hw;
        r.space = k->space;
        r.blocks = TOPT_BLOCKS_ALIKE;
        r.factors = 0;
        if (m && !topt_model_blocks(m, &b, NULL)) {
            folded += b.nkinds > 0;
            models++;
            topt_blocks_fini(&b);
            compare(&r, k->nodes, k->per_node, &t);
        }
        topt_model_destroy(m);
    }
    is_int(folded, models, "all models have blocks");
    verdict(&t, WANTED, "blocks alike");
}

/* ---- factors: sharding, recomputation, micro-batches ------------------------------- */

/* Every strategy of every variant; NULL where that would take too long. */
static struct topt_cost *brute_variants(struct topt_grid_search *s, size_t *ret_n)
{
    struct topt_cost *all = NULL;
    size_t n = 0;
    int good = 1;
    for (int i = 0; i < s->ndegrees && good; i++) {
        struct topt_problem *p;
        struct topt_costing k;
        size_t m = 0;
        if (topt_grid_costing(s, &s->degrees[i], &k, NULL) ||
            topt_grid_problem(s, &s->degrees[i], &p, NULL))
            break;
        int none = count(topt_capped_problem(p, (struct topt_caps){-1, -1})) < 1;
        struct topt_cost *some = none ? NULL : brute(&k, p, 0, &m);
        good = none || some;
        all = realloc(all, (n + m + 1) * sizeof *all);
        if (m)
            memcpy(all + n, some, m * sizeof *all);
        n += m;
        free(some);
        topt_problem_destroy(p);
    }
    if (!good) {
        free(all);
        return NULL;
    }
    *ret_n = topt_reduce(all, n);
    return all;
}

static int one_equals(struct topt_grid_search *s, enum topt_goal goal, int64_t limit,
                      const struct topt_cost *want, int memory_only)
{
    struct topt_solutions found;
    int rc = topt_grid_solve(s, goal, limit, 0, &found, NULL);
    int good = !rc && found.n == 1 && found.at[0].memory_bytes == want->memory &&
               (memory_only || found.at[0].time_ns == want->time);
    topt_solutions_fini(&found);
    return good;
}

static void compare_shape(struct topt_grid_search *s, struct tally *t, int *flagged)
{
    struct topt_solutions found;
    size_t n;
    struct topt_cost *want = brute_variants(s, &n);
    if (!want) {
        t->skipped++;
        return;
    }
    int rc = topt_grid_solve(s, TOPT_GOAL_FRONTIER, 0, 0, &found, NULL);
    t->compared++;
    t->equal += !rc && same_frontier(&found, want, n);
    for (int i = 0; !rc && i < found.n; i++) {
        const struct topt_solution *x = &found.at[i];
        for (int k = 0; k < x->strategy->nops; k++) {
            flagged[0] += x->strategy->config[k].zero > 0;
            flagged[1] += x->strategy->config[k].recompute;
        }
        flagged[2] += x->degrees.micro_batches > 1;
    }
    topt_solutions_fini(&found);
    int fastest = 1;
    for (size_t i = 0; i < n; i++)
        fastest &= one_equals(s, TOPT_GOAL_FASTEST, want[i].memory, &want[i], 0);
    t->fastest_equal += fastest;
    t->least_equal += one_equals(s, TOPT_GOAL_LEAST, 0, &want[0], 1);
    free(want);
}

static void test_factors(void)
{
    enum { WANTED = 24 }; /* fewer, and none recomputes */
    struct tally t = {0};
    int flagged[3] = {0};
    for (uint64_t seed = 1; t.compared < WANTED && seed < 600; seed++) {
        const struct shape *k = &shapes[seed % 4];
        struct topt_request r;
        struct topt_planning micros;
        struct topt_grid_search s;
        topt_request_init(&r);
        struct topt_model *m = block_model(seed, 2, 1 + (seed % 4 > 1));
        r.model = m;
        r.hw = hw;
        r.space = k->space;
        r.blocks = TOPT_BLOCKS_ALIKE;
        r.factors = TOPT_FACTORS_ALL;
        r.settings.optimizer = (enum topt_optimizer)(seed % 3);
        if (!m || topt_planning_init(&micros, &r, NULL))
            continue;
        if (!topt_grid_open(&s, &micros, k->nodes, k->per_node, TOPT_GOAL_FRONTIER, NULL))
            compare_shape(&s, &t, flagged);
        topt_grid_close(&s);
        topt_planning_fini(&micros);
        topt_model_destroy(m);
    }
    verdict(&t, WANTED, "all factors");
    ok(flagged[0] && flagged[1] && flagged[2],
       "frontiers shard (%d), recompute (%d) and take micro-batches (%d)", flagged[0],
       flagged[1], flagged[2]);
}

/* 1 device, no choice but one: sums worked out by hand from the profile's figures. */
static void test_hand_worked(void)
{
    static const char text[] =
        "{'format':'topt-hw/1','name':'hand','nodes':1,'gpus_per_node':2,"
        "'device':{'name':'d','memory_bytes':1000000,'reserve_bytes':0,'flops':{'f32':"
        "1e9},"
        "'efficiency':{'matmul':1,'attention':1,'elementwise':1},'memory_bandwidth':1e15,"
        "'launch_ns':0,'source':'made up'},"
        "'links':[{'level':'node','bytes_per_second':1e9,'latency_ns':0,'source':'made "
        "up'},"
        "{'level':'cluster','bytes_per_second':1e9,'latency_ns':0,'source':'made up'}],"
        "'collective':{'launch_ns':0,'source':'made up'},'curves':[]}";
    char json[sizeof text];
    for (size_t i = 0; i < sizeof text; i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    struct topt_error err = {0};
    json_t *doc = json_loads(json, 0, NULL);
    struct topt_hw *hand = topt_hw_from_json(doc, &err);
    json_decref(doc);
    if (!ok(hand != NULL, "the hand-made profile loads: %s", err.text))
        return;
    struct topt_model *m = topt_model_create("m", 2, 1, NULL);
    struct topt_attrs a = {.vocab = 4, .features = 4};
    int x = topt_model_add(m, "embedding", "e", 0, NULL, &a, NULL);
    x = topt_model_add(m, "linear", "l", 1, &x, &a, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    ok(x >= 0 && !topt_model_finish(m, NULL), "embedding, linear, loss");
    struct topt_mesh mesh;
    if (topt_mesh_init(&mesh, 1, 1, NULL))
        return;
    struct topt_settings settings = {.dtype = TOPT_F32,
                                     .optimizer = TOPT_SGD,
                                     .granule_bytes = 1,
                                     .micro_batches = 1,
                                     .loss = TOPT_LOSS_FUSED};
    struct topt_router *r = topt_router_create(hand, &mesh);
    struct topt_costing k = {m, hand, &mesh, &settings, r, NULL};
    struct topt_strategy *s = topt_strategy_create(m);
    struct topt_strategy_cost c;
    ok(!topt_cost_strategy(&k, s, &c, &err), "costed");
    /* Linear: 2*2*1*4*4 = 64 flops a product, three products, at 1 flop a ns: 192 ns.
     * Loss: 4*2*1*4 = 32 flops a kernel; max, sum, loss, backward: 128 ns, and the load
     * kernel is priced like the others of its row: 160.  The rest moves bytes, rounded up
     * to 1 ns a kernel at 10^15 bytes/s. */
    int64_t params = 2 * 16 * 4, grads = params, ids = 2 * 2 * 4;
    is_int(c.sum.class_bytes[TOPT_CLASS_PARAM], params, "two 4x4 weights");
    is_int(c.sum.class_bytes[TOPT_CLASS_GRAD], grads, "their gradients");
    is_int(c.sum.class_bytes[TOPT_CLASS_STATE], 0, "plain SGD keeps no state");
    is_int(c.sum.class_bytes[TOPT_CLASS_DATA], ids, "tokens and labels, 2 each");
    /* x of the linear (2x4), logits (2x4), max and sum of the loss (2 each) */
    is_int(c.sum.class_bytes[TOPT_CLASS_KEPT], (8 + 8 + 2 + 2) * 4,
           "what backward reads");
    is_int(c.sum.network_ns, 0, "one device does not talk");
    int bytes_only =
        3 + 2 + 2; /* embedding: load, forward, backward; 2 zeroes, 2 updates */
    is_int(c.sum.compute_ns, 192 + 160 + bytes_only, "time");
    /* linear backward: dy (8) and dx (8); loss: dlogits 8, inputs are kept; embedding: 8;
     * linear forward: y 8.  Largest: 16 elements. */
    is_int(c.transient_cap, 64, "in flight at most");
    is_int(c.memory_bytes, params + grads + ids + 80 + 64, "all of it");
    topt_strategy_destroy(s);
    topt_router_destroy(r);
    topt_model_destroy(m);
    topt_hw_destroy(hand);
}

static int same_points(const json_t *points, const struct topt_frontier *f)
{
    int same = (size_t)f->npoints == json_array_size(points);
    for (int i = 0; same && i < f->npoints; i++) {
        const json_t *p = json_array_get(points, (size_t)i);
        same =
            json_integer_value(json_object_get(p, "memory_bytes")) == f->cost[i].memory &&
            json_integer_value(json_object_get(p, "time_ns")) == f->cost[i].time;
    }
    return same;
}

/* solve(costgraph) = frontier, through the files. */
static int graph_is_frontier(const struct topt_request *r)
{
    struct topt_error err = {0};
    char *text = NULL;
    json_t *doc = NULL;
    struct topt_costs_file *file = NULL;
    struct topt_frontier *f = NULL;
    struct topt_search_options o = {.threads = 1};
    int same = 0;
    if (topt_plan_costgraph(r, &text, &err) || topt_plan_frontier(r, &doc, &err) ||
        read_costs(text, strlen(text), &file, &err) ||
        topt_search(topt_costs_problem(file), &o, &f, &err))
        printf("# %s\n", err.text);
    else
        same = same_points(json_object_get(doc, "points"), f);
    topt_frontier_destroy(f);
    topt_costs_destroy(file);
    json_decref(doc);
    free(text);
    return same;
}

static void test_costgraph(void)
{
    int equal = 0, n = 0;
    for (uint64_t seed = 3; seed < 15; seed++, n++) {
        struct topt_request r;
        topt_request_init(&r);
        struct topt_model *m = random_model(seed, (int)(seed % 3));
        r.model = m;
        r.hw = hw;
        r.gpus = 1 + (int64_t)(seed % 3);
        r.factors = 0;
        equal += m && graph_is_frontier(&r);
        topt_model_destroy(m);
    }
    is_int(equal, n, "solve(costgraph) equals the frontier");
}

/* With and without recomputation, blocks that choose alike have graphs of their own. */
static void test_costgraph_of_blocks(void)
{
    static const char gpt[] = "{\"model_type\":\"gpt2\",\"n_layer\":3,\"n_embd\":8,"
                              "\"n_head\":2,\"n_positions\":8,\"vocab_size\":16}";
    struct topt_import_options o = {.batch = 4, .seq = 8};
    struct topt_error err = {0};
    struct topt_model *m = topt_model_import(gpt, sizeof gpt - 1, "gpt", &o, &err);
    struct topt_request r;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.gpus = 1;
    r.factors = TOPT_FACTOR_RECOMPUTE;
    r.blocks = TOPT_BLOCKS_ALIKE;
    ok(m && graph_is_frontier(&r), "... of repeated blocks, some of which recompute%s",
       err.text);
    topt_model_destroy(m);
}

/* Operators of a cost graph are known by name, so the model's can't be called what the
 * graph's own are. */
static void test_costgraph_of_names(void)
{
    static const char *const names[] = {"hub:embedding", "in-flight", "next:x", "hubs"};
    int refused = 0;
    for (int i = 0; i < 4; i++) {
        struct topt_error err = {0};
        struct topt_request r;
        struct topt_attrs a = {.vocab = 8, .features = 8};
        char *text = NULL;
        struct topt_model *m = topt_model_create("names", 4, 2, NULL);
        int x = topt_model_add(m, "embedding", "embedding", 0, NULL, &a, NULL);
        int two[2] = {x, topt_model_add(m, "linear", names[i], 1, &x, &a, NULL)};
        x = topt_model_add(m, "add", "sum", 2, two, NULL, NULL);
        x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
        topt_request_init(&r);
        r.model = m;
        r.hw = hw;
        r.gpus = 1;
        if (x >= 0 && !topt_model_finish(m, NULL))
            refused |= (topt_plan_costgraph(&r, &text, &err) != 0) << i;
        free(text);
        topt_model_destroy(m);
    }
    is_int(refused, 7, "names of the cost graph's own operators are refused");
}

int main(void)
{
    hw = topt_hw_load("lab-cpu", NULL);
    if (!ok(hw != NULL, "the profile loads"))
        return done_testing();
    test_hand_worked();
    test_against_brute_force();
    test_blocks_alike();
    test_factors();
    test_costgraph();
    test_costgraph_of_blocks();
    test_costgraph_of_names();
    topt_hw_destroy(hw);
    return done_testing();
}
