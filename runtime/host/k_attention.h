/* k_attention.h - attention of queries to keys of the same or another sequence.
 *
 * A block of queries of one head at a time: its scores with all keys that any of its
 * rows sees stand in the work buffer, [rows, keys], between two matrix products.  So
 * memory grows with the keys alone, rows of the softmax are whole, and causal blocks
 * skip the keys behind them.  Backward recomputes the probabilities from the
 * log-sum-exp of each row.
 *
 * Rotated by their positions, the keys of a group stand behind the scores in the work
 * buffer, and a block's queries where its result will stand later: in y, in backward in
 * their gradient.  A rotation is orthogonal, so gradients are rotated back by the opposite
 * angle.
 *
 * Where a rank has a part of the keys, forward leaves the softmax over that part and
 * its log-sum-exp, -infinity where it sees none; the merge weighs it by its share of
 * the whole.  Backward then needs the rows' sums of p dp over all keys before anything
 * else. */
#include "attention.h"
#include "k_drop.h"

enum { MOST_BUCKETS = 1024 }; /* as the row takes */

/* The table of relative positions: 'n' buckets a side, bucket k from distance start[k]
 * on. */
struct near {
    int64_t n, ld; /* 0: there is no table; of its rows */
    int64_t start[MOST_BUCKETS];
};

/* Half of a side's buckets hold one distance each; those of the other half end in
 * equal steps of its logarithm. */
