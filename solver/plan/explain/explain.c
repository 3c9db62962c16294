/* explain.c - a plan in the words a researcher uses: why it is the one, memory by part,
 * what is split where, where the time goes, how good the search was, and what the neighbouring
 * counts of GPUs answer to what the plan was asked. */
#include "explain_parts.h"
#include "best.h"
#include "planning.h"
#include "request.h"
#include "topt_answer_text.h"
#include "topt_choices.h"
#include "topt_framework.h"
#include "topt_json.h"
#include "topt_question.h"
#include "topt_rates.h"

#include <stdlib.h>
#include <string.h>

/* The plan's step and the question behind it, for topt_rates.h; owned by the caller. */
static json_t *rates_of(const struct topt_plan_doc *p)
{
    struct topt_request r;
    topt_request_init(&r);
    r.model = p->model;
    r.hw = p->hw;
    r.settings = p->settings;
    json_t *row =
        json_pack("{s:b, s:I, s:i, s:o}", "feasible", 1, "time_ns",
                  (json_int_t)p->time_ns, "gpus", p->gpus, "job", topt_request_job(&r));
    topt_rates_put_all(row);
    return row;
}

static void put_head(struct topt_text *t, const struct topt_plan_doc *p,
                     const json_t *doc)
{
    char a[32], b[32], c[32];
    const struct topt_framework *f = NULL;
    const char *name = json_string_value(json_object_get(doc, "framework"));
    topt_text_add(t, "%s on ", p->model->name);
    topt_text_of_gpus(t, p->gpus, p->nodes, p->per_node);
    topt_text_add(t, " of %s (%s), batch %lld", topt_hw_name(p->hw),
                  topt_hw_device(p->hw), (long long)p->model->batch);
    if (p->model->seq > 1)
        topt_text_add(t, ", sequence length %s", topt_rates_grouped(p->model->seq, a));
    topt_text_add(t, "\nStrategy: %s.\n", topt_json_words_at(doc, "strategy"));
    if (name && !topt_framework_find(name, &f, NULL))
        topt_text_add(t, "Framework: %s, source: %s.\n", f->title, f->source);
    const char *why = json_string_value(json_object_get(doc, "why"));
    if (why)
        topt_text_add(t, "Why: %s.\n", why);
    const json_t *band = json_object_get(
        json_object_get(json_object_get(doc, "predicted"), "band"), "time");
    json_t *rates = rates_of(p);
    const json_t *job = json_object_get(rates, "job");
    topt_text_add(t, "A step of %lld %s takes %s", (long long)p->model->batch,
                  topt_rates_samples(job), topt_show_ns(p->time_ns, a, sizeof a));
    if (band)
        topt_text_add(t, " (%s to %s)",
                      topt_show_ns(topt_json_whole_at(band, "low_ns"), b, sizeof b),
                      topt_show_ns(topt_json_whole_at(band, "high_ns"), c, sizeof c));
    topt_text_add(t, " with %s: ", topt_optimizer_name(p->settings.optimizer));
    topt_rates_text(t, rates, job);
    json_decref(rates);
    topt_text_add(t, ".\nPrecision %s: %s.\n", topt_precision_of(&p->settings)->name,
                  topt_precision_of(&p->settings)->means);
    if (p->settings.micro_batches > 1)
        topt_text_add(t, "Gradient accumulation: %lld steps of %lld sample%s each.\n",
                      (long long)p->settings.micro_batches, (long long)p->micro->batch,
                      p->micro->batch == 1 ? "" : "s");
}

static void put_part(struct topt_text *t, const char *name, int64_t bytes, int64_t all)
{
    enum { WIDTH = 30 };
    char a[32];
    if (!bytes)
        return;
    int n = (int)((double)bytes / (double)(all > 0 ? all : 1) * WIDTH + 0.5);
    topt_text_add(t, "  %-32s %10s %3.0f %%  ", name, topt_show_bytes(bytes, a, sizeof a),
                  100.0 * (double)bytes / (double)(all > 0 ? all : 1));
    for (int i = 0; i < n && i < WIDTH; i++)
        topt_text_add(t, "\u2588");
    topt_text_add(t, "\n");
}

