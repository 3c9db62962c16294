/* hf_read_hybrid.c - readers of decoders in which some layers, or all, have no
 * attention.
 *
 * What the layers are is read first; the reader of plain decoders then gets a config
 * without that list, whose words it does not know. */
#include "hf_read_hybrid.h"
#include "hf_read.h"
#include "hf_read_decoder.h"
#include "topt_json.h"

#include <math.h>
#include <string.h>

/* What a layer is called, and what it is. */
static const struct {
    const char *name;
    unsigned is;
} kinds[] = {{"full_attention", 0},
             {"attention", 0},
             {"sliding_attention", HF_LOCAL},
             {"linear_attention", HF_MIXED},
             {"mamba", HF_MIXED},
             {"mamba2", HF_MIXED},
             {"conv", HF_MIXED},
             {"hybrid", HF_BOTH},
             {NULL, 0}};

static int read_list(const json_t *list, const char *key, struct hf_arch *a,
                     struct topt_error *err)
{
    if (json_array_size(list) != (size_t)a->layers)
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be an array of %lld names", key,
                         (long long)a->layers);
    for (int64_t i = 0; i < a->layers; i++) {
        const char *name = json_string_value(json_array_get(list, (size_t)i));
        int k = 0;
        while (kinds[k].name && (!name || strcmp(kinds[k].name, name)))
            k++;
        if (!kinds[k].name)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s[%lld] is \"%.40s\", which is no kind of layer that is "
                             "known",
                             key, (long long)i, name ? name : "no string");
        a->layer[i] |= (uint16_t)kinds[k].is;
    }
    return 0;
}

/* The list under one of its names; 0 where there is none. */
static int read_kinds(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const keys[] = {"layer_types", "layers_block_type", NULL};
    for (int i = 0; keys[i]; i++) {
        const json_t *list = topt_json_member(doc, keys[i]);
        if (json_is_array(list))
            return read_list(list, keys[i], a, err) ? -1 : 1;
    }
    return 0;
}

/* All that is not of layers' kinds. */
static int read_rest(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    json_t *plain = json_copy((json_t *)doc);
    uint16_t layer[HF_MAX_LAYERS];
    int rc = -1;
    if (!plain)
        return topt_nomem(err, "a config");
    memcpy(layer, a->layer, sizeof layer);
    json_object_del(plain, "layer_types");
    json_object_del(plain, "sliding_window");
    if (!topt_hf_read_decoder(plain, a, err))
        rc = 0;
    for (int i = 0; i < HF_MAX_LAYERS; i++)
        a->layer[i] = (uint16_t)((a->layer[i] & ~(unsigned)HF_LOCAL) | layer[i]);
    json_decref(plain);
    return rc;
}

static int count_layers(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return topt_json_int(doc, "", "num_hidden_layers", 1, HF_MAX_LAYERS, &a->layers, err);
}

/* Whole numbers of mixers; 'fallback' where the key is not there. */
static int number(const json_t *doc, const char *key, int64_t min, int64_t *ret,
                  struct topt_error *err)
{
    return topt_json_int_or(doc, "", key, min, 4 * HF_MAX_WIDTH, ret, err);
}

/* ---- Mamba ------------------------------------------------------------------------- */

static int read_flags(const json_t *doc, const char *bias, const char *kernel_bias,
                      struct hf_mixer *m, struct topt_error *err)
{
    if (topt_json_bool_or(doc, "", bias, &m->bias, err) ||
        topt_json_bool_or(doc, "", kernel_bias, &m->kernel_bias, err))
        return -1;
    m->out_bias = m->bias;
    return 0;
}

/* What steps are kept between: [least, most], the latter perhaps infinite. */
static int read_steps(const json_t *doc, struct hf_mixer *m, struct topt_error *err)
{
    enum { BEYOND = 1000000 }; /* no step is as long */
    const json_t *limit = topt_json_member(doc, "time_step_limit");
    const json_t *least = json_array_get(limit, 0), *most = json_array_get(limit, 1);
    m->least_step = json_is_number(least) ? json_number_value(least) : 0;
    m->most_step = json_is_number(most) ? json_number_value(most) : 0;
    m->most_step = m->most_step < BEYOND ? m->most_step : 0;
    return m->least_step >= 0 && (m->most_step == 0 || m->most_step >= m->least_step)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "time_step_limit must be two numbers, the larger one last");
}

