/* hf_read_images.c - readers of networks over images that are no single stack: stages of
 * depths and widths; and of ViT's relatives. */
#include "hf_read_images.h"
#include "hf_read.h"
#include "hf_read_encoders.h"
#include "topt_json.h"

#include <string.h>

static void usual(struct hf_arch *a, const int64_t *widths, const int64_t *depths)
{
    a->channels = 3;
    a->image = 224;
    a->eps = 1e-5;
    a->init_std = 0.02;
    a->context = 1;
    a->context_key = "one position";
    for (int i = 0; i < 4; i++) {
        a->stage_width[i] = widths[i];
        a->depth[i] = depths[i];
    }
}

static int read_image(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size optional[] = {HF_SIZE("image_size", image, 1 << 14),
                                              HF_SIZE("patch_size", patch, 1 << 10),
                                              HF_SIZE("num_channels", channels, 1 << 14),
                                              {0}};
    const char *name = NULL;
    if (topt_hf_sizes_or(doc, optional, a, err) ||
        topt_json_string_or(doc, "", "hidden_act", &name, err) ||
        (name && topt_hf_activation_of("hidden_act", name, a, err)))
        return -1;
    a->stages = a->stages ? a->stages : 4;
    topt_hf_classes(doc, a);
    return 0;
}

int topt_hf_read_resnet(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const int64_t widths[] = {256, 512, 1024, 2048}, depths[] = {3, 4, 6, 3};
    static const struct hf_size stem[] = {HF_SIZE("embedding_size", width, HF_MAX_WIDTH),
                                          {0}};
    const char *kind = "bottleneck";
    usual(a, widths, depths);
    a->activation = TOPT_ACT_RELU;
    a->width = 64;
    if (topt_hf_stage_list(doc, "hidden_sizes", HF_MAX_WIDTH, a, a->stage_width, err) ||
        topt_hf_stage_list(doc, "depths", HF_MAX_LAYERS, a, a->depth, err) ||
        topt_hf_sizes_or(doc, stem, a, err) || read_image(doc, a, err) ||
        topt_json_string_or(doc, "", "layer_type", &kind, err) ||
        topt_json_bool_or(doc, "", "downsample_in_first_stage", &a->first_smaller, err) ||
        topt_json_bool_or(doc, "", "downsample_in_bottleneck", &a->stride_early, err))
        return -1;
    a->bottleneck = !strcmp(kind, "bottleneck");
    return a->bottleneck || !strcmp(kind, "basic")
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "layer_type is \"%.40s\", which is not "
                           "known",
                           kind);
}

static int read_convnext(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const int64_t widths[] = {96, 192, 384, 768}, depths[] = {3, 3, 9, 3};
    usual(a, widths, depths);
    a->activation = TOPT_ACT_GELU_ERF;
    a->patch = 4;
    return topt_hf_stage_list(doc, "hidden_sizes", HF_MAX_WIDTH, a, a->stage_width,
                              err) ||
                   topt_hf_stage_list(doc, "depths", HF_MAX_LAYERS, a, a->depth, err) ||
                   read_image(doc, a, err)
               ? -1
               : 0;
}

int topt_hf_read_convnext(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    double scale = 1e-6;
    if (read_convnext(doc, a, err) ||
        topt_json_real_or(doc, "", "layer_scale_init_value", 0, 1e6, &scale, err))
        return -1;
    a->layer_scale = scale > 0;
    return 0;
}

/* In place of a gain of what is added, a norm over all pixels. */
int topt_hf_read_convnextv2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (read_convnext(doc, a, err))
        return -1;
    a->global_norms = 1;
    a->not_run = "norms over all pixels of a feature";
    return 0;
}

