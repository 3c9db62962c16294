/* degrees.h - what is chosen once for the whole model, before anything is chosen for an operator:
 * a variant of the problem.  Private to plan/.
 *
 * In the uniform space these are the degrees of parallelism that a framework's launch line
 * names; in the others, where every operator chooses its own splits and sharding, only
 * micro_batches, recompute and mesh_starts say something. */
#ifndef TOPT_PLAN_DEGREES_H
#define TOPT_PLAN_DEGREES_H

#include <stdint.h>

#include "topt_layout.h"
#include "topt_order.h"

struct topt_degrees {
    int64_t micro_batches; /* a step runs this many, one after the other */
    /* Ranks, whose product is the number of devices; else 1.  Context ranks have a part of the positions of each
     * sample: they lie between data ranks and tensor ranks. */
    int data, tensor, context;
    int level; /* enum topt_zero of every parameter, between data ranks.  Else 0 */
    int shard; /* data ranks that the level shards over, the rest being replicas; 0: all */
    int stages, virtual_stages; /* pipeline stages, and chunks of layers of each */
    enum topt_order_row order;  /* their schedule */
    /* Ranks that share out experts, and that split the inside of one.  The latter are the innermost ones of
     * tensor ranks, the former what is left of tensor ranks, then context ranks, and the innermost data ranks. */
    int expert, expert_tensor;
    int recompute; /* may operators be recomputed?  Uniform: which are, bits of enum topt_recompute_module */
    int recompute_layers; /* of pipeline stages: in the first so many layers of each chunk; 0: all */
    /* device meshes of systems that have one for all operators; else 0 */
    uint32_t mesh_starts;
    int by_schedule; /* as in topt_settings: time and memory are those of a schedule */
};

/* One of each. */
struct topt_degrees topt_degrees_none(void);

/* Before, the same, or after: by micro-batches, then data ranks, level, recomputation, and those that
 * it shards over.  Of degrees of one grid. */
int topt_degrees_order(const struct topt_degrees *a, const struct topt_degrees *b);

/* Turn the degrees into those of a strategy that chooses by operator. */
void topt_degrees_by_operator(struct topt_degrees *d);

/* Turn a grid into that of one of so many pipeline stages, which lie in whole nodes or share one equally:
 * 0 where they can't. */
int topt_stage_grid(int stages, int *nodes, int *per_node);

/* The first axis of the mesh that is not one of its data axes, which come first; and the first of these
 * that the level shards over. */
int topt_degrees_data_axes(const struct topt_mesh *mesh, const struct topt_degrees *d);
int topt_degrees_whole_axes(const struct topt_mesh *mesh, const struct topt_degrees *d);
/* The data ranks that the level shards over. */
int topt_degrees_shard(const struct topt_degrees *d);
/* The first axis that is neither a data axis nor a context axis. */
int topt_degrees_first_tensor_axis(const struct topt_mesh *mesh,
                                   const struct topt_degrees *d);

/* How many axes experts are shared out over: the last data and context axes, and the first tensor axes. */
struct topt_expert_axes {
    int data, tensor;
};
struct topt_expert_axes topt_degrees_expert_axes(const struct topt_mesh *mesh,
                                                 const struct topt_degrees *d);

#endif
