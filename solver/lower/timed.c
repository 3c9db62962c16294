/* timed.c - the sink that records and prices: a strategy's program, and what each of its
 * instructions takes by the prices that costs are added up from (tally.c). */
#include "lower.h"
#include "record.h"
#include "tally.h"

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
    topt_op_box(&p->model->op[i->op], &p->config[i->op], &p->mesh, 0, off, w->t.len);
}

static int time_emit(struct topt_sink *sink, const struct topt_instr *i,
                     struct topt_error *err)
{
    struct timer *w = (struct timer *)sink;
    int at = w->r.p->ninstr, network;
    if (w->record.emit(sink, i, err))
        return -1;
    if (at >= w->cap) {
        int cap = w->r.instr_cap;
        struct topt_instr_time *grown = realloc(w->time, (size_t)cap * sizeof *grown);
        if (!grown)
            return topt_nomem(err, "the program's times");
        w->time = grown;
        w->cap = cap;
    }
    turn_to(w, i);
    w->t.named = w->r.p->buffer;
    struct topt_time once = topt_tally_price(&w->t, i, &network);
    w->time[at] = (struct topt_instr_time){
        .times = w->t.times, .network = (uint8_t)network, .aside = (uint8_t)w->t.aside};
    return __builtin_mul_overflow(once.ns, w->t.times, &w->time[at].ns)
               ? topt_fail(err, TOPT_ERR_LIMIT, "the time of a step overflows")
               : 0;
}

static void time_repeat(struct topt_sink *sink, int d, int64_t times)
{
    ((struct timer *)sink)->t.along = d;
    ((struct timer *)sink)->t.times = times;
}

static void time_aside(struct topt_sink *sink, enum topt_aside what)
{
    ((struct timer *)sink)->t.aside = what;
}

/* Buffers come and go without taking time; their instructions are recorded, too. */
static int settle(struct timer *w, struct topt_timed *ret, struct topt_error *err)
{
    int n = w->r.p->ninstr;
    struct topt_instr_time *grown = realloc(w->time, ((size_t)n + 1) * sizeof *grown);
    if (!grown)
        return topt_nomem(err, "the program's times");
    for (int i = 0; i < n; i++)
        if (w->r.p->instr[i].kind == TOPT_I_ALLOC || w->r.p->instr[i].kind == TOPT_I_FREE)
            grown[i] = (struct topt_instr_time){.times = 1};
    *ret = (struct topt_timed){w->r.p, grown};
    w->time = NULL;
    return 0;
}

int topt_lower_timed(const struct topt_costing *k, const struct topt_strategy *s,
                     struct topt_timed *ret, struct topt_error *err)
{
    struct topt_program *p = topt_program_create(k->model, k->mesh, k->settings, s);
    struct timer *w = calloc(1, sizeof *w);
    *ret = (struct topt_timed){NULL, NULL};
    if (!p || !w) {
        topt_program_destroy(p);
        free(w);
        return topt_nomem(err, "the program");
    }
    w->r = topt_recorder(p);
    w->record = w->r.sink;
    w->r.sink.emit = time_emit;
    w->r.sink.repeat = time_repeat;
    w->r.sink.aside = time_aside;
    w->op = -1;
    topt_tally_init(&w->t, k);
    int rc = topt_lower_into(&w->r, s, k->router, err) || settle(w, ret, err);
    if (rc)
        topt_program_destroy(p);
    free(w->time);
    free(w);
    return rc ? -1 : 0;
}

void topt_timed_fini(struct topt_timed *t)
{
    topt_program_destroy(t->program);
    free(t->time);
    *t = (struct topt_timed){NULL, NULL};
}
