/* k_attention.h - grouped-query attention, causal or not, with rotary positions.
 *
 * One query head at a time: scores of the whole sequence in the operator's [s, s] work
 * buffer, two matrix products around a softmax of rows.  Backward recomputes the
 * probabilities from qkv and the saved log-sum-exp.  Nothing else is allocated: rotated
 * vectors are kept where a result will stand later, and the other side of each product is
 * rotated in strips of a few rows on the stack:
 *     forward    y's slot holds the rotated keys until the weighted sum replaces them
 *     backward   dq's slot holds the rotated queries until the scores' gradient is known
 * Where a text is made token by token, forward begins with the call's 'at': the queries before
 * it are done, their keys and values stand in qkv.  Rotation is orthogonal, so gradients are
 * rotated back by the opposite angle.
 */
#include "real.h"

enum { STRIP_ELEMENTS = 4096 };

/* Rows of head_dim numbers, 'ld' apart. */
struct heads {
    int64_t s, hd, q; /* sequence, head size, query heads of a key-value head */
    int64_t first;    /* forward: queries before this one are done */
    int64_t ldx, ldy; /* row strides of qkv and of y */
    double scale;
    int causal;
    const struct topt_attrs *rope; /* NULL: nothing is turned */
};

static struct heads heads_of(const struct topt_kernel_call *c)
{
    const struct topt_attrs *a = &c->op->attrs;
    return (struct heads){.s = c->len[2],
                          .first = c->at,
                          .hd = a->head_dim,
                          .q = a->heads / a->kv_heads,
                          .ldx = cols_of(c, 0),
                          .ldy = cols_of(c, 1),
                          .scale =
                              a->scale > 0 ? a->scale : 1 / sqrt((double)a->head_dim),
                          .causal = a->causal,
                          .rope = a->rope_theta > 0 ? a : NULL};
}

/* dst = rows [first, first + n) rotated by their positions; sign -1 turns back.  May
 * be in place.  Without rotation: a plain copy.  Along a pair's rows the angle grows
 * by a constant, so cosine and sine are stepped instead of called (in double: off by n
 * * 1e-16). */
static void rotate(const struct heads *h, real *dst, int64_t ldd, const real *src,
                   int64_t lds, int64_t first, int64_t n, double sign)
{
    int64_t half = h->hd / 2;
    if (!h->rope) {
        for (int64_t i = 0; i < n && dst != src; i++)
            memcpy(dst + i * ldd, src + i * lds, (size_t)h->hd * sizeof *dst);
        return;
    }
    for (int64_t j = 0; j < half; j++) {
        double step = sign * topt_rope_step(h->rope, h->hd, j);
        double co = cos(step * (double)first), si = sin(step * (double)first);
        double dco = cos(step), dsi = sin(step);
        for (int64_t i = 0; i < n; i++) {
            const real *x = src + i * lds + j;
            real *y = dst + i * ldd + j;
            double a = (double)x[0], b = (double)x[half], t = co * dco - si * dsi;
            y[0] = R(a * co - b * si);
            y[half] = R(a * si + b * co);
            si = si * dco + co * dsi;
            co = t;
        }
    }
}

static int64_t strip_rows(const struct heads *h)
{
    int64_t n = STRIP_ELEMENTS / h->hd;
    return n < h->s ? n : h->s;
}

/* p = softmax(scale * p) by rows in place; lse is 'ldl' apart. */
static void softmax_rows(const struct heads *h, real *p, real *lse, int64_t ldl)
{
    for (int64_t i = h->first; i < h->s; i++) {
        real *row = p + i * h->s;
        int64_t n = h->causal ? i + 1 : h->s;
        real max = max_of(row, n), scale = R(h->scale);
        for (int64_t j = 0; j < n; j++)
            row[j] = EXP(scale * (row[j] - max));
        double sum = sum_of(row, n);
        real inverse = R(1 / sum);
        for (int64_t j = 0; j < n; j++)
            row[j] *= inverse;
        memset(row + n, 0, (size_t)(h->s - n) * sizeof *row);
        lse[i * ldl] = R(log(sum) + h->scale * (double)max);
    }
}

