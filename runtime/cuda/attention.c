/* attention.c - attention by matrix products and the kernels of k_attention.h.
 *
 * Both operators are one computation.  A head's queries and keys are 'shared' numbers that
 * all heads have and 'own' ones; 'attend' has them in tensors of their own, 'attention' in
 * one, whose heads it rotates by their positions first.  A block of queries of one head at a
 * time: its scores with all keys that any of them sees, a softmax of rows, the weighted sum
 * of values.  Backward makes the probabilities again from the saved log-sum-exp.
 *
 * Scores and slopes are in f32 under bf16 until they are rounded once for a product; what
 * keys, values and tables get from many blocks and heads is added up in f32 in the device's
 * scratch, and rounded at the end.  A rotation is orthogonal, so gradients are rotated back by
 * the opposite angle. */
#include "cuda.h"

#include <math.h>
#include <string.h>

enum { PACKED_QKV, PACKED_Y, PACKED_LSE, PACKED_SCORES, PACKED_P, PACKED_DP };

/* Local sizes and strides, and the operands by what they are here. */
struct attend {
    struct topt_device *dev;
    const struct topt_kernel_call *call;
    int64_t batch, groups, group, s, t;
    int64_t shared, own, vd; /* numbers of a key, and of a value */
    int64_t rows;            /* queries at a time */
    int64_t ldq, ldkv, ldy, ldl, ldrp;
    int packed;              /* queries, keys and values in one tensor */
    int rotated;             /* ... which rotary embeddings rotate */
    struct cu_scores scores; /* what all blocks have in common */
    const char *kr;
    void *dkr_out, *drp_out, *p, *dp;
    /* in the device's scratch: rotated rows, and sums in 'stat' */
    char *rotated_k, *rotated_q, *dkv, *dkr, *drp, *spare;
    int64_t table; /* rows of the table of relative positions */
};

/* A block of queries of one head. */
struct block {
    int64_t first, n, from, to;
    const char *q, *k, *v, *kr, *dy, *rp;
    int64_t ldq, ldk, ldv;
    char *y, *lse, *delta, *dq, *drp;
    double slope; /* ALiBi's */
};

static int64_t real_bytes(const struct attend *a)
{
    return a->dev->real_bytes;
}

static int64_t stat_bytes(const struct attend *a)
{
    return a->dev->state_bytes;
}

static int64_t ratio(const struct attend *a)
{
    return stat_bytes(a) / real_bytes(a);
}

static char *moved(const void *p, int64_t bytes)
{
    return p ? (char *)(uintptr_t)p + bytes : NULL;
}

static const struct cu_math *math_of(const struct attend *a)
{
    return ((struct cuda_device *)a->dev->impl)->math;
}

static int launched(const struct attend *a, int rc, struct topt_error *err)
{
    return topt_cuda_launched(rc, a->call, err);
}

static cudaStream_t stream_of(const struct attend *a)
{
    return ((struct cuda_device *)a->dev->impl)->stream;
}

/* ---- setting up -------------------------------------------------------------------- */

