/* matrix.c - a matrix times a matrix, in the algebra of least and plus.
 *
 * Within a layer most of the work is to eliminate the operator in the middle: A is over x and k, B is over k
 * and y, and an entry (x, y) is the least of A[x, k] + B[k, y] over all k.  Both are written out as
 * doubles first, so that a processor adds and compares several at a time:
 *
 *     least     a tile of 4 x 16 entries at a time, which stay in registers while k goes through a panel of
 *               4 rows of A and one of 16 columns of B.  Both stand as they are read, k after k, so that a
 *               pair costs an addition and a comparison and hardly any reading (the blocking of
 *               products of matrices: Goto and van de Geijn, Anatomy of High-Performance Matrix
 *               Multiplication, 2008)
 *     rest      row x of A's gets from every entry (x, y) that is wanted  rest + row y of B, turned;
 *               and row y of B's, turned, gets  rest + row x of A
 *
 * Weights of what is wanted are below 2^53, which doubles add exactly; what is heavier may be rounded, but
 * never to less than that. */
#include "matrix.h"

#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define WIDE       __attribute__((target("avx2")))
#define WIDEST     __attribute__((target("avx512f")))
#define HAS_WIDE   __builtin_cpu_supports("avx2")
#define HAS_WIDEST __builtin_cpu_supports("avx512f")
#else
#define WIDE
#define HAS_WIDE 0
#endif

enum { ROWS = 4, COLUMNS = 16 }; /* of a tile */

enum {
    DIRECT = 1,
    TURNED = 2
}; /* x, which A tells apart, is the first dimension, or the second */

static int none(const int32_t *off, int n)
{
    for (int i = 0; i < n; i++)
        if (off[i])
            return 0;
    return 1;
}

void topt_matrix_find(struct step *s)
{
    s->matrix = 0;
    /* Of a table without entries nothing says who tells its dimensions apart. */
    if (s->ndims != 2 || s->ngroups != 1 || !s->b || s->kfirst[1] < 2 || !s->nentries)
        return;
    int n = s->size[0], m = s->size[1];
    const int32_t *a0 = s->off, *b0 = a0 + n, *a1 = b0 + n, *b1 = a1 + m;
    if (none(b0, n) && none(a1, m))
        s->matrix = DIRECT;
    else if (none(a0, n) && none(b1, m))
        s->matrix = TURNED;
}

/* A step's numbers as those of a product. */
struct matrices {
    int nx, ny, nk;
    int64_t ea, eb, to_x,
        to_y; /* first entries; from an entry of the result to the next */
    const int32_t *x, *y, *a, *b; /* offsets */
};

static struct matrices matrices_of(const struct step *s)
{
    int n = s->size[0], m = s->size[1];
    struct matrices p = {.nx = n,
                         .ny = m,
                         .nk = s->kfirst[1],
                         .ea = s->a->first_entry,
                         .eb = s->b->first_entry,
                         .to_x = m,
                         .to_y = 1,
                         .x = s->off,
                         .y = s->off + 2 * n + m,
                         .a = s->ka,
                         .b = s->kb};
    if (s->matrix == TURNED) {
        p.nx = m;
        p.ny = n;
        p.to_x = 1;
        p.to_y = m;
        p.x = s->off + 2 * n;
        p.y = s->off + n;
    }
    return p;
}

int64_t topt_matrix_room(const struct step *s)
{
    struct matrices p = matrices_of(s);
    int64_t rows = (int64_t)p.nx + p.ny;
    return 2 * (rows + ROWS + COLUMNS) * p.nk + rows / (int64_t)sizeof(double) + 1;
}

/* ---- tiles ------------------------------------------------------------------------------------ */

/* ret[row][column] = least over k of  a[k][row] + b[k][column] */
typedef void tile_fn(const double *a, const double *b, int nk, double *ret);

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
/* The same with vectors of so many numbers, two of each row at a time. */
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

static tile_fn *best_tile(void)
{
    return HAS_WIDEST ? tile_widest : HAS_WIDE ? tile_wide : tile;
}
#else
static tile_fn *best_tile(void)
{
    return tile;
}
#endif

/* ---- rows ------------------------------------------------------------------------------------- */

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

/* ---- written out ------------------------------------------------------------------------------- */

static double flat(const struct table *t, int64_t entry, const struct bound *b)
{
    int64_t w =
        t->weighed ? b->least[entry] : topt_weigh(b, t->cost[entry - t->first_entry]);
    return w < TOPT_NOTHING ? (double)w : TOPT_FLAT_NOTHING;
}

/* In panels of so many columns, the last of which is filled up with nothing: row after row of each. */
static void write_panels(const struct table *t, const struct bound *b,
                         const int32_t *rows, int n, const int32_t *columns, int m,
                         int width, double *ret)
{
    for (int first = 0; first < m; first += width)
        for (int i = 0; i < n; i++)
            for (int k = first; k < first + width; k++)
                *ret++ = k < m ? flat(t, t->first_entry + rows[i] + columns[k], b)
                               : TOPT_FLAT_NOTHING;
}

