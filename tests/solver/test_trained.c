/* test_trained.c - plans of models that are trained in part: bytes and time worked out by hand,
 * and random strategies held against the programs that they are lowered to. */
#include "evaluated.h"
#include "models.h"
#include "sizes.h"
#include "tap.h"
#include "topt_plan.h"
#include "walk.h"

#include <stdio.h>
#include <string.h>

static struct topt_hw *hw;

/* ---- by hand ----------------------------------------------------------------------- */

static const char llama[] =
    "{\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,"
    "\"num_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,"
    "\"vocab_size\":128256,\"max_position_embeddings\":131072,\"rms_norm_eps\":1e-5,"
    "\"rope_theta\":500000.0,\"tie_word_embeddings\":false}";

/* In bf16, with what of the settings is other. */
static struct topt_strategy_cost cost_llama_by(const char *train,
                                               const struct topt_settings *other)
{
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = 1, .seq = 128, .train = train};
    struct topt_model *m =
        topt_model_import(llama, sizeof llama - 1, "config.json", &o, &err);
    struct topt_strategy_cost c = {.memory_bytes = -1};
    struct topt_settings s = *other;
    struct topt_mesh mesh;
    s.dtype = TOPT_BF16;
    s.granule_bytes = 1;
    if (!m || topt_mesh_init(&mesh, 1, 1, &err))
        return c;
    struct topt_strategy *st = topt_strategy_create(m);
    struct topt_router *r = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &s, r, NULL};
    if (topt_cost_strategy(&k, st, &c, &err))
        printf("# %s\n", err.text);
    topt_router_destroy(r);
    topt_strategy_destroy(st);
    topt_model_destroy(m);
    return c;
}

/* 'rest_f32': beside few bits (topt_settings). */
static struct topt_strategy_cost cost_llama_resting(const char *train, int rest_f32)
{
    struct topt_settings s = topt_settings_default();
    s.rest_f32 = rest_f32;
    s.gather = rest_f32 ? TOPT_GATHER_UNIT : TOPT_GATHER_OPERATOR;
    return cost_llama_by(train, &s);
}

static struct topt_strategy_cost cost_llama(const char *train)
{
    return cost_llama_resting(train, 0);
}

/* Of FP8 a layer's weights lie in bytes both ways round beside bf16, or alone; backward keeps a byte of what
 * products read, and of attention's result bf16 as well; torchao keeps it as it is. */
static void test_low(void)
{
    const int64_t layer = (int64_t)4096 * (6144 + 4096 + 28672 + 14336), positions = 128;
    struct topt_settings s = topt_settings_default();
    s.vocab_multiple = 128; /* as Megatron-LM, whose buffers are looked at */
    s.by_unit = 1;
    struct topt_fragment_cost bf16 = cost_llama_by(NULL, &s).sum;
    s.low = TOPT_LOW_DELAYED;
    struct topt_fragment_cost beside = cost_llama_by(NULL, &s).sum;
    s.low_params = 1;
    struct topt_fragment_cost alone = cost_llama_by(NULL, &s).sum;
    s.low_params = 0;
    s.low_apart = 1;
    s.low = TOPT_LOW_TENSORWISE;
    struct topt_fragment_cost apart = cost_llama_by(NULL, &s).sum;
    is_int(beside.class_bytes[TOPT_CLASS_PARAM] - bf16.class_bytes[TOPT_CLASS_PARAM],
           32 * 2 * layer, "two bytes more a weight of a layer");
    is_int(alone.class_bytes[TOPT_CLASS_PARAM], bf16.class_bytes[TOPT_CLASS_PARAM],
           "or two in all");
    is_int(
        beside.class_bytes[TOPT_CLASS_KEPT] - bf16.class_bytes[TOPT_CLASS_KEPT],
        32 * positions * (-4096 + 4096 - 4096 - 14336),
        "a byte less of what qkv, gate and up, and down read, one more of attention's");
    is_int(apart.class_bytes[TOPT_CLASS_KEPT], bf16.class_bytes[TOPT_CLASS_KEPT],
           "torchao keeps inputs in bf16");
    is_int(apart.class_bytes[TOPT_CLASS_PARAM], bf16.class_bytes[TOPT_CLASS_PARAM],
           "and no cast weight");
    /* One scale for a tensor moves a byte more of each number than one for a row. */
    const int64_t operands = layer + positions * (3 * 4096 + 14336),
                  gradients = positions * (6144 + 4096 + 28672 + 4096);
    s.low = TOPT_LOW_ROWWISE;
    struct topt_fragment_cost rows = cost_llama_by(NULL, &s).sum;
    s.low_strided = 1;
    struct topt_fragment_cost strided = cost_llama_by(NULL, &s).sum;
    double a_byte = (double)(apart.compute_ns - rows.compute_ns),
           more = (double)(strided.compute_ns - rows.compute_ns) / a_byte,
           told = (18.0 * (double)operands + 4.5 * (double)gradients) /
                  (double)(operands + gradients);
    ok(a_byte > 0 && more > 0.99 * told && more < 1.01 * told,
       "with strides rowwise moves %.2f bytes of a number more, %.2f are told", more,
       told);
    ok(!memcmp(strided.class_bytes, rows.class_bytes, sizeof rows.class_bytes),
       "and keeps the same");
}

