/* run.c - the events of a simulation: jobs are submitted, start by a policy, end or die. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
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
    {"requeue", "moldable backfill; jobs that grew stop where others would be late",
     list_step, NULL, LIST_REQUEUE, 0},
    {"gavel", "max-min fair shares of time, in rounds", NULL, rounds_step, ROUNDS_GAVEL,
     360},
    {"sia", "goodput assignment of Sia, in rounds", NULL, rounds_step, ROUNDS_SIA, 60},
    {"rubick", "by the slopes of curves, in rounds", NULL, rounds_step, ROUNDS_RUBICK,
     60},
};
enum { POLICIES = sizeof policies / sizeof *policies };

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

static double normal(int64_t seed, uint64_t place)
{
    double pi = acos(-1);
    return sqrt(-2 * log(draw_share(seed, 2 * place))) *
           cos(2 * pi * draw_share(seed, 2 * place + 1));
}

/* A job whose number of GPUs is too small for its model dies, as with any fewer than fit; its
 * work is that of as many GPU-hours on the fewest that do. */
static void submit(struct sim *s, size_t i, int is_sized, const int64_t *bound_s)
{
    const struct topt_cluster_job *from = &s->t->job[i];
    const struct topt_cluster_curve *all = &s->whole[from->curve];
    struct sim_job *j = &s->job[i];
    int asked = all->first[from->kind], last = all->first[from->kind + 1] - 1;
    int64_t fewest = all->point[asked].gpus;
    double run = (double)from->run_s;
    if (from->gpus < fewest)
        run *= (double)from->gpus / (double)fewest;
    while (asked < last && all->point[asked].gpus < from->gpus)
        asked++;
    *j = (struct sim_job){.curve = &s->curve[from->curve],
                          .s_by_ns = run / (double)all->point[asked].time_ns,
                          .kind = from->kind,
                          .bound_s = bound_s ? bound_s[i] : 0,
                          .error = exp(s->o->error * normal(~s->o->seed, i)),
                          .turn = -1,
                          .current = SIM_WAITS,
                          .left = 1};
    if (sim_first(j) == sim_last(j))
        return;
    j->asked =
        (int)topt_min(sim_first(j) + asked - all->first[from->kind], sim_last(j) - 1);
    j->doomed = from->gpus < fewest && !is_sized ? from->gpus : 0;
    sim_wait(s, i);
}

/* It asks for twice as many, at the end of the queue. */
static void die(struct sim *s, size_t i)
{
    struct sim_job *j = &s->job[i];
    int64_t gpus = 2 * sim_gpus(s, i, SIM_DOOMED);
    s->ret->fate[i].deaths++;
    j->doomed = gpus < j->curve->point[sim_first(j)].gpus ? gpus : 0;
    j->turn = -1;
    sim_wait(s, i);
}

/* ---- failures ---------------------------------------------------------------------- */

/* When the next node fails: INT64_MAX where none does. */
static int64_t next_failure(const struct sim *s, int64_t last_s)
{
    double between = s->o->failure_s / (double)s->nnodes;
    if (s->o->failure_s <= 0)
        return INT64_MAX;
    return last_s + 1 -
           (int64_t)(between *
                     log(draw_share(s->o->seed, ((uint64_t)s->failures << 20) + 1)));
}

/* What a job did since its last checkpoint is lost, and its restart comes on top. */
static int lose(struct sim *s, size_t i)
{
    struct sim_job *j = &s->job[i];
    double before = j->left, step = (double)s->o->checkpoint_s;
    double run = (double)sim_shape(s, i, j->current).run_s;
    int is_doomed = j->current == SIM_DOOMED;
    if (sim_change(s, i, SIM_WAITS, NULL))
        return -1;
    double did = (before - j->left) * run;
    if (!is_doomed)
        j->left = before - (step > 0 ? floor(did / step) * step / run : 0);
    s->ret->fate[i].failures++;
    return 0;
}

/* A node fails: it is down, and the jobs on it wait again.  Where nodes are not told apart it
 * is a GPU, and its job. */
