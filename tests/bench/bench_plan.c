/* bench_plan.c - whole models, from the parsed model to the answer, one row a question and way.
 *
 *     bench_plan [--runs N] [--only NAME] [--json FILE] [--quick] [--limit SECONDS]
 *
 * What people wait for: configurations listed, operators and edges priced, the frontier searched
 * (or the fastest within a limit, or the fewest devices).  Medians of N runs (5; one where a run
 * takes long), counts of the space and of the work, and the largest resident set of a process of
 * its own for every row.  A row that is not done within a limit of processor time says in which
 * phase it was.  Rows of a series end in a slope.  Then what the smaller spaces lose: the least
 * memory, and the fastest within a quarter more than full's least. */
#include "free.h"
#include "bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "planning.h"
#include "configs.h"
#include "topt_plan.h"
#include "topt_choices.h"

#define GPT2(layers, width, heads, seq, vocab)                                           \
    "{\"model_type\":\"gpt2\",\"n_layer\":" #layers ",\"n_embd\":" #width                \
    ",\"n_head\":" #heads ",\"n_positions\":" #seq ",\"vocab_size\":" #vocab "}"
#define LLAMA(layers, width, inner, heads)                                               \
    "{\"model_type\":\"llama\",\"hidden_size\":" #width ",\"intermediate_size\":" #inner \
    ",\"num_attention_heads\":" #heads ",\"num_hidden_layers\":" #layers                 \
    ",\"num_key_value_heads\":8,\"hidden_act\":\"silu\","                                \
    "\"max_position_embeddings\":131072,\"vocab_size\":128256}"

/* Models: a config's text, or the name of a paper's. */
static const char small_gpt[] = GPT2(4, 256, 8, 256, 8192),
                  gpt2[] = GPT2(12, 768, 12, 1024, 50257),
                  gpt3[] = GPT2(96, 12288, 96, 2048, 50257),
                  llama8[] = LLAMA(32, 4096, 14336, 32),
                  llama70[] = LLAMA(80, 8192, 28672, 64);
static const char dgx1[] = "v100-dgx1-2x8", pcie[] = "v100-pcie-1x8",
                  a100[] = "a100-80-dgx";

enum question { FRONTIER, FASTEST, LEAST, FEWEST, ANSWER };
enum { FREE = TOPT_BLOCKS_FREE, ALIKE = TOPT_BLOCKS_ALIKE };
enum { FULL = TOPT_SPACE_FULL, CANON = TOPT_SPACE_CANONICAL, UNI = TOPT_SPACE_UNIFORM };

struct row {
    const char *name, *model, *hw;
    enum question question;
    int nodes, per_node, space, blocks, factors, paper;
    int64_t batch, seq, granule; /* granule 0: the profile's */
    double limit_gib, epsilon;
    const char *algorithm;
    int threads, quick; /* BOTH: at 1 and at 2 threads */
    double x; /* with others of its name: the size that the slope is over; 0: none */
};

