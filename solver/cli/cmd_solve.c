/* cmd_solve.c - "topt solve costs.json": the frontier of a cost file, as a table or JSON. */
#include "topt_search_cmd.h"

#include "frontier_json.h"

#include "topt_options.h"
#include "topt_pool.h"
#include "topt_progress.h"
#include "topt_search.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct args {
    const char *algorithm;
    double epsilon, seconds;
    int64_t threads, memory, work, entries;
    int json, quiet;
};

static const struct topt_option table[] = {
    TOPT_EXAMPLE("topt solve costs.json", "the frontier of what topt costgraph wrote"),
    {"algorithm", TOPT_OPT_STRING, offsetof(struct args, algorithm), "NAME",
     "ft (default), ft-plain, ft-elimination or brute-force"},
    {"epsilon", TOPT_OPT_REAL, offsetof(struct args, epsilon), "E",
     "0 is exact (default); else times may be (1+E) times the best"},
    {"threads", TOPT_OPT_COUNT, offsetof(struct args, threads), "N",
     "threads of the search (default: all processors, at most 8); they do not change the "
     "answer"},
    {"memory", TOPT_OPT_BYTES, offsetof(struct args, memory), "BYTES",
     "leave out what takes more, as 14.5GiB"},
    {"max-work", TOPT_OPT_COUNT, offsetof(struct args, work), "N",
     "stop after so many pairs of points, and say how good the answer is"},
    {"seconds", TOPT_OPT_POSITIVE, offsetof(struct args, seconds), "S",
     "the same after so many seconds"},
    {"max-entries", TOPT_OPT_COUNT, offsetof(struct args, entries), "N",
     "decide operators by heuristic where exact tables would be larger (8388608)"},
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), NULL, "print JSON"},
    {"quiet", TOPT_OPT_FLAG, offsetof(struct args, quiet), NULL,
     "no progress line on a terminal"},
    {0},
};

/* ---- output ---- */

enum { SHOWN_POINTS = 40, SHOWN_CHANGES = 6 };

/* Configurations that differ from those of the point shown before (NULL: all). */
static void print_changes(FILE *to, const struct topt_search_problem *p,
                          const struct topt_search_point *x,
                          const struct topt_search_point *before)
{
    int n = 0;
    for (int i = 0; i < p->nops; i++) {
        if (before && before->config[i] == x->config[i])
            continue;
        if (n++ < SHOWN_CHANGES)
            fprintf(to, "%s%s %d", n > 1 ? ", " : "", p->op[i].name, (int)x->config[i]);
    }
    if (n > SHOWN_CHANGES)
        fprintf(to, " and %d more", n - SHOWN_CHANGES);
    fprintf(to, n ? "\n" : "the same, other edges\n");
}

static void print_claim(FILE *to, const struct topt_search_problem *p,
                        const struct topt_frontier *f)
{
    if (f->exact)
        fprintf(to, "exact\n");
    else if (isfinite(f->epsilon))
        fprintf(to, "times at most %.3g %% above the best\n", 100 * f->epsilon);
    else
        fprintf(to, "stopped: nothing is proven of what lies between\n");
    for (int i = 0; i < f->nheuristic; i++)
        fprintf(to, "decided by heuristic: %s\n", p->op[f->heuristic[i]].name);
}

/* A line a point: costs, then what is chosen otherwise than on the line before; of long
 * frontiers so many lines, evenly from one end to the other. */
static int print_points(FILE *to, const struct topt_search_problem *p,
                        const struct topt_frontier *f, int shown, struct topt_error *err)
{
    struct topt_frontier_reader *now = topt_frontier_reader(f, err);
    struct topt_frontier_reader *last = topt_frontier_reader(f, err);
    const struct topt_search_point *before = NULL;
    int rc = now && last ? 0 : -1;
    for (int i = 0; i < shown && !rc; i++) {
        int at = shown > 1 ? (int)((int64_t)i * (f->npoints - 1) / (shown - 1)) : 0;
        const struct topt_search_point *x = topt_frontier_read(now, at);
        fprintf(to, "%20" PRId64 " %20" PRId64 "  ", x->cost.memory, x->cost.time);
        print_changes(to, p, x, before);
        before = topt_frontier_read(last, at);
    }
    topt_frontier_reader_destroy(now);
    topt_frontier_reader_destroy(last);
    return rc;
}

