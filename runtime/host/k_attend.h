/* k_attend.h - attention of queries to keys of the same or another sequence.
 *
 * A block of queries of one head at a time: its scores with all keys that any of its
 * rows sees stand in the work buffer, [rows, keys], between two matrix products.  So
 * memory grows with the keys alone, rows of the softmax are whole, and causal blocks
 * skip the keys behind them.  Backward makes the probabilities again from the
 * log-sum-exp of each row.
 *
 * Where a rank has a part of the keys, forward leaves the softmax over that part and
 * its log-sum-exp, -infinity where it sees none; the merge weighs it by its share of
 * the whole.  Backward then needs the rows' sums of p dp over all keys before anything
 * else. */
#include "real.h"

enum { MOST_BUCKETS = 1024 }; /* as the row takes */

/* The table of relative positions: 'n' buckets a side, bucket k from distance start[k]
 * on. */
struct near {
    int64_t n, ld; /* 0: there is no table; of its rows */
    int64_t start[MOST_BUCKETS];
};

/* Half of a side's buckets hold one distance each; those of the other half end in
 * equal steps of its logarithm. */
static void near_init(struct near *w, const struct topt_kernel_call *c)
{
    const struct topt_attrs *a = &c->op->attrs;
    int64_t rows =
        c->op->operand[ATTEND_RP].present ? c->op->operand[ATTEND_RP].dim[0].count : 0;
    w->n = a->causal ? rows : rows / 2;
    w->ld = rows ? cols_of(c, ATTEND_RP) : 0;
    int64_t exact = w->n / 2;
    for (int64_t k = 0; k < w->n; k++) {
        double part = (double)(k - exact) / (double)(w->n - exact);
        double power = pow((double)a->distance / (double)exact, part);
        w->start[k] = k < exact ? k : (int64_t)ceil((double)exact * power - 1e-6);
    }
}

/* The bucket of a key 'apart' positions after the query; near the last one that was
 * asked for. */
static int64_t bucket_of(const struct near *w, int causal, int64_t apart, int64_t *last)
{
    int64_t far = apart < 0 ? -apart : causal ? 0 : apart, k = *last;
    while (k + 1 < w->n && far >= w->start[k + 1])
        k++;
    while (k > 0 && far < w->start[k])
        k--;
    *last = k;
    return k + (!causal && apart > 0 ? w->n : 0);
}

/* Local sizes.  A key is 'shared' numbers of kr, then 'own' of kv; its value follows
 * there. */
struct attend {
    int64_t batch, heads, group, s, t, shared, own, vd, rows;
    int64_t ldq, ldkv, ldkr, ldy, ldl; /* from one position to the next */
    int64_t behind, window;            /* query i sees the local keys up to i + behind */
    int64_t first_key, chunk;
    int causal;
    double scale, cap, factor;
    int64_t all_heads, first_head; /* of queries: of the model, here */
    struct near near;
};

/* What a distance of 1 takes off the scores of a head (Press et al., 2022): powers of
 * 2^(-8/n), n the largest power of two that is no more than the heads; beyond, the odd
 * ones of 2^(-8/2n). */
static double slope_of_head(const struct attend *a, int64_t head)
{
    int64_t n = 1, k = a->first_head + head;
    while (2 * n <= a->all_heads)
        n *= 2;
    double power =
        k < n ? (double)(k + 1) / (double)n : ((double)(k - n) + 0.5) / (double)n;
    return a->factor > 0 ? a->factor * pow(2, -8 * power) : 0;
}

static void attend_init(struct attend *ret, const struct topt_kernel_call *c)
{
    enum { H = 1, S, T };
    const struct topt_attrs *a = &c->op->attrs;
    const struct topt_op *op = c->op;
    int64_t shared = op->operand[ATTEND_KR].present ? cols_of(c, ATTEND_KR) : 0;
    double usual = 1 / sqrt((double)a->head_dim);
    *ret = (struct attend){.batch = c->len[0],
                           .heads = c->len[1],
                           .group = a->heads / a->kv_heads,
                           .s = c->len[S],
                           .t = c->len[T],
                           .shared = shared,
                           .own = a->head_dim - shared,
                           .vd = a->v_head_dim,
                           .rows = op->operand[ATTEND_SCORES].dim[0].unit,
                           .ldq = cols_of(c, ATTEND_Q),
                           .ldkv = cols_of(c, ATTEND_KV),
                           .ldkr = shared,
                           .ldy = cols_of(c, ATTEND_Y),
                           .ldl = cols_of(c, ATTEND_LSE),
                           .behind = c->off[S] - c->off[T] + op->count[T] - op->count[S],
                           .window = a->window,
                           .first_key = c->off[T],
                           .chunk = a->chunk,
                           .causal = a->causal,
                           .scale = a->scale > 0 ? a->scale : usual,
                           .cap = a->cap,
                           .factor = a->factor,
                           .all_heads = a->heads,
                           .first_head = c->off[H] * (a->heads / a->kv_heads)};
    near_init(&ret->near, c);
}

