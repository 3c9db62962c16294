/* k_shape.h - cutting, joining, rearranging and reducing; dropout, softmax, mean
 * squares. */
#include "k_drop.h"

/* ---- inside and over counts -------------------------------------------------------- */

/* Numbers that a count of the features holds side by side; of channels, whole planes. */
static int64_t counted_run(const struct topt_kernel_call *c, int operand)
{
    int rank = c->op->spec->operand[operand].ndim;
    const struct topt_dim *d = c->op->operand[operand].dim;
    return rank == 3 ? d[2].unit : d[1].unit * plane_of(c, operand);
}

static void slice_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    int64_t unit = counted_run(c, X), width = counted_run(c, Y);
    int64_t n = width ? elements_of(c, Y) / width : 0;
    int64_t plane = c->op->spec->operand[X].ndim == 3 ? 1 : plane_of(c, X);
    const real *x = (const real *)c->value[X] + c->op->attrs->offset * plane;
    real *y = c->value[Y];
    for (int64_t i = 0; i < n; i++)
        copy(y + i * width, x + i * unit, width);
}

static void slice_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    int64_t unit = counted_run(c, X), width = counted_run(c, Y);
    int64_t n = c->grad[X] && width ? elements_of(c, Y) / width : 0;
    int64_t plane = c->op->spec->operand[X].ndim == 3 ? 1 : plane_of(c, X);
    const real *dy = c->grad[Y];
    real *dx = c->grad[X];
    for (int64_t i = 0; i < n; i++) {
        memset(dx + i * unit, 0, (size_t)unit * sizeof *dx);
        copy(dx + i * unit + c->op->attrs->offset * plane, dy + i * width, width);
    }
}

/* Planes of channels from [outer][inner] to [inner][outer], in each image. */
static void swap_planes(const struct topt_kernel_call *c, real *to, const real *from,
                        int64_t outer)
{
    enum { X };
    int64_t channels = extent(c, X, 1), plane = plane_of(c, X), inner = channels / outer;
    int64_t batch = to ? extent(c, X, 0) : 0;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < outer; i++)
            for (int64_t j = 0; j < inner; j++)
                copy(to + (b * channels + j * outer + i) * plane,
                     from + (b * channels + i * inner + j) * plane, plane);
}

static void shuffle_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    swap_planes(c, c->value[Y], c->value[X], c->op->attrs->groups);
}

static void shuffle_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    swap_planes(c, c->grad[X], c->grad[Y], extent(c, X, 1) / c->op->attrs->groups);
}

static void concat_fwd(const struct topt_kernel_call *c)
{
    real *y = c->value[JOINED];
    int64_t run = joined_run(c, JOINED), n = run ? elements_of(c, JOINED) / run : 0;
    for (int o = 0; o < JOINED && c->op->operand[o].present; o++) {
        int64_t part = joined_run(c, o);
        const real *x = c->value[o];
        for (int64_t i = 0; i < n; i++)
            copy(y + i * run, x + i * part, part);
        y += part;
    }
}

static void concat_bwd(const struct topt_kernel_call *c)
{
    const real *dy = c->grad[JOINED];
    int64_t run = joined_run(c, JOINED), n = run ? elements_of(c, JOINED) / run : 0;
    for (int o = 0; o < JOINED && c->op->operand[o].present; o++) {
        int64_t part = joined_run(c, o);
        real *dx = c->grad[o];
        for (int64_t i = 0; dx && i < n; i++)
            copy(dx + i * part, dy + i * run, part);
        dy += part;
    }
}

/* ---- rearranging and reducing ------------------------------------------------------ */

static void transpose_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t s = extent(c, X, 1), d = extent(c, X, 2);
    for (int64_t b = 0; b < extent(c, X, 0); b++)
        transpose(y + b * s * d, x + b * s * d, s, d);
}

static void transpose_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t s = extent(c, X, 1), d = extent(c, X, 2);
    for (int64_t b = 0; dx && b < extent(c, X, 0); b++)
        transpose(dx + b * s * d, dy + b * s * d, d, s);
}

static double reduce_factor(const struct topt_kernel_call *c, int i)
{
    const struct topt_dim *x = &c->op->operand[0].dim[i];
    return c->op->attrs->mean ? 1 / (double)(x->count * x->unit) : 1;
}

static void reduce_sequence_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t s = extent(c, X, 1), d = extent(c, X, 2), n = elements_of(c, Y);
    real factor = R(reduce_factor(c, 1));
    memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t b = 0; b < extent(c, X, 0); b++)
        add_column_sums(y + b * d, x + b * s * d, s, d);
    for (int64_t i = 0; i < n; i++)
        y[i] *= factor;
}

