/* hf_read.c - one reader a family of Hugging Face configs.
 *
 * What a config asks for and the operators can't do is refused by the name of its key.  Fields
 * that change neither shapes nor arithmetic of training (token ids, cache, dropout rates, ...)
 * are not read.  Where a key may be left out, its value is the one that the family's
 * configuration class gives it. */
#include "hf.h"
#include "topt_json.h"

#include <math.h>
#include <string.h>

/* A whole number of the config and where it goes. */
struct size {
    const char *key;
    size_t offset;
    int64_t max;
};
#define SIZE(key, field, max)                                                            \
    {                                                                                    \
        key, offsetof(struct hf_arch, field), max                                        \
    }

static int read_sizes(const json_t *doc, const struct size *s, struct hf_arch *a,
                      struct topt_error *err)
{
    for (; s->key; s++)
        if (topt_json_int(doc, "", s->key, 1, s->max, (int64_t *)((char *)a + s->offset),
                          err))
            return -1;
    return 0;
}

static int read_sizes_or(const json_t *doc, const struct size *s, struct hf_arch *a,
                         struct topt_error *err)
{
    for (; s->key; s++)
        if (topt_json_int_or(doc, "", s->key, 1, s->max,
                             (int64_t *)((char *)a + s->offset), err))
            return -1;
    return 0;
}

/* A flag that the operators have nothing for must be as 'want'. */
static int refuse_flag(const json_t *doc, const char *key, int want, const char *why,
                       struct topt_error *err)
{
    int on = want;
    if (topt_json_bool_or(doc, "", key, &on, err))
        return -1;
    return on == want ? 0
                      : topt_fail(err, TOPT_ERR_INVAL, "%s is %s: %s", key,
                                  on ? "true" : "false", why);
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
    } known[] = {{"gelu_new", TOPT_ACT_GELU},  {"gelu", TOPT_ACT_GELU_ERF},
                 {"gelu_fast", TOPT_ACT_GELU}, {"gelu_pytorch_tanh", TOPT_ACT_GELU},
                 {"relu", TOPT_ACT_RELU},      {"silu", TOPT_ACT_SILU},
                 {"swish", TOPT_ACT_SILU},     {"tanh", TOPT_ACT_TANH},
                 {"sigmoid", TOPT_ACT_SIGMOID}};
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

/* Without its own key a head is its share of the width. */
static int set_heads(struct hf_arch *a, struct topt_error *err)
{
    a->kv_heads = a->kv_heads ? a->kv_heads : a->heads;
    if (divides("the number of heads", a->heads, "num_key_value_heads", a->kv_heads,
                err) ||
        (!a->head_dim &&
         divides("the width", a->width, "the number of heads", a->heads, err)))
        return -1;
    a->head_dim = a->head_dim ? a->head_dim : a->width / a->heads;
    return 0;
}

/* Each query sees so many keys before it; null: all. */
static int read_window(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return topt_json_int_or(doc, "", "sliding_window", 1, INT64_MAX, &a->window, err);
}

/* ---- decoders with learned positions --------------------------------------------------- */

static int read_gpt2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {SIZE("n_embd", width, HF_MAX_WIDTH),
                                        SIZE("n_layer", layers, HF_MAX_LAYERS),
                                        SIZE("n_head", heads, HF_MAX_HEADS),
                                        SIZE("n_positions", context, HF_MAX_CONTEXT),
                                        SIZE("vocab_size", vocab, HF_MAX_VOCAB),
                                        {0}};
    const char *no_row = "no operator does that";
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU,
                          .tied = 1,
                          .qkv_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .context_key = "n_positions"};
    if (read_sizes(doc, sizes, a, err) ||
        divides("n_embd", a->width, "n_head", a->heads, err) || set_heads(a, err))
        return -1;
    a->inner = 4 * a->width;
    a->positions = a->context;
    if (topt_json_int_or(doc, "", "n_inner", 1, 4 * HF_MAX_WIDTH, &a->inner, err) ||
        topt_json_real_or(doc, "", "layer_norm_epsilon", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        refuse_flag(doc, "add_cross_attention", 0, no_row, err) ||
        refuse_flag(doc, "scale_attn_by_inverse_layer_idx", 0, no_row, err) ||
        refuse_flag(doc, "scale_attn_weights", 1, no_row, err))
        return -1;
    return read_activation(doc, "activation_function", &a->activation, err);
}

