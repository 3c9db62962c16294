/* rows.c - tables of which a step reads few rows.
 *
 * A sparse table's gradient has values in those rows alone that the step's samples name.
 * Kept as numbers of rows and their values it takes memory, is exchanged and is applied by
 * rows, not by the table.  Three things can be done with a table over the devices that
 * have parts of the batch, its replicas, and the search chooses among them by their cost:
 *
 *     dense    the table whole on each, the gradient too: all-reduce (or ZeRO, param.c)
 *     sparse   the table whole on each; each gathers all others' rows and their values
 *     owner    rows in blocks, one a replica.  Forward: each asks the owners for the rows that
 *              its samples name, and gets their values; backward: it sends them gradients
 *
 * "sparse" is what Horovod does with TensorFlow's IndexedSlices; "owner" is a parameter
 * server whose servers are the workers (Kim et al., Parallax, 2019), or a table sharded by
 * rows (Mudigere et al. 2022).  Splits of the table's own dimensions go beside: by columns
 * (d), or by rows with partial sums (v); there "sparse" without replicas is a gradient of
 * rows that nobody has to send.
 *
 * How many rows come together is a mean (topt_table_rows); buffers have room for it and
 * four standard deviations of a Poisson distribution.  An exchange sends at most a chunk of
 * rows at once, so that its packing space does not depend on how unevenly they are asked
 * for; where more come together than there is room for the runtime takes more memory. */
#include "rows.h"

#include "param.h"

#include <math.h>

enum { CHUNK_BYTES = 16 << 20, ROW_NUMBER_BYTES = 4, HASH_BYTES = 8, HEAD_BYTES = 64 };

/* ---- how many ---------------------------------------------------------------------- */

static int64_t parts_along(const struct topt_mesh *mesh, uint32_t axes)
{
    int64_t n = 1;
    for (; axes; axes &= axes - 1)
        n *= mesh->size[__builtin_ctz(axes)];
    return n;
}

/* Parts that the table's rows are split into by the configuration itself. */
static int64_t row_parts(const struct topt_fragments *f, const struct topt_op *o,
                         int table, const struct topt_config *c)
{
    struct topt_layout l = topt_value_layout(o, table, c, f->mesh);
    int64_t n = 1;
    for (int a = 0; a < f->mesh->naxes; a++)
        n *= l.at[a] == 0 ? f->mesh->size[a] : 1;
    return n;
}

static int64_t block_rows(const struct topt_fragments *f, const struct topt_op *o,
                          int table, const struct topt_layout *l)
{
    struct topt_shape shape = topt_operand_shape(o, table);
    struct topt_box box = topt_layout_box(f->mesh, &shape, l, 0);
    return box.len[0];
}

/* The mean of what 'lookups' of a whole table name in one of 'parts' parts of its rows,
 * with room for chance: no more than there are. */
static int64_t room(const struct topt_op *o, double lookups, int64_t parts, int64_t most)
{
    double n = topt_table_rows(o, lookups) / (double)parts;
    n = ceil(n + 4 * sqrt(n) + 16);
    double limit = (double)most < lookups ? (double)most : lookups;
    return (int64_t)(n < limit ? n : limit);
}

static int64_t local_lookups(const struct topt_fragments *f, const struct topt_op *o,
                             const struct topt_config *c)
{
    return topt_operand_largest(o, topt_table_ids(o), c, f->mesh);
}

/* Rows that a device's own lookups name. */
static int64_t rows_here(const struct topt_fragments *f, const struct topt_op *o,
                         int table, const struct topt_config *c)
{
    struct topt_layout l = topt_value_layout(o, table, c, f->mesh);
    return room(o, (double)local_lookups(f, o, c), row_parts(f, o, table, c),
                block_rows(f, o, table, &l));
}

