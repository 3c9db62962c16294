/* order.c - pipeline schedules as parts of passes that repeat.
 *
 * A pass is written as a letter and its line: f forward, b backward, i backward without the gradients of
 * parameters, w these gradients.  In a V each chunk is a line; else all chunks are line 0. */
#include "topt_order.h"
#include "topt_named.h"
#include "topt_minmax.h"

#include <stddef.h>
#include <string.h>

static void count(struct topt_order_count *c, char pass, int line, int64_t times)
{
    if (pass == 'f')
        c->forward[line] += times;
    if (pass == 'b' || pass == 'i')
        c->backward[line] += times;
    if (pass == 'b' || pass == 'w')
        c->weights[line] += times;
}

/* Appends a part of so many turns, which cycle through 'passes'. */
static void then(struct topt_order_plan *p, const char *passes, int64_t turns)
{
    if (turns <= 0)
        return;
    struct topt_order_part *x = &p->part[p->n++];
    *x = (struct topt_order_part){.from = p->turns, .before = p->sum};
    for (; *passes; passes += 2, x->cycle++) {
        x->pass[x->cycle] = passes[0];
        x->line[x->cycle] = (char)(passes[1] - '0');
        count(&x->each, passes[0], x->line[x->cycle], 1);
    }
    for (int i = 0; i < x->cycle; i++) {
        if (p->ahead < 0 && x->pass[i] != 'f' && i < turns)
            p->ahead = p->turns + i;
        count(&p->sum, x->pass[i], x->line[i], (turns + x->cycle - 1 - i) / x->cycle);
    }
    p->turns += turns;
}

static int64_t passes_of(const struct topt_order_shape *p)
{
    return p->chunks * p->micro_batches;
}

/* One forward and one backward pass in turn, after some forward passes. */
static void plan_in_turn(const struct topt_order_shape *p, int64_t ahead,
                         struct topt_order_plan *ret)
{
    int64_t all = passes_of(p);
    ahead = topt_min(ahead, all);
    then(ret, "f0", ahead);
    then(ret, "b0f0", 2 * (all - ahead));
    ret->repeats_until = ahead < all ? ret->turns : 0;
    then(ret, "b0", ahead);
}

static void plan_gpipe(const struct topt_order_shape *p, int stage,
                       struct topt_order_plan *ret)
{
    (void)stage;
    plan_in_turn(p, p->micro_batches, ret);
}

static void plan_1f1b(const struct topt_order_shape *p, int stage,
                      struct topt_order_plan *ret)
{
    plan_in_turn(p, p->stages - stage, ret);
}

static void plan_interleaved(const struct topt_order_shape *p, int stage,
                             struct topt_order_plan *ret)
{
    plan_in_turn(p, 2 * (p->stages - stage - 1) + (p->chunks - 1) * ret->group + 1, ret);
}

/* Gradients of parameters are made as many passes late as there are stages before, and fill the time in which the
 * stage would wait for those. */
static void plan_zb(const struct topt_order_shape *p, int stage,
                    struct topt_order_plan *ret)
{
    int64_t all = passes_of(p), late = topt_min((int64_t)stage, all);
    int64_t ahead =
        topt_min((int64_t)(p->chunks - 1) * p->stages + p->stages - 1 - stage, all);
    int64_t both = all - ahead;
    then(ret, "f0", ahead);
    then(ret, "f0i0", 2 * topt_min(late, both));
    then(ret, "f0i0w0", 3 * (both - late));
    ret->repeats_until = both > late ? ret->turns : 0;
    then(ret, "i0", late - both);
    then(ret, "i0w0", 2 * (all - topt_max(late, both)));
    then(ret, "w0", late);
}

static void plan_zbv(const struct topt_order_shape *p, int stage,
                     struct topt_order_plan *ret)
{
    int64_t after = p->stages - stage, before = stage;
    then(ret, "f0", 2 * after - 1);
    then(ret, "f1f0", 2 * before);
    then(ret, "f1i1w1", 3 * after);
    then(ret, "f0i0w0f1i1w1", 6 * (p->micro_batches - p->stages - after + 1));
    ret->repeats_until = ret->turns;
    then(ret, "i0w0f1i1w1", 5 * (after - 1));
    then(ret, "i0i1", 2 * before);
    then(ret, "i0w0", 2 * after);
    then(ret, "w1", before);
    then(ret, "w0", before);
}

/* From the middle of the last backward passes on, gradients of parameters are made apart; those that have waited
 * longest come first. */
