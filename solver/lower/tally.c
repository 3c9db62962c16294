/* tally.c - the sink that adds up: prices each kernel and each collective once, as
 * integers, and follows how many bytes are live.
 *
 * A piece of a program changes what is alive by a number of bytes, and on the way
 * there rises by some: whatever is alive around it.  So the peak of a program follows
 * from its pieces. */
#include "tally.h"
#include "topt_minmax.h"

#include "low.h"
#include "muon.h"
#include "param.h"
#include "recompute.h"
#include "ring.h"
#include "rows.h"
#include "topt_hw_sweep.h"

#include <string.h>

/* ---- bytes alive -------------------------------------------------------------------- */

static int has_windows(const struct topt_model *m)
{
    for (int i = 0; i < m->nops; i++)
        for (int x = 0; x < m->op[i].spec->noperands; x++)
            if (m->op[i].spec->operand[x].window_of)
                return 1;
    return 0;
}

void topt_live_init(struct topt_live *a, const struct topt_costing *k)
{
    int each = has_windows(k->model) && k->mesh->devices <= TOPT_PEAK_DEVICES;
    a->lanes = each ? 1 + k->mesh->devices : 1;
}

void topt_live_begin(struct topt_live *a)
{
    if (!a)
        return;
    memset(a->now, 0, sizeof a->now);
    memset(a->most, 0, sizeof a->most);
}

void topt_live_end(struct topt_live *a, enum topt_live_piece piece)
{
    if (!a)
        return;
    memcpy(a->number[2 * piece], a->most, sizeof a->most);
    memcpy(a->number[2 * piece + 1], a->now, sizeof a->now);
}

void topt_live_put(struct topt_live *a, int number, int buffer)
{
    if (a)
        memcpy(a->number[number], a->bytes[buffer], sizeof a->bytes[buffer]);
}

static void rise(const struct topt_tally *t, int buffer)
{
    struct topt_live *a = t->alive;
    const struct topt_buffer *b = &t->buffer[buffer];
    int64_t *bytes = a->bytes[buffer];
    a->windows |= b->window;
    for (int i = 0; i < a->lanes; i++) {
        bytes[i] =
            topt_bytes_on(t->k->model, t->k->mesh, t->k->settings, a->config, b, i - 1);
        a->now[i] += bytes[i];
        a->most[i] = a->now[i] > a->most[i] ? a->now[i] : a->most[i];
    }
}

/* ---- the sink ----------------------------------------------------------------------- */

/* A shared table is there as what it rests as; with its parameters sharded, gathered once, too. */
int64_t topt_held_bytes(const struct topt_costing *k, int tensor, int64_t bytes)
{
    const struct topt_model *m = k->model;
    int p = tensor < 0 ? -1 : m->tensor[tensor].producer;
    if (p >= 0 && topt_is_table(m, k->settings, p))
        return k->settings->tables == TOPT_ZERO_PARAM
                   ? topt_min(bytes * k->settings->table_shards,
                              topt_operand_numbers(&m->op[p], m->op[p].output) *
                                  topt_element_bytes(k->settings, TOPT_ELEM_REAL))
                   : 0;
    int logits = p >= m->head && p < m->loss && m->op[m->loss].spec->eager;
    if (p >= 0 && !logits && k->settings->rest_f32)
        return 2 * bytes;
    return logits ? bytes / topt_loss_chunks(k->settings->loss) : bytes;
}

/* Bytes of a buffer that are there at once. */
static int64_t at_once(const struct topt_tally *t, const struct topt_buffer *b)
{
    const struct topt_op *o = &t->k->model->op[b->op];
    return b->operand < 0 ? b->bytes
                          : topt_held_bytes(t->k, o->tensor[b->operand], b->bytes);
}

static int tally_alloc(struct topt_sink *sink, const struct topt_buffer *b,
                       struct topt_error *err)
{
    struct topt_tally *t = (struct topt_tally *)sink;
    if (t->nbuffers == TOPT_TALLY_BUFFERS)
        return topt_fail(err, TOPT_ERR_LIMIT, "a fragment of more than %d buffers",
                         TOPT_TALLY_BUFFERS);
    int n = t->nbuffers++;
    /* topt_param_buffers() counts gathered parameters, and gradients that are being reduced, of a system that holds
     * them in units or pools of its own. */
    int elsewhere = t->muted || (t->k->settings->gather != TOPT_GATHER_OPERATOR &&
                                 t->async != TOPT_ASYNC_NOTHING);
    int in_flight = b->cls == TOPT_CLASS_TRANSIENT || b->cls == TOPT_CLASS_STAGING;
    t->buffer[n] = *b;
    t->counted[n] = !elsewhere && in_flight;
    if (t->counted[n]) {
        t->live += at_once(t, b);
        t->cost.transient_bytes = topt_max(t->cost.transient_bytes, t->live);
    } else if (!elsewhere) {
        t->cost.class_bytes[b->cls] += at_once(t, b);
    }
    if (t->alive)
        rise(t, n);
    return n;
}

