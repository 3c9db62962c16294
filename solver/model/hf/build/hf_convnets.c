/* hf_convnets.c - MobileNet (Howard et al., 2017; Sandler et al., 2018), EfficientNet (Tan
 * and Le, 2019), RegNet (Radosavovic et al., 2020) and SegFormer (Xie et al., 2021).
 *
 * The first three are one network: stages of layers that widen an image, look at each
 * channel by itself, perhaps weigh the channels by what all pixels say, and narrow it. */
#include "hf_convnets.h"
#include "hf_build.h"
#include "hf_heads.h"
#include "hf_parts.h"
#include "hf_read.h"
#include "model_graph.h"
#include "topt_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- parts ------------------------------------------------------------------------- */

static int channels_of(const struct hf_builder *b, int x)
{
    return x < 0 ? 1 : (int)(b->m->tensor[x].dim[1].count * b->m->tensor[x].dim[1].unit);
}

static int activated(struct hf_builder *b, int x, const char *name)
{
    struct topt_attrs act = {.activation = b->a->activation};
    if (act.activation == TOPT_ACT_CLIP)
        act.beta = 6;
    return topt_hf_add(b, "unary", x, -1, &act, "%s.activation", name);
}

/* A convolution of so many channels a group, 'groups' 0: of all; its norm, perhaps an
 * activation. */
static int normed(struct hf_builder *b, int x, int64_t features, int64_t unit,
                  struct topt_attrs conv, int active, const char *name)
{
    struct topt_attrs eps = {.eps = b->a->eps};
    conv.init_std = b->a->init_std;
    conv.features = features;
    conv.features_unit = unit;
    x = topt_hf_add(b, features ? "conv" : "conv_grouped", x, -1, &conv, "%s", name);
    x = topt_hf_add(b, "batch_norm", x, -1, &eps, "%s.norm", name);
    return active ? activated(b, x, name) : x;
}

/* Channels times what a narrow network makes of their means. */
static int squeezed(struct hf_builder *b, int x, int64_t narrow)
{
    if (x < 0)
        return x;
    struct topt_dim d = b->m->tensor[x].dim[1];
    int g = topt_hf_add(b, "global_pool", x, -1, NULL, "squeeze");
    g = topt_hf_linear(b, g, narrow, 1, 1, "squeeze.in");
    g = activated(b, g, "squeeze");
    g = topt_hf_linear(b, g, d.count, d.unit, 1, "squeeze.out");
    g = topt_hf_unary(b, g, TOPT_ACT_SIGMOID, "squeeze.gate");
    return topt_hf_add(b, "weigh", x, g, NULL, "squeezed");
}

static void end(struct hf_builder *b, int x)
{
    x = topt_hf_add(b, "global_pool", x, -1, NULL, "mean");
    if (b->a->head == HF_BARE)
        topt_hf_add(b, "mse", x, -1, NULL, "loss");
    else
        topt_hf_classifier(b, x);
}

static void name_layer(struct hf_builder *b, char *prefix, size_t size, int stage,
                       int64_t layer)
{
    snprintf(prefix, size, "s%d.h%d.", stage, (int)layer);
    b->prefix = prefix;
}

/* All stages; 'layer' builds one, the first of its stage or not.  In transformers' code
 * stages ('by_stage') or layers are the model's list. */
static int stages_of(struct hf_builder *b, int x, int by_stage,
                     int (*layer)(struct hf_builder *, int x, int stage, int first))
{
    const struct hf_arch *a = b->a;
    char prefix[40];
    for (int s = 0; s < a->stages; s++)
        for (int64_t i = 0; i < a->depth[s] && !b->failed; i++) {
            name_layer(b, prefix, sizeof prefix, s, i);
            if (!i || !by_stage)
                topt_hf_next_layer(b);
            x = layer(b, x, s, !i);
        }
    topt_hf_no_layer(b);
    b->prefix = "";
    return x;
}

