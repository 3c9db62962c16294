/* cmd_plan.c - plan, frontier, compare: questions whose answer is searched.
 *
 * Each command differs by the question it puts to plan/. */
#include "topt_cli.h"
#include "topt_accpar_row.h"
#include "topt_flexflow_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "batches.h"
#include "hardware.h"
#include "topt_answer_lines.h"
#include "topt_answer_text.h"
#include "topt_json.h"
#include "topt_near.h"
#include "topt_run.h"
#include "topt_show_plan.h"
#include "topt_search_cmd.h"
#include "topt_text.h"
#include "topt_unequal.h"
#include "topt_unequal_text.h"

static const struct topt_option plan_options[] = {
    TOPT_EXAMPLE(
        "topt plan config.json --hw a100-80-dgx --batch 64 --seq 4096",
        "the fewest GPUs that fit; one node, the cheapest and the fastest beside them"),
    TOPT_EXAMPLE("topt plan config.json --hw a100-80-dgx --batch 64 --seq 4096 --mode "
                 "profiling --svg curve.svg",
                 "every number of GPUs, as a table and as a picture"),
    TOPT_EXAMPLE("topt plan pretrain_gpt.sh --as-is --hw a100-80-dgx",
                 "what a Megatron-LM script will take, and what would be better"),
    TOPT_EXAMPLE("topt sbatch --topt-hw=a100-80-dgx --topt-model=config.json "
                 "--topt-batch=64 train.sh",
                 "the same question for a job of Slurm, which is submitted with the GPUs "
                 "that it needs"),
    TOPT_FIELDS_ASKED(ASK_ROW){"svg", TOPT_OPT_STRING, ASK_AT(svg), "FILE",
                               "draw the curve of --mode profiling"},
    {"as-is", TOPT_OPT_MAYBE, ASK_AT(as_is), "[FILE]",
     "the run that MODEL is a script of, or FILE configures, beside the best plan on its "
     "GPUs (Megatron-LM's arguments, torchtitan's settings, ds_config.json or Primus's "
     "experiment)"},
    {"lines", TOPT_OPT_STRING, ASK_AT(lines), "WHAT",
     "print KEY=VALUE lines, as sbatch reads them: plan, table (with the alternatives) "
     "or all"},
    TOPT_FIELDS_TRAINING(ASK_ROW) ASK_JOB TOPT_FIELDS_SPACE(ASK_ROW)
        TOPT_FIELDS_PIN(ASK_ROW) TOPT_FIELDS_ALGORITHM(ASK_ROW) ASK_SEARCH ASK_JSON,
    ASK_QUIET,
    ASK_OUTPUT,
    {0}};
static const struct topt_option frontier_options[] = {
    TOPT_EXAMPLE(
        "topt frontier config.json --hw a100-80-dgx --batch 64 --seq 4096 --gpus 8",
        "memory against time on 8 GPUs"),
    {"gpus", TOPT_OPT_FIELD, ASK_AT(asked), "N", "number of GPUs"},
    {"svg", TOPT_OPT_STRING, ASK_AT(svg), "FILE", "draw the frontier"},
    TOPT_FIELDS_TRAINING(ASK_ROW) ASK_JOB TOPT_FIELDS_SPACE(ASK_ROW)
        TOPT_FIELDS_PIN(ASK_ROW) TOPT_FIELDS_ALGORITHM(ASK_ROW) ASK_SEARCH ASK_JSON,
    ASK_QUIET,
    ASK_OUTPUT,
    {0}};
