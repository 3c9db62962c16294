/* hf_read_decoder.c - the reader of decoders that differ in what a row can say.
 *
 * The row has what a family is; the config, completed by what its class takes for keys
 * that are left out, says the sizes and which of the class's flags are on.  One quantity
 * has several names among families. */
#include "hf_read_decoder.h"
#include "hf_read.h"
#include "hf_rope.h"
#include "topt_json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* A list with a number for each layer, all the same. */
static int same_of_list(const json_t *list, const char *name, int64_t min, int64_t max,
                        int64_t *ret, struct topt_error *err)
{
    const json_t *first = json_array_get(list, 0);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_integer(first) || !json_equal(first, json_array_get(list, i)))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s has numbers that differ from layer to layer, which no "
                             "reader of this family takes",
                             name);
    int64_t n = first ? json_integer_value(first) : min;
    if (n < min || n > max)
        return topt_fail(err, TOPT_ERR_INVAL, "%s[0] must be %lld..%lld", name,
                         (long long)min, (long long)max);
    *ret = n;
    return 1;
}

/* The first of the names, which ends with NULL, that has a value; 0: none has. */
static int one_of(const json_t *doc, const char *const *names, int64_t min, int64_t max,
                  int64_t *ret, struct topt_error *err)
{
    for (; *names; names++) {
        const json_t *value = topt_json_member(doc, *names);
        if (json_is_array(value))
            return same_of_list(value, *names, min, max, ret, err);
        if (value && !json_is_null(value))
            return topt_json_int(doc, "", *names, min, max, ret, err) ? -1 : 1;
    }
    return 0;
}

static int must(const json_t *doc, const char *const *names, int64_t max, int64_t *ret,
                struct topt_error *err)
{
    int found = one_of(doc, names, 1, max, ret, err);
    return found > 0   ? 0
           : found < 0 ? -1
                       : topt_fail(err, TOPT_ERR_INVAL, "%s is missing", *names);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- sizes ------------------------------------------------------------------------- */

/* A key that may hold a list with one size for each layer, and the member of the layer that takes it. */
struct each {
    const char *const *names;
    int64_t max;
    size_t whole, own;
};
#define EACH(field, max, ...)                                                            \
    {                                                                                    \
        NAMES(__VA_ARGS__), max, offsetof(struct hf_arch, field),                        \
            offsetof(struct hf_layer_sizes, field)                                       \
    }

/* The numbers of a list whose layers differ; the model's own is the first. */
static int read_list(const json_t *list, const char *name, const struct each *of,
                     struct hf_arch *a, struct topt_error *err)
{
    if ((int64_t)json_array_size(list) < a->layers)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s must have a number for each of %lld layers", name,
                         (long long)a->layers);
    for (int64_t i = 0; i < a->layers; i++) {
        const json_t *one = json_array_get(list, (size_t)i);
        int64_t n = json_is_integer(one) ? json_integer_value(one) : 0;
        if (n < 1 || n > of->max)
            return topt_fail(err, TOPT_ERR_INVAL, "%s[%lld] must be 1..%lld", name,
                             (long long)i, (long long)of->max);
        *(int32_t *)((char *)&a->sizes[i] + of->own) = (int32_t)n;
        if (i == 0)
            *(int64_t *)((char *)a + of->whole) = n;
    }
    a->sizes_differ = 1;
    return 1;
}

/* -1: an error; 0: none of its names has a value. */
static int read_each(const json_t *doc, const struct each *of, struct hf_arch *a,
                     struct topt_error *err)
{
    for (const char *const *name = of->names; *name; name++) {
        const json_t *value = topt_json_member(doc, *name);
        if (json_is_array(value) && json_array_size(value))
            return read_list(value, *name, of, a, err);
        if (value && !json_is_null(value))
            break;
    }
    return one_of(doc, of->names, 1, of->max, (int64_t *)((char *)a + of->whole), err);
}

