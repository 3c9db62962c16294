/* config_layouts.c - what follows from a configuration: layouts of values and gradients, local
 * boxes.
 *
 * A configuration gives each axis to one dimension of the operator or to none.  For an
 * operand that has the dimension, the axis shards it.  One that lacks it is replicated
 * - except that an output which sums over the dimension is partial, and so is the
 * gradient of an input or parameter (each device saw only its part of the batch, or of
 * the outputs). */
#include "topt_lower.h"
#include "topt_named.h"

#include <stdlib.h>
#include <string.h>

static struct topt_layout derive(const struct topt_op *op, int operand,
                                 const struct topt_config *c,
                                 const struct topt_mesh *mesh, int lacking_is_partial)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    struct topt_layout l = topt_layout_replicated();
    int8_t used[TOPT_MAX_RANK] = {0}, place_of[TOPT_MAX_OPDIMS];
    memset(place_of, -1, sizeof place_of);
    for (int i = spec->ndim - 1; i >= 0; i--)
        place_of[spec->dim[i]] = (int8_t)i;
    for (int a = 0; a < mesh->naxes; a++) {
        int d = c->dim[a];
        if (d < 0)
            continue;
        int i = place_of[d];
        if (i >= 0) {
            l.at[a] = (int8_t)i;
            l.pos[a] = used[i]++;
        } else if (lacking_is_partial && op->spec->dim[d].split != TOPT_SPLIT_STAT) {
            l.at[a] = TOPT_PARTIAL;
        }
    }
    return l;
}

struct topt_layout topt_value_layout(const struct topt_op *op, int operand,
                                     const struct topt_config *c,
                                     const struct topt_mesh *mesh)
{
    return derive(op, operand, c, mesh,
                  op->operand[operand].role == TOPT_OUTPUT ||
                      op->spec->operand[operand].partial);
}

struct topt_layout topt_grad_layout(const struct topt_op *op, int operand,
                                    const struct topt_config *c,
                                    const struct topt_mesh *mesh)
{
    enum topt_role role = op->operand[operand].role;
    return derive(op, operand, c, mesh, role == TOPT_INPUT || role == TOPT_PARAM);
}

uint32_t topt_replica_axes(const struct topt_op *op, int operand,
                           const struct topt_config *c, const struct topt_mesh *mesh)
{
    if (op->operand[operand].role != TOPT_PARAM || !op->operand[operand].present)
        return 0;
    struct topt_layout l = topt_grad_layout(op, operand, c, mesh);
    return topt_layout_partial_mask(&l);
}

/* The dimension of an operand with most counts in its largest block; the first of
 * equals. */
static int widest(const struct topt_op *op, int operand, const struct topt_layout *l,
                  const struct topt_mesh *mesh)
{
    int best = 0;
    int64_t most = 0;
    for (int i = 0; i < op->spec->operand[operand].ndim; i++) {
        int8_t axes[TOPT_MAX_AXES];
        int64_t off, len;
        int n = topt_layout_axes_of(l, i, axes);
        topt_split_block(mesh, op->operand[operand].dim[i].count, axes, n, 0, &off, &len);
        if (len > most) {
            most = len;
            best = i;
        }
    }
    return best;
}

struct topt_layout topt_sharded_layout(const struct topt_op *op, int operand,
                                       const struct topt_config *c,
                                       const struct topt_mesh *mesh)
{
    struct topt_layout l = topt_value_layout(op, operand, c, mesh);
    uint32_t replicas = topt_replica_axes(op, operand, c, mesh) >> c->whole_axes
                                                                       << c->whole_axes;
    int8_t axes[TOPT_MAX_AXES];
    int dim = c->zero == TOPT_ZERO_OWNER ? topt_operand_rank(op, operand) - 2
                                         : widest(op, operand, &l, mesh);
    int n = topt_layout_axes_of(&l, dim, axes);
    for (; replicas; replicas &= replicas - 1) {
        int a = __builtin_ctz(replicas);
        l.at[a] = (int8_t)dim;
        l.pos[a] = (int8_t)n++;
    }
    return l;
}

