/* restrict.c - what other systems leave out of a space.
 *
 *   batch        axes take the batch, whatever has none is replicated
 *   spread       whatever is stored is split over all devices: parameters, outputs, and what is
 *                kept for backward.  What a contraction leaves is a sum that is due, which
 *                is never stored: it is added up on the way to the consumer, whose own blocks are
 *                kept (partition and reduce).  Parameters are gathered before use (ZERO_PARAM),
 *                and a replicated copy is thrown away and recomputed in backward.  Statistics
 *                that an operator saves beside its output go where its configuration puts them
 *   outputs      only dimensions of the output are split, so that nothing is summed up; and no
 *                device does what another does as long as the output can be split further
 *   named        dimensions have names, which are those that tensors tie together: a layer's
 *                are its own.  A name takes one dimension of one device mesh, which divides
 *                it, or none.  So two operators agree about the tensor between them, up to
 *                sums that are due.  Rows of neighbours are not exchanged: images are split by
 *                samples and channels
 *   renamed      the same, and any tensor may be renamed on its way (mtf.reshape), which moves it
 *   one channel  as named, with one name for all channels and features; two of them in one
 *                operator can't both take it
 *
 * Beside these, which are other systems', a framework's own tensor parallelism leaves one
 * configuration of each operator along the tensor axes, and one of each hub (topt_tensor.h). */
#include "configs.h"
#include "topt_tensor.h"

/* ---- batch ------------------------------------------------------------------------- */

/* Do all axes take the batch? */
static int over_batch(const struct topt_space_options *o, const struct topt_mesh *mesh,
                      const struct topt_splits *s, const struct topt_config *c)
{
    int batch = topt_splits_batch(s);
    (void)o;
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] != batch)
            return 0;
    return 1;
}

const struct topt_restriction topt_restrict_batch = {.splits = over_batch};

/* Parallax (Kim et al. 2019): dense variables are all-reduced, sparse ones have servers, which here
 * are the devices themselves.  (One of which nearly all is touched may be all-reduced, the paper says,
 * and not from where on.) */
static int served(const struct topt_space_options *o, const struct topt_mesh *mesh,
                  const struct topt_op *op, const struct topt_config *c)
{
    (void)o;
    return topt_table_sparse(op) < 0 || c->zero == TOPT_ZERO_OWNER || mesh->devices == 1;
}

const struct topt_restriction topt_restrict_hybrid = {
    .levels = 1 << TOPT_ZERO_OWNER, .splits = over_batch, .op = served};

/* ---- spread ------------------------------------------------------------------------ */

/* Does each axis split the tensor, or leave a part of a 'sum' there? */
static int spread(const struct topt_mesh *mesh, const struct topt_layout *l, int sum)
{
    for (int a = 0; a < mesh->naxes; a++)
        if (l->at[a] < 0 && !(sum && l->at[a] == TOPT_PARTIAL))
            return 0;
    return 1;
}

/* Where memory counts what is due, that is stored, too. */
static int spread_op(const struct topt_space_options *o, const struct topt_mesh *mesh,
                     const struct topt_op *op, const struct topt_config *c)
{
    struct topt_layout l = topt_value_layout(op, op->output, c, mesh);
    if (!spread(mesh, &l, !o->sums_stay))
        return 0;
    for (int x = 0; x < op->spec->noperands; x++) {
        if (op->operand[x].role != TOPT_PARAM || !op->operand[x].present)
            continue;
        l = c->zero == TOPT_ZERO_PARAM ? topt_sharded_layout(op, x, c, mesh)
                                       : topt_value_layout(op, x, c, mesh);
        if (!spread(mesh, &l, 0))
            return 0;
    }
    return 1;
}

static int spread_hub(const struct topt_mesh *mesh, const struct topt_hub *h)
{
    struct topt_layout l = topt_hub_layout(h, mesh);
    return spread(mesh, &l, 0);
}

