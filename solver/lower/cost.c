/* cost.c - what an operator, a hub and an edge cost: their fragments written into the
 * tally.
 *
 * A strategy's cost (strategy_total.c) is the plain sum over them, plus caps on what is in
 * flight. */
#include "beside.h"
#include "low.h"
#include "operator.h"
#include "param.h"
#include "recompute.h"
#include "ring.h"
#include "tally.h"
#include "topt_minmax.h"

#include <stdlib.h>
#include <string.h>

/* ---- operators --------------------------------------------------------------------- */

/* Inputs that backward reads are counted where they are kept, by the edge; only an
 * operator that reads several is charged for all of them here, since both may be
 * fetched again.  A mask of the others. */
static uint32_t counted_by_edges(const struct topt_model *m, int op)
{
    uint32_t read = 0;
    for (int k = 0; k < m->op[op].ninputs; k++)
        read |= (uint32_t)topt_reads_back(m, op, k) << k;
    return read & (read - 1) ? 0 : read;
}

/* A fragment's buffers from outside: one for each input as the configuration wants it, in
 * backward where that reads it. */
static int alloc_inputs(const struct topt_fragments *f, struct topt_tally *t, int op,
                        const struct topt_config *c, int backward,
                        struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    uint32_t muted = counted_by_edges(f->model, op);
    for (int k = 0; k < o->ninputs; k++) {
        int x = o->input[k];
        if (backward && !topt_reads_back(f->model, op, k))
            continue;
        t->muted = muted >> k & 1;
        struct topt_layout l = topt_value_layout(o, x, c, f->mesh);
        b->value[x] = topt_fragment_operand(f, op, x, &l, TOPT_CLASS_TRANSIENT);
        if (b->value[x] < 0)
            return -1;
    }
    t->muted = 0;
    topt_live_begin(t->alive);
    return 0;
}

static void take_inputs(const struct topt_fragments *f, int op, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    for (int k = 0; k < o->ninputs; k++)
        if (b->value[o->input[k]] >= 0) {
            topt_fragment_release(f, b->value[o->input[k]]);
            b->value[o->input[k]] = -1;
        }
}

/* The bytes that the papers count for an operator: its output and the tensors that it makes
 * inside. */
static int count_output(struct topt_tally *t, const struct topt_op *o, int64_t bytes,
                        struct topt_error *err)
{
    int last = topt_operand_rank(o, o->output) - 1;
    int64_t unit = o->operand[o->output].dim[last].unit, inside;
    if (o->attrs->fused)
        return 0;
    if (__builtin_mul_overflow(bytes / unit, o->attrs->inside, &inside) ||
        inside > INT64_MAX / 4 - bytes)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "%lld numbers inside of each count are too many",
                         (long long)o->attrs->inside);
    t->output_bytes = bytes + inside;
    return 0;
}

static int tally_forward(const struct topt_fragments *f, struct topt_tally *t, int op,
                         const struct topt_config *c, enum topt_pass pass,
                         struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    t->told = 0;
    if (alloc_inputs(f, t, op, c, 0, b) || topt_op_forward(f, op, c, pass, b))
        return -1;
    topt_live_end(t->alive,
                  pass == TOPT_PASS_RECOMPUTE ? TOPT_LIVE_AGAIN : TOPT_LIVE_FORWARD);
    if (pass != TOPT_PASS_RECOMPUTE)
        topt_live_put(t->alive, TOPT_LIVE_OUT, b->value[o->output]);
    take_inputs(f, op, b);
    if (count_output(t, o, t->buffer[b->value[o->output]].bytes, f->err))
        return -1;
    topt_fragment_release(f, b->value[o->output]);
    b->value[o->output] = -1;
    return 0;
}

static int tally_backward(const struct topt_fragments *f, struct topt_tally *t, int op,
                          const struct topt_config *c, struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    t->told = 0;
    if (!o->spec->loss) {
        struct topt_layout l = topt_grad_layout(o, o->output, c, f->mesh);
        b->grad[o->output] =
            topt_fragment_operand(f, op, o->output, &l, TOPT_CLASS_TRANSIENT);
        if (b->grad[o->output] < 0)
            return -1;
    }
    if (alloc_inputs(f, t, op, c, 1, b) || topt_op_backward(f, op, c, b))
        return -1;
    topt_live_end(t->alive, TOPT_LIVE_BACKWARD);
    for (int k = 0; k < o->ninputs; k++)
        if (b->grad[o->input[k]] >= 0)
            topt_live_put(t->alive, TOPT_LIVE_GRADS + k, b->grad[o->input[k]]);
    take_inputs(f, op, b);
    for (int x = 0; x < o->spec->noperands; x++)
        if (b->grad[x] >= 0)
            topt_fragment_release(f, b->grad[x]);
    return 0;
}

