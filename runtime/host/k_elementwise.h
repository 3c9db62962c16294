/* k_elementwise.h - activations, gated units, scale, add, mul, weigh. */
#include "real.h"

/* gelu(x) = x/2 (1 + tanh(u)), u = sqrt(2/pi) (x + 0.044715 x^3); (1 + tanh(u)) / 2 is
 * the sigmoid of 2u. */
#define GELU_SCALE R(0.79788456080286535588)
#define GELU_CUBE  R(0.044715)

#if TOPT_REAL_IS_DOUBLE
INLINE real sigmoid(real x)
{
    return 1 / (1 + exp(-x));
}
#else
/* Nothing below 4e-18 is wanted of it, and numbers too small to be normal are slow. */
INLINE real sigmoid(real x)
{
    x = x < -40 ? -40 : x;
    return 1 / (1 + exp_within(x > 40 ? -40 : -x));
}
#endif

/* Far out on the left x sigmoid(x) is 0, whatever x is. */
INLINE real swish(real x, real s)
{
    return (x < -40 ? -40 : x) * s;
}

INLINE real gelu(real x)
{
    real u = GELU_SCALE * (x + GELU_CUBE * x * x * x);
    return swish(x, sigmoid(2 * u));
}

INLINE real gelu_slope(real x)
{
    x = x < -10 ? -10 : x;
    x = x > 10 ? 10 : x; /* beyond it is 0 and 1 */
    real u = GELU_SCALE * (x + GELU_CUBE * x * x * x), s = sigmoid(2 * u);
    real du = GELU_SCALE * (1 + 3 * GELU_CUBE * x * x);
    return s + 2 * x * s * (1 - s) * du;
}

/* The exact one is x times the share of a normal distribution below x; its slope is that share and x
 * times the density, e^(-x^2/2) / sqrt(2 pi). */
#define DENSITY R(0.39894228040143267794)

/* Beyond this the share is 0 and 1 in f32. */
#define NORMAL_END 12

INLINE real within_normal(real x)
{
    if (TOPT_REAL_IS_DOUBLE)
        return x;
    x = x < -NORMAL_END ? -NORMAL_END : x;
    return x > NORMAL_END ? NORMAL_END : x;
}

#if TOPT_REAL_IS_DOUBLE
INLINE real bell(real x)
{
    return exp(-x * x / 2);
}

/* By erfc, since 1 + erf would cancel on the left. */
INLINE real normal_below(real x, real at)
{
    (void)at;
    return erfc(x * -0.70710678118654752440) / 2;
}
#else
/* e^(-x^2/2): what is lost where x^2 is rounded is found by a part of x whose square is not, and is
 * small enough that e to it is 1 and it. */
INLINE real bell(real x)
{
    uint32_t bits;
    real upper;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xfffff000u;
    memcpy(&upper, &bits, sizeof upper);
    real most = -upper * upper / 2, rest = -(x - upper) * (x + upper) / 2;
    real sum = most + rest, e = exp_within(sum);
    return e + e * ((most - sum) + rest);
}

/* Of x in [-12, 12], 'at' its bell, in operations that become vectors.  On the left it is the bell
 * times t p(1 - t), t = 3 / (3 + |x|): p is the Chebyshev interpolation of degree 8 on [0, 13],
 * 2e-8 off at most beside values of 0.1 to 0.5. */
INLINE real normal_below(real x, real at)
{
    real a = x < 0 ? -x : x, d = 1 / (3 + a), u = a * d;
    real p = -0.0255218919f;
    p = p * u + 0.0616432169f;
    p = p * u - 0.0138322324f;
    p = p * u - 0.0292699940f;
    p = p * u - 0.0888813302f;
    p = p * u + 0.0693015555f;
    p = p * u + 0.3563296166f;
    p = p * u - 0.6968263998f;
    p = p * u + 0.4999999979f;
    p = p * (3 * d) * at;
    return x < 0 ? p : 1 - p;
}
#endif

INLINE real gelu_erf(real x)
{
    real t = within_normal(x);
    return (x < t ? t : x) * normal_below(t, bell(t));
}

INLINE real gelu_erf_slope(real x)
{
    real t = within_normal(x), at = bell(t);
    return normal_below(t, at) + t * DENSITY * at;
}

INLINE real silu_slope(real x)
{
    x = x < -40 ? -40 : x;
    real s = sigmoid(x > 40 ? 40 : x);
    return s * (1 + (x > 40 ? 40 : x) * (1 - s));
}

/* x sigmoid(1.702 x) has the slope of x sigmoid(x) at 1.702 x. */
#define QUICK R(1.702)

