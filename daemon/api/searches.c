/* searches.c - what is done for a handler elsewhere: bodies are read, profiles checked, plans
 * searched.
 *
 * The last act of a search is to store what it found (model, plan and answer together), so a plan
 * is pinned before anybody hears of it, and fresh, cached and polled answers are one path. */
#include "operation.h"
#include "planner.h"
#include "server.h"
#include "topt_json.h"
#include "topt_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Options for sbatch that ask for what the plan needs. */
static json_t *slurm_flags(const json_t *answer)
{
    long long nodes = json_integer_value(json_object_get(answer, "nodes"));
    long long per = json_integer_value(json_object_get(answer, "gpus_per_node"));
    if (nodes < 1 || per < 1)
        return json_null();
    char flags[160];
    snprintf(flags, sizeof flags,
             "--nodes=%lld --gpus-per-node=%lld --ntasks-per-node=%lld --ntasks=%lld",
             nodes, per, per, nodes * per);
    return json_pack("{s:I, s:I, s:s}", "nodes", (json_int_t)nodes, "gpus_per_node",
                     (json_int_t)per, "flags", flags);
}

/* Split the solver's answer into what the store keeps. */
static int split(const struct operation *x, json_t *answer, struct store_answer *ret,
                 struct topt_error *err)
{
    json_t *plan = json_object_get(answer, "plan");
    const json_t *feasible = json_object_get(answer, "feasible");
    ret->feasible = x->query.kind != QUERY_PLAN || json_is_true(feasible);
    if (x->query.kind == QUERY_PLAN && ret->feasible) {
        char id[TOPT_ID];
        if (!plan)
            return topt_fail(err, TOPT_ERR_INTERNAL, "the answer holds no plan");
        if (planner_plan_id(plan, id, err) < 0)
            return -1;
        ret->plan_id = strdup(id);
        ret->plan = topt_json_text(plan, 0);
        json_object_set_new(answer, "plan_id", json_string(id));
        json_object_set_new(answer, "slurm", slurm_flags(answer));
        json_object_del(answer, "plan");
        if (!ret->plan_id || !ret->plan)
            return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    }
    json_object_set_new(answer, "model_id", json_string(x->model_id));
    json_object_set_new(answer, "hw_id", json_string(x->hw_id));
    ret->doc = topt_json_text(answer, 0);
    return ret->doc ? 0 : topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
}

/* One choice for the whole model is found in milliseconds. */
enum metrics_lane lane_of(const struct query *q)
{
    int uniform =
        *q->space ? !strcmp(q->space, "uniform") : strcmp(q->framework, "topt") != 0;
    return q->kind == QUERY_PLAN && uniform ? METRICS_SUBMIT : METRICS_SEARCH;
}

static int search(struct server *s, const struct operation *x, const atomic_bool *cancel,
                  struct store_answer *ret, struct topt_error *err)
{
    const struct planner_question pq = {.model = x->model,
                                        .what = x->model_name,
                                        .hw = x->hw,
                                        .query = &x->query,
                                        .threads = (int)s->config->threads,
                                        .max_table_bytes = s->config->max_table_bytes,
                                        .cancel = cancel};
    json_t *answer = NULL;
    int64_t start = clock_ns();
    atomic_fetch_add(&s->metrics.searches, 1);
    int rc = planner_answer(&pq, &answer, err);
    ret->search_ns = clock_ns() - start;
    if (rc == 0)
        rc = split(x, answer, ret, err);
    json_decref(answer);
    metrics_search(&s->metrics, lane_of(&x->query),
                   rc == 0 ? ret->feasible ? METRICS_FOUND : METRICS_NOTHING_FITS
                   : err->code == TOPT_ERR_CANCELED ? METRICS_CANCELED
                                                    : METRICS_SEARCH_FAILED,
                   ret->search_ns / 1000000);
    return rc;
}

static int run_plan(struct server *s, struct operation *x, const atomic_bool *cancel,
                    struct topt_error *err)
{
    const struct store_key key = {x->model_id, x->hw_id, x->text};
    const struct store_doc model = {x->model_id, x->model_name, x->model};
    struct store_answer a = {0};
    enum store_kept kept = STORE_ALL;
    int rc = store_get_answer(s->store, &key, &a, err); /* stored since it was asked? */
    if (rc == 0) {
        rc = search(s, x, cancel, &a, err);
        if (rc == 0)
            rc = store_publish(s->store, &key, &model, &a, -1, &kept, err);
        if (rc == 0 && kept == STORE_NOTHING)
            topt_log(TOPT_LOG_WARN, "search %s: answered, but not stored: %s",
                     x->model_id, err->text);
    }
    if (rc < 0) {
        atomic_fetch_add(&s->metrics.failed, 1);
        topt_log(TOPT_LOG_INFO, "search %s: %s: %s", x->model_id,
                 topt_err_name(err->code), err->text);
    } else {
        topt_log(TOPT_LOG_INFO, "search %s: %s in %lld ms", x->model_id,
                 a.plan_id    ? a.plan_id
                 : a.feasible ? "answered"
                              : "no plan",
                 (long long)(a.search_ns / 1000000));
    }
    if (rc >= 0 &&
        kept != STORE_ALL) { /* the store can't give it, so the operation does */
        x->found = (struct found){.is_pinned = kept != STORE_NOTHING,
                                  .feasible = a.feasible,
                                  .plan_id = a.plan_id,
                                  .plan = a.plan,
                                  .doc = a.doc,
                                  .search_ns = a.search_ns};
        return 0;
    }
    store_answer_fini(&a);
    return rc < 0 ? -1 : 0;
}

