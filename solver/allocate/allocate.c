/* allocate.c - see topt_allocate.h.
 *
 * Two ways lead from what everybody asked to a plan.  One holds everybody's spot, and each
 * job in turn leaves its own for a better one.  The other frees spots and deals them out
 * again; who then can't end in time keeps its spot, and the dealing begins anew.  Spots are
 * dealt in the order of priority, the shortest job first, and in some orders at random; rigid
 * jobs keep theirs, or are dealt with; and bounds on GPU-hours are several, since a job that ends a little earlier by
 * many GPUs more makes others wait.  Of all these the plan with the least sum of ends is
 * taken, of equal ones the first, and a MILP may improve it.  Where each job ends as early
 * as if it were alone no other is looked for. */
#include "topt_allocate.h"

#include <stdlib.h>
#include <string.h>

#include "improve.h"
#include "layout.h"
#include "topt_hash.h"
#include "topt_minmax.h"

enum { DEALS = 4, BOUNDS = 3, ORDERS = 8, WAYS = 2 * ORDERS };
/* No further way is tried from so many windows of nodes on, which take about a second. */
enum { MOST_LOOKS = 100 * 1000 * 1000 };

/* How spots are dealt. */
struct dealing {
    int by; /* 0: priority, 1: the shortest first, others: any order, the same each time */
    int frees_rigid;
    size_t *order;
    unsigned char *kept; /* of each job, whether it keeps its spot */
};

/* ---- the problem ------------------------------------------------------------------- */

static int check(const struct topt_alloc_problem *p, struct topt_error *err)
{
    for (size_t i = 0; i < p->nheld; i++)
        if (p->held[i].node >= p->nnodes)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "job %lld holds a node that isn't there",
                             (long long)p->held[i].job);
    for (size_t i = 0; i < p->njobs; i++) {
        const struct topt_alloc_job *j = &p->job[i];
        int good = j->nshapes > 0 && j->asked >= 0 && j->asked < j->nshapes;
        for (int k = 0; good && k < j->nshapes; k++)
            good = j->shape[k].nodes > 0 && j->shape[k].run_s > 0;
        if (!good)
            return topt_fail(err, TOPT_ERR_INVAL, "job %lld has a shape that is none",
                             (long long)j->id);
    }
    return 0;
}

/* See 'most_permille' of the problem: what holds in an empty queue, and where waiting jobs ask
 * for as many GPUs as there are. */
static int64_t bound(const struct topt_alloc_problem *p, int64_t empty, int64_t whole)
{
    int64_t gpus = 0, asked = 0;
    for (size_t i = 0; i < p->nnodes; i++)
        gpus += p->node[i].has.gpus;
    for (size_t i = 0; i < p->njobs; i++)
        asked += topt_allocate_gpus(&p->job[i].shape[p->job[i].asked]);
    int64_t full = gpus ? topt_min(1000, 1000 * asked / gpus) : 1000;
    return empty - (empty - whole) * full / 1000;
}

static size_t most_nodes_of_all(const struct topt_alloc_problem *p)
{
    int64_t most = 1;
    for (size_t i = 0; i < p->njobs; i++)
        for (int k = 0; k < p->job[i].nshapes; k++)
            most = topt_max(most, p->job[i].shape[k].nodes);
    return (size_t)most;
}

/* ---- plans ------------------------------------------------------------------------- */

/* As everybody asked. */
static int ask(struct round *r)
{
    struct timeline *t = layout_timeline(r);
    for (size_t i = 0; i < r->p->njobs && !timeline_failed(t); i++) {
        layout_place(r, &r->asked, i, t, r->p->job[i].asked, INT64_MAX);
        layout_move(r, &r->asked, i, t, -1);
    }
    return timeline_failed(t) ? -1 : 0;
}

/* What no plan does better than: each job as if it were alone. */
struct least {
    size_t starts;
    int64_t sum;
};

static int reaches(const struct round *r, const struct layout *l, const struct least *b)
{
    return layout_starts(r, l) == b->starts && layout_sum(r, l) == b->sum;
}

static int alone(struct round *r, struct layout *spare, struct least *ret)
{
    struct timeline *t = layout_timeline(r);
    layout_copy(r, &r->asked, spare);
    for (size_t i = 0; i < r->p->njobs && !timeline_failed(t); i++)
        layout_place(r, spare, i, t, -1, layout_limit(r, i));
    *ret = (struct least){layout_starts(r, spare), layout_sum(r, spare)};
    return timeline_failed(t) ? -1 : 0;
}

static int64_t shortest(const struct round *r, size_t i)
{
    int64_t least = INT64_MAX;
    for (int k = 0; k < r->p->job[i].nshapes; k++)
        if (layout_may(r, i, k))
            least = topt_min(least, r->p->job[i].shape[k].run_s);
    return least;
}

static int64_t turn_of(const struct round *r, int by, size_t i)
{
    if (by > 1)
        return (int64_t)(topt_mix((uint64_t)by << 32 | i) >> 1);
    return by ? shortest(r, i) : 0;
}

struct turn {
    int64_t when;
    size_t job;
};

static int by_turn(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    return x->when != y->when ? (x->when > y->when) - (x->when < y->when)
                              : (x->job > y->job) - (x->job < y->job);
}

static int begin_dealing(const struct round *r, struct dealing *d)
{
    size_t n = r->p->njobs;
    struct turn *turn = calloc(n + 1, sizeof *turn);
    d->order = calloc(n + 1, sizeof *d->order);
    d->kept = calloc(n + 1, 1);
    int rc = turn && d->order && d->kept ? 0 : -1;
    for (size_t i = 0; !rc && i < n; i++) {
        turn[i] = (struct turn){turn_of(r, d->by, i), i};
        d->kept[i] = !d->frees_rigid && layout_is_rigid(&r->p->job[i]);
    }
    if (!rc)
        qsort(turn, n, sizeof *turn, by_turn);
    for (size_t i = 0; !rc && i < n; i++)
        d->order[i] = turn[i].job;
    free(turn);
    return rc;
}