static int spread_edge(const struct topt_mesh *mesh, const struct topt_edge_end *from,
                       const struct topt_edge_end *to, enum topt_keep keep)
{
    return to->hub || !to->needed ||
           spread(mesh, keep == TOPT_KEEP_AFTER ? &to->value : &from->value, 0);
}

const struct topt_restriction topt_restrict_spread = {
    .levels = -1, .op = spread_op, .hub = spread_hub, .edge = spread_edge};

/* ---- outputs ----------------------------------------------------------------------- */

/* Could an axis that does nothing take one of the output's dimensions instead? */
static int has_room(const struct topt_space_options *o, const struct topt_mesh *mesh,
                    const struct topt_op *op, const struct topt_splits *s,
                    const struct topt_config *c, int axis)
{
    const struct topt_operand_spec *out = &op->spec->operand[op->output];
    for (int i = 0; i < out->ndim; i++) {
        int d = out->dim[i];
        int64_t parts = mesh->size[axis];
        for (int a = 0; a < mesh->naxes; a++)
            parts *= c->dim[a] == d ? mesh->size[a] : 1;
        int even = o->even || s->even[d];
        int may = s->split[d] == TOPT_SPLIT_SEQUENCE ? o->sequence
                                                     : s->split[d] != TOPT_SPLIT_NEVER;
        if (may && parts <= s->count[d] && (!even || s->count[d] % parts == 0))
            return 1;
    }
    return 0;
}

static int outputs_op(const struct topt_space_options *o, const struct topt_mesh *mesh,
                      const struct topt_op *op, const struct topt_config *c)
{
    struct topt_splits s = topt_splits_of_op(op);
    struct topt_layout out = topt_value_layout(op, op->output, c, mesh);
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] >= 0 && out.at[a] < 0)
            return 0;
    /* Tables without samples are stored, not worked on. */
    for (int a = 0; a < mesh->naxes && topt_splits_batch(&s) >= 0; a++)
        if (c->dim[a] < 0 && has_room(o, mesh, op, &s, c, a))
            return 0;
    return 1;
}

const struct topt_restriction topt_restrict_outputs = {.op = outputs_op};

/* ---- named ------------------------------------------------------------------------- */

/* Axes that dimension 'd' takes, as bits. */
static uint32_t axes_of(const struct topt_mesh *mesh, const struct topt_config *c, int d)
{
    uint32_t axes = 0;
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] == d)
            axes |= 1u << a;
    return axes;
}

/* Are these all axes of one dimension of the device mesh, or none? */
static int one_mesh_dim(const struct topt_mesh *mesh, uint32_t starts, uint32_t axes)
{
    uint32_t run = 0;
    for (int a = 0; a < mesh->naxes; a++) {
        run = starts >> a & 1 ? 1u << a : run | 1u << a;
        int last = a + 1 == mesh->naxes || starts >> (a + 1) & 1;
        if (last && axes & run)
            return axes == run;
    }
    return 1;
}

/* ... and do they divide the dimension? */
static int divides(const struct topt_mesh *mesh, uint32_t axes, int64_t count)
{
    int64_t parts = 1;
    for (int a = 0; a < mesh->naxes; a++)
        parts *= axes >> a & 1 ? mesh->size[a] : 1;
    return count % parts == 0;
}

static int by_names(const struct topt_space_options *o, const struct topt_mesh *mesh,
                    const struct topt_splits *s, const struct topt_config *c)
{
    for (int d = 0; d < s->ndims; d++) {
        uint32_t axes = axes_of(mesh, c, d);
        if (axes && (s->split[d] == TOPT_SPLIT_SPATIAL ||
                     !one_mesh_dim(mesh, o->mesh_starts, axes) ||
                     !divides(mesh, axes, s->count[d])))
            return 0;
    }
    return 1;
}

static int named_edge(const struct topt_mesh *mesh, const struct topt_edge_end *from,
                      const struct topt_edge_end *to, enum topt_keep keep)
{
    (void)keep;
    for (int a = 0; a < mesh->naxes; a++) {
        int8_t x = from->value.at[a], y = to->value.at[a];
        if (x != y && (x >= 0 || y >= 0))
            return 0;
    }
    return 1;
}

