/* min_plus.c - a matrix times a matrix, in the algebra of least and plus.
 *
 * Within a layer most of the work is to eliminate the operator in the middle: A is over x
 * and k, B is over k and y, and an entry (x, y) is the least of A[x, k] + B[k, y] over
 * all k; x and y may be several operators each, and along a chain x is none.  Both are
 * written out as doubles first, so that a processor adds and compares several at a time:
 *
 *     least     a tile of 4 x 16 entries at a time, which stay in registers while k goes
 *               through a panel of 4 rows of A and one of 16 columns of B.  Both stand as
 *               they are read, k after k, so that a pair costs an addition and a comparison
 *               and hardly any reading (the blocking of products of matrices: Goto and van
 *               de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008)
 *     rest      row x of A's gets from every entry (x, y) that is wanted  rest + row y of
 *               B, turned; and row y of B's, turned, gets  rest + row x of A
 *
 * Weights of what is wanted are below 2^53, which doubles add exactly; what is heavier
 * may be rounded, but never to less than that. */
#include "min_plus.h"

#include "factor_tuning.h"
#include "wide.h"

#include <string.h>

#ifdef WIDE
#include <immintrin.h>
#else
#define WIDE
#define HAS_WIDE 0
#endif

enum {
    ROWS = TOPT_TILE_ROWS,
    COLUMNS = TOPT_TILE_COLUMNS,
};

/* A factor of a step as a matrix: a row for each value of the operators that it alone
 * tells apart, a column for each k. */
struct side {
    const struct table *t;
    int64_t first;               /* entry */
    const int32_t *row, *column; /* offsets in the factor */
    const int32_t *to;           /* of its rows in the result */
    int n, nk;
};

/* All values of the dimensions that a factor tells apart, the last one first: offsets in
 * the factor and in the result.  Returns how many. */
static int list_values(const struct step *s, int of_b, int32_t *ret, int32_t *ret_to)
{
    const int32_t *off = s->off;
    int64_t stride = s->nentries;
    int n = 1;
    ret[0] = ret_to[0] = 0;
    for (int d = 0; d < s->ndims; off += 2 * s->size[d++]) {
        int size = s->size[d];
        const int32_t *own = of_b ? off + size : off;
        stride /= size;
        if (size == 1 || topt_step_sees_none(own, size))
            continue;
        for (int i = n - 1; i >= 0; i--) {
            int32_t at = ret[i], to = ret_to[i];
            for (int v = size - 1; v >= 0; v--) {
                ret[i * size + v] = at + own[v];
                ret_to[i * size + v] = to + (int32_t)(v * stride);
            }
        }
        n *= size;
    }
    return n;
}

/* Offsets that dimensions of one value have in a factor. */
static int64_t fixed_offset(const struct step *s, int of_b)
{
    const int32_t *off = s->off;
    int64_t sum = 0;
    for (int d = 0; d < s->ndims; off += 2 * s->size[d++])
        sum += s->size[d] == 1 ? off[of_b] : 0;
    return sum;
}

static struct side side_of(const struct step *s, int of_b, int32_t *room, int64_t n)
{
    const struct table *t = of_b ? s->b : s->a;
    list_values(s, of_b, room, room + n);
    return (struct side){.t = t,
                         .first = t->first_entry + fixed_offset(s, of_b),
                         .row = room,
                         .column = of_b ? s->kb : s->ka,
                         .to = room + n,
                         .n = (int)n,
                         .nk = s->kfirst[1]};
}

/* 'room' is for two numbers of each x and y; what is behind them is free. */
static void sides_of(const struct step *s, double **room, struct side *a, struct side *b)
{
    int64_t nx, ny;
    topt_step_count_values(s, &nx, &ny);
    int32_t *x = (int32_t *)*room;
    *room += nx + ny;
    *a = side_of(s, 0, x, nx);
    *b = side_of(s, 1, x + 2 * nx, ny);
}

/* ---- tiles ------------------------------------------------------------------------- */

static void tile(const double *a, const double *b, int nk, double *ret)
{
    double least[ROWS][COLUMNS];
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < COLUMNS; i++)
            least[r][i] = TOPT_FLAT_NOTHING;
    for (int k = 0; k < nk; k++, a += ROWS, b += COLUMNS)
        for (int r = 0; r < ROWS; r++)
            for (int i = 0; i < COLUMNS; i++) {
                double w = a[r] + b[i];
                least[r][i] = w < least[r][i] ? w : least[r][i];
            }
    memcpy(ret, least, sizeof least);
}

