/* hf_read_images.h - readers of networks over images.  Private to model/. */
#ifndef TOPT_HF_READ_IMAGES_H
#define TOPT_HF_READ_IMAGES_H

#include "hf_arch.h"

topt_hf_reader topt_hf_read_resnet, topt_hf_read_convnext, topt_hf_read_convnextv2,
    topt_hf_read_swin;
topt_hf_reader topt_hf_read_vit_bare, topt_hf_read_dinov2_registers, topt_hf_read_beit,
    topt_hf_read_dinov3;

#endif