/* It is no more in flight. */
static void land(struct topt_tally *t, int buffer)
{
    if (t->counted[buffer])
        t->live -= at_once(t, &t->buffer[buffer]);
    t->counted[buffer] = 0;
}

static void tally_release(struct topt_sink *sink, int buffer)
{
    struct topt_tally *t = (struct topt_tally *)sink;
    land(t, buffer);
    for (int i = 0; t->alive && i < t->alive->lanes; i++)
        t->alive->now[i] -= t->alive->bytes[buffer][i];
}

static void tally_keep(struct topt_sink *sink, int buffer, enum topt_class cls)
{
    struct topt_tally *t = (struct topt_tally *)sink;
    land(t, buffer);
    t->cost.class_bytes[cls] += at_once(t, &t->buffer[buffer]);
}

static const struct topt_buffer *tally_get(struct topt_sink *sink, int buffer)
{
    return &((struct topt_tally *)sink)->buffer[buffer];
}

/* ---- prices ------------------------------------------------------------------------- */

static int64_t bytes_of(const struct topt_tally *t, int buffer)
{
    return buffer >= 0 ? t->named[buffer].bytes : 0;
}

static struct topt_time elementwise(const struct topt_tally *t, int64_t bytes)
{
    return topt_hw_compute(t->k->hw, t->k->settings->dtype, TOPT_WORK_ELEMENTWISE, 0,
                           bytes, t->k->mesh->devices);
}

static struct topt_time sweep(const struct topt_tally *t, enum topt_sweep p,
                              int64_t bytes)
{
    const struct topt_settings *s = t->k->settings;
    const char *of = p == TOPT_SWEEP_UPDATE ? topt_optimizer_name(s->optimizer) : "";
    return topt_hw_sweep(t->k->hw, s->dtype, p, of, bytes, t->k->mesh->devices);
}

/* In a loop a kernel touches, of an operand along the loop's dimension, one count. */
static int64_t bytes_at_once(const struct topt_tally *t, const struct topt_op_spec *spec,
                             int operand, int64_t bytes)
{
    for (int i = 0; i < spec->operand[operand].ndim; i++)
        if (spec->operand[operand].dim[i] == t->along)
            return bytes / t->times;
    return bytes;
}

static enum topt_eager_how eager(const struct topt_tally *t, int op,
                                 struct topt_eager *ret)
{
    const struct topt_op *o = &t->k->model->op[op];
    const struct topt_settings *s = t->k->settings;
    int writes = (s->eager & TOPT_EAGER_SCORES ? TOPT_EAGER_WRITES_SCORES : 0) |
                 (s->eager & TOPT_EAGER_NORMS ? TOPT_EAGER_WRITES_NORMS : 0) |
                 (s->eager & TOPT_EAGER_OPERATORS ? TOPT_EAGER_ROTATES : 0);
    int turns =
        s->positions_first && topt_op_turns(o) && s->attention <= TOPT_ATTENTION_FLASH3;
    int apart = s->experts_apart && topt_op_experts(o) >= 0;
    int loss = (int)s->loss + (s->eager & TOPT_EAGER_METRICS ? TOPT_LOSS_AND_METRICS : 0);
    int compiled = s->eager & TOPT_EAGER_OPERATORS ? 0 : TOPT_LOSS_COMPILED;
    int as = o->spec->loss ? loss | compiled
                           : writes | (turns ? TOPT_EAGER_TURNS : 0) |
                                 (apart ? TOPT_EAGER_BIASES : 0);
    int on = o->spec->loss ? loss != TOPT_LOSS_FUSED
                           : turns || apart || s->eager & TOPT_EAGER_OPERATORS;
    return on && o->spec->eager ? o->spec->eager(o, t->len, as, ret) : TOPT_EAGER_ALIKE;
}

static int64_t number_bytes(const struct topt_tally *t, struct topt_numbers n)
{
    return n.real * topt_element_bytes(t->k->settings, TOPT_ELEM_REAL) + 4 * n.f32 +
           n.bytes;
}

/* The numbers of a gated activation's input on this device, if backward keeps that input in 8 bits; else 0. */
static int64_t stored_numbers(const struct topt_tally *t, const struct topt_op *o)
{
    int x = topt_low_stored(t->k->settings, o);
    return x < 0 ? 0 : topt_touched_numbers(o, 1u << x, t->len);
}

/* The bytes that dropout keeps for backward beside an operator: a mask of one byte a number, and of an adapter's first linear
 * map the input after dropout, where the input itself is kept, too. */
