/* hf_audio_tower.c - audio encoders of multimodal language models: Whisper's (Radford et al.,
 * 2022) over a spectrogram of half a minute, Conformers, and the projectors behind them.
 *
 * A row has the model type, the class whose defaults the encoder's config takes, and the
 * reader of the projector. */
#include "hf_audio_tower.h"
#include "hf_build.h"
#include "hf_complete.h"
#include "hf_parts.h"
#include "hf_read.h"
#include "hf_unread.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

/* ---- reading ----------------------------------------------------------------------- */

/* Whisper's names, or those of a language model's blocks. */
static int size_of(const json_t *doc, const char *own, const char *usual, int64_t max,
                   int64_t *ret, struct topt_error *err)
{
    const char *key = json_is_integer(topt_json_member(doc, own)) ? own : usual;
    return topt_json_int(doc, "", key, 1, max, ret, err);
}

static int read_encoder(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    struct hf_arch *a = &t->a;
    const char *name = "gelu";
    a->bidirectional = a->qkv_bias = a->out_bias = a->mlp_bias = a->no_key_bias = 1;
    a->eps = 1e-5;
    a->init_std = 0.02;
    t->rows = 1500;
    a->channels = 128;
    if (size_of(doc, "d_model", "hidden_size", HF_MAX_WIDTH, &a->width, err) ||
        size_of(doc, "encoder_layers", "num_hidden_layers", HF_MAX_LAYERS, &a->layers,
                err) ||
        size_of(doc, "encoder_attention_heads", "num_attention_heads", HF_MAX_HEADS,
                &a->heads, err) ||
        size_of(doc, "encoder_ffn_dim", "intermediate_size", 4 * HF_MAX_WIDTH, &a->inner,
                err) ||
        topt_json_int_or(doc, "", "num_mel_bins", 1, 1 << 14, &a->channels, err) ||
        topt_json_int_or(doc, "", "max_source_positions", 1, 1 << 20, &t->rows, err) ||
        topt_json_string_or(doc, "", "activation_function", &name, err) ||
        topt_hf_activation_of("activation_function", name, a, err))
        return -1;
    (void)topt_json_member(doc, "head_dim"); /* a head's share, and one key a query */
    (void)topt_json_member(doc, "num_key_value_heads");
    t->side = t->rows;
    t->norm_after = 1;
    t->activation = TOPT_ACT_GELU_ERF;
    return topt_hf_set_heads(a, err);
}

/* Means of two frames, one map. */
static int join_qwen2(const json_t *doc, const json_t *audio, struct hf_tower *t,
                      struct topt_error *err)
{
    (void)doc, (void)audio, (void)err;
    t->merge = 2;
    t->pooled = t->out_bias = 1;
    return 0;
}

/* Means of two frames, two maps. */
static int join_flamingo(const json_t *doc, const json_t *audio, struct hf_tower *t,
                         struct topt_error *err)
{
    (void)audio;
    t->merge = 2;
    t->pooled = t->out_bias = 1;
    if (topt_json_bool_or(doc, "", "projector_bias", &t->out_bias, err))
        return -1;
    t->hidden_bias = t->out_bias;
    t->hidden = t->out;
    return 0;
}

/* Frames side by side, as many as the blocks are wider inside; two maps. */
static int join_voxtral(const json_t *doc, const json_t *audio, struct hf_tower *t,
                        struct topt_error *err)
{
    int64_t wide = t->a.inner;
    (void)doc;
    if (topt_json_int_or(audio, "", "intermediate_size", 1, 4 * HF_MAX_WIDTH, &wide, err))
        return -1;
    if (wide % t->a.width)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "intermediate_size %lld is not a multiple of hidden_size",
                         (long long)wide);
    t->merge = wide / t->a.width;
    t->merge_features = t->out;
    t->merge_activated = 1;
    return 0;
}

/* Its own map is the join; two tokens stand around the frames. */
static int join_omni(const json_t *doc, const json_t *audio, struct hf_tower *t,
                     struct topt_error *err)
{
    int64_t out = t->out;
    (void)doc;
    if (topt_json_int_or(audio, "", "output_dim", 1, HF_MAX_WIDTH, &out, err))
        return -1;
    if (out != t->out)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "its output_dim is %lld and the text's hidden_size %lld: they "
                         "do not go together",
                         (long long)out, (long long)t->out);
    t->merge = 2;
    t->fixed_rows = t->pooled = t->out_bias = 1;
    t->ends = 2;
    return 0;
}

