/* bench_search.c - how long the search takes where people wait for it.
 *
 *     bench_search [NAME]     the cases called NAME; all without
 *
 * Prints a row a case: the fastest strategy within a limit, and for the small cases the whole
 * frontier too.  Times are of the processor, not of the clock on the wall, so that a loaded
 * machine says about the same; the median of three. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "answer.h"

#define GPT2(layers, width, heads, seq, vocab)                                           \
    "{\"model_type\":\"gpt2\",\"n_layer\":" #layers ",\"n_embd\":" #width                \
    ",\"n_head\":" #heads ",\"n_positions\":" #seq ",\"vocab_size\":" #vocab "}"

static const char small_gpt[] = GPT2(4, 256, 8, 256, 8192);
static const char gpt2[] = GPT2(12, 768, 12, 1024, 50257);
static const char llama[] =
    "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,"
    "\"num_attention_heads\":32,\"num_hidden_layers\":32,\"num_key_value_heads\":8,"
    "\"hidden_act\":\"silu\",\"max_position_embeddings\":131072,\"vocab_size\":128256}";

static const struct bench {
    const char *name, *config, *hw;
    int nodes, per_node;
    enum topt_space space;
    int64_t batch, seq, granule, limit_mib; /* granule 0: the profile's */
    int fastest;
} cases[] = {
    {"gpt-4x256", small_gpt, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 128, 64, 0, 0},
    {"gpt-4x256", small_gpt, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 128, 64, 0, 1},
    {"gpt-4x256", small_gpt, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 128, 64, 180, 1},
    {"gpt2", gpt2, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 256, 64, 0, 1},
    {"gpt2", gpt2, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 256, 64, 3072, 1},
    {"gpt2", gpt2, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 256, 64, 2048, 1},
    {"gpt2-64k", gpt2, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 256, 65536, 0, 1},
    {"gpt2-64k", gpt2, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 256, 65536, 3072, 1},
    {"gpt2-64k", gpt2, "v100-pcie-1x8", 1, 8, TOPT_SPACE_FULL, 64, 256, 65536, 2048, 1},
    {"llama-8b", llama, "a100-80-dgx", 2, 8, TOPT_SPACE_CANONICAL, 32, 2048, 0, 77824, 1},
    {"llama-8b", llama, "a100-80-dgx", 2, 8, TOPT_SPACE_CANONICAL, 32, 2048, 0, 40960, 1},
};

enum { RUNS = 3 };

static double seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void print_row(const struct bench *b, const struct topt_solutions *s, double ms)
{
    char limit[24] = "-";
    if (b->limit_mib)
        snprintf(limit, sizeof limit, "%lld", (long long)b->limit_mib);
    const struct topt_solution *last = s->n ? &s->at[s->n - 1] : NULL;
    printf("%-10s %-9s %3d %7s %-8s %10lld %7lld %9lld %5d %7d %9.1f %9.3f %9.3f\n",
           b->name, topt_space_name(b->space), b->nodes * b->per_node, limit,
           b->fastest ? "fastest" : "frontier",
           (long long)(s->claim.stats.products / 1000), (long long)s->claim.stats.tables,
           (long long)s->claim.stats.points, s->ncaps, s->n, ms,
           last ? (double)last->memory_bytes / 1048576 : 0,
           last ? (double)last->time_ns / 1e6 : 0);
    fflush(stdout);
}

static int solve(const struct bench *b, struct topt_problem *p, struct topt_error *err)
{
    struct topt_search_options o = {.threads = 1, .memory_limit = b->limit_mib * 1048576};
    double ms[RUNS];
    for (int i = 0; i < RUNS; i++) {
        struct topt_solutions s;
        double from = seconds();
        if (topt_problem_frontier(p, &o, b->fastest, &s, err))
            return -1;
        ms[i] = 1e3 * (seconds() - from);
        if (i == RUNS - 1) {
            qsort(ms, RUNS, sizeof *ms, by_size);
            print_row(b, &s, ms[RUNS / 2]);
        }
        topt_solutions_fini(&s);
    }
    return 0;
}

static int measure(const struct bench *b, struct topt_error *err)
{
    struct topt_import_options io = {.batch = b->batch, .seq = b->seq};
    struct topt_hw *hw = topt_hw_load(b->hw, err);
    struct topt_model *m =
        hw ? topt_model_import(b->config, strlen(b->config), b->name, &io, err) : NULL;
    struct topt_problem *p = NULL;
    struct topt_shape_search s = {0};
    struct topt_micros micros = {0};
    struct topt_request r;
    topt_request_init(&r);
    r.blocks = TOPT_BLOCKS_FREE;
    r.factors = 0;
    r.model = m;
    r.hw = hw;
    r.space = b->space;
    r.settings.granule_bytes = b->granule;
    int rc = !m || topt_micros_init(&micros, &r, err) ||
             topt_shape_open(&s, &micros, b->nodes, b->per_node, err) ||
             topt_shape_problem(&s, &s.variant[0], &p, err) || solve(b, p, err);
    topt_problem_destroy(p);
    topt_shape_close(&s);
    topt_micros_fini(&micros);
    topt_model_destroy(m);
    topt_hw_destroy(hw);
    return rc ? -1 : 0;
}

int main(int argc, char **argv)
{
    struct topt_error err = {0};
    printf("%-10s %-9s %3s %7s %-8s %10s %7s %9s %5s %7s %9s %9s %9s\n", "problem",
           "space", "dev", "MiB", "search", "products/k", "tables", "points", "caps",
           "answers", "ms", "MiB", "time ms");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if ((argc < 2 || !strcmp(cases[i].name, argv[1])) && measure(&cases[i], &err)) {
            fprintf(stderr, "bench_search: %s: %s\n", cases[i].name, err.text);
            return 1;
        }
    return 0;
}
