/* hf_read_text_encoders.c - readers of BERT's relatives, and of models from text to text
 * that are not T5's. */
#include "hf_read_text_encoders.h"
#include "hf_read.h"
#include "hf_read_decoder.h"
#include "hf_read_encoders.h"
#include "hf_rope.h"
#include "topt_json.h"

#include <math.h>
#include <string.h>

/* Positions begin after that of padding: two rows come before the first. */
int topt_hf_read_roberta(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { BEFORE = 2 };
    if (topt_hf_read_bert(doc, a, err))
        return -1;
    a->context = a->context > BEFORE ? a->context - BEFORE : 1;
    return 0;
}

/* Norms before each half of a block, and one at the end. */
static void norms_before(struct hf_arch *a)
{
    a->norms = HF_PRE;
    a->no_final_norm = 0;
}

int topt_hf_read_roberta_pre(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_roberta(doc, a, err))
        return -1;
    norms_before(a);
    return 0;
}

/* Without one of the embeddings. */
int topt_hf_read_roberta_xl(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_roberta_pre(doc, a, err))
        return -1;
    a->embed_norm = 0;
    return 0;
}

int topt_hf_read_megatron_bert(const json_t *doc, struct hf_arch *a,
                               struct topt_error *err)
{
    if (topt_hf_read_bert(doc, a, err))
        return -1;
    norms_before(a);
    a->embed_norm = 0;
    return 0;
}

/* Kinds of tasks are looked up beside kinds of tokens. */
int topt_hf_read_ernie(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int tasks = 0;
    int64_t rows = 3;
    if (topt_hf_read_bert(doc, a, err) ||
        topt_json_bool_or(doc, "", "use_task_id", &tasks, err) ||
        topt_json_int_or(doc, "", "task_type_vocab_size", 1, HF_MAX_VOCAB, &rows, err))
        return -1;
    a->types += tasks ? rows : 0;
    return 0;
}

/* Queries, keys and values of the tokens that see all are projected apart; the others see
 * a window. */
int topt_hf_read_longformer(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *windows = topt_json_member(doc, "attention_window");
    if (topt_hf_read_roberta(doc, a, err))
        return -1;
    const json_t *one = json_is_array(windows) ? json_array_get(windows, 0) : windows;
    a->window = json_is_integer(one) ? json_integer_value(one) : 512;
    if (a->window < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "attention_window is below 1");
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= HF_LOCAL;
    a->unused = a->layers * 3 * a->width * (a->width + 1);
    a->not_run = "windows of keys to both sides of a query";
    return 0;
}

/* Four tables of places on a page: left or right, top or bottom, height, width. */
int topt_hf_read_layoutlm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { TABLES = 4 };
    int64_t rows = 1024;
    if (topt_hf_read_bert(doc, a, err) ||
        topt_json_int_or(doc, "", "max_2d_position_embeddings", 1, HF_MAX_CONTEXT, &rows,
                         err))
        return -1;
    a->unused = TABLES * rows * a->width;
    a->pooler_kept = 1;
    a->not_run = "places on a page";
    return 0;
}

/* Blocks of keys: some near, some by chance. */
int topt_hf_read_big_bird(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const char *kind = "block_sparse";
    int64_t size = 64, chance = 3;
    enum { NEAR = 5 }; /* three around a query, the first and the last */
    if (topt_hf_read_bert(doc, a, err) ||
        topt_json_string_or(doc, "", "attention_type", &kind, err) ||
        topt_json_int_or(doc, "", "block_size", 1, HF_MAX_CONTEXT, &size, err) ||
        topt_json_int_or(doc, "", "num_random_blocks", 0, 64, &chance, err))
        return -1;
    a->pooler_kept = 1;
    if (strcmp(kind, "block_sparse"))
        return 0;
    a->window = (NEAR + chance) * size;
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= HF_LOCAL;
    a->inexact_why = "blocks of keys that are chosen";
    a->inexact_above = a->window;
    return 0;
}

