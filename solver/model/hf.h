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
    double rope_theta; /* 0: no rotary embedding */
    int64_t rope_dim;  /* numbers of a head that are rotated */
    int head_norms;    /* of queries and keys */
    /* mixture of experts; 0 experts: none */
    int64_t experts, top_k, expert_inner, shared_inner, dense_layers;
    int unnormalized, shared_gate;
    double capacity;
    /* head */
    int tied, head_bias, head_transform, no_final_norm;
    double logit_cap; /* tanh(x / cap) cap; 0: none */
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

/* A family: what its configs call themselves, the function that reads one, or what of a known
 * family no operator does. */
struct hf_family {
    const char *model_type, *architecture;
    int (*read)(const json_t *doc, struct hf_arch *ret, struct topt_error *err);
    const char *missing;
};
extern const struct hf_family topt_hf_families[]; /* ends with an empty one */

struct topt_model *topt_hf_build_arch(const struct hf_arch *a, const char *name,
                                      const struct topt_import_options *o,
                                      struct topt_error *err) TOPT_MUST_CHECK;

#endif
