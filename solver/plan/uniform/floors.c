/* floors.c - a floor for all degrees whose micro-batches are alike, of a problem on few devices.
 *
 *     degrees    data 96, tensor 4, experts over 8     data 12, tensor 4, experts over 16    ...
 *     floor      the passes of one micro-batch of as many samples, on the innermost devices that share experts out
 *
 * What data ranks exchange is left out.  Problems stay with the grid, as degrees that differ by where experts are alone
 * have their floors from one. */
#include "floors.h"
#include "request.h"
#include "topt_minmax.h"

#include <stdlib.h>

/* The devices of a node, of which those of a grid are a part. */
static int node_of(const struct topt_grid_search *grid)
{
    int of_node = topt_hw_gpus_per_node(grid->request->hw), each = grid->mesh.per_node;
    return grid->mesh.nodes == 1 && of_node % each == 0 ? of_node : each;
}

/* The data ranks of the floor of degrees: as many as may share experts out, so that all numbers of these have one. */
static int floor_ranks(const struct topt_grid_search *grid, const struct topt_degrees *d)
{
    int64_t ranks = d->tensor * d->context, shares = d->expert * d->expert_tensor;
    int64_t samples = d->micro_batches * d->data, devices = ranks;
    int64_t experts = grid->planning->experts * d->expert_tensor, each = node_of(grid);
    for (int64_t n = 2 * ranks; experts && experts % n == 0; n *= 2)
        if ((n <= each ? each % n : n % each) == 0 && samples % (n / ranks) == 0)
            devices = n;
    return (int)(topt_max(devices, shares) / ranks);
}

/* Their own, where pins name axes, data ranks share what rests on the host, or devices are unlike. */
static struct topt_degrees floor_of(const struct topt_grid_search *grid,
                                    const struct topt_degrees *d)
{
    const struct topt_request *r = grid->request;
    struct topt_degrees ret = *d;
    ret.stages = ret.virtual_stages = 1;
    ret.order = TOPT_ORDER_1F1B;
    if (r->pin || r->settings.offload || r->unlike.parts)
        return ret;
    ret.data = floor_ranks(grid, d);
    ret.micro_batches = d->micro_batches * d->data / ret.data;
    ret.level = ret.shard = 0;
    return ret;
}

/* The problem of degrees on a grid, where experts may lie on other axes; NULL: failed. */
static struct topt_grid_passes *find_passes(struct topt_grid_search *grid,
                                            const struct topt_degrees *d,
                                            struct topt_memo *memo,
                                            struct topt_error *err)
{
    struct topt_grid_passes *p = grid->passes;
    for (; p; p = p->next) {
        struct topt_degrees alike = *d;
        alike.expert = p->of.expert;
        alike.expert_tensor = p->of.expert_tensor;
        if (!topt_degrees_order(&alike, &p->of))
            return p;
    }
    p = calloc(1, sizeof *p);
    if (!p) {
        topt_nomem(err, "the search");
        return NULL;
    }
    memo->searches++;
    p->of = *d;
    p->next = grid->passes;
    grid->passes = p;
    int rc = topt_grid_passes(grid, d, &p->problem, err) ||
             topt_stage_units_find(topt_planning_model(grid->planning, d), &p->units, err);
    return rc ? NULL : p;
}

const struct topt_memo_entry *topt_floor_find(struct topt_memo *memo,
                                              const struct topt_grid_search *of,
                                              const struct topt_degrees *d,
                                              struct topt_error *err)
{
    struct topt_degrees at = floor_of(of, d);
    int devices = at.data * at.context * at.tensor; /* the innermost */
    int per_node = (int)topt_min(node_of(of), devices);
    struct topt_grid_search *grid;
    struct topt_memo_entry *x;
    if (topt_grid_part(of->planning, devices / per_node, per_node, 1, &grid, err))
        return NULL;
    if (!(x = topt_memo_entry(memo, grid->mesh.nodes, per_node, &at))) {
        topt_nomem(err, "the search");
        return NULL;
    }
    if (x->floored)
        return x;
    struct topt_grid_passes *p = find_passes(grid, &at, memo, err);
    struct topt_expert_axes axes = topt_degrees_expert_axes(&grid->mesh, &at);
    if (!p || topt_problem_floor(p->problem, &p->units, axes, &x->floor, err))
        return NULL;
    x->floored = 1;
    memo->bytes += (size_t)x->floor.nunits * sizeof *x->floor.unit;
    return x;
}

/* Of the adding up of gradients in the floor's passes, the part in those of degrees: ranks that shard gradients have none
 * to add up; others have from the second micro-batch on, which is another part of few than of many. */
static double adds(const struct topt_memo_entry *floor, const struct topt_degrees *d)
{
    double u = (double)d->micro_batches, of = (double)floor->degrees.micro_batches;
    return d->level >= TOPT_ZERO_GRADIENT || of <= 1 ? 0 : (1 - 1 / u) / (1 - 1 / of);
}

static double with(double share, int64_t without, int64_t with)
{
    return (double)without + share * (double)(with - without);
}

struct topt_pass_times topt_floor_times(const struct topt_memo_entry *floor,
                                        const struct topt_degrees *d)
{
    const struct topt_floor_time *t = floor->floor.pass;
    double of = (double)floor->degrees.micro_batches, share = adds(floor, d);
    int64_t tokens = 0;
    for (int i = 0; i < floor->floor.nunits; i++)
        tokens += floor->floor.unit[i].most_tokens_ns;
    return (struct topt_pass_times){with(share, t[0].ns, t[1].ns) / of,
                                    with(share, t[0].layer_ns, t[1].layer_ns) / of,
                                    with(share, t[0].last_ns, t[1].last_ns) / of,
                                    (double)tokens / of};
}

void topt_floor_units(const struct topt_memo_entry *floor,
                      const struct topt_grid_search *grid, const struct topt_degrees *d,
                      struct topt_unit_sums *ret)
{
    double u = (double)d->micro_batches, of = (double)floor->degrees.micro_batches;
    double share = adds(floor, d);
    for (int i = 0; i < floor->floor.nunits; i++) {
        const struct topt_floor_unit *x = &floor->floor.unit[i];
        double ns = with(share, x->ns[0], x->ns[1]) / of;
        ret[i] = (struct topt_unit_sums){
            .passes_ns = (int64_t)(u * ns),
            .exchange_ns = (int64_t)(u * (double)x->most_tokens_ns / of),
            .ns[1][TOPT_LINK_COUNT] = (int64_t)ns, /* wherever it is waited for */
            .stays = topt_grid_unit_stays_bytes(grid, d, i),
            .kept = x->kept_bytes};
        int64_t gather[TOPT_LINK_COUNT];
        topt_grid_gather_ns(grid, d, i, gather);
        int64_t tokens = (int64_t)((double)x->least_tokens_ns / of);
        for (int k = 0; k < TOPT_LINK_COUNT; k++) /* they come, and again, or gradients go */
            ret[i].ns[1][k] =
                2 * gather[k] + (floor->floor.tokens_links >> k & 1) * tokens;
    }
    ret[floor->floor.nunits] = (struct topt_unit_sums){.stays = 0};
}
