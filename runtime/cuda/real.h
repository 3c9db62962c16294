/* real.h - the first include of each kernel source: the number type, and small
 * helpers.
 *
 * The kernels are written once, in the common part of C and CUDA C++, and compiled for
 * each type: kernels_f32.cu, kernels_f64.cu and kernels_bf16.cu define TOPT_CU_TYPE
 * (32, 64, 16) and include all of them.  'real' is what memory holds, 'num' what is
 * computed with, 'wide' what sums are carried in (double, but for bf16), 'state' what
 * optimizers keep, 'stat' what statistics, losses and wide gradients are in. */
#ifndef TOPT_CU_REAL_H
#define TOPT_CU_REAL_H

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "cu.h"
#include "grid.h"

#if TOPT_CU_TYPE == 64
typedef double real, num, wide, state, stat;
#define EXP   exp
#define TANH  tanh
#define ERFC  erfc
#define STATE double
#else
#define EXP   expf
#define TANH  tanhf
#define ERFC  erfcf
#define STATE float
typedef float num, state, stat;
#if TOPT_CU_TYPE == 32
typedef float real;
typedef double wide;
#else
typedef uint16_t real;
typedef float wide;
#endif
#endif

#define N(x) ((num)(x))
#define W(x) ((wide)(x))

/* What formulas.h asks for. */
#define EXP_WITHIN(x)         EXP(x)
#define BELL(x)               EXP(-(x) * (x) / 2)
#define NORMAL_BELOW(x, bell) ((void)(bell), ERFC((x)*N(-0.70710678118654752440)) / 2)
#define FORMULA               DEVICE
#define ACT(name)             CU_##name
#define TOPT_RANDOM           DEVICE
#include "exec/random.h"
#include "formulas.h"

#if TOPT_CU_TYPE == 16
/* The upper half of an f32, rounded to the nearest, ties to even. */
DEVICE num get(const real *p, int64_t i)
{
    uint32_t bits = (uint32_t)p[i] << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

DEVICE void put(real *p, int64_t i, num x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    p[i] = (real)((bits & 0x7fffffffu) > 0x7f800000u
                      ? bits >> 16 | 0x40
                      : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#else
DEVICE num get(const real *p, int64_t i)
{
    return p[i];
}

DEVICE void put(real *p, int64_t i, num x)
{
    p[i] = x;
}
#endif

DEVICE wide plus(wide a, wide b)
{
    return a + b;
}

DEVICE wide larger(wide a, wide b)
{
    return a > b ? a : b;
}

#define IN(x)   ((const real *)(x))
#define OUT(x)  ((real *)(x))
#define IDS(x)  ((const int32_t *)(x))
#define STAT(x) ((stat *)(x))

/* dst[i] += x, of a gradient that is wide or not. */
DEVICE void accumulate(void *dst, int is_wide, int64_t i, wide x)
{
    if (is_wide)
        STAT(dst)[i] = (stat)(W(STAT(dst)[i]) + x);
    else
        put(OUT(dst), i, N(W(get(OUT(dst), i)) + x));
}

/* Is the gradient of operand o in f32 where numbers are bf16? */
BOTH int wide_grad(const struct cu_call *c, int o)
{
    return (int)(c->wide_grads >> o & 1);
}

DEVICE int64_t elements(const struct cu_call *c, int o)
{
    return c->rows[o] * c->cols[o];
}

/* The same on the host's side. */
static inline int64_t size_of(const struct cu_call *c, int o)
{
    return c->rows[o] * c->cols[o];
}

#endif
