/* k_delta.h - the gated delta rule by chunks, around its products (scan.c); as the host's
 * k_delta.h, where the equations are.
 *
 * The system of a chunk is inverted, so that what depends on the state is a product: with
 * T = (I + A)^-1, k_in = beta e^sum k, k_out = w k and q_out = e^sum q / sqrt(n),
 *     u = T beta v - (T k_in) S,  y = P u + q_out S,  S' = e^sum[end] S + k_out^T u
 * and backward, R being the gradient of S', and du that of the right-hand side:
 *     du = T^T P^T dy + (T^T k_out) R
 *     of S: e^sum[end] R + q_out^T dy - k_in^T du
 *     dA = -du u^T,  dP = dy u^T,  dq_out = dy S^T,  dk_out = u R^T,  dk_in = -du S^T
 * Only the last product of u and the last two of S and R wait for the chunk before. */
#include "real.h"

/* Gates and the sums of their exponents, slopes of a gate, and the share that is written;
 * after the end nothing decays and nothing is written. */
KERNEL delta_gates_each(CALL(cu_delta) c)
{
    EACH(tile, tiles_of(&c.at))
    {
        struct tile_at at = tile_at(&c.at, tile);
        double a = -exp((double)get(IN(c.a_log), at.h)), sum = 0;
        for (int64_t t = 0; t < c.at.len; t++) {
            int64_t i = one_at(&c.at, &at, t), from = one_in(&c.at, &at, t);
            double gate = 0, slope = 0, share = 0;
            if (t < at.valid) {
                double x = (double)get(IN(c.gate), from) + (double)get(IN(c.bias), at.h);
                gate = a * softplus(x);
                slope = a * logistic(x);
                share = logistic((double)get(IN(c.beta), from));
            }
            c.gates[i] = gate;
            c.slope[i] = slope;
            c.share[i] = share;
            c.sum[i] = sum += gate;
        }
    }
}

static int delta_gates(void *stream, const struct cu_delta *c)
{
    LAUNCH(delta_gates_each, blocks_for(tiles_of(&c->at)), stream, c);
    return 0;
}

/* Keys (0) and queries (1) of a group's tile row: number j in the operand. */
DEVICE int64_t delta_from(const struct cu_delta *c, const struct tile_at *a, int64_t t,
                          int which, int64_t j)
{
    int64_t n = c->at.s.n;
    return (a->row + t) * c->at.s.ldg + (a->h * 2 + !which) * n + j;
}

/* Rows of length 1. */
KERNEL delta_units_rows(CALL(cu_delta) c)
{
    SHARED wide part[THREADS];
    int64_t len = c.at.len, n = c.at.s.n, rows = group_tiles_of(&c.at) * len;
    for (int which = 0; which < 2; which++) {
        void *unit = which ? c.queries : c.keys;
        BLOCKS(block, row_blocks(rows))
        {
            PHASE
            {
                int64_t row = block * LANES + t / STRIP;
                part[t] = 0;
                if (row >= rows)
                    continue;
                struct tile_at a = group_at(&c.at, quotient(row, len));
                for (int64_t j = t % STRIP; j < n && rest(row, len) < a.valid;
                     j += STRIP) {
                    wide x =
                        W(get(IN(c.qk), delta_from(&c, &a, rest(row, len), which, j)));
                    part[t] += x * x;
                }
            }
            PHASE
            {
                if (t % STRIP == 0)
                    part[t] = W(1 / sqrt((double)strip_sum(part, t) + c.eps));
            }
            PHASE
            {
                int64_t row = block * LANES + t / STRIP;
                if (row >= rows)
                    continue;
                struct tile_at a = group_at(&c.at, quotient(row, len));
                int inside = rest(row, len) < a.valid;
                for (int64_t j = t % STRIP; j < n; j += STRIP) {
                    int64_t from = delta_from(&c, &a, rest(row, len), which, j);
                    put(OUT(unit), row * n + j,
                        inside ? N(part[t - t % STRIP]) * get(IN(c.qk), from) : N(0));
                }
            }
        }
    }
}