/* Two rows of the table of positions come before the first position's. */
static int read_opt(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {
        SIZE("hidden_size", width, HF_MAX_WIDTH),
        SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        SIZE("ffn_dim", inner, 4 * HF_MAX_WIDTH),
        SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
        SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        {0}};
    int before = 1, bias = 1, no_final = 0;
    *a = (struct hf_arch){.activation = TOPT_ACT_RELU,
                          .tied = 1,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .context_key = "max_position_embeddings"};
    if (read_sizes(doc, sizes, a, err) || set_heads(a, err))
        return -1;
    a->positions = a->context + 2;
    a->embed_width = a->width;
    if (topt_json_int_or(doc, "", "word_embed_proj_dim", 1, HF_MAX_WIDTH, &a->embed_width,
                         err) ||
        topt_json_bool_or(doc, "", "do_layer_norm_before", &before, err) ||
        topt_json_bool_or(doc, "", "_remove_final_layer_norm", &no_final, err) ||
        topt_json_bool_or(doc, "", "enable_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        refuse_flag(doc, "layer_norm_elementwise_affine", 1, "norms have gains", err) ||
        topt_json_real_or(doc, "", "init_std", 1e-12, 100, &a->init_std, err))
        return -1;
    a->norms = before ? HF_PRE : HF_POST;
    a->no_final_norm = !before || no_final;
    a->qkv_bias = a->out_bias = a->mlp_bias = bias;
    return read_activation(doc, "activation_function", &a->activation, err);
}

/* ---- decoders with rotary positions ---------------------------------------------------- */

/* Scaled rotary angles train with the same shapes and costs; unknown kinds might not. */
static int read_rope_kind(const json_t *rope, const char *place, struct hf_arch *a,
                          struct topt_error *err)
{
    static const char *const known[] = {"default", "llama3", "linear",
                                        "dynamic", "yarn",   NULL};
    const char *type = "default";
    if (!json_is_object(rope))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be an object", place);
    if (topt_json_string_or(rope, place, "type", &type, err) ||
        topt_json_string_or(rope, place, "rope_type", &type, err) ||
        topt_json_real_or(rope, place, "rope_theta", 1, 1e15, &a->rope_theta, err))
        return -1;
    for (int i = 0; known[i]; i++)
        if (!strcmp(known[i], type))
            return 0;
    return topt_fail(err, TOPT_ERR_INVAL, "%s has type \"%.40s\", which is not known",
                     place, type);
}

static int read_rope(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters", NULL};
    a->rope_theta = 10000;
    a->rope_dim = a->head_dim;
    if (topt_json_real_or(doc, "", "rope_theta", 1, 1e15, &a->rope_theta, err))
        return -1;
    for (int p = 0; places[p]; p++) {
        const json_t *rope = json_object_get(doc, places[p]);
        if (rope && !json_is_null(rope) && read_rope_kind(rope, places[p], a, err))
            return -1;
    }
    return 0;
}

/* The rotated part of a head, where a config gives it as a share. */
static int read_partial_rope(const json_t *doc, const char *key, double share,
                             struct hf_arch *a, struct topt_error *err)
{
    if (topt_json_real_or(doc, "", key, 0, 1, &share, err))
        return -1;
    a->rope_dim = (int64_t)((double)a->head_dim * share);
    return a->rope_dim % 2 == 0
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "%s rotates %lld numbers of a head: odd",
                           key, (long long)a->rope_dim);
}

static const struct size llama_sizes[] = {
    SIZE("hidden_size", width, HF_MAX_WIDTH),
    SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
    SIZE("num_attention_heads", heads, HF_MAX_HEADS),
    SIZE("intermediate_size", inner, 4 * HF_MAX_WIDTH),
    SIZE("vocab_size", vocab, HF_MAX_VOCAB),
    SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
    {0}};

