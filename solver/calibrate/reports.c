/* reports.c - measured steps from files: what was measured, and the plan that ran.
 *
 * A plan is inside of a measurement, is named by its id and stands in another file, or follows from the
 * degrees of a framework that did what it was told by somebody else. */
#include "calibrate_parts.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "topt_array.h"
#include "topt_json.h"
#include "topt_plan.h"
#include "topt_text.h"

enum { MAX_FILE = 64 << 20 };

void topt_reports_destroy(struct topt_reports *r)
{
    if (!r)
        return;
    for (int i = 0; i < r->n; i++) {
        free(r->at[i].name);
        topt_plan_doc_destroy(r->at[i].plan);
    }
    free(r->at);
    json_decref(r->plans);
    free(r);
}

/* ---- plans -------------------------------------------------------------------------- */

/* The words of a question that a measurement has. */
static int read_words(const json_t *doc, struct topt_query *ret, struct topt_error *err)
{
    static const char *const fields[] = {"framework", "precision", "optimizer",
                                         "train",     "batch",     "seq",
                                         "overlap",   "attention", "eager"};
    const char *source = "";
    json_t *words = json_pack("{s:O}", "gpus", json_object_get(doc, "gpus"));
    for (size_t i = 0; words && i < sizeof fields / sizeof *fields; i++)
        if (json_object_get(doc, fields[i]))
            json_object_set(words, fields[i], json_object_get(doc, fields[i]));
    int rc = words ? topt_query_from_json(TOPT_QUERY_PLAN, words, ret, &source, err)
                   : topt_fail(err, TOPT_ERR_INVAL, "gpus is missing");
    json_decref(words);
    return rc;
}

/* The model's file beside the measurement's, or as it is named. */
static struct topt_model *load_model(const json_t *doc, const char *path,
                                     const struct topt_query *words,
                                     struct topt_error *err)
{
    const char *name = topt_json_words_at(doc, "model");
    struct topt_import_options o = {.batch = words->batch,
                                    .seq = words->seq,
                                    .document_length = words->document_length,
                                    .mtp = words->mtp,
                                    .train = *words->train ? words->train : NULL};
    char beside[1024], own[1024];
    snprintf(own, sizeof own, "%s", path);
    snprintf(beside, sizeof beside, "%s/%s", dirname(own), name);
    if (!*name) {
        topt_fail(err, TOPT_ERR_INVAL, "model is missing: the model's file, or a plan");
        return NULL;
    }
    return topt_model_load(access(beside, R_OK) ? name : beside, &o, err);
}

static int read_degrees(const json_t *doc, const struct topt_query *words,
                        struct topt_fixed *ret, int64_t *ret_micro,
                        struct topt_error *err)
{
    static const char *const fields[] = {"dp",        "tp",          "zero",
                                         "recompute", "micro_batch", NULL};
    const json_t *u = json_object_get(doc, "uniform");
    int64_t micro = 1, batch = words->batch;
    int recompute = 0;
    *ret = (struct topt_fixed){.any = 1, .data = 1, .tensor = 1};
    if (!u)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "uniform is missing: the degrees {\"dp\", \"tp\", \"zero\", "
                         "\"recompute\", \"micro_batch\"}, or a plan");
    if (topt_json_only(u, "uniform", fields, err) ||
        topt_json_int_or(u, "uniform", "dp", 1, 1 << 20, &ret->data, err) ||
        topt_json_int_or(u, "uniform", "tp", 1, 1 << 20, &ret->tensor, err) ||
        topt_json_int_or(u, "uniform", "zero", 0, 3, &ret->zero, err) ||
        topt_json_bool_or(u, "uniform", "recompute", &recompute, err) ||
        topt_json_int(u, "uniform", "micro_batch", 1, (int64_t)1 << 30, &micro, err))
        return -1;
    ret->recompute = recompute;
    if (ret->data * ret->tensor != words->gpus[0])
        return topt_fail(err, TOPT_ERR_INVAL, "uniform: dp x tp is %lld, and gpus %lld",
                         (long long)(ret->data * ret->tensor), (long long)words->gpus[0]);
    if (batch % (ret->data * micro))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "batch %lld is no multiple of dp x micro_batch, %lld",
                         (long long)batch, (long long)(ret->data * micro));
    *ret_micro = batch / (ret->data * micro);
    return 0;
}