/* What SwiGLU reads is kept in a byte, in any precision, and takes a cast in each direction. */
static void test_low_activation(void)
{
    const int64_t positions = 128, pairs = 28672;
    struct topt_settings s = topt_settings_default();
    struct topt_fragment_cost whole = cost_llama_by(NULL, &s).sum;
    s.low_activation = 1;
    struct topt_fragment_cost eight = cost_llama_by(NULL, &s).sum;
    is_int(whole.class_bytes[TOPT_CLASS_KEPT] - eight.class_bytes[TOPT_CLASS_KEPT],
           32 * positions * pairs, "a byte less of gate and up");
    ok(eight.compute_ns > whole.compute_ns, "casts take time");
    ok(eight.transient_bytes >= whole.transient_bytes, "beside it as it was computed");
}

/* As PEFT prepares a model of few bits: embedding, head and norms in f32, and what is kept between
 * operators, but logits and statistics; the head's copy in bf16 beside it. */
static void test_rest_f32(void)
{
    const int64_t head = (int64_t)4096 * 128256, norms = (32 * 2 + 1) * 4096,
                  logits = 2 * (int64_t)128 * 128256;
    struct topt_strategy_cost c = cost_llama("lora:16+4bit"),
                              r = cost_llama_resting("lora:16+4bit", 1);
    int64_t kept = c.sum.class_bytes[TOPT_CLASS_KEPT] - logits;
    int64_t twice = r.sum.class_bytes[TOPT_CLASS_KEPT] - logits - 2 * head;
    is_int(r.sum.class_bytes[TOPT_CLASS_PARAM] - c.sum.class_bytes[TOPT_CLASS_PARAM],
           2 * (2 * head + norms), "beside 4 bits the rest is in f32");
    is_int(r.sum.class_bytes[TOPT_CLASS_STATE], c.sum.class_bytes[TOPT_CLASS_STATE],
           "... states as before");
    ok((double)twice > 1.9 * (double)kept && twice <= 2 * kept,
       "... and what is kept takes %.3f times as much, the head's copy apart",
       (double)twice / (double)kept);
}

