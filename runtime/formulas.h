/* formulas.h - what kernels compute of single numbers, written once for all backends: activations and their slopes,
 * shares of softmax, cells of recurrences, losses, norms, steps of the optimizers, which numbers are dropped.
 *
 * The loops of host/ and the grids of cuda/ stand around these.  Device code includes this, in the common part of C
 * and CUDA C++, so it includes nothing of ours but random.h, which is so, too.  The real.h of a backend defines before:
 *
 *     num, N(x)              what is computed with, and x as one; STATE: what optimizers keep
 *     FORMULA                how a function is declared
 *     EXP, TANH              of any num
 *     EXP_WITHIN             e^x of x within 80 of 0
 *     BELL(x)                e^(-x^2/2)
 *     NORMAL_BELOW(x, bell)  the share of a normal distribution below x, whose BELL is given
 *     ACT(name)              the number of an activation
 *
 * Functions are pure, and are inlined: a loop whose activation is a constant becomes vectors.  Thread safety: no
 * state. */
#ifndef RUNTIME_FORMULAS_H
#define RUNTIME_FORMULAS_H

#include <math.h>
#include <stdint.h>

/* ---- activations ------------------------------------------------------------------- */

FORMULA num clamp(num x, num low, num high)
{
    x = x < low ? low : x; /* one after the other: nested, compilers make jumps of it */
    return x > high ? high : x;
}

/* Nothing below 4e-18 is wanted of it, and numbers too small to be normal are slow. */
FORMULA num sigmoid(num x)
{
    return 1 / (1 + EXP_WITHIN(-clamp(x, N(-40), N(40))));
}

/* x times s, its sigmoid: far out on the left that is 0, whatever x is. */
FORMULA num swish(num x, num s)
{
    return (x < -40 ? N(-40) : x) * s;
}

FORMULA num silu_slope(num x)
{
    x = clamp(x, N(-40), N(40));
    num s = sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* gelu(x) = x/2 (1 + tanh(u)) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3)
 * (Hendrycks, Gimpel, Gaussian Error Linear Units, 2016). */
#define GELU_SCALE N(0.79788456080286535588)
#define GELU_CUBE  N(0.044715)

FORMULA num gelu(num x)
{
    num u = GELU_SCALE * (x + GELU_CUBE * x * x * x);
    return swish(x, sigmoid(2 * u));
}

FORMULA num gelu_slope(num x)
{
    x = clamp(x, N(-10), N(10)); /* beyond it is 0 and 1 */
    num u = GELU_SCALE * (x + GELU_CUBE * x * x * x), s = sigmoid(2 * u);
    num du = GELU_SCALE * (1 + 3 * GELU_CUBE * x * x);
    return s + 2 * x * s * (1 - s) * du;
}

/* The exact one is x times the share of a normal distribution below x; its slope is that share and x times the
 * density.  Beyond the end the share is 0 and 1. */
#define DENSITY    N(0.39894228040143267794)
#define NORMAL_END (sizeof(num) == 8 ? N(40) : N(12))

FORMULA num gelu_erf(num x)
{
    num t = clamp(x, -NORMAL_END, NORMAL_END);
    return (x < t ? t : x) * NORMAL_BELOW(t, BELL(t));
}

FORMULA num gelu_erf_slope(num x)
{
    num t = clamp(x, -NORMAL_END, NORMAL_END), bell = BELL(t);
    return NORMAL_BELOW(t, bell) + t * DENSITY * bell;
}

/* x sigmoid(1.702 x) has the slope of x sigmoid(x) at 1.702 x. */
#define QUICK N(1.702)

/* Activation 'a' of x; 'alpha' and 'beta' are its own numbers, where it has any. */
FORMULA num activate(int a, double alpha, double beta, num x)
{
    switch (a) {
    case ACT(RELU):
        return x > 0 ? x : N(0);
    case ACT(GELU):
        return gelu(x);
    case ACT(SILU):
        return swish(x, sigmoid(x));
    case ACT(TANH):
        return TANH(x);
    case ACT(SIGMOID):
        return sigmoid(x);
    case ACT(LEAKY_RELU):
        return x > 0 ? x : N(alpha) * x;
    case ACT(ELU):
        return x > 0 ? x : N(alpha * expm1((double)x));
    case ACT(GELU_ERF):
        return gelu_erf(x);
    case ACT(SOFTPLUS):
        return x > 30 ? x : N(log1p(exp((double)x)));
    case ACT(CLIP):
        return clamp(x, N(alpha), N(beta));
    case ACT(HARD_SIGMOID):
        return clamp(N(alpha) * x + N(beta), N(0), N(1));
    case ACT(HARD_SWISH):
        return x * clamp((x + 3) / 6, N(0), N(1));
    case ACT(SOFTSIGN):
        return x / (1 + (x < 0 ? -x : x));
    case ACT(ABS):
        return x < 0 ? -x : x;
    case ACT(ERF):
        return N(erf((double)x));
    case ACT(EXP):
        return N(exp((double)x));
    case ACT(LOG):
        return N(log((double)x));
    case ACT(SQRT):
        return N(sqrt((double)x));
    case ACT(RECIPROCAL):
        return 1 / x;
    case ACT(POWER):
        return N(pow((double)x, alpha));
    case ACT(SIN):
        return N(sin((double)x));
    case ACT(RELU2):
        return x > 0 ? x * x : N(0);
    case ACT(QUICK_GELU):
        return swish(x, sigmoid(QUICK * x));
    default:
        return N(cos((double)x));
    }
}

