/* stop.c - see stop.h. */
#include "stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topt_minmax.h"

struct grown {
    struct model_job *job;        /* as they would wait */
    struct topt_alloc_job *waits; /* the same for the plan */
    size_t n;
};

static int may_stop(const struct site_queued *j, int64_t settle_s, int64_t now_s)
{
    int from = site_queued_shape(j);
    return !site_is_pending(j) && j->is_elastic && j->elastic.requeues &&
           j->can_requeue && j->is_batch && j->is_plain && !j->array && from >= 0 &&
           j->start_s && now_s - j->start_s >= settle_s &&
           (j->time_s || j->elastic.steps) &&
           topt_elastic_gpus(&j->elastic.shape[from]) >
               topt_elastic_gpus(&j->elastic.shape[j->elastic.submitted]);
}

static int64_t with_percent(int64_t from_s, int64_t end_s)
{
    return end_s + (end_s - from_s) * STOP_LATER_PERCENT / 100;
}

static int find_grown(const struct site_slurm *s, const struct site_queue *q,
                      int64_t settle_s, struct model *m, struct grown *g)
{
    int64_t now = m->p.now_s;
    g->job = calloc(q->n + 1, sizeof *g->job);
    g->waits = calloc(q->n + 1, sizeof *g->waits);
    if (!g->job || !g->waits)
        return -1;
    for (size_t i = 0; i < q->n; i++) {
        const struct site_queued *j = &q->job[i];
        struct model_job *w = &g->job[g->n];
        if (!may_stop(j, settle_s, now))
            continue;
        g->n++;
        if (model_running(s, j, m, w))
            return -1;
        int64_t as_asked = w->shape[0].run_s, ran = now - j->start_s;
        int64_t left = topt_max(w->length_s - ran, 1);
        w->shape[0].run_s = topt_max(1, (int64_t)((double)as_asked * (double)left /
                                                  (double)topt_max(w->length_s, 1)));
        g->waits[g->n - 1] = (struct topt_alloc_job){
            .id = j->id,
            .shape = w->shape,
            .nshapes = 1,
            .from_s = now + STOP_DELAY_S,
            .bound_s = with_percent(j->start_s, j->start_s + as_asked)};
    }
    return 0;
}

/* ---- when jobs would end if running ones had what they asked for --------------------- */

/* What a job that grew would hold: on as many of its nodes, until it would have ended. */
static void hold_as_asked(const struct model_job *grown, int64_t as_asked_s,
                          struct topt_alloc_held *held, size_t *n, int64_t now_s)
{
    const struct topt_alloc_shape *s = &grown->shape[0];
    int64_t nodes = 0;
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        struct topt_alloc_held h = held[i];
        if (h.job == grown->job->id) {
            if (nodes++ == s->nodes)
                continue;
            h.takes.gpus = topt_min(h.takes.gpus, s->each.gpus);
            h.takes.cpus = topt_min(h.takes.cpus, s->each.cpus);
            h.takes.memory_mib = topt_min(h.takes.memory_mib, s->each.memory_mib);
            h.to_s = topt_max(now_s + 1, grown->job->start_s + as_asked_s);
        }
        held[kept++] = h;
    }
    *n = kept;
}

