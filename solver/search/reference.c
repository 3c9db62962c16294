/* reference.c - the paper's own search, plainly: no classes, no sharing, sorting for each entry.
 *
 * A second, slow way to the exact frontier that shares no code with ft.c, and the one whose
 * counted work has the growth that the paper proves.  An operator holds a frontier for each
 * of its configurations, an edge one for each pair; the steps are in reference_steps.c. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int nomem(struct plain *p)
{
    if (topt_arena_bytes(p->arena) > (size_t)TOPT_SEARCH_MAX_BYTES / 2)
        return topt_fail(p->err, TOPT_ERR_LIMIT,
                         "the plain search needs too much memory");
    return topt_search_nomem(p->err);
}

/* ---- frontiers ---- */

static int by_cost(const void *x, const void *y)
{
    const struct point *a = x, *b = y;
    if (a->cost.memory != b->cost.memory)
        return a->cost.memory < b->cost.memory ? -1 : 1;
    return (a->cost.time > b->cost.time) - (a->cost.time < b->cost.time);
}

/* Stable, so that the first of equals stays whatever the C library's qsort does. */
static void sort(struct point *x, size_t n, struct point *scratch)
{
    if (n < 2)
        return;
    size_t half = n / 2, i = 0, j = half, k = 0;
    sort(x, half, scratch);
    sort(x + half, n - half, scratch);
    while (i < half && j < n)
        scratch[k++] = by_cost(&x[j], &x[i]) < 0 ? x[j++] : x[i++];
    while (i < half)
        scratch[k++] = x[i++];
    while (j < n)
        scratch[k++] = x[j++];
    memcpy(x, scratch, n * sizeof *x);
}

int topt_plain_add(struct plain *p, struct point x)
{
    if (p->options->memory_limit && x.cost.memory > p->options->memory_limit)
        return 0;
    if (p->nwork == p->cap_work) {
        size_t cap = p->cap_work ? 2 * p->cap_work : 1024;
        struct point *w = realloc(p->work, 2 * cap * sizeof *w); /* half is sort's */
        if (!w)
            return topt_search_nomem(p->err);
        p->work = w;
        p->cap_work = cap;
    }
    p->work[p->nwork++] = x;
    return 0;
}

/* Reduce what was gathered into a front of its own. */
int topt_plain_finish(struct plain *p, struct front *ret)
{
    size_t kept = 0;
    sort(p->work, p->nwork, p->work + p->cap_work);
    for (size_t i = 0; i < p->nwork; i++)
        if (!kept || p->work[i].cost.time < p->work[kept - 1].cost.time)
            p->work[kept++] = p->work[i];
    p->nwork = 0;
    ret->n = (int)kept;
    ret->point = TOPT_NEW(p->arena, kept, struct point);
    struct deriv *d = TOPT_NEW(p->arena, kept, struct deriv);
    if (!ret->point || !d)
        return nomem(p);
    for (size_t i = 0; i < kept; i++) {
        d[i] = (struct deriv){p->work[i].a, p->work[i].b, -1, -1, 0};
        ret->point[i] = (struct point){p->work[i].cost, d + i, NULL};
    }
    p->stats.points += ret->n;
    if (ret->n > p->stats.max_frontier)
        p->stats.max_frontier = ret->n;
    return 0;
}

/* Gather the product of two fronts. */
int topt_plain_add_product(struct plain *p, const struct front *a, const struct front *b)
{
    p->stats.products += (int64_t)a->n * b->n;
    if (topt_search_canceled(p->options))
        return topt_fail(p->err, TOPT_ERR_CANCELED, "the search was canceled");
    p->stopped = topt_search_stopped(p->options) ||
                 (p->options->max_work && p->stats.products > p->options->max_work);
    if (p->stopped)
        return -1;
    for (int i = 0; i < a->n; i++)
        for (int j = 0; j < b->n; j++) {
            struct point x = {.a = a->point[i].a, .b = b->point[j].a};
            if (add_overflows(a->point[i].cost.memory, b->point[j].cost.memory,
                              &x.cost.memory) ||
                add_overflows(a->point[i].cost.time, b->point[j].cost.time, &x.cost.time))
                return topt_search_overflow(p->err);
            if (topt_plain_add(p, x))
                return -1;
        }
    return 0;
}

int topt_plain_product(struct plain *p, const struct front *a, const struct front *b,
                       struct front *ret)
{
    return topt_plain_add_product(p, a, b) || topt_plain_finish(p, ret) ? -1 : 0;
}

struct front *topt_plain_fronts(struct plain *p, int64_t n)
{
    struct front *f = TOPT_NEW(p->arena, n, struct front);
    p->stats.tables++;
    if (!f)
        nomem(p);
    return f;
}

/* ---- setting up and answering ---- */

static int leaf(struct plain *p, struct topt_cost cost, int op, int edge, int32_t choice)
{
    struct deriv *d = TOPT_NEW(p->arena, 1, struct deriv);
    if (!d)
        return nomem(p);
    *d = (struct deriv){NULL, NULL, op, edge, choice};
    return topt_plain_add(p, (struct point){cost, d, NULL});
}

