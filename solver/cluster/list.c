/* list.c - policies that start jobs of a queue, which then run to their end: each with a
 * number of GPUs by a rule, under conservative backfill, right-sizing, and moldable backfill. */
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "topt_minmax.h"

/* What right-sizing keeps: a scaling efficiency, and how much slower a job may become. */
static const double least_efficiency = 0.8, most_slowdown = 4;

/* A job's shape as it came, by the rule of the policy. */
static int own_shape(const struct sim_job *j, enum list_policy policy)
{
    if (policy == LIST_ASKED && j->doomed.nodes)
        return SIM_DOOMED;
    if (policy == LIST_FEWEST)
        return 0;
    return policy == LIST_KNEE ? j->knee : j->asked;
}

/* ---- right-sizing ------------------------------------------------------------------ */

struct deal {
    const struct sim *s;
    int64_t *left; /* GPUs of each node */
    int *shape;    /* of each place of the queue */
    size_t *on;    /* its nodes, from its place times the cluster's nodes on */
};

static int64_t fits(const struct deal *d, const struct topt_alloc_shape *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < d->s->o->nodes; i++)
        n += d->left[i] >= s->each.gpus;
    return n >= s->nodes;
}

static size_t *on(const struct deal *d, size_t place)
{
    return d->on + place * (size_t)d->s->o->nodes;
}

/* The job at this place takes a shape, on the fullest nodes. */
static void take(struct deal *d, size_t place, int shape)
{
    const struct topt_alloc_shape *s = &d->s->job[d->s->queue[place]].shape[shape];
    size_t nodes = (size_t)d->s->o->nodes;
    for (int64_t n = 0; n < s->nodes; n++) {
        size_t best = nodes;
        for (size_t i = 0; i < nodes; i++)
            if (d->left[i] >= s->each.gpus &&
                (best == nodes || d->left[i] < d->left[best]))
                best = i;
        d->left[best] -= s->each.gpus;
        on(d, place)[n] = best;
    }
    d->shape[place] = shape;
}

static void give_back(struct deal *d, size_t place)
{
    const struct topt_alloc_shape *s =
        &d->s->job[d->s->queue[place]].shape[d->shape[place]];
    for (int64_t n = 0; n < s->nodes; n++)
        d->left[on(d, place)[n]] += s->each.gpus;
}

static int is_good(const struct sim_job *j, int to)
{
    int64_t least = INT64_MAX;
    for (int k = 0; k < j->nshapes; k++)
        least = topt_min(least, sim_cost(j, k));
    return (double)least >= least_efficiency * (double)sim_cost(j, to) &&
           (double)j->shape[to].run_s <= most_slowdown * (double)j->shape[j->asked].run_s;
}

/* The largest good shape of those from 'first' to 'last' that fits; -1. */
static int largest(const struct deal *d, const struct sim_job *j, int first, int last)
{
    for (int k = last; k >= first; k--)
        if (is_good(j, k) && fits(d, &j->shape[k]))
            return k;
    return -1;
}

/* One that doesn't fit gets the largest shape that does; one that fits in none blocks those
 * behind it; and where nobody waits what is left is grown into. */
static void rightsize(struct deal *d, size_t n)
{
    int is_blocked = 0;
    for (size_t k = 0; k < n && !is_blocked; k++) {
        const struct sim_job *j = &d->s->job[d->s->queue[k]];
        int to = fits(d, &j->shape[j->asked]) ? j->asked : largest(d, j, 0, j->asked - 1);
        is_blocked = to < 0;
        if (!is_blocked)
            take(d, k, to);
    }
    for (size_t k = 0; k < n && !is_blocked; k++) {
        const struct sim_job *j = &d->s->job[d->s->queue[k]];
        give_back(d, k);
        int to = largest(d, j, d->shape[k] + 1, j->nshapes - 1);
        take(d, k, to < 0 ? d->shape[k] : to);
    }
}

