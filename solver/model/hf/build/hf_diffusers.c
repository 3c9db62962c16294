/* hf_diffusers.c - networks of diffusers' configs: UNets that see a text (Rombach et al.,
 * 2022), and transformers over patches of images or video with a text beside them (DiT:
 * Peebles and Xie, 2023; Stable Diffusion 3: Esser et al., 2024; FLUX; Wan).
 *
 * For plans alone: what a step of time does to each layer, some numbers for a whole sample,
 * is counted among the parameters and costs next to nothing.  The text's positions are the
 * model's. */
#include "hf_diffusers.h"
#include "hf_build.h"
#include "hf_complete.h"
#include "hf_parts.h"
#include "hf_read.h"
#include "hf_unread.h"
#include "topt_model.h"
#include "topt_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIME = 256 };

/* What a config says, where it is no size of blocks. */
struct net {
    struct hf_arch a;
    int64_t in, out, text, pooled, patch, frames, rows, columns, singles, per_block,
        added, classes, guided;
    int guidance, norms, cross_norm, gated, whole_text, text_norm, biased, text_as_is;
    /* parameters that make of the time what blocks read, and what is read behind the last; each
     * block has maps of its own beside them, unless these are all */
    int64_t steps, last;
    int time_once;
    int plain_patches;
    int unbiased;        /* no map has biases */
    int64_t text_before; /* width of a text that is mapped to the text's; 0: it is not */
    int64_t refiners;    /* blocks of the image alone, and of the text alone */
    int64_t time;        /* width that steps have, where it is not the model's */
    uint8_t dual[HF_MAX_LAYERS]; /* blocks whose image also attends to itself alone */
    int64_t width[HF_MAX_STAGES], deep[HF_MAX_STAGES], middle;
    int stages, down_sees[HF_MAX_STAGES], up_sees[HF_MAX_STAGES],
        text_alone[HF_MAX_STAGES]; /* pixels attend to the text in both halves */
};

static const struct net *net_of(const struct hf_builder *b)
{
    return (const struct net *)b->a;
}

/* The latents of the pipeline's own sample, and the tokens of its text. */
static void set_latents(struct net *n, int64_t frames, int64_t rows, int64_t columns,
                        int64_t text)
{
    n->frames = frames;
    n->rows = rows;
    n->columns = columns;
    n->a.context = text;
}

/* Parameters of a linear map with biases. */
static int64_t map_of(int64_t in, int64_t out)
{
    return (in + 1) * out;
}

/* ---- transformers ------------------------------------------------------------------ */

/* Patches of the noise. */
static int patches(struct hf_builder *b)
{
    const struct net *n = net_of(b);
    struct topt_attrs image = {
        .channels = n->in, .height = n->rows * n->frames, .width = n->columns};
    struct topt_attrs conv = topt_hf_patches(b, n->patch);
    int x = topt_hf_add(b, "image", -1, -1, &image, "noise");
    x = topt_hf_add(b, "conv", x, -1, &conv, "patches");
    if (!n->plain_patches)
        x = topt_hf_add(b, "bias", x, -1, NULL, "patches.bias");
    return topt_hf_add(b, "tokens", x, -1, NULL, "tokens");
}

static int the_text(struct hf_builder *b)
{
    const struct net *n = net_of(b);
    struct topt_attrs text = {.features = n->text_before ? n->text_before : n->text};
    return topt_hf_add(b, "input", -1, -1, &text, "text");
}

static int plain_norm(struct hf_builder *b, int x, const char *name)
{
    struct topt_attrs attrs = {.plain = 1, .eps = 1e-6};
    return topt_hf_add(b, "norm", x, -1, &attrs, "%s", name);
}

static int has_biases(const struct hf_builder *b)
{
    return !net_of(b)->unbiased;
}

/* Heads of queries or keys with their norm, or of values. */
static int heads(struct hf_builder *b, int x, int normed, const char *name)
{
    const struct hf_arch *a = b->a;
    int again = b->shared && !strncmp(name, "text.", 5); /* by the image's gains */
    struct topt_attrs norm = {
        .head_dim = a->head_dim, .rms = 1, .plain = again, .eps = 1e-6};
    x = topt_hf_linear(b, x, a->heads, a->head_dim, has_biases(b), name);
    return normed ? topt_hf_add(b, "head_norm", x, -1, &norm, "%s.norm", name) : x;
}

static int attend(struct hf_builder *b, int q, int kv, const char *name)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = {
        .heads = a->heads, .kv_heads = a->heads, .head_dim = a->head_dim};
    return topt_hf_add(b, "attention", q, kv, &attrs, "%s", name);
}

/* Queries, and keys and values, of one stream; 'part' is before their names. */
struct stream {
    int q, kv;
};

static struct stream stream_of(struct hf_builder *b, int x, const char *part)
{
    const char *const of[] = {"q", "k", "v"};
    int made[3], norms = net_of(b)->norms;
    char name[40];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", part, of[i]);
        made[i] = heads(b, x, norms && i < 2, name);
    }
    return (struct stream){
        made[0], topt_hf_add(b, "concat", made[1], made[2], NULL, "%skv", part)};
}

/* What the queries of one find in both. */
static int find(struct hf_builder *b, struct stream s, struct stream other,
                const char *name)
{
    char part[60];
    snprintf(part, sizeof part, "%s.own", name);
    int own = attend(b, s.q, s.kv, part);
    snprintf(part, sizeof part, "%s.other", name);
    return topt_hf_add(b, "add", own, attend(b, s.q, other.kv, part), NULL, "%s", name);
}

static int added_map(struct hf_builder *b, int x, int y, const char *name)
{
    char sum[60];
    snprintf(sum, sizeof sum, "%s.add", name);
    y = topt_hf_linear(b, y, b->a->width, 1, has_biases(b), name);
    return topt_hf_add(b, "add", x, y, NULL, "%s", sum);
}

/* The first map of a feed-forward and its activation; 'part' comes before their names. */
static int raised(struct hf_builder *b, int x, const char *part)
{
    struct topt_attrs silu = {.activation = TOPT_ACT_SILU};
    int pairs = net_of(b)->gated;
    char name[40];
    snprintf(name, sizeof name, "%sup", part);
    x = topt_hf_linear(b, x, b->a->inner, pairs ? 2 : 1, has_biases(b), name);
    snprintf(name, sizeof name, "%sactivation", part);
    return pairs ? topt_hf_add(b, "glu", x, -1, &silu, "%s", name)
                 : topt_hf_unary(b, x, TOPT_ACT_GELU, name);
}

static int fed(struct hf_builder *b, int x, const char *name)
{
    char part[40];
    snprintf(part, sizeof part, "%s.norm", name);
    int y = plain_norm(b, x, part);
    snprintf(part, sizeof part, "%s.", name);
    y = raised(b, y, part);
    snprintf(part, sizeof part, "%s.down", name);
    return added_map(b, x, y, part);
}

