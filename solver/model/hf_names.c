/* hf_names.c - tensors of Hugging Face checkpoints by name, and the parameters that
 * they are here.
 *
 * A row says: this tensor of a checkpoint is this operand of this operator, or a piece
 * of it.  '#' in both is a layer, '@' in the tensor's name an expert.  A row whose
 * operator a model does not have says nothing of it, so families that differ in what a
 * config switches on share rows.  Where two rows give one name, the tensor holds both,
 * one after the other. */
#include "model_impl.h"
#include "weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum piece {
    WHOLE,
    TURNED, /* the transpose */
    QUERY,  /* of a key-value head's queries, key and value the first numbers, */
    KEY,    /* those after them, */
    VALUE,  /* and the last; the operator "attention" beside it knows how many */
    FIRST,  /* one of each pair: what gates */
    SECOND,
    KERNEL,      /* a convolution's, which is flat here */
    EXPERT,      /* of each expert a tensor */
    EXPERT_GATE, /* the same of one of each pair */
    EXPERT_UP,
    EXPERTS_TURNED, /* of all experts one, each transposed */
    EXPERTS_ALL,    /* ... as they are */
    EXPERTS_PAIRED, /* ... of each all that gates, then all that is gated */
    /* Of a tensor that holds several parameters, in the order of the rows here: */
    RUN,
    LOW, /* of each unit the first half */
    HIGH,
    BY_KEY, /* of each group of keys of a delta rule its part of each */
    BY_HEAD /* of each head of queries */
};

struct row {
    const char *tensor, *op, *operand;
    enum piece piece;
};

/* ---- rows -------------------------------------------------------------------------- */

/* clang-format off */
#define LINEAR_OF(t, o, p)     {t ".weight", o, "w", p}, {t ".bias", o ".bias", "b", WHOLE}
#define LINEAR(t, o)           LINEAR_OF(t, o, WHOLE)
#define PIECE(t, o, p)         {t ".weight", o, "w", p}, {t ".bias", o ".bias", "b", p}
#define NORM(t, o)             {t ".weight", o, "g", WHOLE}, {t ".bias", o, "bias", WHOLE}, \
                               {t ".weight", o ".gain", "g", WHOLE}
#define TABLE(t, o)            {t ".weight", o, "w", WHOLE}
#define PART(t, o, p)          {t ".weight", o, "w", p}, {t ".bias", o ".bias", "b", p}
/* Convolutions along the sequence, of all that is convolved. */
#define CONV(t, o, p)          {t ".weight", o, "w", p}, {t ".bias", o, "b", p}
/* Apart or in one here; apart there. */
#define QKV(q, k, v, o)        PIECE(q, o "qkv", QUERY), PIECE(k, o "qkv", KEY), \
                               PIECE(v, o "qkv", VALUE), LINEAR(q, o "q"), \
                               LINEAR(k, o "k"), LINEAR(v, o "v")
#define GATED(gate, up, o)     PIECE(gate, o, FIRST), PIECE(up, o, SECOND)
#define EXPERTS(gate, up, down, o) \
    {gate ".weight", o, "up", EXPERT_GATE}, {up ".weight", o, "up", EXPERT_UP}, \
    {down ".weight", o, "down", EXPERT}
/* clang-format on */

