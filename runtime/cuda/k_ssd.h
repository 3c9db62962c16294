/* k_ssd.h - state space duality: Mamba-2's recurrence by chunks, around its products
 * (scan.c); as the host's k_ssd.h, where the equations are.
 *
 * With K[j] = w[j] dt[j] b[j] and Q[t] = e^sum[t] c[t], so that decays are in the factors of
 * products:
 *     y = M x + Q S + d x,  S' = e^sum[end] S + K^T x
 * and backward, R being the gradient of S':
 *     of S: e^sum[end] R + Q^T dy,  dQ = dy S^T,  dK = x R^T,  dM = dy x^T
 *     dx = M^T dy + K R + d dy */
#include "real.h"

/* Steps of a chunk, the sums of their exponents, and the slope of a step by what it is
 * made of; after the end no step is taken. */
KERNEL ssd_steps_each(CALL(cu_ssd) c)
{
    EACH(tile, tiles_of(&c.at))
    {
        struct tile_at at = tile_at(&c.at, tile);
        double a = -exp((double)get(IN(c.a_log), at.h)), sum = 0;
        for (int64_t t = 0; t < c.at.len; t++) {
            int64_t i = one_at(&c.at, &at, t);
            double step = 0, slope = 0;
            if (t < at.valid) {
                double x = (double)get(IN(c.dt), one_in(&c.at, &at, t)) +
                           (double)get(IN(c.bias), at.h);
                step = softplus(x);
                int high = c.most > 0 && step > c.most, low = step < c.least;
                slope = high || low ? 0 : logistic(x);
                step = low ? c.least : high ? c.most : step;
            }
            c.step[i] = step;
            c.slope[i] = slope;
            c.sum[i] = sum += a * step;
        }
    }
}

static int ssd_steps(void *stream, const struct cu_ssd *c)
{
    LAUNCH(ssd_steps_each, blocks_for(tiles_of(&c->at)), stream, c);
    return 0;
}

/* Keys and queries as groups have them. */
KERNEL ssd_groups_each(CALL(cu_ssd) c)
{
    int64_t n = c.at.s.n, size = c.at.len * n;
    EACH(i, group_tiles_of(&c.at) * size)
    {
        struct tile_at a = group_at(&c.at, quotient(i, size));
        int64_t t = quotient(rest(i, size), n);
        int64_t from = (a.row + t) * c.at.s.ldg + a.h * 2 * n + rest(i, n);
        put(OUT(c.keys), i, t < a.valid ? get(IN(c.bc), from) : N(0));
        put(OUT(c.queries), i, t < a.valid ? get(IN(c.bc), from + n) : N(0));
    }
}

/* ... and with their decays, as heads have them. */
KERNEL ssd_heads_each(CALL(cu_ssd) c)
{
    int64_t n = c.at.s.n, size = c.at.len * n;
    EACH(i, tiles_of(&c.at) * size)
    {
        struct tile_at a = tile_at(&c.at, quotient(i, size));
        int64_t t = quotient(rest(i, size), n), one = one_at(&c.at, &a, t);
        int64_t from = a.group * size + rest(i, size);
        num left = decay_left(&c.at, &a, c.sum, t) * N(c.step[one]);
        put(OUT(c.tile_k), i, left * get(IN(c.keys), from));
        put(OUT(c.tile_q), i, decay_of(c.sum[one]) * get(IN(c.queries), from));
    }
}

static int ssd_tiles(void *stream, const struct cu_ssd *c)
{
    int64_t size = c->at.len * c->at.s.n;
    LAUNCH(ssd_groups_each, blocks_for(group_tiles_of(&c->at) * size), stream, c);
    LAUNCH(ssd_heads_each, blocks_for(tiles_of(&c->at) * size), stream, c);
    return 0;
}

/* M = scores * E * dt[j], 0 above the diagonal. */
KERNEL ssd_pairs_each(CALL(cu_ssd) c)
{
    int64_t len = c.at.len, square = len * len;
    EACH(i, tiles_of(&c.at) * square)
    {
        struct tile_at a = tile_at(&c.at, quotient(i, square));
        int64_t t = quotient(rest(i, square), len), j = rest(i, len);
        num m = 0;
        if (j <= t)
            m = N(STAT(c.scores)[a.group * square + rest(i, square)]) *
                decay_between(&c.at, &a, c.sum, j, t) * N(c.step[one_at(&c.at, &a, j)]);
        put(OUT(c.m), i, m);
    }
}

static int ssd_pairs(void *stream, const struct cu_ssd *c)
{
    LAUNCH(ssd_pairs_each, blocks_for(tiles_of(&c->at) * c->at.len * c->at.len), stream,
           c);
    return 0;
}

/* to = what the products made + d from, of heads; at the end of a sequence tiles end
 * later. */
