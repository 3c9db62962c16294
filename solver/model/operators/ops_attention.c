/* ops_attention.c - rows of the operator table: attention and what belongs to it.
 *
 * Queries, keys and values of a key-value head lie in one tensor ('packed'), or queries in one
 * and keys with their values in another, of the same sequence or not.  Packed they are of the
 * same positions, so neither queries nor keys are split by them, and rotary embeddings may
 * rotate them inside.  Where they are apart both sequences may be split: queries freely, keys
 * by merging what each part makes of its own softmax (as Dao et al. 2022 merge tiles):
 *
 *     m = max of the parts' log-sum-exps, w = sum of e^(lse - m), y = sum of e^(lse - m) / w y
 */
#include "ops_extents.h"
#include "ops_rows.h"

#include <math.h>
#include <string.h>

/* Heads of one size in whole groups; products of these are far from overflowing. */
static int check_heads(struct topt_attrs *a, struct topt_error *err)
{
    enum { MOST = 1 << 20 };
    if (a->kv_heads == 0)
        a->kv_heads = a->heads;
    if (a->heads < 1 || a->kv_heads < 1 || a->head_dim < 1 || a->heads % a->kv_heads)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "heads %lld, kv_heads %lld, head_dim %lld do not fit together",
                         (long long)a->heads, (long long)a->kv_heads,
                         (long long)a->head_dim);
    if (a->heads > MOST || a->head_dim > MOST || a->v_head_dim > MOST)
        return topt_fail(err, TOPT_ERR_LIMIT,
                         "more than 2^20 heads, or numbers of a head");
    return 0;
}

/* ---- rotary angles ----------------------------------------------------------------- */

static double clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

/* How much of the unscaled angle is kept: 0 where it is slow, 1 where it is fast. */
static double share_kept(const struct topt_attrs *a, double width, double pair,
                         double step)
{
    double whole = 2 * M_PI, positions = (double)a->rope_context, from, to;
    if (!a->rope_context)
        return 0;
    if (!a->rope_by_pair) {
        double turns = positions * step / whole, slow = a->rope_slow, fast = a->rope_fast;
        return fast > slow ? clamp((turns - slow) / (fast - slow), 0, 1) : turns > slow;
    }
    double per_turn = width / (2 * log(a->rope_theta));
    from = floor(per_turn * log(positions / (a->rope_fast * whole)));
    to = ceil(per_turn * log(positions / (a->rope_slow * whole)));
    from = from > 0 ? from : 0;
    to = to < width - 1 ? to : width - 1;
    return 1 - clamp((pair - from) / (to > from ? to - from : 0.001), 0, 1);
}

double topt_rope_step(const struct topt_attrs *a, int64_t width, int64_t pair)
{
    double step = pow(a->rope_theta, -(double)(2 * pair) / (double)width);
    if (!(a->rope_factor > 0))
        return step;
    double kept = share_kept(a, (double)width, (double)pair, step);
    return step * (kept + (1 - kept) / a->rope_factor);
}

/* By turns of a base above 1 only, and slow ones make fewer than fast ones. */
static int check_rope(const struct topt_attrs *a, struct topt_error *err)
{
    if (!(a->rope_factor > 0) || !a->rope_context)
        return 0;
    if (!(a->rope_slow > 0) || a->rope_fast < a->rope_slow)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "rope_slow %g and rope_fast %g are no turns of slow and of fast "
                         "angles",
                         a->rope_slow, a->rope_fast);
    return !a->rope_by_pair || a->rope_theta > 1
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "rope_by_pair needs a rope_theta above 1");
}

/* ---- as frameworks run it ----------------------------------------------------------- */

/* Scores as Korthikanti et al. (2022) count them: written by a product, read and
 * written by softmax and by dropout, read by the next product; kept are softmax's and
 * dropout's outputs and a byte each that says what was dropped.  With a share of 0 PyTorch's dropout returns what it is given
 * (_dropout_impl of aten/src/ATen/native/Dropout.cpp).  'wide': softmax is in f32, and what the next product reads
 * is its copy (transformers v5.12.1, models/bloom and models/mpt, which have no other attention). */
