/* hf_mixers.h - what stands in a Hugging Face model where others have attention.
 * Private to model/. */
#ifndef TOPT_HF_MIXERS_H
#define TOPT_HF_MIXERS_H

#include "hf_arch.h"

/* The mixer that the builder's config has, of the block's input after its norm; with its
 * last projection. */
int topt_hf_mix(struct hf_builder *b, int x);

#endif
