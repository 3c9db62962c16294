/* sim.c - jobs of a simulation that start and stop; see sim.h. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#include "topt_minmax.h"

const struct topt_alloc_shape *sim_shape(const struct sim_job *j, int shape)
{
    return shape == SIM_DOOMED ? &j->doomed : &j->shape[shape];
}

int64_t sim_cost(const struct sim_job *j, int shape)
{
    return topt_allocate_cost(&j->shape[shape]);
}

/* What it did since it started is kept. */
static void stop(struct sim *s, size_t i)
{
    struct sim_job *j = &s->job[i];
    struct topt_cluster_fate *f = &s->ret->fate[i];
    const struct topt_alloc_shape *shape = sim_shape(j, j->current);
    int64_t ran = s->now_s - j->since_s;
    f->ran_s += ran;
    f->gpu_s += ran * topt_allocate_gpus(shape);
    if (j->current >= 0)
        j->left -= (double)topt_max(0, ran - j->pause_s) / (double)shape->run_s;
    s->used -= topt_allocate_gpus(shape);
    j->current = SIM_WAITS;
    free(j->node);
    j->node = NULL;
}

int sim_change(struct sim *s, size_t i, int shape, const size_t *node)
{
    struct sim_job *j = &s->job[i];
    struct topt_cluster_fate *f = &s->ret->fate[i];
    int has_started = f->start_s >= 0 && j->left < 1;
    if (j->current != SIM_WAITS)
        stop(s, i);
    if (shape == SIM_WAITS)
        return 0;
    const struct topt_alloc_shape *to = sim_shape(j, shape);
    if (node && !(j->node = calloc((size_t)to->nodes, sizeof *node)))
        return -1;
    if (node)
        memcpy(j->node, node, (size_t)to->nodes * sizeof *node);
    f->start_s = f->start_s < 0 ? s->now_s : f->start_s;
    f->restarts += has_started;
    f->gpus = topt_allocate_gpus(to);
    j->current = shape;
    j->since_s = s->now_s;
    j->pause_s = has_started ? s->o->restart_s : 0;
    s->used += topt_allocate_gpus(to);
    return 0;
}

void sim_sort(struct sim *s)
{
    size_t n = 0;
    for (size_t k = 0; k < s->nqueue; k++) {
        size_t i = s->queue[k];
        if (s->job[i].current == SIM_WAITS)
            s->queue[n++] = i;
        else
            s->running[s->nrunning++] = i;
    }
    s->nqueue = n;
    n = 0;
    for (size_t k = 0; k < s->nrunning; k++)
        if (s->job[s->running[k]].current != SIM_WAITS)
            s->running[n++] = s->running[k];
    s->nrunning = n;
}
