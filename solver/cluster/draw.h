/* draw.h - numbers by a seed, the same on every machine.  Thread safety: reentrant. */
#ifndef TOPT_CLUSTER_DRAW_H
#define TOPT_CLUSTER_DRAW_H

#include <stdint.h>

/* A hash of the seed and a place: splitmix64, Steele, Lea and Flood, OOPSLA 2014. */
static inline uint64_t draw_hash(int64_t seed, uint64_t place)
{
    uint64_t x = (uint64_t)seed * 0x9e3779b97f4a7c15u + place + 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* Above 0 and at most 1. */
static inline double draw_share(int64_t seed, uint64_t place)
{
    return (double)((draw_hash(seed, place) >> 11) + 1) / 9007199254740992.0;
}

#endif
