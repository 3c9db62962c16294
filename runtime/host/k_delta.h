/* k_delta.h - the gated delta rule by chunks (Yang et al., 2024).
 *
 * With E[t, j] the decay from position j to t of a chunk, S the state at its start, q and
 * k of length 1 (q times 1 / sqrt(n)), and w[j] the decay from j to the chunk's end:
 *     A = beta[i] (k k^T) * E below the diagonal,  P = (q k^T) * E up to it
 *     (I + A) u = beta (v - e^sum k S)             what each position writes
 *     y = P u + e^sum[t] q S
 *     S' = e^sum[end] S + k^T (w u)
 * The system is triangular, so it is solved row by row; its transpose is what backward
 * solves.  Products q k^T, k k^T and the gradients of q and k belong to all heads of a
 * group. */
#include "real.h"

/* Of a chunk: sigmoids of beta, sums of the gates' exponents, and their slopes by what
 * they are made of. */
struct delta_gates {
    double a, beta[SCAN_CHUNK], gate[SCAN_CHUNK], slope[SCAN_CHUNK], sum[SCAN_CHUNK];
};

static void delta_gates(const struct topt_kernel_call *c, const struct scan *s,
                        const struct scan_at *at, int64_t h, struct delta_gates *ret)
{
    const real *beta = c->value[DELTA_BETA], *gate = c->value[DELTA_GATE];
    const real *a_log = c->value[DELTA_A_LOG], *bias = c->value[DELTA_BIAS];
    double sum = 0;
    ret->a = -exp((double)a_log[h]);
    for (int64_t t = 0; t < at->len; t++) {
        int64_t i = at->one + t * s->heads;
        double x = (double)gate[i] + (double)bias[h];
        ret->beta[t] = logistic((double)beta[i]);
        ret->gate[t] = ret->a * softplus(x);
        ret->slope[t] = ret->a * logistic(x);
        ret->sum[t] = sum += ret->gate[t];
    }
}

/* What a chunk works with; 'q' to 'kk' are of a group, those from 'dq' to the carried one
 * are backward's. */
struct delta {
    real *q, *k, *qk, *kk, *a, *p, *u, *old;
    real *dq, *dk, *dp, *keys, *du, *rows, *carry;
    double scale; /* of products of queries */
};

static double delta_scale(const struct scan *s)
{
    return 1 / sqrt((double)s->n);
}

static struct delta delta_forward(const struct topt_kernel_call *c, const struct scan *s,
                                  int64_t len)
{
    real *work = c->value[DELTA_WORK];
    struct delta w = {.q = work, .scale = delta_scale(s)};
    w.k = w.q + len * s->n;
    w.qk = w.k + len * s->n;
    w.kk = w.qk + len * len;
    w.a = w.kk + len * len;
    w.p = w.a + len * len;
    w.u = w.p + len * len;
    w.old = w.u + len * s->p;
    return w;
}

static struct delta delta_backward(const struct topt_kernel_call *c, const struct scan *s,
                                   int64_t len, int64_t h)
{
    real *work = c->value[DELTA_WORK_BACK];
    struct delta w = {.q = work, .scale = delta_scale(s)};
    w.k = w.q + len * s->n;
    w.dq = w.k + len * s->n;
    w.dk = w.dq + len * s->n;
    w.keys = w.dk + len * s->n;
    w.qk = w.keys + len * s->n;
    w.kk = w.qk + len * len;
    w.a = w.kk + len * len;
    w.p = w.a + len * len;
    w.dp = w.p + len * len;
    w.u = w.dp + len * len;
    w.old = w.u + len * s->p;
    w.du = w.old + len * s->p;
    w.rows = w.du + len * s->p;
    w.carry = (real *)c->value[DELTA_CARRY] + h * s->n * s->p;
    return w;
}

/* dst = x of length 1, row by row. */
static void delta_unit_rows(real *dst, const real *x, int64_t ld, int64_t len, int64_t n,
                            double eps)
{
    for (int64_t t = 0; t < len; t++) {
        const real *row = x + t * ld;
        set_times(dst + t * n, 1 / sqrt(dot(row, row, n) + eps), row, n);
    }
}

