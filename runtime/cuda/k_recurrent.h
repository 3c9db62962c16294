/* k_recurrent.h - LSTM, GRU and plain recurrences, a step at a time, a thread a cell of a
 * sample; as the host's k_recurrent.h, where the equations are.
 *
 * Backward turns what was saved of a step into what the weights' gradient needs of it. */
#include "real.h"

/* Cell 'i' of all samples: its number by steps, and in the operand after it. */
struct rec_cell {
    int64_t at, out, cells;
    int first, last;
};

DEVICE struct rec_cell rec_cell_of(const struct cu_call *c, int64_t b, int64_t j)
{
    enum { STEPS = 1 };
    struct rec_cell x;
    x.cells = c->cols[REC_Y];
    x.at = (b * c->len[STEPS] + c->at) * x.cells + j;
    x.out = b * x.cells + j;
    x.first = c->at == 0;
    x.last = c->at + 1 == c->len[STEPS];
    return x;
}

DEVICE num rec_get(const struct cu_call *c, int o, int64_t i)
{
    return get(IN(c->value[o]), i);
}

DEVICE void rec_put(const struct cu_call *c, int o, int64_t i, num x)
{
    put(OUT(c->value[o]), i, x);
}

DEVICE num rec_before(const struct cu_call *c, const struct rec_cell *x)
{
    return x->first ? N(0) : rec_get(c, REC_STATE, x->at - x->cells);
}

/* The gradient of the hidden state: from above, and from the next step. */
DEVICE num rec_dh(const struct cu_call *c, const struct rec_cell *x)
{
    return get(IN(c->grad[REC_Y]), x->at) + (x->last ? N(0) : rec_get(c, REC_DH, x->out));
}

static inline int64_t rec_blocks(const struct cu_call *c)
{
    return blocks_for(c->batch * c->cols[REC_Y]);
}

KERNEL lstm_fwd_each(CALL(cu_call) c)
{
    EACH(i, c.batch * c.cols[REC_Y])
    {
        struct rec_cell x =
            rec_cell_of(&c, quotient(i, c.cols[REC_Y]), rest(i, c.cols[REC_Y]));
        num sum[4], gate[4], cell;
        for (int k = 0; k < 4; k++)
            sum[k] =
                rec_get(&c, REC_PRE, 4 * x.at + k) + rec_get(&c, REC_Z, 4 * x.out + k);
        num y = lstm_cell(sum, rec_before(&c, &x), gate, &cell);
        for (int k = 0; k < 4; k++)
            rec_put(&c, REC_GATES, 4 * x.at + k, gate[k]);
        rec_put(&c, REC_STATE, x.at, cell);
        rec_put(&c, REC_Y, x.at, y);
        rec_put(&c, REC_H, x.out, y);
    }
}

static int lstm_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(lstm_fwd_each, rec_blocks(c), stream, c);
    return 0;
}

KERNEL lstm_bwd_each(CALL(cu_call) c)
{
    EACH(i, c.batch * c.cols[REC_Y])
    {
        struct rec_cell x =
            rec_cell_of(&c, quotient(i, c.cols[REC_Y]), rest(i, c.cols[REC_Y]));
        num gate[4], d[4], before = rec_before(&c, &x);
        for (int k = 0; k < 4; k++)
            gate[k] = rec_get(&c, REC_GATES, 4 * x.at + k);
        num carry =
            lstm_slopes(gate, before, rec_get(&c, REC_STATE, x.at), rec_dh(&c, &x),
                        x.last ? N(0) : rec_get(&c, REC_CARRY, x.out), d);
        for (int k = 0; k < 4; k++) {
            rec_put(&c, REC_GATES, 4 * x.at + k, d[k]);
            if (c.grad[REC_PRE])
                put(OUT(c.grad[REC_PRE]), 4 * x.at + k, d[k]);
        }
        rec_put(&c, REC_CARRY, x.out, carry);
        rec_put(&c, REC_STATE, x.at,
                x.first
                    ? N(0)
                    : rec_get(&c, REC_GATES, 4 * (x.at - x.cells) + 3) * TANH(before));
    }
}

static int lstm_bwd(void *stream, const struct cu_call *c)
{
    LAUNCH(lstm_bwd_each, rec_blocks(c), stream, c);
    return 0;
}

