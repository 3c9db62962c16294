/* stages.c - the cost of a step over pipeline stages: which ways to cut its layers are costed.
 *
 * Stages of equal devices are cut for time, and for memory where the former does not fit.  Stages on groups of unlike devices
 * each have the time and the memory limit of their own group; some layers then move between stages. */
#include "stage_cost.h"
#include "stages.h"

#include <string.h>

/* By what share of its device's memory the fullest stage exceeds it; 0: all stages fit. */
static double over(const struct topt_layers *t, const struct topt_stage_costs *c)
{
    const struct topt_hw *hw = topt_hw_group(t->whole, c->group[c->most]);
    double share = (double)c->bytes[c->most] / (double)topt_hw_memory_bytes(hw);
    return share > 1 ? share - 1 : 0;
}

/* Moves some layers of a stage to another where that fits better, or takes less time; returns 1 where it does.  '*runs': how
 * many schedules may still be run. */
static int move_layers(struct topt_layers *t, const struct topt_strategy *s, int from,
                       int to, int layers, struct topt_strategy_cost *best, int *runs,
                       struct topt_error *err)
{
    int last = best->stage.stages - 1, ends = t->units.first + t->units.layers;
    int may_have_none =
        (from == 0 && t->units.first) || (from == last && t->units.n > ends);
    struct topt_strategy_cost cost;
    int16_t given[TOPT_MAX_CHUNKS];
    memcpy(given, best->stage.layers, sizeof given);
    if (from == to || given[from] - layers < !may_have_none)
        return 0;
    given[from] = (int16_t)(given[from] - layers);
    given[to] = (int16_t)(given[to] + layers);
    double now = over(t, &best->stage);
    t->given = given;
    t->time_limit = now > 0 ? 0 : best->time_ns;
    int rc = topt_stages_cost_cut(t, s, 0, NULL, &cost, err);
    t->given = NULL;
    t->time_limit = 0;
    if (rc || !cost.stage.stages) /* it takes longer in any case */
        return rc;
    --*runs;
    double then = over(t, &cost.stage);
    if (then > now || (then == now && cost.time_ns >= best->time_ns))
        return 0;
    *best = cost;
    return 1;
}

/* Moves 8 layers at once from stage to stage, then 4, 2 and 1, as long as that makes the whole step better. */
static int improve(struct topt_layers *t, const struct topt_strategy *s,
                   struct topt_strategy_cost *cost, struct topt_error *err)
{
    enum { MOST_LAYERS = 8, PASSES = 256 }; /* of all stages whose schedules are run */
    int n = cost->stage.stages, runs = n ? PASSES / n : 0;
    for (int layers = MOST_LAYERS; layers; layers /= 2)
        for (int i = 0, left = n * n; left > 0 && runs > 0;
             i = (i + 1) % (n * n), left--) {
            int moved = move_layers(t, s, i / n, i % n, layers, cost, &runs, err);
            if (moved < 0)
                return -1;
            left = moved ? n * n : left;
        }
    return 0;
}

/* Unlike stages are cut by the time of the slowest one, with less room for those that do not fit, until all do.  Then moving
 * layers improves the time of the whole step, which the first pass of each stage and its end are part of. */
static int cost_unlike(struct topt_layers *t, const struct topt_strategy *s,
                       struct topt_strategy_cost *cost, struct topt_error *err)
{
    enum { TIMES = 3 };
    int64_t room[TOPT_MAX_STAGES] = {0}, time_limit = t->time_limit;
    int rc = 1;
    if (t->settings->stage_chunks > 1)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "stages of unlike devices have one chunk each");
    t->time_limit += time_limit / 4; /* which moving layers may save */
    for (int i = 0; i < TIMES && rc > 0; i++)
        rc = topt_stages_cost_cut(t, s, 0, room, cost, err);
    t->time_limit = 0;
    if (rc >= 0 && !t->given && !t->settings->even_stages) {
        rc = improve(t, s, cost, err);
        if (!rc && t->passes) { /* write down those of the cut that was found */
            struct topt_strategy_cost found = *cost;
            t->given = found.stage.layers;
            rc = topt_stages_cost_cut(t, s, 0, NULL, cost, err);
            t->given = NULL;
        }
    }
    t->time_limit = time_limit;
    return rc < 0 ? -1 : 0;
}

/* A strategy that a device cannot hold is cut for memory; so the cut does not depend on the limits asked for. */
int topt_stages_cost(struct topt_layers *t, const struct topt_strategy *s,
                     struct topt_strategy_cost *cost, struct topt_error *err)
{
    struct topt_strategy_cost lean;
    if (t->next)
        return cost_unlike(t, s, cost, err);
    int rc = topt_stages_cost_cut(t, s, 0, NULL, cost, err);
    if (rc || cost->memory_bytes <= topt_hw_memory_bytes(t->hw))
        return rc;
    rc = topt_stages_cost_cut(t, s, 1, NULL, &lean, err);
    if (!rc && lean.memory_bytes < cost->memory_bytes)
        *cost = lean;
    else if (!rc && t->passes) /* write down those of this cut */
        rc = topt_stages_cost_cut(t, s, 0, NULL, cost, err);
    return rc;
}

int topt_stages_exceed(const struct topt_costing *k, const struct topt_stage_units *u,
                       struct topt_unit_sums *of, int64_t memory_limit,
                       int64_t time_limit, struct topt_strategy_cost *ret,
                       struct topt_error *err)
{
    struct topt_layers t = {.settings = k->settings,
                            .hw = k->hw,
                            .units = *u,
                            .unit = of,
                            .shared = of[u->n].stays > 0,
                            .memory_limit = memory_limit,
                            .time_limit = time_limit};
    return topt_stages_cost(&t, NULL, ret, err) ? -1 : !ret->stage.stages;
}
