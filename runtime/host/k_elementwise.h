/* k_elementwise.h - activations, swiglu, add, mul. */
#include "real.h"

/* gelu(x) = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3); (1 + tanh(u)) / 2 is the
 * sigmoid of 2u. */
#define GELU_SCALE R(0.79788456080286535588)
#define GELU_CUBE  R(0.044715)

#if TOPT_REAL_IS_DOUBLE
static inline real sigmoid(real x)
{
    return 1 / (1 + exp(-x));
}
#else
/* Nothing below 4e-18 is wanted of it, and numbers too small to be normal are slow. */
static inline real sigmoid(real x)
{
    x = x < -40 ? -40 : x;
    return 1 / (1 + exp_within(x > 40 ? -40 : -x));
}
#endif

/* Far out on the left x sigmoid(x) is 0, whatever x is. */
static inline real swish(real x, real s)
{
    return (x < -40 ? -40 : x) * s;
}

static void unary_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t n = elements_of(c, X);
    switch (c->op->attrs.activation) {
    case TOPT_ACT_RELU:
        for (int64_t i = 0; i < n; i++)
            y[i] = x[i] > 0 ? x[i] : 0;
        break;
    case TOPT_ACT_GELU:
        for (int64_t i = 0; i < n; i++) {
            real u = GELU_SCALE * (x[i] + GELU_CUBE * x[i] * x[i] * x[i]);
            y[i] = swish(x[i], sigmoid(2 * u));
        }
        break;
    case TOPT_ACT_SILU:
        for (int64_t i = 0; i < n; i++)
            y[i] = swish(x[i], sigmoid(x[i]));
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            y[i] = TANH(x[i]);
    }
}

static inline real gelu_slope(real x)
{
    x = x < -10 ? -10 : x;
    x = x > 10 ? 10 : x; /* beyond it is 0 and 1 */
    real u = GELU_SCALE * (x + GELU_CUBE * x * x * x), s = sigmoid(2 * u);
    real du = GELU_SCALE * (1 + 3 * GELU_CUBE * x * x);
    return s + 2 * x * s * (1 - s) * du;
}

static inline real silu_slope(real x)
{
    x = x < -40 ? -40 : x;
    real s = sigmoid(x > 40 ? 40 : x);
    return s * (1 + (x > 40 ? 40 : x) * (1 - s));
}

static void unary_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X], *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t n = dx ? elements_of(c, X) : 0;
    switch (c->op->attrs.activation) {
    case TOPT_ACT_RELU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = x[i] > 0 ? dy[i] : 0;
        break;
    case TOPT_ACT_GELU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * gelu_slope(x[i]);
        break;
    case TOPT_ACT_SILU:
        for (int64_t i = 0; i < n; i++)
            dx[i] = dy[i] * silu_slope(x[i]);
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            real t = TANH(x[i]);
            dx[i] = dy[i] * (1 - t * t);
        }
    }
}

/* x holds pairs (gate, up). */
static void swiglu_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t n = elements_of(c, Y);
    for (int64_t i = 0; i < n; i++)
        y[i] = swish(x[2 * i], sigmoid(x[2 * i])) * x[2 * i + 1];
}

static void swiglu_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X], *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t n = dx ? elements_of(c, Y) : 0;
    for (int64_t i = 0; i < n; i++) {
        real gate = x[2 * i], up = x[2 * i + 1];
        dx[2 * i] = dy[i] * up * silu_slope(gate);
        dx[2 * i + 1] = dy[i] * swish(gate, sigmoid(gate));
    }
}

static void add_fwd(const struct topt_kernel_call *c)
{
    enum { A, B, Y };
    const real *a = c->value[A], *b = c->value[B];
    real *y = c->value[Y];
    int64_t n = elements_of(c, Y);
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}

static void add_bwd(const struct topt_kernel_call *c)
{
    enum { A, B, Y };
    copy(c->grad[A], c->grad[Y], elements_of(c, Y));
    copy(c->grad[B], c->grad[Y], elements_of(c, Y));
}

static void mul_fwd(const struct topt_kernel_call *c)
{
    enum { A, B, Y };
    const real *a = c->value[A], *b = c->value[B];
    real *y = c->value[Y];
    int64_t n = elements_of(c, Y);
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] * b[i];
}

static void mul_bwd(const struct topt_kernel_call *c)
{
    enum { A, B, Y };
    const real *a = c->value[A], *b = c->value[B], *dy = c->grad[Y];
    real *da = c->grad[A], *db = c->grad[B];
    int64_t n = elements_of(c, Y);
    for (int64_t i = 0; da && i < n; i++)
        da[i] = dy[i] * b[i];
    for (int64_t i = 0; db && i < n; i++)
        db[i] = dy[i] * a[i];
}
