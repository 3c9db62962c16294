/* group.c - what one group of like devices takes for rows of the batch.
 *
 * It is the question that anybody would ask about the group alone, with fewer samples.  Where
 * the state is sharded over all groups, the group is asked for plans that shard everything over
 * its devices, and its devices have as much more memory as the other groups hold of the state. */
#include "group.h"

#include <stdlib.h>

#include "topt_json.h"
#include "topt_plan.h"

void topt_group_init(struct topt_unequal_group *g, const struct topt_request *r, int i)
{
    const struct topt_hw *hw = topt_hw_group(r->hw, i);
    *g = (struct topt_unequal_group){.request = r, .hw = hw};
    g->devices = topt_hw_group_devices(r->hw, i);
    g->limit = topt_hw_memory_bytes(hw);
    if (r->memory_limit && r->memory_limit < g->limit)
        g->limit = r->memory_limit;
}

void topt_group_fini(struct topt_unequal_group *g)
{
    for (int w = 0; w < TOPT_STATES; w++)
        while (g->plans[w]) {
            struct topt_group_plan *p = g->plans[w];
            g->plans[w] = p->next;
            json_decref(p->answer);
            free(p);
        }
}

/* Bytes that each device has where the group holds all of what may be sharded over others. */
static double state_bytes(const struct topt_unequal_group *g,
                          enum topt_state_placement where)
{
    struct topt_settings s = g->request->settings;
    struct topt_least_parameters p = topt_least_parameters(g->request->model, &s);
    return (where == TOPT_STATE_SHARDED ? p.value + p.gradient + p.state : p.state) /
           g->devices;
}

/* The part of a plan's memory that lies in other groups: of what is sharded with the
 * parameters. */
static double elsewhere(const json_t *answer, enum topt_state_placement where,
                        double share)
{
    const json_t *parts = json_object_get(answer, "memory_parts");
    int64_t bytes = topt_json_whole_at(parts, "optimizer");
    if (where == TOPT_STATE_SHARDED)
        bytes += topt_json_whole_at(parts, "parameters") +
                 topt_json_whole_at(parts, "gradients");
    return (1 - share) * (double)bytes;
}

/* The group with devices of more memory. */
static struct topt_hw *with_memory(const struct topt_hw *hw, int64_t more,
                                   struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(hw), *device = json_object_get(doc, "device");
    json_object_set_new(device, "memory_bytes",
                        json_integer(topt_json_whole_at(device, "memory_bytes") + more));
    struct topt_hw *larger = topt_hw_from_json(doc, err);
    json_decref(doc);
    return larger;
}

static int ask(const struct topt_unequal_group *g, struct topt_group_plan *p,
               enum topt_state_placement where, struct topt_error *err)
{
    struct topt_request r = *g->request;
    struct topt_framework shards = r.framework ? *r.framework : *topt_framework_at(0);
    int64_t more = where == TOPT_STATE_REPLICATED
                       ? 0
                       : (int64_t)((1 - p->share) * state_bytes(g, where));
    struct topt_model *model = topt_model_rebatch(r.model, p->rows, err);
    struct topt_hw *hw = model ? with_memory(g->hw, more, err) : NULL;
    r.model = model;
    r.hw = hw;
    r.mode = TOPT_MINI_TIME;
    r.gpus = g->devices;
    r.max_gpus = 0;
    r.ngpu_list = 0;
    r.memory_limit = g->limit + more;
    if (where != TOPT_STATE_REPLICATED) {
        shards.zero =
            1 << (where == TOPT_STATE_SHARDED ? TOPT_ZERO_PARAM : TOPT_ZERO_STATE);
        r.framework = &shards;
        r.space = TOPT_SPACE_UNIFORM;
    }
    int rc = hw ? topt_plan(&r, &p->answer, err) : -1;
    topt_hw_destroy(hw);
    topt_model_destroy(model);
    if (rc || !json_is_true(json_object_get(p->answer, "feasible")))
        return rc;
    p->time_ns = topt_json_whole_at(p->answer, "time_ns");
    p->compute_ns = topt_json_whole_at(p->answer, "compute_ns");
    p->micro_batches = topt_json_whole_at(p->answer, "micro_batches");
    p->memory_bytes = topt_json_whole_at(p->answer, "memory_bytes");
    if (where != TOPT_STATE_REPLICATED)
        p->memory_bytes -= (int64_t)elsewhere(p->answer, where, p->share);
    p->fits = p->memory_bytes <= g->limit;
    return 0;
}

int topt_group_plan(struct topt_unequal_group *g, int64_t rows,
                    enum topt_state_placement where, double share,
                    const struct topt_group_plan **ret, struct topt_error *err)
{
    if (where == TOPT_STATE_REPLICATED)
        share = 1;
    for (struct topt_group_plan *p = g->plans[where]; p; p = p->next)
        if (p->rows == rows && p->share == share) {
            *ret = p;
            return 0;
        }
    struct topt_group_plan *p = calloc(1, sizeof *p);
    if (!p)
        return topt_nomem(err, "the plan of a group");
    p->rows = rows;
    p->share = share;
    p->next = g->plans[where];
    g->plans[where] = p;
    if (ask(g, p, where, err)) {
        g->plans[where] = p->next;
        json_decref(p->answer);
        free(p);
        return topt_wrap(err, "%s", topt_hw_name(g->hw));
    }
    *ret = p;
    return 0;
}
