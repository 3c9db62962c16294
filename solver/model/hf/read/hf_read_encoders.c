/* hf_read_encoders.c - readers of models with an encoder: of text, images, sound. */
#include "hf_read_encoders.h"
#include "hf_read.h"
#include "topt_json.h"

#include <math.h>
#include <string.h>

/* What BERT and what was distilled from it have in common. */
static const struct hf_arch bert_like = {
    .norms = HF_POST,
    .activation = TOPT_ACT_GELU_ERF,
    .bidirectional = 1,
    .embed_norm = 1,
    .no_final_norm = 1,
    .qkv_bias = 1,
    .out_bias = 1,
    .mlp_bias = 1,
    .tied = 1,
    .head_transform = 1,
    .head_bias = 1,
    .pooler = 1,
    .eps = 1e-12,
    .init_std = 0.02,
    .context_key = "max_position_embeddings",
};

/* The masked language model: a transform before the tied head.  Token types are loaded as
 * the tokens are. */
int topt_hf_read_bert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size types[] = {
        HF_SIZE("type_vocab_size", types, HF_MAX_VOCAB), {0}};
    int decoder = 0;
    *a = bert_like;
    a->types = 2;
    if (topt_hf_sizes(doc, topt_hf_usual_sizes, a, err) || topt_hf_set_heads(a, err) ||
        topt_hf_sizes_or(doc, types, a, err) ||
        topt_hf_expect(doc, "position_embedding_type", "absolute", err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_json_bool_or(doc, "", "is_decoder", &decoder, err) ||
        topt_hf_refuse_flag(doc, "add_cross_attention", 0,
                            "there is nothing to attend to", err) ||
        topt_hf_refuse_flag(doc, "tie_word_embeddings", 1, "no reader does that yet",
                            err))
        return -1;
    a->positions = a->context;
    a->bidirectional = !decoder;
    topt_hf_note(a, "token types are read as tokens are");
    return topt_hf_activation(doc, "hidden_act", &a->activation, err);
}

int topt_hf_read_distilbert(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("dim", width, HF_MAX_WIDTH),
        HF_SIZE("n_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("n_heads", heads, HF_MAX_HEADS),
        HF_SIZE("hidden_dim", inner, 4 * HF_MAX_WIDTH),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        HF_SIZE("max_position_embeddings", context, HF_MAX_CONTEXT),
        {0}};
    *a = bert_like;
    a->pooler = 0;
    if (topt_hf_sizes(doc, sizes, a, err) || topt_hf_set_heads(a, err) ||
        topt_json_real_or(doc, "", "initializer_range", 1e-12, 100, &a->init_std, err) ||
        topt_hf_refuse_flag(doc, "sinusoidal_pos_embds", 0, "positions are trained here",
                            err))
        return -1;
    a->positions = a->context;
    return topt_hf_activation(doc, "activation", &a->activation, err);
}

/* ---- towers ------------------------------------------------------------------------ */

/* Classes by the names that a config gives them. */
int topt_hf_read_vit(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("hidden_size", width, HF_MAX_WIDTH),
        HF_SIZE("num_hidden_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("num_attention_heads", heads, HF_MAX_HEADS),
        HF_SIZE("intermediate_size", inner, 4 * HF_MAX_WIDTH),
        {0}};
    static const struct hf_size optional[] = {HF_SIZE("image_size", image, 1 << 14),
                                              HF_SIZE("patch_size", patch, 1 << 14),
                                              HF_SIZE("num_channels", channels, 1 << 14),
                                              {0}};
    int bias = 1;
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU_ERF,
                          .bidirectional = 1,
                          .image = 224,
                          .patch = 16,
                          .channels = 3,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .eps = 1e-12,
                          .init_std = 0.02,
                          .context = 1,
                          .context_key = "one position"};
    if (topt_hf_sizes(doc, sizes, a, err) || topt_hf_set_heads(a, err) ||
        topt_hf_sizes_or(doc, optional, a, err) ||
        topt_json_bool_or(doc, "", "qkv_bias", &bias, err) ||
        topt_json_real_or(doc, "", "layer_norm_eps", 1e-30, 1, &a->eps, err) ||
        topt_hf_divides("image_size", a->image, "patch_size", a->patch, err))
        return -1;
    a->qkv_bias = bias;
    a->pooler = 1;
    topt_hf_classes(doc, a);
    return topt_hf_activation(doc, "hidden_act", &a->activation, err);
}