/* The plan that such a run had, on 'hw'; a new reference. */
static json_t *plan_of_degrees(const json_t *doc, const char *path,
                               const struct topt_hw *hw, struct topt_error *err)
{
    struct topt_query words;
    struct topt_request r;
    int64_t micro = 1;
    json_t *answer = NULL, *plan = NULL;
    topt_request_init(&r);
    if (read_words(doc, &words, err) || topt_request_read(&words, &r, NULL, err))
        return NULL;
    if (words.batch < 1) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "batch is missing: samples per step over all GPUs");
        return NULL;
    }
    if (read_degrees(doc, &words, &r.fixed, &micro, err))
        return NULL;
    struct topt_model *m = load_model(doc, path, &words, err);
    r.model = m;
    r.hw = hw;
    r.micro_batches = micro;
    r.tensor_parallel = r.fixed.tensor > 1;
    r.threads = 1;
    if (m && !topt_request_complete(&r, err)) {
        r.memory_limit = INT64_MAX / 4; /* it ran, whatever is predicted */
        int rc = topt_plan(&r, &answer, err);
        plan = rc ? NULL : json_incref(json_object_get(answer, "plan"));
        if (!plan && (!rc || err->code == TOPT_ERR_INFEASIBLE))
            topt_fail(err, TOPT_ERR_INVAL, "%s has no such degrees for this model",
                      r.framework->title);
    }
    json_decref(answer);
    topt_model_destroy(m);
    return plan;
}

/* ---- measurements ------------------------------------------------------------------- */

static int add(struct topt_reports *r, const char *name, const json_t *plan,
               double step_ns, double reserved, struct topt_error *err)
{
    if (step_ns <= 0)
        return topt_fail(err, TOPT_ERR_INVAL, "%s: no step was measured", name);
    if (TOPT_RESIZE(r->at, r->n + 1))
        return topt_nomem(err, "the reports");
    struct report *x = &r->at[r->n];
    *x = (struct report){.step_ns = step_ns, .reserved_bytes = reserved};
    if (topt_plan_read(plan, &x->plan, err))
        return topt_wrap(err, "%s", name);
    r->n++;
    x->name = strdup(name);
    return x->name ? 0 : topt_nomem(err, "the reports");
}

/* One that names its plan by id. */
static int add_of_id(struct topt_reports *r, const char *name, const char *id,
                     double step_ns, struct topt_error *err)
{
    const json_t *plan = json_object_get(r->plans, id);
    if (!plan)
        return topt_fail(err, TOPT_ERR_NOTFOUND,
                         "%s: its plan %.40s is in none of the files; add the plan "
                         "(topt client get-plan %.40s -o plan.json)",
                         name, id, id);
    return add(r, name, plan, step_ns, 0, err);
}

static int add_measured(struct topt_reports *r, const char *path, const json_t *doc,
                        const struct topt_hw *hw, struct topt_error *err)
{
    static const char *const fields[] = {"format",
                                         "model",
                                         "plan",
                                         "framework",
                                         "precision",
                                         "optimizer",
                                         "train",
                                         "gpus",
                                         "batch",
                                         "seq",
                                         "overlap",
                                         "attention",
                                         "eager",
                                         "uniform",
                                         "step_seconds",
                                         "max_memory_allocated",
                                         "max_memory_reserved",
                                         "source",
                                         NULL};
    double seconds = 0, reserved = 0;
    if (topt_json_only(doc, "", fields, err) ||
        topt_json_real(doc, "", "step_seconds", 1e-9, 1e9, &seconds, err) ||
        topt_json_real_or(doc, "", "max_memory_reserved", 0, 1e15, &reserved, err))
        return topt_wrap(err, "%s", path);
    const json_t *inside = json_object_get(doc, "plan");
    if (json_is_string(inside))
        return add_of_id(r, path, json_string_value(inside), seconds * 1e9, err);
    json_t *plan = inside ? json_incref((json_t *)topt_plan_in(inside))
                          : plan_of_degrees(doc, path, hw, err);
    if (!plan)
        return topt_wrap(err, "%s", path);
    int rc = add(r, path, plan, seconds * 1e9, reserved, err);
    json_decref(plan);
    return rc;
}