static int64_t dropped_bytes(const struct topt_tally *t, const struct topt_op *o)
{
    int linear = topt_reads_back(t->k->model, (int)(o - t->k->model->op), 0);
    int64_t read = linear ? topt_touched_numbers(o, 1u << o->input[0], t->len) : 0;
    int64_t copy =
        o->attrs->written ? topt_element_bytes(t->k->settings, TOPT_ELEM_REAL) * read : 0;
    return linear ? read + copy : topt_written_numbers(o, TOPT_K_ADD_FWD, t->len);
}

void topt_tally_eager(struct topt_tally *t, int op, enum topt_class cls)
{
    const struct topt_op *o = &t->k->model->op[op];
    struct topt_eager e;
    if (o->attrs->masked && t->k->settings->by_unit)
        t->cost.class_bytes[cls] += dropped_bytes(t, o);
    t->cost.transient_bytes +=
        topt_element_bytes(t->k->settings, TOPT_ELEM_REAL) * stored_numbers(t, o);
    if (eager(t, op, &e) == TOPT_EAGER_ALIKE)
        return;
    int64_t forward = number_bytes(t, e.work[0]), backward = number_bytes(t, e.work[1]);
    if (t->k->settings->rest_f32) /* a copy in f32 is the tensor itself */
        e.kept =
            (struct topt_numbers){.f32 = topt_max(e.kept.real, 0), .bytes = e.kept.bytes};
    t->cost.class_bytes[cls] += number_bytes(t, e.kept);
    t->cost.transient_bytes += forward > backward ? forward : backward;
}

/* Products, and what is moved between them, one after the other. */
static struct topt_time eager_pass(const struct topt_tally *t, const struct topt_eager *e,
                                   int backward)
{
    struct topt_time time = elementwise(t, number_bytes(t, e->moved[backward]));
    if (e->flops[backward])
        time.ns += topt_hw_product(t->k->hw, t->k->settings->dtype, e->flops[backward],
                                   e->outputs[backward], 0, t->k->mesh->devices)
                       .ns;
    return time;
}

struct topt_time topt_kernel_time(const struct topt_costing *k, const struct topt_op *o,
                                  enum topt_kernel kernel, const int64_t *len,
                                  int64_t bytes)
{
    int64_t flops = o->spec->flops(o, kernel, len);
    int backward = kernel == TOPT_K_ATTENTION_BWD, devices = k->mesh->devices;
    int low = topt_low_runs(k->settings, k->model, (int)(o - k->model->op));
    int product = topt_kernel_work(kernel) == TOPT_WORK_MATMUL;
    int clocked = topt_hw_clocks_kernels(k->hw);
    int64_t outputs = product || clocked ? topt_written_numbers(o, kernel, len) : 0;
    struct topt_kernel_run one = {o, kernel, flops, bytes, outputs};
    struct topt_time time = {0, TOPT_BASIS_ANALYTIC};
    if (clocked)
        time = topt_hw_kernel(k->hw, k->settings->dtype, &one, devices);
    if (time.ns)
        return time;
    if (product)
        return topt_hw_product(k->hw,
                               low ? topt_low_type(k->settings->low) : k->settings->dtype,
                               flops, outputs, bytes, devices);
    if (kernel != TOPT_K_ATTENTION_FWD && !backward)
        return topt_hw_compute(k->hw, k->settings->dtype, topt_kernel_work(kernel), flops,
                               bytes, devices);
    struct topt_attention_run run = {
        k->settings->attention, o->attrs->head_dim, topt_attention_keys(o),
        o->attrs->causal,       backward,           o};
    enum topt_dtype type = !k->settings->low_attention          ? k->settings->dtype
                           : k->settings->low == TOPT_LOW_MXFP8 ? TOPT_MXF8
                                                                : TOPT_F8;
    return topt_hw_attention(k->hw, type, &run, flops, bytes, devices);
}

static struct topt_time own_kernel(const struct topt_tally *t, const struct topt_instr *i)
{
    const struct topt_op *o = &t->k->model->op[i->op];
    struct topt_seen seen = {t->k, t->named, t->len};
    int64_t bytes = 0;
    if (topt_is_table(t->k->model, t->k->settings, i->op)) /* frameworks copy none */
        return (struct topt_time){0, TOPT_BASIS_ANALYTIC};
    for (int x = 0; x < o->spec->noperands; x++)
        bytes +=
            bytes_at_once(t, o->spec, x,
                          topt_rows_touched(&seen, o, x, bytes_of(t, i->value[x])) +
                              topt_rows_touched(&seen, o, x, bytes_of(t, i->grad[x])));
    return topt_kernel_time(t->k, o, i->kernel, t->len, bytes);
}