/* Conformers (Gulati et al., 2020) over a spectrum that convolutions make eight times
 * smaller both ways. */
static int read_conformer(const json_t *doc, struct hf_tower *t, struct topt_error *err)
{
    struct hf_arch *a = &t->a;
    int64_t farthest = 1000;
    int symmetric = 0;
    a->bidirectional = a->qkv_bias = a->out_bias = a->mlp_bias = a->gated = 1;
    a->eps = 1e-5;
    a->init_std = 0.02;
    a->channels = 80;
    a->activation = TOPT_ACT_SILU;
    t->kernel = 3;
    t->side = 3000;
    t->conformer = 1;
    t->activation = TOPT_ACT_GELU_ERF;
    if (topt_json_int(doc, "", "hidden_size", 1, HF_MAX_WIDTH, &a->width, err) ||
        topt_json_int(doc, "", "num_blocks", 1, HF_MAX_LAYERS, &a->layers, err) ||
        topt_json_int(doc, "", "num_attention_heads", 1, HF_MAX_HEADS, &a->heads, err) ||
        topt_json_int(doc, "", "intermediate_size", 1, 4 * HF_MAX_WIDTH, &a->inner,
                      err) ||
        topt_json_int_or(doc, "", "input_size", 8, 1 << 14, &a->channels, err) ||
        topt_json_int_or(doc, "", "depthwise_separable_out_channel", a->width, a->width,
                         &a->width, err) ||
        topt_json_int_or(doc, "", "kernel_size", 1, 1024, &t->kernel, err) ||
        topt_json_int_or(doc, "", "bias_max_distance", 1, 1 << 20, &farthest, err) ||
        topt_json_bool_or(doc, "", "bias_symmetric", &symmetric, err))
        return -1;
    /* the table that all layers add to their scores */
    t->unread = (symmetric ? 1 : 2) * farthest * a->heads;
    return topt_hf_set_heads(a, err);
}

/* Two maps, and two more that sounds beside an image take. */
static int join_phi4(const json_t *doc, const json_t *audio, struct hf_tower *t,
                     struct topt_error *err)
{
    (void)doc, (void)audio, (void)err;
    t->hidden = t->out;
    t->hidden_bias = t->out_bias = 1;
    t->unread += (t->a.width + 1) * t->out + (t->out + 1) * t->out;
    return 0;
}

static const struct audio_tower {
    const char *type, *audio;
    int (*read)(const json_t *doc, struct hf_tower *t, struct topt_error *err);
    int (*join)(const json_t *doc, const json_t *audio, struct hf_tower *t,
                struct topt_error *err);
} audio_towers[] = {
    {"qwen2_audio", "qwen2_audio_encoder", read_encoder, join_qwen2},
    {"voxtral", "voxtral_encoder", read_encoder, join_voxtral},
    {"audioflamingo3", "audioflamingo3_encoder", read_encoder, join_flamingo},
    {"qwen2_5_omni_thinker", "qwen2_5_omni_audio_encoder", read_encoder, join_omni},
    {"phi4_multimodal", "phi4_multimodal_audio", read_conformer, join_phi4},
    {NULL, NULL, NULL, NULL}};

static const struct audio_tower *audio_tower_of(const json_t *doc)
{
    const char *type = json_string_value(topt_json_member(doc, "model_type"));
    const struct audio_tower *h = audio_towers;
    while (h->type && (!type || strcmp(h->type, type)))
        h++;
    return h->type ? h : NULL;
}

int topt_hf_has_audio(const json_t *doc)
{
    return audio_tower_of(doc) && json_is_object(topt_json_member(doc, "audio_config"));
}