static const struct topt_option compare_options[] = {
    TOPT_EXAMPLE("topt compare config.json --hw a100-80-dgx --batch 8 --seq 4096 --gpus "
                 "8 --space canonical",
                 "what other systems would choose on 8 GPUs"),
    {"gpus", TOPT_OPT_FIELD, ASK_AT(asked), "N", "number of GPUs"},
    {"svg", TOPT_OPT_STRING, ASK_AT(svg), "FILE", "draw times and memory"},
    {"systems", TOPT_OPT_STRING, ASK_AT(systems), "LIST",
     "only these rows beside ft, as optcnn,accpar (default: all)"},
    {"seed", TOPT_OPT_COUNT, ASK_AT(seed), "S",
     "seed of FlexFlow's random walk (default: 1)"},
    {"proposals", TOPT_OPT_COUNT, ASK_AT(proposals), "N",
     "most proposals FlexFlow tries (default: by the size of its task graph)"},
    TOPT_FIELDS_TRAINING(ASK_ROW) ASK_JOB TOPT_FIELDS_SPACE(ASK_ROW)
        TOPT_FIELDS_PIN(ASK_ROW) ASK_SEARCH ASK_JSON,
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

/* The answer as KEY=VALUE lines, of one without a plan what toptd says then. */
static int put_lines(const json_t *answer, const char *what, struct topt_error *err)
{
    struct topt_text t = {0};
    char *nearest = NULL, *plan = NULL;
    const json_t *doc = json_object_get(answer, "plan");
    if (strcmp(what, "plan") && strcmp(what, "table") && strcmp(what, "all"))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--lines: '%.20s' is not one of plan, table, all", what);
    if (json_is_true(json_object_get(answer, "feasible"))) {
        topt_lines_of_plan(&t, answer, NULL);
    } else if (!json_object_get(answer, "points")) {
        nearest = topt_nearest_line(answer);
        topt_text_add(&t, "ERROR=%s\nDESCRIPTION=%s\n",
                      json_is_null(json_object_get(answer, "feasible")) ? "undecided"
                                                                        : "infeasible",
                      topt_json_words_at(answer, "why"));
        if (nearest)
            topt_text_add(&t, "NEAREST=%s\n", nearest);
    }
    topt_lines_shown(&t, answer,
                     *what == 'p'   ? TOPT_LINES_ALONE
                     : *what == 't' ? TOPT_LINES_TABLE
                                    : TOPT_LINES_ALL);
    if (doc && (plan = topt_json_text(doc, 0)))
        topt_lines_of_document(&t, plan);
    fputs(t.s ? t.s : "", stdout);
    int rc = t.oom ? topt_nomem(err, "the answer") : 0;
    topt_text_fini(&t);
    free(nearest);
    free(plan);
    return rc;
}

/* Of answers to several questions. */
static void put_stopped(const json_t *answer, const char *what)
{
    char *stopped = topt_stopped_words(answer);
    if (stopped)
        printf("stopped   %s: %s\n", stopped, what);
    free(stopped);
}

static int put_answer(const struct topt_question *q, const json_t *answer,
                      struct topt_error *err)
{
    if (q->a.json)
        return topt_cli_write_json(answer, "-", err);
    if (q->a.lines)
        return put_lines(answer, q->a.lines, err);
    if (q->r.mode == TOPT_PROFILING) {
        char *plot = topt_plot_curve(answer, topt_cli_width());
        fputs(plot ? plot : "", stdout);
        free(plot);
        put_stopped(answer, "some GPU counts are missing or not the fastest");
        return 0;
    }
    if (q->nhw > 1) {
        topt_hardware_show(answer);
        put_stopped(answer, "some rows are not the fastest for their hardware");
        return 0;
    }
    if (q->nbatch > 1) {
        topt_show_question(answer);
        topt_show_rows(json_object_get(answer, "batches"), json_object_get(answer, "job"),
                       TOPT_ROWS_BY_BATCH);
        topt_show_lacks(answer);
        put_stopped(answer, "some rows are not the fastest for their batch");
        return 0;
    }
    if (q->batch_auto)
        topt_show_rows(json_object_get(answer, "tried"), json_object_get(answer, "job"),
                       TOPT_ROWS_BY_BATCH);
    topt_show_plan(answer, q->a.output);
    topt_show_lacking(
        q->model,
        !strcmp(topt_json_words_at(json_object_get(answer, "job"), "framework"), "topt"));
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

/* A run beside the best plan on its GPUs. */
static int plan_as_is(struct topt_question *q, json_t **ret, struct topt_error *err)
{
    struct topt_memo *memo = topt_memo_create();
    if (!memo)
        return topt_nomem(err, "the plan");
    int rc = topt_plan_beside_run(&q->r, &q->run, memo, ret, err);
    topt_memo_destroy(memo);
    if (!rc) {
        json_t *run = json_object_get(*ret, "as_is");
        topt_run_put_question(run, &q->run_asked);
        json_object_set(run, "notes", q->run_notes);
    }
    return rc;
}

/* One batch, several, or the one that fills a GPU; or several kinds of hardware. */
static int ask_batches(struct topt_question *q, json_t **ret, struct topt_error *err)
{
    int several = q->nbatch > 1 || q->batch_auto;
    if (several && q->r.mode == TOPT_PROFILING)
        return topt_fail(err, TOPT_ERR_USAGE, "--mode profiling takes one --batch");
    if (q->nbatch > 1 && q->a.output)
        return topt_fail(err, TOPT_ERR_USAGE, "-o writes one plan; give one --batch");
    if (q->nhw > 1 &&
        (several || q->r.mode == TOPT_PROFILING || q->a.output || q->a.lines))
        return topt_fail(err, TOPT_ERR_USAGE,
                         "several --hw take one --batch and no --mode profiling, -o or "
                         "--lines");
    if (q->nhw > 1)
        return topt_hardware_compare(q, ret, err);
    if (q->a.as_is)
        return plan_as_is(q, ret, err);
    return q->batch_auto ? topt_batches_fill(q, ret, err)
           : several     ? topt_batches_compare(q, ret, err)
                         : topt_plan(&q->r, ret, err);
}

/* A group by itself, or several that share rows and the model's state. */
static int show_groups(const struct topt_question *q, const json_t *answer,
                       struct topt_error *err)
{
    if (q->a.json)
        return topt_cli_write_json(answer, "-", err);
    int one = !topt_is_unequal(answer);
    if (one && q->a.lines)
        return put_lines(answer, q->a.lines, err);
    char *text = one ? NULL : topt_unequal_text(answer), *rows = topt_groups_text(answer);
    if (one)
        topt_show_plan(answer, q->a.output);
    fputs(text ? text : "", stdout);
    fputs(rows ? rows : "", stdout);
    free(text);
    free(rows);
    return 0;
}

/* Groups of unlike devices: which of them, and what each takes. */
static int plan_unequal(struct topt_question *q, struct topt_error *err)
{
    json_t *answer = NULL;
    if (q->nbatch > 1 || q->batch_auto || q->a.svg)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "a profile with groups of unlike devices takes one --batch and no --svg");
    const char *which = q->a.asked.groups;
    if (q->a.lines && (!strcmp(which, "all") || strchr(which, ',')))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "--lines are of a job that has GPUs of one kind: --groups one, or its name");
    topt_ask_begin(q);
    int rc = topt_plan_groups(&q->r, q->a.lines && !*which ? "one" : which, &answer, err);
    topt_ask_end(q, answer);
    const json_t *plan = json_object_get(answer, "plan");
    if (!rc && q->a.output)
        rc = plan ? topt_cli_write_json(plan, q->a.output, err)
                  : topt_fail(err, TOPT_ERR_INFEASIBLE,
                              "-o: no plan runs on all groups together: %s",
                              topt_json_words_at(answer, "no_plan"));
    rc = rc ? rc : show_groups(q, answer, err);
    int status = rc ? rc : exit_of(answer);
    json_decref(answer);
    return status;
}