/* ---- reading what was sent --------------------------------------------------------------- */

static int out_of_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
}

/* Of the first byte that is no blank: no JSON of a model starts with it. */
static int is_foreign(const struct operation *o)
{
    size_t at = strspn(o->body, " \t\r\n");
    return o->body_len > at && !strchr("{[\"", o->body[at]);
}

static int take_model(struct operation *o, const json_t *doc, struct topt_error *err)
{
    char id[TOPT_ID], name[MODEL_NAME];
    snprintf(o->source, sizeof o->source, "model");
    if (!json_is_object(doc))
        return topt_fail(err, TOPT_ERR_INVAL, "the model must be an object");
    o->model = canonical(doc, "m", id);
    model_name(doc, *o->query.name ? o->query.name : o->name, name);
    o->model_id = strdup(id);
    o->model_name = strdup(name);
    if (!o->model || !o->model_id || !o->model_name)
        return out_of_memory(err);
    if (!o->wants_facts)
        return 0;
    int rc = planner_model_facts(o->model, name, &o->facts, err);
    strcpy(o->facts.name, name);
    return rc;
}

/* A JSON question that holds the model, or its id. */
static int take_question(struct operation *o, const json_t *doc, struct topt_error *err)
{
    const char *source = "body";
    const json_t *model = json_object_get(doc, "model");
    int rc = query_from_json(QUERY_PLAN, doc, &o->query, &source, err);
    if (rc == 0 && !model == !*o->query.model_id) {
        source = "model";
        rc = topt_fail(err, TOPT_ERR_INVAL,
                       "exactly one of model and model_id must be given");
    }
    if (rc < 0) {
        snprintf(o->source, sizeof o->source, "%s", source);
        return rc;
    }
    return model ? take_model(o, model, err) : 0;
}

static int run_read(struct operation *o, struct topt_error *err)
{
    const char *what = o->is_question        ? "the request"
                       : o->name && *o->name ? o->name
                                             : "the model";
    json_t *doc = NULL;
    snprintf(o->source, sizeof o->source, "body");
    if (!o->body_len)
        topt_fail(err, TOPT_ERR_INVAL, "%s is empty", what);
    else if (o->is_question || !is_foreign(o))
        doc = topt_json_parse(o->body, o->body_len, what, err);
    else
        doc = planner_model_document(o->body, o->body_len, what, o->query.batch,
                                     o->query.seq, err);
    int rc = !doc             ? -1
             : o->is_question ? take_question(o, doc, err)
                              : take_model(o, doc, err);
    json_decref(doc);
    return rc;
}

static int run_profile(struct operation *o, struct topt_error *err)
{
    json_t *given = NULL, *doc = NULL;
    char id[TOPT_ID];
    int rc = -1;
    snprintf(o->source, sizeof o->source, "hardware");
    given = topt_json_parse(o->body, o->body_len, "the profile", err);
    if (given && planner_check_hw(given, &doc, err) == 0) {
        const char *name = json_string_value(json_object_get(doc, "name"));
        o->hw = canonical(doc, "h", id);
        o->hw_id = strdup(id);
        o->name = strdup(name ? name : "");
        rc = o->hw && o->hw_id && o->name ? 0 : out_of_memory(err);
        if (rc == 0 && !query_is_name(o->name, 79)) {
            snprintf(o->source, sizeof o->source, "name");
            rc = topt_fail(err, TOPT_ERR_INVAL,
                           "name must be 1..79 letters, digits and \"._-\"");
        }
    }
    json_decref(given);
    json_decref(doc);
    return rc;
}

int search_run(void *server, void *data, const atomic_bool *cancel,
               struct topt_error *err)
{
    struct operation *o = data;
    switch (o->kind) {
    case OPERATION_READ:
        return run_read(o, err);
    case OPERATION_FACTS:
        return planner_model_facts(o->model, o->model_name, &o->facts, err);
    case OPERATION_PROFILE:
        return run_profile(o, err);
    case OPERATION_PLAN:
        return run_plan(server, o, cancel, err);
    }
    return topt_fail(err, TOPT_ERR_INTERNAL, "unknown kind of operation");
}
