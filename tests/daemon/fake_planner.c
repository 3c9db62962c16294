/* fake_planner.c - a planner for tests: answers at once or slowly, as the model says.
 *
 * A model is any object; {"fake_ms": N} makes a search take that long, "fake_stubborn": true
 * makes it ignore cancellation, {"model_type": "unknown"} is refused, and a memory limit below
 * "fake_bytes" is infeasible.  The plan is a small document that holds the question. */
#include "planner.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t number(const json_t *model, const char *key)
{
    return json_integer_value(json_object_get(model, key));
}

static json_t *import(const char *text, const char *what, struct topt_error *err)
{
    json_t *m = topt_json_parse(text, strlen(text), what, err);
    const char *type = json_string_value(json_object_get(m, "model_type"));
    if (m && type && !strcmp(type, "unknown")) {
        topt_fail(err, TOPT_ERR_INVAL, "%s: unknown architecture 'unknown'", what);
        json_decref(m);
        return NULL;
    }
    return m;
}

int planner_model_facts(const char *text, const char *what, struct planner_facts *ret,
                        struct topt_error *err)
{
    json_t *m = import(text, what, err);
    if (!m)
        return -1;
    *ret = (struct planner_facts){.parameters = 42, .operators = 3};
    snprintf(ret->name, sizeof ret->name, "%s", what);
    json_decref(m);
    return 0;
}

json_t *planner_model_document(const char *bytes, size_t len, const char *what,
                               int64_t batch, int64_t seq, struct topt_error *err)
{
    (void)bytes, (void)batch, (void)seq;
    topt_fail(err, TOPT_ERR_INVAL, "%s: %zu binary bytes", what, len);
    return NULL;
}

int planner_check_query(const struct query *q, const char **ret_source,
                        struct topt_error *err)
{
    *ret_source = "mode";
    if (q->kind == QUERY_PLAN && strcmp(q->mode, "mini-time") &&
        strcmp(q->mode, "mini-parallelism"))
        return topt_fail(err, TOPT_ERR_INVAL, "unknown mode '%s'", q->mode);
    return 0;
}

int planner_check_hw(const json_t *doc, json_t **ret_doc, struct topt_error *err)
{
    static const char *const allowed[] = {"format", "name", "speed", NULL};
    if (topt_json_only(doc, "", allowed, err) < 0 || topt_json_format(doc, "hw", err) < 0)
        return -1;
    *ret_doc = json_deep_copy(doc);
    return 0;
}

const char *const *planner_hw_shipped(void)
{
    static const char *const names[] = {"fake-hw", "other-hw", NULL};
    return names;
}

int planner_hw_get(const char *name, json_t **ret_doc, struct topt_error *err)
{
    (void)err;
    *ret_doc = json_pack("{s:s, s:s}", "format", "topt-hw/1", "name", name);
    return 0;
}

static int work(int64_t ms, int stubborn, const atomic_bool *cancel,
                struct topt_error *err)
{
    const struct timespec step = {.tv_nsec = 5000000};
    for (; ms > 0; ms -= 5) {
        if (!stubborn && atomic_load(cancel))
            return topt_fail(err, TOPT_ERR_CANCELED, "canceled");
        nanosleep(&step, NULL);
    }
    return 0;
}

static json_t *plan_answer(const struct query *q, int64_t bytes)
{
    int64_t gpus = q->ngpus ? q->gpus[0] : 4;
    if (q->memory_bytes == 1) /* whether anything fits in a byte is left open */
        return json_pack("{s:n, s:s}", "feasible", "why", "nothing was found");
    if (q->memory_bytes && q->memory_bytes < bytes)
        return json_pack("{s:b, s:s, s:{s:I, s:I}, s:[{s:s, s:i}], s:[{s:s, s:s}]}",
                         "feasible", 0, "why", "nothing fits", "nearest", "gpus",
                         (json_int_t)gpus, "memory_bytes", (json_int_t)bytes, "with",
                         "ask", "--tensor-parallel", "gpus", 2, "assumed", "what",
                         "framework", "option", "--framework");
    struct topt_text text = {0};
    query_text(q, &text);
    json_t *plan = json_pack("{s:s, s:s}", "format", "topt-plan/1", "question", text.s);
    topt_text_fini(&text);
    json_t *a =
        json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:o}", "feasible",
                  1, "gpus", (json_int_t)gpus, "nodes", (json_int_t)1, "gpus_per_node",
                  (json_int_t)gpus, "memory_bytes", (json_int_t)bytes, "peak_bytes",
                  (json_int_t)bytes, "time_ns", (json_int_t)1000, "space", "full",
                  "strategy", "data 4", "why", "one line\nwith a break", "plan", plan);
    json_object_set_new(a, "micro_batches", json_integer(2));
    if (q->min_efficiency > 0) /* another answer that it is beside */
        json_object_set_new(
            a, "alternatives",
            json_pack("[{s:i, s:i, s:f}, {s:i, s:i, s:f}, {s:i, s:i, s:f}]", "gpus", 4,
                      "time_ns", 1000, "min_efficiency", 1.0, "gpus", 16, "time_ns", 256,
                      "min_efficiency", 0.9, "gpus", 64, "time_ns", 90, "min_efficiency",
                      0.6));
    if (!strcmp(q->space, "uniform"))
        json_object_set_new(a, "uniform",
                            json_pack("{s:i, s:i, s:i, s:b, s:i}", "dp", 2, "tp", 2,
                                      "zero", 3, "recompute", 1, "micro_batch", 4));
    return a;
}

int planner_answer(const struct planner_question *q, json_t **ret, struct topt_error *err)
{
    json_t *m = import(q->model, q->what, err);
    if (!m)
        return -1;
    int rc = work(number(m, "fake_ms"), json_is_true(json_object_get(m, "fake_stubborn")),
                  q->cancel, err);
    if (rc == 0)
        *ret = q->query->kind == QUERY_PLAN
                   ? plan_answer(q->query, number(m, "fake_bytes"))
                   : json_pack("{s:[{s:i, s:i, s:b}]}", "points", "gpus", 1, "time_ns",
                               10, "feasible", 1);
    json_decref(m);
    return rc;
}

/* It keeps nothing. */
int planner_complete(const struct planner_question *q, struct topt_error *err)
{
    (void)err;
    *q->grown = NULL;
    return 0;
}

int planner_plan_id(const json_t *plan, char ret[TOPT_ID], struct topt_error *err)
{
    return topt_json_id(plan, 'p', ret) < 0 ? topt_nomem(err, NULL) : 0;
}
