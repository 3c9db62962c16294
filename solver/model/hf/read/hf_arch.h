/* hf_arch.h - what a config of Hugging Face says of a transformer.  Private to model/.
 *
 * A reader turns the config of its family into 'struct hf_arch', which says everything
 * that transformers of one stack of blocks differ in; one builder (hf_build.c) makes
 * the operators. */
#ifndef TOPT_HF_ARCH_H
#define TOPT_HF_ARCH_H

#include "topt_model.h"

/* Where a block's norms are: before attention and feed-forward, after the sums, before
 * and after, before with both on the same input, or after each before it is added. */
enum hf_norms { HF_PRE, HF_POST, HF_SANDWICH, HF_PARALLEL, HF_AFTER };

/* Limits of what a config may say. */
enum {
    HF_MAX_LAYERS = 1024,
    HF_MAX_WIDTH = 1 << 20,
    HF_MAX_HEADS = 1 << 16,
    HF_MAX_VOCAB = 1 << 26,
    HF_MAX_CONTEXT = 1 << 24,
    HF_MAX_EXPERTS = 1 << 16,
    HF_MAX_STAGES = 8,
};

/* What a layer is beside the others. */
enum {
    HF_LOCAL = 1,      /* it sees a window or chunk of the keys only */
    HF_UNTURNED = 2,   /* queries and keys know no positions */
    HF_DENSE = 4,      /* no experts, where there are some */
    HF_MIXED = 8,      /* a recurrence or convolution where others have attention */
    HF_BOTH = 16,      /* the same beside attention */
    HF_NO_MIX = 32,    /* neither; the feed-forward is all */
    HF_NO_MLP = 64,    /* no feed-forward */
    HF_NO_INDEX = 128, /* the choice of keys is the layer's before */
    HF_HASHED = 512,   /* which experts a token goes to is not learned */
    HF_CHOSEN = 1024,  /* of its compressed keys some are chosen */
    HF_ACROSS = 256,   /* its keys and values are what a tower made */
    HF_NEAR = 2048,    /* it sees the keys just before alone, where others see more */
    HF_MAP_MIX = 4096, /* one linear map stands in place of attention */
    HF_MAP_MLP = 8192, /* ... of the feed-forward */
};

/* What stands on top of a stack: logits of the vocabulary, or classes: of the first
 * position by way of a linear map with an activation, of the last one, of each, or of
 * each as starts and ends of an answer; or nothing. */
enum hf_head {
    HF_LANGUAGE,
    HF_POOLED_TANH,
    HF_POOLED_RELU,
    HF_POOLED_GELU,
    HF_LAST_CLASS,
    HF_TOKEN_CLASS,
    HF_ANSWER,
    HF_EACH_PIXEL,
    HF_ORIGINAL, /* of each position whether its token is the text's own */
    HF_BARE
};

/* Sinks of local layers alone. */
enum { HF_SINKS_LOCAL = 2 };

/* What a family is, whatever its configs say. */
enum hf_trait {
    HF_T_RMS = 1 << 0,
    HF_T_GATED = 1 << 1,
    HF_T_UNBIASED = 1 << 2,  /* norms by mean and deviation, with a gain alone */
    HF_T_UNTRAINED = 1 << 3, /* norms with nothing trained */
    HF_T_HEADS = 1 << 4,     /* queries and keys have norms by head, one gain for all */
    HF_T_EACH_HEAD = 1 << 5, /* ... gains of each head */
    HF_T_WIDE = 1 << 6,      /* ... over all heads */
    HF_T_PARALLEL = 1 << 7,
    HF_T_SHARED_NORM = 1 << 8,
    HF_T_AFTER = 1 << 9,
    HF_T_SANDWICH = 1 << 10,
    HF_T_QKV_BIAS = 1 << 11,
    HF_T_OUT_BIAS = 1 << 12,
    HF_T_MLP_BIAS = 1 << 13,
    HF_T_BIAS_OF_QKV = 1 << 14, /* attention_bias is not of the last projection */
    HF_T_SINKS = 1 << 15,       /* a score of each head that no key has */
    HF_T_EXPERT_BIAS = 1 << 16, /* of experts and of what chooses them */
    HF_T_GATE = 1 << 17,        /* attention's output is gated */
    HF_T_SIGMOID = 1 << 18,     /* experts' weights */
    HF_T_CORRECTED = 1 << 19,   /* ... and a correction of the choice */
    HF_T_SHARED_GATE = 1 << 20,
    HF_T_EMBED_NORM = 1 << 21,
    HF_T_HEAD_BIAS = 1 << 22,
    HF_T_ALIBI = 1 << 23,        /* scores by distance, with nothing trained */
    HF_T_UNTURNED = 1 << 24,     /* no rotary positions */
    HF_T_POSITIONS = 1 << 25,    /* learned ones */
    HF_T_ALL_EXPERTS = 1 << 26,  /* every layer has them: intermediate_size is theirs */
    HF_T_ROOT_WIDTH = 1 << 27,   /* embeddings times the root of the width */
    HF_T_ONE_KEY = 1 << 28,      /* one key and value for all queries */
    HF_T_DENSE_BESIDE = 1 << 29, /* the dense feed-forward is for all tokens, too */
    HF_T_FIRST_DENSE = 1 << 30,  /* the first layer has no experts where nobody says */
};