/* dx += the gradient of x, by that of what has length 1. */
static void delta_unit_rows_bwd(real *dx, const real *x, int64_t ld, const real *unit,
                                const real *dunit, int64_t len, int64_t n, double eps)
{
    for (int64_t t = 0; t < len; t++) {
        const real *row = x + t * ld, *u = unit + t * n, *du = dunit + t * n;
        double r = 1 / sqrt(dot(row, row, n) + eps), along = dot(u, du, n);
        add_times(dx + t * ld, r, du, n);
        add_times(dx + t * ld, -r * along, u, n);
    }
}

static void delta_products(const struct topt_kernel_call *c, const struct scan *s,
                           const struct scan_at *at, const struct delta *w)
{
    const real *qk = (const real *)c->value[DELTA_QK] + at->group;
    struct gemm g = {.tb = 1,
                     .m = at->len,
                     .n = at->len,
                     .k = s->n,
                     .alpha = w->scale,
                     .a = w->q,
                     .lda = s->n,
                     .b = w->k,
                     .ldb = s->n,
                     .c = w->qk,
                     .ldc = at->len};
    delta_unit_rows(w->q, qk, s->ldg, at->len, s->n, c->op->attrs->eps);
    delta_unit_rows(w->k, qk + s->n, s->ldg, at->len, s->n, c->op->attrs->eps);
    gemm(&g);
    g.alpha = 1;
    g.a = w->k;
    g.c = w->kk;
    gemm(&g);
}

/* (I + A) u = r in place, or of the transpose. */
static void delta_solve(const real *a, int64_t len, real *u, int64_t p, int transposed)
{
    for (int64_t k = 0; k < len; k++) {
        int64_t i = transposed ? len - 1 - k : k;
        int64_t from = transposed ? i + 1 : 0, to = transposed ? len : i;
        for (int64_t j = from; j < to; j++)
            add_times(u + i * p, -(double)a[transposed ? j * len + i : i * len + j],
                      u + j * p, p);
    }
}

/* A, P, what the old state gives for each key, and u. */
static void delta_writes(const struct topt_kernel_call *c, const struct scan *s,
                         const struct scan_at *at, const struct delta *w,
                         const struct delta_gates *g)
{
    const real *v = (const real *)c->value[DELTA_V] + at->head;
    const real *state = (const real *)c->value[DELTA_STATES] + at->state;
    int64_t len = at->len, p = s->p;
    fill_decays(w->p, g->sum, len);
    for (int64_t t = 0; t < len; t++)
        for (int64_t j = 0; j < len; j++) {
            int64_t i = t * len + j;
            w->a[i] = j < t ? R(g->beta[t]) * w->kk[i] * w->p[i] : 0;
            w->p[i] *= w->qk[i];
        }
    gemm(&(struct gemm){.m = len,
                        .n = p,
                        .k = at->starts ? 0 : s->n,
                        .alpha = 1,
                        .a = w->k,
                        .lda = s->n,
                        .b = state,
                        .ldb = p,
                        .c = w->old,
                        .ldc = p});
    for (int64_t t = 0; t < len; t++) {
        set_times(w->u + t * p, g->beta[t], v + t * s->ld, p);
        add_times(w->u + t * p, -g->beta[t] * exp(g->sum[t]), w->old + t * p, p);
    }
    delta_solve(w->a, len, w->u, p, 0);
}

