/* hf_read_renamed.h - readers of decoders whose configs name in their own way what others say
 * too.  Private to model/. */
#ifndef TOPT_HF_READ_RENAMED_H
#define TOPT_HF_READ_RENAMED_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_kimi_linear, topt_hf_read_longcat, topt_hf_read_mimo_v2,
    topt_hf_read_minimax_m3, topt_hf_read_step3, topt_hf_read_step3p5;
/* Readers of masked diffusion language models, of experts beside a gated shared expert, and of attention to
 * blocks of keys. */
topt_hf_reader topt_hf_read_llada, topt_hf_read_dream, topt_hf_read_sdar,
    topt_hf_read_sdar_moe, topt_hf_read_llada2, topt_hf_read_klear,
    topt_hf_read_phi3small;
/* Of an encoder and a decoder, each a Gemma 2. */
topt_hf_reader topt_hf_read_t5gemma;

#endif