DEVICE void ssd_add_direct(const struct cu_ssd *c, int64_t i, void *to, const void *from)
{
    int64_t p = c->at.s.p, size = c->at.len * p;
    struct tile_at a = tile_at(&c->at, quotient(i, size));
    int64_t t = quotient(rest(i, size), p);
    int64_t at = (a.row + t) * c->at.s.ld + a.h * p + rest(i, p);
    if (t < a.valid)
        put(OUT(to), at, N(STAT(c->tile_y)[i]) + get(IN(c->d), a.h) * get(IN(from), at));
}

KERNEL ssd_out_each(CALL(cu_ssd) c)
{
    EACH(i, tiles_of(&c.at) * c.at.len * c.at.s.p)
    ssd_add_direct(&c, i, c.y, c.x);
}

static int ssd_out(void *stream, const struct cu_ssd *c)
{
    LAUNCH(ssd_out_each, blocks_for(tiles_of(&c->at) * c->at.len * c->at.s.p), stream, c);
    return 0;
}

KERNEL ssd_out_back_each(CALL(cu_ssd) c)
{
    EACH(i, tiles_of(&c.at) * c.at.len * c.at.s.p)
    ssd_add_direct(&c, i, c.dx, c.dy);
}

static int ssd_out_back(void *stream, const struct cu_ssd *c)
{
    LAUNCH(ssd_out_back_each, blocks_for(tiles_of(&c->at) * c->at.len * c->at.s.p),
           stream, c);
    return 0;
}

/* Of each pair of positions: the gradient of a group's scores, which its heads add up to;
 * dM becomes dM * scores * E. */
KERNEL ssd_slopes_each(CALL(cu_ssd) c)
{
    int64_t len = c.at.len, square = len * len;
    EACH(i, group_tiles_of(&c.at) * square)
    {
        struct tile_at a = group_at(&c.at, quotient(i, square));
        int64_t t = quotient(rest(i, square), len), j = rest(i, len), from, to;
        num score = N(STAT(c.scores)[i]), sum = 0;
        heads_of(&c.at, a.h, &from, &to);
        for (a.h = from; a.h < to; a.h++) {
            int64_t at = (a.pair * c.at.s.heads + a.h) * square + rest(i, square);
            num e = j <= t ? decay_between(&c.at, &a, c.sum, j, t) : N(0);
            num slope = j <= t ? N(STAT(c.dm)[at]) * e : N(0);
            sum += slope * N(c.step[one_at(&c.at, &a, j)]);
            STAT(c.dm)[at] = (stat)(slope * score);
        }
        put(OUT(c.dscores), i, sum);
    }
}

static int ssd_slopes(void *stream, const struct cu_ssd *c)
{
    LAUNCH(ssd_slopes_each, blocks_for(group_tiles_of(&c->at) * c->at.len * c->at.len),
           stream, c);
    return 0;
}

/* The gradient of a position's cumulative exponent, in parts: as the later position of a
 * pair and by its query ('own'), and by its key ('later', yet to be multiplied by dt).  The
 * product of dy and x of the position, too ('direct'). */
DEVICE struct row_sums ssd_terms(const void *call, const struct tile_row *r, int64_t lane)
{
    const struct cu_ssd *c = (const struct cu_ssd *)call;
    int64_t len = c->at.len, n = c->at.s.n, p = c->at.s.p, row = r->row;
    struct row_sums x = {W(0), W(0), W(0)};
    for (int64_t j = lane; j <= r->at; j += STRIP)
        x.own += W(STAT(c->dm)[row * len + j]) * W(c->step[one_at(&c->at, &r->a, j)]);
    for (int64_t j = lane; j < n; j += STRIP) {
        x.own += W(get(IN(c->tile_q), row * n + j)) * W(STAT(c->dq)[row * n + j]);
        x.later += W(get(IN(c->keys), (r->a.group * len + r->at) * n + j)) *
                   W(STAT(c->dk)[row * n + j]);
    }
    for (int64_t j = lane; j < p; j += STRIP)
        x.third +=
            W(get(IN(c->tile_x), row * p + j)) * W(get(IN(c->tile_dy), row * p + j));
    return x;
}

DEVICE void ssd_keep(const void *call, const struct tile_row *r,
                     const struct row_sums *sums)
{
    const struct cu_ssd *c = (const struct cu_ssd *)call;
    int64_t i = one_at(&c->at, &r->a, r->at);
    wide left = W(decay_left(&c->at, &r->a, c->sum, r->at));
    STAT(c->own)[i] = (stat)sums->own;
    STAT(c->later)[i] = (stat)(sums->later * left);
    STAT(c->direct)[i] = (stat)sums->third;
}

KERNEL ssd_sums_rows(CALL(cu_ssd) c)
{
    sum_rows(&c.at, &c, ssd_terms, ssd_keep);
}