int topt_hf_read_audio_tower(const json_t *doc, int64_t width, struct hf_tower *ret,
                             struct topt_error *err)
{
    const struct audio_tower *h = audio_tower_of(doc);
    json_t *whole =
        topt_hf_complete(topt_json_member(doc, "audio_config"), h->audio, err);
    *ret = (struct hf_tower){.out = width};
    int rc = !whole || h->read(whole, ret, err) || h->join(doc, whole, ret, err);
    if (!rc)
        topt_hf_note_unread(topt_json_member(doc, "audio_config"), whole, h->audio,
                            &ret->a);
    json_decref(whole);
    return rc ? topt_wrap(err, "audio_config") : 0;
}

/* ---- building ---------------------------------------------------------------------- */

static int convolution(struct hf_builder *v, int x, int64_t stride, const char *name)
{
    struct topt_attrs conv = {.features = v->a->width,
                              .kernel_h = 1,
                              .kernel_w = 3,
                              .stride_w = stride,
                              .pad_left = 1,
                              .pad_right = 1,
                              .init_std = v->a->init_std};
    struct topt_attrs act = {.activation = TOPT_ACT_GELU_ERF};
    x = topt_hf_add(v, "conv", x, -1, &conv, "%s", name);
    x = topt_hf_add(v, "bias", x, -1, NULL, "%s.bias", name);
    return topt_hf_add(v, "unary", x, -1, &act, "%s.activation", name);
}

/* Frames become fewer: means of neighbours, or a map of them side by side. */
static int merged(struct hf_builder *v, const struct hf_tower *t, int x)
{
    struct topt_attrs line = {.height = 1, .width = t->side};
    struct topt_attrs run = {.kernel_h = 1, .kernel_w = t->merge, .stride_w = t->merge};
    run.average = t->pooled;
    run.features = t->pooled ? 0 : t->merge_features;
    run.init_std = t->pooled ? 0 : v->a->init_std;
    x = topt_hf_add(v, "untokens", x, -1, &line, "frames.line");
    x = topt_hf_add(v, t->pooled ? "pool" : "conv", x, -1, &run, "frames.merge");
    return topt_hf_add(v, "tokens", x, -1, NULL, "frames.tokens");
}

/* ---- conformers -------------------------------------------------------------------- */

/* Half as many rows and columns by windows of three; channel by channel and across. */
static int halved(struct hf_builder *v, int x, int first, const char *name)
{
    struct topt_attrs conv = topt_hf_same_window(3, 2),
                      across = {.features = v->a->width,
                                .kernel_h = 1,
                                .kernel_w = 1,
                                .init_std = v->a->init_std},
                      relu = {.activation = TOPT_ACT_RELU};
    conv.init_std = v->a->init_std;
    conv.features = first ? v->a->width : 0;
    conv.features_unit = first ? 0 : 1;
    x = topt_hf_add(v, first ? "conv" : "conv_grouped", x, -1, &conv, "%s", name);
    x = topt_hf_add(v, "bias", x, -1, NULL, "%s.bias", name);
    if (!first) {
        x = topt_hf_add(v, "conv", x, -1, &across, "%s.across", name);
        x = topt_hf_add(v, "bias", x, -1, NULL, "%s.across.bias", name);
    }
    return topt_hf_add(v, "unary", x, -1, &relu, "%s.activation", name);
}

/* Half of what a gated feed-forward gives is added. */
static int half_fed(struct hf_builder *v, int x, const char *name)
{
    const struct hf_arch *a = v->a;
    struct topt_attrs act = {.activation = a->activation};
    char part[40];
    snprintf(part, sizeof part, "%s.norm", name);
    int y = topt_hf_norm(v, x, part);
    snprintf(part, sizeof part, "%s.gate_up", name);
    y = topt_hf_linear(v, y, a->inner, 2, 1, part);
    y = topt_hf_add(v, "glu", y, -1, &act, "%s.glu", name);
    snprintf(part, sizeof part, "%s.down", name);
    y = topt_hf_linear(v, y, a->width, 1, 1, part);
    snprintf(part, sizeof part, "%s.half", name);
    return topt_hf_add(v, "add", x, topt_hf_scale(v, y, 0.5, part), NULL, "%s.add", name);
}