/* A block of queries of one head: pointers at its first row; keys [from, to) are those
 * that any of its rows sees. */
struct attend_block {
    int64_t first, n, from, to;
    double slope; /* by distance */
    const real *q, *kv, *kr, *rp, *dy;
    real *y, *lse, *p, *dp, *delta, *dq, *dkv, *dkr, *drp;
};

static int64_t within(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Local keys [from, to) that query 'i' sees. */
static void keys_of(const struct attend *a, int64_t i, int64_t *from, int64_t *to)
{
    int64_t end = i + a->behind + 1, after = a->causal ? 0 : a->window - 1;
    *to = a->causal || a->window ? within(end + after, 0, a->t) : a->t;
    *from = a->window ? within(end - a->window, 0, *to) : 0;
    if (a->chunk) {
        int64_t start = (end - 1 + a->first_key) / a->chunk * a->chunk - a->first_key;
        *from = within(start, *from, *to);
    }
}

/* The same inside the block's keys. */
static void row_keys(const struct attend *a, const struct attend_block *k, int64_t i,
                     int64_t *from, int64_t *to)
{
    keys_of(a, k->first + i, from, to);
    *from = within(*from - k->from, 0, k->to - k->from);
    *to = within(*to - k->from, *from, k->to - k->from);
}

static real *offset_of(void *base, int64_t i)
{
    return base ? (real *)base + i : NULL;
}

/* The block of queries from 'first' on, of query head 'i' in group 'g' of sample 'b'. */
static struct attend_block block_at(const struct topt_kernel_call *c,
                                    const struct attend *a, int64_t b, int64_t g,
                                    int64_t i, int64_t first)
{
    int64_t hd = a->shared + a->own, head = g * a->group + i, row = b * a->s + first;
    int64_t q = row * a->ldq + head * hd, y = row * a->ldy + head * a->vd;
    int64_t kv = b * a->t * a->ldkv + g * (a->own + a->vd), kr = b * a->t * a->ldkr;
    int64_t stat = row * a->ldl + head, other;
    struct attend_block k = {.first = first,
                             .slope = slope_of_head(a, head),
                             .n = a->s - first < a->rows ? a->s - first : a->rows,
                             .q = offset_of(c->value[ATTEND_Q], q),
                             .kv = offset_of(c->value[ATTEND_KV], kv),
                             .kr = offset_of(c->value[ATTEND_KR], kr),
                             .rp = offset_of(c->value[ATTEND_RP], head),
                             .dy = offset_of(c->grad[ATTEND_Y], y),
                             .y = offset_of(c->value[ATTEND_Y], y),
                             .lse = offset_of(c->value[ATTEND_LSE], stat),
                             .delta = offset_of(c->value[ATTEND_DELTA], stat),
                             .dq = offset_of(c->grad[ATTEND_Q], q),
                             .dkv = offset_of(c->grad[ATTEND_KV], kv),
                             .dkr = offset_of(c->grad[ATTEND_KR], kr),
                             .drp = offset_of(c->grad[ATTEND_RP], head)};
    keys_of(a, first, &k.from, &other);
    keys_of(a, first + k.n - 1, &other, &k.to);
    return k;
}

/* What is done to each row of scores before the softmax. */
static void adjust_row(const struct attend *a, const struct attend_block *k, int64_t i,
                       int64_t from, int64_t to)
{
    real *row = k->p + i * (k->to - k->from), cap = R(a->cap);
    int64_t at = k->from - (k->first + i + a->behind), last = 0; /* key less query */
    for (int64_t j = from; a->near.n && j < to; j++)
        row[j] += k->rp[bucket_of(&a->near, a->causal, at + j, &last) * a->near.ld];
    for (int64_t j = from; k->slope > 0 && j < to; j++)
        row[j] += R(k->slope * (double)(at + j));
    for (int64_t j = from; a->cap > 0 && j < to; j++)
        row[j] = cap * TANH(row[j] / cap);
}

/* From the slopes of what scores became to their own, of one row; what one became is
 * known from its p.  Adds to the gradient of the table. */
static void adjust_row_bwd(const struct attend *a, const struct attend_block *k,
                           int64_t i, int64_t from, int64_t to)
{
    const real *p = k->p + i * (k->to - k->from);
    real *dp = k->dp + i * (k->to - k->from);
    int64_t at = k->from - (k->first + i + a->behind), last = 0;
    for (int64_t j = from; k->drp && j < to; j++)
        k->drp[bucket_of(&a->near, a->causal, at + j, &last) * a->near.ld] += dp[j];
    for (int64_t j = from; a->cap > 0 && j < to; j++) {
        double s = p[j] > 0 ? log((double)p[j]) + (double)k->lse[i * a->ldl] : 0;
        dp[j] *= R(1 - s / a->cap * (s / a->cap));
    }
}

/* p = scale q k^T. */
static void block_scores(const struct attend *a, const struct attend_block *k)
{
    struct gemm g = {.tb = 1,
                     .m = k->n,
                     .n = k->to - k->from,
                     .k = a->own,
                     .alpha = a->scale,
                     .a = k->q + a->shared,
                     .lda = a->ldq,
                     .b = k->kv + k->from * a->ldkv,
                     .ldb = a->ldkv,
                     .c = k->p,
                     .ldc = k->to - k->from};
    gemm(&g);
    if (!a->shared)
        return;
    g.k = a->shared;
    g.beta = 1;
    g.a = k->q;
    g.b = k->kr + k->from * a->ldkr;
    g.ldb = a->ldkr;
    gemm(&g);
}

/* Softmax of what the row sees, 0 elsewhere; returns the log-sum-exp. */
static double softmax_row(real *row, int64_t from, int64_t to, int64_t width)
{
    memset(row, 0, (size_t)from * sizeof *row);
    memset(row + to, 0, (size_t)(width - to) * sizeof *row);
    if (from >= to)
        return -INFINITY;
    real max = max_of(row + from, to - from);
    for (int64_t j = from; j < to; j++)
        row[j] = EXP(row[j] - max);
    double sum = sum_of(row + from, to - from);
    real inverse = R(1 / sum);
    for (int64_t j = from; j < to; j++)
        row[j] *= inverse;
    return log(sum) + (double)max;
}

static void block_fwd(const struct attend *a, const struct attend_block *k)
{
    int64_t width = k->to - k->from, from, to;
    block_scores(a, k);
    for (int64_t i = 0; i < k->n; i++) {
        row_keys(a, k, i, &from, &to);
        adjust_row(a, k, i, from, to);
        k->lse[i * a->ldl] = R(softmax_row(k->p + i * width, from, to, width));
    }
    gemm(&(struct gemm){.m = k->n,
                        .n = a->vd,
                        .k = width,
                        .alpha = 1,
                        .a = k->p,
                        .lda = width,
                        .b = k->kv + k->from * a->ldkv + a->own,
                        .ldb = a->ldkv,
                        .c = k->y,
                        .ldc = a->ldy});
}

static void attend_fwd(const struct topt_kernel_call *c)
{
    struct attend a;
    attend_init(&a, c);
    for (int64_t b = 0; b < a.batch; b++)
        for (int64_t h = 0; h < a.heads * a.group; h++)
            for (int64_t i = 0; i < a.s; i += a.rows) {
                struct attend_block k = block_at(c, &a, b, h / a.group, h % a.group, i);
                k.p = c->value[ATTEND_SCORES];
                block_fwd(&a, &k);
            }
    copy(c->value[ATTEND_MOST], c->value[ATTEND_LSE], elements_of(c, ATTEND_LSE));
}

static void attend_weight(const struct topt_kernel_call *c)
{
    const real *lse = c->value[ATTEND_LSE], *most = c->value[ATTEND_MOST];
    real *weight = c->value[ATTEND_W];
    int64_t n = elements_of(c, ATTEND_LSE);
    for (int64_t i = 0; i < n; i++)
        weight[i] = R(exp((double)lse[i] - (double)most[i]));
}

/* This part's share of the whole softmax; its value times that, and the whole's lse. */
static void attend_merge(const struct topt_kernel_call *c)
{
    const real *most = c->value[ATTEND_MOST], *weight = c->value[ATTEND_W];
    real *y = c->value[ATTEND_Y], *lse = c->value[ATTEND_LSE];
    int64_t n = elements_of(c, ATTEND_LSE), vd = c->op->attrs.v_head_dim;
    for (int64_t i = 0; i < n; i++) {
        double whole = (double)most[i] + log((double)weight[i]);
        real share = R(exp((double)lse[i] - whole));
        for (int64_t j = 0; j < vd; j++)
            y[i * vd + j] *= share;
        lse[i] = R(whole);
    }
}

/* p from the log-sum-exps, and dp = dy v^T. */
static void block_again(const struct attend *a, const struct attend_block *k)
{
    int64_t width = k->to - k->from, from, to;
    block_scores(a, k);
    for (int64_t i = 0; i < k->n; i++) {
        real *row = k->p + i * width, shift = k->lse[i * a->ldl];
        row_keys(a, k, i, &from, &to);
        adjust_row(a, k, i, from, to);
        memset(row, 0, (size_t)from * sizeof *row);
        for (int64_t j = from; j < to; j++)
            row[j] = EXP(row[j] - shift);
        memset(row + to, 0, (size_t)(width - to) * sizeof *row);
    }
    gemm(&(struct gemm){.tb = 1,
                        .m = k->n,
                        .n = width,
                        .k = a->vd,
                        .alpha = 1,
                        .a = k->dy,
                        .lda = a->ldy,
                        .b = k->kv + k->from * a->ldkv + a->own,
                        .ldb = a->ldkv,
                        .c = k->dp,
                        .ldc = width});
}

static double dot_row(const real *a, const real *b, int64_t n)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += (double)a[j] * (double)b[j];
    return sum;
}

