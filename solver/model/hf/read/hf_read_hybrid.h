/* hf_read_hybrid.h - readers of decoders in which some layers, or all, have no
 * attention.  Private to model/. */
#ifndef TOPT_HF_READ_HYBRID_H
#define TOPT_HF_READ_HYBRID_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_mamba, topt_hf_read_falcon_mamba, topt_hf_read_mamba2,
    topt_hf_read_hybrid_mamba2, topt_hf_read_nemotron_h, topt_hf_read_falcon_h1,
    topt_hf_read_jamba, topt_hf_read_olmo_hybrid, topt_hf_read_rwkv, topt_hf_read_rwkv7,
    topt_hf_read_qwen3_next, topt_hf_read_bailing_linear, topt_hf_read_minimax,
    topt_hf_read_lfm2, topt_hf_read_xlstm, topt_hf_read_plamo2, topt_hf_read_zamba2;

#endif
