/* policy.c - see policy.h. */
#include "policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "model.h"
#include "reservation.h"
#include "topt_minmax.h"

enum { USERS_MOST = 256, ROUNDS_MOST = 8 };

struct deal {
    const struct site_slurm *slurm;
    const struct rightsize_limits *limits;
    const struct rightsize_past *past;
    size_t npast;
    struct model m;
    struct topt_alloc_plan plan;
    struct spell {
        int64_t start_s, end_s; /* -1: never */
    } * asked; /* of each job, as everybody asked, before arrays are given a shape */
    struct rightsize_plan *ret;
    struct {
        int64_t uid, changes;
    } user[USERS_MOST];
    int nusers;
};

/* ---- which shapes there are -------------------------------------------------------- */

/* GPU-seconds of a step, and the least of those of all shapes of the kind. */
static double cost_of(const struct topt_elastic_shape *s)
{
    return (double)s->time_ns * (double)topt_elastic_gpus(s);
}

/* Of the same kind of GPUs: a second of one is not a second of another. */
static double least_cost(const struct topt_elastic *e, const struct topt_elastic_shape *s)
{
    double least = cost_of(s);
    for (int i = 0; i < e->n; i++)
        if (e->shape[i].kind == s->kind && cost_of(&e->shape[i]) < least)
            least = cost_of(&e->shape[i]);
    return least;
}

/* Does this user send jobs there?  That root may is no reason, nor that nobody knows the user. */
static int takes_jobs(const struct deal *d, const char *partition, const char *user)
{
    for (size_t i = 0; i < d->slurm->npartitions; i++) {
        const struct site_partition *p = &d->slurm->partition[i];
        if (!strcmp(p->name, partition))
            return p->is_up && !p->is_root_only &&
                   (!*p->allow_groups || site_is_in_group(p->allow_groups, user) > 0);
    }
    return 0;
}

/* Do a partition, of which there may be several, QOS and account allow it? */
static int allowed_in(const struct deal *d, const struct site_queued *j,
                      const struct topt_elastic_shape *s, int64_t time_s,
                      const char *partitions)
{
    struct site_job job;
    struct site_bound b;
    site_queued_as_job(j, &job);
    snprintf(job.partition, sizeof job.partition, "%s", partitions);
    if (time_s)
        snprintf(job.time, sizeof job.time, "%lld:%02lld", (long long)(time_s / 60),
                 (long long)(time_s % 60));
    if (site_bound(d->slurm, NULL, &job, "", &b, &(struct topt_error){0}))
        return 0;
    return (!b.nodes || s->nodes <= b.nodes) &&
           (!b.gpus_per_node || s->gpus_per_node <= b.gpus_per_node) &&
           (!b.gpus || topt_elastic_gpus(s) <= b.gpus);
}

/* What a job's comment says of other kinds its owner may have written by hand: each partition has to be
 * one that would take the job from its owner, and of those that are right-sized. */
static int allowed(const struct deal *d, const struct site_queued *j,
                   const struct topt_elastic_shape *s, int64_t time_s)
{
    char partitions[SITE_WORDS], *save = NULL;
    if (s->kind == site_queued_kind(j))
        return allowed_in(d, j, s, time_s, j->partition);
    site_queued_partitions(j, s->kind, partitions);
    for (char *p = strtok_r(partitions, ",", &save); p; p = strtok_r(NULL, ",", &save))
        if (!takes_jobs(d, p, j->user) || !allowed_in(d, j, s, time_s, p) ||
            (d->limits->partitions && !site_has_word(d->limits->partitions, p)))
            return 0;
    return 1;
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
           (least_cost(e, s) >= efficiency * cost_of(s) &&
            (double)s->time_ns <=
                l->max_slowdown * (double)e->shape[e->submitted].time_ns);
}

