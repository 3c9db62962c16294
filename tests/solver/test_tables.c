/* test_tables.c - sparse tables: how many rows lookups name, and what a large table costs on eight
 * A100.
 *
 * One table of 40 million rows of 128 numbers, 65,536 samples of 26 lookups a step, in f32.  As a
 * dense parameter its best plan took 12 ms and 4.9 GiB a GPU, data parallel 224 ms; what is asked
 * of a sparse one is 4 ms and 2.7 GiB. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"
#include "tap.h"
#include "topt_plan.h"

static const double GIB = 1024.0 * 1024 * 1024, MS = 1e6;

/* A table that is looked up at 26 positions, or in bags of 26, their sum, one number of it. */
static struct topt_model *one_table(int sparse, int bag, double density)
{
    struct topt_model *m = topt_model_create("table", 65536, bag ? 1 : 26, NULL);
    struct topt_attrs table = {.features = 128, .sparse = sparse};
    struct topt_attrs none = {0}, one = {.features = 1};
    *(bag ? table.tables : &table.vocab) = 40000000;
    table.lookups = bag ? 26 : 0;
    table.density = density;
    table.density_of = density > 0 ? 65536 * 26 : 0;
    int x = topt_model_add(m, bag ? "embedding_bag" : "embedding", "table", 0, NULL,
                           &table, NULL);
    x = topt_model_add(m, bag ? "join_vectors" : "reduce_sequence", "sum", 1, &x, &none,
                       NULL);
    x = topt_model_add(m, "linear", "head", 1, &x, &one, NULL);
    if (topt_model_add(m, "logistic", "loss", 1, &x, &none, NULL) < 0 ||
        topt_model_finish(m, NULL))
        abort();
    return m;
}

struct answer {
    double ms, gib;
    char strategy[120];
};

static struct answer ask_as(const struct topt_model *m, const char *hw,
                            enum topt_optimizer optimizer, const char *pin,
                            double limit_gib, const char *algorithm)
{
    struct topt_error err = {0};
    struct topt_request r;
    struct answer a = {INFINITY, INFINITY, ""};
    json_t *doc = NULL;
    topt_request_init(&r);
    r.model = m;
    r.hw = topt_hw_load(hw, &err);
    r.gpus = 8;
    r.mode = TOPT_MINI_TIME;
    r.pin = pin;
    r.algorithm = algorithm;
    r.memory_limit = (int64_t)(limit_gib * GIB);
    r.factors = TOPT_FACTOR_ZERO; /* micro-batches would save memory, too */
    r.settings.dtype = TOPT_F32;
    r.settings.optimizer = optimizer;
    if (topt_framework_find("topt", &r.framework, &err) || topt_plan(&r, &doc, &err)) {
        printf("# %s\n", err.text);
    } else if (json_is_true(json_object_get(doc, "feasible"))) {
        const char *words = json_string_value(json_object_get(doc, "strategy"));
        a.ms = json_number_value(json_object_get(doc, "time_ns")) / MS;
        a.gib = json_number_value(json_object_get(doc, "memory_bytes")) / GIB;
        snprintf(a.strategy, sizeof a.strategy, "%s", words ? words : "");
    }
    json_decref(doc);
    topt_hw_destroy((struct topt_hw *)r.hw);
    return a;
}

static struct answer ask(const struct topt_model *m, const char *hw,
                         enum topt_optimizer optimizer, const char *pin, double limit_gib)
{
    return ask_as(m, hw, optimizer, pin, limit_gib, NULL);
}