static int tally_op(const struct topt_fragments *f, struct topt_tally *t, int op,
                    const struct topt_config *c)
{
    struct topt_op_buffers b;
    int64_t rounds = t->rounds;
    int again = topt_runs_again(c);
    topt_op_buffers_clear(&b);
    topt_live_begin(t->alive);
    if (topt_op_init(f, op, c, &b))
        return -1;
    t->cost.compute_ns = 0; /* initialisation is not part of a step */
    memset(t->cost.basis_ns, 0, sizeof t->cost.basis_ns);
    t->cost.spent = (struct topt_piece_time){.unit = 0};
    memset(t->async_ns, 0, sizeof t->async_ns);
    t->part = TOPT_DURING_BEGIN;
    t->rounds = 1;
    if (topt_params_zero(f, op, &b))
        return -1;
    topt_live_end(t->alive, TOPT_LIVE_INIT);
    t->rounds = rounds;
    t->part = TOPT_DURING_FORWARD;
    if (tally_forward(f, t, op, c, again ? TOPT_PASS_DROP : TOPT_PASS_KEEP, &b))
        return -1;
    t->part = TOPT_DURING_BACKWARD;
    if (again && tally_forward(f, t, op, c, TOPT_PASS_RECOMPUTE, &b))
        return -1;
    if (topt_has_backward(f->model, op) && tally_backward(f, t, op, c, &b))
        return -1;
    t->part = TOPT_DURING_END;
    t->rounds = 1;
    topt_live_begin(t->alive);
    if (topt_has_backward(f->model, op) && topt_params_update(f, op, c, &b))
        return -1;
    topt_live_end(t->alive, TOPT_LIVE_END);
    topt_param_buffers(f, op, c, &t->cost);
    t->cost.beside_bytes = topt_beside_bytes(t->k, op, c);
    struct topt_host_traffic host;
    topt_param_offload(f, op, c, &t->cost, &host);
    topt_tally_offload(t, &host);
    topt_tally_hide(t);
    topt_tally_eager(t, op, again ? TOPT_CLASS_RECOMPUTED : TOPT_CLASS_KEPT);
    if (c->recompute == TOPT_AGAIN_KEPT)
        t->cost.class_bytes[TOPT_CLASS_KEPT] += t->output_bytes;
    return 0;
}

int topt_cost_op_by(const struct topt_costing *k, int op, const struct topt_config *c,
                    struct topt_live *alive, struct topt_fragment_cost *ret,
                    int *ret_open, struct topt_error *err)
{
    struct topt_tally t;
    int64_t off[TOPT_MAX_OPDIMS];
    topt_tally_init(&t, k);
    topt_op_box(&k->model->op[op], c, k->mesh, topt_mesh_costed_device(k->mesh), off,
                t.len);
    struct topt_fragments f = topt_tally_fragments(&t, err);
    f.open = ret_open;
    t.alive = alive;
    if (alive) {
        alive->config = c;
        alive->windows = 0;
    }
    if (tally_op(&f, &t, op, c))
        return topt_wrap(err, "operator '%.60s'", k->model->op[op].name);
    *ret = topt_tally_cost(&t, op);
    return 0;
}

int topt_cost_op_ask(const struct topt_costing *k, int op, const struct topt_config *c,
                     struct topt_fragment_cost *ret, int *ret_open,
                     struct topt_error *err)
{
    *ret_open = 0;
    return topt_cost_op_by(k, op, c, NULL, ret, ret_open, err);
}

int topt_cost_op(const struct topt_costing *k, int op, const struct topt_config *c,
                 struct topt_fragment_cost *ret, struct topt_error *err)
{
    return topt_cost_op_by(k, op, c, NULL, ret, NULL, err);
}

