/* low.c - products in types of few bits: FP8, MXFP8 and NVFP4.
 *
 * The products of layers run in them forward and in both directions of backward, each operand cast with a
 * scale: one a tensor, from the largest number of past steps (delayed) or of this one (tensorwise), one a row
 * (rowwise), one for 128 numbers of an activation and 128 x 128 of a weight (blockwise, as DeepSeek-V3 trained), one
 * for 32 (MXFP8), one for 16 (NVFP4, whose casts mix numbers of a row by a Hadamard transform and so need
 * the largest number of two tensors).  Head, embedding, attention, norms and adapters stay as the precision
 * has them, as do results of products and gradients of parameters.
 *
 * Two libraries do it, both read in public source:
 *   Transformer Engine (common/cast, common/transpose, pytorch/module/linear.py of 2.x, 2025 to 2026-08), of
 *       Megatron-LM: a cast writes rows and columns in one pass, weights are cast once a step and stay, and
 *       backward keeps the one copy of an input that it reads.
 *       With fp8_dot_product_attention the operands of attention are cast as well, a copy each, and it keeps queries,
 *       keys, values and its result in 8 bits; results are bf16 (pytorch/attention/dot_product_attention).
 *   torchao (float8/float8_linear.py, prototype/mx_formats, 2025 to 2026-08), of PyTorch and torchtitan: casts are
 *       compiled to passes of their own and done again in each micro-batch; the input itself is kept. */
#include "low.h"

#include "fragment.h"
#include "topt_minmax.h"
#include "topt_named.h"

/* Thousandths of a byte for a number: what backward keeps of an input with its scales; and what is moved
 * by casts of a tensor to both copies that products read, by Transformer Engine and by torchao, with how many
 * kernels.  A cast of numbers of two bytes reads 2 and writes 1 for each copy; to find the largest number first
 * takes another read, and torchao turns a matrix by reading and writing its bytes. */
enum {
    NARROWEST = 128
}; /* of a weight; adapters and routers of fewer features stay as they are */

static const struct recipe {
    const char *name;
    enum topt_dtype type;
    int kept, moved[2], kernels[2];
} recipes[TOPT_LOW_COUNT] = {
    [TOPT_LOW_NONE] = {.name = "none", .type = TOPT_BF16},
    [TOPT_LOW_DELAYED] = {"delayed", TOPT_F8, 1000, {4000, 0}, {1, 0}},
    [TOPT_LOW_TENSORWISE] = {"tensorwise", TOPT_F8, 1000, {6000, 7000}, {2, 3}},
    [TOPT_LOW_ROWWISE] = {"rowwise", TOPT_F8, 1000, {6000, 6000}, {2, 2}},
    [TOPT_LOW_BLOCKWISE] = {"blockwise", TOPT_F8_BLOCK, 1031, {4062, 6062}, {1, 2}},
    [TOPT_LOW_MXFP8] = {"mxfp8", TOPT_MXF8, 1031, {4062, 6062}, {1, 2}},
    [TOPT_LOW_NVFP4] = {"nvfp4", TOPT_NVF4, 562, {7125, 7125}, {3, 3}},
};

/* The same of torchao's rowwise as PyTorch until 2025 compiled it: forward casts inputs and weights along their rows, which
 * reads them once (a count); backward casts along columns in strided passes, and torchao rescales the products of backward
 * in passes of their own.  Fitted to the 108 shapes of at least 8,192 rows of a table of one linear layer against bf16, forward
 * and backward (docs/static/fp8-rowwise-perf.png of github.com/pytorch/ao at 6243040, 2025-06; an H100 of 2.4 TB/s, assumed), beside
 * products at the rates of h100-96-500w: 24 bytes of an input or a weight, 10.5 of a gradient, off by 3.8 %.  Later
 * releases tile such passes (github.com/pytorch/pytorch pull 153751) and are as counted above, assumed. */
enum { STRIDED_FORWARD = 3000, STRIDED_BACKWARD = 21000, STRIDED_GRADIENT = 10500 };

TOPT_NAMED(topt_low_name, enum topt_low, TOPT_LOW_COUNT, recipes[i].name)

enum topt_dtype topt_low_type(enum topt_low r)
{
    return recipes[r].type;
}