/* What the text comes to is read by nobody: it ends among the image's rows. */
static int ending(struct hf_builder *b, int image, int text)
{
    struct topt_attrs all = {.features = b->a->width, .features_unit = 1};
    text = topt_hf_add(b, "regroup", text, -1, &all, "text.all");
    return topt_hf_add(b, "insert", image, text, NULL, "text.end");
}

/* Both streams have their own maps; the text of the last block is not read any more. */
static void joint_block(struct hf_builder *b, int *image, int *text, int last, int dual)
{
    int64_t w = b->a->width;
    int64_t own = map_of(w, (dual ? 9 : 6) * w) + map_of(w, last ? 2 * w : 6 * w);
    int normed = plain_norm(b, *image, "norm");
    struct stream i = stream_of(b, normed, ""),
                  t = stream_of(b, plain_norm(b, *text, "text.norm"), "text.");
    *image = added_map(b, *image, find(b, i, t, "attend"), "out");
    if (dual) {
        struct stream again = stream_of(b, normed, "again.");
        *image = added_map(b, *image, attend(b, again.q, again.kv, "again.attend"),
                           "again.out");
    }
    *image = fed(b, *image, "feed");
    *image = topt_hf_unread(b, *image, net_of(b)->time_once ? 0 : own, "time");
    if (last) {
        *image = ending(b, *image, find(b, t, i, "text.attend"));
        return;
    }
    *text = added_map(b, *text, find(b, t, i, "text.attend"), "text.out");
    *text = fed(b, *text, "text.feed");
}

/* One map for both streams, attention and feed-forward side by side. */
static int single_half(struct hf_builder *b, int x, struct stream own,
                       struct stream other, int normed, const char *name)
{
    char part[40];
    int y = raised(b, normed, name);
    snprintf(part, sizeof part, "%sattend", name);
    int found = find(b, own, other, part);
    snprintf(part, sizeof part, "%sdown", name);
    int z = topt_hf_linear(b, y, b->a->width, 1, 0, part);
    snprintf(part, sizeof part, "%sout", name);
    y = topt_hf_linear(b, found, b->a->width, 1, has_biases(b), part);
    y = topt_hf_add(b, "add", y, z, NULL, "%sboth", name);
    return topt_hf_add(b, "add", x, y, NULL, "%sadd", name);
}

static void single_block(struct hf_builder *b, int *image, int *text)
{
    int64_t w = b->a->width;
    int i = plain_norm(b, *image, "norm"), t = plain_norm(b, *text, "text.norm");
    struct stream of_i = stream_of(b, i, ""), of_t = stream_of(b, t, "text.");
    *image = single_half(b, *image, of_i, of_t, i, "");
    *text = single_half(b, *text, of_t, of_i, t, "text.");
    *image =
        topt_hf_unread(b, *image, net_of(b)->time_once ? 0 : map_of(w, 3 * w), "time");
}

static void end(struct hf_builder *b, int x, int64_t features, int64_t extra)
{
    x = topt_hf_unread(b, x, extra, "time");
    x = topt_hf_linear(b, plain_norm(b, x, "norm"), features, 1, has_biases(b), "out");
    topt_hf_add(b, "mse", x, -1, NULL, "loss");
}

/* Stable Diffusion 3, FLUX, Chroma, HunyuanVideo and Qwen-Image: blocks of two streams, then
 * perhaps of one. */
static void build_joint(struct hf_builder *b)
{
    const struct net *n = net_of(b);
    struct topt_attrs rms = {.rms = 1, .eps = 1e-6};
    int64_t w = b->a->width;
    char prefix[24];
    int image = patches(b), text = the_text(b);
    if (n->text_norm)
        text = topt_hf_add(b, "norm", text, -1, &rms, "text.in.norm");
    text = topt_hf_linear(b, text, w, 1, has_biases(b), "text.in");
    int64_t times = (map_of(TIME, w) + map_of(w, w)) * (1 + n->guidance);
    times += n->pooled ? map_of(n->pooled, w) + map_of(w, w) : 0;
    image = topt_hf_unread(b, image, n->steps + (n->time_once ? 0 : times), "steps");
    for (int64_t i = 0; i < b->a->layers && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "h%d.", (int)i);
        b->prefix = prefix;
        topt_hf_next_layer(b);
        int last = !n->singles && !n->whole_text && i + 1 == b->a->layers;
        joint_block(b, &image, &text, last, n->dual[i]);
    }
    b->shared = calloc(1, sizeof *b->shared);
    for (int64_t i = 0; i < n->singles && b->shared && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "s%d.", (int)i);
        b->prefix = prefix;
        topt_hf_next_layer(b);
        b->layer = i;
        single_block(b, &image, &text);
    }
    topt_hf_free_shared(b->shared);
    b->shared = NULL;
    topt_hf_no_layer(b);
    b->prefix = "";
    image = n->singles || n->whole_text ? ending(b, image, text) : image;
    end(b, image, n->out * n->patch * n->patch,
        n->time_once ? n->last : map_of(w, 2 * w));
}

/* ---- one stream of image and text (Z-Image, 2025) ------------------------------------ */

static int trained_norm(struct hf_builder *b, int x, const char *part, const char *name)
{
    char full[40];
    snprintf(full, sizeof full, "%s%s", part, name);
    return topt_hf_norm(b, x, full);
}

/* The block's input 'x' and what its first half found. */
static int finished(struct hf_builder *b, int x, int found, const char *part)
{
    char name[40];
    snprintf(name, sizeof name, "%sout", part);
    int y = topt_hf_linear(b, found, b->a->width, 1, 0, name);
    y = trained_norm(b, y, part, "norm1.after");
    x = topt_hf_add(b, "add", x, y, NULL, "%sadd1", part);
    y = raised(b, trained_norm(b, x, part, "norm2"), part);
    snprintf(name, sizeof name, "%sdown", part);
    y = topt_hf_linear(b, y, b->a->width, 1, 0, name);
    y = trained_norm(b, y, part, "norm2.after");
    return topt_hf_add(b, "add", x, y, NULL, "%sadd2", part);
}

static void refine(struct hf_builder *b, int *x, const char *name, int64_t of_time)
{
    char prefix[40];
    for (int64_t i = 0; i < net_of(b)->refiners && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "%s%d.", name, (int)i);
        b->prefix = prefix;
        topt_hf_next_layer(b);
        struct stream s = stream_of(b, trained_norm(b, *x, "", "norm1"), "");
        *x = finished(b, *x, attend(b, s.q, s.kv, "attend"), "");
        *x = topt_hf_unread(b, *x, of_time, "time");
    }
}

