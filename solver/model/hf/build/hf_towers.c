/* hf_towers.c - models of Hugging Face configs that are no single stack over tokens:
 * images to classes (ViT), sound or text to text by an encoder and a decoder (Whisper,
 * T5). */
#include "hf_towers.h"
#include "hf_build.h"
#include "hf_heads.h"
#include "hf_parts.h"

#include <stdio.h>

static int convolution(struct hf_builder *b, int x, const struct topt_attrs *attrs,
                       const char *name)
{
    x = topt_hf_add(b, "conv", x, -1, attrs, "%s", name);
    return topt_hf_add(b, "bias", x, -1, NULL, "%s.bias", name);
}

/* Patches are tokens, a trained one before them gives the class. */
void topt_hf_build_vision(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    int64_t side = a->image / a->patch;
    struct topt_attrs image = {
        .channels = a->channels, .height = a->image, .width = a->image};
    struct topt_attrs patches = topt_hf_patches(b, a->patch);
    struct topt_attrs table = {.positions = side * side + 1 + a->distilled,
                               .init_std = a->init_std};
    struct topt_attrs mask = {.extra = 1};
    int x = topt_hf_add(b, "image", -1, -1, &image, "image");
    x = convolution(b, x, &patches, "patches");
    x = topt_hf_add(b, "tokens", x, -1, NULL, "tokens");
    if (a->mask_token)
        x = topt_hf_add(b, "beside", x, -1, &mask, "mask");
    if (a->distilled)
        x = topt_hf_add(b, "prepend", x, -1, NULL, "distillation");
    x = topt_hf_add(b, "prepend", x, -1, NULL, "class");
    if (!a->no_positions)
        x = topt_hf_add(b, "position", x, -1, &table, "position");
    for (int i = 0; i < a->registers; i++)
        x = topt_hf_add(b, "prepend", x, -1, NULL, "register%d", i);
    x = topt_hf_stack(b, x, a->layers, "", topt_hf_block);
    if (a->head == HF_BARE) {
        topt_hf_head(b, x, -1);
        return;
    }
    x = topt_hf_norm(b, x, "norm");
    int first = topt_hf_add(b, "select", x, -1, NULL, "first");
    struct topt_attrs mean = {.mean = 1};
    if (a->mean_beside)
        first = topt_hf_add(b, "concat", first,
                            topt_hf_add(b, "reduce_sequence", x, -1, &mean, "mean"), NULL,
                            "first.mean");
    topt_hf_classifier(b, first);
}

/* Queries of the text, keys and values of what the encoder made, without positions. */
static int cross_attention(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = {
        .heads = a->heads, .head_dim = a->head_dim, .scale = a->score_factor};
    int bias = a->qkv_bias;
    int q = topt_hf_linear(b, x, a->heads, a->head_dim, bias, "cross.q");
    int k = topt_hf_linear(b, b->encoded, a->heads, a->head_dim, bias && !a->no_key_bias,
                           "cross.k");
    int v = topt_hf_linear(b, b->encoded, a->heads, a->head_dim, bias, "cross.v");
    int kv = topt_hf_add(b, "concat", k, v, NULL, "cross.kv");
    x = topt_hf_add(b, "attention", q, kv, &attrs, "cross.attend");
    return topt_hf_linear(b, x, a->width, 1, a->out_bias, "cross.out");
}

/* The same with norms after the sums. */
int topt_hf_decoder_block_post(struct hf_builder *b, int x)
{
    x = topt_hf_sum(b, x, topt_hf_attention(b, x), "add1");
    x = topt_hf_norm(b, x, "norm1");
    x = topt_hf_sum(b, x, cross_attention(b, x), "add_cross");
    x = topt_hf_norm(b, x, "norm_cross");
    x = topt_hf_sum(b, x, topt_hf_mlp(b, x), "add2");
    return topt_hf_norm(b, x, "norm2");
}

