/* cu.h - what the C side of the CUDA backend asks of its kernels.
 *
 * Read by C and by nvcc alike, so it knows none of the project's other headers: a call
 * is flattened (operands as matrices of rows and columns) and passed to kernels by
 * value.  Every function enqueues on a stream and returns the CUDA runtime's status, 0
 * where all went well.  Thread safety: as the stream. */
#ifndef TOPT_CU_H
#define TOPT_CU_H

#include "operands.h"

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
    uint32_t adds;       /* bit o: the gradient of operand o is added to, else written */
    uint32_t wide_grads; /* bit o: the gradient of operand o is in f32 under bf16 */
    int activation, rms, gated, log_of;
    int64_t at;           /* in a loop: the count it is at */
    double alpha, beta;   /* of the activation */
    double factor, shift; /* of scale */
    double eps, width;    /* of norms: whole width of a row */
    double features;      /* whole width of operand 0 */
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
    X(xent_max) X(xent_sum) X(xent_loss) X(xent_bwd)                                       \
    X(attention_weight) X(attention_merge)                                                       \
    X(weigh_fwd) X(weigh_bwd)                                                              \
    X(softmax_sum) X(softmax_fwd) X(softmax_dot) X(softmax_bwd) X(mse_fwd) X(mse_bwd)      \
    X(experts_act) X(experts_bwd_remake) X(experts_bwd_act)                                \
    X(logistic_fwd) X(logistic_bwd)                                                        \
    X(lstm_fwd) X(lstm_bwd) X(gru_fwd) X(gru_bwd) X(rnn_fwd) X(rnn_bwd)
/* clang-format on */

enum cu_kernel {
#define X(name) CU_##name,
    TOPT_CU_KERNELS(X)
#undef X
        CU_KERNEL_COUNT
};

typedef int cu_launch(void *stream, const struct cu_call *c);

/* Rows of heads rotated by their positions; sign -1 rotates back.  Of each head of 'width'
 * numbers number j and number j + pairs, for j below 'pairs'; the rest is copied.  Row r is
 * at position first + r modulo 'period'.  'heads' follow each other; of 'groups' of them (0: one)
 * one starts dst_group, src_group after the other. */
struct cu_rotate {
    void *dst;
    const void *src; /* may be dst */
    int wide_src;    /* under bf16: src is in f32 */
    int64_t ldd, lds, rows, heads, width, pairs, first, period;
    int64_t groups, dst_group, src_group;
    double theta, sign, scale;
    double factor, context, slow,
        fast; /* scaled angles, as topt_rope_step() takes them */
    int by_pair;
};

/* Which of 'keys' local keys a query sees: query i those up to i + behind where causal, of them
 * the last 'window', and those of its own run of 'chunk', where these are set; and none but the
 * sample's keys [filled, end), the rest being padding. */
struct cu_mask {
    int64_t keys, behind, window, chunk, first_key, filled, end;
    int causal;
};

/* 'n' queries from 'first' on, and the keys [from, from + width) of the local ones.  p and dp
 * are [n, width] of what statistics are in, lse and delta 'ldl' apart.  With a table of
 * relative positions: 'side' buckets on each side. */
struct cu_scores {
    void *p, *dp, *lse, *delta, *drp;
    const void *rp;
    int64_t n, width, first, from, ldl, ldrp;
    int64_t side, distance;
    struct cu_mask mask;
    double scale, cap, slope; /* slope: added for each position of distance */
    int whole, sums_only;     /* whole: all keys are here */
};

/* Rows of heads: how far, in numbers, from one sample, group of heads, head and row to the
 * next. */
struct cu_heads {
    void *p;
    int64_t sample, group, head, row;
};

/* Attention of all heads at once, 'd' numbers of keys and 'vd' of values each.  Forward writes y
 * and lse.  flash_rows writes delta where 'sums' asks for it, else reads it, and then dq where
 * that is given; flash_keys writes dk and dv.  'vectors': rows may be read in 16 bytes at once.
 * bf16 alone, statistics f32; d and vd at most CU_FLASH_WIDTH. */
enum { CU_FLASH_WIDTH = 128 };
struct cu_flash {
    struct cu_heads q, k, v, y, dy, dq, dk, dv, lse, delta;
    struct cu_mask mask;
    int64_t batch, groups, heads, s, d, vd; /* heads: of a group */
    double scale, cap;
    int sums, vectors;
};

