/* hf_read_gpt.c - readers of decoders with learned positions, and of those whose
 * attention and feed-forward stand side by side. */
#include "hf_read_gpt.h"
#include "hf_read.h"
#include "hf_read_llama.h"
#include "hf_rope.h"
#include "topt_json.h"

#include <math.h>

int topt_hf_read_gpt2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("n_embd", width, HF_MAX_WIDTH),
        HF_SIZE("n_layer", layers, HF_MAX_LAYERS),
        HF_SIZE("n_head", heads, HF_MAX_HEADS),
        HF_SIZE("n_positions", context, HF_MAX_CONTEXT),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        {0}};
    int scaled = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU,
                          .tied = 1,
                          .qkv_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .context_key = "n_positions"};
    if (topt_hf_sizes(doc, sizes, a, err) ||
        topt_hf_divides("n_embd", a->width, "n_head", a->heads, err) ||
        topt_hf_set_heads(a, err))
        return -1;
    a->inner = 4 * a->width;
    a->positions = a->context;
    if (topt_json_int_or(doc, "", "n_inner", 1, 4 * HF_MAX_WIDTH, &a->inner, err) ||
        topt_json_real_or(doc, "", "layer_norm_epsilon", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        topt_hf_refuse_flag(doc, "add_cross_attention", 0,
                            "there is nothing to attend to", err) ||
        topt_json_bool_or(doc, "", "scale_attn_by_inverse_layer_idx", &a->score_by_layer,
                          err) ||
        topt_json_bool_or(doc, "", "scale_attn_weights", &scaled, err))
        return -1;
    a->score_factor = scaled ? 0 : 1;
    return topt_hf_activation(doc, "activation_function", &a->activation, err);
}

/* Sines of positions, relu, a bias of the logits. */
int topt_hf_read_ctrl(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_gpt2(doc, a, err) ||
        topt_json_int_or(doc, "", "dff", 1, 4 * HF_MAX_WIDTH, &a->inner, err))
        return -1;
    a->positions = 0;
    a->head_bias = 1;
    a->activation = TOPT_ACT_RELU;
    topt_hf_note(a, "sinusoidal position embeddings are left out");
    return 0;
}

/* Two rows of the table of positions come before the first position's. */
int topt_hf_read_opt(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("hidden_size", width, HF_MAX_WIDTH),
        HF_SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        HF_SIZE("ffn_dim", inner, 4 * HF_MAX_WIDTH),
        HF_SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        {0}};
    int before = 1, bias = 1, no_final = 0;
    *a = (struct hf_arch){.activation = TOPT_ACT_RELU,
                          .tied = 1,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .context_key = "max_position_embeddings"};
    if (topt_hf_sizes(doc, sizes, a, err) || topt_hf_set_heads(a, err))
        return -1;
    a->positions = a->context + 2;
    a->embed_width = a->width;
    if (topt_json_int_or(doc, "", "word_embed_proj_dim", 1, HF_MAX_WIDTH, &a->embed_width,
                         err) ||
        topt_json_bool_or(doc, "", "do_layer_norm_before", &before, err) ||
        topt_json_bool_or(doc, "", "_remove_final_layer_norm", &no_final, err) ||
        topt_json_bool_or(doc, "", "enable_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        topt_hf_refuse_flag(doc, "layer_norm_elementwise_affine", 1, "norms have gains",
                            err) ||
        topt_json_real_or(doc, "", "init_std", 1e-12, 100, &a->init_std, err))
        return -1;
    a->norms = before ? HF_PRE : HF_POST;
    a->no_final_norm = !before || no_final;
    a->qkv_bias = a->out_bias = a->mlp_bias = bias;
    return topt_hf_activation(doc, "activation_function", &a->activation, err);
}

/* Norms after the sums and none at the end. */
int topt_hf_read_openai_gpt(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_gpt2(doc, a, err))
        return -1;
    a->norms = HF_POST;
    a->no_final_norm = 1;
    return 0;
}

