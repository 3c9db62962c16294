/* k_tables.h - what recommenders are made of: bags of tables' rows, products of every two
 * vectors, the loss of a yes or no; as the host's k_tables.h.
 *
 * Lookups that name the same row are brought together by sorting them by row and then by
 * number (Batcher's bitonic sort), so that one block adds up each row's, in their order: no
 * atomics, and the same sum every time. */
#include "real.h"

#define NO_ROW UINT64_MAX /* another rank has it */

/* The local row of lookup 'k'; -1: another rank has it. */
DEVICE int64_t bag_row(const struct cu_bag *c, int64_t k)
{
    int64_t table = rest(quotient(k, c->lookups), c->tables);
    int64_t row = c->ids[k] - c->first[table];
    return row < 0 || row >= c->held[table] ? -1 : c->before[table] + row;
}

/* Rows of a table that another rank has give 0: the parts add up to the whole. */
KERNEL bag_get_each(CALL(cu_bag) c)
{
    EACH(i, c.rows * c.d)
    {
        int64_t first = quotient(i, c.d) * c.lookups;
        wide sum = 0;
        for (int64_t k = first; k < first + c.lookups; k++) {
            int64_t row = bag_row(&c, k);
            sum += row < 0 ? W(0) : W(get(IN(c.w), row * c.d + rest(i, c.d)));
        }
        put(OUT(c.y), i, N(sum));
    }
}

static int bag_get(void *stream, const struct cu_bag *c)
{
    LAUNCH(bag_get_each, blocks_for(c->rows * c->d), stream, c);
    return 0;
}

KERNEL bag_keys_each(CALL(cu_bag) c)
{
    EACH(k, c.padded)
    {
        int64_t row = k < c.rows * c.lookups ? bag_row(&c, k) : -1;
        c.key[k] = row < 0 ? NO_ROW : (uint64_t)row << 32 | (uint64_t)k;
    }
}

/* ---- sorting ----------------------------------------------------------------------- */

enum { SORTED = 2 * THREADS }; /* keys that a block has at once */

struct sort_step {
    uint64_t *key;
    int64_t n, run, stride; /* runs of so many become sorted, ascending and descending */
};

/* Keys i and i + stride, in the order of their run. */
DEVICE void exchange(uint64_t *key, int64_t i, int64_t stride, int descending)
{
    uint64_t a = key[i], b = key[i + stride];
    if ((a > b) != descending) {
        key[i] = b;
        key[i + stride] = a;
    }
}

/* The lower key of pair 'k' that are 'stride' apart. */
DEVICE int64_t lower_of(int64_t k, int64_t stride)
{
    return (k / stride * 2) * stride + k % stride;
}

KERNEL sort_far_each(CALL(sort_step) c)
{
    EACH(k, c.n / 2)
    {
        int64_t i = lower_of(k, c.stride);
        exchange(c.key, i, c.stride, (i & c.run) != 0);
    }
}

/* All strides that stay within a block, of runs from 'stride' up to 'run'. */
KERNEL sort_near_blocks(CALL(sort_step) c)
{
    SHARED uint64_t key[SORTED];
    BLOCKS(block, (c.n + SORTED - 1) / SORTED)
    {
        int64_t first = block * SORTED, n = c.n < SORTED ? c.n : SORTED;
        PHASE
        {
            for (int64_t i = t; i < n; i += THREADS)
                key[i] = c.key[first + i];
        }
        for (int64_t run = c.stride; run <= c.run; run *= 2)
            for (int64_t stride = run / 2 < n / 2 ? run / 2 : n / 2; stride; stride /= 2)
                PHASE
                {
                    int64_t i = lower_of(t, stride);
                    if (t < n / 2)
                        exchange(key, i, stride, ((first + i) & run) != 0);
                }
        PHASE
        {
            for (int64_t i = t; i < n; i += THREADS)
                c.key[first + i] = key[i];
        }
    }
}

/* 'n' is a power of two. */
static int sort_keys(void *stream, uint64_t *key, int64_t n)
{
    int64_t near = n < SORTED ? n : SORTED;
    struct sort_step c = {key, n, near, 2};
    LAUNCH(sort_near_blocks, (n + SORTED - 1) / SORTED, stream, &c);
    for (int64_t run = 2 * near; run <= n; run *= 2) {
        c.run = run;
        for (c.stride = run / 2; c.stride >= near; c.stride /= 2)
            LAUNCH(sort_far_each, blocks_for(n / 2), stream, &c);
        c.stride = run;
        LAUNCH(sort_near_blocks, (n + SORTED - 1) / SORTED, stream, &c);
    }
    return 0;
}

/* ---- the gradient of tables -------------------------------------------------------- */

/* A block a key; that of a row's first one adds up all of the row's. */
KERNEL bag_put_rows(CALL(cu_bag) c)
{
    BLOCKS(i, c.rows * c.lookups)
    {
        uint64_t key = c.key[i], row = key >> 32;
        if (key == NO_ROW || (i > 0 && c.key[i - 1] >> 32 == row))
            continue;
        PHASE
        {
            for (int64_t j = t; j < c.d; j += THREADS) {
                wide sum = 0;
                for (int64_t k = i; k < c.padded && c.key[k] >> 32 == row; k++) {
                    int64_t lookup = (int64_t)(c.key[k] & 0xffffffffu);
                    int64_t from = quotient(lookup, c.lookups) * c.d + j;
                    sum += W(get(IN(c.y), from));
                }
                accumulate(c.w, c.wide_w, (int64_t)row * c.d + j, sum);
            }
        }
    }
}

