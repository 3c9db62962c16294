/* device.c - a GPU as a device: memory in the order of a stream, and the kernels by
 * number. */
#include "cuda.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((int)CU_OPERANDS == TOPT_MAX_OPERANDS && (int)CU_DIMS == TOPT_MAX_OPDIMS &&
                   (int)CU_RANK == TOPT_MAX_RANK,
               "cu.h repeats limits");
_Static_assert((int)CU_RELU == TOPT_ACT_RELU && (int)CU_GELU == TOPT_ACT_GELU &&
                   (int)CU_SILU == TOPT_ACT_SILU && (int)CU_TANH == TOPT_ACT_TANH &&
                   (int)CU_SIGMOID == TOPT_ACT_SIGMOID &&
                   (int)CU_LEAKY_RELU == TOPT_ACT_LEAKY_RELU &&
                   (int)CU_ELU == TOPT_ACT_ELU && (int)CU_SOFTPLUS == TOPT_ACT_SOFTPLUS &&
                   (int)CU_GELU_ERF == TOPT_ACT_GELU_ERF &&
                   (int)CU_CLIP == TOPT_ACT_CLIP &&
                   (int)CU_HARD_SIGMOID == TOPT_ACT_HARD_SIGMOID &&
                   (int)CU_HARD_SWISH == TOPT_ACT_HARD_SWISH &&
                   (int)CU_SOFTSIGN == TOPT_ACT_SOFTSIGN && (int)CU_ABS == TOPT_ACT_ABS &&
                   (int)CU_ERF == TOPT_ACT_ERF && (int)CU_EXP == TOPT_ACT_EXP &&
                   (int)CU_LOG == TOPT_ACT_LOG && (int)CU_SQRT == TOPT_ACT_SQRT &&
                   (int)CU_RECIPROCAL == TOPT_ACT_RECIPROCAL &&
                   (int)CU_POWER == TOPT_ACT_POWER && (int)CU_SIN == TOPT_ACT_SIN &&
                   (int)CU_COS == TOPT_ACT_COS && (int)CU_RELU2 == TOPT_ACT_RELU2 &&
                   (int)CU_QUICK_GELU == TOPT_ACT_QUICK_GELU &&
                   (int)CU_QUICK_GELU + 1 == TOPT_ACT_COUNT,
               "cu.h repeats activations");

/* ---- memory ------------------------------------------------------------------------ */

static int cuda_zero(struct topt_device *d, void *p, int64_t bytes,
                     struct topt_error *err)
{
    if (bytes <= 0 || dev_of(d)->dry)
        return 0;
    return topt_cuda_enter(d, err)
               ? -1
               : topt_cuda_check(cudaMemsetAsync(p, 0, (size_t)bytes, dev_of(d)->stream),
                                 "zeroing", err);
}

static int cuda_sync(struct topt_device *d, struct topt_error *err)
{
    return topt_cuda_check(cudaStreamSynchronize(dev_of(d)->stream), "work on the GPU",
                           err);
}

static int cuda_memory(struct topt_device *d, int64_t *ret_free, int64_t *ret_all,
                       struct topt_error *err)
{
    size_t unused = 0, all = 0;
    uint64_t kept = 0, used = 0;
    cudaMemPool_t pool;
    if (topt_cuda_enter(d, err))
        return -1;
    cudaError_t rc = cudaMemGetInfo(&unused, &all);
    if (!rc)
        rc = cudaDeviceGetDefaultMemPool(&pool, dev_of(d)->index);
    if (!rc)
        rc = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &kept);
    if (!rc)
        rc = cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
    if (topt_cuda_check(rc, "memory", err))
        return -1;
    /* what this process freed stays with it, and is there for it */
    *ret_free = (int64_t)unused + (int64_t)(kept - used);
    *ret_all = (int64_t)all;
    return 0;
}

static int transfer(struct topt_device *d, void *dst, const void *src, int64_t bytes,
                    enum cudaMemcpyKind kind, struct topt_error *err)
{
    if (bytes <= 0)
        return 0;
    if (topt_cuda_enter(d, err))
        return -1;
    cudaError_t rc = cudaMemcpyAsync(dst, src, (size_t)bytes, kind, dev_of(d)->stream);
    return topt_cuda_check(rc, "copy", err) || cuda_sync(d, err) ? -1 : 0;
}

