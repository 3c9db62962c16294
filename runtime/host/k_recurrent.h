/* k_recurrent.h - LSTM, GRU and plain recurrences, a step at a time (c->at).
 *
 *     LSTM   c' = f c + i g, h = o tanh(c')            (Gers et al. 2000: with forget gates)
 *     RNN    h' = f(.)                              (Elman 1990)
 *     GRU    h' = (1 - u) n + u h, n = tanh(. + r q)   (Cho et al. 2014, reset after product)
 *
 * What came before the first step is 0, and so is what comes back from behind the last
 * one: operands that would hold it may be absent then.  Backward goes from the last
 * step to the first and turns what was saved of a step into what the weights' gradient
 * needs of it: gates into their gradients, the state into the hidden state that the
 * step started from.  So the gradient of the weights is one product over all steps at
 * the end. */
#include "real.h"

/* Local sizes: samples, steps, cells, gates of a cell, inputs of the recurrent
 * product. */
struct steps {
    int64_t batch, n, cells, gates, k, at;
    int first, last;
};

static struct steps steps_of(const struct topt_kernel_call *c)
{
    return (struct steps){.batch = extent(c, REC_GATES, 0),
                          .n = extent(c, REC_GATES, 1),
                          .cells = extent(c, REC_Y, 2),
                          .gates = c->op->operand[REC_GATES].dim[2].unit,
                          .k = extent(c, REC_WH, 1),
                          .at = c->at,
                          .first = c->at == 0,
                          .last = c->at + 1 == c->op->count[1]};
}

/* Number of cell 'j' of sample 'b' in an operand by steps. */
static inline int64_t cell_at(const struct steps *s, int64_t b, int64_t j)
{
    return (b * s->n + s->at) * s->cells + j;
}

static void recurrent_fwd(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    int64_t width = s.cells * s.gates;
    gemm(&(struct gemm){.tb = 1,
                        .m = s.batch,
                        .n = width,
                        .k = s.first ? 0 : s.k,
                        .alpha = 1,
                        .a = c->value[REC_HK],
                        .lda = s.k,
                        .b = c->value[REC_WH],
                        .ldb = s.k,
                        .c = c->value[REC_Z],
                        .ldc = width});
}

static void recurrent_bwd_h(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    int64_t width = s.cells * s.gates;
    const real *gates = c->value[REC_GATES];
    gemm(&(struct gemm){.m = s.batch,
                        .n = s.k,
                        .k = s.last ? 0 : width,
                        .alpha = 1,
                        .a = s.last ? NULL : gates + (s.at + 1) * width,
                        .lda = s.n * width,
                        .b = c->value[REC_WH],
                        .ldb = s.k,
                        .c = c->value[REC_DHK],
                        .ldc = s.k});
}

static void recurrent_bwd_w(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    int64_t width = s.cells * s.gates;
    gemm(&(struct gemm){.ta = 1,
                        .m = width,
                        .n = s.k,
                        .k = s.batch * s.n,
                        .alpha = 1,
                        .beta = 1,
                        .a = c->value[REC_GATES],
                        .lda = width,
                        .b = c->value[REC_STATES],
                        .ldb = s.k,
                        .c = c->grad[REC_WH],
                        .ldc = s.k});
}

static void lstm_fwd(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    const real *pre = c->value[REC_PRE], *z = c->value[REC_Z];
    real *y = c->value[REC_Y], *gates = c->value[REC_GATES];
    real *state = c->value[REC_STATE], *h = c->value[REC_H];
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t j = 0; j < s.cells; j++) {
            int64_t at = cell_at(&s, b, j), out = b * s.cells + j;
            const real *p = pre + 4 * at, *q = z + 4 * out;
            real sum[4] = {p[0] + q[0], p[1] + q[1], p[2] + q[2], p[3] + q[3]};
            real before = s.first ? 0 : state[at - s.cells];
            y[at] = h[out] = lstm_cell(sum, before, gates + 4 * at, &state[at]);
        }
}

