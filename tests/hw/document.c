/* topt-hw/1: the two-level model against figures worked out by hand, curves for groups that
 * were not measured, and errors that name the place. */
#include <stdlib.h>
#include <string.h>

#include "hw_impl.h"
#include "tap.h"
#include "topt_hw_sweep.h"
#include "topt_json.h"

#define DEVICE                                                                           \
    "'device':{'name':'d','memory_bytes':1000,'reserve_bytes':100,'flops':{'f32':1e9},"  \
    "'efficiency':{'matmul':0.5,'attention':1,'elementwise':1},'memory_bandwidth':1e9,"  \
    "'launch_ns':10,'source':'s'}"
#define NODE "{'level':'node','bytes_per_second':1e9,'latency_ns':100,'source':'s'}"
#define CLUSTER                                                                          \
    "{'level':'cluster','bytes_per_second':5e8,'latency_ns':1000,'source':'s'}"
#define TOP "'format':'topt-hw/1','name':'t','nodes':4,'gpus_per_node':8"
#define CURVE(kind, m)                                                                   \
    "{'collective':'" kind "','nodes':1,'per_node':" m                                   \
    ",'points':[[1000,2000],[2000,3000],[4000,2500],[8000,9000]],'source':'s'}"
#define DOC(links, rest) "{" TOP "," DEVICE ",'links':[" links "]" rest "}"

static struct topt_hw *parse(const char *quoted, struct topt_error *err)
{
    char *text = strdup(quoted);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    json_t *doc = topt_json_parse(text, strlen(text), "test", err);
    struct topt_hw *hw = doc ? topt_hw_from_json(doc, err) : NULL;
    json_decref(doc);
    free(text);
    return hw;
}

static struct topt_group group(int nodes, int per_node, int siblings)
{
    return (struct topt_group){nodes, per_node, siblings};
}

/* Times of 400, 400 and 1600 ns at 1000, 2000 and 8000 operations, beside 10 of a launch;
 * the other kind of work takes 1010 ns for 1000. */
static void kernels_by_size(const char *kind, enum topt_work work, enum topt_work other)
{
    struct topt_error err = {0};
    static const char *const sizes[] = {"[[1000,2.5],[2000,5],[8000,5]]",
                                        "[[1000,1],[2000,4]]", "[[1000,1]]"};
    char where[40];
    snprintf(where, sizeof where, "%s_by_size.f32", kind);
    for (int i = 0; i < 3; i++) {
        char doc[1024];
        snprintf(doc, sizeof doc,
                 "{" TOP ",'device':{'name':'d','memory_bytes':1000,'flops':{'f32':1e9},"
                 "'efficiency':{'matmul':1,'attention':1,'elementwise':1},"
                 "'%s_by_size':{'f32':%s},'memory_bandwidth':1e9,'launch_ns':10,"
                 "'source':'s'},'links':[" NODE "," CLUSTER "]}",
                 kind, sizes[i]);
        struct topt_hw *hw = parse(doc, &err);
        if (i == 0 && ok(hw != NULL, "%s by size %s", kind, err.text)) {
            static const int64_t want[][2] = {
                {1, 410}, {1000, 410}, {2000, 410}, {5000, 1010}, {16000, 3210}};
            for (int k = 0; k < 5; k++)
                is_int(topt_hw_compute_ns(hw, TOPT_F32, work, want[k][0], 1, 1),
                       want[k][1], "%d operations", (int)want[k][0]);
            is_int(topt_hw_compute_ns(hw, TOPT_F32, other, 1000, 1, 1), 1010,
                   "other work goes by its efficiency");
        }
        ok(i == 0 || (!hw && strstr(err.text, where)), "%s", err.text);
        topt_hw_destroy(hw);
    }
}

static void two_level(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(DOC(NODE "," CLUSTER, ""), &err);
    if (!ok(hw != NULL, "a document without curves %s", err.text))
        return;
    is_int(topt_hw_memory_bytes(hw), 900, "memory less the reserve");
    is_int(topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_MATMUL, 1000, 1, 1), 2010,
           "compute");
    is_int(topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_MATMUL, 1, 3000, 1), 3010,
           "memory");
    /* In a node, S = 8000: 2 * 7/8 * 8000 = 14000 ns, and 14 steps of 100. */
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group(1, 8, 1), 8000), 15400,
           "all-reduce in a node");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_GATHER, group(1, 8, 1), 8000), 7700,
           "all-gather in a node");
    /* 4 nodes: + 2 * 3/4 * 8000 * 2 = 24000 ns, and 2 * 2 steps of 1000. */
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group(4, 8, 1), 8000), 43400,
           "all-reduce over nodes");
    is_int(topt_hw_collective_ns(hw, TOPT_REDUCE_SCATTER, group(4, 1, 8), 8000),
           96000 + 3000, "eight groups share the network");
    /* Each member sends 7/8 of its bytes, half of all over the network: 2 * 8000 * 2 / 2. */
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_TO_ALL, group(2, 2, 1), 8000),
           2000 + 16000 + 100 + 1000, "all-to-all");
    is_int(topt_hw_collective_ns(hw, TOPT_PERMUTE, group(1, 4, 2), 8000), 8100,
           "permute");
    is_int(topt_hw_collective_ns(hw, TOPT_PERMUTE, group(2, 1, 4), 8000), 65000,
           "permute over nodes");
    topt_hw_destroy(hw);
}

