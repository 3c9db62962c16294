/* Tensor parallelism of frameworks: each operator and each waiting tensor has the one layout that
 * the framework's source says, collectives of a layer are those counted by hand, and a model or
 * a degree that a framework does not have is refused by name. */
#include "tap.h"

#include "topt_lower.h"
#include "topt_model.h"
#include "topt_plan.h"
#include "topt_plan_doc.h"
#include "topt_question.h"
#include "topt_tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1, SEQ = 64, WIDTH = 256 };

/* ---- models ---------------------------------------------------------------------------- */

static const char *family(const char *type, int layers, int kv, const char *more)
{
    static char text[800];
    snprintf(text, sizeof text,
             "{\"model_type\":\"%s\",\"hidden_size\":%d,\"num_hidden_layers\":%d,"
             "\"num_attention_heads\":16,\"num_key_value_heads\":%d,"
             "\"intermediate_size\":512,\"vocab_size\":1024,\"hidden_act\":\"silu\","
             "\"max_position_embeddings\":4096,\"tie_word_embeddings\":false%s}",
             type, WIDTH, layers, kv, more);
    return text;
}

static const char gpt2[] = "{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":256,"
                           "\"n_head\":16,\"n_positions\":128,\"vocab_size\":1024}";
static const char experts[] = ",\"num_local_experts\":8,\"num_experts_per_tok\":2";

static struct topt_model *import(const char *text)
{
    struct topt_import_options o = {.batch = BATCH, .seq = SEQ};
    struct topt_error err = {0};
    struct topt_model *m = topt_model_import(text, strlen(text), "config.json", &o, &err);
    if (!m)
        printf("# %s\n", err.text);
    return m;
}

/* One sample on a node of 't' GPUs, so that all of them are tensor parallel ranks. */
static struct topt_plan_doc *plan(const struct topt_model *m, const struct topt_hw *hw,
                                  const char *framework, const char *positions, int t,
                                  struct topt_error *err)
{
    struct topt_query words = {
        .mode = "mini-time", .factors = "none", .tensor_parallel = 1, .expert = 1};
    struct topt_plan_doc *p = NULL;
    struct topt_request r;
    json_t *answer = NULL;
    strcpy(words.framework, framework);
    strcpy(words.sequence_parallel, positions ? positions : "");
    topt_request_init(&r);
    r.model = m;
    r.hw = hw;
    r.gpus = t;
    if (topt_request_read(&words, &r, NULL, err) || topt_request_complete(&r, err) ||
        topt_plan(&r, &answer, err) ||
        topt_plan_read(json_object_get(answer, "plan"), &p, err))
        printf("# %s on %d: %s\n", framework, t, err->text);
    json_decref(answer);
    return p;
}

/* ---- layouts --------------------------------------------------------------------------- */

struct want {
    const char *name, *dim; /* an operator's dimension; "": the axes split nothing */
};

static int takes(const struct topt_plan_doc *p, int i, const char *dim)
{
    const struct topt_op *op = &p->model->op[i];
    for (int a = 0; a < p->mesh.naxes; a++) {
        int d = p->strategy->config[i].dim[a];
        if (strcmp(d < 0 ? "" : op->spec->dim[d].name, dim))
            return 0;
    }
    return p->mesh.naxes > 0;
}

static void see(const char *text, const struct topt_hw *hw, const char *framework,
                const char *positions, const struct want *want)
{
    struct topt_model *m = import(text);
    for (int t = 2; t <= 8; t *= 2) {
        struct topt_error err = {0};
        struct topt_plan_doc *p = plan(m, hw, framework, positions, t, &err);
        int bad = p == NULL, n = 0;
        for (const struct want *w = want; p && w->name; w++, n++) {
            int i = topt_model_find(p->model, w->name);
            if (i < 0 || !takes(p, i, w->dim)) {
                printf("# %s over '%s'\n", w->name, w->dim);
                bad = 1;
            }
        }
        ok(!bad && n > 0, "%s, sequence parallelism %s, %d parts", framework,
           positions ? positions : "as it is", t);
        topt_plan_doc_destroy(p);
    }
    topt_model_destroy(m);
}

