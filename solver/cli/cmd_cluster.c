/* cmd_cluster.c - cluster: jobs of a trace on a simulated cluster, under several policies. */
#include "topt_cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "topt_cluster.h"
#include "topt_json.h"
#include "topt_text.h"

enum { MOST_CURVES = 64, MOST_POLICIES = 16, MOST_BYTES = 1 << 24 };

struct args {
    const char *policies, *kinds, *svg, *outcomes, *output;
    int64_t nodes, gpus_per_node, seed, jobs, depth, round_s, restart_s, checkpoint_s,
        limit_step_s;
    double load, most, least, share, reserve, failure_h, repair_h, error;
    int json, milp, any_kind;
};

#define AT(field) offsetof(struct args, field)
static const struct topt_option options[] = {
    TOPT_EXAMPLE("topt cluster simulate trace.csv curve.json --nodes 8",
                 "the jobs of a trace on 64 GPUs, under each policy"),
    TOPT_EXAMPLE("topt cluster simulate trace.csv a.json b.json --load 0.8 --jobs 300",
                 "300 of its jobs by a seed, at 0.8 times what the cluster can do"),
    {"nodes", TOPT_OPT_COUNT, AT(nodes), "N", "nodes of the cluster (default: 8)"},
    {"gpus-per-node", TOPT_OPT_COUNT, AT(gpus_per_node), "N",
     "GPUs of each node (default: 8)"},
    {"kind", TOPT_OPT_STRING, AT(kinds), "HW=NxG,...",
     "several kinds of nodes: N of G GPUs each, by the profile that curves were asked "
     "with"},
    {"any-kind", TOPT_OPT_FLAG, AT(any_kind), "",
     "moldable, requeue and sia may give another kind than a job asked for"},
    {"policy", TOPT_OPT_STRING, AT(policies), "NAME,...",
     "asked, fewest, knee, rightsize, moldable, requeue, gavel, sia, rubick (default: "
     "all)"},
    {"load", TOPT_OPT_POSITIVE, AT(load), "X",
     "draw jobs that ask for X times the cluster's GPU-hours (default: as the trace has "
     "them)"},
    {"jobs", TOPT_OPT_COUNT, AT(jobs), "N",
     "with --load: jobs to draw (default: as many as the trace has)"},
    {"seed", TOPT_OPT_INT, AT(seed), "N",
     "which jobs are drawn, and which curve each gets (default: 1)"},
    {"most-overhead", TOPT_OPT_REAL, AT(most), "X",
     "of moldable: GPU-hours beyond the cheapest, as a share, in an empty queue "
     "(default: 0.25)"},
    {"least-overhead", TOPT_OPT_REAL, AT(least), "X",
     "of moldable: the same where a whole cluster waits (default: 0.05)"},
    {"most-share", TOPT_OPT_SHARE, AT(share), "X",
     "of moldable: GPUs of a job on several nodes that asked for fewer, as a share of "
     "the "
     "cluster (default: 0.25)"},
    {"reserve", TOPT_OPT_REAL, AT(reserve), "X",
     "of moldable: GPUs that stay free where a job gets more than it asked for, as a "
     "share "
     "of the cluster (default: 0.25)"},
    {"milp", TOPT_OPT_FLAG, AT(milp), "",
     "of moldable: improve each plan by a MILP, where topt-queue is installed (slow)"},
    {"depth", TOPT_OPT_COUNT, AT(depth), "N",
     "waiting jobs that are planned, as bf_max_job_test of Slurm (default: 500)"},
    {"round", TOPT_OPT_COUNT, AT(round_s), "SECONDS",
     "length of a round of gavel, sia and rubick (default: 360, 60 and 60)"},
    {"restart", TOPT_OPT_INT, AT(restart_s), "SECONDS",
     "what a change of a running job takes, of these (default: 120)"},
    {"failures", TOPT_OPT_REAL, AT(failure_h), "HOURS",
     "mean time between failures of a node (default: none fails)"},
    {"repair", TOPT_OPT_REAL, AT(repair_h), "HOURS",
     "until a node that failed is back (default: 4)"},
    {"checkpoint", TOPT_OPT_INT, AT(checkpoint_s), "SECONDS",
     "between checkpoints: a failure loses what was done since (default: 3600)"},
    {"error", TOPT_OPT_REAL, AT(error), "X",
     "spread of predicted times: the standard deviation of their logarithm (default: 0)"},
    {"limit-step", TOPT_OPT_COUNT, AT(limit_step_s), "SECONDS",
     "plans know lengths as limits, in multiples of this (default: exactly)"},
    {"svg", TOPT_OPT_STRING, AT(svg), "FILE", "draw the cluster over time"},
    {"outcomes", TOPT_OPT_STRING, AT(outcomes), "FILE",
     "what became of each job under each policy, as CSV"},
    {"json", TOPT_OPT_FLAG, AT(json), "", "JSON on standard output"},
    {"o", TOPT_OPT_STRING, AT(output), "FILE", "write the result to a file"},
    {0}};
