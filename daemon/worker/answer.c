/* answer.c - requests of the daemon: parsed, put to the planner, and answered. */
#include "answer.h"
#include "documents.h"
#include "planner.h"
#include "slurm_job.h"
#include "topt_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------- */

/* The question of a request, checked; "" is none. */
static int take_query(struct frame *f, struct topt_query *ret, const char **ret_source,
                      struct topt_error *err)
{
    const char *text = frame_get_text(f);
    *ret = (struct topt_query){.wait_ms = -1};
    if (!*text)
        return 0;
    return topt_query_read(text, ret, ret_source, err) < 0
               ? -1
               : planner_check_query(ret, ret_source, err);
}

/* The question that was found, checked. */
static int put_query(struct topt_query *q, struct frame *reply, const char **ret_source,
                     struct topt_error *err)
{
    struct topt_text text = {0};
    *q->name = '\0'; /* the model's name says it, in UTF-8 */
    int rc = planner_check_query(q, ret_source, err) ||
             topt_query_write(q, TOPT_QUERY_WHOLE, &text, ret_source, err);
    if (!rc)
        frame_put_text(reply, text.s);
    topt_text_fini(&text);
    return rc ? -1 : 0;
}

static int put_model(const json_t *doc, const char *given, struct frame *reply,
                     const char **ret_source, struct topt_error *err)
{
    char id[TOPT_ID], name[MODEL_NAME];
    *ret_source = "model";
    if (!json_is_object(doc))
        return topt_fail(err, TOPT_ERR_INVAL, "the model must be an object");
    char *text = canonical(doc, 'm', id);
    if (!text)
        return topt_nomem(err, NULL);
    model_name(doc, given, name);
    frame_put_text(reply, id);
    frame_put_text(reply, name);
    frame_put_text(reply, text);
    free(text);
    return 0;
}

/* The parsed question; its model where it has one. */
static int take_question(const json_t *doc, struct frame *reply, const char **ret_source,
                         struct topt_error *err)
{
    struct topt_query q;
    char name[sizeof q.name];
    const json_t *model = json_object_get(doc, "model");
    if (topt_query_from_json(TOPT_QUERY_PLAN, doc, &q, ret_source, err) < 0)
        return -1;
    if (!model == !*q.model_id) {
        *ret_source = "model";
        return topt_fail(err, TOPT_ERR_INVAL,
                         "exactly one of model and model_id must be given");
    }
    memcpy(name, q.name, sizeof name);
    if (put_query(&q, reply, ret_source, err) < 0)
        return -1;
    frame_put_text(reply, ""); /* no script, no notes */
    return model ? put_model(model, name, reply, ret_source, err) : 0;
}

/* A JSON question that holds the model, or its id. */
static int read_question(const char *body, size_t len, struct frame *reply,
                         const char **ret_source, struct topt_error *err)
{
    static char
        field[96]; /* of the work thread: a name in the document, which is freed here */
    json_t *doc = parse_body(body, len, "the request", ret_source, err);
    if (!doc)
        return -1;
    int rc = take_question(doc, reply, ret_source, err);
    snprintf(field, sizeof field, "%s", *ret_source);
    *ret_source = field;
    json_decref(doc);
    return rc;
}

/* Reads a run's script into the question, and replies that question and the notes of what is planned otherwise than the
 * script says. */
static int put_run(const char *body, size_t len, const char *name, struct topt_query *q,
                   struct frame *reply, const char **ret_source, struct topt_error *err)
{
    json_t *notes;
    if (planner_take_run(body, len, name, q, &notes, ret_source, err) < 0)
        return -1;
    char *text = json_array_size(notes) ? topt_json_text(notes, 0) : NULL;
    int rc = json_array_size(notes) && !text ? topt_nomem(err, NULL)
                                             : put_query(q, reply, ret_source, err);
    frame_put_text(reply, text);
    free(text);
    json_decref(notes);
    return rc;
}

/* The model's file, of so many samples and positions. */
static int read_file(const char *body, size_t len, const char *name, struct topt_query *q,
                     struct frame *reply, const char **ret_source, struct topt_error *err)
{
    if (!q->as_is || *q->degrees) { /* else they are said beside the model */
        frame_put_text(reply, "");  /* no question is in it, and no notes */
        frame_put_text(reply, "");
    } else if (put_run(body, len, *name ? name : "the script", q, reply, ret_source,
                       err) < 0) {
        return -1;
    }
    json_t *doc = parse_model(body, len, *name ? name : "the model", q->batch, q->seq,
                              ret_source, err);
    int rc = doc ? put_model(doc, name, reply, ret_source, err) : -1;
    json_decref(doc);
    return rc;
}