/* Narrow embeddings; all layers of a group are one. */
int topt_hf_read_albert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t inner = 1;
    if (topt_hf_read_bert(doc, a, err))
        return -1;
    a->embed_width = 128;
    a->embed_inside = 1;
    a->layer_groups = 1;
    a->not_run = "layers that share their parameters";
    if (topt_json_int_or(doc, "", "embedding_size", 1, HF_MAX_WIDTH, &a->embed_width,
                         err) ||
        topt_json_int_or(doc, "", "num_hidden_groups", 1, a->layers, &a->layer_groups,
                         err) ||
        topt_json_int_or(doc, "", "inner_group_num", 1, 64, &inner, err))
        return -1;
    return inner == 1 ? 0
                      : topt_fail(err, TOPT_ERR_INVAL,
                                  "inner_group_num is %lld: groups of several layers "
                                  "are not read",
                                  (long long)inner);
}

/* BERT's own stack under other names, whose pooler only some heads have. */
int topt_hf_read_dpr(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t narrow = 0;
    if (topt_hf_read_bert(doc, a, err) ||
        topt_json_int_or(doc, "", "projection_dim", 0, HF_MAX_WIDTH, &narrow, err))
        return -1;
    a->pooler = 0;
    a->unused = narrow * (a->width + 1);
    return 0;
}

/* No kinds of tokens; logits straight from the table, with a bias. */
int topt_hf_read_bert_generation(const json_t *doc, struct hf_arch *a,
                                 struct topt_error *err)
{
    if (topt_hf_read_bert(doc, a, err))
        return -1;
    a->types = a->pooler = a->head_transform = 0;
    return 0;
}

/* Kinds of rows, columns and ranks are looked up beside those of tokens. */
int topt_hf_read_tapas(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const json_t *kinds = topt_json_member(doc, "type_vocab_sizes");
    if (topt_hf_read_bert(doc, a, err))
        return -1;
    a->types = json_is_array(kinds) ? 0 : 1039;
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        int64_t n = json_integer_value(json_array_get(kinds, i));
        if (n < 1 || n > HF_MAX_VOCAB / 64 || i >= 64)
            return topt_fail(err, TOPT_ERR_INVAL, "type_vocab_sizes[%zu] must be 1..%d",
                             i, HF_MAX_VOCAB / 64);
        a->types += n;
    }
    return 0;
}

/* Positions are turned; a table of their sines is kept. */
int topt_hf_read_roformer(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int values = 0;
    if (topt_hf_read_electra(doc, a, err) ||
        topt_json_bool_or(doc, "", "rotary_value", &values, err))
        return -1;
    if (values)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "rotary_value is true: no reader turns values");
    a->positions = 0;
    a->rope = (struct topt_attrs){.rope_theta = 10000, .rope_dim = a->head_dim};
    a->unused = a->context * a->head_dim;
    return 0;
}

/* RoBERTa whose positions are turned. */
int topt_hf_read_jina3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_bert(doc, a, err) ||
        topt_hf_rope(doc, "partial_rotary_factor", 1, a, err))
        return -1;
    a->positions = 0;
    return 0;
}

/* Two rows come before the first position; what attention is in place of a softmax over
 * all keys costs as many keys as 'seen' (0: all). */
static int read_approximate(const json_t *doc, const char *why, int64_t seen,
                            struct hf_arch *a, struct topt_error *err)
{
    enum { BEFORE = 2 };
    if (topt_hf_read_bert(doc, a, err))
        return -1;
    a->positions = a->context + BEFORE;
    a->pooler = 0;
    a->not_run = why;
    a->window = seen;
    for (int64_t i = 0; seen && i < a->layers; i++)
        a->layer[i] |= HF_LOCAL;
    return 0;
}

/* Keys are means of runs; a convolution of each head's values stands beside. */
int topt_hf_read_nystromformer(const json_t *doc, struct hf_arch *a,
                               struct topt_error *err)
{
    int64_t marks = 64, kernel = 65;
    if (topt_json_int_or(doc, "", "num_landmarks", 1, HF_MAX_CONTEXT, &marks, err) ||
        topt_json_int_or(doc, "", "conv_kernel_size", 0, 1 << 14, &kernel, err) ||
        read_approximate(doc, "attention to means of runs of keys", 2 * marks, a, err))
        return -1;
    a->layer_unused = a->heads * kernel;
    return 0;
}

int topt_hf_read_mra(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return read_approximate(doc, "attention to blocks of keys that are chosen", 0, a,
                            err);
}

int topt_hf_read_yoso(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t kernel = 0;
    if (topt_json_int_or(doc, "", "conv_window", 0, 1 << 14, &kernel, err) ||
        read_approximate(doc, "attention by hashed keys", 0, a, err))
        return -1;
    a->layer_unused = a->heads * kernel;
    return 0;
}

