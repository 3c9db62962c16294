/* products.c - matrix products by cuBLASLt, and attention made around them.
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
    int64_t ta, tb, m, n, k, lda, ldb, ldc, adds, aligned;
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
    for (struct cuda_product *p = d->products, *next; p; p = next) {
        next = p->next;
        product_free(p);
    }
    d->products = NULL;
}

/* Largest power of two, at most 256, that divides all addresses: algorithms ask for
 * it. */
static int64_t alignment(const struct cuda_gemm *g)
{
    uintptr_t all = (uintptr_t)g->a | (uintptr_t)g->b | (uintptr_t)g->c | 256;
    return (int64_t)(all & (~all + 1));
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
        rc = cublasLtMatrixLayoutCreate(&p->c, t, (uint64_t)s->n, (uint64_t)s->m, s->ldc);
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
    for (struct cuda_product *p = d->products; p; p = p->next)
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
    p->next = d->products;
    d->products = p;
    *ret = p;
    return 0;
}

/* Nothing is added up: c is 0, or stays where it is added to. */
static int empty_product(struct topt_device *d, const struct cuda_gemm *g,
                         struct topt_error *err)
{
    int64_t row = g->n * d->real_bytes;
    for (int64_t i = 0; i < g->m && g->beta == 0; i++)
        if (d->ops->zero(d, (char *)g->c + i * g->ldc * d->real_bytes, row, err))
            return -1;
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
                      .aligned = alignment(g)};
    if (find(d, &s, &p, err))
        return -1;
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
                                              .ldc = k},
                          err);
}

/* ---- attention --------------------------------------------------------------------- */

/* One query head after the other: scores of the whole sequence in the operator's [s,
 * s] work buffer, two products around a softmax of rows.  Backward recomputes the
 * probabilities from qkv and the saved log-sum-exp.  Rotated queries and keys of a
 * head are kept in the device's scratch; rotation is orthogonal, so gradients are
 * turned back by the opposite angle. */
struct heads {
    struct topt_device *dev;
    const struct topt_kernel_call *call;
    int64_t s, hd, q;      /* sequence, head size, query heads of a key-value head */
    int64_t ldx, ldy, ldl; /* row strides of qkv, y and log-sum-exp */
    char *rotated_q, *rotated_k; /* NULL without rotary positions */
    double scale;
    int causal;
};

enum { QKV, Y, LSE, SCORES, P, DP };

static int heads_init(struct heads *h, struct topt_device *d,
                      const struct topt_kernel_call *c, const struct cu_call *f,
                      struct topt_error *err)
{
    const struct topt_attrs *a = &c->op->attrs;
    *h = (struct heads){.dev = d,
                        .call = c,
                        .s = c->len[2],
                        .hd = a->head_dim,
                        .q = a->heads / a->kv_heads,
                        .ldx = f->cols[QKV],
                        .ldy = f->cols[Y],
                        .ldl = f->cols[LSE],
                        .scale = a->scale > 0 ? a->scale : 1 / sqrt((double)a->head_dim),
                        .causal = a->causal};
    if (!(a->rope_theta > 0) || h->s <= 0)
        return 0;
    void *room = NULL;
    int64_t bytes = (h->s * h->hd * d->real_bytes + 255) / 256 * 256;
    if (topt_cuda_scratch(d, 2 * bytes, &room, err))
        return -1;
    h->rotated_q = room;
    h->rotated_k = h->rotated_q + bytes;
    return 0;
}

static char *at(const struct heads *h, const void *p, int64_t i)
{
    return (char *)(uintptr_t)p + i * h->dev->real_bytes;
}

static const struct cu_math *math_of(const struct heads *h)
{
    return ((struct cuda_device *)h->dev->impl)->math;
}

static cudaStream_t stream_of(const struct heads *h)
{
    return ((struct cuda_device *)h->dev->impl)->stream;
}

