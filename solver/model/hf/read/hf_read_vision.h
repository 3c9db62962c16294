/* hf_read_vision.h - readers of towers that see images beside a Hugging Face language
 * model.  Private to model/. */
#ifndef TOPT_HF_READ_VISION_H
#define TOPT_HF_READ_VISION_H

#include "hf_tower.h"

/* Is there a reader of this composite's tower? */
int topt_hf_has_images(const json_t *doc);

/* The tower of a composite, and its projection to 'width' numbers. */
int topt_hf_read_tower(const json_t *doc, int64_t width, struct hf_tower *ret,
                       struct topt_error *err) TOPT_MUST_CHECK;

/* Texts that are compared with images. */
topt_hf_reader topt_hf_read_clip_text, topt_hf_read_siglip_text, topt_hf_read_tower_alone;

/* What the class of the tower of such a config calls itself; NULL: none is known. */
const char *topt_hf_tower_type(const json_t *doc);

#endif