/* Llama and its many relatives; 'a' holds what differs in what may be left out. */
static int read_like_llama(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size optional[] = {
        SIZE("num_key_value_heads", kv_heads, HF_MAX_HEADS),
        SIZE("head_dim", head_dim, HF_MAX_WIDTH),
        {0}};
    a->gated = 1;
    a->rms = 1;
    a->eps = 1e-6;
    a->init_std = 0.02;
    a->context_key = "max_position_embeddings";
    if (read_sizes(doc, llama_sizes, a, err) || read_sizes_or(doc, optional, a, err))
        return -1;
    a->kv_heads = a->kv_heads ? a->kv_heads : a->heads;
    if (divides("num_attention_heads", a->heads, "num_key_value_heads", a->kv_heads,
                err) ||
        (!a->head_dim &&
         divides("hidden_size", a->width, "num_attention_heads", a->heads, err)))
        return -1;
    if (set_heads(a, err) ||
        topt_json_real_or(doc, "", "rms_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        read_activation(doc, "hidden_act", &a->activation, err))
        return -1;
    return read_rope(doc, a, err);
}

static int read_llama(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU};
    if (read_like_llama(doc, a, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err) ||
        topt_json_bool_or(doc, "", "mlp_bias", &a->mlp_bias, err))
        return -1;
    a->out_bias = a->qkv_bias;
    return 0;
}

static int read_mistral(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU};
    return read_like_llama(doc, a, err) || read_window(doc, a, err) ? -1 : 0;
}

/* Windows that a flag switches on. */
static int read_window_if(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int windowed = 0;
    if (topt_json_bool_or(doc, "", "use_sliding_window", &windowed, err))
        return -1;
    return windowed ? read_window(doc, a, err) : 0;
}

static int read_qwen2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU, .qkv_bias = 1};
    return read_like_llama(doc, a, err) || read_window_if(doc, a, err) ? -1 : 0;
}

static int read_qwen3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU, .head_norms = 1, .head_dim = 128};
    if (read_like_llama(doc, a, err) || read_window_if(doc, a, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err))
        return -1;
    a->out_bias = a->qkv_bias;
    return 0;
}

/* Query, key and value, gate and up are stored as one there, which changes no number. */
static int read_phi3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU};
    if (read_like_llama(doc, a, err) || read_window(doc, a, err))
        return -1;
    return read_partial_rope(doc, "partial_rotary_factor", 1, a, err);
}

static int read_starcoder2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int bias = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU, .tied = 1};
    if (read_like_llama(doc, a, err) || read_window(doc, a, err) ||
        topt_json_bool_or(doc, "", "use_bias", &bias, err) ||
        topt_json_real_or(doc, "", "norm_epsilon", 1e-30, 1, &a->eps, err))
        return -1;
    a->gated = a->rms = 0;
    a->qkv_bias = a->out_bias = a->mlp_bias = bias;
    return 0;
}

/* ---- Gemma ----------------------------------------------------------------------------- */

/* Gains are stored as what is added to 1, which trains the same.  The root of the width that
 * embeddings are multiplied with is rounded there to the weights' type. */
static int read_gemma(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU, .tied = 1, .head_dim = 256};
    if (read_like_llama(doc, a, err) ||
        read_activation(doc, "hidden_activation", &a->activation, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err))
        return -1;
    a->embed_factor = sqrt((double)a->width);
    a->out_bias = a->qkv_bias;
    return 0;
}

/* Norms before and after, of heads too; five layers of six see a window, by angles of their
 * own.  The text model: what may be left out is as in its configuration class. */
