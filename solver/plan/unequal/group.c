/* group.c - what one group of like devices takes for rows of the batch.
 *
 * It is the question that anybody would ask about the group alone, with fewer samples.  Where
 * the state is sharded over all groups, the group is asked for plans that shard everything over
 * its devices, and its devices have as much more memory as the other groups hold of the state. */
#include "unequal_parts.h"

#include <stdlib.h>

#include "plan_check.h"
#include "topt_json.h"
#include "topt_minmax.h"

void topt_unequal_init(struct topt_unequal *u, const struct topt_request *r)
{
    *u = (struct topt_unequal){.request = r, .n = topt_hw_groups(r->hw)};
    for (int i = 0; i < u->n; i++) {
        struct topt_unequal_group *g = &u->group[i];
        g->hw = topt_hw_group(r->hw, i);
        g->devices = topt_hw_group_devices(r->hw, i);
        g->limit = topt_group_limit(r, i);
        u->devices += g->devices;
    }
}

static void destroy_plan(struct topt_group_plan *p)
{
    json_decref(p->answer);
    free(p);
}

void topt_unequal_fini(struct topt_unequal *u)
{
    for (int i = 0; i < u->n; i++)
        while (u->group[i].plans) {
            struct topt_group_plan *p = u->group[i].plans;
            u->group[i].plans = p->next;
            destroy_plan(p);
        }
}

int64_t topt_most_limit(const struct topt_unequal *u)
{
    int64_t most = 0;
    for (int i = 0; i < u->n; i++)
        most = topt_max(most, u->group[i].limit);
    return most;
}

struct topt_request topt_request_fastest(const struct topt_request *r, int devices)
{
    struct topt_request all = *r;
    all.mode = TOPT_MINI_TIME;
    all.gpus = devices;
    all.max_gpus = 0;
    all.ngpu_list = 0;
    return all;
}

/* Bytes that each device of the group has where it holds all of what may be sharded over others. */
static double state_bytes(const struct topt_request *r, int devices,
                          enum topt_state_placement where)
{
    struct topt_settings s = r->settings;
    struct topt_least_parameters p = topt_least_parameters(r->model, &s, 0);
    return (where == TOPT_STATE_SHARDED ? p.value + p.gradient + p.state : p.state) /
           devices;
}

/* The part of a plan's memory that lies in other groups: of what is sharded with the
 * parameters. */
static double elsewhere(const struct topt_group_plan *p)
{
    const json_t *parts = json_object_get(p->answer, "memory_parts");
    int64_t bytes = topt_json_whole_at(parts, "optimizer");
    if (p->where == TOPT_STATE_SHARDED)
        bytes += topt_json_whole_at(parts, "parameters") +
                 topt_json_whole_at(parts, "gradients");
    return (1 - p->share) * (double)bytes;
}

static int ask(const struct topt_request *whole, const struct topt_unequal_group *g,
               struct topt_group_plan *p, struct topt_error *err)
{
    struct topt_request r = topt_request_fastest(whole, g->devices);
    struct topt_framework shards = r.framework ? *r.framework : *topt_framework_at(0);
    int64_t more = 0;
    if (p->where != TOPT_STATE_REPLICATED) {
        more = (int64_t)((1 - p->share) * state_bytes(whole, g->devices, p->where));
        shards.zero =
            1 << (p->where == TOPT_STATE_SHARDED ? TOPT_ZERO_PARAM : TOPT_ZERO_STATE);
        r.framework = &shards;
        r.space = TOPT_SPACE_UNIFORM;
    }
    struct topt_model *model = topt_model_rebatch(r.model, p->rows, err);
    struct topt_hw *hw = model ? topt_hw_with_memory(g->hw, more, err) : NULL;
    r.model = model;
    r.hw = hw;
    r.memory_limit = g->limit + more;
    int rc = hw ? topt_plan(&r, &p->answer, err) : -1;
    topt_hw_destroy(hw);
    topt_model_destroy(model);
    if (rc || !json_is_true(json_object_get(p->answer, "feasible")))
        return rc;
    p->time_ns = topt_json_whole_at(p->answer, "time_ns");
    p->compute_ns = topt_json_whole_at(p->answer, "compute_ns");
    p->micro_batches = topt_json_whole_at(p->answer, "micro_batches");
    p->memory_bytes = topt_json_whole_at(p->answer, "memory_bytes");
    if (p->where != TOPT_STATE_REPLICATED)
        p->memory_bytes -= (int64_t)elsewhere(p);
    p->fits = p->memory_bytes <= g->limit;
    return 0;
}

int topt_group_plan(struct topt_unequal *u, int group, int64_t rows,
                    enum topt_state_placement where, double share,
                    const struct topt_group_plan **ret, struct topt_error *err)
{
    struct topt_unequal_group *g = &u->group[group];
    struct topt_group_plan *p = g->plans;
    if (where == TOPT_STATE_REPLICATED)
        share = 1;
    while (p && (p->rows != rows || p->where != where || p->share != share))
        p = p->next;
    if (!p) {
        p = calloc(1, sizeof *p);
        if (!p)
            return topt_nomem(err, "the plan of a group");
        *p = (struct topt_group_plan){.rows = rows, .where = where, .share = share};
        if (ask(u->request, g, p, err)) {
            destroy_plan(p);
            return topt_wrap(err, "%s", topt_hw_name(g->hw));
        }
        p->next = g->plans;
        g->plans = p;
    }
    *ret = p;
    return 0;
}