static struct topt_eager eager_scores(int64_t heads, int64_t queries, int64_t keys,
                                      int64_t value, const struct topt_attrs *a)
{
    int64_t pairs = heads * queries * keys, key = a->head_dim;
    int drops = !a->undropped, wide = a->written;
    return (struct topt_eager){
        .flops = {2 * pairs * (key + value), 4 * pairs * (key + value)},
        .outputs = {pairs + heads * queries * value,
                    pairs + heads * (queries * key + keys * (key + value))},
        .moved = {{.real = (4 + 2 * drops) * pairs, .bytes = drops * pairs},
                  {.real = (7 + 2 * drops) * pairs, .bytes = drops * pairs}},
        .kernels = {3 + drops, 7 + drops},
        .kept = {.real = wide ? pairs : (1 + drops) * pairs,
                 .f32 = wide ? pairs : 0,
                 .bytes = wide ? 0 : drops * pairs},
        .work = {{.real = pairs}, {.real = 2 * pairs}}};
}

/* A rotation by products of complex numbers in f32: to f32, product, back. */
enum { ROTATION_KERNELS = 3 };
static struct topt_numbers eager_rotation(int64_t n)
{
    return (struct topt_numbers){.real = 2 * n, .f32 = 4 * n};
}

/* ---- attention --------------------------------------------------------------------- */

enum {
    BLOCK_ROWS = 64,
    MOST_BUCKETS = 1024,
    DEFAULT_DISTANCE = 128,
    MOST_ROTATED = 1024
};

/* Its dimensions and operands. */
enum { B, H, S, T, ONE, R };
enum { Q, KV, KR, RP, Y, LSE, MOST, WEIGHT, SCORES, P, DP, DELTA };

static int check_lengths(const struct topt_op *op, struct topt_error *err)
{
    int64_t s = op->count[S], t = op->count[T];
    if (op->attrs->causal && t < s)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a causal mask over %lld queries needs as many keys, not %lld",
                         (long long)s, (long long)t);
    if (s > 1 << 22 || t > 1 << 22)
        return topt_fail(err, TOPT_ERR_LIMIT, "attention over more than 2^22 positions");
    return 0;
}

/* A table of relative positions: buckets of one side, or of both where there is no
 * mask. */
static int check_relative(struct topt_op *op, struct topt_error *err)
{
    struct topt_attrs *a = op->attrs;
    const struct topt_dim *table = op->operand[RP].dim;
    if (!op->operand[RP].present)
        return a->distance ? topt_fail(err, TOPT_ERR_INVAL,
                                       "a distance, but no table of relative positions")
                           : 0;
    int64_t rows = table[0].count, side = a->causal ? rows : rows / 2;
    a->distance = a->distance ? a->distance : DEFAULT_DISTANCE;
    if (a->heads != a->kv_heads || a->cap > 0)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a table of relative positions needs as many kv_heads as heads, "
                         "and no cap");
    if (table[0].unit != 1 || rows > MOST_BUCKETS || side < 2 ||
        side * (a->causal ? 1 : 2) != rows || a->distance <= side / 2)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a table of %lld relative positions does not go with a distance "
                         "of %lld",
                         (long long)rows, (long long)a->distance);
    op->count[R] = rows;
    return topt_refuse_units(op, RP, 1, err);
}

static int check_mask(const struct topt_attrs *a, struct topt_error *err)
{
    if (a->chunk && !a->causal)
        return topt_fail(err, TOPT_ERR_INVAL, "a chunk of keys needs a causal mask");
    return a->factor < 0 || (a->factor > 0 && !a->causal)
               ? topt_fail(
                     err, TOPT_ERR_INVAL,
                     "a factor of distances is not below 0, and needs a causal mask")
               : 0;
}

static int is_packed(const struct topt_op *op)
{
    return !op->operand[KV].present;
}

/* Numbers of a value. */
static int64_t value_dim(const struct topt_attrs *a)
{
    return a->v_head_dim ? a->v_head_dim : a->head_dim;
}

static int check_rotation(const struct topt_op *op, struct topt_error *err)
{
    const struct topt_attrs *a = op->attrs;
    if (!(a->rope_theta > 0))
        return 0;
    if (!is_packed(op))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "a rope_theta goes with queries, keys and values in one tensor; "
                         "apart they are rotated by operators of their own");
    if (a->head_dim % 2 || a->head_dim > MOST_ROTATED || value_dim(a) != a->head_dim)
        return topt_fail(
            err, TOPT_ERR_INVAL,
            "rotary embedding needs an even head_dim of at most %d, and values "
            "of as many numbers",
            MOST_ROTATED);
    return check_rope(a, err);
}

