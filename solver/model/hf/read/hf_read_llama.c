/* hf_read_llama.c - readers of decoders with rotary positions: Llama, its relatives,
 * Gemma. */
#include "hf_read_llama.h"
#include "hf_read.h"
#include "hf_rope.h"
#include "topt_json.h"

#include <math.h>
#include <string.h>

int topt_hf_like_llama(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size optional[] = {
        HF_SIZE("num_key_value_heads", kv_heads, HF_MAX_HEADS),
        HF_SIZE("head_dim", head_dim, HF_MAX_WIDTH),
        {0}};
    a->gated = 1;
    a->rms = 1;
    a->eps = 1e-6;
    a->init_std = 0.02;
    a->context_key = "max_position_embeddings";
    if (topt_hf_sizes(doc, topt_hf_usual_sizes, a, err) ||
        topt_hf_sizes_or(doc, optional, a, err))
        return -1;
    /* every head has keys of its own, from one latent */
    if (!a->kv_heads || a->latent_rank)
        a->kv_heads = a->heads;
    if (topt_hf_divides("num_attention_heads", a->heads, "num_key_value_heads",
                        a->kv_heads, err) ||
        (!a->head_dim &&
         topt_hf_divides("hidden_size", a->width, "num_attention_heads", a->heads, err)))
        return -1;
    if (topt_hf_set_heads(a, err) ||
        topt_json_real_or(doc, "", "rms_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        topt_hf_activation(doc, "hidden_act", &a->activation, err))
        return -1;
    return topt_hf_rope(doc, "partial_rotary_factor",
                        a->rope_share > 0 ? a->rope_share : 1, a, err);
}

int topt_hf_read_llama(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU};
    if (topt_hf_like_llama(doc, a, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err) ||
        topt_json_bool_or(doc, "", "mlp_bias", &a->mlp_bias, err))
        return -1;
    a->out_bias = a->qkv_bias;
    return 0;
}

static int read_window_everywhere(const json_t *doc, struct hf_arch *a,
                                  struct topt_error *err)
{
    return topt_hf_window(doc, a, err) || topt_hf_local_layers(doc, 0, 0, a, err) ? -1
                                                                                  : 0;
}

int topt_hf_read_mistral(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU};
    return topt_hf_like_llama(doc, a, err) || read_window_everywhere(doc, a, err) ? -1
                                                                                  : 0;
}

/* Windows that a flag switches on, from some layer on. */
static int read_window_if(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int windowed = 0;
    int64_t first = 28;
    if (topt_json_bool_or(doc, "", "use_sliding_window", &windowed, err) ||
        topt_json_int_or(doc, "", "max_window_layers", 0, INT64_MAX, &first, err) ||
        topt_hf_local_layers(doc, first, 0, a, err))
        return -1;
    a->window = windowed ? 4096 : 0;
    if (!windowed) /* and what it says of one has no effect */
        (void)topt_json_member(doc, "sliding_window");
    return windowed ? topt_hf_window(doc, a, err) : 0;
}

int topt_hf_read_qwen2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU, .qkv_bias = 1};
    return topt_hf_like_llama(doc, a, err) || read_window_if(doc, a, err) ? -1 : 0;
}

int topt_hf_read_qwen3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU, .head_norms = 1};
    if (topt_hf_like_llama(doc, a, err) || read_window_if(doc, a, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err))
        return -1;
    a->out_bias = a->qkv_bias;
    return 0;
}

/* Query, key and value, gate and up are stored as one there, which changes no number. */
int topt_hf_read_phi3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU};
    return topt_hf_like_llama(doc, a, err) || read_window_everywhere(doc, a, err) ? -1
                                                                                  : 0;
}

int topt_hf_read_starcoder2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int bias = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU, .tied = 1};
    if (topt_hf_like_llama(doc, a, err) || read_window_everywhere(doc, a, err) ||
        topt_hf_expect(doc, "norm_type", "layer_norm", err) ||
        topt_hf_expect(doc, "mlp_type", "default", err) ||
        topt_json_bool_or(doc, "", "use_bias", &bias, err) ||
        topt_json_real_or(doc, "", "norm_epsilon", 1e-30, 1, &a->eps, err))
        return -1;
    a->gated = a->rms = 0;
    a->qkv_bias = a->out_bias = a->mlp_bias = bias;
    return 0;
}

