/* hf_parts.h - what the builders of Hugging Face models are made of.  Private to model/. */
#ifndef TOPT_HF_PARTS_H
#define TOPT_HF_PARTS_H

#include "hf_arch.h"

/* Operators added from here on belong to the next layer, a child of an outermost nn.ModuleList
 * in the model's own code; or stand outside of layers. */
void topt_hf_next_layer(struct hf_builder *b);
void topt_hf_no_layer(struct hf_builder *b);

/* Each returns the output's tensor, -1 after a failure; negative inputs are left out. */
int topt_hf_add(struct hf_builder *b, const char *kind, int x, int y,
                const struct topt_attrs *attrs, const char *fmt, ...) TOPT_PRINTF(6, 7);
int topt_hf_linear(struct hf_builder *b, int x, int64_t features, int64_t unit, int bias,
                   const char *name);
int topt_hf_norm(struct hf_builder *b, int x, const char *name);
int topt_hf_unary(struct hf_builder *b, int x, int activation, const char *name);
int topt_hf_scale(struct hf_builder *b, int x, double factor, const char *name);
/* A residual and what is added to it. */
int topt_hf_sum(struct hf_builder *b, int x, int y, const char *name);

/* An operator of up to four inputs. */
int topt_hf_add_all(struct hf_builder *b, const char *kind, const int input[4],
                    const struct topt_attrs *attrs, const char *name);

/* Heads of queries, keys and values into one attention; kr and table may be -1. */
int topt_hf_attend(struct hf_builder *b, const int input[4],
                   const struct topt_attrs *attrs);

/* So many parameters of the model, of none of its features, that nothing here reads. */
int topt_hf_unread(struct hf_builder *b, int x, int64_t n, const char *name);

/* The images that the model reads, as high as wide. */
int topt_hf_input_image(struct hf_builder *b);

/* A tensor [samples, positions, features] as images again, 'side' x 'side' each. */
int topt_hf_as_image(struct hf_builder *b, int x, int64_t side, const char *name);

/* A square window with the padding that keeps the image's extents where the stride is 1. */
struct topt_attrs topt_hf_same_window(int64_t kernel, int64_t stride);

/* The convolution that makes a token of each patch of an image, of the model's width. */
struct topt_attrs topt_hf_patches(const struct hf_builder *b, int64_t patch);

/* The list that begins with 's'. */
void topt_hf_free_shared(struct hf_shared *s);

#endif
