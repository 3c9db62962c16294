/* answer.c - requests of the daemon: parsed, put to the planner, and answered. */
#include "answer.h"
#include "documents.h"
#include "planner.h"
#include "topt_json.h"
#include "topt_text.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PAIRS = 64 };

/* A body as it came, with what stands beside it; all borrowed from the request. */
struct body {
    enum frame_form form;
    const char *name, *bytes;
    size_t len;
    struct query_pair pair[MAX_PAIRS];
    int npairs;
};

/* ---- reading ---------------------------------------------------------------------------------- */

static int take_body(struct frame *f, struct body *b, struct topt_error *err)
{
    const char *key;
    *b = (struct body){.form = (enum frame_form)frame_get_int(f)};
    b->name = frame_get_text(f);
    b->bytes = frame_get(f, &b->len);
    while ((key = frame_get(f, NULL))) {
        if (b->npairs == MAX_PAIRS)
            return topt_fail(err, TOPT_ERR_INVAL, "more than %d parameters", MAX_PAIRS);
        int said = frame_get_int(f) != 0;
        const char *value = frame_get_text(f);
        b->pair[b->npairs++] = (struct query_pair){key, said ? value : NULL};
    }
    return b->bytes && b->form < FORM_COUNT
               ? 0
               : topt_fail(err, TOPT_ERR_INTERNAL, "the request is cut short");
}

static int no_pairs(const struct body *b, const char **ret_source, struct topt_error *err)
{
    if (!b->npairs)
        return 0;
    *ret_source = b->pair[0].key;
    return topt_fail(err, TOPT_ERR_INVAL, "%.60s: unknown parameter", b->pair[0].key);
}

/* (a) a JSON request that holds the model or its id.  '*ret_doc' is the model, new, or NULL. */
static int read_json(const struct body *b, struct query *q, json_t **ret_doc,
                     const char **ret_source, struct topt_error *err)
{
    int rc = -1;
    static char field[96]; /* a name out of the document, which is freed here */
    json_t *doc = parse_body(b->bytes, b->len, "the request", ret_source, err);
    if (!doc)
        return -1;
    json_t *model = json_object_get(doc, "model");
    if (no_pairs(b, ret_source, err) < 0 ||
        query_from_json(QUERY_PLAN, doc, q, ret_source, err) < 0) {
        strncpy(field, *ret_source, sizeof field - 1);
        *ret_source = field;
    } else if (!model == !*q->model_id) {
        *ret_source = "model";
        topt_fail(err, TOPT_ERR_INVAL, "exactly one of model and model_id must be given");
    } else {
        *ret_doc = json_incref(model);
        rc = 0;
    }
    json_decref(doc);
    return rc;
}

/* (b) the body is the model's file; the rest is in the URL. */
static int read_file(const struct body *b, struct query *q, json_t **ret_doc,
                     const char **ret_source, struct topt_error *err)
{
    if (query_from_pairs(QUERY_PLAN, b->pair, b->npairs, q, ret_source, err) < 0)
        return -1;
    if (*q->model_id && !b->len)
        return 0;
    if (*q->model_id) {
        *ret_source = "model_id";
        return topt_fail(err, TOPT_ERR_INVAL, "model_id and a body are both given");
    }
    *ret_doc = parse_model(b->bytes, b->len, *q->name ? q->name : "the model", q->batch,
                           q->seq, ret_source, err);
    return *ret_doc ? 0 : -1;
}

static int read_form(const struct body *b, struct query *q, json_t **ret_doc,
                     const char **ret_source, struct topt_error *err)
{
    switch (b->form) {
    case FORM_JSON:
        return read_json(b, q, ret_doc, ret_source, err);
    case FORM_FILE:
        return read_file(b, q, ret_doc, ret_source, err);
    case FORM_MODEL:
        *ret_doc = parse_model(b->bytes, b->len, *b->name ? b->name : "the model", 0, 0,
                               ret_source, err);
        return *ret_doc ? 0 : -1;
    default:
        return query_from_pairs((enum query_kind)(b->form - FORM_PLAN), b->pair,
                                b->npairs, q, ret_source, err);
    }
}

/* The question, checked: its fields and its text. */
static int put_query(const struct query *q, struct frame *reply, const char **ret_source,
                     struct topt_error *err)
{
    struct topt_text line = {0};
    struct query named = *q;
    *named.name = '\0'; /* the model's name says it, in UTF-8 */
    if (planner_check_query(q, ret_source, err) < 0)
        return -1;
    json_t *doc = query_pack(&named, ret_source, err);
    if (!doc)
        return -1;
    char *text = topt_json_text(doc, 0);
    query_text(q, &line);
    int rc = text && !line.oom ? 0 : topt_nomem(err, NULL);
    frame_put_text(reply, text);
    frame_put_text(reply, line.s);
    free(text);
    topt_text_fini(&line);
    json_decref(doc);
    return rc;
}