/* The bounds of the jobs that wait. */
static int set_bounds(struct model *m, const struct grown *g, const int64_t *as_asked_s)
{
    struct topt_alloc_problem p = m->p;
    struct topt_alloc_job *rigid = calloc(p.njobs + 1, sizeof *rigid);
    struct topt_alloc_held *held = calloc(p.nheld + 1, sizeof *held);
    struct topt_alloc_plan plan = {0};
    int rc = rigid && held ? 0 : -1;
    for (size_t i = 0; !rc && i < p.njobs; i++) {
        rigid[i] = p.job[i];
        rigid[i].shape += rigid[i].asked;
        rigid[i].asked = 0;
        rigid[i].nshapes = 1;
    }
    if (!rc && p.nheld)
        memcpy(held, p.held, p.nheld * sizeof *held);
    for (size_t k = 0; !rc && k < g->n; k++)
        hold_as_asked(&g->job[k], as_asked_s[k], held, &p.nheld, p.now_s);
    p.job = rigid;
    p.held = held;
    rc = rc || topt_allocate(&p, NULL, &plan, NULL) ? -1 : 0;
    for (size_t i = 0; !rc && i < p.njobs; i++) {
        int64_t end = topt_allocate_end(&rigid[i], &plan.spot[i]);
        int64_t submit = m->job[i].job->submit_s;
        if (end >= 0 && submit && submit <= p.now_s)
            m->planned[i].bound_s = with_percent(submit, end);
    }
    topt_allocate_fini(&plan);
    free(rigid);
    free(held);
    return rc;
}

/* ---- what is said ------------------------------------------------------------------- */

/* The job that would be latest: its number and by how much; 0: none. */
static int64_t latest(const struct model *m, int64_t *ret_s)
{
    struct topt_alloc_plan plan;
    int64_t job = 0;
    *ret_s = 0;
    if (topt_allocate(&m->p, NULL, &plan, NULL))
        return 0;
    for (size_t i = 0; i < m->p.njobs; i++) {
        int64_t end = topt_allocate_end(&m->p.job[i], &plan.spot[i]);
        int64_t late = m->p.job[i].bound_s ? end - m->p.job[i].bound_s : 0;
        if (end >= 0 && late > *ret_s) {
            *ret_s = late;
            job = m->p.job[i].id;
        }
    }
    topt_allocate_fini(&plan);
    return job;
}

static void fill(const struct model *m, const struct model_job *j,
                 struct rightsize_stop *ret)
{
    int64_t late_s, late = latest(m, &late_s);
    int to = j->job->elastic.submitted;
    *ret = (struct rightsize_stop){j->job, to, model_limit(j->job, j->from, to), ""};
    snprintf(ret->why, sizeof ret->why,
             "it has %lld GPUs and asked for %lld; job %lld would end %lld min after its "
             "bound "
             "(%d %% later than as everybody asked)",
             (long long)topt_elastic_gpus(&j->job->elastic.shape[j->from]),
             (long long)topt_elastic_gpus(&j->job->elastic.shape[to]), (long long)late,
             (long long)(late_s + 59) / 60, STOP_LATER_PERCENT);
}

int stops_choose(const struct site_slurm *s, const struct site_queue *q, int64_t settle_s,
                 struct model *m, struct rightsize_stop **ret, size_t *ret_n,
                 struct topt_error *err)
{
    struct grown g = {.n = 0};
    *ret = NULL;
    *ret_n = 0;
    int rc = find_grown(s, q, settle_s, m, &g);
    unsigned char *stop = calloc(g.n + 1, 1);
    int64_t *as_asked_s = calloc(g.n + 1, sizeof *as_asked_s);
    struct rightsize_stop *list = calloc(g.n + 1, sizeof *list);
    rc = rc || !stop || !as_asked_s || !list ? -1 : 0;
    for (size_t k = 0; !rc && k < g.n; k++)
        as_asked_s[k] = model_run(&g.job[k], g.job[k].job->elastic.submitted);
    if (!rc && g.n && m->njobs)
        rc = set_bounds(m, &g, as_asked_s) ||
                     topt_allocate_stops(&m->p, g.waits, g.n, stop, err)
                 ? -1
                 : 0;
    for (size_t k = 0; !rc && k < g.n; k++)
        if (stop[k])
            fill(m, &g.job[k], &list[(*ret_n)++]);
    for (size_t k = 0; k < g.n; k++)
        model_job_fini(&g.job[k]);
    free(g.job);
    free(g.waits);
    free(stop);
    free(as_asked_s);
    if (rc) {
        free(list);
        return topt_nomem(err, "the queue");
    }
    *ret = list;
    return 0;
}