static void delta_head_fwd(const struct topt_kernel_call *c, const struct scan *s,
                           const struct scan_at *at, int64_t h)
{
    struct delta_gates g;
    struct delta w = delta_forward(c, s, at->len);
    real *y = (real *)c->value[DELTA_Y] + at->head;
    real *state = (real *)c->value[DELTA_STATES] + at->state;
    real *next = state + s->heads * s->n * s->p;
    int64_t len = at->len, p = s->p, n = s->n, end = len - 1;
    delta_gates(c, s, at, h, &g);
    if (begins_group(s, h))
        delta_products(c, s, at, &w);
    delta_writes(c, s, at, &w, &g);
    gemm(&(struct gemm){.m = len,
                        .n = p,
                        .k = len,
                        .alpha = 1,
                        .a = w.p,
                        .lda = len,
                        .b = w.u,
                        .ldb = p,
                        .c = y,
                        .ldc = s->ld});
    if (!at->starts) {
        gemm(&(struct gemm){.m = len,
                            .n = p,
                            .k = n,
                            .alpha = w.scale,
                            .a = w.q,
                            .lda = n,
                            .b = state,
                            .ldb = p,
                            .c = w.old,
                            .ldc = p});
        for (int64_t t = 0; t < len; t++)
            add_times(y + t * s->ld, exp(g.sum[t]), w.old + t * p, p);
    }
    if (at->ends)
        return;
    for (int64_t t = 0; t < len; t++)
        set_times(w.old + t * p, exp(g.sum[end] - g.sum[t]), w.u + t * p, p);
    copy(next, state, n * p);
    gemm(&(struct gemm){.ta = 1,
                        .m = n,
                        .n = p,
                        .k = len,
                        .alpha = 1,
                        .beta = exp(g.sum[end]),
                        .a = w.k,
                        .lda = n,
                        .b = w.old,
                        .ldb = p,
                        .c = next,
                        .ldc = p});
}

static void delta_fwd(const struct topt_kernel_call *c)
{
    struct scan s = scan_of(c, DELTA_V, DELTA_QK);
    scan_forward(c, &s, c->value[DELTA_STATES], delta_head_fwd);
}

/* Gradients of beta and of the sums of gates, of one chunk of a head. */
struct delta_slopes {
    double beta[SCAN_CHUNK], sum[SCAN_CHUNK];
};

/* keys[t] += factor of 'rows' times the transpose of a state. */
static void delta_to_keys(const struct scan *s, int64_t len, const real *rows, int64_t ld,
                          const real *state, double beta, real *keys)
{
    gemm(&(struct gemm){.tb = 1,
                        .m = len,
                        .n = s->n,
                        .k = s->p,
                        .alpha = 1,
                        .beta = beta,
                        .a = rows,
                        .lda = ld,
                        .b = state,
                        .ldb = s->p,
                        .c = keys,
                        .ldc = s->n});
}

/* du = P^T dy, and from what the chunk gives on to the next ones. */
static void delta_writes_bwd(const struct scan *s, const struct scan_at *at,
                             const struct delta *w, const struct delta_gates *g,
                             const real *dy, struct delta_slopes *d)
{
    int64_t len = at->len, p = s->p, n = s->n, end = len - 1;
    gemm(&(struct gemm){.ta = 1,
                        .m = len,
                        .n = p,
                        .k = len,
                        .alpha = 1,
                        .a = w->p,
                        .lda = len,
                        .b = dy,
                        .ldb = s->ld,
                        .c = w->du,
                        .ldc = p});
    if (at->ends)
        return;
    gemm(&(struct gemm){.m = len,
                        .n = p,
                        .k = n,
                        .alpha = 1,
                        .a = w->k,
                        .lda = n,
                        .b = w->carry,
                        .ldb = p,
                        .c = w->rows,
                        .ldc = p});
    delta_to_keys(s, len, w->u, p, w->carry, 0, w->keys);
    for (int64_t t = 0; t < len; t++) {
        double left = exp(g->sum[end] - g->sum[t]);
        double slope = left * dot(w->u + t * p, w->rows + t * p, p);
        d->sum[end] += slope;
        d->sum[t] -= slope;
        add_times(w->du + t * p, left, w->rows + t * p, p);
        add_times(w->dk + t * n, left, w->keys + t * n, n);
    }
}