static int64_t padded(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The next part of the scratch; only counted where 'base' is NULL. */
static char *part(char *base, int64_t *at, int64_t bytes)
{
    char *p = base ? base + *at : NULL;
    *at += padded(bytes);
    return p;
}

static int64_t lay_out(struct attend *a, char *base)
{
    int64_t at = 0, r = real_bytes(a), w = stat_bytes(a);
    a->rotated_k = part(base, &at, a->rotated ? a->t * a->own * r : 0);
    a->rotated_q = part(base, &at, a->rotated ? a->rows * a->own * r : 0);
    a->dkv = part(base, &at, a->t * (a->own + a->vd) * w);
    a->dkr = part(base, &at, a->t * a->shared * w);
    a->drp = part(base, &at, a->table * a->ldrp * w);
    a->spare = part(base, &at, 2 * a->t * w);
    return at;
}

static void set_packed(struct attend *a, const struct cu_call *f)
{
    const struct topt_kernel_call *c = a->call;
    const struct topt_attrs *x = &c->op->attrs;
    a->s = a->t = c->len[2];
    a->own = a->vd = x->head_dim;
    a->ldq = a->ldkv = f->cols[PACKED_QKV];
    a->ldy = f->cols[PACKED_Y];
    a->ldl = f->cols[PACKED_LSE];
    a->rotated = x->rope_theta > 0;
    a->p =
        c->kernel == TOPT_K_ATTENTION_FWD ? c->value[PACKED_SCORES] : c->value[PACKED_P];
    a->dp = c->value[PACKED_DP];
    /* the operator's [s, s] buffers are of the type: as many rows of scores as they hold */
    a->rows = a->s / ratio(a);
}

static void set_attend(struct attend *a, const struct cu_call *f)
{
    enum { S = 2, T };
    const struct topt_kernel_call *c = a->call;
    const struct topt_op *op = c->op;
    const struct topt_attrs *x = &op->attrs;
    int table = op->operand[ATTEND_RP].present;
    a->s = c->len[S];
    a->t = c->len[T];
    a->shared = op->operand[ATTEND_KR].present ? f->cols[ATTEND_KR] : 0;
    a->own = x->head_dim - a->shared;
    a->vd = x->v_head_dim;
    a->rows = op->operand[ATTEND_SCORES].dim[0].unit;
    a->ldq = f->cols[ATTEND_Q];
    a->ldkv = f->cols[ATTEND_KV];
    a->ldy = f->cols[ATTEND_Y];
    a->ldl = f->cols[ATTEND_LSE];
    a->kr = c->value[ATTEND_KR];
    a->dkr_out = c->grad[ATTEND_KR];
    a->drp_out = c->grad[ATTEND_RP];
    a->table = table ? op->operand[ATTEND_RP].dim[0].count : 0;
    a->ldrp = table ? f->cols[ATTEND_RP] : 0;
    a->p = c->kernel == TOPT_K_ATTEND_FWD ? c->value[ATTEND_SCORES] : c->value[ATTEND_P];
    a->dp = c->value[ATTEND_DP];
    a->scores.behind = c->off[S] - c->off[T] + op->count[T] - op->count[S];
    a->scores.first_key = c->off[T];
    a->scores.whole = a->t == op->count[T];
}

static int attend_init(struct attend *a, struct topt_device *d,
                       const struct topt_kernel_call *c, const struct cu_call *f,
                       struct topt_error *err)
{
    const struct topt_attrs *x = &c->op->attrs;
    void *room = NULL;
    *a = (struct attend){.dev = d,
                         .call = c,
                         .batch = c->len[0],
                         .groups = c->len[1],
                         .group = x->heads / x->kv_heads,
                         .packed = c->kernel == TOPT_K_ATTENTION_FWD ||
                                   c->kernel == TOPT_K_ATTENTION_BWD};
    a->scores = (struct cu_scores){.whole = 1,
                                   .causal = x->causal,
                                   .window = x->window,
                                   .chunk = x->chunk,
                                   .cap = x->cap,
                                   .distance = x->distance,
                                   .scale = x->scale > 0 ? x->scale
                                                         : 1 / sqrt((double)x->head_dim)};
    if (a->packed)
        set_packed(a, f);
    else
        set_attend(a, f);
    a->scores.keys = a->t;
    a->scores.ldl = a->ldl;
    a->scores.ldrp = a->ldrp;
    a->scores.side = x->causal ? a->table : a->table / 2;
    int tiny = a->rows < 1; /* a row of f32 does not fit a buffer of one number */
    a->rows = tiny ? 1 : a->rows;
    if (topt_cuda_scratch(d, lay_out(a, NULL), &room, err))
        return -1;
    lay_out(a, room);
    if (tiny) {
        a->p = a->spare;
        a->dp = a->spare + a->t * stat_bytes(a);
    }
    return 0;
}

static int64_t within(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Local keys [from, to) that query 'i' sees. */
static void keys_of(const struct attend *a, int64_t i, int64_t *from, int64_t *to)
{
    const struct cu_scores *s = &a->scores;
    int64_t end = i + s->behind + 1, after = s->causal ? 0 : s->window - 1;
    *to = s->causal || s->window ? within(end + after, 0, a->t) : a->t;
    *from = s->window ? within(end - s->window, 0, *to) : 0;
    if (s->chunk) {
        int64_t start = (end - 1 + s->first_key) / s->chunk * s->chunk - s->first_key;
        *from = within(start, *from, *to);
    }
}

/* Where the queries, and the keys with their values, of a head are in a sample, in numbers. */
static int64_t query_at(const struct attend *a, int64_t b, int64_t g, int64_t i)
{
    int64_t hd = a->shared + a->own;
    int64_t head = a->packed ? g * (a->group + 2) + i : g * a->group + i;
    return b * a->s * a->ldq + head * hd;
}

static int64_t key_at(const struct attend *a, int64_t b, int64_t g)
{
    return b * a->t * a->ldkv +
           (a->packed ? (g * (a->group + 2) + a->group) * a->own : g * (a->own + a->vd));
}

static const char *queries_of(const struct attend *a)
{
    return a->call->value[a->packed ? PACKED_QKV : ATTEND_Q];
}

static const char *keys_base(const struct attend *a)
{
    return a->call->value[a->packed ? PACKED_QKV : ATTEND_KV];
}

/* A head's ALiBi slope: what a distance of 1 takes off its scores; as in the host's
 * k_attend.h. */
static double slope_of_head(const struct attend *a, int64_t head)
{
    enum { H = 1 };
    const struct topt_attrs *x = &a->call->op->attrs;
    int64_t n = 1, k = a->call->off[H] * a->group + head;
    while (2 * n <= x->heads)
        n *= 2;
    double power =
        k < n ? (double)(k + 1) / (double)n : ((double)(k - n) + 0.5) / (double)n;
    return !a->packed && x->factor > 0 ? x->factor * pow(2, -8 * power) : 0;
}

static struct block block_at(const struct attend *a, int64_t b, int64_t g, int64_t i,
                             int64_t first)
{
    const struct topt_kernel_call *c = a->call;
    int64_t r = real_bytes(a), w = stat_bytes(a), head = g * a->group + i;
    int64_t q = (query_at(a, b, g, i) + first * a->ldq) * r, k = key_at(a, b, g) * r;
    int64_t y = ((b * a->s + first) * a->ldy + head * a->vd) * r;
    int64_t stat = ((b * a->s + first) * a->ldl + head) * w, other;
    const void *grad_y = c->grad[a->packed ? PACKED_Y : ATTEND_Y];
    struct block x = {.first = first,
                      .n = a->s - first < a->rows ? a->s - first : a->rows,
                      .q = moved(queries_of(a), q),
                      .k = moved(keys_base(a), k),
                      .v = moved(keys_base(a), k + a->own * r),
                      .kr = moved(a->kr, b * a->t * a->shared * r),
                      .rp = moved(a->table ? c->value[ATTEND_RP] : NULL, head * r),
                      .dy = moved(grad_y, y),
                      .ldq = a->ldq,
                      .ldk = a->ldkv,
                      .ldv = a->ldkv,
                      .y = moved(c->value[a->packed ? PACKED_Y : ATTEND_Y], y),
                      .lse = moved(c->value[a->packed ? PACKED_LSE : ATTEND_LSE], stat),
                      .delta = moved(a->packed ? NULL : c->value[ATTEND_DELTA], stat),
                      .dq = moved(c->grad[a->packed ? PACKED_QKV : ATTEND_Q], q),
                      .slope = slope_of_head(a, head),
                      .drp = a->drp_out ? a->drp + head * w : NULL};
    keys_of(a, first, &x.from, &other);
    keys_of(a, first + x.n - 1, &other, &x.to);
    if (a->rotated) {
        x.q = a->rotated_q;
        x.k = a->rotated_k;
        x.ldq = x.ldk = a->own;
    }
    return x;
}

static struct cu_scores scores_of(const struct attend *a, const struct block *k)
{
    struct cu_scores s = a->scores;
    s.p = a->p;
    s.dp = a->dp;
    s.lse = k->lse;
    s.delta = k->delta;
    s.rp = k->rp;
    s.slope = k->slope;
    s.drp = k->drp;
    s.n = k->n;
    s.width = k->to - k->from;
    s.first = k->first;
    s.from = k->from;
    return s;
}

/* ---- rotary embeddings ------------------------------------------------------------- */

static struct cu_rotate rotation(const struct topt_attrs *a, int64_t pairs, double sign)
{
    return (struct cu_rotate){.pairs = pairs,
                              .heads = 1,
                              .theta = a->rope_theta,
                              .factor = a->rope_factor,
                              .context = (double)a->rope_context,
                              .slow = a->rope_slow,
                              .fast = a->rope_fast,
                              .by_pair = a->rope_by_pair,
                              .scale = 1,
                              .sign = sign};
}

/* 'n' rows of a head from position 'first' on. */
static int rotate(const struct attend *a, void *dst, int64_t ldd, const void *src,
                  int64_t lds, int wide_src, int64_t first, int64_t n, double sign,
                  struct topt_error *err)
{
    struct cu_rotate r = rotation(&a->call->op->attrs, a->own / 2, sign);
    r.dst = dst;
    r.src = src;
    r.ldd = ldd;
    r.lds = lds;
    r.wide_src = wide_src;
    r.rows = r.period = n;
    r.first = first;
    r.width = a->own;
    return launched(a, math_of(a)->rotate(stream_of(a), &r), err);
}

static int rotate_keys(const struct attend *a, int64_t b, int64_t g,
                       struct topt_error *err)
{
    const char *k = moved(keys_base(a), key_at(a, b, g) * real_bytes(a));
    return a->rotated ? rotate(a, a->rotated_k, a->own, k, a->ldkv, 0, 0, a->t, 1, err)
                      : 0;
}

static int rotate_queries(const struct attend *a, int64_t b, int64_t g, int64_t i,
                          const struct block *k, struct topt_error *err)
{
    const char *q =
        moved(queries_of(a), (query_at(a, b, g, i) + k->first * a->ldq) * real_bytes(a));
    return a->rotated
               ? rotate(a, a->rotated_q, a->own, q, a->ldq, 0, k->first, k->n, 1, err)
               : 0;
}

/* ---- products of a block ----------------------------------------------------------- */

/* c[queries, keys] = alpha (or added) rows of queries times rows of keys. */
static int by_rows(const struct attend *a, const struct block *k, void *c, double alpha,
                   int64_t depth, const char *rows, int64_t ldr, const char *keys,
                   int64_t ldk, int adds, struct topt_error *err)
{
    return topt_cuda_gemm(a->dev,
                          &(struct cuda_gemm){.tb = 1,
                                              .m = k->n,
                                              .n = k->to - k->from,
                                              .k = depth,
                                              .alpha = alpha,
                                              .beta = adds,
                                              .a = rows,
                                              .lda = ldr,
                                              .b = keys + k->from * ldk * real_bytes(a),
                                              .ldb = ldk,
                                              .c = c,
                                              .ldc = k->to - k->from,
                                              .wide = 1},
                          err);
}

/* c[queries, n] = m keys, m being what scores have become. */
static int over_keys(const struct attend *a, const struct block *k, const void *m,
                     const char *keys, int64_t ldk, int64_t n, char *c, int64_t ldc,
                     struct topt_error *err)
{
    return topt_cuda_gemm(a->dev,
                          &(struct cuda_gemm){.m = k->n,
                                              .n = n,
                                              .k = k->to - k->from,
                                              .alpha = 1,
                                              .a = m,
                                              .lda = (k->to - k->from) * ratio(a),
                                              .b = keys + k->from * ldk * real_bytes(a),
                                              .ldb = ldk,
                                              .c = c,
                                              .ldc = ldc},
                          err);
}

/* c[keys, n] += m' rows, into sums of the scratch. */
static int over_queries(const struct attend *a, const struct block *k, const void *m,
                        const char *rows, int64_t ldr, int64_t n, char *c, int64_t ldc,
                        struct topt_error *err)
{
    return topt_cuda_gemm(a->dev,
                          &(struct cuda_gemm){.ta = 1,
                                              .m = k->to - k->from,
                                              .n = n,
                                              .k = k->n,
                                              .alpha = 1,
                                              .beta = 1,
                                              .a = m,
                                              .lda = (k->to - k->from) * ratio(a),
                                              .b = rows,
                                              .ldb = ldr,
                                              .c = c + k->from * ldc * stat_bytes(a),
                                              .ldc = ldc,
                                              .wide = 1},
                          err);
}

/* p = scale q k'. */
static int scores(const struct attend *a, const struct block *k, struct topt_error *err)
{
    int64_t skip = a->shared * real_bytes(a);
    double scale = a->scores.scale;
    if (by_rows(a, k, a->p, scale, a->own, k->q + skip, k->ldq, k->k, k->ldk, 0, err))
        return -1;
    return a->shared ? by_rows(a, k, a->p, scale, a->shared, k->q, k->ldq, k->kr,
                               a->shared, 1, err)
                     : 0;
}

/* ---- forward ----------------------------------------------------------------------- */

static int block_fwd(const struct attend *a, const struct block *k,
                     struct topt_error *err)
{
    struct cu_scores s = scores_of(a, k);
    if (scores(a, k, err) || launched(a, math_of(a)->softmax(stream_of(a), &s), err))
        return -1;
    return over_keys(a, k, a->p, k->v, k->ldv, a->vd, k->y, a->ldy, err);
}

static int each_block(const struct attend *a,
                      int (*work)(const struct attend *, const struct block *,
                                  struct topt_error *),
                      int64_t b, int64_t g, struct topt_error *err)
{
    if (rotate_keys(a, b, g, err))
        return -1;
    for (int64_t i = 0; i < a->group; i++)
        for (int64_t first = 0; first < a->s; first += a->rows) {
            struct block k = block_at(a, b, g, i, first);
            if (rotate_queries(a, b, g, i, &k, err) || work(a, &k, err))
                return -1;
        }
    return 0;
}

static int forward(struct topt_device *d, const struct topt_kernel_call *c,
                   const struct cu_call *f, struct topt_error *err)
{
    struct attend a;
    if (attend_init(&a, d, c, f, err))
        return -1;
    for (int64_t b = 0; b < a.batch; b++)
        for (int64_t g = 0; g < a.groups; g++)
            if (each_block(&a, block_fwd, b, g, err))
                return -1;
    return 0;
}

int topt_cuda_attention_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    return forward(d, c, f, err);
}

int topt_cuda_attend_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    size_t bytes = (size_t)(f->rows[ATTEND_LSE] * f->cols[ATTEND_LSE] * d->state_bytes);
    if (forward(d, c, f, err))
        return -1;
    if (!c->value[ATTEND_MOST] || bytes == 0 || dev_of(d)->dry)
        return 0;
    return topt_cuda_check(cudaMemcpyAsync(c->value[ATTEND_MOST], c->value[ATTEND_LSE],
                                           bytes, cudaMemcpyDeviceToDevice,
                                           dev_of(d)->stream),
                           "copy", err);
}

