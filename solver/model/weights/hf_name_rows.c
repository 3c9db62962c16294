/* hf_name_rows.c - the names of tensors in Hugging Face checkpoints, family by family.
 *
 * A row whose operator a model does not have says nothing of it, so families that differ in
 * what a config switches on share rows.  Where two rows give one name, the tensor holds
 * both, one after the other. */
#include "hf_name_rows.h"

#include <stdio.h>
#include <string.h>

/* ---- rows -------------------------------------------------------------------------- */

/* clang-format off */
#define LINEAR_OF(t, o, p)     {t ".weight", o, "w", p}, {t ".bias", o ".bias", "b", WHOLE}
#define LINEAR(t, o)           LINEAR_OF(t, o, WHOLE)
#define NORM(t, o)             {t ".weight", o, "g", WHOLE}, {t ".bias", o, "bias", WHOLE}, \
                               {t ".weight", o ".gain", "g", WHOLE}
#define TABLE(t, o)            {t ".weight", o, "w", WHOLE}
#define PART(t, o, p)          {t ".weight", o, "w", p}, {t ".bias", o ".bias", "b", p}
/* Convolutions along the sequence, of all that is convolved. */
#define CONV(t, o, p)          {t ".weight", o, "w", p}, {t ".bias", o, "b", p}
/* Apart or in one here; apart there. */
#define QKV(q, k, v, o)        PART(q, o "qkv", QUERY), PART(k, o "qkv", KEY), \
                               PART(v, o "qkv", VALUE), LINEAR(q, o "q"), \
                               LINEAR(k, o "k"), LINEAR(v, o "v")
#define QKV_PROJ(s, o)         QKV(s "q_proj", s "k_proj", s "v_proj", o)
/* In one there, in one or apart here. */
#define IN_ONE(ROW, t)         ROW(t, "h#.q"), ROW(t, "h#.k"), ROW(t, "h#.v")
#define GATED(gate, up, o)     PART(gate, o, FIRST), PART(up, o, SECOND)
#define GATED_MLP(s, o)        GATED(s "gate_proj", s "up_proj", o "gate_up"), \
                               LINEAR(s "down_proj", o "down")
#define EXPERTS(gate, up, down, o) \
    {gate ".weight", o, "up", EXPERT_GATE}, {up ".weight", o, "up", EXPERT_UP}, \
    {down ".weight", o, "down", EXPERT}
#define EXPERTS_PROJ(s)        EXPERTS(s "gate_proj", s "up_proj", s "down_proj", "h#.experts")
/* The table of tokens' embeddings, by its name here where the output layer shares it, too. */
#define EMBEDDING(t)           TABLE(t, "embedding"), TABLE(t, "wte")
/* clang-format on */

static const struct hf_name_row gpt2[] = {
    EMBEDDING("transformer.wte"),
    {"transformer.wpe.weight", "position", "p", WHOLE},
    NORM("transformer.h.#.ln_1", "h#.norm1"),
    LINEAR_OF("transformer.h.#.attn.c_attn", "h#.qkv", TURNED),
    LINEAR_OF("transformer.h.#.attn.c_proj", "h#.out", TURNED),
    NORM("transformer.h.#.ln_2", "h#.norm2"),
    LINEAR_OF("transformer.h.#.mlp.c_fc", "h#.up", TURNED),
    LINEAR_OF("transformer.h.#.mlp.c_proj", "h#.down", TURNED),
    NORM("transformer.ln_f", "norm"),
    TABLE("lm_head", "lm_head"),
    TABLE("score", "score"),
    {0}};

static const struct hf_name_row gptj[] = {
    TABLE("transformer.wte", "embedding"),
    NORM("transformer.h.#.ln_1", "h#.norm1"),
    QKV_PROJ("transformer.h.#.attn.", "h#."),
    LINEAR("transformer.h.#.attn.out_proj", "h#.out"),
    LINEAR("transformer.h.#.mlp.fc_in", "h#.up"),
    LINEAR("transformer.h.#.mlp.fc_out", "h#.down"),
    NORM("transformer.ln_f", "norm"),
    LINEAR("lm_head", "lm_head"),
    {0}};