/* dst[rows, cols] = src, from what statistics are in. */
struct cu_settle {
    void *dst;
    const void *src;
    int64_t rows, cols, ldd, lds;
};

/* ---- images -------------------------------------------------------------------------- */

/* Patches of an image's channels as rows of a matrix, one for each channel and place. */
struct cu_patches {
    void *col, *x;
    int64_t channels;
    struct windows w;
};

/* Divisors of means: with padding counted, extents are those of the padded image, where
 * this rank's first window starts at 'first'. */
struct cu_pool {
    void *x, *y, *which; /* which NULL: means */
    int64_t planes;
    struct windows w;
    int count_pad;
    int64_t first_row, first_col, padded_h, padded_w;
};

/* Norm by neighbouring channels: of those seen this rank's start at 'own'. */
struct cu_lrn {
    const void *x, *dy;
    void *y; /* forward: the output; backward: the gradient of what is seen */
    double alpha, beta, bias;
    int64_t batch, channels, seen, plane, own, before, after;
};

/* Transposed convolution: windows over the output, one for each pixel of the input. */
struct cu_spread {
    void *x, *y, *weight;
    int wide_weight;
    struct windows w;
    int64_t batch, in, out;
};

/* Along rows (0) and columns (1): extents of the whole images, local ones, where they
 * start. */
struct cu_resize {
    void *x, *y;
    int64_t planes, in[2], out[2], seen[2], made[2], first_seen[2], first_made[2];
    int linear, corners;
};

/* ---- channels ------------------------------------------------------------------------ */

/* Numbers as [outer, channels, inner]; of means and variances each channel has one, or
 * each sample's group of 'unit' channels. */
struct cu_channels {
    const void *x, *dy, *gain, *bias;
    void *y, *mean, *var, *s1, *s2, *dgain, *dbias;
    int wide_gain, wide_bias;                     /* gradients */
    int64_t outer, channels, inner, groups, unit; /* groups 0: a channel each */
    int64_t each;                                 /* numbers of gain by channel, 1 or 0 */
    double numbers;                               /* of one mean, on all ranks */
    double eps;
};

/* ---- sums over one dimension --------------------------------------------------------- */

/* y[o, i] = factor times the sum of x[o, k, i] over n; or the reverse. */
struct cu_reduce {
    void *x, *y;
    int64_t outer, n, inner;
    double factor;
};

/* dst[j] += sum over rows of x[., j], rows 'ld' apart. */
struct cu_columns {
    void *dst;
    const void *x;
    int64_t rows, cols, ld;
    int wide_dst;
};

/* ---- dropout ------------------------------------------------------------------------- */

struct cu_drop {
    void *to;
    const void *from;
    int64_t n, extent[CU_RANK], first[CU_RANK], whole[CU_RANK], first_sample;
    uint64_t stream, limit;
    double scale;
};

/* ---- mixtures of experts ------------------------------------------------------------- */

enum { CU_EXPERTS = 1024 };

struct cu_route {
    const void *logit, *correction, *dg;
    void *g, *dlogit;
    uint8_t *kept; /* by token and expert */
    void *weight;  /* the same, of what statistics are in */
    int64_t batch, seq, experts, slots, top_k, groups, top_groups;
    int sigmoid, unnormalized;
    double factor;
};

/* Slots [b, e, slots, d], tokens [b, s, d], weights [b, s, e]; 'token' by slot, 'slot' by
 * weight, -1 for none. */
struct cu_slots {
    const void *from, *g, *dz;
    void *to, *dg;
    int32_t *token, *slot;
    int64_t batch, experts, slots, seq, d;
};

/* ---- recurrences by chunks ----------------------------------------------------------- */

/* Some chunks of some samples at once.  A pair (k, b) is chunk first_chunk + k of sample
 * first_sample + b, a tile (k, b, h) one head of it, in this order; a group's tile
 * likewise.  A tile has 'len' positions, zeros where the sequence is over. */
struct cu_span {
    struct scan s;
    int64_t first_sample, samples, first_chunk, chunks, len;
    int64_t first_group, groups; /* that heads here have keys of */
};

/* A head's numbers from an operand into tiles. */
struct cu_tiles {
    struct cu_span at;
    const void *from;
    void *tile;
};

/* Chunks [from, to) of a span: each tile gets the carried matrix, and so does 'kept' where
 * it is given; then the carried one decays over the chunk and 'added' is added. */