/* ---- MobileNet, EfficientNet ------------------------------------------------------- */

static int64_t whole(double channels, int64_t divisor, int64_t least)
{
    int64_t n = (int64_t)(channels + (double)divisor / 2) / divisor * divisor;
    n = n < least ? least : n;
    return (double)n < 0.9 * channels ? n + divisor : n;
}

/* 'times' 0: channel by channel, then across, both active; else wide inside, the last
 * one not active, and added to what came in where that is of its shape. */
static int mobile_layer(struct hf_builder *b, int x, int stage, int first)
{
    const struct hf_arch *a = b->a;
    int64_t in = channels_of(b, x), out = a->stage_width[stage], wide = in;
    int64_t times = a->stage_times[stage], stride = first ? a->stage_stride[stage] : 1;
    int y = x;
    if (times > 1) {
        wide =
            a->project ? whole((double)(in * times), a->project, a->project) : in * times;
        y = normed(b, y, wide, 1, topt_hf_same_window(1, 1), 1, "wide");
    }
    y = normed(b, y, 0, 1, topt_hf_same_window(a->stage_kernel[stage], stride), 1,
               "each");
    if (a->squeeze > 0) {
        int64_t narrow = (int64_t)((double)in * a->squeeze);
        y = squeezed(b, y, narrow < 1 ? 1 : narrow);
    }
    y = normed(b, y, out, 1, topt_hf_same_window(1, 1), !times, "across");
    int direct = times && stride == 1 && in == out && (!first || !a->first_smaller);
    return direct ? topt_hf_add(b, "add", x, y, NULL, "add") : y;
}

void topt_hf_build_mobile(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    int x = normed(b, topt_hf_input_image(b), a->width, 1, topt_hf_same_window(3, 2), 1,
                   "stem");
    x = stages_of(b, x, 0, mobile_layer);
    if (a->last_width)
        x = normed(b, x, a->last_width, 1, topt_hf_same_window(1, 1), 1, "last");
    end(b, x);
}

static int read_common(const json_t *doc, int64_t image, double eps, struct hf_arch *a,
                       struct topt_error *err)
{
    const char *name = NULL;
    a->channels = 3;
    a->image = image;
    a->eps = eps;
    a->init_std = 0.02;
    a->context = 1;
    a->context_key = "one position";
    a->activation = TOPT_ACT_CLIP;
    topt_hf_classes(doc, a);
    return topt_json_int_or(doc, "", "image_size", 1, 1 << 14, &a->image, err) ||
                   topt_json_int_or(doc, "", "num_channels", 1, 1 << 14, &a->channels,
                                    err) ||
                   topt_json_string_or(doc, "", "hidden_act", &name, err) ||
                   (name && strcmp(name, "relu6") &&
                    topt_hf_activation_of("hidden_act", name, a, err))
               ? -1
               : 0;
}

static void stage(struct hf_arch *a, int64_t width, int64_t depth, int64_t kernel,
                  int64_t stride, int64_t times)
{
    int64_t s = a->stages++;
    a->stage_width[s] = width;
    a->depth[s] = depth;
    a->stage_kernel[s] = kernel;
    a->stage_stride[s] = stride;
    a->stage_times[s] = times;
}

int topt_hf_read_mobilenet_v1(const json_t *doc, struct hf_arch *a,
                              struct topt_error *err)
{
    static const int64_t depth[] = {1, 2, 2, 6, 2};
    double times = 1;
    int64_t least = 8;
    if (read_common(doc, 224, 1e-3, a, err) ||
        topt_json_real_or(doc, "", "depth_multiplier", 1e-3, 64, &times, err) ||
        topt_json_int_or(doc, "", "min_depth", 1, 1 << 16, &least, err))
        return -1;
    for (int s = 0; s < 6; s++) {
        int64_t n = (int64_t)((double)(32 << s) * times);
        n = n < least ? least : n;
        if (!s)
            a->width = n;
        else
            stage(a, n, depth[s - 1], 3, s > 1 ? 2 : 1, 0);
    }
    return 0;
}