/* Nothing but mixers: no heads, no feed-forward. */
static int read_only_mixers(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size must[] = {
        HF_SIZE("hidden_size", width, HF_MAX_WIDTH),
        HF_SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        {0}};
    a->rms = 1;
    a->heads = a->kv_heads = a->head_dim = a->inner = 1;
    a->context = HF_MAX_CONTEXT;
    a->context_key = "length";
    a->eps = 1e-5;
    a->init_std = 0.1;
    if (topt_hf_sizes(doc, must, a, err) ||
        topt_json_real_or(doc, "", "layer_norm_epsilon", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] = HF_MIXED | HF_NO_MLP;
    return 0;
}

/* A number, or "auto". */
static int number_or_auto(const json_t *doc, const char *key, int64_t usual, int64_t *ret,
                          struct topt_error *err)
{
    *ret = usual;
    return json_is_string(topt_json_member(doc, key)) ? 0 : number(doc, key, 1, ret, err);
}

static int read_mamba1(const json_t *doc, int64_t width, struct hf_mixer *m,
                       struct topt_error *err)
{
    enum { CHUNK = 256 };
    int64_t expand = 2;
    *m = (struct hf_mixer){.kind = HF_MAMBA,
                           .kernel = 4,
                           .chunk = CHUNK,
                           .head_dim = 1,
                           .groups = 1,
                           .state = 16,
                           .kernel_bias = 1};
    if (number(doc, "expand", 1, &expand, err) ||
        number(doc, "mamba_expand", 1, &expand, err) ||
        number(doc, "state_size", 1, &m->state, err) ||
        number(doc, "mamba_d_state", 1, &m->state, err) ||
        number(doc, "conv_kernel", 1, &m->kernel, err) ||
        number(doc, "mamba_d_conv", 1, &m->kernel, err) ||
        number_or_auto(doc, "time_step_rank", (width + 15) / 16, &m->rank, err))
        return -1;
    m->heads = expand * width;
    return 0;
}

int topt_hf_read_mamba(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (read_only_mixers(doc, a, err) || read_mamba1(doc, a->width, &a->mixer, err) ||
        number(doc, "intermediate_size", 1, &a->mixer.heads, err))
        return -1;
    return read_flags(doc, "use_bias", "use_conv_bias", &a->mixer, err);
}

/* Steps, keys and queries have norms with nothing trained. */
int topt_hf_read_falcon_mamba(const json_t *doc, struct hf_arch *a,
                              struct topt_error *err)
{
    if (topt_hf_read_mamba(doc, a, err))
        return -1;
    a->mixer.norm = a->mixer.plain_norms = 1;
    a->mixer.eps = 1e-6;
    return topt_json_real_or(doc, "", "mixer_rms_eps", 1e-30, 1, &a->mixer.eps, err);
}

/* Configs of flash-linear-attention have no number of heads: it follows from the width. */
static int check_heads(const json_t *doc, int64_t width, struct hf_mixer *m,
                       struct topt_error *err)
{
    enum { OF_CLASS = 128 };
    double expand = 2;
    if (topt_json_real_or(doc, "", "expand", 1e-3, 64, &expand, err))
        return -1;
    int64_t inner = (int64_t)(expand * (double)width);
    if (m->heads * m->head_dim != inner && m->heads == OF_CLASS)
        m->heads = inner / m->head_dim;
    return m->heads * m->head_dim == inner
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "num_heads %lld of head_dim %lld are not expand times "
                           "hidden_size, %lld",
                           (long long)m->heads, (long long)m->head_dim, (long long)inner);
}

int topt_hf_read_mamba2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    struct hf_mixer *m = &a->mixer;
    *m = (struct hf_mixer){.kind = HF_MAMBA2,
                           .kernel = 4,
                           .chunk = 256,
                           .heads = 128,
                           .head_dim = 64,
                           .groups = 8,
                           .state = 128,
                           .kernel_bias = 1,
                           .norm = 1};
    if (read_only_mixers(doc, a, err) || number(doc, "num_heads", 1, &m->heads, err) ||
        number(doc, "head_dim", 1, &m->head_dim, err) ||
        number(doc, "state_size", 1, &m->state, err) ||
        number(doc, "n_groups", 1, &m->groups, err) ||
        number(doc, "conv_kernel", 1, &m->kernel, err) ||
        number(doc, "chunk_size", 1, &m->chunk, err) ||
        topt_json_bool_or(doc, "", "rms_norm", &m->norm, err) ||
        check_heads(doc, a->width, m, err) || read_steps(doc, m, err))
        return -1;
    return read_flags(doc, "use_bias", "use_conv_bias", m, err);
}

