/* instr_times.c - the sink that records and prices: a strategy's program, and what each of its
 * instructions takes by the prices that costs are added up from (tally.c).
 *
 * Frameworks that make a block's activations again run its whole forward; the program leaves out
 * what is not needed then, as the last projection before a sum.  The price has it, and so has the
 * time of what is computed next in backward. */
#include "recompute.h"
#include "record.h"
#include "tally.h"
#include "topt_array.h"

#include <stdlib.h>

struct timer {
    struct topt_recorder r; /* first: it is cast to this */
    struct topt_sink record;
    struct topt_tally t; /* it prices alone */
    struct topt_instr_time *time;
    int cap;
    int op, backward; /* whose kernels were priced last */
};

/* Kernels of another operator, or of its other direction: a new block, and what a
 * framework runs instead of them is to be told again. */
static void turn_to(struct timer *w, const struct topt_instr *i)
{
    int64_t off[TOPT_MAX_OPDIMS];
    const struct topt_program *p = w->r.p;
    if (i->kind != TOPT_I_KERNEL || (i->op == w->op && i->backward == w->backward))
        return;
    w->op = i->op;
    w->backward = i->backward;
    w->t.told = 0;
    topt_op_box(&p->model->op[i->op], &p->config[i->op], &p->mesh,
                topt_mesh_costed_device(&p->mesh), off, w->t.len);
}

static int time_emit(struct topt_sink *sink, const struct topt_instr *i,
                     struct topt_error *err)
{
    struct timer *w = (struct timer *)sink;
    int at = w->r.p->ninstr, network;
    if (w->record.emit(sink, i, err))
        return -1;
    if (at >= w->cap && TOPT_RESIZE(w->time, w->r.instr_cap))
        return topt_nomem(err, "the program's times");
    w->cap = w->r.instr_cap;
    turn_to(w, i);
    w->t.named = w->r.p->buffer;
    struct topt_time once = topt_tally_price(&w->t, i, &network);
    w->time[at] = (struct topt_instr_time){
        .times = w->t.times, .network = (uint8_t)network, .async = (uint8_t)w->t.async};
    return __builtin_mul_overflow(once.ns, w->t.times, &w->time[at].ns)
               ? topt_fail(err, TOPT_ERR_LIMIT, "the time of a step overflows")
               : 0;
}

static void time_repeat(struct topt_sink *sink, int d, int64_t times)
{
    ((struct timer *)sink)->t.along = d;
    ((struct timer *)sink)->t.times = times;
}

static void time_async(struct topt_sink *sink, enum topt_async what)
{
    ((struct timer *)sink)->t.async = what;
}

/* By operator what forward takes that is priced again and not in the program. */
static int find_left_out(const struct timer *w, const struct topt_strategy *s,
                         int64_t **ret, struct topt_error *err)
{
    const struct topt_program *p = w->r.p;
    size_t nops = (size_t)p->model->nops;
    uint8_t *demanded = malloc(nops + 1);
    *ret = calloc(nops + 1, sizeof **ret);
    if (!demanded || !*ret) {
        free(demanded);
        free(*ret);
        return topt_nomem(err, "the program's times");
    }
    topt_recompute_demand(p->model, s, demanded);
    for (int i = p->micro_begin; i < p->micro_end; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind == TOPT_I_KERNEL && !in->backward && s->config[in->op].recompute &&
            !demanded[in->op])
            (*ret)[in->op] += w->time[i].ns;
    }
    free(demanded);
    return 0;
}

/* Operators have their backward from the last to the first. */
static int charge_left_out(struct timer *w, const struct topt_strategy *s,
                           struct topt_error *err)
{
    const struct topt_program *p = w->r.p;
    int64_t *left_out;
    int last = p->model->nops;
    if (find_left_out(w, s, &left_out, err))
        return -1;
    for (int i = p->micro_begin; i < p->micro_end; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind != TOPT_I_KERNEL || !in->backward)
            continue;
        for (; last > in->op; last--)
            w->time[i].ns += left_out[last - 1];
    }
    free(left_out);
    return 0;
}

/* Buffers come and go without taking time; their instructions are recorded, too. */
static int settle(struct timer *w, const struct topt_strategy *s,
                  struct topt_timed_program *ret, struct topt_error *err)
{
    if (charge_left_out(w, s, err))
        return -1;
    int n = w->r.p->ninstr;
    if (TOPT_RESIZE(w->time, n + 1))
        return topt_nomem(err, "the program's times");
    for (int i = 0; i < n; i++)
        if (w->r.p->instr[i].kind == TOPT_I_ALLOC || w->r.p->instr[i].kind == TOPT_I_FREE)
            w->time[i] = (struct topt_instr_time){.times = 1};
    *ret = (struct topt_timed_program){w->r.p, w->time};
    w->time = NULL;
    return 0;
}

int topt_lower_with_times(const struct topt_costing *k, const struct topt_strategy *s,
                          struct topt_timed_program *ret, struct topt_error *err)
{
    struct topt_program *p = topt_program_create(k->model, k->mesh, k->settings, s);
    struct timer *w = calloc(1, sizeof *w);
    *ret = (struct topt_timed_program){NULL, NULL};
    if (!p || !w) {
        topt_program_destroy(p);
        free(w);
        return topt_nomem(err, "the program");
    }
    w->r = topt_recorder(p);
    w->record = w->r.sink;
    w->r.sink.emit = time_emit;
    w->r.sink.repeat = time_repeat;
    w->r.sink.async = time_async;
    w->op = -1;
    topt_tally_init(&w->t, k);
    int rc = topt_lower_into(&w->r, s, k->router, err) || settle(w, s, ret, err);
    if (rc)
        topt_program_destroy(p);
    free(w->time);
    free(w);
    return rc ? -1 : 0;
}

void topt_timed_program_fini(struct topt_timed_program *t)
{
    topt_program_destroy(t->program);
    free(t->time);
    *t = (struct topt_timed_program){NULL, NULL};
}
