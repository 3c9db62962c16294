/* cuda.h - inside the CUDA backend: its device, and matrix products on it.
 *
 * Everything a device does is in the order of one stream, allocations too, so nothing
 * waits but reads and writes of the host's memory; a second stream has the collectives that run
 * beside it.  What the plan does not know of is a workspace for cuBLASLt, and a scratch for one
 * kernel at a time, which grows before the first step to what the largest takes.  Thread
 * safety: as topt_device.h. */
#ifndef TOPT_CUDA_H
#define TOPT_CUDA_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "cu.h"
#include "places.h"
#include "topt_device.h"
#include "topt_module.h"

enum { CUDA_WORKSPACE_BYTES = 32 << 20, CUDA_PRODUCT_BUCKETS = 256 };
#ifndef CUDA_SPAN_BYTES /* of scratch at once, for what is done in parts */
#define CUDA_SPAN_BYTES (128 << 20)
#endif

struct cuda_product;

struct cuda_device {
    int index;
    int capability;      /* major number of its compute capability */
    cudaStream_t stream; /* the queue of computation */
    cudaStream_t beside; /* that of communication, where a program uses it; else NULL */
    cublasLtHandle_t lt;
    const struct cu_math *math;
    int dry; /* a call prepares and does nothing */
    /* as they were set up, by their shapes' hashes */
    struct cuda_product *products[CUDA_PRODUCT_BUCKETS];
    void *workspace, *scratch;
    int64_t scratch_bytes;
};

/* 0, or -1 with what the runtime says about 'rc'. */
int topt_cuda_check(cudaError_t rc, const char *what, struct topt_error *err);
/* The device is the calling thread's from here on. */
int topt_cuda_enter(const struct topt_device *d, struct topt_error *err);
/* Memory of the device, in the order of its stream; NULL is given back, too. */
int topt_cuda_alloc(struct topt_device *d, int64_t bytes, void **ret,
                    struct topt_error *err);
void topt_cuda_release(struct topt_device *d, void *p);
/* At least 'bytes' of the device's memory, valid until the next call. */
int topt_cuda_scratch(struct topt_device *d, int64_t bytes, void **ret,
                      struct topt_error *err);

/* c[m,n] = alpha a b + beta c, row-major, of the device's numbers; 'ta'/'tb'
 * transpose, 'ld' are distances of rows; 'wide': under bf16 c is in f32.  Any of the
 * sizes may be 0.  'batch' products at once (0: one), of matrices 'stride' numbers
 * apart. */
struct cuda_gemm {
    int ta, tb;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
    int wide;
    int64_t batch, stride_a, stride_b, stride_c;
};
int topt_cuda_gemm(struct topt_device *d, const struct cuda_gemm *g,
                   struct topt_error *err);
void topt_cuda_gemm_forget(struct cuda_device *d);

/* Kernels that are matrix products, or made around them. */
typedef int cuda_kernel(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_call *flat, struct topt_error *err);
cuda_kernel topt_cuda_linear_fwd, topt_cuda_linear_bwd_x, topt_cuda_linear_bwd_w;
cuda_kernel topt_cuda_attention_fwd, topt_cuda_attention_delta, topt_cuda_attention_bwd;
cuda_kernel topt_cuda_rotary_fwd, topt_cuda_rotary_bwd;
cuda_kernel topt_cuda_ssd_fwd, topt_cuda_ssd_bwd;
cuda_kernel topt_cuda_delta_fwd, topt_cuda_delta_bwd;
cuda_kernel topt_cuda_selective_fwd, topt_cuda_selective_bwd;
cuda_kernel topt_cuda_causal_conv_fwd, topt_cuda_causal_conv_bwd;
cuda_kernel topt_cuda_embedding_bag_fwd, topt_cuda_embedding_bag_bwd;
cuda_kernel topt_cuda_interact_fwd, topt_cuda_interact_bwd;
cuda_kernel topt_cuda_bn_apply, topt_cuda_bn_bwd_apply, topt_cuda_bn_bwd_sum,
    topt_cuda_bn_mean, topt_cuda_bn_var, topt_cuda_channel_bias_bwd,
    topt_cuda_channel_bias_fwd, topt_cuda_combine_bwd, topt_cuda_combine_fwd,
    topt_cuda_concat_bwd, topt_cuda_concat_fwd, topt_cuda_conv_bwd_w,
    topt_cuda_conv_bwd_x, topt_cuda_conv_fwd, topt_cuda_conv_transpose_bwd_w,
    topt_cuda_conv_transpose_bwd_x, topt_cuda_conv_transpose_fwd, topt_cuda_dispatch_bwd,
    topt_cuda_dispatch_fwd, topt_cuda_dropout_bwd, topt_cuda_dropout_fwd,
    topt_cuda_experts_bwd_a, topt_cuda_experts_bwd_down, topt_cuda_experts_bwd_up,
    topt_cuda_experts_bwd_x, topt_cuda_experts_down, topt_cuda_experts_up,
    topt_cuda_gain_bwd, topt_cuda_gain_fwd, topt_cuda_gn_apply, topt_cuda_gn_bwd_apply,
    topt_cuda_gn_bwd_sum, topt_cuda_gn_mean, topt_cuda_gn_var, topt_cuda_lrn_bwd,
    topt_cuda_lrn_fwd, topt_cuda_pool_bwd, topt_cuda_pool_fwd, topt_cuda_prelu_bwd,
    topt_cuda_prelu_fwd, topt_cuda_prepend_bwd, topt_cuda_prepend_fwd,
    topt_cuda_recurrent_bwd_h, topt_cuda_recurrent_bwd_w, topt_cuda_recurrent_fwd,
    topt_cuda_reduce_bwd, topt_cuda_reduce_fwd, topt_cuda_resize_bwd,
    topt_cuda_resize_fwd, topt_cuda_reverse_bwd, topt_cuda_reverse_fwd,
    topt_cuda_route_bwd, topt_cuda_route_fwd, topt_cuda_select_bwd, topt_cuda_select_fwd,
    topt_cuda_shuffle_bwd, topt_cuda_shuffle_fwd, topt_cuda_slice_bwd,
    topt_cuda_slice_fwd, topt_cuda_tokens_bwd, topt_cuda_tokens_fwd,
    topt_cuda_transpose_bwd, topt_cuda_transpose_fwd, topt_cuda_untokens_bwd,
    topt_cuda_untokens_fwd;

/* Rotations as an operator's attributes have them, of heads of 2 'pairs' rotated numbers; sign -1
 * turns back.  Pointers, rows and heads are the caller's to fill in. */
struct cu_rotate topt_cuda_rotation(const struct topt_attrs *a, int64_t pairs,
                                    double sign);

/* 'rc' of the kernels of cu.h. */
int topt_cuda_launched(int rc, const struct topt_kernel_call *c, struct topt_error *err);

int topt_cuda_communicator(struct topt_comm *control, struct topt_device *d,
                           struct topt_comm **ret, struct topt_error *err);

static inline struct cuda_device *dev_of(const struct topt_device *d)
{
    return d->impl;
}

#endif
