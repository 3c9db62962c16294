/* order.c - see topt_order.h. */
#include "topt_order.h"
#include "topt_minmax.h"

static int64_t ahead_all(const struct topt_order_shape *p, int stage)
{
    (void)stage;
    return p->micro_batches;
}

static int64_t ahead_to_the_last(const struct topt_order_shape *p, int stage)
{
    return p->stages - stage;
}

static int64_t ahead_interleaved(const struct topt_order_shape *p, int stage)
{
    return 2 * (p->stages - stage - 1) + (int64_t)(p->chunks - 1) * p->stages + 1;
}

/* PipeDream with flushes (Narayanan et al. 2019, 2021), its interleaved form as Megatron-LM has it
 * (core/pipeline_parallel/schedules.py at d98e8a6), whose sends overlap, and GPipe (Huang et al.
 * 2019). */
const struct topt_order topt_orders[TOPT_ORDERS] = {
    [TOPT_ORDER_1F1B] = {"1f1b", 1, 1, ahead_to_the_last, 1},
    [TOPT_ORDER_INTERLEAVED] = {"interleaved-1f1b", 2, 256, ahead_interleaved, 0},
    [TOPT_ORDER_GPIPE] = {"gpipe", 1, 1, ahead_all, 1},
};

const char *topt_order_name(enum topt_order_row row)
{
    return topt_orders[row].name;
}

int64_t topt_order_ahead(const struct topt_order *o, const struct topt_order_shape *p,
                         int stage)
{
    return topt_min(o->ahead(p, stage), p->chunks * p->micro_batches);
}

/* The 'k'th pass in one direction. */
static struct topt_turn pass_of(const struct topt_order_shape *p, int backward, int64_t k)
{
    if (p->chunks == 1)
        return (struct topt_turn){backward, 0, k};
    int64_t round = (int64_t)p->stages * p->chunks, in_round = k % round;
    int chunk = (int)(in_round / p->stages);
    return (struct topt_turn){backward, backward ? p->chunks - 1 - chunk : chunk,
                              k / round * p->stages + in_round % p->stages};
}

struct topt_turn topt_order_turn(const struct topt_order *o,
                                 const struct topt_order_shape *p, int stage, int64_t i)
{
    int64_t ahead = topt_order_ahead(o, p, stage);
    int64_t in_turn = 2 * (p->chunks * p->micro_batches - ahead), at = i - ahead;
    if (at < 0)
        return pass_of(p, 0, i);
    if (at < in_turn)
        return at % 2 ? pass_of(p, 0, ahead + at / 2) : pass_of(p, 1, at / 2);
    return pass_of(p, 1, at - in_turn / 2);
}
