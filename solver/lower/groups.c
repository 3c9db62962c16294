/* groups.c - what a strategy takes on groups of unlike devices.
 *
 * The first axis of the mesh lies between groups: each of its parts is devices of one group, in
 * the order of the profile.  A group's cost is the plain cost of its own blocks (topt_mesh.costed)
 * at its own rates; what moves between groups goes by the link between them.  A step is over when
 * the slowest group is done: collectives between groups make the others wait for it. */
#include "topt_lower.h"

#include <string.h>

#include "topt_layout.h"

/* Does the first axis keep groups apart, with all of their devices? */
static int check(const struct topt_costing *k, struct topt_error *err)
{
    const struct topt_mesh *m = k->mesh;
    int parts = m->naxes ? m->size[0] : 1, each = m->devices / parts, sum = 0, whole = 1;
    for (int i = 0; i < topt_hw_groups(k->hw); i++) {
        int devices = topt_hw_group_devices(k->hw, i);
        whole &= devices % each == 0;
        sum += devices;
    }
    return whole && sum == m->devices
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "the first axis has parts of %d devices, of which the groups "
                           "of %s are not made",
                           each, topt_hw_name(k->hw));
}

static int cost_of(const struct topt_costing *k, const struct topt_strategy *s, int group,
                   int part, struct topt_strategy_cost *ret, struct topt_error *err)
{
    struct topt_mesh mesh = *k->mesh;
    struct topt_costing own = *k;
    mesh.costed = 1 + part;
    struct topt_hw *hw = topt_hw_among(k->hw, group, err);
    if (!hw)
        return -1;
    own.hw = hw;
    own.mesh = &mesh;
    own.router = topt_router_create(hw, &mesh);
    int rc = own.router ? topt_cost_strategy(&own, s, ret, err)
                        : topt_nomem(err, "the cost of a group");
    topt_router_destroy(own.router);
    topt_hw_destroy(hw);
    return rc;
}

int topt_cost_groups(const struct topt_costing *k, const struct topt_strategy *s,
                     struct topt_group_costs *ret, struct topt_error *err)
{
    int each = k->mesh->naxes ? k->mesh->devices / k->mesh->size[0] : 1, before = 0;
    *ret = (struct topt_group_costs){.n = topt_hw_groups(k->hw)};
    if (check(k, err))
        return -1;
    for (int i = 0; i < ret->n; i++) {
        if (cost_of(k, s, i, before / each, &ret->of[i], err))
            return topt_wrap(err, "%s", topt_hw_name(topt_hw_group(k->hw, i)));
        if (ret->of[i].time_ns > ret->of[ret->slowest].time_ns)
            ret->slowest = i;
        before += topt_hw_group_devices(k->hw, i);
    }
    return 0;
}