int topt_cost_hub(const struct topt_costing *k, int tensor, const struct topt_hub *h,
                  struct topt_fragment_cost *ret, struct topt_error *err)
{
    const struct topt_tensor *x = &k->model->tensor[tensor];
    struct topt_tally t;
    topt_tally_init(&t, k);
    struct topt_fragments f = topt_tally_fragments(&t, err);
    const struct topt_op *p = &k->model->op[x->producer];
    struct topt_layout l = topt_hub_layout(h, k->mesh);
    t.muted = 1;
    t.part = TOPT_DURING_BACKWARD;
    int grad =
        topt_fragment_operand(&f, x->producer, p->output, &l, TOPT_CLASS_TRANSIENT);
    if (grad < 0)
        return -1;
    for (int i = 1; x->needs_gradient && i < x->nconsumers; i++)
        if (topt_fragment_emit_on(&f, TOPT_I_ADD, x->producer, 1, grad, grad))
            return -1;
    *ret = topt_tally_cost(&t, x->producer);
    return 0;
}

/* ---- edges ------------------------------------------------------------------------- */

static int64_t block(const struct topt_costing *k, int tensor, const struct topt_shape *s,
                     const struct topt_layout *l)
{
    return topt_held_bytes(k, tensor,
                           topt_block_bytes(k->mesh, k->settings, s, l, TOPT_ELEM_REAL));
}

struct topt_edge_end topt_edge_producer(const struct topt_costing *k, int op,
                                        const struct topt_config *c)
{
    const struct topt_op *o = &k->model->op[op];
    struct topt_edge_end e = {.value = topt_value_layout(o, o->output, c, k->mesh),
                              .grad = topt_grad_layout(o, o->output, c, k->mesh),
                              .recompute = c->recompute == TOPT_AGAIN_ALL,
                              .moved_permille =
                                  topt_low_moved_permille(k->settings, k->model, op)};
    topt_beside_set(k, op, c, 1, &e);
    return e;
}

struct topt_edge_end topt_edge_hub(const struct topt_costing *k, const struct topt_hub *h)
{
    return (struct topt_edge_end){.value = topt_hub_layout(h, k->mesh),
                                  .grad = topt_hub_grad_layout(h, k->mesh),
                                  .hub = 1,
                                  .hub_keep = h->keep};
}

/* Frameworks weigh what experts make inside of them, at their activation or input (Megatron-LM's README of
 * core/transformer/moe at d98e8a6, torchtitan's score_before_experts), so that nothing of it is kept where it is
 * added up. */
static int weighs_outputs(const struct topt_costing *k, int op, int input)
{
    const struct topt_op *o = &k->model->op[op];
    return k->settings->by_unit && o->spec->operand[o->input[input]].slots &&
           topt_op_experts(o) < 0;
}

/* Does a consumer have its input kept for backward?  A loss that is not fused does not: what it holds
 * until its backward is told with its kernels (struct topt_eager). */
static int keeps_input(const struct topt_costing *k, int op, int input)
{
    const struct topt_op_spec *spec = k->model->op[op].spec;
    int eager = k->settings->loss != TOPT_LOSS_FUSED && spec->loss && spec->eager;
    return topt_reads_back(k->model, op, input) && !eager &&
           !weighs_outputs(k, op, input);
}

/* Thousandths of operand 'x' of an operator that are kept at least. */
static int64_t least_kept(const struct topt_costing *k, int op, int x,
                          const uint8_t *again)
{
    const struct topt_op *o = &k->model->op[op];
    if (o->operand[x].role == TOPT_SAVED)
        return again && (again[op] == TOPT_AGAIN_ALL || again[op] == TOPT_AGAIN_SAVED)
                   ? 0
                   : 1000;
    for (int i = 0; i < o->ninputs; i++)
        if (o->input[i] == x && keeps_input(k, op, i) &&
            !(again && again[k->model->tensor[o->tensor[x]].producer] == TOPT_AGAIN_ALL))
            return topt_min(1000, topt_low_kept_permille(k->settings, k->model, op, i));
    return 0;
}