static void plan_dualpipe_v(const struct topt_order_shape *p, int stage,
                            struct topt_order_plan *ret)
{
    /* a pass backward comes before the one that it runs with */
    int one = ret->order->pairs;
    static const char *const parts[] = {"i0i1", "i1i0"};
    static const char *const taking_turns[] = {"w0i0w1i0", "w1i0w0i0"};
    static const char *const weights[] = {"w0w1", "w1w0"};
    int64_t after = p->stages - stage - 1, own = stage + 1;
    int first = stage % 2;
    int64_t between = topt_min(after, own);
    then(ret, "f0", 2 * after);
    then(ret, "f0f1", 2 * own);
    then(ret, "i1w1f1", 3 * after);
    then(ret, one ? "b1f0b0f1" : "f0b1f1b0",
         4 * (p->micro_batches - 2 * p->stages + own));
    ret->repeats_until = ret->turns;
    then(ret, one ? "b1b0f1" : "b1f1b0", 3 * after);
    then(ret, "b1b0", own);
    then(ret, parts[first], own);
    then(ret, taking_turns[first], 2 * between);
    then(ret, "w0i0", 2 * (after - between));
    then(ret, weights[(first + between) % 2], own - between);
    then(ret, "w0", between);
}

/* PipeDream with flushes (Narayanan et al. 2019, 2021), its interleaved form as Megatron-LM has it
 * (core/pipeline_parallel/schedules.py at d98e8a6), whose sends overlap, and GPipe (Huang et al.
 * 2019).  Those that make gradients of parameters apart are as torch/distributed/pipelining/schedules.py
 * of PyTorch has them at 00722e6 (ScheduleInterleavedZeroBubble, which of one chunk is ZB-H1 of Qi et al. 2023;
 * ScheduleZBVZeroBubble; ScheduleDualPipeV, after github.com/deepseek-ai/DualPipe): what is sent goes
 * beside what is computed, and a forward and a backward pass of DualPipeV run one after the other; AMD-AGI/Primus has the
 * same ZB-H1 and ZBV at fd1eeab (zero-bubble, zbv-formatted).  Combined 1F1B
 * is Megatron-LM's --overlap-moe-expert-parallel-comm (core/pipeline_parallel/combined_1f1b.py at d98e8a6); the same of
 * DualPipeV's pairs is what DualPipeV is made for: DualPipe over 2p ranks (DeepSeek-AI, DeepSeek-V3, 2024) is two mirrored
 * copies of it over p each. */
const struct topt_order topt_orders[TOPT_ORDERS] = {
    [TOPT_ORDER_1F1B] = {"1f1b", 1, 1, plan_1f1b, .sends_wait = 1, .turns = 2},
    [TOPT_ORDER_INTERLEAVED] = {"interleaved-1f1b", 2, 256, plan_interleaved, .turns = 2},
    [TOPT_ORDER_GPIPE] = {"gpipe", 1, 1, plan_gpipe, .sends_wait = 1, .turns = 2},
    [TOPT_ORDER_ZB_H1] = {"zb-h1", 1, 1, plan_zb, .turns = 3, .splits = 1},
    [TOPT_ORDER_INTERLEAVED_ZB] = {"interleaved-zb", 2, 256, plan_zb, .turns = 3,
                                   .splits = 1},
    [TOPT_ORDER_ZBV] = {"zbv", 2, 2, plan_zbv, .turns = 3, .splits = 1, .v = 1,
                        .least_rounds = 2, .but = 1},
    [TOPT_ORDER_DUALPIPE_V] = {"dualpipev", 2, 2, plan_dualpipe_v, .turns = 2,
                               .splits = 1, .v = 1, .least_rounds = 2},
    [TOPT_ORDER_COMBINED] = {"combined-1f1b", 2, 256, plan_interleaved, .turns = 2,
                             .pairs = 1, .grows = 1},
    [TOPT_ORDER_COMBINED_V] = {"combined-dualpipev", 2, 2, plan_dualpipe_v, .turns = 2,
                               .splits = 1, .v = 1, .pairs = 1, .least_rounds = 2},
};

TOPT_NAMED(topt_order_name, enum topt_order_row, TOPT_ORDERS, topt_orders[i].name)

int64_t topt_order_least(const struct topt_order *o, int stages)
{
    return (int64_t)o->least_rounds * stages - o->but;
}

int64_t topt_order_group(const struct topt_order *o, const struct topt_order_shape *p)
{
    int64_t n = p->stages;
    while (o->grows && n < p->micro_batches && p->micro_batches % n)
        n++;
    return n;
}

