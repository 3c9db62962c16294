/* hf_read_encoders.h - readers of models with an encoder.  Private to model/. */
#ifndef TOPT_HF_READ_ENCODERS_H
#define TOPT_HF_READ_ENCODERS_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_umt5, topt_hf_read_switch, topt_hf_read_longt5;
topt_hf_reader topt_hf_read_bert, topt_hf_read_distilbert, topt_hf_read_vit,
    topt_hf_read_dinov2, topt_hf_read_deit, topt_hf_read_whisper, topt_hf_read_t5,
    topt_hf_read_mt5;

#endif