static int check_each(const struct hf_arch *a, struct topt_error *err)
{
    for (int64_t i = 0; a->sizes_differ && i < a->layers; i++) {
        const struct hf_layer_sizes *own = &a->sizes[i];
        int64_t heads = own->heads ? own->heads : a->heads;
        int64_t kv_heads = own->kv_heads ? own->kv_heads : a->kv_heads;
        if (kv_heads && heads % kv_heads)
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "layer %lld has %lld heads, which are no multiple of its %lld "
                "key-value heads",
                (long long)i, (long long)heads, (long long)kv_heads);
    }
    return 0;
}

static int read_sizes(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const struct each heads = EACH(heads, HF_MAX_HEADS, "num_attention_heads", "n_head",
                                   "n_heads"),
                      kv_heads = EACH(kv_heads, HF_MAX_HEADS, "num_key_value_heads",
                                      "num_kv_heads", "n_head_kv"),
                      inner = EACH(inner, 4 * HF_MAX_WIDTH, "intermediate_size",
                                   "ffn_hidden_size", "ffn_dim", "n_inner");
    a->context = HF_MAX_CONTEXT;
    a->context_key = "max_position_embeddings";
    if (must(doc, NAMES("hidden_size", "n_embed", "n_embd", "d_model"), HF_MAX_WIDTH,
             &a->width, err) ||
        must(doc, NAMES("num_hidden_layers", "n_layer", "num_layers"), HF_MAX_LAYERS,
             &a->layers, err) ||
        must(doc, NAMES("vocab_size", "padded_vocab_size"), HF_MAX_VOCAB, &a->vocab, err))
        return -1;
    a->inner = 4 * a->width;
    int some = read_each(doc, &heads, a, err);
    if (some <= 0)
        return some ? -1
                    : topt_fail(err, TOPT_ERR_INVAL, "%s is missing", heads.names[0]);
    return read_each(doc, &kv_heads, a, err) < 0 || read_each(doc, &inner, a, err) < 0 ||
                   one_of(doc, NAMES("head_dim", "attention_head_dim", "kv_channels"), 1,
                          HF_MAX_WIDTH, &a->head_dim, err) < 0 ||
                   one_of(doc,
                          NAMES("max_position_embeddings", "max_seq_len", "seq_length"),
                          1, HF_MAX_CONTEXT, &a->context, err) < 0 ||
                   check_each(a, err)
               ? -1
               : 0;
}

static int read_numbers(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const eps[] = {"rms_norm_eps",       "layer_norm_eps",
                                      "layer_norm_epsilon", "layernorm_epsilon",
                                      "norm_epsilon",       "norm_eps"};
    a->eps = 1e-5;
    a->init_std = 0.02;
    for (int i = 0; i < 6; i++)
        if (topt_json_real_or(doc, "", eps[i], 1e-30, 1, &a->eps, err))
            return -1;
    return topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err);
}

/* ---- what the family is ------------------------------------------------------------ */

static int has(const struct hf_arch *a, unsigned trait)
{
    return (a->traits & trait) != 0;
}

static void take_traits(struct hf_arch *a)
{
    a->norms = has(a, HF_T_PARALLEL)   ? HF_PARALLEL
               : has(a, HF_T_AFTER)    ? HF_AFTER
               : has(a, HF_T_SANDWICH) ? HF_SANDWICH
                                       : HF_PRE;
    a->rms = has(a, HF_T_RMS);
    a->gated = has(a, HF_T_GATED);
    a->unbiased_norms = has(a, HF_T_UNBIASED);
    a->wide_gains = (a->rms && a->norms == HF_AFTER) || /* OLMo's, Cohere's */
                    (a->unbiased_norms && a->norms == HF_PARALLEL);
    a->untrained_norms = has(a, HF_T_UNTRAINED);
    a->head_norms = has(a, HF_T_HEADS);
    a->each_head_norms = has(a, HF_T_EACH_HEAD);
    a->wide_norms = has(a, HF_T_WIDE);
    a->shared_norm = has(a, HF_T_SHARED_NORM);
    a->qkv_bias = has(a, HF_T_QKV_BIAS);
    a->out_bias = has(a, HF_T_OUT_BIAS);
    a->mlp_bias = has(a, HF_T_MLP_BIAS);
    a->sinks = has(a, HF_T_SINKS);
    a->gate = has(a, HF_T_GATE);
    a->expert_bias = has(a, HF_T_EXPERT_BIAS);
    a->sigmoid = has(a, HF_T_SIGMOID) || has(a, HF_T_CORRECTED);
    a->corrected = has(a, HF_T_CORRECTED);
    a->shared_gate = has(a, HF_T_SHARED_GATE);
    a->embed_norm = has(a, HF_T_EMBED_NORM);
    a->head_bias = has(a, HF_T_HEAD_BIAS);
    a->by_distance = has(a, HF_T_ALIBI) ? 1 : 0;
}

