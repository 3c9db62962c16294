/* plans.c - questions: from a request to a stored answer.
 *
 *      request -> question (model, profile, query; each with its digest)
 *              -> in the store?  the answer
 *              -> else a job, shared by all who ask the same, waited for a while
 *              -> the answer from the store, or 202 and a task
 *
 * A worker's last act is to store what it found (model, plan and answer together), so a plan
 * is pinned before anybody hears of it, and fresh, cached and polled answers are one path. */
#include "hint.h"
#include "planner.h"
#include "server.h"
#include "topt_json.h"
#include "topt_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_JSON_MS = 2000, WAIT_TEXT_MS = 25000, LIST_LIMIT = 50 };

/* A whole question with copies of its own: it outlives the request that made it. */
struct question {
    char model_id[40];
    char *model_name, *model; /* document */
    char *hw_id, *hw;
    char *text; /* of the query: with the two ids, the key */
    struct query query;
    struct store_answer
        found; /* of the search, once there was one: it is given though it can't be stored */
    int is_found, is_pinned;
};

void search_destroy(void *data)
{
    struct question *x = data;
    if (!x)
        return;
    free(x->model_name);
    free(x->model);
    free(x->hw_id);
    free(x->hw);
    free(x->text);
    store_answer_fini(&x->found);
    free(x);
}

static struct store_key key_of(const struct question *x)
{
    return (struct store_key){x->model_id, x->hw_id, x->text};
}