enum { BOTH = 0 };
#define PAPER(model) "paper:" model, dgx1
static const struct row rows[] = {
    /* The figures asked for, searched; then as `topt frontier` answers: checked and written. */
    {"rnn-16", PAPER("rnn"), FRONTIER, 2, 8, FULL, FREE, 0, 1, 256, 0, 0, 0, 0, "ft",
     BOTH, 1, 0},
    {"rnn-16", PAPER("rnn"), FRONTIER, 2, 8, FULL, FREE, 0, 1, 256, 0, 0, 0, 0,
     "ft-plain", 1, 0, 0},
    {"rnn-16", PAPER("rnn"), FRONTIER, 2, 8, FULL, FREE, 0, 1, 256, 0, 0, 0, 0,
     "ft-elimination", 1, 0, 0},
    {"rnn-16", PAPER("rnn"), ANSWER, 2, 8, FULL, FREE, 0, 1, 256, 0, 0, 0, 0, "ft", BOTH,
     1, 0},
    {"transformer-8", PAPER("transformer"), FRONTIER, 1, 8, FULL, FREE, 0, 1, 256, 0, 0,
     0, 0, "ft", BOTH, 1, 0},
    {"transformer-8", PAPER("transformer"), FRONTIER, 1, 8, FULL, FREE, 0, 1, 256, 0, 0,
     0, 0, "ft-plain", 1, 0, 0},
    {"transformer-8", PAPER("transformer"), FRONTIER, 1, 8, FULL, FREE, 0, 1, 256, 0, 0,
     0, 0, "ft-elimination", 1, 0, 0},
    {"transformer-8", PAPER("transformer"), ANSWER, 1, 8, FULL, FREE, 0, 1, 256, 0, 0, 0,
     0, "ft", BOTH, 1, 0},
    {"transformer-16", PAPER("transformer"), FRONTIER, 2, 8, FULL, FREE, 0, 1, 256, 0,
     65536, 0, 0, "ft", BOTH, 0, 0},
    {"transformer-16", PAPER("transformer"), ANSWER, 2, 8, FULL, FREE, 0, 1, 256, 0,
     65536, 0, 0, "ft", BOTH, 0, 0},
    {"transformer-16-byte", PAPER("transformer"), FRONTIER, 2, 8, FULL, FREE, 0, 1, 256,
     0, 1, 0, 0, "ft", BOTH, 0, 0},
    {"wideresnet-16", PAPER("wideresnet"), FRONTIER, 2, 8, FULL, FREE, 0, 1, 256, 0,
     65536, 0, 0, "ft", BOTH, 0, 0},
    {"wideresnet-16", PAPER("wideresnet"), FRONTIER, 2, 8, CANON, FREE, 0, 1, 256, 0,
     65536, 0, 0, "ft", BOTH, 0, 0},
    {"gpt3-64", gpt3, a100, FRONTIER, 8, 8, FULL, ALIKE,
     TOPT_FACTOR_ZERO | TOPT_FACTOR_RECOMPUTE, 0, 64, 2048, 0, 80, 0.001, "ft", BOTH, 0,
     0},
    {"gpt3-64", gpt3, a100, FASTEST, 8, 8, FULL, FREE,
     TOPT_FACTOR_ZERO | TOPT_FACTOR_RECOMPUTE, 0, 64, 2048, 0, 80, 0.001, "ft", BOTH, 0,
     0},
    {"gpt3-64", gpt3, a100, FASTEST, 8, 8, CANON, FREE,
     TOPT_FACTOR_ZERO | TOPT_FACTOR_RECOMPUTE, 0, 64, 2048, 0, 80, 0.001, "ft", BOTH, 0,
     0},
    {"gpt3-64", gpt3, a100, FRONTIER, 8, 8, CANON, ALIKE,
     TOPT_FACTOR_ZERO | TOPT_FACTOR_RECOMPUTE, 0, 64, 2048, 0, 80, 0.001, "ft", BOTH, 0,
     0},
    {"gpt3-1024", gpt3, a100, FASTEST, 128, 8, CANON, FREE,
     TOPT_FACTOR_ZERO | TOPT_FACTOR_RECOMPUTE, 0, 1024, 2048, 0, 80, 0.005, "ft", BOTH, 0,
     0},
    {"gpt3-1024", gpt3, a100, FRONTIER, 128, 8, CANON, ALIKE,
     TOPT_FACTOR_ZERO | TOPT_FACTOR_RECOMPUTE, 0, 1024, 2048, 0, 80, 0.005, "ft", BOTH, 0,
     0},
    {"llama70-fewest", llama70, a100, FEWEST, 128, 8, UNI, ALIKE, TOPT_FACTORS_ALL, 0, 64,
     4096, 0, 0, 0, "ft", BOTH, 1, 0},
    {"llama70-fewest", llama70, a100, FEWEST, 128, 8, CANON, FREE, TOPT_FACTOR_ZERO, 0,
     64, 4096, 0, 0, 0.005, "ft", BOTH, 0, 0},
    /* The fastest within a limit. */
    {"gpt-4x256", small_gpt, pcie, FRONTIER, 1, 8, FULL, FREE, 0, 0, 64, 128, 64, 0, 0,
     "ft", 1, 1, 0},
    {"gpt-4x256", small_gpt, pcie, FASTEST, 1, 8, FULL, FREE, 0, 0, 64, 128, 64, 0.176, 0,
     "ft", 1, 1, 0},
    {"gpt2", gpt2, pcie, FASTEST, 1, 8, FULL, FREE, 0, 0, 64, 256, 64, 0, 0, "ft", 1, 1,
     0},
    {"gpt2", gpt2, pcie, FASTEST, 1, 8, FULL, FREE, 0, 0, 64, 256, 64, 3, 0, "ft", 1, 0,
     0},
    {"gpt2", gpt2, pcie, FASTEST, 1, 8, FULL, FREE, 0, 0, 64, 256, 64, 2, 0, "ft", 1, 0,
     0},
    {"llama8-16", llama8, a100, FASTEST, 2, 8, CANON, FREE, 0, 0, 32, 2048, 0, 76, 0,
     "ft", 1, 0, 0},
    {"llama8-16", llama8, a100, ANSWER, 2, 8, CANON, FREE, 0, 0, 32, 2048, 0, 0, 0.01,
     "ft", 1, 0, 0},
    {"llama8-16", llama8, a100, FASTEST, 2, 8, FULL, FREE, TOPT_FACTOR_ZERO, 0, 64, 2048,
     0, 0, 0, "ft", 1, 0, 0},
    {"llama8-64", llama8, a100, FASTEST, 8, 8, CANON, FREE, TOPT_FACTOR_ZERO, 0, 64, 2048,
     0, 76, 0, "ft", BOTH, 0, 0},
    {"llama8-64", llama8, a100, FRONTIER, 8, 8, CANON, FREE, TOPT_FACTOR_ZERO, 0, 64,
     2048, 0, 76, 0.001, "ft", BOTH, 0, 0},
    {"llama8-64", llama8, a100, FRONTIER, 8, 8, CANON, FREE, TOPT_FACTOR_ZERO, 0, 64,
     2048, 0, 76, 0, "ft", BOTH, 0, 0},
/* Growth. */
#define LAYERS(n)                                                                        \
    {                                                                                    \
        "layers", GPT2(n, 256, 8, 256, 8192), pcie, FRONTIER, 1, 4, FULL, FREE, 0, 0,    \
            64, 128, 65536, 0, 0.001, "ft", 1, n <= 8, n                                 \
    }
    LAYERS(2),
    LAYERS(4),
    LAYERS(8),
    LAYERS(16),
    LAYERS(32),
#define DEVICES(n)                                                                       \
    {                                                                                    \
        "devices", small_gpt, pcie, FRONTIER, 1, n, FULL, FREE, 0, 0, 64, 128, 65536, 0, \
            0, "ft", 1, n <= 4, n                                                        \
    }
    DEVICES(2),
    DEVICES(4),
    DEVICES(8),
#define CANONICAL(nodes)                                                                 \
    {                                                                                    \
        "devices-canonical", gpt2, a100, FRONTIER, nodes, 8, CANON, FREE, 0, 0, 512,     \
            1024, 0, 0, 0.005, "ft", 1, nodes <= 1, 8 * nodes                            \
    }
    CANONICAL(1),
    CANONICAL(2),
    CANONICAL(4),
    CANONICAL(8),
};

