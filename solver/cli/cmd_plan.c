/* cmd_plan.c - plan, frontier, compare: questions whose answer is searched.
 *
 * Each command differs by the question it puts to plan/. */
#include "cmd_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "topt_search_cmd.h"
#include "topt_text.h"

static const struct topt_option plan_options[] = {
    {"mode", TOPT_OPT_STRING, ASK_WORD(mode), "MODE",
     "mini-parallelism: the fewest GPUs (default); mini-time: the fastest on --gpus N; "
     "profiling: every number of GPUs"},
    {"gpus", TOPT_OPT_STRING, ASK_AT(gpus), "N[,N...]",
     "how many; profiling takes a list"},
    {"max-gpus", TOPT_OPT_COUNT, ASK_AT(max_gpus), "N", "at most so many"},
    {"counts", TOPT_OPT_STRING, ASK_WORD(counts), "whole|pow2|any",
     "numbers of GPUs that are tried: divisors of a node and whole nodes (default), powers "
     "of two, or any"},
    {"min-efficiency", TOPT_OPT_REAL, ASK_AT(min_efficiency), "E",
     "mini-parallelism: the most GPUs that keep this share (0 to 1) of the best speed a GPU"},
    {"svg", TOPT_OPT_STRING, ASK_AT(svg), "FILE", "profiling: draw the curve there"},
    ASK_JOB,
    ASK_SPACE,
    ASK_ALGORITHM,
    ASK_SEARCH,
    ASK_JSON,
    ASK_QUIET,
    ASK_OUTPUT,
    {0}};
static const struct topt_option frontier_options[] = {
    {"gpus", TOPT_OPT_STRING, ASK_AT(gpus), "N", "how many"},
    {"svg", TOPT_OPT_STRING, ASK_AT(svg), "FILE", "draw it there"},
    ASK_JOB,
    ASK_SPACE,
    ASK_ALGORITHM,
    ASK_SEARCH,
    ASK_JSON,
    ASK_QUIET,
    ASK_OUTPUT,
    {0}};
static const struct topt_option compare_options[] = {
    {"gpus", TOPT_OPT_STRING, ASK_AT(gpus), "N", "how many"},
    ASK_JOB,
    ASK_SPACE,
    ASK_SEARCH,
    ASK_JSON,
    ASK_QUIET,
    ASK_OUTPUT,
    {0}};

/* A picture, which is given up, into the file that --svg names. */
static int write_svg(char *svg, const char *path, struct topt_error *err)
{
    int rc = svg ? topt_write_file(path, svg, strlen(svg), err)
                 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the picture");
    free(svg);
    return rc;
}

/* ---- plan ------------------------------------------------------------------------------------ */

enum { COLUMNS = 80, INDENT = 11 };

/* A line of words under a heading of the answer, folded. */
static void show_words(const char *heading, const char *text)
{
    struct topt_text t = {0};
    topt_text_fold(&t, text, strlen(text), INDENT, COLUMNS);
    printf("  %-8s %s\n", heading, t.s ? t.s : "");
    topt_text_fini(&t);
}

/* What memory consists of, without what there is none of. */
static void show_parts(const json_t *parts)
{
    char part[64], x[32];
    const char *key;
    json_t *value;
    int column = INDENT;
    printf("%*s", INDENT, "");
    json_object_foreach((json_t *)parts, key, value)
    {
        if (!json_integer_value(value))
            continue;
        int n = snprintf(part, sizeof part, "%s %s", key,
                         topt_show_bytes(json_integer_value(value), x, sizeof x));
        if (column > INDENT && column + n + 2 > COLUMNS) {
            printf(",\n%*s", INDENT, "");
            column = INDENT;
        }
        column += printf("%s%s", column > INDENT ? ", " : "", part);
    }
    printf("\n");
}

