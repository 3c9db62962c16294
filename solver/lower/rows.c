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
#include "topt_minmax.h"

#include <math.h>

enum { NUMBER_BYTES = 4, CHUNK_BYTES = 16 << 20, HASH_BYTES = 8, HEAD_BYTES = 64 };

/* ---- how many ---------------------------------------------------------------------- */

/* Devices that differ along 'axes'. */
static int64_t parts_along(const struct topt_mesh *mesh, uint32_t axes)
{
    struct topt_group g = topt_mesh_group(mesh, axes);
    return (int64_t)g.nodes * g.per_node;
}

/* Numbers of a row of a block. */
static int64_t cols_of(const struct topt_mesh *mesh, const struct topt_shape *s,
                       const struct topt_layout *l)
{
    struct topt_box box = topt_layout_box(mesh, s, l, topt_mesh_costed_device(mesh));
    return box.len[s->ndim - 1] * s->dim[s->ndim - 1].unit;
}

/* An operator's sparse table. */
struct table {
    const struct topt_op_writer *w;
    const struct topt_mesh *mesh;
    int x, ids; /* operands */
    struct topt_shape shape;
    struct topt_layout layout;
    int64_t cols, row_bytes; /* of a row's part that a device has */
    int64_t parts;           /* of the rows, by the configuration itself */
    uint32_t replicas;
};

static struct table table_of(const struct topt_op_writer *w)
{
    const struct topt_mesh *mesh = w->f->mesh;
    struct table t = {
        .w = w, .mesh = mesh, .x = topt_table_sparse(w->o), .ids = topt_table_ids(w->o)};
    t.shape = topt_operand_shape(w->o, t.x);
    t.layout = topt_value_layout(w->o, t.x, w->c, mesh);
    t.cols = cols_of(mesh, &t.shape, &t.layout);
    t.row_bytes = t.cols * topt_element_bytes(w->f->settings, TOPT_ELEM_REAL);
    t.parts = topt_layout_parts(mesh, &t.layout, t.shape.ndim - 2);
    t.replicas = topt_replica_axes(w->o, t.x, w->c, mesh);
    return t;
}

/* Rows that 'each' lookups of each table name, on the device that has most. */
static double named_on_one(const struct table *t, const struct topt_layout *l,
                           double each)
{
    double most = 0, evenness = topt_table_evenness(t->w->o);
    for (int r = 0; r < t->mesh->devices; r++) {
        if (!topt_layout_leads(t->mesh, l, t->shape.rows ? 0 : -1, r))
            continue;
        struct topt_box box = topt_layout_box(t->mesh, &t->shape, l, r);
        int64_t n, first = topt_box_tables(&t->shape, &box, &n);
        double named = 0;
        for (int64_t k = first; k < first + n; k++)
            named += topt_table_named(t->w->o, k, each, evenness);
        most = named > most ? named : most;
    }
    return most;
}

/* The mean of what 'lookups', so many of 'each' table, name in one of 'parts' parts of the rows,
 * with room for chance: no more than there are. */
static int64_t room(const struct table *t, const struct topt_layout *l, double each,
                    double lookups, int64_t parts)
{
    double n = named_on_one(t, l, each) / (double)parts;
    double rows =
        t->cols ? (double)(topt_layout_elements(t->mesh, &t->shape, l) / t->cols) : 0;
    n = ceil(n + 4 * sqrt(n) + 16);
    return (int64_t)fmin(n, fmin(rows, lookups));
}

/* Rows that a device's own lookups name. */
static int64_t rows_here(const struct table *t)
{
    double n = (double)topt_operand_largest(t->w->o, t->ids, t->w->c, t->mesh);
    struct topt_box box =
        topt_layout_box(t->mesh, &t->shape, &t->layout, topt_mesh_costed_device(t->mesh));
    int64_t tables;
    topt_box_tables(&t->shape, &box, &tables);
    return room(t, &t->layout, tables ? n / (double)tables : 0, n, t->parts);
}

