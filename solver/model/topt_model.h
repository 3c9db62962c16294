/* topt_model.h - operators as iteration spaces, and the graph of a model.
 *
 * An operator has named dimensions with extents; each operand (input, parameter,
 * output, saved or work buffer) is a projection onto some of them: linear is (b, s, k,
 * n) with x[b,s,k], w[n,k], y[b,s,n].  An operator kind is one row of a table (ops.c):
 * dimensions, projections, which dimensions may be split and at what price, what
 * backward needs kept, which kernels run.  Nothing outside the table and its kernels
 * switches on the kind.
 *
 * An extent is count * unit: only the count is ever split, so that "heads" of 64
 * numbers stay whole.  A dimension's count is the same in every operand; its unit may
 * differ.
 *
 * Thread safety: a finished model is only read, by any number of threads. */
#ifndef TOPT_MODEL_H
#define TOPT_MODEL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_arena.h"
#include "topt_error.h"
#include "topt_roles.h"

enum {
    TOPT_MAX_RANK = 4,       /* dimensions of a tensor */
    TOPT_MAX_OPDIMS = 8,     /* dimensions of an operator */
    TOPT_MAX_OPERANDS = 16,  /* of an operator, saved and work buffers included */
    TOPT_MAX_INPUTS = 4,     /* tensors from other operators */
    TOPT_MAX_STEPS = 12,     /* kernels and exchanges of one direction */
    TOPT_MAX_JOINS = 2,      /* kernels that a kernel may be done with */
    TOPT_MAX_EXPERTS = 1024, /* kernels keep a count for each */
    TOPT_MAX_TABLES = 64,    /* of one operator */
    TOPT_MAX_MTP = 16,       /* modules that predict further tokens */
    TOPT_MAX_VECTORS = 256,  /* of which every two are multiplied */
};

struct topt_dim {
    int64_t count, unit;
};

/* The greatest number that divides both counts; the other one where one is 0. */
int64_t topt_common_divisor(int64_t a, int64_t b);

/* What limits a kernel: profiles have a rate for each class of work. */
enum topt_work { TOPT_WORK_MATMUL, TOPT_WORK_ATTENTION, TOPT_WORK_ELEMENTWISE };

/* Rows of the kernel table: what a backend implements, and its class of work.  Each gets
 * pointers to its operands' local values and gradients and their local boxes. */
