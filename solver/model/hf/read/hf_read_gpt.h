/* hf_read_gpt.h - readers of decoders with learned positions, and of those whose
 * attention and feed-forward stand side by side.  Private to model/. */
#ifndef TOPT_HF_READ_GPT_H
#define TOPT_HF_READ_GPT_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_openai_gpt, topt_hf_read_xglm, topt_hf_read_biogpt;
topt_hf_reader topt_hf_read_gpt2, topt_hf_read_ctrl, topt_hf_read_opt,
    topt_hf_read_gpt_neox, topt_hf_read_gptj, topt_hf_read_phi;

#endif
