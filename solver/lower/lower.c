/* lower.c - a whole strategy written as the program of every rank.
 *
 * The dataflow (dataflow.c) says what is moved where and which operator runs; here that is
 * written as fragments into the sink that records, between what is allocated once,
 * what starts a step and what ends it.  Layouts follow from configurations: that of
 * the place where a tensor waits is its hub's, or the producer's where it has none. */
#include "beside.h"
#include "dataflow.h"
#include "low.h"
#include "operator.h"
#include "param.h"
#include "recompute.h"
#include "record.h"
#include "ring.h"
#include "tally.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

struct lowering {
    struct topt_emitter emitter; /* first: it is cast to this */
    struct topt_fragments f;
    const struct topt_model *m;
    const struct topt_strategy *s;
    struct topt_layout *value, *grad; /* by tensor: where it waits */
    struct topt_op_buffers *op;       /* by operator */
};

/* ---- the dataflow emitted --------------------------------------------------------- */

static struct topt_layout read_layout(const struct lowering *l, int op, int k)
{
    const struct topt_op *o = &l->m->op[op];
    return topt_value_layout(o, o->input[k], &l->s->config[op], l->f.mesh);
}

static int move(struct lowering *l, int op, int backward, int src,
                const struct topt_layout *to)
{
    int ret;
    return topt_fragment_move(&l->f, op, backward, src, to, &ret) ? -1 : ret;
}

static int carry_in_place(struct topt_emitter *c, int op, int k)
{
    const struct lowering *l = (const struct lowering *)c;
    struct topt_layout to = read_layout(l, op, k);
    return topt_layout_equal(&to, &l->value[topt_input_tensor(&l->m->op[op], k)]);
}

static int carry_partial(struct topt_emitter *c, int tensor)
{
    return topt_layout_partial_mask(&((const struct lowering *)c)->value[tensor]) != 0;
}

static int carry_fetch(struct topt_emitter *c, int op, int k, int backward, int value)
{
    struct lowering *l = (struct lowering *)c;
    const struct topt_op *o = &l->m->op[op];
    struct topt_layout to =
        k == TOPT_FLOW_HUB ? l->value[topt_output_tensor(o)] : read_layout(l, op, k);
    return move(l, op, backward, value, &to);
}

static int carry_give_grad(struct topt_emitter *c, int op, int k, int grad)
{
    struct lowering *l = (struct lowering *)c;
    const struct topt_op *o = &l->m->op[op];
    struct topt_layout to =
        k == TOPT_FLOW_HUB ? topt_grad_layout(o, o->output, &l->s->config[op], l->f.mesh)
                           : l->grad[topt_input_tensor(o, k)];
    return move(l, op, 1, grad, &to);
}

static int carry_add(struct topt_emitter *c, int op, int grad, int into)
{
    return topt_fragment_emit_on(&((struct lowering *)c)->f, TOPT_I_ADD, op, 1, grad,
                                 into);
}

/* Hand inputs to the operator's kernels; NULL: take them back. */
static void show_inputs(struct lowering *l, int op, const int *input)
{
    const struct topt_op *o = &l->m->op[op];
    for (int k = 0; k < o->ninputs; k++)
        l->op[op].value[o->input[k]] = input ? input[k] : -1;
}

static int carry_forward(struct topt_emitter *c, int op, enum topt_pass pass,
                         const int *input)
{
    struct lowering *l = (struct lowering *)c;
    struct topt_op_buffers *b = &l->op[op];
    int y = l->m->op[op].output;
    show_inputs(l, op, input);
    if (topt_op_forward(&l->f, op, &l->s->config[op], pass, b))
        return -1;
    show_inputs(l, op, NULL);
    int out = b->value[y];
    b->value[y] = -1;
    return out;
}

static int carry_backward(struct topt_emitter *c, int op, int grad, const int *input,
                          int *ret_input_grad)
{
    struct lowering *l = (struct lowering *)c;
    const struct topt_op *o = &l->m->op[op];
    struct topt_op_buffers *b = &l->op[op];
    show_inputs(l, op, input);
    b->grad[o->output] = grad;
    if (topt_op_backward(&l->f, op, &l->s->config[op], b))
        return -1;
    show_inputs(l, op, NULL);
    b->grad[o->output] = -1;
    for (int k = 0; k < o->ninputs; k++) {
        ret_input_grad[k] = b->grad[o->input[k]];
        b->grad[o->input[k]] = -1;
    }
    return 0;
}