/* clang-format off */
#define TOPT_KERNELS(X)                                                                    \
    X(LOAD, "load", ELEMENTWISE)  /* fill a data operand with this step's samples */       \
    X(EMBEDDING_FWD, "embedding", ELEMENTWISE)                                             \
    X(EMBEDDING_BWD, "embedding_bwd", ELEMENTWISE)                                         \
    X(LINEAR_FWD, "linear", MATMUL)                                                        \
    X(LINEAR_BWD_X, "linear_bwd_x", MATMUL)                                                \
    X(LINEAR_BWD_W, "linear_bwd_w", MATMUL)                                                \
    X(BIAS_FWD, "bias", ELEMENTWISE)                                                       \
    X(BIAS_BWD, "bias_bwd", ELEMENTWISE)                                                   \
    X(POSITION_FWD, "position", ELEMENTWISE)                                               \
    X(POSITION_BWD, "position_bwd", ELEMENTWISE)                                           \
    X(UNARY_FWD, "unary", ELEMENTWISE)                                                     \
    X(UNARY_BWD, "unary_bwd", ELEMENTWISE)                                                 \
    X(GLU_FWD, "glu", ELEMENTWISE)                                                         \
    X(GLU_BWD, "glu_bwd", ELEMENTWISE)                                                     \
    X(SCALE_FWD, "scale", ELEMENTWISE)                                                     \
    X(SCALE_BWD, "scale_bwd", ELEMENTWISE)                                                 \
    X(ADD_FWD, "add", ELEMENTWISE)                                                         \
    X(ADD_BWD, "add_bwd", ELEMENTWISE)                                                     \
    X(MUL_FWD, "mul", ELEMENTWISE)                                                         \
    X(MUL_BWD, "mul_bwd", ELEMENTWISE)                                                     \
    X(WEIGH_FWD, "weigh", ELEMENTWISE)  /* rows of x by a number of g each */              \
    X(WEIGH_BWD, "weigh_bwd", ELEMENTWISE)                                                 \
    X(NORM_MEAN, "norm_mean", ELEMENTWISE)  /* sum of x over d / D -> mean */              \
    X(NORM_VAR, "norm_var", ELEMENTWISE)  /* sum of (x - mean)^2 over d / D -> var */      \
    X(NORM_APPLY, "norm_apply", ELEMENTWISE)                                               \
    X(NORM_BWD_SUM, "norm_bwd_sum", ELEMENTWISE) /* sums over d: of dx; of parameters */ \
    X(NORM_BWD_APPLY, "norm_bwd_apply", ELEMENTWISE)                                       \
    X(CONV_FWD, "conv", MATMUL)                                                            \
    X(CONV_BWD_W, "conv_bwd_w", MATMUL)                                                    \
    X(CONV_BWD_X, "conv_bwd_x", MATMUL)                                                    \
    X(POOL_FWD, "pool", ELEMENTWISE)                                                       \
    X(POOL_BWD, "pool_bwd", ELEMENTWISE)                                                   \
    X(RESIZE_FWD, "resize", ELEMENTWISE)                                                   \
    X(RESIZE_BWD, "resize_bwd", ELEMENTWISE)                                               \
    X(CONV_TRANSPOSE_FWD, "conv_transpose", MATMUL)                                        \
    X(CONV_TRANSPOSE_BWD_W, "conv_transpose_bwd_w", MATMUL)                                \
    X(CONV_TRANSPOSE_BWD_X, "conv_transpose_bwd_x", MATMUL)                                \
    X(BN_MEAN, "batch_norm_mean", ELEMENTWISE)                                             \
    X(BN_VAR, "batch_norm_var", ELEMENTWISE)                                               \
    X(BN_APPLY, "batch_norm_apply", ELEMENTWISE)                                           \
    X(BN_BWD_SUM, "batch_norm_bwd_sum", ELEMENTWISE)                                       \
    X(BN_BWD_APPLY, "batch_norm_bwd_apply", ELEMENTWISE)                                   \
    X(GAIN_FWD, "gain", ELEMENTWISE)  /* channels or features by a number of each */       \
    X(GAIN_BWD, "gain_bwd", ELEMENTWISE)                                                   \
    X(PRELU_FWD, "prelu", ELEMENTWISE)                                                     \
    X(PRELU_BWD, "prelu_bwd", ELEMENTWISE)                                                 \
    X(GN_MEAN, "group_norm_mean", ELEMENTWISE)                                             \
    X(GN_VAR, "group_norm_var", ELEMENTWISE)                                               \
    X(GN_APPLY, "group_norm_apply", ELEMENTWISE)                                           \
    X(GN_BWD_SUM, "group_norm_bwd_sum", ELEMENTWISE)                                       \
    X(GN_BWD_APPLY, "group_norm_bwd_apply", ELEMENTWISE)                                   \
    X(LRN_FWD, "lrn", ELEMENTWISE)                                                         \
    X(LRN_BWD, "lrn_bwd", ELEMENTWISE)                                                     \
    X(CHANNEL_BIAS_FWD, "channel_bias", ELEMENTWISE)                                       \
    X(CHANNEL_BIAS_BWD, "channel_bias_bwd", ELEMENTWISE)                                   \
    X(GLOBAL_POOL_FWD, "global_pool", ELEMENTWISE)                                         \
    X(GLOBAL_POOL_BWD, "global_pool_bwd", ELEMENTWISE)                                     \
    X(COPY_FWD, "copy", ELEMENTWISE)                                                       \
    X(COPY_BWD, "copy_bwd", ELEMENTWISE)                                                   \
    X(TOKENS_FWD, "tokens", ELEMENTWISE)                                                   \
    X(TOKENS_BWD, "tokens_bwd", ELEMENTWISE)                                               \
    X(UNTOKENS_FWD, "untokens", ELEMENTWISE)                                               \
    X(UNTOKENS_BWD, "untokens_bwd", ELEMENTWISE)                                           \
    X(ATTENTION_FWD, "attention", ATTENTION)                                               \
    X(ATTENTION_WEIGHT, "attention_weight", ELEMENTWISE)                                   \
    X(ATTENTION_MERGE, "attention_merge", ELEMENTWISE)                                     \
    X(ATTENTION_DELTA, "attention_delta", ATTENTION)                                       \
    X(ATTENTION_BWD, "attention_bwd", ATTENTION)                                           \
    X(XENT_MAX, "xent_max", ELEMENTWISE)                                                   \
    X(XENT_SUM, "xent_sum", ELEMENTWISE)                                                   \
    X(XENT_LOSS, "xent_loss", ELEMENTWISE)                                                 \
    X(XENT_BWD, "xent_bwd", ELEMENTWISE)                                                   \
    X(ROUTE_FWD, "route", ELEMENTWISE)                                                     \
    X(ROUTE_BWD, "route_bwd", ELEMENTWISE)                                                 \
    X(DISPATCH_FWD, "dispatch", ELEMENTWISE)                                               \
    X(DISPATCH_BWD, "dispatch_bwd", ELEMENTWISE)                                           \
    X(EXPERTS_UP, "experts_up", MATMUL)                                                    \
    X(EXPERTS_ACT, "experts_act", ELEMENTWISE)                                             \
    X(EXPERTS_DOWN, "experts_down", MATMUL)                                                \
    X(EXPERTS_BWD_REMAKE, "experts_bwd_remake", ELEMENTWISE)                               \
    X(EXPERTS_BWD_DOWN, "experts_bwd_down", MATMUL)                                        \
    X(EXPERTS_BWD_A, "experts_bwd_a", MATMUL)                                              \
    X(EXPERTS_BWD_ACT, "experts_bwd_act", ELEMENTWISE)                                     \
    X(EXPERTS_BWD_UP, "experts_bwd_up", MATMUL)                                            \
    X(EXPERTS_BWD_X, "experts_bwd_x", MATMUL)                                              \
    X(COMBINE_FWD, "combine", ELEMENTWISE)                                                 \
    X(COMBINE_BWD, "combine_bwd", ELEMENTWISE)                                             \
    X(VARIABLE_FWD, "variable", ELEMENTWISE)                                               \
    X(VARIABLE_BWD, "variable_bwd", ELEMENTWISE)                                           \
    X(RECURRENT_FWD, "recurrent", MATMUL)  /* one step's product with the hidden state */  \
    X(RECURRENT_BWD_H, "recurrent_bwd_h", MATMUL)                                          \
    X(RECURRENT_BWD_W, "recurrent_bwd_w", MATMUL)  /* of all steps */                      \
    X(LSTM_FWD, "lstm", ELEMENTWISE)                                                       \
    X(LSTM_BWD, "lstm_bwd", ELEMENTWISE)                                                   \
    X(GRU_FWD, "gru", ELEMENTWISE)                                                         \
    X(GRU_BWD, "gru_bwd", ELEMENTWISE)                                                     \
    X(RNN_FWD, "rnn", ELEMENTWISE)                                                         \
    X(RNN_BWD, "rnn_bwd", ELEMENTWISE)                                                     \
    X(SLICE_FWD, "slice", ELEMENTWISE)                                                     \
    X(SLICE_BWD, "slice_bwd", ELEMENTWISE)                                                 \
    X(SHUFFLE_FWD, "shuffle", ELEMENTWISE)                                                 \
    X(SHUFFLE_BWD, "shuffle_bwd", ELEMENTWISE)                                             \
    X(CONCAT_FWD, "concat", ELEMENTWISE)                                                   \
    X(CONCAT_BWD, "concat_bwd", ELEMENTWISE)                                               \
    X(TRANSPOSE_FWD, "transpose", ELEMENTWISE)                                             \
    X(TRANSPOSE_BWD, "transpose_bwd", ELEMENTWISE)                                         \
    X(REDUCE_SEQUENCE_FWD, "reduce_sequence", ELEMENTWISE)                                 \
    X(REDUCE_SEQUENCE_BWD, "reduce_sequence_bwd", ELEMENTWISE)                             \
    X(REDUCE_FEATURES_FWD, "reduce_features", ELEMENTWISE)                                 \
    X(REDUCE_FEATURES_BWD, "reduce_features_bwd", ELEMENTWISE)                             \
    X(SELECT_FWD, "select", ELEMENTWISE)                                                   \
    X(SELECT_BWD, "select_bwd", ELEMENTWISE)                                               \
    X(DROPOUT_FWD, "dropout", ELEMENTWISE)                                                 \
    X(DROPOUT_BWD, "dropout_bwd", ELEMENTWISE)                                             \
    X(OWN_FWD, "own", ELEMENTWISE)                                                         \
    X(OWN_BWD, "own_bwd", ELEMENTWISE)                                                     \
    X(SOFTMAX_SUM, "softmax_sum", ELEMENTWISE)                                             \
    X(SOFTMAX_FWD, "softmax", ELEMENTWISE)                                                 \
    X(SOFTMAX_DOT, "softmax_dot", ELEMENTWISE)                                             \
    X(SOFTMAX_BWD, "softmax_bwd", ELEMENTWISE)                                             \
    X(MSE_FWD, "mse", ELEMENTWISE)                                                         \
    X(MSE_BWD, "mse_bwd", ELEMENTWISE)                                                     \
    X(ROTARY_FWD, "rotary", ELEMENTWISE)                                                   \
    X(ROTARY_BWD, "rotary_bwd", ELEMENTWISE)                                               \
    X(PREPEND_FWD, "prepend", ELEMENTWISE)                                                 \
    X(PREPEND_BWD, "prepend_bwd", ELEMENTWISE)                                             \
    X(REVERSE_FWD, "reverse", ELEMENTWISE)                                                 \
    X(REVERSE_BWD, "reverse_bwd", ELEMENTWISE)                                             \
    X(EMBEDDING_BAG_FWD, "embedding_bag", ELEMENTWISE)                                     \
    X(EMBEDDING_BAG_BWD, "embedding_bag_bwd", ELEMENTWISE)                                 \
    X(INTERACT_FWD, "interact", MATMUL)  /* products of every two of some vectors */       \
    X(INTERACT_BWD, "interact_bwd", MATMUL)                                                \
    X(LOGISTIC_FWD, "logistic", ELEMENTWISE)                                               \
    X(LOGISTIC_BWD, "logistic_bwd", ELEMENTWISE)                                           \
    X(CAUSAL_CONV_FWD, "causal_conv", ELEMENTWISE)                                         \
    X(CAUSAL_CONV_BWD, "causal_conv_bwd", ELEMENTWISE)                                     \
    X(SSD_FWD, "ssd", ATTENTION)                                                           \
    X(SSD_BWD, "ssd_bwd", ATTENTION)                                                       \
    X(DELTA_FWD, "delta_rule", ATTENTION)                                                  \
    X(DELTA_BWD, "delta_rule_bwd", ATTENTION)                                              \
    X(SELECTIVE_FWD, "selective_scan", ATTENTION)                                          \
    X(SELECTIVE_BWD, "selective_scan_bwd", ATTENTION)                                      \
    X(SCAN_FWD, "scan", ATTENTION)  /* from here on: for plans alone */                    \
    X(SCAN_BWD, "scan_bwd", ATTENTION)                                                     \
    X(BESIDE_FWD, "beside", ELEMENTWISE)                                                   \
    X(BESIDE_BWD, "beside_bwd", ELEMENTWISE)                                               \
    X(INSERT_FWD, "insert", ELEMENTWISE)                                                   \
    X(INSERT_BWD, "insert_bwd", ELEMENTWISE)