/* ---- Zamba2 ------------------------------------------------------------------------- */

/* Mamba-2 in all layers, and before some of them a block that several of these share. */
int topt_hf_read_zamba2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const same[] = {"attention_hidden_size", "attention_head_dim",
                                       "hybrid_layer_ids",      "mamba_headdim",
                                       "use_conv_bias",         NULL};
    struct hf_mixer *m = &a->mixer;
    int64_t expand = 2;
    int turned = 0;
    if (read_only_mixers(doc, a, err))
        return -1;
    memset(a->layer, 0, sizeof a->layer);
    int listed = read_kinds(doc, a, err);
    if (listed <= 0)
        return listed ? -1
                      : topt_fail(err, TOPT_ERR_INVAL, "layers_block_type is missing");
    *m = (struct hf_mixer){.kind = HF_MAMBA2,
                           .kernel = 4,
                           .chunk = 256,
                           .heads = 8,
                           .groups = 1,
                           .state = 64,
                           .kernel_bias = 1,
                           .norm = 1};
    a->heads = 32;
    a->inner = 4 * a->width;
    a->shared_blocks = 1;
    a->own_rank = 128;
    a->gated = 1;
    a->activation = TOPT_ACT_GELU_ERF;
    a->rope = (struct topt_attrs){.rope_theta = 10000};
    if (number(doc, "num_attention_heads", 1, &a->heads, err))
        return -1;
    a->kv_heads = a->heads;
    if (number(doc, "num_key_value_heads", 1, &a->kv_heads, err) ||
        number(doc, "intermediate_size", 1, &a->inner, err) ||
        number(doc, "num_mem_blocks", 1, &a->shared_blocks, err) ||
        number(doc, "adapter_rank", 1, &a->own_rank, err) ||
        topt_json_int_or(doc, "", "max_position_embeddings", 1, HF_MAX_CONTEXT,
                         &a->context, err) ||
        number(doc, "mamba_expand", 1, &expand, err) ||
        number(doc, "mamba_d_state", 1, &m->state, err) ||
        number(doc, "mamba_d_conv", 1, &m->kernel, err) ||
        number(doc, "mamba_ngroups", 1, &m->groups, err) ||
        number(doc, "n_mamba_heads", 1, &m->heads, err) ||
        number(doc, "chunk_size", 1, &m->chunk, err) ||
        topt_hf_divides("mamba_expand times hidden_size", expand * a->width,
                        "n_mamba_heads", m->heads, err) ||
        topt_hf_divides("twice hidden_size", 2 * a->width, "num_attention_heads",
                        a->heads, err) ||
        topt_hf_divides("num_attention_heads", a->heads, "num_key_value_heads",
                        a->kv_heads, err) ||
        topt_hf_divides("n_mamba_heads", m->heads, "mamba_ngroups", m->groups, err) ||
        topt_json_bool_or(doc, "", "use_shared_attention_adapter", &a->own_queries,
                          err) ||
        topt_json_bool_or(doc, "", "use_mem_rope", &turned, err) ||
        topt_json_real_or(doc, "", "rope_theta", 1, 1e15, &a->rope.rope_theta, err) ||
        topt_json_real_or(doc, "", "rms_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_hf_refuse_flag(doc, "add_bias_linear", 0, "maps with biases are not read",
                            err) ||
        topt_hf_activation(doc, "hidden_act", &a->activation, err))
        return -1;
    m->head_dim = expand * a->width / m->heads;
    m->norm_groups = m->groups;
    a->head_dim = 2 * a->width / a->heads;
    a->rope.rope_dim = a->head_dim;
    a->rope.rope_theta = turned ? a->rope.rope_theta : 0;
    for (int i = 0; same[i]; i++)
        (void)topt_json_member(doc, same[i]);
    a->context_key = "max_position_embeddings";
    a->not_run = "blocks that layers take by turns";
    /* scores over the root of half a head's width */
    a->score_factor = sqrt(2) / sqrt((double)a->head_dim);
    return 0;
}

/* ---- RWKV --------------------------------------------------------------------------- */

/* Blocks of a recurrence and a feed-forward by squares, with norms by mean and deviation;
 * 'shifts' numbers of each feature mix a position with the one before. */