/* Places on a page by tables of corners and extents, relative places, and an image whose
 * patches stand among the tokens. */
int topt_hf_read_layoutlmv3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t rows = 1024, corner = 128, extent = 128, bins = 32, bins2 = 64, image = 224,
            patch = 16, channels = 3;
    int relative = 1, spatial = 1, sees = 1;
    if (topt_hf_read_roberta(doc, a, err) ||
        topt_json_int_or(doc, "", "max_2d_position_embeddings", 1, HF_MAX_CONTEXT, &rows,
                         err) ||
        topt_json_int_or(doc, "", "coordinate_size", 1, HF_MAX_WIDTH, &corner, err) ||
        topt_json_int_or(doc, "", "shape_size", 1, HF_MAX_WIDTH, &extent, err) ||
        topt_json_int_or(doc, "", "rel_pos_bins", 1, 1 << 16, &bins, err) ||
        topt_json_int_or(doc, "", "rel_2d_pos_bins", 1, 1 << 16, &bins2, err) ||
        topt_json_int_or(doc, "", "input_size", 1, 1 << 14, &image, err) ||
        topt_json_int_or(doc, "", "patch_size", 1, 1 << 14, &patch, err) ||
        topt_json_int_or(doc, "", "num_channels", 1, 1 << 14, &channels, err) ||
        topt_json_bool_or(doc, "", "has_relative_attention_bias", &relative, err) ||
        topt_json_bool_or(doc, "", "has_spatial_attention_bias", &spatial, err) ||
        topt_json_bool_or(doc, "", "visual_embed", &sees, err))
        return -1;
    int64_t side = image / patch, w = a->width;
    a->unused = 2 * rows * (corner + extent);
    a->unused += (relative ? bins : 0) * a->heads + (spatial ? 2 * bins2 : 0) * a->heads;
    if (sees)
        a->unused += w * (channels * patch * patch + 1 + 1 + side * side + 1 + 4);
    a->pooler = 0;
    topt_hf_classes(doc, a);
    a->class_map = a->classes >= 10; /* before those of many */
    a->not_run = "places on a page, and patches of an image among the tokens";
    return 0;
}

int topt_hf_read_bros(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { SINES = 4 };
    if (topt_hf_read_bert(doc, a, err))
        return -1;
    a->unused = a->width / SINES * a->head_dim;
    a->pooler_kept = 1;
    a->not_run = "places on a page";
    return 0;
}

/* BERT's block with names of its own; languages are looked up where there are several. */
int topt_hf_read_xlm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("emb_dim", width, HF_MAX_WIDTH),
        HF_SIZE("n_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("n_heads", heads, HF_MAX_HEADS),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        HF_SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
        {0}};
    int64_t languages = 1;
    int looked_up = 1, causal = 0, gelu = 1, before = 0;
    *a = (struct hf_arch){.norms = HF_POST,
                          .embed_norm = 1,
                          .qkv_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .tied = 1,
                          .head_bias = 1,
                          .no_final_norm = 1,
                          .eps = 1e-12,
                          .init_std = 0.02,
                          .context_key = "max_position_embeddings"};
    if (topt_hf_sizes(doc, sizes, a, err) || topt_hf_set_heads(a, err) ||
        topt_json_int_or(doc, "", "n_langs", 1, HF_MAX_VOCAB, &languages, err) ||
        topt_json_bool_or(doc, "", "use_lang_emb", &looked_up, err) ||
        topt_json_bool_or(doc, "", "causal", &causal, err) ||
        topt_json_bool_or(doc, "", "gelu_activation", &gelu, err) ||
        topt_json_bool_or(doc, "", "pre_norm", &before, err) ||
        topt_hf_refuse_flag(doc, "asm", 0, "no reader takes an adaptive softmax", err))
        return -1;
    a->inner = 4 * a->width;
    a->positions = a->context;
    a->types = looked_up && languages > 1 ? languages : 0;
    a->bidirectional = !causal;
    a->norms = before ? HF_PRE : HF_POST;
    a->activation = gelu ? TOPT_ACT_GELU_ERF : TOPT_ACT_RELU;
    return 0;
}

/* Keys are read by content and by place, which each layer projects by a map of its own;
 * no table of places. */
