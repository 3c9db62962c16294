/* sheet_rows.c - documented outcomes as data.
 *
 * All figures are those of the sources.  Where a source leaves something open the row takes what
 * claims less: a run that fitted is said to have recomputed, a run that did not is said not to
 * have, and the batch is the least. */
#include "sheet_rows.h"

#include <stddef.h>

enum {
    EAGER = TOPT_EAGER_OPERATORS | TOPT_EAGER_LOSS | TOPT_EAGER_OPTIMIZER,
    TRAINER = TOPT_EAGER_OPERATORS | TOPT_EAGER_LOSS, /* its optimizer is one kernel */
    COMPILED = TOPT_EAGER_LOSS | TOPT_EAGER_OPTIMIZER,
    SCORES = EAGER | TOPT_EAGER_SCORES,
    MEGATRON = TOPT_EAGER_OPERATORS, /* its loss and optimizer are one kernel each */
    APEX = TOPT_EAGER_OPERATORS | TOPT_EAGER_SCORES | TOPT_EAGER_LOSS
};

/* ---- models -------------------------------------------------------------------------------- */

#define GPT2(width, layers, heads, vocab)                                                \
    "{\"model_type\":\"gpt2\",\"n_embd\":" #width ",\"n_layer\":" #layers                \
    ",\"n_head\":" #heads ",\"n_positions\":2048,\"vocab_size\":" #vocab "}"
#define BERT(width, layers, heads, inner)                                                \
    "{\"model_type\":\"bert\",\"architectures\":[\"BertForSequenceClassification\"],"    \
    "\"hidden_size\":" #width ",\"num_hidden_layers\":" #layers                          \
    ",\"num_attention_heads\":" #heads ",\"intermediate_size\":" #inner                  \
    ",\"max_position_embeddings\":512,\"vocab_size\":30522,\"hidden_act\":\"gelu\"}"
#define VIT(width, layers, heads, inner, patch)                                          \
    "{\"model_type\":\"vit\",\"hidden_size\":" #width ",\"num_hidden_layers\":" #layers  \
    ",\"num_attention_heads\":" #heads ",\"intermediate_size\":" #inner                  \
    ",\"image_size\":224,\"patch_size\":" #patch ",\"hidden_act\":\"gelu\"}"
#define WHISPER(width, layers, heads, inner)                                             \
    "{\"model_type\":\"whisper\",\"d_model\":" #width ",\"encoder_layers\":" #layers     \
    ",\"decoder_layers\":" #layers ",\"encoder_attention_heads\":" #heads                \
    ",\"decoder_attention_heads\":" #heads ",\"encoder_ffn_dim\":" #inner                \
    ",\"decoder_ffn_dim\":" #inner ",\"vocab_size\":51865,\"num_mel_bins\":80,"          \
    "\"max_source_positions\":1500,\"max_target_positions\":448,"                        \
    "\"activation_function\":\"gelu\"}"
#define FLAN_T5(width, heads, inner)                                                     \
    "{\"model_type\":\"t5\",\"d_model\":" #width ",\"d_kv\":64,\"d_ff\":" #inner         \
    ",\"num_layers\":24,\"num_heads\":" #heads                                           \
    ",\"vocab_size\":32128,\"feed_forward_proj\":\"gated-gelu\","                        \
    "\"tie_word_embeddings\":false}"
#define LLAMA_OF(type, width, layers, heads, groups, inner, vocab, more)                 \
    "{\"model_type\":\"" type "\",\"hidden_size\":" #width                               \
    ",\"num_hidden_layers\":" #layers ",\"num_attention_heads\":" #heads                 \
    ",\"num_key_value_heads\":" #groups ",\"intermediate_size\":" #inner                 \
    ",\"vocab_size\":" #vocab ",\"hidden_act\":\"silu\","                                \
    "\"max_position_embeddings\":131072,\"tie_word_embeddings\":false" more "}"
#define LLAMA(width, layers, heads, groups, inner, vocab)                                \
    LLAMA_OF("llama", width, layers, heads, groups, inner, vocab, "")