/* Counts of the dimensions, and what the inputs have of each. */
static int read_inputs(struct topt_op *op, struct topt_error *err)
{
    struct topt_attrs *a = op->attrs;
    int64_t group = a->heads / a->kv_heads;
    int64_t shared = op->operand[KR].present ? op->operand[KR].dim[2].unit : 0;
    int64_t kv = a->head_dim - shared + value_dim(a);
    if (!is_packed(op))
        topt_counts_from_input(op, KV);
    topt_counts_from_input(op, Q);
    op->count[ONE] = op->count[R] = 1;
    if (is_packed(op)) {
        op->count[T] = op->count[S];
        op->whole = D(S) | D(T);
    }
    if (op->count[H] != a->kv_heads)
        return topt_fail(err, TOPT_ERR_INVAL, "input has %lld key-value heads, not %lld",
                         (long long)op->count[H], (long long)a->kv_heads);
    if (shared >= a->head_dim)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%lld numbers of a key are shared, of a head_dim of %lld",
                         (long long)shared, (long long)a->head_dim);
    if (is_packed(op))
        return topt_refuse_units(op, Q, group * a->head_dim + kv, err);
    return topt_refuse_units(op, Q, group * a->head_dim, err) ||
                   topt_refuse_units(op, KV, kv, err)
               ? -1
               : 0;
}

/* Rotated keys of a head stand behind the scores of a block of queries. */
static int shape_attention(struct topt_op *op, struct topt_error *err)
{
    static const int by_head[] = {LSE, MOST, WEIGHT, DELTA};
    struct topt_attrs *a = op->attrs;
    if (check_heads(a, err))
        return -1;
    if (!is_packed(op))
        a->v_head_dim = value_dim(a);
    if (check_mask(a, err) || check_rotation(op, err) || read_inputs(op, err) ||
        check_lengths(op, err) || check_relative(op, err))
        return -1;
    int64_t group = a->heads / a->kv_heads, keys = a->rope_theta > 0 ? a->head_dim : 0;
    int64_t rows = op->count[S] < BLOCK_ROWS ? op->count[S] : BLOCK_ROWS;
    topt_set_dim(op, Y, 2, group * value_dim(a));
    for (int i = 0; i < 4; i++)
        topt_set_dim(op, by_head[i], 2, group);
    topt_set_dim(op, SCORES, 0, rows + keys);
    topt_set_dim(op, P, 0, rows + keys);
    topt_set_dim(op, DP, 0, rows);
    return 0;
}

/* Pairs of a query and a key in a box: the mask's mean share of them all. */
static double pairs_of(const struct topt_op *op, const int64_t *len)
{
    double s = (double)op->count[S], t = (double)op->count[T];
    double w = (double)op->attrs->window, c = (double)op->attrs->chunk, share = 1;
    if (!op->attrs->causal && w > 0 && w < t)
        share = ((2 * w - 1) * t - w * (w - 1)) / (t * t);
    if (op->attrs->causal)
        share = w > 0 && w < t ? w * (2 * t - w) / (2 * t * t) : 1 - s / (2 * t);
    if (c > 0 && c < t && c / (2 * t) < share)
        share = c / (2 * t);
    return (double)len[S] * (double)len[T] * share;
}

int topt_op_attends(const struct topt_op *op)
{
    for (const struct topt_step *t = op->spec->forward; t->kind != TOPT_STEP_END; t++)
        if (t->kind == TOPT_STEP_KERNEL && t->kernel == TOPT_K_ATTENTION_FWD)
            return 1;
    return 0;
}

int topt_op_has(const struct topt_op *op, const char *operand)
{
    for (int x = 0; x < op->spec->noperands; x++)
        if (op->operand[x].present && !strcmp(op->spec->operand[x].name, operand))
            return 1;
    return 0;
}

int topt_model_attends(const struct topt_model *m)
{
    int i = 0;
    while (i < m->nops && !topt_op_attends(&m->op[i]))
        i++;
    return i < m->nops;
}

int64_t topt_attention_keys(const struct topt_op *op)
{
    int64_t keys = op->count[T], window = op->attrs->window, chunk = op->attrs->chunk;
    keys = window > 0 && window < keys ? window : keys;
    return chunk > 0 && chunk < keys ? chunk : keys;
}

/* Scores and weighted sum forward; backward does both again and three more products, and
 * where keys are split also the rows' sums before them. */
