/* hf_audio.c - audio encoders over the waveform (Baevski et al., wav2vec 2.0, 2020):
 * convolutions make frames of samples, blocks see all frames. */
#include "hf_audio.h"
#include "hf_build.h"
#include "hf_heads.h"
#include "hf_parts.h"
#include "hf_read.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

/* ---- building ---------------------------------------------------------------------- */

/* One convolution over samples; channels are normed each by itself in the first one, or
 * all at once in each. */
static int frame_conv(struct hf_builder *b, int x, int i)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs conv = {.features = a->stage_width[i],
                              .kernel_h = 1,
                              .kernel_w = a->depth[i],
                              .stride_w = a->stage_heads[i],
                              .init_std = a->init_std};
    struct topt_attrs act = {.activation = TOPT_ACT_GELU_ERF}, eps = {.eps = 1e-5};
    x = topt_hf_add(b, "conv", x, -1, &conv, "conv%d", i);
    if (a->conv_bias)
        x = topt_hf_add(b, "bias", x, -1, NULL, "conv%d.bias", i);
    if (!i || a->norm_each)
        x = topt_hf_add(b, "group_norm", x, -1, &eps, "conv%d.norm", i);
    return topt_hf_add(b, "unary", x, -1, &act, "conv%d.activation", i);
}

/* A wide convolution in groups tells frames their places; its kernel has a norm of its
 * own. */
static int placed(struct hf_builder *b, int x, int64_t frames, const char *name)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs line = {.height = 1, .width = frames},
                      act = {.activation = TOPT_ACT_GELU_ERF},
                      groups = {.features = a->groups,
                                .features_unit = a->width / a->groups},
                      each = {.features = a->width, .features_unit = 1},
                      conv = {.features_unit = a->width / a->groups,
                              .kernel_h = 1,
                              .kernel_w = a->places,
                              .pad_left = a->places / 2,
                              .pad_right = (a->places - 1) / 2,
                              .init_std = a->init_std};
    int y = topt_hf_add(b, "regroup", x, -1, &groups, "%s.groups", name);
    y = topt_hf_add(b, "untokens", y, -1, &line, "%s.line", name);
    y = topt_hf_add(b, "conv_grouped", y, -1, &conv, "%s", name);
    y = topt_hf_add(b, "bias", y, -1, NULL, "%s.bias", name);
    y = topt_hf_add(b, "unary", y, -1, &act, "%s.activation", name);
    y = topt_hf_add(b, "tokens", y, -1, NULL, "%s.tokens", name);
    return topt_hf_add(b, "regroup", y, -1, &each, "%s.all", name);
}

/* Logits of letters for each frame, classes of the mean of all, or nothing. */
static void end(struct hf_builder *b, int x)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs mean = {.mean = 1};
    if (a->head == HF_LANGUAGE) {
        x = topt_hf_linear(b, x, a->vocab, 1, 1, "lm_head");
        topt_hf_add(b, "cross_entropy", x, -1, NULL, "loss");
    } else if (a->head == HF_LAST_CLASS) {
        x = topt_hf_linear(b, x, a->project, 1, 1, "projector");
        x = topt_hf_add(b, "reduce_sequence", x, -1, &mean, "mean");
        topt_hf_classifier(b, x);
    } else if (a->head == HF_TOKEN_CLASS) {
        topt_hf_classifier(b, x);
    } else {
        topt_hf_add(b, "mse", x, -1, NULL, "loss");
    }
}

void topt_hf_build_frames(struct hf_builder *b)
{
    const struct hf_arch *a = b->a;
    struct topt_attrs sound = {.channels = 1, .height = 1, .width = a->source};
    struct topt_attrs mask = {.extra = 1};
    char name[32];
    int x = topt_hf_add(b, "image", -1, -1, &sound, "sound");
    for (int i = 0; i < a->stages; i++) {
        topt_hf_next_layer(b);
        x = frame_conv(b, x, i);
    }
    topt_hf_no_layer(b);
    x = topt_hf_add(b, "tokens", x, -1, NULL, "frames");
    if (x < 0)
        return;
    int64_t frames = b->m->tensor[x].dim[1].count;
    x = a->no_joint_norm ? x : topt_hf_norm(b, x, "frames.norm");
    x = topt_hf_linear(b, x, a->width, 1, 1, "frames.projection");
    if (a->mask_token)
        x = topt_hf_add(b, "beside", x, -1, &mask, "mask");
    int y = x;
    for (int i = 0; i < a->place_layers; i++) {
        snprintf(name, sizeof name, a->place_layers > 1 ? "place%d" : "place", i);
        if (a->place_layers > 1)
            topt_hf_next_layer(b);
        y = placed(b, y, frames, name);
    }
    topt_hf_no_layer(b);
    x = topt_hf_add(b, "add", x, y, NULL, "placed");
    x = topt_hf_unread(b, x, a->unused, "unread");
    x = a->norms == HF_PRE ? x : topt_hf_norm(b, x, "norm");
    x = topt_hf_stack(b, x, a->layers, "", topt_hf_block);
    x = a->norms == HF_PRE ? topt_hf_norm(b, x, "norm") : x;
    end(b, x);
}

/* ---- reading ----------------------------------------------------------------------- */

