/* heap.h - a binary heap of items that others own: what comes first, and any item found in no time.
 * Thread safety: none; one owner at a time. */
#ifndef TOPTD_HEAP_H
#define TOPTD_HEAP_H

#include <stddef.h>

/* Part of what is kept in the heap. */
struct heap_item {
    size_t at; /* its place, from 1; 0: in no heap */
};

struct heap {
    int (*before)(const struct heap_item *a, const struct heap_item *b);
    struct heap_item **item; /* [1..n] */
    size_t n, room;
};

/* 0, or -1 without memory.  Nothing else here can fail. */
int heap_add(struct heap *h, struct heap_item *item);
void heap_remove(struct heap *h, struct heap_item *item);
/* What the item is compared by has changed. */
void heap_moved(struct heap *h, struct heap_item *item);
struct heap_item *heap_first(const struct heap *h); /* NULL: empty */
void heap_fini(struct heap *h);

#endif
