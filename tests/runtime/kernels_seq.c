/* kernels_seq.c - the host kernels of sequences: recurrences, attention over two sequences,
 * and what cuts, joins and reduces features. */
#include "seq_fixtures.h"

/* ---- references ------------------------------------------------------------------------ */

/* Output of an operator whose inputs and parameters are given; freed by the caller. */
static double *output_of(const struct fixture *x, double *const in[])
{
    struct topt_model *m = build(x);
    const struct topt_op *op = &m->op[m->nops - 1];
    struct topt_config none = topt_config_none();
    struct topt_mesh one;
    struct whole w = {{0}, {0}, {0}};
    struct fake f;
    for (int o = 0; o < op->spec->noperands && *in; o++)
        if (op->operand[o].present &&
            (op->operand[o].role == TOPT_INPUT || op->operand[o].role == TOPT_PARAM))
            w.value[o] = *in++;
    if (topt_mesh_init(&one, 1, 1, NULL))
        abort();
    fake_init(&f, op, &one, &none, &w);
    fake_run(&f, 0);
    double *y = fake_join(&f, op->output, 0);
    fake_fini(&f);
    topt_model_destroy(m);
    return y;
}

static double *random_numbers(int64_t n, uint64_t stream)
{
    double *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++)
        x[i] = topt_random_normal(stream, (uint64_t)i);
    return x;
}

static double worst_of(const double *a, const double *b, int64_t n)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(a[i] - b[i]));
    return worst;
}

/* Numbers [at, at + width) of each 'unit' of n. */
static double *numbers_of(const double *x, int64_t n, int64_t unit, int64_t at,
                          int64_t width)
{
    double *y = malloc((size_t)(n / unit * width) * sizeof *y);
    for (int64_t i = 0; i < n / unit; i++)
        memcpy(y + i * width, x + i * unit + at, (size_t)width * sizeof *y);
    return y;
}

/* Queries, keys and values apart, rotated by an operator of their own, are what attention of
 * all in one does. */
