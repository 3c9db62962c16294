/* k_together.h - kernels that are done in one pass with those that follow: a product with the
 * bias and the sum after it, a bias' gradient with the product that reads the same numbers, norms
 * row by row.  Which follow each other is said by the program (runtime/exec/in_place.c). */
#include "real.h"

/* y = x w + b + other.  BLAS adds a product to what is there, or clears that first: so what is
 * to be added is put there in place of zeros, and costs no pass of its own. */
static void linear_together(const struct topt_kernel_call *c, int n)
{
    enum { X, W, Y, B = 1 };
    const struct topt_kernel_call *add =
        c[n - 1].kernel == TOPT_K_ADD_FWD ? &c[n - 1] : NULL;
    const real *b = c[1].kernel == TOPT_K_BIAS_FWD ? c[1].value[B] : NULL;
    const real *other = add ? add->value[add->value[0] == add->value[Y]] : NULL;
    real *y = c->value[Y];
    int64_t k = cols_of(c, X), cols = cols_of(c, Y), rows = rows_of(c, X);
    for (int64_t r = 0; r < rows; r++) {
        real *to = y + r * cols;
        const real *from = other ? other + r * cols : b;
        if (b && other)
            for (int64_t j = 0; j < cols; j++)
                to[j] = from[j] + b[j];
        else
            copy(to, from, cols);
    }
    gemm(&(struct gemm){.tb = 1,
                        .m = rows,
                        .n = cols,
                        .k = k,
                        .alpha = 1,
                        .beta = 1,
                        .a = c->value[X],
                        .lda = k,
                        .b = c->value[W],
                        .ldb = k,
                        .c = y,
                        .ldc = cols});
}

/* BLAS goes through the rows of such a product in blocks: these are the same, each summed up
 * before it is multiplied. */
static void bias_linear_bwd(const struct topt_kernel_call *bias,
                            const struct topt_kernel_call *linear)
{
    enum { X, W, Y, B = 1, BLOCK = 256 };
    const real *x = linear->value[X], *dy = linear->grad[Y];
    int64_t k = cols_of(linear, X), n = cols_of(linear, Y), rows = rows_of(linear, X);
    for (int64_t r = 0; r < rows; r += BLOCK) {
        int64_t some = rows - r < BLOCK ? rows - r : BLOCK;
        if (bias->grad[B])
            add_column_sums(bias->grad[B], dy + r * n, some, n);
        gemm(&(struct gemm){.ta = 1,
                            .m = n,
                            .n = k,
                            .k = some,
                            .alpha = 1,
                            .beta = r || accumulates(linear, W) ? 1 : 0,
                            .a = dy + r * n,
                            .lda = n,
                            .b = x + r * k,
                            .ldb = k,
                            .c = linear->grad[W],
                            .ldc = k});
    }
}

/* A product's output that what follows writes to, too. */
static int adds_to_product(const struct topt_kernel_call *c,
                           const struct topt_kernel_call *next)
{
    enum { A, B, Y };
    const void *y = c->value[Y];
    if (next->kernel == TOPT_K_BIAS_FWD)
        return next->value[A] == y && next->value[Y] == y;
    return next->kernel == TOPT_K_ADD_FWD && next->value[Y] == y &&
           (next->value[A] == y) != (next->value[B] == y);
}

static int linears_together(const struct topt_kernel_call *c, int n)
{
    int most = n < 2 || !adds_to_product(c, &c[1]) ? 1 : 2;
    return most == 2 && n > 2 && c[1].kernel == TOPT_K_BIAS_FWD &&
                   c[2].kernel == TOPT_K_ADD_FWD && adds_to_product(c, &c[2])
               ? 3
               : most;
}

static int together(const struct topt_kernel_call *c, int n)
{
    enum { X, W, Y };
    switch (c->kernel) {
    case TOPT_K_LINEAR_FWD:
        return linears_together(c, n);
    case TOPT_K_BIAS_BWD:
        return n > 1 && c[1].kernel == TOPT_K_LINEAR_BWD_W &&
                       c[0].grad[X] == c[0].grad[Y] && c[1].grad[Y] == c[0].grad[Y] &&
                       c[1].grad[W]
                   ? 2
                   : 1;
    case TOPT_K_NORM_MEAN:
        return n > 2 && c->value[NORM_MU] ? 3 : 1;
    case TOPT_K_NORM_VAR:
        return n > 1 ? 2 : 1;
    case TOPT_K_NORM_BWD_SUM:
        return n > 1 && c[1].grad[NORM_X] && norm_cols(c) <= NORM_BWD_COLS ? 2 : 1;
    default:
        return 1;
    }
}

static void run_together(const struct topt_kernel_call *c, int n)
{
    switch (c->kernel) {
    case TOPT_K_LINEAR_FWD:
        linear_together(c, n);
        break;
    case TOPT_K_BIAS_BWD:
        bias_linear_bwd(&c[0], &c[1]);
        break;
    case TOPT_K_NORM_BWD_SUM:
        norm_bwd_together(&c[0], &c[1]);
        break;
    default: /* a norm */
        norm_together(n == 3 ? c : NULL, &c[n - 2], &c[n - 1]);
    }
}