/* All channels take the same axes; an axis takes one dimension, so two of them take
 * none. */
static int by_one_name(const struct topt_space_options *o, const struct topt_mesh *mesh,
                       const struct topt_splits *s, const struct topt_config *c)
{
    int channels = 0, split = 0;
    for (int d = 0; d < s->ndims; d++)
        if (s->count[d] > 1 &&
            (s->split[d] == TOPT_SPLIT_FEATURE || s->split[d] == TOPT_SPLIT_STAT)) {
            channels++;
            split |= axes_of(mesh, c, d) != 0;
        }
    return by_names(o, mesh, s, c) && (channels < 2 || !split);
}

const struct topt_restriction topt_restrict_named = {.splits = by_names,
                                                     .edge = named_edge},
                              topt_restrict_renamed = {.splits = by_names},
                              topt_restrict_one_channel = {.splits = by_one_name,
                                                           .edge = named_edge};

/* ---- a framework's tensor parallelism ---------------------------------------------------- */

static int axes_take(int first, int last, int dim, const struct topt_config *c)
{
    for (int a = first; a < last; a++)
        if (c->dim[a] != dim)
            return 0;
    return 1;
}

/* The space lists no sums: a hub that has one along these axes is listed as whole there. */
static int map_gives_hub(const struct topt_tensor_map *map, int first, int last,
                         int tensor, struct topt_hub *h)
{
    int dim = map ? map->hub[tensor] : TOPT_AS_DATA;
    if (dim == TOPT_AS_DATA)
        return 1;
    if (!axes_take(first, last, dim == TOPT_HUB_SUM ? -1 : dim, &h->layout))
        return 0;
    for (int a = first; a < last; a++)
        h->layout.dim[a] = (int8_t)dim;
    return 1;
}

/* Tables without samples are sharded over context axes as over data axes. */
static int context_takes_op(const struct topt_space_options *o, const struct topt_op *op,
                            const struct topt_config *c)
{
    struct topt_splits s = topt_splits_of_op(op);
    return !o->context || topt_splits_batch(&s) < 0 || s.expert >= 0 ||
           axes_take(o->cut - o->context_axes, o->cut, o->context->op[op - op->model->op],
                     c);
}

/* ---- asked by the listing of configurations --------------------------------------------- */

int topt_allows_op(const struct topt_space_options *o, const struct topt_mesh *mesh,
                   const struct topt_op *op, const struct topt_config *c)
{
    const struct topt_restriction *r = o->restriction;
    if (!context_takes_op(o, op, c) ||
        (o->tensor && !axes_take(topt_first_tensor_axis(o, topt_op_experts(op)),
                                 mesh->naxes, o->tensor->op[op - op->model->op], c)))
        return 0;
    if (!r)
        return 1;
    struct topt_splits s = {0};
    if (r->splits)
        s = topt_splits_of_op(op);
    return (!c->zero || r->levels >> c->zero & 1) &&
           (!r->splits || r->splits(o, mesh, &s, c)) && (!r->op || r->op(o, mesh, op, c));
}

int topt_allows_hub(const struct topt_space_options *o, const struct topt_mesh *mesh,
                    int tensor, const struct topt_splits *splits, struct topt_hub *h)
{
    const struct topt_restriction *r = o->restriction;
    return map_gives_hub(o->tensor, o->cut, mesh->naxes, tensor, h) &&
           map_gives_hub(o->context, o->cut - o->context_axes, o->cut, tensor, h) &&
           (!r || ((!r->splits || r->splits(o, mesh, splits, &h->layout)) &&
                   (!r->hub || r->hub(mesh, h))));
}

int topt_allows_edge(const struct topt_space_options *o, const struct topt_mesh *mesh,
                     const struct topt_edge_end *from, const struct topt_edge_end *to,
                     enum topt_keep keep)
{
    return !o->restriction || !o->restriction->edge ||
           o->restriction->edge(mesh, from, to, keep);
}
