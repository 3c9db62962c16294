/* flexflow.c - a model's strategy, changed operator by operator; simulated from nothing;
 * and what is said of it. */
#include "ff_data.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

const struct topt_flexflow_rules topt_flexflow_links = {.shared_links = 1};

/* ---- a strategy -------------------------------------------------------------------- */

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

/* Its own tasks, and those of all uses of its output and of what it reads. */
static void each_group(struct topt_flexflow *f, int op,
                       void (*what)(struct topt_flexflow *, int))
{
    const struct topt_model *m = f->k.model;
    int t = topt_output_tensor(&m->op[op]);
    what(f, op);
    for (int c = op; c < m->nops; c++)
        for (int i = 0; i < m->op[c].ninputs; i++)
            if (c == op || topt_input_tensor(&m->op[c], i) == t)
                what(f, ff_use_group(f, c, i));
}

static void replace(struct topt_flexflow *f, int op, const struct topt_soap *s)
{
    each_group(f, op, ff_group_remove);
    f->op[op].soap = *s;
    each_group(f, op, ff_group_tasks);
}

static void remember(struct topt_flexflow *f, int group)
{
    for (int t = f->group[group]; t >= 0; t = f->task[t].group_next)
        ff_remember(f, t);
}

void ff_replace(struct topt_flexflow *f, int op, const struct topt_soap *s)
{
    f->nran = 0;
    each_group(f, op, remember);
    replace(f, op, s);
}

/* Tasks are made anew in the order in which they were made before. */
static void recall(struct topt_flexflow *f, int group)
{
    for (int t = f->group[group]; t >= 0; t = f->task[t].group_next) {
        f->task[t].ready = f->ran[f->nran].ready;
        f->task[t].end = f->ran[f->nran++].end;
        f->task[t].fresh = 0;
    }
}

void ff_undo(struct topt_flexflow *f, int op, const struct topt_soap *was, int64_t was_ns)
{
    for (int i = 0; i < f->nran; i++) {
        f->task[f->ran[i].task].ready = f->ran[i].ready;
        f->task[f->ran[i].task].end = f->ran[i].end;
    }
    replace(f, op, was);
    f->nran = 0;
    each_group(f, op, recall);
    ff_forget(f);
    f->end_ns = was_ns;
}

