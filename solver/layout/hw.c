/* hw.c - hardware profiles: reading "topt-hw/1" and pricing kernels and collectives.
 *
 * A collective has two descriptions.  The two-level model: g groups lie on N nodes
 * with m members each; inside a node a member moves its share at the node link's rate,
 * between nodes the g groups share the node's rate, and every step waits the link's
 * latency (docs/formats/hw.md has the table of shares and steps).  NCCL runs rings and
 * trees over both levels at once and takes the quicker by size; where the profile does
 * not say so ("pipelined"), one stage follows the other.  And measured curves: time
 * against bytes, straight lines between points, flat below the first, at the last
 * point's rate above the last.  A group that was measured gets its curve, one with a
 * smaller and a larger one measured a straight line between them at equal bytes a
 * member.  Another one gets the nearest curve of its kind, moved by what the two-level
 * model says is different: t(S) = curve(S * r) + d, with r the ratio of the model's
 * times per byte and d the difference of its latencies.  A curve so keeps its knees, and
 * both numbers are 1 and 0 for the measured group.  A curve of one node says nothing of
 * several: there the model adds the network's part to the price inside a node, measured
 * or not.  No other collective's curve prices a permute, which takes one step where
 * that takes many, whose knees are not its own.
 *
 * More bytes are never cheaper: a point slower than one of more bytes is lowered to it
 * (the message could have been padded), and everything else grows with S.
 *
 * Every time is computed in double with + - * / and comparisons only, in one order,
 * and rounded up once: the same on every machine with IEEE arithmetic. */
#include "topt_hw.h"
#include "band.h"
#include "hw_attention.h"
#include "hw_kernels.h"
#include "hw_products.h"
#include "hw_impl.h"
#include "topt_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_GRANULE = 65536,
    MAX_PROFILE_BYTES = 16 << 20,
    MAX_CURVES = 1024,
    MAX_POINTS = 4096,
    MAX_BY_GROUP = 16,
    WORKS = 3,
};
static const double MAX_NS = 0x1p62;

/* Rates by group size: that of the largest size listed that is not above the group's. */
struct rates {
    double otherwise; /* bytes per second where nothing is listed */
    int n;
    int64_t size[MAX_BY_GROUP];
    double rate[MAX_BY_GROUP];
};

struct link {
    int present;
    struct rates any, all_reduce;
    int shared;         /* node link: its devices share the rate */
    double device_rate; /* cluster link: what one device reaches, 0: no bound */
    int64_t ports;      /* cluster link: network interfaces of a node, 0: not said */
    double latency_ns;
    int pipelined; /* cluster link: local and network stages overlap */
};

struct curve {
    enum topt_collective kind;
    struct topt_group group;
    int npoints, lowered;
    double *bytes, *ns; /* ascending, never falling */
};

struct topt_hw {
    json_t *doc;
    const char *name, *device; /* of the document */
    int nodes, per_node;
    int64_t memory_bytes, capacity_bytes, runtime_low, runtime_high;
    struct topt_band band[TOPT_BASIS_COUNT];
    double flops[TOPT_DTYPE_COUNT];
    double efficiency[WORKS], memory_bandwidth, launch_ns;
    /* Curves of products and attention: time against operations; may have no points. */
    struct curve by_size[WORKS][TOPT_DTYPE_COUNT];
    struct topt_attention_rates *attention; /* owned */
    struct topt_product_rate products[TOPT_DTYPE_COUNT];
    struct topt_kernel_times *times; /* of kernels; owned */
    int64_t granule_bytes;
    int64_t shared_cores;    /* 0: every device has its own */
    enum topt_basis kernels; /* what their times rest on */
    double collective_launch_ns;
    int64_t workspace_bytes;
    int64_t allocator_permille; /* -1: as the framework's row says */
    double collective_share;    /* of a device's computing that a running one takes */
    struct topt_hw_host host;   /* a device's share of it */
    struct link node, cluster;
    int ncurves;
    struct curve *curve;
    int ngroups; /* of unlike devices; 0: all are alike */
    int meant;   /* devices of a group, where not all are; 0: all */
    struct topt_hw **group;
    double between_rate, between_latency_ns; /* bytes per second of a group */
};

static const char *const collective_names[TOPT_COLLECTIVE_COUNT] = {
    [TOPT_ALL_REDUCE] = "all_reduce",
    [TOPT_ALL_GATHER] = "all_gather",
    [TOPT_REDUCE_SCATTER] = "reduce_scatter",
    [TOPT_ALL_TO_ALL] = "all_to_all",
    [TOPT_PERMUTE] = "permute"};
/* Ends with NULL, as a list of fields. */
static const char *const dtype_names[TOPT_DTYPE_COUNT + 1] = {
    [TOPT_F32] = "f32",   [TOPT_F64] = "f64",  [TOPT_BF16] = "bf16",
    [TOPT_F16] = "f16",   [TOPT_F8] = "f8",    [TOPT_F8_BLOCK] = "f8-block",
    [TOPT_MXF8] = "mxf8", [TOPT_NVF4] = "nvf4"};
static const char *const work_names[WORKS] = {[TOPT_WORK_MATMUL] = "matmul",
                                              [TOPT_WORK_ATTENTION] = "attention",
                                              [TOPT_WORK_ELEMENTWISE] = "elementwise"};

const char *topt_collective_name(enum topt_collective c)
{
    return (unsigned)c < TOPT_COLLECTIVE_COUNT ? collective_names[c] : "unknown";
}

static const char *const basis_names[TOPT_BASIS_COUNT] = {
    [TOPT_BASIS_MEASURED] = "measured",
    [TOPT_BASIS_INTERPOLATED] = "interpolated",
    [TOPT_BASIS_SCALED] = "scaled",
    [TOPT_BASIS_PUBLISHED] = "published",
    [TOPT_BASIS_ANALYTIC] = "analytic"};

const char *topt_basis_name(enum topt_basis b)
{
    return (unsigned)b < TOPT_BASIS_COUNT ? basis_names[b] : "unknown";
}

const char *topt_dtype_name(enum topt_dtype t)
{
    return (unsigned)t < TOPT_DTYPE_COUNT ? dtype_names[t] : "unknown";
}

int topt_dtype_bytes(enum topt_dtype t)
{
    return t == TOPT_F64 ? 8 : topt_dtype_is_half(t) ? 2 : 4;
}

int topt_dtype_is_half(enum topt_dtype t)
{
    return t == TOPT_BF16 || t == TOPT_F16;
}

/* ---- reading ----------------------------------------------------------------------- */

/* Every section names where its figures come from. */
static int need_source(const json_t *obj, const char *path, struct topt_error *err)
{
    const char *source;
    if (topt_json_string(obj, path, "source", &source, err))
        return -1;
    return *source ? 0
                   : topt_fail(err, TOPT_ERR_INVAL,
                               "%s.source is empty: say where the figures "
                               "come from",
                               path);
}

/* The figures of a section that no document or measurement gives.  A member's member, as of a type, may
 * be lacking. */
static int read_assumed(const json_t *obj, const char *path, struct topt_error *err)
{
    const json_t *list = json_object_get(obj, "assumed");
    if (list && !json_is_array(list))
        return topt_fail(err, TOPT_ERR_INVAL, "%s.assumed must be an array of names",
                         path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        char field[64];
        snprintf(field, sizeof field, "%.*s", name ? (int)strcspn(name, ".") : 0,
                 name ? name : "");
        if (!json_object_get(obj, field))
            return topt_fail(err, TOPT_ERR_INVAL,
                             "%s.assumed[%zu] must be the name of a figure of %s, as "
                             "\"latency_ns\" or \"flops.bf16\"",
                             path, i, path);
    }
    return 0;
}

static int need_object(const json_t *doc, const char *key, const json_t **ret,
                       struct topt_error *err)
{
    *ret = json_object_get(doc, key);
    return json_is_object(*ret)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "%s must be an object", key);
}

static int read_flops(struct topt_hw *hw, const json_t *device, struct topt_error *err)
{
    const json_t *flops = json_object_get(device, "flops");
    if (topt_json_only(flops, "device.flops", dtype_names, err))
        return -1;
    for (int t = 0; t < TOPT_DTYPE_COUNT; t++)
        if (topt_json_real_or(flops, "device.flops", dtype_names[t], 1e6, 1e21,
                              &hw->flops[t], err))
            return -1;
    return json_object_size(flops)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "device.flops names no data type");
}