static void carry_release(struct topt_emitter *c, int what)
{
    struct topt_sink *sink = ((struct lowering *)c)->f.sink;
    sink->release(sink, what);
}

static void carry_keep(struct topt_emitter *c, int value, enum topt_class cls)
{
    struct topt_sink *sink = ((struct lowering *)c)->f.sink;
    sink->keep(sink, value, cls);
}

static const struct topt_emitter emitter = {carry_in_place,  carry_partial, carry_fetch,
                                            carry_give_grad, carry_add,     carry_forward,
                                            carry_backward,  carry_release, carry_keep};

/* ---- the whole --------------------------------------------------------------------- */

static int lowering_init(struct lowering *l, struct topt_error *err)
{
    const struct topt_model *m = l->m;
    l->value = calloc((size_t)m->ntensors + 1, sizeof *l->value);
    l->grad = calloc((size_t)m->ntensors + 1, sizeof *l->grad);
    l->op = malloc(((size_t)m->nops + 1) * sizeof *l->op);
    if (!l->value || !l->grad || !l->op)
        return topt_nomem(err, "the program");
    for (int i = 0; i < m->nops; i++)
        topt_op_buffers_clear(&l->op[i]);
    for (int t = 0; t < m->ntensors; t++) {
        int op = m->tensor[t].producer, y = m->op[op].output;
        const struct topt_config *c = &l->s->config[op];
        if (m->tensor[t].nconsumers > 1) {
            l->value[t] = topt_hub_layout(&l->s->hub[t], l->f.mesh);
            l->grad[t] = topt_hub_grad_layout(&l->s->hub[t], l->f.mesh);
        } else {
            l->value[t] = topt_value_layout(&m->op[op], y, c, l->f.mesh);
            l->grad[t] = topt_grad_layout(&m->op[op], y, c, l->f.mesh);
        }
    }
    return 0;
}

static int lower_all(struct lowering *l, struct topt_program *p, struct topt_error *err)
{
    struct topt_dataflow o;
    for (int i = 0; i < l->m->nops; i++)
        if (topt_op_init(&l->f, i, &l->s->config[i], &l->op[i]))
            return -1;
    p->init_end = p->ninstr;
    for (int i = 0; i < l->m->nops; i++)
        if (topt_params_zero(&l->f, i, &l->op[i]))
            return -1;
    p->micro_begin = p->ninstr;
    int rc = topt_dataflow_init(&o, l->m, err) ||
             topt_dataflow_run(&o, l->s, &l->emitter, err);
    topt_dataflow_fini(&o);
    if (rc)
        return -1;
    p->micro_end = p->ninstr;
    for (int i = 0; i < l->m->nops; i++)
        if (topt_params_update(&l->f, i, &l->s->config[i], &l->op[i]))
            return -1;
    return ((struct topt_recorder *)l->f.sink)->failed ? topt_nomem(err, "the program")
                                                       : 0;
}

/* A parameter that a configuration splits along the first axis lies as the activations do, which
 * have the shares of rows. */
static int check_state_shares(const struct topt_model *m, const struct topt_mesh *mesh,
                              const struct topt_strategy *s, struct topt_error *err)
{
    for (int i = 0; i < m->nops && mesh->state_share[0]; i++) {
        const struct topt_op *o = &m->op[i];
        int d = s->config[i].dim[0];
        for (int x = 0; x < o->spec->noperands && d >= 0; x++)
            for (int j = 0; j < o->spec->operand[x].ndim; j++)
                if (o->operand[x].present && topt_operand_shape(o, x).of_state &&
                    o->spec->operand[x].dim[j] == d)
                    return topt_fail(err, TOPT_ERR_INVAL,
                                     "mesh.state_shares: the first axis splits "
                                     "parameters of '%.60s', and then has no shares of "
                                     "the state",
                                     o->name);
    }
    return 0;
}

