/* layout.c - see layout.h. */
#include "layout.h"

#include <stdlib.h>
#include <string.h>

#include "topt_minmax.h"

int64_t topt_allocate_gpus(const struct topt_alloc_shape *s)
{
    return s->nodes * s->each.gpus;
}

int64_t topt_allocate_cost(const struct topt_alloc_shape *s)
{
    return topt_allocate_gpus(s) * s->run_s;
}

int64_t topt_allocate_end(const struct topt_alloc_job *j, const struct topt_alloc_spot *s)
{
    return s->start_s < 0 ? -1 : s->start_s + j->shape[s->shape].run_s;
}

static int64_t most_nodes(const struct topt_alloc_job *j)
{
    int64_t most = 0;
    for (int i = 0; i < j->nshapes; i++)
        most = topt_max(most, j->shape[i].nodes);
    return most;
}

int layout_init(const struct topt_alloc_problem *p, struct layout *ret)
{
    size_t n = 0;
    *ret = (struct layout){calloc(p->njobs + 1, sizeof *ret->spot), NULL};
    if (!ret->spot)
        return -1;
    for (size_t i = 0; i < p->njobs; i++) {
        ret->spot[i] = (struct topt_alloc_spot){p->job[i].asked, -1, n};
        n += (size_t)most_nodes(&p->job[i]);
    }
    ret->node = calloc(n + 1, sizeof *ret->node);
    return ret->node ? 0 : -1;
}

void layout_fini(struct layout *l)
{
    free(l->spot);
    free(l->node);
    *l = (struct layout){0};
}

void layout_copy(const struct round *r, const struct layout *from, struct layout *to)
{
    memcpy(to->spot, from->spot, r->p->njobs * sizeof *to->spot);
    if (!r->p->njobs)
        return;
    size_t last = r->p->njobs - 1;
    size_t n = from->spot[last].first + (size_t)most_nodes(&r->p->job[last]);
    memcpy(to->node, from->node, n * sizeof *to->node);
}

int layout_is_rigid(const struct topt_alloc_job *j)
{
    return j->nshapes == 1;
}

int layout_sets(const struct topt_alloc_problem *p, struct round *ret)
{
    for (size_t i = 0; i < p->nnodes; i++)
        ret->nsets = p->node[i].set >= ret->nsets ? p->node[i].set + 1 : ret->nsets;
    ret->set_gpus = calloc((size_t)ret->nsets + 1, sizeof *ret->set_gpus);
    for (size_t i = 0; ret->set_gpus && i < p->nnodes; i++)
        ret->set_gpus[p->node[i].set] += p->node[i].has.gpus;
    return ret->set_gpus ? 0 : -1;
}

static int64_t gpus_that_serve(const struct round *r, const struct topt_alloc_shape *s)
{
    int64_t gpus = 0;
    for (int k = 0; k < r->nsets; k++)
        gpus += s->serves[k] ? r->set_gpus[k] : 0;
    return gpus;
}

static int is_grown(const struct topt_alloc_job *j, const struct topt_alloc_shape *s)
{
    return topt_allocate_gpus(s) > topt_allocate_gpus(&j->shape[j->asked]);
}

/* Does a shape that starts then leave the reserve, or is it no more than was asked for? */
static int leaves_reserve(const struct round *r, const struct timeline *t,
                          const struct topt_alloc_job *j,
                          const struct topt_alloc_shape *s, int64_t start_s)
{
    return !is_grown(j, s) || !r->reserve_permille ||
           1000 * (timeline_least(t, s, start_s) - topt_allocate_gpus(s)) >=
               r->reserve_permille * gpus_that_serve(r, s);
}

/* Is it on one node, at most its share of the GPUs that serve it, or what it asked for? */
static int is_share(const struct round *r, const struct topt_alloc_job *j,
                    const struct topt_alloc_shape *s)
{
    return s->nodes == 1 || !is_grown(j, s) ||
           1000 * topt_allocate_gpus(s) <= r->p->share_permille * gpus_that_serve(r, s);
}

int layout_may(const struct round *r, size_t i, int shape)
{
    const struct topt_alloc_job *j = &r->p->job[i];
    const struct topt_alloc_shape *s = &j->shape[shape];
    int64_t least = INT64_MAX;
    for (int k = 0; k < j->nshapes; k++)
        if (j->shape[k].kind == s->kind)
            least = topt_min(least, topt_allocate_cost(&j->shape[k]));
    int64_t most = least / 1000 * r->permille + least % 1000 * r->permille / 1000;
    return shape == j->asked || (topt_allocate_cost(s) <= most && is_share(r, j, s));
}