struct cu_carry {
    struct cu_span at;
    int64_t from, to;
    int backward; /* the last one first */
    const double *sum;
    const void *added;
    void *carry, *tile, *kept;
};

/* of_end[one a tile] = the decay over the chunk times the product of state and slope. */
struct cu_ends {
    struct cu_span at;
    const double *sum;
    const void *state, *slope;
    void *of_end;
};

/* Operands, then tiles [len, p or n], one after the other, and what there is one of for a
 * position and head: [pair, len, heads].  k_ssd.h says what they are. */
struct cu_ssd {
    struct cu_span at;
    const void *x, *dt, *bc, *a_log, *d, *bias, *dy;
    void *y, *dx, *ddt, *dbc, *da_log, *dd, *dbias;
    int wide_a_log, wide_d, wide_bias; /* gradients */
    double least, most;                /* of a step; most 0: any */
    double *step, *sum, *slope;
    void *keys, *queries, *scores;                                /* of groups */
    void *tile_x, *tile_dy, *tile_k, *tile_q, *m, *state, *carry; /* of heads */
    void *made, *slopes, *tile_y, *dm, *dq, *dk, *dscores, *gk, *gq;
    void *own, *later, *weight, *direct, *of_end, *parts;
};

struct cu_delta {
    struct cu_span at;
    const void *v, *qk, *beta, *gate, *a_log, *bias, *dy;
    void *y, *dv, *dqk, *dbeta, *dgate, *da_log, *dbias;
    int wide_a_log, wide_bias; /* gradients */
    double eps, scale;
    double *gates, *slope, *sum, *share;                  /* share: the sigmoid of beta */
    void *keys, *queries, *scores_k, *scores_q;           /* of groups */
    void *k_in, *k_out, *q_out, *a, *inverse, *round, *p; /* of heads */
    void *values, *u, *wide_u, *w, *state, *carry, *tile_y;
    void *tile_dy, *old, *slopes, *made, *du, *wide_du, *back, *da, *dp;
    void *dq_out, *dk_in, *dk_out, *dscores_k, *dscores_q, *gk, *gq;
    void *own, *later, *weight, *of_beta, *of_end, *parts;
};

/* Heads are single numbers of x, with a state of n numbers each. */
struct cu_selective {
    struct cu_span at;
    const void *x, *dt, *b, *c, *a_log, *d, *dy; /* dy: backward */
    void *y, *dx, *ddt, *db, *dc, *da_log, *dd, *states;
    int wide_a_log, wide_d; /* gradients */
    double *total;          /* of the steps of a chunk */
    void *step, *made, *carry, *seen, *slope, *of_a, *of_d;
};

struct cu_causal {
    struct causal s;
    const void *x, *w, *bias, *dy;
    void *y, *dx, *dw;
    int wide_w;
};

/* ---- tables ------------------------------------------------------------------------- */

enum { CU_TABLES = 64, CU_VECTORS_OF = 4 };

/* Bags of rows of several tables; of each table's rows 'held' from 'first' on are here, after
 * 'before' rows of others.  'key': of lookups, 'padded' to a power of two. */
struct cu_bag {
    const int32_t *ids;
    void *w, *y;
    int wide_w;
    int64_t rows, d, lookups, tables, padded;
    uint64_t *key;
    int64_t first[CU_TABLES], held[CU_TABLES], before[CU_TABLES];
};

/* 'n' vectors of each of 'rows' positions, count[o] of them in x[o]. */
struct cu_interact {
    const void *x[CU_VECTORS_OF];
    void *y, *dx[CU_VECTORS_OF];
    int64_t rows, n, d, count[CU_VECTORS_OF];
};