static int check_strategy(const struct topt_model *m, const struct topt_mesh *mesh,
                          const struct topt_settings *settings,
                          const struct topt_strategy *s, struct topt_error *err)
{
    if (s->nops != m->nops || s->ntensors != m->ntensors)
        return topt_fail(err, TOPT_ERR_INVAL, "the strategy is for another model");
    for (int i = 0; i < m->nops; i++)
        if (!topt_config_valid(&m->op[i], &s->config[i], mesh))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "operator '%.60s' can't be split that way", m->op[i].name);
    for (int t = 0; t < m->ntensors; t++)
        for (int a = 0; m->tensor[t].nconsumers > 1 && a < mesh->naxes; a++)
            if (s->hub[t].layout.dim[a] < TOPT_HUB_SUM ||
                s->hub[t].layout.dim[a] >= m->tensor[t].ndim)
                return topt_fail(err, TOPT_ERR_INVAL,
                                 "tensor '%.60s' has no dimension %d", m->tensor[t].name,
                                 s->hub[t].layout.dim[a]);
    struct topt_recomputation r = {.any = 0};
    int rc = check_state_shares(m, mesh, s, err) ||
             topt_recompute_check(m, settings, s, &r, err);
    topt_recomputation_fini(&r);
    return rc ? -1 : 0;
}

/* Into an empty program; what it leaves is the recorder's owner's on failure, too. */
static int lower_into(struct topt_recorder *r, const struct topt_strategy *s,
                      struct topt_router *router, struct topt_error *err)
{
    struct topt_program *p = r->p;
    const struct topt_model *m = p->model;
    if (topt_settings_fit(m, &p->settings, err) ||
        check_strategy(m, &p->mesh, &p->settings, s, err))
        return -1;
    struct lowering l = {emitter,
                         {m, &p->mesh, &p->settings, router, &r->sink, err, NULL, r->fed},
                         .m = m,
                         .s = s};
    int rc = lowering_init(&l, err) || lower_all(&l, p, err);
    free(l.value);
    free(l.grad);
    free(l.op);
    return rc ? -1 : 0;
}

int topt_lower(const struct topt_model *m, const struct topt_mesh *mesh,
               const struct topt_settings *settings, const struct topt_strategy *s,
               struct topt_router *router, int fed, struct topt_program **ret,
               struct topt_error *err)
{
    struct topt_program *p = topt_program_create(m, mesh, settings, s);
    if (!p)
        return topt_nomem(err, "the program");
    struct topt_recorder r = topt_recorder(p);
    r.fed = fed;
    if (lower_into(&r, s, router, err)) {
        topt_program_destroy(p);
        return -1;
    }
    topt_program_find_peak(p);
    *ret = p;
    return 0;
}

/* ---- with times -------------------------------------------------------------------- */

/* The sink that records and prices: what each instruction takes by the prices that costs are added
 * up from (tally.c).
 *
 * Frameworks that make a block's activations again run its whole forward; the program leaves out
 * what is not needed then, as the last projection before a sum.  The price has it, and so has the
 * time of what is computed next in backward. */
