/* cu.h - what the C side of the CUDA backend asks of its kernels.
 *
 * Read by C and by nvcc alike, so it knows none of the project's other headers: a call
 * is flattened (operands as matrices of rows and columns) and passed to kernels by
 * value.  Every function enqueues on a stream and returns the CUDA runtime's status, 0
 * where all went well.  Thread safety: as the stream. */
#ifndef TOPT_CU_H
#define TOPT_CU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CU_OPERANDS = 16, CU_DIMS = 8, CU_RANK = 4 };

enum cu_activation {
    CU_RELU,
    CU_GELU,
    CU_SILU,
    CU_TANH,
    CU_SIGMOID,
    CU_LEAKY_RELU,
    CU_ELU,
    CU_SOFTPLUS,
    CU_GELU_ERF,
    CU_CLIP,
    CU_HARD_SIGMOID,
    CU_HARD_SWISH,
    CU_SOFTSIGN,
    CU_ABS,
    CU_ERF,
    CU_EXP,
    CU_LOG,
    CU_SQRT,
    CU_RECIPROCAL,
    CU_POWER,
    CU_SIN,
    CU_COS,
    CU_RELU2,
    CU_QUICK_GELU
};

/* A kernel call on local blocks; 'rows' x 'cols' is an operand as a matrix, rows of
 * its last dimension.  NULL where there is no value or gradient. */
struct cu_call {
    int64_t rows[CU_OPERANDS], cols[CU_OPERANDS];
    void *value[CU_OPERANDS], *grad[CU_OPERANDS];
    int64_t off[CU_DIMS], len[CU_DIMS]; /* local box of the operator */
    int64_t batch;                      /* of the box */
    uint32_t adds; /* bit o: the gradient of operand o is added to, else written */
    int activation, rms;
    double alpha, beta;   /* of the activation */
    double factor, shift; /* of scale */
    double eps, width;    /* of norms: whole width of a row */
    double each;          /* of a loss: one over the number of losses */
};

/* X(name): kernels that take a call. */
/* clang-format off */
#define TOPT_CU_KERNELS(X)                                                                 \
    X(embedding_fwd) X(embedding_bwd)                                                      \
    X(bias_fwd) X(bias_bwd) X(position_fwd) X(position_bwd)                                \
    X(variable_fwd) X(variable_bwd) X(copy_fwd) X(copy_bwd)                                \
    X(unary_fwd) X(unary_bwd) X(glu_fwd) X(glu_bwd) X(scale_fwd) X(scale_bwd)              \
    X(add_fwd) X(add_bwd) X(mul_fwd) X(mul_bwd)                                            \
    X(norm_mean) X(norm_var) X(norm_apply) X(norm_bwd_sum) X(norm_bwd_apply)               \
    X(xent_max) X(xent_sum) X(xent_loss) X(xent_bwd)
/* clang-format on */

enum cu_kernel {
#define X(name) CU_##name,
    TOPT_CU_KERNELS(X)
#undef X
        CU_KERNEL_COUNT
};

typedef int cu_launch(void *stream, const struct cu_call *c);

/* Between the products of attention.  Scores are 's' x 's', a head's numbers 'ld'
 * apart. */
struct
    cu_rotate { /* dst = rows of 'head' numbers turned by their positions, sign -1 back */
    void *dst;
    const void *src;
    int64_t ldd, lds, rows, head;
    double theta, sign;
    double factor, context, slow,
        fast; /* scaled angles, as topt_rope_step() takes them */
    int by_pair;
};
struct cu_softmax {
    void *p, *dp, *lse;
    int64_t s, ldl;
    double scale;
    int causal;
};

/* A box between two blocks: 'extent' elements and steps by dimension, outermost first. */
struct cu_box {
    void *dst;
    const void *src;
    int64_t n;
    int64_t extent[CU_RANK], dst_step[CU_RANK], src_step[CU_RANK];
};

/* The C side counts optimizers by what they do. */
enum cu_optimizer { CU_SGD, CU_MOMENTUM, CU_ADAM };
struct cu_update {
    enum cu_optimizer optimizer;
    int64_t n;
    int first;   /* step 1: the master copy starts as the parameter */
    double lr;   /* adam: already over 1 - beta1^step */
    double root; /* adam: 1 / sqrt(1 - beta2^step) */
    double beta1, beta2, eps, scale;
    double decay; /* each step the weight is multiplied by 1 - this */
    void *param, *state[3];
    const void *grad;
};

/* All of one number type. */
struct cu_math {
    cu_launch *kernel[CU_KERNEL_COUNT];
    int (*rotate)(void *stream, const struct cu_rotate *c);
    int (*softmax)(void *stream, const struct cu_softmax *c); /* p: scores, in place */
    int (*probabilities)(void *stream, const struct cu_softmax *c); /* p from lse */
    int (*softmax_bwd)(void *stream, const struct cu_softmax *c);   /* dp from p, dp */
    int (*copy_box)(void *stream, const struct cu_box *c);
    int (*add_box)(void *stream, const struct cu_box *c);
    int (*add)(void *stream, void *dst, const void *src, int64_t n);
    int (*update)(void *stream, const struct cu_update *c);
};
extern const struct cu_math topt_cu_f32, topt_cu_f64, topt_cu_bf16;

#ifdef __cplusplus
}
#endif
#endif
