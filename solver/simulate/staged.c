/* staged.c - the schedule of pipeline stages, as figures. */
#include "topt_staged.h"

#include <stdlib.h>

int topt_staged_step(const struct topt_costing *k, const struct topt_strategy *s,
                     struct topt_staged *ret, struct topt_error *err)
{
    *ret = (struct topt_staged){.settings = k->settings, .model = k->model->name};
    struct topt_evaluator *a = topt_evaluator_create(k, 0, err);
    if (!a)
        return -1;
    topt_evaluator_passes(a, &ret->passes);
    int rc = topt_evaluate_strategy(a, s, &ret->cost, NULL, err);
    topt_evaluator_destroy(a);
    if (rc)
        topt_staged_fini(ret);
    return rc;
}

void topt_staged_fini(struct topt_staged *s)
{
    free(s->passes.at);
    s->passes = (struct topt_passes){.n = 0};
}

/* [stage, chunk, micro-batch, backward, start, end] each; chunk -1: the end of the stage's step; backward 2:
 * gradients of parameters alone. */
static json_t *passes_json(const struct topt_passes *p)
{
    json_t *list = json_array();
    for (int i = 0; i < p->n; i++)
        json_array_append_new(
            list, json_pack("[i, i, I, i, I, I]", p->at[i].stage, p->at[i].chunk,
                            (json_int_t)p->at[i].micro_batch, p->at[i].backward,
                            (json_int_t)p->at[i].start_ns, (json_int_t)p->at[i].end_ns));
    return list;
}

json_t *topt_staged_json(const struct topt_staged *s)
{
    const struct topt_strategy_cost *c = &s->cost;
    json_t *stages = json_array();
    for (int i = 0; i < c->stage.stages; i++)
        json_array_append_new(stages,
                              json_pack("{s:I, s:I, s:I}", "memory_bytes",
                                        (json_int_t)c->stage.bytes[i], "busy_ns",
                                        (json_int_t)c->stage.busy_ns[i], "bubble_ns",
                                        (json_int_t)(c->time_ns - c->stage.busy_ns[i])));
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:I, s:I, s:s, s:i, s:o, s:o, s:s}",
        "format", "topt-simulation/1", "overlap", topt_overlap_name(s->settings->overlap),
        "time_ns", (json_int_t)c->time_ns, "compute_ns", (json_int_t)c->sum.compute_ns,
        "network_ns", (json_int_t)c->sum.network_ns, "idle_ns",
        (json_int_t)c->stage.idle_ns, "tasks", s->passes.n, "micro_batches",
        (json_int_t)s->passes.micro_batches, "of_micro_batches",
        (json_int_t)s->settings->micro_batches, "schedule",
        topt_order_name(s->settings->order), "chunks", (int)s->settings->stage_chunks,
        "stages", stages, "passes", passes_json(&s->passes), "model", s->model);
}