static void build_one_stream(struct hf_builder *b)
{
    const struct net *n = net_of(b);
    struct topt_attrs rms = {.rms = 1, .eps = 1e-5};
    int64_t w = b->a->width, of_time = map_of(TIME, 4 * w);
    char prefix[24];
    int image = patches(b);
    int text = topt_hf_add(b, "norm", the_text(b), -1, &rms, "text.in.norm");
    text = topt_hf_linear(b, text, w, 1, 1, "text.in");
    image = topt_hf_unread(b, image, n->steps, "steps");
    refine(b, &image, "noise", of_time);
    refine(b, &text, "words", 0);
    b->shared = calloc(1, sizeof *b->shared);
    for (int64_t i = 0; i < b->a->layers && b->shared && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "h%d.", (int)i);
        b->prefix = prefix;
        topt_hf_next_layer(b);
        b->layer = i;
        struct stream of_i = stream_of(b, trained_norm(b, image, "", "norm1"), ""),
                      of_t =
                          stream_of(b, trained_norm(b, text, "text.", "norm1"), "text.");
        image = finished(b, image, find(b, of_i, of_t, "attend"), "");
        text = finished(b, text, find(b, of_t, of_i, "text.attend"), "text.");
        image = topt_hf_unread(b, image, of_time, "time");
    }
    topt_hf_free_shared(b->shared);
    b->shared = NULL;
    topt_hf_no_layer(b);
    b->prefix = "";
    image = topt_hf_unread(b, ending(b, image, text), n->last, "time");
    image = topt_hf_linear(b, plain_norm(b, image, "norm"), n->out * n->patch * n->patch,
                           1, 1, "out");
    topt_hf_add(b, "mse", image, -1, NULL, "loss");
}

/* CogVideoX: both streams by the same maps, whose heads have norms with biases. */
static struct stream of_both(struct hf_builder *b, int x, const char *part)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs norm = {.head_dim = a->head_dim, .eps = 1e-6, .plain = *part != 0};
    int made[3];
    for (int i = 0; i < 3; i++) {
        char name[40];
        snprintf(name, sizeof name, "%s%c", part, "qkv"[i]);
        made[i] = topt_hf_linear(b, x, a->heads, a->head_dim, net_of(b)->biased, name);
        if (i < 2)
            made[i] = topt_hf_add(b, "head_norm", made[i], -1, &norm, "%s.norm", name);
    }
    return (struct stream){
        made[0], topt_hf_add(b, "concat", made[1], made[2], NULL, "%skv", part)};
}

static void both_block(struct hf_builder *b, int *image, int *text)
{
    const struct net *n = net_of(b);
    int64_t w = b->a->width;
    struct stream i = of_both(b, plain_norm(b, *image, "norm"), ""),
                  t = of_both(b, plain_norm(b, *text, "text.norm"), "text.");
    *image = added_map(b, *image, find(b, i, t, "attend"), "out");
    *text = added_map(b, *text, find(b, t, i, "text.attend"), "text.out");
    *image = fed(b, *image, "feed");
    *text = fed(b, *text, "text.feed");
    *image = topt_hf_unread(b, *image, 2 * (map_of(n->time, 6 * w) + 2 * w), "time");
}

static void build_cog(struct hf_builder *b)
{
    const struct net *n = net_of(b);
    struct topt_attrs norm = {.eps = 1e-5};
    int64_t w = b->a->width;
    char prefix[24];
    int image = patches(b), text = topt_hf_linear(b, the_text(b), w, 1, 1, "text.in");
    image =
        topt_hf_unread(b, image, map_of(w, n->time) + map_of(n->time, n->time), "steps");
    b->shared = calloc(1, sizeof *b->shared);
    for (int64_t i = 0; i < b->a->layers && b->shared && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "h%d.", (int)i);
        b->prefix = prefix;
        topt_hf_next_layer(b);
        b->layer = i;
        both_block(b, &image, &text);
    }
    topt_hf_free_shared(b->shared);
    b->shared = NULL;
    topt_hf_no_layer(b);
    b->prefix = "";
    image = topt_hf_add(b, "norm", ending(b, image, text), -1, &norm, "norm.final");
    end(b, image, n->out * n->patch * n->patch, map_of(n->time, 2 * w) + 2 * w);
}

/* DiT: classes in place of a text; each block has its own tables of steps and classes. */
static void build_dit(struct hf_builder *b)
{
    const struct net *n = net_of(b);
    int64_t w = b->a->width;
    int64_t each =
        map_of(TIME, w) + map_of(w, w) + (n->classes + 1) * w + map_of(w, 6 * w);
    char prefix[24];
    int x = patches(b);
    for (int64_t i = 0; i < b->a->layers && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "h%d.", (int)i);
        b->prefix = prefix;
        topt_hf_next_layer(b);
        struct stream s = stream_of(b, plain_norm(b, x, "norm"), "");
        x = added_map(b, x, attend(b, s.q, s.kv, "attend"), "out");
        x = topt_hf_unread(b, fed(b, x, "feed"), each, "time");
    }
    topt_hf_no_layer(b);
    b->prefix = "";
    end(b, x, n->out * n->patch * n->patch, map_of(w, 2 * w));
}

/* Wan, LTX-Video and PixArt: patches attend to each other, then to the text. */
static int wide_norm(struct hf_builder *b, int x, const char *name)
{
    struct topt_attrs attrs = {.rms = 1, .eps = 1e-6};
    return net_of(b)->norms ? topt_hf_add(b, "norm", x, -1, &attrs, "%s", name) : x;
}

static int seen(struct hf_builder *b, int x, int from, const char *part)
{
    const struct hf_arch *a = b->a;
    char name[32];
    snprintf(name, sizeof name, "%sq", part);
    int q = topt_hf_linear(b, x, a->heads, a->head_dim, 1, name);
    snprintf(name, sizeof name, "%sq.norm", part);
    q = wide_norm(b, q, name);
    snprintf(name, sizeof name, "%sk", part);
    int k = topt_hf_linear(b, from, a->heads, a->head_dim, 1, name);
    snprintf(name, sizeof name, "%sk.norm", part);
    k = wide_norm(b, k, name);
    snprintf(name, sizeof name, "%sv", part);
    int v = topt_hf_linear(b, from, a->heads, a->head_dim, 1, name);
    int kv = topt_hf_add(b, "concat", k, v, NULL, "%skv", part);
    snprintf(name, sizeof name, "%sattend", part);
    return attend(b, q, kv, name);
}

static void build_wan(struct hf_builder *b)
{
    const struct net *n = net_of(b);
    struct topt_attrs trained = {.eps = 1e-6};
    int64_t w = b->a->width;
    char prefix[24];
    int x = patches(b);
    int t = the_text(b);
    if (!n->text_as_is) {
        t = topt_hf_linear(b, t, w, 1, 1, "text.in");
        t = topt_hf_unary(b, t, TOPT_ACT_GELU, "text.activation");
        t = topt_hf_linear(b, t, w, 1, 1, "text.out");
    }
    x = topt_hf_unread(b, x, n->steps + map_of(TIME, w) + map_of(w, w) + map_of(w, 6 * w),
                       "steps");
    for (int64_t i = 0; i < b->a->layers && !b->failed; i++) {
        snprintf(prefix, sizeof prefix, "h%d.", (int)i);
        b->prefix = prefix;
        topt_hf_next_layer(b);
        int y = plain_norm(b, x, "norm");
        x = added_map(b, x, seen(b, y, y, ""), "out");
        y = n->cross_norm ? topt_hf_add(b, "norm", x, -1, &trained, "text.norm") : x;
        x = added_map(b, x, seen(b, y, t, "text."), "text.out");
        x = topt_hf_unread(b, fed(b, x, "feed"), 6 * w, "time");
    }
    topt_hf_no_layer(b);
    b->prefix = "";
    end(b, x, n->out * n->patch * n->patch, 2 * w);
}

