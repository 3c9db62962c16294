/* topt_framework.h - the systems that plans are made for, as rows of one table.
 *
 * A row says what a system can obey (the space, which levels of sharding, where tensor
 * parallelism may lie, what has to divide), what it does while it runs (when it gathers,
 * what it hides and does not fuse, what its allocator can't use), and how numbers are
 * kept.  Every figure was read in public source at the commit that the row names.
 * Nothing else in the planner knows a framework by name.  Thread safety: constant
 * data. */
#ifndef TOPT_FRAMEWORK_H
#define TOPT_FRAMEWORK_H

#include "topt_lower.h"

/* Where tensor parallelism is searched. */
enum topt_tensor_where {
    TOPT_TENSOR_NEVER,
    TOPT_TENSOR_LAST,    /* inside a node, and only where nothing else fits */
    TOPT_TENSOR_NODE,    /* inside a node */
    TOPT_TENSOR_ANYWHERE /* also across nodes */
};

struct topt_tensor_rules;

/* The communication of attention over context ranks: all-gather of keys and values, all-to-all of positions for heads, or
 * keys and values around a ring. */
enum topt_context {
    TOPT_CONTEXT_GATHER = 1,
    TOPT_CONTEXT_HEADS = 2,
    TOPT_CONTEXT_RING = 4
};

/* The kernels that a framework ran by default in its releases of a year and later; the last age goes back
 * to the beginning. */
struct topt_software {
    int since; /* the year; 0: always */
    enum topt_attention attention;
    /* Bits of enum topt_eager_part, SCORES: attention is written out; as of topt_settings. */
    int eager, tensor_async;
    int low_strided;       /* as of topt_settings, of rowwise */
    enum topt_merge merge; /* beside context ranks */
};
enum { TOPT_SOFTWARE_AGES = 5 };

/* The parts of a training that --offload can name. */
enum topt_offer {
    TOPT_OFFER_OPTIMIZER,
    TOPT_OFFER_PARAMETERS,
    TOPT_OFFER_ACTIVATIONS,
#define TOPT_OFFER_OF(name, word) TOPT_OFFER_##name,
    TOPT_OFFLOAD_MODULE_NAMES(TOPT_OFFER_OF) TOPT_OFFERS
};
struct topt_offered {
    int away;   /* bits of enum topt_offload; 0: the framework does not have it */
    int levels; /* of sharding over replicas beside it, bits */
    int part;   /* ... under which a part of the optimizer alone may rest there */
    int keeps;  /* nothing is recomputed beside it; 2: but modules that are named */
};

