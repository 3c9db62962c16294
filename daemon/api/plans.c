/* plans.c - questions: from a request to a stored answer.
 *
 *      request -> read: the question and its model (a worker parses them)
 *              -> in the store?  the answer
 *              -> else a search, shared by all who ask the same, waited for a while
 *              -> the answer from the store, or 202 and a task
 *
 * Each arrow that waits is a handler of its own, called when the job before it has ended. */
#include "answers.h"
#include "asking.h"
#include "in_slurm.h"
#include "tasks.h"
#include "topt_json.h"
#include "topt_log.h"
#include "topt_digest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WAIT_JSON_MS = 2000,
    WAIT_TEXT_MS = 25000,
    READ_MS = 30000, /* for a worker to read what was sent */
    LIST_LIMIT = 50
};

/* The state of a request on its way: its question, as far as it is known. */
struct question {
    struct operation *plan; /* PLAN, until it is handed to the workers */
    struct job *job;        /* that is waited for */
    int64_t wait_ms;
    int is_checked; /* a worker knows its words */
    int is_given;   /* the request holds the whole model, which so becomes the asker's */
    struct correction correction; /* what jobs say of such plans */
};

static void question_free(void *state)
{
    struct question *x = state;
    operation_destroy(x->plan);
    free(x);
}

/* The request's state, made; NULL without memory. */
static struct question *begin(struct request *q)
{
    struct question *x = calloc(1, sizeof *x);
    if (x && !(x->plan = operation_create(OPERATION_PLAN))) {
        free(x);
        return NULL;
    }
    q->state = x;
    q->state_free = question_free;
    return x;
}

static struct reply no_memory(void)
{
    return reply_owned(503, NULL, NULL);
}

/* ---- the answer -------------------------------------------------------------------------- */

/* A search has ended, time is up, or the client has gone. */
static struct reply after_search(struct request *q)
{
    struct question *x = q->state;
    struct job *job = x->job;
    struct job_status st;
    struct topt_error err = {0};
    char task[24];
    struct reply r;
    job_wait(job, 0, &st);
    if (q->is_gone) {
        r = reply_fixed(499, "text/plain", "");
    } else if (st.state < JOB_DONE) {
        enum jobs_refusal why =
            task_add(q->server->tasks, job, q->caller.uid, task, &err);
        if (why == JOBS_TAKEN)
            return task_pending(q, task, &st);
        r = asking_refused(q, why, &err);
    } else {
        r = task_ended(q, job, &st);
    }
    job_release(job);
    return r;
}

/* Who sends a whole model owns it, as who registers it does.  A store that has no room for
 * that does not keep the answer back. */
static void own_model(const struct request *q, const struct question *x,
                      const struct store_doc *m)
{
    struct topt_error err = {0};
    if (!x->is_given || !m->doc ||
        store_owns(q->server->store, m->id, asker(q), &err) > 0)
        return;
    if (store_put_model(q->server->store, m, asker(q), STORE_EVICT, &err) < 0)
        topt_log(TOPT_LOG_WARN, "%s: %s is not kept for its asker: %s", q->id, m->id,
                 err.text);
}

/* Copies, since the operation's own may be gone as soon as it is handed on. */
static struct store_doc copy_given(const struct question *x)
{
    const struct operation *o = x->plan;
    struct store_doc m = {0};
    if (x->is_given)
        m = (struct store_doc){strdup(o->model_id), strdup(o->model_name),
                               strdup(o->model)};
    if (!m.id || !m.name) {
        free((char *)m.doc);
        m.doc = NULL;
    }
    return m;
}

static void free_given(struct store_doc *m)
{
    free((char *)m->id);
    free((char *)m->name);
    free((char *)m->doc);
}

static struct reply search(struct request *q, struct question *x)
{
    struct reply r;
    struct topt_text key = {0};
    int64_t wait_ms = x->plan->query.wait_ms;
    if (wait_ms < 0)
        wait_ms = q->wants_text ? WAIT_TEXT_MS : WAIT_JSON_MS;
    topt_text_add(&key, "plan %s %s %s %d", x->plan->model_id, x->plan->hw_id,
                  x->plan->text, asking_is_brief(q));
    struct store_doc given = copy_given(x);
    struct operation *plan = x->plan;
    x->plan = NULL;
    int rc = -1;
    if (key.oom) {
        operation_destroy(plan);
        r = no_memory();
    } else {
        rc = asking_submit(q, plan, key.s, &x->job, &r);
    }
    topt_text_fini(&key);
    if (rc == 0)
        own_model(q, x, &given);
    free_given(&given);
    if (rc < 0)
        return r;
    return reply_wait(x->job, wait_ms, after_search);
}