static void show_memory(const json_t *a)
{
    char x[32], y[32], z[32];
    const json_t *band = json_object_get(json_object_get(a, "band"), "memory");
    printf("  memory   %s a GPU at most, %s at the program's peak; limit %s\n",
           topt_show_bytes(topt_cli_whole(a, "memory_bytes"), x, sizeof x),
           topt_show_bytes(topt_cli_whole(a, "peak_bytes"), y, sizeof y),
           topt_show_bytes(topt_cli_whole(a, "memory_limit"), z, sizeof z));
    printf("           on the device %s to %s, context and libraries included\n",
           topt_show_bytes(topt_cli_whole(band, "low_bytes"), x, sizeof x),
           topt_show_bytes(topt_cli_whole(band, "high_bytes"), y, sizeof y));
    show_parts(json_object_get(a, "memory_parts"));
}

static void show_time(const json_t *a)
{
    char x[32], y[32], z[32];
    const char *key;
    json_t *value;
    const json_t *band = json_object_get(json_object_get(a, "band"), "time");
    int64_t all = topt_cli_whole(a, "time_ns");
    printf("  time     %s a step: %s computing, %s on the network\n",
           topt_show_ns(all, x, sizeof x),
           topt_show_ns(topt_cli_whole(a, "compute_ns"), y, sizeof y),
           topt_show_ns(topt_cli_whole(a, "network_ns"), z, sizeof z));
    printf("           %s to %s, resting on",
           topt_show_ns(topt_cli_whole(band, "low_ns"), x, sizeof x),
           topt_show_ns(topt_cli_whole(band, "high_ns"), y, sizeof y));
    json_object_foreach(json_object_get(band, "rests_on_ns"), key,
                        value) if (json_integer_value(value))
        printf(" %s %.0f %%", key,
               100.0 * (double)json_integer_value(value) / (double)(all ? all : 1));
    printf("\n");
}

/* How good an answer is known to be, where it is not exact. */
static void show_claim(const json_t *a)
{
    enum { SHOWN = 6 };
    const json_t *epsilon = json_object_get(a, "epsilon"),
                 *decided = json_object_get(a, "heuristic");
    if (json_is_true(json_object_get(a, "stopped")))
        printf("  stopped  before the search was finished: this is the best so far\n");
    if (json_is_null(epsilon))
        printf("  proven   nothing: faster ones may be anywhere\n");
    else if (json_number_value(epsilon) > 0)
        printf("  proven   times at most %.3g %% above the best\n",
               100 * json_number_value(epsilon));
    else if (json_is_true(json_object_get(a, "stopped")))
        printf("  proven   none is faster%s\n", decided ? ", with what was decided" : "");
    size_t n = json_array_size(decided);
    for (size_t i = 0; i < n && i < SHOWN; i++)
        printf("%s%s", i ? ", " : "  decided  by heuristic: ",
               json_string_value(json_array_get(decided, i)));
    if (n > SHOWN)
        printf(" and %zu more", n - SHOWN);
    if (n > 0)
        printf("\n");
}

static void show_plan(const json_t *a)
{
    const json_t *uniform = json_object_get(a, "uniform");
    if (!json_is_true(json_object_get(a, "feasible"))) {
        printf("%s: %s\n",
               json_is_null(json_object_get(a, "feasible")) ? "undecided" : "infeasible",
               topt_cli_words(a, "why"));
        return;
    }
    printf("%lld GPU%s (%lld node%s of %lld): %s\n", (long long)topt_cli_whole(a, "gpus"),
           topt_cli_whole(a, "gpus") > 1 ? "s" : "",
           (long long)topt_cli_whole(a, "nodes"),
           topt_cli_whole(a, "nodes") > 1 ? "s" : "",
           (long long)topt_cli_whole(a, "gpus_per_node"), topt_cli_words(a, "strategy"));
    show_words("why", topt_cli_words(a, "why"));
    show_memory(a);
    show_time(a);
    if (uniform)
        printf("  uniform  dp %lld, tp %lld, ZeRO %lld, recomputation %s, %lld samples a "
               "micro-batch of a rank\n",
               (long long)topt_cli_whole(uniform, "dp"),
               (long long)topt_cli_whole(uniform, "tp"),
               (long long)topt_cli_whole(uniform, "zero"),
               json_is_true(json_object_get(uniform, "recompute")) ? "on" : "off",
               (long long)topt_cli_whole(uniform, "micro_batch"));
    printf("  space    %s, %s; %lld configurations, %lld layouts, %lld edge entries\n",
           topt_cli_words(a, "space"),
           json_is_true(json_object_get(a, "exact")) ? "exact" : "not exact",
           (long long)topt_cli_whole(a, "configs"),
           (long long)topt_cli_whole(a, "layouts"),
           (long long)topt_cli_whole(a, "edge_entries"));
    show_claim(a);
    printf("  plan     %s\n", topt_cli_words(a, "plan_id"));
}