INLINE real clamp(real x, real low, real high)
{
    return x < low ? low : x > high ? high : x;
}

/* An activation and its slope.  Callers pass a constant where a loop is to be fast. */
INLINE real activate(int a, const struct topt_attrs *t, real x)
{
    switch (a) {
    case TOPT_ACT_RELU:
        return x > 0 ? x : 0;
    case TOPT_ACT_GELU:
        return gelu(x);
    case TOPT_ACT_SILU:
        return swish(x, sigmoid(x));
    case TOPT_ACT_TANH:
        return TANH(x);
    case TOPT_ACT_SIGMOID:
        return sigmoid(x);
    case TOPT_ACT_LEAKY_RELU:
        return x > 0 ? x : R(t->alpha) * x;
    case TOPT_ACT_ELU:
        return x > 0 ? x : R(t->alpha * expm1((double)x));
    case TOPT_ACT_GELU_ERF:
        return gelu_erf(x);
    case TOPT_ACT_SOFTPLUS:
        return x > 30 ? x : R(log1p(exp((double)x)));
    case TOPT_ACT_CLIP:
        return clamp(x, R(t->alpha), R(t->beta));
    case TOPT_ACT_HARD_SIGMOID:
        return clamp(R(t->alpha) * x + R(t->beta), 0, 1);
    case TOPT_ACT_HARD_SWISH:
        return x * clamp((x + 3) / 6, 0, 1);
    case TOPT_ACT_SOFTSIGN:
        return x / (1 + (x < 0 ? -x : x));
    case TOPT_ACT_ABS:
        return x < 0 ? -x : x;
    case TOPT_ACT_ERF:
        return R(erf((double)x));
    case TOPT_ACT_EXP:
        return R(exp((double)x));
    case TOPT_ACT_LOG:
        return R(log((double)x));
    case TOPT_ACT_SQRT:
        return R(sqrt((double)x));
    case TOPT_ACT_RECIPROCAL:
        return 1 / x;
    case TOPT_ACT_POWER:
        return R(pow((double)x, t->alpha));
    case TOPT_ACT_SIN:
        return R(sin((double)x));
    case TOPT_ACT_RELU2:
        return x > 0 ? x * x : 0;
    case TOPT_ACT_QUICK_GELU:
        return swish(x, sigmoid(QUICK * x));
    default:
        return R(cos((double)x));
    }
}

INLINE real slope_of(int a, const struct topt_attrs *p, real x)
{
    real t;
    switch (a) {
    case TOPT_ACT_RELU:
        return x > 0;
    case TOPT_ACT_GELU:
        return gelu_slope(x);
    case TOPT_ACT_SILU:
        return silu_slope(x);
    case TOPT_ACT_TANH:
        t = TANH(x);
        return 1 - t * t;
    case TOPT_ACT_SIGMOID:
        t = sigmoid(x);
        return t * (1 - t);
    case TOPT_ACT_LEAKY_RELU:
        return x > 0 ? 1 : R(p->alpha);
    case TOPT_ACT_ELU:
        return x > 0 ? 1 : R(p->alpha * exp((double)x));
    case TOPT_ACT_GELU_ERF:
        return gelu_erf_slope(x);
    case TOPT_ACT_SOFTPLUS:
        return sigmoid(x);
    case TOPT_ACT_CLIP:
        return x > R(p->alpha) && x < R(p->beta);
    case TOPT_ACT_HARD_SIGMOID:
        t = R(p->alpha) * x + R(p->beta);
        return t > 0 && t < 1 ? R(p->alpha) : 0;
    case TOPT_ACT_HARD_SWISH:
        return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
    case TOPT_ACT_SOFTSIGN:
        t = 1 + (x < 0 ? -x : x);
        return 1 / (t * t);
    case TOPT_ACT_ABS:
        return R((x > 0) - (x < 0));
    case TOPT_ACT_ERF:
        return R(1.12837916709551257390 * exp(-(double)x * (double)x));
    case TOPT_ACT_EXP:
        return R(exp((double)x));
    case TOPT_ACT_LOG:
        return 1 / x;
    case TOPT_ACT_SQRT:
        return R(0.5 / sqrt((double)x));
    case TOPT_ACT_RECIPROCAL:
        return -1 / (x * x);
    case TOPT_ACT_POWER:
        return R(p->alpha * pow((double)x, p->alpha - 1));
    case TOPT_ACT_SIN:
        return R(cos((double)x));
    case TOPT_ACT_RELU2:
        return x > 0 ? 2 * x : 0;
    case TOPT_ACT_QUICK_GELU:
        return silu_slope(QUICK * x);
    default:
        return R(-sin((double)x));
    }
}