static int do_read(struct frame *request, struct frame *reply, const char **ret_source,
                   struct topt_error *err)
{
    struct topt_query q;
    size_t len = 0;
    int is_question = frame_get_int(request) != 0;
    if (take_query(request, &q, ret_source, err) < 0)
        return -1;
    const char *name = frame_get_text(request);
    const char *body = frame_get(request, &len);
    body = body ? body : "";
    return is_question ? read_question(body, len, reply, ret_source, err)
                       : read_file(body, len, name, &q, reply, ret_source, err);
}

static int do_check(struct frame *request, const char **ret_source,
                    struct topt_error *err)
{
    struct topt_query q;
    return take_query(request, &q, ret_source, err);
}

static int do_facts(struct frame *request, struct frame *reply, const char **ret_source,
                    struct topt_error *err)
{
    struct planner_facts f;
    const char *name = frame_get_text(request), *text = frame_get_text(request);
    *ret_source = "model";
    if (planner_model_facts(text, name, &f, err) < 0)
        return -1;
    frame_put_int(reply, f.parameters);
    frame_put_int(reply, f.operators);
    frame_put_int(reply, f.flops_per_sample);
    frame_put_int(reply, f.activation_bytes_per_sample);
    frame_put_int(reply, f.batch);
    frame_put_int(reply, f.seq);
    return 0;
}

/* ---- profiles ---------------------------------------------------------------------- */

static int put_hw(const json_t *doc, struct frame *reply, const char **ret_source,
                  struct topt_error *err)
{
    char id[TOPT_ID];
    const char *name = json_string_value(json_object_get(doc, "name"));
    *ret_source = "name";
    if (!name || !topt_is_name(name, 79))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "name must be 1..79 letters, digits and \"._-\"");
    char *text = canonical(doc, 'h', id);
    frame_put_text(reply, id);
    frame_put_text(reply, name);
    frame_put_text(reply, text);
    int rc = text ? 0 : topt_nomem(err, NULL);
    free(text);
    return rc;
}

static int do_profile(struct frame *request, struct frame *reply, const char **ret_source,
                      struct topt_error *err)
{
    size_t len = 0;
    json_t *doc = NULL;
    const char *bytes = frame_get(request, &len);
    json_t *given = parse_body(bytes ? bytes : "", len, "the profile", ret_source, err);
    if (!given)
        return -1;
    *ret_source = "hardware";
    int rc = planner_check_hw(given, &doc, err);
    if (rc == 0)
        rc = put_hw(doc, reply, ret_source, err);
    json_decref(doc);
    json_decref(given);
    return rc;
}

static int do_shipped(struct frame *reply, struct topt_error *err)
{
    char id[TOPT_ID];
    for (const char *const *name = planner_hw_shipped(); *name; name++) {
        json_t *doc = NULL;
        if (planner_hw_get(*name, &doc, err) < 0)
            return -1;
        char *text = canonical(doc, 'h', id);
        json_decref(doc);
        if (!text)
            return topt_nomem(err, NULL);
        frame_put_text(reply, *name);
        frame_put_text(reply, id);
        frame_put_text(reply, text);
        free(text);
    }
    return 0;
}

static int do_launch(struct frame *request, struct frame *reply, const char **ret_source,
                     struct topt_error *err)
{
    char *script = NULL;
    *ret_source = "id";
    int is_drawn = frame_get_int(request) != 0;
    const char *plan = frame_get_text(request);
    if ((is_drawn ? planner_schedule : planner_launch)(plan, &script, err) < 0)
        return -1;
    frame_put_text(reply, script);
    free(script);
    return 0;
}

/* ---- searches ---------------------------------------------------------------------- */