/* Norms and sums are 'between' a row and the next column. */
#define LLAMA(between, loss)                                                             \
    {                                                                                    \
        {"embedding", "v"}, {"h1.norm1", between}, {"h1.qkv", "n"},                      \
            {"h1.attention", "h"}, {"h1.out", "k"}, {"h1.add1", between},                \
            {"h1.norm2", between}, {"h1.gate_up", "n"}, {"h1.glu", "f"},                 \
            {"h1.down", "k"}, {"h1.add2", between}, {"norm", between}, {"lm_head", "n"}, \
            {"loss", loss},                                                              \
        {                                                                                \
            NULL, NULL                                                                   \
        }                                                                                \
    }

static void test_llama(const struct topt_hw *hw)
{
    static const struct want whole[] = LLAMA("", "v"), split[] = LLAMA("s", "v"),
                             gathered[] = LLAMA("", "");
    const char *text = family("llama", 2, 8, "");
    see(text, hw, "megatron", NULL, split);
    see(text, hw, "megatron", "off", whole);
    see(text, hw, "torchtitan", NULL, split);
    see(text, hw, "torchtitan", "off", whole);
    see(text, hw, "pytorch", NULL, gathered);
}

/* Queries and keys are normalised by head: three products read one tensor. */
static void test_apart(const struct topt_hw *hw)
{
    static const struct want want[] = {
        {"h1.norm1", "s"},    {"h1.q", "n"},       {"h1.q.norm", "h"}, {"h1.k", "n"},
        {"h1.k.rotary", "d"}, {"h1.v", "n"},       {"h1.attend", "h"}, {"h1.out", "k"},
        {"h1.add1", "s"},     {"h1.gate_up", "n"}, {NULL, NULL}};
    struct topt_error err = {0};
    struct topt_model *m = import(family("qwen3", 2, 8, ",\"head_dim\":16"));
    see(family("qwen3", 2, 8, ",\"head_dim\":16"), hw, "megatron", NULL, want);
    struct topt_plan_doc *p = plan(m, hw, "megatron", NULL, 8, &err);
    int norm = p ? topt_model_find(p->model, "h1.norm1") : -1, good = norm >= 0;
    for (int a = 0; good && a < p->mesh.naxes; a++) {
        int t = topt_output_tensor(&p->model->op[norm]);
        good = p->strategy->hub[t].layout.dim[a] == TOPT_HUB_SUM;
    }
    ok(good, "their input is gathered once, and their gradients are summed once");
    topt_plan_doc_destroy(p);
    topt_model_destroy(m);
}

static void test_experts(const struct topt_hw *hw)
{
    static const struct want want[] = {
        {"h1.out", "k"},     {"h1.norm2", "s"},    {"h1.router", "s"},
        {"h1.route", ""},    {"h1.dispatch", "d"}, {"h1.experts", "f"},
        {"h1.combine", "d"}, {"h1.add2", "s"},     {NULL, NULL}};
    const char *text = family("mixtral", 2, 8, experts);
    see(text, hw, "megatron", NULL, want);
    see(text, hw, "torchtitan", NULL, want);
}

static void test_tied(const struct topt_hw *hw)
{
    static const struct want split[] = {{"wte", "v"},          {"embedding", "v"},
                                        {"position", "s"},     {"h1.norm1", "s"},
                                        {"h1.qkv", "n"},       {"h1.qkv.bias", "n"},
                                        {"h1.attention", "h"}, {"h1.out", "k"},
                                        {"h1.out.bias", "s"},  {"h1.up", "n"},
                                        {"h1.up.bias", "n"},   {"h1.down", "k"},
                                        {"h1.down.bias", "s"}, {"lm_head", "n"},
                                        {"loss", "v"},         {NULL, NULL}},
                             whole[] = {
                                 {"wte", ""},     {"embedding", ""}, {"position", ""},
                                 {"h1.qkv", "n"}, {"h1.down", "k"},  {"h1.down.bias", ""},
                                 {"lm_head", ""}, {"loss", ""},      {NULL, NULL}};
    see(gpt2, hw, "megatron", NULL, split);
    see(gpt2, hw, "pytorch", NULL, whole);
}

