/* cmd_plan.c - plan, frontier, explain, evaluate, sample, costgraph.
 *
 * All that ask about a model and a cluster share one table of options and one loader; each
 * command then differs by the question it puts to plan/. */
#include "cmd_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topt_json.h"
#include "topt_options.h"
#include "topt_plan.h"
#include "topt_progress.h"
#include "topt_search_cmd.h"
#include "topt_text.h"

enum { MAX_COUNTS = 64, MAX_PLAN_FILE = 64 << 20 };

struct args {
    const char *hw, *mode, *gpus, *space, *blocks, *factors, *accounting, *counts,
        *algorithm, *output, *plan, *dtype, *optimizer, *svg, *loss;
    int64_t max_gpus, memory, micro, threads, batch, seq, count, seed, work, entries;
    double epsilon, seconds;
    int json, quiet, sequence, gradient_f32;
    struct topt_explain_options explain;
    const char *overlap, *eager; /* of the executing system */
};

#define AT(field) offsetof(struct args, field)
/* The model, the cluster, and how the job runs. */
#define JOB                                                                              \
    {"hw", TOPT_OPT_STRING, AT(hw), "NAME|FILE", "hardware profile (topt hw list)"},     \
        {"batch", TOPT_OPT_INT, AT(batch), "N", "samples a step, over all GPUs"},        \
        {"seq", TOPT_OPT_INT, AT(seq), "N", "positions a sample"},                       \
        {"loss", TOPT_OPT_STRING, AT(loss), "NAME",                                      \
         "of an ONNX graph: cross_entropy or mse (default: by its output)"},             \
        {"dtype", TOPT_OPT_STRING, AT(dtype), "T", "f32, f64 or bf16"},                  \
        {"optimizer", TOPT_OPT_STRING, AT(optimizer), "O",                               \
         "sgd, momentum, adam, adamw, adafactor or adam8"},                              \
        {"gradient-f32", TOPT_OPT_FLAG, AT(gradient_f32), "",                            \
         "bf16: gradients are added up in f32"},                                         \
        {"accounting", TOPT_OPT_STRING, AT(accounting), "A",                             \
         "run, or paper: memory as the papers count it"},                                \
        {"overlap", TOPT_OPT_STRING, AT(overlap), "O",                                   \
         "what the network does meanwhile: none, ddp or fsdp"},                          \
    {                                                                                    \
        "eager", TOPT_OPT_STRING, AT(eager), "LIST",                                     \
            "operators,scores,loss,optimizer or all, none"                               \
    }

/* Which strategies there are. */
#define SPACE                                                                            \
    {"space", TOPT_OPT_STRING, AT(space), "NAME", "auto, full, canonical or uniform"},   \
        {"blocks", TOPT_OPT_STRING, AT(blocks), "NAME",                                  \
         "repeated blocks choose auto, free or alike"},                                  \
        {"factors", TOPT_OPT_STRING, AT(factors), "LIST",                                \
         "zero,recompute,micro or all, none, auto"},                                     \
        {"micro-batches", TOPT_OPT_INT, AT(micro), "N", "just so many a step"},          \
    {                                                                                    \
        "sequence-splits", TOPT_OPT_FLAG, AT(sequence), "", "split positions too"        \
    }

#define MEMORY                                                                           \
    {                                                                                    \
        "memory", TOPT_OPT_BYTES, AT(memory), "BYTES",                                   \
            "limit a GPU, as 14.5GiB (default: what the profile's has)"                  \
    }

#define ALGORITHM                                                                        \
    {                                                                                    \
        "algorithm", TOPT_OPT_STRING, AT(algorithm), "NAME",                             \
            "search, or another system's way (default ft)"                               \
    }

/* How it is searched, and when to answer with the best so far. */
#define SEARCH                                                                           \
    MEMORY,                                                                              \
        {"epsilon", TOPT_OPT_REAL, AT(epsilon), "E",                                     \
         "allowed loss of time, proven; 0 is exact"},                                    \
        {"threads", TOPT_OPT_INT, AT(threads), "N", "threads of the search"},            \
        {"seconds", TOPT_OPT_REAL, AT(seconds), "S",                                     \
         "answer after so long with the best so far, and how good it is"},               \
        {"max-work", TOPT_OPT_INT, AT(work), "N",                                        \
         "the same after so many pairs of points, the same on any machine"},             \
    {                                                                                    \
        "max-entries", TOPT_OPT_INT, AT(entries), "N",                                   \
            "decide operators by heuristic where tables would be larger "                \
            "(4194304)"                                                                  \
    }

