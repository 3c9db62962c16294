/* hf_read_vision.c - readers of towers that see images, by the type of the config around
 * them.
 *
 * A row has the type, the class whose defaults the tower's config takes where it names
 * none, and the readers of the tower and of its projector.  Where images may
 * be of any size one of 448 pixels a side is planned with. */
#include "hf_read_vision.h"
#include "hf_complete.h"
#include "hf_read.h"
#include "hf_unread.h"
#include "topt_json.h"

#include <string.h>

enum { USUAL_PIXELS = 448 };

/* A number, or the first of a list that has one for each side. */
static int size_of(const json_t *doc, const char *key, int64_t *ret,
                   struct topt_error *err)
{
    const json_t *value = topt_json_member(doc, key);
    if (json_is_array(value))
        value = json_array_get(value, 0);
    if (!value || json_is_null(value))
        return 0;
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > 1 << 20)
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be a number of at least 1", key);
    *ret = json_integer_value(value);
    return 0;
}

static int activation(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    const char *name = "gelu";
    return topt_json_string_or(doc, "", "hidden_act", &name, err) ||
                   topt_hf_activation_of("hidden_act", name, &t->a, err)
               ? -1
               : 0;
}

/* What all have; blocks with norms before and biases everywhere. */
static int read_blocks(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    struct hf_arch *a = &t->a;
    int64_t pixels = USUAL_PIXELS;
    a->bidirectional = a->qkv_bias = a->out_bias = a->mlp_bias = 1;
    a->eps = 1e-6;
    a->init_std = 0.02;
    a->channels = 3;
    t->patch = 14;
    t->frames = 1;
    if (size_of(doc, "hidden_size", &a->width, err) ||
        size_of(doc, "num_hidden_layers", &a->layers, err) ||
        size_of(doc, "num_attention_heads", &a->heads, err) ||
        size_of(doc, "intermediate_size", &a->inner, err) ||
        size_of(doc, "num_channels", &a->channels, err) ||
        size_of(doc, "patch_size", &t->patch, err) ||
        size_of(doc, "image_size", &pixels, err) || activation(doc, t, err))
        return -1;
    if (!a->width || !a->layers || !a->heads || a->layers > HF_MAX_LAYERS)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "hidden_size, num_hidden_layers or "
                         "num_attention_heads is missing");
    t->side = pixels / t->patch;
    return topt_hf_set_heads(a, err);
}

/* ---- towers ------------------------------------------------------------------------ */

/* The head that pools by attention of one probe is there unless it is switched off, and
 * no text reads it: the probe, four maps with biases, a norm and a feed-forward. */
static int read_siglip(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    int head = 1;
    if (read_blocks(doc, t, err) ||
        topt_json_bool_or(doc, "", "vision_use_head", &head, err))
        return -1;
    t->patch_bias = t->norm_after = 1;
    t->rows = t->side * t->side;
    t->beside = head ? 1 + 4 * (t->a.width + 1) + 2 + 2 * t->a.inner + 1 : 0;
    t->unread = head ? t->a.inner : 0;
    return 0;
}

static int read_clip(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    if (read_blocks(doc, t, err))
        return -1;
    t->class_token = t->norm_before = t->norm_after = 1;
    t->rows = t->side * t->side + 1;
    return 0;
}

/* Positions are turned, images of any size. */
static int read_pixtral(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    if (read_blocks(doc, t, err))
        return -1;
    t->a.rms = t->a.gated = t->norm_before = 1;
    t->a.qkv_bias = t->a.out_bias = t->a.mlp_bias = 0;
    t->side = USUAL_PIXELS / t->patch;
    return 0;
}

static int read_internvl(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    const char *norm = "layer_norm";
    int bias = 0, wide = 0, mean = 1;
    if (read_blocks(doc, t, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "use_qk_norm", &wide, err) ||
        topt_json_bool_or(doc, "", "use_mean_pooling", &mean, err) ||
        topt_json_string_or(doc, "", "norm_type", &norm, err))
        return -1;
    t->a.qkv_bias = bias;
    t->a.wide_norms = wide;
    t->a.rms = !strcmp(norm, "rms_norm");
    t->a.layer_scale = t->patch_bias = t->class_token = 1;
    t->norm_after = !mean;
    t->rows = t->side * t->side + 1;
    return 0;
}

