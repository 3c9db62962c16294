/* policy.c - see policy.h. */
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"

enum { USERS_MOST = 256 };

/* What the jobs looked at so far leave of a node. */
struct left {
    int64_t gpus[SITE_TYPES], cpus, memory_mib;
};

/* What a job takes of each of its nodes. */
struct need {
    int64_t nodes, gpus, cpus, memory_mib;
};

/* A node that was dealt to a job. */
struct spot {
    int64_t job;
    size_t node;
    int type;
    struct need need;
};

struct deal {
    const struct site_slurm *slurm;
    struct left *left; /* of each node */
    struct spot *spot;
    size_t nspots, room; /* spots that there are, and that there is memory for */
    int oom;
    const struct rightsize_limits *limits;
    const struct rightsize_past *past;
    size_t npast;
    char blocked[4096]; /* partitions of jobs that fit in no shape, with commas between */
    int64_t blocker;    /* the first of these jobs */
    struct {
        int64_t uid, changes;
    } user[USERS_MOST];
    int nusers;
    int64_t changes;
};

/* ---- what is idle ------------------------------------------------------------------ */

static void measure(struct deal *d, struct rightsize_plan *ret)
{
    for (size_t i = 0; i < d->slurm->nnodes; i++) {
        const struct site_node *n = &d->slurm->node[i];
        d->left[i].cpus = n->cpus - n->cpus_used;
        d->left[i].memory_mib = n->memory_mib - n->memory_used_mib;
        for (int k = 0; k < n->ntypes; k++) {
            d->left[i].gpus[k] = n->gpu[k].count - n->gpu[k].used;
            if (!n->is_up || n->is_reserved)
                continue;
            ret->gpus += n->gpu[k].count;
            ret->idle += d->left[i].gpus[k] > 0 ? d->left[i].gpus[k] : 0;
        }
    }
}

/* The type of which the node has enough left for the job: its place, or -1. */
static int type_for(const struct deal *d, size_t node, const struct site_queued *j,
                    const struct need *need)
{
    const struct site_node *n = &d->slurm->node[node];
    const struct left *l = &d->left[node];
    if (n->is_reserved || !site_node_serves(n, j->partition, j->constraint) ||
        l->cpus < need->cpus || l->memory_mib < need->memory_mib)
        return -1;
    for (int k = 0; k < n->ntypes; k++)
        if (l->gpus[k] >= need->gpus &&
            (!*j->gpu_type || !strcmp(j->gpu_type, n->gpu[k].type)))
            return k;
    return -1;
}

static int64_t nodes_for(const struct deal *d, const struct site_queued *j,
                         const struct need *need)
{
    int64_t n = 0;
    for (size_t i = 0; i < d->slurm->nnodes; i++)
        n += type_for(d, i, j, need) >= 0;
    return n;
}

/* The fullest node where the job still has room: its place, or that behind the last. */
static size_t tightest(const struct deal *d, const struct site_queued *j,
                       const struct need *need, int *ret_type)
{
    size_t best = d->slurm->nnodes;
    for (size_t i = 0; i < d->slurm->nnodes; i++) {
        int k = type_for(d, i, j, need);
        if (k < 0 || (best < d->slurm->nnodes &&
                      d->left[i].gpus[k] >= d->left[best].gpus[*ret_type]))
            continue;
        best = i;
        *ret_type = k;
    }
    return best;
}

static void move(struct deal *d, const struct spot *s, int sign)
{
    struct left *l = &d->left[s->node];
    l->gpus[s->type] += sign * s->need.gpus;
    l->cpus += sign * s->need.cpus;
    l->memory_mib += sign * s->need.memory_mib;
}

static void take(struct deal *d, const struct site_queued *j, const struct need *need)
{
    for (int64_t left = need->nodes; left > 0; left--) {
        int type = -1;
        size_t node = tightest(d, j, need, &type);
        if (node == d->slurm->nnodes)
            return;
        if (d->nspots == d->room) {
            size_t room = d->room ? 2 * d->room : 64;
            struct spot *more = realloc(d->spot, room * sizeof *more);
            if (!more) {
                d->oom = 1;
                return;
            }
            d->spot = more;
            d->room = room;
        }
        d->spot[d->nspots] = (struct spot){j->id, node, type, *need};
        move(d, &d->spot[d->nspots++], -1);
    }
}

