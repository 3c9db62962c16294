/* k_scan.h - what recurrences that are computed by chunks have in common; as the host's
 * k_scan.h, but for many chunks and heads at once.
 *
 * Numbers of a chunk of a head are copied into a tile, so that equal products of all tiles
 * are one call of cuBLASLt, whatever the order of the operands and however long the last
 * chunk is.  What a position and a head have one of is [pair, len, heads]: neighbouring
 * threads have neighbouring heads.  Sums of exponents are in f64, of which only differences
 * from an earlier position to a later one are taken the power of. */
#include "real.h"

/* Where a tile's numbers are. */
struct tile_at {
    int64_t k, b, h;
    int64_t pair, group; /* among those of the span */
    int64_t row;         /* of the operands: first position */
    int64_t valid;       /* positions */
};

DEVICE struct tile_at tile_at(const struct cu_span *p, int64_t tile)
{
    struct tile_at a;
    a.h = rest(tile, p->s.heads);
    a.pair = quotient(tile, p->s.heads);
    a.b = rest(a.pair, p->samples);
    a.k = quotient(a.pair, p->samples);
    int64_t first = (p->first_chunk + a.k) * p->s.chunk, left = p->s.seq - first;
    int64_t g = quotient(p->s.first_head + a.h, p->s.per_group) - p->first_group;
    a.group = a.pair * p->groups + g;
    a.row = (p->first_sample + a.b) * p->s.seq + first;
    a.valid = left < p->len ? left : p->len;
    return a;
}

/* Of a group's tile: k, b, pair, row, valid; h is the group's number in its operand. */
DEVICE struct tile_at group_at(const struct cu_span *p, int64_t tile)
{
    struct tile_at a = tile_at(p, quotient(tile, p->groups) * p->s.heads);
    a.h = p->first_group + rest(tile, p->groups);
    a.group = tile;
    return a;
}

/* Heads [from, to) here have keys of group 'g' of the operand. */
DEVICE void heads_of(const struct cu_span *p, int64_t g, int64_t *from, int64_t *to)
{
    int64_t first = g * p->s.per_group - p->s.first_head, last = first + p->s.per_group;
    *from = first > 0 ? first : 0;
    *to = last < p->s.heads ? last : p->s.heads;
}

BOTH int64_t tiles_of(const struct cu_span *p)
{
    return p->chunks * p->samples * p->s.heads;
}

BOTH int64_t group_tiles_of(const struct cu_span *p)
{
    return p->chunks * p->samples * p->groups;
}

/* Among what positions and heads have one of. */
DEVICE int64_t one_at(const struct cu_span *p, const struct tile_at *a, int64_t t)
{
    return (a->pair * p->len + t) * p->s.heads + a->h;
}

/* The same in an operand. */
DEVICE int64_t one_in(const struct cu_span *p, const struct tile_at *a, int64_t t)
{
    return (a->row + t) * p->s.heads + a->h;
}

/* e^x of a sum of exponents, or of a difference. */
DEVICE num decay_of(double x)
{
    return EXP(N(x));
}

/* e^(sum[t] - sum[j]). */
DEVICE num decay_between(const struct cu_span *p, const struct tile_at *a,
                         const double *sum, int64_t j, int64_t t)
{
    return decay_of(sum[one_at(p, a, t)] - sum[one_at(p, a, j)]);
}

/* To the end of the chunk. */
DEVICE num decay_left(const struct cu_span *p, const struct tile_at *a, const double *sum,
                      int64_t t)
{
    return decay_between(p, a, sum, t, p->len - 1);
}

/* Blocks of LANES rows, each of which STRIP neighbouring threads add up. */
BOTH int64_t row_blocks(int64_t rows)
{
    return (rows + LANES - 1) / LANES;
}

/* The sum of row t / STRIP, whose first thread t is. */
DEVICE wide strip_sum(const wide *part, int t)
{
    wide sum = 0;
    for (int lane = 0; lane < STRIP; lane++)
        sum += part[t + lane];
    return sum;
}

/* ---- sums over rows ----------------------------------------------------------------- */

/* A row of a tile is a position of its chunk. */
struct tile_row {
    int64_t row, at; /* among the rows of all tiles; in the chunk */
    struct tile_at a;
};

/* Parts of three sums that each row has: as the later position of pairs ('own'), as what is
 * written for later ones, and one of the operator's own. */
struct row_sums {
    wide own, later, third;
};

/* What a lane of STRIP adds to the sums of a row; and where they go. */
typedef struct row_sums row_terms(const void *call, const struct tile_row *r,
                                  int64_t lane);
typedef void row_keeper(const void *call, const struct tile_row *r,
                        const struct row_sums *sums);

DEVICE struct tile_row tile_row_at(const struct cu_span *p, int64_t row)
{
    struct tile_row r;
    r.row = row;
    r.at = rest(row, p->len);
    r.a = tile_at(p, quotient(row, p->len));
    return r;
}

