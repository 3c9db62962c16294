/* test_plan.c - requests and plan documents: answers, round trips, refusals, determinism. */
#include <stdlib.h>
#include <string.h>

#include "random_model.h"
#include "tap.h"
#include "topt_json.h"
#include "topt_plan.h"

static struct topt_hw *hw;
static struct topt_model *model;

static void request(struct topt_request *r, enum topt_mode mode)
{
    topt_request_init(r);
    r->model = model;
    r->hw = hw;
    r->mode = mode;
}

static int64_t whole(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static json_t *answer(const struct topt_request *r)
{
    struct topt_error err = {0};
    json_t *a = NULL;
    if (topt_plan(r, &a, &err))
        printf("# %s\n", err.text);
    return a;
}

static void test_modes(void)
{
    struct topt_request r;
    request(&r, TOPT_MINI_TIME);
    r.gpus = 1;
    json_t *one = answer(&r);
    int64_t need = whole(one, "memory_bytes");
    ok(need > 0 && whole(one, "gpus") == 1, "one GPU: a plan");
    request(&r, TOPT_MINI_PARALLELISM);
    r.memory_limit = need;
    json_t *fits = answer(&r);
    is_int(whole(fits, "gpus"), 1, "the memory of one GPU: one GPU");
    r.memory_limit = need - 1;
    json_t *more = answer(&r);
    ok(whole(more, "gpus") > 1, "one byte less: more than one");
    ok(whole(more, "memory_bytes") <= need - 1, "and it fits");
    r.memory_limit = 100;
    json_t *never = answer(&r);
    ok(never && !json_is_true(json_object_get(never, "feasible")),
       "100 bytes: infeasible");
    ok(whole(json_object_get(never, "nearest"), "memory_bytes") > 100,
       "the nearest is named");
    request(&r, TOPT_PROFILING);
    r.pow2_counts = 1;
    json_t *curve = NULL;
    ok(!topt_plan_curve(&r, &curve, NULL), "a curve");
    is_int(json_array_size(json_object_get(curve, "points")), 4, "1, 2, 4, 8 GPUs");
    json_decref(one);
    json_decref(fits);
    json_decref(more);
    json_decref(never);
    json_decref(curve);
}

static void test_determinism(void)
{
    char *first = NULL;
    int same = 1;
    static const int threads[] = {1, 2, 8, 1};
    for (int i = 0; i < 4; i++) {
        struct topt_request r;
        request(&r, TOPT_MINI_TIME);
        r.gpus = 4;
        r.threads = threads[i];
        json_t *a = answer(&r);
        char *text = topt_json_text(json_object_get(a, "plan"), 0);
        same &= text && (!first || !strcmp(first, text));
        json_decref(a);
        if (first)
            free(text);
        else
            first = text;
    }
    ok(same, "1, 2 and 8 threads: byte-identical plans");
    free(first);
}

static json_t *a_plan(int gpus)
{
    struct topt_request r;
    request(&r, TOPT_MINI_TIME);
    r.gpus = gpus;
    json_t *a = answer(&r), *plan = json_incref(json_object_get(a, "plan"));
    json_decref(a);
    return plan;
}

static void test_round_trip(void)
{
    struct topt_error err = {0};
    struct topt_plan_doc *p = NULL;
    json_t *plan = a_plan(4);
    char *text = topt_json_text(plan, 0);
    json_t *again = topt_json_parse(text, strlen(text), "plan", &err);
    if (ok(!topt_plan_read(again, &p, &err), "a plan reads back: %s", err.text)) {
        is_int(p->mesh.devices, 4, "its devices");
        is_int(p->program->peak_bytes, p->peak_bytes,
               "its program has the predicted peak");
        ok(!strncmp(p->id, "p-", 2) && strlen(p->id) == 18, "its id is %s", p->id);
        char *explained = topt_plan_explain(plan, 1, &err);
        ok(explained && strstr(explained, "4 GPUs") && strstr(explained, "Device mesh ["),
           "it can be explained");
        free(explained);
        char *program = topt_program_text(p->program);
        ok(program && strstr(program, "-- step"), "and its program written out");
        free(program);
    }
    topt_plan_doc_destroy(p);
    json_decref(again);
    json_decref(plan);
    free(text);
}

static void refuse(json_t *plan, const char *why, const char *word)
{
    struct topt_error err = {0};
    struct topt_plan_doc *p = NULL;
    int rc = topt_plan_read(plan, &p, &err);
    ok(rc == -1 && strstr(err.text, word), "%s: %s", why, err.text);
    topt_plan_doc_destroy(p);
    json_decref(plan);
}

static void test_refusals(void)
{
    json_t *p = a_plan(2);
    json_object_set_new(p, "surprise", json_true());
    refuse(p, "an unknown field", "surprise");
    p = a_plan(2);
    json_object_set_new(p, "format", json_string("topt-plan/9"));
    refuse(p, "another format", "topt-plan/9");
    p = a_plan(2);
    json_array_remove(json_object_get(p, "ops"), 0);
    refuse(p, "an operator less", "ops");
    p = a_plan(2);
    json_object_set_new(
        json_object_get(json_array_get(json_object_get(p, "ops"), 0), "axes"), "g7",
        json_string("b"));
    refuse(p, "an axis the devices lack", "g7");
    p = a_plan(2);
    json_object_set_new(
        json_object_get(json_array_get(json_object_get(p, "ops"), 0), "axes"), "g0",
        json_string("q"));
    refuse(p, "a dimension the operator lacks", "q");
    p = a_plan(2);
    json_object_del(p, "mesh");
    refuse(p, "no devices", "mesh");
    refuse(json_array(), "not an object", "plan");
    struct topt_request r;
    struct topt_error err = {0};
    json_t *a = NULL;
    request(&r, TOPT_MINI_TIME);
    ok(topt_plan(&r, &a, &err) == -1, "no GPUs asked for: %s", err.text);
    r.gpus = 7;
    ok(topt_plan(&r, &a, &err) == -1, "7 GPUs of 2 nodes of 4: %s", err.text);
    r.gpus = 2;
    r.settings.dtype = TOPT_BF16;
    ok(topt_plan(&r, &a, &err) == -1, "a type the device has not: %s", err.text);
    r.settings.dtype = TOPT_F32;
    atomic_bool stop = 1;
    r.cancel = &stop;
    ok(topt_plan(&r, &a, &err) == -1 && err.code == TOPT_ERR_CANCELED, "canceled: %s",
       err.text);
}

static void test_sample(void)
{
    struct topt_request r;
    json_t *a = NULL, *b = NULL;
    struct topt_error err = {0};
    request(&r, TOPT_MINI_TIME);
    r.gpus = 8;
    ok(!topt_plan_sample(&r, 5, 42, &a, &err) && json_array_size(a) == 5,
       "5 random plans");
    ok(!topt_plan_sample(&r, 5, 42, &b, &err) && json_equal(a, b),
       "the same for the same seed");
    json_decref(b);
    b = NULL;
    ok(!topt_plan_sample(&r, 5, 43, &b, &err) && !json_equal(a, b), "others for another");
    int read = 0;
    for (size_t i = 0; i < 5; i++) {
        struct topt_plan_doc *p = NULL;
        read += !topt_plan_read(json_array_get(a, i), &p, &err);
        topt_plan_doc_destroy(p);
    }
    is_int(read, 5, "they read back");
    json_decref(a);
    json_decref(b);
}

int main(void)
{
    hw = topt_hw_load("lab-cpu", NULL);
    model = random_model(12, 6);
    if (!ok(hw && model, "profile and model"))
        return done_testing();
    test_modes();
    test_determinism();
    test_round_trip();
    test_refusals();
    test_sample();
    topt_model_destroy(model);
    topt_hw_destroy(hw);
    return done_testing();
}