void topt_rows_shape(const struct topt_op_writer *w, struct topt_buffer *g)
{
    struct table t = table_of(w);
    int64_t parts = t.parts;
    if (w->c->zero == TOPT_ZERO_OWNER)
        parts *= parts_along(t.mesh, t.replicas);
    double tables = (double)topt_tables_of(w->o);
    double each =
        topt_table_lookups(w->o) * (double)w->f->settings->micro_batches / tables;
    g->rows = topt_max(room(&t, &g->layout, each, each * tables, parts), 1);
    g->bytes = HEAD_BYTES + g->rows * (t.row_bytes + NUMBER_BYTES + HASH_BYTES);
}

/* ---- what is written --------------------------------------------------------------- */

int topt_rows_have_owners(const struct topt_op_writer *w, const struct topt_step *s)
{
    int table = topt_table_sparse(w->o);
    return w->c->zero == TOPT_ZERO_OWNER && table >= 0 && s->reads >> table & 1;
}

/* From 'a' to 'b'.  'sets' of a chunk are there at once: sent, and received. */
static int exchange(const struct table *t, enum topt_instr_kind kind, int a, int b,
                    int64_t sets)
{
    struct topt_instr i = topt_fragment_instr(kind, t->w->op, kind == TOPT_I_ROWS_ADD);
    int64_t n = parts_along(t->mesh, t->replicas);
    int64_t each = t->row_bytes + NUMBER_BYTES;
    i.a = a;
    i.b = b;
    i.value[t->ids] = t->w->b->value[t->ids];
    i.axes = t->replicas;
    i.rows = rows_here(t);
    i.chunk = topt_min(i.rows, CHUNK_BYTES / each * 2 / sets);
    i.chunk = (i.chunk / n + 1) * n; /* the same number for each owner */
    /* Packing space: of what is sent and of what comes. */
    return topt_fragment_emit_staged(t->w->f, i,
                                     i.axes ? HEAD_BYTES + sets * i.chunk * each : 0);
}

int topt_rows_fetch(const struct topt_op_writer *w)
{
    struct table t = table_of(w);
    return exchange(&t, TOPT_I_ROWS_FETCH, w->b->param[t.x], w->b->value[w->o->output],
                    2);
}

int topt_rows_add(const struct topt_op_writer *w)
{
    struct table t = table_of(w);
    int64_t n = parts_along(t.mesh, t.replicas);
    return exchange(&t, TOPT_I_ROWS_ADD, w->b->grad[w->o->output], w->b->param_grad[t.x],
                    w->c->zero == TOPT_ZERO_OWNER ? 2 : 1 + n);
}

/* ---- prices ------------------------------------------------------------------------ */

/* The price of an instruction that exchanges rows has the memory in it that its packing and adding
 * up touch: systems do both in one kernel beside the collective. */

static int64_t bytes_named(const struct topt_seen *t, int buffer)
{
    return t->named[buffer].bytes;
}

/* Bytes of a row's values, of a buffer with rows of a table or of its gradient. */
static int64_t each_of(const struct topt_seen *t, int buffer)
{
    const struct topt_buffer *b = &t->named[buffer];
    return cols_of(t->k->mesh, &b->shape, &b->layout) *
           topt_element_bytes(t->k->settings, TOPT_ELEM_REAL);
}

static void add_time(struct topt_time *sum, struct topt_time t)
{
    sum->ns += t.ns;
    sum->basis = t.basis > sum->basis ? t.basis : sum->basis;
}

static void add_memory(const struct topt_seen *t, struct topt_time *sum, int64_t bytes)
{
    add_time(sum, topt_hw_compute(t->k->hw, t->k->settings->dtype, TOPT_WORK_ELEMENTWISE,
                                  0, bytes, t->k->mesh->devices));
}