static int rightsize_all(const struct sim *s, size_t n, int *shape)
{
    struct deal d = {s, calloc((size_t)s->o->nodes, sizeof *d.left), shape,
                     calloc(n * (size_t)s->o->nodes, sizeof *d.on)};
    int rc = d.left && d.on ? 0 : -1;
    for (int64_t i = 0; !rc && i < s->o->nodes; i++)
        d.left[i] = s->node[i].has.gpus;
    for (size_t k = 0; !rc && k < s->nrunning; k++) {
        const struct sim_job *j = &s->job[s->running[k]];
        const struct topt_alloc_shape *has = sim_shape(j, j->current);
        for (int64_t i = 0; i < has->nodes; i++)
            d.left[j->node[i]] -= has->each.gpus;
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
    int *shape;
};

static void add_running(const struct sim *s, struct plan *plan)
{
    for (size_t k = 0; k < s->nrunning; k++) {
        const struct sim_job *j = &s->job[s->running[k]];
        const struct topt_alloc_shape *has = sim_shape(j, j->current);
        for (int64_t i = 0; i < has->nodes; i++)
            plan->held[plan->p.nheld++] = (struct topt_alloc_held){
                .job = (int64_t)s->running[k] + 1,
                .node = j->node[i],
                .takes = has->each,
                .from_s = j->since_s,
                .to_s = topt_max(j->since_s + has->run_s, s->now_s + 1)};
    }
}

static int make_plan(const struct sim *s, enum list_policy policy, size_t n,
                     struct plan *plan)
{
    int64_t held = 0;
    for (size_t k = 0; k < s->nrunning; k++)
        held += sim_shape(&s->job[s->running[k]], s->job[s->running[k]].current)->nodes;
    plan->held = calloc((size_t)held + 1, sizeof *plan->held);
    plan->job = calloc(n, sizeof *plan->job);
    plan->shape = calloc(n, sizeof *plan->shape);
    if (!plan->held || !plan->job || !plan->shape)
        return -1;
    for (size_t k = 0; k < n; k++)
        plan->shape[k] = own_shape(&s->job[s->queue[k]], policy);
    if (policy == LIST_RIGHTSIZE && rightsize_all(s, n, plan->shape))
        return -1;
    for (size_t k = 0; k < n; k++) {
        const struct sim_job *j = &s->job[s->queue[k]];
        int is_moldable = policy == LIST_MOLDABLE;
        plan->job[k] = (struct topt_alloc_job){
            .id = (int64_t)s->queue[k] + 1,
            .shape = is_moldable ? j->shape : sim_shape(j, plan->shape[k]),
            .nshapes = is_moldable ? j->nshapes : 1,
            .asked = is_moldable ? j->asked : 0};
    }
    plan->p = (struct topt_alloc_problem){.node = s->node,
                                          .held = plan->held,
                                          .job = plan->job,
                                          .nnodes = (size_t)s->o->nodes,
                                          .njobs = n,
                                          .now_s = s->now_s,
                                          .most_permille = s->o->most_permille,
                                          .least_permille = s->o->least_permille,
                                          .share_permille = s->o->share_permille};
    add_running(s, plan);
    return 0;
}

static int start_planned(struct sim *s, enum list_policy policy, size_t n,
                         const struct plan *plan, const struct topt_alloc_plan *a)
{
    int rc = 0;
    for (size_t k = 0; !rc && k < n; k++) {
        int shape = policy == LIST_MOLDABLE ? a->spot[k].shape : plan->shape[k];
        if (a->spot[k].start_s == s->now_s)
            rc = sim_change(s, s->queue[k], shape, a->node + a->spot[k].first);
    }
    sim_sort(s);
    return rc;
}

/* Is enough free for any that waits? */
static int can_start(const struct sim *s, enum list_policy policy, size_t n)
{
    int64_t left = s->o->nodes * s->o->gpus_per_node - s->used;
    for (size_t k = 0; k < n; k++) {
        const struct sim_job *j = &s->job[s->queue[k]];
        int least = policy >= LIST_RIGHTSIZE ? 0 : own_shape(j, policy);
        if (topt_allocate_gpus(sim_shape(j, least)) <= left)
            return 1;
    }
    return 0;
}

int list_step(struct sim *s, enum list_policy policy)
{
    size_t n = s->nqueue < (size_t)s->o->depth ? s->nqueue : (size_t)s->o->depth;
    struct plan plan = {0};
    struct topt_alloc_plan a = {0};
    if (!can_start(s, policy, n))
        return 0;
    int rc = make_plan(s, policy, n, &plan);
    if (!rc)
        rc = topt_allocate(&plan.p, policy == LIST_MOLDABLE ? s->o->solver : NULL, &a,
                           NULL);
    if (!rc)
        rc = start_planned(s, policy, n, &plan, &a);
    topt_allocate_fini(&a);
    free(plan.held);
    free(plan.job);
    free(plan.shape);
    return rc;
}
