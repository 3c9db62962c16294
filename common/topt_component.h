/* topt_component.h - the nodes of a group of unlike GPUs that a plan takes: a component of a
 * heterogeneous job of Slurm.  Thread safety: reentrant. */
#ifndef TOPT_COMPONENT_H
#define TOPT_COMPONENT_H

#include <jansson.h>
#include <stdint.h>

struct topt_component {
    const char *group; /* its name, borrowed from the document */
    int64_t nodes, per_node;
};

/* What 'gpus' GPUs of 'group', a group of a "topt-hw/1" document, take: a part of one node, or
 * equal parts of as few nodes as hold them.  NULL, or a group that does not say how many GPUs a
 * node has: one node. */
struct topt_component topt_component_of(const json_t *group, int64_t gpus);

#endif