static int64_t row_bytes(const struct topt_fragments *f, const struct topt_op *o,
                         int table, const struct topt_config *c)
{
    struct topt_layout l = topt_value_layout(o, table, c, f->mesh);
    struct topt_shape shape = topt_operand_shape(o, table);
    int64_t rows = block_rows(f, o, table, &l);
    int64_t n = topt_layout_elements(f->mesh, &shape, &l);
    return (rows ? n / rows : 0) * topt_element_bytes(f->settings, TOPT_ELEM_REAL);
}

void topt_rows_shape(const struct topt_fragments *f, int op, const struct topt_config *c,
                     struct topt_buffer *g)
{
    const struct topt_op *o = &f->model->op[op];
    int table = g->operand;
    uint32_t replicas = topt_replica_axes(o, table, c, f->mesh);
    int64_t parts = row_parts(f, o, table, c);
    if (c->zero == TOPT_ZERO_OWNER)
        parts *= parts_along(f->mesh, replicas);
    g->rows = room(o, topt_table_lookups(o) * (double)f->settings->micro_batches, parts,
                   block_rows(f, o, table, &g->layout));
    g->rows = g->rows > 0 ? g->rows : 1;
    g->bytes = HEAD_BYTES +
               g->rows * (row_bytes(f, o, table, c) + ROW_NUMBER_BYTES + HASH_BYTES);
}

/* ---- what is written --------------------------------------------------------------- */

int topt_rows_have_owners(const struct topt_fragments *f, int op,
                          const struct topt_config *c, const struct topt_step *s)
{
    const struct topt_op *o = &f->model->op[op];
    int table = topt_table_sparse(o);
    (void)f;
    return c->zero == TOPT_ZERO_OWNER && table >= 0 && s->reads >> table & 1;
}

/* Packing space: of what is sent and of what comes. */
static int alloc_staging(const struct topt_fragments *f, int op, int64_t rows,
                         int64_t each)
{
    return topt_fragment_block(
        f, (struct topt_buffer){.cls = TOPT_CLASS_STAGING,
                                .elem = TOPT_ELEM_BYTE,
                                .layout = topt_layout_replicated(),
                                .bytes = HEAD_BYTES + rows * (each + ROW_NUMBER_BYTES),
                                .op = op,
                                .operand = -1});
}

/* 'sets' of a chunk are there at once: sent, and received. */
static int exchange(const struct topt_fragments *f, int op, const struct topt_config *c,
                    struct topt_instr i, int64_t sets)
{
    const struct topt_op *o = &f->model->op[op];
    int table = topt_table_sparse(o), ids = topt_table_ids(o);
    int64_t each = row_bytes(f, o, table, c), n = parts_along(f->mesh, i.axes);
    i.rows = rows_here(f, o, table, c);
    int64_t most = CHUNK_BYTES / (each + ROW_NUMBER_BYTES) * 2 / sets;
    i.chunk = i.rows < most ? i.rows : most;
    i.chunk = (i.chunk / n + 1) * n; /* the same number for each owner */
    for (int x = 0; x < TOPT_MAX_OPERANDS; x++)
        i.value[x] = x == ids ? i.value[x] : -1;
    if (i.axes)
        i.c = alloc_staging(f, op, sets * i.chunk, each);
    if (i.axes && i.c < 0)
        return -1;
    int rc = topt_fragment_emit(f, i);
    if (i.c >= 0)
        f->sink->release(f->sink, i.c);
    return rc;
}

int topt_rows_fetch(const struct topt_fragments *f, int op, const struct topt_config *c,
                    const struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    int table = topt_table_sparse(o), ids = topt_table_ids(o);
    struct topt_instr i = topt_fragment_instr(TOPT_I_ROWS_FETCH, op, 0);
    i.a = b->param[table];
    i.b = b->value[o->output];
    i.value[ids] = b->value[ids];
    i.axes = topt_replica_axes(o, table, c, f->mesh);
    return exchange(f, op, c, i, 2);
}