static int read_gemma3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size optional[] = {
        SIZE("hidden_size", width, HF_MAX_WIDTH),
        SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        SIZE("num_key_value_heads", kv_heads, HF_MAX_HEADS),
        SIZE("head_dim", head_dim, HF_MAX_WIDTH),
        SIZE("intermediate_size", inner, 4 * HF_MAX_WIDTH),
        SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
        SIZE("sliding_window_pattern", full_every, HF_MAX_LAYERS),
        {0}};
    double scalar = 256;
    *a = (struct hf_arch){.norms = HF_SANDWICH,
                          .activation = TOPT_ACT_GELU,
                          .gated = 1,
                          .rms = 1,
                          .tied = 1,
                          .head_norms = 1,
                          .width = 2304,
                          .layers = 26,
                          .heads = 8,
                          .kv_heads = 4,
                          .head_dim = 256,
                          .inner = 9216,
                          .vocab = 262208,
                          .context = 131072,
                          .window = 4096,
                          .full_every = 6,
                          .local_theta = 10000,
                          .eps = 1e-6,
                          .init_std = 0.02,
                          .context_key = "max_position_embeddings"};
    if (read_sizes_or(doc, optional, a, err) || set_heads(a, err) ||
        read_rope(doc, a, err) || read_window(doc, a, err) ||
        topt_json_real_or(doc, "", "query_pre_attn_scalar", 1, 1e9, &scalar, err) ||
        topt_json_real_or(doc, "", "rope_local_base_freq", 1, 1e15, &a->local_theta,
                          err) ||
        topt_json_real_or(doc, "", "rms_norm_eps", 1e-30, 1, &a->eps, err) ||
        read_activation(doc, "hidden_activation", &a->activation, err))
        return -1;
    const json_t *theta = json_object_get(doc, "rope_theta");
    a->rope_theta = theta && !json_is_null(theta) ? a->rope_theta : 1e6;
    a->embed_factor = sqrt((double)a->width);
    a->score_factor = 1 / sqrt(scalar);
    return 0;
}

/* ---- mixtures of experts --------------------------------------------------------------- */

/* No token is dropped there; here each expert has slots for a quarter more than its share. */
enum { SLOTS_PERCENT = 125 };

static int read_mixtral(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size optional[] = {
        SIZE("num_local_experts", experts, HF_MAX_EXPERTS),
        SIZE("num_experts_per_tok", top_k, HF_MAX_EXPERTS),
        {0}};
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU,
                          .experts = 8,
                          .top_k = 2,
                          .capacity = SLOTS_PERCENT / 100.0};
    if (read_like_llama(doc, a, err) || read_window(doc, a, err) ||
        read_sizes_or(doc, optional, a, err))
        return -1;
    a->expert_inner = a->inner;
    return 0;
}

/* Experts in every layer, which is what decoder_sparse_step and mlp_only_layers could change. */
static int read_qwen_experts(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {
        SIZE("num_experts", experts, HF_MAX_EXPERTS),
        SIZE("num_experts_per_tok", top_k, HF_MAX_EXPERTS),
        SIZE("moe_intermediate_size", expert_inner, 4 * HF_MAX_WIDTH),
        {0}};
    int64_t every = 1;
    int normalized = 0;
    const json_t *dense = json_object_get(doc, "mlp_only_layers");
    if (read_sizes(doc, sizes, a, err) ||
        topt_json_int_or(doc, "", "decoder_sparse_step", 1, HF_MAX_LAYERS, &every, err) ||
        topt_json_bool_or(doc, "", "norm_topk_prob", &normalized, err))
        return -1;
    if (every != 1 || json_array_size(dense))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "decoder_sparse_step and mlp_only_layers that mix dense layers "
                         "with experts are not read yet");
    a->unnormalized = !normalized;
    a->capacity = SLOTS_PERCENT / 100.0;
    return 0;
}

static int read_qwen3_moe(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return read_qwen3(doc, a, err) || read_qwen_experts(doc, a, err) ? -1 : 0;
}

static int read_qwen2_moe(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {
        SIZE("shared_expert_intermediate_size", shared_inner, 4 * HF_MAX_WIDTH), {0}};
    if (read_qwen2(doc, a, err) || read_qwen_experts(doc, a, err) ||
        read_sizes(doc, sizes, a, err))
        return -1;
    a->shared_gate = 1;
    return 0;
}

/* Latent attention; a few dense layers, then experts and one that all tokens take.  Which
 * experts a token goes to is decided there by groups, and by sigmoids with a correction that
 * is trained apart; here by a softmax, with the correction as the router's bias: of the same
 * sizes and cost.  The layers that predict further tokens are left out. */
