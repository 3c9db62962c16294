/* topt_model.h - operators as iteration spaces, and the graph of a model.
 *
 * An operator has named dimensions with extents; each operand (input, parameter, output,
 * saved or work buffer) is a projection onto some of them: linear is (b, s, k, n) with
 * x[b,s,k], w[n,k], y[b,s,n].  An operator kind is one row of a table (ops.c): dimensions,
 * projections, which dimensions may be split and at what price, what backward needs kept,
 * which kernels run.  Nothing outside the table and its kernels switches on the kind.
 *
 * An extent is count * unit: only the count is ever split, so that "heads" of 64 numbers
 * stay whole.  A dimension's count is the same in every operand; its unit may differ.
 *
 * Thread safety: a finished model is only read, by any number of threads. */
#ifndef TOPT_MODEL_H
#define TOPT_MODEL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "topt_arena.h"
#include "topt_error.h"

enum {
    TOPT_MAX_RANK = 4,      /* dimensions of a tensor */
    TOPT_MAX_OPDIMS = 6,    /* dimensions of an operator */
    TOPT_MAX_OPERANDS = 10, /* of an operator, saved and work buffers included */
    TOPT_MAX_INPUTS = 4,    /* tensors from other operators */
    TOPT_MAX_STEPS = 8,     /* kernels and reductions of one direction */
};

struct topt_dim {
    int64_t count, unit;
};

/* Rows of the kernel table: what a backend implements.  Each gets pointers to its operands'
 * local values and gradients and the local box of each operator dimension. */
/* clang-format off */
#define TOPT_KERNELS(X)                                                                  \
    X(LOAD, "load")                     /* fill a data operand with this step's samples */ \
    X(EMBEDDING_FWD, "embedding")                                                        \
    X(EMBEDDING_BWD, "embedding_bwd")                                                    \
    X(LINEAR_FWD, "linear")                                                              \
    X(LINEAR_BWD_X, "linear_bwd_x")                                                      \
    X(LINEAR_BWD_W, "linear_bwd_w")                                                      \
    X(BIAS_FWD, "bias")                                                                  \
    X(BIAS_BWD, "bias_bwd")                                                              \
    X(POSITION_FWD, "position")                                                          \
    X(POSITION_BWD, "position_bwd")                                                      \
    X(UNARY_FWD, "unary")                                                                \
    X(UNARY_BWD, "unary_bwd")                                                            \
    X(SWIGLU_FWD, "swiglu")                                                              \
    X(SWIGLU_BWD, "swiglu_bwd")                                                          \
    X(ADD_FWD, "add")                                                                    \
    X(ADD_BWD, "add_bwd")                                                                \
    X(MUL_FWD, "mul")                                                                    \
    X(MUL_BWD, "mul_bwd")                                                                \
    X(NORM_MEAN, "norm_mean")           /* sum of x over d / D -> mean */                \
    X(NORM_VAR, "norm_var")             /* sum of (x - mean)^2 over d / D -> var */      \
    X(NORM_APPLY, "norm_apply")                                                          \
    X(NORM_BWD_SUM, "norm_bwd_sum")     /* sums over d that dx needs; parameter gradients */ \
    X(NORM_BWD_APPLY, "norm_bwd_apply")                                                  \
    X(ATTENTION_FWD, "attention")                                                        \
    X(ATTENTION_BWD, "attention_bwd")                                                    \
    X(XENT_MAX, "xent_max")                                                              \
    X(XENT_SUM, "xent_sum")                                                              \
    X(XENT_LOSS, "xent_loss")                                                            \
    X(XENT_BWD, "xent_bwd")                                                              \
    X(VARIABLE_FWD, "variable")                                                          \
    X(VARIABLE_BWD, "variable_bwd")
/* clang-format on */

enum topt_kernel {
#define X(id, name) TOPT_K_##id,
    TOPT_KERNELS(X)
#undef X
        TOPT_KERNEL_COUNT
};

const char *topt_kernel_name(enum topt_kernel k);

enum topt_role {
    TOPT_INPUT, /* tensor from another operator; has a gradient where that one needs it */
    TOPT_DATA,  /* whole numbers from the loader (tokens, labels); no gradient */
    TOPT_PARAM, /* trained; has a gradient and optimizer state */
    TOPT_OUTPUT, /* exactly one */
    TOPT_SAVED,  /* written by forward, read by backward */
    TOPT_WORK_FWD,
    TOPT_WORK_BWD /* live during one direction of this operator */
};

enum topt_split {
    TOPT_SPLIT_BATCH,    /* free; placed from the outside in the canonical space */
    TOPT_SPLIT_SEQUENCE, /* free, but only searched where sequence splits are asked for */
    TOPT_SPLIT_FEATURE,  /* free or by partial sums; placed from the inside */
    TOPT_SPLIT_STAT, /* feature whose reductions are inside the operator (REDUCE steps) */
    TOPT_SPLIT_NEVER
};

struct topt_opdim_spec {
    const char *name;
    enum topt_split split;
};

struct topt_operand_spec {
    const char *name;
    enum topt_role role;
    int ndim;
    int8_t dim[TOPT_MAX_RANK]; /* operator dimension of each tensor dimension */
    uint8_t needed;            /* INPUT: backward reads its value */
    uint8_t optional;          /* present only where the operator's attributes say so */
    uint8_t tensor_ok;         /* PARAM that may be another operator's tensor instead */
    uint8_t unitless;          /* statistics: unit 1 whatever the dimension's unit is */
};

enum topt_step_kind { TOPT_STEP_END = 0, TOPT_STEP_KERNEL, TOPT_STEP_SUM, TOPT_STEP_MAX };

