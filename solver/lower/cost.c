/* cost.c - fragments written into a sink that adds up.
 *
 * The tally prices each kernel (longer of flops over rate and bytes over bandwidth) and each
 * collective once, as integers, and follows how many bytes are live.  A strategy's cost is
 * the plain sum over operators, hubs and edges, plus two caps that bound what is in flight:
 *
 *     memory = what stays + R + T + W * U
 *         R  what backward makes again: of each kind of blocks the largest
 *         T  most transient bytes of any fragment
 *         W  tensors that wait past other operators, at once, at most
 *         U  bytes of the largest of them
 *
 * What is made again is alive in forward too, for a while and for one block at a time: R has
 * room for it then as well. */
#include "fragment.h"

#include <stdlib.h>
#include <string.h>

enum { TALLY_BUFFERS = 128 };

struct tally {
    struct topt_sink sink;
    const struct topt_costing *k;
    struct topt_fragment_cost cost;
    int64_t rounds; /* micro-batches that do what is written now */
    int64_t times;  /* each instruction counts so often in one of them */
    int along;      /* ... once at each count of this dimension; -1: none */
    int64_t live;
    int muted; /* buffers made now are counted elsewhere */
    int nbuffers;
    struct topt_buffer buffer[TALLY_BUFFERS];
    uint8_t counted[TALLY_BUFFERS];
};

/* ---- the tally --------------------------------------------------------------------------- */

static int in_flight(enum topt_class c)
{
    return c == TOPT_CLASS_TRANSIENT || c == TOPT_CLASS_STAGING;
}

static int tally_alloc(struct topt_sink *sink, const struct topt_buffer *b,
                       struct topt_error *err)
{
    struct tally *t = (struct tally *)sink;
    if (t->nbuffers == TALLY_BUFFERS)
        return topt_fail(err, TOPT_ERR_LIMIT, "a fragment of more than %d buffers",
                         TALLY_BUFFERS);
    int n = t->nbuffers++;
    t->buffer[n] = *b;
    t->counted[n] = !t->muted && in_flight(b->cls);
    if (t->counted[n]) {
        t->live += b->bytes;
        if (t->live > t->cost.transient_bytes)
            t->cost.transient_bytes = t->live;
    } else if (!t->muted) {
        t->cost.class_bytes[b->cls] += b->bytes;
    }
    return n;
}

static void tally_release(struct topt_sink *sink, int buffer)
{
    struct tally *t = (struct tally *)sink;
    if (t->counted[buffer])
        t->live -= t->buffer[buffer].bytes;
    t->counted[buffer] = 0;
}

static void tally_keep(struct topt_sink *sink, int buffer, enum topt_class cls)
{
    struct tally *t = (struct tally *)sink;
    tally_release(sink, buffer);
    t->cost.class_bytes[cls] += t->buffer[buffer].bytes;
}

static const struct topt_buffer *tally_get(struct topt_sink *sink, int buffer)
{
    return &((struct tally *)sink)->buffer[buffer];
}

static int64_t bytes_of(const struct tally *t, int buffer)
{
    return buffer >= 0 ? t->buffer[buffer].bytes : 0;
}

static int64_t elementwise_ns(const struct tally *t, int64_t bytes)
{
    return topt_hw_compute_ns(t->k->hw, t->k->settings->dtype, TOPT_WORK_ELEMENTWISE, 0,
                              bytes, t->k->mesh->devices);
}

/* In a loop a kernel touches, of an operand along the loop's dimension, one count. */
static int64_t bytes_at_once(const struct tally *t, const struct topt_op_spec *spec,
                             int operand, int64_t bytes)
{
    for (int i = 0; i < spec->operand[operand].ndim; i++)
        if (spec->operand[operand].dim[i] == t->along)
            return bytes / t->times;
    return bytes;
}

/* 'len' comes from the configuration that the buffers' fragment was written for. */
static int64_t kernel_ns(const struct tally *t, const struct topt_instr *i,
                         const int64_t *len)
{
    const struct topt_op *o = &t->k->model->op[i->op];
    int64_t bytes = 0;
    for (int x = 0; x < o->spec->noperands; x++)
        bytes += bytes_at_once(t, o->spec, x,
                               bytes_of(t, i->value[x]) + bytes_of(t, i->grad[x]));
    return topt_hw_compute_ns(
        t->k->hw, t->k->settings->dtype, topt_kernel_work(i->kernel),
        o->spec->flops(o, i->kernel, len), bytes, t->k->mesh->devices);
}

