/* hf_images.c - networks of stages over ever smaller images: ResNet, ConvNeXt, Swin. */
#include "hf_images.h"
#include "hf_build.h"
#include "hf_heads.h"
#include "hf_parts.h"
#include "model_graph.h"

#include <stdio.h>

/* Convolution of so many channels by windows of 'kernel' each 'stride' pixels. */
static int windows(struct hf_builder *b, int x, int64_t features, int64_t kernel,
                   int64_t stride, int64_t pad, const char *name)
{
    struct topt_attrs attrs = topt_attrs_window(kernel, stride, pad);
    attrs.features = features;
    attrs.init_std = b->a->init_std;
    return topt_hf_add(b, "conv", x, -1, &attrs, "%s", name);
}

static int biased(struct hf_builder *b, int x, const char *name)
{
    return topt_hf_add(b, "bias", x, -1, NULL, "%s.bias", name);
}

/* Classes of the features 'x', or the bare model's output. */
static void end(struct hf_builder *b, int x)
{
    if (b->a->head == HF_BARE)
        topt_hf_add(b, "mse", x, -1, NULL, "loss");
    else
        topt_hf_classifier(b, x);
}

/* ---- ResNet (He et al., 2016) ------------------------------------------------------ */

static int normed_conv(struct hf_builder *b, int x, int64_t features, int64_t kernel,
                       int64_t stride, int activated, const char *name)
{
    struct topt_attrs eps = {.eps = 1e-5}, act = {.activation = b->a->activation};
    x = windows(b, x, features, kernel, stride, kernel / 2, name);
    x = topt_hf_add(b, "batch_norm", x, -1, &eps, "%s.norm", name);
    return activated ? topt_hf_add(b, "unary", x, -1, &act, "%s.activation", name) : x;
}

static int residual_layer(struct hf_builder *b, int x, int64_t in, int64_t out,
                          int64_t stride)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs act = {.activation = a->activation};
    int y, direct = in == out && stride == 1;
    if (a->bottleneck) {
        int64_t narrow = out / 4;
        y = normed_conv(b, x, narrow, 1, a->stride_early ? stride : 1, 1, "reduce");
        y = normed_conv(b, y, narrow, 3, a->stride_early ? 1 : stride, 1, "window");
        y = normed_conv(b, y, out, 1, 1, 0, "expand");
    } else {
        y = normed_conv(b, x, out, 3, stride, 1, "first");
        y = normed_conv(b, y, out, 3, 1, 0, "second");
    }
    x = direct ? x : normed_conv(b, x, out, 1, stride, 0, "shortcut");
    x = topt_hf_add(b, "add", x, y, NULL, "add");
    return topt_hf_add(b, "unary", x, -1, &act, "activation");
}

/* The stage's layers, the first of which makes the image smaller. */
static int each_layer(struct hf_builder *b, int x, int stage, int64_t in, int64_t stride)
{
    const struct hf_arch *a = b->a;
    char prefix[40];
    topt_hf_next_layer(b); /* stages are the model's list, here and below */
    for (int64_t i = 0; i < a->depth[stage] && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "s%d.h%d.", stage, (int)i);
        b->prefix = prefix;
        x = residual_layer(b, x, i ? a->stage_width[stage] : in, a->stage_width[stage],
                           i ? 1 : stride);
    }
    topt_hf_no_layer(b);
    b->prefix = "";
    return x;
}

void topt_hf_build_resnet(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs pool = topt_hf_same_window(3, 2);
    int x = normed_conv(b, topt_hf_input_image(b), a->width, 7, 2, 1, "stem");
    x = topt_hf_add(b, "pool", x, -1, &pool, "pool");
    int64_t in = a->width;
    for (int s = 0; s < a->stages; s++) {
        x = each_layer(b, x, s, in, s || a->first_smaller ? 2 : 1);
        in = a->stage_width[s];
    }
    end(b, topt_hf_add(b, "global_pool", x, -1, NULL, "mean"));
}

/* ---- ConvNeXt (Liu et al., 2022; Woo et al., 2023) ---------------------------------- */

static int named_norm(struct hf_builder *b, int x, const char *name)
{
    struct topt_attrs attrs = {.eps = 1e-6};
    return topt_hf_add(b, "norm", x, -1, &attrs, "%s", name);
}

/* 'x' is [samples, pixels, features]; the second version has a gain and a shift of what
 * is normed over all pixels. */
static int convnext_layer(struct hf_builder *b, int x, int64_t width, int64_t side)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs each = {.features = width, .features_unit = 1};
    struct topt_attrs deep = topt_hf_same_window(7, 1);
    deep.features_unit = 1;
    deep.init_std = a->init_std;
    int y = topt_hf_as_image(b, topt_hf_add(b, "regroup", x, -1, &each, "each"), side,
                             "image");
    y = biased(b, topt_hf_add(b, "conv_grouped", y, -1, &deep, "window"), "window");
    y = topt_hf_add(b, "tokens", y, -1, NULL, "tokens");
    y = named_norm(b, y, "norm");
    y = topt_hf_linear(b, y, 4 * width, 1, 1, "up");
    y = topt_hf_unary(b, y, a->activation, "activation");
    if (a->global_norms) {
        y = topt_hf_add(b, "gain", y, -1, NULL, "global.gain");
        y = biased(b, y, "global");
    }
    y = topt_hf_linear(b, y, width, 1, 1, "down");
    y = a->layer_scale ? topt_hf_add(b, "gain", y, -1, NULL, "scale") : y;
    return topt_hf_add(b, "add", x, y, NULL, "add");
}