int topt_rows_add(const struct topt_fragments *f, int op, const struct topt_config *c,
                  const struct topt_op_buffers *b)
{
    const struct topt_op *o = &f->model->op[op];
    int table = topt_table_sparse(o), ids = topt_table_ids(o);
    struct topt_instr i = topt_fragment_instr(TOPT_I_ROWS_ADD, op, 1);
    i.a = b->grad[o->output];
    i.b = b->param_grad[table];
    i.value[ids] = b->value[ids];
    i.axes = topt_replica_axes(o, table, c, f->mesh);
    int64_t n = parts_along(f->mesh, i.axes);
    return exchange(f, op, c, i, c->zero == TOPT_ZERO_OWNER ? 2 : 1 + n);
}

/* ---- what it takes ----------------------------------------------------------------- */

static int64_t bytes_named(const struct topt_tally *t, int buffer)
{
    return t->named[buffer].bytes;
}

/* Bytes of a row's values, of a buffer with rows of a table or of its gradient. */
static int64_t each_of(const struct topt_tally *t, int buffer)
{
    const struct topt_buffer *b = &t->named[buffer];
    struct topt_box box = topt_layout_box(t->k->mesh, &b->shape, &b->layout, 0);
    return box.len[1] * b->shape.dim[1].unit *
           topt_element_bytes(t->k->settings, TOPT_ELEM_REAL);
}

static void add_time(struct topt_time *sum, struct topt_time t)
{
    sum->ns += t.ns;
    sum->basis = t.basis > sum->basis ? t.basis : sum->basis;
}

static void add_memory(const struct topt_tally *t, struct topt_time *sum, int64_t bytes)
{
    add_time(sum, topt_hw_compute(t->k->hw, t->k->settings->dtype, TOPT_WORK_ELEMENTWISE,
                                  0, bytes, t->k->mesh->devices));
}

/* 'rounds' of a collective that move 'bytes' together. */
static void add_rounds(const struct topt_tally *t, struct topt_time *sum,
                       enum topt_collective c, uint32_t axes, int64_t bytes,
                       int64_t rounds)
{
    struct topt_time one =
        topt_router_time(t->k->router, c, axes, (bytes + rounds - 1) / rounds);
    one.ns *= rounds;
    add_time(sum, one);
}

/* Numbers of rows are sorted in four passes over eight bytes a lookup, read and written. */
enum { SORT_BYTES = 4 * 2 * 8 };

static int64_t lookups_of(const struct topt_tally *t, const struct topt_instr *i)
{
    const struct topt_op *o = &t->k->model->op[i->op];
    return bytes_named(t, i->value[topt_table_ids(o)]) / 4;
}

/* Who asks whom for how many, and how many rounds that takes. */
static void add_agreement(const struct topt_tally *t, struct topt_time *sum,
                          uint32_t axes)
{
    int64_t n = parts_along(t->k->mesh, axes);
    add_time(sum, topt_router_time(t->k->router, TOPT_ALL_TO_ALL, axes, 8 * n));
    add_time(sum, topt_router_time(t->k->router, TOPT_ALL_REDUCE, axes, 8));
}

/* Owners read rows and send them; who asked writes them where its lookups are. */
static struct topt_time price_fetch(const struct topt_tally *t,
                                    const struct topt_instr *i)
{
    struct topt_time sum = {0, TOPT_BASIS_MEASURED};
    int64_t rounds = (i->rows + i->chunk - 1) / i->chunk;
    int64_t bytes = i->rows * each_of(t, i->a);
    add_agreement(t, &sum, i->axes);
    add_rounds(t, &sum, TOPT_ALL_TO_ALL, i->axes, i->rows * ROW_NUMBER_BYTES, rounds);
    add_rounds(t, &sum, TOPT_ALL_TO_ALL, i->axes, bytes, rounds);
    add_memory(t, &sum, 3 * bytes + bytes_named(t, i->b) + SORT_BYTES * lookups_of(t, i));
    return sum;
}

/* The output's gradient is read once a row that it is of, and rows that come are added to
 * those that are there. */