/* A step is a kernel, or an all-reduce of a SAVED/WORK operand over the axes that split
 * 'dim' (nothing where none does). */
struct topt_step {
    enum topt_step_kind kind;
    enum topt_kernel kernel;
    int8_t operand, dim;
    uint32_t reads, writes; /* bit o: value of operand o; bit 16+o: its gradient */
};

struct topt_op;

struct topt_op_spec {
    const char *name;
    int ndims;
    struct topt_opdim_spec dim[TOPT_MAX_OPDIMS];
    int noperands;
    struct topt_operand_spec operand[TOPT_MAX_OPERANDS];
    struct topt_step forward[TOPT_MAX_STEPS], backward[TOPT_MAX_STEPS];
    /* Units, output dimensions and attributes from the inputs; -1 with an error that names
     * what does not fit.  Fills op->dim, operand units and the output tensor. */
    int (*shape)(struct topt_op *op, struct topt_error *err);
    /* Floating-point operations of one kernel on a local box ('len' by operator dimension,
     * in counts). */
    int64_t (*flops)(const struct topt_op *op, enum topt_kernel k, const int64_t *len);
};

enum topt_activation { TOPT_ACT_RELU, TOPT_ACT_GELU, TOPT_ACT_SILU, TOPT_ACT_TANH };

/* Attributes of every kind in one struct: few, plain, and compared as a whole. */
struct topt_attrs {
    int64_t features; /* linear: output count; embedding: width; swiglu, norm: unused */
    int64_t features_unit;
    int64_t vocab;                     /* embedding */
    int64_t heads, kv_heads, head_dim; /* attention */
    int causal;
    double rope_theta; /* 0: no rotary embedding */
    int activation;    /* enum topt_activation */
    int rms;           /* norm: root mean square, no mean and no bias */
    double eps;
    double init_std; /* 0: the kind's default */
};

enum { TOPT_NO_TENSOR = -1 };

struct topt_operand {
    enum topt_role role; /* the row's, or INPUT where a PARAM is given as a tensor */
    int tensor;          /* graph tensor of an INPUT or OUTPUT, else -1 */
    int present;
    struct topt_dim dim[TOPT_MAX_RANK]; /* global */
};

struct topt_op {
    const struct topt_op_spec *spec;
    const char *name;
    struct topt_attrs attrs;
    int64_t count[TOPT_MAX_OPDIMS]; /* global extents, in counts */
    struct topt_operand operand[TOPT_MAX_OPERANDS];
    int ninputs;
    int input[TOPT_MAX_INPUTS]; /* operand numbers of the INPUTs, in order */
    int output;                 /* operand number of the OUTPUT */
    const struct topt_model *model;
};

struct topt_tensor {
    const char *name;
    int ndim;
    struct topt_dim dim[TOPT_MAX_RANK];
    int producer;       /* operator */
    int nconsumers;     /* uses, counted with repetition */
    int needs_gradient; /* a parameter lies upstream */
};

/* Tensor dimensions of an operand. */
static inline int topt_operand_rank(const struct topt_op *op, int operand)
{
    return op->spec->operand[operand].ndim;
}

/* Operators in an order of execution.  'batch' and 'seq' are part of a model's shapes. */
struct topt_model {
    const char *name;
    int64_t batch, seq, vocab;
    int nops, ntensors;
    struct topt_op *op;
    struct topt_tensor *tensor;
    int loss; /* operator whose output is the loss */
    struct topt_arena *arena;
};

const struct topt_op_spec *topt_op_spec_find(const char *name);
const struct topt_op_spec *topt_op_spec_at(int i); /* NULL past the end */

/* Build a model operator by operator; each call checks shapes at once. */
struct topt_model *topt_model_create(const char *name, int64_t batch, int64_t seq,
                                     struct topt_error *err) TOPT_MUST_CHECK;
void topt_model_destroy(struct topt_model *m);

/* Append an operator on 'ninputs' tensors (numbers as returned before).  Returns its output
 * tensor, or -1.  'attrs' NULL means all zero. */
int topt_model_add(struct topt_model *m, const char *kind, const char *name, int ninputs,
                   const int *inputs, const struct topt_attrs *attrs,
                   struct topt_error *err) TOPT_MUST_CHECK;

/* Check the whole: one loss, every tensor consumed; fills needs_gradient. */
int topt_model_finish(struct topt_model *m, struct topt_error *err) TOPT_MUST_CHECK;

/* Numbers that people check first.  flops_per_sample counts forward and backward. */
struct topt_model_stats {
    int64_t parameters, operators, flops_per_sample, activation_bytes_per_sample;
};
void topt_model_stats(const struct topt_model *m, struct topt_model_stats *ret);

/* Native document "topt-model/1" and back.  New reference / owned model. */
json_t *topt_model_to_json(const struct topt_model *m);
struct topt_model *topt_model_from_json(const json_t *doc,
                                        struct topt_error *err) TOPT_MUST_CHECK;

/* What importing may be told: 0 means the model's own or the default. */
struct topt_import_options {
    int64_t batch, seq;
};

/* A model from text: a native document or a Hugging Face config.json, told apart by
 * content.  'what' names it in messages. */
struct topt_model *topt_model_import(const char *text, size_t len, const char *what,
                                     const struct topt_import_options *options,
                                     struct topt_error *err) TOPT_MUST_CHECK;
/* The same from a file or a directory that holds a config.json. */
struct topt_model *topt_model_load(const char *path,
                                   const struct topt_import_options *options,
                                   struct topt_error *err) TOPT_MUST_CHECK;

#endif