static void give_back(struct deal *d, const struct site_queued *j)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->nspots; i++) {
        if (d->spot[i].job == j->id)
            move(d, &d->spot[i], 1);
        else
            d->spot[kept++] = d->spot[i];
    }
    d->nspots = kept;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What the job needs as it is. */
static struct need need_of(const struct site_queued *j)
{
    int64_t nodes = most_of(j->nodes, 1);
    int64_t gpus = j->gpus_per_node ? j->gpus_per_node : (j->gpus + nodes - 1) / nodes;
    int64_t cpus = most_of(j->cpus_per_node, (j->cpus + nodes - 1) / nodes);
    int64_t memory = j->memory_mib           ? j->memory_mib
                     : j->memory_per_cpu_mib ? j->memory_per_cpu_mib * cpus
                                             : j->memory_per_gpu_mib * gpus;
    return (struct need){nodes, gpus, cpus, memory};
}

/* What it needs in another shape. */
static struct need need_in(const struct site_queued *j,
                           const struct topt_elastic_shape *s)
{
    int64_t tasks = j->elastic.by_node ? 1 : s->gpus_per_node;
    int64_t cpus = tasks * most_of(j->cpus_per_task, 1);
    int64_t memory = j->memory_mib           ? j->memory_mib
                     : j->memory_per_cpu_mib ? j->memory_per_cpu_mib * cpus
                                             : j->memory_per_gpu_mib * s->gpus_per_node;
    return (struct need){s->nodes, s->gpus_per_node, cpus, memory};
}

static int fits(const struct deal *d, const struct site_queued *j,
                const struct need *need)
{
    return nodes_for(d, j, need) >= need->nodes;
}

/* ---- which shapes there are -------------------------------------------------------- */

/* GPU-seconds of a step, and the least of those of all shapes. */
static double cost_of(const struct topt_elastic_shape *s)
{
    return (double)s->time_ns * (double)topt_elastic_gpus(s);
}

static double least_cost(const struct topt_elastic *e)
{
    double least = cost_of(&e->shape[0]);
    for (int i = 1; i < e->n; i++)
        least = cost_of(&e->shape[i]) < least ? cost_of(&e->shape[i]) : least;
    return least;
}

/* The limit that a job has in another shape: it follows the predicted time, but for
 * shapes that are faster than what was submitted. */
static int64_t time_in(const struct site_queued *j, int from, int to)
{
    const struct topt_elastic *e = &j->elastic;
    double own = (double)e->shape[e->submitted].time_ns;
    double was = (double)e->shape[from].time_ns, is = (double)e->shape[to].time_ns;
    was = was > own ? was : own;
    is = is > own ? is : own;
    if (!j->time_s || was == is)
        return j->time_s;
    int64_t minutes = (int64_t)((double)j->time_s * is / was / 60 + 0.999);
    return most_of(minutes, 1) * 60;
}

/* Do partition, QOS and account allow it? */
static int allowed(const struct deal *d, const struct site_queued *j,
                   const struct topt_elastic_shape *s, int64_t time_s)
{
    struct site_job job;
    struct site_bound b;
    site_queued_as_job(j, &job);
    if (time_s)
        snprintf(job.time, sizeof job.time, "%lld:%02lld", (long long)(time_s / 60),
                 (long long)(time_s % 60));
    if (site_bound(d->slurm, NULL, &job, "", &b, &(struct topt_error){0}))
        return 0;
    return (!b.nodes || s->nodes <= b.nodes) &&
           (!b.gpus_per_node || s->gpus_per_node <= b.gpus_per_node) &&
           (!b.gpus || topt_elastic_gpus(s) <= b.gpus);
}

/* May the job have this shape, but for what partition, QOS and account allow? */
static int is_good(const struct deal *d, const struct site_queued *j, int to)
{
    const struct topt_elastic *e = &j->elastic;
    const struct rightsize_limits *l = d->limits;
    const struct topt_elastic_shape *s = &e->shape[to];
    double efficiency = e->min_efficiency > 0 ? e->min_efficiency : l->min_efficiency;
    int64_t gpus = topt_elastic_gpus(s);
    if (gpus < l->min_gpus || (l->max_gpus && gpus > l->max_gpus))
        return 0;
    return to == e->submitted ||
           (least_cost(e) >= efficiency * cost_of(s) &&
            (double)s->time_ns <=
                l->max_slowdown * (double)e->shape[e->submitted].time_ns);
}