/* Flags that only classes with that meaning have: others were dropped before. */
static int read_flags(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int attention = -1, out = -1, all = -1, qkv = -1, norms = -1, parallel = -1;
    int normed = a->head_norms || a->each_head_norms || a->wide_norms;
    if (topt_json_bool_or(doc, "", "attention_bias", &attention, err) ||
        topt_json_bool_or(doc, "", "attention_out_bias", &out, err) ||
        topt_json_bool_or(doc, "", "use_qkv_bias", &qkv, err) ||
        topt_json_bool_or(doc, "", "use_bias", &all, err) ||
        topt_json_bool_or(doc, "", "bias", &all, err) ||
        topt_json_bool_or(doc, "", "mlp_bias", &a->mlp_bias, err) ||
        (normed && (topt_json_bool_or(doc, "", "use_qk_norm", &norms, err) ||
                    topt_json_bool_or(doc, "", "qk_norm", &norms, err) ||
                    topt_json_bool_or(doc, "", "qk_layernorm", &norms, err))) ||
        topt_json_bool_or(doc, "", "use_parallel_residual", &parallel, err) ||
        topt_json_bool_or(doc, "", "lm_head_bias", &a->head_bias, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err))
        return -1;
    if (all >= 0)
        a->qkv_bias = a->out_bias = a->mlp_bias = all;
    if (attention >= 0) {
        a->qkv_bias = attention;
        a->out_bias = has(a, HF_T_BIAS_OF_QKV) ? 0 : attention;
    }
    a->qkv_bias = qkv >= 0 ? qkv : a->qkv_bias;
    a->out_bias = out >= 0 ? out : a->out_bias;
    if (norms == 0)
        a->head_norms = a->each_head_norms = a->wide_norms = 0;
    if (parallel == 1) {
        a->norms = HF_PARALLEL;
        a->shared_norm = 1;
    }
    return 0;
}

static int read_activation(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const keys[] = {"hidden_act", "activation_function", "activation",
                                       "mlp_hidden_act", "hidden_activation"};
    a->activation = TOPT_ACT_SILU;
    for (int i = 0; i < 5; i++) {
        const char *name = NULL;
        if (topt_json_string_or(doc, "", keys[i], &name, err) ||
            (name && topt_hf_activation_of(keys[i], name, a, err)))
            return -1;
    }
    return 0;
}

/* ---- factors ----------------------------------------------------------------------- */

/* MiniCPM's: of embeddings, by depth, and by the width over that of a small model. */
static int read_scales(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    double depth = 0, base = 0;
    if (topt_json_real_or(doc, "", "scale_emb", 1e-9, 1e9, &a->embed_factor, err) ||
        topt_json_real_or(doc, "", "scale_depth", 1e-9, 1e9, &depth, err) ||
        topt_json_real_or(doc, "", "dim_model_base", 1, 1e9, &base, err))
        return -1;
    if (depth > 0)
        a->residual_factor = depth / sqrt((double)a->layers);
    if (base > 0)
        a->head_factor = base / (double)a->width;
    return 0;
}

