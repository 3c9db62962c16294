/* foresee.c - what need not be made of a product, from a few of its points and what swaps at its ends cost.
 *
 * Of a table that is thinned (thin.c) a part in fifty may be left.  What would go is mostly so much worse than what
 * outdoes it that a few points of every entry tell: the lightest by some weighings, which are found without
 * merging anything.
 *
 *     entry (x, w)  o           its points by weighings (o); with what the swap of y for w costs at most outside,
 *                      o        they are ahead of all points of entry (x, y) that are heavier and slower.  So they
 *     entry (x, y)   . . o .    stand in (x, y)'s merge from the start, and are not put out.
 *
 * At either end of an entry there are hundreds of swaps.  Of each weighing that one is taken whose points are the
 * lightest with its costs.  Nothing is lost: what is left out is slower than a strategy of the problem,
 * and no lighter. */
#include "foresee.h"

#include "make.h"
#include "swap.h"
#include "wide.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Time counts for so much more than memory, relative to the ranges of both. */
static const double tilt[TOPT_WEIGHINGS] = {1.0 / 8, 1, 8};

static float weigh(const struct foresight *f, int s, struct topt_cost c)
{
    return (float)(f->memory[s] * (double)c.memory + f->time[s] * (double)c.time);
}

static uint32_t lightest(const struct foresight *f, int s, struct run r)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < r.n; i++)
        if (weigh(f, s, r.cost[i]) < weigh(f, s, r.cost[best]))
            best = i;
    return best;
}

/* ---- weighings ----------------------------------------------------------------------------------- */

/* What points of one entry differ by, all in all. */
static void add_widths(const struct rows *r, const struct operand *o, int n,
                       double *memory, double *time)
{
    for (int x = 0; x < n; x++)
        for (int k = 0; k < r->nk; k++) {
            struct run run = topt_rows_entry(r, o, x, k);
            if (run.n < 2)
                continue;
            *memory += (double)(run.cost[run.n - 1].memory - run.cost[0].memory);
            *time += (double)(run.cost[0].time - run.cost[run.n - 1].time);
        }
}

static void choose_weighings(struct foresight *f)
{
    double memory = 1, time = 1;
    add_widths(f->rows, &f->rows->row, f->rows->nrows, &memory, &time);
    add_widths(f->rows, &f->rows->other, f->rows->ny, &memory, &time);
    for (int s = 0; s < TOPT_WEIGHINGS; s++) {
        f->memory[s] = 1 / memory;
        f->time[s] = tilt[s] / time;
    }
}

/* ---- points -------------------------------------------------------------------------------------- */

/* Where the row's lightest point of an entry comes from. */
struct source {
    float weight;
    int32_t k;
};

static void find_sources(const struct foresight *f, int s, int x, struct source *best)
{
    const struct rows *r = f->rows;
    for (int y = 0; y < r->ny; y++)
        best[y] = (struct source){INFINITY, -1};
    for (int k = 0; k < r->nk; k++) {
        struct run run = topt_rows_entry(r, &r->row, x, k);
        if (!run.n)
            continue;
        float own = weigh(f, s, run.cost[lightest(f, s, run)]);
        for (int32_t i = r->y_first[k]; i < r->y_first[k + 1]; i++)
            if (own + f->other[s][i] < best[r->y[i]].weight)
                best[r->y[i]] = (struct source){own + f->other[s][i], k};
    }
}

/* The next point of an entry, by a weighing where memory counts less than by the last one's. */
static void add_seed(struct seeds *seeds, struct topt_cost c)
{
    if (seeds->n && c.time >= seeds->cost[seeds->n - 1].time)
        return;
    while (seeds->n && c.memory <= seeds->cost[seeds->n - 1].memory)
        seeds->n--;
    seeds->cost[seeds->n++] = c;
}

static int add_cost(struct topt_cost *sum, struct topt_cost c)
{
    return add_overflows(sum->memory, c.memory, &sum->memory) ||
           add_overflows(sum->time, c.time, &sum->time);
}

