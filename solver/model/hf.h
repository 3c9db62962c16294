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

/* What stands on top of a stack: logits of the vocabulary, or classes of the first position by
 * way of a linear map with an activation. */
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
    /* layers that are not local, where their heads are of another size; 0: they are not */
    int64_t full_head_dim, full_kv_heads;
    int full_keys_are_values; /* one projection makes both */
    int value_norms;          /* with nothing trained */
    /* latent attention: ranks of what queries and of what keys and values are made; 0: none */
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
    /* Above so many positions something is computed otherwise, for which there is no operator:
     * NULL: that is not so. */
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

/* A family: what its configs call themselves, the functions that read one and that make the
 * operators (NULL: of one stack over tokens), or what of a known family no operator does.  Rows
 * of one model_type differ in the architecture; the first is what a config means that says
 * none. */
struct hf_family {
    const char *model_type, *architecture;
    int (*read)(const json_t *doc, struct hf_arch *ret, struct topt_error *err);
    void (*build)(struct hf_builder *b);
    enum hf_head head;
    const char *missing;
};
extern const struct hf_family topt_hf_families[]; /* ends with an empty one */

/* ---- readers: hf_read_*.c, a file a kind ------------------------------------------------ */

typedef int topt_hf_reader(const json_t *doc, struct hf_arch *ret,
                           struct topt_error *err);
topt_hf_reader topt_hf_read_gpt2, topt_hf_read_opt, topt_hf_read_gpt_neox,
    topt_hf_read_gptj, topt_hf_read_phi;
topt_hf_reader topt_hf_read_llama, topt_hf_read_mistral, topt_hf_read_qwen2,
    topt_hf_read_qwen3, topt_hf_read_phi3, topt_hf_read_starcoder2;
topt_hf_reader topt_hf_read_gemma, topt_hf_read_gemma2, topt_hf_read_gemma3,
    topt_hf_read_gemma4;
topt_hf_reader topt_hf_read_mixtral, topt_hf_read_qwen2_moe, topt_hf_read_qwen3_moe,
    topt_hf_read_deepseek_v3, topt_hf_read_llama4;
topt_hf_reader topt_hf_read_bert, topt_hf_read_distilbert, topt_hf_read_vit,
    topt_hf_read_whisper, topt_hf_read_t5, topt_hf_read_mt5;

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

/* Whole numbers of at least 1 that must be there; that may be left out.  The tables end with an
 * empty one. */
int topt_hf_sizes(const json_t *doc, const struct hf_size *s, struct hf_arch *a,
                  struct topt_error *err);
int topt_hf_sizes_or(const json_t *doc, const struct hf_size *s, struct hf_arch *a,
                     struct topt_error *err);
/* What configs of decoders and encoders call their sizes today. */
extern const struct hf_size topt_hf_usual_sizes[];
/* A flag that the operators have nothing for must be as 'want'. */
int topt_hf_refuse_flag(const json_t *doc, const char *key, int want, const char *why,
                        struct topt_error *err);
int topt_hf_divides(const char *what, int64_t n, const char *by, int64_t d,
                    struct topt_error *err);
int topt_hf_activation(const json_t *doc, const char *key, int *ret,
                       struct topt_error *err);
int topt_hf_activation_named(const char *key, const char *name, int *ret,
                             struct topt_error *err);
/* Without its own key a head is its share of the width. */
int topt_hf_set_heads(struct hf_arch *a, struct topt_error *err);
/* One word of the config must be this one. */
int topt_hf_expect(const json_t *doc, const char *key, const char *want,
                   struct topt_error *err);
/* "sliding_window", keys that queries of local layers see; null: all. */
int topt_hf_window(const json_t *doc, struct hf_arch *a, struct topt_error *err);
/* Which layers are local: "layer_types" where the config has it, else those from 'first' on but
 * every 'full_every'-th (0: none is left out). */
int topt_hf_local_layers(const json_t *doc, int64_t first, int64_t full_every,
                         struct hf_arch *a, struct topt_error *err);
/* Numbers of classes from their names. */
void topt_hf_classes(const json_t *doc, struct hf_arch *a);
/* No token is dropped there; here each expert has slots for a quarter more than its share. */
void topt_hf_give_slots(struct hf_arch *a);
/* Say of the model what is left out. */
void topt_hf_note(struct hf_arch *a, const char *what);
/* Llama and its many relatives; 'a' holds what differs in what may be left out. */
int topt_hf_like_llama(const json_t *doc, struct hf_arch *a, struct topt_error *err);

/* hf_rope.c: rotary angles and how they are scaled, after the heads are known; of each head a
 * share is turned, which 'key' may say. */
int topt_hf_rope(const json_t *doc, const char *key, double share, struct hf_arch *a,
                 struct topt_error *err);
/* What YaRN multiplies with at this factor (0.1 m ln(factor) + 1). */
double topt_hf_yarn_scale(double factor, double m);

/* ---- builders ---------------------------------------------------------------------------- */

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
/* Heads of queries, keys and values into one attention; kr and table may be -1. */
int topt_hf_attend(struct hf_builder *b, const int input[4],
                   const struct topt_attrs *attrs, const char *name);
/* 'n' blocks after each other, named with the prefix and their number. */
int topt_hf_stack(struct hf_builder *b, int x, int64_t n, const char *prefix,
                  int (*block)(struct hf_builder *b, int x));
int topt_hf_scale(struct hf_builder *b, int x, double factor, const char *name);
/* Logits of the vocabulary and the loss; 'table' is the tied one's tensor or -1. */
void topt_hf_head(struct hf_builder *b, int x, int table);

/* Classes from a tensor of one position, and the loss. */
void topt_hf_classifier(struct hf_builder *b, int x);

/* Images to classes; sound to text; text to text. */
void topt_hf_build_vision(struct hf_builder *b);
void topt_hf_build_speech(struct hf_builder *b);
void topt_hf_build_translation(struct hf_builder *b);

#endif