static const struct sheet_model
    gpt2 = {"GPT-2 124M", GPT2(768, 12, 12, 50257), 0},
    gpt2_xl = {"GPT-2 XL 1.5B", GPT2(1600, 48, 25, 50257), 0},
    gpt22b = {"GPT 22B", GPT2(6144, 48, 64, 51200), 0},
    bert = {"BERT-large 335M", BERT(1024, 24, 16, 4096), 0},
    vit_large = {"ViT-L/16 304M", VIT(1024, 24, 16, 4096, 16), 0},
    vit_huge = {"ViT-H/14 632M", VIT(1280, 32, 16, 5120, 14), 0},
    whisper_small = {"Whisper small 242M", WHISPER(768, 12, 12, 3072), 0},
    whisper_medium = {"Whisper medium 764M", WHISPER(1024, 24, 16, 4096), 0},
    t5_xl = {"FLAN-T5 XL 2.8B", FLAN_T5(2048, 32, 5120), 2849757184},
    t5_xxl = {"FLAN-T5 XXL 11B", FLAN_T5(4096, 64, 10240), 11135332352},
    llama3_3b =
        {"Llama 3.2 3B",
         "{\"model_type\":\"llama\",\"hidden_size\":3072,\"num_hidden_layers\":28,"
         "\"num_attention_heads\":24,\"num_key_value_heads\":8,\"head_dim\":128,"
         "\"intermediate_size\":8192,\"vocab_size\":128256,\"hidden_act\":\"silu\","
         "\"max_position_embeddings\":131072,\"tie_word_embeddings\":true}",
         3212749824},
    qwen3_600m =
        {"Qwen3 0.6B",
         "{\"model_type\":\"qwen3\",\"hidden_size\":1024,\"num_hidden_layers\":28,"
         "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"head_dim\":128,"
         "\"intermediate_size\":3072,\"vocab_size\":151936,\"hidden_act\":\"silu\","
         "\"max_position_embeddings\":40960,\"tie_word_embeddings\":true}",
         596049920},
    llama2_7b = {"Llama 2 7B", LLAMA(4096, 32, 32, 32, 11008, 32000), 6738415616},
    llama3_8b = {"Llama 3.1 8B", LLAMA(4096, 32, 32, 8, 14336, 128256), 8030261248},
    llama2_13b = {"Llama 2 13B", LLAMA(5120, 40, 40, 40, 13824, 32000), 13015864320},
    qwen14b = {"Qwen2.5 14B", LLAMA_OF("qwen2", 5120, 48, 40, 8, 13824, 152064, ""),
               14770033664},
    qwen32b = {"Qwen2.5 32B", LLAMA_OF("qwen2", 5120, 64, 40, 8, 27648, 152064, ""),
               32763876352},
    qwen3_32b = {"Qwen3 32B",
                 LLAMA_OF("qwen3", 5120, 64, 64, 8, 25600, 151936, ",\"head_dim\":128"),
                 32762123264},
    llama2_34b = {"Llama 2 34B", LLAMA(8192, 48, 64, 8, 22016, 32000), 0},
    llama2_70b = {"Llama 2 70B", LLAMA(8192, 80, 64, 8, 28672, 32000), 68976648192},
    llama3_70b = {"Llama 3.1 70B", LLAMA(8192, 80, 64, 8, 28672, 128256), 70553706496},
    llama3_405b = {"Llama 3.1 405B", LLAMA(16384, 126, 128, 8, 53248, 128256),
                   405853388800},
    mixtral = {"Mixtral 8x7B",
               LLAMA_OF("mixtral", 4096, 32, 32, 8, 14336, 32000,
                        ",\"num_local_experts\":8,\"num_experts_per_tok\":2"),
               46702792704},
    qwen3_30b = {"Qwen3 30B-A3B",
                 LLAMA_OF("qwen3_moe", 2048, 48, 32, 4, 6144, 151936,
                          ",\"head_dim\":128,\"num_experts\":128,\"num_experts_per_tok\":"
                          "8,\"moe_intermediate_size\":768,\"norm_topk_prob\":true,"
                          "\"decoder_sparse_step\":1,\"mlp_only_layers\":[]"),
                 30532122624},
    deepseek_16b =
        {"DeepSeek 16B",
         LLAMA_OF("deepseek_v3", 2048, 27, 16, 16, 10944, 102400,
                  ",\"kv_lora_rank\":512,\"q_lora_rank\":null,\"qk_nope_head_dim\":128,"
                  "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"n_routed_experts\":64,"
                  "\"n_shared_experts\":2,\"num_experts_per_tok\":6,"
                  "\"moe_intermediate_size\":1408,\"first_k_dense_replace\":1,"
                  "\"n_group\":1,\"topk_group\":1,\"scoring_func\":\"sigmoid\","
                  "\"topk_method\":\"noaux_tc\",\"norm_topk_prob\":true,"
                  "\"routed_scaling_factor\":1.0"),
         0},
    deepseek_671b = {
        "DeepSeek-V3 671B",
        LLAMA_OF("deepseek_v3", 7168, 61, 128, 128, 18432, 129280,
                 ",\"kv_lora_rank\":512,\"q_lora_rank\":1536,\"qk_nope_head_dim\":128,"
                 "\"qk_rope_head_dim\":64,\"v_head_dim\":128,\"n_routed_experts\":256,"
                 "\"n_shared_experts\":1,\"num_experts_per_tok\":8,"
                 "\"moe_intermediate_size\":2048,\"first_k_dense_replace\":3,"
                 "\"n_group\":8,\"topk_group\":4,\"scoring_func\":\"sigmoid\","
                 "\"topk_method\":\"noaux_tc\",\"norm_topk_prob\":true,"
                 "\"routed_scaling_factor\":2.5"),
        0};

