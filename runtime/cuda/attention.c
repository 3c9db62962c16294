/* attention.c - attention: in one kernel where flash.c has one, else by matrix products and the
 * kernels of k_attention.h, as follows.
 *
 * Where queries, keys and values lie is attention.h's.  A block of queries of one head at a
 * time: its scores with all keys that any of them sees, a softmax of rows, the weighted sum
 * of values.  Backward makes the probabilities again from the saved log-sum-exp.  Rotary
 * embeddings are applied to a copy: of a group's keys behind the scores, of a block's queries in
 * the device's scratch.
 *
 * Scores and slopes are in f32 under bf16 until they are rounded once for a product; what
 * keys, values and tables get from many blocks and heads is added up in f32 in the device's
 * scratch, and rounded at the end.  A rotation is orthogonal, so gradients are rotated back by
 * the opposite angle. */
#include "flash.h"

#include <string.h>

/* What all blocks have in common. */
struct attend {
    struct attention at;
    struct topt_device *dev;
    const struct topt_kernel_call *call;
    int rotated; /* by rotary embeddings */
    struct cu_scores scores;
    char *p, *dp, *rotated_k;
    /* in the device's scratch: rotated queries, and sums in 'stat' */
    char *rotated_q, *dkv, *dkr, *drp;
};

