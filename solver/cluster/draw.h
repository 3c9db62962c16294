/* draw.h - numbers by a seed, the same on every machine.  Thread safety: reentrant. */
#ifndef TOPT_CLUSTER_DRAW_H
#define TOPT_CLUSTER_DRAW_H

#include <stdint.h>

#include "topt_hash.h"

/* A hash of the seed and a place. */
static inline uint64_t draw_hash(int64_t seed, uint64_t place)
{
    return topt_mix((uint64_t)seed * 0x9e3779b97f4a7c15u + place);
}

/* Above 0 and at most 1. */
static inline double draw_share(int64_t seed, uint64_t place)
{
    return (double)((draw_hash(seed, place) >> 11) + 1) / 9007199254740992.0;
}

#endif
