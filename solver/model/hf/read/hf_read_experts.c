/* hf_read_experts.c - readers of decoders with mixtures of experts. */
#include "hf_read_experts.h"
#include "hf_read.h"
#include "hf_read_llama.h"
#include "hf_rope.h"
#include "topt_json.h"

#include <math.h>
#include <string.h>

/* Losses that are there for experts alone. */
static int read_balance(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int balanced = 0;
    double noise = 0;
    if (topt_json_bool_or(doc, "", "output_router_logits", &balanced, err) ||
        topt_json_real_or(doc, "", "router_jitter_noise", 0, 1e6, &noise, err))
        return -1;
    if (balanced)
        topt_hf_note(a, "there is no load-balancing loss");
    if (noise > 0)
        topt_hf_note(a, "there is no router noise");
    return 0;
}

int topt_hf_read_mixtral(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size optional[] = {
        HF_SIZE("num_local_experts", experts, HF_MAX_EXPERTS),
        HF_SIZE("num_experts_per_tok", top_k, HF_MAX_EXPERTS),
        {0}};
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU, .experts = 8, .top_k = 2};
    if (topt_hf_like_llama(doc, a, err) || topt_hf_window(doc, a, err) ||
        topt_hf_local_layers(doc, 0, 0, a, err) ||
        topt_hf_sizes_or(doc, optional, a, err) || read_balance(doc, a, err))
        return -1;
    a->expert_inner = a->inner;
    topt_hf_give_slots(a);
    return 0;
}

/* ---- Qwen -------------------------------------------------------------------------- */

/* Dense are the layers that are listed, and all but every so-and-so-many-th. */
static int read_dense_layers(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *list = topt_json_member(doc, "mlp_only_layers");
    int64_t every = 1;
    if (topt_json_int_or(doc, "", "decoder_sparse_step", 1, HF_MAX_LAYERS, &every, err))
        return -1;
    if (list && !json_is_null(list) && !json_is_array(list))
        return topt_fail(err, TOPT_ERR_INVAL, "mlp_only_layers must be an array");
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= (i + 1) % every ? HF_DENSE : 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        const json_t *i = json_array_get(list, k);
        if (!json_is_integer(i) || json_integer_value(i) < 0)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "mlp_only_layers[%zu] must be a layer's number", k);
        if (json_integer_value(i) < a->layers)
            a->layer[json_integer_value(i)] |= HF_DENSE;
    }
    return 0;
}

static int read_qwen_experts(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("num_experts", experts, HF_MAX_EXPERTS),
        HF_SIZE("num_experts_per_tok", top_k, HF_MAX_EXPERTS),
        HF_SIZE("moe_intermediate_size", expert_inner, 4 * HF_MAX_WIDTH),
        {0}};
    int normalized = 0;
    if (topt_hf_sizes(doc, sizes, a, err) || read_dense_layers(doc, a, err) ||
        read_balance(doc, a, err) ||
        topt_json_bool_or(doc, "", "norm_topk_prob", &normalized, err))
        return -1;
    a->unnormalized = !normalized;
    topt_hf_give_slots(a);
    return 0;
}

int topt_hf_read_qwen3_moe(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return topt_hf_read_qwen3(doc, a, err) || read_qwen_experts(doc, a, err) ? -1 : 0;
}

int topt_hf_read_qwen2_moe(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("shared_expert_intermediate_size", shared_inner, 4 * HF_MAX_WIDTH), {0}};
    if (topt_hf_read_qwen2(doc, a, err) || read_qwen_experts(doc, a, err) ||
        topt_hf_sizes(doc, sizes, a, err) ||
        topt_json_bool_or(doc, "", "qkv_bias", &a->qkv_bias, err))
        return -1;
    a->shared_gate = 1;
    return 0;
}

/* ---- DeepSeek ---------------------------------------------------------------------- */

/* YaRN's factor of queries and keys is one of their scores there. */
static int read_deepseek_scores(const json_t *doc, struct hf_arch *a,
                                struct topt_error *err)
{
    static const char *const places[] = {"rope_scaling", "rope_parameters"};
    double m = 0;
    for (int i = 0; i < 2; i++) {
        const json_t *rope = topt_json_member(doc, places[i]);
        if (json_is_object(rope) &&
            topt_json_real_or(rope, places[i], "mscale_all_dim", 0, 1e6, &m, err))
            return -1;
    }
    m = topt_hf_yarn_scale(a->rope.rope_factor, m);
    a->score_factor = m * m / sqrt((double)a->head_dim);
    return 0;
}

