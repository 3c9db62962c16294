/* simulate.c - a step in time: its tasks, run; and what of it is said in figures. */
#include "graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Programs of more instructions are not simulated. */
enum { MAX_INSTRUCTIONS = 1 << 18 };

const struct topt_simulate_options topt_simulate_horovod = {
    .overlap = TOPT_OVERLAP_DDP, .bucket_bytes = 64 << 20, .cycle_ns = 5000000};

/* The totals of a whole step. */
static void sum_up(struct topt_simulation *s, const struct topt_folded *f)
{
    const struct topt_program *p = s->program;
    int64_t more = p->settings.micro_batches - f->laid_out, computing = 0;
    for (int i = 0; i < s->schedule.n; i++) {
        const struct topt_task *t = &s->schedule.task[i];
        int64_t times = i >= f->from && i < f->to ? 1 + more : 1;
        for (int l = 0; l < TOPT_LINK_COUNT; l++)
            s->link_ns[l] += t->links >> l & 1 ? t->ns * times : 0;
        s->buckets += s->task[i].packed > 0;
        s->bucket_ns += s->task[i].packed ? t->ns : 0;
        if (!t->links) {
            s->compute_ns += t->ns * times;
            computing += (t->end_ns - t->start_ns) * times;
        } else if (t->links != 1 << TOPT_LINK_HOST) {
            s->network_ns += t->ns * times;
        }
    }
    s->time_ns = s->schedule.time_ns;
    s->idle_ns = s->time_ns > computing ? s->time_ns - computing : 0;
}

int topt_simulate(const struct topt_costing *k, const struct topt_strategy *s,
                  const struct topt_simulate_options *o, struct topt_simulation *ret,
                  struct topt_error *err)
{
    struct topt_folded folded;
    *ret = (struct topt_simulation){.micros = 0};
    if (topt_lower_with_times(k, s, &ret->program, err))
        return topt_wrap(err, "simulation");
    int rc = ret->program->ninstr > MAX_INSTRUCTIONS
                 ? topt_fail(err, TOPT_ERR_LIMIT,
                             "a program of %d instructions is too long to simulate",
                             ret->program->ninstr)
                 : sim_schedule(k, o, ret, &folded, err);
    if (rc) {
        topt_simulation_fini(ret);
        return -1;
    }
    ret->micros = (int)folded.laid_out;
    sum_up(ret, &folded);
    return 0;
}

void topt_simulation_fini(struct topt_simulation *s)
{
    topt_program_destroy(s->program);
    topt_schedule_fini(&s->schedule);
    free(s->task);
    *s = (struct topt_simulation){.micros = 0};
}

/* ---- words ------------------------------------------------------------------------- */

static const char *does(const struct topt_instr *i, enum topt_async async)
{
    static const char *const moves[] = {[TOPT_ASYNC_NOTHING] = "move",
                                        [TOPT_ASYNC_GRADIENT] = "reduce",
                                        [TOPT_ASYNC_PARAM] = "gather",
                                        [TOPT_ASYNC_SHARED] = "gather"};
    static const char *const words[TOPT_I_BUCKET + 1] = {
        [TOPT_I_HALO] = "halo",
        [TOPT_I_HALO_ADD] = "halo",
        [TOPT_I_REDUCE] = "sum in",
        [TOPT_I_ADD] = "add",
        [TOPT_I_ZERO] = "zero",
        [TOPT_I_LOSS] = "report",
        [TOPT_I_UPDATE] = "update",
        [TOPT_I_NORM] = "norm",
        [TOPT_I_UNPACK] = "unpack",
        [TOPT_I_ROWS_FETCH] = "fetch rows of",
        [TOPT_I_ROWS_ADD] = "exchange gradients' rows of"};
    if (i->kind == TOPT_I_MOVE)
        return moves[async];
    return words[i->kind] ? words[i->kind] : "";
}

const char *topt_task_words(const struct topt_simulation *s, int task, char *buf,
                            size_t size)
{
    const struct topt_simulated *t = &s->task[task];
    const struct topt_program *p = s->program;
    const struct topt_instr *i = &p->instr[t->instr];
    const struct topt_instr_time *at = &s->program->time[t->instr];
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
        (json_int_t)s->network_ns, "idle_ns", (json_int_t)s->idle_ns, "links_ns", "node",
        (json_int_t)s->link_ns[TOPT_LINK_NODE], "network",
        (json_int_t)s->link_ns[TOPT_LINK_NETWORK], "tasks", s->schedule.n,
        "micro_batches", s->micros, "of_micro_batches",
        (json_int_t)s->program->settings.micro_batches);
    if (doc && o->bucket_bytes)
        json_object_set_new(doc, "bucket_bytes", json_integer(o->bucket_bytes));
    return doc;
}
