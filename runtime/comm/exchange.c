/* exchange.c - moves by boxes.
 *
 * Every layout gives every device a box, so what goes from one member of the group to
 * another is the intersection of the sender's box before and the receiver's box after.
 * All-gather, all-to-all and permute are this same sentence; they differ only in which
 * of MPI's calls carries the blocks.  Blocks are packed one after the other into the
 * front of the staging buffer and received behind it, so that the staging holds one
 * block before and one after. */
#include "exchange.h"

struct topt_box topt_box_meet(int ndim, const struct topt_box *a,
                              const struct topt_box *b)
{
    struct topt_box r = {0};
    int empty = 0;
    for (int i = 0; i < ndim; i++) {
        int64_t end_a = a->off[i] + a->len[i], end_b = b->off[i] + b->len[i];
        int64_t end = end_a < end_b ? end_a : end_b;
        r.off[i] = a->off[i] > b->off[i] ? a->off[i] : b->off[i];
        r.len[i] = end > r.off[i] ? end - r.off[i] : 0;
        empty |= r.len[i] == 0;
    }
    for (int i = 0; i < ndim && empty; i++)
        r.len[i] = 0;
    return r;
}

static struct topt_box box_of(const struct topt_exchange *x, const struct topt_layout *l,
                              int device)
{
    return topt_layout_box(&x->comm->mesh, x->shape, l, device);
}

static int bytes_of(const struct topt_exchange *x)
{
    return topt_comm_number_bytes(x->number);
}

static int copy(const struct topt_exchange *x, void *dst, const struct topt_box *dst_box,
                const void *src, const struct topt_box *src_box,
                const struct topt_box *region, struct topt_error *err)
{
    struct topt_box_copy c = {.shape = x->shape,
                              .element_bytes = bytes_of(x),
                              .src = src,
                              .dst = dst,
                              .src_box = *src_box,
                              .dst_box = *dst_box,
                              .region = *region};
    return x->device->ops->copy_box(x->device, &c, err);
}

/* What each member gets from me (or, 'incoming', gives me): its count, and a copy
 * between my block and the staging area at 'area' unless that is NULL. */
static int visit(const struct topt_exchange *x, const struct topt_comm_group *g,
                 int incoming, char *area, int64_t *counts, struct topt_error *err)
{
    const struct topt_move *m = x->move;
    struct topt_box mine = box_of(x, incoming ? &m->to : &m->from, x->comm->rank);
    int64_t at = 0;
    for (int i = 0; i < g->size; i++) {
        struct topt_box other = box_of(x, incoming ? &m->from : &m->to, g->device[i]);
        struct topt_box part = topt_box_meet(x->shape->ndim, &mine, &other);
        counts[i] = topt_box_elements(x->shape, &part);
        char *block = area ? area + at * bytes_of(x) : NULL;
        at += counts[i];
        if (!block || !counts[i])
            continue;
        int rc = incoming ? copy(x, x->dst, &mine, block, &part, &part, err)
                          : copy(x, block, &part, x->src, &mine, &part, err);
        if (rc)
            return -1;
    }
    return 0;
}

static int64_t total(const int64_t *counts, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += counts[i];
    return sum;
}

static int slice(const struct topt_exchange *x, struct topt_error *err)
{
    struct topt_box from = box_of(x, &x->move->from, x->comm->rank);
    struct topt_box to = box_of(x, &x->move->to, x->comm->rank);
    return copy(x, x->dst, &to, x->src, &from, &to, err);
}

static int all_reduce(const struct topt_exchange *x, struct topt_error *err)
{
    struct topt_box box = box_of(x, &x->move->from, x->comm->rank);
    struct topt_comm_call k = {.axes = x->move->axes,
                               .number = x->number,
                               .reduce = TOPT_COMM_SUM,
                               .src = x->src,
                               .dst = x->dst,
                               .n = topt_box_elements(x->shape, &box)};
    return x->comm->ops->all_reduce(x->comm, &k, err);
}

static int reduce_scatter(const struct topt_exchange *x, const struct topt_comm_group *g,
                          struct topt_error *err)
{
    if (visit(x, g, 0, x->staging, x->counts, err))
        return -1;
    struct topt_comm_call k = {.axes = x->move->axes,
                               .number = x->number,
                               .src = x->staging,
                               .dst = x->dst,
                               .counts = x->counts};
    return x->comm->ops->reduce_scatter(x->comm, &k, err);
}