static int cuda_write(struct topt_device *d, void *dst, const void *host, int64_t bytes,
                      struct topt_error *err)
{
    return transfer(d, dst, host, bytes, cudaMemcpyHostToDevice, err);
}

static int cuda_read(struct topt_device *d, void *host, const void *src, int64_t bytes,
                     struct topt_error *err)
{
    return transfer(d, host, src, bytes, cudaMemcpyDeviceToHost, err);
}

static int cuda_alloc_host(struct topt_device *d, int64_t bytes, void **ret,
                           struct topt_error *err)
{
    return topt_cuda_enter(d, err)
               ? -1
               : topt_cuda_check(cudaMallocHost(ret, (size_t)(bytes > 0 ? bytes : 1)),
                                 "pinned memory", err);
}

static void cuda_release_host(struct topt_device *d, void *p)
{
    (void)d;
    cudaFreeHost(p);
}

/* ---- boxes and sums ---------------------------------------------------------------- */

/* A region of two blocks as extents and steps, and where it starts in each. */
static struct cu_box box_of(const struct topt_box_copy *c)
{
    const struct topt_shape *s = c->shape;
    struct cu_box b = {.n = 1};
    int64_t src_step = 1, dst_step = 1, src_at = 0, dst_at = 0;
    for (int i = 0; i < CU_RANK; i++)
        b.extent[i] = 1;
    for (int i = s->ndim - 1; i >= 0; i--) {
        int to = CU_RANK - s->ndim + i;
        int64_t unit = s->dim[i].unit;
        b.extent[to] = c->region.len[i] * unit;
        b.src_step[to] = src_step;
        b.dst_step[to] = dst_step;
        src_at += (c->region.off[i] - c->src_box.off[i]) * unit * src_step;
        dst_at += (c->region.off[i] - c->dst_box.off[i]) * unit * dst_step;
        src_step *= c->src_box.len[i] * unit;
        dst_step *= c->dst_box.len[i] * unit;
        b.n *= b.extent[to];
    }
    if (b.n <= 0)
        return b;
    b.src = (const char *)c->src + src_at * c->element_bytes;
    b.dst = (char *)c->dst + dst_at * c->element_bytes;
    return b;
}

typedef int box_kernel(void *stream, const struct cu_box *c);

/* Of several tables one after the other. */
static int run_boxes(struct topt_device *d, const struct topt_box_copy *c,
                     box_kernel *kernel, const char *what, struct topt_error *err)
{
    int64_t n, first = topt_box_tables(c->shape, &c->region, &n);
    if (topt_cuda_enter(d, err))
        return -1;
    for (int64_t k = first; k < first + n; k++) {
        struct topt_shape one;
        struct topt_box_copy t = *c;
        if (c->shape->rows)
            t = copy_of_table(c, k, &one);
        struct cu_box b = box_of(&t);
        if (b.n > 0 &&
            topt_cuda_check((cudaError_t)kernel(dev_of(d)->stream, &b), what, err))
            return -1;
    }
    return 0;
}

static int cuda_copy_box(struct topt_device *d, const struct topt_box_copy *c,
                         struct topt_error *err)
{
    const struct cu_math *by_size = c->element_bytes == 8   ? &topt_cu_f64
                                    : c->element_bytes == 4 ? &topt_cu_f32
                                                            : &topt_cu_bf16;
    return run_boxes(d, c, by_size->copy_box, "copy of a box", err);
}

static int cuda_add_box(struct topt_device *d, const struct topt_box_copy *c,
                        struct topt_error *err)
{
    return run_boxes(d, c, dev_of(d)->math->add_box, "sum of a box", err);
}

static int cuda_add(struct topt_device *d, void *dst, const void *src, int64_t n,
                    int wide, struct topt_error *err)
{
    struct cuda_device *c = dev_of(d);
    if (topt_cuda_enter(d, err))
        return -1;
    int rc = (wide ? c->math->add_wide : c->math->add)(c->stream, dst, src, n);
    return topt_cuda_check((cudaError_t)rc, "sum", err);
}

/* ---- kernels ----------------------------------------------------------------------- */