static const struct hf_name_row gpt_neox[] = {
    EMBEDDING("gpt_neox.embed_in"),
    NORM("gpt_neox.layers.#.input_layernorm", "h#.norm1"),
    LINEAR("gpt_neox.layers.#.attention.query_key_value", "h#.qkv"),
    IN_ONE(LINEAR, "gpt_neox.layers.#.attention.query_key_value"),
    LINEAR("gpt_neox.layers.#.attention.dense", "h#.out"),
    NORM("gpt_neox.layers.#.post_attention_layernorm", "h#.norm2"),
    LINEAR("gpt_neox.layers.#.mlp.dense_h_to_4h", "h#.up"),
    LINEAR("gpt_neox.layers.#.mlp.dense_4h_to_h", "h#.down"),
    NORM("gpt_neox.final_layer_norm", "norm"),
    TABLE("embed_out", "lm_head"),
    {0}};

static const struct hf_name_row bloom[] = {
    EMBEDDING("transformer.word_embeddings"),
    NORM("transformer.word_embeddings_layernorm", "embedding.norm"),
    NORM("transformer.h.#.input_layernorm", "h#.norm1"),
    IN_ONE(LINEAR, "transformer.h.#.self_attention.query_key_value"),
    LINEAR("transformer.h.#.self_attention.dense", "h#.out"),
    NORM("transformer.h.#.post_attention_layernorm", "h#.norm2"),
    LINEAR("transformer.h.#.mlp.dense_h_to_4h", "h#.up"),
    LINEAR("transformer.h.#.mlp.dense_4h_to_h", "h#.down"),
    NORM("transformer.ln_f", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};

static const struct hf_name_row mpt[] = {
    EMBEDDING("transformer.wte"),
    NORM("transformer.blocks.#.norm_1", "h#.norm1"),
    IN_ONE(TABLE, "transformer.blocks.#.attn.Wqkv"),
    TABLE("transformer.blocks.#.attn.out_proj", "h#.out"),
    NORM("transformer.blocks.#.norm_2", "h#.norm2"),
    TABLE("transformer.blocks.#.ffn.up_proj", "h#.up"),
    TABLE("transformer.blocks.#.ffn.down_proj", "h#.down"),
    NORM("transformer.norm_f", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};

#define DECODER "model.decoder."
static const struct hf_name_row opt[] = {
    EMBEDDING(DECODER "embed_tokens"),
    {DECODER "embed_positions.weight", "position", "p", WHOLE},
    TABLE(DECODER "project_in", "project_in"),
    TABLE(DECODER "project_out", "project_out"),
    QKV_PROJ(DECODER "layers.#.self_attn.", "h#."),
    LINEAR(DECODER "layers.#.self_attn.out_proj", "h#.out"),
    NORM(DECODER "layers.#.self_attn_layer_norm", "h#.norm1"),
    LINEAR(DECODER "layers.#.fc1", "h#.up"),
    LINEAR(DECODER "layers.#.fc2", "h#.down"),
    NORM(DECODER "layers.#.final_layer_norm", "h#.norm2"),
    NORM(DECODER "final_layer_norm", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};

#define LLAMA "model.layers.#."

/* All of Llama's relatives, but for the first norm of those that begin with none. */
static const struct hf_name_row bare_decoder[] = {EMBEDDING("model.embed_tokens"),
                                                  QKV_PROJ(LLAMA "self_attn.", "h#."),
                                                  LINEAR("lm_head", "lm_head"),
                                                  {0}};
static const struct hf_name_row decoder[] = {EMBEDDING("model.embed_tokens"),
                                             NORM(LLAMA "input_layernorm", "h#.norm1"),
                                             QKV_PROJ(LLAMA "self_attn.", "h#."),
                                             LINEAR("lm_head", "lm_head"),
                                             TABLE("score", "score"),
                                             {0}};

static const struct hf_name_row llama[] = {LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
                                           NORM(LLAMA "self_attn.q_norm", "h#.q.norm"),
                                           NORM(LLAMA "self_attn.k_norm", "h#.k.norm"),
                                           GATED_MLP(LLAMA "mlp.", "h#."),
                                           {0}};

static const struct hf_name_row norms_before[] = {
    NORM(LLAMA "post_attention_layernorm", "h#.norm2"), NORM("model.norm", "norm"), {0}};

static const struct hf_name_row norms_after[] = {
    NORM(LLAMA "post_attention_layernorm", "h#.norm1"),
    NORM(LLAMA "post_feedforward_layernorm", "h#.norm2"),
    NORM("model.norm", "norm"),
    {0}};

static const struct hf_name_row norms_around[] = {
    NORM(LLAMA "post_attention_layernorm", "h#.norm1.after"),
    NORM(LLAMA "pre_feedforward_layernorm", "h#.norm2"),
    NORM(LLAMA "post_feedforward_layernorm", "h#.norm2.after"),
    NORM("model.norm", "norm"),
    {0}};

static const struct hf_name_row starcoder2[] = {
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    LINEAR(LLAMA "mlp.c_fc", "h#.up"),
    LINEAR(LLAMA "mlp.c_proj", "h#.down"),
    {0}};

static const struct hf_name_row phi[] = {LINEAR(LLAMA "self_attn.dense", "h#.out"),
                                         NORM(LLAMA "self_attn.q_layernorm", "h#.q.norm"),
                                         NORM(LLAMA "self_attn.k_layernorm", "h#.k.norm"),
                                         LINEAR(LLAMA "mlp.fc1", "h#.up"),
                                         LINEAR(LLAMA "mlp.fc2", "h#.down"),
                                         NORM("model.final_layernorm", "norm"),
                                         {0}};

static const struct hf_name_row phi3[] = {EMBEDDING("model.embed_tokens"),
                                          NORM(LLAMA "input_layernorm", "h#.norm1"),
                                          TABLE(LLAMA "self_attn.qkv_proj", "h#.qkv"),
                                          IN_ONE(TABLE, LLAMA "self_attn.qkv_proj"),
                                          TABLE(LLAMA "self_attn.o_proj", "h#.out"),
                                          TABLE(LLAMA "mlp.gate_up_proj", "h#.gate_up"),
                                          TABLE(LLAMA "mlp.down_proj", "h#.down"),
                                          TABLE("lm_head", "lm_head"),
                                          {0}};

static const struct hf_name_row mixtral[] = {
    TABLE(LLAMA "block_sparse_moe.gate", "h#.router"),
    EXPERTS(LLAMA "block_sparse_moe.experts.@.w1", LLAMA "block_sparse_moe.experts.@.w3",
            LLAMA "block_sparse_moe.experts.@.w2", "h#.experts"),
    {0}};

/* Of Qwen and DeepSeek. */
static const struct hf_name_row experts[] = {
    TABLE(LLAMA "mlp.gate", "h#.router"),
    EXPERTS_PROJ(LLAMA "mlp.experts.@."),
    GATED_MLP(LLAMA "mlp.shared_expert.", "h#.shared."),
    TABLE(LLAMA "mlp.shared_expert_gate", "h#.shared.gate"),
    {0}};

/* Of GLM and those who took its parts. */
static const struct hf_name_row corrected_experts[] = {
    TABLE(LLAMA "mlp.gate", "h#.router"),
    {LLAMA "mlp.gate.e_score_correction_bias", "h#.route", "correction", WHOLE},
    EXPERTS_PROJ(LLAMA "mlp.experts.@."),
    GATED_MLP(LLAMA "mlp.shared_experts.", "h#.shared."),
    {0}};

static const struct hf_name_row ungated[] = {LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
                                             LINEAR(LLAMA "mlp.up_proj", "h#.up"),
                                             LINEAR(LLAMA "mlp.down_proj", "h#.down"),
                                             {0}};

static const struct hf_name_row deepseek[] = {
    EMBEDDING("model.embed_tokens"),
    NORM(LLAMA "input_layernorm", "h#.norm1"),
    LINEAR(LLAMA "self_attn.q_a_proj", "h#.q_down"),
    NORM(LLAMA "self_attn.q_a_layernorm", "h#.q_norm"),
    LINEAR(LLAMA "self_attn.kv_a_proj_with_mqa", "h#.kv_down"),
    LINEAR(LLAMA "self_attn.kv_a_proj_with_mqa", "h#.k_shared"),
    NORM(LLAMA "self_attn.kv_a_layernorm", "h#.kv_norm"),
    TABLE(LLAMA "self_attn.kv_b_proj", "h#.kv"),
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    GATED_MLP(LLAMA "mlp.", "h#."),
    TABLE("lm_head", "lm_head"),
    {0}};
/* Made of the rank of queries where there is one. */
static const struct hf_name_row deepseek_ranked[] = {
    TABLE(LLAMA "self_attn.q_b_proj", "h#.q"), {0}};
static const struct hf_name_row deepseek_plain[] = {
    TABLE(LLAMA "self_attn.q_proj", "h#.q"), {0}};

static const struct hf_name_row llama4[] = {
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    TABLE(LLAMA "feed_forward.router", "h#.router"),
    {LLAMA "feed_forward.experts.gate_up_proj", "h#.experts", "up", EXPERTS_TURNED},
    {LLAMA "feed_forward.experts.down_proj", "h#.experts", "down", EXPERTS_TURNED},
    GATED_MLP(LLAMA "feed_forward.shared_expert.", "h#.shared."),
    GATED_MLP(LLAMA "feed_forward.", "h#."),
    {0}};

static const struct hf_name_row gemma4[] = {
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
static const struct hf_name_row mamba_only[] = {
    EMBEDDING("backbone.embeddings"),
    NORM(BACKBONE "norm", "h#.norm1"),
    LINEAR(BACKBONE "mixer.out_proj", "h#.mixer.out"),
    NORM("backbone.norm_f", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};
static const struct hf_name_row mamba[] = {MAMBA(BACKBONE "mixer."), {0}};
static const struct hf_name_row mamba2[] = {MAMBA2(BACKBONE "mixer."), {0}};

/* A layer is one thing, whose norm is that of the half of a block that it is. */
static const struct hf_name_row nemotron_h[] = {
    EMBEDDING("backbone.embedding"),
    NORM(BACKBONE "norm", "h#.norm1"),
    NORM(BACKBONE "norm", "h#.norm2"),
    MAMBA2(BACKBONE "mixer."),
    LINEAR(BACKBONE "mixer.out_proj", "h#.mixer.out"),
    LINEAR(BACKBONE "mixer.o_proj", "h#.out"),
    QKV_PROJ(BACKBONE "mixer.", "h#."),
    LINEAR(BACKBONE "mixer.up_proj", "h#.up"),
    LINEAR(BACKBONE "mixer.down_proj", "h#.down"),
    TABLE(BACKBONE "mixer.gate", "h#.router"),
    {BACKBONE "mixer.gate.e_score_correction_bias", "h#.route", "correction", WHOLE},
    {BACKBONE "mixer.experts.@.up_proj.weight", "h#.experts", "up", EXPERT},
    {BACKBONE "mixer.experts.@.down_proj.weight", "h#.experts", "down", EXPERT},
    LINEAR(BACKBONE "mixer.fc1_latent_proj", "h#.experts.in"),
    LINEAR(BACKBONE "mixer.fc2_latent_proj", "h#.experts.out"),
    LINEAR(BACKBONE "mixer.shared_experts.up_proj", "h#.shared.up"),
    LINEAR(BACKBONE "mixer.shared_experts.down_proj", "h#.shared.down"),
    NORM("backbone.norm_f", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};
static const struct hf_name_row jamba[] = {
    LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
    LINEAR(LLAMA "mamba.out_proj", "h#.mixer.out"),
    MAMBA(LLAMA "mamba."),
    NORM(LLAMA "mamba.dt_layernorm", "h#.dt.norm"),
    NORM(LLAMA "mamba.b_layernorm", "h#.b.norm"),
    NORM(LLAMA "mamba.c_layernorm", "h#.c.norm"),
    GATED_MLP(LLAMA "feed_forward.", "h#."),
    TABLE(LLAMA "feed_forward.router", "h#.router"),
    EXPERTS_PROJ(LLAMA "feed_forward.experts.@."),
    NORM(LLAMA "pre_ff_layernorm", "h#.norm2"),
    NORM("model.final_layernorm", "norm"),
    {0}};

static const struct hf_name_row bamba[] = {LINEAR(LLAMA "self_attn.o_proj", "h#.out"),
                                           LINEAR(LLAMA "mamba.out_proj", "h#.mixer.out"),
                                           MAMBA2(LLAMA "mamba."),
                                           GATED_MLP(LLAMA "feed_forward.", "h#."),
                                           NORM(LLAMA "pre_ff_layernorm", "h#.norm2"),
                                           NORM("model.final_layernorm", "norm"),
                                           {0}};

static const struct hf_name_row granite_hybrid[] = {
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
static const struct hf_name_row delta_next[] = {
    PART(DELTA "in_proj_qkvz", "h#.in.qk", BY_KEY),
    PART(DELTA "in_proj_qkvz", "h#.in.v", BY_KEY),
    PART(DELTA "in_proj_qkvz", "h#.in.z", BY_KEY),
    PART(DELTA "in_proj_ba", "h#.in.b", BY_KEY),
    PART(DELTA "in_proj_ba", "h#.in.a", BY_KEY),
    {0}};
static const struct hf_name_row delta_apart[] = {
    PART(DELTA "in_proj_qkv", "h#.in.qk", LOW),
    PART(DELTA "in_proj_qkv", "h#.in.qk", HIGH),
    PART(DELTA "in_proj_qkv", "h#.in.v", RUN),
    LINEAR(DELTA "in_proj_z", "h#.in.z"),
    LINEAR(DELTA "in_proj_b", "h#.in.b"),
    LINEAR(DELTA "in_proj_a", "h#.in.a"),
    {0}};
static const struct hf_name_row delta[] = {
    EMBEDDING("model.embed_tokens"),
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
    GATED_MLP(LLAMA "mlp.", "h#."),
    LINEAR("lm_head", "lm_head"),
    {0}};

static const struct hf_name_row lfm2[] = {
    EMBEDDING("model.embed_tokens"),
    NORM(LLAMA "operator_norm", "h#.norm1"),
    PART(LLAMA "conv.in_proj", "h#.in.b", RUN),
    PART(LLAMA "conv.in_proj", "h#.in.c", RUN),
    PART(LLAMA "conv.in_proj", "h#.in.x", RUN),
    CONV(LLAMA "conv.conv", "h#.conv", RUN),
    LINEAR(LLAMA "conv.out_proj", "h#.mixer.out"),
    LINEAR(LLAMA "self_attn.out_proj", "h#.out"),
    QKV_PROJ(LLAMA "self_attn.", "h#."),
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

static const struct hf_name_row modernbert[] = {
    EMBEDDING("model.embeddings.tok_embeddings"),
    NORM("model.embeddings.norm", "embedding.norm"),
    NORM(LLAMA "attn_norm", "h#.norm1"),
    LINEAR(LLAMA "attn.Wqkv", "h#.qkv"),
    IN_ONE(LINEAR, LLAMA "attn.Wqkv"),
    LINEAR(LLAMA "attn.Wo", "h#.out"),
    NORM(LLAMA "mlp_norm", "h#.norm2"),
    LINEAR(LLAMA "mlp.Wi", "h#.gate_up"),
    LINEAR(LLAMA "mlp.Wo", "h#.down"),
    NORM("model.final_norm", "norm"),
    LINEAR("head.dense", "transform"),
    NORM("head.norm", "transform.norm"),
    LINEAR("classifier", "classifier"),
    {"decoder.bias", "lm_head.bias", "b", WHOLE},
    {0}};

#define BERT "bert.encoder.layer.#."
static const struct hf_name_row bert[] = {
    EMBEDDING("bert.embeddings.word_embeddings"),
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
static const struct hf_name_row distilbert[] = {
    EMBEDDING("distilbert.embeddings.word_embeddings"),
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
static const struct hf_name_row vit[] = {
    {"vit.embeddings.cls_token", "class", "token", BATCHED},
    {"vit.embeddings.position_embeddings", "position", "p", BATCHED},
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
    QKV_PROJ(s "self_attn.", o), LINEAR(s "self_attn.out_proj", o "out"),                \
        NORM(s "self_attn_layer_norm", o "norm1"), LINEAR(s "fc1", o "up"),              \
        LINEAR(s "fc2", o "down"), NORM(s "final_layer_norm", o "norm2")
#define ENCODER "model.encoder."
static const struct hf_name_row whisper[] = {
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
    QKV_PROJ(DECODER "layers.#.encoder_attn.", "h#.cross."),
    LINEAR(DECODER "layers.#.encoder_attn.out_proj", "h#.cross.out"),
    NORM(DECODER "layers.#.encoder_attn_layer_norm", "h#.norm_cross"),
    NORM(DECODER "layer_norm", "norm"),
    {0}};

#define T5_ATTENTION(s, o)                                                               \
    TABLE(s "q", o "q"), TABLE(s "k", o "k"), TABLE(s "v", o "v"), TABLE(s "o", o "out")
#define T5_MLP(s, o)                                                                     \
    TABLE(s "DenseReluDense.wi", o "up"),                                                \
        GATED(s "DenseReluDense.wi_0", s "DenseReluDense.wi_1", o "gate_up"),            \
        TABLE(s "DenseReluDense.wo", o "down")
static const struct hf_name_row t5[] = {
    TABLE("shared", "wte"),
    TABLE("encoder.block.0.layer.0.SelfAttention.relative_attention_bias",
          "encoder.relative"),
    T5_ATTENTION("encoder.block.#.layer.0.SelfAttention.", "encoder.h#."),
    NORM("encoder.block.#.layer.0.layer_norm", "encoder.h#.norm1"),
    T5_MLP("encoder.block.#.layer.1.", "encoder.h#."),
    NORM("encoder.block.#.layer.1.layer_norm", "encoder.h#.norm2"),
    NORM("encoder.final_layer_norm", "encoder.norm"),
    TABLE("decoder.block.0.layer.0.SelfAttention.relative_attention_bias", "relative"),
    T5_ATTENTION("decoder.block.#.layer.0.SelfAttention.", "h#."),
    NORM("decoder.block.#.layer.0.layer_norm", "h#.norm1"),
    T5_ATTENTION("decoder.block.#.layer.1.EncDecAttention.", "h#.cross."),
    NORM("decoder.block.#.layer.1.layer_norm", "h#.norm_cross"),
    T5_MLP("decoder.block.#.layer.2.", "h#."),
    NORM("decoder.block.#.layer.2.layer_norm", "h#.norm2"),
    NORM("decoder.final_layer_norm", "norm"),
    TABLE("lm_head", "lm_head"),
    {0}};

/* ---- families ---------------------------------------------------------------------- */

static const struct hf_naming namings[] = {
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
     {deepseek, norms_before, corrected_experts, deepseek_ranked},
     {"lm_head.", HF_FURTHER_LAYERS}},
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
     {"lm_head.", HF_FURTHER_LAYERS}},
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

const struct hf_naming *topt_hf_naming(const char *family)
{
    char word[90];
    snprintf(word, sizeof word, " %.80s ", family ? family : "");
    for (const struct hf_naming *n = namings; family && n->families; n++)
        if (strstr(n->families, word))
            return n;
    return NULL;
}

const struct hf_name_row *topt_hf_name_rows(const struct hf_naming *n, int i, int ranked)
{
    return n->rows[i] == deepseek_ranked && !ranked ? deepseek_plain : n->rows[i];
}
