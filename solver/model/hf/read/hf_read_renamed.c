/* hf_read_renamed.c - readers of decoders whose configs name in their own way what others say
 * too.
 *
 * A copy of the config gets the usual names, a reader that others share takes it, and the
 * family's own parts follow.  A part that no operator here has is refused by its key. */
#include "hf_read_renamed.h"
#include "hf_complete.h"
#include "hf_read.h"
#include "hf_read_decoder.h"
#include "hf_read_experts.h"
#include "hf_read_llama.h"
#include "hf_tower.h"
#include "topt_json.h"

#include <stdlib.h>
#include <string.h>

/* ---- names ------------------------------------------------------------------------- */

/* A key, the object that it stands in (NULL: the config itself), and its usual name. */
struct name {
    const char *within, *own, *usual;
};

/* The config under usual names too; the table ends with an empty row. */
static json_t *renamed(const json_t *doc, const struct name *names,
                       struct topt_error *err)
{
    json_t *ret = json_copy((json_t *)doc);
    for (; ret && names->own; names++) {
        const json_t *from = names->within ? topt_json_member(doc, names->within) : doc;
        json_t *value = topt_json_member(from, names->own);
        if (value && !json_is_null(value))
            json_object_set(ret, names->usual, value);
    }
    if (!ret)
        topt_nomem(err, "a config");
    return ret;
}

/* A list of 0 and 1, one a layer, as words under a usual name. */
static void set_words(const json_t *doc, const char *list, const char *zero,
                      const char *one, json_t *ret, const char *usual)
{
    const json_t *ones = topt_json_member(doc, list);
    json_t *words = json_is_array(ones) ? json_array() : NULL;
    for (size_t i = 0; words && i < json_array_size(ones); i++)
        json_array_append_new(
            words, json_string(json_integer_value(json_array_get(ones, i)) ? one : zero));
    if (words)
        json_object_set_new(ret, usual, words);
}

/* Numbers of layers that have experts, "4,5,6" or a list, as words of all layers; without it
 * all but the first have them, or but so many as the config says.  Layers behind the last are left out. */
static int set_expert_layers(const json_t *doc, json_t *ret, struct topt_error *err)
{
    static const char key[] = "moe_layers_enum";
    const json_t *some = topt_json_member(doc, key);
    const json_t *dense = topt_json_member(doc, "first_k_dense_replace");
    int64_t others = json_is_integer(dense) ? json_integer_value(dense) : 1;
    const char *text = json_string_value(some);
    int64_t n = topt_json_whole_at(doc, "num_hidden_layers");
    json_t *words = json_array();
    for (int64_t i = 0; i < n && i < HF_MAX_LAYERS; i++)
        json_array_append_new(words,
                              json_string(i < others || some ? "dense" : "sparse"));
    json_object_set_new(ret, "mlp_layer_types", words);
    for (size_t k = 0; k < json_array_size(some); k++)
        json_array_set_new(words, (size_t)json_integer_value(json_array_get(some, k)),
                           json_string("sparse"));
    while (text && *text) {
        char *end;
        size_t i = strtoul(text, &end, 10);
        if (end == text)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s has \"%.20s\", which is no layer's number", key, text);
        json_array_set_new(words, i, json_string("sparse"));
        text = end + strspn(end, ", ");
    }
    return 0;
}

/* A list with a number for each layer, of which the first layer of that kind has 'ret'; left
 * alone where there is no list. */
static void take_first(const json_t *list, const json_t *types, const char *type,
                       double *ret)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *is = json_string_value(json_array_get(types, i));
        if (is && !strcmp(is, type)) {
            *ret = json_number_value(json_array_get(list, i));
            return;
        }
    }
}

static int refuse_if_set(const json_t *doc, const char *key, const char *why,
                         struct topt_error *err)
{
    const json_t *value = topt_json_member(doc, key);
    if (!value || json_is_null(value) || json_is_false(value) ||
        (json_is_integer(value) && !json_integer_value(value)))
        return 0;
    return topt_fail(err, TOPT_ERR_INVAL, "%s is set: %s", key, why);
}

/* ---- text by masks: every position sees all ----------------------------------------- */

static int sees_all(struct hf_arch *a)
{
    a->bidirectional = 1;
    topt_hf_note(a, "the loss is taken over all tokens, as if each were masked");
    return 0;
}