/* One head forward: q, k, v point into qkv, y into the output. */
static void head_fwd(const struct heads *h, const real *q, const real *k, const real *v,
                     real *y, real *p, real *lse, int64_t ldl)
{
    real strip[STRIP_ELEMENTS];
    int64_t step = strip_rows(h);
    rotate(h, y, h->ldy, k, h->ldx, 0, h->s, 1);
    for (int64_t i = h->first; i < h->s; i += step) {
        int64_t n = h->s - i < step ? h->s - i : step;
        rotate(h, strip, h->hd, q + i * h->ldx, h->ldx, i, n, 1);
        gemm(&(struct gemm){.tb = 1,
                            .m = n,
                            .n = h->s,
                            .k = h->hd,
                            .alpha = 1,
                            .a = strip,
                            .lda = h->hd,
                            .b = y,
                            .ldb = h->ldy,
                            .c = p + i * h->s,
                            .ldc = h->s});
    }
    softmax_rows(h, p, lse, ldl);
    gemm(&(struct gemm){.m = h->s - h->first,
                        .n = h->hd,
                        .k = h->s,
                        .alpha = 1,
                        .a = p + h->first * h->s,
                        .lda = h->s,
                        .b = v,
                        .ldb = h->ldx,
                        .c = y + h->first * h->ldy,
                        .ldc = h->ldy});
}

static void attention_fwd(const struct topt_kernel_call *c)
{
    enum { QKV, Y, LSE, WORK };
    struct heads h = heads_of(c);
    const real *qkv = c->value[QKV];
    real *y = c->value[Y], *lse = c->value[LSE];
    int64_t ldl = cols_of(c, LSE);
    for (int64_t b = 0; b < c->len[0] && h.s > 0; b++)
        for (int64_t g = 0; g < c->len[1]; g++)
            for (int64_t i = 0; i < h.q; i++) {
                const real *base = qkv + b * h.s * h.ldx + g * (h.q + 2) * h.hd;
                head_fwd(&h, base + i * h.hd, base + h.q * h.hd, base + (h.q + 1) * h.hd,
                         y + b * h.s * h.ldy + (g * h.q + i) * h.hd, c->value[WORK],
                         lse + b * h.s * ldl + g * h.q + i, ldl);
            }
}

/* Probabilities again, from rotated queries (rows 'ldx' apart, in dq's slot). */
static void head_probabilities(const struct heads *h, const real *rq, const real *k,
                               real *p, const real *lse, int64_t ldl)
{
    real strip[STRIP_ELEMENTS];
    int64_t step = strip_rows(h);
    for (int64_t j = 0; j < h->s; j += step) {
        int64_t n = h->s - j < step ? h->s - j : step;
        rotate(h, strip, h->hd, k + j * h->ldx, h->ldx, j, n, 1);
        gemm(&(struct gemm){.tb = 1,
                            .m = h->s,
                            .n = n,
                            .k = h->hd,
                            .alpha = h->scale,
                            .a = rq,
                            .lda = h->ldx,
                            .b = strip,
                            .ldb = h->hd,
                            .c = p + j,
                            .ldc = h->s});
    }
    for (int64_t i = 0; i < h->s; i++) {
        real *row = p + i * h->s, shift = lse[i * ldl];
        int64_t n = h->causal ? i + 1 : h->s;
        for (int64_t j = 0; j < n; j++)
            row[j] = EXP(row[j] - shift);
        memset(row + n, 0, (size_t)(h->s - n) * sizeof *row);
    }
}

/* dp becomes the gradient of the unscaled scores: scale p (dp - sum of p dp in the
 * row). */
static void softmax_rows_bwd(const struct heads *h, const real *p, real *dp)
{
    for (int64_t i = 0; i < h->s; i++) {
        const real *pr = p + i * h->s;
        real *dr = dp + i * h->s;
        double sum = 0;
        for (int64_t j = 0; j < h->s; j++)
            sum += (double)pr[j] * (double)dr[j];
        real mean = R(sum), scale = R(h->scale);
        for (int64_t j = 0; j < h->s; j++)
            dr[j] = scale * pr[j] * (dr[j] - mean);
    }
}