static void put_memory(struct topt_text *t, const struct topt_plan_doc *p,
                       const json_t *doc)
{
    char a[32], b[32], c[32];
    const char *key;
    json_t *value;
    int64_t limit = topt_json_whole_at(doc, "memory_limit");
    const json_t *predicted = json_object_get(doc, "predicted");
    json_t *parts = json_object_get(predicted, "memory_parts");
    const char *verdict = topt_json_words_at(predicted, "verdict");
    char *peak = topt_text_of_peak(parts);
    char *band = topt_text_of_memory_band(json_object_get(predicted, "band"), verdict);
    int papers = topt_accounting_is_papers(p->settings.accounting);
    topt_text_add(t, "\nMemory per GPU%s: %s",
                  papers ? " as papers count it" : " at the peak",
                  topt_show_bytes(p->memory_bytes, a, sizeof a));
    if (papers || (p->settings.gather == TOPT_GATHER_OPERATOR && p->settings.stages < 2))
        topt_text_add(t, " (a run needs %s)",
                      topt_show_bytes(p->program->peak_bytes, b, sizeof b));
    if (limit)
        topt_text_add(t, " of %s usable: %s", topt_show_bytes(limit, c, sizeof c),
                      verdict);
    topt_text_add(t, "\n");
    topt_memory_words(t, json_object_get(json_object_get(doc, "predicted"), "memory"));
    json_object_foreach(parts, key, value)
    {
        if (strcmp(key, "reserve"))
            put_part(t, topt_part_words(key), json_integer_value(value), p->memory_bytes);
    }
    if (peak)
        topt_text_add(t, "  %s\n", peak);
    free(peak);
    if (band)
        topt_text_add(t, "  %s\n", band);
    free(band);
    char *host = topt_text_of_host(json_object_get(predicted, "host"));
    if (host)
        topt_text_add(t, "  on the host: %s\n", host);
    free(host);
}

/* ---- why not fewer GPUs, and what more would buy ------------------------------------------ */

/* The request that the plan answers, as far as its document says. */
static int request_of(const struct topt_plan_doc *p, const json_t *doc,
                      const struct topt_explain_options *o, struct topt_request *r,
                      struct topt_error *err)
{
    const char *space = json_string_value(json_object_get(doc, "space"));
    const char *blocks = json_string_value(json_object_get(doc, "blocks"));
    topt_request_init(r);
    r->model = p->model;
    r->hw = p->hw;
    r->mode = TOPT_MINI_TIME;
    r->settings = p->settings;
    r->memory_limit = topt_json_whole_at(doc, "memory_limit");
    const char *algorithm = topt_json_words_at(doc, "algorithm");
    r->algorithm = *algorithm && strcmp(algorithm, "ft") ? algorithm : NULL;
    r->epsilon = json_number_value(json_object_get(doc, "epsilon"));
    r->threads = o->threads;
    r->progress = o->progress;
    r->cancel = o->cancel;
    const char *framework = json_string_value(json_object_get(doc, "framework"));
    r->counts = framework ? TOPT_COUNTS_WHOLE : TOPT_COUNTS_ANY;
    if (framework && topt_framework_find(framework, &r->framework, err))
        return -1;
    if ((space && topt_space_parse(space, &r->space, err)) ||
        (blocks && topt_blocks_parse(blocks, &r->blocks, err)))
        return -1;
    if (r->space == TOPT_SPACE_UNIFORM)
        return 0;
    for (int i = 0; i < p->model->nops; i++)
        if (p->strategy->config[i].recompute)
            r->factors = TOPT_FACTOR_ZERO | TOPT_FACTOR_RECOMPUTE;
    r->micro_batches = p->settings.micro_batches;
    return 0;
}

/* The counts that are asked about, ascending: the nearest ones that the request tries and
 * that can share the batch, and twice as many.  Returns how many, or -1. */
static int counts_of(const struct topt_request *r, int64_t gpus, int64_t ret[3],
                     struct topt_error *err)
{
    int64_t *count = NULL, fewer = 0, more = 0, twice = 0;
    struct topt_planning m;
    int all = 0, n = 0;
    if (topt_planning_init(&m, r, err))
        return -1;
    int rc = topt_request_counts(r, &count, &all, err);
    for (int i = 0; !rc && i < all; i++) {
        if (!topt_count_divides_batch(&m, count[i], NULL))
            continue;
        if (count[i] < gpus)
            fewer = count[i];
        if (count[i] > gpus && !more)
            more = count[i];
        if (count[i] == 2 * gpus)
            twice = count[i];
    }
    topt_planning_fini(&m);
    free(count);
    const int64_t near[] = {fewer, more, twice != more ? twice : 0};
    for (int i = 0; i < 3; i++)
        if (near[i])
            ret[n++] = near[i];
    return rc ? -1 : n;
}

/* Append what a request is answered: {"gpus","pipeline","feasible","memory_limit","memory_bytes","time_ns"}; a
 * number of stages that nothing has stays out. */
