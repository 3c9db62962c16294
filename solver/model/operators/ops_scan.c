/* ops_scan.c - rows of the operator table: recurrences over the sequence that are linear
 * in their state, so that they can be computed by chunks of it.
 *
 * A head carries a matrix from position to position.  Within a chunk what it makes of it
 * are matrix products as those of attention; from chunk to chunk the state goes on, and
 * the state at the start of each chunk is kept for backward.  Heads may be split as
 * features are; what several heads read alike (keys, queries) every rank of a split has
 * whole, and its gradient is then a sum over them. */
#include "ops_extents.h"
#include "ops_rows.h"

enum { DEFAULT_CHUNK = 64, MOST_CHUNK = 1024, MOST_STATE = 1 << 20 };

/* Dimensions of these rows. */
enum { B, S, H, G, CHUNKS, ONE };

/* Positions of a chunk, which is no longer than the sequence; -1 with an error. */
static int64_t chunk_of(struct topt_op *op, struct topt_error *err)
{
    int64_t chunk = op->attrs->chunk ? op->attrs->chunk : DEFAULT_CHUNK;
    if (chunk < 1 || chunk > MOST_CHUNK)
        return topt_fail(err, TOPT_ERR_INVAL, "needs a chunk of 1 to %d positions",
                         MOST_CHUNK);
    op->attrs->chunk = chunk;
    op->count[CHUNKS] = (op->count[S] + chunk - 1) / chunk;
    op->count[ONE] = 1;
    return chunk < op->count[S] ? chunk : op->count[S];
}

/* Keys and queries of 'state' numbers, side by side, that whole runs of heads share. */
static int shared_by_heads(struct topt_op *op, int operand, int64_t *ret_state,
                           struct topt_error *err)
{
    struct topt_dim x = op->operand[operand].dim[2];
    op->count[G] = x.count;
    *ret_state = x.unit / 2;
    if (x.unit % 2 || x.unit > MOST_STATE)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "input '%s' has units of %lld, two times the state is needed",
                         op->spec->operand[operand].name, (long long)x.unit);
    return op->count[H] % x.count
               ? topt_fail(err, TOPT_ERR_INVAL,
                           "%lld heads can't share %lld groups of keys",
                           (long long)op->count[H], (long long)x.count)
               : 0;
}

/* ---- Mamba-2 ----------------------------------------------------------------------- */

static int shape_ssd(struct topt_op *op, struct topt_error *err)
{
    enum { X, DT, BC, Y = 6, STATES, WORK, WORK_BACK, CARRY };
    int64_t n, p = op->operand[X].dim[2].unit;
    topt_counts_from_input(op, X);
    int64_t len = chunk_of(op, err);
    if (len < 0 || shared_by_heads(op, BC, &n, err) || topt_refuse_units(op, DT, 1, err))
        return -1;
    if (op->attrs->beta > 0 && op->attrs->beta < op->attrs->alpha)
        return topt_fail(err, TOPT_ERR_INVAL, "steps can't be from %g to %g",
                         op->attrs->alpha, op->attrs->beta);
    topt_set_dim(op, Y, 2, p);
    topt_set_dim(op, STATES, 2, n * p);
    topt_set_dim(op, WORK, 0, 2 * len * len + len * p);
    topt_set_dim(op, WORK_BACK, 0, 4 * len * len + len * (p + n));
    topt_set_dim(op, CARRY, 0, n * p);
    return 0;
}

/* By chunks (Dao and Gu 2024): scores and weighted sum within one as attention has them,
 * of half of all pairs, what a chunk adds to the state and what it reads of it. */
static int64_t flops_of(const struct topt_op *op, const int64_t *len, int64_t state,
                        int64_t width)
{
    int64_t chunk = op->attrs->chunk < op->count[S] ? op->attrs->chunk : op->count[S];
    int64_t token = chunk * (state + width) + 4 * state * width;
    return len[B] * len[S] * len[H] * token;
}

static int64_t flops_ssd(const struct topt_op *op, enum topt_kernel k, const int64_t *len)
{
    enum { X, BC = 2 };
    int64_t once =
        flops_of(op, len, op->operand[BC].dim[2].unit / 2, op->operand[X].dim[2].unit);
    return once * (k == TOPT_K_SSD_FWD ? 1 : 2);
}

