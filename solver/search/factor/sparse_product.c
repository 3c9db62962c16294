/* sparse_product.c - sparse tables multiplied row by row, by threads.
 *
 *     C(x, y)  =  union over k of  A(x, k) x B(k, y)
 *
 * Tables that were thinned have no point in most of their entries.  So a row of C is
 * collected from those A(x, k) that have points, and for each of them from those B(k, y)
 * that have: first which k there are for every y, then entry by entry what is merged.
 * Rows are made a few at a time, each by one thread into an output of its own, and put
 * behind one another in order. */
#include "sparse_product.h"

#include "factor_tuning.h"
#include "table_points.h"
#include "topt_array.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One operand: the table, and its entry (x, k) or (k, y). */
struct operand {
    const struct table *table;
    const int32_t *off; /* by row (or by y) */
    const int32_t *k;   /* by k */
};

/* A product by rows: row x is made of those entries (x, k) of the one operand that have
 * points, and of those (k, y) of the other. */
struct rows {
    const struct maker *maker;
    struct operand row, other;
    int nrows, ny, nk, row_is_a;
    const int32_t *y_first, *y; /* by k: those y that the other has points for */
};

/* A thread's workspace. */
struct worker_rows {
    struct merge merge;
    int32_t *start, *list; /* of every y: numbers k; 'start' of each y */
    int64_t cap_list;
};

/* A row that was made: by which thread, where in its output, and how many points each entry
 * has. */
struct made_row {
    int worker;
    size_t first;
};

struct job {
    struct product *product;
    struct rows rows;
    int from, to; /* rows of this wave */
    atomic_int next, failed;
    struct made_row made[ROWS_AT_ONCE];
    uint32_t *count; /* by row of the wave and y */
};

int topt_sparse_product_init(struct product *p, struct topt_pool *pool,
                             struct topt_error *err)
{
    int n = pool ? topt_pool_threads(pool) : 1;
    *p = (struct product){.pool = pool, .nworkers = n};
    p->worker = calloc((size_t)n, sizeof *p->worker);
    return p->worker ? 0 : topt_search_nomem(err);
}

void topt_sparse_product_fini(struct product *p)
{
    for (int i = 0; p->worker && i < p->nworkers; i++) {
        topt_pareto_merge_fini(&p->worker[i].merge);
        free(p->worker[i].start);
        free(p->worker[i].list);
    }
    free(p->worker);
}

/* Offsets of dimension 'd' into A and B. */
static const int32_t *offsets(const struct step *s, int d, int of_b)
{
    const int32_t *off = s->off;
    for (int i = 0; i < d; i++)
        off += 2 * s->size[i];
    return off + (of_b ? s->size[d] : 0);
}

static int sees(const struct step *s, int d, int of_b)
{
    const int32_t *off = offsets(s, d, of_b);
    for (int i = 0; i < s->size[d]; i++)
        if (off[i])
            return 1;
    return 0;
}

int topt_sparse_product_is(const struct step *s)
{
    if (!s->b || s->ndims != 2 || s->ngroups != 1 || s->kfirst[1] < 2)
        return 0;
    return (!sees(s, 0, 1) && !sees(s, 1, 0)) || (!sees(s, 0, 0) && !sees(s, 1, 1));
}

static struct run rows_entry(const struct rows *r, const struct operand *o, int x, int k)
{
    return topt_entry_points(r->maker, o->table,
                             o->table->first_entry + o->off[x] + o->k[k]);
}

/* ---- one row ----------------------------------------------------------------------- */

static int grow_list(struct worker_rows *w, int64_t need)
{
    if (need <= w->cap_list)
        return 0;
    if (TOPT_RESIZE(w->list, 2 * need))
        return -1;
    w->cap_list = 2 * need;
    return 0;
}

/* For every y the k of which both have points, in order. */
static int collect(const struct rows *r, struct worker_rows *w, int x)
{
    int32_t *at = w->start;
    memset(at, 0, ((size_t)r->ny + 2) * sizeof *at);
    for (int k = 0; k < r->nk; k++)
        if (rows_entry(r, &r->row, x, k).n)
            for (int32_t i = r->y_first[k]; i < r->y_first[k + 1]; i++)
                at[r->y[i] + 2]++;
    for (int y = 2; y <= r->ny + 1; y++)
        at[y] += at[y - 1];
    if (grow_list(w, at[r->ny + 1] + 1))
        return -1;
    for (int k = 0; k < r->nk; k++)
        if (rows_entry(r, &r->row, x, k).n)
            for (int32_t i = r->y_first[k]; i < r->y_first[k + 1]; i++)
                w->list[at[r->y[i] + 1]++] = k;
    return 0;
}

static int make_entry(const struct job *j, struct worker_rows *w, int x, int y)
{
    const struct rows *r = &j->rows;
    struct merge *m = &w->merge;
    for (int32_t i = w->start[y]; i < w->start[y + 1]; i++) {
        struct run a = rows_entry(r, &r->row, x, w->list[i]);
        struct run b = rows_entry(r, &r->other, y, w->list[i]);
        a.moves = b.moves = 0; /* of the maker's output, not of this one */
        if (topt_pareto_merge_add(m, r->row_is_a ? a : b, r->row_is_a ? b : a))
            return -1;
    }
    return topt_pareto_merge_run(m);
}

static int make_row(const struct job *j, struct worker_rows *w, int x, uint32_t *count)
{
    struct merge *m = &w->merge;
    if (collect(&j->rows, w, x)) {
        m->failed = TOPT_ERR_NOMEM;
        return -1;
    }
    for (int y = 0; y < j->rows.ny; y++) {
        size_t before = m->n;
        if (make_entry(j, w, x, y))
            return -1;
        count[y] = (uint32_t)(m->n - before);
    }
    return 0;
}