enum { NROWS = sizeof rows / sizeof rows[0], LONG_RUN = 10 };

static struct bench_options options = {.runs = 5, .limit = 60};

enum phase { LIST, PRICE, SEARCH, ALL, PHASES };
static const char *const phase_name[PHASES] = {"listing", "pricing", "searching", "all"};

struct result {
    int ok, runs, npoints, exact, ncaps, feasible;
    enum phase phase; /* where it was when it was over */
    double cpu[PHASES], wall, epsilon;
    int64_t rss_kib, memory, time, gpus; /* of the least, the fastest or the fewest */
    struct topt_problem_stats space;
    struct topt_search_stats stats;
    char error[200];
};

/* ---- one run -------------------------------------------------------------------------------- */

static struct topt_model *load(const struct row *row, struct topt_error *err)
{
    struct topt_import_options o = {.batch = row->batch, .seq = row->seq};
    return *row->model == '{'
               ? topt_model_import(row->model, strlen(row->model), row->name, &o, err)
               : topt_model_load(row->model, &o, err);
}

static void ask(const struct row *row, struct topt_request *r)
{
    topt_request_init(r);
    r->mode = TOPT_MINI_PARALLELISM;
    r->max_gpus = (int64_t)row->nodes * row->per_node;
    r->counts = TOPT_COUNTS_POW2;
    r->space = (enum topt_space)row->space;
    r->blocks = (enum topt_block_choice)row->blocks;
    r->factors = row->factors;
    r->algorithm = row->algorithm;
    r->epsilon = row->epsilon;
    r->threads = row->threads;
    r->memory_limit = (int64_t)(row->limit_gib * 1073741824.0);
    r->settings.granule_bytes = row->granule;
    if (row->paper)
        r->settings.accounting = TOPT_ACCOUNTING_PAPER;
}

