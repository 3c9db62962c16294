/* cmd_simulate.c - simulate: a step of a plan in time, as figures, a trace or a picture. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "topt_cli.h"
#include "topt_drawing.h"
#include "topt_json.h"
#include "topt_plan_doc.h"
#include "topt_question.h"
#include "topt_simulate.h"
#include "topt_staged.h"
#include "topt_text.h"

struct args {
    const char *overlap, *trace, *svg, *output;
    int64_t bucket;
    int json;
};

#define AT(field) offsetof(struct args, field)
static const struct topt_option options[] = {
    TOPT_EXAMPLE("topt simulate plan.json --svg step.svg",
                 "a step in time, as a picture"),
    {"overlap", TOPT_OPT_STRING, AT(overlap), "NAME",
     "communication that overlaps with compute: none, ddp or fsdp (default: as in the "
     "plan)"},
    {"bucket", TOPT_OPT_BYTES, AT(bucket), "SIZE",
     "all-reduce gradients in buckets of SIZE (default: one by one)"},
    {"trace", TOPT_OPT_STRING, AT(trace), "FILE",
     "write all tasks for chrome://tracing or Perfetto"},
    {"svg", TOPT_OPT_STRING, AT(svg), "FILE", "draw a timeline"},
    {"json", TOPT_OPT_FLAG, AT(json), "", "JSON on standard output"},
    {"o", TOPT_OPT_STRING, AT(output), "FILE", "write the result to a file"},
    {0}};
static const char usage[] =
    "topt simulate plan.json [options]\n"
    "Simulate a step of a plan: compute, communication and their overlap over time.";

static int put_file(const char *path, char *text, struct topt_error *err)
{
    int rc = text ? topt_write_file(path, text, strlen(text), err)
                  : topt_fail(err, TOPT_ERR_NOMEM, "no memory for '%s'", path);
    free(text);
    return rc;
}

/* 'strategy': in words. */
static char *title_of(const struct topt_plan_doc *p, const char *strategy,
                      enum topt_overlap overlap)
{
    struct topt_text t = {0};
    topt_text_add(&t, "%s on %d GPU%s of %s: %s; overlap %s", p->model->name, p->gpus,
                  p->gpus > 1 ? "s" : "", topt_hw_name(p->hw), strategy,
                  topt_overlap_name(overlap));
    return t.s;
}

/* Nothing into a document that was not made. */
static void put_prediction(const struct topt_plan_doc *p, json_t *doc)
{
    if (p->id[0])
        json_object_set_new(doc, "plan_id", json_string(p->id));
    json_object_set_new(doc, "predicted_ns", json_integer(p->time_ns));
}

/* What is predicted of a plan is predicted under its own overlap. */
static json_t *document(const struct topt_plan_doc *p, const struct topt_simulation *s,
                        const struct topt_simulate_options *o)
{
    json_t *doc = topt_simulation_json(s, o);
    put_prediction(p, doc);
    if (o->overlap != p->settings.overlap)
        json_object_del(doc, "predicted_ns");
    return doc;
}

static void show(const json_t *doc)
{
    char a[32], b[32], c[32];
    const json_t *links = json_object_get(doc, "links_ns");
    int64_t time = topt_json_whole_at(doc, "time_ns"),
            compute = topt_json_whole_at(doc, "compute_ns"),
            exposed = topt_json_whole_at(doc, "idle_ns"),
            predicted = topt_json_whole_at(doc, "predicted_ns");
    printf("%s per step: %s compute, %s exposed communication",
           topt_show_ns(time, a, sizeof a), topt_show_ns(compute, b, sizeof b),
           topt_show_ns(time - compute, c, sizeof c));
    printf(" (%s in which nothing computes, %s by slowing overlapped compute)\n",
           topt_show_ns(exposed, a, sizeof a),
           topt_show_ns(time - compute - exposed, b, sizeof b));
    printf("links     busy %s inside nodes, %s between nodes; overlap %s\n",
           topt_show_ns(topt_json_whole_at(links, "node"), a, sizeof a),
           topt_show_ns(topt_json_whole_at(links, "network"), b, sizeof b),
           topt_json_words_at(doc, "overlap"));
    if (predicted > 0)
        printf("plan      predicts %s (%+.1f %%)\n", topt_show_ns(predicted, a, sizeof a),
               100 * ((double)predicted / (double)(time ? time : 1) - 1));
}