static int refuse_size(const char *table, const char *name, size_t i,
                       struct topt_error *err)
{
    return topt_fail(err, TOPT_ERR_INVAL,
                     "device.%s.%s[%zu] must be [operations, share of the "
                     "peak], operations rising and none of more faster",
                     table, name, i);
}

static int read_sizes(struct topt_hw *hw, const json_t *list, const char *table,
                      struct curve *c, int t, struct topt_error *err)
{
    size_t n = json_array_size(list);
    if (n < 2 || n > MAX_POINTS || !(hw->flops[t] > 0))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "device.%s.%s must have 2 to %d points, and "
                         "device.flops a peak for them",
                         table, dtype_names[t], MAX_POINTS);
    c->bytes = calloc(n, sizeof *c->bytes);
    c->ns = calloc(n, sizeof *c->ns);
    if (!c->bytes || !c->ns)
        return topt_nomem(err, "a curve");
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(list, i);
        double ops = json_number_value(json_array_get(pair, 0));
        double share = json_number_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || !(ops >= 1 && ops <= MAX_NS) ||
            !(share >= 1e-6 && share <= 10))
            return refuse_size(table, dtype_names[t], i, err);
        c->bytes[i] = ops;
        c->ns[i] = ops * 1e9 / (hw->flops[t] * share);
        if (i && (ops <= c->bytes[i - 1] || c->ns[i] < c->ns[i - 1]))
            return refuse_size(table, dtype_names[t], i, err);
    }
    c->npoints = (int)n;
    return 0;
}

/* The rate that kernels of a kind reach by their size, where the profile has it. */
static int read_by_size(struct topt_hw *hw, const json_t *device, enum topt_work w,
                        struct topt_error *err)
{
    char table[32], path[48];
    snprintf(table, sizeof table, "%s_by_size", work_names[w]);
    snprintf(path, sizeof path, "device.%s", table);
    const json_t *sizes = json_object_get(device, table);
    if (sizes && topt_json_only(sizes, path, dtype_names, err))
        return -1;
    for (int t = 0; t < TOPT_DTYPE_COUNT; t++) {
        const json_t *list = json_object_get(sizes, dtype_names[t]);
        if (list && read_sizes(hw, list, table, &hw->by_size[w][t], t, err))
            return -1;
    }
    return 0;
}

static int read_efficiency(struct topt_hw *hw, const json_t *device,
                           struct topt_error *err)
{
    const char *const fields[] = {work_names[0], work_names[1], work_names[2], "memory",
                                  NULL};
    const char *path = "device.efficiency";
    const json_t *eff = json_object_get(device, "efficiency");
    if (topt_json_only(eff, path, fields, err))
        return -1;
    for (int w = 0; w < WORKS; w++)
        if (topt_json_real(eff, path, work_names[w], 1e-6, 10, &hw->efficiency[w], err))
            return -1;
    double memory = 1;
    if (topt_json_real_or(eff, path, "memory", 1e-6, 10, &memory, err))
        return -1;
    hw->memory_bandwidth *= memory;
    return 0;
}

/* Nothing is known: anything up to what the profile keeps free. */
static int read_runtime(struct topt_hw *hw, const json_t *device, int64_t reserve,
                        struct topt_error *err)
{
    static const char *const fields[] = {"low", "high", NULL};
    const char *path = "device.runtime_bytes";
    const json_t *r = json_object_get(device, "runtime_bytes");
    hw->runtime_low = 0;
    hw->runtime_high = reserve;
    if (!r)
        return 0;
    if (topt_json_only(r, path, fields, err) ||
        topt_json_int(r, path, "high", 0, reserve, &hw->runtime_high, err))
        return -1;
    return topt_json_int(r, path, "low", 0, hw->runtime_high, &hw->runtime_low, err);
}

static int read_bands(struct topt_hw *hw, const json_t *doc, struct topt_error *err)
{
    const char *fields[TOPT_BASIS_COUNT + 1] = {NULL};
    const json_t *bands = json_object_get(doc, "bands");
    for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
        fields[b] = basis_names[b];
        hw->band[b] = topt_band_of_time((enum topt_basis)b);
    }
    if (bands && topt_json_only(bands, "bands", fields, err))
        return -1;
    for (int b = 0; b < TOPT_BASIS_COUNT; b++) {
        double both;
        if (!json_object_get(bands, basis_names[b]))
            continue;
        if (topt_json_real(bands, "bands", basis_names[b], 0, 1, &both, err))
            return -1;
        hw->band[b] = (struct topt_band){both, both};
    }
    return 0;
}

/* The basis of kernels' times.  A kernel's time follows from its size only roughly, so that
 * measured rates are no better basis than interpolation. */
static int read_rates_basis(struct topt_hw *hw, const json_t *device,
                            struct topt_error *err)
{
    const json_t *rates = json_object_get(device, "rates");
    const char *said = json_string_value(rates);
    hw->kernels = TOPT_BASIS_ANALYTIC;
    if (!rates || (said && !strcmp(said, "data sheet")))
        return 0;
    if (!said || strcmp(said, "measured"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "device.rates must be \"measured\" or \"data sheet\"");
    hw->kernels = TOPT_BASIS_INTERPOLATED;
    return 0;
}

static int read_device(struct topt_hw *hw, const json_t *doc, struct topt_error *err)
{
    static const char *const fields[] = {"name",
                                         "memory_bytes",
                                         "reserve_bytes",
                                         "runtime_bytes",
                                         "flops",
                                         "efficiency",
                                         "memory_bandwidth",
                                         "launch_ns",
                                         "shared_cores",
                                         "granule_bytes",
                                         "matmul_by_size",
                                         "attention_by_size",
                                         "attention",
                                         "products",
                                         "kernels",
                                         "rates",
                                         "assumed",
                                         "allocator_permille",
                                         "workspace_bytes",
                                         "source",
                                         NULL};
    const json_t *d;
    int64_t memory, reserve = 0;
    hw->granule_bytes = DEFAULT_GRANULE;
    hw->allocator_permille = -1;
    if (need_object(doc, "device", &d, err) || topt_json_only(d, "device", fields, err) ||
        topt_json_string(d, "device", "name", &hw->device, err) ||
        topt_json_int(d, "device", "memory_bytes", 1, (int64_t)1 << 60, &memory, err) ||
        topt_json_int_or(d, "device", "reserve_bytes", 0, memory - 1, &reserve, err) ||
        topt_json_real(d, "device", "memory_bandwidth", 1e6, 1e18, &hw->memory_bandwidth,
                       err) ||
        topt_json_real(d, "device", "launch_ns", 0, 1e9, &hw->launch_ns, err) ||
        topt_json_int_or(d, "device", "shared_cores", 1, 1 << 20, &hw->shared_cores,
                         err) ||
        topt_json_int_or(d, "device", "granule_bytes", 1, 1 << 30, &hw->granule_bytes,
                         err) ||
        topt_json_int_or(d, "device", "allocator_permille", 0, 1000,
                         &hw->allocator_permille, err) ||
        topt_json_int_or(d, "device", "workspace_bytes", 0, 1 << 30, &hw->workspace_bytes,
                         err) ||
        read_runtime(hw, d, reserve, err) || read_flops(hw, d, err) ||
        read_rates_basis(hw, d, err) || read_efficiency(hw, d, err) ||
        read_by_size(hw, d, TOPT_WORK_MATMUL, err) ||
        read_by_size(hw, d, TOPT_WORK_ATTENTION, err) ||
        topt_products_read(d, dtype_names, hw->products, err) ||
        topt_kernel_times_read(d, dtype_names, &hw->times, err) ||
        topt_attention_rates_read(d, dtype_names, &hw->attention, err))
        return -1;
    hw->memory_bytes = memory - reserve;
    hw->capacity_bytes = memory;
    return read_assumed(d, "device", err) || need_source(d, "device", err) ? -1 : 0;
}

static int read_rates(const json_t *link, const char *path, const char *key,
                      const char *table, struct rates *ret, struct topt_error *err)
{
    const json_t *list = json_object_get(link, table);
    if (topt_json_real_or(link, path, key, 1, 1e18, &ret->otherwise, err))
        return -1;
    if (!list)
        return 0;
    if (!json_is_array(list) || json_array_size(list) > MAX_BY_GROUP)
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s.%s must be an array of at most %d pairs", path, table,
                         MAX_BY_GROUP);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i);
        int64_t size = json_integer_value(json_array_get(pair, 0));
        double rate = json_number_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || size < 2 || !(rate >= 1 && rate <= 1e18) ||
            (i && size <= ret->size[i - 1]))
            return topt_fail(
                err, TOPT_ERR_INVAL,
                "%s.%s[%zu] must be [members, bytes per second], members rising "
                "from 2",
                path, table, i);
        ret->size[i] = size;
        ret->rate[i] = rate;
        ret->n = (int)i + 1;
    }
    return 0;
}