/* Experts that are shared out get tokens by the device that sent them, and have them sorted by expert and, on the way
 * back, by device again (Megatron-LM, core/transformer/moe/token_dispatcher.py at d98e8a6, sort_chunks_by_idxs;
 * torchtitan's generate_permute_indices), each a pass that reads and writes.  For products in few bits Transformer
 * Engine's take rows in multiples of 16 or 32, to which tokens are copied, and results from there (experts.py,
 * Fp8Padding). */
static int64_t sorted_bytes(const struct topt_tally *t, const struct topt_op *o)
{
    enum { X = 1, PASSES = 2, READS_AND_WRITES = 2 };
    const struct topt_settings *s = t->k->settings;
    int e = topt_op_experts(o);
    if (e < 0)
        return 0;
    int sorts = t->len[e] > 1 && t->len[e] < o->count[e];
    int pads =
        s->experts_apart && topt_low_runs(s, t->k->model, (int)(o - t->k->model->op));
    return (int64_t)(sorts + pads) * PASSES * READS_AND_WRITES *
           topt_touched_numbers(o, X, t->len) * topt_element_bytes(s, TOPT_ELEM_REAL);
}

/* Kernels of an operator in place of one: as many for each of its experts, or one. */
static int of_experts(const struct topt_tally *t, const struct topt_op *o, int each)
{
    int e = topt_op_experts(o);
    return e >= 0 && t->k->settings->experts_apart ? each * (int)t->len[e] : 1;
}

/* A product of one expert, on one of four streams, takes the host as long as so many kernels: eight of 128 tokens
 * took 267 us, 33 each (github.com/NVIDIA/TransformerEngine pull 3134, 2026-06). */
enum { EXPERT_PRODUCT = 4 };

/* Gradient accumulation: from the second micro-batch on PyTorch adds gradients of parameters to those of the
 * micro-batches before by kernels of their own (autograd's accumulate_grad.h).  Our kernels and Megatron-LM's products
 * (gradient_accumulation_fusion) accumulate as they write; shards are added by an instruction. */
static int64_t accumulation_ns(const struct topt_tally *t, const struct topt_instr *i)
{
    const struct topt_op *o = &t->k->model->op[i->op];
    const struct topt_settings *s = t->k->settings;
    int64_t bytes = 0, rounds = s->gather == TOPT_GATHER_OPERATOR ? 1 : t->rounds;
    for (int x = 0; i->backward && rounds > 1 && x < o->spec->noperands; x++)
        if (i->grad[x] >= 0 && t->named[i->grad[x]].cls == TOPT_CLASS_GRAD &&
            !t->named[i->grad[x]].rows)
            bytes += 3 * bytes_of(t, i->grad[x]);
    return bytes ? elementwise(t, bytes).ns * (rounds - 1) / rounds : 0;
}

/* PyTorch's embedding makes the gradient of the whole table, zeros but for a micro-batch's rows (aten's
 * embedding_dense_backward), and Megatron-LM adds that to main_grad (core/distributed/distributed_data_parallel.py at
 * d98e8a6). */
static int64_t dense_bytes(const struct topt_tally *t, const struct topt_instr *i)
{
    enum { TABLE = 1 };
    const struct topt_settings *s = t->k->settings;
    int64_t real = topt_element_bytes(s, TOPT_ELEM_REAL);
    int64_t added = real + 2 * topt_element_bytes(s, TOPT_ELEM_WIDE);
    if (i->kernel != TOPT_K_EMBEDDING_BWD || !s->by_unit || i->grad[TABLE] < 0 ||
        t->named[i->grad[TABLE]].rows)
        return 0;
    return topt_touched_numbers(&t->k->model->op[i->op], 1u << TABLE, t->len) *
           (real + (s->gather == TOPT_GATHER_OPERATOR ? added : 0));
}

/* All that a framework does in one direction, casts to few bits too, is priced with the first of our
 * kernels. */
static struct topt_time kernel(struct topt_tally *t, const struct topt_instr *i)
{
    struct topt_eager e;
    struct topt_time time = {0, TOPT_BASIS_ANALYTIC};
    enum topt_eager_how how =
        i->kernel == TOPT_K_LOAD ? TOPT_EAGER_ALIKE : eager(t, i->op, &e);
    t->kernels = how != TOPT_EAGER_INSTEAD && i->kernel != TOPT_K_LOAD;
    const struct topt_op *o = &t->k->model->op[i->op];
    if (topt_kernel_work(i->kernel) == TOPT_WORK_MATMUL)
        t->kernels *= of_experts(t, o, EXPERT_PRODUCT);
    if (how != TOPT_EAGER_INSTEAD)
        time = own_kernel(t, i);
    int64_t dense = dense_bytes(t, i) + topt_merged_bytes(t->k, o, i->kernel, t->len);
    t->added_ns = accumulation_ns(t, i);
    time.ns += t->added_ns + (dense ? elementwise(t, dense).ns : 0);
    if (how != TOPT_EAGER_ALIKE && !t->told) {
        time.ns += eager_pass(t, &e, i->backward).ns;
        t->kernels += e.kernels[i->backward];
    }
    t->told |= how != TOPT_EAGER_ALIKE;
    if (t->told || i->kernel == TOPT_K_LOAD)
        return time;
    int64_t real = topt_element_bytes(t->k->settings, TOPT_ELEM_REAL);
    int64_t bytes = sorted_bytes(t, o) + (real + 1) * stored_numbers(t, o);
    if (topt_low_runs(t->k->settings, t->k->model, i->op) ||
        (t->k->settings->low_attention && topt_op_attends(o))) {
        struct topt_low_casts casts =
            topt_low_casts(t->k->settings, o, t->len, i->backward);
        bytes += casts.bytes;
        t->kernels += casts.kernels * of_experts(t, o, 1);
        t->told = 1;
    }
    t->told |= bytes > 0;
    time.ns += bytes ? elementwise(t, bytes).ns : 0;
    return time;
}