/* ---- gated delta rule -------------------------------------------------------------- */

static int shape_delta(struct topt_op *op, struct topt_error *err)
{
    enum { V, QK, BETA, GATE, Y = 6, STATES, WORK, WORK_BACK, CARRY };
    int64_t n, p = op->operand[V].dim[2].unit;
    topt_counts_from_input(op, V);
    int64_t len = chunk_of(op, err);
    if (len < 0 || shared_by_heads(op, QK, &n, err) ||
        topt_refuse_units(op, BETA, 1, err) || topt_refuse_units(op, GATE, 1, err))
        return -1;
    if (!(op->attrs->eps > 0))
        op->attrs->eps = 1e-6;
    topt_set_dim(op, Y, 2, p);
    topt_set_dim(op, STATES, 2, n * p);
    topt_set_dim(op, WORK, 0, 4 * len * len + 2 * len * (n + p));
    topt_set_dim(op, WORK_BACK, 0, 5 * len * len + len * (5 * n + 4 * p));
    topt_set_dim(op, CARRY, 0, n * p);
    return 0;
}

static int64_t flops_delta(const struct topt_op *op, enum topt_kernel k,
                           const int64_t *len)
{
    enum { V, QK };
    int64_t once =
        flops_of(op, len, op->operand[QK].dim[2].unit / 2, op->operand[V].dim[2].unit);
    return once * (k == TOPT_K_DELTA_FWD ? 1 : 2);
}

/* ---- Mamba ------------------------------------------------------------------------- */

static int shape_selective(struct topt_op *op, struct topt_error *err)
{
    enum { X, DT, KEY, QUERY, Y = 6, STATES, WORK_BACK, CARRY };
    topt_counts_from_input(op, X);
    op->count[G] = op->operand[KEY].dim[2].count;
    int64_t len = chunk_of(op, err);
    if (len < 0 || topt_refuse_units(op, X, 1, err) ||
        topt_refuse_units(op, DT, 1, err) || topt_refuse_units(op, KEY, 1, err) ||
        topt_refuse_units(op, QUERY, 1, err))
        return -1;
    if (op->count[G] > MOST_CHUNK)
        return topt_fail(err, TOPT_ERR_LIMIT, "more than %d numbers of a state",
                         MOST_CHUNK);
    topt_set_dim(op, Y, 2, 1);
    topt_set_dim(op, STATES, 2, op->count[G]);
    topt_set_dim(op, WORK_BACK, 0, (len + 1) * op->count[G]);
    topt_set_dim(op, CARRY, 0, op->count[G]);
    return 0;
}

/* Of each number of the state: what it decays by, the step that it takes, what is added
 * and what is read. */
static int64_t flops_selective(const struct topt_op *op, enum topt_kernel k,
                               const int64_t *len)
{
    int64_t once = 9 * len[B] * len[S] * len[H] * op->count[G];
    return once * (k == TOPT_K_SELECTIVE_FWD ? 1 : 2);
}

/* ---- rows -------------------------------------------------------------------------- */

/* clang-format off */
#define DIMS                                                                             \
    {BATCH, {"s", TOPT_SPLIT_NEVER}, {"h", TOPT_SPLIT_FEATURE}, {"g", TOPT_SPLIT_NEVER}, \
     {"c", TOPT_SPLIT_NEVER}, {"one", TOPT_SPLIT_NEVER}}
