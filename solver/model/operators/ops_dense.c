/* ops_dense.c - rows of the operator table: embeddings, linear maps, elementwise
 * operators, norms, losses.  Activations are [batch, sequence, features]. */
#include "ops_extents.h"
#include "ops_rows.h"
#include "tables.h"

#include <string.h>

/* ---- embedding --------------------------------------------------------------------- */

static int shape_embedding(struct topt_op *op, struct topt_error *err)
{
    enum { B, S, VOCAB, D };
    op->count[B] = op->model->batch;
    op->count[S] = op->model->seq;
    if (op->operand[1].role == TOPT_INPUT) {
        op->count[VOCAB] = op->operand[1].dim[0].count;
        op->count[D] = op->operand[1].dim[1].count;
    } else {
        op->count[VOCAB] = op->attrs->vocab;
        op->count[D] = op->attrs->features;
    }
    if (op->count[VOCAB] < 1 || op->count[D] < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs a vocab and features of at least 1");
    op->operand[2].dim[2].unit = 1;
    return topt_refuse_density(op, err);
}

/* ---- linear ------------------------------------------------------------------------ */

static int shape_linear(struct topt_op *op, struct topt_error *err)
{
    enum { B, S, K, N };
    topt_counts_from_input(op, 0);
    int64_t k_unit = op->operand[0].dim[2].unit,
            n_unit = topt_unit_of(op->attrs->features_unit);
    if (op->operand[1].role == TOPT_INPUT) {
        const struct topt_dim *w = op->operand[1].dim;
        if (w[1].count != op->count[K] || w[1].unit != k_unit)
            return topt_fail(
                err, TOPT_ERR_INVAL, "weight tensor has %lld inputs, x has %lld features",
                (long long)(w[1].count * w[1].unit), (long long)(op->count[K] * k_unit));
        op->count[N] = w[0].count;
        n_unit = w[0].unit;
    } else {
        if (op->attrs->features < 1)
            return topt_fail(err, TOPT_ERR_INVAL, "needs features of at least 1");
        op->count[N] = op->attrs->features;
        topt_set_dim(op, 1, 0, n_unit);
        topt_set_dim(op, 1, 1, k_unit);
    }
    topt_set_dim(op, 2, 2, n_unit);
    return 0;
}

static int64_t flops_linear(const struct topt_op *op, enum topt_kernel k,
                            const int64_t *len)
{
    if (k == TOPT_K_LOAD)
        return 0;
    int64_t inner = op->operand[0].dim[2].unit, outer = op->operand[2].dim[2].unit;
    return 2 * len[0] * len[1] * len[2] * inner * len[3] * outer;
}

/* ---- elementwise ------------------------------------------------------------------- */

/* An epilogue of the product before it, and a sum of the gradient. */
static enum topt_eager_how eager_bias(const struct topt_op *op, const int64_t *len,
                                      int writes, struct topt_eager *ret)
{
    (void)writes;
    *ret = (struct topt_eager){.moved[1].real =
                                   op->attrs->frozen ? 0 : topt_output_numbers(op, len),
                               .kernels[1] = !op->attrs->frozen};
    return TOPT_EAGER_INSTEAD;
}

/* Both inputs have the output's gradient: nothing is copied. */
static enum topt_eager_how eager_add(const struct topt_op *op, const int64_t *len,
                                     int writes, struct topt_eager *ret)
{
    (void)writes;
    *ret = (struct topt_eager){.moved[0].real = 3 * topt_output_numbers(op, len),
                               .kernels[0] = 1};
    return TOPT_EAGER_INSTEAD;
}

/* GELU by elementwise kernels, as transformers' NewGELUActivation is written (activations.py, v5.12.1): eight of them, of which the
 * power, the tangent and the last product keep what they read or made, three numbers beside x. */
enum { WRITTEN_KEPT = 3, WRITTEN_KERNELS = 8, WRITTEN_MOVED = 17 };

static void write_out(struct topt_eager *ret, int64_t n)
{
    for (int i = 0; i < 2; i++) {
        ret->moved[i].real += (1 + i) * WRITTEN_MOVED * n;
        ret->kernels[i] += (1 + i) * WRITTEN_KERNELS;
    }
    ret->kept.real += WRITTEN_KEPT * n;
    ret->work[1].real += WRITTEN_KEPT * n;
}

static enum topt_eager_how eager_unary(const struct topt_op *op, const int64_t *len,
                                       int writes, struct topt_eager *ret)
{
    (void)writes;
    *ret = (struct topt_eager){.flops = {0}};
    if (!op->attrs->written)
        return TOPT_EAGER_ALIKE;
    write_out(ret, topt_output_numbers(op, len));
    return TOPT_EAGER_INSTEAD;
}

/* The activation of one half, and a product; each with its backward. */
static enum topt_eager_how eager_glu(const struct topt_op *op, const int64_t *len,
                                     int writes, struct topt_eager *ret)
{
    int64_t n = topt_output_numbers(op, len);
    (void)writes;
    *ret =
        (struct topt_eager){.moved = {{.real = 2 * n + 3 * n}, {.real = 6 * n + 3 * n}},
                            .kernels = {2, 3},
                            .kept.real = n,
                            .work[1].real = n};
    if (op->attrs->written)
        write_out(ret, n);
    return TOPT_EAGER_INSTEAD;
}

static int shape_glu(struct topt_op *op, struct topt_error *err)
{
    if (topt_refuse_activation(op, err))
        return -1;
    topt_counts_from_input(op, 0);
    if (topt_refuse_units(op, 0, 2, err))
        return -1;
    topt_set_dim(op, 1, 2, 1);
    return 0;
}

/* The table may have rows beyond the model's sequence, which then have no gradient. */
static int shape_position(struct topt_op *op, struct topt_error *err)
{
    enum { ROWS = 3 };
    int64_t rows =
        op->attrs->positions ? op->attrs->positions : op->operand[0].dim[1].count;
    if (rows < op->operand[0].dim[1].count)
        return topt_fail(err, TOPT_ERR_INVAL, "%lld positions, but x has %lld",
                         (long long)rows, (long long)op->operand[0].dim[1].count);
    op->count[ROWS] = rows;
    return topt_shape_same(op, err);
}

/* ---- norm -------------------------------------------------------------------------- */

/* Layer norm is one kernel each way, and one for the parameters.  Forward reads its input twice; both
 * directions together took 10 passes of a copy kernel in Liger-Kernel's tables of PyTorch's layer_norm
 * on A100 and H100 (github.com/linkedin/Liger-Kernel, benchmark/data/all_benchmark_data.csv, 2024-09
 * to 2025), forward 3 of them, as in NeuSight's on V100 and A100 (rows of 16 KiB and more).
 *
 * RMS norm written out: to f32, square, mean, product, back, product with the gain; its backward in
 * the same steps, of which sums and broadcasts are slower than a copy: of a number in bf16 forward took as
 * long as 50 bytes and backward as long as 140 in Liger-Kernel's table of the A100, where 36 and 74 are
 * touched.  PyTorch's own rms_norm in one kernel took 3 passes forward and 13 backward on an H100 (the
 * same tables, megatron_rms_norm, 2025), of which the gain's gradient is taken to be a third.  Written out it
 * keeps the input in f32 and what is normalised in the input's place, of Gemma's and OLMo 2's, whose gain
 * multiplies in f32, in f32 (transformers v5.12.1, models/gemma and models/olmo2).  Cohere's layer norm is written out
 * so, too: x less its mean is kept twice, what is normalised in f32 (models/cohere).  A frozen gain has no
 * gradient: no second kernel, or no product and its sum, for which what is normalised would be kept. */
static enum topt_eager_how eager_norm(const struct topt_op *op, const int64_t *len,
                                      int writes, struct topt_eager *ret)
{
    int64_t n = topt_output_numbers(op, len);
    if (op->attrs->rms && !(writes & TOPT_EAGER_WRITES_NORMS))
        *ret = (struct topt_eager){
            .moved = {{.real = 3 * n}, {.real = (op->attrs->frozen ? 9 : 13) * n}},
            .kernels = {1, 2}};
    else if (op->attrs->rms)
        *ret = (struct topt_eager){
            .moved = {{.real = 4 * n, .f32 = 11 * n},
                      {.real = (op->attrs->frozen ? 5 : 9) * n, .f32 = 30 * n}},
            .kernels = {7, 14},
            .kept = {.f32 = op->attrs->written && !op->attrs->frozen ? 2 * n : n,
                     .real = op->attrs->written || op->attrs->frozen ? -n : 0},
            .work = {{.f32 = n}, {.real = n, .f32 = 3 * n}}};
    else if (op->attrs->written && writes & TOPT_EAGER_WRITES_NORMS)
        *ret = (struct topt_eager){
            .moved = {{.real = 2 * n, .f32 = 13 * n}, {.real = 2 * n, .f32 = 33 * n}},
            .kernels = {9, 17},
            .kept.f32 = 2 * n,
            .work = {{.f32 = n}, {.real = n, .f32 = 3 * n}}};
    else
        *ret = (struct topt_eager){
            .moved = {{.real = 3 * n}, {.real = (op->attrs->frozen ? 5 : 7) * n}},
            .kernels = {1, 2}};
    return TOPT_EAGER_INSTEAD;
}

static int shape_norm(struct topt_op *op, struct topt_error *err)
{
    op->operand[1].present = !op->attrs->plain;
    op->operand[2].present = !op->attrs->plain && !op->attrs->rms;
    if (op->attrs->eps <= 0)
        op->attrs->eps = 1e-5;
    return topt_shape_same(op, err);
}

/* Whole heads lie in the unit of a count: statistics have one number a head. */
static int shape_head_norm(struct topt_op *op, struct topt_error *err)
{
    enum { X, G, BIAS, Y, MEAN, VAR, S1, S2 };
    int64_t unit = op->operand[X].dim[2].unit, width = op->attrs->head_dim;
    if (width < 1 || unit % width)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "features in groups of %lld are no whole heads of %lld",
                         (long long)unit, (long long)width);
    op->operand[G].present = !op->attrs->plain;
    op->operand[BIAS].present = !op->attrs->plain && !op->attrs->rms;
    if (op->attrs->eps <= 0)
        op->attrs->eps = 1e-5;
    topt_counts_from_input(op, X);
    op->count[3] = width;
    topt_set_dim(op, Y, 2, unit);
    for (int o = MEAN; o <= S2; o++)
        topt_set_dim(op, o, 2, unit / width);
    return 0;
}

