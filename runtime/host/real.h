/* real.h - the first include of each kernel source: the number type and small helpers.
 *
 * The kernels are written once and compiled twice: host_f32.c and host_f64.c define
 * TOPT_REAL_IS_DOUBLE and include all of them.  Sums are carried in double wherever that
 * costs nothing beside the memory traffic, so that f32 runs of different splits differ only
 * by the rounding of stored values. */
#ifndef TOPT_HOST_REAL_H
#define TOPT_HOST_REAL_H

#include <limits.h>
#include <math.h>
#include <string.h>

#include "host.h"

#if TOPT_REAL_IS_DOUBLE
typedef double real;
#define R(x)    (x)
#define EXP(x)  exp(x)
#define TANH(x) tanh(x)
#else
typedef float real;
#define R(x)    ((float)(x))
#define EXP(x)  expf(x)
#define TANH(x) tanhf(x)
#endif

/* Elements of one dimension of an operand's local block. */
static inline int64_t extent(const struct topt_kernel_call *c, int operand, int i)
{
    int d = c->op->spec->operand[operand].dim[i];
    return c->len[d] * c->op->operand[operand].dim[i].unit;
}

/* An operand's local block as a matrix: rows of the last dimension. */
static inline int64_t cols_of(const struct topt_kernel_call *c, int operand)
{
    return extent(c, operand, c->op->spec->operand[operand].ndim - 1);
}

static inline int64_t rows_of(const struct topt_kernel_call *c, int operand)
{
    int64_t n = 1;
    for (int i = 0; i + 1 < c->op->spec->operand[operand].ndim; i++)
        n *= extent(c, operand, i);
    return n;
}

static inline int64_t elements_of(const struct topt_kernel_call *c, int operand)
{
    return rows_of(c, operand) * cols_of(c, operand);
}

/* A gradient that is added to: a parameter's.  An input's is written. */
static inline int accumulates(const struct topt_kernel_call *c, int operand)
{
    return c->op->operand[operand].role == TOPT_PARAM;
}

static inline void copy(real *dst, const real *src, int64_t n)
{
    if (dst && n > 0)
        memcpy(dst, src, (size_t)n * sizeof *dst);
}

/* dst[j] += sum over rows of x[., j]: by strips, so that the sums are in double. */
static inline void add_column_sums(real *dst, const real *x, int64_t rows, int64_t cols)
{
    enum { STRIP = 128 };
    double sum[STRIP];
    for (int64_t j0 = 0; j0 < cols; j0 += STRIP) {
        int64_t n = cols - j0 < STRIP ? cols - j0 : STRIP;
        memset(sum, 0, sizeof sum);
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < n; j++)
                sum[j] += (double)x[i * cols + j0 + j];
        for (int64_t j = 0; j < n; j++)
            dst[j0 + j] = R((double)dst[j0 + j] + sum[j]);
    }
}

/* c[m,n] = alpha a b + beta c, row-major, 'ta'/'tb' transpose; any of the sizes may be 0. */
struct gemm {
    int ta, tb;
    int64_t m, n, k;
    double alpha, beta;
    const real *a, *b;
    real *c;
    int64_t lda, ldb, ldc;
};
static void gemm(const struct gemm *g);

#endif