/* ---- collectives ----------------------------------------------------------------------- */

/* Of a micro-batch, by kind and direction; and are all of them of [batch, seq, width]?  One over the
 * axes in turn, as is fastest for small tensors, has the first axis once. */
struct count {
    int n[TOPT_MOVE_ALL_REDUCE + 1][2], all_alike;
};

static struct count count(const struct topt_hw *hw, const char *type, int layers,
                          const char *framework, const char *positions)
{
    struct count c = {.all_alike = 1};
    struct topt_error err = {0};
    char text[800];
    snprintf(text, sizeof text, "%s",
             family(type, layers, 8, strcmp(type, "llama") ? ",\"head_dim\":16" : ""));
    struct topt_model *m = import(text);
    struct topt_plan_doc *p = plan(m, hw, framework, positions, 8, &err);
    const struct topt_program *x = p ? p->program : NULL;
    for (int i = x ? x->micro_begin : 0; x && i < x->micro_end; i++) {
        const struct topt_instr *s = &x->instr[i];
        if (s->kind != TOPT_I_MOVE || s->move.kind == TOPT_MOVE_SLICE)
            continue;
        c.n[s->move.kind][s->backward] += (s->move.axes & 1) != 0;
        c.all_alike &= topt_move_bytes(&x->mesh, &x->buffer[s->a].shape, &s->move, 4) ==
                       (int64_t)4 * BATCH * SEQ * WIDTH;
    }
    topt_plan_doc_destroy(p);
    topt_model_destroy(m);
    return c;
}

/* The cost of one more layer. */
static struct count of_layer(const struct topt_hw *hw, const char *type,
                             const char *framework, const char *positions)
{
    struct count less = count(hw, type, 2, framework, positions),
                 more = count(hw, type, 3, framework, positions);
    for (int k = 0; k <= TOPT_MOVE_ALL_REDUCE; k++)
        for (int back = 0; back < 2; back++)
            more.n[k][back] -= less.n[k][back];
    more.all_alike &= less.all_alike;
    return more;
}

static void test_layer(const struct topt_hw *hw)
{
    static const char *const types[] = {"llama", "qwen3"};
    for (int i = 0; i < 2; i++) {
        struct count c = of_layer(hw, types[i], "megatron", "off");
        is_int(c.n[TOPT_MOVE_ALL_REDUCE][0], 2, "%s: two all-reduces forward", types[i]);
        is_int(c.n[TOPT_MOVE_ALL_REDUCE][1], 2, "and two backward");
        is_int(c.n[TOPT_MOVE_ALL_GATHER][0] + c.n[TOPT_MOVE_ALL_GATHER][1] +
                   c.n[TOPT_MOVE_REDUCE_SCATTER][0] + c.n[TOPT_MOVE_REDUCE_SCATTER][1],
               0, "and nothing else");
        ok(c.all_alike, "each of batch x sequence x width numbers");
        c = of_layer(hw, types[i], "megatron", "on");
        is_int(c.n[TOPT_MOVE_ALL_GATHER][0], 2,
               "with sequence parallelism two all-gathers forward");
        is_int(c.n[TOPT_MOVE_REDUCE_SCATTER][0], 2, "two reduce-scatters forward");
        is_int(c.n[TOPT_MOVE_REDUCE_SCATTER][1], 2, "two backward");
        ok(c.n[TOPT_MOVE_ALL_GATHER][1] >= 2 && c.n[TOPT_MOVE_ALL_GATHER][1] <= 4,
           "two all-gathers backward, and those of inputs that are not kept");
        is_int(c.n[TOPT_MOVE_ALL_REDUCE][0] + c.n[TOPT_MOVE_ALL_REDUCE][1] +
                   c.n[TOPT_MOVE_ALL_TO_ALL][0] + c.n[TOPT_MOVE_ALL_TO_ALL][1],
               0, "and nothing else");
    }
}