/* ---- UNets ------------------------------------------------------------------------- */

static int conv(struct hf_builder *b, int x, int64_t features, int64_t kernel,
                int64_t stride, const char *name)
{
    struct topt_attrs attrs = topt_hf_same_window(kernel, stride);
    attrs.features = features;
    x = topt_hf_add(b, "conv", x, -1, &attrs, "%s", name);
    return topt_hf_add(b, "bias", x, -1, NULL, "%s.bias", name);
}

static int64_t channels_of(const struct hf_builder *b, int x)
{
    const struct topt_dim *d = x < 0 ? NULL : &b->m->tensor[x].dim[1];
    return d ? d->count * d->unit : 1;
}

/* Channels in 32 groups, each normed. */
static int grouped(struct hf_builder *b, int x, const char *name)
{
    enum { GROUPS = 32 };
    int64_t c = channels_of(b, x);
    struct topt_attrs groups = {.features = GROUPS, .features_unit = c / GROUPS},
                      all = {.features = c, .features_unit = 1}, eps = {.eps = 1e-5};
    x = topt_hf_add(b, "regroup", x, -1, &groups, "%s.groups", name);
    x = topt_hf_add(b, "group_norm", x, -1, &eps, "%s", name);
    return topt_hf_add(b, "regroup", x, -1, &all, "%s.all", name);
}

/* The time's map to the channels is beside the pixels. */
static int residual(struct hf_builder *b, int x, int64_t features)
{
    int64_t in = channels_of(b, x);
    int y = topt_hf_unary(b, grouped(b, x, "norm1"), TOPT_ACT_SILU, "activation1");
    y = conv(b, y, features, 3, 1, "conv1");
    y = topt_hf_unary(b, grouped(b, y, "norm2"), TOPT_ACT_SILU, "activation2");
    y = conv(b, y, features, 3, 1, "conv2");
    x = in == features ? x : conv(b, x, features, 1, 1, "shortcut");
    return topt_hf_add(b, "add", x, y, NULL, "add");
}

static int sees(struct hf_builder *b, int x, int from, const char *part)
{
    const struct hf_arch *a = b->a;
    const struct topt_dim *d = &b->m->tensor[x < 0 ? 0 : x].dim[2];
    int64_t width = d->count * d->unit, each = width / a->heads;
    struct topt_attrs attrs = {.heads = a->heads, .kv_heads = a->heads, .head_dim = each};
    char name[40];
    snprintf(name, sizeof name, "%sq", part);
    int q = topt_hf_linear(b, x, a->heads, each, 0, name);
    snprintf(name, sizeof name, "%sk", part);
    int k = topt_hf_linear(b, from < 0 ? x : from, a->heads, each, 0, name);
    snprintf(name, sizeof name, "%sv", part);
    int v = topt_hf_linear(b, from < 0 ? x : from, a->heads, each, 0, name);
    int kv = topt_hf_add(b, "concat", k, v, NULL, "%skv", part);
    int y = topt_hf_add(b, "attention", q, kv, &attrs, "%sattend", part);
    snprintf(name, sizeof name, "%sout", part);
    return topt_hf_linear(b, y, width, 1, 1, name);
}

/* 'own': what the first half attends to, -1: the pixels themselves. */
static int text_block(struct hf_builder *b, int x, int own, int text, int64_t width)
{
    struct topt_attrs eps = {.eps = 1e-5}, gelu = {.activation = TOPT_ACT_GELU_ERF};
    int y = topt_hf_add(b, "norm", x, -1, &eps, "norm1");
    x = topt_hf_add(b, "add", x, sees(b, y, own, "own."), NULL, "add1");
    y = topt_hf_add(b, "norm", x, -1, &eps, "norm2");
    x = topt_hf_add(b, "add", x, sees(b, y, text, "text."), NULL, "add2");
    y = topt_hf_add(b, "norm", x, -1, &eps, "norm3");
    y = topt_hf_linear(b, y, 4 * width, 2, 1, "up");
    y = topt_hf_linear(b, topt_hf_add(b, "glu", y, -1, &gelu, "glu"), width, 1, 1,
                       "down");
    return topt_hf_add(b, "add", x, y, NULL, "add3");
}

/* Blocks over the pixels, which see the text; heads of the stage. */
static int with_text(struct hf_builder *b, int x, int text, int alone, int64_t blocks,
                     int64_t side[2], const char *prefix)
{
    int64_t width = channels_of(b, x);
    struct topt_attrs grid = {.height = side[0], .width = side[1]};
    char own[60];
    b->prefix = prefix;
    int y = topt_hf_add(b, "tokens", grouped(b, x, "see.norm"), -1, NULL, "see.tokens");
    y = topt_hf_linear(b, y, width, 1, 1, "see.in");
    for (int64_t i = 0; i < blocks && !b->failed; i++) {
        snprintf(own, sizeof own, "%sh%d.", prefix, (int)i);
        b->prefix = own;
        y = text_block(b, y, alone ? text : -1, text, width);
    }
    b->prefix = prefix;
    y = topt_hf_linear(b, y, width, 1, 1, "see.out");
    y = topt_hf_add(b, "untokens", y, -1, &grid, "see.image");
    return topt_hf_add(b, "add", x, y, NULL, "see.add");
}

struct unet {
    int kept[HF_MAX_STAGES * 8], n, text;
    int64_t side[2];
};

static int keep(struct unet *u, int x)
{
    if (u->n < (int)(sizeof u->kept / sizeof *u->kept))
        u->kept[u->n++] = x;
    return x;
}

static int go_down(struct hf_builder *b, struct unet *u, int x)
{
    const struct net *n = net_of(b);
    char prefix[40];
    for (int s = 0; s < n->stages; s++) {
        topt_hf_next_layer(b);
        for (int64_t i = 0; i < n->per_block && !b->failed; i++) {
            snprintf(prefix, sizeof prefix, "down%d.%d.", s, (int)i);
            b->prefix = prefix;
            x = residual(b, x, n->width[s]);
            if (n->down_sees[s])
                x = with_text(b, x, u->text, n->text_alone[s], n->deep[s], u->side,
                              prefix);
            keep(u, x);
        }
        if (s + 1 < n->stages) {
            snprintf(prefix, sizeof prefix, "down%d.", s);
            b->prefix = prefix;
            x = keep(u, conv(b, x, n->width[s], 3, 2, "smaller"));
            u->side[0] = (u->side[0] + 1) / 2;
            u->side[1] = (u->side[1] + 1) / 2;
        }
    }
    return x;
}

