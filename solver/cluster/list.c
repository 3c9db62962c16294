/* list.c - policies that start jobs of a queue, which then run to their end: each with a
 * number of GPUs by a rule, under conservative backfill, right-sizing, and moldable backfill,
 * alone or with requeues: jobs that grew beyond what they asked for stop, and go on later,
 * where another would end later than as everybody asked. */
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "topt_minmax.h"

/* What right-sizing keeps: a scaling efficiency, and how much slower a job may become. */
static const double least_efficiency = 0.8, most_slowdown = 4;

/* A job's shape as it came, by the rule of the policy. */
static int own_shape(const struct sim_job *j, enum list_policy policy)
{
    if (policy == LIST_ASKED && j->doomed)
        return SIM_DOOMED;
    if (policy == LIST_FEWEST)
        return sim_first(j);
    return policy == LIST_KNEE ? j->curve->knee[j->kind] : j->asked;
}

static int is_moldable(enum list_policy policy)
{
    return policy == LIST_MOLDABLE || policy == LIST_REQUEUE;
}

/* ---- right-sizing ------------------------------------------------------------------ */

struct deal {
    const struct sim *s;
    int64_t *left; /* GPUs of each node */
    int *shape;    /* of each place of the queue */
    size_t *on;    /* its nodes, from its place times the cluster's nodes on */
};

static int is_on(const struct deal *d, size_t node, const struct topt_alloc_shape *s)
{
    return s->serves[d->s->node[node].set] && d->left[node] >= s->each.gpus;
}

static int fits(const struct deal *d, size_t i, int shape)
{
    struct topt_alloc_shape s = sim_shape(d->s, i, shape);
    int64_t n = 0;
    for (size_t k = 0; k < d->s->nnodes; k++)
        n += is_on(d, k, &s);
    return n >= s.nodes;
}

static size_t *on(const struct deal *d, size_t place)
{
    return d->on + place * d->s->nnodes;
}

/* The job at this place takes a shape, on the fullest nodes. */
static void take(struct deal *d, size_t place, int shape)
{
    struct topt_alloc_shape s = sim_shape(d->s, d->s->queue[place], shape);
    size_t nodes = d->s->nnodes;
    for (int64_t n = 0; n < s.nodes; n++) {
        size_t best = nodes;
        for (size_t i = 0; i < nodes; i++)
            if (is_on(d, i, &s) && (best == nodes || d->left[i] < d->left[best]))
                best = i;
        d->left[best] -= s.each.gpus;
        on(d, place)[n] = best;
    }
    d->shape[place] = shape;
}

static void give_back(struct deal *d, size_t place)
{
    struct topt_alloc_shape s = sim_shape(d->s, d->s->queue[place], d->shape[place]);
    for (int64_t n = 0; n < s.nodes; n++)
        d->left[on(d, place)[n]] += s.each.gpus;
}

static int is_good(const struct sim *s, size_t i, int to)
{
    const struct sim_job *j = &s->job[i];
    int64_t least = INT64_MAX;
    for (int k = sim_first(j); k < sim_last(j); k++)
        least = topt_min(least, sim_cost(s, i, k));
    return (double)least >= least_efficiency * (double)sim_cost(s, i, to) &&
           (double)sim_shape(s, i, to).run_s <=
               most_slowdown * (double)sim_shape(s, i, j->asked).run_s;
}

/* The largest good shape of those from 'first' to 'last' that fits; -1. */
static int largest(const struct deal *d, size_t i, int first, int last)
{
    for (int k = last; k >= first; k--)
        if (is_good(d->s, i, k) && fits(d, i, k))
            return k;
    return -1;
}

/* One that doesn't fit gets the largest shape that does; one that fits in none blocks those
 * behind it; and where nobody waits what is left is grown into. */
static void rightsize(struct deal *d, size_t n)
{
    int is_blocked = 0;
    for (size_t k = 0; k < n && !is_blocked; k++) {
        size_t i = d->s->queue[k];
        const struct sim_job *j = &d->s->job[i];
        int to =
            fits(d, i, j->asked) ? j->asked : largest(d, i, sim_first(j), j->asked - 1);
        is_blocked = to < 0;
        if (!is_blocked)
            take(d, k, to);
    }
    for (size_t k = 0; k < n && !is_blocked; k++) {
        size_t i = d->s->queue[k];
        give_back(d, k);
        int to = largest(d, i, d->shape[k] + 1, sim_last(&d->s->job[i]) - 1);
        take(d, k, to < 0 ? d->shape[k] : to);
    }
}