/* ---- GPUs, as the drivers show them -------------------------------------------------------- */

#define ON_A100_40 .gpu = "A100 40 GB", .hw = "a100-40-dgx"
#define ON_A100_80 .gpu = "A100 80 GB", .hw = "a100-80-dgx"
#define ON_A800_80 .gpu = "A800 80 GB", .hw = "a100-80-dgx"
#define ON_H100_80 .gpu = "H100 80 GB", .hw = "h100-80-dgx"
#define ON_H800_80 .gpu = "H800 80 GB", .hw = "h100-80-dgx"
#define ON_H100_96 .gpu = "H100 96 GB", .hw = "h100-96-500w"
#define ON_H100_94 .gpu = "H100 94 GB", .hw = "h100-80-dgx", .gpu_gib = 94
#define ON_V100_16 .gpu = "V100 16 GB", .hw = "v100-dgx1-2x8"
#define ON_V100_32 .gpu = "V100 32 GB", .hw = "v100-dgx1-2x8", .gpu_gib = 32
#define ON_A40     .gpu = "A40 48 GB", .hw = "a100-80-dgx", .gpu_gib = 45
#define ON_A6000   .gpu = "RTX 6000 Ada 48 GB", .hw = "a100-80-dgx", .gpu_gib = 47.48
#define ON_TITAN   .gpu = "Titan RTX 24 GB", .hw = "rtx4090-1x8", .gpu_gib = 23.65

/* GPUs, how many of a node, sharding; samples a GPU takes at a time, how often, positions. */
#define PLAN(n, node, sharded, size, times, length)                                      \
    .gpus = n, .per_node = node, .tensor = 1, .zero = TOPT_ZERO_##sharded,               \
    .micro = size, .accumulation = times, .seq = length
#define FSDP(n, node, size, times, length) PLAN(n, node, PARAM, size, times, length)
#define DDP(n, node, size, times, length)  PLAN(n, node, NONE, size, times, length)

#define FITS .outcome = SHEET_FITS
#define OOM  .outcome = SHEET_OOM

#define FMS                                                                              \
    "github.com/foundation-model-stack/fms-fsdp, README.md at ed74fd5 of 2024-05-09"
#define FLAN                                                                             \
    "github.com/philschmid/deep-learning-pytorch-huggingface, "                          \
    "training/deepseed-flan-t5-summarization.ipynb at 009d1be"
#define SWIFT                                                                            \
    "github.com/modelscope/ms-swift, source_en/Megatron-SWIFT/Quick-start.md (docs) "    \
    "and "                                                                               \
    "examples/megatron at 3602360 of 2026-08-22"
#define TULU "github.com/allenai/open-instruct, tulu3.md (docs) at e6c3044 of 2026-08-20"
#define TITAN_64                                                                         \
    "github.com/pytorch/torchtitan, performance.md (docs) and train_configs at 157a12c " \
    "of "                                                                                \
    "2024-04-24"
#define TITAN_405B                                                                       \
    "github.com/pytorch/torchtitan, performance.md (docs) and train_configs at 9515a14 " \
    "of "                                                                                \
    "2024-08-22"
#define TITAN_H100                                                                       \
    "github.com/pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md"
#define WHISPER_EVENT                                                                    \
    "github.com/huggingface/community-events, whisper-fine-tuning-event/README.md at "   \
    "a2d9115"
#define DS_BERT                                                                          \
    "github.com/deepspeedai/DeepSpeed, _tutorials/bert-finetuning.md (docs), tables 2 "  \
    "and 3"
#define HF_FSDP "huggingface.co/blog/pytorch-fsdp of 2022-04-29, table 2"
#define MAE     "github.com/facebookresearch/mae, FINETUNE.md at efb2a80"
#define S1      "github.com/simplescaling/s1, README.md at 77272c6 and issue 13 of 2025-02"
#define TUNE                                                                             \
    "github.com/pytorch/torchtune, README.md at bd2a0fc of 2026-04-23, optimization "    \
    "flags"

#define BERT_ON(size)                                                                    \
    .model = &bert, DDP(1, 1, size, 1, 384), .framework = "pytorch",                     \
    .precision = SHEET_MIXED, .eager = SCORES, .source = DS_BERT
#define FMS_ON(of, makes, how)                                                           \
    .model = &(of), ON_A100_80, FSDP(128, 8, 2, 1, 4096), .framework = "pytorch",        \
    .again = makes, .precision = SHEET_MIXED, .eager = COMPILED, FITS, .source = FMS,    \
    .technique = how
