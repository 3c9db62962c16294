/* hf_arch.h - what a config of Hugging Face says of a transformer.  Private to model/.
 *
 * A reader turns the config of its family into 'struct hf_arch', which says everything
 * that transformers of one stack of blocks differ in; one builder (hf_build.c) makes
 * the operators. */
#ifndef TOPT_HF_ARCH_H
#define TOPT_HF_ARCH_H

#include "topt_model.h"

/* Where a block's norms are: before attention and feed-forward, after the sums, before
 * and after, or before with both on the same input. */
enum hf_norms { HF_PRE, HF_POST, HF_SANDWICH, HF_PARALLEL };

/* Limits of what a config may say. */
enum {
    HF_MAX_LAYERS = 1024,
    HF_MAX_WIDTH = 1 << 20,
    HF_MAX_HEADS = 1 << 16,
    HF_MAX_VOCAB = 1 << 26,
    HF_MAX_CONTEXT = 1 << 24,
    HF_MAX_EXPERTS = 1 << 16,
};

/* What a layer is beside the others. */
enum {
    HF_LOCAL = 1,    /* it sees a window or chunk of the keys only */
    HF_UNTURNED = 2, /* queries and keys know no positions */
    HF_DENSE = 4,    /* no experts, where there are some */
};

/* What stands on top of a stack: logits of the vocabulary, or classes of the first
 * position by way of a linear map with an activation. */
enum hf_head { HF_LANGUAGE, HF_POOLED_TANH, HF_POOLED_RELU };

struct hf_arch {
    int64_t width, layers, heads, kv_heads, head_dim, inner, vocab, context;
    const char *context_key;
    int64_t usual_seq; /* where nobody says; 0: the context, at most the default */
    uint8_t layer[HF_MAX_LAYERS];
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
    /* attention; of 'rope' what rotary embedding takes, rope_theta 0: there is none */
    struct topt_attrs rope,
        local_rope;            /* the latter of local layers, where it is another */
    double rope_share;         /* of a head that is turned; 0: all */
    int head_norms;            /* of queries and keys, before they are turned */
    int head_norms_after;      /* the same after that, with nothing trained */
    int no_key_bias;           /* where the other two have one */
    double score_factor;       /* 0: one over the root of the width of a head */
    int score_by_layer;        /* layer i over i + 1 more */
    double score_cap;          /* 0: none */
    int64_t window, chunk;     /* keys that a query of a local layer sees; 0: all */
    int64_t buckets, distance; /* of relative positions; 0: none */
    /* layers that are not local, where their heads are of another size; 0: they are
     * not */
    int64_t full_head_dim, full_kv_heads;
    int full_keys_are_values; /* one projection makes both */
    int value_norms;          /* with nothing trained */
    /* latent attention: ranks of what queries and of what keys and values are made; 0:
     * none */
    int64_t query_rank, latent_rank, plain_dim, value_dim;
    int latent_bias; /* of what leads into the ranks, and of the last projection */
    /* mixture of experts; 0 experts: none */
    int64_t experts, top_k, expert_inner, shared_inner;
    int unnormalized, sigmoid, corrected, shared_gate;
    int experts_beside; /* they and the dense feed-forward read the block's input, each by a
                           norm of its own, and their norms are added up */
    int weigh_input;    /* weights multiply what experts read, not what they make */
    int64_t groups, top_groups;
    double capacity, route_factor;
    /* head */
    enum hf_head head;
    int tied, head_bias, head_transform, no_final_norm;
    double head_factor; /* of what the head reads; 0: 1 */
    double logit_cap;   /* tanh(x / cap) cap; 0: none */
    /* towers */
    int64_t channels, image, patch, classes;                      /* of images */
    int64_t source, encoder_layers, encoder_inner, encoder_heads; /* of sound, of text */
    /* Above so many positions something is computed otherwise, for which there is no
     * operator: NULL: that is not so. */
    const char *inexact_why;
    int64_t inexact_above;
    /* What is left out, in words: "; " between. */
    char note[400];
};

/* Appends operators; after the first failure it does nothing. */
struct hf_builder {
    struct topt_model *m;
    const struct hf_arch *a;
    const char *prefix; /* of names: "h3." */
    int64_t layer;
    int relative; /* tensor of the table of relative positions, or -1 */
    int encoded;  /* what the encoder made, in a decoder */
    int failed;
    struct topt_error *err;
};

/* A family: what its configs call themselves, the functions that read one and that
 * make the operators (NULL: of one stack over tokens), or what of a known family no
 * operator does.  Rows of one model_type differ in the architecture; the first is what
 * a config means that says none. */
struct hf_family {
    const char *model_type, *architecture;
    int (*read)(const json_t *doc, struct hf_arch *ret, struct topt_error *err);
    void (*build)(struct hf_builder *b);
    enum hf_head head;
    const char *missing;
};

typedef int topt_hf_reader(const json_t *doc, struct hf_arch *ret,
                           struct topt_error *err);

/* A whole number of the config and where it goes. */
struct hf_size {
    const char *key;
    size_t offset;
    int64_t max;
};
#define HF_SIZE(key, field, max)                                                         \
    {                                                                                    \
        key, offsetof(struct hf_arch, field), max                                        \
    }

#endif