struct timer {
    struct topt_recorder r; /* first: it is cast to this */
    int (*record)(struct topt_sink *sink, const struct topt_instr *i,
                  struct topt_error *err);
    struct topt_tally t; /* it prices alone */
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

/* The operand of attention whose value, or gradient, the instruction moves around; -1: none. */
static int moved_around(const struct topt_costing *k, const struct topt_program *p,
                        const struct topt_instr *i, const struct topt_buffer *b)
{
    const struct topt_op *o = i->op < 0 || b->operand < 0 ? NULL : &k->model->op[i->op];
    int tensor = o ? k->model->op[b->op].tensor[b->operand] : -1;
    for (int n = 0; o && n < o->ninputs; n++)
        if (topt_input_tensor(o, n) == tensor &&
            topt_ring_ranks(k, o, &p->config[i->op], o->input[n]) > 1)
            return o->input[n];
    return -1;
}

/* The time of an instruction that moves, where it takes 'ns' alone (ring.c). */
static int64_t ring_move(const struct topt_costing *k, const struct topt_program *p,
                         const struct topt_instr *i, int64_t ns)
{
    const struct topt_buffer *b = i->kind == TOPT_I_MOVE ? &p->buffer[i->a] : NULL;
    int64_t rounds = k->settings->micro_batches;
    int operand = k->settings->ring && b ? moved_around(k, p, i, b) : -1;
    struct topt_fragment_cost own;
    struct topt_edge_end to = {.ring = 0};
    if (operand < 0 || topt_cost_op(k, i->op, &p->config[i->op], &own, NULL))
        return ns;
    topt_ring_end(k, i->op, operand, &p->config[i->op], &own, &to);
    if (b->op != i->op)
        return topt_ring_wait(&to, ns * rounds, -1) / rounds;
    int64_t bytes = topt_move_bytes(k->mesh, &b->shape, &i->move,
                                    topt_element_bytes(k->settings, b->elem));
    int64_t g = topt_router_time(k->router, TOPT_ALL_GATHER, i->axes, bytes).ns;
    return topt_ring_wait(&to, g * rounds, ns * rounds) / rounds;
}

static int time_emit(struct topt_sink *sink, const struct topt_instr *i,
                     struct topt_error *err)
{
    struct timer *w = (struct timer *)sink;
    struct topt_program *p = w->r.p;
    int at = p->ninstr, network;
    if (w->record(sink, i, err))
        return -1;
    if (TOPT_ROOM(p->time, at, w->cap, 256))
        return topt_nomem(err, "the program's times");
    turn_to(w, i);
    w->t.named = p->buffer;
    struct topt_time once = topt_tally_price(&w->t, i, &network);
    once.ns = topt_beside_move(w->t.k, p, i, ring_move(w->t.k, p, i, once.ns));
    p->time[at] = (struct topt_instr_time){.times = w->t.times,
                                           .host_ns = topt_tally_host_ns(&w->t),
                                           .network = (uint8_t)network,
                                           .async = (uint8_t)w->t.async,
                                           .basis = (uint8_t)once.basis};
    return __builtin_mul_overflow(once.ns, w->t.times, &p->time[at].ns)
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

/* Operators that backward runs again are priced and not in the program: their forward time goes to
 * the next kernel of backward.  Operators have their backward from the last to the first. */
static int charge_left_out(struct topt_program *p, const struct topt_strategy *s,
                           struct topt_error *err)
{
    size_t nops = (size_t)p->model->nops;
    uint8_t *demanded = malloc(nops + 1);
    int64_t *left_out = calloc(nops + 1, sizeof *left_out);
    int last = p->model->nops, rc = demanded && left_out ? 0 : -1;
    if (!rc)
        topt_recompute_demand(p->model, s, demanded);
    for (int i = p->micro_begin; i < p->micro_end && !rc; i++) {
        const struct topt_instr *in = &p->instr[i];
        if (in->kind == TOPT_I_KERNEL && !in->backward &&
            topt_runs_again(&s->config[in->op]) && !demanded[in->op])
            left_out[in->op] += p->time[i].ns;
    }
    for (int i = p->micro_begin; i < p->micro_end && !rc; i++) {
        const struct topt_instr *in = &p->instr[i];
        for (; in->kind == TOPT_I_KERNEL && in->backward && last > in->op; last--)
            p->time[i].ns += left_out[last - 1];
    }
    free(demanded);
    free(left_out);
    return rc ? topt_nomem(err, "the program's times") : 0;
}

int topt_lower_with_times(const struct topt_costing *k, const struct topt_strategy *s,
                          struct topt_program **ret, struct topt_error *err)
{
    struct topt_program *p = topt_program_create(k->model, k->mesh, k->settings, s);
    if (!p)
        return topt_nomem(err, "the program");
    struct timer w = {.r = topt_recorder(p), .op = -1};
    w.record = w.r.sink.emit;
    w.r.sink.emit = time_emit;
    w.r.sink.repeat = time_repeat;
    w.r.sink.async = time_async;
    topt_tally_init(&w.t, k);
    if (lower_into(&w.r, s, k->router, err) || charge_left_out(p, s, err)) {
        topt_program_destroy(p);
        return -1;
    }
    *ret = p;
    return 0;
}