int topt_order_takes(const struct topt_order *o, const struct topt_order_shape *p)
{
    return p->chunks >= o->least_chunks && p->chunks <= o->most_chunks &&
           p->micro_batches >= topt_order_least(o, p->stages) &&
           (p->chunks == 1 || o->v || p->micro_batches % topt_order_group(o, p) == 0);
}

int topt_order_stage(const struct topt_order *o, const struct topt_order_shape *p,
                     int chunk)
{
    int at = chunk % p->stages;
    return o->v && chunk >= p->stages ? p->stages - 1 - at : at;
}

int topt_order_chunk(const struct topt_order *o, const struct topt_order_shape *p,
                     int stage, int own)
{
    return o->v && own ? 2 * p->stages - 1 - stage : own * p->stages + stage;
}

void topt_order_plan(const struct topt_order *o, const struct topt_order_shape *p,
                     int stage, struct topt_order_plan *ret)
{
    topt_order_plan_by(o, p, topt_order_group(o, p), stage, ret);
}

void topt_order_plan_by(const struct topt_order *o, const struct topt_order_shape *p,
                        int64_t group, int stage, struct topt_order_plan *ret)
{
    memset(ret, 0, offsetof(struct topt_order_plan, part));
    ret->order = o;
    ret->shape = *p;
    ret->group = group;
    ret->ahead = -1;
    o->plan(p, stage, ret);
}

/* The chunk and micro-batch of the 'k'th pass of a line in one direction. */
static void take(const struct topt_order_plan *p, int line, int64_t k,
                 struct topt_turn *ret)
{
    const struct topt_order_shape *s = &p->shape;
    int64_t round = p->group * s->chunks, in_round = k % round;
    ret->chunk = line;
    ret->micro_batch = k;
    if (p->order->v || s->chunks == 1)
        return;
    int chunk = (int)(in_round / p->group);
    ret->chunk = ret->backward ? s->chunks - 1 - chunk : chunk;
    ret->micro_batch = k / round * p->group + in_round % p->group;
}

struct topt_turn topt_order_turn(const struct topt_order_plan *p, int64_t i)
{
    const struct topt_order_part *x = &p->part[p->n - 1];
    while (x->from > i)
        x--;
    int64_t cycles = (i - x->from) / x->cycle;
    int at = (int)((i - x->from) % x->cycle), line = x->line[at];
    struct topt_order_count c = {{0}, {0}, {0}};
    for (int k = 0; k < at; k++)
        count(&c, x->pass[k], x->line[k], 1);
    int64_t f =
        x->before.forward[line] + cycles * x->each.forward[line] + c.forward[line];
    int64_t b =
        x->before.backward[line] + cycles * x->each.backward[line] + c.backward[line];
    int64_t w =
        x->before.weights[line] + cycles * x->each.weights[line] + c.weights[line];
    char pass = x->pass[at];
    struct topt_turn t = {.backward = pass != 'f',
                          .part = pass == 'i'   ? TOPT_TURN_INPUTS
                                  : pass == 'w' ? TOPT_TURN_WEIGHTS
                                                : TOPT_TURN_WHOLE};
    take(p, line, pass == 'f' ? f : pass == 'w' ? w : b, &t);
    return t;
}

int64_t topt_order_ahead(const struct topt_order_plan *p, int own)
{
    int64_t n = 0, round = p->group * p->shape.chunks;
    for (int64_t i = 0; i < p->ahead && p->order->v; i++)
        n += topt_order_turn(p, i).chunk == own;
    if (p->order->v)
        return n;
    n = topt_min(p->ahead % round - own * p->group, p->group);
    return p->ahead / round * p->group + topt_max(n, 0);
}

/* Is the pass at place 'at' of a cycle a backward pass that runs as one with the forward pass after it? */
static int begins_pair(const struct topt_order_plan *p, const struct topt_order_part *x,
                       int at)
{
    return p->order->pairs && at + 1 < x->cycle && x->pass[at] == 'b' &&
           x->pass[at + 1] == 'f';
}

int topt_order_pairs(const struct topt_order_plan *p, int64_t i)
{
    const struct topt_order_part *x = &p->part[p->n - 1];
    while (x->from > i)
        x--;
    return begins_pair(p, x, (int)((i - x->from) % x->cycle));
}

int64_t topt_order_count_pairs(const struct topt_order_plan *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->n; i++)
        for (int at = 0; at < p->part[i].cycle; at++)
            if (begins_pair(p, &p->part[i], at))
                n += ((i + 1 < p->n ? p->part[i + 1].from : p->turns) - p->part[i].from) /
                     p->part[i].cycle;
    return n;
}
