/* curves.c - times of the collectives, by geometry of group and by size.
 *
 * Measured as training runs them: through topt_exchange, packing included, with all
 * groups of the mesh at work at once, a few calls back to back, since a barrier
 * between calls would be measured too.  A sample is the slowest rank's; a point is the
 * median of its samples.  Where a point is off the line between its neighbours, more are measured.
 */
#include "exchange.h"
#include "topt_clock.h"
#include "topt_median.h"
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_BYTES = 1024, BACK_TO_BACK = 4, FEW = 3, MANY = 25, MOST_EXTRA = 8 };
static const double POINT_NS = 25e6; /* a point's share of the time */
static const double DISAGREE = 0.2;

struct probe {
    struct topt_comm *comm;
    struct topt_device *dev;
    struct topt_shape shape;
    struct topt_move move;
    struct topt_exchange x;
    void *src, *dst, *staging;
};

static void probe_fini(struct probe *p)
{
    p->dev->ops->release(p->dev, p->src);
    p->dev->ops->release(p->dev, p->dst);
    p->dev->ops->release(p->dev, p->staging);
    free(p->x.counts);
}

static struct topt_layout shard(const struct topt_mesh *m, uint32_t axes, int dim,
                                int reverse)
{
    struct topt_layout l = topt_layout_replicated();
    int n = 0, total = __builtin_popcount(axes);
    for (int a = 0; a < m->naxes; a++)
        if (axes >> a & 1) {
            l.at[a] = (int8_t)dim;
            l.pos[a] = (int8_t)(reverse ? total - 1 - n : n);
            n++;
        }
    return l;
}

/* Layouts before and after. */
static void choose_move(struct probe *p, enum topt_collective kind, uint32_t axes)
{
    const struct topt_mesh *m = &p->comm->mesh;
    struct topt_move *v = &p->move;
    static const enum topt_move_kind move[] = {[TOPT_ALL_REDUCE] = TOPT_MOVE_ALL_REDUCE,
                                               [TOPT_ALL_GATHER] = TOPT_MOVE_ALL_GATHER,
                                               [TOPT_REDUCE_SCATTER] =
                                                   TOPT_MOVE_REDUCE_SCATTER,
                                               [TOPT_ALL_TO_ALL] = TOPT_MOVE_ALL_TO_ALL,
                                               [TOPT_PERMUTE] = TOPT_MOVE_PERMUTE};
    *v = (struct topt_move){.kind = move[kind], .axes = axes};
    v->from = v->to = topt_layout_replicated();
    if (kind == TOPT_ALL_REDUCE || kind == TOPT_REDUCE_SCATTER)
        v->from = shard(m, axes, TOPT_PARTIAL, 0);
    else
        v->from = shard(m, axes, 0, 0);
    if (kind == TOPT_REDUCE_SCATTER)
        v->to = shard(m, axes, 0, 0);
    if (kind == TOPT_ALL_TO_ALL)
        v->to = shard(m, axes, 1, 0);
    if (kind == TOPT_PERMUTE)
        v->to = shard(m, axes, 0, 1);
    for (int a = 0; a < TOPT_MAX_AXES; a++) {
        v->from.pos[a] = v->from.at[a] < 0 ? 0 : v->from.pos[a];
        v->to.pos[a] = v->to.at[a] < 0 ? 0 : v->to.pos[a];
    }
}

/* A tensor of f32 whose collective is priced as 'bytes': all-gather, reduce-scatter
 * and all-reduce by the whole, the others by what one device holds.  Returns its real
 * size. */
static int64_t choose_shape(struct probe *p, enum topt_collective kind, int group,
                            int64_t bytes)
{
    int whole = kind != TOPT_ALL_TO_ALL && kind != TOPT_PERMUTE;
    int64_t cells = (int64_t)group * group;
    int64_t unit = bytes * (whole ? 1 : group) / 4 / cells;
    unit = unit > 0 ? unit : 1;
    p->shape = (struct topt_shape){.ndim = 2, .dim = {{group, 1}, {group, unit}}};
    return unit * cells * 4 / (whole ? 1 : group);
}

static int probe_init(struct probe *p, struct topt_error *err)
{
    const struct topt_mesh *m = &p->comm->mesh;
    struct topt_device *d = p->dev;
    int64_t from = topt_layout_elements(m, &p->shape, &p->move.from) * 4;
    int64_t to = topt_layout_elements(m, &p->shape, &p->move.to) * 4;
    int64_t staging = topt_move_staging_bytes(m, &p->shape, &p->move, 4);
    p->x.counts = calloc(2 * (size_t)p->comm->size, sizeof *p->x.counts);
    if (!p->x.counts)
        return topt_nomem(err, NULL);
    if (d->ops->alloc(d, from, &p->src, err) || d->ops->alloc(d, to, &p->dst, err) ||
        d->ops->alloc(d, staging, &p->staging, err) || d->ops->zero(d, p->src, from, err))
        return -1;
    p->x.comm = p->comm;
    p->x.device = d;
    p->x.shape = &p->shape;
    p->x.number = TOPT_COMM_F32;
    p->x.move = &p->move;
    p->x.src = p->src;
    p->x.dst = p->dst;
    p->x.staging = p->staging;
    return 0;
}