/* 1 + enum cu_kernel; 0: not one of them. */
static const uint8_t plain[TOPT_KERNEL_COUNT] = {
    [TOPT_K_EMBEDDING_FWD] = 1 + CU_embedding_fwd,
    [TOPT_K_EMBEDDING_BWD] = 1 + CU_embedding_bwd,
    [TOPT_K_BIAS_FWD] = 1 + CU_bias_fwd,
    [TOPT_K_BIAS_BWD] = 1 + CU_bias_bwd,
    [TOPT_K_POSITION_FWD] = 1 + CU_position_fwd,
    [TOPT_K_POSITION_BWD] = 1 + CU_position_bwd,
    [TOPT_K_VARIABLE_FWD] = 1 + CU_variable_fwd,
    [TOPT_K_VARIABLE_BWD] = 1 + CU_variable_bwd,
    [TOPT_K_UNARY_FWD] = 1 + CU_unary_fwd,
    [TOPT_K_UNARY_BWD] = 1 + CU_unary_bwd,
    [TOPT_K_GLU_FWD] = 1 + CU_glu_fwd,
    [TOPT_K_GLU_BWD] = 1 + CU_glu_bwd,
    [TOPT_K_SCALE_FWD] = 1 + CU_scale_fwd,
    [TOPT_K_SCALE_BWD] = 1 + CU_scale_bwd,
    [TOPT_K_COPY_FWD] = 1 + CU_copy_fwd,
    [TOPT_K_COPY_BWD] = 1 + CU_copy_bwd,
    [TOPT_K_ADD_FWD] = 1 + CU_add_fwd,
    [TOPT_K_ADD_BWD] = 1 + CU_add_bwd,
    [TOPT_K_MUL_FWD] = 1 + CU_mul_fwd,
    [TOPT_K_MUL_BWD] = 1 + CU_mul_bwd,
    [TOPT_K_NORM_MEAN] = 1 + CU_norm_mean,
    [TOPT_K_NORM_VAR] = 1 + CU_norm_var,
    [TOPT_K_NORM_APPLY] = 1 + CU_norm_apply,
    [TOPT_K_NORM_BWD_SUM] = 1 + CU_norm_bwd_sum,
    [TOPT_K_NORM_BWD_APPLY] = 1 + CU_norm_bwd_apply,
    [TOPT_K_XENT_MAX] = 1 + CU_xent_max,
    [TOPT_K_XENT_SUM] = 1 + CU_xent_sum,
    [TOPT_K_XENT_LOSS] = 1 + CU_xent_loss,
    [TOPT_K_XENT_BWD] = 1 + CU_xent_bwd,
    [TOPT_K_ATTENTION_WEIGHT] = 1 + CU_attention_weight,
    [TOPT_K_ATTENTION_MERGE] = 1 + CU_attention_merge,
    [TOPT_K_WEIGH_FWD] = 1 + CU_weigh_fwd,
    [TOPT_K_WEIGH_BWD] = 1 + CU_weigh_bwd,
    [TOPT_K_SOFTMAX_SUM] = 1 + CU_softmax_sum,
    [TOPT_K_SOFTMAX_FWD] = 1 + CU_softmax_fwd,
    [TOPT_K_SOFTMAX_DOT] = 1 + CU_softmax_dot,
    [TOPT_K_SOFTMAX_BWD] = 1 + CU_softmax_bwd,
    [TOPT_K_MSE_FWD] = 1 + CU_mse_fwd,
    [TOPT_K_MSE_BWD] = 1 + CU_mse_bwd,
    [TOPT_K_EXPERTS_ACT] = 1 + CU_experts_act,
    [TOPT_K_EXPERTS_BWD_REMAKE] = 1 + CU_experts_bwd_remake,
    [TOPT_K_EXPERTS_BWD_ACT] = 1 + CU_experts_bwd_act,
    [TOPT_K_LOGISTIC_FWD] = 1 + CU_logistic_fwd,
    [TOPT_K_LOGISTIC_BWD] = 1 + CU_logistic_bwd,
    [TOPT_K_LSTM_FWD] = 1 + CU_lstm_fwd,
    [TOPT_K_LSTM_BWD] = 1 + CU_lstm_bwd,
    [TOPT_K_GRU_FWD] = 1 + CU_gru_fwd,
    [TOPT_K_GRU_BWD] = 1 + CU_gru_bwd,
    [TOPT_K_RNN_FWD] = 1 + CU_rnn_fwd,
    [TOPT_K_RNN_BWD] = 1 + CU_rnn_bwd,
};