static int64_t all_reduce_ns(const struct tally *t, uint32_t axes, int64_t bytes)
{
    return topt_hw_collective_ns(t->k->hw, TOPT_ALL_REDUCE,
                                 topt_mesh_group(t->k->mesh, axes), bytes);
}

/* What a window holds beside the block comes from the neighbours. */
static int64_t halo_ns(const struct tally *t, const struct topt_instr *i)
{
    int64_t a = bytes_of(t, i->a), b = bytes_of(t, i->b);
    return topt_hw_collective_ns(t->k->hw, TOPT_PERMUTE,
                                 topt_mesh_group(t->k->mesh, i->axes),
                                 a > b ? a - b : b - a);
}

struct op_tally {
    struct tally t; /* first: the sink is cast to it */
    int64_t len[TOPT_MAX_OPDIMS];
};

static int tally_emit(struct topt_sink *sink, const struct topt_instr *i,
                      struct topt_error *err)
{
    struct op_tally *o = (struct op_tally *)sink;
    struct tally *t = &o->t;
    int64_t ns = 0, net = 0;
    switch (i->kind) {
    case TOPT_I_KERNEL:
        ns = kernel_ns(t, i, o->len);
        break;
    case TOPT_I_ZERO:
        ns = elementwise_ns(t, bytes_of(t, i->a));
        break;
    case TOPT_I_ADD:
        ns = elementwise_ns(t, 3 * bytes_of(t, i->a));
        break;
    case TOPT_I_UPDATE:
        ns = elementwise_ns(
            t, 2 * (bytes_of(t, i->a) + bytes_of(t, i->c) + bytes_of(t, i->d)) +
                   2 * bytes_of(t, i->e) + bytes_of(t, i->b));
        break;
    case TOPT_I_MOVE:
        net = topt_move_ns(t->k->hw, t->k->mesh, &t->buffer[i->a].shape, &i->move,
                           topt_element_bytes(t->k->settings, t->buffer[i->a].elem));
        break;
    case TOPT_I_REDUCE:
        net = all_reduce_ns(t, i->axes, bytes_of(t, i->a));
        break;
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
        net = halo_ns(t, i);
        break;
    case TOPT_I_LOSS:
        net = all_reduce_ns(t, i->axes, 8);
        break;
    default:
        break;
    }
    if (i->op >= 0 && i->kind == TOPT_I_INIT)
        return 0; /* once, not a step's cost */
    if (__builtin_mul_overflow(ns, t->times * t->rounds, &ns) ||
        __builtin_mul_overflow(net, t->times * t->rounds, &net) ||
        __builtin_add_overflow(t->cost.compute_ns, ns, &t->cost.compute_ns) ||
        __builtin_add_overflow(t->cost.network_ns, net, &t->cost.network_ns))
        return topt_fail(err, TOPT_ERR_LIMIT, "the time of a step overflows");
    return 0;
}

static void tally_repeat(struct topt_sink *sink, int d, int64_t times)
{
    ((struct tally *)sink)->along = d;
    ((struct tally *)sink)->times = times;
}

static void tally_init(struct op_tally *o, const struct topt_costing *k)
{
    o->t.sink = (struct topt_sink){tally_alloc, tally_release, tally_keep,
                                   tally_emit,  tally_get,     tally_repeat};
    o->t.rounds = k->settings->micro_batches;
    o->t.times = 1;
    o->t.along = -1;
    o->t.k = k;
    o->t.cost = (struct topt_fragment_cost){0};
    o->t.live = 0;
    o->t.muted = 0;
    o->t.nbuffers = 0;
    memset(o->len, 0, sizeof o->len);
}

static struct topt_fragments fragments(const struct topt_costing *k, struct op_tally *o,
                                       struct topt_error *err)
{
    return (struct topt_fragments){k->model,  k->mesh,    k->settings,
                                   k->router, &o->t.sink, err};
}

/* ---- operators ------------------------------------------------------------------------------ */