struct topt_framework {
    const char *name;  /* as people write it */
    const char *title; /* as answers call it: "PyTorch (FSDP2, DDP)" */
    /* the repository, and the version or commit and date at which the row was read */
    const char *source;
    /* It obeys one choice for the whole model, which splits samples, heads and features into equal parts; else
     * any space. */
    int uniform_only;
    int zero; /* levels of enum topt_zero that it has, as bits */
    const char *level[TOPT_ZERO_COUNT]; /* what people call them there */
    enum topt_tensor_where tensor;      /* the default */
    enum topt_tensor_where tensor_most; /* the most that can be asked for */
    /* what a script must do to obey it; NULL: nothing, it is an option there */
    const char *tensor_needs;
    const struct topt_tensor_rules *rules; /* what a degree of it does; NULL: any split */
    /* Pipeline stages: whether they are searched unasked, the schedules (bits of enum
     * topt_order_row), of these the ones that only forks have, which are taken where they are asked for,
     * levels of sharding beside them (bits), whether each has as many layers, whether a
     * chunk may have nothing, whether sharded gradients are accumulated whole there, and whether operands alone
     * wait for gradients of parameters (as of topt_settings). */
    enum topt_pipeline_when { TOPT_PIPELINE_ASKED, TOPT_PIPELINE_SEARCHED } pipeline;
    int pipeline_orders, fork_orders, pipeline_levels, even_stages, empty_chunks,
        unsharded_sums, operands_wait;
    /* Levels that may shard over a part of the data ranks and be replicated over the rest (bits), and
     * whether they are searched so unasked. */
    int replica_levels, replicas_searched;
    /* Modules of recomputation that can be asked for, bits of enum topt_recompute_module; whether the first layers of
     * each stage's chunks can be recomputed alone. */
    int can_modules, recompute_first;
    int stages_alone; /* tensor parallelism splits no layer of pipeline stages */
    /* Expert parallelism: whether it is searched unasked, levels of sharding beside it (bits, 0: it has none),
     * and whether tensor parallelism may split the inside of experts beside it. */
    enum topt_expert_when { TOPT_EXPERT_ASKED, TOPT_EXPERT_SEARCHED } expert;
    int expert_levels, expert_tensor, deepep; /* 'deepep': tokens may be sent by that */
    /* Context parallelism: how attention gets the keys and values of other ranks, bits of enum topt_context. */
    int context;
    const char *lacks; /* what it can do and is not searched; NULL: nothing */
    /* Those that it trains in, bits by row of their table; and those that its releases had until a year. */
    int precisions, gone, gone_since;
    /* As of topt_settings: the first two under bf16-mixed; but under fp16-mixed gradients stay fp16; where parameters
     * are not sharded. */
    int gradient_f32, shard_f32, gradient_f16, rest_f32, positions_first;
    /* Of FP8: as of topt_settings; whether its models are compiled then; and bits of enum topt_low, beside which weights may
     * be asked for so, and attention. */
    int low_apart, low_compiled, low_params, low_attention;
    enum topt_overlap overlap;
    enum topt_gather gather;
    struct topt_software software[TOPT_SOFTWARE_AGES];
    int losses; /* kernels of the loss that it has, bits by enum topt_loss_kernel */
    enum topt_loss_kernel loss; /* the one of its own trainer */
    /* A vocabulary is padded to this times the parts of its table (0: not); as of topt_settings; in which the host starts
     * a kernel, unless CUDA graphs are replayed, as can be asked for. */
    int64_t vocab_multiple, pool_numbers, bucket_numbers, host_ns;
    int allocator_permille, cuda_graphs;
    struct topt_offered offers[TOPT_OFFERS];
    int tensor_overlap; /* as of topt_settings, as can be asked for */
    int64_t regather;   /* bits of enum topt_regather; FIXED where all is uniform */
    /* Levels of sharding beside the optimizer Muon, bits (0: it has none); bits of enum topt_muon. */
    int64_t muon_levels, muon;
    /* Handles of the device's BLAS, each with a workspace; Transformer Engine has one more, and its products of experts
     * are kernels of their own. */
    int workspaces, engine;
};

/* The kernels of a year's releases; 0: today's. */
const struct topt_software *topt_framework_software(const struct topt_framework *f,
                                                    int64_t year);

/* NULL past the end; the first row is the default. */
const struct topt_framework *topt_framework_at(int i);
/* INVAL with all names where there is none such. */
int topt_framework_find(const char *name, const struct topt_framework **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;

/* "context parallelism and pipeline stages (--pipeline N), which PyTorch supports": what of a framework a
 * question does not search, stages and context ranks only where they were not asked for.  Owned; NULL where there is
 * nothing. */
char *topt_framework_not_searched(const struct topt_framework *f, int staged,
                                  int context);

/* The number formats of a training job. */
struct topt_precision {
    const char *name;      /* "bf16-mixed" */
    enum topt_dtype dtype; /* of products and activations */
    int state_bf16;
    enum topt_low low; /* of products of layers */
    int usual;         /* what is taken unasked: the first such row that can be had */
    const char *means; /* weights, gradients, master copy and moments in words */
};
const struct topt_precision *topt_precision_at(int i); /* NULL past the last */
const char *topt_precision_name(unsigned i);
/* Does the framework train so in the releases of a year (0: today's)? */
int topt_framework_trains(const struct topt_framework *f, const struct topt_precision *p,
                          int64_t year);
int topt_precision_find(const char *name, const struct topt_precision **ret,
                        struct topt_error *err) TOPT_MUST_CHECK;
/* The row that settings are of. */
const struct topt_precision *topt_precision_of(const struct topt_settings *s);

#endif