static cuda_kernel *const product[TOPT_KERNEL_COUNT] = {
    [TOPT_K_LINEAR_FWD] = topt_cuda_linear_fwd,
    [TOPT_K_LINEAR_BWD_X] = topt_cuda_linear_bwd_x,
    [TOPT_K_LINEAR_BWD_W] = topt_cuda_linear_bwd_w,
    [TOPT_K_ATTENTION_FWD] = topt_cuda_attention_fwd,
    [TOPT_K_ATTENTION_DELTA] = topt_cuda_attention_delta,
    [TOPT_K_ATTENTION_BWD] = topt_cuda_attention_bwd,
    [TOPT_K_ROTARY_FWD] = topt_cuda_rotary_fwd,
    [TOPT_K_ROTARY_BWD] = topt_cuda_rotary_bwd,
    [TOPT_K_CONV_FWD] = topt_cuda_conv_fwd,
    [TOPT_K_CONV_BWD_W] = topt_cuda_conv_bwd_w,
    [TOPT_K_CONV_BWD_X] = topt_cuda_conv_bwd_x,
    [TOPT_K_POOL_FWD] = topt_cuda_pool_fwd,
    [TOPT_K_POOL_BWD] = topt_cuda_pool_bwd,
    [TOPT_K_LRN_FWD] = topt_cuda_lrn_fwd,
    [TOPT_K_LRN_BWD] = topt_cuda_lrn_bwd,
    [TOPT_K_RESIZE_FWD] = topt_cuda_resize_fwd,
    [TOPT_K_RESIZE_BWD] = topt_cuda_resize_bwd,
    [TOPT_K_CONV_TRANSPOSE_FWD] = topt_cuda_conv_transpose_fwd,
    [TOPT_K_CONV_TRANSPOSE_BWD_W] = topt_cuda_conv_transpose_bwd_w,
    [TOPT_K_CONV_TRANSPOSE_BWD_X] = topt_cuda_conv_transpose_bwd_x,
    [TOPT_K_GAIN_FWD] = topt_cuda_gain_fwd,
    [TOPT_K_GAIN_BWD] = topt_cuda_gain_bwd,
    [TOPT_K_PRELU_FWD] = topt_cuda_prelu_fwd,
    [TOPT_K_PRELU_BWD] = topt_cuda_prelu_bwd,
    [TOPT_K_CHANNEL_BIAS_FWD] = topt_cuda_channel_bias_fwd,
    [TOPT_K_CHANNEL_BIAS_BWD] = topt_cuda_channel_bias_bwd,
    [TOPT_K_BN_MEAN] = topt_cuda_bn_mean,
    [TOPT_K_BN_VAR] = topt_cuda_bn_var,
    [TOPT_K_BN_APPLY] = topt_cuda_bn_apply,
    [TOPT_K_BN_BWD_SUM] = topt_cuda_bn_bwd_sum,
    [TOPT_K_BN_BWD_APPLY] = topt_cuda_bn_bwd_apply,
    [TOPT_K_GN_MEAN] = topt_cuda_gn_mean,
    [TOPT_K_GN_VAR] = topt_cuda_gn_var,
    [TOPT_K_GN_APPLY] = topt_cuda_gn_apply,
    [TOPT_K_GN_BWD_SUM] = topt_cuda_gn_bwd_sum,
    [TOPT_K_GN_BWD_APPLY] = topt_cuda_gn_bwd_apply,
    [TOPT_K_GLOBAL_POOL_FWD] = topt_cuda_reduce_fwd,
    [TOPT_K_GLOBAL_POOL_BWD] = topt_cuda_reduce_bwd,
    [TOPT_K_REDUCE_SEQUENCE_FWD] = topt_cuda_reduce_fwd,
    [TOPT_K_REDUCE_SEQUENCE_BWD] = topt_cuda_reduce_bwd,
    [TOPT_K_REDUCE_FEATURES_FWD] = topt_cuda_reduce_fwd,
    [TOPT_K_REDUCE_FEATURES_BWD] = topt_cuda_reduce_bwd,
    [TOPT_K_TOKENS_FWD] = topt_cuda_tokens_fwd,
    [TOPT_K_TOKENS_BWD] = topt_cuda_tokens_bwd,
    [TOPT_K_UNTOKENS_FWD] = topt_cuda_untokens_fwd,
    [TOPT_K_UNTOKENS_BWD] = topt_cuda_untokens_bwd,
    [TOPT_K_SLICE_FWD] = topt_cuda_slice_fwd,
    [TOPT_K_SLICE_BWD] = topt_cuda_slice_bwd,
    [TOPT_K_SHUFFLE_FWD] = topt_cuda_shuffle_fwd,
    [TOPT_K_SHUFFLE_BWD] = topt_cuda_shuffle_bwd,
    [TOPT_K_CONCAT_FWD] = topt_cuda_concat_fwd,
    [TOPT_K_CONCAT_BWD] = topt_cuda_concat_bwd,
    [TOPT_K_TRANSPOSE_FWD] = topt_cuda_transpose_fwd,
    [TOPT_K_TRANSPOSE_BWD] = topt_cuda_transpose_bwd,
    [TOPT_K_SELECT_FWD] = topt_cuda_select_fwd,
    [TOPT_K_SELECT_BWD] = topt_cuda_select_bwd,
    [TOPT_K_PREPEND_FWD] = topt_cuda_prepend_fwd,
    [TOPT_K_PREPEND_BWD] = topt_cuda_prepend_bwd,
    [TOPT_K_REVERSE_FWD] = topt_cuda_reverse_fwd,
    [TOPT_K_REVERSE_BWD] = topt_cuda_reverse_bwd,
    [TOPT_K_DROPOUT_FWD] = topt_cuda_dropout_fwd,
    [TOPT_K_DROPOUT_BWD] = topt_cuda_dropout_bwd,
    [TOPT_K_ROUTE_FWD] = topt_cuda_route_fwd,
    [TOPT_K_ROUTE_BWD] = topt_cuda_route_bwd,
    [TOPT_K_DISPATCH_FWD] = topt_cuda_dispatch_fwd,
    [TOPT_K_DISPATCH_BWD] = topt_cuda_dispatch_bwd,
    [TOPT_K_COMBINE_FWD] = topt_cuda_combine_fwd,
    [TOPT_K_COMBINE_BWD] = topt_cuda_combine_bwd,
    [TOPT_K_EXPERTS_UP] = topt_cuda_experts_up,
    [TOPT_K_EXPERTS_DOWN] = topt_cuda_experts_down,
    [TOPT_K_EXPERTS_BWD_DOWN] = topt_cuda_experts_bwd_down,
    [TOPT_K_EXPERTS_BWD_A] = topt_cuda_experts_bwd_a,
    [TOPT_K_EXPERTS_BWD_UP] = topt_cuda_experts_bwd_up,
    [TOPT_K_EXPERTS_BWD_X] = topt_cuda_experts_bwd_x,
    [TOPT_K_RECURRENT_FWD] = topt_cuda_recurrent_fwd,
    [TOPT_K_RECURRENT_BWD_H] = topt_cuda_recurrent_bwd_h,
    [TOPT_K_RECURRENT_BWD_W] = topt_cuda_recurrent_bwd_w,
    [TOPT_K_SSD_FWD] = topt_cuda_ssd_fwd,
    [TOPT_K_SSD_BWD] = topt_cuda_ssd_bwd,
    [TOPT_K_DELTA_FWD] = topt_cuda_delta_fwd,
    [TOPT_K_DELTA_BWD] = topt_cuda_delta_bwd,
    [TOPT_K_SELECTIVE_FWD] = topt_cuda_selective_fwd,
    [TOPT_K_SELECTIVE_BWD] = topt_cuda_selective_bwd,
    [TOPT_K_EMBEDDING_BAG_FWD] = topt_cuda_embedding_bag_fwd,
    [TOPT_K_EMBEDDING_BAG_BWD] = topt_cuda_embedding_bag_bwd,
    [TOPT_K_INTERACT_FWD] = topt_cuda_interact_fwd,
    [TOPT_K_INTERACT_BWD] = topt_cuda_interact_bwd,
    [TOPT_K_CAUSAL_CONV_FWD] = topt_cuda_causal_conv_fwd,
    [TOPT_K_CAUSAL_CONV_BWD] = topt_cuda_causal_conv_bwd,
};

