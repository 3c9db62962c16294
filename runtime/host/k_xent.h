/* k_xent.h - softmax cross-entropy over a vocabulary that may be split: maximum, sum
 * and the label's logit are each one rank's share, reduced between kernels.  The loss
 * is the mean over all labels of the global batch, so the gradient divides by that
 * count on every rank and in every micro-batch, however few labels are local.  A row whose
 * label is below 0 does not count: its sum, which is 1 at least otherwise, is 0. */
#include "real.h"

enum { XENT_X, XENT_LABEL, XENT_Y, XENT_M, XENT_S, XENT_T };

static void xent_max(const struct topt_kernel_call *c)
{
    const real *x = c->value[XENT_X];
    real *max = c->value[XENT_M];
    int64_t rows = rows_of(c, XENT_X), n = cols_of(c, XENT_X);
    for (int64_t r = 0; r < rows; r++) {
        real m = R(-INFINITY);
        for (int64_t j = 0; j < n; j++)
            m = x[r * n + j] > m ? x[r * n + j] : m;
        max[r] = m;
    }
}

/* Sum of e^(x - max): by strips, since the powers are vectors and the sum is in order. */
static double sum_of_powers(const real *x, int64_t n, real max)
{
    enum { STRIP = 128 };
    real power[STRIP];
    double total = 0;
    for (int64_t j0 = 0; j0 < n; j0 += STRIP) {
        int64_t m = n - j0 < STRIP ? n - j0 : STRIP;
        for (int64_t j = 0; j < m; j++)
            power[j] = EXP(x[j0 + j] - max);
        for (int64_t j = 0; j < m; j++)
            total += (double)power[j];
    }
    return total;
}

static void xent_sum(const struct topt_kernel_call *c)
{
    const real *x = c->value[XENT_X], *max = c->value[XENT_M];
    const int32_t *label = c->value[XENT_LABEL];
    real *sum = c->value[XENT_S], *target = c->value[XENT_T];
    int64_t rows = rows_of(c, XENT_X), n = cols_of(c, XENT_X);
    for (int64_t r = 0; r < rows; r++) {
        sum[r] = label[r] < 0 ? 0 : R(sum_of_powers(x + r * n, n, max[r]));
        int64_t j = label[r] - c->off[2];
        target[r] = j >= 0 && j < n ? x[r * n + j] : 0;
    }
}

static void xent_loss(const struct topt_kernel_call *c)
{
    const real *max = c->value[XENT_M], *sum = c->value[XENT_S],
               *target = c->value[XENT_T];
    real *loss = c->value[XENT_Y];
    int64_t n = elements_of(c, XENT_Y);
    for (int64_t r = 0; r < n; r++)
        loss[r] = R(xent_loss_of((double)sum[r], (double)max[r], (double)target[r]));
}

static void xent_bwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[XENT_X], *max = c->value[XENT_M], *sum = c->value[XENT_S];
    const int32_t *label = c->value[XENT_LABEL];
    real *dx = c->grad[XENT_X];
    int64_t rows = dx ? rows_of(c, XENT_X) : 0, n = cols_of(c, XENT_X);
    double labels = c->labels ? (double)c->labels
                              : (double)c->op->count[0] * (double)c->op->count[1] *
                                    (double)c->micro_batches;
    real scale = R(1 / labels);
    for (int64_t r = 0; r < rows; r++) {
        real inverse = scale / sum[r];
        if (label[r] < 0) {
            memset(dx + r * n, 0, (size_t)n * sizeof *dx);
            continue;
        }
        for (int64_t j = 0; j < n; j++)
            dx[r * n + j] = softmax_share(x[r * n + j], max[r], inverse);
        int64_t j = label[r] - c->off[2];
        if (j >= 0 && j < n)
            dx[r * n + j] -= scale;
    }
}