int topt_hf_read_mobilenet_v2(const json_t *doc, struct hf_arch *a,
                              struct topt_error *err)
{
    static const int64_t width[] = {16, 24, 32, 64, 96, 160, 320},
                         depth[] = {1, 2, 3, 4, 3, 3, 1},
                         stride[] = {1, 2, 2, 2, 1, 2, 1};
    double factor = 1, wide = 6;
    int64_t divisor = 8, least = 8, smallest = 32, so_far = 2;
    int fine = 1;
    if (read_common(doc, 224, 1e-3, a, err) ||
        topt_json_real_or(doc, "", "depth_multiplier", 1e-3, 64, &factor, err) ||
        topt_json_real_or(doc, "", "expand_ratio", 1, 64, &wide, err) ||
        topt_json_int_or(doc, "", "depth_divisible_by", 1, 1024, &divisor, err) ||
        topt_json_int_or(doc, "", "min_depth", 1, 1 << 16, &least, err) ||
        topt_json_int_or(doc, "", "output_stride", 1, 64, &smallest, err) ||
        topt_json_bool_or(doc, "", "finegrained_output", &fine, err) ||
        topt_hf_refuse_flag(doc, "first_layer_is_expansion", 1,
                            "no reader takes the first layer widened", err))
        return -1;
    a->project = divisor;
    a->width = whole(round(32 * factor), divisor, least);
    for (int s = 0; s < 7; s++) {
        int64_t step = so_far < smallest ? stride[s] : 1;
        so_far *= step;
        stage(a, whole(round((double)width[s] * factor), divisor, least), depth[s], 3,
              step, s ? (int64_t)wide : 1);
    }
    a->last_width =
        fine && factor < 1 ? 1280 : whole(round(1280 * factor), divisor, least);
    return 0;
}

/* Real ones have under a hundred layers, and each is a block that is looked for among the
 * others. */
static int check_depth(const struct hf_arch *a, struct topt_error *err)
{
    enum { MOST = 256 };
    int64_t sum = 0;
    for (int64_t s = 0; s < a->stages; s++)
        sum += a->depth[s];
    return sum <= MOST
               ? 0
               : topt_fail(err, TOPT_ERR_LIMIT, "it has %lld layers, more than %d",
                           (long long)sum, MOST);
}