static const char usage[] =
    "topt cluster simulate TRACE.csv CURVE.json... [options]\n"
    "Simulate the jobs of a trace on a cluster, under policies of sharing it.  Curves "
    "are\n"
    "answers of `topt plan MODEL --gpus 1,2,4,8 --json`; each job gets one by the seed.";

struct session {
    struct args a;
    struct topt_cluster_options o;
    struct topt_cluster_curve curve[MOST_CURVES];
    size_t ncurves;
    struct topt_cluster_trace trace;
    struct topt_cluster_result result[MOST_POLICIES];
    size_t n;
    char queue[1024]; /* the path of topt-queue */
    struct topt_alloc_solver solver;
};

/* "a100=4x8,h100=2x8" */
static int read_kinds(struct session *s, struct topt_error *err)
{
    const char *at = NULL;
    char name[TOPT_CLUSTER_NAME + 24];
    int rc;
    if (!s->a.kinds) {
        s->o.nkinds = 1;
        s->o.kind[0] = (struct topt_cluster_kind){"", s->a.nodes, s->a.gpus_per_node};
        return 0;
    }
    while ((rc = topt_list_next(s->a.kinds, &at, name, sizeof name, err)) > 0) {
        struct topt_cluster_kind *k = &s->o.kind[s->o.nkinds];
        char *is = strchr(name, '='), tail = 0;
        long long nodes = 0, gpus = 0;
        if (s->o.nkinds == TOPT_CLUSTER_KINDS)
            return topt_fail(err, TOPT_ERR_LIMIT, "--kind: more than %d",
                             TOPT_CLUSTER_KINDS);
        if (!is || sscanf(is + 1, "%lldx%lld%c", &nodes, &gpus, &tail) != 2 ||
            nodes < 1 || gpus < 1 || nodes > 100000 || gpus > 1000 ||
            is - name >= TOPT_CLUSTER_NAME)
            return topt_fail(err, TOPT_ERR_USAGE, "--kind: '%s' is not HW=NODESxGPUS",
                             name);
        *is = '\0';
        snprintf(k->name, sizeof k->name, "%.*s", TOPT_CLUSTER_NAME - 1, name);
        k->nodes = nodes;
        k->gpus_per_node = gpus;
        s->o.nkinds++;
    }
    return rc;
}

static int is_table(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".csv");
}

static int read_curve(struct session *s, const char *path, struct topt_error *err)
{
    if (is_table(path))
        return topt_cluster_curves_read(path, s->o.kind, s->o.nkinds, s->curve,
                                        MOST_CURVES, &s->ncurves, err);
    json_t *doc = topt_json_load(path, MOST_BYTES, err);
    int rc = doc ? topt_cluster_curve_read(doc, s->o.kind, s->o.nkinds, s->curve,
                                           MOST_CURVES, &s->ncurves, err)
                 : -1;
    json_decref(doc);
    return rc ? topt_wrap(err, "%s", path) : 0;
}

static int read_curves(struct session *s, const char *const *path, int n,
                       struct topt_error *err)
{
    for (int i = 0; i < n; i++)
        if (read_curve(s, path[i], err))
            return -1;
    return 0;
}

static int64_t gpus_of(const struct session *s)
{
    int64_t gpus = 0;
    for (int k = 0; k < s->o.nkinds; k++)
        gpus += s->o.kind[k].nodes * s->o.kind[k].gpus_per_node;
    return gpus;
}

