/* k_moe.h - mixtures of experts: route, dispatch, experts, combine.
 *
 * An expert's slots are given out in order of position among the tokens whose weight
 * for it is not 0; blocks hold all positions of a sample, so that a rank counts slots
 * by itself. */
#include "real.h"

/* ---- route ------------------------------------------------------------------------- */

/* One token's routing: the weight of each expert (0 outside of what they are shares over), the
 * experts where it has a slot, and what is left of 1 by the sigmoid. */
struct routed {
    double weight[TOPT_MAX_EXPERTS], rest[TOPT_MAX_EXPERTS];
    uint8_t kept[TOPT_MAX_EXPERTS];
};

/* The first of the largest among those that are open, of which there is one. */
static int64_t best_of(const double *score, const uint8_t *open, int64_t n)
{
    int64_t best = 0;
    while (best + 1 < n && !open[best])
        best++;
    for (int64_t e = best + 1; e < n; e++)
        if (open[e] && score[e] > score[best])
            best = e;
    return best;
}

static double sum_of_best_two(const double *score, int64_t n)
{
    double first = score[0], second = n > 1 ? -INFINITY : 0;
    for (int64_t e = 1; e < n; e++) {
        second = score[e] > first ? first : score[e] > second ? score[e] : second;
        first = score[e] > first ? score[e] : first;
    }
    return first + second;
}

/* Open are the experts of the groups whose two largest scores add up to the most. */
static void open_groups(const struct topt_attrs *a, const double *score, int64_t experts,
                        uint8_t *open)
{
    uint8_t left[TOPT_MAX_EXPERTS];
    double sum[TOPT_MAX_EXPERTS];
    int64_t size = experts / a->groups;
    for (int64_t g = 0; g < a->groups; g++)
        sum[g] = sum_of_best_two(score + g * size, size);
    memset(left, 1, sizeof left);
    memset(open, 0, (size_t)experts);
    for (int64_t k = 0; k < a->top_groups; k++) {
        int64_t g = best_of(sum, left, a->groups);
        left[g] = 0;
        memset(open + g * size, 1, (size_t)size);
    }
}

/* The largest scores, ties to the first. */
static void choose(const struct topt_attrs *a, const double *score, int64_t experts,
                   uint8_t *chosen)
{
    uint8_t open[TOPT_MAX_EXPERTS];
    open_groups(a, score, experts, open);
    memset(chosen, 0, (size_t)experts);
    for (int64_t k = 0; k < a->top_k; k++) {
        int64_t e = best_of(score, open, experts);
        open[e] = 0;
        chosen[e] = 1;
    }
}

/* What the weights are shares of: powers, or sigmoids of the logits.  The scores that
 * decide which experts are chosen into 'score'. */
static void shares_of(const struct topt_kernel_call *c, const real *logit,
                      int64_t experts, struct routed *t, double *score)
{
    enum { CORRECTION = 2 };
    const real *correction = c->value[CORRECTION];
    /* where sigmoids alone would decide their logits do, which are never the same 1 */
    int by_logit = !c->op->attrs->sigmoid || (!correction && c->op->attrs->groups == 1);
    double most = -INFINITY;
    for (int64_t e = 0; e < experts; e++)
        most = (double)logit[e] > most ? (double)logit[e] : most;
    for (int64_t e = 0; e < experts; e++) {
        double x = (double)logit[e];
        t->rest[e] = route_left((int)c->op->attrs->sigmoid, x);
        t->weight[e] = route_share((int)c->op->attrs->sigmoid, x, most);
        score[e] =
            (by_logit ? x : t->weight[e]) + (correction ? (double)correction[e] : 0);
    }
}

/* Route a token; 'used' counts the slots of each expert that are taken: beyond its capacity the
 * token is dropped, and not kept there. */
