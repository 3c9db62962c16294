/* test_plan.c - requests and plan documents: answers, round trips, refusals, determinism. */
#include <stdlib.h>
#include <string.h>

#include "program_text.h"
#include "random_model.h"
#include "tap.h"
#include "topt_json.h"
#include "topt_export.h"
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
    json_t *smaller = answer(&r);
    ok(whole(smaller, "gpus") == 1 && whole(smaller, "memory_bytes") <= need - 1,
       "one byte less: smaller micro-batches, or something recomputed, on one");
    r.factors = TOPT_FACTOR_ZERO;
    json_t *more = answer(&r);
    ok(whole(more, "gpus") > 1, "without these: more than one");
    ok(whole(more, "memory_bytes") <= need - 1, "and it fits");
    r.factors = TOPT_FACTORS_AUTO;
    r.memory_limit = 100;
    json_t *never = answer(&r);
    ok(never && !json_is_true(json_object_get(never, "feasible")),
       "100 bytes: infeasible");
    ok(whole(json_object_get(never, "nearest"), "memory_bytes") > 100,
       "the nearest is named");
    request(&r, TOPT_PROFILING);
    r.counts = TOPT_COUNTS_POW2;
    json_t *curve = NULL;
    ok(!topt_plan(&r, &curve, NULL), "a curve");
    is_int(json_array_size(json_object_get(curve, "points")), 4, "1, 2, 4, 8 GPUs");
    json_decref(one);
    json_decref(fits);
    json_decref(smaller);
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
        ok(!strncmp(p->id, "p-", 2) && strlen(p->id) == 34, "its id is %s", p->id);
        char *program = program_text(p->program);
        ok(program && strstr(program, "-- step"), "and its program written out");
        free(program);
    }
    topt_plan_doc_destroy(p);
    json_decref(again);
    json_decref(plan);
    free(text);
}

static int says(const char *text, const char *word)
{
    return text && strstr(text, word) != NULL;
}

