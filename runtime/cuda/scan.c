/* scan.c - recurrences that are computed by chunks: their matrix products, and the order of
 * the kernels around them (k_scan.h, k_ssd.h, k_delta.h, k_selective.h).
 *
 * Within chunks everything is done for many chunks, samples and heads at once: a span, which
 * is as large as the scratch allows.  Only the state goes from chunk to chunk, so spans of
 * the same samples follow each other, backward from the last one.  Gradients of the state
 * and states themselves are carried in what statistics are in. */
#include "cuda.h"

#include <math.h>

#define RUN(name, args)                                                                  \
    topt_cuda_launched(dev_of(d)->math->name(dev_of(d)->stream, args), c, err)

/* Room in the scratch; with base 0 it is only counted. */
struct room {
    uintptr_t base;
    int64_t used;
};

static void *take(struct room *r, int64_t n, int64_t bytes)
{
    uintptr_t p = r->base + (uintptr_t)r->used;
    r->used += (n * bytes + 255) / 256 * 256;
    return (void *)p;
}

/* Number i of a tile, of what statistics are in where 'wide'. */
static void *number(const struct topt_device *d, const void *p, int64_t i, int wide)
{
    return (char *)(uintptr_t)p + i * (wide ? d->state_bytes : d->real_bytes);
}

/* The first span: as many chunks, then as many samples, as the scratch holds, but no
 * less than a chunk of a sample.  'room_of' counts what a span of 'call' takes. */
typedef void room_of(const struct topt_device *d, void *call, struct room *r);

static int fit(struct topt_device *d, struct cu_span *p, void *call, room_of *room,
               struct topt_error *err)
{
    struct room r = {0, 0};
    void *scratch;
    room(d, call, &r);
    while (r.used > CUDA_SPAN_BYTES && (p->chunks > 1 || p->samples > 1)) {
        int64_t *most = p->chunks > 1 ? &p->chunks : &p->samples;
        *most = (*most + 1) / 2;
        r.used = 0;
        room(d, call, &r);
    }
    if (topt_cuda_scratch(d, r.used, &scratch, err))
        return -1;
    r = (struct room){(uintptr_t)scratch, 0};
    room(d, call, &r);
    return 0;
}

/* All of it, before fit(). */
static struct cu_span whole_span(const struct scan *s)
{
    struct cu_span p = {.s = *s, .samples = s->batch, .chunks = s->chunks};
    p.len = s->chunk < s->seq ? s->chunk : s->seq;
    if (s->heads > 0) {
        p.first_group = s->first_head / s->per_group;
        p.groups = (s->first_head + s->heads - 1) / s->per_group - p.first_group + 1;
    }
    return p;
}

/* What is done with a span; 'first' of those of its samples. */
typedef int span_work(struct topt_device *d, const struct topt_kernel_call *c, void *call,
                      int first, struct topt_error *err);

/* Span after span; 'p' is what 'call' has. */
static int each_span(struct topt_device *d, const struct topt_kernel_call *c,
                     struct cu_span *p, void *call, int backward, span_work *work,
                     struct topt_error *err)
{
    const int64_t samples = p->samples, chunks = p->chunks;
    const int64_t spans = (p->s.chunks + chunks - 1) / chunks;
    for (int64_t b = 0; b < p->s.batch; b += samples)
        for (int64_t i = 0; i < spans; i++) {
            int64_t k = (backward ? spans - 1 - i : i) * chunks;
            p->first_sample = b;
            p->samples = samples < p->s.batch - b ? samples : p->s.batch - b;
            p->first_chunk = k;
            p->chunks = chunks < p->s.chunks - k ? chunks : p->s.chunks - k;
            if (work(d, c, call, i == 0, err))
                return -1;
        }
    return 0;
}

/* A product of matrices that are packed, 'batch' times. */
static int product(struct topt_device *d, struct cuda_gemm g, struct topt_error *err)
{
    g.lda = g.ta ? g.m : g.k;
    g.ldb = g.tb ? g.k : g.n;
    g.ldc = g.n;
    g.stride_a = g.m * g.k;
    g.stride_b = g.k * g.n;
    g.stride_c = g.m * g.n;
    g.alpha = g.alpha < 0 || g.alpha > 0 ? g.alpha : 1;
    return topt_cuda_gemm(d, &g, err);
}