static int read_link_fields(struct link *l, const json_t *obj, const char *path,
                            int cluster, struct topt_error *err)
{
    static const char *const node_fields[] = {"level",
                                              "bytes_per_second",
                                              "by_group",
                                              "all_reduce_bytes_per_second",
                                              "all_reduce_by_group",
                                              "shared",
                                              "latency_ns",
                                              "assumed",
                                              "source",
                                              NULL};
    static const char *const cluster_fields[] = {
        "level",   "bytes_per_second", "device_bytes_per_second",
        "ports",   "latency_ns",       "pipelined",
        "assumed", "source",           NULL};
    if (topt_json_only(obj, path, cluster ? cluster_fields : node_fields, err) ||
        topt_json_real(obj, path, "bytes_per_second", 1, 1e18, &l->any.otherwise, err) ||
        topt_json_real(obj, path, "latency_ns", 0, 1e9, &l->latency_ns, err) ||
        topt_json_bool_or(obj, path, "pipelined", &l->pipelined, err) ||
        topt_json_bool_or(obj, path, "shared", &l->shared, err) ||
        topt_json_real_or(obj, path, "device_bytes_per_second", 1, 1e18, &l->device_rate,
                          err) ||
        topt_json_int_or(obj, path, "ports", 1, 1024, &l->ports, err) ||
        read_rates(obj, path, "bytes_per_second", "by_group", &l->any, err))
        return -1;
    l->all_reduce = l->any;
    if (json_object_get(obj, "all_reduce_by_group"))
        l->all_reduce.n = 0;
    if (read_rates(obj, path, "all_reduce_bytes_per_second", "all_reduce_by_group",
                   &l->all_reduce, err))
        return -1;
    l->present = 1;
    return read_assumed(obj, path, err) || need_source(obj, path, err) ? -1 : 0;
}

static int read_link(struct topt_hw *hw, const json_t *obj, size_t i,
                     struct topt_error *err)
{
    char path[32];
    const char *level;
    snprintf(path, sizeof path, "links[%zu]", i);
    if (!json_is_object(obj))
        return topt_fail(err, TOPT_ERR_INVAL, "%s must be an object", path);
    if (topt_json_string(obj, path, "level", &level, err))
        return -1;
    int cluster = !strcmp(level, "cluster");
    if (!cluster && strcmp(level, "node"))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s.level is \"%.40s\"; node and cluster are known", path,
                         level);
    struct link *l = cluster ? &hw->cluster : &hw->node;
    if (l->present)
        return topt_fail(err, TOPT_ERR_INVAL, "%s: a second link of level %s", path,
                         level);
    return read_link_fields(l, obj, path, cluster, err);
}

static int read_links(struct topt_hw *hw, const json_t *doc, struct topt_error *err)
{
    const json_t *links, *launch = json_object_get(doc, "collective");
    static const char *const fields[] = {"launch_ns", "device_share", "assumed", "source",
                                         NULL};
    if (topt_json_array(doc, "", "links", &links, err))
        return -1;
    for (size_t i = 0; i < json_array_size(links); i++)
        if (read_link(hw, json_array_get(links, i), i, err))
            return -1;
    if (hw->per_node > 1 && !hw->node.present)
        return topt_fail(err, TOPT_ERR_INVAL, "links has no link of level node");
    if (hw->nodes > 1 && !hw->cluster.present)
        return topt_fail(err, TOPT_ERR_INVAL, "links has no link of level cluster");
    if (!launch)
        return 0;
    if (topt_json_only(launch, "collective", fields, err) ||
        topt_json_real(launch, "collective", "launch_ns", 0, 1e9,
                       &hw->collective_launch_ns, err) ||
        topt_json_real_or(launch, "collective", "device_share", 0, 1,
                          &hw->collective_share, err) ||
        read_assumed(launch, "collective", err))
        return -1;
    return need_source(launch, "collective", err);
}

static void free_points(struct curve *c)
{
    free(c->bytes);
    free(c->ns);
}

/* Time of 'bytes' on a curve, or of so many operations. */
static double on_curve(const struct curve *c, double bytes)
{
    int last = c->npoints - 1, lo = 0, hi = last;
    if (bytes <= c->bytes[0])
        return c->ns[0];
    if (bytes >= c->bytes[last])
        return c->ns[last] * (bytes / c->bytes[last]);
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (c->bytes[mid] <= bytes)
            lo = mid;
        else
            hi = mid;
    }
    double share = (bytes - c->bytes[lo]) / (c->bytes[hi] - c->bytes[lo]);
    return c->ns[lo] + (c->ns[hi] - c->ns[lo]) * share;
}

static int read_point(struct curve *c, const char *path, const json_t *pair, size_t i,
                      struct topt_error *err)
{
    double bytes = json_number_value(json_array_get(pair, 0));
    double ns = json_number_value(json_array_get(pair, 1));
    if (json_array_size(pair) != 2 || !(bytes >= 1 && bytes <= MAX_NS) ||
        !(ns > 0 && ns <= 1e15) || (i && bytes <= c->bytes[i - 1]))
        return topt_fail(err, TOPT_ERR_INVAL,
                         "%s.points[%zu] must be [bytes, nanoseconds], bytes rising",
                         path, i);
    c->bytes[i] = bytes;
    c->ns[i] = ns;
    return 0;
}

static int read_points(struct curve *c, const char *path, const json_t *points,
                       struct topt_error *err)
{
    size_t n = json_array_size(points);
    if (n < 2 || n > MAX_POINTS)
        return topt_fail(err, TOPT_ERR_INVAL, "%s.points must have 2 to %d points", path,
                         MAX_POINTS);
    c->bytes = calloc(n, sizeof *c->bytes);
    c->ns = calloc(n, sizeof *c->ns);
    if (!c->bytes || !c->ns)
        return topt_nomem(err, "a curve");
    for (size_t i = 0; i < n; i++)
        if (read_point(c, path, json_array_get(points, i), i, err))
            return -1;
    for (size_t i = n - 1; i-- > 0;)
        if (c->ns[i] > c->ns[i + 1]) {
            c->ns[i] = c->ns[i + 1];
            c->lowered++;
        }
    c->npoints = (int)n;
    return 0;
}

static int read_kind(const json_t *obj, const char *path, enum topt_collective *ret,
                     struct topt_error *err)
{
    const char *name;
    if (topt_json_string(obj, path, "collective", &name, err))
        return -1;
    for (int k = 0; k < TOPT_COLLECTIVE_COUNT; k++)
        if (!strcmp(collective_names[k], name)) {
            *ret = (enum topt_collective)k;
            return 0;
        }
    return topt_fail(err, TOPT_ERR_INVAL,
                     "%s.collective is \"%.40s\", which is not known", path, name);
}

static int same_group(struct topt_group a, struct topt_group b)
{
    return a.nodes == b.nodes && a.per_node == b.per_node && a.siblings == b.siblings;
}

static int read_group(struct topt_hw *hw, const json_t *obj, const char *path,
                      struct topt_group *ret, struct topt_error *err)
{
    int64_t nodes, per_node, siblings = 1;
    if (topt_json_int(obj, path, "nodes", 1, hw->nodes, &nodes, err) ||
        topt_json_int(obj, path, "per_node", 1, hw->per_node, &per_node, err) ||
        topt_json_int_or(obj, path, "siblings", 1, hw->per_node / per_node, &siblings,
                         err))
        return -1;
    *ret = (struct topt_group){(int)nodes, (int)per_node, (int)siblings};
    return nodes * per_node > 1
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL, "%s is a curve of one device", path);
}