static void check_attend(void)
{
    enum { KV = 2, GROUP = 3, HD = 4, UNIT = (GROUP + 2) * HD, N = BATCH * SEQ * KV };
    struct topt_attrs heads = {
        .heads = GROUP * KV, .kv_heads = KV, .head_dim = HD, .causal = 1};
    struct topt_attrs whole = heads, turn = {.head_dim = HD, .rope_theta = 100};
    struct topt_attrs turn_key = {.head_dim = 2 * HD, .rope_dim = HD, .rope_theta = 100};
    whole.rope_theta = 100;
    const struct fixture attention = {"", "attention", 1, KV, UNIT, .attrs = whole};
    const struct fixture rotary_q = {"", "rotary", 1, KV, GROUP * HD, .attrs = turn};
    const struct fixture rotary_kv = {"", "rotary", 1, KV, 2 * HD, .attrs = turn_key};
    const struct fixture attend = {
        "",
        "attention",
        2,
        1,
        1,
        .attrs = heads,
        .shape = {PAIR(SEQ, KV, GROUP * HD), PAIR(SEQ, KV, 2 * HD)}};
    double *x = random_numbers(N * UNIT, 1);
    double *q = numbers_of(x, N * UNIT, UNIT, 0, GROUP * HD);
    double *kv = numbers_of(x, N * UNIT, UNIT, GROUP * HD, 2 * HD);
    double *turned_q = output_of(&rotary_q, (double *[]){q, NULL});
    double *turned_kv = output_of(&rotary_kv, (double *[]){kv, NULL});
    double *y = output_of(&attend, (double *[]){turned_q, turned_kv, NULL});
    double *ref = output_of(&attention, (double *[]){x, NULL});
    double worst = worst_of(y, ref, N * GROUP * HD);
    ok(worst < 1e-13, "attend and rotary are attention (off by %.1e)", worst);
    double *all[] = {x, q, kv, turned_q, turned_kv, y, ref};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Of a key's numbers some may be the same for all heads: then each head has a copy of them. */
static void check_latent(void)
{
    enum { H = 3, OWN = 2, SHARED = 3, HD = OWN + SHARED, V = 4, N = BATCH * SEQ };
    struct topt_attrs heads = {.heads = H, .head_dim = HD, .v_head_dim = V};
    const struct fixture latent = {
        "",
        "attention",
        3,
        1,
        1,
        .attrs = heads,
        .shape = {PAIR(SEQ, H, HD), PAIR(SEQ, H, OWN + V), PAIR(SEQ, 1, SHARED)}};
    const struct fixture attend = {"",
                                   "attention",
                                   2,
                                   1,
                                   1,
                                   .attrs = heads,
                                   .shape = {PAIR(SEQ, H, HD), PAIR(SEQ, H, HD + V)}};
    double *q = random_numbers(N * H * HD, 1), *kr = random_numbers(N * SHARED, 2);
    double *kv = random_numbers(N * H * (OWN + V), 3);
    double *whole = malloc(sizeof *whole * N * H * (HD + V));
    for (int i = 0; i < N * H; i++) {
        memcpy(whole + i * (HD + V), kr + i / H * SHARED, SHARED * sizeof *kr);
        memcpy(whole + i * (HD + V) + SHARED, kv + i * (OWN + V), (OWN + V) * sizeof *kv);
    }
    double *y = output_of(&latent, (double *[]){q, kv, kr, NULL});
    double *ref = output_of(&attend, (double *[]){q, whole, NULL});
    double worst = worst_of(y, ref, N * H * V);
    ok(worst < 1e-13, "shared parts of keys are those of all heads (off by %.1e)", worst);
    double *all[] = {q, kr, kv, whole, y, ref};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Without queries and keys scores are the table's numbers: 8 exact buckets a side, then those
 * that start at 8 2^(k/2), up to a distance of 128. */
static void check_buckets(void)
{
    enum { N = 200, ROWS = 32, SIDE = ROWS / 2 };
    static const int start[SIDE] = {0, 1,  2,  3,  4,  5,  6,  7,
                                    8, 12, 16, 23, 32, 46, 64, 91};
    const struct fixture x = {
        "",
        "attention",
        3,
        1,
        1,
        .attrs = {.heads = 1, .head_dim = 1, .distance = 128},
        .shape = {LONG(N, 1), LONG(N, 2), {2, {{ROWS, 1}, {1, 1}}}}};
    double *q = calloc(N, sizeof *q), *kv = random_numbers(2 * N, 1);
    double *table = random_numbers(ROWS, 2), worst = 0;
    double *y = output_of(&x, (double *[]){q, kv, table, NULL});
    for (int i = 0; i < N; i++) {
        double sum = 0, weighted = 0;
        for (int j = 0; j < N; j++) {
            int bucket = SIDE - 1;
            while (start[bucket] > abs(j - i))
                bucket--;
            double p = exp(table[bucket + (j > i ? SIDE : 0)]);
            sum += p;
            weighted += p * kv[2 * j + 1];
        }
        worst = fmax(worst, fabs(y[i] - weighted / sum));
    }
    ok(worst < 1e-13, "buckets of relative positions (off by %.1e)", worst);
    double *all[] = {q, kv, table, y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Angles of Llama 3.1: of 64 pairs the fast 29 stay, the slow ones are divided by 8; and YaRN's
 * as DeepSeek-V3 has them: of 32 pairs the first 10 stay, those from the 23rd on are divided. */
static void check_angles(void)
{
    struct topt_attrs llama = {.rope_theta = 500000,
                               .rope_factor = 8,
                               .rope_context = 8192,
                               .rope_slow = 1,
                               .rope_fast = 4};
    struct topt_attrs yarn = {.rope_theta = 10000,
                              .rope_factor = 40,
                              .rope_context = 4096,
                              .rope_slow = 1,
                              .rope_fast = 32,
                              .rope_by_pair = 1};
    struct topt_attrs plain = {.rope_theta = 500000}, plain_yarn = {.rope_theta = 10000};
    int kept = 0, divided = 0, between = 0;
    for (int j = 0; j < 64; j++) {
        double share = topt_rope_step(&llama, 128, j) / topt_rope_step(&plain, 128, j);
        kept += share > 1 - 1e-12;
        divided += share < 1.0 / 8 + 1e-12;
        between += share > 1.0 / 8 + 1e-12 && share < 1 - 1e-12;
    }
    ok(kept == 29 && divided == 29 && between == 6,
       "Llama 3.1: %d kept, %d divided, %d between", kept, divided, between);
    kept = divided = 0;
    for (int j = 0; j < 32; j++) {
        double share = topt_rope_step(&yarn, 64, j) / topt_rope_step(&plain_yarn, 64, j);
        kept += share > 1 - 1e-12;
        divided += share < 1.0 / 40 + 1e-12;
    }
    ok(kept == 11 && divided == 9, "YaRN: %d kept, %d divided", kept, divided);
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* One sample through cells, step by step, as textbooks have it. */
static void check_cells(int gates)
{
    enum { N = 3 };
    const struct fixture x = {"", gates == 4 ? "lstm" : "gru", 1, N, gates};
    double *pre = random_numbers((int64_t)BATCH * SEQ * N * gates, 1);
    double *wh = random_numbers(N * gates * N, 2), *bh = random_numbers(N, 3);
    double h[N] = {0}, c[N] = {0}, worst = 0;
    double *y = output_of(&x, (double *[]){pre, wh, gates == 3 ? bh : NULL, NULL});
    for (int t = 0; t < SEQ; t++) {
        double z[N * 4] = {0}, next[N];
        for (int i = 0; i < N * gates; i++)
            for (int k = 0; k < N; k++)
                z[i] += wh[i * N + k] * h[k];
        for (int j = 0; j < N; j++) {
            const double *p = pre + (t * N + j) * gates, *q = z + j * gates;
            if (gates == 4) {
                c[j] = logistic(p[1] + q[1]) * c[j] +
                       logistic(p[0] + q[0]) * tanh(p[2] + q[2]);
                next[j] = logistic(p[3] + q[3]) * tanh(c[j]);
            } else {
                double u = logistic(p[1] + q[1]);
                double n = tanh(p[2] + logistic(p[0] + q[0]) * (q[2] + bh[j]));
                next[j] = (1 - u) * n + u * h[j];
            }
        }
        memcpy(h, next, sizeof h);
        worst = fmax(worst, worst_of(y + t * N, h, N));
    }
    ok(worst < 1e-14, "%s is its equations (off by %.1e)", x.kind, worst);
    free(pre);
    free(wh);
    free(bh);
    free(y);
}

/* ---- dropout --------------------------------------------------------------------------- */

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
    ok(100 * stay > 72 * N && 100 * stay < 78 * N,
       "dropout lets %lld of %d through at rate 0.25", (long long)stay, N);
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

/* Attention again, beside padding behind, before and on both sides of a text, and some weights
 * dropped: the slopes are those of what is computed, on all splits. */
static void check_beside(void)
{
    for (size_t i = 0; i < sizeof seq_fixtures / sizeof *seq_fixtures; i++) {
        struct fixture x = seq_fixtures[i];
        char title[128];
        if (strcmp(x.kind, "attention") != 0)
            continue;
        snprintf(title, sizeof title, "%s, padded and with dropout", x.title);
        x.title = title;
        fake_beside =
            (struct fake_beside){.dropout = 0.3, .filled = {0, 3, 2, 5, 1, 4, 0, 5}};
        check_operator(&x);
        fake_beside = (struct fake_beside){0};
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof seq_fixtures / sizeof *seq_fixtures; i++)
        check_operator(&seq_fixtures[i]);
    check_beside();
    check_attend();
    check_latent();
    check_buckets();
    check_angles();
    check_cells(4);
    check_cells(3);
    check_dropout();
    return done_testing();
}
