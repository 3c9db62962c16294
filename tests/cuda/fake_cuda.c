/* fake_cuda.c - CUDA's runtime and cuBLASLt over the host's memory, for tests without a GPU.
 *
 * Each call checks what a GPU would choke on: that device pointers lie in what was allocated,
 * that matrices fit their blocks, that descriptors agree.  With the address sanitizer the
 * device's memory is poisoned except while the device works, so that a host program that
 * touches it is caught.
 *
 * TOPT_FAKE_GPUS: how many there are (8), 0 for none, -1 for no driver.  TOPT_FAKE_MEMORY: bytes
 * that are free on each. */
#include "emulate.h"

#include <cublasLt.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define FAKE_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAKE_POISON 1
#endif
#endif
#ifdef FAKE_POISON
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

int64_t cu_emulated_block, cu_emulated_blocks;
/* Products set up and blocks taken so far: a step is to do neither. */
extern int fake_cuda_setups;
int fake_cuda_setups;
/* Kernels started so far, matrix products left out. */
extern int fake_cuda_launches;
int fake_cuda_launches;

struct block {
    char *at;
    size_t bytes;
    struct block *next;
};
static struct block *blocks;

/* Marking large blocks (cuBLASLt's workspace) at every call takes too long. */
enum { MARKED_BYTES = 1 << 20 };

void cu_emulated_enter(void)
{
    for (struct block *b = blocks; b; b = b->next)
        if (b->bytes <= MARKED_BYTES)
            ASAN_UNPOISON_MEMORY_REGION(b->at, b->bytes);
}

/* The last error stays until somebody asks, and a kernel's launch does. */
static cudaError_t last_error;

cudaError_t cudaGetLastError(void)
{
    cudaError_t rc = last_error;
    last_error = cudaSuccess;
    return rc;
}

static cudaError_t told(cudaError_t rc)
{
    last_error = rc ? rc : last_error;
    return rc;
}

void cu_emulated_leave(void)
{
    for (struct block *b = blocks; b; b = b->next)
        if (b->bytes <= MARKED_BYTES)
            ASAN_POISON_MEMORY_REGION(b->at, b->bytes);
}

int cu_emulated_error(void)
{
    fake_cuda_launches++;
    return (int)cudaGetLastError();
}

/* Ends the test: on a GPU this would be a fault, or silence and garbage. */
static void need(int good, const char *what)
{
    if (good)
        return;
    printf("Bail out! fake CUDA: %s\n", what);
    fflush(stdout);
    abort();
}

static void need_device(const void *p, size_t bytes, const char *what)
{
    for (struct block *b = blocks; b; b = b->next)
        if ((const char *)p >= b->at && (const char *)p + bytes <= b->at + b->bytes)
            return;
    need(bytes == 0, what);
}

static void need_host(const void *p, const char *what)
{
    for (struct block *b = blocks; b; b = b->next)
        need((const char *)p < b->at || (const char *)p >= b->at + b->bytes, what);
}

/* ---- runtime ------------------------------------------------------------------------------ */

static int fake_gpus(void)
{
    const char *n = getenv("TOPT_FAKE_GPUS");
    return n ? atoi(n) : 8;
}

const char *cudaGetErrorString(cudaError_t rc)
{
    return rc == cudaSuccess                 ? "no error"
           : rc == cudaErrorMemoryAllocation ? "out of memory"
                                             : "invalid argument";
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    int n = fake_gpus();
    *ret = n > 0 ? n : 0;
    return told(n < 0    ? cudaErrorInsufficientDriver
                : n == 0 ? cudaErrorNoDevice
                         : cudaSuccess);
}

static _Thread_local int current;

/* TOPT_FAKE_CAPABILITY: that of an older GPU. */
cudaError_t cudaDeviceGetAttribute(int *ret, enum cudaDeviceAttr a, int index)
{
    const char *n = getenv("TOPT_FAKE_CAPABILITY");
    if (a != cudaDevAttrComputeCapabilityMajor || index < 0 || index >= fake_gpus())
        return told(cudaErrorInvalidValue);
    *ret = n ? atoi(n) : 9;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int index)
{
    if (index < 0 || index >= fake_gpus())
        return told(cudaErrorInvalidValue);
    current = index;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *ret_free, size_t *ret_all)
{
    const char *n = getenv("TOPT_FAKE_MEMORY");
    *ret_all = (size_t)80 << 30;
    *ret_free = n ? (size_t)strtoull(n, NULL, 10) : *ret_all;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *ret, int len, int index)
{
    snprintf(ret, (size_t)len, "0000:%02x:00.0", (unsigned)index);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *ret, int index)
{
    *ret = NULL;
    return told(index < fake_gpus() ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void *value)
{
    (void)p, (void)a, (void)value;
    return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t p, enum cudaMemPoolAttr a, void *value)
{
    uint64_t bytes = 0;
    (void)p, (void)a; /* it keeps nothing that is freed */
    memcpy(value, &bytes, sizeof bytes);
    return cudaSuccess;
}

/* ---- streams and events ---------------------------------------------------------------- */

struct work {
    void (*run)(const void *ctx);
    void *ctx;
    struct work *next;
};
/* Of a device.  'late': runs when it is waited for.  'waited': for another stream, since the last work. */
struct fake_stream {
    int device, late, waited;
    int64_t put, done;
    struct work *first, **end;
};
struct fake_event {
    cudaStream_t stream; /* where it was recorded; NULL: nowhere yet */
    int64_t after;       /* behind so much of its work */
};

static int streams;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    cudaStream_t s = *ret = calloc(1, sizeof *s);
    (void)flags;
    if (!s)
        return told(cudaErrorMemoryAllocation);
    s->device = current;
    fake_cuda_setups++;
    s->late = streams++ > 0;
    s->end = &s->first;
    return cudaSuccess;
}