/* Keys and queries with their decays, as heads have them. */
KERNEL delta_heads_each(CALL(cu_delta) c)
{
    int64_t n = c.at.s.n, size = c.at.len * n;
    EACH(i, tiles_of(&c.at) * size)
    {
        struct tile_at a = tile_at(&c.at, quotient(i, size));
        int64_t t = quotient(rest(i, size), n), one = one_at(&c.at, &a, t);
        int64_t from = a.group * size + rest(i, size);
        num grown = decay_of(c.sum[one]), key = get(IN(c.keys), from);
        put(OUT(c.k_in), i, N(c.share[one]) * grown * key);
        put(OUT(c.k_out), i, decay_left(&c.at, &a, c.sum, t) * key);
        put(OUT(c.q_out), i, N(c.scale) * grown * get(IN(c.queries), from));
    }
}

static int delta_tiles(void *stream, const struct cu_delta *c)
{
    LAUNCH(delta_units_rows, row_blocks(group_tiles_of(&c->at) * c->at.len), stream, c);
    LAUNCH(delta_heads_each, blocks_for(tiles_of(&c->at) * c->at.len * c->at.s.n), stream,
           c);
    return 0;
}

/* A below the diagonal, P up to it. */
KERNEL delta_pairs_each(CALL(cu_delta) c)
{
    int64_t len = c.at.len, square = len * len;
    EACH(i, tiles_of(&c.at) * square)
    {
        struct tile_at a = tile_at(&c.at, quotient(i, square));
        int64_t t = quotient(rest(i, square), len), j = rest(i, len);
        int64_t of_group = a.group * square + rest(i, square);
        num e = j <= t ? decay_between(&c.at, &a, c.sum, j, t) : N(0);
        num share = N(c.share[one_at(&c.at, &a, t)]);
        STAT(c.a)[i] = j < t ? (stat)(share * e) * STAT(c.scores_k)[of_group] : 0;
        put(OUT(c.p), i, j <= t ? e * N(STAT(c.scores_q)[of_group]) : N(0));
    }
}

/* Column by column of (I + A)^-1, which is 0 above the diagonal: threads of a tile read the
 * same row of A and their own column. */
KERNEL delta_inverse_each(CALL(cu_delta) c)
{
    int64_t len = c.at.len, square = len * len;
    EACH(i, tiles_of(&c.at) * len)
    {
        int64_t tile = quotient(i, len) * square, column = rest(i, len);
        const stat *a = STAT(c.a) + tile;
        stat *inverse = STAT(c.inverse) + tile;
        for (int64_t t = 0; t < len; t++) {
            stat sum = t == column ? 1 : 0;
            for (int64_t j = column; j < t; j++)
                sum -= a[t * len + j] * inverse[j * len + column];
            inverse[t * len + column] = sum;
            put(OUT(c.round), tile + t * len + column, N(sum));
        }
    }
}

static int delta_pairs(void *stream, const struct cu_delta *c)
{
    int64_t tiles = tiles_of(&c->at), len = c->at.len;
    LAUNCH(delta_pairs_each, blocks_for(tiles * len * len), stream, c);
    LAUNCH(delta_inverse_each, blocks_for(tiles * len), stream, c);
    return 0;
}

/* Where number i of a tile of values is in its operand; -1 after the end. */
DEVICE int64_t value_in(const struct cu_span *p, int64_t i, int64_t *one)
{
    int64_t size = p->len * p->s.p;
    struct tile_at a = tile_at(p, quotient(i, size));
    int64_t t = quotient(rest(i, size), p->s.p);
    *one = one_at(p, &a, t);
    return t < a.valid ? (a.row + t) * p->s.ld + a.h * p->s.p + rest(i, p->s.p) : -1;
}

/* The right-hand side: beta v, less what the old state gives where that is known. */
KERNEL delta_values_each(CALL(cu_delta) c)
{
    EACH(i, tiles_of(&c.at) * c.at.len * c.at.s.p)
    {
        int64_t one, from = value_in(&c.at, i, &one);
        num x = from < 0 ? N(0) : N(c.share[one]) * get(IN(c.v), from);
        put(OUT(c.values), i, c.old ? x - N(STAT(c.old)[i]) : x);
    }
}

