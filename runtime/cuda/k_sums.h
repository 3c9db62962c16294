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
    int wide_dst;
    int64_t ld; /* from one row of x to the next; 0: cols */
};

DEVICE wide sum_term(const struct column_sums *c, int64_t row, int64_t col)
{
    wide x = W(get(IN(c->x), row * (c->ld ? c->ld : c->cols) + col));
    if (!c->v)
        return x;
    wide mean = c->mean ? W(STAT(c->mean)[row]) : W(0);
    wide rstd = W(rstd_of((double)STAT(c->var)[row], c->eps));
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
            wide total = 0;
            for (int lane = 0; lane < LANES; lane++)
                total += sum[lane * STRIP + t];
            accumulate(c.dst, c.wide_dst, col, total);
        }
    }
}

static int add_column_sums(void *stream, const struct column_sums *c)
{
    if (c->dst)
        LAUNCH(column_sums_strips, (c->cols + STRIP - 1) / STRIP, stream, c);
    return 0;
}

static int add_columns(void *stream, const struct cu_columns *c)
{
    struct column_sums s = {.dst = c->dst,
                            .x = c->x,
                            .rows = c->rows,
                            .cols = c->cols,
                            .wide_dst = c->wide_dst,
                            .ld = c->ld};
    return add_column_sums(stream, &s);
}
