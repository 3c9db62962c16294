/* observations.c - what finished jobs measured, kept beside what their plans said.
 *
 * Only who owns a plan reports of it, one report a job; users see their own, operators and admins
 * all.  Nothing is corrected by them: they are shown, and given out for calibration. */
#include "server.h"

#include <stdlib.h>
#include <string.h>

#include "topt_json.h"

enum { LIST_LIMIT = 500, BODY_LIMIT = 16 << 10 };
static const int64_t most_time_ns = (int64_t)24 * 3600 * 1000000000,
                     most_bytes = (int64_t)1 << 50;

/* ---- a report ---------------------------------------------------------------------------- */

struct report {
    json_t *doc; /* the strings point in here */
    struct store_observation o;
};

static const struct {
    const char *name;
    size_t offset;
    int64_t most;
} numbers[] = {{"job", offsetof(struct store_observation, job), INT64_C(1) << 40},
               {"gpus", offsetof(struct store_observation, gpus), 1 << 20},
               {"step_ns", offsetof(struct store_observation, step_ns), 0},
               {"peak_bytes", offsetof(struct store_observation, peak_bytes), 0},
               {"steps", offsetof(struct store_observation, steps), INT64_C(1) << 40}};

static int take_number(struct report *r, const char *key, const json_t *value,
                       struct topt_error *err)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].name))
            continue;
        int64_t v = json_integer_value(value);
        int64_t most = numbers[i].most             ? numbers[i].most
                       : strcmp(key, "peak_bytes") ? most_time_ns
                                                   : most_bytes;
        if (!json_is_integer(value) || v < 1 || v > most)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s must be a whole number of 1 to %lld", key,
                             (long long)most);
        *(int64_t *)((char *)&r->o + numbers[i].offset) = v;
        return 0;
    }
    return topt_fail(err, TOPT_ERR_INVAL, "%.60s: unknown field", key);
}

static int take_word(const char *key, const json_t *value, const char **ret,
                     struct topt_error *err)
{
    *ret = json_string_value(value);
    return *ret && query_is_name(*ret, 79)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "%s must be a name of letters, digits and \"._-\"", key);
}

/* What was sent into 'r'; '*ret_source' is the field at fault. */
static int read_report(const struct request *q, struct report *r, const char **ret_source,
                       struct topt_error *err)
{
    const char *key;
    json_t *value;
    *ret_source = "body";
    if (q->body_len > BODY_LIMIT)
        return topt_fail(err, TOPT_ERR_LIMIT, "the report is longer than %d bytes",
                         BODY_LIMIT);
    if (!(r->doc = topt_json_parse(q->body, q->body_len, "the report", err)))
        return -1;
    if (!json_is_object(r->doc))
        return topt_fail(err, TOPT_ERR_INVAL, "the report must be an object");
    r->o.cluster = "";
    json_object_foreach(r->doc, key, value)
    {
        *ret_source = key;
        int rc = !strcmp(key, "plan_id")   ? take_word(key, value, &r->o.plan, err)
                 : !strcmp(key, "cluster") ? take_word(key, value, &r->o.cluster, err)
                                           : take_number(r, key, value, err);
        if (rc < 0)
            return -1;
    }
    *ret_source = !r->o.plan ? "plan_id" : "job";
    if (!r->o.plan || !r->o.job)
        return topt_fail(err, TOPT_ERR_INVAL, "%s is missing", *ret_source);
    *ret_source = "step_ns";
    return r->o.step_ns || r->o.peak_bytes
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "neither step_ns nor peak_bytes: what was measured?");
}

/* ---- as documents ------------------------------------------------------------------------ */

/* What the plan said, as {"time_ns", "memory_bytes"}; NULL where it is gone. */
static json_t *said(struct server *s, const char *plan)
{
    struct topt_error err = {0};
    char *text = NULL;
    if (store_get_plan(s->store, plan, NULL, &text, &err) < 0)
        return NULL;
    json_t *doc = json_loads(text, 0, NULL);
    const json_t *predicted = json_object_get(doc, "predicted");
    json_t *out =
        json_pack("{s:O?, s:O?}", "time_ns", json_object_get(predicted, "time_ns"),
                  "memory_bytes", json_object_get(predicted, "memory_bytes"));
    json_decref(doc);
    free(text);
    return out;
}