static int read_like_rwkv(const json_t *doc, int64_t shifts, struct hf_arch *a,
                          struct topt_error *err)
{
    if (read_only_mixers(doc, a, err))
        return -1;
    a->rms = 0;
    a->embed_norm = 1;
    a->inner = 4 * a->width;
    a->activation = TOPT_ACT_RELU2;
    a->layer_unused = shifts * a->width;
    a->usual_seq = 0;
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] = HF_MIXED;
    return number(doc, "intermediate_size", 1, &a->inner, err);
}

int topt_hf_read_rwkv(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { SHIFTS = 5 };
    int64_t inside = 0;
    if (read_like_rwkv(doc, SHIFTS, a, err))
        return -1;
    inside = a->width;
    if (number(doc, "attention_hidden_size", 1, &inside, err))
        return -1;
    a->mlp_gate = 1;
    a->mixer = (struct hf_mixer){
        .kind = HF_RWKV4, .heads = inside, .head_dim = 1, .state = 1, .chunk = 1};
    return number(doc, "context_length", 1, &a->context, err);
}

int topt_hf_read_rwkv7(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const ranks[] = {"decay_low_rank_dim", "a_low_rank_dim",
                                        "v_low_rank_dim", "gate_low_rank_dim"};
    enum { SHIFTS = 7, CHUNK = 64 };
    const char *name = NULL;
    struct hf_mixer *m = &a->mixer;
    double ratio = 4;
    if (read_like_rwkv(doc, SHIFTS, a, err) ||
        topt_json_real_or(doc, "", "hidden_ratio", 0.1, 64, &ratio, err) ||
        topt_json_real_or(doc, "", "norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_string_or(doc, "", "hidden_act", &name, err) ||
        topt_hf_refuse_flag(doc, "norm_bias", 1, "no reader takes norms without a bias",
                            err) ||
        topt_hf_refuse_flag(doc, "norm_first", 1,
                            "no reader takes embeddings without a norm", err))
        return -1;
    if (json_is_object(topt_json_member(doc, "attn")))
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "attn is set: layers with attention among those of RWKV are not read");
    *m = (struct hf_mixer){
        .kind = HF_RWKV7, .head_dim = 64, .chunk = CHUNK, .ranks = {64, 64, 16, 128}};
    for (int i = 0; i < 4; i++)
        if (number(doc, ranks[i], 1, &m->ranks[i], err))
            return -1;
    if (number(doc, "head_dim", 1, &m->head_dim, err) ||
        topt_hf_divides("hidden_size", a->width, "head_dim", m->head_dim, err))
        return -1;
    if (!json_is_integer(topt_json_member(doc, "intermediate_size")))
        a->inner = (int64_t)(ratio * (double)a->width + 31) / 32 * 32;
    m->heads = a->width / m->head_dim;
    m->state = m->head_dim;
    return 0;
}

/* Keys that Bamba, Falcon-H1 and Granite share. */
static int read_mamba_keys(const json_t *doc, int64_t width, struct hf_mixer *m,
                           struct topt_error *err)
{
    int64_t expand = 2, inner = 0;
    *m = (struct hf_mixer){.kind = HF_MAMBA2,
                           .kernel = 4,
                           .chunk = 256,
                           .heads = 128,
                           .groups = 1,
                           .state = 256,
                           .kernel_bias = 1,
                           .norm = 1};
    if (number(doc, "mamba_expand", 1, &expand, err) ||
        number(doc, "mamba_d_ssm", 1, &inner, err) ||
        number(doc, "mamba_n_heads", 1, &m->heads, err) ||
        number(doc, "mamba_n_groups", 1, &m->groups, err) ||
        number(doc, "mamba_d_state", 1, &m->state, err) ||
        number(doc, "mamba_d_conv", 1, &m->kernel, err) ||
        number(doc, "mamba_chunk_size", 1, &m->chunk, err) ||
        topt_json_bool_or(doc, "", "mamba_rms_norm", &m->norm, err) ||
        read_steps(doc, m, err))
        return -1;
    inner = inner ? inner : expand * width;
    if (number_or_auto(doc, "mamba_d_head", inner / m->heads, &m->head_dim, err) ||
        read_flags(doc, "mamba_proj_bias", "mamba_conv_bias", m, err))
        return -1;
    return m->head_dim * m->heads == inner
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "mamba_n_heads %lld of mamba_d_head %lld are not the %lld "
                           "numbers inside a mixer",
                           (long long)m->heads, (long long)m->head_dim, (long long)inner);
}