static int read_deepseek_v3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {
        SIZE("n_routed_experts", experts, HF_MAX_EXPERTS),
        SIZE("num_experts_per_tok", top_k, HF_MAX_EXPERTS),
        SIZE("moe_intermediate_size", expert_inner, 4 * HF_MAX_WIDTH),
        SIZE("kv_lora_rank", latent_rank, HF_MAX_WIDTH),
        SIZE("qk_nope_head_dim", plain_dim, HF_MAX_WIDTH),
        SIZE("qk_rope_head_dim", rope_dim, HF_MAX_WIDTH),
        SIZE("v_head_dim", value_dim, HF_MAX_WIDTH),
        {0}};
    static const struct size optional[] = {SIZE("q_lora_rank", query_rank, HF_MAX_WIDTH),
                                           {0}};
    int64_t shared = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU,
                          .router_bias = 1,
                          .head_dim = 2, /* set below */
                          .capacity = SLOTS_PERCENT / 100.0};
    if (read_like_llama(doc, a, err) || read_sizes(doc, sizes, a, err) ||
        read_sizes_or(doc, optional, a, err) ||
        topt_json_int_or(doc, "", "first_k_dense_replace", 0, HF_MAX_LAYERS,
                         &a->dense_layers, err) ||
        topt_json_int_or(doc, "", "n_shared_experts", 1, 64, &shared, err) ||
        refuse_flag(doc, "attention_bias", 0, "no reader does that yet", err))
        return -1;
    a->kv_heads = a->heads;
    a->head_dim = a->plain_dim + a->rope_dim;
    a->shared_inner = shared * a->expert_inner;
    return a->rope_dim % 2
               ? topt_fail(err, TOPT_ERR_INVAL, "qk_rope_head_dim %lld is odd",
                           (long long)a->rope_dim)
               : 0;
}

/* ---- parallel blocks ------------------------------------------------------------------- */

static int read_gpt_neox(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int parallel = 1, bias = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU_ERF,
                          .mlp_bias = 1,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .context_key = "max_position_embeddings"};
    if (read_sizes(doc, llama_sizes, a, err) || set_heads(a, err) ||
        read_rope(doc, a, err) || read_partial_rope(doc, "rotary_pct", 0.25, a, err) ||
        topt_json_real_or(doc, "", "rotary_emb_base", 1, 1e15, &a->rope_theta, err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "use_parallel_residual", &parallel, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err))
        return -1;
    a->norms = parallel ? HF_PARALLEL : HF_PRE;
    a->qkv_bias = a->out_bias = bias;
    return read_activation(doc, "hidden_act", &a->activation, err);
}

static int read_gptj(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {SIZE("n_embd", width, HF_MAX_WIDTH),
                                        SIZE("n_layer", layers, HF_MAX_LAYERS),
                                        SIZE("n_head", heads, HF_MAX_HEADS),
                                        SIZE("n_positions", context, HF_MAX_CONTEXT),
                                        SIZE("vocab_size", vocab, HF_MAX_VOCAB),
                                        SIZE("rotary_dim", rope_dim, HF_MAX_WIDTH),
                                        {0}};
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU,
                          .norms = HF_PARALLEL,
                          .shared_norm = 1,
                          .mlp_bias = 1,
                          .head_bias = 1,
                          .eps = 1e-5,
                          .rope_theta = 10000,
                          .init_std = 0.02,
                          .context_key = "n_positions"};
    if (read_sizes(doc, sizes, a, err) ||
        divides("n_embd", a->width, "n_head", a->heads, err) || set_heads(a, err))
        return -1;
    a->inner = 4 * a->width;
    if (a->rope_dim > a->head_dim || a->rope_dim % 2)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "rotary_dim %lld does not fit a head of %lld",
                         (long long)a->rope_dim, (long long)a->head_dim);
    if (topt_json_int_or(doc, "", "n_inner", 1, 4 * HF_MAX_WIDTH, &a->inner, err) ||
        topt_json_real_or(doc, "", "layer_norm_epsilon", 1e-30, 1, &a->eps, err) ||
        refuse_flag(doc, "tie_word_embeddings", 0, "its head has a bias of its own", err))
        return -1;
    return read_activation(doc, "activation_function", &a->activation, err);
}