/* A block of queries of one head. */
struct block {
    int64_t first, n, from, to;
    struct cu_mask mask;
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

static int64_t lay_out(struct attend *x, char *base)
{
    const struct attention *a = &x->at;
    int64_t at = 0, w = stat_bytes(x);
    x->rotated_q = part(base, &at, x->rotated ? a->rows * a->own * real_bytes(x) : 0);
    x->dkv = part(base, &at, a->t * (a->own + a->vd) * w);
    x->dkr = part(base, &at, a->t * a->shared * w);
    x->drp = part(base, &at, a->table * a->ldrp * w);
    return at;
}

static int attend_init(struct attend *x, struct topt_device *d,
                       const struct topt_kernel_call *c, struct topt_error *err)
{
    const struct topt_attrs *o = c->op->attrs;
    int forward = c->kernel == TOPT_K_ATTENTION_FWD;
    void *room = NULL;
    *x = (struct attend){.at = attention_of(c),
                         .dev = d,
                         .call = c,
                         .rotated = o->rope_theta > 0,
                         .p = c->value[forward ? ATTENTION_SCORES : ATTENTION_P],
                         .dp = c->value[ATTENTION_DP]};
    const struct attention *a = &x->at;
    x->rotated_k = moved(x->p, a->rows * a->t * stat_bytes(x));
    x->scores = (struct cu_scores){.whole = a->whole,
                                   .cap = o->cap,
                                   .distance = o->distance,
                                   .scale = a->scale,
                                   .ldl = a->ldl,
                                   .ldrp = a->ldrp,
                                   .side = a->side};
    if (topt_cuda_scratch(d, lay_out(x, NULL), &room, err))
        return -1;
    lay_out(x, room);
    return 0;
}

static struct block block_at(const struct attend *x, int64_t b, int64_t g, int64_t i,
                             int64_t first)
{
    const struct topt_kernel_call *c = x->call;
    const struct attention *a = &x->at;
    int64_t r = real_bytes(x), w = stat_bytes(x), head = g * a->group + i;
    int64_t q = query_at(a, b, g, i, first) * r, k = key_at(a, b, g) * r;
    int64_t y = ((b * a->s + first) * a->ldy + head * a->vd) * r;
    int64_t stat = ((b * a->s + first) * a->ldl + head) * w, other;
    struct block ret = {.first = first,
                        .n = a->s - first < a->rows ? a->s - first : a->rows,
                        .q = moved(c->value[a->q], q),
                        .k = moved(c->value[a->kv], k),
                        .v = moved(c->value[a->kv], k + a->own * r),
                        .kr = moved(c->value[ATTENTION_KR], b * a->t * a->shared * r),
                        .rp = moved(a->table ? c->value[ATTENTION_RP] : NULL, head * r),
                        .dy = moved(c->grad[ATTENTION_Y], y),
                        .ldq = a->ldq,
                        .ldk = a->ldkv,
                        .ldv = a->ldkv,
                        .y = moved(c->value[ATTENTION_Y], y),
                        .lse = moved(c->value[ATTENTION_LSE], stat),
                        .delta = moved(c->value[ATTENTION_DELTA], stat),
                        .dq = moved(c->grad[a->q], q),
                        .slope = slope_of_head(a, head),
                        .drp = c->grad[ATTENTION_RP] ? x->drp + head * w : NULL};
    keys_seen(a, b, first, &ret.from, &other);
    keys_seen(a, b, first + ret.n - 1, &other, &ret.to);
    ret.mask = topt_cuda_mask(a, b);
    if (x->rotated) {
        ret.q = x->rotated_q;
        ret.k = x->rotated_k;
        ret.ldq = ret.ldk = a->own;
    }
    return ret;
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
    s.mask = k->mask;
    return s;
}

/* ---- rotary embeddings ------------------------------------------------------------- */

/* 'n' rows of a head from position 'first' on. */
static int rotate(const struct attend *a, void *dst, int64_t ldd, const void *src,
                  int64_t lds, int wide_src, int64_t first, int64_t n, double sign,
                  struct topt_error *err)
{
    struct cu_rotate r = topt_cuda_rotation(a->call->op->attrs, a->at.own / 2, sign);
    r.dst = dst;
    r.src = src;
    r.ldd = ldd;
    r.lds = lds;
    r.wide_src = wide_src;
    r.rows = r.period = n;
    r.first = first;
    r.width = a->at.own;
    return launched(a, math_of(a)->rotate(stream_of(a), &r), err);
}

static int rotate_keys(const struct attend *a, int64_t b, int64_t g,
                       struct topt_error *err)
{
    const char *k = moved(a->call->value[a->at.kv], key_at(&a->at, b, g) * real_bytes(a));
    return a->rotated ? rotate(a, a->rotated_k, a->at.own, k, a->at.ldkv, 0,
                               a->at.first_key, a->at.t, 1, err)
                      : 0;
}

static int rotate_queries(const struct attend *a, int64_t b, int64_t g, int64_t i,
                          const struct block *k, struct topt_error *err)
{
    const char *q = moved(a->call->value[a->at.q],
                          query_at(&a->at, b, g, i, k->first) * real_bytes(a));
    return a->rotated ? rotate(a, a->rotated_q, a->at.own, q, a->at.ldq, 0,
                               a->at.first_query + k->first, k->n, 1, err)
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
    int64_t skip = a->at.shared * real_bytes(a);
    double scale = a->scores.scale;
    if (by_rows(a, k, a->p, scale, a->at.own, k->q + skip, k->ldq, k->k, k->ldk, 0, err))
        return -1;
    return a->at.shared ? by_rows(a, k, a->p, scale, a->at.shared, k->q, k->ldq, k->kr,
                                  a->at.shared, 1, err)
                        : 0;
}

/* ---- forward ----------------------------------------------------------------------- */

static int block_fwd(const struct attend *a, const struct block *k,
                     struct topt_error *err)
{
    struct cu_scores s = scores_of(a, k);
    if (scores(a, k, err) || launched(a, math_of(a)->softmax(stream_of(a), &s), err))
        return -1;
    return over_keys(a, k, a->p, k->v, k->ldv, a->at.vd, k->y, a->at.ldy, err);
}

static int each_block(const struct attend *a,
                      int (*work)(const struct attend *, const struct block *,
                                  struct topt_error *),
                      int64_t b, int64_t g, struct topt_error *err)
{
    if (rotate_keys(a, b, g, err))
        return -1;
    for (int64_t i = 0; i < a->at.group; i++)
        for (int64_t first = 0; first < a->at.s; first += a->at.rows) {
            struct block k = block_at(a, b, g, i, first);
            if (rotate_queries(a, b, g, i, &k, err) || work(a, &k, err))
                return -1;
        }
    return 0;
}

static int all_blocks(const struct attend *a,
                      int (*work)(const struct attend *, const struct block *,
                                  struct topt_error *),
                      struct topt_error *err)
{
    for (int64_t b = 0; b < a->at.batch; b++)
        for (int64_t g = 0; g < a->at.groups; g++)
            if (each_block(a, work, b, g, err))
                return -1;
    return 0;
}

static int blocks_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                      struct topt_error *err)
{
    struct attend a;
    return attend_init(&a, d, c, err) || all_blocks(&a, block_fwd, err) ? -1 : 0;
}

int topt_cuda_attention_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    struct attention at = attention_of(c);
    size_t bytes =
        (size_t)(f->rows[ATTENTION_LSE] * f->cols[ATTENTION_LSE] * d->state_bytes);
    if (topt_cuda_flash_takes(d, &at) ? topt_cuda_flash_fwd(d, c, err)
                                      : blocks_fwd(d, c, err))
        return -1;
    if (!c->value[ATTENTION_MOST] || bytes == 0 || dev_of(d)->dry)
        return 0;
    return topt_cuda_check(cudaMemcpyAsync(c->value[ATTENTION_MOST],
                                           c->value[ATTENTION_LSE], bytes,
                                           cudaMemcpyDeviceToDevice, dev_of(d)->stream),
                           "copy", err);
}