/* OLMo's keys (Nie et al., 2025). */
int topt_hf_read_llada(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct name names[] = {
        {NULL, "n_layers", "num_hidden_layers"},
        {NULL, "n_kv_heads", "num_key_value_heads"},
        {NULL, "mlp_hidden_size", "intermediate_size"},
        {NULL, "embedding_size", "vocab_size"},
        {NULL, "weight_tying", "tie_word_embeddings"},
        {NULL, "max_sequence_length", "max_position_embeddings"},
        {NULL, "include_bias", "bias"},
        {NULL, "include_qkv_bias", "use_qkv_bias"},
        {0}};
    static const char *const of_no_size[] = {"vocab_size",
                                             "mlp_ratio",
                                             "block_group_size",
                                             "layer_norm_type",
                                             "rope",
                                             "layer_norm_with_affine",
                                             "activation_type",
                                             "precision",
                                             "attention_layer_norm_with_affine",
                                             "flash_attention",
                                             "mask_token_id",
                                             "rope_full_precision",
                                             NULL};
    if (topt_hf_expect(doc, "block_type", "llama", err) ||
        topt_hf_refuse_flag(doc, "attention_layer_norm", 0,
                            "norms of queries and keys are not read", err) ||
        topt_hf_refuse_flag(doc, "alibi", 0, "scores by distance are not read", err) ||
        topt_hf_refuse_flag(doc, "input_emb_norm", 0,
                            "factors of embeddings are not read", err))
        return -1;
    for (int i = 0; of_no_size[i]; i++)
        (void)topt_json_member(doc, of_no_size[i]);
    json_t *usual = renamed(doc, names, err);
    int rc = usual ? topt_hf_read_decoder(usual, a, err) : -1;
    json_decref(usual);
    return rc ? -1 : sees_all(a);
}

int topt_hf_read_dream(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return topt_hf_read_qwen2(doc, a, err) ? -1 : sees_all(a);
}

int topt_hf_read_sdar(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return topt_hf_read_qwen3(doc, a, err) ? -1 : sees_all(a);
}

int topt_hf_read_sdar_moe(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return topt_hf_read_qwen3_moe(doc, a, err) ? -1 : sees_all(a);
}

int topt_hf_read_llada2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return topt_hf_read_decoder(doc, a, err) ? -1 : sees_all(a);
}

/* ---- T5Gemma ------------------------------------------------------------------------ */

/* One of two stacks, each a Gemma 2 by its own config. */
static int read_stack(const json_t *doc, const char *key, struct hf_arch *a,
                      struct topt_error *err)
{
    json_t *whole = topt_hf_complete(topt_json_member(doc, key), "gemma2", err);
    int rc = !json_is_object(topt_json_member(doc, key))
                 ? topt_fail(err, TOPT_ERR_INVAL, "%s is missing", key)
             : whole ? topt_hf_read_gemma2(whole, a, err)
                     : -1;
    json_decref(whole);
    return rc ? topt_wrap(err, "%s", key) : 0;
}

/* Every position of the encoder sees all (Zhang et al., 2025). */
int topt_hf_read_t5gemma(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    struct hf_tower *place = a->own_tower;
    if (read_stack(doc, "decoder", a, err) ||
        read_stack(doc, "encoder", &place->a, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err))
        return -1;
    (void)topt_json_member(doc, "vocab_size");
    place->a.bidirectional = 1;
    a->encoder = &place->a;
    return 0;
}

/* ---- Phi-3-small ------------------------------------------------------------------- */

/* Gated by an approximation of GELU; in some layers each query sees blocks of keys nearby and
 * every so-many-th of the others.  Scores are divided by the width of a head. */
int topt_hf_read_phi3small(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct name names[] = {
        {NULL, "ff_intermediate_size", "intermediate_size"},
        {NULL, "rope_embedding_base", "rope_theta"},
        {NULL, "mup_embedding_multiplier", "embedding_multiplier"},
        {NULL, "mup_width_multiplier", "logits_scaling"},
        {0}};
    static const char *const of_blocks[] = {"blocksparse_block_size",
                                            "blocksparse_homo_head_pattern",
                                            "blocksparse_num_local_blocks",
                                            "blocksparse_triton_kernel_block_size",
                                            "blocksparse_vert_stride",
                                            "dense_attention_every_n_layers",
                                            "gegelu_limit",
                                            "gegelu_pad_to_256",
                                            "pad_sequence_to_multiple_of_64",
                                            "mup_attn_multiplier",
                                            "mup_use_scaling",
                                            "rope_position_scale",
                                            "hidden_act",
                                            NULL};
    json_t *usual = renamed(doc, names, err);
    if (!usual)
        return -1;
    for (int i = 0; of_blocks[i]; i++)
        (void)topt_json_member(doc, of_blocks[i]);
    json_object_set_new(usual, "hidden_act", json_string("quick_gelu"));
    json_object_del(usual, "attention_bias"); /* they are there all the same */
    (void)topt_json_member(doc, "attention_bias");
    int rc =
        refuse_if_set(doc, "ff_dim_multiplier", "widths by a factor are not read", err) ||
        topt_hf_read_decoder(usual, a, err);
    json_decref(usual);
    a->tied = 1;
    a->qkv_bias = a->out_bias = a->mlp_bias = 1;
    a->not_run = "attention to blocks of keys";
    topt_hf_note(a, "attention to blocks of keys is counted as to all keys");
    return rc ? -1 : 0;
}

