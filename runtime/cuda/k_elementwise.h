/* k_elementwise.h - activations, gated units, scale, add, mul. */
#include "real.h"

/* Far out, where nothing is left of it, the argument is held so that no power
 * overflows. */
DEVICE num sigmoid(num x)
{
    x = x < -40 ? N(-40) : x;
    return 1 / (1 + EXP(-x));
}

/* x sigmoid(x) is 0 far out on the left, whatever x is. */
DEVICE num swish(num x, num s)
{
    return (x < -40 ? N(-40) : x) * s;
}

/* gelu(x) = x/2 (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3). */
#define GELU_SCALE N(0.79788456080286535588)
#define GELU_CUBE  N(0.044715)

DEVICE num gelu_slope(num x)
{
    x = x < -10 ? N(-10) : x > 10 ? N(10) : x; /* beyond it is 0 and 1 */
    num s = sigmoid(2 * GELU_SCALE * (x + GELU_CUBE * x * x * x));
    num du = GELU_SCALE * (1 + 3 * GELU_CUBE * x * x);
    return s + 2 * x * s * (1 - s) * du;
}

/* The share of a normal distribution below x; x times that is the exact gelu. */
DEVICE num normal_below(num x)
{
    return ERFC(x * N(-0.70710678118654752440)) / 2;
}

DEVICE num silu_slope(num x)
{
    x = x < -40 ? N(-40) : x > 40 ? N(40) : x;
    num s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* x sigmoid(1.702 x) has the slope of x sigmoid(x) at 1.702 x. */
#define QUICK N(1.702)

DEVICE num clamp(num x, num low, num high)
{
    return x < low ? low : x > high ? high : x;
}

DEVICE num activate(const struct cu_call *c, num x)
{
    switch (c->activation) {
    case CU_RELU:
        return x > 0 ? x : N(0);
    case CU_GELU:
        return swish(x, sigmoid(2 * GELU_SCALE * (x + GELU_CUBE * x * x * x)));
    case CU_SILU:
        return swish(x, sigmoid(x));
    case CU_TANH:
        return TANH(x);
    case CU_SIGMOID:
        return sigmoid(x);
    case CU_LEAKY_RELU:
        return x > 0 ? x : N(c->alpha) * x;
    case CU_ELU:
        return x > 0 ? x : N(c->alpha * expm1((double)x));
    case CU_GELU_ERF:
        return x * normal_below(x);
    case CU_SOFTPLUS:
        return x > 30 ? x : N(log1p(exp((double)x)));
    case CU_CLIP:
        return clamp(x, N(c->alpha), N(c->beta));
    case CU_HARD_SIGMOID:
        return clamp(N(c->alpha) * x + N(c->beta), N(0), N(1));
    case CU_HARD_SWISH:
        return x * clamp((x + 3) / 6, N(0), N(1));
    case CU_SOFTSIGN:
        return x / (1 + (x < 0 ? -x : x));
    case CU_ABS:
        return x < 0 ? -x : x;
    case CU_ERF:
        return N(erf((double)x));
    case CU_EXP:
        return N(exp((double)x));
    case CU_LOG:
        return N(log((double)x));
    case CU_SQRT:
        return N(sqrt((double)x));
    case CU_RECIPROCAL:
        return 1 / x;
    case CU_POWER:
        return N(pow((double)x, c->alpha));
    case CU_SIN:
        return N(sin((double)x));
    case CU_RELU2:
        return x > 0 ? x * x : N(0);
    case CU_QUICK_GELU:
        return swish(x, sigmoid(QUICK * x));
    default:
        return N(cos((double)x));
    }
}

DEVICE num slope(const struct cu_call *c, num x)
{
    switch (c->activation) {
    case CU_RELU:
        return x > 0 ? N(1) : N(0);
    case CU_GELU:
        return gelu_slope(x);
    case CU_SILU:
        return silu_slope(x);
    case CU_TANH:
        return 1 - TANH(x) * TANH(x);
    case CU_SIGMOID:
        return sigmoid(x) * (1 - sigmoid(x));
    case CU_LEAKY_RELU:
        return x > 0 ? N(1) : N(c->alpha);
    case CU_ELU:
        return x > 0 ? N(1) : N(c->alpha * exp((double)x));
    case CU_GELU_ERF:
        return normal_below(x) + x * N(0.39894228040143267794) * EXP(-x * x / 2);
    case CU_SOFTPLUS:
        return sigmoid(x);
    case CU_CLIP:
        return x > N(c->alpha) && x < N(c->beta) ? N(1) : N(0);
    case CU_HARD_SIGMOID:
        x = N(c->alpha) * x + N(c->beta);
        return x > 0 && x < 1 ? N(c->alpha) : N(0);
    case CU_HARD_SWISH:
        return x <= -3 ? N(0) : x >= 3 ? N(1) : (2 * x + 3) / 6;
    case CU_SOFTSIGN:
        x = x < 0 ? 1 - x : 1 + x;
        return 1 / (x * x);
    case CU_ABS:
        return N((x > 0) - (x < 0));
    case CU_ERF:
        return N(1.12837916709551257390 * exp(-(double)x * (double)x));
    case CU_EXP:
        return N(exp((double)x));
    case CU_LOG:
        return 1 / x;
    case CU_SQRT:
        return N(0.5 / sqrt((double)x));
    case CU_RECIPROCAL:
        return -1 / (x * x);
    case CU_POWER:
        return N(c->alpha * pow((double)x, c->alpha - 1));
    case CU_SIN:
        return N(cos((double)x));
    case CU_RELU2:
        return x > 0 ? 2 * x : N(0);
    case CU_QUICK_GELU:
        return silu_slope(QUICK * x);
    default:
        return N(-sin((double)x));
    }
}

KERNEL unary_fwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, X))
    put(OUT(c.value[Y]), i, activate(&c, get(IN(c.value[X]), i)));
}