/* Pairs of a query and a key: dp becomes the gradient of their products. */
static void delta_queries_bwd(const struct scan *s, const struct scan_at *at,
                              const struct delta *w, const struct delta_gates *g,
                              const real *dy, struct delta_slopes *d)
{
    int64_t len = at->len, n = s->n;
    struct gemm to = {.m = len,
                      .n = n,
                      .k = len,
                      .alpha = w->scale,
                      .beta = 1,
                      .a = w->dp,
                      .lda = len,
                      .b = w->k,
                      .ldb = n,
                      .c = w->dq,
                      .ldc = n};
    gemm(&(struct gemm){.tb = 1,
                        .m = len,
                        .n = len,
                        .k = s->p,
                        .alpha = 1,
                        .a = dy,
                        .lda = s->ld,
                        .b = w->u,
                        .ldb = s->p,
                        .c = w->dp,
                        .ldc = len});
    for (int64_t t = 0; t < len; t++)
        for (int64_t j = 0; j < len; j++) {
            int64_t i = t * len + j;
            double q = j <= t ? (double)w->dp[i] * (double)w->p[i] : 0;
            d->sum[t] += q;
            d->sum[j] -= q;
            w->dp[i] *= j <= t ? EXP(R(g->sum[t] - g->sum[j])) : 0;
        }
    gemm(&to);
    to.ta = 1;
    to.b = w->q;
    to.c = w->dk;
    gemm(&to);
}

/* What is read of the state that the chunk starts with; 'rows' becomes what multiplies
 * the queries in that state's gradient. */
static void delta_state_bwd(const struct topt_kernel_call *c, const struct scan *s,
                            const struct scan_at *at, const struct delta *w,
                            const struct delta_gates *g, const real *dy,
                            struct delta_slopes *d)
{
    const real *state = (const real *)c->value[DELTA_STATES] + at->state;
    int64_t len = at->len, p = s->p, n = s->n;
    delta_to_keys(s, len, dy, s->ld, state, 0, w->keys);
    for (int64_t t = 0; t < len; t++) {
        double grown = w->scale * exp(g->sum[t]);
        d->sum[t] += grown * dot(w->q + t * n, w->keys + t * n, n);
        add_times(w->dq + t * n, grown, w->keys + t * n, n);
        set_times(w->rows + t * p, grown, dy + t * s->ld, p);
    }
}

/* The system's right-hand side is known: gradients of its matrix, of values and of
 * beta.  'du' becomes the gradient of what the old state gives for the keys. */
static void delta_system_bwd(const struct topt_kernel_call *c, const struct scan *s,
                             const struct scan_at *at, const struct delta *w,
                             const struct delta_gates *g, struct delta_slopes *d)
{
    const real *v = (const real *)c->value[DELTA_V] + at->head;
    real *dv = c->grad[DELTA_V];
    int64_t len = at->len, p = s->p, n = s->n;
    struct gemm to = {.m = len,
                      .n = n,
                      .k = len,
                      .alpha = 1,
                      .beta = 1,
                      .a = w->dp,
                      .lda = len,
                      .b = w->k,
                      .ldb = n,
                      .c = w->dk,
                      .ldc = n};
    delta_solve(w->a, len, w->du, p, 1);
    gemm(&(struct gemm){.tb = 1,
                        .m = len,
                        .n = len,
                        .k = p,
                        .alpha = -1,
                        .a = w->du,
                        .lda = p,
                        .b = w->u,
                        .ldb = p,
                        .c = w->dp,
                        .ldc = len});
    for (int64_t t = 0; t < len; t++)
        for (int64_t j = 0; j < len; j++) {
            int64_t i = t * len + j;
            double decay = j < t ? exp(g->sum[t] - g->sum[j]) : 0;
            double slope = (double)w->dp[i], q = slope * (double)w->a[i];
            d->beta[t] += slope * (double)w->kk[i] * decay;
            d->sum[t] += q;
            d->sum[j] -= q;
            w->dp[i] = R(slope * g->beta[t] * decay);
        }
    gemm(&to);
    to.ta = 1;
    gemm(&to);
    for (int64_t t = 0; t < len; t++) {
        real *du = w->du + t * p;
        const real *old = w->old + t * p;
        double grown = exp(g->sum[t]), with_old = dot(du, old, p);
        d->beta[t] += dot(du, v + t * s->ld, p) - grown * with_old;
        d->sum[t] -= g->beta[t] * grown * with_old;
        if (dv)
            set_times(dv + at->head + t * s->ld, g->beta[t], du, p);
        set_times(du, -g->beta[t] * grown, du, p);
    }
}