static struct cu_call flatten(const struct topt_kernel_call *c)
{
    const struct topt_op *op = c->op;
    struct cu_call f = {.batch = c->len[0],
                        .wide_grads = c->wide_grads,
                        .activation = op->attrs->activation,
                        .rms = op->attrs->rms,
                        .gated = op->attrs->gated,
                        .log_of = op->attrs->log,
                        .at = c->at,
                        .alpha = op->attrs->alpha,
                        .beta = op->attrs->beta,
                        .factor = op->attrs->factor,
                        .shift = op->attrs->shift,
                        .eps = op->attrs->eps};
    memcpy(f.off, c->off, sizeof f.off);
    memcpy(f.len, c->len, sizeof f.len);
    memcpy(f.value, c->value, sizeof f.value);
    memcpy(f.grad, c->grad, sizeof f.grad);
    for (int o = 0; o < op->spec->noperands; o++) {
        int last = op->spec->operand[o].ndim - 1;
        f.rows[o] = 1;
        for (int i = 0; i < last; i++)
            f.rows[o] *= extent(c, o, i);
        f.cols[o] = extent(c, o, last);
        if (op->operand[o].role == TOPT_PARAM)
            f.adds |= 1u << (o & 31);
    }
    /* what norms and losses divide by: whole extents, however few are local */
    f.width = (double)(op->operand[1].dim[0].count * op->operand[1].dim[0].unit);
    const struct topt_dim *x = &op->operand[0].dim[op->spec->operand[0].ndim - 1];
    f.features = (double)(x->count * x->unit);
    f.each = 1 / ((double)op->count[0] * (double)op->count[1] *
                  (double)(c->micro_batches > 0 ? c->micro_batches : 1));
    if (c->labels)
        f.each = 1 / (double)c->labels;
    return f;
}

