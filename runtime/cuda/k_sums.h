/* k_sums.h - sums over rows, for the gradients of what all rows share.
 *
 * A block has a strip of STRIP columns and LANES rows of threads: neighbours read
 * neighbouring numbers, a column's sum is put together from its lanes in order. */
#include "real.h"

struct column_sums {
    void *
        dst; /* dst[j] += sum over rows of x[., j], times (v - mean) rstd where v is given */
    const void *x, *v, *mean, *var;
    int64_t rows, cols;
    double eps;
};

DEVICE wide sum_term(const struct column_sums *c, int64_t row, int64_t col)
{
    wide x = W(get(IN(c->x), row * c->cols + col));
    if (!c->v)
        return x;
    wide mean = c->mean ? W(get(IN(c->mean), row)) : W(0);
    wide rstd = W(1 / sqrt((double)get(IN(c->var), row) + c->eps));
    return x * (W(get(IN(c->v), row * c->cols + col)) - mean) * rstd;
}

KERNEL column_sums_strips(CALL(column_sums) c)
{
    SHARED wide sum[THREADS];
    BLOCKS(strip, (c.cols + STRIP - 1) / STRIP)
    {
        PHASE
        {
            int64_t col = strip * STRIP + t % STRIP;
            sum[t] = 0;
            for (int64_t row = t / STRIP; row < c.rows && col < c.cols; row += LANES)
                sum[t] += sum_term(&c, row, col);
        }
        PHASE
        {
            int64_t col = strip * STRIP + t;
            if (t >= STRIP || col >= c.cols)
                continue;
            wide total = W(get(OUT(c.dst), col));
            for (int lane = 0; lane < LANES; lane++)
                total += sum[lane * STRIP + t];
            put(OUT(c.dst), col, N(total));
        }
    }
}

static int add_column_sums(void *stream, const struct column_sums *c)
{
    if (c->dst)
        LAUNCH(column_sums_strips, (c->cols + STRIP - 1) / STRIP, stream, c);
    return 0;
}