FORMULA num slope_of(int a, double alpha, double beta, num x)
{
    num t;
    switch (a) {
    case ACT(RELU):
        return x > 0 ? N(1) : N(0);
    case ACT(GELU):
        return gelu_slope(x);
    case ACT(SILU):
        return silu_slope(x);
    case ACT(TANH):
        t = TANH(x);
        return 1 - t * t;
    case ACT(SIGMOID):
        t = sigmoid(x);
        return t * (1 - t);
    case ACT(LEAKY_RELU):
        return x > 0 ? N(1) : N(alpha);
    case ACT(ELU):
        return x > 0 ? N(1) : N(alpha * exp((double)x));
    case ACT(GELU_ERF):
        return gelu_erf_slope(x);
    case ACT(SOFTPLUS):
        return sigmoid(x);
    case ACT(CLIP):
        return x > N(alpha) && x < N(beta) ? N(1) : N(0);
    case ACT(HARD_SIGMOID):
        t = N(alpha) * x + N(beta);
        return t > 0 && t < 1 ? N(alpha) : N(0);
    case ACT(HARD_SWISH):
        return x <= -3 ? N(0) : x >= 3 ? N(1) : (2 * x + 3) / 6;
    case ACT(SOFTSIGN):
        t = 1 + (x < 0 ? -x : x);
        return 1 / (t * t);
    case ACT(ABS):
        return N((x > 0) - (x < 0));
    case ACT(ERF):
        return N(1.12837916709551257390 * exp(-(double)x * (double)x));
    case ACT(EXP):
        return N(exp((double)x));
    case ACT(LOG):
        return 1 / x;
    case ACT(SQRT):
        return N(0.5 / sqrt((double)x));
    case ACT(RECIPROCAL):
        return -1 / (x * x);
    case ACT(POWER):
        return N(alpha * pow((double)x, alpha - 1));
    case ACT(SIN):
        return N(cos((double)x));
    case ACT(RELU2):
        return x > 0 ? 2 * x : N(0);
    case ACT(QUICK_GELU):
        return silu_slope(QUICK * x);
    default:
        return N(-sin((double)x));
    }
}

/* Of steps and gates of recurrences, which are in double. */
FORMULA double softplus(double x)
{
    return x > 20 ? x : log1p(exp(x));
}

FORMULA double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- norms, with xhat = (x - mean) rstd -------------------------------------------- */

FORMULA double rstd_of(double var, double eps)
{
    return 1 / sqrt(var + eps);
}

FORMULA num normed(num x, num mean, num rstd)
{
    return (x - mean) * rstd;
}

/* s1 = mean of the slopes dy of xhat, s2 = mean of dy xhat. */
FORMULA num norm_slope(num dy, num x, num mean, num rstd, num s1, num s2)
{
    return rstd * (dy - s1 - normed(x, mean, rstd) * s2);
}

/* ---- softmax and losses ------------------------------------------------------------ */

/* Of a row whose powers e^(x - max) add up to 1 / inverse. */
FORMULA num softmax_share(num x, num max, num inverse)
{
    return EXP(x - max) * inverse;
}

/* By the share p and the sum 'dot' of y dy over the row; of a softmax' logarithm, of the sum of dy. */
FORMULA num softmax_slope(num p, num dy, num dot, int of_log)
{
    return of_log ? dy - p * dot : p * (dy - dot);
}

/* Cross-entropy of the label's logit 'target'; 0 where 'sum' is, which says that the row does not count. */
FORMULA double xent_loss_of(double sum, double max, double target)
{
    return sum == 0 ? 0 : log(sum) + max - target;
}

/* ln(1 + e^x) - label x, without e^x of a large x. */
FORMULA double logistic_loss(double x, int label)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x))) - (label ? x : 0);
}