/* What who runs the plan should know of the model. */
static void show_notes(const struct topt_model *m)
{
    if (m->note)
        show_words("note", m->note);
    if (m->plan_only) {
        struct topt_text t = {0};
        topt_text_add(&t, "not possible: no operator computes %s", m->plan_only);
        show_words("run", t.s ? t.s : "");
        topt_text_fini(&t);
    }
}

static int put_answer(const struct topt_question *q, const json_t *answer,
                      struct topt_error *err)
{
    if (q->a.json)
        return topt_cli_write_json(answer, "-", err);
    if (q->r.mode == TOPT_PROFILING) {
        char *plot = topt_plot_curve(answer, topt_cli_width());
        fputs(plot ? plot : "", stdout);
        free(plot);
        if (json_is_true(json_object_get(answer, "stopped")))
            printf("stopped early: counts are missing, or not the fastest\n");
        return 0;
    }
    show_plan(answer);
    show_notes(q->model);
    return 0;
}

/* The exit status for an answer: of one that leaves open whether anything fits, a limit's. */
static int exit_of(const json_t *answer)
{
    const json_t *feasible = json_object_get(answer, "feasible");
    return json_is_true(feasible)   ? 0
           : json_is_null(feasible) ? topt_err_exit(TOPT_ERR_LIMIT)
                                    : topt_err_exit(TOPT_ERR_INFEASIBLE);
}

int topt_cmd_plan(int argc, char **argv)
{
    static const char usage[] =
        "topt plan MODEL --hw HW --mode MODE [options]\n"
        "mini-parallelism: the fewest GPUs that fit, and the fastest plan for them.\n"
        "mini-time: the fastest plan for --gpus N.  profiling: time against GPUs.";
    struct topt_question q;
    struct topt_error err = {0};
    json_t *answer = NULL;
    int rc = topt_ask(&q, plan_options, usage, NULL, argc, argv, &err);
    if (!rc && !q.a.words.mode)
        q.r.mode = q.r.ngpu_list > 1    ? TOPT_PROFILING
                   : q.r.ngpu_list == 1 ? TOPT_MINI_TIME
                                        : TOPT_MINI_PARALLELISM;
    if (!rc && q.r.mode == TOPT_MINI_PARALLELISM && q.r.ngpu_list)
        rc = topt_fail(&err, TOPT_ERR_USAGE,
                       "--gpus goes with mini-time and profiling; mini-parallelism takes "
                       "--max-gpus N");
    if (!rc && q.r.mode == TOPT_MINI_TIME && q.r.ngpu_list != 1)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "mini-time needs one --gpus N");
    if (!rc && q.a.svg && q.r.mode != TOPT_PROFILING)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "--svg draws the curve of --mode profiling");
    if (!rc)
        q.r.stop = topt_stop_after(q.a.seconds);
    if (!rc)
        topt_ask_watch(&q);
    rc = rc ? rc : topt_plan(&q.r, &answer, &err);
    topt_watch_stop(&q.watch);
    int status = q.r.mode == TOPT_PROFILING ? 0 : exit_of(answer);
    json_t *document =
        q.r.mode == TOPT_PROFILING ? answer : json_object_get(answer, "plan");
    if (!rc && q.a.output && !status)
        rc = topt_cli_write_json(document, q.a.output, &err);
    if (!rc && q.a.svg)
        rc = write_svg(topt_svg_curve(answer), q.a.svg, &err);
    if (!rc && !(q.a.output && !strcmp(q.a.output, "-")))
        rc = put_answer(&q, answer, &err);
    json_decref(answer);
    topt_ask_fini(&q);
    if (rc == 1)
        return 0;
    if (rc)
        return topt_cli_fail("plan", &err);
    return status;
}

