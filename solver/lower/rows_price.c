/* rows_price.c - what exchanging rows of sparse tables takes, and updating them.
 *
 * The price of an instruction that exchanges rows has the memory in it that its packing and adding
 * up touch: systems do both in one kernel beside the collective. */
#include "rows.h"
#include "topt_minmax.h"

static int64_t bytes_named(const struct topt_seen *t, int buffer)
{
    return t->named[buffer].bytes;
}

/* Bytes of a row's values, of a buffer with rows of a table or of its gradient. */
static int64_t each_of(const struct topt_seen *t, int buffer)
{
    const struct topt_buffer *b = &t->named[buffer];
    return topt_rows_cols(t->k->mesh, &b->shape, &b->layout) *
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

static int64_t lookups_of(const struct topt_seen *t, const struct topt_instr *i)
{
    const struct topt_op *o = &t->k->model->op[i->op];
    return bytes_named(t, i->value[topt_table_ids(o)]) / 4;
}

/* Devices agree on the requests for rows and on the rounds that these take; then numbers of
 * rows go, and their values, 'bytes' of them. */
static void add_exchange(const struct topt_seen *t, struct topt_time *sum,
                         enum topt_collective c, const struct topt_instr *i, int64_t rows,
                         int64_t bytes)
{
    int64_t rounds = (i->rows + i->chunk - 1) / i->chunk;
    int64_t n = topt_rows_parts(t->k->mesh, i->axes);
    add_time(sum, topt_router_time(t->k->router, TOPT_ALL_TO_ALL, i->axes, 8 * n));
    add_time(sum, topt_router_time(t->k->router, TOPT_ALL_REDUCE, i->axes, 8));
    add_rounds(t, sum, c, i->axes, rows * TOPT_ROW_NUMBER_BYTES, rounds);
    add_rounds(t, sum, c, i->axes, bytes, rounds);
}

/* FETCH: owners read rows and send them; who asked writes them where its lookups are.  ADD: the
 * output's gradient is read once a row that it is of, and rows that come are added to those that
 * are there. */
struct topt_time topt_rows_price(const struct topt_seen *t, const struct topt_instr *i)
{
    struct topt_time sum = {0, TOPT_BASIS_MEASURED};
    int64_t sort = SORT_BYTES * lookups_of(t, i);
    if (i->kind == TOPT_I_ROWS_FETCH) {
        int64_t bytes = i->rows * each_of(t, i->a);
        add_exchange(t, &sum, TOPT_ALL_TO_ALL, i, i->rows, bytes);
        add_memory(t, &sum, 3 * bytes + bytes_named(t, i->b) + sort);
        return sum;
    }
    int64_t n = topt_rows_parts(t->k->mesh, i->axes), bytes = i->rows * each_of(t, i->b);
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
    int64_t cols = topt_rows_cols(t->k->mesh, &param->shape, &param->layout);
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
    double lookups =
        (double)t->len[rows] / (double)o->count[rows]; /* those of this part */
    for (int i = 0; i < ids->ndim; i++)
        lookups *= (double)t->len[ids->dim[i]];
    double touched = lookups * (double)t->len[cols] *
                     topt_element_bytes(t->k->settings, TOPT_ELEM_REAL);
    return touched < (double)bytes ? (int64_t)touched : bytes;
}

int64_t topt_rows_ns(const struct topt_program *p, const struct topt_hw *hw,
                     struct topt_router *router, int instr)
{
    struct topt_costing k = {p->model, hw, &p->mesh, &p->settings, router, NULL};
    struct topt_seen seen = {&k, p->buffer, NULL};
    return topt_rows_price(&seen, &p->instr[instr]).ns;
}
