/* staged.c - one pipeline over groups of unlike devices: each stage on devices of one group.
 *
 *     ranks      0 ... 3 | 4 ... 7 | 8 ... 11 | 12 ... 15
 *     stages       a100  |  a100   |   v100   |   v100        each with as many layers as make it about as fast
 *
 * It is the question about the whole with stages alone.  Every strategy of a stage's devices is costed with each stage on its
 * own group (lower/stages.c cuts the layers); what is not worth that is left out by bounds of as many devices that are all
 * like the fastest.  A first stage keeps the most micro-batches and the last one has the loss, so that it matters
 * which group comes first: the profile's order and its reverse are tried. */
#include "unequal_parts.h"

#include <string.h>

#include "request.h"
#include "topt_json.h"
#include "topt_minmax.h"

static int fastest_group(const struct topt_unequal *u)
{
    enum topt_dtype type = u->request->settings.dtype;
    int best = 0;
    for (int i = 1; i < u->n; i++)
        if (topt_hw_peak(u->group[i].hw, type) > topt_hw_peak(u->group[best].hw, type))
            best = i;
    return best;
}

/* Links of one node may lead nowhere: then they get the others that do. */
static void lead_out(json_t *links, const json_t *others)
{
    json_t *link, *out = NULL;
    size_t i;
    json_array_foreach(others, i, link) if (!strcmp(topt_json_words_at(link, "level"),
                                                    "cluster")) out = link;
    json_array_foreach(links, i, link) if (!strcmp(topt_json_words_at(link, "level"),
                                                   "cluster")) out = NULL;
    if (out)
        json_array_append(links, out);
}

/* As many devices as all groups have, like the fastest and with the memory of the largest. */
static struct topt_hw *like_fastest(const struct topt_unequal *u, struct topt_error *err)
{
    const struct topt_hw *whole = u->request->hw, *fast = u->group[fastest_group(u)].hw;
    int per_node = topt_hw_gpus_per_node(whole);
    struct topt_hw *less = per_node < topt_hw_gpus_per_node(fast)
                               ? topt_hw_of_nodes(fast, per_node, err)
                               : NULL;
    fast = less ? less : fast;
    struct topt_hw *roomy =
        topt_hw_with_memory(fast, topt_most_limit(u) - topt_hw_memory_bytes(fast), err);
    topt_hw_destroy(less);
    json_t *doc = roomy ? topt_hw_to_json(roomy) : NULL;
    topt_hw_destroy(roomy);
    if (!doc)
        return NULL;
    json_t *all = topt_hw_to_json(whole);
    lead_out(json_object_get(doc, "links"), json_object_get(all, "links"));
    json_decref(all);
    json_object_set_new(doc, "name", json_string(topt_hw_name(whole)));
    json_object_set_new(doc, "nodes", json_integer(u->devices / per_node));
    json_object_del(doc, "gpus");
    struct topt_hw *ret = topt_hw_from_json(doc, err);
    json_decref(doc);
    return ret;
}

/* The profile with its groups in this or the reverse order, of which each device has what may be used. */
static struct topt_hw *ordered(const struct topt_unequal *u, int reverse,
                               struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(u->request->hw), *groups = json_array();
    for (int i = 0; i < u->n; i++) {
        int at = reverse ? u->n - 1 - i : i;
        json_t *group = json_array_get(json_object_get(doc, "groups"), (size_t)at),
               *device = json_object_get(group, "device");
        int64_t unused = topt_hw_memory_bytes(u->group[at].hw) - u->group[at].limit;
        if (unused)
            json_object_set_new(
                device, "memory_bytes",
                json_integer(topt_json_whole_at(device, "memory_bytes") - unused));
        json_array_append(groups, group);
    }
    json_object_set_new(doc, "groups", groups);
    struct topt_hw *ret = topt_hw_from_json(doc, err);
    json_decref(doc);
    return ret;
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
    struct topt_hw *fast = like_fastest(u, err);
    int rc = fast ? 0 : -1;
    *ret = NULL;
    r.hw = fast;
    r.memory_limit = 0; /* it is in the groups */
    r.counts = TOPT_COUNTS_WHOLE;
    for (int reverse = 0; reverse < 2 && !rc; reverse++) {
        json_t *answer = NULL;
        struct topt_error own = {.code = TOPT_OK};
        struct topt_hw *groups = ordered(u, reverse, &own);
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
    if (rc)
        json_decref(*ret);
    return rc ? -1 : 0;
}
