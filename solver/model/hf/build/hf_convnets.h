/* hf_convnets.h - networks of convolutions channel by channel, and of attention over ever
 * fewer pixels.  Private to model/. */
#ifndef TOPT_HF_CONVNETS_H
#define TOPT_HF_CONVNETS_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_mobilenet_v1, topt_hf_read_mobilenet_v2,
    topt_hf_read_efficientnet, topt_hf_read_regnet, topt_hf_read_segformer;
void topt_hf_build_mobile(struct hf_builder *b);
void topt_hf_build_regnet(struct hf_builder *b);
void topt_hf_build_segformer(struct hf_builder *b);

#endif