/* Between nodes a device sends at its own price, whatever is measured of other collectives there. */
static void sends(void)
{
    static const char *const kinds[] = {"all_reduce", "all_to_all", "permute"};
    for (int i = 0; i < 3; i++) {
        struct topt_error err = {0};
        char text[4096];
        snprintf(text, sizeof text,
                 DOC(NODE "," CLUSTER,
                     ",'curves':[{'collective':'%s','nodes':2,'per_node':1,"
                     "'points':[[1000,70000],[8000,90000]],'source':'s'}]"),
                 kinds[i]);
        struct topt_hw *hw = parse(text, &err);
        if (ok(hw != NULL, "a curve of %s between nodes %s", kinds[i], err.text))
            is_int(topt_hw_collective_ns(hw, TOPT_PERMUTE, group(2, 1, 1), 8000),
                   i == 2 ? 90000 : 16000 + 1000, "a send by %s",
                   i == 2 ? "its own curve" : "latency and rate");
        topt_hw_destroy(hw);
    }
}

/* 4 ports of 4e8 a node, each for two devices of 8, and rings and trees over both levels. */
#define PORTS                                                                            \
    "{'level':'cluster','bytes_per_second':1.6e9,'ports':4,'pipelined':true,"            \
    "'latency_ns':1000,'source':'s'}"
static void rings_and_trees(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(DOC(NODE "," PORTS, ""), &err);
    if (!ok(hw != NULL, "ports %s", err.text))
        return;
    /* 31/32 of 32000 bytes by all four ports, 28 steps inside and 3 between. */
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_GATHER, group(4, 8, 1), 32000),
           28000 + 28 * 100 + 3 * 1000, "a ring of 32: what is inside is faster");
    /* 7/8 inside at 1e9 where a port is no limit: 15/16 of 32000 at 1.6e9 is less. */
    is_int(topt_hw_collective_ns(hw, TOPT_REDUCE_SCATTER, group(2, 8, 1), 32000),
           28000 + 14 * 100 + 1000, "a ring of 16");
    /* A ring of 8 over two ports, half of the node's rate, and a tree of two nodes. */
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_GATHER, group(2, 4, 1), 32000),
           35000 + 6 * 100 + 1000, "half a node has half of the ports");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group(2, 8, 1), 32000),
           56000 + 14 * 100 + 2 * 1000, "two nodes: each sends to the other alone");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group(2, 4, 1), 32000),
           56000 + 14 * 100, "two halves of a node are no faster than the node");
    /* One device has a port; all eight have half a port each. */
    is_int(topt_hw_collective_ns(hw, TOPT_PERMUTE, group(2, 1, 1), 4000), 10000 + 1000,
           "one device, one port");
    is_int(topt_hw_collective_ns(hw, TOPT_PERMUTE, group(2, 1, 8), 4000), 20000 + 1000,
           "two devices to a port");
    /* 64 nodes: 512 bytes by trees in 12 steps, not by a ring in 126. */
    topt_hw_destroy(hw);
    hw = parse("{'format':'topt-hw/1','name':'t','nodes':64,'gpus_per_node':1," DEVICE
               ",'links':[" PORTS "]}",
               &err);
    if (!ok(hw != NULL, "nodes of one %s", err.text))
        return;
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group(64, 1, 1), 512), 640 + 12000,
           "few bytes by trees");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group(64, 1, 1), 1600000000),
           1968750000 + 126000, "many by a ring");
    topt_hw_destroy(hw);
}

/* An all-gather of three members, between the curves of two and of four: at 1000 bytes each 2000
 * and 4000. */
static void between_curves(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(
        DOC(NODE "," CLUSTER,
            ",'curves':[{'collective':'all_gather','nodes':1,'per_node':2,'points':"
            "[[2000,2000],[4000,9000]],'source':'s'},{'collective':'all_gather',"
            "'nodes':1,'per_node':4,'points':[[4000,4000],[8000,8000]],'source':'s'}]"),
        &err);
    struct topt_hw_curve_check check;
    if (!ok(hw != NULL, "two curves %s", err.text))
        return;
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_GATHER, group(1, 3, 1), 3000), 3000,
           "between two measured groups");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_GATHER, group(1, 2, 1), 4000), 8000,
           "a group is no slower than a larger one at as many bytes a member");
    ok(topt_hw_curve_check(hw, 0, &check) && check.lowered == 1, "which is counted");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_GATHER, group(3, 1, 1), 300), 3000 + 0,
           "nor one over nodes faster than in one node");
    topt_hw_destroy(hw);
}

