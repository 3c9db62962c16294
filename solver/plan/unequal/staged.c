/* staged.c - one pipeline over groups of unlike devices: each stage on devices of one group.
 *
 *     ranks      0 ... 3 | 4 ... 7 | 8 ... 11 | 12 ... 15
 *     stages       a100  |  a100   |   v100   |   v100        each with as many layers as make it about as fast
 *
 * It is the question about the whole with stages alone.  Every strategy of a stage's devices is costed with each stage on its
 * own group (lower/stages.c cuts the layers).  Candidates are pruned before that by the bounds of as many devices that are
 * all like the fastest.  A first stage keeps the most micro-batches and the last one has the loss, so that it matters
 * which group comes first: the profile's order and its reverse are tried. */
#include "unequal_parts.h"

#include "request.h"
#include "topt_json.h"
#include "topt_minmax.h"

static int fastest_group(const struct topt_unequal *u)
{
    enum topt_dtype type = u->request->settings.dtype;
    int best = 0;
    for (int i = 1; i < u->n; i++)
        if (topt_hw_peak_taken(u->group[i].hw, type) >
            topt_hw_peak_taken(u->group[best].hw, type))
            best = i;
    return best;
}

static int can_lie(const struct topt_unequal *u, const struct topt_request *r)
{
    if (!topt_request_stages(r) || r->settings.offload || r->virtual_stages > 1)
        return 0;
    for (int stages = u->n; stages <= TOPT_MAX_STAGES; stages++)
        if ((!r->pipeline || r->pipeline == stages) && topt_request_places(r, stages))
            return 1;
    return 0;
}

int topt_unequal_staged(const struct topt_unequal *u, json_t **ret,
                        struct topt_error *err)
{
    struct topt_request r = topt_request_fastest(u->request, u->devices);
    struct topt_hw *fast =
        topt_hw_all_like(r.hw, fastest_group(u), topt_most_limit(u), err);
    int rc = fast ? 0 : -1;
    int64_t limit[TOPT_HW_GROUPS];
    for (int i = 0; i < u->n; i++)
        limit[i] = u->group[i].limit;
    *ret = NULL;
    r.hw = fast;
    r.memory_limit = 0; /* it is in the groups */
    r.counts = TOPT_COUNTS_WHOLE;
    for (int reverse = 0; reverse < 2 && !rc; reverse++) {
        json_t *answer = NULL;
        struct topt_error own = {.code = TOPT_OK};
        struct topt_hw *groups = topt_hw_ordered(u->request->hw, reverse, limit, &own);
        r.unlike.groups = groups;
        rc = !groups || (can_lie(u, &r) && topt_plan(&r, &answer, &own));
        topt_hw_destroy(groups);
        rc = rc && own.code != TOPT_ERR_INFEASIBLE;
        if (rc && err)
            *err = own;
        int fits = json_is_true(json_object_get(answer, "feasible"));
        if (fits && (!*ret || topt_json_whole_at(answer, "time_ns") <
                                  topt_json_whole_at(*ret, "time_ns"))) {
            json_decref(*ret);
            *ret = json_incref(answer);
        }
        json_decref(answer);
    }
    topt_hw_destroy(fast);
    if (!rc)
        return 0;
    json_decref(*ret);
    *ret = NULL;
    return -1;
}