#define QUIET                                                                            \
    {                                                                                    \
        "quiet", TOPT_OPT_FLAG, AT(quiet), "", "no line on a terminal about progress"    \
    }

#define JSON                                                                             \
    {                                                                                    \
        "json", TOPT_OPT_FLAG, AT(json), "", "JSON on standard output"                   \
    }

#define OUTPUT                                                                           \
    {                                                                                    \
        "o", TOPT_OPT_STRING, AT(output), "FILE", "write the result to a file"           \
    }

static const struct topt_option plan_options[] = {
    {"mode", TOPT_OPT_STRING, AT(mode), "MODE",
     "mini-time, mini-parallelism or profiling"},
    {"gpus", TOPT_OPT_STRING, AT(gpus), "N[,N...]", "how many; profiling takes a list"},
    {"max-gpus", TOPT_OPT_INT, AT(max_gpus), "N", "at most so many"},
    {"counts", TOPT_OPT_STRING, AT(counts), "pow2|all", "which counts are tried"},
    {"svg", TOPT_OPT_STRING, AT(svg), "FILE", "profiling: draw the curve there"},
    JOB,
    SPACE,
    ALGORITHM,
    SEARCH,
    JSON,
    QUIET,
    OUTPUT,
    {0}};
static const struct topt_option frontier_options[] = {
    {"gpus", TOPT_OPT_STRING, AT(gpus), "N", "how many"},
    {"svg", TOPT_OPT_STRING, AT(svg), "FILE", "draw it there"},
    JOB,
    SPACE,
    ALGORITHM,
    SEARCH,
    JSON,
    QUIET,
    OUTPUT,
    {0}};
static const struct topt_option compare_options[] = {
    {"gpus", TOPT_OPT_STRING, AT(gpus), "N", "how many"},
    JOB,
    SPACE,
    SEARCH,
    JSON,
    QUIET,
    OUTPUT,
    {0}};
static const struct topt_option costgraph_options[] = {
    {"gpus", TOPT_OPT_STRING, AT(gpus), "N", "how many"},
    JOB,
    SPACE,
    MEMORY,
    QUIET,
    OUTPUT,
    {0}};
static const struct topt_option evaluate_options[] = {
    {"plan", TOPT_OPT_STRING, AT(plan), "FILE", "the plan to cost, as it says to run"},
    {"hw", TOPT_OPT_STRING, AT(hw), "NAME|FILE", "hardware profile (topt hw list)"},
    {"batch", TOPT_OPT_INT, AT(batch), "N", "samples a step, over all GPUs"},
    {"seq", TOPT_OPT_INT, AT(seq), "N", "positions a sample"},
    {"loss", TOPT_OPT_STRING, AT(loss), "NAME",
     "of an ONNX graph: cross_entropy or mse (default: by its output)"},
    JSON,
    OUTPUT,
    {0}};
static const struct topt_option sample_options[] = {
    {"gpus", TOPT_OPT_STRING, AT(gpus), "N", "how many"},
    {"count", TOPT_OPT_INT, AT(count), "K", "how many plans"},
    {"seed", TOPT_OPT_INT, AT(seed), "S", "of the random choices"},
    JOB,
    SPACE,
    {"o", TOPT_OPT_STRING, AT(output), "DIR", "a folder for them (default: as JSON)"},
    {0}};

/* ---- shared -------------------------------------------------------------------------------- */

struct question {
    struct args a;
    struct topt_model *model;
    struct topt_hw *hw;
    struct topt_request r;
    int64_t gpus[MAX_COUNTS];
    struct topt_watch watch; /* while the search runs */
};

static int fail(const char *command, const struct topt_error *err)
{
    fprintf(stderr, "topt %s: %s\n", command, err->text);
    return topt_err_exit(err->code);
}

static void question_fini(struct question *q)
{
    topt_model_destroy(q->model);
    topt_hw_destroy(q->hw);
}