static void check_gate(void)
{
    static const char *const data = "table=data 8 with no sharding";
    static const char *const owners = "table=data 8 with owners of rows";
    struct topt_model *dense = one_table(0, 0, 0), *sparse = one_table(1, 0, 0),
                      *bag = one_table(1, 1, 0);
    struct answer a = ask(dense, "a100-40-dgx", TOPT_SGD, NULL, 0);
    ok(a.ms > 10 && a.gib > 4.8, "dense, the best: %.2f ms, %.2f GiB (%s)", a.ms, a.gib,
       a.strategy);
    a = ask(dense, "a100-80-dgx", TOPT_SGD, data, 0);
    ok(a.ms > 200 && a.gib > 38, "dense, data parallel: %.0f ms, %.1f GiB", a.ms, a.gib);
    a = ask(sparse, "a100-40-dgx", TOPT_SGD, NULL, 0);
    ok(a.ms <= 4 && a.gib <= 2.7, "sparse, sgd: %.2f ms, %.2f GiB (%s)", a.ms, a.gib,
       a.strategy);
    a = ask(sparse, "a100-40-dgx", TOPT_ROW_WISE_ADAGRAD, owners, 0);
    ok(a.ms <= 4 && a.gib <= 2.7, "sparse, row-wise adagrad, owners: %.2f ms, %.2f GiB",
       a.ms, a.gib);
    a = ask(sparse, "a100-40-dgx", TOPT_ROW_WISE_ADAGRAD, NULL, 2.7);
    ok(a.ms <= 4 && a.gib <= 2.7 && strstr(a.strategy, "owners"),
       "... which the search finds where 2.7 GiB are all: %.2f ms (%s)", a.ms,
       a.strategy);
    a = ask(bag, "a100-40-dgx", TOPT_ROW_WISE_ADAGRAD, NULL, 0);
    ok(a.ms <= 4 && a.gib <= 2.7, "bags, row-wise adagrad: %.2f ms, %.2f GiB (%s)", a.ms,
       a.gib, a.strategy);
    topt_model_destroy(dense);
    topt_model_destroy(sparse);
    topt_model_destroy(bag);
}

/* Rows that are asked for by few are few: less memory, and less to exchange. */
static void check_density(void)
{
    struct topt_model *even = one_table(1, 0, 0), *hot = one_table(1, 0, 0.002);
    double all = topt_table_lookups(&even->op[0]);
    ok(fabs(all - 65536.0 * 26) < 0.5 &&
           fabs(topt_table_rows(&hot->op[0], all) - 80000) < 1,
       "a density of 0.002 is 80,000 rows: %.1f", topt_table_rows(&hot->op[0], all));
    double eighth = topt_table_rows(&hot->op[0], all / 8);
    ok(eighth > 70000 && eighth < 80000,
       "of which an eighth of the lookups names most: %.0f", eighth);
    const char *owners = "table=data 8 with owners of rows";
    struct answer a = ask(even, "a100-40-dgx", TOPT_SGD, owners, 0);
    struct answer b = ask(hot, "a100-40-dgx", TOPT_SGD, owners, 0);
    ok(b.ms < 0.7 * a.ms && b.gib < a.gib,
       "owners send %.2f ms for it, %.2f ms where rows are as likely", b.ms, a.ms);
    topt_model_destroy(even);
    topt_model_destroy(hot);
}

/* Parallax's hybrid lies between data parallel and the whole space; sparse tables have owners, whatever
 * their number of rows. */
static void check_hybrid(void)
{
    static const char *const names[] = {NULL, "parallax", "data-parallel"};
    struct topt_error err = {0};
    struct topt_model *m = topt_model_load("paper:words", NULL, &err);
    struct answer a[3];
    for (int i = 0; i < 3; i++)
        a[i] = ask_as(m, "a100-80-dgx", TOPT_ROW_WISE_ADAGRAD, NULL, 0, names[i]);
    ok(a[0].ms <= a[1].ms && a[1].ms < a[2].ms,
       "words: %.1f ms, as parallax %.1f, data parallel %.1f", a[0].ms, a[1].ms, a[2].ms);
    topt_model_destroy(m);
    for (int k = 0; k < 2; k++) {
        struct topt_model *t = topt_model_create("t", 4096, 8, NULL);
        struct topt_attrs table = {
            .vocab = k ? 4000000 : 2000, .features = 64, .sparse = 1};
        struct topt_attrs one = {.features = 1};
        int x = topt_model_add(t, "embedding", "table", 0, NULL, &table, NULL);
        x = topt_model_add(t, "linear", "head", 1, &x, &one, NULL);
        if (topt_model_add(t, "logistic", "loss", 1, &x, NULL, NULL) < 0 ||
            topt_model_finish(t, NULL))
            abort();
        struct answer b =
            ask_as(t, "a100-80-dgx", TOPT_ROW_WISE_ADAGRAD, NULL, 0, "parallax");
        ok(strstr(b.strategy, "owners") != NULL, "%lld rows: %s", (long long)table.vocab,
           b.strategy);
        topt_model_destroy(t);
    }
}