/* Bytes of a gather, less where it is for a product in few bits. */
static int64_t gathered(const struct topt_tally *t, const struct topt_instr *i,
                        int64_t bytes)
{
    int op = topt_gathered_for(t->k->model, &t->named[i->a], i);
    if (op < 0 || !t->k->settings->low)
        return bytes;
    return topt_permille(bytes, topt_low_moved_permille(t->k->settings, t->k->model, op));
}

int64_t topt_sent_ns(const struct topt_costing *k, int tensor, uint32_t axes, int64_t ns)
{
    if (k->settings->dispatch == TOPT_DISPATCH_ALLTOALL || !axes || tensor < 0)
        return ns;
    struct topt_group g = topt_mesh_group(k->mesh, axes);
    double share = topt_tokens_sent(k->model, tensor, g.nodes > 1 ? g.nodes : g.per_node);
    return (int64_t)((double)ns * share);
}

int topt_sums_at_end(const struct topt_costing *k, int tensor)
{
    return tensor >= 0 && k->settings->gather == TOPT_GATHER_OPERATOR &&
           topt_is_table(k->model, k->settings, k->model->tensor[tensor].producer);
}

/* The tensor that a buffer is of, or of whose gradient; -1: of none. */
static int tensor_of(const struct topt_tally *t, int buffer)
{
    const struct topt_buffer *b = &t->named[buffer];
    return b->operand < 0 ? -1 : t->k->model->op[b->op].tensor[b->operand];
}

static struct topt_time move(const struct topt_tally *t, const struct topt_instr *i)
{
    const struct topt_buffer *b = &t->named[i->a];
    if (i->move.kind == TOPT_MOVE_SLICE || t->async == TOPT_ASYNC_SHARED)
        return (struct topt_time){0, TOPT_BASIS_MEASURED};
    int64_t bytes = topt_move_bytes(t->k->mesh, &b->shape, &i->move,
                                    topt_element_bytes(t->k->settings, b->elem));
    struct topt_time time = topt_router_time(
        t->k->router, topt_move_collective(i->move.kind), i->axes, gathered(t, i, bytes));
    if (topt_sums_at_end(t->k, tensor_of(t, i->a)))
        time.ns /= t->rounds;
    else if (b->op >= 0 && b->operand >= 0)
        time.ns = topt_sent_ns(t->k, t->k->model->op[b->op].tensor[b->operand], i->axes,
                               time.ns);
    return time;
}

/* Of a loss that is scaled: gradients are brought to f32, where they are not, divided by the scale and
 * looked through for what is not finite, as PyTorch's GradScaler, Megatron-LM's and DeepSpeed's optimizers do
 * (torch/amp/grad_scaler.py v2.14.1, core/optimizer/optimizer.py d98e8a6, runtime/fp16 edaa722). */
static int64_t unscaled_bytes(const struct topt_tally *t, int gradient)
{
    int each = topt_element_bytes(t->k->settings, t->named[gradient].elem);
    int64_t numbers = bytes_of(t, gradient) / each;
    if (t->k->settings->dtype != TOPT_F16)
        return 0;
    return (2 * 4 + (each < 4 ? each + 4 : 0)) * numbers;
}

/* CPU Adam reads and writes so much of the rate of the host's memory, at 28 bytes a number: 0.22 s for 10^9 numbers is
 * 0.50 of it, 1.03 s for 4 * 10^9 and 2.57 s for 10^10 are 0.43 (Ren et al., ZeRO-Offload, arXiv 2101.06840, table 4, read
 * in a copy by others, 2026-11), on a DGX-2, whose two Xeon Platinum 8168 have 256 GB/s (recalled). */
static const double HOST_UPDATE_SHARE = 0.43;