/* The largest good shape of more than 'above' GPUs, at most 'most', that fits in what is left; -1.
 */
static int largest(const struct deal *d, const struct site_queued *j, int from,
                   int64_t above, int64_t most)
{
    const struct topt_elastic *e = &j->elastic;
    int best = -1;
    for (int i = 0; i < e->n; i++) {
        const struct topt_elastic_shape *s = &e->shape[i];
        int64_t gpus = topt_elastic_gpus(s);
        int64_t of_best = best < 0 ? 0 : topt_elastic_gpus(&e->shape[best]);
        struct need need = need_in(j, s);
        int is_better =
            gpus > of_best || (gpus == of_best && s->time_ns < e->shape[best].time_ns);
        if (i != from && is_better && gpus > above && gpus <= most && is_good(d, j, i) &&
            fits(d, j, &need) && allowed(d, j, s, time_in(j, from, i)))
            best = i;
    }
    return best;
}

/* ---- who may be changed ------------------------------------------------------------ */

static int shares(const char *partitions, const char *with)
{
    char names[SITE_WORDS], *save = NULL;
    snprintf(names, sizeof names, "%s", partitions);
    for (char *p = strtok_r(names, ",", &save); p; p = strtok_r(NULL, ",", &save))
        if (site_has_word(with, p))
            return 1;
    return 0;
}

static const struct rightsize_past *past_of(const struct deal *d,
                                            const struct site_queued *j)
{
    for (size_t i = 0; i < d->npast; i++)
        if (d->past[i].job == j->id && !strcmp(d->past[i].submitted, j->submitted))
            return &d->past[i];
    return NULL;
}

static int64_t *changes_of(struct deal *d, int64_t uid)
{
    int i = 0;
    while (i < d->nusers && d->user[i].uid != uid)
        i++;
    if (i == USERS_MOST)
        return NULL;
    if (i == d->nusers) {
        d->user[i].uid = uid;
        d->user[i].changes = 0;
        d->nusers++;
    }
    return &d->user[i].changes;
}

/* Why this job is not to be touched, in 'why'; 1 where that is so. */
static int is_fixed(struct deal *d, const struct site_queued *j, int from, char *why,
                    size_t size)
{
    const struct rightsize_past *past = past_of(d, j);
    const int64_t *of_user = changes_of(d, j->uid);
    const char *word = NULL;
    why[0] = '\0';
    if (!j->is_batch)
        word = "it is no batch job";
    else if (!j->is_plain)
        word = "it is an array, names nodes, or can't be read";
    else if (j->nodes != j->most_nodes)
        word = "Slurm chooses its number of nodes";
    else if (from < 0)
        word = "no plan of its present shape travels with it";
    else if (d->limits->partitions && !shares(j->partition, d->limits->partitions))
        word = "its partition is not among those of --partition";
    else if (past && past->is_undone)
        word = "a change of it was undone";
    else if (past && past->age_s < d->limits->settle_s)
        word = "it was changed a moment ago (--settle)";
    else if (d->changes >= d->limits->jobs)
        word = "the run has changed enough (--max-jobs)";
    else if (!of_user || *of_user >= d->limits->per_user)
        word = "the run has changed enough of its user's (--max-per-user)";
    if (word)
        snprintf(why, size, "%s", word);
    return word != NULL;
}

static void change(struct deal *d, struct rightsize_choice *c, int to)
{
    int64_t *of_user = changes_of(d, c->job->uid);
    c->to = to;
    c->time_s = time_in(c->job, c->from, to);
    d->changes++;
    if (of_user)
        ++*of_user;
}

/* ---- the walk ---------------------------------------------------------------------- */

static void block(struct deal *d, const struct site_queued *j)
{
    size_t used = strlen(d->blocked);
    if (!d->blocker)
        d->blocker = j->id;
    if (used + strlen(j->partition) + 2 < sizeof d->blocked)
        snprintf(d->blocked + used, sizeof d->blocked - used, "%s%s", used ? "," : "",
                 j->partition);
}