int topt_hf_read_xlnet(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {HF_SIZE("d_model", width, HF_MAX_WIDTH),
                                           HF_SIZE("n_layer", layers, HF_MAX_LAYERS),
                                           HF_SIZE("n_head", heads, HF_MAX_HEADS),
                                           HF_SIZE("d_inner", inner, 4 * HF_MAX_WIDTH),
                                           HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
                                           {0}};
    enum { OF_SCORES = 3, SEGMENTS = 2 };
    const char *name = "gelu";
    *a = (struct hf_arch){.norms = HF_POST,
                          .mlp_bias = 1,
                          .bidirectional = 1,
                          .places_projected = 1,
                          .tied = 1,
                          .head_bias = 1,
                          .no_final_norm = 1,
                          .eps = 1e-12,
                          .init_std = 0.02,
                          .context = HF_MAX_CONTEXT,
                          .context_key = "length",
                          .usual_seq = 512,
                          .not_run = "scores by places that each layer projects"};
    if (topt_hf_sizes(doc, sizes, a, err) ||
        topt_json_int_or(doc, "", "d_head", 1, HF_MAX_WIDTH, &a->head_dim, err) ||
        topt_hf_set_heads(a, err) ||
        topt_json_string_or(doc, "", "ff_activation", &name, err) ||
        topt_hf_activation_of("ff_activation", name, a, err))
        return -1;
    a->layer_unused = (OF_SCORES + SEGMENTS) * a->heads * a->head_dim;
    a->unused = a->width; /* the mask's */
    return 0;
}

/* A table of relative positions that all layers read, no types. */
int topt_hf_read_mpnet(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_roberta(doc, a, err))
        return -1;
    a->types = 0;
    a->buckets = 32;
    a->distance = 128;
    return topt_json_int_or(doc, "", "relative_attention_num_buckets", 2, 1024,
                            &a->buckets, err);
}

/* Embeddings may be narrower than blocks, with all that is added to them. */
int topt_hf_read_electra(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_bert(doc, a, err))
        return -1;
    a->embed_width = a->width;
    a->embed_inside = 1;
    a->pooler = 0;
    return topt_json_int_or(doc, "", "embedding_size", 1, HF_MAX_WIDTH, &a->embed_width,
                            err);
}

/* ---- DeBERTa ----------------------------------------------------------------------- */

/* Maps of positions to queries, with a bias, and to keys, where these are not those of the
 * tokens; a table has few rows for a whole step. */
static void read_own_maps(const json_t *doc, struct hf_arch *a)
{
    const json_t *kinds = topt_json_member(doc, "pos_att_type"), *one;
    const char *words = json_string_value(kinds);
    int by_key = words && strstr(words, "c2p"), by_query = words && strstr(words, "p2c");
    size_t i;
    json_array_foreach(kinds, i, one)
    {
        by_key |= json_is_string(one) && !strcmp(json_string_value(one), "c2p");
        by_query |= json_is_string(one) && !strcmp(json_string_value(one), "p2c");
    }
    int bias = !a->no_key_bias || by_query; /* the first version's keys have none */
    a->layer_unused = (by_key ? a->width * (a->width + !a->no_key_bias) : 0) +
                      (by_query ? a->width * (a->width + bias) : 0);
}

static int read_relative(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const char *norm = "none";
    int relative = 0, shared = 0;
    int64_t buckets = -1, most = -1;
    if (topt_json_bool_or(doc, "", "relative_attention", &relative, err) ||
        topt_json_bool_or(doc, "", "share_att_key", &shared, err) ||
        topt_json_string_or(doc, "", "norm_rel_ebd", &norm, err) ||
        topt_json_int_or(doc, "", "position_buckets", -1, HF_MAX_CONTEXT, &buckets,
                         err) ||
        topt_json_int_or(doc, "", "max_relative_positions", -1, HF_MAX_CONTEXT, &most,
                         err))
        return -1;
    if (!relative)
        return 0;
    if (!shared)
        read_own_maps(doc, a);
    most = most < 1 ? a->context : most;
    a->relative_rows = 2 * (buckets > 0 ? buckets : most);
    a->disentangled = strstr(norm, "layer_norm") ? 2 : 1;
    a->not_run = "scores by positions and by content apart (disentangled attention)";
    if (a->context > a->relative_rows)
        a->context = a->relative_rows;
    return 0;
}

