/* feed_synthetic.c - samples without a file, with a relation that can be learnt.
 *
 * Each position of a sample has a hidden class, drawn anew.  Labels are the class,
 * tokens one of those that stand for it, features a fixed pattern of the class under
 * noise, targets another pattern without.  Whoever finds out what stands for what has
 * a loss of 0. */
#include "feed_file.h"
#include "feed_model.h"
#include "number.h"
#include "random.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 32 };

struct synthetic {
    int64_t batch, positions, classes;
    uint64_t seed;
};

/* Numbers of one purpose; of operators of the same name the same, in any copy of the
 * model. */
static uint64_t stream(const struct synthetic *f, const struct topt_op *op, int purpose)
{
    return topt_mix(f->seed ^ topt_feed_digest(op->name, strlen(op->name))) +
           (uint64_t)purpose;
}

static int64_t class_at(const struct synthetic *f, int64_t sample, int64_t position)
{
    uint64_t at = (uint64_t)(sample * f->positions + position % f->positions);
    return (int64_t)(topt_random(f->seed, at) % (uint64_t)f->classes);
}

/* One of the tokens that stand for a class. */
static int64_t token_of(int64_t vocab, int64_t classes, int64_t k, uint64_t draw)
{
    if (k >= vocab)
        return k % vocab;
    uint64_t choices = (uint64_t)((vocab - k - 1) / classes + 1);
    return k + classes * (int64_t)(draw % choices);
}

static int load_whole(void *ctx, const struct topt_op *op, int operand, int64_t step,
                      const struct topt_box *box, int32_t *ret, struct topt_error *err)
{
    const struct synthetic *f = ctx;
    int64_t n = topt_feed_elements(op, operand, box);
    int64_t sample_size = 1;
    if (topt_feed_check(op, box, f->batch, err))
        return -1;
    for (int d = 1; d < op->spec->operand[operand].ndim; d++)
        sample_size *= op->operand[operand].dim[d].count;
    for (int64_t i = 0; i < n; i++) {
        struct topt_feed_place p = topt_feed_place(op, operand, box, i);
        int64_t sample = step * f->batch + p.sample, k = class_at(f, sample, p.element);
        uint64_t draw = topt_random(stream(f, op, 0), (uint64_t)(sample * sample_size) +
                                                          (uint64_t)p.element);
        int64_t below = topt_feed_below(op, operand, p.element);
        ret[i] = (int32_t)(op->spec->loss ? k : token_of(below, f->classes, k, draw));
    }
    return 0;
}

/* A class as a pattern: of the whole channel or of nothing, and of the element. */
static double pattern(uint64_t s, int64_t k, int64_t channel, int64_t element)
{
    uint64_t base = (uint64_t)k << 40;
    return 0.7 * topt_random_normal(s, base + (uint64_t)channel) +
           0.7 * topt_random_normal(s + 1, base + (uint64_t)element);
}

static int load_real(void *ctx, const struct topt_op *op, int operand, int64_t step,
                     const struct topt_box *box, enum topt_dtype dtype, void *ret,
                     struct topt_error *err)
{
    const struct synthetic *f = ctx;
    const struct topt_dim *dim = op->operand[operand].dim;
    int rank = op->spec->operand[operand].ndim;
    int64_t n = topt_feed_elements(op, operand, box), sample_size = 1, row = 1;
    if (topt_feed_check(op, box, f->batch, err))
        return -1;
    for (int d = 1; d < rank; d++)
        sample_size *= dim[d].count * dim[d].unit;
    row = sample_size / (dim[1].count * dim[1].unit); /* of a position or channel */
    for (int64_t i = 0; i < n; i++) {
        struct topt_feed_place p = topt_feed_place(op, operand, box, i);
        int64_t sample = step * f->batch + p.sample, outer = p.element / row;
        int positions = rank == 3;
        int64_t k = class_at(f, sample, positions ? outer : 0);
        int64_t within = positions ? p.element % row : p.element;
        double x = pattern(stream(f, op, 1), k, positions ? 0 : outer, within);
        if (!op->spec->loss)
            x += 0.3 *
                 topt_random_normal(stream(f, op, 3), (uint64_t)(sample * sample_size) +
                                                          (uint64_t)p.element);
        topt_number_put(dtype, ret, i, x);
    }
    return 0;
}

static void close_synthetic(void *ctx)
{
    free(ctx);
}

int topt_feed_synthetic(const struct topt_model *m, uint64_t seed, struct topt_feed *ret,
                        struct topt_error *err)
{
    struct topt_feed_needs n = topt_feed_needs_of(m);
    struct synthetic *f = calloc(1, sizeof *f);
    if (!f)
        return topt_nomem(err, NULL);
    *f = (struct synthetic){.batch = m->batch,
                            .positions = n.loss->operand[n.loss->output].dim[1].count,
                            .classes = MOST_CLASSES,
                            .seed = topt_mix(seed ^ 0x73796e7468657469u)};
    if (n.classes && n.classes < f->classes)
        f->classes = n.classes;
    *ret = (struct topt_feed){.load = load_whole,
                              .load_real = load_real,
                              .close = close_synthetic,
                              .ctx = f,
                              .kind = "synthetic",
                              .digest = f->seed};
    return 0;
}