static int go_up(struct hf_builder *b, struct unet *u, int x)
{
    const struct net *n = net_of(b);
    char prefix[40];
    for (int s = 0; s < n->stages; s++) {
        int stage = n->stages - 1 - s;
        topt_hf_next_layer(b);
        for (int64_t i = 0; i <= n->per_block && !b->failed; i++) {
            snprintf(prefix, sizeof prefix, "up%d.%d.", s, (int)i);
            b->prefix = prefix;
            x = topt_hf_add(b, "concat_counts", x, u->n ? u->kept[--u->n] : x, NULL,
                            "beside");
            x = residual(b, x, n->width[stage]);
            if (n->up_sees[s])
                x = with_text(b, x, u->text, n->text_alone[stage], n->deep[stage],
                              u->side, prefix);
        }
        if (s + 1 < n->stages) {
            struct topt_attrs twice = {.height = u->side[0] *= 2,
                                       .width = u->side[1] *= 2};
            snprintf(prefix, sizeof prefix, "up%d.", s);
            b->prefix = prefix;
            x = topt_hf_add(b, "resize", x, -1, &twice, "larger.pixels");
            x = conv(b, x, n->width[stage], 3, 1, "larger");
        }
    }
    return x;
}

/* Maps of the time: its own two, one to the channels of each residual layer, and those of
 * what is said of the image beside the text. */
static int64_t of_time(const struct net *n)
{
    int64_t t = 4 * n->width[0], sum = map_of(n->width[0], t) + map_of(t, t);
    sum += n->classes * t + n->guided * n->width[0];
    sum += n->added ? map_of(n->added, t) + map_of(t, t) : 0;
    for (int s = 0; s < n->stages; s++)
        sum += (2 * n->per_block + 1) * map_of(t, n->width[s]);
    return sum + 2 * map_of(t, n->width[n->stages - 1]);
}

static void build_unet(struct hf_builder *b)
{
    const struct net *n = net_of(b);
    struct unet u = {.side = {n->rows, n->columns}};
    struct topt_attrs image = {.channels = n->in, .height = n->rows, .width = n->columns};
    int64_t last = n->width[n->stages - 1];
    u.text = the_text(b);
    if (n->text_before)
        u.text = topt_hf_linear(b, u.text, n->text, 1, 1, "text.in");
    int x = topt_hf_add(b, "image", -1, -1, &image, "noise");
    x = keep(&u, conv(b, x, n->width[0], 3, 1, "in"));
    x = go_down(b, &u, x);
    b->prefix = "middle0.";
    topt_hf_next_layer(b);
    x = residual(b, x, last);
    topt_hf_no_layer(b);
    x = with_text(b, x, u.text, 0, n->middle, u.side, "middle.");
    b->prefix = "middle1.";
    topt_hf_next_layer(b);
    x = residual(b, x, last);
    x = go_up(b, &u, x);
    topt_hf_no_layer(b);
    b->prefix = "";
    x = topt_hf_unary(b, grouped(b, x, "norm"), TOPT_ACT_SILU, "activation");
    x = topt_hf_add(b, "tokens", conv(b, x, n->out, 3, 1, "out"), -1, NULL, "pixels");
    x = topt_hf_unread(b, x, of_time(n), "time");
    topt_hf_add(b, "mse", x, -1, NULL, "loss");
}

/* ---- reading ----------------------------------------------------------------------- */

static int number(const json_t *doc, const char *key, int64_t usual, int64_t *ret,
                  struct topt_error *err)
{
    *ret = usual;
    return topt_json_int_or(doc, "", key, 0, (int64_t)1 << 24, ret, err);
}

static int read_blocks(const json_t *doc, int64_t layers, int64_t heads_usual,
                       int64_t each, struct net *n, struct topt_error *err)
{
    struct hf_arch *a = &n->a;
    if (number(doc, "num_layers", layers, &a->layers, err) ||
        number(doc, "num_attention_heads", heads_usual, &a->heads, err) ||
        number(doc, "attention_head_dim", each, &a->head_dim, err) ||
        number(doc, "in_channels", 16, &n->in, err))
        return -1;
    if (!a->layers || a->layers > HF_MAX_LAYERS || !a->heads || !a->head_dim ||
        a->heads > HF_MAX_HEADS || a->head_dim > HF_MAX_WIDTH || !n->in)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "num_layers, num_attention_heads, attention_head_dim and "
                         "in_channels must be above 0");
    a->width = a->heads * a->head_dim;
    a->kv_heads = a->heads;
    a->inner = 4 * a->width;
    a->layer_groups = a->layers;
    n->patch = 2;
    n->frames = 1;
    return 0;
}

static int read_side(const json_t *doc, int64_t usual, struct net *n,
                     struct topt_error *err)
{
    int64_t side = usual;
    if (json_is_integer(topt_json_member(doc, "sample_size")) &&
        number(doc, "sample_size", usual, &side, err))
        return -1;
    n->rows = n->columns = side > 0 ? side : usual;
    return 0;
}

static int read_flux(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { LATENTS = 64, TEXT = 512 };
    n->guidance = 0;
    if (read_blocks(doc, 19, 24, 128, n, err) ||
        number(doc, "num_single_layers", 38, &n->singles, err) ||
        number(doc, "joint_attention_dim", 4096, &n->text, err) ||
        number(doc, "pooled_projection_dim", 768, &n->pooled, err) ||
        number(doc, "in_channels", 64, &n->in, err) ||
        topt_json_bool_or(doc, "", "guidance_embeds", &n->guidance, err))
        return -1;
    if (n->singles > HF_MAX_LAYERS)
        return topt_fail(err, TOPT_ERR_INVAL, "num_single_layers is above %d",
                         HF_MAX_LAYERS);
    n->a.layer_groups = n->singles;
    n->patch = 1; /* in_channels has the patch of 2 already */
    n->out = n->in;
    n->norms = 1;
    n->rows = n->columns = LATENTS;
    n->a.context = TEXT;
    return 0;
}

/* FLUX without what the time does in each block: a small network makes it for all. */
static int read_chroma(const json_t *doc, struct net *n, struct topt_error *err)
{
    int64_t in, hidden, layers;
    if (read_flux(doc, n, err) ||
        number(doc, "approximator_num_channels", 64, &in, err) ||
        number(doc, "approximator_hidden_dim", 5120, &hidden, err) ||
        number(doc, "approximator_layers", 5, &layers, err))
        return -1;
    (void)topt_json_member(doc, "approximator_in_factor"); /* of no use to the class */
    n->pooled = n->guidance = 0;
    n->time_once = 1;
    n->steps = map_of(in, hidden) + map_of(hidden, n->a.width) +
               layers * (2 * map_of(hidden, hidden) + hidden);
    return 0;
}

