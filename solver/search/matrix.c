/* matrix.c - a matrix times a matrix, in the algebra of least and plus.
 *
 * Within a layer most of the work is to eliminate the operator in the middle: A is over x and k, B is over k
 * and y, and an entry (x, y) is the least of A[x, k] + B[k, y] over all k.  Both are written out as
 * doubles first, row by row, so that a processor adds and compares several at a time:
 *
 *     least     row x of the result = least over k of  A[x, k] + row k of B
 *     rest      row x of A's gets from every entry (x, y) that is wanted  rest + row y of B, turned;
 *               and row y of B's, turned, gets  rest + row x of A
 *
 * Weights of what is wanted are below 2^53, which doubles add exactly; what is heavier may be rounded, but
 * never to less than that. */
#include "matrix.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define WIDE     __attribute__((target("avx2")))
#define HAS_WIDE __builtin_cpu_supports("avx2")
#else
#define WIDE
#define HAS_WIDE 0
#endif

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
    return 2 * (int64_t)(p.nx + p.ny) * p.nk + p.ny;
}

/* ---- rows ------------------------------------------------------------------------------------- */

#define LOWER(name, attribute)                                                           \
    attribute static void name(double *restrict ret, const double *restrict b, double a, \
                               int n)                                                    \
    {                                                                                    \
        for (int i = 0; i < n; i++) {                                                    \
            double w = a + b[i];                                                         \
            ret[i] = w < ret[i] ? w : ret[i];                                            \
        }                                                                                \
    }                                                                                    \
    attribute static void name##_4(double *restrict ret, const double *restrict b,       \
                                   const double *a, int n)                               \
    {                                                                                    \
        const double *b1 = b + n, *b2 = b1 + n, *b3 = b2 + n;                            \
        double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];                               \
        for (int i = 0; i < n; i++) {                                                    \
            double w = a0 + b[i], x = a1 + b1[i], y = a2 + b2[i], z = a3 + b3[i];        \
            w = x < w ? x : w;                                                           \
            y = z < y ? z : y;                                                           \
            w = y < w ? y : w;                                                           \
            ret[i] = w < ret[i] ? w : ret[i];                                            \
        }                                                                                \
    }
LOWER(lower, )
LOWER(lower_wide, WIDE)

/* ret[i] = least of ret[i] and all a[k] + b[k][i] */
static void lower_all(double *ret, const double *b, const double *a, int nk, int n)
{
    int wide = HAS_WIDE, k = 0;
    for (; k + 4 <= nk; k += 4)
        (wide ? lower_wide_4 : lower_4)(ret, b + (size_t)k * (size_t)n, a + k, n);
    for (; k < nk; k++)
        (wide ? lower_wide : lower)(ret, b + (size_t)k * (size_t)n, a[k], n);
}

/* ---- written out ------------------------------------------------------------------------------- */

static double flat(const struct table *t, int64_t entry, const struct bound *b)
{
    int64_t w =
        t->weighed ? b->least[entry] : topt_weigh(b, t->cost[entry - t->first_entry]);
    return w < TOPT_NOTHING ? (double)w : TOPT_FLAT_NOTHING;
}

/* Row i has what 'rows' offsets name, column k what 'columns' do. */
static void write_out(const struct table *t, const struct bound *b, const int32_t *rows,
                      int n, const int32_t *columns, int m, double *ret)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++)
            *ret++ = flat(t, t->first_entry + rows[i] + columns[k], b);
}

static void fill(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = TOPT_FLAT_NOTHING;
}

void topt_matrix_least(const struct table *t, struct bound *b)
{
    struct matrices p = matrices_of(&t->how);
    double *a = b->room, *m = a + (size_t)p.nx * (size_t)p.nk,
           *row = m + (size_t)p.nk * (size_t)p.ny;
    write_out(t->how.a, b, p.x, p.nx, p.a, p.nk, a);
    write_out(t->how.b, b, p.b, p.nk, p.y, p.ny, m);
    for (int x = 0; x < p.nx; x++, a += p.nk) {
        int64_t *ret = b->least + t->first_entry + x * p.to_x;
        fill(row, (size_t)p.ny);
        lower_all(row, m, a, p.nk, p.ny);
        for (int y = 0; y < p.ny; y++)
            ret[y * p.to_y] = row[y] < TOPT_FLAT_NOTHING ? (int64_t)row[y] : TOPT_NOTHING;
    }
}

/* ---- what is left ------------------------------------------------------------------------------ */

static void lower_rest(int64_t *rest, const int32_t *rows, int n, const int32_t *columns,
                       int m, const double *by)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < m; k++, by++) {
            int64_t *at = &rest[rows[i] + columns[k]];
            if (*by < (double)*at)
                *at = (int64_t)*by;
        }
}

void topt_matrix_rest(const struct table *t, struct bound *b, int for_a, int for_b)
{
    struct matrices p = matrices_of(&t->how);
    size_t na = (size_t)p.nx * (size_t)p.nk, nb = (size_t)p.ny * (size_t)p.nk;
    double *a = b->room, *m = a + na, *rest_a = m + nb, *rest_b = rest_a + na;
    int wide = HAS_WIDE;
    write_out(t->how.a, b, p.x, p.nx, p.a, p.nk, a);
    write_out(t->how.b, b, p.y, p.ny, p.b, p.nk, m);
    fill(rest_a, na + nb);
    for (int x = 0; x < p.nx; x++)
        for (int y = 0; y < p.ny; y++) {
            int64_t e = t->first_entry + x * p.to_x + y * p.to_y, r = b->rest[e];
            if (b->least[e] + r > b->allowance)
                continue;
            size_t i = (size_t)x * (size_t)p.nk, j = (size_t)y * (size_t)p.nk;
            if (for_a)
                (wide ? lower_wide : lower)(rest_a + i, m + j, (double)r, p.nk);
            if (for_b)
                (wide ? lower_wide : lower)(rest_b + j, a + i, (double)r, p.nk);
        }
    if (for_a)
        lower_rest(b->rest + p.ea, p.x, p.nx, p.a, p.nk, rest_a);
    if (for_b)
        lower_rest(b->rest + p.eb, p.y, p.ny, p.b, p.nk, rest_b);
}