static int read_trace(struct session *s, const char *path, struct topt_error *err)
{
    struct topt_cluster_trace from;
    if (topt_cluster_trace_read(path, s->curve, s->ncurves, s->o.kind, s->o.nkinds,
                                s->a.seed, &from, err))
        return -1;
    if (s->a.load == 0) {
        s->trace = from;
        return 0;
    }
    size_t n = s->a.jobs ? (size_t)s->a.jobs : from.n;
    int rc = topt_cluster_trace_draw(&from, n, s->a.load, gpus_of(s), s->a.seed,
                                     &s->trace, err);
    topt_cluster_trace_fini(&from);
    return rc;
}

/* The policies, and the first is what others are held to. */
static int run(struct session *s, struct topt_error *err)
{
    const char *const *all = topt_cluster_policies(), *at = NULL;
    char name[32];
    int rc = 1;
    for (size_t i = 0; !s->a.policies && all[i]; i++)
        if (topt_cluster_run(&s->trace, s->curve, &s->o, all[i], &s->result[s->n++], err))
            return -1;
    while (s->a.policies &&
           (rc = topt_list_next(s->a.policies, &at, name, sizeof name, err)) > 0)
        if (s->n == MOST_POLICIES ||
            topt_cluster_run(&s->trace, s->curve, &s->o, name, &s->result[s->n++], err))
            return -1;
    return rc < 0 ? -1 : 0;
}

static json_t *document(const struct session *s)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(rows, topt_cluster_figures(&s->trace, &s->result[i],
                                                         i ? &s->result[0] : NULL));
    json_t *kinds = json_array();
    for (int k = 0; k < s->o.nkinds; k++)
        json_array_append_new(kinds, json_pack("{s:s, s:I, s:I}", "hw", s->o.kind[k].name,
                                               "nodes", (json_int_t)s->o.kind[k].nodes,
                                               "gpus_per_node",
                                               (json_int_t)s->o.kind[k].gpus_per_node));
    return json_pack("{s:s, s:o, s:I, s:I, s:o}", "format", "topt-cluster/1", "kinds",
                     kinds, "jobs", (json_int_t)s->trace.n, "seed", (json_int_t)s->a.seed,
                     "policies", rows);
}

static void put_text(const struct session *s, const json_t *doc)
{
    const json_t *row;
    size_t i;
    printf("%zu jobs on ", s->trace.n);
    for (int k = 0; k < s->o.nkinds; k++)
        printf("%s%s%s%lld nodes of %lld GPUs", k ? " and " : "", s->o.kind[k].name,
               *s->o.kind[k].name ? ": " : "", (long long)s->o.kind[k].nodes,
               (long long)s->o.kind[k].gpus_per_node);
    printf("; times in hours, of jobs from the first submission to the end of "
           "training\n\n");
    printf("%-10s %9s %9s %9s %9s %9s %10s %7s %8s %8s %7s %7s\n", "policy", "mean",
           "median", "p99", "wait", "makespan", "GPU-hours", "died", "restarts",
           "failures", "later", "by");
    json_array_foreach(json_object_get(doc, "policies"), i, row) printf(
        "%-10s %9.2f %9.2f %9.2f %9.2f %9.1f %10.0f %7lld %8lld %8lld %7lld %7.2f\n",
        topt_json_words_at(row, "policy"), topt_json_number_at(row, "jct_mean_h"),
        topt_json_number_at(row, "jct_median_h"), topt_json_number_at(row, "jct_p99_h"),
        topt_json_number_at(row, "wait_mean_h"), topt_json_number_at(row, "makespan_h"),
        topt_json_number_at(row, "gpu_hours"),
        (long long)topt_json_whole_at(row, "deaths"),
        (long long)topt_json_whole_at(row, "restarts"),
        (long long)topt_json_whole_at(row, "failures"),
        (long long)topt_json_whole_at(row, "later"),
        topt_json_number_at(row, "later_most_h"));
    printf("\n");
    for (i = 0; i < s->n; i++)
        printf("%-10s %s\n", s->result[i].policy,
               topt_cluster_policy_help(s->result[i].policy));
    printf(
        "later: jobs that took more than 10 %% longer than under %s; by: the most that "
        "any took longer\n",
        s->result[0].policy);
}

