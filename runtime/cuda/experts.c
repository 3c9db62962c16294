/* experts.c - mixtures of experts, and the products of recurrences. */
#include "cuda.h"

static char *at(const struct topt_device *d, const void *p, int64_t i, int wide)
{
    return (char *)(uintptr_t)p + i * (wide ? d->state_bytes : d->real_bytes);
}

#define RUN(name, args)                                                                  \
    topt_cuda_launched(dev_of(d)->math->name(dev_of(d)->stream, args), c, err)

/* ---- routing, dispatch and combine --------------------------------------------------- */

/* Which tokens have a slot of which experts, and all weights: in the device's scratch. */
static int route(struct topt_device *d, const struct topt_kernel_call *c,
                 struct cu_route *r, struct topt_error *err)
{
    enum { LOGITS, G, CORRECTION };
    const struct topt_attrs *a = c->op->attrs;
    void *room;
    *r = (struct cu_route){.logit = c->value[LOGITS],
                           .correction = c->value[CORRECTION],
                           .g = c->value[G],
                           .dg = c->grad[G],
                           .dlogit = c->grad[LOGITS],
                           .batch = extent(c, G, 0),
                           .seq = extent(c, G, 1),
                           .experts = extent(c, G, 2),
                           .top_k = a->top_k,
                           .groups = a->groups,
                           .top_groups = a->top_groups,
                           .sigmoid = a->sigmoid,
                           .unnormalized = a->unnormalized,
                           .factor = a->factor < 0 || a->factor > 0 ? a->factor : 1};
    int64_t n = r->batch * r->seq * r->experts, kept = (n + 255) / 256 * 256;
    r->slots = topt_expert_slots(a, r->seq, r->experts);
    if (topt_cuda_scratch(d, kept + n * d->state_bytes, &room, err))
        return -1;
    r->kept = room;
    r->weight = (char *)room + kept;
    return 0;
}

int topt_cuda_route_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_call *f, struct topt_error *err)
{
    struct cu_route r;
    (void)f;
    return route(d, c, &r, err) || RUN(route_tokens, &r) ? -1 : 0;
}

int topt_cuda_route_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                        const struct cu_call *f, struct topt_error *err)
{
    struct cu_route r;
    (void)f;
    if (route(d, c, &r, err))
        return -1;
    r.g = NULL;
    return r.dlogit && (RUN(route_tokens, &r) || RUN(route_slopes, &r)) ? -1 : 0;
}

/* Which token has which slot: slots [b, e, slots, d] of operand 'slots', weights of operand
 * 1; worked out into the scratch.  What is then done takes 'from' and gives 'to'. */
static int find_slots(struct topt_device *d, const struct topt_kernel_call *c, int slots,
                      const void *from, void *to, struct cu_slots *s,
                      struct topt_error *err)
{
    enum { G = 1 };
    void *room;
    *s = (struct cu_slots){.g = c->value[G],
                           .from = from,
                           .to = to,
                           .batch = extent(c, slots, 0),
                           .experts = c->box[slots].len[1],
                           .slots = c->op->operand[slots].dim[1].unit,
                           .seq = extent(c, G, 1),
                           .d = extent(c, slots, 2)};
    int64_t tokens = s->batch * s->experts * s->slots;
    int64_t weights = s->batch * s->seq * s->experts;
    if (topt_cuda_scratch(d, 4 * (tokens + weights), &room, err))
        return -1;
    s->token = room;
    s->slot = s->token + tokens;
    return RUN(slots_find, s);
}

int topt_cuda_dispatch_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    enum { X, G, Y };
    struct cu_slots s;
    (void)f;
    return find_slots(d, c, Y, c->value[X], c->value[Y], &s, err) || RUN(slots_fill, &s)
               ? -1
               : 0;
}

/* Which slot a token has does not change with its weights a little: their gradient is 0. */
int topt_cuda_dispatch_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                           const struct cu_call *f, struct topt_error *err)
{
    enum { X, G, Y };
    struct cu_slots s;
    int64_t bytes = f->rows[G] * f->cols[G] * d->real_bytes;
    return (c->grad[G] && d->ops->zero(d, c->grad[G], bytes, err)) ||
                   find_slots(d, c, Y, c->grad[Y], c->grad[X], &s, err) ||
                   (s.to && RUN(slots_return, &s))
               ? -1
               : 0;
}

int topt_cuda_combine_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    enum { Y, G, Z };
    struct cu_slots s;
    (void)f;
    return find_slots(d, c, Y, c->value[Y], c->value[Z], &s, err) ||
                   RUN(slots_combine, &s)
               ? -1
               : 0;
}

int topt_cuda_combine_bwd(struct topt_device *d, const struct topt_kernel_call *c,
                          const struct cu_call *f, struct topt_error *err)
{
    enum { Y, G, Z };
    struct cu_slots s;
    (void)f;
    if (find_slots(d, c, Y, c->value[Y], c->grad[Y], &s, err))
        return -1;
    s.dg = c->grad[G];
    s.dz = c->grad[Z];
    return (s.to && RUN(slots_weigh, &s)) || (s.dg && RUN(slots_weights, &s)) ? -1 : 0;
}

/* ---- experts' products ------------------------------------------------------------- */

/* c = a b of operands: rows are the slots of one sample and expert, weights follow the
 * expert.  With 'weights' the product is a weight's gradient, which samples add up in. */
