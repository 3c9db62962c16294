/* simulate.c - a step in time: its tasks, run; and what of it is said in figures. */
#include "engine.h"
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many tasks at most; of a step with more the last micro-batch that there is room for
 * stands for all that follow, which repeat it. */
enum { MAX_TASKS = 1 << 20, FEWEST_MICROS = 4 };

static int tasks_of(const struct topt_program *p, int micros)
{
    int micro = p->micro_end - p->micro_begin;
    return p->ninstr - p->init_end - micro + micros * micro;
}

static int micros_of(const struct topt_timed_program *t)
{
    int64_t all = t->program->settings.micro_batches, n = all;
    while (n > FEWEST_MICROS && tasks_of(t->program, 1) * n > MAX_TASKS / 4)
        n--;
    return (int)(n > all ? all : n);
}

/* The time of 'micros' micro-batches. */
static int run(struct sim_graph *g, int micros, int64_t *ret_ns, struct topt_error *err)
{
    g->micros = micros;
    return sim_graph_make(g, err) || sim_graph_run(g, ret_ns, err) ? -1 : 0;
}

/* The time of a further micro-batch: that of the last one that was simulated. */
static int find_period(const struct sim_graph *of, int64_t all_ns, int64_t *ret_ns,
                       struct topt_error *err)
{
    struct sim_graph less = {.k = of->k, .o = of->o, .timed = of->timed};
    int64_t less_ns;
    int rc = run(&less, of->micros - 1, &less_ns, err);
    *ret_ns = all_ns - less_ns;
    sim_graph_fini(&less);
    return rc;
}

/* The totals of each section of the program, over a whole step. */
static void sum_up(struct topt_simulation *s)
{
    const struct topt_program *p = s->timed.program;
    int64_t more = p->settings.micro_batches - s->micros;
    int64_t idle = s->time_ns;
    for (int i = 0; i < s->ntasks; i++) {
        const struct topt_task *t = &s->task[i];
        int64_t times =
            t->part == TOPT_PART_MICRO && t->micro == s->micros - 1 ? 1 + more : 1;
        *(t->links ? &s->network_ns : &s->compute_ns) += t->ns * times;
        for (int l = 0; l < TOPT_LINK_COUNT; l++)
            s->link_ns[l] += t->links >> l & 1 ? t->ns * times : 0;
        if (!t->links)
            idle -= (t->end_ns - t->start_ns) * times;
    }
    s->exposed_ns = idle > 0 ? idle : 0;
}

static int simulate(struct sim_graph *g, struct topt_simulation *ret,
                    struct topt_error *err)
{
    const struct topt_program *p = ret->timed.program;
    int64_t period = 0, more;
    ret->micros = micros_of(&ret->timed);
    if (tasks_of(p, ret->micros) > MAX_TASKS)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "a program of %d instructions is too long to simulate",
                         p->ninstr);
    if (run(g, ret->micros, &ret->time_ns, err))
        return -1;
    more = p->settings.micro_batches - ret->micros;
    if (more > 0 && find_period(g, ret->time_ns, &period, err))
        return -1;
    if (__builtin_mul_overflow(more, period, &more) ||
        __builtin_add_overflow(ret->time_ns, more, &ret->time_ns))
        return topt_fail(err, TOPT_ERR_LIMIT, "the time of a step overflows");
    ret->task = g->task;
    ret->ntasks = g->n;
    g->task = NULL;
    sum_up(ret);
    return 0;
}

int topt_simulate(const struct topt_costing *k, const struct topt_strategy *s,
                  const struct topt_simulate_options *o, struct topt_simulation *ret,
                  struct topt_error *err)
{
    *ret = (struct topt_simulation){.ntasks = 0};
    if (topt_lower_with_times(k, s, &ret->timed, err))
        return topt_wrap(err, "simulation");
    struct sim_graph g = {.k = k, .o = o, .timed = &ret->timed};
    int rc = simulate(&g, ret, err);
    sim_graph_fini(&g);
    if (rc)
        topt_simulation_fini(ret);
    return rc;
}

void topt_simulation_fini(struct topt_simulation *s)
{
    topt_timed_program_fini(&s->timed);
    free(s->task);
    *s = (struct topt_simulation){.ntasks = 0};
}

/* ---- words ------------------------------------------------------------------------- */

static const char *does(const struct topt_instr *i, enum topt_async async)
{
    switch (i->kind) {
    case TOPT_I_MOVE:
        return async == TOPT_ASYNC_PARAM      ? "gather"
               : async == TOPT_ASYNC_GRADIENT ? "reduce"
                                              : "move";
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
        return "halo";
    case TOPT_I_REDUCE:
        return "sum in";
    case TOPT_I_ADD:
        return "add";
    case TOPT_I_ZERO:
        return "zero";
    case TOPT_I_LOSS:
        return "report";
    case TOPT_I_UPDATE:
        return "update";
    case TOPT_I_NORM:
        return "norm";
    case TOPT_I_UNPACK:
        return "unpack";
    case TOPT_I_ROWS_FETCH:
        return "fetch rows of";
    case TOPT_I_ROWS_ADD:
        return "exchange gradients' rows of";
    default:
        return "";
    }
}

const char *topt_task_words(const struct topt_simulation *s, int task, char *buf,
                            size_t size)
{
    const struct topt_task *t = &s->task[task];
    const struct topt_program *p = s->timed.program;
    const struct topt_instr *i = &p->instr[t->instr];
    const struct topt_instr_time *at = &s->timed.time[t->instr];
    const char *name = i->op >= 0 ? p->model->op[i->op].name : "step";
    if (t->packed > 1)
        snprintf(buf, size, "reduce %d gradients, %.60s first", t->packed, name);
    else if (i->kind == TOPT_I_KERNEL)
        snprintf(buf, size, "%.60s %s", name, i->backward ? "backward" : "forward");
    else
        snprintf(buf, size, "%s %.60s", does(i, (enum topt_async)at->async), name);
    return buf;
}

json_t *topt_simulation_json(const struct topt_simulation *s,
                             const struct topt_simulate_options *o)
{
    json_t *doc = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:{s:I, s:I}, s:i, s:i, s:I}", "format",
        "topt-simulation/1", "overlap", topt_overlap_name(o->overlap), "time_ns",
        (json_int_t)s->time_ns, "compute_ns", (json_int_t)s->compute_ns, "network_ns",
        (json_int_t)s->network_ns, "exposed_ns", (json_int_t)s->exposed_ns, "links_ns",
        "node", (json_int_t)s->link_ns[TOPT_LINK_NODE], "network",
        (json_int_t)s->link_ns[TOPT_LINK_NETWORK], "tasks", s->ntasks, "micro_batches",
        s->micros, "of_micro_batches",
        (json_int_t)s->timed.program->settings.micro_batches);
    if (doc && o->bucket_bytes)
        json_object_set_new(doc, "bucket_bytes", json_integer(o->bucket_bytes));
    return doc;
}
