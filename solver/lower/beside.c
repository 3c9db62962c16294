/* beside.c - what moves of an edge take: gathers of operands in few bits, and communication of tensor parallelism
 * beside its products.
 *
 * Beside sequence parallelism, a product whose weight is split by columns has its input gathered, one whose weight is
 * split by rows has its result reduced and scattered, and backward has the same of gradients.  Where a framework cuts
 * such a product by the blocks of the t ranks, it computes one block while the next one moves: of communication m
 * beside a product c there remains
 *
 *     m - min((1 - s) m, (1 - 1/t) c)
 *
 * with s the share of the device that moving takes (topt_hw_collective_share), since the first block has nothing to
 * wait beside.  Of backward's two products one is beside what moves of the input, one beside what moves of the result.
 * If products are not cut, the all-reduce of an input's gradient overlaps the product that makes the weight's
 * gradient, which does not depend on it: c is then the whole communication, and nothing else overlaps.
 * Megatron-LM and Transformer Engine keep each rank's own positions of a product's input and gather them again in backward,
 * beside the product that makes inputs' gradients (settings.regather): the whole of that gather is beside the whole product.
 * Read in public source:
 *   Transformer Engine, of Megatron-LM (--tp-comm-overlap, with sequence parallelism; core/extensions/transformer_engine.py
 *       and core/model_parallel_config.py at d98e8a6): linear modules of layers but experts and head, by its
 *       userbuffers, over links of one node.
 *       Uncut, its modules start these sums before the weight's product and wait after it, whatever is asked for
 *       (async_op in pytorch/module/linear.py and layernorm_linear.py at d0067d0, 2026-08-22), and gather inputs again so
 *       (ln_out_total_work there; Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication of
 *       core/tensor_parallel/layers.py at d98e8a6 saves its input before it is gathered).
 *   torchtitan's enable_async_tensor_parallel (distributed/compile.py at b5bcd76), of compiled models: PyTorch's
 *       fused_all_gather_matmul and fused_matmul_reduce_scatter, over symmetric memory. */
#include "beside.h"

#include "low.h"
#include "ring.h"
#include "topt_minmax.h"

/* The ranks of one node over which the operator's input, or result ('made'), moves beside its products; none: 1. */
static struct topt_group moving(const struct topt_costing *k, int op,
                                const struct topt_config *c, int made)
{
    const struct topt_op *o = &k->model->op[op];
    struct topt_group g = {1, 1, 1};
    if (!o->spec->low || k->model->unit[op] < 0 || topt_op_experts(o) >= 0)
        return g;
    struct topt_layout sum = made ? topt_value_layout(o, o->output, c, k->mesh)
                                  : topt_grad_layout(o, o->input[0], c, k->mesh);
    struct topt_group all = topt_mesh_group(k->mesh, topt_layout_partial_mask(&sum));
    return all.nodes > 1 ? g : all;
}

/* The time of an operator's products in one direction beside which its result ('made') or input moves, along the axes
 * along which that, or its gradient, is a sum; 0: nothing overlaps. */
static int64_t beside_ns(const struct topt_costing *k, int op,
                         const struct topt_config *c, int made, int backward)
{
    const struct topt_op *o = &k->model->op[op];
    int cut = k->settings->tensor_overlap;
    if (!cut && (!k->settings->tensor_async || made || !backward))
        return 0;
    struct topt_group g = moving(k, op, c, made);
    int64_t off[TOPT_MAX_OPDIMS], len[TOPT_MAX_OPDIMS], ns = 0;
    if (g.per_node < 2)
        return 0;
    topt_op_box(o, c, k->mesh, topt_mesh_costed_device(k->mesh), off, len);
    for (const struct topt_step *t = backward ? o->spec->backward : o->spec->forward;
         t->kind != TOPT_STEP_END; t++)
        if (t->kind == TOPT_STEP_KERNEL &&
            topt_kernel_work(t->kernel) == TOPT_WORK_MATMUL)
            ns += topt_kernel_time(k, o, t->kernel, len, 0).ns;
    return ns / (1 + backward) * (g.per_node - cut) / g.per_node;
}

/* initialize_ub of pytorch/module/base.py at d0067d0 makes a buffer for each of twelve products that overlap, of all
 * positions of a micro-batch by the features of layers, in bf16; with FP8 the eight that gather have a byte a number. */
