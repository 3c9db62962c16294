/* k_gemm.h - matrix product: BLAS where it is, plain loops where not. */
#include "real.h"

#if TOPT_HAVE_BLAS
#include <cblas.h>

static void blas(const struct gemm *g)
{
    CBLAS_TRANSPOSE ta = g->ta ? CblasTrans : CblasNoTrans;
    CBLAS_TRANSPOSE tb = g->tb ? CblasTrans : CblasNoTrans;
    int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
#if TOPT_REAL_IS_DOUBLE
    cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, g->alpha, g->a, lda, g->b, ldb, g->beta,
                g->c, ldc);
#else
    cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, R(g->alpha), g->a, lda, g->b, ldb,
                R(g->beta), g->c, ldc);
#endif
}
#else
static void blas(const struct gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += (double)g->a[g->ta ? p * g->lda + i : i * g->lda + p] *
                       (double)g->b[g->tb ? j * g->ldb + p : p * g->ldb + j];
            real *c = &g->c[i * g->ldc + j];
            *c = R(g->alpha * sum + (g->beta == 0 ? 0 : g->beta * (double)*c));
        }
}
#endif

static void scale_rows(const struct gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            real *c = &g->c[i * g->ldc + j];
            *c = g->beta == 0 ? 0 : R(g->beta * (double)*c);
        }
}

/* BLAS refuses leading dimensions of 0, so empty products are settled here. */
static void gemm(const struct gemm *g)
{
    if (g->m <= 0 || g->n <= 0)
        return;
    if (g->k <= 0)
        scale_rows(g);
    else
        blas(g);
}