#define PRODUCT(...) product(d, (struct cuda_gemm){__VA_ARGS__}, err)

static int clear(struct topt_device *d, void *p, int64_t n, int wide,
                 struct topt_error *err)
{
    return p ? d->ops->zero(d, p, n * (wide ? d->state_bytes : d->real_bytes), err) : 0;
}

/* Numbers of tiles, of heads and of groups. */
struct extents {
    int64_t tiles, groups, ones; /* ones: of a position and head each */
    int64_t len, n, p, square, keys, values, matrix, carried;
};

static struct extents extents_of(const struct cu_span *s)
{
    struct extents e = {.len = s->len, .n = s->s.n, .p = s->s.p};
    e.tiles = s->chunks * s->samples * s->s.heads;
    e.groups = s->chunks * s->samples * s->groups;
    e.ones = e.tiles * e.len;
    e.square = e.len * e.len;
    e.keys = e.len * e.n;
    e.values = e.len * e.p;
    e.matrix = e.n * e.p;
    e.carried = s->samples * s->s.heads * e.matrix;
    return e;
}

/* ---- state space duality ----------------------------------------------------------- */

static void ssd_room(const struct topt_device *d, void *call, struct room *r)
{
    struct cu_ssd *s = call;
    struct extents e = extents_of(&s->at);
    int64_t real = d->real_bytes, stat = d->state_bytes;
    int backward = s->dy != NULL;
    s->carry = take(r, e.carried, stat);
    s->step = take(r, e.ones, 8);
    s->slope = take(r, e.ones, 8);
    s->sum = take(r, e.ones, 8);
    s->keys = take(r, e.groups * e.keys, real);
    s->queries = take(r, e.groups * e.keys, real);
    s->scores = take(r, e.groups * e.square, stat);
    s->tile_x = take(r, e.tiles * e.values, real);
    s->tile_k = take(r, e.tiles * e.keys, real);
    s->tile_q = take(r, e.tiles * e.keys, real);
    s->m = take(r, e.tiles * e.square, real);
    s->state = take(r, e.tiles * e.matrix, real);
    s->made = take(r, e.tiles * e.matrix, stat);
    s->tile_y = take(r, e.tiles * e.values, stat);
    if (!backward)
        return;
    s->tile_dy = take(r, e.tiles * e.values, real);
    s->slopes = take(r, e.tiles * e.matrix, real);
    s->dm = take(r, e.tiles * e.square, stat);
    s->dq = take(r, e.tiles * e.keys, stat);
    s->dk = take(r, e.tiles * e.keys, stat);
    s->dscores = take(r, e.groups * e.square, real);
    s->gk = take(r, e.groups * e.keys, stat);
    s->gq = take(r, e.groups * e.keys, stat);
    s->own = take(r, e.ones, stat);
    s->later = take(r, e.ones, stat);
    s->weight = take(r, e.ones, stat);
    s->direct = take(r, e.ones, stat);
    s->of_end = take(r, e.tiles, stat);
    s->parts = take(r, 3 * e.tiles, stat);
}

/* Steps, tiles, scores and M, which backward makes again. */
static int ssd_within(struct topt_device *d, const struct topt_kernel_call *c,
                      const struct cu_ssd *s, struct topt_error *err)
{
    struct extents e = extents_of(&s->at);
    struct cu_tiles x = {s->at, s->x, s->tile_x};
    return RUN(ssd_steps, s) || RUN(tiles_get, &x) || RUN(ssd_tiles, s) ||
                   PRODUCT(.tb = 1, .m = e.len, .n = e.len, .k = e.n, .a = s->queries,
                           .b = s->keys, .c = s->scores, .wide = 1, .batch = e.groups) ||
                   RUN(ssd_pairs, s)
               ? -1
               : 0;
}