int topt_cmd_plan(int argc, char **argv)
{
    static const char usage[] =
        "topt plan MODEL [--hw HW] [--batch N] [--seq N] [options]\n"
        "How many GPUs a training job needs, and the best strategy for them.\n"
        "By default: the fewest GPUs that fit, with one node, the fewest GPU-hours, the "
        "knee "
        "(beyond\n"
        "it each GPU adds less than half of the best speed per GPU) and the fastest "
        "beside it.\n"
        "  --gpus 8                      the fastest plan on 8 GPUs\n"
        "  --batch 32,64,128             several batch sizes side by side; --batch auto: "
        "the\n"
        "                                smallest one that is nearly as fast as any\n"
        "  --hw A,B                      several kinds of hardware side by side\n"
        "  --tokens 1T --price 2.5       days, GPU-hours and cost of the whole training\n"
        "  --mode profiling              speed and memory of every number of GPUs";
    struct topt_question q;
    struct topt_error err = {0};
    json_t *answer = NULL;
    int rc = topt_ask(&q, plan_options, usage, NULL, argc, argv, &err);
    if (!rc && !*q.a.asked.mode)
        q.r.mode = q.r.ngpu_list > 1    ? TOPT_PROFILING
                   : q.r.ngpu_list == 1 ? TOPT_MINI_TIME
                                        : TOPT_MINI_PARALLELISM;
    /* The uniform space takes a hundredth of that, and keeps what it finds where it is not counted. */
    if (!rc && q.r.space == TOPT_SPACE_UNIFORM && q.r.max_work == TOPT_ASK_WORK)
        q.r.max_work = 0;
    if (!rc && q.nhw < 2 &&
        (topt_hw_groups(q.hw) || topt_groups_named(q.a.asked.groups))) {
        int status = plan_unequal(&q, &err);
        topt_ask_fini(&q);
        return status < 0 ? topt_cli_fail("plan", &err) : status;
    }
    if (!rc && q.r.mode == TOPT_MINI_PARALLELISM && q.r.ngpu_list)
        rc = topt_fail(&err, TOPT_ERR_USAGE,
                       "--gpus is for --mode mini-time and profiling; --mode "
                       "mini-parallelism takes --max-gpus N");
    if (!rc && q.r.mode == TOPT_MINI_TIME && q.r.ngpu_list != 1)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "--mode mini-time needs one --gpus N");
    if (!rc && q.a.svg && q.r.mode != TOPT_PROFILING)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "--svg draws the curve of --mode profiling");
    if (!rc)
        topt_ask_begin(&q);
    rc = rc ? rc : ask_batches(&q, &answer, &err);
    topt_ask_end(&q, answer);
    int status = q.r.mode == TOPT_PROFILING || q.nbatch > 1 ? 0 : exit_of(answer);
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
                         "stopped before a plan was found; raise --seconds or "
                         "--max-work, or choose a smaller space (--space uniform)");
    topt_show_bytes(json_integer_value(json_object_get(doc, "memory_limit")), limit,
                    sizeof limit);
    const json_t *ends = json_object_get(doc, "ends");
    if (json_object_get(doc, "heuristic") ||
        json_is_false(json_object_get(ends, "least")))
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "no plan was found that fits in %s per GPU, because operators "
                         "were fixed by heuristic; raise --max-entries",
                         limit);
    return topt_fail(err, TOPT_ERR_INFEASIBLE,
                     "nothing fits in %s per GPU; raise --memory or --gpus", limit);
}