static void reduce_sequence_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t s = extent(c, X, 1), d = extent(c, X, 2);
    int64_t rows = dx ? extent(c, X, 0) * s : 0;
    real factor = R(reduce_factor(c, 1));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < d; j++)
            dx[r * d + j] = factor * dy[r / s * d + j];
}

static void reduce_features_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t rows = rows_of(c, X), d = cols_of(c, X);
    double factor = reduce_factor(c, 2);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t j = 0; j < d; j++)
            sum += (double)x[r * d + j];
        y[r] = R(factor * sum);
    }
}

static void reduce_features_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t rows = dx ? rows_of(c, X) : 0, d = cols_of(c, X);
    real factor = R(reduce_factor(c, 2));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < d; j++)
            dx[r * d + j] = factor * dy[r];
}

/* The wanted position in this rank's block, or -1. */
static int64_t selected(const struct topt_kernel_call *c)
{
    int64_t at = c->op->attrs->offset - c->off[1];
    return at >= 0 && at < c->len[1] ? at : -1;
}

static void select_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t s = extent(c, X, 1), d = extent(c, X, 2), at = selected(c);
    memset(y, 0, (size_t)elements_of(c, Y) * sizeof *y);
    for (int64_t b = 0; at >= 0 && b < extent(c, X, 0); b++)
        copy(y + b * d, x + (b * s + at) * d, d);
}

static void select_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X];
    int64_t s = extent(c, X, 1), d = extent(c, X, 2), at = selected(c);
    if (dx)
        memset(dx, 0, (size_t)elements_of(c, X) * sizeof *dx);
    for (int64_t b = 0; dx && at >= 0 && b < extent(c, X, 0); b++)
        copy(dx + (b * s + at) * d, dy + b * d, d);
}

static void prepend_fwd(const struct topt_kernel_call *c)
{
    enum { X, TOKEN, Y };
    const real *x = c->value[X];
    real *y = c->value[Y];
    int64_t d = cols_of(c, X), n = extent(c, X, 1) * d;
    for (int64_t b = 0; b < extent(c, X, 0); b++, y += n + d) {
        copy(y, c->value[TOKEN], d);
        copy(y + d, x + b * n, n);
    }
}

static void prepend_bwd(const struct topt_kernel_call *c)
{
    enum { X, TOKEN, Y };
    const real *dy = c->grad[Y];
    real *dx = c->grad[X], *token = c->grad[TOKEN];
    int64_t d = cols_of(c, X), n = extent(c, X, 1) * d;
    for (int64_t b = 0; b < extent(c, X, 0); b++, dy += n + d) {
        for (int64_t j = 0; token && j < d; j++)
            token[j] += dy[j];
        copy(dx ? dx + b * n : NULL, dy + d, n);
    }
}

static void reverse_rows(const struct topt_kernel_call *c, real *to, const real *from)
{
    enum { X };
    int64_t s = extent(c, X, 1), d = extent(c, X, 2), rows = to ? rows_of(c, X) : 0;
    for (int64_t r = 0; r < rows; r++)
        copy(to + r * d, from + (r - r % s + s - 1 - r % s) * d, d);
}

static void reverse_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    reverse_rows(c, c->value[Y], c->value[X]);
}

static void reverse_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    reverse_rows(c, c->grad[X], c->grad[Y]);
}

/* ---- dropout ----------------------------------------------------------------------- */

/* Global number of the first element of a local row of 'operand'; samples are counted
 * over the whole batch of the step. */
static uint64_t row_number(const struct topt_kernel_call *c, int operand, int64_t row)
{
    const struct topt_operand *x = &c->op->operand[operand];
    const struct topt_box *box = &c->box[operand];
    int rank = c->op->spec->operand[operand].ndim;
    int64_t index[TOPT_MAX_RANK] = {0};
    for (int i = rank - 2; i >= 0; i--) {
        int64_t n = extent(c, operand, i);
        index[i] = row % n;
        row /= n;
    }
    uint64_t at = (uint64_t)c->first_sample;
    for (int i = 0; i < rank; i++) {
        at *= i ? (uint64_t)(x->dim[i].count * x->dim[i].unit) : 1;
        at += (uint64_t)(box->off[i] * x->dim[i].unit + index[i]);
    }
    return at;
}

static void drop_out(const struct topt_kernel_call *c, real *to, const real *from)
{
    enum { X };
    struct drop d = drop_of(c, c->op->attrs->rate);
    int64_t rows = to && cols_of(c, X) ? rows_of(c, X) : 0, n = cols_of(c, X);
    for (int64_t r = 0; r < rows; r++)
        drop_row(&d, to + r * n, from + r * n, n, row_number(c, X, r));
}

static void dropout_fwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    drop_out(c, c->value[Y], c->value[X]);
}