static void bands(void)
{
    struct topt_error err = {0};
    int64_t low, high;
    struct topt_hw *hw = parse(DOC(NODE "," CLUSTER, ""), &err);
    topt_hw_runtime_bytes(hw, &low, &high);
    ok(low == 0 && high == 100, "the runtime may take the whole reserve");
    const struct topt_band *measured = &topt_hw_bands(hw)[TOPT_BASIS_MEASURED],
                           *analytic = &topt_hw_bands(hw)[TOPT_BASIS_ANALYTIC];
    ok(measured->above == 0.05 &&
           analytic->below + analytic->above > measured->below + measured->above,
       "bands where nothing is said");
    topt_hw_destroy(hw);
    hw = parse(DOC(NODE "," CLUSTER, ",'bands':{'analytic':0.5}"), &err);
    ok(hw && topt_hw_bands(hw)[TOPT_BASIS_ANALYTIC].below == 0.5 &&
           topt_hw_bands(hw)[TOPT_BASIS_INTERPOLATED].above == 0.1,
       "a band of its own %s", err.text);
    topt_hw_destroy(hw);
    hw = parse(DOC(NODE "," CLUSTER, ",'bands':{'guessed':0.5}"), &err);
    ok(!hw && strstr(err.text, "guessed"), "an unknown basis: %s", err.text);
}

#define RATED(rates)                                                                     \
    "{" TOP ",'device':{'name':'d','memory_bytes':1000,'flops':{'f32':1e9},"             \
    "'efficiency':{'matmul':1,'attention':1,'elementwise':1},'memory_bandwidth':1e9,"    \
    "'launch_ns':10" rates ",'source':'s'},'links':[" NODE "," CLUSTER "]}"

/* A time and what it rests on; 'rates' in two groups that do not agree. */
static void what_rates_rest_on(void)
{
    static const struct {
        const char *doc;
        enum topt_basis basis;
    } of[] = {{RATED(""), TOPT_BASIS_ANALYTIC},
              {RATED(",'rates':'data sheet'"), TOPT_BASIS_ANALYTIC},
              {RATED(",'rates':'measured'"), TOPT_BASIS_INTERPOLATED}};
    struct topt_error err = {0};
    for (int i = 0; i < 3; i++) {
        struct topt_hw *hw = parse(of[i].doc, &err);
        struct topt_time t = {0};
        if (hw)
            t = topt_hw_compute(hw, TOPT_F32, TOPT_WORK_MATMUL, 1000, 0, 1);
        ok(hw && t.ns == 1010 && t.basis == of[i].basis, "%s: %s %s", of[i].doc,
           topt_basis_name(t.basis), err.text);
        topt_hw_destroy(hw);
    }
    ok(!parse(RATED(",'rates':'guessed'"), &err) && strstr(err.text, "device.rates"),
       "rates of another kind: %s", err.text);
    ok(!parse(RATED(",'rates':1"), &err) && strstr(err.text, "device.rates"),
       "rates that are no words: %s", err.text);
}

static void curves(void)
{
    struct topt_error err = {0};
    struct topt_hw_curve_check check;
    char basis[64];
    struct topt_hw *hw =
        parse(DOC(NODE "," CLUSTER, ",'curves':[" CURVE("all_reduce", "8") "]"), &err);
    if (!ok(hw != NULL, "a document with a curve %s", err.text))
        return;
    struct topt_group whole = group(1, 8, 1);
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, whole, 2000), 2500,
           "a point slower than one of more bytes is lowered");
    ok(topt_hw_curve_check(hw, 0, &check) && check.lowered == 1 && check.points == 4,
       "and counted");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, whole, 6000), 5750,
           "between points");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, whole, 16000), 18000,
           "extrapolated");
    /* Half the bytes of an all-reduce and 7 steps of 100 less. */
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_GATHER, whole, 16000), 9000 - 700,
           "all-gather from the all-reduce's curve");
    ok(!strcmp(topt_hw_basis(hw, TOPT_ALL_GATHER, whole, basis, sizeof basis),
               "all_reduce 1x8"),
       "which is said");
    const struct {
        enum topt_collective c;
        int64_t bytes;
        enum topt_basis basis;
    } rest[] = {{TOPT_ALL_REDUCE, 8000, TOPT_BASIS_MEASURED},
                {TOPT_ALL_REDUCE, 6000, TOPT_BASIS_INTERPOLATED},
                {TOPT_ALL_REDUCE, 16000, TOPT_BASIS_SCALED},
                {TOPT_ALL_GATHER, 6000, TOPT_BASIS_SCALED}};
    for (int i = 0; i < 4; i++)
        is_int(topt_hw_collective(hw, rest[i].c, whole, rest[i].bytes).basis,
               rest[i].basis, "a time between points is interpolated, and no other is");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group(2, 8, 1), 8000),
           9000 + 16000 + 2000, "over nodes: the curve and the network");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, group(2, 1, 1), 8000), 16000 + 2000,
           "a curve of one node says nothing of the network");
    topt_hw_destroy(hw);
}

