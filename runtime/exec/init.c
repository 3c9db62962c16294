/* init.c - parameters before the first step.
 *
 * Element i of a whole tensor is a function of (seed, operator, operand, i); each rank
 * fills the elements of its box, so that every plan starts from the same weights and
 * no rank ever holds a whole tensor. */
#include "init.h"
#include "host.h"
#include "memory.h"
#include "number.h"
#include "packed.h"
#include "random.h"

#include <math.h>
#include <string.h>

struct init_value {
    double constant, deviation, bound; /* uniform within 'bound' of 0 */
    uint64_t stream;
    enum topt_start start;
    int64_t width; /* of the last dimension */
};

/* Numbers that one number of the output is a sum over: dimensions from 'first' on. */
static double fan_in(const struct topt_shape *s, int first)
{
    double n = 1;
    for (int i = first; i < s->ndim; i++)
        n *= (double)(s->dim[i].count * s->dim[i].unit);
    return n;
}

static struct init_value value_of(const struct topt_session *s,
                                  const struct topt_buffer *b)
{
    const struct topt_op *op = &s->p->model->op[b->op];
    struct init_value v = {.deviation =
                               op->attrs->init_std > 0 ? op->attrs->init_std : 0.02};
    v.stream =
        topt_mix(s->options.seed) ^ topt_mix((uint64_t)b->op * 64 + (uint64_t)b->operand);
    v.start = op->spec->operand[b->operand].start;
    v.width =
        b->shape.dim[b->shape.ndim - 1].count * b->shape.dim[b->shape.ndim - 1].unit;
    switch (v.start) {
    case TOPT_START_FAN_IN:
        if (!(op->attrs->init_std > 0))
            v.deviation = 1 / sqrt(fan_in(&b->shape, 1));
        break;
    case TOPT_START_FAN_LAST:
        if (!(op->attrs->init_std > 0))
            v.deviation = 1 / sqrt(fan_in(&b->shape, b->shape.ndim - 1));
        break;
    case TOPT_START_ONE:
        v.constant = 1;
        v.deviation = 0;
        break;
    case TOPT_START_ZERO:
        v.deviation = 0;
        break;
    case TOPT_START_DECAY:
    case TOPT_START_STEP:
        v.deviation = 0;
        break;
    case TOPT_START_NORMAL:
        break;
    }
    if (op->attrs->uniform) { /* linear: each output is a sum over the inputs */
        const struct topt_dim *inputs = &op->operand[b->operand].dim[1];
        v.bound = 1 / sqrt((double)(inputs->count * inputs->unit));
    }
    if (op->attrs->zero || op->attrs->uniform)
        v.deviation = 0;
    return v;
}

/* Rows of the last dimension, one after the other; of several tables 'piece' is what the block has
 * of 'table', before which there are 'earlier' rows. */
struct rows {
    const struct topt_shape *shape;
    struct topt_box box;
    int64_t table, earlier;
    struct topt_piece piece;
};

static struct rows rows_of(const struct topt_shape *s, struct topt_box box)
{
    int64_t n;
    struct rows r = {.shape = s, .box = box, .table = topt_box_tables(s, &box, &n)};
    for (int64_t k = 0; k < r.table; k++)
        r.earlier += s->rows[k];
    r.piece = topt_box_piece(s, &r.box, r.table);
    return r;
}

/* The number of a local row among those of all tables. */
static int64_t row_of_tables(struct rows *r, int64_t row)
{
    while (row >= r->piece.before + r->piece.rows) {
        r->earlier += r->shape->rows[r->table++];
        r->piece = topt_box_piece(r->shape, &r->box, r->table);
    }
    return r->earlier + r->piece.first + row - r->piece.before;
}

/* 'row' is the number of a local row, not below the one before; returns the global number of its
 * first element. */