static void route(const struct topt_kernel_call *c, const real *logit, int64_t experts,
                  int64_t slots, int64_t *used, struct routed *t)
{
    const struct topt_attrs *a = c->op->attrs;
    double score[TOPT_MAX_EXPERTS], sum = 0;
    double factor = a->factor < 0 || a->factor > 0 ? a->factor : 1;
    int shared = !(a->sigmoid && a->unnormalized);
    shares_of(c, logit, experts, t, score);
    choose(a, score, experts, t->kept);
    for (int64_t e = 0; e < experts; e++) {
        t->weight[e] *= t->kept[e] || a->unnormalized;
        sum += t->weight[e];
    }
    for (int64_t e = 0; e < experts; e++) {
        t->weight[e] *= factor / (shared ? sum : 1);
        if (t->kept[e])
            t->kept[e] = used[e]++ < slots;
    }
}

/* ---- their balance ----------------------------------------------------------------- */

/* By expert how many of a sample's positions choose it, over what would be its equal part. */
static void loads_of(const struct topt_kernel_call *c, const real *logit, int64_t seq,
                     int64_t experts, double *ret)
{
    const struct topt_attrs *a = c->op->attrs;
    double score[TOPT_MAX_EXPERTS], even = (double)(a->top_k * seq) / (double)experts;
    struct routed t;
    memset(ret, 0, (size_t)experts * sizeof *ret);
    for (int64_t s = 0; s < seq; s++, logit += experts) {
        shares_of(c, logit, experts, &t, score);
        choose(a, score, experts, t.kept);
        for (int64_t e = 0; e < experts; e++)
            ret[e] += t.kept[e] ? 1 / even : 0;
    }
}

/* A position's share of each expert; returns the mean of their loads by these. */
static double mean_load(const struct topt_kernel_call *c, const real *logit,
                        int64_t experts, const double *load, struct routed *t)
{
    double score[TOPT_MAX_EXPERTS], sum = 0, mean = 0;
    shares_of(c, logit, experts, t, score);
    for (int64_t e = 0; e < experts; e++)
        sum += t->weight[e];
    for (int64_t e = 0; e < experts; e++)
        mean += (t->weight[e] /= sum) * load[e];
    return mean;
}

static double balance_of(const struct topt_kernel_call *c, const real *logit, int64_t seq,
                         int64_t experts)
{
    double load[TOPT_MAX_EXPERTS], sum = 0;
    struct routed t;
    loads_of(c, logit, seq, experts, load);
    for (int64_t s = 0; s < seq; s++)
        sum += mean_load(c, logit + s * experts, experts, load, &t);
    return sum / (double)seq;
}

/* The choice itself has no slope; the shares have. */
static void add_balance_slopes(const struct topt_kernel_call *c, const real *logit,
                               int64_t seq, int64_t experts, real *dlogit)
{
    double load[TOPT_MAX_EXPERTS];
    double samples = (double)(c->op->count[0] * c->micro_batches);
    double each = c->balance / ((double)seq * samples);
    struct routed t;
    loads_of(c, logit, seq, experts, load);
    for (int64_t s = 0; s < seq; s++, logit += experts, dlogit += experts) {
        double mean = mean_load(c, logit, experts, load, &t);
        for (int64_t e = 0; e < experts; e++)
            dlogit[e] += R(each * t.rest[e] * t.weight[e] * (load[e] - mean));
    }
}

static void route_fwd(const struct topt_kernel_call *c)
{
    enum { LOGITS, G };
    const real *logit = c->value[LOGITS];
    real *g = c->value[G];
    int64_t seq = extent(c, G, 1), experts = cols_of(c, G);
    int64_t slots = topt_expert_slots(c->op->attrs, seq, experts);
    struct routed t;
    for (int64_t b = 0; b < extent(c, G, 0); b++) {
        int64_t used[TOPT_MAX_EXPERTS] = {0};
        if (c->balanced)
            *c->balanced += balance_of(c, logit, seq, experts);
        for (int64_t s = 0; s < seq; s++, logit += experts, g += experts) {
            route(c, logit, experts, slots, used, &t);
            for (int64_t e = 0; e < experts; e++)
                g[e] = t.kept[e] ? R(t.weight[e]) : 0;
        }
    }
}