/* ---- backward ---------------------------------------------------------------------- */

/* p from the log-sum-exps, and dp = dy v'. */
static int block_again(const struct attend *a, const struct block *k,
                       struct topt_error *err)
{
    struct cu_scores s = scores_of(a, k);
    return scores(a, k, err) || launched(a, math_of(a)->again(stream_of(a), &s), err) ||
                   by_rows(a, k, a->dp, 1, a->vd, k->dy, a->ldy, k->v, k->ldv, 0, err)
               ? -1
               : 0;
}

static int block_sums(const struct attend *a, const struct block *k,
                      struct topt_error *err)
{
    struct cu_scores s = scores_of(a, k);
    s.sums_only = 1;
    return block_again(a, k, err) ||
                   launched(a, math_of(a)->slopes(stream_of(a), &s), err)
               ? -1
               : 0;
}

static int block_slopes(const struct attend *a, const struct block *k,
                        struct topt_error *err)
{
    struct cu_scores s = scores_of(a, k);
    const struct cu_math *m = math_of(a);
    if (launched(a, m->slopes(stream_of(a), &s), err) ||
        (k->drp && launched(a, m->table_slopes(stream_of(a), &s), err)))
        return -1;
    return launched(a, m->narrow(stream_of(a), &s), err);
}

/* Gradients of the queries are this block's alone; those of keys are added up. */
static int block_grads(const struct attend *a, const struct block *k,
                       struct topt_error *err)
{
    int64_t ld = a->own + a->vd, skip = a->shared * real_bytes(a);
    char *dv = a->dkv + a->own * stat_bytes(a);
    if (over_queries(a, k, a->p, k->dy, a->ldy, a->vd, dv, ld, err) ||
        over_queries(a, k, a->dp, k->q + skip, k->ldq, a->own, a->dkv, ld, err) ||
        (a->shared &&
         over_queries(a, k, a->dp, k->q, k->ldq, a->shared, a->dkr, a->shared, err)))
        return -1;
    if (!k->dq)
        return 0;
    if (over_keys(a, k, a->dp, k->k, k->ldk, a->own, k->dq + skip, a->ldq, err) ||
        (a->shared &&
         over_keys(a, k, a->dp, k->kr, a->shared, a->shared, k->dq, a->ldq, err)))
        return -1;
    return a->rotated
               ? rotate(a, k->dq, a->ldq, k->dq, a->ldq, 0, k->first, k->n, -1, err)
               : 0;
}

