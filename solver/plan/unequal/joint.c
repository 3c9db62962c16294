/* joint.c - one plan for the devices of all groups, which ranks can run.
 *
 * One strategy that is data parallel over the groups, planned as if all devices were like the
 * least of them; then the axis of the groups gets their rows as shares, and the plan is costed
 * again, group by group.  Where the fastest is not data parallel over the groups, the fastest that
 * splits the batch alone is taken. */
#include "joint.h"

#include <stdlib.h>
#include <string.h>

#include "topt_model.h"
#include "topt_json.h"
#include "topt_plan.h"

/* ---- can there be one? -------------------------------------------------------------- */

static const char *why_not(const struct topt_unequal *u, const struct topt_shares *s)
{
    for (int i = 1; i < u->n; i++) {
        if (u->group[i].devices != u->group[0].devices)
            return "groups have different numbers of devices";
        if (s->rows[i] > s->rows[i - 1])
            return "groups stand in the profile before others that are faster";
    }
    return NULL;
}

static json_t *shares_of(const struct topt_unequal *u, const struct topt_shares *s)
{
    json_t *shares = json_array();
    int64_t by = 0;
    for (int i = 0; i < u->n; i++)
        by = topt_common_divisor(s->rows[i], by);
    for (int i = 0; i < u->n; i++)
        json_array_append_new(shares, json_integer(s->rows[i] / by));
    return shares;
}

/* Thousandths of the state that each group has, at least one. */
static json_t *state_shares_of(const struct topt_unequal *u, const struct topt_shares *s)
{
    json_t *shares = json_array();
    for (int i = 0; i < u->n; i++) {
        int64_t share = (int64_t)(1000 * s->share[i] + 0.5);
        json_array_append_new(shares, json_integer(share > 0 ? share : 1));
    }
    return shares;
}

/* Is the first axis that of the groups, and does it split the batch? */
static int over_groups(const struct topt_unequal *u, const json_t *plan)
{
    const char *axis = json_string_value(
        json_array_get(json_object_get(json_object_get(plan, "mesh"), "axes"), 0));
    json_int_t dp =
        json_integer_value(json_object_get(json_object_get(plan, "uniform"), "dp"));
    const char *size = axis ? strchr(axis, ':') : NULL;
    return size && json_array_size(json_object_get(plan, "ops")) > 0 && dp % u->n == 0 &&
           strtol(size + 1, NULL, 10) == u->n;
}

/* ---- the plan ----------------------------------------------------------------------- */

/* The profile with as much memory as its largest group has. */
static struct topt_hw *with_most_memory(const struct topt_unequal *u,
                                        struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(u->request->hw);
    int64_t most = 0, least = topt_hw_memory_bytes(u->request->hw);
    for (int i = 0; i < u->n; i++)
        most = u->group[i].limit > most ? u->group[i].limit : most;
    json_object_del(doc, "groups");
    json_object_del(doc, "between");
    json_t *device = json_object_get(doc, "device");
    json_object_set_new(
        device, "memory_bytes",
        json_integer(topt_json_whole_at(device, "memory_bytes") + most - least));
    struct topt_hw *hw = topt_hw_from_json(doc, err);
    json_decref(doc);
    return hw;
}

/* Of one strategy for all devices, as if all were like the least; of state that is sharded over all
 * of them, like the least with as much memory as any has. */
static int equal_plan(const struct topt_unequal *u, const struct topt_shares *s,
                      int64_t limit, int data_alone, json_t **ret, struct topt_error *err)
{
    struct topt_request r = *u->request;
    struct topt_framework row = r.framework ? *r.framework : *topt_framework_at(0);
    struct topt_hw *roomy = NULL;
    json_t *answer = NULL;
    r.mode = TOPT_MINI_TIME;
    r.gpus = u->devices;
    r.max_gpus = 0;
    r.ngpu_list = 0;
    r.space = TOPT_SPACE_UNIFORM;
    r.memory_limit = limit ? limit : r.memory_limit;
    *ret = NULL;
    if (data_alone) {
        row.tensor = row.tensor_most = TOPT_TENSOR_NEVER;
        r.framework = &row;
        r.tensor_parallel = 0;
    }
    if (s->where == TOPT_STATE_OVER) {
        row.zero = 1 << TOPT_ZERO_PARAM;
        r.framework = &row;
        r.hw = roomy = with_most_memory(u, err);
        if (!roomy)
            return -1;
    }
    int rc = topt_plan(&r, &answer, err);
    *ret = rc ? NULL : json_incref(json_object_get(answer, "plan"));
    if (*ret && roomy)
        json_object_set_new(*ret, "hw", topt_hw_to_json(u->request->hw));
    json_decref(answer);
    topt_hw_destroy(roomy);
    return rc;
}

