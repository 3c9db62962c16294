/* topt_hash.h - a hash of bytes for tables in memory: fast, the same on every run, and
 * not for data that an enemy chooses.  Eight bytes at a time are mixed by a multiplication
 * with the golden ratio. */
#ifndef TOPT_HASH_H
#define TOPT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* 'h' is the hash of what comes before, or any number. */
static inline uint64_t topt_hash(const void *data, size_t len, uint64_t h)
{
    const unsigned char *p = (const unsigned char *)data;
    uint64_t word;
    for (; len >= 8; len -= 8, p += 8) {
        memcpy(&word, p, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    for (; len; len--, p++)
        h = (h ^ *p) * 0x100000001b3u;
    return h ^ (h >> 32);
}

/* A number that looks random, of any number: splitmix64, Steele, Lea and Flood, OOPSLA 2014. */
static inline uint64_t topt_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#endif
