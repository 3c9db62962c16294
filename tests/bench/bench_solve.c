/* bench_solve.c - the search on generated bare problems, one row a problem and way.
 *
 *     bench_solve [--runs N] [--only NAME] [--json FILE] [--quick]
 *
 * Measures from the problem in memory to the frontier with all strategies: medians of wall
 * and processor time over N runs (5), counts, and the largest resident set of a process of
 * its own for every row, so that rows do not see each other's memory.  Rows that differ only
 * in size end in a slope: the exponent by which processor time and products grow. */
#include "bench.h"
#include "instances.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct row {
    const char *name, *algorithm;
    struct instance_spec spec;
    int threads;
    double epsilon;
    double x;  /* with others of its name: the size that the slope is over; 0: none */
    int quick; /* also with --quick */
} rows[] = {
#define SPEC(s, c, n, k)                                                                 \
    {                                                                                    \
        .shape = s, .costs = c, .size = n, .configs = k, .seed = 1                       \
    }
#define ALIKE(s, c, n, k)                                                                \
    {                                                                                    \
        .shape = s, .costs = c, .size = n, .configs = k, .seed = 1, .alike = 1           \
    }
    /* The figures asked for. */
    {"chain-480x28", "ft", SPEC("chain", "random", 480, 28), 1, 0, 0, 0},
    {"chain-480x28", "ft", SPEC("chain", "random", 480, 28), 2, 0, 0, 0},
    {"chain-480x28", "ft", SPEC("chain", "split", 480, 28), 1, 0, 0, 0},
    {"chain-480x28", "ft", SPEC("chain", "split", 480, 28), 2, 0, 0, 0},
    {"forkjoin-96x32", "ft", SPEC("forkjoin", "random", 96, 32), 1, 0.001, 0, 0},
    {"forkjoin-96x32", "ft", SPEC("forkjoin", "random", 96, 32), 2, 0.001, 0, 0},
    {"forkjoin-96x32", "ft", SPEC("forkjoin", "random", 96, 32), 2, 0, 0, 0},
    {"forkjoin-96x32", "ft", SPEC("forkjoin", "split", 96, 32), 2, 0.001, 0, 0},
    {"forkjoin-96x32", "ft", SPEC("forkjoin", "split", 96, 32), 2, 0, 0, 0},
    {"forkjoin-96x32-alike", "ft", ALIKE("forkjoin", "split", 96, 32), 2, 0.001, 0, 0},
    {"forkjoin-96x32-alike", "ft", ALIKE("forkjoin", "split", 96, 32), 2, 0, 0, 0},
    /* Layers. */
    {"layers", "ft", SPEC("residual", "split", 12, 24), 1, 0.001, 12, 0},
    {"layers", "ft", SPEC("residual", "split", 96, 24), 1, 0.001, 96, 0},
    {"layers-alike", "ft", ALIKE("residual", "split", 12, 24), 1, 0.001, 12, 0},
    {"layers-alike", "ft", ALIKE("residual", "split", 96, 24), 1, 0.001, 96, 0},
    /* Many operators, hubs among them, with a tolerance that takes a handful of
     * weighings: mostly how eliminations are planned. */
    {"many-star", "ft", SPEC("star", "random", 5000, 4), 1, 10, 5000, 0},
    {"many-star", "ft", SPEC("star", "random", 20000, 4), 1, 10, 20000, 0},
    {"many-isolated", "ft", SPEC("isolated", "random", 25000, 4), 1, 10, 25000, 0},
    {"many-isolated", "ft", SPEC("isolated", "random", 100000, 4), 1, 10, 100000, 0},
    {"many-comb", "ft", SPEC("comb", "random", 5000, 4), 1, 10, 5000, 0},
    {"many-comb", "ft", SPEC("comb", "random", 20000, 4), 1, 10, 20000, 0},
    {"many-branches", "ft", SPEC("branches", "random", 5000, 4), 1, 10, 5000, 0},
    {"many-branches", "ft", SPEC("branches", "random", 20000, 4), 1, 10, 20000, 0},
    {"many-chain", "ft", SPEC("chain", "random", 12500, 4), 1, 10, 12500, 0},
    {"many-chain", "ft", SPEC("chain", "random", 50000, 4), 1, 10, 50000, 0},
    /* Growth, and the plain ways beside it. */
    {"operators", "ft", SPEC("chain", "random", 20, 16), 1, 0, 20, 1},
    {"operators", "ft", SPEC("chain", "random", 40, 16), 1, 0, 40, 1},
    {"operators", "ft", SPEC("chain", "random", 80, 16), 1, 0, 80, 1},
    {"operators", "ft-plain", SPEC("chain", "random", 20, 16), 1, 0, 20, 1},
    {"operators", "ft-plain", SPEC("chain", "random", 40, 16), 1, 0, 40, 1},
    {"operators", "ft-plain", SPEC("chain", "random", 80, 16), 1, 0, 80, 0},
    {"configurations", "ft", SPEC("chain", "random", 12, 8), 1, 0, 8, 1},
    {"configurations", "ft", SPEC("chain", "random", 12, 16), 1, 0, 16, 1},
    {"configurations", "ft", SPEC("chain", "random", 12, 32), 1, 0, 32, 1},
    {"configurations", "ft-plain", SPEC("chain", "random", 12, 8), 1, 0, 8, 1},
    {"configurations", "ft-plain", SPEC("chain", "random", 12, 16), 1, 0, 16, 1},
    {"configurations", "ft-plain", SPEC("chain", "random", 12, 32), 1, 0, 32, 1},
    {"configurations", "ft-elimination", SPEC("chain", "random", 12, 8), 1, 0, 8, 1},
    {"configurations", "ft-elimination", SPEC("chain", "random", 12, 16), 1, 0, 16, 1},
    {"configurations", "ft-elimination", SPEC("chain", "random", 12, 32), 1, 0, 32, 0},
    {"blocks", "ft", SPEC("forkjoin", "split", 2, 12), 1, 0, 2, 1},
    {"blocks", "ft", SPEC("forkjoin", "split", 4, 12), 1, 0, 4, 1},
    {"blocks", "ft-elimination", SPEC("forkjoin", "split", 2, 12), 1, 0, 2, 1},
    {"blocks", "ft-elimination", SPEC("forkjoin", "split", 4, 12), 1, 0, 4, 1},
};