#define TITAN_ON(of, n, size, length, makes)                                             \
    .model = &(of), FSDP(n, 8, size, 1, length), .framework = "torchtitan",              \
    .again = makes, .precision = SHEET_MIXED
#define TITAN_2024(of, size, length, makes)                                              \
    TITAN_ON(of, 64, size, length, makes), ON_A100_80,                                   \
        .eager = COMPILED, .source = TITAN_64, .technique = "norms are one kernel"
#define WHISPER_ON(of, size, times)                                                      \
    .model = &(of), DDP(1, 1, size, times, 64), .framework = "pytorch",                  \
    .again = SHEET_BLOCKS, .precision = SHEET_AUTOCAST, .eager = SCORES, FITS,           \
    .source = WHISPER_EVENT,                                                             \
    .technique = "labels are padded to the longest of the batch; 64 are taken"
#define ZERO_ON(level, size, times, makes)                                               \
    .model = &llama2_7b, ON_A800_80, PLAN(8, 8, level, size, times, 4096),               \
    .framework = "deepspeed", .again = makes, .precision = SHEET_MIXED, .eager = EAGER,  \
    FITS, .seen = SHEET_SMI,                                                             \
    .source = "gist.github.com/chenyaofo/d4cd6a20ab4b95cb3a49491747e2139a, the larger "  \
              "of two figures of memory"
#define SWIFT_ON(of, n, level, times)                                                    \
    .model = &(of), ON_A800_80, PLAN(n, 8, level, 1, times, 8192),                       \
    .framework = "deepspeed", .again = SHEET_BLOCKS, .precision = SHEET_MIXED,           \
    .eager = EAGER, .source = SWIFT
#define SWIFT_MEGATRON(of, parts, times, makes)                                          \
    .model = &(of), ON_A800_80, .gpus = 8, .per_node = 8, .tensor = parts,               \
    .zero = TOPT_ZERO_STATE, .micro = 1, .accumulation = times, .seq = 8192,             \
    .framework = "megatron", .again = makes, .precision = SHEET_MAIN_F32,                \
    .eager = MEGATRON, FITS, .source = SWIFT,                                            \
    .technique = "norms by positions over the tensor axes; fused loss"
#define S1_ON(n, length)                                                                 \
    .model = &qwen32b, ON_H100_80, FSDP(n, 8, 1, 1, length), .framework = "pytorch",     \
    .again = SHEET_BLOCKS, .precision = SHEET_MIXED, .eager = EAGER, .source = S1
#define TUNE_ON(makes, parts)                                                            \
    .model = &llama3_3b, ON_A100_80, DDP(1, 1, 2, 1, 4096), .framework = "pytorch",      \
    .again = makes, .precision = SHEET_PURE_BF16, .eager = parts, FITS,                  \
    .seen = SHEET_ACTIVE, .source = TUNE