/* dq = ds k~ by strips of rotated keys, then turned back. */
static void head_query_grad(const struct heads *h, const real *ds, const real *k,
                            real *dq)
{
    real strip[STRIP_ELEMENTS];
    int64_t step = strip_rows(h);
    for (int64_t j = 0; j < h->s; j += step) {
        int64_t n = h->s - j < step ? h->s - j : step;
        rotate(h, strip, h->hd, k + j * h->ldx, h->ldx, j, n, 1);
        gemm(&(struct gemm){.m = h->s,
                            .n = h->hd,
                            .k = n,
                            .alpha = 1,
                            .beta = j > 0 ? 1 : 0,
                            .a = ds + j,
                            .lda = h->s,
                            .b = strip,
                            .ldb = h->hd,
                            .c = dq,
                            .ldc = h->ldx});
    }
    rotate(h, dq, h->ldx, dq, h->ldx, 0, h->s, -1);
}

/* What the queries give to keys or values: the transpose of their scores times 'b', added to what
 * is there where 'more'. */
static void add_keys(const struct heads *h, const real *scores, const real *b,
                     int64_t ldb, int more, real *c)
{
    gemm(&(struct gemm){.ta = 1,
                        .m = h->s,
                        .n = h->hd,
                        .k = h->s,
                        .alpha = 1,
                        .beta = more ? 1 : 0,
                        .a = scores,
                        .lda = h->s,
                        .b = b,
                        .ldb = ldb,
                        .c = c,
                        .ldc = h->ldx});
}

/* One group: its query heads share a key and a value, whose gradients add up. */
static void group_bwd(const struct topt_kernel_call *c, const struct heads *h,
                      const real *x, real *dx, const real *dy, const real *lse,
                      int64_t ldl)
{
    enum { P = 4, DP = 5 };
    real *p = c->value[P], *dp = c->value[DP];
    const real *k = x + h->q * h->hd, *v = k + h->hd;
    real *dk = dx + h->q * h->hd, *dv = dk + h->hd;
    for (int64_t i = 0; i < h->q; i++) {
        real *dq = dx + i * h->hd;
        const real *dyi = dy + i * h->hd;
        rotate(h, dq, h->ldx, x + i * h->hd, h->ldx, 0, h->s, 1);
        head_probabilities(h, dq, k, p, lse + i, ldl);
        add_keys(h, p, dyi, h->ldy, i > 0, dv);
        gemm(&(struct gemm){.tb = 1,
                            .m = h->s,
                            .n = h->s,
                            .k = h->hd,
                            .alpha = 1,
                            .a = dyi,
                            .lda = h->ldy,
                            .b = v,
                            .ldb = h->ldx,
                            .c = dp,
                            .ldc = h->s});
        softmax_rows_bwd(h, p, dp);
        add_keys(h, dp, dq, h->ldx, i > 0, dk);
        head_query_grad(h, dp, k, dq);
    }
    rotate(h, dk, h->ldx, dk, h->ldx, 0, h->s, -1);
}

static void attention_bwd(const struct topt_kernel_call *c)
{
    enum { QKV, Y, LSE };
    struct heads h = heads_of(c);
    const real *x = c->value[QKV], *dy = c->grad[Y], *lse = c->value[LSE];
    real *dx = c->grad[QKV];
    int64_t ldl = cols_of(c, LSE);
    for (int64_t b = 0; dx && b < c->len[0] && h.s > 0; b++)
        for (int64_t g = 0; g < c->len[1]; g++) {
            int64_t at = b * h.s * h.ldx + g * (h.q + 2) * h.hd;
            group_bwd(c, &h, x + at, dx + at, dy + b * h.s * h.ldy + g * h.q * h.hd,
                      lse + b * h.s * ldl + g * h.q, ldl);
        }
}
