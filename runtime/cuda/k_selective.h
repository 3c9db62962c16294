/* k_selective.h - selective state spaces by chunks; as the host's k_selective.h, where the
 * equations are.
 *
 * A thread has a number of x in one chunk, neighbours have neighbouring numbers.  Each has
 * SLICE numbers of its state at a time, in registers.  First every chunk finds out what it
 * adds to the state by itself, from zero; then these go from chunk to chunk; then every
 * chunk is done from the state that it starts with.  Backward does the same with the
 * gradient of the state, from the end.  What a position gives to keys and queries, which
 * all numbers of x share, is written down number by number and added up afterwards. */
#include "real.h"

enum { SLICE = THREADS / 16 };

/* Numbers of a state in a slice that begins at 'i0'. */
#define EACH_STATE(j, i0, n) UNROLL for (int j = 0; j < SLICE; j++) if ((i0) + j < (n))

DEVICE int64_t selective_step_at(const struct cu_selective *c, const struct tile_at *a,
                                 int64_t t)
{
    return one_at(&c->at, a, t);
}

/* What the state decays by in a step of 1. */
DEVICE num selective_rate(const struct cu_selective *c, int64_t h, int64_t i)
{
    return N(-exp((double)get(IN(c->a_log), h * c->at.s.n + i)));
}

/* Number i of what a chunk has one of for each number of the state and of x. */
DEVICE int64_t selective_made_at(const struct cu_selective *c, const struct tile_at *a,
                                 int64_t i)
{
    return (a->pair * c->at.s.n + i) * c->at.s.heads + a->h;
}

/* The same for a position. */
DEVICE int64_t selective_seen_at(const struct cu_selective *c, const struct tile_at *a,
                                 int64_t t, int64_t i)
{
    return ((a->pair * c->at.len + t) * c->at.s.n + i) * c->at.s.heads + a->h;
}

/* Steps, and their sum over the chunk. */
KERNEL selective_steps_each(CALL(cu_selective) c)
{
    EACH(tile, tiles_of(&c.at))
    {
        struct tile_at a = tile_at(&c.at, tile);
        double total = 0;
        for (int64_t t = 0; t < a.valid; t++) {
            double step = softplus((double)get(IN(c.dt), one_in(&c.at, &a, t)));
            STAT(c.step)[selective_step_at(&c, &a, t)] = (stat)step;
            total += step;
        }
        c.total[tile] = total;
    }
}

static int selective_steps(void *stream, const struct cu_selective *c)
{
    LAUNCH(selective_steps_each, blocks_for(tiles_of(&c->at)), stream, c);
    return 0;
}

/* What the chunk adds to the state. */
KERNEL selective_made_each(CALL(cu_selective) c)
{
    int64_t n = c.at.s.n;
    EACH(tile, tiles_of(&c.at))
    {
        struct tile_at at = tile_at(&c.at, tile);
        for (int64_t i0 = 0; i0 < n; i0 += SLICE) {
            num now[SLICE] = {0}, a[SLICE] = {0};
            EACH_STATE(j, i0, n)
            a[j] = selective_rate(&c, at.h, i0 + j);
            for (int64_t t = 0; t < at.valid; t++) {
                num step = N(STAT(c.step)[selective_step_at(&c, &at, t)]);
                num x = step * get(IN(c.x), one_in(&c.at, &at, t));
                EACH_STATE(j, i0, n)
                now[j] = EXP(a[j] * step) * now[j] +
                         x * get(IN(c.b), (at.row + t) * n + i0 + j);
            }
            EACH_STATE(j, i0, n)
            STAT(c.made)[selective_made_at(&c, &at, i0 + j)] = (stat)now[j];
        }
    }
}

static int selective_made(void *stream, const struct cu_selective *c)
{
    LAUNCH(selective_made_each, blocks_for(tiles_of(&c->at)), stream, c);
    return 0;
}

/* ... and to the gradient of the one that it starts with. */
KERNEL selective_made_back_each(CALL(cu_selective) c)
{
    int64_t n = c.at.s.n;
    EACH(tile, tiles_of(&c.at))
    {
        struct tile_at at = tile_at(&c.at, tile);
        for (int64_t i0 = 0; i0 < n; i0 += SLICE) {
            num slope[SLICE] = {0}, a[SLICE] = {0};
            EACH_STATE(j, i0, n)
            a[j] = selective_rate(&c, at.h, i0 + j);
            for (int64_t t = at.valid - 1; t >= 0; t--) {
                num step = N(STAT(c.step)[selective_step_at(&c, &at, t)]);
                num dy = get(IN(c.dy), one_in(&c.at, &at, t));
                EACH_STATE(j, i0, n)
                slope[j] = EXP(a[j] * step) *
                           (slope[j] + dy * get(IN(c.c), (at.row + t) * n + i0 + j));
            }
            EACH_STATE(j, i0, n)
            STAT(c.made)[selective_made_at(&c, &at, i0 + j)] = (stat)slope[j];
        }
    }
}