/* Qwen's: two images at once. */
static int read_qwen(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    json_t *usual = json_copy((json_t *)doc), *value;
    if (!usual)
        return topt_nomem(err, "a config");
    if ((value = topt_json_member(doc, "depth")))
        json_object_set(usual, "num_hidden_layers", value);
    if ((value = topt_json_member(doc, "num_heads")))
        json_object_set(usual, "num_attention_heads", value);
    if ((value = topt_json_member(doc, "in_channels")))
        json_object_set(usual, "num_channels", value);
    if ((value = topt_json_member(doc, "in_chans")))
        json_object_set(usual, "num_channels", value);
    int rc = read_blocks(usual, t, err);
    json_decref(usual);
    t->frames = 2;
    t->merge = 2;
    if (rc || size_of(doc, "temporal_patch_size", &t->frames, err) ||
        size_of(doc, "spatial_merge_size", &t->merge, err))
        return -1;
    t->side = USUAL_PIXELS / t->patch / t->merge * t->merge;
    t->joint_norm = t->merge_bias = t->merge_activated = t->out_bias = 1;
    t->merge_features = t->merge * t->merge * t->a.width;
    t->activation = TOPT_ACT_GELU_ERF;
    return 0;
}

/* "hidden_size" is there the text's, "embed_dim" its own. */
static int read_qwen2(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    json_t *own = json_copy((json_t *)doc);
    int64_t ratio = 4, width = 1280;
    if (!own)
        return topt_nomem(err, "a config");
    int rc = size_of(doc, "embed_dim", &width, err) ||
             size_of(doc, "mlp_ratio", &ratio, err) ||
             json_object_set_new(own, "hidden_size", json_integer(width)) ||
             json_object_set_new(own, "intermediate_size", json_integer(ratio * width)) ||
             read_qwen(own, t, err);
    json_decref(own);
    return rc ? -1 : 0;
}

static int read_qwen2_5(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    if (read_qwen(doc, t, err))
        return -1;
    t->a.rms = t->a.gated = t->joint_rms = 1;
    return 0;
}

/* What blocks between give is projected too, and added to the text's first layers. */
static int read_qwen3(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    enum { USUAL_DEEP = 3 };
    const json_t *deep = topt_json_member(doc, "deepstack_visual_indexes");
    const char *type = json_string_value(topt_json_member(doc, "model_type"));
    int shallow = type && !strncmp(type, "qwen3_5", 7);
    if (read_qwen(doc, t, err) || size_of(doc, "num_position_embeddings", &t->rows, err))
        return -1;
    t->patch_bias = 1;
    t->deep = json_is_array(deep) ? (int64_t)json_array_size(deep)
              : shallow           ? 0
                                  : USUAL_DEEP;
    return 0;
}

/* Positions by a number of patches that is said; the rest is SigLIP's. */
static int read_siglip2(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    int64_t patches = 256;
    if (read_siglip(doc, t, err) || size_of(doc, "num_patches", &patches, err))
        return -1;
    t->rows = patches;
    for (t->side = 1; (t->side + 1) * (t->side + 1) <= patches; t->side++)
        ;
    return 0;
}

/* SigLIP's without its head. */
static int read_idefics3(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    if (read_siglip(doc, t, err))
        return -1;
    t->beside = t->unread = 0;
    return 0;
}

/* A table of positions for so many rows and columns. */
static int read_moonvit(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    int64_t rows = 64, columns = 64;
    if (read_blocks(doc, t, err) || size_of(doc, "init_pos_emb_height", &rows, err) ||
        size_of(doc, "init_pos_emb_width", &columns, err))
        return -1;
    t->a.activation = TOPT_ACT_GELU;
    t->patch_bias = t->norm_after = 1;
    t->side = USUAL_PIXELS / t->patch / 2 * 2;
    t->beside = rows * columns - t->side * t->side;
    t->rows = t->side * t->side;
    return t->beside < 0 ? topt_fail(err, TOPT_ERR_INVAL,
                                     "init_pos_emb_height times init_pos_emb_width is "
                                     "below %lld",
                                     (long long)t->rows)
                         : 0;
}