/* 'body' in a loop of its own for each of the activations that models spend time in. */
#define EACH_ACTIVATION(a, body)                                                         \
    switch (a) {                                                                         \
    case TOPT_ACT_RELU:                                                                  \
        body(TOPT_ACT_RELU);                                                             \
        break;                                                                           \
    case TOPT_ACT_GELU:                                                                  \
        body(TOPT_ACT_GELU);                                                             \
        break;                                                                           \
    case TOPT_ACT_GELU_ERF:                                                              \
        body(TOPT_ACT_GELU_ERF);                                                         \
        break;                                                                           \
    case TOPT_ACT_QUICK_GELU:                                                            \
        body(TOPT_ACT_QUICK_GELU);                                                       \
        break;                                                                           \
    case TOPT_ACT_SILU:                                                                  \
        body(TOPT_ACT_SILU);                                                             \
        break;                                                                           \
    case TOPT_ACT_TANH:                                                                  \
        body(TOPT_ACT_TANH);                                                             \
        break;                                                                           \
    default:                                                                             \
        body(a);                                                                         \
    }

static void unary_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    const struct topt_attrs *t = &c->op->attrs;
    int64_t n = elements_of(c, X);
#define BODY(a)                                                                          \
    for (int64_t i = 0; i < n; i++)                                                      \
    y[i] = activate(a, t, x[i])
    EACH_ACTIVATION(t->activation, BODY)
#undef BODY
}

static void unary_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X], *dy = c->grad[Y];
    real *dx = c->grad[X];
    const struct topt_attrs *t = &c->op->attrs;
    int64_t n = dx ? elements_of(c, X) : 0;
#define BODY(a)                                                                          \
    for (int64_t i = 0; i < n; i++)                                                      \
    dx[i] = dy[i] * slope_of(a, t, x[i])
    EACH_ACTIVATION(t->activation, BODY)
#undef BODY
}

/* x holds pairs (gate, up). */
static void glu_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    const struct topt_attrs *t = &c->op->attrs;
    int64_t n = elements_of(c, Y);
#define BODY(a)                                                                          \
    for (int64_t i = 0; i < n; i++)                                                      \
    y[i] = activate(a, t, x[2 * i]) * x[2 * i + 1]
    EACH_ACTIVATION(t->activation, BODY)
#undef BODY
}

static void glu_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X], *dy = c->grad[Y];
    real *dx = c->grad[X];
    const struct topt_attrs *t = &c->op->attrs;
    int64_t n = dx ? elements_of(c, Y) : 0;
#define BODY(a)                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                    \
        real gate = x[2 * i], up = x[2 * i + 1];                                         \
        dx[2 * i] = dy[i] * up * slope_of(a, t, gate);                                   \
        dx[2 * i + 1] = dy[i] * activate(a, t, gate);                                    \
    }
    EACH_ACTIVATION(t->activation, BODY)
#undef BODY
}
#undef EACH_ACTIVATION

static void scale_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y], factor = R(c->op->attrs.factor), shift = R(c->op->attrs.shift);
    int64_t n = elements_of(c, X);
    for (int64_t i = 0; i < n; i++)
        y[i] = factor * x[i] + shift;
}

static void scale_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X], factor = R(c->op->attrs.factor);
    int64_t n = dx ? elements_of(c, X) : 0;
    for (int64_t i = 0; i < n; i++)
        dx[i] = factor * dy[i];
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

/* Features of a position, or pixels of a channel, by one number of 'g'. */
static void weigh_fwd(const struct topt_kernel_call *c)
{
    enum { X, WEIGHT, Y };
    const real *x = c->value[X], *g = c->value[WEIGHT];
    real *y = c->value[Y];
    int64_t rows = elements_of(c, WEIGHT), n = rows ? elements_of(c, X) / rows : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++)
            y[r * n + i] = g[r] * x[r * n + i];
}

static void weigh_bwd(const struct topt_kernel_call *c)
{
    enum { X, WEIGHT, Y };
    const real *x = c->value[X], *g = c->value[WEIGHT], *dy = c->grad[Y];
    real *dx = c->grad[X], *dg = c->grad[WEIGHT];
    int64_t rows = elements_of(c, WEIGHT), n = rows ? elements_of(c, X) / rows : 0;
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; dx && i < n; i++)
            dx[r * n + i] = g[r] * dy[r * n + i];
        for (int64_t i = 0; dg && i < n; i++)
            sum += (double)x[r * n + i] * (double)dy[r * n + i];
        if (dg)
            dg[r] = R(sum);
    }
}
