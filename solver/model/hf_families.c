/* hf_families.c - the families of Hugging Face configs that are read, by which functions,
 * and what each is whatever its configs say.
 *
 * A family that differs from others in traits alone is a row of one reader
 * (hf_read_decoder.c). */
#include "hf_families.h"
#include "hf_read_decoder.h"
#include "hf_read_encoders.h"
#include "hf_read_experts.h"
#include "hf_read_gpt.h"
#include "hf_read_hybrid.h"
#include "hf_read_llama.h"
#include "hf_read_text_encoders.h"
#include "hf_read_vision.h"
#include "hf_towers.h"
#include "hf_vision.h"

#include <stddef.h>

/* ---- what models end with ---------------------------------------------------------- */

static const struct hf_task decoder[] = {{"ForCausalLM", HF_LANGUAGE},
                                         {"LMHeadModel", HF_LANGUAGE},
                                         {"ForConditionalGeneration", HF_LANGUAGE},
                                         {"ForSequenceClassification", HF_LAST_CLASS},
                                         {"ForTokenClassification", HF_TOKEN_CLASS},
                                         {"ForQuestionAnswering", HF_ANSWER},
                                         {"TextModel", HF_BARE},
                                         {"Model", HF_BARE},
                                         {NULL, 0}};
/* Calls itself a model alone, and has a head. */
static const struct hf_task generator[] = {{"Model", HF_LANGUAGE},
                                           {"ForConditionalGeneration", HF_LANGUAGE},
                                           {"ForSequenceClassification", HF_LAST_CLASS},
                                           {NULL, 0}};
static const struct hf_task encoder[] = {{"ForMaskedLM", HF_LANGUAGE},
                                         {"ForSequenceClassification", HF_POOLED_TANH},
                                         {"ForTokenClassification", HF_TOKEN_CLASS},
                                         {"ForQuestionAnswering", HF_ANSWER},
                                         {"ForPreTraining", HF_LANGUAGE},
                                         {"Model", HF_BARE},
                                         {NULL, 0}};
static const struct hf_task without_pooler[] = {
    {"ForMaskedLM", HF_LANGUAGE},
    {"ForSequenceClassification", HF_POOLED_GELU},
    {"ForTokenClassification", HF_TOKEN_CLASS},
    {"ForQuestionAnswering", HF_ANSWER},
    {"ForPreTraining", HF_ORIGINAL},
    {"Model", HF_BARE},
    {NULL, 0}};
static const struct hf_task translation[] = {
    {"ForConditionalGeneration", HF_LANGUAGE},
    {"MTModel", HF_LANGUAGE},
    {"ForSequenceClassification", HF_POOLED_TANH},
    {"ForQuestionAnswering", HF_ANSWER},
    {"Model", HF_BARE},
    {NULL, 0}};
static const struct hf_task distilled[] = {{"ForMaskedLM", HF_LANGUAGE},
                                           {"ForSequenceClassification", HF_POOLED_RELU},
                                           {"ForTokenClassification", HF_TOKEN_CLASS},
                                           {"ForQuestionAnswering", HF_ANSWER},
                                           {"Model", HF_BARE},
                                           {NULL, 0}};
static const struct hf_task generation[] = {{"ForConditionalGeneration", HF_LANGUAGE},
                                            {NULL, 0}};
static const struct hf_task pairs[] = {{"Model", HF_BARE}, {NULL, 0}};
static const struct hf_task images[] = {
    {"ForImageClassification", HF_TOKEN_CLASS}, {"Model", HF_BARE}, {NULL, 0}};

/* ---- traits ------------------------------------------------------------------------ */

enum {
    RMS = HF_T_RMS,
    GATED = HF_T_GATED,
    UNBIASED = HF_T_UNBIASED,
    UNTRAINED = HF_T_UNTRAINED,
    HEADS = HF_T_HEADS,
    EACH_HEAD = HF_T_EACH_HEAD,
    WIDE = HF_T_WIDE,
    PARALLEL = HF_T_PARALLEL,
    SHARED_NORM = HF_T_SHARED_NORM,
    AFTER = HF_T_AFTER,
    SANDWICH = HF_T_SANDWICH,
    ATTENTION_BIAS = HF_T_QKV_BIAS | HF_T_OUT_BIAS,
    BIASES = HF_T_QKV_BIAS | HF_T_OUT_BIAS | HF_T_MLP_BIAS,
    OF_QKV = HF_T_BIAS_OF_QKV,
    SINKS = HF_T_SINKS,
    EXPERT_BIAS = HF_T_EXPERT_BIAS,
    GATE = HF_T_GATE,
    CORRECTED = HF_T_CORRECTED,
    SHARED_GATE = HF_T_SHARED_GATE,
    EMBED_NORM = HF_T_EMBED_NORM,
    ALIBI = HF_T_ALIBI,
    UNTURNED = HF_T_UNTURNED,
    POSITIONS = HF_T_POSITIONS,
    ALL_EXPERTS = HF_T_ALL_EXPERTS,
    LLAMA = HF_T_RMS | HF_T_GATED
};