static int fits_groups(const struct topt_unequal *u, const struct topt_group_costs *g)
{
    int fit = 1;
    for (int i = 0; i < u->n; i++)
        fit &= g->of[i].memory_bytes <= u->group[i].limit;
    return fit;
}

/* What is predicted of the plan as it is now, on the devices that it names: the largest block's
 * bytes, the slowest group's time. */
static int predict(json_t *plan, struct topt_plan_doc *p, struct topt_group_costs *ret,
                   struct topt_error *err)
{
    struct topt_strategy_cost c;
    struct topt_costing k = {p->micro, p->hw, &p->mesh, &p->settings, p->router, NULL};
    json_t *predicted = json_object_get(plan, "predicted");
    if (topt_cost_strategy(&k, p->strategy, &c, err) ||
        topt_cost_groups(&k, p->strategy, ret, err))
        return -1;
    const struct topt_strategy_cost *slow = &ret->of[ret->slowest];
    json_object_set_new(predicted, "memory_bytes", json_integer(c.memory_bytes));
    json_object_set_new(predicted, "memory_parts", topt_memory_parts(p->hw, &c));
    json_object_set_new(predicted, "peak_bytes", json_integer(p->program->peak_bytes));
    json_object_set_new(predicted, "time_ns", json_integer(slow->time_ns));
    json_object_set_new(predicted, "compute_ns", json_integer(slow->sum.compute_ns));
    json_object_set_new(predicted, "network_ns",
                        json_integer(slow->time_ns - slow->sum.compute_ns));
    json_object_set_new(predicted, "band",
                        topt_prediction_band(p->hw, slow, p->program->peak_bytes));
    return 0;
}

static int give_shares(const struct topt_unequal *u, const struct topt_shares *s,
                       json_t *plan, int *ret_fits, struct topt_error *err)
{
    struct topt_plan_doc *p = NULL;
    struct topt_group_costs costs;
    char id[TOPT_ID];
    json_object_set_new(json_object_get(plan, "mesh"), "shares", shares_of(u, s));
    if (s->where == TOPT_STATE_OVER)
        json_object_set_new(json_object_get(plan, "mesh"), "state_shares",
                            state_shares_of(u, s));
    json_object_set_new(plan, "why",
                        json_string("rows of groups of unlike devices, by their speed"));
    if (topt_plan_read(plan, &p, err))
        return -1;
    int rc = predict(plan, p, &costs, err);
    *ret_fits = !rc && fits_groups(u, &costs);
    topt_plan_doc_destroy(p);
    json_object_del(plan, "id");
    if (rc || topt_json_id(plan, 'p', id))
        return rc ? -1 : topt_nomem(err, "the plan's id");
    json_object_set_new(plan, "id", json_string(id));
    return 0;
}

/* 'limit': bytes that the strategy may need of a device before it gets shares; 0: as it is. */
static int attempt(const struct topt_unequal *u, const struct topt_shares *s,
                   int64_t limit, json_t **ret, const char **ret_why,
                   struct topt_error *err)
{
    int fits = 0, rc = equal_plan(u, s, limit, 0, ret, err);
    *ret_why = NULL;
    if (!rc && *ret && !over_groups(u, *ret)) {
        json_decref(*ret);
        rc = equal_plan(u, s, limit, 1, ret, err);
    }
    if (!rc && (!*ret || !over_groups(u, *ret)))
        *ret_why = *ret ? "its fastest strategy is not data parallel over the groups"
                        : "no one strategy fits the least of the devices";
    else if (!rc)
        rc = give_shares(u, s, *ret, &fits, err);
    if (!rc && !*ret_why && !fits)
        *ret_why = "with its shares a group lacks memory";
    if (rc || *ret_why) {
        json_decref(*ret);
        *ret = NULL;
    }
    return rc;
}

/* Of state that is sharded over all devices, what a group needs is known when it has its share:
 * from what the largest group has down, until all fit. */
int topt_unequal_joint(struct topt_unequal *u, const struct topt_shares *s, json_t **ret,
                       const char **ret_why, struct topt_error *err)
{
    enum { PARTS = 4 };
    int64_t most = 0;
    *ret = NULL;
    *ret_why = why_not(u, s);
    if (*ret_why)
        return 0;
    if (s->where == TOPT_STATE_EACH)
        return attempt(u, s, 0, ret, ret_why, err);
    for (int i = 0; i < u->n; i++)
        most = u->group[i].limit > most ? u->group[i].limit : most;
    const char *why;
    for (int k = PARTS; k > 0 && !*ret; k--) {
        if (attempt(u, s, most / PARTS * k, ret, &why, err))
            return -1;
        *ret_why = k == PARTS || !why ? why : *ret_why;
    }
    return 0;
}