static int selective_made_back(void *stream, const struct cu_selective *c)
{
    LAUNCH(selective_made_back_each, blocks_for(tiles_of(&c->at)), stream, c);
    return 0;
}

/* From chunk to chunk: what a chunk makes gives way to what is carried into it. */
KERNEL selective_carry_each(CALL(cu_selective) c)
{
    int64_t heads = c.at.s.heads, size = c.at.s.n * heads;
    EACH(at, c.at.samples * size)
    {
        int64_t h = rest(at, heads), i = quotient(rest(at, size), heads);
        num a = selective_rate(&c, h, i);
        stat carried = STAT(c.carry)[at];
        for (int64_t step = 0; step < c.at.chunks; step++) {
            int64_t k = c.dy ? c.at.chunks - 1 - step : step;
            int64_t pair = k * c.at.samples + quotient(at, size);
            int64_t made = pair * size + rest(at, size);
            struct tile_at tile = tile_at(&c.at, pair * heads + h);
            stat added = STAT(c.made)[made];
            STAT(c.made)[made] = carried;
            if (!c.dy)
                put(OUT(c.states), state_in(&c.at, &tile) + i, N(carried));
            carried = (stat)EXP(a * N(c.total[pair * heads + h])) * carried + added;
        }
        STAT(c.carry)[at] = carried;
    }
}

static int selective_carry(void *stream, const struct cu_selective *c)
{
    LAUNCH(selective_carry_each, blocks_for(c->at.samples * c->at.s.n * c->at.s.heads),
           stream, c);
    return 0;
}

/* The first slice writes a number, the others add to it. */
DEVICE void selective_put(void *to, int64_t at, int64_t i0, num x)
{
    put(OUT(to), at, i0 ? get(OUT(to), at) + x : x);
}

KERNEL selective_out_each(CALL(cu_selective) c)
{
    int64_t n = c.at.s.n;
    EACH(tile, tiles_of(&c.at))
    {
        struct tile_at at = tile_at(&c.at, tile);
        num d = get(IN(c.d), at.h);
        for (int64_t i0 = 0; i0 < n; i0 += SLICE) {
            num now[SLICE] = {0}, a[SLICE] = {0};
            EACH_STATE(j, i0, n)
            {
                a[j] = selective_rate(&c, at.h, i0 + j);
                now[j] = N(STAT(c.made)[selective_made_at(&c, &at, i0 + j)]);
            }
            for (int64_t t = 0; t < at.valid; t++) {
                int64_t to = one_in(&c.at, &at, t), keys = (at.row + t) * n + i0;
                num step = N(STAT(c.step)[selective_step_at(&c, &at, t)]);
                num x = get(IN(c.x), to), y = i0 ? N(0) : d * x;
                EACH_STATE(j, i0, n)
                {
                    now[j] =
                        EXP(a[j] * step) * now[j] + step * x * get(IN(c.b), keys + j);
                    y += now[j] * get(IN(c.c), keys + j);
                }
                selective_put(c.y, to, i0, y);
            }
        }
    }
}

static int selective_out(void *stream, const struct cu_selective *c)
{
    LAUNCH(selective_out_each, blocks_for(tiles_of(&c->at)), stream, c);
    return 0;
}

/* The states that a slice has before each position, from the one that was kept. */
DEVICE void selective_remake(const struct cu_selective *c, const struct tile_at *at,
                             int64_t i0, const num *a)
{
    int64_t n = c->at.s.n;
    num now[SLICE] = {0};
    EACH_STATE(j, i0, n)
    now[j] = get(IN(c->states), state_in(&c->at, at) + i0 + j);
    for (int64_t t = 0; t < at->valid; t++) {
        num step = N(STAT(c->step)[selective_step_at(c, at, t)]);
        num x = step * get(IN(c->x), one_in(&c->at, at, t));
        EACH_STATE(j, i0, n)
        {
            STAT(c->seen)[selective_seen_at(c, at, t, i0 + j)] = (stat)now[j];
            now[j] =
                EXP(a[j] * step) * now[j] + x * get(IN(c->b), (at->row + t) * n + i0 + j);
        }
    }
}

/* Back through a chunk.  A state that was seen gives way to what its position adds to the
 * gradient of its query; 'slope' becomes that of its key. */
