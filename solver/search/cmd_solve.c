/* cmd_solve.c - "topt solve costs.json": the frontier of a cost file, as a table or JSON. */
#include "topt_search_cmd.h"

#include "topt_options.h"
#include "topt_search.h"
#include "topt_text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_FILE = 1 << 30 };

struct args {
    const char *algorithm;
    double epsilon;
    int64_t threads, memory;
    int json;
};

static const struct topt_option table[] = {
    {"algorithm", TOPT_OPT_STRING, offsetof(struct args, algorithm), "NAME",
     "ft (default), ft-plain, ft-elimination or brute-force"},
    {"epsilon", TOPT_OPT_REAL, offsetof(struct args, epsilon), "E",
     "0 is exact (default); else times may be (1+E) times the best"},
    {"threads", TOPT_OPT_INT, offsetof(struct args, threads), "N",
     "threads to search with; the answer is the same for any number"},
    {"memory", TOPT_OPT_BYTES, offsetof(struct args, memory), "BYTES",
     "leave out what takes more, as 14.5GiB"},
    {"json", TOPT_OPT_FLAG, offsetof(struct args, json), NULL, "print JSON"},
    {0},
};

/* ---- output ---- */

static int print_point(struct topt_text *t, const struct topt_search_problem *p,
                       const struct topt_search_point *x)
{
    topt_text_add(t, "{\"memory\":%" PRId64 ",\"time\":%" PRId64 ",\"configs\":{",
                  x->cost.memory, x->cost.time);
    for (int i = 0; i < p->nops; i++) {
        json_t *name = json_string(p->op[i].name);
        char *text = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL;
        json_decref(name);
        if (!text)
            return -1;
        topt_text_add(t, "%s%s:%d", i ? "," : "", text, (int)x->config[i]);
        free(text);
    }
    topt_text_add(t, "},\"edges\":[");
    for (int i = 0; i < p->nedges; i++)
        topt_text_add(t, "%s%d", i ? "," : "", (int)x->alt[i]);
    topt_text_add(t, "]}");
    return 0;
}

static int print_json(struct topt_text *t, const struct topt_search_problem *p,
                      const struct topt_frontier *f)
{
    const struct topt_search_stats *s = &f->stats;
    topt_text_add(t, "{\"exact\":%s,\"epsilon\":%.17g,\"frontier\":[",
                  f->exact ? "true" : "false", f->epsilon);
    for (int i = 0; i < f->npoints; i++) {
        topt_text_add(t, i ? ",\n" : "\n");
        if (print_point(t, p, &f->point[i]))
            return -1;
    }
    topt_text_add(
        t,
        "],\"stats\":{\"products\":%" PRId64 ",\"points\":%" PRId64 ",\"tables\":%" PRId64
        ",\"shared\":%" PRId64 ",\"peak_bytes\":%" PRId64 ",\"max_frontier\":%d}}\n",
        s->products, s->points, s->tables, s->shared, s->peak_bytes, s->max_frontier);
    return 0;
}

/* A line a point: costs, then the configurations in the order of the file's operators. */
static int print_table(struct topt_text *t, const struct topt_search_problem *p,
                       const struct topt_frontier *f)
{
    topt_text_add(t, "%20s %20s  configurations\n", "memory", "time");
    for (int i = 0; i < f->npoints; i++) {
        const struct topt_search_point *x = &f->point[i];
        topt_text_add(t, "%20" PRId64 " %20" PRId64 " ", x->cost.memory, x->cost.time);
        int shown = p->nops < 16 ? p->nops : 16;
        for (int k = 0; k < shown; k++)
            topt_text_add(t, " %d", (int)x->config[k]);
        topt_text_add(t, shown < p->nops ? " ...\n" : "\n");
    }
    topt_text_add(t, "%d points, %d operators, %d edges; ", f->npoints, p->nops,
                  p->nedges);
    if (f->exact)
        topt_text_add(t, "exact\n");
    else
        topt_text_add(t, "times at most %.3g %% above the best\n", 100 * f->epsilon);
    return 0;
}

static int print(const struct args *args, const struct topt_search_problem *p,
                 const struct topt_frontier *f, struct topt_error *err)
{
    struct topt_text t = {0};
    int rc = args->json ? print_json(&t, p, f) : print_table(&t, p, f);
    if (rc || t.oom)
        rc = topt_fail(err, TOPT_ERR_NOMEM, "no memory to print the frontier");
    else
        rc = topt_write_file("-", t.s, t.len, err);
    topt_text_fini(&t);
    return rc;
}

/* ---- the command ---- */

static int solve(const struct args *args, const char *path, struct topt_error *err)
{
    struct topt_search_options o = {.algorithm = args->algorithm,
                                    .memory_limit = args->memory,
                                    .epsilon = args->epsilon};
    struct topt_costs_file *file = NULL;
    struct topt_frontier *f = NULL;
    size_t len;
    int rc = -1;
    if (args->threads > TOPT_SEARCH_MAX_THREADS)
        return topt_fail(err, TOPT_ERR_USAGE, "--threads %" PRId64 ": at most %d",
                         args->threads, TOPT_SEARCH_MAX_THREADS);
    o.threads = (int)args->threads;
    char *text = topt_read_file(path, MAX_FILE, &len, err);
    if (!text)
        return -1;
    if (topt_costs_read(text, len, &file, err)) {
        topt_wrap(err, "%s", path);
        goto out;
    }
    if (topt_search(topt_costs_problem(file), &o, &f, err))
        goto out;
    rc = print(args, topt_costs_problem(file), f, err);
    if (!rc && f->npoints == 0)
        rc = topt_fail(err, TOPT_ERR_INFEASIBLE,
                       "no strategy takes at most %" PRId64 " bytes; give more --memory",
                       args->memory);
out:
    topt_frontier_destroy(f);
    topt_costs_destroy(file);
    free(text);
    return rc;
}

int topt_cmd_solve(int argc, char **argv)
{
    struct args args = {0};
    struct topt_error err = {0};
    const char *path;
    int n = 0;
    int rc = topt_options_parse(table, argc, argv, &args, &path, 1, &n, &err);
    if (rc > 0) {
        topt_options_help(stdout, "topt solve COSTS.json [options]", table);
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