/* Told by what is different from a shipped profile. */
/* Nodes of fewer devices: as many devices, a network that goes with them, and no curves of
 * groups that no longer fit. */
static void of_nodes(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(
        DOC(NODE "," CLUSTER,
            ",'curves':[" CURVE("all_reduce", "8") "," CURVE("all_gather", "4") "]"),
        &err);
    struct topt_hw *four = hw ? topt_hw_of_nodes(hw, 4, &err) : NULL;
    if (!ok(four != NULL, "nodes of four %s", err.text)) {
        topt_hw_destroy(hw);
        return;
    }
    ok(!strcmp(topt_hw_name(four), "t-x4") && topt_hw_gpus_per_node(four) == 4 &&
           topt_hw_max_nodes(four) == 8,
       "'%s', %d nodes of %d", topt_hw_name(four), topt_hw_max_nodes(four),
       topt_hw_gpus_per_node(four));
    ok(topt_hw_network(four) == 2.5e8 && topt_hw_bus(four) == topt_hw_bus(hw),
       "half of the network, all of the bus");
    json_t *doc = topt_hw_to_json(four);
    ok(json_array_size(json_object_get(doc, "curves")) == 1, "curves of four and less");
    json_decref(doc);
    struct topt_hw *same = topt_hw_of_nodes(hw, 8, &err);
    ok(same && !strcmp(topt_hw_name(same), "t"), "all of a node is the profile itself");
    topt_hw_destroy(same);
    for (int64_t n = 0; n <= 9; n += 9)
        ok(!topt_hw_of_nodes(hw, n, &err) && strstr(err.text, "a node of 't' has 8 GPUs"),
           "%s", err.text);
    topt_hw_destroy(four);
    topt_hw_destroy(hw);
    hw = topt_hw_load("a100-v100", &err);
    ok(hw && !topt_hw_of_nodes(hw, 4, &err) && strstr(err.text, "nodes of their own"),
       "%s", err.text);
    topt_hw_destroy(hw);
    hw = topt_hw_load("v100-pcie-1x8", &err);
    four = hw ? topt_hw_of_nodes(hw, 4, &err) : NULL;
    ok(four && topt_hw_max_nodes(four) == 1, "one node without a network stays one");
    topt_hw_destroy(four);
    topt_hw_destroy(hw);
}

/* A device that is another's but for its peaks has no rates by size of types that it lacks, and its own
 * figures are not assumed. */
static void like_another_device(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw =
        parse("{'format':'topt-hw/1','like':'v100-pcie-1x8','name':'mine','device':"
              "{'flops':{'f32':1e13},'launch_ns':4000}}",
              &err);
    if (!ok(hw != NULL, "a device like another %s", err.text))
        return;
    json_t *names = topt_hw_assumed(hw);
    size_t i;
    json_t *x;
    int own = 0;
    json_array_foreach(names, i, x)
    {
        const char *name = json_string_value(x);
        own += !strncmp(name, "device.flops", 12) || !strcmp(name, "device.launch_ns");
    }
    ok(json_array_size(names) > 2 && !own, "%d of its figures are assumed, none of these",
       (int)json_array_size(names));
    ok(!topt_hw_has_dtype(hw, TOPT_F16), "and it has one type");
    json_decref(names);
    topt_hw_destroy(hw);
}

