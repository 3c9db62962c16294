/* test_systems.c - other systems' searches: each stays in its part of the space, so that
 * nothing of theirs beats ours there; and says of its plan what it has to. */
#include <stdlib.h>
#include <string.h>

#include "points.h"
#include "random_model.h"
#include "tap.h"
#include "topt_plan.h"
#include "topt_simulate.h"

struct question {
    const char *model, *hw;
    int gpus, sharding; /* also of searches that shard parameters */
};

static void request(struct topt_request *r, const struct question *q,
                    struct topt_model **model, struct topt_hw **hw)
{
    struct topt_error err = {0};
    topt_request_init(r);
    r->model = *model = topt_model_load(q->model, NULL, &err);
    r->hw = *hw = topt_hw_load(q->hw, &err);
    r->gpus = q->gpus;
    r->space = TOPT_SPACE_FULL;
    r->settings.accounting = TOPT_ACCOUNTING_PAPER;
    if (!r->model || !r->hw)
        printf("# %s\n", err.text);
}

/* What is searched in a part of the space is never better than the whole of it, and the
 * fastest is the fastest. */
static void test_within(const struct question *q)
{
    static const char *const parts[] = {"data-parallel",
                                        "optcnn",
                                        "right-end",
                                        "mesh-tensorflow",
                                        "mesh-tensorflow-tied",
                                        "mesh-tensorflow-reshape"};
    enum { PARTS = sizeof parts / sizeof *parts };
    struct topt_request r;
    struct topt_model *model;
    struct topt_hw *hw;
    request(&r, q, &model, &hw);
    json_t *ours = frontier(&r, "ft");
    for (int i = 0; i < PARTS; i++) {
        json_t *theirs = frontier(&r, parts[i]);
        ok(npoints(theirs) && covers(ours, theirs),
           "%s, %d GPUs: nothing of %s is better than ours", q->model, q->gpus, parts[i]);
        json_decref(theirs);
    }
    json_t *fastest = frontier(&r, "right-end");
    is_int(npoints(fastest), 1, "who looks at time alone has one answer");
    is_int(whole(point(fastest, 0), "time_ns"),
           whole(point(ours, npoints(ours) - 1), "time_ns"),
           "which is the right end of the frontier");
    r.factors = TOPT_FACTOR_ZERO;
    if (q->sharding) {
        json_t *sharded = frontier(&r, "ft"), *spread = frontier(&r, "tofu");
        ok(npoints(spread) && covers(sharded, spread),
           "nothing of tofu is better than ours with sharding");
        json_decref(sharded);
        json_decref(spread);
    }
    json_decref(fastest);
    json_decref(ours);
    topt_model_destroy(model);
    topt_hw_destroy(hw);
}

/* All channels under one name leave only the batch; names of their own do not. */
static void test_names(void)
{
    static const struct question q = {"paper:wideresnet", "v100-dgx1-2x8", 4, 0};
    struct topt_request r;
    struct topt_model *model;
    struct topt_hw *hw;
    request(&r, &q, &model, &hw);
    json_t *data = frontier(&r, "data-parallel"),
           *tied = frontier(&r, "mesh-tensorflow-tied");
    ok(npoints(tied) == 1 && json_equal(point(tied, 0), point(data, 0)),
       "images, one name for all channels: data parallel is all there is");
    topt_model_destroy(model);
    r.gpus = 8;
    r.model = model = topt_model_load("paper:transformer", NULL, NULL);
    json_t *named = frontier(&r, "mesh-tensorflow"), *one = frontier(&r, "data-parallel");
    ok(whole(point(named, 0), "memory_bytes") < whole(point(one, 0), "memory_bytes"),
       "heads, inner features and words have names that a mesh can split");
    json_decref(data);
    json_decref(tied);
    json_decref(named);
    json_decref(one);
    topt_model_destroy(model);
    topt_hw_destroy(hw);
}

/* ---- plans ------------------------------------------------------------------------------- */