/* clang-format on */

enum topt_kernel {
#define X(id, name, work) TOPT_K_##id,
    TOPT_KERNELS(X)
#undef X
        TOPT_KERNEL_COUNT
};

const char *topt_kernel_name(enum topt_kernel k);
/* The kernel of that name, which may be NULL; TOPT_KERNEL_COUNT where there is none. */
enum topt_kernel topt_kernel_named(const char *name);
enum topt_work topt_kernel_work(enum topt_kernel k);

enum topt_role {
    TOPT_INPUT, /* tensor from another operator; has a gradient where that one needs it */
    TOPT_DATA,  /* from the loader (tokens, labels, targets); no gradient */
    TOPT_PARAM, /* trained, with a gradient and optimizer state, unless the operator is frozen */
    TOPT_OUTPUT, /* exactly one */
    TOPT_SAVED,  /* written by forward, read by backward */
    TOPT_WORK_FWD,
    TOPT_WORK_BWD /* live during one direction of this operator */
};

enum topt_split {
    TOPT_SPLIT_BATCH,   /* free; placed from the outside in the canonical space */
    TOPT_SPLIT_SPATIAL, /* free but for rows exchanged with neighbours; from the outside */
    TOPT_SPLIT_SEQUENCE, /* free, but only searched where sequence splits are asked for */
    TOPT_SPLIT_FEATURE,  /* free or by partial sums; placed from the inside */
    TOPT_SPLIT_STAT, /* feature whose reductions are inside the operator (REDUCE steps) */
    TOPT_SPLIT_NEVER
};

struct topt_opdim_spec {
    const char *name;
    enum topt_split split;
};

/* How a parameter starts. */
enum topt_start {
    TOPT_START_NORMAL,   /* deviation init_std of the attributes, 0.02 where that is 0 */
    TOPT_START_FAN_IN,   /* normal; deviation 1 / sqrt(elements / first dimension) */
    TOPT_START_FAN_LAST, /* normal; deviation 1 / sqrt(last dimension) */
    TOPT_START_ZERO,
    TOPT_START_ONE,
    /* By the place k in the last dimension, modulo 16, as Mamba-2's states start: */
    TOPT_START_DECAY, /* ln(k + 1) */
    TOPT_START_STEP   /* softplus makes steps of it, from 0.001 to 0.1 by equal factors */
};

struct topt_operand_spec {
    const char *name;
    enum topt_role role;
    int ndim;
    int8_t dim[TOPT_MAX_RANK]; /* operator dimension of each tensor dimension */
    uint8_t optional;          /* present only where the operator's attributes say so */
    uint8_t tensor_ok;         /* PARAM that may be another operator's tensor instead */
    uint8_t real;              /* DATA: real numbers instead of whole ones */
    uint8_t wide; /* statistics and losses: in f32 where the settings' dtype is smaller */
    uint8_t rows_of; /* PARAM: 1 + the DATA whose numbers name its rows */
    /* PARAM: several tables one after the other, of as many rows each as the attribute
     * "tables" says: dimension 0 counts tables, dimension 1 shares of their rows, see
     * struct topt_shape. */
    uint8_t ragged;
    uint8_t slots;   /* INPUT of rank 3: its middle dimension may come in units */
    uint8_t partial; /* SAVED/WORK: a sum over the split dimensions it lacks */
    uint8_t over;    /* WORK: there only where one of these dimensions (bit d) is split */
    uint8_t made;    /* SAVED/WORK: by a HALO or MOVE step, not allocated before */
    /* Tensor dimensions (bit i) whose count is the operand's own instead of the
     * operator's: the input of a strided window.  They are split by the same axes. */
    uint8_t own;
    /* WORK: 1 + the operand of which this is the window (window() of the row): what a
     * rank's block of the output reads, neighbours' rows included.  Where the windowed
     * dimensions are not split it is that operand itself.  'of_grad': the window of
     * its gradient. */
    uint8_t window_of, of_grad;
    enum topt_start start; /* PARAM */
};

enum topt_step_kind {
    TOPT_STEP_END = 0,
    TOPT_STEP_KERNEL,
    TOPT_STEP_SUM,      /* all-reduce 'operand' over the axes that split 'dims' */
    TOPT_STEP_MAX,      /* the same with the largest */
    TOPT_STEP_HALO,     /* fill 'into', the window of 'operand', from the neighbours */
    TOPT_STEP_HALO_ADD, /* add the parts of 'operand', a window of a gradient, into the
                           gradient of the operand it is the window of */
    TOPT_STEP_MOVE /* 'operand' into the layout of 'into', an operand of equal shape */
};

/* A step is a kernel or an exchange of SAVED/WORK operands that does nothing where
 * nothing is split.  Consecutive steps with the same 'loop' are the body of a loop
 * over the counts of dimension loop - 1, from the first in forward and from the last
 * in backward; kernels get the count they are at. */
struct topt_step {
    enum topt_step_kind kind;
    enum topt_kernel kernel;
    int8_t operand, into;
    uint8_t loop;
    /* Bit d.  SUM, MAX: over which; a kernel: runs only where one of these is split, 0:
     * always. */
    uint32_t dims;
    uint32_t reads, writes; /* bit o: value of operand o; bit 16+o: its gradient */
    /* KERNEL: what it writes may lie on any of these, each number of which it reads before it
     * writes there; 'same': but for gradients of parameters it is those numbers. */
    uint32_t onto;
    uint8_t same;
    /* KERNEL: it may be done in the pass of one of these, 1 + enum topt_kernel, that comes just
     * before it and touches the same numbers. */
    int16_t joins[TOPT_MAX_JOINS];
};

struct topt_op;

/* A set of attributes: bit of enum topt_attr. */
__extension__ typedef unsigned __int128 topt_attr_set;

