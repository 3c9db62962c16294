/* hf_read_text_encoders.h - readers of BERT's relatives, and of models from text to text
 * that are not T5's.  Private to model/. */
#ifndef TOPT_HF_READ_TEXT_ENCODERS_H
#define TOPT_HF_READ_TEXT_ENCODERS_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_dpr, topt_hf_read_bert_generation, topt_hf_read_tapas,
    topt_hf_read_roformer, topt_hf_read_jina3, topt_hf_read_nystromformer,
    topt_hf_read_mra, topt_hf_read_yoso, topt_hf_read_layoutlmv3, topt_hf_read_bros,
    topt_hf_read_xlm, topt_hf_read_xlnet, topt_hf_read_deberta,
    topt_hf_read_modernbert_decoder;
topt_hf_reader topt_hf_read_roberta_pre, topt_hf_read_roberta_xl,
    topt_hf_read_megatron_bert, topt_hf_read_ernie, topt_hf_read_albert,
    topt_hf_read_longformer, topt_hf_read_layoutlm, topt_hf_read_big_bird,
    topt_hf_read_blenderbot, topt_hf_read_blenderbot_small;
topt_hf_reader topt_hf_read_roberta, topt_hf_read_mpnet, topt_hf_read_electra,
    topt_hf_read_deberta_v2, topt_hf_read_modernbert, topt_hf_read_esm,
    topt_hf_read_nomic_bert, topt_hf_read_eurobert;
topt_hf_reader topt_hf_read_bart, topt_hf_read_mbart, topt_hf_read_marian,
    topt_hf_read_pegasus, topt_hf_read_m2m_100;

#endif