/* What mixes positions where attention does not. */
enum hf_mix {
    HF_MAMBA2,
    HF_MAMBA,
    HF_DELTA,
    HF_LIGHTNING,
    HF_SHORT_CONV,
    HF_RWKV4,
    HF_RWKV7,
    HF_KDA, /* of 'ranks' the first, for decays and gates */
    HF_MLSTM,
    HF_PLAMO /* Mamba-2 whose keys and steps are made of what the convolution gives */
};
struct hf_mixer {
    enum hf_mix kind;
    int64_t kernel, chunk;
    int64_t heads, head_dim; /* of what is carried on: values */
    int64_t groups, state;   /* keys: how many, and how wide one is */
    int64_t rank;            /* Mamba: of what the steps are made of */
    /* RWKV: of decays, rates, values, gates; KDA: of decays and gates */
    int64_t ranks[4];
    int bias, out_bias, kernel_bias; /* of projections, the last; of the convolution */
    int norm;                        /* of what comes out, or of Mamba's parts */
    int64_t norm_groups;             /* ... in so many groups, each by itself; 0: one */
    int plain_norms;                 /* with nothing trained */
    double eps;                      /* of norms; 0: the model's */
    double least_step, most_step;    /* Mamba-2: of steps; 0: there is no most */
};

/* A table that is the weights of the same linear map in all layers of a group. */
struct hf_shared {
    int64_t group;
    char name[40];
    int tensor; /* -1: of a norm or bias, which the first layer has */
    struct hf_shared *next;
};

/* Sizes of one layer, where layers differ one by one; 0: as the model's. */
struct hf_layer_sizes {
    int32_t heads, kv_heads, inner;
};