#define OF_HEADS(n)  OPERAND(n, INPUT, OVER(B, S, H))
#define OF_GROUPS(n) OPERAND(n, INPUT, OVER(B, S, G))
#define PARAM(n, how) \
    OPERAND(n, PARAM, OVER(H), .start = TOPT_START_##how)
#define OUTPUT       OPERAND("y", OUTPUT, OVER(B, S, H))
#define STATES_KEPT  OPERAND("states", SAVED, OVER(B, CHUNKS, H))
#define ROOM(n, dir) OPERAND(n, WORK_##dir, OVER(ONE))
#define CARRIED      OPERAND("carry", WORK_BWD, OVER(H))
/* clang-format on */

const struct topt_op_spec topt_ops_scan[] = {
    /* State space duality (Dao and Gu, 2024).  A head of x has 'unit' numbers, a group of
     * bc as many of b as of c; with dt = softplus(dt + bias) between alpha and beta
     * (where that is not 0) and a = -e^a_log, the state h and what is made of it are
     *     h' = e^(a dt) h + dt b x^T,  y = c h' + d x. */
    {.name = "ssd",
     .attrs = A(CHUNK) | A(ALPHA) | A(BETA),
     .ndims = 6,
     .dim = DIMS,
     .noperands = 11,
     .operand = {OF_HEADS("x"), OF_HEADS("dt"), OF_GROUPS("bc"), PARAM("a_log", DECAY),
                 PARAM("d", ONE), PARAM("bias", STEP), OUTPUT, STATES_KEPT,
                 ROOM("work", FWD), ROOM("work_back", BWD), CARRIED},
     .forward = {KERNEL(SSD_FWD, V(0) | V(1) | V(2) | V(3) | V(4) | V(5) | V(8),
                        V(6) | V(7))},
     .backward = {KERNEL(
         SSD_BWD, V(0) | V(1) | V(2) | V(3) | V(4) | V(5) | V(7) | V(9) | V(10) | G(6),
         G(0) | G(1) | G(2) | G(3) | G(4) | G(5))},
     .shape = shape_ssd,
     .flops = flops_ssd},
    /* The gated delta rule (Yang et al., 2024).  A head of v has 'unit' numbers, a group
     * of qk as many of q as of k, both made of length 1; with beta its sigmoid and the
     * gate g = -e^a_log softplus(gate + bias), the state and what is made of it are
     *     h' = e^g h + k (beta (v - k e^g h))^T,  y = q h' / sqrt(width of k). */
    {.name = "delta_rule",
     .attrs = A(CHUNK) | A(EPS),
     .ndims = 6,
     .dim = DIMS,
     .noperands = 11,
     .operand = {OF_HEADS("v"), OF_GROUPS("qk"), OF_HEADS("beta"), OF_HEADS("gate"),
                 PARAM("a_log", DECAY), PARAM("bias", ONE), OUTPUT, STATES_KEPT,
                 ROOM("work", FWD), ROOM("work_back", BWD), CARRIED},
     .forward = {KERNEL(DELTA_FWD, V(0) | V(1) | V(2) | V(3) | V(4) | V(5) | V(8),
                        V(6) | V(7))},
     .backward = {KERNEL(
         DELTA_BWD, V(0) | V(1) | V(2) | V(3) | V(4) | V(5) | V(7) | V(9) | V(10) | G(6),
         G(0) | G(1) | G(2) | G(3) | G(4) | G(5))},
     .shape = shape_delta,
     .flops = flops_delta},
    /* Selective state spaces (Gu and Dao, 2023): each number of x has a state of its own
     * of as many numbers as b and c have; dt = softplus(dt), a = -e^a_log, and
     *     h' = e^(a dt) h + dt b x,  y = c h' + d x. */
    {.name = "selective_scan",
     .attrs = A(CHUNK),
     .ndims = 6,
     .dim = DIMS,
     .noperands = 10,
     .operand = {OF_HEADS("x"), OF_HEADS("dt"), OF_GROUPS("b"), OF_GROUPS("c"),
                 OPERAND("a_log", PARAM, OVER(H, G), .start = TOPT_START_DECAY),
                 PARAM("d", ONE), OUTPUT, STATES_KEPT, ROOM("work_back", BWD), CARRIED},
     .forward = {KERNEL(SELECTIVE_FWD, V(0) | V(1) | V(2) | V(3) | V(4) | V(5),
                        V(6) | V(7))},
     .backward = {KERNEL(SELECTIVE_BWD,
                         V(0) | V(1) | V(2) | V(3) | V(4) | V(5) | V(7) | V(8) | V(9) |
                             G(6),
                         G(0) | G(1) | G(2) | G(3) | G(4) | G(5))},
     .shape = shape_selective,
     .flops = flops_selective},
    {.name = NULL},
};
