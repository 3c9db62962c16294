/* hw_check.c - what a careful reader would remark on a profile: what can't well be so,
 * and what was not measured.
 *
 * It reads the document and asks for prices as anybody would.  Remarks are sentences;
 * none of them makes a profile unusable, since clusters are strange. */
#include "hw_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void remark(json_t *list, const char *fmt, ...) TOPT_PRINTF(2, 3);

static void remark(json_t *list, const char *fmt, ...)
{
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_array_append_new(list, json_string(text));
}

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static const json_t *device_of(const json_t *doc)
{
    return json_object_get(doc, "device");
}

/* ---- a device ---------------------------------------------------------------------- */

static void check_shares(const json_t *device, json_t *list)
{
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach(json_object_get(device, "efficiency"), key, value)
    {
        if (json_number_value(value) > 1)
            remark(list,
                   "device.efficiency.%s is %g: more than the peak; is flops or "
                   "memory_bandwidth too low?",
                   key, json_number_value(value));
    }
    json_object_foreach(json_object_get(device, "matmul_by_size"), key, value)
    {
        const json_t *pair;
        json_array_foreach(value, i, pair)
        {
            if (json_number_value(json_array_get(pair, 1)) > 1)
                remark(list, "device.matmul_by_size.%s[%zu] is more than the peak", key,
                       i);
        }
    }
}

static void check_device(const json_t *doc, json_t *list)
{
    const json_t *d = device_of(doc), *flops = json_object_get(d, "flops");
    double f32 = number(flops, "f32"), f64 = number(flops, "f64"),
           bf16 = number(flops, "bf16");
    check_shares(d, list);
    if (f64 > f32 && f32 > 0)
        remark(list, "device.flops: f64 is faster than f32");
    if (bf16 > 0 && bf16 < f32)
        remark(list, "device.flops: bf16 is slower than f32");
    if (number(d, "launch_ns") > 1e5)
        remark(list, "device.launch_ns: kernel launch takes %.3g us",
               number(d, "launch_ns") / 1e3);
    if (number(d, "reserve_bytes") > 0.5 * number(d, "memory_bytes"))
        remark(list, "device.reserve_bytes is more than half of the memory");
}

/* ---- links and curves -------------------------------------------------------------- */

/* Bytes that a member of a ring sends for one byte of the collective. */
static double sent(const char *collective, double members)
{
    double share = members > 1 ? (members - 1) / members : 0;
    if (!strcmp(collective, "all_reduce"))
        return 2 * share;
    return strcmp(collective, "permute") ? share : 1;
}

static void check_links(const json_t *doc, json_t *list)
{
    const json_t *node = topt_hw_link(doc, "node"),
                 *cluster = topt_hw_link(doc, "cluster");
    double in = number(node, "bytes_per_second"),
           out = number(cluster, "bytes_per_second");
    double per_node = number(doc, "gpus_per_node");
    if (node && json_is_true(json_object_get(node, "shared")))
        in /= per_node > 0 ? per_node : 1;
    if (node && cluster && out > in * per_node)
        remark(list,
               "links: the network of a node, %.4g GB/s, is faster than all that its "
               "devices send inside it, %.4g GB/s",
               out / 1e9, in * per_node / 1e9);
    if (number(cluster, "device_bytes_per_second") > out && out > 0)
        remark(list, "links: one device is faster than its whole node");
    if (node && cluster && number(node, "latency_ns") > number(cluster, "latency_ns"))
        remark(list, "links: a step inside a node waits longer than one between nodes");
}

/* Points that are slower than one of more bytes, and by how much at worst. */
static void check_rising(const char *name, const json_t *points, json_t *list)
{
    double least = INFINITY, worst = 1, at = 0;
    int bad = 0;
    for (size_t i = json_array_size(points); i-- > 0;) {
        const json_t *p = json_array_get(points, i);
        double ns = json_number_value(json_array_get(p, 1));
        bad += ns > least;
        if (ns / least > worst) {
            worst = ns / least;
            at = json_number_value(json_array_get(p, 0));
        }
        least = ns < least ? ns : least;
    }
    if (worst > 1.25)
        remark(list,
               "%s: %d of %zu points are slower than one of more bytes, by a factor of "
               "%.2f at %.0f bytes: measure again on an idle cluster",
               name, bad, json_array_size(points), worst, at);
}

