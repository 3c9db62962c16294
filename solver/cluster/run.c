/* run.c - the events of a simulation: jobs are submitted, start by a policy, end or die. */
#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "rounds.h"
#include "topt_array.h"
#include "topt_minmax.h"

static const struct policy {
    const char *name, *help;
    int (*list)(struct sim *, enum list_policy);
    int (*rounds)(struct sim *, enum rounds_policy);
    int which;
    int64_t round_s; /* of its own paper */
} policies[] = {
    {"asked", "as asked, by conservative backfill; who asks for too few GPUs dies",
     list_step, NULL, LIST_ASKED, 0},
    {"fewest", "the fewest GPUs that fit", list_step, NULL, LIST_FEWEST, 0},
    {"knee", "the knee of the curve", list_step, NULL, LIST_KNEE, 0},
    {"rightsize", "the largest number that fits in what is idle", list_step, NULL,
     LIST_RIGHTSIZE, 0},
    {"moldable", "moldable backfill, as topt rightsize does it", list_step, NULL,
     LIST_MOLDABLE, 0},
    {"gavel", "max-min fair shares of time, in rounds", NULL, rounds_step, ROUNDS_GAVEL,
     360},
    {"sia", "goodput assignment of Sia, in rounds", NULL, rounds_step, ROUNDS_SIA, 60},
    {"rubick", "by the slopes of curves, in rounds", NULL, rounds_step, ROUNDS_RUBICK,
     60},
};
enum { POLICIES = sizeof policies / sizeof *policies };

/* A job that asks for too few GPUs dies after this share of its time. */
enum { DIES_AFTER = 10 };

static const unsigned char serves_all[1] = {1};

const char *const *topt_cluster_policies(void)
{
    static const char *names[POLICIES + 1];
    for (size_t i = 0; i < POLICIES; i++)
        names[i] = policies[i].name;
    return names;
}

static const struct policy *find(const char *name)
{
    for (size_t i = 0; i < POLICIES; i++)
        if (!strcmp(policies[i].name, name))
            return &policies[i];
    return NULL;
}

const char *topt_cluster_policy_help(const char *name)
{
    const struct policy *p = find(name);
    return p ? p->help : NULL;
}

/* ---- jobs -------------------------------------------------------------------------- */

static struct topt_alloc_shape shape_of(const struct sim *s, int64_t gpus, double run_s)
{
    int64_t each = topt_min(gpus, s->o->gpus_per_node);
    return (struct topt_alloc_shape){.nodes = gpus / each,
                                     .each = {.gpus = each},
                                     .run_s = topt_max(1, (int64_t)run_s),
                                     .serves = serves_all};
}

/* With 'gpus' it dies, as with any fewer than fit; its work is that of as many GPU-hours as
 * it would then have taken. */
static void doom(const struct sim *s, struct sim_job *j, int64_t gpus)
{
    int64_t each = topt_min(gpus, s->o->gpus_per_node);
    j->doomed = shape_of(s, gpus / each * each,
                         (double)sim_cost(j, 0) / (double)(gpus / each * each));
}

static void submit(struct sim *s, size_t i, int is_sized)
{
    const struct topt_cluster_job *from = &s->t->job[i];
    const struct topt_cluster_curve *c = &s->curve[from->curve];
    struct sim_job *j = &s->job[i];
    int asked = 0, is_short = from->gpus < c->point[0].gpus;
    while (asked < c->n - 1 && c->point[asked].gpus < from->gpus)
        asked++;
    double run = is_short
                     ? (double)from->run_s * (double)from->gpus / (double)c->point[0].gpus
                     : (double)from->run_s;
    *j = (struct sim_job){.current = SIM_WAITS, .left = 1};
    for (int k = 0; k < c->n && c->point[k].gpus <= s->o->nodes * s->o->gpus_per_node;
         k++)
        j->shape[j->nshapes++] =
            shape_of(s, c->point[k].gpus,
                     run * (double)c->point[k].time_ns / (double)c->point[asked].time_ns);
    if (!j->nshapes)
        return;
    j->asked = asked < j->nshapes ? asked : j->nshapes - 1;
    j->knee = c->knee < j->nshapes ? c->knee : j->nshapes - 1;
    if (is_short && !is_sized)
        doom(s, j, from->gpus);
    s->queue[s->nqueue++] = i;
}

/* It asks for twice as many, at the end of the queue. */
static void die(struct sim *s, size_t i)
{
    struct sim_job *j = &s->job[i];
    int64_t gpus = 2 * topt_allocate_gpus(&j->doomed);
    s->ret->fate[i].deaths++;
    j->doomed = (struct topt_alloc_shape){.nodes = 0};
    if (gpus < topt_allocate_gpus(&j->shape[0]))
        doom(s, j, gpus);
    s->queue[s->nqueue++] = i;
}

