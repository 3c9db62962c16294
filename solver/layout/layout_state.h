/* layout_state.h - layouts whose axes and dimensions have no names, and questions for
 * paths between them.  Private to layout/.
 *
 * The cost of a move depends on the size of blocks and on how many nodes and devices a
 * group of axes spans, not on the names of axes or dimensions.  A state therefore
 * numbers groups of axes and dimensions, and redistributions that are alike ask the
 * same question. route.c makes the questions and gives the answers their names. */
#ifndef TOPT_LAYOUT_STATE_H
#define TOPT_LAYOUT_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "topt_layout.h"

enum {
    TOPT_STATE_GROUPS = 10,
    TOPT_STATE_BITS = 6,
    TOPT_STATE_P = TOPT_MAX_RANK,    /* partial */
    TOPT_STATE_R = TOPT_MAX_RANK + 1 /* replicated */
};

/* A state: 6 bits a group, [ dimension:2 | place:4 ], or these where it is in none. */
enum { TOPT_STATE_IS_P = 62, TOPT_STATE_IS_R = 63 };

static inline int topt_state_bits(uint64_t s, int g)
{
    return (int)(s >> (TOPT_STATE_BITS * g) & 63);
}

static inline int topt_state_at(uint64_t s, int g)
{
    int bits = topt_state_bits(s, g);
    return bits >= TOPT_STATE_IS_P ? TOPT_STATE_P + (bits - TOPT_STATE_IS_P) : bits >> 4;
}

static inline int topt_state_pos(uint64_t s, int g)
{
    int bits = topt_state_bits(s, g);
    return bits >= TOPT_STATE_IS_P ? 0 : bits & 15;
}

static inline uint64_t topt_state_put(uint64_t s, int g, int at, int pos)
{
    int bits = at >= TOPT_STATE_P ? TOPT_STATE_IS_P + (at - TOPT_STATE_P) : at << 4 | pos;
    s &= ~((uint64_t)63 << (TOPT_STATE_BITS * g));
    return s | (uint64_t)bits << (TOPT_STATE_BITS * g);
}

/* Where paths begin.  Compared byte by byte: set to zero before it is filled. */
struct topt_path_source {
    /* The size of the whole tensor, without the dimensions that have a count below. */
    int64_t bytes;
    /* 0: what the groups can split divides it, and it is part of 'bytes'; negative: as
     * many, but blocks are of different sizes already */
    int64_t count[TOPT_MAX_RANK];
    uint64_t from;
    uint16_t size[TOPT_STATE_GROUPS];
    uint16_t ngroups, node_groups; /* those of the node level come first */
    uint16_t ndims, zero[3];
};

/* One move on the way; slices that follow each other are one. */
struct topt_path_step {
    enum topt_move_kind kind;
    uint32_t groups; /* that it varies along */
    uint64_t to;
};

/* The cheapest path to a state. */
struct topt_step_path {
    int64_t ns; /* TOPT_ROUTE_FAR: more than three months */
    int nsteps;
    struct topt_path_step *step; /* borrowed from the finder */
};

/* 'path' is the answer. */
struct topt_path_question {
    struct topt_path_source source;
    uint64_t to;
    uint64_t costs_hash; /* of the source: topt_path_costs_hash */
    struct topt_step_path path;
};

static inline uint64_t topt_mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static inline uint64_t topt_mix_bytes(uint64_t h, const void *p, size_t n)
{
    const char *c = p;
    uint64_t x;
    for (; n >= sizeof x; n -= sizeof x, c += sizeof x) {
        memcpy(&x, c, sizeof x);
        h = topt_mix(h, x);
    }
    for (x = 0; n; n--)
        x = x << 8 | (uint8_t)*c++;
    return x ? topt_mix(h, x) : h;
}

/* A hash of what sources that are alike but for where they begin have in common. */
static inline uint64_t topt_path_costs_hash(const struct topt_path_source *s)
{
    uint64_t h = topt_mix_bytes(0, s, offsetof(struct topt_path_source, from));
    return topt_mix_bytes(h, s->size,
                          sizeof *s - offsetof(struct topt_path_source, size));
}

/* Are they alike but for where they begin? */
static inline int topt_path_same_costs(const struct topt_path_source *a,
                                       const struct topt_path_source *b)
{
    size_t from = offsetof(struct topt_path_source, from),
           size = offsetof(struct topt_path_source, size);
    return !memcmp(a, b, from) && !memcmp(a->size, b->size, sizeof *a - size);
}

#endif