/* ---- loss and variable ------------------------------------------------------------- */

static int shape_cross_entropy(struct topt_op *op, struct topt_error *err)
{
    topt_counts_from_input(op, 0);
    return topt_refuse_units(op, 0, 1, err);
}

static int64_t flops_cross_entropy(const struct topt_op *op, enum topt_kernel k,
                                   const int64_t *len)
{
    (void)op, (void)k;
    return 4 * len[0] * len[1] * len[2];
}

/* The kernels of the loss.  Copies of the logits, forward and backward: those alive at once while a
 * chunk is at hand, the logits and their gradient with them; those kept of all chunks; and those
 * read or written.  Read on 2026-11-29 in
 *
 *     written   transformers, loss/loss_utils.py (logits.float(), then PyTorch's cross_entropy: the
 *               log-softmax is kept; backward makes its gradient and that of the copy before both
 *               are gone)
 *     in-place  Megatron-LM, core/tensor_parallel/cross_entropy.py
 *     saved     torchtune, modules/loss/cross_entropy_loss.py (LinearCrossEntropyLoss, 8 chunks,
 *               each of which keeps its log-softmax); litgpt's chunked_cross_entropy likewise
 *     chunked   torchtitan, components/loss.py (8 chunks, each with its backward at once: "written"
 *               of an eighth).  Liger's fused_linear_cross_entropy makes more, smaller chunks
 *
 * The log-softmax reads its input three times; it and the loss took 4.3 passes of a copy kernel over f32
 * forward and 8.3 backward in Liger-Kernel's table of PyTorch's cross-entropy on an A100 (32768 to 131072
 * words, 2024-09-03).
 *
 * "fused" (torch.compile, Liger's cross_entropy, Transformer Engine's) is as our own kernels.
 *
 * Words that are split over ranks: torch/distributed/tensor/parallel/loss.py (v2.14.1) makes the log-softmax step by step in f32
 * (its input, what is left without the largest and the exponentials are there at once), and backward adds a matrix of zeros and -1 to
 * the exponentials: with the kept log-softmax and their sum four copies.
 *
 * Metrics for the log (read on 2026-11-29 in llm-foundry, models/mpt/modeling_mpt.py, and Composer, metrics/nlp.py and
 * trainer/trainer.py): after its backward each micro-batch's cross-entropy and perplexity are made of its logits, each by
 * PyTorch's cross_entropy in f32, as the forward of "written". */