static int delta_values(void *stream, const struct cu_delta *c)
{
    LAUNCH(delta_values_each, blocks_for(tiles_of(&c->at) * c->at.len * c->at.s.p),
           stream, c);
    return 0;
}

KERNEL delta_out_each(CALL(cu_delta) c)
{
    EACH(i, tiles_of(&c.at) * c.at.len * c.at.s.p)
    {
        int64_t one, to = value_in(&c.at, i, &one);
        if (to >= 0)
            put(OUT(c.y), to, N(STAT(c.tile_y)[i]));
    }
}

static int delta_out(void *stream, const struct cu_delta *c)
{
    LAUNCH(delta_out_each, blocks_for(tiles_of(&c->at) * c->at.len * c->at.s.p), stream,
           c);
    return 0;
}

KERNEL delta_out_back_each(CALL(cu_delta) c)
{
    EACH(i, tiles_of(&c.at) * c.at.len * c.at.s.p)
    {
        int64_t one, to = value_in(&c.at, i, &one);
        if (to >= 0)
            put(OUT(c.dv), to, N(c.share[one]) * N(STAT(c.wide_du)[i]));
    }
}

static int delta_out_back(void *stream, const struct cu_delta *c)
{
    LAUNCH(delta_out_back_each, blocks_for(tiles_of(&c->at) * c->at.len * c->at.s.p),
           stream, c);
    return 0;
}

/* Of each pair of positions: gradients of a group's products, which its heads add up to;
 * dP becomes dP * P, and dA becomes dA * kk * E. */
KERNEL delta_slopes_each(CALL(cu_delta) c)
{
    int64_t len = c.at.len, square = len * len;
    EACH(i, group_tiles_of(&c.at) * square)
    {
        struct tile_at a = group_at(&c.at, quotient(i, square));
        int64_t t = quotient(rest(i, square), len), j = rest(i, len), from, to;
        num keys = 0, queries = 0;
        heads_of(&c.at, a.h, &from, &to);
        for (a.h = from; a.h < to; a.h++) {
            int64_t at = (a.pair * c.at.s.heads + a.h) * square + rest(i, square);
            num e = j <= t ? decay_between(&c.at, &a, c.sum, j, t) : N(0);
            num by_p = j <= t ? N(STAT(c.dp)[at]) * e : N(0);
            num by_a = j < t ? N(STAT(c.da)[at]) * e : N(0);
            queries += by_p;
            keys += by_a * N(c.share[one_at(&c.at, &a, t)]);
            STAT(c.dp)[at] = (stat)by_p * STAT(c.scores_q)[i];
            STAT(c.da)[at] = (stat)by_a * STAT(c.scores_k)[i];
        }
        put(OUT(c.dscores_q), i, queries);
        put(OUT(c.dscores_k), i, keys);
    }
}

static int delta_slopes(void *stream, const struct cu_delta *c)
{
    LAUNCH(delta_slopes_each, blocks_for(group_tiles_of(&c->at) * c->at.len * c->at.len),
           stream, c);
    return 0;
}

/* The gradient of a position's cumulative gate, in two parts: as the later position of a
 * pair and by what it reads of the chunk's first state ('own'), and by what it writes
 * ('later').  The gradient of beta, too. */
