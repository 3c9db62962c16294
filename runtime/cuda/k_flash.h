/* k_flash.h - attention in one kernel, bf16 on tensor cores: scores never leave the chip.
 *
 * The idea is FlashAttention's (Dao et al., 2022; Dao, 2023): a team has a tile of ROWS queries
 * and goes over the keys that they see, COLS at a time; it keeps for each row the largest score
 * and the sum of exponentials so far, and rescales what it has when the largest grows.
 * Backward makes the probabilities again from the saved log-sum-exp, once by rows of queries
 * (flash_rows: sums of p dp, then dq) and once by rows of keys (flash_keys: dk and dv, over all
 * heads of the group): nine products where the published kernel makes five, but nothing is added
 * by atomics, so a step gives the same bits twice, and the output needs not be kept.
 *
 * Heads of up to 64 and up to 128 numbers have kernels of their own; what a head lacks is zero in
 * shared memory.  Rows in shared memory are eight numbers longer than they are wide: then the
 * eight rows of a tile lie in different banks. */
#include "team.h"

#if TOPT_CU_TYPE == 16

enum { ROWS = 16 * TEAM_WARPS, APART = 8 };

#define LOG2E 1.4426950408889634f

DEVICE float flash_larger(float a, float b)
{
    return a > b ? a : b;
}

DEVICE float flash_plus(float a, float b)
{
    return a + b;
}

/* Two numbers as tensor cores take them. */
DEVICE uint32_t packed(float low, float high)
{
    real pair[2];
    uint32_t bits;
    put(pair, 0, low);
    put(pair, 1, high);
    memcpy(&bits, pair, sizeof bits);
    return bits;
}

/* Where a head's rows of one sample start. */
DEVICE int64_t flash_at(const struct cu_heads *x, int64_t b, int64_t g, int64_t h)
{
    return b * x->sample + g * x->group + h * x->head;
}

/* Thread t's part of 'rows' rows from 'first' on into shared memory; what is past 'end' or
 * 'width' is 0. */
DEVICE void fetch(real *to, int ld, int cells, const struct cu_heads *x, int64_t at,
                  int64_t first, int64_t end, int rows, int64_t width, int vectors, int t)
{
    const struct chunk none = {{0, 0}};
    int chunks = cells / 8;
    for (int i = t; i < rows * chunks; i += TEAM) {
        int r = i / chunks, j = i % chunks * 8;
        const real *from = IN(x->p) + at + (first + r) * x->row + j;
        real *cell = to + r * ld + j;
        int there = first + r < end;
        if (vectors && there && j + 8 <= width) {
            *(struct chunk *)cell = *(const struct chunk *)from;
            continue;
        }
        *(struct chunk *)cell = none;
        for (int k = 0; there && k < 8 && j + k < width; k++)
            cell[k] = from[k];
    }
}

/* From what a score was as a product to what the softmax sees; without the cap they differ by
 * the scale alone. */
DEVICE float flash_score(const struct cu_flash *c, float product)
{
    float x = (float)c->scale * product, cap = (float)c->cap;
    return cap > 0 ? cap * TANH(x / cap) : x;
}

/* The slope of that. */
DEVICE float flash_slope(const struct cu_flash *c, float score)
{
    float part = c->cap > 0 ? score / (float)c->cap : 0;
    return (float)c->scale * (1 - part * part);
}

/* Keys [from, to) of query 'i'; none where there is no such query. */
DEVICE void flash_keys_of(const struct cu_flash *c, int64_t i, int64_t *from, int64_t *to)
{
    *from = *to = 0;
    if (i < c->s)
        mask_keys(&c->mask, i, from, to);
}

/* Keys [from, to) that any of 'n' queries from 'first' on sees. */
DEVICE void flash_span_of(const struct cu_flash *c, int64_t first, int64_t n,
                          int64_t *from, int64_t *to)
{
    int64_t end = first + n < c->s ? first + n : c->s, other;
    flash_keys_of(c, first, from, &other);
    flash_keys_of(c, end - 1, &other, to);
}

/* A tile of ROWS queries of head h of group g in sample b, and the keys that they see. */
struct flash_tile {
    int64_t first, b, g, h, from, to;
};

BOTH int64_t flash_tiles(const struct cu_flash *c)
{
    return c->batch * c->groups * c->heads * ((c->s + ROWS - 1) / ROWS);
}

/* The last rows of a causal mask see the most keys: they start first. */
DEVICE struct flash_tile flash_tile_of(const struct cu_flash *c, int64_t block)
{
    int64_t tiles = (c->s + ROWS - 1) / ROWS, heads = c->groups * c->heads;
    int64_t head = quotient(block, tiles);
    struct flash_tile t;
    t.first = (tiles - 1 - rest(block, tiles)) * ROWS;
    t.b = quotient(head, heads);
    t.g = quotient(rest(head, heads), c->heads);
    t.h = rest(head, c->heads);
    flash_span_of(c, t.first, ROWS, &t.from, &t.to);
    return t;
}

/* The probability of a key, from its score and the query's log-sum-exp; 0 outside of [from, to). */
DEVICE float flash_weight(float score, int64_t key, int64_t from, int64_t to, float lse)
{
    return key >= from && key < to ? exp2f((score - lse) * LOG2E) : 0;
}