static int ssd_span_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                        void *call, int first, struct topt_error *err)
{
    const struct cu_ssd *s = call;
    struct extents e = extents_of(&s->at);
    struct cu_carry on = {.at = s->at,
                          .to = s->at.chunks,
                          .sum = s->sum,
                          .added = s->made,
                          .carry = s->carry,
                          .tile = s->state,
                          .kept = c->value[SSD_STATES]};
    if ((first && clear(d, s->carry, e.carried, 1, err)) || ssd_within(d, c, s, err) ||
        PRODUCT(.ta = 1, .m = e.n, .n = e.p, .k = e.len, .a = s->tile_k, .b = s->tile_x,
                .c = s->made, .wide = 1, .batch = e.tiles) ||
        RUN(carry_on, &on) ||
        PRODUCT(.m = e.len, .n = e.p, .k = e.len, .a = s->m, .b = s->tile_x,
                .c = s->tile_y, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.m = e.len, .n = e.p, .k = e.n, .beta = 1, .a = s->tile_q, .b = s->state,
                .c = s->tile_y, .wide = 1, .batch = e.tiles))
        return -1;
    return RUN(ssd_out, s);
}

/* Gradients of the states that chunks end with, from the last one on. */
static int ssd_carry_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                         const struct cu_ssd *s, struct topt_error *err)
{
    struct extents e = extents_of(&s->at);
    struct cu_tiles state = {s->at, c->value[SSD_STATES], s->state};
    struct cu_carry on = {.at = s->at,
                          .to = s->at.chunks,
                          .backward = 1,
                          .sum = s->sum,
                          .added = s->made,
                          .carry = s->carry,
                          .tile = s->slopes};
    struct cu_ends ends = {s->at, s->sum, s->state, s->slopes, s->of_end};
    return RUN(states_get, &state) ||
                   PRODUCT(.ta = 1, .m = e.n, .n = e.p, .k = e.len, .a = s->tile_q,
                           .b = s->tile_dy, .c = s->made, .wide = 1, .batch = e.tiles) ||
                   RUN(carry_on, &on) || RUN(carry_ends, &ends)
               ? -1
               : 0;
}

static int ssd_span_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                        void *call, int first, struct topt_error *err)
{
    const struct cu_ssd *s = call;
    struct extents e = extents_of(&s->at);
    struct cu_tiles dy = {s->at, s->dy, s->tile_dy};
    if ((first && clear(d, s->carry, e.carried, 1, err)) || ssd_within(d, c, s, err) ||
        RUN(tiles_get, &dy) || ssd_carry_bwd(d, c, s, err))
        return -1;
    if (PRODUCT(.tb = 1, .m = e.len, .n = e.n, .k = e.p, .a = s->tile_dy, .b = s->state,
                .c = s->dq, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.tb = 1, .m = e.len, .n = e.n, .k = e.p, .a = s->tile_x, .b = s->slopes,
                .c = s->dk, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.tb = 1, .m = e.len, .n = e.len, .k = e.p, .a = s->tile_dy,
                .b = s->tile_x, .c = s->dm, .wide = 1, .batch = e.tiles))
        return -1;
    if (s->dx && (PRODUCT(.ta = 1, .m = e.len, .n = e.p, .k = e.len, .a = s->m,
                          .b = s->tile_dy, .c = s->tile_y, .wide = 1, .batch = e.tiles) ||
                  PRODUCT(.m = e.len, .n = e.p, .k = e.n, .beta = 1, .a = s->tile_k,
                          .b = s->slopes, .c = s->tile_y, .wide = 1, .batch = e.tiles) ||
                  RUN(ssd_out_back, s)))
        return -1;
    if (RUN(ssd_slopes, s) || RUN(ssd_sums, s) || RUN(ssd_steps_back, s))
        return -1;
    if (!s->dbc)
        return 0;
    return PRODUCT(.m = e.len, .n = e.n, .k = e.len, .a = s->dscores, .b = s->keys,
                   .c = s->gq, .wide = 1, .batch = e.groups) ||
                   PRODUCT(.ta = 1, .m = e.len, .n = e.n, .k = e.len, .a = s->dscores,
                           .b = s->queries, .c = s->gk, .wide = 1, .batch = e.groups) ||
                   RUN(ssd_keys_back, s)
               ? -1
               : 0;
}