/* Keys by way of the old state; the carried gradient becomes that of the chunk's
 * start. */
static void delta_carry_bwd(const struct topt_kernel_call *c, const struct scan *s,
                            const struct scan_at *at, const struct delta *w,
                            const struct delta_gates *g, struct delta_slopes *d)
{
    const real *state = (const real *)c->value[DELTA_STATES] + at->state;
    int64_t len = at->len, p = s->p, n = s->n, end = len - 1;
    struct gemm back = {.ta = 1,
                        .m = n,
                        .n = p,
                        .k = len,
                        .alpha = 1,
                        .beta = exp(g->sum[end]),
                        .a = w->q,
                        .lda = n,
                        .b = w->rows,
                        .ldb = p,
                        .c = w->carry,
                        .ldc = p};
    delta_to_keys(s, len, w->du, p, state, 1, w->dk);
    d->sum[end] += exp(g->sum[end]) * dot(state, w->carry, n * p);
    gemm(&back);
    back.beta = 1;
    back.a = w->k;
    back.b = w->du;
    gemm(&back);
}

static void delta_gates_bwd(const struct topt_kernel_call *c, const struct scan *s,
                            const struct scan_at *at, int64_t h,
                            const struct delta_gates *g, struct delta_slopes *d)
{
    real *dbeta = c->grad[DELTA_BETA], *dgate = c->grad[DELTA_GATE];
    real *da_log = c->grad[DELTA_A_LOG], *dbias = c->grad[DELTA_BIAS];
    double a_log = 0, bias = 0;
    sums_of_later(d->sum, at->len);
    for (int64_t t = 0; t < at->len; t++) {
        int64_t i = at->one + t * s->heads;
        a_log += d->sum[t] * g->gate[t];
        bias += d->sum[t] * g->slope[t];
        if (dgate)
            dgate[i] = R(d->sum[t] * g->slope[t]);
        if (dbeta)
            dbeta[i] = R(d->beta[t] * g->beta[t] * (1 - g->beta[t]));
    }
    if (da_log)
        da_log[h] = R((double)da_log[h] + a_log);
    if (dbias)
        dbias[h] = R((double)dbias[h] + bias);
}

static void delta_head_bwd(const struct topt_kernel_call *c, const struct scan *s,
                           const struct scan_at *at, int64_t h)
{
    struct delta_gates g;
    struct delta_slopes d = {{0}, {0}};
    struct delta w = delta_backward(c, s, at->len, h);
    const real *dy = (const real *)c->grad[DELTA_Y] + at->head;
    const real *qk = (const real *)c->value[DELTA_QK] + at->group;
    real *dqk = c->grad[DELTA_QK];
    size_t keys = (size_t)(at->len * s->n) * sizeof *w.dq;
    delta_gates(c, s, at, h, &g);
    if (begins_group(s, h)) {
        delta_products(c, s, at, &w);
        memset(w.dq, 0, keys);
        memset(w.dk, 0, keys);
    }
    delta_writes(c, s, at, &w, &g);
    delta_writes_bwd(s, at, &w, &g, dy, &d);
    delta_queries_bwd(s, at, &w, &g, dy, &d);
    if (!at->starts)
        delta_state_bwd(c, s, at, &w, &g, dy, &d);
    delta_system_bwd(c, s, at, &w, &g, &d);
    if (!at->starts)
        delta_carry_bwd(c, s, at, &w, &g, &d);
    delta_gates_bwd(c, s, at, h, &g, &d);
    if (!dqk || !ends_group(s, h))
        return;
    dqk += at->group;
    delta_unit_rows_bwd(dqk, qk, s->ldg, w.q, w.dq, at->len, s->n, c->op->attrs->eps);
    delta_unit_rows_bwd(dqk + s->n, qk + s->n, s->ldg, w.k, w.dk, at->len, s->n,
                        c->op->attrs->eps);
}

static void delta_bwd(const struct topt_kernel_call *c)
{
    struct scan s = scan_of(c, DELTA_V, DELTA_QK);
    scan_backward(c, &s, DELTA_QK, c->value[DELTA_CARRY], delta_head_bwd);
}
