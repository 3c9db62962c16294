/* document.c - measurements as the document "topt-hw/1". */
#include "profile.h"
#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "model name : ..." of /proc/cpuinfo. */
static void cpu_name(char *buf, size_t size)
{
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "re");
    snprintf(buf, size, "CPU rank");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(buf, size, "rank on %.100s", colon + 2);
        break;
    }
    if (f)
        fclose(f);
}

enum { HOST_GRANULE = 64 }; /* the host backend aligns its buffers to this */

/* Threads of one core share its units, so that cores are counted where hwloc knows them. */
static long count_cores(void)
{
    struct topt_topology t;
    struct topt_error none;
    if (!topt_topology_read(NULL, &t, &none) && t.cores > 0)
        return t.cores;
    return sysconf(_SC_NPROCESSORS_ONLN);
}

static json_t *device_json(const struct topt_mesh *mesh, int machines,
                           const struct topt_rates *r)
{
    char name[128];
    int64_t memory = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) * machines /
                     mesh->devices;
    long cores = count_cores();
    cpu_name(name, sizeof name);
    return json_pack(
        "{s:s, s:i, s:I, s:I, s:{s:f, s:f}, s:{s:f, s:f, s:f}, s:f, s:f, s:I, s:s}",
        "name", name, "granule_bytes", HOST_GRANULE, "memory_bytes", (json_int_t)memory,
        "reserve_bytes", (json_int_t)(memory / 10), "flops", "f32", r->flops[0], "f64",
        r->flops[1], "efficiency", "matmul", 1.0, "attention", r->attention / r->flops[0],
        "elementwise", r->elementwise / r->flops[0], "memory_bandwidth",
        r->memory_bandwidth, "launch_ns", r->launch_ns, "shared_cores",
        (json_int_t)((cores > 0 ? cores : 1) * machines), "source",
        "measured: kernels of one rank computing alone; memory_bytes: the node's over "
        "its "
        "ranks");
}

/* The curve of a kind whose group lies on one node (or: one member on each node), the
 * most members first. */
static const struct topt_curve *pick(const struct topt_curve *c, int n,
                                     enum topt_collective kind, int across)
{
    const struct topt_curve *best = NULL;
    for (int i = 0; i < n; i++) {
        int fits = c[i].kind == kind &&
                   (across ? c[i].group.per_node == 1 : c[i].group.nodes == 1);
        int size = c[i].group.nodes * c[i].group.per_node;
        if (fits && (!best || size > best->group.nodes * best->group.per_node))
            best = &c[i];
    }
    return best;
}

/* A link from the largest and smallest points of an all-gather; what has its own curve is
 * not priced by it. */
static json_t *link_json(const struct topt_curve *c, int across)
{
    double members = c ? c->group.nodes * c->group.per_node : 2;
    double bytes = c ? (double)c->bytes[c->n - 1] : 1e9,
           ns = c ? (double)c->ns[c->n - 1] : 1e9;
    double latency = c ? (double)c->ns[0] : 1000;
    double groups = c && across ? c->group.siblings : 1;
    double rate = bytes * (members - 1) / members * groups * 1e9 /
                  (ns > latency ? ns - latency : ns);
    return json_pack("{s:s, s:f, s:f, s:s}", "level", across ? "cluster" : "node",
                     "bytes_per_second", rate, "latency_ns", latency, "source",
                     "measured: largest and smallest all-gather of the profile");
}

static json_t *curve_json(const struct topt_curve *c)
{
    json_t *points = json_array();
    for (int i = 0; i < c->n; i++)
        json_array_append_new(
            points, json_pack("[I, I]", (json_int_t)c->bytes[i], (json_int_t)c->ns[i]));
    return json_pack("{s:s, s:i, s:i, s:i, s:o, s:s}", "collective",
                     topt_collective_name(c->kind), "nodes", c->group.nodes, "per_node",
                     c->group.per_node, "siblings", c->group.siblings, "points", points,
                     "source", "measured: median, packing included, all groups at once");
}

json_t *topt_profile_json(const char *name, const struct topt_mesh *mesh, int machines,
                          const struct topt_rates *rates, const struct topt_curve *curves,
                          int ncurves)
{
    json_t *links = json_array(), *list = json_array();
    if (mesh->per_node > 1)
        json_array_append_new(links,
                              link_json(pick(curves, ncurves, TOPT_ALL_GATHER, 0), 0));
    if (mesh->nodes > 1)
        json_array_append_new(links,
                              link_json(pick(curves, ncurves, TOPT_ALL_GATHER, 1), 1));
    for (int i = 0; i < ncurves; i++)
        json_array_append_new(list, curve_json(&curves[i]));
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o}", "format", "topt-hw/1",
                     "name", name, "description", "measured by 'topt profile'", "nodes",
                     mesh->nodes, "gpus_per_node", mesh->per_node, "device",
                     device_json(mesh, machines, rates), "links", links, "curves", list);
}
