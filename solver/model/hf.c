/* hf.c - Hugging Face config.json to a model.
 *
 * A family is a row: what its configs call themselves and the function that reads one.  A
 * reader fills 'struct arch', which holds all that the families differ in, and one builder
 * makes the operators.  What a config asks for and the operators can't do is refused by the
 * name of its key; nothing is guessed.  Fields that change neither shapes nor arithmetic of
 * training (token ids, cache, initial dropout rates, ...) are not read.
 *
 * Fused projections: the query, key and value projections are one linear whose outputs are
 * counted in key-value heads of (q + 2) * head_dim numbers, q queries to a key-value head,
 * so that splitting them keeps each group together; gate and up are one linear of pairs. */
#include "model_impl.h"
#include "topt_json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    DEFAULT_BATCH = 8,
    DEFAULT_SEQ = 1024,
    MAX_LAYERS = 1024,
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = 1 << 16,
    MAX_VOCAB = 1 << 26,
    MAX_CONTEXT = 1 << 24,
};

struct arch {
    int64_t width, layers, heads, kv_heads, head_dim, inner, vocab, context;
    const char *context_key;
    int activation; /* of a plain feed-forward; gated ones are SiLU */
    int gated, rms, tied, learned_positions;
    int qkv_bias, out_bias, mlp_bias;
    double eps, rope_theta, init_std;
};

/* ---- reading --------------------------------------------------------------------------- */

/* A flag that the operators have nothing for must be off. */
static int refuse_true(const json_t *doc, const char *key, const char *why,
                       struct topt_error *err)
{
    int on = 0;
    if (topt_json_bool_or(doc, "", key, &on, err))
        return -1;
    return on ? topt_fail(err, TOPT_ERR_INVAL, "%s is true: %s", key, why) : 0;
}

static int divides(const char *what, int64_t n, const char *by, int64_t d,
                   struct topt_error *err)
{
    return n % d == 0
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "%s %lld is not a multiple of %s %lld",
                           what, (long long)n, by, (long long)d);
}

static int read_activation(const json_t *doc, const char *key, int *ret,
                           struct topt_error *err)
{
    static const struct {
        const char *name;
        enum topt_activation a;
    } known[] = {{"gelu_new", TOPT_ACT_GELU},  {"gelu", TOPT_ACT_GELU},
                 {"gelu_fast", TOPT_ACT_GELU}, {"gelu_pytorch_tanh", TOPT_ACT_GELU},
                 {"relu", TOPT_ACT_RELU},      {"silu", TOPT_ACT_SILU},
                 {"swish", TOPT_ACT_SILU},     {"tanh", TOPT_ACT_TANH}};
    const char *name = NULL;
    if (topt_json_string_or(doc, "", key, &name, err))
        return -1;
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name)) {
            *ret = (int)known[i].a;
            return 0;
        }
    return name ? topt_fail(err, TOPT_ERR_INVAL, "%s is \"%.40s\", which is not known",
                            key, name)
                : 0;
}