static void lstm_bwd(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    const real *dy = c->grad[REC_Y], *dh_next = c->value[REC_DH];
    real *gates = c->value[REC_GATES], *state = c->value[REC_STATE];
    real *carry = c->value[REC_CARRY], *dpre = c->grad[REC_PRE];
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t j = 0; j < s.cells; j++) {
            int64_t at = cell_at(&s, b, j), out = b * s.cells + j;
            real *p = gates + 4 * at, slope[4];
            const real *p_before = s.first ? NULL : p - 4 * s.cells;
            real before = s.first ? 0 : state[at - s.cells];
            real dh = dy[at] + (s.last ? 0 : dh_next[out]);
            carry[out] =
                lstm_slopes(p, before, state[at], dh, s.last ? 0 : carry[out], slope);
            state[at] = s.first ? 0 : p_before[3] * TANH(before);
            copy(p, slope, 4);
            copy(dpre ? dpre + 4 * at : NULL, slope, 4);
        }
}

static void gru_fwd(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    const real *pre = c->value[REC_PRE], *z = c->value[REC_Z], *bh = c->value[GRU_BH];
    real *y = c->value[REC_Y], *gates = c->value[REC_GATES], *q = c->value[GRU_Q];
    real *state = c->value[REC_STATE], *h = c->value[REC_H];
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t j = 0; j < s.cells; j++) {
            int64_t at = cell_at(&s, b, j), out = b * s.cells + j;
            const real *p = pre + 3 * at, *x = z + 3 * out;
            real sum[3] = {p[0] + x[0], p[1] + x[1], p[2]};
            real before = s.first ? 0 : state[at - s.cells];
            q[at] = x[2] + bh[j];
            y[at] = state[at] = h[out] = gru_cell(sum, q[at], before, gates + 3 * at);
        }
}

/* The third gate's place gets the gradient of q, which is what the product made. */
static void gru_bwd(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    const real *dy = c->grad[REC_Y], *dh_next = c->value[REC_DH], *q = c->value[GRU_Q];
    real *gates = c->value[REC_GATES], *state = c->value[REC_STATE];
    real *carry = c->value[REC_CARRY], *dpre = c->grad[REC_PRE], *dbh = c->grad[GRU_BH];
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t j = 0; j < s.cells; j++) {
            int64_t at = cell_at(&s, b, j), out = b * s.cells + j;
            real *p = gates + 3 * at, r = p[0], u = p[1], slope[3];
            real before = s.first ? 0 : state[at - s.cells];
            real dh = dy[at] + (s.last ? 0 : dh_next[out] + carry[out]);
            gru_slopes(p, q[at], before, dh, slope);
            copy(dpre ? dpre + 3 * at : NULL, slope, 3);
            slope[2] *= r;
            copy(p, slope, 3);
            carry[out] = dh * u;
            state[at] = before;
            if (dbh)
                dbh[j] += slope[2];
        }
}

static void rnn_fwd(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    const struct topt_attrs *t = c->op->attrs;
    const real *pre = c->value[REC_PRE], *z = c->value[REC_Z];
    real *y = c->value[REC_Y], *gates = c->value[REC_GATES];
    real *state = c->value[REC_STATE], *h = c->value[REC_H];
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t j = 0; j < s.cells; j++) {
            int64_t at = cell_at(&s, b, j), out = b * s.cells + j;
            gates[at] = pre[at] + z[out];
            y[at] = state[at] = h[out] =
                activate(t->activation, t->alpha, t->beta, gates[at]);
        }
}

static void rnn_bwd(const struct topt_kernel_call *c)
{
    struct steps s = steps_of(c);
    const struct topt_attrs *t = c->op->attrs;
    const real *dy = c->grad[REC_Y], *dh_next = c->value[REC_DH];
    real *gates = c->value[REC_GATES], *state = c->value[REC_STATE];
    real *dpre = c->grad[REC_PRE];
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t j = 0; j < s.cells; j++) {
            int64_t at = cell_at(&s, b, j), out = b * s.cells + j;
            real dh = dy[at] + (s.last ? 0 : dh_next[out]);
            gates[at] = dh * slope_of(t->activation, t->alpha, t->beta, gates[at]);
            state[at] = s.first ? 0 : state[at - s.cells];
            if (dpre)
                dpre[at] = gates[at];
        }
}