const struct sheet_row sheet_rows[] = {
    /* GPT-2 */
    {.model = &gpt2,
     ON_A100_40,
     DDP(8, 8, 12, 5, 1024),
     .framework = "pytorch",
     .precision = SHEET_AUTOCAST,
     .eager = COMPILED,
     FITS,
     .ask = 1,
     .source = "github.com/karpathy/nanoGPT, config/train_gpt2.py at 3adf61e"},
    {.model = &gpt2,
     ON_V100_16,
     DDP(1, 1, 32, 1, 1024),
     .framework = "pytorch",
     .precision = SHEET_AUTOCAST,
     .eager = EAGER,
     OOM,
     .gib = 10.16,
     .seen = SHEET_AT_FAILURE,
     .technique = "6.14 GiB more were asked for, the logits in f32",
     .source = "github.com/karpathy/nanoGPT, issue 88, comment of 2023-03-08"},
    {.model = &gpt2_xl,
     ON_TITAN,
     DDP(1, 1, 1, 1, 12),
     .framework = "pytorch",
     .precision = SHEET_F32,
     .eager = SCORES,
     OOM,
     .gib = 22.27,
     .seen = SHEET_AT_FAILURE,
     .source = HF_FSDP},
    {.model = &gpt2_xl,
     ON_TITAN,
     DDP(2, 2, 1, 1, 12),
     .framework = "pytorch",
     .precision = SHEET_F32,
     .eager = SCORES,
     OOM,
     .gib = 22.27,
     .seen = SHEET_AT_FAILURE,
     .source = HF_FSDP},
    {.model = &gpt2_xl,
     ON_TITAN,
     FSDP(2, 2, 5, 1, 12),
     .framework = "pytorch",
     .precision = SHEET_F32,
     .eager = SCORES,
     FITS,
     .source = HF_FSDP,
     .technique = "positions as in the command, which are few; no more samples fitted"},
    /* encoders and vision */
    {BERT_ON(4), ON_V100_16, FITS},
    {BERT_ON(6), ON_V100_16, OOM, .open = "what apex of 2020 held beside tensors"},
    {BERT_ON(12), ON_V100_32, FITS, .ask = 1},
    {BERT_ON(24), ON_V100_32, OOM, .open = "what apex of 2020 held beside tensors"},
    {.model = &vit_large,
     ON_V100_32,
     DDP(32, 8, 32, 1, 1),
     .framework = "pytorch",
     .precision = SHEET_AUTOCAST,
     .eager = SCORES,
     FITS,
     .source = MAE},
    {.model = &vit_huge,
     ON_V100_32,
     DDP(64, 8, 16, 1, 1),
     .framework = "pytorch",
     .precision = SHEET_AUTOCAST,
     .eager = SCORES,
     FITS,
     .source = MAE,
     .ask = 1},
    /* speech, and text to text */
    {WHISPER_ON(whisper_small, 16, 2), ON_V100_16},
    {WHISPER_ON(whisper_medium, 2, 16), ON_V100_16},
    {WHISPER_ON(whisper_small, 64, 1), ON_A100_40},
    {WHISPER_ON(whisper_medium, 32, 1), ON_A100_40},
    {.model = &t5_xl,
     ON_V100_16,
     FSDP(4, 4, 1, 1, 500),
     .framework = "deepspeed",
     .precision = SHEET_F32,
     .eager = SCORES,
     OOM,
     .source = FLAN,
     .technique = "129 positions of the decoder"},
    {.model = &t5_xl,
     ON_V100_16,
     FSDP(8, 8, 1, 1, 500),
     .framework = "deepspeed",
     .again = SHEET_BLOCKS,
     .precision = SHEET_F32,
     .eager = SCORES,
     FITS,
     .source = FLAN,
     .technique = "129 positions of the decoder"},
    {.model = &t5_xl,
     ON_A100_40,
     FSDP(4, 4, 1, 4, 2048),
     .framework = "pytorch",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = SCORES,
     FITS,
     .source = "github.com/lm-sys/FastChat, training.md (docs) at 0e6d3e4"},
    {.model = &t5_xxl,
     ON_A100_40,
     FSDP(8, 8, 8, 1, 500),
     .framework = "deepspeed",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = SCORES,
     FITS,
     .ask = 1,
     .technique = "129 positions of the decoder",
     .source = FLAN},
    {.model = &t5_xxl,
     ON_A40,
     FSDP(4, 4, 1, 1, 500),
     .framework = "deepspeed",
     .precision = SHEET_MIXED,
     .eager = SCORES,
     OOM,
     .source = "github.com/philschmid/deep-learning-pytorch-huggingface, issue 6 of "
               "2023-02-22"},
    /* 3B to 14B */
    {TUNE_ON(SHEET_NOTHING, EAGER), .gib = 60.0},
    {TUNE_ON(SHEET_NOTHING, COMPILED), .gib = 51.0},
    {TUNE_ON(SHEET_NOTHING, 0), .gib = 42.9, .technique = "the loss in chunks"},
    {TUNE_ON(SHEET_BLOCKS, 0), .gib = 24.9, .technique = "the loss in chunks"},
    {.model = &llama2_7b,
     ON_A100_40,
     FSDP(4, 4, 2, 16, 2048),
     .framework = "pytorch",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = EAGER,
     FITS,
     .ask = 1,
     .technique = "with some versions of Transformers it ran out (issue 407)",
     .source = "github.com/lm-sys/FastChat, README.md at 0e6d3e4"},
    {.model = &llama2_7b,
     ON_A100_40,
     FSDP(16, 8, 8, 1, 4096),
     .framework = "pytorch",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = EAGER,
     FITS,
     .technique = "attention is taken as one kernel: its scores alone would not fit",
     .source = "github.com/iwiwi/epochraft-hf-fsdp, pull request 7 of 2023-11-08"},
    {.model = &llama2_7b,
     ON_V100_16,
     FSDP(8, 8, 4, 1, 4096),
     .framework = "pytorch",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = SCORES,
     OOM,
     .gib = 13.76,
     .seen = SHEET_AT_FAILURE,
     .technique = "it failed in the optimizer's square roots",
     .source =
         "github.com/meta-llama/llama-cookbook, issue 234 of 2023-10-02; defaults at "
         "653a79e"},
    {.model = &llama2_7b,
     ON_A100_80,
     DDP(1, 1, 1, 1, 4096),
     .framework = "pytorch",
     .precision = SHEET_F32,
     .eager = SCORES,
     OOM,
     .source = "github.com/meta-llama/llama-cookbook, issue 413 of 2024-03-25"},
    {ZERO_ON(GRADIENT, 1, 8, SHEET_NOTHING), .gib = 44.8},
    {ZERO_ON(GRADIENT, 1, 8, SHEET_BLOCKS), .gib = 23.5},
    {ZERO_ON(GRADIENT, 4, 2, SHEET_BLOCKS), .gib = 38.6},
    {ZERO_ON(PARAM, 2, 4, SHEET_NOTHING), .gib = 75.7},
    {ZERO_ON(PARAM, 2, 4, SHEET_BLOCKS), .gib = 20.4},
    {ZERO_ON(PARAM, 8, 1, SHEET_BLOCKS), .gib = 39.1},
    {FMS_ON(llama2_7b, SHEET_NOTHING, "shards within a node, copies over 16"),
     .shards = 8},
    {TITAN_ON(llama3_8b, 8, 2, 8192, SHEET_PRODUCTS), ON_H100_96, .eager = EAGER, FITS,
     .gib = 82.4, .seen = SHEET_RESERVED, .source = TITAN_H100},
    {TITAN_ON(llama3_8b, 8, 2, 8192, SHEET_PRODUCTS), ON_H100_96, .eager = COMPILED, FITS,
     .gib = 77.0, .seen = SHEET_RESERVED, .source = TITAN_H100},
    {TITAN_ON(llama3_8b, 128, 2, 8192, SHEET_PRODUCTS), ON_H100_96, .eager = EAGER, FITS,
     .gib = 67.0, .seen = SHEET_RESERVED, .source = TITAN_H100},
    {TITAN_ON(llama3_8b, 128, 2, 8192, SHEET_PRODUCTS), ON_H100_96, .eager = COMPILED,
     FITS, .gib = 62.0, .seen = SHEET_RESERVED, .source = TITAN_H100},
    {TITAN_2024(llama3_8b, 1, 8192, SHEET_PRODUCTS), FITS},
    {TITAN_2024(llama3_8b, 1, 8192, SHEET_HALF), FITS},
    {TITAN_ON(llama3_8b, 2, 1, 8192, SHEET_PRODUCTS), ON_A6000, .eager = EAGER, OOM,
     .gib = 45.56, .seen = SHEET_AT_FAILURE,
     .source = "github.com/pytorch/torchtitan, issue 620 of 2024-10-15"},
    {.model = &llama3_8b,
     ON_H100_80,
     FSDP(64, 8, 1, 2, 4096),
     .framework = "deepspeed",
     .precision = SHEET_MIXED,
     .eager = EAGER,
     FITS,
     .source = TULU,
     .ask = 1},
    {FMS_ON(llama2_13b, SHEET_BLOCKS, "some blocks recompute, how many is not said")},
    {TITAN_2024(llama2_13b, 2, 4096, SHEET_NOTHING), FITS, .ask = 1},
    {TITAN_2024(llama2_13b, 2, 4096, SHEET_HALF), FITS},
    {TITAN_2024(llama2_13b, 2, 4096, SHEET_PRODUCTS), FITS},
    {.model = &llama2_13b,
     ON_A100_80,
     FSDP(4, 4, 1, 4, 512),
     .framework = "pytorch",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = SCORES,
     FITS,
     .source = "github.com/replicate/cog-llama, pull request 6 of 2023-04-13"},
    {SWIFT_ON(qwen14b, 8, GRADIENT, 2), FITS, .gib = 80, .seen = SHEET_SMI},
    {SWIFT_ON(qwen14b, 8, PARAM, 2), FITS, .gib = 58, .seen = SHEET_SMI},
    {SWIFT_MEGATRON(qwen14b, 4, 8, SHEET_SCORES), .gib = 65, .seen = SHEET_SMI},
    /* 22B to 70B */
    {.model = &gpt22b,
     ON_A100_80,
     .gpus = 8,
     .per_node = 8,
     .tensor = 8,
     .whole_norms = 1,
     .micro = 4,
     .accumulation = 1,
     .seq = 2048,
     .framework = "megatron",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MAIN_F32,
     .eager = APEX,
     FITS,
     .source = "Korthikanti et al. 2022, table 5"},
    {S1_ON(16, 20000), FITS, .open = "how long its samples are, at most 20000 tokens"},
    {S1_ON(16, 32000), OOM},
    {S1_ON(8, 20000), OOM},
    {SWIFT_MEGATRON(qwen3_32b, 8, 16, SHEET_BLOCKS), .ask = 1},
    {FMS_ON(llama2_34b, SHEET_BLOCKS, "some blocks recompute, how many is not said")},
    {.model = &llama2_70b,
     ON_A100_80,
     FSDP(16, 8, 1, 1, 2048),
     .framework = "pytorch",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = EAGER,
     FITS,
     .ask = 1,
     .source = "huggingface.co/blog/ram-efficient-pytorch-fsdp of 2023-09-13"},
    {.model = &llama2_70b,
     ON_H800_80,
     FSDP(16, 8, 2, 8, 4096),
     .framework = "pytorch",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = EAGER,
     OOM,
     .source = "github.com/lm-sys/FastChat, issue 2229 of 2023-08-15"},
    {FMS_ON(llama2_70b, SHEET_BLOCKS, "some blocks recompute, how many is not said")},
    {TITAN_2024(llama2_70b, 2, 4096, SHEET_BLOCKS), FITS},
    {TITAN_2024(llama2_70b, 1, 4096, SHEET_PRODUCTS), FITS},
    {TITAN_2024(llama2_70b, 2, 4096, SHEET_PRODUCTS), OOM},
    {TITAN_2024(llama3_70b, 1, 8192, SHEET_BLOCKS), FITS, .ask = 1},
    {.model = &llama3_70b,
     ON_H100_80,
     FSDP(64, 8, 1, 2, 4096),
     .framework = "deepspeed",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = EAGER,
     FITS,
     .source = TULU},
    /* mixtures of experts */
    {.model = &mixtral,
     ON_A100_80,
     FSDP(16, 8, 1, 16, 2048),
     .framework = "deepspeed",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = EAGER,
     FITS,
     .ask = 1,
     .source = "github.com/InternLM/xtuner, xtuner/configs/mixtral at 22895ab"},
    {SWIFT_ON(qwen3_30b, 16, GRADIENT, 1), OOM},
    {SWIFT_ON(qwen3_30b, 16, PARAM, 1), FITS, .gib = 80, .seen = SHEET_SMI, .ask = 1},
    {TITAN_ON(deepseek_16b, 8, 8, 4096, SHEET_PRODUCTS), ON_H100_80, .eager = EAGER, OOM,
     .technique = "experts over 8 GPUs; queries without a low rank",
     .source = "github.com/pytorch/torchtitan, issue 1789 of 2025-10-02"},
    {TITAN_ON(deepseek_16b, 8, 4, 4096, SHEET_PRODUCTS), ON_H100_80, .eager = EAGER, FITS,
     .gib = 73.32, .seen = SHEET_RESERVED,
     .technique = "experts over 8 GPUs; queries without a low rank",
     .source = "github.com/pytorch/torchtitan, issue 1789 of 2025-10-02 and pull request "
               "1792"},
    {.model = &deepseek_671b,
     ON_H100_80,
     .gpus = 512,
     .per_node = 8,
     .tensor = 8,
     .zero = TOPT_ZERO_PARAM,
     .micro = 1,
     .accumulation = 1,
     .seq = 4096,
     .framework = "torchtitan",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = EAGER,
     FITS,
     .ask = 1,
     .technique = "norms by positions over the tensor axes",
     .source = "github.com/pytorch/torchtitan, issue 1558 of 2025-08-12, at a1fdd7e"},
    /* 405B */
    {.model = &llama3_405b,
     ON_H100_94,
     .gpus = 128,
     .per_node = 8,
     .tensor = 8,
     .zero = TOPT_ZERO_PARAM,
     .micro = 2,
     .accumulation = 1,
     .seq = 8192,
     .framework = "torchtitan",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = COMPILED,
     FITS,
     .ask = 1,
     .technique = "norms by positions over the tensor axes",
     .source = TITAN_405B},
    {.model = &llama3_405b,
     ON_H100_80,
     FSDP(256, 8, 2, 1, 2048),
     .framework = "deepspeed",
     .again = SHEET_BLOCKS,
     .precision = SHEET_MIXED,
     .eager = EAGER,
     FITS,
     .technique = "preferences: both samples of a pair at once",
     .source = TULU},
    {TITAN_ON(llama3_405b, 128, 1, 8192, SHEET_BLOCKS), ON_H100_94, .eager = COMPILED,
     OOM, .source = TITAN_405B},
};
const int sheet_nrows = (int)(sizeof sheet_rows / sizeof *sheet_rows);