/* Products of a warp's 16 rows of 'left' with the rows of 'right': c[16, cols]. */
#define TIMES_ROWS(c, cols, left, right, depth)                                          \
    do {                                                                                 \
        LANE for (int i_ = 0; i_ < (cols) / 2; i_++) MY(c)[i_] = 0;                      \
        UNROLL for (int k_ = 0; k_ < (depth); k_ += 16)                                  \
        {                                                                                \
            REGISTERS(uint32_t, a_, 4);                                                  \
            LOAD_TILES(a_, 0,                                                            \
                       (left) + (16 * w + lane % 16) * ((depth) + APART) + k_ +          \
                           lane / 16 * 8,                                                \
                       0);                                                               \
            UNROLL for (int n_ = 0; n_ < (cols); n_ += 16)                               \
            {                                                                            \
                REGISTERS(uint32_t, b_, 4);                                              \
                LOAD_TILES(b_, 0,                                                        \
                           (right) +                                                     \
                               (n_ + lane / 16 * 8 + lane % 8) * ((depth) + APART) +     \
                               k_ + lane / 8 % 2 * 8,                                    \
                           0);                                                           \
                MULTIPLY(c, n_ / 2, a_, 0, b_, 0);                                       \
                MULTIPLY(c, n_ / 2 + 4, a_, 0, b_, 2);                                   \
            }                                                                            \
        }                                                                                \
    } while (0)

/* c[16, width] += m[16, cols], rounded, times the rows of 'right'. */
#define TIMES_COLUMNS(c, m, cols, right, width)                                          \
    do {                                                                                 \
        UNROLL for (int k_ = 0; k_ < (cols); k_ += 16)                                   \
        {                                                                                \
            REGISTERS(uint32_t, a_, 4);                                                  \
            LANE for (int i_ = 0; i_ < 4; i_++) MY(a_)[i_] =                             \
                packed(MY(m)[k_ / 2 + 2 * i_], MY(m)[k_ / 2 + 2 * i_ + 1]);              \
            UNROLL for (int n_ = 0; n_ < (width); n_ += 16)                              \
            {                                                                            \
                REGISTERS(uint32_t, b_, 4);                                              \
                LOAD_TILES(b_, 0,                                                        \
                           (right) +                                                     \
                               (k_ + lane / 8 % 2 * 8 + lane % 8) * ((width) + APART) +  \
                               n_ + lane / 16 * 8,                                       \
                           1);                                                           \
                MULTIPLY(c, n_ / 2, a_, 0, b_, 0);                                       \
                MULTIPLY(c, n_ / 2 + 4, a_, 0, b_, 2);                                   \
            }                                                                            \
        }                                                                                \
    } while (0)

/* Row and column, in a warp's part of the tile, of number i of a lane. */
#define ROW_OF(i)    (16 * w + lane / 4 + 8 * ((i) / 2 % 2))
#define COLUMN_OF(i) ((i) / 4 * 8 + 2 * (lane % 4) + (i) % 2)

/* A lane's numbers of c[., wide] as rows [first, end) of a head, times what 'of' is by row. */
#define STORE(x, at, c, wide, width, first, end, of)                                     \
    LANE for (int i_ = 0; i_ < (wide) / 2; i_++)                                         \
    {                                                                                    \
        int64_t row_ = (first) + ROW_OF(i_);                                             \
        if (row_ < (end) && COLUMN_OF(i_) < (width))                                     \
            put(OUT((x)->p), (at) + row_ * (x)->row + COLUMN_OF(i_),                     \
                MY(c)[i_] * MY(of)[i_ / 2 % 2]);                                         \
    }

#define FLASH_D 64
#include "flash_tiles.h"
#undef FLASH_D
#define FLASH_D 128
#include "flash_tiles.h"
#undef FLASH_D

#define FLASH_LAUNCH(which, blocks_)                                                     \
    static int which(void *stream, const struct cu_flash *c)                             \
    {                                                                                    \
        int64_t blocks = (blocks_);                                                      \
        if (c->d <= 64 && c->vd <= 64)                                                   \
            TEAM_LAUNCH(which##_64, blocks, which##_bytes_64, stream, c);                \
        else                                                                             \
            TEAM_LAUNCH(which##_128, blocks, which##_bytes_128, stream, c);              \
        return 0;                                                                        \
    }

FLASH_LAUNCH(flash_forward, c->heads *((c->s + ROWS - 1) / ROWS))
FLASH_LAUNCH(flash_rows, c->heads *((c->s + ROWS - 1) / ROWS))
FLASH_LAUNCH(flash_keys, (c->mask.keys + ROWS - 1) / ROWS)

#else
/* Tensor cores have no such products of other numbers: attention.c asks for none. */
static int flash_forward(void *stream, const struct cu_flash *c)
{
    (void)stream, (void)c;
    return 801; /* cudaErrorNotSupported */
}

static int flash_rows(void *stream, const struct cu_flash *c)
{
    return flash_forward(stream, c);
}

static int flash_keys(void *stream, const struct cu_flash *c)
{
    return flash_forward(stream, c);
}
#endif