/* ---- Klear ------------------------------------------------------------------------- */

/* Two numbers of each token weigh the experts and the one that all take. */
int topt_hf_read_klear(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_decoder(doc, a, err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++)
        if (a->layer[i] & HF_DENSE)
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "mlp_only_layers or decoder_sparse_step leaves layers without "
                "experts, which no reader of this family takes");
    a->layer_unused = 2 * (a->width + 1);
    a->not_run = "weights of experts against those that all tokens take";
    return 0;
}

/* ---- Kimi Linear ------------------------------------------------------------------- */

/* Layers by their numbers from 1 on. */
static int read_delta_layers(const json_t *linear, struct hf_arch *a,
                             struct topt_error *err)
{
    const json_t *list = topt_json_member(linear, "kda_layers");
    const json_t *full = topt_json_member(linear, "full_attn_layers");
    int64_t all = (int64_t)(json_array_size(list) + json_array_size(full));
    if (all != a->layers)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "linear_attn_config has %lld layers in kda_layers and "
                         "full_attn_layers, num_hidden_layers is %lld",
                         (long long)all, (long long)a->layers);
    for (size_t k = 0; k < json_array_size(list); k++) {
        int64_t i = json_integer_value(json_array_get(list, k));
        if (i < 1 || i > a->layers)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "linear_attn_config.kda_layers[%zu] is no layer", k);
        a->layer[i - 1] |= HF_MIXED;
    }
    return 0;
}

/* A delta rule by decays of each number in most layers, latent attention without positions in the
 * others (Kimi Team, 2025). */
int topt_hf_read_kimi_linear(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct name names[] = {
        {NULL, "num_experts", "n_routed_experts"},
        {NULL, "num_experts_per_token", "num_experts_per_tok"},
        {NULL, "num_shared_experts", "n_shared_experts"},
        {NULL, "num_expert_group", "n_group"},
        {NULL, "moe_renormalize", "norm_topk_prob"},
        {NULL, "moe_router_activation_func", "scoring_func"},
        {NULL, "model_max_length", "max_position_embeddings"},
        {0}};
    static const struct name unread[] = {
        {NULL, "attn_res_block_size", "sums over blocks of layers are not read"},
        {NULL, "routed_expert_hidden_size", "experts of a narrower input are not read"},
        {NULL, "mla_use_output_gate", "gates of latent attention are not read"},
        {0}};
    const json_t *linear = topt_json_member(doc, "linear_attn_config");
    struct hf_mixer *m = &a->mixer;
    int plain = 1;
    for (const struct name *n = unread; n->own; n++)
        if (refuse_if_set(doc, n->own, n->usual, err))
            return -1;
    if (!json_is_object(linear))
        return topt_fail(err, TOPT_ERR_INVAL, "linear_attn_config is missing");
    if (refuse_if_set(linear, "use_full_rank_gate", "gates of full rank are not read",
                      err))
        return -1;
    json_t *usual = renamed(doc, names, err);
    int rc = usual ? topt_hf_read_deepseek_v3(usual, a, err) : -1;
    json_decref(usual);
    *m = (struct hf_mixer){.kind = HF_KDA, .kernel = 4, .chunk = 64};
    if (rc || topt_json_bool_or(doc, "", "mla_use_nope", &plain, err) ||
        topt_json_int(linear, "linear_attn_config", "num_heads", 1, HF_MAX_HEADS,
                      &m->heads, err) ||
        topt_json_int(linear, "linear_attn_config", "head_dim", 1, HF_MAX_WIDTH,
                      &m->head_dim, err) ||
        topt_json_int_or(linear, "linear_attn_config", "short_conv_kernel_size", 1, 1024,
                         &m->kernel, err) ||
        read_delta_layers(linear, a, err))
        return -1;
    m->state = m->ranks[0] = m->head_dim;
    if (plain)
        a->rope.rope_theta = 0;
    return 0;
}