/* Every choice of a table and of three in one operator is in the frontier: that of all strategies
 * tried. */
static void check_frontier(void)
{
    struct topt_model *m = topt_model_create("small", 32, 1, NULL);
    struct topt_attrs table = {.vocab = 30000, .features = 8, .sparse = 1};
    struct topt_attrs bags = {
        .tables = {20000, 500, 9000}, .features = 8, .lookups = 4, .sparse = 1};
    struct topt_attrs one = {.features = 1};
    int x[2] = {topt_model_add(m, "embedding_bag", "b", 0, NULL, &bags, NULL),
                topt_model_add(m, "embedding", "a", 0, NULL, &table, NULL)};
    int y = topt_model_add(m, "interact", "s", 2, x, NULL, NULL);
    y = topt_model_add(m, "linear", "top", 1, &y, &one, NULL);
    if (topt_model_add(m, "logistic", "loss", 1, &y, NULL, NULL) < 0 ||
        topt_model_finish(m, NULL))
        abort();
    json_t *points[2] = {NULL, NULL};
    for (int k = 0; k < 2; k++) {
        struct topt_error err = {0};
        struct topt_request r;
        json_t *doc = NULL;
        topt_request_init(&r);
        r.model = m;
        r.hw = topt_hw_load("a100-40-dgx", &err);
        r.gpus = 4;
        r.settings.dtype = TOPT_F32;
        r.settings.optimizer = TOPT_ROW_WISE_ADAGRAD;
        r.algorithm = k ? "brute-force" : NULL;
        if (topt_framework_find("topt", &r.framework, &err) ||
            topt_plan_frontier(&r, &doc, &err))
            printf("# %s\n", err.text);
        points[k] = json_array();
        size_t i;
        json_t *p;
        json_array_foreach(json_object_get(doc, "points"), i, p) json_array_append_new(
            points[k], json_pack("[O,O]", json_object_get(p, "memory_bytes"),
                                 json_object_get(p, "time_ns")));
        json_decref(doc);
        topt_hw_destroy((struct topt_hw *)r.hw);
    }
    ok(json_array_size(points[0]) > 3 && json_equal(points[0], points[1]),
       "the frontier of tables is that of every strategy tried: %d points",
       (int)json_array_size(points[0]));
    json_decref(points[0]);
    json_decref(points[1]);
    topt_model_destroy(m);
}

static int add_tables(struct topt_model *m, const struct topt_attrs *a)
{
    struct topt_attrs one = {.features = 1};
    int x = topt_model_add(m, "embedding_bag", "t", 0, NULL, a, NULL);
    x = topt_model_add(m, "join_vectors", "j", 1, &x, NULL, NULL);
    x = topt_model_add(m, "linear", "head", 1, &x, &one, NULL);
    return topt_model_add(m, "logistic", "loss", 1, &x, NULL, NULL);
}