/* As in the config of its authors: what reads queries and keys may be normed. */
static int read_intern_vit(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    const char *norm = "layer_norm";
    int bias = 0, wide = 0;
    if (read_blocks(doc, t, err) || topt_json_bool_or(doc, "", "qkv_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "qk_normalization", &wide, err) ||
        topt_json_string_or(doc, "", "norm_type", &norm, err))
        return -1;
    t->a.qkv_bias = bias;
    t->a.rms = !strcmp(norm, "rms_norm");
    t->a.wide_norms = wide;
    t->a.layer_scale = t->patch_bias = t->class_token = 1;
    t->rows = t->side * t->side + 1;
    return 0;
}

/* "intermediate_size" is the projector's, "out_hidden_size" its blocks'. */
static int read_glm4v(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    int64_t inner = 4096, pixels = 336;
    if (read_qwen(doc, t, err) || size_of(doc, "out_hidden_size", &inner, err) ||
        size_of(doc, "image_size", &pixels, err))
        return -1;
    int bias = 0;
    if (topt_json_bool_or(doc, "", "attention_bias", &bias, err))
        return -1;
    t->after = t->a.inner;
    t->a.inner = inner;
    t->a.rms = t->a.gated = 1;
    t->a.qkv_bias = bias;
    t->a.out_bias = t->a.mlp_bias = 0;
    t->a.activation = TOPT_ACT_SILU;
    t->patch_bias = t->norm_before = t->norm_after = 1;
    t->side = pixels / t->patch / t->merge * t->merge;
    t->rows = t->side * t->side;
    t->joint_norm = t->merge_activated = 0;
    t->merge_features = t->out;
    return 0;
}

/* Two tables of positions, of rows and of columns. */
static int read_gemma4(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    const char *name = "gelu_pytorch_tanh";
    int64_t table = 10240;
    if (read_blocks(doc, t, err) ||
        topt_json_string_or(doc, "", "hidden_activation", &name, err) ||
        topt_hf_activation_of("hidden_activation", name, &t->a, err) ||
        size_of(doc, "num_key_value_heads", &t->a.kv_heads, err) ||
        size_of(doc, "head_dim", &t->a.head_dim, err) ||
        size_of(doc, "position_embedding_size", &table, err))
        return -1;
    t->a.rms = t->a.gated = t->a.head_norms = t->a.value_norms = 1;
    t->a.qkv_bias = t->a.out_bias = t->a.mlp_bias = 0;
    t->a.norms = HF_SANDWICH;
    t->a.score_factor = 1;
    t->side = USUAL_PIXELS / t->patch;
    t->beside = 2 * table;
    return topt_hf_set_heads(&t->a, err);
}

/* Blocks over a tile, more of them over all tiles, which two numbers let through each;
 * tables of positions of tiles by their arrangement. */
static int read_mllama(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    json_t *usual = json_copy((json_t *)doc), *heads;
    int64_t global = 8, tiles = 4, patterns = 8;
    const json_t *ratios = topt_json_member(doc, "supported_aspect_ratios");
    if (!usual)
        return topt_nomem(err, "a config");
    if ((heads = topt_json_member(doc, "attention_heads")))
        json_object_set(usual, "num_attention_heads", heads);
    int rc = read_blocks(usual, t, err);
    json_decref(usual);
    if (rc || size_of(doc, "num_global_layers", &global, err) ||
        size_of(doc, "max_num_tiles", &tiles, err))
        return -1;
    patterns = json_is_array(ratios) ? (int64_t)json_array_size(ratios) : patterns;
    t->a.qkv_bias = t->a.out_bias = 0;
    t->a.layers += global;
    t->class_token = t->norm_before = t->norm_after = 1;
    t->rows = t->side * t->side + 1;
    t->unread = 3 + 2 * global + (patterns + 1) * tiles * t->a.width * (2 + t->rows);
    t->a.activation = TOPT_ACT_GELU_ERF;
    return t->a.layers <= HF_MAX_LAYERS
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "it has more than %d layers",
                           HF_MAX_LAYERS);
}

