/* fake_planner.c - a planner for tests: answers at once or slowly, or fails, as the model says.
 *
 * A model is any object; {"fake_ms": N} makes a search take that long, where it tells how
 * far it is, and answers with less when it is told to stop; "fake_stubborn": true makes
 * it ignore stop and cancel, "fake_signal": N ends its process, "fake_eat": true makes it
 * take all the memory there is, {"model_type": "unknown"} is refused, and a memory limit
 * below "fake_bytes" is infeasible.  The plan is a small document that holds the question.
 */
#include "planner.h"
#include "topt_json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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

struct planner {
    int unused;
};

struct planner *planner_create(void)
{
    return calloc(1, sizeof(struct planner));
}

void planner_destroy(struct planner *p)
{
    free(p);
}

int planner_model_facts(const char *text, const char *what, struct planner_facts *ret,
                        struct topt_error *err)
{
    json_t *m = import(text, what, err);
    if (!m)
        return -1;
    *ret = (struct planner_facts){.parameters = 42, .operators = 3};
    json_decref(m);
    return 0;
}

int planner_launch(const char *plan, char **ret_script, struct topt_error *err)
{
    (void)plan;
    *ret_script = strdup("#!/bin/bash\n");
    return *ret_script ? 0 : topt_nomem(err, NULL);
}

json_t *planner_model_document(const char *bytes, size_t len, const char *what,
                               int64_t batch, int64_t seq, struct topt_error *err)
{
    (void)bytes, (void)batch, (void)seq;
    topt_fail(err, TOPT_ERR_INVAL, "%s: %zu binary bytes", what, len);
    return NULL;
}

int planner_schedule(const char *plan, char **ret_svg, struct topt_error *err)
{
    (void)plan;
    *ret_svg = strdup("<svg/>");
    return *ret_svg ? 0 : topt_nomem(err, NULL);
}

int planner_take_run(const char *bytes, size_t len, const char *what,
                     struct topt_query *q, json_t **ret_notes, const char **ret_source,
                     struct topt_error *err)
{
    (void)bytes;
    (void)len;
    (void)q;
    (void)ret_notes;
    *ret_source = "model";
    return topt_fail(err, TOPT_ERR_INVAL, "%s is no run", what);
}

int planner_check_query(const struct topt_query *q, const char **ret_source,
                        struct topt_error *err)
{
    *ret_source = "mode";
    if (q->kind == TOPT_QUERY_PLAN && strcmp(q->mode, "mini-time") &&
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

/* Until memory ends, in pieces that are used. */
static int eat(struct topt_error *err)
{
    enum { PIECE = 16 << 20, MOST = 1 << 12 };
    char *piece;
    for (int i = 0; i < MOST && (piece = malloc(PIECE)); i++)
        memset(piece, i, PIECE);
    return topt_nomem(err, "a fake search");
}

/* 1: it was told to stop. */
static int work(const json_t *m, const struct planner_question *q, struct topt_error *err)
{
    const struct timespec step = {.tv_nsec = 5000000};
    int64_t ms = number(m, "fake_ms");
    int stubborn = json_is_true(json_object_get(m, "fake_stubborn"));
    if (number(m, "fake_signal"))
        raise((int)number(m, "fake_signal"));
    if (json_is_true(json_object_get(m, "fake_eat")))
        return eat(err);
    TOPT_PROGRESS(q->progress, phase, TOPT_PHASE_SEARCHING);
    TOPT_PROGRESS(q->progress, gpus, 8);
    TOPT_PROGRESS(q->progress, nodes, 1);
    for (int64_t left = ms; left > 0; left -= 5) {
        if (!stubborn && atomic_load(q->cancel))
            return topt_fail(err, TOPT_ERR_CANCELED, "canceled");
        if (!stubborn && atomic_load(q->stop))
            return 1;
        TOPT_PROGRESS(q->progress, points, ms - left + 1);
        nanosleep(&step, NULL);
    }
    return 0;
}

static json_t *plan_answer(const struct topt_query *q, int64_t bytes, int64_t mill)
{
    int64_t limit = mill > 1000 ? q->memory_bytes * 1000 / mill : q->memory_bytes;
    int64_t gpus = q->ngpus ? q->gpus[0] : 4;
    if (q->memory_bytes == 1) /* whether anything fits in a byte is left open */
        return json_pack("{s:n, s:s}", "feasible", "why", "nothing was found");
    if (limit && limit < bytes)
        return json_pack("{s:b, s:s, s:{s:I, s:I}, s:[{s:s, s:i}], s:[{s:s, s:s}]}",
                         "feasible", 0, "why", "nothing fits", "nearest", "gpus",
                         (json_int_t)gpus, "memory_bytes", (json_int_t)bytes, "with",
                         "ask", "--tensor-parallel", "gpus", 2, "assumed", "what",
                         "framework", "option", "--framework");
    struct topt_text text = {0};
    const char *source;
    if (topt_query_write(q, TOPT_QUERY_ANSWER, &text, &source, NULL))
        return NULL;
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

int planner_answer(struct planner *p, const struct planner_question *q, json_t **ret,
                   struct topt_error *err)
{
    (void)p;
    json_t *m = import(q->model, q->what, err);
    if (!m)
        return -1;
    int rc = work(m, q, err);
    if (rc >= 0)
        *ret = q->query->kind == TOPT_QUERY_PLAN
                   ? plan_answer(q->query, number(m, "fake_bytes"), q->memory_mill)
                   : json_pack("{s:[{s:i, s:i, s:b}]}", "points", "gpus", 1, "time_ns",
                               10, "feasible", 1);
    if (rc > 0)
        json_object_set_new(*ret, "stopped", json_true());
    json_decref(m);
    return rc < 0 ? -1 : 0;
}

int planner_plan_id(const json_t *plan, char ret[TOPT_ID], struct topt_error *err)
{
    return topt_json_id(plan, 'p', ret) < 0 ? topt_nomem(err, NULL) : 0;
}
