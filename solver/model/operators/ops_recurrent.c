/* ops_recurrent.c - rows of the operator table: recurrences over the sequence.
 *
 * One layer, one direction.  The product with the inputs of all steps is an ordinary
 * linear before it (features n, units of 4 or 3 gates, its bias a bias row), so that
 * only the product with the hidden state is left to the steps.  The hidden state has
 * two roles with extents alike: n, what the cells make, and k, what the next step's
 * product takes.  Step by step:
 *
 *     z[b,n] = h[b,k] wh[n,k]     summed over k where it is split
 *     cell:  z, pre -> gates, state, h[b,n]
 *     h[b,n] moves to h[b,k]      a gather where n is split
 *
 * and backward the same in reverse, where the gradient by k is partial over n.  k is
 * of the class STAT: its sums are in the steps, and all ranks along it hold the same
 * cells. */
#include "ops_extents.h"
#include "ops_rows.h"

/* Operands that the rows have in common; shared kernels rely on the numbers. */
enum { PRE, WH, Y, GATES, STATE };

static int shape_recurrent(struct topt_op *op, int64_t gates, struct topt_error *err)
{
    enum { B, S, N, K, Z = 5 };
    if (topt_refuse_units(op, PRE, gates, err))
        return -1;
    topt_counts_from_input(op, PRE);
    op->count[K] = op->count[N];
    topt_set_dim(op, WH, 0, gates);
    topt_set_dim(op, WH, 1, 1);
    topt_set_dim(op, Y, 2, 1);
    topt_set_dim(op, GATES, 2, gates);
    topt_set_dim(op, Z, 1, gates);
    return 0;
}

static int shape_lstm(struct topt_op *op, struct topt_error *err)
{
    return shape_recurrent(op, 4, err);
}

static int shape_gru(struct topt_op *op, struct topt_error *err)
{
    return shape_recurrent(op, 3, err);
}

/* One gate, and nothing but the hidden state that goes on. */
static int shape_rnn(struct topt_op *op, struct topt_error *err)
{
    enum { CARRY = 10 };
    if (op->attrs->activation < 0 || op->attrs->activation >= TOPT_ACT_COUNT)
        return topt_fail(err, TOPT_ERR_INVAL, "unknown activation %d",
                         op->attrs->activation);
    op->operand[CARRY].present = 0;
    return shape_recurrent(op, 1, err);
}

/* Products exactly; a cell by what its exponentials and products come to. */
static int64_t flops_recurrent(const struct topt_op *op, enum topt_kernel k,
                               const int64_t *len)
{
    enum { B, S, N, K };
    int64_t product = 2 * len[B] * len[N] * op->operand[PRE].dim[2].unit * len[K];
    switch (k) {
    case TOPT_K_RECURRENT_FWD:
    case TOPT_K_RECURRENT_BWD_H:
        return product;
    case TOPT_K_RECURRENT_BWD_W:
        return product * len[S];
    default:
        return 40 * len[B] * len[N];
    }
}

/* clang-format off */
#define DIMS {BATCH, {"s", TOPT_SPLIT_NEVER}, {"n", TOPT_SPLIT_FEATURE}, {"k", TOPT_SPLIT_STAT}}
#define SHARED_OPERANDS                                                                    \
    OPERAND("pre", INPUT, OVER(0, 1, 2)),                      \
    OPERAND("wh", PARAM, OVER(2, 3),                         \
     .start = TOPT_START_FAN_IN),                                                          \
    OPERAND("y", OUTPUT, OVER(0, 1, 2)),                       \
    OPERAND("gates", SAVED, OVER(0, 1, 2)),                    \
    OPERAND("state", SAVED, OVER(0, 1, 2)),                    \
    OPERAND("z", WORK_FWD, OVER(0, 2)),                        \
    OPERAND("h", WORK_FWD, OVER(0, 2)),                        \
    OPERAND("hk", WORK_FWD, OVER(0, 3), .made = 1),            \
    OPERAND("dhk", WORK_BWD, OVER(0, 3), .partial = 1),        \
    OPERAND("dh", WORK_BWD, OVER(0, 2), .made = 1),            \
    OPERAND("carry", WORK_BWD, OVER(0, 2)),                    \
    OPERAND("states", WORK_BWD, OVER(0, 1, 3), .made = 1)