static int block_bwd(const struct attend *a, const struct block *k,
                     struct topt_error *err)
{
    return block_again(a, k, err) || block_slopes(a, k, err) || block_grads(a, k, err)
               ? -1
               : 0;
}

static int settle(const struct attend *a, void *dst, int64_t ldd, const char *src,
                  int64_t lds, int64_t rows, int64_t cols, struct topt_error *err)
{
    struct cu_settle s = {dst, src, rows, cols, ldd, lds};
    return dst ? launched(a, math_of(a)->settle(stream_of(a), &s), err) : 0;
}

/* What all heads of a group gave to their key and value. */
static int settle_keys(const struct attend *a, int64_t b, int64_t g,
                       struct topt_error *err)
{
    int64_t ld = a->own + a->vd;
    char *out = moved(a->call->grad[a->packed ? PACKED_QKV : ATTEND_KV],
                      key_at(a, b, g) * real_bytes(a));
    if (!a->rotated || !out)
        return settle(a, out, a->ldkv, a->dkv, ld, a->t, ld, err);
    return rotate(a, out, a->ldkv, a->dkv, ld, 1, 0, a->t, -1, err) ||
                   settle(a, out + a->own * real_bytes(a), a->ldkv,
                          a->dkv + a->own * stat_bytes(a), ld, a->t, a->vd, err)
               ? -1
               : 0;
}