/* No biases, gated feed-forwards, and what the time does is the same in all blocks. */
static int read_flux2(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 512 };
    double times = 3;
    if (read_flux(doc, n, err) || number(doc, "num_layers", 8, &n->a.layers, err) ||
        number(doc, "num_single_layers", 48, &n->singles, err) ||
        number(doc, "num_attention_heads", 48, &n->a.heads, err) ||
        number(doc, "in_channels", 128, &n->in, err) ||
        number(doc, "joint_attention_dim", 15360, &n->text, err) ||
        topt_json_real_or(doc, "", "mlp_ratio", 0.1, 64, &times, err))
        return -1;
    n->a.kv_heads = n->a.heads;
    n->a.layer_groups = n->singles;
    n->out = n->in;
    int64_t w = n->a.width = n->a.heads * n->a.head_dim;
    int guided = 1;
    if (topt_json_bool_or(doc, "", "guidance_embeds", &guided, err))
        return -1;
    n->a.inner = (int64_t)(times * (double)w);
    n->gated = n->unbiased = n->plain_patches = n->time_once = 1;
    n->pooled = 0;
    n->steps = (1 + guided) * (TIME * w + w * w) + (6 + 6 + 3) * w * w;
    n->last = 2 * w * w;
    n->a.context = TEXT;
    return 0;
}

/* A text that two blocks with norms and biases refine; 129 frames, which become 33. */
static int read_hunyuan_video(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 256, FRAMES = 33, ROWS = 90, COLUMNS = 160 };
    int64_t refiners, several;
    int guided = 1;
    double times = 4;
    if (read_blocks(doc, 20, 24, 128, n, err) ||
        number(doc, "num_single_layers", 40, &n->singles, err) ||
        number(doc, "num_refiner_layers", 2, &refiners, err) ||
        number(doc, "text_embed_dim", 4096, &n->text, err) ||
        number(doc, "pooled_projection_dim", 768, &n->pooled, err) ||
        number(doc, "out_channels", 16, &n->out, err) ||
        number(doc, "patch_size", 2, &n->patch, err) ||
        number(doc, "patch_size_t", 1, &several, err) ||
        topt_json_real_or(doc, "", "mlp_ratio", 0.1, 64, &times, err) ||
        topt_json_bool_or(doc, "", "guidance_embeds", &guided, err))
        return -1;
    if (several != 1 || n->singles > HF_MAX_LAYERS)
        return topt_fail(err, TOPT_ERR_INVAL,
                         several != 1
                             ? "patch_size_t is above 1: patches of several frames are "
                               "not read"
                             : "num_single_layers is above the limit of layers");
    int64_t w = n->a.width, inner = n->a.inner = (int64_t)(times * (double)w);
    n->guidance = guided;
    n->norms = 1;
    n->a.layer_groups = n->singles;
    n->steps = map_of(TIME, w) + map_of(n->text, w) + 2 * map_of(w, w) +
               refiners * (4 * map_of(w, w) + map_of(w, inner) + map_of(inner, w) +
                           map_of(w, 2 * w) + 4 * w);
    set_latents(n, FRAMES, ROWS, COLUMNS, TEXT);
    return 0;
}

static int read_z_image(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 512, SIDE = 128, STEPS = 1024, PADDING = 2 };
    int64_t kv_heads;
    struct hf_arch *a = &n->a;
    const json_t *patch = topt_json_member(doc, "all_patch_size");
    if (number(doc, "dim", 3840, &a->width, err) ||
        number(doc, "n_layers", 30, &a->layers, err) ||
        number(doc, "n_refiner_layers", 2, &n->refiners, err) ||
        number(doc, "n_heads", 30, &a->heads, err) ||
        number(doc, "n_kv_heads", a->heads, &kv_heads, err) ||
        number(doc, "in_channels", 16, &n->in, err) ||
        number(doc, "cap_feat_dim", 2560, &n->text, err) ||
        topt_json_bool_or(doc, "", "qk_norm", &n->norms, err))
        return -1;
    if (a->layers < 1 || a->layers > HF_MAX_LAYERS || a->heads < 1 || a->width < 1 ||
        a->width % a->heads || kv_heads != a->heads || n->refiners > HF_MAX_LAYERS)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "dim must be a multiple of n_heads, n_kv_heads the same, and "
                         "n_layers from 1 to %d",
                         HF_MAX_LAYERS);
    a->kv_heads = a->heads;
    a->head_dim = a->width / a->heads;
    a->inner = (int64_t)((double)a->width / 3 * 8);
    a->layer_groups = a->layers;
    a->rms = 1;
    n->patch = json_is_integer(json_array_get(patch, 0))
                   ? json_integer_value(json_array_get(patch, 0))
                   : 2;
    n->out = n->in;
    n->gated = n->unbiased = 1;
    n->frames = 1;
    n->rows = n->columns = SIDE;
    n->steps = map_of(TIME, STEPS) + map_of(STEPS, TIME) + PADDING * a->width;
    n->last = map_of(TIME, a->width);
    a->context = TEXT;
    return 0;
}

static int read_qwen_image(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { LATENTS = 64, TEXT = 1024 };
    int layered = 0;
    if (read_blocks(doc, 60, 24, 128, n, err) ||
        number(doc, "in_channels", 64, &n->in, err) ||
        number(doc, "out_channels", 16, &n->out, err) ||
        number(doc, "joint_attention_dim", 3584, &n->text, err) ||
        topt_json_bool_or(doc, "", "use_additional_t_cond", &layered, err) ||
        topt_json_bool_or(doc, "", "guidance_embeds", &n->guidance, err))
        return -1;
    if (layered || n->guidance)
        return topt_fail(err, TOPT_ERR_INVAL, "%s is true, which is not read",
                         layered ? "use_additional_t_cond" : "guidance_embeds");
    (void)topt_json_member(doc, "pooled_projection_dim"); /* of no use to the class */
    n->patch = 1; /* in_channels has the patch of 2 already */
    n->out *= 4;
    n->norms = n->whole_text = n->text_norm = 1;
    n->rows = n->columns = LATENTS;
    n->a.context = TEXT;
    return 0;
}

/* 49 frames, which four by four become 13. */
static int read_cog(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 226, FRAMES = 49, FEWER = 4 };
    int64_t frames, fewer;
    n->biased = 1;
    if (read_blocks(doc, 30, 30, 64, n, err) ||
        number(doc, "out_channels", 16, &n->out, err) ||
        number(doc, "text_embed_dim", 4096, &n->text, err) ||
        number(doc, "time_embed_dim", 512, &n->time, err) ||
        number(doc, "patch_size", 2, &n->patch, err) ||
        number(doc, "sample_height", 60, &n->rows, err) ||
        number(doc, "sample_width", 90, &n->columns, err) ||
        number(doc, "sample_frames", FRAMES, &frames, err) ||
        number(doc, "temporal_compression_ratio", FEWER, &fewer, err) ||
        number(doc, "max_text_seq_length", TEXT, &n->a.context, err) ||
        topt_json_bool_or(doc, "", "attention_bias", &n->biased, err))
        return -1;
    static const struct {
        const char *key, *why;
    } other[] = {{"patch_size_t", "patches of several frames are not read"},
                 {"ofs_embed_dim", "models that begin with an image are not read"},
                 {"use_learned_positional_embeddings", "a table of places is not read"}};
    for (int i = 0; i < 3; i++) {
        const json_t *value = topt_json_member(doc, other[i].key);
        if (json_is_true(value) || json_is_number(value))
            return topt_fail(err, TOPT_ERR_INVAL, "%s is set: %s", other[i].key,
                             other[i].why);
    }
    n->frames = (frames - 1) / (fewer ? fewer : 1) + 1;
    return 0;
}

