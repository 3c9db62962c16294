/* random.h - random numbers by counter: element i of stream k is a function of (k, i)
 * alone, so any block of a tensor can be filled without the rest. */
#ifndef TOPT_RANDOM_H
#define TOPT_RANDOM_H

#include <math.h>
#include <stdint.h>

static inline uint64_t topt_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static inline uint64_t topt_random(uint64_t stream, uint64_t i)
{
    return topt_mix(topt_mix(stream) ^ topt_mix(i * 0xd1342543de82ef95u + 1));
}

/* Standard normal, by Box and Muller. */
static inline double topt_random_normal(uint64_t stream, uint64_t i)
{
    uint64_t r = topt_random(stream, i);
    double u = ((double)(r >> 32) + 0.5) / 4294967296.0;
    double v = (double)(r & 0xffffffffu) / 4294967296.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

#endif