DEVICE struct row_sums delta_terms(const void *call, const struct tile_row *r,
                                   int64_t lane)
{
    const struct cu_delta *c = (const struct cu_delta *)call;
    int64_t len = c->at.len, n = c->at.s.n, p = c->at.s.p, row = r->row, at = r->at;
    int64_t one = one_at(&c->at, &r->a, at);
    wide grown = W(decay_of(c->sum[one])), share = W(c->share[one]);
    struct row_sums x = {W(0), W(0), W(0)};
    for (int64_t j = lane; j <= at; j += STRIP) {
        wide by_a = W(STAT(c->da)[row * len + j]);
        x.own += W(STAT(c->dp)[row * len + j]) + share * by_a;
        x.third += by_a;
    }
    for (int64_t j = lane; j < n; j += STRIP) {
        int64_t i = row * n + j;
        wide key = W(get(IN(c->keys), (r->a.group * len + at) * n + j));
        wide read = grown * key * W(STAT(c->dk_in)[i]);
        x.own += W(get(IN(c->q_out), i)) * W(STAT(c->dq_out)[i]) + share * read;
        x.later += W(get(IN(c->k_out), i)) * W(STAT(c->dk_out)[i]);
        x.third += read;
    }
    for (int64_t j = lane; j < p && at < r->a.valid; j += STRIP)
        x.third += W(STAT(c->wide_du)[row * p + j]) *
                   W(get(IN(c->v), (r->a.row + at) * c->at.s.ld + r->a.h * p + j));
    return x;
}

DEVICE void delta_keep(const void *call, const struct tile_row *r,
                       const struct row_sums *sums)
{
    const struct cu_delta *c = (const struct cu_delta *)call;
    int64_t i = one_at(&c->at, &r->a, r->at);
    STAT(c->own)[i] = (stat)sums->own;
    STAT(c->later)[i] = (stat)sums->later;
    STAT(c->of_beta)[i] = (stat)sums->third;
}

KERNEL delta_sums_rows(CALL(cu_delta) c)
{
    sum_rows(&c.at, &c, delta_terms, delta_keep);
}

/* As the earlier one of pairs. */
KERNEL delta_columns_each(CALL(cu_delta) c)
{
    int64_t len = c.at.len;
    EACH(i, tiles_of(&c.at) * len)
    {
        struct tile_at a = tile_at(&c.at, quotient(i, len));
        int64_t j = rest(i, len);
        wide sum = 0;
        for (int64_t t = j; t < len; t++) {
            int64_t at = (i - j + t) * len + j;
            sum +=
                W(STAT(c.dp)[at]) + W(c.share[one_at(&c.at, &a, t)]) * W(STAT(c.da)[at]);
        }
        STAT(c.weight)[one_at(&c.at, &a, j)] = (stat)sum;
    }
}

static int delta_sums(void *stream, const struct cu_delta *c)
{
    int64_t rows = tiles_of(&c->at) * c->at.len;
    LAUNCH(delta_sums_rows, row_blocks(rows), stream, c);
    LAUNCH(delta_columns_each, blocks_for(rows), stream, c);
    return 0;
}

/* From gradients of sums to those of gates, which are in all sums from their own on. */
KERNEL delta_gates_back_each(CALL(cu_delta) c)
{
    int64_t tiles = tiles_of(&c.at);
    EACH(tile, tiles)
    {
        struct tile_at at = tile_at(&c.at, tile);
        double sum = (double)STAT(c.of_end)[tile], da = 0, bias = 0;
        for (int64_t t = 0; t < c.at.len; t++)
            sum += (double)STAT(c.later)[one_at(&c.at, &at, t)];
        for (int64_t t = c.at.len - 1; t >= 0; t--) {
            int64_t i = one_at(&c.at, &at, t), to = one_in(&c.at, &at, t);
            double share = c.share[i];
            sum += (double)STAT(c.own)[i] - (double)STAT(c.later)[i] -
                   (double)STAT(c.weight)[i];
            da += sum * c.gates[i];
            bias += sum * c.slope[i];
            if (c.dgate && t < at.valid)
                put(OUT(c.dgate), to, N(sum * c.slope[i]));
            if (c.dbeta && t < at.valid)
                put(OUT(c.dbeta), to,
                    N((double)STAT(c.of_beta)[i] * share * (1 - share)));
        }
        STAT(c.parts)[tile] = (stat)da;
        STAT(c.parts)[tiles + tile] = (stat)bias;
    }
}