#ifdef WIDEST
/* The product with vectors of so many numbers, two of each row at a time. */
#define TILE(name, attribute, vector, width, operation)                                  \
    attribute static void name(const double *a, const double *b, int nk, double *ret)    \
    {                                                                                    \
        for (int y = 0; y < COLUMNS; y += 2 * width) {                                   \
            vector least[ROWS][2];                                                       \
            for (int r = 0; r < ROWS; r++)                                               \
                least[r][0] = least[r][1] = operation(set1)(TOPT_FLAT_NOTHING);          \
            for (int k = 0; k < nk; k++) {                                               \
                const double *at = b + k * COLUMNS + y;                                  \
                vector b0 = operation(loadu)(at), b1 = operation(loadu)(at + width);     \
                for (int r = 0; r < ROWS; r++) {                                         \
                    vector w = operation(set1)(a[k * ROWS + r]);                         \
                    least[r][0] = operation(min)(least[r][0], operation(add)(w, b0));    \
                    least[r][1] = operation(min)(least[r][1], operation(add)(w, b1));    \
                }                                                                        \
            }                                                                            \
            for (int r = 0; r < ROWS; r++) {                                             \
                operation(storeu)(ret + r * COLUMNS + y, least[r][0]);                   \
                operation(storeu)(ret + r * COLUMNS + y + width, least[r][1]);           \
            }                                                                            \
        }                                                                                \
    }
#define OF_4(what) _mm256_##what##_pd
#define OF_8(what) _mm512_##what##_pd
TILE(tile_wide, WIDE, __m256d, 4, OF_4)
TILE(tile_widest, WIDEST, __m512d, 8, OF_8)
#endif

int topt_min_plus_tiles(topt_tile_fn *ret[TOPT_TILES])
{
    int n = 0;
    ret[n++] = tile;
#ifdef WIDEST
    if (HAS_WIDE)
        ret[n++] = tile_wide;
    if (HAS_WIDEST)
        ret[n++] = tile_widest;
#endif
    return n;
}

/* ---- rows -------------------------------------------------------------------------- */

/* ret[i] = least of ret[i] and a + b[i] */
#define LOWER(name, attribute)                                                           \
    attribute static void name(double *restrict ret, const double *restrict b, double a, \
                               int n)                                                    \
    {                                                                                    \
        for (int i = 0; i < n; i++) {                                                    \
            double w = a + b[i];                                                         \
            ret[i] = w < ret[i] ? w : ret[i];                                            \
        }                                                                                \
    }
LOWER(lower, )
LOWER(lower_wide, WIDE)

/* ---- written out ------------------------------------------------------------------- */

static double flat(const struct table *t, int64_t entry, const struct scalar_pass *b)
{
    int64_t w =
        t->weighed ? b->least[entry] : topt_weight(b, t->cost[entry - t->first_entry]);
    return w < TOPT_NOTHING ? (double)w : TOPT_FLAT_NOTHING;
}

/* A factor in panels of so many rows, k after k; the last panel is filled up with
 * nothing. */
static void write_panels(const struct side *of, const struct scalar_pass *b, int width,
                         double *ret)
{
    for (int first = 0; first < of->n; first += width)
        for (int k = 0; k < of->nk; k++)
            for (int i = first; i < first + width; i++)
                *ret++ = i < of->n
                             ? flat(of->t, of->first + of->row[i] + of->column[k], b)
                             : TOPT_FLAT_NOTHING;
}

/* A tile of the result that begins at row x and column y. */
static void keep_least(const struct side *a, const struct side *b, const double *tile,
                       int x, int y, int64_t *least)
{
    for (int r = 0; r < ROWS && x + r < a->n; r++)
        for (int i = 0; i < COLUMNS && y + i < b->n; i++) {
            double w = tile[r * COLUMNS + i];
            least[a->to[x + r] + b->to[y + i]] =
                w < TOPT_FLAT_NOTHING ? (int64_t)w : TOPT_NOTHING;
        }
}

