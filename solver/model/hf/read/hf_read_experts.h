/* hf_read_experts.h - readers of decoders with mixtures of experts.  Private to
 * model/. */
#ifndef TOPT_HF_READ_EXPERTS_H
#define TOPT_HF_READ_EXPERTS_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_mixtral, topt_hf_read_qwen2_moe, topt_hf_read_qwen3_moe,
    topt_hf_read_deepseek_v3, topt_hf_read_deepseek_v4, topt_hf_read_youtu,
    topt_hf_read_deepseek_v2, topt_hf_read_mistral4, topt_hf_read_glm4_moe_lite,
    topt_hf_read_llama4;

#endif