static int read_sd3(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 333 };
    const char *norm = NULL;
    const json_t *dual = topt_json_member(doc, "dual_attention_layers");
    if (read_blocks(doc, 18, 18, 64, n, err) ||
        number(doc, "joint_attention_dim", 4096, &n->text, err) ||
        number(doc, "pooled_projection_dim", 2048, &n->pooled, err) ||
        number(doc, "patch_size", 2, &n->patch, err) ||
        number(doc, "out_channels", n->in, &n->out, err) ||
        topt_json_string_or(doc, "", "qk_norm", &norm, err) ||
        read_side(doc, 128, n, err))
        return -1;
    for (size_t i = 0; i < json_array_size(dual); i++) {
        int64_t layer = json_integer_value(json_array_get(dual, i));
        if (layer < 0 || layer >= n->a.layers)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "dual_attention_layers[%zu] is no layer", i);
        n->dual[layer] = 1;
    }
    n->norms = norm != NULL;
    n->a.context = TEXT;
    return 0;
}

static int read_dit(const json_t *doc, struct net *n, struct topt_error *err)
{
    const char *norm = "ada_norm_zero";
    if (read_blocks(doc, 28, 16, 72, n, err) ||
        number(doc, "in_channels", 4, &n->in, err) ||
        number(doc, "patch_size", 2, &n->patch, err) ||
        number(doc, "out_channels", n->in, &n->out, err) ||
        number(doc, "num_embeds_ada_norm", 1000, &n->classes, err) ||
        topt_json_string_or(doc, "", "norm_type", &norm, err) ||
        read_side(doc, 32, n, err))
        return -1;
    n->a.context = 1;
    return strcmp(norm, "ada_norm_zero")
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "norm_type is \"%.40s\": of diffusers' "
                           "transformers of images that of DiT "
                           "alone is read",
                           norm)
               : 0;
}

static int read_wan(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 512, FRAMES = 21, ROWS = 60, COLUMNS = 104 };
    const json_t *patch = topt_json_member(doc, "patch_size");
    if (read_blocks(doc, 40, 40, 128, n, err) ||
        number(doc, "ffn_dim", 13824, &n->a.inner, err) ||
        number(doc, "text_dim", 4096, &n->text, err) ||
        number(doc, "out_channels", 16, &n->out, err) ||
        topt_json_bool_or(doc, "", "cross_attn_norm", &n->cross_norm, err))
        return -1;
    if (json_is_integer(topt_json_member(doc, "image_dim")) ||
        json_is_integer(topt_json_member(doc, "added_kv_proj_dim")))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "image_dim or added_kv_proj_dim is set: "
                         "models that begin with an image are not "
                         "read");
    if (json_array_size(patch) == 3)
        n->patch = json_integer_value(json_array_get(patch, 2));
    n->norms = 1;
    set_latents(n, FRAMES, ROWS, COLUMNS, TEXT);
    return 0;
}

/* Frames, rows and columns of the pipeline's own 161 frames of 512 x 704. */
static int read_ltx(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 128, FRAMES = 21, ROWS = 16, COLUMNS = 22 };
    if (read_blocks(doc, 28, 32, 64, n, err) ||
        number(doc, "in_channels", 128, &n->in, err) ||
        number(doc, "out_channels", 128, &n->out, err) ||
        number(doc, "caption_channels", 4096, &n->text, err) ||
        number(doc, "patch_size", 1, &n->patch, err))
        return -1;
    (void)topt_json_member(doc, "cross_attention_dim"); /* the width once more */
    n->norms = 1;
    set_latents(n, FRAMES, ROWS, COLUMNS, TEXT);
    return 0;
}

/* Two sizes of the image are said beside the time where it is large. */
static int read_pixart(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 300, LARGE = 128 };
    const json_t *words = topt_json_member(doc, "caption_channels");
    int said = 0;
    if (read_blocks(doc, 28, 16, 72, n, err) ||
        number(doc, "in_channels", 4, &n->in, err) ||
        number(doc, "patch_size", 2, &n->patch, err) ||
        number(doc, "out_channels", 8, &n->out, err) ||
        number(doc, "cross_attention_dim", 1152, &n->text, err) ||
        read_side(doc, 128, n, err))
        return -1;
    said = n->rows == LARGE;
    if (topt_json_bool_or(doc, "", "use_additional_conditions", &said, err))
        return -1;
    int64_t third = n->a.width / 3;
    n->text_as_is = !json_is_integer(words);
    n->text = n->text_as_is ? n->text : json_integer_value(words);
    n->steps = said ? 2 * (map_of(TIME, third) + map_of(third, third)) : 0;
    n->a.context = TEXT;
    return n->text > 0 && n->text <= HF_MAX_WIDTH
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "caption_channels must be 1..%d",
                           HF_MAX_WIDTH);
}

/* A number for all stages, or one for each. */
static int each_stage(const json_t *doc, const char *key, int64_t usual, int stages,
                      int64_t *ret, struct topt_error *err)
{
    const json_t *value = topt_json_member(doc, key);
    for (int s = 0; s < stages; s++) {
        const json_t *one =
            json_is_array(value) ? json_array_get(value, (size_t)s) : value;
        ret[s] = json_is_integer(one) ? json_integer_value(one) : usual;
        if (ret[s] < 1 || ret[s] > 1 << 16 || json_is_array(one))
            return topt_fail(err, TOPT_ERR_INVAL, "%s must be numbers from 1 to 65536",
                             key);
    }
    return 0;
}

/* Which stages see the text, by the names of their blocks. */
static int which_see(const json_t *doc, const char *key, const char *with,
                     const char *without, int stages, int *ret, struct topt_error *err)
{
    const json_t *names = topt_json_member(doc, key);
    for (int s = 0; s < stages; s++) {
        const char *name = json_string_value(json_array_get(names, (size_t)s));
        ret[s] = name && !strcmp(name, with);
        if (!name || (!ret[s] && strcmp(name, without)))
            return topt_fail(err, TOPT_ERR_INVAL, "%s[%d] is \"%.40s\", not %s or %s",
                             key, s, name ? name : "nothing", with, without);
    }
    return 0;
}

