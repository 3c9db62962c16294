/* products.c - matrix products by cuBLASLt, and the kernels that are just these.
 *
 * What cuBLASLt needs to know of a product (descriptors and the algorithm that its
 * heuristic picks) is worked out once a shape and kept.  Single precision stays
 * single: TF32 is not used, so that plans agree with each other and with the CPU; bf16
 * multiplies bf16 and adds up in f32.  cuBLASLt counts columns first, so a row-major c
 * = a b is its c' = b' a'. */
#include "cuda.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What makes two products alike. */
struct shape {
    int64_t ta, tb, m, n, k, lda, ldb, ldc, adds, aligned, wide;
    int64_t batch, stride_a, stride_b, stride_c;
};

struct cuda_product {
    struct shape shape;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algo;
    struct cuda_product *next;
};

static cudaDataType_t number_type(enum topt_dtype t)
{
    return t == TOPT_F64 ? CUDA_R_64F : t == TOPT_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

static void product_free(struct cuda_product *p)
{
    if (p->desc)
        cublasLtMatmulDescDestroy(p->desc);
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->c)
        cublasLtMatrixLayoutDestroy(p->c);
    free(p);
}

void topt_cuda_gemm_forget(struct cuda_device *d)
{
    for (int i = 0; i < CUDA_PRODUCT_BUCKETS; i++) {
        for (struct cuda_product *p = d->products[i], *next; p; p = next) {
            next = p->next;
            product_free(p);
        }
        d->products[i] = NULL;
    }
}

/* FNV-1a over the numbers of a shape. */
static unsigned bucket_of(const struct shape *s)
{
    const int64_t *x = (const int64_t *)s;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof *s / sizeof *x; i++)
        h = (h ^ (uint64_t)x[i]) * 0x100000001b3u;
    return (unsigned)(h >> 32) % CUDA_PRODUCT_BUCKETS;
}

/* Largest power of two, at most 256, that divides the addresses of all matrices:
 * algorithms ask for it. */
static int64_t alignment(const struct topt_device *d, const struct cuda_gemm *g)
{
    uintptr_t all = (uintptr_t)g->a | (uintptr_t)g->b | (uintptr_t)g->c | 256;
    if (g->batch > 1) {
        all |= (uintptr_t)((g->stride_a | g->stride_b) * d->real_bytes);
        all |= (uintptr_t)(g->stride_c * (g->wide ? d->state_bytes : d->real_bytes));
    }
    return (int64_t)(all & (~all + 1));
}

/* Matrices of a batch lie 'stride' numbers apart. */
static cublasStatus_t repeat(cublasLtMatrixLayout_t l, int64_t batch, int64_t stride)
{
    int32_t count = (int32_t)batch;
    cublasStatus_t rc = cublasLtMatrixLayoutSetAttribute(
        l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    return rc ? rc
              : cublasLtMatrixLayoutSetAttribute(
                    l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                    sizeof stride);
}

/* Descriptors; operands swapped, as the file's head says. */
static cublasStatus_t describe(struct cuda_product *p, enum topt_dtype dtype)
{
    const struct shape *s = &p->shape;
    cudaDataType_t t = number_type(dtype);
    int f64 = dtype == TOPT_F64;
    cublasOperation_t turn_a = s->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t turn_b = s->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
    uint64_t a_rows = (uint64_t)(s->ta ? s->m : s->k);
    uint64_t a_cols = (uint64_t)(s->ta ? s->k : s->m);
    uint64_t b_rows = (uint64_t)(s->tb ? s->k : s->n);
    uint64_t b_cols = (uint64_t)(s->tb ? s->n : s->k);
    cublasStatus_t rc =
        cublasLtMatmulDescCreate(&p->desc, f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                 f64 ? CUDA_R_64F : CUDA_R_32F);
    if (!rc)
        rc = cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &turn_b,
                                            sizeof turn_b);
    if (!rc)
        rc = cublasLtMatmulDescSetAttribute(p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &turn_a,
                                            sizeof turn_a);
    if (!rc)
        rc = cublasLtMatrixLayoutCreate(&p->a, t, a_rows, a_cols, s->lda);
    if (!rc)
        rc = cublasLtMatrixLayoutCreate(&p->b, t, b_rows, b_cols, s->ldb);
    if (!rc)
        rc = cublasLtMatrixLayoutCreate(&p->c, s->wide && !f64 ? CUDA_R_32F : t,
                                        (uint64_t)s->n, (uint64_t)s->m, s->ldc);
    if (!rc && s->batch > 1)
        rc = repeat(p->a, s->batch, s->stride_a);
    if (!rc && s->batch > 1)
        rc = repeat(p->b, s->batch, s->stride_b);
    if (!rc && s->batch > 1)
        rc = repeat(p->c, s->batch, s->stride_c);
    return rc;
}