static int sample_bwd(const struct attend *a, int64_t b, struct topt_error *err)
{
    struct topt_device *d = a->dev;
    int64_t ld = a->own + a->vd;
    if (d->ops->zero(d, a->dkr, a->t * a->shared * stat_bytes(a), err))
        return -1;
    for (int64_t g = 0; g < a->groups; g++)
        if (d->ops->zero(d, a->dkv, a->t * ld * stat_bytes(a), err) ||
            each_block(a, block_bwd, b, g, err) || settle_keys(a, b, g, err))
            return -1;
    char *out = moved(a->dkr_out, b * a->t * a->shared * real_bytes(a));
    return a->shared ? settle(a, out, a->shared, a->dkr, a->shared, a->t, a->shared, err)
                     : 0;
}

static int backward(struct topt_device *d, const struct topt_kernel_call *c,
                    const struct cu_call *f, struct topt_error *err)
{
    struct attend a;
    if (attend_init(&a, d, c, f, err) ||
        d->ops->zero(d, a.drp, a.table * a.ldrp * stat_bytes(&a), err))
        return -1;
    for (int64_t b = 0; b < a.batch; b++)
        if (sample_bwd(&a, b, err))
            return -1;
    return a.table ? settle(&a, a.drp_out, a.ldrp, a.drp, a.ldrp, a.table, a.ldrp, err)
                   : 0;
}

