/* ring.c - attention over context ranks among which keys and values go around.
 *
 * Each rank has the queries of its own positions, and meets the keys and values of all ranks in as many steps as there
 * are ranks: while it attends to those that it has, it sends them on and gets its neighbour's (Liu et al., Ring
 * Attention, 2023; Transformer Engine's p2p, which is Megatron-LM's default).  A rank's positions are two parts of a
 * sample, one from either end, so that under a causal mask each step takes as long.  Backward keys and values go around
 * again and their gradients with them, which need one step more to come home.  All hops of an operand together are the
 * gather that the program has instead, which takes G, and those of its gradients the scattered sum, R.  With c ranks,
 * where attention takes F forward and B backward, computing waits for
 *
 *     forward     max(0, G - F (c - 1) / c)
 *     backward    max(0, G + R - B (c - 1) / c) + R / (c - 1)
 *
 * F and B are shared among operands by their bytes.  A rank holds its own part, the one that it reads and the one that
 * comes, and keeps its own.
 *
 * Each step but the first merges its output with what there is by the logarithms of both sums, and backward adds its
 * gradients (merged, below).  That counts as attention, beside which keys and values go around too. */
#include "ring.h"

#include "topt_minmax.h"

/* Along the axes on which attention has positions of its own, and the operand all of them. */
int64_t topt_ring_ranks(const struct topt_costing *k, const struct topt_op *o,
                        const struct topt_config *c, int operand)
{
    int64_t ranks = 1;
    if (!k->settings->ring || !topt_op_attends(o))
        return 1;
    struct topt_layout l = topt_value_layout(o, operand, c, k->mesh);
    for (int a = 0; a < k->mesh->naxes; a++)
        if (c->dim[a] >= 0 && topt_op_split(o, c->dim[a]) == TOPT_SPLIT_SEQUENCE &&
            l.at[a] == TOPT_REPLICATE)
            ranks *= k->mesh->size[a];
    return ranks;
}

/* Bytes read and written on the rank that does most, the last: all its queries are met in each step, by half of the
 * keys that come.  Numbers of two bytes; those of the sums' logarithms, one a head and position, are left out.
 *
 * Transformer Engine (context_parallel.py at d0067d0, 2026-08, AttnFuncWithCPAndKVP2P with positions before samples):
 * the first output is scaled (reads and writes 2 + 2), others are scaled and added by a fused kernel (2 + 2 + 2); keys
 * and values are copied to a buffer once (4).  Backward gradients of queries are copied (4) and added (6), those of
 * keys and values added by halves (3), in the last step whole (6).
 *
 * PyTorch (torch/distributed/tensor/experimental/_attention.py, _SDPAMerger): outputs are brought to
 * f32 (6) and back at the end (6); o - w (o - n) is a difference, a product and a difference (12 + 8 + 12).  Keys and
 * values, which torchtitan repeats for each head (repeat_kv), are two to each number of a query: both are put together
 * for each exchange (4).  Backward sums in f32 begin with zeros (4) and end in two bytes (6); those of queries get a
 * step's (10), those of keys and values half of one and are copied (5 + 8), the first whole one (10), and are put
 * together to be sent (8). */
static const struct merged {
    int once, step, keys_once, keys_step;
} merged[TOPT_MERGE_COUNT][2] = {
    [TOPT_MERGE_FUSED] = {{4, 6, 4, 0}, {4, 6, 6, 3}},
    [TOPT_MERGE_EAGER] = {
        {6 + 6, 6 + 12 + 8 + 12 + 2 * 4, 0, 0},
        {4 + 10 + 6 + 2 * (4 + 10 + 8 + 6), 10 + 2 * (4 + 5 + 8 + 8), 0, 0}}};

