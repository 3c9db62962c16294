/* heap.c - a binary heap whose items know their places. */
#include "heap.h"

#include <stdlib.h>

static void put(struct heap *h, size_t at, struct heap_item *item)
{
    h->item[at] = item;
    item->at = at;
}

static void settle(struct heap *h, size_t at)
{
    struct heap_item *item = h->item[at];
    while (at > 1 && h->before(item, h->item[at / 2])) {
        put(h, at, h->item[at / 2]);
        at /= 2;
    }
    for (size_t child; (child = 2 * at) <= h->n; at = child) {
        if (child < h->n && h->before(h->item[child + 1], h->item[child]))
            child++;
        if (!h->before(h->item[child], item))
            break;
        put(h, at, h->item[child]);
    }
    put(h, at, item);
}

int heap_add(struct heap *h, struct heap_item *item)
{
    if (h->n + 1 >= h->room) {
        size_t room = h->room ? 2 * h->room : 64;
        struct heap_item **more = realloc(h->item, room * sizeof *more);
        if (!more)
            return -1;
        h->item = more;
        h->room = room;
    }
    h->item[++h->n] = item;
    settle(h, h->n);
    return 0;
}

void heap_remove(struct heap *h, struct heap_item *item)
{
    size_t at = item->at;
    struct heap_item *last = h->item[h->n--];
    if (last != item) {
        put(h, at, last);
        settle(h, at);
    }
    item->at = 0;
}

void heap_moved(struct heap *h, struct heap_item *item)
{
    settle(h, item->at);
}

struct heap_item *heap_first(const struct heap *h)
{
    return h->n ? h->item[1] : NULL;
}

void heap_fini(struct heap *h)
{
    free(h->item);
    *h = (struct heap){.before = h->before};
}
