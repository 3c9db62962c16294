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

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The devices of a node, of which those of a grid are a part. */
static int node_of(const struct topt_grid_search *grid)
{
    int of_node = topt_hw_gpus_per_node(grid->request->hw), each = grid->mesh.per_node;
    return grid->mesh.nodes == 1 && of_node % each == 0 ? of_node : each;
}

/* The data ranks of the floor of degrees: as many as may share experts out, so that all numbers of these have one, with two
 * micro-batches or more, as gradients of several are added up. */
static int floor_ranks(const struct topt_grid_search *grid, const struct topt_degrees *d)
{
    int64_t ranks = d->tensor * d->context, shares = d->expert * d->expert_tensor;
    int64_t samples = d->micro_batches * d->data, devices = ranks;
    int64_t experts = grid->planning->experts * d->expert_tensor, each = node_of(grid);
    for (int64_t n = 2 * ranks; experts && experts % n == 0; n *= 2)
        if ((n <= each ? each % n : n % each) == 0 && samples % (n / ranks) == 0 &&
            samples / (n / ranks) > 1)
            devices = n;
    return (int)(topt_max(devices, shares) / ranks);
}

/* Is it one of the request's numbers of micro-batches, of which each has a model? */
static int is_listed(const struct topt_planning *m, int64_t micro_batches)
{
    for (int i = 0; i < m->n; i++)
        if (m->at[i].batches == micro_batches)
            return 1;
    return 0;
}

/* The degrees of the problem that has the floor of 'd': their own, where pins name axes, data ranks share what rests on the
 * host, devices are unlike, operators add up over samples inside of a pass, or no other number of micro-batches is at hand. */
static struct topt_degrees floor_of(const struct topt_grid_search *grid,
                                    const struct topt_degrees *d)
{
    const struct topt_request *r = grid->request;
    struct topt_degrees ret = *d;
    ret.stages = ret.virtual_stages = 1;
    ret.order = TOPT_ORDER_1F1B;
    if (r->pin || r->settings.offload || r->unlike.parts || grid->planning->batch_sums)
        return ret;
    int data = floor_ranks(grid, d);
    int64_t samples = d->micro_batches * d->data;
    if (samples % data || !is_listed(grid->planning, samples / data))
        return ret;
    ret.data = data;
    ret.micro_batches = samples / data;
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
    int rc =
        topt_grid_passes(grid, d, &p->problem, err) ||
        topt_stage_units_find(topt_planning_model(grid->planning, d), &p->units, err);
    return rc ? NULL : p;
}

/* The time in which all ranks add one number up. */
static int64_t scalar_ns(const struct topt_grid_search *grid,
                         const struct topt_degrees *d)
{
    uint32_t all = (1u << grid->mesh.naxes) - 1;
    return d->data > 1 ? topt_router_time(grid->router, TOPT_ALL_REDUCE, all, 4).ns : 0;
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
    x->floor.scalar_ns = scalar_ns(grid, &at);
    x->floored = 1;
    memo->bytes += (size_t)x->floor.nunits * sizeof *x->floor.unit;
    return x;
}

/* Which part of the time in which the floor's passes add gradients up do passes of these degrees take?  None if ranks shard
 * gradients in each of them; else all micro-batches but the first one add theirs, and the floor may have more micro-batches. */
static double share_of_adding(const struct topt_memo_entry *floor,
                              const struct topt_grid_search *grid,
                              const struct topt_degrees *d)
{
    int sharded =
        d->level >= TOPT_ZERO_GRADIENT && !topt_grid_accumulates_unsharded(grid, d);
    double u = (double)d->micro_batches, of = (double)floor->degrees.micro_batches;
    return sharded || of <= 1 ? 0 : (1 - 1 / u) / (1 - 1 / of);
}

static double interpolate(double share, int64_t without, int64_t with)
{
    return (double)without + share * (double)(with - without);
}

/* Data ranks add the mean of the loss up in the forward pass of its unit.  By how much that takes longer than in the floor,
 * which has other data ranks; where it has one, tensor ranks may have added it up. */
static double mean_ns(const struct topt_memo_entry *floor,
                      const struct topt_grid_search *grid, const struct topt_degrees *d)
{
    double more = (double)(scalar_ns(grid, d) - floor->floor.scalar_ns);
    int losses = grid->planning->losses;
    return more <= 0 ? more * losses : floor->floor.scalar_ns && losses ? more : 0;
}

struct topt_pass_times topt_floor_times(const struct topt_memo_entry *floor,
                                        const struct topt_grid_search *grid,
                                        const struct topt_degrees *d)
{
    const struct topt_floor_time *t = floor->floor.pass;
    double of = (double)floor->degrees.micro_batches,
           share = share_of_adding(floor, grid, d);
    return (struct topt_pass_times){
        fmax(interpolate(share, t[0].ns, t[1].ns) / of + mean_ns(floor, grid, d), 0),
        interpolate(share, t[0].layer_ns, t[1].layer_ns) / of,
        (double)floor->floor.most_tokens_ns / of};
}