static struct topt_plan_doc *plan_of(struct topt_request *r, const char *algorithm,
                                     json_t **ret_answer)
{
    struct topt_error err = {0};
    struct topt_plan_doc *p = NULL;
    r->mode = TOPT_MINI_TIME;
    r->algorithm = algorithm;
    *ret_answer = NULL;
    if (topt_plan(r, ret_answer, &err) ||
        topt_plan_read(json_object_get(*ret_answer, "plan"), &p, &err))
        printf("# %s: %s\n", algorithm, err.text);
    return p;
}

/* 'due': a part of a sum is nothing that anybody stores. */
static int sharded_everywhere(const struct topt_layout *l, const struct topt_mesh *mesh,
                              int due)
{
    for (int a = 0; a < mesh->naxes; a++)
        if (l->at[a] < 0 && !(due && l->at[a] == TOPT_PARTIAL))
            return 0;
    return 1;
}

/* Is every stored parameter, and every output, in as many parts as there are devices, or a sum
 * that is due and whose parts its consumers keep? */
static int stores_once(const struct topt_plan_doc *p)
{
    for (int i = 0; i < p->model->nops; i++) {
        const struct topt_op *o = &p->model->op[i];
        const struct topt_config *c = &p->strategy->config[i];
        for (int x = 0; x < o->spec->noperands; x++) {
            struct topt_layout l =
                o->operand[x].role == TOPT_PARAM && c->zero == TOPT_ZERO_PARAM
                    ? topt_sharded_layout(o, x, c, &p->mesh)
                    : topt_value_layout(o, x, c, &p->mesh);
            int out = o->operand[x].role == TOPT_OUTPUT;
            int stored = o->operand[x].role == TOPT_PARAM || out;
            if (stored && o->operand[x].present && !sharded_everywhere(&l, &p->mesh, out))
                return 0;
        }
    }
    return 1;
}

static int same_splits(const struct topt_layout *a, const struct topt_layout *b,
                       const struct topt_mesh *mesh)
{
    for (int i = 0; i < mesh->naxes; i++)
        if ((a->at[i] >= 0 || b->at[i] >= 0) && a->at[i] != b->at[i])
            return 0;
    return 1;
}

/* Do producer and consumer, and the hub between them, agree about every tensor? */
static int never_disagrees(const struct topt_plan_doc *p)
{
    const struct topt_model *m = p->model;
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++) {
            int x = m->op[i].input[k], t = m->op[i].tensor[x];
            const struct topt_op *from = &m->op[m->tensor[t].producer];
            struct topt_layout here =
                topt_value_layout(&m->op[i], x, &p->strategy->config[i], &p->mesh);
            struct topt_layout there =
                topt_value_layout(from, from->output,
                                  &p->strategy->config[m->tensor[t].producer], &p->mesh);
            struct topt_layout hub = topt_hub_layout(&p->strategy->hub[t], &p->mesh);
            if (!same_splits(&here, &there, &p->mesh) ||
                (m->tensor[t].nconsumers > 1 && !same_splits(&here, &hub, &p->mesh)))
                return 0;
        }
    return 1;
}

static int all_batch(const struct topt_plan_doc *p)
{
    for (int i = 0; i < p->model->nops; i++)
        for (int a = 0; a < p->mesh.naxes; a++)
            if (p->strategy->config[i].dim[a] != 0 || p->strategy->config[i].zero)
                return 0;
    return 1;
}

static struct topt_model *perceptron(void)
{
    struct topt_model *m = topt_model_create("perceptron", 16, 1, NULL);
    int x = topt_model_add(m, "embedding", "words", 0, NULL,
                           &(struct topt_attrs){.vocab = 64, .features = 32}, NULL);
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "l%d", i);
        x = topt_model_add(m, "linear", name, 1, &x, &(struct topt_attrs){.features = 64},
                           NULL);
    }
    x = topt_model_add(m, "cross_entropy", "loss", 1, &x, NULL, NULL);
    return x >= 0 && !topt_model_finish(m, NULL) ? m : NULL;
}