/* A question of one number of GPUs, asked and answered: '*ret_doc' is owned by the
 * caller.  As topt_ask says. */
static int answer_one(struct topt_question *q, const struct topt_option *options,
                      const char *usage, const char *framework, int argc, char **argv,
                      int (*answer)(const struct topt_request *r, json_t **ret,
                                    struct topt_error *err),
                      json_t **ret_doc, struct topt_error *err)
{
    int rc = topt_ask(q, options, usage, framework, argc, argv, err);
    if (rc)
        return rc;
    if (q->r.ngpu_list != 1)
        return topt_fail(err, TOPT_ERR_USAGE, "%s needs one --gpus N", argv[0]);
    topt_ask_begin(q);
    const struct topt_hw *whole = q->r.hw;
    struct topt_hw *part;
    rc = topt_groups_profile(&q->r, 0, &q->r.hw, &part, err) ||
         answer(&q->r, ret_doc, err);
    topt_ask_end(q, *ret_doc);
    q->r.hw = whole;
    topt_hw_destroy(part);
    return rc ? -1 : 0;
}

static int frontier(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    return topt_hw_groups(r->hw) ? topt_unequal_frontier(r, ret, err)
                                 : topt_plan_frontier(r, ret, err);
}

int topt_cmd_frontier(int argc, char **argv)
{
    static const char usage[] =
        "topt frontier MODEL --hw HW --gpus N [options]\n"
        "The Pareto frontier of memory per GPU against time per step.";
    struct topt_question q;
    struct topt_error err = {0};
    json_t *doc = NULL;
    int rc =
        answer_one(&q, frontier_options, usage, NULL, argc, argv, frontier, &doc, &err);
    if (!rc && q.a.svg)
        rc = write_svg(topt_svg_frontier(doc), q.a.svg, &err);
    if (!rc && (q.a.json || q.a.output)) {
        rc = topt_cli_write_json(doc, q.a.output ? q.a.output : "-", &err);
    } else if (!rc) {
        char *plot = topt_plot_frontier(doc, topt_cli_width());
        fputs(plot ? plot : "", stdout);
        free(plot);
    }
    if (!rc)
        rc = needs_points(doc, &err);
    json_decref(doc);
    topt_ask_fini(&q);
    return rc == 1 ? 0 : rc ? topt_cli_fail("frontier", &err) : 0;
}

