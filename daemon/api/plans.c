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
#include "server.h"
#include "topt_json.h"
#include "topt_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIT_JSON_MS = 2000, WAIT_TEXT_MS = 25000, LIST_LIMIT = 50 };

/* A whole question with copies of its own: it outlives the request that made it. */
struct question {
    char model_id[40];
    char *model_name, *model; /* document */
    char *hw_id, *hw;
    char *text; /* of the query: with the two ids, the key */
    struct query query;
};

static void search_destroy(void *data)
{
    struct question *x = data;
    if (!x)
        return;
    free(x->model_name);
    free(x->model);
    free(x->hw_id);
    free(x->hw);
    free(x->text);
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

/* What only the search needs; the ids and the text stay, by which its answer is found. */
static void search_trim(void *data)
{
    struct question *x = data;
    free(x->model);
    free(x->hw);
    x->model = x->hw = NULL;
}

static int search(struct server *s, const struct job_run *run, const struct question *x,
                  struct store_answer *ret, struct topt_error *err)
{
    char source[POOL_SOURCE];
    struct call_answer found = {0};
    const struct call_question cq = {.query = &x->query,
                                     .model_id = x->model_id,
                                     .model_name = x->model_name,
                                     .model = x->model,
                                     .hw_id = x->hw_id,
                                     .hw = x->hw,
                                     .threads = (int)s->config->threads,
                                     .max_table_bytes = s->config->max_table_bytes};
    int64_t start = clock_ns();
    atomic_fetch_add(&s->metrics.searches, 1);
    int rc = call_plan(s->pool, run, &cq, &found, source, err);
    *ret = (struct store_answer){found.feasible, found.plan_id, found.plan, found.answer,
                                 clock_ns() - start};
    atomic_fetch_add(&s->metrics.search_ms, ret->search_ns / 1000000);
    return rc;
}

static int search_run(void *server, const struct job_run *run, void *data,
                      struct topt_error *err)
{
    struct server *s = server;
    const struct question *x = data;
    const struct store_key key = key_of(x);
    const struct store_doc model = {x->model_id, x->model_name, x->model};
    struct store_answer a = {0};
    int rc = store_get_answer(s->store, &key, &a, err); /* stored since it was asked? */
    if (rc == 0) {
        rc = search(s, run, x, &a, err);
        if (rc == 0)
            rc = store_publish(s->store, &key, &model, &a, err);
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
    store_answer_fini(&a);
    return rc < 0 ? -1 : 0;
}

static const struct job_kind search_kind = {search_run, search_trim, search_destroy};

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

static struct reply plan_text(const json_t *answer)
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
static struct reply whole(const struct store_answer *a)
{
    size_t len = strlen(a->doc);
    if (!a->plan || len < 3)
        return reply_owned(200, "application/json", strdup(a->doc));
    struct topt_text t = {0};
    topt_text_put(&t, a->doc, len - 1);
    topt_text_put(&t, ",\"plan\":", 8);
    topt_text_put(&t, a->plan, strlen(a->plan));
    topt_text_put(&t, "}", 1);
    if (t.oom)
        topt_text_fini(&t);
    return reply_owned(200, "application/json", t.s);
}

static struct reply answer_reply(const struct request *q, const struct store_answer *a)
{
    if (a->feasible && !q->wants_text)
        return whole(a);
    json_t *doc = json_loads(a->doc, 0, NULL);
    struct reply r;
    if (!doc)
        r = reply_error(q, 500, "internal", NULL, NULL,
                        "the stored answer can't be read");
    else if (!a->feasible)
        r = without_plan(q, doc);
    else if (a->plan_id)
        r = plan_text(doc);
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
    int rc = store_get_answer(q->server->store, &key, &a, &err);
    struct reply r = rc > 0    ? answer_reply(q, &a)
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
        enum jobs_refusal rc = task_add(q->server->tasks, job, NOBODY, task, &err);
        if (rc == JOBS_TAKEN)
            return pending(q, task, &st);
        r = refused(q, rc, &err);
    } else {
        r = ended(q, job, &st);
    }
    job_release(job);
    return r;
}

/* What sbatch asks: the fewest GPUs of the uniform space, which takes milliseconds. */
static enum job_lane lane_of(const struct query *x)
{
    int uniform = !*x->space || !strcmp(x->space, "uniform");
    int usual = !*x->framework || strcmp(x->framework, "topt");
    return x->kind == QUERY_PLAN && uniform && usual ? LANE_SUBMIT : LANE_SEARCH;
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
    struct jobs_work work = {.key = key.s,
                             .data = x,
                             .kind = &search_kind,
                             .uid = NOBODY,
                             .lane = lane_of(&x->query)};
    struct job *job;
    int shared = 0;
    enum jobs_refusal rc = jobs_submit(q->server->jobs, &work, &job, &shared, &err);
    if (rc != JOBS_TAKEN)
        return refused(q, rc, &err);
    if (shared)
        atomic_fetch_add(&q->server->metrics.shared, 1);
    return wait_reply(q, job, wait_ms);
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
        r = answer_reply(q, &a);
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
    int rc = check_limits(q->server, &x->query, &source, &err);
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

/* The body or the query of the URL, read by a worker, into 'x'.  'model_id' is of the path, or NULL. */
static int read_question(const struct request *q, struct question *x,
                         enum frame_form form, const char *model_id, struct reply *ret)
{
    struct topt_error err = {0};
    struct reading *takes = reading_of_body(q->server->pool, form, NULL, q->body,
                                            q->body_len, q->pair, q->npairs, &err);
    struct job *job = read_now(q, takes, &err, ret);
    if (!job)
        return -1;
    int rc = 0;
    const struct reading *got = job_data(job);
    x->query = got->query;
    if (got->id) {
        snprintf(x->model_id, sizeof x->model_id, "%s", got->id);
        x->model_name = strdup(got->name);
        x->model = strdup(got->document);
        if (!x->model || !x->model_name) {
            *ret = reply_owned(503, NULL, NULL);
            rc = -1;
        }
    } else {
        rc = known_model(q, x, model_id ? model_id : x->query.model_id, ret);
    }
    job_release(job);
    return rc;
}

static struct reply question(const struct request *q, enum frame_form form,
                             const char *model_id)
{
    struct reply r;
    struct question *x = calloc(1, sizeof *x);
    if (!x)
        return reply_owned(503, NULL, NULL);
    int rc = read_question(q, x, form, model_id, &r);
    if (rc == 0)
        rc = complete(q, x, &r);
    if (rc == 0)
        return ask(q, x);
    search_destroy(x);
    return r;
}

struct reply api_plan(const struct request *q)
{
    return question(q, q->is_json ? FORM_JSON : FORM_FILE, NULL);
}

struct reply api_model_curve(const struct request *q)
{
    return question(q, FORM_CURVE, q->arg);
}

struct reply api_model_frontier(const struct request *q)
{
    return question(q, FORM_FRONTIER, q->arg);
}

/* ---- plans and tasks --------------------------------------------------------------------- */

struct reply api_plan_get(const struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    char *doc;
    if (no_parameters(q, &r) < 0)
        return r;
    if (store_get_plan(q->server->store, q->arg, &doc, &err) == 0)
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
    json_t *list = store_list_plans(q->server->store, LIST_LIMIT, &err);
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
    struct job *job = task_find(q->server->tasks, NOBODY, q->arg, wait_ms, &canceled);
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
    if (task_cancel(q->server->tasks, NOBODY, q->arg) < 0)
        return no_task(q);
    struct job *job = task_find(q->server->tasks, NOBODY, q->arg, 0, &canceled);
    if (!job)
        return no_task(q);
    job_wait(job, 0, &st);
    task_release(job);
    return reply_json(200, json_pack("{s:s, s:s}", "task", q->arg, "state",
                                     canceled ? "canceled" : job_state_name(st.state)));
}