KERNEL gru_fwd_each(CALL(cu_call) c)
{
    EACH(i, c.batch * c.cols[REC_Y])
    {
        int64_t j = rest(i, c.cols[REC_Y]);
        struct rec_cell x = rec_cell_of(&c, quotient(i, c.cols[REC_Y]), j);
        num sum[3], gate[3];
        for (int k = 0; k < 3; k++)
            sum[k] = rec_get(&c, REC_PRE, 3 * x.at + k) +
                     (k < 2 ? rec_get(&c, REC_Z, 3 * x.out + k) : N(0));
        num q = rec_get(&c, REC_Z, 3 * x.out + 2) + rec_get(&c, GRU_BH, j);
        num y = gru_cell(sum, q, rec_before(&c, &x), gate);
        rec_put(&c, GRU_Q, x.at, q);
        for (int k = 0; k < 3; k++)
            rec_put(&c, REC_GATES, 3 * x.at + k, gate[k]);
        rec_put(&c, REC_Y, x.at, y);
        rec_put(&c, REC_STATE, x.at, y);
        rec_put(&c, REC_H, x.out, y);
    }
}

static int gru_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(gru_fwd_each, rec_blocks(c), stream, c);
    return 0;
}

/* The third gate's place gets the gradient of q, which is what the product made; returns
 * it. */
DEVICE num gru_bwd_cell(const struct cu_call *c, int64_t b, int64_t j)
{
    struct rec_cell x = rec_cell_of(c, b, j);
    num gate[3], d[3], before = rec_before(c, &x);
    for (int k = 0; k < 3; k++)
        gate[k] = rec_get(c, REC_GATES, 3 * x.at + k);
    num dh = rec_dh(c, &x) + (x.last ? N(0) : rec_get(c, REC_CARRY, x.out));
    gru_slopes(gate, rec_get(c, GRU_Q, x.at), before, dh, d);
    for (int k = 0; k < 3; k++) {
        rec_put(c, REC_GATES, 3 * x.at + k, k == 2 ? d[k] * gate[0] : d[k]);
        if (c->grad[REC_PRE])
            put(OUT(c->grad[REC_PRE]), 3 * x.at + k, d[k]);
    }
    rec_put(c, REC_CARRY, x.out, dh * gate[1]);
    rec_put(c, REC_STATE, x.at, before);
    return d[2] * gate[0];
}

/* A thread has a cell of all samples, whose bias they share. */
KERNEL gru_bwd_each(CALL(cu_call) c)
{
    EACH(j, c.cols[REC_Y])
    {
        wide sum = 0;
        for (int64_t b = 0; b < c.batch; b++)
            sum += W(gru_bwd_cell(&c, b, j));
        if (c.grad[GRU_BH])
            accumulate(c.grad[GRU_BH], wide_grad(&c, GRU_BH), j, sum);
    }
}

static int gru_bwd(void *stream, const struct cu_call *c)
{
    LAUNCH(gru_bwd_each, blocks_for(c->cols[REC_Y]), stream, c);
    return 0;
}

KERNEL rnn_fwd_each(CALL(cu_call) c)
{
    EACH(i, c.batch * c.cols[REC_Y])
    {
        struct rec_cell x =
            rec_cell_of(&c, quotient(i, c.cols[REC_Y]), rest(i, c.cols[REC_Y]));
        num gate = rec_get(&c, REC_PRE, x.at) + rec_get(&c, REC_Z, x.out);
        rec_put(&c, REC_GATES, x.at, gate);
        rec_put(&c, REC_Y, x.at, activated(&c, gate));
        rec_put(&c, REC_STATE, x.at, activated(&c, gate));
        rec_put(&c, REC_H, x.out, activated(&c, gate));
    }
}

static int rnn_fwd(void *stream, const struct cu_call *c)
{
    LAUNCH(rnn_fwd_each, rec_blocks(c), stream, c);
    return 0;
}

KERNEL rnn_bwd_each(CALL(cu_call) c)
{
    EACH(i, c.batch * c.cols[REC_Y])
    {
        struct rec_cell x =
            rec_cell_of(&c, quotient(i, c.cols[REC_Y]), rest(i, c.cols[REC_Y]));
        num d = rec_dh(&c, &x) * slope(&c, rec_get(&c, REC_GATES, x.at));
        num before = rec_before(&c, &x);
        rec_put(&c, REC_GATES, x.at, d);
        rec_put(&c, REC_STATE, x.at, before);
        if (c.grad[REC_PRE])
            put(OUT(c.grad[REC_PRE]), x.at, d);
    }
}

static int rnn_bwd(void *stream, const struct cu_call *c)
{
    LAUNCH(rnn_bwd_each, rec_blocks(c), stream, c);
    return 0;
}