struct hf_builder;
struct hf_arch {
    int64_t width, layers, heads, kv_heads, head_dim, inner, vocab, context;
    const char *context_key;
    int64_t mtp;       /* modules that predict further tokens */
    int64_t usual_seq; /* where nobody says; 0: the context, at most the default */
    unsigned traits;   /* of the family */
    int full_every;    /* where a config does not say which layers have windows */
    uint16_t layer[HF_MAX_LAYERS];
    int sizes_differ; /* layers have these sizes */
    struct hf_layer_sizes sizes[HF_MAX_LAYERS];
    enum hf_norms norms;
    int activation, gated, rms;
    /* In transformers' own code: the activation is made by elementwise kernels; norms and their gains are in f32;
     * attention is matrix products with a softmax in f32 between them. */
    int written, wide_gains, written_scores;
    /* Attention drops none of its weights. */
    int undropped_scores;
    int mlp_gate;    /* what the feed-forward gives is gated by the block's input */
    int curved;      /* two trained numbers bend it */
    int shared_norm; /* parallel: attention and feed-forward read one norm */
    int unbiased_norms, untrained_norms;
    int inner_norms;        /* before the last map of each half of a block, too */
    int pre_where_mixed;    /* layers without attention have norms before each half */
    double residual_factor; /* of what is added; 0: 1 */
    int dropout;            /* ... some is dropped */
    int qkv_bias, out_bias, mlp_bias, bidirectional;
    double eps, init_std;
    /* embedding */
    int64_t positions, types; /* rows of learned tables; 0: none */
    int64_t embed_width;      /* where it is not the width */
    int embed_norm;
    int embed_inside;  /* sums and norm are of the narrow embeddings */
    int no_first_norm; /* the first block begins without one */
    int apart;         /* queries, keys and values are wanted in tensors of their own */
    int gates_apart;   /* ... and what gates a feed-forward network, and what is gated */
    int disentangled;  /* scores by positions too, of tables that layers share */
    int64_t relative_rows; /* of that table */
    int places_projected;  /* ... of places, by a map of each layer's own */
    int64_t more_vocab;    /* tokens that are looked up and not predicted */
    int64_t unused;        /* parameters of a head that no loss reads */
    int64_t layer_unused;  /* of each layer, what costs next to no arithmetic */
    double embed_factor;   /* 0: 1 */
    /* attention; of 'rope' what rotary embedding takes, rope_theta 0: there is none */
    /* the latter of local layers, where it is another */
    struct topt_attrs rope, local_rope;
    double rope_share;    /* of a head that is turned; 0: all */
    int head_norms;       /* of queries and keys, before they are turned */
    int each_head_norms;  /* the same with gains of each head */
    int wide_norms;       /* of all heads at once */
    int head_norms_after; /* by head, after that, with nothing trained */
    /* of each head, HF_SINKS_LOCAL: of local layers' alone; of what attention gives */
    int sinks, gate;
    int head_gates;        /* a number of each head lets it through */
    int no_key_bias;       /* where the other two have one */
    double score_factor;   /* 0: one over the root of the width of a head */
    int score_by_layer;    /* layer i over i + 1 more */
    double score_cap;      /* 0: none */
    double by_distance;    /* scores are less by distance, times this; 0: they are not */
    int64_t window, chunk; /* keys that a query of a local layer sees; 0: all */
    int64_t buckets, distance; /* of relative positions; 0: none */
    int relative_each;         /* ... each layer has a table of its own */
    /* layers that are not local, where their heads are of another size; 0: they are
     * not */
    int64_t full_head_dim, full_heads, full_kv_heads;
    int full_keys_are_values; /* one projection makes both */
    int value_norms;          /* with nothing trained */
    /* numbers that each layer gets of a table of its own, and that table's rows; last
     * layers that take keys and values of one before, and are twice as wide inside */
    int64_t own_inputs, own_vocab, shared_kv;
    int64_t narrow; /* rank of a map beside attention; 0: none */
    int64_t copies; /* of what goes from block to block; 0: one */
    int wide_where_shared;
    int64_t layer_groups; /* layers of a group share their parameters; 0: none do */
    /* latent attention: ranks of what queries and of what keys and values are made; 0:
     * none */
    int64_t query_rank, latent_rank, plain_dim, value_dim;
    int64_t out_rank, out_groups; /* the last projection by way of groups; 0: at once */
    int64_t compressed[2];        /* keys that become one: of all; of those chosen from */
    int64_t chosen_keys;
    int latent_bias; /* of what leads into the ranks, and of the last projection */
    /* mixture of experts; 0 experts: none */
    int64_t experts, top_k, expert_inner, shared_inner;
    int64_t zero_experts;   /* beside them: these give back what they read */
    int two_halves;         /* a layer has two of all but the experts */
    int64_t latent_experts; /* width that experts read and give; 0: the model's */
    int unnormalized, sigmoid, corrected, shared_gate, expert_bias;
    int experts_beside; /* they and the dense feed-forward read the block's input, each by a
                           norm of its own, and their norms are added up */
    int weigh_input;    /* weights multiply what experts read, not what they make */
    int64_t groups, top_groups;
    double capacity, route_factor;
    /* what stands in for attention, and what chooses keys for it; 0: nothing */
    struct hf_mixer mixer;
    int64_t index_heads, index_dim;
    /* head */
    enum hf_head head;
    int pooler;      /* the bare model ends with one */
    int pooler_kept; /* it is there, and unread, where each position has its own output */
    int pooler_unbiased, pooler_norm;
    int class_map;       /* classes of positions are read by way of a map of the width */
    int class_transform; /* classes of positions read what the language head does */
    int tied, head_bias, head_transform, no_final_norm;
    double head_factor; /* of what the head reads; 0: 1 */
    double logit_cap;   /* tanh(x / cap) cap; 0: none */
    /* the vision tower, whose tokens are among the text's; NULL: none */
    const struct hf_tower *tower;
    struct hf_tower *own_tower; /* where a reader of a tower alone puts it */
    /* Blocks of attention and feed-forward that layers take by turns, before their mixers; the
     * rank of what each layer has of its own there; 0 blocks: none. */
    int64_t shared_blocks, own_rank;
    int own_queries;               /* that is of queries, keys and values, too */
    const struct hf_arch *encoder; /* of a decoder whose layers read one; NULL: none */
    int (*add_image_tokens)(struct hf_builder *b, int x);
    const struct hf_tower *audio_tower; /* the same of audio */
    int (*add_audio_tokens)(struct hf_builder *b, int x);
    int mask_token, mean_beside, distilled; /* of images: what more they have */
    int64_t registers;                      /* trained positions behind the class */
    int no_positions;                       /* no table of them */
    /* stages of images that become smaller: layers, width and heads of each */
    int64_t stages, depth[HF_MAX_STAGES], stage_width[HF_MAX_STAGES],
        stage_heads[HF_MAX_STAGES];
    /* ... windows, pixels that they move, how much wider a layer is inside, how many
     * pixels of a side become one key; the first width before them, the last behind */
    int64_t stage_kernel[HF_MAX_STAGES], stage_stride[HF_MAX_STAGES],
        stage_times[HF_MAX_STAGES], stage_fewer[HF_MAX_STAGES], last_width;
    /* share of its channels by which a layer weighs them; 0: it does not */
    double squeeze;
    /* sound as it is sampled: the convolution that tells places */
    int64_t places, place_layers, project;
    int conv_bias, norm_each, no_joint_norm;
    int bottleneck, first_smaller, stride_early, global_norms;
    int layer_scale; /* a gain of what each half of a block adds */
    /* towers */
    int64_t channels, image, patch, classes;                      /* of images */
    int64_t source, encoder_layers, encoder_inner, encoder_heads; /* of sound, of text */
    int stack_norms; /* text to text: each stack ends with a norm */
    /* each so-and-so-many-th of the encoder's layers has experts */
    int64_t encoder_every;
    int64_t encoder_unread; /* parameters of each of its layers that nothing here reads */
    /* Above so many positions something is computed otherwise, for which there is no
     * operator: NULL: that is not so. */
    const char *not_run; /* the same at any length */
    const char *inexact_why;
    int64_t inexact_above;
    /* What is left out, in words: "; " between. */
    char note[900];
};