static struct cu_ssd ssd_of(const struct topt_kernel_call *c, const struct cu_call *f)
{
    struct scan s = scan_of(c, SSD_X, SSD_BC);
    return (struct cu_ssd){.at = whole_span(&s),
                           .x = c->value[SSD_X],
                           .dt = c->value[SSD_DT],
                           .bc = c->value[SSD_BC],
                           .a_log = c->value[SSD_A_LOG],
                           .d = c->value[SSD_D],
                           .bias = c->value[SSD_BIAS],
                           .y = c->value[SSD_Y],
                           .wide_a_log = (int)(f->wide_grads >> SSD_A_LOG & 1),
                           .wide_d = (int)(f->wide_grads >> SSD_D & 1),
                           .wide_bias = (int)(f->wide_grads >> SSD_BIAS & 1),
                           .least = c->op->attrs->alpha,
                           .most = c->op->attrs->beta};
}

/* Scratch of its own for 'call', and its spans; nothing where no sample or head is here. */
static int in_spans(struct topt_device *d, const struct topt_kernel_call *c,
                    struct cu_span *p, void *call, int backward, room_of *room,
                    span_work *work, struct topt_error *err)
{
    if (p->s.batch < 1 || p->s.heads < 1)
        return 0;
    return fit(d, p, call, room, err) || each_span(d, c, p, call, backward, work, err)
               ? -1
               : 0;
}

int topt_cuda_ssd_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                      const struct cu_call *f, struct topt_error *err)
{
    struct cu_ssd s = ssd_of(c, f);
    return in_spans(d, c, &s.at, &s, 0, ssd_room, ssd_span_fwd, err);
}

/* Groups whose heads are elsewhere get no gradient here. */
int topt_cuda_ssd_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                      const struct cu_call *f, struct topt_error *err)
{
    struct cu_ssd s = ssd_of(c, f);
    s.dy = c->grad[SSD_Y];
    s.dx = c->grad[SSD_X];
    s.ddt = c->grad[SSD_DT];
    s.dbc = c->grad[SSD_BC];
    s.da_log = c->grad[SSD_A_LOG];
    s.dd = c->grad[SSD_D];
    s.dbias = c->grad[SSD_BIAS];
    if (clear(d, s.dbc, f->rows[SSD_BC] * f->cols[SSD_BC], 0, err))
        return -1;
    return in_spans(d, c, &s.at, &s, 1, ssd_room, ssd_span_bwd, err);
}

/* ---- gated delta rule -------------------------------------------------------------- */

static void delta_room(const struct topt_device *d, void *call, struct room *r)
{
    struct cu_delta *s = call;
    struct extents e = extents_of(&s->at);
    int64_t real = d->real_bytes, stat = d->state_bytes;
    int backward = s->dy != NULL;
    s->carry = take(r, e.carried, stat);
    s->gates = take(r, e.ones, 8);
    s->slope = take(r, e.ones, 8);
    s->sum = take(r, e.ones, 8);
    s->share = take(r, e.ones, 8);
    s->keys = take(r, e.groups * e.keys, real);
    s->queries = take(r, e.groups * e.keys, real);
    s->scores_k = take(r, e.groups * e.square, stat);
    s->scores_q = take(r, e.groups * e.square, stat);
    s->k_in = take(r, e.tiles * e.keys, real);
    s->k_out = take(r, e.tiles * e.keys, real);
    s->q_out = take(r, e.tiles * e.keys, real);
    s->a = take(r, e.tiles * e.square, stat);
    s->inverse = take(r, e.tiles * e.square, stat);
    s->round = take(r, e.tiles * e.square, real);
    s->p = take(r, e.tiles * e.square, real);
    s->values = take(r, e.tiles * e.values, real);
    s->u = take(r, e.tiles * e.values, real);
    s->w = take(r, e.tiles * e.keys, real);
    s->state = take(r, e.tiles * e.matrix, real);
    if (!backward) {
        s->wide_u = take(r, e.tiles * e.values, stat);
        s->tile_y = take(r, e.tiles * e.values, stat);
        return;
    }
    s->tile_dy = take(r, e.tiles * e.values, real);
    s->old = take(r, e.tiles * e.values, stat);
    s->slopes = take(r, e.tiles * e.matrix, real);
    s->made = take(r, e.tiles * e.matrix, stat);
    s->du = take(r, e.tiles * e.values, real);
    s->wide_du = take(r, e.tiles * e.values, stat);
    s->back = take(r, e.tiles * e.keys, real);
    s->da = take(r, e.tiles * e.square, stat);
    s->dp = take(r, e.tiles * e.square, stat);
    s->dq_out = take(r, e.tiles * e.keys, stat);
    s->dk_in = take(r, e.tiles * e.keys, stat);
    s->dk_out = take(r, e.tiles * e.keys, stat);
    s->dscores_k = take(r, e.groups * e.square, real);
    s->dscores_q = take(r, e.groups * e.square, real);
    s->gk = take(r, e.groups * e.keys, stat);
    s->gq = take(r, e.groups * e.keys, stat);
    s->own = take(r, e.ones, stat);
    s->later = take(r, e.ones, stat);
    s->weight = take(r, e.ones, stat);
    s->of_beta = take(r, e.ones, stat);
    s->of_end = take(r, e.tiles, stat);
    s->parts = take(r, 2 * e.tiles, stat);
}

