/* kernels_seq.c - the host kernels of sequences: recurrences, attention over two sequences,
 * and what cuts, joins and reduces features. */
#include "kernel_checks.h"

/* clang-format off */
#define FEATURES(count, unit) {3, {{BATCH, 1}, {SEQ, 1}, {(count), (unit)}}}
#define IMAGE(count, unit)    {4, {{BATCH, 1}, {(count), (unit)}, {5, 1}, {4, 1}}}
/* clang-format on */

static const struct fixture fixtures[] = {
    {"lstm", "lstm", 1, 3, 4, {0}},
    {"lstm of 5 cells", "lstm", 1, 5, 4, {0}},
    {"gru", "gru", 1, 4, 3, {0}},
    {"slice", "slice", 1, 3, 7, {.offset = 2, .features_unit = 4}},
    {"concat", "concat", 2, 1, 1, .shape = {FEATURES(3, 2), FEATURES(3, 1)}},
    {"concat of 4", "concat", 4, 1, 1,
     .shape = {FEATURES(5, 1), FEATURES(5, 2), FEATURES(5, 1), FEATURES(5, 3)}},
    {"concat of counts", "concat_counts", 3, 1, 1,
     .shape = {FEATURES(2, 2), FEATURES(5, 2), FEATURES(1, 2)}},
    {"concat of channels", "concat_counts", 2, 1, 1, .shape = {IMAGE(3, 2), IMAGE(2, 2)}},
    {"regroup", "regroup", 1, 6, 2, {.features = 4, .features_unit = 3}},
    {"regroup into one", "regroup", 1, 5, 2, {.features = 10}},
    {"transpose", "transpose", 1, 7, 1, {0}},
    {"sum over positions", "reduce_sequence", 1, 3, 2, {0}},
    {"mean over positions", "reduce_sequence", 1, 5, 1, {.mean = 1}},
    {"sum over features", "reduce_features", 1, 3, 2, {0}},
    {"mean over features", "reduce_features", 1, 5, 1, {.mean = 1}},
    {"select", "select", 1, 3, 2, {.offset = 3}},
    {"dropout", "dropout", 1, 3, 4, {.rate = 0.4}},
    {"dropout of images", "dropout", 1, 1, 1, .attrs = {.rate = 0.25},
     .shape = {IMAGE(3, 2)}},
    {"softmax", "softmax", 1, 3, 2, {0}},
    {"mean of squares", "mse", 1, 3, 2, {0}},
};

/* Dropout of ones on the samples from 'first' on; returns how many of 'n' numbers stay. */
static int64_t drop_ones(const struct topt_op *op, int64_t step, int64_t first,
                         int64_t samples, double *ret, int64_t n)
{
    struct topt_device dev;
    struct topt_kernel_call c = {.op = op,
                                 .kernel = TOPT_K_DROPOUT_FWD,
                                 .step = step,
                                 .first_sample = first,
                                 .micro_batches = 1,
                                 .seed = 7};
    int64_t stay = 0;
    if (topt_device_open_host(TOPT_F64, &dev, NULL))
        abort();
    double *ones = malloc((size_t)n * sizeof *ones);
    for (int64_t i = 0; i < n; i++)
        ones[i] = 1;
    for (int o = 0; o < 2; o++)
        c.box[o] = (struct topt_box){{0}, {samples, SEQ, op->count[2]}};
    c.value[0] = ones;
    c.value[1] = ret;
    if (dev.ops->kernel(&dev, &c, NULL))
        abort();
    for (int64_t i = 0; i < n; i++)
        stay += ret[i] > 0;
    free(ones);
    return stay;
}

static void check_dropout(void)
{
    enum { D = 400, N = BATCH * SEQ * D, PART = SEQ * D };
    static double whole[N], later[N], part[PART];
    const struct fixture x = {"dropout", "dropout", 1, D, 1, {.rate = 0.25}};
    struct topt_model *m = build(&x);
    const struct topt_op *op = &m->op[m->nops - 1];
    int64_t stay = drop_ones(op, 3, 0, BATCH, whole, N);
    ok(stay > 0.72 * N && stay < 0.78 * N, "dropout lets %lld of %d through at rate 0.25",
       (long long)stay, N);
    double largest = 0;
    for (int i = 0; i < N; i++)
        largest = fmax(largest, whole[i]);
    ok(fabs(largest - 1 / 0.75) < 1e-15, "... and makes up for the others");
    drop_ones(op, 4, 0, BATCH, later, N);
    ok(memcmp(whole, later, sizeof whole) != 0, "another step drops others");
    drop_ones(op, 3, 2, 1, part, PART);
    ok(!memcmp(part, whole + 2 * PART, sizeof part),
       "a micro-batch drops what the whole batch does of its samples");
    topt_model_destroy(m);
}

int main(void)
{
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++)
        check_operator(&fixtures[i]);
    check_dropout();
    return done_testing();
}