static int fail(struct sim *s)
{
    size_t node = draw_hash(s->o->seed, ((uint64_t)s->failures << 20) + 2) % s->nnodes;
    int64_t at = (int64_t)(draw_hash(s->o->seed, ((uint64_t)s->failures << 20) + 3) %
                           (uint64_t)s->gpus);
    int rc = 0;
    s->failures++;
    s->down_s[node] = s->now_s + s->o->repair_s;
    for (size_t k = s->nrunning; !rc && k-- > 0;) {
        size_t i = s->running[k];
        int64_t gpus = sim_gpus(s, i, s->job[i].current);
        int64_t nodes = sim_shape(s, i, s->job[i].current).nodes;
        int is_hit = !s->job[i].node && at >= 0 && at < gpus;
        at -= gpus;
        for (int64_t n = 0; s->job[i].node && n < nodes; n++)
            is_hit |= s->job[i].node[n] == node;
        if (is_hit)
            rc = lose(s, i);
    }
    return rc;
}

/* ---- time -------------------------------------------------------------------------- */

static int note(struct sim *s)
{
    struct topt_cluster_result *r = s->ret;
    struct topt_cluster_moment m = {s->now_s, s->used, 0};
    for (size_t k = 0; k < s->nqueue; k++) {
        size_t i = s->queue[k];
        m.waiting += sim_gpus(s, i, s->job[i].doomed ? SIM_DOOMED : s->job[i].asked);
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

static int end_jobs(struct sim *s)
{
    while (s->nrunning && s->job[s->running[0]].end_s <= s->now_s) {
        size_t i = s->running[0];
        int is_dead = s->job[i].current == SIM_DOOMED;
        if (sim_change(s, i, SIM_WAITS, NULL))
            return -1;
        sim_leave(s, i);
        s->ret->fate[i].end_s = s->now_s;
        if (is_dead)
            die(s, i);
    }
    return 0;
}

/* The next thing that happens; INT64_MAX: nothing does. */
static int64_t next_time(const struct sim *s, int64_t round_s, int64_t failure_s)
{
    int64_t at = s->next < s->t->n ? s->t->job[s->next].submit_s : INT64_MAX;
    if (s->nrunning)
        at = topt_min(at, s->job[s->running[0]].end_s);
    if (round_s && s->nqueue + s->nrunning)
        at = topt_min(at, (s->now_s / round_s + 1) * round_s);
    for (size_t i = 0; s->nqueue && i < s->nnodes; i++)
        if (s->down_s[i] > s->now_s)
            at = topt_min(at, s->down_s[i]);
    return at < INT64_MAX ? topt_min(at, failure_s) : at;
}

static int simulate(struct sim *s, const struct policy *p, int64_t round_s,
                    const int64_t *bound_s)
{
    int64_t at, failure_s = next_failure(s, 0);
    int is_sized = p->rounds || p->which != LIST_ASKED || s->is_shadow;
    while ((at = next_time(s, round_s, failure_s)) < INT64_MAX) {
        s->now_s = at;
        if (end_jobs(s) || (at == failure_s && fail(s)))
            return -1;
        if (at == failure_s)
            failure_s = next_failure(s, at);
        for (; s->next < s->t->n && s->t->job[s->next].submit_s <= at; s->next++)
            submit(s, s->next, is_sized, bound_s);
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

/* The curves with those points that the kinds have GPUs for. */
static void trim(struct sim *s, size_t ncurves)
{
    for (size_t i = 0; i < ncurves; i++) {
        struct topt_cluster_curve *c = &s->curve[i];
        int n = 0, left[TOPT_CLUSTER_POINTS];
        *c = s->whole[i];
        for (int k = 0; k < c->n; k++) {
            const struct topt_cluster_kind *of = &s->o->kind[c->point[k].kind];
            left[k] = n;
            if (c->point[k].gpus <= of->nodes * of->gpus_per_node)
                c->point[n++] = c->point[k];
        }
        for (int k = 0; k < TOPT_CLUSTER_KINDS; k++)
            c->knee[k] = left[c->knee[k]];
        c->n = n;
        topt_cluster_curve_index(c);
        for (int k = 0; k < TOPT_CLUSTER_KINDS; k++)
            c->knee[k] = (int)topt_min(c->knee[k], topt_max(0, c->first[k + 1] - 1));
    }
}

static int init(struct sim *s)
{
    size_t n = s->t->n, curves = 0;
    for (size_t i = 0; i < n; i++)
        curves = s->t->job[i].curve >= curves ? s->t->job[i].curve + 1 : curves;
    for (int k = 0; k < s->o->nkinds; k++) {
        s->nnodes += (size_t)s->o->kind[k].nodes;
        s->gpus += s->o->kind[k].nodes * s->o->kind[k].gpus_per_node;
    }
    s->node = calloc(s->nnodes, sizeof *s->node);
    s->down_s = calloc(s->nnodes, sizeof *s->down_s);
    s->curve = calloc(curves, sizeof *s->curve);
    s->job = calloc(n, sizeof *s->job);
    s->queue = calloc(n + 1, sizeof *s->queue);
    s->running = calloc(n + 1, sizeof *s->running);
    s->ret->fate = calloc(n, sizeof *s->ret->fate);
    if (!s->node || !s->down_s || !s->curve || !s->job || !s->queue || !s->running ||
        !s->ret->fate)
        return -1;
    size_t at = 0;
    for (int k = 0; k < s->o->nkinds; k++)
        for (int64_t i = 0; i < s->o->kind[k].nodes; i++, at++)
            s->node[at] =
                (struct topt_alloc_node){{.gpus = s->o->kind[k].gpus_per_node}, k};
    trim(s, curves);
    for (size_t i = 0; i < n; i++)
        s->ret->fate[i].start_s = s->ret->fate[i].end_s = -1;
    return 0;
}

static int run(struct sim *s, const struct policy *p, int64_t round_s,
               const int64_t *bound_s)
{
    int rc = init(s) || simulate(s, p, round_s, bound_s) ? -1 : 0;
    for (size_t i = 0; s->job && i < s->t->n; i++)
        free(s->job[i].node);
    free(s->node);
    free(s->down_s);
    free(s->curve);
    free(s->job);
    free(s->queue);
    free(s->running);
    return rc;
}

/* When each job would have to end so as not to take TOPT_CLUSTER_LATER_PERCENT longer than as everybody
 * asked, where jobs ask for enough: in conservative backfill that depends on nothing that
 * comes later.  NULL without memory. */
static int64_t *bounds(const struct topt_cluster_trace *t,
                       const struct topt_cluster_curve *curve,
                       const struct topt_cluster_options *o)
{
    struct topt_cluster_options plain = *o;
    struct topt_cluster_result r = {.n = t->n};
    struct sim s = {.o = &plain, .t = t, .whole = curve, .ret = &r, .is_shadow = 1};
    int64_t *ret = calloc(t->n + 1, sizeof *ret);
    plain.failure_s = plain.error = 0;
    if (ret && run(&s, find("asked"), 0, NULL)) {
        free(ret);
        ret = NULL;
    }
    for (size_t i = 0; ret && i < t->n; i++)
        ret[i] = r.fate[i].end_s < 0
                     ? 0
                     : t->job[i].submit_s + (r.fate[i].end_s - t->job[i].submit_s) *
                                                (100 + TOPT_CLUSTER_LATER_PERCENT) / 100;
    topt_cluster_result_fini(&r);
    return ret;
}

int topt_cluster_run(const struct topt_cluster_trace *t,
                     const struct topt_cluster_curve *curve,
                     const struct topt_cluster_options *o, const char *policy,
                     struct topt_cluster_result *ret, struct topt_error *err)
{
    const struct policy *p = find(policy);
    struct sim s = {.o = o, .t = t, .whole = curve, .ret = ret};
    int64_t *bound_s = NULL;
    *ret = (struct topt_cluster_result){.n = 0};
    if (!p)
        return topt_fail(err, TOPT_ERR_NOTFOUND, "there is no policy '%s'", policy);
    int64_t round_s = p->rounds && o->round_s ? o->round_s : p->round_s;
    if (p->rounds && o->restart_s >= round_s && p->which == ROUNDS_GAVEL)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s: a restart of %lld s leaves nothing of a round of %lld s",
                         policy, (long long)o->restart_s, (long long)round_s);
    *ret = (struct topt_cluster_result){.policy = p->name, .n = t->n};
    int rc = p->which == LIST_REQUEUE && p->list && !(bound_s = bounds(t, curve, o));
    rc = rc || run(&s, p, round_s, bound_s);
    free(bound_s);
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