double topt_least_kept_bytes(const struct topt_model *m, const struct topt_settings *s,
                             const uint8_t *again)
{
    struct topt_costing k = {.model = m, .settings = s};
    char *seen = calloc((size_t)m->ntensors + 1, 1);
    double ret = 0;
    for (int i = 0; i < m->nops && seen; i++)
        for (int x = 0; x < m->op[i].spec->noperands; x++) {
            int64_t kept = least_kept(&k, i, x, again);
            if (kept && topt_op_keeps(m, &m->op[i], x, seen))
                ret += (double)topt_operand_numbers(&m->op[i], x) * (double)kept / 1000;
        }
    free(seen);
    return ret * topt_dtype_bytes(s->dtype);
}

/* Which copy of an input does a system keep whose strategies do not say so? */
static enum topt_copy kept_copy(const struct topt_costing *k, const struct topt_op *o)
{
    int64_t bits = k->settings->regather;
    int moves = topt_op_attends(o) ? bits & TOPT_REGATHER_KEYS
                                   : bits & TOPT_REGATHER_PRODUCTS && o->spec->low &&
                                         topt_op_experts(o) < 0;
    return !bits ? TOPT_COPY_EITHER : moves ? TOPT_COPY_MOVED : TOPT_COPY_READ;
}

struct topt_edge_end topt_edge_consumer(const struct topt_costing *k, int op, int input,
                                        const struct topt_config *c, int64_t op_transient)
{
    const struct topt_op *o = &k->model->op[op];
    int x = o->input[input];
    struct topt_edge_end e = {
        .value = topt_value_layout(o, x, c, k->mesh),
        .grad = topt_grad_layout(o, x, c, k->mesh),
        .recompute = topt_runs_again(c),
        .needed = topt_runs_again(c) || keeps_input(k, op, input),
        .copy = kept_copy(k, o),
        .op_bytes = op_transient,
        .moved_permille = topt_low_moved_permille(k->settings, k->model, op),
        .kept_permille = topt_low_kept_permille(k->settings, k->model, op, input)};
    topt_beside_set(k, op, c, 0, &e);
    for (int i = 0; i < o->ninputs; i++) {
        int y = o->input[i];
        struct topt_shape s = topt_operand_shape(o, y);
        struct topt_layout l = topt_value_layout(o, y, c, k->mesh);
        if (i != input)
            e.others_bytes +=
                block(k, o->tensor[y], &s, &l) / topt_ring_ranks(k, o, c, y);
    }
    struct topt_fragment_cost own;
    if (topt_ring_ranks(k, o, c, x) > 1 && !topt_cost_op(k, op, c, &own, NULL))
        topt_ring_end(k, op, x, c, &own, &e);
    if (!o->spec->loss) {
        struct topt_shape s = topt_operand_shape(o, o->output);
        struct topt_layout l = topt_grad_layout(o, o->output, c, k->mesh);
        e.out_bytes = block(k, topt_output_tensor(o), &s, &l);
    }
    return e;
}

int64_t topt_cost_block(const struct topt_costing *k, int tensor,
                        const struct topt_layout *l)
{
    struct topt_shape shape = topt_tensor_shape(&k->model->tensor[tensor]);
    return topt_with_allocator(k->settings, block(k, tensor, &shape, l));
}

int topt_cost_move_by(const struct topt_costing *k, int tensor, uint32_t axes,
                      const struct topt_route *by, int64_t from_bytes, int64_t to_bytes,
                      struct topt_move_cost *ret, struct topt_error *err)
{
    *ret = (struct topt_move_cost){.transient_bytes =
                                       topt_held_bytes(k, tensor, by->transient_bytes),
                                   .from_bytes = from_bytes,
                                   .to_bytes = to_bytes,
                                   .of_tokens = topt_is_of_slots(k->model, tensor)};
    int64_t rounds = topt_sums_at_end(k, tensor) ? 1 : k->settings->micro_batches;
    int bad = by->time_ns == TOPT_ROUTE_FAR ||
              __builtin_mul_overflow(by->time_ns, rounds, &ret->network_ns);
    ret->network_ns = 0;
    for (int i = 0; i < TOPT_BASIS_COUNT; i++) {
        ret->basis_ns[i] =
            bad ? 0 : topt_sent_ns(k, tensor, axes, by->basis_ns[i]) * rounds;
        ret->network_ns += ret->basis_ns[i]; /* which are parts of the time */
    }
    return bad ? topt_fail(err, TOPT_ERR_LIMIT, "the time of a step overflows") : 0;
}