/* Every member has the same box afterwards: my block goes to all as it is. */
static int all_gather(const struct topt_exchange *x, const struct topt_comm_group *g,
                      struct topt_error *err)
{
    int64_t *counts = x->counts;
    if (visit(x, g, 1, NULL, counts, err))
        return -1;
    struct topt_comm_call k = {.axes = x->move->axes,
                               .number = x->number,
                               .src = x->src,
                               .dst = x->staging,
                               .counts = counts};
    return x->comm->ops->all_gather(x->comm, &k, err) ||
                   visit(x, g, 1, x->staging, counts, err)
               ? -1
               : 0;
}

static int all_to_all(const struct topt_exchange *x, const struct topt_comm_group *g,
                      struct topt_error *err)
{
    int64_t *out = x->counts, *in = x->counts + x->comm->size;
    if (visit(x, g, 0, x->staging, out, err))
        return -1;
    char *arrived = (char *)x->staging + total(out, g->size) * bytes_of(x);
    if (visit(x, g, 1, NULL, in, err))
        return -1;
    struct topt_comm_call k = {.axes = x->move->axes,
                               .number = x->number,
                               .src = x->staging,
                               .dst = arrived,
                               .counts = out,
                               .to_counts = in};
    if (x->comm->ops->all_to_all(x->comm, &k, err))
        return -1;
    return visit(x, g, 1, arrived, in, err);
}

int topt_exchange(const struct topt_exchange *x, struct topt_error *err)
{
    struct topt_comm_group g;
    if (x->move->kind == TOPT_MOVE_SLICE)
        return slice(x, err);
    if (x->comm->ops->group(x->comm, x->move->axes, &g, err))
        return -1;
    switch (x->move->kind) {
    case TOPT_MOVE_ALL_REDUCE:
        return all_reduce(x, err);
    case TOPT_MOVE_REDUCE_SCATTER:
        return reduce_scatter(x, &g, err);
    case TOPT_MOVE_ALL_GATHER:
        return all_gather(x, &g, err);
    default:
        return all_to_all(x, &g, err);
    }
}

/* ---- windows ----------------------------------------------------------------------- */

static struct topt_box halo_box(const struct topt_halo *x, int window, int device)
{
    int operand = window ? x->window : x->op->spec->operand[x->window].window_of - 1;
    return topt_operand_box(x->op, operand, x->config, &x->comm->mesh, device);
}

/* As visit(): from blocks to windows, or, adding, from windows to blocks. */
static int visit_halo(const struct topt_halo *x, const struct topt_comm_group *g,
                      int incoming, char *area, int64_t *counts, struct topt_error *err)
{
    int mine_is_window = incoming != x->add, bytes = topt_comm_number_bytes(x->number);
    struct topt_shape shape = {.ndim = x->op->spec->operand[x->window].ndim};
    struct topt_box mine = halo_box(x, mine_is_window, x->comm->rank);
    int64_t at = 0;
    for (int i = 0; i < shape.ndim; i++)
        shape.dim[i] = x->op->operand[x->window].dim[i];
    for (int i = 0; i < g->size; i++) {
        struct topt_box other = halo_box(x, !mine_is_window, g->device[i]);
        struct topt_box part = topt_box_meet(shape.ndim, &mine, &other);
        counts[i] = topt_box_elements(&shape, &part);
        char *block = area ? area + at * bytes : NULL;
        at += counts[i];
        if (!block || !counts[i])
            continue;
        struct topt_box_copy c = {.shape = &shape,
                                  .element_bytes = bytes,
                                  .src = incoming ? block : x->src,
                                  .dst = incoming ? x->dst : block,
                                  .src_box = incoming ? part : mine,
                                  .dst_box = incoming ? mine : part,
                                  .region = part};
        if (incoming && x->add ? x->device->ops->add_box(x->device, &c, err)
                               : x->device->ops->copy_box(x->device, &c, err))
            return -1;
    }
    return 0;
}

int topt_exchange_halo(const struct topt_halo *x, struct topt_error *err)
{
    struct topt_comm_group g;
    int64_t *out = x->counts, *in = x->counts + x->comm->size;
    if (x->comm->ops->group(x->comm, x->axes, &g, err) ||
        visit_halo(x, &g, 0, x->staging, out, err) || visit_halo(x, &g, 1, NULL, in, err))
        return -1;
    char *arrived =
        (char *)x->staging + total(out, g.size) * topt_comm_number_bytes(x->number);
    struct topt_comm_call k = {.axes = x->axes,
                               .number = x->number,
                               .src = x->staging,
                               .dst = arrived,
                               .counts = out,
                               .to_counts = in};
    return x->comm->ops->all_to_all(x->comm, &k, err)
               ? -1
               : visit_halo(x, &g, 1, arrived, in, err);
}
