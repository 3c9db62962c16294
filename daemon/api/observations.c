/* observations.c - what finished jobs measured, kept beside what their plans said, and
 * what that corrects.
 *
 * Only who owns a plan reports of it, one report a job; users see their own, operators and admins
 * all.  Whose the job is Slurm is asked behind the report. */
#include "confirm.h"
#include "observations.h"
#include "server.h"
#include "topt_log.h"

#include <stdlib.h>
#include <string.h>

#include "topt_json.h"

enum {
    LIST_LIMIT = 500,
    CORRECTIONS_LIMIT = 100,
    BODY_LIMIT = 16 << 10,
    ASK_AGAIN_MS = 2000
};
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
    return *ret && topt_is_name(*ret, 79)
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
                           "neither step_ns nor peak_bytes is given");
}

/* ---- as documents ------------------------------------------------------------------------ */

/* What the plan said, as {"time_ns", "memory_bytes"}. */
static json_t *said(int64_t time_ns, int64_t memory_bytes)
{
    json_t *out = json_object();
    if (out && time_ns)
        json_object_set_new(out, "time_ns", json_integer(time_ns));
    if (out && memory_bytes)
        json_object_set_new(out, "memory_bytes", json_integer(memory_bytes));
    return out;
}

static int64_t take_out(json_t *row, const char *key)
{
    int64_t value = json_integer_value(json_object_get(row, key));
    json_object_del(row, key);
    return value;
}

static void rename_ids(json_t *row)
{
    static const char *const renamed[][2] = {
        {"plan", "plan_id"}, {"model", "model_id"}, {"hw", "hw_id"}};
    for (size_t i = 0; i < 3; i++) {
        if (json_object_get(row, renamed[i][0]))
            json_object_set(row, renamed[i][1], json_object_get(row, renamed[i][0]));
        json_object_del(row, renamed[i][0]);
    }
}

/* A row of the store in the words of the API, with what was said beside it. */
static void complete(json_t *row)
{
    rename_ids(row);
    json_object_set_new(row, "confirmed", json_boolean(take_out(row, "confirmed")));
    json_object_set_new(row, "counts", json_boolean(take_out(row, "counts")));
    int64_t time_ns = take_out(row, "said_time_ns");
    json_object_set_new(row, "predicted",
                        said(time_ns, take_out(row, "said_memory_bytes")));
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
    json_array_foreach(list, i, row) complete(row);
    return reply_json(200, json_pack("{s:s, s:o, s:b}", "format", "topt-observations/1",
                                     "observations", list, "more", page.more));
}

/* ---- handlers ---------------------------------------------------------------------------- */

/* Who asked is answered by it from now on, and Slurm is asked whose the job is. */
static void follow_up(const struct request *q, const struct store_observation *o,
                      int64_t id)
{
    changed_for(q->server, o->uid);
    if (q->server->confirm && !*o->cluster &&
        !confirm_add(q->server->confirm, id, o->job, o->uid))
        topt_log(TOPT_LOG_INFO, "%s: job %lld waits for no confirmation: too many do",
                 q->id, (long long)o->job);
}

static struct reply stored(const struct request *q, const struct store_observation *o,
                           int64_t id)
{
    json_t *row =
        json_pack("{s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:I, s:o}", "id", (json_int_t)id,
                  "job", (json_int_t)o->job, "plan_id", o->plan, "model_id", o->model,
                  "hw_id", o->hw, "step_ns", (json_int_t)o->step_ns, "peak_bytes",
                  (json_int_t)o->peak_bytes, "steps", (json_int_t)o->steps, "predicted",
                  said(o->said_time_ns, o->said_memory_bytes));
    follow_up(q, o, id);
    return reply_json(201, row);
}

struct reply api_observation_add(struct request *q)
{
    struct topt_error err = {0};
    struct report r = {0};
    struct store_plan_facts plan = {0};
    struct reply reply;
    const char *source;
    int64_t id = 0;
    if (no_parameters(q, &reply) < 0 || check_body(q, &reply) < 0)
        return reply;
    int rc = read_report(q, &r, &source, &err);
    if (rc == 0) {
        source = "plan_id";
        rc = store_plan_of(q->server->store, r.o.plan, q->caller.uid, &plan, &err);
    }
    if (rc == 0) {
        source = NULL;
        r.o.model = plan.model;
        r.o.hw = plan.hw;
        r.o.uid = q->caller.uid;
        r.o.said_time_ns = plan.time_ns;
        r.o.said_memory_bytes = plan.memory_bytes;
        rc = store_put_observation(q->server->store, &r.o, &id, &err);
    }
    reply = rc < 0 ? reply_fail(q, source, &err) : stored(q, &r.o, id);
    json_decref(r.doc);
    store_plan_facts_fini(&plan);
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
    atomic_fetch_add(&q->server->epoch, 1);
    return reply_fixed(204, NULL, "");
}

/* ---- corrections ------------------------------------------------------------------------- */

struct reply api_corrections(struct request *q)
{
    struct reply r;
    struct topt_error err = {0};
    struct store_page page = {.limit = CORRECTIONS_LIMIT};
    struct store *s = q->server->store;
    if (no_parameters(q, &r) < 0)
        return r;
    json_t *list = store_list_measured(
               s, q->caller.role >= ROLE_OPERATOR ? -1 : (int64_t)q->caller.uid, &page,
               &err),
           *row;
    size_t i;
    json_array_foreach(list, i, row)
    {
        struct correction c;
        correction_find(s, json_string_value(json_object_get(row, "model")),
                        json_string_value(json_object_get(row, "hw")), q->caller.uid, &c);
        rename_ids(row);
        json_t *said_of = correction_json(&c, NULL);
        json_object_update(row, said_of);
        json_decref(said_of);
    }
    return reply_page(q, "corrections", list, &page, &err);
}

struct reply api_correction_reset(struct request *q)
{
    struct topt_error err = {0};
    struct reply r;
    if (no_parameters(q, &r) < 0)
        return r;
    if (store_reset_measured(q->server->store, q->arg, q->group, &err) < 0)
        return reply_fail(q, NULL, &err);
    topt_log(TOPT_LOG_INFO, "%s: uid %d reset what was measured of %s on %s", q->id,
             (int)q->caller.uid, q->arg, q->group);
    atomic_fetch_add(&q->server->epoch, 1);
    return reply_fixed(204, NULL, "");
}

/* ---- behind the reports ------------------------------------------------------------------ */

static int ask_slurm(void *ctx, int64_t job, int64_t uid)
{
    struct server *s = ctx;
    struct topt_error err = {0};
    int rc = site_job_is_of(s->site, job, uid, &err);
    if (rc < 0)
        topt_log(TOPT_LOG_DEBUG, "job %lld: %s", (long long)job, err.text);
    return rc < 0 && err.code == TOPT_ERR_NOTFOUND ? 0 : rc;
}

static void slurm_confirms(void *ctx, int64_t id)
{
    struct server *s = ctx;
    struct topt_error err = {0};
    if (store_confirm_observation(s->store, id, &err) < 0)
        topt_log(TOPT_LOG_INFO, "observation %lld: %s", (long long)id, err.text);
    atomic_fetch_add(&s->epoch, 1);
}

int observations_start(struct server *s, struct topt_error *err)
{
    const struct confirm_config c = {ask_slurm, slurm_confirms, s, ASK_AGAIN_MS};
    return *atomic_load(&s->config)->scontrol ? confirm_create(&c, &s->confirm, err) : 0;
}

void observations_stop(struct server *s)
{
    confirm_destroy(s->confirm);
    s->confirm = NULL;
}
