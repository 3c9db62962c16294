/* hf_build.c - the operators of a transformer that a Hugging Face config describes.
 *
 * Fused projections: the query, key and value projections are one linear whose outputs are
 * counted in key-value heads of (q + 2) * head_dim numbers, q queries to a key-value head,
 * so that splitting them keeps each group together; gate and up are one linear of pairs.
 * Where something happens to queries or keys before attention they are projected apart. */
#include "hf.h"
#include "model_impl.h"

#include <stdarg.h>
#include <stdio.h>

/* Appends operators; after the first failure it does nothing. */
struct builder {
    struct topt_model *m;
    const struct hf_arch *a;
    const char *prefix; /* of names: "h3." */
    int failed;
    struct topt_error *err;
};

/* Negative inputs are left out. */
TOPT_PRINTF(6, 7)
static int add(struct builder *b, const char *kind, int x, int y,
               const struct topt_attrs *attrs, const char *fmt, ...)
{
    char name[80], leaf[48];
    int inputs[] = {x, y};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(leaf, sizeof leaf, fmt, ap);
    va_end(ap);
    snprintf(name, sizeof name, "%s%s", b->prefix, leaf);
    int t = b->failed ? -1
                      : topt_model_add(b->m, kind, name, (x >= 0) + (y >= 0), inputs,
                                       attrs, b->err);
    b->failed |= t < 0;
    return t;
}

static int norm(struct builder *b, int x, const char *name)
{
    struct topt_attrs attrs = {.rms = b->a->rms, .eps = b->a->eps};
    return add(b, "norm", x, -1, &attrs, "%s", name);
}

static int linear(struct builder *b, int x, int64_t features, int64_t unit, int bias,
                  const char *name)
{
    struct topt_attrs attrs = {
        .features = features, .features_unit = unit, .init_std = b->a->init_std};
    int y = add(b, "linear", x, -1, &attrs, "%s", name);
    return bias ? add(b, "bias", y, -1, NULL, "%s.bias", name) : y;
}

static int scale(struct builder *b, int x, double factor, const char *name)
{
    struct topt_attrs attrs = {.factor = factor};
    return add(b, "scale", x, -1, &attrs, "%s", name);
}

static int unary(struct builder *b, int x, int activation, const char *name)
{
    struct topt_attrs attrs = {.activation = activation};
    return add(b, "unary", x, -1, &attrs, "%s", name);
}

/* ---- blocks ---------------------------------------------------------------------------- */

/* Heads whose queries or keys are normalised or rotated in part. */
static int attention_apart(struct builder *b, int x)
{
    (void)x;
    b->failed |= topt_fail(b->err, TOPT_ERR_INVAL,
                           "norms of heads and partial rotary embeddings need attention "
                           "with queries apart, which no operator is yet");
    return -1;
}

/* Query, key and value of each head in one tensor. */
static int attention_fused(struct builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int64_t unit = (a->heads / a->kv_heads + 2) * a->head_dim;
    struct topt_attrs attrs = {.heads = a->heads,
                               .kv_heads = a->kv_heads,
                               .head_dim = a->head_dim,
                               .causal = !a->bidirectional,
                               .rope_theta = a->rope_theta};
    x = linear(b, x, a->kv_heads, unit, a->qkv_bias, "qkv");
    return add(b, "attention", x, -1, &attrs, "attention");
}

static int attention(struct builder *b, int x)
{
    const struct hf_arch *a = b->a;
    int whole_heads = a->rope_theta <= 0 || a->rope_dim == a->head_dim;
    x = whole_heads && !a->head_norms ? attention_fused(b, x) : attention_apart(b, x);
    return linear(b, x, a->width, 1, a->out_bias, "out");
}

/* 'part' comes before its operators' names. */
static int dense_mlp(struct builder *b, int x, int64_t inner, const char *part)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = {.activation = a->activation};
    char name[32];
    snprintf(name, sizeof name, "%s%s", part, a->gated ? "gate_up" : "up");
    x = linear(b, x, inner, a->gated ? 2 : 1, a->mlp_bias, name);
    x = a->gated ? add(b, "glu", x, -1, &attrs, "%sglu", part)
                 : add(b, "unary", x, -1, &attrs, "%sactivation", part);
    snprintf(name, sizeof name, "%sdown", part);
    return linear(b, x, a->width, 1, a->mlp_bias, name);
}

/* Expert feed-forwards that a router sends each token to, and one that all tokens take. */
static int expert_mlp(struct builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs routing = {
        .top_k = a->top_k, .capacity = a->capacity, .unnormalized = a->unnormalized};
    struct topt_attrs slots = {.top_k = a->top_k, .capacity = a->capacity};
    struct topt_attrs experts = {.features = a->expert_inner,
                                 .activation = a->activation,
                                 .gated = a->gated,
                                 .init_std = a->init_std};
    int g = linear(b, x, a->experts, 1, 0, "router");
    g = add(b, "route", g, -1, &routing, "route");
    int y = add(b, "dispatch", x, g, &slots, "dispatch");
    y = add(b, "experts", y, -1, &experts, "experts");
    y = add(b, "combine", y, g, NULL, "combine");
    if (!a->shared_inner)
        return y;
    int shared = dense_mlp(b, x, a->shared_inner, "shared.");
    if (a->shared_gate) {
        g = unary(b, linear(b, x, 1, 1, 0, "shared.gate"), TOPT_ACT_SIGMOID,
                  "shared.sigmoid");
        shared = add(b, "weigh", shared, g, NULL, "shared.weigh");
    }
    return add(b, "add", y, shared, NULL, "add_shared");
}