static int bag_put(void *stream, const struct cu_bag *c)
{
    LAUNCH(bag_keys_each, blocks_for(c->padded), stream, c);
    int rc = sort_keys(stream, c->key, c->padded);
    if (rc)
        return rc;
    LAUNCH(bag_put_rows, c->rows * c->lookups, stream, c);
    return 0;
}

/* ---- products of every two vectors ------------------------------------------------- */

/* Vector 'v' of a position: its number in its operand; 'ret' is that operand. */
DEVICE int64_t vector_at(const struct cu_interact *c, int64_t position, int64_t v,
                         int *ret)
{
    int o = 0;
    while (v >= c->count[o])
        v -= c->count[o++];
    *ret = o;
    return (position * c->count[o] + v) * c->d;
}

/* Of pair p in the order (1,0), (2,0), (2,1), ... */
DEVICE void pair_of(int64_t p, int64_t *first, int64_t *second)
{
    int64_t i = (int64_t)((1 + sqrt(1 + 8 * (double)p)) / 2);
    i -= i * (i - 1) / 2 > p;
    i += i * (i + 1) / 2 <= p;
    *first = i;
    *second = p - i * (i - 1) / 2;
}

KERNEL interact_get_rows(CALL(cu_interact) c)
{
    SHARED wide part[THREADS];
    int64_t pairs = c.n * (c.n - 1) / 2, rows = c.rows * pairs;
    BLOCKS(block, row_blocks(rows))
    {
        PHASE
        {
            int64_t row = block * LANES + t / STRIP, i, j;
            int a, b;
            part[t] = 0;
            if (row >= rows)
                continue;
            pair_of(rest(row, pairs), &i, &j);
            int64_t at_i = vector_at(&c, quotient(row, pairs), i, &a);
            int64_t at_j = vector_at(&c, quotient(row, pairs), j, &b);
            for (int64_t k = t % STRIP; k < c.d; k += STRIP)
                part[t] += W(get(IN(c.x[a]), at_i + k)) * W(get(IN(c.x[b]), at_j + k));
        }
        PHASE
        {
            int64_t row = block * LANES + t / STRIP;
            if (row < rows && t % STRIP == 0)
                put(OUT(c.y), row, N(strip_sum(part, t)));
        }
    }
}

static int interact_get(void *stream, const struct cu_interact *c)
{
    LAUNCH(interact_get_rows, row_blocks(c->rows * (c->n * (c->n - 1) / 2)), stream, c);
    return 0;
}

KERNEL interact_put_each(CALL(cu_interact) c)
{
    int64_t pairs = c.n * (c.n - 1) / 2, size = c.n * c.d;
    EACH(e, c.rows * size)
    {
        int64_t position = quotient(e, size), v = quotient(rest(e, size), c.d);
        int64_t k = rest(e, c.d);
        int own, other;
        int64_t to = vector_at(&c, position, v, &own);
        wide sum = 0;
        for (int64_t u = 0; u < c.n && c.dx[own]; u++) {
            int64_t high = u > v ? u : v, low = u > v ? v : u;
            int64_t pair = position * pairs + high * (high - 1) / 2 + low;
            int64_t from = vector_at(&c, position, u, &other);
            if (u != v)
                sum += W(get(IN(c.y), pair)) * W(get(IN(c.x[other]), from + k));
        }
        if (c.dx[own])
            put(OUT(c.dx[own]), to + k, N(sum));
    }
}

static int interact_put(void *stream, const struct cu_interact *c)
{
    LAUNCH(interact_put_each, blocks_for(c->rows * c->n * c->d), stream, c);
    return 0;
}

/* ---- the loss of a yes or no ------------------------------------------------------- */

enum { LOGISTIC_X, LOGISTIC_LABELS, LOGISTIC_Y };

KERNEL logistic_fwd_each(CALL(cu_call) c)
{
    EACH(i, elements(&c, LOGISTIC_Y))
    STAT(c.value[LOGISTIC_Y])
    [i] = (stat)logistic_loss((double)get(IN(c.value[LOGISTIC_X]), i),
                              IDS(c.value[LOGISTIC_LABELS])[i]);
}

static int logistic_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(logistic_fwd_each, blocks_for(size_of(c, LOGISTIC_Y)), stream, c);
    return 0;
}

KERNEL logistic_bwd_each(CALL(cu_call) c)
{
    EACH(i, elements(&c, LOGISTIC_Y))
    put(OUT(c.grad[LOGISTIC_X]), i,
        N(c.each * logistic_slope((double)get(IN(c.value[LOGISTIC_X]), i),
                                  IDS(c.value[LOGISTIC_LABELS])[i])));
}

static int logistic_bwd(void *stream, const struct cu_call *c)
{
    if (c->grad[LOGISTIC_X])
        LAUNCH(logistic_bwd_each, blocks_for(size_of(c, LOGISTIC_Y)), stream, c);
    return 0;
}
