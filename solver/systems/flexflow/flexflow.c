/* flexflow.c - a model's strategy, changed operator by operator; simulated from nothing;
 * and what is said of it. */
#include "ff_data.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

const struct topt_flexflow_rules topt_flexflow_links = {.shared_links = 1};

/* ---- a strategy -------------------------------------------------------------------- */

static int no_memory(struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_NOMEM, "no memory for FlexFlow's tasks");
}

/* A table that others read: parameters, and neither data nor inputs. */
static int is_table(const struct topt_op *o)
{
    int param = 0;
    for (int x = 0; x < o->spec->noperands; x++) {
        if (!o->operand[x].present)
            continue;
        if (o->operand[x].role == TOPT_INPUT || o->operand[x].role == TOPT_DATA)
            return 0;
        param |= o->operand[x].role == TOPT_PARAM;
    }
    return param;
}

/* All uses of its output, and of what it reads. */
static void each_use(struct topt_flexflow *f, int op,
                     void (*what)(struct topt_flexflow *, int, int))
{
    const struct topt_model *m = f->k.model;
    for (int i = 0; i < m->op[op].ninputs; i++)
        what(f, op, i);
    int t = m->op[op].operand[m->op[op].output].tensor;
    for (int c = op + 1; c < m->nops; c++)
        for (int i = 0; i < m->op[c].ninputs; i++)
            if (m->op[c].operand[m->op[c].input[i]].tensor == t)
                what(f, c, i);
}

static void remove_use(struct topt_flexflow *f, int op, int input)
{
    ff_group_remove(f, ff_use_group(f, op, input));
}

void ff_replace(struct topt_flexflow *f, int op, const struct topt_soap *s)
{
    each_use(f, op, remove_use);
    ff_group_remove(f, op);
    f->op[op].soap = *s;
    ff_op_tasks(f, op);
    each_use(f, op, ff_use_tasks);
}

int topt_flexflow_set(struct topt_flexflow *f, int op, const struct topt_soap *s,
                      struct topt_error *err)
{
    if (op < 0 || op >= f->nops || !topt_flexflow_valid(f, op, s))
        return topt_fail(err, TOPT_ERR_INVAL, "operator %d can't be split that way", op);
    ff_replace(f, op, s);
    ff_settle(f);
    return f->oom ? no_memory(err) : 0;
}

const struct topt_soap *topt_flexflow_get(const struct topt_flexflow *f, int op)
{
    return &f->op[op].soap;
}

int64_t topt_flexflow_time(const struct topt_flexflow *f)
{
    return f->end_ns;
}

static int init(struct topt_flexflow *f)
{
    const struct topt_model *m = f->k.model;
    f->op = calloc((size_t)f->nops + 1, sizeof *f->op);
    f->group = malloc(((size_t)ff_groups(f) + 1) * sizeof *f->group);
    f->free_task = f->free_edge = f->free_slot = -1;
    f->nresources = f->devices + ff_links(f);
    f->free_at = calloc((size_t)f->nresources, sizeof *f->free_at);
    f->gone_from = INT64_MAX;
    if (!f->op || !f->group || !f->free_at)
        return -1;
    memset(f->group, 0xff, ((size_t)ff_groups(f) + 1) * sizeof *f->group);
    for (int i = 0; i < f->nops; i++) {
        f->op[i].virtual = is_table(&m->op[i]);
        if (ff_degrees_list(f, i))
            return -1;
    }
    for (int i = 0; i < f->nops; i++) {
        f->op[i].soap = topt_flexflow_data_parallel(f, i);
        ff_op_tasks(f, i);
        for (int k = 0; k < m->op[i].ninputs; k++)
            ff_use_tasks(f, i, k);
    }
    ff_settle(f);
    return f->oom ? -1 : 0;
}

int topt_flexflow_create(const struct topt_costing *k,
                         const struct topt_flexflow_rules *rules,
                         struct topt_flexflow **ret, struct topt_error *err)
{
    struct topt_flexflow *f;
    if (k->mesh->devices > TOPT_FLEXFLOW_DEVICES)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "FlexFlow's search places parts on at most %d devices",
                         TOPT_FLEXFLOW_DEVICES);
    f = calloc(1, sizeof *f);
    if (!f)
        return no_memory(err);
    f->k = *k;
    f->rules = *rules;
    f->devices = k->mesh->devices;
    f->nodes = k->mesh->nodes;
    f->per_node = k->mesh->per_node;
    f->nops = k->model->nops;
    if (init(f)) {
        topt_flexflow_destroy(f);
        return no_memory(err);
    }
    *ret = f;
    return 0;
}

void topt_flexflow_destroy(struct topt_flexflow *f)
{
    if (!f)
        return;
    for (int i = 0; f->op && i < f->nops; i++)
        free(f->op[i].degrees);
    free(f->op);
    free(f->group);
    free(f->task);
    free(f->edge);
    free(f->slot);
    free(f->changed);
    free(f->free_at);
    free(f->waits);
    free(f->heap);
    free(f);
}

/* ---- from nothing ------------------------------------------------------------------ */

struct full {
    struct topt_flexflow heap; /* for its heap alone */
    const struct topt_flexflow *f;
    int *waits;
    int64_t *ready, *free_at, *path;
    int64_t ns, critical_ns;
    int done;
    uint64_t seed; /* of what disturbs tasks */
    double disturbed;
};