/* ---- Gemma ------------------------------------------------------------------------- */

/* All positions may see all others, or a window to both sides, as in models of
 * embeddings. */
static int read_sight(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_json_bool_or(doc, "", "use_bidirectional_attention", &a->bidirectional, err))
        return -1;
    if (a->bidirectional && a->window) /* the class halves it */
        a->window = a->window / 2 + 1;
    return 0;
}

/* Gains are stored as what is added to 1, which trains the same.  The root of the
 * width that embeddings are multiplied with is rounded there to the weights' type.
 * hidden_act is not asked: the family's code takes the tanh form of GELU whatever it
 * says. */
int topt_hf_read_gemma(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.tied = 1, .head_dim = 256};
    if (topt_hf_like_llama(doc, a, err))
        return -1;
    a->activation = TOPT_ACT_GELU;
    a->wide_gains = 1;
    if (topt_hf_activation(doc, "hidden_activation", &a->activation, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err) ||
        read_sight(doc, a, err))
        return -1;
    a->embed_factor = sqrt((double)a->width);
    a->out_bias = a->qkv_bias;
    return 0;
}

/* What Gemma 2 and 3 share: norms before and after, layers with a window among those
 * without, scores divided by a root of their own, caps.  'a' has what may be left out. */
static int read_like_gemma2(const json_t *doc, double scalar, struct hf_arch *a,
                            struct topt_error *err)
{
    static const struct hf_size optional[] = {
        HF_SIZE("hidden_size", width, HF_MAX_WIDTH),
        HF_SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        HF_SIZE("num_key_value_heads", kv_heads, HF_MAX_HEADS),
        HF_SIZE("head_dim", head_dim, HF_MAX_WIDTH),
        HF_SIZE("intermediate_size", inner, 4 * HF_MAX_WIDTH),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        HF_SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
        {0}};
    a->norms = HF_SANDWICH;
    a->wide_gains = 1;
    a->activation = TOPT_ACT_GELU;
    a->gated = a->rms = a->tied = 1;
    a->eps = 1e-6;
    a->init_std = 0.02;
    a->context_key = "max_position_embeddings";
    if (topt_hf_sizes_or(doc, optional, a, err) || topt_hf_set_heads(a, err) ||
        topt_hf_window(doc, a, err) ||
        topt_hf_rope(doc, "partial_rotary_factor", 1, a, err) ||
        topt_json_real_or(doc, "", "query_pre_attn_scalar", 1, 1e9, &scalar, err) ||
        topt_json_real_or(doc, "", "attn_logit_softcapping", 1e-3, 1e9, &a->score_cap,
                          err) ||
        topt_json_real_or(doc, "", "final_logit_softcapping", 1e-3, 1e9, &a->logit_cap,
                          err) ||
        topt_json_real_or(doc, "", "rms_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        topt_hf_activation(doc, "hidden_activation", &a->activation, err))
        return -1;
    a->out_bias = a->qkv_bias;
    a->embed_factor = sqrt((double)a->width);
    a->score_factor = 1 / sqrt(scalar);
    return 0;
}

/* A null is no cap; a key that is left out is the class's. */
static double cap_or(const json_t *doc, const char *key, double usual)
{
    return json_is_null(topt_json_member(doc, key)) ? 0 : usual;
}

/* Some layers attend to an image in place of the text, and are let through by two
 * numbers; eight more tokens are looked up than predicted. */
int topt_hf_read_mllama_text(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *across = topt_json_member(doc, "cross_attention_layers");
    if (topt_hf_read_llama(doc, a, err))
        return -1;
    if (!json_is_array(across))
        return topt_fail(err, TOPT_ERR_INVAL, "cross_attention_layers is missing");
    for (size_t i = 0; i < json_array_size(across); i++) {
        int64_t layer = json_integer_value(json_array_get(across, i));
        if (layer < 0 || layer >= a->layers)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "cross_attention_layers[%zu] is no layer", i);
        a->layer[layer] |= HF_ACROSS;
    }
    a->more_vocab = 8;
    a->not_run = "attention to an image in place of the text";
    return 0;
}

/* Gemma 2's without norms of what is added. */
int topt_hf_read_vaultgemma(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_gemma2(doc, a, err))
        return -1;
    a->norms = HF_PRE;
    return 0;
}