/* ---- as PyTorch's memory tracker has it ---------------------------------------------------- */

const char sheet_tracker[] =
    "torch 2.14.1 (torch.distributed._tools.mem_tracker) and transformers 5.12.1, "
    "2026-11-22: whole models on a fake process group, fully_shard on each decoder "
    "block and on the root, bf16 with f32 reduction on f32 parameters, attention as one "
    "kernel, the second step; AdamW fused, which needs nothing more than its states "
    "(with "
    "foreach, which copies its shard, Llama 3.1 8B on 2 GPUs with blocks recomputed has "
    "its "
    "peak in the optimizer's step, 74.79 GiB)";

#define TRACKED_AS(sharded, kept, n, times, size, length, makes, peak)                   \
    ON_H100_80, PLAN(n, 8, sharded, size, times, length),                                \
        .framework = "pytorch", .again = makes, .precision = SHEET_##kept,               \
        .eager = TRAINER, .gib = peak, .seen = SHEET_ACTIVE
#define TRACKED(of, n, size, length, makes, peak)                                        \
    .model = &(of), TRACKED_AS(PARAM, MIXED, n, 1, size, length, makes, peak)

const struct sheet_row sheet_tracked[] = {
    {TRACKED(llama3_8b, 8, 1, 4096, SHEET_BLOCKS, 20.58)},
    {TRACKED(llama3_8b, 8, 1, 4096, SHEET_NOTHING, 44.10)},
    {TRACKED(llama3_8b, 2, 1, 4096, SHEET_BLOCKS, 64.72)},
    {TRACKED(llama3_8b, 2, 1, 4096, SHEET_NOTHING, 77.75)},
    {TRACKED(llama3_8b, 2, 4, 8192, SHEET_BLOCKS, 103.21)},
    {TRACKED(llama3_8b, 64, 1, 4096, SHEET_BLOCKS, 10.76)},
    {TRACKED(llama3_8b, 64, 1, 4096, SHEET_NOTHING, 34.28)},
    {TRACKED(llama3_8b, 64, 1, 8192, SHEET_BLOCKS, 17.76)},
    {.model = &llama3_8b,
     TRACKED_AS(GRADIENT, MIXED, 8, 1, 1, 4096, SHEET_BLOCKS, 33.17),
     .technique = "not resharded after forward"},
    {.model = &llama3_8b, TRACKED_AS(PARAM, MIXED, 8, 2, 1, 4096, SHEET_BLOCKS, 24.32)},
    {.model = &llama3_8b,
     TRACKED_AS(PARAM, PURE_BF16, 8, 1, 1, 4096, SHEET_BLOCKS, 14.97)},
    {TRACKED(llama3_8b, 8, 1, 2048, SHEET_BLOCKS, 20.34)},
    {TRACKED(llama3_8b, 8, 1, 2048, SHEET_NOTHING, 28.84)},
    {TRACKED(llama3_8b, 8, 1, 8192, SHEET_BLOCKS, 27.58)},
    {TRACKED(llama3_8b, 8, 1, 8192, SHEET_NOTHING, 74.61)},
    {TRACKED(llama3_8b, 8, 4, 4096, SHEET_BLOCKS, 41.57)},
    {TRACKED(llama3_8b, 8, 4, 4096, SHEET_NOTHING, 135.63)},
    {TRACKED(llama3_8b, 8, 4, 8192, SHEET_BLOCKS, 69.55)},
    {TRACKED(qwen3_600m, 1, 4, 4096, SHEET_BLOCKS, 35.77)},
    {TRACKED(qwen3_600m, 1, 4, 4096, SHEET_NOTHING, 65.60)},
    {TRACKED(qwen3_600m, 8, 4, 4096, SHEET_NOTHING, 59.80)},
    {TRACKED(llama3_70b, 64, 1, 4096, SHEET_BLOCKS, 32.07)},
};
const int sheet_ntracked = (int)(sizeof sheet_tracked / sizeof *sheet_tracked);