static void find_point(struct foresight *f, int s, int x, int y, int k)
{
    const struct rows *r = f->rows;
    const struct beside *b = &f->around->beside;
    int64_t e = (int64_t)x * r->ny + y;
    struct run part[2] = {topt_rows_entry(r, &r->row, x, k),
                          topt_rows_entry(r, &r->other, y, k)};
    struct topt_cost sum = part[0].cost[lightest(f, s, part[0])];
    int over = add_cost(&sum, part[1].cost[lightest(f, s, part[1])]);
    if (b->table) {
        struct run run = topt_beside_entry(r->maker, b, x, y);
        if (!run.n)
            return;
        over = over || add_cost(&sum, run.cost[lightest(f, s, run)]);
    }
    if (over || sum.memory > TOPT_SWAP_MOST || sum.time > TOPT_SWAP_MOST)
        return;
    f->least[s][e] = weigh(f, s, sum);
    add_seed(&f->seeds[e], sum);
}

static void find_row(struct foresight *f, int x, struct source *best)
{
    const struct rows *r = f->rows;
    for (int y = 0; y < r->ny; y++)
        f->seeds[(int64_t)x * r->ny + y].n = 0;
    for (int s = 0; s < TOPT_WEIGHINGS; s++) {
        find_sources(f, s, x, best);
        for (int y = 0; y < r->ny; y++) {
            f->least[s][(int64_t)x * r->ny + y] = INFINITY;
            if (best[y].k >= 0)
                find_point(f, s, x, y, best[y].k);
        }
    }
}

static void find_rows(void *ctx, int worker)
{
    struct foresight *f = ctx;
    struct source *best = malloc(((size_t)f->rows->ny + 1) * sizeof *best);
    (void)worker;
    if (!best)
        f->failed = 1;
    for (int x; !f->failed && (x = f->next++) < f->rows->nrows;)
        find_row(f, x, best);
    free(best);
}

static int weigh_other(struct foresight *f)
{
    const struct rows *r = f->rows;
    for (int s = 0; s < TOPT_WEIGHINGS; s++) {
        f->other[s] = malloc(((size_t)r->y_first[r->nk] + 1) * sizeof *f->other[s]);
        for (int k = 0; f->other[s] && k < r->nk; k++)
            for (int32_t i = r->y_first[k]; i < r->y_first[k + 1]; i++) {
                struct run run = topt_rows_entry(r, &r->other, r->y[i], k);
                f->other[s][i] = weigh(f, s, run.cost[lightest(f, s, run)]);
            }
        if (!f->other[s])
            return -1;
    }
    return 0;
}

/* ---- swaps --------------------------------------------------------------------------------------- */

static int weigh_swaps(struct foresight *f, int end)
{
    size_t n = (size_t)(end ? f->rows->ny : f->rows->nrows);
    const struct topt_cost *swap = f->around->swap[end];
    for (int s = 0; s < TOPT_WEIGHINGS && swap; s++) {
        float *to = f->swap[end][s] = malloc((n * n + 1) * sizeof *to);
        if (!to)
            return -1;
        for (size_t v = 0; v < n; v++)
            for (size_t w = 0; w < n; w++) {
                struct topt_cost c = swap[v * n + w];
                int never = c.memory > TOPT_SWAP_MOST || c.time > TOPT_SWAP_MOST;
                to[end ? w * n + v : v * n + w] = never ? INFINITY : weigh(f, s, c);
            }
    }
    return 0;
}

/* Where 'add' more than each of a row is lighter than the best so far, 'by' is. */
typedef void relax_fn(const float *row, float add, int32_t by, int n, float *best,
                      int32_t *ret_by);

#define RELAX(name, attribute)                                                           \
    attribute static void name(const float *row, float add, int32_t by, int n,           \
                               float *best, int32_t *ret_by)                             \
    {                                                                                    \
        for (int y = 0; y < n; y++) {                                                    \
            float weight = row[y] + add;                                                 \
            int lighter = weight < best[y];                                              \
            best[y] = lighter ? weight : best[y];                                        \
            ret_by[y] = lighter ? by : ret_by[y];                                        \
        }                                                                                \
    }
RELAX(relax_plain, )
#ifdef WIDE
RELAX(relax_wide, WIDE)
#endif

static relax_fn *find_relax(void)
{
#ifdef WIDE
    if (HAS_WIDE)
        return relax_wide;
#endif
    return relax_plain;
}

static void look_at_end(const struct foresight *f, struct foreseen *s, int end, int i)
{
    relax_fn *relax = find_relax();
    int n = end ? f->rows->ny : f->rows->nrows, ny = f->rows->ny;
    for (int y = 0; y < ny; y++) {
        s->best[y] = INFINITY;
        s->by[end][i][y] = -1;
    }
    for (int w = 0; w < n && f->swap[end][i]; w++) {
        const float *least = &f->least[i][end ? (int64_t)s->x * ny : (int64_t)w * ny];
        float add = end ? least[w] : f->swap[0][i][(int64_t)s->x * n + w];
        if (add < INFINITY)
            relax(end ? &f->swap[1][i][(int64_t)w * n] : least, add, w, ny, s->best,
                  s->by[end][i]);
    }
}

