/* hw_among.c - a cluster of unlike devices as one group of it sees it: its own devices and nodes,
 * and to all others the least link that the whole has. */
#include "hw_impl.h"

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