/* Systems that search by themselves; those that search a part of our space are rows of
 * solver/plan/request/algorithm.c. */
static const struct topt_system *const systems[] = {&topt_unequal_row,  &topt_tofu_row,
                                                    &topt_accpar_row,   &topt_hypar_row,
                                                    &topt_flexflow_row, NULL};

/* All that --systems picks is some row's name. */
static int check_systems(const char *picked, struct topt_error *err)
{
    char word[48], meant[TOPT_NEAR_WORDS];
    int rc = 0;
    for (const char *at = picked; at && *at && !rc; at += strcspn(at, ",")) {
        struct topt_near near = {.name = word};
        struct topt_text all = {0};
        const char *name;
        int found = 0;
        at += *at == ',';
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        for (int i = 0; (name = topt_compare_row(systems, i)); i++) {
            found |= !strcmp(word, name);
            topt_near_try(&near, name);
            topt_text_add(&all, "%s%s", i ? ", " : "", name);
        }
        if (!found)
            rc = topt_fail(err, TOPT_ERR_USAGE, "no system is called '%s'%s (one of %s)",
                           word, topt_near_words(&near, meant), all.s ? all.s : "");
        topt_text_fini(&all);
    }
    return rc;
}

static int compare_all(const struct topt_request *r, json_t **ret, struct topt_error *err)
{
    if (check_systems(r->systems, err))
        return -1;
    return topt_plan_compare(r, systems, ret, err);
}

int topt_cmd_compare(int argc, char **argv)
{
    static const char usage[] = "topt compare MODEL --hw HW --gpus N [options]\n"
                                "What other auto-parallel systems would choose, under "
                                "one cost model, and why each is\n"
                                "slower or does not fit.";
    struct topt_question q;
    struct topt_error err = {0};
    json_t *doc = NULL;
    int rc = answer_one(&q, compare_options, usage, "topt", argc, argv, compare_all, &doc,
                        &err);
    if (!rc && q.a.svg)
        rc = write_svg(topt_svg_compare(doc), q.a.svg, &err);
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