static int take_samples(struct probe *p, double *ns, int n, struct topt_error *err)
{
    double ready = 0;
    if (p->comm->ops->sum(p->comm, &ready, 1, err))
        return -1;
    for (int i = 0; i < n; i++) {
        int64_t t = topt_clock_ns();
        for (int k = 0; k < BACK_TO_BACK; k++)
            if (topt_exchange(&p->x, err))
                return -1;
        if (p->dev->ops->sync(p->dev, err))
            return -1;
        ns[i] = (double)(topt_clock_ns() - t) / BACK_TO_BACK;
    }
    return p->comm->ops->max(p->comm, ns, n, err);
}

static int measure_point(struct probe *p, double *ret_ns, struct topt_error *err)
{
    double ns[MANY];
    if (take_samples(p, ns, FEW, err))
        return -1;
    topt_sort_doubles(ns, FEW);
    double fit = POINT_NS / (BACK_TO_BACK * (ns[0] + 1));
    int n = fit > MANY ? MANY : fit < FEW ? FEW : (int)fit; /* the same on all ranks */
    if (take_samples(p, ns, n, err))
        return -1;
    *ret_ns = topt_median(ns, (size_t)n) + 1;
    return 0;
}

/* One curve that is being measured. */
struct tracing {
    struct topt_comm *comm;
    struct topt_device *dev;
    struct topt_survey *survey;
    char what[192];
    struct topt_curve *curve;
};

/* About 'want' bytes; what is known is taken. */
static int add_point(struct tracing *t, int64_t want, struct topt_error *err)
{
    struct topt_curve *c = t->curve;
    struct probe p = {.comm = t->comm, .dev = t->dev};
    double ns;
    choose_move(&p, c->kind, c->axes);
    int64_t bytes = choose_shape(&p, c->kind, c->group.nodes * c->group.per_node, want);
    if (!topt_survey_known(t->survey, t->what, bytes, &ns)) {
        int rc = probe_init(&p, err) || measure_point(&p, &ns, err) ||
                 topt_survey_keep(t->survey, t->what, bytes, ns, err);
        probe_fini(&p);
        if (rc)
            return -1;
    }
    topt_points_add(&c->points, bytes, ns);
    return 0;
}

static int measure_curve(struct tracing *t, int64_t max_bytes, struct topt_error *err)
{
    struct topt_points *p = &t->curve->points;
    for (int64_t want = MIN_BYTES; want <= max_bytes; want *= 2)
        if (add_point(t, want, err))
            return -1;
    for (int i = 0; i < MOST_EXTRA; i++) {
        int64_t want = topt_points_next(p, DISAGREE);
        int before = p->n;
        if (want && add_point(t, want, err))
            return -1;
        if (p->n == before)
            return 0;
    }
    return 0;
}

/* A permutation needs an order of at least two axes that can be another. */
static int listed(const struct topt_curve *c, int n, enum topt_collective kind,
                  struct topt_group g, uint32_t axes)
{
    for (int i = 0; i < n; i++)
        if (c[i].kind == kind && !memcmp(&c[i].group, &g, sizeof g))
            return 1;
    return kind == TOPT_PERMUTE && __builtin_popcount(axes) < 2;
}

static int list_curves(const struct topt_mesh *m, struct topt_curve *c)
{
    int n = 0;
    for (uint32_t axes = 1; axes < 1u << m->naxes; axes++)
        for (int k = 0; k < TOPT_COLLECTIVE_COUNT; k++) {
            struct topt_group g = topt_mesh_group(m, axes);
            enum topt_collective kind = (enum topt_collective)k;
            if (!listed(c, n, kind, g, axes))
                c[n++] = (struct topt_curve){.kind = kind, .axes = axes, .group = g};
        }
    return n;
}

static int points_of(int64_t max_bytes)
{
    int n = 0;
    for (int64_t want = MIN_BYTES; want <= max_bytes; want *= 2)
        n++;
    return n;
}

int topt_measure_curves(struct topt_comm *comm, struct topt_device *dev,
                        struct topt_survey *survey, const char *where, int64_t max_bytes,
                        struct topt_curve **ret, int *ret_n, struct topt_error *err)
{
    const struct topt_mesh *m = &comm->mesh;
    struct topt_curve *c = calloc((size_t)TOPT_COLLECTIVE_COUNT << m->naxes, sizeof *c);
    if (!c)
        return topt_nomem(err, NULL);
    int n = list_curves(m, c), kept = 0;
    topt_survey_expect(survey, (int64_t)n * points_of(max_bytes));
    for (int i = 0; i < n; i++) {
        struct tracing t = {.comm = comm, .dev = dev, .survey = survey, .curve = &c[i]};
        snprintf(t.what, sizeof t.what, "%.100s: %s over %d x %d, %d at once, of %d x %d",
                 where, topt_collective_name(c[i].kind), c[i].group.nodes,
                 c[i].group.per_node, c[i].group.siblings, m->nodes, m->per_node);
        if (measure_curve(&t, max_bytes, err)) {
            free(c);
            return -1;
        }
        c[kept] = c[i];
        kept += c[i].points.n > 1;
    }
    *ret = c;
    *ret_n = kept;
    return 0;
}
