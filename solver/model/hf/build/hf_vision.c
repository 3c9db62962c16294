/* hf_vision.c - the operators of a language model's vision tower. */
#include "hf_vision.h"
#include "hf_build.h"
#include "hf_heads.h"
#include "hf_parts.h"
#include "hf_towers.h"
#include "model_graph.h"

#include <stdio.h>

/* So many parameters of each feature that nothing here reads. */
static int beside(struct hf_builder *v, int x, int64_t extra, const char *name)
{
    struct topt_attrs attrs = {.extra = extra};
    return extra ? topt_hf_add(v, "beside", x, -1, &attrs, "%s", name) : x;
}

static int patches_of(struct hf_builder *v, const struct hf_tower *t)
{
    const struct hf_arch *a = v->a;
    struct topt_attrs image = {.channels = a->channels * t->frames,
                               .height = t->side * t->patch,
                               .width = t->side * t->patch};
    struct topt_attrs conv = topt_hf_patches(v, t->patch);
    struct topt_attrs rows = {.positions = t->rows, .init_std = a->init_std};
    int x = topt_hf_add(v, "image", -1, -1, &image, "image");
    x = topt_hf_add(v, "conv", x, -1, &conv, "patches");
    if (t->patch_bias)
        x = topt_hf_add(v, "bias", x, -1, NULL, "patches.bias");
    x = topt_hf_add(v, "tokens", x, -1, NULL, "tokens");
    x = beside(v, x, t->class_token + t->beside, "class");
    x = topt_hf_unread(v, x, t->unread, "unread");
    if (t->rows)
        x = topt_hf_add(v, "position", x, -1, &rows, "position");
    return t->norm_before ? topt_hf_norm(v, x, "norm.before") : x;
}

/* Neighbours of both sides become one token. */
static int merged(struct hf_builder *v, const struct hf_tower *t, int x, const char *name)
{
    struct topt_attrs grid = {.height = t->side, .width = t->side};
    struct topt_attrs window = topt_attrs_window(t->merge, t->merge, 0);
    if (!t->merge)
        return x;
    x = topt_hf_add(v, "untokens", x, -1, &grid, "%s.grid", name);
    window.average = t->pooled;
    window.features = t->pooled ? 0 : t->merge_features;
    window.init_std = t->pooled ? 0 : v->a->init_std;
    x = topt_hf_add(v, t->pooled ? "pool" : "conv", x, -1, &window, "%s.merge", name);
    if (t->merge_bias)
        x = topt_hf_add(v, "bias", x, -1, NULL, "%s.merge.bias", name);
    return topt_hf_add(v, "tokens", x, -1, NULL, "%s.tokens", name);
}

static int activated(struct hf_builder *v, const struct hf_tower *t, int x,
                     const char *name, const char *which)
{
    char full[60];
    snprintf(full, sizeof full, "%s.%s", name, which);
    return topt_hf_unary(v, x, t->activation, full);
}

static int half_gated(struct hf_builder *v, int64_t width, int x, const char *name)
{
    struct topt_attrs pairs = {.features = width, .features_unit = 2},
                      silu = {.activation = TOPT_ACT_SILU};
    x = topt_hf_add(v, "regroup", x, -1, &pairs, "%s.pairs", name);
    return topt_hf_add(v, "glu", x, -1, &silu, "%s.glu", name);
}

/* A map, a norm and a gated feed-forward of what was merged. */
static int fed(struct hf_builder *v, const struct hf_tower *t, int x, const char *name)
{
    struct topt_attrs norm = {.eps = 1e-5};
    char part[60];
    snprintf(part, sizeof part, "%s.map", name);
    x = topt_hf_linear(v, x, t->out, 1, 0, part);
    x = topt_hf_add(v, "norm", x, -1, &norm, "%s.map.norm", name);
    snprintf(part, sizeof part, "%s.map.activation", name);
    x = topt_hf_unary(v, x, TOPT_ACT_GELU_ERF, part);
    snprintf(part, sizeof part, "%s.up", name);
    x = half_gated(v, t->after, topt_hf_linear(v, x, t->after, 2, 0, part), name);
    snprintf(part, sizeof part, "%s.down", name);
    return topt_hf_linear(v, x, t->out, 1, 0, part);
}

/* Tokens of the text's width. */
static int projected(struct hf_builder *v, const struct hf_tower *t, int x,
                     int64_t beside_norm, const char *name)
{
    struct topt_attrs norm = {.rms = t->joint_rms, .eps = v->a->eps};
    char part[60];
    if (t->joint_norm)
        x = topt_hf_add(v, "norm", x, -1, &norm, "%s.norm", name);
    snprintf(part, sizeof part, "%s.beside", name);
    x = beside(v, x, beside_norm, part);
    x = merged(v, t, x, name);
    if (t->merge_activated)
        x = activated(v, t, x, name, "merge.activation");
    if (t->merge_gated)
        x = half_gated(v, t->merge_features / 2, x, name);
    if (t->after)
        return fed(v, t, x, name);
    if (t->merged_out)
        return x;
    if (t->hidden) {
        snprintf(part, sizeof part, "%s.in", name);
        x = topt_hf_linear(v, x, t->hidden, 1, t->hidden_bias, part);
        x = activated(v, t, x, name, "activation");
    }
    snprintf(part, sizeof part, "%s.out", name);
    x = topt_hf_linear(v, x, t->out, 1, t->out_bias, part);
    return t->newline ? beside(v, x, 1, "newline") : x;
}