/* Bamba lists the layers that have attention. */
static void read_attention_layers(const json_t *doc, struct hf_arch *a)
{
    const json_t *list = topt_json_member(doc, "attn_layer_indices");
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= HF_MIXED;
    for (size_t k = 0; k < json_array_size(list); k++) {
        int64_t i = json_integer_value(json_array_get(list, k));
        if (i >= 0 && i < a->layers)
            a->layer[i] &= (uint16_t)~HF_MIXED;
    }
}

int topt_hf_read_hybrid_mamba2(const json_t *doc, struct hf_arch *a,
                               struct topt_error *err)
{
    const char *positions = "nope";
    int listed = count_layers(doc, a, err) ? -1 : read_kinds(doc, a, err);
    if (listed < 0)
        return -1;
    if (!listed)
        read_attention_layers(doc, a);
    if (topt_json_string_or(doc, "", "position_embedding_type", &positions, err))
        return -1;
    if (a->traits & HF_T_ALL_EXPERTS && strcmp(positions, "rope"))
        a->traits |= HF_T_UNTURNED;
    if (read_rest(doc, a, err) || read_mamba_keys(doc, a->width, &a->mixer, err))
        return -1;
    /* without experts the feed-forward for all tokens is all there is */
    return a->traits & HF_T_ALL_EXPERTS && !a->experts
               ? number(doc, "shared_intermediate_size", 1, &a->inner, err)
               : 0;
}

/* Attention and a mixer side by side in each layer. */
int topt_hf_read_falcon_h1(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_decoder(doc, a, err) ||
        read_mamba_keys(doc, a->width, &a->mixer, err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= HF_BOTH;
    a->not_run = "factors of what mixers and attention read and give";
    return topt_json_bool_or(doc, "", "projectors_bias", &a->mixer.out_bias, err);
}

/* ---- PLaMo 2 ------------------------------------------------------------------------ */

/* Attention in the middle of each so many layers, Mamba-2 in the others; norms before and after
 * each half, and queries and keys of each head with gains of its own. */
int topt_hf_read_plamo2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { LEAST_RANK = 64, RANK_SHARE = 16 };
    struct hf_mixer *m = &a->mixer;
    int64_t step = 2, each = 128;
    int mixed = 1;
    json_t *usual = json_copy((json_t *)doc);
    *m = (struct hf_mixer){.kind = HF_PLAMO,
                           .kernel = 4,
                           .chunk = 256,
                           .heads = 64,
                           .groups = 1,
                           .state = 64};
    if (!usual)
        return topt_nomem(err, "a config");
    int rc = number(doc, "hidden_size_per_head", 1, &each, err) ||
             json_object_set_new(usual, "head_dim", json_integer(each)) ||
             topt_hf_read_decoder(usual, a, err) ||
             number(doc, "mamba_num_heads", 1, &m->heads, err) ||
             number(doc, "mamba_d_state", 1, &m->state, err) ||
             number(doc, "mamba_d_conv", 1, &m->kernel, err) ||
             number(doc, "mamba_chunk_size", 1, &m->chunk, err) ||
             number(doc, "mamba_step", 2, &step, err) ||
             topt_json_bool_or(doc, "", "mamba_enabled", &mixed, err) ||
             topt_json_int_or(doc, "", "attention_window_size", 1, HF_MAX_CONTEXT,
                              &a->window, err);
    json_decref(usual);
    if (rc)
        return -1;
    (void)topt_json_member(doc, "full_attention_idx");
    (void)topt_json_member(doc, "linear_type");
    m->head_dim = each;
    m->rank = a->width / RANK_SHARE > LEAST_RANK ? a->width / RANK_SHARE : LEAST_RANK;
    for (int64_t i = 0; mixed && i < a->layers; i++) {
        int attends = a->layers <= step / 2 ? i + 1 == a->layers : i % step == step / 2;
        a->layer[i] |= attends ? 0 : HF_MIXED;
    }
    a->not_run = "steps of Mamba-2 by way of few numbers";
    return 0;
}

