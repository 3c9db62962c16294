/* sim.c - jobs of a simulation that start and stop; see sim.h. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "topt_minmax.h"

/* A job that asks for too few GPUs dies after this share of its time. */
enum { DIES_AFTER = 10 };

static const unsigned char serves[TOPT_CLUSTER_KINDS][TOPT_CLUSTER_KINDS] = {
    {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};

static struct topt_alloc_shape shape_of(const struct sim *s, int kind, int64_t gpus,
                                        double run_s)
{
    int64_t each = topt_min(gpus, s->o->kind[kind].gpus_per_node);
    return (struct topt_alloc_shape){.nodes = gpus / each,
                                     .each = {.gpus = each},
                                     .run_s = topt_max(1, (int64_t)run_s),
                                     .serves = serves[kind]};
}

/* On too few GPUs its work is that of as many GPU-hours as on the fewest that fit. */
struct topt_alloc_shape sim_shape(const struct sim *s, size_t i, int shape)
{
    const struct sim_job *j = &s->job[i];
    if (shape != SIM_DOOMED)
        return shape_of(s, j->curve->point[shape].kind, j->curve->point[shape].gpus,
                        j->s_by_ns * (double)j->curve->point[shape].time_ns);
    int64_t cost = sim_cost(s, i, sim_first(j));
    struct topt_alloc_shape ret = shape_of(s, j->kind, j->doomed, 1);
    ret.run_s = cost / topt_allocate_gpus(&ret);
    return ret;
}

int64_t sim_gpus(const struct sim *s, size_t i, int shape)
{
    struct topt_alloc_shape is = sim_shape(s, i, shape);
    return topt_allocate_gpus(&is);
}

int64_t sim_cost(const struct sim *s, size_t i, int shape)
{
    struct topt_alloc_shape is = sim_shape(s, i, shape);
    return topt_allocate_cost(&is);
}

int sim_first(const struct sim_job *j)
{
    return j->curve->first[j->kind];
}

int sim_last(const struct sim_job *j)
{
    return j->curve->first[j->kind + 1];
}

static int64_t restart_of(const struct sim *s, size_t i)
{
    const struct sim_job *j = &s->job[i];
    int has_state = s->ret->fate[i].start_s >= 0 && j->left < 1;
    return j->curve->restart_s >= 0 ? j->curve->restart_s
           : has_state              ? s->o->restart_s
                                    : 0;
}

/* Without a restart. */
static int64_t left_s(const struct sim *s, size_t i, int shape, double error)
{
    int64_t run = sim_shape(s, i, shape).run_s;
    if (shape == SIM_DOOMED)
        run = topt_max(1, run / DIES_AFTER);
    return topt_max(1, (int64_t)(error * s->job[i].left * (double)run + 0.5));
}

int64_t sim_limit(const struct sim *s, int64_t run_s)
{
    int64_t step = topt_max(1, s->o->limit_step_s);
    return (run_s + step - 1) / step * step;
}

int64_t sim_predicted_s(const struct sim *s, size_t i, int shape)
{
    return sim_limit(s, restart_of(s, i) + (shape == SIM_DOOMED
                                                ? sim_shape(s, i, shape).run_s
                                                : left_s(s, i, shape, s->job[i].error)));
}

/* ---- lists ------------------------------------------------------------------------- */

static void insert(size_t *list, size_t *n, size_t at, size_t i)
{
    memmove(list + at + 1, list + at, (*n - at) * sizeof *list);
    list[at] = i;
    ++*n;
}

static void take_out(size_t *list, size_t *n, size_t i)
{
    size_t at = 0;
    while (at < *n && list[at] != i)
        at++;
    if (at == *n)
        return;
    memmove(list + at, list + at + 1, (*n - at - 1) * sizeof *list);
    --*n;
}

void sim_wait(struct sim *s, size_t i)
{
    size_t at = s->nqueue;
    if (s->job[i].turn < 0)
        s->job[i].turn = s->turns++;
    while (at && s->job[s->queue[at - 1]].turn > s->job[i].turn)
        at--;
    insert(s->queue, &s->nqueue, at, i);
}

void sim_leave(struct sim *s, size_t i)
{
    take_out(s->queue, &s->nqueue, i);
}

/* Who ends at the same time is in the order of submission. */
static void run(struct sim *s, size_t i)
{
    size_t at = s->nrunning;
    for (; at; at--) {
        size_t k = s->running[at - 1];
        if (s->job[k].end_s < s->job[i].end_s ||
            (s->job[k].end_s == s->job[i].end_s && k < i))
            break;
    }
    insert(s->running, &s->nrunning, at, i);
}

/* ---- start and stop ---------------------------------------------------------------- */

/* What it did since it started is kept. */
static void stop(struct sim *s, size_t i)
{
    struct sim_job *j = &s->job[i];
    struct topt_cluster_fate *f = &s->ret->fate[i];
    struct topt_alloc_shape shape = sim_shape(s, i, j->current);
    int64_t ran = s->now_s - j->since_s;
    f->ran_s += ran;
    f->gpu_s += ran * topt_allocate_gpus(&shape);
    if (j->current >= 0)
        j->left -= (double)topt_max(0, ran - j->pause_s) / (double)shape.run_s;
    s->used -= topt_allocate_gpus(&shape);
    j->current = SIM_WAITS;
    free(j->node);
    j->node = NULL;
    take_out(s->running, &s->nrunning, i);
    sim_wait(s, i);
}

int sim_change(struct sim *s, size_t i, int shape, const size_t *node)
{
    struct sim_job *j = &s->job[i];
    struct topt_cluster_fate *f = &s->ret->fate[i];
    if (j->current != SIM_WAITS)
        stop(s, i);
    if (shape == SIM_WAITS)
        return 0;
    struct topt_alloc_shape to = sim_shape(s, i, shape);
    if (node && !(j->node = calloc((size_t)to.nodes, sizeof *node)))
        return -1;
    if (node)
        memcpy(j->node, node, (size_t)to.nodes * sizeof *node);
    j->pause_s = restart_of(s, i);
    f->restarts += f->start_s >= 0 && j->left < 1;
    f->start_s = f->start_s < 0 ? s->now_s : f->start_s;
    f->gpus = topt_allocate_gpus(&to);
    j->current = shape;
    j->most = topt_max(j->most, f->gpus);
    j->since_s = s->now_s;
    j->end_s = s->now_s + j->pause_s + left_s(s, i, shape, 1);
    s->used += topt_allocate_gpus(&to);
    sim_leave(s, i);
    run(s, i);
    return 0;
}