int topt_hf_read_gemma2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { FULL_EVERY = 2 };
    *a = (struct hf_arch){.width = 2304,
                          .layers = 26,
                          .heads = 8,
                          .kv_heads = 4,
                          .head_dim = 256,
                          .inner = 9216,
                          .vocab = 256000,
                          .context = 8192,
                          .window = 4096,
                          .score_cap = cap_or(doc, "attn_logit_softcapping", 50),
                          .logit_cap = cap_or(doc, "final_logit_softcapping", 30)};
    return read_like_gemma2(doc, 256, a, err) || read_sight(doc, a, err) ||
                   topt_hf_local_layers(doc, 0, FULL_EVERY, a, err)
               ? -1
               : 0;
}

/* Norms of heads too; five layers of six see a window, by angles of their own. */
int topt_hf_read_gemma3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t full_every = 6;
    *a = (struct hf_arch){.head_norms = 1,
                          .width = 2304,
                          .layers = 26,
                          .heads = 8,
                          .kv_heads = 4,
                          .head_dim = 256,
                          .inner = 9216,
                          .vocab = 262208,
                          .context = 131072,
                          .window = 4096,
                          .rope = {.rope_theta = 1e6},
                          .local_rope = {.rope_theta = 10000}};
    if (read_like_gemma2(doc, 256, a, err) || read_sight(doc, a, err) ||
        topt_json_int_or(doc, "", "_sliding_window_pattern", 1, HF_MAX_LAYERS,
                         &full_every, err) ||
        topt_json_int_or(doc, "", "sliding_window_pattern", 1, HF_MAX_LAYERS, &full_every,
                         err) ||
        topt_json_real_or(doc, "", "rope_local_base_freq", 1, 1e15,
                          &a->local_rope.rope_theta, err))
        return -1;
    return topt_hf_local_layers(doc, 0, full_every, a, err);
}

/* ---- Gemma 4 ----------------------------------------------------------------------- */

/* Layers without a window may have heads of their own, whose keys may be values too. */
static int read_full_heads(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    a->full_head_dim = 512;
    if (topt_json_int_or(doc, "", "num_key_value_heads", 1, HF_MAX_HEADS, &a->kv_heads,
                         err) ||
        topt_json_int_or(doc, "", "num_attention_heads", 1, HF_MAX_HEADS, &a->heads,
                         err) ||
        topt_json_bool_or(doc, "", "attention_k_eq_v", &a->full_keys_are_values, err) ||
        topt_json_int_or(doc, "", "global_head_dim", 1, HF_MAX_WIDTH, &a->full_head_dim,
                         err))
        return -1;
    a->full_kv_heads = a->kv_heads;
    (void)topt_json_member(doc, "num_global_key_value_heads"); /* of such keys alone */
    if (a->full_keys_are_values &&
        topt_json_int_or(doc, "", "num_global_key_value_heads", 1, HF_MAX_HEADS,
                         &a->full_kv_heads, err))
        return -1;
    return topt_hf_divides("num_attention_heads", a->heads, "num_global_key_value_heads",
                           a->full_kv_heads, err);
}

static int read_beside(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("num_experts", experts, HF_MAX_EXPERTS),
        HF_SIZE("top_k_experts", top_k, HF_MAX_EXPERTS),
        HF_SIZE("moe_intermediate_size", expert_inner, 4 * HF_MAX_WIDTH),
        {0}};
    if (topt_json_bool_or(doc, "", "enable_moe_block", &a->experts_beside, err))
        return -1;
    if (!a->experts_beside)
        return 0;
    topt_hf_give_slots(a);
    return topt_hf_sizes(doc, sizes, a, err);
}

/* What the small ones have: a table of all layers' own inputs, and last layers whose keys
 * and values are another's. */
static int read_small(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const char *sees = "vision";
    a->own_inputs = 256;
    a->own_vocab = 262144;
    if (topt_json_int_or(doc, "", "hidden_size_per_layer_input", 0, HF_MAX_WIDTH,
                         &a->own_inputs, err) ||
        topt_json_int_or(doc, "", "vocab_size_per_layer_input", 1, HF_MAX_VOCAB,
                         &a->own_vocab, err) ||
        topt_json_int_or(doc, "", "num_kv_shared_layers", 0, HF_MAX_LAYERS, &a->shared_kv,
                         err) ||
        topt_json_bool_or(doc, "", "use_double_wide_mlp", &a->wide_where_shared, err) ||
        topt_json_string_or(doc, "", "use_bidirectional_attention", &sees, err))
        return -1;
    if (a->own_inputs)
        a->not_run = "inputs of each layer's own";
    return !strcmp(sees, "vision")
               ? 0
               : topt_fail(
                     err, TOPT_ERR_INVAL,
                     "use_bidirectional_attention is \"%.40s\": no reader does that "
                     "yet",
                     sees);
}

