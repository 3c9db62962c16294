/* min_plus.c - a matrix times a matrix, in the algebra of least and plus.
 *
 * Within a layer most of the work is to eliminate the operator in the middle: A is over x
 * and k, B is over k and y, and an entry (x, y) is the least of A[x, k] + B[k, y] over
 * all k; x and y may be several operators each.  Both are written out as doubles first,
 * so that a processor adds and compares several at a time:
 *
 *     least     a tile of 4 x 16 entries at a time, which stay in registers while k goes
 *               through a panel of 4 rows of A and one of 16 columns of B.  Both stand as
 *               they are read, k after k, so that a pair costs an addition and a comparison
 *               and hardly any reading (the blocking of products of matrices: Goto and van
 *               de Geijn, Anatomy of High-Performance Matrix Multiplication, 2008)
 *     rest      row x of A's gets from every entry (x, y) that is wanted  rest + row y of
 *               B, turned; and row y of B's, turned, gets  rest + row x of A.  Where many
 *               are wanted these are products, too
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

static int none(const int32_t *off, int n)
{
    for (int i = 0; i < n; i++)
        if (off[i])
            return 0;
    return 1;
}

/* A step's numbers as those of a product. */
struct matrices {
    int nx, ny, nk;
    int64_t ea, eb;             /* first entries */
    const int32_t *x, *y;       /* offsets in A, and in B */
    const int32_t *to_x, *to_y; /* in the result */
    const int32_t *a, *b;       /* of k */
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
        if (size == 1 || none(own, size))
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

/* 'room' is for two numbers of each x and y; what is behind them is free. */
static struct matrices matrices_of(const struct step *s, double **room)
{
    int64_t nx, ny;
    topt_step_count_values(s, &nx, &ny);
    int32_t *x = (int32_t *)*room, *y = x + 2 * nx;
    *room += nx + ny;
    list_values(s, 0, x, x + nx);
    list_values(s, 1, y, y + ny);
    return (struct matrices){.nx = (int)nx,
                             .ny = (int)ny,
                             .nk = s->kfirst[1],
                             .ea = s->a->first_entry + fixed_offset(s, 0),
                             .eb = s->b->first_entry + fixed_offset(s, 1),
                             .x = x,
                             .y = y,
                             .to_x = x + nx,
                             .to_y = y + ny,
                             .a = s->ka,
                             .b = s->kb};
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

/* In panels of so many columns, the last of which is filled up with nothing: row after
 * row of each. */
static void write_panels(const struct table *t, int64_t first_entry,
                         const struct scalar_pass *b, const int32_t *rows, int n,
                         const int32_t *columns, int m, int width, double *ret)
{
    for (int first = 0; first < m; first += width)
        for (int i = 0; i < n; i++)
            for (int k = first; k < first + width; k++)
                *ret++ = k < m ? flat(t, first_entry + rows[i] + columns[k], b)
                               : TOPT_FLAT_NOTHING;
}

/* ---- products ---------------------------------------------------------------------- */

/* Panels of A, of ROWS each, and of B, of COLUMNS, over the same k. */
struct product {
    int nx, ny, nk;
    const double *a, *b;
};

/* Takes a tile that begins at row x and column y. */
typedef void keep_fn(const void *to, const double *tile, int x, int y);

static void multiply(const struct product *p, keep_fn *keep, const void *to)
{
    double least[ROWS * COLUMNS];
    topt_tile_fn *tiles[TOPT_TILES], *of_tile = tiles[topt_min_plus_tiles(tiles) - 1];
    for (int y = 0; y < p->ny; y += COLUMNS)
        for (int x = 0; x < p->nx; x += ROWS) {
            of_tile(p->a + (size_t)x * (size_t)p->nk, p->b + (size_t)y * (size_t)p->nk,
                    p->nk, least);
            keep(to, least, x, y);
        }
}

/* What panels take: the last is filled up. */
static size_t panels(int64_t n, int width, int64_t nk)
{
    return (size_t)((n + width - 1) / width * width * nk);
}

/* A step's result. */
struct result {
    const struct matrices *p;
    int64_t *least;
};

static void keep_least(const void *to, const double *tile, int x, int y)
{
    const struct result *ret = to;
    const struct matrices *p = ret->p;
    for (int r = 0; r < ROWS && x + r < p->nx; r++)
        for (int i = 0; i < COLUMNS && y + i < p->ny; i++) {
            double w = tile[r * COLUMNS + i];
            ret->least[p->to_x[x + r] + p->to_y[y + i]] =
                w < TOPT_FLAT_NOTHING ? (int64_t)w : TOPT_NOTHING;
        }
}

void topt_min_plus_least(const struct table *t, struct scalar_pass *b)
{
    double *a = b->room;
    struct matrices p = matrices_of(&t->how, &a);
    double *m = a + panels(p.nx, ROWS, p.nk);
    write_panels(t->how.a, p.ea, b, p.a, p.nk, p.x, p.nx, ROWS, a);
    write_panels(t->how.b, p.eb, b, p.b, p.nk, p.y, p.ny, COLUMNS, m);
    multiply(&(struct product){p.nx, p.ny, p.nk, a, m}, keep_least,
             &(struct result){&p, b->least + t->first_entry});
}

/* ---- what is left ------------------------------------------------------------------ */

/* A factor row by row of what the other does not tell apart, and what is left of its
 * entries.  Only the rows of entries that are wanted are written. */
struct rows {
    const struct table *t;
    int64_t first;               /* entry */
    const int32_t *row, *column; /* offsets */
    const int32_t *to;           /* of its rows in the result */
    int n, nk;
    double *at, *rest;
    char *wanted;
    int asked; /* is what is left of it? */
};

/* Marks the rows of the entries within the allowance.  Returns how many these are. */
static int64_t mark_wanted(const struct table *t, const struct scalar_pass *b,
                           const struct matrices *p, char *of_x, char *of_y)
{
    int64_t n = 0;
    memset(of_x, 0, (size_t)p->nx);
    memset(of_y, 0, (size_t)p->ny);
    for (int x = 0; x < p->nx; x++)
        for (int y = 0; y < p->ny; y++) {
            int64_t e = t->first_entry + p->to_x[x] + p->to_y[y];
            if (b->least[e] + b->rest[e] > b->allowance)
                continue;
            of_x[x] = of_y[y] = 1;
            n++;
        }
    return n;
}

static void write_wanted(const struct rows *r, const struct scalar_pass *b)
{
    for (int i = 0; i < r->n; i++)
        for (size_t k = 0; r->wanted[i] && k < (size_t)r->nk; k++) {
            size_t at = (size_t)i * (size_t)r->nk + k;
            r->at[at] = flat(r->t, r->first + r->row[i] + r->column[k], b);
            r->rest[at] = TOPT_FLAT_NOTHING;
        }
}

static void lower_rest(const struct rows *r, int64_t *rest)
{
    for (int i = 0; i < r->n; i++)
        for (int k = 0; r->wanted[i] && k < r->nk; k++) {
            int64_t *at = &rest[r->first + r->row[i] + r->column[k]];
            double by = r->rest[(size_t)i * (size_t)r->nk + (size_t)k];
            if (by < (double)*at)
                *at = (int64_t)by;
        }
}

/* The wanted entries one by one, each a row of both factors. */
static void rest_by_rows(const struct table *t, const struct scalar_pass *b,
                         const struct matrices *p, const struct rows *a,
                         const struct rows *m)
{
    int wide = HAS_WIDE;
    for (int x = 0; x < p->nx; x++)
        for (int y = 0; a->wanted[x] && y < p->ny; y++) {
            int64_t e = t->first_entry + p->to_x[x] + p->to_y[y], r = b->rest[e];
            if (b->least[e] + r > b->allowance)
                continue;
            size_t i = (size_t)x * (size_t)p->nk, j = (size_t)y * (size_t)p->nk;
            if (a->asked)
                (wide ? lower_wide : lower)(a->rest + i, m->at + j, (double)r, p->nk);
            if (m->asked)
                (wide ? lower_wide : lower)(m->rest + j, a->at + i, (double)r, p->nk);
        }
}

/* Where most are wanted they are a matrix, too, and what is left of the factors are
 * products: rest * B turned, and rest turned * A. */
struct remainder {
    const struct rows *of;
    int64_t *rest;
};

static void keep_rest(const void *to, const double *tile, int x, int k)
{
    const struct remainder *ret = to;
    const struct rows *of = ret->of;
    for (int r = 0; r < ROWS && x + r < of->n; r++)
        for (int i = 0; i < COLUMNS && k + i < of->nk; i++) {
            double w = tile[r * COLUMNS + i];
            int64_t *at = &ret->rest[of->first + of->row[x + r] + of->column[k + i]];
            if (w < (double)*at)
                *at = (int64_t)w;
        }
}

/* Panels of the wanted entries' rests, a factor's rows by the other's. */
static void write_rests(const struct table *t, const struct scalar_pass *b,
                        const struct rows *of, const struct rows *by, double *ret)
{
    for (int first = 0; first < of->n; first += ROWS)
        for (int k = 0; k < by->n; k++)
            for (int i = first; i < first + ROWS; i++) {
                int64_t e = t->first_entry + by->to[k] + (i < of->n ? of->to[i] : 0);
                int wanted = i < of->n && b->least[e] + b->rest[e] <= b->allowance;
                *ret++ = wanted ? (double)b->rest[e] : TOPT_FLAT_NOTHING;
            }
}

/* What is left of one factor, 'of', by the other, whose rows are the product's inner
 * dimension. */
static void rest_by_tiles(const struct table *t, struct scalar_pass *b,
                          const struct rows *of, const struct rows *by, double *room)
{
    double *m = room + panels(of->n, ROWS, by->n);
    write_rests(t, b, of, by, room);
    write_panels(by->t, by->first, b, by->row, by->n, by->column, by->nk, COLUMNS, m);
    multiply(&(struct product){of->n, of->nk, by->n, room, m}, keep_rest,
             &(struct remainder){of, b->rest});
}

void topt_min_plus_rest(const struct table *t, struct scalar_pass *b, int for_a,
                        int for_b)
{
    double *room = b->room;
    struct matrices p = matrices_of(&t->how, &room);
    size_t na = (size_t)p.nx * (size_t)p.nk, nb = (size_t)p.ny * (size_t)p.nk;
    struct rows a = {.t = t->how.a,
                     .first = p.ea,
                     .row = p.x,
                     .column = p.a,
                     .to = p.to_x,
                     .n = p.nx,
                     .nk = p.nk,
                     .at = room,
                     .rest = room + na,
                     .wanted = (char *)(room + 2 * (na + nb)),
                     .asked = for_a};
    struct rows m = {.t = t->how.b,
                     .first = p.eb,
                     .row = p.y,
                     .column = p.b,
                     .to = p.to_y,
                     .n = p.ny,
                     .nk = p.nk,
                     .at = a.rest + na,
                     .rest = a.rest + na + nb,
                     .wanted = a.wanted + p.nx,
                     .asked = for_b};
    int64_t n = mark_wanted(t, b, &p, a.wanted, m.wanted);
    if (n > (int64_t)p.nx * p.ny / WANTED_PART) {
        if (for_a)
            rest_by_tiles(t, b, &a, &m, room);
        if (for_b)
            rest_by_tiles(t, b, &m, &a, room);
        return;
    }
    write_wanted(&a, b);
    write_wanted(&m, b);
    rest_by_rows(t, b, &p, &a, &m);
    if (for_a)
        lower_rest(&a, b->rest);
    if (for_b)
        lower_rest(&m, b->rest);
}
