/* hf_build.h - the operators of a transformer that a Hugging Face config describes.
 * Private to model/. */
#ifndef TOPT_HF_BUILD_H
#define TOPT_HF_BUILD_H

#include "hf_arch.h"
struct topt_model *topt_hf_build_arch(const struct hf_arch *a, const char *name,
                                      void (*build)(struct hf_builder *b),
                                      const struct topt_import_options *o,
                                      struct topt_error *err) TOPT_MUST_CHECK;

/* Self-attention with its last projection; 'layer' is the builder's. */
int topt_hf_attention(struct hf_builder *b, int x);
int topt_hf_mlp(struct hf_builder *b, int x);
int topt_hf_block(struct hf_builder *b, int x);

/* 'n' blocks after each other, named with the prefix and their number. */
int topt_hf_stack(struct hf_builder *b, int x, int64_t n, const char *prefix,
                  int (*block)(struct hf_builder *b, int x));

#endif
