/* hw_groups.c - profiles of unlike devices: {"groups": [profile, ...], "between": link}.
 *
 * A group is a profile of its own, with all of its nodes, and may be told by what is different
 * from a shipped one ("like").  Who asks nothing about groups gets a cluster whose devices are
 * all like the least of any group: its memory, rates and links are what a plan with equal shares
 * can count on, so that a caller that knows of no groups plans something that runs. */
#include "hw_impl.h"
#include "topt_model.h"
#include "topt_json.h"

#include <stdio.h>
#include <string.h>

enum { MOST_DEVICES = 1 << 20 };

const json_t *topt_hw_link(const json_t *doc, const char *level)
{
    const json_t *links = json_object_get(doc, "links");
    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *l = json_array_get(links, i);
        const char *at = json_string_value(json_object_get(l, "level"));
        if (at && !strcmp(at, level))
            return l;
    }
    return NULL;
}

json_t *topt_hw_figure(const json_t *section, const char *name)
{
    char first[64];
    const char *dot = strchr(name, '.');
    if (!dot)
        return json_object_get(section, name);
    snprintf(first, sizeof first, "%.*s", (int)(dot - name), name);
    return json_object_get(json_object_get(section, first), dot + 1);
}

/* Keep the lower of each number that two objects have, and no number that only one has. */
static void lower_each(json_t *to, const json_t *other)
{
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(to, next, key, value)
    {
        const json_t *b = json_object_get(other, key);
        if (!b)
            json_object_del(to, key);
        else if (json_number_value(b) < json_number_value(value))
            json_object_set_new(to, key, json_deep_copy(b));
    }
}

static void lower(json_t *to, const json_t *other, const char *key)
{
    if (topt_json_number_at(other, key) < topt_json_number_at(to, key))
        json_object_set(to, key, json_object_get(other, key));
}

static void raise(json_t *to, const json_t *other, const char *key)
{
    if (topt_json_number_at(other, key) > topt_json_number_at(to, key))
        json_object_set(to, key, json_object_get(other, key));
}

static int64_t usable(const json_t *device)
{
    return topt_json_whole_at(device, "memory_bytes") -
           topt_json_whole_at(device, "reserve_bytes");
}

static void copy_or_drop(json_t *to, const json_t *from, const char *key)
{
    json_t *value = json_object_get(from, key);
    if (value)
        json_object_set(to, key, value);
    else
        json_object_del(to, key);
}

static void least_device(json_t *to, const json_t *other)
{
    char name[160];
    snprintf(name, sizeof name, "%.60s, %.60s",
             json_string_value(json_object_get(to, "name")),
             json_string_value(json_object_get(other, "name")));
    json_object_set_new(to, "name", json_string(name));
    if (usable(other) < usable(to)) {
        copy_or_drop(to, other, "memory_bytes");
        copy_or_drop(to, other, "reserve_bytes");
        copy_or_drop(to, other, "runtime_bytes");
    }
    lower_each(json_object_get(to, "flops"), json_object_get(other, "flops"));
    lower_each(json_object_get(to, "efficiency"), json_object_get(other, "efficiency"));
    lower(to, other, "memory_bandwidth");
    raise(to, other, "launch_ns");
    raise(to, other, "granule_bytes");
    raise(to, other, "workspace_bytes");
    if (!json_equal(json_object_get(to, "rates"), json_object_get(other, "rates")))
        json_object_del(to, "rates");
}

/* The slowest of two links of a level; of the network also no more than what is between groups. */
static const json_t *slower(const json_t *a, const json_t *b)
{
    if (!a || !b)
        return a ? a : b;
    return topt_json_number_at(b, "bytes_per_second") <
                   topt_json_number_at(a, "bytes_per_second")
               ? b
               : a;
}

/* The group's devices: the number that is given, or all of its nodes'. */
static int64_t devices_of(const json_t *group)
{
    int64_t some = topt_json_whole_at(group, "gpus");
    return some ? some
                : topt_json_whole_at(group, "nodes") *
                      topt_json_whole_at(group, "gpus_per_node");
}