static int read_gpt2(const json_t *doc, struct arch *a, struct topt_error *err)
{
    *a = (struct arch){.activation = TOPT_ACT_GELU,
                       .tied = 1,
                       .learned_positions = 1,
                       .qkv_bias = 1,
                       .out_bias = 1,
                       .mlp_bias = 1,
                       .eps = 1e-5,
                       .init_std = 0.02,
                       .context_key = "n_positions"};
    if (topt_json_int(doc, "", "n_embd", 1, MAX_WIDTH, &a->width, err) ||
        topt_json_int(doc, "", "n_layer", 1, MAX_LAYERS, &a->layers, err) ||
        topt_json_int(doc, "", "n_head", 1, MAX_HEADS, &a->heads, err) ||
        topt_json_int(doc, "", "n_positions", 1, MAX_CONTEXT, &a->context, err) ||
        topt_json_int(doc, "", "vocab_size", 1, MAX_VOCAB, &a->vocab, err) ||
        divides("n_embd", a->width, "n_head", a->heads, err))
        return -1;
    a->inner = 4 * a->width;
    a->kv_heads = a->heads;
    a->head_dim = a->width / a->heads;
    const char *no_row = "no operator does that";
    if (topt_json_int_or(doc, "", "n_inner", 1, 4 * MAX_WIDTH, &a->inner, err) ||
        topt_json_real_or(doc, "", "layer_norm_epsilon", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        refuse_true(doc, "add_cross_attention", no_row, err) ||
        refuse_true(doc, "scale_attn_by_inverse_layer_idx", no_row, err))
        return -1;
    int scaled = 1;
    if (topt_json_bool_or(doc, "", "scale_attn_weights", &scaled, err))
        return -1;
    if (!scaled)
        return topt_fail(err, TOPT_ERR_INVAL, "scale_attn_weights is false: %s", no_row);
    return read_activation(doc, "activation_function", &a->activation, err);
}

/* Scaled rotary angles train with the same shapes and costs; unknown kinds might not. */
static int read_rope(const json_t *doc, struct arch *a, struct topt_error *err)
{
    static const char *const known[] = {"default", "llama3", "linear", "dynamic", NULL};
    static const char *const places[] = {"rope_scaling", "rope_parameters", NULL};
    a->rope_theta = 10000;
    if (topt_json_real_or(doc, "", "rope_theta", 1, 1e15, &a->rope_theta, err))
        return -1;
    for (int p = 0; places[p]; p++) {
        const json_t *rope = json_object_get(doc, places[p]);
        if (!rope || json_is_null(rope))
            continue;
        if (!json_is_object(rope))
            return topt_fail(err, TOPT_ERR_INVAL, "%s must be an object", places[p]);
        const char *type = "default";
        if (topt_json_string_or(rope, places[p], "type", &type, err) ||
            topt_json_string_or(rope, places[p], "rope_type", &type, err) ||
            topt_json_real_or(rope, places[p], "rope_theta", 1, 1e15, &a->rope_theta,
                              err))
            return -1;
        int i = 0;
        while (known[i] && strcmp(known[i], type))
            i++;
        if (!known[i])
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s has type \"%.40s\", which is not known", places[p],
                             type);
    }
    return 0;
}

