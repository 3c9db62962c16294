/* random_hw.h - clusters of two levels that tests make up: round figures, and no measured curve. */
#ifndef TEST_RANDOM_HW_H
#define TEST_RANDOM_HW_H

#include <jansson.h>
#include <stdio.h>

#include "topt_hw.h"

struct made_up {
    int nodes, per_node;
    int node_mb, node_ns, cluster_mb, cluster_ns; /* megabytes a second, and latency */
    long long memory;                             /* bytes of a device; 0: a gigabyte */
    double flops;                                 /* in f32, half of bf16; 0: 1e9 */
};

/* The profile, which the caller destroys; NULL, with a line that says why, where it is none. */
static struct topt_hw *made_up_cluster(const struct made_up *c)
{
    char text[1200];
    struct topt_error err = {0};
    double flops = c->flops > 0 ? c->flops : 1e9;
    snprintf(
        text, sizeof text,
        "{\"format\":\"topt-hw/1\",\"name\":\"random\",\"nodes\":%d,\"gpus_per_node\":%d,"
        "\"device\":{\"name\":\"d\",\"memory_bytes\":%lld,\"reserve_bytes\":0,"
        "\"flops\":{\"f32\":%g,\"bf16\":%g},\"efficiency\":{\"matmul\":0.5,"
        "\"attention\":0.5,\"elementwise\":1},\"memory_bandwidth\":1e10,"
        "\"launch_ns\":100,\"source\":\"x\"},"
        "\"links\":[{\"level\":\"node\",\"bytes_per_second\":%de6,\"latency_ns\":%d,"
        "\"source\":\"x\"},{\"level\":\"cluster\",\"bytes_per_second\":%de6,"
        "\"latency_ns\":%d,\"source\":\"x\"}],"
        "\"collective\":{\"launch_ns\":10,\"source\":\"x\"},\"curves\":[]}",
        c->nodes, c->per_node, c->memory ? c->memory : 1000000000, flops, 2 * flops,
        c->node_mb, c->node_ns, c->cluster_mb, c->cluster_ns);
    json_t *doc = json_loads(text, 0, NULL);
    struct topt_hw *hw = topt_hw_from_json(doc, &err);
    json_decref(doc);
    if (!hw)
        printf("# %s\n", err.text);
    return hw;
}

#endif