static int read_factors(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    double scaling = 0;
    if (has(a, HF_T_ROOT_WIDTH))
        a->embed_factor = sqrt((double)a->width);
    if (topt_json_real_or(doc, "", "embedding_multiplier", 1e-9, 1e9, &a->embed_factor,
                          err) ||
        topt_json_real_or(doc, "", "residual_multiplier", 1e-9, 1e9, &a->residual_factor,
                          err) ||
        topt_json_real_or(doc, "", "attention_multiplier", 1e-9, 1e9, &a->score_factor,
                          err) ||
        topt_json_real_or(doc, "", "logits_scaling", 1e-9, 1e9, &scaling, err) ||
        topt_json_real_or(doc, "", "logit_scale", 1e-9, 1e9, &a->head_factor, err) ||
        topt_json_real_or(doc, "", "final_logit_softcapping", 1e-3, 1e9, &a->logit_cap,
                          err))
        return -1;
    if (read_scales(doc, a, err))
        return -1;
    a->head_factor = scaling > 0 ? 1 / scaling : a->head_factor;
    a->embed_factor = a->embed_factor < 1 || a->embed_factor > 1 ? a->embed_factor : 0;
    a->head_factor = a->head_factor < 1 || a->head_factor > 1 ? a->head_factor : 0;
    a->residual_factor =
        a->residual_factor < 1 || a->residual_factor > 1 ? a->residual_factor : 0;
    return 0;
}

/* ---- layers ------------------------------------------------------------------------ */

/* "LLLG": so many layers with a window and one that sees all, over and over. */
static int read_letters(const char *letters, struct hf_arch *a, struct topt_error *err)
{
    size_t n = strlen(letters);
    if (!n || strspn(letters, "LG") != n)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "sliding_window_pattern is \"%.20s\", not of L and G alone",
                         letters);
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= letters[(size_t)i % n] == 'L' ? HF_LOCAL : 0;
    return 0;
}

/* Windows where a flag does not switch them off: of the layers that are listed, of all
 * but every so-and-so-many-th, or of all. */
static int read_windows(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const char *letters =
        json_string_value(topt_json_member(doc, "sliding_window_pattern"));
    int on = 1;
    int64_t every = a->full_every, first = 0;
    if (letters && !json_is_array(topt_json_member(doc, "layer_types")))
        return topt_hf_window(doc, a, err) || read_letters(letters, a, err) ? -1 : 0;
    if (topt_json_bool_or(doc, "", "use_sliding_window", &on, err) ||
        one_of(doc,
               letters ? NAMES("global_attn_every_n_layers")
                       : NAMES("sliding_window_pattern", "_sliding_window_pattern",
                               "global_attn_every_n_layers"),
               1, HF_MAX_LAYERS, &every, err) < 0 ||
        topt_json_int_or(doc, "", "max_window_layers", 0, INT64_MAX, &first, err))
        return -1;
    if (!on) { /* and what it says of one has no effect */
        (void)topt_json_member(doc, "sliding_window");
        return 0;
    }
    return topt_hf_window(doc, a, err) || topt_hf_local_layers(doc, first, every, a, err)
               ? -1
               : 0;
}

/* ---- experts ----------------------------------------------------------------------- */

/* Dense are the first layers, those that are listed, and all but every
 * so-and-so-many-th. */
static int read_dense(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *types = topt_json_member(doc, "mlp_layer_types");
    const json_t *listed = topt_json_member(doc, "mlp_only_layers");
    const json_t *flags = topt_json_member(doc, "is_moe_layer");
    int64_t first = has(a, HF_T_FIRST_DENSE), every = 1, last = a->layers - 1;
    if (one_of(
            doc,
            NAMES("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index"),
            0, HF_MAX_LAYERS, &first, err) < 0 ||
        one_of(doc, NAMES("decoder_sparse_step", "moe_layer_freq", "moe_layer_interval"),
               1, HF_MAX_LAYERS, &every, err) < 0 ||
        one_of(doc, NAMES("moe_layer_end_index"), -1, HF_MAX_LAYERS, &last, err) < 0)
        return -1;
    last = last < 0 ? a->layers - 1 : last;
    for (int64_t i = 0; i < a->layers; i++) {
        const char *type = json_string_value(json_array_get(types, (size_t)i));
        const json_t *flag = json_array_get(flags, (size_t)i);
        int dense = type   ? !strcmp(type, "dense")
                    : flag ? !json_is_true(flag)
                           : i < first || i > last || (i + 1) % every;
        a->layer[i] |= dense ? HF_DENSE : 0;
    }
    for (size_t k = 0; k < json_array_size(listed); k++) {
        int64_t i = json_integer_value(json_array_get(listed, k));
        if (i >= 0 && i < a->layers)
            a->layer[i] |= HF_DENSE;
    }
    return 0;
}