/* A letter or word a layer, each of which is one thing alone. */
static int one_thing(const char *name, char letter, struct topt_error *err)
{
    static const struct {
        char letter;
        const char *name;
        int is;
    } things[] = {{'M', "mamba", HF_MIXED | HF_NO_MLP},
                  {'*', "attention", HF_NO_MLP},
                  {'-', "mlp", HF_NO_MIX | HF_DENSE},
                  {'E', "moe", HF_NO_MIX}};
    for (int i = 0; i < 4; i++)
        if (name ? !strcmp(name, things[i].name) : letter == things[i].letter)
            return things[i].is;
    topt_fail(err, TOPT_ERR_INVAL, "\"%.20s%.1s\" is no kind of layer that is known",
              name ? name : "", name ? "" : &letter);
    return -1;
}

static int read_things(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char key[] = "hybrid_override_pattern";
    const json_t *list = topt_json_member(doc, "layers_block_type");
    const json_t *letters = topt_json_member(doc, key);
    const char *pattern = NULL;
    if (json_is_array(letters))
        list = letters; /* of words or of letters */
    else if (topt_json_string_or(doc, "", key, &pattern, err))
        return -1;
    size_t n = pattern ? strlen(pattern) : json_array_size(list);
    if (n < 1 || n > HF_MAX_LAYERS)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "hybrid_override_pattern, or layers_block_type, must say what "
                         "each layer is");
    a->layers = (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        int letter = pattern ? pattern[i] : name && strlen(name) == 1 ? *name : 0;
        int is = one_thing(letter ? NULL : name ? name : "", (char)letter, err);
        if (is < 0)
            return -1;
        a->layer[i] = (uint16_t)is;
    }
    return 0;
}

int topt_hf_read_nemotron_h(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    struct hf_mixer *m = &a->mixer;
    json_t *counted = json_copy((json_t *)doc);
    *m = (struct hf_mixer){.kind = HF_MAMBA2, .kernel_bias = 1, .norm = 1};
    int rc = !counted ? topt_nomem(err, "a config") : read_things(doc, a, err);
    if (!rc)
        rc = json_object_set_new(counted, "num_hidden_layers", json_integer(a->layers)) ||
             read_rest(counted, a, err) ||
             number(doc, "mamba_num_heads", 1, &m->heads, err) ||
             number(doc, "mamba_head_dim", 1, &m->head_dim, err) ||
             number(doc, "ssm_state_size", 1, &m->state, err) ||
             number(doc, "n_groups", 1, &m->groups, err) ||
             number(doc, "conv_kernel", 1, &m->kernel, err) ||
             number(doc, "chunk_size", 1, &m->chunk, err) ||
             read_flags(doc, "mamba_proj_bias", "use_conv_bias", m, err) ||
             read_steps(doc, m, err);
    m->norm_groups = m->groups;
    json_decref(counted);
    return rc ? -1 : 0;
}

/* ---- Jamba ------------------------------------------------------------------------- */

/* Every so-and-so-many-th layer from an offset on. */
static int read_period(const json_t *doc, const char *period, const char *offset,
                       int64_t usual_period, int64_t usual_offset, int64_t ret[2],
                       struct topt_error *err)
{
    ret[0] = usual_period;
    ret[1] = usual_offset;
    return number(doc, period, 1, &ret[0], err) || number(doc, offset, 0, &ret[1], err)
               ? -1
               : 0;
}