int topt_hf_read_efficientnet(const json_t *doc, struct hf_arch *a,
                              struct topt_error *err)
{
    static const int64_t width[] = {16, 24, 40, 80, 112, 192, 320},
                         depth[] = {1, 2, 2, 3, 3, 4, 1},
                         kernel[] = {3, 3, 5, 3, 5, 5, 3},
                         stride[] = {1, 2, 2, 2, 1, 2, 1},
                         times[] = {1, 6, 6, 6, 6, 6, 6};
    double wide = 2, deep = 3.1;
    int64_t divisor = 8, said = 0; /* of the last width, which follows from the first */
    for (int s = 0; s < 7; s++)
        stage(a, width[s], depth[s], kernel[s], stride[s], times[s]);
    a->squeeze = 0.25;
    a->last_width = 2560;
    if (read_common(doc, 600, 1e-3, a, err) ||
        topt_json_real_or(doc, "", "batch_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_hf_stage_list(doc, "out_channels", 1 << 16, a, a->stage_width, err) ||
        topt_hf_stage_list(doc, "num_block_repeats", 256, a, a->depth, err) ||
        topt_hf_stage_list(doc, "kernel_sizes", 255, a, a->stage_kernel, err) ||
        topt_hf_stage_list(doc, "strides", 16, a, a->stage_stride, err) ||
        topt_hf_stage_list(doc, "expand_ratios", 64, a, a->stage_times, err) ||
        topt_json_real_or(doc, "", "width_coefficient", 1e-3, 64, &wide, err) ||
        topt_json_real_or(doc, "", "depth_coefficient", 1e-3, 64, &deep, err) ||
        topt_json_real_or(doc, "", "squeeze_expansion_ratio", 0, 64, &a->squeeze, err) ||
        topt_json_int_or(doc, "", "hidden_dim", 1, 1 << 20, &said, err) ||
        topt_json_int_or(doc, "", "depth_divisor", 1, 1024, &divisor, err))
        return -1;
    if (!topt_json_member(doc, "hidden_act"))
        a->activation = TOPT_ACT_SILU;
    a->width = whole(32 * wide, divisor, divisor);
    a->last_width = whole(1280 * wide, divisor, divisor);
    a->first_smaller = 1; /* a stage's first layer is not added to what came in */
    for (int64_t s = 0; s < a->stages; s++) {
        a->stage_width[s] = whole((double)a->stage_width[s] * wide, divisor, divisor);
        a->depth[s] = (int64_t)ceil(deep * (double)a->depth[s]);
    }
    return check_depth(a, err);
}

/* ---- RegNet ------------------------------------------------------------------------ */

static int regnet_layer(struct hf_builder *b, int x, int stage_, int first)
{
    const struct hf_arch *a = b->a;
    int64_t out = a->stage_width[stage_], in = channels_of(b, x), each = a->groups;
    int64_t stride = first ? a->stage_stride[stage_] : 1;
    each = each < out ? each : out;
    int y = normed(b, x, out / each, each, topt_hf_same_window(1, 1), 1, "across");
    y = normed(b, y, 0, each, topt_hf_same_window(3, stride), 1, "groups");
    if (a->squeeze > 0)
        y = squeezed(b, y, (int64_t)round((double)in * a->squeeze));
    y = normed(b, y, out, 1, topt_hf_same_window(1, 1), 0, "last");
    x = in == out && stride == 1
            ? x
            : normed(b, x, out, 1, topt_hf_same_window(1, stride), 0, "shortcut");
    return activated(b, topt_hf_add(b, "add", x, y, NULL, "add"), "add");
}

void topt_hf_build_regnet(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    int x = normed(b, topt_hf_input_image(b), a->width, 1, topt_hf_same_window(3, 2), 1,
                   "stem");
    x = stages_of(b, x, 1, regnet_layer);
    end(b, x);
}

int topt_hf_read_regnet(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const int64_t width[] = {128, 192, 512, 1088}, depth[] = {2, 6, 12, 2};
    const char *kind = "y";
    int smaller = 1;
    for (int s = 0; s < 4; s++)
        stage(a, width[s], depth[s], 3, 2, 1);
    a->width = 32;
    a->groups = 64;
    if (read_common(doc, 224, 1e-5, a, err) ||
        topt_hf_stage_list(doc, "hidden_sizes", 1 << 16, a, a->stage_width, err) ||
        topt_hf_stage_list(doc, "depths", 256, a, a->depth, err) ||
        topt_json_int_or(doc, "", "embedding_size", 1, 1 << 16, &a->width, err) ||
        topt_json_int_or(doc, "", "groups_width", 1, 1 << 16, &a->groups, err) ||
        topt_json_bool_or(doc, "", "downsample_in_first_stage", &smaller, err) ||
        topt_json_string_or(doc, "", "layer_type", &kind, err))
        return -1;
    if (!topt_json_member(doc, "hidden_act"))
        a->activation = TOPT_ACT_RELU;
    a->stage_stride[0] = smaller ? 2 : 1;
    a->squeeze = strcmp(kind, "y") ? 0 : 0.25;
    for (int64_t s = 0; s < a->stages; s++)
        if (a->stage_width[s] > a->groups && a->stage_width[s] % a->groups)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "hidden_sizes[%d] is not a multiple of groups_width %lld",
                             (int)s, (long long)a->groups);
    return check_depth(a, err);
}

/* ---- SegFormer --------------------------------------------------------------------- */

