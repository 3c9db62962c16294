/* ours.c - a plan of ours as tasks of FlexFlow's simulation.
 *
 * Every device runs the same program on blocks of the same size, so that one stands for all: it
 * computes, and has a link in its node and one to other nodes, whose prices are those of all
 * devices at once.  An instruction is a task that waits for the last one that touched each of its
 * buffers, and for nothing else.  Sums of statistics over samples are not among FlexFlow's tasks,
 * and take no time here. */
#include "ff_data.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICE, NODE, NETWORK, RESOURCES };

struct ours {
    struct topt_flexflow *f;
    const struct topt_program *p;
    int *last; /* by buffer: the task that touched it last, -1: none */
};

static struct ff_held held_by(const struct ours *w, int at)
{
    const struct topt_instr_time *t = &w->p->time[at];
    struct ff_held h = {0};
    uint8_t links =
        t->network && t->ns ? topt_group_links(&w->p->mesh, w->p->instr[at].axes) : 0;
    if (links >> TOPT_LINK_NODE & 1)
        h.at[h.n++] = NODE;
    if (links >> TOPT_LINK_NETWORK & 1)
        h.at[h.n++] = NETWORK;
    if (!links || (w->f->rules.moves_wait && t->async == TOPT_ASYNC_NOTHING))
        h.at[h.n++] = DEVICE;
    return h;
}

static void touch(struct ours *w, int task, int buffer)
{
    if (buffer < 0)
        return;
    if (w->last[buffer] >= 0 && w->last[buffer] != task)
        ff_edge_add(w->f, w->last[buffer], task);
    w->last[buffer] = task;
}

/* Sums of a statistic over samples, which batch normalization takes over all devices here and
 * FlexFlow's over each device's own. */
static int sums_samples(const struct ours *w, const struct topt_instr *i)
{
    if (i->kind != TOPT_I_REDUCE || i->op < 0)
        return 0;
    const struct topt_op_spec *s = w->p->model->op[i->op].spec;
    for (int k = 0; k < TOPT_MAX_STEPS && s->forward[k].kind != TOPT_STEP_END; k++)
        for (int d = 0; d < s->ndims; d++)
            if (s->forward[k].kind == TOPT_STEP_SUM && s->forward[k].dims >> d & 1 &&
                s->dim[d].split == TOPT_SPLIT_BATCH)
                return 1;
    return 0;
}

static void add_instr(struct ours *w, int at)
{
    const struct topt_instr *i = &w->p->instr[at];
    const int named[] = {i->a, i->b, i->c, i->d, i->e};
    if (i->kind == TOPT_I_ALLOC)
        w->last[i->a] = -1;
    if (i->kind == TOPT_I_ALLOC || i->kind == TOPT_I_FREE)
        return;
    struct ff_task t = {.ns = sums_samples(w, i) ? 0 : w->p->time[at].ns,
                        .key = (uint64_t)at};
    struct ff_held held = held_by(w, at);
    int task = ff_task_add(w->f, 0, &t, &held);
    for (int n = 0; task >= 0 && n < 5; n++)
        touch(w, task, named[n]);
    for (int x = 0; task >= 0 && x < TOPT_MAX_OPERANDS; x++) {
        touch(w, task, i->value[x]);
        touch(w, task, i->grad[x]);
    }
}

int topt_flexflow_plan(const struct topt_costing *k, const struct topt_strategy *s,
                       const struct topt_flexflow_rules *rules, int64_t *ret_ns,
                       struct topt_error *err)
{
    struct topt_program *p = NULL;
    if (k->settings->micro_batches > 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "FlexFlow's simulation has no micro-batches");
    if (topt_lower_with_times(k, s, &p, err))
        return -1;
    struct ours w = {calloc(1, sizeof *w.f), p,
                     malloc(((size_t)p->nbuffers + 1) * sizeof *w.last)};
    int rc = !w.f || !w.last || !(w.f->group = malloc(sizeof *w.f->group)) ||
             !(w.f->free_at = calloc(RESOURCES, sizeof *w.f->free_at)) ||
             !(w.f->load = calloc(RESOURCES, sizeof *w.f->load));
    if (!rc) {
        w.f->nresources = RESOURCES;
        w.f->gone_from = INT64_MAX;
        w.f->rules = *rules;
        w.f->free_task = w.f->free_edge = w.f->free_slot = w.f->group[0] = -1;
        memset(w.last, 0xff, ((size_t)p->nbuffers + 1) * sizeof *w.last);
        for (int i = p->init_end; i < p->ninstr; i++)
            add_instr(&w, i);
        rc = ff_settle(w.f, NULL);
        *ret_ns = w.f->end_ns;
    }
    topt_flexflow_destroy(w.f);
    free(w.last);
    topt_program_destroy(p);
    return rc ? topt_nomem(err, "a plan's tasks") : 0;
}
