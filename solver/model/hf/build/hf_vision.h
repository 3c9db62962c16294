/* hf_vision.h - the vision tower of a Hugging Face language model.  Private
 * to model/. */
#ifndef TOPT_HF_VISION_H
#define TOPT_HF_VISION_H

#include "hf_tower.h"

/* Text and image side by side, each as one row of numbers that are compared. */
void topt_hf_build_pair(struct hf_builder *b);

/* Its tokens among those of a text, whose embeddings are 'x'. */
int topt_hf_add_image_tokens(struct hf_builder *b, int x);

/* A tower alone. */
void topt_hf_build_tower(struct hf_builder *b);

#endif
