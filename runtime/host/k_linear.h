/* k_linear.h - embedding, linear, bias, position, variable: what holds parameters. */
#include "real.h"

/* Rows of the table outside the local part give 0: the parts add up to the whole. */
static void embedding_fwd(const struct topt_kernel_call *c)
{
    enum { IDS, W, Y, VOCAB = 2 };
    const int32_t *ids = c->value[IDS];
    const real *w = c->value[W];
    real *y = c->value[Y];
    int64_t rows = rows_of(c, Y), d = cols_of(c, Y);
    for (int64_t r = 0; r < rows; r++) {
        int64_t v = ids[r] - c->off[VOCAB];
        if (v >= 0 && v < c->len[VOCAB])
            copy(y + r * d, w + v * d, d);
        else
            memset(y + r * d, 0, (size_t)d * sizeof *y);
    }
}

static void embedding_bwd(const struct topt_kernel_call *c)
{
    enum { IDS, W, Y, VOCAB = 2 };
    const int32_t *ids = c->value[IDS];
    const real *dy = c->grad[Y];
    real *dw = c->grad[W];
    if (!dw)
        return;
    int64_t rows = rows_of(c, Y), d = cols_of(c, Y);
    if (!accumulates(c, W))
        memset(dw, 0, (size_t)elements_of(c, W) * sizeof *dw);
    for (int64_t r = 0; r < rows; r++) {
        int64_t v = ids[r] - c->off[VOCAB];
        if (v < 0 || v >= c->len[VOCAB])
            continue;
        for (int64_t j = 0; j < d; j++)
            dw[v * d + j] += dy[r * d + j];
    }
}

static void linear_fwd(const struct topt_kernel_call *c)
{
    enum { X, W, Y };
    int64_t k = cols_of(c, X), n = cols_of(c, Y);
    gemm(&(struct gemm){.tb = 1,
                        .m = rows_of(c, X),
                        .n = n,
                        .k = k,
                        .alpha = 1,
                        .a = c->value[X],
                        .lda = k,
                        .b = c->value[W],
                        .ldb = k,
                        .c = c->value[Y],
                        .ldc = n});
}

static void linear_bwd_x(const struct topt_kernel_call *c)
{
    enum { X, W, Y };
    int64_t k = cols_of(c, X), n = cols_of(c, Y);
    if (c->grad[X])
        gemm(&(struct gemm){.m = rows_of(c, X),
                            .n = k,
                            .k = n,
                            .alpha = 1,
                            .a = c->grad[Y],
                            .lda = n,
                            .b = c->value[W],
                            .ldb = k,
                            .c = c->grad[X],
                            .ldc = k});
}

static void linear_bwd_w(const struct topt_kernel_call *c)
{
    enum { X, W, Y };
    int64_t k = cols_of(c, X), n = cols_of(c, Y);
    if (c->grad[W])
        gemm(&(struct gemm){.ta = 1,
                            .m = n,
                            .n = k,
                            .k = rows_of(c, X),
                            .alpha = 1,
                            .beta = accumulates(c, W) ? 1 : 0,
                            .a = c->grad[Y],
                            .lda = n,
                            .b = c->value[X],
                            .ldb = k,
                            .c = c->grad[W],
                            .ldc = k});
}

static void bias_fwd(const struct topt_kernel_call *c)
{
    enum { X, B, Y };
    const real *x = c->value[X], *b = c->value[B];
    real *y = c->value[Y];
    int64_t rows = rows_of(c, X), n = cols_of(c, X);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++)
            y[r * n + j] = x[r * n + j] + b[j];
}

static void bias_bwd(const struct topt_kernel_call *c)
{
    enum { X, B, Y };
    copy(c->grad[X], c->grad[Y], elements_of(c, Y));
    if (c->grad[B])
        add_column_sums(c->grad[B], c->grad[Y], rows_of(c, Y), cols_of(c, Y));
}

static void position_fwd(const struct topt_kernel_call *c)
{
    enum { X, P, Y, SEQ = 1 };
    const real *x = c->value[X], *p = c->value[P];
    real *y = c->value[Y];
    int64_t batch = extent(c, X, 0), plane = extent(c, X, 1) * cols_of(c, X);
    p += c->off[SEQ] * cols_of(c, X);
    for (int64_t b = 0; b < batch; b++)
        for (int64_t i = 0; i < plane; i++)
            y[b * plane + i] = x[b * plane + i] + p[i];
}

static void position_bwd(const struct topt_kernel_call *c)
{
    enum { X, P, Y, SEQ = 1 };
    copy(c->grad[X], c->grad[Y], elements_of(c, Y));
    if (c->grad[P])
        add_column_sums((real *)c->grad[P] + c->off[SEQ] * cols_of(c, Y), c->grad[Y],
                        extent(c, Y, 0), extent(c, Y, 1) * cols_of(c, Y));
}

static void variable_fwd(const struct topt_kernel_call *c)
{
    enum { W, Y };
    copy(c->value[Y], c->value[W], elements_of(c, W));
}

static void variable_bwd(const struct topt_kernel_call *c)
{
    enum { W, Y };
    if (c->grad[W])
        add_column_sums(c->grad[W], c->grad[Y], 1, elements_of(c, W));
}