/* X(name, type): kernels that take a structure of their own. */
/* clang-format off */
#define TOPT_CU_SPECIAL(X)                                                                 \
    X(patches_get, patches) X(patches_add, patches)                                        \
    X(pool_get, pool) X(pool_put, pool) X(lrn_get, lrn) X(lrn_put, lrn)                    \
    X(spread_y, spread) X(spread_x, spread) X(spread_weight, spread)                       \
    X(resize_get, resize) X(resize_put, resize)                                            \
    X(gain_get, channels) X(gain_put, channels) X(prelu_get, channels)                     \
    X(prelu_put, channels) X(channel_bias_get, channels) X(channel_bias_put, channels)     \
    X(channels_mean, channels) X(channels_var, channels) X(channels_apply, channels)       \
    X(channels_sums, channels) X(channels_slopes, channels)                                \
    X(reduce_get, reduce) X(reduce_put, reduce) X(drop_out, drop)                          \
    X(add_columns, columns)                                                                \
    X(route_tokens, route) X(route_slopes, route)                                          \
    X(slots_find, slots) X(slots_fill, slots) X(slots_return, slots)                       \
    X(slots_combine, slots) X(slots_weigh, slots) X(slots_weights, slots)                  \
    X(tiles_get, tiles) X(states_get, tiles) X(carry_on, carry) X(carry_ends, ends)        \
    X(ssd_steps, ssd) X(ssd_tiles, ssd) X(ssd_pairs, ssd) X(ssd_out, ssd)                  \
    X(ssd_slopes, ssd) X(ssd_sums, ssd) X(ssd_out_back, ssd) X(ssd_steps_back, ssd)        \
    X(ssd_keys_back, ssd) X(delta_gates, delta) X(delta_tiles, delta)                      \
    X(delta_pairs, delta) X(delta_values, delta) X(delta_out, delta)                       \
    X(delta_out_back, delta) X(delta_slopes, delta) X(delta_sums, delta)                   \
    X(delta_gates_back, delta) X(delta_keys_back, delta)                                   \
    X(selective_steps, selective) X(selective_made, selective)                            \
    X(selective_made_back, selective) X(selective_carry, selective)                       \
    X(selective_out, selective) X(selective_back, selective)                              \
    X(bag_get, bag) X(bag_put, bag) X(interact_get, interact) X(interact_put, interact)    \
    X(causal_conv_get, causal) X(causal_conv_put, causal) X(causal_conv_weights, causal)   \
    X(flash_forward, flash) X(flash_rows, flash) X(flash_keys, flash)
/* clang-format on */

/* ---- the rest ------------------------------------------------------------------------ */

/* A box between two blocks: 'extent' elements and steps by dimension, outermost first. */
struct cu_box {
    void *dst;
    const void *src;
    int64_t n;
    int64_t extent[CU_RANK], dst_step[CU_RANK], src_step[CU_RANK];
};

/* The C side counts optimizers by what they do. */
enum cu_optimizer { CU_SGD, CU_MOMENTUM, CU_ADAM, CU_ROW_WISE_ADAGRAD };
struct cu_update {
    enum cu_optimizer optimizer;
    int64_t n;
    int first; /* step 1: the master copy starts as the parameter */
    int wide_grad;
    double lr;   /* adam: already over 1 - beta1^step */
    double root; /* adam: 1 / sqrt(1 - beta2^step) */
    double beta1, beta2, eps, scale;
    double decay; /* each step the weight is multiplied by 1 - this */
    void *param, *state[3];
    const void *grad;
    int lazy;           /* where the gradient is 0 nothing changes */
    const int32_t *row; /* the gradient is that of these rows; NULL: of all */
    int64_t rows, cols;
    const void *squares; /* of rows, over all ranks; NULL: they are whole here */
    double whole_cols;
};

/* All of one number type. */
struct cu_math {
    cu_launch *kernel[CU_KERNEL_COUNT];
    int (*rotate)(void *stream, const struct cu_rotate *c);
    int (*softmax)(void *stream, const struct cu_scores *c); /* p: scores, in place */
    int (*again)(void *stream, const struct cu_scores *c);   /* p from lse */
    int (*slopes)(void *stream, const struct cu_scores *c);  /* dp from p, dp */
    int (*table_slopes)(void *stream, const struct cu_scores *c); /* drp += from dp */
    int (*narrow)(void *stream,
                  const struct cu_scores *c); /* p, dp as products take them */
    int (*settle)(void *stream, const struct cu_settle *c);
#define X(name, type) int (*name)(void *stream, const struct cu_##type *c);
    TOPT_CU_SPECIAL(X)
#undef X
    int (*copy_box)(void *stream, const struct cu_box *c);
    int (*add_box)(void *stream, const struct cu_box *c);
    int (*add)(void *stream, void *dst, const void *src, int64_t n);
    int (*add_wide)(void *stream, void *dst, const void *src, int64_t n);
    int (*update)(void *stream, const struct cu_update *c);
};
extern const struct cu_math topt_cu_f32, topt_cu_f64, topt_cu_bf16;

#ifdef __cplusplus
}
#endif
#endif