/* Numbers of activations, by what they take. */
struct topt_numbers {
    int64_t real;  /* in the settings' dtype */
    int64_t f32;   /* in f32 whatever that is */
    int64_t bytes; /* of a byte */
};

/* How a framework runs an operator by its own kernels, one after the other. */
enum topt_eager_how {
    TOPT_EAGER_ALIKE,   /* as ours do */
    TOPT_EAGER_BESIDE,  /* does what is told beside what ours do */
    TOPT_EAGER_INSTEAD, /* ... instead of it */
};
struct topt_eager {
    int64_t flops[2];             /* of matrix products: forward, backward */
    int64_t outputs[2];           /* ... their results */
    int kernels[2];               /* that the host starts: forward, backward */
    struct topt_numbers moved[2]; /* read or written: forward, backward */
    struct topt_numbers kept;     /* for backward, beside what the row says */
    /* alive besides while it runs: forward, backward; a loss: with its input */
    struct topt_numbers work[2];
};

/* Operators that frameworks run by different kernels; bits. */
enum {
    TOPT_EAGER_WRITES_SCORES = 1,
    TOPT_EAGER_WRITES_NORMS = 2,
    TOPT_EAGER_ROTATES = 4, /* by kernels of their own */
    TOPT_EAGER_TURNS = 8, /* FlashAttention's operands and output, to the model's order */
    TOPT_EAGER_BIASES = 16 /* ... of experts, expert by expert, and clamps before them */
};
/* Is it attention, whose operands FlashAttention takes samples first? */
int topt_op_turns(const struct topt_op *op);
/* The kernel of a language model's loss, from the most memory to the least. */
enum topt_loss_kernel {
    TOPT_LOSS_WRITTEN,  /* logits and their log-softmax in f32, each by itself */
    TOPT_LOSS_IN_PLACE, /* one copy in f32, which becomes the softmax and its gradient */
    TOPT_LOSS_SAVED,    /* by chunks of the sequence, whose log-softmax is kept */
    TOPT_LOSS_FUSED,    /* one pass over logits of the model's type, as our own */
    TOPT_LOSS_CHUNKED,  /* by chunks, each with its backward at once */
    TOPT_LOSS_COUNT
};
/* Beside a kernel of the loss, as bits: the trainer computes metrics of the logits for its log; it is compiled. */
enum { TOPT_LOSS_AND_METRICS = 16, TOPT_LOSS_COMPILED = 32 };
const char *topt_loss_kernel_name(enum topt_loss_kernel k);
/* The chunks in which it makes logits, one after the other. */
int topt_loss_chunks(enum topt_loss_kernel k);
/* Has a model such a loss? */
struct topt_model;
int topt_loss_has_kernels(const struct topt_model *m);

struct topt_op_spec {
    /* rows may share a name and differ in the rank of the first input */
    const char *name;
    topt_attr_set attrs;   /* what it takes */
    uint8_t loss;          /* its output is a loss for each sample or token */
    const char *plan_only; /* what no backend computes; NULL: the kernels are there */
    uint8_t low;           /* frameworks run its products in types of few bits */
    uint8_t coupled; /* mixes samples of a batch: micro-batches would change the result */
    int ndims;
    struct topt_opdim_spec dim[TOPT_MAX_OPDIMS];
    /* Dimensions (bit d) that are split only into parts that divide the operator's
     * count, which divides those of all operands that have counts of their own: so the
     * parts of all are the same fraction. */
    uint32_t even;
    /* Dimensions (bit d) whose units are a part of another's in what kernels multiply: the
     * shared part of a key, beside what the query has of it. */
    uint32_t within;
    int noperands;
    struct topt_operand_spec operand[TOPT_MAX_OPERANDS];
    struct topt_step forward[TOPT_MAX_STEPS], backward[TOPT_MAX_STEPS];
    /* Units, output dimensions and attributes from the inputs; -1 with an error that
     * names what does not fit.  Fills op->dim, operand units and the output tensor. */
    int (*shape)(struct topt_op *op, struct topt_error *err);
    /* Floating-point operations of one kernel on a local box ('len' by operator
     * dimension, in counts); of one round of a loop. */
    int64_t (*flops)(const struct topt_op *op, enum topt_kernel k, const int64_t *len);
    /* May be NULL: ALIKE.  What PyTorch's own kernels do for a local box; 'writes': attention is made of
     * matrix products that write their scores, RMS norm of elementwise kernels; for a loss enum
     * topt_loss_kernel. */
    enum topt_eager_how (*eager)(const struct topt_op *op, const int64_t *len, int writes,
                                 struct topt_eager *ret);
    /* Rows with windows: counts [off, off + len) of an output dimension 'd' of the
     * operator read these of the windowed operand; may reach outside, which the caller
     * cuts off. */
    void (*window)(const struct topt_op *op, int d, int64_t off, int64_t len,
                   int64_t *ret_off, int64_t *ret_len);
};

/* Functions of one number, with the attributes alpha and beta. */
/* clang-format off */
#define TOPT_ACTIVATIONS(X)                                                                \
    X(RELU, "relu")                                                                        \
    X(GELU, "gelu")                   /* by its approximation with tanh */                 \
    X(SILU, "silu")                                                                        \
    X(TANH, "tanh")                                                                        \
    X(SIGMOID, "sigmoid")                                                                  \
    X(LEAKY_RELU, "leaky_relu")       /* alpha x below 0 */                                \
    X(ELU, "elu")                     /* alpha (e^x - 1) below 0 */                        \
    X(SOFTPLUS, "softplus")           /* ln(1 + e^x) */                                    \
    X(GELU_ERF, "gelu_erf")           /* x/2 (1 + erf(x / sqrt 2)), the exact one */       \
    X(CLIP, "clip")                   /* not below alpha nor above beta */                 \
    X(HARD_SIGMOID, "hard_sigmoid")   /* alpha x + beta between 0 and 1 */                 \
    X(HARD_SWISH, "hard_swish")       /* x times (x + 3) / 6 between 0 and 1 */            \
    X(SOFTSIGN, "softsign")           /* x / (1 + |x|) */                                  \
    X(ABS, "abs")                                                                          \
    X(ERF, "erf")                                                                          \
    X(EXP, "exp")                                                                          \
    X(LOG, "log")                                                                          \
    X(SQRT, "sqrt")                                                                        \
    X(RECIPROCAL, "reciprocal")                                                            \
    X(POWER, "power")                 /* x to the alpha */                                 \
    X(SIN, "sin")                                                                          \
    X(COS, "cos")                                                                          \
    X(RELU2, "relu2")                 /* x^2 above 0 */                                    \
    X(QUICK_GELU, "quick_gelu")       /* x / (1 + e^-1.702x) */
/* clang-format on */

enum topt_activation {
#define X(id, text) TOPT_ACT_##id,
    TOPT_ACTIVATIONS(X)
#undef X
        TOPT_ACT_COUNT
};
const char *topt_activation_name(enum topt_activation a);