static int64_t flops_attention(const struct topt_op *op, enum topt_kernel k,
                               const int64_t *len)
{
    int64_t heads = len[B] * len[H] * (op->attrs->heads / op->attrs->kv_heads);
    int64_t keys = op->attrs->head_dim, values = value_dim(op->attrs), width;
    switch (k) {
    case TOPT_K_ATTENTION_FWD:
        width = keys + values;
        break;
    case TOPT_K_ATTENTION_BWD:
        width = 3 * keys + 2 * values;
        break;
    case TOPT_K_ATTENTION_DELTA:
        width = keys + values;
        break;
    default:
        return 8 * heads * len[S] * values;
    }
    return 2 * heads * (int64_t)(pairs_of(op, len) * (double)width);
}

static enum topt_eager_how eager_attention(const struct topt_op *op, const int64_t *len,
                                           int writes, struct topt_eager *ret)
{
    const struct topt_attrs *a = op->attrs;
    int64_t group = a->heads / a->kv_heads, heads = len[B] * len[H] * group;
    int scores = writes & TOPT_EAGER_WRITES_SCORES || a->written;
    *ret = (struct topt_eager){0};
    if (scores)
        *ret = eager_scores(heads, len[S], len[T], value_dim(a), a);
    else if (writes & TOPT_EAGER_TURNS && len[B] > 1) {
        /* The copy is what the next product keeps; one sample lies the same in both orders. */
        int64_t out = heads * len[S] * value_dim(a);
        ret->kept.real = out;
        for (int i = 0; i < 2; i++) {
            ret->moved[i].real = 2 * out;
            ret->kernels[i] = 1;
        }
    }
    for (int i = 0; writes & TOPT_EAGER_ROTATES && a->rope_theta > 0 && i < 2; i++) {
        struct topt_numbers r =
            eager_rotation(len[B] * len[S] * len[H] * (group + 1) * a->head_dim);
        ret->moved[i].real += r.real;
        ret->moved[i].f32 += r.f32;
        ret->kernels[i] += 2 * ROTATION_KERNELS;
    }
    return scores ? TOPT_EAGER_INSTEAD : TOPT_EAGER_BESIDE;
}

int topt_op_turns(const struct topt_op *op)
{
    return op->spec->eager == eager_attention;
}

/* ---- rotary ------------------------------------------------------------------------ */

static int shape_rotary(struct topt_op *op, struct topt_error *err)
{
    struct topt_attrs *a = op->attrs;
    int64_t unit = op->operand[0].dim[2].unit;
    if (a->head_dim == 0)
        a->head_dim = unit;
    if (a->rope_dim == 0)
        a->rope_dim = a->head_dim;
    if (!(a->rope_theta > 0))
        a->rope_theta = 10000;
    if (check_rope(a, err))
        return -1;
    if (unit % a->head_dim || a->rope_dim > a->head_dim || a->rope_dim % 2)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "rope_dim %lld and head_dim %lld do not fit units of %lld",
                         (long long)a->rope_dim, (long long)a->head_dim, (long long)unit);
    if (a->rope_dim > MOST_ROTATED)
        return topt_fail(err, TOPT_ERR_LIMIT, "rope_dim %lld is more than %d",
                         (long long)a->rope_dim, MOST_ROTATED);
    return topt_shape_same(op, err);
}

static enum topt_eager_how eager_rotary(const struct topt_op *op, const int64_t *len,
                                        int writes, struct topt_eager *ret)
{
    struct topt_numbers r = eager_rotation(topt_output_numbers(op, len));
    (void)writes;
    *ret = (struct topt_eager){.moved = {r, r},
                               .kernels = {ROTATION_KERNELS, ROTATION_KERNELS}};
    return TOPT_EAGER_INSTEAD;
}

/* ---- rows -------------------------------------------------------------------------- */

#define ROPE                                                                             \
    (A(ROPE_THETA) | A(ROPE_FACTOR) | A(ROPE_CONTEXT) | A(ROPE_SLOW) | A(ROPE_FAST) |    \
     A(ROPE_BY_PAIR))
/* What is merged where keys are split, and what stands there for a block of queries. */
/* clang-format off */
#define OF_PARTS(n, when) OPERAND(n, when, OVER(B, S, H), .wide = 1, .over = D(T))
#define BY_KEY(n, when)   OPERAND(n, when, OVER(T), .wide = 1)
/* clang-format on */