/* One dealing.  Jobs that can't end in time are marked as kept; returns how many, or -1
 * without memory. */
static int deal_once(const struct round *r, struct dealing *d, struct layout *l)
{
    struct timeline *t = layout_timeline(r);
    int failed = 0;
    layout_copy(r, &r->asked, l);
    for (size_t i = 0; i < r->p->njobs; i++)
        if (d->kept[i])
            layout_move(r, l, i, t, -1);
    for (size_t n = 0; n < r->p->njobs && !timeline_failed(t); n++) {
        size_t i = d->order[n];
        if (d->kept[i])
            continue;
        if (layout_place(r, l, i, t, -1, layout_limit(r, i)))
            layout_move(r, l, i, t, -1);
        else
            failed += d->kept[i] = 1;
    }
    return timeline_failed(t) ? -1 : failed;
}

/* Deal until everybody ends in time: 1, 0 where that takes too long, or -1. */
static int deal(const struct round *r, int way, struct layout *l)
{
    struct dealing d = {.by = way >> 1, .frees_rigid = way & 1};
    int failed = begin_dealing(r, &d) ? -1 : 1;
    for (int n = 0; n < DEALS && failed > 0; n++)
        failed = deal_once(r, &d, l);
    free(d.order);
    free(d.kept);
    return failed < 0 ? -1 : !failed;
}

static void keep_better(const struct round *r, const struct layout *l,
                        struct layout *best)
{
    if (layout_is_better(r, l, best))
        layout_copy(r, l, best);
}

/* The best of what both ways lead to, in 'best'. */
static int plan(struct round *r, struct layout *best, struct layout *spare,
                int *ret_is_best)
{
    int64_t most = r->permille;
    struct least least;
    if (alone(r, spare, &least))
        return -1;
    if (r->p->njobs == 1) { /* it is alone */
        layout_copy(r, spare, best);
        *ret_is_best = 1;
        return 0;
    }
    layout_copy(r, &r->asked, best);
    if (layout_settle(r, best))
        return -1;
    for (int i = 0; i < BOUNDS * WAYS && !reaches(r, best, &least) &&
                    timeline_looked(r->t) < MOST_LOOKS;
         i++) {
        int64_t less = (most - 1000) * (i / WAYS) / (BOUNDS - 1);
        r->permille = topt_max(1000, most - less);
        int rc = deal(r, i % WAYS, spare);
        r->permille = most;
        if (rc < 0 || (rc && layout_settle(r, spare)))
            return -1;
        if (rc)
            keep_better(r, spare, best);
    }
    *ret_is_best = reaches(r, best, &least);
    return 0;
}

static int has_choice(const struct topt_alloc_problem *p)
{
    for (size_t i = 0; i < p->njobs; i++)
        if (!layout_is_rigid(&p->job[i]))
            return 1;
    return 0;
}

static int run(struct round *r, const struct topt_alloc_solver *solver,
               struct layout *best, struct layout *spare, struct topt_alloc_plan *ret)
{
    int is_plain = !has_choice(r->p); /* and one timeline does */
    r->t = timeline_new(r->p);
    r->held = is_plain ? NULL : timeline_new(r->p);
    if (!r->t || !(is_plain || r->held) || ask(r))
        return -1;
    layout_copy(r, &r->asked, best);
    ret->is_best = is_plain;
    if (is_plain)
        return 0;
    if (plan(r, best, spare, &ret->is_best))
        return -1;
    if (!solver || ret->is_best)
        return 0;
    int rc = improve(r, solver, best, spare);
    if (rc > 0) {
        ret->has_milp = layout_is_better(r, spare, best);
        keep_better(r, spare, best);
    }
    return rc < 0 ? -1 : 0;
}

int topt_allocate(const struct topt_alloc_problem *p,
                  const struct topt_alloc_solver *solver, struct topt_alloc_plan *ret,
                  struct topt_error *err)
{
    struct round r = {.p = p};
    struct layout best = {0}, spare = {0};
    *ret = (struct topt_alloc_plan){.njobs = p->njobs};
    if (check(p, err))
        return -1;
    r.permille = ret->permille = bound(p, p->most_permille, p->least_permille);
    r.reserve_permille = bound(p, p->reserve_permille, 0);
    r.scratch = calloc(2 * most_nodes_of_all(p), sizeof *r.scratch);
    int rc = !r.scratch || layout_sets(p, &r) || layout_init(p, &r.asked) ||
             layout_init(p, &best) || layout_init(p, &spare) ||
             run(&r, solver, &best, &spare, ret);
    if (!rc) {
        ret->work = timeline_looked(r.t);
        ret->ends_s = layout_sum(&r, &best);
        ret->as_asked_s = layout_sum(&r, &r.asked);
        ret->spot = best.spot;
        ret->node = best.node;
        ret->asked = r.asked.spot;
        best = (struct layout){0};
        r.asked.spot = NULL;
    }
    layout_fini(&best);
    layout_fini(&spare);
    layout_fini(&r.asked);
    timeline_free(r.held);
    timeline_free(r.t);
    free(r.scratch);
    free(r.set_gpus);
    return rc ? topt_nomem(err, "the queue") : 0;
}

void topt_allocate_fini(struct topt_alloc_plan *p)
{
    free(p->spot);
    free(p->asked);
    free(p->node);
    *p = (struct topt_alloc_plan){0};
}
