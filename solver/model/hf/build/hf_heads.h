/* hf_heads.h - what ends a model that a Hugging Face config describes.  Private to
 * model/. */
#ifndef TOPT_HF_HEADS_H
#define TOPT_HF_HEADS_H

#include "hf_arch.h"

/* What the config's architecture ends with, and the loss; 'table' is the tensor of a tied
 * head's or -1. */
void topt_hf_head(struct hf_builder *b, int x, int table);
/* Logits of the vocabulary and their loss, of a tensor after its norm. */
void topt_hf_language_head(struct hf_builder *b, int x, int table);

/* Classes from a tensor of one position, and the loss. */
void topt_hf_classifier(struct hf_builder *b, int x);

#endif