static int add_observations(struct topt_reports *r, const char *path, const json_t *doc,
                            struct topt_error *err)
{
    size_t i;
    json_t *o;
    json_array_foreach(json_object_get(doc, "observations"), i, o)
    {
        char name[512];
        snprintf(name, sizeof name, "%.400s: job %lld", path,
                 (long long)topt_json_whole_at(o, "job"));
        if (topt_json_whole_at(o, "step_ns") &&
            add_of_id(r, name, topt_json_words_at(o, "plan_id"),
                      topt_json_number_at(o, "step_ns"), err))
            return -1;
    }
    return 0;
}

static int is_plan(const json_t *doc)
{
    return !strcmp(topt_json_words_at(topt_plan_in(doc), "format"), "topt-plan/1");
}

static int add_file(struct topt_reports *r, const char *path, const json_t *doc,
                    const struct topt_hw *hw, struct topt_error *err)
{
    const char *format = topt_json_words_at(doc, "format");
    if (!strcmp(format, "topt-measured/1"))
        return add_measured(r, path, doc, hw, err);
    if (!strcmp(format, "topt-report/1"))
        return add_of_id(r, path, topt_json_words_at(doc, "plan"),
                         topt_json_number_at(doc, "median_step_ns"), err);
    if (!strcmp(format, "topt-observations/1"))
        return add_observations(r, path, doc, err);
    if (is_plan(doc))
        return 0;
    return topt_fail(
        err, TOPT_ERR_INVAL,
        "%s: '%.40s' is no measurement; give topt-measured/1, topt-report/1, "
        "topt-observations/1, and the plans that these name",
        path, format);
}

int topt_reports_read(const char *const *paths, int n, const struct topt_hw *hw,
                      struct topt_reports **ret, struct topt_error *err)
{
    if (topt_hw_groups(hw))
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "'%s' has groups of unlike devices; calibrate the profile of each",
            topt_hw_name(hw));
    struct topt_reports *r = calloc(1, sizeof *r);
    json_t **doc = calloc((size_t)n + 1, sizeof *doc);
    int rc = r && doc && (r->plans = json_object()) ? 0 : topt_nomem(err, "the reports");
    for (int i = 0; i < n && !rc; i++) {
        doc[i] = topt_json_load(paths[i], MAX_FILE, err);
        rc = doc[i] ? 0 : -1;
        const json_t *plan = rc ? NULL : topt_plan_in(doc[i]);
        if (!rc && is_plan(doc[i]))
            json_object_set(r->plans, topt_json_words_at(plan, "id"), (json_t *)plan);
        size_t k;
        json_t *inside;
        json_array_foreach(json_object_get(doc[i], "plans"), k, inside)
            json_object_set(r->plans, topt_json_words_at(inside, "id"), inside);
    }
    for (int i = 0; i < n && !rc; i++)
        rc = add_file(r, paths[i], doc[i], hw, err);
    if (!rc && !r->n)
        rc = topt_fail(err, TOPT_ERR_INVAL, "none of the files holds a measured step");
    for (int i = 0; doc && i < n; i++)
        json_decref(doc[i]);
    free(doc);
    if (rc)
        topt_reports_destroy(r);
    else
        *ret = r;
    return rc ? -1 : 0;
}

int report_cost(const struct report *r, const struct topt_hw *hw,
                const struct topt_settings *settings, struct topt_strategy_cost *ret,
                struct topt_error *err)
{
    const struct topt_plan_doc *p = r->plan;
    struct topt_router *router = topt_router_create(hw, &p->mesh);
    struct topt_costing k = {p->micro, hw, &p->mesh, settings, router, NULL};
    int rc = router ? topt_cost_strategy(&k, p->strategy, ret, err)
                    : topt_nomem(err, "the prediction");
    topt_router_destroy(router);
    return rc ? topt_wrap(err, "%s", r->name) : 0;
}
