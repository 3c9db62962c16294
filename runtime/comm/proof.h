/* proof.h - who knows a secret shows it without saying it: SipHash-2-4 (Aumasson and
 * Bernstein, INDOCRYPT 2012), a keyed hash of short messages, over a number that the other
 * side drew for this one connection. */
#ifndef TOPT_PROOF_H
#define TOPT_PROOF_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include "topt_error.h"

struct topt_secret {
    uint64_t key[2];
};

static inline uint64_t topt_proof_turn(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static inline void topt_proof_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = topt_proof_turn(v[1], 13) ^ v[0];
    v[0] = topt_proof_turn(v[0], 32);
    v[2] += v[3];
    v[3] = topt_proof_turn(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = topt_proof_turn(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = topt_proof_turn(v[1], 17) ^ v[2];
    v[2] = topt_proof_turn(v[2], 32);
}

static inline void topt_proof_take(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    topt_proof_round(v);
    topt_proof_round(v);
    v[0] ^= word;
}

/* The hash of 'len' bytes. */
static inline uint64_t topt_proof_hash(const struct topt_secret *s, const void *data,
                                       size_t len)
{
    const unsigned char *p = data;
    uint64_t v[4] = {s->key[0] ^ 0x736f6d6570736575u, s->key[1] ^ 0x646f72616e646f6du,
                     s->key[0] ^ 0x6c7967656e657261u, s->key[1] ^ 0x7465646279746573u};
    uint64_t last = (uint64_t)len << 56;
    size_t whole = len / 8 * 8;
    for (size_t at = 0; at < whole; at += 8) {
        uint64_t word = 0;
        for (int i = 7; i >= 0; i--)
            word = word << 8 | p[at + (size_t)i];
        topt_proof_take(v, word);
    }
    for (size_t i = whole; i < len; i++)
        last |= (uint64_t)p[i] << 8 * (i - whole);
    topt_proof_take(v, last);
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        topt_proof_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* What a rank answers to the number that the other side drew. */
static inline uint64_t topt_proof(const struct topt_secret *s, uint64_t drawn,
                                  int64_t rank)
{
    uint64_t words[2] = {drawn, (uint64_t)rank};
    return topt_proof_hash(s, words, sizeof words);
}

/* A secret of a text that people choose. */
static inline struct topt_secret topt_secret_of(const char *text)
{
    struct topt_secret first = {{0x746f70742d736563u, 0x7265742d6f662d31u}}, s;
    s.key[0] = topt_proof_hash(&first, text, strlen(text));
    first.key[1]++;
    s.key[1] = topt_proof_hash(&first, text, strlen(text));
    return s;
}

static inline int topt_proof_draw(void *ret, size_t bytes, struct topt_error *err)
{
    return getrandom(ret, bytes, 0) == (ssize_t)bytes
               ? 0
               : topt_fail(err, TOPT_ERR_IO, "no random numbers: %s", strerror(errno));
}

#endif