struct expert_product {
    int a, b, c;
    const void *pa, *pb;
    void *pc;
    int ta, tb, weights;
};

static int multiply(struct topt_device *d, const struct topt_kernel_call *c,
                    const struct cu_call *f, const struct expert_product *p,
                    struct topt_error *err)
{
    int64_t slots = c->op->operand[EX].dim[1].unit, experts = c->len[1];
    int64_t acols = f->cols[p->a], bcols = f->cols[p->b], ccols = f->cols[p->c];
    int64_t brows = p->weights ? slots : p->tb ? ccols : acols;
    int64_t crows = p->weights ? acols : slots;
    int wide = p->weights && f->wide_grads >> p->c & 1;
    for (int64_t i = 0; p->pc && i < experts * c->len[0]; i++) {
        int64_t e = i / c->len[0], block = i % c->len[0] * experts + e;
        struct cuda_gemm g = {
            .ta = p->ta,
            .tb = p->tb,
            .m = crows,
            .n = ccols,
            .k = p->weights ? slots : acols,
            .alpha = 1,
            .beta = p->weights,
            .a = at(d, p->pa, block * slots * acols, 0),
            .lda = acols,
            .b = at(d, p->pb, (p->weights ? block : e) * brows * bcols, 0),
            .ldb = bcols,
            .c = at(d, p->pc, (p->weights ? e : block) * crows * ccols, wide),
            .ldc = ccols,
            .wide = wide};
        if (topt_cuda_gemm(d, &g, err))
            return -1;
    }
    return 0;
}

#define PRODUCT(kernel, ...)                                                             \
    int topt_cuda_##kernel(struct topt_device *d, const struct topt_kernel_call *c,      \
                           const struct cu_call *f, struct topt_error *err)              \
    {                                                                                    \
        struct expert_product p = {__VA_ARGS__};                                         \
        return multiply(d, c, f, &p, err);                                               \
    }

PRODUCT(experts_up, .a = EX, .b = EUP, .c = EH, .pa = c->value[EX], .pb = c->value[EUP],
        .pc = c->value[EH], .tb = 1)
PRODUCT(experts_down, .a = EA, .b = EDOWN, .c = EY, .pa = c->value[EA],
        .pb = c->value[EDOWN], .pc = c->value[EY], .tb = 1)
PRODUCT(experts_bwd_down, .a = EY, .b = EDA, .c = EDOWN, .pa = c->grad[EY],
        .pb = c->value[EDA], .pc = c->grad[EDOWN], .ta = 1, .weights = 1)
PRODUCT(experts_bwd_a, .a = EY, .b = EDOWN, .c = EDA, .pa = c->grad[EY],
        .pb = c->value[EDOWN], .pc = c->value[EDA])
PRODUCT(experts_bwd_up, .a = EDH, .b = EX, .c = EUP, .pa = c->value[EDH],
        .pb = c->value[EX], .pc = c->grad[EUP], .ta = 1, .weights = 1)
PRODUCT(experts_bwd_x, .a = EDH, .b = EUP, .c = EX, .pa = c->value[EDH],
        .pb = c->value[EUP], .pc = c->grad[EX])

/* ---- recurrences' products --------------------------------------------------------- */

int topt_cuda_recurrent_fwd(struct topt_device *d, const struct topt_kernel_call *c,
                            const struct cu_call *f, struct topt_error *err)
{
    int64_t width = f->cols[REC_GATES], k = f->cols[REC_WH];
    return topt_cuda_gemm(d,
                          &(struct cuda_gemm){.tb = 1,
                                              .m = c->len[0],
                                              .n = width,
                                              .k = c->at == 0 ? 0 : k,
                                              .alpha = 1,
                                              .a = c->value[REC_HK],
                                              .lda = k,
                                              .b = c->value[REC_WH],
                                              .ldb = k,
                                              .c = c->value[REC_Z],
                                              .ldc = width},
                          err);
}

int topt_cuda_recurrent_bwd_h(struct topt_device *d, const struct topt_kernel_call *c,
                              const struct cu_call *f, struct topt_error *err)
{
    int64_t width = f->cols[REC_GATES], k = f->cols[REC_WH], n = c->len[1];
    int last = c->at + 1 == n;
    return topt_cuda_gemm(
        d,
        &(struct cuda_gemm){
            .m = c->len[0],
            .n = k,
            .k = last ? 0 : width,
            .alpha = 1,
            .a = last ? NULL : at(d, c->value[REC_GATES], (c->at + 1) * width, 0),
            .lda = n * width,
            .b = c->value[REC_WH],
            .ldb = k,
            .c = c->value[REC_DHK],
            .ldc = k},
        err);
}

int topt_cuda_recurrent_bwd_w(struct topt_device *d, const struct topt_kernel_call *c,
                              const struct cu_call *f, struct topt_error *err)
{
    int64_t width = f->cols[REC_GATES], k = f->cols[REC_WH];
    return topt_cuda_gemm(d,
                          &(struct cuda_gemm){.ta = 1,
                                              .m = width,
                                              .n = k,
                                              .k = c->len[0] * c->len[1],
                                              .alpha = 1,
                                              .beta = 1,
                                              .a = c->value[REC_GATES],
                                              .lda = width,
                                              .b = c->value[REC_STATES],
                                              .ldb = k,
                                              .c = c->grad[REC_WH],
                                              .ldc = k,
                                              .wide = (int)(f->wide_grads >> REC_WH & 1)},
                          err);
}