/* As the earlier position of a pair, yet to be multiplied by dt ('weight'). */
KERNEL ssd_columns_each(CALL(cu_ssd) c)
{
    int64_t len = c.at.len;
    EACH(i, tiles_of(&c.at) * len)
    {
        struct tile_at a = tile_at(&c.at, quotient(i, len));
        int64_t j = rest(i, len);
        wide sum = 0;
        for (int64_t t = j; t < len; t++)
            sum += W(STAT(c.dm)[(i - j + t) * len + j]);
        STAT(c.weight)[one_at(&c.at, &a, j)] = (stat)sum;
    }
}

static int ssd_sums(void *stream, const struct cu_ssd *c)
{
    int64_t rows = tiles_of(&c->at) * c->at.len;
    LAUNCH(ssd_sums_rows, row_blocks(rows), stream, c);
    LAUNCH(ssd_columns_each, blocks_for(rows), stream, c);
    return 0;
}

/* From gradients of sums to those of steps, which are in all sums from their own on; then
 * to what steps are made of.  Parts of the parameters' gradients, one each a tile. */
KERNEL ssd_steps_back_each(CALL(cu_ssd) c)
{
    int64_t tiles = tiles_of(&c.at);
    EACH(tile, tiles)
    {
        struct tile_at at = tile_at(&c.at, tile);
        double a = -exp((double)get(IN(c.a_log), at.h));
        double sum = (double)STAT(c.of_end)[tile], da = 0, bias = 0, direct = 0;
        for (int64_t t = 0; t < c.at.len; t++) {
            int64_t i = one_at(&c.at, &at, t);
            sum += (double)STAT(c.later)[i] * c.step[i];
        }
        for (int64_t t = c.at.len - 1; t >= 0; t--) {
            int64_t i = one_at(&c.at, &at, t);
            double weight = (double)STAT(c.later)[i] + (double)STAT(c.weight)[i];
            sum += (double)STAT(c.own)[i] - weight * c.step[i];
            double slope = (weight + sum * a) * c.slope[i];
            da += sum * c.step[i];
            bias += slope;
            direct += (double)STAT(c.direct)[i];
            if (c.ddt && t < at.valid)
                put(OUT(c.ddt), one_in(&c.at, &at, t), N(slope));
        }
        STAT(c.parts)[tile] = (stat)(da * a);
        STAT(c.parts)[tiles + tile] = (stat)bias;
        STAT(c.parts)[2 * tiles + tile] = (stat)direct;
    }
}

static int ssd_steps_back(void *stream, const struct cu_ssd *c)
{
    int64_t tiles = tiles_of(&c->at), heads = c->at.s.heads;
    const stat *part = (const stat *)c->parts;
    struct head_sums a = {c->da_log, part, tiles / heads, heads, c->wide_a_log};
    struct head_sums bias = {c->dbias, part + tiles, tiles / heads, heads, c->wide_bias};
    struct head_sums d = {c->dd, part + 2 * tiles, tiles / heads, heads, c->wide_d};
    LAUNCH(ssd_steps_back_each, blocks_for(tiles), stream, c);
    int rc = add_head_sums(stream, &a);
    if (!rc)
        rc = add_head_sums(stream, &bias);
    return rc ? rc : add_head_sums(stream, &d);
}

/* Gradients of keys and queries: by way of the group's scores, and of each of its heads. */
KERNEL ssd_keys_back_each(CALL(cu_ssd) c)
{
    int64_t n = c.at.s.n, size = c.at.len * n;
    EACH(i, group_tiles_of(&c.at) * size)
    {
        struct tile_at a = group_at(&c.at, quotient(i, size));
        int64_t t = quotient(rest(i, size), n), from, to;
        int64_t at = (a.row + t) * c.at.s.ldg + a.h * 2 * n + rest(i, n);
        wide key = W(STAT(c.gk)[i]), query = W(STAT(c.gq)[i]);
        heads_of(&c.at, a.h, &from, &to);
        for (a.h = from; a.h < to; a.h++) {
            int64_t of_head = (a.pair * c.at.s.heads + a.h) * size + rest(i, size);
            int64_t one = one_at(&c.at, &a, t);
            num left = decay_left(&c.at, &a, c.sum, t) * N(c.step[one]);
            key += W(left) * W(STAT(c.dk)[of_head]);
            query += W(decay_of(c.sum[one])) * W(STAT(c.dq)[of_head]);
        }
        if (t < a.valid) {
            put(OUT(c.dbc), at, N(key));
            put(OUT(c.dbc), at + n, N(query));
        }
    }
}

static int ssd_keys_back(void *stream, const struct cu_ssd *c)
{
    LAUNCH(ssd_keys_back_each, blocks_for(group_tiles_of(&c->at) * c->at.len * c->at.s.n),
           stream, c);
    return 0;
}