/* A frontier without points is an answer, but not the one that was hoped for. */
static int needs_points(const json_t *doc, struct topt_error *err)
{
    char limit[32];
    if (json_array_size(json_object_get(doc, "points")))
        return 0;
    if (json_is_true(json_object_get(doc, "stopped")))
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "stopped before anything was found; give more time or work, or "
                         "take a smaller space (--space uniform)");
    topt_show_bytes(json_integer_value(json_object_get(doc, "memory_limit")), limit,
                    sizeof limit);
    if (json_object_get(doc, "heuristic"))
        return topt_fail(
            err, TOPT_ERR_LIMIT,
            "nothing was found that fits in %s a GPU, as operators were decided "
            "by heuristic; give more --max-entries",
            limit);
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "nothing fits in %s a GPU; give more --memory or --gpus", limit);
}

int topt_cmd_frontier(int argc, char **argv)
{
    static const char usage[] =
        "topt frontier MODEL --hw HW --gpus N [options]\n"
        "Every strategy that nothing beats in both memory and time.";
    struct topt_question q;
    struct topt_error err = {0};
    json_t *doc = NULL;
    int rc = topt_ask(&q, frontier_options, usage, NULL, argc, argv, &err);
    if (!rc && q.r.ngpu_list != 1)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "a frontier needs one --gpus N");
    if (!rc)
        q.r.stop = topt_stop_after(q.a.seconds);
    if (!rc)
        topt_ask_watch(&q);
    rc = rc ? rc : topt_plan_frontier(&q.r, &doc, &err);
    topt_watch_stop(&q.watch);
    if (!rc && q.a.svg)
        rc = write_svg(topt_svg_frontier(doc), q.a.svg, &err);
    if (!rc && (q.a.json || q.a.output)) {
        rc = topt_cli_write_json(doc, q.a.output ? q.a.output : "-", &err);
    } else if (!rc) {
        char *plot = topt_plot_frontier(doc, topt_cli_width());
        fputs(plot ? plot : "", stdout);
        show_claim(doc);
        free(plot);
    }
    if (!rc)
        rc = needs_points(doc, &err);
    json_decref(doc);
    topt_ask_fini(&q);
    return rc == 1 ? 0 : rc ? topt_cli_fail("frontier", &err) : 0;
}

int topt_cmd_compare(int argc, char **argv)
{
    static const char usage[] =
        "topt compare MODEL --hw HW --gpus N [options]\n"
        "What other systems would choose, beside ours, by one model of costs.";
    struct topt_question q;
    struct topt_error err = {0};
    json_t *doc = NULL;
    int rc = topt_ask(&q, compare_options, usage, "topt", argc, argv, &err);
    if (!rc && q.r.ngpu_list != 1)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "compare needs one --gpus N");
    if (!rc)
        q.r.stop = topt_stop_after(q.a.seconds);
    if (!rc)
        topt_ask_watch(&q);
    rc = rc ? rc : topt_plan_compare(&q.r, &doc, &err);
    topt_watch_stop(&q.watch);
    if (!rc && (q.a.json || q.a.output)) {
        rc = topt_cli_write_json(doc, q.a.output ? q.a.output : "-", &err);
    } else if (!rc) {
        char *table = topt_compare_text(doc);
        fputs(table ? table : "", stdout);
        free(table);
    }
    int status = rc == 1 ? 0 : exit_of(doc);
    json_decref(doc);
    topt_ask_fini(&q);
    if (rc && rc != 1)
        return topt_cli_fail("compare", &err);
    return status;
}