void topt_min_plus_least(const struct table *t, struct scalar_pass *b)
{
    topt_tile_fn *tiles[TOPT_TILES], *of_tile = tiles[topt_min_plus_tiles(tiles) - 1];
    double least[ROWS * COLUMNS], *pa = b->room, *pb;
    struct side x, y;
    sides_of(&t->how, &pa, &x, &y);
    pb = pa + (size_t)(x.n + ROWS - 1) / ROWS * ROWS * (size_t)x.nk;
    write_panels(&x, b, ROWS, pa);
    write_panels(&y, b, COLUMNS, pb);
    for (int j = 0; j < y.n; j += COLUMNS)
        for (int i = 0; i < x.n; i += ROWS) {
            of_tile(pa + (size_t)i * (size_t)x.nk, pb + (size_t)j * (size_t)x.nk, x.nk,
                    least);
            keep_least(&x, &y, least, i, j, b->least + t->first_entry);
        }
}

/* ---- what is left ------------------------------------------------------------------ */

/* A factor row by row, and what is left of its entries.  Only the rows of entries that are
 * wanted are written. */
struct rows {
    struct side side;
    double *at, *rest;
    char *wanted;
    int asked; /* is what is left of it? */
};

/* Marks the rows of the entries within the allowance. */
static void mark_wanted(const struct table *t, const struct scalar_pass *b,
                        const struct rows *of_x, const struct rows *of_y)
{
    const struct side *a = &of_x->side, *m = &of_y->side;
    memset(of_x->wanted, 0, (size_t)a->n);
    memset(of_y->wanted, 0, (size_t)m->n);
    for (int x = 0; x < a->n; x++)
        for (int y = 0; y < m->n; y++) {
            int64_t e = t->first_entry + a->to[x] + m->to[y];
            if (b->least[e] + b->rest[e] <= b->allowance)
                of_x->wanted[x] = of_y->wanted[y] = 1;
        }
}

static void write_wanted(const struct rows *r, const struct scalar_pass *b)
{
    const struct side *s = &r->side;
    for (int i = 0; i < s->n; i++)
        for (size_t k = 0; r->wanted[i] && k < (size_t)s->nk; k++) {
            size_t at = (size_t)i * (size_t)s->nk + k;
            r->at[at] = flat(s->t, s->first + s->row[i] + s->column[k], b);
            r->rest[at] = TOPT_FLAT_NOTHING;
        }
}

static void lower_rests(const struct rows *r, int64_t *rest)
{
    const struct side *s = &r->side;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; r->wanted[i] && k < s->nk; k++) {
            double w = r->rest[(size_t)i * (size_t)s->nk + (size_t)k];
            int64_t *at = &rest[s->first + s->row[i] + s->column[k]];
            *at = w < (double)*at ? (int64_t)w : *at;
        }
}

/* The wanted entries one by one, each a row of both factors. */
static void rest_by_rows(const struct table *t, const struct scalar_pass *b,
                         const struct rows *a, const struct rows *m)
{
    const struct side *of_x = &a->side, *of_y = &m->side;
    int wide = HAS_WIDE, nk = of_x->nk;
    for (int x = 0; x < of_x->n; x++)
        for (int y = 0; a->wanted[x] && y < of_y->n; y++) {
            int64_t e = t->first_entry + of_x->to[x] + of_y->to[y], r = b->rest[e];
            if (b->least[e] + r > b->allowance)
                continue;
            size_t i = (size_t)x * (size_t)nk, j = (size_t)y * (size_t)nk;
            if (a->asked)
                (wide ? lower_wide : lower)(a->rest + i, m->at + j, (double)r, nk);
            if (m->asked)
                (wide ? lower_wide : lower)(m->rest + j, a->at + i, (double)r, nk);
        }
}

void topt_min_plus_rest(const struct table *t, struct scalar_pass *b, int for_a,
                        int for_b)
{
    double *room = b->room;
    struct rows x = {.asked = for_a}, y = {.asked = for_b};
    sides_of(&t->how, &room, &x.side, &y.side);
    size_t na = (size_t)x.side.n * (size_t)x.side.nk;
    size_t nb = (size_t)y.side.n * (size_t)y.side.nk;
    x.at = room;
    x.rest = x.at + na;
    y.at = x.rest + na;
    y.rest = y.at + nb;
    x.wanted = (char *)(y.rest + nb);
    y.wanted = x.wanted + x.side.n;
    mark_wanted(t, b, &x, &y);
    write_wanted(&x, b);
    write_wanted(&y, b);
    rest_by_rows(t, b, &x, &y);
    if (for_a)
        lower_rests(&x, b->rest);
    if (for_b)
        lower_rests(&y, b->rest);
}