/* ---- projectors --------------------------------------------------------------------- */

/* What the tower gives must be of the text's width; Qwen2's calls that its hidden_size. */
static int join_qwen(const json_t *doc, const json_t *vision, struct hf_tower *t,
                     struct topt_error *err)
{
    int second = topt_json_member(vision, "embed_dim") != NULL;
    const char *key = second ? "hidden_size" : "out_hidden_size";
    int64_t out = t->out;
    (void)doc;
    if (size_of(vision, key, &out, err))
        return -1;
    return out == t->out ? 0
                         : topt_fail(err, TOPT_ERR_INVAL,
                                     "its %s is %lld and the text's hidden_size %lld: "
                                     "they do not go together",
                                     key, (long long)out, (long long)t->out);
}

static int two_maps(const json_t *doc, int bias, struct hf_tower *t,
                    struct topt_error *err)
{
    if (topt_json_bool_or(doc, "", "multimodal_projector_bias", &bias, err))
        return -1;
    t->hidden = t->out;
    t->hidden_bias = t->out_bias = bias;
    t->activation = TOPT_ACT_GELU_ERF;
    return 0;
}

static int join_llava(const json_t *doc, const json_t *vision, struct hf_tower *t,
                      struct topt_error *err)
{
    (void)vision;
    return two_maps(doc, 1, t, err);
}

/* A trained token ends each row of patches. */
static int join_llava_next(const json_t *doc, const json_t *vision, struct hf_tower *t,
                           struct topt_error *err)
{
    (void)vision;
    t->newline = 1;
    return two_maps(doc, 1, t, err);
}

/* Five blocks' outputs side by side, with a norm. */
static int join_vipllava(const json_t *doc, const json_t *vision, struct hf_tower *t,
                         struct topt_error *err)
{
    const json_t *layers = topt_json_member(doc, "vision_feature_layers");
    int64_t n = json_is_array(layers) ? (int64_t)json_array_size(layers) : 5;
    (void)vision;
    if (n < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "vision_feature_layers is empty");
    t->joint_norm = 1;
    t->joint_beside = 2 * (n - 1);
    t->unread = (n - 1) * t->a.width * t->out;
    return two_maps(doc, 1, t, err);
}

static int join_deepseek_vl(const json_t *doc, const json_t *vision, struct hf_tower *t,
                            struct topt_error *err)
{
    (void)vision;
    return two_maps(doc, 1, t, err);
}

/* Neighbours side by side, of which half gates the other. */
static int join_cohere2(const json_t *doc, const json_t *vision, struct hf_tower *t,
                        struct topt_error *err)
{
    int64_t inner = 36864;
    (void)vision;
    t->merge = 2;
    if (size_of(doc, "downsample_factor", &t->merge, err) ||
        size_of(doc, "alignment_intermediate_size", &inner, err))
        return -1;
    t->side = t->side / t->merge * t->merge;
    t->merge_features = inner / 2 * 2;
    t->merge_bias = t->merge_gated = t->out_bias = 1;
    return 0;
}

static int join_aya(const json_t *doc, const json_t *vision, struct hf_tower *t,
                    struct topt_error *err)
{
    json_t *own = json_copy((json_t *)doc);
    if (own && !topt_json_member(doc, "alignment_intermediate_size"))
        json_object_set_new(own, "alignment_intermediate_size", json_integer(t->out));
    int rc = own ? join_cohere2(own, vision, t, err) : topt_nomem(err, "a config");
    json_decref(own);
    t->joint_norm = 1;
    t->joint_beside = 2 * (t->merge * t->merge - 1);
    return rc;
}