static int delta_gates_back(void *stream, const struct cu_delta *c)
{
    int64_t tiles = tiles_of(&c->at), heads = c->at.s.heads;
    const stat *part = (const stat *)c->parts;
    struct head_sums a = {c->da_log, part, tiles / heads, heads, c->wide_a_log};
    struct head_sums bias = {c->dbias, part + tiles, tiles / heads, heads, c->wide_bias};
    LAUNCH(delta_gates_back_each, blocks_for(tiles), stream, c);
    int rc = add_head_sums(stream, &a);
    return rc ? rc : add_head_sums(stream, &bias);
}

/* Gradients of keys and queries of length 1: what pairs made, and each of the group's
 * heads. */
KERNEL delta_keys_back_each(CALL(cu_delta) c)
{
    int64_t n = c.at.s.n, size = c.at.len * n;
    EACH(i, group_tiles_of(&c.at) * size)
    {
        struct tile_at a = group_at(&c.at, quotient(i, size));
        int64_t t = quotient(rest(i, size), n), from, to;
        wide key = W(STAT(c.gk)[i]), query = W(STAT(c.gq)[i]);
        heads_of(&c.at, a.h, &from, &to);
        for (a.h = from; a.h < to; a.h++) {
            int64_t of_head = (a.pair * c.at.s.heads + a.h) * size + rest(i, size);
            int64_t one = one_at(&c.at, &a, t);
            num grown = decay_of(c.sum[one]), left = decay_left(&c.at, &a, c.sum, t);
            key += W(left) * W(STAT(c.dk_out)[of_head]) +
                   W(N(c.share[one]) * grown) * W(STAT(c.dk_in)[of_head]);
            query += W(N(c.scale) * grown) * W(STAT(c.dq_out)[of_head]);
        }
        STAT(c.gk)[i] = (stat)key;
        STAT(c.gq)[i] = (stat)query;
    }
}

/* ... and of those that they were made of. */
KERNEL delta_units_back_rows(CALL(cu_delta) c)
{
    SHARED wide square[THREADS];
    SHARED wide along[THREADS];
    int64_t len = c.at.len, n = c.at.s.n, rows = group_tiles_of(&c.at) * len;
    for (int which = 0; which < 2; which++) {
        const void *unit = which ? c.queries : c.keys, *slope = which ? c.gq : c.gk;
        BLOCKS(block, row_blocks(rows))
        {
            PHASE
            {
                int64_t row = block * LANES + t / STRIP;
                square[t] = along[t] = 0;
                if (row >= rows)
                    continue;
                struct tile_at a = group_at(&c.at, quotient(row, len));
                for (int64_t j = t % STRIP; j < n && rest(row, len) < a.valid;
                     j += STRIP) {
                    wide x =
                        W(get(IN(c.qk), delta_from(&c, &a, rest(row, len), which, j)));
                    square[t] += x * x;
                    along[t] +=
                        W(get(IN(unit), row * n + j)) * W(STAT(slope)[row * n + j]);
                }
            }
            PHASE
            {
                if (t % STRIP == 0) {
                    square[t] = W(1 / sqrt((double)strip_sum(square, t) + c.eps));
                    along[t] = strip_sum(along, t);
                }
            }
            PHASE
            {
                int64_t row = block * LANES + t / STRIP;
                int first = t - t % STRIP;
                if (row >= rows)
                    continue;
                struct tile_at a = group_at(&c.at, quotient(row, len));
                for (int64_t j = t % STRIP; j < n && rest(row, len) < a.valid;
                     j += STRIP) {
                    num towards = get(IN(unit), row * n + j) * N(along[first]);
                    put(OUT(c.dqk), delta_from(&c, &a, rest(row, len), which, j),
                        N(square[first]) * (N(STAT(slope)[row * n + j]) - towards));
                }
            }
        }
    }
}

static int delta_keys_back(void *stream, const struct cu_delta *c)
{
    int64_t rows = group_tiles_of(&c->at) * c->at.len;
    LAUNCH(delta_keys_back_each, blocks_for(rows * c->at.s.n), stream, c);
    LAUNCH(delta_units_back_rows, row_blocks(rows), stream, c);
    return 0;
}
