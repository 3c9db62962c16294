/* cmd_evaluate.c - explain, evaluate, sample, costgraph: plans that are there already, random ones,
 * and the bare problem that they solve. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ask.h"
#include "topt_cli.h"
#include "topt_export.h"
#include "topt_pool.h"
#include "topt_json.h"
#include "topt_search.h"
#include "topt_text.h"

static const struct topt_option evaluate_options[] = {
    TOPT_EXAMPLE("topt evaluate config.json --hw a100-80-dgx --batch 64 --seq 4096 "
                 "--plan plan.json",
                 "memory and time of a plan, by operator"),
    {"plan", TOPT_OPT_STRING, ASK_AT(plan), "FILE", "the plan to evaluate"},
    {"hw", TOPT_OPT_STRING, ASK_AT(hw), "NAME|FILE", "hardware profile (topt hw list)"},
    {"batch", TOPT_OPT_STRING, ASK_AT(batch), "N",
     "global batch size: samples per step over all GPUs"},
    {"seq", TOPT_OPT_FIELD, ASK_AT(asked), "N", "sequence length: tokens per sample"},
    {"train", TOPT_OPT_FIELD, ASK_AT(asked), "WHAT",
     "the part of MODEL that the plan trains"},
    {"loss", TOPT_OPT_STRING, ASK_AT(loss), "NAME",
     "loss of an ONNX graph: cross_entropy or mse (default: by its output)"},
    ASK_JSON,
    ASK_OUTPUT,
    {0}};
static const struct topt_option sample_options[] = {
    TOPT_EXAMPLE("topt sample config.json --hw a100-80-dgx --batch 8 --seq 1024 --gpus 4 "
                 "--count 2 --seed 1 -o samples",
                 "two random plans on 4 GPUs"),
    {"gpus", TOPT_OPT_FIELD, ASK_AT(asked), "N", "number of GPUs"},
    {"count", TOPT_OPT_COUNT, ASK_AT(count), "K", "number of plans"},
    {"seed", TOPT_OPT_INT, ASK_AT(seed), "S", "seed of the random choices"},
    ASK_JOB TOPT_FIELDS_SPACE(ASK_ROW){"o", TOPT_OPT_STRING, ASK_AT(output), "DIR",
                                       "a folder for them (default: as JSON)"},
    {0}};
static const struct topt_option costgraph_options[] = {
    TOPT_EXAMPLE("topt costgraph config.json --hw a100-80-dgx --batch 8 --seq 1024 "
                 "--gpus 2 -o costs.json",
                 "the problem on 2 GPUs, for topt solve or another solver"),
    {"gpus", TOPT_OPT_FIELD, ASK_AT(asked), "N", "number of GPUs"},
    ASK_JOB TOPT_FIELDS_SPACE(ASK_ROW) TOPT_FIELDS_MEMORY(ASK_ROW) ASK_QUIET,
    ASK_OUTPUT,
    {0}};

/* ---- explain, evaluate ------------------------------------------------------------- */

/* Print and give up one of them; both are NULL where there is an error. */
static int put_explanation(char *text, json_t *doc, struct topt_error *err)
{
    int rc = text || doc ? 0 : -1;
    if (text)
        fputs(text, stdout);
    if (doc)
        rc = topt_cli_write_json(doc, "-", err);
    free(text);
    json_decref(doc);
    return rc;
}

int topt_cmd_explain(int argc, char **argv)
{
    static const struct topt_option options[] = {
        TOPT_EXAMPLE("topt explain plan.json --operators",
                     "a plan that topt plan -o wrote"),
        {"operators", TOPT_OPT_FLAG, ASK_AT(explain.operators), "",
         "list every operator"},
        {"notation", TOPT_OPT_FLAG, ASK_AT(explain.notation), "",
         "also print the device mesh and tensor maps"},
        {"around", TOPT_OPT_FLAG, ASK_AT(explain.around), "",
         "also search fewer and more GPUs"},
        {"threads", TOPT_OPT_COUNT, ASK_AT(threads), "N",
         "threads of that search (default: all processors, at most 8)"},
        ASK_JSON,
        ASK_QUIET,
        {0}};
    static const char usage[] = "topt explain plan.json [options]\n"
                                "Explain a plan: why it was chosen, its memory and time, "
                                "and what is split where.";
    struct topt_args a = {.threads = topt_pool_processors()};
    struct topt_watch w;
    struct topt_error err = {0};
    const char *path[1];
    int rc = topt_cli_plan(options, usage, argc, argv, &a, path, &err);
    if (rc == 1)
        return 0;
    rc = rc || topt_search_threads(a.threads, &a.explain.threads, &err);
    json_t *doc = rc ? NULL : topt_cli_read_plan(path[0], &err);
    if (!doc)
        return topt_cli_fail("explain", &err);
    a.explain.progress = topt_watch_start(&w, a.quiet || a.json || !a.explain.around);
    char *text = a.json ? NULL : topt_plan_explain(doc, &a.explain, &err);
    json_t *told = a.json ? topt_plan_explain_json(doc, &a.explain, &err) : NULL;
    topt_watch_stop(&w);
    json_decref(doc);
    rc = put_explanation(text, told, &err);
    return rc ? topt_cli_fail("explain", &err) : 0;
}

