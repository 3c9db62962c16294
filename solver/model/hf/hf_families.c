/* hf_families.c - the families of Hugging Face configs that are read, by which functions,
 * and what each is whatever its configs say.
 *
 * A family that differs from others in traits alone is a row of one reader
 * (hf_read_decoder.c). */
#include "hf_families.h"
#include "hf_audio.h"
#include "hf_convnets.h"
#include "hf_read_decoder.h"
#include "hf_read_each.h"
#include "hf_read_encoders.h"
#include "hf_read_experts.h"
#include "hf_read_gpt.h"
#include "hf_read_hybrid.h"
#include "hf_images.h"
#include "hf_read_images.h"
#include "hf_read_llama.h"
#include "hf_read_renamed.h"
#include "hf_read_text_encoders.h"
#include "hf_read_vision.h"
#include "hf_towers.h"
#include "hf_vision.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
static const struct hf_task masked[] = {
    {"ModelLM", HF_LANGUAGE}, {"ForCausalLM", HF_LANGUAGE}, {NULL, 0}};
static const struct hf_task encoder[] = {{"ForMaskedLM", HF_LANGUAGE},
                                         {"ForCausalLM", HF_LANGUAGE},
                                         {"LMHeadModel", HF_LANGUAGE},
                                         {"ForSequenceClassification", HF_POOLED_TANH},
                                         {"ForTokenClassification", HF_TOKEN_CLASS},
                                         {"ForQuestionAnswering", HF_ANSWER},
                                         {"ForPreTraining", HF_LANGUAGE},
                                         {"Model", HF_BARE},
                                         {NULL, 0}};
static const struct hf_task tokens_alone[] = {
    {"ForMaskedLM", HF_LANGUAGE}, {"Model", HF_BARE}, {NULL, 0}};
static const struct hf_task without_pooler[] = {
    {"ForMaskedLM", HF_LANGUAGE},
    {"ForSequenceClassification", HF_POOLED_GELU},
    {"ForTokenClassification", HF_TOKEN_CLASS},
    {"ForQuestionAnswering", HF_ANSWER},
    {"ForPreTraining", HF_ORIGINAL},
    {"Model", HF_BARE},
    {NULL, 0}};
static const struct hf_task encoders_of_pairs[] = {
    {"QuestionEncoder", HF_BARE}, {"ContextEncoder", HF_BARE}, {NULL, 0}};
static const struct hf_task both_ways[] = {
    {"Decoder", HF_LANGUAGE}, {"Encoder", HF_BARE}, {NULL, 0}};
static const struct hf_task permuted[] = {{"LMHeadModel", HF_LANGUAGE},
                                          {"WithLMHeadModel", HF_LANGUAGE},
                                          {"ForSequenceClassification", HF_POOLED_TANH},
                                          {"ForTokenClassification", HF_TOKEN_CLASS},
                                          {"ForQuestionAnsweringSimple", HF_ANSWER},
                                          {"Model", HF_BARE},
                                          {NULL, 0}};
static const struct hf_task tables[] = {{"ForMaskedLM", HF_LANGUAGE},
                                        {"ForSequenceClassification", HF_POOLED_TANH},
                                        {"Model", HF_BARE},
                                        {NULL, 0}};
static const struct hf_task pages[] = {{"ForTokenClassification", HF_TOKEN_CLASS},
                                       {"ForSequenceClassification", HF_POOLED_TANH},
                                       {"Model", HF_BARE},
                                       {NULL, 0}};