static int decoder_block(struct hf_builder *b, int x)
{
    int y = topt_hf_attention(b, topt_hf_norm(b, x, "norm1"));
    x = topt_hf_sum(b, x, y, "add1");
    y = cross_attention(b, topt_hf_norm(b, x, "norm_cross"));
    x = topt_hf_sum(b, x, y, "add_cross");
    y = topt_hf_mlp(b, topt_hf_norm(b, x, "norm2"));
    return topt_hf_sum(b, x, y, "add2");
}

/* Two convolutions over the spectrum, the second of stride 2, then blocks that see all
 * of it.  Its table of positions is a fixed one there, and trained here. */
static int audio_encoder(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct hf_arch inner = *a;
    struct hf_builder e = *b;
    struct topt_attrs sound = {
        .channels = a->channels, .height = 1, .width = 2 * a->source};
    struct topt_attrs conv = {.features = a->width,
                              .kernel_h = 1,
                              .kernel_w = 3,
                              .pad_left = 1,
                              .pad_right = 1,
                              .init_std = a->init_std};
    struct topt_attrs act = {.activation = TOPT_ACT_GELU_ERF};
    inner.bidirectional = 1;
    inner.inner = a->encoder_inner;
    inner.heads = inner.kv_heads = a->encoder_heads;
    inner.head_dim = a->width / a->encoder_heads;
    e.a = &inner;
    e.prefix = "encoder.";
    int x = topt_hf_add(&e, "image", -1, -1, &sound, "sound");
    x = convolution(&e, x, &conv, "conv1");
    x = topt_hf_add(&e, "unary", x, -1, &act, "act1");
    conv.stride_w = 2;
    x = convolution(&e, x, &conv, "conv2");
    x = topt_hf_add(&e, "unary", x, -1, &act, "act2");
    x = topt_hf_add(&e, "tokens", x, -1, NULL, "tokens");
    x = topt_hf_add(&e, "position", x, -1, NULL, "position");
    x = topt_hf_stack(&e, x, a->encoder_layers, "encoder.", topt_hf_block);
    x = topt_hf_norm(&e, x, "encoder.norm");
    b->failed |= e.failed;
    return x;
}

void topt_hf_build_speech(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs table = {
        .vocab = a->vocab, .features = a->width, .init_std = a->init_std};
    struct topt_attrs positions = {.positions = a->positions, .init_std = a->init_std};
    b->encoded = audio_encoder(b);
    int w = topt_hf_add(b, "variable", -1, -1, &table, "wte");
    int x = topt_hf_add(b, "embedding", w, -1, NULL, "embedding");
    x = topt_hf_add(b, "position", x, -1, &positions, "position");
    x = topt_hf_stack(b, x, a->layers, "", decoder_block);
    topt_hf_head(b, x, w);
}

/* ---- text to text ------------------------------------------------------------------ */

/* Every stack has a table of relative positions that all its layers read, unless each
 * layer has its own. */
static int relative_table(struct hf_builder *b, const char *name)
{
    if (b->a->relative_each)
        return -1;
    struct topt_attrs attrs = {.vocab = b->a->buckets, .features = b->a->heads};
    return topt_hf_add(b, "variable", -1, -1, &attrs, "%s", name);
}

static int encoder_of_text(struct hf_builder *b, int table)
{
    struct hf_arch inner = *b->a;
    struct hf_builder e = *b;
    inner.bidirectional = 1;
    for (int64_t i = 0; inner.experts && i < inner.encoder_layers; i++)
        inner.layer[i] =
            inner.encoder_every == 1 || i % inner.encoder_every == 1 ? 0 : HF_DENSE;
    for (int64_t i = 0; inner.window && i < inner.encoder_layers; i++)
        inner.layer[i] |= HF_LOCAL;
    e.a = &inner;
    e.relative = relative_table(&e, "encoder.relative");
    int x = topt_hf_add(&e, "embedding", table, -1, NULL, "encoder.embedding");
    x = topt_hf_unread(&e, x, inner.encoder_unread, "encoder.unread");
    x = inner.tower && inner.add_image_tokens ? inner.add_image_tokens(&e, x) : x;
    x = topt_hf_stack(&e, x, inner.encoder_layers, "encoder.", topt_hf_block);
    x = topt_hf_norm(&e, x, "encoder.norm");
    b->failed |= e.failed;
    return x;
}