/* Weights w = f share / sum of shares, of which the kept ones are the output:
 *     dlogit = w (kept dg - sum of w / f kept dg), of a sigmoid times what is left of 1 by it
 * and without the sum where sigmoids stand by themselves. */
static void route_bwd(const struct topt_kernel_call *c)
{
    enum { LOGITS, G };
    const real *logit = c->value[LOGITS], *dg = c->grad[G];
    real *dlogit = c->grad[LOGITS];
    int64_t seq = extent(c, G, 1), experts = cols_of(c, G);
    const struct topt_attrs *a = c->op->attrs;
    int64_t slots = topt_expert_slots(a, seq, experts);
    double factor = a->factor < 0 || a->factor > 0 ? a->factor : 1;
    int shared = !(a->sigmoid && a->unnormalized);
    struct routed t;
    for (int64_t b = 0; dlogit && b < extent(c, G, 0); b++) {
        int64_t used[TOPT_MAX_EXPERTS] = {0};
        for (int64_t s = 0; s < seq; s++) {
            double mean = 0;
            route(c, logit, experts, slots, used, &t);
            for (int64_t e = 0; e < experts; e++)
                mean += shared && t.kept[e] ? t.weight[e] / factor * (double)dg[e] : 0;
            for (int64_t e = 0; e < experts; e++)
                dlogit[e] =
                    R(t.weight[e] * t.rest[e] * ((t.kept[e] ? (double)dg[e] : 0) - mean));
            logit += experts, dg += experts, dlogit += experts;
        }
        int64_t n = seq * experts;
        if (c->balance > 0)
            add_balance_slopes(c, logit - n, seq, experts, dlogit - n);
    }
}

/* ---- dispatch and combine ---------------------------------------------------------- */

/* Extents of the local blocks: slots [b, e, slots, d], tokens [b, s, d], weights [b,
 * s, e]. */
struct slotted {
    int64_t batch, experts, slots, seq, d;
};

static struct slotted slotted_of(const struct topt_kernel_call *c, int slots, int g)
{
    return (struct slotted){.batch = extent(c, slots, 0),
                            .experts = c->box[slots].len[1],
                            .slots = c->op->operand[slots].dim[1].unit,
                            .seq = extent(c, g, 1),
                            .d = cols_of(c, slots)};
}

/* Call with each pair of a token and the slot that it has: elements where they start, and
 * where their weight is. */
typedef void slotted_visit(const struct topt_kernel_call *c, int64_t d, int64_t token,
                           int64_t slot, int64_t weight);

static void visit_slots(const struct topt_kernel_call *c, const struct slotted *x,
                        const real *g, slotted_visit *visit)
{
    for (int64_t b = 0; b < x->batch; b++)
        for (int64_t e = 0; e < x->experts; e++) {
            int64_t slot = (b * x->experts + e) * x->slots, end = slot + x->slots;
            for (int64_t s = 0; s < x->seq && slot < end; s++) {
                int64_t token = b * x->seq + s, weight = token * x->experts + e;
                if (g[weight] != 0)
                    visit(c, x->d, token * x->d, slot++ * x->d, weight);
            }
        }
}

static void clear(const struct topt_kernel_call *c, real *x, int operand)
{
    int64_t n = x ? elements_of(c, operand) : 0;
    if (n > 0)
        memset(x, 0, (size_t)n * sizeof *x);
}

static void dispatch_token(const struct topt_kernel_call *c, int64_t d, int64_t token,
                           int64_t slot, int64_t weight)
{
    enum { X, G, Y };
    (void)weight;
    copy((real *)c->value[Y] + slot, (const real *)c->value[X] + token, d);
}

/* Slots without a token are 0. */
static void dispatch_fwd(const struct topt_kernel_call *c)
{
    enum { X, G, Y };
    struct slotted x = slotted_of(c, Y, G);
    clear(c, c->value[Y], Y);
    visit_slots(c, &x, c->value[G], dispatch_token);
}