/* clang-format off */
#define WINDOWS(type, prefix, traits, every) {type, prefix, topt_hf_read_decoder, NULL, decoder, traits, NULL, every}
#define OWN(type, prefix, reader)         {type, prefix, reader, NULL, decoder, 0, NULL, 0}
#define ROW(type, prefix, traits)         {type, prefix, topt_hf_read_decoder, NULL, decoder, traits, NULL, 0}
#define LIKE(type, prefix, reader, traits, like) {type, prefix, reader, NULL, decoder, traits, like, 0}

const struct hf_family topt_hf_families[] = {
    OWN("gpt2", "GPT2", topt_hf_read_gpt2),
    OWN("opt", "OPT", topt_hf_read_opt),
    OWN("gpt_neox", "GPTNeoX", topt_hf_read_gpt_neox),
    OWN("gptj", "GPTJ", topt_hf_read_gptj),
    OWN("codegen", "CodeGen", topt_hf_read_gptj),
    OWN("phi", "Phi", topt_hf_read_phi),
    OWN("phi3", "Phi3", topt_hf_read_phi3),
    OWN("llama", "Llama", topt_hf_read_llama),
    OWN("llama4_text", "Llama4", topt_hf_read_llama4),
    OWN("mistral", "Mistral", topt_hf_read_mistral),
    OWN("mixtral", "Mixtral", topt_hf_read_mixtral),
    OWN("qwen2", "Qwen2", topt_hf_read_qwen2),
    LIKE("qwen2_vl_text", "Qwen2VL", topt_hf_read_qwen2, 0, NULL),
    LIKE("qwen2_5_vl_text", "Qwen2_5_VL", topt_hf_read_qwen2, 0, NULL),
    OWN("qwen2_moe", "Qwen2Moe", topt_hf_read_qwen2_moe),
    OWN("qwen3", "Qwen3", topt_hf_read_qwen3),
    OWN("qwen3_moe", "Qwen3Moe", topt_hf_read_qwen3_moe),
    OWN("qwen3_vl_text", "Qwen3VL", topt_hf_read_qwen3),
    OWN("qwen3_vl_moe_text", "Qwen3VLMoe", topt_hf_read_qwen3_moe),
    OWN("starcoder2", "Starcoder2", topt_hf_read_starcoder2),
    OWN("gemma", "Gemma", topt_hf_read_gemma),
    OWN("gemma2", "Gemma2", topt_hf_read_gemma2),
    OWN("gemma3_text", "Gemma3", topt_hf_read_gemma3),
    OWN("gemma4_text", "Gemma4", topt_hf_read_gemma4),
    OWN("deepseek_v3", "DeepseekV3", topt_hf_read_deepseek_v3),
    LIKE("kimi_k2", "DeepseekV3", topt_hf_read_deepseek_v3, 0, "deepseek_v3"),
    OWN("deepseek_v2", "DeepseekV2", topt_hf_read_deepseek_v2),
    OWN("deepseek_v32", "DeepseekV32", topt_hf_read_deepseek_v3),
    OWN("glm_moe_dsa", "GlmMoeDsa", topt_hf_read_deepseek_v3),
    OWN("glm4_moe_lite", "Glm4MoeLite", topt_hf_read_glm4_moe_lite),
    OWN("mistral4", "Mistral4", topt_hf_read_mistral4),
    ROW("exaone", "Exaone", LLAMA),
    ROW("internlm2", "InternLM2", LLAMA),
    ROW("baichuan", "Baichuan", LLAMA),
    ROW("minicpm", "MiniCPM", LLAMA),
    ROW("bailing_moe", "BailingMoe", LLAMA),
    {"chatglm", "ChatGLM", topt_hf_read_chatglm, NULL, generator, LLAMA, NULL, 0},
    LIKE("qwen", "QWen", topt_hf_read_qwen, LLAMA | HF_T_QKV_BIAS, NULL),
    ROW("apertus", "Apertus", RMS | HEADS),
    ROW("ministral", "Ministral", LLAMA),
    ROW("ministral3", "Ministral3", LLAMA),
    LIKE("mimo", "MiMo", topt_hf_read_qwen2, 0, "qwen2"),
    ROW("seed_oss", "SeedOss", LLAMA),
    ROW("smollm3", "SmolLM3", LLAMA),
    ROW("granite", "Granite", LLAMA),
    ROW("arcee", "Arcee", RMS),
    ROW("helium", "Helium", LLAMA | OF_QKV),
    ROW("ernie4_5", "Ernie4_5", LLAMA),
    ROW("hunyuan_v1_dense", "HunYuanDenseV1", LLAMA | HEADS),
    ROW("exaone4", "Exaone4", LLAMA | AFTER | HEADS),
    ROW("glm", "Glm", LLAMA | OF_QKV),
    ROW("glm4", "Glm4", LLAMA | SANDWICH | OF_QKV),
    ROW("glm4v_text", "Glm4v", LLAMA | SANDWICH | HF_T_QKV_BIAS),
    ROW("olmo", "Olmo", GATED | UNTRAINED),
    ROW("olmo2", "Olmo2", LLAMA | AFTER | WIDE),
    WINDOWS("olmo3", "Olmo3", LLAMA | AFTER | WIDE, 4),
    ROW("cohere", "Cohere", GATED | UNBIASED | PARALLEL | SHARED_NORM | EACH_HEAD),
    WINDOWS("cohere2", "Cohere2", GATED | UNBIASED | PARALLEL | SHARED_NORM, 4),
    ROW("stablelm", "StableLm", GATED | EACH_HEAD),
    ROW("nemotron", "Nemotron", 0),
    ROW("persimmon", "Persimmon", BIASES | HEADS),
    ROW("nanochat", "NanoChat", RMS | UNTRAINED | HEADS),
    {"bloom", "Bloom", topt_hf_read_decoder, NULL, decoder, BIASES | ALIBI | EMBED_NORM, NULL, 0},
    LIKE("mpt", "MPT", topt_hf_read_mpt, UNBIASED | ALIBI, NULL),
    LIKE("falcon", "Falcon", topt_hf_read_falcon, 0, NULL),
    LIKE("gpt_neo", "GPTNeo", topt_hf_read_gpt_neo, POSITIONS | HF_T_OUT_BIAS | HF_T_MLP_BIAS, NULL),
    LIKE("gpt_bigcode", "GPTBigCode", topt_hf_read_gpt_bigcode, POSITIONS | BIASES, NULL),
    WINDOWS("gpt_oss", "GptOss", LLAMA | SINKS | EXPERT_BIAS | ALL_EXPERTS | ATTENTION_BIAS, 2),
    ROW("minimax_m2", "MiniMaxM2", LLAMA | WIDE | CORRECTED | ALL_EXPERTS),
    ROW("olmoe", "Olmoe", LLAMA | WIDE | ALL_EXPERTS),
    ROW("flex_olmo", "FlexOlmo", LLAMA | AFTER | WIDE | ALL_EXPERTS),
    ROW("granitemoe", "GraniteMoe", LLAMA | ALL_EXPERTS),
    ROW("granitemoeshared", "GraniteMoeShared", LLAMA | ALL_EXPERTS),
    ROW("phimoe", "Phimoe", GATED | ALL_EXPERTS),
    ROW("glm4_moe", "Glm4Moe", LLAMA | HEADS | OF_QKV | CORRECTED),
    ROW("glm4v_moe_text", "Glm4vMoe", LLAMA | OF_QKV | CORRECTED),
    ROW("dots1", "Dots1", LLAMA | HEADS | CORRECTED),
    ROW("solar_open", "SolarOpen", LLAMA | CORRECTED),
    ROW("ernie4_5_moe", "Ernie4_5_Moe", LLAMA | CORRECTED),
    ROW("hunyuan_v1_moe", "HunYuanMoEV1", LLAMA | HEADS | ALL_EXPERTS | HF_T_DENSE_BESIDE),
    ROW("hy_v3", "HYV3", LLAMA | HEADS | CORRECTED | HF_T_FIRST_DENSE),
    ROW("exaone_moe", "ExaoneMoe", LLAMA | HEADS | CORRECTED),
    ROW("afmoe", "Afmoe", LLAMA | SANDWICH | HEADS | GATE | CORRECTED),
    LIKE("minimax", "MiniMax", topt_hf_read_minimax, LLAMA | ALL_EXPERTS, NULL),
    LIKE("qwen3_next", "Qwen3Next", topt_hf_read_qwen3_next, LLAMA | HEADS | GATE | SHARED_GATE, NULL),
    LIKE("qwen3_5_text", "Qwen3_5", topt_hf_read_qwen3_next, LLAMA | HEADS | GATE, NULL),
    LIKE("qwen3_5_moe_text", "Qwen3_5Moe", topt_hf_read_qwen3_next, LLAMA | HEADS | GATE | SHARED_GATE, NULL),
    LIKE("mamba", "Mamba", topt_hf_read_mamba, 0, NULL),
    LIKE("falcon_mamba", "FalconMamba", topt_hf_read_mamba, 0, NULL),
    LIKE("mamba2", "Mamba2", topt_hf_read_mamba2, 0, NULL),
    LIKE("bamba", "Bamba", topt_hf_read_hybrid_mamba2, LLAMA, NULL),
    LIKE("granitemoehybrid", "GraniteMoeHybrid", topt_hf_read_hybrid_mamba2, LLAMA | ALL_EXPERTS, NULL),
    LIKE("falcon_h1", "FalconH1", topt_hf_read_falcon_h1, LLAMA, NULL),
    LIKE("nemotron_h", "NemotronH", topt_hf_read_nemotron_h, RMS | UNTURNED | CORRECTED, NULL),
    LIKE("jamba", "Jamba", topt_hf_read_jamba, LLAMA | UNTURNED | ALL_EXPERTS, NULL),
    LIKE("lfm2", "Lfm2", topt_hf_read_lfm2, LLAMA | HEADS, NULL),
    LIKE("lfm2_moe", "Lfm2Moe", topt_hf_read_lfm2, LLAMA | HEADS | CORRECTED, NULL),
    {"t5", "T5", topt_hf_read_t5, topt_hf_build_translation, generation, 0, NULL, 0},
    {"mt5", "MT5", topt_hf_read_mt5, topt_hf_build_translation, generation, 0, NULL, 0},
    {"vit", "ViT", topt_hf_read_vit, topt_hf_build_vision, images, 0, NULL, 0},
    {"whisper", "Whisper", topt_hf_read_whisper, topt_hf_build_speech, generation, 0, NULL, 0},
    {"bert", "Bert", topt_hf_read_bert, NULL, encoder, 0, NULL, 0},
    {"distilbert", "DistilBert", topt_hf_read_distilbert, NULL, distilled, 0, NULL, 0},
    {"roberta", "Roberta", topt_hf_read_roberta, NULL, encoder, 0, NULL, 0},
    {"xlm-roberta", "XLMRoberta", topt_hf_read_roberta, NULL, encoder, 0, NULL, 0},
    {"camembert", "Camembert", topt_hf_read_roberta, NULL, encoder, 0, NULL, 0},
    {"mpnet", "MPNet", topt_hf_read_mpnet, NULL, encoder, 0, NULL, 0},
    {"electra", "Electra", topt_hf_read_electra, NULL, without_pooler, 0, NULL, 0},
    {"deberta-v2", "DebertaV2", topt_hf_read_deberta_v2, NULL, without_pooler, 0, NULL, 0},
    {"modernbert", "ModernBert", topt_hf_read_modernbert, NULL, without_pooler, 0, NULL, 0},
    {"esm", "Esm", topt_hf_read_esm, NULL, encoder, 0, NULL, 0},
    {"nomic_bert", "NomicBert", topt_hf_read_nomic_bert, NULL, encoder, 0, NULL, 0},
    {"eurobert", "EuroBert", topt_hf_read_eurobert, NULL, without_pooler, 0, NULL, 0},
    {"bart", "Bart", topt_hf_read_bart, topt_hf_build_seq2seq, translation, 0, NULL, 0},
    {"mbart", "MBart", topt_hf_read_mbart, topt_hf_build_seq2seq, translation, 0, NULL, 0},
    {"marian", "Marian", topt_hf_read_marian, topt_hf_build_seq2seq, translation, 0, NULL, 0},
    {"pegasus", "Pegasus", topt_hf_read_pegasus, topt_hf_build_seq2seq, translation, 0, NULL, 0},
    {"m2m_100", "M2M100", topt_hf_read_m2m_100, topt_hf_build_seq2seq, translation, 0, NULL, 0},
    {"dinov2", "Dinov2", topt_hf_read_dinov2, topt_hf_build_vision, images, 0, NULL, 0},
    {"deit", "DeiT", topt_hf_read_deit, topt_hf_build_vision, images, 0, NULL, 0},
    {"clip_text_model", "CLIP", topt_hf_read_clip_text, topt_hf_build_pair, pairs, 0, NULL, 0},
    {"siglip_text_model", "Siglip", topt_hf_read_siglip_text, topt_hf_build_pair, pairs, 0, NULL, 0},
    {0},
};
/* clang-format on */
