/* interning.c - numbers for equal bytes: a hash table with chains, in an arena. */
#include "interning.h"

#include "topt_hash.h"

#include <string.h>

struct interned {
    uint64_t hash;
    size_t len;
    const void *bytes;
    int number;
    struct interned *next;
};

/* Twice as many buckets; the arena keeps the old ones. */
static int more_buckets(struct topt_interning *in)
{
    size_t n = in->nbuckets ? 2 * in->nbuckets : 64;
    struct interned **bucket = TOPT_NEW(in->arena, n, struct interned *);
    if (!bucket)
        return -1;
    for (size_t i = 0; i < in->nbuckets; i++)
        for (struct interned *k = in->bucket[i], *next; k; k = next) {
            next = k->next;
            k->next = bucket[k->hash % n];
            bucket[k->hash % n] = k;
        }
    in->bucket = bucket;
    in->nbuckets = n;
    return 0;
}

static struct interned *find(const struct topt_interning *in, const void *bytes,
                             size_t len, uint64_t hash)
{
    struct interned *k = in->nbuckets ? in->bucket[hash % in->nbuckets] : NULL;
    while (k &&
           (k->hash != hash || k->len != len || (len && memcmp(k->bytes, bytes, len))))
        k = k->next;
    return k;
}

int topt_intern(struct topt_interning *in, const void *bytes, size_t len,
                const void **ret)
{
    uint64_t hash = topt_hash(bytes, len, len);
    struct interned *k = find(in, bytes, len, hash);
    if (!k) {
        void *copy = topt_arena_alloc(in->arena, len, 1);
        k = TOPT_NEW(in->arena, 1, struct interned);
        if (!copy || !k || ((size_t)in->n >= in->nbuckets && more_buckets(in)))
            return -1;
        if (len)
            memcpy(copy, bytes, len);
        struct interned **b = &in->bucket[hash % in->nbuckets];
        *k = (struct interned){hash, len, copy, in->n++, *b};
        *b = k;
    }
    if (ret)
        *ret = k->bytes;
    return k->number;
}