static void test_explain(void)
{
    struct topt_error err = {0};
    struct topt_explain_options few = {0},
                                all = {.operators = 1, .notation = 1, .around = 1};
    json_t *plan = a_plan(4);
    char *brief = topt_plan_explain(plan, &few, &err);
    char *whole_story = topt_plan_explain(plan, &all, &err);
    ok(says(brief, "on 4 GPUs") && says(brief, "solved exactly: no strategy"),
       "a plan is explained %s", err.text);
    ok(says(brief, "parameters") && says(brief, "optimizer"), "memory by part");
    ok(says(brief, "compute\n") && says(brief, "The step is "), "what bounds the time");
    ok(says(brief, "g0:2 inside a node") && says(brief, " operators\n"),
       "what each axis does");
    ok(!says(brief, "Device mesh [") && says(whole_story, "Device mesh ["),
       "the papers' notation where it is asked for");
    ok(!says(brief, "Other numbers") && says(whole_story, "  3 GPUs: ") &&
           says(whole_story, "  6 GPUs: ") && says(whole_story, "  8 GPUs: "),
       "what other numbers of GPUs would do");
    json_t *doc = topt_plan_explain_json(plan, &all, &err);
    const json_t *time = json_object_get(doc, "time");
    int64_t sent = 0;
    size_t i;
    json_t *x;
    json_array_foreach(json_object_get(time, "network"), i, x)
    {
        sent += whole(x, "ns");
    }
    is_int(sent, whole(time, "network_ns"), "collectives add up to the network's time");
    is_int(json_array_size(json_object_get(doc, "around")), 3, "three other numbers");
    ok(json_object_size(json_object_get(json_object_get(doc, "splits"), "operators")) > 0,
       "operators by what they do");
    json_decref(doc);
    json_object_set_new(plan, "exact", json_false());
    json_object_set_new(plan, "epsilon", json_real(0.01));
    json_object_set_new(plan, "heuristic", json_pack("[s]", "one.of.them"));
    free(brief);
    brief = topt_plan_explain(plan, &few, &err);
    ok(says(brief, "within 1 % of the fastest") && says(brief, "heuristic: one.of.them."),
       "what was not proven %s", err.text);
    free(brief);
    free(whole_story);
    json_decref(plan);
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

/* The least that tables may take to be made, found by halving: below it there is a line that says
 * what to do, from it on the answer is that without any limit. */
static void test_room(void)
{
    struct topt_request r;
    struct topt_error err = {0};
    json_t *a = NULL;
    request(&r, TOPT_MINI_TIME);
    r.gpus = 4;
    r.space = TOPT_SPACE_FULL;
    json_t *all = answer(&r);
    int64_t refused = 1, enough = (int64_t)1 << 40;
    while (refused + 1 < enough) {
        r.max_table_bytes = (refused + enough) / 2;
        if (topt_plan(&r, &a, NULL))
            refused = r.max_table_bytes;
        else
            enough = r.max_table_bytes;
        json_decref(a);
        a = NULL;
    }
    /* At 22 bytes for each pair of classes. */
    ok(enough > 22 * 100 && enough % 22 == 0, "tables take %lld bytes",
       (long long)enough);
    r.max_table_bytes = refused;
    ok(topt_plan(&r, &a, &err) == -1 && err.code == TOPT_ERR_LIMIT &&
           strstr(err.text, "--max-table-bytes") && strstr(err.text, "--space canonical"),
       "a byte less is refused: %s", err.text);
    r.max_table_bytes = enough;
    a = answer(&r);
    ok(a && json_equal(a, all), "with so much the answer is that without a limit");
    json_decref(a);
    json_decref(all);
}

/* ---- sharding, recomputation, micro-batches ------------------------------------------------ */

static json_t *uniform_plan(const struct topt_model *m, int64_t memory,
                            json_t **ret_answer)
{
    struct topt_request r;
    request(&r, TOPT_MINI_TIME);
    r.model = m;
    r.gpus = 4;
    r.space = TOPT_SPACE_UNIFORM;
    r.memory_limit = memory;
    *ret_answer = answer(&r);
    return json_object_get(*ret_answer, "plan");
}

/* A model with blocks whose batch can be cut. */
static struct topt_model *deep_model(void)
{
    struct topt_model *m = topt_model_create("deep", 16, 8, NULL);
    struct topt_attrs a = {.vocab = 16, .features = 16};
    int x = topt_model_add(m, "embedding", "table", 0, NULL, &a, NULL);
    for (int i = 0; i < 6; i++) {
        char name[3][16];
        for (int k = 0; k < 3; k++)
            snprintf(name[k], sizeof name[k], "h%d.%d", i, k);
        int y = topt_model_add(m, "linear", name[0], 1, &x, &a, NULL);
        y = topt_model_add(m, "norm", name[1], 1, &y, NULL, NULL);
        int two[2] = {x, y};
        x = topt_model_add(m, "add", name[2], 2, two, NULL, NULL);
    }
    x = topt_model_add(m, "linear", "head", 1, &x, &a, NULL);
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    ok(x >= 0 && !topt_model_finish(m, NULL), "a model of six blocks");
    return m;
}

/* With ever less memory a uniform plan takes what it has to; what it says of itself adds up. */
static void test_uniform(struct topt_model *m)
{
    int zero = 0, again = 0, micro = 0, read = 0, n = 0;
    json_t *a;
    int64_t memory = 0;
    for (;; n++) {
        struct topt_plan_doc *p = NULL;
        struct topt_error err = {0};
        json_t *plan = uniform_plan(m, memory, &a), *u = json_object_get(plan, "uniform");
        if (!plan)
            break;
        int64_t dp = whole(u, "dp"), batches = whole(a, "micro_batches");
        read += !topt_plan_read(plan, &p, &err) && dp * whole(u, "tp") == 4 &&
                whole(u, "micro_batch") == (16 / batches + dp - 1) / dp &&
                p->micro->batch * batches == 16 && p->model->batch == 16;
        zero |= whole(u, "zero") > 0;
        again |= json_is_true(json_object_get(u, "recompute"));
        micro |= batches > 1;
        memory = whole(a, "memory_bytes") / 16 * 15;
        topt_plan_doc_destroy(p);
        json_decref(a);
    }
    ok(a && !json_is_true(json_object_get(a, "feasible")), "at last nothing fits");
    json_decref(a);
    is_int(read, n, "%d uniform plans say what they are and read back", n);
    ok(zero && again && micro, "they shard (%d), recompute (%d), take micro-batches (%d)",
       zero, again, micro);
}

static void test_factor_refusals(struct topt_model *m)
{
    struct topt_error err = {0};
    json_t *a, *plan = json_deep_copy(uniform_plan(m, 0, &a));
    json_decref(a);
    json_t *op = json_array_get(json_object_get(plan, "ops"), 3); /* add: no parameter */
    json_object_set_new(op, "zero", json_integer(2));
    refuse(json_deep_copy(plan), "nothing to shard", "h0.2");
    json_object_set_new(op, "zero", json_integer(4));
    refuse(json_deep_copy(plan), "no table whose gradient could be rows", "h0.2");
    json_object_set_new(op, "zero", json_integer(6));
    refuse(json_deep_copy(plan), "a level of sharding that is none", "zero");
    json_object_del(op, "zero");
    json_object_set_new(op, "recompute", json_true());
    refuse(json_deep_copy(plan), "what others outside of the block read", "h0.2");
    json_object_del(op, "recompute");
    json_t *settings = json_object_get(plan, "settings");
    json_object_set_new(settings, "micro_batches", json_integer(3));
    refuse(json_deep_copy(plan), "micro-batches that don't divide", "micro_batches");
    json_object_del(settings, "micro_batches");
    json_object_set_new(plan, "blocks", json_string("odd"));
    refuse(plan, "blocks that choose oddly", "odd");
    int bits;
    ok(!topt_factors_parse("zero,micro", &bits, &err) &&
           bits == (TOPT_FACTOR_ZERO | TOPT_FACTOR_MICRO),
       "factors with commas");
    ok(topt_factors_parse("all,zero", &bits, &err) && strstr(err.text, "alone"),
       "all and more: %s", err.text);
    ok(topt_factors_parse("speed", &bits, &err) && strstr(err.text, "recompute"),
       "an unknown factor: %s", err.text);
    struct topt_request r;
    request(&r, TOPT_MINI_TIME);
    r.gpus = 2;
    r.factors = TOPT_FACTOR_RECOMPUTE;
    r.blocks = TOPT_BLOCKS_FREE;
    ok(topt_plan_frontier(&r, &a, &err) == -1 && strstr(err.text, "alike"),
       "a frontier with recomputation where blocks are free: %s", err.text);
    r.factors = 0;
    r.model = m;
    r.micro_batches = 5;
    ok(topt_plan(&r, &a, &err) == -1 && strstr(err.text, "micro"),
       "5 micro-batches of 16 samples: %s", err.text);
}

static void test_bands(void)
{
    struct topt_request r;
    request(&r, TOPT_MINI_TIME);
    r.gpus = 2;
    json_t *a = answer(&r), *band = json_object_get(a, "band"), *value;
    json_t *memory = json_object_get(band, "memory"), *t = json_object_get(band, "time");
    const char *key;
    int64_t sum = 0, rests = 0;
    json_object_foreach(json_object_get(a, "memory_parts"), key, value) sum +=
        json_integer_value(value);
    json_object_foreach(json_object_get(t, "rests_on_ns"), key, value) rests +=
        json_integer_value(value);
    is_int(sum, whole(a, "memory_bytes"), "the parts are the whole where no reserve is");
    ok(whole(memory, "low_bytes") == whole(a, "peak_bytes") &&
           whole(memory, "high_bytes") == whole(a, "memory_bytes"),
       "memory between the peak and the sum");
    is_int(rests, whole(a, "time_ns"), "all of the time rests on something");
    ok(whole(t, "low_ns") < whole(a, "time_ns") &&
           whole(a, "time_ns") < whole(t, "high_ns"),
       "time within its band");
    json_decref(a);
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
    test_explain();
    test_refusals();
    test_room();
    test_sample();
    test_bands();
    struct topt_model *deep = deep_model();
    test_uniform(deep);
    test_factor_refusals(deep);
    topt_model_destroy(deep);
    topt_model_destroy(model);
    topt_hw_destroy(hw);
    return done_testing();
}
