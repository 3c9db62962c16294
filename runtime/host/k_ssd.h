/* k_ssd.h - state space duality: Mamba-2's recurrence by chunks (Dao and Gu, 2024).
 *
 * With E[t, j] the decay from position j to t of a chunk, S the state at its start, and
 * w[j] the decay from j to the chunk's end:
 *     M = (c b^T) * E * dt[j]
 *     y = M x + e^sum[t] c S + d x
 *     S' = e^sum[end] S + b^T (w dt x)
 * Backward makes M again; the state's gradient is carried from the last chunk to the
 * first.  Scores c b^T and their gradient belong to all heads of a group. */
#include "real.h"

/* Steps of a chunk and sums of their exponents; 'slope' of a step by what it is made
 * of. */
struct ssd_steps {
    double a, dt[SCAN_CHUNK], slope[SCAN_CHUNK], sum[SCAN_CHUNK];
};

static void ssd_steps(const struct topt_kernel_call *c, const struct scan *s,
                      const struct scan_at *at, int64_t h, struct ssd_steps *ret)
{
    const real *dt = c->value[SSD_DT], *a_log = c->value[SSD_A_LOG];
    const real *bias = c->value[SSD_BIAS];
    double least = c->op->attrs->alpha, most = c->op->attrs->beta, sum = 0;
    ret->a = -exp((double)a_log[h]);
    for (int64_t t = 0; t < at->len; t++) {
        double x = (double)dt[at->one + t * s->heads] + (double)bias[h];
        double step = softplus(x);
        ret->slope[t] = step < least || (most > 0 && step > most) ? 0 : logistic(x);
        step = step < least ? least : most > 0 && step > most ? most : step;
        ret->dt[t] = step;
        ret->sum[t] = sum += ret->a * step;
    }
}

/* scores = c b^T of a group. */
static void ssd_scores(const struct scan *s, const struct scan_at *at, const real *bc,
                       real *scores)
{
    gemm(&(struct gemm){.tb = 1,
                        .m = at->len,
                        .n = at->len,
                        .k = s->n,
                        .alpha = 1,
                        .a = bc + s->n,
                        .lda = s->ldg,
                        .b = bc,
                        .ldb = s->ldg,
                        .c = scores,
                        .ldc = at->len});
}

static void ssd_head_fwd(const struct topt_kernel_call *c, const struct scan *s,
                         const struct scan_at *at, int64_t h)
{
    struct ssd_steps k;
    const real *x = (const real *)c->value[SSD_X] + at->head;
    const real *bc = (const real *)c->value[SSD_BC] + at->group;
    const real *d = c->value[SSD_D];
    real *y = (real *)c->value[SSD_Y] + at->head;
    real *state = (real *)c->value[SSD_STATES] + at->state;
    real *next = state + s->heads * s->n * s->p;
    int64_t len = at->len, p = s->p, n = s->n;
    real *scores = c->value[SSD_WORK], *m = scores + len * len, *rows = m + len * len;
    ssd_steps(c, s, at, h, &k);
    if (begins_group(s, h))
        ssd_scores(s, at, bc, scores);
    fill_decays(m, k.sum, len);
    for (int64_t t = 0; t < len; t++)
        for (int64_t j = 0; j <= t; j++)
            m[t * len + j] *= scores[t * len + j] * R(k.dt[j]);
    gemm(&(struct gemm){.m = len,
                        .n = p,
                        .k = len,
                        .alpha = 1,
                        .a = m,
                        .lda = len,
                        .b = x,
                        .ldb = s->ld,
                        .c = y,
                        .ldc = s->ld});
    if (!at->starts)
        gemm(&(struct gemm){.m = len,
                            .n = p,
                            .k = n,
                            .alpha = 1,
                            .a = bc + n,
                            .lda = s->ldg,
                            .b = state,
                            .ldb = p,
                            .c = rows,
                            .ldc = p});
    for (int64_t t = 0; t < len; t++) {
        if (!at->starts)
            add_times(y + t * s->ld, exp(k.sum[t]), rows + t * p, p);
        add_times(y + t * s->ld, (double)d[h], x + t * s->ld, p);
    }
    if (at->ends)
        return;
    for (int64_t t = 0; t < len; t++)
        set_times(rows + t * p, exp(k.sum[len - 1] - k.sum[t]) * k.dt[t], x + t * s->ld,
                  p);
    copy(next, state, n * p);
    gemm(&(struct gemm){.ta = 1,
                        .m = n,
                        .n = p,
                        .k = len,
                        .alpha = 1,
                        .beta = exp(k.sum[len - 1]),
                        .a = bc,
                        .lda = s->ldg,
                        .b = rows,
                        .ldb = p,
                        .c = next,
                        .ldc = p});
}