/* Gates, tiles, scores, A with its inverse and P, which backward makes again. */
static int delta_within(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_delta *s, struct topt_error *err)
{
    struct extents e = extents_of(&s->at);
    return RUN(delta_gates, s) || RUN(delta_tiles, s) ||
                   PRODUCT(.tb = 1, .m = e.len, .n = e.len, .k = e.n, .a = s->keys,
                           .b = s->keys, .c = s->scores_k, .wide = 1,
                           .batch = e.groups) ||
                   PRODUCT(.tb = 1, .m = e.len, .n = e.len, .k = e.n, .alpha = s->scale,
                           .a = s->queries, .b = s->keys, .c = s->scores_q, .wide = 1,
                           .batch = e.groups) ||
                   RUN(delta_pairs, s)
               ? -1
               : 0;
}

/* One chunk, what is carried into it before: 'wide', of which the state's part 'by' S is
 * still to be added 'alpha' times, is rounded to 'to', and what 'from' makes of that goes
 * into what is carried. */
struct delta_turn {
    struct cu_carry on;
    const void *by, *from;
    void *wide, *to;
    double alpha;
};

static int delta_turn(struct topt_device *d, const struct topt_kernel_call *c,
                      struct delta_turn *v, int64_t k, struct topt_error *err)
{
    struct cu_span one = v->on.at;
    one.chunks = 1;
    struct extents e = extents_of(&one);
    int64_t keys = k * e.tiles * e.keys, values = k * e.tiles * e.values;
    void *by = number(d, v->by, keys, 0), *from = number(d, v->from, keys, 0);
    void *state = number(d, v->on.tile, k * e.tiles * e.matrix, 0);
    void *wide = number(d, v->wide, values, 1), *to = number(d, v->to, values, 0);
    struct cu_settle settle = {to, wide, e.tiles * e.len, e.p, e.p, e.p};
    v->on.from = k;
    v->on.to = k + 1;
    return RUN(carry_on, &v->on) ||
                   PRODUCT(.m = e.len, .n = e.p, .k = e.n, .alpha = v->alpha, .beta = 1,
                           .a = by, .b = state, .c = wide, .wide = 1, .batch = e.tiles) ||
                   RUN(settle, &settle) ||
                   PRODUCT(.ta = 1, .m = e.n, .n = e.p, .k = e.len, .alpha = -v->alpha,
                           .beta = 1, .a = from, .b = to, .c = v->on.carry, .wide = 1,
                           .batch = e.tiles)
               ? -1
               : 0;
}

static int delta_span_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                          void *call, int first, struct topt_error *err)
{
    const struct cu_delta *s = call;
    struct extents e = extents_of(&s->at);
    struct delta_turn turn = {.on = {.at = s->at,
                                     .sum = s->sum,
                                     .carry = s->carry,
                                     .tile = s->state,
                                     .kept = c->value[DELTA_STATES]},
                              .by = s->w,
                              .from = s->k_out,
                              .wide = s->wide_u,
                              .to = s->u,
                              .alpha = -1};
    if ((first && clear(d, s->carry, e.carried, 1, err)) || delta_within(d, c, s, err) ||
        RUN(delta_values, s) ||
        PRODUCT(.m = e.len, .n = e.p, .k = e.len, .a = s->round, .b = s->values,
                .c = s->wide_u, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.m = e.len, .n = e.n, .k = e.len, .a = s->round, .b = s->k_in, .c = s->w,
                .batch = e.tiles))
        return -1;
    for (int64_t k = 0; k < s->at.chunks; k++)
        if (delta_turn(d, c, &turn, k, err))
            return -1;
    return PRODUCT(.m = e.len, .n = e.p, .k = e.len, .a = s->p, .b = s->u, .c = s->tile_y,
                   .wide = 1, .batch = e.tiles) ||
                   PRODUCT(.m = e.len, .n = e.p, .k = e.n, .beta = 1, .a = s->q_out,
                           .b = s->state, .c = s->tile_y, .wide = 1, .batch = e.tiles) ||
                   RUN(delta_out, s)
               ? -1
               : 0;
}

