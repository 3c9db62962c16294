/* hf_build.h - the operators of a transformer that a Hugging Face config describes.
 * Private to model/. */
#ifndef TOPT_HF_BUILD_H
#define TOPT_HF_BUILD_H

#include "hf_arch.h"
struct topt_model *topt_hf_build_arch(const struct hf_arch *a, const char *name,
                                      void (*build)(struct hf_builder *b),
                                      const struct topt_import_options *o,
                                      struct topt_error *err) TOPT_MUST_CHECK;

/* Parts of builders.  Each returns the output's tensor, -1 after a failure; negative
 * inputs are left out. */
int topt_hf_add(struct hf_builder *b, const char *kind, int x, int y,
                const struct topt_attrs *attrs, const char *fmt, ...) TOPT_PRINTF(6, 7);
int topt_hf_linear(struct hf_builder *b, int x, int64_t features, int64_t unit, int bias,
                   const char *name);
int topt_hf_norm(struct hf_builder *b, int x, const char *name);

/* Self-attention with its last projection; 'layer' is the builder's. */
int topt_hf_attention(struct hf_builder *b, int x);
int topt_hf_mlp(struct hf_builder *b, int x);
int topt_hf_block(struct hf_builder *b, int x);

/* Heads of queries, keys and values into one attention; kr and table may be -1. */
int topt_hf_attend(struct hf_builder *b, const int input[4],
                   const struct topt_attrs *attrs, const char *name);

/* 'n' blocks after each other, named with the prefix and their number. */
int topt_hf_stack(struct hf_builder *b, int x, int64_t n, const char *prefix,
                  int (*block)(struct hf_builder *b, int x));
int topt_hf_unary(struct hf_builder *b, int x, int activation, const char *name);
int topt_hf_scale(struct hf_builder *b, int x, double factor, const char *name);

/* What the config's architecture ends with, and the loss; 'table' is the tensor of a tied
 * head's or -1. */
void topt_hf_head(struct hf_builder *b, int x, int table);

/* Classes from a tensor of one position, and the loss. */
void topt_hf_classifier(struct hf_builder *b, int x);

#endif
