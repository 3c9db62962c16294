/* k_update.h - boxes, element sums and the optimizers. */
#include "real.h"

/* Where element i of a box is, by its steps. */
DEVICE int64_t box_at(const struct cu_box *c, const int64_t *step, int64_t i)
{
    int64_t at = 0;
    for (int d = CU_RANK - 1; d >= 0; d--) {
        at += rest(i, c->extent[d]) * step[d];
        i = quotient(i, c->extent[d]);
    }
    return at;
}

KERNEL copy_box_each(CALL(cu_box) c)
{
    EACH(i, c.n)
    OUT(c.dst)[box_at(&c, c.dst_step, i)] = IN(c.src)[box_at(&c, c.src_step, i)];
}

static int copy_box(void *stream, const struct cu_box *c)
{
    LAUNCH(copy_box_each, blocks_for(c->n), stream, c);
    return 0;
}

KERNEL add_box_each(CALL(cu_box) c)
{
    EACH(i, c.n)
    {
        int64_t to = box_at(&c, c.dst_step, i);
        put(OUT(c.dst), to,
            get(OUT(c.dst), to) + get(IN(c.src), box_at(&c, c.src_step, i)));
    }
}

static int add_box(void *stream, const struct cu_box *c)
{
    LAUNCH(add_box_each, blocks_for(c->n), stream, c);
    return 0;
}

KERNEL add_each(CALL(plain_copy) c)
{
    EACH(i, c.n)
    put(OUT(c.dst), i, get(OUT(c.dst), i) + get(IN(c.src), i));
}

KERNEL add_wide_each(CALL(plain_copy) c)
{
    EACH(i, c.n)
    STAT(c.dst)[i] += STAT(c.src)[i];
}

static int add_wide(void *stream, void *dst, const void *src, int64_t n)
{
    struct plain_copy c = {dst, src, n};
    LAUNCH(add_wide_each, blocks_for(n), stream, &c);
    return 0;
}

static int add(void *stream, void *dst, const void *src, int64_t n)
{
    struct plain_copy c = {dst, src, n};
    LAUNCH(add_each, blocks_for(n), stream, &c);
    return 0;
}

/* Where number i of the gradient belongs. */
DEVICE int64_t updated_at(const struct cu_update *c, int64_t i)
{
    return c->row ? c->row[quotient(i, c->cols)] * c->cols + rest(i, c->cols) : i;
}

DEVICE num gradient_at(const struct cu_update *c, int64_t i)
{
    return c->wide_grad ? (num)STAT(c->grad)[i] : get(IN(c->grad), i);
}

KERNEL update_each(CALL(cu_update) c)
{
    state *first = (state *)c.state[0], *second = (state *)c.state[1];
    state *master = (state *)c.state[2];
    const struct adam adam = {c.beta1, c.beta2, c.eps, c.lr, c.root, 1 - c.decay};
    EACH(i, c.n)
    {
        num g = gradient_at(&c, i);
        int64_t at = updated_at(&c, i);
        state w = master && !c.first ? master[at] : (state)get(OUT(c.param), at);
        if (master)
            master[at] = w;
        if (c.lazy && g == 0)
            continue;
        g *= (num)c.scale;
        if (c.optimizer == CU_ADAM)
            w = (state)adam_step(&adam, (double)w, (double)g, &first[at], &second[at]);
        else if (c.optimizer == CU_MOMENTUM)
            w = momentum_step(w, g, (state)c.lr, (state)c.beta1, &first[at]);
        else
            w = sgd_step(w, g, (state)c.lr);
        if (master)
            master[at] = w;
        put(OUT(c.param), at, w);
    }
}

/* A block a row, whose state adds up the means of its squared gradients. */
KERNEL update_rows(CALL(cu_update) c)
{
    SHARED wide sum[THREADS];
    state *kept = (state *)c.state[0], *master = (state *)c.state[2];
    BLOCKS(r, c.rows)
    {
        int64_t to = c.row ? c.row[r] : r;
        PHASE
        {
            sum[t] = c.squares && t == 0 ? W(get(IN(c.squares), r)) : W(0);
            for (int64_t j = t; j < c.cols && !c.squares; j += THREADS) {
                wide g = W(gradient_at(&c, r * c.cols + j));
                sum[t] += g * g;
            }
        }
        BLOCK_FOLD(sum, plus)
        double s = (double)kept[to];
        double rate =
            adagrad_rate(&s, (double)sum[0], c.whole_cols, c.lr, c.scale, c.eps);
        WAIT;
        PHASE
        {
            if (t == 0)
                kept[to] = (state)s;
            for (int64_t j = t; j < c.cols; j += THREADS) {
                int64_t at = to * c.cols + j;
                state w = master && !c.first ? master[at] : (state)get(OUT(c.param), at);
                w = (state)((double)w - rate * (double)gradient_at(&c, r * c.cols + j));
                if (master)
                    master[at] = w;
                put(OUT(c.param), at, w);
            }
        }
    }
}

static int update(void *stream, const struct cu_update *c)
{
    if (c->optimizer == CU_ROW_WISE_ADAGRAD)
        LAUNCH(update_rows, c->rows, stream, c);
    else
        LAUNCH(update_each, blocks_for(c->n), stream, c);
    return 0;
}
