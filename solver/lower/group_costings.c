/* group_costings.c - a costing for each group of unlike devices, for pipeline stages of which each runs on one group.
 *
 * A stage's operators cost what they cost on its own devices and links, so that a strategy is costed once for each
 * group, and the stages then take their sums from their own group (stages.c). */
#include "topt_lower.h"

void topt_group_costings_fini(struct topt_group_costings *g)
{
    for (int i = 0; i < g->n && g->n > 1; i++)
        topt_router_destroy(g->of[i].router);
}

int topt_group_costings_init(struct topt_group_costings *g, const struct topt_costing *k,
                             struct topt_error *err)
{
    *g = (struct topt_group_costings){.n = 1, .of = {*k}};
    if (!k->settings->unlike_stages)
        return 0;
    int n = topt_hw_groups(k->hw), rc = n < 2;
    if (rc)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "unlike_stages: %s has no groups of unlike devices",
                         topt_hw_name(k->hw));
    for (g->n = 0; g->n < n && !rc; g->n++) {
        struct topt_costing *own = &g->of[g->n];
        *own = *k;
        own->hw = topt_hw_group(k->hw, g->n);
        own->router = topt_router_create(own->hw, k->mesh);
        rc = !own->router;
    }
    if (!rc)
        return 0;
    topt_group_costings_fini(g);
    return topt_nomem(err, "the cost of a group");
}
