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

#include <math.h>

enum { CHUNK_BYTES = 16 << 20, HASH_BYTES = 8, HEAD_BYTES = 64 };

/* ---- how many ---------------------------------------------------------------------- */

int64_t topt_rows_parts(const struct topt_mesh *mesh, uint32_t axes)
{
    int64_t n = 1;
    for (; axes; axes &= axes - 1)
        n *= mesh->size[__builtin_ctz(axes)];
    return n;
}

/* Parts that the tables' rows are split into by the configuration itself. */
static int64_t row_parts(const struct topt_fragments *f, const struct topt_op *o,
                         int table, const struct topt_config *c)
{
    struct topt_layout l = topt_value_layout(o, table, c, f->mesh);
    int rows = topt_operand_rank(o, table) - 2;
    int64_t n = 1;
    for (int a = 0; a < f->mesh->naxes; a++)
        n *= l.at[a] == rows ? f->mesh->size[a] : 1;
    return n;
}

/* Numbers of a row, and the largest block's rows. */
static int64_t block_cols(const struct topt_fragments *f, const struct topt_op *o,
                          int table, const struct topt_layout *l)
{
    struct topt_shape s = topt_operand_shape(o, table);
    struct topt_box box =
        topt_layout_box(f->mesh, &s, l, topt_mesh_costed_device(f->mesh));
    return box.len[s.ndim - 1] * s.dim[s.ndim - 1].unit;
}

static int64_t block_rows(const struct topt_fragments *f, const struct topt_op *o,
                          int table, const struct topt_layout *l)
{
    struct topt_shape s = topt_operand_shape(o, table);
    int64_t cols = block_cols(f, o, table, l);
    return cols ? topt_layout_elements(f->mesh, &s, l) / cols : 0;
}

/* Rows of its tables that as many lookups of each name, on the device that has most. */
static double named_on_one(const struct topt_fragments *f, const struct topt_op *o,
                           int table, const struct topt_layout *l, double lookups)
{
    struct topt_shape s = topt_operand_shape(o, table);
    double most = 0, evenness = topt_table_evenness(o);
    for (int r = 0; r < f->mesh->devices; r++) {
        if (!topt_layout_leads(f->mesh, l, s.rows ? 0 : -1, r))
            continue;
        struct topt_box box = topt_layout_box(f->mesh, &s, l, r);
        int64_t n, first = topt_box_tables(&s, &box, &n);
        double named = 0;
        for (int64_t k = first; k < first + n; k++)
            named += topt_table_named(o, k, lookups, evenness);
        most = named > most ? named : most;
    }
    return most;
}

/* The mean of what 'lookups' name in one of 'parts' parts of the rows, with room for chance: no
 * more than there are. */
static int64_t room(double named, double lookups, int64_t parts, int64_t most)
{
    double n = named / (double)parts;
    n = ceil(n + 4 * sqrt(n) + 16);
    double limit = (double)most < lookups ? (double)most : lookups;
    return (int64_t)(n < limit ? n : limit);
}

/* Lookups of a device, and of them those of one table. */
static double local_lookups(const struct topt_fragments *f, const struct topt_op *o,
                            int table, const struct topt_config *c, double *ret_each)
{
    double n = (double)topt_operand_largest(o, topt_table_ids(o), c, f->mesh);
    struct topt_shape s = topt_operand_shape(o, table);
    struct topt_layout l = topt_value_layout(o, table, c, f->mesh);
    struct topt_box box =
        topt_layout_box(f->mesh, &s, &l, topt_mesh_costed_device(f->mesh));
    int64_t tables;
    topt_box_tables(&s, &box, &tables);
    *ret_each = tables ? n / (double)tables : 0;
    return n;
}

/* Rows that a device's own lookups name. */
static int64_t rows_here(const struct topt_fragments *f, const struct topt_op *o,
                         int table, const struct topt_config *c)
{
    struct topt_layout l = topt_value_layout(o, table, c, f->mesh);
    double each, lookups = local_lookups(f, o, table, c, &each);
    return room(named_on_one(f, o, table, &l, each), lookups, row_parts(f, o, table, c),
                block_rows(f, o, table, &l));
}

static int64_t row_bytes(const struct topt_fragments *f, const struct topt_op *o,
                         int table, const struct topt_config *c)
{
    struct topt_layout l = topt_value_layout(o, table, c, f->mesh);
    return block_cols(f, o, table, &l) * topt_element_bytes(f->settings, TOPT_ELEM_REAL);
}

void topt_rows_shape(const struct topt_fragments *f, int op, const struct topt_config *c,
                     struct topt_buffer *g)
{
    const struct topt_op *o = &f->model->op[op];
    int table = g->operand;
    uint32_t replicas = topt_replica_axes(o, table, c, f->mesh);
    int64_t parts = row_parts(f, o, table, c);
    if (c->zero == TOPT_ZERO_OWNER)
        parts *= topt_rows_parts(f->mesh, replicas);
    double each = topt_table_lookups(o) * (double)f->settings->micro_batches /
                  (double)topt_tables_of(o);
    g->rows = room(named_on_one(f, o, table, &g->layout, each),
                   each * (double)topt_tables_of(o), parts,
                   block_rows(f, o, table, &g->layout));
    g->rows = g->rows > 0 ? g->rows : 1;
    g->bytes = HEAD_BYTES +
               g->rows * (row_bytes(f, o, table, c) + TOPT_ROW_NUMBER_BYTES + HASH_BYTES);
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
        f,
        (struct topt_buffer){.cls = TOPT_CLASS_STAGING,
                             .elem = TOPT_ELEM_BYTE,
                             .layout = topt_layout_replicated(),
                             .bytes = HEAD_BYTES + rows * (each + TOPT_ROW_NUMBER_BYTES),
                             .op = op,
                             .operand = -1});
}

/* 'sets' of a chunk are there at once: sent, and received. */
static int exchange(const struct topt_fragments *f, int op, const struct topt_config *c,
                    struct topt_instr i, int64_t sets)
{
    const struct topt_op *o = &f->model->op[op];
    int table = topt_table_sparse(o), ids = topt_table_ids(o);
    int64_t each = row_bytes(f, o, table, c), n = topt_rows_parts(f->mesh, i.axes);
    i.rows = rows_here(f, o, table, c);
    int64_t most = CHUNK_BYTES / (each + TOPT_ROW_NUMBER_BYTES) * 2 / sets;
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
    int64_t n = topt_rows_parts(f->mesh, i.axes);
    return exchange(f, op, c, i, c->zero == TOPT_ZERO_OWNER ? 2 : 1 + n);
}