static void like(void)
{
    struct topt_error err = {0};
    struct topt_hw_curve_check check;
    struct topt_hw *base = topt_hw_load("h100-80-dgx", &err);
    struct topt_hw *hw =
        parse("{'format':'topt-hw/1','like':'h100-80-dgx','name':'slow','nodes':4,"
              "'device':{'launch_ns':7000},"
              "'links':[{'level':'cluster','bytes_per_second':1e9,'latency_ns':1,'source'"
              ":'s'}]}",
              &err);
    if (!ok(base && hw, "a document like another %s", err.text))
        return;
    int over_nodes = 0, inside = 0;
    for (int i = 0; topt_hw_curve_check(hw, i, &check); i++)
        *(check.group.nodes > 1 ? &over_nodes : &inside) += 1;
    is_int(over_nodes, 0, "curves over nodes go with the cluster's link");
    ok(inside > 0, "those inside a node stay");
    is_int(topt_hw_max_nodes(hw), 4, "a field that is given");
    is_int(topt_hw_memory_bytes(hw), topt_hw_memory_bytes(base), "one that is not");
    is_int(topt_hw_compute_ns(hw, TOPT_F32, TOPT_WORK_MATMUL, 0, 0, 1), 7000,
           "a field of the device");
    struct topt_group g = {1, 8, 1}, far = {2, 1, 8};
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, 1 << 20),
           topt_hw_collective_ns(base, TOPT_ALL_REDUCE, g, 1 << 20), "the node's link");
    ok(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, far, 1 << 20) >
           topt_hw_collective_ns(base, TOPT_ALL_REDUCE, far, 1 << 20),
       "the cluster's is its own");
    json_t *doc = topt_hw_to_json(hw);
    ok(!json_object_get(doc, "like"), "the document is whole");
    json_decref(doc);
    topt_hw_destroy(hw);
    hw = parse("{'format':'topt-hw/1','like':'v100-dgx1-2x8-4x','name':'t','nodes':3}",
               &err);
    ok(hw && topt_hw_max_nodes(hw) == 3, "like one that is told by another %s", err.text);
    topt_hw_destroy(hw);
    hw = parse(
        "{'format':'topt-hw/1','like':'v100-dgx1-2x8','name':'t','curves':["
        "{'collective':'all_reduce','nodes':1,'per_node':8,'points':[[1,10],[2,20]],"
        "'source':'s'},{'collective':'permute','nodes':2,'per_node':1,"
        "'points':[[1,30],[2,40]],'source':'s'}]}",
        &err);
    int curves = 0;
    while (hw && topt_hw_curve_check(hw, curves, &check))
        curves++;
    is_int(curves, 2, "a curve in the place of one of its group, and one more");
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_REDUCE, g, 2), 20, "the one that is given");
    topt_hw_destroy(base);
    topt_hw_destroy(hw);
}

/* Does one of the sentences say so? */
static int says(json_t *list, const char *word)
{
    size_t i;
    json_t *x;
    int found = 0;
    json_array_foreach(list, i, x)
    {
        found |= strstr(json_string_value(x), word) != NULL;
    }
    return found;
}

static int warns(const char *text, const char *word)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(text, &err);
    json_t *list = hw ? topt_hw_warnings(hw) : NULL;
    int found = word ? says(list, word) : hw && json_array_size(list) == 0;
    ok(found, "warns of %s %s", word ? word : "nothing", err.text);
    if (!found && list)
        printf("# %s\n", json_string_value(json_array_get(list, 0)));
    json_decref(list);
    topt_hw_destroy(hw);
    return found;
}

static void remarks(void)
{
    struct topt_error err = {0};
#define POINTS(kind, points)                                                             \
    ",'curves':[{'collective':'" kind "','nodes':1,'per_node':8,'points':" points        \
    ",'source':'s'}]"
    /* All-reduce of 8: 1.75 bytes sent a byte, at 1 GB/s. */
    warns(DOC(NODE "," CLUSTER, POINTS("all_reduce", "[[1000,3000],[4000000,8000000]]")),
          NULL);
    warns(DOC(NODE "," CLUSTER, POINTS("all_reduce", "[[1000,3000],[4000000,5000000]]")),
          "curves[0] (all_reduce 1x8): 1.4 GB/s");
    warns(DOC(NODE "," CLUSTER,
              POINTS("all_reduce", "[[1000,9000],[2000,3000],[4000000,8000000]]")),
          "1 of 3 points are slower");
    warns(DOC(NODE "," CLUSTER, POINTS("all_reduce", "[[1000,3000],[4000,12000]]")),
          "ends at 4000 bytes");
    warns(DOC(NODE ",{'level':'cluster','bytes_per_second':9e9,'latency_ns':1000,"
                   "'source':'s'}",
              ""),
          "faster than all that its");
    warns(DOC(NODE ",{'level':'cluster','bytes_per_second':5e8,'latency_ns':10,"
                   "'source':'s'}",
              ""),
          "a step inside a node waits longer");
    warns("{'format':'topt-hw/1','name':'x','like':'lab-cpu','device':{'efficiency':"
          "{'matmul':1.5,'attention':1,'elementwise':1}}}",
          "device.efficiency.matmul is 1.5");
    struct topt_hw *hw = parse(DOC(NODE "," CLUSTER, ""), &err);
    json_t *missing = topt_hw_missing(hw);
    ok(says(missing, "inside a node: no curve of all_reduce, all_gather") &&
           says(missing, "between nodes: no curve of all_reduce") &&
           says(missing, "runtime_bytes") && says(missing, "f32 products"),
       "what was not measured is named");
    json_decref(missing);
    topt_hw_destroy(hw);
}

static void refuses(const char *text, const char *names)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(text, &err);
    ok(!hw && strstr(err.text, names) && !strchr(err.text, '\n'), "names \"%s\": %s",
       names, hw ? "(accepted)" : err.text);
    topt_hw_destroy(hw);
}

