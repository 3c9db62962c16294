/* index.c - numbers of things by their hashes: chains, of which there are as many as things. */
#include "topt_index.h"
#include "topt_array.h"

#include <stdlib.h>
#include <string.h>

static void chain(struct topt_index *x, int i)
{
    int *head = &x->head[x->at[i].hash & (uint64_t)(x->cap - 1)];
    x->at[i].next = *head;
    *head = i;
}

static int grow(struct topt_index *x)
{
    int cap = x->cap ? 2 * x->cap : 64;
    if (TOPT_RESIZE(x->at, cap) || TOPT_RESIZE(x->head, cap))
        return -1;
    x->cap = cap;
    memset(x->head, 0xff, (size_t)cap * sizeof *x->head);
    for (int i = 0; i < x->n; i++)
        chain(x, i);
    return 0;
}

static int with_hash(const struct topt_index *x, int i, uint64_t hash)
{
    while (i >= 0 && x->at[i].hash != hash)
        i = x->at[i].next;
    return i;
}

int topt_index_first(const struct topt_index *x, uint64_t hash)
{
    return x->cap ? with_hash(x, x->head[hash & (uint64_t)(x->cap - 1)], hash) : -1;
}

int topt_index_next(const struct topt_index *x, int i)
{
    return with_hash(x, x->at[i].next, x->at[i].hash);
}

int topt_index_add(struct topt_index *x, uint64_t hash)
{
    if (x->n == x->cap && grow(x))
        return -1;
    x->at[x->n].hash = hash;
    chain(x, x->n);
    return x->n++;
}

void topt_index_fini(struct topt_index *x)
{
    free(x->at);
    free(x->head);
    *x = (struct topt_index){0};
}