/* ---- LongCat ----------------------------------------------------------------------- */

/* Some experts give back what they read.  The others compute what is left of a token's choice
 * where all are chosen equally often. */
static int read_zero_experts(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    char text[160];
    if (topt_json_int_or(doc, "", "zero_expert_num", 0, HF_MAX_EXPERTS, &a->zero_experts,
                         err))
        return -1;
    if (!a->zero_experts)
        return 0;
    int64_t all = a->experts + a->zero_experts, asked = a->top_k;
    a->top_k = (asked * a->experts + all / 2) / all;
    a->top_k = a->top_k > 0 ? a->top_k : 1;
    snprintf(
        text, sizeof text,
        "of the %lld experts that a token takes, %lld compute: zero experts are taken "
        "as often as others",
        (long long)asked, (long long)a->top_k);
    topt_hf_note(a, text);
    topt_hf_give_slots(a);
    return 0;
}

/* Two halves a layer, each with latent attention and a dense feed-forward; experts reach from
 * the first to the end of the second (Meituan, 2025). */
int topt_hf_read_longcat(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct name names[] = {
        {NULL, "num_layers", "num_hidden_layers"},
        {NULL, "ffn_hidden_size", "intermediate_size"},
        {NULL, "expert_ffn_hidden_size", "moe_intermediate_size"},
        {NULL, "moe_topk", "num_experts_per_tok"},
        {0}};
    const char *kind = "identity";
    if (topt_hf_expect(doc, "attention_method", "MLA", err) ||
        topt_json_string_or(doc, "", "zero_expert_type", &kind, err) ||
        topt_hf_refuse_flag(doc, "router_bias", 0, "routers with a bias are not read",
                            err) ||
        refuse_if_set(doc, "ngram_vocab_size_ratio", "tables of n-grams are not read",
                      err))
        return -1;
    if (strcmp(kind, "identity"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "zero_expert_type is \"%.40s\": identity is read", kind);
    json_t *usual = renamed(doc, names, err);
    if (usual) {
        json_object_set_new(usual, "n_shared_experts", json_integer(0));
        json_object_set_new(usual, "norm_topk_prob", json_false());
    }
    int rc = usual ? topt_hf_read_mistral4(usual, a, err) : -1;
    json_decref(usual);
    if (rc || read_zero_experts(doc, a, err))
        return -1;
    /* factors of what the ranks give */
    (void)topt_json_member(doc, "mla_scale_q_lora");
    (void)topt_json_member(doc, "mla_scale_kv_lora");
    a->corrected = 1;
    a->two_halves = 1;
    a->not_run = "experts that reach over a second attention";
    topt_hf_note(a, "the correction of the experts' scores stays as it is");
    return 0;
}

/* ---- heads that differ between local and full layers -------------------------------- */

/* Numbers of heads of full layers are what the config says outside; those of local ones
 * stand apart. */
static int full_heads(int64_t local_heads, int64_t local_kv_heads, struct hf_arch *a,
                      struct topt_error *err)
{
    a->full_head_dim = a->head_dim;
    a->full_heads = a->heads;
    a->full_kv_heads = a->kv_heads;
    a->heads = local_heads ? local_heads : a->heads;
    a->kv_heads = local_kv_heads ? local_kv_heads : a->kv_heads;
    return topt_hf_divides("heads of local layers", a->heads, "their key-value heads",
                           a->kv_heads, err);
}

/* Values narrower than keys, sinks where a layer has a window (Xiaomi, 2025). */
int topt_hf_read_mimo_v2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct name names[] = {{NULL, "sliding_window_size", "sliding_window"},
                                        {0}};
    static const char *const same[][2] = {
        {"swa_head_dim", "head_dim"}, {"swa_v_head_dim", "v_head_dim"}, {NULL, NULL}};
    int64_t heads = 0, kv_heads = 0;
    int some = 1, all = 0;
    for (int i = 0; same[i][0]; i++) {
        const json_t *own = topt_json_member(doc, same[i][0]);
        if (own && !json_equal(own, topt_json_member(doc, same[i][1])))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s is not %s: heads of two widths are not read", same[i][0],
                             same[i][1]);
    }
    json_t *usual = renamed(doc, names, err);
    if (!usual)
        return -1;
    set_words(doc, "hybrid_layer_pattern", "full_attention", "sliding_attention", usual,
              "layer_types");
    set_words(doc, "moe_layer_freq", "dense", "sparse", usual, "mlp_layer_types");
    if (json_object_get(usual, "mlp_layer_types"))
        json_object_del(usual, "moe_layer_freq");
    int rc = topt_hf_read_decoder(usual, a, err);
    json_decref(usual);
    a->local_rope = a->rope;
    a->local_rope.rope_theta = 10000;
    if (rc ||
        topt_json_real_or(doc, "", "swa_rope_theta", 1, 1e15, &a->local_rope.rope_theta,
                          err) ||
        topt_json_int_or(doc, "", "v_head_dim", 1, HF_MAX_WIDTH, &a->value_dim, err) ||
        topt_json_int_or(doc, "", "swa_num_attention_heads", 1, HF_MAX_HEADS, &heads,
                         err) ||
        topt_json_int_or(doc, "", "swa_num_key_value_heads", 1, HF_MAX_HEADS, &kv_heads,
                         err) ||
        topt_json_bool_or(doc, "", "add_swa_attention_sink_bias", &some, err) ||
        topt_json_bool_or(doc, "", "add_full_attention_sink_bias", &all, err))
        return -1;
    (void)topt_json_member(doc, "attention_value_scale");
    a->sinks = all ? 1 : some ? HF_SINKS_LOCAL : 0;
    a->not_run = "values that are scaled before attention";
    return full_heads(heads, kv_heads ? kv_heads : 2 * a->kv_heads, a, err);
}