/* Assumed figures by name, and a profile in which one of them is another. */
static void assumed_figures(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(
        DOC("{'level':'node','bytes_per_second':1e9,'by_group':[[2,1e9],[4,2e9]],"
            "'latency_ns':100,'assumed':['by_group','latency_ns'],'source':'s'}," CLUSTER,
            ",'collective':{'launch_ns':50,'assumed':['launch_ns'],'source':'s'}"),
        &err);
    if (!ok(hw != NULL, "assumed figures %s", err.text))
        return;
    json_t *names = topt_hw_assumed(hw);
    static const char *const want[] = {"node.by_group", "node.latency_ns",
                                       "collective.launch_ns"};
    is_int(json_array_size(names), 3, "three figures");
    for (size_t i = 0; i < 3; i++)
        ok(!strcmp(json_string_value(json_array_get(names, i)), want[i]), "%s", want[i]);
    json_decref(names);
    struct topt_hw *half = topt_hw_scaled(hw, "node.by_group", 0.5, &err);
    ok(half != NULL, "with half of its rates %s", err.text);
    is_int(topt_hw_collective_ns(hw, TOPT_ALL_GATHER, group(1, 4, 1), 8000),
           3000 + 300 + 50, "six eighths of the bytes");
    is_int(topt_hw_collective_ns(half, TOPT_ALL_GATHER, group(1, 4, 1), 8000),
           6000 + 300 + 50, "in twice the time");
    topt_hw_destroy(half);
    half = topt_hw_scaled(hw, "device.flops.f32", 0.5, &err);
    ok(half && topt_hw_peak(half, TOPT_F32) == 5e8, "half of a peak %s", err.text);
    topt_hw_destroy(half);
    ok(!topt_hw_scaled(hw, "node.rate", 0.5, &err) && strstr(err.text, "'node.rate'"),
       "%s", err.text);
    topt_hw_destroy(hw);
}

static void errors(void)
{
    refuses("{}", "format");
    refuses("[]", "object");
    refuses("{'format':'topt-model/1'}", "topt-model/1");
    refuses(DOC(NODE "," CLUSTER, ",'curve':[]"), "curve: unknown");
    refuses("{" TOP ",'links':[]}", "device");
    refuses("{'format':'topt-hw/1','name':'x','like':'nothing'}", "'nothing'");
    refuses("{'format':'topt-hw/1','name':'x','like':3}", "like");
    refuses("{'format':'topt-hw/1','name':'x','like':'lab-cpu','device':3}", "device");
    refuses("{" TOP "," DEVICE "}", "links");
    refuses(DOC(NODE, ""), "cluster");
    refuses(DOC(CLUSTER, ""), "level node");
    refuses(DOC(NODE "," NODE, ""), "links[1]");
    refuses(DOC(NODE ",3", ""), "links[1]");
    refuses(DOC(NODE ",{'level':'rack'}", ""), "links[1].level");
    refuses(DOC("{'level':'node','bytes_per_second':0,'latency_ns':1,'source':'s'}", ""),
            "links[0].bytes_per_second");
    refuses(DOC("{'level':'node','bytes_per_second':9,'latency_ns':1}", ""),
            "links[0].source");
    refuses(DOC("{'level':'node','bytes_per_second':9,'latency_ns':1,'source':''}", ""),
            "links[0].source");
    refuses(DOC("{'level':'node','bytes_per_second':9,'latency_ns':1,'source':'s',"
                "'by_group':[[4,9],[2,9]]}",
                ""),
            "links[0].by_group[1]");
    refuses(DOC("{'level':'node','bytes_per_second':9,'latency_ns':1,'source':'s',"
                "'assumed':['latency_ns','rate']}",
                ""),
            "links[0].assumed[1]");
    refuses(DOC(NODE "," CLUSTER, ",'curves':[" CURVE("broadcast", "8") "]"),
            "curves[0].collective");
    refuses(DOC(NODE "," CLUSTER, ",'curves':[" CURVE("permute", "16") "]"),
            "curves[0].per_node");
    refuses(DOC(NODE "," CLUSTER, ",'curves':[" CURVE("permute", "1") "]"), "curves[0]");
    refuses(DOC(NODE "," CLUSTER,
                ",'curves':[" CURVE("permute", "8") "," CURVE("permute", "8") "]"),
            "curves[1]");
    refuses(DOC(NODE "," CLUSTER, ",'curves':[{'collective':'permute','nodes':1,"
                                  "'per_node':2,'points':[[2,1],[1,1]],'source':'s'}]"),
            "curves[0].points[1]");
    refuses(DOC(NODE "," CLUSTER, ",'curves':[{'collective':'permute','nodes':1,"
                                  "'per_node':2,'points':[[1,1]],'source':'s'}]"),
            "curves[0].points");
    struct topt_error err = {0};
    ok(!topt_hw_load("no-such-profile", &err) && err.code == TOPT_ERR_USAGE &&
           !strstr(err.text, "did you mean"),
       "no such profile: %s", err.text);
    ok(!topt_hw_load("a100-80-dxg", &err) &&
           strstr(err.text, "unknown hardware 'a100-80-dxg'; did you mean a100-80-dgx?"),
       "one that is near: %s", err.text);
    ok(!topt_hw_load("h100", &err) &&
           strstr(err.text, "did you mean h100-80-a3mega, h100-80-dgx, h100-80-pcie, "
                            "h100-94-nvl or h100-96-500w?"),
       "those that have the name in theirs: %s", err.text);
    ok(!topt_hw_load("L4", &err) && strstr(err.text, "did you mean l4-1x8 or l40s-1x8?"),
       "two letters, which begin it: %s", err.text);
    ok(!topt_hw_load("moon", &err) && strstr(err.text, "`topt profile` measures") &&
           strstr(err.text, "\"like\": NAME"),
       "none that is like it: %s", err.text);
    ok(!topt_hw_load("/no/such/file.json", &err), "no such file: %s", err.text);
}