void cu_emulated_on(void *stream)
{
    const struct fake_stream *s = stream;
    need(s && s->device == current, "a kernel on a stream of another device");
}

static void run_until(cudaStream_t s, int64_t n)
{
    while (s->done < n) {
        struct work *w = s->first;
        s->first = w->next;
        s->end = s->first ? s->end : &s->first;
        s->done++;
        w->run(w->ctx);
        free(w->ctx);
        free(w);
    }
}

void cu_emulated_put(struct fake_stream *s, void (*work)(const void *ctx),
                     const void *ctx, size_t bytes)
{
    need(s != NULL, "work on no stream");
    if (!s->late) {
        work(ctx);
        return;
    }
    need(s->waited, "work beside the first stream that waits for nothing of it");
    s->waited = 0;
    struct work *w = calloc(1, sizeof *w);
    *w = (struct work){.run = work, .ctx = malloc(bytes)};
    memcpy(w->ctx, ctx, bytes);
    *s->end = w;
    s->end = &w->next;
    s->put++;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
    if (s)
        run_until(s, s->put);
    return s ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    need(s->done == s->put, "a stream that goes before its work is done");
    streams--;
    free(s);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
    *ret = calloc(1, sizeof **ret);
    fake_cuda_setups++;
    return told(flags == cudaEventDisableTiming ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
    need(e && s, "an event on no stream");
    *e = (struct fake_event){s, s->put};
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags)
{
    need(s && e && e->stream && !flags, "a wait for what was not recorded");
    s->waited |= e->stream != s;
    run_until(e->stream, e->after);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
    free(e);
    return cudaSuccess;
}

/* Full of garbage: nothing is zero by itself. */
cudaError_t cudaMallocAsync(void **ret, size_t bytes, cudaStream_t s)
{
    struct block *b = malloc(sizeof *b);
    size_t size = (bytes + 255) / 256 * 256;
    fake_cuda_setups++;
    char *p = bytes >> 36 ? NULL : aligned_alloc(256, size);
    if (!s || !b || !p) {
        free(b);
        free(p);
        return told(cudaErrorMemoryAllocation);
    }
    memset(p, 0x7b, size);
    *b = (struct block){.at = p, .bytes = bytes, .next = blocks};
    blocks = b;
    if (bytes <= MARKED_BYTES)
        ASAN_POISON_MEMORY_REGION(p, size);
    *ret = p;
    return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *p, cudaStream_t s)
{
    (void)s;
    for (struct block **at = &blocks; p && *at; at = &(*at)->next)
        if ((*at)->at == p) {
            struct block *b = *at;
            *at = b->next;
            ASAN_UNPOISON_MEMORY_REGION(b->at, (b->bytes + 255) / 256 * 256);
            free(b->at);
            free(b);
            return cudaSuccess;
        }
    need(!p, "freed what was not allocated");
    return told(cudaErrorInvalidValue);
}

cudaError_t cudaMallocHost(void **ret, size_t bytes)
{
    *ret = malloc(bytes);
    return *ret ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s)
{
    (void)s;
    need_device(p, bytes, "memset outside of what was allocated");
    cu_emulated_enter();
    memset(p, value, bytes);
    cu_emulated_leave();
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t s)
{
    (void)s;
    if (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice)
        need_device(dst, bytes, "copy to outside of what was allocated");
    else
        need_host(dst, "copy to the host writes the device's memory");
    if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice)
        need_device(src, bytes, "copy from outside of what was allocated");
    else
        need_host(src, "copy from the host reads the device's memory");
    cu_emulated_enter();
    memcpy(dst, src, bytes);
    cu_emulated_leave();
    return cudaSuccess;
}

/* ---- cuBLASLt ------------------------------------------------------------------------------ */