int topt_cost_move(const struct topt_costing *k, int tensor,
                   const struct topt_layout *from, const struct topt_layout *to,
                   struct topt_move_cost *ret, struct topt_error *err)
{
    struct topt_shape shape = topt_tensor_shape(&k->model->tensor[tensor]);
    const struct topt_route *r;
    if (topt_router_route(k->router, &shape, topt_dtype_bytes(k->settings->dtype),
                          k->settings->granule_bytes, from, to, &r, err))
        return -1;
    uint32_t axes = topt_layout_changed_mask(from, to);
    int rc = topt_cost_move_by(k, tensor, axes, r, topt_cost_block(k, tensor, from),
                               topt_cost_block(k, tensor, to), ret, err);
    ret->links = k->settings->by_schedule ? topt_group_links(k->mesh, axes) : 0;
    return rc;
}

/* Moves are far from overflowing one by one. */
static void add_network(struct topt_fragment_cost *c, enum topt_during part,
                        const struct topt_move_cost *m)
{
    c->network_ns += m->network_ns;
    c->spent.at[part].waited_ns += m->network_ns;
    c->spent.at[part].waited_links |= m->links;
    if (m->of_tokens) {
        c->spent.at[part].exchange_ns += m->network_ns;
        c->spent.at[part].exchange_links |= m->links;
    }
    for (int i = 0; i < TOPT_BASIS_COUNT; i++)
        c->basis_ns[i] += m->basis_ns[i];
}

/* The pieces of an edge. */
struct edge {
    const struct topt_edge_end *from, *to;
    int in_place;
    int64_t before, after; /* bytes of the tensor at either end */
    const struct topt_move_cost *there;
};

/* Into a hub: its copy is dropped, kept, or recomputed from a producer that
 * recomputes. */
static int cost_into_hub(const struct edge *e, struct topt_edge_alternative *a)
{
    if (e->to->hub_keep == TOPT_HUB_KEEP)
        a->kept = e->after;
    if (e->to->hub_keep != TOPT_HUB_RECOMPUTE)
        return 1;
    a->recomputed = e->after;
    a->moves++;
    return e->from->recompute;
}

/* The consumer's copy is not kept where it lay, but as it was before it moved: it moves once more beside a product. */
static void move_again(struct topt_edge_alternative *a)
{
    a->keep = TOPT_KEEP_BEFORE;
    a->moves++;
    a->beside++;
}

/* From where the tensor is recomputed: so is the consumer's copy. */
static int cost_recomputed(const struct edge *e, struct topt_edge_alternative *a)
{
    int again = e->to->copy == TOPT_COPY_MOVED && !e->in_place;
    if (!e->to->needed)
        return 1;
    a->recomputed =
        (e->from->hub ? 0 : e->before) + (e->in_place || again ? 0 : e->after);
    a->moves++;
    if (again)
        move_again(a);
    return 1;
}

/* Of a tensor with one use; a hub's copy has several, which keep it as it is. */
static int64_t kept_of(const struct edge *e, int64_t bytes)
{
    int permille = e->from->hub || e->to->recompute ? 1000 : e->to->kept_permille;
    return topt_permille(bytes, permille);
}

/* The consumer's copy is kept; or the producer's, which is moved again in backward.  A consumer that recomputes needs it
 * from then until its own backward, unless that moves it once more. */
static int cost_kept(const struct edge *e, struct topt_edge_alternative *a)
{
    struct topt_edge_alternative *b = a + 1;
    const struct topt_edge_end *from = e->from, *to = e->to;
    int hub_kept = from->hub && from->hub_keep == TOPT_HUB_KEEP;
    if (!to->needed)
        return 1;
    /* Of a hub, systems that fix what is kept have one copy for all that read it as it lies. */
    if (from->hub && !hub_kept && to->copy &&
        (e->in_place || to->copy == TOPT_COPY_MOVED))
        return 0;
    if (!(e->in_place && hub_kept))
        a->kept = kept_of(e, e->after);
    if (e->in_place || (from->hub && !hub_kept) || topt_layout_partial_mask(&from->value))
        return 1;
    if (to->copy == TOPT_COPY_READ)
        return 1;
    int fixed = to->copy == TOPT_COPY_MOVED;
    b = fixed ? a : b;
    *b = *a;
    b->kept = from->hub ? 0 : kept_of(e, e->before);
    if (fixed)
        move_again(b);
    if (to->recompute || !fixed)
        b->moves++;
    b->keep = TOPT_KEEP_BEFORE;
    if (to->recompute) {
        b->recomputed = fixed ? 0 : e->after;
        return (int)(b - a) + 1;
    }
    int64_t again = to->out_bytes + to->others_bytes + e->there->transient_bytes;
    b->transient = topt_max(topt_max(a->transient, again), to->op_bytes + e->after);
    return (int)(b - a) + 1;
}