int topt_flexflow_set(struct topt_flexflow *f, int op, const struct topt_soap *s,
                      struct topt_error *err)
{
    if (op < 0 || op >= f->nops || !topt_flexflow_valid(f, op, s))
        return topt_fail(err, TOPT_ERR_INVAL, "operator %d can't be split that way", op);
    ff_replace(f, op, s);
    return ff_settle(f, err);
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
    f->op = calloc((size_t)f->nops + 1, sizeof *f->op);
    f->group = malloc(((size_t)ff_groups(f) + 1) * sizeof *f->group);
    f->free_task = f->free_edge = f->free_slot = -1;
    f->nresources = f->devices + ff_links(f);
    f->free_at = calloc((size_t)f->nresources, sizeof *f->free_at);
    f->load = calloc((size_t)f->nresources, sizeof *f->load);
    f->gone_from = INT64_MAX;
    if (!f->op || !f->group || !f->free_at || !f->load)
        return -1;
    memset(f->group, 0xff, ((size_t)ff_groups(f) + 1) * sizeof *f->group);
    for (int i = 0; i < f->nops; i++) {
        f->op[i].virtual = is_table(&f->k.model->op[i]);
        if (ff_degrees_list(f, i))
            return -1;
        f->op[i].soap = topt_flexflow_data_parallel(f, i);
    }
    for (int g = 0; g < ff_groups(f); g++)
        ff_group_tasks(f, g);
    return ff_settle(f, NULL);
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
        return topt_nomem(err, "FlexFlow's tasks");
    f->k = *k;
    f->rules = *rules;
    f->devices = k->mesh->devices;
    f->nodes = k->mesh->nodes;
    f->per_node = k->mesh->per_node;
    f->nops = k->model->nops;
    if (init(f)) {
        topt_flexflow_destroy(f);
        return topt_nomem(err, "FlexFlow's tasks");
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
    free(f->load);
    free(f->ran);
    free(f->heap);
    free(f);
}

/* ---- from nothing ------------------------------------------------------------------ */

struct full {
    struct topt_flexflow heap; /* for its heap alone */
    const struct topt_flexflow *f;
    struct {
        int waits;
        int64_t ready, path;
    } * at; /* by task */
    int64_t *free_at, ns, critical_ns;
    int done;
    uint64_t seed; /* of what disturbs tasks */
    double disturbed;
};

static int full_open(struct full *x)
{
    x->at = calloc((size_t)x->f->ntasks + 1, sizeof *x->at);
    x->free_at = calloc((size_t)x->f->nresources, sizeof *x->free_at);
    if (!x->at || !x->free_at)
        return -1;
    for (int t = 0; t < x->f->ntasks; t++) {
        const struct ff_task *task = &x->f->task[t];
        x->at[t].waits = task->nin;
        if (task->live && !task->nin &&
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
        x->at[e.task].path += t->ns;
        x->ns = topt_max(end, x->ns);
        x->critical_ns = topt_max(x->at[e.task].path, x->critical_ns);
        x->done++;
        for (int i = t->out; i >= 0; i = x->f->edge[i].out_next) {
            int to = x->f->edge[i].to;
            x->at[to].ready = topt_max(end + t->lag, x->at[to].ready);
            x->at[to].path = topt_max(x->at[e.task].path + t->lag, x->at[to].path);
            if (--x->at[to].waits == 0 &&
                ff_push(&x->heap,
                        (struct ff_entry){x->at[to].ready, x->f->task[to].key, to}))
                return -1;
        }
    }
    return 0;
}

static int run_full(const struct topt_flexflow *f, struct full *x, struct topt_error *err)
{
    x->f = f;
    int rc = full_open(x) || full_run(x) ? topt_nomem(err, "FlexFlow's tasks") : 0;
    free(x->at);
    free(x->free_at);
    free(x->heap.heap);
    if (!rc && x->done != f->live)
        rc = topt_fail(err, TOPT_ERR_INTERNAL, "%d of %d tasks wait for each other",
                       f->live - x->done, f->live);
    return rc;
}

int topt_flexflow_full(const struct topt_flexflow *f, uint64_t seed, double share,
                       int64_t *ret_ns, struct topt_error *err)
{
    struct full x = {.seed = seed, .disturbed = share};
    int rc = run_full(f, &x, err);
    *ret_ns = x.ns;
    return rc;
}

/* ---- what is said of it ------------------------------------------------------------ */

static void held(const struct topt_flexflow *f, struct topt_flexflow_facts *ret)
{
    int64_t memory[TOPT_FLEXFLOW_DEVICES] = {0};
    for (int t = 0; t < f->ntasks; t++)
        ret->moved_bytes += f->task[t].live ? f->task[t].bytes : 0;
    for (int i = 0; i < f->nops; i++) {
        const struct ff_op *x = &f->op[i];
        uint64_t devices = 0;
        for (int p = 0; !x->virtual && p < x->soap.nparts; p++) {
            memory[x->soap.device[p]] += x->price.memory_bytes;
            devices |= (uint64_t)1 << x->soap.device[p];
        }
        ret->placed += !x->virtual && __builtin_popcountll(devices) < f->devices;
    }
    for (int d = 0; d < f->devices; d++)
        ret->memory_bytes = topt_max(memory[d], ret->memory_bytes);
}

void topt_flexflow_facts(const struct topt_flexflow *f, struct topt_flexflow_facts *ret)
{
    struct full x = {.disturbed = 0};
    *ret = (struct topt_flexflow_facts){.time_ns = topt_flexflow_time(f),
                                        .compute_ns = ff_busiest(f, f->devices),
                                        .tasks = f->live,
                                        .touched = f->touched,
                                        .moved = f->moved};
    held(f, ret);
    if (!run_full(f, &x, NULL))
        ret->critical_ns = x.critical_ns;
}