/* ---- before the first step --------------------------------------------------------- */

/* Kernels that do nothing: with these a call finds its products and its scratch. */
static int no_kernel(void *stream, const struct cu_call *c)
{
    (void)stream, (void)c;
    return 0;
}

#define NOTHING(name, type)                                                              \
    static int no_##name(void *stream, const struct cu_##type *c)                        \
    {                                                                                    \
        (void)stream, (void)c;                                                           \
        return 0;                                                                        \
    }
NOTHING(rotate, rotate)
NOTHING(scores, scores)
NOTHING(settle, settle)
NOTHING(box, box)
TOPT_CU_SPECIAL(NOTHING)
#undef NOTHING

static struct cu_math nothing(void)
{
    struct cu_math m = {.rotate = no_rotate,
                        .softmax = no_scores,
                        .again = no_scores,
                        .slopes = no_scores,
                        .table_slopes = no_scores,
                        .narrow = no_scores,
                        .settle = no_settle,
                        .copy_box = no_box,
                        .add_box = no_box};
    for (int k = 0; k < CU_KERNEL_COUNT; k++)
        m.kernel[k] = no_kernel;
#define X(name, type) m.name = no_##name;
    TOPT_CU_SPECIAL(X)
#undef X
    return m;
}

static int cuda_kernel_run(struct topt_device *d, const struct topt_kernel_call *c,
                           struct topt_error *err);

/* Calls with nothing done: matrix products are set up, and the scratch grows to what the
 * largest takes, so that no step does either. */
static int cuda_prepare(struct topt_device *d, const struct topt_device_program *p,
                        struct topt_error *err)
{
    struct cuda_device *dev = dev_of(d);
    const struct cu_math *math = dev->math;
    struct cu_math none = nothing();
    int rc = 0;
    if (p->communicates_beside && !dev->beside &&
        topt_cuda_check(cudaStreamCreateWithFlags(&dev->beside, cudaStreamNonBlocking),
                        "stream", err))
        return -1;
    dev->math = &none;
    dev->dry = 1;
    for (int i = 0; !rc && i < p->ncalls; i++) {
        struct topt_kernel_call c;
        p->call(p->ctx, i, &c);
        rc = cuda_kernel_run(d, &c, err);
    }
    dev->math = math;
    dev->dry = 0;
    return rc;
}

/* ---- queues: streams, and CUDA's events between them -------------------------------- */

static cudaStream_t queue_of(const struct topt_device *d, enum topt_queue q)
{
    return q == TOPT_QUEUE_COMMUNICATION ? dev_of(d)->beside : dev_of(d)->stream;
}

static cudaEvent_t as_event(struct topt_event *e)
{
    return (cudaEvent_t)(void *)e;
}

static int cuda_event_create(struct topt_device *d, struct topt_event **ret,
                             struct topt_error *err)
{
    cudaEvent_t e = NULL;
    (void)d;
    cudaError_t rc = cudaEventCreateWithFlags(&e, cudaEventDisableTiming);
    *ret = (struct topt_event *)(void *)e;
    return topt_cuda_check(rc, "event", err);
}

