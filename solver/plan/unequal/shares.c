/* shares.c - rows by speed, state by memory.
 *
 * A group's time rises with its rows, so the rows that are done soonest have all groups done at
 * about the same time.  They begin in proportion to the speeds at equal shares; then rows move
 * from the slowest group to another, as long as that makes the whole faster, and at last by a few
 * more, since numbers of rows that split well into devices and micro-batches are faster than
 * their neighbours.
 *
 * Between groups travel, of the state that each holds whole, the gradients of a step once: an
 * all-reduce, 2 (G - 1) / G of their bytes; where what the optimizer keeps is sharded over all,
 * as much of gradients there and of parameters back, which are half as long in 16 bits; of the
 * state that is sharded over all, what a group lacks of the parameters, for forward and backward of
 * each micro-batch, and as much of gradients back.  Where the framework hides reductions behind
 * backward, these hide behind that of the last micro-batch as others do: two thirds of its
 * computing. */
#include "unequal_parts.h"

#include "topt_minmax.h"

/* ---- what it takes ------------------------------------------------------------------ */

/* Bytes of all parameters as they are computed with, and of their gradients. */
static double number_bytes(const struct topt_unequal *u, int gradients)
{
    const struct topt_settings *s = &u->request->settings;
    struct topt_model_stats stats;
    int wide = gradients && s->gradient_f32 && topt_dtype_is_half(s->dtype);
    topt_model_stats(u->request->model, &stats);
    return (double)(gradients ? stats.trained : stats.parameters) *
           (wide ? 4 : topt_dtype_bytes(s->dtype));
}

/* Bytes between groups, and of these the gradients', which backward hides. */
struct exchange_ns {
    int64_t all, hides;
};

static struct exchange_ns between(const struct topt_unequal *u,
                                  const struct topt_shares *s, int64_t micro_batches)
{
    const struct topt_hw *hw = u->request->hw;
    int n = u->n;
    if (s->where == TOPT_STATE_REPLICATED) {
        int64_t reduce = topt_hw_between_ns(
            hw, (int64_t)(2. * (n - 1) / n * number_bytes(u, 1)), 2 * (n - 1));
        return (struct exchange_ns){reduce, reduce};
    }
    double lacks = 0;
    for (int i = 0; i < n; i++)
        lacks = 1 - s->share[i] > lacks ? 1 - s->share[i] : lacks;
    int64_t gather = topt_hw_between_ns(hw, (int64_t)(lacks * number_bytes(u, 0)), n - 1);
    int64_t scatter =
        topt_hw_between_ns(hw, (int64_t)(lacks * number_bytes(u, 1)), n - 1);
    if (s->where == TOPT_STATE_ZERO_1)
        return (struct exchange_ns){gather + scatter, scatter};
    int64_t all = micro_batches * (2 * gather + scatter);
    return (struct exchange_ns){all, all};
}

/* The time of given rows. */
static int price(struct topt_unequal *u, struct topt_shares *s, struct topt_error *err)
{
    int64_t micro = 1, hides = INT64_MAX;
    s->found = 1;
    s->time_ns = 0;
    for (int i = 0; i < u->n; i++) {
        const struct topt_group_plan *p;
        if (topt_group_plan(u, i, s->rows[i], s->where, s->share[i], &p, err))
            return -1;
        if (!p->fits) {
            s->found = 0;
            return 0;
        }
        s->time_ns = topt_max(s->time_ns, p->time_ns);
        micro = topt_max(micro, p->micro_batches);
        hides = topt_min(hides, p->compute_ns / topt_max(p->micro_batches, 1) / 3 * 2);
    }
    struct exchange_ns t = between(u, s, micro);
    int none = u->request->settings.overlap == TOPT_OVERLAP_NONE;
    s->hidden_ns = none ? 0 : topt_min(t.hides, hides);
    s->exchange_ns = t.all - s->hidden_ns;
    s->time_ns += s->exchange_ns;
    return 0;
}

/* ---- rows --------------------------------------------------------------------------- */

/* Rows move in these: what all groups can share equally, where the batch is made of that. */
static int64_t unit_of(const struct topt_unequal *u)
{
    int64_t unit = topt_devices_of_part(u), batch = u->request->model->batch;
    return batch % unit || batch < unit * u->n ? 1 : unit;
}

static int better(const struct topt_shares *a, const struct topt_shares *b)
{
    return a->found && (!b->found || a->time_ns < b->time_ns);
}

/* Rows by weights, whole units, each group at least one, the rest to the heaviest. */
static void by_weight(const struct topt_unequal *u, const double *weight, int64_t *ret)
{
    int64_t left = u->request->model->batch, unit = unit_of(u);
    double sum = 0;
    int heaviest = 0;
    for (int i = 0; i < u->n; i++) {
        sum += weight[i];
        heaviest = weight[i] > weight[heaviest] ? i : heaviest;
    }
    for (int i = 0; i < u->n; i++) {
        double rows = (double)u->request->model->batch * weight[i] / sum;
        ret[i] = topt_max(unit, (int64_t)(rows / (double)unit + 0.5) * unit);
        left -= ret[i];
    }
    ret[heaviest] += left;
}