/* Experts in groups, chosen by sigmoids and a correction that is trained apart. */
static int read_deepseek_route(const json_t *doc, struct hf_arch *a,
                               struct topt_error *err)
{
    static const struct hf_size groups[] = {
        HF_SIZE("n_group", groups, HF_MAX_EXPERTS),
        HF_SIZE("topk_group", top_groups, HF_MAX_EXPERTS),
        {0}};
    int normalized = 1;
    int64_t every = 1;
    if (topt_hf_sizes_or(doc, groups, a, err) ||
        topt_hf_expect(doc, "scoring_func", "sigmoid", err) ||
        topt_hf_expect(doc, "topk_method", "noaux_tc", err) ||
        topt_json_int_or(doc, "", "moe_layer_freq", 1, 1, &every, err) ||
        topt_json_bool_or(doc, "", "norm_topk_prob", &normalized, err) ||
        topt_json_real_or(doc, "", "routed_scaling_factor", 1e-6, 1e6, &a->route_factor,
                          err))
        return -1;
    a->sigmoid = a->corrected = 1;
    a->unnormalized = !normalized;
    topt_hf_note(a, "the router's bias correction is not updated");
    return 0;
}

/* Dense are the first layers, or those that a list says. */
static int read_first_dense(const json_t *doc, int64_t dense, struct hf_arch *a,
                            struct topt_error *err)
{
    const json_t *types = topt_json_member(doc, "mlp_layer_types");
    if (topt_json_int_or(doc, "", "first_k_dense_replace", 0, HF_MAX_LAYERS, &dense, err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        a->layer[i] |= (type ? !strcmp(type, "dense") : i < dense) ? HF_DENSE : 0;
    }
    return 0;
}

/* Heads that choose which keys are attended to; some layers take the choice of the one
 * before. */
static int read_index(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("index_n_heads", index_heads, HF_MAX_HEADS),
        HF_SIZE("index_head_dim", index_dim, HF_MAX_WIDTH),
        HF_SIZE("index_topk", window, HF_MAX_CONTEXT),
        {0}};
    const json_t *types = topt_json_member(doc, "indexer_types");
    const char *pattern = NULL;
    int64_t every = 1, offset = 2;
    if (topt_hf_sizes_or(doc, sizes, a, err) ||
        (json_is_string(topt_json_member(doc, "index_topk_pattern")) &&
         topt_json_string_or(doc, "", "index_topk_pattern", &pattern, err)) ||
        topt_json_int_or(doc, "", "index_topk_freq", 1, HF_MAX_LAYERS, &every, err) ||
        topt_json_int_or(doc, "", "index_skip_topk_offset", 0, HF_MAX_LAYERS, &offset,
                         err))
        return -1;
    if (!a->index_heads)
        return 0;
    a->not_run = "the choice of keys that each query attends to";
    /* all layers are alike but for the index */
    (void)topt_json_member(doc, "layer_types");
    for (int64_t i = 0; i < a->layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        int64_t after = i - offset + 1 > 0 ? i - offset + 1 : 0;
        int shared = type                                      ? !strcmp(type, "shared")
                     : pattern && i < (int64_t)strlen(pattern) ? pattern[i] == 'S'
                                                               : after % every != 0;
        a->layer[i] |= (uint16_t)(HF_LOCAL | (shared ? HF_NO_INDEX : 0));
    }
    return 0;
}