static void set_angles(const struct heads *h, struct cu_rotate *r)
{
    const struct topt_attrs *a = &h->call->op->attrs;
    r->theta = a->rope_theta;
    r->factor = a->rope_factor;
    r->context = (double)a->rope_context;
    r->slow = a->rope_slow;
    r->fast = a->rope_fast;
    r->by_pair = a->rope_by_pair;
}

/* A head's rows as the products take them, with their stride: rotated, or as they are. */
static int turned(const struct heads *h, const char *x, char *room, const char **ret,
                  int64_t *ret_ld, struct topt_error *err)
{
    *ret = room ? room : x;
    *ret_ld = room ? h->hd : h->ldx;
    if (!room)
        return 0;
    struct cu_rotate r = {.dst = room,
                          .src = x,
                          .ldd = h->hd,
                          .lds = h->ldx,
                          .rows = h->s,
                          .head = h->hd,
                          .sign = 1};
    set_angles(h, &r);
    return topt_cuda_launched(math_of(h)->rotate(stream_of(h), &r), h->call, err);
}

/* A gradient of rotated rows, turned back in place. */
static int turn_back(const struct heads *h, char *x, struct topt_error *err)
{
    struct cu_rotate r = {.dst = x,
                          .src = x,
                          .ldd = h->ldx,
                          .lds = h->ldx,
                          .rows = h->s,
                          .head = h->hd,
                          .sign = -1};
    set_angles(h, &r);
    return h->rotated_q
               ? topt_cuda_launched(math_of(h)->rotate(stream_of(h), &r), h->call, err)
               : 0;
}

static struct cu_softmax softmax_of(const struct heads *h, void *p, void *dp, void *lse)
{
    return (struct cu_softmax){.p = p,
                               .dp = dp,
                               .lse = lse,
                               .s = h->s,
                               .ldl = h->ldl,
                               .scale = h->scale,
                               .causal = h->causal};
}

/* dst[s, s] = alpha a b' of two heads' rows. */
static int rows_by_rows(const struct heads *h, void *dst, double alpha, const void *a,
                        int64_t lda, const void *b, int64_t ldb, struct topt_error *err)
{
    return topt_cuda_gemm(h->dev,
                          &(struct cuda_gemm){.tb = 1,
                                              .m = h->s,
                                              .n = h->s,
                                              .k = h->hd,
                                              .alpha = alpha,
                                              .a = a,
                                              .lda = lda,
                                              .b = b,
                                              .ldb = ldb,
                                              .c = dst,
                                              .ldc = h->s},
                          err);
}

/* dst = m rows, or with 'turn' m' rows; added to dst where 'adds'. */
static int scores_by_rows(const struct heads *h, int turn, const void *m,
                          const void *rows, int64_t ld, void *dst, int64_t ldd, int adds,
                          struct topt_error *err)
{
    return topt_cuda_gemm(h->dev,
                          &(struct cuda_gemm){.ta = turn,
                                              .m = h->s,
                                              .n = h->hd,
                                              .k = h->s,
                                              .alpha = 1,
                                              .beta = adds ? 1 : 0,
                                              .a = m,
                                              .lda = h->s,
                                              .b = rows,
                                              .ldb = ld,
                                              .c = dst,
                                              .ldc = ldd},
                          err);
}

/* One head forward; k is as the products take it. */
static int head_fwd(const struct heads *h, const char *q, const char *k, int64_t ldk,
                    const char *v, char *y, char *lse, struct topt_error *err)
{
    void *p = h->call->value[SCORES];
    const char *rq = NULL;
    int64_t ldq = 0;
    struct cu_softmax s = softmax_of(h, p, NULL, lse);
    if (turned(h, q, h->rotated_q, &rq, &ldq, err) ||
        rows_by_rows(h, p, 1, rq, ldq, k, ldk, err) ||
        topt_cuda_launched(math_of(h)->softmax(stream_of(h), &s), h->call, err))
        return -1;
    return scores_by_rows(h, 0, p, v, h->ldx, y, h->ldy, 0, err);
}