/* The whole of a kernel of row_blocks() of all rows. */
DEVICE void sum_rows(const struct cu_span *p, const void *call, row_terms *terms,
                     row_keeper *keep)
{
    SHARED wide own[THREADS];
    SHARED wide later[THREADS];
    SHARED wide third[THREADS];
    int64_t rows = tiles_of(p) * p->len;
    BLOCKS(block, row_blocks(rows))
    {
        PHASE
        {
            int64_t row = block * LANES + t / STRIP;
            own[t] = later[t] = third[t] = 0;
            if (row >= rows)
                continue;
            struct tile_row r = tile_row_at(p, row);
            struct row_sums x = terms(call, &r, t % STRIP);
            own[t] = x.own;
            later[t] = x.later;
            third[t] = x.third;
        }
        PHASE
        {
            int64_t row = block * LANES + t / STRIP;
            if (row >= rows || t % STRIP)
                continue;
            struct tile_row r = tile_row_at(p, row);
            struct row_sums x = {strip_sum(own, t), strip_sum(later, t),
                                 strip_sum(third, t)};
            keep(call, &r, &x);
        }
    }
}

/* ---- copies ------------------------------------------------------------------------ */

KERNEL tiles_get_each(CALL(cu_tiles) c)
{
    int64_t p = c.at.s.p, size = c.at.len * p;
    EACH(i, tiles_of(&c.at) * size)
    {
        struct tile_at a = tile_at(&c.at, quotient(i, size));
        int64_t t = quotient(rest(i, size), p), j = rest(i, p);
        int64_t from = (a.row + t) * c.at.s.ld + a.h * p + j;
        put(OUT(c.tile), i, t < a.valid ? get(IN(c.from), from) : N(0));
    }
}

static int tiles_get(void *stream, const struct cu_tiles *c)
{
    LAUNCH(tiles_get_each, blocks_for(tiles_of(&c->at) * c->at.len * c->at.s.p), stream,
           c);
    return 0;
}

/* A tile's state among those that are kept. */
DEVICE int64_t state_in(const struct cu_span *p, const struct tile_at *a)
{
    int64_t chunk = (p->first_sample + a->b) * p->s.chunks + p->first_chunk + a->k;
    return (chunk * p->s.heads + a->h) * p->s.n * p->s.p;
}

KERNEL states_get_each(CALL(cu_tiles) c)
{
    int64_t size = c.at.s.n * c.at.s.p;
    EACH(i, tiles_of(&c.at) * size)
    {
        struct tile_at a = tile_at(&c.at, quotient(i, size));
        OUT(c.tile)[i] = IN(c.from)[state_in(&c.at, &a) + rest(i, size)];
    }
}

static int states_get(void *stream, const struct cu_tiles *c)
{
    LAUNCH(states_get_each, blocks_for(tiles_of(&c->at) * c->at.s.n * c->at.s.p), stream,
           c);
    return 0;
}

/* ---- from chunk to chunk ----------------------------------------------------------- */

/* A thread has a number of a head's matrix in a sample. */
KERNEL carry_on_each(CALL(cu_carry) c)
{
    int64_t size = c.at.s.n * c.at.s.p, heads = c.at.samples * c.at.s.heads;
    EACH(i, heads * size)
    {
        stat carried = STAT(c.carry)[i];
        for (int64_t step = c.from; step < c.to; step++) {
            int64_t k = c.backward ? c.from + c.to - 1 - step : step;
            int64_t tile = k * heads + quotient(i, size);
            int64_t at = tile * size + rest(i, size);
            struct tile_at a = tile_at(&c.at, tile);
            put(OUT(c.tile), at, N(carried));
            if (c.kept)
                put(OUT(c.kept), state_in(&c.at, &a) + rest(i, size), N(carried));
            carried *= (stat)decay_of(c.sum[one_at(&c.at, &a, c.at.len - 1)]);
            if (c.added)
                carried += STAT(c.added)[at];
        }
        STAT(c.carry)[i] = carried;
    }
}

static int carry_on(void *stream, const struct cu_carry *c)
{
    const struct cu_span *p = &c->at;
    LAUNCH(carry_on_each, blocks_for(p->samples * p->s.heads * p->s.n * p->s.p), stream,
           c);
    return 0;
}

KERNEL carry_ends_tiles(CALL(cu_ends) c)
{
    SHARED wide sum[THREADS];
    int64_t size = c.at.s.n * c.at.s.p;
    BLOCKS(tile, tiles_of(&c.at))
    {
        PHASE
        {
            sum[t] = 0;
            for (int64_t j = tile * size + t; j < (tile + 1) * size; j += THREADS)
                sum[t] += W(get(IN(c.state), j)) * W(get(IN(c.slope), j));
        }
        BLOCK_FOLD(sum, plus)
        PHASE
        {
            struct tile_at a = tile_at(&c.at, tile);
            if (t == 0)
                STAT(c.of_end)
            [tile] = (stat)(sum[0] * W(decay_of(c.sum[one_at(&c.at, &a, c.at.len - 1)])));
        }
    }
}

static int carry_ends(void *stream, const struct cu_ends *c)
{
    LAUNCH(carry_ends_tiles, tiles_of(&c->at), stream, c);
    return 0;
}

/* ---- gradients of parameters ------------------------------------------------------- */

/* dst[h] += sum over pairs of part[pair, h], in their order. */
struct head_sums {
    void *dst;
    const void *part;
    int64_t pairs, heads;
    int wide_dst;
};

KERNEL head_sums_each(CALL(head_sums) c)
{
    EACH(h, c.heads)
    {
        wide sum = 0;
        for (int64_t i = 0; i < c.pairs; i++)
            sum += W(STAT(c.part)[i * c.heads + h]);
        accumulate(c.dst, c.wide_dst, h, sum);
    }
}

static int add_head_sums(void *stream, const struct head_sums *c)
{
    if (c->dst)
        LAUNCH(head_sums_each, blocks_for(c->heads), stream, c);
    return 0;
}