static int join_lfm2(const json_t *doc, const json_t *vision, struct hf_tower *t,
                     struct topt_error *err)
{
    int bias = 1, norm = 1;
    int64_t hidden = 2560;
    (void)vision;
    t->merge = 2;
    if (size_of(doc, "downsample_factor", &t->merge, err) ||
        size_of(doc, "projector_hidden_size", &hidden, err) ||
        topt_json_bool_or(doc, "", "projector_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "projector_use_layernorm", &norm, err))
        return -1;
    t->side = t->side / t->merge * t->merge;
    t->joint_norm = norm;
    t->joint_beside = norm ? 2 * (t->merge * t->merge - 1) : 0;
    t->merge_features = hidden;
    t->merge_bias = t->out_bias = bias;
    t->merge_activated = 1;
    t->activation = TOPT_ACT_GELU_ERF;
    return 0;
}

/* One map of neighbours side by side. */
static int join_idefics3(const json_t *doc, const json_t *vision, struct hf_tower *t,
                         struct topt_error *err)
{
    (void)vision;
    t->merge = 2;
    if (size_of(doc, "scale_factor", &t->merge, err))
        return -1;
    t->side = t->side / t->merge * t->merge;
    t->merge_features = t->out;
    t->merged_out = 1;
    return 0;
}

/* A norm of each patch, neighbours side by side, two maps. */
static int join_kimi(const json_t *doc, const json_t *vision, struct hf_tower *t,
                     struct topt_error *err)
{
    (void)doc, (void)vision, (void)err;
    t->merge = 2;
    t->joint_norm = 1;
    t->merge_features = t->merge * t->merge * t->a.width;
    t->merge_bias = t->merge_activated = t->out_bias = 1;
    t->activation = TOPT_ACT_GELU_ERF;
    return 0;
}

static int join_gemma4(const json_t *doc, const json_t *vision, struct hf_tower *t,
                       struct topt_error *err)
{
    int64_t merge = 3;
    (void)doc;
    if (size_of(vision, "pooling_kernel_size", &merge, err))
        return -1;
    t->merge = merge;
    t->side = t->side / merge * merge;
    t->pooled = 1;
    return 0;
}

/* Outputs of some blocks between stand beside the last, and one map is of all. */
static int join_mllama(const json_t *doc, const json_t *vision, struct hf_tower *t,
                       struct topt_error *err)
{
    int64_t all = 7680;
    (void)doc;
    if (size_of(vision, "vision_output_dim", &all, err))
        return -1;
    if (all < t->a.width)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "vision_output_dim %lld is below hidden_size", (long long)all);
    t->unread += (all - t->a.width) * t->out;
    t->across = t->out_bias = 1;
    return 0;
}

static int join_mistral3(const json_t *doc, const json_t *vision, struct hf_tower *t,
                         struct topt_error *err)
{
    (void)vision;
    t->merge = 2;
    t->joint_norm = t->joint_rms = 1;
    if (size_of(doc, "spatial_merge_size", &t->merge, err))
        return -1;
    t->side = t->side / t->merge * t->merge;
    t->merge_features = t->a.width;
    return two_maps(doc, 0, t, err);
}

static int join_gemma3(const json_t *doc, const json_t *vision, struct hf_tower *t,
                       struct topt_error *err)
{
    int64_t tokens = 256, side = 1;
    (void)vision;
    if (size_of(doc, "mm_tokens_per_image", &tokens, err))
        return -1;
    while (side * side < tokens)
        side++;
    t->merge = t->side / side > 0 ? t->side / side : 1;
    t->pooled = t->joint_norm = t->joint_rms = 1;
    return 0;
}

static int join_paligemma(const json_t *doc, const json_t *vision, struct hf_tower *t,
                          struct topt_error *err)
{
    (void)doc, (void)vision, (void)err;
    t->out_bias = 1;
    return 0;
}

static int join_internvl(const json_t *doc, const json_t *vision, struct hf_tower *t,
                         struct topt_error *err)
{
    double ratio = 0.5;
    (void)vision;
    if (topt_json_real_or(doc, "", "downsample_ratio", 0.01, 1, &ratio, err))
        return -1;
    t->merge = (int64_t)(1 / ratio + 0.5);
    t->side = t->side / t->merge * t->merge;
    t->joint_norm = 1;
    t->joint_beside = 2 * (t->merge * t->merge - 1);
    t->merge_features = t->out;
    t->merge_bias = t->merge_activated = t->out_bias = 1;
    t->activation = TOPT_ACT_GELU_ERF;
    return 0;
}

static int join_llama4(const json_t *doc, const json_t *vision, struct hf_tower *t,
                       struct topt_error *err)
{
    int64_t in = 4096, hidden = 4096;
    (void)doc;
    if (size_of(vision, "projector_input_dim", &in, err) ||
        size_of(vision, "projector_output_dim", &hidden, err))
        return -1;
    t->merge = 2;
    if (t->a.inner != t->merge * t->merge * t->a.width)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "intermediate_size %lld is not four times hidden_size %lld, as "
                         "its adapter needs",
                         (long long)t->a.inner, (long long)t->a.width);
    t->merge_features = in;
    t->merge_activated = 1;
    t->hidden = hidden;
    t->activation = TOPT_ACT_GELU_ERF;
    return 0;
}

