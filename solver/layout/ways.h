/* ways.h - cheapest moves between the layouts of a tensor, without names.  Private to layout/.
 *
 * What moves cost depends on how large blocks are and on how many nodes and devices a group
 * spans, not on which axes or dimensions they are.  So a question here has groups of axes and
 * dimensions that are only numbered; whoever asks gives the same question for redistributions
 * that are alike, and names the answer (route.c). */
#ifndef TOPT_WAYS_H
#define TOPT_WAYS_H

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "topt_arena.h"
#include "topt_layout.h"

enum {
    TOPT_WAY_GROUPS = 10,
    TOPT_WAY_BITS = 6,
    TOPT_WAY_P = TOPT_MAX_RANK,    /* partial */
    TOPT_WAY_R = TOPT_MAX_RANK + 1 /* replicated */
};

/* A state: 6 bits a group, [ dimension:2 | place:4 ], or these where it is in none. */
enum { TOPT_WAY_IS_P = 62, TOPT_WAY_IS_R = 63 };

static inline int topt_way_bits(uint64_t s, int g)
{
    return (int)(s >> (TOPT_WAY_BITS * g) & 63);
}

static inline int topt_way_at(uint64_t s, int g)
{
    int bits = topt_way_bits(s, g);
    return bits >= TOPT_WAY_IS_P ? TOPT_WAY_P + (bits - TOPT_WAY_IS_P) : bits >> 4;
}

static inline int topt_way_pos(uint64_t s, int g)
{
    int bits = topt_way_bits(s, g);
    return bits >= TOPT_WAY_IS_P ? 0 : bits & 15;
}

static inline uint64_t topt_way_put(uint64_t s, int g, int at, int pos)
{
    int bits = at >= TOPT_WAY_P ? TOPT_WAY_IS_P + (at - TOPT_WAY_P) : at << 4 | pos;
    s &= ~((uint64_t)63 << (TOPT_WAY_BITS * g));
    return s | (uint64_t)bits << (TOPT_WAY_BITS * g);
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
    uint16_t ndims, zero[3];
};

/* One move on the way; slices that follow each other are one. */
struct topt_way_step {
    enum topt_move_kind kind;
    uint32_t groups; /* that it varies along */
    uint64_t to;
};

/* The cheapest way to a state. */
struct topt_way {
    int64_t ns; /* TOPT_ROUTE_FAR: more than three months */
    int nsteps;
    struct topt_way_step *step; /* borrowed from who found it */
};

/* 'way' is the answer. */
struct topt_way_question {
    struct topt_way_source source;
    uint64_t to;
    uint64_t tariff; /* topt_way_tariff of the source */
    struct topt_way way;
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
static inline uint64_t topt_way_tariff(const struct topt_way_source *s)
{
    uint64_t h = topt_mix_bytes(0, s, offsetof(struct topt_way_source, from));
    return topt_mix_bytes(h, s->size, sizeof *s - offsetof(struct topt_way_source, size));
}

/* Are they alike but for where they begin? */
static inline int topt_way_alike(const struct topt_way_source *a,
                                 const struct topt_way_source *b)
{
    size_t from = offsetof(struct topt_way_source, from),
           size = offsetof(struct topt_way_source, size);
    return !memcmp(a, b, from) && !memcmp(a->size, b->size, sizeof *a - size);
}

/* Finds ways; answers are borrowed from it.  One owner at a time. */
struct topt_ways;
struct topt_ways *topt_ways_create(const struct topt_hw *hw,
                                   const struct topt_mesh *mesh);
void topt_ways_destroy(struct topt_ways *w);
struct topt_time topt_ways_time(struct topt_ways *w, enum topt_collective c, int nodes,
                                int per_node, int64_t bytes);
/* Questions whose sources are alike but for 'from', those of one source being neighbours.
 * The cheapest ways, of those the ones with the fewest moves, of those the ones whose
 * last stop is the cheapest to reach (then the first in the order of states), and so on: each
 * follows from source and target alone, whatever is asked beside it. */
int topt_ways_answer(struct topt_ways *w, struct topt_way_question *const *question,
                     int n, struct topt_error *err) TOPT_MUST_CHECK;
/* Bytes of the largest block. */
int64_t topt_way_bytes(const struct topt_way_source *w, uint64_t state);

/* team.c: as many of them as there are threads, who share the sources of many questions. */
struct topt_team;
struct topt_team *topt_team_create(const struct topt_hw *hw,
                                   const struct topt_mesh *mesh);
void topt_team_destroy(struct topt_team *t);
/* The one that the caller may use. */
struct topt_ways *topt_team_ways(struct topt_team *t);
/* Answer all; 'question' is put in order.  Where 'cancel' (which may be NULL) is set meanwhile,
 * TOPT_ERR_CANCELED: answers have no steps, or are right. */
int topt_team_answer(struct topt_team *t, struct topt_way_question **question, int n,
                     int threads, const atomic_bool *cancel,
                     struct topt_error *err) TOPT_MUST_CHECK;

#endif