/* u again, from the states that were kept. */
static int delta_again(struct topt_device *d, const struct topt_kernel_call *c,
                       const struct cu_delta *s, struct topt_error *err)
{
    struct extents e = extents_of(&s->at);
    struct cu_tiles state = {s->at, c->value[DELTA_STATES], s->state};
    return delta_within(d, c, s, err) || RUN(states_get, &state) ||
                   PRODUCT(.m = e.len, .n = e.p, .k = e.n, .a = s->k_in, .b = s->state,
                           .c = s->old, .wide = 1, .batch = e.tiles) ||
                   RUN(delta_values, s) ||
                   PRODUCT(.m = e.len, .n = e.p, .k = e.len, .a = s->round,
                           .b = s->values, .c = s->u, .batch = e.tiles)
               ? -1
               : 0;
}

/* Gradients of right-hand sides and of the states that chunks end with, from the last one
 * on.  The tile of P^T dy is that of u's right-hand side, which is done with. */
static int delta_carry_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_delta *s, struct topt_error *err)
{
    struct extents e = extents_of(&s->at);
    struct delta_turn turn = {.on = {.at = s->at,
                                     .sum = s->sum,
                                     .added = s->made,
                                     .carry = s->carry,
                                     .tile = s->slopes},
                              .by = s->back,
                              .from = s->k_in,
                              .wide = s->wide_du,
                              .to = s->du,
                              .alpha = 1};
    struct cu_ends ends = {s->at, s->sum, s->state, s->slopes, s->of_end};
    if (PRODUCT(.ta = 1, .m = e.len, .n = e.p, .k = e.len, .a = s->p, .b = s->tile_dy,
                .c = s->values, .batch = e.tiles) ||
        PRODUCT(.ta = 1, .m = e.len, .n = e.p, .k = e.len, .a = s->round, .b = s->values,
                .c = s->wide_du, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.ta = 1, .m = e.len, .n = e.n, .k = e.len, .a = s->round, .b = s->k_out,
                .c = s->back, .batch = e.tiles) ||
        PRODUCT(.ta = 1, .m = e.n, .n = e.p, .k = e.len, .a = s->q_out, .b = s->tile_dy,
                .c = s->made, .wide = 1, .batch = e.tiles))
        return -1;
    for (int64_t k = s->at.chunks - 1; k >= 0; k--)
        if (delta_turn(d, c, &turn, k, err))
            return -1;
    return RUN(carry_ends, &ends);
}

/* Gradients of keys and queries by way of their products. */
static int delta_keys_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_delta *s, struct topt_error *err)
{
    struct extents e = extents_of(&s->at);
    return PRODUCT(.m = e.len, .n = e.n, .k = e.len, .alpha = s->scale, .a = s->dscores_q,
                   .b = s->keys, .c = s->gq, .wide = 1, .batch = e.groups) ||
                   PRODUCT(.ta = 1, .m = e.len, .n = e.n, .k = e.len, .alpha = s->scale,
                           .a = s->dscores_q, .b = s->queries, .c = s->gk, .wide = 1,
                           .batch = e.groups) ||
                   PRODUCT(.m = e.len, .n = e.n, .k = e.len, .beta = 1, .a = s->dscores_k,
                           .b = s->keys, .c = s->gk, .wide = 1, .batch = e.groups) ||
                   PRODUCT(.ta = 1, .m = e.len, .n = e.n, .k = e.len, .beta = 1,
                           .a = s->dscores_k, .b = s->keys, .c = s->gk, .wide = 1,
                           .batch = e.groups) ||
                   RUN(delta_keys_back, s)
               ? -1
               : 0;
}