void topt_tally_offload(struct topt_tally *t, const struct topt_host_traffic *h)
{
    const struct topt_hw_host *host = topt_hw_host(t->k->hw);
    struct topt_part_time *at = t->cost.spent.at, *end = &at[TOPT_DURING_END];
    double copy = host->link > 0 ? 1e9 / host->link : 0;
    double work = host->memory > 0 ? 1e9 / host->memory / HOST_UPDATE_SHARE : 0;
    at[TOPT_DURING_FORWARD].fetch_ns += (int64_t)(copy * (double)h->fetched[0]);
    at[TOPT_DURING_BACKWARD].fetch_ns += (int64_t)(copy * (double)h->fetched[1]);
    at[TOPT_DURING_BACKWARD].put_ns += (int64_t)(copy * (double)h->put);
    end->put_ns += (int64_t)(copy * (double)h->ends);
    end->fetch_ns += (int64_t)(copy * (double)h->returns);
    end->update_ns += (int64_t)(work * (double)h->worked);
}

/* One kernel; or a framework's steps: moments, their root, the quotient, the decay, each for many parameters at once
 * or for one after the other. */
static struct topt_time update_all(struct topt_tally *t, const struct topt_instr *i)
{
    const struct topt_settings *s = t->k->settings;
    int kernels, steps = topt_optimizer_eager(s->optimizer, &kernels);
    steps = s->eager & TOPT_EAGER_OPTIMIZER ? steps : 0;
    int64_t numbers = bytes_of(t, i->a) / topt_element_bytes(s, TOPT_ELEM_REAL);
    if (t->named[i->b].rows || i->axes)
        return topt_rows_update_price(&(struct topt_seen){t->k, t->named, t->len}, i);
    int64_t rest = bytes_of(t, i->a) + bytes_of(t, i->c) + bytes_of(t, i->d);
    int64_t bytes =
        steps ? 4 * steps * numbers : 2 * (rest + bytes_of(t, i->e)) + bytes_of(t, i->b);
    struct topt_time time = sweep(t, TOPT_SWEEP_UPDATE, bytes + unscaled_bytes(t, i->b));
    if (s->eager & TOPT_EAGER_LOOP)
        t->kernels = kernels;
    if (t->kernels > 1)
        time.ns += (t->kernels - 1) * elementwise(t, 0).ns;
    int x = t->named[i->a].operand;
    if (topt_muon_updates(s, t->k->model, i->op, x))
        time.ns += topt_muon_ns(t->k, i->op, x, t->len, numbers);
    return time;
}

/* What the host updates takes the device nothing. */
static struct topt_time update(struct topt_tally *t, const struct topt_instr *i)
{
    const struct topt_settings *s = t->k->settings;
    struct topt_time time = update_all(t, i);
    if (s->offload & TOPT_OFFLOAD_STATE)
        time.ns -= time.ns * s->offload_permille / 1000;
    return time;
}

struct topt_time topt_tally_price(struct topt_tally *t, const struct topt_instr *i,
                                  int *ret_network)
{
    struct topt_seen seen = {t->k, t->named, t->len};
    *ret_network = 1;
    t->kernels = 0;
    t->added_ns = 0;
    switch (i->kind) {
    case TOPT_I_MOVE:
        return move(t, i);
    case TOPT_I_REDUCE:
    case TOPT_I_LOSS:
        return topt_router_time(t->k->router, TOPT_ALL_REDUCE, i->axes,
                                i->kind == TOPT_I_LOSS ? 8 : bytes_of(t, i->a));
    case TOPT_I_HALO:
    case TOPT_I_HALO_ADD:
        return topt_router_time(t->k->router, TOPT_PERMUTE, i->axes,
                                llabs(bytes_of(t, i->a) - bytes_of(t, i->b)));
    case TOPT_I_ROWS_FETCH:
    case TOPT_I_ROWS_ADD:
        *ret_network = i->axes != 0;
        return topt_rows_price(&seen, i);
    default:
        break;
    }
    *ret_network = 0;
    if ((i->kind == TOPT_I_ZERO || i->kind == TOPT_I_ADD) &&
        topt_sums_at_end(t->k, tensor_of(t, i->a)))
        return (struct topt_time){0, TOPT_BASIS_ANALYTIC};
    switch (i->kind) {
    case TOPT_I_KERNEL:
        return kernel(t, i);
    case TOPT_I_ZERO:
        return sweep(t, TOPT_SWEEP_ZERO, t->named[i->a].rows ? 0 : bytes_of(t, i->a));
    case TOPT_I_ADD:
        return sweep(t, TOPT_SWEEP_ADD, 3 * bytes_of(t, i->a));
    case TOPT_I_UPDATE:
        return update(t, i);
    case TOPT_I_UNPACK:
        return elementwise(t, bytes_of(t, i->a) + bytes_of(t, i->b));
    default:
        return (struct topt_time){0, TOPT_BASIS_MEASURED};
    }
}

