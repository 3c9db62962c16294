/* hf_hear.h - encoders of sound beside a language model, and what makes tokens of the
 * text's width of what they hear.  Private to model/. */
#ifndef TOPT_HF_HEAR_H
#define TOPT_HF_HEAR_H

#include "hf_tower.h"

/* Does the config have a part that hears, of a type that is known? */
int topt_hf_hears(const json_t *doc);

/* That part, of the config of all towers; 'width' is the text's. */
int topt_hf_read_hearing(const json_t *doc, int64_t width, struct hf_tower *ret,
                         struct topt_error *err);

/* Tokens of half a minute of sound among those of the text 'x'. */
int topt_hf_hear(struct hf_builder *b, int x);

#endif