int topt_cuda_attention_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    return c->grad[PACKED_QKV] ? backward(d, c, f, err) : 0;
}

int topt_cuda_attend_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    return backward(d, c, f, err);
}

/* Who has all keys finds the sums on the way. */
int topt_cuda_attend_delta(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    struct attend a;
    if (attend_init(&a, d, c, f, err))
        return -1;
    for (int64_t b = 0; b < a.batch && !a.scores.whole; b++)
        for (int64_t g = 0; g < a.groups; g++)
            if (each_block(&a, block_sums, b, g, err))
                return -1;
    return 0;
}

/* ---- rotary as an operator of its own ---------------------------------------------- */

static int rotary(struct topt_device *d, const struct topt_kernel_call *c, void *dst,
                  const void *src, double sign, struct topt_error *err)
{
    enum { X };
    const struct topt_attrs *x = &c->op->attrs;
    struct cuda_device *dev = d->impl;
    struct cu_rotate r = rotation(x, x->rope_dim / 2, sign);
    int64_t row = c->box[X].len[2] * c->op->operand[X].dim[2].unit;
    r.dst = dst;
    r.src = src;
    r.ldd = r.lds = row;
    r.period = c->box[X].len[1] > 0 ? c->box[X].len[1] : 1;
    r.rows = c->box[X].len[0] * c->box[X].len[1];
    r.first = c->off[1];
    r.heads = row / x->head_dim;
    r.width = x->head_dim;
    r.scale = x->scale > 0 ? x->scale : 1;
    return dst && r.rows > 0
               ? topt_cuda_launched(dev->math->rotate(dev->stream, &r), c, err)
               : 0;
}

int topt_cuda_rotary_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return rotary(d, c, c->value[1], c->value[0], 1, err);
}

int topt_cuda_rotary_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_call *f, struct topt_error *err)
{
    (void)f;
    return rotary(d, c, c->grad[0], c->grad[1], -1, err);
}