struct topt_layout topt_hub_layout(const struct topt_hub *h, const struct topt_mesh *mesh)
{
    struct topt_layout l = topt_layout_replicated();
    int8_t used[TOPT_MAX_RANK] = {0};
    for (int a = 0; a < mesh->naxes; a++) {
        int d = h->layout.dim[a];
        if (d < 0)
            continue;
        l.at[a] = (int8_t)d;
        l.pos[a] = used[d]++;
    }
    return l;
}

struct topt_layout topt_hub_grad_layout(const struct topt_hub *h,
                                        const struct topt_mesh *mesh)
{
    struct topt_layout l = topt_hub_layout(h, mesh);
    for (int a = 0; a < mesh->naxes; a++)
        if (h->layout.dim[a] == TOPT_HUB_SUM)
            l.at[a] = TOPT_PARTIAL;
    return l;
}

struct topt_config topt_config_none(void)
{
    struct topt_config c = {.zero = TOPT_ZERO_NONE};
    memset(c.dim, -1, sizeof c.dim);
    return c;
}

uint32_t topt_axes_over(const struct topt_mesh *mesh, const struct topt_config *c,
                        uint32_t dims)
{
    uint32_t axes = 0;
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] >= 0 && dims >> c->dim[a] & 1)
            axes |= 1u << a;
    return axes;
}

/* Fewest counts of a dimension in any operand: all parts of each must have work. */
int64_t topt_fewest_counts(const struct topt_op *op, int d)
{
    int64_t n = op->count[d];
    for (int o = 0; o < op->spec->noperands; o++) {
        const struct topt_operand_spec *spec = &op->spec->operand[o];
        int i = 0;
        while (i < spec->ndim && spec->dim[i] != d)
            i++;
        if (i < spec->ndim && op->operand[o].present && op->operand[o].dim[i].count < n)
            n = op->operand[o].dim[i].count;
    }
    return n;
}

/* A frozen parameter has a value and nothing else. */
static int has_replicas(const struct topt_op *op, const struct topt_config *c,
                        const struct topt_mesh *mesh)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if ((c->zero == TOPT_ZERO_PARAM || topt_is_trained(op, o)) &&
            topt_replica_axes(op, o, c, mesh) >> c->whole_axes)
            return 1;
    return 0;
}

/* Several tables are whole, or their rows have owners: no move shares out a block of them. */
static int has_tables(const struct topt_op *op)
{
    for (int o = 0; o < op->spec->noperands; o++)
        if (op->spec->operand[o].ragged)
            return 1;
    return 0;
}

int topt_config_valid(const struct topt_op *op, const struct topt_config *c,
                      const struct topt_mesh *mesh)
{
    int64_t split[TOPT_MAX_OPDIMS], parts[TOPT_MAX_OPDIMS];
    for (int d = 0; d < TOPT_MAX_OPDIMS; d++)
        split[d] = parts[d] = 1;
    for (int a = 0; a < mesh->naxes; a++) {
        int d = c->dim[a];
        if (d < -1 || d >= op->spec->ndims)
            return 0;
        if (d < 0)
            continue;
        split[d] *= mesh->size[a];
        parts[d] *= topt_mesh_parts(mesh, a);
        if (topt_op_split(op, d) == TOPT_SPLIT_NEVER ||
            split[d] > topt_fewest_counts(op, d) ||
            (op->spec->even >> d & 1 && op->count[d] % parts[d]))
            return 0;
    }
    if (c->whole_axes && (c->zero < TOPT_ZERO_STATE || c->zero > TOPT_ZERO_PARAM ||
                          c->whole_axes > mesh->naxes))
        return 0;
    if (c->zero == TOPT_ZERO_NONE)
        return 1;
    if (c->zero >= TOPT_ZERO_SPARSE ? topt_table_sparse(op) < 0 : has_tables(op))
        return 0;
    return c->zero == TOPT_ZERO_SPARSE ||
           (c->zero < TOPT_ZERO_COUNT && has_replicas(op, c, mesh));
}