static int print_table(FILE *to, const struct topt_search_problem *p,
                       const struct topt_frontier *f, struct topt_error *err)
{
    int shown = f->npoints < SHOWN_POINTS ? f->npoints : SHOWN_POINTS;
    fprintf(to, "%20s %20s  %s\n", "memory", "time",
            "configurations: of the first point, then what changes");
    if (print_points(to, p, f, shown, err))
        return -1;
    fprintf(to, "%d points%s, %d operators, %d edges; ", f->npoints,
            shown < f->npoints ? " (some of them above, all with --json)" : "", p->nops,
            p->nedges);
    print_claim(to, p, f);
    return 0;
}

static int print(const struct args *args, const struct topt_costs_file *file,
                 const struct topt_frontier *f, struct topt_error *err)
{
    const struct topt_search_problem *p = topt_costs_problem(file);
    if (args->json && topt_frontier_print(stdout, p, topt_costs_edges(file), f, err))
        return -1;
    if (!args->json && print_table(stdout, p, f, err))
        return -1;
    if (fflush(stdout) || ferror(stdout))
        return topt_fail(err, TOPT_ERR_IO, "the answer can't be written to stdout");
    return 0;
}

/* ---- the command ---- */

static int load(const char *path, struct topt_costs_file **ret, struct topt_error *err)
{
    FILE *from = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    if (!from)
        return topt_fail(err, TOPT_ERR_IO, "can't open '%s': %s", path, strerror(errno));
    int rc = topt_costs_load(from, ret, err);
    if (from != stdin)
        fclose(from);
    return rc ? topt_wrap(err, "%s", path) : 0;
}

static int nothing_fits(const struct args *args, const struct topt_frontier *f,
                        struct topt_error *err)
{
    if (!isfinite(f->epsilon))
        return topt_fail(err, TOPT_ERR_LIMIT, "stopped before anything was found");
    if (f->nheuristic)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "nothing was found, because operators were fixed by heuristic; "
                         "raise --max-entries");
    if (!args->memory)
        return topt_fail(err, TOPT_ERR_INFEASIBLE, "no strategy is allowed at all");
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "no strategy takes at most %" PRId64 " bytes; give more --memory",
                     args->memory);
}

static int solve(const struct args *args, const char *path, struct topt_error *err)
{
    struct topt_search_options o = {.algorithm = args->algorithm,
                                    .memory_limit = args->memory,
                                    .epsilon = args->epsilon,
                                    .max_work = args->work,
                                    .max_entries = args->entries};
    struct topt_costs_file *file = NULL;
    struct topt_frontier *f = NULL;
    struct topt_watch watch;
    int rc = -1;
    if (topt_search_threads(args->threads, &o.threads, err) || load(path, &file, err))
        return -1;
    o.stop = topt_stop_after(args->seconds);
    o.progress = topt_watch_start(&watch, args->quiet || args->json);
    int failed = topt_search(topt_costs_problem(file), &o, &f, err);
    topt_watch_stop(&watch);
    if (failed)
        goto out;
    rc = print(args, file, f, err);
    if (!rc && f->npoints == 0)
        rc = nothing_fits(args, f, err);
out:
    topt_frontier_destroy(f);
    topt_costs_destroy(file);
    return rc;
}

int topt_cmd_solve(int argc, char **argv)
{
    struct args args = {.threads = topt_pool_processors()};
    struct topt_error err = {0};
    const char *path;
    int n = 0;
    int rc = topt_options_parse(table, argc, argv, &args, &path, 1, &n, &err);
    if (rc > 0) {
        topt_options_help(stdout,
                          "topt solve COSTS.json [options]\n"
                          "The frontier of a bare combinatorial problem.",
                          table);
        return 0;
    }
    if (!rc && n == 0)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "which cost file? try --help");
    if (!rc)
        rc = solve(&args, path, &err);
    if (!rc)
        return 0;
    fprintf(stderr, "topt solve: %s\n", err.text);
    return topt_err_exit(err.code);
}