/* What Llama, Mistral and Qwen2 share. */
static int read_llama_like(const json_t *doc, struct arch *a, struct topt_error *err)
{
    *a = (struct arch){.activation = TOPT_ACT_SILU,
                       .gated = 1,
                       .rms = 1,
                       .eps = 1e-6,
                       .init_std = 0.02,
                       .context_key = "max_position_embeddings"};
    if (topt_json_int(doc, "", "hidden_size", 1, MAX_WIDTH, &a->width, err) ||
        topt_json_int(doc, "", "num_hidden_layers", 1, MAX_LAYERS, &a->layers, err) ||
        topt_json_int(doc, "", "num_attention_heads", 1, MAX_HEADS, &a->heads, err) ||
        topt_json_int(doc, "", "intermediate_size", 1, 4 * MAX_WIDTH, &a->inner, err) ||
        topt_json_int(doc, "", "vocab_size", 1, MAX_VOCAB, &a->vocab, err) ||
        topt_json_int(doc, "", a->context_key, 1, MAX_CONTEXT, &a->context, err))
        return -1;
    a->kv_heads = a->heads;
    int64_t head_dim = 0;
    if (topt_json_int_or(doc, "", "num_key_value_heads", 1, MAX_HEADS, &a->kv_heads,
                         err) ||
        topt_json_int_or(doc, "", "head_dim", 1, MAX_WIDTH, &head_dim, err) ||
        divides("num_attention_heads", a->heads, "num_key_value_heads", a->kv_heads, err))
        return -1;
    if (!head_dim &&
        divides("hidden_size", a->width, "num_attention_heads", a->heads, err))
        return -1;
    a->head_dim = head_dim ? head_dim : a->width / a->heads;
    if (topt_json_real_or(doc, "", "rms_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        read_activation(doc, "hidden_act", &a->activation, err) || read_rope(doc, a, err))
        return -1;
    if (a->activation != TOPT_ACT_SILU)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "hidden_act is not silu: no operator gates with another activation");
    return 0;
}

static int read_llama(const json_t *doc, struct arch *a, struct topt_error *err)
{
    if (read_llama_like(doc, a, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err) ||
        topt_json_bool_or(doc, "", "mlp_bias", &a->mlp_bias, err))
        return -1;
    a->out_bias = a->qkv_bias;
    return 0;
}

/* Attention over a window is another operator unless the window holds every position. */
static int refuse_window(const json_t *doc, struct arch *a, struct topt_error *err)
{
    int64_t window = a->context;
    if (topt_json_int_or(doc, "", "sliding_window", 1, INT64_MAX, &window, err))
        return -1;
    if (window < a->context) {
        a->context = window;
        a->context_key = "sliding_window";
    }
    return 0;
}

static int read_mistral(const json_t *doc, struct arch *a, struct topt_error *err)
{
    return read_llama_like(doc, a, err) || refuse_window(doc, a, err) ? -1 : 0;
}

static int read_qwen2(const json_t *doc, struct arch *a, struct topt_error *err)
{
    int windowed = 0;
    if (read_llama_like(doc, a, err) ||
        topt_json_bool_or(doc, "", "use_sliding_window", &windowed, err) ||
        (windowed && refuse_window(doc, a, err)))
        return -1;
    a->qkv_bias = 1;
    return 0;
}

/* ---- building -------------------------------------------------------------------------- */

/* Appends operators; after the first failure it does nothing. */
struct builder {
    struct topt_model *m;
    const struct arch *a;
    const char *prefix; /* of names: "h.3." */
    int failed;
    struct topt_error *err;
};

TOPT_PRINTF(5, 6)
static int add(struct builder *b, const char *kind, int x, const struct topt_attrs *attrs,
               const char *fmt, ...)
{
    char name[80], leaf[48];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(leaf, sizeof leaf, fmt, ap);
    va_end(ap);
    snprintf(name, sizeof name, "%s%s", b->prefix, leaf);
    int t = b->failed ? -1 : topt_model_add(b->m, kind, name, x >= 0, &x, attrs, b->err);
    b->failed |= t < 0;
    return t;
}

/* Operators on two tensors: add, and a linear whose weight is a tensor. */
static int add2(struct builder *b, const char *kind, int x, int y, const char *leaf)
{
    char name[80];
    int inputs[] = {x, y};
    snprintf(name, sizeof name, "%s%s", b->prefix, leaf);
    int t = b->failed ? -1 : topt_model_add(b->m, kind, name, 2, inputs, NULL, b->err);
    b->failed |= t < 0;
    return t;
}

static int norm(struct builder *b, int x, const char *name)
{
    struct topt_attrs attrs = {.rms = b->a->rms, .eps = b->a->eps};
    return add(b, "norm", x, &attrs, "%s", name);
}

static int linear(struct builder *b, int x, int64_t features, int64_t unit, int bias,
                  const char *name)
{
    struct topt_attrs attrs = {
        .features = features, .features_unit = unit, .init_std = b->a->init_std};
    int y = add(b, "linear", x, &attrs, "%s", name);
    return bias ? add(b, "bias", y, NULL, "%s.bias", name) : y;
}

static int attention_block(struct builder *b, int x)
{
    const struct arch *a = b->a;
    int64_t unit = (a->heads / a->kv_heads + 2) * a->head_dim;
    struct topt_attrs attrs = {.heads = a->heads,
                               .kv_heads = a->kv_heads,
                               .head_dim = a->head_dim,
                               .causal = 1,
                               .rope_theta = a->rope_theta};
    int y = norm(b, x, "norm1");
    y = linear(b, y, a->kv_heads, unit, a->qkv_bias, "qkv");
    y = add(b, "attention", y, &attrs, "attention");
    y = linear(b, y, a->width, 1, a->out_bias, "out");
    return add2(b, "add", x, y, "add1");
}

static int mlp_block(struct builder *b, int x)
{
    const struct arch *a = b->a;
    struct topt_attrs attrs = {.activation = a->activation};
    int y = norm(b, x, "norm2");
    y = linear(b, y, a->inner, a->gated ? 2 : 1, a->mlp_bias,
               a->gated ? "gate_up" : "up");
    y = a->gated ? add(b, "glu", y, &attrs, "glu")
                 : add(b, "unary", y, &attrs, "activation");
    y = linear(b, y, a->width, 1, a->mlp_bias, "down");
    return add2(b, "add", x, y, "add2");
}

static void build_ops(struct builder *b)
{
    const struct arch *a = b->a;
    struct topt_attrs table = {
        .vocab = a->vocab, .features = a->width, .init_std = a->init_std};
    struct topt_attrs positions = {.init_std = a->init_std};
    char prefix[24];
    int w = a->tied ? add(b, "variable", -1, &table, "wte") : -1;
    int x = a->tied ? add(b, "embedding", w, NULL, "embedding")
                    : add(b, "embedding", -1, &table, "embedding");
    if (a->learned_positions)
        x = add(b, "position", x, &positions, "position");
    for (int i = 0; i < a->layers && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "h%d.", i);
        b->prefix = prefix;
        x = mlp_block(b, attention_block(b, x));
    }
    b->prefix = "";
    x = norm(b, x, "norm");
    x = a->tied ? add2(b, "linear", x, w, "lm_head")
                : linear(b, x, a->vocab, 1, 0, "lm_head");
    add(b, "cross_entropy", x, NULL, "loss");
}