/* ---- the worker's side ------------------------------------------------------------------- */

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
static int split(const struct question *x, json_t *answer, struct store_answer *ret,
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

static int search(struct server *s, const struct question *x, const atomic_bool *cancel,
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
    atomic_fetch_add(&s->metrics.search_ms, ret->search_ns / 1000000);
    if (rc == 0)
        rc = split(x, answer, ret, err);
    json_decref(answer);
    return rc;
}

int search_run(void *server, void *data, const atomic_bool *cancel,
               struct topt_error *err)
{
    struct server *s = server;
    struct question *x = data;
    const struct store_key key = key_of(x);
    const struct store_doc model = {x->model_id, x->model_name, x->model};
    struct store_answer a = {0};
    int pinned = 1;
    int rc = store_get_answer(s->store, &key, &a, err); /* stored since it was asked? */
    if (rc == 0) {
        rc = search(s, x, cancel, &a, err);
        if (rc == 0)
            rc = store_publish(s->store, &key, &model, &a, (int64_t)geteuid(), &pinned,
                               err);
        if (rc == 0 && !pinned)
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
    if (rc >= 0) {
        x->found = a;
        x->is_found = 1;
        x->is_pinned = pinned;
    } else {
        store_answer_fini(&a);
    }
    return rc < 0 ? -1 : 0;
}

/* ---- answers as replies ------------------------------------------------------------------ */

static void add_line(struct topt_text *t, const char *key, const json_t *value)
{
    if (json_is_integer(value)) {
        topt_text_add(t, "%s=%lld\n", key, (long long)json_integer_value(value));
    } else if (json_is_string(value)) {
        topt_text_add(t, "%s=", key);
        for (const char *p = json_string_value(value); *p; p++)
            topt_text_put(t, (unsigned char)*p < ' ' ? " " : p, 1);
        topt_text_add(t, "\n");
    }
}

/* What a script of another framework is told of a plan that makes one choice for all. */
static void add_uniform(struct topt_text *t, const json_t *uniform)
{
    static const struct {
        const char *key, *field;
    } lines[] = {{"TOPT_DP", "dp"},
                 {"TOPT_TP", "tp"},
                 {"TOPT_FSDP", "zero"},
                 {"TOPT_MICRO_BATCH", "micro_batch"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_line(t, lines[i].key, json_object_get(uniform, lines[i].field));
    if (uniform)
        topt_text_add(t, "TOPT_RECOMPUTE=%d\n",
                      json_is_true(json_object_get(uniform, "recompute")));
}

/* A line of words that is given up; none where there are no words. */
static void add_words(struct topt_text *t, const char *key, char *words)
{
    if (words)
        topt_text_add(t, "%s=%s\n", key, words);
    free(words);
}

static struct reply plan_text(const json_t *answer, int is_pinned)
{
    static const struct {
        const char *key, *field;
    } lines[] = {{"TOPT_PLAN_ID", "plan_id"},
                 {"TOPT_GPUS", "gpus"},
                 {"TOPT_NODES", "nodes"},
                 {"TOPT_GPUS_PER_NODE", "gpus_per_node"},
                 {"TOPT_MEMORY_BYTES", "memory_bytes"},
                 {"TOPT_PEAK_BYTES", "peak_bytes"},
                 {"TOPT_TIME_NS", "time_ns"},
                 {"TOPT_SPACE", "space"},
                 {"TOPT_STRATEGY", "strategy"},
                 {"TOPT_WHY", "why"},
                 {"TOPT_NEEDS", "needs"}};
    struct topt_text t = {0};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        add_line(&t, lines[i].key, json_object_get(answer, lines[i].field));
    add_uniform(&t, json_object_get(answer, "uniform"));
    if (json_object_get(answer, "uniform"))
        add_line(&t, "TOPT_ACCUMULATION", json_object_get(answer, "micro_batches"));
    char *hint = hint_line(answer, "--topt-min-efficiency=");
    add_words(&t, "TOPT_HINT", hint ? hint : hint_with(answer, "--topt-"));
    if (!is_pinned)
        topt_text_add(&t, "TOPT_PINNED=0\n");
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "text/plain; charset=utf-8", t.s);
}

/* What is nearest to fitting, and what would fit if it had been asked for, in a line; NULL where there is neither. */
static char *nearest_line(const json_t *answer)
{
    const json_t *nearest = json_object_get(answer, "nearest");
    long long gpus = json_integer_value(json_object_get(nearest, "gpus"));
    long long bytes = json_integer_value(json_object_get(nearest, "memory_bytes"));
    char *with = hint_with(answer, "--topt-"), each[32];
    struct topt_text t = {0};
    if (gpus > 0)
        topt_text_add(&t, "%lld GPU%s with %s%s", gpus, gpus == 1 ? "" : "s",
                      topt_show_bytes(bytes, each, sizeof each),
                      gpus == 1 ? "" : " each");
    if (with)
        topt_text_add(&t, "%s%s", t.len ? "; " : "", with);
    free(with);
    return t.s;
}

/* The refusal as the envelope of errors, with what the answer says of why and of what to ask instead. */
static struct reply refusal_json(const json_t *answer, const char *name, const char *why)
{
    static const char *const fields[] = {"feasible", "nearest", "with", "batches",
                                         "assumed",  "job",     NULL};
    json_t *e = json_pack("{s:s, s:s, s:O?}", "error", name, "description", why,
                          "nearest", json_object_get(answer, "nearest"));
    json_t *doc = json_pack("{s:[o], s:s}", "errors", e, "why", why);
    for (int i = 0; doc && fields[i]; i++)
        if (json_object_get(answer, fields[i]))
            json_object_set(doc, fields[i], json_object_get(answer, fields[i]));
    return reply_json(422, doc);
}

/* Nothing fits, or nothing was found that does. */
static struct reply without_plan(const struct request *q, const json_t *answer)
{
    const char *why = json_string_value(json_object_get(answer, "why"));
    const json_t *feasible = json_object_get(answer, "feasible");
    const char *name = json_is_null(feasible) ? "undecided" : "infeasible";
    why = why ? why : "nothing fits";
    if (!q->wants_text)
        return refusal_json(answer, name, why);
    char *line = nearest_line(answer);
    struct reply r = reply_error(q, 422, name, NULL, line, why);
    free(line);
    return r;
}

/* The stored answer with its plan put back: both are objects' texts, so they are joined
 * without being parsed again. */
static struct reply whole(const struct store_answer *a, int is_pinned)
{
    size_t len = strlen(a->doc);
    if ((!a->plan && is_pinned) || len < 3)
        return reply_owned(200, "application/json", strdup(a->doc));
    struct topt_text t = {0};
    topt_text_put(&t, a->doc, len - 1);
    if (!is_pinned)
        topt_text_add(&t, ",\"pinned\":false");
    if (a->plan) {
        topt_text_put(&t, ",\"plan\":", 8);
        topt_text_put(&t, a->plan, strlen(a->plan));
    }
    topt_text_put(&t, "}", 1);
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "application/json", t.s);
}

static struct reply answer_reply(const struct request *q, const struct store_answer *a,
                                 int is_pinned)
{
    if (a->feasible && !q->wants_text)
        return whole(a, is_pinned);
    json_t *doc = json_loads(a->doc, 0, NULL);
    struct reply r;
    if (!doc)
        r = reply_error(q, 500, "internal", NULL, NULL,
                        "the stored answer can't be read");
    else if (!a->feasible)
        r = without_plan(q, doc);
    else if (a->plan_id)
        r = plan_text(doc, is_pinned);
    else
        r = reply_error(q, 406, "not_acceptable", "Accept", NULL,
                        "only a plan has a text/plain form; ask for application/json");
    json_decref(doc);
    return r;
}

static struct reply stored_reply(const struct request *q, const struct question *x)
{
    const struct store_key key = key_of(x);
    struct store_answer a = {0};
    struct topt_error err = {0};
    if (x->is_found)
        return answer_reply(q, &x->found, x->is_pinned);
    int rc = store_get_answer(q->server->store, &key, &a, &err);
    struct reply r = rc > 0    ? answer_reply(q, &a, 1)
                     : rc == 0 ? reply_error(q, 500, "internal", NULL, NULL,
                                             "the answer was not stored")
                               : reply_fail(q, NULL, &err);
    store_answer_fini(&a);
    return r;
}

/* ---- waiting and tasks ------------------------------------------------------------------- */

static struct reply pending(const struct request *q, const char *task,
                            const struct job_status *st)
{
    struct reply r;
    const char *state = job_state_name(st->state);
    if (q->wants_text) {
        struct topt_text t = {0};
        topt_text_add(
            &t,
            "TASK=%s\nSTATE=%s\nDESCRIPTION=the search takes longer; ask again at"
            " /v1/tasks/%s\n",
            task, state, task);
        r = reply_owned(202, "text/plain; charset=utf-8", t.s);
    } else {
        r = reply_json(202, json_pack("{s:s, s:s, s:i, s:I}", "task", task, "state",
                                      state, "ahead", st->ahead, "elapsed_ms",
                                      (json_int_t)st->elapsed_ms));
    }
    snprintf(r.location, sizeof r.location, "/v1/tasks/%s", task);
    r.retry_after = 1;
    return r;
}

/* A job that has ended, one way or another. */
static struct reply ended(const struct request *q, struct job *job,
                          const struct job_status *st)
{
    if (st->state == JOB_DONE)
        return stored_reply(q, job_data(job));
    if (st->err.code != TOPT_ERR_CANCELED)
        return reply_fail(q,
                          st->err.code == TOPT_ERR_INVAL || st->err.code == TOPT_ERR_USAGE
                              ? "model"
                              : NULL,
                          &st->err);
    if (atomic_load(&q->server->stopping))
        return reply_error(q, 503, "stopping", NULL, NULL, "the server is stopping");
    return st->state == JOB_FAILED
               ? reply_error(q, 503, "search_limit", NULL, NULL, st->err.text)
               : reply_error(q, 409, "canceled", NULL, NULL, "the search was canceled");
}

/* Wait for the job, then answer or hand out a task.  Gives 'job' back. */
static struct reply wait_reply(const struct request *q, struct job *job, int64_t wait_ms)
{
    struct job_status st;
    struct topt_error err = {0};
    char task[24];
    struct reply r;
    job_wait(job, wait_ms, &st);
    if (st.state < JOB_DONE) {
        if (job_to_task(job, task, &err) == 0)
            return pending(q, task, &st);
        r = reply_error(q, 503, "busy", NULL, NULL, err.text);
    } else {
        r = ended(q, job, &st);
    }
    job_release(job);
    return r;
}

static struct reply submit(const struct request *q, struct question *x)
{
    struct topt_error err = {0};
    int64_t wait_ms = x->query.wait_ms;
    if (wait_ms < 0)
        wait_ms = q->wants_text ? WAIT_TEXT_MS : WAIT_JSON_MS;
    struct topt_text key = {0};
    topt_text_add(&key, "%s %s %s", x->model_id, x->hw_id, x->text);
    if (key.oom) {
        search_destroy(x);
        return reply_owned(503, NULL, NULL);
    }
    struct jobs_work work = {key.s, x};
    struct job *job;
    int shared = 0;
    if (jobs_submit(q->server->jobs, &work, &job, &shared, &err) == 0) {
        if (shared)
            atomic_fetch_add(&q->server->metrics.shared, 1);
        return wait_reply(q, job, wait_ms);
    }
    if (err.code == TOPT_ERR_LIMIT)
        atomic_fetch_add(&q->server->metrics.refused, 1);
    return reply_error(q, 503, err.code == TOPT_ERR_LIMIT ? "queue_full" : "stopping",
                       NULL, NULL, err.text);
}

/* Answer a complete question, which is taken. */
static struct reply ask(const struct request *q, struct question *x)
{
    const struct store_key key = key_of(x);
    struct topt_error err = {0};
    struct store_answer a = {0};
    int rc = store_get_answer(q->server->store, &key, &a, &err);
    if (rc == 0)
        return submit(q, x);
    struct reply r;
    if (rc < 0) {
        r = reply_fail(q, NULL, &err);
    } else {
        atomic_fetch_add(&q->server->metrics.cache_hits, 1);
        r = answer_reply(q, &a, 1);
        store_answer_fini(&a);
    }
    search_destroy(x);
    return r;
}

/* ---- making questions -------------------------------------------------------------------- */

/* A client may ask for less memory than what the server gives a search, not for more. */
static int check_limits(const struct server *s, const struct query *x,
                        const char **ret_source, struct topt_error *err)
{
    int64_t most = s->config->max_table_bytes;
    *ret_source = "max_table_bytes";
    return x->max_table_bytes <= most
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "max_table_bytes is %lld, and this server allows %lld",
                           (long long)x->max_table_bytes, (long long)most);
}

/* The query's words, hardware and text into 'x'; the model is there already. */
static int complete(const struct request *q, struct question *x, struct reply *ret)
{
    struct topt_error err = {0};
    const char *source = "hw";
    struct topt_text t = {0};
    int rc = planner_check_query(&x->query, &source, &err);
    if (rc == 0)
        rc = check_limits(q->server, &x->query, &source, &err);
    if (rc == 0) {
        source = "hw";
        rc = find_hw(q->server, x->query.hw, &x->hw_id, &x->hw, &err);
    }
    if (rc == 0) {
        query_text(&x->query, &t);
        topt_text_add(&t, "model=%s;", x->model_name); /* a plan holds it */
        x->text = t.s;
        if (t.oom)
            rc = topt_fail(&err, TOPT_ERR_NOMEM, "out of memory");
    }
    if (rc < 0)
        *ret = reply_fail(q, source, &err);
    return rc;
}

static int inline_model(const struct request *q, struct question *x, const json_t *doc,
                        struct reply *ret)
{
    if (!json_is_object(doc)) {
        *ret =
            reply_error(q, 400, "invalid", "model", NULL, "the model must be an object");
        return -1;
    }
    x->model = canonical(doc, "m", x->model_id);
    char name[MODEL_NAME];
    model_name(doc, x->query.name, name);
    x->model_name = strdup(name);
    if (x->model && x->model_name)
        return 0;
    *ret = reply_owned(503, NULL, NULL);
    return -1;
}

static int known_model(const struct request *q, struct question *x, const char *key,
                       struct reply *ret)
{
    struct topt_error err = {0};
    char *id = NULL;
    if (find_model(q->server, key, &id, &x->model_name, &x->model, &err) < 0) {
        *ret = reply_fail(q, "model_id", &err);
        return -1;
    }
    snprintf(x->model_id, sizeof x->model_id, "%s", id);
    free(id);
    return 0;
}

/* (a) a JSON request that holds the model or its id. */
static int from_json(const struct request *q, struct question *x, struct reply *ret)
{
    struct topt_error err = {0};
    const char *source = NULL;
    int rc = -1;
    json_t *doc = parse_body(q, "the request", ret);
    if (!doc)
        return -1;
    const json_t *model = json_object_get(doc, "model");
    if (no_parameters(q, ret) < 0)
        ;
    else if (query_from_json(QUERY_PLAN, doc, &x->query, &source, &err) < 0)
        *ret = reply_fail(q, source, &err);
    else if (!model == !*x->query.model_id)
        *ret = reply_error(q, 400, "invalid", "model", NULL,
                           "exactly one of model and model_id must be given");
    else
        rc = model ? inline_model(q, x, model, ret)
                   : known_model(q, x, x->query.model_id, ret);
    json_decref(doc);
    return rc;
}

/* (b) the body is the model's file; the rest is in the URL. */
static int from_file(const struct request *q, struct question *x, struct reply *ret)
{
    struct topt_error err = {0};
    const char *source = NULL;
    if (query_from_pairs(QUERY_PLAN, q->pair, q->npairs, &x->query, &source, &err) < 0) {
        *ret = reply_fail(q, source, &err);
        return -1;
    }
    if (*x->query.model_id && !q->body_len)
        return known_model(q, x, x->query.model_id, ret);
    if (*x->query.model_id) {
        *ret = reply_error(q, 400, "invalid", "model_id", NULL,
                           "model_id and a body are both given");
        return -1;
    }
    json_t *doc = parse_model(q, *x->query.name ? x->query.name : "the model",
                              x->query.batch, x->query.seq, ret);
    if (!doc)
        return -1;
    int rc = inline_model(q, x, doc, ret);
    json_decref(doc);
    return rc;
}

struct reply api_plan(const struct request *q)
{
    struct reply r;
    struct question *x = calloc(1, sizeof *x);
    if (!x)
        return reply_owned(503, NULL, NULL);
    int rc = q->is_json ? from_json(q, x, &r) : from_file(q, x, &r);
    if (rc == 0)
        rc = complete(q, x, &r);
    if (rc == 0)
        return ask(q, x);
    search_destroy(x);
    return r;
}

/* Curve or frontier of a registered model. */
static struct reply about_model(const struct request *q, enum query_kind kind)
{
    struct reply r;
    struct topt_error err = {0};
    const char *source = NULL;
    struct question *x = calloc(1, sizeof *x);
    if (!x)
        return reply_owned(503, NULL, NULL);
    int rc = query_from_pairs(kind, q->pair, q->npairs, &x->query, &source, &err);
    if (rc < 0)
        r = reply_fail(q, source, &err);
    else
        rc = known_model(q, x, q->arg, &r);
    if (rc == 0)
        rc = complete(q, x, &r);
    if (rc == 0)
        return ask(q, x);
    search_destroy(x);
    return r;
}

struct reply api_model_curve(const struct request *q)
{
    return about_model(q, QUERY_CURVE);
}

struct reply api_model_frontier(const struct request *q)
{
    return about_model(q, QUERY_FRONTIER);
}

/* ---- plans and tasks --------------------------------------------------------------------- */

struct reply api_plan_get(const struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    char *doc;
    if (no_parameters(q, &r) < 0)
        return r;
    if (store_get_plan(q->server->store, q->arg, NULL, &doc, &err) == 0)
        return reply_owned(200, "application/json", doc);
    if (err.code == TOPT_ERR_NOTFOUND)
        topt_fail(&err, TOPT_ERR_NOTFOUND, "no plan '%.60s' was given out here", q->arg);
    return reply_fail(q, NULL, &err);
}

struct reply api_plans(const struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    if (no_parameters(q, &r) < 0)
        return r;
    struct store_page page = {.limit = LIST_LIMIT};
    json_t *list = store_list_plans(q->server->store, NULL, &page, &err);
    return list ? reply_json(200, json_pack("{s:o}", "plans", list))
                : reply_fail(q, NULL, &err);
}

static struct reply no_task(const struct request *q)
{
    return reply_error(q, 404, "not_found", NULL, NULL,
                       "no such task; tasks are forgotten a while after they end");
}

/* Only wait_ms is taken. */
static int task_wait(const struct request *q, int64_t *ret_ms, struct reply *ret)
{
    struct topt_error err = {0};
    *ret_ms = 0;
    for (int i = 0; i < q->npairs; i++) {
        const char *key = q->pair[i].key, *value = q->pair[i].value;
        int rc =
            strcmp(key, "wait_ms")
                ? topt_fail(&err, TOPT_ERR_INVAL, "%.60s: unknown parameter", key)
                : topt_parse_int(value ? value : "", 0, QUERY_MAX_WAIT_MS, ret_ms, &err);
        if (rc < 0) {
            *ret = reply_fail(q, key, &err);
            return -1;
        }
    }
    return 0;
}

struct reply api_task_get(const struct request *q)
{
    struct reply r;
    int64_t wait_ms;
    int canceled;
    struct job_status st;
    if (task_wait(q, &wait_ms, &r) < 0)
        return r;
    struct job *job = task_find(q->server->jobs, q->arg, &canceled);
    if (!job)
        return no_task(q);
    if (canceled) {
        r = reply_error(q, 409, "canceled", NULL, NULL, "the task was canceled");
    } else {
        job_wait(job, wait_ms, &st);
        r = st.state < JOB_DONE ? pending(q, q->arg, &st) : ended(q, job, &st);
    }
    task_release(job);
    return r;
}

struct reply api_task_delete(const struct request *q)
{
    struct reply r;
    int canceled;
    struct job_status st;
    if (no_parameters(q, &r) < 0)
        return r;
    if (task_cancel(q->server->jobs, q->arg) < 0)
        return no_task(q);
    struct job *job = task_find(q->server->jobs, q->arg, &canceled);
    if (!job)
        return no_task(q);
    job_wait(job, 0, &st);
    task_release(job);
    return reply_json(200, json_pack("{s:s, s:s}", "task", q->arg, "state",
                                     canceled ? "canceled" : job_state_name(st.state)));
}