static int read_deberta(const json_t *doc, int key_bias, struct hf_arch *a,
                        struct topt_error *err)
{
    json_t *plain = json_copy((json_t *)doc);
    const json_t *types = topt_json_member(doc, "type_vocab_size");
    int absolute = 1, any = json_integer_value(types) > 0;
    if (plain && !any)
        json_object_del(plain, "type_vocab_size");
    int rc = plain ? topt_hf_read_bert(plain, a, err) : topt_nomem(err, "a config");
    json_decref(plain);
    if (rc || topt_json_bool_or(doc, "", "position_biased_input", &absolute, err))
        return -1;
    a->types = any ? a->types : 0;
    a->positions = absolute ? a->positions : 0;
    a->pooler = 0;
    a->no_key_bias = !key_bias;
    return read_relative(doc, a, err);
}

int topt_hf_read_deberta_v2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return read_deberta(doc, 1, a, err);
}

/* Keys have no bias, and positions maps of their own. */
int topt_hf_read_deberta(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return read_deberta(doc, 0, a, err) ||
                   topt_hf_refuse_flag(doc, "talking_head", 0, "no reader mixes heads",
                                       err)
               ? -1
               : 0;
}

/* ---- rotary encoders --------------------------------------------------------------- */

/* Windows to both sides in all but every third layer; no biases. */
/* The base of the angles of a kind of layers, by either form of the config. */
static int read_theta(const json_t *doc, const char *kind, const char *key, double *ret,
                      struct topt_error *err)
{
    const json_t *of = topt_json_member(topt_json_member(doc, "rope_parameters"), kind);
    return topt_json_real_or(doc, "", key, 1, 1e15, ret, err) ||
                   topt_json_real_or(of, kind, "rope_theta", 1, 1e15, ret, err)
               ? -1
               : 0;
}

int topt_hf_read_modernbert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t every = 3;
    double global = 160000, local = 10000;
    int biased = 0;
    a->traits = HF_T_GATED | HF_T_UNBIASED | HF_T_EMBED_NORM;
    if (topt_hf_read_decoder(doc, a, err) ||
        topt_json_bool_or(doc, "", "norm_bias", &biased, err) ||
        topt_json_bool_or(doc, "", "mlp_bias", &a->mlp_bias, err) ||
        topt_json_int_or(doc, "", "global_attn_every_n_layers", 1, HF_MAX_LAYERS, &every,
                         err) ||
        topt_json_int_or(doc, "", "local_attention", 1, HF_MAX_CONTEXT, &a->window,
                         err) ||
        read_theta(doc, "full_attention", "global_rope_theta", &global, err) ||
        read_theta(doc, "sliding_attention", "local_rope_theta", &local, err))
        return -1;
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] = i % every ? HF_LOCAL : 0;
    a->local_rope = a->rope;
    a->local_rope.rope_theta = local;
    a->rope.rope_theta = global;
    a->unbiased_norms = !biased;
    a->bidirectional = a->tied = a->no_first_norm = 1;
    a->head_transform = a->head_bias = a->class_transform = 1;
    a->pooler_unbiased = a->pooler_norm = 1;
    a->window = a->window / 2 + 1; /* half of it to each side, and the position itself */
    return 0;
}

/* The same with a causal mask. */
int topt_hf_read_modernbert_decoder(const json_t *doc, struct hf_arch *a,
                                    struct topt_error *err)
{
    if (topt_hf_read_modernbert(doc, a, err))
        return -1;
    a->bidirectional = 0;
    a->window--; /* half of local_attention, the position itself among them */
    return 0;
}

/* The contact head reads attentions, and no loss reads it. */
int topt_hf_read_esm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const char *positions = "absolute";
    int before = 0;
    a->traits = HF_T_QKV_BIAS | HF_T_OUT_BIAS | HF_T_MLP_BIAS;
    if (topt_json_string_or(doc, "", "position_embedding_type", &positions, err) ||
        topt_json_bool_or(doc, "", "emb_layer_norm_before", &before, err))
        return -1;
    int rotary = !strcmp(positions, "rotary");
    a->traits |= rotary ? 0 : HF_T_POSITIONS;
    a->traits |= before ? HF_T_EMBED_NORM : 0;
    if (topt_hf_read_decoder(doc, a, err))
        return -1;
    a->activation = TOPT_ACT_GELU_ERF;
    a->bidirectional = a->tied = a->head_transform = a->head_bias = 1;
    a->pooler = 1;
    a->unused = a->layers * a->heads + 1;
    return 0;
}