/* Is the rate of the last point more than the link allows? */
static void check_rate(const char *name, const json_t *doc, const json_t *c, json_t *list)
{
    const char *kind = json_string_value(json_object_get(c, "collective"));
    const json_t *points = json_object_get(c, "points");
    const json_t *last = json_array_get(points, json_array_size(points) - 1);
    double nodes = number(c, "nodes"), m = number(c, "per_node");
    double bytes = json_number_value(json_array_get(last, 0));
    double seconds = json_number_value(json_array_get(last, 1)) / 1e9;
    const json_t *link = topt_hw_link(doc, nodes > 1 ? "cluster" : "node");
    double may = number(link, "bytes_per_second"), is = 0;
    /* Rates may be listed by the size of the group. */
    const json_t *by = json_object_get(link, "all_reduce_by_group");
    if (!by || strcmp(kind, "all_reduce"))
        by = json_object_get(link, "by_group");
    for (size_t i = 0; i < json_array_size(by); i++)
        may = fmax(may, json_number_value(json_array_get(json_array_get(by, i), 1)));
    may = fmax(may, number(link, "all_reduce_bytes_per_second"));
    if (nodes > 1) /* what leaves a node, all of its groups together */
        is = sent(kind, nodes) * bytes / seconds * fmax(number(c, "siblings"), 1);
    else
        is = sent(kind, m) * bytes / seconds;
    if (link && is > 1.1 * may)
        remark(list,
               "%s: %.4g GB/s at %.0f bytes are more than the %.4g GB/s of the %s link",
               name, is / 1e9, bytes, may / 1e9, nodes > 1 ? "cluster" : "node");
}

static void check_range(const char *name, const json_t *points, json_t *list)
{
    size_t n = json_array_size(points);
    double first = json_number_value(json_array_get(json_array_get(points, 0), 0));
    double last = json_number_value(json_array_get(json_array_get(points, n - 1), 0));
    if (first > 1 << 20)
        remark(list, "%s begins at %.0f bytes: smaller ones are priced like that", name,
               first);
    if (last < 1 << 20)
        remark(list, "%s ends at %.0f bytes: larger ones go on at its rate", name, last);
}

static void check_curves(const json_t *doc, json_t *list)
{
    size_t i;
    json_t *c;
    char name[96];
    json_array_foreach(json_object_get(doc, "curves"), i, c)
    {
        const json_t *points = json_object_get(c, "points");
        snprintf(name, sizeof name, "curves[%zu] (%s %dx%d)", i,
                 json_string_value(json_object_get(c, "collective")),
                 (int)number(c, "nodes"), (int)number(c, "per_node"));
        check_rising(name, points, list);
        check_rate(name, doc, c, list);
        check_range(name, points, list);
    }
}

/* ---- prices ------------------------------------------------------------------------ */

/* A half of an all-reduce costs more than the whole: one of both curves is wrong. */
static void check_halves(const struct topt_hw *hw, json_t *list)
{
    static const enum topt_collective half[] = {TOPT_ALL_GATHER, TOPT_REDUCE_SCATTER};
    int per_node = topt_hw_gpus_per_node(hw), nodes = topt_hw_max_nodes(hw);
    const struct topt_group group[] = {{1, per_node, 1},
                                       {nodes > 1 ? 2 : 1, per_node, 1}};
    for (int g = 0; g < (nodes > 1 ? 2 : 1); g++)
        for (int h = 0; h < 2; h++)
            for (int k = 20; k <= 30; k += 5) {
                int64_t bytes = (int64_t)1 << k;
                int64_t a = topt_hw_collective_ns(hw, half[h], group[g], bytes);
                int64_t b = topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group[g], bytes);
                if ((double)a > 1.1 * (double)b)
                    remark(list,
                           "%s over %d node%s of %d takes %.2f times an all_reduce of "
                           "the same %lld bytes",
                           topt_collective_name(half[h]), group[g].nodes,
                           group[g].nodes > 1 ? "s" : "", per_node, (double)a / (double)b,
                           (long long)bytes);
            }
}