/* Inputs that backward reads are counted where they are kept, by the edge; only an operator
 * that reads several is charged for all of them here, since both may be fetched again. */
static int charged_here(const struct topt_model *m, int op, int input)
{
    int reads = 0;
    for (int k = 0; k < m->op[op].ninputs; k++)
        reads += topt_reads_back(m, op, k);
    return !topt_reads_back(m, op, input) || reads > 1;
}

static int give_inputs(const struct topt_fragments *f, struct tally *t, int op,
                       const struct topt_config *c, int backward,
                       struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int k = 0; k < o->ninputs; k++) {
        int x = o->input[k];
        b->value[x] = -1;
        if (backward && !o->spec->operand[x].needed)
            continue;
        struct topt_layout l = topt_value_layout(o, x, c, f->mesh);
        t->muted = !charged_here(f->model, op, k);
        b->value[x] = topt_fragment_operand(f, op, x, &l, TOPT_CLASS_TRANSIENT);
        t->muted = 0;
        if (b->value[x] < 0)
            return -1;
    }
    return 0;
}

static void take_inputs(const struct topt_fragments *f, int op, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int k = 0; k < o->ninputs; k++)
        if (b->value[o->input[k]] >= 0)
            f->sink->release(f->sink, b->value[o->input[k]]);
}

static int tally_forward(const struct topt_fragments *f, struct tally *t, int op,
                         const struct topt_config *c, enum topt_pass pass,
                         struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    if (give_inputs(f, t, op, c, 0, b) || topt_fragment_forward(f, op, c, pass, b))
        return -1;
    take_inputs(f, op, b);
    f->sink->release(f->sink, b->value[o->output]);
    b->value[o->output] = -1;
    return 0;
}

static int tally_backward(const struct topt_fragments *f, struct tally *t, int op,
                          const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    if (op != f->model->loss) {
        struct topt_layout l = topt_grad_layout(o, o->output, c, f->mesh);
        b->grad[o->output] =
            topt_fragment_operand(f, op, o->output, &l, TOPT_CLASS_TRANSIENT);
        if (b->grad[o->output] < 0)
            return -1;
    }
    if (give_inputs(f, t, op, c, 1, b) || topt_fragment_backward(f, op, c, b))
        return -1;
    take_inputs(f, op, b);
    for (int x = 0; x < o->spec->noperands; x++)
        if (b->grad[x] >= 0)
            f->sink->release(f->sink, b->grad[x]);
    return 0;
}

static int tally_op(const struct topt_fragments *f, struct tally *t, int op,
                    const struct topt_config *c)
{
    struct topt_op_buffers b;
    int64_t rounds = t->rounds;
    topt_op_buffers_clear(&b);
    if (topt_fragment_init(f, op, c, &b))
        return -1;
    t->cost.compute_ns = 0; /* initialisation is not part of a step */
    t->rounds = 1;
    if (topt_fragment_begin(f, op, &b))
        return -1;
    t->rounds = rounds;
    if (tally_forward(f, t, op, c, c->recompute ? TOPT_PASS_DROP : TOPT_PASS_KEEP, &b) ||
        (c->recompute && tally_forward(f, t, op, c, TOPT_PASS_AGAIN, &b)))
        return -1;
    if (!topt_has_backward(f->model, op))
        return 0;
    if (tally_backward(f, t, op, c, &b))
        return -1;
    t->rounds = 1;
    return topt_fragment_end(f, op, c, &b);
}

int topt_cost_op(const struct topt_costing *k, int op, const struct topt_config *c,
                 struct topt_fragment_cost *ret, struct topt_error *err)
{
    struct op_tally o;
    int64_t off[TOPT_MAX_OPDIMS];
    tally_init(&o, k);
    topt_op_box(&k->model->op[op], c, k->mesh, 0, off, o.len);
    struct topt_fragments f = fragments(k, &o, err);
    if (tally_op(&f, &o.t, op, c))
        return topt_wrap(err, "operator '%.60s'", k->model->op[op].name);
    *ret = o.t.cost;
    return 0;
}