static int full_open(struct full *x)
{
    size_t n = (size_t)x->f->ntasks + 1;
    x->waits = calloc(n, sizeof *x->waits);
    x->ready = calloc(n, sizeof *x->ready);
    x->path = calloc(n, sizeof *x->path);
    x->free_at = calloc((size_t)x->f->nresources, sizeof *x->free_at);
    if (!x->waits || !x->ready || !x->path || !x->free_at)
        return -1;
    for (int t = 0; t < x->f->ntasks; t++) {
        const struct ff_task *task = &x->f->task[t];
        for (int e = task->live ? task->in : -1; e >= 0; e = x->f->edge[e].in_next)
            x->waits[t]++;
        if (task->live && !x->waits[t] &&
            ff_push(&x->heap, (struct ff_entry){0, task->key, t}))
            return -1;
    }
    return 0;
}

/* What a task takes where all take up to a share more or less than they should. */
static int64_t takes(const struct full *x, int task)
{
    int64_t ns = x->f->task[task].ns;
    if (x->disturbed <= 0)
        return ns;
    uint64_t seed = x->seed ^ x->f->task[task].key * 0x9e3779b97f4a7c15u ^ (uint64_t)task;
    double u = ff_random_real(&seed);
    return (int64_t)((double)ns * (1 + x->disturbed * (2 * u - 1)));
}

/* Tasks by the time at which they are ready, as FlexFlow simulates. */
static int full_run(struct full *x)
{
    struct ff_entry e;
    while (ff_pop(&x->heap, &e)) {
        const struct ff_task *t = &x->f->task[e.task];
        int64_t end = e.ready;
        for (int s = t->slot; s >= 0; s = x->f->slot[s].more)
            end = topt_max(end, x->free_at[x->f->slot[s].resource]);
        end += takes(x, e.task);
        for (int s = t->slot; s >= 0; s = x->f->slot[s].more)
            x->free_at[x->f->slot[s].resource] = end;
        x->path[e.task] += t->ns;
        x->ns = topt_max(end, x->ns);
        x->critical_ns = topt_max(x->path[e.task], x->critical_ns);
        x->done++;
        for (int i = t->out; i >= 0; i = x->f->edge[i].out_next) {
            int to = x->f->edge[i].to;
            x->ready[to] = topt_max(end + t->lag, x->ready[to]);
            x->path[to] = topt_max(x->path[e.task] + t->lag, x->path[to]);
            if (--x->waits[to] == 0 &&
                ff_push(&x->heap,
                        (struct ff_entry){x->ready[to], x->f->task[to].key, to}))
                return -1;
        }
    }
    return 0;
}

static int run_full(const struct topt_flexflow *f, struct full *x, struct topt_error *err)
{
    x->f = f;
    int rc = full_open(x) || full_run(x) ? no_memory(err) : 0;
    free(x->waits);
    free(x->ready);
    free(x->path);
    free(x->free_at);
    free(x->heap.heap);
    if (!rc && x->done != f->live)
        rc = topt_fail(err, TOPT_ERR_INTERNAL, "%d of %d tasks wait for each other",
                       f->live - x->done, f->live);
    return rc;
}

int topt_flexflow_disturbed(const struct topt_flexflow *f, uint64_t seed, double share,
                            int64_t *ret_ns, struct topt_error *err)
{
    struct full x = {.seed = seed, .disturbed = share};
    if (run_full(f, &x, err))
        return -1;
    *ret_ns = x.ns;
    return 0;
}

int topt_flexflow_full(const struct topt_flexflow *f, int64_t *ret_ns,
                       struct topt_error *err)
{
    return topt_flexflow_disturbed(f, 0, 0, ret_ns, err);
}

/* ---- what is said of it ------------------------------------------------------------ */

static void busy(const struct topt_flexflow *f, struct topt_flexflow_facts *ret)
{
    int64_t on[TOPT_FLEXFLOW_DEVICES] = {0}, memory[TOPT_FLEXFLOW_DEVICES] = {0};
    for (int t = 0; t < f->ntasks; t++) {
        const struct ff_task *x = &f->task[t];
        if (!x->live)
            continue;
        ret->moved_bytes += x->bytes;
        if (x->kind != FF_MOVE && x->kind != FF_MOVE_BACK && x->kind != FF_SUM)
            on[f->slot[x->slot].resource] += x->ns;
    }
    for (int i = 0; i < f->nops; i++) {
        const struct ff_op *x = &f->op[i];
        uint64_t devices = 0;
        for (int p = 0; !x->virtual && p < x->soap.nparts; p++) {
            memory[x->soap.device[p]] += x->price.memory_bytes;
            devices |= (uint64_t)1 << x->soap.device[p];
        }
        ret->placed += !x->virtual && __builtin_popcountll(devices) < f->devices;
    }
    for (int d = 0; d < f->devices; d++) {
        ret->compute_ns = topt_max(on[d], ret->compute_ns);
        ret->memory_bytes = topt_max(memory[d], ret->memory_bytes);
    }
}

void topt_flexflow_facts(const struct topt_flexflow *f, struct topt_flexflow_facts *ret)
{
    struct full x = {.disturbed = 0};
    *ret = (struct topt_flexflow_facts){.time_ns = topt_flexflow_time(f),
                                        .tasks = f->live,
                                        .touched = f->touched,
                                        .moved = f->moved};
    busy(f, ret);
    if (!run_full(f, &x, NULL))
        ret->critical_ns = x.critical_ns;
}