/* Two groups of unlike devices: each as it is, and the whole as the least of both. */
#define GROUP(name, nodes, per_node, memory, rate)                                       \
    "{'name':'" name "','nodes':" nodes ",'gpus_per_node':" per_node                     \
    ",'device':{'name':'" name "','memory_bytes':" memory ",'reserve_bytes':100,"        \
    "'flops':{'f32':" rate ",'f64':1e9},'efficiency':{'matmul':0.5,'attention':1,"       \
    "'elementwise':1},'memory_bandwidth':" rate ",'launch_ns':10,'source':'s'},"         \
    "'links':[" NODE "," CLUSTER "]}"
#define GROUPS(list, rest) "{'format':'topt-hw/1','name':'t','groups':[" list "]" rest "}"
#define BETWEEN            ",'between':{'bytes_per_second':1e8,'latency_ns':50,'source':'s'}"

static void groups(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(GROUPS(GROUP("fast", "1", "8", "3000", "3e9") "," GROUP(
                                          "slow", "3", "4", "1000", "1e9"),
                                      BETWEEN),
                               &err);
    if (!ok(hw != NULL, "groups of unlike devices %s", err.text))
        return;
    is_int(topt_hw_groups(hw), 2, "two groups");
    is_int(topt_hw_memory_bytes(topt_hw_group(hw, 0)), 2900, "the memory of the first");
    is_int(topt_hw_memory_bytes(hw), 900, "all have the least memory");
    is_int(topt_hw_max_nodes(hw), 5, "20 devices are 5 nodes");
    is_int(topt_hw_gpus_per_node(hw), 4, "... of 4");
    ok(topt_hw_peak(topt_hw_group(hw, 0), TOPT_F32) == 3e9 &&
           topt_hw_peak(hw, TOPT_F32) == 1e9,
       "... and the least rate");
    ok(topt_hw_network(hw) == 1e8, "nodes talk as slowly as groups");
    is_int(topt_hw_between_ns(hw, 1000, 2), 10100, "between groups: bytes and two steps");
    is_int(topt_hw_between_ns(topt_hw_group(hw, 0), 1000, 2), 0, "one group has none");
    json_t *doc = topt_hw_to_json(hw);
    struct topt_hw *again = topt_hw_from_json(doc, &err);
    json_t *same = again ? topt_hw_to_json(again) : NULL;
    ok(again && json_equal(doc, same), "the document round-trips %s", err.text);
    json_decref(doc);
    json_decref(same);
    topt_hw_destroy(again);
    topt_hw_destroy(hw);
    refuses(GROUPS(GROUP("a", "1", "8", "3000", "3e9"), BETWEEN), "groups");
    refuses(GROUPS("1,2", BETWEEN), "groups[0]");
    refuses(
        GROUPS(GROUP("a", "1", "8", "3000", "3e9") "," GROUP("b", "1", "8", "30", "1e9"),
               BETWEEN),
        "groups[1]: device.reserve_bytes");
    refuses(GROUPS(GROUP("a", "1", "8", "3000", "3e9") "," GROUP("a", "1", "8", "3000",
                                                                 "3e9"),
                   BETWEEN),
            "groups[1].name");
    refuses(GROUPS(GROUP("a", "1", "8", "3000", "3e9") "," GROUP("b", "1", "8", "3000",
                                                                 "3e9"),
                   ""),
            "between");
    refuses(DOC(NODE "," CLUSTER, BETWEEN), "between");
}

/* A device whose GELU was clocked at two sizes, and its ReLU at one. */
#define CLOCKED(samples)                                                                 \
    "{'format':'topt-hw/1','name':'t','nodes':1,'gpus_per_node':4,'device':{'name':'d'," \
    "'memory_bytes':1000,'flops':{'f32':1e9},'efficiency':{'matmul':1,'attention':1,"    \
    "'elementwise':1},'memory_bandwidth':1e9,'launch_ns':10,'shared_cores':2,'kernels':" \
    "[{'kernel':'unary','of':'gelu','type':'f32','samples':" samples                     \
    "},{'kernel':'unary','of':'relu','type':'f32','samples':[[800,800,100,1,50]]}],"     \
    "'source':'s'},'links':[" NODE "]}"

