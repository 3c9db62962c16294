/* k_selective.h - selective state spaces (Gu and Dao, 2023), position by position.
 *
 * Each number of x has a state of n numbers, which decay apart from each other: no matrix
 * product says what a chunk does.  Forward keeps the state at the start of each chunk;
 * backward makes the states of a chunk again from there, then goes back through it. */
#include "real.h"

/* One number of x of one sample: from the chunk's first position on. */
struct selective {
    int64_t len, n, ld;
    const real *x, *dt, *b, *c, *a_log;
    double d;
};

static struct selective selective_at(const struct topt_kernel_call *c,
                                     const struct scan *s, const struct scan_at *at,
                                     int64_t h)
{
    const real *a_log = c->value[SELECTIVE_A_LOG], *d = c->value[SELECTIVE_D];
    int64_t keys = at->one / s->heads * s->n;
    return (struct selective){.len = at->len,
                              .n = s->n,
                              .ld = s->heads,
                              .x = (const real *)c->value[SELECTIVE_X] + at->one,
                              .dt = (const real *)c->value[SELECTIVE_DT] + at->one,
                              .b = (const real *)c->value[SELECTIVE_B] + keys,
                              .c = (const real *)c->value[SELECTIVE_C] + keys,
                              .a_log = a_log + h * s->n,
                              .d = (double)d[h]};
}

static void selective_decay(const struct selective *w, double *a)
{
    for (int64_t i = 0; i < w->n; i++)
        a[i] = -exp((double)w->a_log[i]);
}

/* One step of the state; returns what is made of it. */
static double selective_step(const struct selective *w, const double *a, int64_t t,
                             double step, const real *from, real *to)
{
    const real *b = w->b + t * w->n, *query = w->c + t * w->n;
    double x = step * (double)w->x[t * w->ld], y = 0;
    for (int64_t i = 0; i < w->n; i++) {
        double h = exp(a[i] * step) * (double)from[i] + x * (double)b[i];
        to[i] = R(h);
        y += h * (double)query[i];
    }
    return y;
}

static void selective_head_fwd(const struct selective *w, real *y, const real *state,
                               real *next)
{
    double a[SCAN_CHUNK];
    real now[SCAN_CHUNK];
    selective_decay(w, a);
    copy(now, state, w->n);
    for (int64_t t = 0; t < w->len; t++) {
        double step = softplus((double)w->dt[t * w->ld]);
        double made = selective_step(w, a, t, step, now, now);
        y[t * w->ld] = R(made + w->d * (double)w->x[t * w->ld]);
    }
    copy(next, now, w->n);
}

static void selective_chunk_fwd(const struct topt_kernel_call *c, const struct scan *s,
                                const struct scan_at *at, int64_t h)
{
    struct selective w = selective_at(c, s, at, h);
    real *y = c->value[SELECTIVE_Y], *state = c->value[SELECTIVE_STATES];
    state += at->state;
    selective_head_fwd(&w, y + at->one, state, at->ends ? NULL : state + s->heads * s->n);
}

static void selective_fwd(const struct topt_kernel_call *c)
{
    struct scan s = selective_scan(c);
    scan_forward(c, &s, c->value[SELECTIVE_STATES], selective_chunk_fwd);
}

/* Where gradients go; NULL: nowhere. */
struct selective_back {
    const real *dy;
    real *dx, *ddt, *db, *dc, *da_log, *dd, *states, *carry;
};

/* Back through one position; adds to 'da', the gradient of a. */
static void selective_step_bwd(const struct selective *w, const double *a, int64_t t,
                               const struct selective_back *g, double *da)
{
    const real *b = w->b + t * w->n, *query = w->c + t * w->n;
    const real *before = g->states + t * w->n, *after = before + w->n;
    double raw = (double)w->dt[t * w->ld], step = softplus(raw), dstep = 0, along = 0;
    double x = (double)w->x[t * w->ld], dy = (double)g->dy[t * w->ld];
    for (int64_t i = 0; i < w->n; i++) {
        double slope = (double)g->carry[i] + dy * (double)query[i];
        double decay = exp(a[i] * step), by_decay = slope * decay * (double)before[i];
        da[i] += by_decay * step;
        dstep += by_decay * a[i];
        along += slope * (double)b[i];
        if (g->dc)
            g->dc[t * w->n + i] += R(dy * (double)after[i]);
        if (g->db)
            g->db[t * w->n + i] += R(slope * step * x);
        g->carry[i] = R(slope * decay);
    }
    if (g->dx)
        g->dx[t * w->ld] = R(along * step + w->d * dy);
    if (g->ddt)
        g->ddt[t * w->ld] = R((dstep + along * x) * logistic(raw));
}

static void selective_head_bwd(const struct selective *w, const real *state,
                               const struct selective_back *g)
{
    double a[SCAN_CHUNK], da[SCAN_CHUNK] = {0}, direct = 0;
    selective_decay(w, a);
    copy(g->states, state, w->n);
    for (int64_t t = 0; t < w->len; t++)
        selective_step(w, a, t, softplus((double)w->dt[t * w->ld]), g->states + t * w->n,
                       g->states + (t + 1) * w->n);
    for (int64_t t = w->len - 1; t >= 0; t--) {
        selective_step_bwd(w, a, t, g, da);
        direct += (double)g->dy[t * w->ld] * (double)w->x[t * w->ld];
    }
    for (int64_t i = 0; g->da_log && i < w->n; i++)
        g->da_log[i] = R((double)g->da_log[i] + da[i] * a[i]);
    if (g->dd)
        *g->dd = R((double)*g->dd + direct);
}

static real *selective_from(void *base, int64_t i)
{
    return base ? (real *)base + i : NULL;
}

static struct selective_back selective_back_at(const struct topt_kernel_call *c,
                                               const struct scan *s,
                                               const struct scan_at *at, int64_t h)
{
    int64_t keys = at->one / s->heads * s->n;
    return (struct selective_back){
        .dy = selective_from(c->grad[SELECTIVE_Y], at->one),
        .dx = selective_from(c->grad[SELECTIVE_X], at->one),
        .ddt = selective_from(c->grad[SELECTIVE_DT], at->one),
        .db = selective_from(c->grad[SELECTIVE_B], keys),
        .dc = selective_from(c->grad[SELECTIVE_C], keys),
        .da_log = selective_from(c->grad[SELECTIVE_A_LOG], h * s->n),
        .dd = selective_from(c->grad[SELECTIVE_D], h),
        .states = c->value[SELECTIVE_WORK_BACK],
        .carry = selective_from(c->value[SELECTIVE_CARRY], h * s->n)};
}

static void selective_bwd(const struct topt_kernel_call *c)
{
    struct scan s = selective_scan(c);
    const real *states = c->value[SELECTIVE_STATES];
    for (int o = SELECTIVE_B; o <= SELECTIVE_C; o++)
        if (c->grad[o])
            memset(c->grad[o], 0, (size_t)elements_of(c, o) * sizeof(real));
    for (int64_t b = 0; b < s.batch && s.heads > 0; b++) {
        memset(c->value[SELECTIVE_CARRY], 0, (size_t)(s.heads * s.n) * sizeof(real));
        for (int64_t k = s.chunks - 1; k >= 0; k--)
            for (int64_t h = 0; h < s.heads; h++) {
                struct scan_at at = scan_at(&s, b, k, h);
                struct selective w = selective_at(c, &s, &at, h);
                struct selective_back g = selective_back_at(c, &s, &at, h);
                selective_head_bwd(&w, states + at.state, &g);
            }
    }
}
