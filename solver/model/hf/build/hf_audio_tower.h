/* hf_audio_tower.h - audio encoders of multimodal language models, and the projectors to the
 * text's width.  Private to model/. */
#ifndef TOPT_HF_AUDIO_TOWER_H
#define TOPT_HF_AUDIO_TOWER_H

#include "hf_tower.h"

/* Does the config have an audio encoder of a type that is known? */
int topt_hf_has_audio(const json_t *doc);

/* That encoder, of the model's config; 'width' is the text's. */
int topt_hf_read_audio_tower(const json_t *doc, int64_t width, struct hf_tower *ret,
                             struct topt_error *err);

/* Tokens of half a minute of audio among those of the text 'x'. */
int topt_hf_add_audio_tokens(struct hf_builder *b, int x);

#endif