/* Experts that all tokens take: so many of an expert's width, or of a width said. */
static int read_shared(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t n = 0, width = 0;
    if (one_of(doc,
               NAMES("n_shared_experts", "num_shared_experts", "moe_num_shared_experts",
                     "num_shared_expert"),
               0, 1024, &n, err) < 0 ||
        one_of(doc,
               NAMES("shared_expert_intermediate_size", "shared_intermediate_size",
                     "moe_shared_expert_intermediate_size"),
               0, 4 * HF_MAX_WIDTH, &width, err) < 0)
        return -1;
    a->shared_inner = width                       ? width
                      : has(a, HF_T_DENSE_BESIDE) ? a->inner * (n ? n : 1)
                                                  : n * a->expert_inner;
    return 0;
}

static int read_route(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int normalized = 1;
    if (one_of(doc, NAMES("n_group"), 1, HF_MAX_EXPERTS, &a->groups, err) < 0 ||
        one_of(doc, NAMES("topk_group"), 1, HF_MAX_EXPERTS, &a->top_groups, err) < 0 ||
        topt_json_bool_or(doc, "", "norm_topk_prob", &normalized, err) ||
        topt_json_real_or(doc, "", "routed_scaling_factor", 1e-6, 1e6, &a->route_factor,
                          err) ||
        topt_json_real_or(doc, "", "router_scaling_factor", 1e-6, 1e6, &a->route_factor,
                          err) ||
        topt_json_real_or(doc, "", "route_scale", 1e-6, 1e6, &a->route_factor, err))
        return -1;
    a->unnormalized = !normalized;
    if (a->corrected)
        topt_hf_note(a, "the router's bias correction is not updated");
    return 0;
}