FORMULA double logistic_slope(double x, int label)
{
    double e = exp(-fabs(x)), yes = x > 0 ? 1 / (1 + e) : e / (1 + e);
    return yes - (label ? 1 : 0);
}

/* What an expert's weight is a share of, and what is left of 1 by it: powers, or sigmoids of the logits. */
FORMULA double route_share(int by_sigmoid, double x, double most)
{
    return by_sigmoid ? logistic(x) : exp(x - most);
}

FORMULA double route_left(int by_sigmoid, double x)
{
    return by_sigmoid ? logistic(-x) : 1;
}

/* ---- cells of recurrences ---------------------------------------------------------- */

/* From the sums z of the gates (in, forget, candidate, out) and the cell before: the gates, the cell, and its output
 * (Gers et al., Learning to Forget, 2000). */
FORMULA num lstm_cell(const num z[4], num before, num gate[4], num *cell)
{
    gate[0] = sigmoid(z[0]);
    gate[1] = sigmoid(z[1]);
    gate[2] = TANH(z[2]);
    gate[3] = sigmoid(z[3]);
    *cell = gate[1] * before + gate[0] * gate[2];
    return gate[3] * TANH(*cell);
}

/* Slopes of z, from those of the output and, by the next step, of the cell; returns that of the cell before. */
FORMULA num lstm_slopes(const num gate[4], num before, num cell, num dh, num carried,
                        num dz[4])
{
    num in = gate[0], forget = gate[1], g = gate[2], out = gate[3], t = TANH(cell);
    num dc = dh * out * (1 - t * t) + carried;
    dz[0] = dc * g * in * (1 - in);
    dz[1] = dc * before * forget * (1 - forget);
    dz[2] = dc * in * (1 - g * g);
    dz[3] = dh * t * out * (1 - out);
    return dc * forget;
}

/* From the sums of both gates and of the candidate, to which the gated q is added: the gates (reset, update,
 * candidate) and the new state (Cho et al., 2014, reset after the product). */
FORMULA num gru_cell(const num z[3], num q, num before, num gate[3])
{
    gate[0] = sigmoid(z[0]);
    gate[1] = sigmoid(z[1]);
    gate[2] = TANH(z[2] + gate[0] * q);
    return (1 - gate[1]) * gate[2] + gate[1] * before;
}

/* Slopes of z; that of q is dz[2] times the reset gate, that of the state before dh times the update gate. */
FORMULA void gru_slopes(const num gate[3], num q, num before, num dh, num dz[3])
{
    num r = gate[0], u = gate[1], n = gate[2];
    dz[2] = dh * (1 - u) * (1 - n * n);
    dz[0] = dz[2] * q * r * (1 - r);
    dz[1] = dh * (before - n) * u * (1 - u);
}

/* ---- steps of the optimizers ------------------------------------------------------- */

/* 'rate' is over 1 - beta1^step already, 'root' is 1 / sqrt(1 - beta2^step); a weight is first multiplied by 'stays'
 * (Kingma, Ba, 2015; Loshchilov, Hutter, 2019). */
struct adam {
    double beta1, beta2, eps, rate, root, stays;
};

FORMULA double adam_step(const struct adam *a, double w, double g, STATE *m, STATE *v)
{
    double m1 = a->beta1 * (double)*m + (1 - a->beta1) * g;
    double v1 = a->beta2 * (double)*v + (1 - a->beta2) * g * g;
    *m = (STATE)m1;
    *v = (STATE)v1;
    return w * a->stays - a->rate * m1 / (sqrt(v1) * a->root + a->eps);
}

FORMULA STATE momentum_step(STATE w, STATE g, STATE rate, STATE keep, STATE *v)
{
    *v = keep * *v + g;
    return w - rate * *v;
}

FORMULA STATE sgd_step(STATE w, STATE g, STATE rate)
{
    return w - rate * g;
}

/* A row's state adds up the means of its squared gradients, which count times 'scale'; the rate of the row's numbers
 * for gradients that are not scaled (Duchi et al., 2011, by row: Mudigere et al., 2022). */
FORMULA double adagrad_rate(double *sum, double squares, double cols, double lr,
                            double scale, double eps)
{
    *sum += scale * scale * squares / cols;
    return lr * scale / (sqrt(*sum) + eps);
}

/* ---- dropout ----------------------------------------------------------------------- */

/* Does number 'at' of the whole stay?  'limit' is the rate times 2^53. */
FORMULA int drop_stays(uint64_t stream, uint64_t limit, uint64_t at)
{
    return topt_random(stream, at) >> 11 >= limit;
}

#endif