enum { NROWS = sizeof rows / sizeof rows[0] };

static int runs;

struct result {
    int ok, npoints, nops, nedges, exact;
    int64_t entries; /* of edges */
    double wall, cpu, epsilon;
    int64_t rss_kib;
    struct topt_search_stats stats;
    char error[240];
};

static void keep(struct result *r, const struct topt_frontier *f)
{
    r->npoints = f->npoints;
    r->exact = f->exact;
    r->epsilon = f->epsilon;
    r->stats = f->stats;
}

static void measure(const void *which, void *result)
{
    const struct row *row = which;
    struct result *r = result;
    struct instance *in = instance_make(&row->spec);
    struct topt_search_options o = {
        .algorithm = row->algorithm, .threads = row->threads, .epsilon = row->epsilon};
    struct topt_error err = {0};
    double wall[BENCH_MAX_RUNS], cpu[BENCH_MAX_RUNS];
    if (!in)
        return;
    const struct topt_search_problem *p = instance_problem(in);
    for (int i = 0; i < p->nedges; i++)
        r->entries +=
            (int64_t)p->edge[i].table->from_classes * p->edge[i].table->to_classes;
    r->nops = p->nops;
    r->nedges = p->nedges;
    for (int i = 0; i < runs; i++) {
        struct topt_frontier *f;
        double w = bench_wall(), c = bench_processor();
        if (topt_search(p, &o, &f, &err)) {
            snprintf(r->error, sizeof r->error, "%s", err.text);
            return;
        }
        wall[i] = bench_wall() - w;
        cpu[i] = bench_processor() - c;
        keep(r, f);
        topt_frontier_destroy(f);
    }
    r->wall = bench_median(wall, runs);
    r->cpu = bench_median(cpu, runs);
    r->rss_kib = bench_rss_kib();
    r->ok = 1;
    instance_free(in);
}

static void print_row(FILE *f, const struct row *row, const struct result *r)
{
    fprintf(f, "%-21s %-6s %-14s %6d %3d %2d %6.3g ", row->name, row->spec.costs,
            row->algorithm, row->spec.size, row->spec.configs, row->threads,
            100 * row->epsilon);
    if (!r->ok)
        fprintf(f, " failed: %s\n", r->error);
    else
        fprintf(f, "%8d %8.3g %6" PRId64 " %10.1f %10.1f %9" PRId64 " %7.1f\n",
                r->npoints, 100 * r->epsilon, r->stats.bands, 1e3 * r->wall, 1e3 * r->cpu,
                r->stats.products / 1000, (double)r->rss_kib / 1024);
    fflush(f);
}

