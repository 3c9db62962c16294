/* init.c - parameters before the first step.
 *
 * Element i of a whole tensor is a function of (seed, operator, operand, i); each rank fills
 * the elements of its box, so that every plan starts from the same weights and no rank ever
 * holds a whole tensor. */
#include "exec.h"
#include "random.h"

#include <math.h>
#include <string.h>

/* How a kind's parameters start; any other parameter is normal with deviation 0.02. */
struct init_rule {
    const char *kind, *operand;
    double constant; /* of all elements, where 'fan_in' is not set */
    int fan_in;      /* normal, deviation 1 / sqrt(elements of the last dimension) */
};

static const struct init_rule rules[] = {{"linear", "w", 0, 1},
                                         {"bias", "b", 0, 0},
                                         {"norm", "g", 1, 0},
                                         {"norm", "bias", 0, 0}};

struct init_value {
    double constant, deviation;
    uint64_t stream;
};

static struct init_value value_of(const struct topt_session *s,
                                  const struct topt_buffer *b)
{
    const struct topt_op *op = &s->p->model->op[b->op];
    const char *operand = op->spec->operand[b->operand].name;
    struct init_value v = {.deviation =
                               op->attrs.init_std > 0 ? op->attrs.init_std : 0.02};
    v.stream =
        topt_mix(s->options.seed) ^ topt_mix((uint64_t)b->op * 64 + (uint64_t)b->operand);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        if (strcmp(rules[i].kind, op->spec->name) || strcmp(rules[i].operand, operand))
            continue;
        const struct topt_dim *last = &b->shape.dim[b->shape.ndim - 1];
        if (!rules[i].fan_in) {
            v.constant = rules[i].constant;
            v.deviation = 0;
        } else if (!(op->attrs.init_std > 0)) {
            v.deviation = 1 / sqrt((double)(last->count * last->unit));
        }
    }
    return v;
}

static void put(void *dst, enum topt_dtype dtype, int64_t i, double x)
{
    if (dtype == TOPT_F64)
        ((double *)dst)[i] = x;
    else
        ((float *)dst)[i] = (float)x;
}

/* Rows of the last dimension: 'row' is the number of a local row; returns the global number
 * of its first element. */
static int64_t row_start(const struct topt_shape *s, const struct topt_box *box,
                         int64_t row)
{
    int64_t index[TOPT_MAX_RANK], at = 0;
    for (int i = s->ndim - 2; i >= 0; i--) {
        int64_t n = box->len[i] * s->dim[i].unit;
        index[i] = row % n + box->off[i] * s->dim[i].unit;
        row /= n;
    }
    for (int i = 0; i + 1 < s->ndim; i++)
        at = at * s->dim[i].count * s->dim[i].unit + index[i];
    int last = s->ndim - 1;
    return (at * s->dim[last].count + box->off[last]) * s->dim[last].unit;
}

int topt_init_param(struct topt_session *s, int buffer, struct topt_error *err)
{
    const struct topt_buffer *b = &s->p->buffer[buffer];
    struct topt_box box = topt_buffer_box(s, buffer);
    struct init_value v = value_of(s, b);
    int last = b->shape.ndim - 1;
    int64_t cols = box.len[last] * b->shape.dim[last].unit;
    int64_t rows = cols ? topt_buffer_elements(s, buffer) / cols : 0;
    int64_t row_bytes = cols * s->dev->real_bytes;
    void *row = topt_scratch(s, row_bytes);
    if (!row)
        return topt_fail(err, TOPT_ERR_NOMEM, "out of memory");
    for (int64_t r = 0; r < rows; r++) {
        int64_t first = row_start(&b->shape, &box, r);
        for (int64_t j = 0; j < cols; j++)
            put(row, s->dev->dtype, j,
                v.deviation > 0
                    ? v.deviation * topt_random_normal(v.stream, (uint64_t)(first + j))
                    : v.constant);
        if (s->dev->ops->write(s->dev, (char *)s->ptr[buffer] + r * row_bytes, row,
                               row_bytes, err))
            return -1;
    }
    return 0;
}