static int axes_of(const struct topt_config *c, const struct topt_mesh *mesh, int d,
                   int8_t ret[TOPT_MAX_AXES])
{
    int n = 0;
    for (int a = 0; a < mesh->naxes; a++)
        if (c->dim[a] == d)
            ret[n++] = (int8_t)a;
    return n;
}

/* ---- boxes and windows ------------------------------------------------------------- */

static int windowed(const struct topt_op *op, int operand, int i)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    return spec->window_of && spec->own >> i & 1;
}

/* One dimension of an operand's block; of a window, what the block of the output
 * reads. */
static void block_of(const struct topt_op *op, int operand, int i,
                     const struct topt_config *c, const struct topt_mesh *mesh,
                     int device, int64_t *ret_off, int64_t *ret_len)
{
    int d = op->spec->operand[operand].dim[i];
    int64_t count = op->operand[operand].dim[i].count, off, len;
    int8_t axes[TOPT_MAX_AXES];
    int n = axes_of(c, mesh, d, axes), is_window = n > 0 && windowed(op, operand, i);
    topt_split_block(mesh, is_window ? op->count[d] : count, axes, n, device, &off, &len);
    if (is_window && len > 0) {
        op->spec->window(op, d, off, len, &off, &len);
        int64_t end = off + len < count ? off + len : count;
        off = off > 0 ? off : 0;
        len = end > off ? end - off : 0;
    }
    *ret_off = off;
    *ret_len = len;
}

/* Does the window of each device stay inside its block, and fill it? */
static int window_is_block(const struct topt_op *op, int operand, int i,
                           const struct topt_config *c, const struct topt_mesh *mesh)
{
    int block = op->spec->operand[operand].window_of - 1, same = 1;
    for (int r = 0; r < mesh->devices && same; r++) {
        int64_t off, len, w_off, w_len;
        block_of(op, block, i, c, mesh, r, &off, &len);
        block_of(op, operand, i, c, mesh, r, &w_off, &w_len);
        same = len == w_len && (off == w_off || len == 0);
    }
    return same;
}

uint32_t topt_window_axes(const struct topt_op *op, int operand,
                          const struct topt_config *c, const struct topt_mesh *mesh)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    uint32_t axes = 0;
    for (int i = 0; i < spec->ndim; i++)
        if (windowed(op, operand, i) && !window_is_block(op, operand, i, c, mesh))
            axes |= topt_axes_over(mesh, c, 1u << spec->dim[i]);
    return axes;
}

struct topt_box topt_operand_box(const struct topt_op *op, int operand,
                                 const struct topt_config *c,
                                 const struct topt_mesh *mesh, int device)
{
    struct topt_box box = {{0}, {0}};
    for (int i = 0; i < op->spec->operand[operand].ndim; i++)
        block_of(op, operand, i, c, mesh, device, &box.off[i], &box.len[i]);
    return box;
}

/* Dimensions split by themselves, so the largest block has the largest part of each. */
int64_t topt_operand_largest(const struct topt_op *op, int operand,
                             const struct topt_config *c, const struct topt_mesh *mesh)
{
    int64_t elements = 1;
    for (int i = 0; i < op->spec->operand[operand].ndim; i++) {
        int64_t off, len, most = 0;
        for (int r = 0; r < (windowed(op, operand, i) ? mesh->devices : 1); r++) {
            block_of(op, operand, i, c, mesh, r, &off, &len);
            most = len > most ? len : most;
        }
        elements *= most * op->operand[operand].dim[i].unit;
    }
    return elements;
}

/* The next device that differs from the first along the given axes alone; the first
 * again after the last. */