/* Ranks, sizes of heads, experts and those that all tokens take. */
static int read_latent(const json_t *doc, int64_t dense, struct hf_arch *a,
                       struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("n_routed_experts", experts, HF_MAX_EXPERTS),
        HF_SIZE("num_experts_per_tok", top_k, HF_MAX_EXPERTS),
        HF_SIZE("moe_intermediate_size", expert_inner, 4 * HF_MAX_WIDTH),
        HF_SIZE("kv_lora_rank", latent_rank, HF_MAX_WIDTH),
        HF_SIZE("qk_nope_head_dim", plain_dim, HF_MAX_WIDTH),
        HF_SIZE("qk_rope_head_dim", rope.rope_dim, HF_MAX_WIDTH),
        HF_SIZE("v_head_dim", value_dim, HF_MAX_WIDTH),
        {0}};
    static const struct hf_size optional[] = {
        HF_SIZE("q_lora_rank", query_rank, HF_MAX_WIDTH), {0}};
    int64_t shared = 1;
    if (topt_hf_sizes(doc, sizes, a, err) || topt_hf_like_llama(doc, a, err) ||
        topt_hf_sizes_or(doc, optional, a, err) ||
        topt_json_int_or(doc, "", "n_shared_experts", 0, 64, &shared, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->latent_bias, err) ||
        read_first_dense(doc, dense, a, err))
        return -1;
    a->kv_heads = a->heads;
    a->head_dim = a->plain_dim + a->rope.rope_dim;
    a->shared_inner = shared * a->expert_inner;
    topt_hf_give_slots(a);
    return read_deepseek_scores(doc, a, err);
}

/* Latent attention; a few dense layers, then experts and one that all tokens take; of
 * those after it perhaps a choice of keys. */
static int read_like_v3(const json_t *doc, int64_t dense, struct hf_arch *a,
                        struct topt_error *err)
{
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU,
                          .groups = 8,
                          .top_groups = 4,
                          .route_factor = 2.5,
                          .head_dim = 2 /* set by the latent sizes */};
    return read_latent(doc, dense, a, err) || read_deepseek_route(doc, a, err) ||
                   read_index(doc, a, err)
               ? -1
               : 0;
}

/* The same attention, and a feed-forward without experts. */
int topt_hf_read_youtu(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const of_experts[] = {
        "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size",
        "n_group",          "topk_group",          NULL};
    json_t *plain = json_copy((json_t *)doc);
    int rc = plain ? 0 : topt_nomem(err, "a config");
    for (int i = 0; plain && of_experts[i]; i++)
        json_object_set_new(plain, of_experts[i], json_integer(1));
    rc = rc ? rc : read_like_v3(plain, 0, a, err);
    json_decref(plain);
    a->experts = a->shared_inner = 0;
    a->note[0] = '\0';
    return rc;
}

int topt_hf_read_deepseek_v3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return read_like_v3(doc, 3, a, err);
}

int topt_hf_read_glm4_moe_lite(const json_t *doc, struct hf_arch *a,
                               struct topt_error *err)
{
    return read_like_v3(doc, 1, a, err);
}

/* Experts by a softmax, perhaps of groups that are chosen by their best. */
int topt_hf_read_deepseek_v2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int normalized = 0;
    const char *method = "greedy";
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU, .route_factor = 1, .head_dim = 2};
    if (read_latent(doc, 0, a, err) ||
        topt_hf_expect(doc, "scoring_func", "softmax", err) ||
        topt_json_string_or(doc, "", "topk_method", &method, err) ||
        topt_json_bool_or(doc, "", "norm_topk_prob", &normalized, err) ||
        topt_json_real_or(doc, "", "routed_scaling_factor", 1e-6, 1e6, &a->route_factor,
                          err))
        return -1;
    a->unnormalized = !normalized;
    if (!strcmp(method, "group_limited_greedy"))
        a->not_run = "the choice of groups of experts by the best of each";
    return 0;
}

/* What each layer's keys are: of the positions just before alone, or of runs of all too,
 * from which some layers choose. */