static int read_curve(struct topt_hw *hw, const json_t *obj, size_t i,
                      struct topt_error *err)
{
    static const char *const fields[] = {"collective", "nodes",  "per_node", "siblings",
                                         "points",     "source", NULL};
    char path[32];
    const json_t *points;
    struct curve *c = &hw->curve[hw->ncurves++];
    snprintf(path, sizeof path, "curves[%zu]", i);
    if (topt_json_only(obj, path, fields, err) || read_kind(obj, path, &c->kind, err) ||
        read_group(hw, obj, path, &c->group, err) ||
        topt_json_array(obj, path, "points", &points, err) ||
        read_points(c, path, points, err))
        return -1;
    for (int k = 0; k + 1 < hw->ncurves; k++)
        if (hw->curve[k].kind == c->kind && same_group(hw->curve[k].group, c->group))
            return topt_fail(err, TOPT_ERR_INVAL, "%s is of the same group as curves[%d]",
                             path, k);
    return need_source(obj, path, err);
}

/* Lower a group's points to the time of a larger one at as many bytes a member, since the members
 * that it has beside them could have been there. */
static void lower_to(struct curve *small, const struct curve *large)
{
    double more = (double)large->group.nodes * large->group.per_node /
                  ((double)small->group.nodes * small->group.per_node);
    for (int i = 0; i < small->npoints; i++) {
        double ns = on_curve(large, i ? small->bytes[i] * more : 0); /* flat below it */
        if (ns < small->ns[i]) {
            small->ns[i] = ns;
            small->lowered++;
        }
    }
}

/* Has a group all members of another, beside whose groups no more devices are at work? */
static int holds(struct topt_group large, struct topt_group small)
{
    return small.nodes <= large.nodes && small.per_node <= large.per_node &&
           small.per_node * small.siblings <= large.per_node * large.siblings;
}

static void lower_to_larger(struct topt_hw *hw)
{
    for (int i = 0; i < hw->ncurves; i++)
        for (int k = 0; k < hw->ncurves; k++) {
            struct curve *a = &hw->curve[i], *b = &hw->curve[k];
            if (i != k && a->kind == b->kind && a->kind != TOPT_PERMUTE &&
                holds(b->group, a->group))
                lower_to(a, b);
        }
}

static int read_curves(struct topt_hw *hw, const json_t *doc, struct topt_error *err)
{
    const json_t *list = json_object_get(doc, "curves");
    if (!list)
        return 0;
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > MAX_CURVES)
        return topt_fail(err, TOPT_ERR_INVAL, "curves must be an array of at most %d",
                         MAX_CURVES);
    hw->curve = calloc(n + 1, sizeof *hw->curve);
    if (!hw->curve)
        return topt_nomem(err, "curves");
    for (size_t i = 0; i < n; i++)
        if (read_curve(hw, json_array_get(list, i), i, err))
            return -1;
    lower_to_larger(hw);
    return 0;
}

/* The host of a node, of which each device has an equal share, and a link of its own. */
static int read_host(struct topt_hw *hw, const json_t *doc, struct topt_error *err)
{
    static const char *const fields[] = {"memory_bytes",     "memory_bandwidth",
                                         "bytes_per_second", "assumed",
                                         "source",           NULL};
    const char *path = "host";
    const json_t *host = json_object_get(doc, path);
    struct topt_hw_host *h = &hw->host;
    if (!host)
        return 0;
    if (need_object(doc, path, &host, err) || topt_json_only(host, path, fields, err) ||
        topt_json_int(host, path, "memory_bytes", 1, (int64_t)1 << 60, &h->memory_bytes,
                      err) ||
        topt_json_real(host, path, "memory_bandwidth", 1e6, 1e18, &h->memory, err) ||
        topt_json_real(host, path, "bytes_per_second", 1e6, 1e18, &h->link, err) ||
        read_assumed(host, path, err))
        return -1;
    h->memory_bytes /= hw->per_node;
    h->memory /= hw->per_node;
    return need_source(host, path, err);
}

static int read_between(struct topt_hw *hw, const json_t *doc, struct topt_error *err)
{
    static const char *const fields[] = {"bytes_per_second", "latency_ns", "source",
                                         NULL};
    const char *path = "between";
    const json_t *link;
    if (need_object(doc, path, &link, err) || topt_json_only(link, path, fields, err) ||
        topt_json_real(link, path, "bytes_per_second", 1, 1e18, &hw->between_rate, err) ||
        topt_json_real(link, path, "latency_ns", 0, 1e9, &hw->between_latency_ns, err))
        return -1;
    return need_source(link, path, err);
}

static int read_document(struct topt_hw *hw, const json_t *doc, struct topt_error *err)
{
    static const char *const fields[] = {
        "format", "name",   "description", "nodes",  "gpus_per_node",
        "device", "links",  "collective",  "curves", "sources",
        "bands",  "groups", "between",     "host",   NULL};
    int64_t nodes, per_node;
    const char *description = "";
    const json_t *sources = json_object_get(doc, "sources");
    if (topt_json_only(doc, "", fields, err) || topt_json_format(doc, "hw", err) ||
        topt_json_string(doc, "", "name", &hw->name, err) ||
        topt_json_string_or(doc, "", "description", &description, err) ||
        topt_json_int(doc, "", "nodes", 1, 1 << 16, &nodes, err) ||
        topt_json_int(doc, "", "gpus_per_node", 1, 1024, &per_node, err))
        return -1;
    for (size_t i = 0; i < json_array_size(sources); i++)
        if (!json_is_string(json_array_get(sources, i)))
            return topt_fail(err, TOPT_ERR_INVAL, "sources[%zu] must be a string", i);
    if (sources && !json_is_array(sources))
        return topt_fail(err, TOPT_ERR_INVAL, "sources must be an array");
    hw->nodes = (int)nodes;
    hw->per_node = (int)per_node;
    return read_device(hw, doc, err) || read_bands(hw, doc, err) ||
                   read_links(hw, doc, err) || read_curves(hw, doc, err) ||
                   read_host(hw, doc, err) || (hw->ngroups && read_between(hw, doc, err))
               ? -1
               : 0;
}

/* A part of a node, or whole ones. */
static int read_group_devices(struct topt_hw *group, const json_t *gpus, size_t i,
                              struct topt_error *err)
{
    int64_t n = json_integer_value(gpus), most = (int64_t)group->nodes * group->per_node;
    group->meant = (int)n;
    return n >= 1 && n <= most && (n <= group->per_node || n % group->per_node == 0)
               ? 0
               : topt_fail(err, TOPT_ERR_INVAL,
                           "groups[%zu].gpus is a part of a node or whole nodes: 1 to "
                           "%d, or a multiple of it up to %lld",
                           i, group->per_node, (long long)most);
}

/* A group is a profile of its own, which has no groups, in words that begin with its place. */
static int read_group_profile(struct topt_hw *hw, json_t *groups, size_t i,
                              struct topt_error *err)
{
    json_t *doc = json_array_get(groups, i);
    struct topt_hw *group = NULL;
    if (!json_is_object(doc))
        return topt_fail(err, TOPT_ERR_INVAL, "groups[%zu] must be an object", i);
    if (json_object_get(doc, "groups"))
        return topt_fail(err, TOPT_ERR_INVAL, "groups[%zu] has groups itself", i);
    json_object_set_new(doc, "format", json_string("topt-hw/1"));
    json_t *gpus = json_incref(json_object_get(doc, "gpus"));
    json_object_del(doc, "gpus");
    group = topt_hw_from_json(doc, err);
    if (!group) {
        json_decref(gpus);
        return topt_wrap(err, "groups[%zu]", i);
    }
    hw->group[hw->ngroups++] = group;
    json_t *read = topt_hw_to_json(group);
    if (gpus)
        json_object_set_new(read, "gpus", gpus);
    json_array_set_new(groups, i, read);
    return gpus ? read_group_devices(group, gpus, i, err) : 0;
}