struct fake_desc {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    cublasOperation_t a, b;
};
struct fake_layout {
    cudaDataType_t type;
    int64_t rows, cols, ld, batch, stride;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *ret)
{
    *ret = malloc(1);
    return *ret ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *ret, cublasComputeType_t c,
                                        cudaDataType_t scale)
{
    *ret = calloc(1, sizeof **ret);
    **ret = (struct fake_desc){.compute = c, .scale = scale};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                              cublasLtMatmulDescAttributes_t a,
                                              const void *value, size_t bytes)
{
    need(bytes == sizeof(cublasOperation_t), "an attribute of another size");
    memcpy(a == CUBLASLT_MATMUL_DESC_TRANSA ? &d->a : &d->b, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *ret, cudaDataType_t t,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    *ret = calloc(1, sizeof **ret);
    **ret = (struct fake_layout){t, (int64_t)rows, (int64_t)cols, ld, 1, 0};
    return rows > 0 && cols > 0 && ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS
                                                       : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                cublasLtMatrixLayoutAttribute_t a,
                                                const void *value, size_t bytes)
{
    int32_t count;
    need(bytes == (a == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? 4 : 8),
         "an attribute of another size");
    if (a == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) {
        memcpy(&count, value, sizeof count);
        l->batch = count;
    } else {
        memcpy(&l->stride, value, sizeof l->stride);
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *ret)
{
    *ret = malloc(1);
    return *ret ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
    free(p);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                     cublasLtMatmulPreferenceAttributes_t a,
                                     const void *value, size_t bytes)
{
    int workspace = a == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    need(p && value && bytes == (workspace ? 8 : 4), "a preference of another size");
    return CUBLAS_STATUS_SUCCESS;
}

/* What cuBLASLt would refuse: inner extents that differ, types that do not go together. */
cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t d,
                               cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t dst,
                               cublasLtMatmulPreference_t p, int wanted,
                               cublasLtMatmulHeuristicResult_t *ret, int *ret_found)
{
    int64_t m = d->a ? a->cols : a->rows, k = d->a ? a->rows : a->cols;
    int64_t n = d->b ? b->rows : b->cols, k2 = d->b ? b->cols : b->rows;
    int f64 = a->type == CUDA_R_64F;
    int good =
        h && p && wanted > 0 && k == k2 && m == dst->rows && n == dst->cols &&
        c->rows == m && c->cols == n && a->type == b->type &&
        (b->type == c->type || (b->type == CUDA_R_16BF && c->type == CUDA_R_32F)) &&
        a->batch == dst->batch && b->batch == dst->batch && dst->batch > 0 &&
        d->scale == (f64 ? CUDA_R_64F : CUDA_R_32F) &&
        d->compute == (f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F);
    fake_cuda_setups++;
    memset(ret, 0, sizeof *ret);
    *ret_found = good;
    return good ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static double element(const void *p, cudaDataType_t t, int64_t i)
{
    if (t == CUDA_R_64F)
        return ((const double *)p)[i];
    if (t == CUDA_R_32F)
        return (double)((const float *)p)[i];
    uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static void set_element(void *p, cudaDataType_t t, int64_t i, double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (t == CUDA_R_64F)
        ((double *)p)[i] = x;
    else if (t == CUDA_R_32F)
        ((float *)p)[i] = f;
    else
        ((uint16_t *)p)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void need_matrix(const void *p, const struct fake_layout *l)
{
    size_t bytes = l->type == CUDA_R_64F ? 8 : l->type == CUDA_R_32F ? 4 : 2;
    int64_t last = (l->batch - 1) * l->stride + (l->cols - 1) * l->ld;
    need_device(p, (size_t)(last + l->rows) * bytes,
                "a matrix outside of what was allocated");
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d,
                              const void *alpha, const void *a, cublasLtMatrixLayout_t la,
                              const void *b, cublasLtMatrixLayout_t lb, const void *beta,
                              const void *c, cublasLtMatrixLayout_t lc, void *dst,
                              cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo,
                              void *workspace, size_t bytes, cudaStream_t stream)
{
    need(h && algo && stream && c == dst && lc == ld, "a product that is set up badly");
    cu_emulated_on(stream);
    need_device(workspace, bytes, "a workspace outside of what was allocated");
    need_matrix(a, la);
    need_matrix(b, lb);
    need_matrix(dst, ld);
    int64_t k = d->a ? la->rows : la->cols;
    double by = element(alpha, d->scale, 0), keep = element(beta, d->scale, 0);
    cu_emulated_enter();
    for (int64_t one = 0; one < ld->batch; one++)
        for (int64_t j = 0; j < ld->cols; j++)
            for (int64_t i = 0; i < ld->rows; i++) {
                int64_t from_a = one * la->stride, from_b = one * lb->stride;
                int64_t at = one * ld->stride + j * ld->ld + i;
                double sum = 0;
                for (int64_t q = 0; q < k; q++)
                    sum += element(a, la->type,
                                   from_a + (d->a ? i * la->ld + q : q * la->ld + i)) *
                           element(b, lb->type,
                                   from_b + (d->b ? q * lb->ld + j : j * lb->ld + q));
                double old = keep == 0 ? 0 : keep * element(dst, ld->type, at);
                set_element(dst, ld->type, at, by * sum + old);
            }
    cu_emulated_leave();
    return CUBLAS_STATUS_SUCCESS;
}