static int init_node(struct plain *p, int i)
{
    const struct topt_search_op *op = &p->problem->op[i];
    p->node[i].k = op->nconfigs;
    p->node[i].front = topt_plain_fronts(p, op->nconfigs);
    if (!p->node[i].front)
        return -1;
    for (int c = 0; c < op->nconfigs; c++)
        if (leaf(p, op->cost[c], i, -1, c) || topt_plain_finish(p, &p->node[i].front[c]))
            return -1;
    return 0;
}

static int init_link(struct plain *p, int i)
{
    const struct topt_search_edge *e = &p->problem->edge[i];
    int kf = p->problem->op[e->from].nconfigs, kt = p->problem->op[e->to].nconfigs;
    p->link[i] = (struct link){e->from, e->to, 0, topt_plain_fronts(p, (int64_t)kf * kt)};
    if (!p->link[i].front)
        return -1;
    for (int x = 0; x < kf; x++)
        for (int y = 0; y < kt; y++) {
            int64_t at =
                (int64_t)e->from_class[x] * e->table->to_classes + e->to_class[y];
            int32_t first = e->table->first[at];
            for (int32_t k = first; k < e->table->first[at + 1]; k++)
                if (leaf(p, e->table->alt[k], -1, i, k - first))
                    return -1;
            if (topt_plain_finish(p, &p->link[i].front[(int64_t)x * kt + y]))
                return -1;
        }
    return 0;
}

static int init(struct plain *p)
{
    const struct topt_search_problem *problem = p->problem;
    int64_t limit = p->options->max_bytes ? p->options->max_bytes : TOPT_SEARCH_MAX_BYTES;
    static const struct point zero;
    p->arena = topt_arena_create((size_t)limit);
    if (!p->arena)
        return topt_search_nomem(p->err);
    p->node = TOPT_NEW(p->arena, problem->nops, struct node);
    p->link = TOPT_NEW(p->arena, problem->nedges, struct link);
    p->decided = TOPT_NEW(p->arena, problem->nops, int32_t);
    p->into = TOPT_NEW(p->arena, problem->nops, int);
    if (!p->node || !p->link || !p->decided || !p->into || topt_plain_add(p, zero) ||
        topt_plain_finish(p, &p->total))
        return nomem(p);
    for (int i = 0; i < problem->nops; i++) {
        p->decided[i] = -1;
        p->into[i] = i;
    }
    for (int i = 0; i < problem->nops; i++)
        if (init_node(p, i))
            return -1;
    for (int i = 0; i < problem->nedges; i++)
        if (init_link(p, i))
            return -1;
    return 0;
}

/* Depth is at most the number of steps on one way down, far below the stack's reach. */
static void unroll(const struct deriv *d, int32_t *config, int32_t *alt)
{
    for (; d; d = d->a) {
        if (d->op >= 0)
            config[d->op] = d->choice;
        else if (d->edge >= 0)
            alt[d->edge] = d->choice;
        unroll(d->b, config, alt);
    }
}

static int put_points(struct plain *p, struct topt_frontier *f)
{
    size_t width = (size_t)p->problem->nops + (size_t)p->problem->nedges;
    int32_t *choice = TOPT_NEW(p->arena, width, int32_t);
    if (!choice)
        return topt_search_nomem(p->err);
    for (int i = 0; i < p->total.n; i++) {
        unroll(p->total.point[i].a, choice, choice + p->problem->nops);
        if (topt_frontier_add(f, p->total.point[i].cost, choice, p->err))
            return -1;
    }
    return 0;
}

static int answer(struct plain *p, struct topt_frontier **ret)
{
    struct topt_frontier *f = topt_frontier_create(p->problem, p->err);
    if (!f)
        return -1;
    if (put_points(p, f) ||
        topt_frontier_decided(f, p->decided, p->problem->nops, p->err)) {
        topt_frontier_destroy(f);
        return -1;
    }
    f->exact = !f->nheuristic && !p->stopped;
    f->epsilon = p->stopped ? INFINITY : 0;
    f->stats = p->stats;
    f->stats.peak_bytes = (int64_t)topt_arena_peak_bytes(p->arena);
    *ret = f;
    return 0;
}

static int search(const struct topt_search_problem *problem,
                  const struct topt_search_options *options, int with_chain,
                  struct topt_frontier **ret, struct topt_error *err)
{
    struct plain p = {.problem = problem, .options = options, .err = err};
    int rc = init(&p);
    if (!rc)
        rc = topt_plain_eliminate(&p, with_chain);
    if (p.stopped)
        p.total.n = 0; /* of some operators only */
    if (!rc || p.stopped)
        rc = answer(&p, ret);
    free(p.work);
    topt_arena_destroy(p.arena);
    return rc;
}

int topt_search_plain(const struct topt_search_problem *problem,
                      const struct topt_search_options *options,
                      struct topt_frontier **ret, struct topt_error *err)
{
    return search(problem, options, 1, ret, err);
}

int topt_search_elimination(const struct topt_search_problem *problem,
                            const struct topt_search_options *options,
                            struct topt_frontier **ret, struct topt_error *err)
{
    return search(problem, options, 0, ret, err);
}