/* Attributes of every kind in one table: identifier, field, name in documents, type. */
/* clang-format off */
#define TOPT_ATTRS(X)                                                                      \
    X(FEATURES, features, WHOLE)           /* linear, conv: output count; embedding: width */ \
    X(FEATURES_UNIT, features_unit, WHOLE) /* numbers of one count */                      \
    X(VOCAB, vocab, WHOLE)                                                                 \
    X(HEADS, heads, WHOLE)                                                                 \
    X(KV_HEADS, kv_heads, WHOLE)                                                           \
    X(HEAD_DIM, head_dim, WHOLE)                                                           \
    X(V_HEAD_DIM, v_head_dim, WHOLE)       /* attention: of values, where it differs */    \
    X(ROPE_DIM, rope_dim, WHOLE)           /* numbers of a head that are rotated */        \
    X(CAUSAL, causal, BOOLEAN)                                                             \
    X(WINDOW, window, WHOLE)               /* attention: keys a query sees; 0: all */         \
    X(CHUNK, chunk, WHOLE)                 /* attention: keys of the same run of so many */    \
    X(SCALE, scale, REAL)                  /* of scores, 0: 1 / sqrt(head_dim); of rotary, 0: 1 */ \
    X(CAP, cap, REAL)                      /* attention: scores become cap tanh(score / cap) */ \
    X(DISTANCE, distance, WHOLE)           /* attention: largest relative position; 0: 128 */ \
    X(ROPE_THETA, rope_theta, REAL)        /* 0: no rotary embedding */                    \
    X(ROPE_FACTOR, rope_factor, REAL)      /* divides slow angles, see topt_rope_step() */ \
    X(ROPE_CONTEXT, rope_context, WHOLE)   /* positions that turns are counted over */     \
    X(ROPE_SLOW, rope_slow, REAL)          /* turns up to which an angle is slow */        \
    X(ROPE_FAST, rope_fast, REAL)          /* turns from which it stays as it is */        \
    X(ROPE_BY_PAIR, rope_by_pair, BOOLEAN) /* between: by the number of the pair, not of turns */ \
    X(ACT, activation, ACTIVATION)                                                         \
    X(ALPHA, alpha, SIGNED)                /* of the activation, where it has one */       \
    X(POSITIONS, positions, WHOLE)         /* rows of a table of positions; 0: seq */      \
    X(FACTOR, factor, SIGNED)              /* scale: factor x + shift; route: of weights, 0: 1 */ \
    X(SHIFT, shift, SIGNED)                                                                \
    X(RMS, rms, BOOLEAN)                   /* norm: root mean square, no mean, no bias */  \
    X(PLAIN, plain, BOOLEAN)               /* norm: nothing trained */                     \
    X(EPS, eps, REAL)                                                                      \
    X(INIT_STD, init_std, REAL)            /* 0: the kind's default */                     \
    X(ZERO, zero, BOOLEAN)                 /* linear: weights start as zeros */            \
    X(UNIFORM, uniform, BOOLEAN)           /* linear: weights start within 1 / sqrt(inputs) of 0 */ \
    X(FROZEN, frozen, BOOLEAN)             /* parameters are read, not trained */          \
    X(BITS, bits, WHOLE)                   /* frozen: of a stored number, 4 or 8; 0: of dtype */ \
    X(CHANNELS, channels, WHOLE)           /* image */                                     \
    X(HEIGHT, height, WHOLE)                                                               \
    X(WIDTH, width, WHOLE)                                                                 \
    X(KERNEL_H, kernel_h, WHOLE)                                                           \
    X(KERNEL_W, kernel_w, WHOLE)                                                           \
    X(STRIDE_H, stride_h, WHOLE)           /* 0: 1 */                                      \
    X(STRIDE_W, stride_w, WHOLE)                                                           \
    X(DILATION_H, dilation_h, WHOLE)       /* 0: 1 */                                      \
    X(DILATION_W, dilation_w, WHOLE)                                                       \
    X(PAD_TOP, pad_top, WHOLE)                                                             \
    X(PAD_LEFT, pad_left, WHOLE)                                                           \
    X(PAD_BOTTOM, pad_bottom, WHOLE)                                                       \
    X(PAD_RIGHT, pad_right, WHOLE)                                                         \
    X(GROUPS, groups, WHOLE)               /* conv: of channels; route: of experts */      \
    X(AVERAGE, average, BOOLEAN)           /* pool: mean instead of the largest */         \
    X(COUNT_PAD, count_pad, BOOLEAN)       /* pool: the mean counts padding */             \
    X(CEIL, ceil, BOOLEAN)                 /* pool: round output extents up */             \
    X(LINEAR, linear, BOOLEAN)             /* resize: between pixels, not the nearest one */ \
    X(CORNERS, corners, BOOLEAN)           /* resize: corners' centres stay where they are */ \
    X(LOG, log, BOOLEAN)                   /* softmax: its logarithm */                    \
    X(SIZE, size, WHOLE)                   /* lrn: channels that are summed over */        \
    X(BETA, beta, SIGNED)                  /* the same; lrn: power; 0: 0.75 */             \
    X(BIAS, bias, REAL)                    /* lrn: what the sum is added to; 0: 1 */       \
    X(RATE, rate, REAL)                    /* dropout: fraction that becomes 0 */          \
    X(FLOPS, flops, WHOLE)                 /* own: forward, of a position; backward twice */ \
    X(UNDROPPED, undropped, BOOLEAN)       /* attention: none of its weights is dropped */ \
    X(MASKED, masked, BOOLEAN)             /* add, linear: of what some was dropped, by a byte a number */ \
    X(WRITTEN, written, BOOLEAN)           /* unary, glu: written out; norm, attention: in f32; linear: reads a copy */ \
    X(TOP_K, top_k, WHOLE)                                                                 \
    X(CAPACITY, capacity, REAL)            /* slots of an expert over its fair share */    \
    X(GATED, gated, BOOLEAN)               /* experts: swiglu */                           \
    X(UNNORMALIZED, unnormalized, BOOLEAN) /* route: weights of all experts, not of top_k */ \
    X(SIGMOID, sigmoid, BOOLEAN)           /* route: weights by sigmoids, not a softmax */ \
    X(CORRECTED, corrected, BOOLEAN)       /* route: a bias of experts for the choice alone */ \
    X(TOP_GROUPS, top_groups, WHOLE)       /* route: 'groups' that are chosen from; 0: all */ \
    X(STATE, state, WHOLE)                 /* scan: rows of what a head carries on */      \
    X(EXTRA, extra, WHOLE)                 /* scan, beside: parameters of each count */    \
    X(MEAN, mean, BOOLEAN)                 /* reduce: mean instead of sum */               \
    X(OFFSET, offset, WHOLE)               /* slice: first number of a unit; select: position */ \
    X(LOOKUPS, lookups, WHOLE)             /* embedding_bag: rows that are added up */     \
    X(TABLES, tables, LIST)                /* embedding_bag: rows of each table; 0 ends it */ \
    X(SPARSE, sparse, BOOLEAN)             /* table: its gradient is sparse (topt_table_sparse) */ \
    X(DENSITY, density, REAL)              /* ... the fraction of its rows that is named by ... */ \
    X(DENSITY_OF, density_of, WHOLE)       /* ... so many lookups; 0: every row is as likely */ \
    X(FUSED, fused, BOOLEAN)               /* papers' accounting: part of the one before */ \
    X(INSIDE, inside, WHOLE)               /* papers' accounting: numbers made inside per output */
/* clang-format on */