static int rightsize_all(const struct sim *s, size_t n, int *shape)
{
    struct deal d = {s, calloc(s->nnodes, sizeof *d.left), shape,
                     calloc(n * s->nnodes, sizeof *d.on)};
    int rc = d.left && d.on ? 0 : -1;
    for (size_t i = 0; !rc && i < s->nnodes; i++)
        d.left[i] = s->down_s[i] > s->now_s ? 0 : s->node[i].has.gpus;
    for (size_t k = 0; !rc && k < s->nrunning; k++) {
        const struct sim_job *j = &s->job[s->running[k]];
        struct topt_alloc_shape has = sim_shape(s, s->running[k], j->current);
        for (int64_t i = 0; i < has.nodes; i++)
            d.left[j->node[i]] -= has.each.gpus;
    }
    if (!rc)
        rightsize(&d, n);
    free(d.left);
    free(d.on);
    return rc;
}

/* ---- planning ---------------------------------------------------------------------- */

struct plan {
    struct topt_alloc_problem p;
    struct topt_alloc_held *held;
    struct topt_alloc_job *job;
    struct topt_alloc_shape *shape; /* of all jobs, one after the other */
    int *of;                        /* of each place of the queue, its first shape */
    size_t nshapes;
};

static void add_running(const struct sim *s, struct plan *plan)
{
    for (size_t k = 0; k < s->nrunning; k++) {
        size_t i = s->running[k];
        const struct sim_job *j = &s->job[i];
        struct topt_alloc_shape has = sim_shape(s, i, j->current);
        int64_t run = (int64_t)(j->error * (double)(j->end_s - j->since_s - j->pause_s));
        run = j->current == SIM_DOOMED ? has.run_s : j->pause_s + topt_max(run, 1);
        int64_t end = j->since_s + sim_limit(s, run);
        for (int64_t n = 0; n < has.nodes; n++)
            plan->held[plan->p.nheld++] =
                (struct topt_alloc_held){.job = (int64_t)i + 1,
                                         .node = j->node[n],
                                         .takes = has.each,
                                         .from_s = j->since_s,
                                         .to_s = topt_max(end, s->now_s + 1)};
    }
    for (size_t i = 0; i < s->nnodes; i++)
        if (s->down_s[i] > s->now_s)
            plan->held[plan->p.nheld++] =
                (struct topt_alloc_held){.node = i,
                                         .takes = s->node[i].has,
                                         .from_s = s->now_s,
                                         .to_s = s->down_s[i]};
}

/* With the shapes from the first to before the last; what is left of its work is its run. */
static struct topt_alloc_job job_of(const struct sim *s, struct plan *plan, size_t i,
                                    int first, int last, int asked)
{
    struct topt_alloc_job ret = {.id = (int64_t)i + 1,
                                 .shape = plan->shape + plan->nshapes,
                                 .nshapes = last - first,
                                 .asked = asked - first,
                                 .bound_s = s->job[i].bound_s};
    for (int k = first; k < last; k++) {
        struct topt_alloc_shape *to = &plan->shape[plan->nshapes++];
        *to = sim_shape(s, i, k);
        to->run_s = sim_predicted_s(s, i, k);
    }
    return ret;
}

/* All that a job may have under moldable backfill. */
static struct topt_alloc_job moldable_job(const struct sim *s, struct plan *plan,
                                          size_t i)
{
    const struct sim_job *j = &s->job[i];
    int first = s->o->any_kind ? 0 : sim_first(j);
    return job_of(s, plan, i, first, s->o->any_kind ? j->curve->n : sim_last(j),
                  j->asked);
}

static int make_plan(const struct sim *s, enum list_policy policy, size_t n,
                     struct plan *plan)
{
    size_t held = s->nnodes, each = is_moldable(policy) ? TOPT_CLUSTER_POINTS : 1;
    for (size_t k = 0; k < s->nrunning; k++)
        held += (size_t)sim_shape(s, s->running[k], s->job[s->running[k]].current).nodes;
    plan->held = calloc(held + 1, sizeof *plan->held);
    plan->job = calloc(n + 1, sizeof *plan->job);
    plan->of = calloc(n + 1, sizeof *plan->of);
    plan->shape = calloc((n + (policy == LIST_REQUEUE ? s->nrunning : 0)) * each + 1,
                         sizeof *plan->shape);
    if (!plan->held || !plan->job || !plan->of || !plan->shape)
        return -1;
    for (size_t k = 0; k < n; k++)
        plan->of[k] = own_shape(&s->job[s->queue[k]], policy);
    if (policy == LIST_RIGHTSIZE && rightsize_all(s, n, plan->of))
        return -1;
    for (size_t k = 0; k < n; k++) {
        size_t i = s->queue[k];
        if (is_moldable(policy)) {
            plan->job[k] = moldable_job(s, plan, i);
            plan->of[k] = s->o->any_kind ? 0 : sim_first(&s->job[i]);
        } else {
            plan->job[k] = job_of(s, plan, i, plan->of[k], plan->of[k] + 1, plan->of[k]);
        }
    }
    plan->p = (struct topt_alloc_problem){
        .node = s->node,
        .held = plan->held,
        .job = plan->job,
        .nnodes = s->nnodes,
        .njobs = n,
        .now_s = s->now_s,
        .most_permille = s->o->most_permille,
        .least_permille = s->o->least_permille,
        .share_permille = s->o->share_permille,
        .reserve_permille = policy == LIST_MOLDABLE ? s->o->reserve_permille : 0};
    add_running(s, plan);
    return 0;
}