/* c[keys, n] += a^T b, over the block's queries; c from the block's first key on. */
static void add_by_keys(const struct attend_block *k, const real *a, const real *b,
                        int64_t ldb, int64_t n, real *c, int64_t ldc)
{
    gemm(&(struct gemm){.ta = 1,
                        .m = k->to - k->from,
                        .n = n,
                        .k = k->n,
                        .alpha = 1,
                        .beta = 1,
                        .a = a,
                        .lda = k->to - k->from,
                        .b = b,
                        .ldb = ldb,
                        .c = c + k->from * ldc,
                        .ldc = ldc});
}

/* c[queries, n] = dp keys. */
static void set_by_queries(const struct attend_block *k, const real *keys, int64_t ldk,
                           int64_t n, real *c, int64_t ldc)
{
    gemm(&(struct gemm){.m = k->n,
                        .n = n,
                        .k = k->to - k->from,
                        .alpha = 1,
                        .a = k->dp,
                        .lda = k->to - k->from,
                        .b = keys + k->from * ldk,
                        .ldb = ldk,
                        .c = c,
                        .ldc = ldc});
}

/* dp becomes the gradient of q k^T: scale p (dp - the row's sum of p dp over all
 * keys), by way of what is done to scores. */
static void block_slopes(const struct attend *a, const struct attend_block *k, int whole)
{
    int64_t width = k->to - k->from, from, to;
    for (int64_t i = 0; i < k->n; i++) {
        const real *p = k->p + i * width;
        real *dp = k->dp + i * width, scale = R(a->scale);
        real mean = whole ? R(dot_row(p, dp, width)) : k->delta[i * a->ldl];
        for (int64_t j = 0; j < width; j++)
            dp[j] = p[j] * (dp[j] - mean);
        row_keys(a, k, i, &from, &to);
        adjust_row_bwd(a, k, i, from, to);
        for (int64_t j = 0; j < width; j++)
            dp[j] *= scale;
    }
}