static int read_counts(struct question *q, struct topt_error *err)
{
    char list[512];
    if (!q->a.gpus)
        return 0;
    if (strlen(q->a.gpus) >= sizeof list)
        return topt_fail(err, TOPT_ERR_USAGE, "--gpus is too long");
    strcpy(list, q->a.gpus);
    char *save = NULL;
    for (char *s = strtok_r(list, ",", &save); s; s = strtok_r(NULL, ",", &save)) {
        if (q->r.ngpu_list == MAX_COUNTS)
            return topt_fail(err, TOPT_ERR_USAGE, "--gpus takes at most %d counts",
                             MAX_COUNTS);
        if (topt_parse_int(s, 1, 1 << 14, &q->gpus[q->r.ngpu_list], err)) {
            if (err)
                err->code = TOPT_ERR_USAGE;
            return topt_wrap(err, "--gpus");
        }
        q->r.ngpu_list++;
    }
    q->r.gpu_list = q->gpus;
    q->r.gpus = q->gpus[0];
    return 0;
}

static int read_names(struct question *q, struct topt_error *err)
{
    const struct args *a = &q->a;
    struct topt_request *r = &q->r;
    if ((a->mode && topt_mode_parse(a->mode, &r->mode, err)) ||
        (a->space && topt_space_parse(a->space, &r->space, err)) ||
        (a->blocks && topt_blocks_parse(a->blocks, &r->blocks, err)) ||
        (a->factors && topt_factors_parse(a->factors, &r->factors, err)) ||
        (a->dtype && topt_dtype_parse(a->dtype, &r->settings.dtype, err)) ||
        (a->accounting &&
         topt_accounting_parse(a->accounting, &r->settings.accounting, err)) ||
        (a->overlap && topt_overlap_parse(a->overlap, &r->settings.overlap, err)) ||
        (a->eager && topt_eager_parse(a->eager, &r->settings.eager, err)) ||
        (a->optimizer && topt_optimizer_parse(a->optimizer, &r->settings.optimizer, err)))
        return -1;
    r->pow2_counts = a->counts && !strcmp(a->counts, "pow2");
    if (a->counts && !r->pow2_counts && strcmp(a->counts, "all"))
        return topt_fail(err, TOPT_ERR_INVAL, "--counts is pow2 or all, not '%.40s'",
                         a->counts);
    r->micro_batches = a->micro;
    r->settings.gradient_f32 = a->gradient_f32;
    r->max_gpus = a->max_gpus;
    r->memory_limit = a->memory;
    r->algorithm = a->algorithm;
    r->epsilon = a->epsilon;
    r->max_work = a->work;
    r->max_entries = a->entries;
    r->threads = (int)(a->threads > 64 ? 64 : a->threads);
    r->sequence_splits = a->sequence;
    return 0;
}

static int load(struct question *q, const char *model, struct topt_error *err)
{
    struct topt_import_options o = {
        .batch = q->a.batch, .seq = q->a.seq, .loss = q->a.loss};
    if (!q->a.hw)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--hw is needed; `topt hw list` shows profiles");
    q->model = topt_model_load(model, &o, err);
    q->hw = q->model ? topt_hw_load(q->a.hw, err) : NULL;
    q->r.model = q->model;
    q->r.hw = q->hw;
    return q->hw ? 0 : -1;
}

/* 1: help was shown.  On failure the error is in 'err'. */
static int ask(struct question *q, const struct topt_option *table, const char *usage,
               int argc, char **argv, struct topt_error *err)
{
    const char *model[1];
    int n;
    memset(q, 0, sizeof *q);
    q->a.threads = 1;
    q->a.count = 1;
    topt_request_init(&q->r);
    int rc = topt_options_parse(table, argc, argv, &q->a, model, 1, &n, err);
    if (rc == 1)
        topt_options_help(stdout, usage, table);
    if (rc)
        return rc;
    if (n != 1)
        return topt_fail(err, TOPT_ERR_USAGE, "which model? usage: %.*s",
                         (int)strcspn(usage, "\n"), usage);
    if (read_counts(q, err) || read_names(q, err)) {
        if (err->code == TOPT_ERR_INVAL)
            err->code = TOPT_ERR_USAGE;
        return -1;
    }
    return load(q, model[0], err);
}

static int write_json(const json_t *doc, const char *path, struct topt_error *err)
{
    char *text = topt_json_text(doc, 1);
    if (!text)
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the output");
    size_t n = strlen(text);
    text[n] = '\n';
    int rc = topt_write_file(path, text, n + 1, err);
    free(text);
    return rc;
}

/* From here on the search may take long. */
static void watch(struct question *q)
{
    q->r.progress = topt_watch_start(&q->watch, q->a.quiet || q->a.json);
}