void topt_hf_build_translation(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs attrs = {
        .vocab = a->vocab, .features = a->width, .init_std = a->init_std};
    int table = topt_hf_add(b, "variable", -1, -1, &attrs, "wte");
    b->encoded = encoder_of_text(b, table);
    b->relative = relative_table(b, "relative");
    int x = topt_hf_add(b, "embedding", table, -1, NULL, "embedding");
    x = topt_hf_stack(b, x, a->layers, "", decoder_block);
    topt_hf_head(b, x, a->tied ? table : -1);
}

/* Two stacks with tables of their own, of which that of the decoder is its head too. */
void topt_hf_build_two_decoders(struct hf_builder *b)
{
    const struct hf_arch *a = b->a, *of = a->encoder;
    struct hf_builder e = *b;
    struct topt_attrs read = {
        .vocab = of->vocab, .features = of->width, .init_std = of->init_std};
    struct topt_attrs written = {
        .vocab = a->vocab, .features = a->width, .init_std = a->init_std};
    e.a = of;
    int x = topt_hf_add(&e, "embedding", -1, -1, &read, "encoder.embedding");
    x = topt_hf_scale(&e, x, of->embed_factor, "encoder.embedding.scale");
    x = topt_hf_stack(&e, x, of->layers, "encoder.", topt_hf_block);
    b->encoded = topt_hf_norm(&e, x, "encoder.norm");
    b->failed |= e.failed;
    int table = topt_hf_add(b, "variable", -1, -1, &written, "wte");
    x = topt_hf_add(b, "embedding", table, -1, NULL, "embedding");
    x = topt_hf_scale(b, x, a->embed_factor, "embedding.scale");
    x = topt_hf_stack(b, x, a->layers, "", topt_hf_block);
    topt_hf_head(b, x, a->tied ? table : -1);
}

/* Tokens with what is added to them, of one stack. */
static int placed_tokens(struct hf_builder *b, int table, const char *prefix)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs positions = {.positions = a->positions, .init_std = a->init_std};
    char name[40];
    int x = topt_hf_add(b, "embedding", table, -1, NULL, "%sembedding", prefix);
    snprintf(name, sizeof name, "%sembedding.scale", prefix);
    if (a->embed_factor > 0)
        x = topt_hf_scale(b, x, a->embed_factor, name);
    if (a->positions)
        x = topt_hf_add(b, "position", x, -1, &positions, "%sposition", prefix);
    snprintf(name, sizeof name, "%sembedding.norm", prefix);
    return a->embed_norm ? topt_hf_norm(b, x, name) : x;
}

/* As in BART (Lewis et al., 2020) and what came of it. */
void topt_hf_build_seq2seq(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct hf_arch inner = *a;
    struct hf_builder e = *b;
    struct topt_attrs attrs = {
        .vocab = a->vocab, .features = a->width, .init_std = a->init_std};
    int table = topt_hf_add(b, "variable", -1, -1, &attrs, "wte");
    inner.bidirectional = 1;
    inner.inner = a->encoder_inner;
    inner.heads = inner.kv_heads = a->encoder_heads;
    inner.head_dim = a->width / a->encoder_heads;
    e.a = &inner;
    int x = placed_tokens(&e, table, "encoder.");
    x = topt_hf_stack(&e, x, a->encoder_layers, "encoder.", topt_hf_block);
    b->encoded = a->stack_norms ? topt_hf_norm(&e, x, "encoder.norm") : x;
    b->failed |= e.failed;
    x = placed_tokens(b, table, "");
    x = topt_hf_stack(b, x, a->layers, "",
                      a->norms == HF_POST ? topt_hf_decoder_block_post : decoder_block);
    x = a->stack_norms ? topt_hf_norm(b, x, "norm") : x;
    topt_hf_head(b, x, a->head == HF_LANGUAGE ? table : -1);
}