static void block_bwd(const struct attend *a, const struct attend_block *k)
{
    if (k->dkv) {
        add_by_keys(k, k->p, k->dy, a->ldy, a->vd, k->dkv + a->own, a->ldkv);
        add_by_keys(k, k->dp, k->q + a->shared, a->ldq, a->own, k->dkv, a->ldkv);
    }
    if (k->dkr)
        add_by_keys(k, k->dp, k->q, a->ldq, a->shared, k->dkr, a->ldkr);
    if (k->dq)
        set_by_queries(k, k->kv, a->ldkv, a->own, k->dq + a->shared, a->ldq);
    if (k->dq && a->shared)
        set_by_queries(k, k->kr, a->ldkr, a->shared, k->dq, a->ldq);
}

static int has_all_keys(const struct topt_kernel_call *c)
{
    enum { T = 3 };
    return c->len[T] == c->op->count[T];
}

/* Visit all blocks again: for their rows' sums alone, or for the gradients. */
static void attend_back(const struct topt_kernel_call *c, int sums_only)
{
    struct attend a;
    attend_init(&a, c);
    for (int64_t b = 0; b < a.batch; b++)
        for (int64_t h = 0; h < a.heads * a.group; h++)
            for (int64_t i = 0; i < a.s; i += a.rows) {
                struct attend_block k = block_at(c, &a, b, h / a.group, h % a.group, i);
                int64_t width = k.to - k.from;
                k.p = c->value[ATTEND_P];
                k.dp = c->value[ATTEND_DP];
                block_again(&a, &k);
                for (int64_t r = 0; sums_only && r < k.n; r++)
                    k.delta[r * a.ldl] =
                        R(dot_row(k.p + r * width, k.dp + r * width, width));
                if (sums_only)
                    continue;
                block_slopes(&a, &k, has_all_keys(c));
                block_bwd(&a, &k);
            }
}

/* Who has all keys finds the sums on the way. */
static void attend_delta(const struct topt_kernel_call *c)
{
    if (!has_all_keys(c))
        attend_back(c, 1);
}

static void attend_bwd(const struct topt_kernel_call *c)
{
    for (int o = ATTEND_KV; o <= ATTEND_RP; o++)
        if (c->grad[o])
            memset(c->grad[o], 0, (size_t)elements_of(c, o) * sizeof(real));
    attend_back(c, 0);
}