/* ---- MiniMax-M3 -------------------------------------------------------------------- */

/* Layers that choose keys: those with a 1 in a list of the part on sparse attention, or with
 * another word than full attention. */
static int chooses(const json_t *sparse, const json_t *types, int64_t i)
{
    const json_t *ones = topt_json_member(sparse, "sparse_attention_freq");
    const char *type = json_string_value(json_array_get(types, (size_t)i));
    return type ? strcmp(type, "full_attention") != 0
                : json_integer_value(json_array_get(ones, (size_t)i)) != 0;
}

/* Blocks of keys are chosen by narrow heads in some layers; a dense feed-forward in some,
 * of another width. */
int topt_hf_read_minimax_m3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char part[] = "sparse_attention_config";
    static const struct name names[] = {{part, "sparse_num_index_heads", "index_n_heads"},
                                        {part, "sparse_index_dim", "index_head_dim"},
                                        {part, "sparse_block_size", "index_block_size"},
                                        {part, "sparse_topk_blocks", "index_topk_blocks"},
                                        {NULL, "rotary_dim", "rope_dim"},
                                        {0}};
    static const struct hf_size sizes[] = {
        HF_SIZE("index_n_heads", index_heads, HF_MAX_HEADS),
        HF_SIZE("index_head_dim", index_dim, HF_MAX_WIDTH),
        HF_SIZE("dense_intermediate_size", inner, 4 * HF_MAX_WIDTH),
        HF_SIZE("rope_dim", rope.rope_dim, HF_MAX_WIDTH),
        {0}};
    const json_t *sparse = topt_json_member(doc, part),
                 *types = topt_json_member(doc, "layer_types");
    int64_t block = 128, blocks = 16;
    json_t *usual = renamed(doc, names, err);
    if (!usual)
        return -1;
    set_words(doc, "moe_layer_freq", "dense", "sparse", usual, "mlp_layer_types");
    if (json_object_get(usual, "mlp_layer_types"))
        json_object_del(usual, "moe_layer_freq");
    json_object_del(usual, "layer_types");
    /* its own gated unit, of the same arithmetic but for a bound */
    json_object_set_new(usual, "hidden_act", json_string("silu"));
    (void)topt_json_member(doc, "hidden_act");
    a->index_heads = 4;
    a->index_dim = 128;
    int rc =
        topt_hf_read_decoder(usual, a, err) || topt_hf_sizes_or(usual, sizes, a, err) ||
        topt_json_int_or(usual, "", "index_block_size", 1, HF_MAX_CONTEXT, &block, err) ||
        topt_json_int_or(usual, "", "index_topk_blocks", 1, HF_MAX_CONTEXT, &blocks,
                         err) ||
        topt_hf_refuse_flag(doc, "attention_output_gate", 0,
                            "gates of attention are not read", err);
    json_decref(usual);
    for (int64_t i = 0; !rc && i < a->layers; i++)
        a->layer[i] = (uint16_t)((a->layer[i] & ~(unsigned)HF_LOCAL) |
                                 (chooses(sparse, types, i) ? HF_LOCAL : 0));
    a->window = block * blocks;
    a->not_run = "the choice of keys that each query attends to";
    return rc ? -1 : 0;
}