static void test_bytes(void)
{
    /* Numbers and rows of the linear maps of all blocks. */
    const int64_t all = 8030261248, lora = 41943040,
                  blocks = 32 * (int64_t)4096 * (6144 + 4096 + 28672 + 14336),
                  rows = 32 * (6144 + 4096 + 28672 + 4096), head = (int64_t)4096 * 128256;
    struct topt_strategy_cost full = cost_llama("all"), c = cost_llama("lora:16");
    const int64_t *bytes = c.sum.class_bytes;
    is_int(full.sum.class_bytes[TOPT_CLASS_PARAM], 2 * all, "all: two bytes a number");
    is_int(full.sum.class_bytes[TOPT_CLASS_STATE], 12 * all, "... and twelve of state");
    is_int(bytes[TOPT_CLASS_PARAM], 2 * (all + lora), "adapters beside the weights");
    is_int(bytes[TOPT_CLASS_GRAD], 2 * lora, "gradients of adapters alone");
    is_int(bytes[TOPT_CLASS_STATE], 12 * lora, "... and their states and master copies");
    ok(c.sum.compute_ns < full.sum.compute_ns * 8 / 10 && c.sum.compute_ns > 0,
       "two of three products are left: %.1f of %.1f ms", 1e-6 * (double)c.sum.compute_ns,
       1e-6 * (double)full.sum.compute_ns);
    struct topt_strategy_cost four = cost_llama("lora:16+4bit"),
                              eight = cost_llama("lora:16+8bit");
    is_int(four.sum.class_bytes[TOPT_CLASS_PARAM],
           2 * (all + lora - blocks) + blocks / 2 + blocks / 64 + 4 * (blocks / 16384),
           "4 bits: half a byte, a byte for 64 and an f32 for 256 of those");
    is_int(eight.sum.class_bytes[TOPT_CLASS_PARAM],
           2 * (all + lora - blocks) + blocks + 4 * rows,
           "8 bits: a byte, and an f32 a row");
    is_int(four.sum.class_bytes[TOPT_CLASS_STATE], 12 * lora, "... states as before");
    ok(four.sum.compute_ns > c.sum.compute_ns, "unpacking takes its time");
    c = cost_llama("lm_head");
    is_int(bytes[TOPT_CLASS_GRAD], 2 * head, "by name: the head's gradient");
    is_int(bytes[TOPT_CLASS_STATE], 12 * head, "... and states");
}

static void test_floor(void)
{
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = 1, .seq = 128, .train = "lora:16+4bit"};
    struct topt_model *m =
        topt_model_import(llama, sizeof llama - 1, "config.json", &o, &err);
    struct topt_settings s = topt_settings_default();
    s.dtype = TOPT_BF16;
    struct topt_least_parameters f = topt_least_parameters(m, &s, 0);
    struct topt_strategy_cost c = cost_llama("lora:16+4bit");
    ok(f.value <= (double)c.sum.class_bytes[TOPT_CLASS_PARAM] &&
           f.value > 0.95 * (double)c.sum.class_bytes[TOPT_CLASS_PARAM],
       "values stay with at least %.3f GiB", f.value / (1 << 30));
    is_int((int64_t)f.gradient, c.sum.class_bytes[TOPT_CLASS_GRAD], "gradients");
    is_int((int64_t)f.state, c.sum.class_bytes[TOPT_CLASS_STATE], "states");
    topt_model_destroy(m);
}

/* A frozen parameter is sharded as a whole or not at all. */
static void test_levels(void)
{
    struct topt_model *m = build_mlp();
    struct topt_mesh mesh;
    struct topt_error err = {0};
    if (topt_model_train(&m, "linear4", &err) || topt_mesh_init(&mesh, 1, 2, &err))
        ok(0, "%s", err.text);
    for (int z = 0; z < TOPT_ZERO_LEVELS; z++) {
        struct topt_config c = topt_config_none();
        c.dim[0] = 0;
        c.zero = (uint8_t)z;
        int frozen = topt_model_find(m, "linear1"),
            trained = topt_model_find(m, "linear4");
        is_int(topt_config_valid(&m->op[frozen], &c, &mesh),
               z == TOPT_ZERO_NONE || z == TOPT_ZERO_PARAM, "frozen, level %d", z);
        is_int(topt_config_valid(&m->op[trained], &c, &mesh), 1, "trained, level %d", z);
    }
    topt_model_destroy(m);
}

