/* k_linear.h - embedding, bias, position, variable: what holds parameters beside matrix
 * products, which cuBLASLt does (products.c). */
#include "real.h"

/* Rows of the table outside the local part give 0: the parts add up to the whole. */
KERNEL embedding_fwd_each(CALL(cu_call) c)
{
    enum { ID, TABLE, Y, VOCAB = 2 };
    int64_t d = c.cols[Y];
    EACH(i, elements(&c, Y))
    {
        int64_t v = IDS(c.value[ID])[quotient(i, d)] - c.off[VOCAB];
        int mine = v >= 0 && v < c.len[VOCAB];
        put(OUT(c.value[Y]), i,
            mine ? get(IN(c.value[TABLE]), v * d + rest(i, d)) : N(0));
    }
}

static int embedding_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(embedding_fwd_each, blocks_for(size_of(c, 2)), stream, c);
    return 0;
}

KERNEL zero_table(CALL(cu_call) c)
{
    enum { ID, TABLE };
    EACH(i, elements(&c, TABLE))
    {
        if (wide_grad(&c, TABLE))
            STAT(c.grad[TABLE])[i] = 0;
        else
            put(OUT(c.grad[TABLE]), i, 0);
    }
}

/* Several tokens share a row of the table.  The block of a token that no earlier one
 * equals adds up all of them, in order: no two blocks write the same row, and the sum
 * is always the same. */
KERNEL embedding_bwd_rows(CALL(cu_call) c)
{
    enum { ID, TABLE, Y, VOCAB = 2 };
    SHARED wide sum[THREADS];
    const int32_t *id = IDS(c.value[ID]);
    int64_t rows = c.rows[Y], d = c.cols[Y];
    BLOCKS(r, rows)
    {
        int64_t v = id[r] - c.off[VOCAB];
        int done = v < 0 || v >= c.len[VOCAB], some;
        for (int64_t q = 0; q < r && !done; q += THREADS)
            ANY(done, q + t < r && id[q + t] == id[r]);
        for (int64_t j = 0; j < d && !done; j += THREADS) {
            PHASE sum[t] = 0;
            for (int64_t q = r; q < rows; q += THREADS) {
                ANY(some, q + t < rows && id[q + t] == id[r]);
                if (!some)
                    continue;
                PHASE
                {
                    for (int64_t k = q; k < q + THREADS && k < rows && j + t < d; k++)
                        if (id[k] == id[r])
                            sum[t] += W(get(IN(c.grad[Y]), k * d + j + t));
                }
            }
            PHASE
            {
                int64_t at = v * d + j + t;
                if (j + t < d)
                    accumulate(c.grad[TABLE], wide_grad(&c, TABLE), at, sum[t]);
            }
        }
    }
}

static int embedding_bwd(void *stream, const struct cu_call *c)
{
    enum { ID, TABLE, Y };
    if (!c->grad[TABLE])
        return 0;
    if (!(c->adds >> TABLE & 1))
        LAUNCH(zero_table, blocks_for(size_of(c, TABLE)), stream, c);
    LAUNCH(embedding_bwd_rows, c->rows[Y], stream, c);
    return 0;
}

/* y = x + p: 'plane' numbers of p from 'first' on, again and again. */
DEVICE void add_repeated(const struct cu_call *c, int64_t first, int64_t plane)
{
    enum { X, P, Y };
    EACH(i, elements(c, X))
    put(OUT(c->value[Y]), i,
        get(IN(c->value[X]), i) + get(IN(c->value[P]), first + rest(i, plane)));
}

KERNEL bias_fwd_each(CALL(cu_call) c)
{
    add_repeated(&c, 0, c.cols[0]);
}

static int bias_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(bias_fwd_each, blocks_for(size_of(c, 0)), stream, c);
    return 0;
}

/* The table may be longer than the sequence; it is not split with it. */
KERNEL position_fwd_each(CALL(cu_call) c)
{
    enum { SEQ = 1 };
    add_repeated(&c, c.off[SEQ] * c.cols[0], elements(&c, 0) / c.batch);
}

static int position_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(position_fwd_each, blocks_for(size_of(c, 0)), stream, c);
    return 0;
}

struct plain_copy {
    void *dst;
    const void *src;
    int64_t n;
};

KERNEL copy_each(CALL(plain_copy) c)
{
    EACH(i, c.n)
    OUT(c.dst)[i] = IN(c.src)[i];
}

static int copy(void *stream, void *dst, const void *src, int64_t n)
{
    struct plain_copy c = {dst, src, n};
    if (dst)
        LAUNCH(copy_each, blocks_for(n), stream, &c);
    return 0;
}

/* The gradient of what is added to every row or plane of x. */
static int repeated_bwd(void *stream, const struct cu_call *c, int64_t first,
                        int64_t rows, int64_t cols)
{
    enum { X, P, Y };
    int is_wide = wide_grad(c, P);
    size_t skip = (size_t)first * (is_wide ? sizeof(stat) : sizeof(real));
    struct column_sums s = {.dst = c->grad[P] ? (char *)c->grad[P] + skip : NULL,
                            .x = c->grad[Y],
                            .rows = rows,
                            .cols = cols,
                            .wide_dst = is_wide};
    int rc = copy(stream, c->grad[X], c->grad[Y], size_of(c, Y));
    return rc ? rc : add_column_sums(stream, &s);
}

static int bias_bwd(void *stream, const struct cu_call *c)
{
    return repeated_bwd(stream, c, 0, c->rows[2], c->cols[2]);
}

static int position_bwd(void *stream, const struct cu_call *c)
{
    enum { SEQ = 1 };
    int64_t planes = c->batch > 0 ? c->batch : 1;
    return repeated_bwd(stream, c, c->off[SEQ] * c->cols[2], c->batch,
                        size_of(c, 2) / planes);
}

static int copy_fwd(void *stream, const struct cu_call *c)
{
    return copy(stream, c->value[1], c->value[0], size_of(c, 1));
}

static int copy_bwd(void *stream, const struct cu_call *c)
{
    return copy(stream, c->grad[0], c->grad[1], size_of(c, 1));
}

static int variable_fwd(void *stream, const struct cu_call *c)
{
    enum { TABLE, Y };
    return copy(stream, c->value[Y], c->value[TABLE], size_of(c, TABLE));
}

static int variable_bwd(void *stream, const struct cu_call *c)
{
    enum { TABLE, Y };
    struct column_sums s = {.dst = c->grad[TABLE],
                            .x = c->grad[Y],
                            .rows = 1,
                            .cols = size_of(c, TABLE),
                            .wide_dst = wide_grad(c, TABLE)};
    return add_column_sums(stream, &s);
}