/* Configurations of one of each kind of operator, for themselves. */
static int list_configs(const struct topt_grid_search *s, struct topt_error *err)
{
    const struct topt_model *m = s->request->model;
    struct topt_space_options o = {.space = s->space, .zero = 1};
    for (int i = 0; i < m->nops; i++) {
        struct topt_splits splits = topt_splits_of_op(&m->op[i]);
        struct topt_config_list list;
        if (m->alike[i] != i)
            continue;
        if (topt_space_configs(&s->mesh, &splits, &o, &list, err))
            return -1;
        free(list.config);
    }
    return 0;
}

static double since(double *from)
{
    double t = bench_processor(), d = t - *from;
    *from = t;
    return d;
}

static void keep_best(struct result *r, const struct topt_solutions *all,
                      enum question question)
{
    const struct topt_certificate *c = &all->certificate;
    int last = question == LEAST ? 0 : all->n - 1;
    r->npoints = all->n;
    r->exact = c->exact;
    r->epsilon = c->epsilon;
    r->ncaps = all->ncaps;
    r->stats = c->stats;
    r->feasible = all->n > 0;
    if (all->n > 0) {
        r->memory = all->at[last].memory_bytes;
        r->time = all->at[last].time_ns;
    }
}

/* What is best so far, for the next variant. */
static int know(const struct row *row, const struct topt_solutions *all,
                struct topt_search_options *o)
{
    struct topt_cost *known = malloc(((size_t)all->n + 1) * sizeof *known);
    if (!known)
        return -1;
    for (int i = 0; i < all->n; i++)
        known[i] = (struct topt_cost){all->at[i].memory_bytes, all->at[i].time_ns};
    if (row->question == FASTEST && all->n)
        o->time_limit = all->at[all->n - 1].time_ns;
    if (row->question == FRONTIER)
        o->nknown = all->n;
    o->known = known;
    return 0;
}

/* A variant priced and searched, within what is best so far. */
static int solve_variant(const struct row *row, struct topt_grid_search *s,
                         const struct topt_degrees *v, struct topt_solutions *all,
                         struct result *r, struct topt_error *err)
{
    struct topt_problem *p = NULL;
    struct topt_problem_stats stats;
    struct topt_solutions part = {.certificate = topt_certificate_exact()};
    struct topt_search_options o = {.algorithm = row->algorithm,
                                    .memory_limit = s->request->memory_limit,
                                    .epsilon = row->epsilon,
                                    .threads = row->threads,
                                    .cancel = s->request->cancel};
    double t = bench_processor();
    if (o.memory_limit && topt_grid_least_bytes(s, v) > o.memory_limit)
        return 0;
    if (know(row, all, &o))
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for what is known");
    s->fastest = row->question == FASTEST;
    r->phase = PRICE;
    int rc = topt_grid_problem(s, v, &p, err);
    r->cpu[PRICE] += since(&t);
    if (!rc) {
        topt_problem_stats(p, &stats);
        topt_problem_stats_add(&r->space, &stats);
        r->phase = SEARCH;
        int64_t below = all->n ? all->at[0].memory_bytes : 0;
        rc = row->question == LEAST     ? topt_solve_least(p, &o, below, &part, err)
             : row->question == FASTEST ? topt_solve_fastest(p, &o, &part, err)
                                        : topt_solve_frontier(p, &o, &part, err);
        rc = rc || topt_solutions_merge(all, &part, err);
        r->cpu[SEARCH] += since(&t);
    }
    free((void *)o.known);
    topt_solutions_fini(&part);
    topt_problem_destroy(p);
    return rc ? -1 : 0;
}