/* A row of the store in the words of the API, with what was said beside it. */
static void complete(struct server *s, json_t *row)
{
    static const char *const renamed[][2] = {
        {"plan", "plan_id"}, {"model", "model_id"}, {"hw", "hw_id"}};
    for (size_t i = 0; i < 3; i++) {
        json_object_set(row, renamed[i][1], json_object_get(row, renamed[i][0]));
        json_object_del(row, renamed[i][0]);
    }
    json_object_set_new(
        row, "confirmed",
        json_boolean(json_integer_value(json_object_get(row, "confirmed"))));
    json_t *predicted = said(s, json_string_value(json_object_get(row, "plan_id")));
    if (predicted)
        json_object_set_new(row, "predicted", predicted);
}

static struct reply listing(const struct request *q, const char *model, const char *hw,
                            int64_t uid, int limit)
{
    struct topt_error err = {0};
    struct store_page page = {.limit = limit};
    json_t *list = store_list_observations(q->server->store, model, hw, uid, &page, &err),
           *row;
    size_t i;
    if (!list)
        return reply_fail(q, NULL, &err);
    json_array_foreach(list, i, row) complete(q->server, row);
    return reply_json(200,
                      json_pack("{s:o, s:b}", "observations", list, "more", page.more));
}

/* ---- handlers ---------------------------------------------------------------------------- */

struct reply api_observation_add(struct request *q)
{
    struct topt_error err = {0};
    struct report r = {0};
    struct reply reply;
    const char *source;
    char *model = NULL, *hw = NULL;
    int64_t id;
    if (no_parameters(q, &reply) < 0 || check_body(q, &reply) < 0)
        return reply;
    int rc = read_report(q, &r, &source, &err);
    if (rc == 0) {
        source = "plan_id";
        rc = store_plan_of(q->server->store, r.o.plan, q->caller.uid, &model, &hw, &err);
    }
    if (rc == 0) {
        source = NULL;
        r.o.model = model;
        r.o.hw = hw;
        r.o.uid = q->caller.uid;
        rc = store_put_observation(q->server->store, &r.o, &id, &err);
    }
    if (rc < 0) {
        reply = reply_fail(q, source, &err);
    } else {
        json_t *row =
            json_pack("{s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I}", "id", (json_int_t)id,
                      "job", (json_int_t)r.o.job, "plan_id", r.o.plan, "model_id", model,
                      "hw_id", hw, "step_ns", (json_int_t)r.o.step_ns, "peak_bytes",
                      (json_int_t)r.o.peak_bytes, "steps", (json_int_t)r.o.steps);
        json_t *predicted = said(q->server, r.o.plan);
        if (row && predicted)
            json_object_set(row, "predicted", predicted);
        json_decref(predicted);
        reply = reply_json(201, row);
    }
    json_decref(r.doc);
    free(model);
    free(hw);
    return reply;
}

struct reply api_observations(struct request *q)
{
    const char *model = NULL, *hw = NULL;
    for (int i = 0; i < q->npairs; i++) {
        const char *key = q->pair[i].key, *value = q->pair[i].value;
        if (!strcmp(key, "model") && value)
            model = value;
        else if (!strcmp(key, "hw") && value)
            hw = value;
        else
            return reply_error(q, 400, "invalid", key, NULL,
                               "observations are listed by model=ID and hw=ID");
    }
    return listing(q, model, hw,
                   q->caller.role >= ROLE_OPERATOR ? -1 : (int64_t)q->caller.uid,
                   LIST_LIMIT);
}

struct reply api_observation_drop(struct request *q)
{
    struct topt_error err = {0};
    struct reply r;
    int64_t id;
    if (no_parameters(q, &r) < 0)
        return r;
    if (topt_parse_int(q->arg, 1, INT64_MAX, &id, &err) < 0 ||
        store_drop_observation(q->server->store, id, &err) < 0)
        return reply_error(q, 404, "not_found", NULL, NULL, "no such observation");
    return reply_fixed(204, NULL, "");
}