static int mlp(struct builder *b, int x, int64_t layer)
{
    const struct hf_arch *a = b->a;
    return a->experts && layer >= a->dense_layers ? expert_mlp(b, x)
                                                  : dense_mlp(b, x, a->inner, "");
}

/* One norm, or one for each of the two. */
static int parallel_block(struct builder *b, int x, int64_t layer)
{
    int n1 = norm(b, x, "norm1");
    int n2 = b->a->shared_norm ? n1 : norm(b, x, "norm2");
    int y = attention(b, n1), z = mlp(b, n2, layer);
    y = add(b, "add", y, z, NULL, "add1");
    return add(b, "add", x, y, NULL, "add2");
}

static int block(struct builder *b, int x, int64_t layer)
{
    enum hf_norms norms = b->a->norms;
    if (norms == HF_PARALLEL)
        return parallel_block(b, x, layer);
    int y = norms == HF_POST ? x : norm(b, x, "norm1");
    y = attention(b, y);
    y = norms == HF_SANDWICH ? norm(b, y, "norm1.after") : y;
    x = add(b, "add", x, y, NULL, "add1");
    x = norms == HF_POST ? norm(b, x, "norm1") : x;
    y = norms == HF_POST ? x : norm(b, x, "norm2");
    y = mlp(b, y, layer);
    y = norms == HF_SANDWICH ? norm(b, y, "norm2.after") : y;
    x = add(b, "add", x, y, NULL, "add2");
    return norms == HF_POST ? norm(b, x, "norm2") : x;
}

/* ---- the whole ------------------------------------------------------------------------- */

/* Tokens, their types and positions; 'table' is the tied one's tensor or -1. */
static int embedding(struct builder *b, int table)
{
    const struct hf_arch *a = b->a;
    int64_t width = a->embed_width ? a->embed_width : a->width;
    struct topt_attrs own = {
        .vocab = a->vocab, .features = width, .init_std = a->init_std};
    struct topt_attrs types = {
        .vocab = a->types, .features = a->width, .init_std = a->init_std};
    struct topt_attrs positions = {.positions = a->positions, .init_std = a->init_std};
    int x = add(b, "embedding", table, -1, table < 0 ? &own : NULL, "embedding");
    if (a->embed_factor > 0)
        x = scale(b, x, a->embed_factor, "embedding.scale");
    if (width != a->width)
        x = linear(b, x, a->width, 1, 0, "project_in");
    if (a->types)
        x = add(b, "add", x, add(b, "embedding", -1, -1, &types, "types"), NULL,
                "add_types");
    if (a->positions)
        x = add(b, "position", x, -1, &positions, "position");
    return a->embed_norm ? norm(b, x, "embedding.norm") : x;
}

/* Logits of the vocabulary, and the loss. */
static void head(struct builder *b, int x, int table)
{
    const struct hf_arch *a = b->a;
    int64_t width = a->embed_width ? a->embed_width : a->width;
    if (!a->no_final_norm)
        x = norm(b, x, "norm");
    if (width != a->width)
        x = linear(b, x, width, 1, 0, "project_out");
    if (a->head_transform) {
        x = unary(b, linear(b, x, width, 1, 1, "transform"), a->activation,
                  "transform.activation");
        x = norm(b, x, "transform.norm");
    }
    x = table >= 0 ? add(b, "linear", x, table, NULL, "lm_head")
                   : linear(b, x, a->vocab, 1, 0, "lm_head");
    if (a->head_bias)
        x = add(b, "bias", x, -1, NULL, "lm_head.bias");
    if (a->logit_cap > 0) {
        x = unary(b, scale(b, x, 1 / a->logit_cap, "cap.in"), TOPT_ACT_TANH, "cap.tanh");
        x = scale(b, x, a->logit_cap, "cap.out");
    }
    add(b, "cross_entropy", x, -1, NULL, "loss");
}

static void build_ops(struct builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs tied = {.vocab = a->vocab,
                              .features = a->embed_width ? a->embed_width : a->width,
                              .init_std = a->init_std};
    char prefix[24];
    int table = a->tied ? add(b, "variable", -1, -1, &tied, "wte") : -1;
    int x = embedding(b, table);
    for (int64_t i = 0; i < a->layers && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "h%d.", (int)i);
        b->prefix = prefix;
        x = block(b, x, i);
    }
    b->prefix = "";
    head(b, x, table);
}

struct topt_model *topt_hf_build_arch(const struct hf_arch *a, const char *name,
                                      const struct topt_import_options *o,
                                      struct topt_error *err)
{
    int64_t batch = o && o->batch ? o->batch : TOPT_DEFAULT_BATCH;
    int64_t seq = o && o->seq                     ? o->seq
                  : a->context < TOPT_DEFAULT_SEQ ? a->context
                                                  : TOPT_DEFAULT_SEQ;
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