static int run_shape(const struct row *row, struct topt_request *q, struct result *r,
                     struct topt_error *err)
{
    struct topt_planning micros;
    struct topt_grid_search s;
    struct topt_solutions all = {.certificate = topt_certificate_exact()};
    double t = bench_processor();
    r->phase = LIST;
    if (topt_planning_init(&micros, q, err))
        return -1;
    int rc =
        topt_grid_open(&s, &micros, row->nodes, row->per_node,
                       row->question == FRONTIER ? TOPT_GOAL_FRONTIER : TOPT_GOAL_FASTEST,
                       err) ||
        list_configs(&s, err);
    r->cpu[LIST] += since(&t);
    for (int i = 0; !rc && i < s.ndegrees; i++)
        rc = solve_variant(row, &s, &s.degrees[i], &all, r, err);
    keep_best(r, &all, row->question);
    topt_solutions_fini(&all);
    topt_grid_close(&s);
    topt_planning_fini(&micros);
    return rc ? -1 : 0;
}

/* A command as it is answered, all counts and shapes: the plan, or each point of a frontier,
 * is checked and written. */
static int run_request(const struct row *row, struct topt_request *q, struct result *r,
                       struct topt_error *err)
{
    json_t *a = NULL;
    int whole = row->question == ANSWER;
    r->phase = ALL;
    q->gpus = whole ? (int64_t)row->nodes * row->per_node : 0;
    if (whole ? topt_plan_frontier(q, &a, err) : topt_plan(q, &a, err))
        return -1;
    const json_t *stats = json_object_get(a, "stats");
    r->feasible = json_is_true(json_object_get(a, "feasible"));
    r->npoints = whole ? (int)json_array_size(json_object_get(a, "points")) : 1;
    r->exact = json_is_true(json_object_get(a, "exact"));
    r->epsilon = json_number_value(json_object_get(a, "epsilon"));
    r->gpus = json_integer_value(json_object_get(a, "gpus"));
    r->memory = json_integer_value(json_object_get(a, "memory_bytes"));
    r->time = json_integer_value(json_object_get(a, "time_ns"));
    r->stats.products = json_integer_value(json_object_get(stats, "products"));
    r->space = (struct topt_problem_stats){
        .configs = json_integer_value(json_object_get(a, "configs")),
        .layouts = json_integer_value(json_object_get(a, "layouts")),
        .edge_entries = json_integer_value(json_object_get(a, "edge_entries"))};
    json_decref(a);
    return 0;
}

static int run_once(const struct row *row, struct topt_request *q, struct result *r,
                    struct topt_error *err)
{
    struct result x = {.ok = 0};
    double wall = bench_wall(), cpu = bench_processor();
    q->cancel = bench_limit(options.limit);
    int rc = row->question == FEWEST || row->question == ANSWER
                 ? run_request(row, q, &x, err)
                 : run_shape(row, q, &x, err);
    x.cpu[ALL] = bench_processor() - cpu;
    x.wall = bench_wall() - wall;
    *r = x;
    return rc;
}

