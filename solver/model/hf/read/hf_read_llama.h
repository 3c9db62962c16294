/* hf_read_llama.h - readers of decoders with rotary positions.  Private to model/. */
#ifndef TOPT_HF_READ_LLAMA_H
#define TOPT_HF_READ_LLAMA_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_vaultgemma, topt_hf_read_mllama_text, topt_hf_read_gemma3n;
topt_hf_reader topt_hf_read_llama, topt_hf_read_mistral, topt_hf_read_qwen2,
    topt_hf_read_qwen3, topt_hf_read_phi3, topt_hf_read_starcoder2;
topt_hf_reader topt_hf_read_gemma, topt_hf_read_gemma2, topt_hf_read_gemma3,
    topt_hf_read_gemma4_unified, topt_hf_read_gemma4;

/* Llama and its many relatives; 'a' holds what differs in what may be left out. */
int topt_hf_like_llama(const json_t *doc, struct hf_arch *a, struct topt_error *err);

#endif
