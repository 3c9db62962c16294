/* hw_among.c - a cluster of unlike devices as one group of it sees it: its own devices and nodes,
 * and to all others the least link that the whole has. */
#include "hw_impl.h"
#include "topt_json.h"

#include <string.h>

static void take_node_link(json_t *doc, const json_t *group)
{
    const json_t *own = topt_hw_link(group, "node"), *net = topt_hw_link(doc, "cluster");
    json_t *links = json_array();
    if (own)
        json_array_append_new(links, json_deep_copy(own));
    if (net)
        json_array_append_new(links, json_deep_copy(net));
    json_object_set_new(doc, "links", links);
}

struct topt_hw *topt_hw_among(const struct topt_hw *hw, int i, struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(hw), *group = topt_hw_to_json(topt_hw_group(hw, i));
    json_object_del(doc, "groups");
    json_object_del(doc, "between");
    json_object_set(doc, "device", json_object_get(group, "device"));
    take_node_link(doc, group);
    struct topt_hw *seen = topt_hw_from_json(doc, err);
    json_decref(group);
    json_decref(doc);
    return seen;
}

struct topt_hw *topt_hw_with_memory(const struct topt_hw *hw, int64_t more,
                                    struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(hw), *device = json_object_get(doc, "device");
    json_object_del(doc, "groups");
    json_object_del(doc, "between");
    json_object_set_new(device, "memory_bytes",
                        json_integer(topt_json_whole_at(device, "memory_bytes") + more));
    struct topt_hw *larger = topt_hw_from_json(doc, err);
    json_decref(doc);
    return larger;
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

struct topt_hw *topt_hw_all_like(const struct topt_hw *hw, int i, int64_t memory,
                                 struct topt_error *err)
{
    const struct topt_hw *group = topt_hw_group(hw, i);
    int per_node = topt_hw_gpus_per_node(hw);
    struct topt_hw *less = per_node < topt_hw_gpus_per_node(group)
                               ? topt_hw_of_nodes(group, per_node, err)
                               : NULL;
    group = less ? less : group;
    struct topt_hw *roomy =
        topt_hw_with_memory(group, memory - topt_hw_memory_bytes(group), err);
    topt_hw_destroy(less);
    if (!roomy)
        return NULL;
    json_t *doc = topt_hw_to_json(roomy), *all = topt_hw_to_json(hw);
    topt_hw_destroy(roomy);
    lead_out(json_object_get(doc, "links"), json_object_get(all, "links"));
    json_object_set_new(doc, "name", json_string(topt_hw_name(hw)));
    json_object_set_new(doc, "nodes", json_integer(topt_hw_max_nodes(hw)));
    json_object_del(doc, "gpus");
    struct topt_hw *ret = topt_hw_from_json(doc, err);
    json_decref(all);
    json_decref(doc);
    return ret;
}

struct topt_hw *topt_hw_ordered(const struct topt_hw *hw, int reverse,
                                const int64_t *memory, struct topt_error *err)
{
    json_t *doc = topt_hw_to_json(hw), *groups = json_array();
    for (int i = 0, n = topt_hw_groups(hw); i < n; i++) {
        int at = reverse ? n - 1 - i : i;
        json_t *group = json_array_get(json_object_get(doc, "groups"), (size_t)at);
        json_t *device = json_object_get(group, "device");
        int64_t unused = topt_hw_memory_bytes(topt_hw_group(hw, at)) - memory[at];
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

int topt_hw_groups_made_of(const struct topt_hw *hw, int devices)
{
    for (int i = 0; i < topt_hw_groups(hw); i++) {
        int of_node = topt_hw_gpus_per_node(topt_hw_group(hw, i));
        if (topt_hw_group_devices(hw, i) % devices ||
            (of_node % devices && of_node != topt_hw_gpus_per_node(hw)))
            return 0;
    }
    return 1;
}

double topt_hw_mean_peak(const struct topt_hw *hw, enum topt_dtype t)
{
    double sum = 0;
    int devices = 0;
    for (int i = 0; i < topt_hw_groups(hw); i++) {
        sum += topt_hw_group_devices(hw, i) * topt_hw_peak_taken(topt_hw_group(hw, i), t);
        devices += topt_hw_group_devices(hw, i);
    }
    return devices ? sum / devices : topt_hw_peak_taken(hw, t);
}