/* Refuse parts that a UNet may have beside the blocks that are built; a list has a flag a stage. */
static int refuse_beside(const json_t *doc, struct topt_error *err)
{
    static const struct {
        const char *key, *why;
    } beside[] = {{"dual_cross_attention", "blocks that see the text twice are not read"},
                  {"encoder_hid_dim_type", "images in place of a text are not read"},
                  {"class_embed_type", "classes by a map are not read"},
                  {NULL, NULL}};
    for (int i = 0; beside[i].key; i++) {
        const json_t *value = topt_json_member(doc, beside[i].key);
        const char *word = json_string_value(value);
        int on = json_is_true(value) || json_is_number(value) ||
                 (word && strcmp(word, "text_proj"));
        for (size_t s = 0; s < json_array_size(value); s++)
            on |= json_is_true(json_array_get(value, s));
        if (on)
            return topt_fail(err, TOPT_ERR_INVAL, "%s is set: %s", beside[i].key,
                             beside[i].why);
    }
    return 0;
}

/* A flag for all stages, or one for each. */
static void which_see_alone(const json_t *doc, struct net *n)
{
    const json_t *value = topt_json_member(doc, "only_cross_attention");
    for (int s = 0; s < n->stages; s++)
        n->text_alone[s] =
            json_is_true(json_is_array(value) ? json_array_get(value, (size_t)s) : value);
}

static int read_unet(const json_t *doc, struct net *n, struct topt_error *err)
{
    enum { TEXT = 77, EACH = 64 };
    const json_t *widths = topt_json_member(doc, "block_out_channels");
    const json_t *number_of_heads = topt_json_member(doc, "num_attention_heads");
    int heads = number_of_heads && !json_is_null(number_of_heads);
    const char *added = NULL;
    int64_t heads_of[HF_MAX_STAGES];
    n->stages = (int)json_array_size(widths);
    if (n->stages < 1 || n->stages > HF_MAX_STAGES)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "block_out_channels must be an array of 1 to %d numbers",
                         HF_MAX_STAGES);
    if (each_stage(doc, "block_out_channels", 320, n->stages, n->width, err) ||
        each_stage(doc, "transformer_layers_per_block", 1, n->stages, n->deep, err) ||
        each_stage(doc, heads ? "num_attention_heads" : "attention_head_dim", 8,
                   n->stages, heads_of, err) ||
        which_see(doc, "down_block_types", "CrossAttnDownBlock2D", "DownBlock2D",
                  n->stages, n->down_sees, err) ||
        which_see(doc, "up_block_types", "CrossAttnUpBlock2D", "UpBlock2D", n->stages,
                  n->up_sees, err) ||
        number(doc, "layers_per_block", 2, &n->per_block, err) ||
        number(doc, "cross_attention_dim", 1280, &n->text, err) ||
        number(doc, "in_channels", 4, &n->in, err) ||
        number(doc, "out_channels", 4, &n->out, err) ||
        topt_json_string_or(doc, "", "addition_embed_type", &added, err) ||
        number(doc, "projection_class_embeddings_input_dim", 0, &n->added, err) ||
        number(doc, "num_class_embeds", 0, &n->classes, err) ||
        number(doc, "time_cond_proj_dim", 0, &n->guided, err) ||
        number(doc, "encoder_hid_dim", 0, &n->text_before, err) ||
        refuse_beside(doc, err) || read_side(doc, 64, n, err))
        return -1;
    which_see_alone(doc, n);
    n->added = added ? n->added : 0;
    n->middle = n->deep[n->stages - 1];
    n->a.heads = heads_of[0];
    n->a.context = TEXT;
    for (int s = 0; s < n->stages; s++)
        if (n->width[s] % 32 || n->width[s] % n->a.heads)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "block_out_channels[%d] is not a multiple of 32 and of the "
                             "number of heads",
                             s);
    return n->per_block < 1 || n->per_block > 6
               ? topt_fail(err, TOPT_ERR_INVAL, "layers_per_block must be 1..6")
               : 0;
}

static const struct class
{
    const char *name;
    int (*read)(const json_t *doc, struct net *n, struct topt_error *err);
    void (*build)(struct hf_builder *b);
} classes[] = {{"FluxTransformer2DModel", read_flux, build_joint},
               {"SD3Transformer2DModel", read_sd3, build_joint},
               {"ChromaTransformer2DModel", read_chroma, build_joint},
               {"Flux2Transformer2DModel", read_flux2, build_joint},
               {"HunyuanVideoTransformer3DModel", read_hunyuan_video, build_joint},
               {"ZImageTransformer2DModel", read_z_image, build_one_stream},
               {"PixArtTransformer2DModel", read_pixart, build_wan},
               {"LTXVideoTransformer3DModel", read_ltx, build_wan},
               {"QwenImageTransformer2DModel", read_qwen_image, build_joint},
               {"CogVideoXTransformer3DModel", read_cog, build_cog},
               {"DiTTransformer2DModel", read_dit, build_dit},
               {"Transformer2DModel", read_dit, build_dit},
               {"WanTransformer3DModel", read_wan, build_wan},
               {"UNet2DConditionModel", read_unet, build_unet},
               {NULL, NULL, NULL}};

/* Parts of pipelines beside the network that is trained, by a part of their names. */
static const char *part_of_pipeline(const char *class)
{
    static const char *const parts[][2] = {
        {"Autoencoder", "an autoencoder, which makes pixels of latents"},
        {"VQModel", "an autoencoder, which makes pixels of latents"},
        {"Scheduler", "a schedule of steps, without parameters"},
        {"ControlNet", "a network beside another, whose layers it reads"},
        {NULL, NULL}};
    for (int i = 0; class && parts[i][0]; i++)
        if (strstr(class, parts[i][0]))
            return parts[i][1];
    return NULL;
}

static void list_classes(char *ret, size_t size)
{
    size_t n = 0;
    for (int i = 0; classes[i].name; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", classes[i].name);
}

struct topt_model *topt_diffusers_build(const json_t *doc, const char *name,
                                        const struct topt_import_options *o,
                                        struct topt_error *err)
{
    const char *class = json_string_value(json_object_get(doc, "_class_name"));
    const struct class *c = classes;
    char known[700];
    while (c->name && (!class || strcmp(c->name, class)))
        c++;
    if (!c->name) {
        const char *part = part_of_pipeline(class);
        list_classes(known, sizeof known);
        topt_fail(err, TOPT_ERR_INVAL,
                  "a config of diffusers of the class %.60s%s%s; read are %s",
                  class ? class : "(none)", part ? ", " : "", part ? part : "", known);
        return NULL;
    }
    struct net *n = calloc(1, sizeof *n);
    json_t *whole = topt_hf_complete(doc, c->name, err);
    struct topt_model *m = NULL;
    if (!n)
        topt_nomem(err, "a config");
    else if (whole && !c->read(whole, n, err)) {
        n->a.eps = 1e-6;
        n->a.context_key = "text's length";
        n->a.usual_seq = n->a.context;
        n->a.not_run = "steps of time in each layer";
        topt_hf_note(&n->a,
                     "the text's encoders and what makes pixels of latents are not "
                     "in it; seq is the text's length");
        topt_hf_note_unread(doc, whole, c->name, &n->a);
        m = topt_hf_build_arch(&n->a, name, c->build, o, err);
    }
    json_decref(whole);
    free(n);
    return m;
}