static void json_row(FILE *f, const struct row *row, const struct result *r, int first)
{
    fprintf(
        f,
        "%s\n {\"name\":\"%s\",\"shape\":\"%s\",\"costs\":\"%s\",\"alike\":%s,"
        "\"size\":%d,\"configs\":%d,\"algorithm\":\"%s\",\"threads\":%d,"
        "\"epsilon\":%g,\"ok\":%s,\"operators\":%d,\"edges\":%d,\"entries\":%" PRId64
        ",\"points\":%d,\"exact\":%s,\"achieved\":%.6g,\"wall_ms\":%.3f,\"cpu_ms\":%.3f,"
        "\"rss_kib\":%" PRId64 ",\"products\":%" PRId64 ",\"table_points\":%" PRId64
        ",\"tables\":%" PRId64 ",\"shared\":%" PRId64 ",\"bands\":%" PRId64
        ",\"peak_bytes\":%" PRId64 "}",
        first ? "" : ",", row->name, row->spec.shape, row->spec.costs,
        row->spec.alike ? "true" : "false", row->spec.size, row->spec.configs,
        row->algorithm, row->threads, row->epsilon, r->ok ? "true" : "false", r->nops,
        r->nedges, r->entries, r->npoints, r->exact ? "true" : "false", r->epsilon,
        1e3 * r->wall, 1e3 * r->cpu, r->rss_kib, r->stats.products, r->stats.points,
        r->stats.tables, r->stats.shared, r->stats.bands, r->stats.peak_bytes);
}

static int same_series(const struct row *a, const struct row *b)
{
    return b->x > 0 && !strcmp(a->name, b->name) && !strcmp(a->algorithm, b->algorithm) &&
           a->threads == b->threads;
}

/* Of the measured rows of a series. */
static double slope(const struct row *of, const struct result *r, int by_products)
{
    struct bench_slope s = {0};
    for (int i = 0; i < NROWS; i++)
        if (same_series(of, &rows[i]) && r[i].ok)
            bench_slope_add(&s, rows[i].x,
                            by_products ? (double)r[i].stats.products : r[i].cpu);
    return bench_slope(&s);
}

static void print_slopes(FILE *f, const struct result *r, int json)
{
    int first = 1;
    for (int i = 0; i < NROWS; i++) {
        int seen = rows[i].x <= 0;
        for (int j = 0; j < i && !seen; j++)
            seen = same_series(&rows[i], &rows[j]);
        double cpu = seen ? NAN : slope(&rows[i], r, 0);
        if (isnan(cpu))
            continue;
        double products = slope(&rows[i], r, 1);
        if (json)
            fprintf(
                f,
                "%s\n "
                "{\"name\":\"%s\",\"algorithm\":\"%s\",\"cpu\":%.3f,\"products\":%.3f}",
                first ? "" : ",", rows[i].name, rows[i].algorithm, cpu, products);
        else
            fprintf(f, "%-21s %-14s processor time grows as x^%.2f, products as x^%.2f\n",
                    rows[i].name, rows[i].algorithm, cpu, products);
        first = 0;
    }
}

static int write_json(const char *path, const struct result *r)
{
    FILE *f = fopen(path, "w");
    int first = 1;
    if (!f)
        return -1;
    fprintf(f, "{\"rows\":[");
    for (int i = 0; i < NROWS; i++)
        if (r[i].nops) {
            json_row(f, &rows[i], &r[i], first);
            first = 0;
        }
    fprintf(f, "],\n\"slopes\":[");
    print_slopes(f, r, 1);
    fprintf(f, "]}\n");
    return fclose(f);
}

int main(int argc, char **argv)
{
    static struct result result[NROWS];
    struct bench_options o = {.runs = 5};
    int rc = bench_options(argc, argv, "bench_solve", &o);
    if (rc)
        return rc;
    runs = o.runs;
    printf("%-21s %-6s %-14s %6s %3s %2s %6s %8s %8s %6s %10s %10s %9s %7s\n", "problem",
           "costs", "algorithm", "size", "cfg", "th", "eps %", "points", "got %", "bands",
           "wall ms", "cpu ms", "prod/k", "RSS MiB");
    for (int i = 0; i < NROWS; i++)
        if ((!o.only || !strcmp(rows[i].name, o.only)) && (!o.quick || rows[i].quick)) {
            if (bench_apart(measure, &rows[i], &result[i], sizeof result[i]))
                snprintf(result[i].error, sizeof result[i].error, "the process died");
            print_row(stdout, &rows[i], &result[i]);
        }
    print_slopes(stdout, result, 0);
    if (o.json && write_json(o.json, result)) {
        fprintf(stderr, "bench_solve: can't write %s\n", o.json);
        return 1;
    }
    return 0;
}