static int put_svg(const struct session *s, struct topt_error *err)
{
    char *svg = topt_cluster_svg(s->result, s->n, gpus_of(s));
    int rc = svg ? topt_write_file(s->a.svg, svg, strlen(svg), err)
                 : topt_nomem(err, "the drawing");
    free(svg);
    return rc;
}

static int put_outcomes(const struct session *s, struct topt_error *err)
{
    struct topt_text t = {0};
    topt_text_add(&t, TOPT_CLUSTER_OUTCOMES);
    int rc = t.oom ? -1 : 0;
    for (size_t i = 0; !rc && i < s->n; i++)
        rc = topt_cluster_outcomes(&s->trace, &s->result[i], &t);
    rc = rc ? topt_nomem(err, "the outcomes")
            : topt_write_file(s->a.outcomes, t.s, t.len, err);
    topt_text_fini(&t);
    return rc;
}

static int answer(const struct session *s, struct topt_error *err)
{
    json_t *doc = document(s);
    int rc = doc ? 0 : topt_nomem(err, "the answer");
    if (!rc && (s->a.json || s->a.output))
        rc = topt_cli_write_json(doc, s->a.output ? s->a.output : "-", err);
    if (!rc && !s->a.json)
        put_text(s, doc);
    if (!rc && s->a.svg)
        rc = put_svg(s, err);
    if (!rc && s->a.outcomes)
        rc = put_outcomes(s, err);
    json_decref(doc);
    return rc;
}

static int cluster(struct session *s, const char *const *words, int n,
                   struct topt_error *err)
{
    if (n < 3 || strcmp(words[0], "simulate") != 0)
        return topt_fail(err, TOPT_ERR_USAGE, "%s; usage: %.*s",
                         n < 2 ? "which trace?" : "which curves?",
                         (int)strcspn(usage, "\n"), usage);
    if (s->a.least > s->a.most)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--least-overhead is more than --most-overhead");
    s->o = (struct topt_cluster_options){
        .any_kind = s->a.any_kind,
        .most_permille = 1000 + (int64_t)(1000 * s->a.most),
        .least_permille = 1000 + (int64_t)(1000 * s->a.least),
        .share_permille = (int64_t)(1000 * s->a.share),
        .depth = s->a.depth,
        .round_s = s->a.round_s,
        .restart_s = s->a.restart_s,
        .reserve_permille = (int64_t)(1000 * s->a.reserve),
        .seed = s->a.seed,
        .failure_s = 3600 * s->a.failure_h,
        .repair_s = (int64_t)(3600 * s->a.repair_h),
        .checkpoint_s = s->a.checkpoint_s,
        .error = s->a.error,
        .limit_step_s = s->a.limit_step_s};
    if (s->a.milp) {
        if (topt_milp_program(s->queue, sizeof s->queue, err))
            return -1;
        s->solver = (struct topt_alloc_solver){topt_milp_ask, s->queue};
        s->o.solver = &s->solver;
    }
    return read_kinds(s, err) || read_curves(s, words + 2, n - 2, err) ||
                   read_trace(s, words[1], err) || run(s, err) || answer(s, err)
               ? -1
               : 0;
}

int topt_cmd_cluster(int argc, char **argv)
{
    static struct session s;
    struct topt_error err = {0};
    const char *words[MOST_CURVES + 2];
    int n;
    s.a = (struct args){.nodes = 8,
                        .gpus_per_node = 8,
                        .seed = 1,
                        .most = 0.25,
                        .least = 0.05,
                        .share = 0.25,
                        .reserve = 0.25,
                        .repair_h = 4,
                        .checkpoint_s = 3600,
                        .depth = 500,
                        .restart_s = 120};
    int rc =
        topt_options_parse(options, argc, argv, &s.a, words, MOST_CURVES + 2, &n, &err);
    if (rc == 1) {
        topt_options_help(stdout, usage, options);
        return 0;
    }
    rc = rc || cluster(&s, words, n, &err);
    for (size_t i = 0; i < s.n; i++)
        topt_cluster_result_fini(&s.result[i]);
    topt_cluster_trace_fini(&s.trace);
    return rc ? topt_cli_fail("cluster", &err) : 0;
}