static void ssd_fwd(const struct topt_kernel_call *c)
{
    struct scan s = scan_of(c, SSD_X, SSD_BC);
    scan_forward(c, &s, c->value[SSD_STATES], ssd_head_fwd);
}

/* What backward works with: the scores of a group and their gradient, of a head M and
 * its own gradient, rows of p and of n numbers. */
struct ssd_back {
    real *scores, *slopes, *m, *dm, *rows, *keys, *carry;
    const real *x, *bc, *dy, *state;
    real *dx, *dbc;
    double dsum[SCAN_CHUNK], dstep[SCAN_CHUNK];
};

static struct ssd_back ssd_back(const struct topt_kernel_call *c, const struct scan *s,
                                const struct scan_at *at, int64_t h)
{
    real *work = c->value[SSD_WORK_BACK], *dx = c->grad[SSD_X], *dbc = c->grad[SSD_BC];
    int64_t square = at->len * at->len;
    return (struct ssd_back){.scores = work,
                             .slopes = work + square,
                             .m = work + 2 * square,
                             .dm = work + 3 * square,
                             .rows = work + 4 * square,
                             .keys = work + 4 * square + at->len * s->p,
                             .carry = (real *)c->value[SSD_CARRY] + h * s->n * s->p,
                             .x = (const real *)c->value[SSD_X] + at->head,
                             .bc = (const real *)c->value[SSD_BC] + at->group,
                             .dy = (const real *)c->grad[SSD_Y] + at->head,
                             .state = (const real *)c->value[SSD_STATES] + at->state,
                             .dx = dx ? dx + at->head : NULL,
                             .dbc = dbc ? dbc + at->group : NULL};
}

/* Pairs of positions within the chunk: M, and the gradients of scores, steps and sums by
 * way of it. */
static void ssd_pairs_bwd(const struct scan *s, const struct scan_at *at,
                          struct ssd_back *w, const struct ssd_steps *k)
{
    int64_t len = at->len;
    fill_decays(w->m, k->sum, len);
    gemm(&(struct gemm){.tb = 1,
                        .m = len,
                        .n = len,
                        .k = s->p,
                        .alpha = 1,
                        .a = w->dy,
                        .lda = s->ld,
                        .b = w->x,
                        .ldb = s->ld,
                        .c = w->dm,
                        .ldc = len});
    for (int64_t t = 0; t < len; t++)
        for (int64_t j = 0; j <= t; j++) {
            int64_t i = t * len + j;
            double decay = (double)w->m[i], slope = (double)w->dm[i];
            double e = (double)w->scores[i] * decay, q = slope * e * k->dt[j];
            w->dstep[j] += slope * e;
            w->dsum[t] += q;
            w->dsum[j] -= q;
            w->slopes[i] += R(slope * decay * k->dt[j]);
            w->m[i] = R(e * k->dt[j]);
        }
}

/* What the chunk gives on to the next ones: b^T (w dt x), by the carried gradient. */
static void ssd_next_bwd(const struct scan *s, const struct scan_at *at,
                         struct ssd_back *w, const struct ssd_steps *k)
{
    int64_t len = at->len, p = s->p, n = s->n, end = len - 1;
    gemm(&(struct gemm){.m = len,
                        .n = p,
                        .k = n,
                        .alpha = 1,
                        .a = w->bc,
                        .lda = s->ldg,
                        .b = w->carry,
                        .ldb = p,
                        .c = w->rows,
                        .ldc = p});
    gemm(&(struct gemm){.tb = 1,
                        .m = len,
                        .n = n,
                        .k = p,
                        .alpha = 1,
                        .a = w->x,
                        .lda = s->ld,
                        .b = w->carry,
                        .ldb = p,
                        .c = w->keys,
                        .ldc = n});
    for (int64_t t = 0; t < len; t++) {
        double left = exp(k->sum[end] - k->sum[t]), u;
        u = left * dot(w->x + t * s->ld, w->rows + t * p, p);
        w->dstep[t] += u;
        w->dsum[end] += u * k->dt[t];
        w->dsum[t] -= u * k->dt[t];
        if (w->dx)
            add_times(w->dx + t * s->ld, left * k->dt[t], w->rows + t * p, p);
        if (w->dbc)
            add_times(w->dbc + t * s->ldg, left * k->dt[t], w->keys + t * n, n);
    }
    w->dsum[end] += exp(k->sum[end]) * dot(w->state, w->carry, n * p);
}

/* What it reads of the state that it starts with; the carried gradient becomes that
 * one's. */