/* Some rows of 'from' go to 'to': is that better? */
static int move(struct topt_unequal *u, struct topt_shares *best, int from, int to,
                int64_t rows, struct topt_error *err)
{
    struct topt_shares s = *best;
    if (s.rows[from] <= rows)
        return 0;
    s.rows[from] -= rows;
    s.rows[to] += rows;
    if (price(u, &s, err))
        return -1;
    if (!better(&s, best))
        return 0;
    *best = s;
    return 1;
}

/* The first move that helps, of a few units between any two groups. */
static int improve(struct topt_unequal *u, struct topt_shares *best,
                   struct topt_error *err)
{
    enum { NEAR = 4 };
    for (int k = 1; k <= NEAR; k++)
        for (int from = 0; from < u->n; from++)
            for (int to = 0; to < u->n; to++) {
                int moved = from == to ? 0 : move(u, best, from, to, k * unit_of(u), err);
                if (moved)
                    return moved;
            }
    return 0;
}

/* Twice, rows in proportion to the speeds that groups have with the rows that they have; where rows
 * do not fit, by what the devices compute. */
static int by_speed(struct topt_unequal *u, struct topt_shares *s, struct topt_error *err)
{
    double weight[TOPT_HW_GROUPS];
    int known = 1;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < u->n; i++) {
            const struct topt_group_plan *p;
            if (topt_group_plan(u, i, s->rows[i], s->where, s->share[i], &p, err))
                return -1;
            known &= p->fits && p->time_ns > 0;
            weight[i] = known ? (double)s->rows[i] / (double)p->time_ns : 0;
        }
        for (int i = 0; i < u->n && !known; i++)
            weight[i] = topt_hw_peak_taken(u->group[i].hw, u->request->settings.dtype) *
                        u->group[i].devices;
        by_weight(u, weight, s->rows);
    }
    return 0;
}

/* The rows that are done soonest, for shares of the state by weights, where these are better than
 * the best so far. */
static int try_shares(struct topt_unequal *u, enum topt_state_placement where,
                      const double *weight, struct topt_shares *best,
                      struct topt_error *err)
{
    double sum = 0, devices[TOPT_HW_GROUPS];
    struct topt_shares s = {.where = where};
    int moved;
    if (u->request->model->batch < u->n)
        return 0;
    for (int i = 0; i < u->n; i++) {
        sum += weight[i];
        devices[i] = u->group[i].devices;
    }
    for (int i = 0; i < u->n; i++)
        s.share[i] = weight[i] / sum;
    by_weight(u, devices, s.rows);
    if (by_speed(u, &s, err) || price(u, &s, err))
        return -1;
    do
        moved = improve(u, &s, err);
    while (moved > 0);
    if (!moved && better(&s, best))
        *best = s;
    return moved;
}

/* ---- state -------------------------------------------------------------------------- */

/* Does the framework shard what its optimizer keeps, and gather parameters as they are computed
 * with?  Where these are f32 beside it, sharding it over groups saves no bytes between them. */
static int shards_optimizer(const struct topt_unequal *u)
{
    const struct topt_framework *f = u->request->framework;
    return (!f || f->zero >> TOPT_ZERO_STATE & 1) && !u->request->settings.shard_f32;
}

/* The state whole in each group; the optimizer's part of it sharded, by devices; or all of it, by
 * devices, by memory, or halfway. */
int topt_shares_best(struct topt_unequal *u, struct topt_shares *ret,
                     struct topt_error *err)
{
    double each[TOPT_HW_GROUPS], weight[TOPT_HW_GROUPS], memory = 0;
    *ret = (struct topt_shares){.found = 0};
    for (int i = 0; i < u->n; i++) {
        each[i] = 1;
        memory += (double)u->group[i].limit * u->group[i].devices;
    }
    if (try_shares(u, TOPT_STATE_REPLICATED, each, ret, err))
        return -1;
    for (int i = 0; i < u->n; i++)
        weight[i] = u->group[i].devices;
    if (shards_optimizer(u) && try_shares(u, TOPT_STATE_ZERO_1, weight, ret, err))
        return -1;
    for (int k = 0; k <= 2; k++) {
        for (int i = 0; i < u->n; i++) {
            double devices = (double)u->group[i].devices / u->devices;
            double bytes = (double)u->group[i].limit * u->group[i].devices / memory;
            weight[i] = devices + (bytes - devices) * k / 2;
        }
        if (try_shares(u, TOPT_STATE_SHARDED, weight, ret, err))
            return -1;
    }
    return 0;
}

/* Everything by the number of devices. */
int topt_shares_equal(struct topt_unequal *u, struct topt_shares *ret,
                      struct topt_error *err)
{
    *ret = (struct topt_shares){.found = 0};
    for (int w = 0; w < TOPT_STATES && u->request->model->batch >= u->n; w++) {
        struct topt_shares s = {.where = (enum topt_state_placement)w};
        if (w == TOPT_STATE_ZERO_1 && !shards_optimizer(u))
            continue;
        double weight[TOPT_HW_GROUPS];
        for (int i = 0; i < u->n; i++) {
            weight[i] = u->group[i].devices;
            s.share[i] = weight[i] / u->devices;
        }
        by_weight(u, weight, s.rows);
        if (price(u, &s, err))
            return -1;
        if (better(&s, ret))
            *ret = s;
    }
    return 0;
}
