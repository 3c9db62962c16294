/* real.h - the first include of each kernel source: the number type and small helpers.
 *
 * The kernels are written once and compiled twice: host_f32.c and host_f64.c define
 * TOPT_REAL_IS_DOUBLE and include all of them.  Sums are carried in double wherever
 * that costs nothing beside the memory traffic, so that f32 runs of different splits
 * differ only by the rounding of stored values. */
#ifndef TOPT_HOST_REAL_H
#define TOPT_HOST_REAL_H

#include <limits.h>
#include <math.h>
#include <string.h>

#include "host_math.h"
#include "places.h"

/* Inside loops that are to become vectors: compilers leave some of these as calls. */
#define INLINE static inline __attribute__((always_inline))

#if TOPT_REAL_IS_DOUBLE
typedef double real;
#define R(x)          (x)
#define EXP(x)        exp(x)
#define EXP_WITHIN(x) exp(x)
#define TANH(x)       tanh(x)
#define BELL(x)       exp(-(x) * (x) / 2)
/* By erfc, since 1 + erf would cancel on the left. */
#define NORMAL_BELOW(x, bell) ((void)(bell), erfc((x) * -0.70710678118654752440) / 2)
#else
typedef float real;
#define R(x)                  ((float)(x))
#define EXP(x)                exp_f32(x)
#define EXP_WITHIN(x)         exp_within(x)
#define TANH(x)               tanh_f32(x)
#define BELL(x)               bell_f32(x)
#define NORMAL_BELOW(x, bell) normal_below_f32(x, bell)

/* e^x of x in [-87, 88], in operations that compilers turn into vectors (a call of
 * expf they do not): with x = k ln 2 + r the result is 2^k times a polynomial in r,
 * within 2 units in the last place. */
INLINE float exp_within(float x)
{
    const float round = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    float t = x * 1.44269504f + round, k = t - round;
    float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    uint32_t bits; /* k is in the low bits of t already; 2^k has 127 + k as exponent */
    float scale;
    memcpy(&bits, &t, sizeof bits);
    bits = (bits - 0x4b400000u + 127) << 23;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* Outside the range of normal numbers: the range's ends.  NaN stays NaN. */
INLINE float exp_f32(float x)
{
    x = x < -87.0f ? -87.0f : x;
    return exp_within(x > 88.0f ? 88.0f : x);
}

/* By e^2x, and by the series where that would cancel. */
INLINE float tanh_f32(float x)
{
    float t = x < -20 ? -20 : x;
    float e = exp_within(2 * (t > 20 ? 20 : t)), q = x * x;
    float near =
        x * (1 + q * (-0.333333333f +
                      q * (0.133333333f + q * (-0.0539682540f + q * 0.0218694885f))));
    float far = 1 - 2 / (e + 1);
    return q < 0.09f ? near : far;
}

/* e^(-x^2/2): what is lost where x^2 is rounded is found by a part of x whose square is not, and is
 * small enough that e to it is 1 and it. */
INLINE float bell_f32(float x)
{
    uint32_t bits;
    float upper;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xfffff000u;
    memcpy(&upper, &bits, sizeof upper);
    float most = -upper * upper / 2, rest = -(x - upper) * (x + upper) / 2;
    float sum = most + rest, e = exp_within(sum);
    return e + e * ((most - sum) + rest);
}

/* Of x in [-12, 12], 'bell' its bell, in operations that become vectors.  On the left it is the bell
 * times t p(1 - t), t = 3 / (3 + |x|): p is the Chebyshev interpolation of degree 8 on [0, 13],
 * 2e-8 off at most beside values of 0.1 to 0.5. */
INLINE float normal_below_f32(float x, float bell)
{
    float a = x < 0 ? -x : x, d = 1 / (3 + a), u = a * d;
    float p = -0.0255218919f;
    p = p * u + 0.0616432169f;
    p = p * u - 0.0138322324f;
    p = p * u - 0.0292699940f;
    p = p * u - 0.0888813302f;
    p = p * u + 0.0693015555f;
    p = p * u + 0.3563296166f;
    p = p * u - 0.6968263998f;
    p = p * u + 0.4999999979f;
    p = p * (3 * d) * bell;
    return x < 0 ? p : 1 - p;
}
#endif

/* What formulas.h asks for. */
typedef real num;
#define STATE     real
#define N(x)      R(x)
#define FORMULA   INLINE
#define ACT(name) TOPT_ACT_##name
#include "random.h"
#include "formulas.h"

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
    if (dst && dst != src && n > 0)
        memcpy(dst, src, (size_t)n * sizeof *dst);
}

/* A reduction is kept in LANES parts, so that it becomes vectors in the order that is
 * written here: the same numbers whatever the vectors' width. */
enum { LANES = 16 };

static inline double add_lanes(const double *lane)
{
    double sum[LANES];
    memcpy(sum, lane, sizeof sum);
    for (int half = LANES / 2; half; half /= 2)
        for (int k = 0; k < half; k++)
            sum[k] += sum[k + half];
    return sum[0];
}

static inline double sum_of(const real *x, int64_t n)
{
    double lane[LANES] = {0};
    int64_t j = 0;
    for (; j + LANES <= n; j += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] += (double)x[j + k];
    for (int k = 0; j < n; j++, k++)
        lane[k] += (double)x[j];
    return add_lanes(lane);
}

/* n >= 1 */
static inline real max_of(const real *x, int64_t n)
{
    real lane[LANES];
    int64_t j = 0;
    for (int k = 0; k < LANES; k++)
        lane[k] = x[0];
    for (; j + LANES <= n; j += LANES)
        for (int k = 0; k < LANES; k++)
            lane[k] = x[j + k] > lane[k] ? x[j + k] : lane[k];
    for (; j < n; j++)
        lane[0] = x[j] > lane[0] ? x[j] : lane[0];
    for (int k = 1; k < LANES; k++)
        lane[0] = lane[k] > lane[0] ? lane[k] : lane[0];
    return lane[0];
}

/* sum[j] += x[., j] over rows that are 'stride' apart, in their order: four at a time, so that
 * sums are read and written less often than numbers. */
static inline void add_rows(double *sum, const real *x, int64_t rows, int64_t stride,
                            int64_t cols)
{
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        const real *a = x + i * stride, *b = a + stride, *c = b + stride, *d = c + stride;
        for (int64_t j = 0; j < cols; j++)
            sum[j] = sum[j] + (double)a[j] + (double)b[j] + (double)c[j] + (double)d[j];
    }
    for (; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            sum[j] += (double)x[i * stride + j];
}

static inline void add_to(real *dst, const double *sum, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        dst[j] = R((double)dst[j] + sum[j]);
}

/* dst[j] += sum over rows of x[., j]: by strips, so that the sums are in double. */
static inline void add_column_sums(real *dst, const real *x, int64_t rows, int64_t cols)
{
    enum { STRIP = 512 };
    double sum[STRIP];
    for (int64_t j0 = 0; j0 < cols; j0 += STRIP) {
        int64_t n = cols - j0 < STRIP ? cols - j0 : STRIP;
        memset(sum, 0, (size_t)n * sizeof *sum);
        add_rows(sum, x + j0, rows, cols, n);
        add_to(dst + j0, sum, n);
    }
}

/* c[m,n] = alpha a b + beta c, row-major, 'ta'/'tb' transpose; any of the sizes may be
 * 0. */
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