static void return_token(const struct topt_kernel_call *c, int64_t d, int64_t token,
                         int64_t slot, int64_t weight)
{
    enum { X, G, Y };
    const real *dy = (const real *)c->grad[Y] + slot;
    real *dx = (real *)c->grad[X] + token;
    (void)weight;
    for (int64_t j = 0; j < d; j++)
        dx[j] += dy[j];
}

/* Which slot a token has does not change with its weights a little: their gradient is 0. */
static void dispatch_bwd(const struct topt_kernel_call *c)
{
    enum { X, G, Y };
    struct slotted x = slotted_of(c, Y, G);
    clear(c, c->grad[G], G);
    clear(c, c->grad[X], X);
    if (c->grad[X])
        visit_slots(c, &x, c->value[G], return_token);
}

static void combine_token(const struct topt_kernel_call *c, int64_t d, int64_t token,
                          int64_t slot, int64_t weight)
{
    enum { Y, G, Z };
    const real *y = (const real *)c->value[Y] + slot;
    real *z = (real *)c->value[Z] + token, g = ((const real *)c->value[G])[weight];
    for (int64_t j = 0; j < d; j++)
        z[j] += g * y[j];
}

static void combine_fwd(const struct topt_kernel_call *c)
{
    enum { Y, G, Z };
    struct slotted x = slotted_of(c, Y, G);
    clear(c, c->value[Z], Z);
    visit_slots(c, &x, c->value[G], combine_token);
}

static void combine_bwd_token(const struct topt_kernel_call *c, int64_t d, int64_t token,
                              int64_t slot, int64_t weight)
{
    enum { Y, G, Z };
    const real *y = (const real *)c->value[Y] + slot;
    const real *dz = (const real *)c->grad[Z] + token;
    real *dy = c->grad[Y], *dg = c->grad[G], g = ((const real *)c->value[G])[weight];
    double sum = 0;
    for (int64_t j = 0; dy && j < d; j++)
        dy[slot + j] = g * dz[j];
    for (int64_t j = 0; dg && j < d; j++)
        sum += (double)y[j] * (double)dz[j];
    if (dg)
        dg[weight] = R(sum);
}

static void combine_bwd(const struct topt_kernel_call *c)
{
    enum { Y, G, Z };
    struct slotted x = slotted_of(c, Y, G);
    clear(c, c->grad[Y], Y);
    clear(c, c->grad[G], G);
    visit_slots(c, &x, c->value[G], combine_bwd_token);
}

/* ---- experts
 * ----------------------------------------------------------------------------------
 *
 *     h = x up^T    a = act(h)    y = a down^T       for each expert and sample by itself
 */

/* The products of one operand: rows are the slots of one sample and expert, weights
 * follow the expert.  With 'weights' the product is a weight's gradient, which samples
 * add up in. */
struct expert_product {
    int a, b, c;         /* operands, as in c = a b */
    const real *pa, *pb; /* where they are */
    real *pc;
    int ta, tb, weights;
};

static void multiply_experts(const struct topt_kernel_call *c,
                             const struct expert_product *p)
{
    int64_t slots = c->op->operand[EX].dim[1].unit, experts = c->len[1];
    int64_t acols = cols_of(c, p->a), bcols = cols_of(c, p->b), ccols = cols_of(c, p->c);
    int64_t brows = p->weights ? slots : p->tb ? ccols : acols;
    int64_t crows = p->weights ? acols : slots;
    for (int64_t e = 0; p->pc && e < experts; e++)
        for (int64_t b = 0; b < c->len[0]; b++) {
            int64_t block = b * experts + e;
            gemm(&(struct gemm){.ta = p->ta,
                                .tb = p->tb,
                                .m = crows,
                                .n = ccols,
                                .k = p->weights ? slots : acols,
                                .alpha = 1,
                                .beta = p->weights ? 1 : 0,
                                .a = p->pa + block * slots * acols,
                                .lda = acols,
                                .b = p->pb + (p->weights ? block : e) * brows * bcols,
                                .ldb = bcols,
                                .c = p->pc + (p->weights ? e : block) * crows * ccols,
                                .ldc = ccols});
        }
}

