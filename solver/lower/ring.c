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
 * comes, and keeps its own.  How outputs of steps are added up is not priced. */
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