static int read_experts(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int some = one_of(
        doc,
        NAMES("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
        0, HF_MAX_EXPERTS, &a->experts, err);
    if (some < 0)
        return -1;
    if (!a->experts || (a->experts == 1 && !has(a, HF_T_ALL_EXPERTS))) {
        a->experts = 0;
        return 0;
    }
    a->expert_inner = a->inner;
    a->top_k = 2;
    if (one_of(doc, NAMES("num_experts_per_tok", "moe_topk", "moe_k", "top_k_experts"), 1,
               HF_MAX_EXPERTS, &a->top_k, err) < 0 ||
        (!has(a, HF_T_ALL_EXPERTS) &&
         one_of(doc, NAMES("moe_intermediate_size"), 1, 4 * HF_MAX_WIDTH,
                &a->expert_inner, err) < 0))
        return -1;
    topt_hf_give_slots(a);
    if (one_of(doc, NAMES("moe_latent_size"), 1, HF_MAX_WIDTH, &a->latent_experts, err) <
        0)
        return -1;
    return read_dense(doc, a, err) || read_shared(doc, a, err) || read_route(doc, a, err)
               ? -1
               : 0;
}

/* ---- the whole --------------------------------------------------------------------- */

static int read_positions(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (has(a, HF_T_POSITIONS))
        a->positions = a->context;
    if (has(a, HF_T_POSITIONS) || has(a, HF_T_ALIBI) || has(a, HF_T_UNTURNED))
        return 0;
    return topt_hf_rope(doc, "partial_rotary_factor",
                        a->rope_share > 0 ? a->rope_share : 1, a, err) ||
                   topt_hf_unturned(doc, 0, a, err)
               ? -1
               : 0;
}

int topt_hf_read_decoder(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    take_traits(a);
    if (read_sizes(doc, a, err))
        return -1;
    if (has(a, HF_T_ONE_KEY))
        a->kv_heads = 1;
    return topt_hf_set_heads(a, err) || read_numbers(doc, a, err) ||
                   read_flags(doc, a, err) || read_activation(doc, a, err) ||
                   read_factors(doc, a, err) || read_positions(doc, a, err) ||
                   read_windows(doc, a, err) || read_experts(doc, a, err)
               ? -1
               : 0;
}

/* ---- families with details of their own -------------------------------------------- */

/* Of one key for all queries or not, with one norm for both halves or two, or serial. */
int topt_hf_read_falcon(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int grouped = 0, one = 1, parallel = 1, alibi = 0;
    int64_t norms = 0;
    if (topt_json_bool_or(doc, "", "new_decoder_architecture", &grouped, err) ||
        topt_json_bool_or(doc, "", "multi_query", &one, err) ||
        topt_json_bool_or(doc, "", "parallel_attn", &parallel, err) ||
        topt_json_bool_or(doc, "", "alibi", &alibi, err) ||
        topt_json_int_or(doc, "", "num_ln_in_parallel_attn", 1, 2, &norms, err))
        return -1;
    norms = norms ? norms : grouped ? 2 : 1;
    a->traits |= alibi ? HF_T_ALIBI : 0;
    a->traits |= parallel || grouped ? HF_T_PARALLEL : 0;
    a->traits |= norms == 1 ? HF_T_SHARED_NORM : 0;
    a->traits |= !grouped && one ? HF_T_ONE_KEY : 0;
    if (topt_hf_read_decoder(doc, a, err))
        return -1;
    a->by_distance = alibi ? 1 / sqrt((double)a->head_dim) : 0;
    if (!grouped && !one)
        a->kv_heads = a->heads;
    return 0;
}

/* The class has an activation of its own: GELU by its approximation with tanh. */
int topt_hf_read_bloom(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int after = 0;
    if (topt_hf_read_decoder(doc, a, err) ||
        topt_json_bool_or(doc, "", "apply_residual_connection_post_layernorm", &after,
                          err))
        return -1;
    a->activation = TOPT_ACT_GELU;
    a->written_scores = 1;
    if (after)
        a->not_run = "sums with what norms give";
    return 0;
}

int topt_hf_read_mpt(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t times = 4;
    if (topt_json_int_or(doc, "", "expansion_ratio", 1, 64, &times, err) ||
        topt_hf_read_decoder(doc, a, err))
        return -1;
    a->inner = times * a->width;
    a->activation = TOPT_ACT_GELU_ERF;
    a->written_scores = 1;
    return topt_hf_refuse_flag(doc, "no_bias", 1, "transformers reads none of its biases",
                               err);
}

/* "attention_types": runs of kinds of layers, each so many times. */
static void read_runs(const json_t *runs, struct hf_arch *a)
{
    int64_t layer = 0;
    for (size_t r = 0; r < json_array_size(runs); r++) {
        const json_t *kinds = json_array_get(json_array_get(runs, r), 0);
        int64_t n = json_integer_value(json_array_get(json_array_get(runs, r), 1));
        for (int64_t i = 0; i < n; i++)
            for (size_t k = 0; k < json_array_size(kinds) && layer < a->layers; k++) {
                const char *kind = json_string_value(json_array_get(kinds, k));
                a->layer[layer++] |= kind && !strcmp(kind, "local") ? HF_LOCAL : 0;
            }
    }
}

/* Scores are not divided; every second layer sees a window. */
int topt_hf_read_gpt_neo(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *runs = topt_json_member(doc, "attention_types");
    if (topt_hf_read_decoder(doc, a, err))
        return -1;
    memset(a->layer, 0, sizeof a->layer);
    a->score_factor = 1;
    a->window = 256;
    if (json_is_array(runs))
        read_runs(runs, a);
    else
        for (int64_t i = 1; i < a->layers; i += 2)
            a->layer[i] |= HF_LOCAL;
    return topt_json_int_or(doc, "", "window_size", 1, HF_MAX_CONTEXT, &a->window, err);
}

int topt_hf_read_gpt_bigcode(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int one = 1;
    if (topt_json_bool_or(doc, "", "multi_query", &one, err))
        return -1;
    a->traits |= one ? HF_T_ONE_KEY : 0;
    return topt_hf_read_decoder(doc, a, err);
}

/* ---- families that come with code of their own ------------------------------------- */

/* Groups of queries where a flag says so; half of each head is turned. */
int topt_hf_read_chatglm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int grouped = 0, bias = 0, all = 0;
    int64_t groups = 0;
    a->rope_share = 0.5;
    if (topt_json_bool_or(doc, "", "multi_query_attention", &grouped, err) ||
        topt_json_bool_or(doc, "", "add_qkv_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "add_bias_linear", &all, err) ||
        topt_json_int_or(doc, "", "multi_query_group_num", 1, HF_MAX_HEADS, &groups,
                         err) ||
        topt_hf_read_decoder(doc, a, err))
        return -1;
    a->kv_heads = grouped && groups ? groups : a->heads;
    a->qkv_bias = bias || all;
    a->out_bias = a->mlp_bias = all;
    return topt_hf_set_heads(a, err);
}

/* The width inside is that of gate and up together. */
int topt_hf_read_qwen(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_decoder(doc, a, err))
        return -1;
    a->inner /= 2;
    return 0;
}

