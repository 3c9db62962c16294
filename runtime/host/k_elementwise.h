/* k_elementwise.h - activations, gated units, scale, add, mul, weigh. */
#include "real.h"

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
    const struct topt_attrs *t = c->op->attrs;
    double alpha = t->alpha, beta = t->beta;
    int64_t n = elements_of(c, X);
#define BODY(a)                                                                          \
    for (int64_t i = 0; i < n; i++)                                                      \
    y[i] = activate(a, alpha, beta, x[i])
    EACH_ACTIVATION(t->activation, BODY)
#undef BODY
}

static void unary_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X], *dy = c->grad[Y];
    real *dx = c->grad[X];
    const struct topt_attrs *t = c->op->attrs;
    double alpha = t->alpha, beta = t->beta;
    int64_t n = dx ? elements_of(c, X) : 0;
#define BODY(a)                                                                          \
    for (int64_t i = 0; i < n; i++)                                                      \
    dx[i] = dy[i] * slope_of(a, alpha, beta, x[i])
    EACH_ACTIVATION(t->activation, BODY)
#undef BODY
}

/* x holds pairs (gate, up). */
static void glu_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    const struct topt_attrs *t = c->op->attrs;
    double alpha = t->alpha, beta = t->beta;
    int64_t n = elements_of(c, Y);
#define BODY(a)                                                                          \
    for (int64_t i = 0; i < n; i++)                                                      \
    y[i] = activate(a, alpha, beta, x[2 * i]) * x[2 * i + 1]
    EACH_ACTIVATION(t->activation, BODY)
#undef BODY
}

static void glu_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X], *dy = c->grad[Y];
    real *dx = c->grad[X];
    const struct topt_attrs *t = c->op->attrs;
    double alpha = t->alpha, beta = t->beta;
    int64_t n = dx ? elements_of(c, Y) : 0;
#define BODY(a)                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                    \
        real gate = x[2 * i], up = x[2 * i + 1];                                         \
        dx[2 * i] = dy[i] * up * slope_of(a, alpha, beta, gate);                         \
        dx[2 * i + 1] = dy[i] * activate(a, alpha, beta, gate);                          \
    }
    EACH_ACTIVATION(t->activation, BODY)
#undef BODY
}
#undef EACH_ACTIVATION

static void scale_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y], factor = R(c->op->attrs->factor),
         shift = R(c->op->attrs->shift);
    int64_t n = elements_of(c, X);
    for (int64_t i = 0; i < n; i++)
        y[i] = factor * x[i] + shift;
}

static void scale_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X], factor = R(c->op->attrs->factor);
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