/* May computation hide this move?  The settings say so. */
static int runs_async(const struct topt_tally *t)
{
    return topt_overlap_has(t->k->settings->overlap, t->async);
}

uint8_t topt_group_links(const struct topt_mesh *mesh, uint32_t axes)
{
    struct topt_group g = topt_mesh_group(mesh, axes);
    int between = g.nodes > 1, within = g.per_node > 1 || !between;
    return (uint8_t)(within << TOPT_LINK_NODE | between << TOPT_LINK_NETWORK);
}

int64_t topt_tally_host_ns(const struct topt_tally *t)
{
    return t->kernels * t->times * t->k->settings->host_ns;
}

/* Does an instruction make gradients of parameters, and nothing else? */
static int makes_weights(const struct topt_tally *t, const struct topt_instr *i)
{
    const struct topt_op *o = &t->k->model->op[i->op];
    int weights = 0;
    if (i->kind == TOPT_I_ADD && t->named[i->a].operand >= 0)
        return o->operand[t->named[i->a].operand].role == TOPT_PARAM;
    if (i->kind != TOPT_I_KERNEL || !i->backward)
        return 0;
    for (int x = 0; x < o->spec->noperands; x++) {
        int is_param = o->operand[x].role == TOPT_PARAM;
        if (i->grad[x] >= 0 && !is_param && x != o->output)
            return 0;
        weights |= i->grad[x] >= 0 && is_param;
    }
    return weights;
}

/* Forward, the host waits for how many tokens experts that are shared out get (token_dispatcher.py, the same). */
static int asks(const struct topt_tally *t, const struct topt_instr *i)
{
    const struct topt_op *o = &t->k->model->op[i->op];
    int e = i->kind == TOPT_I_KERNEL && !i->backward ? topt_op_experts(o) : -1;
    return e >= 0 && t->len[e] < o->count[e];
}

/* Add the time as often as the instruction happens. */
static int spend(struct topt_tally *t, const struct topt_instr *i, struct topt_time time,
                 int network, struct topt_error *err)
{
    int64_t ns;
    int64_t *part = network ? &t->cost.network_ns : &t->cost.compute_ns;
    int64_t *basis = &t->cost.basis_ns[time.basis];
    if (__builtin_mul_overflow(time.ns, t->times * t->rounds, &ns) ||
        __builtin_add_overflow(*part, ns, part) ||
        __builtin_add_overflow(*basis, ns, basis))
        return topt_fail(err, TOPT_ERR_LIMIT, "the time of a step overflows");
    struct topt_part_time *spent = &t->cost.spent.at[t->part]; /* parts of the above */
    uint8_t links = network && ns && t->k->settings->by_schedule
                        ? topt_group_links(t->k->mesh, i->axes)
                        : 0;
    if (!network) {
        spent->compute_ns += ns;
        spent->weights_ns += makes_weights(t, i) ? ns : 0;
        spent->added_ns += t->added_ns * t->times * t->rounds;
        spent->host_ns += topt_tally_host_ns(t) * t->rounds;
        spent->asks += asks(t, i);
    } else if (!runs_async(t)) {
        spent->waited_ns += ns;
        spent->waited_links |= links;
    } else if (t->async == TOPT_ASYNC_PARAM) {
        spent->gather_ns += ns;
        spent->gather_links |= links;
    } else {
        spent->reduce_ns += ns;
        spent->reduce_links |= links;
    }
    if (network && runs_async(t))
        t->async_ns[t->part][time.basis] += ns;
    return 0;
}

static int tally_emit(struct topt_sink *sink, const struct topt_instr *i,
                      struct topt_error *err)
{
    struct topt_tally *t = (struct topt_tally *)sink;
    int network;
    struct topt_time time = topt_tally_price(t, i, &network);
    return spend(t, i, time, network, err);
}

static void tally_async(struct topt_sink *sink, enum topt_async what)
{
    ((struct topt_tally *)sink)->async = what;
}

static void tally_repeat(struct topt_sink *sink, int d, int64_t times)
{
    ((struct topt_tally *)sink)->along = d;
    ((struct topt_tally *)sink)->times = times;
}

void topt_tally_init(struct topt_tally *t, const struct topt_costing *k)
{
    t->sink = (struct topt_sink){tally_alloc, tally_release, tally_keep, tally_emit,
                                 tally_get,   tally_repeat,  tally_async};
    t->k = k;
    t->cost = (struct topt_fragment_cost){0};
    t->rounds = k->settings->micro_batches;
    t->times = 1;
    t->along = -1;
    t->part = TOPT_DURING_FORWARD;
    t->async = TOPT_ASYNC_NOTHING;
    memset(t->async_ns, 0, sizeof t->async_ns);
    t->told = 0;
    t->live = t->output_bytes = 0;
    t->named = t->buffer;
    t->alive = NULL;
    t->muted = t->nbuffers = 0;
    memset(t->len, 0, sizeof t->len);
}