static int64_t clocked_ns(const struct topt_hw *hw, const struct topt_op *op, int64_t n,
                          int devices)
{
    struct topt_kernel_run run = {op, TOPT_K_UNARY_FWD, 8 * n, 8 * n, n};
    return topt_hw_kernel(hw, TOPT_F32, &run, devices).ns;
}

static void single_kernels(void)
{
    struct topt_error err = {0};
    struct topt_attrs in = {.features = 8}, gelu = {.activation = TOPT_ACT_GELU},
                      silu = {.activation = TOPT_ACT_SILU};
    struct topt_model *m = topt_model_create("m", 1, 4, &err);
    int x = topt_model_add(m, "input", "x", 0, NULL, &in, &err);
    int y = topt_model_add(m, "unary", "y", 1, &x, &gelu, &err);
    int z = topt_model_add(m, "unary", "z", 1, &y, &silu, &err);
    struct topt_hw *hw =
        parse(CLOCKED("[[800,800,100,1,300],[80000,80000,10000,1,20000]]"), &err);
    ok(hw && y > 0 && z > 0, "a profile of single kernels %s", err.text);
    int64_t ns = clocked_ns(hw, &m->op[y], 100, 1);
    ok(ns >= 299 && ns <= 301, "what was clocked takes what it took: %lld",
       (long long)ns);
    ns = clocked_ns(hw, &m->op[y], 1000, 1);
    ok(ns > 2000 && ns < 3000, "between samples work goes by both: %lld", (long long)ns);
    int64_t twice = clocked_ns(hw, &m->op[y], 1000, 4);
    ok(twice <= 2 * ns && twice >= 2 * ns - 2, "four devices share two cores");
    ns = clocked_ns(hw, &m->op[z], 100, 1);
    ok(ns > 50 && ns < 300, "another activation goes by all: %lld", (long long)ns);
    struct topt_kernel_run other = {&m->op[y], TOPT_K_ADD_FWD, 8, 8, 1};
    is_int(topt_hw_kernel(hw, TOPT_F32, &other, 1).ns, 0, "a kernel without samples");
    other.kernel = TOPT_K_UNARY_FWD;
    is_int(topt_hw_kernel(hw, TOPT_F64, &other, 1).ns, 0, "a type without samples");
    topt_hw_destroy(hw);
    topt_model_destroy(m);
    refuses(CLOCKED("[]"), "device.kernels[0].samples");
    refuses(CLOCKED("[[1,2,3,4]]"), "device.kernels[0].samples");
    refuses(CLOCKED("[[1,2,3,4,-5]]"), "device.kernels[0].samples");
}

/* Updates go by their bytes and the optimizer; clearing, of which there are no samples, by the rate. */
static void sweeps(void)
{
    struct topt_error err = {0};
    struct topt_hw *hw = parse(
        CLOCKED("[[8,8,1,1,9]]},{'kernel':'update','of':'sgd','type':'f32','samples':"
                "[[0,1200,0,1,70]]},{'kernel':'update','of':'adam','type':'f32',"
                "'samples':[[0,2800,0,1,300],[0,280000,0,1,20000]]"),
        &err);
    ok(hw != NULL, "a profile of updates %s", err.text);
    const struct {
        enum topt_sweep sweep;
        const char *of;
        int64_t bytes, least, most;
    } row[] = {{TOPT_SWEEP_UPDATE, "adam", 2800, 299, 301},
               {TOPT_SWEEP_UPDATE, "adam", 28000, 2000, 3000},
               {TOPT_SWEEP_UPDATE, "sgd", 1200, 70, 71},
               {TOPT_SWEEP_UPDATE, "adamw", 2800, 200, 301},
               {TOPT_SWEEP_ZERO, "", 5000, 5000, 5011},
               {TOPT_SWEEP_UPDATE, "adam", 0, 10, 10}};
    for (size_t i = 0; hw && i < sizeof row / sizeof *row; i++) {
        int64_t ns =
            topt_hw_sweep(hw, TOPT_F32, row[i].sweep, row[i].of, row[i].bytes, 1).ns;
        ok(ns >= row[i].least && ns <= row[i].most, "%s %s of %lld bytes takes %lld",
           topt_sweep_name(row[i].sweep), row[i].of, (long long)row[i].bytes,
           (long long)ns);
    }
    topt_hw_destroy(hw);
}

int main(void)
{
    single_kernels();
    sweeps();
    groups();
    kernels_by_size("matmul", TOPT_WORK_MATMUL, TOPT_WORK_ATTENTION);
    kernels_by_size("attention", TOPT_WORK_ATTENTION, TOPT_WORK_MATMUL);
    two_level();
    sends();
    rings_and_trees();
    between_curves();
    bands();
    what_rates_rest_on();
    curves();
    like();
    like_another_device();
    of_nodes();
    remarks();
    assumed_figures();
    errors();
    return done_testing();
}