static int read_phi(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU,
                          .norms = HF_PARALLEL,
                          .shared_norm = 1,
                          .qkv_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .head_bias = 1};
    if (read_like_llama(doc, a, err) ||
        read_partial_rope(doc, "partial_rotary_factor", 0.5, a, err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err) ||
        refuse_flag(doc, "qk_layernorm", 0, "no reader does that yet", err) ||
        refuse_flag(doc, "tie_word_embeddings", 0, "its head has a bias of its own", err))
        return -1;
    a->gated = a->rms = 0;
    return 0;
}

/* ---- encoders -------------------------------------------------------------------------- */

/* The masked language model: a transform before the tied head.  Token types are loaded as
 * the tokens are. */
static int read_bert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size types[] = {SIZE("type_vocab_size", types, HF_MAX_VOCAB),
                                        {0}};
    const char *kind = "absolute";
    *a = (struct hf_arch){.norms = HF_POST,
                          .activation = TOPT_ACT_GELU_ERF,
                          .bidirectional = 1,
                          .types = 2,
                          .embed_norm = 1,
                          .no_final_norm = 1,
                          .qkv_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .tied = 1,
                          .head_transform = 1,
                          .head_bias = 1,
                          .eps = 1e-12,
                          .init_std = 0.02,
                          .context_key = "max_position_embeddings"};
    if (read_sizes(doc, llama_sizes, a, err) || set_heads(a, err) ||
        read_sizes_or(doc, types, a, err) ||
        topt_json_string_or(doc, "", "position_embedding_type", &kind, err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        refuse_flag(doc, "is_decoder", 0, "no reader does that yet", err) ||
        refuse_flag(doc, "tie_word_embeddings", 1, "no reader does that yet", err))
        return -1;
    if (strcmp(kind, "absolute"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "position_embedding_type is \"%.40s\": no operator does that",
                         kind);
    a->positions = a->context;
    return read_activation(doc, "hidden_act", &a->activation, err);
}

static int read_distilbert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {
        SIZE("dim", width, HF_MAX_WIDTH),
        SIZE("n_layers", layers, HF_MAX_LAYERS),
        SIZE("n_heads", heads, HF_MAX_HEADS),
        SIZE("hidden_dim", inner, 4 * HF_MAX_WIDTH),
        SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
        {0}};
    *a = (struct hf_arch){.norms = HF_POST,
                          .activation = TOPT_ACT_GELU_ERF,
                          .bidirectional = 1,
                          .embed_norm = 1,
                          .no_final_norm = 1,
                          .qkv_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .tied = 1,
                          .head_transform = 1,
                          .head_bias = 1,
                          .eps = 1e-12,
                          .init_std = 0.02,
                          .context_key = "max_position_embeddings"};
    if (read_sizes(doc, sizes, a, err) || set_heads(a, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        refuse_flag(doc, "sinusoidal_pos_embds", 0, "no reader does that yet", err))
        return -1;
    a->positions = a->context;
    return read_activation(doc, "activation", &a->activation, err);
}

/* ---- towers ---------------------------------------------------------------------------- */

/* Classes by the names that a config gives them. */
static int read_vit(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {
        SIZE("hidden_size", width, HF_MAX_WIDTH),
        SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        SIZE("intermediate_size", inner, 4 * HF_MAX_WIDTH),
        {0}};
    static const struct size optional[] = {SIZE("image_size", image, 1 << 14),
                                           SIZE("patch_size", patch, 1 << 14),
                                           SIZE("num_channels", channels, 1 << 14),
                                           {0}};
    const json_t *names = json_object_get(doc, "id2label");
    int bias = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU_ERF,
                          .bidirectional = 1,
                          .image = 224,
                          .patch = 16,
                          .channels = 3,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .eps = 1e-12,
                          .init_std = 0.02,
                          .context = 1,
                          .context_key = "one position"};
    if (read_sizes(doc, sizes, a, err) || set_heads(a, err) ||
        read_sizes_or(doc, optional, a, err) ||
        topt_json_bool_or(doc, "", "qkv_bias", &bias, err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err) ||
        divides("image_size", a->image, "patch_size", a->patch, err))
        return -1;
    a->qkv_bias = bias;
    a->classes = json_object_size(names) ? (int64_t)json_object_size(names) : 2;
    return read_activation(doc, "hidden_act", &a->activation, err);
}