int topt_hf_read_jamba(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t attention[2], experts[2];
    if (count_layers(doc, a, err) ||
        read_period(doc, "attn_layer_period", "attn_layer_offset", 8, 4, attention,
                    err) ||
        read_period(doc, "expert_layer_period", "expert_layer_offset", 2, 1, experts,
                    err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++) {
        a->layer[i] |= i % attention[0] == attention[1] ? 0 : HF_MIXED;
        a->layer[i] |= i % experts[0] == experts[1] ? 0 : HF_DENSE;
    }
    if (read_rest(doc, a, err) || read_mamba1(doc, a->width, &a->mixer, err) ||
        number_or_auto(doc, "mamba_dt_rank", (a->width + 15) / 16, &a->mixer.rank, err))
        return -1;
    a->mixer.norm = 1;
    a->unnormalized = 1;
    return read_flags(doc, "mamba_proj_bias", "mamba_conv_bias", &a->mixer, err);
}

/* ---- xLSTM -------------------------------------------------------------------------- */

/* Shares of the width, and the feed-forward's in whole multiples (Beck et al., 2025). */
static int read_shares(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    struct hf_mixer *m = &a->mixer;
    double keys = 0.5, values = 1, inner = 2.667;
    int64_t multiple = 64;
    if (topt_json_real_or(doc, "", "qk_dim_factor", 1e-3, 64, &keys, err) ||
        topt_json_real_or(doc, "", "v_dim_factor", 1e-3, 64, &values, err) ||
        topt_json_real_or(doc, "", "ffn_proj_factor", 1e-3, 64, &inner, err) ||
        number(doc, "ffn_round_up_to_multiple_of", 1, &multiple, err) ||
        number(doc, "num_heads", 1, &m->heads, err) ||
        number(doc, "chunk_size", 1, &m->chunk, err) ||
        topt_json_bool_or(doc, "", "use_bias", &m->bias, err))
        return -1;
    double width = (double)a->width;
    a->inner = ((int64_t)(inner * width) + multiple - 1) / multiple * multiple;
    if (topt_hf_divides("keys' share of hidden_size", (int64_t)(keys * width),
                        "num_heads", m->heads, err) ||
        topt_hf_divides("values' share of hidden_size", (int64_t)(values * width),
                        "num_heads", m->heads, err))
        return -1;
    m->state = (int64_t)(keys * width) / m->heads;
    m->head_dim = (int64_t)(values * width) / m->heads;
    return m->state && m->head_dim
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "num_heads %lld leave a head without numbers",
                           (long long)m->heads);
}

int topt_hf_read_xlstm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const char *const names[][2] = {{"embedding_dim", "hidden_size"},
                                           {"num_blocks", "num_hidden_layers"},
                                           {NULL, NULL}};
    static const char *const of_kernels[] = {"chunkwise_kernel",
                                             "sequence_kernel",
                                             "step_kernel",
                                             "mode",
                                             "return_last_states",
                                             "autocast_kernel_dtype",
                                             "inference_state_dtype",
                                             "norm_reduction_force_float32",
                                             "gate_soft_cap",
                                             "add_post_blocks_norm",
                                             "head_dim",
                                             "mlstm_round_up_to_multiple_of",
                                             NULL};
    json_t *usual = json_copy((json_t *)doc);
    if (!usual)
        return topt_nomem(err, "a config");
    for (int i = 0; names[i][0]; i++) {
        json_t *value = topt_json_member(doc, names[i][0]);
        if (json_is_integer(value))
            json_object_set(usual, names[i][1], value);
    }
    for (int i = 0; of_kernels[i]; i++)
        (void)topt_json_member(doc, of_kernels[i]);
    int rc = read_only_mixers(usual, a, err);
    json_decref(usual);
    a->gated = 1;
    a->activation = TOPT_ACT_SILU;
    a->eps = 1e-6;
    a->logit_cap = 30;
    a->mixer = (struct hf_mixer){.kind = HF_MLSTM, .heads = 8, .chunk = 64};
    for (int64_t i = 0; !rc && i < a->layers; i++)
        a->layer[i] = HF_MIXED;
    return rc || topt_json_real_or(doc, "", "norm_eps", 1e-30, 1, &a->eps, err) ||
                   topt_json_real_or(doc, "", "output_logit_soft_cap", 1e-3, 1e9,
                                     &a->logit_cap, err) ||
                   topt_hf_refuse_flag(doc, "add_out_norm", 1,
                                       "models without a last norm are not read", err) ||
                   topt_hf_expect(doc, "weight_mode", "single", err) ||
                   read_shares(doc, a, err)
               ? -1
               : 0;
}

/* ---- linear attention -------------------------------------------------------------- */

/* Every fourth layer has attention, with a gate, norms of heads and a part of each head
 * turned. */
int topt_hf_read_qwen3_next(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    struct hf_mixer *m = &a->mixer;
    int64_t every = 4;
    int listed = count_layers(doc, a, err) ? -1 : read_kinds(doc, a, err);
    *m = (struct hf_mixer){.kind = HF_DELTA, .chunk = 64};
    a->rope_share = a->traits & HF_T_AFTER ? 1 : 0.25;
    if (listed < 0 || number(doc, "full_attention_interval", 1, &every, err))
        return -1;
    for (int64_t i = 0; !listed && i < a->layers; i++)
        a->layer[i] |= (i + 1) % every ? HF_MIXED : 0;
    return read_rest(doc, a, err) ||
                   topt_json_bool_or(doc, "", "attn_output_gate", &a->gate, err) ||
                   number(doc, "linear_conv_kernel_dim", 1, &m->kernel, err) ||
                   number(doc, "linear_key_head_dim", 1, &m->state, err) ||
                   number(doc, "linear_value_head_dim", 1, &m->head_dim, err) ||
                   number(doc, "linear_num_key_heads", 1, &m->groups, err) ||
                   number(doc, "linear_num_value_heads", 1, &m->heads, err)
               ? -1
               : 0;
}