static int group_fwd(const struct heads *h, const char *x, char *y, char *lse,
                     struct topt_error *err)
{
    const char *k = at(h, x, h->q * h->hd), *v = at(h, k, h->hd), *rk = NULL;
    int64_t ldk = 0;
    if (turned(h, k, h->rotated_k, &rk, &ldk, err))
        return -1;
    for (int64_t i = 0; i < h->q; i++)
        if (head_fwd(h, at(h, x, i * h->hd), rk, ldk, v, at(h, y, i * h->hd),
                     at(h, lse, i), err))
            return -1;
    return 0;
}

int topt_cuda_attention_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    struct heads h;
    if (heads_init(&h, d, c, f, err))
        return -1;
    for (int64_t b = 0; b < c->len[0] && h.s > 0; b++)
        for (int64_t g = 0; g < c->len[1]; g++)
            if (group_fwd(&h,
                          at(&h, c->value[QKV], b * h.s * h.ldx + g * (h.q + 2) * h.hd),
                          at(&h, c->value[Y], b * h.s * h.ldy + g * h.q * h.hd),
                          at(&h, c->value[LSE], b * h.s * h.ldl + g * h.q), err))
                return -1;
    return 0;
}

/* One query head backward: dq, and its part of dk (still rotated) and dv. */
static int head_bwd(const struct heads *h, int64_t i, const char *x, char *dx,
                    const char *rk, int64_t ldk, const char *dy, char *lse,
                    struct topt_error *err)
{
    void *p = h->call->value[P], *dp = h->call->value[DP];
    const char *v = at(h, x, (h->q + 1) * h->hd), *rq = NULL;
    char *dq = at(h, dx, i * h->hd), *dk = at(h, dx, h->q * h->hd);
    int64_t ldq = 0;
    struct cu_softmax s = softmax_of(h, p, dp, lse);
    if (turned(h, at(h, x, i * h->hd), h->rotated_q, &rq, &ldq, err) ||
        rows_by_rows(h, p, h->scale, rq, ldq, rk, ldk, err) ||
        topt_cuda_launched(math_of(h)->probabilities(stream_of(h), &s), h->call, err) ||
        scores_by_rows(h, 1, p, dy, h->ldy, at(h, dk, h->hd), h->ldx, i > 0, err) ||
        rows_by_rows(h, dp, 1, dy, h->ldy, v, h->ldx, err) ||
        topt_cuda_launched(math_of(h)->softmax_bwd(stream_of(h), &s), h->call, err) ||
        scores_by_rows(h, 1, dp, rq, ldq, dk, h->ldx, i > 0, err) ||
        scores_by_rows(h, 0, dp, rk, ldk, dq, h->ldx, 0, err))
        return -1;
    return turn_back(h, dq, err);
}

/* Query heads of a group share a key and a value, whose gradients add up. */
static int group_bwd(const struct heads *h, const char *x, char *dx, const char *dy,
                     char *lse, struct topt_error *err)
{
    const char *rk = NULL;
    int64_t ldk = 0;
    if (turned(h, at(h, x, h->q * h->hd), h->rotated_k, &rk, &ldk, err))
        return -1;
    for (int64_t i = 0; i < h->q; i++)
        if (head_bwd(h, i, x, dx, rk, ldk, at(h, dy, i * h->hd), at(h, lse, i), err))
            return -1;
    return turn_back(h, at(h, dx, h->q * h->hd), err);
}

int topt_cuda_attention_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    struct heads h;
    if (!c->grad[QKV])
        return 0;
    if (heads_init(&h, d, c, f, err))
        return -1;
    for (int64_t b = 0; b < c->len[0] && h.s > 0; b++)
        for (int64_t g = 0; g < c->len[1]; g++) {
            int64_t here = b * h.s * h.ldx + g * (h.q + 2) * h.hd;
            if (group_bwd(&h, at(&h, c->value[QKV], here), at(&h, c->grad[QKV], here),
                          at(&h, c->grad[Y], b * h.s * h.ldy + g * h.q * h.hd),
                          at(&h, c->value[LSE], b * h.s * h.ldl + g * h.q), err))
                return -1;
        }
    return 0;
}