/* A projection of both to one width. */
static int join_clip(const json_t *doc, const json_t *vision, struct hf_tower *t,
                     struct topt_error *err)
{
    (void)vision;
    t->out = 512;
    t->scales = 1;
    return size_of(doc, "projection_dim", &t->out, err);
}

/* The text's to the width of the image's, which has none. */
static int join_siglip(const json_t *doc, const json_t *vision, struct hf_tower *t,
                       struct topt_error *err)
{
    (void)doc, (void)vision, (void)err;
    t->out = t->a.width;
    t->scales = 2;
    t->text_bias = 1;
    return 0;
}

static int read_paired_text(const json_t *doc, int causal, struct hf_arch *a,
                            struct topt_error *err)
{
    a->eps = 1e-5;
    a->init_std = 0.02;
    a->context_key = "max_position_embeddings";
    a->qkv_bias = a->out_bias = a->mlp_bias = 1;
    a->bidirectional = !causal;
    const char *name = "gelu";
    if (topt_hf_sizes(doc, topt_hf_usual_sizes, a, err) || topt_hf_set_heads(a, err) ||
        topt_json_string_or(doc, "", "hidden_act", &name, err) ||
        topt_hf_activation_of("hidden_act", name, a, err))
        return -1;
    a->positions = a->usual_seq = a->context;
    topt_hf_note(a, "the loss compares each text with its own image, not with all");
    return 0;
}

int topt_hf_read_clip_text(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return read_paired_text(doc, 1, a, err);
}

int topt_hf_read_siglip_text(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    return read_paired_text(doc, 0, a, err);
}

/* EVA's, and the tokens that read it. */
static int read_blip2(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    int bias = 1;
    if (read_blocks(doc, t, err) || topt_json_bool_or(doc, "", "qkv_bias", &bias, err))
        return -1;
    t->a.qkv_bias = bias;
    t->class_token = t->patch_bias = t->norm_after = 1;
    t->rows = t->side * t->side + 1;
    return 0;
}

/* Means of four tokens, two maps; two vectors stand between parts of an image. */
static int join_phi4(const json_t *doc, const json_t *vision, struct hf_tower *t,
                     struct topt_error *err)
{
    (void)vision;
    t->merge = 2;
    t->side = t->side / t->merge * t->merge;
    t->pooled = 1;
    t->beside += 2;
    return two_maps(doc, 1, t, err);
}

static int join_blip2(const json_t *doc, const json_t *vision, struct hf_tower *t,
                      struct topt_error *err)
{
    json_t *whole =
        topt_hf_complete(topt_json_member(doc, "qformer_config"), "blip_2_qformer", err);
    struct hf_tower q = {0};
    int text = 0;
    (void)vision;
    t->queries = 32;
    t->cross_every = 2;
    t->out_bias = 1;
    int rc =
        !whole || read_blocks(whole, &q, err) ||
        size_of(doc, "num_query_tokens", &t->queries, err) ||
        size_of(whole, "cross_attention_frequency", &t->cross_every, err) ||
        topt_json_bool_or(whole, "qformer_config", "use_qformer_text_input", &text, err);
    json_decref(whole);
    if (rc)
        return topt_wrap(err, "qformer_config");
    if (text || t->queries > 4096)
        return topt_fail(err, TOPT_ERR_INVAL,
                         text
                             ? "qformer_config.use_qformer_text_input is true: no reader "
                               "takes a text there"
                             : "num_query_tokens is above 4096");
    t->q = q.a;
    t->q.norms = HF_POST;
    t->q.activation = TOPT_ACT_GELU_ERF;
    t->q.eps = 1e-12;
    return 0;
}