static void measure(const void *which, void *result)
{
    const struct row *row = which;
    struct result *r = result;
    struct topt_error err = {0};
    struct topt_request q;
    double at[PHASES + 1][BENCH_MAX_RUNS];
    struct topt_hw *hw = topt_hw_load(row->hw, &err);
    struct topt_model *m = hw ? load(row, &err) : NULL;
    int runs = 0, rc = m ? 0 : -1;
    ask(row, &q);
    q.model = m;
    q.hw = hw;
    while (!rc && runs < options.runs) {
        rc = run_once(row, &q, r, &err);
        for (int k = 0; k < PHASES; k++)
            at[k][runs] = r->cpu[k];
        at[PHASES][runs++] = r->wall;
        if (r->cpu[ALL] > LONG_RUN)
            break;
    }
    for (int k = 0; k < PHASES && runs > 0; k++)
        r->cpu[k] = bench_median(at[k], runs);
    r->wall = runs > 0 ? bench_median(at[PHASES], runs) : 0;
    r->runs = runs;
    r->rss_kib = bench_rss_kib();
    r->ok = !rc;
    if (rc && err.code == TOPT_ERR_CANCELED)
        snprintf(r->error, sizeof r->error, "not within %.0f s of a processor (%s)",
                 options.limit, phase_name[r->phase]);
    else if (rc)
        snprintf(r->error, sizeof r->error, "%.190s", err.text);
    topt_model_destroy(m);
    topt_hw_destroy(hw);
}

/* ---- the table --------------------------------------------------------------------- */

static const char *question_name(enum question q)
{
    static const char *const names[] = {"frontier", "fastest", "least", "fewest",
                                        "answer"};
    return names[q];
}

static void print_head(void)
{
    printf(
        "%-20s %-9s %4s %-8s %-14s %2s %5s %6s %6s %6s %7s %8s %4s %9s %8s %8s %9s %9s "
        "%9s %7s\n",
        "problem", "space", "dev", "question", "algorithm", "th", "eps %", "points",
        "got %", "config", "layouts", "entries", "caps", "products", "list ms",
        "price ms", "search ms", "cpu ms", "wall ms", "RSS MiB");
}

static void print_row(const struct row *row, const struct result *r)
{
    printf("%-20s %-9s %4d %-8s %-14s %2d %5.3g ", row->name,
           topt_space_name((enum topt_space)row->space), row->nodes * row->per_node,
           question_name(row->question), row->algorithm, row->threads,
           100 * row->epsilon);
    if (!r->ok)
        printf("%s, %.0f MiB\n", r->error, (double)r->rss_kib / 1024);
    else
        printf("%6d %6.3g %6" PRId64 " %7" PRId64 " %8" PRId64 " %4d %8" PRId64
               "k %8.2f %8.1f %9.1f %9.1f %9.1f %7.1f\n",
               r->npoints, 100 * r->epsilon, r->space.configs, r->space.layouts,
               r->space.edge_entries, r->ncaps, r->stats.products / 1000,
               1e3 * r->cpu[LIST], 1e3 * r->cpu[PRICE], 1e3 * r->cpu[SEARCH],
               1e3 * r->cpu[ALL], 1e3 * r->wall, (double)r->rss_kib / 1024);
    fflush(stdout);
}