static int read_runs(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *types = topt_json_member(doc, "layer_types"),
                 *rates = topt_json_member(doc, "compress_rates"),
                 *ratios = topt_json_member(doc, "compress_ratios"),
                 *experts = topt_json_member(doc, "mlp_layer_types");
    int64_t hashed = 3;
    a->compressed[0] = 128;
    a->compressed[1] = 4;
    if (topt_json_int_or(rates, "compress_rates", "heavily_compressed_attention", 1,
                         HF_MAX_CONTEXT, &a->compressed[0], err) ||
        topt_json_int_or(rates, "compress_rates", "compressed_sparse_attention", 1,
                         HF_MAX_CONTEXT, &a->compressed[1], err) ||
        topt_json_int_or(doc, "", "num_hash_layers", 0, HF_MAX_LAYERS, &hashed, err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++) {
        const json_t *ratio = json_array_get(ratios, (size_t)i);
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        const char *kind = json_string_value(json_array_get(experts, (size_t)i));
        int near = type    ? !strcmp(type, "sliding_attention")
                   : ratio ? !json_integer_value(ratio)
                           : 0;
        int chooses = type    ? !strcmp(type, "compressed_sparse_attention")
                      : ratio ? json_integer_value(ratio) == a->compressed[1]
                              : i >= 3 && i % 2 == 1;
        if (ratio && !near && !chooses && json_integer_value(ratio) != a->compressed[0])
            return topt_fail(err, TOPT_ERR_INVAL,
                             "compress_ratios[%lld] is not one of 0, %lld and %lld",
                             (long long)i, (long long)a->compressed[1],
                             (long long)a->compressed[0]);
        a->layer[i] |= near ? HF_NEAR : 0;
        if (type && !near && !chooses && strcmp(type, "heavily_compressed_attention"))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "layer_types[%lld] is \"%.40s\": no reader takes that among "
                             "compressed keys",
                             (long long)i, type);
        a->layer[i] |= chooses ? HF_CHOSEN : 0;
        a->layer[i] |= kind         ? (strcmp(kind, "hash_moe") ? 0 : HF_HASHED)
                       : i < hashed ? HF_HASHED
                                    : 0;
    }
    return 0;
}

/* Keys of runs of positions, one for all heads; experts in every layer, in the first ones by
 * the token alone; several copies go from block to block (DeepSeek-AI, 2026). */
int topt_hf_read_deepseek_v4(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("n_routed_experts", experts, HF_MAX_EXPERTS),
        HF_SIZE("num_experts_per_tok", top_k, HF_MAX_EXPERTS),
        HF_SIZE("moe_intermediate_size", expert_inner, 4 * HF_MAX_WIDTH),
        HF_SIZE("q_lora_rank", query_rank, HF_MAX_WIDTH),
        HF_SIZE("o_lora_rank", out_rank, HF_MAX_WIDTH),
        HF_SIZE("o_groups", out_groups, HF_MAX_HEADS),
        HF_SIZE("head_dim", head_dim, HF_MAX_WIDTH),
        HF_SIZE("index_n_heads", index_heads, HF_MAX_HEADS),
        HF_SIZE("index_head_dim", index_dim, HF_MAX_WIDTH),
        HF_SIZE("index_topk", chosen_keys, HF_MAX_CONTEXT),
        HF_SIZE("hidden_size", width, HF_MAX_WIDTH),
        HF_SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        HF_SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
        HF_SIZE("sliding_window", window, HF_MAX_CONTEXT),
        {0}};
    int64_t shared = 1, copies = 4;
    int normalized = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU,
                          .gated = 1,
                          .rms = 1,
                          .eps = 1e-6,
                          .init_std = 0.02,
                          .route_factor = 1.5,
                          .sigmoid = 1,
                          .corrected = 1,
                          .context_key = "max_position_embeddings",
                          .not_run = "keys of runs of positions, and copies of what goes "
                                     "from block to block"};
    if (topt_hf_sizes(doc, sizes, a, err) ||
        topt_json_int_or(doc, "", "n_shared_experts", 0, 64, &shared, err) ||
        topt_json_int_or(doc, "", "hc_mult", 1, 64, &copies, err) ||
        topt_json_bool_or(doc, "", "norm_topk_prob", &normalized, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        topt_json_real_or(doc, "", "routed_scaling_factor", 1e-6, 1e6, &a->route_factor,
                          err) ||
        topt_hf_divides("num_attention_heads", a->heads, "o_groups", a->out_groups,
                        err) ||
        read_runs(doc, a, err))
        return -1;
    int64_t mixed = copies * copies + 2 * copies;
    a->kv_heads = 1;
    a->inner = a->expert_inner;
    a->shared_inner = shared * a->expert_inner;
    a->unnormalized = !normalized;
    a->layer_unused = 2 * (mixed * copies * a->width + mixed + 3);
    a->unused = copies * copies * a->width + copies + 1;
    topt_hf_give_slots(a);
    topt_hf_note(a, "the router's bias correction is not updated");
    return 0;
}