/* A picture, which is given up, into the file that --svg names. */
static int write_svg(char *svg, const char *path, struct topt_error *err)
{
    int rc = svg ? topt_write_file(path, svg, strlen(svg), err)
                 : topt_fail(err, TOPT_ERR_NOMEM, "no memory for the picture");
    free(svg);
    return rc;
}

static int width(void)
{
    struct winsize w;
    if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) && w.ws_col >= 40)
        return w.ws_col;
    return 100;
}

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static const char *words(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* ---- plan ------------------------------------------------------------------------------------ */

static void show_memory(const json_t *a)
{
    char x[32], y[32], z[32];
    const char *key;
    json_t *value;
    const json_t *band = json_object_get(json_object_get(a, "band"), "memory");
    printf("  memory   %s a GPU at most, %s at the program's peak; limit %s\n",
           topt_show_bytes(whole(a, "memory_bytes"), x, sizeof x),
           topt_show_bytes(whole(a, "peak_bytes"), y, sizeof y),
           topt_show_bytes(whole(a, "memory_limit"), z, sizeof z));
    printf("           on the device %s to %s, context and libraries included\n",
           topt_show_bytes(whole(band, "low_bytes"), x, sizeof x),
           topt_show_bytes(whole(band, "high_bytes"), y, sizeof y));
    printf("          ");
    json_object_foreach(json_object_get(a, "memory_parts"), key,
                        value) if (json_integer_value(value))
        printf(" %s %s", key, topt_show_bytes(json_integer_value(value), x, sizeof x));
    printf("\n");
}

static void show_time(const json_t *a)
{
    char x[32], y[32], z[32];
    const char *key;
    json_t *value;
    const json_t *band = json_object_get(json_object_get(a, "band"), "time");
    int64_t all = whole(a, "time_ns");
    printf("  time     %s a step: %s computing, %s on the network\n",
           topt_show_ns(all, x, sizeof x),
           topt_show_ns(whole(a, "compute_ns"), y, sizeof y),
           topt_show_ns(whole(a, "network_ns"), z, sizeof z));
    printf("           %s to %s, resting on",
           topt_show_ns(whole(band, "low_ns"), x, sizeof x),
           topt_show_ns(whole(band, "high_ns"), y, sizeof y));
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
        printf("infeasible: %s\n", words(a, "why"));
        return;
    }
    printf("%lld GPU%s (%lld node%s of %lld): %s\n", (long long)whole(a, "gpus"),
           whole(a, "gpus") > 1 ? "s" : "", (long long)whole(a, "nodes"),
           whole(a, "nodes") > 1 ? "s" : "", (long long)whole(a, "gpus_per_node"),
           words(a, "strategy"));
    printf("  why      %s\n", words(a, "why"));
    show_memory(a);
    show_time(a);
    if (uniform)
        printf("  uniform  dp %lld, tp %lld, ZeRO %lld, recomputation %s, %lld samples a "
               "micro-batch of a rank\n",
               (long long)whole(uniform, "dp"), (long long)whole(uniform, "tp"),
               (long long)whole(uniform, "zero"),
               json_is_true(json_object_get(uniform, "recompute")) ? "on" : "off",
               (long long)whole(uniform, "micro_batch"));
    printf("  space    %s, %s; %lld configurations, %lld layouts, %lld edge entries\n",
           words(a, "space"),
           json_is_true(json_object_get(a, "exact")) ? "exact" : "not exact",
           (long long)whole(a, "configs"), (long long)whole(a, "layouts"),
           (long long)whole(a, "edge_entries"));
    show_claim(a);
    printf("  plan     %s\n", words(a, "plan_id"));
}

/* What who runs the plan should know of the model. */
static void show_notes(const struct topt_model *m)
{
    if (m->note)
        printf("  note     %s\n", m->note);
    if (m->plan_only)
        printf("  run      not possible: no operator computes %s\n", m->plan_only);
}