/* The links by which tokens go to experts. */
static uint8_t token_links(const struct topt_mesh *mesh, const struct topt_degrees *d)
{
    struct topt_expert_axes of = topt_degrees_expert_axes(mesh, d);
    int cut = topt_degrees_first_tensor_axis(mesh, d);
    uint32_t axes = (1u << (cut + of.tensor)) - (1u << (cut - of.data));
    return axes ? topt_group_links(mesh, axes) : 0;
}

/* What units have in common. */
struct passes {
    double u, of; /* micro-batches, and the floor's */
    double share, mean;
    uint8_t token_links,
        tensor_links; /* the latter 0: not known, as context ranks move tensors, too */
    int comes;        /* parameters do, for each pass */
};

/* The time of a unit's pass by link. */
static void set_pass(const struct passes *p, const struct topt_floor_unit *x, int back,
                     double more, const struct topt_shared_ns *shared,
                     struct topt_unit_sums *ret)
{
    int64_t *ns = ret->ns[back], waits = (int64_t)((double)x->moves_ns[back] / p->of);
    int64_t tokens = (int64_t)((double)x->tokens_ns[back] / p->of);
    double all =
        (double)x->pass_ns[back] + back * p->share * (double)(x->ns[1] - x->ns[0]);
    /* All that is waited for is known. */
    int known = x->most_tokens_ns == x->tokens_ns[0] + x->tokens_ns[1] &&
                x->most_moves_ns == x->moves_ns[0] + x->moves_ns[1] &&
                (p->tensor_links || !x->most_moves_ns);
    ns[TOPT_LINK_COUNT] = (int64_t)fmax(all / p->of + !back * more, 0);
    for (int k = 0; k < TOPT_LINK_COUNT; k++) {
        int64_t aside = p->comes * (back ? shared->again[k] : shared->gather[k]) +
                        back * shared->reduce[k];
        ret->aside_ns[back][k] = known ? aside : 0;
        ns[k] = aside + (p->token_links >> k & 1) * tokens +
                (p->tensor_links >> k & 1) * waits;
    }
}

/* Do two units have the same floor and the same parameters? */
static int units_alike(const struct topt_memo_entry *floor, const struct topt_planning *m,
                       int a, int b)
{
    return a != m->loss_unit && b != m->loss_unit &&
           !memcmp(&m->in_unit[a], &m->in_unit[b], sizeof *m->in_unit) &&
           !memcmp(&floor->floor.unit[a], &floor->floor.unit[b],
                   sizeof *floor->floor.unit);
}

void topt_floor_units(const struct topt_memo_entry *floor,
                      const struct topt_grid_search *grid, const struct topt_degrees *d,
                      struct topt_unit_sums *ret)
{
    int cut = topt_degrees_first_tensor_axis(&grid->mesh, d);
    uint32_t tensor = (1u << grid->mesh.naxes) - (1u << cut);
    struct passes p = {.u = (double)d->micro_batches,
                       .of = (double)floor->degrees.micro_batches,
                       .share = share_of_adding(floor, grid, d),
                       .token_links = token_links(&grid->mesh, d),
                       .comes = d->level >= TOPT_ZERO_PARAM};
    p.mean = mean_ns(floor, grid, d);
    p.tensor_links =
        tensor && d->context == 1 ? topt_group_links(&grid->mesh, tensor) : 0;
    for (int i = 0; i < floor->floor.nunits; i++) {
        const struct topt_floor_unit *x = &floor->floor.unit[i];
        double more = (i == grid->planning->loss_unit) * p.mean;
        struct topt_shared_ns shared;
        if (i && units_alike(floor, grid->planning, i - 1, i)) {
            ret[i] = ret[i - 1];
            continue;
        }
        topt_grid_shared_ns(grid, d, i, &shared);
        ret[i] = (struct topt_unit_sums){
            .passes_ns =
                (int64_t)(p.u * (interpolate(p.share, x->ns[0], x->ns[1]) / p.of + more)),
            .exchange_ns = (int64_t)(p.u * (double)x->most_tokens_ns / p.of),
            .stays = topt_grid_unit_stays_bytes(grid, d, i),
            .kept = x->kept_bytes};
        for (int back = 0; back < 2; back++)
            set_pass(&p, x, back, more, &shared, &ret[i]);
        /* The unit of the loss waits for sums inside of operators, too. */
        if (i == grid->planning->loss_unit)
            memset(ret[i].aside_ns, 0, sizeof ret[i].aside_ns);
    }
    ret[floor->floor.nunits] = (struct topt_unit_sums){.stays = 0};
}