static const struct row gpt2[] = {
    TABLE("transformer.wte", "wte"),
    TABLE("transformer.wte", "embedding"),
    {"transformer.wpe.weight", "position", "p", WHOLE},
    NORM("transformer.h.#.ln_1", "h#.norm1"),
    LINEAR_OF("transformer.h.#.attn.c_attn", "h#.qkv", TURNED),
    LINEAR_OF("transformer.h.#.attn.c_proj", "h#.out", TURNED),
    NORM("transformer.h.#.ln_2", "h#.norm2"),
    LINEAR_OF("transformer.h.#.mlp.c_fc", "h#.up", TURNED),
    LINEAR_OF("transformer.h.#.mlp.c_proj", "h#.down", TURNED),
    NORM("transformer.ln_f", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};

static const struct row gptj[] = {TABLE("transformer.wte", "embedding"),
                                  NORM("transformer.h.#.ln_1", "h#.norm1"),
                                  QKV("transformer.h.#.attn.q_proj",
                                      "transformer.h.#.attn.k_proj",
                                      "transformer.h.#.attn.v_proj", "h#."),
                                  LINEAR("transformer.h.#.attn.out_proj", "h#.out"),
                                  LINEAR("transformer.h.#.mlp.fc_in", "h#.up"),
                                  LINEAR("transformer.h.#.mlp.fc_out", "h#.down"),
                                  NORM("transformer.ln_f", "norm"),
                                  LINEAR("lm_head", "lm_head"),
                                  {0}};

static const struct row gpt_neox[] = {
    TABLE("gpt_neox.embed_in", "embedding"),
    TABLE("gpt_neox.embed_in", "wte"),
    NORM("gpt_neox.layers.#.input_layernorm", "h#.norm1"),
    LINEAR("gpt_neox.layers.#.attention.query_key_value", "h#.qkv"),
    LINEAR("gpt_neox.layers.#.attention.query_key_value", "h#.q"),
    LINEAR("gpt_neox.layers.#.attention.query_key_value", "h#.k"),
    LINEAR("gpt_neox.layers.#.attention.query_key_value", "h#.v"),
    LINEAR("gpt_neox.layers.#.attention.dense", "h#.out"),
    NORM("gpt_neox.layers.#.post_attention_layernorm", "h#.norm2"),
    LINEAR("gpt_neox.layers.#.mlp.dense_h_to_4h", "h#.up"),
    LINEAR("gpt_neox.layers.#.mlp.dense_4h_to_h", "h#.down"),
    NORM("gpt_neox.final_layer_norm", "norm"),
    TABLE("embed_out", "lm_head"),
    {0}};

static const struct row bloom[] = {
    TABLE("transformer.word_embeddings", "embedding"),
    TABLE("transformer.word_embeddings", "wte"),
    NORM("transformer.word_embeddings_layernorm", "embedding.norm"),
    NORM("transformer.h.#.input_layernorm", "h#.norm1"),
    LINEAR("transformer.h.#.self_attention.query_key_value", "h#.q"),
    LINEAR("transformer.h.#.self_attention.query_key_value", "h#.k"),
    LINEAR("transformer.h.#.self_attention.query_key_value", "h#.v"),
    LINEAR("transformer.h.#.self_attention.dense", "h#.out"),
    NORM("transformer.h.#.post_attention_layernorm", "h#.norm2"),
    LINEAR("transformer.h.#.mlp.dense_h_to_4h", "h#.up"),
    LINEAR("transformer.h.#.mlp.dense_4h_to_h", "h#.down"),
    NORM("transformer.ln_f", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};

static const struct row mpt[] = {TABLE("transformer.wte", "embedding"),
                                 TABLE("transformer.wte", "wte"),
                                 NORM("transformer.blocks.#.norm_1", "h#.norm1"),
                                 TABLE("transformer.blocks.#.attn.Wqkv", "h#.q"),
                                 TABLE("transformer.blocks.#.attn.Wqkv", "h#.k"),
                                 TABLE("transformer.blocks.#.attn.Wqkv", "h#.v"),
                                 TABLE("transformer.blocks.#.attn.out_proj", "h#.out"),
                                 NORM("transformer.blocks.#.norm_2", "h#.norm2"),
                                 TABLE("transformer.blocks.#.ffn.up_proj", "h#.up"),
                                 TABLE("transformer.blocks.#.ffn.down_proj", "h#.down"),
                                 NORM("transformer.norm_f", "norm"),
                                 TABLE("lm_head", "lm_head"),
                                 {0}};

#define OPT "model.decoder."
static const struct row opt[] = {TABLE(OPT "embed_tokens", "wte"),
                                 TABLE(OPT "embed_tokens", "embedding"),
                                 {OPT "embed_positions.weight", "position", "p", WHOLE},
                                 TABLE(OPT "project_in", "project_in"),
                                 TABLE(OPT "project_out", "project_out"),
                                 QKV(OPT "layers.#.self_attn.q_proj",
                                     OPT "layers.#.self_attn.k_proj",
                                     OPT "layers.#.self_attn.v_proj", "h#."),
                                 LINEAR(OPT "layers.#.self_attn.out_proj", "h#.out"),
                                 NORM(OPT "layers.#.self_attn_layer_norm", "h#.norm1"),
                                 LINEAR(OPT "layers.#.fc1", "h#.up"),
                                 LINEAR(OPT "layers.#.fc2", "h#.down"),
                                 NORM(OPT "layers.#.final_layer_norm", "h#.norm2"),
                                 NORM(OPT "final_layer_norm", "norm"),
                                 TABLE("lm_head", "lm_head"),
                                 {0}};

#define LLAMA "model.layers.#."

/* All of Llama's relatives, but for the first norm of those that begin with none. */
static const struct row bare_decoder[] = {TABLE("model.embed_tokens", "embedding"),
                                          TABLE("model.embed_tokens", "wte"),
                                          QKV(LLAMA "self_attn.q_proj",
                                              LLAMA "self_attn.k_proj",
                                              LLAMA "self_attn.v_proj", "h#."),
                                          LINEAR("lm_head", "lm_head"),
                                          {0}};
static const struct row decoder[] = {TABLE("model.embed_tokens", "embedding"),
                                     TABLE("model.embed_tokens", "wte"),
                                     NORM(LLAMA "input_layernorm", "h#.norm1"),
                                     QKV(LLAMA "self_attn.q_proj",
                                         LLAMA "self_attn.k_proj",
                                         LLAMA "self_attn.v_proj", "h#."),
                                     LINEAR("lm_head", "lm_head"),
                                     {0}};

static const struct row llama[] = {
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    NORM(LLAMA "self_attn.q_norm", "h#.q.norm"),
    NORM(LLAMA "self_attn.k_norm", "h#.k.norm"),
    GATED(LLAMA "mlp.gate_proj", LLAMA "mlp.up_proj", "h#.gate_up"),
    LINEAR(LLAMA "mlp.down_proj", "h#.down"),
    {0}};

static const struct row norms_before[] = {
    NORM(LLAMA "post_attention_layernorm", "h#.norm2"), NORM("model.norm", "norm"), {0}};

static const struct row norms_after[] = {
    NORM(LLAMA "post_attention_layernorm", "h#.norm1"),
    NORM(LLAMA "post_feedforward_layernorm", "h#.norm2"),
    NORM("model.norm", "norm"),
    {0}};

static const struct row norms_around[] = {
    NORM(LLAMA "post_attention_layernorm", "h#.norm1.after"),
    NORM(LLAMA "pre_feedforward_layernorm", "h#.norm2"),
    NORM(LLAMA "post_feedforward_layernorm", "h#.norm2.after"),
    NORM("model.norm", "norm"),
    {0}};

static const struct row starcoder2[] = {LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
                                        LINEAR(LLAMA "mlp.c_fc", "h#.up"),
                                        LINEAR(LLAMA "mlp.c_proj", "h#.down"),
                                        {0}};

static const struct row phi[] = {LINEAR(LLAMA "self_attn.dense", "h#.out"),
                                 NORM(LLAMA "self_attn.q_layernorm", "h#.q.norm"),
                                 NORM(LLAMA "self_attn.k_layernorm", "h#.k.norm"),
                                 LINEAR(LLAMA "mlp.fc1", "h#.up"),
                                 LINEAR(LLAMA "mlp.fc2", "h#.down"),
                                 NORM("model.final_layernorm", "norm"),
                                 {0}};

static const struct row phi3[] = {TABLE("model.embed_tokens", "embedding"),
                                  TABLE("model.embed_tokens", "wte"),
                                  NORM(LLAMA "input_layernorm", "h#.norm1"),
                                  TABLE(LLAMA "self_attn.qkv_proj", "h#.qkv"),
                                  TABLE(LLAMA "self_attn.qkv_proj", "h#.q"),
                                  TABLE(LLAMA "self_attn.qkv_proj", "h#.k"),
                                  TABLE(LLAMA "self_attn.qkv_proj", "h#.v"),
                                  TABLE(LLAMA "self_attn.o_proj", "h#.out"),
                                  TABLE(LLAMA "mlp.gate_up_proj", "h#.gate_up"),
                                  TABLE(LLAMA "mlp.down_proj", "h#.down"),
                                  TABLE("lm_head", "lm_head"),
                                  {0}};

static const struct row mixtral[] = {
    TABLE(LLAMA "block_sparse_moe.gate", "h#.router"),
    EXPERTS(LLAMA "block_sparse_moe.experts.@.w1", LLAMA "block_sparse_moe.experts.@.w3",
            LLAMA "block_sparse_moe.experts.@.w2", "h#.experts"),
    {0}};

/* Of Qwen and DeepSeek. */
static const struct row experts[] = {
    TABLE(LLAMA "mlp.gate", "h#.router"),
    EXPERTS(LLAMA "mlp.experts.@.gate_proj", LLAMA "mlp.experts.@.up_proj",
            LLAMA "mlp.experts.@.down_proj", "h#.experts"),
    GATED(LLAMA "mlp.shared_expert.gate_proj", LLAMA "mlp.shared_expert.up_proj",
          "h#.shared.gate_up"),
    TABLE(LLAMA "mlp.shared_expert.down_proj", "h#.shared.down"),
    TABLE(LLAMA "mlp.shared_expert_gate", "h#.shared.gate"),
    {0}};

/* Of GLM and those who took its parts. */
static const struct row corrected_experts[] = {
    TABLE(LLAMA "mlp.gate", "h#.router"),
    {LLAMA "mlp.gate.e_score_correction_bias", "h#.route", "correction", WHOLE},
    EXPERTS(LLAMA "mlp.experts.@.gate_proj", LLAMA "mlp.experts.@.up_proj",
            LLAMA "mlp.experts.@.down_proj", "h#.experts"),
    GATED(LLAMA "mlp.shared_experts.gate_proj", LLAMA "mlp.shared_experts.up_proj",
          "h#.shared.gate_up"),
    TABLE(LLAMA "mlp.shared_experts.down_proj", "h#.shared.down"),
    {0}};

static const struct row ungated[] = {LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
                                     LINEAR(LLAMA "mlp.up_proj", "h#.up"),
                                     LINEAR(LLAMA "mlp.down_proj", "h#.down"),
                                     {0}};

static const struct row deepseek[] = {
    TABLE("model.embed_tokens", "embedding"),
    TABLE("model.embed_tokens", "wte"),
    NORM(LLAMA "input_layernorm", "h#.norm1"),
    LINEAR(LLAMA "self_attn.q_a_proj", "h#.q_down"),
    NORM(LLAMA "self_attn.q_a_layernorm", "h#.q_norm"),
    LINEAR(LLAMA "self_attn.kv_a_proj_with_mqa", "h#.kv_down"),
    LINEAR(LLAMA "self_attn.kv_a_proj_with_mqa", "h#.k_shared"),
    NORM(LLAMA "self_attn.kv_a_layernorm", "h#.kv_norm"),
    TABLE(LLAMA "self_attn.kv_b_proj", "h#.kv"),
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    TABLE(LLAMA "mlp.gate", "h#.router"),
    {LLAMA "mlp.gate.e_score_correction_bias", "h#.route", "correction", WHOLE},
    EXPERTS(LLAMA "mlp.experts.@.gate_proj", LLAMA "mlp.experts.@.up_proj",
            LLAMA "mlp.experts.@.down_proj", "h#.experts"),
    GATED(LLAMA "mlp.shared_experts.gate_proj", LLAMA "mlp.shared_experts.up_proj",
          "h#.shared.gate_up"),
    TABLE(LLAMA "mlp.shared_experts.down_proj", "h#.shared.down"),
    GATED(LLAMA "mlp.gate_proj", LLAMA "mlp.up_proj", "h#.gate_up"),
    TABLE(LLAMA "mlp.down_proj", "h#.down"),
    TABLE("lm_head", "lm_head"),
    {0}};
/* Made of the rank of queries where there is one. */
static const struct row deepseek_ranked[] = {TABLE(LLAMA "self_attn.q_b_proj", "h#.q"),
                                             {0}};
static const struct row deepseek_plain[] = {TABLE(LLAMA "self_attn.q_proj", "h#.q"), {0}};

static const struct row llama4[] = {
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    TABLE(LLAMA "feed_forward.router", "h#.router"),
    {LLAMA "feed_forward.experts.gate_up_proj", "h#.experts", "up", EXPERTS_TURNED},
    {LLAMA "feed_forward.experts.down_proj", "h#.experts", "down", EXPERTS_TURNED},
    GATED(LLAMA "feed_forward.shared_expert.gate_proj",
          LLAMA "feed_forward.shared_expert.up_proj", "h#.shared.gate_up"),
    TABLE(LLAMA "feed_forward.shared_expert.down_proj", "h#.shared.down"),
    GATED(LLAMA "feed_forward.gate_proj", LLAMA "feed_forward.up_proj", "h#.gate_up"),
    TABLE(LLAMA "feed_forward.down_proj", "h#.down"),
    {0}};

static const struct row gemma4[] = {
    NORM(LLAMA "post_feedforward_layernorm_1", "h#.norm2.dense"),
    NORM(LLAMA "pre_feedforward_layernorm_2", "h#.norm2.experts"),
    NORM(LLAMA "post_feedforward_layernorm_2", "h#.norm2.experts.after"),
    {LLAMA "router.scale", "h#.router.norm", "g", WHOLE},
    TABLE(LLAMA "router.proj", "h#.router"),
    {LLAMA "router.per_expert_scale", "h#.route.gain", "g", WHOLE},
    {LLAMA "experts.gate_up_proj", "h#.experts", "up", WHOLE},
    {LLAMA "experts.down_proj", "h#.experts", "down", WHOLE},
    {0}};

/* ---- layers without attention ------------------------------------------------------- */

/* clang-format off */
#define MAMBA2(t)                                                                        \
    PART(t "in_proj", "h#.in.z", RUN), PART(t "in_proj", "h#.in.x", RUN),                \
    PART(t "in_proj", "h#.in.bc", LOW), PART(t "in_proj", "h#.in.bc", HIGH),             \
    PART(t "in_proj", "h#.in.dt", RUN), CONV(t "conv1d", "h#.conv.x", RUN),              \
    CONV(t "conv1d", "h#.conv.bc", LOW), CONV(t "conv1d", "h#.conv.bc", HIGH),           \
    {t "A_log", "h#.scan", "a_log", WHOLE}, {t "D", "h#.scan", "d", WHOLE},              \
    {t "dt_bias", "h#.scan", "bias", WHOLE}, NORM(t "norm", "h#.mixer.norm")
#define MAMBA(t)                                                                         \
    PART(t "in_proj", "h#.in.x", RUN), PART(t "in_proj", "h#.in.z", RUN),                \
    CONV(t "conv1d", "h#.conv.x", RUN), PART(t "x_proj", "h#.x.dt", RUN),                \
    PART(t "x_proj", "h#.x.b", RUN), PART(t "x_proj", "h#.x.c", RUN),                    \
    LINEAR(t "dt_proj", "h#.dt"), {t "A_log", "h#.scan", "a_log", WHOLE},                \
    {t "D", "h#.scan", "d", WHOLE}
/* clang-format on */

#define BACKBONE "backbone.layers.#."
static const struct row mamba_only[] = {TABLE("backbone.embeddings", "embedding"),
                                        TABLE("backbone.embeddings", "wte"),
                                        NORM(BACKBONE "norm", "h#.norm1"),
                                        LINEAR(BACKBONE "mixer.out_proj", "h#.mixer.out"),
                                        NORM("backbone.norm_f", "norm"),
                                        TABLE("lm_head", "lm_head"),
                                        {0}};
static const struct row mamba[] = {MAMBA(BACKBONE "mixer."), {0}};
static const struct row mamba2[] = {MAMBA2(BACKBONE "mixer."), {0}};

/* A layer is one thing, whose norm is that of the half of a block that it is. */
static const struct row nemotron_h[] = {
    TABLE("backbone.embedding", "embedding"),
    TABLE("backbone.embedding", "wte"),
    NORM(BACKBONE "norm", "h#.norm1"),
    NORM(BACKBONE "norm", "h#.norm2"),
    MAMBA2(BACKBONE "mixer."),
    LINEAR(BACKBONE "mixer.out_proj", "h#.mixer.out"),
    LINEAR(BACKBONE "mixer.o_proj", "h#.out"),
    QKV(BACKBONE "mixer.q_proj", BACKBONE "mixer.k_proj", BACKBONE "mixer.v_proj", "h#."),
    LINEAR(BACKBONE "mixer.up_proj", "h#.up"),
    LINEAR(BACKBONE "mixer.down_proj", "h#.down"),
    TABLE(BACKBONE "mixer.gate", "h#.router"),
    {BACKBONE "mixer.gate.e_score_correction_bias", "h#.route", "correction", WHOLE},
    {BACKBONE "mixer.experts.@.up_proj.weight", "h#.experts", "up", EXPERT},
    {BACKBONE "mixer.experts.@.down_proj.weight", "h#.experts", "down", EXPERT},
    LINEAR(BACKBONE "mixer.shared_experts.up_proj", "h#.shared.up"),
    LINEAR(BACKBONE "mixer.shared_experts.down_proj", "h#.shared.down"),
    NORM("backbone.norm_f", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};
static const struct row jamba[] = {
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    LINEAR(LLAMA "mamba.out_proj", "h#.mixer.out"),
    MAMBA(LLAMA "mamba."),
    NORM(LLAMA "mamba.dt_layernorm", "h#.dt.norm"),
    NORM(LLAMA "mamba.b_layernorm", "h#.b.norm"),
    NORM(LLAMA "mamba.c_layernorm", "h#.c.norm"),
    GATED(LLAMA "feed_forward.gate_proj", LLAMA "feed_forward.up_proj", "h#.gate_up"),
    LINEAR(LLAMA "feed_forward.down_proj", "h#.down"),
    TABLE(LLAMA "feed_forward.router", "h#.router"),
    EXPERTS(LLAMA "feed_forward.experts.@.gate_proj",
            LLAMA "feed_forward.experts.@.up_proj",
            LLAMA "feed_forward.experts.@.down_proj", "h#.experts"),
    NORM(LLAMA "pre_ff_layernorm", "h#.norm2"),
    NORM("model.final_layernorm", "norm"),
    {0}};

static const struct row bamba[] = {
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    LINEAR(LLAMA "mamba.out_proj", "h#.mixer.out"),
    MAMBA2(LLAMA "mamba."),
    GATED(LLAMA "feed_forward.gate_proj", LLAMA "feed_forward.up_proj", "h#.gate_up"),
    LINEAR(LLAMA "feed_forward.down_proj", "h#.down"),
    NORM(LLAMA "pre_ff_layernorm", "h#.norm2"),
    NORM("model.final_layernorm", "norm"),
    {0}};

static const struct row granite_hybrid[] = {
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    LINEAR(LLAMA "mamba.out_proj", "h#.mixer.out"),
    MAMBA2(LLAMA "mamba."),
    TABLE(LLAMA "shared_mlp.input_linear", "h#.gate_up"),
    TABLE(LLAMA "shared_mlp.output_linear", "h#.down"),
    TABLE(LLAMA "shared_mlp.input_linear", "h#.shared.gate_up"),
    TABLE(LLAMA "shared_mlp.output_linear", "h#.shared.down"),
    TABLE(LLAMA "block_sparse_moe.router.layer", "h#.router"),
    {LLAMA "block_sparse_moe.input_linear.weight", "h#.experts", "up", EXPERTS_PAIRED},
    {LLAMA "block_sparse_moe.output_linear.weight", "h#.experts", "down", EXPERTS_ALL},
    {0}};

#define DELTA LLAMA "linear_attn."
static const struct row delta_next[] = {PART(DELTA "in_proj_qkvz", "h#.in.qk", BY_KEY),
                                        PART(DELTA "in_proj_qkvz", "h#.in.v", BY_KEY),
                                        PART(DELTA "in_proj_qkvz", "h#.in.z", BY_KEY),
                                        PART(DELTA "in_proj_ba", "h#.in.b", BY_KEY),
                                        PART(DELTA "in_proj_ba", "h#.in.a", BY_KEY),
                                        {0}};
static const struct row delta_apart[] = {PART(DELTA "in_proj_qkv", "h#.in.qk", LOW),
                                         PART(DELTA "in_proj_qkv", "h#.in.qk", HIGH),
                                         PART(DELTA "in_proj_qkv", "h#.in.v", RUN),
                                         LINEAR(DELTA "in_proj_z", "h#.in.z"),
                                         LINEAR(DELTA "in_proj_b", "h#.in.b"),
                                         LINEAR(DELTA "in_proj_a", "h#.in.a"),
                                         {0}};
static const struct row delta[] = {
    TABLE("model.embed_tokens", "embedding"),
    TABLE("model.embed_tokens", "wte"),
    NORM(LLAMA "input_layernorm", "h#.norm1"),
    CONV(DELTA "conv1d", "h#.conv.qk", LOW),
    CONV(DELTA "conv1d", "h#.conv.qk", HIGH),
    CONV(DELTA "conv1d", "h#.conv.v", RUN),
    {DELTA "A_log", "h#.scan", "a_log", WHOLE},
    {DELTA "dt_bias", "h#.scan", "bias", WHOLE},
    NORM(DELTA "norm", "h#.mixer.norm"),
    LINEAR(DELTA "out_proj", "h#.mixer.out"),
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    PART(LLAMA "self_attn.q_proj", "h#.q", BY_HEAD),
    PART(LLAMA "self_attn.q_proj", "h#.gate", BY_HEAD),
    LINEAR(LLAMA "self_attn.k_proj", "h#.k"),
    LINEAR(LLAMA "self_attn.v_proj", "h#.v"),
    NORM(LLAMA "self_attn.q_norm", "h#.q.norm"),
    NORM(LLAMA "self_attn.k_norm", "h#.k.norm"),
    GATED(LLAMA "mlp.gate_proj", LLAMA "mlp.up_proj", "h#.gate_up"),
    LINEAR(LLAMA "mlp.down_proj", "h#.down"),
    LINEAR("lm_head", "lm_head"),
    {0}};

static const struct row lfm2[] = {
    TABLE("model.embed_tokens", "embedding"),
    TABLE("model.embed_tokens", "wte"),
    NORM(LLAMA "operator_norm", "h#.norm1"),
    PART(LLAMA "conv.in_proj", "h#.in.b", RUN),
    PART(LLAMA "conv.in_proj", "h#.in.c", RUN),
    PART(LLAMA "conv.in_proj", "h#.in.x", RUN),
    CONV(LLAMA "conv.conv", "h#.conv", RUN),
    LINEAR(LLAMA "conv.out_proj", "h#.mixer.out"),
    LINEAR(LLAMA "self_attn.out_proj", "h#.out"),
    QKV(LLAMA "self_attn.q_proj", LLAMA "self_attn.k_proj", LLAMA "self_attn.v_proj",
        "h#."),
    NORM(LLAMA "self_attn.q_layernorm", "h#.q.norm"),
    NORM(LLAMA "self_attn.k_layernorm", "h#.k.norm"),
    NORM(LLAMA "ffn_norm", "h#.norm2"),
    GATED(LLAMA "feed_forward.w1", LLAMA "feed_forward.w3", "h#.gate_up"),
    TABLE(LLAMA "feed_forward.w2", "h#.down"),
    TABLE(LLAMA "feed_forward.gate", "h#.router"),
    {LLAMA "feed_forward.expert_bias", "h#.route", "correction", WHOLE},
    EXPERTS(LLAMA "feed_forward.experts.@.w1", LLAMA "feed_forward.experts.@.w3",
            LLAMA "feed_forward.experts.@.w2", "h#.experts"),
    NORM("model.embedding_norm", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};

#define MODERN "model.layers.#."
static const struct row modernbert[] = {
    TABLE("model.embeddings.tok_embeddings", "wte"),
    TABLE("model.embeddings.tok_embeddings", "embedding"),
    NORM("model.embeddings.norm", "embedding.norm"),
    NORM(MODERN "attn_norm", "h#.norm1"),
    LINEAR(MODERN "attn.Wqkv", "h#.qkv"),
    LINEAR(MODERN "attn.Wqkv", "h#.q"),
    LINEAR(MODERN "attn.Wqkv", "h#.k"),
    LINEAR(MODERN "attn.Wqkv", "h#.v"),
    LINEAR(MODERN "attn.Wo", "h#.out"),
    NORM(MODERN "mlp_norm", "h#.norm2"),
    LINEAR(MODERN "mlp.Wi", "h#.gate_up"),
    LINEAR(MODERN "mlp.Wo", "h#.down"),
    NORM("model.final_norm", "norm"),
    LINEAR("head.dense", "transform"),
    NORM("head.norm", "transform.norm"),
    LINEAR("classifier", "classifier"),
    {"decoder.bias", "lm_head.bias", "b", WHOLE},
    {0}};

#define BERT "bert.encoder.layer.#."
static const struct row bert[] = {
    TABLE("bert.embeddings.word_embeddings", "wte"),
    TABLE("bert.embeddings.word_embeddings", "embedding"),
    TABLE("bert.embeddings.token_type_embeddings", "types"),
    {"bert.embeddings.position_embeddings.weight", "position", "p", WHOLE},
    NORM("bert.embeddings.LayerNorm", "embedding.norm"),
    QKV(BERT "attention.self.query", BERT "attention.self.key",
        BERT "attention.self.value", "h#."),
    LINEAR(BERT "attention.output.dense", "h#.out"),
    NORM(BERT "attention.output.LayerNorm", "h#.norm1"),
    LINEAR(BERT "intermediate.dense", "h#.up"),
    LINEAR(BERT "output.dense", "h#.down"),
    NORM(BERT "output.LayerNorm", "h#.norm2"),
    LINEAR("cls.predictions.transform.dense", "transform"),
    NORM("cls.predictions.transform.LayerNorm", "transform.norm"),
    {"cls.predictions.bias", "lm_head.bias", "b", WHOLE},
    LINEAR("bert.pooler.dense", "pooler"),
    LINEAR("classifier", "classifier"),
    {0}};

#define DISTIL "distilbert.transformer.layer.#."
static const struct row distilbert[] = {
    TABLE("distilbert.embeddings.word_embeddings", "wte"),
    TABLE("distilbert.embeddings.word_embeddings", "embedding"),
    {"distilbert.embeddings.position_embeddings.weight", "position", "p", WHOLE},
    NORM("distilbert.embeddings.LayerNorm", "embedding.norm"),
    QKV(DISTIL "attention.q_lin", DISTIL "attention.k_lin", DISTIL "attention.v_lin",
        "h#."),
    LINEAR(DISTIL "attention.out_lin", "h#.out"),
    NORM(DISTIL "sa_layer_norm", "h#.norm1"),
    LINEAR(DISTIL "ffn.lin1", "h#.up"),
    LINEAR(DISTIL "ffn.lin2", "h#.down"),
    NORM(DISTIL "output_layer_norm", "h#.norm2"),
    LINEAR("vocab_transform", "transform"),
    NORM("vocab_layer_norm", "transform.norm"),
    {"vocab_projector.bias", "lm_head.bias", "b", WHOLE},
    LINEAR("pre_classifier", "pooler"),
    LINEAR("classifier", "classifier"),
    {0}};

#define VIT "vit.encoder.layer.#."
static const struct row vit[] = {
    {"vit.embeddings.cls_token", "class", "token", WHOLE},
    {"vit.embeddings.position_embeddings", "position", "p", WHOLE},
    {"vit.embeddings.patch_embeddings.projection.weight", "patches", "w", KERNEL},
    {"vit.embeddings.patch_embeddings.projection.bias", "patches.bias", "b", WHOLE},
    QKV(VIT "attention.attention.query", VIT "attention.attention.key",
        VIT "attention.attention.value", "h#."),
    LINEAR(VIT "attention.output.dense", "h#.out"),
    LINEAR(VIT "intermediate.dense", "h#.up"),
    LINEAR(VIT "output.dense", "h#.down"),
    NORM(VIT "layernorm_before", "h#.norm1"),
    NORM(VIT "layernorm_after", "h#.norm2"),
    NORM("vit.layernorm", "norm"),
    LINEAR("classifier", "classifier"),
    {0}};

#define STACK(s, o)                                                                      \
    QKV(s "self_attn.q_proj", s "self_attn.k_proj", s "self_attn.v_proj", o),            \
        LINEAR(s "self_attn.out_proj", o "out"),                                         \
        NORM(s "self_attn_layer_norm", o "norm1"), LINEAR(s "fc1", o "up"),              \
        LINEAR(s "fc2", o "down"), NORM(s "final_layer_norm", o "norm2")
#define ENCODER "model.encoder."
#define DECODER "model.decoder."
static const struct row whisper[] = {
    {ENCODER "conv1.weight", "encoder.conv1", "w", KERNEL},
    {ENCODER "conv1.bias", "encoder.conv1.bias", "b", WHOLE},
    {ENCODER "conv2.weight", "encoder.conv2", "w", KERNEL},
    {ENCODER "conv2.bias", "encoder.conv2.bias", "b", WHOLE},
    {ENCODER "embed_positions.weight", "encoder.position", "p", WHOLE},
    STACK(ENCODER "layers.#.", "encoder.h#."),
    NORM(ENCODER "layer_norm", "encoder.norm"),
    TABLE(DECODER "embed_tokens", "wte"),
    {DECODER "embed_positions.weight", "position", "p", WHOLE},
    STACK(DECODER "layers.#.", "h#."),
    LINEAR(DECODER "layers.#.encoder_attn.q_proj", "h#.cross.q"),
    LINEAR(DECODER "layers.#.encoder_attn.k_proj", "h#.cross.k"),
    LINEAR(DECODER "layers.#.encoder_attn.v_proj", "h#.cross.v"),
    LINEAR(DECODER "layers.#.encoder_attn.out_proj", "h#.cross.out"),
    NORM(DECODER "layers.#.encoder_attn_layer_norm", "h#.norm_cross"),
    NORM(DECODER "layer_norm", "norm"),
    {0}};

#define SELF(s, o)                                                                       \
    TABLE(s "layer.0.SelfAttention.q", o "q"),                                           \
        TABLE(s "layer.0.SelfAttention.k", o "k"),                                       \
        TABLE(s "layer.0.SelfAttention.v", o "v"),                                       \
        TABLE(s "layer.0.SelfAttention.o", o "out"),                                     \
        NORM(s "layer.0.layer_norm", o "norm1")
#define DENSE(s, o)                                                                      \
    TABLE(s "DenseReluDense.wi", o "up"),                                                \
        GATED(s "DenseReluDense.wi_0", s "DenseReluDense.wi_1", o "gate_up"),            \
        TABLE(s "DenseReluDense.wo", o "down")
static const struct row t5[] = {
    TABLE("shared", "wte"),
    TABLE("encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
          "encoder.relative"),
    SELF("encoder.block.#.", "encoder.h#."),
    DENSE("encoder.block.#.layer.1.", "encoder.h#."),
    NORM("encoder.block.#.layer.1.layer_norm", "encoder.h#.norm2"),
    NORM("encoder.final_layer_norm", "encoder.norm"),
    TABLE("decoder.block.0.layer.0.SelfAttention.relative_attention_bias", "relative"),
    SELF("decoder.block.#.", "h#."),
    TABLE("decoder.block.#.layer.1.EncDecAttention.q", "h#.cross.q"),
    TABLE("decoder.block.#.layer.1.EncDecAttention.k", "h#.cross.k"),
    TABLE("decoder.block.#.layer.1.EncDecAttention.v", "h#.cross.v"),
    TABLE("decoder.block.#.layer.1.EncDecAttention.o", "h#.cross.out"),
    NORM("decoder.block.#.layer.1.layer_norm", "h#.norm_cross"),
    DENSE("decoder.block.#.layer.2.", "h#."),
    NORM("decoder.block.#.layer.2.layer_norm", "h#.norm2"),
    NORM("decoder.final_layer_norm", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};

/* ---- families ---------------------------------------------------------------------- */

/* Layers behind the last, which predict further tokens. */
static const char further_layers[] = "model.layers.";

/* The rows of families; 'extra' are starts of names that may be there and are not the
 * model's: tables that are tied, heads for another task, layers that are left out. */
static const struct naming {
    const char *families, *base; /* names between blanks */
    const struct row *rows[5];
    const char *extra[4];
} namings[] = {
    {" gpt2 ", "transformer.", {gpt2}, {"lm_head."}},
    {" gptj ", "transformer.", {gptj}, {NULL}},
    {" gpt_neox ", "gpt_neox.", {gpt_neox}, {"embed_out."}},
    {" modernbert ", "model.", {modernbert}, {"decoder.weight"}},
    {" bloom ", "transformer.", {bloom}, {"lm_head."}},
    {" mpt ", "transformer.", {mpt}, {"lm_head."}},
    {" opt ", "model.", {opt}, {"lm_head."}},
    {" llama mistral qwen2 qwen3 gemma cohere cohere2 stablelm ",
     "model.",
     {decoder, llama, norms_before},
     {"lm_head."}},
    {" gemma2 gemma3_text ", "model.", {decoder, llama, norms_around}, {"lm_head."}},
    {" gemma4_text ", "model.", {decoder, llama, norms_around, gemma4}, {"lm_head."}},
    {" starcoder2 ", "model.", {decoder, starcoder2, norms_before}, {"lm_head."}},
    {" phi ", "model.", {decoder, phi}, {NULL}},
    {" phi3 ", "model.", {phi3, norms_before}, {"lm_head."}},
    {" mixtral ", "model.", {decoder, llama, norms_before, mixtral}, {"lm_head."}},
    {" qwen2_moe qwen3_moe olmoe ",
     "model.",
     {decoder, llama, norms_before, experts},
     {"lm_head."}},
    {" llama4_text ", "model.", {decoder, llama4, norms_before}, {"lm_head."}},
    {" deepseek_v3 kimi_k2 deepseek_v2 glm4_moe_lite ",
     "model.",
     {deepseek, norms_before, deepseek_ranked},
     {"lm_head.", further_layers}},
    {" ministral ministral3 seed_oss smollm3 granite helium ernie4_5 qwen3_vl_text ",
     "model.",
     {decoder, llama, norms_before},
     {"lm_head.", "visual.", "model.visual."}},
    {" mimo ",
     "model.",
     {decoder, llama, norms_before},
     {"lm_head.", "model.mtp_layers."}},
    {" qwen2_vl_text qwen2_5_vl_text ",
     "model.",
     {decoder, llama, norms_before},
     {"lm_head.", "visual."}},
    {" olmo2 olmo3 exaone4 ", "model.", {bare_decoder, llama, norms_after}, {"lm_head."}},
    {" olmo ", "model.", {decoder, llama}, {"lm_head."}},
    {" arcee nemotron ", "model.", {decoder, ungated, norms_before}, {"lm_head."}},
    {" glm4_moe dots1 solar_open ",
     "model.",
     {decoder, llama, norms_before, corrected_experts},
     {"lm_head.", further_layers}},
    {" mamba falcon_mamba ", "backbone.", {mamba_only, mamba}, {"lm_head."}},
    {" mamba2 ", "backbone.", {mamba_only, mamba2}, {"lm_head."}},
    {" nemotron_h ", "backbone.", {nemotron_h}, {"lm_head."}},
    {" jamba ", "model.", {decoder, jamba}, {"lm_head."}},
    {" bamba ", "model.", {decoder, bamba}, {"lm_head."}},
    {" granitemoehybrid ",
     "model.",
     {decoder, granite_hybrid, norms_before},
     {"lm_head."}},
    {" qwen3_next ",
     "model.",
     {delta, delta_next, norms_before, experts},
     {"lm_head.", "mtp."}},
    {" qwen3_5_text ",
     "model.",
     {delta, delta_apart, norms_before},
     {"lm_head.", "mtp."}},
    {" qwen3_5_moe_text ",
     "model.",
     {delta, delta_apart, norms_before, experts},
     {"lm_head.", "mtp."}},
    {" lfm2 lfm2_moe ", "model.", {lfm2}, {"lm_head."}},
    {" bert ",
     "bert.",
     {bert},
     {"cls.predictions.decoder.", "cls.seq_relationship.", "bert.pooler."}},
    {" distilbert ", "distilbert.", {distilbert}, {"vocab_projector."}},
    {" vit ", "vit.", {vit}, {"vit.pooler."}},
    {" whisper ", "model.", {whisper}, {"proj_out."}},
    {" t5 ", "", {t5}, {"encoder.embed_tokens.", "decoder.embed_tokens.", "lm_head."}},
    {" mt5 ", "", {t5}, {"encoder.embed_tokens.", "decoder.embed_tokens."}},
    {0},
};

static const struct naming *naming_of(const struct topt_model *m)
{
    char word[90];
    snprintf(word, sizeof word, " %.80s ", m->family ? m->family : "");
    for (const struct naming *n = namings; m->family && n->families; n++)
        if (strstr(n->families, word))
            return n;
    return NULL;
}

const char *topt_weights_base(const struct topt_model *m)
{
    const struct naming *n = naming_of(m);
    return n ? n->base : "";
}

static int ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

/* Masks and frequencies that are saved with weights, and scales of those in few bits. */
static int is_buffer(const char *name)
{
    static const char *const ends[] = {
        ".attn.bias",   ".attn.masked_bias", ".inv_freq",
        "position_ids", ".attention.bias",   ".attention.masked_bias",
        "_scale_inv",   ".layer_scalar",     NULL};
    for (int i = 0; ends[i]; i++)
        if (ends_in(name, ends[i]))
            return 1;
    return 0;
}

/* Has the layer one of the operators that a layer has? */
static int is_layer(const struct topt_model *m, const char *prefix, int64_t layer)
{
    static const char *const ops[] = {"out", "mixer.out", "down", "experts"};
    char name[64];
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        snprintf(name, sizeof name, "%sh%lld.%s", prefix, (long long)layer, ops[i]);
        if (topt_model_find(m, name) >= 0)
            return 1;
    }
    return 0;
}

static int64_t count_layers(const struct topt_model *m, const char *prefix)
{
    int64_t n = 0;
    while (is_layer(m, prefix, n))
        n++;
    return n;
}

static int is_extra(const struct topt_model *m, const char *extra, const char *name)
{
    size_t n = strlen(extra);
    return !strncmp(name, extra, n) &&
           (extra != further_layers ||
            strtoll(name + n, NULL, 10) >= count_layers(m, ""));
}

int topt_weights_may_be_there(const struct topt_model *m, const char *name)
{
    const struct naming *n = naming_of(m);
    int extra = is_buffer(name);
    for (int i = 0; n && i < 4 && n->extra[i]; i++)
        extra |= is_extra(m, n->extra[i], name);
    return extra;
}

/* ---- from rows to tensors ---------------------------------------------------------- */

struct visit {
    const struct topt_model *m;
    topt_weight_visit *f;
    void *ctx;
};

/* The text with '#' as the layer and '@' as the expert. */
static void name_of(const char *pattern, int64_t layer, int64_t expert, char *ret,
                    size_t size)
{
    size_t n = 0;
    for (const char *c = pattern; *c && n + 24 < size; c++)
        if (*c == '#' || *c == '@')
            n += (size_t)snprintf(ret + n, size - n, "%lld",
                                  (long long)(*c == '#' ? layer : expert));
        else
            ret[n++] = *c;
    ret[n] = '\0';
}

static const struct topt_op *op_named(const struct topt_model *m, const char *name)
{
    int i = topt_model_find(m, name);
    return i < 0 ? NULL : &m->op[i];
}

/* The parameter of that name, or NULL. */
static const struct topt_operand *operand_of(const struct topt_op *op, const char *name)
{
    for (int o = 0; op && o < op->spec->noperands; o++)
        if (op->operand[o].role == TOPT_PARAM && op->operand[o].present &&
            !strcmp(op->spec->operand[o].name, name))
            return &op->operand[o];
    return NULL;
}

static int64_t extent(struct topt_dim d)
{
    return d.count * d.unit;
}

/* Rows of the queries (or of the key, or value) of all heads, by the attention that
 * reads the projection: "h3.qkv", "h3.qkv.bias" -> "h3.attention". */
static int64_t head_rows(const struct topt_model *m, const char *op, enum piece piece)
{
    char name[80];
    const char *end = strstr(op, "qkv");
    snprintf(name, sizeof name, "%.*sattention", end ? (int)(end - op) : 0, op);
    const struct topt_op *a = op_named(m, name);
    int64_t heads = !a ? 0 : piece == QUERY ? a->attrs.heads : a->attrs.kv_heads;
    return a ? heads * a->attrs.head_dim : 0;
}

/* Shape of a piece of an operand; experts without their own dimension. */
static void shape_of(const struct topt_model *m, const struct topt_op *op,
                     const struct topt_operand *x, int rank, enum piece piece,
                     struct topt_weight *ret)
{
    int64_t dim[TOPT_MAX_RANK + 1] = {0}, pair = x->dim[rank > 2 ? 1 : 0].count;
    int64_t kernel = op->attrs.kernel_h;
    ret->ndim = rank;
    for (int i = 0; i < rank; i++)
        dim[i] = extent(x->dim[i]);
    if (piece == QUERY || piece == KEY || piece == VALUE)
        dim[0] = head_rows(m, op->name, piece);
    else if (piece == FIRST || piece == SECOND)
        dim[0] = pair;
    else if (piece == KERNEL) {
        ret->ndim = 4;
        dim[1] = x->dim[1].count;
        dim[2] = kernel;
        dim[3] = kernel ? x->dim[1].unit / kernel : 0;
    } else if (piece == LOW || piece == HIGH)
        dim[0] /= 2;
    if (!strcmp(op->spec->name, "causal_conv") && rank == 2) { /* one channel a group */
        ret->ndim = 3;
        dim[2] = dim[1];
        dim[1] = 1;
    }
    if (piece == EXPERT_GATE || piece == EXPERT_UP)
        dim[1] = pair;
    int skip = piece == EXPERT || piece == EXPERT_GATE || piece == EXPERT_UP;
    ret->ndim -= skip;
    memcpy(ret->dim, dim + skip, sizeof ret->dim);
    int last = ret->ndim - 1;
    if (piece == TURNED || piece == EXPERTS_TURNED) {
        int64_t t = ret->dim[last];
        ret->dim[last] = ret->dim[last - 1];
        ret->dim[last - 1] = t;
    }
}

static enum topt_weight_piece told_as(enum piece piece)
{
    switch (piece) {
    case WHOLE:
        return TOPT_WEIGHT_WHOLE;
    case TURNED:
        return TOPT_WEIGHT_TURNED;
    case QUERY:
        return TOPT_WEIGHT_QUERY;
    case KEY:
        return TOPT_WEIGHT_KEY;
    case VALUE:
        return TOPT_WEIGHT_VALUE;
    case FIRST:
        return TOPT_WEIGHT_FIRST;
    case SECOND:
        return TOPT_WEIGHT_SECOND;
    case RUN:
        return TOPT_WEIGHT_RUN;
    case LOW:
        return TOPT_WEIGHT_LOW;
    case HIGH:
        return TOPT_WEIGHT_HIGH;
    case BY_KEY:
    case BY_HEAD:
        return TOPT_WEIGHT_TURNS;
    case EXPERT:
        return TOPT_WEIGHT_EXPERT;
    case EXPERT_GATE:
        return TOPT_WEIGHT_EXPERT_FIRST;
    case EXPERT_UP:
        return TOPT_WEIGHT_EXPERT_SECOND;
    case EXPERTS_ALL:
        return TOPT_WEIGHT_EXPERTS;
    case EXPERTS_PAIRED:
        return TOPT_WEIGHT_EXPERTS_PAIRED;
    default:
        return TOPT_WEIGHT_OTHER;
    }
}

/* In how many parts a tensor is that holds several parameters, or one parameter of which
 * it holds a half of each. */
static int64_t parts_of(const struct visit *v, const struct row *r, int64_t layer,
                        const struct topt_operand *x)
{
    char name[80];
    if (r->piece != BY_KEY && r->piece != BY_HEAD)
        return x->dim[0].count;
    name_of(r->piece == BY_KEY ? "h#.in.qk" : "h#.attend", layer, 0, name, sizeof name);
    const struct topt_op *op = op_named(v->m, name);
    if (r->piece == BY_HEAD)
        return op ? op->attrs.heads : 1;
    return op ? op->operand[op->output].dim[2].count : 1;
}

/* All tensors that a row gives of one layer. */
static int visit_row(struct visit *v, const struct row *r, int64_t layer)
{
    char name[160], op_name[80];
    name_of(r->op, layer, 0, op_name, sizeof op_name);
    const struct topt_op *op = op_named(v->m, op_name);
    const struct topt_operand *x = operand_of(op, r->operand);
    if (!x)
        return 0;
    struct topt_weight w = {.name = name,
                            .op = (int)(op - v->m->op),
                            .operand = (int)(x - op->operand),
                            .piece = told_as(r->piece),
                            .parts = parts_of(v, r, layer, x)};
    int64_t each = strchr(r->tensor, '@') ? x->dim[0].count : 1;
    shape_of(v->m, op, x, op->spec->operand[x - op->operand].ndim, r->piece, &w);
    for (int64_t e = 0; e < each; e++) {
        w.expert = e;
        name_of(r->tensor, layer, e, name, sizeof name);
        if (v->f(v->ctx, &w))
            return -1;
    }
    return 0;
}

static int visit_rows(struct visit *v, const struct row *rows)
{
    int64_t layers = count_layers(v->m, ""), encoder = count_layers(v->m, "encoder.");
    for (const struct row *r = rows; r && r->tensor; r++) {
        int64_t n = !strchr(r->op, '#')              ? 1
                    : !strncmp(r->op, "encoder.", 8) ? encoder
                                                     : layers;
        for (int64_t i = 0; i < n; i++)
            if (visit_row(v, r, i))
                return -1;
    }
    return 0;
}

int topt_model_weights(const struct topt_model *m, topt_weight_visit *f, void *ctx)
{
    const struct naming *n = naming_of(m);
    struct visit v = {.m = m, .f = f, .ctx = ctx};
    if (!n)
        return 0;
    for (int i = 0; i < 5; i++) {
        const struct row *rows = n->rows[i];
        if (rows == deepseek_ranked && topt_model_find(m, "h0.q_down") < 0)
            rows = deepseek_plain;
        if (visit_rows(&v, rows))
            return -1;
    }
    return 0;
}