/* A second token, of what is distilled; classes are read from the first alone. */
int topt_hf_read_deit(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_vit(doc, a, err))
        return -1;
    a->distilled = 1;
    return 0;
}

/* Gains of what each half of a block adds; classes of the first and the mean of the
 * rest. */
int topt_hf_read_dinov2(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t ratio = 4;
    int gated = 0;
    json_t *usual = json_copy((json_t *)doc);
    const json_t *width = topt_json_member(doc, "hidden_size");
    if (!usual)
        return topt_nomem(err, "a config");
    int rc = topt_json_int_or(doc, "", "mlp_ratio", 1, 64, &ratio, err) ||
             topt_json_bool_or(doc, "", "use_swiglu_ffn", &gated, err) ||
             json_object_set_new(usual, "intermediate_size",
                                 json_integer(ratio * json_integer_value(width))) ||
             topt_hf_read_vit(usual, a, err);
    json_decref(usual);
    if (rc)
        return -1;
    if (gated) {
        a->gated = 1;
        a->activation = TOPT_ACT_SILU;
        a->inner = (2 * a->inner / 3 + 7) / 8 * 8;
    }
    a->layer_scale = a->mask_token = a->mean_beside = 1;
    a->pooler = 0;
    return 0;
}

int topt_hf_read_whisper(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("num_mel_bins", channels, 1 << 14),
        HF_SIZE("max_source_positions", source, 1 << 20),
        HF_SIZE("max_target_positions", context, HF_MAX_CONTEXT),
        {0}};
    *a = (struct hf_arch){.activation = TOPT_ACT_GELU_ERF,
                          .tied = 1,
                          .qkv_bias = 1,
                          .no_key_bias = 1,
                          .out_bias = 1,
                          .mlp_bias = 1,
                          .eps = 1e-5,
                          .init_std = 0.02,
                          .context_key = "max_target_positions"};
    if (topt_hf_sizes(doc, topt_hf_two_stacks, a, err) ||
        topt_hf_sizes(doc, sizes, a, err) || topt_hf_set_heads(a, err) ||
        topt_hf_divides("d_model", a->width, "encoder_attention_heads", a->encoder_heads,
                        err) ||
        topt_json_real_or(doc, "", "init_std", 1e-12, 100, &a->init_std, err) ||
        topt_hf_refuse_flag(doc, "scale_embedding", 0, "no reader does that yet", err))
        return -1;
    topt_hf_note(a, "the encoder's position embeddings, fixed there, are trained");
    a->positions = a->context;
    return topt_hf_activation(doc, "activation_function", &a->activation, err);
}

/* ---- text to text ------------------------------------------------------------------ */

/* "relu", "gated-gelu": the latter means the tanh form. */
static int read_feed_forward(const json_t *doc, const char *usual, struct hf_arch *a,
                             struct topt_error *err)
{
    static const char gated[] = "gated-";
    const char *name = usual;
    if (topt_json_string_or(doc, "", "feed_forward_proj", &name, err))
        return -1;
    a->gated = !strncmp(name, gated, sizeof gated - 1);
    name += a->gated ? sizeof gated - 1 : 0;
    if (topt_json_bool_or(doc, "", "is_gated_act", &a->gated, err))
        return -1;
    a->written = a->gated && !strcmp(name, "gelu");
    return topt_hf_activation_named("feed_forward_proj", a->written ? "gelu_new" : name,
                                    &a->activation, err);
}

/* Scores are not divided by anything, and know positions by a table of each stack; a
 * tied head reads its input over the root of the width. */