/* ---- rows -------------------------------------------------------------------------- */

static const struct kind {
    const char *type, *also; /* what the tower's config calls itself */
    int (*read)(const json_t *doc, struct hf_tower *t, struct topt_error *err);
} kinds[] = {{"siglip_vision_model", "siglip", read_siglip},
             {"clip_vision_model", "clip", read_clip},
             {"metaclip_2_vision_model", "metaclip_2", read_clip},
             {"pixtral", "pixtral", read_pixtral},
             {"llama4_vision_model", "llama4", read_clip},
             {"internvl_vision", "internvl_vit", read_internvl},
             {"siglip2_vision_model", "siglip2", read_siglip2},
             {"idefics3_vision", "idefics3", read_idefics3},
             {"smolvlm_vision", "smolvlm", read_idefics3},
             {"mllama_vision_model", "mllama", read_mllama},
             {"moonvit", "kimi_vl", read_moonvit},
             {"intern_vit_6b", "intern_vit", read_intern_vit},
             {"glm4v_vision", "glm4v", read_glm4v},
             {"glm4v_moe_vision", "glm4v_moe", read_glm4v},
             {"gemma4_vision", "gemma4", read_gemma4},
             {"phi4_multimodal_vision", "phi4_multimodal", read_siglip},
             {"blip_2_vision_model", "blip_2", read_blip2},
             {"qwen2_vl_vision", "qwen2_vl", read_qwen2},
             {"qwen2_5_vl_vision", "qwen2_5_vl", read_qwen2_5},
             {"qwen2_5_omni_vision_encoder", "qwen2_5_omni_vision", read_qwen2_5},
             {"qwen3_vl_vision", "qwen3_vl", read_qwen3},
             {"qwen3_vl_moe_vision", "qwen3_vl_moe", read_qwen3},
             {"qwen3_5_vision", "qwen3_5", read_qwen3},
             {"qwen3_5_moe_vision", "qwen3_5_moe", read_qwen3},
             {NULL, NULL, NULL}};

static const struct composite {
    const char *type, *vision;
    int (*join)(const json_t *doc, const json_t *vision, struct hf_tower *t,
                struct topt_error *err);
} composites[] = {{"qwen2_vl", "qwen2_vl_vision", join_qwen},
                  {"qwen2_5_vl", "qwen2_5_vl_vision", join_qwen},
                  {"qwen3_vl", "qwen3_vl_vision", join_qwen},
                  {"qwen3_vl_moe", "qwen3_vl_moe_vision", join_qwen},
                  {"qwen3_5", "qwen3_5_vision", join_qwen},
                  {"qwen3_5_moe", "qwen3_5_moe_vision", join_qwen},
                  {"llava", "clip_vision_model", join_llava},
                  {"llava_next_video", "clip_vision_model", join_llava_next},
                  {"vipllava", "clip_vision_model", join_vipllava},
                  {"deepseek_vl", "siglip_vision_model", join_deepseek_vl},
                  {"cohere2_vision", "siglip_vision_model", join_cohere2},
                  {"aya_vision", "siglip_vision_model", join_aya},
                  {"lfm2_vl", "siglip2_vision_model", join_lfm2},
                  {"idefics3", "idefics3_vision", join_idefics3},
                  {"smolvlm", "smolvlm_vision", join_idefics3},
                  {"mllama", "mllama_vision_model", join_mllama},
                  {"kimi_vl", "moonvit", join_kimi},
                  {"internvl_chat", "intern_vit_6b", join_internvl},
                  {"glm4v", "glm4v_vision", join_qwen},
                  {"glm46v", "glm4v_vision", join_qwen},
                  {"glm4v_moe", "glm4v_moe_vision", join_qwen},
                  {"gemma4", "gemma4_vision", join_gemma4},
                  {"shieldgemma2", "siglip_vision_model", join_gemma3},
                  {"lighton_ocr", "pixtral", join_mistral3},
                  {"llava_next", "clip_vision_model", join_llava_next},
                  {"llava_onevision", "siglip_vision_model", join_llava_next},
                  {"mistral3", "pixtral", join_mistral3},
                  {"gemma3", "siglip_vision_model", join_gemma3},
                  {"paligemma", "siglip_vision_model", join_paligemma},
                  {"internvl", "internvl_vision", join_internvl},
                  {"llama4", "llama4_vision_model", join_llama4},
                  {"qwen2_5_omni_thinker", "qwen2_5_omni_vision_encoder", join_qwen},
                  {"phi4_multimodal", "phi4_multimodal_vision", join_phi4},
                  {"blip-2", "blip_2_vision_model", join_blip2},
                  {"clip", "clip_vision_model", join_clip},
                  {"metaclip_2", "metaclip_2_vision_model", join_clip},
                  {"siglip2", "siglip2_vision_model", join_siglip},
                  {"siglip", "siglip_vision_model", join_siglip},
                  {NULL, NULL, NULL}};