static int read_groups(struct topt_hw *hw, struct topt_error *err)
{
    json_t *groups = json_object_get(hw->doc, "groups");
    size_t n = json_array_size(groups);
    if (!groups)
        return json_object_get(hw->doc, "between")
                   ? topt_fail(err, TOPT_ERR_INVAL,
                               "between is a link of groups, and there are none")
                   : 0;
    if (!json_is_array(groups) || n < 2 || n > TOPT_HW_GROUPS)
        return topt_fail(err, TOPT_ERR_INVAL, "groups must be an array of 2 to %d",
                         TOPT_HW_GROUPS);
    hw->group = calloc(n, sizeof *hw->group);
    if (!hw->group)
        return topt_nomem(err, "groups of devices");
    for (size_t i = 0; i < n; i++)
        if (read_group_profile(hw, groups, i, err))
            return -1;
    return topt_hw_join_groups(hw->doc, err);
}

struct topt_hw *topt_hw_from_json(const json_t *doc, struct topt_error *err)
{
    struct topt_hw *hw = calloc(1, sizeof *hw);
    if (hw)
        hw->doc = json_deep_copy(doc);
    if (!hw || !hw->doc) {
        topt_nomem(err, "a hardware profile");
        free(hw);
        return NULL;
    }
    if (topt_hw_expand(&hw->doc, err) || read_groups(hw, err) ||
        read_document(hw, hw->doc, err)) {
        topt_hw_destroy(hw);
        return NULL;
    }
    return hw;
}

static json_t *load_document(const char *name, struct topt_error *err)
{
    size_t len;
    const char *text = topt_hw_shipped_text(name, &len);
    if (text)
        return topt_json_parse(text, len, name, err);
    struct topt_error e;
    json_t *doc = topt_json_load(name, MAX_PROFILE_BYTES, &e);
    if (!doc && e.code == TOPT_ERR_NOTFOUND && !strchr(name, '/'))
        topt_hw_refuse_name(name, TOPT_ERR_USAGE, err);
    else if (!doc && err)
        *err = e;
    return doc;
}

struct topt_hw *topt_hw_load(const char *name_or_path, struct topt_error *err)
{
    json_t *doc = load_document(name_or_path, err);
    if (!doc)
        return NULL;
    struct topt_hw *hw = topt_hw_from_json(doc, err);
    json_decref(doc);
    if (!hw)
        topt_wrap(err, "hardware profile '%.100s'", name_or_path);
    return hw;
}

void topt_hw_destroy(struct topt_hw *hw)
{
    if (!hw)
        return;
    for (int i = 0; i < hw->ngroups; i++)
        topt_hw_destroy(hw->group[i]);
    free(hw->group);
    for (int i = 0; i < hw->ncurves; i++)
        free_points(&hw->curve[i]);
    for (int i = 0; i < WORKS * TOPT_DTYPE_COUNT; i++)
        free_points(&hw->by_size[i / TOPT_DTYPE_COUNT][i % TOPT_DTYPE_COUNT]);
    free(hw->curve);
    topt_attention_rates_free(hw->attention);
    topt_kernel_times_free(hw->times);
    json_decref(hw->doc);
    free(hw);
}

json_t *topt_hw_to_json(const struct topt_hw *hw)
{
    return json_deep_copy(hw->doc);
}

/* ---- questions --------------------------------------------------------------------- */

const char *topt_hw_name(const struct topt_hw *hw)
{
    return hw->name;
}

int topt_hw_max_nodes(const struct topt_hw *hw)
{
    return hw->nodes;
}

int topt_hw_gpus_per_node(const struct topt_hw *hw)
{
    return hw->per_node;
}

const char *topt_hw_device(const struct topt_hw *hw)
{
    return hw->device;
}

void topt_hw_runtime_bytes(const struct topt_hw *hw, int64_t *ret_low, int64_t *ret_high)
{
    *ret_low = hw->runtime_low;
    *ret_high = hw->runtime_high;
}

const struct topt_band *topt_hw_bands(const struct topt_hw *hw)
{
    return hw->band;
}

int64_t topt_hw_granule_bytes(const struct topt_hw *hw)
{
    return hw->granule_bytes;
}

int64_t topt_hw_allocator_permille(const struct topt_hw *hw, int64_t otherwise)
{
    return otherwise > 0 && hw->allocator_permille >= 0 ? hw->allocator_permille
                                                        : otherwise;
}

int64_t topt_hw_workspace_bytes(const struct topt_hw *hw)
{
    return hw->workspace_bytes;
}

const struct topt_hw_host *topt_hw_host(const struct topt_hw *hw)
{
    return &hw->host;
}

double topt_hw_collective_share(const struct topt_hw *hw)
{
    return hw->collective_share;
}

int64_t topt_hw_hidden_ns(const struct topt_hw *hw, int64_t ns, int64_t room)
{
    int64_t most = (int64_t)((double)ns * (1 - topt_hw_collective_share(hw)));
    return most < room ? most : room;
}

int64_t topt_hw_capacity_bytes(const struct topt_hw *hw)
{
    return hw->capacity_bytes;
}

int64_t topt_hw_memory_bytes(const struct topt_hw *hw)
{
    return hw->memory_bytes;
}

/* f16 goes by the figures of bf16 where a profile has none for it: tensor cores have the same rate
 * for both. */
static enum topt_dtype rated_as(const struct topt_hw *hw, enum topt_dtype t)
{
    if (hw->flops[t] > 0)
        return t;
    if (t == TOPT_F8_BLOCK)
        return hw->flops[TOPT_MXF8] > 0 ? TOPT_MXF8 : TOPT_F8;
    return t == TOPT_F16 ? TOPT_BF16 : t;
}

int topt_hw_has_dtype(const struct topt_hw *hw, enum topt_dtype t)
{
    return (unsigned)t < TOPT_DTYPE_COUNT && hw->flops[rated_as(hw, t)] > 0;
}

double topt_hw_peak(const struct topt_hw *hw, enum topt_dtype t)
{
    return (unsigned)t < TOPT_DTYPE_COUNT ? hw->flops[t] : 0;
}

double topt_hw_peak_taken(const struct topt_hw *hw, enum topt_dtype t)
{
    return topt_hw_has_dtype(hw, t) ? hw->flops[rated_as(hw, t)] : 0;
}

double topt_hw_network(const struct topt_hw *hw)
{
    return hw->cluster.any.otherwise;
}

double topt_hw_bus(const struct topt_hw *hw)
{
    return hw->node.any.otherwise;
}

int topt_hw_groups(const struct topt_hw *hw)
{
    return hw->ngroups;
}

const struct topt_hw *topt_hw_group(const struct topt_hw *hw, int i)
{
    return hw->ngroups ? hw->group[i] : hw;
}

int topt_hw_group_devices(const struct topt_hw *hw, int i)
{
    const struct topt_hw *g = topt_hw_group(hw, i);
    return g->meant ? g->meant : g->nodes * g->per_node;
}

/* ---- times ------------------------------------------------------------------------- */

static int64_t round_up(double ns)
{
    if (!(ns > 0))
        return 0;
    return ns < MAX_NS ? (int64_t)ceil(ns) : (int64_t)MAX_NS;
}

/* A profile without the type is priced as if it computed in f32. */
static double peak_of(const struct topt_hw *hw, enum topt_dtype t)
{
    double peak =
        topt_hw_has_dtype(hw, t) ? hw->flops[rated_as(hw, t)] : hw->flops[TOPT_F32];
    if (peak > 0)
        return peak;
    return hw->flops[TOPT_BF16] > 0 ? hw->flops[TOPT_BF16] : hw->flops[TOPT_F64];
}

/* What a kernel that takes 'busy' alone takes where more devices run than there are cores. */
static double among(const struct topt_hw *hw, double busy, int devices)
{
    return hw->shared_cores && devices > hw->shared_cores
               ? busy * (double)devices / (double)hw->shared_cores
               : busy;
}

/* A kernel that computes for so many nanoseconds, if memory is fast enough. */
static int64_t kernel_ns(const struct topt_hw *hw, double compute, int64_t bytes,
                         int devices)
{
    double memory = (double)bytes * 1e9 / hw->memory_bandwidth;
    double busy = compute > memory ? compute : memory;
    return round_up(among(hw, busy, devices) + hw->launch_ns);
}