static void test_plans(void)
{
    struct topt_request r;
    struct topt_model *m = perceptron();
    struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", NULL);
    json_t *answer;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.gpus = 4;
    struct topt_plan_doc *p = plan_of(&r, "data-parallel", &answer);
    ok(p && all_batch(p),
       "data-parallel: every axis splits the batch, nothing is sharded");
    topt_plan_doc_destroy(p);
    json_decref(answer);
    p = plan_of(&r, "tofu", &answer);
    ok(p && stores_once(p), "tofu: parameters and outputs are stored once");
    topt_plan_doc_destroy(p);
    json_decref(answer);
    p = plan_of(&r, "mesh-tensorflow", &answer);
    ok(p && never_disagrees(p), "mesh-tensorflow: a tensor is split alike by all");
    topt_plan_doc_destroy(p);
    json_decref(answer);
    struct topt_error err = {0};
    r.algorithm = "annealing";
    ok(topt_plan(&r, &answer, &err) && strstr(err.text, "brute-force") &&
           strstr(err.text, "mesh-tensorflow-tied"),
       "an unknown algorithm is answered with all names");
    r.algorithm = "optcnn";
    r.memory_limit = 1;
    ok(!topt_plan(&r, &answer, &err) &&
           !json_is_true(json_object_get(answer, "feasible")),
       "optcnn does not give way to a limit");
    json_decref(answer);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* ---- buckets ------------------------------------------------------------------------------- */

struct figures {
    int64_t time_ns, idle_ns, bucket_ns;
    int buckets;
};

/* A step with gradients in buckets of so many bytes; all 0 where that fails. */
static struct figures bucketed(const struct topt_costing *k,
                               const struct topt_strategy *st, int64_t bytes,
                               int64_t cycle_ns)
{
    struct topt_simulate_options o = {TOPT_OVERLAP_DDP, bytes, cycle_ns};
    struct topt_simulation s;
    if (topt_simulate(k, st, &o, &s, NULL))
        return (struct figures){0};
    struct figures f = {s.time_ns, s.idle_ns, s.bucket_ns, s.buckets};
    topt_simulation_fini(&s);
    return f;
}

/* One parameter an operator, the first operator has one: the last gradient is there when
 * backward ends. */
static void test_buckets(void)
{
    struct topt_error err = {0};
    struct topt_model *m = perceptron();
    struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", NULL);
    struct topt_settings s = topt_settings_default();
    struct topt_mesh mesh;
    struct topt_strategy *st = topt_strategy_create(m);
    struct topt_strategy_cost plain;
    s.granule_bytes = 1;
    ok(!topt_mesh_init(&mesh, 2, 2, &err), "2 x 2 devices");
    struct topt_router *router = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &s, router, NULL};
    struct figures none = bucketed(&k, st, INT64_MAX / 4, 0);
    ok(none.buckets == 0 && !topt_cost_strategy(&k, st, &plain, &err) &&
           none.time_ns == plain.time_ns,
       "without replicas there is nothing to reduce");
    for (int i = 0; i < m->nops; i++)
        for (int a = 0; a < mesh.naxes; a++)
            st->config[i].dim[a] = 0;
    ok(!topt_cost_strategy(&k, st, &plain, &err), "data parallel, %s", err.text);
    struct figures one = bucketed(&k, st, INT64_MAX / 4, 0),
                   each = bucketed(&k, st, 1, 0), late = bucketed(&k, st, 1, 1000000000);
    int64_t bytes = 4 * (64 * 32 + 32 * 64 + 2 * 64 * 64);
    is_int(one.buckets, 1, "one large bucket");
    is_int(one.bucket_ns, topt_router_time(router, TOPT_ALL_REDUCE, 3, bytes).ns,
           "it is an all-reduce of all gradients");
    is_int(each.buckets, 4, "small ones: a gradient each");
    is_int(one.time_ns, plain.time_ns - each.bucket_ns + one.bucket_ns,
           "nothing of the large one is hidden");
    ok(each.time_ns < plain.time_ns && each.time_ns > plain.time_ns - each.bucket_ns,
       "all small ones but the last run behind backward");
    ok(late.buckets == 4 && late.idle_ns > each.idle_ns && late.time_ns > 1000000000 &&
           late.time_ns < 1000000000 + plain.time_ns,
       "looked at once a second, they wait for its end");
    topt_strategy_destroy(st);
    topt_router_destroy(router);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

/* ---- all of them --------------------------------------------------------------------------- */

static void test_compare(void)
{
    struct topt_request r;
    struct topt_model *m = perceptron();
    struct topt_hw *hw = topt_hw_load("v100-dgx1-2x8", NULL);
    json_t *doc = NULL, *row;
    struct topt_error err = {0};
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.gpus = 4;
    ok(!topt_plan_compare(&r, NULL, &doc, &err), "a comparison %s", err.text);
    const json_t *rows = json_object_get(doc, "systems");
    double before = 0;
    int sorted = 1, ours = 0, said = 0;
    size_t i;
    json_array_foreach(rows, i, row)
    {
        double ratio = json_real_value(json_object_get(row, "ratio"));
        sorted &= ratio >= before;
        before = ratio;
        said += json_string_length(json_object_get(row, "why")) > 0;
        sorted &= whole(row, "least_bytes") <= whole(row, "memory_bytes");
        const char *name = json_string_value(json_object_get(row, "algorithm"));
        ours += name && !strcmp(name, "ft") &&
                json_real_value(json_object_get(row, "ratio")) == 1;
    }
    ok(sorted && i == 9, "nine systems by time, none below its least memory");
    is_int(said, 8, "of all but ours it is said why they are there");
    is_int(ours, 1, "ours among them, the measure of the others");
    char *text = topt_compare_text(doc);
    ok(text && strstr(text, "vs. ft") && strstr(text, "data-parallel") &&
           strstr(text, "; does not consider "),
       "a table that says it in a line");
    free(text);
    json_decref(doc);
    r.gpus = 7;
    r.memory_limit = 1;
    ok(topt_plan_compare(&r, NULL, &doc, &err) ||
           !strstr(json_string_value(json_object_get(doc, "reading")), "ft takes"),
       "where nothing fits it says so");
    json_decref(doc);
    topt_hw_destroy(hw);
    topt_model_destroy(m);
}

static int64_t work(const json_t *doc)
{
    return whole(json_object_get(doc, "stats"), "products");
}

/* The paper's linear dynamic programming against its elimination of node after node, on its RNN. */
static void test_plain_steps(void)
{
    static const struct question rnn = {"paper:rnn", "v100-dgx1-2x8", 8, 0};
    struct topt_request r;
    struct topt_model *model;
    struct topt_hw *hw;
    request(&r, &rnn, &model, &hw);
    json_t *ours = frontier(&r, "ft"), *plain = frontier(&r, "ft-plain"),
           *elimination = frontier(&r, "ft-elimination");
    ok(npoints(ours) && covers(ours, plain) && covers(plain, elimination) &&
           covers(elimination, ours),
       "the RNN: ft, ft-plain and ft-elimination find the same");
    ok(work(plain) > 0 && work(elimination) >= 5 * work(plain),
       "elimination adds up %.1f times the pairs",
       (double)work(elimination) / (double)work(plain));
    json_decref(ours);
    json_decref(plain);
    json_decref(elimination);
    topt_model_destroy(model);
    topt_hw_destroy(hw);
}

int main(void)
{
    static const struct question questions[] = {
        {"paper:rnn", "v100-dgx1-2x8", 4, 1},
        {"paper:transformer", "v100-dgx1-2x8", 4, 0},
        {"paper:vgg16", "v100-dgx1-2x8", 4, 1},
        {"paper:wideresnet", "v100-dgx1-2x8", 2, 0},
    };
    for (size_t i = 0; i < sizeof questions / sizeof *questions; i++)
        test_within(&questions[i]);
    test_plain_steps();
    test_names();
    test_plans();
    test_buckets();
    test_compare();
    return done_testing();
}