int topt_edge_alternatives(const struct topt_costing *k, const struct topt_edge_end *from,
                           const struct topt_edge_end *to, int in_place,
                           const struct topt_move_cost *there,
                           const struct topt_move_cost *back,
                           struct topt_edge_alternative ret[2])
{
    struct edge e = {.from = from,
                     .to = to,
                     .in_place = in_place,
                     .before = there->from_bytes,
                     .after = there->to_bytes,
                     .there = there};
    int64_t live = there->transient_bytes;
    int n;
    if (back)
        live = topt_max(live, back->transient_bytes);
    ret[0] = (struct topt_edge_alternative){
        .keep = TOPT_KEEP_AFTER, .moves = 1, .transient = to->others_bytes + live};
    if (to->hub)
        n = cost_into_hub(&e, ret);
    else if (from->hub ? from->hub_keep == TOPT_HUB_RECOMPUTE : from->recompute)
        n = cost_recomputed(&e, ret);
    else
        n = cost_kept(&e, ret);
    const struct topt_weights *w = topt_weights_of(k->settings);
    for (int i = 0; i < n; i++) { /* both ends have the allocator's share already */
        /* The papers count the producer's copy with its operator, and beside it the consumer's,
         * or a hub's, where it has another layout and is kept. */
        int copied = ret[i].keep == TOPT_KEEP_AFTER && !in_place && ret[i].kept;
        ret[i].kept =
            w->cls[TOPT_CLASS_KEPT] * ret[i].kept + (copied ? w->copy * e.after : 0);
        ret[i].recomputed *= w->cls[TOPT_CLASS_RECOMPUTED];
        ret[i].transient = topt_in_flight(k, ret[i].transient);
    }
    return n;
}

void topt_cost_edge_by(const struct topt_costing *k, int tensor,
                       const struct topt_edge_end *from, const struct topt_edge_end *to,
                       const struct topt_move_cost *there,
                       const struct topt_move_cost *back, struct topt_edge_cost *ret)
{
    struct topt_edge_alternative a[2];
    struct topt_move_cost forth = *there, again, home = back ? *back : *there;
    topt_edge_moves(k, tensor, from, to, &forth, &again, back ? &home : NULL);
    *ret = (struct topt_edge_cost){.nalts = 0};
    ret->nalts =
        topt_edge_alternatives(k, from, to, topt_layout_equal(&from->value, &to->value),
                               &forth, back ? &home : NULL, a);
    for (int i = 0; i < ret->nalts; i++) {
        struct topt_fragment_cost *c = &ret->alt[i];
        ret->keep[i] = a[i].keep;
        for (int m = 0; m < a[i].moves; m++)
            add_network(c, m ? TOPT_DURING_BACKWARD : TOPT_DURING_FORWARD,
                        m < a[i].moves - a[i].beside ? &forth : &again);
        if (back)
            add_network(c, TOPT_DURING_BACKWARD, &home);
        c->class_bytes[TOPT_CLASS_KEPT] = a[i].kept;
        c->class_bytes[TOPT_CLASS_RECOMPUTED] = a[i].recomputed;
        c->transient_bytes = a[i].transient;
    }
}

int topt_cost_edge(const struct topt_costing *k, int tensor,
                   const struct topt_edge_end *from, const struct topt_edge_end *to,
                   struct topt_edge_cost *ret, struct topt_error *err)
{
    int trained = k->model->tensor[tensor].needs_gradient;
    struct topt_move_cost there, back;
    if (topt_cost_move(k, tensor, &from->value, &to->value, &there, err) ||
        (trained && topt_cost_move(k, tensor, &to->grad, &from->grad, &back, err)))
        return -1;
    topt_cost_edge_by(k, tensor, from, to, &there, trained ? &back : NULL, ret);
    return 0;
}