/* Does a kernel's time rest on published rates?  Not where memory or its launch decide. */
static enum topt_basis kernel_basis(const struct topt_hw *hw, int published,
                                    double compute, int64_t bytes)
{
    double memory = (double)bytes * 1e9 / hw->memory_bandwidth;
    return published && hw->kernels == TOPT_BASIS_ANALYTIC && compute > memory &&
                   compute > hw->launch_ns
               ? TOPT_BASIS_PUBLISHED
               : hw->kernels;
}

static double computing_ns(const struct topt_hw *hw, enum topt_dtype t, enum topt_work w,
                           int64_t flops)
{
    const struct curve *by_size = &hw->by_size[w][rated_as(hw, t)];
    if (by_size->npoints && flops > 0)
        return on_curve(by_size, (double)flops);
    return (double)flops * 1e9 / (peak_of(hw, t) * hw->efficiency[w]);
}

int64_t topt_hw_compute_ns(const struct topt_hw *hw, enum topt_dtype t, enum topt_work w,
                           int64_t flops, int64_t bytes, int devices)
{
    return kernel_ns(hw, computing_ns(hw, t, w, flops), bytes, devices);
}

int topt_hw_has_gpus(const struct topt_hw *hw)
{
    return !hw->shared_cores;
}

/* Attention as runtime/cuda/attention.c runs it where its one kernel does not take it: a block of queries of one head
 * at a time, whose scores pass through memory in f32: written by a product and read by the softmax, whose result is
 * half as large in bf16; backward makes them again, and as many gradients. */
static int64_t by_blocks_ns(const struct topt_hw *hw, enum topt_dtype t,
                            const struct topt_attention_run *run, int64_t flops,
                            int devices)
{
    enum { QUERIES = 64, FORWARD = 4, BACKWARD = 10 };
    static const double MOVED[] = {12, 28};
    double products = run->backward ? 5 : 2, length = (double)run->length;
    double pairs = (double)flops / (2 * products * (double)run->head);
    double queries = pairs * (run->causal ? 2 : 1) / (length > 1 ? length : 1);
    double launches = queries / QUERIES * (run->backward ? BACKWARD : FORWARD);
    int64_t ns = topt_hw_product(hw, t, flops, (int64_t)pairs, 0, devices).ns;
    double moved = MOVED[run->backward != 0] * pairs * 1e9 / hw->memory_bandwidth;
    return ns + round_up(moved + launches * hw->launch_ns);
}

/* By the rates that are measured of it, or assumed. */
static struct topt_time own_attention(const struct topt_hw *hw, enum topt_dtype t,
                                      const struct topt_attention_run *run, int64_t flops,
                                      int64_t bytes, int devices)
{
    if (hw->kernels != TOPT_BASIS_ANALYTIC)
        return topt_hw_compute(hw, t, TOPT_WORK_ATTENTION, flops, bytes, devices);
    double share = topt_attention_own_share(hw->attention, rated_as(hw, t), run,
                                            hw->efficiency[TOPT_WORK_ATTENTION]);
    double compute = share > 0 ? (double)flops * 1e9 / (peak_of(hw, t) * share) : 0;
    return (struct topt_time){share > 0 ? kernel_ns(hw, compute, bytes, devices)
                                        : by_blocks_ns(hw, t, run, flops, devices),
                              TOPT_BASIS_ANALYTIC};
}

struct topt_time topt_hw_attention(const struct topt_hw *hw, enum topt_dtype t,
                                   const struct topt_attention_run *run, int64_t flops,
                                   int64_t bytes, int devices)
{
    double share = topt_attention_share(hw->attention, rated_as(hw, t), run);
    if (!(share > 0) && run->kernel == TOPT_ATTENTION_OWN)
        return own_attention(hw, t, run, flops, bytes, devices);
    if (!(share > 0))
        return topt_hw_compute(hw, t, TOPT_WORK_ATTENTION, flops, bytes, devices);
    double compute = (double)flops * 1e9 / (peak_of(hw, t) * share);
    return (struct topt_time){kernel_ns(hw, compute, bytes, devices),
                              kernel_basis(hw, 1, compute, bytes)};
}

int topt_hw_clocks_kernels(const struct topt_hw *hw)
{
    return topt_kernel_times_any(hw->times);
}

struct topt_time topt_hw_kernel(const struct topt_hw *hw, enum topt_dtype t,
                                const struct topt_kernel_run *run, int devices)
{
    double ns = topt_kernel_times_ns(hw->times, t, run);
    return (struct topt_time){round_up(among(hw, ns, devices)), hw->kernels};
}

struct topt_time topt_hw_sweep(const struct topt_hw *hw, enum topt_dtype t,
                               enum topt_sweep p, const char *of, int64_t bytes,
                               int devices)
{
    double ns = bytes > 0 ? topt_sweep_times_ns(hw->times, t, p, of, bytes) : 0;
    return ns > 0 ? (struct topt_time){round_up(among(hw, ns, devices)), hw->kernels}
                  : topt_hw_compute(hw, t, TOPT_WORK_ELEMENTWISE, 0, bytes, devices);
}

double topt_hw_product_share(const struct topt_hw *hw, enum topt_dtype t)
{
    return hw->products[t].share;
}

struct topt_time topt_hw_product(const struct topt_hw *hw, enum topt_dtype t,
                                 int64_t flops, int64_t outputs, int64_t bytes,
                                 int devices)
{
    const struct topt_product_rate *rate = &hw->products[rated_as(hw, t)];
    if (!(rate->share > 0) || flops <= 0 || outputs <= 0)
        return topt_hw_compute(hw, t, TOPT_WORK_MATMUL, flops, bytes, devices);
    double operations = topt_product_operations(rate, (double)flops, (double)outputs);
    double compute = operations * 1e9 / peak_of(hw, t);
    return (struct topt_time){kernel_ns(hw, compute, bytes, devices),
                              kernel_basis(hw, 1, compute, bytes)};
}

struct topt_time topt_hw_compute(const struct topt_hw *hw, enum topt_dtype t,
                                 enum topt_work w, int64_t flops, int64_t bytes,
                                 int devices)
{
    double compute = computing_ns(hw, t, w, flops);
    return (struct topt_time){
        kernel_ns(hw, compute, bytes, devices),
        kernel_basis(hw, hw->by_size[w][t].npoints > 0, compute, bytes)};
}

static double rate_for(const struct rates *r, int members)
{
    double rate = r->n ? r->rate[0] : r->otherwise;
    for (int i = 0; i < r->n && r->size[i] <= members; i++)
        rate = r->rate[i];
    return rate;
}

static int log2_up(int n)
{
    int k = 0;
    while (n > 1 << k)
        k++;
    return k;
}

/* A way to do a collective, by the two-level model.  For one byte of the collective: bytes through a
 * member's link of the node, and through a node's network for one group; and steps that wait for one
 * another.  'switched': the node's rate is that of all-reduce, which its switch may speed up. */
struct way {
    double local, net;
    int local_steps, net_steps, switched;
};

enum { MAX_WAYS = 2 };

/* The share of a node's network interfaces that its devices in use have: those next to one of them. */
static double net_share(const struct topt_hw *hw, struct topt_group g)
{
    int ports = (int)hw->cluster.ports, used = g.per_node * g.siblings;
    if (!ports || used >= hw->per_node)
        return 1;
    if (ports > hw->per_node)
        return (double)used / hw->per_node;
    return ceil((double)used * ports / hw->per_node) / ports;
}

/* Halves of an all-reduce over N nodes of m members as m rings of all Nm, in each of which another
 * member of a node sends to the next node; and the whole also as two trees of nodes, each for half of
 * the bytes: a node sends to its parent and to two children, of two nodes each to the other alone.
 * Inside a node a ring's share is taken as that of a node alone, since 1/Nm of it hardly counts. */
static int rings_and_trees(enum topt_collective c, struct topt_group g, struct way *ret)
{
    int twice = c == TOPT_ALL_REDUCE ? 2 : 1, all = g.nodes * g.per_node;
    double inside = twice * (g.per_node - 1.0) / g.per_node;
    ret[0] = (struct way){inside, twice * (all - 1.0) / all, twice * (all - g.nodes),
                          twice * (g.nodes - 1), 0};
    ret[1] = (struct way){inside, g.nodes == 2 ? 1 : 2, 2 * (g.per_node - 1),
                          2 * log2_up(g.nodes), 1};
    return twice;
}