static int read_whisper(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct size sizes[] = {
        SIZE("d_model", width, HF_MAX_WIDTH),
        SIZE("encoder_layers", encoder_layers, HF_MAX_LAYERS),
        SIZE("decoder_layers", layers, HF_MAX_LAYERS),
        SIZE("encoder_attention_heads", encoder_heads, HF_MAX_HEADS),
        SIZE("decoder_attention_heads", heads, HF_MAX_HEADS),
        SIZE("encoder_ffn_dim", encoder_inner, 4 * HF_MAX_WIDTH),
        SIZE("decoder_ffn_dim", inner, 4 * HF_MAX_WIDTH),
        SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        SIZE("num_mel_bins", channels, 1 << 14),
        SIZE("max_source_positions", source, 1 << 20),
        SIZE("max_target_positions", context, HF_MAX_CONTEXT),
        {0}};
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU_ERF,
                          .tied = 1,
                          .qkv_bias = 1,
                          .no_key_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .context_key = "max_target_positions"};
    if (read_sizes(doc, sizes, a, err) || set_heads(a, err) ||
        divides("d_model", a->width, "encoder_attention_heads", a->encoder_heads, err) ||
        topt_json_real_or(doc, "", "init_std", 1e-12, 100, &a->init_std, err) ||
        refuse_flag(doc, "scale_embedding", 0, "no reader does that yet", err))
        return -1;
    a->positions = a->context;
    return read_activation(doc, "activation_function", &a->activation, err);
}

/* ---- families -------------------------------------------------------------------------- */

const struct hf_family topt_hf_families[] = {
    {"gpt2", "GPT2LMHeadModel", read_gpt2, NULL, NULL},
    {"opt", "OPTForCausalLM", read_opt, NULL, NULL},
    {"gpt_neox", "GPTNeoXForCausalLM", read_gpt_neox, NULL, NULL},
    {"gptj", "GPTJForCausalLM", read_gptj, NULL, NULL},
    {"phi", "PhiForCausalLM", read_phi, NULL, NULL},
    {"phi3", "Phi3ForCausalLM", read_phi3, NULL, NULL},
    {"llama", "LlamaForCausalLM", read_llama, NULL, NULL},
    {"mistral", "MistralForCausalLM", read_mistral, NULL, NULL},
    {"mixtral", "MixtralForCausalLM", read_mixtral, NULL, NULL},
    {"qwen2", "Qwen2ForCausalLM", read_qwen2, NULL, NULL},
    {"qwen2_moe", "Qwen2MoeForCausalLM", read_qwen2_moe, NULL, NULL},
    {"qwen3", "Qwen3ForCausalLM", read_qwen3, NULL, NULL},
    {"qwen3_moe", "Qwen3MoeForCausalLM", read_qwen3_moe, NULL, NULL},
    {"starcoder2", "Starcoder2ForCausalLM", read_starcoder2, NULL, NULL},
    {"gemma", "GemmaForCausalLM", read_gemma, NULL, NULL},
    {"gemma2", "Gemma2ForCausalLM", NULL, NULL, "the cap on attention's scores"},
    {"gemma3_text", "Gemma3ForCausalLM", read_gemma3, NULL, NULL},
    {"deepseek_v3", "DeepseekV3ForCausalLM", read_deepseek_v3, NULL, NULL},
    {"t5", "T5ForConditionalGeneration", NULL, NULL,
     "the relative position bias of attention's scores"},
    {"vit", "ViTForImageClassification", read_vit, topt_hf_build_vision, NULL},
    {"whisper", "WhisperForConditionalGeneration", read_whisper, topt_hf_build_speech,
     NULL},
    {"bert", "BertForMaskedLM", read_bert, NULL, NULL},
    {"distilbert", "DistilBertForMaskedLM", read_distilbert, NULL, NULL},
    {0},
};