int topt_low_runs(const struct topt_settings *s, const struct topt_model *m, int op)
{
    const struct topt_op *o = &m->op[op];
    if (!s->low || !o->spec->low || m->unit[op] < 0 || o->attrs->bits)
        return 0;
    for (int x = 0; x < o->spec->noperands; x++)
        for (int i = 0; o->operand[x].role == TOPT_PARAM && i < o->spec->operand[x].ndim;
             i++)
            if (o->spec->operand[x].ndim == 2 &&
                o->operand[x].dim[i].count * o->operand[x].dim[i].unit < NARROWEST)
                return 0;
    return 1;
}

int64_t topt_low_parameter_bytes(const struct topt_settings *s, int64_t numbers)
{
    return topt_permille(2 * numbers, recipes[s->low].kept);
}

int topt_low_cast_permille(const struct topt_settings *s)
{
    return recipes[s->low].kept / topt_dtype_bytes(s->dtype);
}

/* The tensor's own producer may read it in backward: attention reads its result. */
int topt_low_kept_permille(const struct topt_settings *s, const struct topt_model *m,
                           int op, int input)
{
    const struct topt_op *o = &m->op[op], *from;
    int own = 0;
    if ((s->low_attention && topt_op_attends(o)) ||
        topt_low_stored(s, o) == o->input[input])
        return 1000 / topt_dtype_bytes(s->dtype);
    if (s->low_apart || !topt_low_runs(s, m, op))
        return 1000;
    from = &m->op[topt_input_producer(m, o, input)];
    if (topt_op_attends(from))
        own = s->low_attention ? 1000 / topt_dtype_bytes(s->dtype) : 1000;
    return own + topt_low_cast_permille(s);
}

/* torchao casts before a gather where one scale does for the whole tensor (float8/float8_tensor_parallel.py). */
int topt_low_moved_permille(const struct topt_settings *s, const struct topt_model *m,
                            int op)
{
    if (!topt_low_runs(s, m, op) || (s->low_apart && s->low != TOPT_LOW_TENSORWISE))
        return 1000;
    return topt_low_cast_permille(s);
}

int topt_gathered_for(const struct topt_model *m, const struct topt_buffer *b,
                      const struct topt_instr *i)
{
    if (i->kind != TOPT_I_MOVE || i->move.kind != TOPT_MOVE_ALL_GATHER || b->operand < 0)
        return -1;
    const struct topt_op *op = &m->op[b->op];
    enum topt_role role = op->operand[b->operand].role;
    return role == TOPT_INPUT    ? m->tensor[op->tensor[b->operand]].producer
           : role == TOPT_OUTPUT ? i->op
                                 : -1;
}

struct topt_low_casts topt_low_casts(const struct topt_settings *s,
                                     const struct topt_op *o, const int64_t *len,
                                     int backward)
{
    const struct recipe *r = &recipes[s->low];
    const struct topt_step *t = backward ? o->spec->backward : o->spec->forward;
    uint32_t read = 0, weights = 0, made = 0;
    int attends = topt_op_attends(o), apart = s->low_apart != 0;
    enum topt_work work = attends ? TOPT_WORK_ATTENTION : TOPT_WORK_MATMUL;
    for (; t->kind != TOPT_STEP_END; t++)
        if (t->kind == TOPT_STEP_KERNEL && topt_kernel_work(t->kernel) == work)
            read |= t->reads;
    for (int x = 0; x < o->spec->noperands; x++) {
        enum topt_role role = o->operand[x].role;
        weights |= (uint32_t)(role == TOPT_PARAM) << x;
        made |= (uint32_t)(role == TOPT_WORK_BWD) << x;
    }
    /* Backward reads inputs as forward cast them. */
    uint32_t cast = backward ? read & (made | 0xffff0000u) : read & ~weights;
    int64_t numbers = topt_touched_numbers(o, cast, len);
    int64_t each_step = backward ? 0 : topt_touched_numbers(o, read & weights, len);
    if (!s->low_apart)
        each_step /= s->micro_batches;
    /* Attention reads one copy, products two. */
    int moved = r->moved[apart] - (attends ? 1000 : 0);
    if (s->low_strided)
        moved = backward ? STRIDED_GRADIENT : STRIDED_FORWARD;
    int64_t bytes = topt_permille(numbers + each_step, moved);
    if (s->low_strided && backward)
        bytes +=
            topt_permille(topt_touched_numbers(o, read & ~cast, len), STRIDED_BACKWARD);
    return (struct topt_low_casts){bytes, r->kernels[apart] * (backward ? 1 : 2)};
}