static void experts_up(const struct topt_kernel_call *c)
{
    multiply_experts(c, &(struct expert_product){.a = EX,
                                                 .b = EUP,
                                                 .c = EH,
                                                 .pa = c->value[EX],
                                                 .pb = c->value[EUP],
                                                 .pc = c->value[EH],
                                                 .tb = 1});
}

static void experts_down(const struct topt_kernel_call *c)
{
    multiply_experts(c, &(struct expert_product){.a = EA,
                                                 .b = EDOWN,
                                                 .c = EY,
                                                 .pa = c->value[EA],
                                                 .pb = c->value[EDOWN],
                                                 .pc = c->value[EY],
                                                 .tb = 1});
}

static void experts_bwd_down(const struct topt_kernel_call *c)
{
    multiply_experts(c, &(struct expert_product){.a = EY,
                                                 .b = EDA,
                                                 .c = EDOWN,
                                                 .pa = c->grad[EY],
                                                 .pb = c->value[EDA],
                                                 .pc = c->grad[EDOWN],
                                                 .ta = 1,
                                                 .weights = 1});
}

static void experts_bwd_a(const struct topt_kernel_call *c)
{
    multiply_experts(c, &(struct expert_product){.a = EY,
                                                 .b = EDOWN,
                                                 .c = EDA,
                                                 .pa = c->grad[EY],
                                                 .pb = c->value[EDOWN],
                                                 .pc = c->value[EDA]});
}

static void experts_bwd_up(const struct topt_kernel_call *c)
{
    multiply_experts(c, &(struct expert_product){.a = EDH,
                                                 .b = EX,
                                                 .c = EUP,
                                                 .pa = c->value[EDH],
                                                 .pb = c->value[EX],
                                                 .pc = c->grad[EUP],
                                                 .ta = 1,
                                                 .weights = 1});
}

static void experts_bwd_x(const struct topt_kernel_call *c)
{
    multiply_experts(c, &(struct expert_product){.a = EDH,
                                                 .b = EUP,
                                                 .c = EX,
                                                 .pa = c->value[EDH],
                                                 .pb = c->value[EUP],
                                                 .pc = c->grad[EX]});
}

/* Of h, or of the first in each of its pairs, times the second. */
static void activate_experts(const struct topt_kernel_call *c, int to)
{
    const real *h = c->value[EH];
    real *a = c->value[to];
    int64_t n = elements_of(c, to);
    const struct topt_attrs *t = c->op->attrs;
    if (c->op->attrs->gated)
        for (int64_t i = 0; i < n; i++)
            a[i] = activate(t->activation, t->alpha, t->beta, h[2 * i]) * h[2 * i + 1];
    else
        for (int64_t i = 0; i < n; i++)
            a[i] = activate(t->activation, t->alpha, t->beta, h[i]);
}

static void experts_act(const struct topt_kernel_call *c)
{
    activate_experts(c, EA);
}

static void experts_bwd_remake(const struct topt_kernel_call *c)
{
    activate_experts(c, EDA);
}

static void experts_bwd_act(const struct topt_kernel_call *c)
{
    const real *h = c->value[EH], *da = c->value[EDA];
    real *dh = c->value[EDH];
    int64_t n = elements_of(c, EDA);
    const struct topt_attrs *t = c->op->attrs;
    if (!c->op->attrs->gated)
        for (int64_t i = 0; i < n; i++)
            dh[i] = da[i] * slope_of(t->activation, t->alpha, t->beta, h[i]);
    else
        for (int64_t i = 0; i < n; i++) {
            dh[2 * i] = da[i] * h[2 * i + 1] *
                        slope_of(t->activation, t->alpha, t->beta, h[2 * i]);
            dh[2 * i + 1] = da[i] * activate(t->activation, t->alpha, t->beta, h[2 * i]);
        }
}