struct topt_fragments topt_tally_fragments(struct topt_tally *t, struct topt_error *err)
{
    const struct topt_costing *k = t->k;
    return (struct topt_fragments){k->model, k->mesh, k->settings, k->router,
                                   &t->sink, err,     NULL,        0};
}

/* Hide what moved in 'part' behind at most 'room' of computation, less what moving
 * takes of the device; returns how much. */
static int64_t hide(struct topt_tally *t, enum topt_during part, int64_t room)
{
    int64_t left = room;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
        int64_t ns = topt_hw_hidden_ns(t->k->hw, t->async_ns[part][b], left);
        t->cost.network_ns -= ns;
        t->cost.basis_ns[b] -= ns;
        left -= ns;
    }
    return room - left;
}

/* All of it, which stays known by what it rests on. */
static void set_apart(struct topt_tally *t)
{
    for (int p = 0; p < TOPT_DURING_COUNT; p++)
        for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
            t->cost.network_ns -= t->async_ns[p][b];
            t->cost.basis_ns[b] -= t->async_ns[p][b];
            t->cost.async_ns[b] += t->async_ns[p][b];
        }
}

void topt_tally_hide(struct topt_tally *t)
{
    if (t->k->settings->by_schedule) {
        set_apart(t);
        return;
    }
    int64_t backward = t->cost.spent.at[TOPT_DURING_BACKWARD].compute_ns;
    int64_t last = backward / t->k->settings->micro_batches;
    hide(t, TOPT_DURING_FORWARD, t->cost.spent.at[TOPT_DURING_FORWARD].compute_ns);
    int64_t left = backward - hide(t, TOPT_DURING_BACKWARD, backward);
    hide(t, TOPT_DURING_END, left < last ? left : last);
}

static const struct topt_weights weights[] = {
    [TOPT_ACCOUNTING_RUN] = {{1, 1, 1, 1, 1, 1, 1, 1, 1}, 1, 0, 0},
    [TOPT_ACCOUNTING_PAPER] = {{[TOPT_CLASS_PARAM] = 1}, 0, 2, 0},
    [TOPT_ACCOUNTING_PAPER_REUSE] = {{[TOPT_CLASS_PARAM] = 1}, 0, 2, 1},
    [TOPT_ACCOUNTING_LEAST] = {{1, 1, 1, 1, 1, 1}, 0, 0, 0},
    [TOPT_ACCOUNTING_LEAST + 1] = {{1, 1, 1, 1, 1}, 0, 0, 0}, /* but what is kept */
};

const struct topt_weights *topt_weights_of(const struct topt_settings *s)
{
    int away = s->accounting == TOPT_ACCOUNTING_LEAST && s->offload & TOPT_OFFLOAD_KEPT;
    return &weights[(int)s->accounting + away];
}

/* The first operator of the last unit; -1: there are no units. */
static int last_unit(const struct topt_model *m)
{
    int i = m->loss;
    while (i >= 0 && m->unit[i] < 0)
        i--;
    return i < 0 ? -1 : m->unit[i];
}

/* Leave the bytes of an operator that are there while the loss turns from forward to backward. */
static void count_least(const struct topt_tally *t, int op, struct topt_fragment_cost *c)
{
    const struct topt_model *m = t->k->model;
    if (topt_gradients_come(t->k->settings))
        c->class_bytes[TOPT_CLASS_GRAD] = 0;
    if (m->unit[op] < 0 || m->unit[op] == last_unit(m))
        c->class_bytes[TOPT_CLASS_BUFFERS] += c->gathered_bytes;
    if (op == m->loss)
        c->class_bytes[TOPT_CLASS_BUFFERS] +=
            topt_with_allocator(t->k->settings, c->transient_bytes);
}

struct topt_fragment_cost topt_tally_cost(const struct topt_tally *t, int op)
{
    struct topt_fragment_cost c = t->cost;
    const struct topt_weights *w = topt_weights_of(t->k->settings);
    for (int i = 0; i < TOPT_CLASS_COUNT; i++)
        c.class_bytes[i] *= w->cls[i];
    for (int i = TOPT_CLASS_BUFFERS; i < TOPT_CLASS_COUNT; i++)
        c.class_bytes[i] = topt_with_allocator(t->k->settings, c.class_bytes[i]);
    if (t->k->settings->accounting == TOPT_ACCOUNTING_LEAST)
        count_least(t, op, &c);
    c.transient_bytes = topt_in_flight(t->k, c.transient_bytes);
    c.class_bytes[TOPT_CLASS_KEPT] += w->output * t->output_bytes;
    return c;
}