int topt_hf_read_nomic_bert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size types[] = {
        HF_SIZE("type_vocab_size", types, HF_MAX_VOCAB), {0}};
    a->traits = HF_T_GATED | HF_T_EMBED_NORM;
    if (topt_hf_read_decoder(doc, a, err) || topt_hf_sizes_or(doc, types, a, err))
        return -1;
    a->norms = HF_POST;
    a->no_final_norm = a->bidirectional = a->tied = 1;
    a->head_transform = a->head_bias = 1;
    return 0;
}

int topt_hf_read_eurobert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    a->traits = HF_T_RMS | HF_T_GATED;
    if (topt_hf_read_decoder(doc, a, err))
        return -1;
    a->bidirectional = 1;
    return 0;
}

/* ---- text to text ------------------------------------------------------------------ */

static const struct hf_size context[] = {
    HF_SIZE("max_position_embeddings", context, HF_MAX_CONTEXT), {0}};

static int read_like_bart(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int scaled = 0;
    a->tied = a->qkv_bias = a->out_bias = a->mlp_bias = 1;
    a->eps = 1e-5;
    a->init_std = 0.02;
    a->context_key = "max_position_embeddings";
    a->no_final_norm = 1; /* stack_norms has them */
    if (topt_hf_sizes(doc, topt_hf_two_stacks, a, err) ||
        topt_hf_sizes(doc, context, a, err) || topt_hf_set_heads(a, err) ||
        topt_hf_divides("d_model", a->width, "encoder_attention_heads", a->encoder_heads,
                        err) ||
        topt_json_bool_or(doc, "", "scale_embedding", &scaled, err) ||
        topt_json_real_or(doc, "", "init_std", 1e-12, 100, &a->init_std, err) ||
        topt_hf_refuse_flag(doc, "tie_word_embeddings", 1,
                            "no reader takes a head of its own here", err))
        return -1;
    const char *name = "gelu";
    if (topt_json_string_or(doc, "", "activation_function", &name, err) ||
        topt_hf_activation_of("activation_function", name, a, err))
        return -1;
    a->embed_factor = scaled ? sqrt((double)a->width) : 0;
    topt_hf_note(a, "encoder and decoder read as many tokens");
    return 0;
}

/* Norms after the sums, and of the embeddings; two rows before the first position. */
int topt_hf_read_bart(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (read_like_bart(doc, a, err))
        return -1;
    a->norms = HF_POST;
    a->embed_norm = 1;
    a->positions = a->context + 2;
    return 0;
}

/* The same with norms before, and one at the end of each stack. */
int topt_hf_read_mbart(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_bart(doc, a, err))
        return -1;
    a->norms = HF_PRE;
    a->stack_norms = 1;
    return 0;
}

/* Tables of positions that are sines, which transformers keeps as parameters. */
int topt_hf_read_marian(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (read_like_bart(doc, a, err))
        return -1;
    a->norms = HF_POST;
    a->positions = a->context;
    topt_hf_note(a, "position embeddings, fixed there, are trained");
    return 0;
}

int topt_hf_read_pegasus(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_marian(doc, a, err))
        return -1;
    a->norms = HF_PRE;
    a->stack_norms = 1;
    return 0;
}

/* Positions are added that have no table. */
int topt_hf_read_m2m_100(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (read_like_bart(doc, a, err))
        return -1;
    a->norms = HF_PRE;
    a->stack_norms = 1;
    topt_hf_note(a, "sinusoidal position embeddings are left out");
    return 0;
}

/* Positions are counted from the first row; norms before, and one at the end of each
 * stack. */
int topt_hf_read_blenderbot(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (read_like_bart(doc, a, err))
        return -1;
    a->norms = HF_PRE;
    a->stack_norms = 1;
    a->positions = a->context;
    return 0;
}

int topt_hf_read_blenderbot_small(const json_t *doc, struct hf_arch *a,
                                  struct topt_error *err)
{
    if (read_like_bart(doc, a, err))
        return -1;
    a->norms = HF_POST;
    a->embed_norm = 1;
    a->positions = a->context;
    return 0;
}
