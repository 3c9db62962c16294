/* feed_model.c - what a model takes of its samples, and which number of a sample
 * stands where in a rank's box. */
#include "feed_model.h"

#include <string.h>

/* Samples are DATA operands, and the output of an operator that is a source of them. */
static int takes_samples(const struct topt_op_spec *spec, int operand)
{
    for (const struct topt_step *s = spec->forward;
         s < spec->forward + TOPT_MAX_STEPS && s->kind; s++)
        if (s->kind == TOPT_STEP_KERNEL && s->kernel == TOPT_K_LOAD &&
            s->writes >> operand & 1)
            return 1;
    return 0;
}

static int64_t of_a_sample(const struct topt_op *op, int operand)
{
    int64_t n = 1;
    for (int i = 1; i < op->spec->operand[operand].ndim; i++)
        n *= op->operand[operand].dim[i].count * op->operand[operand].dim[i].unit;
    return n;
}

static int64_t smallest_table(const struct topt_op *op)
{
    int64_t least = topt_table_height(op, 0);
    for (int64_t k = 1; k < topt_tables_of(op); k++)
        least = topt_table_height(op, k) < least ? topt_table_height(op, k) : least;
    return least;
}

static int64_t classes_of(const struct topt_op *op)
{
    if (op->attrs->tables[0])
        return smallest_table(op);
    for (int d = 0; d < op->spec->ndims; d++)
        if (!strcmp(op->spec->dim[d].name, "v"))
            return op->count[d];
    return op->spec->loss ? 2 : 1; /* yes or no */
}

int64_t topt_feed_below(const struct topt_op *op, int operand, int64_t element)
{
    const struct topt_dim *dim = op->operand[operand].dim;
    return op->attrs->tables[0]
               ? topt_table_height(op, element / dim[3].count % dim[2].count)
               : classes_of(op);
}

int topt_feed_is_kinds(const struct topt_op *op)
{
    return !strcmp(op->name, "types") && !strcmp(op->spec->name, "embedding");
}

int topt_feed_zeros(const struct topt_op *op, int operand, const struct topt_box *box,
                    int32_t *ret)
{
    memset(ret, 0, (size_t)topt_feed_elements(op, operand, box) * sizeof *ret);
    return 0;
}

static void need(struct topt_feed_needs *n, const struct topt_op *op, int operand)
{
    const struct topt_operand_spec *spec = &op->spec->operand[operand];
    int real = spec->role != TOPT_DATA || spec->real;
    if (op->spec->loss) {
        n->loss = op;
        n->classes = real ? 0 : classes_of(op);
        n->answers = of_a_sample(op, operand);
    } else if (real) {
        n->features = n->features ? n->features : op;
        n->nfeatures++;
        n->sample = of_a_sample(op, operand);
    } else if (!topt_feed_is_kinds(op)) {
        int64_t vocab = classes_of(op);
        n->vocab = n->vocab && n->vocab < vocab ? n->vocab : vocab;
        if (!strncmp(op->name, "encoder.", 8))
            n->encoder = op;
        else if (!n->tokens || vocab == n->vocab)
            n->tokens = op;
    }
}

struct topt_feed_needs topt_feed_needs_of(const struct topt_model *m)
{
    struct topt_feed_needs n = {.loss = &m->op[m->loss]};
    for (int i = 0; i < m->nops; i++)
        for (int o = 0; o < m->op[i].spec->noperands; o++)
            if (takes_samples(m->op[i].spec, o))
                need(&n, &m->op[i], o);
    return n;
}

struct topt_feed_place topt_feed_place(const struct topt_op *op, int operand,
                                       const struct topt_box *box, int64_t i)
{
    const struct topt_dim *dim = op->operand[operand].dim;
    struct topt_feed_place p = {0, 0};
    int64_t stride = 1;
    for (int d = op->spec->operand[operand].ndim - 1; d > 0; d--) {
        int64_t n = box->len[d] * dim[d].unit;
        p.element += (box->off[d] * dim[d].unit + i % n) * stride;
        stride *= dim[d].count * dim[d].unit;
        i /= n;
    }
    p.sample = box->off[0] + i;
    return p;
}

int64_t topt_feed_elements(const struct topt_op *op, int operand,
                           const struct topt_box *box)
{
    int64_t n = box->len[0];
    for (int d = 1; d < op->spec->operand[operand].ndim; d++)
        n *= box->len[d] * op->operand[operand].dim[d].unit;
    return n;
}

int64_t topt_feed_run(const struct topt_op *op, int operand, const struct topt_box *box)
{
    const struct topt_dim *dim = op->operand[operand].dim;
    int64_t run = 1;
    for (int d = op->spec->operand[operand].ndim - 1; d > 0; d--) {
        run *= box->len[d] * dim[d].unit;
        if (box->len[d] != dim[d].count)
            break;
    }
    return run;
}

int topt_feed_check(const struct topt_op *op, const struct topt_box *box, int64_t batch,
                    struct topt_error *err)
{
    return box->off[0] + box->len[0] <= batch
               ? 0
               : topt_fail(err, TOPT_ERR_INTERNAL,
                           "'%s' asks for more samples than a batch has", op->name);
}

void topt_feed_close(struct topt_feed *f)
{
    if (f->close)
        f->close(f->ctx);
    *f = (struct topt_feed){0};
}