/* OPT's block under other names, with embeddings times the root of the width. */
static int read_scaled_opt(const json_t *doc, const char *inner, const char *activation,
                           struct hf_arch *a, struct topt_error *err)
{
    json_t *plain = json_copy((json_t *)doc);
    json_t *size = topt_json_member(doc, inner),
           *name = topt_json_member(doc, activation);
    int scaled = 1;
    if (plain && size)
        json_object_set(plain, "ffn_dim", size);
    if (plain && name)
        json_object_set(plain, "activation_function", name);
    int rc = plain ? topt_hf_read_opt(plain, a, err) : topt_nomem(err, "a config");
    json_decref(plain);
    if (rc || topt_json_bool_or(doc, "", "scale_embedding", &scaled, err))
        return -1;
    a->embed_factor = scaled ? sqrt((double)a->width) : 0;
    return 0;
}

/* Positions are sines, which have no table. */
int topt_hf_read_xglm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (read_scaled_opt(doc, "ffn_dim", "activation_function", a, err))
        return -1;
    a->positions = 0;
    topt_hf_note(a, "sinusoidal position embeddings are left out");
    return 0;
}

int topt_hf_read_biogpt(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return read_scaled_opt(doc, "intermediate_size", "hidden_act", a, err);
}

/* ---- parallel blocks --------------------------------------------------------------- */

int topt_hf_read_gpt_neox(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int parallel = 1, bias = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU_ERF,
                          .mlp_bias = 1,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .context_key = "max_position_embeddings"};
    if (topt_hf_sizes(doc, topt_hf_usual_sizes, a, err) || topt_hf_set_heads(a, err) ||
        topt_hf_rope(doc, "rotary_pct", 0.25, a, err) ||
        topt_json_real_or(doc, "", "rotary_emb_base", 1, 1e15, &a->rope.rope_theta,
                          err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "use_parallel_residual", &parallel, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err))
        return -1;
    a->norms = parallel ? HF_PARALLEL : HF_PRE;
    a->qkv_bias = a->out_bias = bias;
    return topt_hf_activation(doc, "hidden_act", &a->activation, err);
}

int topt_hf_read_gptj(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("n_embd", width, HF_MAX_WIDTH),
        HF_SIZE("n_layer", layers, HF_MAX_LAYERS),
        HF_SIZE("n_head", heads, HF_MAX_HEADS),
        HF_SIZE("n_positions", context, HF_MAX_CONTEXT),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        HF_SIZE("rotary_dim", rope.rope_dim, HF_MAX_WIDTH),
        {0}};
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU,
                          .norms = HF_PARALLEL,
                          .shared_norm = 1,
                          .mlp_bias = 1,
                          .head_bias = 1,
                          .eps = 1e-5,
                          .rope = {.rope_theta = 10000},
                          .init_std = 0.02,
                          .context_key = "n_positions"};
    if (topt_hf_sizes(doc, sizes, a, err) ||
        topt_hf_divides("n_embd", a->width, "n_head", a->heads, err) ||
        topt_hf_set_heads(a, err))
        return -1;
    a->inner = 4 * a->width;
    if (a->rope.rope_dim > a->head_dim || a->rope.rope_dim % 2)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "rotary_dim %lld does not fit a head of %lld",
                         (long long)a->rope.rope_dim, (long long)a->head_dim);
    if (topt_json_int_or(doc, "", "n_inner", 1, 4 * HF_MAX_WIDTH, &a->inner, err) ||
        topt_json_real_or(doc, "", "layer_norm_epsilon", 1e-30, 1, &a->eps, err) ||
        topt_hf_refuse_flag(doc, "tie_word_embeddings", 0,
                            "its head has a bias of its own", err))
        return -1;
    return topt_hf_activation(doc, "activation_function", &a->activation, err);
}

int topt_hf_read_phi(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU,
                          .norms = HF_PARALLEL,
                          .shared_norm = 1,
                          .rope_share = 0.5,
                          .qkv_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .head_bias = 1};
    if (topt_hf_like_llama(doc, a, err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_bool_or(doc, "", "qk_layernorm", &a->head_norms, err) ||
        topt_hf_refuse_flag(doc, "tie_word_embeddings", 0,
                            "its head has a bias of its own", err))
        return -1;
    a->gated = a->rms = 0;
    return 0;
}