struct loss_kernel {
    const char *name;
    int chunks;
    struct topt_numbers kept, alive[2], moved[2];
    int kernels;  /* of a chunk, each way */
    int by_torch; /* which has a log-softmax of its own for words that are split */
};
static const struct loss_kernel split_words = {
    .alive = {{.real = 1, .f32 = 3}, {.f32 = 4}},
    .moved = {{.real = 1, .f32 = 9}, {.real = 1, .f32 = 10}},
    .kernels = 8};
/* "saved" where it is compiled, torchtune's and litgpt's too: one kernel of a chunk each way, which makes the softmax of the
 * logits anew, so that these are kept. */
static const struct loss_kernel compiled_chunks = {.chunks = 8,
                                                   .kept.real = 1,
                                                   .alive = {{.real = 1}, {.real = 2}},
                                                   .moved = {{.real = 2}, {.real = 2}},
                                                   .kernels = 1};
static const struct loss_kernel loss_kernels[TOPT_LOSS_COUNT] = {
    [TOPT_LOSS_FUSED] = {.name = "fused", .chunks = 1},
    [TOPT_LOSS_WRITTEN] = {.name = "written",
                           .chunks = 1,
                           .alive = {{.real = 1, .f32 = 2}, {.f32 = 3}},
                           .moved = {{.real = 1, .f32 = 5}, {.real = 1, .f32 = 9}},
                           .kernels = 3,
                           .by_torch = 1},
    [TOPT_LOSS_IN_PLACE] = {.name = "in-place",
                            .chunks = 1,
                            .alive = {{.real = 1, .f32 = 1}, {.real = 1, .f32 = 1}},
                            .moved = {{.real = 1, .f32 = 9}, {.real = 1, .f32 = 3}},
                            .kernels = 8},
    [TOPT_LOSS_SAVED] = {.name = "chunked-saved",
                         .chunks = 8,
                         .kept.f32 = 1,
                         .alive = {{.real = 1, .f32 = 1}, {.f32 = 2}},
                         .moved = {{.real = 1, .f32 = 5}, {.real = 1, .f32 = 9}},
                         .kernels = 3,
                         .by_torch = 1},
    [TOPT_LOSS_CHUNKED] = {.name = "chunked",
                           .chunks = 8,
                           .alive = {{.real = 1, .f32 = 2}, {.f32 = 3}},
                           .moved = {{.real = 1, .f32 = 5}, {.real = 1, .f32 = 9}},
                           .kernels = 3,
                           .by_torch = 1},
};

