/* run_question.c - questions about a run that exists: what its script says is asked as if a person had. */
#include "topt_json.h"
#include "topt_run.h"

#include <stdio.h>
#include <string.h>

int topt_run_ask(const json_t *run, struct topt_query *asked, const char **ret_source,
                 struct topt_error *err)
{
    struct topt_query q;
    char degrees[sizeof q.degrees];
    if (topt_query_from_json(TOPT_QUERY_PLAN, json_object_get(run, "fields"), &q,
                             ret_source, err))
        return -1;
    *ret_source = "degrees";
    if ((size_t)snprintf(degrees, sizeof degrees, "%s%s%s", q.degrees,
                         *q.degrees && *asked->degrees ? "," : "",
                         asked->degrees) >= sizeof degrees)
        return topt_fail(err, TOPT_ERR_INVAL, "--degrees is too long");
    strcpy(asked->degrees, degrees);
    topt_query_fill(asked, &q);
    asked->as_is = 1;
    strcpy(asked->mode, "mini-time");
    *ret_source = "gpus";
    if (asked->ngpus != 1)
        return topt_fail(err, TOPT_ERR_USAGE,
                         "how many GPUs? the run does not say; give --gpus N");
    *ret_source = "batch";
    if (!asked->batch)
        return topt_fail(
            err, TOPT_ERR_USAGE,
            "how many samples per step? the run does not say; give --batch N");
    return 0;
}

void topt_run_put_question(json_t *as_is, const struct topt_query *asked)
{
    char shard[48] = "", schedule[64] = "", both[112];
    if (asked->shard_ranks > 0)
        snprintf(shard, sizeof shard, "--shard-ranks %lld",
                 (long long)asked->shard_ranks);
    if (*asked->schedule)
        snprintf(schedule, sizeof schedule, "--schedule %.40s", asked->schedule);
    snprintf(both, sizeof both, "%s%s%s", shard, *shard && *schedule ? " " : "",
             schedule);
    json_object_set_new(as_is, "degrees", json_string(asked->degrees));
    if (*both)
        json_object_set_new(as_is, "options", json_string(both));
}

struct topt_query topt_run_left_out(const struct topt_query *asked)
{
    struct topt_query q = *asked;
    q.pipeline = q.virtual_stages = q.micro_batches = q.shard_ranks = 0;
    q.tensor_parallel = 0;
    *q.degrees = *q.schedule = *q.overlap = *q.loss_kernel = *q.sequence_parallel =
        *q.attention = *q.eager = '\0';
    return q;
}
