/* part_shares.c - shares of a given strategy: what it takes with them, the best ones, and its plan
 * with them. */
#include "unequal_parts.h"

#include <string.h>

#include "plan_check.h"
#include "topt_json.h"
#include "topt_model.h"

int topt_devices_of_part(const struct topt_unequal *u)
{
    int64_t part = 0;
    for (int i = 0; i < u->n; i++)
        part = topt_common_divisor(u->group[i].devices, part);
    return (int)part;
}

int topt_part_shares(const struct topt_unequal *u, const int64_t *group, int64_t *ret)
{
    int part = topt_devices_of_part(u), n = 0;
    int64_t all = 1, by = 0;
    for (int i = 0; i < u->n; i++) {
        int64_t parts = u->group[i].devices / part;
        all = all / topt_common_divisor(all, parts) * parts;
    }
    for (int i = 0; i < u->n; i++)
        for (int k = 0; k < u->group[i].devices / part; k++) {
            ret[n] = group[i] * all / (u->group[i].devices / part);
            by = topt_common_divisor(ret[n], by);
            n++;
        }
    for (int i = 0; i < n; i++)
        ret[i] /= by;
    return n;
}

void topt_put_shares(const struct topt_unequal *u, const int64_t *group, const char *key,
                     json_t *plan)
{
    int64_t share[TOPT_MAX_SHARES];
    int n = topt_part_shares(u, group, share);
    json_t *shares = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(shares, json_integer(share[i]));
    json_object_set_new(json_object_get(plan, "mesh"), key, shares);
}

static int cost_shares(const struct topt_unequal *u, const struct topt_plan_doc *p,
                       const int64_t *group, struct topt_group_costs *ret,
                       struct topt_error *err)
{
    struct topt_mesh mesh = p->mesh;
    int64_t share[TOPT_MAX_SHARES];
    struct topt_costing k = {p->micro, p->hw, &mesh, &p->settings, p->router, NULL};
    int n = topt_part_shares(u, group, share);
    return topt_mesh_costed_shares(&mesh, share, n, err) ||
                   topt_cost_groups(&k, p->strategy, ret, err)
               ? -1
               : 0;
}

static int fastest_of(const struct topt_group_costs *g)
{
    int best = 0;
    for (int i = 1; i < g->n; i++)
        best = g->of[i].time_ns < g->of[best].time_ns ? i : best;
    return best;
}

/* Faster, or the first that fits; ranks need the largest share of a part first. */
static int improves(const struct topt_unequal *u, const int64_t *group,
                    const struct topt_group_costs *a, const struct topt_group_costs *than)
{
    int64_t share[TOPT_MAX_SHARES];
    int n = topt_part_shares(u, group, share), fits = topt_groups_fit(u->request, than);
    for (int i = 1; i < n; i++)
        if (share[i] > share[i - 1])
            return 0;
    return topt_groups_fit(u->request, a) &&
           (!fits || a->of[a->slowest].time_ns < than->of[than->slowest].time_ns);
}

int topt_balance_shares(const struct topt_unequal *u, const struct topt_plan_doc *p,
                        int64_t *group, struct topt_group_costs *costs,
                        struct topt_error *err)
{
    enum { FIRST = 128, LAST = 2 };
    if (cost_shares(u, p, group, costs, err))
        return -1;
    for (int64_t step = FIRST; step >= LAST;) {
        int64_t next[TOPT_HW_GROUPS];
        struct topt_group_costs c;
        memcpy(next, group, sizeof next);
        next[costs->slowest] -= step;
        next[fastest_of(costs)] += step;
        if (next[costs->slowest] < 1) {
            step /= 2;
            continue;
        }
        if (cost_shares(u, p, next, &c, err))
            return -1;
        if (improves(u, next, &c, costs)) {
            memcpy(group, next, sizeof next);
            *costs = c;
        } else {
            step /= 2;
        }
    }
    return 0;
}

/* Predict the plan as it is now: the neediest group's bytes, the slowest group's time, and
 * the peak of the largest blocks, as the program has them. */
static int predict(const struct topt_unequal *u, json_t *plan, struct topt_plan_doc *p,
                   struct topt_group_costs *ret, struct topt_error *err)
{
    struct topt_costing k = {p->micro, p->hw, &p->mesh, &p->settings, p->router, NULL};
    json_t *predicted = json_object_get(plan, "predicted");
    if (topt_cost_groups(&k, p->strategy, ret, err))
        return -1;
    int need = topt_neediest_group(u->request, ret);
    const struct topt_strategy_cost *slow = &ret->of[ret->slowest], *c = &ret->of[need];
    json_object_set_new(plan, "memory_limit", json_integer(u->group[need].limit));
    json_object_set_new(predicted, "slowest_group",
                        json_string(topt_hw_name(u->group[ret->slowest].hw)));
    json_object_del(predicted, "simulated_ns"); /* of equal devices */
    json_object_set_new(predicted, "memory_bytes", json_integer(c->memory_bytes));
    json_object_set_new(predicted, "memory_parts", topt_memory_parts(p->hw, c));
    json_object_set_new(predicted, "peak_bytes", json_integer(p->program->peak_bytes));
    json_object_set_new(predicted, "time_ns", json_integer(slow->time_ns));
    json_object_set_new(predicted, "compute_ns", json_integer(slow->sum.compute_ns));
    json_object_set_new(predicted, "network_ns",
                        json_integer(slow->time_ns - slow->sum.compute_ns));
    json_object_set_new(
        predicted, "band",
        topt_prediction_band(p->hw, &p->settings, slow, p->program->peak_bytes));
    topt_put_verdict(predicted, p->hw, u->group[need].limit);
    return 0;
}

int topt_give_shares(const struct topt_unequal *u, const int64_t *group,
                     const int64_t *state, json_t *plan, struct topt_group_costs *ret,
                     struct topt_error *err)
{
    struct topt_plan_doc *p = NULL;
    char id[TOPT_ID];
    topt_put_shares(u, group, "shares", plan);
    if (state)
        topt_put_shares(u, state, "state_shares", plan);
    json_object_set_new(
        plan, "why", json_string("shares of groups of unlike devices, by their speed"));
    json_object_set_new(plan, "exact", json_false());
    if (topt_plan_read(plan, &p, err))
        return -1;
    int rc = predict(u, plan, p, ret, err);
    topt_plan_doc_destroy(p);
    json_object_del(plan, "id");
    if (rc || topt_json_id(plan, 'p', id))
        return rc ? -1 : topt_nomem(err, "the plan's id");
    json_object_set_new(plan, "id", json_string(id));
    return 0;
}