const char *topt_loss_kernel_name(enum topt_loss_kernel k)
{
    return (unsigned)k < TOPT_LOSS_COUNT ? loss_kernels[k].name : "unknown";
}

int topt_loss_has_kernels(const struct topt_model *m)
{
    return m->op[m->loss].spec->eager != NULL;
}

int topt_op_waits_for_loss(const struct topt_op *op)
{
    const struct topt_model *m = op->model;
    return op->spec->loss && m->loss >= 0 && strcmp(op->name, m->op[m->loss].name);
}

int topt_loss_chunks(enum topt_loss_kernel k)
{
    return loss_kernels[k].chunks;
}

static enum topt_eager_how eager_cross_entropy(const struct topt_op *op,
                                               const int64_t *len, int as,
                                               struct topt_eager *ret)
{
    enum { METRICS = 2 };
    int kernel = as % TOPT_LOSS_AND_METRICS,
        compiled = as & TOPT_LOSS_COMPILED && kernel == TOPT_LOSS_SAVED;
    const struct loss_kernel *k = compiled ? &compiled_chunks : &loss_kernels[kernel],
                             *log = &loss_kernels[TOPT_LOSS_WRITTEN],
                             *by =
                                 k->by_torch && len[2] < op->count[2] ? &split_words : k;
    int64_t n = len[0] * len[1] * len[2], chunk = (n + k->chunks - 1) / k->chunks;
    *ret = (struct topt_eager){.flops = {0}};
    for (int i = 0; i < 2 && by->kernels; i++) {
        ret->moved[i] = (struct topt_numbers){.real = by->moved[i].real * n,
                                              .f32 = by->moved[i].f32 * n};
        ret->kernels[i] = by->kernels * k->chunks;
        /* The gradient for a chunk's logits is counted beside this. */
        ret->work[i] = (struct topt_numbers){
            .real = (by->alive[i].real - 1) * chunk + k->kept.real * (n - chunk),
            .f32 = by->alive[i].f32 * chunk + k->kept.f32 * n};
    }
    /* The softmax, or its logarithm, is kept meanwhile, but of chunks with their backward at once. */
    if (topt_op_waits_for_loss(op) && by->kernels && (k->chunks == 1 || k->kept.f32)) {
        ret->kept.f32 = n;
        ret->work[0].f32 -= n;
        ret->work[1].f32 -= n;
    }
    if (as & TOPT_LOSS_AND_METRICS) {
        ret->moved[0].real += METRICS * log->moved[0].real * n;
        ret->moved[0].f32 += METRICS * log->moved[0].f32 * n;
        ret->kernels[0] += METRICS * log->kernels;
    }
    return by->kernels ? TOPT_EAGER_INSTEAD : TOPT_EAGER_BESIDE;
}