static struct hf_builder own(const struct hf_builder *b)
{
    struct hf_builder v = *b;
    v.a = &b->a->tower->a;
    v.prefix = "vision.";
    v.relative = v.own = -1;
    v.kept = NULL;
    return v;
}

/* What the tower's blocks make of an image, before any projection. */
static int blocks_of_image(struct hf_builder *b)
{
    const struct hf_tower *t = b->a->tower;
    struct hf_builder v = own(b);
    int y = patches_of(&v, t);
    y = topt_hf_stack(&v, y, t->a.layers, "vision.", topt_hf_block);
    v.prefix = "vision.";
    y = t->norm_after ? topt_hf_norm(&v, y, "norm") : y;
    b->failed |= v.failed;
    return y;
}

static int query_block(struct hf_builder *b, int x)
{
    return b->layer % b->encoded_every ? topt_hf_block(b, x)
                                       : topt_hf_decoder_block_post(b, x);
}

/* A few trained tokens read the patches (Li et al., BLIP-2, 2023); the rows that hold them
 * are made of the first patch's, for their shape alone. */
static int queried(struct hf_builder *v, const struct hf_tower *t, int y)
{
    struct hf_builder q = *v;
    struct topt_attrs whole = {.features = 1, .features_unit = t->a.width},
                      part = {.features_unit = t->q.width},
                      each = {.features = t->q.width, .features_unit = 1},
                      one = {.extra = 1};
    q.a = &t->q;
    q.prefix = "query.";
    q.encoded = y;
    q.encoded_every = t->cross_every;
    int x = topt_hf_add(&q, "select", y, -1, NULL, "first");
    x = topt_hf_add(&q, "regroup", x, -1, &whole, "whole");
    x = topt_hf_add(&q, "slice", x, -1, &part, "part");
    x = topt_hf_add(&q, "regroup", x, -1, &each, "each");
    x = topt_hf_add(&q, "beside", x, -1, &one, "token");
    for (int64_t i = 1; i < t->queries; i++)
        x = topt_hf_add(&q, "prepend", x, -1, NULL, "token%d", (int)i);
    x = topt_hf_norm(&q, x, "norm");
    x = topt_hf_stack(&q, x, t->q.layers, "query.", query_block);
    v->failed |= q.failed;
    return x;
}

int topt_hf_add_image_tokens(struct hf_builder *b, int x)
{
    const struct hf_tower *t = b->a->tower;
    int y = blocks_of_image(b);
    struct hf_builder v = own(b);
    y = t->queries ? queried(&v, t, y) : y;
    int z = projected(&v, t, y, t->joint_beside, "join");
    for (int64_t i = 0; i < t->deep; i++) {
        char name[32];
        snprintf(name, sizeof name, "deep%d", (int)i);
        /* a norm of what is merged has a gain and a bias of each of its parts */
        if (t->deep > 1)
            topt_hf_next_layer(&v);
        int more = projected(&v, t, y, 2 * (t->merge * t->merge - 1), name);
        topt_hf_no_layer(&v);
        z = topt_hf_add(&v, "add", z, more, NULL, "%s.add", name);
    }
    b->failed |= v.failed;
    if (t->across) {
        b->encoded = z;
        return x;
    }
    return topt_hf_add(b, "insert", x, z, NULL, "images");
}

/* Classes of the mean of all patches, or the tower's output. */
void topt_hf_build_tower(struct hf_builder *b)
{
    struct topt_attrs mean = {.mean = 1};
    int x = blocks_of_image(b);
    if (b->a->head == HF_BARE) {
        topt_hf_add(b, "mse", x, -1, NULL, "loss");
        return;
    }
    x = topt_hf_add(b, "reduce_sequence", x, -1, &mean, "mean");
    topt_hf_classifier(b, x);
}

/* Tokens with their positions, blocks, and of the last position a projection. */
static int text_row(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs table = {
        .vocab = a->vocab, .features = a->width, .init_std = a->init_std};
    struct topt_attrs rows = {.positions = a->positions, .init_std = a->init_std};
    struct topt_attrs last = {.offset = b->m->seq - 1};
    int x = topt_hf_add(b, "embedding", -1, -1, &table, "embedding");
    x = topt_hf_add(b, "position", x, -1, &rows, "position");
    x = topt_hf_stack(b, x, a->layers, "", topt_hf_block);
    x = topt_hf_norm(b, x, "norm");
    x = topt_hf_add(b, "select", x, -1, &last, "last");
    return topt_hf_linear(b, x, a->tower->out, 1, a->tower->text_bias, "text_projection");
}

void topt_hf_build_pair(struct hf_builder *b)
{
    const struct hf_tower *t = b->a->tower;
    if (!t) {
        topt_fail(b->err, TOPT_ERR_INVAL,
                  "it is a text encoder without the images that it is compared with");
        b->failed = 1;
        return;
    }
    int x = text_row(b), y = blocks_of_image(b);
    struct hf_builder v = own(b);
    y = topt_hf_add(&v, "select", y, -1, NULL, "first");
    if (!t->text_bias)
        y = topt_hf_linear(&v, y, t->out, 1, 0, "projection");
    y = topt_hf_unread(&v, y, t->scales, "scales");
    b->failed |= v.failed;
    x = topt_hf_add(b, "mul", x, y, NULL, "compare");
    topt_hf_add(b, "mse", x, -1, NULL, "loss");
}
