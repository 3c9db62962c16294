/* joint.c - one plan for the devices of all groups, which ranks can run.
 *
 * The first axis of the mesh is that of the groups: as many parts as make each group whole parts,
 * with the groups' shares of all that the axis splits, rows or features.  A strategy is searched
 * as one group sees it, by that group's blocks and rates and the link to the others, for each
 * group; what it takes is what the slowest group takes with it.  Then shares move from the slowest
 * group to the fastest as long as that helps, and the strategy is searched once more with them.
 * So it is exact for no group but the one that looks: plans say that they are not.
 *
 * Where the state is sharded over all devices it is planned as if all devices were like the least
 * of them, with all parameters sharded, and gets its shares after that. */
#include "unequal_parts.h"

#include <string.h>

#include "plan_check.h"
#include "topt_choices.h"
#include "topt_minmax.h"

static const char *why_none(const struct topt_unequal *u, const struct topt_shares *s)
{
    if (u->devices / topt_devices_of_part(u) > TOPT_MAX_SHARES)
        return "groups' numbers of devices have no divisor that leaves few parts";
    for (int i = 1; i < u->n; i++)
        if (s->rows[i] * u->group[i - 1].devices > s->rows[i - 1] * u->group[i].devices)
            return "groups stand in the profile before others that are faster";
    return NULL;
}

/* ---- searching ---------------------------------------------------------------------- */

/* The plan of an answer to it, for the whole profile; NULL: nothing fits. */
static int ask_plan(const struct topt_unequal *u, const struct topt_request *r,
                    json_t **ret, struct topt_error *err)
{
    json_t *answer = NULL;
    *ret = NULL;
    if (topt_plan(r, &answer, err))
        return -1;
    json_t *plan = json_object_get(answer, "plan");
    if (plan) {
        *ret = json_incref(plan);
        json_object_set_new(plan, "hw", topt_hw_to_json(u->request->hw));
    }
    json_decref(answer);
    return 0;
}

/* The request as a group sees it, with these shares, within 'limit' bytes of its devices. */
static int plan_as_seen_by(const struct topt_unequal *u, int group, const int64_t *share,
                           int64_t limit, json_t **ret, struct topt_error *err)
{
    struct topt_request r = topt_request_fastest(u->request, u->devices);
    struct topt_hw *hw = topt_hw_among(r.hw, group, err);
    int before = 0;
    if (!hw)
        return -1;
    for (int i = 0; i < group; i++)
        before += u->group[i].devices;
    r.hw = hw;
    r.memory_limit = limit;
    r.unlike.parts = topt_part_shares(u, share, r.unlike.share);
    r.unlike.seen = before / topt_devices_of_part(u);
    int rc = ask_plan(u, &r, ret, err);
    topt_hw_destroy(hw);
    return rc;
}

/* With everything sharded over all devices, of equal ones, within 'limit' of each. */
static int plan_sharded(const struct topt_unequal *u, int64_t limit, json_t **ret,
                        struct topt_error *err)
{
    struct topt_request r = topt_request_fastest(u->request, u->devices);
    struct topt_framework row = r.framework ? *r.framework : *topt_framework_at(0);
    struct topt_hw *roomy =
        topt_hw_with_memory(r.hw, topt_most_limit(u) - topt_hw_memory_bytes(r.hw), err);
    if (!roomy)
        return -1;
    row.zero = 1 << TOPT_ZERO_PARAM;
    row.tensor = row.tensor_most = TOPT_TENSOR_NEVER;
    r.tensor_parallel = 0;
    r.framework = &row;
    r.hw = roomy;
    r.space = TOPT_SPACE_UNIFORM;
    r.memory_limit = limit;
    r.unlike.parts = u->devices / topt_devices_of_part(u);
    for (int i = 0; i < r.unlike.parts; i++)
        r.unlike.share[i] = 1;
    int rc = ask_plan(u, &r, ret, err);
    topt_hw_destroy(roomy);
    return rc;
}

/* ---- the whole ---------------------------------------------------------------------- */

static void keep_best(struct topt_joint *best, const struct topt_unequal *u, json_t *plan,
                      const int64_t *group, const struct topt_group_costs *costs)
{
    double all = 0;
    json_decref(best->plan);
    best->plan = json_incref(plan);
    best->costs = *costs;
    best->time_ns = costs->of[costs->slowest].time_ns;
    for (int i = 0; i < u->n; i++)
        all += (double)group[i];
    for (int i = 0; i < u->n; i++)
        best->share[i] = (double)group[i] / all;
}

/* A strategy as a group sees it, with its own best shares, where it is the best so far.
 * '*ret_limit': where it does not fit all groups, within which the one that sees it would have to
 * stay for that; 0 where it does. */