static int put_model(const json_t *doc, const char *given, struct frame *reply,
                     const char **ret_source, struct topt_error *err)
{
    char id[40], name[MODEL_NAME];
    *ret_source = "model";
    if (!json_is_object(doc))
        return topt_fail(err, TOPT_ERR_INVAL, "the model must be an object");
    char *text = canonical(doc, "m", id);
    if (!text)
        return topt_nomem(err, NULL);
    model_name(doc, given, name);
    frame_put_text(reply, id);
    frame_put_text(reply, name);
    frame_put_text(reply, text);
    free(text);
    return 0;
}

static int do_read(struct frame *request, struct frame *reply, const char **ret_source,
                   struct topt_error *err)
{
    struct body b;
    struct query q = {0};
    json_t *doc = NULL;
    int rc = take_body(request, &b, err);
    if (rc == 0)
        rc = read_form(&b, &q, &doc, ret_source, err);
    if (rc == 0 && b.form != FORM_MODEL)
        rc = put_query(&q, reply, ret_source, err);
    else if (rc == 0)
        frame_put_text(reply, ""), frame_put_text(reply, "");
    if (rc == 0 && doc)
        rc = put_model(doc, b.form == FORM_MODEL ? b.name : q.name, reply, ret_source,
                       err);
    json_decref(doc);
    return rc;
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

/* ---- profiles --------------------------------------------------------------------------------- */

static int put_hw(const json_t *doc, struct frame *reply, const char **ret_source,
                  struct topt_error *err)
{
    char id[40];
    const char *name = json_string_value(json_object_get(doc, "name"));
    *ret_source = "name";
    if (!name || !query_is_name(name, 79))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "name must be 1..79 letters, digits and \"._-\"");
    char *text = canonical(doc, "h", id);
    frame_put_text(reply, id);
    frame_put_text(reply, name);
    frame_put_text(reply, text);
    int rc = text ? 0 : topt_nomem(err, NULL);
    free(text);
    return rc;
}

static int do_hw(struct frame *request, struct frame *reply, const char **ret_source,
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
    char id[40];
    for (const char *const *name = planner_hw_shipped(); *name; name++) {
        json_t *doc = NULL;
        if (planner_hw_get(*name, &doc, err) < 0)
            return -1;
        char *text = canonical(doc, "h", id);
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

/* ---- searches --------------------------------------------------------------------------------- */

/* Options for sbatch that ask for what the plan needs. */
static json_t *slurm_flags(const json_t *found)
{
    long long nodes = json_integer_value(json_object_get(found, "nodes"));
    long long per = json_integer_value(json_object_get(found, "gpus_per_node"));
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
static int put_answer(const struct query *q, const struct planner_question *pq,
                      json_t *found, struct frame *reply, struct topt_error *err)
{
    char id[24] = "", *plan_text = NULL;
    int feasible =
        q->kind != QUERY_PLAN || json_is_true(json_object_get(found, "feasible"));
    if (q->kind == QUERY_PLAN && feasible) {
        const json_t *plan = json_object_get(found, "plan");
        if (!plan)
            return topt_fail(err, TOPT_ERR_INTERNAL, "the answer holds no plan");
        if (planner_plan_id(plan, id, err) < 0)
            return -1;
        if (!(plan_text = topt_json_text(plan, 0)))
            return topt_nomem(err, NULL);
        json_object_set_new(found, "plan_id", json_string(id));
        json_object_set_new(found, "slurm", slurm_flags(found));
        json_object_del(found, "plan");
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
    struct query q;
    const char *text = frame_get_text(request);
    json_t *doc = topt_json_parse(text, strlen(text), "the question", err), *found = NULL;
    int rc = doc ? query_unpack(doc, &q, ret_source, err) : -1;
    json_decref(doc);
    if (rc < 0)
        return -1;
    struct planner_question pq = {
        .query = &q, .cancel = &w->cancel, .stop = &w->stop, .progress = &w->progress};
    pq.model_id = frame_get_text(request);
    pq.what = frame_get_text(request);
    pq.model = frame_get_text(request);
    pq.hw_id = frame_get_text(request);
    pq.hw = frame_get_text(request);
    pq.threads = (int)frame_get_int(request);
    pq.max_table_bytes = frame_get_int(request);
    rc = planner_answer(planner, &pq, &found, err);
    if (rc == 0)
        rc = put_answer(&q, &pq, found, reply, err);
    json_decref(found);
    return rc;
}

/* ---- the whole --------------------------------------------------------------------------------- */

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
    case FRAME_HW:
        return do_hw(request, reply, ret_source, err);
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