static void ssd_state_bwd(const struct scan *s, const struct scan_at *at,
                          struct ssd_back *w, const struct ssd_steps *k)
{
    int64_t len = at->len, p = s->p, n = s->n;
    gemm(&(struct gemm){.tb = 1,
                        .m = len,
                        .n = n,
                        .k = p,
                        .alpha = 1,
                        .a = w->dy,
                        .lda = s->ld,
                        .b = w->state,
                        .ldb = p,
                        .c = w->keys,
                        .ldc = n});
    for (int64_t t = 0; t < len; t++) {
        const real *query = w->bc + t * s->ldg + n;
        double grown = exp(k->sum[t]);
        w->dsum[t] += grown * dot(query, w->keys + t * n, n);
        if (w->dbc)
            add_times(w->dbc + t * s->ldg + n, grown, w->keys + t * n, n);
        set_times(w->keys + t * n, grown, query, n);
    }
    gemm(&(struct gemm){.ta = 1,
                        .m = n,
                        .n = p,
                        .k = len,
                        .alpha = 1,
                        .beta = exp(k->sum[len - 1]),
                        .a = w->keys,
                        .lda = n,
                        .b = w->dy,
                        .ldb = s->ld,
                        .c = w->carry,
                        .ldc = p});
}

/* Gradients of keys and queries by way of the group's scores. */
static void ssd_scores_bwd(const struct scan *s, const struct scan_at *at,
                           const struct ssd_back *w)
{
    struct gemm g = {.m = at->len,
                     .n = s->n,
                     .k = at->len,
                     .alpha = 1,
                     .beta = 1,
                     .a = w->slopes,
                     .lda = at->len,
                     .b = w->bc,
                     .ldb = s->ldg,
                     .c = w->dbc + s->n,
                     .ldc = s->ldg};
    gemm(&g);
    g.ta = 1;
    g.b = w->bc + s->n;
    g.c = w->dbc;
    gemm(&g);
}

/* Gradients of steps and of what they are made of. */
static void ssd_steps_bwd(const struct topt_kernel_call *c, const struct scan *s,
                          const struct scan_at *at, int64_t h, struct ssd_back *w,
                          const struct ssd_steps *k)
{
    real *ddt = c->grad[SSD_DT], *da_log = c->grad[SSD_A_LOG], *dd = c->grad[SSD_D];
    real *dbias = c->grad[SSD_BIAS];
    double da = 0, bias = 0, direct = 0;
    sums_of_later(w->dsum, at->len);
    for (int64_t t = 0; t < at->len; t++) {
        double slope = (w->dstep[t] + w->dsum[t] * k->a) * k->slope[t];
        da += w->dsum[t] * k->dt[t];
        bias += slope;
        direct += dot(w->dy + t * s->ld, w->x + t * s->ld, s->p);
        if (ddt)
            ddt[at->one + t * s->heads] = R(slope);
    }
    if (da_log)
        da_log[h] = R((double)da_log[h] + da * k->a);
    if (dbias)
        dbias[h] = R((double)dbias[h] + bias);
    if (dd)
        dd[h] = R((double)dd[h] + direct);
}

static void ssd_head_bwd(const struct topt_kernel_call *c, const struct scan *s,
                         const struct scan_at *at, int64_t h)
{
    struct ssd_steps k;
    struct ssd_back w = ssd_back(c, s, at, h);
    const real *d = c->value[SSD_D];
    int64_t len = at->len;
    ssd_steps(c, s, at, h, &k);
    if (begins_group(s, h)) {
        ssd_scores(s, at, w.bc, w.scores);
        memset(w.slopes, 0, (size_t)(len * len) * sizeof *w.slopes);
    }
    ssd_pairs_bwd(s, at, &w, &k);
    if (w.dx) {
        gemm(&(struct gemm){.ta = 1,
                            .m = len,
                            .n = s->p,
                            .k = len,
                            .alpha = 1,
                            .a = w.m,
                            .lda = len,
                            .b = w.dy,
                            .ldb = s->ld,
                            .c = w.dx,
                            .ldc = s->ld});
        for (int64_t t = 0; t < len; t++)
            add_times(w.dx + t * s->ld, (double)d[h], w.dy + t * s->ld, s->p);
    }
    if (!at->ends)
        ssd_next_bwd(s, at, &w, &k);
    if (!at->starts)
        ssd_state_bwd(s, at, &w, &k);
    if (w.dbc && ends_group(s, h))
        ssd_scores_bwd(s, at, &w);
    ssd_steps_bwd(c, s, at, h, &w, &k);
}

static void ssd_bwd(const struct topt_kernel_call *c)
{
    struct scan s = scan_of(c, SSD_X, SSD_BC);
    scan_backward(c, &s, SSD_BC, c->value[SSD_CARRY], ssd_head_bwd);
}
