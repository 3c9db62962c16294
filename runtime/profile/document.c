/* document.c - measurements as the document "topt-hw/1". */
#include "profile.h"

#include <math.h>
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

/* Cores of all nodes: threads of one core share its units, so that cores are counted where hwloc
 * knows them. */
static int64_t count_cores(const struct topt_nodes *n)
{
    int64_t cores = 0;
    for (int i = 0; i < n->n; i++) {
        const struct topt_node *node = &n->node[i];
        int64_t here = node->seen ? node->is.cores : sysconf(_SC_NPROCESSORS_ONLN);
        cores += here > 0 ? here : 1;
    }
    return cores;
}

/* Bytes of the node that has the fewest for each of its ranks. */
static int64_t memory_of_rank(const struct topt_nodes *n)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < n->n; i++) {
        const struct topt_node *node = &n->node[i];
        int64_t bytes = node->seen && node->is.memory
                            ? node->is.memory
                            : (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
        least = bytes / node->ranks < least ? bytes / node->ranks : least;
    }
    return least;
}

/* Times as shares of a peak, for what a reader takes: none of more operations is faster,
 * not even by rounding. */
static json_t *shares_json(const struct topt_points *p, double peak)
{
    json_t *list = json_array();
    double most = 0;
    for (int i = 0; i < p->n; i++) {
        most = fmax(p->ns[i], most * (1 + 1e-9));
        json_array_append_new(list,
                              json_pack("[I, f]", (json_int_t)p->at[i],
                                        fmin(1, (double)p->at[i] * 1e9 / (most * peak))));
    }
    return list;
}

/* By type, where there are points; 'rates' by type as well. */
static json_t *by_size_json(const struct topt_points *p, const struct topt_rates *r)
{
    json_t *o = json_object();
    for (int t = 0; t < TOPT_RATED_TYPES; t++)
        if (p[t].n > 0)
            json_object_set_new(o, topt_dtype_name((enum topt_dtype)t),
                                shares_json(&p[t], topt_points_rate(&r->product[t])));
    return o;
}

static json_t *flops_json(const struct topt_rates *r)
{
    json_t *o = json_object();
    for (int t = 0; t < TOPT_RATED_TYPES; t++)
        if (r->product[t].n > 0)
            json_object_set_new(o, topt_dtype_name((enum topt_dtype)t),
                                json_real(topt_points_rate(&r->product[t])));
    return o;
}

/* What is known of ranks of CPUs alone, or of GPUs alone. */
static void describe_device(const struct topt_measured *m, json_t *d)
{
    char name[128];
    cpu_name(name, sizeof name);
    json_object_set_new(d, "name", json_string(m->device ? m->device : name));
    if (m->device) {
        json_object_set_new(
            d, "source",
            json_string("measured: kernels of all GPUs at once, the slowest one's; "
                        "products in the shapes of shards, attention by length, causal; "
                        "runtime_bytes: what ranks took of a GPU beside the buffers of "
                        "collectives; reserve_bytes: a twentieth, or that"));
        return;
    }
    json_object_set_new(d, "granule_bytes", json_integer(HOST_GRANULE));
    json_object_set_new(d, "shared_cores", json_integer(count_cores(m->nodes)));
    json_object_set_new(
        d, "source",
        json_string("measured: kernels of all ranks at once, the slowest one's; products "
                    "in the shapes of shards, attention by length, causal; memory_bytes: "
                    "the node's over its ranks; "
                    "runtime_bytes: what ranks took beside the buffers of collectives"));
}

static json_t *device_json(const struct topt_measured *m)
{
    const struct topt_rates *r = m->rates;
    int64_t memory = m->device ? m->device_memory : memory_of_rank(m->nodes);
    int64_t least = memory / (m->device ? 20 : 10);
    int64_t reserve = least > m->runtime_high ? least : m->runtime_high;
    double f32 = topt_points_rate(&r->product[TOPT_F32]);
    json_t *d = json_pack("{s:I, s:I, s:{s:I, s:I}, s:o, s:{s:f, s:f, s:f}, s:f, s:f}",
                          "memory_bytes", (json_int_t)memory, "reserve_bytes",
                          (json_int_t)reserve, "runtime_bytes", "low",
                          (json_int_t)m->runtime_low, "high", (json_int_t)m->runtime_high,
                          "flops", flops_json(r), "efficiency", "matmul", 1.0,
                          "attention", topt_points_rate(&r->attention[TOPT_F32]) / f32,
                          "elementwise", r->elementwise / f32, "memory_bandwidth",
                          r->memory_bandwidth, "launch_ns", r->launch_ns);
    if (d) {
        describe_device(m, d);
        json_object_set_new(d, "rates", json_string("measured"));
        json_object_set_new(d, "matmul_by_size", by_size_json(r->product, r));
        json_object_set_new(d, "attention_by_size", by_size_json(r->attention, r));
        if (r->kernels.n)
            json_object_set_new(d, "kernels", topt_kernel_samples_json(&r->kernels));
    }
    return d;
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
    const struct topt_points *p = c ? &c->points : NULL;
    double bytes = p ? (double)p->at[p->n - 1] : 1e9, ns = p ? p->ns[p->n - 1] : 1e9;
    double latency = p ? p->ns[0] : 1000;
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
    for (int i = 0; i < c->points.n; i++)
        json_array_append_new(points, json_pack("[I, I]", (json_int_t)c->points.at[i],
                                                (json_int_t)(c->points.ns[i] + 0.5)));
    return json_pack("{s:s, s:i, s:i, s:i, s:o, s:s}", "collective",
                     topt_collective_name(c->kind), "nodes", c->group.nodes, "per_node",
                     c->group.per_node, "siblings", c->group.siblings, "points", points,
                     "source", "measured: median, packing included, all groups at once");
}

/* Each node, and what it is. */
static json_t *sources_json(const struct topt_nodes *n)
{
    json_t *list = json_array();
    for (int i = 0; i < n->n; i++) {
        char words[256] = "not seen by hwloc", line[512];
        if (n->node[i].seen)
            topt_topology_words(&n->node[i].is, words, sizeof words);
        snprintf(line, sizeof line, "%s, %d ranks: %s", n->node[i].host, n->node[i].ranks,
                 words);
        json_array_append_new(list, json_string(line));
    }
    return list;
}

/* Steps of random plans took within this of what such profiles predict
 * (tests/bench/reality.py). */
static const double BAND = 0.15;

json_t *topt_profile_json(const struct topt_measured *m)
{
    json_t *links = json_array(), *list = json_array();
    char names[256], said[320];
    int n = m->ncurves;
    if (m->mesh->per_node > 1)
        json_array_append_new(links,
                              link_json(pick(m->curves, n, TOPT_ALL_GATHER, 0), 0));
    if (m->mesh->nodes > 1)
        json_array_append_new(links,
                              link_json(pick(m->curves, n, TOPT_ALL_GATHER, 1), 1));
    for (int i = 0; i < n; i++)
        json_array_append_new(list, curve_json(&m->curves[i]));
    topt_nodes_names(m->nodes, names, sizeof names);
    snprintf(said, sizeof said, "measured by 'topt profile' on %d ranks of %s",
             m->mesh->devices, names);
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:{s:f}, s:o, s:o, s:o, s:o}", "format",
                     "topt-hw/1", "name", m->name, "description", said, "nodes",
                     m->mesh->nodes, "gpus_per_node", m->mesh->per_node, "bands",
                     "interpolated", BAND, "device", device_json(m), "links", links,
                     "curves", list, "sources", sources_json(m->nodes));
}