static struct reply after_check(struct request *q)
{
    struct question *x = q->state;
    struct reply r;
    if (asking_done(q, x->job, &r) < 0)
        return r;
    job_release(x->job);
    return search(q, x);
}

/* A question that no worker has read: are its words known?  At once, though the search may wait. */
static struct reply check(struct request *q, struct question *x)
{
    struct operation *o = operation_create(OPERATION_CHECK);
    struct reply r;
    char key[48];
    if (!o)
        return no_memory();
    o->query = x->plan->query;
    snprintf(key, sizeof key, "check %s", q->id);
    if (asking_submit(q, o, key, &x->job, &r) < 0)
        return r;
    return reply_wait(x->job, READ_MS, after_check);
}

/* Answer a complete question. */
static struct reply ask(struct request *q, struct question *x)
{
    const struct store_answer *known;
    struct store_answer own = {0};
    struct topt_error err = {0};
    int rc = answer_known(q->server, x->plan, &own, &known, &err);
    if (rc == 0)
        return x->is_checked ? search(q, x) : check(q, x);
    if (rc < 0)
        return reply_fail(q, NULL, &err);
    atomic_fetch_add(&q->server->metrics.cache_hits, 1);
    own_model(
        q, x,
        &(struct store_doc){x->plan->model_id, x->plan->model_name, x->plan->model});
    struct reply r = answer_reply(q, known, 1, &x->correction);
    store_answer_fini(&own);
    return r;
}

/* ---- making questions -------------------------------------------------------------------- */