static int map_of(struct hf_builder *b, int x, int64_t features, struct topt_attrs conv,
                  const char *name)
{
    conv.features = features;
    conv.init_std = b->a->init_std;
    x = topt_hf_add(b, "conv", x, -1, &conv, "%s", name);
    return topt_hf_add(b, "bias", x, -1, NULL, "%s.bias", name);
}

/* Attention to fewer pixels than there are queries. */
static int attention_of_fewer(struct hf_builder *b, int x, int stage_, int64_t side)
{
    const struct hf_arch *a = b->a;
    int64_t fewer = a->stage_fewer[stage_], heads = a->stage_heads[stage_],
            width = a->stage_width[stage_];
    struct topt_attrs attrs = {
        .heads = heads, .kv_heads = heads, .head_dim = width / heads};
    struct topt_attrs blocks = topt_attrs_window(fewer, fewer, 0);
    int keys = x, q = topt_hf_linear(b, x, heads, width / heads, 1, "q");
    if (fewer > 1) {
        keys = map_of(b, topt_hf_as_image(b, x, side, "fewer.image"), width, blocks,
                      "fewer");
        keys = topt_hf_norm(b, topt_hf_add(b, "tokens", keys, -1, NULL, "fewer.tokens"),
                            "fewer.norm");
    }
    int k = topt_hf_linear(b, keys, heads, width / heads, 1, "k");
    int v = topt_hf_linear(b, keys, heads, width / heads, 1, "v");
    x = topt_hf_add(b, "attention", q, topt_hf_add(b, "concat", k, v, NULL, "kv"), &attrs,
                    "attend");
    return topt_hf_linear(b, x, width, 1, 1, "out");
}

static int segformer_layer(struct hf_builder *b, int x, int stage_, int64_t side)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs each = topt_hf_same_window(3, 1);
    int y = attention_of_fewer(b, topt_hf_norm(b, x, "norm1"), stage_, side);
    each.features_unit = 1;
    x = topt_hf_add(b, "add", x, y, NULL, "add1");
    y = topt_hf_linear(b, topt_hf_norm(b, x, "norm2"),
                       a->stage_times[stage_] * a->stage_width[stage_], 1, 1, "up");
    y = topt_hf_add(b, "conv_grouped", topt_hf_as_image(b, y, side, "image"), -1, &each,
                    "each");
    y = topt_hf_add(b, "bias", y, -1, NULL, "each.bias");
    y = topt_hf_add(b, "tokens", y, -1, NULL, "tokens");
    y = topt_hf_unary(b, y, a->activation, "activation");
    y = topt_hf_linear(b, y, a->stage_width[stage_], 1, 1, "down");
    return topt_hf_add(b, "add", x, y, NULL, "add2");
}

/* Classes of each pixel of the largest stage, from all of them. */
static void each_pixel(struct hf_builder *b, const int *made, const int64_t *side)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs grid = {.height = side[0], .width = side[0], .linear = 1},
                      eps = {.eps = 1e-5}, relu = {.activation = TOPT_ACT_RELU},
                      one = topt_hf_same_window(1, 1);
    int all = -1;
    char name[40];
    for (int s = (int)a->stages - 1; s >= 0; s--) {
        snprintf(name, sizeof name, "decode%d", s);
        topt_hf_next_layer(b);
        int y = topt_hf_linear(b, made[s], a->project, 1, 1, name);
        topt_hf_no_layer(b);
        snprintf(name, sizeof name, "decode%d.image", s);
        y = topt_hf_as_image(b, y, side[s], name);
        if (s)
            y = topt_hf_add(b, "resize", y, -1, &grid, "decode%d.larger", s);
        all = all < 0
                  ? y
                  : topt_hf_add(b, "concat_counts", all, y, NULL, "decode%d.beside", s);
    }
    one.features = a->project;
    one.init_std = a->init_std;
    int x = topt_hf_add(b, "conv", all, -1, &one, "decode");
    x = topt_hf_add(b, "batch_norm", x, -1, &eps, "decode.norm");
    x = topt_hf_add(b, "unary", x, -1, &relu, "decode.activation");
    x = topt_hf_add(b, "tokens", x, -1, NULL, "decode.tokens");
    topt_hf_classifier(b, x);
}