/* What an operator of so many tables takes over eight devices. */
static struct topt_fragment_cost cost_of(int tables, int64_t lookups, int dim,
                                         enum topt_zero zero)
{
    struct topt_error err = {0};
    struct topt_attrs a = {.features = 64, .lookups = lookups, .sparse = 1};
    struct topt_model *m = topt_model_create("tables", 4096, 1, NULL);
    struct topt_hw *hw = topt_hw_load("a100-40-dgx", &err);
    struct topt_settings s = topt_settings_default();
    struct topt_config c = topt_config_none();
    struct topt_fragment_cost cost = {0};
    struct topt_mesh mesh;
    for (int k = 0; k < tables; k++)
        a.tables[k] = 1000000;
    s.optimizer = TOPT_ROW_WISE_ADAGRAD;
    c.zero = (uint8_t)zero;
    if (!hw || topt_mesh_init(&mesh, 1, 8, &err) || add_tables(m, &a) < 0 ||
        topt_model_finish(m, &err))
        abort();
    for (int x = 0; x < mesh.naxes; x++)
        c.dim[x] = (int8_t)dim;
    struct topt_router *r = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &s, r, NULL};
    if (topt_cost_op(&k, 0, &c, &cost, &err))
        printf("# %s\n", err.text);
    topt_router_destroy(r);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
    return cost;
}

/* One exchange serves all tables: latencies are paid once; whole tables are not exchanged at
 * all, but for their output. */
static void check_batched(void)
{
    enum { BATCH, TABLES = 2 };
    struct topt_fragment_cost one = cost_of(1, 1, BATCH, TOPT_ZERO_OWNER),
                              all = cost_of(26, 1, BATCH, TOPT_ZERO_OWNER),
                              whole = cost_of(26, 1, TABLES, TOPT_ZERO_SPARSE);
    ok(one.network_ns > 0 && all.network_ns < 26 * one.network_ns / 3,
       "26 tables of one operator: %.0f us for rows on the network, %.0f as 26 operators",
       (double)all.network_ns / 1e3, 26 * (double)one.network_ns / 1e3);
    ok(!whole.network_ns && whole.class_bytes[TOPT_CLASS_PARAM] == 4 * 64 * 4000000LL,
       "whole tables: four on the device that has most, and no rows on the network");
}

/* What is fastest depends on how many rows are added up: their sums are few. */
static void check_placed(void)
{
    struct topt_error err = {0};
    struct topt_model *m = topt_model_load("paper:dlrm-terabyte", NULL, &err);
    struct answer best = ask(m, "a100-40-dgx", TOPT_ROW_WISE_ADAGRAD, NULL, 0),
                  whole = ask(m, "a100-40-dgx", TOPT_ROW_WISE_ADAGRAD, "tables=t:8", 0),
                  owners = ask(m, "a100-40-dgx", TOPT_ROW_WISE_ADAGRAD,
                               "tables=data 8 with owners of rows", 0);
    ok(best.ms < 12 && best.ms <= whole.ms && best.ms <= owners.ms,
       "terabyte, 26 tables: %.2f ms, %.1f GiB (%s)", best.ms, best.gib, best.strategy);
    ok(whole.gib < 22 && owners.gib < 13,
       "whole tables %.2f ms, %.1f GiB, the largest is 19.0; owners %.2f ms, %.1f GiB",
       whole.ms, whole.gib, owners.ms, owners.gib);
    topt_model_destroy(m);
}

