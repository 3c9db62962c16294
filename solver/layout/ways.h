/* ways.h - cheapest moves between the layouts of a tensor, without names.  Private to layout/.
 *
 * What moves cost depends on how large blocks are and on how many nodes and devices a group
 * spans, not on which axes or dimensions they are.  So a question here has groups of axes and
 * dimensions that are only numbered; whoever asks gives the same question for redistributions
 * that are alike, and names the answer (route.c). */
#ifndef TOPT_WAYS_H
#define TOPT_WAYS_H

#include <string.h>

#include "topt_arena.h"
#include "topt_layout.h"

enum { TOPT_WAY_GROUPS = 8, TOPT_WAY_R = 15, TOPT_WAY_P = 14 };

/* A state: 8 bits a group [ at:4 | pos:4 ], 'at' a dimension, TOPT_WAY_R or TOPT_WAY_P. */
static inline int topt_way_at(uint64_t s, int g)
{
    return (int)(s >> (8 * g + 4) & 15);
}

static inline int topt_way_pos(uint64_t s, int g)
{
    return (int)(s >> (8 * g) & 15);
}

static inline uint64_t topt_way_put(uint64_t s, int g, int at, int pos)
{
    uint64_t byte = (uint64_t)(at << 4 | pos);
    return (s & ~((uint64_t)255 << (8 * g))) | byte << (8 * g);
}

/* Where ways begin.  Compared byte by byte: set to zero before it is filled. */
struct topt_way_source {
    int64_t
        bytes; /* of the whole tensor, without the dimensions that have a count below */
    /* 0: what the groups can split divides it, and it is part of 'bytes'; negative: as many,
     * but blocks are of different sizes already */
    int64_t count[TOPT_MAX_RANK];
    uint64_t from;
    uint16_t size[TOPT_WAY_GROUPS];
    uint16_t ngroups, node_groups; /* those of the node level come first */
    uint16_t ndims, zero;
};

struct topt_way {
    struct topt_way_source source;
    uint64_t to;
};

/* One move on the way; slices that follow each other are one. */
struct topt_way_step {
    enum topt_move_kind kind;
    uint32_t groups; /* that it varies along */
    uint64_t to;
};

static inline uint64_t topt_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static inline uint64_t topt_mix_bytes(uint64_t h, const void *p, size_t n)
{
    const char *c = p;
    for (uint64_t x = 0; n; x = 0) {
        size_t k = n < sizeof x ? n : sizeof x;
        memcpy(&x, c, k);
        h = topt_mix(h, x);
        c += k;
        n -= k;
    }
    return h;
}

struct topt_ways;
struct topt_ways *topt_ways_create(const struct topt_hw *hw,
                                   const struct topt_mesh *mesh);
void topt_ways_destroy(struct topt_ways *w);
struct topt_time topt_ways_time(struct topt_ways *w, enum topt_collective c, int nodes,
                                int per_node, int64_t bytes);
/* The cheapest way, of those the one with the fewest moves: its time, and steps in 'arena'. */
int topt_ways_find(struct topt_ways *w, const struct topt_way *question,
                   struct topt_arena *arena, int64_t *ret_ns, int *ret_nsteps,
                   struct topt_way_step **ret_steps,
                   struct topt_error *err) TOPT_MUST_CHECK;
/* Bytes of the largest block. */
int64_t topt_way_bytes(const struct topt_way_source *w, uint64_t state);
void topt_ways_stats(const struct topt_ways *w, struct topt_route_stats *ret);

#endif