static int cuda_event_record(struct topt_device *d, struct topt_event *e,
                             enum topt_queue q, struct topt_error *err)
{
    return topt_cuda_check(cudaEventRecord(as_event(e), queue_of(d, q)), "event", err);
}

static int cuda_event_wait(struct topt_device *d, struct topt_event *e, enum topt_queue q,
                           struct topt_error *err)
{
    return topt_cuda_check(cudaStreamWaitEvent(queue_of(d, q), as_event(e), 0), "event",
                           err);
}

static void cuda_event_destroy(struct topt_device *d, struct topt_event *e)
{
    (void)d;
    if (e)
        cudaEventDestroy(as_event(e));
}

static int cuda_kernel_run(struct topt_device *d, const struct topt_kernel_call *c,
                           struct topt_error *err)
{
    struct cuda_device *dev = dev_of(d);
    int own = plain[c->kernel];
    if (!own && !product[c->kernel])
        return topt_fail(err, TOPT_ERR_DEVICE,
                         "the cuda device has no kernel '%s' yet; run with --device host",
                         topt_kernel_name(c->kernel));
    if (topt_cuda_enter(d, err))
        return -1;
    struct cu_call f = flatten(c);
    if (!own)
        return product[c->kernel](d, c, &f, err);
    return topt_cuda_launched(dev->math->kernel[own - 1](dev->stream, &f), c, err);
}

/* ---- the optimizer ----------------------------------------------------------------- */

static int cuda_update(struct topt_device *d, const struct topt_update_call *call,
                       struct topt_error *err)
{
    const struct topt_update_call filled = topt_update_filled(call), *c = &filled;
    struct cu_update u = {.n = c->n,
                          .first = c->step == 1,
                          .wide_grad = c->wide_grad,
                          .lr = c->lr,
                          .beta1 = c->beta1,
                          .beta2 = c->beta2,
                          .eps = c->eps,
                          .scale = c->scale,
                          .param = c->param,
                          .state = {c->state[0], c->state[1], c->state[2]},
                          .grad = c->grad,
                          .lazy = c->lazy,
                          .row = c->row,
                          .rows = c->row || c->cols <= 0 ? c->rows : c->n / c->cols,
                          .cols = c->cols,
                          .squares = c->squares,
                          .whole_cols = (double)c->whole_cols};
    if (c->row && c->optimizer != TOPT_ROW_WISE_ADAGRAD)
        u.n = c->rows * c->cols;
    if (c->row && u.state[2]) /* rows that no step has named yet have no master copy */
        return topt_fail(err, TOPT_ERR_DEVICE,
                         "the cuda device does not update rows of a table that has "
                         "master weights; run in f32");
    switch (c->optimizer) {
    case TOPT_SGD:
        u.optimizer = CU_SGD;
        break;
    case TOPT_MOMENTUM:
        u.optimizer = CU_MOMENTUM;
        break;
    case TOPT_ROW_WISE_ADAGRAD:
        u.optimizer = CU_ROW_WISE_ADAGRAD;
        break;
    case TOPT_ADAMW:
        u.decay = c->lr * c->weight_decay;
        /* fallthrough */
    case TOPT_ADAM:
        u.optimizer = CU_ADAM;
        u.lr /= 1 - pow(c->beta1, (double)c->step);
        u.root = 1 / sqrt(1 - pow(c->beta2, (double)c->step));
        break;
    default:
        return topt_fail(
            err, TOPT_ERR_DEVICE,
            "the cuda device has no optimizer '%s' yet; run with --device host",
            topt_optimizer_name(c->optimizer));
    }
    if (topt_cuda_enter(d, err))
        return -1;
    return topt_cuda_check((cudaError_t)dev_of(d)->math->update(dev_of(d)->stream, &u),
                           "update", err);
}

/* ---- opening ----------------------------------------------------------------------- */

static void cuda_close(struct topt_device *d)
{
    struct cuda_device *c = dev_of(d);
    if (!c)
        return;
    if (c->beside) {
        cudaStreamSynchronize(c->beside);
        cudaStreamDestroy(c->beside);
    }
    if (c->stream) {
        topt_cuda_release(d, c->workspace);
        topt_cuda_release(d, c->scratch);
        cudaStreamSynchronize(c->stream);
        topt_cuda_gemm_forget(c);
        cudaStreamDestroy(c->stream);
    }
    if (c->lt)
        cublasLtDestroy(c->lt);
    free(c);
    d->impl = NULL;
}