static int delta_span_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                          void *call, int first, struct topt_error *err)
{
    const struct cu_delta *s = call;
    struct extents e = extents_of(&s->at);
    struct cu_tiles dy = {s->at, s->dy, s->tile_dy};
    if ((first && clear(d, s->carry, e.carried, 1, err)) || delta_again(d, c, s, err) ||
        RUN(tiles_get, &dy) || delta_carry_bwd(d, c, s, err))
        return -1;
    if (PRODUCT(.tb = 1, .m = e.len, .n = e.n, .k = e.p, .a = s->tile_dy, .b = s->state,
                .c = s->dq_out, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.tb = 1, .m = e.len, .n = e.n, .k = e.p, .a = s->u, .b = s->slopes,
                .c = s->dk_out, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.tb = 1, .m = e.len, .n = e.n, .k = e.p, .alpha = -1, .a = s->du,
                .b = s->state, .c = s->dk_in, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.tb = 1, .m = e.len, .n = e.len, .k = e.p, .a = s->tile_dy, .b = s->u,
                .c = s->dp, .wide = 1, .batch = e.tiles) ||
        PRODUCT(.tb = 1, .m = e.len, .n = e.len, .k = e.p, .alpha = -1, .a = s->du,
                .b = s->u, .c = s->da, .wide = 1, .batch = e.tiles))
        return -1;
    return RUN(delta_slopes, s) || RUN(delta_sums, s) || RUN(delta_gates_back, s) ||
                   (s->dv && RUN(delta_out_back, s)) ||
                   (s->dqk && delta_keys_bwd(d, c, s, err))
               ? -1
               : 0;
}

static struct cu_delta delta_of(const struct topt_kernel_call *c, const struct cu_call *f)
{
    struct scan s = scan_of(c, DELTA_V, DELTA_QK);
    return (struct cu_delta){.at = whole_span(&s),
                             .v = c->value[DELTA_V],
                             .qk = c->value[DELTA_QK],
                             .beta = c->value[DELTA_BETA],
                             .gate = c->value[DELTA_GATE],
                             .a_log = c->value[DELTA_A_LOG],
                             .bias = c->value[DELTA_BIAS],
                             .y = c->value[DELTA_Y],
                             .wide_a_log = (int)(f->wide_grads >> DELTA_A_LOG & 1),
                             .wide_bias = (int)(f->wide_grads >> DELTA_BIAS & 1),
                             .eps = c->op->attrs->eps,
                             .scale = 1 / sqrt((double)s.n)};
}

int topt_cuda_delta_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_call *f, struct topt_error *err)
{
    struct cu_delta s = delta_of(c, f);
    return in_spans(d, c, &s.at, &s, 0, delta_room, delta_span_fwd, err);
}

int topt_cuda_delta_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_call *f, struct topt_error *err)
{
    struct cu_delta s = delta_of(c, f);
    s.dy = c->grad[DELTA_Y];
    s.dv = c->grad[DELTA_V];
    s.dqk = c->grad[DELTA_QK];
    s.dbeta = c->grad[DELTA_BETA];
    s.dgate = c->grad[DELTA_GATE];
    s.da_log = c->grad[DELTA_A_LOG];
    s.dbias = c->grad[DELTA_BIAS];
    if (clear(d, s.dqk, f->rows[DELTA_QK] * f->cols[DELTA_QK], 0, err))
        return -1;
    return in_spans(d, c, &s.at, &s, 1, delta_room, delta_span_bwd, err);
}

/* ---- selective state spaces -------------------------------------------------------- */

static void selective_room(const struct topt_device *d, void *call, struct room *r)
{
    struct cu_selective *s = call;
    struct extents e = extents_of(&s->at);
    int64_t stat = d->state_bytes, n = s->at.s.n;
    s->carry = take(r, s->at.samples * n * s->at.s.heads, stat);
    s->total = take(r, e.tiles, 8);
    s->step = take(r, e.ones, stat);
    s->made = take(r, e.tiles * n, stat);
    if (!s->dy)
        return;
    s->seen = take(r, e.ones * n, stat);
    s->slope = take(r, e.ones * n, stat);
    s->of_a = take(r, e.tiles * n, stat);
    s->of_d = take(r, e.tiles, stat);
}