int topt_cost_hub(const struct topt_costing *k, int tensor, const struct topt_hub *h,
                  struct topt_fragment_cost *ret, struct topt_error *err)
{
    const struct topt_tensor *t = &k->model->tensor[tensor];
    struct op_tally o;
    tally_init(&o, k);
    struct topt_fragments f = fragments(k, &o, err);
    const struct topt_op *p = &k->model->op[t->producer];
    struct topt_layout l = topt_hub_layout(h, k->mesh);
    o.t.muted = 1;
    int grad =
        topt_fragment_operand(&f, t->producer, p->output, &l, TOPT_CLASS_TRANSIENT);
    if (grad < 0)
        return -1;
    for (int i = 1; t->needs_gradient && i < t->nconsumers; i++)
        if (topt_fragment_add(&f, t->producer, grad, grad))
            return -1;
    *ret = o.t.cost;
    return 0;
}

/* ---- edges ------------------------------------------------------------------------------------ */

static int64_t block(const struct topt_costing *k, const struct topt_shape *s,
                     const struct topt_layout *l)
{
    return topt_block_bytes(k->mesh, k->settings, s, l, TOPT_ELEM_REAL);
}

struct topt_edge_end topt_edge_producer(const struct topt_costing *k, int op,
                                        const struct topt_config *c)
{
    const struct topt_op *o = &k->model->op[op];
    return (struct topt_edge_end){.value = topt_value_layout(o, o->output, c, k->mesh),
                                  .grad = topt_grad_layout(o, o->output, c, k->mesh),
                                  .recompute = c->recompute};
}

struct topt_edge_end topt_edge_hub(const struct topt_costing *k, const struct topt_hub *h)
{
    struct topt_layout l = topt_hub_layout(h, k->mesh);
    return (struct topt_edge_end){.value = l, .grad = l, .hub = 1, .hub_keep = h->keep};
}

struct topt_edge_end topt_edge_consumer(const struct topt_costing *k, int op, int input,
                                        const struct topt_config *c, int64_t op_transient)
{
    const struct topt_op *o = &k->model->op[op];
    int x = o->input[input];
    struct topt_edge_end e = {.value = topt_value_layout(o, x, c, k->mesh),
                              .grad = topt_grad_layout(o, x, c, k->mesh),
                              .recompute = c->recompute,
                              .needed =
                                  c->recompute || topt_reads_back(k->model, op, input),
                              .op_bytes = op_transient};
    for (int i = 0; i < o->ninputs; i++) {
        int y = o->input[i];
        struct topt_shape s = topt_operand_shape(o, y);
        struct topt_layout l = topt_value_layout(o, y, c, k->mesh);
        if (i != input)
            e.others_bytes += block(k, &s, &l);
    }
    if (op != k->model->loss) {
        struct topt_shape s = topt_operand_shape(o, o->output);
        struct topt_layout l = topt_grad_layout(o, o->output, c, k->mesh);
        e.out_bytes = block(k, &s, &l);
    }
    return e;
}

/* Cost of moving a tensor from one layout to another: its times, and most bytes live with
 * source and result. */