static int add_answer(json_t *list, const struct topt_request *r, struct topt_error *err)
{
    json_t *answer;
    if (topt_plan(r, &answer, err))
        return r->pipeline && err && err->code == TOPT_ERR_INFEASIBLE ? 0 : -1;
    json_t *fits = json_object_get(answer, "feasible");
    const json_t *what = json_is_true(fits) ? answer : json_object_get(answer, "nearest");
    json_t *row =
        json_pack("{s:I, s:O, s:I, s:I, s:I}", "gpus", (json_int_t)r->gpus, "feasible",
                  fits, "memory_limit", (json_int_t)topt_request_limit(r), "memory_bytes",
                  (json_int_t)topt_json_whole_at(what, "memory_bytes"), "time_ns",
                  (json_int_t)topt_json_whole_at(what, "time_ns"));
    if (r->pipeline)
        json_object_set_new(row, "pipeline", json_integer(r->pipeline));
    json_array_append_new(list, row);
    json_decref(answer);
    return 0;
}

/* The answers for fewer and for more GPUs, searched as the plan was:
 * [{"gpus","feasible","memory_limit","memory_bytes","time_ns"}]. */
static json_t *around_json(const struct topt_plan_doc *p, const json_t *doc,
                           const struct topt_explain_options *o, struct topt_error *err)
{
    struct topt_request r;
    int64_t count[3];
    int n = request_of(p, doc, o, &r, err) ? -1 : counts_of(&r, p->gpus, count, err);
    if (n < 0)
        return NULL;
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        r.gpus = count[i];
        if (add_answer(list, &r, err)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* The same GPUs without pipeline stages, and with the next numbers of them that are searched; an empty list of
 * a plan that has none. */
static json_t *stages_around_json(const struct topt_plan_doc *p, const json_t *doc,
                                  const struct topt_explain_options *o,
                                  struct topt_error *err)
{
    int own = (int)p->settings.stages, fewer = 1, more = 0;
    struct topt_request r;
    struct topt_planning m;
    json_t *list = json_array();
    if (own < 2)
        return list;
    if (request_of(p, doc, o, &r, err) || topt_planning_init(&m, &r, err)) {
        json_decref(list);
        return NULL;
    }
    for (int s = 2; s <= topt_planning_most_stages(&m) && !more; s++) {
        int nodes = p->nodes, per_node = p->per_node;
        if (!topt_planning_stages(&m, s) || !topt_stage_grid(s, &nodes, &per_node))
            continue;
        fewer = s < own ? s : fewer;
        more = s > own ? s : 0;
    }
    topt_planning_fini(&m);
    const int near[] = {1, fewer > 1 ? fewer : 0, more};
    r.gpus = p->gpus;
    for (int i = 0; i < 3 && list; i++) {
        r.pipeline = near[i];
        if (near[i] && add_answer(list, &r, err)) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

static void put_infeasible(struct topt_text *t, const json_t *answer)
{
    char a[32], b[32];
    int64_t need = topt_json_whole_at(answer, "memory_bytes"),
            limit = topt_json_whole_at(answer, "memory_limit");
    if (json_is_null(json_object_get(answer, "feasible")))
        topt_text_add(t, "no plan was found that fits\n");
    else
        topt_text_add(t, "does not fit: needs at least %s per GPU, %s more than usable\n",
                      topt_show_bytes(need, a, sizeof a),
                      topt_show_bytes(need - limit, b, sizeof b));
}

static void put_feasible(struct topt_text *t, const struct topt_plan_doc *p,
                         const json_t *answer, int64_t gpus)
{
    char a[32], b[32];
    int64_t ns = topt_json_whole_at(answer, "time_ns");
    double times = (double)p->time_ns / (double)ns;
    double devices = (double)gpus / p->gpus;
    topt_text_add(
        t, "%s per step and %s per GPU: ", topt_show_ns(ns, a, sizeof a),
        topt_show_bytes(topt_json_whole_at(answer, "memory_bytes"), b, sizeof b));
    if (gpus > p->gpus)
        topt_text_add(
            t,
            "%.2f times as fast with %.3g times the GPUs (%.0f %% scaling efficiency)\n",
            times, devices, 100 * times / devices);
    else
        topt_text_add(t, "fits too, and takes %.2f times as long\n", 1 / times);
}

static void put_answers(struct topt_text *t, const struct topt_plan_doc *p,
                        const json_t *around)
{
    size_t i;
    json_t *x;
    json_array_foreach(around, i, x)
    {
        int64_t gpus = topt_json_whole_at(x, "gpus"),
                stages = topt_json_whole_at(x, "pipeline"), n = stages ? stages : gpus;
        topt_text_add(t, "  %lld %s%s: ", (long long)n, stages ? "stage" : "GPU",
                      n > 1 ? "s" : "");
        if (json_is_true(json_object_get(x, "feasible")))
            put_feasible(t, p, x, gpus);
        else
            put_infeasible(t, x);
    }
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int explain(struct topt_text *t, const struct topt_plan_doc *p, const json_t *doc,
                   const struct topt_explain_options *o, struct topt_error *err)
{
    const json_t *pins = json_object_get(doc, "pins");
    char *pinned = pins ? topt_pins_words(pins, p->time_ns, p->memory_bytes) : NULL;
    put_head(t, p, doc);
    if (pinned)
        topt_text_add(t, "Pinned: %s.\n", pinned);
    free(pinned);
    topt_text_of_search(t, doc);
    put_memory(t, p, doc);
    int rc = topt_explain_time(t, p, doc, err);
    topt_explain_splits(t, p, o->operators);
    rc = rc || topt_explain_tables(t, p, err);
    if (o->notation)
        topt_explain_notation(t, p);
    if (!rc && o->around) {
        json_t *around = around_json(p, doc, o, err);
        json_t *stages = around ? stages_around_json(p, doc, o, err) : NULL;
        rc = stages ? 0 : -1;
        if (stages) {
            if (json_array_size(stages)) {
                topt_text_add(t, "\nOther numbers of pipeline stages on %d GPUs:\n",
                              p->gpus);
                put_answers(t, p, stages);
            }
            /* Parts that are pinned are those of one number. */
            topt_text_add(t, "\nOther numbers of GPUs%s:\n",
                          json_object_get(doc, "pins") ? ", without --pin" : "");
            put_answers(t, p, around);
        }
        json_decref(stages);
        json_decref(around);
    }
    return rc;
}

char *topt_plan_explain(const json_t *plan, const struct topt_explain_options *o,
                        struct topt_error *err)
{
    struct topt_plan_doc *p;
    struct topt_text t = {0};
    const json_t *doc = topt_plan_in(plan);
    if (topt_plan_read(doc, &p, err))
        return NULL;
    int rc = explain(&t, p, doc, o, err);
    if (!rc && t.oom)
        rc = topt_fail(err, TOPT_ERR_NOMEM, "no memory to explain the plan");
    topt_plan_doc_destroy(p);
    if (rc)
        topt_text_fini(&t);
    return t.s;
}

/* The document's own head, without model and operators. */
static json_t *said(const json_t *doc)
{
    static const char *const keys[] = {
        "id",   "why",  "strategy",  "space",        "exact",    "epsilon", "heuristic",
        "mesh", "mode", "algorithm", "memory_limit", "settings", "pins"};
    json_t *ret = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_object_set(ret, keys[i], json_object_get(doc, keys[i]));
    return ret;
}

json_t *topt_plan_explain_json(const json_t *plan, const struct topt_explain_options *o,
                               struct topt_error *err)
{
    struct topt_plan_doc *p;
    const json_t *doc = topt_plan_in(plan),
                 *predicted = json_object_get(doc, "predicted");
    if (topt_plan_read(doc, &p, err))
        return NULL;
    json_t *ret = said(doc), *time = topt_explain_time_json(p, doc, err), *around = NULL,
           *stages = NULL, *tables = NULL;
    int rc = time ? 0 : -1;
    if (!rc && o->around)
        rc = (around = around_json(p, doc, o, err)) &&
                     (stages = stages_around_json(p, doc, o, err))
                 ? 0
                 : -1;
    if (!rc && topt_model_has_tables(p->micro))
        rc = (tables = topt_explain_tables_json(p, err)) ? 0 : -1;
    json_object_set_new(ret, "model", json_string(p->model->name));
    json_object_set_new(ret, "rates", rates_of(p));
    json_object_set(ret, "memory_parts", json_object_get(predicted, "memory_parts"));
    json_object_set(ret, "memory", json_object_get(predicted, "memory"));
    json_object_set(ret, "host", json_object_get(predicted, "host"));
    json_object_set(ret, "memory_bytes", json_object_get(predicted, "memory_bytes"));
    json_object_set(ret, "peak_bytes", json_object_get(predicted, "peak_bytes"));
    json_object_set_new(ret, "time", time); /* nothing where there is none, as below */
    json_object_set_new(ret, "splits", topt_explain_splits_json(p));
    json_object_set_new(ret, "tables", tables);
    json_object_set_new(ret, "around", around);
    if (json_array_size(stages))
        json_object_set(ret, "stages_around", stages);
    json_decref(stages);
    topt_plan_doc_destroy(p);
    if (rc)
        json_decref(ret);
    return rc ? NULL : ret;
}