static int64_t end_of(const struct sim *s, size_t i)
{
    const struct sim_job *j = &s->job[i];
    const struct topt_alloc_shape *shape = sim_shape(j, j->current);
    if (j->current == SIM_DOOMED)
        return j->since_s + topt_max(1, shape->run_s / DIES_AFTER);
    return j->since_s + j->pause_s +
           topt_max(1, (int64_t)(j->left * (double)shape->run_s + 0.5));
}

/* ---- time -------------------------------------------------------------------------- */

static int note(struct sim *s)
{
    struct topt_cluster_result *r = s->ret;
    struct topt_cluster_moment m = {s->now_s, s->used, 0};
    for (size_t k = 0; k < s->nqueue; k++) {
        const struct sim_job *j = &s->job[s->queue[k]];
        m.waiting +=
            topt_allocate_gpus(j->doomed.nodes ? &j->doomed : &j->shape[j->asked]);
    }
    const struct topt_cluster_moment *last =
        r->nmoments ? &r->moment[r->nmoments - 1] : NULL;
    if (last && last->used == m.used && last->waiting == m.waiting)
        return 0;
    if (TOPT_ROOM(r->moment, r->nmoments, r->room_moments, 1024))
        return -1;
    r->moment[r->nmoments++] = m;
    return 0;
}

static void end_jobs(struct sim *s)
{
    size_t n = s->nrunning;
    for (size_t k = 0; k < n; k++) {
        size_t i = s->running[k];
        int is_dead = s->job[i].current == SIM_DOOMED;
        if (end_of(s, i) > s->now_s)
            continue;
        sim_change(s, i, SIM_WAITS, NULL);
        s->ret->fate[i].end_s = s->now_s;
        if (is_dead)
            die(s, i);
    }
    sim_sort(s);
}

/* The next thing that happens; INT64_MAX: nothing does. */
static int64_t next_time(const struct sim *s, int64_t round_s)
{
    int64_t at = s->next < s->t->n ? s->t->job[s->next].submit_s : INT64_MAX;
    for (size_t k = 0; k < s->nrunning; k++)
        at = topt_min(at, end_of(s, s->running[k]));
    if (round_s && s->nqueue + s->nrunning)
        at = topt_min(at, (s->now_s / round_s + 1) * round_s);
    return at;
}

static int simulate(struct sim *s, const struct policy *p, int64_t round_s)
{
    int64_t at;
    while ((at = next_time(s, round_s)) < INT64_MAX) {
        s->now_s = at;
        end_jobs(s);
        for (; s->next < s->t->n && s->t->job[s->next].submit_s <= at; s->next++)
            submit(s, s->next, p->rounds || p->which != LIST_ASKED);
        int rc = 0;
        if (p->list)
            rc = p->list(s, (enum list_policy)p->which);
        else if (at % round_s == 0)
            rc = p->rounds(s, (enum rounds_policy)p->which);
        if (rc || note(s))
            return -1;
    }
    return 0;
}

static int init(struct sim *s)
{
    size_t nodes = (size_t)s->o->nodes, n = s->t->n;
    s->node = calloc(nodes, sizeof *s->node);
    s->job = calloc(n, sizeof *s->job);
    s->queue = calloc(n, sizeof *s->queue);
    s->running = calloc(n, sizeof *s->running);
    s->ret->fate = calloc(n, sizeof *s->ret->fate);
    if (!s->node || !s->job || !s->queue || !s->running || !s->ret->fate)
        return -1;
    for (size_t i = 0; i < nodes; i++)
        s->node[i].has.gpus = s->o->gpus_per_node;
    for (size_t i = 0; i < n; i++)
        s->ret->fate[i].start_s = s->ret->fate[i].end_s = -1;
    return 0;
}

int topt_cluster_run(const struct topt_cluster_trace *t,
                     const struct topt_cluster_curve *curve,
                     const struct topt_cluster_options *o, const char *policy,
                     struct topt_cluster_result *ret, struct topt_error *err)
{
    const struct policy *p = find(policy);
    struct sim s = {.o = o, .t = t, .curve = curve, .ret = ret};
    *ret = (struct topt_cluster_result){.n = 0};
    if (!p)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "there is no policy '%s'", policy);
    int64_t round_s = p->rounds && o->round_s ? o->round_s : p->round_s;
    if (p->rounds && o->restart_s >= round_s && p->which == ROUNDS_GAVEL)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s: a restart of %lld s leaves nothing of a round of %lld s",
                         policy, (long long)o->restart_s, (long long)round_s);
    *ret = (struct topt_cluster_result){.policy = p->name, .n = t->n};
    int rc = init(&s) || simulate(&s, p, round_s);
    for (size_t i = 0; s.job && i < t->n; i++)
        free(s.job[i].node);
    free(s.node);
    free(s.job);
    free(s.queue);
    free(s.running);
    if (!rc)
        return 0;
    topt_cluster_result_fini(ret);
    return topt_nomem(err, "the cluster");
}

void topt_cluster_result_fini(struct topt_cluster_result *r)
{
    free(r->fate);
    free(r->moment);
    *r = (struct topt_cluster_result){0};
}