void topt_hf_build_segformer(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs mean = {.mean = 1};
    int64_t side[HF_MAX_STAGES], from = a->image;
    int made[HF_MAX_STAGES], x = topt_hf_input_image(b);
    char prefix[40];
    for (int s = 0; s < a->stages && !b->failed; s++) {
        snprintf(prefix, sizeof prefix, "s%d.", s);
        b->prefix = prefix;
        topt_hf_next_layer(b);
        side[s] = from = (from - 1) / a->stage_stride[s] + 1;
        x = map_of(b, x, a->stage_width[s],
                   topt_hf_same_window(a->stage_kernel[s], a->stage_stride[s]),
                   "patches");
        x = topt_hf_norm(b, topt_hf_add(b, "tokens", x, -1, NULL, "tokens"),
                         "patches.norm");
        for (int64_t i = 0; i < a->depth[s] && !b->failed; i++) {
            name_layer(b, prefix, sizeof prefix, s, i);
            x = segformer_layer(b, x, s, side[s]);
        }
        snprintf(prefix, sizeof prefix, "s%d.", s);
        b->prefix = prefix;
        made[s] = x = topt_hf_norm(b, x, "norm");
        if (s + 1 < a->stages)
            x = topt_hf_as_image(b, x, side[s], "image");
    }
    topt_hf_no_layer(b);
    b->prefix = "";
    if (b->failed)
        return;
    if (a->head == HF_EACH_PIXEL) {
        each_pixel(b, made, side);
        return;
    }
    x = topt_hf_add(b, "reduce_sequence", x, -1, &mean, "mean");
    if (a->head == HF_BARE)
        topt_hf_add(b, "mse", x, -1, NULL, "loss");
    else
        topt_hf_classifier(b, x);
}

int topt_hf_read_segformer(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const int64_t width[] = {32, 64, 160, 256}, kernel[] = {7, 3, 3, 3},
                         stride[] = {4, 2, 2, 2}, heads[] = {1, 2, 5, 8},
                         fewer[] = {8, 4, 2, 1};
    for (int s = 0; s < 4; s++) {
        stage(a, width[s], 2, kernel[s], stride[s], 4);
        a->stage_heads[s] = heads[s];
        a->stage_fewer[s] = fewer[s];
    }
    a->project = 256;
    if (read_common(doc, 512, 1e-6, a, err) ||
        topt_hf_stage_list(doc, "hidden_sizes", 1 << 16, a, a->stage_width, err) ||
        topt_hf_stage_list(doc, "depths", 256, a, a->depth, err) ||
        topt_hf_stage_list(doc, "patch_sizes", 255, a, a->stage_kernel, err) ||
        topt_hf_stage_list(doc, "strides", 16, a, a->stage_stride, err) ||
        topt_hf_stage_list(doc, "num_attention_heads", HF_MAX_HEADS, a, a->stage_heads,
                           err) ||
        topt_hf_stage_list(doc, "sr_ratios", 64, a, a->stage_fewer, err) ||
        topt_hf_stage_list(doc, "mlp_ratios", 64, a, a->stage_times, err) ||
        topt_json_int_or(doc, "", "decoder_hidden_size", 1, 1 << 16, &a->project, err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err))
        return -1;
    if (!topt_json_member(doc, "hidden_act"))
        a->activation = TOPT_ACT_GELU_ERF;
    for (int64_t s = 0; s < a->stages; s++)
        if (a->stage_width[s] % a->stage_heads[s])
            return topt_fail(err, TOPT_ERR_INVAL,
                             "hidden_sizes[%d] is not a multiple of its heads", (int)s);
    return check_depth(a, err);
}
