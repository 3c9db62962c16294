/* order.c - see topt_order.h. */
#include "topt_order.h"
#include "topt_minmax.h"

static int64_t ahead_all(int stages, int stage, int64_t micro_batches)
{
    (void)stages;
    (void)stage;
    return micro_batches;
}

static int64_t ahead_to_the_last(int stages, int stage, int64_t micro_batches)
{
    (void)micro_batches;
    return stages - stage;
}

/* PipeDream (Narayanan et al. 2019) and GPipe (Huang et al. 2019). */
const struct topt_order topt_orders[TOPT_ORDERS] = {
    [TOPT_ORDER_1F1B] = {"1f1b", ahead_to_the_last},
    [TOPT_ORDER_GPIPE] = {"gpipe", ahead_all},
};

struct topt_turn topt_order_turn(const struct topt_order *o, int stages, int stage,
                                 int64_t micro_batches, int64_t i)
{
    int64_t ahead = topt_min(o->ahead(stages, stage, micro_batches), micro_batches);
    int64_t in_turn = 2 * (micro_batches - ahead), at = i - ahead;
    if (at < 0)
        return (struct topt_turn){0, i};
    if (at < in_turn)
        return at % 2 ? (struct topt_turn){0, ahead + at / 2}
                      : (struct topt_turn){1, at / 2};
    return (struct topt_turn){1, at - in_turn / 2};
}
