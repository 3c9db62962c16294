/* tasks.c - see tasks.h. */
#include "tasks.h"
#include "answers.h"
#include "asking.h"
#include "topt_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_LIMIT = 500 };

struct reply task_pending(const struct request *q, const char *task,
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

static struct reply known_reply(const struct request *q, const struct operation *x)
{
    const struct store_answer *known;
    struct store_answer own = {0};
    struct topt_error err = {0};
    struct correction c;
    correction_find(q->server->store, x->model_id, x->hw_id, q->caller.uid, &c);
    int rc = answer_known(q->server, x, &own, &known, &err);
    struct reply r =
        rc > 0 ? answer_reply(q, known, known == &own || x->is_pinned, &c)
        : rc == 0
            ? reply_error(q, 429, "too_many", NULL, NULL,
                          "the answer was not kept: others of yours took its place; "
                          "ask again")
            : reply_fail(q, NULL, &err);
    store_answer_fini(&own);
    return r;
}

struct reply task_ended(const struct request *q, struct job *job,
                        const struct job_status *st)
{
    return st->state == JOB_DONE ? known_reply(q, job_data(job))
                                 : asking_failed(q, job, st);
}

/* Whose tasks the caller may look at, or end, who needs 'least' for those of others. */
static int64_t seen_by(const struct request *q, enum role least)
{
    return q->caller.role >= least ? TASKS_ADMIN : (int64_t)q->caller.uid;
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
        int rc = strcmp(key, "wait_ms")
                     ? topt_fail(&err, TOPT_ERR_INVAL, "%.60s: unknown parameter", key)
                     : topt_parse_int(value ? value : "", 0, TOPT_FIELD_WAIT_MOST, ret_ms,
                                      &err);
        if (rc < 0) {
            *ret = reply_fail(q, key, &err);
            return -1;
        }
    }
    return 0;
}

static void add_progress(struct topt_text *t, const struct job_progress *p)
{
    json_t *doc =
        json_pack("{s:s, s:I, s:I, s:s}", "phase", p->phase, "done", (json_int_t)p->done,
                  "of", (json_int_t)p->of, "best", p->best);
    char *text = doc ? topt_json_text(doc, 0) : NULL;
    if (text)
        topt_text_add(t, ",\"progress\":%s", text);
    free(text);
    json_decref(doc);
}

/* A task as a document; 'result', which is taken, is what the question itself would have been
 * answered, of one that has ended. */
static struct reply document(const struct request *q, const struct job_status *st,
                             const char *state, struct reply *result)
{
    struct topt_text t = {0};
    topt_text_add(&t,
                  "{\"task\":\"%s\",\"state\":\"%s\",\"ahead\":%d,\"elapsed_ms\":%lld",
                  q->arg, state, st->ahead, (long long)st->elapsed_ms);
    if (!result && *st->progress.phase)
        add_progress(&t, &st->progress);
    if (result) {
        const char *body = result->body ? result->body : result->fixed;
        topt_text_add(&t, ",\"status\":%d,\"result\":", result->status);
        topt_text_put(&t, body, strlen(body));
        reply_fini(result);
    }
    topt_text_put(&t, "}", 1);
    if (t.oom)
        topt_text_fini(&t);
    struct reply r = reply_owned(200, "application/json", t.s);
    r.retry_after = result ? 0 : 1;
    return r;
}

static struct reply canceled_reply(const struct request *q)
{
    return reply_error(q, 409, "canceled", NULL, NULL, "the task was canceled");
}

/* What the search has come to: lines say it as an answer to the question would. */
static struct reply show(struct request *q, struct job *job, int canceled)
{
    struct job_status st;
    struct reply r;
    job_wait(job, 0, &st);
    int ended = canceled || st.state >= JOB_DONE;
    if (ended)
        r = canceled ? canceled_reply(q) : task_ended(q, job, &st);
    if (q->wants_text || q->wants_csv)
        return ended ? r : task_pending(q, q->arg, &st);
    return document(q, &st, job_state_name(canceled ? JOB_CANCELED : st.state),
                    ended ? &r : NULL);
}

static struct reply after_wait(struct request *q)
{
    struct job *job = q->state;
    struct reply r = q->is_gone ? reply_fixed(499, "text/plain", "") : show(q, job, 0);
    task_release(job);
    q->state = NULL;
    return r;
}

struct reply api_task_get(struct request *q)
{
    struct reply r;
    int64_t wait_ms;
    int canceled;
    if (take_fields(q, &r) < 0 || task_wait(q, &wait_ms, &r) < 0)
        return r;
    struct job *job =
        task_find(q->server->tasks, seen_by(q, ROLE_ADMIN), q->arg, wait_ms, &canceled);
    if (!job)
        return no_task(q);
    if (!canceled && wait_ms) {
        q->state = job;
        return reply_wait(job, wait_ms, after_wait);
    }
    r = show(q, job, canceled);
    task_release(job);
    return r;
}

static json_t *line_json(const struct task_line *line, int with_uid)
{
    json_t *doc = json_pack("{s:s, s:s, s:i, s:I}", "task", line->id, "state",
                            job_state_name(line->state), "ahead", line->ahead,
                            "elapsed_ms", (json_int_t)line->elapsed_ms);
    if (doc && with_uid)
        json_object_set_new(doc, "uid", json_integer(line->uid));
    if (doc && line->state == JOB_RUNNING && *line->progress.phase)
        json_object_set_new(doc, "progress",
                            json_pack("{s:s}", "phase", line->progress.phase));
    return doc;
}

struct reply api_tasks(struct request *q)
{
    struct reply r;
    int n;
    int64_t whose = seen_by(q, ROLE_ADMIN);
    if (no_parameters(q, &r) < 0)
        return r;
    struct task_line *lines = tasks_list(q->server->tasks, whose, &n);
    if (n < 0)
        return reply_owned(503, NULL, NULL);
    json_t *list = json_array();
    for (int i = 0; i < n && i < LIST_LIMIT; i++)
        json_array_append_new(list, line_json(&lines[i], whose == TASKS_ADMIN));
    free(lines);
    json_t *doc = json_pack("{s:o, s:s, s:b, s:b}", "tasks", list, "role",
                            role_name(q->caller.role), "metrics",
                            q->caller.role >= ROLE_OPERATOR || metrics_are_open(q),
                            "queue", q->server->planned != NULL);
    if (doc && n > LIST_LIMIT)
        json_object_set_new(doc, "left_out", json_integer(n - LIST_LIMIT));
    return reply_json(200, doc);
}

struct reply api_task_delete(struct request *q)
{
    struct reply r;
    int canceled;
    struct job_status st;
    if (no_parameters(q, &r) < 0)
        return r;
    if (task_cancel(q->server->tasks, seen_by(q, ROLE_OPERATOR), q->arg) < 0)
        return no_task(q);
    struct job *job =
        task_find(q->server->tasks, seen_by(q, ROLE_OPERATOR), q->arg, 0, &canceled);
    if (!job)
        return no_task(q);
    job_wait(job, 0, &st);
    task_release(job);
    return document(q, &st, job_state_name(canceled ? JOB_CANCELED : st.state), NULL);
}