json_t *topt_hw_warnings(const struct topt_hw *hw)
{
    json_t *list = json_array(), *doc = topt_hw_to_json(hw);
    check_device(doc, list);
    check_links(doc, list);
    check_curves(doc, list);
    check_halves(hw, list);
    json_decref(doc);
    return list;
}

/* ---- what was not measured ------------------------------------------------------ */

/* Collectives without a curve of their own, inside a node or between nodes. */
static void missing_curves(const json_t *doc, int across, json_t *list)
{
    char names[128] = "";
    size_t i, n = 0;
    json_t *c;
    for (int k = 0; k < TOPT_COLLECTIVE_COUNT; k++) {
        const char *name = topt_collective_name((enum topt_collective)k);
        int has = 0;
        json_array_foreach(json_object_get(doc, "curves"), i, c)
        {
            const char *kind = json_string_value(json_object_get(c, "collective"));
            has |= (number(c, "nodes") > 1) == across && kind && !strcmp(kind, name);
        }
        if (!has)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "",
                                  name);
    }
    if (n)
        remark(list, "%s: no curve of %s", across ? "between nodes" : "inside a node",
               names);
}

json_t *topt_hw_missing(const struct topt_hw *hw)
{
    json_t *list = json_array(), *doc = topt_hw_to_json(hw);
    const json_t *d = device_of(doc), *sizes = json_object_get(d, "matmul_by_size");
    for (int t = 0; t < TOPT_DTYPE_COUNT; t++) {
        const char *name = topt_dtype_name((enum topt_dtype)t);
        if (topt_hw_peak(hw, (enum topt_dtype)t) > 0 && !json_object_get(sizes, name) &&
            !(topt_hw_product_share(hw, (enum topt_dtype)t) > 0))
            remark(list, "device: one efficiency for %s products of any size", name);
    }
    if (!json_object_get(d, "runtime_bytes"))
        remark(list,
               "device: what context and libraries take of the memory (runtime_bytes)");
    if (topt_hw_gpus_per_node(hw) > 1)
        missing_curves(doc, 0, list);
    if (topt_hw_max_nodes(hw) > 1)
        missing_curves(doc, 1, list);
    json_decref(doc);
    return list;
}

/* Is a collective of groups inside a node, or over several, measured? */
static int has_curve(const json_t *doc, int across)
{
    size_t i;
    json_t *c;
    json_array_foreach(json_object_get(doc, "curves"), i, c)
    {
        if ((number(c, "nodes") > 1) == across)
            return 1;
    }
    return 0;
}

/* Is a figure assumed whose name begins so? */
static int assumes(const json_t *device, const char *begins)
{
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(device, "assumed"), i, name)
    {
        if (!strncmp(json_string_value(name), begins, strlen(begins)))
            return 1;
    }
    return 0;
}

json_t *topt_hw_lacks(const struct topt_hw *hw)
{
    json_t *list = json_array(), *doc = topt_hw_to_json(hw);
    const json_t *d = device_of(doc);
    int inside = topt_hw_gpus_per_node(hw) > 1 && !has_curve(doc, 0);
    int between = topt_hw_max_nodes(hw) > 1 && !has_curve(doc, 1);
    if (!topt_hw_has_dtype(hw, TOPT_BF16))
        remark(list, "bf16");
    if (assumes(d, "flops.") || assumes(d, "memory_b"))
        remark(list, "data sheet");
    if (!json_object_get(d, "matmul_by_size") && !json_object_get(d, "products"))
        remark(list, "products");
    if (!json_object_get(d, "attention"))
        remark(list, "attention");
    if (inside || between)
        remark(list, "collectives%s",
               inside && (between || topt_hw_max_nodes(hw) < 2) ? ""
               : inside                                         ? " inside a node"
                                                                : " between nodes");
    json_decref(doc);
    return list;
}