int64_t layout_limit(const struct round *r, size_t i)
{
    int64_t end = topt_allocate_end(&r->p->job[i], &r->asked.spot[i]);
    return end < 0 ? INT64_MAX : end;
}

int64_t layout_sum(const struct round *r, const struct layout *l)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->p->njobs; i++)
        if (r->asked.spot[i].start_s >= 0)
            sum += topt_allocate_end(&r->p->job[i], &l->spot[i]);
    return sum;
}

size_t layout_starts(const struct round *r, const struct layout *l)
{
    size_t n = 0;
    for (size_t i = 0; i < r->p->njobs; i++)
        n += l->spot[i].start_s >= 0;
    return n;
}

int layout_is_better(const struct round *r, const struct layout *a,
                     const struct layout *b)
{
    size_t x = layout_starts(r, a), y = layout_starts(r, b);
    return x != y ? x > y : layout_sum(r, a) < layout_sum(r, b);
}

struct timeline *layout_timeline(const struct round *r)
{
    if (r->held)
        timeline_reset(r->t, r->held);
    return r->t;
}

void layout_move(const struct round *r, const struct layout *l, size_t i,
                 struct timeline *t, int sign)
{
    const struct topt_alloc_spot *s = &l->spot[i];
    if (s->start_s >= 0)
        timeline_move(t, &r->p->job[i].shape[s->shape], l->node + s->first, s->start_s,
                      sign);
}

int layout_place(const struct round *r, struct layout *l, size_t i, struct timeline *t,
                 int shape, int64_t limit_s)
{
    const struct topt_alloc_job *j = &r->p->job[i];
    struct topt_alloc_spot *spot = &l->spot[i];
    int64_t from = topt_max(r->p->now_s, j->from_s), best_cost = INT64_MAX;
    int found = 0;
    for (int k = 0; k < j->nshapes; k++) {
        const struct topt_alloc_shape *s = &j->shape[k];
        int64_t cost = topt_allocate_cost(s);
        int64_t latest = limit_s - s->run_s - (found && cost >= best_cost);
        if ((shape >= 0 ? k != shape : !layout_may(r, i, k)) || latest < from)
            continue;
        int64_t start = timeline_earliest(t, s, from, latest, r->scratch);
        if (start < 0 || !leaves_reserve(r, t, j, s, start))
            continue;
        found = 1;
        limit_s = start + s->run_s;
        best_cost = cost;
        spot->shape = k;
        spot->start_s = start;
        memcpy(l->node + spot->first, r->scratch, (size_t)s->nodes * sizeof *l->node);
    }
    return found;
}

/* One job; whether it moved. */
static int settle_one(const struct round *r, struct layout *l, size_t i,
                      struct timeline *t)
{
    const struct topt_alloc_job *j = &r->p->job[i];
    struct topt_alloc_spot was = l->spot[i];
    size_t *node = r->scratch + most_nodes(j);
    int64_t end = topt_allocate_end(j, &was);
    const struct topt_alloc_shape *s = &j->shape[was.shape];
    memcpy(node, l->node + was.first, (size_t)s->nodes * sizeof *node);
    layout_move(r, l, i, t, 1);
    layout_place(r, l, i, t, layout_is_rigid(j) ? j->asked : -1, end);
    int is_better =
        topt_allocate_end(j, &l->spot[i]) < end ||
        topt_allocate_cost(&j->shape[l->spot[i].shape]) < topt_allocate_cost(s);
    if (!is_better) {
        l->spot[i] = was;
        memcpy(l->node + was.first, node, (size_t)s->nodes * sizeof *node);
    }
    layout_move(r, l, i, t, -1);
    return is_better;
}

int layout_settle(const struct round *r, struct layout *l)
{
    enum { PASSES = 2 };
    struct timeline *t = layout_timeline(r);
    for (size_t i = 0; i < r->p->njobs; i++)
        layout_move(r, l, i, t, -1);
    int has_moved = 1;
    for (int pass = 0; pass < PASSES && has_moved; pass++) {
        has_moved = 0;
        for (size_t i = 0; i < r->p->njobs && !timeline_failed(t); i++)
            if (l->spot[i].start_s >= 0)
                has_moved |= settle_one(r, l, i, t);
    }
    return timeline_failed(t) ? -1 : 0;
}