/* Experts by a softmax without groups, in every layer. */
int topt_hf_read_mistral4(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int normalized = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_SILU, .route_factor = 1, .head_dim = 2};
    if (read_latent(doc, 0, a, err) ||
        topt_json_bool_or(doc, "", "norm_topk_prob", &normalized, err))
        return -1;
    a->unnormalized = !normalized;
    return 0;
}

/* ---- Llama 4 ----------------------------------------------------------------------- */

/* Every fourth layer knows no positions where "no_rope_layers" does not say which; all others see
 * their own chunk of the keys. */
static int read_chunked(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_unturned(doc, 4, a, err))
        return -1;
    if (topt_json_member(doc, "layer_types"))
        return topt_hf_local_layers(doc, 0, 0, a, err);
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= a->layer[i] & HF_UNTURNED ? 0 : HF_LOCAL;
    return 0;
}

/* Layers with experts: those that are listed, else every so-and-so-many-th. */
static int read_llama4_experts(const json_t *doc, struct hf_arch *a,
                               struct topt_error *err)
{
    const json_t *list = topt_json_member(doc, "moe_layers");
    int64_t every = 1;
    if (topt_json_int_or(doc, "", "interleave_moe_layer_step", 1, HF_MAX_LAYERS, &every,
                         err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= json_array_size(list) || (i + 1) % every ? HF_DENSE : 0;
    for (size_t k = 0; k < json_array_size(list); k++) {
        int64_t i = json_integer_value(json_array_get(list, k));
        if (i < 0 || i >= a->layers)
            return topt_fail(err, TOPT_ERR_INVAL, "moe_layers[%zu] is no layer", k);
        a->layer[i] &= (uint16_t)~HF_DENSE;
    }
    return 0;
}

/* Queries of layers that know no positions are scaled by theirs, by 1 up to the first
 * floor. */
static int read_temperature(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int tuned = 1;
    int64_t floor_scale = 8192;
    if (topt_json_bool_or(doc, "", "attn_temperature_tuning", &tuned, err) ||
        topt_json_int_or(doc, "", "floor_scale", 2, INT64_MAX, &floor_scale, err))
        return -1;
    if (tuned) {
        a->inexact_why = "the queries that attn_temperature_tuning scales by position";
        a->inexact_above = floor_scale - 1;
    }
    return 0;
}

/* Experts take tokens times their weight, beside one that all take.  Pairs that are
 * turned are neighbours there and halves of a head here, which is another order of the
 * same weights. */
int topt_hf_read_llama4(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size optional[] = {
        HF_SIZE("num_local_experts", experts, HF_MAX_EXPERTS),
        HF_SIZE("num_experts_per_tok", top_k, HF_MAX_EXPERTS),
        HF_SIZE("attention_chunk_size", chunk, INT64_MAX),
        {0}};
    int64_t dense_inner = 16384;
    *a = (struct hf_arch){
        .activation = TOPT_ACT_SILU,
        .experts = 16,
        .top_k = 1,
        .head_dim = 128,
        .weigh_input = 1,
        .head_norms_after = 1,
        .rope = {.rope_theta = 500000},
        .chunk = json_is_null(topt_json_member(doc, "attention_chunk_size")) ? 0 : 8192};
    if (topt_hf_like_llama(doc, a, err) || topt_hf_sizes_or(doc, optional, a, err) ||
        topt_json_int_or(doc, "", "intermediate_size_mlp", 1, 4 * HF_MAX_WIDTH,
                         &dense_inner, err) ||
        topt_json_bool_or(doc, "", "use_qk_norm", &a->head_norms_after, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &a->qkv_bias, err) ||
        read_chunked(doc, a, err) || read_llama4_experts(doc, a, err) ||
        read_temperature(doc, a, err) || read_balance(doc, a, err))
        return -1;
    if (a->top_k != 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "num_experts_per_tok is %lld: no operator weighs what more than "
                         "one expert reads",
                         (long long)a->top_k);
    a->out_bias = a->qkv_bias;
    a->expert_inner = a->shared_inner = a->inner;
    a->inner = dense_inner;
    topt_hf_give_slots(a);
    return 0;
}