static int64_t row_start(struct rows *r, int64_t row)
{
    const struct topt_shape *s = r->shape;
    int64_t index[TOPT_MAX_RANK], at = s->rows ? row_of_tables(r, row) : 0;
    for (int i = s->ndim - 2; i >= 0 && !s->rows; i--) {
        int64_t n = r->box.len[i] * s->dim[i].unit;
        index[i] = row % n + r->box.off[i] * s->dim[i].unit;
        row /= n;
    }
    for (int i = 0; i + 1 < s->ndim && !s->rows; i++)
        at = at * s->dim[i].count * s->dim[i].unit + index[i];
    int last = s->ndim - 1;
    return (at * s->dim[last].count + r->box.off[last]) * s->dim[last].unit;
}

/* Element 'i' of those that do not start at random. */
static double value_at(const struct init_value *v, int64_t i)
{
    enum { PLACES = 16 };
    if (v->bound > 0)
        return v->bound * (topt_random_half(topt_random(v->stream, (uint64_t)i) >> 32) /
                               2147483648.0 -
                           1);
    int64_t k = i % v->width % PLACES;
    switch (v->start) {
    case TOPT_START_DECAY:
        return log((double)(k + 1));
    case TOPT_START_STEP:
        return log(expm1(0.001 * pow(100, (double)k / (PLACES - 1))));
    default:
        return v->constant;
    }
}

/* 'cols' elements from 'first' of the whole tensor on, in strips that stay in the cache. */
static void fill_row(enum topt_dtype dtype, const struct init_value *v, int64_t first,
                     void *row, int64_t cols)
{
    enum { STRIP = 512 };
    double strip[STRIP];
    for (int64_t j0 = 0; j0 < cols; j0 += STRIP) {
        int64_t n = cols - j0 < STRIP ? cols - j0 : STRIP;
        if (v->deviation > 0)
            topt_host_normal(strip, n, v->stream, (uint64_t)(first + j0));
        for (int64_t j = 0; j < n; j++)
            strip[j] =
                v->deviation > 0 ? v->deviation * strip[j] : value_at(v, first + j0 + j);
        if (dtype == TOPT_F32)
            for (int64_t j = 0; j < n; j++)
                ((float *)row)[j0 + j] = (float)strip[j];
        else
            for (int64_t j = 0; j < n; j++)
                topt_number_put(dtype, row, j0 + j, strip[j]);
    }
}

/* Rows of what rests in few bits are put together before they are packed. */
static int init_packed(struct topt_session *s, int buffer, const struct init_value *v,
                       struct rows *all, int64_t rows, int64_t cols,
                       struct topt_error *err)
{
    float *x = topt_scratch(s, rows * cols * (int64_t)sizeof *x);
    if (!x)
        return topt_nomem(err, NULL);
    for (int64_t r = 0; r < rows; r++)
        fill_row(TOPT_F32, v, row_start(all, r), x + r * cols, cols);
    topt_packed_put(s, buffer, x);
    return 0;
}

int topt_init_param(struct topt_session *s, int buffer, struct topt_error *err)
{
    struct topt_buffer here = s->p->buffer[buffer], *b = &here;
    here.shape = topt_buffer_shape(s->p, buffer);
    struct topt_box box = topt_buffer_box(s, buffer);
    struct init_value v = value_of(s, b);
    struct rows all = rows_of(&b->shape, box);
    int last = b->shape.ndim - 1;
    int64_t cols = box.len[last] * b->shape.dim[last].unit;
    int64_t rows = cols ? topt_buffer_elements(s, buffer) / cols : 0;
    int64_t row_bytes = cols * s->dev->real_bytes;
    if (topt_packed_bits(s->p, buffer))
        return init_packed(s, buffer, &v, &all, rows, cols, err);
    void *row = topt_scratch(s, row_bytes);
    if (!row)
        return topt_nomem(err, NULL);
    for (int64_t r = 0; r < rows; r++) {
        int64_t first = row_start(&all, r);
        fill_row(s->dev->dtype, &v, first, row, cols);
        if (s->dev->ops->write(s->dev, (char *)s->ptr[buffer] + r * row_bytes, row,
                               row_bytes, err))
            return -1;
    }
    return 0;
}