void topt_foresee_row(const struct foresight *f, struct foreseen *s, int x)
{
    s->x = x;
    for (int end = 0; end < 2; end++)
        for (int i = 0; i < TOPT_WEIGHINGS; i++)
            look_at_end(f, s, end, i);
}

/* ---- one entry ----------------------------------------------------------------------------------- */

/* The least of what stands beside an entry. */
static struct topt_cost least_beside(const struct foresight *f, int x, int y)
{
    struct topt_cost none = {0, 0};
    if (!f->around->beside.table)
        return none;
    struct run r = topt_beside_entry(f->rows->maker, &f->around->beside, x, y);
    return r.n ? (struct topt_cost){r.cost[0].memory, r.cost[r.n - 1].time} : none;
}

/* Let an entry be merged against the points of another, which class 'by' of an end has in its stead.  Where it is as
 * fast with these it stays: of two that cost the same each would be left out for the other's sake. */
static int against(const struct foresight *f, int x, int y, int end, int32_t by,
                   struct topt_cost less, struct merge *m)
{
    int64_t nx = f->rows->nrows, ny = f->rows->ny;
    const struct seeds *seeds = &f->seeds[end ? x * ny + by : by * ny + y];
    struct topt_cost loss = f->around->swap[end][end ? y * ny + by : x * nx + by];
    struct run run = {.cost = seeds->cost, .n = seeds->n};
    loss.memory -= less.memory;
    loss.time -= less.time;
    loss.time++;
    return topt_merge_against(m, run, loss);
}

int topt_foresee_entry(const struct foresight *f, const struct foreseen *s, int y,
                       struct merge *m)
{
    struct topt_cost less = least_beside(f, s->x, y);
    if (less.memory > TOPT_SWAP_MOST || less.time > TOPT_SWAP_MOST)
        return 0;
    for (int end = 0; end < 2; end++)
        for (int i = 0; i < TOPT_WEIGHINGS; i++) {
            int32_t by = s->by[end][i][y];
            if (by >= 0 && (!i || by != s->by[end][i - 1][y]) &&
                against(f, s->x, y, end, by, less, m))
                return -1;
        }
    return 0;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

int topt_foreseen_init(struct foreseen *s, int ny)
{
    size_t n = (size_t)ny + 1;
    *s = (struct foreseen){.best = malloc(n * sizeof *s->best)};
    int rc = s->best ? 0 : -1;
    for (int end = 0; end < 2; end++)
        for (int i = 0; i < TOPT_WEIGHINGS; i++)
            if (!(s->by[end][i] = malloc(n * sizeof *s->by[end][i])))
                rc = -1;
    return rc;
}

void topt_foreseen_fini(struct foreseen *s)
{
    free(s->best);
    for (int end = 0; end < 2; end++)
        for (int i = 0; i < TOPT_WEIGHINGS; i++)
            free(s->by[end][i]);
    *s = (struct foreseen){.x = 0};
}

int topt_foresee(struct foresight *f, const struct rows *r,
                 const struct surroundings *around, struct topt_pool *pool)
{
    size_t entries = (size_t)r->nrows * (size_t)r->ny;
    *f = (struct foresight){.rows = r, .around = around};
    f->seeds = malloc((entries + 1) * sizeof *f->seeds);
    int rc = f->seeds ? 0 : -1;
    for (int s = 0; s < TOPT_WEIGHINGS; s++)
        if (!(f->least[s] = malloc((entries + 1) * sizeof *f->least[s])))
            rc = -1;
    if (rc)
        return -1;
    choose_weighings(f);
    if (weigh_other(f) || weigh_swaps(f, 0) || weigh_swaps(f, 1))
        return -1;
    if (pool)
        topt_pool_run(pool, find_rows, f);
    else
        find_rows(f, 0);
    return f->failed ? -1 : 0;
}

void topt_foresight_fini(struct foresight *f)
{
    free(f->seeds);
    for (int s = 0; s < TOPT_WEIGHINGS; s++) {
        free(f->least[s]);
        free(f->other[s]);
        free(f->swap[0][s]);
        free(f->swap[1][s]);
    }
    *f = (struct foresight){.rows = NULL};
}