/* One stage after the other, each within its level: rings inside a node, a tree between nodes for
 * all-reduce and a ring for its halves.  The messages of an all-to-all overlap. */
static struct way in_stages(enum topt_collective c, struct topt_group g)
{
    double m = g.per_node, n = g.nodes;
    int twice = c == TOPT_ALL_REDUCE ? 2 : 1;
    if (c == TOPT_ALL_TO_ALL)
        return (struct way){(m - 1) / (m * n), m * (n - 1) / n, log2_up(g.per_node),
                            log2_up(g.nodes), 0};
    if (c == TOPT_PERMUTE)
        return (struct way){m > 1 ? 1 : 0, n > 1 ? m : 0, g.nodes == 1, g.nodes > 1, 0};
    return (struct way){twice * (m - 1) / m, twice * (n - 1) / n,
                        twice * (g.per_node - 1),
                        twice > 1 ? 2 * log2_up(g.nodes) : g.nodes - 1, twice > 1};
}

static int ways_of(const struct topt_hw *hw, enum topt_collective c, struct topt_group g,
                   struct way ret[MAX_WAYS])
{
    int halves = c != TOPT_ALL_TO_ALL && c != TOPT_PERMUTE;
    if (hw->cluster.pipelined && g.nodes > 1 && halves)
        return rings_and_trees(c, g, ret);
    ret[0] = in_stages(c, g);
    return 1;
}

/* Bytes per second of one group through a node's network.  A device sends no faster through it than
 * to its neighbours. */
static double net_rate(const struct topt_hw *hw, struct topt_group g)
{
    double rate = hw->cluster.any.otherwise * net_share(hw, g) / g.siblings;
    double device = hw->cluster.device_rate,
           link = hw->node.present ? rate_for(&hw->node.any, 2) : 0;
    if (link > 0 && (!(device > 0) || device > link))
        device = link;
    double devices = g.per_node * device;
    return devices > 0 && rate > devices ? devices : rate;
}

/* Nanoseconds a byte through the node's link; 0 for one member. */
static double local_per_byte(const struct topt_hw *hw, struct topt_group g, int switched)
{
    if (g.per_node < 2)
        return 0;
    double rate = rate_for(switched ? &hw->node.all_reduce : &hw->node.any, g.per_node);
    if (hw->node.shared)
        rate = rate / ((double)g.per_node * g.siblings);
    return 1e9 / rate;
}

/* Do stages overlap, so that the longer one counts? */
static int overlaps(const struct topt_hw *hw, enum topt_collective c)
{
    return hw->cluster.pipelined || c == TOPT_PERMUTE;
}

/* A time as latency + bytes * per_byte. */
struct line {
    double latency_ns, ns_per_byte;
};

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static struct line line_of(const struct topt_hw *hw, enum topt_collective c,
                           struct topt_group g, const struct way *w)
{
    double local = w->local * local_per_byte(hw, g, w->switched);
    double net = g.nodes > 1 ? w->net * 1e9 / net_rate(hw, g) : 0;
    return (struct line){hw->collective_launch_ns + w->local_steps * hw->node.latency_ns +
                             w->net_steps * hw->cluster.latency_ns,
                         overlaps(hw, c) ? larger(local, net) : local + net};
}

/* A collective by the two-level model: it takes the quickest way, by its size.  'best': the lowest
 * latency of any and the least time a byte. */
struct model {
    int n;
    struct line way[MAX_WAYS], best;
};

static struct model two_level(const struct topt_hw *hw, enum topt_collective c,
                              struct topt_group g)
{
    struct way w[MAX_WAYS];
    struct model m = {.n = ways_of(hw, c, g, w)};
    for (int i = 0; i < m.n; i++) {
        struct line l = m.way[i] = line_of(hw, c, g, &w[i]);
        if (i) {
            l.latency_ns = smaller(l.latency_ns, m.best.latency_ns);
            l.ns_per_byte = smaller(l.ns_per_byte, m.best.ns_per_byte);
        }
        m.best = l;
    }
    return m;
}

static double model_ns(const struct model *m, double bytes)
{
    double ns = m->way[0].latency_ns + m->way[0].ns_per_byte * bytes;
    for (int i = 1; i < m->n; i++)
        ns = smaller(ns, m->way[i].latency_ns + m->way[i].ns_per_byte * bytes);
    return ns;
}

enum { FAR = 1 << 20 };

/* How badly the curve of one collective stands for another, FAR where it can't. */
static int kind_distance(enum topt_collective have, enum topt_collective want)
{
    if (have == want)
        return 0;
    if (have == TOPT_PERMUTE)
        return FAR;
    if (have == TOPT_ALL_TO_ALL)
        return FAR;
    if (want == TOPT_ALL_TO_ALL)
        return have == TOPT_ALL_REDUCE ? 64 : 56;
    return have == TOPT_ALL_REDUCE || want == TOPT_ALL_REDUCE ? 32 : 8;
}

static int apart(int a, int b)
{
    int d = log2_up(a) - log2_up(b);
    return (d < 0 ? -d : d) + (a != b);
}

static int distance(const struct curve *c, enum topt_collective kind, struct topt_group g)
{
    int across = g.nodes > 1;
    if ((c->group.nodes > 1) != across ||
        (kind == TOPT_PERMUTE && c->kind != TOPT_PERMUTE))
        return FAR;
    return kind_distance(c->kind, kind) + 2 * apart(c->group.per_node, g.per_node) +
           2 * apart(c->group.nodes, g.nodes) + apart(c->group.siblings, g.siblings);
}

/* The nearest curve, the first of equals; NULL where none can stand for the group. */
static const struct curve *nearest(const struct topt_hw *hw, enum topt_collective kind,
                                   struct topt_group g)
{
    const struct curve *best = NULL;
    int least = FAR;
    for (int i = 0; i < hw->ncurves && least; i++) {
        int d = distance(&hw->curve[i], kind, g);
        if (d < least) {
            least = d;
            best = &hw->curve[i];
        }
    }
    return best;
}

/* The time of one stage by its bytes: from the curves of a smaller and of a larger group, from the
 * nearest curve moved to the group, or by the model alone. */
struct stage {
    const struct curve *curve;
    int own;                       /* the curve is the group's */
    const struct curve *beside[2]; /* with fewer and more members; NULL: not both */
    double members;
    struct model model; /* without a curve */
    /* of a curve: bytes that take as long there, and what comes on top */
    double same, more;
    double least;
};

/* Find the curves of the same collective over as many nodes, of fewer and of more members each. */
static void find_beside(const struct topt_hw *hw, enum topt_collective c,
                        struct topt_group g, const struct curve *ret[2])
{
    for (int i = 0; i < hw->ncurves; i++) {
        const struct curve *x = &hw->curve[i];
        int of = x->group.per_node, more = of > g.per_node;
        const struct curve *best = ret[more];
        if (x->kind != c || x->group.nodes != g.nodes || of == g.per_node)
            continue;
        if (!best || (more ? of < best->group.per_node : of > best->group.per_node))
            ret[more] = x;
    }
    if (!ret[0] || !ret[1])
        ret[0] = ret[1] = NULL;
}

static struct stage stage_of(const struct topt_hw *hw, enum topt_collective c,
                             struct topt_group g)
{
    struct stage s = {.curve = nearest(hw, c, g), .members = g.per_node};
    s.own = s.curve && s.curve->kind == c && same_group(s.curve->group, g);
    if (s.own)
        return s;
    s.model = two_level(hw, c, g);
    if (!s.curve)
        return s;
    if (s.curve->kind == c && s.curve->group.per_node != g.per_node && c != TOPT_PERMUTE)
        find_beside(hw, c, g, s.beside);
    struct model measured = two_level(hw, s.curve->kind, s.curve->group);
    s.same = s.model.best.ns_per_byte / measured.best.ns_per_byte;
    s.more = s.model.best.latency_ns - measured.best.latency_ns;
    /* Where the curve's floor is below the model's latencies, it can't go under a
     * launch. */
    s.least = hw->collective_launch_ns;
    return s;
}

