/* hf_families.c - the families of Hugging Face configs that are read, and by which
 * functions. */
#include "hf_families.h"
#include "hf_read_encoders.h"
#include "hf_read_experts.h"
#include "hf_read_gpt.h"
#include "hf_read_llama.h"
#include "hf_towers.h"

const struct hf_family topt_hf_families[] = {
    {"gpt2", "GPT2LMHeadModel", topt_hf_read_gpt2, NULL, 0, NULL},
    {"opt", "OPTForCausalLM", topt_hf_read_opt, NULL, 0, NULL},
    {"gpt_neox", "GPTNeoXForCausalLM", topt_hf_read_gpt_neox, NULL, 0, NULL},
    {"gptj", "GPTJForCausalLM", topt_hf_read_gptj, NULL, 0, NULL},
    {"phi", "PhiForCausalLM", topt_hf_read_phi, NULL, 0, NULL},
    {"phi3", "Phi3ForCausalLM", topt_hf_read_phi3, NULL, 0, NULL},
    {"llama", "LlamaForCausalLM", topt_hf_read_llama, NULL, 0, NULL},
    {"llama4_text", "Llama4ForCausalLM", topt_hf_read_llama4, NULL, 0, NULL},
    {"mistral", "MistralForCausalLM", topt_hf_read_mistral, NULL, 0, NULL},
    {"mixtral", "MixtralForCausalLM", topt_hf_read_mixtral, NULL, 0, NULL},
    {"qwen2", "Qwen2ForCausalLM", topt_hf_read_qwen2, NULL, 0, NULL},
    {"qwen2_moe", "Qwen2MoeForCausalLM", topt_hf_read_qwen2_moe, NULL, 0, NULL},
    {"qwen3", "Qwen3ForCausalLM", topt_hf_read_qwen3, NULL, 0, NULL},
    {"qwen3_moe", "Qwen3MoeForCausalLM", topt_hf_read_qwen3_moe, NULL, 0, NULL},
    {"starcoder2", "Starcoder2ForCausalLM", topt_hf_read_starcoder2, NULL, 0, NULL},
    {"gemma", "GemmaForCausalLM", topt_hf_read_gemma, NULL, 0, NULL},
    {"gemma2", "Gemma2ForCausalLM", topt_hf_read_gemma2, NULL, 0, NULL},
    {"gemma3_text", "Gemma3ForCausalLM", topt_hf_read_gemma3, NULL, 0, NULL},
    {"gemma4_text", "Gemma4ForCausalLM", topt_hf_read_gemma4, NULL, 0, NULL},
    {"deepseek_v3", "DeepseekV3ForCausalLM", topt_hf_read_deepseek_v3, NULL, 0, NULL},
    {"t5", "T5ForConditionalGeneration", topt_hf_read_t5, topt_hf_build_translation, 0,
     NULL},
    {"mt5", "MT5ForConditionalGeneration", topt_hf_read_mt5, topt_hf_build_translation, 0,
     NULL},
    {"vit", "ViTForImageClassification", topt_hf_read_vit, topt_hf_build_vision, 0, NULL},
    {"whisper", "WhisperForConditionalGeneration", topt_hf_read_whisper,
     topt_hf_build_speech, 0, NULL},
    {"bert", "BertForMaskedLM", topt_hf_read_bert, NULL, 0, NULL},
    {"bert", "BertForSequenceClassification", topt_hf_read_bert, NULL, HF_POOLED_TANH,
     NULL},
    {"distilbert", "DistilBertForMaskedLM", topt_hf_read_distilbert, NULL, 0, NULL},
    {"distilbert", "DistilBertForSequenceClassification", topt_hf_read_distilbert, NULL,
     HF_POOLED_RELU, NULL},
    {0},
};
