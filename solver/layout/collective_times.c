/* collective_times.c - a cache of the times of collectives.
 *
 * A search asks a hardware profile for the same few sizes again and again.  The cache is
 * direct-mapped: an entry takes the place of an earlier one with the same hash. */
#include "collective_times.h"

#include <stdlib.h>

#include "layout_state.h"

enum { KEPT = 8192 };

struct kept {
    int64_t bytes; /* 0: none yet */
    uint32_t across, collective;
    struct topt_time time;
};

struct topt_collective_times {
    const struct topt_hw *hw;
    int per_node; /* devices of a node */
    struct kept kept[KEPT];
};

struct topt_collective_times *topt_collective_times_create(const struct topt_hw *hw,
                                                           const struct topt_mesh *mesh)
{
    struct topt_collective_times *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->hw = hw;
    t->per_node = mesh->per_node;
    return t;
}

void topt_collective_times_destroy(struct topt_collective_times *t)
{
    free(t);
}

struct topt_time topt_collective_times_of(struct topt_collective_times *t,
                                          enum topt_collective c, int nodes, int per_node,
                                          int64_t bytes)
{
    uint32_t across = (uint32_t)nodes << 16 | (uint32_t)per_node;
    uint64_t h = topt_mix((uint64_t)bytes, (uint64_t)across << 8 | (uint64_t)c);
    struct kept *x = &t->kept[h % KEPT];
    if (x->bytes != bytes || x->across != across || x->collective != c || !bytes) {
        struct topt_group g = {nodes, per_node, t->per_node / per_node};
        *x = (struct kept){bytes, across, c, topt_hw_collective(t->hw, c, g, bytes)};
    }
    return x->time;
}