static json_t *row_json(const struct row *row, const struct result *r)
{
    json_t *o = json_pack(
        "{s:s, s:s, s:i, s:i, s:s, s:s, s:i, s:f, s:f, s:I, s:b, s:i, s:i}", "name",
        row->name, "space", topt_space_name((enum topt_space)row->space), "nodes",
        row->nodes, "gpus_per_node", row->per_node, "question",
        question_name(row->question), "algorithm", row->algorithm, "threads",
        row->threads, "epsilon", row->epsilon, "limit_gib", row->limit_gib, "granule",
        (json_int_t)row->granule, "ok", r->ok, "runs", r->runs, "exact", r->exact);
    if (!r->ok) {
        json_object_set_new(o, "error", json_string(r->error));
        return o;
    }
    json_object_update_new(
        o,
        json_pack("{s:i, s:f, s:I, s:I, s:I, s:i, s:I, s:I, s:I, s:I, s:I, s:I}",
                  "points", r->npoints, "achieved", r->epsilon, "configs",
                  (json_int_t)r->space.configs, "layouts", (json_int_t)r->space.layouts,
                  "edge_entries", (json_int_t)r->space.edge_entries, "caps", r->ncaps,
                  "products", (json_int_t)r->stats.products, "table_points",
                  (json_int_t)r->stats.points, "gpus", (json_int_t)r->gpus,
                  "memory_bytes", (json_int_t)r->memory, "time_ns", (json_int_t)r->time,
                  "rss_kib", (json_int_t)r->rss_kib));
    json_object_update_new(
        o, json_pack("{s:f, s:f, s:f, s:f, s:f}", "list_ms", 1e3 * r->cpu[LIST],
                     "price_ms", 1e3 * r->cpu[PRICE], "search_ms", 1e3 * r->cpu[SEARCH],
                     "cpu_ms", 1e3 * r->cpu[ALL], "wall_ms", 1e3 * r->wall));
    return o;
}

static void run(const struct row *row, struct result *r)
{
    if (bench_apart(measure, row, r, sizeof *r))
        snprintf(r->error, sizeof r->error, "the process died");
}

/* A row; 'last' is of the most threads. */
static void run_threads(const struct row *row, struct result *last, json_t *into)
{
    int both = row->threads == BOTH;
    for (int threads = both ? 1 : row->threads; threads <= (both ? 2 : row->threads);
         threads++) {
        struct row one = *row;
        one.threads = threads;
        run(&one, last);
        print_row(&one, last);
        json_array_append_new(into, row_json(&one, last));
    }
}

static json_t *slope_json(const struct bench_slope *s)
{
    return isnan(bench_slope(s)) ? json_null() : json_real(bench_slope(s));
}

static void print_slopes(const struct result *r, json_t *into)
{
    for (int i = 0; i < NROWS; i++) {
        struct bench_slope price = {0}, search = {0}, work = {0};
        if (rows[i].x <= 0 || (i > 0 && !strcmp(rows[i].name, rows[i - 1].name)))
            continue;
        for (int k = i; k < NROWS && !strcmp(rows[k].name, rows[i].name); k++)
            if (r[k].ok) {
                bench_slope_add(&price, rows[k].x, r[k].cpu[PRICE]);
                bench_slope_add(&search, rows[k].x, r[k].cpu[SEARCH]);
                bench_slope_add(&work, rows[k].x, (double)r[k].stats.products);
            }
        if (work.n < 2)
            continue;
        printf(
            "%-20s grows as x^%.2f in pricing, x^%.2f in searching, x^%.2f in products\n",
            rows[i].name, bench_slope(&price), bench_slope(&search), bench_slope(&work));
        json_array_append_new(into, json_pack("{s:s, s:o, s:o, s:o}", "name",
                                              rows[i].name, "price", slope_json(&price),
                                              "search", slope_json(&search), "products",
                                              slope_json(&work)));
    }
}

/* ---- what smaller spaces lose ------------------------------------------------------ */

static const struct row lossy[] = {
    {"rnn", PAPER("rnn"), LEAST, 0, 0, 0, FREE, 0, 1, 256, 0, 65536, 0, 0, "ft", 1, 1, 0},
    {"transformer", PAPER("transformer"), LEAST, 0, 0, 0, FREE, 0, 1, 256, 0, 65536, 0, 0,
     "ft", 1, 0, 0},
    {"wideresnet", PAPER("wideresnet"), LEAST, 0, 0, 0, FREE, 0, 1, 256, 0, 65536, 0, 0,
     "ft", 1, 0, 0},
    {"vgg16", PAPER("vgg16"), LEAST, 0, 0, 0, FREE, 0, 1, 256, 0, 65536, 0, 0, "ft", 1, 0,
     0},
    {"gpt-4x256", small_gpt, dgx1, LEAST, 0, 0, 0, FREE, TOPT_FACTOR_ZERO, 0, 64, 128,
     65536, 0, 0, "ft", 1, 1, 0},
    {"llama-8b", llama8, a100, LEAST, 0, 0, 0, ALIKE, TOPT_FACTOR_ZERO, 0, 32, 2048, 0, 0,
     0, "ft", 1, 0, 0},
};
static const int loss_shapes[][2] = {{1, 4}, {1, 8}, {2, 8}};