/* explain tells of each table what was chosen; the chosen one's figures are among the choices. */
static void check_explained(void)
{
    struct topt_error err = {0};
    struct topt_explain_options o = {0};
    struct topt_request r;
    struct topt_model *m = topt_model_load("paper:dlrm", NULL, &err);
    json_t *doc = NULL;
    topt_request_init(&r);
    r.model = m;
    r.hw = topt_hw_load("a100-40-dgx", &err);
    r.gpus = 8;
    r.mode = TOPT_MINI_TIME;
    r.pin = "tables=data 8 with owners of rows";
    r.settings.dtype = TOPT_F32;
    r.settings.optimizer = TOPT_ROW_WISE_ADAGRAD;
    if (topt_framework_find("topt", &r.framework, &err) || topt_plan(&r, &doc, &err))
        printf("# %s\n", err.text);
    char *text = topt_plan_explain(doc, &o, &err);
    ok(text && strstr(text, "tables: 10 tables, 33742688 rows of 16") &&
           strstr(text, "all-to-all of rows of tables from their owners"),
       "explain tells of tables, and of what their rows take on the network");
    free(text);
    json_t *told = topt_plan_explain_json(doc, &o, &err);
    const json_t *tables = json_object_get(told, "tables"), *t, *c;
    size_t i, k;
    int chosen = 0, owners = 0;
    json_array_foreach(tables, i, t)
        json_array_foreach(json_object_get(t, "choices"), k,
                           c) if (json_is_true(json_object_get(c, "chosen")))
    {
        chosen++;
        owners +=
            strstr(json_string_value(json_object_get(c, "words")), "owners of rows") &&
            !strcmp(json_string_value(json_object_get(t, "name")), "tables");
    }
    ok(json_array_size(tables) == 2 && chosen == 2 && owners == 1,
       "of both lists of tables each has a choice, and the pinned one its own");
    json_decref(told);
    json_decref(doc);
    topt_hw_destroy((struct topt_hw *)r.hw);
    topt_model_destroy(m);
}

/* The formula against draws. */
static void check_rows(void)
{
    enum { ROWS = 1000, ROUNDS = 200 };
    static const int lookups[] = {1, 30, 500, 1000, 5000};
    struct topt_model *m = topt_model_create("m", 1, 1, NULL);
    struct topt_attrs table = {.vocab = ROWS, .features = 1, .sparse = 1};
    if (topt_model_add(m, "embedding", "t", 0, NULL, &table, NULL) < 0)
        abort();
    for (int k = 0; k < 5; k++) {
        double sum = 0, want = topt_table_rows(&m->op[0], lookups[k]);
        for (int round = 0; round < ROUNDS; round++) {
            char seen[ROWS] = {0};
            for (int i = 0; i < lookups[k]; i++) {
                uint64_t at = (uint64_t)(round * 10000 + i);
                char *row = &seen[topt_random(7 + (uint64_t)k, at) % ROWS];
                sum += !*row;
                *row = 1;
            }
        }
        ok(fabs(sum / ROUNDS / want - 1) < 0.01,
           "%d lookups name %.1f of %d rows, %.1f of them drawn", lookups[k], want, ROWS,
           sum / ROUNDS);
    }
    topt_model_destroy(m);
}

static void check_refusals(void)
{
    static const struct {
        struct topt_attrs attrs;
        const char *why;
    } bad[] = {
        {{.vocab = 9, .features = 1, .density = 0.5, .density_of = 9}, "sparse"},
        {{.vocab = 9, .features = 1, .sparse = 1, .density = 0.5}, "go together"},
        {{.vocab = 9, .features = 1, .sparse = 1, .density_of = 4}, "go together"},
        {{.vocab = 9, .features = 1, .sparse = 1, .density = 0.9, .density_of = 4},
         "can't name"},
    };
    for (int i = 0; i < 4; i++) {
        struct topt_error err = {0};
        struct topt_model *m = topt_model_create("m", 4, 4, NULL);
        int t = topt_model_add(m, "embedding", "t", 0, NULL, &bad[i].attrs, &err);
        ok(t < 0 && strstr(err.text, bad[i].why), "refused: %s", err.text);
        topt_model_destroy(m);
    }
    struct topt_error err = {0};
    struct topt_attrs table = {.vocab = 9, .features = 2}, sparse = {.sparse = 1};
    struct topt_model *m = topt_model_create("m", 4, 4, NULL);
    int t = topt_model_add(m, "variable", "w", 0, NULL, &table, NULL);
    ok(topt_model_add(m, "embedding", "e", 1, &t, &sparse, &err) < 0 &&
           strstr(err.text, "another operator's"),
       "refused: %s", err.text);
    topt_model_destroy(m);
}

int main(void)
{
    check_rows();
    check_refusals();
    check_gate();
    check_density();
    check_hybrid();
    check_frontier();
    check_batched();
    check_placed();
    check_explained();
    return done_testing();
}
