/* cuda.h - inside the CUDA backend: its device, and matrix products on it.
 *
 * Everything a device does is in the order of one stream, allocations too, so nothing
 * waits but reads and writes of the host's memory.  What the plan does not know of is
 * fixed: a workspace for cuBLASLt, and room for the rotated heads of one attention
 * head, which grows to the longest sequence seen.  Thread safety: as topt_device.h. */
#ifndef TOPT_CUDA_H
#define TOPT_CUDA_H

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "cu.h"
#include "topt_device.h"
#include "topt_module.h"

enum { CUDA_WORKSPACE_BYTES = 32 << 20 };

struct cuda_product;

struct cuda_device {
    int index;
    cudaStream_t stream;
    cublasLtHandle_t lt;
    const struct cu_math *math;
    struct cuda_product *products; /* as they were set up, by shape */
    void *workspace, *scratch;
    int64_t scratch_bytes;
};

/* 0, or -1 with what the runtime says about 'rc'. */
int topt_cuda_check(cudaError_t rc, const char *what, struct topt_error *err);
/* At least 'bytes' of the device's memory, valid until the next call. */
int topt_cuda_scratch(struct topt_device *d, int64_t bytes, void **ret,
                      struct topt_error *err);

/* c[m,n] = alpha a b + beta c, row-major, of the device's numbers; 'ta'/'tb'
 * transpose, 'ld' are distances of rows.  Any of the sizes may be 0. */
struct cuda_gemm {
    int ta, tb;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
};
int topt_cuda_gemm(struct topt_device *d, const struct cuda_gemm *g,
                   struct topt_error *err);
void topt_cuda_gemm_forget(struct cuda_device *d);

/* Kernels that are matrix products, or made around them. */
typedef int cuda_kernel(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_call *flat, struct topt_error *err);
cuda_kernel topt_cuda_linear_fwd, topt_cuda_linear_bwd_x, topt_cuda_linear_bwd_w;
cuda_kernel topt_cuda_attention_fwd, topt_cuda_attention_bwd;

/* 'rc' of the kernels of cu.h. */
int topt_cuda_launched(int rc, const struct topt_kernel_call *c, struct topt_error *err);

int topt_cuda_communicator(struct topt_comm *control, struct topt_device *d,
                           struct topt_comm **ret, struct topt_error *err);

#endif