/* ---- searches ---------------------------------------------------------------------- */

static const char four_blocks[] =
    "{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":128,"
    "\"num_hidden_layers\":4,\"num_attention_heads\":4,\"num_key_value_heads\":2,"
    "\"vocab_size\":128,\"max_position_embeddings\":128,\"tie_word_embeddings\":false}";

/* The fastest within a point's memory is that point. */
static int finds_point(struct topt_request *r, const json_t *point,
                       struct topt_error *err)
{
    json_t *plan = NULL;
    r->mode = TOPT_MINI_TIME;
    r->memory_limit = json_integer_value(json_object_get(point, "memory_bytes"));
    if (topt_plan(r, &plan, err))
        return 0;
    int same = json_integer_value(json_object_get(plan, "time_ns")) ==
               json_integer_value(json_object_get(point, "time_ns"));
    json_decref(plan);
    return same;
}

/* Frontiers whose blocks choose alike, though a first one without gradients at its start costs
 * less; each point is checked by what it costs from scratch. */
static void check_frontier(const char *train, enum topt_space space, int factors)
{
    struct topt_error err = {0};
    struct topt_import_options o = {.batch = 4, .seq = 32, .train = train};
    struct topt_model *m =
        topt_model_import(four_blocks, sizeof four_blocks - 1, "config.json", &o, &err);
    struct topt_request r;
    json_t *doc = NULL;
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.gpus = 4;
    r.space = space;
    r.blocks = TOPT_BLOCKS_ALIKE;
    r.factors = factors;
    if (!m || topt_plan_frontier(&r, &doc, &err)) {
        ok(0, "%s: %s", train, err.text);
        topt_model_destroy(m);
        return;
    }
    const json_t *points = json_object_get(doc, "points");
    int n = (int)json_array_size(points), found = 0, asked = 0;
    for (int i = 0; i<n; i += n> 4 ? n / 4 : 1, asked++)
        found += finds_point(&r, json_array_get(points, (size_t)i), &err);
    ok(n > 0 && found == asked, "%s, %s: %d points, %d of %d found by their memory %s",
       train, topt_space_name(space), n, found, asked, err.text);
    json_decref(doc);
    topt_model_destroy(m);
}

/* ---- random strategies ------------------------------------------------------------- */

/* Nothing of a frozen parameter but its value; no product for its gradient. */
static int leaves_frozen_alone(const struct topt_program *p)
{
    for (int b = 0; b < p->nbuffers; b++) {
        const struct topt_buffer *x = &p->buffer[b];
        if ((x->cls == TOPT_CLASS_GRAD || x->cls == TOPT_CLASS_STATE) &&
            !topt_is_trained(&p->model->op[x->op], x->operand))
            return 0;
    }
    for (int i = 0; i < p->ninstr; i++) {
        const struct topt_instr *in = &p->instr[i];
        for (int o = 0; in->kind == TOPT_I_KERNEL && o < TOPT_MAX_OPERANDS; o++)
            if (in->grad[o] >= 0 && p->model->op[in->op].operand[o].role == TOPT_PARAM &&
                p->model->op[in->op].attrs->frozen)
                return 0;
    }
    return 1;
}

struct counts {
    int lowered, formed, bounded, priced, evaluated, alone;
};

/* Programs leave out what is made again for nobody; costs do not. */
static int recomputes(const struct topt_strategy *s)
{
    for (int i = 0; i < s->nops; i++)
        if (s->config[i].recompute)
            return 1;
    return 0;
}

