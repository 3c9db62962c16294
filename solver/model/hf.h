/* hf.h - what the readers of Hugging Face configs and their builder share.  Private to model/.
 *
 * A reader turns the config of its family into 'struct hf_arch', which says everything that
 * transformers of one stack of blocks differ in; one builder (hf_build.c) makes the operators. */
#ifndef TOPT_HF_H
#define TOPT_HF_H

#include "topt_model.h"

/* Where a block's norms are: before attention and feed-forward, after the sums, before and
 * after, or before with both on the same input. */
enum hf_norms { HF_PRE, HF_POST, HF_SANDWICH, HF_PARALLEL };

struct hf_arch {
    int64_t width, layers, heads, kv_heads, head_dim, inner, vocab, context;
    const char *context_key;
    enum hf_norms norms;
    int activation, gated, rms;
    int shared_norm; /* parallel: attention and feed-forward read one norm */
    int qkv_bias, out_bias, mlp_bias, bidirectional;
    double eps, init_std;
    /* embedding */
    int64_t positions, types; /* rows of learned tables; 0: none */
    int64_t embed_width;      /* where it is not the width */
    int embed_norm;
    double embed_factor; /* 0: 1 */
    /* attention */
    double rope_theta;   /* 0: no rotary embedding */
    int64_t rope_dim;    /* numbers of a head that are rotated */
    int head_norms;      /* of queries and keys */
    int no_key_bias;     /* where the other two have one */
    double score_factor; /* 0: one over the root of the width of a head */
    int64_t window;      /* keys that a query sees; 0: all */
    int64_t full_every;  /* each so-and-so-many-th layer has no window; 0: none */
    double local_theta;  /* rotary base of layers with a window, where it is another */
    /* latent attention: ranks of what queries and of what keys and values are made; 0: none */
    int64_t query_rank, latent_rank, plain_dim, value_dim;
    /* mixture of experts; 0 experts: none */
    int64_t experts, top_k, expert_inner, shared_inner, dense_layers;
    int unnormalized, router_bias, shared_gate;
    double capacity;
    /* head */
    int tied, head_bias, head_transform, no_final_norm;
    double logit_cap; /* tanh(x / cap) cap; 0: none */
    /* towers */
    int64_t channels, image, patch, classes;                      /* of images */
    int64_t source, encoder_layers, encoder_inner, encoder_heads; /* of sound */
};

/* Limits of what a config may say. */
enum {
    HF_MAX_LAYERS = 1024,
    HF_MAX_WIDTH = 1 << 20,
    HF_MAX_HEADS = 1 << 16,
    HF_MAX_VOCAB = 1 << 26,
    HF_MAX_CONTEXT = 1 << 24,
    HF_MAX_EXPERTS = 1 << 16,
};

/* Appends operators; after the first failure it does nothing. */
struct hf_builder {
    struct topt_model *m;
    const struct hf_arch *a;
    const char *prefix; /* of names: "h3." */
    int64_t layer;
    int failed;
    struct topt_error *err;
};

/* A family: what its configs call themselves, the functions that read one and that make the
 * operators (NULL: of one stack over tokens), or what of a known family no operator does. */
struct hf_family {
    const char *model_type, *architecture;
    int (*read)(const json_t *doc, struct hf_arch *ret, struct topt_error *err);
    void (*build)(struct hf_builder *b);
    const char *missing;
};
extern const struct hf_family topt_hf_families[]; /* ends with an empty one */

struct topt_model *topt_hf_build_arch(const struct hf_arch *a, const char *name,
                                      void (*build)(struct hf_builder *b),
                                      const struct topt_import_options *o,
                                      struct topt_error *err) TOPT_MUST_CHECK;

/* Parts of builders.  Each returns the output's tensor, -1 after a failure; negative inputs are
 * left out. */
int topt_hf_add(struct hf_builder *b, const char *kind, int x, int y,
                const struct topt_attrs *attrs, const char *fmt, ...) TOPT_PRINTF(6, 7);
int topt_hf_linear(struct hf_builder *b, int x, int64_t features, int64_t unit, int bias,
                   const char *name);
int topt_hf_norm(struct hf_builder *b, int x, const char *name);
/* Self-attention with its last projection; 'layer' is the builder's. */
int topt_hf_attention(struct hf_builder *b, int x);
int topt_hf_mlp(struct hf_builder *b, int x);
int topt_hf_block(struct hf_builder *b, int x);
/* Logits of the vocabulary and the loss; 'table' is the tied one's tensor or -1. */
void topt_hf_head(struct hf_builder *b, int x, int table);

/* Images to classes; sound to text. */
void topt_hf_build_vision(struct hf_builder *b);
void topt_hf_build_speech(struct hf_builder *b);

#endif