static struct topt_model *build_model(const struct arch *a, const char *name,
                                      const struct topt_import_options *o,
                                      struct topt_error *err)
{
    int64_t batch = o && o->batch ? o->batch : DEFAULT_BATCH;
    int64_t seq = o && o->seq                ? o->seq
                  : a->context < DEFAULT_SEQ ? a->context
                                             : DEFAULT_SEQ;
    if (seq > a->context) {
        topt_fail(err, TOPT_ERR_INVAL, "seq %lld is above the model's %s %lld",
                  (long long)seq, a->context_key, (long long)a->context);
        return NULL;
    }
    struct topt_model *m = topt_model_create(name, batch, seq, err);
    if (!m)
        return NULL;
    struct builder b = {.m = m, .a = a, .prefix = "", .err = err};
    build_ops(&b);
    if (b.failed || topt_model_finish(m, err)) {
        topt_model_destroy(m);
        return NULL;
    }
    return m;
}

/* ---- families -------------------------------------------------------------------------- */

static const struct family {
    const char *model_type, *architecture;
    int (*read)(const json_t *doc, struct arch *ret, struct topt_error *err);
    const char *missing; /* what of a known family no operator does */
} families[] = {
    {"gpt2", "GPT2LMHeadModel", read_gpt2, NULL},
    {"llama", "LlamaForCausalLM", read_llama, NULL},
    {"mistral", "MistralForCausalLM", read_mistral, NULL},
    {"qwen2", "Qwen2ForCausalLM", read_qwen2, NULL},
    {"qwen3", "Qwen3ForCausalLM", NULL, "the norm of each head's queries and keys"},
    {"gemma", "GemmaForCausalLM", NULL, "GELU gating and the scaled embedding"},
    {"gpt_neox", "GPTNeoXForCausalLM", NULL, "the partial rotary embedding"},
    {"mixtral", "MixtralForCausalLM", NULL, "the mixture of experts"},
    {"qwen2_moe", "Qwen2MoeForCausalLM", NULL, "the mixture of experts"},
    {"qwen3_moe", "Qwen3MoeForCausalLM", NULL, "the mixture of experts"},
};

enum { FAMILIES = sizeof families / sizeof *families };

int topt_hf_looks_like(const json_t *doc)
{
    return json_object_get(doc, "model_type") || json_object_get(doc, "architectures");
}

static const struct family *find_family(const char *type, const char *architecture)
{
    for (int i = 0; i < FAMILIES; i++)
        if (type ? !strcmp(families[i].model_type, type)
                 : !strcmp(families[i].architecture, architecture))
            return &families[i];
    return NULL;
}

/* The family by model_type, by architectures where that is absent; both must agree. */
static const struct family *choose(const json_t *doc, struct topt_error *err)
{
    const char *type = NULL, *architecture = NULL;
    if (topt_json_string_or(doc, "", "model_type", &type, err))
        return NULL;
    const json_t *list = json_object_get(doc, "architectures");
    if (list && !json_is_null(list)) {
        architecture = json_string_value(json_array_get(list, 0));
        if (!architecture || json_array_size(list) != 1) {
            topt_fail(err, TOPT_ERR_INVAL, "architectures must be an array of one name");
            return NULL;
        }
    }
    const struct family *f =
        type || architecture ? find_family(type, architecture) : NULL;
    if (!f)
        topt_fail(err, TOPT_ERR_INVAL,
                  "%s \"%.60s\" is not known; gpt2, llama, mistral and qwen2 are",
                  type || !architecture ? "model_type" : "architecture",
                  type           ? type
                  : architecture ? architecture
                                 : "null");
    else if (architecture && strcmp(f->architecture, architecture)) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "architecture \"%.60s\" is not known; %s is, of %s", architecture,
                  f->architecture, f->model_type);
        f = NULL;
    } else if (!f->read) {
        topt_fail(err, TOPT_ERR_INVAL,
                  "model_type \"%s\" needs %s, which no operator does yet", f->model_type,
                  f->missing);
        f = NULL;
    }
    return f;
}

struct topt_model *topt_hf_build(const json_t *doc, const char *name,
                                 const struct topt_import_options *o,
                                 struct topt_error *err)
{
    struct arch a;
    const struct family *f = choose(doc, err);
    if (!f || f->read(doc, &a, err))
        return NULL;
    return build_model(&a, name, o, err);
}
