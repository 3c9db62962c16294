/* ring.c - attention over context ranks among which keys and values go around.
 *
 * Each rank has the queries of its own positions, and meets the keys and values of all ranks in as many steps as there
 * are ranks: while it attends to those that it has, it sends them on and gets its neighbour's (Liu et al., Ring
 * Attention, 2023; Transformer Engine's p2p, which is Megatron-LM's default).  A rank's positions are two parts of a
 * sample, one from either end, so that under a causal mask each step takes as long.  Backward keys and values go around
 * again and their gradients with them, which need one step more to come home.  With c ranks, where attention takes F
 * forward and B backward and a hop of an operand h, computing waits for
 *
 *     forward     (c - 1) max(0, h - F / c)
 *     backward    (c - 1) max(0, 2 h - B / c) + h
 *
 * F and B are shared among operands by their bytes.  A rank holds its own part, the one that it reads and the one that
 * comes, and keeps its own.  How outputs of steps are added up is not priced. */
#include "ring.h"

#include "topt_minmax.h"

#include <string.h>

/* The ranks that an operand of attention goes around: one each along the axes on which that has positions of its own, and the
 * operand all of them. */
static struct topt_group ring_of(const struct topt_costing *k, const struct topt_op *o,
                                 const struct topt_config *c, int operand)
{
    struct topt_layout l = topt_value_layout(o, operand, c, k->mesh);
    int attends = topt_kernel_work(o->spec->forward[0].kernel) == TOPT_WORK_ATTENTION;
    uint32_t axes = 0;
    for (int a = 0; attends && a < k->mesh->naxes; a++)
        if (c->dim[a] >= 0 && topt_op_split(o, c->dim[a]) == TOPT_SPLIT_SEQUENCE &&
            l.at[a] == TOPT_REPLICATE)
            axes |= 1u << a;
    return topt_mesh_group(k->mesh, axes);
}

int64_t topt_ring_ranks(const struct topt_costing *k, const struct topt_op *o,
                        const struct topt_config *c, int operand)
{
    struct topt_group g = {1, 1, 1};
    if (k->settings->ring)
        g = ring_of(k, o, c, operand);
    return (int64_t)g.nodes * g.per_node;
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
                   const struct topt_config *c, struct topt_edge_end *ret)
{
    const struct topt_op *o = &k->model->op[op];
    struct topt_group g = ring_of(k, o, c, operand);
    int64_t ranks = (int64_t)g.nodes * g.per_node, all = 0;
    int64_t bytes = part_bytes(k, o, c, operand);
    struct topt_fragment_cost attends;
    if (!bytes || topt_cost_op(k, op, c, &attends, NULL))
        return;
    for (int i = 0; i < o->ninputs; i++)
        all += part_bytes(k, o, c, o->input[i]);
    g.per_node = g.nodes > 1 ? 1 : 2;
    g.nodes = g.nodes > 1 ? 2 : 1;
    int64_t hop =
        k->settings->micro_batches * topt_hw_collective_ns(k->hw, TOPT_PERMUTE, g, bytes);
    for (int i = 0; i < 2; i++) {
        int64_t ns = attends.spent.at[TOPT_DURING_FORWARD + i].compute_ns;
        int64_t step = (int64_t)((double)ns * (double)bytes / (double)all) / ranks;
        ret->ring_ns[i] =
            (ranks - 1) * topt_max((1 + i) * hop - step, (int64_t)0) + i * hop;
    }
    ret->ring = 1;
}

/* A gather of what goes around, or the sum of its gradients, as the ring has it. */
static void go_around(struct topt_move_cost *m, int64_t ns)
{
    memset(m->basis_ns, 0, sizeof m->basis_ns);
    m->network_ns = m->basis_ns[TOPT_BASIS_ANALYTIC] = ns;
    m->from_bytes = m->to_bytes = topt_min(m->from_bytes, m->to_bytes);
    m->transient_bytes = 3 * m->to_bytes;
}

void topt_ring_moves(const struct topt_edge_end *to, struct topt_move_cost *there,
                     struct topt_move_cost *back)
{
    if (to->ring)
        go_around(there, to->ring_ns[0]);
    if (to->ring && back)
        go_around(back, to->ring_ns[1]);
}