/* Entries of a tile, as far as there are rows and columns. */
static void keep_tile(const struct matrices *p, const double *least, int x, int y,
                      int64_t *ret)
{
    for (int r = 0; r < ROWS && x + r < p->nx; r++)
        for (int i = 0; i < COLUMNS && y + i < p->ny; i++) {
            double w = least[r * COLUMNS + i];
            ret[(x + r) * p->to_x + (y + i) * p->to_y] =
                w < TOPT_FLAT_NOTHING ? (int64_t)w : TOPT_NOTHING;
        }
}

void topt_matrix_least(const struct table *t, struct bound *b)
{
    struct matrices p = matrices_of(&t->how);
    int64_t *ret = b->least + t->first_entry;
    size_t nk = (size_t)p.nk, nx = (size_t)(p.nx + ROWS - 1) / ROWS * ROWS;
    double *a = b->room, *m = a + nx * nk, least[ROWS * COLUMNS];
    tile_fn *of_tile = best_tile();
    write_panels(t->how.a, b, p.a, p.nk, p.x, p.nx, ROWS, a);
    write_panels(t->how.b, b, p.b, p.nk, p.y, p.ny, COLUMNS, m);
    for (int y = 0; y < p.ny; y += COLUMNS)
        for (int x = 0; x < p.nx; x += ROWS) {
            of_tile(a + (size_t)x * nk, m + (size_t)y * nk, p.nk, least);
            keep_tile(&p, least, x, y, ret);
        }
}

/* ---- what is left ------------------------------------------------------------------------------ */

/* A factor row by row of what the other does not tell apart, and what is left of its entries.  Only the
 * rows of entries that are wanted are written. */
struct rows {
    const struct table *t;
    const int32_t *row, *column; /* offsets */
    int n, nk;
    double *at, *rest;
    char *wanted;
};

/* Marks the rows of the entries within the allowance. */
static void mark_wanted(const struct table *t, const struct bound *b,
                        const struct matrices *p, char *of_x, char *of_y)
{
    memset(of_x, 0, (size_t)p->nx);
    memset(of_y, 0, (size_t)p->ny);
    for (int x = 0; x < p->nx; x++)
        for (int y = 0; y < p->ny; y++) {
            int64_t e = t->first_entry + x * p->to_x + y * p->to_y;
            if (b->least[e] + b->rest[e] <= b->allowance)
                of_x[x] = of_y[y] = 1;
        }
}

static void write_wanted(const struct rows *r, const struct bound *b)
{
    for (int i = 0; i < r->n; i++)
        for (size_t k = 0; r->wanted[i] && k < (size_t)r->nk; k++) {
            size_t at = (size_t)i * (size_t)r->nk + k;
            r->at[at] = flat(r->t, r->t->first_entry + r->row[i] + r->column[k], b);
            r->rest[at] = TOPT_FLAT_NOTHING;
        }
}

static void lower_rest(const struct rows *r, int64_t *rest)
{
    for (int i = 0; i < r->n; i++)
        for (int k = 0; r->wanted[i] && k < r->nk; k++) {
            int64_t *at = &rest[r->t->first_entry + r->row[i] + r->column[k]];
            double by = r->rest[(size_t)i * (size_t)r->nk + (size_t)k];
            if (by < (double)*at)
                *at = (int64_t)by;
        }
}

void topt_matrix_rest(const struct table *t, struct bound *b, int for_a, int for_b)
{
    struct matrices p = matrices_of(&t->how);
    size_t na = (size_t)p.nx * (size_t)p.nk, nb = (size_t)p.ny * (size_t)p.nk;
    char *wanted = (char *)(b->room + 2 * (na + nb));
    struct rows a = {t->how.a, p.x, p.a, p.nx, p.nk, b->room, b->room + na, wanted};
    struct rows m = {t->how.b,         p.y,          p.b, p.ny, p.nk, a.rest + na,
                     a.rest + na + nb, wanted + p.nx};
    int wide = HAS_WIDE;
    mark_wanted(t, b, &p, a.wanted, m.wanted);
    write_wanted(&a, b);
    write_wanted(&m, b);
    for (int x = 0; x < p.nx; x++)
        for (int y = 0; a.wanted[x] && y < p.ny; y++) {
            int64_t e = t->first_entry + x * p.to_x + y * p.to_y, r = b->rest[e];
            if (b->least[e] + r > b->allowance)
                continue;
            size_t i = (size_t)x * (size_t)p.nk, j = (size_t)y * (size_t)p.nk;
            if (for_a)
                (wide ? lower_wide : lower)(a.rest + i, m.at + j, (double)r, p.nk);
            if (for_b)
                (wide ? lower_wide : lower)(m.rest + j, a.at + i, (double)r, p.nk);
        }
    if (for_a)
        lower_rest(&a, b->rest);
    if (for_b)
        lower_rest(&m, b->rest);
}