/* Norms after each half where a layer has attention, before it where it has none. */
int topt_hf_read_olmo_hybrid(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_qwen3_next(doc, a, err))
        return -1;
    a->pre_where_mixed = 1;
    a->not_run = "a delta rule whose rates reach 2";
    return 0;
}

/* "attn_type_list" has a 1 for each layer with a softmax. */
int topt_hf_read_minimax(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *list = topt_json_member(doc, "attn_type_list");
    int listed = count_layers(doc, a, err) ? -1 : read_kinds(doc, a, err);
    if (listed < 0)
        return -1;
    for (int64_t i = 0; !listed && i < a->layers; i++) {
        const json_t *one = json_array_get(list, (size_t)i);
        int soft = one ? json_integer_value(one) != 0 : i % 2 == 0;
        a->layer[i] |= soft ? 0 : HF_MIXED;
    }
    if (read_rest(doc, a, err))
        return -1;
    a->mixer = (struct hf_mixer){.kind = HF_LIGHTNING,
                                 .chunk = 256,
                                 .heads = a->heads,
                                 .head_dim = a->head_dim,
                                 .state = a->head_dim};
    return number(doc, "block_size", 1, &a->mixer.chunk, err);
}

/* Every so-many-th layer has a softmax, and those that are left at the end; the others as Lightning
 * attention, with norms of queries and keys (Ling Team, 2025). */
int topt_hf_read_bailing_linear(const json_t *doc, struct hf_arch *a,
                                struct topt_error *err)
{
    int64_t every = 4;
    if (count_layers(doc, a, err) || number(doc, "layer_group_size", 1, &every, err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= (i + 1) % every && i < a->layers / every * every ? HF_MIXED : 0;
    (void)topt_json_member(doc, "group_norm_size"); /* gains are of all numbers */
    if (read_rest(doc, a, err))
        return -1;
    a->mixer = (struct hf_mixer){.kind = HF_LIGHTNING,
                                 .chunk = 256,
                                 .heads = a->heads,
                                 .head_dim = a->head_dim,
                                 .state = a->head_dim,
                                 .ranks = {a->head_norms ? 2 * a->head_dim : 0}};
    return 0;
}

/* Two thirds of the width asked for, in whole blocks. */
static int read_lfm2_inner(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int adjusted = 1;
    int64_t block = 256;
    double times = 1;
    if (number(doc, "block_ff_dim", 1, &a->inner, err) ||
        topt_json_bool_or(doc, "", "block_auto_adjust_ff_dim", &adjusted, err) ||
        number(doc, "block_multiple_of", 1, &block, err) ||
        topt_json_real_or(doc, "", "block_ffn_dim_multiplier", 1e-3, 1e3, &times, err))
        return -1;
    if (adjusted) {
        int64_t n = (int64_t)(times * (double)(2 * a->inner / 3));
        a->inner = (n + block - 1) / block * block;
    }
    return 0;
}

int topt_hf_read_lfm2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *full = topt_json_member(doc, "full_attn_idxs");
    int listed = count_layers(doc, a, err) ? -1 : read_kinds(doc, a, err);
    int bias = 0;
    if (listed < 0)
        return -1;
    for (int64_t i = 0; !listed && json_is_array(full) && i < a->layers; i++)
        a->layer[i] |= HF_MIXED;
    for (size_t k = 0; !listed && k < json_array_size(full); k++) {
        int64_t i = json_integer_value(json_array_get(full, k));
        if (i >= 0 && i < a->layers)
            a->layer[i] &= (uint16_t)~HF_MIXED;
    }
    a->mixer = (struct hf_mixer){.kind = HF_SHORT_CONV, .kernel = 3};
    if (read_rest(doc, a, err) || number(doc, "conv_L_cache", 1, &a->mixer.kernel, err) ||
        topt_json_bool_or(doc, "", "conv_bias", &bias, err))
        return -1;
    a->mixer.bias = a->mixer.kernel_bias = bias;
    return a->experts ? 0 : read_lfm2_inner(doc, a, err);
}
