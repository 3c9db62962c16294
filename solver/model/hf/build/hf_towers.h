/* hf_towers.h - models of Hugging Face configs that are no single stack over tokens.
 * Private to model/. */
#ifndef TOPT_HF_TOWERS_H
#define TOPT_HF_TOWERS_H

#include "hf_arch.h"

/* Images to classes; sound to text; text to text. */
void topt_hf_build_vision(struct hf_builder *b);
void topt_hf_build_speech(struct hf_builder *b);
void topt_hf_build_translation(struct hf_builder *b);
void topt_hf_build_seq2seq(struct hf_builder *b);
/* The same where the encoder is a->encoder, of other sizes. */
void topt_hf_build_two_decoders(struct hf_builder *b);

/* A block that also attends to b->encoded, with norms after the sums. */
int topt_hf_decoder_block_post(struct hf_builder *b, int x);

#endif
