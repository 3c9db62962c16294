/* feed_order.h - inside the feeds: which sample comes when. */
#ifndef TOPT_FEED_ORDER_H
#define TOPT_FEED_ORDER_H

#include "random.h"

#include <stdint.h>

/* Which of 'n' things is at place 'i' of an order that 'stream' gives: a permutation, by a
 * Feistel network of four rounds that is gone through until its number is one of them. */
static inline uint64_t topt_shuffled(uint64_t stream, uint64_t n, uint64_t i)
{
    int half = 1;
    while (half < 32 && (uint64_t)1 << 2 * half < n)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = i >> half, right = i & mask;
        for (uint64_t round = 0; round < 4; round++) {
            uint64_t next = left ^ (topt_random(stream + round, right) & mask);
            left = right;
            right = next;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

/* Samples of a text: 'length' tokens from each multiple of 'stride' on. */
struct topt_windows {
    int64_t length, stride;
    int by_epoch; /* each once before any comes again; else one at random each time */
};

static inline int64_t topt_windows_in(const struct topt_windows *w, int64_t tokens)
{
    return tokens < w->length ? 0 : (tokens - w->length) / w->stride + 1;
}

/* Which of 'n' windows sample 'sample' is. */
static inline int64_t topt_window_of(const struct topt_windows *w, uint64_t stream,
                                     uint64_t sample, int64_t n)
{
    uint64_t all = (uint64_t)n;
    return (int64_t)(w->by_epoch ? topt_shuffled(topt_mix(stream + sample / all), all,
                                                 sample % all)
                                 : topt_random(stream, sample) % all);
}

#endif
