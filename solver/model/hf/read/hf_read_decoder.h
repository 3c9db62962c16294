/* hf_read_decoder.h - the reader of decoders that differ in what a row can say.  Private
 * to model/. */
#ifndef TOPT_HF_READ_DECODER_H
#define TOPT_HF_READ_DECODER_H

#include "hf_arch.h"

/* Of any family whose traits say what it is; 'a' has them. */
topt_hf_reader topt_hf_read_dbrx, topt_hf_read_hyperclovax, topt_hf_read_decoder;
/* With details of their own. */
topt_hf_reader topt_hf_read_falcon, topt_hf_read_bloom, topt_hf_read_mpt,
    topt_hf_read_gpt_neo, topt_hf_read_gpt_bigcode, topt_hf_read_chatglm,
    topt_hf_read_qwen, topt_hf_read_laguna, topt_hf_read_diffllama, topt_hf_read_bitnet;

#endif