static int put_answer(const struct question *q, const json_t *answer,
                      struct topt_error *err)
{
    if (q->a.json)
        return write_json(answer, "-", err);
    if (q->r.mode == TOPT_PROFILING) {
        char *plot = topt_plot_curve(answer, width());
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

int topt_cmd_plan(int argc, char **argv)
{
    static const char usage[] =
        "topt plan MODEL --hw HW --mode MODE [options]\n"
        "mini-parallelism: the fewest GPUs that fit, and the fastest plan for them.\n"
        "mini-time: the fastest plan for --gpus N.  profiling: time against GPUs.";
    struct question q;
    struct topt_error err = {0};
    json_t *answer = NULL;
    int rc = ask(&q, plan_options, usage, argc, argv, &err);
    if (!rc && !q.a.mode)
        rc = topt_fail(&err, TOPT_ERR_USAGE,
                       "--mode is needed: mini-time, mini-parallelism or profiling");
    if (!rc && q.r.mode == TOPT_MINI_TIME && q.r.ngpu_list != 1)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "mini-time needs --gpus N");
    if (!rc && q.a.svg && q.r.mode != TOPT_PROFILING)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "--svg draws the curve of --mode profiling");
    if (!rc)
        q.r.stop = topt_stop_after(q.a.seconds);
    if (!rc)
        watch(&q);
    rc = rc ? rc : topt_plan(&q.r, &answer, &err);
    topt_watch_stop(&q.watch);
    int feasible =
        q.r.mode == TOPT_PROFILING || json_is_true(json_object_get(answer, "feasible"));
    json_t *document =
        q.r.mode == TOPT_PROFILING ? answer : json_object_get(answer, "plan");
    if (!rc && q.a.output && feasible)
        rc = write_json(document, q.a.output, &err);
    if (!rc && q.a.svg)
        rc = write_svg(topt_svg_curve(answer), q.a.svg, &err);
    if (!rc && !(q.a.output && !strcmp(q.a.output, "-")))
        rc = put_answer(&q, answer, &err);
    json_decref(answer);
    question_fini(&q);
    if (rc == 1)
        return 0;
    if (rc)
        return fail("plan", &err);
    return feasible ? 0 : topt_err_exit(TOPT_ERR_INFEASIBLE);
}

int topt_cmd_frontier(int argc, char **argv)
{
    static const char usage[] =
        "topt frontier MODEL --hw HW --gpus N [options]\n"
        "Every strategy that nothing beats in both memory and time.";
    struct question q;
    struct topt_error err = {0};
    json_t *doc = NULL;
    int rc = ask(&q, frontier_options, usage, argc, argv, &err);
    if (!rc)
        q.r.stop = topt_stop_after(q.a.seconds);
    if (!rc)
        watch(&q);
    rc = rc ? rc : topt_plan_frontier(&q.r, &doc, &err);
    topt_watch_stop(&q.watch);
    if (!rc && q.a.svg)
        rc = write_svg(topt_svg_frontier(doc), q.a.svg, &err);
    if (!rc && (q.a.json || q.a.output)) {
        rc = write_json(doc, q.a.output ? q.a.output : "-", &err);
    } else if (!rc) {
        char *plot = topt_plot_frontier(doc, width());
        fputs(plot ? plot : "", stdout);
        show_claim(doc);
        free(plot);
    }
    json_decref(doc);
    question_fini(&q);
    return rc == 1 ? 0 : rc ? fail("frontier", &err) : 0;
}

int topt_cmd_compare(int argc, char **argv)
{
    static const char usage[] =
        "topt compare MODEL --hw HW --gpus N [options]\n"
        "What other systems would choose, beside ours, by one model of costs.";
    struct question q;
    struct topt_error err = {0};
    json_t *doc = NULL;
    int rc = ask(&q, compare_options, usage, argc, argv, &err);
    if (!rc && q.r.ngpu_list != 1)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "compare needs --gpus N");
    if (!rc)
        q.r.stop = topt_stop_after(q.a.seconds);
    if (!rc)
        watch(&q);
    rc = rc ? rc : topt_plan_compare(&q.r, &doc, &err);
    topt_watch_stop(&q.watch);
    if (!rc && (q.a.json || q.a.output)) {
        rc = write_json(doc, q.a.output ? q.a.output : "-", &err);
    } else if (!rc) {
        char *table = topt_compare_text(doc);
        fputs(table ? table : "", stdout);
        free(table);
    }
    json_decref(doc);
    question_fini(&q);
    return rc == 1 ? 0 : rc ? fail("compare", &err) : 0;
}

/* ---- explain, evaluate ------------------------------------------------------------------------- */