/* Devices of all groups as equal nodes. */
static void equal_nodes(json_t *doc, const json_t *groups)
{
    int64_t per_node = 0, devices = 0;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *g = json_array_get(groups, i);
        int64_t in_node = topt_json_whole_at(g, "gpus_per_node"), of = devices_of(g);
        per_node = topt_common_divisor(of < in_node ? of : in_node, per_node);
        devices += of;
    }
    json_object_set_new(doc, "nodes", json_integer(devices / per_node));
    json_object_set_new(doc, "gpus_per_node", json_integer(per_node));
}

static void least_links(json_t *doc, const json_t *groups)
{
    const json_t *node = NULL, *cluster = NULL,
                 *between = json_object_get(doc, "between");
    json_t *links = json_array();
    for (size_t i = 0; i < json_array_size(groups); i++) {
        node = slower(node, topt_hw_link(json_array_get(groups, i), "node"));
        const json_t *g = json_array_get(groups, i);
        if (topt_json_whole_at(g, "nodes") > 1)
            cluster = slower(cluster, topt_hw_link(g, "cluster"));
    }
    if (node)
        json_array_append_new(links, json_deep_copy(node));
    json_t *net = json_deep_copy(slower(between, cluster));
    if (!net)
        net = json_object();
    json_object_set_new(net, "level", json_string("cluster"));
    json_array_append_new(links, net);
    json_object_set_new(doc, "links", links);
}

static void least_of_all(json_t *doc, const json_t *groups)
{
    const json_t *first = json_array_get(groups, 0);
    json_t *device = json_deep_copy(json_object_get(first, "device"));
    json_t *launch = json_object_get(first, "collective");
    for (size_t i = 1; i < json_array_size(groups); i++) {
        const json_t *g = json_array_get(groups, i);
        json_t *other = json_object_get(g, "collective");
        least_device(device, json_object_get(g, "device"));
        if (topt_json_number_at(other, "launch_ns") >
            topt_json_number_at(launch, "launch_ns"))
            launch = other;
    }
    json_object_del(device, "matmul_by_size");
    json_object_del(device, "attention_by_size");
    json_object_del(device, "attention");
    json_object_del(device, "products");
    json_object_del(device, "kernels");
    json_object_del(device, "shared_cores");
    json_object_del(device, "assumed");
    json_object_set_new(device, "source", json_string("the least of the groups"));
    json_object_set_new(doc, "device", device);
    if (launch)
        json_object_set_new(doc, "collective", json_deep_copy(launch));
    equal_nodes(doc, groups);
    least_links(doc, groups);
}

static int check_sizes(const json_t *groups, struct topt_error *err)
{
    double devices = 0;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *g = json_array_get(groups, i);
        const char *name = json_string_value(json_object_get(g, "name"));
        devices +=
            topt_json_number_at(g, "nodes") * topt_json_number_at(g, "gpus_per_node");
        for (size_t k = 0; k < i; k++)
            if (!strcmp(name, json_string_value(
                                  json_object_get(json_array_get(groups, k), "name"))))
                return topt_fail(err, TOPT_ERR_INVAL,
                                 "groups[%zu].name is '%.60s', as of groups[%zu]", i,
                                 name, k);
    }
    return devices <= MOST_DEVICES
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "groups have more than %d devices",
                           MOST_DEVICES);
}

int topt_hw_join_groups(json_t *doc, struct topt_error *err)
{
    json_t *groups = json_object_get(doc, "groups");
    if (!json_is_object(json_object_get(doc, "between")))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "between must be an object: the link between groups");
    if (check_sizes(groups, err))
        return -1;
    if (!json_object_get(doc, "device"))
        least_of_all(doc, groups);
    if (!json_object_size(json_object_get(json_object_get(doc, "device"), "flops")))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "groups have no data type of device.flops in common");
    return 0;
}