void topt_hf_build_convnext(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs mean = {.mean = 1};
    int64_t side = a->image / a->patch;
    char prefix[40];
    int x = windows(b, topt_hf_input_image(b), a->stage_width[0], a->patch, a->patch, 0,
                    "patches");
    x = topt_hf_add(b, "tokens", biased(b, x, "patches"), -1, NULL, "tokens");
    x = named_norm(b, x, "patches.norm");
    for (int s = 0; s < a->stages && !b->failed; s++) {
        topt_hf_next_layer(b);
        if (s) {
            snprintf(prefix, sizeof prefix, "s%d.", s);
            b->prefix = prefix;
            x = topt_hf_as_image(b, named_norm(b, x, "smaller.norm"), side,
                                 "smaller.image");
            x = biased(b, windows(b, x, a->stage_width[s], 2, 2, 0, "smaller"),
                       "smaller");
            x = topt_hf_add(b, "tokens", x, -1, NULL, "smaller.tokens");
            side /= 2;
        }
        for (int64_t i = 0; i < a->depth[s] && !b->failed; i++) {
            snprintf(prefix, sizeof prefix, "s%d.h%d.", s, (int)i);
            b->prefix = prefix;
            x = convnext_layer(b, x, a->stage_width[s], side);
        }
    }
    topt_hf_no_layer(b);
    b->prefix = "";
    x = topt_hf_add(b, "reduce_sequence", x, -1, &mean, "mean");
    end(b, named_norm(b, x, "norm"));
}

/* ---- Swin (Liu et al., 2021) -------------------------------------------------------- */

/* Attention within windows, which costs what runs of twice as many positions do under a
 * causal mask. */
static int windowed(struct hf_builder *b, int x, int64_t width, int64_t heads)
{
    const struct hf_arch *a = b->a;
    int64_t seen = a->window * a->window, each = width / heads;
    struct topt_attrs table = {.vocab = (2 * a->window - 1) * (2 * a->window - 1),
                               .features = heads};
    struct topt_attrs attrs = {.heads = heads,
                               .kv_heads = heads,
                               .head_dim = each,
                               .causal = 1,
                               .chunk = 2 * seen - 1};
    int t = topt_hf_add(b, "variable", -1, -1, &table, "relative");
    int q = topt_hf_linear(b, x, heads, each, a->qkv_bias, "q");
    int k = topt_hf_linear(b, x, heads, each, a->qkv_bias, "k");
    int v = topt_hf_linear(b, x, heads, each, a->qkv_bias, "v");
    int kv = topt_hf_add(b, "concat", k, v, NULL, "kv");
    x = topt_hf_attend(b, (int[]){q, kv, -1, t}, &attrs);
    return topt_hf_linear(b, x, width, 1, 1, "out");
}

static int swin_layer(struct hf_builder *b, int x, int64_t width, int64_t heads)
{
    const struct hf_arch *a = b->a;
    int y = windowed(b, topt_hf_norm(b, x, "norm1"), width, heads);
    x = topt_hf_add(b, "add", x, y, NULL, "add1");
    y = topt_hf_linear(b, topt_hf_norm(b, x, "norm2"), a->inner * width, 1, 1, "up");
    y = topt_hf_unary(b, y, a->activation, "activation");
    y = topt_hf_linear(b, y, width, 1, 1, "down");
    return topt_hf_add(b, "add", x, y, NULL, "add2");
}

/* Four neighbours become one of twice the width, after a norm of all of them. */
static int merged(struct hf_builder *b, int x, int64_t width, int64_t side)
{
    struct topt_attrs more = {.extra = 6}; /* of the norm of four */
    x = topt_hf_add(b, "beside", topt_hf_norm(b, x, "merge.norm"), -1, &more,
                    "merge.norm.more");
    x = windows(b, topt_hf_as_image(b, x, side, "merge.image"), 2 * width, 2, 2, 0,
                "merge");
    return topt_hf_add(b, "tokens", x, -1, NULL, "merge.tokens");
}

void topt_hf_build_swin(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs mean = {.mean = 1},
                      rows = {.positions = a->positions, .init_std = a->init_std};
    int64_t side = a->image / a->patch, width = a->width;
    char prefix[40];
    int x = windows(b, topt_hf_input_image(b), width, a->patch, a->patch, 0, "patches");
    x = topt_hf_add(b, "tokens", biased(b, x, "patches"), -1, NULL, "tokens");
    x = topt_hf_norm(b, x, "patches.norm");
    if (a->positions)
        x = topt_hf_add(b, "position", x, -1, &rows, "position");
    for (int s = 0; s < a->stages && !b->failed; s++) {
        topt_hf_next_layer(b);
        for (int64_t i = 0; i < a->depth[s] && !b->failed; i++) {
            snprintf(prefix, sizeof prefix, "s%d.h%d.", s, (int)i);
            b->prefix = prefix;
            x = swin_layer(b, x, width, a->stage_heads[s]);
        }
        if (s + 1 < a->stages) {
            snprintf(prefix, sizeof prefix, "s%d.", s);
            b->prefix = prefix;
            x = merged(b, x, width, side);
            width *= 2;
            side /= 2;
        }
    }
    topt_hf_no_layer(b);
    b->prefix = "";
    x = topt_hf_norm(b, x, "norm");
    end(b, topt_hf_add(b, "reduce_sequence", x, -1, &mean, "mean"));
}