static int next_along(const struct topt_mesh *mesh, const int8_t *axes, int n, int device)
{
    int stride = 1, a = mesh->naxes - 1;
    for (int k = n - 1; k >= 0; k--) {
        for (; a > axes[k]; a--)
            stride *= mesh->size[a];
        if (topt_mesh_coord(mesh, device, a) + 1 < mesh->size[a])
            return device + stride;
        device -= stride * (mesh->size[a] - 1);
    }
    return device;
}

/* Sum over all parts of what part 'of' of a dimension shares with their windows, and
 * the window itself, at most over parts.  Parts follow from the axes of that
 * dimension: others change nothing. */
static void overlaps(const struct topt_op *op, int operand, int i,
                     const struct topt_config *c, const struct topt_mesh *mesh,
                     int64_t *ret_shared, int64_t *ret_window)
{
    int block = op->spec->operand[operand].window_of - 1;
    *ret_shared = *ret_window = 0;
    int8_t axes[TOPT_MAX_AXES];
    int n = axes_of(c, mesh, op->spec->operand[operand].dim[i], axes), r = 0;
    do {
        int64_t off, len, shared = 0;
        int q = 0;
        block_of(op, block, i, c, mesh, r, &off, &len);
        do {
            int64_t w_off, w_len;
            block_of(op, operand, i, c, mesh, q, &w_off, &w_len);
            int64_t end = off + len < w_off + w_len ? off + len : w_off + w_len;
            int64_t first = off > w_off ? off : w_off;
            shared += end > first ? end - first : 0;
            *ret_window = w_len > *ret_window ? w_len : *ret_window;
        } while ((q = next_along(mesh, axes, n, q)));
        *ret_shared = shared > *ret_shared ? shared : *ret_shared;
    } while ((r = next_along(mesh, axes, n, r)));
}

int64_t topt_window_staging(const struct topt_op *op, int operand,
                            const struct topt_config *c, const struct topt_mesh *mesh)
{
    int64_t sent = 1, received = 1;
    for (int i = 0; i < op->spec->operand[operand].ndim; i++) {
        int64_t off, len, window, unit = op->operand[operand].dim[i].unit;
        block_of(op, operand, i, c, mesh, topt_mesh_costed_device(mesh), &off, &len);
        window = len;
        if (windowed(op, operand, i))
            overlaps(op, operand, i, c, mesh, &len, &window);
        sent *= len * unit;
        received *= window * unit;
    }
    return sent + received;
}

void topt_op_box(const struct topt_op *op, const struct topt_config *c,
                 const struct topt_mesh *mesh, int device,
                 int64_t ret_off[TOPT_MAX_OPDIMS], int64_t ret_len[TOPT_MAX_OPDIMS])
{
    for (int d = 0; d < op->spec->ndims; d++) {
        int8_t axes[TOPT_MAX_AXES];
        int n = axes_of(c, mesh, d, axes);
        topt_split_block(mesh, op->count[d], axes, n, device, &ret_off[d], &ret_len[d]);
    }
}

static struct topt_strategy *allocate(int nops, int ntensors)
{
    struct topt_strategy *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->nops = nops;
    s->ntensors = ntensors;
    s->config = malloc((size_t)nops * sizeof *s->config);
    s->hub = malloc((size_t)ntensors * sizeof *s->hub);
    s->keep = calloc((size_t)nops * TOPT_MAX_INPUTS, sizeof *s->keep);
    if (!s->config || !s->hub || !s->keep) {
        topt_strategy_destroy(s);
        return NULL;
    }
    return s;
}

struct topt_strategy *topt_strategy_create(const struct topt_model *m)
{
    struct topt_strategy *s = allocate(m->nops, m->ntensors);
    if (!s)
        return NULL;
    for (int i = 0; i < m->nops; i++)
        s->config[i] = topt_config_none();
    for (int t = 0; t < m->ntensors; t++)
        s->hub[t] = (struct topt_hub){topt_config_none(), TOPT_HUB_KEEP};
    return s;
}