static int read_like_t5(const json_t *doc, const char *feed_forward, struct hf_arch *a,
                        struct topt_error *err)
{
    static const struct hf_size sizes[] = {
        HF_SIZE("d_model", width, HF_MAX_WIDTH),
        HF_SIZE("d_kv", head_dim, HF_MAX_WIDTH),
        HF_SIZE("d_ff", inner, 4 * HF_MAX_WIDTH),
        HF_SIZE("num_layers", encoder_layers, HF_MAX_LAYERS),
        HF_SIZE("num_heads", heads, HF_MAX_HEADS),
        HF_SIZE("vocab_size", vocab, HF_MAX_VOCAB),
        {0}};
    static const struct hf_size optional[] = {
        HF_SIZE("num_decoder_layers", layers, HF_MAX_LAYERS),
        HF_SIZE("relative_attention_num_buckets", buckets, 1024),
        HF_SIZE("relative_attention_max_distance", distance, HF_MAX_CONTEXT),
        HF_SIZE("n_positions", usual_seq, HF_MAX_CONTEXT),
        {0}};
    if (topt_hf_sizes(doc, sizes, a, err))
        return -1;
    a->layers = a->encoder_layers;
    a->rms = 1;
    a->eps = 1e-6;
    a->score_factor = 1;
    a->buckets = 32;
    a->distance = 128;
    a->usual_seq = 512;
    a->context = HF_MAX_CONTEXT;
    a->context_key = "length";
    if (topt_hf_sizes_or(doc, optional, a, err) || topt_hf_set_heads(a, err) ||
        read_feed_forward(doc, feed_forward, a, err) ||
        topt_json_real_or(doc, "", "layer_norm_epsilon", 1e-30, 1, &a->eps, err) ||
        topt_json_bool_or(doc, "", "tie_word_embeddings", &a->tied, err) ||
        topt_hf_refuse_flag(doc, "is_encoder_decoder", 1, "no reader does that yet", err))
        return -1;
    a->head_factor = a->tied ? 1 / sqrt((double)a->width) : 0;
    topt_hf_note(a, "encoder and decoder read as many tokens");
    return 0;
}

int topt_hf_read_t5(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.tied = 1};
    return read_like_t5(doc, "relu", a, err);
}

int topt_hf_read_mt5(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    *a = (struct hf_arch){.tied = 0};
    return read_like_t5(doc, "gated-gelu", a, err);
}

/* Each layer has its own table of relative positions. */
int topt_hf_read_umt5(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    if (topt_hf_read_mt5(doc, a, err))
        return -1;
    a->relative_each = 1;
    return 0;
}

/* Of so many layers so many have experts: each so-and-so-many-th, from the second on. */
static int read_sparse(const json_t *doc, const char *key, int64_t layers, int64_t *ret,
                       struct topt_error *err)
{
    int64_t n = 3;
    if (topt_json_int_or(doc, "", key, 1, HF_MAX_LAYERS, &n, err))
        return -1;
    *ret = layers / n > 0 ? layers / n : 1;
    return 0;
}

int topt_hf_read_switch(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    int64_t every = 1;
    *a = (struct hf_arch){.tied = 1};
    if (read_like_t5(doc, "relu", a, err))
        return -1;
    a->experts = 8;
    if (topt_json_int_or(doc, "", "num_experts", 1, HF_MAX_EXPERTS, &a->experts, err) ||
        read_sparse(doc, "num_sparse_encoder_layers", a->encoder_layers,
                    &a->encoder_every, err) ||
        read_sparse(doc, "num_sparse_decoder_layers", a->layers, &every, err) ||
        topt_json_bool_or(doc, "", "router_bias", &a->expert_bias, err))
        return -1;
    if (a->expert_bias)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "router_bias is true: routers here have none");
    for (int64_t i = 0; i < a->layers; i++)
        a->layer[i] |= every == 1 || i % every == 1 ? 0 : HF_DENSE;
    a->expert_inner = a->inner;
    a->top_k = 1;
    a->unnormalized = 1;
    topt_hf_give_slots(a);
    return 0;
}

/* The encoder sees blocks of keys around each, and perhaps sums of blocks, which have a
 * norm in each layer and a table of relative positions. */
int topt_hf_read_longt5(const json_t *doc, struct hf_arch *a, struct topt_error *err)
{
    const char *kind = "local";
    int64_t radius = 127;
    *a = (struct hf_arch){.tied = 1};
    if (read_like_t5(doc, "relu", a, err) ||
        topt_json_int_or(doc, "", "local_radius", 1, HF_MAX_CONTEXT, &radius, err) ||
        topt_json_string_or(doc, "", "encoder_attention_type", &kind, err))
        return -1;
    a->window = 3 * (radius + 1);
    a->usual_seq = 4096;
    a->not_run = "blocks of keys around those of a query";
    if (strcmp(kind, "local"))
        a->encoder_unread = a->encoder_layers * a->width + a->buckets * a->heads;
    return 0;
}