int topt_hf_read_swin(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const int64_t none[4] = {0}, depths[] = {2, 2, 6, 2}, heads[] = {3, 6, 12, 24};
    static const struct hf_size sizes[] = {HF_SIZE("embed_dim", width, HF_MAX_WIDTH),
                                           HF_SIZE("window_size", window, 1024),
                                           {0}};
    int bias = 1, absolute = 0;
    double ratio = 4;
    usual(a, none, depths);
    memcpy(a->stage_heads, heads, sizeof heads);
    a->activation = TOPT_ACT_GELU_ERF;
    a->patch = 4;
    a->width = 96;
    a->window = 7;
    if (topt_hf_stage_list(doc, "depths", HF_MAX_LAYERS, a, a->depth, err) ||
        topt_hf_stage_list(doc, "num_heads", HF_MAX_HEADS, a, a->stage_heads, err) ||
        topt_hf_sizes_or(doc, sizes, a, err) || read_image(doc, a, err) ||
        topt_json_bool_or(doc, "", "qkv_bias", &bias, err) ||
        topt_json_bool_or(doc, "", "use_absolute_embeddings", &absolute, err) ||
        topt_json_real_or(doc, "", "mlp_ratio", 1, 64, &ratio, err))
        return -1;
    a->qkv_bias = bias;
    a->inner = (int64_t)ratio;
    a->not_run = "windows of an image";
    for (int64_t s = 0; s < a->stages; s++)
        if ((a->width << s) % a->stage_heads[s])
            return topt_fail(err, TOPT_ERR_INVAL,
                             "embed_dim %lld by stages is not a multiple of num_heads",
                             (long long)a->width);
    if (a->image % a->patch)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "image_size %lld is not a multiple of "
                         "patch_size %lld",
                         (long long)a->image, (long long)a->patch);
    a->positions = absolute ? a->image / a->patch * (a->image / a->patch) : 0;
    return 0;
}

/* ---- ViT's relatives --------------------------------------------------------------- */

int topt_hf_read_vit_bare(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_vit(doc, a, err))
        return -1;
    a->pooler = 0;
    return 0;
}

/* Trained positions of no patch behind the class. */
int topt_hf_read_dinov2_registers(const json_t *doc, struct hf_arch *a,
                                  struct topt_error *err)
{
    a->registers = 4;
    int64_t n = 4;
    if (topt_json_int_or(doc, "", "num_register_tokens", 0, 64, &n, err) ||
        topt_hf_read_dinov2(doc, a, err))
        return -1;
    a->registers = n;
    return 0;
}

/* Keys have no bias; each half of a block has a gain; classes are of the mean, with a norm
 * of its own, unless they are of the first; tables of relative positions, if any, are each
 * layer's. */
int topt_hf_read_beit(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { SPECIAL = 3 };
    double scale = 0.1;
    int absolute = 0, mask = 0, mean = 1, each = 0, shared = 0;
    if (topt_hf_read_vit(doc, a, err) ||
        topt_json_real_or(doc, "", "layer_scale_init_value", 0, 1e6, &scale, err) ||
        topt_json_bool_or(doc, "", "use_absolute_position_embeddings", &absolute, err) ||
        topt_json_bool_or(doc, "", "use_mask_token", &mask, err) ||
        topt_json_bool_or(doc, "", "use_mean_pooling", &mean, err) ||
        topt_json_bool_or(doc, "", "use_relative_position_bias", &each, err) ||
        topt_json_bool_or(doc, "", "use_shared_relative_position_bias", &shared, err))
        return -1;
    a->pooler = 0;
    a->qkv_bias = a->no_key_bias = 1;
    a->layer_scale = scale > 0;
    a->no_positions = !absolute;
    a->mask_token = mask;
    if (shared)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "use_shared_relative_position_bias is true: a table that all "
                         "layers read is not read here");
    if (each) {
        int64_t side = 2 * (a->image / a->patch) - 1;
        a->relative_each = 1;
        a->buckets = side * side + SPECIAL;
        a->distance = 2 * a->buckets;
        a->not_run = "positions of two dimensions relative to each other";
    }
    return 0;
}

/* Positions are turned; which projections have biases is said one by one. */
int topt_hf_read_dinov3(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int query = 1, key = 0, value = 1, out = 1, mlp = 1, gated = 0;
    int64_t n = 0;
    if (topt_hf_read_vit(doc, a, err) ||
        topt_json_bool_or(doc, "", "query_bias", &query, err) ||
        topt_json_bool_or(doc, "", "key_bias", &key, err) ||
        topt_json_bool_or(doc, "", "value_bias", &value, err) ||
        topt_json_bool_or(doc, "", "proj_bias", &out, err) ||
        topt_json_bool_or(doc, "", "mlp_bias", &mlp, err) ||
        topt_json_bool_or(doc, "", "use_gated_mlp", &gated, err) ||
        topt_json_int_or(doc, "", "num_register_tokens", 0, 64, &n, err))
        return -1;
    if (query != value)
        return topt_fail(err, TOPT_ERR_INVAL, "query_bias and value_bias differ");
    a->registers = n;
    a->pooler = 0;
    a->qkv_bias = query;
    a->no_key_bias = !key;
    a->out_bias = out;
    a->mlp_bias = mlp;
    a->gated = gated;
    a->activation = gated ? TOPT_ACT_SILU : a->activation;
    a->layer_scale = a->mask_token = a->no_positions = 1;
    a->not_run = "positions of two dimensions that are turned";
    return 0;
}