static const struct hf_task words_alone[] = {{"WithLMHeadModel", HF_LANGUAGE},
                                             {"ForTokenClassification", HF_TOKEN_CLASS},
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
static const struct hf_task frames[] = {{"ForCTC", HF_LANGUAGE},
                                        {"ForSequenceClassification", HF_LAST_CLASS},
                                        {"ForAudioFrameClassification", HF_TOKEN_CLASS},
                                        {"Model", HF_BARE},
                                        {NULL, 0}};
static const struct hf_task images[] = {
    {"ForImageClassification", HF_TOKEN_CLASS}, {"Model", HF_BARE}, {NULL, 0}};
static const struct hf_task towers[] = {{"ForImageClassification", HF_TOKEN_CLASS},
                                        {"Transformer", HF_BARE},
                                        {"Model", HF_BARE},
                                        {NULL, 0}};
static const struct hf_task pixels[] = {{"ForImageClassification", HF_TOKEN_CLASS},
                                        {"ForSemanticSegmentation", HF_EACH_PIXEL},
                                        {"Model", HF_BARE},
                                        {NULL, 0}};

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
#define WINDOWS(type, prefix, traits, every) \
    {type, prefix, topt_hf_read_decoder, NULL, decoder, traits, NULL, every}
#define OWN(type, prefix, reader)                {type, prefix, reader, NULL, decoder, 0, NULL, 0}
#define ROW(type, prefix, traits)                WINDOWS(type, prefix, traits, 0)
#define LIKE(type, prefix, reader, traits, like) \
    {type, prefix, reader, NULL, decoder, traits, like, 0}
#define BUILT(type, prefix, reader, build, use)  {type, prefix, reader, build, use, 0, NULL, 0}

const struct hf_family topt_hf_families[] = {
    OWN("gpt2", "GPT2", topt_hf_read_gpt2),
    LIKE("gpt-sw3", "GPT2", topt_hf_read_gpt2, 0, "gpt2"),
    OWN("opt", "OPT", topt_hf_read_opt),
    OWN("openai-gpt", "OpenAIGPT", topt_hf_read_openai_gpt),
    OWN("xglm", "XGLM", topt_hf_read_xglm),
    OWN("biogpt", "BioGpt", topt_hf_read_biogpt),
    OWN("gpt_neox", "GPTNeoX", topt_hf_read_gpt_neox),
    OWN("gptj", "GPTJ", topt_hf_read_gptj),
    OWN("codegen", "CodeGen", topt_hf_read_gptj),
    OWN("phi", "Phi", topt_hf_read_phi),
    LIKE("phi3small", "Phi3Small", topt_hf_read_phi3small, GATED, NULL),
    OWN("phi3", "Phi3", topt_hf_read_phi3),
    LIKE("phi4_multimodal_text", "Phi4Multimodal", topt_hf_read_phi3, 0, "phi4_multimodal"),
    OWN("llama", "Llama", topt_hf_read_llama),
    OWN("mllama_text_model", "Mllama", topt_hf_read_mllama_text),
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
    OWN("vaultgemma", "VaultGemma", topt_hf_read_vaultgemma),
    OWN("gemma3_text", "Gemma3", topt_hf_read_gemma3),
    OWN("gemma3n_text", "Gemma3n", topt_hf_read_gemma3n),
    OWN("gemma4_text", "Gemma4", topt_hf_read_gemma4),
    OWN("deepseek_v3", "DeepseekV3", topt_hf_read_deepseek_v3),
    LIKE("kimi_k2", "DeepseekV3", topt_hf_read_deepseek_v3, 0, "deepseek_v3"),
    OWN("deepseek_v2", "DeepseekV2", topt_hf_read_deepseek_v2),
    OWN("deepseek_v32", "DeepseekV32", topt_hf_read_deepseek_v3),
    OWN("deepseek_v4", "DeepseekV4", topt_hf_read_deepseek_v4),
    OWN("glm_moe_dsa", "GlmMoeDsa", topt_hf_read_deepseek_v3),
    OWN("glm4_moe_lite", "Glm4MoeLite", topt_hf_read_glm4_moe_lite),
    OWN("kimi_linear", "KimiLinear", topt_hf_read_kimi_linear),
    OWN("longcat_flash", "LongcatFlash", topt_hf_read_longcat),
    OWN("youtu", "Youtu", topt_hf_read_youtu),
    OWN("mistral4", "Mistral4", topt_hf_read_mistral4),
    ROW("exaone", "Exaone", LLAMA),
    ROW("internlm2", "InternLM2", LLAMA),
    ROW("internlm3", "InternLM3", LLAMA),
    ROW("xverse", "Xverse", LLAMA),
    ROW("orion", "Orion", GATED),
    LIKE("Yi", "Yi", topt_hf_read_llama, 0, "llama"),
    ROW("deepseek", "Deepseek", LLAMA),
    ROW("jais2", "Jais2", 0),
    LIKE("hyperclovax", "HyperCLOVAX", topt_hf_read_hyperclovax, LLAMA, NULL),
    ROW("baichuan", "Baichuan", LLAMA),
    ROW("minicpm", "MiniCPM", LLAMA),
    ROW("bailing_moe", "BailingMoe", LLAMA),
    ROW("bailing_moe_v2", "BailingMoeV2", LLAMA | HEADS | CORRECTED),
    LIKE("bailing_moe_linear", "BailingMoeLinearV2", topt_hf_read_bailing_linear,
         LLAMA | HEADS | CORRECTED, NULL),
    {"llada", "LLaDA", topt_hf_read_llada, NULL, masked, LLAMA, NULL, 0},
    {"llada2_moe", "LLaDA2Moe", topt_hf_read_llada2, NULL, masked, LLAMA | HEADS | CORRECTED, NULL,
     0},
    {"Dream", "Dream", topt_hf_read_dream, NULL, generator, 0, "qwen2", 0},
    LIKE("sdar", "SDAR", topt_hf_read_sdar, 0, "qwen3"),
    LIKE("sdar_moe", "SDARMoe", topt_hf_read_sdar_moe, 0, "qwen3_moe"),
    LIKE("Klear", "KlearMoe", topt_hf_read_klear, LLAMA | HEADS | CORRECTED, NULL),
    LIKE("nemotron-nas", "DeciLM", topt_hf_read_puzzle, LLAMA, "llama"),
    LIKE("deci", "DeciLM", topt_hf_read_decilm, LLAMA, "llama"),
    LIKE("openelm", "OpenELM", topt_hf_read_openelm, LLAMA, NULL),
    LIKE("telechat3", "TeleChat3", topt_hf_read_llama, 0, "llama"),
    LIKE("youtu_llm", "Youtu", topt_hf_read_youtu, 0, "youtu"),
    {"chatglm", "ChatGLM", topt_hf_read_chatglm, NULL, generator, LLAMA, NULL, 0},
    LIKE("qwen", "QWen", topt_hf_read_qwen, LLAMA | HF_T_QKV_BIAS, NULL),
    ROW("apertus", "Apertus", RMS | HEADS),
    ROW("ministral", "Ministral", LLAMA),
    ROW("ministral3", "Ministral3", LLAMA),
    LIKE("mimo", "MiMo", topt_hf_read_qwen2, 0, "qwen2"),
    ROW("seed_oss", "SeedOss", LLAMA),
    ROW("cwm", "Cwm", LLAMA),
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
    {"bloom", "Bloom", topt_hf_read_bloom, NULL, decoder, BIASES | ALIBI | EMBED_NORM, NULL, 0},
    LIKE("mpt", "MPT", topt_hf_read_mpt, UNBIASED | ALIBI, NULL),
    LIKE("falcon", "Falcon", topt_hf_read_falcon, 0, NULL),
    LIKE("gpt_neo", "GPTNeo", topt_hf_read_gpt_neo, POSITIONS | HF_T_OUT_BIAS | HF_T_MLP_BIAS,
         NULL),
    LIKE("gpt_bigcode", "GPTBigCode", topt_hf_read_gpt_bigcode, POSITIONS | BIASES, NULL),
    WINDOWS("gpt_oss", "GptOss", LLAMA | SINKS | EXPERT_BIAS | ALL_EXPERTS | ATTENTION_BIAS, 2),
    LIKE("mimo_v2_flash", "MiMoV2Flash", topt_hf_read_mimo_v2, LLAMA | CORRECTED, NULL),
    LIKE("minimax_m3_vl_text", "MiniMaxM3Sparse", topt_hf_read_minimax_m3,
         LLAMA | HEADS | CORRECTED | ALL_EXPERTS, NULL),
    LIKE("minimax_m3", "MiniMaxM3", topt_hf_read_minimax_m3,
         LLAMA | HEADS | CORRECTED | ALL_EXPERTS, "minimax_m3_vl_text"),
    LIKE("step3_text", "Step3Text", topt_hf_read_step3, LLAMA, NULL),
    LIKE("step3p5", "Step3p5", topt_hf_read_step3p5, LLAMA | HEADS | HF_T_SIGMOID, NULL),
    LIKE("step3p7", "Step3p7Flash", topt_hf_read_step3p5, LLAMA | HEADS | HF_T_SIGMOID, NULL),
    ROW("minimax_m2", "MiniMaxM2", LLAMA | WIDE | CORRECTED | ALL_EXPERTS),
    ROW("olmoe", "Olmoe", LLAMA | WIDE | ALL_EXPERTS),
    ROW("flex_olmo", "FlexOlmo", LLAMA | AFTER | WIDE | ALL_EXPERTS),
    LIKE("dbrx", "Dbrx", topt_hf_read_dbrx, GATED | UNBIASED | ALL_EXPERTS, NULL),
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
    ROW("sarvam_moe", "SarvamMoE", LLAMA | HEADS | CORRECTED),
    ROW("exaone_moe", "ExaoneMoe", LLAMA | HEADS | CORRECTED),
    ROW("afmoe", "Afmoe", LLAMA | SANDWICH | HEADS | GATE | CORRECTED),
    ROW("mellum", "Mellum", LLAMA | HEADS),
    LIKE("laguna", "Laguna", topt_hf_read_laguna, LLAMA | HEADS | CORRECTED | HF_T_FIRST_DENSE,
         NULL),
    WINDOWS("cohere2_moe", "Cohere2Moe", GATED | UNBIASED | PARALLEL | SHARED_NORM | ALL_EXPERTS,
         4),
    ROW("glm_ocr_text", "GlmOcr", LLAMA | SANDWICH),
    ROW("glm_image_text", "GlmImage", LLAMA | SANDWICH | OF_QKV),
    ROW("aria_text", "AriaText", LLAMA | ALL_EXPERTS),
    LIKE("bitnet", "BitNet", topt_hf_read_bitnet, LLAMA, NULL),
    LIKE("diffllama", "DiffLlama", topt_hf_read_diffllama, LLAMA, NULL),
    OWN("ctrl", "CTRL", topt_hf_read_ctrl),
    LIKE("modernbert-decoder", "ModernBertDecoder", topt_hf_read_modernbert_decoder, 0, NULL),
    LIKE("gemma4_unified_text", "Gemma4Unified", topt_hf_read_gemma4_unified, 0, NULL),
    LIKE("qwen3_omni_moe_text", "Qwen3OmniMoe", topt_hf_read_qwen3_moe, 0, "qwen3_moe"),
    LIKE("qwen2_5_omni_text", "Qwen2_5Omni", topt_hf_read_qwen2, 0, NULL),
    LIKE("olmo_hybrid", "OlmoHybrid", topt_hf_read_olmo_hybrid, LLAMA | AFTER | WIDE, NULL),
    LIKE("minimax", "MiniMax", topt_hf_read_minimax, LLAMA | ALL_EXPERTS, NULL),
    LIKE("minimax_text_01", "MiniMaxText01", topt_hf_read_minimax, LLAMA | ALL_EXPERTS, "minimax"),
    LIKE("minimax_m1", "MiniMaxM1", topt_hf_read_minimax, LLAMA | ALL_EXPERTS, "minimax"),
    LIKE("qwen3_next", "Qwen3Next", topt_hf_read_qwen3_next, LLAMA | HEADS | GATE | SHARED_GATE,
         NULL),
    LIKE("qwen3_5_text", "Qwen3_5", topt_hf_read_qwen3_next, LLAMA | HEADS | GATE, NULL),
    LIKE("qwen3_5_moe_text", "Qwen3_5Moe", topt_hf_read_qwen3_next,
         LLAMA | HEADS | GATE | SHARED_GATE, NULL),
    LIKE("mamba", "Mamba", topt_hf_read_mamba, 0, NULL),
    LIKE("falcon_mamba", "FalconMamba", topt_hf_read_falcon_mamba, 0, NULL),
    LIKE("mamba2", "Mamba2", topt_hf_read_mamba2, 0, NULL),
    LIKE("rwkv", "Rwkv", topt_hf_read_rwkv, 0, NULL),
    LIKE("rwkv7", "RWKV7", topt_hf_read_rwkv7, 0, NULL),
    LIKE("xlstm", "xLSTM", topt_hf_read_xlstm, 0, NULL),
    LIKE("plamo2", "Plamo2", topt_hf_read_plamo2, LLAMA | SANDWICH | EACH_HEAD, NULL),
    LIKE("zamba2", "Zamba2", topt_hf_read_zamba2, 0, NULL),
    LIKE("bamba", "Bamba", topt_hf_read_hybrid_mamba2, LLAMA, NULL),
    LIKE("granitemoehybrid", "GraniteMoeHybrid", topt_hf_read_hybrid_mamba2, LLAMA | ALL_EXPERTS,
         NULL),
    LIKE("falcon_h1", "FalconH1", topt_hf_read_falcon_h1, LLAMA, NULL),
    LIKE("nemotron_h", "NemotronH", topt_hf_read_nemotron_h, RMS | UNTURNED | CORRECTED, NULL),
    LIKE("jamba", "Jamba", topt_hf_read_jamba, LLAMA | UNTURNED | ALL_EXPERTS, NULL),
    LIKE("lfm2", "Lfm2", topt_hf_read_lfm2, LLAMA | HEADS, NULL),
    LIKE("lfm2_moe", "Lfm2Moe", topt_hf_read_lfm2, LLAMA | HEADS | CORRECTED, NULL),
    BUILT("t5", "T5", topt_hf_read_t5, topt_hf_build_translation, generation),
    BUILT("mt5", "MT5", topt_hf_read_mt5, topt_hf_build_translation, generation),
    BUILT("umt5", "UMT5", topt_hf_read_umt5, topt_hf_build_translation, generation),
    BUILT("switch_transformers", "SwitchTransformers", topt_hf_read_switch,
         topt_hf_build_translation, generation),
    BUILT("longt5", "LongT5", topt_hf_read_longt5, topt_hf_build_translation, generation),
    BUILT("t5gemma", "T5Gemma", topt_hf_read_t5gemma, topt_hf_build_two_decoders, generation),
    BUILT("vit", "ViT", topt_hf_read_vit, topt_hf_build_vision, images),
    BUILT("wav2vec2", "Wav2Vec2", topt_hf_read_wav2vec2, topt_hf_build_frames, frames),
    BUILT("hubert", "Hubert", topt_hf_read_hubert, topt_hf_build_frames, frames),
    BUILT("wavlm", "WavLM", topt_hf_read_wavlm, topt_hf_build_frames, frames),
    BUILT("unispeech", "UniSpeech", topt_hf_read_wav2vec2, topt_hf_build_frames, frames),
    BUILT("unispeech-sat", "UniSpeechSat", topt_hf_read_wav2vec2, topt_hf_build_frames, frames),
    BUILT("data2vec-audio", "Data2VecAudio", topt_hf_read_data2vec_audio, topt_hf_build_frames,
         frames),
    BUILT("whisper", "Whisper", topt_hf_read_whisper, topt_hf_build_speech, generation),
    BUILT("bert", "Bert", topt_hf_read_bert, NULL, encoder),
    BUILT("distilbert", "DistilBert", topt_hf_read_distilbert, NULL, distilled),
    BUILT("longformer", "Longformer", topt_hf_read_longformer, NULL, tokens_alone),
    BUILT("layoutlm", "LayoutLM", topt_hf_read_layoutlm, NULL, encoder),
    BUILT("big_bird", "BigBird", topt_hf_read_big_bird, NULL, tokens_alone),
    BUILT("albert", "Albert", topt_hf_read_albert, NULL, encoder),
    BUILT("ernie", "Ernie", topt_hf_read_ernie, NULL, encoder),
    BUILT("megatron-bert", "MegatronBert", topt_hf_read_megatron_bert, NULL, encoder),
    BUILT("roberta-prelayernorm", "RobertaPreLayerNorm", topt_hf_read_roberta_pre, NULL, encoder),
    BUILT("xlm-roberta-xl", "XLMRobertaXL", topt_hf_read_roberta_xl, NULL, encoder),
    BUILT("data2vec-text", "Data2VecText", topt_hf_read_roberta, NULL, encoder),
    BUILT("roberta", "Roberta", topt_hf_read_roberta, NULL, encoder),
    BUILT("xlm-roberta", "XLMRoberta", topt_hf_read_roberta, NULL, encoder),
    BUILT("camembert", "Camembert", topt_hf_read_roberta, NULL, encoder),
    BUILT("mpnet", "MPNet", topt_hf_read_mpnet, NULL, encoder),
    BUILT("electra", "Electra", topt_hf_read_electra, NULL, without_pooler),
    BUILT("deberta-v2", "DebertaV2", topt_hf_read_deberta_v2, NULL, without_pooler),
    BUILT("deberta", "Deberta", topt_hf_read_deberta, NULL, without_pooler),
    BUILT("xlnet", "XLNet", topt_hf_read_xlnet, NULL, permuted),
    BUILT("dpr", "DPR", topt_hf_read_dpr, NULL, encoders_of_pairs),
    BUILT("bert-generation", "BertGeneration", topt_hf_read_bert_generation, NULL, both_ways),
    BUILT("tapas", "Tapas", topt_hf_read_tapas, NULL, tables),
    BUILT("roformer", "RoFormer", topt_hf_read_roformer, NULL, without_pooler),
    BUILT("ibert", "IBert", topt_hf_read_roberta, NULL, encoder),
    BUILT("jina_embeddings_v3", "JinaEmbeddingsV3", topt_hf_read_jina3, NULL, encoder),
    BUILT("nystromformer", "Nystromformer", topt_hf_read_nystromformer, NULL, without_pooler),
    BUILT("mra", "Mra", topt_hf_read_mra, NULL, without_pooler),
    BUILT("yoso", "Yoso", topt_hf_read_yoso, NULL, without_pooler),
    BUILT("layoutlmv3", "LayoutLMv3", topt_hf_read_layoutlmv3, NULL, pages),
    BUILT("bros", "Bros", topt_hf_read_bros, NULL, pages),
    BUILT("xlm", "XLM", topt_hf_read_xlm, NULL, words_alone),
    BUILT("flaubert", "Flaubert", topt_hf_read_xlm, NULL, words_alone),
    BUILT("modernbert", "ModernBert", topt_hf_read_modernbert, NULL, without_pooler),
    BUILT("esm", "Esm", topt_hf_read_esm, NULL, encoder),
    BUILT("nomic_bert", "NomicBert", topt_hf_read_nomic_bert, NULL, encoder),
    BUILT("eurobert", "EuroBert", topt_hf_read_eurobert, NULL, without_pooler),
    BUILT("bart", "Bart", topt_hf_read_bart, topt_hf_build_seq2seq, translation),
    BUILT("plbart", "PLBart", topt_hf_read_bart, topt_hf_build_seq2seq, translation),
    BUILT("mvp", "Mvp", topt_hf_read_bart, topt_hf_build_seq2seq, translation),
    BUILT("blenderbot", "Blenderbot", topt_hf_read_blenderbot, topt_hf_build_seq2seq, translation),
    BUILT("blenderbot-small", "BlenderbotSmall", topt_hf_read_blenderbot_small,
         topt_hf_build_seq2seq, translation),
    BUILT("mbart", "MBart", topt_hf_read_mbart, topt_hf_build_seq2seq, translation),
    BUILT("marian", "Marian", topt_hf_read_marian, topt_hf_build_seq2seq, translation),
    BUILT("pegasus", "Pegasus", topt_hf_read_pegasus, topt_hf_build_seq2seq, translation),
    BUILT("m2m_100", "M2M100", topt_hf_read_m2m_100, topt_hf_build_seq2seq, translation),
    BUILT("resnet", "ResNet", topt_hf_read_resnet, topt_hf_build_resnet, images),
    BUILT("convnext", "ConvNext", topt_hf_read_convnext, topt_hf_build_convnext, images),
    BUILT("convnextv2", "ConvNextV2", topt_hf_read_convnextv2, topt_hf_build_convnext, images),
    BUILT("swin", "Swin", topt_hf_read_swin, topt_hf_build_swin, images),
    BUILT("mobilenet_v1", "MobileNetV1", topt_hf_read_mobilenet_v1, topt_hf_build_mobile, images),
    BUILT("mobilenet_v2", "MobileNetV2", topt_hf_read_mobilenet_v2, topt_hf_build_mobile, images),
    BUILT("efficientnet", "EfficientNet", topt_hf_read_efficientnet, topt_hf_build_mobile, images),
    BUILT("regnet", "RegNet", topt_hf_read_regnet, topt_hf_build_regnet, images),
    BUILT("segformer", "Segformer", topt_hf_read_segformer, topt_hf_build_segformer, pixels),
    BUILT("vit_mae", "ViTMAE", topt_hf_read_vit_bare, topt_hf_build_vision, images),
    BUILT("vit_msn", "ViTMSN", topt_hf_read_vit_bare, topt_hf_build_vision, images),
    BUILT("beit", "Beit", topt_hf_read_beit, topt_hf_build_vision, images),
    BUILT("data2vec-vision", "Data2VecVision", topt_hf_read_beit, topt_hf_build_vision, images),
    BUILT("dinov3_vit", "DINOv3ViT", topt_hf_read_dinov3, topt_hf_build_vision, images),
    BUILT("dinov2_with_registers", "Dinov2WithRegisters", topt_hf_read_dinov2_registers,
         topt_hf_build_vision, images),
    BUILT("dinov2", "Dinov2", topt_hf_read_dinov2, topt_hf_build_vision, images),
    BUILT("deit", "DeiT", topt_hf_read_deit, topt_hf_build_vision, images),
    BUILT("clip_vision_model", "CLIPVision", topt_hf_read_tower_alone, topt_hf_build_tower, towers),
    BUILT("siglip_vision_model", "SiglipVision", topt_hf_read_tower_alone, topt_hf_build_tower,
         towers),
    BUILT("siglip2_vision_model", "Siglip2Vision", topt_hf_read_tower_alone, topt_hf_build_tower,
         towers),
    BUILT("pixtral", "PixtralVision", topt_hf_read_tower_alone, topt_hf_build_tower, towers),
    BUILT("internvl_vision", "InternVLVision", topt_hf_read_tower_alone, topt_hf_build_tower,
         towers),
    BUILT("idefics3_vision", "Idefics3Vision", topt_hf_read_tower_alone, topt_hf_build_tower,
         towers),
    BUILT("smolvlm_vision", "SmolVLMVision", topt_hf_read_tower_alone, topt_hf_build_tower, towers),
    BUILT("metaclip_2_vision_model", "MetaClip2Vision", topt_hf_read_tower_alone,
         topt_hf_build_tower, towers),
    BUILT("metaclip_2_text_model", "MetaClip2", topt_hf_read_clip_text, topt_hf_build_pair, pairs),
    BUILT("siglip2_text_model", "Siglip2", topt_hf_read_siglip_text, topt_hf_build_pair, pairs),
    BUILT("clip_text_model", "CLIP", topt_hf_read_clip_text, topt_hf_build_pair, pairs),
    BUILT("siglip_text_model", "Siglip", topt_hf_read_siglip_text, topt_hf_build_pair, pairs),
    {0},
};
/* clang-format on */

const struct hf_family *topt_hf_family(const char *type)
{
    for (const struct hf_family *f = topt_hf_families; f->model_type; f++)
        if (!strcmp(f->model_type, type))
            return f;
    return NULL;
}

const struct hf_family *topt_hf_family_of_text(const char *type)
{
    static const char *const ends[] = {"_text", "_text_model", NULL};
    const struct hf_family *f = NULL;
    char text[100];
    for (int i = 0; ends[i] && !f; i++) {
        snprintf(text, sizeof text, "%.60s%s", type, ends[i]);
        f = topt_hf_family(text);
    }
    return f;
}
