/* heap.h - a priority queue of vertices by key.  Private to layout/.
 *
 * There is no decrease-key: a vertex that becomes cheaper is pushed again, and the
 * more expensive entry is skipped when it is popped.  Four children a node: fewer levels, and
 * they lie side by side. */
#ifndef TOPT_HEAP_H
#define TOPT_HEAP_H

#include "topt_array.h"

#include <stdint.h>
#include <stdlib.h>

struct topt_heap_entry {
    int64_t key;
    int32_t vertex;
};

/* Begins as zeros. */
struct topt_heap {
    struct topt_heap_entry *at;
    int n, cap;
};

/* -1 where memory is short. */
static inline int topt_heap_push(struct topt_heap *h, int64_t key, int32_t vertex)
{
    if (TOPT_ROOM(h->at, h->n, h->cap, 256))
        return -1;
    int i = h->n++;
    for (; i > 0 && key < h->at[(i - 1) / 4].key; i = (i - 1) / 4)
        h->at[i] = h->at[(i - 1) / 4];
    h->at[i] = (struct topt_heap_entry){key, vertex};
    return 0;
}

/* Remove and return the first entry of a heap that is not empty. */
static inline struct topt_heap_entry topt_heap_pop(struct topt_heap *h)
{
    struct topt_heap_entry top = h->at[0], last = h->at[--h->n];
    int i = 0;
    for (;;) {
        int c = 4 * i + 1, end = c + 4 < h->n ? c + 4 : h->n;
        if (c >= h->n)
            break;
        for (int k = c + 1; k < end; k++)
            c = h->at[k].key < h->at[c].key ? k : c;
        if (h->at[c].key >= last.key)
            break;
        h->at[i] = h->at[c];
        i = c;
    }
    h->at[i] = last;
    return top;
}

#endif
