/* bits.h - sets of small numbers, a bit each.
 * Internal to this folder.  Thread safety: a set has one owner; once complete, it is read by many. */
#ifndef TOPT_SEARCH_BITS_H
#define TOPT_SEARCH_BITS_H

#include <stddef.h>
#include <stdint.h>

enum { TOPT_BITS = 64 }; /* of a word */

/* Words of a set of numbers below 'n', and one more, so that there is one. */
static inline size_t topt_bits_words(size_t n)
{
    return n / TOPT_BITS + 1;
}

static inline void topt_bits_add(uint64_t *set, size_t i)
{
    set[i / TOPT_BITS] |= (uint64_t)1 << i % TOPT_BITS;
}

static inline int topt_bits_has(const uint64_t *set, size_t i)
{
    return (int)(set[i / TOPT_BITS] >> i % TOPT_BITS & 1);
}

/* How many there are in a word; below the i-th bit of it. */
static inline uint32_t topt_bits_count(uint64_t word)
{
    return (uint32_t)__builtin_popcountll(word);
}

static inline uint32_t topt_bits_below(uint64_t word, size_t i)
{
    return topt_bits_count(word & (((uint64_t)1 << i % TOPT_BITS) - 1));
}

#endif