/* ---- backward ---------------------------------------------------------------------- */

/* p from the log-sum-exps, and dp = dy v'. */
static int block_again(const struct attend *a, const struct block *k,
                       struct topt_error *err)
{
    struct cu_scores s = scores_of(a, k);
    return scores(a, k, err) || launched(a, math_of(a)->again(stream_of(a), &s), err) ||
                   by_rows(a, k, a->dp, 1, a->at.vd, k->dy, a->at.ldy, k->v, k->ldv, 0,
                           err)
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
    int64_t ld = a->at.own + a->at.vd, skip = a->at.shared * real_bytes(a);
    char *dv = a->dkv + a->at.own * stat_bytes(a);
    if (over_queries(a, k, a->p, k->dy, a->at.ldy, a->at.vd, dv, ld, err) ||
        over_queries(a, k, a->dp, k->q + skip, k->ldq, a->at.own, a->dkv, ld, err) ||
        (a->at.shared && over_queries(a, k, a->dp, k->q, k->ldq, a->at.shared, a->dkr,
                                      a->at.shared, err)))
        return -1;
    if (!k->dq)
        return 0;
    if (over_keys(a, k, a->dp, k->k, k->ldk, a->at.own, k->dq + skip, a->at.ldq, err) ||
        (a->at.shared && over_keys(a, k, a->dp, k->kr, a->at.shared, a->at.shared, k->dq,
                                   a->at.ldq, err)))
        return -1;
    return a->rotated ? rotate(a, k->dq, a->at.ldq, k->dq, a->at.ldq, 0,
                               a->at.first_query + k->first, k->n, -1, err)
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
    int64_t ld = a->at.own + a->at.vd;
    char *out = moved(a->call->grad[a->at.kv], key_at(&a->at, b, g) * real_bytes(a));
    if (!a->rotated || !out)
        return settle(a, out, a->at.ldkv, a->dkv, ld, a->at.t, ld, err);
    return rotate(a, out, a->at.ldkv, a->dkv, ld, 1, a->at.first_key, a->at.t, -1, err) ||
                   settle(a, out + a->at.own * real_bytes(a), a->at.ldkv,
                          a->dkv + a->at.own * stat_bytes(a), ld, a->at.t, a->at.vd, err)
               ? -1
               : 0;
}

static int sample_bwd(const struct attend *a, int64_t b, struct topt_error *err)
{
    struct topt_device *d = a->dev;
    int64_t ld = a->at.own + a->at.vd;
    if (d->ops->zero(d, a->dkr, a->at.t * a->at.shared * stat_bytes(a), err))
        return -1;
    for (int64_t g = 0; g < a->at.groups; g++)
        if (d->ops->zero(d, a->dkv, a->at.t * ld * stat_bytes(a), err) ||
            each_block(a, block_bwd, b, g, err) || settle_keys(a, b, g, err))
            return -1;
    char *out =
        moved(a->call->grad[ATTENTION_KR], b * a->at.t * a->at.shared * real_bytes(a));
    return a->at.shared ? settle(a, out, a->at.shared, a->dkr, a->at.shared, a->at.t,
                                 a->at.shared, err)
                        : 0;
}

int topt_cuda_attention_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    struct attend a;
    struct attention at = attention_of(c);
    (void)f;
    if (topt_cuda_flash_takes(d, &at))
        return topt_cuda_flash_bwd(d, c, err);
    if (attend_init(&a, d, c, err) ||
        d->ops->zero(d, a.drp, a.at.table * a.at.ldrp * stat_bytes(&a), err))
        return -1;
    for (int64_t b = 0; b < a.at.batch; b++)
        if (sample_bwd(&a, b, err))
            return -1;
    return a.at.table ? settle(&a, c->grad[ATTENTION_RP], a.at.ldrp, a.drp, a.at.ldrp,
                               a.at.table, a.at.ldrp, err)
                      : 0;
}

int topt_cuda_attention_delta(struct topt_device *d, const struct topt_kernel_call *c,
                              const struct cu_call *f, struct topt_error *err)
{
    struct attend a;
    struct attention at = attention_of(c);
    (void)f;
    if (topt_cuda_flash_takes(d, &at))
        return topt_cuda_flash_delta(d, c, err);
    return attend_init(&a, d, c, err) || all_blocks(&a, block_sums, err) ? -1 : 0;
}