static void check_strategy(const struct topt_costing *k, struct topt_evaluator *a,
                           const struct topt_strategy *s, struct counts *n)
{
    struct topt_strategy_cost cost;
    struct topt_program *p;
    struct topt_error err = {0};
    if (topt_cost_strategy(k, s, &cost, &err) ||
        topt_lower(k->model, k->mesh, k->settings, s, k->router, 0, &p, &err)) {
        printf("# %s\n", err.text);
        return;
    }
    n->lowered++;
    n->formed += well_formed(p) && layouts_agree(p);
    n->bounded += p->peak_bytes <= cost.memory_bytes;
    int64_t network = program_network(p, hw);
    n->priced += network == cost.sum.network_ns ||
                 (recomputes(s) && network < cost.sum.network_ns);
    n->evaluated += evaluated(a, s, &cost, p->peak_bytes);
    n->alone += leaves_frozen_alone(p);
    topt_program_destroy(p);
}

static void check_model(int number, const char *train, int nodes, int per_node)
{
    enum { STRATEGIES = TOPT_TEST_SIZE_FROM(20, 5) };
    struct topt_error err = {0};
    struct topt_settings settings = topt_settings_default();
    struct topt_mesh mesh;
    struct dice d = {11, 0};
    struct counts n = {0};
    struct topt_model *m = test_models[number].build();
    if (topt_model_train(&m, train, &err)) {
        ok(strstr(err.text, "no linear operator but the head's") != NULL, "%s: %s",
           m->name, err.text);
        topt_model_destroy(m);
        return;
    }
    if (topt_mesh_init(&mesh, nodes, per_node, NULL))
        return;
    struct topt_router *r = topt_router_create(hw, &mesh);
    struct topt_costing k = {m, hw, &mesh, &settings, r, NULL};
    struct topt_evaluator *a = topt_evaluator_create(&k, 1, NULL);
    for (int i = 0; i < STRATEGIES; i++) {
        struct topt_strategy *s = roll_strategy(&d, m, &mesh);
        check_strategy(&k, a, s, &n);
        topt_strategy_destroy(s);
    }
    ok(n.lowered == STRATEGIES && n.formed == STRATEGIES && n.bounded == STRATEGIES &&
           n.priced == STRATEGIES && n.evaluated == STRATEGIES && n.alone == STRATEGIES,
       "%s, %s on %dx%d: of %d strategies %d lower, %d are well formed, %d bounded, %d "
       "priced, %d evaluated, %d leave frozen parameters alone",
       m->name, train, nodes, per_node, STRATEGIES, n.lowered, n.formed, n.bounded,
       n.priced, n.evaluated, n.alone);
    topt_evaluator_destroy(a);
    topt_router_destroy(r);
    topt_model_destroy(m);
}

int main(void)
{
    static const char *const train[] = {"lora:2", "*1*", "lora:2+4bit", "*[135]+8bit"};
    static const char *const search[] = {"lora:4",          "lora:4:q_proj,v_proj",
                                         "lora:4+4bit",     "lm_head,norm,norm2",
                                         "h2.*,h3.*",       "lora:2:down_proj",
                                         "h0.out,h2.norm1", "out",
                                         "*.norm?",         "gate_up"};
    hw = topt_hw_load("v100-dgx1-2x8", NULL);
    test_bytes();
    test_low();
    test_low_activation();
    test_rest_f32();
    test_floor();
    test_levels();
    for (size_t i = 0; i < sizeof search / sizeof *search; i++) {
        check_frontier(search[i], TOPT_SPACE_UNIFORM, TOPT_FACTORS_ALL);
        check_frontier(search[i], TOPT_SPACE_CANONICAL, TOPT_FACTOR_ZERO);
        check_frontier(search[i], TOPT_SPACE_FULL, TOPT_FACTOR_RECOMPUTE);
    }
    for (size_t i = 0; i < sizeof test_models / sizeof *test_models; i++)
        for (int t = 0; t < 4; t++)
            check_model((int)i, train[t], 1 + t % 2, 3 - t % 2);
    topt_hw_destroy(hw);
    return done_testing();
}