/* 'rounds' of a collective that move 'bytes' together. */
static void add_rounds(const struct topt_seen *t, struct topt_time *sum,
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

/* Devices agree on the requests for rows and on the rounds that these take; then numbers of
 * rows go, and their values, 'bytes' of them. */
static void add_exchange(const struct topt_seen *t, struct topt_time *sum,
                         enum topt_collective c, const struct topt_instr *i, int64_t rows,
                         int64_t bytes)
{
    int64_t rounds = (i->rows + i->chunk - 1) / i->chunk;
    int64_t n = parts_along(t->k->mesh, i->axes);
    add_time(sum, topt_router_time(t->k->router, TOPT_ALL_TO_ALL, i->axes, 8 * n));
    add_time(sum, topt_router_time(t->k->router, TOPT_ALL_REDUCE, i->axes, 8));
    add_rounds(t, sum, c, i->axes, rows * NUMBER_BYTES, rounds);
    add_rounds(t, sum, c, i->axes, bytes, rounds);
}

/* FETCH: owners read rows and send them; who asked writes them where its lookups are.  ADD: the
 * output's gradient is read once a row that it is of, and rows that come are added to those that
 * are there. */
struct topt_time topt_rows_price(const struct topt_seen *t, const struct topt_instr *i)
{
    struct topt_time sum = {0, TOPT_BASIS_MEASURED};
    int ids = topt_table_ids(&t->k->model->op[i->op]);
    int64_t sort = SORT_BYTES * (bytes_named(t, i->value[ids]) / 4);
    if (i->kind == TOPT_I_ROWS_FETCH) {
        int64_t bytes = i->rows * each_of(t, i->a);
        add_exchange(t, &sum, TOPT_ALL_TO_ALL, i, i->rows, bytes);
        add_memory(t, &sum, 3 * bytes + bytes_named(t, i->b) + sort);
        return sum;
    }
    int64_t n = parts_along(t->k->mesh, i->axes), bytes = i->rows * each_of(t, i->b);
    int owner = i->axes && t->named[i->b].layout.at[__builtin_ctz(i->axes)] >= 0;
    int64_t come = i->axes && !owner ? n * bytes : bytes;
    if (owner)
        add_exchange(t, &sum, TOPT_ALL_TO_ALL, i, i->rows, bytes);
    else if (i->axes)
        add_exchange(t, &sum, TOPT_ALL_GATHER, i, n * i->rows, come);
    add_memory(t, &sum,
               topt_max(bytes_named(t, i->a), bytes) + (i->axes ? bytes : 0) + 3 * come +
                   sort);
    return sum;
}

/* The bytes of a buffer of the parameter's rows that are read and written. */
static int64_t updated(const struct topt_seen *t, int buffer, int64_t rows, int64_t all)
{
    int64_t bytes = buffer >= 0 ? bytes_named(t, buffer) : 0;
    return all > 0 && rows < all ? (int64_t)((double)bytes * (double)rows / (double)all)
                                 : bytes;
}

struct topt_time topt_rows_update_price(const struct topt_seen *t,
                                        const struct topt_instr *i)
{
    const struct topt_buffer *param = &t->named[i->a], *grad = &t->named[i->b];
    int64_t cols = cols_of(t->k->mesh, &param->shape, &param->layout);
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

int64_t topt_rows_touched(const struct topt_seen *t, const struct topt_op *o, int operand,
                          int64_t bytes)
{
    if (!bytes || topt_table_sparse(o) != operand)
        return bytes;
    const struct topt_operand_spec *w = &o->spec->operand[operand];
    const struct topt_operand_spec *ids = &o->spec->operand[topt_table_ids(o)];
    int rows = w->dim[w->ndim - 2], cols = w->dim[w->ndim - 1];
    /* of this device */
    double lookups = (double)t->len[rows] / (double)o->count[rows];
    for (int i = 0; i < ids->ndim; i++)
        lookups *= (double)t->len[ids->dim[i]];
    double touched = lookups * (double)t->len[cols] *
                     topt_element_bytes(t->k->settings, TOPT_ELEM_REAL);
    return touched < (double)bytes ? (int64_t)touched : bytes;
}
