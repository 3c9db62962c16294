/* vocab.c - pieces of text by number, and their numbers by a hash table. */
#include "vocab.h"
#include "topt_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PIECES = 1 << 24 };

int topt_vocab_put(struct topt_vocab *v, int64_t id, const char *s, size_t len,
                   double score, struct topt_error *err)
{
    if (id < 0 || id >= MOST_PIECES)
        return topt_fail(err, TOPT_ERR_LIMIT, "token '%.40s' has the number %lld", s,
                         (long long)id);
    if (id >= v->cap) {
        int64_t cap = v->cap ? 2 * (int64_t)v->cap : 1024;
        cap = cap > id ? cap : id + 1;
        struct topt_piece *more = realloc(v->piece, (size_t)cap * sizeof *more);
        if (!more)
            return topt_nomem(err, "the tokenizer");
        memset(more + v->cap, 0, (size_t)(cap - v->cap) * sizeof *more);
        v->piece = more;
        v->cap = (int32_t)cap;
    }
    v->piece[id] = (struct topt_piece){s, len, score};
    v->n = id >= v->n ? (int32_t)id + 1 : v->n;
    v->longest = len > v->longest ? len : v->longest;
    return 0;
}

static int32_t *at(const struct topt_vocab *v, const char *s, size_t len)
{
    uint32_t i = (uint32_t)topt_hash(s, len, 1) & v->mask;
    while (v->slot[i] >= 0 && (v->piece[v->slot[i]].len != len ||
                               memcmp(v->piece[v->slot[i]].s, s, len) != 0))
        i = (i + 1) & v->mask;
    return &v->slot[i];
}

int topt_vocab_index(struct topt_vocab *v, struct topt_error *err)
{
    uint32_t size = 16;
    while (size < 2 * (uint32_t)v->n)
        size *= 2;
    free(v->slot);
    v->slot = malloc(size * sizeof *v->slot);
    if (!v->slot)
        return topt_nomem(err, "the tokenizer");
    memset(v->slot, 0xff, size * sizeof *v->slot);
    v->mask = size - 1;
    for (int32_t i = 0; i < v->n; i++)
        if (v->piece[i].s)
            *at(v, v->piece[i].s, v->piece[i].len) = i;
    return 0;
}

int32_t topt_vocab_find(const struct topt_vocab *v, const char *s, size_t len)
{
    return *at(v, s, len);
}

void topt_vocab_bytes(const struct topt_vocab *v, int32_t ret[256])
{
    char name[8];
    for (int b = 0; b < 256; b++)
        ret[b] = topt_vocab_find(v, name, (size_t)snprintf(name, 8, "<0x%02X>", b));
}

void topt_vocab_fini(struct topt_vocab *v)
{
    free(v->piece);
    free(v->slot);
    *v = (struct topt_vocab){.piece = NULL};
}