enum topt_attr {
#define X(id, field, type) TOPT_A_##id,
    TOPT_ATTRS(X)
#undef X
        TOPT_ATTR_COUNT
};

#define TOPT_ATTR_WHOLE(field)      int64_t field;
#define TOPT_ATTR_BOOLEAN(field)    int field;
#define TOPT_ATTR_ACTIVATION(field) int field;    /* enum topt_activation */
#define TOPT_ATTR_REAL(field)       double field; /* not below 0 */
#define TOPT_ATTR_SIGNED(field)     double field;
#define TOPT_ATTR_LIST(field)       int64_t field[TOPT_MAX_TABLES]; /* of at least 1 */

/* Few, plain, and compared as a whole; zero where nothing is said. */
struct topt_attrs {
#define X(id, field, type) TOPT_ATTR_##type(field)
    TOPT_ATTRS(X)
#undef X
};

enum { TOPT_NO_TENSOR = -1 };

struct topt_operand {
    enum topt_role role; /* the row's, or INPUT where a PARAM is given as a tensor */
    int present;
    struct topt_dim dim[TOPT_MAX_RANK]; /* global */
};

/* The operands, extents and attributes of an operator, which are equal in operators that are alike. */
struct topt_op_form {
    struct topt_operand operand[TOPT_MAX_OPERANDS];
    int64_t count[TOPT_MAX_OPDIMS];
    struct topt_attrs attrs;
};

struct topt_op {
    const struct topt_op_spec *spec;
    const char *name;
    /* Its form, which is the model's; alike operators of a model of another batch share one. */
    struct topt_operand *operand;
    int64_t *count; /* global extents, in counts */
    struct topt_attrs *attrs;
    /* Of the graph, by operand that is an INPUT or OUTPUT; else -1. */
    int tensor[TOPT_MAX_OPERANDS];
    int ninputs;
    int input[TOPT_MAX_INPUTS]; /* operand numbers of the INPUTs, in order */
    int output;                 /* operand number of the OUTPUT */
    /* dimensions (bit d) that its operands keep whole, whatever the row says */
    uint32_t whole;
    int layer; /* of the decoder's or encoder's layers, numbered over the whole model; -1:
                  it stands outside of them */
    enum topt_op_role role; /* "role" in documents: what tensor parallelism asks */
    /* Of the row's backward: bit i: step i runs, since what it makes leads to a
     * gradient that somebody wants; bit o: these steps read the value of operand o
     * (reads_back), or touch it. */
    uint32_t runs_back, reads_back, touches_back;
    const struct topt_model *model;
};

/* Let an operator have a form, which must live as long. */
static inline void topt_op_take_form(struct topt_op *op, struct topt_op_form *form)
{
    op->operand = form->operand;
    op->count = form->count;
    op->attrs = &form->attrs;
}

/* A unit is what FSDP gathers and activation checkpointing runs again at once: a layer, or a
 * block where no operator says its layer.  The units hold 'of' operators alike to this
 * one; 'one' of them stand in the larger of the two neighbouring units with most parameters,
 * 'other' in the second. */
struct topt_share {
    int64_t one, other, of;
};

struct topt_tensor {
    const char *name;
    int ndim;
    struct topt_dim dim[TOPT_MAX_RANK];
    int producer;       /* operator */
    int nconsumers;     /* uses, counted with repetition */
    int needs_gradient; /* a parameter that is trained lies upstream */
};

/* How a dimension of an operator may be split. */
static inline enum topt_split topt_op_split(const struct topt_op *op, int d)
{
    return op->whole >> d & 1 ? TOPT_SPLIT_NEVER : op->spec->dim[d].split;
}

/* Tensor dimensions of an operand. */
static inline int topt_operand_rank(const struct topt_op *op, int operand)
{
    return op->spec->operand[operand].ndim;
}

/* The tensor that an operator makes, and the one that it takes as its k-th input. */
static inline int topt_output_tensor(const struct topt_op *op)
{
    return op->tensor[op->output];
}
static inline int topt_input_tensor(const struct topt_op *op, int k)
{
    return op->tensor[op->input[k]];
}

/* Operators in an order of execution.  'batch' and 'seq' are part of a model's shapes. */
struct topt_model {
    const char *name;
    int64_t batch, seq, vocab;
    double parameters; /* numbers, of a finished model */
    int nops, ntensors;
    int cap; /* operators with their outputs that there is room for */
    struct topt_op *op;
    struct topt_tensor *tensor;
    int loss; /* operator whose output is the loss, of several losses the last */
    int head; /* the first operator of those just before it, other losses among them, whose outputs have its classes */
    /* Modules that predict further tokens (multi-token prediction) have losses of their own over the same vocabulary:
     * the first operator that the last loss does not read; 'nops': there are none. */
    int mtp;
    int nlayers;  /* one more than the last operator's layer with the largest number */
    int at_layer; /* of operators that are added from now on */
    /* By operator, of a finished model: the first of same row, attributes, extents,
     * operands and repeats, in a unit or not, whatever the tensors are. */
    int *alike;
    /* By operator, of a finished model: how many blocks of its kind there are; 0: it
     * is in none. */
    int *repeats;
    /* of a finished model; topt_model_blocks() hands out copies */
    struct topt_blocks *blocks;
    /* By operator, of a finished model: the first operator of its unit, -1: it is in none; and
     * its share of the two largest. */
    int *unit;
    struct topt_share *share;
    /* What is not as in the model that was imported, for who plans it to know ("; "
     * between); and what of it no operator computes though it costs the same, so that
     * it can be planned and not run.  NULL: nothing. */
    const char *note, *plan_only;
    const char *train;  /* what topt_model_train() was told; NULL: all is trained */
    const char *family; /* of an imported config: its model_type; not in documents */
    int adapted;        /* imported from the config of adapters, which are trained */
    int stored_bits; /* 4 or 8: of linear weights of an imported config; not in documents */
    struct topt_arena *arena;
    int *named, named_cap; /* hash of names, see topt_model_find() */
};

/* The operator that makes the k-th input of another. */
static inline int topt_input_producer(const struct topt_model *m,
                                      const struct topt_op *op, int k)
{
    return m->tensor[topt_input_tensor(op, k)].producer;
}

/* The row of a kind for a first input of 'rank' dimensions; 0: any, the first in the
 * table. */
const struct topt_op_spec *topt_op_spec_find(const char *name, int rank);
const struct topt_op_spec *topt_op_spec_at(int i); /* NULL past the end */