static const struct topt_device_ops cuda_ops = {
    .name = "cuda",
    .abi = TOPT_DEVICE_ABI,
    .close = cuda_close,
    .alloc = topt_cuda_alloc,
    .release = topt_cuda_release,
    .zero = cuda_zero,
    .write = cuda_write,
    .read = cuda_read,
    .copy_box = cuda_copy_box,
    .add_box = cuda_add_box,
    .add = cuda_add,
    .kernel = cuda_kernel_run,
    .update = cuda_update,
    .sync = cuda_sync,
    .memory = cuda_memory,
    .prepare = cuda_prepare,
    .event_create = cuda_event_create,
    .event_record = cuda_event_record,
    .event_wait = cuda_event_wait,
    .event_destroy = cuda_event_destroy,
    .alloc_host = cuda_alloc_host,
    .release_host = cuda_release_host,
};

static int cuda_count(int *ret, struct topt_error *err)
{
    cudaError_t rc = cudaGetDeviceCount(ret);
    if (rc == cudaErrorInsufficientDriver)
        return topt_fail(
            err, TOPT_ERR_DEVICE,
            "no NVIDIA driver here, or one older than CUDA %d.%d; use --device "
            "host",
            CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
    if (rc == cudaErrorNoDevice || (!rc && *ret < 1))
        return topt_fail(err, TOPT_ERR_DEVICE, "no GPU here; use --device host");
    return topt_cuda_check(rc, "looking for GPUs", err);
}

/* Freed memory stays with the process: the next step wants the same again. */
static int keep_memory(int index, struct topt_error *err)
{
    cudaMemPool_t pool;
    uint64_t all = UINT64_MAX;
    cudaError_t rc = cudaDeviceGetDefaultMemPool(&pool, index);
    if (!rc)
        rc = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
    return topt_cuda_check(rc, "memory pool", err);
}

static int start(struct topt_device *d, struct topt_error *err)
{
    struct cuda_device *c = dev_of(d);
    if (topt_cuda_enter(d, err) || keep_memory(c->index, err) ||
        topt_cuda_check(cudaDeviceGetAttribute(
                            &c->capability, cudaDevAttrComputeCapabilityMajor, c->index),
                        "compute capability", err) ||
        topt_cuda_check(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking),
                        "stream", err) ||
        topt_cuda_alloc(d, CUDA_WORKSPACE_BYTES, &c->workspace, err))
        return -1;
    return cublasLtCreate(&c->lt) == CUBLAS_STATUS_SUCCESS
               ? 0
               : topt_fail(err, TOPT_ERR_DEVICE, "cuBLASLt does not start");
}

/* Host and bus address: the same for every process that uses the GPU (FNV-1a). */
static int identify(int index, uint64_t *ret, struct topt_error *err)
{
    char text[320] = "";
    gethostname(text, 255);
    size_t n = strlen(text);
    if (topt_cuda_check(cudaDeviceGetPCIBusId(text + n, 32, index), "bus address", err))
        return -1;
    uint64_t h = 0xcbf29ce484222325u;
    for (const char *p = text; *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    *ret = h;
    return 0;
}

static int cuda_open(enum topt_dtype dtype, int index, struct topt_device *ret,
                     uint64_t *ret_identity, struct topt_error *err)
{
    int n;
    if (cuda_count(&n, err))
        return -1;
    struct cuda_device *c = calloc(1, sizeof *c);
    if (!c)
        return topt_nomem(err, NULL);
    c->index = index % n;
    c->math = dtype == TOPT_F64    ? &topt_cu_f64
              : dtype == TOPT_BF16 ? &topt_cu_bf16
                                   : &topt_cu_f32;
    *ret = (struct topt_device){.ops = &cuda_ops,
                                .dtype = dtype,
                                .real_bytes = topt_dtype_bytes(dtype),
                                .state_bytes = dtype == TOPT_F64 ? 8 : 4,
                                .impl = c};
    if (start(ret, err) || identify(c->index, ret_identity, err)) {
        cuda_close(ret);
        return topt_wrap(err, "GPU %d", index % n);
    }
    return 0;
}

/* The one symbol of the module. */
extern const struct topt_module topt_module;
__attribute__((visibility("default"))) const struct topt_module topt_module = {
    .abi = TOPT_DEVICE_ABI,
    .name = "cuda",
    .count = cuda_count,
    .open = cuda_open,
    .communicator = topt_cuda_communicator,
};