/* ---- left out ------------------------------------------------------------------------------ */

#define AUTOMODEL                                                                        \
    "github.com/NVIDIA-NeMo/Automodel, performance-summary.mdx (docs) at 36044ad"

const struct sheet_left_out sheet_left_out[] = {
    {"Llama 3.1 405B on 512 H100 GPUs", "a pipeline of 8 stages, 8-bit numbers",
     TITAN_H100},
    {"Llama 3.1 70B on 256 H100 GPUs", "8-bit numbers", TITAN_H100},
    {"DeepSeek-V3 671B on 256 and 1024 H100 GPUs", "a pipeline of 4 stages", AUTOMODEL},
    {"Kimi K2 on 256 H100 GPUs", "a pipeline of 8 stages", AUTOMODEL},
    {"Llama 3 70B on 64 H100 GPUs", "positions split over 2 GPUs", AUTOMODEL},
    {"Qwen3 30B-A3B on 16 A800 GPUs by Megatron", "a pipeline of 2 stages", SWIFT},
    {"Llama 3.1 8B and 70B by torchtune",
     "a pageable 8-bit optimizer within backward, or "
     "states in the host's memory",
     "github.com/pytorch/torchtune, README.md at bd2a0fc"},
    {"FLAN-T5 XL and XXL with offloading", "states in the host's memory", FLAN},
    {"Whisper large on one A100", "states in the host's memory", WHISPER_EVENT},
    {"BERT-large on a Titan X of 12 GB, TensorFlow", "no framework here is like it",
     "github.com/google-research/bert, README.md"},
};
const int sheet_nleft_out = (int)(sizeof sheet_left_out / sizeof *sheet_left_out);
