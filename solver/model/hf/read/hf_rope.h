/* hf_rope.h - rotary angles of Hugging Face configs.  Private to model/. */
#ifndef TOPT_HF_ROPE_H
#define TOPT_HF_ROPE_H

#include "hf_arch.h"

/* hf_rope.c: rotary angles and how they are scaled, after the heads are known; of each
 * head a share is turned, which 'key' may say. */
int topt_hf_rope(const json_t *doc, const char *key, double share, struct hf_arch *a,
                 struct topt_error *err);

/* What YaRN multiplies with at this factor (0.1 m ln(factor) + 1). */
double topt_hf_yarn_scale(double factor, double m);

#endif