static int selective_span(struct topt_device *d, const struct topt_kernel_call *c,
                          void *call, int first, struct topt_error *err)
{
    const struct cu_selective *s = call;
    int64_t carried = s->at.samples * s->at.s.n * s->at.s.heads;
    if ((first && clear(d, s->carry, carried, 1, err)) || RUN(selective_steps, s) ||
        (s->dy ? RUN(selective_made_back, s) : RUN(selective_made, s)) ||
        RUN(selective_carry, s))
        return -1;
    return s->dy ? RUN(selective_back, s) : RUN(selective_out, s);
}

static int selective(struct topt_device *d, const struct topt_kernel_call *c,
                     struct cu_selective *s, int backward, struct topt_error *err)
{
    return in_spans(d, c, &s->at, s, backward, selective_room, selective_span, err);
}

static struct cu_selective selective_of(const struct topt_kernel_call *c,
                                        const struct cu_call *f)
{
    struct scan s = selective_scan(c);
    return (struct cu_selective){.at = whole_span(&s),
                                 .x = c->value[SELECTIVE_X],
                                 .dt = c->value[SELECTIVE_DT],
                                 .b = c->value[SELECTIVE_B],
                                 .c = c->value[SELECTIVE_C],
                                 .a_log = c->value[SELECTIVE_A_LOG],
                                 .d = c->value[SELECTIVE_D],
                                 .y = c->value[SELECTIVE_Y],
                                 .states = c->value[SELECTIVE_STATES],
                                 .wide_a_log =
                                     (int)(f->wide_grads >> SELECTIVE_A_LOG & 1),
                                 .wide_d = (int)(f->wide_grads >> SELECTIVE_D & 1)};
}

int topt_cuda_selective_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    struct cu_selective s = selective_of(c, f);
    return selective(d, c, &s, 0, err);
}

int topt_cuda_selective_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    struct cu_selective s = selective_of(c, f);
    s.dy = c->grad[SELECTIVE_Y];
    s.dx = c->grad[SELECTIVE_X];
    s.ddt = c->grad[SELECTIVE_DT];
    s.db = c->grad[SELECTIVE_B];
    s.dc = c->grad[SELECTIVE_C];
    s.da_log = c->grad[SELECTIVE_A_LOG];
    s.dd = c->grad[SELECTIVE_D];
    for (int o = SELECTIVE_B; o <= SELECTIVE_C; o++)
        if (clear(d, c->grad[o], f->rows[o] * f->cols[o], 0, err))
            return -1;
    return selective(d, c, &s, 1, err);
}

/* ---- causal convolution ------------------------------------------------------------ */

int topt_cuda_causal_conv_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                              const struct cu_call *f, struct topt_error *err)
{
    struct cu_causal s = {.s = causal_of(c),
                          .x = c->value[CAUSAL_X],
                          .w = c->value[CAUSAL_W],
                          .bias = c->value[CAUSAL_BIAS],
                          .y = c->value[CAUSAL_Y]};
    (void)f;
    return RUN(causal_conv_get, &s);
}

int topt_cuda_causal_conv_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                              const struct cu_call *f, struct topt_error *err)
{
    struct cu_causal s = {.s = causal_of(c),
                          .x = c->value[CAUSAL_X],
                          .w = c->value[CAUSAL_W],
                          .dy = c->grad[CAUSAL_Y],
                          .dx = c->grad[CAUSAL_X],
                          .dw = c->grad[CAUSAL_W],
                          .wide_w = (int)(f->wide_grads >> CAUSAL_W & 1)};
    struct cu_columns bias = {.dst = c->grad[CAUSAL_BIAS],
                              .x = s.dy,
                              .rows = s.s.batch * s.s.seq,
                              .cols = s.s.d,
                              .ld = s.s.d,
                              .wide_dst = (int)(f->wide_grads >> CAUSAL_BIAS & 1)};
    return (s.dx && RUN(causal_conv_put, &s)) || (s.dw && RUN(causal_conv_weights, &s)) ||
                   RUN(add_columns, &bias)
               ? -1
               : 0;
}