static const struct composite *composite_of(const json_t *doc)
{
    const char *type = json_string_value(topt_json_member(doc, "model_type"));
    const struct composite *c = composites;
    while (c->type && (!type || strcmp(c->type, type)))
        c++;
    return c->type ? c : NULL;
}

static const struct kind *kind_of(const json_t *vision, const struct composite *c)
{
    const char *type = json_string_value(topt_json_member(vision, "model_type"));
    const struct kind *k = kinds;
    type = type ? type : c->vision;
    while (k->type && strcmp(k->type, type) && strcmp(k->also, type))
        k++;
    return k->type ? k : NULL;
}

int topt_hf_has_images(const json_t *doc)
{
    const struct composite *c = composite_of(doc);
    return c && json_is_object(topt_json_member(doc, "vision_config")) &&
           kind_of(topt_json_member(doc, "vision_config"), c);
}

const char *topt_hf_tower_type(const json_t *doc)
{
    const struct composite *c = composite_of(doc);
    return c ? c->vision : NULL;
}

/* A tower that is a model by itself. */
int topt_hf_read_tower_alone(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const char *type = json_string_value(topt_json_member(doc, "model_type"));
    const struct kind *k = kinds;
    while (k->type && (!type || strcmp(k->type, type)))
        k++;
    if (!k->type)
        return topt_fail(err, TOPT_ERR_INVAL, "model_type is no tower's");
    if (k->read(doc, a->own_tower, err))
        return -1;
    a->tower = a->own_tower;
    a->width = a->tower->a.width;
    a->not_run = a->tower->a.not_run;
    a->init_std = a->tower->a.init_std;
    a->context = 1;
    a->context_key = "one position";
    topt_hf_classes(doc, a);
    return 0;
}

int topt_hf_read_tower(const json_t *doc, int64_t width, struct hf_tower *ret,
                       struct topt_error *err)
{
    static const char *const beside[] = {"vocab_size", "head_dim", "global_head_dim"};
    const struct composite *c = composite_of(doc);
    const json_t *vision = topt_json_member(doc, "vision_config");
    const struct kind *k = kind_of(vision, c);
    json_t *whole = topt_hf_complete(vision, k->type, err);
    *ret = (struct hf_tower){.out = width};
    int rc = !whole || k->read(whole, ret, err) || c->join(doc, whole, ret, err);
    for (int i = 0; !rc && i < 3; i++) /* of the text, and what follows from the width */
        (void)topt_json_member(whole, beside[i]);
    if (!rc)
        topt_hf_note_unread(vision, whole, k->type, &ret->a);
    json_decref(whole);
    return rc ? topt_wrap(err, "vision_config") : 0;
}