/* What it says of attention and of experts is nested. */
int topt_hf_read_dbrx(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct {
        const char *within, *key, *usual;
        json_int_t otherwise;
    } names[] = {{"attn_config", "kv_n_heads", "num_key_value_heads", 1},
                 {"attn_config", "rope_theta", "rope_theta", 10000},
                 {"ffn_config", "ffn_hidden_size", "intermediate_size", 3584},
                 {"ffn_config", "moe_num_experts", "num_local_experts", 4},
                 {"ffn_config", "moe_top_k", "num_experts_per_tok", 1}};
    json_t *flat = json_copy((json_t *)doc);
    int rc = flat ? 0 : topt_nomem(err, "a config");
    for (size_t i = 0; flat && i < sizeof names / sizeof *names; i++) {
        json_t *value =
            topt_json_member(topt_json_member(doc, names[i].within), names[i].key);
        if (value)
            json_object_set(flat, names[i].usual, value);
        else
            json_object_set_new(flat, names[i].usual, json_integer(names[i].otherwise));
    }
    rc = rc ? rc : topt_hf_read_decoder(flat, a, err);
    json_decref(flat);
    return rc;
}

/* Norms of what is added, too, unless that is switched off. */
int topt_hf_read_hyperclovax(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int after = 1;
    if (topt_json_bool_or(doc, "", "use_post_norm", &after, err))
        return -1;
    a->traits |= after ? HF_T_SANDWICH : 0;
    return topt_hf_read_decoder(doc, a, err);
}

/* Attention's output times a number of each head. */
int topt_hf_read_laguna(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t each = 0;
    if (topt_hf_read_decoder(doc, a, err) ||
        one_of(doc, NAMES("num_attention_heads_per_layer"), 1, HF_MAX_HEADS, &each, err) <
            0)
        return -1;
    if (each && each != a->heads)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "num_attention_heads_per_layer is %lld and num_attention_heads "
                         "%lld: they do not go together",
                         (long long)each, (long long)a->heads);
    a->layer_unused = a->heads * a->width;
    a->not_run = "gates of whole heads";
    return 0;
}

/* Differences of two softmaxes, by numbers that are trained (Ye et al., 2024). */
int topt_hf_read_diffllama(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { VECTORS = 4 };
    if (topt_hf_read_decoder(doc, a, err))
        return -1;
    a->layer_unused = VECTORS * a->head_dim;
    a->not_run = "differences of two softmaxes";
    return 0;
}

/* Norms before the last map of each half, too. */
int topt_hf_read_bitnet(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_decoder(doc, a, err))
        return -1;
    a->inner_norms = 1;
    return 0;
}