static void plan_fini(struct plan *plan)
{
    free(plan->held);
    free(plan->job);
    free(plan->of);
    free(plan->shape);
}

static int start_planned(struct sim *s, size_t n, const struct plan *plan,
                         const struct topt_alloc_plan *a)
{
    size_t *starts = calloc(n + 1, sizeof *starts); /* the queue changes meanwhile */
    int rc = starts ? 0 : -1;
    if (!rc)
        memcpy(starts, s->queue, n * sizeof *starts);
    for (size_t k = 0; !rc && k < n; k++)
        if (a->spot[k].start_s == s->now_s)
            rc = sim_change(s, starts[k], plan->of[k] + a->spot[k].shape,
                            a->node + a->spot[k].first);
    free(starts);
    return rc;
}

/* Running jobs that grew stop where others would end after their bounds: whether any did. */
static int stop_grown(struct sim *s, struct plan *plan)
{
    struct topt_alloc_job *grown = calloc(s->nrunning + 1, sizeof *grown);
    unsigned char *stop = calloc(s->nrunning + 1, 1);
    int rc = grown && stop ? 0 : -1;
    size_t n = 0;
    for (size_t k = 0; !rc && k < s->nrunning; k++) {
        size_t i = s->running[k];
        const struct sim_job *j = &s->job[i];
        int64_t ran = topt_max(0, s->now_s - j->since_s - j->pause_s);
        double left = j->left;
        if (sim_gpus(s, i, j->current) <= sim_gpus(s, i, j->asked))
            continue;
        /* As it would wait: so much less is left. */
        s->job[i].left -= (double)ran / (double)sim_shape(s, i, j->current).run_s;
        grown[n++] = moldable_job(s, plan, i);
        s->job[i].left = left;
    }
    rc = rc || topt_allocate_stops(&plan->p, grown, n, stop, NULL) ? -1 : 0;
    for (size_t k = 0; rc >= 0 && k < n; k++)
        if (stop[k])
            rc = sim_change(s, (size_t)grown[k].id - 1, SIM_WAITS, NULL) ? -1 : 1;
    free(grown);
    free(stop);
    return rc;
}

/* Is enough free for any that waits? */
static int can_start(const struct sim *s, enum list_policy policy, size_t n)
{
    int64_t left = s->gpus - s->used;
    if (policy == LIST_REQUEUE)
        return n > 0;
    for (size_t k = 0; k < n; k++) {
        const struct sim_job *j = &s->job[s->queue[k]];
        int least = s->o->any_kind             ? 0
                    : policy >= LIST_RIGHTSIZE ? sim_first(j)
                                               : own_shape(j, policy);
        if (s->o->any_kind || sim_gpus(s, s->queue[k], least) <= left)
            return 1;
    }
    return 0;
}

/* 1: running jobs stopped, and a plan is to be made again. */
static int step(struct sim *s, enum list_policy policy, int may_stop)
{
    size_t n = s->nqueue < (size_t)s->o->depth ? s->nqueue : (size_t)s->o->depth;
    struct plan plan = {0};
    struct topt_alloc_plan a = {0};
    if (!can_start(s, policy, n))
        return 0;
    int rc = make_plan(s, policy, n, &plan);
    if (!rc && may_stop)
        rc = stop_grown(s, &plan);
    if (!rc) {
        rc = topt_allocate(&plan.p, is_moldable(policy) ? s->o->solver : NULL, &a, NULL);
        rc = rc || start_planned(s, n, &plan, &a) ? -1 : 0;
    }
    topt_allocate_fini(&a);
    plan_fini(&plan);
    return rc;
}

int list_step(struct sim *s, enum list_policy policy)
{
    int rc = step(s, policy, policy == LIST_REQUEUE);
    return rc > 0 ? step(s, policy, 0) : rc;
}