enum { USERBUFFER_BYTES = 12 * 2, USERBUFFER_BYTES_FP8 = 8 * 1 + 4 * 2 };
int64_t topt_beside_bytes(const struct topt_costing *k, int op,
                          const struct topt_config *c)
{
    const struct topt_settings *s = k->settings;
    const struct topt_op *o = &k->model->op[op];
    int fp8 = s->low && topt_low_type(s->low) != TOPT_NVF4;
    if (!s->tensor_overlap || !s->tensor_async || moving(k, op, c, 0).per_node < 2)
        return 0;
    struct topt_shape shape =
        topt_tensor_shape(&k->model->tensor[topt_input_tensor(o, 0)]);
    struct topt_layout read = topt_value_layout(o, o->input[0], c, k->mesh);
    return topt_layout_elements(k->mesh, &shape, &read) *
           (fp8 ? USERBUFFER_BYTES_FP8 : USERBUFFER_BYTES);
}

void topt_beside_set(const struct topt_costing *k, int op, const struct topt_config *c,
                     int made, struct topt_edge_end *ret)
{
    for (int i = 0; i < 2; i++)
        ret->beside_ns[i] = beside_ns(k, op, c, made, i);
}

static void hide(const struct topt_costing *k, struct topt_move_cost *m, int64_t beside)
{
    if (beside > 0)
        topt_move_takes(m,
                        m->network_ns - topt_hw_hidden_ns(k->hw, m->network_ns, beside));
}

/* A gather of so many thousandths of the bytes; sums are added up in the type of results. */
static void gather_low(const struct topt_costing *k, int tensor, int permille,
                       const struct topt_layout *from, const struct topt_layout *to,
                       struct topt_move_cost *m)
{
    uint32_t axes = permille % 1000 ? topt_layout_gathered_mask(from, to) : 0;
    if (!axes)
        return;
    struct topt_shape shape = topt_tensor_shape(&k->model->tensor[tensor]);
    int64_t bytes =
        topt_layout_elements(k->mesh, &shape, to) * topt_dtype_bytes(k->settings->dtype);
    int64_t ns =
        topt_router_time(k->router, TOPT_ALL_GATHER, axes, topt_permille(bytes, permille))
            .ns;
    topt_move_takes(m, topt_min(m->network_ns, ns * k->settings->micro_batches));
}

void topt_edge_moves(const struct topt_costing *k, int tensor,
                     const struct topt_edge_end *from, const struct topt_edge_end *to,
                     struct topt_move_cost *there, struct topt_move_cost *again,
                     struct topt_move_cost *back)
{
    int64_t rounds = k->settings->micro_batches;
    gather_low(k, tensor, to->moved_permille, &from->value, &to->value, there);
    if (back)
        gather_low(k, tensor, from->moved_permille, &to->grad, &from->grad, back);
    topt_ring_moves(to, there, back);
    const struct topt_edge_end *value =
        topt_layout_partial_mask(&from->value) ? from : to;
    const struct topt_edge_end *grad = topt_layout_partial_mask(&to->grad) ? to : from;
    *again = *there;
    hide(k, again, rounds * to->beside_ns[1]);
    hide(k, there, rounds * value->beside_ns[0]);
    if (back)
        hide(k, back, rounds * grad->beside_ns[1]);
}

int64_t topt_beside_move(const struct topt_costing *k, const struct topt_program *p,
                         const struct topt_instr *i, int64_t ns)
{
    const struct topt_buffer *b = i->kind == TOPT_I_MOVE ? &p->buffer[i->a] : NULL;
    if (!b || b->operand < 0)
        return ns;
    int role = (int)k->model->op[b->op].operand[b->operand].role;
    int op = topt_gathered_for(k->model, b, i), gradient = role == TOPT_INPUT;
    int made = op < 0 ? !gradient : gradient, flows = gradient || role == TOPT_OUTPUT;
    int again = op >= 0 && !gradient && i->backward;
    int sums =
        i->move.kind == TOPT_MOVE_REDUCE_SCATTER || i->move.kind == TOPT_MOVE_ALL_REDUCE;
    op = flows && sums ? b->op : op;
    int64_t room = op < 0 ? 0 : beside_ns(k, op, &p->config[op], made, gradient || again);
    return ns - topt_hw_hidden_ns(k->hw, ns, room);
}
