/* hw_nodes.c - a profile of smaller nodes.
 *
 * A site's nodes may have fewer GPUs than those that were measured.  The same GPUs on more
 * nodes have the same links; curves of groups that no node holds any more are dropped, and the
 * network of a node shrinks with its GPUs, which is an assumption (docs/formats/hw.md). */
#include "hw_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The bandwidth of a node is proportional to its interfaces, and these to its devices; it never falls
 * below the rate of a single device. */
static void scale_network(json_t *links, double share)
{
    size_t i;
    json_t *link;
    json_array_foreach(links, i, link)
    {
        double rate = json_number_value(json_object_get(link, "bytes_per_second"));
        double one = json_number_value(json_object_get(link, "device_bytes_per_second"));
        json_int_t ports = json_integer_value(json_object_get(link, "ports"));
        const char *level = json_string_value(json_object_get(link, "level"));
        double of_rate = share;
        if (!level || strcmp(level, "cluster") != 0)
            continue;
        if (ports) {
            json_int_t kept = (json_int_t)ceil(share * (double)ports);
            json_object_set_new(link, "ports", json_integer(kept));
            of_rate = (double)kept / (double)ports;
        }
        rate = rate * of_rate > one ? rate * of_rate : one;
        json_object_set_new(link, "bytes_per_second", json_real(rate));
    }
}

/* Devices that are left have the share of the host that they had. */
static void scale_host(json_t *host, double share)
{
    json_t *bytes = json_object_get(host, "memory_bytes");
    if (!host)
        return;
    json_object_set_new(
        host, "memory_bytes",
        json_integer((json_int_t)(share * (double)json_integer_value(bytes))));
    json_object_set_new(
        host, "memory_bandwidth",
        json_real(share * json_number_value(json_object_get(host, "memory_bandwidth"))));
}

struct topt_hw *topt_hw_of_nodes(const struct topt_hw *hw, int64_t gpus,
                                 struct topt_error *err)
{
    int per_node = topt_hw_gpus_per_node(hw), nodes = topt_hw_max_nodes(hw);
    char name[200];
    if (topt_hw_groups(hw)) {
        topt_fail(err, TOPT_ERR_USAGE, "the groups of '%s' have nodes of their own",
                  topt_hw_name(hw));
        return NULL;
    }
    if (gpus < 1 || gpus > per_node) {
        topt_fail(err, TOPT_ERR_USAGE, "a node of '%s' has %d GPUs, not %lld",
                  topt_hw_name(hw), per_node, (long long)gpus);
        return NULL;
    }
    json_t *own = topt_hw_to_json(hw), *doc = json_deep_copy(own);
    json_decref(own);
    if (!doc) {
        topt_nomem(err, "a hardware profile");
        return NULL;
    }
    snprintf(name, sizeof name, "%.180s-x%lld", topt_hw_name(hw), (long long)gpus);
    if (gpus < per_node) {
        json_object_set_new(doc, "name", json_string(name));
        json_object_set_new(doc, "gpus_per_node", json_integer(gpus));
        if (nodes > 1) /* as many GPUs as before */
            json_object_set_new(doc, "nodes", json_integer(nodes * per_node / gpus));
        topt_hw_drop_larger(doc, doc);
        scale_network(json_object_get(doc, "links"), (double)gpus / per_node);
        scale_host(json_object_get(doc, "host"), (double)gpus / per_node);
    }
    struct topt_hw *ret = topt_hw_from_json(doc, err);
    json_decref(doc);
    return ret;
}