int64_t topt_merged_bytes(const struct topt_costing *k, const struct topt_op *o,
                          enum topt_kernel kernel, const int64_t *len)
{
    const struct topt_operand_spec *y = &o->spec->operand[o->output];
    const struct merged *m = &merged[k->settings->merge][kernel == TOPT_K_ATTENTION_BWD];
    int64_t ranks = 1, keys = 0;
    if (kernel != TOPT_K_ATTENTION_FWD && kernel != TOPT_K_ATTENTION_BWD)
        return 0;
    for (int i = 0; i < y->ndim; i++)
        if (topt_op_split(o, y->dim[i]) == TOPT_SPLIT_SEQUENCE)
            ranks *= o->count[y->dim[i]] / len[y->dim[i]];
    if (ranks < 2)
        return 0;
    for (int i = 1; i < o->ninputs; i++)
        keys += topt_touched_numbers(o, 1u << o->input[i], len) / ranks;
    return topt_touched_numbers(o, 1u << o->output, len) *
               (m->once + m->step * (ranks - 1)) +
           keys * (m->keys_once + m->keys_step * (ranks - 1));
}

/* What a rank has of an operand that goes around; 0: it does not. */
static int64_t part_bytes(const struct topt_costing *k, const struct topt_op *o,
                          const struct topt_config *c, int operand)
{
    struct topt_shape shape = topt_operand_shape(o, operand);
    struct topt_layout l = topt_value_layout(o, operand, c, k->mesh);
    int64_t ranks = topt_ring_ranks(k, o, c, operand);
    int64_t bytes = topt_block_bytes(k->mesh, k->settings, &shape, &l, TOPT_ELEM_REAL);
    return ranks > 1 ? bytes / ranks : 0;
}

void topt_ring_end(const struct topt_costing *k, int op, int operand,
                   const struct topt_config *c, const struct topt_fragment_cost *attends,
                   struct topt_edge_end *ret)
{
    const struct topt_op *o = &k->model->op[op];
    int64_t bytes = part_bytes(k, o, c, operand), all = 0;
    for (int i = 0; i < o->ninputs; i++)
        all += part_bytes(k, o, c, o->input[i]);
    ret->ring = (int)topt_ring_ranks(k, o, c, operand);
    for (int i = 0; i < 2; i++) {
        int64_t ns = attends->spent.at[TOPT_DURING_FORWARD + i].compute_ns;
        ns = (int64_t)((double)ns * (double)bytes / (double)all);
        ret->ring_ns[i] = ns - ns / ret->ring;
    }
}

void topt_move_takes(struct topt_move_cost *m, int64_t ns)
{
    double part = m->network_ns > 0 ? (double)ns / (double)m->network_ns : 0;
    int64_t left = m->network_ns = ns;
    for (int i = TOPT_BASIS_COUNT - 1; i >= 0; i--) {
        int64_t its = (int64_t)((double)m->basis_ns[i] * part);
        left -= m->basis_ns[i] = i ? topt_min(left, its) : left;
    }
}

/* A gather of what goes around, or the sum of its gradients, for which computing waits so long. */
static void go_around(struct topt_move_cost *m, int64_t ns)
{
    topt_move_takes(m, ns);
    m->from_bytes = m->to_bytes = topt_min(m->from_bytes, m->to_bytes);
    m->transient_bytes = 3 * m->to_bytes;
}

int64_t topt_ring_wait(const struct topt_edge_end *to, int64_t g, int64_t r)
{
    return r < 0 ? topt_max(g - to->ring_ns[0], (int64_t)0)
                 : topt_max(g + r - to->ring_ns[1], (int64_t)0) + r / (to->ring - 1);
}

void topt_ring_moves(const struct topt_edge_end *to, struct topt_move_cost *there,
                     struct topt_move_cost *back)
{
    int64_t g = there->network_ns, r = back ? back->network_ns : 0;
    if (!to->ring)
        return;
    go_around(there, topt_ring_wait(to, g, -1));
    if (back)
        go_around(back, topt_ring_wait(to, g, r));
}