static int simulate(const struct args *a, const struct topt_plan_doc *p,
                    struct topt_error *err)
{
    struct topt_costing k = {p->micro, p->hw, &p->mesh, &p->settings, p->router, NULL};
    struct topt_simulate_options o = {.overlap = p->settings.overlap,
                                      .bucket_bytes = a->bucket};
    struct topt_simulation s;
    if (a->overlap && topt_overlap_parse(a->overlap, &o.overlap, err)) {
        if (err)
            err->code = TOPT_ERR_USAGE;
        return -1;
    }
    if (topt_simulate(&k, p->strategy, &o, &s, err))
        return -1;
    char *words = topt_plan_strategy_words(p);
    char *title = title_of(p, words ? words : "", o.overlap);
    json_t *doc = document(p, &s, &o);
    int rc = 0;
    if (a->trace)
        rc = put_file(a->trace, topt_simulation_trace(&s), err);
    if (!rc && a->svg)
        rc = put_file(a->svg, topt_simulation_svg(&s, title ? title : ""), err);
    if (!rc && (a->json || a->output))
        rc = topt_cli_write_json(doc, a->output ? a->output : "-", err);
    else if (!rc)
        show(doc);
    free(words);
    free(title);
    json_decref(doc);
    topt_simulation_fini(&s);
    return rc;
}

static void show_stages(const json_t *doc)
{
    char a[32], b[32], c[32];
    size_t i;
    json_t *x;
    int64_t time = topt_json_whole_at(doc, "time_ns");
    printf("%s per step: %s compute, %s exposed communication, %s bubble and waiting\n",
           topt_show_ns(time, a, sizeof a),
           topt_show_ns(topt_json_whole_at(doc, "compute_ns"), b, sizeof b),
           topt_show_ns(topt_json_whole_at(doc, "network_ns"), c, sizeof c),
           topt_show_ns(topt_json_whole_at(doc, "idle_ns"), (char[32]){0}, 32));
    printf("schedule  %s, %lld micro-batches\n  stage       busy     bubble     memory\n",
           topt_json_words_at(doc, "schedule"),
           (long long)topt_json_whole_at(doc, "of_micro_batches"));
    json_array_foreach(json_object_get(doc, "stages"), i, x)
        printf("  %5zu %10s %10s %10s\n", i,
               topt_show_ns(topt_json_whole_at(x, "busy_ns"), a, sizeof a),
               topt_show_ns(topt_json_whole_at(x, "bubble_ns"), b, sizeof b),
               topt_show_bytes(topt_json_whole_at(x, "memory_bytes"), c, sizeof c));
}

/* Of pipeline stages the passes of their schedule. */
static int simulate_stages(const struct args *a, const struct topt_plan_doc *p,
                           const json_t *plan, struct topt_error *err)
{
    struct topt_costing k = {p->micro, p->hw, &p->mesh, &p->settings, p->router, NULL};
    struct topt_staged s;
    if (a->overlap || a->bucket)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "--overlap and --bucket are for plans without pipeline stages; "
                         "ask topt plan with --overlap");
    if (topt_staged_step(&k, p->strategy, &s, err))
        return -1;
    char *title = title_of(p, topt_json_words_at(plan, "strategy"), p->settings.overlap);
    json_t *doc = topt_staged_json(&s);
    int rc = doc ? 0 : topt_nomem(err, "the schedule");
    put_prediction(p, doc);
    if (!rc && a->trace)
        rc = put_file(a->trace, topt_trace_stages(doc), err);
    if (!rc && a->svg)
        rc = put_file(a->svg, topt_svg_stages(doc, title ? title : ""), err);
    if (!rc && (a->json || a->output))
        rc = topt_cli_write_json(doc, a->output ? a->output : "-", err);
    else if (!rc)
        show_stages(doc);
    free(title);
    json_decref(doc);
    topt_staged_fini(&s);
    return rc;
}

/* Its instructions are a device's. */
static int all_on_device(const struct topt_plan_doc *p, struct topt_error *err)
{
    return p->settings.offload
               ? topt_fail(err, TOPT_ERR_USAGE,
                           "a part of this plan rests on the host, whose copies are not "
                           "simulated; topt explain says what they cost")
               : 0;
}

int topt_cmd_simulate(int argc, char **argv)
{
    struct args a = {0};
    struct topt_error err = {0};
    struct topt_plan_doc *p = NULL;
    const char *path[1];
    int rc = topt_cli_plan(options, usage, argc, argv, &a, path, &err);
    if (rc == 1)
        return 0;
    json_t *doc = rc ? NULL : topt_cli_read_plan(path[0], &err);
    rc = !doc || topt_plan_read(topt_plan_in(doc), &p, &err) || all_on_device(p, &err) ||
         (p->settings.stages > 1 ? simulate_stages(&a, p, topt_plan_in(doc), &err)
                                 : simulate(&a, p, &err));
    json_decref(doc);
    topt_plan_doc_destroy(p);
    return rc ? topt_cli_fail("simulate", &err) : 0;
}