static int conformer_block(struct hf_builder *v, int x)
{
    const struct hf_arch *a = v->a;
    struct topt_attrs act = {.activation = a->activation},
                      kernel = {.kernel_w = v->kernel};
    x = half_fed(v, x, "feed1");
    int y = topt_hf_attention(v, topt_hf_norm(v, x, "norm1"));
    x = topt_hf_add(v, "add", x, y, NULL, "add1");
    y = topt_hf_linear(v, topt_hf_norm(v, x, "conv.norm"), a->width, 2, 1,
                       "conv.gate_up");
    y = topt_hf_add(v, "bias", y, -1, NULL, "conv.gate_up.bias2");
    y = topt_hf_add(v, "glu", y, -1, &act, "conv.glu");
    y = topt_hf_add(v, "causal_conv", y, -1, &kernel, "conv.each");
    y = topt_hf_linear(v, y, a->width, 1, 1, "conv.across");
    y = topt_hf_unary(v, y, a->activation, "conv.activation");
    y = topt_hf_linear(v, y, a->width, 1, 1, "conv.out");
    x = topt_hf_add(v, "add", x, y, NULL, "conv.add");
    return topt_hf_norm(v, half_fed(v, x, "feed2"), "norm2");
}

static int by_conformers(struct hf_builder *v, const struct hf_tower *t)
{
    const struct hf_arch *a = v->a;
    int64_t left = ((a->channels + 1) / 2 + 1) / 2;
    struct topt_attrs sound = {.channels = 1, .height = t->side, .width = a->channels},
                      row = {.features = a->width,
                             .kernel_h = 1,
                             .stride_h = 1,
                             .init_std = a->init_std};
    left = (left + 1) / 2;
    row.kernel_w = row.stride_w = left;
    int y = topt_hf_add(v, "image", -1, -1, &sound, "spectrum");
    y = halved(v, y, 1, "conv1");
    y = halved(v, y, 0, "conv2");
    y = halved(v, y, 0, "conv3");
    y = topt_hf_add(v, "conv", y, -1, &row, "frames");
    y = topt_hf_add(v, "bias", y, -1, NULL, "frames.bias");
    y = topt_hf_add(v, "tokens", y, -1, NULL, "frames.tokens");
    v->kernel = t->kernel;
    return topt_hf_stack(v, y, a->layers, "sound.", conformer_block);
}

/* Whisper's encoder. */
static int by_whisper(struct hf_builder *v, const struct hf_tower *t)
{
    struct topt_attrs sound = {
        .channels = t->a.channels, .height = 1, .width = 2 * t->side};
    struct topt_attrs rows = {.positions = t->rows, .init_std = t->a.init_std};
    int y = topt_hf_add(v, "image", -1, -1, &sound, "spectrum");
    y = convolution(v, y, 1, "conv1");
    y = convolution(v, y, 2, "conv2");
    y = topt_hf_add(v, "tokens", y, -1, NULL, "tokens");
    if (!t->fixed_rows)
        y = topt_hf_add(v, "position", y, -1, &rows, "position");
    return topt_hf_stack(v, y, t->a.layers, "sound.", topt_hf_block);
}

int topt_hf_add_audio_tokens(struct hf_builder *b, int x)
{
    const struct hf_tower *t = b->a->audio_tower;
    struct hf_builder v = *b;
    v.a = &t->a;
    v.prefix = "sound.";
    v.relative = v.own = -1;
    v.kept = NULL;
    int y = t->conformer ? by_conformers(&v, t) : by_whisper(&v, t);
    v.prefix = "sound.";
    y = t->norm_after ? topt_hf_norm(&v, y, "norm") : y;
    y = t->merge ? merged(&v, t, y) : y;
    y = t->merge_activated ? topt_hf_unary(&v, y, t->activation, "frames.activation") : y;
    if (t->hidden) {
        y = topt_hf_linear(&v, y, t->hidden, 1, t->hidden_bias, "join.in");
        y = topt_hf_unary(&v, y, t->activation, "join.activation");
    }
    y = topt_hf_linear(&v, y, t->out, 1, t->out_bias, "join.out");
    y = topt_hf_unread(&v, y, t->ends * t->out + t->unread, "ends");
    b->failed |= v.failed;
    return topt_hf_add(b, "insert", x, y, NULL, "sounds");
}