static int tally_move(const struct topt_costing *k, int tensor,
                      const struct topt_layout *from, const struct topt_layout *to,
                      struct topt_fragment_cost *ret, struct topt_error *err)
{
    struct op_tally o;
    tally_init(&o, k);
    struct topt_fragments f = fragments(k, &o, err);
    const struct topt_tensor *t = &k->model->tensor[tensor];
    struct topt_shape shape = topt_tensor_shape(t);
    int out = k->model->op[t->producer].output, buffer;
    int src = topt_fragment_operand(&f, t->producer, out, from, TOPT_CLASS_TRANSIENT);
    if (src < 0 || topt_fragment_move(&f, t->producer, 0, src, &shape, from, to, &buffer))
        return -1;
    *ret = o.t.cost;
    return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* What an edge is made of. */
struct edge {
    const struct topt_edge_end *from, *to;
    int in_place;
    int64_t before, after; /* bytes of the tensor at either end */
    struct topt_fragment_cost there;
};

/* Into a hub: its copy is dropped, kept, or made again from a producer that recomputes. */
static void cost_into_hub(const struct edge *e, struct topt_edge_cost *ret)
{
    struct topt_fragment_cost *a = &ret->alt[0];
    if (e->to->hub_keep == TOPT_HUB_KEEP)
        a->class_bytes[TOPT_CLASS_KEPT] = e->after;
    if (e->to->hub_keep != TOPT_HUB_REMAKE)
        return;
    a->class_bytes[TOPT_CLASS_REMADE] = e->after;
    a->network_ns += e->there.network_ns;
    if (!e->from->recompute)
        ret->nalts = 0;
}

/* From where the tensor is made again: so is the consumer's copy. */
static void cost_remade(const struct edge *e, struct topt_edge_cost *ret)
{
    struct topt_fragment_cost *a = &ret->alt[0];
    if (!e->to->needed)
        return;
    a->class_bytes[TOPT_CLASS_REMADE] =
        (e->from->hub ? 0 : e->before) + (e->in_place ? 0 : e->after);
    a->network_ns += e->there.network_ns;
}

/* The consumer's copy is kept; or the producer's, which is moved again in backward.  A
 * consumer that recomputes needs it from then until its own backward. */
static void cost_kept(const struct edge *e, struct topt_edge_cost *ret)
{
    struct topt_fragment_cost *a = &ret->alt[0], *b = &ret->alt[1];
    const struct topt_edge_end *from = e->from, *to = e->to;
    int hub_kept = from->hub && from->hub_keep == TOPT_HUB_KEEP;
    if (!to->needed)
        return;
    if (!(e->in_place && hub_kept))
        a->class_bytes[TOPT_CLASS_KEPT] = e->after;
    if (e->in_place || topt_layout_partial_mask(&from->value) || (from->hub && !hub_kept))
        return;
    ret->nalts = 2;
    *b = *a;
    b->network_ns += e->there.network_ns;
    b->class_bytes[TOPT_CLASS_KEPT] = from->hub ? 0 : e->before;
    if (to->recompute) {
        b->class_bytes[TOPT_CLASS_REMADE] = e->after;
        return;
    }
    int64_t again = to->out_bytes + to->others_bytes + e->there.transient_bytes;
    b->transient_bytes =
        larger(larger(a->transient_bytes, again), to->op_bytes + e->after);
}

int topt_cost_edge(const struct topt_costing *k, int tensor,
                   const struct topt_edge_end *from, const struct topt_edge_end *to,
                   struct topt_edge_cost *ret, struct topt_error *err)
{
    const struct topt_tensor *t = &k->model->tensor[tensor];
    struct topt_shape shape = topt_tensor_shape(t);
    struct edge e = {.from = from,
                     .to = to,
                     .in_place = topt_layout_equal(&from->value, &to->value),
                     .before = block(k, &shape, &from->value),
                     .after = block(k, &shape, &to->value)};
    struct topt_fragment_cost back = {0};
    *ret =
        (struct topt_edge_cost){.nalts = 1, .keep = {TOPT_KEEP_AFTER, TOPT_KEEP_BEFORE}};
    if (tally_move(k, tensor, &from->value, &to->value, &e.there, err) ||
        (t->needs_gradient && tally_move(k, tensor, &to->grad, &from->grad, &back, err)))
        return -1;
    ret->alt[0].network_ns = e.there.network_ns + back.network_ns;
    ret->alt[0].transient_bytes =
        to->others_bytes + larger(e.there.transient_bytes, back.transient_bytes);
    if (to->hub)
        cost_into_hub(&e, ret);
    else if (from->hub ? from->hub_keep == TOPT_HUB_REMAKE : from->recompute)
        cost_remade(&e, ret);
    else
        cost_kept(&e, ret);
    return 0;
}

/* ---- spans and the whole strategy --------------------------------------------------------------- */

int topt_spans_init(struct topt_spans *s, const struct topt_model *m,
                    struct topt_error *err)
{
    int *last = calloc((size_t)m->ntensors + 1, sizeof *last);
    int *open = calloc((size_t)m->nops + 2, sizeof *open);
    *s = (struct topt_spans){.span = calloc((size_t)m->ntensors + 1, 1)};
    if (!last || !open || !s->span) {
        free(last);
        free(open);
        topt_spans_fini(s);
        return topt_fail(err, TOPT_ERR_NOMEM, "no memory for the model's spans");
    }
    for (int i = 0; i < m->nops; i++)
        for (int k = 0; k < m->op[i].ninputs; k++)
            last[m->op[i].operand[m->op[i].input[k]].tensor] = i;
    for (int t = 0; t < m->ntensors; t++) {
        int length = last[t] - m->tensor[t].producer;
        if (m->tensor[t].nconsumers == 0 || length <= 1)
            continue;
        /* A residual crosses a block, a tied weight the whole model. */
        int is_long = length > 16 && 2 * length > m->nops;
        s->span[t] = is_long ? TOPT_SPAN_LONG : TOPT_SPAN_CROSSING;
        if (is_long)
            continue;
        open[m->tensor[t].producer + 1]++;
        open[last[t] + 1]--;
    }
    for (int i = 0, now = 0; i <= m->nops; i++) {
        now += open[i];
        if (now > s->crossing)
            s->crossing = now;
    }
    free(last);
    free(open);
    return 0;
}

void topt_spans_recompute(struct topt_spans *s, const struct topt_model *m,
                          const struct topt_blocks *blocks)
{
    for (int t = 0; t < m->ntensors; t++)
        if (s->span[t] == TOPT_SPAN_NEXT && blocks->kind[m->tensor[t].producer] >= 0)
            s->span[t] = TOPT_SPAN_CROSSING;
    s->crossing++;
}

void topt_spans_fini(struct topt_spans *s)
{
    free(s->span);
    s->span = NULL;
}

int64_t topt_span_bytes(const struct topt_costing *k, int tensor,
                        const struct topt_layout *where)
{
    struct topt_shape shape = topt_tensor_shape(&k->model->tensor[tensor]);
    return block(k, &shape, where);
}

int64_t topt_round_transient(int64_t bytes)
{
    int64_t step = 1;
    while (bytes / step >= 16)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

/* Sums of a strategy, and the largest caps seen. */
struct total {
    const struct topt_costing *k;
    const struct topt_strategy *st;
    struct topt_strategy_cost *cost;
    struct topt_spans spans;
    struct topt_blocks blocks; /* empty where nobody recomputes */
    int64_t *remade;           /* by first operator of a block */
    struct topt_error *err;
};

/* Add the cost of a fragment of operator 'op'. */
static int add(struct total *s, int op, const struct topt_fragment_cost *c)
{
    struct topt_fragment_cost *sum = &s->cost->sum;
    int bad = __builtin_add_overflow(sum->compute_ns, c->compute_ns, &sum->compute_ns);
    bad |= __builtin_add_overflow(sum->network_ns, c->network_ns, &sum->network_ns);
    for (int i = 0; i < TOPT_CLASS_COUNT; i++)
        bad |= __builtin_add_overflow(sum->class_bytes[i], c->class_bytes[i],
                                      &sum->class_bytes[i]);
    int64_t rounded = topt_round_transient(c->transient_bytes);
    s->cost->transient_cap = larger(s->cost->transient_cap, rounded);
    if (s->blocks.kind && s->blocks.kind[op] >= 0)
        s->remade[op - s->blocks.position[op]] += c->class_bytes[TOPT_CLASS_REMADE];
    return bad ? topt_fail(s->err, TOPT_ERR_LIMIT, "the cost of the strategy overflows")
               : 0;
}

/* A tensor that waits: bounded by the crossing cap, or charged by itself. */
static void add_waiting(struct total *s, int tensor, const struct topt_layout *where)
{
    if (s->spans.span[tensor] == TOPT_SPAN_NEXT)
        return;
    int64_t bytes = topt_span_bytes(s->k, tensor, where);
    if (s->spans.span[tensor] == TOPT_SPAN_LONG)
        s->cost->sum.class_bytes[TOPT_CLASS_KEPT] += bytes;
    else
        s->cost->crossing_cap = larger(s->cost->crossing_cap, bytes);
}

static int add_edge(struct total *s, int op, int tensor, const struct topt_edge_end *from,
                    const struct topt_edge_end *to, enum topt_keep keep)
{
    struct topt_edge_cost e;
    if (topt_cost_edge(s->k, tensor, from, to, &e, s->err))
        return -1;
    return add(s, op, &e.alt[keep == TOPT_KEEP_BEFORE && e.nalts == 2]);
}

static int add_tensor(struct total *s, int tensor)
{
    const struct topt_tensor *t = &s->k->model->tensor[tensor];
    struct topt_edge_end from =
        topt_edge_producer(s->k, t->producer, &s->st->config[t->producer]);
    if (t->nconsumers > 1) {
        struct topt_edge_end hub = topt_edge_hub(s->k, &s->st->hub[tensor]);
        struct topt_fragment_cost c;
        if (add_edge(s, t->producer, tensor, &from, &hub, TOPT_KEEP_AFTER) ||
            topt_cost_hub(s->k, tensor, &s->st->hub[tensor], &c, s->err) ||
            add(s, t->producer, &c))
            return -1;
        from = hub;
    }
    add_waiting(s, tensor, &from.value);
    return 0;
}

static int add_inputs(struct total *s, int op, int64_t op_transient)
{
    const struct topt_op *o = &s->k->model->op[op];
    const struct topt_strategy *st = s->st;
    for (int i = 0; i < o->ninputs; i++) {
        int tensor = o->operand[o->input[i]].tensor;
        int p = s->k->model->tensor[tensor].producer;
        struct topt_edge_end from = s->k->model->tensor[tensor].nconsumers > 1
                                        ? topt_edge_hub(s->k, &st->hub[tensor])
                                        : topt_edge_producer(s->k, p, &st->config[p]);
        struct topt_edge_end to =
            topt_edge_consumer(s->k, op, i, &st->config[op], op_transient);
        if (add_edge(s, op, tensor, &from, &to,
                     (enum topt_keep)st->keep[op * TOPT_MAX_INPUTS + i]))
            return -1;
    }
    return 0;
}

/* Blocks of a kind have their backward one after the other. */
static int64_t largest_blocks(const struct total *s)
{
    int64_t sum = 0;
    for (int i = 0; i < s->blocks.nkinds; i++) {
        const struct topt_block_kind *b = &s->blocks.of[i];
        int64_t most = 0;
        for (int n = 0; n < b->count; n++)
            most = larger(most, s->remade[b->first + n * b->length]);
        sum += most;
    }
    return sum;
}

static int total_init(struct total *s)
{
    const struct topt_model *m = s->k->model;
    s->remade = calloc((size_t)m->nops + 1, sizeof *s->remade);
    if (!s->remade)
        return topt_fail(s->err, TOPT_ERR_NOMEM, "no memory for a strategy's cost");
    if (topt_settings_fit(m, s->k->settings, s->err) ||
        topt_remake_check(m, s->st, &s->blocks, s->err) ||
        topt_spans_init(&s->spans, m, s->err))
        return -1;
    if (s->blocks.kind)
        topt_spans_recompute(&s->spans, m, &s->blocks);
    return 0;
}

static void total_fini(struct total *s)
{
    free(s->remade);
    topt_blocks_fini(&s->blocks);
    topt_spans_fini(&s->spans);
}

static int add_all(struct total *s)
{
    const struct topt_model *m = s->k->model;
    for (int i = 0; i < m->nops; i++) {
        struct topt_fragment_cost c;
        if (topt_cost_op(s->k, i, &s->st->config[i], &c, s->err) || add(s, i, &c) ||
            add_inputs(s, i, c.transient_bytes))
            return -1;
    }
    for (int t = 0; t < m->ntensors; t++)
        if (add_tensor(s, t))
            return -1;
    return 0;
}

int topt_cost_strategy(const struct topt_costing *k, const struct topt_strategy *st,
                       struct topt_strategy_cost *ret, struct topt_error *err)
{
    struct topt_strategy_cost cost = {.time_ns = 0};
    struct total s = {.k = k, .st = st, .cost = &cost, .err = err};
    int rc = total_init(&s) || add_all(&s) ? -1 : 0;
    if (!rc) {
        cost.crossing = s.spans.crossing;
        cost.remade_bytes = largest_blocks(&s);
        cost.time_ns = cost.sum.compute_ns + cost.sum.network_ns;
        cost.memory_bytes =
            cost.remade_bytes + cost.transient_cap + cost.crossing * cost.crossing_cap;
        for (int i = 0; i <= TOPT_CLASS_KEPT; i++)
            cost.memory_bytes += cost.sum.class_bytes[i];
        *ret = cost;
    }
    total_fini(&s);
    return rc;
}