/* A client may ask for less memory than what the server gives a search, not for more. */
static int check_limits(const struct server *s, const struct topt_query *x,
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

/* Nobody named a profile, and the server has none: that is no fault of who asks, and
 * asking again will not help. */
static struct reply no_default(const struct request *q, const struct topt_error *err)
{
    struct reply r = reply_error(q, 503, "no_default", "hw", NULL, err->text);
    r.retry_after = 0;
    return r;
}

/* What jobs measured of the model on the profile: where they took more memory, plans have
 * so much less. */
static void correct(const struct request *q, struct question *x)
{
    struct operation *o = x->plan;
    correction_find(q->server->store, o->model_id, o->hw_id, q->caller.uid,
                    &x->correction);
    int64_t mill = correction_memory(&x->correction);
    if (mill > 1000 && o->query.kind != TOPT_QUERY_FRONTIER)
        o->memory_mill = mill;
}

/* Questions of others must not make this user's answer come sooner: that would tell that they
 * have the model. */
static void add_asker(const struct request *q, struct topt_text *t)
{
    topt_text_add(t, "asker=%lld;", (long long)asker(q));
}

/* Take the site's price for questions about a whole training that give none. */
static int add_price(const struct config *c, struct operation *o, struct topt_error *err)
{
    struct topt_query *x = &o->query;
    if (!x->tokens && !x->samples)
        return 0;
    if (!*x->currency && c->currency)
        snprintf(x->currency, sizeof x->currency, "%s", c->currency);
    if (x->price > 0 || !c->prices)
        return 0;
    json_t *doc = topt_json_parse(o->hw, strlen(o->hw), "the profile", err);
    if (!doc)
        return -1;
    x->price = config_price(c, topt_json_words_at(doc, "name"));
    json_decref(doc);
    return 0;
}

/* The question's hardware and text; the model is there already. */
static int complete(const struct request *q, struct question *x, struct reply *ret)
{
    struct operation *o = x->plan;
    struct topt_error err = {0};
    const char *source = "hw";
    struct topt_text t = {0}, problem = {0};
    int rc = check_limits(q->server, &o->query, &source, &err);
    if (rc == 0) {
        source = "hw";
        rc = find_hw(q->server, o->query.hw, &o->hw_id, &o->hw, &err);
        if (rc == 0)
            rc = add_price(q->server->config, o, &err);
    }
    if (rc == 0) {
        correct(q, x);
        topt_text_add(&t, "%s ", TOPT_VERSION);
        topt_text_add(&problem, "%s ", TOPT_VERSION);
        rc = topt_query_write(&o->query, TOPT_QUERY_ANSWER, &t, &source, &err);
        if (rc == 0)
            rc = topt_query_write(&o->query, TOPT_QUERY_PROBLEM, &problem, &source, &err);
        topt_text_add(&t, " model=%s;", o->model_name); /* a plan holds it */
        if (o->notes)                                   /* an answer holds them */
            topt_text_add(&t, "notes=%s;", o->notes);
        if (o->memory_mill)
            topt_text_add(&t, "memory_mill=%lld;", (long long)o->memory_mill);
        if (!q->server->config->answers_are_shared) {
            add_asker(q, &t);
            add_asker(q, &problem);
        }
        o->problem = problem.s;
        o->text = t.s;
        if (!rc && (t.oom || problem.oom))
            rc = topt_fail(&err, TOPT_ERR_NOMEM, "out of memory");
    }
    if (rc < 0 && err.code == TOPT_ERR_NOTFOUND && !*o->query.hw)
        *ret = no_default(q, &err);
    else if (rc < 0)
        *ret = reply_fail(q, source, &err);
    return rc;
}

static struct reply go_on(struct request *q)
{
    struct question *x = q->state;
    struct reply r;
    q->lane = lane_of(&x->plan->query);
    return complete(q, x, &r) < 0 ? r : ask(q, x);
}

static struct reply with_known_model(struct request *q, const char *key)
{
    struct operation *o = ((struct question *)q->state)->plan;
    struct topt_error err = {0};
    if (find_model(q, key, &o->model_id, &o->model_name, &o->model, &err) < 0)
        return reply_fail(q, "model_id", &err);
    return go_on(q);
}

static char *copy(const char *s)
{
    return s ? strdup(s) : NULL;
}

/* The body was read: its model, and the question where the body is one. */
static struct reply after_read(struct request *q)
{
    struct question *x = q->state;
    struct operation *o = x->plan;
    struct reply r;
    if (asking_done(q, x->job, &r) < 0)
        return r;
    const struct operation *read = job_data(x->job);
    x->is_checked = 1;
    if (read->is_question || (o->query.as_is && !*o->query.degrees))
        o->query = read->query;
    o->notes = copy(read->notes);
    o->model_id = copy(read->model_id);
    o->model_name = copy(read->model_name);
    o->model = copy(read->model);
    int is_known = !read->model;
    x->is_given = !is_known;
    int rc = is_known || (o->model_id && o->model_name && o->model);
    job_release(x->job);
    if (!rc)
        return no_memory();
    return is_known ? with_known_model(q, o->query.model_id) : go_on(q);
}

/* Hand the body to a worker.  Equal bodies are read once. */
static struct reply read_body(struct request *q, struct question *x)
{
    struct operation *o = operation_create(OPERATION_READ);
    struct reply r;
    char id[TOPT_ID], key[700];
    if (!o)
        return no_memory();
    o->is_question = q->is_json;
    o->has_query = !q->is_json;
    o->query = x->plan->query;
    o->name = strdup(x->plan->query.name);
    topt_id(q->is_json ? 'q' : 'm', q->body, q->body_len, id);
    snprintf(key, sizeof key, "read %lld %s %lld %lld %s %d %lld %s", (long long)asker(q),
             id, (long long)o->query.batch, (long long)o->query.seq, o->query.name,
             o->query.as_is, (long long)o->query.gpus[0], o->query.degrees);
    o->body = request_take_body(q, &o->body_len);
    if (!o->name || !o->body) {
        operation_destroy(o);
        return no_memory();
    }
    if (asking_submit(q, o, key, &x->job, &r) < 0)
        return r;
    return reply_wait(x->job, READ_MS, after_read);
}

/* The body is the model's file, or there is none; the rest is in the URL. */
static struct reply plan_of_file(struct request *q, struct question *x)
{
    struct topt_error err = {0};
    const char *source = NULL;
    struct topt_query *asked = &x->plan->query;
    struct site_job job;
    struct reply r;
    int no_job = in_slurm_take(q, &job, &r);
    if (no_job < 0)
        return r;
    if (topt_query_from_pairs(TOPT_QUERY_PLAN, q->pair, q->npairs, asked, &source, &err) <
        0)
        return reply_fail(q, source, &err);
    if (!no_job && in_slurm_apply(q, &job, asked, &r) < 0)
        return r;
    if (*asked->model_id && q->body_len)
        return reply_error(q, 400, "invalid", "model_id", NULL,
                           "model_id and a body are both given");
    return *asked->model_id ? with_known_model(q, asked->model_id) : read_body(q, x);
}

struct reply api_plan(struct request *q)
{
    struct reply r;
    struct question *x = begin(q);
    if (!x)
        return no_memory();
    if (take_fields(q, &r) < 0 || check_body(q, &r) < 0)
        return r;
    if (!q->is_json)
        return plan_of_file(q, x);
    return no_parameters(q, &r) < 0 ? r : read_body(q, x);
}

/* Curve or frontier of a registered model. */
static struct reply about_model(struct request *q, enum topt_query_kind kind)
{
    struct topt_error err = {0};
    const char *source = NULL;
    struct reply r;
    struct question *x = begin(q);
    if (!x)
        return no_memory();
    if (take_fields(q, &r) < 0)
        return r;
    if (topt_query_from_pairs(kind, q->pair, q->npairs, &x->plan->query, &source, &err) <
        0)
        return reply_fail(q, source, &err);
    return with_known_model(q, q->arg);
}

struct reply api_model_curve(struct request *q)
{
    return about_model(q, TOPT_QUERY_CURVE);
}

struct reply api_model_frontier(struct request *q)
{
    return about_model(q, TOPT_QUERY_FRONTIER);
}

/* ---- plans that were given out ----------------------------------------------------------- */

static struct reply no_plan(const struct request *q, struct topt_error *err)
{
    if (err->code == TOPT_ERR_NOTFOUND)
        topt_fail(err, TOPT_ERR_NOTFOUND, "no plan '%.60s' was given out here", q->arg);
    return reply_fail(q, NULL, err);
}

struct reply api_plan_get(struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    char *doc;
    if (no_parameters(q, &r) < 0)
        return r;
    struct reader reader;
    const struct store_who *who = reader_of(q, &reader);
    if (*q->arg == 'p' && reply_is_known(q, q->arg, &r) &&
        store_can_read(q->server->store, q->arg, who, &err) > 0)
        return r;
    if (store_get_plan(q->server->store, q->arg, who, &doc, &err) == 0) {
        r = reply_owned(200, "application/json", doc);
        reply_named(&r, q->arg);
        return r;
    }
    return no_plan(q, &err);
}

static struct reply after_launch(struct request *q)
{
    struct job *job = q->state;
    struct reply r;
    q->state = NULL;
    if (asking_done(q, job, &r) < 0)
        return r;
    const struct operation *o = job_data(job);
    r = reply_owned(200, o->is_drawn ? "image/svg+xml" : "text/plain; charset=utf-8",
                    o->text ? strdup(o->text) : NULL);
    job_release(job);
    return r;
}

/* What a worker makes of a plan: its job script, or its schedule drawn. */
static struct reply make_of_plan(struct request *q, int is_drawn)
{
    struct reply r;
    struct topt_error err = {0};
    struct reader reader;
    struct job *job;
    char key[80];
    if (no_parameters(q, &r) < 0)
        return r;
    struct operation *o = operation_create(OPERATION_LAUNCH);
    if (!o)
        return no_memory();
    if (store_get_plan(q->server->store, q->arg, reader_of(q, &reader), &o->body, &err)) {
        operation_destroy(o);
        return no_plan(q, &err);
    }
    o->body_len = strlen(o->body);
    o->is_drawn = is_drawn;
    snprintf(key, sizeof key, "%s of %.60s", is_drawn ? "schedule" : "launch", q->arg);
    if (asking_submit(q, o, key, &job, &r) < 0)
        return r;
    q->state = job;
    return reply_wait(job, READ_MS, after_launch);
}

struct reply api_plan_launch(struct request *q)
{
    return make_of_plan(q, 0);
}

struct reply api_plan_schedule(struct request *q)
{
    return make_of_plan(q, 1);
}

struct reply api_plans(struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    struct store_page page;
    struct reader reader;
    if (page_of(q, LIST_LIMIT, &page, &r) < 0)
        return r;
    json_t *list = store_list_plans(q->server->store, reader_of(q, &reader), &page, &err);
    return reply_page(q, "plans", list, &page, &err);
}