static void dropout_bwd(const struct topt_kernel_call *c)
{
    enum { X, Y };
    drop_out(c, c->grad[X], c->grad[Y]);
}

/* ---- softmax ----------------------------------------------------------------------- */

enum { SOFTMAX_X, SOFTMAX_Y, SOFTMAX_D, SOFTMAX_M, SOFTMAX_S };

static void softmax_sum(const struct topt_kernel_call *c)
{
    const real *x = c->value[SOFTMAX_X], *max = c->value[SOFTMAX_M];
    real *sum = c->value[SOFTMAX_S];
    int64_t rows = rows_of(c, SOFTMAX_X), d = cols_of(c, SOFTMAX_X);
    for (int64_t r = 0; r < rows; r++)
        sum[r] = R(sum_of_powers(x + r * d, d, max[r]));
}

static void softmax_fwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[SOFTMAX_X], *max = c->value[SOFTMAX_M];
    const real *sum = c->value[SOFTMAX_S];
    real *y = c->value[SOFTMAX_Y];
    int64_t rows = rows_of(c, SOFTMAX_X), d = cols_of(c, SOFTMAX_X);
    for (int64_t r = 0; r < rows && !c->op->attrs->log; r++) {
        real inverse = 1 / sum[r];
        for (int64_t j = 0; j < d; j++)
            y[r * d + j] = softmax_share(x[r * d + j], max[r], inverse);
    }
    for (int64_t r = 0; r < rows && c->op->attrs->log; r++) {
        real shift = R((double)max[r] + log((double)sum[r]));
        for (int64_t j = 0; j < d; j++)
            y[r * d + j] = x[r * d + j] - shift;
    }
}

/* This rank's share of the sum of y dy; of its logarithm, of the sum of dy. */
static void softmax_dot(const struct topt_kernel_call *c)
{
    const real *x = c->value[SOFTMAX_X], *max = c->value[SOFTMAX_M];
    const real *sum = c->value[SOFTMAX_S], *dy = c->grad[SOFTMAX_Y];
    real *dot = c->value[SOFTMAX_D];
    int64_t rows = rows_of(c, SOFTMAX_X), d = cols_of(c, SOFTMAX_X);
    for (int64_t r = 0; r < rows; r++) {
        double total = 0;
        for (int64_t j = 0; j < d && c->op->attrs->log; j++)
            total += (double)dy[r * d + j] * (double)sum[r];
        for (int64_t j = 0; j < d && !c->op->attrs->log; j++)
            total += (double)(EXP(x[r * d + j] - max[r]) * dy[r * d + j]);
        dot[r] = R(total / (double)sum[r]);
    }
}

static void softmax_bwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[SOFTMAX_X], *max = c->value[SOFTMAX_M];
    const real *sum = c->value[SOFTMAX_S], *dot = c->value[SOFTMAX_D];
    const real *dy = c->grad[SOFTMAX_Y];
    real *dx = c->grad[SOFTMAX_X];
    int64_t rows = dx ? rows_of(c, SOFTMAX_X) : 0, d = cols_of(c, SOFTMAX_X);
    int of_log = c->op->attrs->log;
    for (int64_t r = 0; r < rows; r++) {
        real inverse = 1 / sum[r];
        for (int64_t j = 0; j < d; j++) {
            real p = softmax_share(x[r * d + j], max[r], inverse);
            dx[r * d + j] = softmax_slope(p, dy[r * d + j], dot[r], of_log);
        }
    }
}

/* ---- mean of squares --------------------------------------------------------------- */

enum { MSE_X, MSE_TARGET, MSE_Y };

static double mse_width(const struct topt_kernel_call *c)
{
    const struct topt_dim *x = &c->op->operand[MSE_X].dim[2];
    return (double)(x->count * x->unit);
}

static void mse_fwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[MSE_X], *target = c->value[MSE_TARGET];
    real *loss = c->value[MSE_Y];
    int64_t rows = rows_of(c, MSE_X), d = cols_of(c, MSE_X);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t j = 0; j < d; j++) {
            double off = (double)x[r * d + j] - (double)target[r * d + j];
            sum += off * off;
        }
        loss[r] = R(sum / mse_width(c));
    }
}

/* Of the mean over all positions of the step's batch. */
static void mse_bwd(const struct topt_kernel_call *c)
{
    const real *x = c->value[MSE_X], *target = c->value[MSE_TARGET];
    real *dx = c->grad[MSE_X];
    int64_t n = dx ? elements_of(c, MSE_X) : 0;
    double losses =
        (double)c->op->count[0] * (double)c->op->count[1] * (double)c->micro_batches;
    real scale = R(2 / (mse_width(c) * losses));
    for (int64_t i = 0; i < n; i++)
        dx[i] = scale * (x[i] - target[i]);
}