/* Split the solver's answer into what the store keeps. */
static int put_answer(const struct topt_query *q, const struct planner_question *pq,
                      json_t *found, struct frame *reply, struct topt_error *err)
{
    char id[TOPT_ID] = "", *plan_text = NULL;
    int feasible =
        q->kind != TOPT_QUERY_PLAN || json_is_true(json_object_get(found, "feasible"));
    const json_t *plan = json_object_get(found, "plan");
    if (q->kind == TOPT_QUERY_PLAN && feasible && (plan || !slurm_is_several(found))) {
        if (!plan)
            return topt_fail(err, TOPT_ERR_INTERNAL, "the answer holds no plan");
        if (planner_plan_id(plan, id, err) < 0)
            return -1;
        if (!(plan_text = topt_json_text(plan, 0)))
            return topt_nomem(err, NULL);
        json_object_set_new(found, "plan_id", json_string(id));
        json_object_set_new(found, "slurm", slurm_job(found, pq->hw));
        json_object_del(found, "plan");
    } else if (q->kind == TOPT_QUERY_PLAN && feasible) {
        json_object_set_new(found, "slurm", json_null());
    }
    json_object_set_new(found, "model_id", json_string(pq->model_id));
    json_object_set_new(found, "hw_id", json_string(pq->hw_id));
    char *text = topt_json_text(found, 0);
    frame_put_int(reply, feasible);
    frame_put_text(reply, text);
    frame_put_text(reply, id);
    frame_put_text(reply, plan_text);
    int rc = text ? 0 : topt_nomem(err, NULL);
    free(text);
    free(plan_text);
    return rc;
}

static int do_plan(struct planner *planner, struct frame *request, struct watch *w,
                   struct frame *reply, const char **ret_source, struct topt_error *err)
{
    struct topt_query q;
    json_t *found = NULL;
    int searched = 1, stopped = 0;
    if (take_query(request, &q, ret_source, err) < 0)
        return -1;
    /* Its fields are good: what fails now is the model, or the search. */
    *ret_source = "";
    struct planner_question pq = {.query = &q,
                                  .cancel = &w->cancel,
                                  .stop = &w->stop,
                                  .brief = &w->brief,
                                  .progress = &w->progress,
                                  .searched = &searched};
    pq.model_id = frame_get_text(request);
    pq.what = frame_get_text(request);
    pq.model = frame_get_text(request);
    pq.hw_id = frame_get_text(request);
    pq.hw = frame_get_text(request);
    pq.threads = (int)frame_get_int(request);
    pq.max_table_bytes = frame_get_int(request);
    pq.memory_mill = frame_get_int(request);
    pq.problem = frame_get_text(request);
    pq.notes = frame_get_text(request);
    int rc = planner_answer(planner, &pq, &found, err);
    if (rc < 0 && err->code == TOPT_ERR_USAGE && *q.pin &&
        !strncmp(err->text, "--pin", 5))
        *ret_source =
            "pin"; /* which names the model's operators, so is read with the model */
    if (rc < 0 && !strncmp(err->text, "--groups", 8))
        *ret_source = "groups"; /* which are the profile's */
    if (rc < 0 && !strncmp(err->text, "--degrees", 9))
        *ret_source = "degrees"; /* which are of a number of GPUs and a batch */
    if (rc == 0)
        stopped = json_is_true(json_object_get(found, "stopped")) ||
                  json_is_true(json_object_get(found, "brief"));
    if (rc == 0)
        rc = put_answer(&q, &pq, found, reply, err);
    if (rc == 0) {
        frame_put_int(reply, searched);
        frame_put_int(reply, stopped);
    }
    json_decref(found);
    return rc;
}

/* ---- the whole --------------------------------------------------------------------- */

static int do_request(struct planner *planner, struct frame *request, struct watch *w,
                      struct frame *reply, const char **ret_source,
                      struct topt_error *err)
{
    switch (request->type) {
    case FRAME_READ:
        return do_read(request, reply, ret_source, err);
    case FRAME_PLAN:
        return do_plan(planner, request, w, reply, ret_source, err);
    case FRAME_FACTS:
        return do_facts(request, reply, ret_source, err);
    case FRAME_CHECK:
        return do_check(request, ret_source, err);
    case FRAME_PROFILE:
        return do_profile(request, reply, ret_source, err);
    case FRAME_LAUNCH:
        return do_launch(request, reply, ret_source, err);
    case FRAME_SHIPPED:
        return do_shipped(reply, err);
    default:
        return topt_fail(err, TOPT_ERR_INTERNAL, "no such request");
    }
}

static void put_failure(struct frame *reply, const char *source,
                        const struct topt_error *err)
{
    frame_begin(reply, FRAME_FAIL);
    frame_put_int(reply, err->code);
    frame_put_text(reply, source);
    frame_put_text(reply, err->text);
}

void answer(struct planner *planner, struct frame *request, struct watch *w,
            struct frame *reply)
{
    struct topt_error err = {0};
    const char *source = "";
    frame_begin(reply, FRAME_DONE);
    int rc = do_request(planner, request, w, reply, &source, &err);
    if (rc == 0)
        rc = frame_end(reply, &err);
    if (rc < 0) {
        put_failure(reply, source, &err);
        if (frame_end(reply, &err) < 0)
            frame_fini(reply);
    }
}