/* ---- refused --------------------------------------------------------------------------- */

static void refused(const struct topt_hw *hw, const char *text, const char *framework,
                    const char *positions, const char *train, const char *why)
{
    struct topt_error err = {0};
    struct topt_model *m = import(text);
    if (train && topt_model_train(&m, train, &err))
        printf("# %s\n", err.text);
    struct topt_plan_doc *p = plan(m, hw, framework, positions, 2, &err);
    ok(!p && strstr(err.text, why), "%s: %s", framework, err.text);
    topt_plan_doc_destroy(p);
    topt_model_destroy(m);
}

/* The same without roles, as ONNX files and traced modules have none. */
static struct topt_model *without_roles(const char *text)
{
    struct topt_model *m = import(text), *bare;
    json_t *doc = topt_model_to_json(m), *op;
    size_t i;
    json_array_foreach(json_object_get(doc, "ops"), i, op)
    {
        json_object_del(op, "role");
    }
    bare = topt_model_from_json(doc, NULL);
    json_decref(doc);
    topt_model_destroy(m);
    return bare;
}

static void test_refused(const struct topt_hw *hw)
{
    refused(hw, family("mixtral", 2, 8, experts), "pytorch", NULL, NULL,
            "no tensor parallelism for experts ('h0.experts')");
    refused(hw, family("mixtral", 2, 8, experts), "megatron", "off", NULL,
            "only with sequence parallelism");
    refused(hw, family("llama", 2, 8, ""), "megatron", NULL, "lora:4",
            "lora_a' (linear)");
    refused(hw, family("llama", 2, 8, ""), "pytorch", "on", NULL,
            "no sequence parallelism");
    refused(hw, family("olmo2", 2, 8, ""), "megatron", NULL, NULL,
            "'h0.q.norm' normalises over all features");
    struct topt_model *bare = without_roles(family("llama", 2, 8, ""));
    struct topt_error err = {0};
    struct topt_plan_doc *p = plan(bare, hw, "megatron", NULL, 2, &err);
    ok(!p && strstr(err.text, "'embedding' (embedding) has none") &&
           strstr(err.text, "config.json"),
       "without roles: %s", err.text);
    topt_plan_doc_destroy(p);
    struct topt_tensor_map map;
    ok(!topt_tensor_map_init(&map, bare, NULL, 1, &err) && !map.refused[0],
       "our own runtime needs none");
    topt_tensor_map_fini(&map);
    topt_model_destroy(bare);
}

/* Fewer key-value heads than parts, or a number that they do not divide. */
static void test_uneven(void)
{
    struct topt_error err = {0};
    struct topt_model *m = import(family("llama", 2, 2, ""));
    struct topt_tensor_map map;
    int d = -1, i = -1;
    if (!topt_tensor_map_init(&map, m, &topt_tensor_megatron, 1, &err))
        i = topt_tensor_uneven(&map, m, 2, &d);
    is_int(i, -1, "two key-value heads make two parts");
    i = topt_tensor_uneven(&map, m, 4, &d);
    ok(i >= 0 && !strcmp(m->op[i].name, "h0.qkv") &&
           !strcmp(m->op[i].spec->dim[d].name, "n"),
       "and not four");
    topt_tensor_map_fini(&map);
    topt_model_destroy(m);
}

int main(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = topt_hw_load("a100-80-dgx", &err);
    test_llama(hw);
    test_apart(hw);
    test_experts(hw);
    test_tied(hw);
    test_layer(hw);
    test_refused(hw);
    test_uneven();
    topt_hw_destroy(hw);
    return done_testing();
}
