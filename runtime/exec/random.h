/* random.h - random numbers by counter: element i of stream k is a function of (k, i)
 * alone, so any block of a tensor can be filled without the rest. */
#ifndef TOPT_RANDOM_H
#define TOPT_RANDOM_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* How a function is declared: device code includes this, too. */
#ifndef TOPT_RANDOM
#define TOPT_RANDOM static inline
#endif

TOPT_RANDOM uint64_t topt_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

TOPT_RANDOM uint64_t topt_random(uint64_t stream, uint64_t i)
{
    return topt_mix(topt_mix(stream) ^ topt_mix(i * 0xd1342543de82ef95u + 1));
}

/* The logarithm of x in (0, 1], within 1e-14 of it: with x = 2^k m, m near 1, and
 * s = (m - 1) / (m + 1) it is k ln 2 + 2 (s + s^3 / 3 + ...).  No calls, no branches. */
TOPT_RANDOM double topt_random_log(double x)
{
    uint64_t bits, half = 0x3fe6a09e667f3bcdu; /* the root of 1/2 */
    double m;
    memcpy(&bits, &x, sizeof bits);
    int64_t k = (int64_t)(bits - half) >> 52;
    bits -= (uint64_t)k << 52;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1) / (m + 1), q = s * s;
    double p = 1.0 / 17;
    p = p * q + 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    p = p * q + 1;
    /* k as a number by way of the low bits of 1.5 * 2^52, since vectors of 64-bit integers
     * are converted by few processors */
    uint64_t whole = 0x4338000000000000u + (uint64_t)k;
    double kd;
    memcpy(&kd, &whole, sizeof kd);
    return (kd - 6755399441055744.0) * 0.69314718055994530942 + 2 * s * p;
}

/* cos(2 pi v) of v in [0, 1): sin(x) with x = 2 pi (|v - 1/2| - 1/4), by its series. */
TOPT_RANDOM double topt_random_cos(double v)
{
    double x = 6.283185307179586477 * (fabs(v - 0.5) - 0.25), q = x * x;
    double p = 1.0 / 51090942171709440000.0;
    p = p * q - 1.0 / 121645100408832000.0;
    p = p * q + 1.0 / 355687428096000.0;
    p = p * q - 1.0 / 1307674368000.0;
    p = p * q + 1.0 / 6227020800.0;
    p = p * q - 1.0 / 39916800.0;
    p = p * q + 1.0 / 362880.0;
    p = p * q - 1.0 / 5040.0;
    p = p * q + 1.0 / 120.0;
    p = p * q - 1.0 / 6.0;
    return x + x * q * p;
}

/* Half of the bits of a word as a number, by way of the low bits of 2^52. */
TOPT_RANDOM double topt_random_half(uint64_t bits)
{
    uint64_t whole = 0x4330000000000000u | bits;
    double x;
    memcpy(&x, &whole, sizeof x);
    return x - 4503599627370496.0;
}

/* Standard normal, by Box and Muller. */
TOPT_RANDOM double topt_random_normal(uint64_t stream, uint64_t i)
{
    uint64_t r = topt_random(stream, i);
    double u = (topt_random_half(r >> 32) + 0.5) / 4294967296.0;
    double v = topt_random_half(r & 0xffffffffu) / 4294967296.0;
    return sqrt(-2 * topt_random_log(u)) * topt_random_cos(v);
}

#endif