struct topt_strategy *topt_strategy_copy(const struct topt_strategy *s)
{
    struct topt_strategy *c = allocate(s->nops, s->ntensors);
    if (!c)
        return NULL;
    memcpy(c->config, s->config, (size_t)s->nops * sizeof *s->config);
    memcpy(c->hub, s->hub, (size_t)s->ntensors * sizeof *s->hub);
    memcpy(c->keep, s->keep, (size_t)s->nops * TOPT_MAX_INPUTS * sizeof *s->keep);
    return c;
}

void topt_strategy_destroy(struct topt_strategy *s)
{
    if (!s)
        return;
    free(s->config);
    free(s->hub);
    free(s->keep);
    free(s);
}

/* ---- names ------------------------------------------------------------------------- */

TOPT_NAMES(topt_accounting_name, enum topt_accounting, "run", "paper", "paper-reuse")

int topt_accounting_is_papers(enum topt_accounting a)
{
    return a == TOPT_ACCOUNTING_PAPER || a == TOPT_ACCOUNTING_PAPER_REUSE;
}

TOPT_NAMES(topt_overlap_name, enum topt_overlap, "none", "ddp", "fsdp")

int topt_overlap_has(enum topt_overlap o, enum topt_async what)
{
    return (o == TOPT_OVERLAP_DDP && what == TOPT_ASYNC_GRADIENT) ||
           (o == TOPT_OVERLAP_FSDP && what != TOPT_ASYNC_NOTHING);
}

TOPT_NAMES(topt_gather_name, enum topt_gather, "operator", "unit", "pool")

double topt_dispatch_share(const struct topt_settings *s, const struct topt_hw *hw)
{
    return s->dispatch == TOPT_DISPATCH_DEEPEP ? 20.0 / 132
                                               : topt_hw_collective_share(hw);
}

TOPT_NAMES(topt_dispatch_name, enum topt_dispatch, "alltoall", "deepep")
TOPT_NAMES(topt_merge_name, enum topt_merge, "none", "fused", "eager")

TOPT_NAMES(topt_class_name, enum topt_class, "parameters", "gradients", "optimizer",
           "data", "buffers", "activations", "recomputed", "transient", "communication")

struct topt_settings topt_settings_default(void)
{
    return (struct topt_settings){.dtype = TOPT_F32,
                                  .optimizer = TOPT_ADAM,
                                  .granule_bytes = 64,
                                  .micro_batches = 1,
                                  .stages = 1,
                                  .stage_chunks = 1,
                                  .loss = TOPT_LOSS_FUSED};
}

int topt_is_table(const struct topt_model *m, const struct topt_settings *s, int op)
{
    return s->by_unit && !m->op[op].ninputs && m->op[op].operand[0].role == TOPT_PARAM;
}

int topt_settings_scheduled(const struct topt_settings *s)
{
    return s->by_schedule && s->by_unit && s->accounting == TOPT_ACCOUNTING_RUN;
}

int topt_gradients_come(const struct topt_settings *s)
{
    return s->gather == TOPT_GATHER_UNIT && s->micro_batches == 1;
}

int topt_settings_fit(const struct topt_model *m, const struct topt_settings *s,
                      struct topt_error *err)
{
    if (s->granule_bytes < 1 || s->micro_batches < 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a granule and a number of micro-batches are at least 1");
    if (topt_accounting_is_papers(s->accounting) && s->dtype != TOPT_F32)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "the papers' accounting counts in f32, not in %s",
                         topt_dtype_name(s->dtype));
    for (int i = 0; i < m->nops && s->micro_batches > 1; i++)
        if (m->op[i].spec->coupled)
            return topt_fail(err, TOPT_ERR_INVAL,
                             "'%.60s' (%s) mixes the samples of a batch, so that batch "
                             "can't be run in %lld micro-batches; use 1",
                             m->op[i].name, m->op[i].spec->name,
                             (long long)s->micro_batches);
    return 0;
}