static void print_loss(const struct row *row, const struct result *r, const int64_t *of)
{
    char loss[24] = "";
    int64_t value = row->question == LEAST ? r->memory : r->time;
    if (!r->ok || !r->feasible)
        printf(" %24s", r->ok ? "nothing fits" : "not in time");
    else {
        if (of && *of > 0)
            snprintf(loss, sizeof loss, "(%+.1f %%)",
                     100.0 * ((double)value / (double)*of - 1));
        printf(" %12.3f %-11s",
               row->question == LEAST ? (double)value / 1073741824.0
                                      : (double)value / 1e6,
               loss);
    }
    fflush(stdout);
}

/* One question in the three spaces; 'full' gets full's value, 0 where there is none. */
static void compare_spaces(struct row row, int64_t *full, json_t *into)
{
    static const int spaces[] = {FULL, CANON, UNI};
    *full = 0;
    for (int k = 0; k < 3; k++) {
        struct result r;
        row.space = spaces[k];
        if (row.space == UNI)
            row.blocks = ALIKE;
        run(&row, &r);
        print_loss(&row, &r, k ? full : NULL);
        if (r.ok && r.feasible && *full == 0)
            *full = row.question == LEAST ? r.memory : r.time;
        json_array_append_new(into, row_json(&row, &r));
    }
}

/* "spaces" asks for all, "spaces-NAME" for those of one model. */
static int losses_wanted(const struct row *row)
{
    const char *only = options.only;
    if (options.quick && !row->quick)
        return 0;
    return !only || (!strncmp(only, "spaces", 6) &&
                     (!only[6] || (only[6] == '-' && !strcmp(only + 7, row->name))));
}

static void print_losses(json_t *into)
{
    for (size_t i = 0; i < sizeof lossy / sizeof *lossy; i++) {
        if (!losses_wanted(&lossy[i]))
            continue;
        for (size_t k = 0; k < sizeof loss_shapes / sizeof *loss_shapes; k++) {
            struct row row = lossy[i];
            int64_t least, fastest;
            row.nodes = loss_shapes[k][0];
            row.per_node = loss_shapes[k][1];
            if (options.quick && row.nodes * row.per_node > 8)
                continue;
            printf("%-12s %2d  GiB", row.name, row.nodes * row.per_node);
            compare_spaces(row, &least, into);
            printf("\n%-12s %2s  ms ", "", "");
            row.question = FASTEST;
            row.limit_gib = 1.25 * (double)least / 1073741824.0;
            compare_spaces(row, &fastest, into);
            printf("\n");
        }
    }
}

int main(int argc, char **argv)
{
    static struct result result[NROWS];
    int rc = bench_options(argc, argv, "bench_plan", &options);
    if (rc)
        return rc;
    if (options.quick && options.limit > 10)
        options.limit = 10;
    json_t *table = json_array(), *slopes = json_array(), *spaces = json_array();
    print_head();
    for (int i = 0; i < NROWS; i++)
        if ((!options.only || !strcmp(rows[i].name, options.only)) &&
            (!options.quick || rows[i].quick)) {
            run_threads(&rows[i], &result[i], table);
        }
    print_slopes(result, slopes);
    printf("\nleast memory, and the fastest within 1.25 times full's least: full, "
           "canonical, "
           "uniform\n");
    print_losses(spaces);
    json_t *doc =
        json_pack("{s:o, s:o, s:o}", "rows", table, "slopes", slopes, "spaces", spaces);
    rc = options.json && json_dump_file(doc, options.json, JSON_INDENT(1));
    if (rc)
        fprintf(stderr, "bench_plan: can't write %s\n", options.json);
    json_decref(doc);
    return rc ? 1 : 0;
}