int topt_cmd_explain(int argc, char **argv)
{
    static const struct topt_option options[] = {
        {"operators", TOPT_OPT_FLAG, AT(explain.operators), "",
         "every operator by itself"},
        {"notation", TOPT_OPT_FLAG, AT(explain.notation), "",
         "also as a device mesh and tensor maps"},
        {"around", TOPT_OPT_FLAG, AT(explain.around), "",
         "search what fewer and more GPUs would do, too"},
        {"threads", TOPT_OPT_INT, AT(threads), "N", "threads of that search"},
        {"quiet", TOPT_OPT_FLAG, AT(quiet), "", "no line on a terminal about progress"},
        {0}};
    static const char usage[] =
        "topt explain plan.json [options]\n"
        "A plan in words: why, memory, time, and what is split where.";
    struct args a = {0};
    struct topt_watch w;
    struct topt_error err = {0};
    const char *path[1];
    int n, rc = topt_options_parse(options, argc, argv, &a, path, 1, &n, &err);
    if (rc == 1) {
        topt_options_help(stdout, usage, options);
        return 0;
    }
    if (!rc && n != 1)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "which plan? usage: %.*s",
                       (int)strcspn(usage, "\n"), usage);
    json_t *doc = rc ? NULL : topt_json_load(path[0], MAX_PLAN_FILE, &err);
    a.explain.threads = (int)(a.threads > 64 ? 64 : a.threads);
    a.explain.progress = topt_watch_start(&w, a.quiet || !a.explain.around);
    char *text = doc ? topt_plan_explain(doc, &a.explain, &err) : NULL;
    topt_watch_stop(&w);
    if (text)
        fputs(text, stdout);
    free(text);
    json_decref(doc);
    return text ? 0 : fail("explain", &err);
}

static json_t *evaluation(const struct question *q, const struct topt_plan_doc *p,
                          struct topt_error *err)
{
    struct topt_strategy_cost total;
    struct topt_router *router = topt_router_create(q->hw, &p->mesh);
    struct topt_costing k = {p->micro, q->hw, &p->mesh, &p->settings, router, NULL};
    json_t *ops = json_array(), *doc = NULL;
    if (!router || topt_cost_strategy(&k, p->strategy, &total, err))
        goto out;
    for (int i = 0; i < q->model->nops; i++) {
        struct topt_fragment_cost c;
        if (topt_cost_op(&k, i, &p->strategy->config[i], &c, err))
            goto out;
        int64_t bytes = 0;
        for (int j = 0; j < TOPT_CLASS_COUNT; j++)
            bytes += c.class_bytes[j];
        json_array_append_new(ops, json_pack("{s:s, s:I, s:I, s:I, s:I}", "name",
                                             q->model->op[i].name, "memory_bytes",
                                             (json_int_t)bytes, "transient_bytes",
                                             (json_int_t)c.transient_bytes, "compute_ns",
                                             (json_int_t)c.compute_ns, "network_ns",
                                             (json_int_t)c.network_ns));
    }
    json_t *parts = topt_memory_parts(q->hw, &total);
    doc = json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:O}", "memory_bytes",
                    (json_int_t)total.memory_bytes, "peak_bytes",
                    (json_int_t)p->program->peak_bytes, "time_ns",
                    (json_int_t)total.time_ns, "compute_ns",
                    (json_int_t)total.sum.compute_ns, "network_ns",
                    (json_int_t)total.sum.network_ns, "memory_parts", parts, "ops", ops);
    json_object_set_new(doc, "band",
                        topt_prediction_band(q->hw, &total, p->program->peak_bytes));
out:
    topt_router_destroy(router);
    json_decref(ops);
    return doc;
}

static int same_model(const struct question *q, const struct topt_plan_doc *p,
                      struct topt_error *err)
{
    json_t *x = topt_model_to_json(q->model), *y = topt_model_to_json(p->model);
    int same = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same ? 0
                : topt_fail(err, TOPT_ERR_INVAL,
                            "the plan is for '%s' (batch %lld, seq %lld), not for this "
                            "model and shape",
                            p->model->name, (long long)p->model->batch,
                            (long long)p->model->seq);
}