static struct topt_time price_add(const struct topt_tally *t, const struct topt_instr *i)
{
    struct topt_time sum = {0, TOPT_BASIS_MEASURED};
    int64_t each = each_of(t, i->b), n = parts_along(t->k->mesh, i->axes);
    int64_t bytes = i->rows * each, gradient = bytes_named(t, i->a);
    int64_t numbers = i->rows * ROW_NUMBER_BYTES, come = bytes;
    int64_t rounds = (i->rows + i->chunk - 1) / i->chunk;
    int owner = i->axes && t->named[i->b].layout.at[__builtin_ctz(i->axes)] == 0;
    if (owner) {
        add_agreement(t, &sum, i->axes);
        add_rounds(t, &sum, TOPT_ALL_TO_ALL, i->axes, numbers, rounds);
        add_rounds(t, &sum, TOPT_ALL_TO_ALL, i->axes, bytes, rounds);
    } else if (i->axes) {
        come = n * bytes;
        add_agreement(t, &sum, i->axes);
        add_rounds(t, &sum, TOPT_ALL_GATHER, i->axes, n * numbers, rounds);
        add_rounds(t, &sum, TOPT_ALL_GATHER, i->axes, come, rounds);
    }
    add_memory(t, &sum,
               (gradient > bytes ? gradient : bytes) + (i->axes ? bytes : 0) + 3 * come +
                   SORT_BYTES * lookups_of(t, i));
    return sum;
}

struct topt_time topt_rows_price(const struct topt_tally *t, const struct topt_instr *i)
{
    return i->kind == TOPT_I_ROWS_FETCH ? price_fetch(t, i) : price_add(t, i);
}

/* Of a buffer of the parameter's rows so much is read and written. */
static int64_t updated(const struct topt_tally *t, int buffer, int64_t rows, int64_t all)
{
    int64_t bytes = buffer >= 0 ? bytes_named(t, buffer) : 0;
    return all > 0 && rows < all ? (int64_t)((double)bytes * (double)rows / (double)all)
                                 : bytes;
}

struct topt_time topt_rows_update_price(const struct topt_tally *t,
                                        const struct topt_instr *i)
{
    const struct topt_buffer *param = &t->named[i->a], *grad = &t->named[i->b];
    struct topt_box box = topt_layout_box(t->k->mesh, &param->shape, &param->layout, 0);
    int last = param->shape.ndim - 1;
    int64_t cols = box.len[last] * param->shape.dim[last].unit;
    int64_t numbers = param->bytes / topt_element_bytes(t->k->settings, TOPT_ELEM_REAL);
    int64_t all = cols ? numbers / cols : 0, rows = grad->rows ? grad->rows : all;
    struct topt_time sum = {0, TOPT_BASIS_MEASURED};
    add_memory(t, &sum,
               2 * (updated(t, i->a, rows, all) + updated(t, i->c, rows, all) +
                    updated(t, i->d, rows, all) + updated(t, i->e, rows, all)) +
                   grad->bytes);
    if (i->axes) {
        int each = topt_element_bytes(t->k->settings, TOPT_ELEM_STATE);
        add_memory(t, &sum, grad->bytes);
        add_time(&sum,
                 topt_router_time(t->k->router, TOPT_ALL_REDUCE, i->axes, rows * each));
    }
    return sum;
}

int64_t topt_rows_touched(const struct topt_tally *t, const struct topt_op *o,
                          int operand, int64_t bytes)
{
    if (!bytes || topt_table_sparse(o) != operand)
        return bytes;
    const struct topt_operand_spec *w = &o->spec->operand[operand];
    const struct topt_operand_spec *ids = &o->spec->operand[topt_table_ids(o)];
    double lookups = 1, rows = (double)t->len[w->dim[0]];
    for (int i = 0; i < ids->ndim; i++)
        lookups *= (double)t->len[ids->dim[i]];
    lookups *= rows / (double)o->count[w->dim[0]]; /* those of this part of the rows */
    return lookups < rows ? (int64_t)((double)bytes / rows * lookups) : bytes;
}