/* Norms of values too, scores that nothing divides; perhaps experts beside the dense
 * feed-forward. */
int topt_hf_read_gemma4(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { FULL_EVERY = 6 };
    *a = (struct hf_arch){.head_norms = 1,
                          .value_norms = 1,
                          .width = 2304,
                          .layers = 30,
                          .heads = 8,
                          .kv_heads = 4,
                          .head_dim = 256,
                          .inner = 9216,
                          .vocab = 262144,
                          .context = 131072,
                          .window = 512,
                          .rope = {.rope_theta = 1e6},
                          .local_rope = {.rope_theta = 10000}};
    if (read_small(doc, a, err) || read_full_heads(doc, a, err) ||
        read_like_gemma2(doc, 1, a, err) || read_beside(doc, a, err) ||
        topt_hf_local_layers(doc, 0, FULL_EVERY, a, err))
        return -1;
    a->layer[a->layers - 1] &= (uint16_t)~HF_LOCAL;
    if (a->shared_kv >= a->layers)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "num_kv_shared_layers %lld leaves no layer of %lld with keys of "
                         "its own",
                         (long long)a->shared_kv, (long long)a->layers);
    topt_hf_note(a, "each layer's fixed output scale is taken as 1");
    return 0;
}

/* Without inputs of each layer's own where the config does not name them. */
int topt_hf_read_gemma4_unified(const json_t *doc, struct hf_arch *a,
                                struct topt_error *err)
{
    json_t *plain = json_copy((json_t *)doc);
    if (!plain)
        return topt_nomem(err, "a config");
    if (!topt_json_member(plain, "hidden_size_per_layer_input"))
        json_object_set_new(plain, "hidden_size_per_layer_input", json_integer(0));
    int rc = topt_hf_read_gemma4(plain, a, err);
    json_decref(plain);
    return rc;
}

/* One number where a list has it for each layer. */
static int one_width(json_t *doc, struct topt_error *err)
{
    const json_t *list = topt_json_member(doc, "intermediate_size");
    json_t *first = json_array_get(list, 0);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_equal(first, json_array_get(list, i)))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "intermediate_size has numbers that differ from layer to "
                             "layer, which no reader takes");
    return first ? json_object_set(doc, "intermediate_size", first) : 0;
}

/* Gemma 4's smaller models' block, a narrow map beside attention, and copies of what goes
 * from block to block, which are predicted and corrected by some numbers. */
int topt_hf_read_gemma3n(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { FULL_EVERY = 5 };
    json_t *plain = json_copy((json_t *)doc);
    int64_t copies = 4;
    if (!plain)
        return topt_nomem(err, "a config");
    *a = (struct hf_arch){.head_norms = 1,
                          .value_norms = 1,
                          .width = 2048,
                          .layers = 35,
                          .heads = 8,
                          .kv_heads = 2,
                          .head_dim = 256,
                          .inner = 16384,
                          .vocab = 262400,
                          .context = 32768,
                          .window = 512,
                          .narrow = 64,
                          .rope = {.rope_theta = 1e6},
                          .local_rope = {.rope_theta = 10000}};
    int rc =
        one_width(plain, err) || read_small(plain, a, err) ||
        read_like_gemma2(plain, 1, a, err) ||
        topt_json_int_or(plain, "", "laurel_rank", 1, HF_MAX_WIDTH, &a->narrow, err) ||
        topt_json_int_or(plain, "", "altup_num_inputs", 1, 64, &copies, err) ||
        topt_hf_local_layers(plain, 0, FULL_EVERY, a, err);
    json_decref(plain);
    if (rc)
        return -1;
    if (a->shared_kv >= a->layers)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "num_kv_shared_layers %lld leaves no layer with keys of its own",
                         (long long)a->shared_kv);
    a->copies = copies;
    a->not_run = "copies of what goes from block to block";
    return 0;
}