static void show_evaluation(const json_t *doc)
{
    char a[32], b[32], c[32];
    size_t i;
    json_t *o;
    printf("memory %s at most, %s at the peak; time %s\n",
           topt_show_bytes(whole(doc, "memory_bytes"), a, sizeof a),
           topt_show_bytes(whole(doc, "peak_bytes"), b, sizeof b),
           topt_show_ns(whole(doc, "time_ns"), c, sizeof c));
    printf("%-24s %12s %12s %12s\n", "operator", "memory", "compute", "network");
    json_array_foreach(json_object_get(doc, "ops"), i, o)
        printf("%-24s %12s %12s %12s\n", words(o, "name"),
               topt_show_bytes(whole(o, "memory_bytes"), a, sizeof a),
               topt_show_ns(whole(o, "compute_ns"), b, sizeof b),
               topt_show_ns(whole(o, "network_ns"), c, sizeof c));
}

int topt_cmd_evaluate(int argc, char **argv)
{
    static const char usage[] = "topt evaluate MODEL --hw HW --plan plan.json [options]\n"
                                "What a given plan costs, by part and by operator.";
    struct question q;
    struct topt_error err = {0};
    struct topt_plan_doc *p = NULL;
    json_t *doc = NULL;
    int rc = ask(&q, evaluate_options, usage, argc, argv, &err);
    if (!rc && !q.a.plan)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "--plan is needed");
    rc = rc ? rc : topt_plan_load(q.a.plan, &p, &err);
    rc = rc ? rc : same_model(&q, p, &err);
    if (!rc) {
        doc = evaluation(&q, p, &err);
        rc = doc ? 0 : -1;
    }
    if (!rc && (q.a.json || q.a.output))
        rc = write_json(doc, q.a.output ? q.a.output : "-", &err);
    else if (!rc)
        show_evaluation(doc);
    json_decref(doc);
    topt_plan_doc_destroy(p);
    question_fini(&q);
    return rc == 1 ? 0 : rc ? fail("evaluate", &err) : 0;
}

/* ---- sample, costgraph ------------------------------------------------------------------------- */

static int write_samples(const json_t *plans, const char *dir, struct topt_error *err)
{
    size_t i;
    json_t *plan;
    if (mkdir(dir, 0755) && access(dir, W_OK))
        return topt_fail(err, TOPT_ERR_IO, "can't make the folder '%s'", dir);
    json_array_foreach(plans, i, plan)
    {
        struct topt_text path = {0};
        topt_text_add(&path, "%s/plan-%04zu.json", dir, i);
        int rc = path.oom ? topt_fail(err, TOPT_ERR_NOMEM, "no memory for a path")
                          : write_json(plan, path.s, err);
        topt_text_fini(&path);
        if (rc)
            return -1;
    }
    printf("%zu plans in %s\n", json_array_size(plans), dir);
    return 0;
}

int topt_cmd_sample(int argc, char **argv)
{
    static const char usage[] =
        "topt sample MODEL --hw HW --gpus N --count K --seed S -o DIR\n"
        "Random valid plans, the same for the same seed.";
    struct question q;
    struct topt_error err = {0};
    json_t *plans = NULL;
    int rc = ask(&q, sample_options, usage, argc, argv, &err);
    if (!rc && (q.r.ngpu_list != 1 || q.a.count < 1 || q.a.count > 100000))
        rc = topt_fail(&err, TOPT_ERR_USAGE, "needs --gpus N and --count 1..100000");
    rc = rc ? rc
            : topt_plan_sample(&q.r, (int)q.a.count, (uint64_t)q.a.seed, &plans, &err);
    if (!rc && q.a.output && strcmp(q.a.output, "-"))
        rc = write_samples(plans, q.a.output, &err);
    else if (!rc)
        rc = write_json(plans, "-", &err);
    json_decref(plans);
    question_fini(&q);
    return rc == 1 ? 0 : rc ? fail("sample", &err) : 0;
}

int topt_cmd_costgraph(int argc, char **argv)
{
    static const char usage[] =
        "topt costgraph MODEL --hw HW --gpus N -o costs.json\n"
        "The bare combinatorial problem, for topt solve and for other programs.";
    struct question q;
    struct topt_error err = {0};
    char *text = NULL;
    int rc = ask(&q, costgraph_options, usage, argc, argv, &err);
    if (!rc)
        watch(&q);
    rc = rc ? rc : topt_plan_costgraph(&q.r, &text, &err);
    topt_watch_stop(&q.watch);
    if (!rc)
        rc = topt_write_file(q.a.output ? q.a.output : "-", text, strlen(text), &err);
    free(text);
    question_fini(&q);
    return rc == 1 ? 0 : rc ? fail("costgraph", &err) : 0;
}