/* Channels, windows and strides of the convolutions. */
static int read_convolutions(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const int64_t kernels[] = {10, 3, 3, 3, 3, 2, 2},
                         strides[] = {5, 2, 2, 2, 2, 2, 2};
    static const char *const keys[] = {"conv_dim", "conv_kernel", "conv_stride"};
    int64_t *to[] = {a->stage_width, a->depth, a->stage_heads};
    a->stages = 7;
    for (int i = 0; i < 7; i++) {
        a->stage_width[i] = 512;
        a->depth[i] = kernels[i];
        a->stage_heads[i] = strides[i];
    }
    for (int k = 0; k < 3; k++) {
        const json_t *list = topt_json_member(doc, keys[k]);
        size_t n = json_array_size(list);
        if (!list)
            continue;
        if (n < 1 || n > HF_MAX_STAGES)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s must be an array of at most %d numbers", keys[k],
                             HF_MAX_STAGES);
        a->stages = (int64_t)n;
        for (size_t i = 0; i < n; i++) {
            to[k][i] = json_integer_value(json_array_get(list, i));
            if (to[k][i] < 1 || to[k][i] > 1 << 16)
                return topt_fail(err, TOPT_ERR_INVAL, "%s[%zu] must be 1..65536", keys[k],
                                 i);
        }
    }
    return 0;
}

static int read_numbers(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("hidden_size", width, HF_MAX_WIDTH),
        HF_SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        HF_SIZE("intermediate_size", inner, 4 * HF_MAX_WIDTH),
        {0}};
    static const struct hf_size optional[] = {
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        HF_SIZE("num_conv_pos_embeddings", places, 1 << 14),
        HF_SIZE("num_conv_pos_embedding_groups", groups, 1 << 14),
        HF_SIZE("classifier_proj_size", project, HF_MAX_WIDTH),
        {0}};
    double time = 0.05, features = 0;
    a->width = 768;
    a->layers = a->heads = 12;
    a->inner = 3072;
    a->vocab = 32;
    a->places = 128;
    a->groups = 16;
    a->project = 256;
    if (topt_hf_sizes_or(doc, sizes, a, err) || topt_hf_sizes_or(doc, optional, a, err) ||
        topt_hf_set_heads(a, err) ||
        topt_hf_divides("hidden_size", a->width, "num_conv_pos_embedding_groups",
                        a->groups, err) ||
        topt_json_real_or(doc, "", "mask_time_prob", 0, 1, &time, err) ||
        topt_json_real_or(doc, "", "mask_feature_prob", 0, 1, &features, err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err))
        return -1;
    a->mask_token = time > 0 || features > 0;
    return 0;
}

int topt_hf_read_wav2vec2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { TEN_SECONDS = 160000 };
    const char *norm = "group", *act = "gelu";
    int stable = 0, adapter = 0, batch = 0;
    a->eps = 1e-5;
    a->init_std = 0.02;
    a->context = 1;
    a->context_key = "one position";
    a->bidirectional = a->qkv_bias = a->out_bias = a->mlp_bias = 1;
    a->source = TEN_SECONDS;
    a->place_layers = 1;
    if (read_convolutions(doc, a, err) || read_numbers(doc, a, err) ||
        topt_json_string_or(doc, "", "feat_extract_norm", &norm, err) ||
        topt_json_string_or(doc, "", "hidden_act", &act, err) ||
        topt_hf_activation_of("hidden_act", act, a, err) ||
        topt_json_bool_or(doc, "", "do_stable_layer_norm", &stable, err) ||
        topt_json_bool_or(doc, "", "conv_bias", &a->conv_bias, err) ||
        topt_json_bool_or(doc, "", "add_adapter", &adapter, err) ||
        topt_json_bool_or(doc, "", "conv_pos_batch_norm", &batch, err))
        return -1;
    if (adapter || batch || json_is_integer(topt_json_member(doc, "adapter_attn_dim")))
        return topt_fail(err, TOPT_ERR_INVAL, "%s is set: no reader takes that",
                         adapter ? "add_adapter"
                         : batch ? "conv_pos_batch_norm"
                                 : "adapter_attn_dim");
    a->norm_each = !strcmp(norm, "layer");
    a->norms = stable ? HF_PRE : HF_POST;
    a->unused = a->places; /* the norm of the kernel that tells places */
    topt_hf_classes(doc, a);
    topt_hf_note(a, "ten seconds at 16 kHz a sample; the loss is one of each frame");
    return 0;
}

/* The norm of frames may be switched off. */
int topt_hf_read_hubert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int norm = 1;
    if (topt_hf_read_wav2vec2(doc, a, err) ||
        topt_json_bool_or(doc, "", "feat_proj_layer_norm", &norm, err))
        return -1;
    a->no_joint_norm = !norm;
    return 0;
}

/* Scores by gated relative positions: what gates them in each layer, and one table. */
int topt_hf_read_wavlm(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    enum { GATES = 8 };
    int64_t buckets = 320;
    if (topt_hf_read_wav2vec2(doc, a, err) ||
        topt_json_int_or(doc, "", "num_buckets", 1, 1 << 16, &buckets, err))
        return -1;
    a->unused += buckets * a->heads + a->layers * (a->heads + GATES * (a->head_dim + 1));
    a->not_run = "gated relative positions";
    return 0;
}

/* Several narrow convolutions tell places, each with a norm that has nothing trained. */
int topt_hf_read_data2vec_audio(const json_t *doc, struct hf_arch *a,
                                struct topt_error *err)
{
    int64_t depth = 5, kernel = 19;
    if (topt_hf_read_wav2vec2(doc, a, err) ||
        topt_json_int_or(doc, "", "num_conv_pos_embeddings", 1, 64, &depth, err) ||
        topt_json_int_or(doc, "", "conv_pos_kernel_size", 1, 1 << 14, &kernel, err))
        return -1;
    a->place_layers = depth;
    a->places = kernel;
    a->norm_each = 1;
    a->unused = 0;
    return 0;
}