static json_t *evaluation(const struct topt_question *q, const struct topt_plan_doc *p,
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
    json_object_set_new(
        doc, "band",
        topt_prediction_band(q->hw, &p->settings, &total, p->program->peak_bytes));
out:
    topt_router_destroy(router);
    json_decref(ops);
    return doc;
}

static int same_models(const struct topt_model *a, const struct topt_model *b)
{
    json_t *x = topt_model_to_json(a), *y = topt_model_to_json(b);
    int same = json_equal(x, y);
    json_decref(x);
    json_decref(y);
    return same;
}

/* The plan's model is the question's: with queries, keys and values apart where the plan has context ranks. */
static int same_model(struct topt_question *q, const struct topt_plan_doc *p,
                      struct topt_error *err)
{
    if (same_models(q->model, p->model))
        return 0;
    if (topt_ask_apart(q, err))
        return -1;
    return same_models(q->model, p->model)
               ? 0
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
    int counted =
        topt_json_whole_at(doc, "peak_bytes") > topt_json_whole_at(doc, "memory_bytes");
    printf("memory %s %s, %s at the peak%s; time %s\n",
           topt_show_bytes(topt_json_whole_at(doc, "memory_bytes"), a, sizeof a),
           counted ? "as papers count it" : "at most",
           topt_show_bytes(topt_json_whole_at(doc, "peak_bytes"), b, sizeof b),
           counted ? " of a run" : "",
           topt_show_ns(topt_json_whole_at(doc, "time_ns"), c, sizeof c));
    printf("%-24s %12s %12s %12s\n", "operator", "memory", "compute", "network");
    json_array_foreach(json_object_get(doc, "ops"), i, o)
        printf("%-24s %12s %12s %12s\n", topt_json_words_at(o, "name"),
               topt_show_bytes(topt_json_whole_at(o, "memory_bytes"), a, sizeof a),
               topt_show_ns(topt_json_whole_at(o, "compute_ns"), b, sizeof b),
               topt_show_ns(topt_json_whole_at(o, "network_ns"), c, sizeof c));
}

int topt_cmd_evaluate(int argc, char **argv)
{
    static const char usage[] =
        "topt evaluate MODEL --hw HW --plan plan.json [options]\n"
        "Memory and time of a given plan, by part and by operator.";
    struct topt_question q;
    struct topt_error err = {0};
    struct topt_plan_doc *p = NULL;
    json_t *doc = NULL;
    int rc = topt_ask(&q, evaluate_options, usage, "topt", argc, argv, &err);
    if (!rc && !q.a.plan)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "--plan is needed");
    rc = rc ? rc : topt_plan_load(q.a.plan, &p, &err);
    rc = rc ? rc : same_model(&q, p, &err);
    if (!rc) {
        doc = evaluation(&q, p, &err);
        rc = doc ? 0 : -1;
    }
    if (!rc && (q.a.json || q.a.output))
        rc = topt_cli_write_json(doc, q.a.output ? q.a.output : "-", &err);
    else if (!rc)
        show_evaluation(doc);
    json_decref(doc);
    topt_plan_doc_destroy(p);
    topt_ask_fini(&q);
    return rc == 1 ? 0 : rc ? topt_cli_fail("evaluate", &err) : 0;
}

/* ---- sample, costgraph ------------------------------------------------------------- */

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
                          : topt_cli_write_json(plan, path.s, err);
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
    struct topt_question q;
    struct topt_error err = {0};
    json_t *plans = NULL;
    int rc = topt_ask(&q, sample_options, usage, "topt", argc, argv, &err);
    if (!rc && (q.r.ngpu_list != 1 || q.a.count < 1 || q.a.count > 100000))
        rc = topt_fail(&err, TOPT_ERR_USAGE, "needs one --gpus N, and --count 1..100000");
    rc = rc ? rc
            : topt_plan_sample(&q.r, (int)q.a.count, (uint64_t)q.a.seed, &plans, &err);
    if (!rc && q.a.output && strcmp(q.a.output, "-"))
        rc = write_samples(plans, q.a.output, &err);
    else if (!rc)
        rc = topt_cli_write_json(plans, "-", &err);
    json_decref(plans);
    topt_ask_fini(&q);
    return rc == 1 ? 0 : rc ? topt_cli_fail("sample", &err) : 0;
}

int topt_cmd_costgraph(int argc, char **argv)
{
    static const char usage[] =
        "topt costgraph MODEL --hw HW --gpus N -o costs.json\n"
        "The bare combinatorial problem, for topt solve and for other programs.";
    struct topt_question q;
    struct topt_error err = {0};
    char *text = NULL;
    int rc = topt_ask(&q, costgraph_options, usage, "topt", argc, argv, &err);
    if (!rc && q.r.ngpu_list != 1)
        rc = topt_fail(&err, TOPT_ERR_USAGE, "a problem needs one --gpus N");
    if (!rc)
        topt_ask_watch(&q);
    rc = rc ? rc : topt_plan_costgraph(&q.r, &text, &err);
    topt_watch_stop(&q.watch);
    if (!rc)
        rc = topt_write_file(q.a.output ? q.a.output : "-", text, strlen(text), &err);
    free(text);
    topt_ask_fini(&q);
    return rc == 1 ? 0 : rc ? topt_cli_fail("costgraph", &err) : 0;
}