static int balance_plan(const struct topt_unequal *u, int seen, const int64_t *from,
                        json_t *plan, struct topt_joint *best, int64_t *best_group,
                        int64_t *ret_limit, struct topt_error *err)
{
    int64_t group[TOPT_HW_GROUPS];
    struct topt_group_costs costs;
    struct topt_plan_doc *p = NULL;
    memcpy(group, from, sizeof group);
    topt_put_shares(u, group, "shares", plan);
    int rc =
        topt_plan_read(plan, &p, err) || topt_balance_shares(u, p, group, &costs, err);
    topt_plan_doc_destroy(p);
    *ret_limit = 0;
    if (rc)
        return -1;
    if (!topt_groups_fit(u->request, &costs)) {
        int need = topt_neediest_group(u->request, &costs);
        double fits = (double)u->group[need].limit / (double)costs.of[need].memory_bytes;
        *ret_limit = (int64_t)(0.999 * fits * (double)costs.of[seen].memory_bytes);
    } else if (costs.of[costs.slowest].time_ns < best->time_ns) {
        rc = topt_give_shares(u, group, NULL, plan, &costs, err);
        if (!rc) {
            keep_best(best, u, plan, group, &costs);
            memcpy(best_group, group, sizeof group);
        }
    }
    return rc ? -1 : 0;
}

/* Find the fastest strategy as a group sees it, within less memory as long as other groups
 * lack it. */
static int try_seen(const struct topt_unequal *u, int seen, const int64_t *from,
                    struct topt_joint *best, int64_t *best_group, struct topt_error *err)
{
    enum { TIMES = 4 };
    int64_t limit = u->group[seen].limit;
    for (int i = 0; i < TIMES && limit > 0; i++) {
        json_t *plan;
        if (plan_as_seen_by(u, seen, from, limit, &plan, err))
            return -1;
        if (!plan)
            return 0;
        int rc = balance_plan(u, seen, from, plan, best, best_group, &limit, err);
        json_decref(plan);
        if (rc)
            return -1;
    }
    return 0;
}

/* Every group looks once; the slowest of the best once more. */
static int find_each(const struct topt_unequal *u, const struct topt_shares *s,
                     struct topt_joint *ret, struct topt_error *err)
{
    int64_t from[TOPT_HW_GROUPS] = {0}, group[TOPT_HW_GROUPS] = {0};
    for (int i = 0; i < u->n; i++)
        from[i] = topt_max(1, TOPT_SHARE_WHOLE * s->rows[i] / u->request->model->batch);
    for (int i = 1; i < u->n; i++)
        while (from[i] * u->group[i - 1].devices > from[i - 1] * u->group[i].devices) {
            from[i]--;
            from[i - 1]++;
        }
    for (int i = 0; i < u->n; i++)
        if (try_seen(u, i, from, ret, group, err))
            return -1;
    return ret->plan ? try_seen(u, ret->costs.slowest, group, ret, group, err) : 0;
}

/* A group's need is known once it has its share: the limit falls from the largest group's
 * memory until all fit. */
static int find_sharded(const struct topt_unequal *u, const struct topt_shares *s,
                        struct topt_joint *ret, struct topt_error *err)
{
    enum { PARTS = 4 };
    int64_t state[TOPT_HW_GROUPS];
    for (int i = 0; i < u->n; i++)
        state[i] = topt_max(1, (int64_t)(TOPT_SHARE_WHOLE * s->share[i] + 0.5));
    for (int k = PARTS; k > 0 && !ret->plan; k--) {
        struct topt_group_costs costs;
        json_t *plan;
        if (plan_sharded(u, topt_most_limit(u) / PARTS * k, &plan, err))
            return -1;
        int rc = plan ? topt_give_shares(u, s->rows, state, plan, &costs, err) : 0;
        if (plan && !rc && topt_groups_fit(u->request, &costs))
            keep_best(ret, u, plan, s->rows, &costs);
        json_decref(plan);
        if (rc)
            return -1;
    }
    return 0;
}

/* In the space that was asked for; where nothing of it fits, which has no micro-batches unless
 * they are asked for, in the uniform one. */
static int find_together(const struct topt_unequal *u, const struct topt_shares *s,
                         struct topt_joint *ret, struct topt_error *err)
{
    struct topt_request uniform = *u->request;
    struct topt_unequal v = *u;
    if (find_each(u, s, ret, err))
        return -1;
    if (ret->plan || topt_space_resolve(uniform.space, u->devices) == TOPT_SPACE_UNIFORM)
        return 0;
    uniform.space = TOPT_SPACE_UNIFORM;
    v.request = &uniform;
    return find_each(&v, s, ret, err);
}

int topt_joint_find(const struct topt_unequal *u, const struct topt_shares *s,
                    struct topt_joint *ret, struct topt_error *err)
{
    *ret = (struct topt_joint){.why = why_none(u, s), .time_ns = INT64_MAX};
    if (ret->why)
        return 0;
    ret->why = "no one strategy fits all groups";
    int rc = s->where == TOPT_STATE_SHARDED ? find_sharded(u, s, ret, err)
                                            : find_together(u, s, ret, err);
    if (rc)
        json_decref(ret->plan);
    return rc;
}
