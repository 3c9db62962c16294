/* beside_run.c - a run that exists, costed as it is, beside the plan that would be made for it. */
#include "best.h"
#include "document.h"
#include "request.h"
#include "topt_plan.h"

#include <string.h>

/* The members of an answer that an answer about another run has of it. */
#define OF_RUN                                                                           \
    "gpus", "nodes", "gpus_per_node", "memory_bytes", "memory", "stages", "time_ns",     \
        "compute_ns", "network_ns", "idle_ns", "strategy", "uniform", "micro_batches",   \
        "memory_parts", "band", "mfu", "mfu_masked", "samples_per_second",               \
        "tokens_per_second", "tokens_per_second_per_gpu"

/* What the run takes, whatever the device has. */
static int run_json(const struct topt_request *run, json_t **ret, struct topt_error *err)
{
    static const char *const keys[] = {OF_RUN};
    struct topt_request r = *run;
    json_t *answer;
    r.mode = TOPT_MINI_TIME;
    r.memory_limit = INT64_MAX / 4;
    if (topt_plan(&r, &answer, err))
        return -1;
    if (!json_is_true(json_object_get(answer, "feasible"))) {
        const char *why = json_string_value(json_object_get(answer, "why"));
        topt_fail(err, TOPT_ERR_INFEASIBLE, "the run as it is: %s",
                  why ? why : "no plan");
        json_decref(answer);
        return -1;
    }
    *ret = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_object_set(*ret, keys[i], json_object_get(answer, keys[i]));
    json_decref(answer);
    return *ret ? 0 : topt_nomem(err, "the answer");
}

int topt_plan_beside_run(const struct topt_request *own, const struct topt_request *run,
                         struct topt_memo *memo, json_t **ret, struct topt_error *err)
{
    struct topt_request r = *own;
    json_t *as_is;
    *ret = NULL;
    /* Its script has tensor parallelism: the plan may have it, too, where others may not. */
    if (topt_request_tensor_at(own, 0) < TOPT_TENSOR_NODE)
        r.tensor_parallel |= run->tensor_parallel;
    if (own->mode != TOPT_MINI_TIME)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "a run that exists has one number of GPUs: give it");
    if (run_json(run, &as_is, err))
        return -1;
    if (topt_plan_from(&r, memo, ret, err)) {
        json_decref(as_is);
        return -1;
    }
    topt_put_verdict(as_is, own->hw, topt_request_limit(own));
    json_object_set_new(*ret, "as_is", as_is);
    return 0;
}