static void near_init(struct near *w, const struct attention *a)
{
    w->n = a->side;
    w->ld = a->ldrp;
    int64_t exact = w->n / 2;
    for (int64_t k = 0; k < w->n; k++) {
        double part = (double)(k - exact) / (double)(w->n - exact);
        double power = pow((double)a->attrs->distance / (double)exact, part);
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

/* What all blocks have in common. */
struct attend {
    struct attention at;
    struct near near;
    const struct topt_kernel_call *call;
    real *p, *dp;
};

static void attend_init(struct attend *ret, const struct topt_kernel_call *c, real *p)
{
    *ret = (struct attend){
        .at = attention_of(c), .call = c, .p = p, .dp = c->value[ATTENTION_DP]};
    near_init(&ret->near, &ret->at);
}

/* A block of queries of one head: pointers at its first row, but for keys and values at the
 * group's first; keys [from, to) are those that any of its rows sees. */
struct attend_block {
    int64_t sample, head, first, n, from, to;
    double slope; /* ALiBi's slope of the head */
    const real *q, *k, *v, *kr, *rp, *dy;
    int64_t ldq, ldk;
    real *y, *lse, *delta, *dq, *dkv, *dkr, *drp;
};

/* Keys that row 'i' of the block sees, counted from the block's first. */
static void row_keys(const struct attention *a, const struct attend_block *k, int64_t i,
                     int64_t *from, int64_t *to)
{
    keys_seen(a, k->sample, k->first + i, from, to);
    *from = limited(*from - k->from, 0, k->to - k->from);
    *to = limited(*to - k->from, *from, k->to - k->from);
}

static real *offset_of(void *base, int64_t i)
{
    return base ? (real *)base + i : NULL;
}

static int is_rotated(const struct attention *a)
{
    return a->attrs->rope_theta > 0;
}

static real *rotated_keys(const struct attend *x)
{
    return x->p + x->at.rows * x->at.t;
}

/* 'n' rows of a head from a position on; may be in place. */
static void rotate_rows(const struct attention *a, real *dst, int64_t ldd,
                        const real *src, int64_t lds, int64_t position, int64_t n,
                        double sign)
{
    struct turn t;
    turn_to(&t, a->attrs, a->attrs->head_dim, position, sign);
    for (int64_t i = 0; i < n; i++, turn_next(&t))
        turn_head(&t, dst + i * ldd, src + i * lds);
}

/* The block of queries from 'first' on, of query head 'i' in group 'g' of sample 'b'. */
static struct attend_block block_at(const struct attend *x, int64_t b, int64_t g,
                                    int64_t i, int64_t first)
{
    const struct topt_kernel_call *c = x->call;
    const struct attention *a = &x->at;
    int64_t head = g * a->group + i, row = b * a->s + first;
    int64_t q = query_at(a, b, g, i, first), y = row * a->ldy + head * a->vd;
    int64_t kv = key_at(a, b, g), kr = b * a->t * a->ldkr, stat = row * a->ldl + head;
    int64_t other;
    struct attend_block k = {.sample = b,
                             .head = head,
                             .first = first,
                             .slope = slope_of_head(a, head),
                             .n = a->s - first < a->rows ? a->s - first : a->rows,
                             .q = offset_of(c->value[a->q], q),
                             .k = offset_of(c->value[a->kv], kv),
                             .v = offset_of(c->value[a->kv], kv + a->own),
                             .ldq = a->ldq,
                             .ldk = a->ldkv,
                             .kr = offset_of(c->value[ATTENTION_KR], kr),
                             .rp = offset_of(c->value[ATTENTION_RP], head),
                             .dy = offset_of(c->grad[ATTENTION_Y], y),
                             .y = offset_of(c->value[ATTENTION_Y], y),
                             .lse = offset_of(c->value[ATTENTION_LSE], stat),
                             .delta = offset_of(c->value[ATTENTION_DELTA], stat),
                             .dq = offset_of(c->grad[a->q], q),
                             .dkv = offset_of(c->grad[a->kv], kv),
                             .dkr = offset_of(c->grad[ATTENTION_KR], kr),
                             .drp = offset_of(c->grad[ATTENTION_RP], head)};
    keys_seen(a, b, first, &k.from, &other);
    keys_seen(a, b, first + k.n - 1, &other, &k.to);
    if (is_rotated(a)) {
        k.k = rotated_keys(x);
        k.ldk = a->own;
    }
    return k;
}

/* Rotated queries of the block, where its result will stand. */
static void rotate_queries(const struct attention *a, struct attend_block *k, real *to,
                           int64_t ld)
{
    if (!is_rotated(a))
        return;
    rotate_rows(a, to, ld, k->q, a->ldq, a->first_query + k->first, k->n, 1);
    k->q = to;
    k->ldq = ld;
}

static void rotate_keys(const struct attend *x, int64_t b, int64_t g)
{
    const struct attention *a = &x->at;
    const real *k = offset_of(x->call->value[a->kv], key_at(a, b, g));
    if (is_rotated(a))
        rotate_rows(a, rotated_keys(x), a->own, k, a->ldkv, a->first_key, a->t, 1);
}

/* What is done to each row of scores before the softmax. */
static void adjust_row(const struct attend *x, const struct attend_block *k, int64_t i,
                       int64_t from, int64_t to)
{
    const struct topt_attrs *a = x->at.attrs;
    real *row = x->p + i * (k->to - k->from), cap = R(a->cap);
    int64_t at = k->from - (k->first + i + x->at.behind), last = 0; /* key less query */
    for (int64_t j = from; x->near.n && j < to; j++)
        row[j] += k->rp[bucket_of(&x->near, a->causal, at + j, &last) * x->near.ld];
    for (int64_t j = from; k->slope > 0 && j < to; j++)
        row[j] += R(k->slope * (double)(at + j));
    for (int64_t j = from; a->cap > 0 && j < to; j++)
        row[j] = cap * TANH(row[j] / cap);
}

/* From the slopes of what scores became to their own, of one row; what one became is
 * known from its p.  Adds to the gradient of the table. */
static void adjust_row_bwd(const struct attend *x, const struct attend_block *k,
                           int64_t i, int64_t from, int64_t to)
{
    const struct topt_attrs *a = x->at.attrs;
    const real *p = x->p + i * (k->to - k->from);
    real *dp = x->dp + i * (k->to - k->from);
    int64_t at = k->from - (k->first + i + x->at.behind), last = 0;
    for (int64_t j = from; k->drp && j < to; j++)
        k->drp[bucket_of(&x->near, a->causal, at + j, &last) * x->near.ld] += dp[j];
    for (int64_t j = from; a->cap > 0 && j < to; j++) {
        double s = p[j] > 0 ? log((double)p[j]) + (double)k->lse[i * x->at.ldl] : 0;
        dp[j] *= R(1 - s / a->cap * (s / a->cap));
    }
}

/* A block's weights, or their slopes, of which some become 0: by the sample's, the head's, the
 * query's and the key's number in the whole, whatever lies here. */
static void drop_block(const struct attend *x, const struct attend_block *k, real *p)
{
    enum { H = 1, S, T };
    const struct topt_kernel_call *c = x->call;
    const struct attention *a = &x->at;
    struct drop d = drop_of(c, c->dropout);
    int64_t width = k->to - k->from;
    uint64_t sample = (uint64_t)(c->first_sample + c->off[0] + k->sample);
    uint64_t head =
        sample * (uint64_t)a->attrs->heads + (uint64_t)(a->first_head + k->head);
    for (int64_t i = 0; c->dropout > 0 && i < k->n; i++) {
        uint64_t query =
            head * (uint64_t)c->op->count[S] + (uint64_t)(a->first_query + k->first + i);
        drop_row(&d, p + i * width, p + i * width, width,
                 query * (uint64_t)c->op->count[T] + (uint64_t)(a->first_key + k->from));
    }
}

/* p = scale q k^T. */
static void block_scores(const struct attend *x, const struct attend_block *k)
{
    const struct attention *a = &x->at;
    struct gemm g = {.tb = 1,
                     .m = k->n,
                     .n = k->to - k->from,
                     .k = a->own,
                     .alpha = a->scale,
                     .a = k->q + a->shared,
                     .lda = k->ldq,
                     .b = k->k + k->from * k->ldk,
                     .ldb = k->ldk,
                     .c = x->p,
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

static void block_fwd(const struct attend *x, struct attend_block *k)
{
    const struct attention *a = &x->at;
    int64_t width = k->to - k->from, from, to;
    rotate_queries(a, k, k->y, a->ldy);
    block_scores(x, k);
    for (int64_t i = 0; i < k->n; i++) {
        row_keys(a, k, i, &from, &to);
        adjust_row(x, k, i, from, to);
        k->lse[i * a->ldl] = R(softmax_row(x->p + i * width, from, to, width));
    }
    drop_block(x, k, x->p);
    gemm(&(struct gemm){.m = k->n,
                        .n = a->vd,
                        .k = width,
                        .alpha = 1,
                        .a = x->p,
                        .lda = width,
                        .b = k->v + k->from * a->ldkv,
                        .ldb = a->ldkv,
                        .c = k->y,
                        .ldc = a->ldy});
}

/* Every block of queries, a group's one after the other; 'end' after each group. */
static void each_block(const struct attend *x,
                       void (*work)(const struct attend *, struct attend_block *),
                       void (*end)(const struct attend *, int64_t, int64_t))
{
    const struct attention *a = &x->at;
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t g = 0; g < a->groups; g++) {
            rotate_keys(x, b, g);
            for (int64_t h = 0; h < a->group; h++)
                for (int64_t i = 0; i < a->s; i += a->rows) {
                    struct attend_block k = block_at(x, b, g, h, i);
                    work(x, &k);
                }
            if (end)
                end(x, b, g);
        }
}

static void attention_fwd(const struct topt_kernel_call *c)
{
    struct attend x;
    attend_init(&x, c, c->value[ATTENTION_SCORES]);
    each_block(&x, block_fwd, NULL);
    copy(c->value[ATTENTION_MOST], c->value[ATTENTION_LSE],
         elements_of(c, ATTENTION_LSE));
}

static void attention_weight(const struct topt_kernel_call *c)
{
    const real *lse = c->value[ATTENTION_LSE], *most = c->value[ATTENTION_MOST];
    real *weight = c->value[ATTENTION_WEIGHT];
    int64_t n = elements_of(c, ATTENTION_LSE);
    for (int64_t i = 0; i < n; i++)
        weight[i] = lse[i] > R(-INFINITY) ? R(exp((double)lse[i] - (double)most[i])) : 0;
}

/* This part's share of the whole softmax; its value times that, and the whole's lse. */
static void attention_merge(const struct topt_kernel_call *c)
{
    const real *most = c->value[ATTENTION_MOST], *weight = c->value[ATTENTION_WEIGHT];
    real *y = c->value[ATTENTION_Y], *lse = c->value[ATTENTION_LSE];
    int64_t n = elements_of(c, ATTENTION_LSE), vd = attention_of(c).vd;
    for (int64_t i = 0; i < n; i++) {
        double whole = (double)most[i] + log((double)weight[i]);
        real share = lse[i] > R(-INFINITY) ? R(exp((double)lse[i] - whole)) : 0;
        for (int64_t j = 0; j < vd; j++)
            y[i * vd + j] *= share;
        lse[i] = R(whole);
    }
}

/* p from the log-sum-exps, and dp = dy v^T. */
static void block_again(const struct attend *x, const struct attend_block *k)
{
    const struct attention *a = &x->at;
    int64_t width = k->to - k->from, from, to;
    block_scores(x, k);
    for (int64_t i = 0; i < k->n; i++) {
        real *row = x->p + i * width, shift = k->lse[i * a->ldl];
        row_keys(a, k, i, &from, &to);
        adjust_row(x, k, i, from, to);
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
                        .b = k->v + k->from * a->ldkv,
                        .ldb = a->ldkv,
                        .c = x->dp,
                        .ldc = width});
    drop_block(x, k, x->dp);
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
static void set_by_queries(const struct attend *x, const struct attend_block *k,
                           const real *keys, int64_t ldk, int64_t n, real *c)
{
    gemm(&(struct gemm){.m = k->n,
                        .n = n,
                        .k = k->to - k->from,
                        .alpha = 1,
                        .a = x->dp,
                        .lda = k->to - k->from,
                        .b = keys + k->from * ldk,
                        .ldb = ldk,
                        .c = c,
                        .ldc = x->at.ldq});
}

/* dp becomes the gradient of q k^T: scale p (dp - the row's sum of p dp over all
 * keys), by way of what is done to scores. */
static void block_slopes(const struct attend *x, const struct attend_block *k)
{
    int64_t width = k->to - k->from, from, to;
    for (int64_t i = 0; i < k->n; i++) {
        const real *p = x->p + i * width;
        real *dp = x->dp + i * width, scale = R(x->at.scale);
        real mean = x->at.whole ? R(dot_row(p, dp, width)) : k->delta[i * x->at.ldl];
        for (int64_t j = 0; j < width; j++)
            dp[j] = p[j] * (dp[j] - mean);
        row_keys(&x->at, k, i, &from, &to);
        adjust_row_bwd(x, k, i, from, to);
        for (int64_t j = 0; j < width; j++)
            dp[j] *= scale;
    }
}

/* Queries and keys in one tensor have one gradient: what is read of the queries is read
 * before theirs is written. */
static void block_bwd(const struct attend *x, struct attend_block *k)
{
    const struct attention *a = &x->at;
    rotate_queries(a, k, k->dq, a->ldq);
    block_again(x, k);
    block_slopes(x, k);
    drop_block(x, k, x->p);
    if (k->dkv) {
        add_by_keys(k, x->p, k->dy, a->ldy, a->vd, k->dkv + a->own, a->ldkv);
        add_by_keys(k, x->dp, k->q + a->shared, k->ldq, a->own, k->dkv, a->ldkv);
    }
    if (k->dkr)
        add_by_keys(k, x->dp, k->q, k->ldq, a->shared, k->dkr, a->ldkr);
    if (k->dq)
        set_by_queries(x, k, k->k, k->ldk, a->own, k->dq + a->shared);
    if (k->dq && a->shared)
        set_by_queries(x, k, k->kr, a->ldkr, a->shared, k->dq);
    if (is_rotated(a))
        rotate_rows(a, k->dq, a->ldq, k->dq, a->ldq, a->first_query + k->first, k->n, -1);
}

static void group_end(const struct attend *x, int64_t b, int64_t g)
{
    const struct attention *a = &x->at;
    real *dk = offset_of(x->call->grad[a->kv], key_at(a, b, g));
    if (is_rotated(a))
        rotate_rows(a, dk, a->ldkv, dk, a->ldkv, a->first_key, a->t, -1);
}

static void block_sums(const struct attend *x, struct attend_block *k)
{
    int64_t width = k->to - k->from;
    block_again(x, k);
    for (int64_t r = 0; r < k->n; r++)
        k->delta[r * x->at.ldl] = R(dot_row(x->p + r * width, x->dp + r * width, width));
}

static void attention_delta(const struct topt_kernel_call *c)
{
    struct attend x;
    attend_init(&x, c, c->value[ATTENTION_P]);
    each_block(&x, block_sums, NULL);
}

static void attention_bwd(const struct topt_kernel_call *c)
{
    struct attend x;
    attend_init(&x, c, c->value[ATTENTION_P]);
    for (int o = ATTENTION_Q; o <= ATTENTION_RP; o++)
        if (c->grad[o] && (o != ATTENTION_Q || x.at.kv == x.at.q))
            memset(c->grad[o], 0, (size_t)elements_of(c, o) * sizeof(real));
    each_block(&x, block_bwd, group_end);
}