static cublasStatus_t choose(struct cuda_device *d, struct cuda_product *p)
{
    cublasLtMatmulPreference_t wish = NULL;
    cublasLtMatmulHeuristicResult_t best;
    uint64_t bytes = CUDA_WORKSPACE_BYTES;
    uint32_t aligned = (uint32_t)p->shape.aligned;
    int found = 0;
    cublasStatus_t rc = cublasLtMatmulPreferenceCreate(&wish);
    if (!rc)
        rc = cublasLtMatmulPreferenceSetAttribute(
            wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    static const cublasLtMatmulPreferenceAttributes_t address[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (int i = 0; i < 4 && !rc; i++)
        rc = cublasLtMatmulPreferenceSetAttribute(wish, address[i], &aligned,
                                                  sizeof aligned);
    if (!rc)
        rc = cublasLtMatmulAlgoGetHeuristic(d->lt, p->desc, p->b, p->a, p->c, p->c, wish,
                                            1, &best, &found);
    if (wish)
        cublasLtMatmulPreferenceDestroy(wish);
    if (!rc && found < 1)
        rc = CUBLAS_STATUS_NOT_SUPPORTED;
    if (!rc)
        p->algo = best.algo;
    return rc;
}

static int find(struct topt_device *dev, const struct shape *s, struct cuda_product **ret,
                struct topt_error *err)
{
    struct cuda_device *d = dev->impl;
    struct cuda_product **bucket = &d->products[bucket_of(s)];
    for (struct cuda_product *p = *bucket; p; p = p->next)
        if (!memcmp(&p->shape, s, sizeof *s)) {
            *ret = p;
            return 0;
        }
    struct cuda_product *p = calloc(1, sizeof *p);
    if (!p)
        return topt_nomem(err, NULL);
    p->shape = *s;
    cublasStatus_t rc = describe(p, dev->dtype);
    if (!rc)
        rc = choose(d, p);
    if (rc) {
        product_free(p);
        return topt_fail(err, TOPT_ERR_DEVICE,
                         "cuBLASLt takes no product of %lld x %lld x %lld (status %d)",
                         (long long)s->m, (long long)s->n, (long long)s->k, (int)rc);
    }
    p->next = *bucket;
    *bucket = p;
    *ret = p;
    return 0;
}

/* Nothing is added up: c is 0, or stays where it is added to. */
static int empty_product(struct topt_device *d, const struct cuda_gemm *g,
                         struct topt_error *err)
{
    int64_t bytes = g->wide ? d->state_bytes : d->real_bytes, row = g->n * bytes;
    int64_t batch = g->batch > 1 ? g->batch : 1;
    for (int64_t i = 0; i < batch * g->m && g->beta == 0; i++) {
        int64_t at = i / g->m * g->stride_c + i % g->m * g->ldc;
        if (d->ops->zero(d, (char *)g->c + at * bytes, row, err))
            return -1;
    }
    return 0;
}

int topt_cuda_gemm(struct topt_device *d, const struct cuda_gemm *g,
                   struct topt_error *err)
{
    struct cuda_device *dev = d->impl;
    struct cuda_product *p = NULL;
    if (g->m <= 0 || g->n <= 0)
        return 0;
    if (g->k <= 0)
        return empty_product(d, g, err);
    struct shape s = {.ta = g->ta,
                      .tb = g->tb,
                      .m = g->m,
                      .n = g->n,
                      .k = g->k,
                      .lda = g->lda,
                      .ldb = g->ldb,
                      .ldc = g->ldc,
                      .adds = g->beta != 0,
                      .aligned = alignment(d, g),
                      .wide = g->wide,
                      .batch = g->batch > 1 ? g->batch : 1,
                      .stride_a = g->stride_a,
                      .stride_b = g->stride_b,
                      .stride_c = g->stride_c};
    if (s.batch > INT32_MAX)
        return topt_fail(err, TOPT_ERR_LIMIT, "more than 2^31 matrix products at once");
    if (find(d, &s, &p, err))
        return -1;
    if (dev->dry)
        return 0;
    float alpha = (float)g->alpha, beta = (float)g->beta;
    int f64 = d->dtype == TOPT_F64;
    cublasStatus_t rc = cublasLtMatmul(
        dev->lt, p->desc, f64 ? (const void *)&g->alpha : &alpha, g->b, p->b, g->a, p->a,
        f64 ? (const void *)&g->beta : &beta, g->c, p->c, g->c, p->c, &p->algo,
        dev->workspace, CUDA_WORKSPACE_BYTES, dev->stream);
    return rc ? topt_fail(err, TOPT_ERR_DEVICE, "matrix product: cuBLASLt status %d",
                          (int)rc)
              : 0;
}

/* ---- linear ------------------------------------------------------------------------ */

enum { LINEAR_X, LINEAR_W, LINEAR_Y };

int topt_cuda_linear_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    int64_t k = f->cols[LINEAR_X], n = f->cols[LINEAR_Y];
    return topt_cuda_gemm(d,
                          &(struct cuda_gemm){.tb = 1,
                                              .m = f->rows[LINEAR_X],
                                              .n = n,
                                              .k = k,
                                              .alpha = 1,
                                              .a = c->value[LINEAR_X],
                                              .lda = k,
                                              .b = c->value[LINEAR_W],
                                              .ldb = k,
                                              .c = c->value[LINEAR_Y],
                                              .ldc = n},
                          err);
}

int topt_cuda_linear_bwd_x(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    int64_t k = f->cols[LINEAR_X], n = f->cols[LINEAR_Y];
    if (!c->grad[LINEAR_X])
        return 0;
    return topt_cuda_gemm(d,
                          &(struct cuda_gemm){.m = f->rows[LINEAR_X],
                                              .n = k,
                                              .k = n,
                                              .alpha = 1,
                                              .a = c->grad[LINEAR_Y],
                                              .lda = n,
                                              .b = c->value[LINEAR_W],
                                              .ldb = k,
                                              .c = c->grad[LINEAR_X],
                                              .ldc = k},
                          err);
}

int topt_cuda_linear_bwd_w(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    int64_t k = f->cols[LINEAR_X], n = f->cols[LINEAR_Y];
    if (!c->grad[LINEAR_W])
        return 0;
    return topt_cuda_gemm(d,
                          &(struct cuda_gemm){.ta = 1,
                                              .m = n,
                                              .n = k,
                                              .k = f->rows[LINEAR_X],
                                              .alpha = 1,
                                              .beta = f->adds >> LINEAR_W & 1 ? 1 : 0,
                                              .a = c->grad[LINEAR_Y],
                                              .lda = n,
                                              .b = c->value[LINEAR_X],
                                              .ldb = k,
                                              .c = c->grad[LINEAR_W],
                                              .wide = f->wide_grads >> LINEAR_W & 1,
                                              .ldc = k},
                          err);
}