static void allow_all(const struct deal *d, struct model_job *j)
{
    const struct topt_elastic *e = &j->job->elastic;
    for (int i = 0; i < e->n; i++)
        if (is_good(d, j->job, i) &&
            allowed(d, j->job, &e->shape[i], model_limit(j->job, j->from, i)))
            model_allow(j, i);
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

/* Why this job is not to be touched; NULL where it may be. */
static const char *why_fixed(const struct deal *d, const struct model_job *m)
{
    const struct site_queued *j = m->job;
    const struct rightsize_past *past = past_of(d, j);
    if (!j->is_elastic)
        return "it did not agree to another number";
    if (!j->is_batch)
        return "it is no batch job";
    if (!j->is_plain)
        return "it names nodes, or can't be read";
    if (j->array && !site_is_whole_array(j))
        return "tasks of its array have started, and Slurm resizes none then";
    if (m->from < 0)
        return "no plan of its present shape travels with it";
    if (d->limits->partitions && !shares(j->partition, d->limits->partitions))
        return "its partition is not among those of --partition";
    if (past && past->is_undone)
        return "a change of it was undone";
    if (past && past->age_s < d->limits->settle_s)
        return "it was changed a moment ago (--settle)";
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

/* ---- the plan ---------------------------------------------------------------------- */

/* The shape in which the job starts now, where that is another than it has; -1. */
static int changes_to(const struct deal *d, size_t i)
{
    const struct model_job *j = &d->m.job[i];
    const struct topt_alloc_spot *s = &d->plan.spot[i];
    int to = j->elastic[s->shape];
    return s->start_s == d->m.p.now_s && to >= 0 && to != j->from ? to : -1;
}

/* Changes beyond what a run may do, whose jobs are rigid from now on: how many. */
static int cut(struct deal *d)
{
    int64_t changes = 0;
    int cuts = 0;
    d->nusers = 0;
    for (size_t i = 0; i < d->m.njobs; i++) {
        struct rightsize_choice *c = &d->ret->choice[i];
        int64_t *of_user = changes_of(d, c->job->uid);
        if (changes_to(d, i) < 0 || c->task)
            continue;
        if (changes < d->limits->jobs && of_user && *of_user < d->limits->per_user) {
            changes++;
            ++*of_user;
            continue;
        }
        snprintf(c->why, sizeof c->why, "%s",
                 changes < d->limits->jobs
                     ? "the run has changed enough of its user's (--max-per-user)"
                     : "the run has changed enough (--max-jobs)");
        for (size_t k = model_tasks(&d->m, i); k-- > 0;)
            model_fix(&d->m.job[i + k]);
        cuts++;
    }
    return cuts;
}

/* Tasks of an array have one shape, in which the first of them starts now, or stay as they
 * are: how many arrays that settles. */
static int settle(struct deal *d)
{
    int changes = 0;
    for (size_t i = 0, n; i < d->m.njobs; i += n) {
        n = model_tasks(&d->m, i);
        int to = changes_to(d, i);
        if (n == 1 || d->m.job[i].nshapes == 1)
            continue;
        for (size_t k = i; k < i + n; k++)
            model_choose(&d->m.job[k], to < 0 ? d->m.job[k].from : to);
        changes++;
    }
    return changes;
}

static int64_t end_at(const struct deal *d, size_t i, const struct topt_alloc_spot *s)
{
    return topt_allocate_end(&d->m.p.job[i], s);
}

/* Ends anything later than as everybody asked?  Then arrays stay as they are: how many had
 * another shape. */
static int give_up(struct deal *d)
{
    int late = 0, changes = 0;
    for (size_t i = 0; i < d->m.njobs; i++)
        late |=
            d->asked[i].end_s >= 0 && end_at(d, i, &d->plan.spot[i]) > d->asked[i].end_s;
    for (size_t i = 0, n; late && i < d->m.njobs; i += n) {
        n = model_tasks(&d->m, i);
        if (n == 1 || d->m.job[i].elastic[0] == d->m.job[i].from)
            continue;
        for (size_t k = i; k < i + n; k++)
            model_fix(&d->m.job[k]);
        snprintf(d->ret->choice[i].why, sizeof d->ret->choice[i].why,
                 "another number of GPUs for all of its tasks would make one of them, or "
                 "another job, late");
        changes++;
    }
    return changes;
}

static int remember(struct deal *d)
{
    d->asked = calloc(d->m.njobs + 1, sizeof *d->asked);
    for (size_t i = 0; d->asked && i < d->m.njobs; i++)
        d->asked[i] =
            (struct spell){d->plan.asked[i].start_s, end_at(d, i, &d->plan.asked[i])};
    return d->asked ? 0 : -1;
}

/* Plan until the changes are no more than a run may do, and arrays have one shape; each time
 * fewer jobs may change. */
static int plan(struct deal *d, struct topt_error *err)
{
    for (int n = 0;; n++) {
        for (size_t i = 0; n == ROUNDS_MOST && i < d->m.njobs; i++)
            model_fix(&d->m.job[i]);
        model_update(&d->m);
        if (topt_allocate(&d->m.p, d->limits->solver, &d->plan, err))
            return -1;
        if (!n && remember(d))
            return topt_nomem(err, "the queue");
        if (!(settle(d) + cut(d)) && !give_up(d))
            return 0;
        topt_allocate_fini(&d->plan);
    }
}

/* What an array gains. */
static void tell_array(const struct deal *d, size_t i, char ret[240])
{
    int64_t n = (int64_t)model_tasks(&d->m, i), earlier = 0;
    const struct model_job *j = &d->m.job[i];
    for (size_t k = i; k < i + (size_t)n; k++)
        earlier += topt_max(0, d->asked[k].end_s - end_at(d, k, &d->plan.spot[k]));
    snprintf(
        ret, 240,
        "with %lld GPUs for each of its %lld tasks they end %lld min earlier, on "
        "average, than with the %lld that they asked for",
        (long long)topt_allocate_gpus(&j->shape[d->plan.spot[i].shape]),
        (long long)j->job->array_tasks, (long long)(earlier / n / 60),
        (long long)topt_elastic_gpus(&j->job->elastic.shape[j->job->elastic.submitted]));
}

/* Where it goes, before the words of what it gains. */
static void tell_kind(const struct site_queued *j, int to, char words[240])
{
    char partitions[SITE_WORDS], was[240];
    site_queued_partitions(j, j->elastic.shape[to].kind, partitions);
    snprintf(was, sizeof was, "%s", words);
    snprintf(words, 240, "in partition %.60s %.160s", partitions, was);
}

static int tell(struct deal *d, struct topt_error *err)
{
    for (size_t i = 0; i < d->m.njobs; i++) {
        struct rightsize_choice *c = &d->ret->choice[i];
        char words[240];
        c->gpus = topt_allocate_gpus(&d->m.p.job[i].shape[d->plan.spot[i].shape]);
        c->start_s = d->plan.spot[i].start_s;
        c->asked_start_s = d->asked[i].start_s;
        c->end_s = end_at(d, i, &d->plan.spot[i]);
        c->asked_end_s = d->asked[i].end_s;
        c->to = changes_to(d, i);
        if (c->to >= 0)
            c->time_s = model_limit(c->job, c->from, c->to);
        d->ret->changes += c->to >= 0 && !c->task;
        if (topt_allocate_why(&d->m.p, &d->plan, i, words, sizeof words, err))
            return -1;
        if (c->to >= 0 && model_tasks(&d->m, i) > 1)
            tell_array(d, i, words);
        if (c->to >= 0 &&
            c->job->elastic.shape[c->to].kind != c->job->elastic.shape[c->from].kind)
            tell_kind(c->job, c->to, words);
        if (*c->why)
            snprintf(words, sizeof words, "%s", c->why);
        snprintf(c->why, sizeof c->why, "%s", words);
    }
    return 0;
}

static int decide(struct deal *d, const struct site_queue *q, int64_t now_s,
                  struct topt_error *err)
{
    const struct rightsize_limits *l = d->limits;
    if (model_init(d->slurm, q, now_s, &d->m, err))
        return -1;
    d->m.p.most_permille = 1000 + (int64_t)(1000 * l->most_overhead);
    d->m.p.least_permille = 1000 + (int64_t)(1000 * l->least_overhead);
    d->m.p.share_permille = (int64_t)(1000 * l->most_share);
    d->m.p.reserve_permille = (int64_t)(1000 * l->reserve);
    d->ret->idle = d->m.idle;
    d->ret->gpus = d->m.gpus;
    d->ret->n = d->m.njobs;
    if (!(d->ret->choice = calloc(d->m.njobs + 1, sizeof *d->ret->choice)))
        return topt_nomem(err, "the queue");
    for (size_t i = 0; i < d->m.njobs; i++) {
        struct model_job *j = &d->m.job[i];
        const char *why = why_fixed(d, j);
        d->ret->choice[i] = (struct rightsize_choice){.job = j->job,
                                                      .task = j->task,
                                                      .from = j->from,
                                                      .to = -1,
                                                      .time_s = j->job->time_s};
        if (!why)
            allow_all(d, j);
        else if (j->job->is_elastic)
            snprintf(d->ret->choice[i].why, sizeof d->ret->choice[i].why, "%s", why);
    }
    model_update(&d->m);
    if (l->requeues && stops_choose(d->slurm, q, l->settle_s, &d->m, &d->ret->stop,
                                    &d->ret->nstops, err))
        return -1;
    if (plan(d, err) || tell(d, err))
        return -1;
    d->ret->has_milp = d->plan.has_milp;
    return 0;
}

int rightsize_decide(const struct site_slurm *s, const struct site_queue *q,
                     const struct rightsize_past *past, size_t npast,
                     const struct rightsize_limits *limits, int64_t now_s,
                     struct rightsize_plan *ret, struct topt_error *err)
{
    struct deal d = {
        .slurm = s, .limits = limits, .past = past, .npast = npast, .ret = ret};
    *ret = (struct rightsize_plan){.n = 0};
    int rc = decide(&d, q, now_s, err);
    topt_allocate_fini(&d.plan);
    free(d.asked);
    model_fini(&d.m);
    if (rc)
        rightsize_plan_fini(ret);
    return rc;
}

void rightsize_plan_fini(struct rightsize_plan *p)
{
    free(p->choice);
    free(p->stop);
    *p = (struct rightsize_plan){0};
}