/* A waiting job; 'c' NULL: one that didn't agree. */
static void deal_to(struct deal *d, const struct site_queued *j,
                    struct rightsize_choice *c)
{
    struct need need = need_of(j);
    char why[160] = "";
    if (!need.gpus) /* it takes nothing that is dealt here */
        return;
    int is_free = c && !is_fixed(d, j, c->from, why, sizeof why);
    int fits_now = fits(d, j, &need), to = -1;
    if (shares(j->partition, d->blocked)) {
        if (c)
            snprintf(c->why, sizeof c->why, "job %lld before it waits for GPUs",
                     (long long)d->blocker);
        block(d, j);
        return;
    }
    if (is_free) {
        const struct topt_elastic_shape *own = &j->elastic.shape[j->elastic.submitted];
        int64_t now = topt_elastic_gpus(&j->elastic.shape[c->from]);
        int64_t most = fits_now ? topt_elastic_gpus(own) : now - 1;
        to = largest(d, j, c->from, fits_now ? now : 0, most);
    }
    if (to >= 0) {
        change(d, c, to);
        need = need_in(j, &j->elastic.shape[to]);
        snprintf(c->why, sizeof c->why,
                 fits_now ? "as many of its own GPUs are idle"
                          : "it waits, and the largest that fits now is this");
    } else if (c) {
        snprintf(c->why, sizeof c->why, "%s%s%s",
                 fits_now ? "it fits in what is idle" : "it fits in no shape now",
                 *why ? "; " : "", why);
    }
    if (to >= 0 || fits_now)
        take(d, j, &need);
    else
        block(d, j);
}

/* What is left goes to those that are about to start; their own share is free for them, too. */
static void grow(struct deal *d, struct rightsize_choice *c)
{
    const struct site_queued *j = c->job;
    char why[160];
    if (c->to >= 0 || shares(j->partition, d->blocked) ||
        is_fixed(d, j, c->from, why, sizeof why))
        return;
    give_back(d, j);
    int64_t now = topt_elastic_gpus(&j->elastic.shape[c->from]);
    int to = largest(d, j, c->from, now, INT64_MAX);
    struct need need = to < 0 ? need_of(j) : need_in(j, &j->elastic.shape[to]);
    take(d, j, &need);
    if (to < 0)
        return;
    change(d, c, to);
    snprintf(c->why, sizeof c->why, "no other job waits for these GPUs");
}

static int by_priority(const void *a, const void *b)
{
    const struct site_queued *x = *(const struct site_queued *const *)a;
    const struct site_queued *y = *(const struct site_queued *const *)b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static void walk(struct deal *d, const struct site_queue *q,
                 const struct site_queued **order, struct rightsize_plan *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < q->n; i++)
        if (site_waits(&q->job[i]))
            order[n++] = &q->job[i];
    qsort(order, n, sizeof *order, by_priority);
    for (size_t i = 0; i < n; i++) {
        const struct site_queued *j = order[i];
        struct rightsize_choice *c = j->is_elastic ? &ret->choice[ret->n++] : NULL;
        if (c)
            *c = (struct rightsize_choice){
                .job = j,
                .to = -1,
                .time_s = j->time_s,
                .from = topt_elastic_find(&j->elastic, j->nodes, j->gpus_per_node)};
        deal_to(d, j, c);
    }
    for (size_t i = 0; i < ret->n; i++)
        grow(d, &ret->choice[i]);
    ret->changes = (size_t)d->changes;
}

int rightsize_decide(const struct site_slurm *s, const struct site_queue *q,
                     const struct rightsize_past *past, size_t npast,
                     const struct rightsize_limits *limits, struct rightsize_plan *ret,
                     struct topt_error *err)
{
    struct deal d = {.slurm = s, .limits = limits, .past = past, .npast = npast};
    const struct site_queued **order = calloc(q->n + 1, sizeof *order);
    *ret = (struct rightsize_plan){.choice = calloc(q->n + 1, sizeof *ret->choice)};
    d.left = calloc(s->nnodes + 1, sizeof *d.left);
    int rc = !order || !ret->choice || !d.left;
    if (!rc) {
        measure(&d, ret);
        walk(&d, q, order, ret);
        rc = d.oom;
    }
    free(d.left);
    free(d.spot);
    free(order);
    if (!rc)
        return 0;
    rightsize_plan_fini(ret);
    return topt_nomem(err, "the queue");
}

void rightsize_plan_fini(struct rightsize_plan *p)
{
    free(p->choice);
    *p = (struct rightsize_plan){0};
}