/* Build a model operator by operator; each call checks shapes at once. */
struct topt_model *topt_model_create(const char *name, int64_t batch, int64_t seq,
                                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_model_destroy(struct topt_model *m);

/* Radians by which rotary embedding turns pair 'pair' of 'width' numbers from one
 * position to the next.  Unscaled: theta^(-2 pair / width).  With rope_factor slow
 * angles, which make at most rope_slow turns over rope_context positions, are divided
 * by it, fast ones are not, and between both it is a mean, linear in the turns (Llama
 * 3) or, with rope_by_pair, in the pair's number between the two whole numbers around
 * (YaRN, Peng et al. 2023). */
double topt_rope_step(const struct topt_attrs *a, int64_t width, int64_t pair);

/* The dimension of experts of an operator whose parameters they are; -1: it has none. */
int topt_op_experts(const struct topt_op *op);
/* Does it run attention? */
int topt_op_attends(const struct topt_op *op);
/* Is it a loss of another module than the last, so that what it keeps waits for the last one's forward? */
int topt_op_waits_for_loss(const struct topt_op *op);
/* The operand that a gated activation of the operator reads: its input, or what experts save of their first product; -1:
 * it has none. */
int topt_op_gated(const struct topt_op *op);
/* Is an operand of this name given? */
int topt_op_has(const struct topt_op *op, const char *operand);
int topt_model_attends(const struct topt_model *m);
/* Rows and columns of each matrix of an operand, one for each expert: 'len' is the extent of each dimension of the
 * operator.  A kernel of a convolution has a row for each output; of vectors there is one column. */
void topt_operand_matrix(const struct topt_op *op, int operand, const int64_t *len,
                         int64_t *ret_rows, int64_t *ret_columns);
/* The number that divides the experts of each operator that has some; 0: none has. */
int64_t topt_model_experts(const struct topt_model *m);
/* Is a tensor one of slots by expert, so that its moves bring tokens to experts, or back? */
int topt_is_of_slots(const struct topt_model *m, int tensor);
/* Of a tensor of slots by expert, which lie on so many places: how often a token is sent if it goes once to each place
 * that has some of its experts, as a share of once for each expert.  Experts are chosen at random, within the groups that
 * the model's router chooses.  1 of any other tensor. */
double topt_tokens_sent(const struct topt_model *m, int tensor, int64_t places);
/* Slots that each expert has for one sample of 'seq' tokens. */
int64_t topt_expert_slots(const struct topt_attrs *a, int64_t seq, int64_t experts);
/* Keys that a query of an attention may see: all, or as many as its window or chunk holds. */
int64_t topt_attention_keys(const struct topt_op *op);

/* Numbers of these operands (bit o: its value, bit 16+o: its gradient) in a local box. */
int64_t topt_touched_numbers(const struct topt_op *op, uint32_t operands,
                             const int64_t *len);
/* Numbers that one of the operator's kernels writes for a local box; 0: it has no such kernel. */
int64_t topt_written_numbers(const struct topt_op *op, enum topt_kernel k,
                             const int64_t *len);

/* The pixels, along rows or columns, that one of a "resize" is made of: low (1 - share) +
 * high share. */
struct topt_taps {
    int64_t low, high;
    double share;
};
struct topt_taps topt_resize_taps(const struct topt_op *op, int along_rows, int64_t at);

/* Tables.  A table with the attribute "sparse" is updated lazily by every plan alike: a
 * number whose gradient of a step is exactly zero keeps its value and its state.  So the
 * gradient may be kept as rows and their values, of those rows alone that a step's samples
 * name, and all choices of what to do with it train to the same numbers.
 *
 * The operand of an operator that is such a table, trained and not another operator's
 * tensor; -1: there is none. */
int topt_table_sparse(const struct topt_op *op);
/* The DATA operand that names its rows, and the lookups of a whole batch. */
int topt_table_ids(const struct topt_op *op);
double topt_table_lookups(const struct topt_op *op);
/* Different rows that 'lookups' of the operator, as many of each of its tables, name on the
 * mean: R (1 - (1 - 1/R)^lookups) where each of R rows is as likely as the others.  R is the
 * table's rows, or what gives the attributes' density. */
double topt_table_rows(const struct topt_op *op, double lookups);
/* The same of one of its tables; what the density makes of its rows is asked for once,
 * topt_table_evenness(). */
double topt_table_named(const struct topt_op *op, int64_t table, double lookups,
                        double evenness);
double topt_table_evenness(const struct topt_op *op);
/* Tables of an operator that has some, rows of one of them, and of all. */
int64_t topt_tables_of(const struct topt_op *op);
int64_t topt_table_height(const struct topt_op *op, int64_t table);
double topt_table_heights(const struct topt_op *op);
/* Is there a sparse table in the model? */
int topt_model_has_tables(const struct topt_model *m);

/* Append an operator on 'ninputs' tensors (numbers as returned before).  Returns its
 * output tensor, or -1.  'attrs' NULL means all zero; a weight that is one of the
 * inputs has its own shape, so that neither features nor vocab can be given. */
int topt_model_add(struct topt_model *m, const char *kind, const char *name, int ninputs,
                   const int *inputs, const struct topt_attrs *attrs,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* Names of roles ("" of NONE), what is split of them, and a role by its name: INVAL with all
 * names where there is none such. */
const char *topt_role_name(enum topt_op_role p);
enum topt_role_split topt_role_split(enum topt_op_role p);
int topt_role_find(const char *name, enum topt_op_role *ret,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* May operators of that kind have it?  All may have none. */
int topt_role_fits(enum topt_op_role role, const char *kind);
/* The operator that was added last has that role. */
void topt_model_say_role(struct topt_model *m, enum topt_op_role role);

/* Say what 'note' and 'plan_only' hold; the text is copied.  topt_model_check_run()
 * refuses a model that is for planning alone. */
int topt_model_note(struct topt_model *m, const char *note,
                    struct topt_error *err) TOPT_MUST_CHECK;
int topt_model_plan_only(struct topt_model *m, const char *why,
                         struct topt_error *err) TOPT_MUST_CHECK;
int topt_model_check_run(const struct topt_model *m,
                         struct topt_error *err) TOPT_MUST_CHECK;

/* A parameter that has a gradient and is updated. */
static inline int topt_is_trained(const struct topt_op *op, int operand)
{
    return op->operand[operand].role == TOPT_PARAM && op->operand[operand].present &&
           !op->attrs->frozen;
}

/* Make of a finished model what is trained of it:
 *
 *     all                    every parameter
 *     NAME[,NAME...]         the parameters with these names (shell patterns, of operators or of
 *                            a checkpoint's tensors), the rest is frozen
 *     lora[:RANK[:NAMES]]    all is frozen, and beside linear maps with these names are adapters
 *                            of TOPT_LORA_RANK or RANK; beside all but the head's where none is given
 *     ...+4bit, ...+8bit     frozen matrices of linear maps and experts are stored in few bits
 *
 * '*m' is replaced; on failure it is as it was. */
enum { TOPT_LORA_RANK = 16 };
int topt_model_train(struct topt_model **m, const char *spec,
                     struct topt_error *err) TOPT_MUST_CHECK;

/* The operator of that name, or -1. */
int topt_model_find(const struct topt_model *m, const char *name);

/* Check the whole: one loss, or several over one vocabulary, every other tensor consumed; fills needs_gradient. */
int topt_model_finish(struct topt_model *m, struct topt_error *err) TOPT_MUST_CHECK;

/* The same finished model for another batch (that of a micro-batch): operators and
 * tensors keep their numbers.  Owned by the caller, borrows nothing. */
struct topt_model *topt_model_rebatch(const struct topt_model *m, int64_t batch,
                                      struct topt_error *err) TOPT_MUST_CHECK;

/* Tensors of a checkpoint of the config that the model was imported from: names and
 * shapes.  A tensor that holds several parameters one after the other comes once for
 * each, with the rows of that one.  Stops with -1 where 'f' does; visits nothing where
 * the family's names are not known.  'name' lives for the call. */
enum { TOPT_WEIGHT_RANK = 4 };
/* Which numbers of the parameter it is. */
enum topt_weight_piece {
    TOPT_WEIGHT_WHOLE,
    TOPT_WEIGHT_TURNED, /* the transpose */
    TOPT_WEIGHT_QUERY,  /* of each key-value head's rows those of its queries, */
    TOPT_WEIGHT_KEY,    /* of the key after them, */
    TOPT_WEIGHT_VALUE,  /* and of the value */
    TOPT_WEIGHT_FIRST,  /* of each pair of rows the first */
    TOPT_WEIGHT_SECOND,
    /* Of a tensor that holds several, after those that come before it: */
    TOPT_WEIGHT_RUN,   /* all rows */
    TOPT_WEIGHT_LOW,   /* of each of 'parts' runs of rows the first half, */
    TOPT_WEIGHT_HIGH,  /* and the second */
    TOPT_WEIGHT_TURNS, /* the tensor is in 'parts', each of which holds a part of all */
    /* Of experts, by number or all of them: */
    TOPT_WEIGHT_EXPERT,
    TOPT_WEIGHT_EXPERT_FIRST, /* of each pair of rows the first */
    TOPT_WEIGHT_EXPERT_SECOND,
    TOPT_WEIGHT_EXPERTS,
    TOPT_WEIGHT_EXPERTS_PAIRED, /* of each expert the first rows of pairs, then the second */
    TOPT_WEIGHT_OTHER           /* of all experts, each transposed */
};
struct topt_weight {
    const char *name;
    int op;      /* that holds it */
    int operand; /* of the operator */
    enum topt_weight_piece piece;
    int64_t parts, expert; /* of pieces that have some; number of the expert */
    int ndim;              /* -1: of any shape */
    int64_t dim[TOPT_WEIGHT_RANK];
};
typedef int topt_weight_visit(void *ctx, const struct topt_weight *w);
int topt_model_weights(const struct topt_model *m, topt_weight_visit *f, void *ctx);
/* Weights without a config (*.safetensors, or a folder of them): what their headers say,
 * which is enough to count and not to plan.  'kind' has tensors whose names differ in
 * numbers alone ("model.layers.#.mlp.up_proj.weight"), in the order of their names. */
struct topt_weights_told {
    int files, tensors, nkinds, ntypes;
    int64_t numbers, bytes; /* numbers 0: only an index is here */
    struct topt_weights_kind {
        char name[120];
        int tensors;
        int64_t numbers;
    } * kind;
    struct {
        const char *name;
        int64_t bytes;
    } type[24];
};
/* Is that what 'path' is? */
int topt_weights_alone(const char *path);
int topt_weights_tell(const char *path, struct topt_weights_told *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
void topt_weights_told_fini(struct topt_weights_told *told);

/* The first part of the family's names ("transformer."), which checkpoints of the bare
 * model lack; "" where there is none. */
const char *topt_weights_base(const struct topt_model *m);

/* Repeated blocks: runs of operators that occur several times one after the other,
 * alike in rows, attributes, extents and in how they read from each other.  Encoder
 * and decoder blocks are two kinds.  A block reads from itself, from the block of its
 * kind before it, and from outside of all blocks of its kind. */
struct topt_blocks {
    int nkinds;
    struct topt_block_kind {
        int first, length, count; /* first operator, operators a block, blocks */
    } * of;                       /* by kind */
    /* By operator: number of its block among those of the kind (-1: in none), place in
     * the block, and kind (-1: none). */
    int *block, *position, *kind;
};
/* The last operator that takes each tensor, by tensor; owned by the caller, NULL without memory. */
int *topt_model_last_uses(const struct topt_model *m);
int topt_model_blocks(const struct topt_model *m, struct topt_blocks *ret,
                      struct topt_error *err) TOPT_MUST_CHECK;
void topt_blocks_fini(struct topt_blocks *b);

/* Numbers of a whole operand, and all that an operator's parameters hold. */
int64_t topt_operand_numbers(const struct topt_op *op, int operand);
double topt_op_parameters(const struct topt_op *op);
/* Does backward keep this operand of the operator's own?  A tensor counts with the first that is asked for: 'seen', by
 * tensor, is 0 at first. */
int topt_op_keeps(const struct topt_model *m, const struct topt_op *op, int operand,
                  char *seen);
/* Numbers that people check first.  flops_per_sample counts what kernels compute, forward and
 * backward.  model_flops_per_sample is the numerator of model FLOPs utilization (PaLM, Chowdhery et
 * al. 2022, appendix B): three times the matrix products of forward, as if all parameters were
 * trained, attention over all positions in reach of a query, causal or not.  It counts neither
 * recomputation nor elementwise work.  masked_flops_per_sample is the same with attention over what a
 * mask leaves, half of it where that is causal. */
struct topt_model_stats {
    int64_t parameters, trained; /* all of them; those that are not frozen */
    int64_t operators, flops_per_sample, model_flops_per_sample, masked_flops_per_sample,
        activation_bytes_per_sample;
    int images; /* samples are images, without a sequence */
};
void topt_model_stats(const struct topt_model *m, struct topt_model_stats *ret);
/* The same of the operators of one kind; NULL: of all. */
void topt_model_kind_stats(const struct topt_model *m, const char *kind,
                           struct topt_model_stats *ret);

/* Native document "topt-model/1" and back.  New reference / owned model. */
json_t *topt_model_to_json(const struct topt_model *m);
struct topt_model *topt_model_from_json(const json_t *doc,
                                        struct topt_error *err) TOPT_MUST_CHECK;

enum topt_apart {
    TOPT_APART_HEADS = 1, /* queries, keys and values, as context ranks gather them */
    TOPT_APART_GATES = 2  /* gates and what they gate, of which recomputation keeps one */
};

/* What importing may be told: 0 means the model's own or the default. */
struct topt_import_options {
    int64_t batch, seq;
    /* Positions of a document, on the mean, where samples are packed with several of which each attends to itself;
     * 0: a sample is one. */
    int64_t document_length;
    /* of an ONNX graph: "cross_entropy" or "mse"; NULL: by its output */
    const char *loss;
    const char *train; /* what topt_model_train() is told; NULL: as it is */
    const char *as;    /* the family of a config whose own is not known */
    const char *part;  /* of a config of several: "text"; NULL: all that is read */
    double capacity;   /* slots of an expert over its share; 0: the family's */
    /* modules that predict further tokens; 0: none, or those of Megatron-LM's arguments */
    int64_t mtp;
    int apart; /* of a config: products that are otherwise one, bits of enum topt_apart */
    int untrained; /* an ONNX graph without weights is taken too */
};

/* A model from text: a native document, a Hugging Face config.json or an ONNX file,
 * told apart by content.  'what' names it in messages. */
struct topt_model *topt_model_import(const char *text, size_t len, const char *what,
                                     const struct topt_import_options *options,
                                     struct topt_error *err) TOPT_MUST_CHECK;
/* The same from a file or a directory that holds a config.json; or "paper:NAME", a
 * model that papers on strategy search measure. */
struct topt_model *topt_model_load(const char *path,
                                   const struct topt_import_options *options,
                                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