const struct topt_op_spec topt_ops_attention[] = {
    /* A count of q holds the heads of a group, one of kv the key and then the value
     * that they share; without kv they follow the group's heads in q.  With 'kr' the first
     * numbers of each key come from there and are the same for all heads (multi-head latent
     * attention).  Query i sees the keys up to i + t - s where causal, the last 'window' of
     * them where that is set (where not causal as many to both sides, its own counted in each),
     * those of its own run of 'chunk' where that is.  With 'rp', a table of numbers by head,
     * one is added to each score by how far key and query are apart: in buckets, exact at
     * first, then growing as powers up to 'distance' (Raffel et al. 2020); where there is no
     * mask the second half of the table is for keys after the query. With a factor each score
     * is less by the distance, times the factor and a slope of the head (ALiBi: Press et al.,
     * 2022).  Scores are kept for a few queries at a time. */
    {.name = "attention",
     .attrs = A(HEADS) | A(KV_HEADS) | A(HEAD_DIM) | A(V_HEAD_DIM) | A(CAUSAL) |
              A(WRITTEN) | A(UNDROPPED) | A(WINDOW) | A(CHUNK) | A(SCALE) | A(CAP) |
              A(DISTANCE) | A(FACTOR) | ROPE,
     .ndims = 6,
     .dim = {BATCH,
             {"h", TOPT_SPLIT_FEATURE},
             SEQ,
             {"t", TOPT_SPLIT_SEQUENCE},
             {"one", TOPT_SPLIT_NEVER},
             {"r", TOPT_SPLIT_NEVER}},
     .within = D(ONE),
     .noperands = 12,
     .operand = {OPERAND("q", INPUT, OVER(B, S, H)),
                 OPERAND("kv", INPUT, OVER(B, T, H), .optional = 1),
                 OPERAND("kr", INPUT, OVER(B, T, ONE), .optional = 1),
                 OPERAND("rp", INPUT, OVER(R, H), .optional = 1),
                 OPERAND("y", OUTPUT, OVER(B, S, H)),
                 OPERAND("lse", SAVED, OVER(B, S, H), .wide = 1),
                 OF_PARTS("most", WORK_FWD), OF_PARTS("weight", WORK_FWD),
                 BY_KEY("scores", WORK_FWD), BY_KEY("p", WORK_BWD),
                 BY_KEY("dp", WORK_BWD), OF_PARTS("delta", WORK_BWD)},
     .forward = {KERNEL(ATTENTION_FWD, V(Q) | V(KV) | V(KR) | V(RP) | V(SCORES),
                        V(Y) | V(LSE) | V(MOST)),
                 MAX(MOST, D(T)),
                 KERNEL_OVER(D(T), ATTENTION_WEIGHT, V(LSE) | V(MOST), V(WEIGHT)),
                 SUM(WEIGHT, D(T)),
                 KERNEL_OVER(D(T), ATTENTION_MERGE, V(Y) | V(LSE) | V(MOST) | V(WEIGHT),
                             V(Y) | V(LSE))},
     .backward = {KERNEL_OVER(D(T), ATTENTION_DELTA,
                              V(Q) | V(KV) | V(KR) | V(RP) | V(LSE) | V(P) | V(DP) | G(Y),
                              V(DELTA)),
                  SUM(DELTA, D(T)),
                  KERNEL(ATTENTION_BWD,
                         V(Q) | V(KV) | V(KR) | V(RP) | V(LSE) | V(P) | V(DP) | V(DELTA) |
                             G(Y),
                         G(Q) | G(KV) | G(KR) | G(RP))},
     .shape = shape_attention,
     .flops = flops_attention,
     .eager = eager_attention},
    /* The first rope_dim of each head_dim numbers are turned by their position, number
     * j with number j + rope_dim / 2. */
    {.name = "rotary",
     .attrs = A(HEAD_DIM) | A(ROPE_DIM) | A(SCALE) | ROPE,
     .ndims = 3,
     .dim = {BATCH, SEQ, FEATURES},
     .noperands = 2,
     .operand = {OPERAND("x", INPUT, OVER(0, 1, 2)), OPERAND("y", OUTPUT, OVER(0, 1, 2))},
     .forward = {KERNEL(ROTARY_FWD, V(0), V(1))},
     .backward = {KERNEL(ROTARY_BWD, G(1), G(0))},
     .shape = shape_rotary,
     .flops = topt_flops_elementwise,
     .eager = eager_rotary},
    {.name = NULL},
};