/* ---- Step -------------------------------------------------------------------------- */

static const struct name of_step[] = {
    {NULL, "num_attention_groups", "num_key_value_heads"},
    {NULL, "moe_num_experts", "num_experts"},
    {NULL, "moe_top_k", "num_experts_per_tok"},
    {NULL, "share_expert_dim", "shared_expert_intermediate_size"},
    {NULL, "share_expert_dims", "shared_expert_intermediate_size"},
    {NULL, "norm_expert_weight", "norm_topk_prob"},
    {NULL, "moe_router_scaling_factor", "routed_scaling_factor"},
    {NULL, "max_position_embedding", "max_position_embeddings"},
    {0}};

/* Queries by way of few numbers, one key for all (StepFun, 2025). */
int topt_hf_read_step3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    json_t *usual = renamed(doc, of_step, err);
    if (!usual)
        return -1;
    int rc = set_expert_layers(doc, usual, err) || topt_hf_read_decoder(usual, a, err);
    json_decref(usual);
    a->kv_heads = 1;
    return rc ? -1
              : topt_json_int_or(doc, "", "share_q_dim", 1, HF_MAX_WIDTH, &a->query_rank,
                                 err);
}

/* What a list says by layer is said for full layers and for local ones here. */
static void of_full_layers(const json_t *doc, json_t *usual, double local[2])
{
    static const char *const lists[] = {"rope_theta", "partial_rotary_factors"};
    static const char *const names[] = {"rope_theta", "partial_rotary_factor"};
    const json_t *types = topt_json_member(doc, "layer_types");
    for (int i = 0; i < 2; i++) {
        const json_t *list = topt_json_member(doc, lists[i]);
        double full = 0;
        if (!json_is_array(list))
            continue;
        take_first(list, types, "full_attention", &full);
        take_first(list, types, "sliding_attention", &local[i]);
        json_object_set_new(usual, names[i], json_real(full));
    }
}

/* More heads in layers with a window, each head let through by a number; lists have layers
 * behind the last, too. */
int topt_hf_read_step3p5(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char other[] = "attention_other_setting";
    const json_t *local = topt_json_member(doc, other);
    const json_t *types = topt_json_member(doc, "layer_types");
    int64_t heads = 0, kv_heads = 0, n = topt_json_whole_at(doc, "num_hidden_layers");
    double of_local[2] = {0, 0};
    int gates = 0, corrected = 1;
    if (topt_hf_expect(doc, "att_impl_type", "GQA", err) ||
        topt_hf_refuse_flag(doc, "use_moe", 1, "it has no dense kind", err))
        return -1;
    json_t *usual = renamed(doc, of_step, err);
    if (!usual)
        return -1;
    int rc = set_expert_layers(doc, usual, err);
    json_object_del(usual, "use_qk_norm"); /* they are there all the same */
    (void)topt_json_member(doc, "use_qk_norm");
    of_full_layers(doc, usual, of_local);
    if (json_is_array(types)) {
        json_t *own = json_array();
        for (size_t i = 0; i < json_array_size(types) && (int64_t)i < n; i++)
            json_array_append(own, json_array_get(types, i));
        json_object_set_new(usual, "layer_types", own);
    }
    rc = rc || topt_hf_read_decoder(usual, a, err);
    json_decref(usual);
    if (rc || topt_json_bool_or(doc, "", "use_head_wise_attn_gate", &gates, err) ||
        topt_json_bool_or(doc, "", "use_moe_router_bias", &corrected, err) ||
        topt_json_int_or(local, other, "num_attention_heads", 1, HF_MAX_HEADS, &heads,
                         err) ||
        topt_json_int_or(local, other, "num_attention_groups", 1, HF_MAX_HEADS, &kv_heads,
                         err))
        return -1;
    a->corrected = corrected;
    a->head_gates = gates;
    if (of_local[0] > 0) {
        a->local_rope = (struct topt_attrs){.rope_theta = of_local[0]};
        a->local_rope.rope_dim =
            (int64_t)((of_local[1] > 0 ? of_local[1] : 1) * (double)a->head_dim);
    }
    if (gates)
        a->not_run = "gates of whole heads";
    return full_heads(heads, kv_heads, a, err);
}