static void work(void *ctx, int worker)
{
    struct job *j = ctx;
    struct worker_rows *w = &j->product->worker[worker];
    for (int x; !j->failed && (x = j->next++) < j->to;) {
        j->made[x - j->from] = (struct made_row){worker, w->merge.n};
        if (make_row(j, w, x, &j->count[(size_t)(x - j->from) * (size_t)j->rows.ny]))
            j->failed = 1;
    }
}

/* ---- the table --------------------------------------------------------------------- */

/* Which y the other operand has points for, by k. */
static void find_others(const struct rows *r, int32_t *first, int32_t *y)
{
    int32_t n = 0;
    for (int k = 0; k < r->nk; k++) {
        first[k] = n;
        for (int i = 0; i < r->ny; i++)
            if (rows_entry(r, &r->other, i, k).n)
                y[n++] = i;
    }
    first[r->nk] = n;
}

static int start_workers(struct product *p, const struct maker *k, int ny)
{
    for (int i = 0; i < p->nworkers; i++) {
        struct worker_rows *w = &p->worker[i];
        if (TOPT_RESIZE(w->start, ny + 2))
            return -1;
        w->merge.limit = k->merge.limit;
        w->merge.slowest = k->merge.slowest;
        w->merge.options = k->merge.options;
        w->merge.max_bytes = k->merge.max_bytes;
        w->merge.nbounds = 0;
        if (topt_pareto_merge_begin(&w->merge))
            return -1;
    }
    return 0;
}

/* Add the workers' counts and their failures to the maker's. */
static int sum_up(struct product *p, struct merge *m)
{
    for (int i = 0; i < p->nworkers; i++) {
        struct merge *w = &p->worker[i].merge;
        m->products += w->products;
        w->products = 0;
        if (w->failed != TOPT_OK) {
            m->failed = w->failed;
            m->too_big = w->too_big;
        }
        w->n = 0;
    }
    return m->failed == TOPT_OK ? 0 : -1;
}

/* Put the wave's rows behind what the maker has. */
static int append(struct job *j, struct maker *k, const struct table *t)
{
    struct merge *m = &k->merge;
    for (int x = j->from; x < j->to; x++) {
        struct made_row row = j->made[x - j->from];
        const struct merge *w = &j->product->worker[row.worker].merge;
        size_t at = row.first;
        for (int y = 0; y < j->rows.ny; y++) {
            int64_t e = t->first_entry + (int64_t)x * j->rows.ny + y;
            k->first[e] = (uint32_t)m->n;
            k->count[e] =
                j->count[(size_t)(x - j->from) * (size_t)j->rows.ny + (size_t)y];
            if (k->count[e] > (uint32_t)k->max_frontier)
                k->max_frontier = (int)k->count[e];
            for (uint32_t i = 0; i < k->count[e]; i++, at++)
                if (topt_pareto_merge_put(m, w->cost[at], w->back[at]))
                    return -1;
        }
    }
    if (m->n >= UINT32_MAX / 2) {
        m->failed = TOPT_ERR_LIMIT;
        m->too_big = 1;
        return -1;
    }
    return 0;
}

static int make_rows(struct job *j, struct maker *k, const struct table *t)
{
    size_t before = k->merge.n;
    for (j->from = 0; j->from < j->rows.nrows; j->from = j->to) {
        j->to = j->from + ROWS_AT_ONCE < j->rows.nrows ? j->from + ROWS_AT_ONCE
                                                       : j->rows.nrows;
        j->next = j->from;
        if (j->product->pool)
            topt_pool_run(j->product->pool, work, j);
        else
            work(j, 0);
        double entries = (double)j->to * j->rows.ny;
        if (j->failed || append(j, k, t) || sum_up(j->product, &k->merge))
            return sum_up(j->product, &k->merge), -1;
        if ((k->budget && k->merge.products > k->budget) ||
            (k->mean > 0 && (double)(k->merge.n - before) > 2 * k->mean * entries))
            return 1;
    }
    return 0;
}

static struct rows describe(const struct maker *k, const struct step *s)
{
    int row_is_a = !sees(s, 0, 1) && !sees(s, 1, 0);
    return (struct rows){.maker = k,
                         .nrows = s->size[0],
                         .ny = s->size[1],
                         .nk = s->kfirst[1],
                         .row_is_a = row_is_a,
                         .row = {row_is_a ? s->a : s->b, offsets(s, 0, !row_is_a),
                                 row_is_a ? s->ka : s->kb},
                         .other = {row_is_a ? s->b : s->a, offsets(s, 1, row_is_a),
                                   row_is_a ? s->kb : s->ka}};
}

static int make(struct job *j, struct maker *k, const struct table *t)
{
    if (!start_workers(j->product, k, j->rows.ny))
        return make_rows(j, k, t);
    k->merge.failed = TOPT_ERR_NOMEM;
    return -1;
}

int topt_sparse_product_make(struct product *p, struct maker *k, const struct table *t)
{
    struct job j = {.product = p, .rows = describe(k, &t->how)};
    size_t pairs = (size_t)j.rows.nk * (size_t)j.rows.ny;
    int32_t *first = malloc(((size_t)j.rows.nk + 1) * sizeof *first);
    int32_t *y = malloc((pairs + 1) * sizeof *y);
    j.count = malloc(((size_t)ROWS_AT_ONCE * (size_t)j.rows.ny + 1) * sizeof *j.count);
    int rc = -1;
    if (!first || !y || !j.count) {
        k->merge.failed = TOPT_ERR_NOMEM;
    } else {
        find_others(&j.rows, first, y);
        j.rows.y_first = first;
        j.rows.y = y;
        rc = make(&j, k, t);
    }
    free(first);
    free(y);
    free(j.count);
    return rc;
}
