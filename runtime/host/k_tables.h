/* k_tables.h - what recommenders are made of: bags of a table's rows, products of every two
 * vectors, the loss of a yes or no. */
#include "real.h"

enum { BAG_IDS, BAG_W, BAG_Y, BAG_VOCAB = 3 };

/* Lookups of one row of the output. */
static int64_t lookups_of(const struct topt_kernel_call *c)
{
    return cols_of(c, BAG_IDS);
}

/* Rows of the table outside the local part give 0: the parts add up to the whole. */
static void embedding_bag_fwd(const struct topt_kernel_call *c)
{
    const int32_t *ids = c->value[BAG_IDS];
    const real *w = c->value[BAG_W];
    real *y = c->value[BAG_Y];
    int64_t rows = rows_of(c, BAG_Y), d = cols_of(c, BAG_Y), each = lookups_of(c);
    memset(y, 0, (size_t)(rows * d) * sizeof *y);
    for (int64_t k = 0; k < rows * each; k++) {
        int64_t v = ids[k] - c->off[BAG_VOCAB];
        if (v < 0 || v >= c->len[BAG_VOCAB])
            continue;
        for (int64_t j = 0; j < d; j++)
            y[k / each * d + j] += w[v * d + j];
    }
}

static void embedding_bag_bwd(const struct topt_kernel_call *c)
{
    const int32_t *ids = c->value[BAG_IDS];
    const real *dy = c->grad[BAG_Y];
    real *dw = c->grad[BAG_W];
    int64_t rows = rows_of(c, BAG_Y), d = cols_of(c, BAG_Y), each = lookups_of(c);
    for (int64_t k = 0; dw && k < rows * each; k++) {
        int64_t v = ids[k] - c->off[BAG_VOCAB];
        if (v < 0 || v >= c->len[BAG_VOCAB])
            continue;
        for (int64_t j = 0; j < d; j++)
            dw[v * d + j] += dy[k / each * d + j];
    }
}

enum { INTERACT_X, INTERACT_Y };

static void interact_fwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[INTERACT_X];
    real *y = c->value[INTERACT_Y];
    int64_t rows = rows_of(c, INTERACT_X), all = cols_of(c, INTERACT_X);
    int64_t d = c->op->attrs.features, n = all / d;
    for (int64_t r = 0; r < rows; r++, x += all)
        for (int64_t i = 1; i < n; i++)
            for (int64_t j = 0; j < i; j++) {
                double sum = 0;
                for (int64_t k = 0; k < d; k++)
                    sum += (double)x[i * d + k] * (double)x[j * d + k];
                *y++ = R(sum);
            }
}

static void interact_bwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[INTERACT_X], *dy = c->grad[INTERACT_Y];
    real *dx = c->grad[INTERACT_X];
    int64_t rows = rows_of(c, INTERACT_X), all = cols_of(c, INTERACT_X);
    int64_t d = c->op->attrs.features, n = all / d;
    if (!dx)
        return;
    memset(dx, 0, (size_t)(rows * all) * sizeof *dx);
    for (int64_t r = 0; r < rows; r++, x += all, dx += all)
        for (int64_t i = 1; i < n; i++)
            for (int64_t j = 0; j < i; j++, dy++)
                for (int64_t k = 0; k < d; k++) {
                    dx[i * d + k] += *dy * x[j * d + k];
                    dx[j * d + k] += *dy * x[i * d + k];
                }
}

enum { LOGISTIC_X, LOGISTIC_LABELS, LOGISTIC_Y };

/* ln(1 + e^x) - label x, without e^x of a large x. */
static void logistic_fwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[LOGISTIC_X];
    const int32_t *label = c->value[LOGISTIC_LABELS];
    real *loss = c->value[LOGISTIC_Y];
    int64_t n = elements_of(c, LOGISTIC_Y);
    for (int64_t i = 0; i < n; i++) {
        double z = (double)x[i], most = z > 0 ? z : 0;
        loss[i] = R(most + log1p(exp(-fabs(z))) - (label[i] ? z : 0));
    }
}

/* Of the mean over all positions of the step's batch. */
static void logistic_bwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[LOGISTIC_X];
    const int32_t *label = c->value[LOGISTIC_LABELS];
    real *dx = c->grad[LOGISTIC_X];
    int64_t n = dx ? elements_of(c, LOGISTIC_Y) : 0;
    double losses =
        (double)c->op->count[0] * (double)c->op->count[1] * (double)c->micro_batches;
    for (int64_t i = 0; i < n; i++) {
        double z = (double)x[i], e = exp(-fabs(z));
        double yes = z > 0 ? 1 / (1 + e) : e / (1 + e);
        dx[i] = R((yes - (label[i] ? 1 : 0)) / losses);
    }
}