static int unary_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(unary_fwd_each, blocks_for(size_of(c, 0)), stream, c);
    return 0;
}

KERNEL unary_bwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, X))
    put(OUT(c.grad[X]), i, get(IN(c.grad[Y]), i) * slope(&c, get(IN(c.value[X]), i)));
}

static int unary_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[0])
        LAUNCH(unary_bwd_each, blocks_for(size_of(c, 0)), stream, c);
    return 0;
}

/* x holds pairs (gate, up). */
KERNEL glu_fwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, Y))
    {
        num gate = get(IN(c.value[X]), 2 * i), up = get(IN(c.value[X]), 2 * i + 1);
        put(OUT(c.value[Y]), i, activate(&c, gate) * up);
    }
}

static int glu_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(glu_fwd_each, blocks_for(size_of(c, 1)), stream, c);
    return 0;
}

KERNEL glu_bwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, Y))
    {
        num gate = get(IN(c.value[X]), 2 * i), up = get(IN(c.value[X]), 2 * i + 1);
        num dy = get(IN(c.grad[Y]), i);
        put(OUT(c.grad[X]), 2 * i, dy * up * slope(&c, gate));
        put(OUT(c.grad[X]), 2 * i + 1, dy * activate(&c, gate));
    }
}

static int glu_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[0])
        LAUNCH(glu_bwd_each, blocks_for(size_of(c, 1)), stream, c);
    return 0;
}

KERNEL scale_fwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, Y))
    put(OUT(c.value[Y]), i, N(c.factor) * get(IN(c.value[X]), i) + N(c.shift));
}

static int scale_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(scale_fwd_each, blocks_for(size_of(c, 1)), stream, c);
    return 0;
}

KERNEL scale_bwd_each(CALL(cu_call) c)
{
    enum { X, Y };
    EACH(i, elements(&c, Y))
    put(OUT(c.grad[X]), i, N(c.factor) * get(IN(c.grad[Y]), i));
}

static int scale_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[0])
        LAUNCH(scale_bwd_each, blocks_for(size_of(c, 1)), stream, c);
    return 0;
}

KERNEL add_fwd_each(CALL(cu_call) c)
{
    enum { A, B, Y };
    EACH(i, elements(&c, Y))
    put(OUT(c.value[Y]), i, get(IN(c.value[A]), i) + get(IN(c.value[B]), i));
}

static int add_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(add_fwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}

KERNEL add_bwd_each(CALL(cu_call) c)
{
    enum { A, B, Y };
    EACH(i, elements(&c, Y))
    {
        if (c.grad[A])
            OUT(c.grad[A])[i] = IN(c.grad[Y])[i];
        if (c.grad[B])
            OUT(c.grad[B])[i] = IN(c.grad[Y])[i];
    }
}

static int add_bwd(void *stream, const struct cu_call *c)
{
    LAUNCH(add_bwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}

KERNEL mul_fwd_each(CALL(cu_call) c)
{
    enum { A, B, Y };
    EACH(i, elements(&c, Y))
    put(OUT(c.value[Y]), i, get(IN(c.value[A]), i) * get(IN(c.value[B]), i));
}

static int mul_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(mul_fwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}

KERNEL mul_bwd_each(CALL(cu_call) c)
{
    enum { A, B, Y };
    EACH(i, elements(&c, Y))
    {
        num dy = get(IN(c.grad[Y]), i);
        if (c.grad[A])
            put(OUT(c.grad[A]), i, dy * get(IN(c.value[B]), i));
        if (c.grad[B])
            put(OUT(c.grad[B]), i, dy * get(IN(c.value[A]), i));
    }
}

static int mul_bwd(void *stream, const struct cu_call *c)
{
    LAUNCH(mul_bwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}