KERNEL selective_back_each(CALL(cu_selective) c)
{
    int64_t n = c.at.s.n, tiles = tiles_of(&c.at);
    EACH(tile, tiles)
    {
        struct tile_at at = tile_at(&c.at, tile);
        num d = get(IN(c.d), at.h), direct = 0;
        for (int64_t i0 = 0; i0 < n; i0 += SLICE) {
            num carried[SLICE] = {0}, a[SLICE] = {0}, da[SLICE] = {0};
            EACH_STATE(j, i0, n)
            {
                a[j] = selective_rate(&c, at.h, i0 + j);
                carried[j] = N(STAT(c.made)[selective_made_at(&c, &at, i0 + j)]);
            }
            selective_remake(&c, &at, i0, a);
            for (int64_t t = at.valid - 1; t >= 0; t--) {
                int64_t from = one_in(&c.at, &at, t), keys = (at.row + t) * n + i0;
                num step = N(STAT(c.step)[selective_step_at(&c, &at, t)]);
                num x = get(IN(c.x), from), dy = get(IN(c.dy), from);
                num along = 0, dstep = 0;
                EACH_STATE(j, i0, n)
                {
                    int64_t seen = selective_seen_at(&c, &at, t, i0 + j);
                    num before = N(STAT(c.seen)[seen]), key = get(IN(c.b), keys + j);
                    num decay = EXP(a[j] * step);
                    num slope = carried[j] + dy * get(IN(c.c), keys + j);
                    num by_decay = slope * decay * before;
                    da[j] += by_decay * step;
                    dstep += by_decay * a[j];
                    along += slope * key;
                    carried[j] = slope * decay;
                    STAT(c.seen)[seen] = (stat)(dy * (decay * before + step * x * key));
                    STAT(c.slope)[seen] = (stat)(slope * step * x);
                }
                direct += i0 ? N(0) : dy * x;
                if (c.dx)
                    selective_put(c.dx, from, i0, along * step + (i0 ? N(0) : d * dy));
                if (c.ddt)
                    selective_put(c.ddt, from, i0,
                                  (dstep + along * x) *
                                      N(logistic((double)get(IN(c.dt), from))));
            }
            EACH_STATE(j, i0, n)
            STAT(c.of_a)[tile * n + i0 + j] = (stat)(da[j] * a[j]);
        }
        STAT(c.of_d)[tile] = (stat)direct;
    }
}

/* Over all numbers of x: of a position's number i of keys and queries. */
KERNEL selective_keys_rows(CALL(cu_selective) c)
{
    SHARED wide key[THREADS];
    SHARED wide query[THREADS];
    int64_t n = c.at.s.n, heads = c.at.s.heads;
    int64_t rows = c.at.chunks * c.at.samples * c.at.len * n;
    BLOCKS(block, row_blocks(rows))
    {
        PHASE
        {
            int64_t row = block * LANES + t / STRIP;
            struct tile_at a = tile_at(&c.at, quotient(row, c.at.len * n) * heads);
            key[t] = query[t] = 0;
            if (row >= rows || quotient(rest(row, c.at.len * n), n) >= a.valid)
                continue;
            for (int64_t h = t % STRIP; h < heads; h += STRIP) {
                key[t] += W(STAT(c.slope)[row * heads + h]);
                query[t] += W(STAT(c.seen)[row * heads + h]);
            }
        }
        PHASE
        {
            int64_t row = block * LANES + t / STRIP;
            struct tile_at a = tile_at(&c.at, quotient(row, c.at.len * n) * heads);
            int64_t at = quotient(rest(row, c.at.len * n), n);
            int64_t to = (a.row + at) * n + rest(row, n);
            if (row >= rows || t % STRIP || at >= a.valid)
                continue;
            if (c.db)
                put(OUT(c.db), to, N(strip_sum(key, t)));
            if (c.dc)
                put(OUT(c.dc), to, N(strip_sum(query, t)));
        }
    }
}

static int selective_back(void *stream, const struct cu_selective *c)
{
    int64_t pairs = c->at.chunks * c->at.samples, heads = c->at.s.heads, n = c->at.s.n;
    struct head_sums a = {c->da_log, c->of_a, pairs, heads * n, c->wide_a_log};
    struct head_sums d = {c->dd, c->of_d, pairs, heads, c->wide_d};
    LAUNCH(selective_back_each, blocks_for(tiles_of(&c->at)), stream, c);
    if (c->db || c->dc)
        LAUNCH(selective_keys_rows, row_blocks(pairs * c->at.len * n), stream, c);
    int rc = add_head_sums(stream, &a);
    return rc ? rc : add_head_sums(stream, &d);
}