/* clang-format on */

const struct topt_op_spec topt_ops_recurrent[] = {
    /* Gates of a unit in the order i, f, g, o.  The state is the cell's; in backward the
     * gates become their gradients and the state the hidden state of the step before. */
    {.name = "lstm",
     .ndims = 4,
     .dim = DIMS,
     .noperands = 12,
     .operand = {SHARED_OPERANDS},
     .forward = {KERNEL_AT(1, RECURRENT_FWD, V(1) | V(7), V(5)), SUM_AT(1, 5, D(3)),
                 KERNEL_AT(1, LSTM_FWD, V(0) | V(4) | V(5), V(2) | V(3) | V(4) | V(6)),
                 MOVE_AT(1, 6, 7)},
     .backward = {KERNEL_AT(1, RECURRENT_BWD_H, V(1) | V(3), V(8)), MOVE_AT(1, 8, 9),
                  KERNEL_AT(1, LSTM_BWD, V(3) | V(4) | V(9) | V(10) | G(2),
                            V(3) | V(4) | V(10) | G(0)),
                  MOVE(4, 11), KERNEL(RECURRENT_BWD_W, V(3) | V(11), G(1))},
     .shape = shape_lstm,
     .flops = flops_recurrent},
    /* Gates in the order r, u, n; the reset gate is applied after the product with the
     * hidden state (n = tanh(pre + r (wh h + bh)), cuDNN's form), so that a step has
     * one product.  The state is the hidden state. */
    {.name = "gru",
     .ndims = 4,
     .dim = DIMS,
     .noperands = 14,
     .operand = {SHARED_OPERANDS, OPERAND("q", SAVED, OVER(0, 1, 2)),
                 OPERAND("bh", PARAM, OVER(2), .start = TOPT_START_ZERO)},
     .forward = {KERNEL_AT(1, RECURRENT_FWD, V(1) | V(7), V(5)), SUM_AT(1, 5, D(3)),
                 KERNEL_AT(1, GRU_FWD, V(0) | V(4) | V(5) | V(13),
                           V(2) | V(3) | V(4) | V(6) | V(12)),
                 MOVE_AT(1, 6, 7)},
     .backward = {KERNEL_AT(1, RECURRENT_BWD_H, V(1) | V(3), V(8)), MOVE_AT(1, 8, 9),
                  KERNEL_AT(1, GRU_BWD, V(3) | V(4) | V(9) | V(10) | V(12) | G(2),
                            V(3) | V(4) | V(10) | G(0) | G(13)),
                  MOVE(4, 11), KERNEL(RECURRENT_BWD_W, V(3) | V(11), G(1))},
     .shape = shape_gru,
     .flops = flops_recurrent},
    /* h' = f(pre + wh h) (Elman 1990).  What is saved as a gate is what f is taken of. */
    {.name = "rnn",
     .attrs = A(ACT) | A(ALPHA) | A(BETA),
     .ndims = 4,
     .dim = DIMS,
     .noperands = 12,
     .operand = {SHARED_OPERANDS},
     .forward = {KERNEL_AT(1, RECURRENT_FWD, V(1) | V(7), V(5)), SUM_AT(1, 5, D(3)),
                 KERNEL_AT(1, RNN_FWD, V(0) | V(5), V(2) | V(3) | V(4) | V(6)),
                 MOVE_AT(1, 6, 7)},
     .backward = {KERNEL_AT(1, RECURRENT_BWD_H, V(1) | V(3), V(8)), MOVE_AT(1, 8, 9),
                  KERNEL_AT(1, RNN_BWD, V(3) | V(4) | V(9) | G(2), V(3) | V(4) | G(0)),
                  MOVE(4, 11), KERNEL(RECURRENT_BWD_W, V(3) | V(11), G(1))},
     .shape = shape_rnn,
     .flops = flops_recurrent},
    {.name = NULL},
};