static int shape_variable(struct topt_op *op, struct topt_error *err)
{
    if (op->attrs->vocab < 1 || op->attrs->features < 1)
        return topt_fail(err, TOPT_ERR_INVAL, "needs vocab and features of at least 1");
    op->count[0] = op->attrs->vocab;
    op->count[1] = op->attrs->features;
    return 0;
}

static int64_t flops_variable(const struct topt_op *op, enum topt_kernel k,
                              const int64_t *len)
{
    (void)op, (void)k;
    return len[0] * len[1];
}

/* ---- rows -------------------------------------------------------------------------- */

const struct topt_op_spec topt_ops_dense[] = {
    {.name = "embedding",
     .attrs =
         A(VOCAB) | A(FEATURES) | A(INIT_STD) | A(SPARSE) | A(DENSITY) | A(DENSITY_OF),
     .ndims = 4,
     .dim = {BATCH, SEQ, {"v", TOPT_SPLIT_FEATURE}, FEATURES},
     .noperands = 3,
     .operand = {OPERAND("ids", DATA, OVER(0, 1)),
                 OPERAND("w", PARAM, OVER(2, 3), .tensor_ok = 1, .rows_of = 1),
                 OPERAND("y", OUTPUT, OVER(0, 1, 3))},
     .forward = {KERNEL(LOAD, 0, V(0)), KERNEL(EMBEDDING_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(EMBEDDING_BWD, V(0) | G(2), G(1))},
     .shape = shape_embedding,
     .flops = topt_flops_none},
    {.name = "linear",
     .low = 1,
     .attrs = A(FEATURES) | A(FEATURES_UNIT) | A(INIT_STD) | A(ZERO) | A(UNIFORM) |
              A(MASKED) | A(WRITTEN),
     .ndims = 4,
     .dim = {BATCH, SEQ, {"k", TOPT_SPLIT_FEATURE}, {"n", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)),
                 OPERAND("w", PARAM, OVER(3, 2), .tensor_ok = 1,
                         .start = TOPT_START_FAN_IN),
                 OPERAND("y", OUTPUT, OVER(0, 1, 3))},
     .forward = {KERNEL(LINEAR_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL_AS(LINEAR_BWD_W, V(0) | G(2), G(1), .joins = {JOINS(BIAS_BWD)}),
                  KERNEL(LINEAR_BWD_X, V(1) | G(2), G(0))},
     .shape = shape_linear,
     .flops = flops_linear},
    {.name = "bias",
     .ndims = 3,
     .dim = {BATCH, SEQ, {"n", TOPT_SPLIT_FEATURE}},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)),
                 OPERAND("b", PARAM, OVER(2), .start = TOPT_START_ZERO),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL_AS(BIAS_FWD, V(0) | V(1), V(2), .onto = V(0),
                           .joins = {JOINS(LINEAR_FWD)})},
     .backward = {KERNEL_AS(BIAS_BWD, G(2), G(0) | G(1), .onto = G(2), .same = 1)},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise,
     .eager = eager_bias},
    {.name = "position",
     .attrs = A(POSITIONS) | A(INIT_STD),
     .ndims = 4,
     .dim = {BATCH, SEQ, FEATURES, {"t", TOPT_SPLIT_NEVER}},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("p", PARAM, OVER(3, 2)),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL_AS(POSITION_FWD, V(0) | V(1), V(2), .onto = V(0))},
     .backward = {KERNEL_AS(POSITION_BWD, G(2), G(0) | G(1), .onto = G(2), .same = 1)},
     .shape = shape_position,
     .flops = topt_flops_elementwise},
    {.name = "unary",
     .attrs = A(ACT) | A(ALPHA) | A(BETA) | A(WRITTEN),
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(UNARY_FWD, V(0), V(1))},
     .backward = {KERNEL_AS(UNARY_BWD, V(0) | G(1), G(0), .onto = G(1))},
     .shape = topt_shape_unary,
     .flops = topt_flops_elementwise,
     .eager = eager_unary},
    {.name = "scale",
     .attrs = A(FACTOR) | A(SHIFT),
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL_AS(SCALE_FWD, V(0), V(1), .onto = V(0))},
     .backward = {KERNEL_AS(SCALE_BWD, G(1), G(0), .onto = G(1))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    {.name = "glu",
     .attrs = A(ACT) | A(ALPHA) | A(BETA) | A(WRITTEN),
     .ndims = 3,
     .dim = {BATCH, SEQ, {"f", TOPT_SPLIT_FEATURE}},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(GLU_FWD, V(0), V(1))},
     .backward = {KERNEL(GLU_BWD, V(0) | G(1), G(0))},
     .shape = shape_glu,
     .flops = topt_flops_elementwise,
     .eager = eager_glu},
    {.name = "add",
     .attrs = A(MASKED),
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 3,
     .operand = {OPERAND("a", INPUT, OVER(0, 1, 2)), OPERAND("b", INPUT, OVER(0, 1, 2)),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL_AS(ADD_FWD, V(0) | V(1), V(2), .onto = V(0) | V(1),
                           .joins = {JOINS(BIAS_FWD), JOINS(LINEAR_FWD)})},
     .backward = {KERNEL_AS(ADD_BWD, G(2), G(0) | G(1), .onto = G(2), .same = 1)},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise,
     .eager = eager_add},
    {.name = "mul",
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 3,
     .operand = {OPERAND("a", INPUT, OVER(0, 1, 2)), OPERAND("b", INPUT, OVER(0, 1, 2)),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(MUL_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(MUL_BWD, V(0) | V(1) | G(2), G(0) | G(1))},
     .shape = topt_shape_same,
     .flops = topt_flops_elementwise},
    /* Each position by a number of its own. */
    {.name = "weigh",
     .ndims = 4,
     .dim = {BATCH, SEQ, FEATURES, {"one", TOPT_SPLIT_NEVER}},
     .noperands = 3,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("g", INPUT, OVER(0, 1, 3)),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(WEIGH_FWD, V(0) | V(1), V(2))},
     .backward = {KERNEL(WEIGH_BWD, V(0) | V(1) | G(2), G(0) | G(1))},
     .shape = topt_shape_weigh,
     .flops = topt_flops_elementwise},
    {.name = "norm",
     .attrs = A(RMS) | A(PLAIN) | A(EPS) | A(WRITTEN),
     .ndims = 3,
     .dim = {BATCH, SEQ, {"d", TOPT_SPLIT_STAT}},
     .noperands = 8,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)),
                 OPERAND("g", PARAM, OVER(2), .optional = 1, .start = TOPT_START_ONE),
                 OPERAND("bias", PARAM, OVER(2), .optional = 1, .start = TOPT_START_ZERO),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2)),
                 OPERAND("mean", SAVED, OVER(0, 1), .wide = 1),
                 OPERAND("var", SAVED, OVER(0, 1), .wide = 1),
                 OPERAND("s1", WORK_BWD, OVER(0, 1), .wide = 1),
                 OPERAND("s2", WORK_BWD, OVER(0, 1), .wide = 1)},
     .forward = {KERNEL(NORM_MEAN, V(0), V(4)), SUM(4, D(2)),
                 KERNEL_AS(NORM_VAR, V(0) | V(4), V(5), .joins = {JOINS(NORM_MEAN)}),
                 SUM(5, D(2)),
                 KERNEL_AS(NORM_APPLY, V(0) | V(1) | V(2) | V(4) | V(5), V(3),
                           .joins = {JOINS(NORM_VAR)})},
     .backward = {KERNEL(NORM_BWD_SUM, V(0) | V(1) | V(4) | V(5) | G(3),
                         G(1) | G(2) | V(6) | V(7)),
                  SUM(6, D(2)), SUM(7, D(2)),
                  KERNEL_AS(NORM_BWD_APPLY,
                            V(0) | V(1) | V(4) | V(5) | V(6) | V(7) | G(3), G(0),
                            .joins = {JOINS(NORM_BWD_SUM)})},
     .shape = shape_norm,
     .flops = topt_flops_elementwise,
     .eager = eager_norm},
    {.name = "head_norm",
     .attrs = A(HEAD_DIM) | A(RMS) | A(PLAIN) | A(EPS) | A(WRITTEN),
     .ndims = 4,
     .dim = {BATCH, SEQ, {"h", TOPT_SPLIT_FEATURE}, {"e", TOPT_SPLIT_NEVER}},
     .noperands = 8, /* as norm has them, for its kernels */
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)),
                 OPERAND("g", PARAM, OVER(3), .optional = 1, .start = TOPT_START_ONE),
                 OPERAND("bias", PARAM, OVER(3), .optional = 1, .start = TOPT_START_ZERO),
                 OPERAND("y", OUTPUT, OVER(0, 1, 2)),
                 OPERAND("mean", SAVED, OVER(0, 1, 2), .wide = 1),
                 OPERAND("var", SAVED, OVER(0, 1, 2), .wide = 1),
                 OPERAND("s1", WORK_BWD, OVER(0, 1, 2), .wide = 1),
                 OPERAND("s2", WORK_BWD, OVER(0, 1, 2), .wide = 1)},
     .forward = {KERNEL(NORM_MEAN, V(0), V(4)),
                 KERNEL_AS(NORM_VAR, V(0) | V(4), V(5), .joins = {JOINS(NORM_MEAN)}),
                 KERNEL_AS(NORM_APPLY, V(0) | V(1) | V(2) | V(4) | V(5), V(3),
                           .joins = {JOINS(NORM_VAR)})},
     .backward = {KERNEL(NORM_BWD_SUM, V(0) | V(1) | V(4) | V(5) | G(3),
                         G(1) | G(2) | V(6) | V(7)),
                  KERNEL_AS(NORM_BWD_APPLY,
                            V(0) | V(1) | V(4) | V(5) | V(6) | V(7) | G(3), G(0),
                            .joins = {JOINS(NORM_BWD_SUM)})},
     .shape = shape_head_norm,
     .flops = topt_flops_elementwise,
     .eager = eager_norm},
    {.name = "cross_entropy",
     .loss = 1,
     .ndims = 3,
     .dim = {BATCH, SEQ, {"v", TOPT_SPLIT_STAT}},
     .noperands = 6,
     .operand = {OPERAND("logits", INPUT, OVER(0, 1, 2)),
                 OPERAND("labels", DATA, OVER(0, 1)),
                 OPERAND("loss", OUTPUT, OVER(0, 1), .wide = 1),
                 OPERAND("max", SAVED, OVER(0, 1), .wide = 1),
                 OPERAND("sum", SAVED, OVER(0, 1), .wide = 1),
                 OPERAND("target", WORK_FWD, OVER(0, 1), .wide = 1)},
     .forward = {KERNEL(LOAD, 0, V(1)), KERNEL(XENT_MAX, V(0), V(3)), MAX(3, D(2)),
                 KERNEL(XENT_SUM, V(0) | V(1) | V(3), V(4) | V(5)), SUM(4, D(2)),
                 SUM(5, D(2)), KERNEL(XENT_LOSS, V(3) | V(4) | V(5), V(2))},
     .backward = {KERNEL(XENT_BWD, V(0) | V(1) | V(3) | V(4), G(0))},
     .shape = shape_cross_entropy,
     .flops = flops_cross_entropy,
     .eager = eager_cross_entropy},
    {.name = "variable",
     .attrs = A(VOCAB) | A(FEATURES) | A(INIT_STD),
     .ndims = 2,
     .dim = {{"v", TOPT_SPLIT_FEATURE}, FEATURES},
     .noperands = 2,
     .operand = {OPERAND("w", PARAM, OVER(0, 1)), OPERAND("y", OUTPUT, OVER(0, 1))},
     .forward = {KERNEL(VARIABLE_FWD, V(0), V(1))},
     .backward = {KERNEL(VARIABLE_BWD, G(1), G(0))},
     .shape = shape_variable,
     .flops = flops_variable},
    {.name = NULL},
};