/* On the straight line over members between two curves, at as many bytes a member. */
static double between_ns(const struct stage *s, double bytes)
{
    double of[2], ns[2], each = bytes / s->members;
    for (int i = 0; i < 2; i++) {
        of[i] = s->beside[i]->group.per_node;
        ns[i] = on_curve(s->beside[i], each * of[i]);
    }
    return ns[0] + (ns[1] - ns[0]) * ((s->members - of[0]) / (of[1] - of[0]));
}

static double stage_ns(const struct stage *s, double bytes)
{
    if (!s->curve)
        return model_ns(&s->model, bytes);
    if (s->own)
        return on_curve(s->curve, bytes);
    if (s->beside[0])
        return between_ns(s, bytes);
    double ns = on_curve(s->curve, bytes * s->same) + s->more;
    return ns > s->least ? ns : s->least;
}

/* The time of a collective by its bytes.  Over nodes without a curve each way takes a stage inside
 * the nodes, which may be measured, and one between them. */
struct schedule {
    const struct curve *curve; /* the nearest to the whole group */
    struct stage stage;        /* all of it, or what is inside the nodes */
    int crosses, adds, n;
    double part[MAX_WAYS], net[MAX_WAYS], wait[MAX_WAYS], launch;
};

/* Set what a way takes beside the stage inside the nodes: of how many of its bytes that stage is,
 * the time a byte of the network, and the latency of steps. */
static void set_crossing(struct schedule *s, int i, const struct topt_hw *hw,
                         struct topt_group g, const struct way *inside,
                         const struct way *w)
{
    double net = w->net * 1e9 / net_rate(hw, g);
    /* a ring, which has the rate of rings in the node, too */
    if (!s->adds && !w->switched)
        net = larger(net, w->local * local_per_byte(hw, g, 0));
    s->part[i] = w->local / inside->local;
    s->net[i] = net;
    int more = w->local_steps - inside->local_steps;
    s->wait[i] = (more > 0 ? more : 0) * hw->node.latency_ns +
                 w->net_steps * hw->cluster.latency_ns;
}

static struct schedule schedule_of(const struct topt_hw *hw, enum topt_collective c,
                                   struct topt_group g)
{
    struct topt_group inside = {1, g.per_node, g.siblings};
    struct schedule s = {.curve = nearest(hw, c, g)};
    struct way w[MAX_WAYS], local = in_stages(c, inside);
    s.crosses = g.nodes > 1 && g.per_node > 1 && !s.curve && nearest(hw, c, inside);
    s.stage = stage_of(hw, c, s.crosses ? inside : g);
    if (!s.crosses)
        return s;
    s.launch = hw->collective_launch_ns;
    s.adds = !overlaps(hw, c);
    s.n = ways_of(hw, c, g, w);
    for (int i = 0; i < s.n; i++)
        set_crossing(&s, i, hw, g, &local, &w[i]);
    return s;
}

static double schedule_ns(const struct schedule *s, double bytes)
{
    if (!s->crosses)
        return stage_ns(&s->stage, bytes);
    double least = 0;
    for (int i = 0; i < s->n; i++) {
        double local = stage_ns(&s->stage, bytes * s->part[i]);
        double cross = s->net[i] * bytes;
        double ns =
            s->adds ? larger(local, s->launch) + cross : larger(local, cross + s->launch);
        ns = ns + s->wait[i];
        least = i ? smaller(least, ns) : ns;
    }
    return least;
}

static enum topt_basis basis_of(const struct curve *curve, enum topt_collective c,
                                struct topt_group g, double bytes)
{
    if (!curve)
        return TOPT_BASIS_ANALYTIC;
    for (int i = 0; curve->kind == c && same_group(curve->group, g) && i < curve->npoints;
         i++)
        if (curve->bytes[i] >= bytes)
            return curve->bytes[i] > bytes ? TOPT_BASIS_INTERPOLATED
                                           : TOPT_BASIS_MEASURED;
    return TOPT_BASIS_SCALED;
}

static int moves_nothing(struct topt_group g, int64_t bytes)
{
    return (int64_t)g.nodes * g.per_node <= 1 || bytes <= 0;
}

/* The time of a group over nodes, and that of as many of its members as one node holds, below which
 * the first never falls, whatever curves say. */
struct price {
    int across;
    struct schedule own, together;
};

static struct price price_of(const struct topt_hw *hw, enum topt_collective c,
                             struct topt_group g)
{
    int members = g.nodes * g.per_node;
    struct topt_group one = {1, members < hw->per_node ? members : hw->per_node, 1};
    int room = hw->per_node / one.per_node;
    struct price p = {.own = schedule_of(hw, c, g)};
    p.across = g.nodes > 1 && one.per_node > 1;
    one.siblings = g.siblings < room ? g.siblings : room;
    if (p.across)
        p.together = schedule_of(hw, c, one);
    return p;
}

static int64_t price_ns(const struct price *p, double bytes)
{
    double ns = schedule_ns(&p->own, bytes);
    return round_up(p->across ? larger(ns, schedule_ns(&p->together, bytes)) : ns);
}

struct topt_time topt_hw_collective(const struct topt_hw *hw, enum topt_collective c,
                                    struct topt_group g, int64_t bytes)
{
    if (moves_nothing(g, bytes))
        return (struct topt_time){0, TOPT_BASIS_MEASURED};
    struct price p = price_of(hw, c, g);
    return (struct topt_time){price_ns(&p, (double)bytes),
                              basis_of(p.own.curve, c, g, (double)bytes)};
}

int64_t topt_hw_between_ns(const struct topt_hw *hw, int64_t bytes, int steps)
{
    if (!hw->ngroups || bytes <= 0)
        return 0;
    return round_up((double)bytes * 1e9 / hw->between_rate +
                    steps * hw->between_latency_ns);
}

int64_t topt_hw_collective_ns(const struct topt_hw *hw, enum topt_collective c,
                              struct topt_group g, int64_t bytes)
{
    return topt_hw_collective(hw, c, g, bytes).ns;
}

void topt_hw_collective_all(const struct topt_hw *hw, enum topt_collective c,
                            struct topt_group g, const int64_t *bytes, int n,
                            int64_t *ret_ns)
{
    struct price p = price_of(hw, c, g);
    for (int i = 0; i < n; i++)
        ret_ns[i] = moves_nothing(g, bytes[i]) ? 0 : price_ns(&p, (double)bytes[i]);
}

/* ---- what 'topt hw check' tells ---------------------------------------------------- */

const char *topt_hw_basis(const struct topt_hw *hw, enum topt_collective c,
                          struct topt_group g, char *buf, size_t size)
{
    const struct curve *curve = nearest(hw, c, g);
    struct topt_group inside = {1, g.per_node, g.siblings};
    int staged = g.nodes > 1 && g.per_node > 1 && nearest(hw, c, inside);
    if (!curve)
        snprintf(buf, size, staged ? "two-level+curve" : "two-level");
    else if (curve->kind == c && same_group(curve->group, g))
        snprintf(buf, size, "measured");
    else
        snprintf(buf, size, "%s %dx%d", topt_collective_name(curve->kind),
                 curve->group.nodes, curve->group.per_node);
    return buf;
}

int topt_hw_curve_check(const struct topt_hw *hw, int i, struct topt_hw_curve_check *ret)
{
    if (i < 0 || i >= hw->ncurves)
        return 0;
    const struct curve *c = &hw->curve[i];
    double rate = two_level(hw, c->kind, c->group).best.ns_per_byte;
    int small = 0;
    *ret = (struct topt_hw_curve_check){c->kind, c->group, c->npoints, c->lowered, 0, 0};
    while (small < c->npoints && c->bytes[small] < 1 << 20)
        small++;
    for (int k = 0; k < small; k++)
        ret->rate_error += fabs(rate * c->bytes[k] - c->ns[k]) / c->ns[k] / small;
    for (int k = 1; k + 1 < c->npoints; k++) {
        double share =
            (c->bytes[k] - c->bytes[k - 1]) / (c->bytes[k + 1] - c->bytes[k - 1]);
        double ns = c->ns[k - 1] + (c->ns[k + 1] - c->ns[k - 1]) * share;
        ret->mean_error += fabs(ns - c->ns[k]) / c->ns[k] / (c->npoints - 2);
    }
    return 1;
}