/* Appends operators; after the first failure it does nothing. */
struct hf_builder {
    struct topt_model *m;
    const struct hf_arch *a;
    const char *prefix; /* of names: "h3." */
    int64_t layer;
    int relative;             /* tensor of the table of relative positions, or -1 */
    int encoded;              /* what the encoder made, in a decoder */
    int64_t kernel;           /* of a conformer's convolutions */
    int64_t encoded_every;    /* each so-many-th layer reads it */
    int own;                  /* all layers' own inputs, or -1 */
    struct hf_shared *shared; /* what layers of a group share, or NULL */
    struct hf_shared *blocks; /* the same of each block that layers take by turns */
    int64_t turns;
    int *kept; /* keys and values of the last local and the last full layer */
    int failed;
    struct topt_error *err;
};

/* A family: what its configs call themselves (model_type, and how the names of its
 * architectures begin), the functions that read one and that make the operators (NULL:
 * of one stack over tokens), what ends its models, what it is whatever a config says, and
 * whose class gives what a config leaves out (NULL: its own). */
struct hf_family {
    const char *model_type, *prefix;
    int (*read)(const json_t *doc, struct hf_arch *ret, struct topt_error *err);
    void (*build)(struct hf_builder *b);
    const struct hf_task *tasks;
    unsigned traits;
    const char *like;
    int full_every; /* where a config does not say which layers have windows; 0: all */
};

/* How an architecture's name ends, and what the model ends with.  The first of a list is
 * what a config means that names none; a list ends with an empty one. */
struct hf_task {
    const char *suffix;
    enum hf_head head;
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
