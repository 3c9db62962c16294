/* hf_images.h - networks of stages over ever smaller images.  Private to model/. */
#ifndef TOPT_HF_IMAGES_H
#define TOPT_HF_IMAGES_H

#include "hf_arch.h"

void topt_hf_build_resnet(struct hf_builder *b);
void topt_hf_build_convnext(struct hf_builder *b);
void topt_hf_build_swin(struct hf_builder *b);

#endif
